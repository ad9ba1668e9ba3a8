/* Tokens, names, windows and binders of temporal conditions. See tparse_impl.h. */
#include "dogwood/advice.h"
#include "dogwood/tparse_impl.h"

#include "base/ban.h"

void dw_tp_next(struct ps *p)
{
	p->prev = p->tok;
	p->tok = cedar_lex_next(&p->lex);
}

bool dw_tp_is_punct(const struct ps *p, const char *s)
{
	return p->tok.kind == CEDAR_T_PUNCT && sv_eq(p->tok.text, sv_c(s));
}

bool dw_tp_is_word(const struct ps *p, const char *s)
{
	return p->tok.kind == CEDAR_T_IDENT && sv_eq(p->tok.text, sv_c(s));
}

/* The token after the next one. */
struct cedar_tok dw_tp_peek(const struct ps *p)
{
	struct cedar_lex l = p->lex;

	return cedar_lex_next(&l);
}

bool dw_tp_peek_punct(const struct ps *p, const char *s)
{
	struct cedar_tok t = dw_tp_peek(p);

	return t.kind == CEDAR_T_PUNCT && sv_eq(t.text, sv_c(s));
}

bool dw_tp_unexpected(struct ps *p, const char *expected)
{
	size_t n = p->o->ds->n;
	const char *hint = dw_advice_token(&p->tok, expected);

	if (!p->bad)
		cedar_tok_unexpected(p->o->ds, &p->tok, expected);
	if (p->o->ds->n > n && hint != NULL)
		p->o->ds->d[n].hint = sv_c(hint);
	p->bad = true;
	return false;
}

bool dw_tp_no_room(struct ps *p)
{
	if (!p->bad)
		(void)cedar_diag_add(p->o->ds, CEDAR_ERROR, "parse", &p->tok.span, NULL,
		    "the policy source is too large to be read");
	p->bad = true;
	return false;
}

bool dw_tp_deeper(struct ps *p)
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

bool dw_tp_want(struct ps *p, const char *punct, const char *expected)
{
	if (!dw_tp_is_punct(p, punct))
		return dw_tp_unexpected(p, expected);
	dw_tp_next(p);
	return true;
}

struct cedar_span dw_tp_through(struct cedar_span from, const struct ps *p)
{
	uint32_t end = p->prev.span.off + p->prev.span.len;

	if (end > from.off)
		from.len = end - from.off;
	return from;
}

struct dw_cond *dw_tp_new_cond(struct ps *p, enum dw_cond_kind k, struct cedar_span at)
{
	struct dw_cond *c = ARENA_NEW(p->o->a, struct dw_cond);

	if (c == NULL) {
		dw_tp_no_room(p);
		return NULL;
	}
	c->kind = k;
	c->at = at;
	return c;
}

struct dw_term *dw_tp_new_term(struct ps *p, enum dw_term_kind k, struct cedar_span at)
{
	struct dw_term *t = ARENA_NEW(p->o->a, struct dw_term);

	if (t == NULL) {
		dw_tp_no_room(p);
		return NULL;
	}
	t->kind = k;
	t->at = at;
	return t;
}

/* Append to a vector that grows by doubling; *n counts. */
void *dw_tp_push(struct ps *p, void *vec, uint32_t *n, size_t size)
{
	if ((*n & (*n - 1)) == 0) {
		void *v = arena_grow(p->o->a, vec, *n, *n == 0 ? 1 : (size_t)*n * 2, size);

		if (v == NULL) {
			dw_tp_no_room(p);
			return NULL;
		}
		vec = v;
	}
	++*n;
	return vec;
}

/* The next token is a name: identifier, or in macro bodies ?param or $binder. */
bool dw_tp_binder_name(struct ps *p, sv *out)
{
	if (p->tok.kind != CEDAR_T_IDENT && p->tok.kind != CEDAR_T_SIGIL)
		return dw_tp_unexpected(p, "identifier");
	*out = p->tok.text;
	dw_tp_next(p);
	return true;
}

bool dw_tp_string_tok(struct ps *p, sv *out)
{
	cedar_sym s;

	if (p->tok.kind != CEDAR_T_STRING)
		return dw_tp_unexpected(p, "string");
	s = cedar_tok_string(p->o->t, p->o->a, &p->tok, p->o->ds);
	if (s == NULL) {
		p->bad = true;
		return false;
	}
	*out = cedar_sv(s);
	dw_tp_next(p);
	return true;
}

