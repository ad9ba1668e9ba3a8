/* Asking states at a decision (or, for nested conditions, when an outer pattern matches). See
 * state.h. */
#include "dogwood/group.h"

#include "base/ban.h"

static int64_t minus(int64_t a, int64_t b)
{
	int64_t r;

	return __builtin_sub_overflow(a, b, &r) ? INT64_MIN : r;
}

static const struct dw_inst *inst(const struct dw_eval *e, const struct dw_use *u)
{
	struct dw_inst *const *view = e->keyed;

	return view[u->rel];
}

/* The key that the present bindings and request ask for, in e->key: 1; 0: some part has no value,
 * so nothing matches; -1. */
static int build_key(struct dw_eval *e, const struct dw_use *u, bool slice)
{
	struct buf *b = e->key;
	struct dw_val v;
	int r;

	buf_clear(b);
	if (slice)
		buf_put_u64(b, e->slice);
	for (uint32_t i = 0; i < u->nkey; i++) {
		r = dw_term_value(e, u->key[i], e->last, &v);
		if (r != 1)
			return r;
		dw_val_key(b, &v);
	}
	return buf_ok(b) ? 1 : box_nomem(e->err, "a temporal condition");
}

/* The group that a use asks for; NULL with *r = 0 (nothing there) or -1. */
static void *group(struct dw_eval *e, const struct dw_use *u, int *r)
{
	*r = build_key(e, u, true);
	if (*r != 1)
		return NULL;
	*r = 0;
	return dw_table_find(&inst(e, u)->st->groups, buf_sv(e->key));
}

/* The record of the present slice, for relations that are kept by slice alone. */
static const void *of_slice(const struct dw_eval *e, const struct dw_use *u)
{
	char key[8];

	for (int i = 0; i < 8; i++)
		key[i] = (char)(e->slice >> (56 - 8 * i));
	return dw_table_find(&inst(e, u)->st->groups, (sv){ key, sizeof(key) });
}

/* The timepoint of the newest match of a negated pattern plus one; 0: none. */
static int newest(struct dw_eval *e, const struct dw_use *u, uint64_t *out)
{
	int r;
	const struct dw_g_latest *g = group(e, u, &r);

	*out = g != NULL ? g->at.seq + 1 : 0;
	return r;
}

/* From which timepoint on have all events matched a positive pattern with the present key? e->seq +
 * 1: not even the newest. */
static int run_start(struct dw_eval *e, const struct dw_use *u, uint64_t *out)
{
	const struct dw_g_run *g;
	int r = build_key(e, u, false);

	*out = e->seq + 1;
	if (r != 1)
		return r;
	g = of_slice(e, u);
	if (g != NULL && g->end == e->seq && sv_eq((sv){ (char *)g->key, g->n }, buf_sv(e->key)))
		*out = g->start;
	return 0;
}

/* Does the left side of a since hold at every timepoint after `seq`? 1, 0, -1. */
static int unbroken(struct dw_eval *e, const struct dw_unit *u, uint64_t seq)
{
	uint64_t at;

	if (seq == e->seq)
		return 1;
	if (u->fixed != NULL) {
		int r = dw_true(e, u->fixed, e->last);

		if (r != 1)
			return r;
	}
	for (uint32_t i = 0; i < u->nkill; i++) {
		if (newest(e, &u->kill[i], &at) < 0)
			return -1;
		if (at > seq + 1)
			return 0;
	}
	for (uint32_t i = 0; i < u->nrun; i++) {
		if (run_start(e, &u->run[i], &at) < 0)
			return -1;
		if (at > seq + 1)
			return 0;
	}
	return 1;
}

/* One row of a unit: bind it, judge what is left to judge, pass it on. */
static int emit(struct dw_eval *e, const struct dw_unit *u, uint64_t seq, const struct dw_val *vals,
    struct dw_cont *k)
{
	int r = 1;

	for (uint32_t i = 0; i < u->nval; i++) {
		e->slot[u->val_slot[i]] = vals[i];
		e->bound[u->val_slot[i]] = true;
	}
	if (u->tp_slot != DW_NO_SLOT) {
		e->slot[u->tp_slot] = dw_int((int64_t)seq);
		e->bound[u->tp_slot] = true;
	}
	if (u->kind == DW_U_SINCE)
		r = unbroken(e, u, seq);
	if (r == 1)
		r = u->residual != NULL ? dw_sat(e, u->residual, e->last, k) : k->fn(e, k);
	for (uint32_t i = 0; i < u->nval; i++)
		e->bound[u->val_slot[i]] = false;
	if (u->tp_slot != DW_NO_SLOT)
		e->bound[u->tp_slot] = false;
	return r;
}

