/* Recognition of keyed shapes. See plan.h.
 *
 * A body can be a unit when it is a conjunction with one leading pattern P, and each other member is one of: tp(t); a condition that does not depend on time and is judged per row at
 * the decision; a condition that P's own columns make decidable when P matches (then it is a filter, judged once, at step time). The last is exact because such a condition sees only
 * request terms and variables that equal columns of P: whatever request asks later must agree with them, or does not find the row at all. */
#include "dogwood/plan.h"

#include "base/hash.h"

#include "dogwood/eval.h"
#include "dogwood/set_impl.h"

#include "base/ban.h"

struct pl {
	struct arena *a;
	struct dw_rels *rels;
	struct dw_leaf_impl *f;
	struct dw_plan *out;
	bool *bound;  /* slots that have a value where the present node is judged */
	bool *pinned; /* request terms that have a value; NULL: all (a request is there) */
};

static bool no_room(struct pl *p)
{
	p->out->bad = true;
	return false;
}

/* ---- what a condition depends on ---- */

static bool term_timeless(const struct dw_term *t)
{
	return t->kind != DW_TERM_AGG;
}

static bool timeless(const struct dw_cond *c)
{
	switch (c->kind) {
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++) {
			if (!timeless(c->all.v[i]))
				return false;
		}
		return true;
	case DW_C_NOT:
		return timeless(c->neg);
	case DW_C_EXISTS:
		return timeless(c->exists.body);
	case DW_C_CMP:
		return term_timeless(c->cmp.l) && term_timeless(c->cmp.r);
	case DW_C_PRED:
	case DW_C_TP:
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
	case DW_C_SINCE:
	case DW_C_CALL:
	case DW_C_PARAM:
		return false;
	}
	return false;
}

static bool reqs_in(const struct pl *p, const struct dw_cond *c, const bool *known);

static bool term_reqs_in(const struct pl *p, const struct dw_term *t, const bool *known)
{
	if (dw_term_is_request(t))
		return known[t->path.req];
	if (t->kind == DW_TERM_ARRAY) {
		for (uint32_t i = 0; i < t->items.n; i++) {
			if (!term_reqs_in(p, t->items.v[i], known))
				return false;
		}
	}
	return t->kind != DW_TERM_AGG || reqs_in(p, t->agg.body, known);
}

/* Are all request terms of c among the known ones? */
static bool reqs_in(const struct pl *p, const struct dw_cond *c, const bool *known)
{
	switch (c->kind) {
	case DW_C_PRED:
		for (uint32_t i = 0; i < c->pred.nargs; i++) {
			if (!term_reqs_in(p, c->pred.args[i].term, known))
				return false;
		}
		return true;
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++) {
			if (!reqs_in(p, c->all.v[i], known))
				return false;
		}
		return true;
	case DW_C_NOT:
		return reqs_in(p, c->neg, known);
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		return reqs_in(p, c->once.body, known);
	case DW_C_SINCE:
		return reqs_in(p, c->since.left, known) && reqs_in(p, c->since.right, known);
	case DW_C_EXISTS:
		return reqs_in(p, c->exists.body, known);
	case DW_C_CMP:
		return term_reqs_in(p, c->cmp.l, known) && term_reqs_in(p, c->cmp.r, known);
	case DW_C_TP:
	case DW_C_CALL:
	case DW_C_PARAM:
		return true;
	}
	return true;
}

static bool vars_in(const struct dw_cond *c, const bool *known)
{
	for (uint32_t i = 0; i < c->nvars; i++) {
		if (!known[c->vars[i]])
			return false;
	}
	return true;
}

/* Variables that c surely binds are marked. */
static void bind_vars(const struct dw_cond *c, bool *bound)
{
	for (uint32_t i = 0; i < c->nvars; i++)
		bound[c->vars[i]] = true;
}

/* Every part that needs memory is a unit? */
static bool all_units(const struct dw_cond *c);

static bool term_all_units(const struct dw_term *t)
{
	return t->kind != DW_TERM_AGG || t->agg.unit != NULL || all_units(t->agg.body);
}

