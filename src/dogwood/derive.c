/* Events for the actions of a schema, and the pins that hold for all of them. See eschema.h. */
#include <stdlib.h>

#include "dogwood/eschema_impl.h"

#include "base/ban.h"

struct derive {
	struct arena *a;
	struct cedar_diags *ds;
	const struct cedar_schema *schema;
	size_t nodes;
};

static bool fail(struct derive *d, struct cedar_span at, const char *text)
{
	(void)cedar_diag_add(d->ds, CEDAR_ERROR, "event-schema", &at, NULL, "%s",
	    text != NULL ? text : "the event schema is too large");
	return false;
}
#define FAIL(d, at, ...) fail((d), (at), arena_printf((d)->a, __VA_ARGS__))

/* The members of a record type as fields. */
static bool members(struct derive *d, const struct cedar_type *rec, struct cedar_span at,
    unsigned depth, const struct dw_field **out, uint32_t *n)
{
	struct dw_field *v = ARENA_VEC(d->a, struct dw_field, rec->n_attr);

	/* The action schema has its own limits on types; these bound what is made of it for each
	 * action and kind. */
	if (v == NULL || depth > DW_ES_DEPTH)
		return fail(d, at, NULL);
	for (uint32_t i = 0; i < rec->n_attr; i++) {
		const struct cedar_attr *m = &rec->attr[i];

		v[i].name = cedar_sv(m->name);
		v[i].required = m->required;
		v[i].type = m->type;
		if (m->type->kind != CEDAR_TY_RECORD)
			continue;
		v[i].group = true;
		if (!members(d, m->type, at, depth + 1, &v[i].sub, &v[i].nsub))
			return false;
	}
	*out = v;
	*n = rec->n_attr;
	return true;
}

static const struct cedar_type *named(const struct derive *d, sv name)
{
	static const struct cedar_type prims[] = {
		{ .kind = CEDAR_TY_STRING },
		{ .kind = CEDAR_TY_LONG },
		{ .kind = CEDAR_TY_BOOL },
		{ .kind = CEDAR_TY_BOOL },
		{ .kind = CEDAR_TY_DECIMAL },
		{ .kind = CEDAR_TY_IP },
		{ .kind = CEDAR_TY_DATETIME },
		{ .kind = CEDAR_TY_DURATION },
	};
	static const char *const names[] = { "String", "Long", "Bool", "Boolean", "decimal",
		"ipaddr", "datetime", "duration" };
	struct cedar_type *t;

	for (size_t i = 0; i < d->schema->n_etype; i++) {
		const struct cedar_entity_type *e = d->schema->etype[i];

		if (!sv_eq(cedar_sv(e->name), name))
			continue;
		t = ARENA_NEW(d->a, struct cedar_type);
		if (t == NULL)
			return NULL;
		t->kind = CEDAR_TY_ENTITY;
		t->ent = e;
		return t;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (sv_eq(name, sv_c(names[i])))
			return &prims[i];
	}
	return NULL;
}

