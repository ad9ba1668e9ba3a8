/* http1_body: the body of an HTTP/1.1 message, from pieces of any size (RFC 9112 6 and 7). Chunk
 * extensions are checked and dropped; trailers that could change what the message means are dropped
 * (RFC 9110 6.5.1). Hostile input. */
#include "gateway/http1.h"

#include "base/ban.h"

enum chunk_state { CHUNK_SIZE, CHUNK_DATA, CHUNK_CR, CHUNK_LF, CHUNK_TRAILER, CHUNK_DONE };

void http1_body_init(struct http1_body *b, const struct http1_head *h)
{
	memset(b, 0, sizeof(*b));
	b->framing = h->framing;
	b->left = h->framing == HTTP1_LENGTH ? h->length : 0;
	b->line = buf_with(HTTP1_LINE_MAX);
	b->trailers = buf_with(HTTP1_META_MAX);
}

void http1_body_fini(struct http1_body *b)
{
	buf_fini(&b->line);
	buf_fini(&b->trailers);
}

bool http1_body_eof(const struct http1_body *b)
{
	switch (b->framing) {
	case HTTP1_EMPTY:
	case HTTP1_CLOSE:
		return true;
	case HTTP1_LENGTH:
		return b->left == 0;
	case HTTP1_CHUNKED:
		return b->state == CHUNK_DONE;
	}
	return false;
}

/* Collect a line. 1: b->line holds it without CRLF; 0: more needed; -1: err. */
static int take_line(struct http1_body *b, sv in, size_t *used, struct box_err *err)
{
	sv rest = sv_sub(in, *used, in.n);
	ptrdiff_t nl = sv_find(rest, '\n');
	size_t n = nl < 0 ? rest.n : (size_t)nl + 1;

	buf_put(&b->line, rest.p, n);
	*used += n;
	if (!buf_ok(&b->line))
		return box_fail(
		    err, BOX_ELIMIT, 0, "a chunk line is longer than %u bytes", HTTP1_LINE_MAX);
	if (nl < 0)
		return 0;
	if (b->line.n < 2 || b->line.p[b->line.n - 2] != '\r')
		return box_fail(err, BOX_EPARSE, 0, "a chunk line ends without CR");
	b->line.n -= 2;
	return 1;
}

/* chunk-ext without the blanks that RFC 9112 7.1.1 calls bad. */
static bool ext_ok(sv s)
{
	size_t i = 0, from;

	while (i < s.n) {
		if (s.p[i++] != ';')
			return false;
		for (from = i; i < s.n && s.p[i] != ';' && s.p[i] != '='; i++)
			;
		if (!http1_is_token(sv_sub(s, from, i - from)))
			return false;
		if (i == s.n || s.p[i] == ';')
			continue;
		i++;
		if (i < s.n && s.p[i] == '"') {
			for (i++; i < s.n && s.p[i] != '"'; i++) {
				uint8_t c = (uint8_t)s.p[i];

				if ((c < 0x20 && c != '\t') || c == 0x7f)
					return false;
				if (c == '\\' && ++i == s.n)
					return false;
			}
			if (i++ >= s.n)
				return false;
			continue;
		}
		for (from = i; i < s.n && s.p[i] != ';'; i++)
			;
		if (!http1_is_token(sv_sub(s, from, i - from)))
			return false;
	}
	return true;
}

static int chunk_size(struct http1_body *b, struct box_err *err)
{
	sv line = buf_sv(&b->line), digits, ext;
	ptrdiff_t semi = sv_find(line, ';');

	digits = semi < 0 ? line : sv_sub(line, 0, (size_t)semi);
	ext = sv_sub(line, digits.n, line.n);
	if (digits.n == 0 || digits.n > 16 || !sv_to_u64(digits, 16, INT64_MAX, &b->left) ||
	    !ext_ok(ext))
		return box_fail(err, BOX_EPARSE, 0, "a malformed chunk size line (RFC 9112 7.1)");
	b->meta += ext.n;
	if (b->meta > HTTP1_META_MAX)
		return box_fail(
		    err, BOX_ELIMIT, 0, "chunk extensions of more than %zu bytes", HTTP1_META_MAX);
	b->state = b->left != 0 ? CHUNK_DATA : CHUNK_TRAILER;
	return 0;
}