static bool all_units(const struct dw_cond *c)
{
	switch (c->kind) {
	case DW_C_PRED:
	case DW_C_TP:
		return true;
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++) {
			if (!all_units(c->all.v[i]))
				return false;
		}
		return true;
	case DW_C_NOT:
		return all_units(c->neg);
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
	case DW_C_SINCE:
		return c->unit != NULL;
	case DW_C_EXISTS:
		return all_units(c->exists.body);
	case DW_C_CMP:
		return term_all_units(c->cmp.l) && term_all_units(c->cmp.r);
	case DW_C_CALL:
	case DW_C_PARAM:
		return false;
	}
	return false;
}

static void clear_units(struct dw_cond *c);

static void term_clear(struct dw_term *t)
{
	if (t->kind != DW_TERM_AGG)
		return;
	t->agg.unit = NULL;
	clear_units(t->agg.body);
}

static void clear_units(struct dw_cond *c)
{
	c->unit = NULL;
	switch (c->kind) {
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++)
			clear_units(c->all.v[i]);
		return;
	case DW_C_NOT:
		clear_units(c->neg);
		return;
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		clear_units(c->once.body);
		return;
	case DW_C_SINCE:
		clear_units(c->since.left);
		clear_units(c->since.right);
		return;
	case DW_C_EXISTS:
		clear_units(c->exists.body);
		return;
	case DW_C_CMP:
		term_clear(c->cmp.l);
		term_clear(c->cmp.r);
		return;
	case DW_C_PRED:
	case DW_C_TP:
	case DW_C_CALL:
	case DW_C_PARAM:
		return;
	}
}

/* ---- one pattern to a relation ---- */

static bool *copy_bools(struct pl *p, const bool *v, size_t n)
{
	bool *c = ARENA_VEC(p->a, bool, n);

	if (c == NULL)
		no_room(p);
	else if (v != NULL)
		memcpy(c, v, n * sizeof(bool));
	return c;
}

static bool literal_array(const struct dw_term *t)
{
	for (uint32_t i = 0; i < t->items.n; i++) {
		if (t->items.v[i]->kind != DW_TERM_LIT)
			return false;
	}
	return true;
}

static bool add_lit(struct pl *p, struct dw_rel *r, const struct dw_arg *g)
{
	struct dw_arg *v = arena_grow(p->a, r->lit, r->nlit, (size_t)r->nlit + 1, sizeof(*v));
	struct dw_val *items;
	struct dw_term *t;

	if (v == NULL)
		return no_room(p);
	r->lit = v;
	v[r->nlit] = *g;
	if (g->term->kind == DW_TERM_ARRAY) {
		t = ARENA_NEW(p->a, struct dw_term);
		items = ARENA_VEC(p->a, struct dw_val, g->term->items.n);
		if (t == NULL || items == NULL)
			return no_room(p);
		for (uint32_t i = 0; i < g->term->items.n; i++)
			items[i] = g->term->items.v[i]->lit;
		t->kind = DW_TERM_LIT;
		t->lit.tag = DW_ARRAY;
		t->lit.u.arr.v = items;
		t->lit.u.arr.n = g->term->items.n;
		v[r->nlit].term = t;
	}
	r->nlit++;
	return true;
}

static bool add_dup(struct dw_rel *r, struct dw_col a, struct dw_col b)
{
	if (r->ndup == DW_COLS_MAX)
		return false;
	r->dup[r->ndup][0] = a;
	r->dup[r->ndup++][1] = b;
	return true;
}

