/* Types of expressions in one request environment. Each function answers like the reference's typechecker: a wrong part is reported
 * and the rest is checked on with the best type known. Spec 3.6. */
#include "cedar/typecheck.h"

#include <stdio.h>

#include "base/ban.h"

#define TY(name, k) static const struct cedar_type name = { .kind = k }
TY(ty_never, CEDAR_TY_NEVER);
TY(ty_true, CEDAR_TY_TRUE);
TY(ty_false, CEDAR_TY_FALSE);
TY(ty_bool, CEDAR_TY_BOOL);
TY(ty_long, CEDAR_TY_LONG);
TY(ty_string, CEDAR_TY_STRING);
TY(ty_decimal, CEDAR_TY_DECIMAL);
TY(ty_ip, CEDAR_TY_IP);
TY(ty_datetime, CEDAR_TY_DATETIME);
TY(ty_duration, CEDAR_TY_DURATION);
TY(ty_any_entity, CEDAR_TY_ENTITY);

#define ANY_ENTITY "__cedar::internal::AnyEntity"
#define ANY_RECORD "__cedar::internal::OpenRecord{}"
#define ANY_SET    "Set<__cedar::internal::Any>"

/* ---- reporting ---------------------------------------------------------------------------------------------------- */

void tc_error(struct tc *c, const struct cedar_span *at, const char *hint, const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	size_t i;

	va_start(ap, fmt);
	(void)vsnprintf(
	    text, sizeof(text), fmt, ap); /* a longer one is cut: names that long help nobody */
	va_end(ap);
	for (i = c->first; i < c->ds->n; i++)
		if (c->ds->d[i].span.off == at->off && c->ds->d[i].span.len == at->len &&
		    sv_eq(c->ds->d[i].message, sv_c(text)))
			return;
	cedar_diag_add(c->ds, CEDAR_ERROR, "validate", at->line != 0 ? at : NULL, hint, "%s", text);
}

static const char *take(struct tc *c, struct buf *b)
{
	const char *s = buf_ok(b) ? arena_printf(c->a, SV_FMT, SV_ARG(buf_sv(b))) : NULL;

	buf_fini(b);
	return s != NULL ? s : "?";
}

const char *tc_type_text(struct tc *c, const struct cedar_type *ty)
{
	struct buf b = buf_with(1 << 16);

	cedar_put_type(&b, ty);
	return take(c, &b);
}

static const char *uid_text(struct tc *c, struct cedar_uid u)
{
	struct buf b = buf_with(1 << 16);

	cedar_put_uid(&b, u);
	return take(c, &b);
}

static const char *expr_text(struct tc *c, const struct cedar_expr *e)
{
	struct buf b = buf_with(1 << 16);

	cedar_put_expr(&b, e, NULL);
	return take(c, &b);
}

static const char *did_you_mean(struct tc *c, sv word, const struct cedar_type *record)
{
	sv v[256], near;
	uint32_t i;

	for (i = 0; i < record->n_attr && i < 256; i++)
		v[i] = cedar_sv(record->attr[i].name);
	near = cedar_nearest(word, v, i);
	return near.n != 0 ? arena_printf(c->a, "did you mean `" SV_FMT "`?", SV_ARG(near)) : NULL;
}

/* ---- answers and capabilities ------------------------------------------------------------------------------------- */

static struct tc_ans good(const struct cedar_type *ty)
{
	return (struct tc_ans){ true, ty, NULL };
}

static struct tc_ans bad(const struct cedar_type *ty)
{
	return (struct tc_ans){ false, ty, NULL };
}

static struct tc_ans also(bool ok, struct tc_ans x)
{
	x.ok = x.ok && ok;
	return x;
}

static struct tc_ans out_of_room(struct tc *c)
{
	c->gave_up = true;
	return bad(NULL);
}

static bool has_cap(struct tc *c, const struct tc_cap *k, const struct cedar_expr *e,
    cedar_sym attr, const struct cedar_expr *tag)
{
	for (; k != NULL && *c->budget != 0; k = k->next) {
		--*c->budget;
		if ((k->attr == NULL) != (attr == NULL))
			continue;
		if (attr != NULL ? !cedar_str_eq(k->attr, attr) : !tc_same_expr(k->tag, tag))
			continue;
		if (tc_same_expr(k->e, e))
			return true;
	}
	return false;
}

static const struct tc_cap *push(struct tc *c, const struct tc_cap *k, const struct tc_cap *on)
{
	struct tc_cap *n = ARENA_NEW(c->a, struct tc_cap);

	if (n == NULL) {
		c->gave_up = true;
		return on;
	}
	*n = *k;
	n->next = on;
	return n;
}

const struct tc_cap *tc_union(struct tc *c, const struct tc_cap *a, const struct tc_cap *b)
{
	if (a == NULL)
		return b;
	/* b is put on top of a: callers give the longer list first. */
	for (; b != NULL; b = b->next)
		a = push(c, b, a);
	return a;
}

static const struct tc_cap *intersect(struct tc *c, const struct tc_cap *a, const struct tc_cap *b)
{
	const struct tc_cap *r = NULL;

	for (; a != NULL; a = a->next)
		if (has_cap(c, b, a->e, a->attr, a->tag))
			r = push(c, a, r);
	return r;
}

static struct tc_ans with_cap(struct tc *c, struct tc_ans x, const struct cedar_expr *e,
    cedar_sym attr, const struct cedar_expr *tag)
{
	struct tc_cap k = { e, attr, tag, NULL };

	x.caps = push(c, &k, NULL);
	return x;
}

/* ---- expectations ------------------------------------------------------------------------------------------------- */

enum want {
	W_BOOL = 1,
	W_LONG = 2,
	W_STRING = 4,
	W_ENTITY = 8,
	W_RECORD = 16,
	W_SET = 32,
	W_SET_ENTITY = 64
};

