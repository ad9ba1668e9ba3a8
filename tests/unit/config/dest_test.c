/* Destination patterns: what they cover and when two of them can match one request
 * (box-config-and-policy 1.7). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "config/keys.h"

static struct plan_dest parse(struct arena *a, const char *text)
{
	struct plan_dest d = { .host = { NULL, 0 } };
	const char *reason;

	if (!cfg_dest_parse(a, sv_c(text), &d, &reason))
		fail_msg("%s: %s", text, reason);
	return d;
}

static void covers(void **state)
{
	static const struct {
		const char *pattern, *host;
		uint16_t port;
		const char *path;
		bool covered;
	} rows[] = {
		{ "api.x", "api.x", 443, "/", true },
		{ "api.x", "api.x", 80, "/", true },
		{ "api.x", "api.x", 8443, "/", false },
		{ "API.x.", "api.x", 443, "/any/thing", true },
		{ "api.x", "b.api.x", 443, "/", false },
		{ "api.x", "xapi.x", 443, "/", false },
		{ "api.x:8443", "api.x", 8443, "/", true },
		{ "api.x:8443", "api.x", 443, "/", false },
		{ "*.x.com", "a.x.com", 443, "/", true },
		{ "*.x.com", "a.b.x.com", 443, "/", true },
		{ "*.x.com", "x.com", 443, "/", false },
		{ "*.x.com", ".x.com", 443, "/", false },
		{ "*.x.com", "ax.com", 443, "/", false },
		{ "*.x.com", "a.x.com.evil", 443, "/", false },
		{ "api.x/v1", "api.x", 443, "/v1", true },
		{ "api.x/v1", "api.x", 443, "/v1/a", true },
		{ "api.x/v1", "api.x", 443, "/v10", false },
		{ "api.x/v1", "api.x", 443, "/V1", false },
		{ "api.x/v1", "api.x", 443, "/", false },
		{ "api.x/v1", "api.x", 443, "", true }, /* host and port alone */
		{ "api.x/v1/", "api.x", 443, "/v1", true },
		{ "api.x/", "api.x", 443, "/x", true },
		{ "api.x/*/upload", "api.x", 443, "/a/upload", true },
		{ "api.x/*/upload", "api.x", 443, "/a/b/upload", true },
		{ "api.x/*/upload", "api.x", 443, "/a/upload/b", false },
		{ "api.x/*/upload", "api.x", 443, "/a/noupload", false },
		{ "127.0.0.1:81", "127.0.0.1", 81, "/", true },
		{ "[::1]:81", "::1", 81, "/", true },
		{ "[::1]", "::1", 443, "/", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_ARENA a = { .limit = 65536 };
		struct plan_dest d = parse(&a, rows[i].pattern);

		if (plan_dest_covers(&d, sv_c(rows[i].host), rows[i].port, sv_c(rows[i].path)) !=
		    rows[i].covered)
			fail_msg("%s and %s:%u%s", rows[i].pattern, rows[i].host, rows[i].port,
			    rows[i].path);
	}
}

static void overlaps(void **state)
{
	static const struct {
		const char *a, *b;
		bool overlap;
	} rows[] = {
		{ "api.x", "api.x", true },
		{ "api.x", "api.x:443", true },
		{ "api.x", "api.x:80", true },
		{ "api.x", "api.x:8443", false },
		{ "api.x:1", "api.x:2", false },
		{ "api.x", "b.x", false },
		{ "*.x.y", "a.x.y", true },
		{ "*.x.y", "x.y", false },
		{ "*.x.y", "*.a.x.y", true },
		{ "*.x.y", "*.x.y:443", true },
		{ "*.x.y", "*.z.y", false },
		{ "api.x/v1", "api.x/v2", false },
		{ "api.x/v1", "api.x/v1/a", true },
		{ "api.x/v1", "api.x/v10", false },
		{ "api.x/v1", "api.x", true },
		{ "api.x/*/up", "api.x/v1", true },
		{ "api.x/*/up", "api.x/*/down", false },
		{ "api.x/*/up", "api.x/*/a/up", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_ARENA a = { .limit = 65536 };
		struct plan_dest x = parse(&a, rows[i].a), y = parse(&a, rows[i].b);

		if (plan_dest_overlaps(&x, &y) != rows[i].overlap ||
		    plan_dest_overlaps(&y, &x) != rows[i].overlap)
			fail_msg("%s and %s", rows[i].a, rows[i].b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(covers),
		cmocka_unit_test(overlaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
