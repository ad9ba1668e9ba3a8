/* Event schemas, with and without an action schema. */
#include "dogwood/box_schema.h"
#include "dogwood/policyset.h"

#include "base/ban.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dw_load in = { .policy = { SV("p"), SV("") }, .tick = DW_TICK_SECOND };
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err;

	in.event_schema =
	    (struct dw_source){ SV("fuzz"), { size != 0 ? (const char *)data : "", size } };
	dw_set_free(dw_load(&in, &d, &err));
	in.action_schema = (struct dw_source){ SV("a"), sv_c(dw_box_actions) };
	dw_set_free(dw_load(&in, &d, &err));
	return 0;
}
