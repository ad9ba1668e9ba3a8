/* run: a shell from its start to its end, as a worker's main and the test harness use it. */
#pragma once

#include "shell/shell.h"

/* How a shell starts. Strings are copied. */
struct sh_start {
	const char *name;    /* argv[0]: "sh", "bash", ... */
	sv text;             /* of -c */
	int script_fd;       /* a script to read instead; -1: none. Taken over */
	const char *zero;    /* $0 */
	char *const *params; /* NULL-terminated; may be NULL */
	const char *cwd, *workspace, *home, *operator_home, *path;
	uint32_t flags;        /* SHELL_F_* */
	unsigned initial_opts; /* SH_O_*, besides */
	char *const *env;      /* "NAME=value", NULL-terminated */
	struct clock wall, mono;
};

/* A shell on two channels (taken over). Descriptors 0, 1 and 2 are the command's. devnull: a
 * descriptor on /dev/null, taken over; -1: none. */
struct shell *sh_shell_new(int mon_fd, int files_fd, int devnull, const struct sh_start *s);
/* Run it; does not return. */
_Noreturn void sh_shell_run(struct shell *sh, const struct sh_start *s);

/* The command line of `sh`, as a command inside the shell has it. */
struct sh_invocation {
	const char *text;   /* -c: the text, else NULL */
	const char *script; /* a script file, else NULL */
	const char *zero;
	char **params; /* NULL-terminated rest of argv */
	bool read_stdin, login;
};
/* Parse `sh` arguments; options change sh. 0, or a status after a message. */
int sh_invocation(struct shell *sh, int argc, char **argv, struct sh_invocation *v);
/* Run commands from descriptor 0, line by line, so that they can read what follows. */
void sh_run_stdin(struct shell *sh);
/* Set positional parameters and $0. */
void sh_set_params(struct shell *sh, const char *zero, char *const *params);
