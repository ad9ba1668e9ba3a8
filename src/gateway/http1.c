/* http1: heads of HTTP/1.1 messages (http1.h). RFC 9112 and 9110; where they let a recipient be
 * lenient, this one is not. Hostile input; views only. */
#include "gateway/http1.h"

#include "base/ban.h"

static bool is_tchar(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

bool http1_is_token(sv s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!is_tchar((uint8_t)s.p[i]))
			return false;
	}
	return s.n != 0;
}

bool http1_is_value(sv s)
{
	for (size_t i = 0; i < s.n; i++) {
		uint8_t c = (uint8_t)s.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return s.n == 0 ||
	       (s.p[0] != ' ' && s.p[0] != '\t' && s.p[s.n - 1] != ' ' && s.p[s.n - 1] != '\t');
}

static sv trim_ows(sv s)
{
	while (s.n != 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
		s = sv_sub(s, 1, s.n);
	while (s.n != 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

int http1_scan(struct http1_scan *s, sv in, sv *head, size_t *used, struct box_err *err)
{
	if (s->at == 0 && in.n != 0 && !is_tchar((uint8_t)in.p[0]) && in.p[0] != '\r')
		return box_fail(err, BOX_EPARSE, 0, "not an HTTP message");
	while (s->at < in.n) {
		const char *nl = memchr(in.p + s->at, '\n', in.n - s->at);
		size_t i;

		if (nl == NULL) {
			s->at = in.n;
			break;
		}
		i = (size_t)(nl - in.p);
		if (i - s->begin >= HTTP1_HEAD_MAX)
			break;
		if (i == s->line || in.p[i - 1] != '\r')
			return box_fail(err, BOX_EPARSE, 0, "a line of the head ends without CR");
		s->at = i + 1;
		if (i - 1 == s->line) {
			if (s->line != s->begin) {
				*head = sv_sub(in, s->begin, s->at - s->begin);
				*used = s->at;
				return 1;
			}
			if (s->begin != 0)
				return box_fail(
				    err, BOX_EPARSE, 0, "empty lines before the message");
			s->begin = s->at; /* RFC 9112 2.2: one is forgiven */
		}
		s->line = s->at;
	}
	if (in.n - s->begin >= HTTP1_HEAD_MAX)
		return box_fail(
		    err, BOX_ELIMIT, 0, "the head is longer than %zu bytes", HTTP1_HEAD_MAX);
	return 0;
}

/* Cut the next line (without CRLF) off *rest. The scan saw that every LF follows a CR. */
static sv next_line(sv *rest)
{
	sv line;

	(void)sv_cut(*rest, '\n', &line, rest);
	if (line.n != 0 && line.p[line.n - 1] == '\r')
		line.n--;
	return line;
}

const struct http1_field *http1_find(const struct http1_head *h, sv name, size_t *count)
{
	const struct http1_field *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < h->n; i++) {
		if (!sv_eq_nocase(h->field[i].name, name))
			continue;
		if (n++ == 0)
			first = &h->field[i];
	}
	if (count != NULL)
		*count = n;
	return first;
}

bool http1_lists(const struct http1_head *h, sv name, sv item)
{
	for (size_t i = 0; i < h->n; i++) {
		sv rest = h->field[i].value, part;
		bool more = sv_eq_nocase(h->field[i].name, name);

		while (more) {
			more = sv_cut(rest, ',', &part, &rest);
			if (sv_eq_nocase(trim_ows(part), item))
				return true;
		}
	}
	return false;
}

static int read_fields(sv rest, struct http1_head *out, struct box_err *err)
{
	for (;;) {
		sv line = next_line(&rest), name, value;

		if (line.n == 0)
			return 0; /* the scan made sure that this is the end */
		if (line.p[0] == ' ' || line.p[0] == '\t')
			return box_fail(err, BOX_EPARSE, 0, "a folded header line (RFC 9112 5.2)");
		if (!sv_cut(line, ':', &name, &value) || !http1_is_token(name))
			return box_fail(err, BOX_EPARSE, 0, "a header line without a proper name");
		value = trim_ows(value);
		if (!http1_is_value(value))
			return box_fail(err, BOX_EPARSE, 0, "control bytes in a header value");
		if (out->n == HTTP1_FIELDS_MAX)
			return box_fail(
			    err, BOX_ELIMIT, 0, "more than %d header lines", HTTP1_FIELDS_MAX);
		out->field[out->n++] = (struct http1_field){ name, value };
	}
}

/* Content-Length and Transfer-Encoding (RFC 9112 6.1 to 6.3): one of them, once. */
static int read_framing(struct http1_head *out, struct box_err *err)
{
	size_t n_len, n_te;
	const struct http1_field *len = http1_find(out, SV("Content-Length"), &n_len);
	const struct http1_field *te = http1_find(out, SV("Transfer-Encoding"), &n_te);

	if (n_len > 1 || n_te > 1 || (n_len != 0 && n_te != 0))
		return box_fail(err, BOX_EPARSE, 0,
		    "more than one of Content-Length and Transfer-Encoding (RFC 9112 6.3)");
	if (te != NULL) {
		if (out->minor == 0)
			return box_fail(err, BOX_EPARSE, 0, "Transfer-Encoding in HTTP/1.0");
		if (!sv_eq_nocase(te->value, SV("chunked")))
			return box_fail(
			    err, BOX_EPARSE, 0, "the only transfer coding is 'chunked'");
		out->framing = HTTP1_CHUNKED;
	}
	if (len != NULL) {
		if (len->value.n == 0 || len->value.n > 19 ||
		    !sv_to_u64(len->value, 10, INT64_MAX, &out->length))
			return box_fail(
			    err, BOX_EPARSE, 0, "Content-Length is not a decimal number");
		out->has_length = true;
		out->framing = HTTP1_LENGTH;
	}
	out->keep_alive = out->minor == 1 && !http1_lists(out, SV("Connection"), SV("close"));
	return 0;
}

static bool read_version(sv s, uint8_t *minor)
{
	if (sv_eq(s, SV("HTTP/1.1")))
		*minor = 1;
	else if (sv_eq(s, SV("HTTP/1.0")))
		*minor = 0;
	else
		return false;
	return true;
}

/* A standard method in another case. Methods are case-sensitive (RFC 9110 9.1), and yet some
 * servers fold them: what is judged as "delete" would be done as DELETE. */
static bool is_misspelt(sv method)
{
	static const sv known[] = { SV_INIT("GET"), SV_INIT("HEAD"), SV_INIT("POST"),
		SV_INIT("PUT"), SV_INIT("DELETE"), SV_INIT("PATCH"), SV_INIT("OPTIONS"),
		SV_INIT("CONNECT"), SV_INIT("TRACE"), SV_INIT("TRACK") };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (sv_eq_nocase(method, known[i]))
			return !sv_eq(method, known[i]);
	return false;
}

static int read_request_line(sv line, struct http1_head *out, struct box_err *err)
{
	sv version, rest;

	if (!sv_cut(line, ' ', &out->method, &rest) || !sv_cut(rest, ' ', &out->target, &version))
		return box_fail(
		    err, BOX_EPARSE, 0, "the request line is not 'METHOD target HTTP/1.1'");
	if (!http1_is_token(out->method) || out->method.n > HTTP1_METHOD_MAX)
		return box_fail(err, BOX_EPARSE, 0, "the method is not a token of at most %d bytes",
		    HTTP1_METHOD_MAX);
	if (is_misspelt(out->method))
		return box_fail(err, BOX_EPARSE, 0,
		    "the method is a standard one in other letters; methods are upper case");
	if (!read_version(version, &out->minor))
		return box_fail(err, BOX_EPARSE, 0, "the version is neither HTTP/1.1 nor HTTP/1.0");
	for (size_t i = 0; i < out->target.n; i++) {
		uint8_t c = (uint8_t)out->target.p[i];

		if (c < 0x21 || c == 0x7f)
			return box_fail(
			    err, BOX_EPARSE, 0, "the request target holds byte 0x%02x", c);
	}
	if (out->target.n == 0)
		return box_fail(err, BOX_EPARSE, 0, "the request target is empty");
	return 0;
}

int http1_request(sv head, struct http1_head *out, struct box_err *err)
{
	const struct http1_field *f;
	size_t n;

	memset(out, 0, sizeof(*out));
	if (read_request_line(next_line(&head), out, err) < 0 || read_fields(head, out, err) < 0 ||
	    read_framing(out, err) < 0)
		return -1;
	f = http1_find(out, SV("Host"), &n);
	if (n > 1 || (n == 0 && out->minor == 1))
		return box_fail(
		    err, BOX_EPARSE, 0, "a request has exactly one Host header (RFC 9112 3.2)");
	if (f != NULL)
		out->host = f->value.n != 0 ? f->value : SV("");
	f = http1_find(out, SV("Expect"), &n);
	if (f != NULL && out->minor == 1) {
		if (n > 1 || !sv_eq_nocase(f->value, SV("100-continue")))
			return box_fail(
			    err, BOX_EPARSE, 0, "the only expectation is '100-continue'");
		out->expect_continue = true;
	}
	return 0;
}

int http1_response(sv head, bool to_head, struct http1_head *out, struct box_err *err)
{
	sv line = next_line(&head), version, status;
	uint64_t code;

	memset(out, 0, sizeof(*out));
	if (!sv_cut(line, ' ', &version, &status) || !read_version(version, &out->minor))
		return box_fail(
		    err, BOX_EPARSE, 0, "the reply does not begin with HTTP/1.1 or HTTP/1.0");
	(void)sv_cut(status, ' ', &status, &out->reason); /* the reason may be missing altogether */
	if (status.n != 3 || !sv_to_u64(status, 10, 599, &code) || code < 100 ||
	    !http1_is_value(trim_ows(out->reason)))
		return box_fail(err, BOX_EPARSE, 0, "the status line of the reply is malformed");
	out->status = (uint16_t)code;
	if (read_fields(head, out, err) < 0 || read_framing(out, err) < 0)
		return -1;
	if (to_head || code < 200 || code == 204 || code == 304) {
		out->framing = HTTP1_EMPTY;
	} else if (out->framing == HTTP1_EMPTY) {
		out->framing = HTTP1_CLOSE;
		out->keep_alive = false;
	}
	return 0;
}
