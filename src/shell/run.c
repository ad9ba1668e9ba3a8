/* A shell from start to end, and the parsing of `sh`'s own command line. See run.h. */
#include "shell/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "shell/parse.h"
#include "shell/proto.h"
#include "base/ban.h"

/* --- state --- */

static void import(struct shell *sh, char *const *env)
{
	for (size_t i = 0; env != NULL && env[i] != NULL; i++) {
		const char *eq = strchr(env[i], '=');
		char *name;

		if (eq == NULL)
			continue;
		name = sh_xdup((sv){ env[i], (size_t)(eq - env[i]) });
		/* IFS is never taken from outside (POSIX 2.5.3); functions of bash neither. */
		if (sh_is_name(sv_c(name)) && strcmp(name, "IFS") != 0) {
			(void)sh_var_set(sh, name, eq + 1);
			(void)sh_var_declare(sh, name, SH_V_EXPORT);
		}
		free(name);
	}
}

static void set_number(struct shell *sh, const char *name, long n, unsigned flags)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%ld", n);
	(void)sh_var_set(sh, name, text);
	(void)sh_var_declare(sh, name, flags);
}

static void defaults(struct shell *sh, const struct sh_start *s)
{
	static const char *const computed[] = { "LINENO", "RANDOM", "SRANDOM", "SECONDS",
		"EPOCHSECONDS", "EPOCHREALTIME", "BASHPID", "SHELLOPTS", "BASH_COMMAND", NULL };
	const char *shlvl = sh_var_get(sh, "SHLVL");
	int64_t level = 0;

	for (size_t i = 0; computed[i] != NULL; i++) {
		struct sh_var *v = sh_var_declare(sh, computed[i], 0);

		free(v->value);
		v->value = NULL;
		v->flags = SH_V_DYNAMIC | SH_V_SET;
	}
	(void)sh_var_declare(sh, "SHELLOPTS", SH_V_READONLY);
	(void)sh_var_set(sh, "IFS", " \t\n");
	(void)sh_var_set(sh, "OPTIND", "1");
	(void)sh_var_set(sh, "OPTERR", "1");
	(void)sh_var_set(sh, "PS4", "+ ");
	if (sh_var_get(sh, "PATH") == NULL)
		(void)sh_var_set(sh, "PATH", sh->path0);
	if (shlvl != NULL)
		(void)sv_to_i64(sv_c(shlvl), 10, 0, 1000, &level);
	set_number(sh, "SHLVL", (long)level + 1, SH_V_EXPORT);
	set_number(sh, "PPID", getppid(), SH_V_READONLY | SH_V_INTEGER);
	set_number(sh, "UID", getuid(), SH_V_READONLY | SH_V_INTEGER);
	set_number(sh, "EUID", geteuid(), SH_V_READONLY | SH_V_INTEGER);
	if (sh_var_get(sh, "OSTYPE") == NULL)
		(void)sh_var_set(sh, "OSTYPE", "linux-gnu");
	(void)sh_var_set(sh, "MACHTYPE", "x86_64-pc-linux-gnu");
	(void)sh_var_set(sh, "HOSTTYPE", "x86_64");
	if (strcmp(s->name, "bash") == 0) {
		(void)sh_var_set(sh, "BASH", "/bin/bash");
		(void)sh_var_set(sh, "BASH_VERSION", "5.2.15(1)-release");
		(void)sh_var_set_index(sh, "BASH_VERSINFO", 0, "5", false);
		(void)sh_var_set_index(sh, "BASH_VERSINFO", 1, "2", false);
	}
}

void sh_set_params(struct shell *sh, const char *zero, char *const *params)
{
	for (size_t i = 0; i < sh->nparams; i++)
		free(sh->params[i]);
	free(sh->params);
	free(sh->zero);
	sh->zero = sh_xstrdup(zero);
	sh->nparams = 0;
	while (params != NULL && params[sh->nparams] != NULL)
		sh->nparams++;
	sh->params = sh_xalloc(sh->nparams + 1, sizeof(char *));
	for (size_t i = 0; i < sh->nparams; i++)
		sh->params[i] = sh_xstrdup(params[i]);
}

/* Half of what the process may use; without a limit, of the 8 MiB that are usual. */
static void measure_stack(struct shell *sh)
{
	struct rlimit r;
	size_t max = (size_t)8 << 20;

	sh->stack = (uintptr_t)__builtin_frame_address(0);
	if (getrlimit(RLIMIT_STACK, &r) == 0 && r.rlim_cur < max)
		max = (size_t)r.rlim_cur;
	sh->stack_max = max / 2;
}

