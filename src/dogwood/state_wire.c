/* The stored form of states: groups in the order of their last touch. Read back from disk, so
 * bounded and checked: stamps and timepoints must rise, counts are limited by what is there. */
#include <stdlib.h>

#include "dogwood/group.h"
#include "dogwood/hist.h"

#include "base/ban.h"

#define KEY_BYTES (DW_EVENT_BYTES_MAX * 2)

static int corrupt(struct box_err *err, const char *what)
{
	return box_fail(err, BOX_ECORRUPT, 0, "stored monitor state: %s", what);
}

static void put_stamp(struct buf *b, const struct dw_stamp *s)
{
	buf_put_u64(b, s->seq);
	buf_put_u64(b, (uint64_t)s->ts);
}

static struct dw_stamp get_stamp(struct rd *r)
{
	struct dw_stamp s;

	s.seq = rd_u64(r);
	s.ts = (int64_t)rd_u64(r);
	return s;
}

static void put_vals(struct buf *b, const struct dw_val *v, uint32_t n)
{
	buf_put_u32(b, v != NULL ? n : 0);
	for (uint32_t i = 0; v != NULL && i < n; i++)
		dw_val_put(b, &v[i]);
}

/* Values of a row: exactly n, or none when n is 0. */
static int get_vals(
    struct rd *r, struct arena *a, uint32_t n, struct dw_val **out, struct box_err *err)
{
	struct dw_val *v;
	const struct dw_val **p;

	*out = NULL;
	if (rd_u32(r) != n || r->bad)
		return corrupt(err, "a row is damaged");
	if (n == 0)
		return 0;
	arena_reset(a);
	v = ARENA_VEC(a, struct dw_val, n);
	p = ARENA_VEC(a, const struct dw_val *, n);
	if (v == NULL || p == NULL)
		return box_nomem(err, "monitor state");
	for (uint32_t i = 0; i < n; i++) {
		if (dw_val_get(r, a, &v[i], err) < 0)
			return -1;
		p[i] = &v[i];
	}
	*out = dw_vals_blob(p, n);
	return *out != NULL ? 0 : box_nomem(err, "monitor state");
}

static void put_i128(struct buf *b, __int128 v)
{
	buf_put_u64(b, (uint64_t)((unsigned __int128)v >> 64));
	buf_put_u64(b, (uint64_t)v);
}

static __int128 get_i128(struct rd *r)
{
	uint64_t hi = rd_u64(r), lo = rd_u64(r);

	return (__int128)((unsigned __int128)hi << 64 | lo);
}

static void put_queue(struct buf *b, const struct dw_g_queue *q, uint32_t nval)
{
	buf_put_u32(b, q->n);
	buf_put_byte(b, q->cum != NULL);
	put_i128(b, q->base);
	for (uint32_t i = q->first; i < q->first + q->n; i++) {
		put_stamp(b, &q->at[i]);
		if (q->cum != NULL)
			put_i128(b, q->cum[i]);
		put_vals(b, q->vals != NULL ? q->vals[i] : NULL, nval);
	}
}

static int get_queue(
    struct rd *r, struct arena *a, struct dw_g_queue *q, uint32_t nval, struct box_err *err)
{
	uint32_t n = rd_u32(r);
	bool sums = rd_u8(r) != 0;
	struct dw_stamp last = { 0 }, s;
	__int128 cum, before;
	struct dw_val *vals;
	int64_t add;

	q->base = before = get_i128(r);
	if (r->bad || n > rd_left(r))
		return corrupt(err, "cut short");
	for (uint32_t i = 0; i < n; i++) {
		s = get_stamp(r);
		cum = sums ? get_i128(r) : 0;
		if (r->bad || (i != 0 && (s.seq <= last.seq || s.ts < last.ts)))
			return corrupt(err, "stamps out of order");
		if (cum - before > INT64_MAX || cum - before < INT64_MIN)
			return corrupt(err, "a sum is damaged");
		add = (int64_t)(cum - before);
		before = cum;
		last = s;
		if (get_vals(r, a, nval, &vals, err) < 0)
			return -1;
		if (!dw_queue_push(q, s, sums ? &add : NULL, vals, 0, INT64_MIN)) {
			free(vals);
			return box_nomem(err, "monitor state");
		}
	}
	return 0;
}

static void put_distinct(struct buf *b, const struct dw_g_distinct *g, uint32_t nval)
{
	buf_put_u64(b, g->ready ? g->rows.n : 0);
	for (struct dw_g_row *w = g->ready ? dw_table_oldest(&g->rows) : NULL; w != NULL;
	     w = dw_table_newer(w)) {
		buf_put_str(b, dw_table_key(&g->rows, w));
		buf_put_u64(b, (uint64_t)dw_table_ts(w));
		buf_put_u64(b, w->seq);
		buf_put_u64(b, (uint64_t)w->add);
		put_vals(b, w->vals, nval);
	}
}

static int get_distinct(struct rd *r, struct arena *a, struct dw_g_distinct *g, uint32_t nval,
    struct sip_key sip, struct box_err *err)
{
	uint64_t n = rd_u64(r);
	struct dw_g_row *w;
	int64_t ts, last = INT64_MIN;
	sv key;

