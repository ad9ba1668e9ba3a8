/* engine: what a dogwood_engine is made of. One lock covers everything but the writing of the
 * log, which one thread at a time does without it (flush.c). Order of locks: engine, then the
 * log's own.
 *
 * The rule for releasing a verdict: `need` is the offset behind the newest record that some
 * later verdict may rest on. A verdict given now may rest on any of those, so it waits until
 * that many records are durable. An event that no clause can match does not move `need`: its own
 * verdict waits for those before it and not for itself. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include <dogwood/dogwood.h>

#include "base/buf.h"
#include "base/clock.h"
#include "dogwood/decide.h"
#include "engine/state.h"
#include "engine/verdict.h"
#include "engine/wal.h"

#define ENG_SKEW_DEFAULT  (300 * NS_PER_SEC)
#define ENG_JUMP          (3600 * NS_PER_SEC) /* a jump of the clock worth a record */
#define ENG_SNAP_DEFAULT  10000
#define ENG_SEG_DEFAULT   ((uint64_t)16 << 20)
#define ENG_TOKEN_DEFAULT 65536
#define ENG_PENDING_MAX   ((size_t)1 << 20) /* bytes that may wait in memory for a sync */

/* A verdict that waits for the disk, from dogwood_submit_begin. */
struct eng_wait {
	dogwood_verdict_fn fn;
	void *arg;
	struct eng_verdict *v;
	uint64_t need;
};

struct dogwood_engine {
	/* Held during a policy change, before the lock: the set cannot change under it. */
	pthread_mutex_t change;
	pthread_mutex_t lock;
	struct dogwood_options opt; /* path is our copy */
	struct eng_io io;
	struct clock clock;
	/* Tells a jump of the clock from idle time; now_ns NULL with an injected clock. */
	struct clock boot;

	struct wal *wal; /* NULL: memory only */
	struct eng_state st;
	struct dw_scratch *scratch;
	struct buf body; /* one record */

	int64_t last_boot; /* when the newest stamp was given */
	bool stamped;      /* since open */
	uint64_t need;     /* see above */
	bool broken;
	struct box_err why; /* of broken */

	/* flush.c */
	bool flushing;
	uint32_t flight;   /* number of the write under way, or of the last one */
	uint64_t fly_upto; /* records it covers */
	_Atomic uint32_t landed[2];
	unsigned sleepers[2]; /* at least as many as sleep on each */
	_Atomic uint64_t durable;
	_Atomic bool failed; /* broken, for those who look without the lock */
	struct eng_wait *queue;
	size_t q_head, q_n, q_cap;
	size_t q_out; /* called back at this moment */
	struct eng_verdict **pool;
	size_t n_pool;

	/* background.c */
	pthread_t helper;
	pthread_cond_t wake;
	bool has_helper, stop, snapping;
	uint64_t snap_offset; /* of the newest snapshot */
	uint64_t since_snap;  /* events since */

	uint64_t events, replayed, cut_bytes, base;
};

/* engine.c */

/* Refuse everything from now on. Under the lock. */
void eng_break(struct dogwood_engine *e, const struct box_err *why);
/* -1 with DOGWOOD_ESTORE when it is broken. */
int eng_check(const struct dogwood_engine *e, struct dogwood_error *err);
/* The next stamp, and the clock record if the clock jumped. Under the lock. -1: refused, nothing
 * happened. */
int eng_stamp(struct dogwood_engine *e, int64_t *ts, struct dogwood_error *err);
/* Append a record (or count it, in memory). Under the lock. -1 breaks the engine: what it knows
 * is ahead of what it can store. */
int eng_append(
    struct dogwood_engine *e, enum wal_kind kind, int64_t ts, sv body, struct dogwood_error *err);

/* dogwood_engine_open with the system calls given: tests make them fail. */
int eng_open_io(const struct dogwood_options *o, const struct eng_io *io, dogwood_engine **out,
    struct dogwood_error *err);

/* install.c */

/* Put a set whose entries are filled in force and append the record. Both locks are held. The
 * caller keeps its reference. */
int eng_change(struct dogwood_engine *e, struct eng_set *set, const int32_t *map, int64_t ts,
    struct dogwood_installed *out, struct dogwood_error *err);

/* flush.c */

/* Wait until records below `upto` are durable, leading a write when nobody does. The lock is
 * held on entry and released on return. */
int eng_wait_durable(struct dogwood_engine *e, uint64_t upto, struct dogwood_error *err);
/* Write what is pending without a sync. The lock is held, given up meanwhile, and held on
 * return. */
int eng_write_out(struct dogwood_engine *e, struct dogwood_error *err);

/* background.c, snapshot.c */

/* Wake the helper when there is something for it. Under the lock. */
void eng_help(struct dogwood_engine *e);
void eng_help_stop(struct dogwood_engine *e);
