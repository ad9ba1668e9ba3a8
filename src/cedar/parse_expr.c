/* Expressions: one function a level of precedence, nesting counted. Spec 2, 2.2, 2.3. */
#include "cedar/advice.h"
#include "cedar/parse_priv.h"

#include "base/ban.h"

static struct cedar_expr *p_unary(struct parser *p);

struct cedar_expr *p_node(struct parser *p, enum cedar_expr_kind k, struct cedar_span from,
    struct cedar_expr *const *arg, size_t n)
{
	struct cedar_span at = p_since(p, from);
	struct cedar_expr *e;
	size_t i;

	if (p->dead)
		return NULL;
	for (i = 0; i < n; i++)
		if (arg[i]->depth >= CEDAR_MAX_DEPTH)
			return p_fail(p, "the expression is nested too deeply");
	if (++p->nodes > CEDAR_MAX_NODES)
		return p_fail(p, "the policies have too many expressions");
	e = cedar_expr_new(p->a, k, &at, arg, n);
	return e != NULL ? e : p_fail(p, "out of memory");
}

struct cedar_expr *p_node1(
    struct parser *p, enum cedar_expr_kind k, struct cedar_span from, struct cedar_expr *a)
{
	return a != NULL ? p_node(p, k, from, &a, 1) : NULL;
}

struct cedar_expr *p_node2(struct parser *p, enum cedar_expr_kind k, struct cedar_span from,
    struct cedar_expr *a, struct cedar_expr *b)
{
	struct cedar_expr *v[2] = { a, b };

	return a != NULL && b != NULL ? p_node(p, k, from, v, 2) : NULL;
}

static struct cedar_expr *literal(struct parser *p, struct cedar_span from, struct cedar_value v)
{
	struct cedar_expr *e = p_node(p, CEDAR_E_LIT, from, NULL, 0);

	if (e != NULL)
		e->value = v;
	return e;
}

/* An attribute name: in Dogwood any word, in Cedar not the reserved ones. */
cedar_sym p_attr_name(struct parser *p)
{
	cedar_sym s;

	if (p->cur.kind != CEDAR_T_IDENT)
		return p_unexpected(p, "attribute name");
	if (!p->o->dogwood && cedar_is_reserved(p->cur.text))
		p_error(p, &p->cur.span, "write the name as a string: e[\"name\"], {\"name\": …}",
		    "this identifier is reserved and cannot be used: `" SV_FMT "`",
		    SV_ARG(p->cur.text));
	s = cedar_intern(p->t, p->cur.text);
	if (s == NULL)
		return p_fail(p, "out of memory");
	p_advance(p);
	return s;
}

/* A comma-separated list up to `close` (taken). */
int p_list(struct parser *p, const char *close, struct cedar_expr ***out, size_t *n)
{
	struct cedar_expr **v = NULL;
	size_t cap = 0;

	*n = 0;
	while (!p_is(p, close)) {
		v = p_room(p, v, *n, &cap, sizeof(struct cedar_expr *));
		if (v == NULL)
			return -1;
		v[*n] = p_expr(p);
		if (v[*n] == NULL)
			return -1;
		(*n)++;
		if (!p_eat(p, ","))
			break;
	}
	*out = v;
	return p_need(p, close) ? 0 : -1;
}

/* ---- primaries ----------------------------------------------------------------------------- */

static struct cedar_expr *integer(struct parser *p, bool negative)
{
	struct cedar_tok t = p->cur;
	uint64_t v, max = negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
	int64_t i;

	while (t.text.n > 1 && t.text.p[0] == '0')
		t.text = sv_sub(t.text, 1, SIZE_MAX);
	p_advance(p);
	if (!sv_to_u64(t.text, 10, max, &v)) {
		p_error(p, &t.span, "a Long is from -9223372036854775808 to 9223372036854775807",
		    "integer literal `" SV_FMT "` is out of range", SV_ARG(p_text(p, t.span)));
		return p->poison;
	}
	if (negative)
		i = v == max ? INT64_MIN : -(int64_t)v;
	else
		i = (int64_t)v;
	return literal(p, t.span, cedar_long(i));
}

static struct cedar_expr *string(struct parser *p)
{
	struct cedar_tok t = p->cur;
	cedar_sym s = cedar_tok_string(p->t, p->a, &t, p->ds);

	p_advance(p);
	return s != NULL ? literal(p, t.span, cedar_string(s)) : p->poison;
}

static struct cedar_expr *slot(struct parser *p)
{
	struct cedar_tok t = p->cur;
	bool principal = sv_eq(t.text, SV("?principal"));
	struct cedar_expr *e;

