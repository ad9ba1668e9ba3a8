/* command: what a command that runs inside box-shell sees. Builtins, the in-process utilities (cat,
 * ls, sed, ...) and nothing else include this.
 *
 * A command has no file system: every path goes through io->files (files/client.h), every
 * descriptor it opens came from there. Its own descriptors 0, 1 and 2 are real: whatever the
 * redirections made them.
 *
 * A utility runs inside the shell's own process, not in a fork. So it must
 *   - keep its state in locals and in io->arena (freed when it returns), never in statics;
 *   - close every descriptor it opened;
 *   - return a status, never exit();
 *   - return soon after shcmd_interrupted() or shcmd_out_dead() becomes true (both are asked by
 *   shcmd_read and shcmd_getline already).
 *
 * Add a command: write cmd_<name>.c that defines `const struct sh_cmd sh_cmd_<name>`, add
 * `SH_CMD(<name>)` to cmd_list.h and the file to meson.build. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/sv.h"
#include "files/client.h"

struct shell;

#define SHCMD_MEM_MAX  ((size_t)256 << 20) /* io->arena: one command's memory */
#define SHCMD_LINE_MAX ((size_t)64 << 20)  /* one line of input */
#define SHCMD_PATH_MAX 4096

/* A buffered writer over a descriptor. Errors are sticky. */
struct sh_out {
	int fd;
	int err; /* errno of the first failed write, 0 while all is well */
	size_t n;
	size_t cap;
	char *p;
};

/* Everything a running command gets. Owned by the shell; valid until run() returns. */
struct sh_io {
	const char *name;   /* the command's name as messages show it */
	struct sh_out *out; /* descriptor 1; flushed after run(), and before every nested command */
	struct sh_out *err; /* descriptor 2; every message is flushed at once */
	int in;             /* descriptor 0 (always 0; -1 when it is closed) */
	struct files *files;
	struct arena *arena; /* limit SHCMD_MEM_MAX */
	const char *cwd;     /* the physical working directory, absolute; only cd changes it */
	mode_t umask;        /* already applied by nobody: pass (mode & ~io->umask) to files_* */
	struct clock wall, mono;
	const struct sh_cmd *cmd;
	struct files_err last; /* why shcmd_open_* failed; text in the arena */
	struct shell *sh;      /* for builtins (shell.h) only */
};

enum sh_cmd_flags {
	/* POSIX special builtin: assignments persist, errors end a script. */
	SHCMD_SPECIAL = 1,
	/* Acts on the shell itself; `type` says "builtin". */
	SHCMD_BUILTIN = 2,
	/* A program elsewhere; a file on PATH never wins over it. */
	SHCMD_UTILITY = 4,
	/* Arguments that look like assignments are expanded as such (export, local). */
	SHCMD_DECLARES = 8
};

struct sh_cmd {
	const char *name;
	/* What --help prints: "cat [-benstuAET] [FILE]...\n" and one line an option.
	 * NULL: --help is not an option of this command. */
	const char *usage;
	unsigned flags;
	/* Status after a wrong option: 1, or 2 where POSIX or GNU say so (0 means 1). */
	int usage_status;
	/* argv[0] is the name, argv[argc] is NULL; the strings may be changed. Returns the
	 * exit status. */
	int (*run)(struct sh_io *io, int argc, char **argv);
};

/* --- output --- */

