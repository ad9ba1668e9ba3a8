/* Shell patterns: rows, what a second matcher written from the definition says of drawn patterns,
 * and that hostile ones cost little. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "shell/pattern.h"
#include "base/ban.h"

static void rows(void **state)
{
	static const struct {
		const char *pattern, *text;
		unsigned flags;
		bool match;
	} r[] = { { "a*b?c", "axxbyc", 0, true }, { "[a-c]*", "bcd", 0, true },
		{ "[!a]", "a", 0, false }, { "[]-]", "]", 0, true }, { "\\*", "*", 0, true },
		{ "\\*", "x", 0, false }, { "[[:digit:]]x", "5x", 0, true }, { "*", "", 0, true },
		{ "?", "\xc3\xa9", 0, true }, { "??", "\xc3\xa9", 0, false },
		{ "?", "\xa9", 0, true }, { "@(a|b)c", "bc", SH_PAT_EXTGLOB, true },
		{ "+([0-9])", "123", SH_PAT_EXTGLOB, true }, { "!(x)", "x", SH_PAT_EXTGLOB, false },
		{ "!(x)", "y", SH_PAT_EXTGLOB, true }, { "*(ab)c", "ababc", SH_PAT_EXTGLOB, true },
		{ "?(a)b", "b", SH_PAT_EXTGLOB, true }, { "ABC", "abc", SH_PAT_NOCASE, true },
		{ "@(A|B)[C]", "bc", SH_PAT_NOCASE | SH_PAT_EXTGLOB, true },
		{ "+(\xc3\xa9)x", "\xc3\xa9\xc3\xa9x", SH_PAT_EXTGLOB, true },
		{ "!(\xc3\xa9)", "\xc3\xa8", SH_PAT_EXTGLOB, true },
		{ "@(a|b", "@(a|b", SH_PAT_EXTGLOB, true }, { "@(a)", "a", 0, false },
		{ "@(a\\|b)", "a|b", SH_PAT_EXTGLOB, true },
		{ "@([|)])", ")", SH_PAT_EXTGLOB, true }, { "*x", ".x", SH_PAT_PERIOD, false },
		{ "[a", "[a", 0, true }, { "a[/]b", "a/b", 0, true }, { "a\\", "a\\", 0, true } };

	(void)state;
	for (size_t i = 0; i < sizeof(r) / sizeof(r[0]); i++) {
		if (sh_pat_match(sv_c(r[i].pattern), sv_c(r[i].text), r[i].flags) != r[i].match)
			fail_msg("%s against %s", r[i].pattern, r[i].text);
	}
}

/* --- by the definition --- */

static uint32_t seed;

static unsigned draw(unsigned n)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 16) % n;
}

/* A pattern over a few characters, without brackets; each byte that can follow is as likely. */
static void draw_pattern(char *p, size_t cap, size_t *n, int depth)
{
	static const char atoms[] = "aabbc?*";

	for (unsigned k = draw(depth == 0 ? 4 : 3) + (depth == 0); k > 0 && *n + 16 < cap; k--) {
		if (draw(3) != 0 || depth == 2) {
			p[(*n)++] = atoms[draw(sizeof(atoms) - 1)];
			continue;
		}
		p[(*n)++] = "?*+@!"[draw(5)];
		p[(*n)++] = '(';
		draw_pattern(p, cap, n, depth + 1);
		if (draw(2) == 0) {
			p[(*n)++] = '|';
			draw_pattern(p, cap, n, depth + 1);
		}
		p[(*n)++] = ')';
	}
}

/* Where the group that opens at p.p[1] ends, and where each alternative does. */
static size_t close_of(sv p)
{
	int depth = 0;
	size_t i = 1;

	for (;; i++) {
		depth += (p.p[i] == '(') - (p.p[i] == ')');
		if (depth == 0)
			return i;
	}
}

static bool by_definition(sv p, sv t);

