/* simple: one simple command on its way from words to a status; shared by simple.c and pipeline.c.
 * */
#pragma once

#include "shell/shell.h"

enum sh_kind {
	SH_K_NONE, /* no words: assignments and redirections only */
	SH_K_FUNCTION,
	SH_K_COMMAND, /* in process: builtin or utility */
	SH_K_PROGRAM, /* host program */
	SH_K_UNKNOWN  /* nothing has this name: told where the command's standard error goes */
};

struct sh_cmdline {
	const struct sh_node *node;
	struct sh_args args;
	int argc;
	enum sh_kind kind;
	struct sh_func *func;
	const struct sh_cmd *cmd;
	char *path; /* of a program; in the arena */
	/* SH_K_PROGRAM: errno of a spelled path that names no program; decided all the same, so
	 * that a refusal says nothing about what is there. 0: there is one. */
	int missing;
	struct sh_ticket ticket;
	unsigned how; /* SH_RUN_* */
};

/* Find what args.v[0] names. 0, or the status after a message (126, 127). */
int sh_resolve(struct shell *sh, struct arena *a, struct sh_cmdline *c);
/* Decide it. 0, or the status after a message. */
int sh_admit(struct shell *sh, struct sh_cmdline *c);
/* Run what was admitted, in this process, with descriptors as they are. Programs are waited for.
 * Does not report the ticket of a function or command; that of a program is reported. */
int sh_run_admitted(struct shell *sh, struct sh_cmdline *c);
/* Start a program and return at once. 0, or a status after a message. */
int sh_start_program(struct shell *sh, struct sh_cmdline *c, struct sh_member *m);
/* Set the assignments in front of the command in a new scope. -1 after a message (the scope is gone
 * again). */
int sh_prefix_assign(struct shell *sh, const struct sh_assign *as);
