/* Pipelines (POSIX 2.9.2), with Boxwood's order: every stage is admitted, left to right; then all
 * redirections, left to right, each decided before the first file is changed; then everything runs
 * at the same time.
 *
 * That works for a stage that is a simple command whose words can be expanded here without side
 * effects. A stage that is a compound command, or whose words run commands or change variables, is
 * expanded and decided in its own subshell when it runs, as POSIX has it (`a | echo $(cat)` reads
 * the pipe). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "shell/escape.h"
#include "shell/simple.h"
#include "base/ban.h"

struct stage {
	const struct sh_node *node;
	struct sh_cmdline c;
	bool known;  /* expanded, admitted and opened here */
	int refused; /* status of a stage that must not run: 127, 1 (its expansion failed) */
	int in, out; /* ends of the pipes; -1: the pipeline's own */
	struct sh_member m;
};

/* --- which stages can be expanded here --- */

static bool pure_parts(const struct sh_part *p);

static bool pure_word(const struct sh_word *w)
{
	return w == NULL || (w->assign == NULL && pure_parts(w->parts));
}

static bool pure_parts(const struct sh_part *p)
{
	for (; p != NULL; p = p->next) {
		switch (p->kind) {
		case SH_PT_LIT:
		case SH_PT_QUOTED:
			break;
		case SH_PT_DQUOTE:
			if (!pure_parts(p->sub))
				return false;
			break;
		case SH_PT_PARAM:
			if (p->param->op == SH_OP_ASSIGN || p->param->op == SH_OP_ERROR ||
			    p->param->op == SH_OP_SLICE || p->param->op == SH_OP_BAD ||
			    p->param->indirect || p->param->subscript != NULL ||
			    strcmp(p->param->name, "RANDOM") == 0 ||
			    strcmp(p->param->name, "BASHPID") == 0 || !pure_word(p->param->arg) ||
			    !pure_word(p->param->arg2))
				return false;
			break;
		case SH_PT_CMD:
		case SH_PT_ARITH:
		case SH_PT_PROC:
			return false;
		}
	}
	return true;
}

static bool pure(const struct shell *sh, const struct sh_node *n)
{
	if (n->kind != SH_N_SIMPLE || n->words == NULL)
		return false;
	/* An unset parameter must end only the stage, and that is a subshell. */
	if ((sh->opts & SH_O_NOUNSET) != 0)
		return false;
	for (const struct sh_word *w = n->words; w != NULL; w = w->next) {
		if (!pure_word(w))
			return false;
	}
	for (const struct sh_assign *as = n->assigns; as != NULL; as = as->next) {
		if (as->is_array || as->subscript != NULL || !pure_word(as->value))
			return false;
	}
	for (const struct sh_redir *r = n->redirs; r != NULL; r = r->next) {
		if (!pure_word(r->word) || r->fd_var != NULL)
			return false;
	}
	return true;
}

/* --- the three steps in front --- */

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

static void prepare(struct shell *sh, struct arena *a, struct stage *s)
{
	s->known = pure(sh, s->node);
	if (!s->known)
		return;
	s->c.node = s->node;
	if (sh_expand_words(sh, a, s->node->words, &s->c.args) != 0) {
		if (sh->flow == SH_FLOW_ABORT)
			sh->flow = SH_FLOW_NONE;
		s->refused = 1;
		return;
	}
	if (s->c.args.n == 0) {
		s->known = false; /* `$empty | cat` */
		return;
	}
	trace(sh, &s->c);
	s->refused = sh_resolve(sh, a, &s->c);
}

/* 0, or the status of a refusal: then no stage runs. */
static int admit_all(struct shell *sh, struct stage *st, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r;

		if (!st[i].known || st[i].refused != 0)
			continue;
		r = sh_admit(sh, &st[i].c);
		if (r != 0)
			return r;
	}
	return 0;
}

static void abandon(struct shell *sh, struct stage *st, size_t n, int status)
{
	for (size_t i = 0; i < n; i++) {
		if (st[i].known)
			sh_done(sh, &st[i].c.ticket, status);
		st[i].c.ticket.have = false;
	}
}

