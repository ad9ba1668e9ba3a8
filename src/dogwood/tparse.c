/* The parser of temporal conditions. See tparse.h.
 *
 * The grammar is written as ordered alternatives with `comparison` first; here one look at the tokens behind a name or a parenthesis decides instead, so nothing is
 * read twice. A unit is what a conjunct may begin with: a term (then a comparison operator must follow), a condition, or a macro call or parameter, which may be
 * either. */
#include "dogwood/tparse.h"

#include "base/ban.h"

struct ps {
	const struct dw_tparse *o;
	struct cedar_lex lex;
	struct cedar_tok tok;  /* the next token */
	struct cedar_tok prev; /* the one consumed last */
	unsigned depth;
	bool bad;
};

enum unit_is { UNIT_TERM, UNIT_COND, UNIT_EITHER };
struct unit {
	enum unit_is is;
	struct dw_term *t;
	struct dw_cond *c;
	const char
	    *instead; /* what else could have stood behind a bare keyword: "'within' clause" */
};

static bool condition_from(struct ps *p, const struct unit *first, struct dw_cond **out);
static bool condition(struct ps *p, struct dw_cond **out);
static bool term(struct ps *p, struct dw_term **out);
static bool unit(struct ps *p, struct unit *out);
static bool atom(struct ps *p, struct dw_cond **out);

static void next(struct ps *p)
{
	p->prev = p->tok;
	p->tok = cedar_lex_next(&p->lex);
}

static bool is_punct(const struct ps *p, const char *s)
{
	return p->tok.kind == CEDAR_T_PUNCT && sv_eq(p->tok.text, sv_c(s));
}

static bool is_word(const struct ps *p, const char *s)
{
	return p->tok.kind == CEDAR_T_IDENT && sv_eq(p->tok.text, sv_c(s));
}

/* The token after the next one. */
static struct cedar_tok peek(const struct ps *p)
{
	struct cedar_lex l = p->lex;

	return cedar_lex_next(&l);
}

static bool peek_punct(const struct ps *p, const char *s)
{
	struct cedar_tok t = peek(p);

	return t.kind == CEDAR_T_PUNCT && sv_eq(t.text, sv_c(s));
}

static bool unexpected(struct ps *p, const char *expected)
{
	if (!p->bad)
		cedar_tok_unexpected(p->o->ds, &p->tok, expected);
	p->bad = true;
	return false;
}

static bool no_room(struct ps *p)
{
	if (!p->bad)
		(void)cedar_diag_add(p->o->ds, CEDAR_ERROR, "parse", &p->tok.span, NULL,
		    "the policy source is too large to be read");
	p->bad = true;
	return false;
}

static bool deeper(struct ps *p)
{
	if (p->depth < DW_COND_DEPTH) {
		p->depth++;
		return true;
	}
	if (!p->bad)
		(void)cedar_diag_add(p->o->ds, CEDAR_ERROR, "parse", &p->tok.span, NULL,
		    "temporal condition nested deeper than the limit of %d", DW_COND_DEPTH);
	p->bad = true;
	return false;
}

static bool want(struct ps *p, const char *punct, const char *expected)
{
	if (!is_punct(p, punct))
		return unexpected(p, expected);
	next(p);
	return true;
}

static struct cedar_span through(struct cedar_span from, const struct ps *p)
{
	uint32_t end = p->prev.span.off + p->prev.span.len;

	if (end > from.off)
		from.len = end - from.off;
	return from;
}

static struct dw_cond *new_cond(struct ps *p, enum dw_cond_kind k, struct cedar_span at)
{
	struct dw_cond *c = ARENA_NEW(p->o->a, struct dw_cond);

	if (c == NULL) {
		no_room(p);
		return NULL;
	}
	c->kind = k;
	c->at = at;
	return c;
}

static struct dw_term *new_term(struct ps *p, enum dw_term_kind k, struct cedar_span at)
{
	struct dw_term *t = ARENA_NEW(p->o->a, struct dw_term);

	if (t == NULL) {
		no_room(p);
		return NULL;
	}
	t->kind = k;
	t->at = at;
	return t;
}

