/* Comparing lines. See sort_key.h. Every comparison is total, whatever the bytes: an order that
 * contradicts itself would lose lines. */
#include "shell/sort_key.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/ban.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_alpha(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static unsigned char upper(char c)
{
	return (unsigned char)(c >= 'a' && c <= 'z' ? c - 32 : c);
}

bool sort_order_is_plain(const struct sort_order *o)
{
	return !(o->numeric || o->human || o->general || o->month || o->version || o->nocase ||
	         o->dictionary || o->printing || o->skip_start_blanks || o->skip_end_blanks);
}

/* --- keys --- */

static size_t skip_blanks(sv s, size_t i)
{
	while (i < s.n && is_blank(s.p[i]))
		i++;
	return i;
}

/* Behind the next word: blanks and what follows them, or (with -t) the field without its separator.
 * */
static size_t skip_word(const struct sort_rules *r, sv s, size_t i)
{
	if (r->tab >= 0) {
		while (i < s.n && (unsigned char)s.p[i] != r->tab)
			i++;
		return i;
	}
	i = skip_blanks(s, i);
	while (i < s.n && !is_blank(s.p[i]))
		i++;
	return i;
}

static size_t key_start(const struct sort_rules *r, const struct sort_key *k, sv s)
{
	size_t i = 0;

	for (size_t w = k->start_word; w > 0 && i < s.n; w--) {
		i = skip_word(r, s, i);
		if (r->tab >= 0 && i < s.n)
			i++;
	}
	if (k->o.skip_start_blanks)
		i = skip_blanks(s, i);
	return k->start_char < s.n - i ? i + k->start_char : s.n;
}

static size_t key_end(const struct sort_rules *r, const struct sort_key *k, sv s)
{
	size_t i = 0, words = k->end_word;

	if (words == SIZE_MAX)
		return s.n;
	if (k->end_char == 0)
		words++; /* all of the end word */
	for (; words > 0 && i < s.n; words--) {
		i = skip_word(r, s, i);
		if (r->tab >= 0 && i < s.n && (words > 1 || k->end_char != 0))
			i++;
	}
	if (k->end_char == 0)
		return i;
	if (k->o.skip_end_blanks)
		i = skip_blanks(s, i);
	return k->end_char < s.n - i ? i + k->end_char : s.n;
}

sv sort_key_of(const struct sort_rules *r, const struct sort_key *k, sv line)
{
	size_t from = key_start(r, k, line), to = key_end(r, k, line);

	return sv_sub(line, from, to > from ? to - from : 0);
}

/* --- numbers --- */

/* A decimal number at the front: sign, digits without leading zeros, fraction without trailing
 * zeros. */
struct number {
	bool minus;
	sv whole, frac;
	size_t end; /* behind it, for the unit of -h */
};

static struct number read_number(sv s)
{
	struct number n = { false, { NULL, 0 }, { NULL, 0 }, 0 };
	size_t i = skip_blanks(s, 0), from;

	if (i < s.n && s.p[i] == '-') {
		n.minus = true;
		i++;
	}
	while (i < s.n && s.p[i] == '0')
		i++;
	from = i;
	while (i < s.n && is_digit(s.p[i]))
		i++;
	n.whole = sv_sub(s, from, i - from);
	if (i < s.n && s.p[i] == '.') {
		from = ++i;
		while (i < s.n && is_digit(s.p[i]))
			i++;
		n.frac = sv_sub(s, from, i - from);
		while (n.frac.n != 0 && n.frac.p[n.frac.n - 1] == '0')
			n.frac.n--;
	}
	n.end = i;
	return n;
}

static bool is_zero(const struct number *n)
{
	return n->whole.n == 0 && n->frac.n == 0;
}

static int compare_size(const struct number *a, const struct number *b)
{
	if (a->whole.n != b->whole.n)
		return a->whole.n < b->whole.n ? -1 : 1;
	int c = sv_cmp(a->whole, b->whole);

	return c != 0 ? c : sv_cmp(a->frac, b->frac);
}

static int sign_of(const struct number *n)
{
	return is_zero(n) ? 0 : n->minus ? -1 : 1;
}

