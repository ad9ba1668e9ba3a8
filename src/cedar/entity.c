/* The entity store: a hash table over a vector, and the transitive closure of the parents. See
 * entity.h. */
#include "cedar/entity.h"

#include <stdlib.h>

#include "base/ban.h"

static int uid_cmp(struct cedar_uid a, struct cedar_uid b)
{
	struct cedar_value x = cedar_entity(a), y = cedar_entity(b);

	return cedar_value_cmp(&x, &y);
}

static size_t find(const struct cedar_entities *s, struct cedar_uid u)
{
	size_t i = (size_t)(cedar_uid_hash(u) >> 7) & (s->n_slot - 1);

	while (s->slot[i] != 0 && !cedar_uid_eq(s->e[s->slot[i] - 1].uid, u))
		i = (i + 1) & (s->n_slot - 1);
	return i;
}

const struct cedar_entity_data *cedar_entities_find(
    const struct cedar_entities *s, struct cedar_uid u)
{
	for (; s != NULL; s = s->below) {
		size_t i;

		if (s->n == 0)
			continue;
		i = find(s, u);
		if (s->slot[i] != 0)
			return &s->e[s->slot[i] - 1];
	}
	return NULL;
}

static int grow(struct cedar_entities *s)
{
	size_t i, cap = s->cap != 0 ? s->cap * 2 : 8, n_slot = cap * 2;
	struct cedar_entity_data *e = arena_grow(s->a, s->e, s->n, cap, sizeof(*e));
	uint32_t *slot = ARENA_VEC(s->a, uint32_t, n_slot);

	if (e == NULL || slot == NULL)
		return -1;
	s->e = e;
	s->cap = cap;
	s->slot = slot;
	s->n_slot = n_slot;
	for (i = 0; i < s->n; i++)
		slot[find(s, e[i].uid)] = (uint32_t)i + 1;
	return 0;
}

static int too_much(struct box_err *err)
{
	return box_fail(err, BOX_ELIMIT, 0, "the entities need more memory than is allowed");
}

static bool same_record(const struct cedar_record *a, const struct cedar_record *b)
{
	static const struct cedar_record none = { 0 };
	struct cedar_value x = { .kind = CEDAR_RECORD }, y = { .kind = CEDAR_RECORD };

	x.rec = a != NULL ? a : &none;
	y.rec = b != NULL ? b : &none;
	return cedar_value_eq(&x, &y);
}

/* The same entity again, parents in the same order (so that the comparison is linear). */
static bool same_entity(const struct cedar_entity_data *a, const struct cedar_entity_data *b)
{
	uint32_t i;

	if (a->n_parents != b->n_parents)
		return false;
	for (i = 0; i < a->n_parents; i++)
		if (!cedar_uid_eq(a->parents[i], b->parents[i]))
			return false;
	return same_record(a->attrs, b->attrs) && same_record(a->tags, b->tags);
}

int cedar_entities_add(
    struct cedar_entities *s, const struct cedar_entity_data *e, struct box_err *err)
{
	size_t i;

	if (s->n >= CEDAR_MAX_ENTITIES)
		return box_fail(
		    err, BOX_ELIMIT, 0, "more than %zu entities", (size_t)CEDAR_MAX_ENTITIES);
	if (s->n == s->cap && grow(s) < 0)
		return too_much(err);
	i = find(s, e->uid);
	if (s->slot[i] != 0 && same_entity(&s->e[s->slot[i] - 1], e))
		return 0;
	if (s->slot[i] != 0)
		return box_fail(err, BOX_EPARSE, 0,
		    "duplicate entity entry `" SV_FMT "::\"" SV_FMT "\"`",
		    SV_ARG(cedar_sv(e->uid.type)), SV_ARG(cedar_sv(e->uid.id)));
	s->e[s->n] = *e;
	s->e[s->n].ancestors = NULL;
	s->e[s->n].n_ancestors = 0;
	s->slot[i] = (uint32_t)++s->n;
	s->closed = false;
	return 0;
}

/* ---- closure ------------------------------------------------------------------------------- */

/* A growing set of references, open-addressed, for the ancestors of one entity. `mark` says in
 * which round a slot was used, so it need not be cleared. */
struct seen {
	struct cedar_uid *list;
	size_t n, cap;
	uint32_t *slot, *mark;
	size_t n_slot;
	uint32_t round;
};

