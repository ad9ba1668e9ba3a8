/* Attributes and tags: access, tests of presence, and what a condition proves about them (spec
 * 3.6). See typecheck.h. */
#include "cedar/typecheck.h"

#include "base/ban.h"

static const char *did_you_mean(struct tc *c, sv word, const struct cedar_type *record)
{
	sv v[256], near;
	uint32_t i;

	for (i = 0; i < record->n_attr && i < 256; i++)
		v[i] = cedar_sv(record->attr[i].name);
	near = cedar_nearest(word, v, i);
	if (near.n != 0)
		return arena_printf(c->a, "did you mean `" SV_FMT "`?", SV_ARG(near));
	/* It may be one level below: `context.path` for `context.input.path`. */
	for (i = 0; i < record->n_attr; i++)
		if (record->attr[i].type->kind == CEDAR_TY_RECORD &&
		    cedar_type_attr_named(record->attr[i].type, word) != NULL)
			return arena_printf(c->a, "did you mean `" SV_FMT "." SV_FMT "`?",
			    SV_ARG(cedar_sv(record->attr[i].name)), SV_ARG(word));
	return NULL;
}

static const char *expr_text(struct tc *c, const struct cedar_expr *e)
{
	struct buf b = buf_with(1 << 16);

	cedar_put_expr(&b, e, NULL);
	return tc_take(c, &b);
}

static const char *uid_text(struct tc *c, struct cedar_uid u)
{
	struct buf b = buf_with(1 << 16);

	cedar_put_uid(&b, u);
	return tc_take(c, &b);
}

const char *tc_help_has(const struct cedar_type *t)
{
	return t->kind == CEDAR_TY_SET ? "try using `contains`, `containsAny`, or `containsAll` to "
	                                 "examine the contents of a set"
	       : t->kind == CEDAR_TY_STRING ? "try using `like` to examine the contents of a string"
	                                    : NULL;
}

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
	*guard = tc_take(c, &g);
	return tc_take(c, &b);
}

static const struct cedar_attr *attribute(const struct cedar_type *ty, cedar_sym name)
{
	if (ty->kind == CEDAR_TY_RECORD)
		return cedar_type_attr(ty, name);
	if (ty->kind == CEDAR_TY_ENTITY && ty->ent != NULL)
		return cedar_type_attr(ty->ent->shape, name);
	return NULL;
}

struct tc_ans tc_on_get(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans x = tc_expect(c, prior, e->arg[0], W_ENTITY | W_RECORD, NULL);
	const struct cedar_attr *at;
	const char *guard, *text;

	if (x.ty == NULL)
		return tc_bad(NULL);
	at = attribute(x.ty, e->name);
	if (at != NULL && (at->required || tc_has_cap(c, prior, e->arg[0], e->name, NULL)))
		return tc_also(x.ok, tc_good(at->type));
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
		return tc_bad(at->type);
	}
	tc_error(c, &e->span,
	    x.ty->kind == CEDAR_TY_RECORD ? did_you_mean(c, cedar_sv(e->name), x.ty)
	    : x.ty->kind == CEDAR_TY_ENTITY && x.ty->ent != NULL
	        ? did_you_mean(c, cedar_sv(e->name), x.ty->ent->shape)
	        : NULL,
	    "for policy `" SV_FMT "`, attribute %s not found", SV_ARG(c->policy), text);
	return tc_bad(NULL);
}

/* One step of `has`: base has name, base of type x. */
static struct tc_ans has_step(struct tc *c, const struct tc_cap *prior, struct tc_ans x,
    const struct cedar_expr *base, cedar_sym name)
{
	const struct cedar_attr *at;
	bool known;

	if (x.ty == NULL)
		return tc_bad(&tc_ty_bool);
	at = attribute(x.ty, name);
	if (at == NULL) {
		/* A slot of unknown type may have any attribute. */
		known = x.ty->kind != CEDAR_TY_NEVER &&
		        !(x.ty->kind == CEDAR_TY_ENTITY && x.ty->ent == NULL);
		return tc_also(x.ok, tc_good(known ? &tc_ty_false : &tc_ty_bool));
	}
	/* An entity may be missing from the store, so only of a record is a required attribute
	 * surely there. */
	known = (at->required && x.ty->kind == CEDAR_TY_RECORD) ||
	        tc_has_cap(c, prior, base, name, NULL);
	return tc_also(
	    x.ok, tc_with_cap(c, tc_good(known ? &tc_ty_true : &tc_ty_bool), base, name, NULL));
}

/* e has a.b.c is e has a && e.a has b && e.a.b has c. */
struct tc_ans tc_on_has(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans x = tc_expect(c, prior, e->arg[0], W_ENTITY | W_RECORD, tc_help_has), l;
	struct cedar_expr *base = e->arg[0], *g;
	uint32_t i;

	l = has_step(c, prior, x, base, e->path[0]);
	for (i = 1; i < e->n_path && !c->gave_up; i++) {
		const struct tc_cap *now;

		if (l.ty != NULL && l.ty->kind == CEDAR_TY_FALSE)
			return (struct tc_ans){ l.ok, &tc_ty_false, NULL };
		g = ARENA_NEW(c->a, struct cedar_expr);
		if (g == NULL)
			return tc_out_of_room(c);
		*g = (struct cedar_expr){
			.kind = CEDAR_E_GET, .span = e->span, .n_arg = 1, .name = e->path[i - 1]
		};
		g->arg = ARENA_VEC(c->a, struct cedar_expr *, 1);
		if (g->arg == NULL)
			return tc_out_of_room(c);
		g->arg[0] = base;
		base = g;
		now = tc_union(c, prior, l.caps);
		x = tc_expect(c, now, base, W_ENTITY | W_RECORD, tc_help_has);
		l = tc_and(c, l, has_step(c, now, x, base, e->path[i]));
	}
	return l;
}

/* The type of the tags of an entity type (of any, for an unknown slot). NULL: no tags; *clash
 * when they do not agree. */
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

struct tc_ans tc_on_tag(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans x = tc_expect(c, prior, e->arg[0], W_ENTITY, NULL);
	struct tc_ans y = tc_expect(c, prior, e->arg[1], W_STRING, NULL);
	const struct cedar_entity_type *ent;
	const struct cedar_type *ty;
	bool ok = x.ok && y.ok, cap, clash;

	if (x.ty == NULL || x.ty->kind != CEDAR_TY_ENTITY)
		return tc_bad(NULL);
	ent = x.ty->ent;
	ty = tag_type(c, ent, &clash);
	cap = tc_has_cap(c, prior, e->arg[0], NULL, e->arg[1]);
	if (e->kind == CEDAR_E_HAS_TAG)
		return tc_also(ok, tc_with_cap(c,
		                       tc_good(ty == NULL ? &tc_ty_false
		                               : cap      ? &tc_ty_true
		                                          : &tc_ty_bool),
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
		return tc_bad(NULL);
	}
	if (ty == NULL) {
		tc_error(c, &e->span, NULL,
		    "for policy `" SV_FMT "`, `.getTag()` is not allowed on entities of %s%s%s "
		    "because no `tags` were declared on the "
		    "entity type in the schema",
		    SV_ARG(c->policy), ent != NULL ? "type `" : "this type",
		    ent != NULL ? ent->name->p : "", ent != NULL ? "`" : "");
		return tc_bad(NULL);
	}
	if (clash) {
		tc_error(c, &e->span, NULL, "the types of the tags are not compatible");
		return tc_bad(NULL);
	}
	return tc_also(ok, tc_good(ty));
}
