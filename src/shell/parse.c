/* The parser: memory, errors, entry points, and the grammar down to the pipeline (POSIX 2.10).
 * parse_cmd.c holds the commands, parse_word.c the words, parse_tok.c the tokens. */
#include "shell/parse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell/parse_cmd.h"
#include "shell/parse_int.h"
#include "base/ban.h"

/* --- memory and errors --- */

_Noreturn void sh_p_fail(struct sh_parser *p, enum box_code code, int line, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (line > 0 && p->file[0] != '\0')
		(void)box_fail(p->err, code, 0, "%s: line %d: %s", p->file, line, text);
	else if (line > 0 && p->multi_line)
		(void)box_fail(p->err, code, 0, "line %d: %s", line, text);
	else
		(void)box_fail(p->err, code, 0, "%s", text);
	longjmp(p->on_error, 1);
}

void *sh_p_alloc(struct sh_parser *p, size_t n, size_t size)
{
	void *m = arena_alloc(p->a, n, size);

	if (m == NULL)
		sh_p_fail(p, BOX_ELIMIT, p->line, "input too large");
	return m;
}

char *sh_p_dup(struct sh_parser *p, sv s)
{
	char *m;

	/* Most texts come out of the scratch buffer: a piece that did not fit must not go
	 * missing. */
	if (!buf_ok(&p->scratch))
		sh_p_fail(p, BOX_ELIMIT, p->line, "word too large");
	m = sh_p_alloc(p, s.n + 1, 1);
	if (s.n != 0)
		memcpy(m, s.p, s.n);
	return m;
}

void sh_p_enter(struct sh_parser *p)
{
	if (++p->depth > SH_PARSE_DEPTH)
		sh_p_fail(p, BOX_ELIMIT, p->line, "nested too deeply");
}

struct sh_tree *sh_tree_ref(struct sh_tree *t)
{
	t->refs++;
	return t;
}

void sh_tree_unref(struct sh_tree *t)
{
	if (t == NULL || --t->refs != 0)
		return;
	arena_free(&t->arena);
	free(t);
}

bool sh_is_name(sv s)
{
	if (s.n == 0 || (s.p[0] >= '0' && s.p[0] <= '9'))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c != '_' && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') &&
		    !(c >= 'A' && c <= 'Z'))
			return false;
	}
	return true;
}

static bool parser_init(struct sh_parser *p, sv text, const struct sh_parse_env *env)
{
	*p = (struct sh_parser){ .text = buf_with(SH_INPUT_MAX), .line = 1 };
	p->scratch = buf_with(SH_INPUT_MAX);
	if (env != NULL)
		p->env = *env;
	/* A NUL cannot be part of any word; like other shells, drop it. */
	while (text.n != 0) {
		sv head, tail;

		(void)sv_cut(text, '\0', &head, &tail);
		buf_put_sv(&p->text, head);
		text = tail;
	}
	return buf_ok(&p->text);
}

static void parser_fini(struct sh_parser *p)
{
	for (size_t i = 0; i < p->naliases; i++)
		free(p->alias[i].name);
	buf_fini(&p->text);
	buf_fini(&p->scratch);
	free(p->file);
	p->file = NULL;
}

struct sh_parser *sh_parser_new(sv text, const char *file, const struct sh_parse_env *env)
{
	struct sh_parser *p = malloc(sizeof(*p));

	if (p == NULL)
		return NULL;
	if (!parser_init(p, text, env) || (p->file = strdup(file)) == NULL) {
		parser_fini(p);
		free(p);
		return NULL;
	}
	p->multi_line = memchr(text.p != NULL ? text.p : "", '\n', text.n) != NULL;
	return p;
}

void sh_parser_free(struct sh_parser *p)
{
	if (p == NULL)
		return;
	parser_fini(p);
	free(p);
}

struct sh_parse_env *sh_parser_env(struct sh_parser *p)
{
	return &p->env;
}

/* --- other texts in the same arena --- */

