/* The stored form of a monitor's state. Big-endian (rd/buf), no pointers, records in the order of
 * their last touch, so equal state gives equal bytes.
 *
 * It is read back from disk: everything is bounded by what is there and checked against the set; a
 * mismatch is BOX_ECORRUPT, never a guess. */
#include <stdlib.h>

#include "dogwood/monitor_impl.h"

#include "base/ban.h"

#define SNAP_MAGIC   0x64776d73u /* "dwms" */
#define SNAP_VERSION 1

static void put_point(struct buf *b, const struct dw_point *p)
{
	buf_put_u64(b, p->seq);
	buf_put_u64(b, p->gseq);
	buf_put_u64(b, (uint64_t)p->ts);
	buf_put_byte(b, p->ev != NULL);
	if (p->ev != NULL)
		dw_event_put(b, p->ev, DW_PUT_HISTORY);
}

void dwm_save(const struct dwm *m, struct buf *b)
{
	const struct dw_core *c = m->core;

	buf_put_u32(b, SNAP_MAGIC);
	buf_put_u32(b, SNAP_VERSION);
	buf_put_byte(b, (uint8_t)c->clock);
	buf_put_u64(b, c->gseq);
	buf_put_u64(b, c->next_slice);
	buf_put_u64(b, (uint64_t)c->last_ts);
	buf_put_u32(b, (uint32_t)m->set->nleaves);
	for (size_t i = 0; i < m->set->nleaves; i++) {
		buf_put_str(b, m->set->leaves[i].pub.key);
		buf_put_u64(b, m->leaves[i].born);
	}
	buf_put_u64(b, c->slices.n);
	for (struct dw_slice *s = dw_table_oldest(&c->slices); s != NULL; s = dw_table_newer(s)) {
		buf_put_str(b, dw_table_key(&c->slices, s));
		buf_put_u64(b, (uint64_t)dw_table_ts(s));
		buf_put_byte(b, s == c->cur);
		buf_put_u64(b, s->id);
		buf_put_u64(b, s->next);
		buf_put_u64(b, s->h.n);
		for (size_t i = 0; i < s->h.n; i++)
			put_point(b, dw_hist_at(&s->h, i));
	}
	buf_put_u32(b, m->ninsts);
	for (uint32_t i = 0; i < m->ninsts; i++) {
		buf_put_str(b, m->insts[i]->rel->identity);
		buf_put_u64(b, m->insts[i]->st->born);
		dw_state_save(m->insts[i]->st, m->insts[i]->rel, b);
	}
	if (!m->ok)
		b->bad = true;
}

static int corrupt(struct box_err *err, const char *what)
{
	return box_fail(err, BOX_ECORRUPT, 0, "stored monitor state: %s", what);
}

static int get_point(struct rd *r, struct arena *a, struct dw_hist *h, struct box_err *err)
{
	struct dw_point p = { 0 };
	struct dw_event e;
	size_t bytes = 0;
	bool has;

	p.seq = rd_u64(r);
	p.gseq = rd_u64(r);
	p.ts = (int64_t)rd_u64(r);
	has = rd_u8(r) != 0;
	if (r->bad)
		return corrupt(err, "cut short");
	if (h->n != 0 &&
	    (dw_hist_at(h, h->n - 1)->seq >= p.seq || dw_hist_at(h, h->n - 1)->gseq >= p.gseq))
		return corrupt(err, "timepoints out of order");
	if (has) {
		arena_reset(a);
		if (dw_event_get(r, a, &e, err) < 0)
			return -1;
		p.ev = dw_event_keep(&e, &bytes);
		if (p.ev == NULL)
			return box_nomem(err, "monitor state");
	}
	return dw_hist_push(h, &p, bytes) ? 0 : box_nomem(err, "monitor state");
}

