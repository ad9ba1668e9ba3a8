/* Box's own policies: the schema it ships, the announcement's timeline with an injected clock, and
 * the checks at load. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "dogwood/box_checks.h"
#include "dogwood/box_schema.h"
#include "dogwood/decide.h"

#include "base/ban.h"

struct box {
	struct dw_set *s;
	struct dwm *m;
	struct dw_scratch *sc;
	struct arena a;
	struct box_err err;
	struct dw_decision d;
};

static struct dw_set *load(const char *policy, struct dw_diags *d, struct box_err *err)
{
	struct dw_load in = {
		.policy = { SV("policy.dw"), sv_c(policy) },
		.action_schema = { SV("actions"), sv_c(dw_box_actions) },
		.event_schema = { SV("events"), sv_c(dw_box_events) },
		.tick = DW_TICK_NANO,
	};

	return dw_load(&in, d, err);
}

static void open_box(struct box *b, const char *policy)
{
	AUTO_DW_DIAGS d = { 0 };

	*b = (struct box){ 0 };
	b->s = load(policy, &d, &b->err);
	if (b->s == NULL)
		fail_msg("refused: %s", b->err.msg);
	b->m = dwm_new(b->s, DWM_MONOTONE, &b->err);
	b->sc = dw_scratch_new(&b->err);
	assert_non_null(b->m);
	assert_non_null(b->sc);
}

static void close_box(struct box *b)
{
	dwm_free(b->m);
	dw_scratch_free(b->sc);
	dw_set_free(b->s);
	arena_free(&b->a);
}

#define MINUTE (INT64_C(60) * 1000000000)

/* One http request at 10:00 plus ns; answered with 200 when it is permitted. Returns the verdict.
 */
static bool http(struct box *b, int64_t ns, const char *method, const char *host, bool answer)
{
	struct dw_rec in = dw_rec_in(&b->a), out = dw_rec_in(&b->a), logged = dw_rec_in(&b->a),
	              ctx = dw_rec_in(&b->a);
	struct dw_event e = {
		.ns = SV("Box::Action"), .id = SV("http:request"), .kind = SV("request"), .ts = ns
	};
	bool allow;

	e.principal = (struct dw_uid){ SV("Box::Agent"), SV("self") };
	e.resource = (struct dw_uid){ SV("Box::Resource"), SV("unused") };
	dw_rec_str(&in, SV("host"), sv_c(host));
	dw_rec_int(&in, SV("port"), 443);
	dw_rec_str(&in, SV("method"), sv_c(method));
	dw_rec_str(&in, SV("path"), SV("/api/chat.postMessage"));
	dw_rec_int(&in, SV("body_bytes"), 12);
	dw_rec_bool(&in, SV("intercepted"), true);
	dw_rec_add(&ctx, SV("input"), dw_rec_val(&in));
	dw_rec_add(&logged, SV("input"), dw_rec_val(&in));
	dw_rec_add(&logged, SV("callerPrincipal"), dw_ent(SV("Box::Agent"), SV("self")));
	dw_rec_add(&logged, SV("callerResource"), dw_ent(SV("Box::Resource"), SV("unused")));
	e.context = dw_rec_val(&ctx);
	e.logged = dw_rec_val(&logged);
	assert_return_code(dwm_step(b->m, &e, &b->err), 0);
	assert_true(dw_set_is_decision(b->s, e.kind));
	assert_return_code(dw_decide(b->sc, b->s, b->m, &e, &b->d, &b->err), 0);
	if (b->d.cause == DW_FAULT)
		fail_msg("fault: %s", b->d.fault);
	allow = b->d.allow;
	if (allow && answer) {
		dw_rec_int(&out, SV("status"), 200);
		dw_rec_add(&logged, SV("output"), dw_rec_val(&out));
		e.kind = SV("response");
		e.logged = dw_rec_val(&logged);
		e.context = dw_null();
		e.ts = ns + 1000000;
		assert_return_code(dwm_step(b->m, &e, &b->err), 0);
	}
	return allow;
}

#define PERMIT_ALL                                                                                 \
	"@id(\"open\") permit (principal, action == Box::Action::\"http:request\", resource);\n"
