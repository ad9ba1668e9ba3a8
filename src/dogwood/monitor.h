/* monitor: the temporal memory of a policy set. It is stepped with every event and answers, at the
 * newest timepoint, whether a leaf is true for the request that this event is. State is keyed by
 * the values a clause correlates on, so a step touches only clauses whose patterns match the event,
 * and a decision costs the same at any window length for the shapes of local-engine.md 21.2;
 * `dwm_class` says which leaves are of another kind and what they cost.
 *
 * One thread at a time. Out of memory is an error that leaves the monitor unusable for decisions
 * (dwm_ok is false): history that is not complete must not decide. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/rd.h"
#include "dogwood/event.h"
#include "dogwood/policyset.h"

struct dwm;

enum dwm_clock {
	DWM_MONOTONE, /* stamps never decrease (the engine's promise): keyed states */
	/* stamps may go back (traces): every leaf by the general evaluator, all events are kept */
	DWM_ANY,
};

/* A monitor without history. The set must outlive it. */
struct dwm *dwm_new(const struct dw_set *set, enum dwm_clock clock, struct box_err *err);
void dwm_free(struct dwm *m);
/* false after a failed step or out of memory: every later call fails. */
bool dwm_ok(const struct dwm *m);

/* Append one event (any kind): it becomes the newest timepoint. Nothing in *e is referenced
 * afterwards. With DWM_MONOTONE a stamp below the newest is refused (BOX_ECORRUPT), and nothing
 * changes. */
int dwm_step(struct dwm *m, const struct dw_event *e, struct box_err *err);
/* Truth of leaf i at the newest timepoint, which must be event *req (the one stepped last): its
 * context, scope and entities are what `context.…`, `principal`, `resource` mean. */
int dwm_leaf(
    struct dwm *m, size_t leaf, const struct dw_event *req, bool *out, struct box_err *err);

/* Can any leaf of the set ever depend on this event, now or later? false: no later decision changes
 * if the event is lost (the engine may sync it with a later group). Conservative: true when unsure.
 */
bool dwm_may_match(struct dwm *m, const struct dw_event *e);
/* The gating leaves (those whose rules cannot matter unless they are true) that are true for *req,
 * the event stepped last. The vector is m's, until the next call. */
int dwm_true_leaves(struct dwm *m, const struct dw_event *req, const uint32_t **leaf, size_t *n,
    struct box_err *err);

/* Number of events stepped; stamp of the newest (INT64_MIN before the first). */
uint64_t dwm_timepoints(const struct dwm *m);
int64_t dwm_last_ts(const struct dwm *m);
/* Bytes of state, for status and limits. */
size_t dwm_bytes(const struct dwm *m);

/* The whole state, self-describing and checked on load against the set it is loaded for: state of
 * leaves with equal key text comes back, a mismatch is BOX_ECORRUPT. The bytes hold no pointers and
 * are the same for the same state. */
void dwm_save(const struct dwm *m, struct buf *out);
struct dwm *dwm_load(const struct dw_set *set, struct rd *r, struct box_err *err);

/* Policy change: a monitor for `now` that carries over the state of each leaf whose rule
 * corresponds (map as in dw_set_correspond, -1 = new) and whose condition, at the same clause
 * number, is unchanged. All others start empty: they see only events after this moment. `m` is left
 * as it was, so that a rejected change costs nothing; free it when the change is final. */
struct dwm *dwm_transfer(
    const struct dwm *m, const struct dw_set *now, const int32_t *map, struct box_err *err);
/* Number of leaves of `now` that a transfer would carry over. */
size_t dwm_retained(const struct dwm *m, const struct dw_set *now, const int32_t *map);
/* Forget the history of one rule's leaves (verb reset). */
int dwm_reset_rule(struct dwm *m, size_t rule, struct box_err *err);