/* Columns of P under the slots bound outside. false: not a shape for a relation, or no room. */
static bool columns(struct pl *p, const struct dw_pred *pr, struct dw_rel *r, struct dw_use *use)
{
	r->ns = pr->ns;
	r->id = pr->id;
	r->ekind = pr->kind;
	r->sum = -1;
	r->tp_slot = DW_NO_SLOT;
	r->leaf = p->f;
	for (uint32_t i = 0; i < pr->nargs; i++) {
		const struct dw_arg *g = &pr->args[i];
		struct dw_term *t = g->term;
		struct dw_col c = { g->path, g->npath };
		uint32_t slot = DW_NO_SLOT, req = DW_NO_SLOT, k;

		if (t->kind == DW_TERM_LIT || t->kind == DW_TERM_WILD ||
		    (t->kind == DW_TERM_ARRAY && literal_array(t))) {
			if (!add_lit(p, r, g))
				return false;
			continue;
		}
		if (t->kind == DW_TERM_VAR && t->var.slot == DW_NO_SLOT)
			return false;
		if (t->kind == DW_TERM_VAR && !p->bound[t->var.slot]) {
			for (k = 0; k < r->nval && r->val_slot[k] != t->var.slot; k++)
				;
			if (k < r->nval) {
				if (!add_dup(r, r->val[k], c))
					return false;
				continue;
			}
			if (r->nval == DW_COLS_MAX)
				return false;
			r->val_slot[r->nval] = t->var.slot;
			r->val[r->nval++] = c;
			continue;
		}
		if (t->kind == DW_TERM_VAR)
			slot = t->var.slot;
		else if (dw_term_is_request(t))
			req = t->path.req;
		else if (t->kind != DW_TERM_ARRAY)
			return false;
		if (r->nkey == DW_COLS_MAX)
			return false;
		/* Two fields that must equal the same thing must equal each other. */
		for (k = 0; k < r->nkey; k++) {
			if ((slot != DW_NO_SLOT && r->key_slot[k] == slot) ||
			    (req != DW_NO_SLOT && r->key_req[k] == req))
				break;
		}
		if (k < r->nkey) {
			if (!add_dup(r, r->key[k], c))
				return false;
			continue;
		}
		r->key_slot[r->nkey] = slot;
		r->key_req[r->nkey] = req;
		r->key[r->nkey++] = c;
		use->key[use->nkey++] = t;
	}
	return true;
}

static void put_col(struct buf *b, const struct dw_col *c)
{
	for (uint32_t i = 0; i < c->npath; i++) {
		buf_put_str(b, c->path[i]);
		buf_put_byte(b, i + 1 < c->npath ? '.' : ';');
	}
}

/* The identity of a relation: everything that decides what it holds, nothing that only says who asks. */
static bool identify(struct pl *p, struct dw_rel *r)
{
	AUTO_BUF b = buf_with((size_t)1 << 22);

	buf_putf(&b, "%d%c%c%c", (int)r->kind, r->vals ? 'v' : '-', r->totals ? 't' : '-',
	    r->tp_slot != DW_NO_SLOT ? 'p' : '-');
	/* One that keeps only the newest few serves no one who wants all. */
	buf_put_byte(&b, r->cap != 0 ? 'c' : '-');
	if (r->totals)
		buf_putf(&b, "%lld", (long long)r->reach);
	buf_putf(&b, "s%d|", r->sum);
	buf_put_str(&b, r->ns);
	buf_put_str(&b, r->id);
	buf_put_str(&b, r->ekind);
	for (uint32_t i = 0; i < r->nlit; i++) {
		struct dw_col c = { r->lit[i].path, r->lit[i].npath };

		buf_put_byte(&b, '=');
		put_col(&b, &c);
		if (r->lit[i].term->kind == DW_TERM_WILD)
			buf_put_byte(&b, '*');
		else
			dw_val_key(&b, &r->lit[i].term->lit);
	}
	for (uint32_t i = 0; i < r->nkey; i++) {
		buf_put_byte(&b, 'k');
		put_col(&b, &r->key[i]);
	}
	for (uint32_t i = 0; i < r->nval; i++) {
		buf_put_byte(&b, 'v');
		put_col(&b, &r->val[i]);
	}
	for (uint32_t i = 0; i < r->ndup; i++) {
		buf_put_byte(&b, 'd');
		put_col(&b, &r->dup[i][0]);
		put_col(&b, &r->dup[i][1]);
	}
	/* Filters speak of slots and request terms: they mean the same only where these stand for the same columns. */
	for (uint32_t i = 0; i < r->nfilter; i++) {
		buf_put_byte(&b, 'f');
		dw_cond_key(&b, r->filter[i]);
	}
	for (uint32_t i = 0; r->nfilter != 0 && i < r->nkey; i++) {
		buf_putf(&b, "K%u", r->key_slot[i]);
		if (r->key_req[i] != DW_NO_SLOT)
			dw_term_key(&b, r->leaf->names.req[r->key_req[i]]);
	}
	for (uint32_t i = 0; r->nfilter != 0 && i < r->nval; i++)
		buf_putf(&b, "V%u", r->val_slot[i]);
	if (r->nfilter != 0)
		buf_putf(&b, "T%u", r->tp_slot);
	r->identity = arena_dup(p->a, buf_sv(&b));
	return (buf_ok(&b) && r->identity.p != NULL) || no_room(p);
}

