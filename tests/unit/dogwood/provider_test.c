/* Information providers: declarations, calls checked against them, answers in decisions, and that
 * nothing but a good answer permits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "dogwood/decide.h"
#include "dogwood/eschema.h"
#include "dogwood/policyset.h"

#include "base/ban.h"

static const char schema[] = "namespace App { entity User = { dept: String }; entity Chan; action "
                             "\"post\" appliesTo { principal: [User], "
                             "resource: [Chan], context: { input: { body: String, n: Long } } }; }";

static const char declared[] =
    "{\"availableProviders\": {"
    "\"Scan::it\": {\"argumentTypes\": [{\"type\": \"string\"}], \"outputType\": {\"type\": "
    "\"record\", \"fields\": "
    "{\"found\": {\"type\": \"boolean\"}, \"kind\": {\"type\": \"string\"}}, \"required\": "
    "[\"found\"]}, "
    "\"availableMethods\": {\"score\": {\"argumentTypes\": [{\"type\": \"integer\"}], "
    "\"outputType\": {\"type\": "
    "\"decimal\"}, \"inputType\": {\"type\": \"record\", \"fields\": {}}}, \"text\": "
    "{\"outputType\": {\"type\": "
    "\"string\"}, \"inputType\": {\"type\": \"string\"}}}},"
    "\"Org::teams\": {\"argumentTypes\": [{\"type\": \"string\"}, {\"type\": \"set\", \"items\": "
    "{\"type\": \"integer\"}}], "
    "\"outputType\": {\"type\": \"set\", \"items\": {\"type\": \"string\"}}},"
    "\"Clock::hour\": {\"outputType\": {\"type\": \"long\"}, \"implementation\": {\"kind\": "
    "\"rhai\", \"script\": \"1\"}}}}";

static struct dw_set *load(const char *policy, const char *providers, struct dw_diags *d)
{
	struct dw_load in = { .policy = { SV("p.dw"), sv_c(policy) },
		.action_schema = { SV("schema"), sv_c(schema) },
		.event_schema = { SV("events"), sv_c(dw_unpinned_events) },
		.providers = { SV("providers.json"), sv_c(providers) },
		.tick = DW_TICK_SECOND };
	struct box_err err;

	return dw_load(&in, d, &err);
}

static void refusals(void **state)
{
	static const char *const rows[][2] = {
		{ "Clock::hours() > 1",
		    "provider `Clock::hours` is not present in the provider declarations" },
		{ "Clock::hour(1) > 1", "provider `Clock::hour` expects 0 argument(s) but got 1" },
		{ "Clock::hour().x() > 1", "provider `Clock::hour` declares no method `x`" },
		{ "Scan::it(context.input.n).found", "provider `Scan::it`: argument of type `Long` "
		                                     "does not match the declared `String`" },
		{ "Scan::it(true).found", "provider `Scan::it`: argument of type `Bool` does not "
		                          "match the declared `String`" },
		{ "Scan::it(context.input.body + 1).found",
		    "provider `Scan::it`: an argument is a literal, a path that begins with "
		    "`context.`, `principal` or `resource`, or a set of these" },
		{ "Scan::it(action).found",
		    "provider `Scan::it`: an argument is a literal, a path that begins with "
		    "`context.`, `principal` or `resource`, or a set of these" },
		{ "Scan::it(Clock::hour()).found",
		    "provider `Scan::it`: an argument is a literal, a path that begins with "
		    "`context.`, `principal` or `resource`, or a set of these" },
		{ "Scan::it(\"x\").found.score(1)", "method `score` is not called on a provider" },
		{ "Scan::it(\"x\").score() == decimal(\"1.0\")",
		    "method `score` expects 1 argument(s) but got 0" },
		{ "Scan::it(\"x\").text() == \"\"",
		    "method `text` is called on `{found: Bool,kind?: String,}` but is declared for "
		    "`String`" },
		{ "Org::teams(\"x\", [\"y\"]).isEmpty()",
		    "provider `Org::teams`: argument of type `String` does not match the declared "
		    "`Long`" },
		{ "Org::teams(\"x\", 1).isEmpty()",
		    "provider `Org::teams`: argument of type `Long` does not match the declared "
		    "`Set<Long>`" },
		{ "Org::teams([1], [1]).isEmpty()", "provider `Org::teams`: argument of type `Set` "
		                                    "does not match the declared `String`" },
		{ "Scan::it(\"x\").kind == \"\"", "for policy `policy_0`, unable to guarantee "
		                                  "safety of access to optional attribute `kind`" },
		{ "Scan::it(\"x\") has kind && Scan::it(\"y\").kind == \"\"",
		    "for policy `policy_0`, unable to guarantee safety of access to optional "
		    "attribute `kind`" },
		{ "Clock::hour() == \"x\"", "the types Long and String are not compatible" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_BUF p = buf_with(4096), got = buf_with(65536);
		AUTO_DW_DIAGS d = { 0 };

		buf_putf(&p,
		    "permit (principal, action == App::Action::\"post\", resource) when { %s };",
		    rows[i][0]);
		assert_null(load(buf_cstr(&p), declared, &d));
		dw_diags_messages(&d, DW_ERROR, &got);
		if (strcmp(buf_cstr(&got), rows[i][1]) != 0)
			fail_msg("%s\n gave %s\n not  %s", rows[i][0], buf_cstr(&got), rows[i][1]);
	}
}

static void bad_declarations(void **state)
{
	static const char *const rows[][2] = {
		{ "{", "a key in quotes must stand here" },
		{ "[]", "declarations of providers are an object with `availableProviders`" },
		{ "{\"availableProviders\": {\"one\": {}}}", "`one` is no name of a provider" },
		{ "{\"availableProviders\": {\"A::\": {}}}", "`A::` is no name of a provider" },
		{ "{\"availableProviders\": {\"A::b\": {}}}", "`outputType` is missing" },
		{ "{\"availableProviders\": {\"A::b\": {\"outputType\": {\"type\": \"set\"}}}}",
		    "a set type wants `items`" },
		{ "{\"availableProviders\": {\"A::b\": {\"outputType\": {\"type\": \"record\"}}}}",
		    "a record type wants `fields`" },
		{ "{\"availableProviders\": {\"A::b\": {\"outputType\": 1}}}",
		    "a type is an object with `type`" },
		{ "{\"availableProviders\": {\"A::b\": {\"outputType\": {\"type\": \"long\"}, "
		  "\"argumentTypes\": 1}}}",
		    "`argumentTypes` is a list of types" },
	};
	AUTO_BUF deep = buf_with(65536);
	AUTO_DW_DIAGS dd = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_BUF got = buf_with(65536);
		AUTO_DW_DIAGS d = { 0 };

		assert_null(load("permit (principal, action, resource);", rows[i][0], &d));
		dw_diags_messages(&d, DW_ERROR, &got);
		if (sv_find_sv(buf_sv(&got), sv_c(rows[i][1])) < 0)
			fail_msg("%s gave %s", rows[i][0], buf_cstr(&got));
		assert_true(sv_eq(d.v[0].file, SV("providers.json")));
	}
	buf_put_c(&deep, "{\"availableProviders\": {\"A::b\": {\"outputType\": ");
	for (unsigned i = 0; i < 40; i++)
		buf_put_c(&deep, "{\"type\": \"set\", \"items\": ");
	buf_put_c(&deep, "{\"type\": \"long\"}");
	for (unsigned i = 0; i < 40; i++)
		buf_put_byte(&deep, '}');
	buf_put_c(&deep, "}}}");
	assert_null(load("permit (principal, action, resource);", buf_cstr(&deep), &dd));
}

/* Without declarations a call is refused, as it is in the box. */
static void not_enabled(void **state)
{
	AUTO_BUF got = buf_with(65536);
	AUTO_DW_DIAGS d = { 0 };

	(void)state;
	assert_null(load("permit (principal, action, resource) when { Clock::hour() > 1 };\n"
	                 "permit (principal, action, resource) when guardrails { true };",
	    NULL, &d));
	dw_diags_messages(&d, DW_ERROR, &got);
	assert_string_equal(buf_cstr(&got),
	    "information providers are not enabled in this build\ninformation "
	    "providers are not enabled in this build");
}

