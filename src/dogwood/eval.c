/* See eval.h. */
#include "dogwood/eval.h"

#include "base/hash.h"

#include "base/ban.h"

static int no_room(struct dw_eval *e)
{
	return box_nomem(e->err, "a temporal condition");
}

int dw_keyset_add(struct dw_keyset *s, struct arena *a, sv key)
{
	/* The values come from the agent, but the set lives for one decision and is bounded by the
	 * window; a fixed key makes decisions repeatable. */
	static const struct sip_key k = { 0x6477, 0x6b73 };
	uint64_t h = sip_hash(k, key);
	size_t i;

	if (s->n * 2 >= s->cap) {
		size_t cap = s->cap != 0 ? s->cap * 2 : 32;
		struct dw_keyset_slot *v = ARENA_VEC(a, struct dw_keyset_slot, cap);

		if (v == NULL)
			return -1;
		for (size_t x = 0; x < s->cap; x++) {
			if (s->v[x].key.p == NULL)
				continue;
			for (i = s->v[x].hash & (cap - 1); v[i].key.p != NULL;
			     i = (i + 1) & (cap - 1))
				;
			v[i] = s->v[x];
		}
		s->v = v;
		s->cap = cap;
	}
	for (i = h & (s->cap - 1); s->v[i].key.p != NULL; i = (i + 1) & (s->cap - 1)) {
		if (s->v[i].hash == h && sv_eq(s->v[i].key, key))
			return 0;
	}
	s->v[i].key = arena_dup(a, key);
	if (s->v[i].key.p == NULL)
		return -1;
	s->v[i].hash = h;
	s->n++;
	return 1;
}

/* ---- terms ---- */

bool dw_event_term(const struct dw_event *e, const struct dw_term *t, struct dw_val *out)
{
	const struct dw_uid *u = t->kind == DW_TERM_PRINCIPAL ? &e->principal : &e->resource;
	const struct dw_val *v = NULL;

	if (t->kind == DW_TERM_CONTEXT) {
		v = dw_walk(&e->context, t->path.v, t->path.n);
		if (v != NULL)
			*out = *v;
		return v != NULL;
	}
	if (dw_uid_is_none(u))
		return false;
	if (t->path.n == 0) {
		*out = dw_ent(u->type, u->id);
		return true;
	}
	for (size_t i = 0; i < e->nents && v == NULL; i++) {
		if (sv_eq(e->ents[i].uid.type, u->type) && sv_eq(e->ents[i].uid.id, u->id))
			v = dw_walk(&e->ents[i].attrs, t->path.v, t->path.n);
	}
	if (v != NULL) {
		*out = *v;
		return true;
	}
	if (t->path.n == 1 && sv_eq(t->path.v[0], SV("id"))) {
		*out = dw_str(u->id);
		return true;
	}
	if (t->path.n == 1 && sv_eq(t->path.v[0], SV("type"))) {
		*out = dw_str(u->type);
		return true;
	}
	return false;
}

bool dw_request_value(struct dw_eval *e, const struct dw_term *t, struct dw_val *out)
{
	uint32_t i = t->path.req;

	if (e->known[i] == DW_UNKNOWN)
		e->known[i] =
		    e->has_request && dw_event_term(e->now, t, &e->req[i]) ? DW_KNOWN : DW_MISSING;
	*out = e->req[i];
	return e->known[i] == DW_KNOWN;
}

bool dw_compare(enum dw_cmp op, const struct dw_val *a, const struct dw_val *b)
{
	if (op == DW_EQ)
		return dw_val_eq(a, b);
	if (op == DW_NE)
		return !dw_val_eq(a, b);
	if (a->tag != DW_INT || b->tag != DW_INT)
		return false;
	switch (op) {
	case DW_LT:
		return a->u.i < b->u.i;
	case DW_LE:
		return a->u.i <= b->u.i;
	case DW_GE:
		return a->u.i >= b->u.i;
	case DW_GT:
		return a->u.i > b->u.i;
	case DW_EQ:
	case DW_NE:
		break;
	}
	return false;
}

/* Append the values of slots to b: present ones framed, absent ones marked. */
static void put_slots(struct dw_eval *e, const uint32_t *slots, uint32_t n, struct buf *b)
{
	for (uint32_t i = 0; i < n; i++) {
		buf_put_byte(b, e->bound[slots[i]]);
		if (e->bound[slots[i]])
			dw_val_key(b, &e->slot[slots[i]]);
	}
}

