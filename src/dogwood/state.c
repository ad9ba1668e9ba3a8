/* Taking events into states. See state.h. */
#include "dogwood/state.h"

#include <stdlib.h>

#include "dogwood/group.h"
#include "dogwood/set_impl.h"

#include "base/ban.h"

#define EXPIRE_STEP 8

struct dw_state *dw_state_new(const struct dw_rel *r, uint64_t born)
{
	struct dw_state *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->refs = 1;
	s->kind = r->kind;
	s->born = born;
	s->reach = r->reach;
	s->cap = r->cap;
	dw_table_init(&s->groups, dw_group_size(r->kind));
	return s;
}

void dw_state_drop(struct dw_state *s)
{
	if (s == NULL || --s->refs != 0)
		return;
	dw_table_fini(&s->groups, dw_group_fini(s->kind));
	free(s);
}

bool dw_rel_matches(const struct dw_rel *r, const struct dw_event *e)
{
	const struct dw_val *v, *x;

	if (!sv_eq(e->id, r->id) || !sv_eq(e->kind, r->ekind) || !sv_eq(e->ns, r->ns))
		return false;
	for (uint32_t i = 0; i < r->nlit; i++) {
		v = dw_walk(&e->logged, r->lit[i].path, r->lit[i].npath);
		if (v == NULL ||
		    (r->lit[i].term->kind == DW_TERM_LIT && !dw_val_eq(v, &r->lit[i].term->lit)))
			return false;
	}
	for (uint32_t i = 0; i < r->ndup; i++) {
		v = dw_walk(&e->logged, r->dup[i][0].path, r->dup[i][0].npath);
		x = dw_walk(&e->logged, r->dup[i][1].path, r->dup[i][1].npath);
		if (v == NULL || x == NULL || !dw_val_eq(v, x))
			return false;
	}
	for (uint32_t i = 0; i < r->nkey + r->nval; i++) {
		const struct dw_col *c = i < r->nkey ? &r->key[i] : &r->val[i - r->nkey];

		if (dw_walk(&e->logged, c->path, c->npath) == NULL)
			return false;
	}
	return true;
}

/* The columns of an event that matches. */
struct cols {
	const struct dw_val *key[DW_COLS_MAX], *val[DW_COLS_MAX];
};

static void read_cols(const struct dw_rel *r, const struct dw_event *e, struct cols *c)
{
	for (uint32_t i = 0; i < r->nkey; i++)
		c->key[i] = dw_walk(&e->logged, r->key[i].path, r->key[i].npath);
	for (uint32_t i = 0; i < r->nval; i++)
		c->val[i] = dw_walk(&e->logged, r->val[i].path, r->val[i].npath);
}

/* Do the side conditions hold now? 1, 0, -1. */
static int filters(const struct dw_inst *x, const struct dw_now *now, const struct cols *c,
    struct arena *a, struct buf *key, struct box_err *err)
{
	const struct dw_rel *r = x->rel;
	const struct dw_names *n = &r->leaf->names;
	struct dw_eval e = {
		.names = n,
		.now = now->e,
		.slice = now->slice,
		.seq = now->seq,
		.ts = now->ts,
		.monotone = true,
		.a = a,
		.err = err,
		.unit = dw_unit_rows,
		.unit_agg = dw_unit_total,
		.keyed = x->view,
		.key = key,
	};
	int res = 1;

