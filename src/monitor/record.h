/* record: `private/telemetry/records.jsonl`, one OTLP/JSON export request a line
 * (box-config-and-policy 5). Decisions and control operations are a log record and a span each; how
 * an action ended is one more log record of scope "strands-box.outcome" (an addition of ours).
 *
 * Best effort, as documented: the durable truth is the history. Lines are gathered and written
 * whole with O_APPEND, so that a line is never torn by another writer. No secret ever comes here:
 * callers pass targets and facts of policy only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "monitor/ask.h"

struct recorder;

/* Identity shared by the two records of an action, and its place in the caller's trace. */
struct record_trace {
	uint8_t trace_id[16], span_id[8];
	uint8_t parent_id[8]; /* valid when has_parent */
	bool has_parent, parent_sampled;
};

enum record_cause {
	RECORD_PERMITTED,
	RECORD_FORBIDDEN,
	RECORD_NO_MATCH,
	RECORD_FAULT,
	RECORD_ENFORCEMENT
};

struct record_decision {
	const struct ask *ask;
	struct record_trace trace;
	int64_t ts_ns; /* stamp of the event */
	bool permit;
	enum record_cause cause;
	sv rule;        /* @id or policy_N; "enforcement:<gate>" */
	sv description; /* "" none */
	sv reason;      /* denials: what the agent is told */
	const sv *determining;
	size_t determining_n;
};

/* Open (append, create 0600, no final link). run_id is made here. wall stamps control records. */
struct recorder *record_open(
    const char *path, const char *box_id, struct clock wall, struct box_err *err);
/* Write what is gathered, sync, close. NULL is fine. */
void record_close(struct recorder *r);

/* Fresh random ids; joins the trace of a W3C traceparent ("00-…") when that is well formed. */
void record_trace_new(struct recorder *r, sv traceparent, struct record_trace *t);

void record_decision(struct recorder *r, const struct record_decision *d);
/* How a permitted action ended: a word, and a status where the action has one. */
void record_outcome(struct recorder *r, const struct ask *a, const struct record_trace *t,
    const char *result, int64_t status, bool has_status);
/* "box_started", "policy_installed", …; reason NULL when the operation succeeded; subject and
 * detail may be "". */
void record_control(struct recorder *r, const char *operation, sv subject, const char *reason);
/* The wall clock that stamps records without an event. */
int64_t record_now(const struct recorder *r);
/* Write what was gathered since the last call; the loop calls this once a turn. A failed write is
 * reported once and dropped. */
void record_flush(struct recorder *r);
