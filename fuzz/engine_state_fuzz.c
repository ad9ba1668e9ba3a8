/* Snapshot files, with the check sum made right, and policy changes of the log. */
#include <string.h>

#include "base/hash.h"
#include "engine/change.h"
#include "engine/state.h"

#include "base/ban.h"

#define HEAD 16 /* magic, version, check sum */

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	AUTO_BUF b = buf_with(1 << 20);
	AUTO_BUF again = buf_with(1 << 22);
	struct eng_state s;
	struct box_err err;
	uint8_t id[WAL_ID];
	struct eng_set *set;
	int32_t *map;
	uint32_t crc;

	if (n < HEAD || n > 1 << 16)
		return 0;
	if (p[0] == 'D') {
		buf_put_c(&b, "DWSNAP\r\n");
		buf_put_u32(&b, 1);
		crc = crc32c(0, (sv){ (const char *)p + HEAD, n - HEAD });
		buf_put_u32(&b, crc);
		buf_put(&b, p + HEAD, n - HEAD);
		eng_state_init(&s, 8);
		/* What was read can be written. */
		if (eng_state_load(&s, buf_sv(&b), NULL, id, &err) == 0)
			eng_state_save(&s, id, &again);
		eng_state_fini(&s);
	} else if (eng_change_get((sv){ (const char *)p, n }, &set, &map, &err) == 0) {
		eng_set_unref(set);
	}
	return 0;
}
