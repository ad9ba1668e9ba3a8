/* Simple commands (POSIX 2.9.1): expand, find, decide, redirect, run, report. Nothing has an effect
 * before the decision; a refused command opens no redirection. */
#include "shell/simple.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "shell/escape.h"
#include "base/ban.h"

#define SNIFF 256 /* bytes read to see whether a file is a script */

/* --- functions --- */

struct sh_func *sh_func_find(struct shell *sh, const char *name)
{
	for (struct sh_func *f = sh->funcs; f != NULL; f = f->next) {
		if (f->body != NULL && strcmp(f->name, name) == 0)
			return f;
	}
	return NULL;
}

static void func_free(struct sh_func *f)
{
	sh_tree_unref(f->tree);
	free(f->name);
	free(f->source);
	free(f);
}

void sh_func_unset(struct shell *sh, const char *name)
{
	for (struct sh_func **link = &sh->funcs; *link != NULL; link = &(*link)->next) {
		struct sh_func *f = *link;

		if (f->body == NULL || strcmp(f->name, name) != 0)
			continue;
		*link = f->next;
		if (f->calls > 0)
			f->dead = true; /* freed when its last call ends */
		else
			func_free(f);
		return;
	}
}

void sh_func_set(struct shell *sh, const char *name, struct sh_node *body)
{
	struct sh_func *f = sh_xalloc(1, sizeof(*f));

	f->name = sh_xstrdup(name);
	f->source = sh_xstrdup(sh_frame_source(sh));
	f->body = body;
	f->tree = sh->tree != NULL ? sh_tree_ref(sh->tree) : NULL;
	sh_func_unset(sh, name);
	f->next = sh->funcs;
	sh->funcs = f;
}

int sh_call_function(struct shell *sh, struct sh_func *f, int argc, char **argv)
{
	char **params = sh->params;
	size_t nparams = sh->nparams;
	int loops = sh->loops;
	struct sh_tree *tree = sh->tree;

	if (sh->depth >= SH_FUNC_DEPTH_MAX) {
		sh_error(sh, true, 1, "maximum recursion depth exceeded");
		return sh->status;
	}
	sh->params = sh_xalloc((size_t)argc, sizeof(char *));
	sh->nparams = (size_t)argc - 1;
	for (int i = 1; i < argc; i++)
		sh->params[i - 1] = sh_xstrdup(argv[i]);
	sh_scope_push(sh, true);
	sh_frame_push(sh, f->name, f->source);
	f->calls++;
	sh->depth++;
	sh->calls++;
	sh->funcs_depth++;
	sh->loops = 0;
	sh->tree = f->tree;
	(void)sh_eval(sh, f->body);
	if (sh->flow == SH_FLOW_RETURN)
		sh->flow = SH_FLOW_NONE;
	if (sh->trap_return != NULL && (sh->opts & SH_O_FUNCTRACE) != 0)
		sh_run_pseudo_trap(sh, sh->trap_return);
	sh->tree = tree;
	sh->loops = loops;
	sh->funcs_depth--;
	sh->calls--;
	sh->depth--;
	if (--f->calls == 0 && f->dead)
		func_free(f);
	sh_frame_pop(sh);
	sh_scope_pop(sh);
	for (size_t i = 0; i < sh->nparams; i++)
		free(sh->params[i]);
	free(sh->params);
	sh->params = params;
	sh->nparams = nparams;
	return sh->status;
}

/* --- finding --- */

/* Is the path below a folder whose files the shell may look into for "#!"? Others are started as
 * programs as they are. */
static bool scripts_live_here(struct shell *sh, const char *path)
{
	const char *roots[] = { sh->workspace, sh->home, sh->operator_home, "/tmp", sh->cwd };

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		size_t n = strlen(roots[i]);

		if (n > 1 ? strncmp(path, roots[i], n) == 0 && path[n] == '/' : i == 0 && n == 1)
			return true;
	}
	return false;
}

static bool is_our_shell(sv name)
{
	ptrdiff_t slash = sv_rfind(name, '/');

	if (slash >= 0)
		name = sv_sub(name, (size_t)slash + 1, name.n);
	return sv_eq(name, SV("sh")) || sv_eq(name, SV("bash")) || sv_eq(name, SV("zsh")) ||
	       sv_eq(name, SV("dash"));
}

/* The interpreter of a script that this shell runs itself: "sh", "bash", ... and its option; false:
 * start it as a program. */
