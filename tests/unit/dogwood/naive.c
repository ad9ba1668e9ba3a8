/* See naive.h. */
#include "naive.h"

#include "base/ban.h"

/* A valuation: a list of name = value, the newest first. */
struct env {
	const struct env *up;
	sv name;
	struct dw_val v;
	bool hidden; /* the name has no value here, whatever stands outside */
};

/* A row: what a condition binds. */
struct row {
	struct row *next;
	const struct env *b; /* bindings of this row only, ending in NULL */
};

struct world {
	const struct dw_event *const *e; /* the slice */
	size_t n;                        /* the decision is on e[n - 1] */
	const struct dw_event *req;
	int64_t tick;
	struct arena *a;
	bool bad;
};

static struct row *rows(struct world *w, const struct dw_cond *c, size_t i, const struct env *v);
static bool truth(struct world *w, const struct dw_cond *c, size_t i, const struct env *v);

static const struct dw_val *lookup(const struct env *v, sv name)
{
	for (; v != NULL; v = v->up) {
		if (sv_eq(v->name, name))
			return v->hidden ? NULL : &v->v;
	}
	return NULL;
}

static const struct env *with(
    struct world *w, const struct env *up, sv name, struct dw_val val, bool hidden)
{
	struct env *n = ARENA_NEW(w->a, struct env);

	if (n == NULL) {
		w->bad = true;
		return up;
	}
	*n = (struct env){ up, name, val, hidden };
	return n;
}

/* v with the bindings of a row on top. */
static const struct env *join(struct world *w, const struct env *v, const struct env *b)
{
	if (b == NULL)
		return v;
	return with(w, join(w, v, b->up), b->name, b->v, false);
}

static struct row *cons(struct world *w, struct row *next, const struct env *b)
{
	struct row *r = ARENA_NEW(w->a, struct row);

	if (r == NULL) {
		w->bad = true;
		return next;
	}
	*r = (struct row){ next, b };
	return r;
}

static bool request_term(struct world *w, const struct dw_term *t, struct dw_val *out)
{
	const struct dw_event *e = w->req;
	const struct dw_uid *u = t->kind == DW_TERM_PRINCIPAL ? &e->principal : &e->resource;
	const struct dw_val *x = NULL;

	if (t->kind == DW_TERM_CONTEXT) {
		x = dw_walk(&e->context, t->path.v, t->path.n);
	} else {
		if (u->type.p == NULL)
			return false;
		if (t->path.n == 0) {
			*out = dw_ent(u->type, u->id);
			return true;
		}
		for (size_t i = 0; i < e->nents; i++) {
			if (sv_eq(e->ents[i].uid.type, u->type) && sv_eq(e->ents[i].uid.id, u->id))
				x = dw_walk(&e->ents[i].attrs, t->path.v, t->path.n);
		}
		if (x == NULL && t->path.n == 1 && sv_eq(t->path.v[0], SV("id"))) {
			*out = dw_str(u->id);
			return true;
		}
		if (x == NULL && t->path.n == 1 && sv_eq(t->path.v[0], SV("type"))) {
			*out = dw_str(u->type);
			return true;
		}
	}
	if (x != NULL)
		*out = *x;
	return x != NULL;
}

/* Are two rows equal on these columns (absent equals absent)? */
static bool same(const struct row *a, const struct row *b, const struct dw_binder *cols, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct dw_val *x = lookup(a->b, cols[i].name),
		                    *y = lookup(b->b, cols[i].name);

		if ((x == NULL) != (y == NULL) || (x != NULL && !dw_val_eq(x, y)))
			return false;
	}
	return true;
}

static void aggregate(
    struct world *w, const struct dw_agg *g, size_t i, const struct env *v, struct dw_val *out)
{
	struct row *all, *r, *q;
	int64_t count = 0;
	__int128 sum = 0;

	for (uint32_t k = 0; k < g->nvars; k++)
		v = with(w, v, g->vars[k].name, dw_null(), true);
	all = rows(w, g->body, i, v);
	for (r = all; r != NULL; r = r->next) {
		for (q = all; q != r && !same(q, r, g->vars, g->nvars); q = q->next)
			;
		if (q != r)
			continue;
		count++;
		if (g->sum) {
			const struct dw_val *x = lookup(r->b, g->summed);

			if (x != NULL && x->tag == DW_INT)
				sum += x->u.i;
		}
	}
	if (g->sum)
		count = sum > INT64_MAX ? INT64_MAX : sum < INT64_MIN ? INT64_MIN : (int64_t)sum;
	*out = dw_int(count);
}

