/* Shell patterns. See pattern.h.
 *
 * The matcher walks pattern and text together; `*` remembers one place to come back to, which is
 * enough for patterns without extended groups (the last star decides). Groups recurse, with a depth
 * and a
 * step limit, so that no pattern costs more than a fixed amount of work. */
#include "shell/pattern.h"

#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "base/ban.h"

#define STEPS_MAX 20000000u
#define DEPTH_MAX 200

struct m {
	unsigned flags;
	unsigned steps;
	int depth;
};

size_t sh_utf8_step(sv s, uint32_t *c)
{
	unsigned char b = (unsigned char)s.p[0];
	size_t n = b < 0x80 ? 1 : b < 0xc2 ? 0 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf5 ? 4 : 0;

	if (n <= 1 || n > s.n || !sv_is_utf8((sv){ s.p, n })) {
		*c = b;
		return 1;
	}
	*c = b & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++)
		*c = *c << 6 | ((unsigned char)s.p[i] & 0x3fu);
	return n;
}

size_t sh_utf8_len(sv s)
{
	size_t n = 0;
	uint32_t c;

	while (s.n != 0) {
		size_t k = sh_utf8_step(s, &c);

		s.p += k;
		s.n -= k;
		n++;
	}
	return n;
}

uint32_t sh_fold(uint32_t c)
{
	if (c < 0x80)
		return c >= 'A' && c <= 'Z' ? c + 32 : c;
	return (uint32_t)towlower((wint_t)c);
}

static bool same(const struct m *m, uint32_t a, uint32_t b)
{
	return a == b || ((m->flags & SH_PAT_NOCASE) != 0 && sh_fold(a) == sh_fold(b));
}

static bool in_class(const struct m *m, sv name, uint32_t c)
{
	char buf[16];
	wctype_t t;

	if (name.n >= sizeof(buf))
		return false;
	memcpy(buf, name.p, name.n);
	buf[name.n] = '\0';
	if ((m->flags & SH_PAT_NOCASE) != 0 &&
	    (strcmp(buf, "upper") == 0 || strcmp(buf, "lower") == 0))
		memcpy(buf, "alpha", 6);
	if (strcmp(buf, "word") == 0)
		return c == '_' || iswalnum((wint_t)c) != 0;
	if (strcmp(buf, "ascii") == 0)
		return c < 0x80;
	t = wctype(buf);
	return t != 0 && iswctype((wint_t)c, t) != 0;
}

/* One character inside brackets at p[*i], escapes and [.x.] resolved. */
static uint32_t bracket_char(sv p, size_t *i)
{
	uint32_t c;

	if (p.p[*i] == '[' && *i + 1 < p.n && (p.p[*i + 1] == '.' || p.p[*i + 1] == '=')) {
		char kind = p.p[*i + 1];
		sv rest = sv_sub(p, *i + 2, p.n);

		for (size_t k = 1; k + 1 < rest.n; k++) {
			if (rest.p[k] == kind && rest.p[k + 1] == ']') {
				(void)sh_utf8_step(rest, &c);
				*i += 2 + k + 2;
				return c;
			}
		}
	}
	if (p.p[*i] == '\\' && *i + 1 < p.n)
		(*i)++;
	*i += sh_utf8_step(sv_sub(p, *i, p.n), &c);
	return c;
}

/* Is there a complete bracket expression at p.p[0] == '['? Returns its length, 0 when it is an
 * ordinary '['. With m != NULL also whether it matches c. */
static size_t bracket(const struct m *m, sv p, uint32_t c, bool *hit)
{
	size_t i = 1;
	bool negate = false, found = false, first = true;

	if (i < p.n && (p.p[i] == '!' || p.p[i] == '^')) {
		negate = true;
		i++;
	}
	for (;; first = false) {
		uint32_t lo, hi;

		if (i >= p.n)
			return 0;
		if (p.p[i] == ']' && !first)
			break;
		if (p.p[i] == '[' && i + 1 < p.n && p.p[i + 1] == ':') {
			size_t e = i + 2;

			while (
			    e + 1 < p.n && !(p.p[e] == ':' && p.p[e + 1] == ']') && p.p[e] != ']')
				e++;
			if (e + 1 < p.n && p.p[e] == ':') {
				if (m != NULL && in_class(m, sv_sub(p, i + 2, e - i - 2), c))
					found = true;
				i = e + 2;
				continue;
			}
		}
		lo = bracket_char(p, &i);
		hi = lo;
		if (i + 1 < p.n && p.p[i] == '-' && p.p[i + 1] != ']') {
			i++;
			hi = bracket_char(p, &i);
		}
		if (m == NULL)
			continue;
		if (c >= lo && c <= hi)
			found = true;
		else if ((m->flags & SH_PAT_NOCASE) != 0 &&
		         ((sh_fold(c) >= lo && sh_fold(c) <= hi) ||
		             ((uint32_t)towupper((wint_t)c) >= lo &&
		                 (uint32_t)towupper((wint_t)c) <= hi)))
			found = true;
	}
	if (hit != NULL)
		*hit = found != negate;
	return i + 1;
}