/* Run a parser over text with the settings of p. The fields that errors need are shared. */
static void sub_parser(struct sh_parser *p, struct sh_parser *q, sv text, int line)
{
	if (!parser_init(q, text, NULL)) {
		parser_fini(q);
		sh_p_fail(p, BOX_ELIMIT, line, "input too large");
	}
	q->env.alias = p->env.alias;
	q->env.arg = p->env.arg;
	q->env.extglob = p->env.extglob;
	q->line = line;
	q->a = p->a;
	q->depth = p->depth + 1;
	q->err = p->err;
	q->multi_line = p->multi_line;
	q->file = strdup(p->file);
	if (q->file == NULL) {
		parser_fini(q);
		sh_p_fail(p, BOX_ENOMEM, 0, "out of memory");
	}
}

static void no_rest(struct sh_parser *p)
{
	struct token *t = sh_p_peek(p, true);

	if (t->kind != TK_EOF)
		sh_p_unexpected(p, t);
}

struct sh_node *sh_p_sub_text(struct sh_parser *p, sv text, int line)
{
	struct sh_parser q;
	struct sh_node *volatile node = NULL;

	sh_p_enter(p);
	sub_parser(p, &q, text, line);
	if (setjmp(q.on_error) != 0) {
		parser_fini(&q);
		longjmp(p->on_error, 1);
	}
	node = sh_p_list(&q, false);
	no_rest(&q);
	parser_fini(&q);
	sh_p_leave(p);
	return node;
}

struct sh_part *sh_p_sub_parts(struct sh_parser *p, sv text, enum sh_wmode mode, int line)
{
	struct sh_parser q;
	struct sh_part *volatile parts = NULL;

	sh_p_enter(p);
	sub_parser(p, &q, text, line);
	if (setjmp(q.on_error) != 0) {
		parser_fini(&q);
		longjmp(p->on_error, 1);
	}
	parts = sh_p_parts(&q, mode);
	sh_p_read_bodies(&q);
	parser_fini(&q);
	sh_p_leave(p);
	return parts;
}

struct sh_node *sh_p_substitution(struct sh_parser *p)
{
	struct token saved = p->tok;
	bool had = p->have_tok, decl = p->decl, in_cond = p->in_cond;
	struct sh_node *node;
	int line = p->line;

	sh_p_enter(p);
	p->have_tok = false;
	p->decl = false;
	p->in_cond = false;
	node = sh_p_list(p, false);
	if (sh_p_peek(p, true)->kind != TK_RPAREN) {
		if (p->tok.kind == TK_EOF)
			sh_p_fail(p, BOX_EPARSE, line, "unterminated $()");
		sh_p_unexpected(p, &p->tok);
	}
	p->tok = saved;
	p->have_tok = had;
	p->decl = decl;
	p->in_cond = in_cond;
	sh_p_leave(p);
	return node;
}

/* --- lists --- */

struct sh_node *sh_p_node(struct sh_parser *p, enum sh_node_kind kind, int line)
{
	struct sh_node *n = P_NEW(p, struct sh_node);

	n->kind = kind;
	n->line = line;
	return n;
}

void sh_p_newlines(struct sh_parser *p)
{
	while (sh_p_peek(p, true)->kind == TK_NEWLINE)
		sh_p_take(p);
}

_Noreturn void sh_p_unexpected(struct sh_parser *p, const struct token *t)
{
	char esc[64];
	size_t n;

	switch (t->kind) {
	case TK_EOF:
		sh_p_fail(p, BOX_EPARSE, t->line, "unexpected end of file");
	case TK_NEWLINE:
		sh_p_fail(p, BOX_EPARSE, t->line, "unexpected newline");
	default:
		break;
	}
	n = p->pos > t->start ? p->pos - t->start : 0;
	if (n > sizeof(esc) - 1)
		n = sizeof(esc) - 1;
	memcpy(esc, p->text.p + t->start, n);
	esc[n] = '\0';
	sh_p_fail(p, BOX_EPARSE, t->line, "unexpected '%s'", esc);
}

