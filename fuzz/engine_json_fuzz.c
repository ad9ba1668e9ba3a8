/* Values as JSON: what is read and written again is the same value. */
#include "engine/valjson.h"

#include "base/ban.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	AUTO_ARENA a = { .limit = 1 << 24 };
	AUTO_BUF b = buf_with(1 << 24);
	struct dw_val v, again;
	struct box_err err;

	if (eng_json_get(&a, (sv){ (const char *)p, n }, 0, &v, &err) < 0)
		return 0;
	eng_json_put(&b, &v);
	if (!buf_ok(&b))
		return 0;
	if (eng_json_get(&a, buf_sv(&b), 0, &again, &err) < 0) {
		if (err.code != BOX_ELIMIT)
			__builtin_trap();
	} else if (!dw_val_eq(&v, &again)) {
		__builtin_trap();
	}
	return 0;
}
