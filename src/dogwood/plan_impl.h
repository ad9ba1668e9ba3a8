/* Between the plan_*.c files only. */
#pragma once

#include "dogwood/plan.h"
#include "dogwood/set_impl.h"

struct pl {
	struct arena *a;
	struct dw_rels *rels;
	struct dw_leaf_impl *f;
	struct dw_plan *out;
	bool *bound;  /* slots that have a value where the present node is judged */
	bool *pinned; /* request terms that have a value; NULL: all (a request is there) */
};

/* Note that there is no memory; returns false. */
bool dw_pl_no_room(struct pl *p);
/* plan_deps.c: what a condition depends on. */
/* Does its truth not depend on the timepoint? */
bool dw_pl_timeless(const struct dw_cond *c);
/* Are all request terms of c among the known ones? */
bool dw_pl_reqs_in(const struct pl *p, const struct dw_cond *c, const bool *known);
/* Are all its free slots? */
bool dw_pl_vars_in(const struct dw_cond *c, const bool *known);
/* Mark its slots as bound. */
void dw_pl_bind_vars(const struct dw_cond *c, bool *bound);
/* Is every part that needs memory a unit? */
bool dw_pl_all_units(const struct dw_cond *c);
void dw_pl_clear_units(struct dw_cond *c);
/* plan_rel.c: relations. */
bool *dw_pl_copy_bools(struct pl *p, const bool *v, size_t n);
/* Columns of a pattern under the slots bound outside. false: not a shape for a relation, or no
 * room. */
bool dw_pl_columns(struct pl *p, const struct dw_pred *pr, struct dw_rel *r, struct dw_use *use);
/* Enter a finished relation in the set's list and the leaf's; *at is its position in the latter. */
bool dw_pl_enter(struct pl *p, struct dw_rel *r, uint32_t *at);
/* plan_general.c: what is left for the general evaluator. */
void dw_pl_leftovers(struct dw_plan *o, const struct dw_cond *c);
/* plan_trigger.c: what a leaf waits for, and whether it is one quick question. */
const struct dw_use *dw_pl_trigger(const struct dw_cond *c);
struct dw_quick dw_pl_quick(const struct dw_cond *c, const struct dw_rel *r);
