/* Declarations of information providers, and a policy that calls what they may declare. A set that
 * loads prints and decides; a host that answers nonsense denies. */
#include <stdlib.h>

#include "dogwood/decide.h"
#include "dogwood/policyset.h"

#include "render.h"

#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())

static int nonsense(void *arg, const struct dw_provider_part *part, size_t n, struct arena *a,
    struct dw_val *out, struct box_err *err)
{
	(void)arg, (void)part, (void)a, (void)err;
	*out = n % 2 == 0 ? dw_str(SV("x")) : dw_int(1);
	return 0;
}

static void decide(const struct dw_set *s)
{
	struct dw_scratch *sc = dw_scratch_new(NULL);
	struct dw_event e = { .ns = SV("Action"),
		.id = SV("x"),
		.kind = SV("request"),
		.principal = { SV("A"), SV("a") },
		.resource = { SV("A"), SV("b") },
		.context = { .tag = DW_OBJECT } };
	struct dw_decision d;
	struct box_err err;

	if (sc == NULL)
		return;
	dw_scratch_provide(sc, nonsense, NULL);
	if (dw_set_nleaves(s) == 0 && dw_decide(sc, s, NULL, &e, &d, &err) == 0)
		CHECK(!d.allow || d.fault == NULL);
	dw_scratch_free(sc);
}

/* The input: declarations, a line with "--", the policy. Without the line the declarations
 * alone. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char calls[] = "permit (principal, action, resource) when { P::f(\"a\", 1, "
	                            "[context.x]).m(2) == 3 || P::g().a has b };";
	sv all = { (const char *)data, size };
	ptrdiff_t cut = sv_find_sv(all, SV("\n--\n"));
	struct dw_load in = { .policy = { SV("p"),
		                  cut < 0 ? SV("") : sv_sub(all, (size_t)cut + 4, SIZE_MAX) },
		.providers = { SV("j"), cut < 0 ? all : sv_sub(all, 0, (size_t)cut) },
		.tick = DW_TICK_SECOND };
	AUTO_DW_DIAGS d = { 0 };
	AUTO_BUF out = buf_with(1 << 20);
	struct box_err err;
	struct dw_set *s;

	if (in.providers.text.p == NULL)
		return 0;
	if (in.policy.text.n == 0)
		in.policy.text = sv_c(calls);
	s = dw_load(&in, &d, &err);
	fuzz_render(&d);
	CHECK(s != NULL || d.errors != 0);
	if (s == NULL)
		return 0;
	dw_set_expand(s, &out);
	decide(s);
	dw_set_free(s);
	return 0;
}