/* Does a list end here: a closing word, ), ;; or the end? */
static bool list_ends(struct sh_parser *p)
{
	static const char *const closers[] = { "then", "else", "elif", "fi", "do", "done", "esac",
		"}", NULL };
	struct token *t = sh_p_peek(p, true);

	switch (t->kind) {
	case TK_EOF:
	case TK_RPAREN:
	case TK_DSEMI:
	case TK_SEMI_AMP:
	case TK_DSEMI_AMP:
		return true;
	case TK_WORD:
		for (size_t i = 0; t->lit.p != NULL && closers[i] != NULL; i++) {
			if (sv_eq(t->lit, sv_c(closers[i])))
				return true;
		}
		return false;
	default:
		return false;
	}
}

static struct sh_node *pipeline(struct sh_parser *p)
{
	struct token *t = sh_p_peek(p, true);
	int line = t->line;
	struct sh_node *last, *pipe;

	sh_p_enter(p);
	if (sh_p_is(p, "!")) {
		struct sh_node *not = sh_p_node(p, SH_N_NOT, line);

		sh_p_take(p);
		not ->a = pipeline(p);
		sh_p_leave(p);
		return not ;
	}
	if (sh_p_is(p, "time")) {
		struct sh_node *tm = sh_p_node(p, SH_N_TIME, line);

		sh_p_take(p);
		if (sh_p_is(p, "-p")) {
			sh_p_take(p);
			tm->posix_time = true;
		}
		t = sh_p_peek(p, true);
		if (t->kind != TK_SEMI && t->kind != TK_NEWLINE && !list_ends(p))
			tm->a = pipeline(p);
		sh_p_leave(p);
		return tm;
	}
	last = sh_p_command(p);
	t = sh_p_peek(p, true);
	if (t->kind != TK_PIPE && t->kind != TK_PIPE_AMP) {
		sh_p_leave(p);
		return last;
	}
	pipe = sh_p_node(p, SH_N_PIPE, line);
	pipe->kids = last;
	while ((t = sh_p_peek(p, true))->kind == TK_PIPE || t->kind == TK_PIPE_AMP) {
		last->pipe_both = t->kind == TK_PIPE_AMP;
		sh_p_take(p);
		sh_p_newlines(p);
		if (list_ends(p))
			sh_p_unexpected(p, sh_p_peek(p, true));
		last->next = sh_p_command(p);
		last = last->next;
	}
	sh_p_leave(p);
	return pipe;
}

static struct sh_node *and_or(struct sh_parser *p)
{
	struct sh_node *left = pipeline(p);

	for (;;) {
		struct token *t = sh_p_peek(p, true);
		struct sh_node *n;

		if (t->kind != TK_AND && t->kind != TK_OR)
			return left;
		n = sh_p_node(p, t->kind == TK_AND ? SH_N_AND : SH_N_OR, t->line);
		sh_p_take(p);
		sh_p_newlines(p);
		n->a = left;
		n->b = pipeline(p);
		left = n;
	}
}

/* A list. one_line: a complete command, which ends at the first newline. NULL when it is empty. */
struct sh_node *sh_p_list(struct sh_parser *p, bool one_line)
{
	struct sh_node *seq = NULL, *first = NULL, **tail = NULL;

	sh_p_enter(p);
	if (!one_line)
		sh_p_newlines(p);
	while (!list_ends(p) && !(one_line && p->tok.kind == TK_NEWLINE)) {
		struct sh_node *n = and_or(p);
		struct token *t = sh_p_peek(p, true);
		bool more = true;

		if (t->kind == TK_AMP) {
			struct sh_node *bg = sh_p_node(p, SH_N_BG, n->line);

			bg->a = n;
			n = bg;
			sh_p_take(p);
		} else if (t->kind == TK_SEMI) {
			sh_p_take(p);
		} else if (t->kind != TK_NEWLINE || one_line) {
			more = false;
		}
		if (first == NULL) {
			first = n;
		} else {
			if (seq == NULL) {
				seq = sh_p_node(p, SH_N_SEQ, first->line);
				seq->kids = first;
				tail = &first->next;
			}
			*tail = n;
			tail = &n->next;
		}
		if (!more)
			break;
		if (!one_line)
			sh_p_newlines(p);
	}
	sh_p_leave(p);
	return seq != NULL ? seq : first;
}

