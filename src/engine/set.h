/* set: an installed policy set: the caller's texts, the compiled rules, and what the public
 * interface says about each of them. Shared by the engine and by the verdicts that name its
 * rules, hence counted. */
#pragma once

#include <stdatomic.h>

#include <dogwood/dogwood.h>

#include "base/arena.h"
#include "base/buf.h"
#include "dogwood/policyset.h"

struct eng_set {
	atomic_uint refs;
	struct dw_set *set;
	struct buf body; /* install body (codec.h): the texts; the rest borrows from it */
	struct arena a;
	struct dogwood_rule *rules; /* one for each rule of set */
	size_t n;
};

/* Compile. Findings are added to diags (may be NULL). BOX_ECONFIG when the set is refused. */
int eng_set_load(const struct dogwood_policy_set *in, dogwood_diags *diags, struct eng_set **out,
    struct box_err *err);
/* The same for other uses of the language: tick as in struct dw_load; loose: skip the checks
 * against the schemas. */
int eng_set_load_for(const struct dogwood_policy_set *in, int64_t tick, bool loose,
    dogwood_diags *diags, struct eng_set **out, struct box_err *err);
/* From the body of an install record. A set that does not compile any more is BOX_ECORRUPT:
 * without it the history after it means nothing. */
int eng_set_decode(sv body, struct eng_set **out, struct box_err *err);
struct eng_set *eng_set_ref(struct eng_set *s);
void eng_set_unref(struct eng_set *s); /* NULL is allowed */
