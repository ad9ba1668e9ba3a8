/* Declarations to the resolved schema: names looked up, common types replaced, hierarchies
 * closed. Spec 3.5.
 *
 * Names: a path of several parts is whole; a single part is tried in the current namespace, then
 * in the empty one; in each as common type first, then as entity type; then as primitive or
 * extension type (schema_types.c). */
#include "cedar/schema.h"
#include "cedar/schema_priv.h"
#include "cedar/schema_res.h"
#include "cedar/sort.h"

#include <stdlib.h>

#include "base/ban.h"

/* ---- definitions --------------------------------------------------------------------------- */

static bool is_type_word(sv s)
{
	static const char *const words[] = { "Bool", "Boolean", "Entity", "Extension", "Long",
		"Record", "Set", "String" };
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (sv_eq(s, sv_c(words[i])))
			return true;
	return false;
}

static void define_common(struct res *r, cedar_sym ns, const struct cedar_scommon *d)
{
	struct common *c = ARENA_NEW(r->a, struct common);
	cedar_sym n = res_whole(r, ns, d->name);

	if (c == NULL || n == NULL) {
		res_nomem(r);
		return;
	}
	if (is_type_word(cedar_sv(d->name)))
		res_fail(r, &d->span,
		    "this is reserved and cannot be the basename of a common-type declaration: ",
		    cedar_sv(d->name), "", NULL);
	c->decl = d;
	c->ns = ns;
	switch (smap_add(&r->commons, n, NULL, c)) {
	case 0:
		res_fail(r, &d->span, "common type ", cedar_sv(n), " is declared twice", NULL);
		break;
	case -1:
		res_nomem(r);
	}
}

static struct cedar_entity_type *add_etype(struct res *r, cedar_sym n)
{
	struct cedar_entity_type *e = ARENA_NEW(r->a, struct cedar_entity_type);

	if (e == NULL)
		return res_nomem(r);
	e->name = n;
	switch (smap_add(&r->etypes, n, NULL, e)) {
	case 0:
		return NULL;
	case -1:
		return res_nomem(r);
	}
	return e;
}

static void define_entity(struct res *r, cedar_sym ns, const struct cedar_sentity *d)
{
	cedar_sym n = res_whole(r, ns, d->name);
	struct cedar_entity_type *e;

	if (n == NULL)
		return;
	if (sv_eq(cedar_sv(d->name), SV("Action"))) {
		res_fail(r, &d->span, "entity type ", cedar_sv(d->name),
		    " is reserved for actions and cannot be declared", NULL);
		return;
	}
	e = add_etype(r, n);
	if (e != NULL) {
		e->decl = d;
		e->enum_id = d->enum_id;
		e->n_enum = d->n_enum;
	} else if (!r->failed) {
		res_fail(r, &d->span, "entity type ", cedar_sv(n), " is declared twice", NULL);
	}
}

static void define_action(struct res *r, cedar_sym ns, const struct cedar_saction *d)
{
	cedar_sym word = cedar_intern(r->t, SV("Action")), type;
	struct cedar_action *x = ARENA_NEW(r->a, struct cedar_action);
	struct cedar_entity_type *e;

	if (word == NULL || x == NULL) {
		res_nomem(r);
		return;
	}
	type = res_whole(r, ns, word);
	if (type == NULL)
		return;
	x->uid = (struct cedar_uid){ type, d->id };
	x->decl = d;
	switch (smap_add(&r->actions, type, d->id, x)) {
	case 0:
		res_fail(r, &d->span, "action ", cedar_sv(d->id), " is declared twice", NULL);
		return;
	case -1:
		res_nomem(r);
		return;
	}
	e = smap_get(&r->etypes, type, NULL);
	if (e == NULL)
		e = add_etype(r, type);
	if (e != NULL)
		e->is_action = true;
}

/* A name of the empty namespace must not be declared again in another one: a reader could take
 * one for the other. */
static void check_shadowing(struct res *r)
{
	uint32_t i, j;

	for (i = 0; i < r->src->n_ns; i++) {
		const struct cedar_snamespace *ns = &r->src->ns[i];

		if (ns->name == r->none)
			continue;
		for (j = 0; j < ns->n_common; j++)
			if (smap_get(&r->commons, ns->common[j].name, NULL) != NULL ||
			    smap_get(&r->etypes, ns->common[j].name, NULL) != NULL)
				res_fail(r, &ns->common[j].span, "the definition of ",
				    cedar_sv(ns->common[j].name),
				    " illegally shadows the definition in the empty namespace",
				    "rename one of them");
		for (j = 0; j < ns->n_entity; j++)
			if (smap_get(&r->commons, ns->entity[j].name, NULL) != NULL ||
			    smap_get(&r->etypes, ns->entity[j].name, NULL) != NULL)
				res_fail(r, &ns->entity[j].span, "the definition of ",
				    cedar_sv(ns->entity[j].name),
				    " illegally shadows the definition in the empty namespace",
				    "rename one of them");
		for (j = 0; j < ns->n_action; j++)
			if (smap_get(&r->actions, cedar_intern(r->t, SV("Action")),
			        ns->action[j].id) != NULL)
				res_fail(r, &ns->action[j].span, "the definition of action ",
				    cedar_sv(ns->action[j].id),
				    " illegally shadows the definition in the empty namespace",
				    "rename one of them");
	}
}

