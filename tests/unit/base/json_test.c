/* The bounded JSON reader: what it accepts, where it refuses, its limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json.h"
#include "failmalloc.h"

static void parses(void **state)
{
	struct box_err err = { 0 };
	sv s;
	AUTO_JSON j = js_parse(
	    SV(" {\"a\": [1, -2.5e3, true, null], \"b\": {\"c\": \"\\u00e9\\n\\\"]\"}, \"\": 0}\n"),
	    JS_LIMITS_DEFAULT, &err);

	(void)state;
	assert_non_null(j);
	assert_int_equal(json_array_size(json_object_get(j, "a")), 4);
	assert_true(js_str(json_object_get(j, "b"), "c", &s));
	assert_true(sv_eq(s, SV("\xc3\xa9\n\"]")));
	assert_false(js_str(j, "a", &s));
	assert_int_equal(s.n, 0);
	assert_false(js_str(j, "none", &s));
	AUTO_JSON n = js_parse(SV("9223372036854775807"), JS_LIMITS_DEFAULT, &err);

	assert_true(json_integer_value(n) == INT64_MAX);
}

static void refuses(void **state)
{
	static const struct {
		sv text;
		const char *fragment;
	} rows[] = {
		{ SV_INIT(""), "1:1: " },
		{ SV_INIT("  "), "" },
		{ SV_INIT("{"), "" },
		{ SV_INIT("[1,]"), "1:4: " },
		{ SV_INIT("[1 2]"), "" },
		{ SV_INIT("{\"a\" 1}"), "" },
		{ SV_INIT("{a:1}"), "" },
		{ SV_INIT("{'a':1}"), "" },
		{ SV_INIT("[1]]"), "1:" },
		{ SV_INIT("1 2"), "" },
		{ SV_INIT("nul"), "" },
		{ SV_INIT("True"), "" },
		{ SV_INIT("01"), "" },
		{ SV_INIT("1."), "" },
		{ SV_INIT(".5"), "" },
		{ SV_INIT("+1"), "" },
		{ SV_INIT("NaN"), "" },
		{ SV_INIT("Infinity"), "" },
		{ SV_INIT("1e999"), "" },
		{ SV_INIT("9223372036854775808"), "too big integer" },
		{ SV_INIT("\"a\nb\""), "" },
		{ SV_INIT("\"\\x\""), "" },
		{ SV_INIT("\"\\u12\""), "" },
		{ SV_INIT("\"\\ud800\""), "" },
		{ SV_INIT("\"\\u0000\""), "" },
		{ SV_INIT("\"abc"), "" },
		{ SV_INIT("[1] // c"), "" },
		{ SV_INIT("{\"a\":1,\n \"a\":2}"), "2:" },
		{ SV_INIT("{\"a\":1,\"\\u0061\":2}"), "duplicate" },
		{ SV_INIT("{\"x\":{\"a\":1,\"a\":1}}"), "duplicate" },
		{ SV_INIT("[\"\xff\"]"), "1:3: the JSON text is not UTF-8" },
		{ SV_INIT("[\n\"\xc3\xa9\xed\xa0\x80\"]"), "2:3: the JSON text is not UTF-8" },
		{ SV_INIT("\xef\xbb\xbf{}"), "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct box_err err = { 0 };
		json_t *j = js_parse(rows[i].text, JS_LIMITS_DEFAULT, &err);
		int line, col;

		if (j != NULL)
			fail_msg("row %zu was accepted", i);
		if (sscanf(err.msg, "%d:%d: ", &line, &col) != 2 ||
		    strstr(err.msg, rows[i].fragment) == NULL)
			fail_msg("row %zu: got %s, want %s", i, err.msg, rows[i].fragment);
		assert_int_equal(err.code, BOX_EPARSE);
	}
}

static void nested(struct buf *b, size_t depth)
{
	buf_clear(b);
	for (size_t i = 0; i < depth; i++)
		buf_put_c(b, i % 2 != 0 ? "{\"a\":" : "[");
	buf_put_c(b, "0");
	for (size_t i = depth; i-- > 0;)
		buf_put_c(b, i % 2 != 0 ? "}" : "]");
}

static void has_limits(void **state)
{
	struct js_limits lim = JS_LIMITS_DEFAULT;
	AUTO_BUF b = buf_with((size_t)1 << 20);
	struct box_err err = { 0 };
	json_t *j;

	(void)state;
	nested(&b, 64);
	j = js_parse(buf_sv(&b), lim, &err);
	assert_non_null(j);
	json_decref(j);
	nested(&b, 65);
	assert_null(js_parse(buf_sv(&b), lim, &err));
	assert_int_equal(err.code, BOX_ELIMIT);
	nested(&b, 600);
	lim.depth = SIZE_MAX; /* our own ceiling stands */
	assert_null(js_parse(buf_sv(&b), lim, &err));
	assert_int_equal(err.code, BOX_ELIMIT);
	/* brackets inside strings are no depth */
	lim = (struct js_limits){ 100, 10, 1 };
	j = js_parse(SV("[\"[[[[\\\"[[[\"]"), lim, &err);
	assert_non_null(j);
	json_decref(j);
	assert_null(
	    js_parse(SV("[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22]"), lim, &err));
	assert_int_equal(err.code, BOX_ELIMIT);
	assert_null(js_parse(
	    SV("                                                                                 "
	       "                    1"),
	    lim, &err));
	assert_string_equal(err.msg, "the JSON text is larger than 100 bytes");
}

static void survives_no_memory(void **state)
{
	static const sv text = SV_INIT("{\"a\":[1,\"x\",{\"b\":null}],\"c\":\"longer text\"}");

	(void)state;
	for (size_t n = 1;; n++) {
		struct box_err err = { 0 };
		json_t *j;

		fail_after(n);
		j = js_parse(text, JS_LIMITS_DEFAULT, &err);
		fail_after(0);
		if (!fail_happened()) {
			assert_non_null(j);
			json_decref(j);
			return;
		}
		json_decref(
		    j); /* jansson's own allocations do not go through the hook in every build */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses),
		cmocka_unit_test(refuses),
		cmocka_unit_test(has_limits),
		cmocka_unit_test(survives_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
