/* Units of temporal conditions: patterns, calls, terms, quantifiers, and what stands in
 * parentheses. See tparse_impl.h. */
#include "dogwood/tparse_impl.h"

#include "base/ban.h"

/* Behind `count` or `sum x`: the next token is `for`. */
static bool agg_rest(struct ps *p, struct dw_term *t)
{
	dw_tp_next(p);
	do {
		struct dw_binder *v;

		if (t->agg.nvars != 0)
			dw_tp_next(p);
		v = dw_tp_push(p, t->agg.vars, &t->agg.nvars, sizeof(*v));
		if (v == NULL)
			return false;
		t->agg.vars = v;
		if (!dw_tp_binder(p, &v[t->agg.nvars - 1]))
			return false;
	} while (dw_tp_is_punct(p, ","));
	if (!dw_tp_want(p, ".", "`.`"))
		return false;
	if (!dw_tp_is_word(p, "where"))
		return dw_tp_unexpected(p, "`where`");
	dw_tp_next(p);
	return dw_tp_condition(p, &t->agg.body);
}

/* { "." ident } */
static bool path(struct ps *p, struct dw_term *t)
{
	sv *v = NULL;

	while (dw_tp_is_punct(p, ".")) {
		dw_tp_next(p);
		if (p->tok.kind != CEDAR_T_IDENT)
			return dw_tp_unexpected(p, "attribute name");
		v = dw_tp_push(p, v, &t->path.n, sizeof(*v));
		if (v == NULL)
			return false;
		v[t->path.n - 1] = p->tok.text;
		dw_tp_next(p);
	}
	t->path.v = v;
	t->at = dw_tp_through(t->at, p);
	return true;
}

/* Behind the "{" of a predicate or refinement: args "}". Appends. */
static bool args(struct ps *p, struct dw_arg **vec, uint32_t *n)
{
	bool first = true;

	if (dw_tp_is_punct(p, "}")) {
		dw_tp_next(p);
		return true;
	}
	do {
		struct dw_arg *g;
		AUTO_BUF dotted = buf_with(4096);
		sv *steps = NULL;

		if (!first)
			dw_tp_next(p);
		first = false;
		g = dw_tp_push(p, *vec, n, sizeof(*g));
		if (g == NULL)
			return false;
		*vec = g;
		g = &g[*n - 1];
		g->at = p->tok.span;
		do {
			if (g->npath != 0)
				dw_tp_next(p);
			if (p->tok.kind != CEDAR_T_IDENT)
				return dw_tp_unexpected(p, "field name");
			steps = dw_tp_push(p, steps, &g->npath, sizeof(*steps));
			if (steps == NULL)
				return false;
			steps[g->npath - 1] = p->tok.text;
			if (g->npath != 1)
				buf_put_byte(&dotted, '.');
			buf_put_sv(&dotted, p->tok.text);
			dw_tp_next(p);
		} while (dw_tp_is_punct(p, "."));
		g->path = steps;
		g->dotted = arena_dup(p->o->a, buf_sv(&dotted));
		if (g->dotted.p == NULL || !buf_ok(&dotted))
			return dw_tp_no_room(p);
		g->at = dw_tp_through(g->at, p);
		if (!dw_tp_want(p, ":", "`:`") || !dw_tp_term(p, &g->term))
			return false;
	} while (dw_tp_is_punct(p, ","));
	return dw_tp_want(p, "}", "`,` or `}`");
}

/* { "{" args "}" } */
static bool groups(struct ps *p, struct dw_arg **vec, uint32_t *n)
{
	while (dw_tp_is_punct(p, "{")) {
		dw_tp_next(p);
		if (!args(p, vec, n))
			return false;
	}
	return true;
}