struct agg_cont {
	struct dw_cont k;
	const struct dw_agg *g;
	uint32_t *slots;
	struct dw_keyset rows;
	__int128 sum;
};

static int agg_row(struct dw_eval *e, struct dw_cont *k)
{
	struct agg_cont *c = (struct agg_cont *)k;
	int r;

	buf_clear(e->key);
	put_slots(e, c->slots, c->g->nvars, e->key);
	r = buf_ok(e->key) ? dw_keyset_add(&c->rows, e->a, buf_sv(e->key)) : -1;
	if (r < 0)
		return no_room(e);
	if (r == 1 && c->g->sum && e->bound[c->g->summed_slot] &&
	    e->slot[c->g->summed_slot].tag == DW_INT)
		c->sum += e->slot[c->g->summed_slot].u.i;
	return 0;
}

static int64_t clamp(__int128 v)
{
	return v > INT64_MAX ? INT64_MAX : v < INT64_MIN ? INT64_MIN : (int64_t)v;
}

static int agg_value(struct dw_eval *e, const struct dw_agg *g, size_t j, struct dw_val *out)
{
	struct agg_cont c = { .k = { agg_row }, .g = g };

	if (g->unit != NULL && j == e->last && e->unit_agg != NULL)
		return e->unit_agg(e, g->unit, g, out);
	c.slots = ARENA_VEC(e->a, uint32_t, g->nvars);
	if (c.slots == NULL)
		return no_room(e);
	for (uint32_t i = 0; i < g->nvars; i++)
		c.slots[i] = g->vars[i].slot;
	if (dw_sat(e, g->body, j, &c.k) < 0)
		return -1;
	*out = dw_int(g->sum ? clamp(c.sum) : (int64_t)c.rows.n);
	return 1;
}

int dw_term_value(struct dw_eval *e, const struct dw_term *t, size_t j, struct dw_val *out)
{
	struct dw_val *v;
	int r;

	switch (t->kind) {
	case DW_TERM_LIT:
		*out = t->lit;
		return 1;
	case DW_TERM_ARRAY:
		v = ARENA_VEC(e->a, struct dw_val, t->items.n);
		if (v == NULL)
			return no_room(e);
		for (uint32_t i = 0; i < t->items.n; i++) {
			r = dw_term_value(e, t->items.v[i], j, &v[i]);
			if (r != 1)
				return r;
		}
		out->tag = DW_ARRAY;
		out->u.arr.v = v;
		out->u.arr.n = t->items.n;
		return 1;
	case DW_TERM_CONTEXT:
	case DW_TERM_PRINCIPAL:
	case DW_TERM_RESOURCE:
		return dw_request_value(e, t, out);
	case DW_TERM_VAR:
		if (t->var.slot == DW_NO_SLOT || !e->bound[t->var.slot])
			return 0;
		*out = e->slot[t->var.slot];
		return 1;
	case DW_TERM_AGG:
		return agg_value(e, &t->agg, j, out);
	case DW_TERM_WILD:
	case DW_TERM_PARAM:
	case DW_TERM_CALL:
		return 0;
	}
	return 0;
}

/* ---- conditions ---- */

static bool is_unbound(const struct dw_eval *e, const struct dw_term *t)
{
	return t->kind == DW_TERM_VAR && t->var.slot != DW_NO_SLOT && !e->bound[t->var.slot];
}

static int bind_and(struct dw_eval *e, uint32_t slot, struct dw_val v, struct dw_cont *k)
{
	int r;

	e->slot[slot] = v;
	e->bound[slot] = true;
	r = k->fn(e, k);
	e->bound[slot] = false;
	return r;
}

static int sat_cmp(struct dw_eval *e, const struct dw_cond *c, size_t j, struct dw_cont *k)
{
	const struct dw_term *l = c->cmp.l, *r = c->cmp.r;
	bool ul = is_unbound(e, l), ur = is_unbound(e, r);
	struct dw_val a, b;
	int x;

	if (c->cmp.op == DW_EQ && ul != ur) {
		x = dw_term_value(e, ul ? r : l, j, &a);
		return x == 1 ? bind_and(e, ul ? l->var.slot : r->var.slot, a, k) : x;
	}
	x = dw_term_value(e, l, j, &a);
	if (x == 1)
		x = dw_term_value(e, r, j, &b);
	if (x != 1)
		return x;
	return dw_compare(c->cmp.op, &a, &b) ? k->fn(e, k) : 0;
}

