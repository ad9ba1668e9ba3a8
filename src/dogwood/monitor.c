/* See monitor.h. This file: making and stepping a monitor, asking a leaf, carrying state over a policy change. */
#include <stdlib.h>

#include "dogwood/monitor_impl.h"

#include "base/ban.h"

#define SCRATCH_LIMIT ((size_t)512 << 20)
#define EXPIRE_STEP   8

static void slice_fini(void *record)
{
	struct dw_slice *s = record;

	dw_hist_fini(&s->h);
}

static void core_drop(struct dw_core *c)
{
	if (c == NULL || --c->refs != 0)
		return;
	dw_table_fini(&c->slices, slice_fini);
	free(c);
}

void dwm_free(struct dwm *m)
{
	if (m == NULL)
		return;
	core_drop(m->core);
	dw_table_fini(&m->heads, NULL);
	arena_free(&m->scratch);
	buf_fini(&m->key);
	free(m->leaves);
	free(m);
}

void dw_head_key(struct buf *b, sv ns, sv id, sv kind)
{
	buf_put_str(b, ns);
	buf_put_str(b, id);
	buf_put_str(b, kind);
}

bool dw_slice_key(const struct dw_set *s, const struct dw_event *e, bool of_request, struct buf *b)
{
	for (uint32_t i = 0; i < s->events->nuniversal; i++) {
		const struct dw_pin *p = &s->events->universal[i];
		const struct dw_val *v = dw_get(&e->logged, p->field);
		struct dw_val r;

		if (of_request) {
			if (!dw_event_term(e, p->term, &r))
				return false;
			v = &r;
		}
		if (v == NULL)
			return false;
		dw_val_key(b, v);
	}
	return true;
}

/* Does the truth of c at past points depend on which events lie between those its patterns match? `past`: c is judged at past points. */
static bool sees_all(const struct dw_cond *c, bool past)
{
	const struct dw_cond *l;
	bool guarded = false;

	switch (c->kind) {
	case DW_C_PRED:
		return false;
	case DW_C_TP:
	case DW_C_CMP:
		if (c->kind == DW_C_CMP &&
		    ((c->cmp.l->kind == DW_TERM_AGG && sees_all(c->cmp.l->agg.body, past)) ||
		        (c->cmp.r->kind == DW_TERM_AGG && sees_all(c->cmp.r->agg.body, past))))
			return true;
		return past;
	case DW_C_AND:
		/* With a pattern among them, the others matter only where it matches. */
		for (uint32_t i = 0; i < c->all.n; i++)
			guarded = guarded || c->all.v[i]->kind == DW_C_PRED;
		for (uint32_t i = 0; i < c->all.n; i++) {
			if (sees_all(c->all.v[i], past && !guarded))
				return true;
		}
		return false;
	case DW_C_NOT:
		return past || sees_all(c->neg, past);
	case DW_C_FORMERLY:
		/* Judged at a past point that nothing guards, its window begins at that point's own time. */
		return past || sees_all(c->once.body, true);
	case DW_C_PREVIOUS:
		return true;
	case DW_C_SINCE:
		l = c->since.left;
		if (past || sees_all(c->since.right, true))
			return true;
		/* `!P since …`: events that P does not match change nothing. */
		if (l->kind == DW_C_NOT && l->neg->kind == DW_C_PRED)
			return false;
		return true;
	case DW_C_EXISTS:
		return sees_all(c->exists.body, past);
	case DW_C_CALL:
	case DW_C_PARAM:
		break;
	}
	return true;
}

static int add_leaf(struct dwm *m, const struct dw_leaf_impl *f)
{
	for (uint32_t i = 0; i < f->names.npred; i++) {
		const struct dw_pred *p = f->names.pred[i];

		buf_clear(&m->key);
		dw_head_key(&m->key, p->ns, p->id, p->kind);
		if (!buf_ok(&m->key) || dw_table_put(&m->heads, buf_sv(&m->key), 0) == NULL)
			return -1;
	}
	if (sees_all(f->cond, false))
		m->keep_all = true;
	if (f->pub.reach > m->reach)
		m->reach = f->pub.reach;
	return 0;
}

/* A monitor on a core (which gets one more user), all leaves born at `born`. */
static struct dwm *make(const struct dw_set *set, struct dw_core *core, struct box_err *err)
{
	struct dwm *m = calloc(1, sizeof(*m));

	if (m == NULL) {
		box_nomem(err, "a monitor");
		return NULL;
	}
	m->set = set;
	m->ok = true;
	m->scratch.limit = SCRATCH_LIMIT;
	m->key = buf_with(DW_EVENT_BYTES_MAX * 2);
	dw_table_init(&m->heads, 1);
	m->core = core;
	core->refs++;
	m->leaves = calloc(set->nleaves != 0 ? set->nleaves : 1, sizeof(*m->leaves));
	if (m->leaves == NULL) {
		dwm_free(m);
		box_nomem(err, "a monitor");
		return NULL;
	}
	for (size_t i = 0; i < set->nleaves; i++) {
		m->leaves[i].born = core->gseq;
		if (add_leaf(m, &set->leaves[i]) < 0) {
			dwm_free(m);
			box_nomem(err, "a monitor");
			return NULL;
		}
	}
	return m;
}

static struct dw_core *core_new(enum dwm_clock clock, struct box_err *err)
{
	struct dw_core *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		box_nomem(err, "a monitor");
		return NULL;
	}
	c->refs = 1;
	c->clock = clock;
	c->last_ts = INT64_MIN;
	dw_table_init(&c->slices, sizeof(struct dw_slice));
	return c;
}