	if (t.text.p[0] == '$')
		return p_unexpected(p, NULL);
	p_advance(p);
	if (principal || sv_eq(t.text, SV("?resource"))) {
		if (!p->slots && !p->o->dogwood) {
			p_error(p, &t.span,
			    "slots stand in the scope only: `principal == ?principal`",
			    "found template slot `" SV_FMT "` in a condition", SV_ARG(t.text));
			return p->poison;
		}
		if (p->pol != NULL)
			p->pol->has_slot[principal ? 0 : 1] = true;
		e = p_node(p, CEDAR_E_SLOT, t.span, NULL, 0);
		if (e != NULL)
			e->var = principal ? CEDAR_PRINCIPAL : CEDAR_RESOURCE;
		return e;
	}
	if (!p->o->params) {
		if (p->o->dogwood)
			p_error(p, &t.span, NULL,
			    "stray macro parameter reference `" SV_FMT "` outside a macro body",
			    SV_ARG(t.text));
		else
			p_error(p, &t.span, "the slots are `?principal` and `?resource`",
			    "`" SV_FMT "` is not a valid template slot", SV_ARG(t.text));
		return p->poison;
	}
	e = p_node(p, CEDAR_E_PARAM, t.span, NULL, 0);
	if (e != NULL) {
		e->name = cedar_intern(p->t, sv_sub(t.text, 1, SIZE_MAX));
		if (e->name == NULL)
			return p_fail(p, "out of memory");
	}
	return e;
}

static bool variable(sv s, enum cedar_var *v)
{
	if (sv_eq(s, SV("principal")))
		*v = CEDAR_PRINCIPAL;
	else if (sv_eq(s, SV("action")))
		*v = CEDAR_ACTION;
	else if (sv_eq(s, SV("resource")))
		*v = CEDAR_RESOURCE;
	else if (sv_eq(s, SV("context")))
		*v = CEDAR_CONTEXT;
	else
		return false;
	return true;
}

static struct cedar_expr *not_a_variable(struct parser *p, struct cedar_span from, cedar_sym name)
{
	static const sv vars[] = { SV_INIT("principal"), SV_INIT("action"), SV_INIT("resource"),
		SV_INIT("context") };
	struct cedar_span at = p_since(p, from);
	sv n = cedar_sv(name), near;
	const char *hint;

	if (sv_find_sv(n, SV("::")) >= 0) {
		p_error(p, &at, NULL,
		    "`" SV_FMT "` is not a valid entity reference; try `" SV_FMT
		    "::\"<id>\"` for a specific entity, or `is " SV_FMT "` to match by type",
		    SV_ARG(n), SV_ARG(n), SV_ARG(n));
		return p->poison;
	}
	near = cedar_nearest(n, vars, 4);
	hint = cedar_advice(CEDAR_AT_VARIABLE, n);
	if (hint == NULL && near.n != 0)
		hint = arena_printf(p->a, "did you mean `" SV_FMT "`?", SV_ARG(near));
	if (hint == NULL)
		hint =
		    "a text is written in quotes, an attribute behind its record: `context.name`";
	p_error(p, &at, hint,
	    "`" SV_FMT
	    "` is not a valid variable; the valid variables are `principal`, `action`, `resource`, "
	    "and `context`",
	    SV_ARG(n));
	return p->poison;
}

static struct cedar_expr *named(struct parser *p)
{
	struct cedar_span from = p->cur.span;
	struct cedar_expr *e;
	enum cedar_var v;
	cedar_sym name, id;

	if (!p_ahead_is(p, "::") && (p_is(p, "true") || p_is(p, "false"))) {
		bool b = p_is(p, "true");

		p_advance(p);
		return literal(p, from, cedar_bool(b));
	}
	if (!p_ahead_is(p, "::") && cedar_is_reserved(p->cur.text))
		return p_unexpected(p, EXPECT_EXPR);
	name = p_name(p);
	if (name == NULL)
		return NULL;
	if (p_eat(p, "::")) {
		struct cedar_tok t = p->cur;

		if (p_is(p, "{")) {
			p_error(p, &t.span, "write `Type::\"id\"`",
			    "entity initializer syntax `Type::{ … }` is not supported");
			p->dead = true;
			return NULL;
		}
		if (t.kind != CEDAR_T_STRING)
			return p_unexpected(p, NULL);
		id = cedar_tok_string(p->t, p->a, &t, p->ds);
		p_advance(p);
		if (id == NULL)
			return p->poison;
		return literal(p, from, cedar_entity((struct cedar_uid){ name, id }));
	}
	if (variable(cedar_sv(name), &v)) {
		e = p_node(p, CEDAR_E_VAR, from, NULL, 0);
		if (e != NULL)
			e->var = v;
		return e;
	}
	if (p_is(p, "("))
		return p_function(p, from, name);
	return not_a_variable(p, from, name);
}

