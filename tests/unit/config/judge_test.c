/* Judging a plan against the file system: one row per rule of box-config-and-policy 1.2 to 1.6 that
 * needs it, with the fragment of the message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/floor.h"
#include "fixture.h"

#define AGENT_FS(line) GOOD_AGENT "[agent.filesystem]\n" line "\n"
#define TOOL_FS(line)  GOOD_AGENT "[tool.t]\ncommand = [\"prog\"]\n[tool.t.filesystem]\n" line "\n"
#define COMMAND(c)     GOOD_HEAD "[agent]\ncommand = [" c "]\nworkspace = \"$H/src/app\"\n"
#define WORKSPACE(w)   GOOD_HEAD "[agent]\ncommand = [\"prog\"]\nworkspace = \"" w "\"\n"
#define HOME_IS(h)     GOOD_AGENT "[agent.env]\nHOME = \"" h "\"\n"

struct row {
	const char *before; /* shell command, or NULL */
	const char *text;
	const char *fragment; /* NULL: accepted */
	const char *place;
};

static const struct row rows[] = {
	{ NULL, GOOD_HEAD, "the configuration has no `[agent]` table", NULL },
	{ NULL, GOOD_AGENT, NULL, NULL },
	/* workspace (1.3, 1.10) */
	{ NULL, WORKSPACE("$H"),
	    "cannot settle the project this box belongs to: $H is the operator's home, which is "
	    "not a workspace",
	    ":6:13:" },
	{ "ln -s \"$H\" src/homelink", WORKSPACE("$H/src/homelink"),
	    "is the operator's home, which is not a workspace", NULL },
	{ NULL, WORKSPACE("$H/none"),
	    "cannot settle the project this box belongs to: cannot resolve $H/none: No such file "
	    "or directory",
	    NULL },
	{ NULL, WORKSPACE("$H/data/file"),
	    "cannot settle the project this box belongs to: $H/data/file is not a directory",
	    NULL },
	{ NULL, GOOD_AGENT "[tool.t]\ncommand = [\"prog\"]\nworkspace = \"$H/none\"\n",
	    "cannot settle the workspace of `[tool.t]`: cannot resolve $H/none", ":9:13:" },
	{ NULL, GOOD_HEAD "[agent]\ncommand = [\"prog\"]\n", NULL, NULL }, /* the start directory */
	/* box_dir against the workspace and the authority files (1.2) */
	{ "mkdir -p src/app/state",
	    "name = \"t\"\nbox_dir = \"$H/src/app/state\"\n[agent]\ncommand = [\"prog\"]\n",
	    "`box_dir` $H/src/app/state is equal to or below the agent's workspace $H/src/app",
	    NULL },
	{ NULL, "name = \"t\"\nbox_dir = \"$H/src/app\"\n[agent]\ncommand = [\"prog\"]\n",
	    "is equal to or below the agent's workspace", NULL },
	{ "ln -s src/app/state statelink",
	    "name = \"t\"\nbox_dir = \"$H/statelink\"\n[agent]\ncommand = [\"prog\"]\n",
	    "is equal to or below the agent's workspace", NULL },
	{ NULL, "name = \"t\"\nbox_dir = \"$H/boxes\"\n[agent]\ncommand = [\"prog\"]\n",
	    "configuration source $H/boxes/t/box.toml is inside `box_dir` $H/boxes", NULL },
	{ "mkdir -p q && echo p > q/p.dw",
	    "name = \"t\"\nbox_dir = \"$H/q\"\npolicy = \"../../q/p.dw\"\n[agent]\ncommand = "
	    "[\"prog\"]\n",
	    "policy source $H/q/p.dw is inside `box_dir` $H/q", NULL },
	/* env.HOME (1.6) */
	{ NULL, HOME_IS("$BD"), "`env.HOME` is $BD, which lies in trusted Box state", ":8:8:" },
	{ NULL, HOME_IS("$BD/run"), "`env.HOME` is $BD/run, which lies in trusted Box state",
	    NULL },
	{ NULL, HOME_IS("$H"), "`env.HOME` is $H, which encloses the box directory $BD", NULL },
	{ NULL, HOME_IS("/"), "which encloses the box directory", NULL },
	{ NULL, HOME_IS("$H/src/homelink"), "which encloses the box directory", NULL },
	{ NULL, HOME_IS("$H/src/app"), NULL, NULL },
	{ NULL, HOME_IS("/nonexistent"), NULL, NULL },
	/* programs (1.3) */
	{ NULL, COMMAND("\"/none\""), "containment config failed: path does not exist: /none",
	    ":5:11:" },
	{ NULL, COMMAND("\"$H/bin/noexec\""),
	    "executable is not an executable regular file: $H/bin/noexec", NULL },
	{ NULL, COMMAND("\"$H/data\""), "executable is not an executable regular file: $H/data",
	    NULL },
	{ NULL, COMMAND("\"nosuchprogram\""),
	    "cannot resolve bare executable nosuchprogram on the declared PATH", NULL },
	{ NULL, COMMAND("\"noexec\""), "cannot resolve bare executable noexec on the declared PATH",
	    NULL },
	{ NULL, COMMAND("\"prog\"") "[agent.env]\nPATH = \"/usr/bin\"\n",
	    "cannot resolve bare executable prog on the declared PATH", NULL },
	{ NULL, COMMAND("\"prog\"") "[agent.env]\nPATH = \"bin:.:$H/bin\"\n", NULL, NULL },
	{ "cp bin/prog bin/suid && chmod 4755 bin/suid", COMMAND("\"suid\""),
	    "carries set-user-ID or set-group-ID at: $H/bin/suid", NULL },
	{ NULL, GOOD_AGENT "[tool.git]\ncommand = [\"/none\"]\n",
	    "path does not exist: /none (`command` of `[tool.git]`)", ":8:11:" },
	{ "printf '#!/none -x\\n' > bin/s1 && chmod 755 bin/s1", COMMAND("\"s1\""),
	    "path does not exist: /none", NULL },
	{ "printf '#!sh\\n' > bin/s2 && chmod 755 bin/s2", COMMAND("\"s2\""),
	    "the #! line must name an absolute interpreter: $H/bin/s2", NULL },
	{ "printf '#!/usr/bin/env nosuch\\n' > bin/s3 && chmod 755 bin/s3", COMMAND("\"s3\""),
	    "cannot resolve bare executable nosuch on the declared PATH (#! line of $H/bin/s3)",
	    NULL },
	{ "printf '#!/usr/bin/env\\n' > bin/s4 && chmod 755 bin/s4", COMMAND("\"s4\""),
	    "runs env without a program", NULL },
	{ "printf \"#!$H/bin/s5\\n\" > bin/s5 && chmod 755 bin/s5", COMMAND("\"s5\""),
	    "the chain of #! lines is too long", NULL },
	/* filesystem: existence and identity (1.4) */
	{ NULL, AGENT_FS("read = [\"$H/none\"]"),
	    "`[agent]` filesystem entry \"$H/none\" is refused: $H/none is not there: No such file "
	    "or directory (os error 2)",
	    ":8:9:" },
	{ NULL, AGENT_FS("read = [\"~/data/file/x\"]"),
	    "filesystem entry \"~/data/file/x\" is refused: ", NULL },
	{ NULL, AGENT_FS("read = [\"~/data/link\"]"),
	    "$H/data/link is a symbolic link; name what it points at, $H/data/tree", NULL },
	{ "ln -s nowhere data/dangling", AGENT_FS("read = [\"~/data/dangling\"]"),
	    "is a symbolic link", NULL },
	{ NULL, AGENT_FS("read = [\"~/data/link/deep\"]"),
	    "$H/data/link/deep is not the path the kernel checks, which is $H/data/tree/deep",
	    NULL },
	{ NULL, AGENT_FS("deny = [\"~/data/link\"]"), "is a symbolic link", NULL },
	{ NULL, AGENT_FS("deny = [\"~/data/none\"]"), NULL, NULL },
	{ NULL, AGENT_FS("read_file = [\"~/data\"]"),
	    "$H/data is a directory; `read_file` names one file", NULL },
	{ NULL, AGENT_FS("write_file = [\"~/data\"]"),
	    "is a directory; `write_file` names one file", NULL },
	{ NULL, AGENT_FS("list = [\"~/data/file\"]"),
	    "$H/data/file is a file, and `list` enumerates a directory tree", NULL },
	{ NULL, AGENT_FS("metadata = [\"~/data/file\"]"),
	    "is a file, and a file's metadata comes with", NULL },
	{ NULL, AGENT_FS("exec = [\"~/data/file\"]"),
	    "$H/data/file is not an executable regular file", NULL },
	{ "mkfifo data/fifo", AGENT_FS("read = [\"~/data/fifo\"]"),
	    "is neither a regular file nor a directory", NULL },
	{ "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => \"data/s\", Listen => 1) or "
	  "die'",
	    AGENT_FS("read_file = [\"~/data/s\"]"),
	    "is a socket; an entry in `write_file` lets the process connect to it", NULL },
	{ NULL, AGENT_FS("read = [\"~/data/s\"]"), "is a socket; an entry in `write_file`", NULL },
	/* inside a writable folder, too: that does not give it */
	{ NULL, AGENT_FS("write = [\"~/data\"]\nwrite_file = [\"~/data/s\"]"), NULL, NULL },
	{ "rm data/s", AGENT_FS("read = [\"/dev/tty\"]"),
	    "is neither a regular file nor a directory", NULL },
	{ NULL, AGENT_FS("read = [\"/dev/zero\"]"), NULL, NULL },
	/* every list in its right use */
	{ NULL,
	    AGENT_FS(
	        "read = [\"~/src/app\"]\nwrite = [\"~/src/app/sub\"]\nread_file = "
	        "[\"~/data/file\"]\n"
	        "write_file = [\"~/data/file\"]\nlist = [\"~/src\"]\nmetadata = [\"~/data/tree\"]\n"
	        "exec = [\"/usr/bin/env\"]\ndeny = [\"~/src/app/.env\"]"),
	    NULL, NULL },
	{ NULL,
	    TOOL_FS("read = [\"~/src/app\"]\nwrite = [\"~/src/app\"]\nlist = [\"~/data\"]\ndeny = "
	            "[\"~/src/app/.env\"]"),
	    NULL, NULL },
	/* overlaps */
	{ NULL, AGENT_FS("read = [\"~/data/file\"]\nread_file = [\"~/data/file\"]"),
	    "$H/data/file is granted read twice, by `read` and `read_file`", ":9:14:" },
	{ NULL, AGENT_FS("write = [\"~/data/file\"]\nwrite_file = [\"~/data/file\"]"),
	    "$H/data/file is granted write twice, by `write` and `write_file`", NULL },
	{ NULL, AGENT_FS("read = [\"~/data\", \"~/data/tree\"]"),
	    "$H/data/tree lies inside $H/data, granted by `read`", NULL },
	{ NULL, AGENT_FS("read = [\"~/data\"]\nread_file = [\"~/data/file\"]"),
	    "$H/data/file lies inside $H/data, granted by `read`", NULL },
	{ NULL, AGENT_FS("write = [\"~/data/tree\", \"~/data\"]"),
	    "lies inside $H/data, granted by `write`", NULL },
	{ NULL, AGENT_FS("list = [\"~/data\", \"~/data/tree\"]"),
	    "lies inside $H/data, granted by `list`", NULL },
	{ NULL, AGENT_FS("read = [\"~/data\"]\ndeny = [\"~/data\"]"),
	    "$H/data is at or inside $H/data, which no grant reaches", NULL },
	{ NULL, AGENT_FS("read = [\"~/data/tree\"]\ndeny = [\"~/data\"]"),
	    "$H/data/tree is at or inside $H/data, which no grant reaches", NULL },
	{ NULL, AGENT_FS("read = [\"~/data/file\"]\nwrite = [\"~/data/file\"]"), NULL, NULL },
	/* floors (1.5) */
	{ NULL, AGENT_FS("read = [\"/\"]"),
	    "/ is refused beneath every grant: the whole filesystem is never a grantable tree",
	    ":8:9:" },
	{ NULL, AGENT_FS("metadata = [\"/\"]"), "the whole filesystem is never a grantable tree",
	    NULL },
	{ NULL, AGENT_FS("read = [\"/home\"]"), "the home namespace is never a grantable tree",
	    NULL },
	{ NULL, AGENT_FS("read = [\"/etc\"]"),
	    "/etc is refused beneath every grant: a system root is never a grantable tree", NULL },
	{ NULL, AGENT_FS("read = [\"/bin\"]"), "a system root is never a grantable tree", NULL },
	{ NULL, AGENT_FS("exec = [\"/usr/bin\"]"), "a system root is never a grantable tree",
	    NULL },
	{ NULL, AGENT_FS("write = [\"/tmp\"]"), "a system root is never a grantable tree", NULL },
	{ NULL, AGENT_FS("write = [\"/usr/lib\"]"),
	    "the loader's library directory reads as a tree, and nothing wider", NULL },
	{ NULL, AGENT_FS("read = [\"/usr/lib\"]"), NULL, NULL },
	{ NULL, AGENT_FS("read_file = [\"/etc/shadow\"]"),
	    "is refused beneath every grant: this file is a password database", NULL },
	{ NULL, AGENT_FS("read_file = [\"/etc/sudoers\"]"),
	    "is refused beneath every grant: this path says who gets privileges", NULL },
	{ NULL, AGENT_FS("read = [\"/etc/hostname\"]"), NULL, NULL },
	{ NULL, AGENT_FS("read = [\"~\"]"),
	    "is refused beneath every grant: this path holds a credential", NULL },
	{ NULL, AGENT_FS("read = [\"$H\"]"),
	    "is refused beneath every grant: this path holds a credential", NULL },
	{ NULL, AGENT_FS("list = [\"~\"]"),
	    "is refused beneath every grant: this path holds a credential", NULL },
	{ "mkdir -p .config/gcloud", AGENT_FS("read = [\"~/.config\"]"),
	    "this path holds a credential", NULL },
	{ NULL, AGENT_FS("read = [\"~/.ssh\"]"), NULL, NULL },
	{ NULL, TOOL_FS("read = [\"~/.ssh/id\"]"), NULL, NULL },
	/* a store behind a link is still a store */
	{ "rm -r .aws && mkdir -p data/aws/sub && ln -s data/aws .aws",
	    AGENT_FS("read = [\"~/data\"]"), "this path holds a credential", NULL },
	{ NULL, AGENT_FS("read = [\"~/data/aws/sub\"]"), NULL, NULL },
	{ "rm .aws && mkdir .aws", GOOD_AGENT, NULL, NULL },
	/* the home that a table states has the same stores */
	{ "mkdir -p alt/.ssh",
	    GOOD_AGENT "[agent.env]\nHOME = \"$H/alt\"\n[agent.filesystem]\nread = [\"$H/alt\"]\n",
	    "this path holds a credential", NULL },
	/* set-user-ID programs */
	{ NULL, AGENT_FS("exec = [\"~/bin/suid\"]"),
	    "carries set-user-ID or set-group-ID at $H/bin/suid", NULL },
	{ "mkdir -p bin/in/deep && cp bin/suid bin/in/deep/s && chmod 2755 bin/in/deep/s",
	    AGENT_FS("exec = [\"~/bin/in\"]"),
	    "carries set-user-ID or set-group-ID at $H/bin/in/deep/s", NULL },
	{ "rm -f bin/suid bin/in/deep/s", AGENT_FS("exec = [\"~/bin\"]"), NULL, NULL },
	/* the box's own directory and files */
	{ NULL, AGENT_FS("read = [\"$BD\"]"),
	    "filesystem entry \"$BD\" is refused: the grant would expose the Box's own directory",
	    NULL },
	{ "mkdir -p boxes/t/state/run boxes/t/state/private", AGENT_FS("read = [\"$BD/run\"]"),
	    "the grant would expose the Box's own directory", NULL },
	{ NULL, AGENT_FS("metadata = [\"$BD/private\"]"),
	    "the grant would expose private Box state", NULL },
	{ NULL, AGENT_FS("read = [\"~/boxes/t\"]"),
	    "the grant would expose the Box's own directory", NULL },
	{ NULL, AGENT_FS("list = [\"~/boxes/t\"]"),
	    "the grant would expose the Box's own directory", NULL },
	{ NULL, AGENT_FS("read = [\"~/boxes/t\"]\ndeny = [\"$BD\"]"), NULL, NULL },
	{ NULL, AGENT_FS("read = [\"~/boxes\"]"), NULL,
	    NULL }, /* strictly encloses boxes/t, which is subtracted */
	{ NULL, AGENT_FS("read = [\"~/boxes\"]\nwrite = [\"~/boxes/t/policy.dw\"]"),
	    "policy file, $H/boxes/t/policy.dw", NULL },
	{ "mkdir -p boxes/t/out", AGENT_FS("read = [\"~/boxes\"]\nwrite = [\"~/boxes/t/out\"]"),
	    "$H/boxes/t/out is at or inside $H/boxes/t, which no grant reaches", NULL },
	{ NULL, AGENT_FS("write = [\"~/boxes/t/out\"]"), NULL, NULL },
	{ NULL, AGENT_FS("write = [\"~/boxes/t\"]\ndeny = [\"$BD\"]"),
	    "reaches this box's configuration file, $H/boxes/t/box.toml", NULL },
	{ NULL, AGENT_FS("write = [\"~/boxes/t\"]\ndeny = [\"$BD\", \"~/boxes/t/box.toml\"]"),
	    "reaches this box's policy file, $H/boxes/t/policy.dw", NULL },
	{ NULL,
	    AGENT_FS("write = [\"~/boxes/t\"]\ndeny = [\"$BD\", \"~/boxes/t/box.toml\", "
	             "\"~/boxes/t/policy.dw\"]"),
	    NULL, NULL },
	{ NULL, AGENT_FS("write_file = [\"~/boxes/t/box.toml\"]"),
	    "reaches this box's configuration file", NULL },
	{ NULL, TOOL_FS("read_file = [\"~/boxes/t/policy.dw\"]"), "reaches this box's policy file",
	    NULL },
	/* trust */
	{ NULL,
	    GOOD_AGENT
	    "[egress.a]\ndestinations = [\"x\"]\ntrust = \"no.pem\"\nsecret.ref = \"env://T\"\n",
	    "`trust` of `[egress.a]`: cannot resolve $H/boxes/t/no.pem: No such file or directory",
	    ":9:9:" },
	{ "echo x > boxes/t/bad.pem",
	    GOOD_AGENT
	    "[egress.a]\ndestinations = [\"x\"]\ntrust = \"bad.pem\"\nsecret.ref = \"env://T\"\n",
	    "$H/boxes/t/bad.pem holds no PEM certificate", NULL },
	{ "printf -- '-----BEGIN CERTIFICATE-----\\n-----BEGIN EC PRIVATE KEY-----\\n' > "
	  "boxes/t/key.pem",
	    GOOD_AGENT
	    "[egress.a]\ndestinations = [\"x\"]\ntrust = \"key.pem\"\nsecret.ref = \"env://T\"\n",
	    "holds a private key; name a file with certificates only", NULL },
	{ "printf -- '-----BEGIN CERTIFICATE-----\\n' > boxes/t/ok.pem",
	    GOOD_AGENT
	    "[egress.a]\ndestinations = [\"x\"]\ntrust = \"ok.pem\"\nsecret.ref = \"env://T\"\n",
	    NULL, NULL },
};

