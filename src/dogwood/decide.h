/* decide: one verdict. Temporal leaves are computed at the newest timepoint, become Booleans of the
 * Cedar context, and Cedar decides: default deny, forbid beats permit. Anything that fails before
 * Cedar runs is a fault and denies (dogwood-language.md 7.4). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "dogwood/event.h"
#include "dogwood/monitor.h"
#include "dogwood/policyset.h"

enum dw_cause {
	DW_PERMITTED, /* at least one permit, no forbid */
	DW_FORBIDDEN, /* at least one forbid */
	DW_NO_MATCH,  /* nothing permits */
	DW_FAULT,     /* the question could not be put: `fault` says why */
};

struct dw_rule_error {
	uint32_t rule;
	const char *text;
};

/* A verdict. Vectors and texts belong to the scratch and live until its next use. */
struct dw_decision {
	bool allow;
	enum dw_cause cause;
	/* determining rules in file order: the true forbids, or the true permits, or none */
	const uint32_t *rules;
	size_t nrules;
	const struct dw_rule_error
	    *errors; /* rules that could not be evaluated; they are skipped, the others decide */
	size_t nerrors;
	const char *fault; /* DW_FAULT: text; else NULL */
};

/* Information providers: the host computes a value during a decision. part[0] is the call,
 * `Ns::Fn(args)`; the others are the methods behind it, each applied to what the one before gave.
 * 0 with *out, whose parts are in a or live as long as the decision; -1 with *err: the decision is
 * then a fault. Asked only when a rule comes to the call, and once for all equal calls of a
 * decision. */
struct dw_provider_part {
	sv name;
	const struct dw_val *args;
	size_t nargs;
};
typedef int (*dw_provider_fn)(void *arg, const struct dw_provider_part *part, size_t n,
    struct arena *a, struct dw_val *out, struct box_err *err);

/* Reusable memory of decisions: no allocation after warm-up. One per thread. */
struct dw_scratch;
struct dw_scratch *dw_scratch_new(struct box_err *err);
void dw_scratch_free(struct dw_scratch *s);
/* Whom decisions with s ask for the values of providers; NULL (as at first): nobody, and a rule
 * that asks makes its decision a fault. */
void dw_scratch_provide(struct dw_scratch *s, dw_provider_fn fn, void *arg);

/* Decide on event *e, which was the last one stepped into m. The set is m's. 0 with *out filled (a
 * fault is a verdict too); -1 only when there was no memory even for that: deny. m may be NULL for
 * a set without leaves. */
int dw_decide(struct dw_scratch *sc, const struct dw_set *set, struct dwm *m,
    const struct dw_event *e, struct dw_decision *out, struct box_err *err);
