/* Policy text with temporal blocks and macros: parse, expand, check, plan, print. What the formatter takes, it takes
 * again and leaves as it is; a source that loads still does, with the same rules. */
#include <stdlib.h>

#include "dogwood/box_checks.h"
#include "dogwood/format.h"
#include "dogwood/policyset.h"

#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())

static void same_rules(const struct dw_set *s, const struct dw_load *like, sv text)
{
	struct dw_load in = *like;
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err;
	struct dw_set *t;

	in.policy.text = text;
	t = dw_load(&in, &d, &err);
	CHECK(t != NULL && dw_set_nrules(t) == dw_set_nrules(s));
	for (size_t i = 0; i < dw_set_nrules(s); i++)
		CHECK(sv_eq(dw_set_rule(s, i)->fingerprint, dw_set_rule(t, i)->fingerprint));
	dw_set_free(t);
}

static void format(const struct dw_set *s, const struct dw_load *in)
{
	AUTO_BUF once = buf_with(1 << 20), twice = buf_with(1 << 20);
	AUTO_DW_DIAGS d = { 0 };
	AUTO_DW_DIAGS d2 = { 0 };

	if (dw_format(SV("fuzz.dw"), in->policy.text, 60, &once, &d) < 0) {
		/* What loads is refused only for want of room. */
		CHECK(d.errors != 0 && (s == NULL || sv_eq(sv_c(d.v[d.n - 1].code), SV("limit"))));
		return;
	}
	CHECK(dw_format(SV("fuzz.dw"), buf_sv(&once), 60, &twice, &d2) == 0);
	CHECK(sv_eq(buf_sv(&once), buf_sv(&twice)));
	if (s != NULL)
		same_rules(s, in, buf_sv(&once));
}

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
	format(s, &in);
	if (s == NULL)
		return 0;
	dw_set_expand(s, &out);
	dw_set_explain(s, &out);
	(void)dw_box_check(s, SV("/home/dev"), &d);
	dw_set_free(s);
	return 0;
}