void shcmd_put(struct sh_io *io, const void *p, size_t n);
void shcmd_puts(struct sh_io *io, const char *s);
void shcmd_putc(struct sh_io *io, char c);
void shcmd_printf(struct sh_io *io, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Bytes of standard output to the descriptor now. 0, or -1 when it cannot be written. */
int shcmd_flush(struct sh_io *io);
/* Standard output cannot be written any more (the reader is gone, the disk is full): stop working.
 * The shell prints the message and makes the status: 141 for a closed pipe, else 1 with "<name>:
 * write error: <why>". */
bool shcmd_out_dead(const struct sh_io *io);
/* A writer over another descriptor, for tee, sed w and the like: sh_out_init, sh_out_put, then
 * sh_out_fini, which flushes, frees, and returns 0 or the errno of the first failure. It does not
 * close the descriptor. */
void sh_out_init(struct sh_out *o, int fd);
void sh_out_put(struct sh_out *o, const void *p, size_t n);
int sh_out_flush(struct sh_out *o);
int sh_out_fini(struct sh_out *o);

/* --- messages --- */

/* "<name>: <text>\n" on descriptor 2 for utilities, "strands-shell: <name>: <text>\n" for builtins.
 * Control bytes in the text are shown escaped. Returns 1, so that `return shcmd_err(...)` reads
 * well. */
int shcmd_err(struct sh_io *io, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Why a files_* call on operand arg failed:
 *   errno   "<name>: <arg>: <strerror>"
 *   policy  "strands-shell: <name>: policy denied this operation on '...' ..."   (spec box-config
 *   3.2; rm and others that name the operand use
 *           shcmd_err(io, "%s: %s", arg, e->text) instead)
 *   floor   "strands-shell: <name>: <path>: <reason>"
 * Returns 1; 125 when box-files is gone (FILES_BROKEN). arg may be NULL. */
int shcmd_files_err(struct sh_io *io, const char *arg, const struct files_err *e);
/* The same for the last failure of shcmd_open_*. */
int shcmd_open_err(struct sh_io *io, const char *arg);

/* --- options --- */

enum sh_opt_arg { SH_OPT_NONE, SH_OPT_REQUIRED, SH_OPT_OPTIONAL /* -x[ARG], --long[=ARG] */ };
struct sh_opt {
	int val;          /* what shcmd_getopt returns: the letter, or >= 256 without one */
	const char *name; /* long name without dashes, or NULL */
	enum sh_opt_arg arg;
};
/* Rows end with val 0. Several rows may share a val (aliases). */

#define SH_OPT_END   (-1)
#define SH_OPT_HELP  (-2) /* --help: usage was printed; return 0 */
#define SH_OPT_ERROR (-3) /* unknown option or missing argument: return shcmd_bad_option(io, &g) */

struct sh_getopt {
	int argc;
	char **argv;
	const struct sh_opt *opts;
	/* stop at the first operand (env, xargs, find-like); else operands and options may be
	 * mixed, as GNU does */
	bool posix;
	/* after SH_OPT_END: index of the first operand in argv (operands were moved to the end) */
	int i;
	char *arg; /* argument of the option just returned, or NULL */
	/* internal */
	char *cluster;
	int first_operand, nmoved;
	const char *bad;
	char bad_letter;
	bool missing;
};
/* { .argc = argc, .argv = argv, .opts = table } to begin. Long names may be abbreviated. */
int shcmd_getopt(struct sh_io *io, struct sh_getopt *g);
/* Print what is wrong ("<name>: invalid option -- 'x'" and the like) and return cmd->usage_status.
 * */
int shcmd_bad_option(struct sh_io *io, const struct sh_getopt *g);
/* "<name>: <text>" plus a hint to --help; returns cmd->usage_status. For a missing operand and the
 * like. */
int shcmd_usage_err(struct sh_io *io, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* --- files --- */

/* The absolute path of an operand: joined to io->cwd, in the arena. Nothing is folded: box-files
 * resolves "." and "..". An empty operand gives "" (box-files answers ENOENT, as POSIX
 * wants). NULL when it is longer than SHCMD_PATH_MAX: io->last then holds ENAMETOOLONG and
 * shcmd_open_err prints it. */
const char *shcmd_path(struct sh_io *io, const char *arg);
/* Open an operand to read; "-" is standard input, and so are /dev/stdin, /dev/fd/N (N a descriptor
 * of this command) and /dev/null, which need no decision. A folder is refused with EISDIR. The
 * caller closes the descriptor, which is never 0, 1 or 2. -1: shcmd_open_err. */
int shcmd_open_read(struct sh_io *io, const char *arg);
/* Open an operand to write (flags: O_CREAT, O_TRUNC, O_APPEND, O_EXCL; O_WRONLY is added unless
 * O_RDWR is given), mode 0666 & ~umask. "-" is an ordinary name here; /dev/stdout, /dev/stderr,
 * /dev/fd/N and /dev/null are as above. */
int shcmd_open_write(struct sh_io *io, const char *arg, int flags);
/* The descriptor that a name like /dev/stdin, /dev/fd/3 or /dev/null means, duplicated; -2 when the
 * name is not of this kind, -1 (EBADF in io->last) when there is no such descriptor. */
int shcmd_open_special(struct sh_io *io, const char *arg);

/* read(2) that retries EINTR and gives up when the command is interrupted. Bytes, 0 at end of file,
 * -1 with errno (EINTR: interrupted). */
ssize_t shcmd_read(struct sh_io *io, int fd, void *p, size_t n);

/* A buffered reader over a descriptor. */
struct sh_in {
	struct sh_io *io;
	int fd;
	int err; /* errno of a failed read, 0 at a clean end of file */
	bool eof;
	size_t pos, n, cap;
	char *p; /* malloc'd */
};
void shcmd_in_init(struct sh_in *in, struct sh_io *io, int fd);
/* Gives unread bytes back when the descriptor can seek (so that `(head -n 1; cat) < f` works),
 * frees. Does not close. */
void shcmd_in_fini(struct sh_in *in);
/* The next line including its delimiter (the last one may lack it), borrowed until the next call.
 * 1: a line; 0: end of file; -1: error (in->err). Lines over
 * SHCMD_LINE_MAX are an error (EFBIG). NUL bytes are ordinary. */
int shcmd_getline(struct sh_in *in, char delim, sv *line);
/* Bytes as they come: at least one, at most in the buffer. Borrowed. 1, 0, -1 as above. */
int shcmd_getchunk(struct sh_in *in, sv *chunk);

/* --- the rest of the world --- */

/* Value of an exported variable, or NULL. Borrowed until the command runs another. */
const char *shcmd_env(struct sh_io *io, const char *name);
/* All exported variables, "NAME=value", sorted by name, NULL-terminated, in the arena; NULL without
 * memory. */
char **shcmd_env_all(struct sh_io *io);

struct shcmd_run_opts {
	/* Working directory (-execdir), absolute, already allowed; NULL: the same. */
	const char *cwd;
	/* The whole exported environment; NULL: the shell's. */
	char *const *env;
	/* Descriptor for its standard input; < 0: the same. */
	int in;
	/* As execvp would find it: utilities and host programs, no functions, no builtins. */
	bool no_builtins;
};
/* Run a command as if it had been typed: found, decided by itself, run to its end. argv is
 * NULL-terminated. o may be NULL. Returns its status (126 refused, 127 not found, 128+n killed).
 * Flushes io->out first. */
int shcmd_run(struct sh_io *io, char **argv, const struct shcmd_run_opts *o);

/* A signal ended (or will end) this command: stop and return any status; the shell turns it into
 * 128 + signal. */
bool shcmd_interrupted(struct sh_io *io);
/* Sleep; 0, or -1 when interrupted. */
int shcmd_sleep(struct sh_io *io, int64_t ns);
/* Memory of this command; NULL at the limit, after a message. Zeroed. */
void *shcmd_alloc(struct sh_io *io, size_t n, size_t size);
/* Does str match the shell pattern (*, ?, [...], \ quotes)? icase: ASCII letters without case. A
 * leading dot and slashes are ordinary, as in find -name and -path. */
bool shcmd_match(const char *pattern, const char *str, bool icase);
/* Whole decimal or 0: false when it is anything else or outside [min, max]. Suffixes are the
 * command's affair. */
bool shcmd_number(const char *s, int64_t min, int64_t max, int64_t *out);