static bool meets(const struct cedar_type *ty, unsigned want)
{
	switch (ty->kind) {
	case CEDAR_TY_NEVER:
		return true;
	case CEDAR_TY_TRUE:
	case CEDAR_TY_FALSE:
	case CEDAR_TY_BOOL:
		return (want & W_BOOL) != 0;
	case CEDAR_TY_LONG:
		return (want & W_LONG) != 0;
	case CEDAR_TY_STRING:
		return (want & W_STRING) != 0;
	case CEDAR_TY_ENTITY:
		return (want & W_ENTITY) != 0;
	case CEDAR_TY_RECORD:
		return (want & W_RECORD) != 0;
	case CEDAR_TY_SET:
		if ((want & W_SET) != 0)
			return true;
		return (want & W_SET_ENTITY) != 0 && ty->elem != NULL &&
		       (ty->elem->kind == CEDAR_TY_ENTITY || ty->elem->kind == CEDAR_TY_NEVER);
	default:
		return false;
	}
}

static const char *want_text(unsigned want)
{
	switch (want) {
	case W_BOOL:
		return "Bool";
	case W_LONG:
		return "Long";
	case W_STRING:
		return "String";
	case W_ENTITY:
		return ANY_ENTITY;
	case W_SET:
		return ANY_SET;
	case W_ENTITY | W_RECORD:
		return ANY_ENTITY ", or " ANY_RECORD;
	default:
		return "Set<" ANY_ENTITY ">, or " ANY_ENTITY;
	}
}

static void unexpected(struct tc *c, const struct cedar_span *at, const char *want,
    const struct cedar_type *saw, const char *hint)
{
	tc_error(c, at, hint, "for policy `" SV_FMT "`, unexpected type: expected %s but saw %s",
	    SV_ARG(c->policy), want, tc_type_text(c, saw));
}

typedef const char *(*help_fn)(const struct cedar_type *saw);

static struct tc_ans expect(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e,
    unsigned want, help_fn help)
{
	struct tc_ans x = tc_check(c, prior, e);

	if (x.ty == NULL)
		return bad(NULL);
	if (!meets(x.ty, want)) {
		unexpected(c, &e->span, want_text(want), x.ty, help != NULL ? help(x.ty) : NULL);
		return bad(NULL);
	}
	return x;
}

struct tc_ans tc_check_bool(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	return expect(c, prior, e, W_BOOL, NULL);
}

static const char *help_set(const struct cedar_type *t)
{
	return t->kind == CEDAR_TY_ENTITY   ? "try using `in` for entity hierarchy membership"
	       : t->kind == CEDAR_TY_RECORD ? "try using `has` to test for an attribute"
	       : t->kind == CEDAR_TY_STRING ? "try using `like` to examine the contents of a string"
	                                    : NULL;
}

static const char *help_set_arg(const struct cedar_type *t)
{
	(void)t;
	return "try using `contains` to test if a single element is in a set";
}

static const char *help_has(const struct cedar_type *t)
{
	return t->kind == CEDAR_TY_SET ? "try using `contains`, `containsAny`, or `containsAll` to "
	                                 "examine the contents of a set"
	       : t->kind == CEDAR_TY_STRING ? "try using `like` to examine the contents of a string"
	                                    : NULL;
}

static const char *help_like(const struct cedar_type *t)
{
	return t->kind == CEDAR_TY_ENTITY ? "try using `is` to test for an entity type" : NULL;
}

static const char *help_is(const struct cedar_type *t)
{
	(void)t;
	return "Cedar only supports run time type tests for entities";
}

static const char *help_in(const struct cedar_type *t)
{
	(void)t;
	return "try using `contains`, `containsAny`, or `containsAll` to examine the contents of a "
	       "set";
}

static const char *help_add(const struct cedar_type *t)
{
	return t->kind == CEDAR_TY_STRING ? "Cedar does not support string concatenation"
	       : t->kind == CEDAR_TY_SET  ? "Cedar does not support computing the union, "
	                                    "intersection, or difference of sets"
	                                  : NULL;
}

static const char *help_empty(const struct cedar_type *t)
{
	return t->kind == CEDAR_TY_STRING ? "try using `== \"\"` to test if a string is empty"
	                                  : NULL;
}

/* ---- joins -------------------------------------------------------------------------------------------------------- */

static void incompatible(struct tc *c, const struct cedar_expr *e, const struct cedar_type *x,
    const struct cedar_type *y, const char *where, const char *why)
{
	const char *a = tc_type_text(c, x), *b = tc_type_text(c, y);

	if (strcmp(a, b) > 0) {
		const char *t = a;

		a = b;
		b = t;
	}
	tc_error(c, &e->span,
	    arena_printf(c->a, "for policy `" SV_FMT "`, %s must have compatible types. %s",
	        SV_ARG(c->policy), where, why),
	    "the types %s and %s are not compatible", a, b);
}

/* The answer of an operator that needs compatible operands. */
static struct tc_ans strict(struct tc *c, const struct cedar_expr *e, struct tc_ans ans,
    const struct cedar_type *x, const struct cedar_type *y, const char *where)
{
	const char *why;

	if (ans.ty == &ty_true || ans.ty == &ty_false || x == NULL || y == NULL)
		return ans;
	if (tc_join(c->a, x, y, &why) == NULL) {
		incompatible(c, e, x, y, where, why);
		ans.ok = false;
	}
	return ans;
}

/* ---- operators ---------------------------------------------------------------------------------------------------- */

struct tc_ans tc_and(struct tc *c, struct tc_ans l, struct tc_ans r)
{
	struct tc_ans x = { l.ok && r.ok, NULL, NULL };

