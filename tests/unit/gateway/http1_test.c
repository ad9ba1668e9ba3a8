/* The HTTP/1.1 reader byte by byte: every case is also fed one byte at a time, and both ways must
 * agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "gateway/http1.h"

#include "base/ban.h"

/* Scan in pieces of `piece` bytes, then parse. 1: parsed, 0: incomplete, -1: refused. */
static int read_request(
    sv in, size_t piece, struct http1_head *h, size_t *used, struct box_err *err)
{
	struct http1_scan s = { 0 };
	sv head;

	for (size_t n = piece < in.n ? piece : in.n;; n = n + piece < in.n ? n + piece : in.n) {
		int r = http1_scan(&s, sv_sub(in, 0, n), &head, used, err);

		if (r < 0)
			return -1;
		if (r == 1)
			return http1_request(head, h, err) < 0 ? -1 : 1;
		if (n == in.n)
			return 0;
	}
}

static void accepted(void **state)
{
	static const struct {
		const char *in;
		const char *method, *target;
		enum http1_framing framing;
		uint64_t length;
		bool keep_alive, expect;
	} cases[] = {
		{ "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/", HTTP1_EMPTY, 0, true, false },
		{ "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/", HTTP1_EMPTY, 0, true,
		    false },
		{ "GET / HTTP/1.0\r\n\r\n", "GET", "/", HTTP1_EMPTY, 0, false, false },
		{ "GET /\xc3\xa9 HTTP/1.1\r\nHost:a\r\nX:\t\r\n\r\n", "GET", "/\xc3\xa9",
		    HTTP1_EMPTY, 0, true, false },
		{ "P-1 * HTTP/1.1\r\nhost: a\r\nContent-Length: 00012\r\n\r\n", "P-1", "*",
		    HTTP1_LENGTH, 12, true, false },
		{ "P / HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775807\r\n\r\n", "P",
		    "/", HTTP1_LENGTH, INT64_MAX, true, false },
		{ "P / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \tCHUNKED \r\n\r\n", "P", "/",
		    HTTP1_CHUNKED, 0, true, false },
		{ "P / HTTP/1.1\r\nHost: a\r\nConnection: x , Close\r\n\r\n", "P", "/", HTTP1_EMPTY,
		    0, false, false },
		{ "P / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n\r\n", "P", "/", HTTP1_EMPTY,
		    0, true, true },
		{ "P / HTTP/1.1\r\nHost: a\r\nX: \x80\xff\t,\r\n\r\n", "P", "/", HTTP1_EMPTY, 0,
		    true, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t piece = 1; piece < 100; piece += 98) {
			struct http1_head h;
			struct box_err err = { 0 };
			size_t used = 0;
			int r = read_request(sv_c(cases[i].in), piece, &h, &used, &err);

			if (r != 1)
				fail_msg("case %zu: %d %s", i, r, err.msg);
			assert_int_equal(used, strlen(cases[i].in));
			assert_true(sv_eq(h.method, sv_c(cases[i].method)));
			assert_true(sv_eq(h.target, sv_c(cases[i].target)));
			assert_int_equal(h.framing, cases[i].framing);
			assert_int_equal(h.length, cases[i].length);
			assert_int_equal(h.keep_alive, cases[i].keep_alive);
			assert_int_equal(h.expect_continue, cases[i].expect);
		}
	}
}