static bool our_script(struct arena *a, const char *head, size_t n, char **interp, char **opt)
{
	sv line = { head, n }, rest, word, tail;

	*opt = NULL;
	if (n == 0)
		return false;
	if (n < 2 || head[0] != '#' || head[1] != '!') {
		/* POSIX 2.9.1.1: a text file that cannot be executed is a script of this shell. */
		if (memchr(head, '\0', n) != NULL || (unsigned char)head[0] == 0x7f)
			return false;
		*interp = sh_adup(a, SV("sh"));
		return true;
	}
	(void)sv_cut(sv_sub(line, 2, n), '\n', &line, &rest);
	line = sv_trim(line);
	(void)sv_cut(line, ' ', &word, &tail);
	tail = sv_trim(tail);
	if (sv_ends(word, SV("/env")) && tail.n != 0) {
		(void)sv_cut(tail, ' ', &word, &tail);
		if (sv_eq(word, SV("-S"))) {
			tail = sv_trim(tail);
			(void)sv_cut(tail, ' ', &word, &tail);
		}
		tail = sv_trim(tail);
	}
	if (!is_our_shell(word))
		return false;
	{
		ptrdiff_t slash = sv_rfind(word, '/');

		*interp = sh_adup(a, sv_sub(word, (size_t)(slash + 1), word.n));
	}
	if (tail.n != 0)
		*opt = sh_adup(a, tail);
	return true;
}

/* Look whether the file found is a script of ours; then the command becomes `sh FILE ARGS`. */
static void rewrite_script(struct shell *sh, struct arena *a, struct sh_cmdline *c)
{
	char head[SNIFF], *interp, *opt;
	struct sh_args args = { 0 };
	const struct sh_cmd *cmd;
	ssize_t n;
	int fd;

	if (!scripts_live_here(sh, c->path))
		return;
	fd = files_open(sh->files, c->path, O_RDONLY | O_NONBLOCK, 0);
	if (fd < 0)
		return; /* unreadable for the script's caller: it is started as a program */
	n = fd_read_full(fd, head, sizeof(head));
	(void)close(fd);
	if (n <= 0 || !our_script(a, head, (size_t)n, &interp, &opt))
		return;
	cmd = sh_cmd_find(interp);
	if (cmd == NULL)
		return;
	sh_args_push(a, &args, interp, false);
	if (opt != NULL)
		sh_args_push(a, &args, opt, false);
	/* A name found on PATH is replaced by the file found. */
	sh_args_push(a, &args, strchr(c->args.v[0], '/') != NULL ? c->args.v[0] : c->path,
	    c->args.literal[0]);
	for (size_t i = 1; i < c->args.n; i++)
		sh_args_push(a, &args, c->args.v[i], c->args.literal[i]);
	c->args = args;
	c->argc = (int)args.n;
	c->cmd = cmd;
	c->kind = SH_K_COMMAND;
}

/* PATH with relative entries made absolute: box-files does not know our working directory. */
static const char *search_path(struct shell *sh, struct arena *a, const struct sh_cmdline *c)
{
	const char *path = sh_var_get(sh, "PATH");
	AUTO_BUF b = buf_with(65536);
	sv rest, entry;

	if (path == NULL || (c->how & SH_RUN_DEFAULT_PATH) != 0)
		path = sh->path0;
	rest = sv_c(path);
	for (bool more = true, first = true; more; first = false) {
		more = sv_cut(rest, ':', &entry, &rest);
		if (!first)
			buf_put_byte(&b, ':');
		if (entry.n == 0) {
			buf_put_c(&b, sh->cwd);
		} else if (entry.p[0] != '/') {
			buf_putf(&b, "%s/", sh->cwd);
			buf_put_sv(&b, entry);
		} else {
			buf_put_sv(&b, entry);
		}
	}
	return buf_ok(&b) ? sh_adup(a, buf_sv(&b)) : sh->path0;
}

static int find_program(struct shell *sh, struct arena *a, struct sh_cmdline *c)
{
	const char *name = c->args.v[0];
	AUTO_BUF out = buf_with(SHCMD_PATH_MAX);
	const struct files_err *e;
	char *path = NULL;

	c->kind = SH_K_PROGRAM;
	if (strchr(name, '/') != NULL) {
		path = sh_path(sh, a, name);
		if (path == NULL) {
			sh_msg(sh, "%s: %s", name, box_strerror(ENAMETOOLONG));
			return 126;
		}
	}
	if (name[0] != '\0' &&
	    files_locate(sh->files, path != NULL ? path : name, search_path(sh, a, c), &out) == 0) {
		c->path = sh_adup(a, buf_sv(&out));
		rewrite_script(sh, a, c);
		return 0;
	}
	e = files_error(sh->files);
	if (name[0] != '\0' && e->why == FILES_BROKEN) {
		sh_msg(sh, "effect interception failed: %s", e->text);
		sh->flow = SH_FLOW_EXIT;
		return 125;
	}
	if (name[0] != '\0' && path != NULL && e->why == FILES_ERRNO) {
		c->path = path;
		c->missing = e->sys;
		return 0;
	}
	/* Told when the redirections are in place: `nosuch 2>/dev/null` is silent. */
	c->kind = SH_K_UNKNOWN;
	return 0;
}