	if (l.ty == NULL || r.ty == NULL) {
		x.ok = false;
		x.ty = &ty_bool;
	} else if (r.ty->kind == CEDAR_TY_FALSE) {
		x.ty = &ty_false;
	} else if (r.ty->kind == CEDAR_TY_TRUE) {
		x.ty = l.ty;
		x.caps = tc_union(c, l.caps, r.caps);
	} else if (l.ty->kind == CEDAR_TY_TRUE) {
		x.ty = r.ty;
		x.caps = r.caps;
	} else {
		x.ty = &ty_bool;
		x.caps = tc_union(c, l.caps, r.caps);
	}
	return x;
}

static struct tc_ans check_and(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans l = tc_check_bool(c, prior, e->arg[0]), r;
	const struct tc_cap *seen = tc_union(c, prior, l.caps);
	uint32_t i;

	for (i = 1; i < e->n_arg && !c->gave_up; i++) {
		bool was_true = l.ty != NULL && l.ty->kind == CEDAR_TY_TRUE;

		if (l.ty != NULL && l.ty->kind == CEDAR_TY_FALSE)
			return (struct tc_ans){ l.ok, &ty_false, NULL };
		r = tc_check_bool(c, seen, e->arg[i]);
		l = tc_and(c, l, r);
		/* What a True operand proves is dropped, as in the reference; else the list only grows. */
		seen = was_true ? tc_union(c, prior, l.caps) : tc_union(c, seen, r.caps);
	}
	return l;
}

static struct tc_ans join_or(struct tc *c, struct tc_ans l, struct tc_ans r)
{
	struct tc_ans x = { l.ok && r.ok, NULL, NULL };

	if (l.ty == NULL || r.ty == NULL) {
		x.ok = false;
		x.ty = &ty_bool;
	} else if (r.ty->kind == CEDAR_TY_TRUE) {
		x.ty = &ty_true;
		x.caps = r.caps;
	} else if (r.ty->kind == CEDAR_TY_FALSE) {
		x.ty = l.ty;
		x.caps = l.caps;
	} else if (l.ty->kind == CEDAR_TY_FALSE) {
		x.ty = r.ty;
		x.caps = r.caps;
	} else {
		x.ty = &ty_bool;
		x.caps = intersect(c, r.caps, l.caps);
	}
	return x;
}

static struct tc_ans check_or(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans l = tc_check_bool(c, prior, e->arg[0]);
	uint32_t i;

	for (i = 1; i < e->n_arg && !c->gave_up; i++) {
		if (l.ty != NULL && l.ty->kind == CEDAR_TY_TRUE)
			return l;
		l = join_or(c, l, tc_check_bool(c, prior, e->arg[i]));
	}
	return l;
}

static struct tc_ans negate(struct tc_ans x)
{
	x.caps = NULL;
	if (x.ty == NULL) {
		x.ok = false;
		x.ty = &ty_bool;
	} else {
		x.ty = x.ty->kind == CEDAR_TY_TRUE    ? &ty_false
		       : x.ty->kind == CEDAR_TY_FALSE ? &ty_true
		                                      : &ty_bool;
	}
	return x;
}

static struct tc_ans check_if(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans t = tc_check_bool(c, prior, e->arg[0]), a, b, x;
	const char *why;

	if (t.ty != NULL && t.ty->kind == CEDAR_TY_FALSE)
		return also(t.ok, tc_check(c, prior, e->arg[2]));
	a = tc_check(c, tc_union(c, prior, t.caps), e->arg[1]);
	a.caps = tc_union(c, a.caps, t.caps);
	if (t.ty != NULL && t.ty->kind == CEDAR_TY_TRUE)
		return also(t.ok, a);
	b = tc_check(c, prior, e->arg[2]);
	x = bad(NULL);
	if (a.ty == NULL || b.ty == NULL)
		return x;
	x.ty = tc_join(c->a, a.ty, b.ty, &why);
	if (x.ty == NULL) {
		incompatible(c, e, a.ty, b.ty, "both branches of a conditional", why);
		return x;
	}
	x.ok = t.ok && a.ok && b.ok;
	x.caps = intersect(c, b.caps, a.caps);
	return x;
}

/* A literal, the action variable counting as the action of the environment. */
static bool as_literal(const struct tc *c, const struct cedar_expr *e, struct cedar_value *v)
{
	if (e->kind == CEDAR_E_VAR && e->var == CEDAR_ACTION) {
		*v = cedar_entity(c->action->uid);
		return true;
	}
	if (e->kind != CEDAR_E_LIT)
		return false;
	*v = e->value;
	return true;
}

static struct tc_ans check_eq(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans l = tc_check(c, prior, e->arg[0]), r = tc_check(c, prior, e->arg[1]);
	const struct cedar_type *ty = &ty_bool;
	struct cedar_value x, y;

	if (l.ty != NULL && r.ty != NULL && l.ty->kind == CEDAR_TY_ENTITY &&
	    r.ty->kind == CEDAR_TY_ENTITY && l.ty->ent != NULL && r.ty->ent != NULL &&
	    l.ty->ent != r.ty->ent)
		ty = &ty_false;
	else if (as_literal(c, e->arg[0], &x) && as_literal(c, e->arg[1], &y))
		ty = cedar_value_eq(&x, &y) ? &ty_true : &ty_false;
	return also(
	    l.ok && r.ok, strict(c, e, good(ty), l.ty, r.ty, "both operands to a `==` expression"));
}

static bool ordered(const struct cedar_type *t)
{
	return t->kind == CEDAR_TY_LONG || t->kind == CEDAR_TY_DATETIME ||
	       t->kind == CEDAR_TY_DURATION;
}

