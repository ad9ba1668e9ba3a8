/* Recognition of keyed shapes. See plan.h.
 *
 * A body can be a unit when it is a conjunction with one leading pattern P, and each other member
 * is one of: tp(t); a condition that does not depend on time and is judged per row at the decision;
 * a condition that P's own columns make decidable when P matches (then it is a filter, judged once,
 * at step time). The last is exact because such a condition sees only request terms and variables
 * that equal columns of P: whatever request asks later must agree with them, or does not find the
 * row at all. */
#include "dogwood/plan_impl.h"

#include "base/ban.h"

bool dw_pl_no_room(struct pl *p)
{
	p->out->bad = true;
	return false;
}

static bool plan_cond(struct pl *p, struct dw_cond *c);

static struct dw_cond *conjoin(struct pl *p, struct dw_cond *a, struct dw_cond *c)
{
	struct dw_cond *n, **v;
	uint32_t k = a == NULL ? 0 : a->kind == DW_C_AND ? a->all.n : 1;

	if (a == NULL)
		return c;
	n = ARENA_NEW(p->a, struct dw_cond);
	v = ARENA_VEC(p->a, struct dw_cond *, (size_t)k + 1);
	if (n == NULL || v == NULL) {
		dw_pl_no_room(p);
		return NULL;
	}
	*n = *c;
	n->kind = DW_C_AND;
	n->unit = NULL;
	for (uint32_t i = 0; i < k; i++)
		v[i] = a->kind == DW_C_AND ? a->all.v[i] : a;
	v[k] = c;
	n->all.v = v;
	n->all.n = k + 1;
	return n;
}

static bool collect_deps(struct pl *p, struct dw_rel *r, uint32_t from)
{
	/* Whatever was entered while the filters were planned, and what they share with earlier
	 * parts: all of it, inner first. */
	(void)from;
	r->ndep = p->out->nrel;
	r->dep = ARENA_VEC(p->a, uint32_t, r->ndep);
	if (r->dep == NULL)
		return dw_pl_no_room(p);
	for (uint32_t i = 0; i < r->ndep; i++)
		r->dep[i] = i;
	return true;
}

/* A body: one pattern and its side conditions, to a relation (not yet entered) and what a unit
 * needs. plain: no rows are wanted (a negated pattern). */
static bool plan_body(struct pl *p, struct dw_cond *body, struct dw_rel *r, struct dw_unit *u)
{
	struct dw_cond *const *v = body->kind == DW_C_AND ? body->all.v : &body, *c;
	uint32_t n = body->kind == DW_C_AND ? body->all.n : 1, first = 0, before = p->out->nrel;
	bool *known_slot, *known_req, *bound, filters_ask = false;
	struct dw_cond *residual = NULL;
	struct pl in = *p;

	while (first < n && v[first]->kind != DW_C_PRED && dw_pl_timeless(v[first]) &&
	       dw_pl_vars_in(v[first], p->bound))
		first++;
	if (first == n || v[first]->kind != DW_C_PRED ||
	    !dw_pl_columns(p, &v[first]->pred, r, &u->main))
		return false;
	bound = dw_pl_copy_bools(p, p->bound, p->f->names.nslots);
	known_slot = dw_pl_copy_bools(p, NULL, p->f->names.nslots);
	known_req = dw_pl_copy_bools(p, NULL, p->f->names.nreq);
	if (bound == NULL || known_slot == NULL || known_req == NULL)
		return false;
	for (uint32_t i = 0; i < r->nkey; i++) {
		if (r->key_slot[i] != DW_NO_SLOT)
			known_slot[r->key_slot[i]] = true;
		if (r->key_req[i] != DW_NO_SLOT)
			known_req[r->key_req[i]] = true;
	}
	for (uint32_t i = 0; i < r->nval; i++)
		known_slot[r->val_slot[i]] = bound[r->val_slot[i]] = true;
	r->filter = ARENA_VEC(p->a, const struct dw_cond *, n);
	if (r->filter == NULL)
		return dw_pl_no_room(p);
	for (uint32_t i = 0; i < n; i++) {
		c = v[i];
		if (i == first)
			continue;
		if (c->kind == DW_C_TP) {
			if (c->tp.slot == DW_NO_SLOT || bound[c->tp.slot] ||
			    r->tp_slot != DW_NO_SLOT)
				return false;
			r->tp_slot = c->tp.slot;
			known_slot[c->tp.slot] = bound[c->tp.slot] = true;
			continue;
		}
		if (dw_pl_vars_in(c, known_slot) && dw_pl_reqs_in(p, c, known_req)) {
			/* Decidable when the pattern matches. */
			in.bound = known_slot;
			in.pinned = known_req;
			if (!dw_pl_timeless(c)) {
				if (!plan_cond(&in, c) || !dw_pl_all_units(c)) {
					dw_pl_clear_units(c);
					return false;
				}
				filters_ask = true;
			}
			r->filter[r->nfilter++] = c;
			continue;
		}
		if (!dw_pl_timeless(c))
			return false;
		residual = conjoin(p, residual, c);
		if (residual == NULL)
			return false;
		dw_pl_bind_vars(c, bound);
	}
	u->residual = residual;
	u->nval = r->nval;
	memcpy(u->val_slot, r->val_slot, sizeof(u->val_slot));
	u->tp_slot = r->tp_slot;
	if (filters_ask && !collect_deps(p, r, before))
		return false;
	return true;
}