/* Length of the group "(...)" whose '(' is p.p[0]; 0 when it does not close. */
static size_t group_len(sv p)
{
	int depth = 0;

	for (size_t i = 0; i < p.n; i++) {
		if (p.p[i] == '\\') {
			i++;
		} else if (p.p[i] == '[') {
			size_t k = bracket(NULL, sv_sub(p, i, p.n), 0, NULL);

			if (k != 0)
				i += k - 1;
		} else if (p.p[i] == '(') {
			depth++;
		} else if (p.p[i] == ')' && --depth == 0) {
			return i + 1;
		}
	}
	return 0;
}

/* The next alternative of "a|b|c" from *at; false at the end. */
static bool alternative(sv body, size_t *at, sv *out)
{
	int depth = 0;
	size_t i = *at;

	if (i > body.n)
		return false;
	for (; i < body.n; i++) {
		if (body.p[i] == '\\') {
			i++;
		} else if (body.p[i] == '[') {
			size_t k = bracket(NULL, sv_sub(body, i, body.n), 0, NULL);

			if (k != 0)
				i += k - 1;
		} else if (body.p[i] == '(') {
			depth++;
		} else if (body.p[i] == ')') {
			depth--;
		} else if (body.p[i] == '|' && depth == 0) {
			break;
		}
	}
	if (i > body.n)
		i = body.n;
	*out = sv_sub(body, *at, i - *at);
	*at = i + 1;
	return true;
}

static bool match(struct m *m, sv p, sv t);

static bool any_alternative(struct m *m, sv body, sv t)
{
	size_t at = 0;
	sv alt;

	while (alternative(body, &at, &alt)) {
		if (match(m, alt, t))
			return true;
	}
	return false;
}

/* kind(body)rest against t. */
static bool group(struct m *m, char kind, sv body, sv rest, sv t)
{
	if ((kind == '?' || kind == '*') && match(m, rest, t))
		return true;
	for (size_t k = 0; k <= t.n; k++) {
		sv head = sv_sub(t, 0, k), tail = sv_sub(t, k, t.n);
		bool hit;

		if (m->steps++ > STEPS_MAX)
			return false;
		hit = any_alternative(m, body, head);
		if (kind == '!')
			hit = !hit;
		if (!hit)
			continue;
		if (match(m, rest, tail))
			return true;
		if ((kind == '*' || kind == '+') && k > 0 && group(m, '*', body, rest, tail))
			return true;
	}
	return false;
}

static bool is_group(const struct m *m, sv p, size_t *len)
{
	char c = p.p[0];

	if ((m->flags & SH_PAT_EXTGLOB) == 0 || p.n < 2 || p.p[1] != '(' ||
	    (c != '?' && c != '*' && c != '+' && c != '@' && c != '!'))
		return false;
	*len = group_len(sv_sub(p, 1, p.n));
	return *len != 0;
}

static sv skip(sv s, size_t n)
{
	return sv_sub(s, n, s.n);
}

/* One element of the pattern (not a star, not a group) against the front of t; its lengths. */
static bool element(struct m *m, sv p, sv t, size_t *pn, size_t *tn)
{
	uint32_t c, d;
	bool hit;

	if (t.n == 0)
		return false;
	*tn = sh_utf8_step(t, &c);
	if (p.p[0] == '?') {
		*pn = 1;
		return true;
	}
	if (p.p[0] == '[') {
		*pn = bracket(m, p, c, &hit);
		if (*pn != 0)
			return hit;
	}
	if (p.p[0] == '\\' && p.n > 1) {
		*pn = 1 + sh_utf8_step(skip(p, 1), &d);
		return same(m, c, d);
	}
	*pn = sh_utf8_step(p, &d);
	return same(m, c, d);
}