static struct cedar_expr *record(struct parser *p)
{
	struct cedar_span from = p->cur.span;
	struct cedar_expr **v = NULL, *e;
	cedar_sym *k = NULL;
	size_t n = 0, cap_v = 0, cap_k = 0, i;

	p_advance(p);
	while (!p_is(p, "}")) {
		struct cedar_tok t = p->cur;

		v = p_room(p, v, n, &cap_v, sizeof(*v));
		k = v != NULL ? p_room(p, k, n, &cap_k, sizeof(*k)) : NULL;
		if (k == NULL)
			return NULL;
		if (t.kind == CEDAR_T_STRING) {
			k[n] = cedar_tok_string(p->t, p->a, &t, p->ds);
			if (k[n] == NULL)
				k[n] = cedar_intern(p->t, SV("")); /* told already; go on */
			p_advance(p);
		} else {
			k[n] = p_attr_name(p);
		}
		if (k[n] == NULL || !p_need(p, ":"))
			return NULL;
		v[n] = p_expr(p);
		if (v[n] == NULL)
			return NULL;
		/* Literals are short; a long one costs its square, bounded by the limit on
		 * nodes. */
		for (i = 0; i < n && n < 4096; i++)
			if (k[i] == k[n]) {
				p_error(p, &t.span, NULL,
				    "duplicate key `" SV_FMT "` in record literal",
				    SV_ARG(cedar_sv(k[n])));
				break;
			}
		n++;
		if (!p_eat(p, ","))
			break;
	}
	if (!p_need(p, "}"))
		return NULL;
	if (n > 4096)
		return p_fail(p, "a record literal has more than 4096 keys");
	e = p_node(p, CEDAR_E_RECORD, from, v, n);
	if (e != NULL) {
		e->path = k;
		e->n_path = (uint32_t)n;
	}
	return e;
}

struct cedar_expr *p_leaf(struct parser *p)
{
	struct cedar_span from = p->cur.span, at;
	struct cedar_expr *e;
	struct cedar_leaf *l;
	sv body;

	if (!p_block(p, &body, &at))
		return NULL;
	e = p_node(p, CEDAR_E_LEAF, from, NULL, 0);
	l = ARENA_NEW(p->a, struct cedar_leaf);
	if (e == NULL || l == NULL)
		return p_fail(p, "out of memory");
	l->text = body;
	l->at = at;
	l->ordinal = p->pol != NULL ? p->pol->n_leaf++ : 0;
	e->leaf = l;
	return e;
}

static struct cedar_expr *primary(struct parser *p)
{
	struct cedar_span from = p->cur.span;
	struct cedar_expr **v = NULL, *e;
	size_t n;

	switch (p->cur.kind) {
	case CEDAR_T_INT:
		return integer(p, false);
	case CEDAR_T_STRING:
		return string(p);
	case CEDAR_T_SIGIL:
		return slot(p);
	case CEDAR_T_IDENT:
		if (p->o->dogwood && p_is(p, "temporal") && p_ahead_is(p, "{"))
			return p_leaf(p);
		return named(p);
	case CEDAR_T_PUNCT:
		if (p_eat(p, "(")) {
			e = p_expr(p);
			if (e == NULL || !p_need(p, ")"))
				return NULL;
			e->paren = true;
			return e;
		}
		if (p_eat(p, "["))
			return p_list(p, "]", &v, &n) < 0 ? NULL
			                                  : p_node(p, CEDAR_E_SET, from, v, n);
		if (p_is(p, "{"))
			return record(p);
		break;
	case CEDAR_T_END:
	case CEDAR_T_BAD:
		break;
	}
	return p_unexpected(p, EXPECT_EXPR);
}

static struct cedar_expr *member(struct parser *p)
{
	struct cedar_span from = p->cur.span, at;
	struct cedar_expr *e = primary(p), *k;
	cedar_sym name;

	while (e != NULL) {
		if (p_eat(p, ".")) {
			at = p->cur.span;
			name = p_attr_name(p);
			if (name == NULL)
				return NULL;
			if (p_is(p, "(")) {
				e = p_method(p, from, e, name, at);
				continue;
			}
			e = p_node1(p, CEDAR_E_GET, from, e);
			if (e != NULL)
				e->name = name;
		} else if (p_is(p, "[")) {
			p_advance(p);
			k = p_expr(p);
			if (k == NULL || !p_need(p, "]"))
				return NULL;
			if (k == p->poison)
				continue;
			if (k->kind != CEDAR_E_LIT || k->value.kind != CEDAR_STRING || k->paren) {
				p_error(p, &k->span, NULL,
				    "index access requires a string-literal key, e.g. "
				    "`record[\"field\"]`");
				continue;
			}
			e = p_node1(p, CEDAR_E_GET, from, e);
			if (e != NULL) {
				e->name = k->value.s;
				e->index = true;
			}
		} else if (p_is(p, "(")) {
			p_error(p, &p->cur.span, NULL,
			    "unexpected call: only extension functions and methods can be called");
			p->dead = true;
			return NULL;
		} else {
			break;
		}
	}
	return e;
}