static int seen_grow(struct seen *k)
{
	size_t cap = k->cap != 0 ? k->cap * 2 : 64, i, j;
	struct cedar_uid *list = realloc(k->list, cap * sizeof(*list));
	uint32_t *slot, *mark;

	if (list == NULL)
		return -1;
	k->list = list;
	slot = calloc(cap * 2, sizeof(*slot));
	mark = calloc(cap * 2, sizeof(*mark));
	if (slot == NULL || mark == NULL) {
		free(slot);
		free(mark);
		return -1;
	}
	free(k->slot);
	free(k->mark);
	k->slot = slot;
	k->mark = mark;
	k->cap = cap;
	k->n_slot = cap * 2;
	k->round = 1;
	for (i = 0; i < k->n; i++) {
		j = (size_t)(cedar_uid_hash(list[i]) >> 7) & (k->n_slot - 1);
		while (mark[j] == k->round)
			j = (j + 1) & (k->n_slot - 1);
		mark[j] = k->round;
		slot[j] = (uint32_t)i;
	}
	return 0;
}

/* 1 added, 0 was there, -1 no memory. */
static int seen_add(struct seen *k, struct cedar_uid u)
{
	size_t j;

	if (k->n == k->cap && seen_grow(k) < 0)
		return -1;
	j = (size_t)(cedar_uid_hash(u) >> 7) & (k->n_slot - 1);
	while (k->mark[j] == k->round) {
		if (cedar_uid_eq(k->list[k->slot[j]], u))
			return 0;
		j = (j + 1) & (k->n_slot - 1);
	}
	k->mark[j] = k->round;
	k->slot[j] = (uint32_t)k->n;
	k->list[k->n++] = u;
	return 1;
}

static void seen_clear(struct seen *k)
{
	k->n = 0;
	if (++k->round == 0 && k->mark != NULL) {
		memset(k->mark, 0, k->n_slot * sizeof(*k->mark));
		k->round = 1;
	}
}

static int by_uid(const void *a, const void *b)
{
	return uid_cmp(*(const struct cedar_uid *)a, *(const struct cedar_uid *)b);
}

/* Walk up from e, breadth first. An ancestor whose own closure is done is not walked again: its
 * closure is merged. */
static int close_one(struct cedar_entities *s, struct cedar_entity_data *e, struct seen *k,
    size_t *budget, struct box_err *err)
{
	size_t i;
	uint32_t j;
	struct cedar_uid *v;

	seen_clear(k);
	for (j = 0; j < e->n_parents; j++)
		if (seen_add(k, e->parents[j]) < 0)
			return box_nomem(err, "ancestors");
	for (i = 0; i < k->n; i++) {
		const struct cedar_entity_data *p = cedar_entities_find(s, k->list[i]);
		const struct cedar_uid *up;
		uint32_t n;

		if (p == NULL)
			continue;
		if (p == e)
			return box_fail(err, BOX_EPARSE, 0,
			    "input graph has a cycle containing vertex `" SV_FMT "::\"" SV_FMT
			    "\"`",
			    SV_ARG(cedar_sv(e->uid.type)), SV_ARG(cedar_sv(e->uid.id)));
		up = p->ancestors != NULL ? p->ancestors : p->parents;
		n = p->ancestors != NULL ? p->n_ancestors : p->n_parents;
		if (n > *budget)
			goto limit;
		*budget -= n;
		for (j = 0; j < n; j++)
			if (seen_add(k, up[j]) < 0)
				return box_nomem(err, "ancestors");
	}
	if (k->n == 0)
		return 0;
	v = ARENA_VEC(s->a, struct cedar_uid, k->n);
	if (v == NULL)
		return too_much(err);
	memcpy(v, k->list, k->n * sizeof(*v));
	qsort(v, k->n, sizeof(*v), by_uid);
	e->ancestors = v;
	e->n_ancestors = (uint32_t)k->n;
	return 0;
limit:
	return box_fail(err, BOX_ELIMIT, 0, "the hierarchy of the entities has more than %zu links",
	    (size_t)CEDAR_MAX_ANCESTORS);
}

int cedar_entities_close(struct cedar_entities *s, struct box_err *err)
{
	struct seen k = { .round = 1 };
	size_t budget = CEDAR_MAX_ANCESTORS, i;
	int r = 0;

	for (i = 0; i < s->n && r == 0; i++)
		if (s->e[i].n_parents != 0 && s->e[i].ancestors == NULL)
			r = close_one(s, &s->e[i], &k, &budget, err);
	free(k.list);
	free(k.slot);
	free(k.mark);
	s->closed = r == 0;
	return r;
}

bool cedar_entities_in_hierarchy(
    const struct cedar_entities *s, struct cedar_uid a, struct cedar_uid b)
{
	const struct cedar_entity_data *e;
	uint32_t i, lo = 0, hi;

	if (cedar_uid_eq(a, b))
		return true;
	e = cedar_entities_find(s, a);
	if (e == NULL)
		return false;
	if (e->n_ancestors <= 8) {
		for (i = 0; i < e->n_ancestors; i++)
			if (cedar_uid_eq(e->ancestors[i], b))
				return true;
		return false;
	}
	hi = e->n_ancestors;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		int c = uid_cmp(e->ancestors[mid], b);

		if (c == 0)
			return true;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}
