/* hist: the retained events of one slice of history, oldest first. Only events that a pattern of
 * the general evaluator can match are kept with their content; when a condition depends on every
 * timepoint, the others are kept as bare stamps. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "dogwood/event.h"

struct dw_point {
	uint64_t seq;  /* timepoint within the slice */
	uint64_t gseq; /* timepoint within the monitor: births are counted in these */
	int64_t ts;
	const struct dw_event *ev; /* NULL: nothing that could match */
};

struct dw_hist {
	struct dw_point *v;
	size_t first, n, cap; /* v[first … first + n - 1] */
	size_t bytes;
};

/* One allocation holding head and logged bag of an event (no context, no entities); NULL without
 * memory. free() it. */
struct dw_event *dw_event_keep(const struct dw_event *e, size_t *bytes);
/* One allocation holding n values; NULL without memory. free() it. */
struct dw_val *dw_vals_blob(const struct dw_val *const *v, uint32_t n);
/* Append; takes ownership of p->ev. false without memory (then p->ev is freed). */
bool dw_hist_push(struct dw_hist *h, const struct dw_point *p, size_t bytes);
/* Drop the newest. */
void dw_hist_pop(struct dw_hist *h);
/* Drop points older than `before`, but never the newest. Amortised constant. */
void dw_hist_prune(struct dw_hist *h, int64_t before);
void dw_hist_fini(struct dw_hist *h);
static inline const struct dw_point *dw_hist_at(const struct dw_hist *h, size_t i)
{
	return &h->v[h->first + i];
}
