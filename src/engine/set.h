/* set: an installed policy set: the caller's texts, the compiled rules, and what the public
 * interface says about each of them. Shared by the engine and by the verdicts that name its
 * rules, hence counted. */
#pragma once

#include <stdatomic.h>

#include <dogwood/dogwood.h>

#include "base/arena.h"
#include "base/buf.h"
#include "dogwood/policyset.h"

#define ENG_SOURCES_BYTES ((size_t)48 << 20) /* of all texts together */
#define ENG_POLICY_TOKEN  24                 /* characters of a policy's token */

/* Who a policy is, apart from where it stands and what it says. */
struct eng_entry {
	char token[ENG_POLICY_TOKEN + 1];
	uint64_t ordinal; /* never given twice */
	int64_t created, updated;
};

struct eng_set {
	atomic_uint refs;
	struct dw_set *set;
	struct buf body; /* install body (codec.h): the texts */
	struct arena a;
	sv text;                    /* all policy sources as one */
	struct dogwood_rule *rules; /* one for each rule of set */
	struct eng_entry *entries;  /* likewise; NULL until somebody says (change.h) */
	uint64_t next_ordinal;
	size_t n;
};

/* Compile. Findings are added to diags (may be NULL). BOX_ECONFIG when the set is refused. */
int eng_set_load(const struct dogwood_policy_set *in, dogwood_diags *diags, struct eng_set **out,
    struct box_err *err);
/* The same for other uses of the language: tick as in struct dw_load; loose: skip the checks
 * against the schemas. */
int eng_set_load_for(const struct dogwood_policy_set *in, int64_t tick, bool loose,
    dogwood_diags *diags, struct eng_set **out, struct box_err *err);
/* From an install body (codec.h). A set that does not compile any more is BOX_ECORRUPT. */
int eng_set_decode(sv body, struct eng_set **out, struct box_err *err);
/* What the sources hold besides rules: definitions of macros. Empty when that is only space and
 * comments. Lives in a. -1 without memory. */
int eng_set_definitions(const struct eng_set *s, struct arena *a, sv *out, struct box_err *err);
/* What the public interface says about rule i. */
struct dogwood_rule eng_set_rule(const struct eng_set *s, size_t i);
struct eng_set *eng_set_ref(struct eng_set *s);
void eng_set_unref(struct eng_set *s); /* NULL is allowed */