bool dw_tp_integer(struct ps *p, bool neg, int64_t *out)
{
	uint64_t v;

	if (p->tok.kind != CEDAR_T_INT)
		return dw_tp_unexpected(p, "integer");
	if (!sv_to_u64(p->tok.text, 10, neg ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX, &v)) {
		(void)cedar_diag_add(p->o->ds, CEDAR_ERROR, "parse", &p->tok.span, NULL,
		    "integer literal `" SV_FMT "` is out of range", SV_ARG(p->tok.text));
		p->bad = true;
		return false;
	}
	*out = neg ? (int64_t)(0 - v) : (int64_t)v;
	dw_tp_next(p);
	return true;
}

static bool is_unit(sv s)
{
	return s.n == 1 && (s.p[0] == 's' || s.p[0] == 'm' || s.p[0] == 'h' || s.p[0] == 'd');
}

/* integer unit */
bool dw_tp_window_value(struct ps *p, struct dw_window **out)
{
	struct dw_window *w = ARENA_NEW(p->o->a, struct dw_window);
	struct cedar_span at = p->tok.span;
	const char *text;

	if (w == NULL)
		return dw_tp_no_room(p);
	w->too_large = !sv_to_u64(p->tok.text, 10, UINT64_MAX, &w->amount);
	text = arena_printf(p->o->a, SV_FMT, SV_ARG(p->tok.text));
	dw_tp_next(p);
	if (p->tok.kind != CEDAR_T_IDENT || !is_unit(p->tok.text))
		return dw_tp_unexpected(p, "time unit ('s', 'm', 'h', or 'd')");
	w->unit = p->tok.text.p[0];
	if (text != NULL)
		text = arena_printf(p->o->a, "%s%c", text, w->unit);
	if (text == NULL)
		return dw_tp_no_room(p);
	w->text = sv_c(text);
	dw_tp_next(p);
	w->at = dw_tp_through(at, p);
	*out = w;
	return true;
}

bool dw_tp_within(struct ps *p, struct dw_window **out)
{
	if (!dw_tp_is_word(p, "within"))
		return dw_tp_unexpected(p, "'within' clause");
	dw_tp_next(p);
	if (p->tok.kind == CEDAR_T_SIGIL && p->tok.text.p[0] == '?') {
		struct dw_window *w = ARENA_NEW(p->o->a, struct dw_window);

		if (w == NULL)
			return dw_tp_no_room(p);
		w->param = w->text = p->tok.text;
		w->at = p->tok.span;
		dw_tp_next(p);
		*out = w;
		return true;
	}
	if (p->tok.kind != CEDAR_T_INT)
		return dw_tp_unexpected(p, "integer");
	return dw_tp_window_value(p, out);
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
		return dw_tp_unexpected(p, "type");
	b->type_name = p->tok.text;
	dw_tp_next(p);
	while (dw_tp_is_punct(p, "::")) {
		dw_tp_next(p);
		if (p->tok.kind != CEDAR_T_IDENT)
			return dw_tp_unexpected(p, "identifier");
		full = arena_printf(
		    p->o->a, SV_FMT "::" SV_FMT, SV_ARG(b->type_name), SV_ARG(p->tok.text));
		if (full == NULL)
			return dw_tp_no_room(p);
		b->type_name = sv_c(full);
		dw_tp_next(p);
	}
	b->type_at = dw_tp_through(at, p);
	b->type = DW_T_NAMED;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (sv_eq(b->type_name, sv_c(names[i].name)))
			b->type = names[i].t;
	}
	return true;
}

/* "(" ident ":" type ")" */
bool dw_tp_binder(struct ps *p, struct dw_binder *b)
{
	if (!dw_tp_want(p, "(", "`(`"))
		return false;
	b->at = p->tok.span;
	b->slot = DW_NO_SLOT;
	return dw_tp_binder_name(p, &b->name) && dw_tp_want(p, ":", "`:`") && var_type(p, b) &&
	       dw_tp_want(p, ")", "`)`");
}
