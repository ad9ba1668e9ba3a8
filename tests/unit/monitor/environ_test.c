/* Environments: order of precedence, names that nobody may claim, PATH with and without the
 * aliases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "monitor/environ.h"

static struct plan plan = { .home = SV_INIT("/home/op"),
	.path_var = SV_INIT("/usr/bin:/b/bin/::/bin") };
static const struct routes no_routes;

static const char *value(const struct plan_var *v, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (sv_eq(v[i].name, sv_c(name)))
			return v[i].value.p;
	return NULL;
}

static struct environ_input input(bool is_agent)
{
	return (struct environ_input){ .plan = &plan,
		.routes = &no_routes,
		.bin_dir = "/b/bin",
		.ca_cert = "/b/trust/cert.pem",
		.ca_bundle = "/b/trust/bundle.pem",
		.cwd = "/w",
		.proxy_port = 3128,
		.is_agent = is_agent };
}

static void test_names_of_the_box(void **state)
{
	AUTO_ARENA arena = { 0 };
	struct environ_input in = input(true);
	struct plan_var *v;
	struct box_err err;
	size_t n;

	(void)state;
	assert_int_equal(environ_compose(&in, &arena, &v, &n, &err), 0);
	assert_string_equal(value(v, n, "PATH"), "/b/bin:/usr/bin:/bin");
	assert_string_equal(value(v, n, "HOME"), "/home/op");
	assert_string_equal(value(v, n, "PWD"), "/w");
	assert_string_equal(value(v, n, "USER"), "strands-box");
	assert_string_equal(value(v, n, "HTTPS_PROXY"), "http://127.0.0.1:3128");
	assert_string_equal(value(v, n, "SSL_CERT_FILE"), "/b/trust/bundle.pem");
	assert_string_equal(value(v, n, "NODE_EXTRA_CA_CERTS"), "/b/trust/cert.pem");
	assert_string_equal(value(v, n, "TMPDIR"), "/tmp");
	for (size_t i = 1; i < n; i++)
		assert_true(sv_cmp(v[i - 1].name, v[i].name) < 0);
}

static void test_exports_and_tables(void **state)
{
	AUTO_ARENA arena = { 0 };
	struct plan_var table[] = { { SV("PATH"), SV("/opt/bin:/b/bin") },
		{ SV("A"), SV("table") } };
	struct plan_var exported[] = { { SV("A"), SV("exported") }, { SV("B"), SV("kept") },
		{ SV("LD_PRELOAD"), SV("/x.so") }, { SV("HTTPS_PROXY"), SV("http://evil/") },
		{ SV("PATH"), SV("/evil") }, { SV("HOME"), SV("/evil") },
		{ SV("NODE_OPTIONS"), SV("--require x") }, { SV("PYTHONPATH"), SV("/x") },
		{ SV("BASH_FUNC_rm%%"), SV("() { :; }") }, { SV(""), SV("x") },
		{ SV("1A"), SV("x") } };
	struct plan_process proc = { .env = table, .env_n = 2 };
	struct environ_input in = input(false);
	struct plan_var *v;
	struct box_err err;
	size_t n;

	(void)state;
	in.proc = &proc;
	in.exported = exported;
	in.exported_n = sizeof(exported) / sizeof(exported[0]);
	assert_int_equal(environ_compose(&in, &arena, &v, &n, &err), 0);
	assert_string_equal(value(v, n, "A"), "table");
	assert_string_equal(value(v, n, "B"), "kept");
	assert_string_equal(value(v, n, "PATH"), "/opt/bin");
	assert_string_equal(value(v, n, "HOME"), "/home/op");
	assert_string_equal(value(v, n, "HTTPS_PROXY"), "http://127.0.0.1:3128");
	assert_null(value(v, n, "LD_PRELOAD"));
	assert_null(value(v, n, "NODE_OPTIONS"));
	assert_null(value(v, n, "PYTHONPATH"));
	assert_null(value(v, n, "BASH_FUNC_rm%%"));
	assert_null(value(v, n, "1A"));
}

/* What an operator may say to a tool and an agent may not. */
static void test_weapons(void **state)
{
	static const char *const names[] = { "GCONV_PATH", "OPENSSL_CONF", "OPENSSL_MODULES",
		"GLIBC_TUNABLES", "SSLKEYLOGFILE", "TAR_OPTIONS", "RSYNC_RSH", "LUA_INIT",
		"NODE_PATH", "DOTNET_STARTUP_HOOKS", "GIT_SSH_COMMAND", "GIT_EXEC_PATH",
		"GIT_EXTERNAL_DIFF", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "ALL_PROXY" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		AUTO_ARENA arena = { 0 };
		struct plan_var var = { sv_c(names[i]), SV("/evil") };
		struct plan_process proc = { .env = &var, .env_n = 1 };
		struct environ_input in = input(false);
		struct plan_var *v;
		struct box_err err;
		size_t n;

		in.exported = &var;
		in.exported_n = 1;
		assert_int_equal(environ_compose(&in, &arena, &v, &n, &err), 0);
		assert_null(value(v, n, names[i]));
		in.proc = &proc;
		assert_int_equal(environ_compose(&in, &arena, &v, &n, &err), 0);
		assert_string_equal(value(v, n, names[i]), "/evil");
	}
	assert_true(environ_may_export(SV("GIT_AUTHOR_NAME")));
	assert_true(environ_may_export(SV("GIT_PAGER")));
}

static void test_placeholders_come_first(void **state)
{
	AUTO_ARENA arena = { 0 };
	struct plan_route pr = { .secret_var = SV("TOK") };
	char placeholder[] = "strands_box_0";
	struct route r = { .plan = &pr, .placeholder = placeholder };
	struct routes routes = { &r, 1 };
	struct environ_input in = input(false);
	struct plan_var *v;
	struct box_err err;
	size_t n;

	(void)state;
	in.routes = &routes;
	assert_int_equal(environ_compose(&in, &arena, &v, &n, &err), 0);
	assert_string_equal(value(v, n, "TOK"), "strands_box_0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_of_the_box),
		cmocka_unit_test(test_exports_and_tables),
		cmocka_unit_test(test_weapons),
		cmocka_unit_test(test_placeholders_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
