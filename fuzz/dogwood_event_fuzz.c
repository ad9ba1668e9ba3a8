/* Stored events: what is read writes back to the same bytes that read to the same event. */
#include <stdlib.h>

#include "dogwood/event.h"

#include "base/ban.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_ARENA a = { .limit = 16 << 20 };
	AUTO_BUF x = buf_with(4 << 20), y = buf_with(4 << 20);
	struct rd r = rd_of(data, size);
	struct dw_event e;
	struct box_err err;

	if (dw_event_get(&r, &a, &e, &err) < 0)
		return 0;
	dw_event_put(&x, &e, DW_PUT_ALL);
	dw_val_key(&y, &e.logged);
	buf_clear(&y);
	r = rd_of(x.p, x.n);
	if (dw_event_get(&r, &a, &e, &err) < 0 || !rd_done(&r))
		abort();
	dw_event_put(&y, &e, DW_PUT_ALL);
	if (buf_ok(&x) && buf_ok(&y) && !sv_eq(buf_sv(&x), buf_sv(&y)))
		abort();
	return 0;
}
