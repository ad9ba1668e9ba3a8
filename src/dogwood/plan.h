/* plan: which parts of a condition are answered by keyed states (local-engine.md 21.2). At load,
 * every temporal operator and aggregate that is judged at the newest timepoint is looked at: where
 * its body is one pattern with side conditions that can be decided when the pattern matches, it
 * becomes a unit over one or more relations. A relation is a table of what its pattern matched,
 * keyed by the fields that the condition correlates on; the request's values are never captured
 * when an event arrives, only looked up at the decision.
 *
 * What is not recognised stays with the general evaluator. Recognition is conservative: a wrong
 * match would change verdicts. */
#pragma once

#include "dogwood/cond.h"

#define DW_COLS_MAX 16 /* key or value columns of a relation */
#define DW_QUEUE_CAP                                                                               \
	1024 /* a count compared with a constant up to this keeps only so many stamps */

enum dw_rel_kind {
	DW_REL_LATEST,   /* key -> newest match */
	DW_REL_QUEUE,    /* key -> every match in the window, in order (each timepoint is a row) */
	DW_REL_DISTINCT, /* key -> distinct values with their newest match */
	DW_REL_RUN,      /* per slice: the unbroken run of newest events that match with one key */
	DW_REL_LAST,     /* per slice: the two newest matches */
};

struct dw_col {
	const sv *path;
	uint32_t npath;
};

struct dw_leaf_impl;
struct dw_rel {
	uint32_t number;
	enum dw_rel_kind kind;
	sv identity; /* equal text = equal relation */
	const struct dw_leaf_impl
	    *leaf; /* the leaf it was made for: filters speak of its slots and request terms */
	sv ns, id, ekind;
	struct dw_col key[DW_COLS_MAX], val[DW_COLS_MAX];
	uint32_t nkey, nval;
	/* What a column's value is at step time, for the filters: a slot, or a request term;
	 * DW_NO_SLOT: neither. */
	uint32_t key_slot[DW_COLS_MAX], key_req[DW_COLS_MAX], val_slot[DW_COLS_MAX];
	uint32_t tp_slot;
	/* fields that must equal a literal (term is a literal), or be there (a wildcard) */
	struct dw_arg *lit;
	uint32_t nlit;
	struct dw_col dup[DW_COLS_MAX][2]; /* fields that must be equal */
	uint32_t ndup;
	const struct dw_cond **filter; /* judged at step time */
	uint32_t nfilter;
	uint32_t *dep; /* positions, in the leaf's list, of the relations that the filters ask */
	uint32_t ndep;
	int32_t sum;     /* column of val to add up, or -1 */
	bool vals;       /* the values of the rows are needed */
	bool totals;     /* DISTINCT: counted in constant time, for the window `reach` */
	bool positional; /* depends on events that do not match */
	int64_t reach;   /* the longest window asked of it */
	uint32_t cap;    /* QUEUE: so many newest matches are enough; 0: all */
};

/* One relation as a unit uses it: the terms that make its key at the decision. */
struct dw_use {
	uint32_t rel; /* position in the leaf's list */
	struct dw_term *key[DW_COLS_MAX];
	uint32_t nkey;
};

enum dw_unit_kind { DW_U_ONCE, DW_U_SINCE, DW_U_PREVIOUS, DW_U_TOTAL };
struct dw_unit {
	enum dw_unit_kind kind;
	struct dw_use main;
	int64_t w;
	uint32_t val_slot[DW_COLS_MAX];
	uint32_t nval;
	uint32_t tp_slot;
	const struct dw_cond *residual; /* judged for each row; NULL: nothing */
	/* SINCE */
	struct dw_use *kill; /* negated patterns: the newest match must not be after the anchor */
	uint32_t nkill;
	struct dw_use *run; /* positive patterns: all events after the anchor match */
	uint32_t nrun;
	struct dw_cond *fixed; /* a part of the left side that does not depend on time */
	bool of_since;         /* TOTAL: of the rows of a since */
	bool sum;
};

struct dw_rels {
	struct dw_rel **v;
	uint32_t n, cap;
	uint32_t *slot; /* hash of identities: number + 1 */
	size_t nslots, used;
};

/* A whole leaf that is one question to one group of its trigger: answered without walking its tree.
 */
struct dw_quick {
	enum { DW_Q_NO, DW_Q_ONCE, DW_Q_TOTAL } is;
	int64_t w;
	bool sum;
	enum dw_cmp op; /* TOTAL: total op than */
	int64_t than;
};

/* What a leaf came to. */
struct dw_plan {
	uint32_t *rel; /* its relations, inner ones first: numbers in the set's list */
	uint32_t nrel, cap;
	bool general;    /* some node needs the general evaluator and its history */
	bool sees_all;   /* … and that node depends on every timepoint */
	bool positional; /* a relation depends on events that do not match */
	int64_t reach;   /* of the general nodes */
	uint32_t units;
	bool walks; /* a decision goes through the rows that are kept for its key */
	/* while this relation holds nothing for the request's key, the leaf is false; NULL: unknown
	 */
	const struct dw_use *trigger;
	struct dw_quick quick;
	bool bad; /* no room */
};

/* Recognise; sets the unit pointers in the leaf's tree. false: no room. */
bool dw_plan_leaf(struct arena *a, struct dw_rels *rels, struct dw_leaf_impl *f);
/* Does the truth of c depend on which events lie between those its patterns match? past: c is
 * judged at past points. */
bool dw_sees_all(const struct dw_cond *c, bool past);