struct shell *sh_shell_new(int mon_fd, int files_fd, int devnull, const struct sh_start *s)
{
	struct shell *sh = sh_xalloc(1, sizeof(*sh));

	sh->msg = (struct ipc_msg)IPC_MSG_INIT;
	sh->mon_fd = sh_fd_high(mon_fd);
	sh->files = files_new(sh_fd_high(files_fd));
	sh->devnull = sh_fd_high(devnull);
	if (sh->files == NULL || sh->mon_fd < 0)
		sh_no_memory();
	files_on_wait(sh->files, sh_files_wait, sh);
	measure_stack(sh);
	sh->first = true;
	sh->pid = sh->self = getpid();
	sh->wall = s->wall;
	sh->mono = s->mono;
	sh->start_ns = clock_now(&sh->mono);
	sh->random = (uint32_t)clock_now(&sh->wall) ^ (uint32_t)sh->pid;
	sh->umask = 022;
	sh->name = sh_xstrdup("");
	sh->cwd = sh_xstrdup(s->workspace);
	sh->logical = sh_xstrdup(s->workspace);
	sh->workspace = sh_xstrdup(s->workspace);
	sh->home = sh_xstrdup(s->home);
	sh->operator_home = sh_xstrdup(s->operator_home);
	sh->path0 = sh_xstrdup(s->path[0] != '\0' ? s->path : "/usr/bin:/bin");
	sh->opts = SH_O_BRACES | SH_O_HASHALL;
	sh->shopts = SH_S_EXPAND_ALIASES | SH_S_SOURCEPATH;
	sh_out_init(&sh->out, 1);
	sh_out_init(&sh->err, 2);
	import(sh, s->env);
	defaults(sh, s);
	sh_set_params(sh, s->zero, s->params);
	if (sh_var_get(sh, "HOME") == NULL)
		(void)sh_var_set(sh, "HOME", sh->home);
	sh_signals_init(sh);
	return sh;
}

/* The working directory that the caller named; when it is refused, the workspace. */
static void enter(struct shell *sh, const char *cwd)
{
	AUTO_BUF out = buf_with(SHCMD_PATH_MAX);
	const char *pwd = sh_var_get(sh, "PWD");
	char *logical;

	/* The workspace is where a shell starts anyway: nothing to decide. */
	if (strcmp(cwd, sh->workspace) == 0) {
		buf_put_c(&out, cwd);
	} else if (files_chdir(sh->files, cwd, &out) != 0) {
		sh_msg(
		    sh, "%s: %s; starting in %s", cwd, files_error(sh->files)->text, sh->workspace);
	} else {
		free(sh->cwd);
		sh->cwd = sh_xdup(buf_sv(&out));
	}
	/* $PWD of the caller is kept when it is how the caller names the folder (POSIX 2.5.3). */
	logical = sh_xstrdup(pwd != NULL && strcmp(pwd, cwd) == 0 && out.n != 0 ? pwd : sh->cwd);
	free(sh->logical);
	sh->logical = logical;
	(void)sh_var_set(sh, "PWD", sh->logical);
	(void)sh_var_declare(sh, "PWD", SH_V_EXPORT);
	(void)sh_var_declare(sh, "OLDPWD", SH_V_EXPORT);
}

static void apply_flags(struct shell *sh, uint32_t f)
{
	if ((f & SHELL_F_ERREXIT) != 0)
		sh->opts |= SH_O_ERREXIT;
	if ((f & SHELL_F_NOUNSET) != 0)
		sh->opts |= SH_O_NOUNSET;
	if ((f & SHELL_F_XTRACE) != 0)
		sh->opts |= SH_O_XTRACE;
	if ((f & SHELL_F_PIPEFAIL) != 0)
		sh->opts |= SH_O_PIPEFAIL;
}

/* --- input --- */

/* One more line of descriptor 0. What commands must be able to read is not read ahead: a seekable
 * input is put back to the end of the line, others are read byte by byte. */
static int more_stdin(void *arg, struct buf *b)
{
	bool seekable = lseek(0, 0, SEEK_CUR) >= 0;
	char block[4096];
	size_t before = b->n;

	(void)arg;
	for (;;) {
		ssize_t n = read(0, block, seekable ? sizeof(block) : 1);
		char *nl;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EBADF)
			return 0;
		if (n < 0)
			return -1;
		if (n == 0)
			return b->n > before;
		nl = memchr(block, '\n', (size_t)n);
		if (nl != NULL) {
			size_t k = (size_t)(nl - block) + 1;

			for (size_t i = 0; i < k; i++) {
				if (block[i] != '\0')
					buf_put_byte(b, (uint8_t)block[i]);
			}
			if ((size_t)n > k)
				(void)lseek(0, -(off_t)((size_t)n - k), SEEK_CUR);
			return 1;
		}
		for (ssize_t i = 0; i < n; i++) {
			if (block[i] != '\0')
				buf_put_byte(b, (uint8_t)block[i]);
		}
	}
}

