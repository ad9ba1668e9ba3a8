/* snapshot: the state of a store up to one offset in a file of its own ("snap-<16 hex digits>"),
 * so that recovery replays only what came after. The newest two are kept, and the log from the
 * older one on: one damaged snapshot is not the end of a store. */
#pragma once

#include "engine/io.h"
#include "engine/state.h"

struct eng_snap {
	bool found;
	uint64_t offset;       /* of the one that was loaded or made */
	uint64_t older;        /* of the one before it; 0: none */
	uint8_t id[WAL_ID];    /* store it belongs to */
	char passed_over[256]; /* why a newer one was not usable; empty: none was */
};

/* Load the newest usable snapshot of the folder into an empty state (see eng_state_load). None
 * is success with found false; damaged ones are passed over. */
int eng_snap_load(
    int dir, struct eng_state *s, struct eng_set *like, struct eng_snap *out, struct box_err *err);
/* Bring the newest snapshot (or the beginning) forward to `upto` from the log files, write the
 * result, and remove snapshots older than the one before. Everything below upto must be durable.
 * Reads only files: any thread, one at a time. */
int eng_snap_make(int dir, const struct eng_io *io, uint64_t upto, size_t max_tokens,
    struct eng_set *like, struct eng_snap *out, struct box_err *err);

/* Offsets of all snapshot files, newest first; at most ENG_SNAPS_MAX. */
#define ENG_SNAPS_MAX 64
int eng_snap_list(int dir, uint64_t v[ENG_SNAPS_MAX], size_t *n, struct box_err *err);
/* Load this one. -1 leaves the state empty. */
int eng_snap_load_at(int dir, uint64_t offset, struct eng_state *s, struct eng_set *like,
    uint8_t id[WAL_ID], struct box_err *err);
/* Remove those that go beyond record n. */
int eng_snap_drop_after(int dir, const struct eng_io *io, uint64_t n, struct box_err *err);