/* A spelled path without a program behind it, after its permit. What stands there instead is
 * decided by itself. */
static int no_program(struct shell *sh, const struct sh_cmdline *c)
{
	int why = c->missing;

	if (why == ENOENT) {
		if (files_access(sh->files, c->path, X_OK) == 0)
			why = EISDIR;
		else if (files_error(sh->files)->why == FILES_ERRNO)
			why = files_error(sh->files)->sys;
	}
	if (why == EACCES || why == EISDIR || why == ENOTDIR) {
		sh_msg(sh, "%s: %s", c->args.v[0], box_strerror(why));
		return 126;
	}
	sh_msg(sh, "%s: command not found", c->args.v[0]);
	return 127;
}

int sh_resolve(struct shell *sh, struct arena *a, struct sh_cmdline *c)
{
	const char *name = c->args.v[0];

	c->argc = (int)c->args.n;
	c->func = NULL;
	c->cmd = NULL;
	c->missing = 0;
	if ((c->how & (SH_RUN_NO_FUNCS | SH_RUN_NO_BUILTINS | SH_RUN_ONLY_BUILTIN)) == 0)
		c->func = sh_func_find(sh, name);
	if (c->func != NULL) {
		c->kind = SH_K_FUNCTION;
		return 0;
	}
	c->cmd = sh_cmd_find(name);
	if (c->cmd != NULL && (c->how & SH_RUN_NO_BUILTINS) != 0 &&
	    (c->cmd->flags & SHCMD_UTILITY) == 0)
		c->cmd = NULL;
	if (c->cmd != NULL) {
		c->kind = SH_K_COMMAND;
		return 0;
	}
	return find_program(sh, a, c);
}

/* --- deciding --- */

int sh_admit(struct shell *sh, struct sh_cmdline *c)
{
	if (c->kind == SH_K_NONE || c->kind == SH_K_UNKNOWN)
		return 0;
	if (c->kind == SH_K_PROGRAM && sh->argv0_next != NULL) {
		/* Programs that are several choose by it: the monitor starts what was decided. */
		sh->argv0_next = NULL;
		sh_msg(sh, "exec: -a: %s keeps the name it is decided under", c->args.v[0]);
		return 126;
	}
	if (c->kind == SH_K_PROGRAM)
		return sh_ask_spawn(sh, c->path, c->argc, c->args.v, c->args.literal, &c->ticket);
	return sh_ask_exec(sh, c->args.v[0], c->argc, c->args.v, c->args.literal, &c->ticket);
}

/* --- running --- */

int sh_prefix_assign(struct shell *sh, const struct sh_assign *as)
{
	sh_scope_push(sh, false);
	for (; as != NULL; as = as->next) {
		AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
		struct sh_var *v, *old = sh_var_find(sh, as->name);
		const char *before = sh_var_get(sh, as->name);
		char *value;

		if (as->is_array || as->subscript != NULL) {
			if (sh_assign(sh, as, 0) != 0)
				goto fail;
			continue;
		}
		value = sh_expand_str(sh, &a, as->value, SH_X_ASSIGN);
		if (value == NULL)
			goto fail;
		if (as->append && before != NULL) {
			char *parts[] = { sh_adup(&a, sv_c(before)), value };

			value = sh_join(sh, &a, parts, 2, "");
		}
		if (old != NULL && (old->flags & SH_V_READONLY) != 0) {
			sh_msg(sh, "%s: readonly variable", as->name);
			goto fail;
		}
		v = sh_var_local(sh, as->name, false);
		if (v == NULL || sh_var_set(sh, as->name, value) != 0)
			goto fail;
		v->flags |= SH_V_EXPORT;
	}
	return 0;
fail:
	sh_scope_pop(sh);
	return -1;
}

int sh_start_program(struct shell *sh, struct sh_cmdline *c, struct sh_member *m)
{
	struct sh_vec env = { 0 };
	int fds[3] = { 0, 1, 2 }, r;

	(void)sh_out_flush(&sh->out);
	if (c->missing != 0) {
		r = no_program(sh, c);
		m->ticket = c->ticket;
		c->ticket.have = false;
		sh_done(sh, &m->ticket, r);
		m->ticket.have = false;
		return r;
	}
	sh_vars_environ(sh, &env);
	r = sh_start_tool(sh, &c->ticket, c->argc, c->args.v,
	    env.n != 0 ? env.v : (char *[]){ NULL }, sh->cwd, fds, &m->tool);
	sh_vec_fini(&env);
	m->ticket = c->ticket;
	c->ticket.have = false;
	if (r != 0) {
		sh_done(sh, &m->ticket, r);
		m->ticket.have = false;
	}
	return r;
}