static int rows_queue(
    struct dw_eval *e, const struct dw_unit *u, const struct dw_g_queue *q, struct dw_cont *k)
{
	uint32_t from = dw_queue_find(q, minus(e->ts, u->w), 0);
	int r;

	for (uint32_t i = q->n; i-- > from;) {
		uint32_t at = q->first + i;

		r = emit(e, u, q->at[at].seq, q->vals != NULL ? q->vals[at] : NULL, k);
		if (r != 0)
			return r;
	}
	return 0;
}

static int rows_distinct(
    struct dw_eval *e, const struct dw_unit *u, const struct dw_g_distinct *g, struct dw_cont *k)
{
	int64_t before = minus(e->ts, u->w);
	const struct dw_g_row *w;
	int r;

	for (w = dw_table_newest(&g->rows); w != NULL && dw_table_ts(w) >= before;
	     w = dw_table_older(w)) {
		r = emit(e, u, w->seq, w->vals, k);
		if (r != 0)
			return r;
	}
	return 0;
}

static int rows_previous(struct dw_eval *e, const struct dw_unit *u, struct dw_cont *k)
{
	const struct dw_g_last *g;
	int r = build_key(e, &u->main, false);

	if (r != 1)
		return r;
	g = of_slice(e, &u->main);
	for (int i = 0; g != NULL && i < 2; i++) {
		const struct dw_last *m = &g->m[i];

		if (m->key != NULL && m->at.seq + 1 == e->seq && m->at.ts >= minus(e->ts, u->w) &&
		    sv_eq((sv){ (char *)m->key, m->n }, buf_sv(e->key)))
			return emit(e, u, m->at.seq, m->vals, k);
	}
	return 0;
}

int dw_unit_rows(struct dw_eval *e, const struct dw_unit *u, struct dw_cont *k)
{
	const struct dw_g_latest *l;
	void *g;
	int r;

	if (u->kind == DW_U_PREVIOUS)
		return rows_previous(e, u, k);
	g = group(e, &u->main, &r);
	if (g == NULL)
		return r;
	switch (inst(e, &u->main)->rel->kind) {
	case DW_REL_LATEST:
		l = g;
		return l->at.ts >= minus(e->ts, u->w) ? emit(e, u, l->at.seq, NULL, k) : 0;
	case DW_REL_QUEUE:
		return rows_queue(e, u, g, k);
	case DW_REL_DISTINCT:
		return rows_distinct(e, u, g, k);
	case DW_REL_RUN:
	case DW_REL_LAST:
		break;
	}
	return 0;
}

static int64_t clamp(__int128 v)
{
	return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

bool dw_quick_answer(const struct dw_quick *q, const void *group, int64_t now)
{
	const struct dw_g_latest *l = group;
	const struct dw_g_queue *g = group;
	struct dw_val n, than = dw_int(q->than);
	uint32_t i;

	if (q->is == DW_Q_ONCE)
		return l->at.ts >= minus(now, q->w);
	i = dw_queue_find(g, minus(now, q->w), 0);
	n = dw_int(q->sum ? clamp(dw_queue_sum(g, i)) : (int64_t)(g->n - i));
	return dw_compare(q->op, &n, &than);
}

int dw_unit_total(
    struct dw_eval *e, const struct dw_unit *u, const struct dw_agg *g, struct dw_val *out)
{
	int64_t before = minus(e->ts, u->w);
	uint64_t from = 0, at;
	struct dw_g_distinct *d;
	struct dw_g_queue *q;
	uint32_t i;
	void *rec;
	int r;

	(void)g;
	*out = dw_int(0);
	rec = group(e, &u->main, &r);
	if (rec == NULL)
		return r < 0 ? -1 : 1;
	if (inst(e, &u->main)->rel->kind == DW_REL_DISTINCT) {
		d = rec;
		dw_distinct_expire(d, before, SIZE_MAX);
		*out = dw_int(u->sum ? clamp(d->sum) : (int64_t)d->rows.n);
		return 1;
	}
	q = rec;
	/* Anchors that a later match of a negated pattern ended do not count. */
	for (i = 0; u->of_since && i < u->nkill; i++) {
		if (newest(e, &u->kill[i], &at) < 0)
			return -1;
		if (at != 0 && at - 1 > from)
			from = at - 1;
	}
	i = dw_queue_find(q, before, from);
	*out = dw_int(u->sum ? clamp(dw_queue_sum(q, i)) : (int64_t)(q->n - i));
	return 1;
}
