/* scan: read the log of a store from its files, check everything, and say where it ends. Used to
 * open a store, by `dogwood fsck`, and to look into the log of a live store.
 *
 * What is damage and what is a torn tail: a record whose check sum is wrong, or zeros where a
 * record should be, end the log if nothing shows that a later record was ever acknowledged. What
 * shows it: the mark file, the durable field of a later intact record, a later segment. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "engine/record.h"

#define WAL_NAME_MAX 32
#define WAL_MARK     "durable" /* number of records known durable, rewritten after each sync */
#define WAL_MARK_LEN 28

struct wal_end {
	bool any;                /* there is at least one segment */
	uint8_t id[WAL_ID];      /* of the store */
	uint64_t base;           /* offset of the first record that is there */
	uint64_t next;           /* offset of the next record */
	int64_t last_ts;         /* stamp of the newest record read; INT64_MIN: none */
	uint8_t chain[WAL_HASH]; /* hash of the newest record */
	uint64_t durable;        /* what the mark file says; 0 without one */
	unsigned segments;       /* files */
	char name[WAL_NAME_MAX]; /* of the newest segment */
	uint64_t pos;            /* where its next record goes */
	uint64_t size;           /* its size by its header */
	uint64_t file_size;      /* and in fact: less when somebody cut it */
	uint64_t torn;           /* bytes after pos that are not zero, up to the last such byte */
	bool tail;               /* torn, or cut short: to be repaired before writing */
};

enum wal_scan_mode {
	WAL_SCAN_OPEN, /* the store is ours: damage is an error */
	WAL_SCAN_LIVE  /* somebody may be writing: what is not there yet is the end */
};

/* One intact record, in order. Not 0 stops the scan with *err set. */
typedef int (*wal_rec_fn)(void *arg, const struct wal_rec *r, struct box_err *err);

/* Read all segments of the folder that may hold records from offset `from` on; call fn (may be
 * NULL) for those. When records below `from` are in the same segment, they are checked and
 * passed over. fn is called on the caller's thread; another one may read ahead of it. A segment
 * that a live store dropped meanwhile is passed over. -1: BOX_ECORRUPT names file and byte; *end
 * then says nothing. */
int wal_scan(int dir, uint64_t from, enum wal_scan_mode mode, wal_rec_fn fn, void *arg,
    struct wal_end *end, struct box_err *err);

/* "log-<16 hex digits>". */
void wal_seg_name(uint64_t first, char out[WAL_NAME_MAX]);
/* Names of all segments, ascending, and their number; free(*out). */
int wal_seg_list(int dir, uint64_t **out, size_t *n, struct box_err *err);
void wal_mark_put(uint8_t out[WAL_MARK_LEN], const uint8_t id[WAL_ID], uint64_t durable);

/* SHA-256 of records, one after the other, without a set-up each time. */
struct wal_hasher {
	struct evp_md_ctx_st *ctx;
	struct evp_md_st *md;
};
int wal_hasher_init(struct wal_hasher *h, struct box_err *err);
void wal_hasher_fini(struct wal_hasher *h);
/* 0, or -1 when libcrypto fails (no memory). */
int wal_hash(struct wal_hasher *h, sv whole, uint8_t out[WAL_HASH]);
