/* headers: what is sent on of a head. Always written anew from parsed fields, so that the next
 * reader sees exactly what was judged. Hop-by-hop fields end here (RFC 9110 7.6.1). */
#include "gateway/gw_int.h"

#include "base/ban.h"

static bool in_list(const sv *list, size_t n, sv name)
{
	for (size_t i = 0; i < n; i++) {
		if (sv_eq_nocase(list[i], name))
			return true;
	}
	return false;
}
#define IN(list, name) in_list((list), sizeof(list) / sizeof((list)[0]), (name))

/* Fields of one hop, and those that we write ourselves. */
static bool is_hop(const struct http1_head *h, sv name)
{
	static const sv hop[] = { SV_INIT("connection"), SV_INIT("proxy-connection"),
		SV_INIT("keep-alive"), SV_INIT("te"), SV_INIT("transfer-encoding"),
		SV_INIT("content-length"), SV_INIT("upgrade"), SV_INIT("trailer"),
		SV_INIT("proxy-authorization"), SV_INIT("proxy-authenticate"),
		SV_INIT("proxy-authentication-info"), SV_INIT("http2-settings") };

	return IN(hop, name) || http1_lists(h, SV("Connection"), name);
}

static void put_field(struct buf *out, sv name, sv value)
{
	buf_put_sv(out, name);
	buf_put_c(out, ": ");
	buf_put_sv(out, value);
	buf_put_c(out, "\r\n");
}

/* The edits of the verdict. `name` set: is it named by one? Else: write those that set. */
static int edits(const struct exch *x, sv name, struct buf *out, bool *named, struct box_err *err)
{
	struct rd r = rd_of(x->edits.p, x->edits.n);

	for (uint16_t i = 0; i < x->edits_n; i++) {
		uint8_t op = rd_u8(&r);
		sv n = rd_str(&r, MON_NAME_MAX);
		sv v = rd_str(&r, GW_VALUE_MAX);

		/* The monitor is trusted, yet a line end in a secret would split the request. */
		if (r.bad || !http1_is_token(n) || !http1_is_value(v))
			return box_fail(
			    err, BOX_EDENIED, 0, "the verdict holds a malformed header");
		if (named != NULL && sv_eq_nocase(n, name))
			*named = true;
		if (out != NULL && op == GW_EDIT_SET)
			put_field(out, n, v);
	}
	return 0;
}

static void put_framing(struct buf *out, enum http1_framing framing, uint64_t length)
{
	switch (framing) {
	case HTTP1_LENGTH:
		buf_putf(out, "Content-Length: %llu\r\n", (unsigned long long)length);
		break;
	case HTTP1_CHUNKED:
		buf_put_c(out, "Transfer-Encoding: chunked\r\n");
		break;
	case HTTP1_EMPTY:
	case HTTP1_CLOSE:
		break;
	}
}

/* With these a reply could carry a secret in a form that is not recognised: compressed, or in
 * slices. */
static bool is_masking(sv name)
{
	static const sv masking[] = { SV_INIT("accept-encoding"), SV_INIT("range"),
		SV_INIT("if-range") };

	return IN(masking, name);
}

int headers_request(struct buf *out, const struct exch *x, bool intercepted, struct box_err *err)
{
	const struct http1_head *h = &x->req;
	bool credentialed = x->redact.n != 0;

	buf_put_sv(out, h->method);
	buf_put_byte(out, ' ');
	buf_put_sv(out, buf_sv(&x->path));
	buf_put_sv(out, x->query);
	buf_put_c(out, " HTTP/1.1\r\nHost: ");
	authority_put(out, &x->to, intercepted ? 443 : 80);
	buf_put_c(out, "\r\n");
	for (size_t i = 0; i < h->n; i++) {
		bool named = false;
		sv name = h->field[i].name;

		if (is_hop(h, name) || sv_eq_nocase(name, SV("Host")) ||
		    (credentialed && is_masking(name)) ||
		    (h->minor == 0 && sv_eq_nocase(name, SV("Expect"))))
			continue;
		if (edits(x, name, NULL, &named, err) < 0)
			return -1;
		if (!named)
			put_field(out, name, h->field[i].value);
	}
	if (credentialed)
		put_field(out, SV("Accept-Encoding"), SV("identity"));
	if (edits(x, (sv){ NULL, 0 }, out, NULL, err) < 0)
		return -1;
	put_framing(out, h->framing, h->length);
	buf_put_c(out, "\r\n");
	return buf_ok(out) ? 0 : box_fail(err, BOX_ELIMIT, 0, "the request head is too long");
}

/* What an origin must not say through us: our own marker, and ways around us. */
static bool is_withheld(sv name)
{
	static const sv withheld[] = { SV_INIT("x-strands-box-egress"), SV_INIT("alt-svc") };

	return IN(withheld, name);
}

int headers_reply(struct buf *out, struct exch *x, const struct http1_head *h, struct box_err *err)
{
	bool inform = h->status < 200;
	AUTO_BUF name = buf_with(HTTP1_HEAD_MAX);

	buf_putf(out, "HTTP/1.1 %u ", h->status);
	if (redact_whole(&x->redact, h->reason, out) < 0)
		return box_nomem(err, "reply head");
	buf_put_c(out, "\r\n");
	for (size_t i = 0; i < h->n; i++) {
		if (is_hop(h, h->field[i].name) || is_withheld(h->field[i].name))
			continue;
		buf_clear(&name);
		if (redact_whole(&x->redact, h->field[i].name, &name) < 0)
			return box_nomem(err, "reply head");
		if (!sv_eq(buf_sv(&name), h->field[i].name))
			continue; /* a secret as a field name: there is nothing to keep */
		buf_put_sv(out, h->field[i].name);
		buf_put_c(out, ": ");
		(void)redact_whole(&x->redact, h->field[i].value, out);
		buf_put_c(out, "\r\n");
	}
	if (!inform) {
		/* A redacted body may change its length, and an unbounded one has none. */
		x->chunk_out = x->req.minor == 1 &&
		               (h->framing == HTTP1_CHUNKED || h->framing == HTTP1_CLOSE ||
		                   (h->framing == HTTP1_LENGTH && x->redact.n != 0));
		if (x->chunk_out)
			put_framing(out, HTTP1_CHUNKED, 0);
		else if (h->framing == HTTP1_LENGTH && x->redact.n == 0)
			put_framing(out, HTTP1_LENGTH, h->length);
		else if (h->framing == HTTP1_EMPTY && h->has_length && h->status != 204)
			put_framing(out, HTTP1_LENGTH, h->length); /* HEAD, 304 */
		if (x->close_after)
			buf_put_c(out, "Connection: close\r\n");
	}
	buf_put_c(out, "\r\n");
	return buf_ok(out) ? 0 : box_fail(err, BOX_ELIMIT, 0, "the reply head is too long");
}

const char *headers_reason(uint16_t status)
{
	switch (status) {
	case 400:
		return "Bad Request";
	case 403:
		return "Forbidden";
	case 405:
		return "Method Not Allowed";
	case 408:
		return "Request Timeout";
	case 414:
		return "URI Too Long";
	case 431:
		return "Request Header Fields Too Large";
	case 501:
		return "Not Implemented";
	case 502:
		return "Bad Gateway";
	case 503:
		return "Service Unavailable";
	case 504:
		return "Gateway Timeout";
	default:
		return "Error";
	}
}
