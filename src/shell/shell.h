/* shell: the interpreter's state and the calls between its files. One struct shell a process; a
 * subshell is a fork with a copy of it.
 *
 * Control flow: break, continue, return, exit and fatal errors are recorded in sh->flow and every
 * evaluating function returns as soon as it is not SH_FLOW_NONE. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/ipc.h"
#include "files/client.h"
#include "shell/ast.h"
#include "shell/cmd_table.h"
#include "shell/command.h"
#include "shell/mem.h"
#include "shell/vars.h"

#define SH_FUNC_DEPTH_MAX     1000 /* nested calls of functions, eval, . and traps */
#define SH_SUBSHELL_DEPTH_MAX 200
#define SH_STAGES_MAX         512 /* of one pipeline */
#define SH_JOBS_MAX           256
#define SH_FD_USER_MAX        256 /* descriptors that a script may name are below this */
#define SH_EXPAND_MAX         ((size_t)256 << 20) /* bytes of one expansion */
#define SH_NSIG               65

enum sh_flow {
	SH_FLOW_NONE,
	SH_FLOW_BREAK,    /* flow_n loops */
	SH_FLOW_CONTINUE, /* flow_n loops */
	SH_FLOW_RETURN,   /* from a function or a sourced file */
	SH_FLOW_ABORT,    /* an error that ends the current complete command, as in bash */
	SH_FLOW_EXIT      /* the shell ends with sh->status */
};

enum sh_option {
	SH_O_ALLEXPORT = 1 << 0, /* a */
	SH_O_NOTIFY = 1 << 1,    /* b */
	SH_O_NOCLOBBER = 1 << 2, /* C */
	SH_O_ERREXIT = 1 << 3,   /* e */
	SH_O_NOGLOB = 1 << 4,    /* f */
	SH_O_HASHALL = 1 << 5,   /* h */
	SH_O_MONITOR = 1 << 6,   /* m */
	SH_O_NOEXEC = 1 << 7,    /* n */
	SH_O_NOUNSET = 1 << 8,   /* u */
	SH_O_VERBOSE = 1 << 9,   /* v */
	SH_O_XTRACE = 1 << 10,   /* x */
	SH_O_PIPEFAIL = 1 << 11,
	SH_O_POSIX = 1 << 12,
	SH_O_BRACES = 1 << 13,   /* B */
	SH_O_ERRTRACE = 1 << 14, /* E */
	SH_O_IGNOREEOF = 1 << 15,
	SH_O_PRIVILEGED = 1 << 16, /* p, accepted without effect */
	SH_O_KEYWORD = 1 << 17,    /* k, accepted without effect */
	SH_O_ONECMD = 1 << 18,     /* t */
	SH_O_PHYSICAL = 1 << 19,   /* P */
	SH_O_FUNCTRACE = 1 << 20,  /* T */
	SH_O_NOLOG = 1 << 21,
	SH_O_STDIN = 1 << 22,  /* s, shown only */
	SH_O_COMMAND = 1 << 23 /* c, shown only */
};

enum sh_shopt {
	SH_S_EXTGLOB = 1 << 0,
	SH_S_NULLGLOB = 1 << 1,
	SH_S_DOTGLOB = 1 << 2,
	SH_S_FAILGLOB = 1 << 3,
	SH_S_GLOBSTAR = 1 << 4,
	SH_S_NOCASEGLOB = 1 << 5,
	SH_S_NOCASEMATCH = 1 << 6,
	SH_S_EXPAND_ALIASES = 1 << 7,
	SH_S_LASTPIPE = 1 << 8,
	SH_S_XPG_ECHO = 1 << 9,
	SH_S_INHERIT_ERREXIT = 1 << 10,
	SH_S_SOURCEPATH = 1 << 11,
	SH_S_SHIFT_VERBOSE = 1 << 12,
	SH_S_LASTBIT = 13 /* further names of bash are kept without effect, from this bit on */
};

struct sh_func {
	struct sh_func *next;
	char *name;
	char *source;         /* the file it was defined in */
	struct sh_tree *tree; /* counted */
	struct sh_node *body;
	unsigned calls; /* running now: not freed before they end */
	bool exported, readonly, dead;
};

/* One call: FUNCNAME, BASH_SOURCE, BASH_LINENO. */
struct sh_frame {
	char *func, *source;
	int line; /* of the call */
};

