/* Policy text with temporal blocks and macros: parse, expand, check, plan, print. */
#include "dogwood/box_checks.h"
#include "dogwood/policyset.h"

#include "base/ban.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dw_load in = { .policy = { SV("fuzz.dw"), { (const char *)data, size } },
		.tick = DW_TICK_SECOND };
	AUTO_DW_DIAGS d = { 0 };
	AUTO_BUF out = buf_with(1 << 20);
	struct box_err err;
	struct dw_set *s;

	if (size == 0)
		return 0;
	s = dw_load(&in, &d, &err);
	dw_diags_print(&d, &out);
	if (s == NULL)
		return 0;
	dw_set_expand(s, &out);
	dw_set_explain(s, &out);
	(void)dw_box_check(s, SV("/home/dev"), &d);
	dw_set_free(s);
	return 0;
}
