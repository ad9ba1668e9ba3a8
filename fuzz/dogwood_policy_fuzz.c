/* Policy text with temporal blocks and macros: parse, expand, check, plan, print, without a schema
 * and with one. What the formatter takes, it takes again and leaves as it is; a source that loads
 * still does, with the same rules. Then a short history is stepped through it: keyed states and the
 * general evaluator decide the same. */
#include <stdlib.h>

#include "dogwood/box_checks.h"
#include "dogwood/decide.h"
#include "dogwood/format.h"
#include "dogwood/policyset.h"

#include "render.h"

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

static const char actions[] = "namespace N { entity U { level: Long, tag?: String }; entity R; "
                              "type In = { u: String, v: Long, w?: String, d: decimal, b: "
                              "Bool, e: U, g: { x: String } }; action A, B, C appliesTo { "
                              "principal: U, resource: R, context: { input: In, output?: { "
                              "status: Long } } }; }";

static struct dw_event event(struct arena *a, int i)
{
	static const char *const ids[] = { "A", "B", "A", "C" }, *const kinds[] = { "request",
		"response", "request", "error" };
	struct dw_rec in = dw_rec_in(a), g = dw_rec_in(a), bag = dw_rec_in(a);
	struct dw_event e = { .ns = SV("N::Action"),
		.id = sv_c(ids[i % 4]),
		.kind = sv_c(kinds[i / 2 % 4]),
		.ts = i * i / 2 };

	e.principal = (struct dw_uid){ SV("N::U"), i % 3 != 0 ? SV("a") : SV("b") };
	e.resource = (struct dw_uid){ SV("N::R"), SV("r") };
	dw_rec_str(&in, SV("u"), i % 3 != 0 ? SV("a") : SV("b"));
	dw_rec_int(&in, SV("v"), i % 4);
	if (i % 5 != 0)
		dw_rec_str(&in, SV("w"), SV("a"));
	dw_rec_add(&in, SV("d"), dw_decimal(i % 2 != 0 ? SV("1.0") : SV("1.00")));
	dw_rec_add(&in, SV("b"), dw_bool(i % 2 != 0));
	dw_rec_add(&in, SV("e"), dw_ent(SV("N::U"), SV("a")));
	dw_rec_str(&g, SV("x"), SV("a"));
	dw_rec_add(&in, SV("g"), dw_rec_val(&g));
	dw_rec_add(&bag, SV("input"), dw_rec_val(&in));
	e.context = dw_rec_val(&bag);
	dw_rec_add(&bag, SV("callerPrincipal"), dw_ent(e.principal.type, e.principal.id));
	e.logged = dw_rec_val(&bag);
	return e;
}

static void run(const struct dw_set *s)
{
	AUTO_ARENA a = { .limit = 1 << 20 };
	struct dw_decision d[2];
	struct dw_scratch *sc[2];
	struct dwm *m[2];
	struct box_err err;
	int k;

	for (k = 0; k < 2; k++) {
		m[k] = dwm_new(s, k == 0 ? DWM_MONOTONE : DWM_ANY, &err);
		sc[k] = dw_scratch_new(&err);
		CHECK(m[k] != NULL && sc[k] != NULL);
	}
	for (int i = 0; i < 12; i++) {
		struct dw_event e = event(&a, i);

		for (k = 0; k < 2; k++)
			CHECK(dwm_step(m[k], &e, &err) == 0);
		if (!dw_set_is_decision(s, e.kind))
			continue;
		for (k = 0; k < 2; k++)
			CHECK(dw_decide(sc[k], s, m[k], &e, &d[k], &err) == 0);
		CHECK(d[0].allow == d[1].allow && d[0].cause == d[1].cause &&
		      d[0].nrules == d[1].nrules && d[0].nerrors == d[1].nerrors);
	}
	for (k = 0; k < 2; k++) {
		dwm_free(m[k]);
		dw_scratch_free(sc[k]);
	}
}

/* With a schema there is more to check. */
static void with_schema(const struct dw_load *like)
{
	struct dw_load in = *like;
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err;
	struct dw_set *s;

	in.action_schema = (struct dw_source){ SV("actions"), sv_c(actions) };
	s = dw_load(&in, &d, &err);
	CHECK((s != NULL) == (d.errors == 0));
	fuzz_render(&d);
	dw_set_free(s);
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
	fuzz_render(&d);
	format(s, &in);
	with_schema(&in);
	if (s == NULL)
		return 0;
	run(s);
	dw_set_expand(s, &out);
	dw_set_explain(s, &out);
	(void)dw_box_check(s, SV("/home/dev"), &d);
	dw_set_free(s);
	return 0;
}
