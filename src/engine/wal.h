/* wal: the log of one store, open for appending. Appending is done in memory, under the caller's
 * lock; writing and syncing what was appended is a separate step that needs no lock, so that
 * callers can append while a sync is under way. One sync then covers everything appended before
 * it (group commit).
 *
 *   under the lock   wal_append ... wal_take
 *   without it       wal_write           (one thread at a time: the caller sees to it)
 *
 * Everything fails closed: after one failed write or sync wal_write fails for ever, since the
 * kernel may have dropped what it could not write. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/io.h"
#include "engine/scan.h"

#define WAL_SEG_MIN ((uint64_t)64 * 1024)
#define WAL_SEG_MAX ((uint64_t)1 << 30)

struct wal_conf {
	const char *path;   /* folder; made with mode 0700 when absent. Its parent must be there */
	uint64_t seg_bytes; /* segments grow to this size, WAL_SEG_MIN .. WAL_SEG_MAX */
	struct eng_io io;
};

struct wal;

/* Lock the store (not yet read it). A store in use is BOX_ESYS with sys EBUSY. */
int wal_open(const struct wal_conf *c, struct wal **out, struct box_err *err);
/* Its folder, for snapshots. Borrowed. */
int wal_dir(const struct wal *w);
/* Read and check records from offset `from` on, calling fn for each, cut a torn tail, and make
 * ready to append. With from > 0 the log must reach back to it and up to it. *end says what was
 * found. */
int wal_recover(struct wal *w, uint64_t from, wal_rec_fn fn, void *arg, struct wal_end *end,
    struct box_err *err);
/* Close without writing anything that was not taken. NULL is allowed. */
void wal_close(struct wal *w);

/* Append a record; its offset is wal_next before the call. -1 when there is no memory: nothing
 * changed. */
int wal_append(struct wal *w, enum wal_kind kind, int64_t ts, sv body, struct box_err *err);
uint64_t wal_next(const struct wal *w);
/* Bytes appended and not yet taken. */
size_t wal_pending(const struct wal *w);
/* Take what was appended so far for the next wal_write. Returns the offset behind it: what will
 * be durable after a wal_write that syncs. */
uint64_t wal_take(struct wal *w);

/* Write what was taken; with sync, return only when it and everything before it is durable. */
int wal_write(struct wal *w, bool sync, struct box_err *err);
/* Records below this offset are durable. Any thread. */
uint64_t wal_durable(const struct wal *w);
/* Number of syncs of records so far. Any thread. */
uint64_t wal_syncs(const struct wal *w);

/* Is it time to make the next segment ahead? Any thread; then call wal_prepare, on a helper
 * thread, since it writes a whole segment of zeros. A failure is not final: the writer tries
 * again when it needs the segment. */
bool wal_wants_spare(const struct wal *w);
int wal_prepare(struct wal *w, struct box_err *err);
/* Drop segments that hold only records below `offset`. Any one thread, also while another
 * writes. Returns the new base, or -1. */
int wal_prune(struct wal *w, uint64_t offset, uint64_t *base, struct box_err *err);