static int compare_numbers(sv a, sv b)
{
	struct number x = read_number(a), y = read_number(b);
	int sx = sign_of(&x), sy = sign_of(&y);

	if (sx != sy)
		return sx < sy ? -1 : 1;
	return sx < 0 ? -compare_size(&x, &y) : compare_size(&x, &y);
}

/* -h: the unit decides, then the number ("2K" after "1023"). */
static int unit_of(sv s, const struct number *n)
{
	static const char units[] = "KMGTPEZY";
	char c = n->end < s.n ? s.p[n->end] : '\0';
	const char *q = c == 'k' ? units : c != '\0' ? strchr(units, c) : NULL;
	int order = q != NULL ? (int)(q - units) + 1 : 0;

	if (is_zero(n))
		return 0;
	return n->minus ? -order : order;
}

static int compare_human(sv a, sv b)
{
	struct number x = read_number(a), y = read_number(b);
	int ux = unit_of(a, &x), uy = unit_of(b, &y), sx = sign_of(&x), sy = sign_of(&y);

	if (sx != sy)
		return sx < sy ? -1 : 1;
	if (ux != uy)
		return ux < uy ? -1 : 1;
	return compare_numbers(a, b);
}

/* -g: what strtold takes; nothing at all before NaN before the numbers. The text is cut, so that
 * strtold has an end. */
static int general_class(sv s, long double *v)
{
	char text[512], *end;
	size_t n = s.n < sizeof(text) - 1 ? s.n : sizeof(text) - 1;

	if (n != 0)
		memcpy(text, s.p, n);
	text[n] = '\0';
	*v = strtold(text, &end);
	return end == text ? 0 : isnan(*v) ? 1 : 2;
}

static int compare_general(sv a, sv b)
{
	long double x, y;
	int cx = general_class(a, &x), cy = general_class(b, &y);

	if (cx != cy)
		return cx < cy ? -1 : 1;
	return cx != 2 ? 0 : x < y ? -1 : x > y;
}

static int month_of(sv s)
{
	static const char names[] = "JANFEBMARAPRMAYJUNJULAUGSEPOCTNOVDEC";
	size_t i = skip_blanks(s, 0);

	for (int m = 0; m < 12 && s.n - i >= 3; m++)
		if (upper(s.p[i]) == (unsigned char)names[3 * m] &&
		    upper(s.p[i + 1]) == (unsigned char)names[3 * m + 1] &&
		    upper(s.p[i + 2]) == (unsigned char)names[3 * m + 2])
			return m + 1;
	return 0;
}

/* --- versions --- */

/* Length without the file suffixes: a trailing run of \.[A-Za-z~][A-Za-z0-9~]*, as gnulib's
 * filevercmp has it. */
static size_t without_suffix(sv s)
{
	size_t n = 0, i = 0;

	while (i < s.n) {
		/* The first byte is always part of the name. */
		n = ++i;
		while (
		    i + 1 < s.n && s.p[i] == '.' && (is_alpha(s.p[i + 1]) || s.p[i + 1] == '~')) {
			i += 2;
			while (i < s.n && (is_alpha(s.p[i]) || is_digit(s.p[i]) || s.p[i] == '~'))
				i++;
		}
	}
	return n;
}

/* Weight of a byte outside digits: '~' first, the end and digits, letters, the rest. */
static int weight(sv s, size_t i)
{
	char c;

	if (i == s.n)
		return -1;
	c = s.p[i];
	if (is_digit(c))
		return 0;
	if (is_alpha(c))
		return (unsigned char)c;
	return c == '~' ? -2 : (unsigned char)c + 256;
}

