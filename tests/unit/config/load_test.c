/* Parsing box.toml: one row per rule of box-config-and-policy 1.1, 1.3, 1.4 (spelling), 1.6, 1.7,
 * 1.10, 1.11, with the fragment of the message that users and tests match on, and the place it
 * points to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture.h"

#define AGENT(extra)  GOOD_AGENT extra
#define TOOL(extra)   GOOD_AGENT "[tool.t]\ncommand = [\"prog\"]\n" extra
#define LIST(entries) GOOD_AGENT "[agent.filesystem]\nread = [" entries "]\n"
#define ROUTE(dests, secret)                                                                       \
	GOOD_AGENT "[egress.api]\ndestinations = [" dests "]\n[egress.api.secret]\n" secret "\n"
#define DEST(d)     ROUTE("\"" d "\"", "ref = \"env://TOK\"")
#define SECRET(s)   ROUTE("\"api.x\"", s)
#define TOKEN       "ref = \"env://TOK\"\n"
#define RESOLVE(kv) GOOD_AGENT "[resolve]\n" kv "\n"

struct refusal {
	const char *text;
	const char *fragment;
	const char *place; /* ":LINE:COL:", or NULL */
};

static const struct refusal refusals[] = {
	/* TOML errors and unknown keys */
	{ "name = \n", "cannot parse config file $H/boxes/t/box.toml:1:8: a value is missing here",
	    NULL },
	{ GOOD_HEAD "agnet = 1\n", "unknown key `agnet` in the top level; did you mean `agent`?",
	    ":4:1:" },
	{ GOOD_HEAD "plolicy = 1\n", "did you mean `policy`?", ":4:1:" },
	{ GOOD_HEAD "[python]\n",
	    "unknown key `python` in the top level; the keys there are: name box_dir", ":4:2:" },
	{ GOOD_HEAD "[limits]\n", "unknown key `limits`", NULL },
	{ GOOD_HEAD "[floor]\nallow = []\n", "unknown key `floor`", NULL },
	{ AGENT("comand = []\n"), "unknown key `comand` in `[agent]`; did you mean `command`?",
	    ":7:1:" },
	{ AGENT("[agent.filesystem]\nraed = []\n"),
	    "unknown key `raed` in `filesystem` of `[agent]`; did you mean `read`?", ":8:1:" },
	{ AGENT("[agent.filesystem]\ndecide = []\n"), "unknown key `decide`", ":8:1:" },
	{ TOOL("wrkspace = \"/\"\n"),
	    "unknown key `wrkspace` in `[tool.t]`; did you mean `workspace`?", ":9:1:" },
	{ TOOL("[tool.t.network]\negress = true\n"), "unknown key `egress` in `network`",
	    ":10:1:" },
	{ ROUTE("\"api.x\"", TOKEN "type = \"bearer\""), "unknown key `type` in `secret`", NULL },
	{ GOOD_AGENT "[egress.a]\ndestination = [\"x\"]\n",
	    "unknown key `destination` in `[egress.a]`; did you mean `destinations`?", ":8:1:" },
	/* wrong types */
	{ "name = 3\n", "`name` must be a string, not an integer", ":1:8:" },
	{ "name = \"a\"\nname = \"b\"\n", "`name` is defined a second time", NULL },
	{ GOOD_HEAD "agent = 1\n", "`[agent]` must be a table, not an integer", ":4:9:" },
	{ GOOD_HEAD "tool = []\n", "`tool` must be a table, not an array", NULL },
	{ GOOD_HEAD "[agent]\ncommand = \"prog\"\n", "`command` must be an array, not a string",
	    ":5:11:" },
	{ GOOD_HEAD "[agent]\ncommand = [\"prog\", 1]\n", "a `command` element must be a string",
	    ":5:20:" },
	{ AGENT("env = []\n"), "`env` must be a table", NULL },
	{ AGENT("[agent.env]\nA = 1\n"), "an `env` value must be a string, not an integer",
	    ":8:5:" },
	{ AGENT("[agent.env]\nA = \"x\\u0000y\"\n"), "holds a NUL", ":8:5:" },
	{ AGENT("filesystem = 1\n"), "`filesystem` must be a table", NULL },
	{ AGENT("[agent.filesystem]\nread = \"/x\"\n"), "a `filesystem` list must be an array",
	    ":8:8:" },
	{ AGENT("[agent.filesystem]\nread = [1]\n"), "a `filesystem` entry must be a string",
	    ":8:9:" },
	{ TOOL("[tool.t.network]\ncontain_egress = \"no\"\n"), "`contain_egress` must be a boolean",
	    NULL },
	/* name */
	{ "box_dir = \"/x\"\n", "`name` is missing", NULL },
	{ "name = \"\"\n",
	    "box name \"\" is invalid: it is empty; use one component of letters, digits, '.', "
	    "'_', or '-'",
	    ":1:8:" },
	{ "name = \".\"\n", "box name \".\" is invalid: it names a relative directory", NULL },
	{ "name = \"..\"\n", "is invalid: it names a relative directory", NULL },
	{ "name = \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"\n",
	    "is invalid: it is 40 bytes; a name may be at most 32", NULL },
	{ "name = \"a/b\"\n", "box name \"a/b\" is invalid: it contains '/'", NULL },
	{ "name = \"a b\"\n", "is invalid: it contains the byte 0x20", NULL },
	{ "name = \"caf\xc3\xa9\"\n", "is invalid: it contains the byte 0xc3", NULL },
	/* box_dir, policy */
	{ "name = \"t\"\n", "invalid Box configuration: `box_dir` must be absolute: it is not set",
	    NULL },
	{ "name = \"t\"\nbox_dir = \"state\"\n",
	    "invalid Box configuration: `box_dir` must be absolute: state", ":2:11:" },
	{ "name = \"t\"\nbox_dir = \"~/state\"\n", "`box_dir` must be absolute: ~/state", NULL },
	{ "name = \"t\"\nbox_dir = \"/a/../b\"\n", "`box_dir` carries `..`", NULL },
	{ "name = \"t\"\nbox_dir = \"/a\\nb\"\n", "`box_dir` holds a control character", NULL },
	{ "name = \"t\"\nbox_dir = \"/x\"\npolicy = \"\"\n", "`policy` must name a file",
	    ":3:10:" },
	{ "name = \"t\"\nbox_dir = \"/x\"\npolicy = \"no.dw\"\n",
	    "policy load failed: cannot resolve policy file $H/boxes/t/no.dw: No such file or "
	    "directory",
	    NULL },
	{ "name = \"t\"\nbox_dir = \"/x\"\npolicy = \"$H/src\"\n",
	    "policy source $H/src is not a regular file", NULL },
	/* known, not in this build */
	{ GOOD_HEAD "[mcp.demo]\ntype = \"stdio\"\n",
	    "`mcp` in the top level is not supported by this build of box yet", ":4:2:" },
	{ GOOD_HEAD "[telemetry.x]\nkind = \"file\"\n",
	    "`telemetry` in the top level is not supported by this build", NULL },
	{ GOOD_HEAD "[containment]\nprivate_proc = false\n",
	    "`containment` in the top level is not supported", NULL },
	/* removed and misplaced keys (1.11) */
	{ GOOD_HEAD "[filesystem]\n",
	    "which this build does not read; write `[agent.filesystem]` instead", ":4:2:" },
	{ GOOD_HEAD "workspace = \"/x\"\n", "write `[agent] workspace` instead", NULL },
	{ GOOD_HEAD "[env]\n", "write `[agent.env]` instead", NULL },
	{ AGENT("read = []\n"),
	    "`[agent]` carries `read`, which this build does not read; write `filesystem.read`",
	    ":7:1:" },
	{ AGENT("write = []\n"), "write `filesystem.write` instead", NULL },
	{ AGENT("packs = []\n"), "carries `packs`, which this build does not read", NULL },
	{ AGENT("code = \"x\"\n"), "carries `code`, which this build does not read", NULL },
	{ AGENT("default_command = []\n"), "write `command` instead", NULL },
	{ TOOL("exec = []\n"),
	    "carries `exec`, which this build does not read; write `command` instead", NULL },
	{ TOOL("read = []\n"), "write `filesystem.read` instead", NULL },
	{ TOOL("[tool.t.filesystem]\nmetadata = []\n"),
	    "carries `metadata`, which this build does not read", ":10:1:" },
	{ TOOL("[tool.t.filesystem]\nexec = []\n"),
	    "carries `exec`, which this build does not read", NULL },
	/* network */
	{ AGENT("[agent.network]\n"), "`network` is refused on `[agent]`", ":7:8:" },
	{ AGENT("[agent.network]\ncontain_egress = true\n"), "`network` is refused on `[agent]`",
	    NULL },
	{ TOOL("[tool.t.network]\ncontain_egress = false\n"),
	    "`network.contain_egress = false` is not available in this build", ":10:18:" },
	/* command (1.3) */
	{ GOOD_HEAD "[agent]\nworkspace = \"/x\"\n", "`[agent]` has no `command`", ":4:1:" },
	{ GOOD_HEAD "[agent]\ncommand = []\n",
	    "invalid `[agent]` table: `command` must name a program as its first entry", ":5:11:" },
	{ GOOD_HEAD "[agent]\ncommand = [\"\"]\n", "`command` element 0 is empty", ":5:12:" },
	{ GOOD_HEAD "[agent]\ncommand = [\"bin/prog\"]\n",
	    "`command` element 0 \"bin/prog\" is a relative path; write an absolute path, or a "
	    "bare name that "
	    "`env.PATH` resolves",
	    ":5:12:" },
	{ GOOD_HEAD "[agent]\ncommand = [\"./prog\"]\n", "is a relative path", NULL },
	{ GOOD_HEAD "[agent]\ncommand = [\"${X}\"]\n",
	    "carries `${`, and the program is never expanded", NULL },
	{ GOOD_HEAD "[agent]\ncommand = [\"a\\nb\"]\n", "holds a control character", NULL },
	{ GOOD_HEAD "[agent]\ncommand = [\"prog\", \"--x=${HOME}\"]\n",
	    "names no expandable value; this build expands", ":5:20:" },
	{ GOOD_HEAD "[agent]\ncommand = [\"prog\", \"${OTEL_EXPORTER_OTLP_ENDPOINT}\"]\n",
	    "names no expandable value", NULL },
	{ GOOD_HEAD "[agent]\ncommand = [\"prog\", \"a${b\"]\n", "unterminated `${`", NULL },
	{ GOOD_AGENT "[tool.\"a b\"]\ncommand = [\"prog\"]\n",
	    "tool label \"a b\" is invalid: it contains the byte 0x20", ":7:7:" },
	{ GOOD_AGENT "[tool.\"..\"]\ncommand = [\"prog\"]\n",
	    "is invalid: it names a relative directory", NULL },
	{ GOOD_AGENT "[tool.\"\"]\ncommand = [\"prog\"]\n", "is invalid: it is empty", NULL },
	{ GOOD_AGENT "[tool.t]\n", "`[tool.t]` has no `command`", NULL },
	/* workspace */
	{ GOOD_HEAD "[agent]\ncommand = [\"prog\"]\nworkspace = \"app\"\n",
	    "`workspace` must be an absolute path: \"app\"", ":6:13:" },
	{ GOOD_HEAD "[agent]\ncommand = [\"prog\"]\nworkspace = \"~/app\"\n",
	    "`workspace` must be an absolute path", NULL },
	/* env (1.6) */
	{ AGENT("[agent.env]\n\"A B\" = \"x\"\n"),
	    "`env` name \"A B\" is not a valid environment-variable name", ":8:1:" },
	{ AGENT("[agent.env]\n1A = \"x\"\n"), "is not a valid environment-variable name", NULL },
	{ AGENT("[agent.env]\n\"\" = \"x\"\n"), "is not a valid environment-variable name", NULL },
	{ AGENT("[agent.env]\nLD_PRELOAD = \"x\"\n"),
	    "invalid `[agent]` table: `env` name \"LD_PRELOAD\" is set by the box itself, so a "
	    "table cannot claim it",
	    ":8:1:" },
	{ AGENT("[agent.env]\nHTTPS_PROXY = \"x\"\n"), "is set by the box itself", NULL },
	{ AGENT("[agent.env]\nno_proxy = \"x\"\n"), "is set by the box itself", NULL },
	{ AGENT("[agent.env]\nPYTHONPATH = \"x\"\n"), "is set by the box itself", NULL },
	{ AGENT("[agent.env]\nDYLD_X = \"x\"\n"), "is set by the box itself", NULL },
	{ AGENT("[agent.env]\nOTEL_EXPORTER_OTLP_HEADERS = \"x\"\n"), "is set by the box itself",
	    NULL },
	{ AGENT("[agent.env]\nNODE_OPTIONS = \"x\"\n"), "is set by the box itself", NULL },
	{ AGENT("[agent.env]\nBASH_ENV = \"x\"\n"), "is set by the box itself", NULL },
	{ AGENT("[agent.env]\nENV = \"x\"\n"), "is set by the box itself", NULL },
	{ AGENT("[agent.env]\nUSER = \"x\"\n"), "is set by the box itself", NULL },
	{ AGENT("[agent.env]\nPWD = \"x\"\n"), "is set by the box itself", NULL },
	{ TOOL("[tool.t.env]\nSSL_CERT_FILE = \"x\"\n"),
	    "invalid `[tool.t]` table: `env` name \"SSL_CERT_FILE\"", NULL },
	{ AGENT("[agent.env]\nHOME = \"x\"\n"), "`env.HOME` must be an absolute path: \"x\"",
	    ":8:8:" },
	{ AGENT("[agent.env]\nTMPDIR = \"tmp\"\n"),
	    "`env.TMPDIR` must be an absolute path: \"tmp\"", NULL },
	/* filesystem spelling (1.4) */
	{ LIST("\"src\""),
	    "invalid `[agent]` table: `filesystem.read` path \"src\" must be absolute or start "
	    "with `~/`",
	    ":8:9:" },
	{ LIST("\"~user/x\""), "must be absolute or start with `~/`", NULL },
	{ LIST("\"\""), "must be exact and contain no pattern or control character", NULL },
	{ LIST("\"/a*\""), "must be exact and contain no pattern or control character", NULL },
	{ LIST("\"/a?\""), "must be exact and contain no pattern", NULL },
	{ LIST("\"/[a]\""), "must be exact and contain no pattern", NULL },
	{ LIST("\"/{a,b}\""), "must be exact and contain no pattern", NULL },
	{ LIST("\"/a\\u0007\""), "must be exact and contain no pattern or control character",
	    NULL },
	{ LIST("\"/a/../b\""), "carries `..`; name the path it means", NULL },
	{ LIST("\"~/..\""), "carries `..`; name the path it means", NULL },
	{ LIST("\"/a\", \"/b\", \"/a\""), "`filesystem.read` path /a is duplicated", ":8:21:" },
	{ LIST("\"/a\", \"/a/\""), "is duplicated", NULL },
	{ LIST("\"~/a\", \"$H/a\""), "is duplicated", NULL },
	{ TOOL("[tool.t.filesystem]\ndeny = [\"x\"]\n"),
	    "invalid `[tool.t]` table: `filesystem.deny` path \"x\"", NULL },
	/* egress (1.7) */
	{ GOOD_AGENT "[egress.a]\nsecret.ref = \"env://T\"\n", "`destinations` is empty", NULL },
	{ ROUTE("", TOKEN), "`destinations` is empty", NULL },
	{ DEST(""), "invalid credential entry for host \"\": destination is empty", ":8:17:" },
	{ DEST("a b"), "contains whitespace", NULL },
	{ DEST("*"), "invalid credential entry for host \"*\": this matches every host", NULL },
	{ DEST("*/x"), "this matches every host", NULL },
	{ DEST("*:443"), "this matches every host", NULL },
	{ DEST("*.*"), "a wildcard may only be the whole first label", NULL },
	{ DEST("a.*.x"), "a wildcard may only be", NULL },
	{ DEST("api*.x"), "a wildcard may only be", NULL },
	{ DEST("*api.x"), "a wildcard may only be", NULL },
	{ DEST("api.x:0"), "port must be between 1 and 65535", NULL },
	{ DEST("api.x:65536"), "port must be between 1 and 65535", NULL },
	{ DEST("api.x:"), "port must be between 1 and 65535", NULL },
	{ DEST("api.x:https"), "port must be between 1 and 65535", NULL },
	{ DEST("https://api.x"), "without a scheme", NULL },
	{ DEST("api..x"), "it names no host", NULL },
	{ DEST("[::1"), "it names no host", NULL },
	{ DEST("::1"), "it names no host", NULL },
	{ DEST("api.x/a*"), "a wildcard in a path", NULL },
	{ DEST("api.x/v1/*"), "a wildcard in a path", NULL },
	{ DEST("api.x/v1?x=1"), "no query", NULL },
	{ DEST("api.x/a//b"), "no empty, `.` or `..` segment", NULL },
	{ DEST("api.x/a/../b"), "no empty, `.` or `..` segment", NULL },
	{ DEST("api.x/./b"), "no empty, `.` or `..` segment", NULL },
	{ GOOD_AGENT "[egress.a]\ndestinations = [\"api.x\"]\n",
	    "invalid credential entry for host \"api.x\": an entry with no secret declares only a "
	    "destination",
	    NULL },
	{ SECRET(""), "`secret.ref` is empty", NULL },
	{ SECRET("ref = \"\""), "`secret.ref` is empty", NULL },
	{ SECRET("ref = \"hunter2\""), "secret must be a URI such as env://NAME or aws://profile",
	    ":10:7:" },
	{ SECRET("ref = \"vault://x\""), "secret scheme \"vault\" is not one the box can deliver",
	    NULL },
	{ SECRET("ref = \"aws://prod\""),
	    "secret scheme \"aws\" is not supported by this build of box yet", NULL },
	{ SECRET("ref = \"credsd://e\""), "secret scheme \"credsd\" is not supported by this build",
	    NULL },
	{ SECRET("ref = \"credsd://\""), "`credsd://` names no environment", NULL },
	{ SECRET("ref = \"env://\""),
	    "credential setup failed: credential for api.x names invalid or reserved variable \"\"",
	    NULL },
	{ SECRET("ref = \"env://A-B\""), "names invalid or reserved variable \"A-B\"", NULL },
	{ SECRET("ref = \"env://LD_PRELOAD\""), "names invalid or reserved variable \"LD_PRELOAD\"",
	    NULL },
	{ SECRET("ref = \"env://HOME\""), "names invalid or reserved variable \"HOME\"", NULL },
	{ SECRET("ref = \"env://PATH\""), "names invalid or reserved variable \"PATH\"", NULL },
	{ SECRET(TOKEN "placement = \"basic_auth\""),
	    "`secret.placement` \"basic_auth\" is not supported by this build", NULL },
	{ SECRET(TOKEN "placement = \"query_param\""),
	    "`secret.placement` \"query_param\" is not supported", NULL },
	{ SECRET(TOKEN "placement = \"url_path\""), "`secret.placement` \"url_path\" is refused",
	    NULL },
	{ SECRET(TOKEN "placement = \"cookie\""), "`secret.placement` \"cookie\" is not one",
	    NULL },
	{ SECRET(TOKEN "param = \"k\""), "`param` in `secret` is not supported", NULL },
	{ SECRET(TOKEN "phantom = \"strict\""), "write `inject` instead", NULL },
	{ SECRET(TOKEN "header = \"\""), "is not a header name", NULL },
	{ SECRET(TOKEN "header = \"X Y\""), "`secret.header` \"X Y\" is not a header name", NULL },
	{ SECRET(TOKEN "header = \"X:\""), "is not a header name", NULL },
	{ SECRET(TOKEN "header = \"content-length\""), "frames or routes the request", NULL },
	{ SECRET(TOKEN "header = \"Host\""), "frames or routes the request", NULL },
	{ SECRET(TOKEN "prefix = \"a\\nb\""),
	    "`secret.prefix` \"a\\nb\" holds a control character or a brace", NULL },
	{ SECRET(TOKEN "prefix = \"{\""), "holds a control character or a brace", NULL },
	{ SECRET(TOKEN "inject = \"never\""), "is not one of \"phantom\" or \"always\"",
	    ":11:10:" },
	{ SECRET(TOKEN "phantom_prefix = \"\""), "must be 1 to 64 characters, not 0", NULL },
	{ SECRET(TOKEN "phantom_prefix = \"a b\""), "may hold letters, digits", NULL },
	{ SECRET(TOKEN "phantom_prefix = "
	               "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""),
	    "must be 1 to 64 characters, not 65", NULL },
	{ GOOD_AGENT "[egress.a]\ndestinations = [\"api.x\"]\nprotocol = \"mcp\"\nsecret.ref = "
	             "\"env://T\"\n",
	    "an MCP server is `[mcp.<name>] type = \"http\"`", ":9:12:" },
	{ GOOD_AGENT "[egress.a]\ndestinations = [\"api.x\"]\nprotocol = \"ftp\"\nsecret.ref = "
	             "\"env://T\"\n",
	    "only \"http\" is", NULL },
	{ GOOD_AGENT
	    "[egress.a]\ndestinations = [\"api.x\"]\ntrust = \"\"\nsecret.ref = \"env://T\"\n",
	    "`trust` must name a PEM file", ":9:9:" },
	{ ROUTE("\"api.x\", \"api.x:443\"", TOKEN),
	    "invalid credential entry for host \"api.x:443\": `api` overlaps `api` at \"api.x\"",
	    ":8:26:" },
	{ GOOD_AGENT "[egress.a]\ndestinations = [\"*.x.com\"]\nsecret.ref = \"env://T\"\n"
	             "[egress.b]\ndestinations = [\"api.x.com\"]\nsecret.ref = \"env://U\"\n",
	    "invalid credential entry for host \"api.x.com\": `a` overlaps `b` at \"*.x.com\"",
	    ":11:17:" },
	{ GOOD_AGENT "[egress.a]\ndestinations = [\"a.x\"]\nsecret.ref = \"env://T\"\n"
	             "[egress.b]\ndestinations = [\"b.x\"]\nsecret.ref = "
	             "\"env://T\"\nsecret.phantom_prefix = \"sk-\"\n",
	    "variable T has another `phantom_prefix` in `[egress.a]`", NULL },
	/* resolve */
	{ RESOLVE("\"api.x\" = \"127.0.0.1:1\""),
	    "`[resolve]` name \"api.x\" must be \"host:port\"", ":8:1:" },
	{ RESOLVE("\"api.x:0\" = \"127.0.0.1:1\""), "must be \"host:port\"", NULL },
	{ RESOLVE("\"*.x:1\" = \"127.0.0.1:1\""), "must be \"host:port\"", NULL },
	{ RESOLVE("\"api.x:1\" = \"localhost:1\""), "must be \"address:port\"", ":8:13:" },
	{ RESOLVE("\"api.x:1\" = \"127.0.0.1\""), "must be \"address:port\"", NULL },
	{ RESOLVE("\"api.x:1\" = \"::1:5\""), "must be \"address:port\"", NULL },
	{ RESOLVE("\"api.x:1\" = 5"), "a `[resolve]` value must be a string", NULL },
	{ RESOLVE("\"api.x:1\" = \"127.0.0.1:1\"\n\"API.x.:1\" = \"127.0.0.1:2\""),
	    "`[resolve]` names api.x:1 twice", ":9:1:" },
};

static void refuses(void **state)
{
	const struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		AUTO_BUF want = buf_with(4096);
		struct plan p = { 0 };
		struct box_err err = { 0 };
		const char *w = fixture_expand(f, refusals[i].fragment, &want);

		if (fixture_load(f, refusals[i].text, false, &p, &err) == 0)
			fail_msg("row %zu was accepted:\n%s", i, refusals[i].text);
		if (strstr(err.msg, w) == NULL)
			fail_msg(
			    "row %zu: got  %s\nwant %s\nin:\n%s", i, err.msg, w, refusals[i].text);
		if (refusals[i].place != NULL && strstr(err.msg, refusals[i].place) == NULL)
			fail_msg("row %zu: got  %s\nwant %s\nin:\n%s", i, err.msg,
			    refusals[i].place, refusals[i].text);
		if (strchr(err.msg, '\n') != NULL)
			fail_msg("row %zu: more than one line: %s", i, err.msg);
		plan_fini(&p);
	}
}

