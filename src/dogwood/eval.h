/* eval: the general evaluator of temporal conditions (dogwood-language.md 5), over a retained
 * history. It walks the rows of a condition one at a time: a row is a set of bound slots, and for
 * each row a continuation is called, which may stop the walk. Nodes that a keyed state answers for
 * (plan.h) are asked there when they are judged at the newest timepoint.
 *
 * Cost, where no keyed state applies: the points in the window for each temporal operator,
 * multiplied for nested ones that depend on bound variables; truth of closed sub-conditions is
 * computed once for each point of a decision. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "dogwood/cond.h"
#include "dogwood/hist.h"

/* The value of a request term that is fixed by a stored tuple rather than by a request (nested
 * conditions judged at step time). */
enum dw_known { DW_UNKNOWN, DW_KNOWN, DW_MISSING };

struct dw_cont;

struct dw_eval {
	const struct dw_names *names;
	const struct dw_event *now; /* the newest event; also the request, when there is one */
	bool has_request;           /* request terms may be read from `now` */
	struct dw_val *slot;        /* names->nslots */
	bool *bound;
	struct dw_val *req;  /* names->nreq; cached */
	uint8_t *known;      /* enum dw_known */
	uint64_t slice, seq; /* of the newest event: its slice, its timepoint there */
	int64_t ts;
	const struct dw_hist *h; /* NULL: no node needs the general evaluator */
	size_t last;             /* index of the newest point */
	size_t first;            /* of the oldest that the leaf may see (its birth) */
	bool monotone;
	struct arena *a; /* of this decision */
	uint8_t *
	    *memo; /* per node: 0 unknown, 1 false, 2 true, one for each point; NULL until used */
	/* per closed FORMERLY or SINCE: for each point, where its newest witness lies; NULL until
	 * used */
	uint32_t **line;
	struct box_err *err;
	int (*unit)(struct dw_eval *e, const struct dw_unit *u,
	    struct dw_cont *k); /* ask a keyed state for rows */
	int (*unit_agg)(
	    struct dw_eval *e, const struct dw_unit *u, const struct dw_agg *g, struct dw_val *out);
	void *keyed;
	struct buf *key; /* reused: built and used up between two calls */
};

/* Called for each row; 0: go on, 1: stop, -1: error. */
struct dw_cont {
	int (*fn)(struct dw_eval *e, struct dw_cont *k);
};

/* Rows of c at point j under the present bindings. Returns what stopped it: 0 all rows seen, 1 a
 * continuation stopped, -1 error. Bindings are as before on return. */
int dw_sat(struct dw_eval *e, const struct dw_cond *c, size_t j, struct dw_cont *k);
/* Is there a row? 1, 0, or -1. */
int dw_true(struct dw_eval *e, const struct dw_cond *c, size_t j);
/* The value of a term: 1, 0 when it does not resolve, -1 on error. j: where an aggregate is judged.
 */
int dw_term_value(struct dw_eval *e, const struct dw_term *t, size_t j, struct dw_val *out);
/* The value of a request term under the present request (or what is known of it). */
bool dw_request_value(struct dw_eval *e, const struct dw_term *t, struct dw_val *out);
/* Value of principal, resource or context path on an event; false: does not resolve. */
bool dw_event_term(const struct dw_event *e, const struct dw_term *t, struct dw_val *out);
/* a op b. */
bool dw_compare(enum dw_cmp op, const struct dw_val *a, const struct dw_val *b);

/* A set of byte strings in an arena. */
struct dw_keyset {
	struct dw_keyset_slot {
		uint64_t hash;
		sv key;
	} * v;
	size_t n, cap;
};
/* 1: added, 0: it was there, -1: no room. */
int dw_keyset_add(struct dw_keyset *s, struct arena *a, sv key);
