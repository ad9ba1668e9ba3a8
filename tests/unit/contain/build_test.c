/* From a plan to operations: a scratch tree, a plan made by hand, and the lines that
 * sandbox_spec_print gives for it. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "contain/contain.h"
#include "contain/nodes.h"
#include "contain/spec.h"
#include "failmalloc.h"
#include "base/ban.h"

/* config/plan.c defines it; this test links contain alone. */
const char *const plan_list_name[PLAN_LISTS] = { "read", "write", "read_file", "write_file", "list",
	"metadata", "exec", "deny" };

struct world {
	char top[64];
	struct arena a;
	struct plan p;
	struct plan_process agent;
	struct plan_grant grants[16];
	struct sandbox_extra x;
	sv command[1];
};

static const char *at(struct world *w, const char *rel)
{
	const char *s = arena_printf(&w->a, "%s%s", w->top, rel);

	assert_non_null(s);
	return s;
}

static void make_dir(struct world *w, const char *rel)
{
	assert_int_equal(mkdir(at(w, rel), 0755), 0);
}

static void make_file(struct world *w, const char *rel, const char *text, mode_t mode)
{
	AUTO_FD fd = open(at(w, rel), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	char real[4096];

	assert_non_null(w);
	(void)snprintf(w->top, sizeof(w->top), "/var/tmp/build-test-XXXXXX");
	assert_non_null(mkdtemp(w->top));
	make_dir(w, "/bd");
	make_dir(w, "/bd/tmp");
	make_dir(w, "/w");
	make_dir(w, "/conf");
	make_file(w, "/conf/box.toml", "x", 0600);
	struct stat st;

	assert_int_equal(stat(at(w, "/conf/box.toml"), &st), 0);
	w->p.config_path = sv_c(at(w, "/conf/box.toml"));
	w->p.config_dev = st.st_dev;
	w->p.config_ino = st.st_ino;
	w->p.home = SV("/home/someone");
	w->p.path_var = SV("/usr/bin:/bin");
	w->p.uid = getuid();
	w->p.gid = getgid();
	w->agent.table = SV("[agent]");
	w->agent.contain_egress = true;
	w->agent.workspace = sv_c(at(w, "/w"));
	assert_non_null(realpath("/bin/cat", real));
	w->agent.program = arena_dup(&w->a, sv_c(real));
	w->agent.program_route = SV("/bin/cat");
	w->command[0] = SV("cat");
	w->agent.command = w->command;
	w->agent.command_n = 1;
	w->agent.grants = w->grants;
	w->p.agent = &w->agent;
	w->x.box_dir = at(w, "/bd");
	w->x.tmp_dir = at(w, "/bd/tmp");
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	char cmd[128];

	(void)snprintf(cmd, sizeof(cmd), "rm -rf %s", w->top);
	(void)!system(cmd);
	arena_free(&w->a);
	free(w);
	return 0;
}

static void grant(struct world *w, enum plan_list list, const char *rel)
{
	struct plan_grant *g = &w->grants[w->agent.grants_n++];
	struct stat st;

	g->list = list;
	g->path = g->authored = sv_c(at(w, rel));
	if (lstat(g->path.p, &st) == 0) {
		g->is_dir = S_ISDIR(st.st_mode);
		g->dev = st.st_dev;
		g->ino = st.st_ino;
	} else {
		g->absent = true;
	}
}

/* The plan as text; NULL with err. The text lives in the world. */
static const char *text(struct world *w, struct box_err *err)
{
	struct sandbox_spec s;
	AUTO_BUF b = buf_with(1 << 20);
	sv copy = { NULL, 0 };

	if (sandbox_spec_build(&w->p, &w->agent, &w->x, &s, err) == 0) {
		sandbox_spec_print(&s, &b);
		copy = arena_dup(&w->a, buf_sv(&b));
	}
	sandbox_spec_fini(&s);
	return copy.p;
}

static bool has(struct world *w, const char *t, const char *fmt)
{
	const char *line = arena_printf(&w->a, "\n%s\n", fmt);

	return strstr(t, line) != NULL;
}
#define HAS(...)                                                                                   \
	do {                                                                                       \
		const char *line_ = arena_printf(&w->a, __VA_ARGS__);                              \
		if (!has(w, t, line_))                                                             \
			fail_msg("no line '%s' in\n%s", line_, t);                                 \
	} while (0)
#define HAS_NOT(...)                                                                               \
	do {                                                                                       \
		const char *line_ = arena_printf(&w->a, __VA_ARGS__);                              \
		if (has(w, t, line_))                                                              \
			fail_msg("line '%s' in\n%s", line_, t);                                    \
	} while (0)

static const char *good(struct world *w)
{
	struct box_err err = { 0 };
	const char *t = text(w, &err);

	if (t == NULL)
		fail_msg("%s", err.msg);
	return t;
}

static void bad(struct world *w, const char *part)
{
	struct box_err err = { 0 };

	if (text(w, &err) != NULL)
		fail_msg("built, but should say '%s'", part);
	if (strstr(err.msg, part) == NULL)
		fail_msg("'%s' lacks '%s'", err.msg, part);
}

static void test_plain(void **state)
{
	struct world *w = *state;
	const char *t = good(w);

	HAS("bind    " SV_FMT " ro", SV_ARG(w->agent.program));
	HAS("rule    " SV_FMT " read,exec", SV_ARG(w->agent.program));
	HAS("exec    /bin/cat /bin/cat"); /* bare name: the route */
	HAS("cwd     %s/w", w->top);
	HAS("dir     %s/w", w->top);
	HAS("bind    /tmp <- %s/bd/tmp own", w->top);
	HAS("dir     /home/someone");
	HAS("seal    /");
	HAS_NOT("cover   %s/conf", w->top);
	assert_null(strstr(t, "/usr/lib/python")); /* nothing that nobody gave */
}

static void test_lists(void **state)
{
	struct world *w = *state;

	make_dir(w, "/w/r");
	make_dir(w, "/w/wo");
	make_dir(w, "/w/l");
	make_dir(w, "/w/m");
	make_file(w, "/w/f", "x", 0644);
	make_file(w, "/w/g", "x", 0644);
	grant(w, PLAN_READ, "/w/r");
	grant(w, PLAN_WRITE, "/w/wo");
	grant(w, PLAN_LIST, "/w/l");
	grant(w, PLAN_METADATA, "/w/m");
	grant(w, PLAN_READ_FILE, "/w/f");
	grant(w, PLAN_WRITE_FILE, "/w/g");
	const char *t = good(w);

	HAS("bind    %s/w/r ro,noexec", w->top);
	HAS("rule    %s/w/r read,list", w->top);
	HAS("bind    %s/w/wo noexec", w->top);
	HAS("rule    %s/w/wo write,make", w->top);
	HAS("bind    %s/w/l ro,noexec", w->top);
	HAS("rule    %s/w/l list", w->top);
	HAS("bind    %s/w/m ro,noexec", w->top);
	HAS("rule    %s/w/f read", w->top);
	HAS("rule    %s/w/g write", w->top);
	assert_null(strstr(t, arena_printf(&w->a, "rule    %s/w/m", w->top)));
	HAS_NOT("rule    / list"); /* would list the folders that may not be listed */
}

/* A nested grant that needs no more than its outer one gets no mount of its own: renames across it
 * work. */
static void test_nested(void **state)
{
	struct world *w = *state;

	make_dir(w, "/w/a");
	make_dir(w, "/w/bin");
	grant(w, PLAN_READ, "/w");
	grant(w, PLAN_WRITE, "/w");
	grant(w, PLAN_READ, "/w/a");
	grant(w, PLAN_EXEC, "/w/bin");
	const char *t = good(w);

	HAS("bind    %s/w noexec", w->top);
	HAS("bind    %s/w/bin", w->top); /* writable with its parent, and executable */
	assert_null(strstr(t, arena_printf(&w->a, "bind    %s/w/a", w->top)));
	HAS("rule    %s/w read,list,write,make", w->top);
	HAS("rule    / list");
}

static void test_deny(void **state)
{
	struct world *w = *state;

	make_dir(w, "/w/a");
	make_dir(w, "/w/a/b");
	make_dir(w, "/w/a/b/no");
	make_file(w, "/w/.env", "x", 0644);
	grant(w, PLAN_WRITE, "/w");
	grant(w, PLAN_DENY, "/w/a/b/no");
	grant(w, PLAN_DENY, "/w/.env");
	const char *t = good(w);

	HAS("pin     %s/w/a", w->top);
	HAS("pin     %s/w/a/b", w->top);
	HAS("cover   %s/w/a/b/no", w->top);
	HAS("cover   %s/w/.env", w->top);
	HAS_NOT("pin     %s/w", w->top);
	assert_true(strstr(t, "pin     ") < strstr(t, "cover   "));
}

/* A read grant inside a writable one changes nothing about what can be renamed. */
static void test_deny_below_both(void **state)
{
	struct world *w = *state;

	make_dir(w, "/w/a");
	make_dir(w, "/w/a/b");
	make_dir(w, "/w/a/b/no");
	grant(w, PLAN_WRITE, "/w");
	grant(w, PLAN_READ, "/w/a");
	grant(w, PLAN_DENY, "/w/a/b/no");
	const char *t = good(w);

	HAS("pin     %s/w/a", w->top);
	HAS("pin     %s/w/a/b", w->top);
	HAS("cover   %s/w/a/b/no", w->top);
}

static void test_deny_unseen(void **state)
{
	struct world *w = *state;

	grant(w, PLAN_DENY, "/nowhere/at/all");
	assert_null(strstr(good(w), "nowhere"));
}

static void test_absent_deny(void **state)
{
	struct world *w = *state;
	struct contain_placeholders ph;
	struct box_err err = { 0 };
	struct stat st;

	grant(w, PLAN_WRITE, "/w");
	grant(w, PLAN_DENY, "/w/.x/commands");
	bad(w, "does not exist yet");
	assert_int_equal(contain_placeholders_make(&w->p, &ph, &err), 0);
	assert_int_equal(ph.n, 2);
	const char *t = good(w);

	HAS("pin     %s/w/.x", w->top);
	HAS("cover   %s/w/.x/commands", w->top);
	make_file(w, "/w/.x/used", "x", 0644);
	contain_placeholders_remove(&ph);
	assert_int_equal(lstat(at(w, "/w/.x/commands"), &st), -1);
	assert_int_equal(lstat(at(w, "/w/.x/used"), &st), 0); /* what is in use stays */
}

static void test_placeholder_is_not_led_astray(void **state)
{
	struct world *w = *state;
	struct contain_placeholders ph;
	struct box_err err = { 0 };
	struct stat st;

	make_dir(w, "/out");
	grant(w, PLAN_WRITE, "/w");
	grant(w, PLAN_DENY, "/w/.x/commands");
	assert_int_equal(symlink(at(w, "/out"), at(w, "/w/.x")), 0);
	assert_int_equal(contain_placeholders_make(&w->p, &ph, &err), -1);
	assert_non_null(strstr(err.msg, ".x"));
	assert_int_equal(lstat(at(w, "/out/commands"), &st), -1);
}

static void test_authority(void **state)
{
	struct world *w = *state;

	make_dir(w, "/w/c");
	make_file(w, "/w/c/box.toml", "x", 0600);
	struct stat st;

	assert_int_equal(stat(at(w, "/w/c/box.toml"), &st), 0);
	w->p.config_path = sv_c(at(w, "/w/c/box.toml"));
	w->p.config_dev = st.st_dev;
	w->p.config_ino = st.st_ino;
	grant(w, PLAN_WRITE, "/w");
	const char *t = good(w);

	HAS("cover   %s/w/c", w->top); /* the folder, not only the file */
	assert_int_equal(link(at(w, "/w/c/box.toml"), at(w, "/w/other")), 0);
	bad(w, "hard links");
	assert_int_equal(unlink(at(w, "/w/other")), 0);
	assert_int_equal(rename(at(w, "/w/c/box.toml"), at(w, "/w/c/old")), 0);
	make_file(w, "/w/c/box.toml", "y", 0600);
	bad(w, "was replaced");
}

static void test_replaced_grant(void **state)
{
	struct world *w = *state;

	make_dir(w, "/w/r");
	grant(w, PLAN_READ, "/w/r");
	assert_int_equal(rename(at(w, "/w/r"), at(w, "/w/old")), 0);
	make_dir(w, "/w/r");
	bad(w, "is not what it was when the run judged it");
	assert_int_equal(rmdir(at(w, "/w/r")), 0);
	assert_int_equal(symlink("old", at(w, "/w/r")), 0);
	bad(w, "grant");
}

static void test_box_directory(void **state)
{
	struct world *w = *state;

	grant(w, PLAN_READ, "");
	bad(w, "expose the box's own directory");
}

static void test_egress(void **state)
{
	struct world *w = *state;

	w->agent.contain_egress = false;
	bad(w, "contain_egress");
}

static void test_leaf(void **state)
{
	struct world *w = *state;
	static const char *const names[] = { "sh" };

	make_file(w, "/alias", "#!/bin/sh\n", 0755);
	make_file(w, "/sock", "", 0600);
	w->x.alias_image = at(w, "/alias");
	w->x.alias_names = names;
	w->x.alias_names_n = 1;
	w->x.broker_socket = at(w, "/sock");
	const char *t = good(w);

	HAS("bind    %s/bd/bin/sh <- %s/alias ro", w->top, w->top);
	HAS("bind    /usr/bin/sh <- %s/alias ro", w->top);
	HAS("bind    /usr/bin/dash <- %s/alias ro", w->top);
	HAS("bind    /run/boxwood/box.sock <- %s/sock ro,noexec", w->top);
	w->x.leaf = true;
	t = good(w);
	assert_null(strstr(t, "alias"));
	assert_null(strstr(t, "box.sock"));
	assert_non_null(strstr(t, "rule    /usr/lib read,list,exec"));
}

/* The agent's own interpreter and what `exec` covers stay real. */
static void test_alias_spares(void **state)
{
	struct world *w = *state;
	static const char *const names[] = { "sh", "bash" };
	char real[4096];
	sv interp[1];

	make_file(w, "/alias", "x", 0755);
	make_file(w, "/w/prog", "#!/bin/sh\n", 0755);
	w->agent.program = w->agent.program_route = sv_c(at(w, "/w/prog"));
	assert_non_null(realpath("/bin/sh", real));
	interp[0] = arena_dup(&w->a, sv_c(real));
	w->agent.interpreters = interp;
	w->agent.interpreters_n = 1;
	w->x.alias_image = at(w, "/alias");
	w->x.alias_names = names;
	w->x.alias_names_n = 2;
	const char *t = good(w);

	HAS("bind    " SV_FMT " ro", SV_ARG(interp[0]));
	assert_null(strstr(t, arena_printf(&w->a, "/usr/bin/sh <- %s/alias", w->top)));
	HAS("bind    /usr/bin/bash <- %s/alias ro", w->top);
	interp[0] = SV("/usr/bin/false");
	bad(w, "not the one that was judged");
}

/* A program that an `exec` entry covers, started in a leaf with the agent's lists. */
static void test_exec_entry(void **state)
{
	struct world *w = *state;
	struct stat st;

	make_dir(w, "/w/bin");
	make_file(w, "/w/bin/interp", "x", 0755);
	make_file(w, "/w/bin/prog", arena_printf(&w->a, "#!%s\n", at(w, "/w/bin/interp")), 0755);
	make_file(w, "/w/bin/other", "#!/bin/sh\n", 0755);
	make_file(w, "/w/elsewhere", "x", 0755);
	grant(w, PLAN_EXEC, "/w/bin");
	w->x.leaf = true;
	w->x.program = at(w, "/w/bin/prog");
	const char *t = good(w);

	HAS("rule    %s/w/bin/prog read,exec", w->top);
	HAS("rule    %s/w/bin/interp read,exec", w->top);
	HAS("rule    %s/w/bin read,exec", w->top);
	w->x.program = at(w, "/w/bin/other");
	bad(w, "names the interpreter /bin/sh, which no `exec` entry of [agent] covers");
	w->x.program = at(w, "/w/elsewhere");
	bad(w, "no `exec` entry covers");
	w->x.program = at(w, "/w/bin/prog");
	grant(w, PLAN_DENY, "/w/bin/interp");
	bad(w, "which no `exec` entry of [agent] covers");
	assert_int_equal(lstat(at(w, "/w/bin/interp"), &st), 0);
}

static void test_env(void **state)
{
	struct world *w = *state;
	static const struct plan_var env[] = { { SV_INIT("A"), SV_INIT("1") },
		{ SV_INIT("B"), SV_INIT("2") }, { SV_INIT("A"), SV_INIT("3") } };
	struct sandbox_spec s;

	w->x.env = env;
	w->x.env_n = 3;
	assert_int_equal(sandbox_spec_build(&w->p, &w->agent, &w->x, &s, NULL), 0);
	assert_int_equal(s.envp_n, 2);
	assert_string_equal(s.envp[0], "B=2");
	assert_string_equal(s.envp[1], "A=3"); /* later wins */
	sandbox_spec_fini(&s);
}

struct seen {
	int n, hidden;
	char last[256];
};

static void see(void *arg, const char *path, bool hide)
{
	struct seen *s = arg;

	s->n++;
	s->hidden += hide;
	(void)snprintf(s->last, sizeof(s->last), "%s", path);
}

/* A bound socket; close it, and a leftover remains. */
static int bind_socket(struct world *w, const char *rel)
{
	struct sockaddr_un u = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(u.sun_path, sizeof(u.sun_path), "%s", at(w, rel));
	assert_int_equal(bind(fd, (struct sockaddr *)&u, sizeof(u)), 0);
	return fd;
}

static void make_socket(struct world *w, const char *rel)
{
	(void)close(bind_socket(w, rel));
}

static void test_sockets(void **state)
{
	struct world *w = *state;
	struct seen s = { 0 };

	make_dir(w, "/w/a");
	make_dir(w, "/w/no");
	make_socket(w, "/w/a/s");
	make_socket(w, "/w/no/s");
	make_socket(w, "/conf/s");
	assert_int_equal(symlink(at(w, "/conf"), at(w, "/w/link")), 0);
	grant(w, PLAN_READ, "/w");
	grant(w, PLAN_WRITE, "/w");
	grant(w, PLAN_DENY, "/w/no");
	/* Nobody is bound to it: the process may remove it and make its own. */
	assert_true(contain_sockets(&w->agent, 1000, see, &s));
	assert_int_equal(s.n, 1);
	assert_int_equal(s.hidden, 0);
	assert_string_equal(s.last, at(w, "/w/a/s"));
	assert_false(contain_sockets(&w->agent, 1, see, &s));
}

static void test_hidden_sockets(void **state)
{
	struct world *w = *state;
	struct seen s = { 0 };
	int live;

	make_dir(w, "/w/a");
	make_dir(w, "/w/no");
	make_socket(w, "/w/a/left-over");
	grant(w, PLAN_READ, "/w");
	/* In a folder that it cannot change. */
	assert_true(contain_sockets(&w->agent, 1000, see, &s));
	assert_int_equal(s.n, 1);
	assert_int_equal(s.hidden, 1);
	grant(w, PLAN_WRITE, "/w");
	live = bind_socket(w, "/w/a/live");
	/* By the kernel's table, without a look at any folder, and once more by the walk. */
	s = (struct seen){ 0 };
	(void)contain_sockets(&w->agent, 0, see, &s);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.hidden, 1);
	assert_string_equal(s.last, at(w, "/w/a/live"));
	s = (struct seen){ 0 };
	assert_true(contain_sockets(&w->agent, 1000, see, &s));
	assert_int_equal(s.n, 3);
	assert_int_equal(s.hidden, 2);
	/* An entry of its own gives it. */
	grant(w, PLAN_WRITE_FILE, "/w/a/live");
	s = (struct seen){ 0 };
	assert_true(contain_sockets(&w->agent, 1000, see, &s));
	assert_int_equal(s.hidden, 0);
	/* What is denied is not looked at: it is covered with its folder. */
	grant(w, PLAN_DENY, "/w/a");
	s = (struct seen){ 0 };
	assert_true(contain_sockets(&w->agent, 1000, see, &s));
	assert_int_equal(s.n, 0);
	(void)close(live);
}

