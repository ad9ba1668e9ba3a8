/* rd: read fixed fields out of bytes from outside. The error is sticky: read everything, then ask
 * rd_done() once. Integers are big-endian (buf.h writes them). Views borrow from the storage under
 * the reader. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sv.h"

struct rd {
	const uint8_t *p, *end;
	bool bad;
};

static inline struct rd rd_of(const void *p, size_t n)
{
	return (struct rd){ p, n != 0 ? (const uint8_t *)p + n : p, false };
}

static inline size_t rd_left(const struct rd *r)
{
	return r->bad ? 0 : (size_t)(r->end - r->p);
}

/* n bytes as a view; the empty view, and `bad`, when fewer are left. */
static inline sv rd_bytes(struct rd *r, size_t n)
{
	sv s;

	if (r->bad || (size_t)(r->end - r->p) < n) {
		r->bad = true;
		return (sv){ NULL, 0 };
	}
	s = (sv){ (const char *)r->p, n };
	if (n != 0)
		r->p += n;
	return s;
}

static inline uint8_t rd_u8(struct rd *r)
{
	sv s = rd_bytes(r, 1);

	return s.n == 1 ? (uint8_t)s.p[0] : 0;
}

static inline uint16_t rd_u16(struct rd *r)
{
	uint16_t hi = rd_u8(r);

	return (uint16_t)(hi << 8 | rd_u8(r));
}

static inline uint32_t rd_u32(struct rd *r)
{
	uint32_t hi = rd_u16(r);

	return hi << 16 | rd_u16(r);
}

static inline uint64_t rd_u64(struct rd *r)
{
	uint64_t hi = rd_u32(r);

	return hi << 32 | rd_u32(r);
}

/* A u32 length of at most max, then that many bytes. */
static inline sv rd_str(struct rd *r, size_t max)
{
	uint32_t n = rd_u32(r);

	if (n > max) {
		r->bad = true;
		return (sv){ NULL, 0 };
	}
	return rd_bytes(r, n);
}

/* Everything was read, and well: nothing is left over. */
static inline bool rd_done(const struct rd *r)
{
	return !r->bad && r->p == r->end;
}