static void judges(void **state)
{
	const struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		AUTO_BUF want = buf_with(4096);
		struct plan p = { 0 };
		struct box_err err = { 0 };
		int r;

		if (rows[i].before != NULL)
			fixture_sh(f, rows[i].before);
		r = fixture_load(f, rows[i].text, true, &p, &err);
		if (rows[i].fragment == NULL) {
			if (r != 0)
				fail_msg("row %zu: refused: %s\nin:\n%s", i, err.msg, rows[i].text);
		} else {
			const char *w = fixture_expand(f, rows[i].fragment, &want);

			if (r == 0)
				fail_msg("row %zu was accepted:\n%s", i, rows[i].text);
			if (strstr(err.msg, w) == NULL ||
			    (rows[i].place != NULL && strstr(err.msg, rows[i].place) == NULL))
				fail_msg("row %zu: got  %s\nwant %s %s\nin:\n%s", i, err.msg, w,
				    rows[i].place != NULL ? rows[i].place : "", rows[i].text);
		}
		plan_fini(&p);
	}
}

static void resolves_programs(void **state)
{
	const struct fixture *f = *state;
	struct plan p = { 0 };
	struct box_err err = { 0 };
	char want[256];

	/* through a link: granted and run is the target, started by the route as written */
	fixture_sh(f, "ln -sf prog bin/alias && mkdir -p b2 && ln -sfn \"$H/bin\" b2/l");
	assert_int_equal(fixture_load(f, COMMAND("\"$H/b2/l/alias\""), true, &p, &err), 0);
	(void)snprintf(want, sizeof(want), "%s/bin/prog", f->home);
	assert_string_equal(p.agent->program.p, want);
	(void)snprintf(want, sizeof(want), "%s/bin/alias", f->home);
	assert_string_equal(p.agent->program_route.p, want);
	assert_int_equal(p.agent->interpreters_n, 0);
	plan_fini(&p);
	/* a script over env over a script */
	fixture_sh(f, "printf '#!/usr/bin/env -S inner --flag\\n' > bin/outer && printf '#!/bin/sh "
	              "-e\\n' > bin/inner && "
	              "chmod 755 bin/outer bin/inner");
	if (fixture_load(f, COMMAND("\"outer\""), true, &p, &err) != 0)
		fail_msg("%s", err.msg);
	assert_int_equal(p.agent->interpreters_n, 3);
	assert_non_null(strstr(p.agent->interpreters[0].p, "/env"));
	(void)snprintf(want, sizeof(want), "%s/bin/inner", f->home);
	assert_string_equal(p.agent->interpreters[1].p, want);
	assert_null(strstr(p.agent->interpreters[2].p, "inner"));
	plan_fini(&p);
	/* the box's own aliases never resolve a bare name */
	fixture_sh(f, "mkdir -p boxes/t/state/bin && cp bin/prog boxes/t/state/bin/onlyhere");
	assert_int_equal(
	    fixture_load(
	        f, COMMAND("\"onlyhere\"") "[agent.env]\nPATH = \"$BD/bin\"\n", true, &p, &err),
	    -1);
	assert_non_null(strstr(err.msg, "cannot resolve bare executable onlyhere"));
	plan_fini(&p);
	assert_int_equal(fixture_load(f, COMMAND("\"$BD/bin/onlyhere\""), true, &p, &err), -1);
	assert_non_null(strstr(err.msg, "the grant would expose the Box's own directory"));
	plan_fini(&p);
}

