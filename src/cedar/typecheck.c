/* Types of expressions in one request environment: findings, what expressions prove,
 * expectations, leaves and the dispatch. Each function answers like the reference's typechecker:
 * a wrong part is reported and the rest is checked on with the best type known. The operators
 * are in typecheck_ops.c. Spec 3.6. */
#include "cedar/typecheck.h"

#include <stdio.h>

#include "base/ban.h"

#define ANY_ENTITY "__cedar::internal::AnyEntity"
#define ANY_RECORD "__cedar::internal::OpenRecord{}"
#define ANY_SET    "Set<__cedar::internal::Any>"

/* ---- reporting ----------------------------------------------------------------------------- */

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

const char *tc_take(struct tc *c, struct buf *b)
{
	const char *s = buf_ok(b) ? arena_printf(c->a, SV_FMT, SV_ARG(buf_sv(b))) : NULL;

	buf_fini(b);
	return s != NULL ? s : "?";
}

const char *tc_type_text(struct tc *c, const struct cedar_type *ty)
{
	struct buf b = buf_with(1 << 16);

	cedar_put_type(&b, ty);
	return tc_take(c, &b);
}

/* ---- answers and capabilities -------------------------------------------------------------- */

struct tc_ans tc_good(const struct cedar_type *ty)
{
	return (struct tc_ans){ true, ty, NULL };
}

struct tc_ans tc_bad(const struct cedar_type *ty)
{
	return (struct tc_ans){ false, ty, NULL };
}

struct tc_ans tc_also(bool ok, struct tc_ans x)
{
	x.ok = x.ok && ok;
	return x;
}

struct tc_ans tc_out_of_room(struct tc *c)
{
	c->gave_up = true;
	return tc_bad(NULL);
}

bool tc_has_cap(struct tc *c, const struct tc_cap *k, const struct cedar_expr *e, cedar_sym attr,
    const struct cedar_expr *tag)
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

const struct tc_cap *tc_intersect(struct tc *c, const struct tc_cap *a, const struct tc_cap *b)
{
	const struct tc_cap *r = NULL;

	for (; a != NULL; a = a->next)
		if (tc_has_cap(c, b, a->e, a->attr, a->tag))
			r = push(c, a, r);
	return r;
}

struct tc_ans tc_with_cap(struct tc *c, struct tc_ans x, const struct cedar_expr *e, cedar_sym attr,
    const struct cedar_expr *tag)
{
	struct tc_cap k = { e, attr, tag, NULL };

	x.caps = push(c, &k, NULL);
	return x;
}

/* ---- expectations -------------------------------------------------------------------------- */

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

void tc_unexpected(struct tc *c, const struct cedar_span *at, const char *want,
    const struct cedar_type *saw, const char *hint)
{
	tc_error(c, at, hint, "for policy `" SV_FMT "`, unexpected type: expected %s but saw %s",
	    SV_ARG(c->policy), want, tc_type_text(c, saw));
}

struct tc_ans tc_expect(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e,
    unsigned want, tc_help_fn help)
{
	struct tc_ans x = tc_check(c, prior, e);

	if (x.ty == NULL)
		return tc_bad(NULL);
	if (!meets(x.ty, want)) {
		tc_unexpected(c, &e->span, want_text(want), x.ty, help != NULL ? help(x.ty) : NULL);
		return tc_bad(NULL);
	}
	return x;
}

struct tc_ans tc_check_bool(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	return tc_expect(c, prior, e, W_BOOL, NULL);
}

/* ---- leaves of the tree -------------------------------------------------------------------- */

static struct tc_ans of_entity(struct tc *c, const struct cedar_entity_type *ent)
{
	struct cedar_type *ty;

	if (ent == NULL)
		return tc_good(&tc_ty_any_entity);
	ty = ARENA_NEW(c->a, struct cedar_type);
	if (ty == NULL)
		return tc_out_of_room(c);
	*ty = (struct cedar_type){ .kind = CEDAR_TY_ENTITY, .ent = ent };
	return tc_good(ty);
}

