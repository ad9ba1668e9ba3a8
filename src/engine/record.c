/* Bytes of log segments and records. See record.h. */
#include "engine/record.h"

#include <string.h>

#include "base/hash.h"
#include "base/rd.h"

#include "base/ban.h"

static const char MAGIC[8] = { 'D', 'W', 'L', 'O', 'G', '\r', '\n', 0x1a };

static void put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void put64(uint8_t *p, uint64_t v)
{
	put32(p, (uint32_t)(v >> 32));
	put32(p + 4, (uint32_t)v);
}

static uint32_t seg_crc(sv block)
{
	static const char zero[4];
	uint32_t c = crc32c(0, sv_sub(block, 0, 12));

	c = crc32c(c, (sv){ zero, sizeof(zero) });
	return crc32c(c, sv_sub(block, 16, WAL_SEG_HDR - 16));
}

void wal_seg_put(uint8_t *block, const struct wal_seg *s)
{
	memset(block, 0, WAL_SEG_HDR);
	memcpy(block, MAGIC, sizeof(MAGIC));
	put32(block + 8, WAL_VERSION);
	memcpy(block + 16, s->id, WAL_ID);
	put64(block + 32, s->first);
	put64(block + 40, s->size);
	memcpy(block + 48, s->prev, WAL_HASH);
	put32(block + 12, seg_crc((sv){ (const char *)block, WAL_SEG_HDR }));
}

int wal_seg_get(sv block, struct wal_seg *out, const char **why)
{
	struct rd r = rd_of(block.p, block.n < WAL_SEG_HDR ? block.n : WAL_SEG_HDR);
	uint32_t version, crc;
	sv magic, id, prev;

	if (block.n < WAL_SEG_HDR) {
		*why = "shorter than its header";
		return -1;
	}
	magic = rd_bytes(&r, sizeof(MAGIC));
	if (!sv_eq(magic, (sv){ MAGIC, sizeof(MAGIC) })) {
		*why = "not a log segment";
		return -1;
	}
	version = rd_u32(&r);
	crc = rd_u32(&r);
	if (crc != seg_crc(sv_sub(block, 0, WAL_SEG_HDR))) {
		*why = "the header's check sum is wrong";
		return -1;
	}
	if (version != WAL_VERSION) {
		*why = "written by another version of the format";
		return -1;
	}
	id = rd_bytes(&r, WAL_ID);
	out->first = rd_u64(&r);
	out->size = rd_u64(&r);
	prev = rd_bytes(&r, WAL_HASH);
	if (id.p == NULL || prev.p == NULL) {
		*why = "shorter than its header";
		return -1;
	}
	memcpy(out->id, id.p, WAL_ID);
	memcpy(out->prev, prev.p, WAL_HASH);
	if (out->size < WAL_SEG_HDR || out->size > UINT64_C(1) << 40) {
		*why = "the header gives an impossible size";
		return -1;
	}
	return 0;
}

uint32_t wal_seed(const uint8_t id[WAL_ID])
{
	return crc32c(0, (sv){ (const char *)id, WAL_ID });
}

static uint32_t rec_crc(uint32_t seed, sv whole)
{
	return crc32c(crc32c(seed, sv_sub(whole, 0, 4)), sv_sub(whole, 8, whole.n - 8));
}

void wal_rec_put(struct buf *b, uint32_t seed, const struct wal_rec *r)
{
	size_t n = wal_rec_size(r->body.n);
	uint8_t *p = buf_room(b, n);

	if (p == NULL)
		return;
	put32(p, (uint32_t)r->body.n);
	put64(p + 8, r->offset);
	put64(p + 16, (uint64_t)r->ts);
	put64(p + 24, r->durable);
	p[32] = r->kind;
	p[33] = r->flags;
	memset(p + 34, 0, 6);
	memcpy(p + 40, r->prev, WAL_HASH);
	memcpy(p + WAL_REC_HDR, r->body.p, r->body.n);
	memset(p + WAL_REC_HDR + r->body.n, 0, n - WAL_REC_HDR - r->body.n);
	put32(p + 4, rec_crc(seed, (sv){ (const char *)p, n }));
	b->n += n;
}

static bool all_zero(sv s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != 0)
			return false;
	return true;
}

/* Everything behind the check sum; r is at it. Returns the six bytes that are zero. */
static sv get_fields(struct rd *r, uint32_t n, struct wal_rec *out)
{
	sv zero;

	out->offset = rd_u64(r);
	out->ts = (int64_t)rd_u64(r);
	out->durable = rd_u64(r);
	out->kind = rd_u8(r);
	out->flags = rd_u8(r);
	zero = rd_bytes(r, 6);
	out->prev = (const uint8_t *)rd_bytes(r, WAL_HASH).p;
	out->body = rd_bytes(r, n);
	return zero;
}

enum wal_found wal_rec_get(sv bytes, uint32_t seed, struct wal_rec *out, const char **why)
{
	struct rd r = rd_of(bytes.p, bytes.n);
	uint32_t n, crc;

	if (bytes.n < WAL_REC_HDR) {
		*why = "cut short";
		return all_zero(bytes) ? WAL_END : WAL_BAD;
	}
	n = rd_u32(&r);
	if (n == 0) {
		*why = "the length is missing";
		return all_zero(sv_sub(bytes, 0, WAL_REC_HDR)) ? WAL_END : WAL_BAD;
	}
	if (n > WAL_BODY_MAX || wal_rec_size(n) > bytes.n) {
		*why = "the length is impossible";
		return WAL_BAD;
	}
	out->whole = sv_sub(bytes, 0, wal_rec_size(n));
	crc = rd_u32(&r);
	if (crc != rec_crc(seed, out->whole)) {
		*why = "the check sum is wrong";
		return WAL_BAD;
	}
	if (!all_zero(get_fields(&r, n, out))) {
		*why = "written by a later version of the format";
		return WAL_BAD;
	}
	return WAL_FOUND;
}

void wal_rec_view(sv bytes, struct wal_rec *out)
{
	struct rd r = rd_of(bytes.p, bytes.n);
	uint32_t n = rd_u32(&r);

	out->whole = sv_sub(bytes, 0, wal_rec_size(n));
	(void)rd_u32(&r); /* check sum */
	(void)get_fields(&r, n, out);
}