	if (r->bad || n > rd_left(r))
		return corrupt(err, "cut short");
	dw_table_init_with(&g->rows, sizeof(*w), sip);
	g->ready = true;
	for (uint64_t i = 0; i < n; i++) {
		key = rd_str(r, KEY_BYTES);
		ts = (int64_t)rd_u64(r);
		if (r->bad || ts < last || dw_table_find(&g->rows, key) != NULL)
			return corrupt(err, "rows out of order");
		last = ts;
		w = dw_table_put(&g->rows, key, ts);
		if (w == NULL)
			return box_nomem(err, "monitor state");
		w->seq = rd_u64(r);
		w->add = (int64_t)rd_u64(r);
		g->sum += w->add;
		if (get_vals(r, a, nval, &w->vals, err) < 0)
			return -1;
	}
	return 0;
}

static int get_key(struct rd *r, uint8_t **out, uint32_t *n, struct box_err *err)
{
	sv k = rd_str(r, KEY_BYTES);

	if (r->bad)
		return corrupt(err, "cut short");
	*out = malloc(k.n != 0 ? k.n : 1);
	if (*out == NULL)
		return box_nomem(err, "monitor state");
	if (k.n != 0)
		memcpy(*out, k.p, k.n);
	*n = (uint32_t)k.n;
	return 0;
}

void dw_state_save(const struct dw_state *s, const struct dw_rel *rel, struct buf *b)
{
	uint32_t nval = rel->vals ? rel->nval : 0;

	buf_put_byte(b, (uint8_t)s->kind);
	buf_put_u64(b, (uint64_t)s->reach);
	buf_put_u32(b, s->cap);
	buf_put_u64(b, s->groups.n);
	for (void *g = dw_table_oldest(&s->groups); g != NULL; g = dw_table_newer(g)) {
		buf_put_str(b, dw_table_key(&s->groups, g));
		buf_put_u64(b, (uint64_t)dw_table_ts(g));
		switch (s->kind) {
		case DW_REL_LATEST:
			put_stamp(b, &((struct dw_g_latest *)g)->at);
			break;
		case DW_REL_QUEUE:
			put_queue(b, g, nval);
			break;
		case DW_REL_DISTINCT:
			put_distinct(b, g, nval);
			break;
		case DW_REL_RUN: {
			struct dw_g_run *x = g;

			buf_put_u64(b, x->start);
			buf_put_u64(b, x->end);
			buf_put_str(b, (sv){ (char *)x->key, x->n });
			break;
		}
		case DW_REL_LAST:
			for (int i = 0; i < 2; i++) {
				struct dw_last *m = &((struct dw_g_last *)g)->m[i];

				buf_put_byte(b, m->key != NULL);
				if (m->key == NULL)
					continue;
				put_stamp(b, &m->at);
				buf_put_str(b, (sv){ (char *)m->key, m->n });
				put_vals(b, m->vals, nval);
			}
			break;
		}
	}
}

static int get_group(struct dw_state *s, struct rd *r, struct arena *a, uint32_t nval,
    int64_t *last, struct box_err *err)
{
	sv key = rd_str(r, KEY_BYTES);
	int64_t ts = (int64_t)rd_u64(r);
	void *g;

	if (r->bad || ts < *last || dw_table_find(&s->groups, key) != NULL)
		return corrupt(err, "groups out of order");
	*last = ts;
	g = dw_table_put(&s->groups, key, ts);
	if (g == NULL)
		return box_nomem(err, "monitor state");
	switch (s->kind) {
	case DW_REL_LATEST:
		((struct dw_g_latest *)g)->at = get_stamp(r);
		break;
	case DW_REL_QUEUE:
		return get_queue(r, a, g, nval, err);
	case DW_REL_DISTINCT:
		return get_distinct(r, a, g, nval, s->groups.sip, err);
	case DW_REL_RUN: {
		struct dw_g_run *x = g;

		x->start = rd_u64(r);
		x->end = rd_u64(r);
		return get_key(r, &x->key, &x->n, err);
	}
	case DW_REL_LAST:
		for (int i = 0; i < 2; i++) {
			struct dw_last *m = &((struct dw_g_last *)g)->m[i];

			if (rd_u8(r) == 0)
				continue;
			m->at = get_stamp(r);
			if (get_key(r, &m->key, &m->n, err) < 0 ||
			    get_vals(r, a, nval, &m->vals, err) < 0)
				return -1;
		}
		break;
	}
	return r->bad ? corrupt(err, "cut short") : 0;
}

int dw_state_load(struct dw_state *s, const struct dw_rel *rel, struct rd *r, struct arena *a,
    struct box_err *err)
{
	uint32_t nval = rel->vals ? rel->nval : 0;
	uint8_t kind = rd_u8(r);
	int64_t last = INT64_MIN;
	uint64_t n;

	s->reach = (int64_t)rd_u64(r);
	s->cap = rd_u32(r);
	n = rd_u64(r);
	if (r->bad || kind != s->kind || s->reach < 0 || n > rd_left(r))
		return corrupt(err, "a relation is damaged");
	for (uint64_t i = 0; i < n; i++) {
		if (get_group(s, r, a, nval, &last, err) < 0)
			return -1;
	}
	return 0;
}
