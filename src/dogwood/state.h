/* state: what relations hold (plan.h), and how units ask them. A state is the data of one relation
 * since one birth; it is shared by all leaves born then that use an equal relation, and by monitors
 * of successive policy sets (reference counted: of two monitors that share, only one is stepped
 * on).
 *
 * Cost: an event touches the states whose pattern matches it, each in expected constant time (one
 * hash of the key); a decision asks one key. Expiry is amortised: every touch drops at most a few
 * stale keys. */
#pragma once

#include "base/rd.h"
#include "dogwood/eval.h"
#include "dogwood/plan.h"
#include "dogwood/table.h"

struct dw_state {
	unsigned refs;
	enum dw_rel_kind kind;
	uint64_t born;
	int64_t
	    reach; /* fixed when it was made: a longer window of a later leaf has its own state */
	uint32_t cap;
	struct dw_table groups; /* key -> group of the kind */
	size_t bytes;
};

/* A relation at work in one monitor. */
struct dw_inst {
	const struct dw_rel *rel;
	struct dw_state *st;
	struct dw_inst **view; /* by position in rel->leaf's list: the instances its filters ask */
	uint32_t order;        /* inner ones before those that ask them */
	uint64_t round;        /* marks it as seen in one pass */
	struct dw_fam *fam;
	struct dw_trigger
	    *trigger; /* leaves that are false while this holds nothing for their key */
	uint32_t ntrigger, cap_trigger;
};

struct dw_fam;
struct dw_trigger {
	uint32_t probe; /* number of the way to ask (monitor_impl.h) */
	uint32_t leaf;
	/* Index behind those of which none is true when this one is not: the same question with
	 * limits that are harder to reach. They are in that order. */
	uint32_t skip;
	struct dw_quick quick;
};

struct dw_state *dw_state_new(const struct dw_rel *r, uint64_t born);
void dw_state_drop(struct dw_state *s);

/* The event that is stepped. */
struct dw_now {
	const struct dw_event *e;
	uint64_t slice, seq;
	int64_t ts;
};
/* Does an event match the pattern and its literals? Side conditions are not asked. */
bool dw_rel_matches(const struct dw_rel *r, const struct dw_event *e);
/* Take in an event if it matches. scratch is reset; key and row are reused. 2: there is a new
 * group, under *key; 1: taken; 0: it does not match; -1 without memory. */
int dw_inst_step(struct dw_inst *x, const struct dw_now *now, struct arena *scratch,
    struct buf *key, struct buf *row, struct box_err *err);

/* The answer to a quick question about a group, at stamp now. */
bool dw_quick_answer(const struct dw_quick *q, const void *group, int64_t now);
/* The callbacks of struct dw_eval; e->keyed is the view (struct dw_inst **) of the leaf. */
int dw_unit_rows(struct dw_eval *e, const struct dw_unit *u, struct dw_cont *k);
int dw_unit_total(
    struct dw_eval *e, const struct dw_unit *u, const struct dw_agg *g, struct dw_val *out);

/* Stored form of a state's groups, oldest touch first; rel is the relation that it is of. */
void dw_state_save(const struct dw_state *s, const struct dw_rel *rel, struct buf *b);
int dw_state_load(struct dw_state *s, const struct dw_rel *rel, struct rd *r, struct arena *scratch,
    struct box_err *err);
/* Bytes it holds, nearly. */
size_t dw_state_bytes(const struct dw_state *s);