/* --- entry points --- */

/* What was read of earlier commands is not needed again. */
static void trim(struct sh_parser *p)
{
	if (p->pos >= 65536 || p->pos == p->text.n) {
		buf_drop(&p->text, p->pos);
		p->pos = 0;
	}
}

static void reset(struct sh_parser *p, struct arena *a, struct box_err *err)
{
	p->a = a;
	p->err = err;
	p->depth = 0;
	p->have_tok = false;
	p->decl = false;
	p->in_cond = false;
	p->here = NULL;
	p->scratch.n = 0;
}

int sh_parse_next(struct sh_parser *p, struct sh_tree **out, struct box_err *err)
{
	struct sh_tree *volatile tree = calloc(1, sizeof(*tree));
	struct token *t;

	if (tree == NULL)
		return box_nomem(err, "a command");
	tree->arena.limit = SH_PARSE_MEM;
	tree->refs = 1;
	reset(p, &tree->arena, err);
	trim(p);
	if (setjmp(p->on_error) != 0) {
		sh_tree_unref(tree);
		p->a = NULL;
		return -1;
	}
	t = sh_p_peek(p, true);
	if (t->kind == TK_EOF) {
		sh_tree_unref(tree);
		return 0;
	}
	tree->node = sh_p_list(p, true);
	t = sh_p_peek(p, true);
	if (t->kind != TK_NEWLINE && t->kind != TK_EOF)
		sh_p_unexpected(p, t);
	p->have_tok = false;
	*out = tree;
	return 1;
}

/* Run fn over a fresh parser of text, in arena a. */
static int with_parser(struct arena *a, sv text, struct box_err *err,
    void (*fn)(struct sh_parser *p, void *arg), void *arg)
{
	struct sh_parser p;

	if (!parser_init(&p, text, NULL) || (p.file = strdup("")) == NULL) {
		parser_fini(&p);
		return box_nomem(err, "a text");
	}
	reset(&p, a, err);
	if (setjmp(p.on_error) != 0) {
		parser_fini(&p);
		return -1;
	}
	fn(&p, arg);
	sh_p_read_bodies(&p);
	parser_fini(&p);
	return 0;
}

static void do_dquoted(struct sh_parser *p, void *arg)
{
	*(struct sh_word **)arg = sh_p_word_of(p, sh_p_parts(p, W_HERE), 1);
}

int sh_parse_dquoted(struct arena *a, sv text, struct sh_word **out, struct box_err *err)
{
	return with_parser(a, text, err, do_dquoted, out);
}

static void do_elements(struct sh_parser *p, void *arg)
{
	buf_put_byte(&p->text, ')');
	*(struct sh_assign **)arg = sh_p_elements(p);
	if (p->pos != p->text.n)
		sh_p_fail(p, BOX_EPARSE, 1, "unexpected ')'");
}

int sh_parse_elements(struct arena *a, sv text, struct sh_assign **out, struct box_err *err)
{
	return with_parser(a, text, err, do_elements, out);
}

static void do_subscript(struct sh_parser *p, void *arg)
{
	*(struct sh_word **)arg = sh_p_word_of(p, sh_p_parts(p, W_SUBSCRIPT), 1);
	if (p->pos != p->text.n)
		sh_p_fail(p, BOX_EPARSE, 1, "not a name");
}

int sh_parse_lvalue(
    struct arena *a, const char *text, const char **name, struct sh_word **subscript)
{
	sv s = sv_c(text), head, tail;
	struct box_err err;

	*subscript = NULL;
	if (!sv_cut(s, '[', &head, &tail)) {
		*name = text;
		return sh_is_name(s) ? 0 : -1;
	}
	if (!sh_is_name(head) || (*name = arena_dup(a, head).p) == NULL)
		return -1;
	return with_parser(a, tail, &err, do_subscript, subscript);
}
