/* Symbol tables: an open-addressed table of pointers to strings in an arena. Keyed hash, since
 * names come from outside. */
#include "cedar/value.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/ban.h"

struct cedar_syms {
	struct arena a;
	struct sip_key key;
	cedar_sym *slot;
	size_t n, n_slot; /* n_slot is a power of two, or 0 */
};

struct cedar_syms *cedar_syms_new(size_t limit)
{
	struct cedar_syms *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->a.limit = limit;
	t->key = sip_key_random();
	return t;
}

void cedar_syms_free(struct cedar_syms *t)
{
	if (t == NULL)
		return;
	arena_free(&t->a);
	free(t->slot);
	free(t);
}

static cedar_sym str_make(struct arena *a, sv s, uint64_t hash)
{
	struct cedar_str *p;

	if (s.n > CEDAR_STR_MAX)
		return NULL;
	p = arena_alloc(a, 1, sizeof(*p) + s.n + 1);
	if (p == NULL)
		return NULL;
	p->hash = hash;
	p->n = (uint32_t)s.n;
	if (s.n != 0)
		memcpy(p->p, s.p, s.n);
	return p;
}

/* The slot of s: where it is, or where it would go. n_slot is not 0 and one slot is free. */
static size_t find(const struct cedar_syms *t, sv s, uint64_t h)
{
	size_t i = (size_t)h & (t->n_slot - 1);

	while (t->slot[i] != NULL) {
		if (t->slot[i]->hash == h && sv_eq(cedar_sv(t->slot[i]), s))
			break;
		i = (i + 1) & (t->n_slot - 1);
	}
	return i;
}

static int grow(struct cedar_syms *t)
{
	size_t n = t->n_slot != 0 ? t->n_slot * 2 : 64, i;
	cedar_sym *old = t->slot, *fresh = calloc(n, sizeof(*fresh));
	size_t old_n = t->n_slot;

	if (fresh == NULL)
		return -1;
	t->slot = fresh;
	t->n_slot = n;
	for (i = 0; i < old_n; i++)
		if (old[i] != NULL)
			fresh[find(t, cedar_sv(old[i]), old[i]->hash)] = old[i];
	free(old);
	return 0;
}

cedar_sym cedar_intern(struct cedar_syms *t, sv s)
{
	uint64_t h = sip_hash(t->key, s);
	size_t i;

	if (t->n >= t->n_slot / 4 * 3 && grow(t) < 0)
		return NULL;
	i = find(t, s, h);
	if (t->slot[i] == NULL) {
		cedar_sym p = str_make(&t->a, s, h);

		if (p == NULL)
			return NULL;
		t->slot[i] = p;
		t->n++;
	}
	return t->slot[i];
}

cedar_sym cedar_syms_find(const struct cedar_syms *t, sv s)
{
	return t->n_slot != 0 ? t->slot[find(t, s, sip_hash(t->key, s))] : NULL;
}

cedar_sym cedar_str_new(const struct cedar_syms *t, struct arena *a, sv s)
{
	uint64_t h = sip_hash(t->key, s);
	cedar_sym p = t->n_slot != 0 ? t->slot[find(t, s, h)] : NULL;

	return p != NULL ? p : str_make(a, s, h);
}
