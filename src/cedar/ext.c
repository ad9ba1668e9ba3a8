/* The constructors of the extension types: text to decimal, ipaddr, datetime, duration. Strict:
 * what the reference refuses is refused. The text is hostile (a policy or a request); nothing
 * here allocates but the address. Spec 3.3. */
#include "cedar/value.h"

#include "base/ban.h"

/* The digits at *s, cut off it: at least min, at most max. false: other than that. */
static bool digits(sv *s, size_t min, size_t max, sv *out)
{
	size_t n = 0;

	while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9')
		n++;
	if (n < min || n > max)
		return false;
	*out = sv_sub(*s, 0, n);
	*s = sv_sub(*s, n, SIZE_MAX);
	return true;
}

/* A number of at most max digits, as int. */
static bool small(sv *s, size_t n, int *out)
{
	int64_t v;
	sv d;

	if (!digits(s, n, SIZE_MAX, &d))
		return false;
	/* The pattern takes exactly n digits and leaves the rest for what follows. */
	s->n += d.n - n;
	s->p -= d.n - n;
	d.n = n;
	if (!sv_to_i64(d, 10, 0, 99999, &v))
		return false;
	*out = (int)v;
	return true;
}

static bool eat(sv *s, char c)
{
	if (s->n == 0 || s->p[0] != c)
		return false;
	*s = sv_sub(*s, 1, SIZE_MAX);
	return true;
}

int cedar_decimal_parse(sv s, struct cedar_value *out, struct box_err *err)
{
	static const int64_t scale[] = { 10000, 1000, 100, 10, 1 };
	sv rest = s, whole, part;
	bool neg = eat(&rest, '-');
	int64_t l, r, v;

	if (!digits(&rest, 1, SIZE_MAX, &whole) || !eat(&rest, '.') ||
	    !digits(&rest, 1, SIZE_MAX, &part) || rest.n != 0)
		return box_fail(err, BOX_EPARSE, 0,
		    "`" SV_FMT "` is not a well-formed decimal value", SV_ARG(s));
	if (part.n > 4)
		return box_fail(err, BOX_EPARSE, 0,
		    "too many digits after the decimal in `" SV_FMT "`", SV_ARG(s));
	/* Leading zeros are legal and without limit. */
	while (whole.n > 1 && whole.p[0] == '0')
		whole = sv_sub(whole, 1, SIZE_MAX);
	if (!sv_to_i64(whole, 10, 0, INT64_MAX, &l) || !sv_to_i64(part, 10, 0, 9999, &r))
		return box_fail(err, BOX_EPARSE, 0, "overflow when converting to decimal");
	r *= scale[part.n];
	if (__builtin_mul_overflow(neg ? -l : l, 10000, &v) ||
	    __builtin_add_overflow(v, neg ? -r : r, &v))
		return box_fail(err, BOX_EPARSE, 0, "overflow when converting to decimal");
	*out = (struct cedar_value){ .kind = CEDAR_DECIMAL, .i = v };
	return 0;
}

/* ---- ip ------------------------------------------------------------------------------------ */

static bool parse_v4(sv s, uint8_t out[16])
{
	int64_t v;
	sv d;
	int i;

	for (i = 0; i < 4; i++) {
		if (i > 0 && !eat(&s, '.'))
			return false;
		if (!digits(&s, 1, 3, &d) || (d.n > 1 && d.p[0] == '0') ||
		    !sv_to_i64(d, 10, 0, 255, &v))
			return false;
		out[i] = (uint8_t)v;
	}
	return s.n == 0;
}

/* Up to max groups of hex digits with single colons between them. */
static size_t groups(sv *s, size_t max, uint8_t *out)
{
	size_t n = 0, len;
	uint64_t v;

	while (n < max) {
		sv at = *s;

		if (n > 0 && !eat(&at, ':'))
			break;
		for (len = 0; len < at.n && len < 5; len++) {
			char c = at.p[len];

			if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
			        (c >= 'A' && c <= 'F')))
				break;
		}
		if (len == 0 || len > 4 || !sv_to_u64(sv_sub(at, 0, len), 16, 0xffff, &v))
			break;
		out[n * 2] = (uint8_t)(v >> 8);
		out[n * 2 + 1] = (uint8_t)v;
		n++;
		*s = sv_sub(at, len, SIZE_MAX);
	}
	return n;
}

