/* Views of bytes: searching, trimming, numbers, UTF-8. See sv.h. Input may be hostile. */
#include "base/sv.h"

ptrdiff_t sv_find(sv s, char c)
{
	const char *q = s.n != 0 ? memchr(s.p, c, s.n) : NULL;

	return q != NULL ? q - s.p : -1;
}

ptrdiff_t sv_rfind(sv s, char c)
{
	const char *q = s.n != 0 ? memrchr(s.p, c, s.n) : NULL;

	return q != NULL ? q - s.p : -1;
}

ptrdiff_t sv_find_sv(sv s, sv needle)
{
	const char *q;

	if (needle.n == 0)
		return 0;
	if (s.n < needle.n)
		return -1;
	q = memmem(s.p, s.n, needle.p, needle.n);
	return q != NULL ? q - s.p : -1;
}

static unsigned char lower(char c)
{
	unsigned char u = (unsigned char)c;

	return u >= 'A' && u <= 'Z' ? (unsigned char)(u + 32) : u;
}

bool sv_eq_nocase(sv a, sv b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++)
		if (lower(a.p[i]) != lower(b.p[i]))
			return false;
	return true;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

sv sv_trim(sv s)
{
	while (s.n != 0 && is_blank(s.p[0]))
		s = (sv){ s.p + 1, s.n - 1 };
	while (s.n != 0 && is_blank(s.p[s.n - 1]))
		s.n--;
	return s;
}

bool sv_has_ctl(sv s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c < 0x20 || c == 0x7f)
			return true;
	}
	return false;
}

bool sv_is_utf8(sv s)
{
	size_t i = 0;

	while (i < s.n) {
		unsigned char c = (unsigned char)s.p[i];
		unsigned char lo = 0x80, hi = 0xbf;
		size_t more;

		if (c < 0x80) {
			i++;
			continue;
		}
		if (c >= 0xc2 && c <= 0xdf) {
			more = 1;
		} else if (c >= 0xe0 && c <= 0xef) {
			more = 2;
			if (c == 0xe0)
				lo = 0xa0;
			if (c == 0xed)
				hi = 0x9f;
		} else if (c >= 0xf0 && c <= 0xf4) {
			more = 3;
			if (c == 0xf0)
				lo = 0x90;
			if (c == 0xf4)
				hi = 0x8f;
		} else {
			return false;
		}
		if (s.n - i <= more)
			return false;
		for (size_t k = 1; k <= more; k++) {
			unsigned char d = (unsigned char)s.p[i + k];

			if (d < lo || d > hi)
				return false;
			lo = 0x80;
			hi = 0xbf;
		}
		i += more + 1;
	}
	return true;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'Z')
		return c - 'A' + 10;
	return 99;
}

bool sv_to_u64(sv s, int base, uint64_t max, uint64_t *out)
{
	uint64_t v = 0;

	if (s.n == 0)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		int d = digit_of(s.p[i]);

		if (d >= base || __builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)d, &v))
			return false;
	}
	if (v > max)
		return false;
	*out = v;
	return true;
}

bool sv_to_i64(sv s, int base, int64_t min, int64_t max, int64_t *out)
{
	bool minus = s.n != 0 && s.p[0] == '-';
	uint64_t u;
	int64_t v;

	if (minus && min >= 0)
		return false;
	if (!sv_to_u64(
	        minus ? sv_sub(s, 1, s.n) : s, base, (uint64_t)INT64_MAX + (minus ? 1 : 0), &u))
		return false;
	v = minus ? (int64_t)(~u + 1) : (int64_t)u;
	if (v < min || v > max)
		return false;
	*out = v;
	return true;
}

size_t utf8_put(char *out, uint32_t cp)
{
	size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;

	if (cp > 0x10ffff)
		return utf8_put(out, 0xfffd);
	if (n == 1) {
		*out = (char)cp;
		return 1;
	}
	for (size_t i = n; i-- > 1; cp >>= 6)
		out[i] = (char)(0x80 | (cp & 0x3f));
	out[0] = (char)(0xf00 >> n | cp); /* n ones, then a zero */
	return n;
}
