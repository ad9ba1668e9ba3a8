/* Bytes of log files: segment headers and records. */
#include "engine/record.h"

#include "base/ban.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	sv bytes = { (const char *)p, n };
	struct wal_seg seg;
	struct wal_rec rec;
	const char *why;
	AUTO_BUF b = buf_with(1 << 20);

	(void)wal_seg_get(bytes, &seg, &why);
	(void)wal_rec_get(bytes, 0, &rec, &why);
	/* What is written comes back. */
	if (n > 40) {
		struct wal_rec in = { .offset = p[0],
			.ts = p[1],
			.durable = p[2],
			.kind = p[3],
			.flags = p[4],
			.body = sv_sub(bytes, 40, n),
			.prev = p };

		wal_rec_put(&b, p[5], &in);
		if (buf_ok(&b) && (wal_rec_get(buf_sv(&b), p[5], &rec, &why) != WAL_FOUND ||
		                      !sv_eq(rec.body, in.body) || rec.kind != in.kind))
			__builtin_trap();
	}
	return 0;
}
