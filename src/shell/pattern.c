/* The pieces of shell patterns: characters and bracket expressions. See pattern.h; pattern_tree.c
 * puts them together, pattern_match.c matches. */
#include "shell/pattern.h"

#include <string.h>
#include <wchar.h>
#include <wctype.h>

#include "shell/pattern_int.h"
#include "base/ban.h"

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

bool sh_pat_same(unsigned flags, uint32_t a, uint32_t b)
{
	return a == b || ((flags & SH_PAT_NOCASE) != 0 && sh_fold(a) == sh_fold(b));
}

static bool in_class(unsigned flags, sv name, uint32_t c)
{
	char buf[16];
	wctype_t t;

	if (name.n >= sizeof(buf))
		return false;
	memcpy(buf, name.p, name.n);
	buf[name.n] = '\0';
	if ((flags & SH_PAT_NOCASE) != 0 &&
	    (strcmp(buf, "upper") == 0 || strcmp(buf, "lower") == 0))
		memcpy(buf, "alpha", 6);
	if (strcmp(buf, "word") == 0)
		return c == '_' || iswalnum((wint_t)c) != 0;
	if (strcmp(buf, "ascii") == 0)
		return c < 0x80;
	t = wctype(buf);
	return t != 0 && iswctype((wint_t)c, t) != 0;
}

/* What a bracket expression is known not to hold, so that nothing is looked for twice. */
struct seen {
	size_t no_class; /* no ":]" before this offset */
	bool no_dot, no_equals;
};

/* One character inside brackets at p[*i], escapes and [.x.] resolved. */
static uint32_t bracket_char(struct seen *seen, sv p, size_t *i)
{
	bool dot = *i + 1 < p.n && p.p[*i] == '[' && p.p[*i + 1] == '.' && !seen->no_dot;
	bool equals = *i + 1 < p.n && p.p[*i] == '[' && p.p[*i + 1] == '=' && !seen->no_equals;
	uint32_t c;

	if (dot || equals) {
		char kind = p.p[*i + 1];
		sv rest = sv_sub(p, *i + 2, p.n);

		for (size_t k = 1; k + 1 < rest.n; k++) {
			if (rest.p[k] == kind && rest.p[k + 1] == ']') {
				(void)sh_utf8_step(rest, &c);
				*i += 2 + k + 2;
				return c;
			}
		}
		seen->no_dot = seen->no_dot || dot;
		seen->no_equals = seen->no_equals || equals;
	}
	if (p.p[*i] == '\\' && *i + 1 < p.n)
		(*i)++;
	*i += sh_utf8_step(sv_sub(p, *i, p.n), &c);
	return c;
}

size_t sh_pat_bracket(unsigned flags, sv p, uint32_t c, bool *hit)
{
	size_t i = 1;
	bool negate = false, found = false, first = true;
	struct seen seen = { 0 };

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
		if (p.p[i] == '[' && i + 1 < p.n && p.p[i + 1] == ':' && i >= seen.no_class) {
			size_t e = i + 2;

			while (
			    e + 1 < p.n && !(p.p[e] == ':' && p.p[e + 1] == ']') && p.p[e] != ']')
				e++;
			if (e + 1 < p.n && p.p[e] == ':') {
				if (hit != NULL && in_class(flags, sv_sub(p, i + 2, e - i - 2), c))
					found = true;
				i = e + 2;
				continue;
			}
			seen.no_class = e;
		}
		lo = bracket_char(&seen, p, &i);
		hi = lo;
		if (i + 1 < p.n && p.p[i] == '-' && p.p[i + 1] != ']') {
			i++;
			hi = bracket_char(&seen, p, &i);
		}
		if (hit == NULL)
			continue;
		if (c >= lo && c <= hi)
			found = true;
		else if ((flags & SH_PAT_NOCASE) != 0 &&
		         ((sh_fold(c) >= lo && sh_fold(c) <= hi) ||
		             ((uint32_t)towupper((wint_t)c) >= lo &&
		                 (uint32_t)towupper((wint_t)c) <= hi)))
			found = true;
	}
	if (hit != NULL)
		*hit = found != negate;
	return i + 1;
}

bool sh_pat_is_magic(sv p, unsigned flags)
{
	unsigned open = 0;

	for (size_t i = 0; i < p.n; i++) {
		if (p.p[i] == '\\')
			i++;
		else if (p.p[i] == '*' || p.p[i] == '?')
			return true;
		else if (p.p[i] == '[' && (sh_pat_bracket(0, sv_sub(p, i, p.n), 0, NULL) != 0 ||
		                              ++open > SH_PAT_OPEN_MAX))
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