/* --- running --- */

_Noreturn static void stage_child(
    struct shell *sh, struct stage *s, const struct sh_ready *ready, size_t i)
{
	if (s->in >= 0 && (sh_fd_replace(0, s->in, NULL) != 0 || close(s->in) != 0))
		_exit(1);
	if (s->out >= 0) {
		if (sh_fd_replace(1, s->out, NULL) != 0 || close(s->out) != 0)
			_exit(1);
		if (s->node->pipe_both)
			(void)sh_fd_replace(2, 1, NULL);
	}
	sh->loops = 0;
	if (!s->known) {
		(void)sh_eval(sh, s->node);
		sh_leave_subshell(sh);
	}
	if (s->refused != 0) {
		sh->status = s->refused;
		sh_leave_subshell(sh);
	}
	/* The parent reports the ticket when this process has ended. */
	s->c.ticket.have = false;
	if (sh_apply_redirs(sh, ready, i, NULL) != 0) {
		sh->status = 1;
		sh_leave_subshell(sh);
	}
	if (s->node->assigns != NULL && sh_prefix_assign(sh, s->node->assigns) != 0) {
		sh->status = 1;
		sh_leave_subshell(sh);
	}
	{
		int r = sh_run_admitted(sh, &s->c);

		if (sh->flow != SH_FLOW_EXIT)
			sh->status = r;
	}
	sh_leave_subshell(sh);
}

/* A host program needs no process of ours: the monitor starts it on the right descriptors. */
static void start_program(struct shell *sh, struct stage *s, const struct sh_ready *ready, size_t i)
{
	struct sh_redir_saved *saved = NULL;
	bool scope = false;
	int r = 1;

	if ((s->in < 0 || sh_fd_replace(0, s->in, &saved) == 0) &&
	    (s->out < 0 || sh_fd_replace(1, s->out, &saved) == 0) &&
	    (s->out < 0 || !s->node->pipe_both || sh_fd_replace(2, 1, &saved) == 0) &&
	    sh_apply_redirs(sh, ready, i, &saved) == 0) {
		r = 0;
		if (s->node->assigns != NULL) {
			r = sh_prefix_assign(sh, s->node->assigns) != 0;
			scope = r == 0;
		}
		if (r == 0)
			r = sh_start_program(sh, &s->c, &s->m);
		if (scope)
			sh_scope_pop(sh);
	}
	sh_redirect_undo(saved);
	if (r != 0) {
		sh_done(sh, &s->c.ticket, r);
		s->c.ticket.have = false;
		s->m.done = true;
		s->m.status = r;
	}
}

/* shopt -s lastpipe: the last stage is a part of this shell. */
static void run_last(struct shell *sh, struct stage *s, const struct sh_ready *ready, size_t i)
{
	struct sh_redir_saved *saved = NULL;

	s->m.done = true;
	s->m.status = 1;
	if (s->in < 0 || sh_fd_replace(0, s->in, &saved) == 0) {
		fd_drop(&s->in);
		if (!s->known) {
			s->m.status = sh_eval(sh, s->node);
		} else if (s->refused != 0) {
			s->m.status = s->refused;
		} else if (sh_apply_redirs(sh, ready, i, &saved) == 0 &&
		           sh_prefix_assign(sh, s->node->assigns) == 0) {
			s->m.status = sh_run_admitted(sh, &s->c);
			sh_scope_pop(sh);
		}
	}
	(void)sh_out_flush(&sh->out);
	sh_redirect_undo(saved);
	s->m.ticket = s->c.ticket;
	s->c.ticket.have = false;
}

static void start_stage(
    struct shell *sh, struct stage *st, size_t n, size_t i, const struct sh_ready *ready)
{
	struct stage *s = &st[i];

