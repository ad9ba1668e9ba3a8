/* What a leaf waits for: a relation that, holding nothing, makes it false. See plan_impl.h. */
#include "dogwood/plan_impl.h"
#include "dogwood/eval.h"

#include "base/ban.h"

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

const struct dw_use *dw_pl_trigger(const struct dw_cond *c)
{
	const struct dw_use *u = NULL;

	switch (c->kind) {
	case DW_C_FORMERLY:
	case DW_C_SINCE:
		return c->unit != NULL && by_request(&c->unit->main) ? &c->unit->main : NULL;
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n && u == NULL; i++)
			u = dw_pl_trigger(c->all.v[i]);
		return u != NULL ? u : bound_trigger(c);
	case DW_C_EXISTS:
		return dw_pl_trigger(c->exists.body);
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

struct dw_quick dw_pl_quick(const struct dw_cond *c, const struct dw_rel *r)
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