/* Append to a vector that grows by doubling; *n counts. */
static void *push(struct ps *p, void *vec, uint32_t *n, size_t size)
{
	if ((*n & (*n - 1)) == 0) {
		void *v = arena_grow(p->o->a, vec, *n, *n == 0 ? 1 : (size_t)*n * 2, size);

		if (v == NULL) {
			no_room(p);
			return NULL;
		}
		vec = v;
	}
	++*n;
	return vec;
}

/* The next token is a name: identifier, or in macro bodies ?param or $binder. */
static bool binder_name(struct ps *p, sv *out)
{
	if (p->tok.kind != CEDAR_T_IDENT && p->tok.kind != CEDAR_T_SIGIL)
		return unexpected(p, "identifier");
	*out = p->tok.text;
	next(p);
	return true;
}

static bool string_tok(struct ps *p, sv *out)
{
	cedar_sym s;

	if (p->tok.kind != CEDAR_T_STRING)
		return unexpected(p, "string");
	s = cedar_tok_string(p->o->t, p->o->a, &p->tok, p->o->ds);
	if (s == NULL) {
		p->bad = true;
		return false;
	}
	*out = cedar_sv(s);
	next(p);
	return true;
}

static bool integer(struct ps *p, bool neg, int64_t *out)
{
	uint64_t v;

	if (p->tok.kind != CEDAR_T_INT)
		return unexpected(p, "integer");
	if (!sv_to_u64(p->tok.text, 10, neg ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX, &v)) {
		(void)cedar_diag_add(p->o->ds, CEDAR_ERROR, "parse", &p->tok.span, NULL,
		    "integer literal `" SV_FMT "` is out of range", SV_ARG(p->tok.text));
		p->bad = true;
		return false;
	}
	*out = neg ? (int64_t)(0 - v) : (int64_t)v;
	next(p);
	return true;
}

static bool is_unit(sv s)
{
	return s.n == 1 && (s.p[0] == 's' || s.p[0] == 'm' || s.p[0] == 'h' || s.p[0] == 'd');
}

/* integer unit */
static bool window_value(struct ps *p, struct dw_window **out)
{
	struct dw_window *w = ARENA_NEW(p->o->a, struct dw_window);
	struct cedar_span at = p->tok.span;
	const char *text;

	if (w == NULL)
		return no_room(p);
	w->too_large = !sv_to_u64(p->tok.text, 10, UINT64_MAX, &w->amount);
	text = arena_printf(p->o->a, SV_FMT, SV_ARG(p->tok.text));
	next(p);
	if (p->tok.kind != CEDAR_T_IDENT || !is_unit(p->tok.text))
		return unexpected(p, "time unit ('s', 'm', 'h', or 'd')");
	w->unit = p->tok.text.p[0];
	if (text != NULL)
		text = arena_printf(p->o->a, "%s%c", text, w->unit);
	if (text == NULL)
		return no_room(p);
	w->text = sv_c(text);
	next(p);
	w->at = through(at, p);
	*out = w;
	return true;
}

static bool within(struct ps *p, struct dw_window **out)
{
	if (!is_word(p, "within"))
		return unexpected(p, "'within' clause");
	next(p);
	if (p->tok.kind == CEDAR_T_SIGIL && p->tok.text.p[0] == '?') {
		struct dw_window *w = ARENA_NEW(p->o->a, struct dw_window);

		if (w == NULL)
			return no_room(p);
		w->param = w->text = p->tok.text;
		w->at = p->tok.span;
		next(p);
		*out = w;
		return true;
	}
	if (p->tok.kind != CEDAR_T_INT)
		return unexpected(p, "integer");
	return window_value(p, out);
}

static bool var_type(struct ps *p, struct dw_binder *b)
{
	static const struct {
		const char *name;
		enum dw_vtype t;
	} names[] = {
		{ "Timepoint", DW_T_TIMEPOINT },
		{ "Long", DW_T_LONG },
		{ "String", DW_T_STRING },
		{ "Bool", DW_T_BOOL },
		{ "Boolean", DW_T_BOOL },
		{ "decimal", DW_T_DECIMAL },
		{ "Decimal", DW_T_DECIMAL },
	};
	struct cedar_span at = p->tok.span;
	const char *full;

	if (p->tok.kind != CEDAR_T_IDENT)
		return unexpected(p, "type");
	b->type_name = p->tok.text;
	next(p);
	while (is_punct(p, "::")) {
		next(p);
		if (p->tok.kind != CEDAR_T_IDENT)
			return unexpected(p, "identifier");
		full = arena_printf(
		    p->o->a, SV_FMT "::" SV_FMT, SV_ARG(b->type_name), SV_ARG(p->tok.text));
		if (full == NULL)
			return no_room(p);
		b->type_name = sv_c(full);
		next(p);
	}
	b->type_at = through(at, p);
	b->type = DW_T_NAMED;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (sv_eq(b->type_name, sv_c(names[i].name)))
			b->type = names[i].t;
	}
	return true;
}