struct sh_alias {
	struct sh_alias *next;
	char *name, *value;
};

/* A permit that must be reported once. */
struct sh_ticket {
	bool have;
	uint64_t id;
};

/* One program that runs for us: a forked child or a host program of the monitor. */
struct sh_member {
	pid_t pid;               /* > 0: a child */
	uint32_t tool;           /* != 0: a host program */
	struct sh_ticket ticket; /* reported with MON_DONE_EXEC when it ends */
	bool done;
	int status; /* exit status, 128 + signal when killed */
};

/* A child process, from fork to the moment somebody asked for its status. */
struct sh_child {
	pid_t pid;
	int status;
	bool done;
	bool background;
	int job;    /* number for `jobs`, 0: none */
	char *text; /* of a background job */
};
#define SH_CHILDREN_MAX 4096

/* What was opened for one descriptor by a redirection, to be put back. */
struct sh_redir_saved {
	struct sh_redir_saved *next;
	int fd;
	int saved; /* where the old one was kept; -1: it was closed */
};

struct shell {
	/* authority: two channels, and that is all */
	int mon_fd;
	uint32_t mon_id;
	unsigned mon_ticks; /* calls of sh_mon_glance */
	struct ipc_msg msg; /* the last answer; see ask.c */
	struct files *files;
	int devnull; /* opened before confinement, or -1 */
	bool first;  /* the process that the alias waits for */
	bool mon_broken;
	struct {
		uint32_t tool;
		int status;
	} * tools_done; /* reported by the monitor, not yet asked for */
	size_t ntools_done, tools_cap;
	uint32_t tools[2]; /* running in the foreground: signals are passed on */

	/* language state */
	struct sh_vars vars;
	struct sh_func *funcs;
	struct sh_alias *aliases;
	char **params; /* positional, NULL-terminated, owned */
	size_t nparams;
	char *zero;
	char *name; /* how messages call scripts: the file, or "" */
	unsigned opts;
	unsigned shopts;
	int status;    /* $? */
	int line;      /* LINENO */
	pid_t pid;     /* $$ */
	pid_t last_bg; /* $! */
	pid_t self;    /* of this process */
	enum sh_flow flow;
	int flow_n;
	int loops;       /* loops around, for break */
	int calls;       /* functions and sourced files around, for return */
	int funcs_depth; /* functions alone, for local */
	int sourced;     /* . files around */
	int depth;       /* SH_FUNC_DEPTH_MAX */
	int subshell;
	int shell_depth; /* sh inside sh */
	uintptr_t stack; /* where the stack was at the start, and how far it may go from there */
	size_t stack_max;
	int no_errexit; /* > 0: inside a condition or the left of && */
	bool in_trap;
	const struct sh_node *command; /* BASH_COMMAND; in command_tree */
	struct sh_tree *command_tree;
	char *command_text;
	bool line_fixed;
	bool in_subst;  /* this process is a command substitution */
	int last_subst; /* status of the last command substitution of this command, or -1 */
	struct sh_frame *frames; /* functions and sourced files, innermost last */
	size_t nframes, frames_cap;
	bool frames_changed;  /* FUNCNAME and its kin are made when they are looked at */
	struct sh_tree *tree; /* the complete command that runs */

	/* paths */
	char *cwd;          /* physical */
	struct sh_vec dirs; /* below the working directory: pushd */
	char *logical;      /* PWD, with the links that cd went through */
	char *workspace, *home, *operator_home, *path0;
	mode_t umask;

	/* traps and signals */
	char *trap[SH_NSIG]; /* action; "" ignore; NULL default. [0] is EXIT */
	char *trap_err, *trap_debug, *trap_return;
	bool ignored_at_start[SH_NSIG];
	bool traps_inherited; /* shown by `trap` in a subshell until one is set */
	int killed;           /* a signal that ends the shell, 0: none */
	bool lingering;       /* MON_EXIT was sent */
	bool traps_break;     /* a trapped signal ends the builtin that runs (read, wait) */

	/* children */
	struct sh_child *children;
	size_t nchildren, children_cap;
	int next_job;