static bool any(sv body, sv t)
{
	size_t from = 0;
	int depth = 0;

	for (size_t i = 0; i <= body.n; i++) {
		if (i == body.n || (body.p[i] == '|' && depth == 0)) {
			if (by_definition(sv_sub(body, from, i - from), t))
				return true;
			from = i + 1;
		} else {
			depth += (body.p[i] == '(') - (body.p[i] == ')');
		}
	}
	return false;
}

/* One or more times. */
static bool repeated(sv body, sv t)
{
	if (any(body, t))
		return true;
	for (size_t i = 1; i < t.n; i++) {
		if (any(body, sv_sub(t, 0, i)) && repeated(body, sv_sub(t, i, t.n)))
			return true;
	}
	return false;
}

static bool in_group(char kind, sv body, sv t)
{
	switch (kind) {
	case '?':
		return t.n == 0 || any(body, t);
	case '*':
		return t.n == 0 || repeated(body, t);
	case '+':
		return repeated(body, t);
	case '@':
		return any(body, t);
	default:
		return !any(body, t);
	}
}

static bool by_definition(sv p, sv t)
{
	bool group = p.n > 1 && p.p[1] == '(';
	size_t end = group ? close_of(p) : 0;

	if (p.n == 0)
		return t.n == 0;
	if (!group && p.p[0] != '*')
		return t.n != 0 && (p.p[0] == '?' || p.p[0] == t.p[0]) &&
		       by_definition(sv_sub(p, 1, p.n), sv_sub(t, 1, t.n));
	for (size_t i = 0; i <= t.n; i++) {
		if ((!group || in_group(p.p[0], sv_sub(p, 2, end - 2), sv_sub(t, 0, i))) &&
		    by_definition(sv_sub(p, end + 1, p.n), sv_sub(t, i, t.n)))
			return true;
	}
	return false;
}

/* The first and then longest match at or behind from, by trying all. */
static bool search(sv p, sv t, size_t from, size_t *start, size_t *end)
{
	for (*start = from; *start < t.n || t.n == 0; (*start)++) {
		for (*end = t.n + 1; (*end)-- > *start;) {
			if (by_definition(p, sv_sub(t, *start, *end - *start)))
				return true;
		}
		if (t.n == 0)
			break;
	}
	return false;
}

static void compare(sv p, sv t)
{
	ptrdiff_t prefix[2] = { -1, -1 }, suffix[2] = { -1, -1 };
	struct sh_pat_scan *scan = sh_pat_scan_new(p, t, SH_PAT_EXTGLOB);
	size_t start, end, want_start, want_end;
	bool hit, want, same = true;

	same = sh_pat_match(p, t, SH_PAT_EXTGLOB) == by_definition(p, t);
	for (size_t i = 0; i <= t.n; i++) {
		if (by_definition(p, sv_sub(t, 0, i))) {
			prefix[0] = prefix[0] < 0 ? (ptrdiff_t)i : prefix[0];
			prefix[1] = (ptrdiff_t)i;
		}
		if (by_definition(p, sv_sub(t, i, t.n))) {
			suffix[1] = suffix[1] < 0 ? (ptrdiff_t)i : suffix[1];
			suffix[0] = (ptrdiff_t)i;
		}
	}
	for (int longest = 0; longest < 2; longest++) {
		same = same && sh_pat_prefix(p, t, longest, SH_PAT_EXTGLOB) == prefix[longest];
		same = same && sh_pat_suffix(p, t, longest, SH_PAT_EXTGLOB) == suffix[longest];
	}
	for (size_t from = 0; from <= t.n; from++) {
		hit = sh_pat_scan_next(scan, from, &start, &end);
		want = search(p, t, from, &want_start, &want_end);
		same = same && hit == want;
		same = same && (!hit || (start == want_start && end == want_end));
	}
	sh_pat_scan_free(scan);
	if (!same)
		fail_msg("pattern " SV_FMT ", text " SV_FMT, SV_ARG(p), SV_ARG(t));
}