static bool parse_v6(sv s, uint8_t out[16])
{
	uint8_t tail[16];
	size_t head, n;

	head = groups(&s, 8, out);
	if (head == 8)
		return s.n == 0;
	if (!eat(&s, ':') || !eat(&s, ':'))
		return false;
	n = groups(&s, 8 - (head + 1), tail);
	if (s.n != 0)
		return false;
	memset(out + head * 2, 0, 16 - head * 2);
	memcpy(out + 16 - n * 2, tail, n * 2);
	return true;
}

static size_t count(sv s, char c)
{
	size_t i, n = 0;

	for (i = 0; i < s.n; i++)
		n += s.p[i] == c;
	return n;
}

int cedar_ip_parse(struct arena *a, sv s, struct cedar_value *out, struct box_err *err)
{
	struct cedar_ip ip = { 0 }, *p;
	sv addr, pre;
	bool slash;
	int64_t n;

	if (s.n > 43)
		return box_fail(err, BOX_EPARSE, 0,
		    "error parsing IP address from string `" SV_FMT "`: string length is too large",
		    SV_ARG(s));
	if (count(s, ':') >= 2 && count(s, '.') >= 2)
		return box_fail(err, BOX_EPARSE, 0,
		    "error parsing IP address from string: We do not accept IPv4 embedded in IPv6 "
		    "(e.g., ::ffff:127.0.0.1). Found: `" SV_FMT "`",
		    SV_ARG(s));
	slash = sv_cut(s, '/', &addr, &pre);
	if (parse_v4(addr, ip.addr)) {
		ip.prefix = 32;
	} else if (memset(ip.addr, 0, sizeof(ip.addr)), parse_v6(addr, ip.addr)) {
		ip.v6 = true;
		ip.prefix = 128;
	} else if (slash) {
		return box_fail(err, BOX_EPARSE, 0,
		    "error parsing IP address from the string `" SV_FMT
		    "`: invalid IP address syntax",
		    SV_ARG(addr));
	} else {
		return box_fail(err, BOX_EPARSE, 0, "invalid IP address: " SV_FMT, SV_ARG(s));
	}
	if (slash) {
		if (pre.n > (ip.v6 ? 3 : 2))
			return box_fail(err, BOX_EPARSE, 0,
			    "error parsing prefix: string length %zu is too large", pre.n);
		if (pre.n > 1 && pre.p[0] == '0')
			return box_fail(err, BOX_EPARSE, 0,
			    "error parsing prefix `" SV_FMT "`: leading zero(s)", SV_ARG(pre));
		if (!sv_to_i64(pre, 10, 0, ip.prefix, &n))
			return box_fail(err, BOX_EPARSE, 0,
			    "error parsing prefix `" SV_FMT "`: not a number from 0 to %d",
			    SV_ARG(pre), ip.prefix);
		ip.prefix = (uint8_t)n;
	}
	p = ARENA_NEW(a, struct cedar_ip);
	if (p == NULL)
		return box_nomem(err, "an address");
	*p = ip;
	*out = (struct cedar_value){ .kind = CEDAR_IP, .ip = p };
	return 0;
}

/* ---- datetime and duration ----------------------------------------------------------------- */

static bool leap(int y)
{
	return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
}

/* Days since 1970-01-01 of a date of the proleptic Gregorian calendar. */
static int64_t days_of(int y, int m, int d)
{
	static const int before[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };
	int64_t p = (int64_t)y - 1; /* whole years before; -1 for year 0 */
	int64_t cycles = (p + 400) / 400 - 1, in = p - cycles * 400;
	int64_t n = cycles * 146097 + in * 365 + in / 4 - in / 100 + in / 400;

	n += before[m - 1] + (m > 2 && leap(y)) + d - 1;
	return n - 719162; /* 1970-01-01 counted from 0001-01-01 */
}

