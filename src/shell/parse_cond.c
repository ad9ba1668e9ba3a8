/* [[ ... ]]: conditions (bash). Input is hostile program text. */
#include "shell/parse_cmd.h"

#include <string.h>

#include "base/ban.h"

static struct sh_cond *cond_or(struct sh_parser *p);

static struct sh_cond *cond_new(struct sh_parser *p, enum sh_cond_kind kind)
{
	struct sh_cond *c = P_NEW(p, struct sh_cond);

	c->kind = kind;
	return c;
}

static void cond_newlines(struct sh_parser *p)
{
	while (sh_p_peek(p, false)->kind == TK_NEWLINE)
		sh_p_take(p);
}

static bool unary_op(sv s)
{
	return s.p != NULL && s.n == 2 && s.p[0] == '-' &&
	       strchr("abcdefghknoprstuvwxzGLNORS", s.p[1]) != NULL;
}

static bool binary_op(sv s)
{
	static const char *const ops[] = { "=", "==", "!=", "=~", "-eq", "-ne", "-lt", "-le", "-gt",
		"-ge", "-nt", "-ot", "-ef", NULL };

	for (size_t i = 0; s.p != NULL && ops[i] != NULL; i++) {
		if (sv_eq(s, sv_c(ops[i])))
			return true;
	}
	return false;
}

static struct sh_word *cond_word(struct sh_parser *p)
{
	struct token *t = sh_p_peek(p, false);
	struct sh_word *w = t->word;

	if (t->kind != TK_WORD)
		sh_p_unexpected(p, t);
	sh_p_take(p);
	return w;
}

static struct sh_cond *cond_binary(struct sh_parser *p, struct sh_word *left, const char *op)
{
	struct sh_cond *c = cond_new(p, SH_C_BINARY);

	c->left = left;
	c->op = op;
	sh_p_take(p);
	if (strcmp(op, "=~") == 0) {
		int line;

		sh_p_skip_blanks(p);
		line = p->line;
		c->right = sh_p_word_of(p, sh_p_parts(p, W_REGEX), line);
		if (c->right->parts == NULL)
			sh_p_unexpected(p, sh_p_peek(p, false));
	} else {
		c->right = cond_word(p);
	}
	return c;
}

static struct sh_cond *cond_primary(struct sh_parser *p)
{
	struct token *t = sh_p_peek(p, false);
	struct sh_cond *c;
	struct sh_word *w;
	sv lit;

	if (t->kind == TK_LPAREN) {
		sh_p_take(p);
		cond_newlines(p);
		c = cond_or(p);
		cond_newlines(p);
		if (sh_p_peek(p, false)->kind != TK_RPAREN)
			sh_p_unexpected(p, &p->tok);
		sh_p_take(p);
		return c;
	}
	lit = t->lit;
	if (t->kind == TK_WORD && lit.p != NULL && sv_eq(lit, SV("]]")))
		sh_p_unexpected(p, t);
	w = cond_word(p);
	t = sh_p_peek(p, false);
	if (unary_op(lit) && t->kind == TK_WORD && !binary_op(t->lit) &&
	    !(t->lit.p != NULL && sv_eq(t->lit, SV("]]")))) {
		c = cond_new(p, SH_C_UNARY);
		c->op = sh_p_dup(p, lit);
		c->right = cond_word(p);
		return c;
	}
	if (t->kind == TK_WORD && binary_op(t->lit))
		return cond_binary(p, w, sh_p_dup(p, t->lit));
	if (t->kind == TK_LESS)
		return cond_binary(p, w, "<");
	if (t->kind == TK_GREAT)
		return cond_binary(p, w, ">");
	c = cond_new(p, SH_C_WORD);
	c->right = w;
	return c;
}

static struct sh_cond *cond_not(struct sh_parser *p)
{
	struct token *t;
	struct sh_cond *c;

	sh_p_enter(p);
	cond_newlines(p);
	t = sh_p_peek(p, false);
	if (t->kind == TK_WORD && t->lit.p != NULL && sv_eq(t->lit, SV("!"))) {
		c = cond_new(p, SH_C_NOT);
		sh_p_take(p);
		c->a = cond_not(p);
	} else {
		c = cond_primary(p);
	}
	cond_newlines(p);
	sh_p_leave(p);
	return c;
}

static struct sh_cond *cond_and(struct sh_parser *p)
{
	struct sh_cond *left = cond_not(p);

	while (sh_p_peek(p, false)->kind == TK_AND) {
		struct sh_cond *c = cond_new(p, SH_C_AND);

		sh_p_take(p);
		c->a = left;
		c->b = cond_not(p);
		left = c;
	}
	return left;
}

static struct sh_cond *cond_or(struct sh_parser *p)
{
	struct sh_cond *left;

	sh_p_enter(p);
	left = cond_and(p);
	while (sh_p_peek(p, false)->kind == TK_OR) {
		struct sh_cond *c = cond_new(p, SH_C_OR);

		sh_p_take(p);
		c->a = left;
		c->b = cond_and(p);
		left = c;
	}
	sh_p_leave(p);
	return left;
}

struct sh_node *sh_p_cond_command(struct sh_parser *p)
{
	struct sh_node *n = sh_p_node(p, SH_N_COND, p->tok.line);
	bool saved = p->in_cond;

	sh_p_take(p);
	p->in_cond = true;
	n->cond = cond_or(p);
	p->in_cond = saved;
	sh_p_expect(p, "]]");
	return n;
}