/* The next tokens are ident "::": an entity, or a predicate. */
static bool entity_or_pred(struct ps *p, struct unit *out)
{
	struct cedar_span at = p->tok.span;
	sv ns = p->tok.text, id;
	const char *full;

	dw_tp_next(p);
	for (;;) {
		dw_tp_next(p); /* the :: */
		if (p->tok.kind == CEDAR_T_STRING)
			break;
		if (p->tok.kind != CEDAR_T_IDENT)
			return dw_tp_unexpected(p, "identifier");
		full = arena_printf(p->o->a, SV_FMT "::" SV_FMT, SV_ARG(ns), SV_ARG(p->tok.text));
		if (full == NULL)
			return dw_tp_no_room(p);
		ns = sv_c(full);
		dw_tp_next(p);
		if (!dw_tp_is_punct(p, "::"))
			return dw_tp_unexpected(p, "`::`");
	}
	if (!dw_tp_string_tok(p, &id))
		return false;
	if (!dw_tp_is_punct(p, "::")) {
		out->is = UNIT_TERM;
		out->t = dw_tp_new_term(p, DW_TERM_LIT, dw_tp_through(at, p));
		if (out->t == NULL)
			return false;
		out->t->lit = dw_ent(ns, id);
		return true;
	}
	dw_tp_next(p);
	if (p->tok.kind != CEDAR_T_IDENT)
		return dw_tp_unexpected(p, "event kind");
	out->is = UNIT_COND;
	out->c = dw_tp_new_cond(p, DW_C_PRED, at);
	if (out->c == NULL)
		return false;
	out->c->pred.ns = ns;
	out->c->pred.id = id;
	out->c->pred.kind = p->tok.text;
	dw_tp_next(p);
	if (!dw_tp_is_punct(p, "{"))
		return dw_tp_unexpected(p, "`{`");
	if (!groups(p, &out->c->pred.args, &out->c->pred.nargs))
		return false;
	out->c->at = dw_tp_through(at, p);
	return true;
}

static bool call_arg(struct ps *p, struct dw_call_arg *out)
{
	struct unit u = { 0 };
	struct cedar_tok t2;

	if (p->tok.kind == CEDAR_T_INT) {
		t2 = dw_tp_peek(p);
		if (t2.kind == CEDAR_T_IDENT)
			return dw_tp_window_value(p, &out->window);
	}
	if (dw_tp_is_punct(p, "!"))
		return dw_tp_condition(p, &out->cond);
	if (!dw_tp_unit(p, &u))
		return false;
	if (dw_tp_is_punct(p, ",") || dw_tp_is_punct(p, ")")) {
		if (u.is != UNIT_COND)
			out->term = u.t;
		if (u.is != UNIT_TERM)
			out->cond = u.c;
		return true;
	}
	return dw_tp_condition_from(p, &u, &out->cond);
}

/* ident "(" */
static bool call(struct ps *p, struct unit *out)
{
	struct dw_call *k = ARENA_NEW(p->o->a, struct dw_call);

	if (k == NULL)
		return dw_tp_no_room(p);
	if (!dw_tp_deeper(p))
		return false;
	k->name = p->tok.text;
	k->at = k->name_at = p->tok.span;
	dw_tp_next(p);
	dw_tp_next(p);
	if (!dw_tp_is_punct(p, ")")) {
		do {
			struct dw_call_arg *v;

			if (k->nargs != 0)
				dw_tp_next(p);
			v = dw_tp_push(p, k->args, &k->nargs, sizeof(*v));
			if (v == NULL)
				return false;
			k->args = v;
			if (!call_arg(p, &v[k->nargs - 1]))
				return false;
		} while (dw_tp_is_punct(p, ","));
	}
	if (!dw_tp_want(p, ")", "`,` or `)`"))
		return false;
	p->depth--;
	k->at = dw_tp_through(k->at, p);
	out->is = UNIT_EITHER;
	out->t = dw_tp_new_term(p, DW_TERM_CALL, k->at);
	out->c = out->t != NULL ? dw_tp_new_cond(p, DW_C_CALL, k->at) : NULL;
	if (out->c == NULL)
		return false;
	out->t->call = out->c->call = k;
	return true;
}

