/* sh, bash, zsh, dash as commands: the same shell in a forked process, with a state of its own. Its
 * commands are decided like all others. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "shell/parse.h"
#include "shell/run.h"
#include "base/ban.h"

/* What a new program would not have inherited is dropped. */
static void forget(struct shell *sh)
{
	size_t n;
	struct sh_var **v;
	unsigned opts = sh->opts;

	while (sh->vars.scope != NULL) {
		/* A scope's variables are the environment (`X=1 sh -c ...`); they become global. */
		struct sh_scope *s = sh->vars.scope;

		sh->vars.scope = s->prev;
	}
	v = sh_vars_sorted(sh, &n);
	for (size_t i = 0; i < n; i++) {
		if ((v[i]->flags & (SH_V_DYNAMIC)) != 0)
			continue;
		if ((v[i]->flags & SH_V_EXPORT) == 0 && strcmp(v[i]->name, "UID") != 0 &&
		    strcmp(v[i]->name, "EUID") != 0 && strcmp(v[i]->name, "PPID") != 0 &&
		    strcmp(v[i]->name, "OSTYPE") != 0 && strncmp(v[i]->name, "BASH", 4) != 0) {
			/* Not what a reference means: that one is visited by itself. */
			v[i]->flags &= ~(unsigned)(SH_V_READONLY | SH_V_LOCAL | SH_V_NAMEREF);
			(void)sh_var_unset(sh, v[i]->name);
		} else if ((v[i]->flags & SH_V_EXPORT) != 0) {
			v[i]->flags &= ~(unsigned)(SH_V_READONLY | SH_V_LOCAL | SH_V_NAMEREF);
		}
	}
	free(v);
	for (struct sh_func *f = sh->funcs, *next; f != NULL; f = next) {
		next = f->next;
		if (!f->exported)
			sh_func_unset(sh, f->name);
	}
	sh->aliases = NULL; /* a fork's copy: its memory goes with the process */
	for (int s = 0; s < SH_NSIG; s++) {
		if (sh->trap[s] != NULL && sh->trap[s][0] == '\0')
			sh->ignored_at_start[s] = s != 0;
		sh->trap[s] = NULL;
	}
	sh->trap_err = sh->trap_debug = sh->trap_return = NULL;
	sh->traps_inherited = false;
	(void)sh_var_set(sh, "IFS", " \t\n");
	(void)sh_var_set(sh, "OPTIND", "1");
	(void)sh_var_set(sh, "PS4", "+ ");
	sh->opts = SH_O_BRACES | SH_O_HASHALL | (opts & SH_O_POSIX & 0u);
	sh->shopts = SH_S_EXPAND_ALIASES | SH_S_SOURCEPATH;
	sh->loops = sh->calls = sh->funcs_depth = sh->sourced = 0;
	sh->no_errexit = 0;
	sh->texts = 0;
	sh->in_trap = sh->in_subst = false;
	sh->tree = NULL;
	sh->status = 0;
	sh->line = 0;
	sh->last_bg = 0;
	sh->decl = NULL;
	sh->ndecl = 0;
	sh->subshell = 0;
	sh->pid = sh->self;
	sh->start_ns = clock_now(&sh->mono);
	sh->seconds_base = 0;
	while (sh->nframes != 0)
		sh_frame_pop(sh);
}

static void level(struct shell *sh)
{
	const char *s = sh_var_get(sh, "SHLVL");
	int64_t n = 0;
	char text[24];

	if (s != NULL)
		(void)sv_to_i64(sv_c(s), 10, 0, 1000, &n);
	(void)snprintf(text, sizeof(text), "%lld", (long long)n + 1);
	(void)sh_var_set(sh, "SHLVL", text);
}

_Noreturn static void run_inner(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	AUTO_BUF script = buf_with(SH_INPUT_MAX);
	struct sh_invocation v;
	struct box_err err;
	int r;

	forget(sh);
	if (sh->argv0_next != NULL)
		argv[0] = sh->argv0_next; /* exec -a */
	sh->argv0_next = NULL;
	r = sh_invocation(sh, argc, argv, &v);
	if (r != 0)
		sh_exit(sh, r);
	if (v.script != NULL) {
		int fd = shcmd_open_read(io, strcmp(v.script, "-") == 0 ? "./-" : v.script);

		if (fd < 0) {
			sh_msg(sh, "%s: %s", v.script, io->last.text);
			sh_exit(
			    sh, io->last.why == FILES_ERRNO && io->last.sys == ENOENT ? 127 : 126);
		}
		r = fd_read_all(fd, &script, v.script, &err);
		(void)close(fd);
		if (r != 0) {
			sh_msg(sh, "%s", err.msg);
			sh_exit(sh, 126);
		}
	}
	sh_set_params(sh, v.zero, v.params);
	level(sh);
	sh->io = NULL;
	if (v.text != NULL) {
		sh->opts |= SH_O_COMMAND;
		(void)sh_run_text(sh, sv_c(v.text), "");
	} else if (v.script != NULL) {
		sh_frame_push(sh, "main", v.script);
		(void)sh_run_text(sh, buf_sv(&script), v.script);
	} else {
		sh->opts |= SH_O_STDIN;
		sh_run_stdin(sh);
	}
	sh_leave_subshell(sh);
}

static int run_sh(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	struct sh_member m = { 0 };
	int depth = sh->shell_depth;

	if (depth >= SH_SUBSHELL_DEPTH_MAX)
		return shcmd_err(io, "maximum recursion depth exceeded");
	(void)shcmd_flush(io);
	m.pid = sh_fork(sh, false);
	if (m.pid == 0) {
		sh->shell_depth = depth + 1;
		io->files = sh->files;
		run_inner(io, argc, argv);
	}
	if (m.pid < 0)
		return sh->status;
	return sh_wait_member(sh, &m);
}

const struct sh_cmd sh_cmd_sh = { "sh", NULL, SHCMD_UTILITY, 2, run_sh };
const struct sh_cmd sh_cmd_bash = { "bash", NULL, SHCMD_UTILITY, 2, run_sh };
const struct sh_cmd sh_cmd_zsh = { "zsh", NULL, SHCMD_UTILITY, 2, run_sh };
const struct sh_cmd sh_cmd_dash = { "dash", NULL, SHCMD_UTILITY, 2, run_sh };
