/* Evaluation of lists and compound commands (POSIX 2.9). Every evaluating function returns
 * sh->status and stops when sh->flow is set. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fd.h"
#include "shell/parse.h"
#include "shell/pattern.h"
#include "shell/shell.h"
#include "base/ban.h"

void sh_check_errexit(struct shell *sh)
{
	if (sh->status == 0 || sh->no_errexit > 0 || sh->flow != SH_FLOW_NONE)
		return;
	if (sh->trap_err != NULL && (sh->funcs_depth == 0 || (sh->opts & SH_O_ERRTRACE) != 0))
		sh_run_pseudo_trap(sh, sh->trap_err);
	if ((sh->opts & SH_O_ERREXIT) != 0 && sh->flow == SH_FLOW_NONE)
		sh->flow = SH_FLOW_EXIT;
}

bool sh_stack_full(struct shell *sh)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if ((here < sh->stack ? sh->stack - here : here - sh->stack) < sh->stack_max)
		return false;
	if (sh->flow != SH_FLOW_EXIT)
		sh_error(sh, true, 1, "maximum recursion depth exceeded");
	return true;
}

/* The end of a forked subshell: its own EXIT trap, then its status. */
_Noreturn void sh_leave_subshell(struct shell *sh)
{
	if (sh->flow != SH_FLOW_NONE)
		sh->flow = SH_FLOW_NONE;
	sh_run_exit_trap(sh);
	sh_exit(sh, sh->status);
}

static int set_status(struct shell *sh, int status)
{
	sh->status = status;
	return status;
}

/* The DEBUG trap in front of a command that is not a simple one. */
static void debug(struct shell *sh)
{
	if (sh->trap_debug != NULL && (sh->funcs_depth == 0 || (sh->opts & SH_O_FUNCTRACE) != 0))
		sh_run_pseudo_trap(sh, sh->trap_debug);
}

/* --- conditions --- */

static int condition(struct shell *sh, const struct sh_node *n)
{
	int s;

	sh->no_errexit++;
	s = sh_eval(sh, n);
	sh->no_errexit--;
	return s;
}

static int and_or(struct shell *sh, const struct sh_node *n)
{
	int left = condition(sh, n->a);

	if (sh->flow != SH_FLOW_NONE || (left == 0) != (n->kind == SH_N_AND))
		return sh->status;
	return sh_eval(sh, n->b);
}

static int not(struct shell * sh, const struct sh_node *n)
{
	int s = condition(sh, n->a);

	if (sh->flow != SH_FLOW_NONE)
		return sh->status;
	return set_status(sh, s == 0);
}

static int if_command(struct shell *sh, const struct sh_node *n)
{
	int c = condition(sh, n->a);

	if (sh->flow != SH_FLOW_NONE)
		return sh->status;
	if (c == 0)
		return sh_eval(sh, n->b);
	return n->c != NULL ? sh_eval(sh, n->c) : set_status(sh, 0);
}

/* --- loops --- */

/* After one round of a loop: true when the loop goes on. */
static bool next_round(struct shell *sh)
{
	sh_mon_glance(sh);
	sh_run_traps(sh);
	if (sh->flow == SH_FLOW_BREAK || sh->flow == SH_FLOW_CONTINUE) {
		bool go_on = sh->flow == SH_FLOW_CONTINUE && sh->flow_n <= 1;

		if (--sh->flow_n <= 0)
			sh->flow = SH_FLOW_NONE;
		return go_on;
	}
	return sh->flow == SH_FLOW_NONE;
}

static int while_command(struct shell *sh, const struct sh_node *n)
{
	int last = 0;

	sh->loops++;
	for (;;) {
		int c = condition(sh, n->a);

		if (sh->flow != SH_FLOW_NONE) {
			last = sh->status;
			if (!next_round(sh))
				break;
			continue;
		}
		if ((c == 0) != (n->kind == SH_N_WHILE))
			break;
		last = sh_eval(sh, n->b);
		if (!next_round(sh))
			break;
	}
	sh->loops--;
	return set_status(sh, sh->flow == SH_FLOW_NONE ? last : sh->status);
}