#define LIMIT(kind, more)                                                                          \
	"@id(\"rate_limit_slack_posts\") @description(\"At most three Slack posts in ten "         \
	"minutes.\")\n"                                                                            \
	"forbid (principal, action == Box::Action::\"http:request\", resource)\n"                  \
	"when { context.input.host == \"slack.com\" && context.input.method == \"POST\" }\n"       \
	"when temporal {\n"                                                                        \
	"  (count for (t: Timepoint). where (formerly within 10m "                                 \
	"(Box::Action::\"http:request\"::" kind                                                    \
	"{ input.host: \"slack.com\", input.method: \"POST\"" more " } && tp(t)))) >= 3\n"         \
	"};\n"

static void the_timeline(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, PERMIT_ALL LIMIT("response", ", output.status: 200"));
	assert_true(http(&b, 0, "POST", "slack.com", true));
	assert_true(http(&b, 3 * MINUTE, "POST", "slack.com", true));
	assert_true(http(&b, 5 * MINUTE, "POST", "slack.com", true));
	assert_false(http(&b, 6 * MINUTE, "POST", "slack.com", true));
	assert_int_equal(b.d.cause, DW_FORBIDDEN);
	assert_int_equal(b.d.nrules, 1);
	assert_int_equal(b.d.rules[0], 1);
	assert_true(sv_eq(dw_set_rule(b.s, 1)->id, SV("rate_limit_slack_posts")));
	assert_true(sv_eq(
	    dw_set_rule(b.s, 1)->description, SV("At most three Slack posts in ten minutes.")));
	/* Another host, another method: not this rule's business. */
	assert_true(http(&b, 7 * MINUTE, "POST", "logs.example.com", true));
	assert_true(http(&b, 7 * MINUTE + 2000000, "GET", "slack.com", true));
	/* Ten minutes after the first reply, to the nanosecond, it still counts: windows are
	 * closed. */
	assert_false(http(&b, 10 * MINUTE + 1000000, "POST", "slack.com", true));
	assert_true(http(&b, 11 * MINUTE, "POST", "slack.com", true));
	assert_false(http(&b, 12 * MINUTE, "POST", "slack.com", true));
	close_box(&b);
}

static void a_post_at_ten_ten(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, PERMIT_ALL LIMIT("response", ", output.status: 200"));
	assert_true(http(&b, 0, "POST", "slack.com", true));
	assert_true(http(&b, 3 * MINUTE, "POST", "slack.com", true));
	assert_true(http(&b, 5 * MINUTE, "POST", "slack.com", true));
	assert_false(http(&b, 10 * MINUTE, "POST", "slack.com", true));
	close_box(&b);
}

static void counting_requests_lets_two_through(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, PERMIT_ALL LIMIT("request", ""));
	assert_true(http(&b, 0, "POST", "slack.com", true));
	assert_true(http(&b, 3 * MINUTE, "POST", "slack.com", true));
	assert_false(http(&b, 5 * MINUTE, "POST", "slack.com", true));
	/* Refused attempts are in the history too. */
	assert_false(http(&b, 12 * MINUTE, "POST", "slack.com", true));
	close_box(&b);
}

static void what_was_not_answered_does_not_count(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, PERMIT_ALL LIMIT("response", ", output.status: 200"));
	for (int i = 0; i < 10; i++)
		assert_true(http(&b, i * MINUTE, "POST", "slack.com", false));
	close_box(&b);
}

static void macros_and_default_deny(void **state)
{
	struct box b;

	(void)state;
	open_box(&b, PERMIT_ALL "@id(\"few\") forbid (principal, action == "
	                        "Box::Action::\"http:request\", resource) when temporal "
	                        "{ count_within(10m, Box::Action::\"http:request\"::response{ "
	                        "input.host: context.input.host }) >= 2 };");
	assert_true(http(&b, 0, "GET", "a.example.com", true));
	assert_true(http(&b, MINUTE, "GET", "a.example.com", true));
	assert_false(http(&b, 2 * MINUTE, "GET", "a.example.com", true));
	assert_true(http(&b, 3 * MINUTE, "GET", "b.example.com", true));
	close_box(&b);
	open_box(&b, "");
	assert_false(http(&b, 0, "GET", "a.example.com", true));
	assert_int_equal(b.d.cause, DW_NO_MATCH);
	assert_int_equal(b.d.nrules, 0);
	close_box(&b);
}

/* ---- refusals ---- */

struct refusal {
	const char *policy;
	const char *message; /* the whole text */
};