static const struct plan_grant *implied(const struct plan_process *proc)
{
	for (size_t i = 0; i < proc->grants_n; i++)
		if (proc->grants[i].implied)
			return &proc->grants[i];
	return NULL;
}

static void subtracts_sources(void **state)
{
	const struct fixture *f = *state;
	struct plan p = { 0 };
	struct box_err err = { 0 };
	const struct plan_grant *g;
	char want[256];

	/* a strictly enclosing grant loses the folder, once for both files */
	assert_int_equal(fixture_load(f, AGENT_FS("read = [\"~/boxes\"]"), true, &p, &err), 0);
	assert_int_equal(p.agent->grants_n, 2);
	(void)snprintf(want, sizeof(want), "%s/boxes/t", f->home);
	g = &p.agent->grants[1];
	assert_true(g->implied);
	assert_string_equal(g->path.p, want);
	assert_int_equal(g->list, PLAN_DENY);
	assert_true(g->is_dir);
	plan_fini(&p);
	/* a grant that is the folder loses the files */
	assert_int_equal(
	    fixture_load(f, AGENT_FS("read = [\"~/boxes/t\"]\ndeny = [\"$BD\"]"), true, &p, &err),
	    0);
	assert_int_equal(p.agent->grants_n, 4);
	(void)snprintf(want, sizeof(want), "%s/boxes/t/box.toml", f->home);
	assert_string_equal(p.agent->grants[2].path.p, want);
	(void)snprintf(want, sizeof(want), "%s/boxes/t/policy.dw", f->home);
	assert_string_equal(p.agent->grants[3].path.p, want);
	plan_fini(&p);
	/* other grants lose nothing */
	assert_int_equal(fixture_load(f, AGENT_FS("read = [\"~/data\"]"), true, &p, &err), 0);
	assert_null(implied(p.agent));
	plan_fini(&p);
}