/* "(" ident ":" type ")" */
static bool binder(struct ps *p, struct dw_binder *b)
{
	if (!want(p, "(", "`(`"))
		return false;
	b->at = p->tok.span;
	b->slot = DW_NO_SLOT;
	return binder_name(p, &b->name) && want(p, ":", "`:`") && var_type(p, b) &&
	       want(p, ")", "`)`");
}

/* Behind `count` or `sum x`: the next token is `for`. */
static bool agg_rest(struct ps *p, struct dw_term *t)
{
	next(p);
	do {
		struct dw_binder *v;

		if (t->agg.nvars != 0)
			next(p);
		v = push(p, t->agg.vars, &t->agg.nvars, sizeof(*v));
		if (v == NULL)
			return false;
		t->agg.vars = v;
		if (!binder(p, &v[t->agg.nvars - 1]))
			return false;
	} while (is_punct(p, ","));
	if (!want(p, ".", "`.`"))
		return false;
	if (!is_word(p, "where"))
		return unexpected(p, "`where`");
	next(p);
	return condition(p, &t->agg.body);
}

/* { "." ident } */
static bool path(struct ps *p, struct dw_term *t)
{
	sv *v = NULL;

	while (is_punct(p, ".")) {
		next(p);
		if (p->tok.kind != CEDAR_T_IDENT)
			return unexpected(p, "attribute name");
		v = push(p, v, &t->path.n, sizeof(*v));
		if (v == NULL)
			return false;
		v[t->path.n - 1] = p->tok.text;
		next(p);
	}
	t->path.v = v;
	t->at = through(t->at, p);
	return true;
}

/* Behind the "{" of a predicate or refinement: args "}". Appends. */
static bool args(struct ps *p, struct dw_arg **vec, uint32_t *n)
{
	bool first = true;

	if (is_punct(p, "}")) {
		next(p);
		return true;
	}
	do {
		struct dw_arg *g;
		AUTO_BUF dotted = buf_with(4096);
		sv *steps = NULL;

		if (!first)
			next(p);
		first = false;
		g = push(p, *vec, n, sizeof(*g));
		if (g == NULL)
			return false;
		*vec = g;
		g = &g[*n - 1];
		g->at = p->tok.span;
		do {
			if (g->npath != 0)
				next(p);
			if (p->tok.kind != CEDAR_T_IDENT)
				return unexpected(p, "field name");
			steps = push(p, steps, &g->npath, sizeof(*steps));
			if (steps == NULL)
				return false;
			steps[g->npath - 1] = p->tok.text;
			if (g->npath != 1)
				buf_put_byte(&dotted, '.');
			buf_put_sv(&dotted, p->tok.text);
			next(p);
		} while (is_punct(p, "."));
		g->path = steps;
		g->dotted = arena_dup(p->o->a, buf_sv(&dotted));
		if (g->dotted.p == NULL || !buf_ok(&dotted))
			return no_room(p);
		g->at = through(g->at, p);
		if (!want(p, ":", "`:`") || !term(p, &g->term))
			return false;
	} while (is_punct(p, ","));
	return want(p, "}", "`,` or `}`");
}