static const struct refusal refusals[] = {
	{ "permit (principal, action == Box::Action::\"fs:raed\", resource);",
	    "for policy `policy_0`, unrecognized action `Box::Action::\"fs:raed\"`" },
	{ "permit (principal, action == Box::Action::\"fs:read\", resource) when { "
	  "context.input.paht == \"x\" };",
	    "for policy `policy_0`, attribute `input.paht` in context for Box::Action::\"fs:read\" "
	    "not found" },
	{ "permit (principal, action, resource) when { N::f(context) };",
	    "information providers are not enabled in this build" },
	{ "permit (principal, action, resource) when guardrails { true };",
	    "information providers are not enabled in this build" },
	{ "forbid (principal, action == Box::Action::\"fs:read\", resource) when temporal { "
	  "formerly within 1h "
	  "Box::Action::\"fs\"::request{} };",
	    "predicate `Box::Action::\"fs\"::request` does not name a declared event (no event "
	    "kind `request` derived for action "
	    "`fs`)" },
	{ "forbid (principal, action == Box::Action::\"fs:read\", resource) when temporal { "
	  "formerly within 48h "
	  "Box::Action::\"fs:read\"::request{} };",
	    "temporal window `48h` exceeds the maximum allowed window `24h` set by the event "
	    "schema's `max_window`; shorten this "
	    "window to at most `24h`, or raise `max_window` in the event schema" },
	{ "forbid (principal, action == Box::Action::\"fs:read\", resource) when temporal { "
	  "formerly within 0h "
	  "Box::Action::\"fs:read\"::request{} };",
	    "temporal window `0h` must be positive; a zero or negative window matches no events, "
	    "silently disabling this guard" },
	{ "forbid (principal, action == Box::Action::\"fs:read\", resource) when temporal { "
	  "formerly within 1h "
	  "Box::Action::\"fs:read\"::request{ input.operation: Box::FsReadOperation::\"raed\" } };",
	    "`Box::FsReadOperation` is an enum entity type; `\"raed\"` is not one of its permitted "
	    "ids (\"read_content\", "
	    "\"read_metadata\", \"enumerate\", \"read_link\", \"change_dir\", \"exec\")" },
	{ "forbid (principal, action == Box::Action::\"fs:read\", resource) when temporal { "
	  "formerly within 1h "
	  "Box::Action::\"fs:read\"::request{ input: 1 } };",
	    "predicate `Box::Action::\"fs:read\"::request` mentions `input`, which is a field "
	    "group, not a field; address a field "
	    "inside it (e.g. `input.<field>`)" },
	{ "forbid (principal, action == Box::Action::\"fs:read\", resource) when temporal { "
	  "formerly within 1h "
	  "Box::Action::\"fs:read\"::request{ input.path: 1 } };",
	    "argument `input.path` of `fs:read` expects `string` but got `Long`" },
	{ "forbid (principal, action == Box::Action::\"fs:read\", resource) when temporal { "
	  "context.input.path == \"a\" };",
	    "this `when`/`unless` conjunct does not vary with the current timepoint; it monitors "
	    "nothing" },
	{ "forbid (principal, action == Box::Action::\"fs:read\", resource) when temporal { exists "
	  "(n: String). (formerly within "
	  "1h Box::Action::\"fs:read\"::request{ input.path: n } && n > 3) };",
	    "comparison requires numeric operands on both sides, got `string` and `Long`" },
	{ "forbid (principal, action == Box::Action::\"fs:read\", resource) when temporal { (sum a "
	  "for (a: String), (t: Timepoint). "
	  "where (formerly within 1h (Box::Action::\"fs:read\"::request{ input.path: a } && "
	  "tp(t)))) > 3 };",
	    "cannot sum `a`: sum requires a `Long` summand, but `a` is `string`" },
	{ "forbid (principal, action == Box::Action::\"fs:read\", resource) when temporal { "
	  "count_wihtin(1h, "
	  "Box::Action::\"fs:read\"::request{}) > 3 };",
	    "unknown macro `count_wihtin` (no declared `def temporal`)" },
	{ "forbid (principal, action == Box::Action::\"fs:read\", resource) when temporal { "
	  "count_within(1h) > 3 };",
	    "macro `count_within` expects 2 argument(s), got 1" },
};