/* ---- entity types and actions -------------------------------------------------------------- */

static bool etype_list(struct res *r, cedar_sym ns, const cedar_sym *name, uint32_t n,
    const struct cedar_span *at, const struct cedar_entity_type ***out, uint32_t *n_out)
{
	const struct cedar_entity_type **v = ARENA_VEC(r->a, const struct cedar_entity_type *, n);
	uint32_t i, j, m = 0;
	cedar_sym can[2];

	if (v == NULL)
		return res_nomem(r) != NULL;
	for (i = 0; i < n; i++) {
		struct cedar_entity_type *e = NULL;

		if (!res_possible(r, ns, name[i], can))
			return false;
		for (j = 0; j < 2 && e == NULL && can[j] != NULL; j++)
			e = smap_get(&r->etypes, can[j], NULL);
		if (e == NULL) {
			res_unknown(r, at, "undeclared entity type: ", name[i]);
			continue;
		}
		for (j = 0; j < m && j < 1024; j++)
			if (v[j] == e)
				break;
		if (j == m || j == 1024)
			v[m++] = e;
	}
	*out = v;
	*n_out = m;
	return true;
}

static void fill_entity(struct res *r, cedar_sym ns, const struct cedar_sentity *d)
{
	cedar_sym n = res_whole(r, ns, d->name);
	struct cedar_entity_type *e = n != NULL ? smap_get(&r->etypes, n, NULL) : NULL;
	size_t size = 0;

	if (e == NULL || e->decl != d)
		return;
	e->shape = res_shape(r, ns, d->shape, &d->span);
	if (d->tags != NULL) {
		r->depth = 0;
		e->tags = res_type(r, ns, d->tags, &size);
	}
	if (etype_list(r, ns, d->parent, d->n_parent, &d->span, &e->parent, &e->n_parent)) {
		uint32_t i;

		for (i = 0; i < e->n_parent; i++)
			if (e->parent[i]->is_action)
				res_fail(r, &d->span,
				    "an entity cannot be a member of the action type ",
				    cedar_sv(e->parent[i]->name), "", NULL);
	}
}

static struct cedar_action *find_parent(
    struct res *r, cedar_sym ns, const struct cedar_saction_ref *ref)
{
	cedar_sym type = ref->type != NULL ? ref->type : cedar_intern(r->t, SV("Action")), can[2];
	struct cedar_action *x = NULL;
	int i;

	if (type == NULL || !res_possible(r, ns, type, can))
		return res_nomem(r);
	for (i = 0; i < 2 && x == NULL && can[i] != NULL; i++)
		x = smap_get(&r->actions, can[i], ref->id);
	return x;
}

static void fill_action(struct res *r, cedar_sym ns, const struct cedar_saction *d)
{
	cedar_sym word = cedar_intern(r->t, SV("Action")),
	          type = word != NULL ? res_whole(r, ns, word) : NULL;
	struct cedar_action *x = type != NULL ? smap_get(&r->actions, type, d->id) : NULL;
	uint32_t i;

	if (x == NULL || x->decl != d)
		return;
	x->context = res_shape(r, ns, d->context, &d->span);
	etype_list(r, ns, d->principal, d->n_principal, &d->span, &x->principal, &x->n_principal);
	etype_list(r, ns, d->resource, d->n_resource, &d->span, &x->resource, &x->n_resource);
	x->parent = ARENA_VEC(r->a, const struct cedar_action *, d->n_parent);
	if (x->parent == NULL) {
		res_nomem(r);
		return;
	}
	for (i = 0; i < d->n_parent; i++) {
		const struct cedar_action *up = find_parent(r, ns, &d->parent[i]);

		if (up == NULL)
			res_fail(r, &d->span, "undeclared action: ", cedar_sv(d->parent[i].id), "",
			    NULL);
		else
			x->parent[x->n_parent++] = up;
	}
}

static int by_address(const void *a, const void *b)
{
	uintptr_t x = (uintptr_t) * (const void *const *)a,
	          y = (uintptr_t) * (const void *const *)b;

	return x < y ? -1 : x > y;
}

