/* Regular expressions that grow: what the engine would copy without end is refused before it sees
 * it, everywhere one can be given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness.h"
#include "shell/text_re.h"
#include "base/ban.h"

static char *repeated(const char *unit, size_t n, const char *tail)
{
	size_t k = strlen(unit);
	char *s = malloc(n * k + strlen(tail) + 1);

	assert_non_null(s);
	for (size_t i = 0; i < n; i++)
		memcpy(s + i * k, unit, k);
	memcpy(s + n * k, tail, strlen(tail) + 1);
	return s;
}

static void test_sizes(void **state)
{
	static const struct {
		const char *unit;
		size_t n;
		const char *tail;
		bool extended, big;
	} t[] = {
		{ "", 0, "^([0-9]{1,3}\\.){3}[0-9]{1,3}$", true, false },
		{ "", 0, "a{9000}", true, false },
		{ "", 0, "a{20000}", true, true },
		{ "", 0, "a{20000,}", true, true },
		{ "", 0, "a{,20000}", true, true },
		{ "", 0, "a{20000", true, false },
		{ "", 0, "a{x}", true, false },
		{ "", 0, "a{20000}", false, false },
		{ "", 0, "a\\{20000\\}", false, true },
		{ "", 0, "a\\{20000\\}", true, false },
		{ "", 0, "(a{100}){99}", true, false },
		{ "", 0, "(a{100}){101}", true, true },
		{ "", 0, "\\(a\\{100\\}\\)\\{101\\}", false, true },
		{ "", 0, "((a{99}b|c){99}|d){99}", true, true },
		{ "", 0, "[a{200}(]{99}", true, false },
		{ "", 0, "[[:alpha:]]{20000}", true, true },
		{ "", 0, "[]+]{20000}", true, true },
		{ "", 0, "[", true, false },
		{ "", 0, "a\\", true, false },
		{ "", 0, ")))", true, false },
		{ "+", 10, "", true, false },
		{ "o+", 1000, "", true, false },
		{ "+", 40, "", true, false }, /* nothing to repeat */
		{ "", 0, "o++++++++++++++++++++++++++++++++++++++++", true, true },
		{ "", 0, "o++++++++++++++++++++++++++++++++++++++++", false, false },
		{ "", 0, "o\\+\\+\\+\\+\\+\\+\\+\\+\\+\\+\\+\\+\\+\\+\\+\\+", false, true },
		{ "a*?", 5000, "", true, false },
		{ "word|", 20000, "", true, false },
		{ "(", 400, "", true, false },
		{ "(", 501, "", true, true },
		{ "(", 100000, "", true, true },
		{ "(", 100000, "", false, false },
		{ "\\(", 100000, "", false, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		char *s = repeated(t[i].unit, t[i].n, t[i].tail);

		if (text_re_too_big(sv_c(s), t[i].extended) != t[i].big)
			fail_msg("%zu: %.60s", i, s);
		free(s);
	}
}

/* Bytes in any order: never past the end (the sanitizers look), never endless. */
static void test_any_bytes(void **state)
{
	static const char set[] = "a\\[](){}+*?|^$:.=,019-";
	uint32_t r = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		size_t n = (r >> 8) % 24;
		char *s = malloc(n + 1);

		assert_non_null(s);
		for (size_t k = 0; k < n; k++) {
			r = r * 1664525u + 1013904223u;
			s[k] = set[(r >> 16) % (sizeof(set) - 1)];
		}
		r = r * 1664525u + 1013904223u;
		(void)text_re_too_big((sv){ s, n }, i % 2 == 0);
		free(s);
	}
}

static void test_every_way_in(void **state)
{
	struct sh_test t;

	(void)state;
	sh_test_init(&t);
	sh_test_expect(&t,
	    "p='o++++++++++++++++++++++++++++++'\n"
	    "echo oo | grep -E \"$p\"; echo $?\n"
	    "echo oo | sed -E \"s/$p/x/\"; echo $?\n"
	    "[[ oo =~ $p ]]; echo $?\n"
	    "find . -regextype posix-extended -regex \"$p\"; echo $?\n"
	    "find . -regex \"$p\"; echo $?\n"
	    "[[ oo =~ ^o+$ ]]; echo $?\n",
	    "2\n1\n2\n1\n1\n0\n", 0);
	sh_test_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_every_way_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