static bool value(
    struct world *w, const struct dw_term *t, size_t i, const struct env *v, struct dw_val *out)
{
	const struct dw_val *x;
	struct dw_val *items;

	switch (t->kind) {
	case DW_TERM_LIT:
		*out = t->lit;
		return true;
	case DW_TERM_VAR:
		x = lookup(v, t->var.name);
		if (x != NULL)
			*out = *x;
		return x != NULL;
	case DW_TERM_CONTEXT:
	case DW_TERM_PRINCIPAL:
	case DW_TERM_RESOURCE:
		return request_term(w, t, out);
	case DW_TERM_AGG:
		aggregate(w, &t->agg, i, v, out);
		return true;
	case DW_TERM_ARRAY:
		items = ARENA_VEC(w->a, struct dw_val, t->items.n);
		if (items == NULL) {
			w->bad = true;
			return false;
		}
		for (uint32_t k = 0; k < t->items.n; k++) {
			if (!value(w, t->items.v[k], i, v, &items[k]))
				return false;
		}
		out->tag = DW_ARRAY;
		out->u.arr.v = items;
		out->u.arr.n = t->items.n;
		return true;
	case DW_TERM_WILD:
	case DW_TERM_PARAM:
	case DW_TERM_CALL:
		break;
	}
	return false;
}

static bool holds(enum dw_cmp op, const struct dw_val *a, const struct dw_val *b)
{
	if (op == DW_EQ)
		return dw_val_eq(a, b);
	if (op == DW_NE)
		return !dw_val_eq(a, b);
	if (a->tag != DW_INT || b->tag != DW_INT)
		return false;
	return op == DW_LT   ? a->u.i < b->u.i
	       : op == DW_LE ? a->u.i <= b->u.i
	       : op == DW_GE ? a->u.i >= b->u.i
	                     : a->u.i > b->u.i;
}

/* 0 <= ts(i) - ts(j) <= W */
static bool within(const struct world *w, const struct dw_window *win, size_t j, size_t i)
{
	__int128 d = (__int128)w->e[i]->ts - w->e[j]->ts,
	         width = (__int128)dw_window_seconds(win) * w->tick;

	return d >= 0 && d <= width;
}

static struct row *rows_pred(
    struct world *w, const struct dw_pred *p, size_t i, const struct env *v)
{
	const struct dw_event *e = w->e[i];
	const struct env *b = NULL;

	if (!sv_eq(e->ns, p->ns) || !sv_eq(e->id, p->id) || !sv_eq(e->kind, p->kind))
		return NULL;
	for (uint32_t k = 0; k < p->nargs; k++) {
		const struct dw_arg *g = &p->args[k];
		const struct dw_val *have = dw_walk(&e->logged, g->path, g->npath), *bound = NULL;
		struct dw_val want;

		if (have == NULL)
			return NULL;
		if (g->term->kind == DW_TERM_WILD)
			continue;
		if (g->term->kind == DW_TERM_VAR) {
			bound = lookup(b, g->term->var.name);
			if (bound == NULL)
				bound = lookup(v, g->term->var.name);
			if (bound == NULL)
				b = with(w, b, g->term->var.name, *have, false);
			else if (!dw_val_eq(have, bound))
				return NULL;
			continue;
		}
		if (!value(w, g->term, i, join(w, v, b), &want) || !dw_val_eq(have, &want))
			return NULL;
	}
	return cons(w, NULL, b);
}

static struct row *append(struct row *a, struct row *b)
{
	struct row *r = a;

	if (a == NULL)
		return b;
	while (r->next != NULL)
		r = r->next;
	r->next = b;
	return a;
}

static struct row *rows_and(struct world *w, const struct dw_cond *c, uint32_t k, size_t i,
    const struct env *v, const struct env *b)
{
	struct row *out = NULL;

	if (k == c->all.n)
		return cons(w, NULL, b);
	for (struct row *r = rows(w, c->all.v[k], i, join(w, v, b)); r != NULL; r = r->next)
		out = append(out, rows_and(w, c, k + 1, i, v, join(w, b, r->b)));
	return out;
}

static struct row *rows_since(
    struct world *w, const struct dw_cond *c, size_t i, const struct env *v)
{
	struct row *out = NULL;

	for (size_t j = 0; j <= i; j++) {
		if (!within(w, c->since.w, j, i))
			continue;
		for (struct row *r = rows(w, c->since.right, j, v); r != NULL; r = r->next) {
			bool all = true;

			for (size_t k = j + 1; k <= i && all; k++)
				all = truth(w, c->since.left, k, join(w, v, r->b));
			if (all)
				out = cons(w, out, r->b);
		}
	}
	return out;
}