/* Fields that frame, route, authenticate or describe a message have no business behind its body. */
static bool trailer_forbidden(sv name)
{
	static const sv list[] = { SV_INIT("transfer-encoding"), SV_INIT("content-length"),
		SV_INIT("host"), SV_INIT("trailer"), SV_INIT("te"), SV_INIT("connection"),
		SV_INIT("keep-alive"), SV_INIT("upgrade"), SV_INIT("authorization"),
		SV_INIT("cookie"), SV_INIT("set-cookie"), SV_INIT("www-authenticate"),
		SV_INIT("content-encoding"), SV_INIT("content-type"), SV_INIT("content-range"),
		SV_INIT("range"), SV_INIT("expect"), SV_INIT("max-forwards"),
		SV_INIT("cache-control"), SV_INIT("pragma"), SV_INIT("age"), SV_INIT("expires"),
		SV_INIT("date"), SV_INIT("location"), SV_INIT("retry-after"), SV_INIT("vary"),
		SV_INIT("warning"), SV_INIT("accept-encoding"), SV_INIT("alt-svc"),
		SV_INIT("forwarded"), SV_INIT("x-strands-box-egress") };

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		if (sv_eq_nocase(name, list[i]))
			return true;
	}
	return sv_eq_nocase(sv_sub(name, 0, 6), SV("proxy-")) ||
	       sv_eq_nocase(sv_sub(name, 0, 3), SV("if-"));
}

static int trailer_line(struct http1_body *b, struct box_err *err)
{
	sv name, value;

	b->meta += b->line.n;
	if (b->meta > HTTP1_META_MAX)
		return box_fail(
		    err, BOX_ELIMIT, 0, "trailers of more than %zu bytes", HTTP1_META_MAX);
	if (!sv_cut(buf_sv(&b->line), ':', &name, &value) || !http1_is_token(name))
		return box_fail(err, BOX_EPARSE, 0, "a trailer line without a proper name");
	while (value.n != 0 && (value.p[0] == ' ' || value.p[0] == '\t'))
		value = sv_sub(value, 1, value.n);
	while (value.n != 0 && (value.p[value.n - 1] == ' ' || value.p[value.n - 1] == '\t'))
		value.n--;
	if (!http1_is_value(value))
		return box_fail(err, BOX_EPARSE, 0, "control bytes in a trailer");
	if (trailer_forbidden(name))
		return 0;
	buf_put_sv(&b->trailers, name);
	buf_put_c(&b->trailers, ": ");
	buf_put_sv(&b->trailers, value);
	buf_put_c(&b->trailers, "\r\n");
	return buf_ok(&b->trailers) ? 0 : box_fail(err, BOX_ELIMIT, 0, "trailers too long");
}

/* One transition of the chunked coding. 2: *data is payload; 1: go on; 0: more input is needed; -1:
 * err. */
static int chunked_move(struct http1_body *b, sv in, size_t *used, sv *data, struct box_err *err)
{
	int r;

	if (*used == in.n)
		return 0;
	switch ((enum chunk_state)b->state) {
	case CHUNK_SIZE:
		r = take_line(b, in, used, err);
		if (r <= 0)
			return r;
		r = chunk_size(b, err);
		buf_clear(&b->line);
		return r < 0 ? -1 : 1;
	case CHUNK_DATA:
		*data = sv_sub(in, *used, b->left > in.n ? in.n : (size_t)b->left);
		*used += data->n;
		b->left -= data->n;
		if (b->left == 0)
			b->state = CHUNK_CR;
		return 2;
	case CHUNK_CR:
	case CHUNK_LF:
		if (in.p[*used] != (b->state == CHUNK_CR ? '\r' : '\n'))
			return box_fail(err, BOX_EPARSE, 0, "chunk data is not followed by CRLF");
		(*used)++;
		b->state = b->state == CHUNK_CR ? CHUNK_LF : CHUNK_SIZE;
		return 1;
	case CHUNK_TRAILER:
		r = take_line(b, in, used, err);
		if (r <= 0)
			return r;
		if (b->line.n == 0)
			b->state = CHUNK_DONE;
		else if (trailer_line(b, err) < 0)
			return -1;
		buf_clear(&b->line);
		return 1;
	case CHUNK_DONE:
		break;
	}
	return 0;
}

enum http1_step http1_body_step(
    struct http1_body *b, sv in, size_t *used, sv *data, struct box_err *err)
{
	int r = 1;

	*used = 0;
	*data = (sv){ NULL, 0 };
	switch (b->framing) {
	case HTTP1_EMPTY:
		return HTTP1_END;
	case HTTP1_CLOSE:
		*used = in.n;
		*data = in;
		return in.n != 0 ? HTTP1_DATA : HTTP1_MORE;
	case HTTP1_LENGTH:
		if (b->left == 0)
			return HTTP1_END;
		*data = sv_sub(in, 0, b->left > in.n ? in.n : (size_t)b->left);
		*used = data->n;
		b->left -= data->n;
		return data->n != 0 ? HTTP1_DATA : HTTP1_MORE;
	case HTTP1_CHUNKED:
		while (r == 1 && b->state != CHUNK_DONE)
			r = chunked_move(b, in, used, data, err);
		if (r < 0)
			return HTTP1_BAD;
		if (r == 2)
			return HTTP1_DATA;
		return b->state == CHUNK_DONE ? HTTP1_END : HTTP1_MORE;
	}
	return HTTP1_BAD;
}
