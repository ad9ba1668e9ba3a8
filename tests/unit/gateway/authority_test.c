/* Hosts, authorities, targets and paths: one form, or refused (escapes NET-01). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gateway/authority.h"

#include "base/ban.h"

static void authorities(void **state)
{
	static const struct {
		const char *in;
		uint16_t def;
		const char *host; /* NULL: refused */
		uint16_t port;
		const char *again; /* what authority_put(443) makes of it */
	} cases[] = {
		{ "good.test:443", 0, "good.test", 443, "good.test" },
		{ "GOOD.Test", 443, "good.test", 443, "good.test" },
		{ "good.test.:8443", 0, "good.test", 8443, "good.test:8443" },
		{ "xn--bcher-kva.test", 80, "xn--bcher-kva.test", 80, "xn--bcher-kva.test:80" },
		{ "a_b-c.test", 443, "a_b-c.test", 443, "a_b-c.test" },
		{ "localhost:1", 0, "localhost", 1, "localhost:1" },
		{ "127.0.0.1:65535", 0, "127.0.0.1", 65535, "127.0.0.1:65535" },
		{ "127.0.0.1.", 443, "127.0.0.1", 443, "127.0.0.1" },
		{ "[::1]:443", 0, "::1", 443, "[::1]" },
		{ "[2001:DB8:0:0::1]", 443, "2001:db8::1", 443, "[2001:db8::1]" },
		{ "[::ffff:127.0.0.1]:443", 0, "127.0.0.1", 443, "127.0.0.1" },
		{ "[::FFFF:7f00:1]", 443, "127.0.0.1", 443, "127.0.0.1" },
		{ "[64:ff9b::a9fe:a9fe]", 443, "169.254.169.254", 443, "169.254.169.254" },
		{ "[2002:a9fe:a9fe::]", 443, "169.254.169.254", 443, "169.254.169.254" },
		{ "[::169.254.169.254]", 443, "169.254.169.254", 443, "169.254.169.254" },
		{ "3com.test", 443, "3com.test", 443, "3com.test" },
		{ "1.2.3.test", 443, "1.2.3.test", 443, "1.2.3.test" },
		{ "good.test", 0, NULL, 0, NULL },
		{ "good.test:", 0, NULL, 0, NULL },
		{ "good.test:", 443, NULL, 0, NULL },
		{ "good.test:0", 0, NULL, 0, NULL },
		{ "good.test:65536", 0, NULL, 0, NULL },
		{ "good.test:+443", 0, NULL, 0, NULL },
		{ "good.test:0443", 0, NULL, 0, NULL },
		{ "good.test:443abc", 0, NULL, 0, NULL },
		{ "good.test: 443", 0, NULL, 0, NULL },
		{ "good.test:443 ", 0, NULL, 0, NULL },
		{ "good.test:443:443", 0, NULL, 0, NULL },
		{ "good.test:443@evil.test", 443, NULL, 0, NULL },
		{ "good.test@evil.test", 443, NULL, 0, NULL },
		{ "good.test\\evil.test", 443, NULL, 0, NULL },
		{ "good.test#evil.test", 443, NULL, 0, NULL },
		{ "good.test/evil.test", 443, NULL, 0, NULL },
		{ "good.test?evil.test", 443, NULL, 0, NULL },
		{ "evil.test%00.good.test", 443, NULL, 0, NULL },
		{ " good.test", 443, NULL, 0, NULL },
		{ "good.test ", 443, NULL, 0, NULL },
		{ "go od.test", 443, NULL, 0, NULL },
		{ "good\t.test", 443, NULL, 0, NULL },
		{ "good.test\r", 443, NULL, 0, NULL },
		{ "good.test\n", 443, NULL, 0, NULL },
		{ "good.test..", 443, NULL, 0, NULL },
		{ "good..test", 443, NULL, 0, NULL },
		{ ".good.test", 443, NULL, 0, NULL },
		{ ".", 443, NULL, 0, NULL },
		{ "", 443, NULL, 0, NULL },
		{ ":443", 0, NULL, 0, NULL },
		{ "-good.test", 443, NULL, 0, NULL },
		{ "*.good.test", 443, NULL, 0, NULL },
		{ "g\xd0\xbe\xd0\xbe"
		  "d.test",
		    443, NULL, 0, NULL },
		{ "b\xc3\xbc"
		  "cher.test",
		    443, NULL, 0, NULL },
		{ "0x7f.1", 443, NULL, 0, NULL },
		{ "0x7f000001", 443, NULL, 0, NULL },
		{ "0X7F.0.0.0X1", 443, NULL, 0, NULL },
		{ "0177.0.0.1", 443, NULL, 0, NULL },
		{ "127.0.0.01", 443, NULL, 0, NULL },
		{ "2130706433", 443, NULL, 0, NULL },
		{ "127.1", 443, NULL, 0, NULL },
		{ "127.0.0.256", 443, NULL, 0, NULL },
		{ "1.2.3.4.5", 443, NULL, 0, NULL },
		{ "a.0x", 443, NULL, 0, NULL },
		{ "::1", 443, NULL, 0, NULL },
		{ "[::1", 443, NULL, 0, NULL },
		{ "::1]", 443, NULL, 0, NULL },
		{ "[]", 443, NULL, 0, NULL },
		{ "[good.test]", 443, NULL, 0, NULL },
		{ "[127.0.0.1]", 443, NULL, 0, NULL },
		{ "[fe80::1%25eth0]", 443, NULL, 0, NULL },
		{ "[fe80::1%eth0]", 443, NULL, 0, NULL },
		{ "[::1]443", 0, NULL, 0, NULL },
		{ "[::1]x:443", 0, NULL, 0, NULL },
		{ "[v1.x]", 443, NULL, 0, NULL },
		{ "[1:2:3:4:5:6:7:8:9]", 443, NULL, 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct authority a;
		struct box_err err = { 0 };
		int r = authority_parse(sv_c(cases[i].in), cases[i].def, &a, &err);
		AUTO_BUF again = buf_with(512);

		if (cases[i].host == NULL) {
			if (r == 0)
				fail_msg("'%s' was read as %s", cases[i].in, a.host.text);
			assert_true(err.msg[0] != '\0');
			continue;
		}
		if (r < 0)
			fail_msg("'%s': %s", cases[i].in, err.msg);
		assert_string_equal(a.host.text, cases[i].host);
		assert_int_equal(a.port, cases[i].port);
		authority_put(&again, &a, 443);
		assert_string_equal(buf_cstr(&again), cases[i].again);
	}
}