static uint64_t hash_of(sv s)
{
	/* Identities come from the operator's policy; the table lives for one load. */
	static const struct sip_key k = { 0x6477, 0x706c };

	return sip_hash(k, s);
}

static struct dw_rel *dw_rels_find(const struct dw_rels *s, sv identity)
{
	if (s->nslots == 0)
		return NULL;
	for (size_t i = hash_of(identity) & (s->nslots - 1); s->slot[i] != 0;
	     i = (i + 1) & (s->nslots - 1)) {
		/* Numbers above n were given up; their slots stay, to keep the chains whole. */
		if (s->slot[i] <= s->n && sv_eq(s->v[s->slot[i] - 1]->identity, identity))
			return s->v[s->slot[i] - 1];
	}
	return NULL;
}

static bool dw_rels_index(struct arena *a, struct dw_rels *s, const struct dw_rel *r)
{
	size_t i;

	if ((s->used + 1) * 2 > s->nslots) {
		size_t n = s->nslots != 0 ? s->nslots * 2 : 64;
		uint32_t *v = ARENA_VEC(a, uint32_t, n);

		if (v == NULL)
			return false;
		s->slot = v;
		s->nslots = n;
		s->used = 0;
		for (uint32_t k = 0; k + 1 < s->n; k++) {
			for (i = hash_of(s->v[k]->identity) & (n - 1); v[i] != 0;
			     i = (i + 1) & (n - 1))
				;
			v[i] = k + 1;
			s->used++;
		}
	}
	for (i = hash_of(r->identity) & (s->nslots - 1); s->slot[i] != 0;
	     i = (i + 1) & (s->nslots - 1))
		;
	s->slot[i] = r->number + 1;
	s->used++;
	return true;
}

/* Enter a finished relation in the set's list and the leaf's; *at is its position in the latter. */
static bool enter(struct pl *p, struct dw_rel *r, uint32_t *at)
{
	struct dw_plan *o = p->out;
	struct dw_rel *same = NULL;

	if (!identify(p, r))
		return false;
	same = dw_rels_find(p->rels, r->identity);
	if (same == NULL) {
		if (p->rels->n == p->rels->cap) {
			uint32_t cap = p->rels->cap != 0 ? p->rels->cap * 2 : 16;
			struct dw_rel **v =
			    arena_grow(p->a, p->rels->v, p->rels->n, cap, sizeof(struct dw_rel *));

			if (v == NULL)
				return no_room(p);
			p->rels->v = v;
			p->rels->cap = cap;
		}
		r->number = p->rels->n;
		p->rels->v[p->rels->n++] = r;
		if (!dw_rels_index(p->a, p->rels, r))
			return no_room(p);
		same = r;
	} else {
		same->reach = same->reach > r->reach ? same->reach : r->reach;
		same->cap = same->cap == 0 || r->cap == 0 ? 0
		            : same->cap > r->cap          ? same->cap
		                                          : r->cap;
	}
	o->positional = o->positional || r->positional;
	for (uint32_t i = 0; i < o->nrel; i++) {
		if (o->rel[i] == same->number) {
			*at = i;
			return true;
		}
	}
	if (o->nrel == o->cap) {
		uint32_t cap = o->cap != 0 ? o->cap * 2 : 8;
		uint32_t *v = arena_grow(p->a, o->rel, o->nrel, cap, sizeof(*v));

		if (v == NULL)
			return no_room(p);
		o->rel = v;
		o->cap = cap;
	}
	*at = o->nrel;
	o->rel[o->nrel++] = same->number;
	return true;
}