	if (r->nfilter == 0)
		return 1;
	arena_reset(a);
	e.slot = ARENA_VEC(a, struct dw_val, n->nslots);
	e.bound = ARENA_VEC(a, bool, n->nslots);
	e.req = ARENA_VEC(a, struct dw_val, n->nreq);
	e.known = ARENA_VEC(a, uint8_t, n->nreq);
	if (e.slot == NULL || e.bound == NULL || e.req == NULL || e.known == NULL)
		return box_nomem(err, "a temporal condition");
	for (uint32_t i = 0; i < r->nkey; i++) {
		if (r->key_slot[i] != DW_NO_SLOT) {
			e.slot[r->key_slot[i]] = *c->key[i];
			e.bound[r->key_slot[i]] = true;
		}
		if (r->key_req[i] != DW_NO_SLOT) {
			e.req[r->key_req[i]] = *c->key[i];
			e.known[r->key_req[i]] = DW_KNOWN;
		}
	}
	for (uint32_t i = 0; i < r->nval; i++) {
		e.slot[r->val_slot[i]] = *c->val[i];
		e.bound[r->val_slot[i]] = true;
	}
	if (r->tp_slot != DW_NO_SLOT) {
		e.slot[r->tp_slot] = dw_int((int64_t)now->seq);
		e.bound[r->tp_slot] = true;
	}
	for (uint32_t i = 0; i < r->nfilter && res == 1; i++)
		res = dw_true(&e, r->filter[i], 0);
	return res;
}

static int64_t minus(int64_t a, int64_t b)
{
	int64_t r;

	return __builtin_sub_overflow(a, b, &r) ? INT64_MIN : r;
}

static bool copy_key(const struct buf *key, uint8_t **out, uint32_t *n)
{
	uint8_t *p = malloc(key->n != 0 ? key->n : 1);

	if (p == NULL)
		return false;
	if (key->n != 0)
		memcpy(p, key->p, key->n);
	free(*out);
	*out = p;
	*n = (uint32_t)key->n;
	return true;
}

static bool put_latest(struct dw_state *s, sv key, const struct dw_now *now)
{
	struct dw_g_latest *g = dw_table_put(&s->groups, key, now->ts);

	if (g == NULL)
		return false;
	g->at = (struct dw_stamp){ now->seq, now->ts };
	dw_table_touch(&s->groups, g, now->ts);
	return true;
}

static bool put_queue(
    const struct dw_inst *x, sv key, const struct dw_now *now, const struct cols *c)
{
	const struct dw_rel *r = x->rel;
	struct dw_g_queue *q = dw_table_put(&x->st->groups, key, now->ts);
	struct dw_val *vals = NULL;
	int64_t add = 0;

	if (q == NULL)
		return false;
	dw_table_touch(&x->st->groups, q, now->ts);
	if (r->vals) {
		vals = dw_vals_blob(c->val, r->nval);
		if (vals == NULL)
			return false;
	}
	if (r->sum >= 0 && c->val[r->sum]->tag == DW_INT)
		add = c->val[r->sum]->u.i;
	if (!dw_queue_push(q, (struct dw_stamp){ now->seq, now->ts }, r->sum >= 0 ? &add : NULL,
	        vals, x->st->cap, minus(now->ts, x->st->reach))) {
		free(vals);
		return false;
	}
	return true;
}

static bool put_distinct(const struct dw_inst *x, sv key, const struct dw_now *now,
    const struct cols *c, struct buf *row)
{
	const struct dw_rel *r = x->rel;
	struct dw_g_distinct *g = dw_table_put(&x->st->groups, key, now->ts);
	struct dw_g_row *w;
	size_t before;

	if (g == NULL)
		return false;
	dw_table_touch(&x->st->groups, g, now->ts);
	if (!g->ready) {
		dw_table_init_with(&g->rows, sizeof(*w), x->st->groups.sip);
		g->ready = true;
	}
	dw_distinct_expire(g, minus(now->ts, x->st->reach), EXPIRE_STEP);
	buf_clear(row);
	for (uint32_t i = 0; i < r->nval; i++)
		dw_val_key(row, c->val[i]);
	before = g->rows.n;
	w = buf_ok(row) ? dw_table_put(&g->rows, buf_sv(row), now->ts) : NULL;
	if (w == NULL)
		return false;
	if (g->rows.n != before) {
		if (r->vals) {
			w->vals = dw_vals_blob(c->val, r->nval);
			if (w->vals == NULL)
				return false;
		}
		if (r->sum >= 0 && c->val[r->sum]->tag == DW_INT)
			w->add = c->val[r->sum]->u.i;
		g->sum += w->add;
	}
	w->seq = now->seq;
	dw_table_touch(&g->rows, w, now->ts);
	return true;
}

