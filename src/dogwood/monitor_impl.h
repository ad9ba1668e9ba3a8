/* The inside of a monitor: shared by monitor.c, bind.c and snapshot.c. */
#pragma once

#include "base/arena.h"
#include "dogwood/eval.h"
#include "dogwood/fam.h"
#include "dogwood/hist.h"
#include "dogwood/monitor.h"
#include "dogwood/set_impl.h"
#include "dogwood/state.h"
#include "dogwood/table.h"

/* History that agrees on the universal pins (one slice when there are none). Record of
 * core->slices. */
struct dw_slice {
	uint64_t id;      /* never reused */
	uint64_t next;    /* timepoints so far */
	struct dw_hist h; /* for the general evaluator */
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
	uint64_t born;         /* the leaf sees events from this number on */
	struct dw_inst **view; /* by position in its plan's list of relations */
};

/* Record of dwm->heads: who wants events of one action and kind. */
struct dw_head {
	bool general; /* the general evaluator wants the content */
	struct dw_fam **v;
	uint32_t n, cap;
};

/* One way to ask a family for what it holds: the request terms of the key. */
struct dw_probe {
	struct dw_fam *fam;
	const struct dw_use *use;
};

/* Record of dwm->by_action: the probes of leaves whose rules are about one action. */
struct dw_probes {
	uint32_t *v;
	uint32_t n, cap;
};

struct dwm {
	const struct dw_set *set;
	struct dw_core *core;
	struct dw_bind *leaves;
	bool ok;
	struct dw_table heads;
	struct dw_table index;  /* identity and birth -> struct dw_inst * */
	struct dw_inst **insts; /* inner ones first */
	uint32_t ninsts, cap;
	struct dw_fam **fams;
	uint32_t nfams, cap_fams;
	struct dw_table fam_index; /* identity -> struct dw_fam * */
	struct dw_probe *probes;
	uint32_t nprobes, cap_probes;
	struct dw_table probe_index; /* family and terms -> number + 1 */
	struct dw_table by_action;   /* action -> struct dw_probes */
	struct dw_probes any_action;
	uint64_t round;       /* of asking gates */
	uint64_t marks;       /* of looking through a family */
	uint64_t *seen;       /* of a leaf: the round in which it was asked as a gate */
	uint32_t *true_leaf;  /* room for all gates */
	struct dw_inst **due; /* instances that an event goes to */
	uint32_t cap_due;
	bool general;    /* some leaf needs the general evaluator */
	bool keep_all;   /* … and every timepoint */
	bool positional; /* some leaf depends on events that match nothing */
	int64_t reach;   /* of the general nodes */
	struct arena scratch;
	struct buf key, row; /* reused */
};

/* A monitor on a core (which gets one more user). births: one a leaf, NULL: all now. States are
 * taken over from `from` (may be NULL) where identity and birth agree. */
struct dwm *dwm_make(const struct dw_set *set, struct dw_core *core, const uint64_t *births,
    const struct dwm *from, struct box_err *err);
/* Note anew which instances hold which keys, after their states were filled. false without memory.
 */
bool dwm_wake(struct dwm *m);
struct dw_core *dw_core_new(enum dwm_clock clock, struct box_err *err);
void dw_core_drop(struct dw_core *c);
void dw_slice_fini(void *record);
/* The framed head of an event or pattern. */
void dw_head_key(struct buf *b, sv ns, sv id, sv kind);
/* The slice key of an event's logged bag, or (of_request) of a request. false: a pin is missing. */
bool dw_slice_key(const struct dw_set *s, const struct dw_event *e, bool of_request, struct buf *b);