/* One step of a hierarchy: the parents of a node, and the key it is known by. */
struct step {
	const void *const *up;
	uint32_t n;
	cedar_sym a, b;
};
typedef struct step (*step_fn)(const void *node);

static struct step etype_step(const void *node)
{
	const struct cedar_entity_type *e = node;

	return (struct step){ (const void *const *)e->parent, e->n_parent, e->name, NULL };
}

static struct step action_step(const void *node)
{
	const struct cedar_action *x = node;

	return (struct step){ (const void *const *)x->parent, x->n_parent, x->uid.type, x->uid.id };
}

#define MAX_UP_ALL ((size_t)1 << 22) /* links of all closures together */

/* Every node reachable over parents; the start only when a cycle leads back (*cycle). Vector in
 * the arena, sorted by address. */
static const void **closure(
    struct res *r, const void *start, step_fn step, uint32_t *n_out, bool *cycle)
{
	AUTO_SMAP seen = { 0 };
	const void **v = NULL;
	size_t n = 0, cap = 0, i;
	struct step at = step(start);
	uint32_t k;

	*cycle = false;
	for (i = 0;; i++) {
		for (k = 0; k < at.n; k++) {
			struct step up = step(at.up[k]);
			int fresh = smap_add(&seen, up.a, up.b, r);

			if (at.up[k] == start)
				*cycle = true;
			if (fresh == 0)
				continue;
			v = schema_room(r->a, v, n, &cap, sizeof(*v));
			if (fresh < 0 || v == NULL || ++r->links > MAX_UP_ALL)
				return res_nomem(r);
			v[n++] = at.up[k];
		}
		if (i == n)
			break;
		at = step(v[i]);
	}
	if (n > 1)
		cedar_sort(v, n, sizeof(*v), by_address);
	*n_out = (uint32_t)n;
	return v;
}

static int by_etype(const void *a, const void *b)
{
	const struct cedar_entity_type *x = *(struct cedar_entity_type *const *)a;
	const struct cedar_entity_type *y = *(struct cedar_entity_type *const *)b;

	return sv_cmp(cedar_sv(x->name), cedar_sv(y->name));
}

static int by_action(const void *a, const void *b)
{
	const struct cedar_action *x = *(struct cedar_action *const *)a;
	const struct cedar_action *y = *(struct cedar_action *const *)b;
	int c = sv_cmp(cedar_sv(x->uid.type), cedar_sv(y->uid.type));

	return c != 0 ? c : sv_cmp(cedar_sv(x->uid.id), cedar_sv(y->uid.id));
}

static void collect(struct res *r)
{
	struct cedar_schema *s = r->out;
	size_t i;

	s->etype = ARENA_VEC(r->a, struct cedar_entity_type *, r->etypes.n);
	s->action = ARENA_VEC(r->a, struct cedar_action *, r->actions.n);
	if (s->etype == NULL || s->action == NULL) {
		res_nomem(r);
		return;
	}
	for (i = 0; i < r->etypes.n_slot; i++)
		if (r->etypes.slot[i].value != NULL)
			s->etype[s->n_etype++] = r->etypes.slot[i].value;
	for (i = 0; i < r->actions.n_slot; i++)
		if (r->actions.slot[i].value != NULL)
			s->action[s->n_action++] = r->actions.slot[i].value;
	cedar_sort(s->etype, s->n_etype, sizeof(struct cedar_entity_type *), by_etype);
	cedar_sort(s->action, s->n_action, sizeof(struct cedar_action *), by_action);
}

/* The ancestors of entity types; for action types the types of the ancestors of their actions. */
static void close_etypes(struct res *r)
{
	static const struct cedar_type empty = { .kind = CEDAR_TY_RECORD };
	struct cedar_schema *s = r->out;
	bool cycle;
	size_t i, j;
	uint32_t k, m;

	for (i = 0; i < s->n_action; i++) {
		struct cedar_action *x = s->action[i];

		x->ancestor = (const struct cedar_action **)closure(
		    r, x, action_step, &x->n_ancestor, &cycle);
		if (cycle)
			res_fail(r, &x->decl->span, "action ", cedar_sv(x->uid.id),
			    " is a member of itself", NULL);
	}
	for (i = 0; i < s->n_etype; i++) {
		struct cedar_entity_type *e = s->etype[i];
		const struct cedar_entity_type **v = NULL;
		size_t cap = 0, n = 0;

		if (!e->is_action) {
			e->ancestor = (const struct cedar_entity_type **)closure(
			    r, e, etype_step, &e->n_ancestor, &cycle);
			continue;
		}
		e->shape = &empty;
		for (j = 0; j < s->n_action; j++) {
			const struct cedar_action *x = s->action[j];

			if (x->uid.type != e->name)
				continue;
			for (k = 0; k < x->n_ancestor; k++) {
				const struct cedar_entity_type *up =
				    smap_get(&r->etypes, x->ancestor[k]->uid.type, NULL);

				for (m = 0; m < n && v[m] != up; m++)
					;
				if (m < n || up == e)
					continue;
				v = schema_room(r->a, v, n, &cap, sizeof(*v));
				if (v == NULL) {
					res_nomem(r);
					return;
				}
				v[n++] = up;
			}
		}
		e->ancestor = v;
		e->n_ancestor = (uint32_t)n;
		if (n > 1)
			cedar_sort(v, n, sizeof(*v), by_address);
	}
}