static void reads_everything(void **state)
{
	static const char text[] =
	    "name = \"t\"\nbox_dir = \"$H//boxes/./t/state/\"\npolicy = \"policy.dw\"\n"
	    "[agent]\ncommand = [\"prog\", \"-x\"]\nworkspace = \"$H/src/app\"\n"
	    "[agent.env]\nHOME = \"/h\"\nA_1 = \"\"\n"
	    "[agent.filesystem]\nread = [\"~/src/app\", \"/usr/share/zoneinfo\"]\nlist = "
	    "[\"~/data\"]\n"
	    "deny = [\"~/src/app/.env\"]\nexec = [\"/usr/bin/env\"]\n"
	    "[tool.zeta]\ncommand = [\"prog\"]\n[tool.alpha]\ncommand = [\"prog\", \"a\"]\n"
	    "network.contain_egress = true\n"
	    "[egress.slack]\ndestinations = [\"Slack.com.\", \"*.slack.com:8443/api\", "
	    "\"x.y/*/upload\"]\n"
	    "protocol = \"http\"\nsecret = { ref = \"env://TOK\", inject = \"always\", header = "
	    "\"x-api-key\" }\n"
	    "trust = \"ca.pem\"\n"
	    "[egress.other]\ndestinations = [\"127.0.0.1:1\", \"[::1]:2\"]\nsecret.ref = "
	    "\"env://O\"\n"
	    "secret.header = \"authorization\"\n"
	    "[resolve]\n\"Slack.com:443\" = \"127.0.0.1:9\"\n\"a.b:1\" = \"[2001:DB8::1]:2\"\n";
	const struct fixture *f = *state;
	struct plan p = { 0 };
	struct box_err err = { 0 };
	char want[256];

	if (fixture_load(f, text, false, &p, &err) != 0)
		fail_msg("%s", err.msg);
	assert_string_equal(p.name.p, "t");
	(void)snprintf(want, sizeof(want), "%s/boxes/t/state", f->home);
	assert_string_equal(p.box_dir.p, want);
	(void)snprintf(want, sizeof(want), "%s/boxes/t/policy.dw", f->home);
	assert_string_equal(p.policy_path.p, want);
	assert_int_equal(p.agent->command_n, 2);
	assert_int_equal(p.agent->fixed_n, 2);
	assert_string_equal(p.agent->command[1].p, "-x");
	assert_string_equal(plan_env(p.agent, SV("HOME")).p, "/h");
	assert_int_equal(plan_env(p.agent, SV("A_1")).n, 0);
	assert_non_null(plan_env(p.agent, SV("A_1")).p);
	assert_null(plan_env(p.agent, SV("B")).p);
	assert_int_equal(p.agent->grants_n, 5);
	(void)snprintf(want, sizeof(want), "%s/src/app", f->home);
	assert_string_equal(p.agent->grants[0].path.p, want);
	assert_string_equal(p.agent->grants[0].authored.p, "~/src/app");
	assert_int_equal(p.agent->grants[4].list, PLAN_DENY);
	assert_int_equal(p.tools_n, 2);
	assert_string_equal(p.tools[0].label.p, "alpha");
	assert_string_equal(p.tools[1].table.p, "[tool.zeta]");
	assert_true(p.tools[0].contain_egress);
	assert_int_equal(p.routes_n, 2);
	assert_string_equal(p.routes[0].dests[0].host.p, "slack.com");
	assert_int_equal(p.routes[0].dests[0].port, 0);
	assert_true(p.routes[0].dests[1].subdomains);
	assert_int_equal(p.routes[0].dests[1].port, 8443);
	assert_string_equal(p.routes[0].dests[1].path.p, "/api");
	assert_true(p.routes[0].dests[2].is_suffix);
	assert_string_equal(p.routes[0].dests[2].path.p, "/upload");
	assert_int_equal(p.routes[0].inject, PLAN_ALWAYS);
	assert_string_equal(p.routes[0].header.p, "x-api-key");
	assert_int_equal(p.routes[0].prefix.n, 0);
	assert_string_equal(p.routes[0].trust.p, "ca.pem");
	assert_string_equal(p.routes[0].phantom_prefix.p, "strands_box_");
	assert_string_equal(p.routes[1].prefix.p, "Bearer ");
	assert_string_equal(p.routes[1].dests[1].host.p, "::1");
	assert_int_equal(p.resolves_n, 2);
	assert_string_equal(p.resolves[0].host.p, "slack.com");
	assert_string_equal(p.resolves[1].addr.p, "2001:db8::1");
	assert_int_equal(p.resolves[1].addr_port, 2);
	plan_fini(&p);
}