/* The next token is ?name. */
static bool param(struct ps *p, struct unit *out)
{
	struct cedar_span at = p->tok.span;
	sv name = p->tok.text;

	dw_tp_next(p);
	out->is = UNIT_EITHER;
	out->c = dw_tp_new_cond(p, DW_C_PARAM, at);
	if (out->c == NULL)
		return false;
	out->c->param.name = name;
	if (dw_tp_is_punct(p, "{")) {
		out->is = UNIT_COND;
		out->c->param.refined = true;
		if (!groups(p, &out->c->param.args, &out->c->param.nargs))
			return false;
		out->c->at = dw_tp_through(at, p);
		return true;
	}
	out->t = dw_tp_new_term(p, DW_TERM_PARAM, at);
	if (out->t == NULL)
		return false;
	out->t->var.name = name;
	out->t->var.slot = DW_NO_SLOT;
	return true;
}

static bool array(struct ps *p, struct unit *out)
{
	struct cedar_span at = p->tok.span;
	struct dw_term *t = dw_tp_new_term(p, DW_TERM_ARRAY, at), **v = NULL;

	if (t == NULL || !dw_tp_deeper(p))
		return false;
	dw_tp_next(p);
	if (!dw_tp_is_punct(p, "]")) {
		do {
			if (t->items.n != 0)
				dw_tp_next(p);
			v = dw_tp_push(p, v, &t->items.n, sizeof(struct dw_term *));
			if (v == NULL || !dw_tp_term(p, &v[t->items.n - 1]))
				return false;
		} while (dw_tp_is_punct(p, ","));
	}
	if (!dw_tp_want(p, "]", "`,` or `]`"))
		return false;
	p->depth--;
	t->items.v = v;
	t->at = dw_tp_through(at, p);
	out->is = UNIT_TERM;
	out->t = t;
	return true;
}

/* "(" : a condition in parentheses, or an aggregate as a term. */
static bool paren(struct ps *p, struct unit *out)
{
	struct cedar_span at = p->tok.span;

	if (!dw_tp_deeper(p))
		return false;
	dw_tp_next(p);
	if (dw_tp_is_punct(p, "!")) {
		out->is = UNIT_COND;
		if (!dw_tp_condition(p, &out->c) || !dw_tp_want(p, ")", "`)`"))
			return false;
		p->depth--;
		return true;
	}
	if (!dw_tp_unit(p, out))
		return false;
	if (dw_tp_is_punct(p, ")") &&
	    ((out->is == UNIT_TERM && out->t->kind == DW_TERM_AGG) || out->is == UNIT_EITHER)) {
		dw_tp_next(p);
		p->depth--;
		if (out->is == UNIT_TERM)
			out->t->at = dw_tp_through(at, p);
		return true;
	}
	if (!dw_tp_condition_from(p, out, &out->c) || !dw_tp_want(p, ")", "`&&` or `)`"))
		return false;
	out->is = UNIT_COND;
	p->depth--;
	return true;
}

static bool exists(struct ps *p, struct unit *out)
{
	struct cedar_span at = p->tok.span;
	struct dw_cond *c = dw_tp_new_cond(p, DW_C_EXISTS, at);

	if (c == NULL || !dw_tp_deeper(p))
		return false;
	dw_tp_next(p);
	if (!dw_tp_binder(p, &c->exists.var) || !dw_tp_want(p, ".", "`.`") ||
	    !dw_tp_condition(p, &c->exists.body))
		return false;
	p->depth--;
	c->at = dw_tp_through(at, p);
	out->is = UNIT_COND;
	out->c = c;
	return true;
}

static bool once(struct ps *p, enum dw_cond_kind k, struct unit *out)
{
	struct cedar_span at = p->tok.span;
	struct dw_cond *c = dw_tp_new_cond(p, k, at);

	if (c == NULL || !dw_tp_deeper(p))
		return false;
	dw_tp_next(p);
	if (!dw_tp_within(p, &c->once.w) || !dw_tp_atom(p, &c->once.body))
		return false;
	p->depth--;
	c->at = dw_tp_through(at, p);
	out->is = UNIT_COND;
	out->c = c;
	return true;
}

