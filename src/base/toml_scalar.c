/* The scalars of TOML that are not strings: booleans, integers, floats, dates and times. See
 * toml.h. Hostile input.
 *
 * A scalar's text is cut out first (it ends where none of its characters can go on), then judged as
 * a whole, so that "1__0" or "2024-13-01" is refused as what it was meant to be. */
#include "base/toml_int.h"

#include <math.h>
#include <stdlib.h>

#include "base/ban.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_scalar_char(int c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       c == '_' || c == '+' || c == '-' || c == '.' || c == ':';
}

/* Does s begin with a pattern where 'd' is a digit and anything else itself? */
static bool looks(sv s, const char *pattern)
{
	size_t i = 0;

	for (; pattern[i] != '\0'; i++)
		if (i >= s.n || (pattern[i] == 'd' ? !is_digit(s.p[i]) : s.p[i] != pattern[i]))
			return false;
	return true;
}

static int two(sv s, size_t at)
{
	return (s.p[at] - '0') * 10 + (s.p[at + 1] - '0');
}

static bool good_date(sv s)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int year = two(s, 0) * 100 + two(s, 2), month = two(s, 5), day = two(s, 8);
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	if (month < 1 || month > 12 || day < 1)
		return false;
	return day <= days[month - 1] + (month == 2 && leap ? 1 : 0);
}

/* "hh:mm:ss[.f…]" at the front of s: its length, or 0. A leap second is allowed (RFC 3339 5.7). */
static size_t time_len(sv s)
{
	size_t n = 8;

	if (!looks(s, "dd:dd:dd") || two(s, 0) > 23 || two(s, 3) > 59 || two(s, 6) > 60)
		return 0;
	if (n < s.n && s.p[n] == '.') {
		n++;
		while (n < s.n && is_digit(s.p[n]))
			n++;
		if (n == 9)
			return 0;
	}
	return n;
}

static bool good_offset(sv s)
{
	if (s.n == 1)
		return s.p[0] == 'Z' || s.p[0] == 'z';
	return s.n == 6 && (s.p[0] == '+' || s.p[0] == '-') && looks(sv_sub(s, 1, s.n), "dd:dd") &&
	       two(s, 1) <= 23 && two(s, 4) <= 59;
}

/* s begins like a date or a time. */
static bool classify_date(sv s, enum toml_kind *kind)
{
	sv rest;
	size_t n;

	if (!looks(s, "dddd-dd-dd")) {
		n = time_len(s);
		*kind = TOML_TIME_LOCAL;
		return n != 0 && n == s.n;
	}
	if (!good_date(s))
		return false;
	if (s.n == 10) {
		*kind = TOML_DATE_LOCAL;
		return true;
	}
	if (s.p[10] != 'T' && s.p[10] != 't' && s.p[10] != ' ')
		return false;
	rest = sv_sub(s, 11, s.n);
	n = time_len(rest);
	if (n == 0)
		return false;
	rest = sv_sub(rest, n, rest.n);
	*kind = rest.n == 0 ? TOML_DATETIME_LOCAL : TOML_DATETIME;
	return rest.n == 0 || good_offset(rest);
}

/* Digits of base with single underscores between them. Appends the digits to out; false when the
 * form is wrong. */
static bool take_digits(sv s, int base, struct buf *out)
{
	bool digit_before = false;

	for (size_t i = 0; i < s.n; i++) {
		uint64_t d;

		if (s.p[i] == '_') {
			if (!digit_before || i + 1 == s.n)
				return false;
			digit_before = false;
			continue;
		}
		if (!sv_to_u64(sv_sub(s, i, 1), base, 15, &d))
			return false;
		buf_put_byte(out, (uint8_t)s.p[i]);
		digit_before = true;
	}
	return digit_before;
}

/* A whole number part: digits without a leading zero. */
static bool take_decimal(sv s, struct buf *out)
{
	if (s.n > 1 && s.p[0] == '0')
		return false;
	return take_digits(s, 10, out);
}

/* 1: an integer, 0: not one, -1: one, but out of range. */
static int try_int(sv s, struct buf *tmp, int64_t *out)
{
	int base = 10;

	buf_clear(tmp);
	if (s.n > 2 && s.p[0] == '0' && (s.p[1] == 'x' || s.p[1] == 'o' || s.p[1] == 'b')) {
		base = s.p[1] == 'x' ? 16 : s.p[1] == 'o' ? 8 : 2;
		if (!take_digits(sv_sub(s, 2, s.n), base, tmp))
			return 0;
	} else {
		bool sign = s.p[0] == '+' || s.p[0] == '-';

		if (s.p[0] == '-')
			buf_put_byte(tmp, '-');
		if (!take_decimal(sv_sub(s, sign ? 1 : 0, s.n), tmp))
			return 0;
	}
	return buf_ok(tmp) && sv_to_i64(buf_sv(tmp), base, INT64_MIN, INT64_MAX, out) ? 1 : -1;
}

