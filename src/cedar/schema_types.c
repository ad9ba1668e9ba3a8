/* Types as written to types: names looked up, common types replaced. See schema.h, spec 3.5.
 * Hostile input: common types may form cycles or grow exponentially, so both are checked. */
#include "cedar/schema_priv.h"
#include "cedar/schema_res.h"
#include "cedar/sort.h"

#include <stdlib.h>

#include "base/ban.h"

static const struct cedar_type ty_builtin[] = {
	{ .kind = CEDAR_TY_BOOL },
	{ .kind = CEDAR_TY_LONG },
	{ .kind = CEDAR_TY_STRING },
	{ .kind = CEDAR_TY_DECIMAL },
	{ .kind = CEDAR_TY_IP },
	{ .kind = CEDAR_TY_DATETIME },
	{ .kind = CEDAR_TY_DURATION },
};
static const char *const builtin_name[] = { "Bool", "Long", "String", "decimal", "ipaddr",
	"datetime", "duration" };
#define N_BUILTIN 7

void res_fail(struct res *r, const struct cedar_span *at, const char *before, sv name,
    const char *after, const char *hint)
{
	cedar_diag_add(r->ds, CEDAR_ERROR, "schema", at != NULL && at->line != 0 ? at : NULL, hint,
	    "%s`" SV_FMT "`%s", before, SV_ARG(name), after);
	r->failed = true;
}

void *res_nomem(struct res *r)
{
	if (!r->failed)
		cedar_diag_add(r->ds, CEDAR_ERROR, "limit", NULL, NULL,
		    "the schema needs more memory than is allowed");
	r->failed = true;
	return NULL;
}

cedar_sym res_whole(struct res *r, cedar_sym ns, cedar_sym name)
{
	cedar_sym s = schema_join(r->t, r->a, ns, name);

	return s != NULL ? s : res_nomem(r);
}

static const struct cedar_type *builtin(sv name)
{
	size_t i;

	for (i = 0; i < N_BUILTIN; i++)
		if (sv_eq(name, sv_c(builtin_name[i])))
			return &ty_builtin[i];
	return NULL;
}

const struct cedar_type *res_common(struct res *r, struct common *c, size_t *size)
{
	if (c->state == C_OPEN) {
		res_fail(r, &c->decl->span, "cycle in common type references containing type ",
		    cedar_sv(c->decl->name), "", NULL);
		return NULL;
	}
	if (c->state == C_NEW) {
		c->state = C_OPEN;
		c->type = res_type(r, c->ns, c->decl->type, &c->size);
		c->state = C_DONE;
	}
	*size += c->size;
	return c->type;
}

static const struct cedar_type *entity_type(struct res *r, const struct cedar_entity_type *e)
{
	struct cedar_type *ty = ARENA_NEW(r->a, struct cedar_type);

	if (ty == NULL)
		return res_nomem(r);
	ty->kind = CEDAR_TY_ENTITY;
	ty->ent = e;
	return ty;
}

/* A declared name as it would be written: without its namespace when the word has none. */
static sv as_written(cedar_sym name, sv word)
{
	sv s = cedar_sv(name);
	ptrdiff_t i = sv_rfind(s, ':');

	return i >= 0 && sv_find(word, ':') < 0 ? sv_sub(s, (size_t)i + 1, SIZE_MAX) : s;
}

static sv near_name(struct res *r, sv word)
{
	sv v[512];
	size_t i, n = 0;

	for (i = 0; i < r->etypes.n_slot && n < 256; i++)
		if (r->etypes.slot[i].value != NULL)
			v[n++] = as_written(r->etypes.slot[i].a, word);
	for (i = 0; i < r->commons.n_slot && n < 500; i++)
		if (r->commons.slot[i].value != NULL)
			v[n++] = as_written(r->commons.slot[i].a, word);
	for (i = 0; i < N_BUILTIN; i++)
		v[n++] = sv_c(builtin_name[i]);
	return cedar_nearest(word, v, n);
}

void res_unknown(struct res *r, const struct cedar_span *at, const char *what, cedar_sym name)
{
	sv near = near_name(r, cedar_sv(name));
	const char *hint =
	    near.n != 0 ? arena_printf(r->a, "did you mean `" SV_FMT "`?", SV_ARG(near)) : NULL;

	res_fail(r, at, what, cedar_sv(name), "", hint);
}

bool res_possible(struct res *r, cedar_sym ns, cedar_sym name, cedar_sym out[2])
{
	out[0] = name;
	out[1] = NULL;
	if (sv_find(cedar_sv(name), ':') >= 0 || ns == r->none)
		return true;
	out[0] = res_whole(r, ns, name);
	out[1] = name;
	return out[0] != NULL;
}

static const struct cedar_type *resolve_name(
    struct res *r, cedar_sym ns, const struct cedar_sty *s, size_t *size)
{
	bool common = s->kind != CEDAR_STY_ENTITY, entity = s->kind != CEDAR_STY_COMMON;
	const struct cedar_type *b;
	cedar_sym n[2];
	sv text = cedar_sv(s->name);
	int i;

