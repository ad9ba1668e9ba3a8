/* The parser of temporal conditions. See tparse.h.
 *
 * The grammar is written as ordered alternatives with `comparison` first; here one look at the
 * tokens behind a name or a parenthesis decides instead (tparse_unit.c), so nothing is read
 * twice. */
#include "dogwood/tparse_impl.h"

#include "base/ban.h"

static bool cmp_op(const struct ps *p, enum dw_cmp *op)
{
	static const struct {
		const char *s;
		enum dw_cmp op;
	} ops[] = { { "<=", DW_LE }, { ">=", DW_GE }, { "!=", DW_NE }, { "==", DW_EQ },
		{ "<", DW_LT }, { ">", DW_GT } };

	if (p->tok.kind != CEDAR_T_PUNCT)
		return false;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (sv_eq(p->tok.text, sv_c(ops[i].s))) {
			*op = ops[i].op;
			return true;
		}
	}
	return false;
}

/* A unit, made a condition: a comparison when an operator follows. */
static bool conjunct_from(struct ps *p, const struct unit *u, struct dw_cond **out)
{
	struct dw_cond *c;
	enum dw_cmp op;

	if (u->is != UNIT_COND && cmp_op(p, &op)) {
		c = dw_tp_new_cond(p, DW_C_CMP, u->t->at);
		if (c == NULL)
			return false;
		c->cmp.op = op;
		c->cmp.l = u->t;
		dw_tp_next(p);
		if (!dw_tp_term(p, &c->cmp.r))
			return false;
		c->at = dw_tp_through(u->t->at, p);
		*out = c;
		return true;
	}
	if (u->is == UNIT_TERM) {
		size_t n = p->o->ds->n;

		dw_tp_unexpected(p, u->instead != NULL ? u->instead : "comparison operator");
		if (u->t->kind == DW_TERM_LIT && u->t->lit.tag == DW_ENTITY && p->o->ds->n > n)
			p->o->ds->d[n].hint = sv_c("an event is an action and a kind: "
			                           "`App::Action::\"read\"::request{}`");
		return false;
	}
	*out = u->c;
	return true;
}

/* What may stand behind `within W`: no bare formerly, previous, exists. */
bool dw_tp_atom(struct ps *p, struct dw_cond **out)
{
	struct unit u;

	if (dw_tp_is_punct(p, "!") ||
	    (p->tok.kind == CEDAR_T_IDENT &&
	        (dw_tp_is_word(p, "formerly") || dw_tp_is_word(p, "previous")) &&
	        dw_tp_peek(p).kind == CEDAR_T_IDENT) ||
	    (dw_tp_is_word(p, "exists") && dw_tp_peek_punct(p, "(")))
		return dw_tp_unexpected(p, "`(` or a predicate");
	return dw_tp_unit(p, &u) && conjunct_from(p, &u, out);
}

static bool step_from(struct ps *p, const struct unit *first, struct dw_cond **out)
{
	struct cedar_span at = first != NULL && first->c != NULL ? first->c->at
	                       : first != NULL                   ? first->t->at
	                                                         : p->tok.span;
	unsigned nots = 0;
	struct dw_cond *c, *n;
	struct unit u;

	if (first != NULL) {
		if (!conjunct_from(p, first, &c))
			return false;
	} else {
		while (dw_tp_is_punct(p, "!")) {
			nots++;
			if (!dw_tp_deeper(p))
				return false;
			dw_tp_next(p);
		}
		if (!dw_tp_unit(p, &u) || !conjunct_from(p, &u, &c))
			return false;
		p->depth -= nots;
	}
	for (; nots != 0; nots--) {
		n = dw_tp_new_cond(p, DW_C_NOT, dw_tp_through(at, p));
		if (n == NULL)
			return false;
		n->neg = c;
		c = n;
	}
	if (dw_tp_is_word(p, "since")) {
		n = dw_tp_new_cond(p, DW_C_SINCE, at);
		if (n == NULL || !dw_tp_deeper(p))
			return false;
		dw_tp_next(p);
		n->since.left = c;
		if (!dw_tp_within(p, &n->since.w) || !dw_tp_atom(p, &n->since.right))
			return false;
		p->depth--;
		n->at = dw_tp_through(at, p);
		c = n;
	}
	*out = c;
	return true;
}

/* Put c behind the members of and; members of an AND become its own. */
static bool conjoin(struct ps *p, struct dw_cond *and, struct dw_cond *c)
{
	struct dw_cond **v = and->all.v;

	if (c->kind == DW_C_AND) {
		for (uint32_t i = 0; i < c->all.n; i++) {
			if (!conjoin(p, and, c->all.v[i]))
				return false;
		}
		return true;
	}
	v = dw_tp_push(p, v, &and->all.n, sizeof(struct dw_cond *));
	if (v == NULL)
		return false;
	and->all.v = v;
	v[ and->all.n - 1] = c;
	return true;
}

bool dw_tp_condition_from(struct ps *p, const struct unit *first, struct dw_cond **out)
{
	struct dw_cond *c, *more, *and;

	if (!step_from(p, first, &c))
		return false;
	if (!dw_tp_is_punct(p, "&&")) {
		*out = c;
		return true;
	}
	and = dw_tp_new_cond(p, DW_C_AND, c->at);
	if (and == NULL || !conjoin(p, and, c))
		return false;
	while (dw_tp_is_punct(p, "&&")) {
		dw_tp_next(p);
		if (!step_from(p, NULL, &more) || !conjoin(p, and, more))
			return false;
	}
	and->at = dw_tp_through(c->at, p);
	*out = and;
	return true;
}

bool dw_tp_condition(struct ps *p, struct dw_cond **out)
{
	return dw_tp_condition_from(p, NULL, out);
}

bool dw_tparse(const struct dw_tparse *o, sv text, struct cedar_span at, struct dw_body *out)
{
	struct ps p = { .o = o };
	struct unit u;

	*out = (struct dw_body){ 0 };
	cedar_lex_init(&p.lex, text, at);
	dw_tp_next(&p);
	if (dw_tp_is_punct(&p, "!")) {
		if (!dw_tp_condition(&p, &out->cond))
			return false;
	} else {
		if (!dw_tp_unit(&p, &u))
			return false;
		if (p.tok.kind == CEDAR_T_END && u.is != UNIT_COND && o->macro_body &&
		    (u.is == UNIT_EITHER || u.t->kind == DW_TERM_AGG)) {
			out->agg = u.t;
			if (u.is == UNIT_EITHER)
				out->cond = u.c;
			return true;
		}
		if (!dw_tp_condition_from(&p, &u, &out->cond))
			return false;
	}
	if (p.tok.kind != CEDAR_T_END)
		return dw_tp_unexpected(&p, NULL);
	return true;
}