/* ---- bodies ---- */

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
		no_room(p);
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
	/* Whatever was entered while the filters were planned, and what they share with earlier parts: all of it, inner first. */
	(void)from;
	r->ndep = p->out->nrel;
	r->dep = ARENA_VEC(p->a, uint32_t, r->ndep);
	if (r->dep == NULL)
		return no_room(p);
	for (uint32_t i = 0; i < r->ndep; i++)
		r->dep[i] = i;
	return true;
}

/* A body: one pattern and its side conditions, to a relation (not yet entered) and what a unit needs. plain: no rows are wanted (a negated pattern). */
static bool plan_body(struct pl *p, struct dw_cond *body, struct dw_rel *r, struct dw_unit *u)
{
	struct dw_cond *const *v = body->kind == DW_C_AND ? body->all.v : &body, *c;
	uint32_t n = body->kind == DW_C_AND ? body->all.n : 1, first = 0, before = p->out->nrel;
	bool *known_slot, *known_req, *bound, filters_ask = false;
	struct dw_cond *residual = NULL;
	struct pl in = *p;

	while (first < n && v[first]->kind != DW_C_PRED && timeless(v[first]) &&
	       vars_in(v[first], p->bound))
		first++;
	if (first == n || v[first]->kind != DW_C_PRED || !columns(p, &v[first]->pred, r, &u->main))
		return false;
	bound = copy_bools(p, p->bound, p->f->names.nslots);
	known_slot = copy_bools(p, NULL, p->f->names.nslots);
	known_req = copy_bools(p, NULL, p->f->names.nreq);
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
		return no_room(p);
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
		if (vars_in(c, known_slot) && reqs_in(p, c, known_req)) {
			/* Decidable when the pattern matches. */
			in.bound = known_slot;
			in.pinned = known_req;
			if (!timeless(c)) {
				if (!plan_cond(&in, c) || !all_units(c)) {
					clear_units(c);
					return false;
				}
				filters_ask = true;
			}
			r->filter[r->nfilter++] = c;
			continue;
		}
		if (!timeless(c))
			return false;
		residual = conjoin(p, residual, c);
		if (residual == NULL)
			return false;
		bind_vars(c, bound);
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
		no_room(p);
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
		no_room(p);
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
	if (!enter(p, r, &u->main.rel))
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
	if (!enter(p, r, &u->main.rel))
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

	if (timeless(c)) {
		u->fixed = conjoin(p, u->fixed, c);
		return u->fixed != NULL;
	}
	if (!positive && c->kind != DW_C_NOT)
		return false;
	r = new_rel(p);
	/* All variables of the left side are bound (safe range), so the pattern has no value columns. */
	if (r == NULL || !plan_body(p, body, r, &side) || r->nval != 0 || side.residual != NULL ||
	    side.tp_slot != DW_NO_SLOT)
		return false;
	r->kind = positive ? DW_REL_RUN : DW_REL_LATEST;
	r->positional = positive;
	r->reach = w;
	if (!enter(p, r, &side.main.rel))
		return false;
	v = arena_grow(p->a, *list, *n, (size_t)*n + 1, sizeof(*v));
	if (v == NULL)
		return no_room(p);
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
	if (!enter(p, r, &u->main.rel))
		return false;
	/* The left side is judged with the anchor's row; what its residual binds comes later and is not for it. */
	in.bound = copy_bools(p, p->bound, p->f->names.nslots);
	if (in.bound == NULL)
		return false;
	for (uint32_t i = 0; i < u->nval; i++)
		in.bound[u->val_slot[i]] = true;
	if (u->tp_slot != DW_NO_SLOT)
		in.bound[u->tp_slot] = true;
	if (u->residual != NULL)
		bind_vars(u->residual, in.bound);
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
		if (rows->tp_slot == DW_NO_SLOT || g->sum)
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
	if (!enter(p, r, &at))
		return false;
	*u = *rows;
	u->kind = DW_U_TOTAL;
	u->of_since = rows->kind == DW_U_SINCE;
	u->sum = g->sum;
	u->main.rel = at;
	/* The rows themselves are not asked for any more: the total takes their place in the list. */
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
	in.bound = copy_bools(p, p->bound, p->f->names.nslots);
	if (in.bound == NULL)
		return false;
	for (uint32_t i = 0; i < t->agg.nvars; i++)
		in.bound[t->agg.vars[i].slot] = false;
	if (!plan_cond(&in, t->agg.body))
		return false;
	return plan_total(&in, &t->agg, needed(other), from);
}