static bool build(struct derive *d, const struct dw_es_item *items, uint32_t n,
    const struct cedar_action *act, sv kind, const struct dw_field **out, uint32_t *nout)
{
	struct dw_field *v = ARENA_VEC(d->a, struct dw_field, n);
	const struct cedar_attr *bag;
	uint32_t k = 0;

	if (v == NULL)
		return fail(d, (struct cedar_span){ 0 }, NULL);
	for (uint32_t i = 0; i < n; i++) {
		const struct dw_es_item *f = &items[i];
		struct dw_field *o = &v[k];

		o->name = f->name;
		o->required = true;
		switch (f->is) {
		case DW_ES_SPREAD:
			bag = NULL;
			for (uint32_t x = 0; act->context != NULL && x < act->context->n_attr;
			     x++) {
				if (sv_eq(cedar_sv(act->context->attr[x].name), f->name))
					bag = &act->context->attr[x];
			}
			if (bag == NULL || bag->type->kind != CEDAR_TY_RECORD)
				continue;
			o->group = true;
			if (!members(d, bag->type, f->at, 0, &o->sub, &o->nsub))
				return false;
			break;
		case DW_ES_SELECTED:
			o->ents = f->sel == DW_ES_PRINCIPAL ? act->principal : act->resource;
			o->nents = f->sel == DW_ES_PRINCIPAL ? act->n_principal : act->n_resource;
			break;
		case DW_ES_NAMED:
			o->type = named(d, f->type);
			if (o->type == NULL)
				return FAIL(d, f->at,
				    "unknown type `" SV_FMT "` of event-schema field `" SV_FMT "`",
				    SV_ARG(f->type), SV_ARG(f->name));
			break;
		case DW_ES_GROUP:
			o->group = true;
			if (!build(d, f->sub, f->nsub, act, kind, &o->sub, &o->nsub))
				return false;
			break;
		}
		for (uint32_t x = 0; x < k; x++) {
			if (!sv_eq(v[x].name, o->name))
				continue;
			if (f->is == DW_ES_SPREAD || items[x].is == DW_ES_SPREAD)
				return FAIL(d, f->at,
				    "the `" SV_FMT
				    "` field group produced by `...%s(A)` (on `" SV_FMT "::" SV_FMT
				    "`) collides with another field named `" SV_FMT
				    "`; rename that field",
				    SV_ARG(o->name),
				    sv_eq(o->name, SV("input")) ? "inputs" : "outputs",
				    SV_ARG(cedar_sv(act->uid.id)), SV_ARG(kind), SV_ARG(o->name));
			return FAIL(d, f->at,
			    "event-schema field `" SV_FMT "` is defined more than once on `" SV_FMT
			    "::" SV_FMT "`; field names must be unique at each level",
			    SV_ARG(o->name), SV_ARG(cedar_sv(act->uid.id)), SV_ARG(kind));
		}
		k++;
	}
	*out = v;
	*nout = k;
	return true;
}

static int cmp_event(const void *a, const void *b)
{
	const struct dw_derived *x = a, *y = b;
	int c = sv_cmp(x->ns, y->ns);

	if (c == 0)
		c = sv_cmp(x->id, y->id);
	return c != 0 ? c : sv_cmp(x->kind, y->kind);
}

/* Symmetric: the field is pinned to the request's own value of the same thing. */
static bool is_symmetric(const struct dw_pin *p)
{
	const struct dw_term *t = p->term;

	if (t->kind == DW_TERM_PRINCIPAL)
		return t->path.n == 0 && sv_eq(p->field, SV("callerPrincipal"));
	if (t->kind == DW_TERM_RESOURCE)
		return t->path.n == 0 && sv_eq(p->field, SV("callerResource"));
	return t->path.n == 1 && sv_eq(t->path.v[0], p->field);
}

static bool same_pins(const struct dw_kind *a, const struct dw_kind *b)
{
	if (a->npins != b->npins)
		return false;
	for (uint32_t i = 0; i < a->npins; i++) {
		bool found = false;

		for (uint32_t k = 0; k < b->npins && !found; k++)
			found = sv_eq(a->pins[i].field, b->pins[k].field) &&
			        dw_term_same(a->pins[i].term, b->pins[k].term);
		if (!found)
			return false;
	}
	return true;
}

static void find_universal(struct dw_eschema *s)
{
	for (uint32_t i = 0; i < s->nkinds; i++) {
		if (!same_pins(&s->kinds[0], &s->kinds[i]))
			return;
	}
	for (uint32_t i = 0; i < s->kinds[0].npins; i++) {
		if (!is_symmetric(&s->kinds[0].pins[i]))
			return;
	}
	s->universal = s->kinds[0].pins;
	s->nuniversal = s->kinds[0].npins;
}

