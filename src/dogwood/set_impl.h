/* The inside of a policy set: shared by the loader, the monitor and the decision. Not for
 * embedders. */
#pragma once

#include "cedar/eval.h"
#include "cedar/parse.h"
#include "cedar/schema.h"
#include "cedar/smap.h"
#include "dogwood/cond.h"
#include "dogwood/eschema.h"
#include "dogwood/plan.h"
#include "dogwood/policyset.h"

struct dw_providers;

struct dw_leaf_impl {
	struct dw_leaf pub;
	struct dw_body parsed; /* as written */
	struct dw_cond *cond;  /* expanded, pinned, numbered */
	struct dw_names names;
	struct cedar_leaf *cedar;
	struct dw_plan plan;
	bool gate; /* its rule is met only when it is true (cedar's gate_leaves) */
};

struct dw_set {
	struct arena a;
	struct cedar_syms *syms;
	struct cedar_source src;
	sv source_name;
	struct cedar_schema *schema; /* NULL: none was given */
	struct dw_eschema *events;
	struct cedar_policies *policies;
	struct dw_rule *rules;
	size_t nrules;
	struct dw_leaf_impl *leaves;
	size_t nleaves, ngates;
	uint32_t nprovided; /* distinct calls of providers */
	struct dw_rels rels;
	int64_t tick, reach;
};

/* One loading. */
struct dw_loader {
	struct dw_set *s;
	const struct dw_load *in;
	struct arena *a;                      /* the set's */
	struct cedar_diags *ds;               /* findings in the policy source */
	const struct dw_providers *providers; /* NULL: not enabled */
	struct smap calls;                    /* of providers, by text */
	bool *faulty;                         /* by rule: has an error, later stages pass it over */
	int32_t rule;
};

/* Checks of 6.2 for the leaves of one rule; findings to ds. */
void dw_typecheck(struct dw_set *s, size_t rule, struct cedar_diags *ds);
