/* fake_box: the real shell and the real box-files, in forked processes without confinement, under a
 * monitor that permits by callback. For the unit tests, and for a program that lets conformance
 * suites run the shell like any other. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "monitor/proto.h"
#include "shell/run.h"

struct fake_box {
	struct sh_start start; /* clocks may be left empty: the real ones */
	int fds[3];            /* the command's 0, 1, 2; stay the caller's */
	const char *tmp;       /* folder that is /tmp inside */
	bool no_tools;
	int64_t now_ns;     /* wall clock; 0: the real one */
	int64_t timeout_ns; /* 0: none */

	/* NULL permits. permit_fs is asked once for each effect. */
	bool (*permit_fs)(void *arg, enum mon_fs_op op, const char *path);
	bool (*permit_exec)(void *arg, bool spawn, const char *program, const char *command);
	void *arg;
	struct buf *log;                        /* one line a decision; may be NULL */
	void (*on_exit)(void *arg, int status); /* MON_EXIT came; may be NULL */
};

/* Run one command to its end, background jobs included. Its status; -1: time-out. */
int fake_box_run(struct fake_box *b);