static void refused_with_the_exact_message(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		AUTO_DW_DIAGS d = { 0 };
		AUTO_BUF got = buf_with(1 << 20);
		struct box_err err = { 0 };
		struct dw_set *s = load(refusals[i].policy, &d, &err);

		if (s != NULL)
			fail_msg("accepted: %s", refusals[i].policy);
		dw_diags_messages(&d, DW_ERROR, &got);
		if (!sv_starts(buf_sv(&got), sv_c(refusals[i].message)))
			fail_msg("got:\n%s\nwanted:\n%s", buf_cstr(&got), refusals[i].message);
		assert_true(d.v[0].line == 1 && d.v[0].column > 1);
		assert_true(sv_eq(d.v[0].file, SV("policy.dw")));
	}
}

static void every_mistake_of_a_file_is_told(void **state)
{
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err = { 0 };
	bool window = false;

	(void)state;
	assert_null(load("permit (principal, action == Box::Action::\"fs:raed\", resource);\n"
	                 "permit (principal, action == Box::Action::\"fs:read\", resource) when { "
	                 "context.input.paht == \"x\" };\n"
	                 "forbid (principal, action == Box::Action::\"fs:read\", resource) when "
	                 "temporal { formerly within 48h "
	                 "Box::Action::\"fs:read\"::request{} };\n"
	                 "forbid (principal, action == Box::Action::\"fs:read\", resource) when "
	                 "temporal { formerly within 1h "
	                 "Box::Action::\"fs:read\"::request{ input.file: 1 } };\n",
	    &d, &err));
	assert_true(d.errors >= 4);
	for (size_t i = 0; i < d.n; i++)
		if (d.v[i].line == 3 && d.v[i].column == 96 &&
		    sv_starts(d.v[i].message, SV("temporal window")))
			window = true;
	assert_true(window);
}

struct check {
	const char *policy;
	enum dw_severity severity;
	const char *message; /* its beginning */
};

#define READ "action == Box::Action::\"fs:read\""
static const struct check checks[] = {
	{ "@id(\"x\") permit (principal, " READ
	  ", resource) when { context.input.path like \"/home/dev/p/*\" };",
	    DW_ERROR,
	    "policy compares an inert literal: rule @id(\"x\") compares context.input.path with "
	    "the pattern \"/home/dev/p/*\", and a "
	    "path under the operator home is spelled ~/…; write \"~/p/*\"" },
	{ "@id(\"x\") permit (principal, " READ
	  ", resource) when { context.input.path == \"~/p/\" };",
	    DW_ERROR,
	    "policy compares an inert literal: rule @id(\"x\") compares context.input.path with "
	    "\"~/p/\", and a directory is spelled "
	    "without a trailing slash; write \"~/p\"" },
	{ "permit (principal, " READ
	  ", resource) when { [\"/home/dev/a\"].contains(context.input.path) };",
	    DW_ERROR,
	    "policy compares an inert literal: the permit rule with no @id (rule 1) compares "
	    "context.input.path with \"/home/dev/a\"" },
	{ "@id(\"x\") forbid (principal, " READ ", resource) when temporal { formerly within 1h "
	  "Box::Action::\"fs:read\"::request{ input.path: \"/home/dev\" } };",
	    DW_ERROR,
	    "policy compares an inert literal: rule @id(\"x\") compares context.input.path with "
	    "\"/home/dev\"" },
	{ "@id(\"x\") permit (principal, " READ ", resource);\n@id(\"x\") forbid (principal, " READ
	  ", resource);",
	    DW_ERROR, "policy gives one @id to more than one rule: @id(\"x\") is on rules 1, 2; " },
	{ "@id(\"x\") permit (principal, action == Box::Action::\"fs:other\", resource);", DW_ERROR,
	    "policy names only a reserved action: rule @id(\"x\") (rule 1) names only the reserved "
	    "action \"fs:other\"; " },
	{ "@id(\"a\") permit (principal, " READ ", resource);\n@id(\"b\") permit (principal, " READ
	  ", resource) when temporal { (count for (t: Timepoint). where (formerly within 1h "
	  "(Box::Action::\"fs:read\"::request{} "
	  "&& tp(t)))) < 3 };",
	    DW_ERROR,
	    "policy writes a cap as a permit: rule @id(\"b\") (rule 2) carries a temporal clause "
	    "beside rule @id(\"a\") (rule 1), "
	    "which permits the same action with no condition; " },
	{ "@id(\"a\") permit (principal, " READ
	  ", resource) when { context.input.path like \"~/p/*\" };\n@id(\"b\") permit "
	  "(principal, " READ
	  ", resource) when temporal { formerly within 1h Box::Action::\"fs:read\"::request{} };",
	    DW_WARNING,
	    "rule @id(\"b\") (rule 2) carries a temporal clause beside rule @id(\"a\") (rule 1)" },
	{ "@id(\"a\") permit (principal, action == Box::Action::\"shell:exec\", resource) when { "
	  "context.input.program == "
	  "\"/bin/ls\" };",
	    DW_WARNING,
	    "rule @id(\"a\") (rule 1) compares context.input.program with \"/bin/ls\", a path" },
	{ "@id(\"a\") permit (principal, " READ
	  ", resource) when { context.input.path like \"*/home/dev/x\" };",
	    DW_WARNING,
	    "rule @id(\"a\") (rule 1) compares context.input.path with the pattern "
	    "\"*/home/dev/x\", which names the operator home" },
};