static int sat_pred(struct dw_eval *e, const struct dw_cond *c, size_t j, struct dw_cont *k)
{
	const struct dw_event *ev = j == e->last ? e->now : dw_hist_at(e->h, j)->ev;
	const struct dw_pred *p = &c->pred;
	const struct dw_val *have;
	struct dw_val want;
	uint32_t i;
	int r = 1;

	if (ev == NULL || !sv_eq(ev->id, p->id) || !sv_eq(ev->kind, p->kind) ||
	    !sv_eq(ev->ns, p->ns))
		return 0;
	for (i = 0; i < p->nargs && r == 1; i++) {
		const struct dw_arg *g = &p->args[i];

		have = dw_walk(&ev->logged, g->path, g->npath);
		if (have == NULL) {
			r = 0;
		} else if (is_unbound(e, g->term)) {
			e->slot[g->term->var.slot] = *have;
			e->bound[g->term->var.slot] = true;
		} else if (g->term->kind != DW_TERM_WILD) {
			r = dw_term_value(e, g->term, j, &want);
			if (r == 1 && !dw_val_eq(have, &want))
				r = 0;
		}
	}
	return r == 1 ? k->fn(e, k) : r;
}

/* sat_pred leaves what it bound to its caller, who knows what was unbound before. */
static int with_unbinding(struct dw_eval *e, const struct dw_cond *c, size_t j, struct dw_cont *k)
{
	bool here[16], *was = c->nvars <= 16 ? here : ARENA_VEC(e->a, bool, c->nvars);
	int r;

	if (was == NULL)
		return no_room(e);
	for (uint32_t i = 0; i < c->nvars; i++)
		was[i] = e->bound[c->vars[i]];
	r = sat_pred(e, c, j, k);
	for (uint32_t i = 0; i < c->nvars; i++)
		e->bound[c->vars[i]] = was[i];
	return r;
}

struct and_cont {
	struct dw_cont k;
	const struct dw_cond *c;
	uint32_t i;
	size_t j;
	struct dw_cont *next;
};

static int and_next(struct dw_eval *e, struct dw_cont *k)
{
	struct and_cont *x = (struct and_cont *)k, y;

	if (x->i == x->c->all.n)
		return x->next->fn(e, x->next);
	y = *x;
	y.i++;
	return dw_sat(e, x->c->all.v[x->i], x->j, &y.k);
}

static int stop(struct dw_eval *e, struct dw_cont *k)
{
	(void)e;
	(void)k;
	return 1;
}

/* Is every slot of c bound? Then c is a filter: it has at most the empty row. */
static bool is_filter(const struct dw_eval *e, const struct dw_cond *c)
{
	for (uint32_t i = 0; i < c->nvars; i++) {
		if (!e->bound[c->vars[i]])
			return false;
	}
	return true;
}

int dw_true(struct dw_eval *e, const struct dw_cond *c, size_t j)
{
	struct dw_cont k = { stop };
	bool memo = c->nvars == 0 && e->memo != NULL &&
	            (c->kind == DW_C_FORMERLY || c->kind == DW_C_SINCE || c->kind == DW_C_EXISTS ||
	                c->kind == DW_C_CMP);
	int r;

	if (memo) {
		if (e->memo[c->node] == NULL) {
			e->memo[c->node] = ARENA_VEC(e->a, uint8_t, e->last + 1);
			if (e->memo[c->node] == NULL)
				return no_room(e);
		}
		if (e->memo[c->node][j] != 0)
			return e->memo[c->node][j] - 1;
	}
	r = dw_sat(e, c, j, &k);
	if (memo && r >= 0)
		e->memo[c->node][j] = (uint8_t)(r + 1);
	return r;
}

/* Passes each row of the unbound slots once. */
struct distinct_cont {
	struct dw_cont k;
	const uint32_t *slots;
	uint32_t n;
	struct dw_keyset seen;
	struct dw_cont *next;
};

