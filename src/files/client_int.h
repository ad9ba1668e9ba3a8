/* client_int: what client.c and client_tree.c share. Not for users of the library. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/ipc.h"
#include "files/client.h"

struct files {
	int fd; /* -1 once box-files is gone */
	uint32_t id;
	struct ipc_msg msg; /* the last answer */
	struct buf body;    /* of the request being made */
	struct files_err err;
	struct buf text, path; /* what err points to */
	size_t bad;            /* index of the entry of an OPEN that err is about */
	int (*wait)(void *arg, int fd);
	void *wait_arg;
	bool slow; /* the answer to come may take long: wait for it by `wait` */
};

/* Set the error; return -1. */
int files_fail_sys(struct files *f, int e);
int files_fail_broken(struct files *f, const char *text); /* closes the channel */
/* Start a request body; add a path (-1 with the error set); send it. */
void files_begin(struct files *f);
int files_put_path(struct files *f, const char *path);
int files_send(struct files *f, uint16_t type);
/* The next frame of the answer: its type, or -1 with the error set (FILES_FAIL included). */
int files_next(struct files *f);
/* Read a fail body into *e, whose texts live in f until the next one. -1: malformed. */
int files_read_fail(struct files *f, struct rd *b, struct files_err *e, size_t *index);