int cedar_datetime_parse(sv s, struct cedar_value *out, struct box_err *err)
{
	static const int mdays[] = { 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int y, mo, d, h = 0, mi = 0, sec = 0, ms = 0, oh = 0, om = 0;
	bool plus = true, has_time = false;
	sv r = s, hms = { NULL, 0 };
	int64_t v;

	if (!small(&r, 4, &y) || !eat(&r, '-') || !small(&r, 2, &mo) || !eat(&r, '-') ||
	    !small(&r, 2, &d))
		return box_fail(err, BOX_EPARSE, 0, "invalid date pattern");
	if (r.n != 0) {
		has_time = true;
		hms = sv_sub(r, 1, 8);
		if (!eat(&r, 'T') || !small(&r, 2, &h) || !eat(&r, ':') || !small(&r, 2, &mi) ||
		    !eat(&r, ':') || !small(&r, 2, &sec))
			return box_fail(err, BOX_EPARSE, 0, "invalid hour/minute/second pattern");
		if (eat(&r, '.') && !small(&r, 3, &ms))
			goto bad_end;
		if (!eat(&r, 'Z')) {
			if (!eat(&r, '+')) {
				if (!eat(&r, '-'))
					goto bad_end;
				plus = false;
			}
			if (!small(&r, 2, &oh) || !small(&r, 2, &om))
				goto bad_end;
		}
		if (r.n != 0)
			goto bad_end;
	}
	if (mo < 1 || mo > 12 || d < 1 || d > mdays[mo - 1] || (mo == 2 && d == 29 && !leap(y)))
		return box_fail(
		    err, BOX_EPARSE, 0, "invalid date: " SV_FMT, SV_ARG(sv_sub(s, 0, 10)));
	if (has_time && (h > 23 || mi > 59 || sec > 59))
		return box_fail(
		    err, BOX_EPARSE, 0, "invalid hour/minute/second: " SV_FMT, SV_ARG(hms));
	if (oh > 23 || om > 59)
		return box_fail(err, BOX_EPARSE, 0, "invalid offset range: %d%d", oh, om);
	/* Years have four digits: nothing here can overflow. */
	v = ((days_of(y, mo, d) * 24 + h) * 60 + mi) * 60 + sec;
	v -= (plus ? 1 : -1) * (oh * 3600 + om * 60);
	*out = (struct cedar_value){ .kind = CEDAR_DATETIME, .i = v * 1000 + ms };
	return 0;
bad_end:
	return box_fail(err, BOX_EPARSE, 0, "invalid millisecond and/or offset pattern");
}

int cedar_duration_parse(sv s, struct cedar_value *out, struct box_err *err)
{
	static const struct {
		const char *unit;
		int64_t ms;
	} units[] = { { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 },
		{ "ms", 1 } };
	sv r = s, d, u;
	bool neg = eat(&r, '-'), over = false;
	int64_t n, v = 0;
	size_t i = 0, len;

	if (r.n == 0)
		return box_fail(err, BOX_EPARSE, 0, "invalid duration pattern");
	while (r.n != 0) {
		if (!digits(&r, 1, SIZE_MAX, &d))
			return box_fail(err, BOX_EPARSE, 0, "invalid duration pattern");
		for (len = 0; len < r.n && (r.p[len] < '0' || r.p[len] > '9'); len++)
			;
		u = sv_sub(r, 0, len);
		r = sv_sub(r, len, SIZE_MAX);
		while (i < 5 && !sv_eq(u, sv_c(units[i].unit)))
			i++;
		if (i == 5)
			return box_fail(err, BOX_EPARSE, 0, "invalid duration pattern");
		while (d.n > 1 && d.p[0] == '0')
			d = sv_sub(d, 1, SIZE_MAX);
		/* Only the milliseconds reach -2^63; each of the others must fit by itself. */
		if (neg && i == 4 && sv_eq(d, SV("9223372036854775808")))
			n = INT64_MIN;
		else if (!sv_to_i64(d, 10, 0, INT64_MAX, &n))
			over = true;
		else if (neg)
			n = -n;
		if (over || __builtin_mul_overflow(n, units[i].ms, &n) ||
		    __builtin_add_overflow(v, n, &v))
			over = true;
		i++;
	}
	if (over)
		return box_fail(err, BOX_EPARSE, 0, "Duration overflows internal representation");
	*out = (struct cedar_value){ .kind = CEDAR_DURATION, .i = v };
	return 0;
}