static struct dw_unit *new_unit(struct pl *p, enum dw_unit_kind kind, const struct dw_window *w)
{
	struct dw_unit *u = ARENA_NEW(p->a, struct dw_unit);

	if (u == NULL) {
		dw_pl_no_room(p);
		return NULL;
	}
	u->kind = kind;
	u->w = w != NULL ? w->ticks : 0;
	u->tp_slot = DW_NO_SLOT;
	return u;
}

static struct dw_rel *new_rel(struct pl *p)
{
	struct dw_rel *r = ARENA_NEW(p->a, struct dw_rel);

	if (r == NULL)
		dw_pl_no_room(p);
	return r;
}

static void choose(struct dw_rel *r)
{
	r->kind = r->tp_slot != DW_NO_SLOT ? DW_REL_QUEUE
	          : r->nval != 0           ? DW_REL_DISTINCT
	                                   : DW_REL_LATEST;
	r->vals = r->nval != 0;
}

static bool plan_formerly(struct pl *p, struct dw_cond *c)
{
	struct dw_unit *u = new_unit(p, DW_U_ONCE, c->once.w);
	struct dw_rel *r = new_rel(p);

	if (u == NULL || r == NULL || !plan_body(p, c->once.body, r, u))
		return false;
	choose(r);
	r->reach = c->once.w->ticks;
	if (!dw_pl_enter(p, r, &u->main.rel))
		return false;
	c->unit = u;
	return true;
}

static bool plan_previous(struct pl *p, struct dw_cond *c)
{
	struct dw_unit *u = new_unit(p, DW_U_PREVIOUS, c->once.w);
	struct dw_rel *r = new_rel(p);

	if (u == NULL || r == NULL || !plan_body(p, c->once.body, r, u) || u->tp_slot != DW_NO_SLOT)
		return false;
	r->kind = DW_REL_LAST;
	r->vals = r->nval != 0;
	r->positional = true;
	r->reach = c->once.w->ticks;
	if (!dw_pl_enter(p, r, &u->main.rel))
		return false;
	c->unit = u;
	return true;
}

/* One conjunct of the left side of a since. */
static bool plan_left(struct pl *p, struct dw_cond *c, struct dw_unit *u, int64_t w)
{
	struct dw_unit side = { .tp_slot = DW_NO_SLOT };
	bool positive = c->kind == DW_C_PRED;
	struct dw_cond *body = c->kind == DW_C_NOT ? c->neg : c;
	struct dw_use **list = positive ? &u->run : &u->kill, *v;
	uint32_t *n = positive ? &u->nrun : &u->nkill;
	struct dw_rel *r;

	if (dw_pl_timeless(c)) {
		u->fixed = conjoin(p, u->fixed, c);
		return u->fixed != NULL;
	}
	if (!positive && c->kind != DW_C_NOT)
		return false;
	r = new_rel(p);
	/* All variables of the left side are bound (safe range), so the pattern has no value
	 * columns. */
	if (r == NULL || !plan_body(p, body, r, &side) || r->nval != 0 || side.residual != NULL ||
	    side.tp_slot != DW_NO_SLOT)
		return false;
	r->kind = positive ? DW_REL_RUN : DW_REL_LATEST;
	r->positional = positive;
	r->reach = w;
	if (!dw_pl_enter(p, r, &side.main.rel))
		return false;
	v = arena_grow(p->a, *list, *n, (size_t)*n + 1, sizeof(*v));
	if (v == NULL)
		return dw_pl_no_room(p);
	v[(*n)++] = side.main;
	*list = v;
	return true;
}