static int get_slice(struct rd *r, struct arena *a, struct dw_core *c, struct box_err *err)
{
	sv key = rd_str(r, DW_EVENT_BYTES_MAX);
	int64_t ts = (int64_t)rd_u64(r);
	bool cur = rd_u8(r) != 0;
	uint64_t id = rd_u64(r), next = rd_u64(r), n = rd_u64(r);
	struct dw_slice *s;

	if (r->bad || n > rd_left(r) || id >= c->next_slice || next == 0)
		return corrupt(err, "a slice is damaged");
	if (dw_table_find(&c->slices, key) != NULL)
		return corrupt(err, "a slice occurs twice");
	s = dw_table_put(&c->slices, key, ts);
	if (s == NULL)
		return box_nomem(err, "monitor state");
	s->id = id;
	s->next = next;
	if (cur)
		c->cur = s;
	for (uint64_t i = 0; i < n; i++) {
		if (get_point(r, a, &s->h, err) < 0)
			return -1;
	}
	if (s->h.n != 0 && dw_hist_at(&s->h, s->h.n - 1)->seq >= next)
		return corrupt(err, "a slice is damaged");
	return 0;
}

static int get_births(
    const struct dw_set *set, struct rd *r, uint64_t gseq, uint64_t **out, struct box_err *err)
{
	uint32_t n = rd_u32(r);
	uint64_t *v;

	if (n != set->nleaves || r->bad)
		return corrupt(
		    err, "it belongs to another policy set (number of temporal conditions)");
	v = calloc(n != 0 ? n : 1, sizeof(*v));
	if (v == NULL)
		return box_nomem(err, "monitor state");
	*out = v;
	for (uint32_t i = 0; i < n; i++) {
		if (!sv_eq(rd_str(r, DW_SOURCE_MAX), set->leaves[i].pub.key) || r->bad)
			return corrupt(
			    err, "it belongs to another policy set (a temporal condition differs)");
		v[i] = rd_u64(r);
		if (v[i] > gseq)
			return corrupt(err, "a birth lies in the future");
	}
	return 0;
}

static int get_states(struct dwm *m, struct rd *r, struct arena *a, struct box_err *err)
{
	if (rd_u32(r) != m->ninsts || r->bad)
		return corrupt(err, "it belongs to another policy set (number of relations)");
	for (uint32_t i = 0; i < m->ninsts; i++) {
		sv identity = rd_str(r, DW_SOURCE_MAX);
		uint64_t born = rd_u64(r);

		if (r->bad || !sv_eq(identity, m->insts[i]->rel->identity) ||
		    born != m->insts[i]->st->born)
			return corrupt(
			    err, "it belongs to another policy set (a relation differs)");
		if (dw_state_load(m->insts[i]->st, m->insts[i]->rel, r, a, err) < 0)
			return -1;
	}
	return 0;
}

static int get_slices(struct dw_core *c, struct rd *r, struct arena *a, struct box_err *err)
{
	uint64_t n = rd_u64(r);

	if (r->bad || n > rd_left(r))
		return corrupt(err, "cut short");
	for (uint64_t i = 0; i < n; i++) {
		if (get_slice(r, a, c, err) < 0)
			return -1;
	}
	return r->bad ? corrupt(err, "cut short") : 0;
}

struct dwm *dwm_load(const struct dw_set *set, struct rd *r, struct box_err *err)
{
	AUTO_ARENA a = { .limit = DW_EVENT_BYTES_MAX * 64 };
	uint32_t magic = rd_u32(r), version = rd_u32(r);
	uint8_t clock = rd_u8(r);
	uint64_t *births = NULL;
	struct dw_core *c;
	struct dwm *m = NULL;

	if (r->bad || magic != SNAP_MAGIC || version != SNAP_VERSION || clock > DWM_ANY) {
		(void)corrupt(err, "unknown version");
		return NULL;
	}
	c = dw_core_new((enum dwm_clock)clock, err);
	if (c == NULL)
		return NULL;
	c->gseq = rd_u64(r);
	c->next_slice = rd_u64(r);
	c->last_ts = (int64_t)rd_u64(r);
	if (get_births(set, r, c->gseq, &births, err) == 0)
		m = dwm_make(set, c, births, NULL, err);
	free(births);
	dw_core_drop(c);
	if (m != NULL && get_slices(m->core, r, &a, err) == 0 && get_states(m, r, &a, err) == 0) {
		if (dwm_wake(m))
			return m;
		(void)box_nomem(err, "monitor state");
	}
	if (m != NULL) {
		dwm_free(m);
		m = NULL;
	}
	return m;
}
