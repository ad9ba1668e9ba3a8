/* The startup report, byte by byte (box-config-and-policy 4.3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "config/disclose.h"
#include "fixture.h"

static const struct disclose_minimum minimum[] = {
	{ "read", "/", "entry only" },
	{ "read", "/usr/lib", "loader directory: code maps and runs here" },
	{ "write", "/dev/null", "" },
};

static void expect(const struct fixture *f, struct buf *got, const char *want)
{
	AUTO_BUF w = buf_with(65536);

	assert_string_equal(buf_cstr(got), fixture_expand(f, want, &w));
}

static void reports_processes(void **state)
{
	static const char text[] = GOOD_AGENT
	    "[agent.filesystem]\nexec = [\"~/bin/prog\"]\nread_file = [\"~/data/file\"]\n"
	    "write = [\"~/src/app/sub\", \"~/bin\"]\nread = [\"~/src/app\", \"~/.ssh\"]\n"
	    "deny = [\"~/src/app/.env\"]\n"
	    "[tool.s]\ncommand = [\"script\"]\nworkspace = \"$H/data\"\n"
	    "[tool.bare]\ncommand = [\"/bin/true\"]\n";
	const struct fixture *f = *state;
	struct plan p = { 0 };
	struct box_err err = { 0 };
	AUTO_BUF out = buf_with(65536);

	fixture_sh(f, "printf '#!/bin/sh\\n' > bin/script && chmod 755 bin/script");
	if (fixture_load(f, text, true, &p, &err) != 0)
		fail_msg("%s", err.msg);
	disclose_process(&p, p.agent, minimum, 3, sv_c(f->home), SV("/b/bin:/usr/bin"), &out);
	expect(f, &out,
	    "box: [agent] runs $H/bin/prog with no policy decision over these paths:\n"
	    "  read        $H/src/app\n"
	    "  read        $H/.ssh  (credential store)\n"
	    "  write       $H/src/app/sub\n"
	    "  write       $H/bin\n"
	    "  read_file   $H/data/file\n"
	    "  exec        $H/bin/prog\n"
	    "box: [agent] runtime minimum, added by Core:\n"
	    "  read        /  (entry only)\n"
	    "  read        /usr/lib  (loader directory: code maps and runs here)\n"
	    "  write       /dev/null\n"
	    "  enter       $H/src/app  (workspace, entry only)\n"
	    "box: [agent] HOME=$H PATH=/b/bin:/usr/bin\n"
	    "box: warning: [agent] command $H/bin/prog lies inside the writable grant $H/bin, so "
	    "the process can replace "
	    "the program it runs\n");
	buf_clear(&out);
	disclose_process(&p, &p.tools[0], minimum, 0, SV("/h"), SV("/usr/bin"), &out);
	char program[64];

	assert_string_equal(p.tools[0].label.p, "bare");
	(void)snprintf(program, sizeof(program), SV_FMT, SV_ARG(p.tools[0].program));
	AUTO_BUF want = buf_with(4096);

	buf_putf(&want,
	    "box: [tool.bare] runs %s with no policy decision over these paths:\n"
	    "  (no filesystem entry)\n"
	    "  exec        %s  (command, implicit)\n"
	    "box: [tool.bare] runtime minimum, added by Core:\n"
	    "  enter       $H/src/app  (workspace, entry only)\n"
	    "box: [tool.bare] HOME=/h PATH=/usr/bin\n",
	    program, program);
	expect(f, &out, buf_cstr(&want));
	buf_clear(&out);
	disclose_process(&p, &p.tools[1], minimum, 0, SV("/h"), SV("/usr/bin"), &out);
	buf_clear(&want);
	buf_putf(&want,
	    "box: [tool.s] runs $H/bin/script with no policy decision over these paths:\n"
	    "  (no filesystem entry)\n"
	    "  exec        $H/bin/script  (command, implicit)\n"
	    "box: [tool.s] runtime minimum, added by Core:\n"
	    "  exec        " SV_FMT "  (interpreter)\n"
	    "  enter       $H/data  (workspace, entry only)\n"
	    "box: [tool.s] HOME=/h PATH=/usr/bin\n",
	    SV_ARG(p.tools[1].interpreters[0]));
	expect(f, &out, buf_cstr(&want));
	plan_fini(&p);
}

static void reports_stores(void **state)
{
	static const char text[] = GOOD_AGENT
	    "[tool.a]\ncommand = [\"prog\"]\n[tool.a.filesystem]\nread = [\"~/.aws\"]\n"
	    "[tool.b]\ncommand = [\"prog\"]\n[tool.b.filesystem]\n"
	    "read = [\"$H/.ssh\"]\nwrite = [\"~/.ssh\"]\nread_file = [\"~/.aws/k\xc3\xa9y\"]\n"
	    "[agent.filesystem]\nread = [\"~/.ssh/id\"]\n";
	const struct fixture *f = *state;
	struct plan p = { 0 };
	struct box_err err = { 0 };
	AUTO_BUF out = buf_with(65536);

	fixture_sh(f, "echo k > .aws/k\xc3\xa9y");
	if (fixture_load(f, text, true, &p, &err) != 0)
		fail_msg("%s", err.msg);
	disclose_stores(&p, &out);
	expect(f, &out,
	    "box: [agent]: exposes ~/.ssh/id (read)\n"
	    "box: [tool.a]: exposes ~/.aws (read)\n"
	    "box: [tool.b]: exposes ~/.ssh (read, write)\n"
	    "box: [tool.b]: exposes ~/.aws/k\\u{e9}y (read)\n");
	plan_fini(&p);
	buf_clear(&out);
	assert_int_equal(fixture_load(f, GOOD_AGENT, true, &p, &err), 0);
	disclose_stores(&p, &out);
	assert_int_equal(out.n, 0);
	plan_fini(&p);
}

static int setup(void **state)
{
	static struct fixture f;

	fixture_make(&f);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	fixture_remove(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_processes),
		cmocka_unit_test(reports_stores),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