enum mode { GOOD, FAILS, WRONG_KIND, MISSING_MEMBER, EXTRA_MEMBER, BAD_DECIMAL, NO_VALUE };

struct host {
	unsigned asked;
	enum mode mode;
	char seen[256]; /* the last call, as text */
};

static int answer(void *arg, const struct dw_provider_part *part, size_t n, struct arena *a,
    struct dw_val *out, struct box_err *err)
{
	struct host *h = arg;
	AUTO_BUF b = buf_with(sizeof(h->seen) - 1);
	struct dw_member *m;

	h->asked++;
	for (size_t i = 0; i < n; i++) {
		buf_put_sv(&b, part[i].name);
		for (size_t k = 0; k < part[i].nargs; k++) {
			buf_put_byte(&b, ' ');
			dw_val_print(&b, &part[i].args[k]);
		}
		buf_put_byte(&b, ';');
	}
	snprintf(h->seen, sizeof(h->seen), "%s", buf_cstr(&b));
	if (h->mode == FAILS)
		return box_fail(err, BOX_ESYS, 0, "it is down");
	if (h->mode == NO_VALUE)
		return 0;
	if (n == 2) {
		*out = h->mode == BAD_DECIMAL ? dw_decimal(SV("1.23456")) : dw_decimal(SV("0.75"));
	} else if (sv_eq(part[0].name, SV("Clock::hour"))) {
		*out = h->mode == WRONG_KIND ? dw_str(SV("nine")) : dw_int(9);
	} else {
		m = ARENA_VEC(a, struct dw_member, 2);
		m[0] = (struct dw_member){ h->mode == MISSING_MEMBER ? SV("kind") : SV("found"),
			h->mode == MISSING_MEMBER ? dw_str(SV("k")) : dw_bool(true) };
		m[1] = (struct dw_member){ SV("more"), dw_int(1) };
		*out = (struct dw_val){ .tag = DW_OBJECT,
			.u.obj = { m, h->mode == EXTRA_MEMBER ? 2 : 1 } };
	}
	return 0;
}

