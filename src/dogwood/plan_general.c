/* What is left for the general evaluator: its reach, and whether it depends on every timepoint. See
 * plan.h. */
#include "dogwood/plan_impl.h"

#include "base/ban.h"

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
		/* Judged at a past point that nothing guards, its window begins at that point's own
		 * time. */
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

void dw_pl_leftovers(struct dw_plan *o, const struct dw_cond *c)
{
	int64_t r;

	switch (c->kind) {
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++)
			dw_pl_leftovers(o, c->all.v[i]);
		return;
	case DW_C_NOT:
		dw_pl_leftovers(o, c->neg);
		return;
	case DW_C_EXISTS:
		dw_pl_leftovers(o, c->exists.body);
		return;
	case DW_C_CMP:
		if (c->cmp.l->kind == DW_TERM_AGG && c->cmp.l->agg.unit == NULL)
			dw_pl_leftovers(o, c->cmp.l->agg.body);
		if (c->cmp.r->kind == DW_TERM_AGG && c->cmp.r->agg.unit == NULL)
			dw_pl_leftovers(o, c->cmp.r->agg.body);
		return;
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
	case DW_C_SINCE:
		if (c->unit != NULL) {
			o->walks =
			    o->walks || (c->unit->kind != DW_U_PREVIOUS &&
			                    (c->unit->nval != 0 || c->unit->tp_slot != DW_NO_SLOT));
			return;
		}
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