	(*size)++;
	if (!res_possible(r, ns, s->name, n))
		return NULL;
	for (i = 0; i < 2 && n[i] != NULL; i++) {
		struct common *c = common ? smap_get(&r->commons, n[i], NULL) : NULL;
		struct cedar_entity_type *e = entity ? smap_get(&r->etypes, n[i], NULL) : NULL;

		if (c != NULL)
			return res_common(r, c, size);
		if (e != NULL)
			return entity_type(r, e);
	}
	if (common) {
		/* The short name of a primitive gives way to a declaration of that name in the
		 * empty namespace. */
		if (sv_starts(text, SV("__cedar::")))
			text = sv_sub(text, 9, SIZE_MAX);
		else if (smap_get(&r->etypes, s->name, NULL) != NULL)
			text = SV("");
		b = builtin(text);
		if (b != NULL)
			return b;
	}
	res_unknown(r, &s->span,
	    s->kind == CEDAR_STY_ENTITY   ? "undeclared entity type: "
	    : s->kind == CEDAR_STY_COMMON ? "undeclared common type: "
	                                  : "failed to resolve type: ",
	    s->name);
	return NULL;
}

static int by_attr(const void *a, const void *b)
{
	return sv_cmp(cedar_sv(((const struct cedar_attr *)a)->name),
	    cedar_sv(((const struct cedar_attr *)b)->name));
}

static const struct cedar_type *resolve_record(
    struct res *r, cedar_sym ns, const struct cedar_sty *s, size_t *size)
{
	struct cedar_type *ty = ARENA_NEW(r->a, struct cedar_type);
	struct cedar_attr *v = ARENA_VEC(r->a, struct cedar_attr, s->n_attr);
	bool good = true;
	uint32_t i;

	if (ty == NULL || v == NULL)
		return res_nomem(r);
	if (s->open) {
		cedar_diag_add(r->ds, CEDAR_ERROR, "schema", NULL, "list the attributes",
		    "records and entities with `additionalAttributes` are experimental and not "
		    "supported");
		r->failed = true;
	}
	for (i = 0; i < s->n_attr; i++) {
		v[i].name = s->attr[i].name;
		v[i].required = s->attr[i].required;
		v[i].type = res_type(r, ns, s->attr[i].type, size);
		if (v[i].type == NULL)
			good = false;
	}
	cedar_sort(v, s->n_attr, sizeof(*v), by_attr);
	ty->kind = CEDAR_TY_RECORD;
	ty->attr = v;
	ty->n_attr = s->n_attr;
	return good ? ty : NULL;
}

const struct cedar_type *res_type(
    struct res *r, cedar_sym ns, const struct cedar_sty *s, size_t *size)
{
	const struct cedar_type *ty = NULL, *elem;
	struct cedar_type *set;

	(*size)++;
	if (*size > CEDAR_SCHEMA_MAX_TYPE_NODES || ++r->depth > 4 * CEDAR_SCHEMA_MAX_DEPTH) {
		if (!r->failed)
			cedar_diag_add(r->ds, CEDAR_ERROR, "limit", NULL, NULL,
			    "the types of the schema are too large or too deep");
		r->failed = true;
		return NULL;
	}
	switch (s->kind) {
	case CEDAR_STY_NAME:
	case CEDAR_STY_ENTITY:
	case CEDAR_STY_COMMON:
		ty = resolve_name(r, ns, s, size);
		break;
	case CEDAR_STY_PRIM:
		ty = builtin(cedar_sv(s->name));
		if (ty == NULL)
			res_fail(
			    r, &s->span, "unknown extension type ", cedar_sv(s->name), "", NULL);
		break;
	case CEDAR_STY_SET:
		elem = res_type(r, ns, s->elem, size);
		if (elem == NULL)
			break;
		set = ARENA_NEW(r->a, struct cedar_type);
		if (set == NULL)
			return res_nomem(r);
		set->kind = CEDAR_TY_SET;
		set->elem = elem;
		ty = set;
		break;
	case CEDAR_STY_RECORD:
		ty = resolve_record(r, ns, s, size);
		break;
	}
	r->depth--;
	return ty;
}

const struct cedar_type *res_shape(
    struct res *r, cedar_sym ns, const struct cedar_sty *s, const struct cedar_span *at)
{
	static const struct cedar_type empty = { .kind = CEDAR_TY_RECORD };
	const struct cedar_type *ty;
	size_t size = 0;

	r->depth = 0;
	if (s == NULL)
		return &empty;
	ty = res_type(r, ns, s, &size);
	if (ty != NULL && ty->kind != CEDAR_TY_RECORD) {
		cedar_diag_add(r->ds, CEDAR_ERROR, "schema", at->line != 0 ? at : NULL, NULL,
		    "entity type `shape` or action `context` must be a record type");
		r->failed = true;
		return NULL;
	}
	return ty;
}