void sh_run_stdin(struct shell *sh)
{
	struct sh_parser *p = sh_new_parser(sh, SV(""), "");

	sh_parser_env(p)->more = more_stdin;
	sh->texts++;
	(void)sh_run_parser(sh, p);
	sh->texts--;
	sh_parser_free(p);
}

_Noreturn void sh_shell_run(struct shell *sh, const struct sh_start *s)
{
	AUTO_BUF script = buf_with(SH_INPUT_MAX);
	struct box_err err;

	enter(sh, s->cwd);
	apply_flags(sh, s->flags);
	sh->opts |= s->initial_opts;
	if (s->script_fd >= 0) {
		int r = fd_read_all(s->script_fd, &script, s->zero, &err);

		(void)close(s->script_fd);
		if (r != 0) {
			sh_msg(sh, "%s", err.msg);
			sh_exit(sh, 126);
		}
		sh_frame_push(sh, "main", s->zero);
		(void)sh_run_text(sh, buf_sv(&script), s->zero);
	} else if ((s->flags & SHELL_F_STDIN) != 0) {
		sh->opts |= SH_O_STDIN;
		sh_run_stdin(sh);
	} else {
		sh->opts |= SH_O_COMMAND;
		(void)sh_run_text(sh, s->text, "");
	}
	sh_run_traps(sh);
	sh_run_exit_trap(sh);
	sh_exit(sh, sh->status);
}

/* --- sh as a command --- */

static int long_option(struct shell *sh, const char *o, struct sh_invocation *v)
{
	static const char *const ignored[] = { "--norc", "--noprofile", "--noediting",
		"--restricted", "--debugger", "--noediting", "--verbose", "--emulate", NULL };

	if (strcmp(o, "--posix") == 0) {
		sh->opts |= SH_O_POSIX;
		return 0;
	}
	if (strcmp(o, "--login") == 0) {
		v->login = true;
		return 0;
	}
	for (size_t i = 0; ignored[i] != NULL; i++) {
		if (strcmp(o, ignored[i]) == 0)
			return 0;
	}
	sh_msg(sh, "%s: invalid option", o);
	return 2;
}

int sh_invocation(struct shell *sh, int argc, char **argv, struct sh_invocation *v)
{
	bool c = false;
	int i = 1;

	*v = (struct sh_invocation){ .zero = argv[0] };
	for (; i < argc && (argv[i][0] == '-' || argv[i][0] == '+') && argv[i][1] != '\0'; i++) {
		bool on = argv[i][0] == '-';
		char rest[64] = "";
		size_t n = 0;
		char *word[3];
		int k = 0;

		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (strncmp(argv[i], "--", 2) == 0) {
			if (long_option(sh, argv[i], v) != 0)
				return 2;
			continue;
		}
		rest[n++] = argv[i][0];
		for (const char *o = argv[i] + 1; *o != '\0'; o++) {
			if (*o == 'c' && on)
				c = true;
			else if (*o == 's' && on)
				v->read_stdin = true;
			else if (*o == 'l')
				v->login = true;
			else if (*o == 'i')
				continue; /* there is no terminal to talk to */
			else if (*o == 'O' && i + 1 < argc)
				i++;
			else if (n + 1 < sizeof(rest))
				rest[n++] = *o;
		}
		if (n < 2)
			continue;
		word[0] = rest;
		word[1] = i + 1 < argc ? argv[i + 1] : NULL;
		if (sh_set_options(sh, argv[0],
		        word[1] != NULL && strchr(rest, 'o') != NULL ? 2 : 1, word, &k) != 0)
			return 2;
		/* `-o name` took the next word */
		if (strchr(argv[i], 'o') != NULL)
			i++;
	}
	if (i < argc && strcmp(argv[i], "-") == 0 && !c)
		i++;
	if (c) {
		if (i >= argc) {
			sh_msg(sh, "-c: option requires an argument");
			return 2;
		}
		v->text = argv[i++];
		if (i < argc)
			v->zero = argv[i++];
	} else if (i < argc && !v->read_stdin) {
		v->script = argv[i];
		v->zero = argv[i++];
	} else {
		v->read_stdin = true;
	}
	v->params = argv + i;
	return 0;
}
