/* Names of host programs: what the shell says about a spawn is made true before policy sees it. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "monitor/spawn.h"

struct world {
	char top[64], file[PATH_MAX], path[256];
};

/* TOP/usr holds the program `tac` and the operator's link `cat2` to it; TOP/w/bin the agent's link
 * `nproc`. */
static int setup(void **state)
{
	static struct world w;
	char cmd[512];

	(void)snprintf(w.top, sizeof(w.top), "/tmp/spawn-test-XXXXXX");
	assert_non_null(mkdtemp(w.top));
	(void)snprintf(cmd, sizeof(cmd),
	    "cd %s && mkdir -p usr w/bin && : > usr/tac && ln -s tac usr/cat2 && ln -s "
	    "../../usr/tac w/bin/nproc",
	    w.top);
	assert_int_equal(system(cmd), 0);
	(void)snprintf(cmd, sizeof(cmd), "%s/usr/tac", w.top);
	assert_non_null(realpath(cmd, w.file));
	(void)snprintf(w.path, sizeof(w.path), "relative::/nowhere:%s/usr", w.top);
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	char cmd[128];

	(void)snprintf(cmd, sizeof(cmd), "rm -rf %s", w->top);
	return system(cmd);
}

static void test_names(void **state)
{
	struct world *w = *state;
	char absolute[128], relative[] = "bin/nproc", cwd[128];
	const struct {
		const char *program;
		bool kept;
	} rows[] = {
		{ "tac", true },    /* on the operator's PATH */
		{ "cat2", true },   /* a link of the operator's to it */
		{ "nproc", false }, /* only where the agent put it */
		{ "sort", false },  /* a lie */
		{ relative, true }, /* a path from cwd that leads there, however it is called */
		{ "./bin/nproc", true }, { "bin/other", false }, { absolute, true },
		{ "/usr/bin/env", false }, { "/", false }, { "", false }, { "..", false },
		{ "../usr/tac", false }, /* from TOP/w/..: not from cwd */
	};

	(void)snprintf(absolute, sizeof(absolute), "%s/usr/cat2", w->top);
	(void)snprintf(cwd, sizeof(cwd), "~/w");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_ARENA arena = { .limit = 1 << 20 };
		struct ask a = { .kind = ASK_SPAWN,
			.program = sv_c(rows[i].program),
			.program_path = SV("~/usr/tac"),
			.command = SV("git status"),
			.cwd = sv_c(i == 12 ? "~" : cwd) };
		bool kept;

		assert_true(spawn_settle(&a, &arena, sv_c(w->file), sv_c(w->top), sv_c(w->path)));
		kept = sv_eq(a.program, sv_c(rows[i].program));
		if (kept != rows[i].kept)
			fail_msg("'%s' was %s", rows[i].program, kept ? "kept" : "replaced");
		if (!kept) {
			assert_true(sv_eq(a.program, SV("~/usr/tac")));
			assert_true(sv_eq(spawn_argv0(&a, &arena, sv_c(w->top)), sv_c(w->file)));
			/* "~" is quoted: it is not for a shell to expand. */
			assert_true(sv_eq(a.command, SV("'~/usr/tac'")));
		} else {
			assert_true(sv_eq(spawn_argv0(&a, &arena, sv_c(w->top)), a.program));
			assert_true(sv_eq(a.command, a.program));
		}
	}
}

static void test_command(void **state)
{
	struct world *w = *state;
	AUTO_ARENA arena = { .limit = 1 << 20 };
	struct ask_arg args[] = { { SV("-rf"), true }, { SV("it's"), true }, { SV(""), false },
		{ SV("a b;c"), false }, { SV("x=y"), false } };
	struct ask a = { .kind = ASK_SPAWN,
		.program = SV("tac"),
		.program_path = SV("/usr/bin/tac"),
		.command = SV("tac harmless"),
		.args = args,
		.args_n = 5 };

	assert_true(spawn_settle(&a, &arena, sv_c(w->file), sv_c(w->top), sv_c(w->path)));
	assert_true(sv_eq(a.command, SV("tac -rf 'it'\\''s' '' 'a b;c' x=y")));
}

static void test_limits(void **state)
{
	struct world *w = *state;
	AUTO_ARENA arena = { .limit = 1 << 20 }, none = { .limit = 1 };
	char *big = malloc(MON_TEXT_MAX + 1);
	struct ask_arg arg = { { big, MON_TEXT_MAX + 1 }, false };
	struct ask a = {
		.kind = ASK_SPAWN, .program = SV("tac"), .program_path = SV("/usr/bin/tac")
	};
	struct ask b = a;

	assert_non_null(big);
	memset(big, 'x', MON_TEXT_MAX + 1);
	b.args = &arg;
	b.args_n = 1;
	assert_false(spawn_settle(&b, &arena, sv_c(w->file), sv_c(w->top), sv_c(w->path)));
	assert_false(spawn_settle(&a, &none, sv_c(w->file), sv_c(w->top), sv_c(w->path)));
	assert_null(spawn_argv0(&a, &none, sv_c(w->top)).p);
	free(big);
}

static void test_home(void **state)
{
	AUTO_ARENA arena = { .limit = 1 << 20 };
	const struct {
		const char *in, *out;
	} rows[] = { { "~", "/home/u" }, { "~/a/b", "/home/u/a/b" }, { "/a/~", "/a/~" },
		{ "~other/x", "~other/x" }, { "", "" } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_true(sv_eq(
		    spawn_expand_home(&arena, sv_c(rows[i].in), SV("/home/u")), sv_c(rows[i].out)));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_names),
		cmocka_unit_test(test_command), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_home) };

	return cmocka_run_group_tests(tests, setup, teardown);
}
