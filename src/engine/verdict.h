/* verdict: struct dogwood_verdict with the memory behind it, reused from submit to submit. */
#pragma once

#include <dogwood/dogwood.h>

#include "base/buf.h"
#include "dogwood/decide.h"
#include "engine/codec.h"
#include "engine/set.h"

struct eng_verdict {
	struct dogwood_verdict pub; /* first: the public pointer is this one */
	struct eng_set *set;        /* holds the texts of the rules */
	struct dogwood_rule *rules;
	size_t cap_rules;
	dogwood_str *errors;
	size_t cap_errors;
	struct buf text; /* of fault and errors */
};

static inline struct eng_verdict *eng_verdict_of(struct dogwood_verdict *v)
{
	return (struct eng_verdict *)v;
}

/* Forget the last content, keep the memory. */
void eng_verdict_clear(struct eng_verdict *v);
/* Fill in. d NULL: only recorded. Without memory the verdict is a fault, never a permit. */
void eng_verdict_fill(struct eng_verdict *v, struct eng_set *set, const struct dw_decision *d,
    uint64_t offset, int64_t ts);
/* From the log, for a repeated token. set NULL: the set it was judged by is no longer there, the
 * rules are not named. */
void eng_verdict_stored(struct eng_verdict *v, struct eng_set *set, const struct eng_stored *s,
    uint64_t offset, int64_t ts);
/* Turn it into a denial that says why. */
void eng_verdict_fault(struct eng_verdict *v, sv why);