static struct tc_ans check_less(
    struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	static const char all[] = "Long, or datetime, or duration";
	struct tc_ans l = tc_check(c, prior, e->arg[0]), r = tc_check(c, prior, e->arg[1]);
	const struct cedar_span *lat = &e->arg[0]->span, *rat = &e->arg[1]->span;

	if (l.ty == NULL || r.ty == NULL ||
	    (l.ty->kind == CEDAR_TY_NEVER && r.ty->kind == CEDAR_TY_NEVER))
		return bad(&ty_bool);
	if (l.ty->kind == CEDAR_TY_NEVER   ? ordered(r.ty)
	    : r.ty->kind == CEDAR_TY_NEVER ? ordered(l.ty)
	                                   : l.ty->kind == r.ty->kind && ordered(l.ty))
		return also(l.ok && r.ok, good(&ty_bool));
	if (l.ty->kind == CEDAR_TY_NEVER) {
		unexpected(c, rat, all, r.ty, NULL);
	} else if (r.ty->kind == CEDAR_TY_NEVER) {
		unexpected(c, lat, all, l.ty, NULL);
	} else if (l.ty->kind == CEDAR_TY_LONG) {
		unexpected(c, rat, "Long", r.ty, NULL);
	} else if (r.ty->kind == CEDAR_TY_LONG) {
		unexpected(c, lat, "Long", l.ty, NULL);
	} else if (ordered(l.ty)) {
		unexpected(c, rat, tc_type_text(c, l.ty), r.ty, NULL);
	} else if (ordered(r.ty)) {
		unexpected(c, lat, tc_type_text(c, r.ty), l.ty, NULL);
	} else {
		unexpected(c, lat, all, l.ty, NULL);
		unexpected(c, rat, all, r.ty, NULL);
	}
	return bad(&ty_bool);
}

/* ---- attributes and tags ------------------------------------------------------------------------------------------ */

static void put_chain(struct buf *b, const cedar_sym *v, size_t n, bool dot)
{
	/* v is innermost last written first: v[0] is the last attribute. */
	for (; n > 0; n--, dot = true) {
		sv s = cedar_sv(v[n - 1]);

		if (cedar_is_ident(s) && !cedar_is_reserved(s)) {
			if (dot)
				buf_put_byte(b, '.');
			buf_put_sv(b, s);
		} else {
			buf_put_sv(b, SV("[\""));
			cedar_put_escaped(b, s);
			buf_put_sv(b, SV("\"]"));
		}
	}
}

/* "`a.b` in context for …" and so on; *guard gets the `has` expression that would make it safe. */
static const char *access_text(struct tc *c, const struct cedar_expr *base,
    const struct cedar_type *base_ty, cedar_sym attr, const char **guard)
{
	struct buf b = buf_with(1 << 16), g = buf_with(1 << 16);
	cedar_sym chain[CEDAR_MAX_DEPTH + 1];
	size_t n = 0;
	bool context = false;
	sv last = cedar_sv(attr);

	chain[n++] = attr;
	buf_put_byte(&b, '`');
	while (base_ty == NULL || base_ty->kind != CEDAR_TY_ENTITY || base_ty->ent == NULL) {
		if (base->kind == CEDAR_E_VAR && base->var == CEDAR_CONTEXT) {
			context = true;
			break;
		}
		if (base->kind != CEDAR_E_GET || n > CEDAR_MAX_DEPTH)
			break;
		chain[n++] = base->name;
		base = base->arg[0];
		/* The type of what is in front; its findings are told already. */
		base_ty = tc_check(c, NULL, base).ty;
	}
	put_chain(&b, chain, n, false);
	buf_put_byte(&b, '`');
	if (base_ty != NULL && base_ty->kind == CEDAR_TY_ENTITY && base_ty->ent != NULL)
		buf_putf(&b, " on entity type `" SV_FMT "`", SV_ARG(cedar_sv(base_ty->ent->name)));
	else if (context)
		buf_putf(&b, " in context for %s", uid_text(c, c->action->uid));
	buf_put_c(&g, context ? "context" : "e");
	put_chain(&g, chain + 1, n - 1, true);
	buf_put_sv(&g, SV(" has "));
	if (cedar_is_ident(last) && !cedar_is_reserved(last))
		buf_put_sv(&g, last);
	else
		cedar_put_quoted(&g, last);
	*guard = take(c, &g);
	return take(c, &b);
}

static const struct cedar_attr *attribute(const struct cedar_type *ty, cedar_sym name)
{
	if (ty->kind == CEDAR_TY_RECORD)
		return cedar_type_attr(ty, name);
	if (ty->kind == CEDAR_TY_ENTITY && ty->ent != NULL)
		return cedar_type_attr(ty->ent->shape, name);
	return NULL;
}

static struct tc_ans check_get(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans x = expect(c, prior, e->arg[0], W_ENTITY | W_RECORD, NULL);
	const struct cedar_attr *at;
	const char *guard, *text;

	if (x.ty == NULL)
		return bad(NULL);
	at = attribute(x.ty, e->name);
	if (at != NULL && (at->required || has_cap(c, prior, e->arg[0], e->name, NULL)))
		return also(x.ok, good(at->type));
	/* What access_text asks again must not be reported again under other capabilities. */
	{
		struct cedar_diags *ds = c->ds, none = cedar_diags_in(c->a);

		c->ds = &none;
		text = access_text(c, e->arg[0], x.ty, e->name, &guard);
		c->ds = ds;
	}
	if (at != NULL) {
		tc_error(c, &e->span,
		    arena_printf(
		        c->a, "try testing for the attribute's presence with `%s && ..`", guard),
		    "for policy `" SV_FMT
		    "`, unable to guarantee safety of access to optional attribute %s",
		    SV_ARG(c->policy), text);
		return bad(at->type);
	}
	tc_error(c, &e->span,
	    x.ty->kind == CEDAR_TY_RECORD ? did_you_mean(c, cedar_sv(e->name), x.ty)
	    : x.ty->kind == CEDAR_TY_ENTITY && x.ty->ent != NULL
	        ? did_you_mean(c, cedar_sv(e->name), x.ty->ent->shape)
	        : NULL,
	    "for policy `" SV_FMT "`, attribute %s not found", SV_ARG(c->policy), text);
	return bad(NULL);
}