/* ---- operators ----------------------------------------------------------------------------- */

static struct cedar_expr *p_unary(struct parser *p)
{
	struct cedar_span from = p->cur.span, num;
	struct cedar_expr *e;
	size_t n = 0;
	bool bang = p_is(p, "!"), dash = p_is(p, "-");

	while ((bang && p_is(p, "!")) || (dash && p_is(p, "-"))) {
		p_advance(p);
		n++;
	}
	if (n > 4) {
		struct cedar_span at = p_since(p, from);

		p_error(p, &at, NULL, "too many occurrences of `%s`: at most 4 in a row",
		    bang ? "!" : "-");
		n = 4;
	}
	num = p->cur.span;
	if (dash && p->cur.kind == CEDAR_T_INT && !p_ahead_is(p, ".") && !p_ahead_is(p, "[") &&
	    !p_ahead_is(p, "(")) {
		/* A literal right under a minus takes it in, so that -2^63 can be written. */
		e = integer(p, true);
		(void)num;
		n--;
	} else {
		e = member(p);
	}
	while (e != NULL && n-- > 0)
		e = p_node1(p, bang ? CEDAR_E_NOT : CEDAR_E_NEG, from, e);
	return e;
}

static struct cedar_expr *p_mult(struct parser *p)
{
	struct cedar_span from = p->cur.span;
	struct cedar_expr *e = p_unary(p);

	while (e != NULL) {
		if (p_is(p, "/") || p_is(p, "%")) {
			p_error(p, &p->cur.span, NULL, "`" SV_FMT "` is not a supported operator",
			    SV_ARG(p->cur.text));
			p_advance(p);
			if (p_unary(p) == NULL)
				return NULL;
		} else if (p_eat(p, "*")) {
			e = p_node2(p, CEDAR_E_MUL, from, e, p_unary(p));
		} else {
			break;
		}
	}
	return e;
}

struct cedar_expr *p_add(struct parser *p)
{
	struct cedar_span from = p->cur.span;
	struct cedar_expr *e = p_mult(p);

	while (e != NULL) {
		if (p_eat(p, "+"))
			e = p_node2(p, CEDAR_E_ADD, from, e, p_mult(p));
		else if (p_eat(p, "-"))
			e = p_node2(p, CEDAR_E_SUB, from, e, p_mult(p));
		else
			break;
	}
	return e;
}

/* next { op next } as one node. */
static struct cedar_expr *chain(struct parser *p, const char *op, enum cedar_expr_kind k,
    struct cedar_expr *(*next)(struct parser *))
{
	struct cedar_span from = p->cur.span;
	struct cedar_expr *e = next(p), **v = NULL;
	size_t n = 0, cap = 0;

	if (e == NULL || !p_is(p, op))
		return e;
	for (;;) {
		v = p_room(p, v, n, &cap, sizeof(*v));
		if (v == NULL || e == NULL)
			return NULL;
		v[n++] = e;
		if (!p_eat(p, op))
			break;
		e = next(p);
	}
	return p_node(p, k, from, v, n);
}

static struct cedar_expr *p_and(struct parser *p)
{
	return chain(p, "&&", CEDAR_E_AND, p_rel);
}

struct cedar_expr *p_expr(struct parser *p)
{
	struct cedar_span from = p->cur.span;
	struct cedar_expr *v[3], *e;

	if (p->dead)
		return NULL;
	if (++p->depth > CEDAR_MAX_DEPTH) {
		p_error(p, &from, "split it into several policies",
		    "the expression is nested deeper than %d levels", CEDAR_MAX_DEPTH);
		p->dead = true;
		return NULL;
	}
	if (p_is(p, "if") && !p_ahead_is(p, "::")) {
		p_advance(p);
		v[0] = p_expr(p);
		if (v[0] == NULL || !p_need(p, "then"))
			return NULL;
		v[1] = p_expr(p);
		if (v[1] == NULL || !p_need(p, "else"))
			return NULL;
		v[2] = p_expr(p);
		e = v[2] != NULL ? p_node(p, CEDAR_E_IF, from, v, 3) : NULL;
	} else {
		e = chain(p, "||", CEDAR_E_OR, p_and);
	}
	p->depth--;
	return e;
}
