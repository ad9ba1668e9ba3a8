/* trace: the text form of an event stream (dogwood-language.md 12): one event a line,
 *
 *     @100 scope(principal: T::"a", resource: U::"b") request_context(input: { x: 1 })
 *         Ns::Action::"Read"::request(input: { x: 1 })
 *
 * (all of it on one line).
 *
 * Hostile input: values nest at most DW_TRACE_DEPTH deep, a line holds at most DW_TRACE_LINE
 * bytes. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "dogwood/event.h"

#define DW_TRACE_DEPTH 128
#define DW_TRACE_LINE  ((size_t)1 << 20)

struct dw_trace {
	sv rest;
	unsigned line; /* of the event that was read last */
};
static inline struct dw_trace dw_trace_of(sv text)
{
	return (struct dw_trace){ text, 0 };
}
/* The next event, in a (views borrow from the text too): 1; 0: the end; -1: an error, "line N:
 * <text>". */
int dw_trace_next(struct dw_trace *t, struct arena *a, struct dw_event *out, struct box_err *err);
/* One event as such a line, without the newline. */
void dw_trace_put(struct buf *b, const struct dw_event *e);
