/* Frames of a box-files, into the monitor. */
#include "monitor/fileserver.c"

#include "monitor_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rig *r = rig_get();

	return rig_crew(r, &r->m.files, "box-files", &ops, STATE_LIVE, data, size);
}