	/* output of builtins */
	struct sh_out out, err;
	struct sh_io *io; /* of the command that runs, for nested ones */
	struct sh_assign *
	    *decl; /* by argv index: array assignments among the arguments of declare */
	size_t ndecl;
	bool kept_redirs;    /* the last simple command did so */
	bool keep_redirs;    /* exec without a command: its redirections stay */
	int procs[64];       /* our ends of process substitutions */
	pid_t proc_pids[64]; /* of >(...): waited for when the command has ended; else 0 */
	size_t nprocs;
	pid_t exec_procs[8]; /* of `exec > >(...)`: waited for at the end */
	size_t nexec_procs;
	int texts; /* nested texts being run; 1: the script itself */
	bool ran;  /* the last text held a command */

	struct clock wall, mono;
	int64_t start_ns;
	int64_t seconds_base;
	uint32_t random;
	int getopts_at; /* position inside a cluster */
	int getopts_ind;
	char dyn[512];    /* text of a computed variable */
	char *argv0_next; /* exec -a */
};

/* --- messages (msg.c) --- */
/* "strands-shell: [FILE: line N: ]text\n" on descriptor 2. */
void sh_msg(struct shell *sh, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same, then the current complete command ends with this status (bash's behaviour for expansion
 * errors), or the shell when fatal. */
void sh_error(struct shell *sh, bool fatal, int status, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* --- expansion (expand.c) --- */
struct sh_args {
	char **v; /* NULL-terminated, in the arena */
	bool *literal;
	size_t n, cap;
	struct sh_assign **decl; /* by index, the first ndecl; or NULL */
	size_t ndecl;
};
enum sh_expand_mode {
	SH_X_STRING,  /* one string: redirections, case words, here-documents */
	SH_X_ASSIGN,  /* the same with ~ behind = and : */
	SH_X_PATTERN, /* quoted specials are escaped with backslashes */
	SH_X_REGEX
};
/* All expansions of a list of words. -1: an error was reported and sh->flow may be set. */
int sh_expand_words(
    struct shell *sh, struct arena *a, const struct sh_word *words, struct sh_args *out);
/* One word to one string, in the arena; NULL after an error. A NULL word is "". */
char *sh_expand_str(
    struct shell *sh, struct arena *a, const struct sh_word *w, enum sh_expand_mode mode);
/* Text expanded as in double quotes (PS4); the text itself when it does not parse. */
char *sh_expand_text(struct shell *sh, struct arena *a, const char *text);
void sh_args_push(struct arena *a, struct sh_args *out, char *s, bool literal);
/* First character of IFS joined for "$*" (in the arena). */
char *sh_join(struct shell *sh, struct arena *a, char *const *v, size_t n, const char *sep);
/* $name for one of the special parameters and positional ones; NULL when unset. In the arena or
 * borrowed. */
const char *sh_special_get(struct shell *sh, struct arena *a, const char *name);
/* Pathname expansion of one pattern; matches are pushed sorted. Returns how many. */
size_t sh_glob(struct shell *sh, struct arena *a, const char *pattern, struct sh_args *out);
/* Brace expansion: a list of words (in the arena) instead of w. */
struct sh_word *sh_brace_expand(struct arena *a, const struct sh_word *w, bool *too_many);

/* --- arithmetic (arith.c) --- */
/* Evaluate; -1 after a message. */
int sh_arith(struct shell *sh, const char *text, int64_t *out);
int sh_arith_word(struct shell *sh, const struct sh_word *w, int64_t *out);

/* --- assignment (assign.c) --- */
int sh_assign(struct shell *sh, const struct sh_assign *as, unsigned flags);
/* `name[sub]=value` as text (read, printf -v, getopts): -1 after a message. */
int sh_assign_text(struct shell *sh, const char *lvalue, const char *value);

/* --- evaluation (eval.c, simple.c, pipeline.c, cond.c) --- */
int sh_eval(struct shell *sh, const struct sh_node *n);
int sh_eval_redirected(struct shell *sh, const struct sh_node *n);
int sh_eval_simple(struct shell *sh, const struct sh_node *n);
int sh_eval_pipe(struct shell *sh, const struct sh_node *n);
int sh_eval_cond(struct shell *sh, const struct sh_cond *c);
/* Half of the stack is used: recursion ends here, after a message that ends the shell. Asked
 * wherever a script decides how deep we go; the other half is for what has limits of its own. */
bool sh_stack_full(struct shell *sh);
/* Apply errexit and the ERR trap to sh->status after a command. */
void sh_check_errexit(struct shell *sh);
_Noreturn void sh_leave_subshell(struct shell *sh);
void sh_set_pipestatus(struct shell *sh, const int *status, size_t n);
void sh_set_last_arg(struct shell *sh, const char *arg);
/* Run program text in this shell (eval, traps, .): returns its status. */
int sh_run_text(struct shell *sh, sv text, const char *file);
/* Read and run commands until the end of the parser's text. */
struct sh_parser;
int sh_run_parser(struct shell *sh, struct sh_parser *p);
struct sh_parser *sh_new_parser(struct shell *sh, sv text, const char *file);
/* Find a command and run it with its own decision, in this process. */
int sh_run_argv(struct shell *sh, int argc, char **argv, const bool *literal, unsigned how);
#define SH_RUN_NO_FUNCS     1u
#define SH_RUN_NO_BUILTINS  2u
#define SH_RUN_DEFAULT_PATH 4u
#define SH_RUN_ONLY_BUILTIN 8u
#define SH_RUN_EXEC         16u
int sh_call_function(struct shell *sh, struct sh_func *f, int argc, char **argv);
/* Run an in-process command with descriptors as they are. */
int sh_call_cmd(struct shell *sh, const struct sh_cmd *c, int argc, char **argv);
struct sh_func *sh_func_find(struct shell *sh, const char *name);
void sh_func_unset(struct shell *sh, const char *name);
void sh_func_set(struct shell *sh, const char *name, struct sh_node *body);
void sh_func_print(struct buf *out, const struct sh_func *f);
/* The source form of a command (unparse.c). */
void sh_unparse(struct buf *out, const struct sh_node *n);
void sh_xtrace(struct shell *sh, sv text);
/* Frames (frames.c). */
void sh_frame_push(struct shell *sh, const char *func, const char *source);
void sh_frame_pop(struct shell *sh);
const char *sh_frame_source(const struct shell *sh);
/* Bring FUNCNAME, BASH_SOURCE and BASH_LINENO up to date when name is one of them. */
void sh_frames_sync(struct shell *sh, const char *name);

/* --- redirections (redir.c) --- */
/* One redirection with everything opened, ready to be put in place. */
struct sh_ready {
	struct sh_ready *next;
	size_t group; /* which of the lists it came from */
	int fd;       /* the descriptor to set */
	int from;     /* to be duplicated there; -1: close fd */
	bool owned;   /* from is ours to close */
	bool both;    /* descriptor 2 as well */
	const char *fd_var;
};
/* Expand and open the redirections of n lists, in order; every file is decided before the first is
 * created or truncated. -1 after a message, with *bad the list that failed and nothing changed. */
int sh_open_redirs(struct shell *sh, struct arena *a, const struct sh_redir *const *lists, size_t n,
    struct sh_ready **out, size_t *bad);
/* Put those of one group in place; the old descriptors go in front of *saved. -1 after a message.
 * */
int sh_apply_redirs(
    struct shell *sh, const struct sh_ready *r, size_t group, struct sh_redir_saved **saved);
void sh_close_redirs(struct sh_ready *r);
/* Open and apply one list. */
int sh_redirect(struct shell *sh, const struct sh_redir *r, struct sh_redir_saved **saved);
void sh_redirect_undo(struct sh_redir_saved *saved);
void sh_redirect_keep(struct sh_redir_saved *saved);
/* Put descriptor from in the place of fd (closing it when from < 0), remembering the old one. */
int sh_fd_replace(int fd, int from, struct sh_redir_saved **saved);
/* Move a descriptor out of the range that scripts use; the old one is closed. */
int sh_fd_high(int fd);
/* Why files_* failed, for a redirection or a script name: "strands-shell: NAME: ...". Returns the
 * status (1, or 125). */
int sh_files_msg(struct shell *sh, const char *what, const struct files_err *e);
/* A descriptor to read text from. */
int sh_text_fd(struct shell *sh, sv text);

/* --- the monitor (ask.c) --- */
/* Decide a command. 0: permitted, *t to be reported; else the status after the message was printed
 * (126 or 125). */
int sh_ask_exec(struct shell *sh, const char *program, int argc, char *const *argv,
    const bool *literal, struct sh_ticket *t);
int sh_ask_spawn(struct shell *sh, const char *program_path, int argc, char *const *argv,
    const bool *literal, struct sh_ticket *t);
void sh_done(struct shell *sh, const struct sh_ticket *t, int status);
/* Start the program decided with t on descriptors fds. 0 with *tool; else a status after a message.
 * */
int sh_start_tool(struct shell *sh, const struct sh_ticket *t, int argc, char *const *argv,
    char *const *env, const char *cwd, const int fds[3], uint32_t *tool);
void sh_signal_tool(struct shell *sh, uint32_t tool, int sig);
/* Handle frames that are there; false when the channel is gone. */
bool sh_mon_pump(struct shell *sh);
/* The same now and then, for loops that ask the monitor nothing: a signal for the command arrives
 * as a frame. */
void sh_mon_glance(struct shell *sh);
/* An exited tool's status, if it was reported. */
bool sh_tool_status(struct shell *sh, uint32_t tool, int *status);
void sh_mon_exit(struct shell *sh, int status);

/* --- processes (job.c) --- */
/* Fork with fresh channels. 0 in the child, the pid in the parent, -1 after a message. */
pid_t sh_fork(struct shell *sh, bool background);
/* Wait for one member. Runs traps afterwards, forwards signals to tools. */
int sh_wait_member(struct shell *sh, struct sh_member *m);
/* Wait until something happened: a child ended, a tool ended; or fd (>= 0) became ready, then
 * *ready is set. timeout_ns < 0: no limit. 0: something happened; 1: the time is
 * over; -1: a signal came. */
int sh_wait_event(struct shell *sh, int fd, short events, int64_t timeout_ns, bool *ready);
/* files_on_wait: waits for fd and gives up on a signal that ends the shell. */
int sh_files_wait(void *arg, int fd);
bool sh_reap(struct shell *sh);
struct sh_child *sh_child_find(struct shell *sh, pid_t pid);
void sh_child_forget(struct shell *sh, pid_t pid);
_Noreturn void sh_exit(struct shell *sh, int status);
int sh_wait_status(int wstatus);

/* --- traps (trap.c) --- */
void sh_signals_init(struct shell *sh);
/* In a forked child: traps are reset to default. */
void sh_signals_child(struct shell *sh, bool background);
/* Run pending traps; sets sh->killed and flow for fatal signals. */
void sh_run_traps(struct shell *sh);
void sh_run_exit_trap(struct shell *sh);
int sh_trap_set(struct shell *sh, int sig, const char *action);
bool sh_signal_pending(void);
/* A pending signal that will end the shell, or 0. */
int sh_signal_fatal(struct shell *sh);
/* The lowest pending signal, or 0. */
int sh_signal_first(void);
/* Keep pending signals but do not report them until restored. */
void sh_signals_defer(struct shell *sh);
void sh_signals_restore(struct shell *sh);
void sh_traps_own(struct shell *sh);
/* ERR, DEBUG, RETURN. */
void sh_run_pseudo_trap(struct shell *sh, char *action);
int sh_signal_number(const char *name); /* -1: unknown */
const char *sh_signal_name(int sig);

/* --- paths (path.c) --- */
/* cwd + "/" + arg, in the arena. */
char *sh_path(struct shell *sh, struct arena *a, const char *arg);
/* "~/..." below the operator's home, else as it is. */
void sh_policy_path(struct shell *sh, struct buf *out, const char *path);
/* /dev/fd/N and the like, see shcmd_open_special. */
int sh_open_special(struct shell *sh, const char *path, int *err);

/* --- builtins that others use --- */
/* The bit of `set -o name`, 0: no such option. */
unsigned sh_option_bit(const char *name);
/* `set` without operands: NAME=value lines. */
void sh_list_variables(struct sh_io *io);
/* "braceexpand:errexit:...": SHELLOPTS. */
void sh_options_text(const struct shell *sh, char *out, size_t n);
/* Set options from `-euo pipefail` style words; *i moves over them. 0, or a status after a message.
 * */
int sh_set_options(struct shell *sh, const char *name, int argc, char **argv, int *i);
enum sh_desc { SH_DESC_WORD, SH_DESC_LONG, SH_DESC_TYPE, SH_DESC_PATH };
#define SH_DESC_ALL        1u
#define SH_DESC_NO_FUNCS   2u
#define SH_DESC_FORCE_PATH 4u
/* Print what name means (command -v, -V, type -t, -p). false: nothing. */
bool sh_describe(struct sh_io *io, const char *name, enum sh_desc how, unsigned flags);
bool sh_is_reserved(const char *name);
