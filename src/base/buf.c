/* Growing byte buffers with a maximum. See buf.h. */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ban.h"

void buf_fini(struct buf *b)
{
	if (b->p != NULL) {
		explicit_bzero(b->p, b->cap);
		free(b->p);
	}
	*b = (struct buf){ .max = b->max };
}

void buf_clear(struct buf *b)
{
	b->n = 0;
	b->bad = false;
}

uint8_t *buf_room(struct buf *b, size_t n)
{
	size_t need, cap;
	uint8_t *p;

	if (b->bad || !add_sz(b->n, n, &need) || need > b->max) {
		b->bad = true;
		return NULL;
	}
	if (need <= b->cap && b->p != NULL)
		return b->p + b->n;
	cap = b->cap != 0 ? b->cap : 64;
	while (cap < need)
		cap = cap > b->max / 2 ? b->max : cap * 2;
	if (cap < 1)
		cap = 1;
	/* Not realloc: the old bytes may be secret and must be zeroed. */
	p = malloc(cap);
	if (p == NULL) {
		b->bad = true;
		return NULL;
	}
	if (b->p != NULL) {
		memcpy(p, b->p, b->n);
		explicit_bzero(b->p, b->cap);
		free(b->p);
	}
	b->p = p;
	b->cap = cap;
	return b->p + b->n;
}

void buf_drop(struct buf *b, size_t n)
{
	if (n > b->n)
		n = b->n;
	if (n != 0 && n < b->n)
		memmove(b->p, b->p + n, b->n - n);
	b->n -= n;
}

void buf_put(struct buf *b, const void *p, size_t n)
{
	uint8_t *q;

	if (n == 0)
		return;
	q = buf_room(b, n);
	if (q == NULL)
		return;
	memcpy(q, p, n);
	b->n += n;
}

void buf_put_sv(struct buf *b, sv s)
{
	buf_put(b, s.p, s.n);
}

void buf_put_c(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void buf_put_byte(struct buf *b, uint8_t v)
{
	buf_put(b, &v, 1);
}

void buf_put_u16(struct buf *b, uint16_t v)
{
	uint8_t d[2] = { (uint8_t)(v >> 8), (uint8_t)v };

	buf_put(b, d, sizeof(d));
}

void buf_put_u32(struct buf *b, uint32_t v)
{
	uint8_t d[4] = { (uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v };

	buf_put(b, d, sizeof(d));
}

void buf_put_u64(struct buf *b, uint64_t v)
{
	buf_put_u32(b, (uint32_t)(v >> 32));
	buf_put_u32(b, (uint32_t)v);
}

void buf_put_str(struct buf *b, sv s)
{
	if (s.n > UINT32_MAX) {
		b->bad = true;
		return;
	}
	buf_put_u32(b, (uint32_t)s.n);
	buf_put_sv(b, s);
}

void buf_putf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	char small[256];
	int n;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->bad = true;
		return;
	}
	if ((size_t)n < sizeof(small)) {
		buf_put(b, small, (size_t)n);
		return;
	}
	uint8_t *q = buf_room(b, (size_t)n + 1);

	if (q == NULL)
		return;
	va_start(ap, fmt);
	(void)vsnprintf((char *)q, (size_t)n + 1, fmt, ap); /* measured just above */
	va_end(ap);
	b->n += (size_t)n;
}

const char *buf_cstr(struct buf *b)
{
	uint8_t *q = buf_room(b, 1);

	if (q == NULL)
		return NULL;
	*q = 0;
	return (const char *)b->p;
}

/* Length of the well-formed UTF-8 sequence at s, with its code point; 0 when there is none. */
static size_t utf8_at(sv s, uint32_t *cp)
{
	unsigned char c = (unsigned char)s.p[0];
	size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;

	if (s.n < n || !sv_is_utf8(sv_sub(s, 0, n)))
		return 0;
	*cp = n == 1 ? c : n == 2 ? c & 0x1fU : n == 3 ? c & 0x0fU : c & 0x07U;
	for (size_t i = 1; i < n; i++)
		*cp = *cp << 6 | ((unsigned char)s.p[i] & 0x3fU);
	return n;
}

/* C1 controls, line and paragraph separators, bidi overrides, the byte-order mark: they can change
 * how the rest of a line looks. */
static bool is_tricky(uint32_t cp)
{
	return (cp >= 0x80 && cp <= 0x9f) || cp == 0x061c || (cp >= 0x200b && cp <= 0x200f) ||
	       (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2060 && cp <= 0x206f) || cp == 0xfeff;
}

static void put_escaped(struct buf *b, sv s, bool backslash)
{
	while (s.n != 0) {
		unsigned char c = (unsigned char)s.p[0];
		uint32_t cp = 0;
		size_t n = utf8_at(s, &cp);

		if (n == 0) {
			buf_putf(b, "\\x%02x", c);
			n = 1;
		} else if (c == '\\') {
			buf_put_c(b, backslash ? "\\\\" : "\\");
		} else if (c == '\n') {
			buf_put_c(b, "\\n");
		} else if (c == '\t') {
			buf_put_c(b, "\\t");
		} else if (c == '\r') {
			buf_put_c(b, "\\r");
		} else if (cp < 0x20 || cp == 0x7f) {
			buf_putf(b, "\\x%02x", c);
		} else if (is_tricky(cp)) {
			buf_putf(b, "\\u{%x}", cp);
		} else {
			buf_put(b, s.p, n);
		}
		s = sv_sub(s, n, s.n);
	}
}

void buf_put_escaped(struct buf *b, sv s)
{
	put_escaped(b, s, true);
}

void buf_put_visible(struct buf *b, sv s)
{
	put_escaped(b, s, false);
}

void buf_put_utf8(struct buf *b, uint32_t cp)
{
	uint8_t *q = buf_room(b, 4);

	if (q != NULL)
		b->n += utf8_put((char *)q, cp);
}

static bool is_plain_word(sv s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    (c == '\0' || strchr("_-./:=@%+,", c) == NULL))
			return false;
	}
	return s.n != 0;
}

void buf_put_shell_word(struct buf *b, sv s)
{
	if (is_plain_word(s)) {
		buf_put_sv(b, s);
		return;
	}
	buf_put_byte(b, '\'');
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\'')
			buf_put_c(b, "'\\''");
		else
			buf_put_byte(b, (uint8_t)s.p[i]);
	}
	buf_put_byte(b, '\'');
}

void buf_put_json(struct buf *b, sv s)
{
	buf_put_byte(b, '"');
	while (s.n != 0) {
		unsigned char c = (unsigned char)s.p[0];
		uint32_t cp = 0;
		size_t n = utf8_at(s, &cp);

		if (n == 0) {
			buf_put_c(b, "\xef\xbf\xbd");
			n = 1;
		} else if (c == '"' || c == '\\') {
			buf_put_byte(b, '\\');
			buf_put_byte(b, c);
		} else if (c == '\n') {
			buf_put_c(b, "\\n");
		} else if (c == '\t') {
			buf_put_c(b, "\\t");
		} else if (c == '\r') {
			buf_put_c(b, "\\r");
		} else if (c < 0x20) {
			buf_putf(b, "\\u%04x", c);
		} else {
			buf_put(b, s.p, n);
		}
		s = sv_sub(s, n, s.n);
	}
	buf_put_byte(b, '"');
}