static struct dw_event event_of(struct arena *a)
{
	struct dw_member *in = ARENA_VEC(a, struct dw_member, 2),
	                 *ctx = ARENA_VEC(a, struct dw_member, 1),
	                 *attrs = ARENA_VEC(a, struct dw_member, 1);
	struct dw_entity *u = ARENA_NEW(a, struct dw_entity);

	in[0] = (struct dw_member){ SV("body"), dw_str(SV("hello")) };
	in[1] = (struct dw_member){ SV("n"), dw_int(3) };
	ctx[0] = (struct dw_member){ SV("input"), { .tag = DW_OBJECT, .u.obj = { in, 2 } } };
	attrs[0] = (struct dw_member){ SV("dept"), dw_str(SV("ops")) };
	u->uid = (struct dw_uid){ SV("App::User"), SV("u") };
	u->attrs = (struct dw_val){ .tag = DW_OBJECT, .u.obj = { attrs, 1 } };
	return (struct dw_event){ .ns = SV("App::Action"),
		.id = SV("post"),
		.kind = SV("request"),
		.principal = u->uid,
		.resource = { SV("App::Chan"), SV("c") },
		.context = { .tag = DW_OBJECT, .u.obj = { ctx, 1 } },
		.ents = u,
		.nents = 1 };
}

/* Decide the one request with this policy; *cause and *fault (in a). */
static bool decide(
    const char *policy, struct host *h, struct arena *a, enum dw_cause *cause, const char **fault)
{
	AUTO_DW_DIAGS d = { 0 };
	struct dw_set *s = load(policy, declared, &d);
	struct dw_scratch *sc = dw_scratch_new(NULL);
	struct dw_event e = event_of(a);
	struct dw_decision out = { 0 };
	struct box_err err = { 0 };
	struct dwm *m;

	if (s == NULL)
		fail_msg("%.*s", SV_ARG(d.v[0].message));
	m = dwm_new(s, DWM_ANY, &err);
	assert_true(dw_set_has_providers(s));
	if (h != NULL)
		dw_scratch_provide(sc, answer, h);
	assert_int_equal(dwm_step(m, &e, &err), 0);
	assert_int_equal(dw_decide(sc, s, m, &e, &out, &err), 0);
	*cause = out.cause;
	*fault = out.fault != NULL ? arena_printf(a, "%s", out.fault) : NULL;
	dwm_free(m);
	dw_scratch_free(sc);
	dw_set_free(s);
	return out.allow;
}

#define ALL "permit (principal, action, resource);\n"

