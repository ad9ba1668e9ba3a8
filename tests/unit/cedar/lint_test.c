/* Characters that mislead: what is found, where, and what is left alone. */
#include "t.h"

#include "cedar/lint.h"

static const struct {
	const char *text, *want; /* "line:col message prefix", joined with "; " */
} rows[] = {
	{ "permit (principal, action, resource) when { \"a\" == \"b\" }; // plain", "" },
	{ "x \"na\303\257ve \320\274\320\270\321\200 \316\272\316\261\316\273\317\214 \346\227\245"
	  "\346\234\254 \342\200\224 \342\200\234ok\342\200\235\"",
	    "" },
	{ "\"r\320\265ad\"", "1:2 this word has letters of several scripts" },
	{ "x\n \"ok r\320\265ad\"", "2:6 this word has letters of several scripts" },
	{ "\"\321\201\320\276\321\200\321\203\"", "1:2 this word looks like `copy`" },
	{ "\"\321\201\320\276\321\200\321\203\320\266\"", "" },
	{ "\"\\n\320\277\321\200\\x41\320\261 \\u{41}\320\261\"", "" },
	{ "\"\357\275\201\"", "1:2 U+FF41 looks like `a`" },
	{ "\"\360\235\220\232\"", "1:2 U+1D41A looks like `a`" },
	{ "\"a\342\200\213b\"", "1:3 U+200B cannot be seen" },
	{ "\"a\342\200\215b\"", "1:3 U+200D cannot be seen" },
	{ "\"\331\206\330\265\342\200\214\331\207\330\247\"", "" },
	{ "\"\342\200\256\"", "1:2 U+202E changes the direction" },
	{ "// a\342\200\256\n\"b\" // \342\201\246",
	    "1:5 U+202E changes the direction; 2:8 U+2066 changes the direction" },
	{ "\357\273\277permit", "" },
	{ "// \357\273\277", "1:4 U+FEFF cannot be seen" },
	{ "permit \357\273\277", "" }, /* an error of the parser, which shows it */
	{ "\"\\u{202e}\\x1b\"", "" },
	{ "\"\033[2K\"", "1:2 U+001B cannot be seen" },
	{ "\"\303\"", "" },
	{ "\"open \342\200\256", "" },
	{ "\"\320\260\314\201b\"", "1:2 this word has letters of several scripts" },
};

static void finds(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf got = buf_with(1 << 16);
		sv want = sv_c(rows[i].want), one;

		w->ds = cedar_diags_in(&w->a);
		cedar_lint(sv_c(rows[i].text), &w->ds);
		assert_int_equal(w->ds.errors, 0);
		for (size_t k = 0; k < w->ds.n; k++) {
			buf_clear(&got);
			buf_putf(&got, "%u:%u " SV_FMT, w->ds.d[k].span.line, w->ds.d[k].span.col,
			    SV_ARG(w->ds.d[k].message));
			ptrdiff_t end = sv_find_sv(want, SV("; "));

			one = end < 0 ? want : sv_sub(want, 0, (size_t)end);
			want = end < 0 ? (sv){ NULL, 0 } : sv_sub(want, (size_t)end + 2, SIZE_MAX);
			if (one.n == 0 || !sv_starts(buf_sv(&got), one))
				fail_msg("row %zu: %s", i, buf_cstr(&got));
			assert_true(w->ds.d[k].hint.n != 0);
		}
		if (want.n != 0)
			fail_msg("row %zu: not found: " SV_FMT, i, SV_ARG(want));
		buf_fini(&got);
	}
}

static void bounded(void **state)
{
	struct world *w = *state;
	struct buf b = buf_with((size_t)8 << 20);

	buf_put_byte(&b, '"');
	for (unsigned i = 0; i < 1000000; i++)
		buf_put_c(&b, "\342\200\256");
	buf_put_byte(&b, '"');
	w->ds = cedar_diags_in(&w->a);
	cedar_lint(buf_sv(&b), &w->ds);
	assert_int_equal(w->ds.n, CEDAR_LINT_MAX);
	buf_fini(&b);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)
	const struct CMUnitTest tests[] = { T(finds), T(bounded) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
