/* The small parts: the builder, values as JSON, record bodies, findings, tokens. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/build.h"
#include "engine/codec.h"
#include "engine/tokens.h"
#include "engine/valjson.h"

#include "base/ban.h"

static void test_json(void **state)
{
	static const struct {
		const char *in, *out; /* out NULL: refused */
	} row[] = { { "null", "null" }, { " true ", "true" }, { "-0", "0" },
		{ "9223372036854775807", "9223372036854775807" },
		{ "9223372036854775808", "9223372036854775808" }, { "1.50", "1.50" },
		{ "1e5", "1e5" },
		{ "\"a\\u00e9\\n\\ud83d\\ude00\"", "\"a\303\251\\n\360\237\230\200\"" },
		{ "[1,[],{}]", "[1,[],{}]" }, { "{\"a\":{\"b.c\":1}}", "{\"a\":{\"b.c\":1}}" },
		{ "{\"__entity\":{\"type\":\"A::B\",\"id\":\"c\"}}",
		    "{\"__entity\":{\"type\":\"A::B\",\"id\":\"c\"}}" },
		{ "\"A::B::\\\"c\\\"\"", "\"A::B::\\\"c\\\"\"" }, { "", NULL }, { "01", NULL },
		{ "1.", NULL }, { "1e", NULL }, { "tru", NULL }, { "[1,]", NULL },
		{ "[1 2]", NULL }, { "{\"a\":1,\"a\":2}", NULL }, { "{a:1}", NULL },
		{ "\"a", NULL }, { "\"\\x\"", NULL }, { "\"\\ud800\"", NULL },
		{ "\"\\udc00\"", NULL }, { "\"\377\"", NULL }, { "\"\001\"", NULL },
		{ "1 1", NULL }, { "nul\\", NULL }, { "\"\\", NULL } };

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		AUTO_ARENA a = { 0 };
		AUTO_BUF b = buf_with(4096);
		struct box_err err = { 0 };
		struct dw_val v;
		int rc = eng_json_get(&a, sv_c(row[i].in), 0, &v, &err);

		if ((rc == 0) != (row[i].out != NULL))
			fail_msg("%s: %s", row[i].in, rc == 0 ? "taken" : err.msg);
		if (rc < 0)
			continue;
		eng_json_put(&b, &v);
		if (!sv_eq(buf_sv(&b), sv_c(row[i].out)))
			fail_msg("%s gave " SV_FMT, row[i].in, SV_ARG(buf_sv(&b)));
	}
}

static void test_json_depth(void **state)
{
	char text[256];

	(void)state;
	for (unsigned n = 1; n < 100; n++) {
		AUTO_ARENA a = { 0 };
		struct box_err err;
		struct dw_val v;

		memset(text, '[', n);
		memset(text + n, ']', n);
		assert_int_equal(
		    eng_json_get(&a, (sv){ text, 2 * n }, 0, &v, &err), n <= DW_DEPTH_MAX ? 0 : -1);
	}
}

static void test_uid(void **state)
{
	static const struct {
		const char *in, *type, *id; /* type NULL: refused */
	} row[] = { { "A::\"b\"", "A", "b" }, { "A::B::\"\"", "A::B", "" },
		{ "A::\"q\\\"x\\\\\"", "A", "q\"x\\" }, { "A::\"\\u{e9}\"", "A", "\303\251" },
		{ "A:\"b\"", NULL, NULL }, { "A::b", NULL, NULL }, { "::\"b\"", NULL, NULL },
		{ "A::\"b", NULL, NULL }, { "A::\"b\"c", NULL, NULL }, { "A::\"b\"\"", NULL, NULL },
		{ "A::::\"b\"", NULL, NULL }, { "1A::\"b\"", NULL, NULL },
		{ "A::\"\\q\"", NULL, NULL }, { "A::\"b\\\"", NULL, NULL }, { "", NULL, NULL },
		{ "A::\"\377\"", NULL, NULL } };

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		AUTO_ARENA a = { 0 };
		struct box_err err = { 0 };
		struct dw_uid u;
		int rc = eng_uid_parse(&a, sv_c(row[i].in), &u, &err);

		if ((rc == 0) != (row[i].type != NULL))
			fail_msg("%s: %s", row[i].in, rc == 0 ? "taken" : err.msg);
		if (rc == 0) {
			assert_true(sv_eq(u.type, sv_c(row[i].type)));
			assert_true(sv_eq(u.id, sv_c(row[i].id)));
		}
	}
}