static bool plan_since(struct pl *p, struct dw_cond *c)
{
	struct dw_unit *u = new_unit(p, DW_U_SINCE, c->since.w);
	struct dw_rel *r = new_rel(p);
	struct dw_cond *l = c->since.left;
	struct pl in = *p;

	if (u == NULL || r == NULL || !plan_body(p, c->since.right, r, u))
		return false;
	choose(r);
	r->reach = c->since.w->ticks;
	if (!dw_pl_enter(p, r, &u->main.rel))
		return false;
	/* The left side is judged with the anchor's row; what its residual binds comes later and is
	 * not for it. */
	in.bound = dw_pl_copy_bools(p, p->bound, p->f->names.nslots);
	if (in.bound == NULL)
		return false;
	for (uint32_t i = 0; i < u->nval; i++)
		in.bound[u->val_slot[i]] = true;
	if (u->tp_slot != DW_NO_SLOT)
		in.bound[u->tp_slot] = true;
	if (u->residual != NULL)
		dw_pl_bind_vars(u->residual, in.bound);
	for (uint32_t i = 0; i < (l->kind == DW_C_AND ? l->all.n : 1); i++) {
		if (!plan_left(&in, l->kind == DW_C_AND ? l->all.v[i] : l, u, c->since.w->ticks))
			return false;
	}
	c->unit = u;
	return true;
}

/* count/sum over the rows of one unit: read from the relation without walking it. */
static bool plan_total(struct pl *p, struct dw_agg *g, uint32_t cap, uint32_t from)
{
	struct dw_cond *b = g->body;
	const struct dw_unit *rows = b->unit;
	struct dw_unit *u;
	struct dw_rel *r;
	int32_t col = -1;
	uint32_t have, at;

	if (rows == NULL || (rows->kind != DW_U_ONCE && rows->kind != DW_U_SINCE) ||
	    rows->residual != NULL || rows->fixed != NULL || rows->nrun != 0)
		return true;
	have = rows->nval + (rows->tp_slot != DW_NO_SLOT);
	if (have != g->nvars)
		return true;
	for (uint32_t i = 0; g->sum && i < rows->nval; i++) {
		if (rows->val_slot[i] == g->summed_slot)
			col = (int32_t)i;
	}
	if (g->sum && col < 0)
		return true;
	if (rows->kind == DW_U_SINCE) {
		/* What ends an anchor must not depend on the row. */
		if (rows->tp_slot == DW_NO_SLOT)
			return true;
		for (uint32_t i = 0; i < rows->nkill; i++) {
			for (uint32_t k = 0; k < rows->kill[i].nkey; k++) {
				const struct dw_term *t = rows->kill[i].key[k];

				if (t->kind != DW_TERM_VAR && !dw_term_is_request(t))
					return true;
				if (t->kind == DW_TERM_VAR && !p->bound[t->var.slot])
					return true;
			}
		}
	}
	u = new_unit(p, DW_U_TOTAL, NULL);
	r = new_rel(p);
	if (u == NULL || r == NULL)
		return false;
	*r = *p->rels->v[p->out->rel[rows->main.rel]];
	r->sum = g->sum ? col : -1;
	r->vals = false;
	r->cap = r->kind == DW_REL_QUEUE && rows->kind == DW_U_ONCE && !g->sum ? cap : 0;
	r->totals = r->kind == DW_REL_DISTINCT;
	r->reach = rows->w;
	if (r->kind == DW_REL_LATEST)
		return true;
	if (!dw_pl_enter(p, r, &at))
		return false;
	*u = *rows;
	u->kind = DW_U_TOTAL;
	u->of_since = rows->kind == DW_U_SINCE;
	u->sum = g->sum;
	u->main.rel = at;
	/* The rows themselves are not asked for any more: the total takes their place in the list.
	 */
	if (at == p->out->nrel - 1 && rows->main.rel >= from && at != rows->main.rel) {
		p->out->rel[rows->main.rel] = p->out->rel[at];
		p->out->nrel--;
		u->main.rel = rows->main.rel;
	}
	b->unit = NULL;
	g->unit = u;
	return true;
}