static int for_command(struct shell *sh, const struct sh_node *n)
{
	AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
	struct sh_args words = { 0 };
	int last = 0;

	if (!n->has_in) {
		for (size_t i = 0; i < sh->nparams; i++)
			sh_args_push(&a, &words, sh_adup(&a, sv_c(sh->params[i])), false);
	} else if (sh_expand_words(sh, &a, n->word, &words) != 0) {
		return set_status(sh, sh->flow == SH_FLOW_NONE ? 1 : sh->status);
	}
	sh->loops++;
	for (size_t i = 0; i < words.n; i++) {
		if (!sh->line_fixed)
			sh->line = n->line;
		debug(sh);
		if (sh->flow != SH_FLOW_NONE)
			break;
		if (sh_var_set(sh, n->name, words.v[i]) != 0) {
			last = 1;
			break;
		}
		last = sh_eval(sh, n->a);
		if (!next_round(sh))
			break;
	}
	sh->loops--;
	return set_status(sh, sh->flow == SH_FLOW_NONE ? last : sh->status);
}

/* select NAME in words: a menu on descriptor 2, answers from descriptor 0. */
static int select_command(struct shell *sh, const struct sh_node *n)
{
	AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
	struct sh_args words = { 0 };
	char *read_argv[] = { (char[]){ "read" }, (char[]){ "-r" }, (char[]){ "REPLY" }, NULL };
	const struct sh_cmd *read_cmd = sh_cmd_find("read");
	int last = 0;

	if (!n->has_in) {
		for (size_t i = 0; i < sh->nparams; i++)
			sh_args_push(&a, &words, sh->params[i], false);
	} else if (sh_expand_words(sh, &a, n->word, &words) != 0) {
		return set_status(sh, 1);
	}
	sh->loops++;
	while (words.n != 0 && read_cmd != NULL) {
		AUTO_BUF b = buf_with(SH_EXPAND_MAX);
		const char *reply, *ps3 = sh_var_get(sh, "PS3");
		int64_t k;

		for (size_t i = 0; i < words.n; i++)
			buf_putf(&b, "%zu) %s\n", i + 1, words.v[i]);
		buf_put_c(&b, ps3 != NULL ? ps3 : "#? ");
		(void)fd_write_full(2, b.p, b.n);
		if (sh_call_cmd(sh, read_cmd, 3, read_argv) != 0) {
			last = 1;
			break;
		}
		reply = sh_var_get(sh, "REPLY");
		if (reply == NULL || *reply == '\0')
			continue;
		if (!sv_to_i64(sv_c(reply), 10, 1, (int64_t)words.n, &k))
			k = 0;
		if (sh_var_set(sh, n->name, k > 0 ? words.v[k - 1] : "") != 0)
			break;
		last = sh_eval(sh, n->a);
		if (!next_round(sh))
			break;
	}
	sh->loops--;
	return set_status(sh, sh->flow == SH_FLOW_NONE ? last : sh->status);
}

/* false: an error was reported. An empty expression is true in `for ((;;))`. */
static bool arith(struct shell *sh, const struct sh_word *w, int64_t empty, int64_t *v)
{
	const struct sh_part *p = w != NULL && w->parts != NULL ? w->parts->sub : NULL;

	*v = empty;
	if (p == NULL)
		return true;
	if (p->next == NULL && p->kind == SH_PT_QUOTED && sv_trim(p->text).n == 0)
		return true;
	return sh_arith_word(sh, w, v) == 0;
}

static int arith_for(struct shell *sh, const struct sh_node *n)
{
	int64_t v;
	int last = 0;

	if (!arith(sh, n->e1, 1, &v))
		return set_status(sh, 1);
	sh->loops++;
	while (arith(sh, n->e2, 1, &v)) {
		if (v == 0)
			break;
		last = sh_eval(sh, n->a);
		if (!next_round(sh))
			break;
		if (!arith(sh, n->e3, 1, &v)) {
			last = 1;
			break;
		}
	}
	sh->loops--;
	return set_status(sh, sh->flow == SH_FLOW_NONE ? last : sh->status);
}

