/* fam: relations that differ only in the literals of their patterns, kept together (local-engine.md
 * 21.4). An event finds those whose literals it has by one look-up, so it does not meet the others;
 * and a decision finds, by one look-up of the request's key, the relations that hold anything for
 * it, so it does not ask the leaves of those that hold nothing. */
#pragma once

#include "dogwood/state.h"

struct dw_insts {
	struct dw_inst **v;
	uint32_t n, cap;
};

struct dw_fam {
	const struct dw_rel *like;  /* one of them: its paths are all of theirs */
	struct dw_table by_literal; /* values of the literal fields -> struct dw_insts */
	uint64_t rounds;            /* compactions so far */
	/* slice and key -> struct dw_insts: those that may hold a group for it and that a leaf
	 * waits for */
	struct dw_table active;
};

/* The text by which relations belong together. */
void dw_fam_identity(const struct dw_rel *r, struct buf *b);
struct dw_fam *dw_fam_new(const struct dw_rel *r);
void dw_fam_free(struct dw_fam *f);
/* Enter an instance under its literals. false without memory. */
bool dw_fam_add(struct dw_fam *f, struct dw_inst *x, struct buf *key);
/* The instances whose literals the event has; NULL: none. */
const struct dw_insts *dw_fam_match(
    const struct dw_fam *f, const struct dw_event *e, struct buf *key);
/* x has a new group under this key (slice and columns). ts: now. */
bool dw_fam_activate(struct dw_fam *f, struct dw_inst *x, sv key, int64_t ts);
/* The instances that hold a group under a key, without those that no longer do; NULL: none. round:
 * a number not used before. */
const struct dw_insts *dw_fam_active(struct dw_fam *f, sv key, uint64_t round);

bool dw_insts_push(struct dw_insts *v, struct dw_inst *x);