static void test_builder(void **state)
{
	dogwood_event *ev = dogwood_event_new();
	AUTO_ARENA a = { 0 };
	AUTO_BUF b = buf_with(65536);
	struct dogwood_error err = { 0 };
	struct box_err berr = { 0 };
	const dogwood_str two[] = { { "x", 1 }, { "y", 1 } };
	struct dw_event e;

	(void)state;
	for (int round = 0; round < 3; round++) {
		dogwood_event_reset(ev);
		arena_reset(&a);
		dogwood_event_action(
		    ev, dogwood_cstr("N::Action::\"do\""), dogwood_cstr("request"));
		dogwood_event_principal(ev, dogwood_cstr("N::U::\"u\""));
		dogwood_event_resource(ev, dogwood_cstr("N::R::\"r\""));
		dogwood_event_str(ev, DOGWOOD_BOTH, "input.a", dogwood_cstr("1"));
		dogwood_event_long(ev, DOGWOOD_CONTEXT, "input.b", -5);
		dogwood_event_bool(ev, DOGWOOD_HISTORY, "output.ok", true);
		dogwood_event_strs(ev, DOGWOOD_BOTH, "input.deep.er.set", two, 2);
		dogwood_event_json(ev, DOGWOOD_BOTH, "input.j", dogwood_cstr("{\"k\":[1.5]}"));
		dogwood_event_str(ev, DOGWOOD_BOTH, "input.dot\\.ted", dogwood_cstr("d"));
		dogwood_event_attrs(
		    ev, dogwood_cstr("N::U::\"u\""), dogwood_cstr("{\"dept\":\"x\"}"));
		dogwood_event_parent(ev, dogwood_cstr("N::U::\"u\""), dogwood_cstr("N::G::\"g\""));
		assert_int_equal(dogwood_event_check(ev, &err), 0);
		assert_int_equal(eng_build(ev, &a, &e, &berr), 0);
		buf_clear(&b);
		eng_json_put(&b, &e.logged);
		buf_put_byte(&b, ' ');
		eng_json_put(&b, &e.context);
		assert_string_equal(buf_cstr(&b),
		    "{\"input\":{\"a\":\"1\",\"deep\":{\"er\":{\"set\":[\"x\",\"y\"]}},\"j\":{"
		    "\"k\":[1.5]},"
		    "\"dot.ted\":\"d\"},\"output\":{\"ok\":true},"
		    "\"callerPrincipal\":{\"__entity\":{\"type\":\"N::U\",\"id\":\"u\"}},"
		    "\"callerResource\":{\"__entity\":{\"type\":\"N::R\",\"id\":\"r\"}}} "
		    "{\"input\":{\"a\":\"1\",\"b\":-5,\"deep\":{\"er\":{\"set\":[\"x\",\"y\"]}},"
		    "\"j\":{\"k\":[1.5]},\"dot.ted\":\"d\"}}");
		assert_int_equal(e.nents, 1);
		assert_int_equal(e.ents[0].nparents, 1);
	}
	dogwood_event_free(ev);
}

static void test_builder_mistakes(void **state)
{
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_error err;
	char big[DOGWOOD_EVENT_MAX / 8 + 1];

	(void)state;
	memset(big, 'x', sizeof(big));
	for (int i = 0; i < 12; i++) {
		dogwood_event_reset(ev);
		dogwood_event_action(
		    ev, dogwood_cstr("N::Action::\"do\""), dogwood_cstr("request"));
		dogwood_event_str(ev, DOGWOOD_BOTH, "a.b", dogwood_cstr("1"));
		assert_int_equal(dogwood_event_check(ev, &err), 0);
		switch (i) {
		case 0:
			dogwood_event_str(ev, DOGWOOD_BOTH, "a.b", dogwood_cstr("2"));
			break;
		case 1:
			dogwood_event_str(ev, DOGWOOD_HISTORY, "a.b.c", dogwood_cstr("2"));
			break;
		case 2:
			dogwood_event_str(ev, DOGWOOD_HISTORY, "a", dogwood_cstr("2"));
			break;
		case 3:
			dogwood_event_str(ev, DOGWOOD_HISTORY, "", dogwood_cstr("2"));
			break;
		case 4:
			dogwood_event_str(ev, DOGWOOD_HISTORY, "x.", dogwood_cstr("2"));
			break;
		case 5:
			dogwood_event_str(ev, DOGWOOD_HISTORY, ".x", dogwood_cstr("2"));
			break;
		case 6:
			dogwood_event_str(ev, DOGWOOD_HISTORY, "x", (dogwood_str){ "\377", 1 });
			break;
		case 7:
			dogwood_event_entity(ev, DOGWOOD_HISTORY, "x", dogwood_cstr("no"));
			break;
		case 8:
			dogwood_event_json(ev, DOGWOOD_HISTORY, "x", dogwood_cstr("{"));
			break;
		case 9:
			dogwood_event_long(
			    ev, DOGWOOD_HISTORY, "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a", 1);
			break;
		case 10:
			dogwood_event_action(
			    ev, dogwood_cstr("N::Action::\"do\""), dogwood_cstr("a b"));
			break;
		default:
			for (int k = 0; k < 100; k++) {
				char path[16];

				(void)snprintf(path, sizeof(path), "big%d", k);
				dogwood_event_str(
				    ev, DOGWOOD_HISTORY, path, (dogwood_str){ big, sizeof(big) });
			}
			break;
		}
		assert_int_equal(dogwood_event_check(ev, &err), -1);
		assert_int_equal(err.code, i == 11 ? DOGWOOD_ELIMIT : DOGWOOD_EARG);
		/* The first mistake is the one that is told. */
		dogwood_event_str(ev, DOGWOOD_HISTORY, "", dogwood_cstr("2"));
	}
	dogwood_event_free(ev);
}