static int arith_command(struct shell *sh, const struct sh_node *n)
{
	int64_t v;

	if (!arith(sh, n->e1, 0, &v))
		return set_status(sh, 1);
	return set_status(sh, v == 0);
}

/* --- case --- */

static bool case_matches(struct shell *sh, const struct sh_case_item *it, const char *subject)
{
	unsigned flags =
	    SH_PAT_EXTGLOB | ((sh->shopts & SH_S_NOCASEMATCH) != 0 ? SH_PAT_NOCASE : 0u);

	for (const struct sh_word *w = it->patterns; w != NULL; w = w->next) {
		AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
		char *p = sh_expand_str(sh, &a, w, SH_X_PATTERN);

		if (p == NULL)
			return false;
		if (sh_pat_match(sv_c(p), sv_c(subject), flags))
			return true;
	}
	return false;
}

static int case_command(struct shell *sh, const struct sh_node *n)
{
	AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
	char *subject = sh_expand_str(sh, &a, n->word, SH_X_STRING);
	bool fall = false;
	int last = 0;

	if (subject == NULL)
		return set_status(sh, sh->flow == SH_FLOW_NONE ? 1 : sh->status);
	debug(sh);
	for (const struct sh_case_item *it = n->items; it != NULL; it = it->next) {
		if (!fall && !case_matches(sh, it, subject)) {
			if (sh->flow != SH_FLOW_NONE)
				return sh->status;
			continue;
		}
		last = it->body != NULL ? sh_eval(sh, it->body) : 0;
		if (sh->flow != SH_FLOW_NONE)
			return sh->status;
		if (it->end == ';')
			break;
		fall = it->end == '&';
	}
	return set_status(sh, last);
}

/* --- subshells and background --- */

static int subshell(struct shell *sh, const struct sh_node *n)
{
	struct sh_member m = { .pid = sh_fork(sh, false) };

	if (m.pid == 0) {
		sh->loops = 0;
		if (n->redirs != NULL) {
			struct sh_redir_saved *saved;

			if (sh_redirect(sh, n->redirs, &saved) != 0) {
				sh->status = 1;
				sh_leave_subshell(sh);
			}
			sh_redirect_keep(saved);
		}
		(void)sh_eval(sh, n->a);
		sh_leave_subshell(sh);
	}
	if (m.pid < 0)
		return sh->status;
	return set_status(sh, sh_wait_member(sh, &m));
}

static int background(struct shell *sh, const struct sh_node *n)
{
	size_t running = 0;
	pid_t pid;

	(void)sh_reap(sh);
	for (size_t i = 0; i < sh->nchildren; i++)
		running += sh->children[i].background && !sh->children[i].done;
	if (running >= SH_JOBS_MAX) {
		sh_msg(sh, "too many background jobs");
		return set_status(sh, 1);
	}
	pid = sh_fork(sh, true);
	if (pid == 0) {
		/* POSIX 2.9.3: its standard input is empty unless redirected. */
		if (sh->devnull >= 0)
			(void)sh_fd_replace(0, sh->devnull, NULL);
		sh->loops = 0;
		(void)sh_eval(sh, n->a);
		sh_leave_subshell(sh);
	}
	if (pid < 0)
		return sh->status;
	sh->last_bg = pid;
	{
		struct sh_child *c = sh_child_find(sh, pid);
		AUTO_BUF b = buf_with(4096);

		if (c != NULL) {
			int top = 0;

			for (size_t i = 0; i < sh->nchildren; i++)
				top = sh->children[i].job > top ? sh->children[i].job : top;
			c->job = top + 1;
			sh_unparse(&b, n->a);
			c->text = sh_xstrdup(buf_ok(&b) ? buf_cstr(&b) : "...");
		}
	}
	return set_status(sh, 0);
}

static int define(struct shell *sh, const struct sh_node *n)
{
	struct sh_func *f = sh_func_find(sh, n->name);

	if (f != NULL && f->readonly) {
		sh_msg(sh, "%s: readonly function", n->name);
		return set_status(sh, 1);
	}
	sh_func_set(sh, n->name, n->a);
	return set_status(sh, 0);
}