static void appends_arguments(void **state)
{
	char a1[] = "--incident", a2[] = "${X}", bad[] = "\xff\x1b";
	char *good_args[] = { a1, a2, NULL }, *bad_args[] = { bad, NULL };
	struct config_input in = { "box.toml", "/", "/home/x", NULL, good_args, 0, 0 };
	struct plan p = { 0 };
	struct box_err err = { 0 };
	sv text = SV("name = \"t\"\nbox_dir = \"/b\"\n[agent]\ncommand = [\"p\", "
	             "\"1\"]\n[tool.t]\ncommand = [\"q\"]\n");

	(void)state;
	assert_int_equal(config_parse(&in, text, &p, &err), 0);
	assert_int_equal(p.agent->command_n, 4);
	assert_int_equal(p.agent->fixed_n, 2);
	assert_string_equal(
	    p.agent->command[3].p, "${X}"); /* arguments of the command line are never expanded */
	assert_int_equal(p.tools[0].command_n, 1);
	assert_string_equal(p.path_var.p, "/usr/bin:/bin");
	plan_fini(&p);
	in.args = bad_args;
	assert_int_equal(config_parse(&in, text, &p, &err), -1);
	assert_string_equal(err.msg, "workload argument \\xff\\x1b is not valid UTF-8");
	plan_fini(&p);
}