static void answers(void **state)
{
	static const struct {
		const char *policy;
		enum mode mode;
		bool allow;
		unsigned asked;
		const char *seen, *fault;
	} rows[] = {
		{ "permit (principal, action, resource) when { Clock::hour() >= 8 && Clock::hour() "
		  "< 18 };",
		    GOOD, true, 1, "Clock::hour;", NULL },
		{ "permit (principal, action, resource) when { Clock::hour() > 9 };", GOOD, false,
		    1, "Clock::hour;", NULL },
		{ ALL "forbid (principal, action, resource) when { "
		      "Scan::it(context.input.body).found };",
		    GOOD, false, 1, "Scan::it \"hello\";", NULL },
		{ ALL "forbid (principal, action, resource) when { Scan::it(principal.dept) has "
		      "kind && Scan::it(principal.dept).kind == \"x\" };",
		    GOOD, true, 1, "Scan::it \"ops\";", NULL },
		{ ALL "forbid (principal, action, resource) when guardrails { "
		      "Scan::it(\"a\").score(context.input.n).greaterThan(decimal(\"0.5\")) };",
		    GOOD, false, 1, "Scan::it \"a\";score 3;", NULL },
		/* A rule that does not come to its call does not ask. */
		{ ALL "forbid (principal, action, resource) when { context.input.n > 3 && "
		      "Clock::hour() > 1 };",
		    FAILS, true, 0, "", NULL },
		{ ALL "forbid (principal == App::User::\"v\", action, resource) when { "
		      "Clock::hour() > 1 };",
		    FAILS, true, 0, "", NULL },
		/* What is no answer denies, whatever else permits. */
		{ ALL "forbid (principal, action, resource) when { Clock::hour() > 1 };", FAILS,
		    false, 1, "Clock::hour;", "provider Clock::hour: it is down" },
		{ ALL "forbid (principal, action, resource) when { Clock::hour() > 99 };",
		    WRONG_KIND, false, 1, "Clock::hour;",
		    "provider Clock::hour: the answer is not of the declared type" },
		{ ALL "permit (principal, action, resource) when { Clock::hour() > 1 };", NO_VALUE,
		    false, 1, "Clock::hour;",
		    "provider Clock::hour: the answer is not of the declared type" },
		{ ALL "forbid (principal, action, resource) unless { Scan::it(\"a\").found };",
		    MISSING_MEMBER, false, 1, "Scan::it \"a\";",
		    "provider Scan::it: the answer is not of the declared type" },
		{ ALL "forbid (principal, action, resource) unless { Scan::it(\"a\").found };",
		    EXTRA_MEMBER, false, 1, "Scan::it \"a\";",
		    "provider Scan::it: the answer is not of the declared type" },
		{ ALL "forbid (principal, action, resource) when { Scan::it(\"a\").score(1) == "
		      "decimal(\"1.0\") };",
		    BAD_DECIMAL, false, 1, "Scan::it \"a\";score 1;",
		    "provider Scan::it: too many digits after the decimal in `1.23456`" },
		/* Behind a temporal block, and in one expression with it. */
		{ ALL "forbid (principal, action, resource) when { temporal { formerly within 1h "
		      "App::Action::\"post\"::request{} } && Clock::hour() == 9 };",
		    GOOD, false, 1, "Clock::hour;", NULL },
		{ ALL "forbid (principal, action, resource) when temporal { previous within 1h "
		      "App::Action::\"post\"::request{} } when { Clock::hour() == 9 };",
		    FAILS, true, 0, "", NULL },
		{ "def cedar late(?h) { ?h > 8 };\n" ALL
		  "forbid (principal, action, resource) when { late(Clock::hour()) };",
		    GOOD, false, 1, "Clock::hour;", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_ARENA a = { 0 };
		struct host h = { .mode = rows[i].mode };
		enum dw_cause cause;
		const char *fault;
		bool allow = decide(rows[i].policy, &h, &a, &cause, &fault);

		if (allow != rows[i].allow || h.asked != rows[i].asked ||
		    strcmp(h.seen, rows[i].seen) != 0)
			fail_msg("%s: %s, asked %u: %s (%s)", rows[i].policy,
			    allow ? "permit" : "deny", h.asked, h.seen, fault != NULL ? fault : "");
		if ((fault == NULL) != (rows[i].fault == NULL) ||
		    (fault != NULL && strcmp(fault, rows[i].fault) != 0))
			fail_msg("%s: %s", rows[i].policy, fault != NULL ? fault : "no fault");
		assert_int_equal(cause == DW_FAULT, rows[i].fault != NULL);
	}
}

static void nobody_to_ask(void **state)
{
	AUTO_ARENA a = { 0 };
	enum dw_cause cause;
	const char *fault;

	(void)state;
	assert_false(decide(ALL "forbid (principal, action, resource) when { Clock::hour() > 99 };",
	    NULL, &a, &cause, &fault));
	assert_int_equal(cause, DW_FAULT);
	assert_string_equal(fault, "provider Clock::hour: the host provides nothing");
}

/* A rule is the same rule when it asks the same. */
static void fingerprints(void **state)
{
	AUTO_DW_DIAGS d = { 0 };
	struct dw_set *s =
	    load("permit (principal, action, resource) when { Scan::it(\"a\").found };\n"
	         "permit (principal, action, resource) when { Scan::it( \"a\" ).found };\n"
	         "permit (principal, action, resource) when { Scan::it(\"b\").found };",
	        declared, &d);
	AUTO_BUF out = buf_with(65536);

	(void)state;
	assert_non_null(s);
	assert_true(sv_eq(dw_set_rule(s, 0)->fingerprint, dw_set_rule(s, 1)->fingerprint));
	assert_false(sv_eq(dw_set_rule(s, 0)->fingerprint, dw_set_rule(s, 2)->fingerprint));
	dw_set_expand(s, &out);
	assert_true(
	    sv_find_sv(buf_sv(&out), SV("// providers.policy_2_p_0 = Scan::it(\"b\")\n")) >= 0);
	assert_true(sv_find_sv(buf_sv(&out), SV("context.providers.policy_2_p_0.found")) >= 0);
	dw_set_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refusals),
		cmocka_unit_test(bad_declarations),
		cmocka_unit_test(not_enabled),
		cmocka_unit_test(answers),
		cmocka_unit_test(nobody_to_ask),
		cmocka_unit_test(fingerprints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