/* How many rows a comparison of a count with this term can tell apart: 0 = any number. */
static uint32_t needed(const struct dw_term *other)
{
	if (other->kind != DW_TERM_LIT || other->lit.tag != DW_INT ||
	    other->lit.u.i >= DW_QUEUE_CAP)
		return 0;
	return other->lit.u.i < 0 ? 1 : (uint32_t)other->lit.u.i + 1;
}

static bool plan_term(struct pl *p, struct dw_term *t, const struct dw_term *other)
{
	struct pl in = *p;
	uint32_t from = p->out->nrel;

	if (t->kind != DW_TERM_AGG)
		return true;
	in.bound = dw_pl_copy_bools(p, p->bound, p->f->names.nslots);
	if (in.bound == NULL)
		return false;
	for (uint32_t i = 0; i < t->agg.nvars; i++)
		in.bound[t->agg.vars[i].slot] = false;
	if (!plan_cond(&in, t->agg.body))
		return false;
	return plan_total(&in, &t->agg, needed(other), from);
}

/* Plan the nodes of c, which is judged at the newest timepoint. false only without room: a node
 * that is not recognised keeps no unit. */
static bool plan_cond(struct pl *p, struct dw_cond *c)
{
	struct dw_plan *o = p->out;
	struct pl in = *p;
	uint32_t nrel = o->nrel, all = p->rels->n;
	bool positional = o->positional, ok;

	switch (c->kind) {
	case DW_C_PRED:
	case DW_C_TP:
		return true;
	case DW_C_AND:
		in.bound = dw_pl_copy_bools(p, p->bound, p->f->names.nslots);
		if (in.bound == NULL)
			return false;
		for (uint32_t i = 0; i < c->all.n; i++) {
			if (!plan_cond(&in, c->all.v[i]))
				return false;
			if (c->all.v[i]->kind != DW_C_NOT)
				dw_pl_bind_vars(c->all.v[i], in.bound);
		}
		return true;
	case DW_C_NOT:
		return plan_cond(p, c->neg);
	case DW_C_EXISTS:
		in.bound = dw_pl_copy_bools(p, p->bound, p->f->names.nslots);
		if (in.bound == NULL)
			return false;
		in.bound[c->exists.var.slot] = false;
		return plan_cond(&in, c->exists.body);
	case DW_C_CMP:
		return plan_term(p, c->cmp.l, c->cmp.r) && plan_term(p, c->cmp.r, c->cmp.l);
	case DW_C_FORMERLY:
		ok = plan_formerly(p, c);
		break;
	case DW_C_PREVIOUS:
		ok = plan_previous(p, c);
		break;
	case DW_C_SINCE:
		ok = plan_since(p, c);
		break;
	case DW_C_CALL:
	case DW_C_PARAM:
	default:
		return true;
	}
	if (o->bad)
		return false;
	if (!ok) {
		dw_pl_clear_units(c);
		/* Relations of the attempt go too: their filters speak of positions that are given
		 * up here. */
		o->nrel = nrel;
		p->rels->n = all;
		o->positional = positional;
	} else {
		o->units++;
	}
	return true;
}

bool dw_plan_leaf(struct arena *a, struct dw_rels *rels, struct dw_leaf_impl *f)
{
	struct pl p = { .a = a, .rels = rels, .f = f, .out = &f->plan };

	f->plan = (struct dw_plan){ 0 };
	p.bound = dw_pl_copy_bools(&p, NULL, f->names.nslots);
	if (p.bound == NULL || !plan_cond(&p, f->cond))
		return false;
	dw_pl_leftovers(&f->plan, f->cond);
	f->plan.trigger = dw_pl_trigger(f->cond);
	if (f->plan.trigger != NULL)
		f->plan.quick = dw_pl_quick(f->cond, rels->v[f->plan.rel[f->plan.trigger->rel]]);
	return true;
}