static void rechecks(void **state)
{
	const struct fixture *f = *state;
	struct plan p = { 0 };
	struct box_err err = { 0 };

	fixture_sh(f, "mkdir -p w/d w/n && echo 1 > w/f && echo s > w/d/secret");
	assert_int_equal(
	    fixture_load(f,
	        AGENT_FS(
	            "read = [\"~/w/f\", \"~/w/d\"]\ndeny = [\"~/w/d/secret\", \"~/w/n/absent\"]"),
	        true, &p, &err),
	    0);
	assert_int_equal(config_recheck(p.agent, &err), 0);
	fixture_sh(f, "echo 2 > w/x && mv w/x w/f"); /* a granted file may be replaced */
	assert_int_equal(config_recheck(p.agent, &err), 0);
	fixture_sh(f, "echo new > w/n/absent");
	assert_int_equal(config_recheck(p.agent, &err), 0);
	fixture_sh(f, "echo s > w/x && mv w/x w/d/secret"); /* a subtracted one may not */
	assert_int_equal(config_recheck(p.agent, &err), -1);
	assert_string_equal(
	    err.msg, "`[agent]` filesystem entry \"~/w/d/secret\" changed since the run judged it");
	plan_fini(&p);
	assert_int_equal(
	    fixture_load(f, AGENT_FS("read = [\"~/w/f\", \"~/w/d\"]"), true, &p, &err), 0);
	fixture_sh(f, "mv w/d w/d2 && ln -s d2 w/d");
	assert_int_equal(config_recheck(p.agent, &err), -1);
	assert_non_null(strstr(err.msg, "since the run judged it"));
	fixture_sh(f, "rm w/d && mv w/d2 w/d && rm w/f && mkdir w/f");
	assert_int_equal(config_recheck(p.agent, &err), -1);
	plan_fini(&p);
}

