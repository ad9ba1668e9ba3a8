/* Frames of whoever connects to the box's socket, into the monitor. */
#include "monitor/broker.c"

#include "monitor_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rig *r = rig_get();
	struct box_err err;
	int pair[2];

	if (ipc_pair(pair, &err) != 0)
		abort();
	serve(&r->m, pair[0]);
	rig_feed(r, pair[1], data, size);
	(void)close(pair[1]);
	rig_settle(r);
	return 0;
}