/* { "{" args "}" } */
static bool groups(struct ps *p, struct dw_arg **vec, uint32_t *n)
{
	while (is_punct(p, "{")) {
		next(p);
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

	next(p);
	for (;;) {
		next(p); /* the :: */
		if (p->tok.kind == CEDAR_T_STRING)
			break;
		if (p->tok.kind != CEDAR_T_IDENT)
			return unexpected(p, "identifier");
		full = arena_printf(p->o->a, SV_FMT "::" SV_FMT, SV_ARG(ns), SV_ARG(p->tok.text));
		if (full == NULL)
			return no_room(p);
		ns = sv_c(full);
		next(p);
		if (!is_punct(p, "::"))
			return unexpected(p, "`::`");
	}
	if (!string_tok(p, &id))
		return false;
	if (!is_punct(p, "::")) {
		out->is = UNIT_TERM;
		out->t = new_term(p, DW_TERM_LIT, through(at, p));
		if (out->t == NULL)
			return false;
		out->t->lit = dw_ent(ns, id);
		return true;
	}
	next(p);
	if (p->tok.kind != CEDAR_T_IDENT)
		return unexpected(p, "event kind");
	out->is = UNIT_COND;
	out->c = new_cond(p, DW_C_PRED, at);
	if (out->c == NULL)
		return false;
	out->c->pred.ns = ns;
	out->c->pred.id = id;
	out->c->pred.kind = p->tok.text;
	next(p);
	if (!is_punct(p, "{"))
		return unexpected(p, "`{`");
	if (!groups(p, &out->c->pred.args, &out->c->pred.nargs))
		return false;
	out->c->at = through(at, p);
	return true;
}

static bool call_arg(struct ps *p, struct dw_call_arg *out)
{
	struct unit u = { 0 };
	struct cedar_tok t2;

	if (p->tok.kind == CEDAR_T_INT) {
		t2 = peek(p);
		if (t2.kind == CEDAR_T_IDENT)
			return window_value(p, &out->window);
	}
	if (is_punct(p, "!"))
		return condition(p, &out->cond);
	if (!unit(p, &u))
		return false;
	if (is_punct(p, ",") || is_punct(p, ")")) {
		if (u.is != UNIT_COND)
			out->term = u.t;
		if (u.is != UNIT_TERM)
			out->cond = u.c;
		return true;
	}
	return condition_from(p, &u, &out->cond);
}

/* ident "(" */
static bool call(struct ps *p, struct unit *out)
{
	struct dw_call *k = ARENA_NEW(p->o->a, struct dw_call);

	if (k == NULL)
		return no_room(p);
	if (!deeper(p))
		return false;
	k->name = p->tok.text;
	k->at = k->name_at = p->tok.span;
	next(p);
	next(p);
	if (!is_punct(p, ")")) {
		do {
			struct dw_call_arg *v;

			if (k->nargs != 0)
				next(p);
			v = push(p, k->args, &k->nargs, sizeof(*v));
			if (v == NULL)
				return false;
			k->args = v;
			if (!call_arg(p, &v[k->nargs - 1]))
				return false;
		} while (is_punct(p, ","));
	}
	if (!want(p, ")", "`,` or `)`"))
		return false;
	p->depth--;
	k->at = through(k->at, p);
	out->is = UNIT_EITHER;
	out->t = new_term(p, DW_TERM_CALL, k->at);
	out->c = out->t != NULL ? new_cond(p, DW_C_CALL, k->at) : NULL;
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

	next(p);
	out->is = UNIT_EITHER;
	out->c = new_cond(p, DW_C_PARAM, at);
	if (out->c == NULL)
		return false;
	out->c->param.name = name;
	if (is_punct(p, "{")) {
		out->is = UNIT_COND;
		out->c->param.refined = true;
		if (!groups(p, &out->c->param.args, &out->c->param.nargs))
			return false;
		out->c->at = through(at, p);
		return true;
	}
	out->t = new_term(p, DW_TERM_PARAM, at);
	if (out->t == NULL)
		return false;
	out->t->var.name = name;
	out->t->var.slot = DW_NO_SLOT;
	return true;
}

static bool array(struct ps *p, struct unit *out)
{
	struct cedar_span at = p->tok.span;
	struct dw_term *t = new_term(p, DW_TERM_ARRAY, at), **v = NULL;

	if (t == NULL || !deeper(p))
		return false;
	next(p);
	if (!is_punct(p, "]")) {
		do {
			if (t->items.n != 0)
				next(p);
			v = push(p, v, &t->items.n, sizeof(struct dw_term *));
			if (v == NULL || !term(p, &v[t->items.n - 1]))
				return false;
		} while (is_punct(p, ","));
	}
	if (!want(p, "]", "`,` or `]`"))
		return false;
	p->depth--;
	t->items.v = v;
	t->at = through(at, p);
	out->is = UNIT_TERM;
	out->t = t;
	return true;
}

/* "(" : a condition in parentheses, or an aggregate as a term. */
static bool paren(struct ps *p, struct unit *out)
{
	struct cedar_span at = p->tok.span;

	if (!deeper(p))
		return false;
	next(p);
	if (is_punct(p, "!")) {
		out->is = UNIT_COND;
		if (!condition(p, &out->c) || !want(p, ")", "`)`"))
			return false;
		p->depth--;
		return true;
	}
	if (!unit(p, out))
		return false;
	if (is_punct(p, ")") &&
	    ((out->is == UNIT_TERM && out->t->kind == DW_TERM_AGG) || out->is == UNIT_EITHER)) {
		next(p);
		p->depth--;
		if (out->is == UNIT_TERM)
			out->t->at = through(at, p);
		return true;
	}
	if (!condition_from(p, out, &out->c) || !want(p, ")", "`&&` or `)`"))
		return false;
	out->is = UNIT_COND;
	p->depth--;
	return true;
}

static bool exists(struct ps *p, struct unit *out)
{
	struct cedar_span at = p->tok.span;
	struct dw_cond *c = new_cond(p, DW_C_EXISTS, at);

	if (c == NULL || !deeper(p))
		return false;
	next(p);
	if (!binder(p, &c->exists.var) || !want(p, ".", "`.`") || !condition(p, &c->exists.body))
		return false;
	p->depth--;
	c->at = through(at, p);
	out->is = UNIT_COND;
	out->c = c;
	return true;
}

static bool once(struct ps *p, enum dw_cond_kind k, struct unit *out)
{
	struct cedar_span at = p->tok.span;
	struct dw_cond *c = new_cond(p, k, at);

	if (c == NULL || !deeper(p))
		return false;
	next(p);
	if (!within(p, &c->once.w) || !atom(p, &c->once.body))
		return false;
	p->depth--;
	c->at = through(at, p);
	out->is = UNIT_COND;
	out->c = c;
	return true;
}

static bool tp(struct ps *p, struct unit *out)
{
	struct cedar_span at = p->tok.span;
	struct dw_cond *c = new_cond(p, DW_C_TP, at);

	if (c == NULL)
		return false;
	next(p);
	next(p);
	c->tp.slot = DW_NO_SLOT;
	if (!binder_name(p, &c->tp.name) || !want(p, ")", "`)`"))
		return false;
	c->at = through(at, p);
	out->is = UNIT_COND;
	out->c = c;
	return true;
}

/* A name that begins neither an entity nor a call: keyword, variable, request term. */
static bool word(struct ps *p, struct unit *out)
{
	struct cedar_span at = p->tok.span;
	sv name = p->tok.text;
	struct cedar_tok t2 = peek(p);
	bool is_count = sv_eq(name, SV("count"));

	out->is = UNIT_TERM;
	if (sv_eq(name, SV("true")) || sv_eq(name, SV("false"))) {
		out->t = new_term(p, DW_TERM_LIT, at);
		if (out->t == NULL)
			return false;
		out->t->lit = dw_bool(name.n == 4);
		next(p);
		return true;
	}
	if (sv_eq(name, SV("_"))) {
		out->t = new_term(p, DW_TERM_WILD, at);
		next(p);
		return out->t != NULL;
	}
	if (sv_eq(name, SV("context")) || sv_eq(name, SV("principal")) ||
	    sv_eq(name, SV("resource"))) {
		out->t = new_term(p,
		    name.p[0] == 'c'   ? DW_TERM_CONTEXT
		    : name.p[0] == 'p' ? DW_TERM_PRINCIPAL
		                       : DW_TERM_RESOURCE,
		    at);
		if (out->t == NULL)
			return false;
		next(p);
		if (name.p[0] == 'c' && !is_punct(p, "."))
			return unexpected(p, "`.`");
		return path(p, out->t);
	}
	if (is_count || sv_eq(name, SV("sum"))) {
		out->t = new_term(p, DW_TERM_AGG, at);
		if (out->t == NULL)
			return false;
		out->t->agg.sum = !is_count;
		out->t->agg.summed_slot = DW_NO_SLOT;
		if (is_count && t2.kind == CEDAR_T_IDENT && sv_eq(t2.text, SV("for"))) {
			if (!deeper(p))
				return false;
			next(p);
			if (!agg_rest(p, out->t))
				return false;
			p->depth--;
			out->t->at = through(at, p);
			return true;
		}
		if (!is_count && (t2.kind == CEDAR_T_IDENT || t2.kind == CEDAR_T_SIGIL)) {
			if (!deeper(p))
				return false;
			next(p);
			out->t->agg.summed = p->tok.text;
			out->t->agg.summed_at = p->tok.span;
			next(p);
			if (!is_word(p, "for"))
				return unexpected(p, "'for' clause");
			if (!agg_rest(p, out->t))
				return false;
			p->depth--;
			out->t->at = through(at, p);
			return true;
		}
		out->instead = "'for' clause, comparison operator";
	}
	if (sv_eq(name, SV("formerly")) || sv_eq(name, SV("previous")))
		out->instead = "'within' clause, comparison operator";
	out->t = new_term(p, DW_TERM_VAR, at);
	if (out->t == NULL)
		return false;
	out->t->var.name = name;
	out->t->var.slot = DW_NO_SLOT;
	next(p);
	return true;
}

static bool literal(struct ps *p, struct unit *out)
{
	struct cedar_span at = p->tok.span;
	bool neg = is_punct(p, "-");
	int64_t i = 0;
	sv s;

	out->is = UNIT_TERM;
	out->t = new_term(p, DW_TERM_LIT, at);
	if (out->t == NULL)
		return false;
	if (p->tok.kind == CEDAR_T_STRING) {
		if (!string_tok(p, &s))
			return false;
		out->t->lit = dw_str(s);
		return true;
	}
	if (neg)
		next(p);
	if (!integer(p, neg, &i))
		return false;
	out->t->lit = dw_int(i);
	out->t->at = through(at, p);
	return true;
}

/* "decimal" "(" string ")" */
static bool decimal(struct ps *p, struct unit *out)
{
	struct cedar_span at = p->tok.span;
	sv s;

	out->is = UNIT_TERM;
	out->t = new_term(p, DW_TERM_LIT, at);
	if (out->t == NULL)
		return false;
	next(p);
	next(p);
	if (!string_tok(p, &s) || !want(p, ")", "`)`"))
		return false;
	out->t->lit = dw_decimal(s);
	out->t->at = through(at, p);
	return true;
}

static bool unit(struct ps *p, struct unit *out)
{
	struct cedar_tok t2;

	*out = (struct unit){ 0 };
	if (p->tok.kind == CEDAR_T_STRING || p->tok.kind == CEDAR_T_INT || is_punct(p, "-"))
		return literal(p, out);
	if (is_punct(p, "["))
		return array(p, out);
	if (is_punct(p, "("))
		return paren(p, out);
	if (is_punct(p, "*")) {
		out->is = UNIT_TERM;
		out->t = new_term(p, DW_TERM_WILD, p->tok.span);
		next(p);
		return out->t != NULL;
	}
	if (p->tok.kind == CEDAR_T_SIGIL) {
		if (p->tok.text.p[0] == '?')
			return param(p, out);
		out->is = UNIT_TERM;
		out->t = new_term(p, DW_TERM_VAR, p->tok.span);
		if (out->t == NULL)
			return false;
		out->t->var.name = p->tok.text;
		out->t->var.slot = DW_NO_SLOT;
		next(p);
		return true;
	}
	if (p->tok.kind != CEDAR_T_IDENT)
		return unexpected(p, "condition");
	t2 = peek(p);
	if (t2.kind == CEDAR_T_PUNCT && sv_eq(t2.text, SV("::")))
		return entity_or_pred(p, out);
	if (t2.kind == CEDAR_T_PUNCT && sv_eq(t2.text, SV("("))) {
		if (is_word(p, "decimal"))
			return decimal(p, out);
		if (is_word(p, "exists"))
			return exists(p, out);
		if (is_word(p, "tp"))
			return tp(p, out);
		if (!is_word(p, "formerly") && !is_word(p, "previous") && !is_word(p, "count") &&
		    !is_word(p, "sum"))
			return call(p, out);
	}
	if (t2.kind == CEDAR_T_IDENT && sv_eq(t2.text, SV("within"))) {
		if (is_word(p, "formerly"))
			return once(p, DW_C_FORMERLY, out);
		if (is_word(p, "previous"))
			return once(p, DW_C_PREVIOUS, out);
	}
	return word(p, out);
}

/* A value: a unit that is, or may be, a term. */
static bool term(struct ps *p, struct dw_term **out)
{
	struct unit u;

	if (!unit(p, &u))
		return false;
	if (u.is == UNIT_COND) {
		if (!p->bad)
			(void)cedar_diag_add(p->o->ds, CEDAR_ERROR, "parse", &u.c->at, NULL,
			    "unexpected condition, expected a value");
		p->bad = true;
		return false;
	}
	if (u.instead != NULL && u.t->kind == DW_TERM_AGG)
		return unexpected(p, u.instead);
	*out = u.t;
	return true;
}

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
		c = new_cond(p, DW_C_CMP, u->t->at);
		if (c == NULL)
			return false;
		c->cmp.op = op;
		c->cmp.l = u->t;
		next(p);
		if (!term(p, &c->cmp.r))
			return false;
		c->at = through(u->t->at, p);
		*out = c;
		return true;
	}
	if (u->is == UNIT_TERM)
		return unexpected(p, u->instead != NULL ? u->instead : "comparison operator");
	*out = u->c;
	return true;
}

