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
#define ENG_SPARE_AGAIN   1000 /* records until a log file that could not be made is tried again */
#define ENG_PENDING_MAX   ((size_t)1 << 20) /* bytes that may wait in memory for a sync */

/* A verdict that waits for the disk, from dogwood_submit_begin. */
struct eng_wait {
	dogwood_verdict_fn fn;
	void *arg;
	struct eng_verdict *v;
	uint64_t need;
};

/* One thread that waits, on its stack. Nobody else touches it after `state` is CALL_DONE. */
struct eng_call {
	/* What to submit; NULL: only waits. */
	const dogwood_event *ev;
	sv token;
	struct eng_verdict *v;
	struct dogwood_error *err;

	uint64_t need;   /* it may leave when so many records are durable */
	bool undeclared; /* a decision about an action that the schema does not have */
	bool stored;     /* the event was accepted */
	int rc;
	bool out; /* of the lists: its state becomes CALL_DONE soon. Under the lock */
	_Atomic uint32_t state;
	struct eng_call *next;
};

enum { CALL_SENT, CALL_ASLEEP, CALL_DRIVE, CALL_DONE };

struct eng_calls {
	struct eng_call *head, **tail;
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

	/* flush.c: threads that wait. A call is in one of these lists, except inbox all under the
	 * lock: inbox (nobody has looked at it yet), waiting (needs the next write), flying
	 * (needs the one under way), done (its owner is told when the lock is given up). */
	_Atomic(struct eng_call *) inbox; /* newest first */
	atomic_bool collecting;           /* somebody is about to empty it */
	struct eng_calls waiting, flying, done;
	bool flushing;
	uint64_t fly_upto; /* the synced write under way covers records below it; else 0 */
	_Atomic uint64_t durable;

	/* loop.c */
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
	uint64_t spare_from;  /* no new try to make a log file before this record */

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

/* submit.c */

/* Stamp, step, judge and append the event of a call: fills in c->need and what follows it. -1
 * with c->err set. Under the lock. */
int eng_accept(struct dogwood_engine *e, struct eng_call *c);
/* What a call is told whose action is not in the schema. Returns -1. */
int eng_undeclared(const dogwood_event *ev, struct dogwood_error *err);

/* flush.c */

/* Taking and giving up the lock. Giving it up tells those whose calls are done and sees that
 * somebody writes when somebody waits. Who changes nothing in the lists may use the mutex. */
void eng_lock(struct dogwood_engine *e);
void eng_unlock(struct dogwood_engine *e);
/* Submit and wait. The lock is not held. */
int eng_call(struct dogwood_engine *e, struct eng_call *c);
/* Wait until records below `upto` are durable, leading a write when nobody does. The lock is
 * held on entry and released on return. */
int eng_wait_durable(struct dogwood_engine *e, uint64_t upto, struct dogwood_error *err);
/* Write what is pending without a sync. The lock is held, given up meanwhile, and held on
 * return. */
int eng_write_out(struct dogwood_engine *e, struct dogwood_error *err);
/* All calls that wait for a next write have failed: there is none. Under the lock. */
void eng_fail_waiting(struct dogwood_engine *e);

/* background.c, snapshot.c */

/* Wake the helper when there is something for it. Under the lock. */
void eng_help(struct dogwood_engine *e);
void eng_help_stop(struct dogwood_engine *e);
