/* gen: random temporal policies and traces over a small world, seeded. The policies are text, so
 * that the parser is tested too. With `expand` the same draws give the same policy with its macro
 * calls written out by hand. Each rule says what it is made of, so that a test can hold the
 * coverage against a table. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "dogwood/event.h"

enum gen_feature {
	GEN_FORMERLY,
	GEN_PREVIOUS,
	GEN_SINCE,       /* P since Q */
	GEN_SINCE_NOT,   /* !P since Q */
	GEN_SINCE_COND,  /* any conditions on both sides */
	GEN_SINCE_BOUND, /* the left side uses what the right one binds */
	GEN_NESTED,      /* an operator in the body of another */
	GEN_NOT,         /* of anything but a predicate */
	GEN_NOT_NOT,     /* !! */
	GEN_EXISTS,      /* a variable joins two patterns */
	GEN_TP_JOIN,     /* tp(t) joins two patterns */
	GEN_BIND_AGG,    /* exists (n). (agg == n && …) */
	GEN_COUNT,       /* of timepoints */
	GEN_COUNT_SINCE, /* of timepoints of a since */
	GEN_DISTINCT,    /* count of values */
	GEN_PAIRS,       /* count of pairs of values */
	GEN_SUM,         /* of events */
	GEN_SUM_SET,     /* of distinct values or rows */
	GEN_AGG_REQUEST, /* an aggregate against a value of the request */
	GEN_VAR,         /* a variable in a predicate or comparison */
	GEN_REQUEST,     /* a value of the request in a predicate */
	GEN_SCOPE,       /* principal, resource, their ids and attributes */
	GEN_WILD,
	GEN_REFINE, /* P{…}{…} */
	GEN_ERROR,  /* the third kind of event */
	GEN_OTHER,  /* an action of another namespace */
	GEN_M_COUNT,
	GEN_M_SUM,
	GEN_M_DISTINCT,
	GEN_M_BIND,
	GEN_M_OWN, /* def temporal */
	GEN_NFEATURES
};
extern const char *const gen_feature_names[GEN_NFEATURES];

/* How a rule holds its temporal leaves: see gen_rule_holds. */
enum gen_form {
	GEN_WHEN,
	GEN_UNLESS,
	GEN_BOTH,   /* leaf 0 && !leaf 1 */
	GEN_EITHER, /* leaf 0 || leaf 1 */
	GEN_TWO,    /* when leaf 0 unless leaf 1 */
	GEN_CEDAR,  /* context.input.v > 1 and leaf 0 */
	GEN_IF,     /* if leaf 0 then leaf 1 else false */
	GEN_NFORMS
};

struct gen_rule {
	bool forbid;
	enum gen_form form;
	const char *action; /* of the scope, NULL: any */
	uint64_t used[2];   /* features of leaf 0 and 1, 1 << enum gen_feature */
};

struct gen {
	uint64_t s;
	bool expand;
	uint64_t used; /* of the leaf being made */
};

uint32_t gen_int(struct gen *g, uint32_t n); /* 0 … n - 1 */
/* A policy source with `rules` rules of one temporal leaf each, macros included. */
void gen_policy(struct gen *g, unsigned rules, struct buf *out);
/* The definitions that the rules call. */
void gen_defs(const struct gen *g, struct buf *out);
/* One rule of any form with this @id. */
void gen_rule(struct gen *g, const char *id, struct gen_rule *r, struct buf *out);
/* A `temporal { … }` and what it is made of. */
void gen_leaf(struct gen *g, uint64_t *used, struct buf *out);
/* The leaves of a form: 1 or 2. */
unsigned gen_leaves(enum gen_form f);
/* Is the action of the request the one in the rule's scope? */
bool gen_rule_about(const struct gen_rule *r, const struct dw_event *e);
/* Does a rule match the request, given its leaves? 1, 0, or -1: evaluating it fails. */
int gen_rule_holds(const struct gen_rule *r, const bool *leaf, const struct dw_event *e);
/* n events. back: stamps sometimes go back. pins: principals and sessions differ, and the fields
 * callerPrincipal, sessionId and key are there. */
struct dw_event *gen_trace(struct gen *g, struct arena *a, size_t n, bool back, bool pins);
