/* decide: from an action to a verdict and back. Holds the policy engine and the recorder; turns
 * asks into events, verdicts into denial texts (box-config-and-policy 3.1), and outcomes into
 * ::response and ::error events.
 *
 * Every decision is stamped and in the history before its answer leaves: answers come by callback,
 * at the latest at the end of the loop's turn (decide_turn). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "monitor/ask.h"
#include "monitor/record.h"

struct dogwood_engine;
struct decider;
struct ticket;
struct batch;

/* Somebody who asks: one worker channel. Embedded by the caller, zeroed at first; ended with
 * decide_owner_end. */
struct decide_owner {
	/* Who keeps the tickets of permitted actions; NULL: this one. A shell admits a pipeline on
	 * one channel and its stages report on theirs: they share an owner. */
	struct decide_owner *tickets_to;
	struct batch *batches;  /* not yet answered */
	struct ticket *tickets; /* permitted, outcome not yet reported */
	size_t tickets_n;
};

struct decision {
	bool permit;
	uint64_t ticket; /* of the first effect; the others follow by one. Valid when permitted */
	size_t index;    /* the first refused effect of the batch */
	sv text; /* the denial, "policy denied this operation on …"; borrowed for the call */
};
/* d is NULL when the owner ended first: only free what arg holds. */
typedef void (*decide_fn)(void *arg, const struct decision *d);

/* The engine and the recorder stay the caller's and must outlive the decider. NULL without
 * memory. */
struct decider *decide_new(
    struct dogwood_engine *engine, struct recorder *rec, struct box_err *err);
void decide_free(struct decider *d);

/* Decide n actions in order, as one: all or nothing is permitted. fn is called exactly once
 * (perhaps before this returns). Views in asks need to live only for the call. traceparent may be
 * empty. -1: nothing was submitted (err says why); fn is not called and the caller must refuse. */
int decide_batch(struct decider *d, struct decide_owner *o, const struct ask *asks, size_t n,
    sv traceparent, decide_fn fn, void *arg, struct box_err *err);

/* Outcomes. A ticket that is not this owner's is BOX_EDENIED. */
int decide_done_fs(struct decider *d, struct decide_owner *o, uint64_t ticket,
    enum mon_fs_result result, struct box_err *err);
/* shell: exit status, -1 when none was reported; http: status, 0 when no reply came. Of a spawn the
 * status that the launcher saw is recorded; without one, success is not believed (-1). */
int decide_done_status(struct decider *d, struct decide_owner *o, uint64_t ticket, int64_t status,
    uint64_t body_bytes, struct box_err *err);
int decide_done_connect(struct decider *d, struct decide_owner *o, uint64_t ticket, bool connected,
    struct box_err *err);
/* Permitted, but not done: n consecutive tickets. No event. */
int decide_abandon(
    struct decider *d, struct decide_owner *o, uint64_t ticket, size_t n, struct box_err *err);
/* The question of an open spawn ticket, borrowed until it is reported, for the one start that it
 * permits. NULL: not this owner's, no spawn, or used. From then on the ticket is reported, not
 * abandoned. */
const struct ask *decide_ticket_start(
    struct decider *d, const struct decide_owner *o, uint64_t ticket);
/* How its program ended, as the launcher saw it: this is recorded, whatever the asker reports
 * later. A ticket that is not open any more is ignored. */
void decide_ticket_ended(
    struct decider *d, const struct decide_owner *o, uint64_t ticket, int64_t status);

/* A control beneath policy refused: one denied record with rule "enforcement:<gate>"; no event. */
void decide_note_enforcement(struct decider *d, const struct ask *a, const char *gate, sv reason);

/* The owner is gone: its unanswered batches are not answered, its open tickets are recorded as
 * indeterminate. */
void decide_owner_end(struct decider *d, struct decide_owner *o);

/* End of a loop turn: one sync for everything that waits, then the answers, then the records are
 * written. False when the history can no longer be written: everything that waited was denied, and
 * the box must stop. */
bool decide_turn(struct decider *d);