static int distinct_row(struct dw_eval *e, struct dw_cont *k)
{
	struct distinct_cont *d = (struct distinct_cont *)k;
	int r;

	buf_clear(e->key);
	put_slots(e, d->slots, d->n, e->key);
	r = buf_ok(e->key) ? dw_keyset_add(&d->seen, e->a, buf_sv(e->key)) : -1;
	if (r < 0)
		return no_room(e);
	return r == 1 ? d->next->fn(e, d->next) : 0;
}

static int64_t age(const struct dw_eval *e, size_t j, size_t i)
{
	int64_t r;

	if (__builtin_sub_overflow(dw_hist_at(e->h, i)->ts, dw_hist_at(e->h, j)->ts, &r))
		return dw_hist_at(e->h, i)->ts < dw_hist_at(e->h, j)->ts ? INT64_MIN : INT64_MAX;
	return r;
}

/* Is point j within w of point i? *end: no older point is, either. */
static bool in_window(
    const struct dw_eval *e, size_t j, size_t i, const struct dw_window *w, bool *end)
{
	int64_t d = age(e, j, i);

	*end = e->monotone && d > w->ticks;
	return d >= 0 && d <= w->ticks;
}

/* For a closed operator judged at past points: line[j] is 0 (not known yet), 1 (no witness at or
 * before j) or w + 2, the newest point w that is one. A witness of `formerly φ` is where φ holds;
 * of `φ since ψ` it is an anchor that φ has not failed after. The newest is the best for any
 * window, so one pass over the points serves all of them. */
static int witness(struct dw_eval *e, const struct dw_cond *c, size_t i, uint32_t *out)
{
	uint32_t *line = e->line[c->node];
	size_t j = i;
	int r;

	if (line == NULL) {
		line = e->line[c->node] = ARENA_VEC(e->a, uint32_t, e->last + 1);
		if (line == NULL)
			return no_room(e);
	}
	while (j > e->first && line[j] == 0)
		j--;
	for (; j <= i; j++) {
		if (line[j] != 0)
			continue;
		r = dw_true(e, c->kind == DW_C_SINCE ? c->since.right : c->once.body, j);
		if (r < 0)
			return r;
		line[j] = r == 1 ? (uint32_t)j + 2 : j > e->first ? line[j - 1] : 1;
		if (r == 1 || line[j] == 1 || c->kind != DW_C_SINCE)
			continue;
		r = dw_true(e, c->since.left, j);
		if (r < 0)
			return r;
		if (r == 0)
			line[j] = 1;
	}
	*out = line[i];
	return 0;
}

/* Is a closed operator, judged at a past point, answered by its line? */
static bool has_line(const struct dw_eval *e, const struct dw_cond *c, size_t i)
{
	return c->nvars == 0 && i != e->last && e->monotone && e->line != NULL;
}

static int by_line(struct dw_eval *e, const struct dw_cond *c, const struct dw_window *w, size_t i,
    struct dw_cont *k)
{
	uint32_t at;
	bool end;

	if (witness(e, c, i, &at) < 0)
		return -1;
	return at > 1 && in_window(e, at - 2, i, w, &end) ? k->fn(e, k) : 0;
}

static int sat_formerly(struct dw_eval *e, const struct dw_cond *c, size_t i, struct dw_cont *k)
{
	struct distinct_cont d = { { distinct_row }, c->vars, c->nvars, { 0 }, k };
	bool filter = is_filter(e, c), end = false;
	int r;

	if (has_line(e, c, i))
		return by_line(e, c, c->once.w, i, k);
	for (size_t j = i + 1; j-- > e->first && !end;) {
		if (!in_window(e, j, i, c->once.w, &end))
			continue;
		r = filter ? dw_true(e, c->once.body, j) : dw_sat(e, c->once.body, j, &d.k);
		if (r < 0)
			return r;
		if (r == 1)
			return filter ? k->fn(e, k) : 1;
	}
	return 0;
}

static int sat_previous(struct dw_eval *e, const struct dw_cond *c, size_t i, struct dw_cont *k)
{
	bool end;

	/* The point before must be the timepoint before, not just the one kept before. */
	if (i <= e->first || dw_hist_at(e->h, i - 1)->seq + 1 != dw_hist_at(e->h, i)->seq ||
	    !in_window(e, i - 1, i, c->once.w, &end))
		return 0;
	return dw_sat(e, c->once.body, i - 1, k);
}

/* A row of the anchor at `from`: the left side must hold at every later point up to `i`. */
struct since_cont {
	struct dw_cont k;
	const struct dw_cond *left;
	size_t from, i;
	struct dw_cont *next;
};

