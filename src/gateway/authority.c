/* authority: canonical host, port and path of a request (authority.h). Hostile input, bounded by
 * the head that holds it. */
#include "gateway/authority.h"

#include "base/ban.h"

#define PATH_LEVELS 3 /* escapes of escapes of escapes */

static int port_parse(sv s, uint16_t *out, struct box_err *err)
{
	uint64_t v;

	if (s.n == 0 || s.p[0] == '0' || !sv_to_u64(s, 10, 65535, &v))
		return box_fail(err, BOX_EPARSE, 0, "the port must be a number from 1 to 65535");
	*out = (uint16_t)v;
	return 0;
}

int authority_parse(sv s, uint16_t default_port, struct authority *out, struct box_err *err)
{
	bool bracketed = s.n != 0 && s.p[0] == '[';
	sv host, port = { NULL, 0 };
	bool has_port;

	if (bracketed) {
		ptrdiff_t close = sv_find(s, ']');

		if (close < 0)
			return box_fail(err, BOX_EPARSE, 0, "'[' without ']' in the host");
		host = sv_sub(s, 1, (size_t)close - 1);
		s = sv_sub(s, (size_t)close + 1, s.n);
		has_port = s.n != 0;
		if (has_port && s.p[0] != ':')
			return box_fail(err, BOX_EPARSE, 0, "only ':port' may follow ']'");
		port = sv_sub(s, 1, s.n);
	} else {
		/* A second ':' falls through to the port and fails there: no bare IPv6. */
		has_port = sv_cut(s, ':', &host, &port);
	}
	if (host_parse(host, bracketed, &out->host, err) < 0)
		return -1;
	if (has_port)
		return port_parse(port, &out->port, err);
	if (default_port == 0)
		return box_fail(err, BOX_EPARSE, 0, "the port is missing");
	out->port = default_port;
	return 0;
}

bool authority_eq(const struct authority *a, const struct authority *b)
{
	return a->port == b->port && sv_eq(host_sv(&a->host), host_sv(&b->host));
}

void authority_put(struct buf *out, const struct authority *a, uint16_t default_port)
{
	if (a->host.kind == HOST_IP6)
		buf_putf(out, "[%s]", a->host.text);
	else
		buf_put_sv(out, host_sv(&a->host));
	if (a->port != default_port)
		buf_putf(out, ":%u", a->port);
}

static void target_split(sv s, struct target *out)
{
	ptrdiff_t q = sv_find(s, '?');

	out->path = q < 0 ? s : sv_sub(s, 0, (size_t)q);
	out->query = q < 0 ? (sv){ NULL, 0 } : sv_sub(s, (size_t)q, s.n);
}

int target_origin(sv s, sv method, struct target *out, struct box_err *err)
{
	memset(out, 0, sizeof(*out));
	if (sv_eq(s, SV("*"))) {
		if (!sv_eq(method, SV("OPTIONS")))
			return box_fail(err, BOX_EPARSE, 0, "'*' is a target of OPTIONS only");
		out->is_asterisk = true;
		out->path = s;
		return 0;
	}
	if (s.n == 0 || s.p[0] != '/')
		return box_fail(err, BOX_EPARSE, 0, "the request target must begin with '/'");
	target_split(s, out);
	return 0;
}