/* Every strict prefix of a record body is refused, every body comes back as it was. */
static void test_codec(void **state)
{
	const struct dw_member in[] = { { SV_INIT("path"),
	    { .tag = DW_STRING, .u.s = SV_INIT("~/x") } } };
	const struct dw_member logged[] = { { SV_INIT("input"), dw_obj(in, 1) },
		{ SV_INIT("requestId"), { .tag = DW_STRING, .u.s = SV_INIT("r") } } };
	const struct dw_member odd[] = { { SV_INIT("input"), { .tag = DW_INT, .u.i = 3 } } };
	const uint32_t rules[] = { 1, 70000 };
	const struct dw_rule_error errors[] = { { 2, "overflow" } };
	struct dw_decision d = {
		.cause = DW_FORBIDDEN, .rules = rules, .nrules = 2, .errors = errors, .nerrors = 1
	};

	(void)state;
	for (int form = 0; form < 3; form++) {
		struct dw_event e = { .ns = SV("N::Action"),
			.id = SV("do"),
			.kind = SV("request"),
			.ts = 77,
			.logged = dw_obj(logged, 2),
			.context = form == 0 ? dw_obj(logged, 1) : dw_obj(odd, 1) };
		AUTO_BUF b = buf_with(65536);
		AUTO_ARENA a = { 0 };
		struct eng_stored s;
		struct dw_event got;
		struct box_err err = { 0 };
		sv token, verdict;

		eng_event_put(&b, &e, SV("tok"));
		e.ts = INT64_MIN + 5;
		eng_event_restamp(&b, &e);
		eng_verdict_put(&b, form == 2 ? NULL : &d);
		assert_int_equal(eng_event_get(buf_sv(&b), &a, &got, &token, &s, &err), 0);
		assert_int_equal(got.ts, INT64_MIN + 5);
		assert_true(sv_eq(token, SV("tok")));
		assert_true(dw_val_eq(&got.context, &e.context));
		assert_true(dw_val_eq(&got.logged, &e.logged));
		assert_int_equal(s.cause, form == 2 ? DOGWOOD_RECORDED : DOGWOOD_FORBIDDEN);
		if (form != 2) {
			assert_int_equal(s.nrules, 2);
			assert_int_equal(s.rules[1], 70000);
			assert_true(sv_eq(s.errors[0], SV("overflow")));
		}
		assert_int_equal(eng_event_lean(buf_sv(&b), &a, &got, &token, &verdict, &err), 0);
		assert_int_equal(eng_stored_get(verdict, &a, &s, &err), 0);
		for (size_t n = 0; n < b.n; n++)
			assert_int_equal(
			    eng_event_get(sv_sub(buf_sv(&b), 0, n), &a, &got, NULL, NULL, &err),
			    -1);
	}
}

