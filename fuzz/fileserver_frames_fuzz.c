/* Frames of a box-files, into the monitor. */
#include "monitor/fileserver.c"

#include "monitor_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rig *r = rig_get();
	struct box_err err;
	int pair[2];

	if (size == 0)
		return 0;
	if (ipc_pair(pair, &err) != 0)
		abort();
	r->m.files = (struct crew){ .m = &r->m, .program = "box-files", .pid = -1, .pidfd = -1 };
	r->m.files.chan = chan_new(r->m.loop, r->m.decider, pair[0], &ops, &r->m, &err);
	if (r->m.files.chan == NULL)
		abort();
	if ((data[0] & 1) != 0)
		chan_set_state(r->m.files.chan, STATE_LIVE);
	rig_feed(r, pair[1], data + 1, size - 1);
	(void)close(pair[1]);
	rig_settle(r);
	return 0;
}
