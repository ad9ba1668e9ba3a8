/* Condition trees: what stands below a node, numbering, what is left to expand. Their text is in
 * cond_text.c. See cond.h. */
#include "dogwood/cond.h"

#include "base/ban.h"

const char *dw_cmp_text(enum dw_cmp op)
{
	static const char *const names[] = { "<", "<=", "==", "!=", ">=", ">" };

	return names[op];
}

int64_t dw_window_seconds(const struct dw_window *w)
{
	uint64_t unit = w->unit == 's' ? 1 : w->unit == 'm' ? 60 : w->unit == 'h' ? 3600 : 86400, s;

	if (w->too_large || __builtin_mul_overflow(w->amount, unit, &s) || s > (uint64_t)INT64_MAX)
		return INT64_MAX;
	return (int64_t)s;
}

bool dw_term_same(const struct dw_term *a, const struct dw_term *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case DW_TERM_LIT:
		return dw_val_eq(&a->lit, &b->lit);
	case DW_TERM_CONTEXT:
	case DW_TERM_PRINCIPAL:
	case DW_TERM_RESOURCE:
		if (a->path.n != b->path.n)
			return false;
		for (uint32_t i = 0; i < a->path.n; i++) {
			if (!sv_eq(a->path.v[i], b->path.v[i]))
				return false;
		}
		return true;
	case DW_TERM_VAR:
		return a->var.slot != DW_NO_SLOT && a->var.slot == b->var.slot;
	case DW_TERM_ARRAY:
	case DW_TERM_WILD:
	case DW_TERM_PARAM:
	case DW_TERM_AGG:
	case DW_TERM_CALL:
		return false;
	}
	return false;
}

struct dw_cond *dw_cond_below(const struct dw_cond *c, uint32_t i)
{
	switch (c->kind) {
	case DW_C_AND:
		return i < c->all.n ? c->all.v[i] : NULL;
	case DW_C_NOT:
		return i == 0 ? c->neg : NULL;
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		return i == 0 ? c->once.body : NULL;
	case DW_C_SINCE:
		return i == 0 ? c->since.left : i == 1 ? c->since.right : NULL;
	case DW_C_EXISTS:
		return i == 0 ? c->exists.body : NULL;
	case DW_C_PRED:
	case DW_C_TP:
	case DW_C_CMP:
	case DW_C_CALL:
	case DW_C_PARAM:
		return NULL;
	}
	return NULL;
}

struct dw_term *dw_cond_term(const struct dw_cond *c, uint32_t i)
{
	if (c->kind == DW_C_PRED)
		return i < c->pred.nargs ? c->pred.args[i].term : NULL;
	if (c->kind == DW_C_CMP)
		return i == 0 ? c->cmp.l : i == 1 ? c->cmp.r : NULL;
	return NULL;
}

/* ---- numbering ---- */

struct scope {
	const struct scope *up;
	const struct dw_binder *b;
	uint32_t n;
};

struct numbering {
	struct arena *a;
	struct dw_names *out;
	uint32_t cap_slot, cap_req, cap_pred;
	bool bad;
};

static void *append(struct numbering *x, void *v, uint32_t n, uint32_t *cap, size_t size)
{
	if (n == *cap) {
		uint32_t c = *cap != 0 ? *cap * 2 : 8;

		v = arena_grow(x->a, v, n, c, size);
		if (v == NULL)
			x->bad = true;
		*cap = c;
	}
	return v;
}

static uint32_t find_slot(const struct scope *s, sv name)
{
	for (; s != NULL; s = s->up) {
		/* The last of equal names hides the others. */
		for (uint32_t i = s->n; i-- != 0;) {
			if (sv_eq(s->b[i].name, name))
				return s->b[i].slot;
		}
	}
	return DW_NO_SLOT;
}

static void new_slot(struct numbering *x, struct dw_binder *b)
{
	const struct dw_binder **v =
	    append(x, x->out->slot, x->out->nslots, &x->cap_slot, sizeof(struct dw_binder *));

	if (x->bad)
		return;
	b->slot = x->out->nslots;
	v[x->out->nslots++] = b;
	x->out->slot = v;
}

