/* JSON: values, entities, policies, templates and links, and what is refused. */
#include "t.h"

#include "cedar/json.h"

static void test_values(void **state)
{
	static const struct {
		const char *json, *want;
	} t[] = {
		{ "1", "1" },
		{ "-9223372036854775808", "-9223372036854775808" },
		{ "\"a\\u0000\\ud83d\\ude00\"", "\"a\\0\xf0\x9f\x98\x80\"" },
		{ "[2, 1, 2]", "[1, 2]" },
		{ "{\"b\": true, \"a\": {}}", "{\"a\": {}, \"b\": true}" },
		{ "{\"__entity\": {\"type\": \"A::B\", \"id\": \"x\"}}", "A::B::\"x\"" },
		{ "{\"__extn\": {\"fn\": \"decimal\", \"arg\": \"1.5\"}}", "decimal(\"1.5000\")" },
		{ "{\"__extn\": {\"fn\": \"offset\", \"args\": [{\"__extn\": {\"fn\": "
		  "\"datetime\", \"arg\": "
		  "\"1970-01-01\"}}, {\"__extn\": {\"fn\": \"duration\", \"arg\": \"5ms\"}}]}}",
		    "datetime(\"1970-01-01\").offset(duration(\"5ms\"))" },
		{ "null", "1:1: null is no value of Cedar" },
		{ "1.5",
		    "1:1: this number is no 64-bit integer; a decimal is written {\"__extn\": …}" },
		{ "9223372036854775808",
		    "1:1: this number is no 64-bit integer; a decimal is written {\"__extn\": …}" },
		{ "01", "1:2: nothing may follow the JSON value" },
		{ "{\"a\": 1, \"a\": 2}", "1:1: a key stands twice in this object" },
		{ "{\"__extn\": {\"fn\": \"ip\", \"arg\": \"1\"}}",
		    "1:12: error while evaluating `ipaddr` extension function: invalid IP address: "
		    "1" },
		{ "[1,]", "1:4: a value must stand behind the comma" },
		{ "\"\\ud800\"", "1:7: this is not an escape of JSON" },
		{ "\"a", "1:1: this string is not closed" },
		{ "tru", "1:1: this is not a JSON value" },
		{ "", "1:1: the JSON text ends too early" },
	};
	struct world *w = *state;
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct buf b = buf_with(4096), j = buf_with(4096);
		struct box_err err = { 0 };
		struct cedar_value v, again;

		if (cedar_json_value(w->t, &w->a, sv_c(t[i].json), NULL, &v, &err) < 0) {
			assert_string_equal(err.msg, t[i].want);
			continue;
		}
		cedar_put_value(&b, &v);
		assert_string_equal(buf_cstr(&b), t[i].want);
		cedar_put_value_json(&j, &v);
		assert_int_equal(cedar_json_value(w->t, &w->a, buf_sv(&j), NULL, &again, &err), 0);
		assert_true(cedar_value_eq(&v, &again));
		assert_true(cedar_value_hash(&v) == cedar_value_hash(&again));
		buf_fini(&b);
		buf_fini(&j);
	}
}

static void test_entities(void **state)
{
	struct world *w = *state;
	struct cedar_entities es;
	struct box_err err = { 0 };
	static const char *const bad[] = { "{}", "[1]", "[{\"uid\": {\"type\": \"A\"}}]",
		"[{\"uid\": {\"type\": \"A\", \"id\": \"x\"}, \"nope\": 1}]",
		"[{\"uid\": {\"type\": \"a b\", \"id\": \"x\"}}]",
		"[{\"uid\": {\"type\": \"A\", \"id\": \"x\"}, \"parents\": [{\"type\": \"A\", "
		"\"id\": \"x\"}]}]",
		"[{\"uid\": {\"type\": \"A\", \"id\": \"x\"}}, {\"uid\": {\"type\": \"A\", \"id\": "
		"\"x\"}, \"attrs\": {\"a\": 1}}]",
		"[{\"uid\": {\"type\": \"A\", \"id\": \"x\"}}, {\"uid\": {\"type\": \"A\", \"id\": "
		"\"x\"}, \"tags\": {\"a\": 1}}]",
		"[{\"uid\": {\"type\": \"A\", \"id\": \"x\"}}, {\"uid\": {\"type\": \"A\", \"id\": "
		"\"x\"}, \"parents\": [{\"type\": \"A\", \"id\": \"y\"}]}]" };
	/* The very same entity may stand there twice. */
	static const char twice[] =
	    "[{\"uid\": {\"type\": \"A\", \"id\": \"x\"}, \"attrs\": {\"a\": [1, 2]}, \"parents\": "
	    "[{\"type\": \"A\", \"id\": \"y\"}]}, {\"uid\": {\"type\": \"A\", \"id\": \"x\"}, "
	    "\"attrs\": {\"a\": [2, 1]}, \"parents\": [{\"type\": \"A\", \"id\": \"y\"}]}]";
	size_t i;

	es = cedar_entities_in(&w->a, NULL);
	assert_int_equal(cedar_json_entities(w->t, sv_c(twice), NULL, &es, &err), 0);
	assert_int_equal(es.n, 1);

	es = cedar_entities_in(&w->a, NULL);
	assert_int_equal(
	    cedar_json_entities(w->t,
	        SV("[{\"uid\": {\"__entity\": {\"type\": \"A\", \"id\": \"x\"}}, \"attrs\": "
	           "{\"k\": 1}, \"parents\": "
	           "[{\"type\": \"A\", \"id\": \"y\"}], \"tags\": {\"t\": \"v\"}}, {\"uid\": "
	           "{\"type\": \"A\", \"id\": "
	           "\"y\"}, \"attrs\": {}, \"parents\": [{\"type\": \"B\", \"id\": \"z\"}]}]"),
	        NULL, &es, &err),
	    0);
	assert_true(cedar_entities_in_hierarchy(&es, uid(w, "A::\"x\""), uid(w, "B::\"z\"")));
	assert_int_equal(cedar_entities_find(&es, uid(w, "A::\"x\""))->tags->n, 1);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		es = cedar_entities_in(&w->a, NULL);
		assert_int_equal(cedar_json_entities(w->t, sv_c(bad[i]), NULL, &es, &err), -1);
	}
}

