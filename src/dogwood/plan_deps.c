/* What a condition depends on: time, request terms, slots; and which of its parts have units. See
 * plan_impl.h. */
#include "dogwood/plan_impl.h"

#include "base/ban.h"

static bool term_timeless(const struct dw_term *t)
{
	return t->kind != DW_TERM_AGG;
}

bool dw_pl_timeless(const struct dw_cond *c)
{
	switch (c->kind) {
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++) {
			if (!dw_pl_timeless(c->all.v[i]))
				return false;
		}
		return true;
	case DW_C_NOT:
		return dw_pl_timeless(c->neg);
	case DW_C_EXISTS:
		return dw_pl_timeless(c->exists.body);
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
	return t->kind != DW_TERM_AGG || dw_pl_reqs_in(p, t->agg.body, known);
}

/* Are all request terms of c among the known ones? */
bool dw_pl_reqs_in(const struct pl *p, const struct dw_cond *c, const bool *known)
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
			if (!dw_pl_reqs_in(p, c->all.v[i], known))
				return false;
		}
		return true;
	case DW_C_NOT:
		return dw_pl_reqs_in(p, c->neg, known);
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		return dw_pl_reqs_in(p, c->once.body, known);
	case DW_C_SINCE:
		return dw_pl_reqs_in(p, c->since.left, known) &&
		       dw_pl_reqs_in(p, c->since.right, known);
	case DW_C_EXISTS:
		return dw_pl_reqs_in(p, c->exists.body, known);
	case DW_C_CMP:
		return term_reqs_in(p, c->cmp.l, known) && term_reqs_in(p, c->cmp.r, known);
	case DW_C_TP:
	case DW_C_CALL:
	case DW_C_PARAM:
		return true;
	}
	return true;
}

bool dw_pl_vars_in(const struct dw_cond *c, const bool *known)
{
	for (uint32_t i = 0; i < c->nvars; i++) {
		if (!known[c->vars[i]])
			return false;
	}
	return true;
}

/* Variables that c surely binds are marked. */
void dw_pl_bind_vars(const struct dw_cond *c, bool *bound)
{
	for (uint32_t i = 0; i < c->nvars; i++)
		bound[c->vars[i]] = true;
}

/* Every part that needs memory is a unit? */

static bool term_all_units(const struct dw_term *t)
{
	return t->kind != DW_TERM_AGG || t->agg.unit != NULL || dw_pl_all_units(t->agg.body);
}

bool dw_pl_all_units(const struct dw_cond *c)
{
	switch (c->kind) {
	case DW_C_PRED:
	case DW_C_TP:
		return true;
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++) {
			if (!dw_pl_all_units(c->all.v[i]))
				return false;
		}
		return true;
	case DW_C_NOT:
		return dw_pl_all_units(c->neg);
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
	case DW_C_SINCE:
		return c->unit != NULL;
	case DW_C_EXISTS:
		return dw_pl_all_units(c->exists.body);
	case DW_C_CMP:
		return term_all_units(c->cmp.l) && term_all_units(c->cmp.r);
	case DW_C_CALL:
	case DW_C_PARAM:
		return false;
	}
	return false;
}

static void term_clear(struct dw_term *t)
{
	if (t->kind != DW_TERM_AGG)
		return;
	t->agg.unit = NULL;
	dw_pl_clear_units(t->agg.body);
}

void dw_pl_clear_units(struct dw_cond *c)
{
	c->unit = NULL;
	switch (c->kind) {
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++)
			dw_pl_clear_units(c->all.v[i]);
		return;
	case DW_C_NOT:
		dw_pl_clear_units(c->neg);
		return;
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		dw_pl_clear_units(c->once.body);
		return;
	case DW_C_SINCE:
		dw_pl_clear_units(c->since.left);
		dw_pl_clear_units(c->since.right);
		return;
	case DW_C_EXISTS:
		dw_pl_clear_units(c->exists.body);
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
