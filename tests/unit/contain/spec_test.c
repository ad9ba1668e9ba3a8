/* The description of a sandbox as bytes: what is written is read back; damage of every kind is
 * refused, never half taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "contain/spec.h"
#include "failmalloc.h"
#include "base/ban.h"

static struct sandbox_op ops[] = {
	{ .kind = SANDBOX_DIR, .dst = "/etc", .mode = 0755 },
	{ .kind = SANDBOX_FILE,
	    .dst = "/etc/hosts",
	    .content = SV_INIT("127.0.0.1 localhost\n"),
	    .mode = 0444 },
	{ .kind = SANDBOX_LINK, .src = "usr/bin", .dst = "/bin" },
	{ .kind = SANDBOX_BIND,
	    .src = "/usr/bin/true",
	    .dst = "/usr/bin/true",
	    .flags = SANDBOX_RO,
	    .dev = 7,
	    .ino = UINT64_C(0x123456789a) },
	{ .kind = SANDBOX_TMPFS, .dst = "/dev", .size = 65536, .flags = SANDBOX_NOEXEC },
	{ .kind = SANDBOX_COVER, .dst = "/proc/keys", .flags = SANDBOX_OPTIONAL },
	{ .kind = SANDBOX_SEAL, .dst = "/" },
};
static struct sandbox_rule rules[] = { { "/usr/bin/true", SANDBOX_R_READ | SANDBOX_R_EXEC, false },
	{ "/tmp", SANDBOX_R_WRITE | SANDBOX_R_MAKE, true } };
static struct sandbox_limit limits[] = { { RLIMIT_CORE, 0, 0 }, { RLIMIT_NOFILE, 10, 20 } };
static const char *const argv_[] = { "true", "", "x y\n", NULL };
static const char *const envp_[] = { "A=b", "SECRET=value", NULL };

static const struct sandbox_spec sample = { .label = "[agent]",
	.ops = ops,
	.ops_n = 7,
	.rules = rules,
	.rules_n = 2,
	.net = SANDBOX_NET_PROXY,
	.program = "/usr/bin/true",
	.argv = argv_,
	.argv_n = 3,
	.envp = envp_,
	.envp_n = 2,
	.cwd = "/w",
	.hostname = "boxwood",
	.uid = 1000,
	.gid = 100,
	.umask = 022,
	.tty = true,
	.limits = limits,
	.limits_n = 2 };

static void test_round_trip(void **state)
{
	AUTO_BUF a = buf_with(SANDBOX_SPEC_MAX);
	AUTO_BUF b = buf_with(SANDBOX_SPEC_MAX);
	AUTO_BUF text_a = buf_with(1 << 16);
	AUTO_BUF text_b = buf_with(1 << 16);
	struct sandbox_spec got;
	struct box_err err = { 0 };

	(void)state;
	assert_int_equal(sandbox_spec_put(&sample, &a, &err), 0);
	if (sandbox_spec_get(buf_sv(&a), &got, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(sandbox_spec_put(&got, &b, &err), 0);
	assert_true(sv_eq(buf_sv(&a), buf_sv(&b)));
	assert_int_equal(got.ops[3].ino, UINT64_C(0x123456789a));
	assert_null(got.argv[3]);
	assert_null(got.envp[2]);
	assert_true(got.tty);
	sandbox_spec_print(&sample, &text_a);
	sandbox_spec_print(&got, &text_b);
	assert_true(sv_eq(buf_sv(&text_a), buf_sv(&text_b)));
	assert_true(sv_find_sv(buf_sv(&text_a), SV("link    /bin -> usr/bin\n")) >= 0);
	assert_true(sv_find_sv(buf_sv(&text_a), SV("rule    /usr/bin/true read,exec\n")) >= 0);
	assert_true(sv_find_sv(buf_sv(&text_a), SV("env     SECRET\n")) >= 0);
	assert_true(sv_find_sv(buf_sv(&text_a), SV("value")) < 0); /* values are never printed */
	assert_true(sv_find_sv(buf_sv(&text_a), SV("x y\\n")) >= 0);
	sandbox_spec_fini(&got);
}

