/* See smap.h. */
#include "cedar/smap.h"

#include <stdlib.h>

#include "base/ban.h"

void smap_fini(struct smap *m)
{
	free(m->slot);
	*m = (struct smap){ 0 };
}

static size_t find(const struct smap *m, cedar_sym a, cedar_sym b)
{
	uint64_t h = a->hash ^ (b != NULL ? b->hash * 31 : 0);
	size_t i = (size_t)(h >> 5) & (m->n_slot - 1);

	while (m->slot[i].value != NULL && (m->slot[i].a != a || m->slot[i].b != b))
		i = (i + 1) & (m->n_slot - 1);
	return i;
}

void *smap_get(const struct smap *m, cedar_sym a, cedar_sym b)
{
	return m->n_slot != 0 && a != NULL ? m->slot[find(m, a, b)].value : NULL;
}

static int grow(struct smap *m)
{
	struct smap fresh = { .n = m->n, .n_slot = m->n_slot != 0 ? m->n_slot * 2 : 32 };
	size_t i;

	fresh.slot = calloc(fresh.n_slot, sizeof(*fresh.slot));
	if (fresh.slot == NULL)
		return -1;
	for (i = 0; i < m->n_slot; i++)
		if (m->slot[i].value != NULL)
			fresh.slot[find(&fresh, m->slot[i].a, m->slot[i].b)] = m->slot[i];
	free(m->slot);
	*m = fresh;
	return 0;
}

int smap_add(struct smap *m, cedar_sym a, cedar_sym b, void *value)
{
	size_t i;

	if (m->n >= m->n_slot / 2 && grow(m) < 0)
		return -1;
	i = find(m, a, b);
	if (m->slot[i].value != NULL)
		return 0;
	m->slot[i] = (struct smap_slot){ a, b, value };
	m->n++;
	return 1;
}