static bool put_run(struct dw_state *s, sv slice, const struct buf *key, const struct dw_now *now)
{
	struct dw_g_run *g = dw_table_put(&s->groups, slice, now->ts);
	bool goes_on;

	if (g == NULL)
		return false;
	dw_table_touch(&s->groups, g, now->ts);
	goes_on = g->key != NULL && g->end + 1 == now->seq &&
	          sv_eq(buf_sv(key), (sv){ (char *)g->key, g->n });
	if (!goes_on) {
		if (!copy_key(key, &g->key, &g->n))
			return false;
		g->start = now->seq;
	}
	g->end = now->seq;
	return true;
}

static bool put_last(const struct dw_inst *x, sv slice, const struct buf *key,
    const struct dw_now *now, const struct cols *c)
{
	struct dw_g_last *g = dw_table_put(&x->st->groups, slice, now->ts);
	struct dw_last m = { .at = { now->seq, now->ts } };

	if (g == NULL)
		return false;
	dw_table_touch(&x->st->groups, g, now->ts);
	if (!copy_key(key, &m.key, &m.n))
		return false;
	if (x->rel->vals) {
		m.vals = dw_vals_blob(c->val, x->rel->nval);
		if (m.vals == NULL) {
			free(m.key);
			return false;
		}
	}
	free(g->m[1].key);
	free(g->m[1].vals);
	g->m[1] = g->m[0];
	g->m[0] = m;
	return true;
}

static void expire(struct dw_state *s, int64_t now)
{
	void *g;

	for (int i = 0; i < EXPIRE_STEP; i++) {
		g = dw_table_oldest(&s->groups);
		if (g == NULL || dw_table_ts(g) >= minus(now, s->reach))
			return;
		dw_table_drop(&s->groups, g, dw_group_fini(s->kind));
	}
}

int dw_inst_step(struct dw_inst *x, const struct dw_now *now, struct arena *scratch,
    struct buf *key, struct buf *row, struct box_err *err)
{
	const struct dw_rel *r = x->rel;
	size_t groups = x->st->groups.n;
	char slice[8];
	struct cols c;
	bool ok = false;
	int f;

	if (!dw_rel_matches(r, now->e))
		return 0;
	read_cols(r, now->e, &c);
	f = filters(x, now, &c, scratch, row, err);
	if (f != 1)
		return f;
	buf_clear(key);
	for (int i = 0; i < 8; i++)
		slice[i] = (char)(now->slice >> (56 - 8 * i));
	/* Runs and last events are kept for each slice; the others for each key within it. */
	if (r->kind != DW_REL_RUN && r->kind != DW_REL_LAST)
		buf_put(key, slice, sizeof(slice));
	for (uint32_t i = 0; i < r->nkey; i++)
		dw_val_key(key, c.key[i]);
	if (!buf_ok(key))
		return box_nomem(err, "the history of a policy set");
	switch (r->kind) {
	case DW_REL_LATEST:
		ok = put_latest(x->st, buf_sv(key), now);
		break;
	case DW_REL_QUEUE:
		ok = put_queue(x, buf_sv(key), now, &c);
		break;
	case DW_REL_DISTINCT:
		ok = put_distinct(x, buf_sv(key), now, &c, row);
		break;
	case DW_REL_RUN:
		ok = put_run(x->st, (sv){ slice, sizeof(slice) }, key, now);
		break;
	case DW_REL_LAST:
		ok = put_last(x, (sv){ slice, sizeof(slice) }, key, now, &c);
		break;
	}
	if (!ok)
		return box_nomem(err, "the history of a policy set");
	f = x->st->groups.n != groups ? 2 : 1;
	expire(x->st, now->ts);
	return f;
}