static void test_cut_off(void **state)
{
	AUTO_BUF a = buf_with(SANDBOX_SPEC_MAX);
	struct box_err err;

	(void)state;
	assert_int_equal(sandbox_spec_put(&sample, &a, NULL), 0);
	for (size_t n = 0; n < a.n; n++) {
		struct sandbox_spec got;

		err.msg[0] = '\0';
		assert_int_equal(sandbox_spec_get(sv_sub(buf_sv(&a), 0, n), &got, &err), -1);
		assert_true(err.msg[0] != '\0');
		sandbox_spec_fini(&got);
	}
	buf_put_byte(&a, 0); /* one byte too many */
	struct sandbox_spec got;

	assert_int_equal(sandbox_spec_get(buf_sv(&a), &got, &err), -1);
	sandbox_spec_fini(&got);
}

/* Every byte changed in turn: refused, or read as something that still obeys the rules. */
static void test_every_byte_changed(void **state)
{
	AUTO_BUF a = buf_with(SANDBOX_SPEC_MAX);

	(void)state;
	assert_int_equal(sandbox_spec_put(&sample, &a, NULL), 0);
	for (size_t i = 0; i < a.n; i++) {
		for (unsigned v = 1; v < 256; v += 83) {
			struct sandbox_spec got;

			a.p[i] = (uint8_t)(a.p[i] ^ v);
			if (sandbox_spec_get(buf_sv(&a), &got, NULL) == 0)
				for (size_t k = 0; k < got.ops_n; k++) {
					assert_int_equal(got.ops[k].dst[0], '/');
					assert_null(strstr(got.ops[k].dst, "/../"));
					assert_in_range(got.ops[k].kind, SANDBOX_DIR, SANDBOX_SEAL);
				}
			sandbox_spec_fini(&got);
			a.p[i] = (uint8_t)(a.p[i] ^ v);
		}
	}
}

static void test_bad_paths(void **state)
{
	static const char *const bad[] = { "", "etc", "/etc/", "//etc", "/etc/./x", "/etc/../x",
		"/..", "/." };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct sandbox_op op = { .kind = SANDBOX_DIR, .dst = bad[i] };
		struct sandbox_spec s = sample, got;
		AUTO_BUF a = buf_with(SANDBOX_SPEC_MAX);

		s.ops = &op;
		s.ops_n = 1;
		assert_int_equal(sandbox_spec_put(&s, &a, NULL), 0);
		assert_int_equal(sandbox_spec_get(buf_sv(&a), &got, NULL), -1);
		sandbox_spec_fini(&got);
	}
}

static void test_too_large(void **state)
{
	AUTO_BUF a = buf_with(64);
	struct box_err err = { 0 };

	(void)state;
	assert_int_equal(sandbox_spec_put(&sample, &a, &err), -1);
	assert_int_equal(err.code, BOX_ELIMIT);
}

static void test_no_memory(void **state)
{
	AUTO_BUF a = buf_with(SANDBOX_SPEC_MAX);
	struct box_err err;
	size_t n;

	(void)state;
	assert_int_equal(sandbox_spec_put(&sample, &a, NULL), 0);
	for (n = 1; n < 1000; n++) {
		struct sandbox_spec got;
		int r;

		fail_after(n);
		r = sandbox_spec_get(buf_sv(&a), &got, &err);
		if (fail_happened())
			assert_int_equal(err.code, BOX_ENOMEM);
		fail_after(0);
		sandbox_spec_fini(&got);
		if (r == 0)
			break;
	}
	assert_in_range(n, 2, 999);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_cut_off), cmocka_unit_test(test_every_byte_changed),
		cmocka_unit_test(test_bad_paths), cmocka_unit_test(test_too_large),
		cmocka_unit_test(test_no_memory) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