bool dw_eschema_derive(struct arena *a, const struct dw_es_event *v, uint32_t n,
    const struct cedar_schema *schema, struct dw_eschema *out, struct cedar_diags *ds)
{
	struct derive d = { .a = a, .ds = ds, .schema = schema };
	struct dw_kind *kinds = ARENA_VEC(a, struct dw_kind, n);
	struct dw_derived *events;
	size_t total = 0;

	if (kinds == NULL)
		return fail(&d, (struct cedar_span){ 0 }, NULL);
	for (uint32_t i = 0; i < n; i++) {
		struct dw_pin *pins = ARENA_VEC(a, struct dw_pin, v[i].nitems);

		if (pins == NULL)
			return fail(&d, v[i].at, NULL);
		kinds[i] =
		    (struct dw_kind){ .name = v[i].kind, .decision = v[i].decision, .pins = pins };
		for (uint32_t k = 0; k < v[i].nitems; k++) {
			if (v[i].items[k].pin)
				pins[kinds[i].npins++] =
				    (struct dw_pin){ v[i].items[k].name, v[i].items[k].value };
		}
	}
	out->kinds = kinds;
	out->nkinds = n;
	find_universal(out);
	if (schema == NULL)
		return true;
	if (!mul_sz(schema->n_action, n, &total) || total > UINT32_MAX)
		return fail(&d, (struct cedar_span){ 0 }, NULL);
	events = ARENA_VEC(a, struct dw_derived, total);
	if (events == NULL)
		return fail(&d, (struct cedar_span){ 0 }, NULL);
	total = 0;
	for (size_t i = 0; i < schema->n_action; i++) {
		const struct cedar_action *act = schema->action[i];

		for (uint32_t k = 0; k < n; k++) {
			struct dw_derived *e = &events[total++];

			e->ns = cedar_sv(act->uid.type);
			e->id = cedar_sv(act->uid.id);
			e->kind = kinds[k].name;
			e->of = &kinds[k];
			if (!build(
			        &d, v[k].items, v[k].nitems, act, e->kind, &e->fields, &e->nfields))
				return false;
		}
	}
	if (total > 1)
		qsort(events, total, sizeof(*events), cmp_event);
	out->events = events;
	out->nevents = (uint32_t)total;
	return true;
}

const struct dw_derived *dw_eschema_event(const struct dw_eschema *s, sv ns, sv id, sv kind)
{
	struct dw_derived key = { .ns = ns, .id = id, .kind = kind };

	if (s->nevents == 0)
		return NULL;
	return bsearch(&key, s->events, s->nevents, sizeof(key), cmp_event);
}

const struct dw_kind *dw_eschema_kind(const struct dw_eschema *s, sv kind)
{
	for (uint32_t i = 0; i < s->nkinds; i++) {
		if (sv_eq(s->kinds[i].name, kind))
			return &s->kinds[i];
	}
	return NULL;
}

const struct dw_field *dw_derived_field(const struct dw_derived *e, const sv *path, uint32_t n)
{
	const struct dw_field *v = e->fields, *f = NULL;
	uint32_t count = e->nfields;

	for (uint32_t i = 0; i < n; i++) {
		f = NULL;
		for (uint32_t k = 0; k < count && f == NULL; k++) {
			if (sv_eq(v[k].name, path[i]))
				f = &v[k];
		}
		if (f == NULL)
			return NULL;
		v = f->sub;
		count = f->nsub;
	}
	return f;
}

struct names {
	sv *v;
	uint32_t n, cap;
	struct arena *a;
};

static void collect(struct names *o, sv prefix, const struct dw_field *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const char *s = arena_printf(o->a, SV_FMT "%s" SV_FMT, SV_ARG(prefix),
		    prefix.n != 0 ? "." : "", SV_ARG(v[i].name));

		if (s == NULL)
			return;
		if (v[i].group) {
			collect(o, sv_c(s), v[i].sub, v[i].nsub);
			continue;
		}
		if (o->n == o->cap) {
			uint32_t cap = o->cap != 0 ? o->cap * 2 : 16;
			sv *grown = arena_grow(o->a, o->v, o->n, cap, sizeof(sv));

			if (grown == NULL)
				return;
			o->v = grown;
			o->cap = cap;
		}
		o->v[o->n++] = sv_c(s);
	}
}

static int cmp_sv(const void *a, const void *b)
{
	return sv_cmp(*(const sv *)a, *(const sv *)b);
}

const sv *dw_derived_names(struct arena *a, const struct dw_derived *e, size_t *n)
{
	struct names o = { .a = a };

	collect(&o, (sv){ NULL, 0 }, e->fields, e->nfields);
	if (o.n > 1)
		qsort(o.v, o.n, sizeof(sv), cmp_sv);
	*n = o.n;
	return o.v;
}

void dw_derived_list(struct arena *a, const struct dw_derived *e, struct buf *out)
{
	size_t n;
	const sv *v = dw_derived_names(a, e, &n);

	for (size_t i = 0; i < n; i++) {
		if (i != 0)
			buf_put_c(out, ", ");
		buf_put_sv(out, v[i]);
	}
}
