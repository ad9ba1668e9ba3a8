/* Secrets in streams: whatever the pieces, the output is that of the whole; and nothing is held
 * back that cannot become a secret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gateway/redact.h"

#include "base/ban.h"

static void pieces(void **state)
{
	static const struct {
		const char *secrets[3];
		const char *in, *out;
	} cases[] = {
		{ { "secret" }, "a secret, sec, secretsecret, secre",
		    "a [REDACTED], sec, [REDACTED][REDACTED], secre" },
		{ { "aab" }, "aaaab aa", "aa[REDACTED] aa" },
		{ { "abab" }, "abababab ababa", "[REDACTED][REDACTED] [REDACTED]a" },
		{ { "x" }, "axxb", "a[REDACTED][REDACTED]b" },
		{ { "abc", "bcd" }, "abcd bcd", "[REDACTED]d [REDACTED]" },
		{ { "ab", "abcd" }, "zzab", "zz[REDACTED]" },
		{ { "" }, "nothing", "nothing" },
		{ { NULL }, "nothing", "nothing" },
		{ { "secret" }, "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		sv in = sv_c(cases[i].in);

		for (size_t piece = 1; piece <= in.n + 1; piece++) {
			struct redact r;
			AUTO_BUF out = buf_with(4096);

			redact_init(&r);
			for (size_t k = 0; k < 3 && cases[i].secrets[k] != NULL; k++)
				assert_int_equal(redact_add(&r, sv_c(cases[i].secrets[k])), 0);
			for (size_t at = 0; at < in.n; at += piece)
				assert_int_equal(redact_feed(&r, sv_sub(in, at, piece), &out), 0);
			assert_int_equal(redact_end(&r, &out), 0);
			if (!sv_eq(buf_sv(&out), sv_c(cases[i].out)))
				fail_msg("case %zu, pieces of %zu: %s", i, piece, buf_cstr(&out));
			redact_fini(&r);
		}
	}
}

static void nothing_is_held_in_vain(void **state)
{
	struct redact r;
	AUTO_BUF out = buf_with(4096);

	(void)state;
	redact_init(&r);
	assert_int_equal(redact_add(&r, SV("secret")), 0);
	assert_int_equal(redact_feed(&r, SV("data: x\n\n"), &out), 0);
	assert_true(sv_eq(buf_sv(&out), SV("data: x\n\n")));
	assert_int_equal(redact_feed(&r, SV("data: secre"), &out), 0);
	assert_true(sv_eq(buf_sv(&out), SV("data: x\n\ndata: ")));
	assert_int_equal(redact_feed(&r, SV("x"), &out), 0);
	assert_true(sv_eq(buf_sv(&out), SV("data: x\n\ndata: secrex")));
	redact_fini(&r);
}

static void limits(void **state)
{
	static char big[REDACT_LENGTH + 1];
	struct redact r;

	(void)state;
	memset(big, 'q', sizeof(big));
	redact_init(&r);
	assert_int_equal(redact_add(&r, (sv){ big, REDACT_LENGTH + 1 }), -1);
	for (int i = 0; i < REDACT_MAX; i++)
		assert_int_equal(redact_add(&r, (sv){ big, REDACT_LENGTH }), 0);
	assert_int_equal(redact_add(&r, SV("one more")), -1);
	redact_fini(&r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces),
		cmocka_unit_test(nothing_is_held_in_vain),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
