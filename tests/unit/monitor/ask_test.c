/* Actions: names, targets, the frame of a command, copies that outlive it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "monitor/ask.h"

static void test_targets(void **state)
{
	static const struct {
		struct ask ask;
		const char *action, *category, *target;
	} rows[] = {
		{ { .kind = ASK_FS, .op = FS_READ_CONTENT, .path = SV_INIT("~/p/x") }, "fs:read",
		    "fs", "~/p/x" },
		{ { .kind = ASK_FS, .op = FS_CREATE_DIR, .path = SV_INIT("/tmp/d") }, "fs:write",
		    "fs", "/tmp/d" },
		{ { .kind = ASK_FS, .op = FS_REMOVE_DIR, .path = SV_INIT("~") }, "fs:delete", "fs",
		    "~" },
		{ { .kind = ASK_FS, .op = FS_RENAME, .path = SV_INIT("~/a") }, "fs:move", "fs",
		    "~/a" },
		{ { .kind = ASK_EXEC, .program = SV_INIT("rm") }, "shell:exec", "shell", "rm" },
		{ { .kind = ASK_SPAWN,
		      .program = SV_INIT("git"),
		      .program_path = SV_INIT("/usr/bin/git") },
		    "shell:spawn", "shell", "/usr/bin/git" },
		{ { .kind = ASK_CONNECT, .host = SV_INIT("slack.com"), .port = 443 }, "net:connect",
		    "net", "slack.com:443" },
		{ { .kind = ASK_CONNECT, .host = SV_INIT("::1"), .port = 80 }, "net:connect", "net",
		    "[::1]:80" },
		{ { .kind = ASK_HTTP,
		      .host = SV_INIT("a.test"),
		      .port = 443,
		      .path = SV_INIT("/v1") },
		    "http:request", "http", "a.test:443/v1" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_BUF b = buf_with(256);

		ask_put_target(&rows[i].ask, &b);
		assert_string_equal(buf_cstr(&b), rows[i].target);
		assert_string_equal(ask_action(&rows[i].ask), rows[i].action);
		assert_string_equal(ask_category(&rows[i].ask), rows[i].category);
	}
}

static void test_operations(void **state)
{
	(void)state;
	for (int op = FS_READ_CONTENT; op <= FS_RENAME; op++) {
		assert_non_null(ask_fs_operation((enum mon_fs_op)op));
		assert_non_null(ask_fs_type((enum mon_fs_op)op));
	}
	assert_null(ask_fs_operation((enum mon_fs_op)0));
	assert_null(ask_fs_operation((enum mon_fs_op)(FS_RENAME + 1)));
}

static void test_escaped_target(void **state)
{
	struct ask a = {
		.kind = ASK_FS, .op = FS_READ_CONTENT, .path = SV("~/a\x1b[31m\n\xe2\x80\xae")
	};
	AUTO_BUF b = buf_with(256);

	(void)state;
	ask_put_target_escaped(&a, &b);
	assert_string_equal(buf_cstr(&b), "~/a\\x1b[31m\\n\\u{202e}");
}

static void put_command(struct buf *b, uint32_t argc)
{
	buf_put_str(b, SV("git commit -m x"));
	buf_put_str(b, SV("git"));
	buf_put_u32(b, argc);
	for (uint32_t i = 0; i < argc; i++) {
		buf_put_byte(b, i % 2 == 0);
		buf_put_str(b, SV("word"));
	}
	buf_put_str(b, SV("~/p"));
}

static void test_command_frame(void **state)
{
	AUTO_BUF b = buf_with((size_t)1 << 20);
	AUTO_ARENA arena = { .limit = (size_t)1 << 20 };
	struct ask a = { .kind = ASK_EXEC };
	struct rd r;

	(void)state;
	put_command(&b, 3);
	r = rd_of(b.p, b.n);
	assert_true(ask_read_command(&r, &arena, &a));
	assert_true(rd_done(&r));
	assert_int_equal(a.args_n, 3);
	assert_true(a.args[0].literal);
	assert_false(a.args[1].literal);
	assert_true(sv_eq(a.cwd, SV("~/p")));
	/* Every shorter frame is malformed. */
	for (size_t n = 0; n < b.n; n++) {
		r = rd_of(b.p, n);
		assert_false(ask_read_command(&r, &arena, &a) && rd_done(&r));
	}
	/* A count that the frame cannot hold. */
	buf_clear(&b);
	buf_put_str(&b, SV("x"));
	buf_put_str(&b, SV("x"));
	buf_put_u32(&b, UINT32_MAX);
	r = rd_of(b.p, b.n);
	assert_false(ask_read_command(&r, &arena, &a));
}

static void test_copy_outlives_the_frame(void **state)
{
	char text[] = "echo", one[] = "one", two[] = "two", three[] = "three";
	struct ask_arg args[3] = { { sv_c(one), true }, { sv_c(two), true },
		{ sv_c(three), false } };
	struct ask a = {
		.kind = ASK_EXEC, .program = sv_c(text), .args = args, .args_n = 3, .args_kept = 3
	};
	struct ask *exec = ask_dup(&a), *spawn;

	(void)state;
	a.kind = ASK_SPAWN;
	spawn = ask_dup(&a);
	memset(text, 'x', 4);
	memset(one, 'x', 3);
	memset(three, 'x', 5);
	assert_true(sv_eq(exec->program, SV("echo")));
	assert_int_equal(exec->args_n, 3);
	assert_int_equal(exec->args_kept, 2);
	assert_true(sv_eq(exec->args[0].text, SV("one")));
	assert_int_equal(spawn->args_kept, 3);
	assert_true(sv_eq(spawn->args[2].text, SV("three")));
	free(exec);
	free(spawn);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_targets),
		cmocka_unit_test(test_operations),
		cmocka_unit_test(test_escaped_target),
		cmocka_unit_test(test_command_frame),
		cmocka_unit_test(test_copy_outlives_the_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
