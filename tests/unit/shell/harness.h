/* harness: run a command line in the real shell inside a temporary directory, with a fake monitor
 * and a fake box-files that serve that directory and the host's programs.
 *
 *	struct sh_test t;
 *	sh_test_init(&t);                          // makes t.dir, the working directory
 *	sh_test_file(&t, "f", "a\nb\n");
 *	assert_int_equal(sh_test_run(&t, "wc -l f"), 0);
 *	assert_string_equal(t.out, "2 f\n");
 *	sh_test_fini(&t);                          // removes t.dir
 *
 * or sh_test_expect(&t, "wc -l f", "2 f\n", 0) for table-driven tests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "monitor/proto.h"

struct sh_test {
	char dir[64];           /* absolute path of the working directory; empty at first */
	const char *input;      /* standard input of the next runs; NULL: empty */
	size_t input_n;         /* its length; 0 with input set: strlen */
	const char *const *env; /* "NAME=value"..., NULL-terminated; NULL: PATH and HOME only */
	int64_t now_ns;         /* wall clock of the shell; 0: the real one */
	bool no_tools;          /* host programs are not found */

	/* Decisions; NULL permits everything. Return false to deny with `policy denied this
	 * operation on '<target>' [policy: test].`. permit_fs runs in the shell's process,
	 * permit_exec in the test's. path is absolute (the directory's own prefix included). */
	bool (*permit_fs)(void *arg, enum mon_fs_op op, const char *path);
	bool (*permit_exec)(void *arg, bool spawn, const char *program, const char *command);
	void *arg;

	/* Results of the last run; owned by the harness. */
	char *out, *err; /* NUL-terminated */
	size_t out_n, err_n;
	int status;
	/* Every decision of the last run in order, one a line: "exec ls | ls -l f", "spawn
	 * /usr/bin/git | git status", "read_content DIR/f", "deny write_content DIR/f".
	 * The text in front of " | " is the program (spawn: its path), behind it the command. DIR
	 * stands for t.dir. */
	char *log;

	char *content; /* of sh_test_read */
};

void sh_test_init(struct sh_test *t);
void sh_test_fini(struct sh_test *t);
/* Write a file below t->dir (parents must exist). */
void sh_test_file(struct sh_test *t, const char *name, const char *content);
/* Contents of a file below t->dir, NUL-terminated, borrowed until the next call; NULL when it does
 * not exist. */
const char *sh_test_read(struct sh_test *t, const char *name);
/* Run `sh -c text`. Returns the status; a run of more than 20 s is killed and gives -1. */
int sh_test_run(struct sh_test *t, const char *text);
/* Run and compare standard output and status; on a difference prints both and fails the cmocka
 * test. */
void sh_test_expect(struct sh_test *t, const char *text, const char *out, int status);