/* 1: a float, 0: not one, -1: one, but too large. */
static int try_float(sv s, struct buf *tmp, double *out)
{
	bool minus = s.p[0] == '-';
	sv rest = sv_sub(s, minus || s.p[0] == '+' ? 1 : 0, s.n), mantissa, whole, frac,
	   ex = { NULL, 0 };
	ptrdiff_t e;
	const char *text;

	if (sv_eq(rest, SV("inf")) || sv_eq(rest, SV("nan"))) {
		double v = rest.p[0] == 'i' ? (double)INFINITY : (double)NAN;

		*out = minus ? -v : v;
		return 1;
	}
	buf_clear(tmp);
	if (minus)
		buf_put_byte(tmp, '-');
	e = sv_find(rest, 'e') >= 0 ? sv_find(rest, 'e') : sv_find(rest, 'E');
	mantissa = e >= 0 ? sv_sub(rest, 0, (size_t)e) : rest;
	if (e >= 0)
		ex = sv_sub(rest, (size_t)e + 1, rest.n);
	bool dot = sv_cut(mantissa, '.', &whole, &frac);

	if ((!dot && e < 0) || !take_decimal(whole, tmp))
		return 0;
	if (dot) {
		buf_put_byte(tmp, '.');
		if (!take_digits(frac, 10, tmp))
			return 0;
	}
	if (e >= 0) {
		buf_put_byte(tmp, 'e');
		if (ex.n != 0 && (ex.p[0] == '+' || ex.p[0] == '-')) {
			buf_put_byte(tmp, (uint8_t)ex.p[0]);
			ex = sv_sub(ex, 1, ex.n);
		}
		if (!take_digits(ex, 10, tmp))
			return 0;
	}
	text = buf_cstr(tmp);
	if (text == NULL)
		return -1;
	/* The "C" locale: no program of ours sets another. The text was checked above. */
	*out = strtod(text, NULL);
	return isinf(*out) ? -1 : 1;
}

/* How many bytes from the cursor belong to the scalar. A date may go on behind one space. */
static size_t scalar_len(const struct toml_in *in)
{
	sv left = sv_sub(in->text, in->at, in->text.n);
	size_t n = 0;

	while (is_scalar_char(toml_peek(in, n)))
		n++;
	if (n == 10 && looks(left, "dddd-dd-dd") && toml_peek(in, n) == ' ' && left.n > n + 1 &&
	    is_digit(left.p[n + 1])) {
		n++;
		while (is_scalar_char(toml_peek(in, n)))
			n++;
	}
	return n;
}

/* What is wrong with a number or word that is none. */
static int fail_scalar(struct toml_in *in, sv s)
{
	struct toml_shown t = toml_show(s);

	if (s.n == 0) {
		int c = toml_peek(in, 0);

		if (c < 0 || c == '\n' || c == '\r' || c == '#')
			return toml_fail_at(in, in->line, in->col, "a value is missing here");
		return toml_fail_at(in, in->line, in->col,
		    "\"%s\" cannot begin a value; a value is a \"string\", a number, true, false, "
		    "a date, "
		    "[an, array] or { a = \"table\" }",
		    toml_here(in).t);
	}
	if (is_digit(s.p[0]) || s.p[0] == '+' || s.p[0] == '-') {
		sv body = is_digit(s.p[0]) ? s : sv_sub(s, 1, s.n);

		if (body.n > 1 && body.p[0] == '0' && (is_digit(body.p[1]) || body.p[1] == '_'))
			return toml_fail_at(in, in->line, in->col,
			    "%s is not a number: a leading zero is not allowed (0o for octal)",
			    t.t);
		if (sv_find(s, '_') >= 0)
			return toml_fail_at(in, in->line, in->col,
			    "%s is not a number: an underscore must stand between two digits", t.t);
		return toml_fail_at(in, in->line, in->col,
		    "%s is not a number; write 42, -17, 0xff, 0o755, 0b11, 6.25, 1e6, or quote it "
		    "as a "
		    "string",
		    t.t);
	}
	return toml_fail_at(in, in->line, in->col,
	    "%s is not a value; true and false are in lower case, and a string needs quotes: "
	    "\"%s\"",
	    t.t, t.t);
}

int toml_read_scalar(struct toml_in *in, struct toml *v)
{
	size_t n = scalar_len(in);
	sv s = sv_sub(in->text, in->at, n);
	int r;

	if (n == 0)
		return fail_scalar(in, s);
	if (sv_eq(s, SV("true")) || sv_eq(s, SV("false"))) {
		v->kind = TOML_BOOL;
		v->b = s.n == 4;
	} else if (looks(s, "dddd-") || looks(s, "dd:")) {
		if (!classify_date(s, &v->kind))
			return toml_fail_at(in, in->line, in->col,
			    "%s is not a date or time; write 1979-05-27, 07:32:00, "
			    "1979-05-27T07:32:00 or "
			    "1979-05-27T07:32:00Z",
			    toml_show(s).t);
		v->text = arena_dup(in->a, s);
		if (v->text.p == NULL)
			return box_nomem(in->err, "a TOML date");
	} else if ((r = try_int(s, &in->tmp, &v->i)) != 0) {
		if (r < 0)
			return toml_fail_at(in, in->line, in->col,
			    "%s does not fit a 64-bit signed integer", toml_show(s).t);
		v->kind = TOML_INT;
	} else if ((r = try_float(s, &in->tmp, &v->f)) != 0) {
		if (r < 0)
			return toml_fail_at(in, in->line, in->col, "%s does not fit a 64-bit float",
			    toml_show(s).t);
		v->kind = TOML_FLOAT;
	} else {
		return fail_scalar(in, s);
	}
	for (size_t i = 0; i < n; i++)
		toml_step(in);
	return 0;
}