/* One step of `has`: base has name, base of type x. */
static struct tc_ans has_step(struct tc *c, const struct tc_cap *prior, struct tc_ans x,
    const struct cedar_expr *base, cedar_sym name)
{
	const struct cedar_attr *at;
	bool known;

	if (x.ty == NULL)
		return bad(&ty_bool);
	at = attribute(x.ty, name);
	if (at == NULL) {
		/* A slot of unknown type may have any attribute. */
		known = x.ty->kind != CEDAR_TY_NEVER &&
		        !(x.ty->kind == CEDAR_TY_ENTITY && x.ty->ent == NULL);
		return also(x.ok, good(known ? &ty_false : &ty_bool));
	}
	/* An entity may be missing from the store, so only of a record is a required attribute surely there. */
	known =
	    (at->required && x.ty->kind == CEDAR_TY_RECORD) || has_cap(c, prior, base, name, NULL);
	return also(x.ok, with_cap(c, good(known ? &ty_true : &ty_bool), base, name, NULL));
}

/* e has a.b.c is e has a && e.a has b && e.a.b has c. */
static struct tc_ans check_has(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans x = expect(c, prior, e->arg[0], W_ENTITY | W_RECORD, help_has), l;
	struct cedar_expr *base = e->arg[0], *g;
	uint32_t i;

	l = has_step(c, prior, x, base, e->path[0]);
	for (i = 1; i < e->n_path && !c->gave_up; i++) {
		const struct tc_cap *now;

		if (l.ty != NULL && l.ty->kind == CEDAR_TY_FALSE)
			return (struct tc_ans){ l.ok, &ty_false, NULL };
		g = ARENA_NEW(c->a, struct cedar_expr);
		if (g == NULL)
			return out_of_room(c);
		*g = (struct cedar_expr){
			.kind = CEDAR_E_GET, .span = e->span, .n_arg = 1, .name = e->path[i - 1]
		};
		g->arg = ARENA_VEC(c->a, struct cedar_expr *, 1);
		if (g->arg == NULL)
			return out_of_room(c);
		g->arg[0] = base;
		base = g;
		now = tc_union(c, prior, l.caps);
		x = expect(c, now, base, W_ENTITY | W_RECORD, help_has);
		l = tc_and(c, l, has_step(c, now, x, base, e->path[i]));
	}
	return l;
}

/* The type of the tags of an entity type (of any, for an unknown slot). NULL: no tags; *clash when they do not agree. */
static const struct cedar_type *tag_type(
    struct tc *c, const struct cedar_entity_type *ent, bool *clash)
{
	const struct cedar_type *ty = NULL;
	const char *why;
	size_t i;

	*clash = false;
	if (ent != NULL)
		return ent->tags;
	for (i = 0; i < c->s->n_etype; i++) {
		const struct cedar_type *t = c->s->etype[i]->tags;

		if (t == NULL)
			continue;
		ty = ty == NULL ? t : tc_join(c->a, ty, t, &why);
		if (ty == NULL) {
			*clash = true;
			return t;
		}
	}
	return ty;
}

static struct tc_ans check_tag(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans x = expect(c, prior, e->arg[0], W_ENTITY, NULL);
	struct tc_ans y = expect(c, prior, e->arg[1], W_STRING, NULL);
	const struct cedar_entity_type *ent;
	const struct cedar_type *ty;
	bool ok = x.ok && y.ok, cap, clash;

	if (x.ty == NULL || x.ty->kind != CEDAR_TY_ENTITY)
		return bad(NULL);
	ent = x.ty->ent;
	ty = tag_type(c, ent, &clash);
	cap = has_cap(c, prior, e->arg[0], NULL, e->arg[1]);
	if (e->kind == CEDAR_E_HAS_TAG)
		return also(ok, with_cap(c,
		                    good(ty == NULL ? &ty_false
		                         : cap      ? &ty_true
		                                    : &ty_bool),
		                    e->arg[0], NULL, e->arg[1]));
	if (!cap) {
		const char *tag = expr_text(c, e->arg[1]);

		tc_error(c, &e->span,
		    arena_printf(
		        c->a, "try testing for the tag's presence with `.hasTag(%s) && ..`", tag),
		    "for policy `" SV_FMT
		    "`, unable to guarantee safety of access to tag `%s`%s%s%s",
		    SV_ARG(c->policy), tag, ent != NULL ? " on entity type `" : "",
		    ent != NULL ? ent->name->p : "", ent != NULL ? "`" : "");
		return bad(NULL);
	}
	if (ty == NULL) {
		tc_error(c, &e->span, NULL,
		    "for policy `" SV_FMT "`, `.getTag()` is not allowed on entities of %s%s%s "
		    "because no `tags` were declared on the "
		    "entity type in the schema",
		    SV_ARG(c->policy), ent != NULL ? "type `" : "this type",
		    ent != NULL ? ent->name->p : "", ent != NULL ? "`" : "");
		return bad(NULL);
	}
	if (clash) {
		tc_error(c, &e->span, NULL, "the types of the tags are not compatible");
		return bad(NULL);
	}
	return also(ok, good(ty));
}

/* ---- hierarchy ---------------------------------------------------------------------------------------------------- */

