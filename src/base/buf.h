/* buf: a growing byte buffer with a hard maximum. Reaching the maximum, or having no memory, is
 * sticky: every later put is ignored and buf_ok() is false, so a writer checks once at the end.
 * Integers are big-endian on the wire. rd.h is the reading side. Zeroed on free, since some buffers
 * hold secrets. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sv.h"

struct buf {
	uint8_t *p;
	size_t n;   /* bytes in use */
	size_t cap; /* bytes allocated */
	size_t max; /* never more than this */
	bool bad;   /* a put did not fit */
};

#define BUF_MAX_DEFAULT ((size_t)1 << 20)

/* An empty buffer that may grow to max bytes; allocates nothing yet. */
static inline struct buf buf_with(size_t max)
{
	return (struct buf){ .max = max };
}
/* Free and zero the storage; the buffer is empty and usable again with the same max. */
void buf_fini(struct buf *b);
#define AUTO_BUF __attribute__((cleanup(buf_fini))) struct buf
/* Forget the content, keep the storage; clears `bad`. */
void buf_clear(struct buf *b);
/* Room for n more bytes at the end; NULL when it does not fit. Does not change n. */
uint8_t *buf_room(struct buf *b, size_t n);
/* Drop n bytes (at most all) from the front. */
void buf_drop(struct buf *b, size_t n);

void buf_put(struct buf *b, const void *p, size_t n);
void buf_put_sv(struct buf *b, sv s);
void buf_put_c(struct buf *b, const char *s);
void buf_put_byte(struct buf *b, uint8_t v);
void buf_put_u16(struct buf *b, uint16_t v);
void buf_put_u32(struct buf *b, uint32_t v);
void buf_put_u64(struct buf *b, uint64_t v);
/* u32 length, then the bytes: what rd_str reads. */
void buf_put_str(struct buf *b, sv s);
void buf_putf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Text from outside, made safe for one terminal line: control bytes, DEL, bytes that are not UTF-8,
 * C1 and bidi controls become \n, \t, \xHH or \u{HHHH}; a backslash is doubled. */
void buf_put_escaped(struct buf *b, sv s);
/* The same with backslashes as they are: for showing source text to people, not for text that is
 * read back. */
void buf_put_visible(struct buf *b, sv s);
/* A code point in UTF-8 (utf8_put). */
void buf_put_utf8(struct buf *b, uint32_t cp);
/* One word of a shell command line: as it is when no character of it is special, else in single
 * quotes (POSIX 2.2.2). */
void buf_put_shell_word(struct buf *b, sv s);
/* A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. */
void buf_put_json(struct buf *b, sv s);

static inline bool buf_ok(const struct buf *b)
{
	return !b->bad;
}
static inline sv buf_sv(const struct buf *b)
{
	return (sv){ (const char *)b->p, b->n };
}
/* NUL-terminated content, or NULL when bad. The NUL is not counted in n. */
const char *buf_cstr(struct buf *b);