static struct tc_ans check_literal(struct tc *c, const struct cedar_value *v)
{
	const struct cedar_entity_type *ent;

	switch (v->kind) {
	case CEDAR_BOOL:
		return tc_good(v->b ? &tc_ty_true : &tc_ty_false);
	case CEDAR_LONG:
		return tc_good(&tc_ty_long);
	case CEDAR_STRING:
		return tc_good(&tc_ty_string);
	case CEDAR_ENTITY:
		/* An unknown type or action is reported by another pass. */
		ent = cedar_schema_etype(c->s, v->uid.type);
		if (ent == NULL || (ent->is_action && cedar_schema_action(c->s, v->uid) == NULL))
			return tc_bad(NULL);
		return of_entity(c, ent);
	default:
		return tc_bad(NULL);
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
		return tc_good(c->action->context);
	}
	return tc_bad(NULL);
}

static struct tc_ans not_expanded(struct tc *c, const struct cedar_expr *e)
{
	tc_error(c, &e->span, NULL,
	    "for policy `" SV_FMT "`, undefined extension function: " SV_FMT, SV_ARG(c->policy),
	    SV_ARG(cedar_sv(e->name)));
	return tc_bad(NULL);
}

struct tc_ans tc_check(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	if (c->gave_up || *c->budget == 0)
		return tc_out_of_room(c);
	--*c->budget;
	switch (e->kind) {
	case CEDAR_E_LIT:
		return check_literal(c, &e->value);
	case CEDAR_E_VAR:
		return check_var(c, e->var);
	case CEDAR_E_SLOT:
		return of_entity(c, c->slot[e->var == CEDAR_PRINCIPAL ? 0 : 1]);
	case CEDAR_E_LEAF:
		return tc_good(e->leaf->type != NULL ? e->leaf->type : &tc_ty_bool);
	case CEDAR_E_PARAM:
	case CEDAR_E_CALL:
	case CEDAR_E_METHOD:
		return not_expanded(c, e);
	case CEDAR_E_IF:
		return tc_on_if(c, prior, e);
	case CEDAR_E_AND:
		return tc_on_and(c, prior, e);
	case CEDAR_E_OR:
		return tc_on_or(c, prior, e);
	case CEDAR_E_NOT:
		return tc_negate(tc_check_bool(c, prior, e->arg[0]));
	case CEDAR_E_NEG:
		return tc_on_neg(c, prior, e);
	case CEDAR_E_EQ:
		return tc_on_eq(c, prior, e);
	case CEDAR_E_NE:
		return tc_negate(tc_on_eq(c, prior, e));
	case CEDAR_E_LT:
	case CEDAR_E_LE:
	case CEDAR_E_GT:
	case CEDAR_E_GE:
		return tc_on_less(c, prior, e);
	case CEDAR_E_IN:
		return tc_on_in(c, prior, e);
	case CEDAR_E_ADD:
	case CEDAR_E_SUB:
	case CEDAR_E_MUL:
		return tc_on_arith(c, prior, e);
	case CEDAR_E_CONTAINS:
	case CEDAR_E_CONTAINS_ALL:
	case CEDAR_E_CONTAINS_ANY:
		return tc_on_contains(c, prior, e);
	case CEDAR_E_IS_EMPTY:
		return tc_on_is_empty(c, prior, e);
	case CEDAR_E_GET_TAG:
	case CEDAR_E_HAS_TAG:
		return tc_on_tag(c, prior, e);
	case CEDAR_E_GET:
		return tc_on_get(c, prior, e);
	case CEDAR_E_HAS:
		return tc_on_has(c, prior, e);
	case CEDAR_E_LIKE:
		return tc_on_like(c, prior, e);
	case CEDAR_E_IS:
		return tc_on_is(c, prior, e);
	case CEDAR_E_SET:
		return tc_on_set(c, prior, e);
	case CEDAR_E_RECORD:
		return tc_on_record(c, prior, e);
	case CEDAR_E_EXT:
		return tc_on_ext(c, prior, e);
	}
	return tc_bad(NULL);
}