static void box_checks(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		AUTO_DW_DIAGS d = { 0 };
		AUTO_BUF got = buf_with(1 << 20);
		struct box_err err = { 0 };
		struct dw_set *s = load(checks[i].policy, &d, &err);
		size_t n;

		if (s == NULL)
			fail_msg("refused: %s", err.msg);
		n = dw_box_check(s, SV("/home/dev"), &d);
		assert_int_equal(n, checks[i].severity == DW_ERROR ? 1 : 0);
		dw_diags_messages(&d, checks[i].severity, &got);
		if (!sv_starts(buf_sv(&got), sv_c(checks[i].message)))
			fail_msg("got:\n%s\nwanted:\n%s", buf_cstr(&got), checks[i].message);
		dw_set_free(s);
	}
}

static void nothing_to_say_of_a_good_policy(void **state)
{
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err = { 0 };
	struct dw_set *s =
	    load("@id(\"a\") permit (principal, " READ
	         ", resource) when { context.input.path like \"~/p/*\" || "
	         "context.input.path == \"/\" || context.input.path like \"/home/devel/*\" "
	         "};\n" PERMIT_ALL LIMIT("response", ", output.status: 200"),
	        &d, &err);

	(void)state;
	assert_non_null(s);
	assert_int_equal(dw_box_check(s, SV("/home/dev"), &d), 0);
	assert_int_equal(d.n, 0);
	dw_set_free(s);
}

static void reasons(void **state)
{
	static const char *const cases[][2] = {
		{ "permit (principal, action, resource)",
		    "failed to parse policy source: dogwood parse: unexpected end of input; "
		    "expected `;` to end the policy" },
		{ "permit (principal, action, resource) when { N::f(context) };",
		    "failed to parse policy source: dogwood: information providers are not enabled "
		    "in this build" },
		{ "permit (principal, action == Box::Action::\"fs:raed\", resource);",
		    "policy references unknown action: for policy `policy_0`, unrecognized action "
		    "`Box::Action::\"fs:raed\"`" },
		{ "permit (principal, " READ ", resource) when { context.input.paht == \"x\" };",
		    "policy fails schema validation: for policy `policy_0`, attribute `input.paht` "
		    "in context for "
		    "Box::Action::\"fs:read\" not found" },
		{ "@id(\"x\") permit (principal, action == Box::Action::\"fs:other\", resource);",
		    "policy names only a reserved action: " },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_DW_DIAGS d = { 0 };
		AUTO_BUF got = buf_with(1 << 20);
		struct box_err err = { 0 };
		struct dw_set *s = load(cases[i][0], &d, &err);

		if (s != NULL)
			(void)dw_box_check(s, SV("/home/dev"), &d);
		dw_set_free(s);
		dw_box_reason(&d, &got);
		if (!sv_starts(buf_sv(&got), sv_c(cases[i][1])))
			fail_msg("got:\n%s\nwanted:\n%s", buf_cstr(&got), cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_timeline),
		cmocka_unit_test(a_post_at_ten_ten),
		cmocka_unit_test(counting_requests_lets_two_through),
		cmocka_unit_test(what_was_not_answered_does_not_count),
		cmocka_unit_test(macros_and_default_deny),
		cmocka_unit_test(refused_with_the_exact_message),
		cmocka_unit_test(every_mistake_of_a_file_is_told),
		cmocka_unit_test(box_checks),
		cmocka_unit_test(nothing_to_say_of_a_good_policy),
		cmocka_unit_test(reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