static int since_row(struct dw_eval *e, struct dw_cont *k)
{
	struct since_cont *s = (struct since_cont *)k;
	int r;

	for (size_t m = s->from + 1; m <= s->i; m++) {
		r = dw_true(e, s->left, m);
		if (r != 1)
			return r;
	}
	return s->next->fn(e, s->next);
}

static int sat_since(struct dw_eval *e, const struct dw_cond *c, size_t i, struct dw_cont *k)
{
	struct distinct_cont d = { { distinct_row }, c->vars, c->nvars, { 0 }, k };
	struct since_cont s = { { since_row }, c->since.left, 0, i, &d.k };
	bool filter = is_filter(e, c), end = false, fixed = true;
	struct dw_cont found = { stop };
	int r;

	if (has_line(e, c, i))
		return by_line(e, c, c->since.w, i, k);
	/* A left side that depends on nothing the anchor binds is the same for every anchor: one
	 * pass, ended where it fails. */
	for (uint32_t x = 0; x < c->since.left->nvars; x++)
		fixed = fixed && e->bound[c->since.left->vars[x]];
	if (filter)
		s.next = &found;
	for (size_t j = i + 1; j-- > e->first && !end;) {
		if (in_window(e, j, i, c->since.w, &end)) {
			s.from = fixed ? i : j;
			r = dw_sat(e, c->since.right, j, &s.k);
			if (r < 0)
				return r;
			if (r == 1)
				return filter ? k->fn(e, k) : 1;
		}
		if (fixed && !end) {
			r = dw_true(e, c->since.left, j);
			if (r != 1)
				return r;
		}
	}
	return 0;
}

struct exists_cont {
	struct dw_cont k;
	uint32_t slot;
	struct dw_cont *next;
};

static int exists_row(struct dw_eval *e, struct dw_cont *k)
{
	struct exists_cont *x = (struct exists_cont *)k;
	bool was = e->bound[x->slot];
	int r;

	e->bound[x->slot] = false;
	r = x->next->fn(e, x->next);
	e->bound[x->slot] = was;
	return r;
}

static int sat_exists(struct dw_eval *e, const struct dw_cond *c, size_t j, struct dw_cont *k)
{
	struct distinct_cont d = { { distinct_row }, c->vars, c->nvars, { 0 }, k };
	struct exists_cont x = { { exists_row }, c->exists.var.slot, &d.k };
	struct dw_cont found = { stop };
	int r;

	if (!is_filter(e, c))
		return dw_sat(e, c->exists.body, j, &x.k);
	r = dw_sat(e, c->exists.body, j, &found);
	return r == 1 ? k->fn(e, k) : r;
}

int dw_sat(struct dw_eval *e, const struct dw_cond *c, size_t j, struct dw_cont *k)
{
	struct and_cont a;
	struct dw_val at;
	int r;

	if (c->unit != NULL && j == e->last && e->unit != NULL)
		return e->unit(e, c->unit, k);
	switch (c->kind) {
	case DW_C_PRED:
		return with_unbinding(e, c, j, k);
	case DW_C_TP:
		at = dw_int((int64_t)(j == e->last ? e->seq : dw_hist_at(e->h, j)->seq));
		if (e->bound[c->tp.slot])
			return dw_val_eq(&e->slot[c->tp.slot], &at) ? k->fn(e, k) : 0;
		return bind_and(e, c->tp.slot, at, k);
	case DW_C_AND:
		a = (struct and_cont){ { and_next }, c, 0, j, k };
		return and_next(e, &a.k);
	case DW_C_NOT:
		r = dw_true(e, c->neg, j);
		return r == 0 ? k->fn(e, k) : r < 0 ? -1 : 0;
	case DW_C_FORMERLY:
		return sat_formerly(e, c, j, k);
	case DW_C_PREVIOUS:
		return sat_previous(e, c, j, k);
	case DW_C_SINCE:
		return sat_since(e, c, j, k);
	case DW_C_EXISTS:
		return sat_exists(e, c, j, k);
	case DW_C_CMP:
		return sat_cmp(e, c, j, k);
	case DW_C_CALL:
	case DW_C_PARAM:
		break;
	}
	return box_fail(
	    e->err, BOX_ECORRUPT, 0, "a condition with a macro call reached evaluation");
}
