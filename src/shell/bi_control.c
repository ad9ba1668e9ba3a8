/* Builtins that steer the shell: : true false break continue return exit eval . exec command
 * builtin. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "shell/parse.h"
#include "shell/shell.h"
#include "base/ban.h"

static int run_true(struct sh_io *io, int argc, char **argv)
{
	(void)io;
	(void)argc;
	(void)argv;
	return 0;
}

static int run_false(struct sh_io *io, int argc, char **argv)
{
	(void)io;
	(void)argc;
	(void)argv;
	return 1;
}

const struct sh_cmd sh_cmd_colon = { ":", NULL, SHCMD_SPECIAL | SHCMD_BUILTIN, 0, run_true };
const struct sh_cmd sh_cmd_true = { "true", NULL, SHCMD_BUILTIN | SHCMD_UTILITY, 0, run_true };
const struct sh_cmd sh_cmd_false = { "false", NULL, SHCMD_BUILTIN | SHCMD_UTILITY, 0, run_false };

static int loop_control(struct sh_io *io, int argc, char **argv, enum sh_flow flow)
{
	struct shell *sh = io->sh;
	int64_t n = 1;

	if (argc > 1 && strcmp(argv[1], "--") == 0) {
		argc--;
		argv++;
	}
	if (argc > 2) {
		(void)shcmd_err(io, "too many arguments");
		sh->flow = SH_FLOW_ABORT;
		return 1;
	}
	if (argc == 2 && !shcmd_number(argv[1], INT32_MIN, INT32_MAX, &n)) {
		(void)shcmd_err(io, "%s: numeric argument required", argv[1]);
		sh->status = 128;
		sh->flow = SH_FLOW_EXIT;
		return 128;
	}
	if (n < 1) {
		(void)shcmd_err(io, "%s: loop count out of range", argv[1]);
		/* bash leaves every loop */
		n = sh->loops;
		flow = SH_FLOW_BREAK;
		if (sh->loops == 0)
			return 1;
		sh->flow = flow;
		sh->flow_n = (int)n;
		return 1;
	}
	if (sh->loops == 0) {
		(void)shcmd_err(io, "only meaningful in a `for', `while', or `until' loop");
		return 0;
	}
	sh->flow = flow;
	sh->flow_n = n > sh->loops ? sh->loops : (int)n;
	return 0;
}

static int run_break(struct sh_io *io, int argc, char **argv)
{
	return loop_control(io, argc, argv, SH_FLOW_BREAK);
}

static int run_continue(struct sh_io *io, int argc, char **argv)
{
	return loop_control(io, argc, argv, SH_FLOW_CONTINUE);
}

const struct sh_cmd sh_cmd_break = { "break", NULL, SHCMD_SPECIAL | SHCMD_BUILTIN, 0, run_break };
const struct sh_cmd sh_cmd_continue = { "continue", NULL, SHCMD_SPECIAL | SHCMD_BUILTIN, 0,
	run_continue };

/* The status argument of exit and return; the current status without one. */
static int status_arg(struct sh_io *io, int argc, char **argv, bool *bad)
{
	int64_t n;

	*bad = false;
	if (argc > 1 && strcmp(argv[1], "--") == 0) {
		argc--;
		argv++;
	}
	if (argc < 2)
		return io->sh->status;
	if (!shcmd_number(argv[1], INT64_MIN, INT64_MAX, &n)) {
		(void)shcmd_err(io, "%s: numeric argument required", argv[1]);
		*bad = true;
		return 2;
	}
	if (argc > 2) {
		(void)shcmd_err(io, "too many arguments");
		*bad = true;
		return -1;
	}
	return (int)(n & 255);
}

static int run_exit(struct sh_io *io, int argc, char **argv)
{
	bool bad;
	int s = status_arg(io, argc, argv, &bad);

	if (s < 0)
		return 1;
	io->sh->status = s;
	io->sh->flow = SH_FLOW_EXIT;
	return s;
}

