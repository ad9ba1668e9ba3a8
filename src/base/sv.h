/* sv: a borrowed view of bytes. It owns nothing and ends nowhere in particular: no NUL is
 * assumed, so bytes from outside can be held, cut and compared without pointer arithmetic.
 *
 * Depends on nothing. A view is valid as long as the storage it was taken from. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct sv {
	const char *p;
	size_t n;
} sv;

/* A view of a string literal. */
#define SV(lit) ((sv){ "" lit, sizeof(lit) - 1 })
/* The same where a constant expression is needed (static tables). */
#define SV_INIT(lit)                                                                               \
	{                                                                                          \
		"" lit, sizeof(lit) - 1                                                            \
	}
/* printf("%.*s", SV_ARG(v)): only for text of our own; hostile text goes through
 * buf_put_escaped. */
#define SV_FMT    "%.*s"
#define SV_ARG(s) (int)((s).n > INT32_MAX ? INT32_MAX : (s).n), ((s).p != NULL ? (s).p : "")

/* View of a C string; NULL gives the empty view. */
static inline sv sv_c(const char *s)
{
	return (sv){ s, s != NULL ? strlen(s) : 0 };
}

static inline bool sv_eq(sv a, sv b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Order by bytes, a prefix before its extension. */
static inline int sv_cmp(sv a, sv b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int c = n != 0 ? memcmp(a.p, b.p, n) : 0;

	if (c != 0)
		return c;
	return a.n < b.n ? -1 : a.n > b.n;
}

static inline bool sv_starts(sv s, sv prefix)
{
	return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

static inline bool sv_ends(sv s, sv suffix)
{
	return s.n >= suffix.n &&
	       (suffix.n == 0 || memcmp(s.p + (s.n - suffix.n), suffix.p, suffix.n) == 0);
}

/* Bytes [from, from + n), clipped to the view. */
static inline sv sv_sub(sv s, size_t from, size_t n)
{
	if (from > s.n)
		from = s.n;
	if (n > s.n - from)
		n = s.n - from;
	return (sv){ s.p != NULL ? s.p + from : NULL, n };
}

/* Split at the first c. false: there is no c, and head is everything. */
static inline bool sv_cut(sv s, char c, sv *head, sv *tail)
{
	const char *q = s.n != 0 ? memchr(s.p, c, s.n) : NULL;

	if (q == NULL) {
		*head = s;
		*tail = (sv){ NULL, 0 };
		return false;
	}
	*head = (sv){ s.p, (size_t)(q - s.p) };
	*tail = (sv){ q + 1, s.n - head->n - 1 };
	return true;
}

/* Index of the first c, or -1. */
ptrdiff_t sv_find(sv s, char c);
/* Index of the last c, or -1. */
ptrdiff_t sv_rfind(sv s, char c);
/* Index of the first occurrence of needle, or -1. An empty needle is found at 0. */
ptrdiff_t sv_find_sv(sv s, sv needle);
/* ASCII case-insensitive equality (header names, hosts). */
bool sv_eq_nocase(sv a, sv b);
/* Without the ASCII white space (space, tab, CR, LF, VT, FF) at both ends. */
sv sv_trim(sv s);
/* Does the view hold a NUL or another control byte (< 0x20 or 0x7f)? Names that will be dialled,
 * opened or executed must not. */
bool sv_has_ctl(sv s);
/* Is it well-formed UTF-8 (RFC 3629: no overlong form, no surrogate, at most U+10FFFF)? */
bool sv_is_utf8(sv s);
/* The UTF-8 of a code point at out, which has room for 4 bytes; returns how many (RFC 3629).
 * Surrogates are encoded like the others: who takes code points from outside refuses them first.
 * What is beyond U+10FFFF becomes U+FFFD. */
size_t utf8_put(char *out, uint32_t cp);

/* Parse a whole number that is all of s: optional '-' (only if min < 0), then digits of base (2 to
 * 36), no blanks, no '+'. False when it is malformed or outside [min, max]; *out is then
 * untouched. */
bool sv_to_i64(sv s, int base, int64_t min, int64_t max, int64_t *out);
/* The same for unsigned numbers; no sign at all. */
bool sv_to_u64(sv s, int base, uint64_t max, uint64_t *out);

/* Checked sums and products of sizes. false on overflow. */
static inline bool add_sz(size_t a, size_t b, size_t *r)
{
	return !__builtin_add_overflow(a, b, r);
}
static inline bool mul_sz(size_t a, size_t b, size_t *r)
{
	return !__builtin_mul_overflow(a, b, r);
}