struct dwm *dwm_new(const struct dw_set *set, enum dwm_clock clock, struct box_err *err)
{
	struct dw_core *c = core_new(clock, err);
	struct dwm *m;

	if (c == NULL)
		return NULL;
	m = make(set, c, err);
	core_drop(c);
	return m;
}

bool dwm_ok(const struct dwm *m)
{
	return m->ok;
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
		dw_table_drop(&c->slices, s, slice_fini);
	}
}

static bool matches_head(struct dwm *m, const struct dw_event *e)
{
	if (m->heads.n == 0)
		return false;
	buf_clear(&m->key);
	dw_head_key(&m->key, e->ns, e->id, e->kind);
	return dw_table_find(&m->heads, buf_sv(&m->key)) != NULL;
}

int dwm_step(struct dwm *m, const struct dw_event *e, struct box_err *err)
{
	struct dw_core *c = m->core;
	struct dw_point p = { .ts = e->ts, .gseq = c->gseq };
	struct dw_slice *s;
	size_t bytes = 0;

	if (!m->ok)
		return box_fail(
		    err, BOX_ECORRUPT, 0, "the history of this policy set is not complete");
	if (c->clock == DWM_MONOTONE && e->ts < c->last_ts)
		return box_fail(err, BOX_ECORRUPT, 0,
		    "the stamp %lld of an event is older than the newest, %lld", (long long)e->ts,
		    (long long)c->last_ts);
	/* The point before is kept as a bare stamp only where every timepoint matters. */
	if (c->cur != NULL && !m->keep_all && c->cur->h.n != 0 &&
	    dw_hist_at(&c->cur->h, c->cur->h.n - 1)->ev == NULL)
		dw_hist_pop(&c->cur->h);
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
	p.seq = s->next++;
	if (matches_head(m, e)) {
		p.ev = dw_event_keep(e, &bytes);
		if (p.ev == NULL)
			return broken(m, err);
	}
	if (!dw_hist_push(&s->h, &p, bytes))
		return broken(m, err);
	c->cur = s;
	if (c->clock == DWM_MONOTONE) {
		dw_hist_prune(&s->h, minus(e->ts, m->reach));
		expire(m, e->ts);
	}
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
	if (e->slot == NULL || e->bound == NULL || e->req == NULL || e->known == NULL ||
	    e->memo == NULL)
		return box_nomem(err, "a temporal condition");
	return 0;
}

int dwm_leaf(struct dwm *m, size_t leaf, const struct dw_event *req, bool *out, struct box_err *err)
{
	const struct dw_leaf_impl *f = &m->set->leaves[leaf];
	struct dw_core *c = m->core;
	struct dw_eval e = {
		.now = req, .has_request = true, .monotone = c->clock == DWM_MONOTONE
	};
	int r;

	if (!m->ok)
		return box_fail(
		    err, BOX_ECORRUPT, 0, "the history of this policy set is not complete");
	buf_clear(&m->key);
	if (c->cur == NULL || !dw_slice_key(m->set, req, true, &m->key) ||
	    dw_table_find(&c->slices, buf_sv(&m->key)) != c->cur)
		return box_fail(err, BOX_EPARSE, 0,
		    "the event does not log the field by which its history is pinned with the "
		    "value of the request");
	if (start(m, f, &e, err) < 0)
		return -1;
	e.h = &c->cur->h;
	e.last = e.h->n - 1;
	e.first = first_seen(e.h, m->leaves[leaf].born);
	r = dw_true(&e, f->cond, e.last);
	if (r < 0)
		return -1;
	*out = r == 1;
	return 0;
}

bool dwm_may_match(const struct dwm *m, const struct dw_event *e)
{
	AUTO_BUF key = buf_with(DW_EVENT_BYTES_MAX * 2);

	if (m->keep_all)
		return true;
	if (m->heads.n == 0)
		return false;
	dw_head_key(&key, e->ns, e->id, e->kind);
	return !buf_ok(&key) || dw_table_find(&m->heads, buf_sv(&key)) != NULL;
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
	size_t n = sizeof(*m) + m->core->slices.bytes;

	for (struct dw_slice *s = dw_table_oldest(&m->core->slices); s != NULL;
	     s = dw_table_newer(s))
		n += s->h.bytes + s->h.cap * sizeof(struct dw_point);
	return n;
}

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
	struct dwm *n;
	struct dw_core *c;

	if (!m->ok) {
		box_fail(err, BOX_ECORRUPT, 0,
		    "state transfer: the history of the present policy set is not complete");
		return NULL;
	}
	if (!same_slicing(m->set, now)) {
		/* Another way of slicing is another history: all leaves start anew. */
		c = core_new(m->core->clock, err);
		if (c == NULL)
			return NULL;
		c->gseq = m->core->gseq;
		c->last_ts = m->core->last_ts;
		n = make(now, c, err);
		core_drop(c);
		return n;
	}
	n = make(now, m->core, err);
	if (n == NULL)
		return NULL;
	for (size_t i = 0; i < now->nleaves; i++) {
		int64_t k = continues(m, now, map, i);

		if (k >= 0)
			n->leaves[i].born = m->leaves[k].born;
	}
	return n;
}

int dwm_reset_rule(struct dwm *m, size_t rule, struct box_err *err)
{
	const struct dw_rule *r;

	if (rule >= m->set->nrules)
		return box_fail(err, BOX_EPARSE, 0, "no such rule");
	r = &m->set->rules[rule];
	for (uint32_t i = 0; i < r->nleaves; i++)
		m->leaves[r->leaf0 + i].born = m->core->gseq;
	return 0;
}
