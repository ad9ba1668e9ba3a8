/* See monitor.h. This file: stepping a monitor, asking a leaf, carrying state over a policy change.
 */
#include <stdlib.h>

#include "dogwood/monitor_impl.h"
#include "dogwood/grow.h"

#include "base/ban.h"

#define EXPIRE_STEP 8

struct dwm *dwm_new(const struct dw_set *set, enum dwm_clock clock, struct box_err *err)
{
	struct dw_core *c = dw_core_new(clock, err);
	struct dwm *m;

	if (c == NULL)
		return NULL;
	m = dwm_make(set, c, NULL, NULL, err);
	dw_core_drop(c);
	return m;
}

bool dwm_ok(const struct dwm *m)
{
	return m->ok;
}

static int incomplete(struct box_err *err)
{
	return box_fail(err, BOX_ECORRUPT, 0, "the history of this policy set is not complete");
}

static int broken(struct dwm *m, struct box_err *err)
{
	m->ok = false;
	return box_nomem(err, "the history of a policy set");
}

static int64_t minus(int64_t a, int64_t b)
{
	int64_t r;

	return __builtin_sub_overflow(a, b, &r) ? INT64_MIN : r;
}

/* Slices whose newest event no window reaches any more are as good as none. */
static void expire(struct dwm *m, int64_t now)
{
	struct dw_core *c = m->core;
	struct dw_slice *s;

	for (int i = 0; i < EXPIRE_STEP; i++) {
		s = dw_table_oldest(&c->slices);
		if (s == NULL || s == c->cur || dw_table_ts(s) >= minus(now, m->set->reach))
			return;
		dw_table_drop(&c->slices, s, dw_slice_fini);
	}
}

static const struct dw_head *head_of(struct dwm *m, const struct dw_event *e)
{
	if (m->heads.n == 0)
		return NULL;
	buf_clear(&m->key);
	dw_head_key(&m->key, e->ns, e->id, e->kind);
	return buf_ok(&m->key) ? dw_table_find(&m->heads, buf_sv(&m->key)) : NULL;
}

/* Keep the point, and its content if the general evaluator may match it. */
static int keep(struct dwm *m, struct dw_slice *s, const struct dw_head *h,
    const struct dw_event *e, uint64_t seq, struct box_err *err)
{
	struct dw_core *c = m->core;
	struct dw_point p = { .seq = seq, .gseq = c->gseq - 1, .ts = e->ts };
	size_t bytes = 0;

	/* The point before is kept as a bare stamp only where every timepoint matters. */
	if (!m->keep_all && s->h.n != 0 && dw_hist_at(&s->h, s->h.n - 1)->ev == NULL)
		dw_hist_pop(&s->h);
	if (h != NULL && h->general) {
		p.ev = dw_event_keep(e, &bytes);
		if (p.ev == NULL)
			return broken(m, err);
	}
	if (!dw_hist_push(&s->h, &p, bytes))
		return broken(m, err);
	if (c->clock == DWM_MONOTONE)
		dw_hist_prune(&s->h, minus(e->ts, m->reach));
	return 0;
}

/* Give the event to the instances that may match it, inner ones first. */
static int deliver(
    struct dwm *m, const struct dw_head *h, const struct dw_now *now, struct box_err *err)
{
	uint32_t n = 0, k;

	for (uint32_t i = 0; i < h->n; i++) {
		const struct dw_insts *v = dw_fam_match(h->v[i], now->e, &m->key);

		if (v == NULL)
			continue;
		if (v->n > m->cap_due - n) {
			uint32_t cap = (n + v->n) * 2;
			struct dw_inst **p = dw_grow(m->due, cap, sizeof(struct dw_inst *));

			if (p == NULL)
				return box_nomem(err, "the history of a policy set");
			m->due = p;
			m->cap_due = cap;
		}
		/* Each list is in order; few lists meet. */
		for (uint32_t x = 0; x < v->n; x++) {
			for (k = n++; k > 0 && m->due[k - 1]->order > v->v[x]->order; k--)
				m->due[k] = m->due[k - 1];
			m->due[k] = v->v[x];
		}
	}
	for (uint32_t i = 0; i < n; i++) {
		struct dw_inst *x = m->due[i];
		int r = dw_inst_step(x, now, &m->scratch, &m->key, &m->row, err);

		if (r < 0)
			return -1;
		if (r == 2 && x->ntrigger != 0 &&
		    !dw_fam_activate(x->fam, x, buf_sv(&m->key), now->ts))
			return box_nomem(err, "the history of a policy set");
	}
	return 0;
}