static void lengths(void **state)
{
	char name[300];
	struct host h;
	size_t n;

	(void)state;
	memset(name, 'a', sizeof(name));
	assert_int_equal(host_parse((sv){ name, 63 }, false, &h, NULL), 0);
	assert_int_equal(host_parse((sv){ name, 64 }, false, &h, NULL), -1);
	for (n = 31; n < sizeof(name); n += 32)
		name[n] = '.';
	assert_int_equal(host_parse((sv){ name, 253 }, false, &h, NULL), 0);
	assert_int_equal(h.n, 253);
	assert_int_equal(host_parse((sv){ name, 254 }, false, &h, NULL), -1);
	assert_int_equal(host_parse((sv){ "a\0b", 3 }, false, &h, NULL), -1);
	assert_int_equal(host_parse((sv){ "::1\0", 4 }, true, &h, NULL), -1);
}

static void canonical_is_stable(void **state)
{
	static const char *const in[] = { "GOOD.test.", "10.0.0.1", "[2001:DB8::1]",
		"[::ffff:10.0.0.1]" };

	(void)state;
	for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
		struct authority a, b;
		AUTO_BUF text = buf_with(512);

		assert_int_equal(authority_parse(sv_c(in[i]), 443, &a, NULL), 0);
		authority_put(&text, &a, 443);
		assert_int_equal(authority_parse(buf_sv(&text), 443, &b, NULL), 0);
		assert_true(authority_eq(&a, &b));
	}
}