static int run_return(struct sh_io *io, int argc, char **argv)
{
	bool bad;
	int s;

	if (io->sh->calls == 0) {
		(void)shcmd_err(io, "can only `return' from a function or sourced script");
		return 2;
	}
	s = status_arg(io, argc, argv, &bad);
	if (s < 0)
		return 1;
	io->sh->status = s;
	io->sh->flow = SH_FLOW_RETURN;
	return s;
}

const struct sh_cmd sh_cmd_exit = { "exit", NULL, SHCMD_SPECIAL | SHCMD_BUILTIN, 0, run_exit };
const struct sh_cmd sh_cmd_return = { "return", NULL, SHCMD_SPECIAL | SHCMD_BUILTIN, 0,
	run_return };

static int run_eval(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	char *text;
	int r;

	if (argc > 1 && strcmp(argv[1], "--") == 0) {
		argc--;
		argv++;
	}
	text = sh_join(sh, io->arena, argv + 1, (size_t)argc - 1, " ");
	r = sh_run_text(sh, sv_c(text), "");
	return sh->ran || r == 2 ? r : 0;
}

const struct sh_cmd sh_cmd_eval = { "eval", NULL, SHCMD_SPECIAL | SHCMD_BUILTIN, 0, run_eval };

/* --- . --- */

/* The path of a file named without a slash: on PATH, then here (bash). */
static const char *find_source(struct sh_io *io, const char *name)
{
	const char *path = sh_var_get(io->sh, "PATH");
	sv rest = sv_c(path != NULL ? path : ""), dir;

	for (bool more = rest.n != 0; more;) {
		struct files_stat st;
		const char *p;

		more = sv_cut(rest, ':', &dir, &rest);
		p = arena_printf(io->arena, SV_FMT "/%s", SV_ARG(dir), name);
		p = p != NULL && p[0] != '/' ? shcmd_path(io, p + (p[0] == '\0')) : p;
		if (p != NULL && dir.n != 0 && files_stat(io->files, p, true, &st) == 0 &&
		    S_ISREG(st.mode))
			return p;
	}
	return name;
}

static int run_dot(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	AUTO_BUF text = buf_with(SH_INPUT_MAX);
	struct box_err err;
	const char *name;
	char **params = sh->params;
	size_t nparams = sh->nparams;
	int fd, r;

	if (argc > 1 && strcmp(argv[1], "--") == 0) {
		argc--;
		argv++;
	}
	if (argc < 2) {
		(void)shcmd_err(io, "filename argument required");
		return 2;
	}
	name = strchr(argv[1], '/') != NULL ? argv[1] : find_source(io, argv[1]);
	fd = shcmd_open_read(io, strcmp(name, "-") == 0 ? "./-" : name);
	if (fd < 0) {
		if (io->last.why == FILES_ERRNO)
			sh_msg(sh, "%s: %s", argv[1], io->last.text);
		else
			(void)shcmd_open_err(io, argv[1]);
		if ((sh->opts & SH_O_POSIX) != 0) {
			sh->status = 1;
			sh->flow = SH_FLOW_EXIT;
		}
		return 1;
	}
	r = fd_read_all(fd, &text, argv[1], &err);
	(void)close(fd);
	if (r != 0) {
		(void)shcmd_err(io, "%s", err.msg);
		return 1;
	}
	if (argc > 2) {
		sh->nparams = (size_t)argc - 2;
		sh->params = sh_xalloc(sh->nparams + 1, sizeof(char *));
		for (size_t i = 0; i < sh->nparams; i++)
			sh->params[i] = sh_xstrdup(argv[i + 2]);
	}
	sh->calls++;
	sh->sourced++;
	sh->status = 0;
	sh_frame_push(sh, "source", argv[1]);
	r = sh_run_text(sh, buf_sv(&text), argv[1]);
	if (sh->trap_return != NULL)
		sh_run_pseudo_trap(sh, sh->trap_return);
	sh_frame_pop(sh);
	sh->sourced--;
	sh->calls--;
	if (sh->flow == SH_FLOW_RETURN)
		sh->flow = SH_FLOW_NONE;
	if (argc > 2) {
		for (size_t i = 0; i < sh->nparams; i++)
			free(sh->params[i]);
		free(sh->params);
		sh->params = params;
		sh->nparams = nparams;
	}
	return r;
}