/* A cycle of three; a chain of ten thousand is closed quickly. */
static void test_hierarchy(void **state)
{
	struct world *w = *state;
	struct buf b = buf_with((size_t)16 << 20);
	struct cedar_entities es = cedar_entities_in(&w->a, NULL);
	struct box_err err = { 0 };
	unsigned i;

	buf_put_byte(&b, '[');
	for (i = 0; i < 3; i++)
		buf_putf(&b,
		    "%s{\"uid\": {\"type\": \"A\", \"id\": \"%u\"}, \"parents\": [{\"type\": "
		    "\"A\", \"id\": \"%u\"}]}",
		    i > 0 ? "," : "", i, (i + 1) % 3);
	buf_put_byte(&b, ']');
	assert_int_equal(cedar_json_entities(w->t, buf_sv(&b), NULL, &es, &err), -1);
	assert_non_null(strstr(err.msg, "cycle"));
	buf_clear(&b);
	es = cedar_entities_in(&w->a, NULL);
	buf_put_byte(&b, '[');
	for (i = 0; i < 2000; i++)
		buf_putf(&b,
		    "%s{\"uid\": {\"type\": \"A\", \"id\": \"%u\"}, \"parents\": [{\"type\": "
		    "\"A\", \"id\": \"%u\"}]}",
		    i > 0 ? "," : "", i, i + 1);
	buf_put_byte(&b, ']');
	assert_int_equal(cedar_json_entities(w->t, buf_sv(&b), NULL, &es, &err), 0);
	assert_true(cedar_entities_in_hierarchy(&es, uid(w, "A::\"0\""), uid(w, "A::\"2000\"")));
	assert_false(cedar_entities_in_hierarchy(&es, uid(w, "A::\"7\""), uid(w, "A::\"6\"")));
	buf_fini(&b);
}

static void test_links(void **state)
{
	static const char text[] = "{\"staticPolicies\": {\"s\": {\"effect\": \"forbid\", "
	                           "\"principal\": {\"op\": \"==\", \"entity\": {\"type\": "
	                           "\"User\", \"id\": \"bob\"}}, \"action\": {\"op\": \"All\"}, "
	                           "\"resource\": {\"op\": \"All\"}, "
	                           "\"conditions\": []}}, \"templates\": {\"t\": {\"effect\": "
	                           "\"permit\", \"principal\": {\"op\": \"==\", "
	                           "\"slot\": \"?principal\"}, \"action\": {\"op\": \"in\", "
	                           "\"entities\": [{\"type\": \"Action\", \"id\": "
	                           "\"view\"}]}, \"resource\": {\"op\": \"is\", \"entity_type\": "
	                           "\"Doc\"}, \"conditions\": [{\"kind\": "
	                           "\"unless\", \"body\": {\"like\": {\"left\": {\"Value\": "
	                           "\"x\"}, \"pattern\": [{\"Literal\": \"y\"}, "
	                           "\"Wildcard\"]}}}], \"annotations\": {\"a\": \"b\"}}}, "
	                           "\"templateLinks\": [{\"templateId\": \"t\", "
	                           "\"newId\": \"l\", \"values\": {\"?principal\": {\"__entity\": "
	                           "{\"type\": \"User\", \"id\": "
	                           "\"alice\"}}}}]}";
	struct world *w = *state;
	struct cedar_json_set set;
	struct cedar_policies *ps;
	struct cedar_answer ans;
	struct box_err err;

	w->ds = cedar_diags_in(&w->a);
	if (cedar_json_policies(w->t, &w->a, sv_c(text), &set, &w->ds) < 0)
		fail_msg(SV_FMT, SV_ARG(w->ds.d[0].message));
	assert_int_equal(set.n_link, 2);
	ps = cedar_policies_new(w->t, set.link, set.n_link, NULL, &w->ds);
	assert_non_null(ps);
	assert_int_equal(cedar_authorize(ps, &w->ev, &w->rq, &ans, &err), 0);
	assert_true(ans.allow);
	assert_true(sv_eq(cedar_sv(cedar_policies_get(ps, ans.reason[0])->id), SV("l")));
	cedar_policies_free(ps);
}