static bool is_action_uid(struct cedar_uid u)
{
	sv t = cedar_sv(u.type);

	return sv_eq(t, SV("Action")) || sv_ends(t, SV("::Action"));
}

/* An action literal in literals: known from the groups of the schema. false when e is no list of literals. */
static bool action_in_literals(
    struct tc *c, struct cedar_uid lhs, const struct cedar_expr *e, struct tc_ans *out)
{
	struct cedar_expr *one[1] = { (struct cedar_expr *)(uintptr_t)e };
	struct cedar_expr **v = e->kind == CEDAR_E_SET ? e->arg : one;
	uint32_t i, n = e->kind == CEDAR_E_SET ? e->n_arg : 1;
	const struct cedar_action *x = cedar_schema_action(c->s, lhs);
	bool in = false, unknown = false;
	struct cedar_value u;

	for (i = 0; i < n; i++) {
		if (!as_literal(c, v[i], &u) || u.kind != CEDAR_ENTITY)
			return false;
		if (!is_action_uid(u.uid))
			continue;
		if (cedar_schema_action(c->s, u.uid) == NULL)
			unknown = true;
		else if (x != NULL && cedar_action_in(x, u.uid))
			in = true;
	}
	*out = unknown ? bad(&ty_bool) : good(in ? &ty_true : &ty_false);
	return true;
}

static struct tc_ans check_in(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans l = expect(c, prior, e->arg[0], W_ENTITY, help_in);
	struct tc_ans r = expect(c, prior, e->arg[1], W_ENTITY | W_SET_ENTITY, help_has);
	const struct cedar_entity_type *to = NULL;
	struct cedar_value u;
	struct tc_ans x;

	if (!l.ok || !r.ok || l.ty == NULL || r.ty == NULL)
		return bad(&ty_bool);
	if (as_literal(c, e->arg[0], &u) && u.kind == CEDAR_ENTITY && is_action_uid(u.uid) &&
	    action_in_literals(c, u.uid, e->arg[1], &x))
		return x;
	if (r.ty->kind == CEDAR_TY_ENTITY)
		to = r.ty->ent;
	else if (r.ty->kind == CEDAR_TY_SET && r.ty->elem != NULL &&
	         r.ty->elem->kind == CEDAR_TY_ENTITY)
		to = r.ty->elem->ent;
	if (l.ty->kind == CEDAR_TY_ENTITY && l.ty->ent != NULL && to != NULL &&
	    !cedar_etype_can_be_in(l.ty->ent, to))
		return good(&ty_false);
	return good(&ty_bool);
}

static struct tc_ans check_is(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans x = expect(c, prior, e->arg[0], W_ENTITY, help_is), l, in;
	struct cedar_expr both;

	if (x.ty == NULL || x.ty->kind != CEDAR_TY_ENTITY)
		l = bad(&ty_bool);
	else if (x.ty->ent == NULL)
		l = also(x.ok, good(&ty_bool));
	else
		l = also(x.ok, good(cedar_str_eq(x.ty->ent->name, e->name) ? &ty_true : &ty_false));
	if (e->n_arg == 1)
		return l;
	if (l.ty->kind == CEDAR_TY_FALSE)
		return l;
	both = *e;
	both.kind = CEDAR_E_IN;
	in = check_in(c, prior, &both);
	return tc_and(c, l, in);
}

/* ---- sets, records, functions ------------------------------------------------------------------------------------- */

static struct tc_ans check_set(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	const struct cedar_type *ty = &ty_never, *next;
	struct cedar_type *set;
	bool ok = true, known = true;
	const char *why;
	uint32_t i;

	for (i = 0; i < e->n_arg && !c->gave_up; i++) {
		struct tc_ans x = tc_check(c, prior, e->arg[i]);

		ok = ok && x.ok;
		if (x.ty == NULL)
			known = false;
		if (!known || ty == NULL)
			continue;
		next = tc_join(c->a, ty, x.ty, &why);
		if (next == NULL)
			incompatible(c, e, ty, x.ty, "elements of a set", why);
		ty = next;
	}
	if (e->n_arg == 0) {
		tc_error(c, &e->span, NULL,
		    "for policy `" SV_FMT "`, empty set literals are forbidden in policies",
		    SV_ARG(c->policy));
		return bad(NULL);
	}
	if (!known || ty == NULL)
		return bad(NULL);
	set = ARENA_NEW(c->a, struct cedar_type);
	if (set == NULL)
		return out_of_room(c);
	*set = (struct cedar_type){ .kind = CEDAR_TY_SET, .elem = ty };
	return also(ok, good(set));
}

static int by_name(const struct cedar_attr *v, uint32_t n, cedar_sym name)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (sv_cmp(cedar_sv(v[i].name), cedar_sv(name)) > 0)
			break;
	return (int)i;
}

static struct tc_ans check_record(
    struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct cedar_attr *v = ARENA_VEC(c->a, struct cedar_attr, e->n_arg);
	struct cedar_type *ty = ARENA_NEW(c->a, struct cedar_type);
	bool ok = true, known = true;
	uint32_t i;

	if (v == NULL || ty == NULL)
		return out_of_room(c);
	for (i = 0; i < e->n_arg && !c->gave_up; i++) {
		struct tc_ans x = tc_check(c, prior, e->arg[i]);
		uint32_t at = (uint32_t)by_name(v, i, e->path[i]);

		ok = ok && x.ok;
		known = known && x.ty != NULL;
		memmove(v + at + 1, v + at, (i - at) * sizeof(*v));
		v[at] = (struct cedar_attr){ e->path[i], x.ty, true };
	}
	if (!known)
		return bad(NULL);
	*ty = (struct cedar_type){ .kind = CEDAR_TY_RECORD, .attr = v, .n_attr = e->n_arg };
	return also(ok, good(ty));
}