static void number_cond(struct numbering *x, const struct scope *s, struct dw_cond *c);

static void number_term(struct numbering *x, const struct scope *s, struct dw_term *t)
{
	struct scope in = { s, NULL, 0 };
	struct dw_term **v;

	if (x->bad)
		return;
	switch (t->kind) {
	case DW_TERM_LIT:
	case DW_TERM_WILD:
	case DW_TERM_PARAM:
	case DW_TERM_CALL:
		return;
	case DW_TERM_ARRAY:
		for (uint32_t i = 0; i < t->items.n; i++)
			number_term(x, s, t->items.v[i]);
		return;
	case DW_TERM_VAR:
		t->var.slot = find_slot(s, t->var.name);
		return;
	case DW_TERM_CONTEXT:
	case DW_TERM_PRINCIPAL:
	case DW_TERM_RESOURCE:
		for (uint32_t i = 0; i < x->out->nreq; i++) {
			if (dw_term_same(x->out->req[i], t)) {
				t->path.req = i;
				return;
			}
		}
		v = append(x, x->out->req, x->out->nreq, &x->cap_req, sizeof(struct dw_term *));
		if (x->bad)
			return;
		t->path.req = x->out->nreq;
		v[x->out->nreq++] = t;
		x->out->req = v;
		return;
	case DW_TERM_AGG:
		for (uint32_t i = 0; i < t->agg.nvars; i++)
			new_slot(x, &t->agg.vars[i]);
		in.b = t->agg.vars;
		in.n = t->agg.nvars;
		if (t->agg.sum) {
			struct scope own = { NULL, in.b, in.n };

			t->agg.summed_slot = find_slot(&own, t->agg.summed);
		}
		number_cond(x, &in, t->agg.body);
		return;
	}
}

static void number_pred(struct numbering *x, const struct scope *s, struct dw_pred *p)
{
	struct dw_pred **v =
	    append(x, x->out->pred, x->out->npred, &x->cap_pred, sizeof(struct dw_pred *));

	if (x->bad)
		return;
	p->number = x->out->npred;
	v[x->out->npred++] = p;
	x->out->pred = v;
	for (uint32_t i = 0; i < p->nargs; i++)
		number_term(x, s, p->args[i].term);
}

static void number_cond(struct numbering *x, const struct scope *s, struct dw_cond *c)
{
	struct scope in = { s, NULL, 0 };

	if (x->bad)
		return;
	switch (c->kind) {
	case DW_C_PRED:
		number_pred(x, s, &c->pred);
		return;
	case DW_C_TP:
		c->tp.slot = find_slot(s, c->tp.name);
		return;
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++)
			number_cond(x, s, c->all.v[i]);
		return;
	case DW_C_NOT:
		number_cond(x, s, c->neg);
		return;
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		number_cond(x, s, c->once.body);
		return;
	case DW_C_SINCE:
		number_cond(x, s, c->since.left);
		number_cond(x, s, c->since.right);
		return;
	case DW_C_EXISTS:
		new_slot(x, &c->exists.var);
		in.b = &c->exists.var;
		in.n = 1;
		number_cond(x, &in, c->exists.body);
		return;
	case DW_C_CMP:
		number_term(x, s, c->cmp.l);
		number_term(x, s, c->cmp.r);
		return;
	case DW_C_CALL:
	case DW_C_PARAM:
		return;
	}
}

/* ---- the free slots of each node ---- */

struct slots {
	uint32_t *v;
	uint32_t n, cap;
};

static void slot_add(struct numbering *x, struct slots *s, uint32_t slot)
{
	if (slot == DW_NO_SLOT || x->bad)
		return;
	for (uint32_t i = 0; i < s->n; i++) {
		if (s->v[i] == slot)
			return;
	}
	s->v = append(x, s->v, s->n, &s->cap, sizeof(*s->v));
	if (!x->bad)
		s->v[s->n++] = slot;
}

static void slots_of(struct numbering *x, struct dw_cond *c, struct slots *out);