int sh_run_admitted(struct shell *sh, struct sh_cmdline *c)
{
	struct sh_member m = { 0 };
	int r;

	switch (c->kind) {
	case SH_K_NONE:
		return sh->status;
	case SH_K_FUNCTION:
		return sh_call_function(sh, c->func, c->argc, c->args.v);
	case SH_K_COMMAND:
		return sh_call_cmd(sh, c->cmd, c->argc, c->args.v);
	case SH_K_UNKNOWN:
		sh_msg(sh, "%s: command not found", c->args.v[0]);
		return 127;
	case SH_K_PROGRAM:
		break;
	}
	r = sh_start_program(sh, c, &m);
	return r != 0 ? r : sh_wait_member(sh, &m);
}

static int set_status(struct shell *sh, int status)
{
	sh->status = status;
	return status;
}

/* Assignments and redirections without a command. */
static int only_assignments(struct shell *sh, const struct sh_node *n)
{
	struct sh_redir_saved *saved;

	if (n->redirs != NULL) {
		if (sh_redirect(sh, n->redirs, &saved) != 0)
			return set_status(sh, sh->flow == SH_FLOW_NONE ? 1 : sh->status);
		sh_redirect_undo(saved);
	}
	for (const struct sh_assign *as = n->assigns; as != NULL; as = as->next) {
		if (sh_assign(sh, as, 0) != 0) {
			/* An assignment error ends the complete command, as in bash. */
			if (sh->flow == SH_FLOW_NONE)
				sh->flow = (sh->opts & (SH_O_POSIX | SH_O_ERREXIT)) != 0
				               ? SH_FLOW_EXIT
				               : SH_FLOW_ABORT;
			return set_status(
			    sh, sh->flow == SH_FLOW_EXIT && sh->status != 0 ? sh->status : 1);
		}
	}
	return set_status(sh, sh->last_subst >= 0 ? sh->last_subst : 0);
}

static void trace(struct shell *sh, const struct sh_cmdline *c)
{
	AUTO_BUF b = buf_with(SH_EXPAND_MAX);

	if ((sh->opts & SH_O_XTRACE) == 0)
		return;
	for (size_t i = 0; i < c->args.n; i++) {
		if (i != 0)
			buf_put_byte(&b, ' ');
		sh_quote(&b, sv_c(c->args.v[i]), true);
	}
	sh_xtrace(sh, buf_sv(&b));
}

/* Assignments in front of a special builtin outlive it in POSIX mode. */
static void commit_scope(struct shell *sh, const struct sh_assign *as)
{
	AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
	struct sh_args values = { 0 };
	size_t i = 0;

	for (const struct sh_assign *k = as; k != NULL; k = k->next) {
		const char *v = sh_var_get(sh, k->name);

		sh_args_push(&a, &values, sh_adup(&a, sv_c(v != NULL ? v : "")), false);
	}
	sh_scope_pop(sh);
	for (const struct sh_assign *k = as; k != NULL; k = k->next, i++)
		(void)sh_var_set(sh, k->name, values.v[i]); /* readonly was checked before */
}