/* The bindings without one name. */
static const struct env *without(struct world *w, const struct env *b, sv name)
{
	if (b == NULL)
		return NULL;
	if (sv_eq(b->name, name))
		return without(w, b->up, name);
	return with(w, without(w, b->up, name), b->name, b->v, false);
}

static struct row *rows_cmp(struct world *w, const struct dw_cond *c, size_t i, const struct env *v)
{
	const struct dw_term *l = c->cmp.l, *r = c->cmp.r;
	bool ul = l->kind == DW_TERM_VAR && lookup(v, l->var.name) == NULL;
	bool ur = r->kind == DW_TERM_VAR && lookup(v, r->var.name) == NULL;
	struct dw_val a, b;

	if (c->cmp.op == DW_EQ && ul != ur) {
		if (!value(w, ul ? r : l, i, v, &a))
			return NULL;
		return cons(w, NULL, with(w, NULL, ul ? l->var.name : r->var.name, a, false));
	}
	if (!value(w, l, i, v, &a) || !value(w, r, i, v, &b) || !holds(c->cmp.op, &a, &b))
		return NULL;
	return cons(w, NULL, NULL);
}

static struct row *rows(struct world *w, const struct dw_cond *c, size_t i, const struct env *v)
{
	struct row *out = NULL;
	const struct dw_val *t;
	struct dw_val at;

	if (w->bad)
		return NULL;
	switch (c->kind) {
	case DW_C_PRED:
		return rows_pred(w, &c->pred, i, v);
	case DW_C_TP:
		t = lookup(v, c->tp.name);
		at = dw_int((int64_t)i);
		if (t == NULL)
			return cons(w, NULL, with(w, NULL, c->tp.name, at, false));
		return dw_val_eq(t, &at) ? cons(w, NULL, NULL) : NULL;
	case DW_C_AND:
		return rows_and(w, c, 0, i, v, NULL);
	case DW_C_NOT:
		return rows(w, c->neg, i, v) == NULL ? cons(w, NULL, NULL) : NULL;
	case DW_C_FORMERLY:
		for (size_t j = 0; j <= i; j++) {
			if (within(w, c->once.w, j, i))
				out = append(out, rows(w, c->once.body, j, v));
		}
		return out;
	case DW_C_PREVIOUS:
		return i >= 1 && within(w, c->once.w, i - 1, i) ? rows(w, c->once.body, i - 1, v)
		                                                : NULL;
	case DW_C_SINCE:
		return rows_since(w, c, i, v);
	case DW_C_EXISTS:
		v = with(w, v, c->exists.var.name, dw_null(), true);
		for (struct row *r = rows(w, c->exists.body, i, v); r != NULL; r = r->next)
			out = cons(w, out, without(w, r->b, c->exists.var.name));
		return out;
	case DW_C_CMP:
		return rows_cmp(w, c, i, v);
	case DW_C_CALL:
	case DW_C_PARAM:
		break;
	}
	return NULL;
}

static bool truth(struct world *w, const struct dw_cond *c, size_t i, const struct env *v)
{
	return rows(w, c, i, v) != NULL;
}

/* Does an event agree with the request on the universal pins? */
static bool in_slice(const struct dw_set *set, const struct dw_event *e, struct world *w)
{
	for (uint32_t i = 0; i < set->events->nuniversal; i++) {
		const struct dw_pin *p = &set->events->universal[i];
		const struct dw_val *have = dw_get(&e->logged, p->field);
		struct dw_val want;

		if (have == NULL || !request_term(w, p->term, &want) || !dw_val_eq(have, &want))
			return false;
	}
	return true;
}

int naive_leaf(const struct dw_set *set, const struct dw_cond *c, const struct dw_event *ev,
    size_t i, size_t born, struct arena *a)
{
	struct world w = { .req = &ev[i], .tick = set->tick, .a = a };
	const struct dw_event **e = ARENA_VEC(a, const struct dw_event *, i + 1);
	bool r;

	if (e == NULL)
		return -1;
	for (size_t k = born; k <= i; k++) {
		if (in_slice(set, &ev[k], &w))
			e[w.n++] = &ev[k];
	}
	w.e = e;
	if (w.n == 0)
		return -1;
	r = truth(&w, c, w.n - 1, NULL);
	return w.bad ? -1 : r;
}