	if (s->known && s->refused == 0 && s->c.kind == SH_K_PROGRAM) {
		start_program(sh, s, ready, i);
		return;
	}
	if (i + 1 == n && (sh->shopts & SH_S_LASTPIPE) != 0) {
		run_last(sh, s, ready, i);
		return;
	}
	s->m.pid = sh_fork(sh, false);
	if (s->m.pid == 0) {
		/* Ends of other pipes must not be held open. */
		for (size_t k = 0; k < n; k++) {
			if (k == i)
				continue;
			fd_drop(&st[k].in);
			fd_drop(&st[k].out);
		}
		stage_child(sh, s, ready, i);
	}
	if (s->m.pid < 0) {
		s->m.done = true;
		s->m.status = sh->status;
	}
	s->m.ticket = s->c.ticket;
	s->c.ticket.have = false;
}

/* Make the pipes and start everything. */
static void run_all(struct shell *sh, struct stage *st, size_t n, const struct sh_ready *ready)
{
	for (size_t i = 0; i < n && sh->flow == SH_FLOW_NONE; i++) {
		if (i + 1 < n) {
			int p[2];

			if (pipe2(p, O_CLOEXEC) != 0) {
				sh_error(
				    sh, false, 1, "cannot make a pipe: %s", box_strerror(errno));
				st[i].m.done = true;
				break;
			}
			st[i].out = sh_fd_high(p[1]);
			st[i + 1].in = sh_fd_high(p[0]);
		}
		start_stage(sh, st, n, i, ready);
		fd_drop(&st[i].in);
		fd_drop(&st[i].out);
	}
	for (size_t i = 0; i < n; i++) {
		fd_drop(&st[i].in);
		fd_drop(&st[i].out);
	}
}

static int collect(struct shell *sh, struct stage *st, size_t n)
{
	int *status = sh_xalloc(n, sizeof(int));
	int last, fail = 0;

	for (size_t i = 0; i < n; i++) {
		if (st[i].m.pid <= 0 && st[i].m.tool == 0)
			st[i].m.done = true; /* never started */
		status[i] = sh_wait_member(sh, &st[i].m);
		if (status[i] != 0)
			fail = status[i];
	}
	last = status[n - 1];
	sh_set_pipestatus(sh, status, n);
	free(status);
	return (sh->opts & SH_O_PIPEFAIL) != 0 ? fail : last;
}

int sh_eval_pipe(struct shell *sh, const struct sh_node *n)
{
	AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
	const struct sh_redir **lists;
	struct sh_ready *ready = NULL;
	struct stage *st;
	size_t count = 0, bad;
	int r;

	for (const struct sh_node *k = n->kids; k != NULL; k = k->next)
		count++;
	if (count > SH_STAGES_MAX) {
		sh_msg(sh, "pipeline too long");
		sh->status = 1;
		return 1;
	}
	st = sh_aalloc(&a, count, sizeof(*st));
	lists = sh_aalloc(&a, count, sizeof(struct sh_redir *));
	count = 0;
	for (const struct sh_node *k = n->kids; k != NULL; k = k->next, count++) {
		st[count].node = k;
		st[count].in = st[count].out = -1;
		prepare(sh, &a, &st[count]);
		if (sh->flow != SH_FLOW_NONE)
			return sh->status;
	}
	r = admit_all(sh, st, count);
	if (r != 0) {
		abandon(sh, st, count, -1);
		sh->status = r;
		sh_set_pipestatus(sh, &r, 1);
		return r;
	}
	for (size_t i = 0; i < count; i++)
		lists[i] = st[i].known && st[i].refused == 0 ? st[i].node->redirs : NULL;
	if (sh_open_redirs(sh, &a, lists, count, &ready, &bad) != 0) {
		abandon(sh, st, count, -1);
		if (sh->flow == SH_FLOW_NONE)
			sh->status = 1;
		sh_set_pipestatus(sh, &sh->status, 1);
		return sh->status;
	}
	run_all(sh, st, count, ready);
	sh_close_redirs(ready);
	r = collect(sh, st, count);
	if (sh->flow == SH_FLOW_NONE)
		sh->status = r;
	return sh->status;
}
