/* Every allocation of the parse stage fails once: the result is an error, never a crash or a half
 * plan that looks whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../base/failmalloc.h"
#include "config/config.h"

static const sv text =
    SV_INIT("name = \"t\"\nbox_dir = \"/b/x\"\npolicy = \"p.dw\"\n"
            "[agent]\ncommand = [\"prog\", \"-x\"]\nworkspace = \"/w\"\n[agent.env]\nA = \"b\"\n"
            "[agent.filesystem]\nread = [\"~/a\", \"/b\"]\ndeny = [\"/c\"]\n"
            "[tool.git]\ncommand = [\"git\"]\n[tool.hg]\ncommand = [\"hg\"]\n"
            "[egress.s]\ndestinations = [\"s.com\", \"*.x.y:8/a\"]\nsecret.ref = \"env://TOK\"\n"
            "[resolve]\n\"s.com:443\" = \"127.0.0.1:9\"\n");

static void parses_or_fails(void **state)
{
	const struct config_input in = { "box.toml", "/", "/nonexistent", NULL, NULL, 0, 0 };

	(void)state;
	for (size_t n = 1;; n++) {
		struct plan p = { 0 };
		struct box_err err = { 0 };
		int r;

		fail_after(n);
		r = config_parse(&in, text, &p, &err);
		fail_after(0);
		if (r == 0) {
			assert_int_equal(p.tools_n, 2);
			assert_int_equal(p.routes[0].dests_n, 2);
			plan_fini(&p);
			assert_true(n > 3);
			return;
		}
		assert_true(err.code != BOX_OK && err.msg[0] != '\0');
		plan_fini(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_or_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