static int time_command(struct shell *sh, const struct sh_node *n)
{
	struct rusage before, after;
	int64_t start = clock_now(&sh->mono), real, user, sys;
	char text[160];
	int s = 0, k;

	(void)getrusage(RUSAGE_CHILDREN, &before);
	if (n->a != NULL)
		s = sh_eval(sh, n->a);
	real = clock_now(&sh->mono) - start;
	(void)getrusage(RUSAGE_CHILDREN, &after);
	user = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000 +
	       (after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1000;
	sys = (after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000 +
	      (after.ru_stime.tv_usec - before.ru_stime.tv_usec) / 1000;
	real /= NS_PER_MS;
	if (n->posix_time)
		k = snprintf(text, sizeof(text),
		    "real %lld.%02lld\nuser %lld.%02lld\nsys %lld.%02lld\n",
		    (long long)(real / 1000), (long long)(real % 1000 / 10),
		    (long long)(user / 1000), (long long)(user % 1000 / 10),
		    (long long)(sys / 1000), (long long)(sys % 1000 / 10));
	else
		k = snprintf(text, sizeof(text),
		    "\nreal\t%lldm%lld.%03llds\nuser\t%lldm%lld.%03llds\nsys\t%lldm%lld.%03llds\n",
		    (long long)(real / 60000), (long long)(real / 1000 % 60),
		    (long long)(real % 1000), (long long)(user / 60000),
		    (long long)(user / 1000 % 60), (long long)(user % 1000),
		    (long long)(sys / 60000), (long long)(sys / 1000 % 60),
		    (long long)(sys % 1000));
	(void)fd_write_full(2, text, (size_t)k);
	return set_status(sh, s);
}

/* --- choice --- */

static int compound(struct shell *sh, const struct sh_node *n)
{
	switch (n->kind) {
	case SH_N_GROUP:
		return sh_eval(sh, n->a);
	case SH_N_IF:
		return if_command(sh, n);
	case SH_N_WHILE:
	case SH_N_UNTIL:
		return while_command(sh, n);
	case SH_N_FOR:
		return for_command(sh, n);
	case SH_N_SELECT:
		return select_command(sh, n);
	case SH_N_ARITH_FOR:
		return arith_for(sh, n);
	case SH_N_CASE:
		return case_command(sh, n);
	case SH_N_COND:
		debug(sh);
		return set_status(sh, sh_eval_cond(sh, n->cond));
	case SH_N_ARITH:
		debug(sh);
		return arith_command(sh, n);
	default:
		return sh->status;
	}
}

static int redirected(struct shell *sh, const struct sh_node *n)
{
	struct sh_redir_saved *saved;

	if (n->redirs == NULL)
		return compound(sh, n);
	if (sh_redirect(sh, n->redirs, &saved) != 0)
		return set_status(sh, sh->flow == SH_FLOW_NONE ? 1 : sh->status);
	(void)compound(sh, n);
	(void)sh_out_flush(&sh->out);
	sh_redirect_undo(saved);
	return sh->status;
}

int sh_eval(struct shell *sh, const struct sh_node *n)
{
	if (n == NULL || sh->flow != SH_FLOW_NONE)
		return sh->status;
	if ((sh->opts & SH_O_NOEXEC) != 0)
		return 0;
	if (sh_stack_full(sh))
		return sh->status;
	sh_run_traps(sh);
	if (sh->flow != SH_FLOW_NONE)
		return sh->status;
	if (n->line > 0 && !sh->line_fixed)
		sh->line = n->line;
	switch (n->kind) {
	case SH_N_SIMPLE:
		(void)sh_eval_simple(sh, n);
		sh_check_errexit(sh);
		break;
	case SH_N_PIPE:
		(void)sh_eval_pipe(sh, n);
		sh_check_errexit(sh);
		break;
	case SH_N_NOT:
		return not(sh, n);
	case SH_N_AND:
	case SH_N_OR:
		return and_or(sh, n);
	case SH_N_SEQ:
		for (const struct sh_node *k = n->kids; k != NULL && sh->flow == SH_FLOW_NONE;
		     k = k->next)
			(void)sh_eval(sh, k);
		break;
	case SH_N_BG:
		return background(sh, n);
	case SH_N_SUBSHELL:
		(void)subshell(sh, n);
		sh_check_errexit(sh);
		break;
	case SH_N_FUNC:
		return define(sh, n);
	case SH_N_TIME:
		return time_command(sh, n);
	case SH_N_COND:
	case SH_N_ARITH:
		(void)redirected(sh, n);
		sh_check_errexit(sh);
		break;
	case SH_N_GROUP:
	case SH_N_IF:
	case SH_N_WHILE:
	case SH_N_UNTIL:
	case SH_N_FOR:
	case SH_N_SELECT:
	case SH_N_ARITH_FOR:
	case SH_N_CASE:
		return redirected(sh, n);
	}
	return sh->status;
}

void sh_set_pipestatus(struct shell *sh, const int *status, size_t n)
{
	struct sh_var *v = sh_var_raw(sh, "PIPESTATUS");
	char text[16];

	/* The usual case, one command, changes one element in place. */
	if (v == NULL || (v->flags & SH_V_ARRAY) == 0) {
		if (sh_var_make_array(sh, "PIPESTATUS", false) != 0)
			return;
		v = sh_var_raw(sh, "PIPESTATUS");
	}
	if (v == NULL)
		return;
	if (v->nelem != n)
		sh_var_clear_elems(v);
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(text, sizeof(text), "%d", status[i]);
		if (i < v->nelem && strcmp(v->elem[i].value, text) == 0)
			continue;
		(void)sh_var_set_index(sh, "PIPESTATUS", (int64_t)i, text, false);
	}
}

void sh_set_last_arg(struct shell *sh, const char *arg)
{
	(void)sh_var_set(sh, "_", arg);
}

/* --- texts --- */

static const char *alias_of(void *arg, const char *name)
{
	struct shell *sh = arg;

	if ((sh->shopts & SH_S_EXPAND_ALIASES) == 0)
		return NULL;
	for (struct sh_alias *a = sh->aliases; a != NULL; a = a->next) {
		if (strcmp(a->name, name) == 0)
			return a->value;
	}
	return NULL;
}

struct sh_parser *sh_new_parser(struct shell *sh, sv text, const char *file)
{
	struct sh_parse_env env = { .arg = sh, .alias = alias_of };
	struct sh_parser *p = sh_parser_new(text, file, &env);

	if (p == NULL)
		sh_no_memory();
	return p;
}

int sh_run_parser(struct shell *sh, struct sh_parser *p)
{
	struct sh_tree *saved = sh->tree;
	struct box_err err;
	int r = 1;

	while (sh->flow == SH_FLOW_NONE) {
		struct sh_tree *t;

		sh_parser_env(p)->extglob = (sh->shopts & SH_S_EXTGLOB) != 0;
		r = sh_parse_next(p, &t, &err);
		if (r <= 0)
			break;
		sh->tree = t;
		sh->ran = sh->ran || t->node != NULL;
		(void)sh_eval(sh, t->node);
		sh_tree_unref(t);
		sh->tree = saved;
		/* The next complete command goes on, except in a subshell, which ends (as in bash).
		 * */
		if (sh->flow == SH_FLOW_ABORT && sh->subshell == 0)
			sh->flow = SH_FLOW_NONE;
		sh_run_traps(sh);
	}
	sh->tree = saved;
	if (r < 0) {
		sh_msg(sh, "%s", err.msg);
		sh->status = 2;
	}
	return r < 0 ? -1 : 0;
}

int sh_run_text(struct shell *sh, sv text, const char *file)
{
	struct sh_parser *p;

	if (sh->depth >= SH_FUNC_DEPTH_MAX) {
		sh_error(sh, true, 1, "maximum recursion depth exceeded");
		return sh->status;
	}
	sh->depth++;
	sh->texts++;
	p = sh_new_parser(sh, text, file);
	sh->ran = false;
	(void)sh_run_parser(sh, p);
	sh_parser_free(p);
	sh->texts--;
	sh->depth--;
	return sh->status;
}