int target_absolute(sv s, struct target *out, struct box_err *err)
{
	sv rest, auth;
	size_t i;

	memset(out, 0, sizeof(*out));
	if (s.n < 7 || !sv_eq_nocase(sv_sub(s, 0, 7), SV("http://")))
		return box_fail(err, BOX_EPARSE, 0,
		    "a request to this proxy names http://host/path; https goes through CONNECT");
	rest = sv_sub(s, 7, s.n);
	for (i = 0; i < rest.n && rest.p[i] != '/' && rest.p[i] != '?' && rest.p[i] != '#'; i++)
		;
	auth = sv_sub(rest, 0, i);
	if (authority_parse(auth, 80, &out->authority, err) < 0)
		return -1;
	target_split(sv_sub(rest, i, rest.n), out);
	return 0;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static bool is_unreserved(uint8_t c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

/* pchar without escapes, and '/' (RFC 3986 3.3). */
static bool is_path_byte(uint8_t c)
{
	return is_unreserved(c) || (c != 0 && strchr("!$&'()*+,;=:@/", c) != NULL);
}

/* Step one: one spelling for every byte. */
static int path_unescape(sv raw, struct buf *out, struct box_err *err)
{
	for (size_t i = 0; i < raw.n; i++) {
		uint8_t c = (uint8_t)raw.p[i];

		if (c == '%') {
			bool whole = raw.n - i > 2;
			int hi = whole ? hex_value(raw.p[i + 1]) : -1;
			int lo = whole ? hex_value(raw.p[i + 2]) : -1;

			if (hi < 0 || lo < 0)
				return box_fail(err, BOX_EPARSE, 0,
				    "the path holds '%%' without two hexadecimal digits");
			c = (uint8_t)(hi * 16 + lo);
			i += 2;
			if (c == 0)
				return box_fail(err, BOX_EPARSE, 0, "the path holds %%00");
			if (is_unreserved(c))
				buf_put_byte(out, c);
			else
				buf_putf(out, "%%%02X", c);
			continue;
		}
		if (c < 0x21 || c == 0x7f || c == '\\' || c == '#')
			return box_fail(err, BOX_EPARSE, 0, "the path holds byte 0x%02x", c);
		if (is_path_byte(c))
			buf_put_byte(out, c);
		else
			buf_putf(out, "%%%02X", c);
	}
	return 0;
}

/* Step two: remove_dot_segments (RFC 3986 5.2.4), a segment at a time. */
static void path_undot(sv s, struct buf *out)
{
	size_t base = out->n;
	sv seg;
	bool more = true;

	s = sv_sub(s, 1, s.n); /* it begins with '/' */
	while (more) {
		more = sv_cut(s, '/', &seg, &s);
		if (sv_eq(seg, SV(".")) || sv_eq(seg, SV(".."))) {
			if (seg.n == 2) {
				while (out->n > base && out->p[out->n - 1] != '/')
					out->n--;
				if (out->n > base)
					out->n--;
			}
			if (!more)
				buf_put_byte(out, '/');
			continue;
		}
		buf_put_byte(out, '/');
		buf_put_sv(out, seg);
	}
	if (out->n == base)
		buf_put_byte(out, '/');
}

/* Every escape taken as its byte, once. false: there was none. */
static bool decode_once(sv s, struct buf *out)
{
	bool any = false;

	for (size_t i = 0; i < s.n; i++) {
		int hi = s.n - i > 2 && s.p[i] == '%' ? hex_value(s.p[i + 1]) : -1;
		int lo = hi >= 0 ? hex_value(s.p[i + 2]) : -1;

		if (lo < 0) {
			buf_put_byte(out, (uint8_t)s.p[i]);
			continue;
		}
		buf_put_byte(out, (uint8_t)(hi * 16 + lo));
		i += 2;
		any = true;
	}
	return any;
}

/* A segment that is "." or "..", also with parameters behind it ("..;x", RFC 3986 3.3) or between
 * backslashes. */
static bool has_dot_segment(sv s)
{
	size_t from = 0;

	for (size_t i = 0; i <= s.n; i++) {
		sv seg, rest;

		if (i < s.n && s.p[i] != '/' && s.p[i] != '\\')
			continue;
		(void)sv_cut(sv_sub(s, from, i - from), ';', &seg, &rest);
		if (sv_eq(seg, SV(".")) || sv_eq(seg, SV("..")))
			return true;
		from = i + 1;
	}
	return false;
}

/* The judged form keeps %2F and escapes of escapes, as servers differ about them. One that decodes
 * first and resolves dots then would find another path than the one that was judged: such a path is
 * refused. */
static bool hides_dots(sv canon)
{
	AUTO_BUF a = buf_with(canon.n + 1), b = buf_with(canon.n + 1);
	struct buf *from = &a, *to = &b;

	if (sv_find(canon, '%') < 0 && sv_find(canon, ';') < 0)
		return false;
	buf_put_sv(from, canon);
	for (int level = 0; level < PATH_LEVELS; level++) {
		struct buf *was = from;

		if (!buf_ok(from) || has_dot_segment(buf_sv(from)))
			return true;
		buf_clear(to);
		if (!decode_once(buf_sv(from), to))
			return false;
		from = to;
		to = was;
	}
	return !buf_ok(from) || has_dot_segment(buf_sv(from));
}

int path_canon(sv raw, struct buf *out, struct box_err *err)
{
	AUTO_BUF flat = buf_with(out->max);

	if (raw.n == 0) {
		buf_put_byte(out, '/');
	} else {
		if (raw.p[0] != '/')
			return box_fail(err, BOX_EPARSE, 0, "the path must begin with '/'");
		if (path_unescape(raw, &flat, err) < 0)
			return -1;
		if (!buf_ok(&flat))
			return box_fail(
			    err, BOX_ELIMIT, 0, "the path is longer than %zu bytes", out->max);
		path_undot(buf_sv(&flat), out);
	}
	if (!buf_ok(out))
		return box_fail(err, BOX_ELIMIT, 0, "the path is longer than %zu bytes", out->max);
	if (hides_dots(buf_sv(out)))
		return box_fail(err, BOX_EPARSE, 0,
		    "the path hides '.' or '..' behind escapes or parameters, which servers read "
		    "in two ways");
	return 0;
}

int query_check(sv query, struct box_err *err)
{
	for (size_t i = 0; i < query.n; i++) {
		uint8_t c = (uint8_t)query.p[i];

		if (c < 0x21 || c == 0x7f || c == '#')
			return box_fail(err, BOX_EPARSE, 0, "the query holds byte 0x%02x", c);
	}
	return 0;
}