/* What may stand behind `within W`: no bare formerly, previous, exists. */
static bool atom(struct ps *p, struct dw_cond **out)
{
	struct unit u;

	if (is_punct(p, "!") ||
	    (p->tok.kind == CEDAR_T_IDENT && (is_word(p, "formerly") || is_word(p, "previous")) &&
	        peek(p).kind == CEDAR_T_IDENT) ||
	    (is_word(p, "exists") && peek_punct(p, "(")))
		return unexpected(p, "`(` or a predicate");
	return unit(p, &u) && conjunct_from(p, &u, out);
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
		while (is_punct(p, "!")) {
			nots++;
			if (!deeper(p))
				return false;
			next(p);
		}
		if (!unit(p, &u) || !conjunct_from(p, &u, &c))
			return false;
		p->depth -= nots;
	}
	for (; nots != 0; nots--) {
		n = new_cond(p, DW_C_NOT, through(at, p));
		if (n == NULL)
			return false;
		n->neg = c;
		c = n;
	}
	if (is_word(p, "since")) {
		n = new_cond(p, DW_C_SINCE, at);
		if (n == NULL || !deeper(p))
			return false;
		next(p);
		n->since.left = c;
		if (!within(p, &n->since.w) || !atom(p, &n->since.right))
			return false;
		p->depth--;
		n->at = through(at, p);
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
	v = push(p, v, &and->all.n, sizeof(struct dw_cond *));
	if (v == NULL)
		return false;
	and->all.v = v;
	v[ and->all.n - 1] = c;
	return true;
}