/* Everything behind expansion: `c` has its words. */
static int run_words(struct shell *sh, struct arena *a, struct sh_cmdline *c,
    const struct sh_redir *redirs, const struct sh_assign *assigns)
{
	struct sh_redir_saved *saved = NULL;
	bool scope = false, special, keep;
	int r;

	/* In front of the search: PATH=dir command is looked for in dir. */
	if (assigns != NULL) {
		if (sh_prefix_assign(sh, assigns) != 0)
			return sh->flow == SH_FLOW_NONE ? 1 : sh->status;
		scope = true;
	}
	r = sh_resolve(sh, a, c);
	if (r == 0)
		r = sh_admit(sh, c);
	if (r == 0 && sh_redirect(sh, redirs, &saved) != 0) {
		r = sh->flow == SH_FLOW_NONE ? 1 : sh->status;
		sh_done(sh, &c->ticket, r);
		c->ticket.have = false;
		if (c->cmd != NULL && (c->cmd->flags & SHCMD_SPECIAL) != 0 &&
		    (sh->opts & SH_O_POSIX) != 0 && sh->flow == SH_FLOW_NONE)
			sh->flow = SH_FLOW_EXIT;
	}
	special = c->cmd != NULL && (c->cmd->flags & SHCMD_SPECIAL) != 0 && c->kind == SH_K_COMMAND;
	if (scope && special && (sh->opts & SH_O_POSIX) != 0 && r == 0) {
		commit_scope(sh, assigns);
		scope = false;
	}
	if (r == 0) {
		struct sh_assign **decl = sh->decl;
		size_t ndecl = sh->ndecl;

		sh->decl = c->args.decl;
		sh->ndecl = c->args.ndecl;
		sh->keep_redirs = false;
		r = sh_run_admitted(sh, c);
		sh->decl = decl;
		sh->ndecl = ndecl;
		sh_done(sh, &c->ticket, r);
	}
	keep = sh->keep_redirs;
	sh->keep_redirs = false;
	(void)sh_out_flush(&sh->out);
	sh->kept_redirs = keep;
	if (keep)
		sh_redirect_keep(saved);
	else
		sh_redirect_undo(saved);
	if (scope)
		sh_scope_pop(sh);
	return r;
}

static void close_procs(struct shell *sh, size_t from, bool keep)
{
	while (sh->nprocs > from) {
		struct sh_member m = { .pid = sh->proc_pids[--sh->nprocs] };

		(void)close(sh->procs[sh->nprocs]);
		/* What `cmd > >(tee log)` writes is there when cmd has ended. */
		if (m.pid != 0 && !keep)
			(void)sh_wait_member(sh, &m);
		else if (m.pid != 0 &&
		         sh->nexec_procs < sizeof(sh->exec_procs) / sizeof(sh->exec_procs[0]))
			sh->exec_procs[sh->nexec_procs++] = m.pid;
	}
}

int sh_eval_simple(struct shell *sh, const struct sh_node *n)
{
	AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
	struct sh_cmdline c = { .node = n };
	size_t procs = sh->nprocs;
	int r;

	sh->last_subst = -1;
	if (!sh->in_trap && sh->tree != NULL) {
		/* BASH_COMMAND: the node lives as long as its tree. */
		if (sh->command_tree != sh->tree) {
			sh_tree_unref(sh->command_tree);
			sh->command_tree = sh_tree_ref(sh->tree);
		}
		sh->command = n;
	}
	if (sh->trap_debug != NULL && (sh->funcs_depth == 0 || (sh->opts & SH_O_FUNCTRACE) != 0))
		sh_run_pseudo_trap(sh, sh->trap_debug);
	if (sh->flow != SH_FLOW_NONE)
		return sh->status;
	if (sh_expand_words(sh, &a, n->words, &c.args) != 0) {
		close_procs(sh, procs, false);
		return set_status(sh, sh->flow == SH_FLOW_NONE ? 1 : sh->status);
	}
	if (c.args.n == 0) {
		(void)only_assignments(sh, n); /* it sets the status */
		sh_set_last_arg(sh, "");
	} else {
		trace(sh, &c);
		r = run_words(sh, &a, &c, n->redirs, n->assigns);
		if (r >= 0 && sh->flow != SH_FLOW_EXIT)
			sh->status = r;
		sh_set_last_arg(sh, c.args.v[c.args.n - 1]);
	}
	close_procs(sh, procs, sh->kept_redirs);
	sh->kept_redirs = false;
	sh_set_pipestatus(sh, &sh->status, 1);
	return sh->status;
}

int sh_run_argv(struct shell *sh, int argc, char **argv, const bool *literal, unsigned how)
{
	AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
	struct sh_cmdline c = { .how = how };

	for (int i = 0; i < argc; i++)
		sh_args_push(&a, &c.args, argv[i], literal != NULL && literal[i]);
	return run_words(sh, &a, &c, NULL, NULL);
}

void sh_xtrace(struct shell *sh, sv text)
{
	AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
	AUTO_BUF b = buf_with(SH_EXPAND_MAX);
	const char *ps4 = sh_var_get(sh, "PS4");
	unsigned opts = sh->opts;
	int status = sh->status, subst = sh->last_subst;

	/* PS4 is expanded; the commands in it are decided like any other, but not traced. */
	sh->opts &= ~(unsigned)SH_O_XTRACE;
	buf_put_c(&b, sh_expand_text(sh, &a, ps4 != NULL ? ps4 : "+ "));
	sh->opts = opts;
	sh->status = status;
	sh->last_subst = subst;
	buf_put_sv(&b, text);
	buf_put_byte(&b, '\n');
	(void)sh_out_flush(&sh->out);
	(void)fd_write_full(2, b.p, b.n);
}