int dwm_step(struct dwm *m, const struct dw_event *e, struct box_err *err)
{
	struct dw_core *c = m->core;
	struct dw_now now = { .e = e, .ts = e->ts };
	const struct dw_head *h;
	struct dw_slice *s;

	if (!m->ok)
		return incomplete(err);
	if (c->clock == DWM_MONOTONE && e->ts < c->last_ts)
		return box_fail(err, BOX_ECORRUPT, 0,
		    "the stamp %lld of an event is older than the newest, %lld", (long long)e->ts,
		    (long long)c->last_ts);
	c->cur = NULL;
	c->gseq++;
	if (e->ts > c->last_ts)
		c->last_ts = e->ts;
	buf_clear(&m->key);
	if (!dw_slice_key(m->set, e, false, &m->key))
		return 0;
	if (!buf_ok(&m->key))
		return broken(m, err);
	s = dw_table_put(&c->slices, buf_sv(&m->key), e->ts);
	if (s == NULL)
		return broken(m, err);
	if (s->next == 0)
		s->id = c->next_slice++;
	dw_table_touch(&c->slices, s, e->ts);
	now.slice = s->id;
	now.seq = s->next++;
	h = head_of(m, e);
	if (m->general && keep(m, s, h, e, now.seq, err) < 0)
		return -1;
	if (h != NULL && deliver(m, h, &now, err) < 0) {
		m->ok = false;
		return -1;
	}
	c->cur = s;
	if (c->clock == DWM_MONOTONE)
		expire(m, e->ts);
	return 0;
}

