/* group: the records of a state, one for each key. Shared by state.c, unit.c and state_wire.c. */
#pragma once

#include "dogwood/state.h"

struct dw_stamp {
	uint64_t seq;
	int64_t ts;
};

/* LATEST */
struct dw_g_latest {
	struct dw_stamp at;
};

/* QUEUE: at[first … first + n - 1], oldest first. */
struct dw_g_queue {
	struct dw_stamp *at;
	__int128 *cum;        /* sums: total of the summed column up to and including the entry */
	struct dw_val **vals; /* rows with values */
	__int128 base;        /* cum of what was dropped */
	uint32_t first, n, cap;
};
/* Append; drops what is beyond `keep` entries (0: no limit) or older than `before`. false without
 * memory. */
bool dw_queue_push(struct dw_g_queue *q, struct dw_stamp at, const int64_t *add,
    struct dw_val *vals, uint32_t keep, int64_t before);
/* Position (from 0) of the first entry with ts >= before, and with seq >= from. */
uint32_t dw_queue_find(const struct dw_g_queue *q, int64_t before, uint64_t from);
/* Sum of the entries from position i on. */
__int128 dw_queue_sum(const struct dw_g_queue *q, uint32_t i);
void dw_queue_fini(void *g);

/* DISTINCT: a table of the distinct rows in order of their newest match. */
struct dw_g_row {
	uint64_t seq;
	int64_t add; /* what it adds to the sum */
	struct dw_val *vals;
};
struct dw_g_distinct {
	struct dw_table rows;
	bool ready;
	__int128 sum;
};
void dw_distinct_fini(void *g);
/* Drop rows older than `before`, at most `most` of them. */
void dw_distinct_expire(struct dw_g_distinct *g, int64_t before, size_t most);

/* RUN: key is the slice alone. */
struct dw_g_run {
	uint64_t start, end; /* timepoints of the newest run of matches */
	uint32_t n;
	uint8_t *key; /* of the run's pattern, n bytes */
};
void dw_run_fini(void *g);

/* LAST: key is the slice alone. [0] is the newest. */
struct dw_g_last {
	struct dw_last {
		struct dw_stamp at;
		uint32_t n;
		uint8_t *key; /* NULL: there is none */
		struct dw_val *vals;
	} m[2];
};
void dw_last_fini(void *g);

size_t dw_group_size(enum dw_rel_kind k);
void (*dw_group_fini(enum dw_rel_kind k))(void *);