static void test_within(void **state)
{
	static const struct {
		const char *a, *b;
		bool in;
	} t[] = { { "/a/b", "/a", true }, { "/a", "/a", true }, { "/ab", "/a", false },
		{ "/a", "/a/b", false }, { "/a", "/", true }, { "/", "/", true } };

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
		assert_int_equal(view_within(t[i].a, t[i].b), t[i].in);
}

/* Every allocation fails once: an error, never half a plan. */
static void test_no_memory(void **state)
{
	struct world *w = *state;
	size_t n;

	make_dir(w, "/w/a");
	grant(w, PLAN_WRITE, "/w");
	grant(w, PLAN_DENY, "/w/a");
	for (n = 1; n < 2000; n++) {
		struct sandbox_spec s;
		struct box_err err = { 0 };
		int r;

		fail_after(n);
		r = sandbox_spec_build(&w->p, &w->agent, &w->x, &s, &err);
		bool failed = fail_happened();

		fail_after(0);
		assert_true(r == 0 || failed);
		if (r == 0)
			assert_true(s.ops_n > 10 && s.ops[s.ops_n - 1].kind == SANDBOX_SEAL);
		else
			assert_true(err.msg[0] != '\0');
		sandbox_spec_fini(&s);
		if (!failed)
			break;
	}
	assert_in_range(n, 2, 1999);
}

static void test_minimum(void **state)
{
	AUTO_ARENA a = { .limit = 65536 };
	struct disclose_minimum *v;
	size_t agent, leaf;
	bool lib = false;

	(void)state;
	assert_int_equal(contain_minimum(&a, PLAN_AGENT, &v, &agent, NULL), 0);
	for (size_t i = 0; i < agent; i++)
		assert_string_not_equal(v[i].path, "/usr/lib");
	assert_int_equal(contain_minimum(&a, PLAN_TOOL, &v, &leaf, NULL), 0);
	for (size_t i = 0; i < leaf; i++)
		lib = lib || strcmp(v[i].note, "loader directory: code maps and runs here") == 0;
	assert_true(leaf > agent && lib);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = { T(test_plain), T(test_lists), T(test_nested),
		T(test_deny), T(test_deny_below_both), T(test_deny_unseen), T(test_absent_deny),
		T(test_placeholder_is_not_led_astray), T(test_authority), T(test_replaced_grant),
		T(test_box_directory), T(test_egress), T(test_leaf), T(test_alias_spares),
		T(test_exec_entry), T(test_sockets), T(test_hidden_sockets), T(test_no_memory),
		T(test_env), cmocka_unit_test(test_within), cmocka_unit_test(test_minimum) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
