/* The inside of a monitor: shared by monitor.c, states.c and snapshot.c. */
#pragma once

#include "base/arena.h"
#include "dogwood/eval.h"
#include "dogwood/hist.h"
#include "dogwood/monitor.h"
#include "dogwood/set_impl.h"
#include "dogwood/table.h"

/* History that agrees on the universal pins (one slice when there are none). Record of core->slices. */
struct dw_slice {
	uint64_t id;   /* never reused */
	uint64_t next; /* timepoints so far */
	struct dw_hist h;
};

/* What monitors of successive policy sets share: the clock, the slices and the retained events. */
struct dw_core {
	unsigned refs;
	enum dwm_clock clock;
	uint64_t gseq; /* events so far */
	uint64_t next_slice;
	int64_t last_ts;
	struct dw_table slices;
	struct dw_slice
	    *cur; /* of the newest event; NULL: it carries no pin, so no condition can see it */
};

struct dw_bind {
	uint64_t born; /* the leaf sees events from this number on */
};

struct dwm {
	const struct dw_set *set;
	struct dw_core *core;
	struct dw_bind *leaves;
	bool ok;
	/* Events that the general evaluator may match, by head; all, when a condition depends on every timepoint. */
	struct dw_table heads;
	bool keep_all;
	int64_t reach; /* of the leaves that the general evaluator answers for */
	struct arena scratch;
	struct buf key; /* reused */
};

/* The framed head of an event or pattern. */
void dw_head_key(struct buf *b, sv ns, sv id, sv kind);
/* The slice key of an event's logged bag, or (req != NULL) of a request. false: a pin is missing. */
bool dw_slice_key(const struct dw_set *s, const struct dw_event *e, bool of_request, struct buf *b);