static const struct {
	const struct cedar_type *ret;
	uint8_t n;
	const struct cedar_type *arg[2];
} sig[CEDAR_X_COUNT] = {
	[CEDAR_X_DECIMAL] = { &ty_decimal, 1, { &ty_string } },
	[CEDAR_X_LESS_THAN] = { &ty_bool, 2, { &ty_decimal, &ty_decimal } },
	[CEDAR_X_LESS_THAN_OR_EQUAL] = { &ty_bool, 2, { &ty_decimal, &ty_decimal } },
	[CEDAR_X_GREATER_THAN] = { &ty_bool, 2, { &ty_decimal, &ty_decimal } },
	[CEDAR_X_GREATER_THAN_OR_EQUAL] = { &ty_bool, 2, { &ty_decimal, &ty_decimal } },
	[CEDAR_X_IP] = { &ty_ip, 1, { &ty_string } },
	[CEDAR_X_IS_IPV4] = { &ty_bool, 1, { &ty_ip } },
	[CEDAR_X_IS_IPV6] = { &ty_bool, 1, { &ty_ip } },
	[CEDAR_X_IS_LOOPBACK] = { &ty_bool, 1, { &ty_ip } },
	[CEDAR_X_IS_MULTICAST] = { &ty_bool, 1, { &ty_ip } },
	[CEDAR_X_IS_IN_RANGE] = { &ty_bool, 2, { &ty_ip, &ty_ip } },
	[CEDAR_X_DATETIME] = { &ty_datetime, 1, { &ty_string } },
	[CEDAR_X_OFFSET] = { &ty_datetime, 2, { &ty_datetime, &ty_duration } },
	[CEDAR_X_DURATION_SINCE] = { &ty_duration, 2, { &ty_datetime, &ty_datetime } },
	[CEDAR_X_TO_DATE] = { &ty_datetime, 1, { &ty_datetime } },
	[CEDAR_X_TO_TIME] = { &ty_duration, 1, { &ty_datetime } },
	[CEDAR_X_DURATION] = { &ty_duration, 1, { &ty_string } },
	[CEDAR_X_TO_MILLISECONDS] = { &ty_long, 1, { &ty_duration } },
	[CEDAR_X_TO_SECONDS] = { &ty_long, 1, { &ty_duration } },
	[CEDAR_X_TO_MINUTES] = { &ty_long, 1, { &ty_duration } },
	[CEDAR_X_TO_HOURS] = { &ty_long, 1, { &ty_duration } },
	[CEDAR_X_TO_DAYS] = { &ty_long, 1, { &ty_duration } },
};

/* A literal argument of a constructor must parse. */
static bool check_constructor(struct tc *c, const struct cedar_expr *e)
{
	static const char *const what[] = { [CEDAR_X_DECIMAL] = "a decimal value",
		[CEDAR_X_IP] = "IP address",
		[CEDAR_X_DATETIME] = "a datetime value",
		[CEDAR_X_DURATION] = "a duration value" };
	struct cedar_value v;
	struct box_err err = { 0 };
	sv s;
	int r;

	if (e->n_arg == 0 || e->arg[0]->kind != CEDAR_E_LIT ||
	    e->arg[0]->value.kind != CEDAR_STRING)
		return true;
	s = cedar_sv(e->arg[0]->value.s);
	switch (e->ext) {
	case CEDAR_X_DECIMAL:
		r = cedar_decimal_parse(s, &v, &err);
		break;
	case CEDAR_X_IP:
		r = cedar_ip_parse(c->a, s, &v, &err);
		break;
	case CEDAR_X_DATETIME:
		r = cedar_datetime_parse(s, &v, &err);
		break;
	default:
		r = cedar_duration_parse(s, &v, &err);
	}
	if (r == 0)
		return true;
	tc_error(c, &e->span, err.msg,
	    "for policy `" SV_FMT "`, error during extension function argument validation: failed "
	    "to parse as %s: `\"" SV_FMT "\"`",
	    SV_ARG(c->policy), what[e->ext], SV_ARG(s));
	return false;
}

static struct tc_ans check_ext(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	bool ok = true;
	uint32_t i;

	if (e->n_arg != sig[e->ext].n) {
		tc_error(c, &e->span, NULL,
		    "for policy `" SV_FMT "`, wrong number of arguments in extension function "
		    "application. Expected %u, got %u",
		    SV_ARG(c->policy), sig[e->ext].n, e->n_arg);
		ok = false;
	}
	if (!cedar_ext_is_method(e->ext)) {
		if (!check_constructor(c, e))
			ok = false;
		for (i = 0; i < e->n_arg; i++)
			if (e->arg[i]->kind != CEDAR_E_LIT)
				break;
		if (i < e->n_arg) {
			tc_error(c, &e->span,
			    "consider applying extension constructors inside attribute values when "
			    "constructing entity or context data",
			    "for policy `" SV_FMT "`, extension constructors may not be called "
			    "with non-literal expressions",
			    SV_ARG(c->policy));
			ok = false;
		}
	}
	for (i = 0; i < e->n_arg && !c->gave_up; i++) {
		struct tc_ans x = tc_check(c, prior, e->arg[i]);

		if (!ok)
			continue;
		if (x.ty != NULL && !tc_subtype(x.ty, sig[e->ext].arg[i])) {
			unexpected(
			    c, &e->arg[i]->span, tc_type_text(c, sig[e->ext].arg[i]), x.ty, NULL);
			x.ok = false;
		}
		ok = x.ok && x.ty != NULL && ok;
	}
	return also(ok, good(sig[e->ext].ret));
}

