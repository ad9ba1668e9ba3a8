/* Relations: has, like, is, in and comparisons; none of them associates. Spec 2, 2.3. */
#include "cedar/parse_priv.h"

#include "base/ban.h"

static struct cedar_expr *has(struct parser *p, struct cedar_span from, struct cedar_expr *e)
{
	cedar_sym *path = NULL;
	size_t n = 0, cap = 0;
	bool index = p->cur.kind == CEDAR_T_STRING;

	p_advance(p);
	index = p->cur.kind == CEDAR_T_STRING;
	do {
		if (n >= CEDAR_MAX_DEPTH) /* it stands for as many accesses, one in the other */
			return p_fail(p, "the expression is nested too deeply");
		path = p_room(p, path, n, &cap, sizeof(*path));
		if (path == NULL)
			return NULL;
		if (index) {
			struct cedar_tok t = p->cur;

			path[n] = cedar_tok_string(p->t, p->a, &t, p->ds);
			if (path[n] == NULL)
				path[n] = cedar_intern(p->t, SV(""));
			p_advance(p);
		} else {
			path[n] = p_attr_name(p);
		}
		if (path[n] == NULL)
			return NULL;
		n++;
	} while (!index && p_eat(p, "."));
	e = p_node1(p, CEDAR_E_HAS, from, e);
	if (e != NULL) {
		e->path = path;
		e->n_path = (uint32_t)n;
		e->index = index;
	}
	return e;
}

/* Cut the body of a pattern at its stars and decode the pieces. */
static struct cedar_expr *like(struct parser *p, struct cedar_span from, struct cedar_expr *e)
{
	struct cedar_tok t;
	sv *run = NULL, body;
	size_t n = 0, cap = 0, i, start = 0;

	p_advance(p);
	t = p->cur;
	if (t.kind != CEDAR_T_STRING)
		return p_unexpected(p, "string pattern");
	p_advance(p);
	body = sv_sub(t.text, 1, t.text.n - 2);
	for (i = 0; i <= body.n; i++) {
		sv piece, bad;
		char *q;
		size_t j, m = 0;

		if (i < body.n && body.p[i] == '\\') {
			i++;
			continue;
		}
		if (i < body.n && body.p[i] != '*')
			continue;
		/* `\*` is a star; the other escapes are those of strings. `\\*` is a backslash
		 * and a wildcard. */
		q = arena_alloc(p->a, i - start + 1, 1);
		run = q != NULL ? p_room(p, run, n, &cap, sizeof(*run)) : NULL;
		if (run == NULL)
			return p_fail(p, "out of memory");
		for (j = start; j < i; j++) {
			if (body.p[j] == '\\' && j + 1 < i) {
				if (body.p[j + 1] != '*')
					q[m++] = body.p[j];
				j++;
			}
			q[m++] = body.p[j];
		}
		piece = cedar_unescape(p->a, (sv){ q, m }, &bad);
		if (piece.p == NULL && bad.n != 0) {
			p_error(p, &t.span,
			    "in a pattern also \\* is an escape: a star that is no wildcard",
			    "the input `" SV_FMT "` is not a valid escape", SV_ARG(bad));
			return p->poison;
		}
		if (piece.p == NULL)
			return p_fail(p, "out of memory");
		run[n++] = piece;
		start = i + 1;
	}
	e = p_node1(p, CEDAR_E_LIKE, from, e);
	if (e != NULL)
		e->pattern = (struct cedar_pattern){ (uint32_t)n, run };
	return e;
}

static struct cedar_expr *is(struct parser *p, struct cedar_span from, struct cedar_expr *e)
{
	struct cedar_span at;
	cedar_sym name;

	p_advance(p);
	at = p->cur.span;
	if (p->cur.kind != CEDAR_T_IDENT)
		return p_unexpected(p, "identifier");
	name = p_name(p);
	if (name == NULL)
		return NULL;
	if (p_is(p, "::") || p_is(p, "(") || p_is(p, ".") || p_is(p, "[")) {
		at = p_since(p, at);
		p_error(p, &at, "write `e is Type` or `e is Type in entity`",
		    "right hand side of an `is` expression must be an entity type name");
		p->dead = true;
		return NULL;
	}
	if (p_eat(p, "in"))
		e = p_node2(p, CEDAR_E_IS, from, e, p_add(p));
	else
		e = p_node1(p, CEDAR_E_IS, from, e);
	if (e != NULL)
		e->name = name;
	return e;
}

static bool relop(const struct parser *p, enum cedar_expr_kind *k)
{
	static const struct {
		const char *text;
		enum cedar_expr_kind kind;
	} ops[] = { { "==", CEDAR_E_EQ }, { "!=", CEDAR_E_NE }, { "<", CEDAR_E_LT },
		{ "<=", CEDAR_E_LE }, { ">", CEDAR_E_GT }, { ">=", CEDAR_E_GE },
		{ "in", CEDAR_E_IN } };
	size_t i;

	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (p_is(p, ops[i].text)) {
			*k = ops[i].kind;
			return true;
		}
	return false;
}

struct cedar_expr *p_rel(struct parser *p)
{
	struct cedar_span from = p->cur.span;
	struct cedar_expr *e = p_add(p);
	enum cedar_expr_kind k;

	if (e == NULL)
		return NULL;
	if (p_is(p, "has"))
		return has(p, from, e);
	if (p_is(p, "like"))
		return like(p, from, e);
	if (p_is(p, "is"))
		return is(p, from, e);
	if (p_is(p, "=")) {
		p_error(p, &p->cur.span, NULL,
		    "`=` is not a valid operator in this scope; did you mean `==`?");
		p_advance(p);
		return p_add(p);
	}
	if (!relop(p, &k))
		return e;
	p_advance(p);
	e = p_node2(p, k, from, e, p_add(p));
	if (e != NULL && (relop(p, &k) || p_is(p, "has") || p_is(p, "like") || p_is(p, "is"))) {
		p_error(p, &p->cur.span, "put parentheses around one of them",
		    "multiple relational operators (>, ==, in, etc.) must be used with parentheses "
		    "to "
		    "make ordering explicit");
		p->dead = true;
		return NULL;
	}
	return e;
}