static void as_defined(void **state)
{
	(void)state;
	seed = 20261130;
	for (int i = 0; i < 20000; i++) {
		char p[128], t[8];
		size_t n = 0, m = draw(sizeof(t));

		draw_pattern(p, sizeof(p), &n, 0);
		for (size_t k = 0; k < m; k++)
			t[k] = "aabc"[draw(4)];
		compare((sv){ p, n }, (sv){ t, m });
	}
}

/* --- hostile patterns --- */

static void repeat(struct buf *b, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_put_c(b, text);
}

/* Each would take for ever, or the square of the text's length, by trying one after another. */
static void bounded(void **state)
{
	static const struct {
		const char *pattern;
		bool match;
	} r[] = { { "*a*a*a*a*a*a*a*b", false }, { "+(+(+(a)))b", false }, { "*(*(a)*(a))", true },
		{ "+(a|aa|aaa)@(a|aa|aaa)*(aa|a)b", false }, { "!(*(a)b)", true },
		{ "*(!(x|)[0,-[9])a[\n]", false } };
	AUTO_BUF text = buf_with(65536);

	(void)state;
	repeat(&text, "a", 20000);
	for (size_t i = 0; i < sizeof(r) / sizeof(r[0]); i++) {
		sv p = sv_c(r[i].pattern);

		assert_int_equal(sh_pat_match(p, buf_sv(&text), SH_PAT_EXTGLOB), r[i].match);
		assert_int_equal(sh_pat_prefix(p, buf_sv(&text), true, SH_PAT_EXTGLOB),
		    r[i].match ? (ptrdiff_t)text.n : -1);
	}
}

/* Beyond the budget nothing matches, not even what a negation would have let through. */
static void over_the_budget(void **state)
{
	AUTO_BUF text = buf_with(65536);

	(void)state;
	repeat(&text, "a", 3000);
	assert_false(sh_pat_match(SV("*!(*!(*!(b)!(c)a)a)*!(a)c"), buf_sv(&text), SH_PAT_EXTGLOB));
	assert_false(
	    sh_pat_match(SV("!(*!(*!(*!(b)!(c)a)a)*!(a)c)"), buf_sv(&text), SH_PAT_EXTGLOB));
}

/* Groups within groups up to the limit; what does not close costs no more than its length. */
static void deep(void **state)
{
	static const struct {
		size_t depth;
		bool match;
	} r[] = { { 1, true }, { 200, true }, { 201, false }, { 50000, false } };
	/* A bracket is looked for again from each '[', up to a number; parentheses are paired. */
	static const struct {
		const char *text;
		bool limited;
	} open[] = { { "[", true }, { "@(", false }, { "[[:alpha:", true }, { "*(|", false },
		{ "[[.a", true }, { "@([", true } };

	(void)state;
	for (size_t i = 0; i < sizeof(r) / sizeof(r[0]); i++) {
		AUTO_BUF p = buf_with(1 << 20);

		repeat(&p, "@(", r[i].depth);
		repeat(&p, "a", 1);
		repeat(&p, ")", r[i].depth);
		assert_int_equal(sh_pat_match(buf_sv(&p), SV("a"), SH_PAT_EXTGLOB), r[i].match);
	}
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		for (size_t n = 3; n < 200000; n *= 60) {
			AUTO_BUF p = buf_with(4 << 20);

			repeat(&p, open[i].text, n);
			assert_int_equal(sh_pat_match(buf_sv(&p), buf_sv(&p), SH_PAT_EXTGLOB),
			    !open[i].limited || n < 1000);
			(void)sh_pat_is_magic(buf_sv(&p), SH_PAT_EXTGLOB);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
		cmocka_unit_test(as_defined),
		cmocka_unit_test(bounded),
		cmocka_unit_test(over_the_budget),
		cmocka_unit_test(deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
