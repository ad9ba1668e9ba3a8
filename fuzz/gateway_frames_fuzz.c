/* Frames of a box-gateway that was taken over, into the monitor: a secret must only ever answer a
 * request that its route covers. */
#include "monitor/egress.c"

#include "monitor_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rig *r = rig_get();

	return rig_crew(r, &r->m.gateway, "box-gateway", &gateway_ops, STATE_LIVE, data, size);
}
