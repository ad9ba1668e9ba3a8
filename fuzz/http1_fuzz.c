/* HTTP/1.1 heads and bodies: whatever the pieces, the reading is the same; what is accepted holds
 * no line end inside a field. */
#include <stdlib.h>

#include "gateway/http1.h"

#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())

static bool clean(sv s)
{
	return sv_find(s, '\r') < 0 && sv_find(s, '\n') < 0 && sv_find(s, '\0') < 0;
}

static int read_head(sv in, size_t piece, bool request, struct http1_head *h, size_t *used)
{
	struct http1_scan s = { 0 };
	struct box_err err = { 0 };
	sv head;

	for (size_t n = piece < in.n ? piece : in.n;; n = n + piece < in.n ? n + piece : in.n) {
		int r = http1_scan(&s, sv_sub(in, 0, n), &head, used, &err);

		if (r < 0)
			return -1;
		if (r == 1) {
			r = request ? http1_request(head, h, &err)
			            : http1_response(head, false, h, &err);
			return r < 0 ? -1 : 1;
		}
		if (n == in.n)
			return 0;
	}
}

static int read_body(sv in, size_t piece, const struct http1_head *h, struct buf *out, size_t *used)
{
	struct http1_body b;
	struct box_err err = { 0 };
	int r = 0;

	*used = 0;
	http1_body_init(&b, h);
	while (r == 0) {
		sv part = sv_sub(in, *used, piece), data;
		size_t n;

		switch (http1_body_step(&b, part, &n, &data, &err)) {
		case HTTP1_MORE:
			CHECK(n == part.n);
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
		*used += n;
		if (*used == in.n && part.n == n && r == 0) {
			if (http1_body_eof(&b) && h->framing != HTTP1_CLOSE)
				continue; /* the end is told without input */
			break;
		}
	}
	buf_put_sv(out, buf_sv(&b.trailers));
	http1_body_fini(&b);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	static struct http1_head a, b;
	bool request;
	size_t piece, used_a = 0, used_b = 0;
	int ra, rb;
	sv in;

	if (n < 1)
		return 0;
	request = (d[0] & 1) != 0;
	piece = (size_t)(d[0] >> 1) + 1;
	in = (sv){ (const char *)d + 1, n - 1 };
	ra = read_head(in, SIZE_MAX / 4, request, &a, &used_a);
	rb = read_head(in, piece, request, &b, &used_b);
	CHECK(ra == rb);
	if (ra != 1)
		return 0;
	CHECK(used_a == used_b && a.framing == b.framing && a.length == b.length && a.n == b.n);
	CHECK(clean(a.method) && clean(a.target) && clean(a.reason));
	for (size_t i = 0; i < a.n; i++)
		CHECK(http1_is_token(a.field[i].name) && http1_is_value(a.field[i].value));
	AUTO_BUF whole = buf_with(1 << 20), pieces = buf_with(1 << 20);

	in = sv_sub(in, used_a, in.n);
	ra = read_body(in, SIZE_MAX / 4, &a, &whole, &used_a);
	rb = read_body(in, piece, &a, &pieces, &used_b);
	CHECK(ra == rb);
	if (ra >= 0)
		CHECK(used_a == used_b && sv_eq(buf_sv(&whole), buf_sv(&pieces)));
	return 0;
}