#define H "Host: a\r\n"
static void refused(void **state)
{
	static const char *const cases[] = {
		"\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n",
		" GET / HTTP/1.1\r\n" H "\r\n",
		"\x16\x03\x01",
		"GET / HTTP/1.1\n" H "\r\n",
		"GET / HTTP/1.1\r\n" H "\n",
		"GET / HTTP/1.1\r\n" H "X: a\rb\r\n\r\n",
		"GET / HTTP/1.1\r\r\n" H "\r\n",
		"GET  / HTTP/1.1\r\n" H "\r\n",
		"GET / / HTTP/1.1\r\n" H "\r\n",
		"GET /  HTTP/1.1\r\n" H "\r\n",
		"GET / HTTP/1.1 \r\n" H "\r\n",
		"GET\t/ HTTP/1.1\r\n" H "\r\n",
		"GET /\r\n" H "\r\n",
		"GET\r\n" H "\r\n",
		"get / HTTP/1.1\r\n" H "\r\n",
		"Delete / HTTP/1.1\r\n" H "\r\n",
		"tRACE / HTTP/1.1\r\n" H "\r\n",
		"connect a:1 HTTP/1.1\r\n" H "\r\n",
		"G(T / HTTP/1.1\r\n" H "\r\n",
		"GETTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT / HTTP/1.1\r\n" H "\r\n",
		"GET / HTTP/1.10\r\n" H "\r\n",
		"GET / HTTP/1.2\r\n" H "\r\n",
		"GET / HTTP/2.0\r\n" H "\r\n",
		"GET / http/1.1\r\n" H "\r\n",
		"GET /\x01 HTTP/1.1\r\n" H "\r\n",
		"GET /\x7f HTTP/1.1\r\n" H "\r\n",
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\n" H H "\r\n",
		"GET / HTTP/1.1\r\n" H ": x\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "X : x\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "X\t: x\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "X\r\n\r\n",
		"GET / HTTP/1.1\r\n X: y\r\n" H "\r\n",
		"GET / HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "X: a\r\n\tb\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "X\x80: a\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "X: \x01\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "X: \x7f\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Content-Length: 5, 5\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Content-Length: +5\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Content-Length: -5\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Content-Length: 5a\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Content-Length: 0x5\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Content-Length: \r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Content-Length: 9223372036854775808\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Content-Length: 111111111111111111111111111111\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
		"GET / HTTP/1.1\r\n" H
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, chunked\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Transfer-Encoding: \"chunked\"\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n",
		"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Expect: 100-continuex\r\n\r\n",
		"GET / HTTP/1.1\r\n" H "Expect: 100-continue\r\nExpect: 100-continue\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t piece = 1; piece < 100; piece += 98) {
			struct http1_head h;
			struct box_err err = { 0 };
			size_t used;

			if (read_request(sv_c(cases[i]), piece, &h, &used, &err) != -1)
				fail_msg("case %zu in pieces of %zu was not refused: %s", i, piece,
				    cases[i]);
			assert_true(err.msg[0] != '\0');
		}
	}
}

static void nul_bytes(void **state)
{
	static const char in[] = "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n";
	struct http1_head h;
	struct box_err err = { 0 };
	size_t used;

	(void)state;
	assert_int_equal(read_request((sv){ in, sizeof(in) - 1 }, 1, &h, &used, &err), -1);
}

static void limits(void **state)
{
	AUTO_BUF b = buf_with(1 << 20);
	struct http1_head h;
	struct box_err err = { 0 };
	size_t used;

	(void)state;
	buf_put_c(&b, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
	while (b.n < HTTP1_HEAD_MAX - 4)
		buf_put_byte(&b, 'x');
	buf_put_c(&b, "\r\n\r\n");
	assert_int_equal(b.n, HTTP1_HEAD_MAX);
	assert_int_equal(read_request(buf_sv(&b), 1000, &h, &used, &err), 1);
	b.n -= 4;
	buf_put_c(&b, "x\r\n\r\n");
	assert_int_equal(read_request(buf_sv(&b), 1000, &h, &used, &err), -1);
	assert_int_equal(err.code, BOX_ELIMIT);
	buf_clear(&b);
	buf_put_c(&b, "GET / HTTP/1.1\r\nHost: a\r\n");
	for (int i = 0; i < HTTP1_FIELDS_MAX - 1; i++)
		buf_put_c(&b, "a: b\r\n");
	buf_put_c(&b, "\r\n");
	assert_int_equal(read_request(buf_sv(&b), 1000, &h, &used, &err), 1);
	b.n -= 2;
	buf_put_c(&b, "a: b\r\n\r\n");
	assert_int_equal(read_request(buf_sv(&b), 1000, &h, &used, &err), -1);
	assert_int_equal(err.code, BOX_ELIMIT);
}

static void responses(void **state)
{
	static const struct {
		const char *in;
		bool to_head;
		int status; /* 0: refused */
		enum http1_framing framing;
		bool keep_alive;
	} cases[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", false, 200, HTTP1_LENGTH, true },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", true, 200, HTTP1_EMPTY, true },
		{ "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n", false, 200, HTTP1_CHUNKED,
		    true },
		{ "HTTP/1.1 200 \r\n\r\n", false, 200, HTTP1_CLOSE, false },
		{ "HTTP/1.0 404 Not Found\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n",
		    false, 404, HTTP1_LENGTH, false },
		{ "HTTP/1.1 204 x\r\nContent-Length: 3\r\n\r\n", false, 204, HTTP1_EMPTY, true },
		{ "HTTP/1.1 304 x\r\nContent-Length: 3\r\n\r\n", false, 304, HTTP1_EMPTY, true },
		{ "HTTP/1.1 100 Continue\r\n\r\n", false, 100, HTTP1_EMPTY, true },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
		    false, 0, 0, false },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n", true, 0, 0,
		    false },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", false, 0, 0,
		    false },
		{ "HTTP/1.1 2000 OK\r\n\r\n", false, 0, 0, false },
		{ "HTTP/1.1 20 OK\r\n\r\n", false, 0, 0, false },
		{ "HTTP/1.1 099 OK\r\n\r\n", false, 0, 0, false },
		{ "HTTP/1.1 600 OK\r\n\r\n", false, 0, 0, false },
		{ "HTTP/1.1 +20 OK\r\n\r\n", false, 0, 0, false },
		{ "HTTP/2 200 OK\r\n\r\n", false, 0, 0, false },
		{ "ICY 200 OK\r\n\r\n", false, 0, 0, false },
		{ "HTTP/1.1 200 a\x01\r\n\r\n", false, 0, 0, false },
		{ "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", false, 0, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct http1_scan s = { 0 };
		struct http1_head h;
		struct box_err err = { 0 };
		size_t used;
		sv head;

		assert_int_equal(http1_scan(&s, sv_c(cases[i].in), &head, &used, &err), 1);
		if (cases[i].status == 0) {
			assert_int_equal(http1_response(head, cases[i].to_head, &h, &err), -1);
			continue;
		}
		assert_int_equal(http1_response(head, cases[i].to_head, &h, &err), 0);
		assert_int_equal(h.status, cases[i].status);
		assert_int_equal(h.framing, cases[i].framing);
		assert_int_equal(h.keep_alive, cases[i].keep_alive);
	}
}