/* Plan the nodes of c, which is judged at the newest timepoint. false only without room: a node that is not recognised keeps no unit. */
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
		in.bound = copy_bools(p, p->bound, p->f->names.nslots);
		if (in.bound == NULL)
			return false;
		for (uint32_t i = 0; i < c->all.n; i++) {
			if (!plan_cond(&in, c->all.v[i]))
				return false;
			if (c->all.v[i]->kind != DW_C_NOT)
				bind_vars(c->all.v[i], in.bound);
		}
		return true;
	case DW_C_NOT:
		return plan_cond(p, c->neg);
	case DW_C_EXISTS:
		in.bound = copy_bools(p, p->bound, p->f->names.nslots);
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
		clear_units(c);
		/* Relations of the attempt go too: their filters speak of positions that are given up here. */
		o->nrel = nrel;
		p->rels->n = all;
		o->positional = positional;
	} else {
		o->units++;
	}
	return true;
}

/* ---- what is left for the general evaluator ---- */

bool dw_sees_all(const struct dw_cond *c, bool past)
{
	bool guarded = false;

	switch (c->kind) {
	case DW_C_PRED:
		return false;
	case DW_C_TP:
		return past;
	case DW_C_CMP:
		return past ||
		       (c->cmp.l->kind == DW_TERM_AGG && dw_sees_all(c->cmp.l->agg.body, past)) ||
		       (c->cmp.r->kind == DW_TERM_AGG && dw_sees_all(c->cmp.r->agg.body, past));
	case DW_C_AND:
		/* With a pattern among them, the others matter only where it matches. */
		for (uint32_t i = 0; i < c->all.n; i++)
			guarded = guarded || c->all.v[i]->kind == DW_C_PRED;
		for (uint32_t i = 0; i < c->all.n; i++) {
			if (dw_sees_all(c->all.v[i], past && !guarded))
				return true;
		}
		return false;
	case DW_C_NOT:
		return past || dw_sees_all(c->neg, past);
	case DW_C_FORMERLY:
		/* Judged at a past point that nothing guards, its window begins at that point's own time. */
		return past || dw_sees_all(c->once.body, true);
	case DW_C_PREVIOUS:
		return true;
	case DW_C_SINCE:
		if (past || dw_sees_all(c->since.right, true))
			return true;
		/* `!P since …`: events that P does not match change nothing. */
		return !(c->since.left->kind == DW_C_NOT && c->since.left->neg->kind == DW_C_PRED);
	case DW_C_EXISTS:
		return dw_sees_all(c->exists.body, past);
	case DW_C_CALL:
	case DW_C_PARAM:
		break;
	}
	return true;
}

static int64_t plus(int64_t a, int64_t b)
{
	int64_t r;

	return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t reach_of(const struct dw_cond *c)
{
	int64_t r = 0, x, y;

	switch (c->kind) {
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++) {
			x = reach_of(c->all.v[i]);
			r = x > r ? x : r;
		}
		return r;
	case DW_C_NOT:
		return reach_of(c->neg);
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		return plus(c->once.w->ticks, reach_of(c->once.body));
	case DW_C_SINCE:
		x = reach_of(c->since.left);
		y = reach_of(c->since.right);
		return plus(c->since.w->ticks, x > y ? x : y);
	case DW_C_EXISTS:
		return reach_of(c->exists.body);
	case DW_C_CMP:
		x = c->cmp.l->kind == DW_TERM_AGG ? reach_of(c->cmp.l->agg.body) : 0;
		y = c->cmp.r->kind == DW_TERM_AGG ? reach_of(c->cmp.r->agg.body) : 0;
		return x > y ? x : y;
	case DW_C_PRED:
	case DW_C_TP:
	case DW_C_CALL:
	case DW_C_PARAM:
		return 0;
	}
	return 0;
}