static bool tp(struct ps *p, struct unit *out)
{
	struct cedar_span at = p->tok.span;
	struct dw_cond *c = dw_tp_new_cond(p, DW_C_TP, at);

	if (c == NULL)
		return false;
	dw_tp_next(p);
	dw_tp_next(p);
	c->tp.slot = DW_NO_SLOT;
	if (!dw_tp_binder_name(p, &c->tp.name) || !dw_tp_want(p, ")", "`)`"))
		return false;
	c->at = dw_tp_through(at, p);
	out->is = UNIT_COND;
	out->c = c;
	return true;
}

/* A name that begins neither an entity nor a call: keyword, variable, request term. */
static bool word(struct ps *p, struct unit *out)
{
	struct cedar_span at = p->tok.span;
	sv name = p->tok.text;
	struct cedar_tok t2 = dw_tp_peek(p);
	bool is_count = sv_eq(name, SV("count"));

	out->is = UNIT_TERM;
	if (sv_eq(name, SV("true")) || sv_eq(name, SV("false"))) {
		out->t = dw_tp_new_term(p, DW_TERM_LIT, at);
		if (out->t == NULL)
			return false;
		out->t->lit = dw_bool(name.n == 4);
		dw_tp_next(p);
		return true;
	}
	if (sv_eq(name, SV("_"))) {
		out->t = dw_tp_new_term(p, DW_TERM_WILD, at);
		dw_tp_next(p);
		return out->t != NULL;
	}
	if (sv_eq(name, SV("context")) || sv_eq(name, SV("principal")) ||
	    sv_eq(name, SV("resource"))) {
		out->t = dw_tp_new_term(p,
		    name.p[0] == 'c'   ? DW_TERM_CONTEXT
		    : name.p[0] == 'p' ? DW_TERM_PRINCIPAL
		                       : DW_TERM_RESOURCE,
		    at);
		if (out->t == NULL)
			return false;
		dw_tp_next(p);
		if (name.p[0] == 'c' && !dw_tp_is_punct(p, "."))
			return dw_tp_unexpected(p, "`.`");
		return path(p, out->t);
	}
	if (is_count || sv_eq(name, SV("sum"))) {
		out->t = dw_tp_new_term(p, DW_TERM_AGG, at);
		if (out->t == NULL)
			return false;
		out->t->agg.sum = !is_count;
		out->t->agg.summed_slot = DW_NO_SLOT;
		if (is_count && t2.kind == CEDAR_T_IDENT && sv_eq(t2.text, SV("for"))) {
			if (!dw_tp_deeper(p))
				return false;
			dw_tp_next(p);
			if (!agg_rest(p, out->t))
				return false;
			p->depth--;
			out->t->at = dw_tp_through(at, p);
			return true;
		}
		if (!is_count && (t2.kind == CEDAR_T_IDENT || t2.kind == CEDAR_T_SIGIL)) {
			if (!dw_tp_deeper(p))
				return false;
			dw_tp_next(p);
			out->t->agg.summed = p->tok.text;
			out->t->agg.summed_at = p->tok.span;
			dw_tp_next(p);
			if (!dw_tp_is_word(p, "for"))
				return dw_tp_unexpected(p, "'for' clause");
			if (!agg_rest(p, out->t))
				return false;
			p->depth--;
			out->t->at = dw_tp_through(at, p);
			return true;
		}
		out->instead = "'for' clause, comparison operator";
	}
	if (sv_eq(name, SV("formerly")) || sv_eq(name, SV("previous")))
		out->instead = "'within' clause, comparison operator";
	out->t = dw_tp_new_term(p, DW_TERM_VAR, at);
	if (out->t == NULL)
		return false;
	out->t->var.name = name;
	out->t->var.slot = DW_NO_SLOT;
	dw_tp_next(p);
	return true;
}

