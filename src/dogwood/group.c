/* See group.h. */
#include "dogwood/group.h"

#include <stdlib.h>

#include "dogwood/hist.h"
#include "dogwood/grow.h"

#include "base/ban.h"

bool dw_queue_push(struct dw_g_queue *q, struct dw_stamp at, const int64_t *add,
    struct dw_val *vals, uint32_t keep, int64_t before)
{
	uint32_t i;

	while (q->n != 0 && ((keep != 0 && q->n >= keep) || q->at[q->first].ts < before)) {
		if (q->cum != NULL)
			q->base = q->cum[q->first];
		if (q->vals != NULL)
			free(q->vals[q->first]);
		q->first++;
		q->n--;
	}
	if (q->first + q->n == q->cap) {
		if (q->first >= q->n && q->first != 0) {
			/* At least half is free in front. */
			memcpy(q->at, q->at + q->first, q->n * sizeof(*q->at));
			if (q->cum != NULL)
				memcpy(q->cum, q->cum + q->first, q->n * sizeof(*q->cum));
			if (q->vals != NULL)
				memcpy(q->vals, q->vals + q->first, q->n * sizeof(*q->vals));
			q->first = 0;
		} else {
			uint32_t cap = q->cap != 0 ? q->cap * 2 : 4;
			void *p;

			if (cap < q->cap)
				return false;
			p = dw_grow(q->at, cap, sizeof(*q->at));
			if (p == NULL)
				return false;
			q->at = p;
			if (add != NULL) {
				p = dw_grow(q->cum, cap, sizeof(*q->cum));
				if (p == NULL)
					return false;
				q->cum = p;
			}
			if (vals != NULL) {
				p = dw_grow(q->vals, cap, sizeof(*q->vals));
				if (p == NULL)
					return false;
				q->vals = p;
			}
			q->cap = cap;
		}
	}
	i = q->first + q->n;
	q->at[i] = at;
	if (add != NULL)
		q->cum[i] = (q->n != 0 ? q->cum[i - 1] : q->base) + *add;
	if (vals != NULL)
		q->vals[i] = vals;
	q->n++;
	return true;
}

uint32_t dw_queue_find(const struct dw_g_queue *q, int64_t before, uint64_t from)
{
	uint32_t lo = 0, hi = q->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct dw_stamp *s = &q->at[q->first + mid];

		if (s->ts < before || s->seq < from)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

__int128 dw_queue_sum(const struct dw_g_queue *q, uint32_t i)
{
	if (i >= q->n)
		return 0;
	return q->cum[q->first + q->n - 1] - (i != 0 ? q->cum[q->first + i - 1] : q->base);
}

void dw_queue_fini(void *g)
{
	struct dw_g_queue *q = g;

	for (uint32_t i = 0; q->vals != NULL && i < q->n; i++)
		free(q->vals[q->first + i]);
	free(q->at);
	free(q->cum);
	free(q->vals);
}

static void row_fini(void *g)
{
	struct dw_g_row *r = g;

	free(r->vals);
}

void dw_distinct_fini(void *g)
{
	struct dw_g_distinct *d = g;

	dw_table_fini(&d->rows, row_fini);
}

void dw_distinct_expire(struct dw_g_distinct *g, int64_t before, size_t most)
{
	struct dw_g_row *r;

	for (; most != 0; most--) {
		r = dw_table_oldest(&g->rows);
		if (r == NULL || dw_table_ts(r) >= before)
			return;
		g->sum -= r->add;
		dw_table_drop(&g->rows, r, row_fini);
	}
}

void dw_run_fini(void *g)
{
	struct dw_g_run *r = g;

	free(r->key);
}

void dw_last_fini(void *g)
{
	struct dw_g_last *l = g;

	for (int i = 0; i < 2; i++) {
		free(l->m[i].key);
		free(l->m[i].vals);
	}
}

size_t dw_group_size(enum dw_rel_kind k)
{
	switch (k) {
	case DW_REL_LATEST:
		return sizeof(struct dw_g_latest);
	case DW_REL_QUEUE:
		return sizeof(struct dw_g_queue);
	case DW_REL_DISTINCT:
		return sizeof(struct dw_g_distinct);
	case DW_REL_RUN:
		return sizeof(struct dw_g_run);
	case DW_REL_LAST:
		return sizeof(struct dw_g_last);
	}
	return 0;
}

void (*dw_group_fini(enum dw_rel_kind k))(void *)
{
	switch (k) {
	case DW_REL_LATEST:
		return NULL;
	case DW_REL_QUEUE:
		return dw_queue_fini;
	case DW_REL_DISTINCT:
		return dw_distinct_fini;
	case DW_REL_RUN:
		return dw_run_fini;
	case DW_REL_LAST:
		return dw_last_fini;
	}
	return NULL;
}

size_t dw_state_bytes(const struct dw_state *s)
{
	size_t n = sizeof(*s) + s->groups.bytes;

	for (void *g = dw_table_oldest(&s->groups); g != NULL; g = dw_table_newer(g)) {
		const struct dw_g_queue *q = g;
		const struct dw_g_distinct *d = g;

		if (s->kind == DW_REL_QUEUE)
			n += q->cap * (sizeof(*q->at) + (q->cum != NULL ? sizeof(*q->cum) : 0));
		if (s->kind == DW_REL_DISTINCT)
			n += d->rows.bytes;
	}
	return n;
}