static void leftovers(struct dw_plan *o, const struct dw_cond *c)
{
	int64_t r;

	switch (c->kind) {
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++)
			leftovers(o, c->all.v[i]);
		return;
	case DW_C_NOT:
		leftovers(o, c->neg);
		return;
	case DW_C_EXISTS:
		leftovers(o, c->exists.body);
		return;
	case DW_C_CMP:
		if (c->cmp.l->kind == DW_TERM_AGG && c->cmp.l->agg.unit == NULL)
			leftovers(o, c->cmp.l->agg.body);
		if (c->cmp.r->kind == DW_TERM_AGG && c->cmp.r->agg.unit == NULL)
			leftovers(o, c->cmp.r->agg.body);
		return;
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
	case DW_C_SINCE:
		if (c->unit != NULL)
			return;
		o->general = true;
		o->sees_all = o->sees_all || dw_sees_all(c, false);
		r = reach_of(c);
		o->reach = r > o->reach ? r : o->reach;
		return;
	case DW_C_PRED:
	case DW_C_TP:
	case DW_C_CALL:
	case DW_C_PARAM:
		return;
	}
}

/* ---- what a leaf waits for ---- */

static bool by_request(const struct dw_use *u)
{
	for (uint32_t i = 0; i < u->nkey; i++) {
		if (!dw_term_is_request(u->key[i]))
			return false;
	}
	return true;
}

static bool int_lit(const struct dw_term *t, int64_t *v)
{
	if (t->kind != DW_TERM_LIT || t->lit.tag != DW_INT)
		return false;
	*v = t->lit.u.i;
	return true;
}

/* Is `x op v` false for x = 0? */
static bool false_at_zero(enum dw_cmp op, int64_t v)
{
	struct dw_val zero = dw_int(0), other = dw_int(v);

	return !dw_compare(op, &zero, &other);
}

static enum dw_cmp mirrored(enum dw_cmp op)
{
	static const enum dw_cmp m[] = { DW_GT, DW_GE, DW_EQ, DW_NE, DW_LE, DW_LT };

	return m[op];
}

/* A comparison of a term that is 0 while u holds nothing. */
static const struct dw_use *total_of(const struct dw_term *t)
{
	if (t->kind != DW_TERM_AGG || t->agg.unit == NULL || !by_request(&t->agg.unit->main))
		return NULL;
	return &t->agg.unit->main;
}

static const struct dw_use *cmp_trigger(const struct dw_cond *c)
{
	const struct dw_use *u = total_of(c->cmp.l);
	int64_t v;

	if (u != NULL && int_lit(c->cmp.r, &v) && false_at_zero(c->cmp.op, v))
		return u;
	u = total_of(c->cmp.r);
	if (u != NULL && int_lit(c->cmp.l, &v) && false_at_zero(mirrored(c->cmp.op), v))
		return u;
	return NULL;
}

/* `total == n` among the members, and a member that n = 0 fails. */
static const struct dw_use *bound_trigger(const struct dw_cond *and)
{
	for (uint32_t i = 0; i < and->all.n; i++) {
		const struct dw_cond *c = and->all.v[i];
		const struct dw_use *u;
		const struct dw_term *n;
		int64_t v;

		if (c->kind != DW_C_CMP || c->cmp.op != DW_EQ)
			continue;
		u = total_of(c->cmp.l);
		n = c->cmp.r;
		if (u == NULL) {
			u = total_of(c->cmp.r);
			n = c->cmp.l;
		}
		if (u == NULL || n->kind != DW_TERM_VAR)
			continue;
		for (uint32_t k = i + 1; k < and->all.n; k++) {
			const struct dw_cond *f = and->all.v[k];

			if (f->kind != DW_C_CMP)
				continue;
			if (dw_term_same(f->cmp.l, n) && int_lit(f->cmp.r, &v) &&
			    false_at_zero(f->cmp.op, v))
				return u;
			if (dw_term_same(f->cmp.r, n) && int_lit(f->cmp.l, &v) &&
			    false_at_zero(mirrored(f->cmp.op), v))
				return u;
		}
	}
	return NULL;
}

