/* Frames of a box-dial that was taken over (it reads DNS answers), into the monitor. */
#include "monitor/egress.c"

#include "monitor_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rig *r = rig_get();

	return rig_crew(r, &r->m.dial, "box-dial", &dial_ops, STATE_LIVE, data, size);
}