static int compare_parts(sv a, sv b)
{
	size_t i = 0, j = 0;

	while (i < a.n || j < b.n) {
		int diff = 0;

		while ((i < a.n && !is_digit(a.p[i])) || (j < b.n && !is_digit(b.p[j]))) {
			int x = weight(a, i), y = weight(b, j);

			if (x != y)
				return x < y ? -1 : 1;
			i++;
			j++;
		}
		while (i < a.n && a.p[i] == '0')
			i++;
		while (j < b.n && b.p[j] == '0')
			j++;
		while (i < a.n && j < b.n && is_digit(a.p[i]) && is_digit(b.p[j])) {
			if (diff == 0)
				diff = a.p[i] - b.p[j];
			i++;
			j++;
		}
		if (i < a.n && is_digit(a.p[i]))
			return 1;
		if (j < b.n && is_digit(b.p[j]))
			return -1;
		if (diff != 0)
			return diff < 0 ? -1 : 1;
	}
	return 0;
}

int sort_version_compare(sv a, sv b)
{
	size_t pa, pb;
	int c;

	if (a.n == 0 || b.n == 0)
		return (a.n != 0) - (b.n != 0);
	/* ".", "..", then other names with a leading dot, then the rest. */
	if (a.p[0] == '.' || b.p[0] == '.') {
		if (a.p[0] != b.p[0])
			return a.p[0] == '.' ? -1 : 1;
		if (sv_eq(a, SV(".")) || sv_eq(b, SV(".")))
			return (int)sv_eq(b, SV(".")) - (int)sv_eq(a, SV("."));
		if (sv_eq(a, SV("..")) || sv_eq(b, SV("..")))
			return (int)sv_eq(b, SV("..")) - (int)sv_eq(a, SV(".."));
	}
	pa = without_suffix(a);
	pb = without_suffix(b);
	c = compare_parts(sv_sub(a, 0, pa), sv_sub(b, 0, pb));
	if (c != 0 || (pa == a.n && pb == b.n))
		return c;
	return compare_parts(a, b);
}

/* --- text --- */

static bool ignored(const struct sort_order *o, char c)
{
	if (o->dictionary && !is_blank(c) && !is_digit(c) && !is_alpha(c))
		return true;
	return o->printing && (c < 0x20 || c == 0x7f || (unsigned char)c >= 0x80);
}

static int compare_text(const struct sort_order *o, sv a, sv b)
{
	size_t i = 0, j = 0;

	if (!o->nocase && !o->dictionary && !o->printing)
		return sv_cmp(a, b);
	for (;;) {
		unsigned char x, y;

		while (i < a.n && ignored(o, a.p[i]))
			i++;
		while (j < b.n && ignored(o, b.p[j]))
			j++;
		if (i == a.n || j == b.n)
			return (i < a.n) - (j < b.n);
		x = o->nocase ? upper(a.p[i]) : (unsigned char)a.p[i];
		y = o->nocase ? upper(b.p[j]) : (unsigned char)b.p[j];
		if (x != y)
			return x < y ? -1 : 1;
		i++;
		j++;
	}
}

static int compare_by(const struct sort_order *o, sv a, sv b)
{
	if (o->numeric)
		return compare_numbers(a, b);
	if (o->human)
		return compare_human(a, b);
	if (o->general)
		return compare_general(a, b);
	if (o->month)
		return month_of(a) - month_of(b);
	if (o->version)
		return sort_version_compare(a, b);
	return compare_text(o, a, b);
}

int sort_compare_lines(
    const struct sort_rules *r, const struct sort_line *a, const struct sort_line *b)
{
	int c;

	for (size_t i = 0; i < r->keys_n; i++) {
		const struct sort_key *k = &r->keys[i];

		c = compare_by(&k->o, i == 0 ? a->key : sort_key_of(r, k, a->text),
		    i == 0 ? b->key : sort_key_of(r, k, b->text));
		if (c != 0)
			return k->o.reverse ? -c : c;
	}
	if (r->keys_n != 0 && (r->stable || r->unique))
		return 0;
	c = sv_cmp(a->text, b->text);
	return r->whole.reverse ? -c : c;
}

int sort_compare(const struct sort_rules *r, sv a, sv b)
{
	struct sort_line x = { a, { NULL, 0 } }, y = { b, { NULL, 0 } };

	if (r->keys_n != 0) {
		x.key = sort_key_of(r, &r->keys[0], a);
		y.key = sort_key_of(r, &r->keys[0], b);
	}
	return sort_compare_lines(r, &x, &y);
}