static void paths(void **state)
{
	static const struct {
		const char *in;
		const char *out; /* NULL: refused */
	} cases[] = {
		{ "", "/" },
		{ "/", "/" },
		{ "/a/b", "/a/b" },
		{ "/a/./b", "/a/b" },
		{ "/a/../b", "/b" },
		{ "/..", "/" },
		{ "/../../a", "/a" },
		{ "/a/..", "/" },
		{ "/a/.", "/a/" },
		{ "/a/b/..", "/a/" },
		{ "/a//b", "/a//b" },
		{ "/a//../b", "/a/b" },
		{ "/a/%2e%2E/b", "/b" },
		{ "/%2e", "/" },
		{ "/.%2e/x", "/x" },
		{ "/...", "/..." },
		{ "/%41%7e%2d%5f", "/A~-_" },
		{ "/%2f%2F", "/%2F%2F" },
		{ "/%3a%3A:", "/%3A%3A:" },
		{ "/%25%32%65x", "/%252ex" },
		/* One server's name is another's way up. */
		{ "/a/%2e%2e%2fb", NULL },
		{ "/a%2F..%2Fb", NULL },
		{ "/a/..%2fb", NULL },
		{ "/a/..%5cb", NULL },
		{ "/.%2Fadmin", NULL },
		{ "/a/..;/b", NULL },
		{ "/a/..;x=1", NULL },
		{ "/.;/b", NULL },
		{ "/%25%32%65", NULL },
		{ "/a/%252e%252e/b", NULL },
		{ "/a/%252e%252e%252fb", NULL },
		{ "/a/%25252e%25252e/b", NULL },
		{ "/a%2Fb", "/a%2Fb" },
		{ "/@scope%2fname", "/@scope%2Fname" },
		{ "/a/...%2Fb", "/a/...%2Fb" },
		{ "/a..%2Fb", "/a..%2Fb" },
		{ "/a;x=..", "/a;x=.." },
		{ "/%252F", "/%252F" },
		{ "/a b", NULL },
		{ "/a%20b", "/a%20b" },
		{ "/\xc3\xa9", "/%C3%A9" },
		{ "/%c3%a9", "/%C3%A9" },
		{ "/a|b\"<>^`{}[]", "/a%7Cb%22%3C%3E%5E%60%7B%7D%5B%5D" },
		{ "/!$&'()*+,;=:@", "/!$&'()*+,;=:@" },
		{ "/%0a%0D", "/%0A%0D" },
		{ "/%5c", "/%5C" },
		{ "/a\\b", NULL },
		{ "/a#b", NULL },
		{ "/%", NULL },
		{ "/%4", NULL },
		{ "/%4g", NULL },
		{ "/%%41", NULL },
		{ "/%00", NULL },
		{ "/\x7f", NULL },
		{ "/\t", NULL },
		{ "a", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_BUF out = buf_with(4096), twice = buf_with(4096);
		struct box_err err = { 0 };
		int r = path_canon(sv_c(cases[i].in), &out, &err);

		if (cases[i].out == NULL) {
			if (r == 0)
				fail_msg("'%s' was read as '%s'", cases[i].in, buf_cstr(&out));
			continue;
		}
		if (r < 0)
			fail_msg("'%s': %s", cases[i].in, err.msg);
		assert_string_equal(buf_cstr(&out), cases[i].out);
		assert_int_equal(path_canon(buf_sv(&out), &twice, &err), 0);
		assert_true(sv_eq(buf_sv(&out), buf_sv(&twice)));
	}
}

static void long_path(void **state)
{
	char in[5000];
	AUTO_BUF out = buf_with(4096);
	struct box_err err = { 0 };

	(void)state;
	memset(in, 'a', sizeof(in));
	in[0] = '/';
	assert_int_equal(path_canon((sv){ in, 4096 }, &out, &err), 0);
	buf_clear(&out);
	assert_int_equal(path_canon((sv){ in, 4097 }, &out, &err), -1);
	assert_int_equal(err.code, BOX_ELIMIT);
	buf_clear(&out);
	memset(in, '|', sizeof(in));
	in[0] = '/';
	assert_int_equal(path_canon((sv){ in, 2000 }, &out, &err), -1);
	assert_int_equal(err.code, BOX_ELIMIT);
}

static void targets(void **state)
{
	struct target t;
	struct box_err err = { 0 };
	static const char *const bad_absolute[] = { "/", "https://a/", "ftp://a/", "http:/a",
		"http://", "http:///x", "http://u@a/", "http://u:p@a/", "http://a b/", "*", "a:80",
		"http://a:x/" };

	(void)state;
	assert_int_equal(target_origin(SV("/a/b?c=d?e"), SV("GET"), &t, &err), 0);
	assert_true(sv_eq(t.path, SV("/a/b")) && sv_eq(t.query, SV("?c=d?e")));
	assert_int_equal(target_origin(SV("*"), SV("OPTIONS"), &t, &err), 0);
	assert_true(t.is_asterisk);
	assert_int_equal(target_origin(SV("*"), SV("GET"), &t, &err), -1);
	assert_int_equal(target_origin(SV("a/b"), SV("GET"), &t, &err), -1);
	assert_int_equal(target_origin(SV("http://a/"), SV("GET"), &t, &err), -1);
	assert_int_equal(target_absolute(SV("HTTP://A.test:81?x"), &t, &err), 0);
	assert_string_equal(t.authority.host.text, "a.test");
	assert_int_equal(t.authority.port, 81);
	assert_true(t.path.n == 0 && sv_eq(t.query, SV("?x")));
	for (size_t i = 0; i < sizeof(bad_absolute) / sizeof(bad_absolute[0]); i++)
		assert_int_equal(target_absolute(sv_c(bad_absolute[i]), &t, &err), -1);
	assert_int_equal(query_check(SV("?a=%zz&b=\xc3\xa9|"), &err), 0);
	assert_int_equal(query_check(SV("?a#b"), &err), -1);
	assert_int_equal(query_check(SV("?a b"), &err), -1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(authorities),
		cmocka_unit_test(lengths),
		cmocka_unit_test(canonical_is_stable),
		cmocka_unit_test(paths),
		cmocka_unit_test(long_path),
		cmocka_unit_test(targets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