static void warns(void **state)
{
	const struct fixture *f = *state;
	struct plan p = { 0 };
	struct box_err err = { 0 };

	assert_int_equal(
	    fixture_load(f,
	        GOOD_AGENT "[agent.filesystem]\nwrite = [\"~/bin\"]\nexec = [\"~/bin/prog\"]\n"
	                   "[tool.t]\ncommand = [\"prog\"]\n",
	        true, &p, &err),
	    0);
	assert_int_equal(p.warnings_n, 2);
	assert_non_null(strstr(p.warnings[0], "[agent] exec entry "));
	assert_non_null(
	    strstr(p.warnings[1], "so the agent can replace the program that the tool runs"));
	plan_fini(&p);
}

/* How often is this path in the list? */
static size_t count(const sv *v, size_t n, const char *path)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		k += sv_eq(v[i], sv_c(path));
	return k;
}

static void floors_interpreters(void **state)
{
	const struct fixture *f = *state;
	AUTO_ARENA a = { .limit = (size_t)1 << 20 }, small = { .limit = 64 };
	sv home = { f->home, strlen(f->home) };
	struct floor_homes homes = { home, { NULL, 0 } };
	char path[256];
	const sv *v;
	size_t n, before;

	fixture_sh(f, "rm -rf .aws && mkdir -p dots/aws && ln -s dots/aws .aws");
	assert_int_equal(floor_places(&a, homes, &v, &n), 0);
	before = n;
	(void)snprintf(path, sizeof(path), "%s/.ssh", f->home);
	assert_int_equal(count(v, n, path), 1);
	(void)snprintf(path, sizeof(path), "%s/.aws", f->home);
	assert_int_equal(count(v, n, path), 1);
	/* A store behind a link is one under its own name, too. */
	(void)snprintf(path, sizeof(path), "%s/dots/aws", f->home);
	assert_int_equal(count(v, n, path), 1);
	assert_int_equal(count(v, n, f->home), 0);
	assert_int_equal(count(v, n, "/etc/shadow"), 1);
	assert_int_equal(count(v, n, "/etc/sudoers.d"), 1);
	assert_int_equal(count(v, n, "/etc"), 0);
	assert_int_equal(count(v, n, "/usr"), 0);
	/* The home that a table states counts as well; the same one once. */
	homes.stated = home;
	assert_int_equal(floor_places(&a, homes, &v, &n), 0);
	assert_int_equal(n, before);
	homes.stated = SV("/nowhere/home");
	assert_int_equal(floor_places(&a, homes, &v, &n), 0);
	assert_int_equal(count(v, n, "/nowhere/home/.ssh"), 1);
	assert_int_equal(floor_places(&small, homes, &v, &n), -1);
	fixture_sh(f, "rm -rf .aws dots");
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
		cmocka_unit_test(judges),
		cmocka_unit_test(resolves_programs),
		cmocka_unit_test(subtracts_sources),
		cmocka_unit_test(rechecks),
		cmocka_unit_test(warns),
		cmocka_unit_test(floors_interpreters),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