static void action_store(struct res *r)
{
	struct cedar_schema *s = r->out;
	struct box_err err;
	size_t i;
	uint32_t k;

	s->actions = cedar_entities_in(r->a, NULL);
	for (i = 0; i < s->n_action && !r->failed; i++) {
		const struct cedar_action *x = s->action[i];
		struct cedar_uid *up = ARENA_VEC(r->a, struct cedar_uid, x->n_parent);
		struct cedar_entity_data d = {
			.uid = x->uid, .parents = up, .n_parents = x->n_parent
		};

		if (up == NULL) {
			res_nomem(r);
			return;
		}
		for (k = 0; k < x->n_parent; k++)
			up[k] = x->parent[k]->uid;
		if (cedar_entities_add(&s->actions, &d, &err) < 0) {
			res_nomem(r);
			return;
		}
	}
	if (!r->failed && cedar_entities_close(&s->actions, &err) < 0) {
		cedar_diag_add(r->ds, CEDAR_ERROR, "schema", NULL, NULL, "%s", err.msg);
		r->failed = true;
	}
}

static void define_all(struct res *r)
{
	uint32_t i, j;

	for (i = 0; i < r->src->n_ns; i++) {
		const struct cedar_snamespace *ns = &r->src->ns[i];

		for (j = 0; j < ns->n_common; j++)
			define_common(r, ns->name, &ns->common[j]);
		for (j = 0; j < ns->n_entity; j++)
			define_entity(r, ns->name, &ns->entity[j]);
		for (j = 0; j < ns->n_action; j++)
			define_action(r, ns->name, &ns->action[j]);
	}
}

static void fill_all(struct res *r)
{
	uint32_t i, j;

	for (i = 0; i < r->src->n_ns; i++) {
		const struct cedar_snamespace *ns = &r->src->ns[i];
		size_t size = 0;

		/* Also those nobody uses. */
		for (j = 0; j < ns->n_common; j++) {
			cedar_sym n = res_whole(r, ns->name, ns->common[j].name);
			struct common *c = n != NULL ? smap_get(&r->commons, n, NULL) : NULL;

			r->depth = 0;
			size = 0;
			if (c != NULL)
				(void)res_common(r, c, &size); /* a failure is told already */
		}
		for (j = 0; j < ns->n_entity; j++)
			fill_entity(r, ns->name, &ns->entity[j]);
		for (j = 0; j < ns->n_action; j++)
			fill_action(r, ns->name, &ns->action[j]);
	}
}

struct cedar_schema *cedar_schema_resolve(struct cedar_syms *t, struct arena *a,
    const struct cedar_schema_src *src, struct cedar_diags *ds)
{
	struct res r = { .t = t, .a = a, .ds = ds, .src = src };

	r.out = ARENA_NEW(a, struct cedar_schema);
	r.none = cedar_intern(t, SV(""));
	if (r.out == NULL || r.none == NULL) {
		res_nomem(&r);
	} else {
		r.out->t = t;
		r.out->src = src;
		define_all(&r);
		check_shadowing(&r);
		fill_all(&r);
		collect(&r);
		if (!r.failed)
			close_etypes(&r);
		if (!r.failed)
			action_store(&r);
	}
	smap_fini(&r.commons);
	smap_fini(&r.etypes);
	smap_fini(&r.actions);
	return r.failed ? NULL : r.out;
}

struct cedar_schema *cedar_schema_load(
    struct cedar_syms *t, struct arena *a, sv text, bool json, struct cedar_diags *ds)
{
	struct cedar_schema_src *src = ARENA_NEW(a, struct cedar_schema_src);

	if (src == NULL) {
		cedar_diag_add(ds, CEDAR_ERROR, "limit", NULL, NULL, "out of memory");
		return NULL;
	}
	if ((json ? cedar_schema_parse_json(t, a, text, src, ds)
	          : cedar_schema_parse(t, a, text, src, ds)) < 0)
		return NULL;
	return cedar_schema_resolve(t, a, src, ds);
}