const struct sh_cmd sh_cmd_dot = { ".", NULL, SHCMD_SPECIAL | SHCMD_BUILTIN, 0, run_dot };
const struct sh_cmd sh_cmd_source = { "source", NULL, SHCMD_SPECIAL | SHCMD_BUILTIN, 0, run_dot };

/* --- exec, command, builtin --- */

static int run_exec(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	char *as = NULL;
	bool clean = false;
	int i = 1, r;

	for (; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (strcmp(argv[i], "-a") == 0 && i + 1 < argc) {
			as = argv[++i];
		} else if (strcmp(argv[i], "-c") == 0) {
			clean = true;
		} else if (strcmp(argv[i], "-l") != 0) {
			(void)shcmd_err(io, "%s: invalid option", argv[i]);
			return 2;
		}
	}
	if (i == argc) {
		sh->keep_redirs = true;
		return 0;
	}
	sh->argv0_next = as;
	if (clean) {
		char *none[] = { NULL };
		struct shcmd_run_opts o = { .env = none, .in = -1, .no_builtins = true };

		r = shcmd_run(io, argv + i, &o);
	} else {
		r = sh_run_argv(sh, argc - i, argv + i, NULL, SH_RUN_NO_FUNCS | SH_RUN_NO_BUILTINS);
	}
	sh->argv0_next = NULL;
	/* The shell is replaced: nothing behind this runs, traps included. */
	sh->status = r;
	sh->flow = SH_FLOW_EXIT;
	if (sh->trap[0] != NULL) {
		free(sh->trap[0]);
		sh->trap[0] = NULL;
	}
	return r;
}

const struct sh_cmd sh_cmd_exec = { "exec", NULL, SHCMD_SPECIAL | SHCMD_BUILTIN, 0, run_exec };

static int run_command(struct sh_io *io, int argc, char **argv)
{
	bool v = false, V = false, p = false;
	int i = 1;

	for (; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		for (const char *c = argv[i] + 1; *c != '\0'; c++) {
			if (*c == 'v') {
				v = true;
			} else if (*c == 'V') {
				V = true;
			} else if (*c == 'p') {
				p = true;
			} else {
				(void)shcmd_err(io, "-%c: invalid option", *c);
				return 2;
			}
		}
	}
	if (i == argc)
		return 0;
	if (v || V) {
		int bad = 1;

		for (; i < argc; i++) {
			if (sh_describe(io, argv[i], V ? SH_DESC_LONG : SH_DESC_WORD, 0))
				bad = 0;
			else if (V)
				(void)shcmd_err(io, "%s: not found", argv[i]);
		}
		return bad;
	}
	return sh_run_argv(
	    io->sh, argc - i, argv + i, NULL, SH_RUN_NO_FUNCS | (p ? SH_RUN_DEFAULT_PATH : 0u));
}

const struct sh_cmd sh_cmd_command = { "command", NULL, SHCMD_BUILTIN, 2, run_command };

static int run_builtin(struct sh_io *io, int argc, char **argv)
{
	const struct sh_cmd *c;
	int i = 1;

	if (i < argc && strcmp(argv[i], "--") == 0)
		i++;
	if (i >= argc)
		return 0;
	c = sh_cmd_find(argv[i]);
	if (c == NULL || (c->flags & SHCMD_BUILTIN) == 0)
		return shcmd_err(io, "%s: not a shell builtin", argv[i]);
	return sh_run_argv(io->sh, argc - i, argv + i, NULL, SH_RUN_ONLY_BUILTIN);
}

const struct sh_cmd sh_cmd_builtin = { "builtin", NULL, SHCMD_BUILTIN, 1, run_builtin };
