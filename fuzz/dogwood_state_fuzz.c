/* Stored monitor state: damaged bytes are refused or give a state that saves and steps. The first
 * byte picks whether the input is a patch to a good state. */
#include "dogwood/monitor.h"

#include "base/ban.h"

static const char policy[] =
    "permit (principal, action, resource) when temporal { formerly within 1h "
    "N::Action::\"A\"::request{ input.u: context.input.u } };\n"
    "permit (principal, action, resource) when temporal { previous within 1h "
    "N::Action::\"A\"::request{} };\n"
    "forbid (principal, action, resource) when temporal { N::Action::\"A\"::request{ input.u: "
    "context.input.u } since within 1h "
    "N::Action::\"A\"::request{ input.u: context.input.u } };\n"
    "forbid (principal, action, resource) when temporal { (sum v for (v: Long), (t: Timepoint). "
    "where (formerly within 1h "
    "(N::Action::\"A\"::request{ input.v: v } && tp(t)))) > 3 };\n"
    "permit (principal, action, resource) when temporal { exists (u: String). (formerly within 1h "
    "N::Action::\"A\"::request{ input.u: u } "
    "&& formerly within 1h N::Action::\"B\"::request{ input.u: u }) };\n"
    "permit (principal, action, resource) when temporal { formerly within 1h "
    "(!N::Action::\"A\"::request{ input.u: context.input.u }) };\n";
static const char events[] = "decision event <A>::request { ...inputs(A) }";

static struct dw_event event(struct arena *a, int64_t ts)
{
	struct dw_rec in = dw_rec_in(a), bag = dw_rec_in(a);
	struct dw_event e = {
		.ns = SV("N::Action"), .id = SV("A"), .kind = SV("request"), .ts = ts
	};

	dw_rec_str(&in, SV("u"), SV("x"));
	dw_rec_int(&in, SV("v"), ts);
	dw_rec_add(&bag, SV("input"), dw_rec_val(&in));
	e.logged = e.context = dw_rec_val(&bag);
	return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct dw_set *s;
	struct dw_load in = { .policy = { SV("p"), sv_c(policy) },
		.event_schema = { SV("e"), sv_c(events) },
		.tick = DW_TICK_SECOND };
	AUTO_ARENA a = { .limit = 16 << 20 };
	AUTO_BUF good = buf_with(1 << 20), again = buf_with(4 << 20);
	struct rd r = rd_of(data, size);
	struct box_err err;
	struct dw_event e;
	struct dwm *m;
	bool v;

	if (s == NULL) {
		AUTO_DW_DIAGS ds = { 0 };

		s = dw_load(&in, &ds, &err);
		if (s == NULL)
			__builtin_trap();
	}
	if (size > 3 && data[0] != 0) {
		m = dwm_new(s, DWM_MONOTONE, &err);
		for (int64_t i = 0; i < 5; i++) {
			e = event(&a, i);
			if (dwm_step(m, &e, &err) < 0)
				__builtin_trap();
		}
		dwm_save(m, &good);
		dwm_free(m);
		/* Overwrite some bytes of it. */
		for (size_t i = 1; i + 2 < size; i += 3)
			good.p[(size_t)(data[i] << 8 | data[i + 1]) % good.n] = data[i + 2];
		r = rd_of(good.p, good.n);
	}
	m = dwm_load(s, &r, &err);
	if (m == NULL)
		return 0;
	dwm_save(m, &again);
	e = event(&a, INT64_MAX);
	if (dwm_step(m, &e, &err) == 0) {
		for (size_t i = 0; i < dw_set_nleaves(s); i++)
			(void)dwm_leaf(m, i, &e, &v, &err);
	}
	dwm_free(m);
	return 0;
}
