/* gen: random temporal conditions and traces over a small world, seeded. The conditions are text,
 * so that the parser is tested too; some are refused as unsafe, and the tests count how many are
 * not. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "dogwood/event.h"

struct gen {
	uint64_t s;
};
uint32_t gen_int(struct gen *g, uint32_t n); /* 0 … n - 1 */
/* A policy source with `rules` rules of one temporal leaf each. */
void gen_policy(struct gen *g, unsigned rules, struct buf *out);
/* n events. back: stamps sometimes go back. pins: the callerPrincipal field and principals differ.
 */
struct dw_event *gen_trace(struct gen *g, struct arena *a, size_t n, bool back, bool pins);