/* Decode a body in pieces; *out gets payload, '|', trailers. 1: complete with `rest` bytes left, 0:
 * more, -1: refused. */
static int read_chunked(sv in, size_t piece, struct buf *out, size_t *rest)
{
	struct http1_head h = { .framing = HTTP1_CHUNKED };
	struct http1_body b;
	struct box_err err = { 0 };
	size_t at = 0, used;
	int r = 0;

	http1_body_init(&b, &h);
	while (at < in.n && r == 0) {
		sv part = sv_sub(in, at, piece), data;

		switch (http1_body_step(&b, part, &used, &data, &err)) {
		case HTTP1_MORE:
			assert_int_equal(used, part.n);
			break;
		case HTTP1_DATA:
			buf_put_sv(out, data);
			break;
		case HTTP1_END:
			r = 1;
			break;
		case HTTP1_BAD:
			r = -1;
			break;
		}
		at += used;
	}
	if (r == 1) {
		assert_true(http1_body_eof(&b));
		buf_put_byte(out, '|');
		buf_put_sv(out, buf_sv(&b.trailers));
	} else {
		assert_false(http1_body_eof(&b));
	}
	*rest = in.n - at;
	http1_body_fini(&b);
	return r;
}

static void chunked(void **state)
{
	static const struct {
		const char *in;
		const char *out; /* NULL: refused */
		size_t rest;
	} cases[] = {
		{ "5\r\nhello\r\n0\r\n\r\n", "hello|", 0 },
		{ "5\r\nhello\r\n0\r\n\r\nGET", "hello|", 3 },
		{ "0000000000000005\r\nhello\r\n000\r\n\r\n", "hello|", 0 },
		{ "A\r\n0123456789\r\na\r\nABCDEFGHIJ\r\n0\r\n\r\n", "0123456789ABCDEFGHIJ|", 0 },
		{ "1;a;b=c;d=\"e;\\\"f\"\r\nx\r\n0;z\r\n\r\n", "x|", 0 },
		{ "0\r\nA: b\r\nB:  c \r\n\r\n", "|A: b\r\nB: c\r\n", 0 },
		{ "0\r\nContent-Length: 1\r\nHOST: x\r\nA: 1\r\nProxy-X: 1\r\nSet-Cookie: "
		  "a\r\n\r\n",
		    "|A: 1\r\n", 0 },
		{ "5\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ "5\r\nhello\n0\r\n\r\n", NULL, 0 },
		{ "5\r\nhelloo\r\n0\r\n\r\n", NULL, 0 },
		{ "5 \r\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ " 5\r\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ "+5\r\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ "-5\r\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ "0x5\r\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ "\r\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ "g\r\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ "00000000000000005\r\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ "ffffffffffffffff\r\nhello", NULL, 0 },
		{ "8000000000000000\r\nhello", NULL, 0 },
		{ "5;\r\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ "5;=a\r\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ "5;a=\r\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ "5;a=\"\r\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ "5;a=\"b\"c\r\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ "5;a b\r\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ "5; a\r\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ "5;a=\"\x01\"\r\nhello\r\n0\r\n\r\n", NULL, 0 },
		{ "0\r\nA b: c\r\n\r\n", NULL, 0 },
		{ "0\r\n A: c\r\n\r\n", NULL, 0 },
		{ "0\r\nA: b\n\r\n", NULL, 0 },
		{ "0\r\nA: b\rc\r\n\r\n", NULL, 0 },
		{ "0\r\n: c\r\n\r\n", NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t piece = 1; piece <= 1001; piece = piece == 1   ? 3
		                                              : piece == 3 ? 1000
		                                                           : 2000) {
			AUTO_BUF out = buf_with(1 << 16);
			size_t rest;
			int r = read_chunked(sv_c(cases[i].in), piece, &out, &rest);

			if (cases[i].out == NULL) {
				if (r != -1)
					fail_msg("case %zu was not refused: %s", i, cases[i].in);
				continue;
			}
			if (r != 1 || !sv_eq(buf_sv(&out), sv_c(cases[i].out)))
				fail_msg(
				    "case %zu: %d '%.*s'", i, r, (int)out.n, (const char *)out.p);
			assert_int_equal(rest, cases[i].rest);
		}
	}
}

static void chunk_limits(void **state)
{
	AUTO_BUF in = buf_with(1 << 20), out = buf_with(1 << 20);
	size_t rest;

	(void)state;
	/* Extensions of 60 KiB in all are fine, of 70 KiB are not; sizes alone are not counted. */
	for (int i = 0; i < 35; i++) {
		buf_put_c(&in, "1;");
		for (int k = 0; k < 2000; k++)
			buf_put_byte(&in, 'a');
		buf_put_c(&in, "\r\nx\r\n");
		if (i == 29) {
			AUTO_BUF whole = buf_with(1 << 20);

			buf_put_sv(&whole, buf_sv(&in));
			buf_put_c(&whole, "0\r\n\r\n");
			assert_int_equal(read_chunked(buf_sv(&whole), 777, &out, &rest), 1);
		}
	}
	buf_put_c(&in, "0\r\n\r\n");
	assert_int_equal(read_chunked(buf_sv(&in), 777, &out, &rest), -1);
	buf_clear(&in);
	for (int i = 0; i < 30000; i++)
		buf_put_c(&in, "1\r\nx\r\n");
	buf_put_c(&in, "0\r\n\r\n");
	buf_clear(&out);
	assert_int_equal(read_chunked(buf_sv(&in), 777, &out, &rest), 1);
	assert_int_equal(out.n, 30001);
	buf_clear(&in);
	buf_put_c(&in, "0\r\nA: ");
	for (unsigned i = 0; i < HTTP1_LINE_MAX; i++)
		buf_put_byte(&in, 'x');
	buf_put_c(&in, "\r\n\r\n");
	assert_int_equal(read_chunked(buf_sv(&in), 777, &out, &rest), -1);
	buf_clear(&in);
	buf_put_c(&in, "0\r\n");
	for (int i = 0; i < 9000; i++)
		buf_put_c(&in, "Abc: de\r\n");
	assert_int_equal(read_chunked(buf_sv(&in), 777, &out, &rest), -1);
}

static void other_framings(void **state)
{
	struct http1_head h = { .framing = HTTP1_LENGTH, .length = 4 };
	struct http1_body b;
	struct box_err err = { 0 };
	size_t used;
	sv data;

	(void)state;
	http1_body_init(&b, &h);
	assert_int_equal(http1_body_step(&b, SV(""), &used, &data, &err), HTTP1_MORE);
	assert_int_equal(http1_body_step(&b, SV("ab"), &used, &data, &err), HTTP1_DATA);
	assert_false(http1_body_eof(&b));
	assert_int_equal(http1_body_step(&b, SV("cdef"), &used, &data, &err), HTTP1_DATA);
	assert_int_equal(used, 2);
	assert_true(sv_eq(data, SV("cd")));
	assert_true(http1_body_eof(&b));
	assert_int_equal(http1_body_step(&b, SV("ef"), &used, &data, &err), HTTP1_END);
	assert_int_equal(used, 0);
	http1_body_fini(&b);
	h = (struct http1_head){ .framing = HTTP1_EMPTY };
	http1_body_init(&b, &h);
	assert_int_equal(http1_body_step(&b, SV("ef"), &used, &data, &err), HTTP1_END);
	http1_body_fini(&b);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepted),
		cmocka_unit_test(refused),
		cmocka_unit_test(nul_bytes),
		cmocka_unit_test(limits),
		cmocka_unit_test(responses),
		cmocka_unit_test(chunked),
		cmocka_unit_test(chunk_limits),
		cmocka_unit_test(other_framings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