static struct tc_ans check_contains(
    struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans l = expect(c, prior, e->arg[0], W_SET, help_set), r;

	if (e->kind == CEDAR_E_CONTAINS) {
		r = tc_check(c, prior, e->arg[1]);
		return also(l.ok && r.ok,
		    strict(c, e, good(&ty_bool),
		        l.ty != NULL && l.ty->kind == CEDAR_TY_SET ? l.ty->elem : NULL, r.ty,
		        "elements of the first operand and the second operand to a `contains` "
		        "expression"));
	}
	r = expect(c, prior, e->arg[1], W_SET, help_set_arg);
	return also(l.ok && r.ok,
	    strict(c, e, good(&ty_bool), l.ty, r.ty,
	        "elements of both set operands to a `containsAll` or `containsAny` expression"));
}

/* ---- leaves of the tree ------------------------------------------------------------------------------------------- */

static struct tc_ans of_entity(struct tc *c, const struct cedar_entity_type *ent)
{
	struct cedar_type *ty;

	if (ent == NULL)
		return good(&ty_any_entity);
	ty = ARENA_NEW(c->a, struct cedar_type);
	if (ty == NULL)
		return out_of_room(c);
	*ty = (struct cedar_type){ .kind = CEDAR_TY_ENTITY, .ent = ent };
	return good(ty);
}

static struct tc_ans check_literal(struct tc *c, const struct cedar_value *v)
{
	const struct cedar_entity_type *ent;

	switch (v->kind) {
	case CEDAR_BOOL:
		return good(v->b ? &ty_true : &ty_false);
	case CEDAR_LONG:
		return good(&ty_long);
	case CEDAR_STRING:
		return good(&ty_string);
	case CEDAR_ENTITY:
		/* An unknown type or action is reported by another pass. */
		ent = cedar_schema_etype(c->s, v->uid.type);
		if (ent == NULL || (ent->is_action && cedar_schema_action(c->s, v->uid) == NULL))
			return bad(NULL);
		return of_entity(c, ent);
	default:
		return bad(NULL);
	}
}

static struct tc_ans check_var(struct tc *c, enum cedar_var v)
{
	switch (v) {
	case CEDAR_PRINCIPAL:
		return of_entity(c, c->principal);
	case CEDAR_ACTION:
		return of_entity(c, cedar_schema_etype(c->s, c->action->uid.type));
	case CEDAR_RESOURCE:
		return of_entity(c, c->resource);
	case CEDAR_CONTEXT:
		return good(c->action->context);
	}
	return bad(NULL);
}

static struct tc_ans not_expanded(struct tc *c, const struct cedar_expr *e)
{
	tc_error(c, &e->span, NULL,
	    "for policy `" SV_FMT "`, undefined extension function: " SV_FMT, SV_ARG(c->policy),
	    SV_ARG(cedar_sv(e->name)));
	return bad(NULL);
}

struct tc_ans tc_check(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans x, y;

	if (c->gave_up || *c->budget == 0)
		return out_of_room(c);
	--*c->budget;
	switch (e->kind) {
	case CEDAR_E_LIT:
		return check_literal(c, &e->value);
	case CEDAR_E_VAR:
		return check_var(c, e->var);
	case CEDAR_E_SLOT:
		return of_entity(c, c->slot[e->var == CEDAR_PRINCIPAL ? 0 : 1]);
	case CEDAR_E_LEAF:
		return good(e->leaf->type != NULL ? e->leaf->type : &ty_bool);
	case CEDAR_E_PARAM:
	case CEDAR_E_CALL:
	case CEDAR_E_METHOD:
		return not_expanded(c, e);
	case CEDAR_E_IF:
		return check_if(c, prior, e);
	case CEDAR_E_AND:
		return check_and(c, prior, e);
	case CEDAR_E_OR:
		return check_or(c, prior, e);
	case CEDAR_E_NOT:
		return negate(tc_check_bool(c, prior, e->arg[0]));
	case CEDAR_E_NEG:
		return also(expect(c, prior, e->arg[0], W_LONG, NULL).ok, good(&ty_long));
	case CEDAR_E_EQ:
		return check_eq(c, prior, e);
	case CEDAR_E_NE:
		return negate(check_eq(c, prior, e));
	case CEDAR_E_LT:
	case CEDAR_E_LE:
	case CEDAR_E_GT:
	case CEDAR_E_GE:
		return check_less(c, prior, e);
	case CEDAR_E_IN:
		return check_in(c, prior, e);
	case CEDAR_E_ADD:
	case CEDAR_E_SUB:
	case CEDAR_E_MUL:
		x = expect(c, prior, e->arg[0], W_LONG, help_add);
		y = expect(c, prior, e->arg[1], W_LONG, help_add);
		return also(x.ok && y.ok, good(&ty_long));
	case CEDAR_E_CONTAINS:
	case CEDAR_E_CONTAINS_ALL:
	case CEDAR_E_CONTAINS_ANY:
		return check_contains(c, prior, e);
	case CEDAR_E_IS_EMPTY:
		return also(expect(c, prior, e->arg[0], W_SET, help_empty).ok, good(&ty_bool));
	case CEDAR_E_GET_TAG:
	case CEDAR_E_HAS_TAG:
		return check_tag(c, prior, e);
	case CEDAR_E_GET:
		return check_get(c, prior, e);
	case CEDAR_E_HAS:
		return check_has(c, prior, e);
	case CEDAR_E_LIKE:
		return also(expect(c, prior, e->arg[0], W_STRING, help_like).ok, good(&ty_bool));
	case CEDAR_E_IS:
		return check_is(c, prior, e);
	case CEDAR_E_SET:
		return check_set(c, prior, e);
	case CEDAR_E_RECORD:
		return check_record(c, prior, e);
	case CEDAR_E_EXT:
		return check_ext(c, prior, e);
	}
	return bad(NULL);
}
