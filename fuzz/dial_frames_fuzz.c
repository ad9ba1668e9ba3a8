/* Frames of a box-dial that was taken over (it reads DNS answers), into the monitor. */
#include "monitor/egress.c"

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
	r->m.dial = (struct crew){ .m = &r->m, .program = "box-dial", .pid = -1, .pidfd = -1 };
	r->m.dial.chan = chan_new(r->m.loop, r->m.decider, pair[0], &dial_ops, &r->m, &err);
	if (r->m.dial.chan == NULL)
		abort();
	if ((data[0] & 1) != 0)
		chan_set_state(r->m.dial.chan, STATE_LIVE);
	rig_feed(r, pair[1], data + 1, size - 1);
	(void)close(pair[1]);
	rig_settle(r);
	return 0;
}