static bool match_here(struct m *m, sv p, sv t)
{
	sv star_p = { NULL, 0 }, star_t = { NULL, 0 };
	bool star = false;

	for (;;) {
		size_t pn, tn, glen;

		if (m->steps++ > STEPS_MAX)
			return false;
		if (p.n == 0) {
			if (t.n == 0)
				return true;
		} else if (is_group(m, p, &glen)) {
			sv body = sv_sub(p, 2, glen - 2);

			if (group(m, p.p[0], body, skip(p, 1 + glen), t))
				return true;
		} else if (p.p[0] == '*') {
			star = true;
			p = skip(p, 1);
			star_p = p;
			star_t = t;
			continue;
		} else if (element(m, p, t, &pn, &tn)) {
			p = skip(p, pn);
			t = skip(t, tn);
			continue;
		}
		if (!star || star_t.n == 0)
			return false;
		{
			uint32_t c;

			star_t = skip(star_t, sh_utf8_step(star_t, &c));
		}
		p = star_p;
		t = star_t;
	}
}

static bool match(struct m *m, sv p, sv t)
{
	bool r;

	if (m->depth >= DEPTH_MAX)
		return false;
	m->depth++;
	r = match_here(m, p, t);
	m->depth--;
	return r;
}

bool sh_pat_match(sv pattern, sv text, unsigned flags)
{
	struct m m = { .flags = flags };

	if ((flags & SH_PAT_PERIOD) != 0 && text.n != 0 && text.p[0] == '.' &&
	    !(pattern.n != 0 && pattern.p[0] == '.') &&
	    !(pattern.n > 1 && pattern.p[0] == '\\' && pattern.p[1] == '.'))
		return false;
	return match(&m, pattern, text);
}

ptrdiff_t sh_pat_prefix(sv pattern, sv text, bool longest, unsigned flags)
{
	for (size_t i = 0; i <= text.n; i++) {
		size_t k = longest ? text.n - i : i;

		if (k < text.n && ((unsigned char)text.p[k] & 0xc0) == 0x80)
			continue; /* not between the bytes of a character */
		if (sh_pat_match(pattern, sv_sub(text, 0, k), flags))
			return (ptrdiff_t)k;
	}
	return -1;
}

ptrdiff_t sh_pat_suffix(sv pattern, sv text, bool longest, unsigned flags)
{
	for (size_t i = 0; i <= text.n; i++) {
		size_t k = longest ? i : text.n - i;

		if (k < text.n && ((unsigned char)text.p[k] & 0xc0) == 0x80)
			continue;
		if (sh_pat_match(pattern, sv_sub(text, k, text.n), flags))
			return (ptrdiff_t)k;
	}
	return -1;
}

bool sh_pat_find(sv pattern, sv text, size_t from, size_t *start, size_t *end, unsigned flags)
{
	/* A pattern of ordinary characters (the usual ${x//a/b}) is a plain search. */
	if (!sh_pat_is_magic(pattern, flags) && (flags & SH_PAT_NOCASE) == 0 &&
	    sv_find(pattern, '\\') < 0) {
		ptrdiff_t at = pattern.n != 0 ? sv_find_sv(skip(text, from), pattern) : -1;

		if (at < 0)
			return false;
		*start = from + (size_t)at;
		*end = *start + pattern.n;
		return true;
	}
	for (size_t i = from; i <= text.n; i++) {
		ptrdiff_t n;

		if (i < text.n && ((unsigned char)text.p[i] & 0xc0) == 0x80)
			continue;
		n = sh_pat_prefix(pattern, skip(text, i), true, flags);
		if (n > 0) {
			*start = i;
			*end = i + (size_t)n;
			return true;
		}
	}
	return false;
}

bool sh_pat_is_magic(sv p, unsigned flags)
{
	for (size_t i = 0; i < p.n; i++) {
		if (p.p[i] == '\\')
			i++;
		else if (p.p[i] == '*' || p.p[i] == '?')
			return true;
		else if (p.p[i] == '[' && bracket(NULL, skip(p, i), 0, NULL) != 0)
			return true;
		else if ((flags & SH_PAT_EXTGLOB) != 0 && i + 1 < p.n && p.p[i + 1] == '(' &&
		         (p.p[i] == '+' || p.p[i] == '@' || p.p[i] == '!'))
			return true;
	}
	return false;
}

uint32_t sh_upper(uint32_t c)
{
	if (c < 0x80)
		return c >= 'a' && c <= 'z' ? c - 32 : c;
	return (uint32_t)towupper((wint_t)c);
}