static bool literal(struct ps *p, struct unit *out)
{
	struct cedar_span at = p->tok.span;
	bool neg = dw_tp_is_punct(p, "-");
	int64_t i = 0;
	sv s;

	out->is = UNIT_TERM;
	out->t = dw_tp_new_term(p, DW_TERM_LIT, at);
	if (out->t == NULL)
		return false;
	if (p->tok.kind == CEDAR_T_STRING) {
		if (!dw_tp_string_tok(p, &s))
			return false;
		out->t->lit = dw_str(s);
		return true;
	}
	if (neg)
		dw_tp_next(p);
	if (!dw_tp_integer(p, neg, &i))
		return false;
	out->t->lit = dw_int(i);
	out->t->at = dw_tp_through(at, p);
	return true;
}

/* "decimal" "(" string ")" */
static bool decimal(struct ps *p, struct unit *out)
{
	struct cedar_span at = p->tok.span;
	sv s;

	out->is = UNIT_TERM;
	out->t = dw_tp_new_term(p, DW_TERM_LIT, at);
	if (out->t == NULL)
		return false;
	dw_tp_next(p);
	dw_tp_next(p);
	if (!dw_tp_string_tok(p, &s) || !dw_tp_want(p, ")", "`)`"))
		return false;
	out->t->lit = dw_decimal(s);
	out->t->at = dw_tp_through(at, p);
	return true;
}

bool dw_tp_unit(struct ps *p, struct unit *out)
{
	struct cedar_tok t2;

	*out = (struct unit){ 0 };
	if (p->tok.kind == CEDAR_T_STRING || p->tok.kind == CEDAR_T_INT || dw_tp_is_punct(p, "-"))
		return literal(p, out);
	if (dw_tp_is_punct(p, "["))
		return array(p, out);
	if (dw_tp_is_punct(p, "("))
		return paren(p, out);
	if (dw_tp_is_punct(p, "*")) {
		out->is = UNIT_TERM;
		out->t = dw_tp_new_term(p, DW_TERM_WILD, p->tok.span);
		dw_tp_next(p);
		return out->t != NULL;
	}
	if (p->tok.kind == CEDAR_T_SIGIL) {
		if (p->tok.text.p[0] == '?')
			return param(p, out);
		out->is = UNIT_TERM;
		out->t = dw_tp_new_term(p, DW_TERM_VAR, p->tok.span);
		if (out->t == NULL)
			return false;
		out->t->var.name = p->tok.text;
		out->t->var.slot = DW_NO_SLOT;
		dw_tp_next(p);
		return true;
	}
	if (p->tok.kind != CEDAR_T_IDENT)
		return dw_tp_unexpected(p, "condition");
	t2 = dw_tp_peek(p);
	if (t2.kind == CEDAR_T_PUNCT && sv_eq(t2.text, SV("::")))
		return entity_or_pred(p, out);
	if (t2.kind == CEDAR_T_PUNCT && sv_eq(t2.text, SV("("))) {
		if (dw_tp_is_word(p, "decimal"))
			return decimal(p, out);
		if (dw_tp_is_word(p, "exists"))
			return exists(p, out);
		if (dw_tp_is_word(p, "tp"))
			return tp(p, out);
		if (!dw_tp_is_word(p, "formerly") && !dw_tp_is_word(p, "previous") &&
		    !dw_tp_is_word(p, "count") && !dw_tp_is_word(p, "sum"))
			return call(p, out);
	}
	if (t2.kind == CEDAR_T_IDENT && sv_eq(t2.text, SV("within"))) {
		if (dw_tp_is_word(p, "formerly"))
			return once(p, DW_C_FORMERLY, out);
		if (dw_tp_is_word(p, "previous"))
			return once(p, DW_C_PREVIOUS, out);
	}
	return word(p, out);
}

/* A value: a unit that is, or may be, a term. */
bool dw_tp_term(struct ps *p, struct dw_term **out)
{
	struct unit u;

	if (!dw_tp_unit(p, &u))
		return false;
	if (u.is == UNIT_COND) {
		if (!p->bad)
			(void)cedar_diag_add(p->o->ds, CEDAR_ERROR, "parse", &u.c->at, NULL,
			    "unexpected condition, expected a value");
		p->bad = true;
		return false;
	}
	if (u.instead != NULL && u.t->kind == DW_TERM_AGG)
		return dw_tp_unexpected(p, u.instead);
	*out = u.t;
	return true;
}