static void slots_of_term(struct numbering *x, struct dw_term *t, struct slots *out)
{
	struct slots in = { 0 };

	if (t->kind == DW_TERM_VAR)
		slot_add(x, out, t->var.slot);
	if (t->kind == DW_TERM_ARRAY) {
		for (uint32_t i = 0; i < t->items.n; i++)
			slots_of_term(x, t->items.v[i], out);
	}
	if (t->kind != DW_TERM_AGG)
		return;
	slots_of(x, t->agg.body, &in);
	for (uint32_t i = 0; i < in.n; i++) {
		bool own = false;

		for (uint32_t k = 0; k < t->agg.nvars; k++)
			own = own || t->agg.vars[k].slot == in.v[i];
		if (!own)
			slot_add(x, out, in.v[i]);
	}
}

static void slots_of(struct numbering *x, struct dw_cond *c, struct slots *out)
{
	struct slots s = { 0 };

	if (x->bad)
		return;
	c->node = x->out->nnodes++;
	switch (c->kind) {
	case DW_C_PRED:
		for (uint32_t i = 0; i < c->pred.nargs; i++)
			slots_of_term(x, c->pred.args[i].term, &s);
		break;
	case DW_C_TP:
		slot_add(x, &s, c->tp.slot);
		break;
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++)
			slots_of(x, c->all.v[i], &s);
		break;
	case DW_C_NOT:
		slots_of(x, c->neg, &s);
		break;
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		slots_of(x, c->once.body, &s);
		break;
	case DW_C_SINCE:
		slots_of(x, c->since.left, &s);
		slots_of(x, c->since.right, &s);
		break;
	case DW_C_EXISTS:
		slots_of(x, c->exists.body, &s);
		for (uint32_t i = 0; i < s.n; i++) {
			if (s.v[i] == c->exists.var.slot)
				s.v[i] = s.v[--s.n];
		}
		break;
	case DW_C_CMP:
		slots_of_term(x, c->cmp.l, &s);
		slots_of_term(x, c->cmp.r, &s);
		break;
	case DW_C_CALL:
	case DW_C_PARAM:
		break;
	}
	c->vars = s.v;
	c->nvars = s.n;
	for (uint32_t i = 0; i < s.n; i++)
		slot_add(x, out, s.v[i]);
}

bool dw_cond_resolve(struct arena *a, struct dw_cond *c, struct dw_names *out)
{
	struct numbering x = { .a = a, .out = out };
	struct slots all = { 0 };

	*out = (struct dw_names){ 0 };
	number_cond(&x, NULL, c);
	slots_of(&x, c, &all);
	return !x.bad;
}

/* ---- closed? ---- */

static bool term_closed(const struct dw_term *t)
{
	switch (t->kind) {
	case DW_TERM_PARAM:
	case DW_TERM_CALL:
		return false;
	case DW_TERM_VAR:
		return t->var.name.p[0] != '$';
	case DW_TERM_ARRAY:
		for (uint32_t i = 0; i < t->items.n; i++) {
			if (!term_closed(t->items.v[i]))
				return false;
		}
		return true;
	case DW_TERM_AGG:
		return dw_cond_closed(t->agg.body);
	case DW_TERM_LIT:
	case DW_TERM_CONTEXT:
	case DW_TERM_PRINCIPAL:
	case DW_TERM_RESOURCE:
	case DW_TERM_WILD:
		return true;
	}
	return false;
}

bool dw_cond_closed(const struct dw_cond *c)
{
	const struct dw_cond *below;
	const struct dw_term *t;
	bool ok = c->kind != DW_C_CALL && c->kind != DW_C_PARAM;

	if (c->kind == DW_C_TP)
		ok = c->tp.name.p[0] != '$' && c->tp.name.p[0] != '?';
	else if (c->kind == DW_C_FORMERLY || c->kind == DW_C_PREVIOUS)
		ok = c->once.w->unit != 0;
	else if (c->kind == DW_C_SINCE)
		ok = c->since.w->unit != 0;
	for (uint32_t i = 0; ok && (t = dw_cond_term(c, i)) != NULL; i++)
		ok = term_closed(t);
	for (uint32_t i = 0; ok && (below = dw_cond_below(c, i)) != NULL; i++)
		ok = dw_cond_closed(below);
	return ok;
}