static void test_codec_install(void **state)
{
	const struct dogwood_source two[] = { { dogwood_cstr("a.dw"), dogwood_cstr("x") },
		{ dogwood_cstr("b.dw"), dogwood_cstr("") } };
	struct dogwood_policy_set set = { .policies = two,
		.n_policies = 2,
		.action_schema = { dogwood_cstr("s"), dogwood_cstr("t") } },
	                          got;
	AUTO_BUF b = buf_with(65536);
	AUTO_ARENA a = { 0 };
	struct box_err err;
	int64_t last, now;

	(void)state;
	eng_install_put(&b, &set);
	assert_int_equal(eng_install_get(buf_sv(&b), &a, &got, &err), 0);
	assert_int_equal(got.n_policies, 2);
	assert_true(got.policies[1].text.p != NULL && got.policies[1].text.n == 0);
	assert_null(got.event_schema.text.p);
	for (size_t n = 0; n < b.n; n++)
		assert_int_equal(eng_install_get(sv_sub(buf_sv(&b), 0, n), &a, &got, &err), -1);
	buf_clear(&b);
	eng_clock_put(&b, -1, 5);
	assert_int_equal(eng_clock_get(buf_sv(&b), &last, &now, &err), 0);
	assert_int_equal(last, -1);
	assert_int_equal(eng_clock_get(sv_sub(buf_sv(&b), 0, 5), &last, &now, &err), -1);
}

static void test_tokens(void **state)
{
	struct eng_tokens t;
	struct box_err err;
	char name[16];

	(void)state;
	eng_tokens_init(&t, 100);
	for (unsigned i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "t%u", i);
		assert_null(eng_tokens_find(&t, sv_c(name)));
		assert_int_equal(eng_tokens_add(&t, sv_c(name), SV("v"), NULL, i, 1, &err), 0);
		for (unsigned k = i < 120 ? 0 : i - 120; k <= i; k++) {
			const struct eng_token *f;

			(void)snprintf(name, sizeof(name), "t%u", k);
			f = eng_tokens_find(&t, sv_c(name));
			assert_true((f != NULL) == (k + 100 > i));
			if (f != NULL)
				assert_int_equal(f->offset, k);
		}
	}
	assert_int_equal(eng_tokens_at(&t, 0)->offset, 900);
	assert_int_equal(eng_tokens_count(&t), 100);
	eng_tokens_keep(&t, 200);
	assert_int_equal(eng_tokens_count(&t), 100);
	eng_tokens_keep(&t, 3);
	assert_int_equal(eng_tokens_count(&t), 3);
	assert_null(eng_tokens_find(&t, SV("t996")));
	assert_non_null(eng_tokens_find(&t, SV("t997")));
	assert_int_equal(eng_tokens_add(&t, SV("new"), SV("v"), NULL, 1000, 1, &err), 0);
	assert_int_equal(eng_tokens_count(&t), 4);
	eng_tokens_keep(&t, 0);
	assert_int_equal(eng_tokens_count(&t), 0);
	assert_null(eng_tokens_find(&t, SV("new")));
	eng_tokens_fini(&t);
}

static void test_findings(void **state)
{
	static const char good[] = "permit (principal, action, resource);\n";
	static const char bad[] = "permit (principal, action, resource)\n"
	                          "\twhen { context.\303\251 = \"x\" };\n";
	const struct dogwood_source src[] = { { dogwood_cstr("one.dw"), dogwood_cstr(good) },
		{ dogwood_cstr("two.dw"), dogwood_cstr(bad) } };
	struct dogwood_policy_set set = { .policies = src, .n_policies = 2 };
	dogwood_diags *d = dogwood_diags_new();
	struct dogwood_error err = { 0 };
	const struct dogwood_diag *x;
	char *text, *json;

	(void)state;
	assert_int_equal(dogwood_policy_check(&set, d, &err), -1);
	assert_int_equal(err.code, DOGWOOD_EPOLICY);
	assert_true(dogwood_diags_errors(d) >= 1);
	x = dogwood_diags_at(d, 0);
	assert_non_null(x);
	assert_true(sv_eq(eng_sv(x->file), SV("two.dw")));
	assert_int_equal(x->line, 2);
	assert_null(dogwood_diags_at(d, dogwood_diags_count(d)));
	text = dogwood_diags_text(d, 0);
	assert_non_null(strstr(text, "two.dw:2:"));
	assert_non_null(strstr(text, "^"));
	json = dogwood_diags_json(d);
	assert_non_null(strstr(json, "\"file\":\"two.dw\",\"line\":2"));
	dogwood_free(text);
	dogwood_free(json);
	dogwood_diags_free(d);
	set.n_policies = 1;
	assert_int_equal(dogwood_policy_check(&set, NULL, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_depth),
		cmocka_unit_test(test_uid),
		cmocka_unit_test(test_builder),
		cmocka_unit_test(test_builder_mistakes),
		cmocka_unit_test(test_codec),
		cmocka_unit_test(test_codec_install),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_findings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
