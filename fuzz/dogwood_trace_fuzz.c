/* Trace files, stepped into a monitor with keyed and general conditions. */
#include "dogwood/decide.h"
#include "dogwood/trace.h"

#include "base/ban.h"

static const char policy[] =
    "permit (principal, action, resource) when temporal { formerly within 1h "
    "N::Action::\"A\"::request{ input.u: context.input.u } };\n"
    "forbid (principal, action, resource) when temporal { !N::Action::\"B\"::request{ input.u: "
    "context.input.u } since within 1h "
    "N::Action::\"A\"::request{ input.u: context.input.u } };\n"
    "forbid (principal, action, resource) when temporal { (count for (t: Timepoint). where "
    "(formerly within 1h "
    "(N::Action::\"A\"::request{ input.u: * } && tp(t)))) > 3 };\n"
    "permit (principal, action, resource) when temporal { exists (u: String). (formerly within 1h "
    "N::Action::\"A\"::request{ input.u: u } "
    "&& formerly within 1h N::Action::\"B\"::request{ input.u: u }) };\n";
static const char events[] =
    "decision event <A>::request { ...inputs(A) } event <A>::response { ...inputs(A) }";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct dw_set *s;
	struct dw_load in = { .policy = { SV("p"), sv_c(policy) },
		.event_schema = { SV("e"), sv_c(events) },
		.tick = DW_TICK_SECOND };
	struct dw_trace t = dw_trace_of((sv){ (const char *)data, size });
	AUTO_ARENA a = { .limit = 16 << 20 };
	AUTO_BUF b = buf_with(1 << 20);
	struct dw_scratch *sc;
	struct dw_decision d;
	struct box_err err;
	struct dw_event e;
	struct dwm *m;

	if (s == NULL) {
		AUTO_DW_DIAGS ds = { 0 };

		s = dw_load(&in, &ds, &err);
		if (s == NULL)
			__builtin_trap();
	}
	m = dwm_new(s, size % 2 == 0 ? DWM_MONOTONE : DWM_ANY, &err);
	sc = dw_scratch_new(&err);
	for (int i = 0; i < 200 && dw_trace_next(&t, &a, &e, &err) == 1; i++) {
		dw_trace_put(&b, &e);
		if (dwm_step(m, &e, &err) == 0 && dw_set_is_decision(s, e.kind))
			(void)dw_decide(sc, s, m, &e, &d, &err);
	}
	dwm_free(m);
	dw_scratch_free(sc);
	return 0;
}