/* The two authority files: regular, one name, the same at the end (1.1). */
static void guards_sources(void **state)
{
	const struct fixture *f = *state;
	struct plan p = { 0 };
	struct box_err err = { 0 };
	AUTO_BUF policy = buf_with(4096);

	fixture_sh(f, "ln boxes/t/policy.dw boxes/t/other");
	assert_int_equal(fixture_load(f, GOOD_AGENT, false, &p, &err), -1);
	assert_non_null(strstr(err.msg, "policy source "));
	assert_non_null(strstr(err.msg, "/policy.dw has more than one filesystem name"));
	plan_fini(&p);
	fixture_sh(f, "rm boxes/t/other");
	assert_int_equal(fixture_load(f, GOOD_AGENT, false, &p, &err), 0);
	assert_int_equal(config_verify_sources(&p, &err), 0);
	assert_int_equal(config_read_policy(&p, &policy, &err), 0);
	assert_string_equal(buf_cstr(&policy), "p\n");
	fixture_sh(f, "cp boxes/t/policy.dw x && mv x boxes/t/policy.dw");
	assert_int_equal(config_verify_sources(&p, &err), -1);
	assert_non_null(strstr(err.msg, "policy source "));
	assert_non_null(strstr(err.msg, " changed identity while Box prepared the run"));
	assert_int_equal(config_read_policy(&p, &policy, &err), -1);
	plan_fini(&p);
	assert_int_equal(fixture_load(f, GOOD_AGENT, false, &p, &err), 0);
	fixture_sh(f, "cp boxes/t/box.toml x && mv x boxes/t/box.toml");
	assert_int_equal(config_verify_sources(&p, &err), -1);
	assert_non_null(strstr(err.msg, "configuration source "));
	plan_fini(&p);
	/* a link to the file is resolved, a folder or a hard link refused */
	struct config_input in = { .home = f->home, .start_dir = f->home, .path_var = f->path };
	char path[256];

	in.config_path = path;
	(void)snprintf(path, sizeof(path), "%s/l.toml", f->home);
	fixture_sh(f, "ln -s boxes/t/box.toml l.toml");
	assert_int_equal(config_load(&in, &p, &err), 0);
	assert_non_null(strstr(p.config_path.p, "/boxes/t/box.toml"));
	plan_fini(&p);
	fixture_sh(f, "rm l.toml; ln boxes/t/box.toml l.toml");
	assert_int_equal(config_load(&in, &p, &err), -1);
	assert_non_null(strstr(err.msg, "configuration source "));
	assert_non_null(strstr(err.msg, "has more than one filesystem name"));
	plan_fini(&p);
	fixture_sh(f, "rm l.toml; mkdir l.toml");
	assert_int_equal(config_load(&in, &p, &err), -1);
	assert_non_null(strstr(err.msg, "is not a regular file"));
	plan_fini(&p);
	fixture_sh(f, "rmdir l.toml");
	assert_int_equal(config_load(&in, &p, &err), -1);
	assert_non_null(strstr(err.msg, "cannot read config file "));
	assert_non_null(strstr(err.msg, "No such file or directory"));
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
		cmocka_unit_test(refuses),
		cmocka_unit_test(reads_everything),
		cmocka_unit_test(appends_arguments),
		cmocka_unit_test(guards_sources),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
