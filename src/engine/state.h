/* state: what the records of a log add up to: the installed set, its monitors, the newest
 * tokens, the newest stamp. The engine has one that it steps as it appends; recovery fills it by
 * replay; the snapshot maker has another of its own, which it brings forward from the last
 * snapshot by the same replay, so that making a snapshot needs nothing from the engine and stops
 * nobody; `dogwood fsck` has a third. */
#pragma once

#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "dogwood/monitor.h"
#include "engine/record.h"
#include "engine/set.h"
#include "engine/tokens.h"

struct eng_state {
	struct eng_set *set; /* NULL: nothing installed */
	struct dwm *mon;     /* of set */
	struct eng_tokens tokens;
	struct arena arena; /* one event */
	int64_t last_ts;    /* -1: none */
	uint64_t next;      /* offset of the next record */
	uint64_t events;    /* replayed since made or loaded */
};

void eng_state_init(struct eng_state *s, size_t max_tokens);
void eng_state_fini(struct eng_state *s);
/* Make `set` the installed one, with monitors that keep the state of every unchanged clause of
 * each rule that continues one of the set before (map as in dwm_transfer; NULL: none does).
 * Takes over the reference on success; on failure nothing changed. *kept (may be NULL): clauses
 * kept. */
int eng_state_adopt(struct eng_state *s, struct eng_set *set, const int32_t *map, unsigned *kept,
    struct box_err *err);
/* Apply one record, as it was applied when it was written. A wal_rec_fn. Whatever cannot be
 * applied is BOX_ECORRUPT: a history with a hole decides nothing. */
int eng_state_replay(void *state, const struct wal_rec *r, struct box_err *err);

/* A snapshot file: the state and the id of the store it belongs to. */
void eng_state_save(const struct eng_state *s, const uint8_t id[WAL_ID], struct buf *out);
/* Into a new, empty state. `like` (may be NULL): a set that is used instead of compiling the
 * same texts again. */
int eng_state_load(
    struct eng_state *s, sv bytes, struct eng_set *like, uint8_t id[WAL_ID], struct box_err *err);