/* Index of the oldest point that a leaf born at `born` sees. */
static size_t first_seen(const struct dw_hist *h, uint64_t born)
{
	size_t lo = 0, hi = h->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (dw_hist_at(h, mid)->gseq < born)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int start(
    struct dwm *m, const struct dw_leaf_impl *f, struct dw_eval *e, struct box_err *err)
{
	struct arena *a = &m->scratch;

	arena_reset(a);
	e->a = a;
	e->names = &f->names;
	e->err = err;
	e->slot = ARENA_VEC(a, struct dw_val, f->names.nslots);
	e->bound = ARENA_VEC(a, bool, f->names.nslots);
	e->req = ARENA_VEC(a, struct dw_val, f->names.nreq);
	e->known = ARENA_VEC(a, uint8_t, f->names.nreq);
	e->memo = ARENA_VEC(a, uint8_t *, f->names.nnodes);
	e->line = ARENA_VEC(a, uint32_t *, f->names.nnodes);
	if (e->slot == NULL || e->bound == NULL || e->req == NULL || e->known == NULL ||
	    e->memo == NULL || e->line == NULL)
		return box_nomem(err, "a temporal condition");
	return 0;
}

/* The newest event must be in the slice of history that the request asks about. */
static int same_slice(struct dwm *m, const struct dw_event *req, struct box_err *err)
{
	if (m->core->cur != NULL && m->set->events->nuniversal == 0)
		return 0;
	buf_clear(&m->key);
	if (m->core->cur != NULL && dw_slice_key(m->set, req, true, &m->key) && buf_ok(&m->key) &&
	    dw_table_find(&m->core->slices, buf_sv(&m->key)) == m->core->cur)
		return 0;
	return box_fail(err, BOX_EPARSE, 0,
	    "the event does not log the field by which its history is pinned with the value of the "
	    "request");
}

int dwm_leaf(struct dwm *m, size_t leaf, const struct dw_event *req, bool *out, struct box_err *err)
{
	const struct dw_leaf_impl *f = &m->set->leaves[leaf];
	struct dw_core *c = m->core;
	bool keyed = c->clock == DWM_MONOTONE;
	struct dw_eval e = { .now = req, .has_request = true, .monotone = keyed, .key = &m->key };
	int r;

	if (!m->ok)
		return incomplete(err);
	if (same_slice(m, req, err) < 0 || start(m, f, &e, err) < 0)
		return -1;
	e.slice = c->cur->id;
	e.seq = c->cur->next - 1;
	e.ts = req->ts;
	if (keyed) {
		e.unit = dw_unit_rows;
		e.unit_agg = dw_unit_total;
		e.keyed = m->leaves[leaf].view;
	}
	if (!keyed || f->plan.general) {
		e.h = &c->cur->h;
		if (e.h->n == 0 || dw_hist_at(e.h, e.h->n - 1)->seq != e.seq)
			return incomplete(err);
		e.last = e.h->n - 1;
		e.first = first_seen(e.h, m->leaves[leaf].born);
	}
	r = dw_true(&e, f->cond, e.last);
	if (r < 0)
		return -1;
	*out = r == 1;
	return 0;
}

/* Ask a gating leaf unless it was asked in this round. */
static int ask_gate(
    struct dwm *m, uint32_t leaf, const struct dw_event *req, size_t *n, struct box_err *err)
{
	bool v;

	if (m->seen[leaf] == m->round)
		return 0;
	m->seen[leaf] = m->round;
	if (dwm_leaf(m, leaf, req, &v, err) < 0)
		return -1;
	if (v)
		m->true_leaf[(*n)++] = leaf;
	return 0;
}

static int ask_probe(
    struct dwm *m, uint32_t number, const struct dw_event *req, size_t *n, struct box_err *err)
{
	const struct dw_probe *p = &m->probes[number];
	const struct dw_insts *v;
	struct dw_val x;

	buf_clear(&m->row);
	buf_put_u64(&m->row, m->core->cur->id);
	for (uint32_t i = 0; i < p->use->nkey; i++) {
		if (!dw_event_term(req, p->use->key[i], &x))
			return 0;
		dw_val_key(&m->row, &x);
	}
	if (!buf_ok(&m->row))
		return box_nomem(err, "a temporal condition");
	v = dw_fam_active(p->fam, buf_sv(&m->row), ++m->marks);
	for (uint32_t i = 0; v != NULL && i < v->n; i++) {
		const struct dw_inst *y = v->v[i];
		const void *g = dw_table_find(&y->st->groups, buf_sv(&m->row));

		for (uint32_t k = 0; g != NULL && k < y->ntrigger;) {
			const struct dw_trigger *t = &y->trigger[k++];

			if (t->probe != number) {
				k = t->skip;
			} else if (t->quick.is == DW_Q_NO) {
				if (ask_gate(m, t->leaf, req, n, err) < 0)
					return -1;
			} else if (!dw_quick_answer(&t->quick, g, req->ts)) {
				k = t->skip;
			} else if (m->seen[t->leaf] != m->round) {
				m->seen[t->leaf] = m->round;
				m->true_leaf[(*n)++] = t->leaf;
			}
		}
	}
	return 0;
}

int dwm_true_leaves(struct dwm *m, const struct dw_event *req, const uint32_t **leaf, size_t *n,
    struct box_err *err)
{
	const struct dw_probes *p;

	*leaf = m->true_leaf;
	*n = 0;
	if (!m->ok)
		return incomplete(err);
	if (m->set->ngates == 0)
		return 0;
	if (same_slice(m, req, err) < 0)
		return -1;
	m->round++;
	if (m->core->clock == DWM_ANY) {
		for (size_t i = 0; i < m->set->nleaves; i++) {
			if (m->set->leaves[i].gate && ask_gate(m, (uint32_t)i, req, n, err) < 0)
				return -1;
		}
		return 0;
	}
	for (uint32_t i = 0; i < m->any_action.n; i++) {
		if (ask_probe(m, m->any_action.v[i], req, n, err) < 0)
			return -1;
	}
	if (m->by_action.n == 0)
		return 0;
	buf_clear(&m->row);
	buf_put_str(&m->row, req->ns);
	buf_put_str(&m->row, req->id);
	if (!buf_ok(&m->row))
		return box_nomem(err, "a temporal condition");
	p = dw_table_find(&m->by_action, buf_sv(&m->row));
	for (uint32_t i = 0; p != NULL && i < p->n; i++) {
		if (ask_probe(m, p->v[i], req, n, err) < 0)
			return -1;
	}
	return 0;
}

bool dwm_may_match(struct dwm *m, const struct dw_event *e)
{
	const struct dw_head *h;

	if (m->keep_all || m->positional)
		return true;
	if (m->heads.n == 0)
		return false;
	h = head_of(m, e);
	if (h == NULL)
		return !buf_ok(&m->key);
	if (h->general)
		return true;
	for (uint32_t i = 0; i < h->n; i++) {
		const struct dw_insts *v = dw_fam_match(h->v[i], e, &m->key);

		if (!buf_ok(&m->key))
			return true;
		for (uint32_t k = 0; v != NULL && k < v->n; k++) {
			if (dw_rel_matches(v->v[k]->rel, e))
				return true;
		}
	}
	return false;
}

uint64_t dwm_timepoints(const struct dwm *m)
{
	return m->core->gseq;
}

int64_t dwm_last_ts(const struct dwm *m)
{
	return m->core->last_ts;
}

size_t dwm_bytes(const struct dwm *m)
{
	size_t n = sizeof(*m) + m->core->slices.bytes + m->index.bytes + m->heads.bytes;

	for (struct dw_slice *s = dw_table_oldest(&m->core->slices); s != NULL;
	     s = dw_table_newer(s))
		n += s->h.bytes + s->h.cap * sizeof(struct dw_point);
	for (uint32_t i = 0; i < m->ninsts; i++)
		n += dw_state_bytes(m->insts[i]->st);
	return n;
}

/* ---- policy changes ---- */

/* The leaf of the old set that leaf i of `now` continues, or -1. */
static int64_t continues(
    const struct dwm *m, const struct dw_set *now, const int32_t *map, size_t i)
{
	const struct dw_leaf *f = &now->leaves[i].pub;
	int32_t old = map[f->rule];
	const struct dw_rule *r;
	size_t k;

	if (old < 0 || (size_t)old >= m->set->nrules)
		return -1;
	r = &m->set->rules[old];
	if (f->ordinal >= r->nleaves)
		return -1;
	k = r->leaf0 + f->ordinal;
	return sv_eq(m->set->leaves[k].pub.key, f->key) ? (int64_t)k : -1;
}

static bool same_slicing(const struct dw_set *a, const struct dw_set *b)
{
	if (a->tick != b->tick || a->events->nuniversal != b->events->nuniversal)
		return false;
	for (uint32_t i = 0; i < a->events->nuniversal; i++) {
		if (!sv_eq(a->events->universal[i].field, b->events->universal[i].field))
			return false;
	}
	return true;
}

size_t dwm_retained(const struct dwm *m, const struct dw_set *now, const int32_t *map)
{
	size_t n = 0;

	for (size_t i = 0; same_slicing(m->set, now) && i < now->nleaves; i++)
		n += continues(m, now, map, i) >= 0;
	return n;
}

struct dwm *dwm_transfer(
    const struct dwm *m, const struct dw_set *now, const int32_t *map, struct box_err *err)
{
	uint64_t *births;
	struct dw_core *c;
	struct dwm *n;

	if (!m->ok) {
		(void)incomplete(err);
		(void)box_wrap(err, "state transfer");
		return NULL;
	}
	if (!same_slicing(m->set, now)) {
		/* Another way of slicing is another history: all leaves start anew. */
		c = dw_core_new(m->core->clock, err);
		if (c == NULL)
			return NULL;
		c->gseq = m->core->gseq;
		c->last_ts = m->core->last_ts;
		n = dwm_make(now, c, NULL, NULL, err);
		dw_core_drop(c);
		return n;
	}
	births = calloc(now->nleaves != 0 ? now->nleaves : 1, sizeof(*births));
	if (births == NULL) {
		box_nomem(err, "a monitor");
		return NULL;
	}
	for (size_t i = 0; i < now->nleaves; i++) {
		int64_t k = continues(m, now, map, i);

		births[i] = k >= 0 ? m->leaves[k].born : m->core->gseq;
	}
	n = dwm_make(now, m->core, births, m, err);
	free(births);
	return n;
}

int dwm_reset_rule(struct dwm *m, size_t rule, struct box_err *err)
{
	const struct dw_rule *r;
	struct dwm *n, tmp;
	uint64_t *births;

	if (rule >= m->set->nrules)
		return box_fail(err, BOX_EPARSE, 0, "no such rule");
	r = &m->set->rules[rule];
	births = calloc(m->set->nleaves != 0 ? m->set->nleaves : 1, sizeof(*births));
	if (births == NULL)
		return box_nomem(err, "a monitor");
	for (size_t i = 0; i < m->set->nleaves; i++)
		births[i] =
		    i >= r->leaf0 && i - r->leaf0 < r->nleaves ? m->core->gseq : m->leaves[i].born;
	n = dwm_make(m->set, m->core, births, m, err);
	free(births);
	if (n == NULL)
		return -1;
	n->ok = m->ok;
	tmp = *m;
	*m = *n;
	*n = tmp;
	dwm_free(n);
	return 0;
}