/* A path of `has` as one list, and as the conjunction it stands for. */
static void test_has_path(void **state)
{
	static const char text[] = "{\"effect\": \"permit\", \"principal\": {\"op\": \"All\"}, "
	                           "\"action\": {\"op\": \"All\"}, \"resource\": "
	                           "{\"op\": \"All\"}, \"conditions\": [{\"kind\": \"when\", "
	                           "\"body\": {\"has\": {\"left\": {\"Var\": "
	                           "\"context\"}, \"attr\": [\"a\", \"b\"]}}}]}";
	struct world *w = *state;
	struct cedar_policy *p;
	struct buf b = buf_with(4096);

	w->ds = cedar_diags_in(&w->a);
	p = cedar_json_policy(w->t, &w->a, sv_c(text), SV("p"), &w->ds);
	assert_non_null(p);
	cedar_put_expr(&b, p->cond[0].e, NULL);
	assert_string_equal(buf_cstr(&b), "context has a.b");
	buf_clear(&b);
	cedar_put_policy_json(&b, p, NULL);
	assert_non_null(strstr(buf_cstr(&b), "{\"&&\": {\"left\": {\"has\""));
	buf_fini(&b);
}

/* `action in [A]` is written as `action in A`, as Cedar does. */
static void test_list_of_one(void **state)
{
	struct world *w = *state;
	struct cedar_source src;
	struct buf b = buf_with(4096);

	assert_int_equal(
	    cedar_parse(w->t, &w->a, SV("permit (principal, action in [Action::\"a\"], resource);"),
	        NULL, &src, &w->ds),
	    0);
	cedar_put_policy_json(&b, &src.policy[0], NULL);
	assert_non_null(strstr(
	    buf_cstr(&b), "{\"op\": \"in\", \"entity\": {\"type\": \"Action\", \"id\": \"a\"}}"));
	buf_fini(&b);
}

/* Places found by marks are those found by counting. */
static void test_places(void **state)
{
	struct world *w = *state;
	AUTO_BUF b = buf_with(1 << 16);
	struct cedar_places p;
	struct arena tight = { .limit = 1 };

	for (unsigned i = 0; i < 300; i++)
		buf_put_c(&b, i % 7 == 0   ? "\n"
		              : i % 3 == 0 ? "\xc3\xa9\xf0\x9f\x98\x80"
		                           : "abcdefg ");
	p = cedar_places_of(&w->a, buf_sv(&b));
	assert_true(b.n > 2 * CEDAR_PLACES_STEP);
	for (size_t i = 0; i <= b.n + 1; i++) {
		struct cedar_span x = cedar_span_at(buf_sv(&b), i, 3),
		                  y = cedar_places_span(&p, i, 3);

		assert_memory_equal(&x, &y, sizeof(x));
	}
	p = cedar_places_of(&tight, buf_sv(&b));
	assert_int_equal(cedar_places_span(&p, 700, 1).line, 0);
	arena_free(&tight);
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"{}",
		"{\"effect\": \"allow\"}",
		"{\"effect\": \"permit\", \"principal\": {\"op\": \"All\"}, \"action\": {\"op\": "
		"\"All\"}, \"resource\": "
		"{\"op\": \"All\"}, \"conditions\": [{\"kind\": \"if\", \"body\": {\"Value\": "
		"true}}]}",
		"{\"effect\": \"permit\", \"principal\": {\"op\": \"==\", \"slot\": "
		"\"?resource\"}, \"action\": {\"op\": "
		"\"All\"}, \"resource\": {\"op\": \"All\"}, \"conditions\": []}",
		"{\"effect\": \"permit\", \"principal\": {\"op\": \"All\"}, \"action\": {\"op\": "
		"\"==\", \"entity\": "
		"{\"type\": \"User\", \"id\": \"x\"}}, \"resource\": {\"op\": \"All\"}, "
		"\"conditions\": []}",
		"{\"effect\": \"permit\", \"principal\": {\"op\": \"All\"}, \"action\": {\"op\": "
		"\"All\"}, \"resource\": "
		"{\"op\": \"All\"}, \"conditions\": [{\"kind\": \"when\", \"body\": {\"nope\": "
		"[]}}]}",
	};
	struct world *w = *state;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		w->ds = cedar_diags_in(&w->a);
		assert_null(cedar_json_policy(w->t, &w->a, sv_c(bad[i]), SV("p"), &w->ds));
		assert_true(w->ds.errors != 0);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)
	const struct CMUnitTest tests[] = {
		T(test_values),
		T(test_entities),
		T(test_hierarchy),
		T(test_links),
		T(test_has_path),
		T(test_list_of_one),
		T(test_places),
		T(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