static const struct dw_use *trigger(const struct dw_cond *c)
{
	const struct dw_use *u = NULL;

	switch (c->kind) {
	case DW_C_FORMERLY:
	case DW_C_SINCE:
		return c->unit != NULL && by_request(&c->unit->main) ? &c->unit->main : NULL;
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n && u == NULL; i++)
			u = trigger(c->all.v[i]);
		return u != NULL ? u : bound_trigger(c);
	case DW_C_EXISTS:
		return trigger(c->exists.body);
	case DW_C_CMP:
		return cmp_trigger(c);
	case DW_C_PRED:
	case DW_C_TP:
	case DW_C_NOT:
	case DW_C_PREVIOUS:
	case DW_C_CALL:
	case DW_C_PARAM:
		return NULL;
	}
	return NULL;
}

/* total op literal, either way round. */
static bool quick_cmp(
    const struct dw_term *l, enum dw_cmp op, const struct dw_term *r, struct dw_quick *q)
{
	if (l->kind != DW_TERM_AGG || l->agg.unit == NULL || l->agg.unit->of_since ||
	    !int_lit(r, &q->than))
		return false;
	q->op = op;
	return true;
}

/* n is the total; `n op literal`, either way round. */
static bool quick_var(const struct dw_cond *c, const struct dw_term *n, struct dw_quick *q)
{
	if (c->kind != DW_C_CMP)
		return false;
	q->op = dw_term_same(c->cmp.l, n) ? c->cmp.op : mirrored(c->cmp.op);
	return (dw_term_same(c->cmp.l, n) && int_lit(c->cmp.r, &q->than)) ||
	       (dw_term_same(c->cmp.r, n) && int_lit(c->cmp.l, &q->than));
}

static struct dw_quick quick(const struct dw_cond *c, const struct dw_rel *r)
{
	struct dw_quick q = { .is = DW_Q_NO };
	const struct dw_unit *u = NULL;
	const struct dw_cond *b;

	if (c->kind == DW_C_FORMERLY && c->unit != NULL && c->unit->residual == NULL &&
	    r->kind == DW_REL_LATEST) {
		q.is = DW_Q_ONCE;
		q.w = c->unit->w;
		return q;
	}
	if (c->kind == DW_C_CMP && quick_cmp(c->cmp.l, c->cmp.op, c->cmp.r, &q))
		u = c->cmp.l->agg.unit;
	else if (c->kind == DW_C_CMP && quick_cmp(c->cmp.r, mirrored(c->cmp.op), c->cmp.l, &q))
		u = c->cmp.r->agg.unit;
	b = c->kind == DW_C_EXISTS ? c->exists.body : NULL;
	if (b != NULL && b->kind == DW_C_AND && b->all.n == 2 && b->all.v[0]->kind == DW_C_CMP &&
	    b->all.v[0]->cmp.op == DW_EQ && b->all.v[0]->cmp.r->kind == DW_TERM_VAR &&
	    b->all.v[0]->cmp.l->kind == DW_TERM_AGG && b->all.v[0]->cmp.l->agg.unit != NULL &&
	    !b->all.v[0]->cmp.l->agg.unit->of_since &&
	    quick_var(b->all.v[1], b->all.v[0]->cmp.r, &q))
		u = b->all.v[0]->cmp.l->agg.unit;
	if (u != NULL && r->kind == DW_REL_QUEUE) {
		q.is = DW_Q_TOTAL;
		q.w = u->w;
		q.sum = u->sum;
	}
	return q;
}

bool dw_plan_leaf(struct arena *a, struct dw_rels *rels, struct dw_leaf_impl *f)
{
	struct pl p = { .a = a, .rels = rels, .f = f, .out = &f->plan };

	f->plan = (struct dw_plan){ 0 };
	p.bound = copy_bools(&p, NULL, f->names.nslots);
	if (p.bound == NULL || !plan_cond(&p, f->cond))
		return false;
	leftovers(&f->plan, f->cond);
	f->plan.trigger = trigger(f->cond);
	if (f->plan.trigger != NULL)
		f->plan.quick = quick(f->cond, rels->v[f->plan.rel[f->plan.trigger->rel]]);
	return true;
}