static bool condition_from(struct ps *p, const struct unit *first, struct dw_cond **out)
{
	struct dw_cond *c, *more, *and;

	if (!step_from(p, first, &c))
		return false;
	if (!is_punct(p, "&&")) {
		*out = c;
		return true;
	}
	and = new_cond(p, DW_C_AND, c->at);
	if (and == NULL || !conjoin(p, and, c))
		return false;
	while (is_punct(p, "&&")) {
		next(p);
		if (!step_from(p, NULL, &more) || !conjoin(p, and, more))
			return false;
	}
	and->at = through(c->at, p);
	*out = and;
	return true;
}

static bool condition(struct ps *p, struct dw_cond **out)
{
	return condition_from(p, NULL, out);
}

bool dw_tparse(const struct dw_tparse *o, sv text, struct cedar_span at, struct dw_body *out)
{
	struct ps p = { .o = o };
	struct unit u;

	*out = (struct dw_body){ 0 };
	cedar_lex_init(&p.lex, text, at);
	next(&p);
	if (is_punct(&p, "!")) {
		if (!condition(&p, &out->cond))
			return false;
	} else {
		if (!unit(&p, &u))
			return false;
		if (p.tok.kind == CEDAR_T_END && u.is != UNIT_COND && o->macro_body &&
		    (u.is == UNIT_EITHER || u.t->kind == DW_TERM_AGG)) {
			out->agg = u.t;
			if (u.is == UNIT_EITHER)
				out->cond = u.c;
			return true;
		}
		if (!condition_from(&p, &u, &out->cond))
			return false;
	}
	if (p.tok.kind != CEDAR_T_END)
		return unexpected(&p, NULL);
	return true;
}
