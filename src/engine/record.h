/* record: the bytes of a log segment. A segment is a file of fixed size, written with zeros
 * beforehand, that starts with a header block and then holds records one behind the other, each
 * aligned to 8 bytes; zeros follow the last one. Integers are big-endian.
 *
 *   segment header, one block of WAL_SEG_HDR bytes
 *       0  magic "DWLOG\r\n\x1a"
 *       8  u32 format version
 *      12  u32 CRC-32C over the block with this field zero
 *      16  store id: 16 random bytes
 *      32  u64 offset of the first record
 *      40  u64 size of the file
 *      48  SHA-256 of the record before the first
 *   record
 *       0  u32 length of the body, 1 .. WAL_BODY_MAX
 *       4  u32 CRC-32C over the store id, bytes 0..3, and 8..end with the padding
 *       8  u64 offset: number of this record in the store
 *      16  i64 stamp, ns since 1970
 *      24  u64 number of records known durable when it was written
 *      32  u8 kind, u8 flags, 6 bytes zero
 *      40  SHA-256 of the record before (whole, with its padding)
 *      72  body, padded with zeros to 8 bytes
 *
 * The check sum finds torn writes and rot; the hash chain makes a record that was put in, left
 * out or changed by hand visible; the durable field tells a torn tail (nobody was told about it)
 * from lost history (somebody was). The store id is part of the check sum so that bytes which an
 * agent gets into an event cannot pass for a record. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/sv.h"

#define WAL_VERSION  1
#define WAL_SEG_HDR  ((size_t)4096)
#define WAL_REC_HDR  ((size_t)72)
#define WAL_BODY_MAX ((size_t)64 * 1024 * 1024)
#define WAL_HASH     32
#define WAL_ID       16

/* Numbers are stored: never renumber. */
enum wal_kind {
	WAL_EVENT = 1,   /* an event and its verdict */
	WAL_INSTALL = 2, /* a whole policy set, and which rules go on with which history */
	WAL_CLOCK = 3    /* the wall clock jumped */
};

struct wal_seg {
	uint8_t id[WAL_ID];
	uint64_t first;
	uint64_t size;
	uint8_t prev[WAL_HASH];
};

struct wal_rec {
	uint64_t offset;
	int64_t ts;
	uint64_t durable;
	uint8_t kind; /* enum wal_kind, or one of a later version */
	uint8_t flags;
	sv body;
	const uint8_t *prev; /* WAL_HASH bytes */
	sv whole; /* the record with header and padding: what the next one's hash covers */
};

/* Bytes of a record whose body has n bytes. */
static inline size_t wal_rec_size(size_t n)
{
	return (WAL_REC_HDR + n + 7) & ~(size_t)7;
}

/* Fill a block of WAL_SEG_HDR bytes. */
void wal_seg_put(uint8_t *block, const struct wal_seg *s);
/* 0, or -1 with *why a static text. */
int wal_seg_get(sv block, struct wal_seg *out, const char **why);

/* What the store id adds to every check sum. */
uint32_t wal_seed(const uint8_t id[WAL_ID]);
/* Append one record to b; r->whole is ignored. Its bytes are the last wal_rec_size(body.n) ones
 * when buf_ok. */
void wal_rec_put(struct buf *b, uint32_t seed, const struct wal_rec *r);

enum wal_found {
	WAL_FOUND, /* a record with a right check sum */
	WAL_END,   /* zeros where a record would start */
	WAL_BAD    /* neither: *why is a static text */
};
/* Look at the record that starts at the front of bytes. Views borrow from bytes. */
enum wal_found wal_rec_get(sv bytes, uint32_t seed, struct wal_rec *out, const char **why);
/* The same for bytes that wal_rec_get found to be one, without looking again. */
void wal_rec_view(sv bytes, struct wal_rec *out);
