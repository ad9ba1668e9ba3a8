/* The formatter: layouts, comments, stability. */
#include "t.h"

#include "cedar/format.h"

static const char *format(struct world *w, const char *text, unsigned width)
{
	struct cedar_parse_opts o = { .dogwood = true };
	struct buf b = buf_with((size_t)64 << 20);
	const char *s;

	w->ds = cedar_diags_in(&w->a);
	if (cedar_format(w->t, &w->a, sv_c(text), &o, width, &b, &w->ds) < 0)
		s = arena_printf(&w->a, "error: " SV_FMT, SV_ARG(w->ds.d[0].message));
	else
		s = arena_printf(&w->a, SV_FMT, SV_ARG(buf_sv(&b)));
	buf_fini(&b);
	return s;
}

static const struct {
	const char *text, *want;
} rows[] = {
	{ "", "" },
	{ "// only this\n", "// only this\n" },
	{ "permit(principal,action,resource);", "permit (principal, action, resource);\n" },
	{ "@id( \"x\" )@b permit( principal==A::B::\"c\" , action "
	  "in[Action::\"a\",Action::\"b\"],resource is T in G::\"g\" )"
	  "when{context.a==1&&!context.b||-1<- 2}unless{[1,2].contains(context [\"k\"])};permit();",
	    "@id(\"x\")\n@b\npermit (\n  principal == A::B::\"c\",\n  action in [Action::\"a\", "
	    "Action::\"b\"],\n  resource is T "
	    "in G::\"g\"\n)\nwhen { context.a == 1 && !context.b || -1 < -2 }\nunless { [1, "
	    "2].contains(context[\"k\"]) };\n\npermit ();\n" },
	{ "permit(principal,action,resource) when { aaaaaaaaaaaaaaaaaaaaaa(1) && "
	  "bbbbbbbbbbbbbbbbb(2) && "
	  "(cccccccc(3) || dddd(4)) };",
	    "permit (principal, action, resource)\nwhen {\n  aaaaaaaaaaaaaaaaaaaaaa(1) &&\n  "
	    "bbbbbbbbbbbbbbbbb(2) &&\n  (cccccccc(3) "
	    "|| dddd(4))\n};\n" },
	{ "// first\n\n// about it\npermit( // scope\nprincipal, action, resource) // head\nwhen { "
	  "// why\n  true // last\n // "
	  "end\n} // cond\n; // done\n// more\n\n\n// tail\n",
	    "// first\n\n// about it\npermit ( // scope\n  principal,\n  action,\n  resource\n) // "
	    "head\nwhen { // why\n  true "
	    "// last\n  // end\n} // cond\n; // done\n// more\n\n// tail\n" },
	{ "forbid() when temporal { count(60s,A::Action::\"x\"::request{input.a:*,b:$t}) > "
	  "2 };",
	    "forbid ()\nwhen temporal { count(60s, A::Action::\"x\"::request{ input.a: *, "
	    "b: $t }) > 2 };\n" },
	{ "def cedar f(?a){?a+1};def temporal g(?w,?s){count for ($t: Timepoint). where (formerly "
	  "within ?w (?s && tp($t)))};",
	    "def cedar f(?a) { ?a + 1 };\n\ndef temporal g(?w, ?s) {\n  count for ($t: Timepoint). "
	    "where (formerly within ?w "
	    "(?s && tp($t)))\n};\n" },
	{ "permit() when { if a() then {x:1,\"y\":[]} else {} };",
	    "permit ()\nwhen { if a() then { x: 1, \"y\": [] } else {} };\n" },
	{ "permit( when { true };", "error: unexpected scope variable `when`; expected "
	                            "`principal`, `action`, or `resource`" },
};

static void test_layout(void **state)
{
	struct world *w = *state;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *got = format(w, rows[i].text, 80);

		if (strcmp(got, rows[i].want) != 0)
			fail_msg("%s\n gave\n%s\n not\n%s", rows[i].text, got, rows[i].want);
		if (strncmp(got, "error", 5) != 0)
			assert_string_equal(format(w, got, 80), got);
	}
}

/* Random white space, comments and widths: stable after one pass. */
static void test_stable(void **state)
{
	static const char *const parts[] = { "@id(\"x\")", "permit(", "principal", "==", "A::\"b\"",
		",", "action", "in", "[", "Action::\"q\"", ",", "Action::\"r\"", "]", ",",
		"resource", ")", "when", "{", "(", "context.aaaaaaaaaaaaaaaa", "&&", "!",
		"context.bbbbbbbbbbbb", ")", "||", "[", "1", ",", "-", "2", "]", ".", "contains",
		"(", "context", "[", "\"k\"", "]", ")", "}", "unless", "temporal", "{", "formerly",
		"within", "1h", "(", "A::Action::\"x\"::req{", "f", ":", "*", "}", "&&", "tp", "(",
		"t", ")", ")", "}", ";" };
	static const char *const gaps[] = { " ", " ", " ", "\n", "  \n\n\n", " // c\n",
		"\n// own\n", "\n\n// a\n\n// b\n" };
	struct world *w = *state;
	uint32_t seed = 7, i, k;

	for (i = 0; i < 300; i++) {
		struct buf b = buf_with(1 << 16);
		const char *once, *twice;
		unsigned width = 20 + i % 90;

		for (k = 0; k < 2 * sizeof(parts) / sizeof(parts[0]); k++) {
			seed = seed * 1664525u + 1013904223u;
			buf_put_c(&b, parts[k % (sizeof(parts) / sizeof(parts[0]))]);
			buf_put_c(&b, gaps[(seed >> 20) % (i % 4 == 0 ? 8 : 5)]);
		}
		once = format(w, buf_cstr(&b), width);
		if (strncmp(once, "error", 5) == 0)
			fail_msg("%s\n%s", buf_cstr(&b), once);
		twice = format(w, once, width);
		if (strcmp(once, twice) != 0)
			fail_msg("width %u, once:\n%s\ntwice:\n%s", width, once, twice);
		buf_fini(&b);
	}
}

/* A temporal block is not parsed here, so its brackets may be deep. */
static void test_deep(void **state)
{
	struct world *w = *state;
	struct buf b = buf_with((size_t)8 << 20);
	const char *once;
	unsigned i;

	buf_put_sv(&b, SV("permit() when temporal { "));
	for (i = 0; i < 100000; i++)
		buf_put_sv(&b, SV("(a && "));
	buf_put_sv(&b, SV("// c\n x"));
	for (i = 0; i < 100000; i++)
		buf_put_sv(&b, SV(")"));
	buf_put_sv(&b, SV("};"));
	once = format(w, buf_cstr(&b), 80);
	assert_true(strncmp(once, "permit ()", 9) == 0);
	assert_string_equal(format(w, once, 80), once);
	buf_fini(&b);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)
	const struct CMUnitTest tests[] = {
		T(test_layout),
		T(test_stable),
		T(test_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
