/* The box directory: refusals of box-config-and-policy 1.2, the life of the record, kills at every
 * step of a first start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "config/boxdir.h"
#include "fixture.h"

struct env {
	struct fixture f;
	char bd[256];
	struct plan p;
};

static void use(struct env *e, const char *rel)
{
	(void)snprintf(e->bd, sizeof(e->bd), "%s/%s", e->f.home, rel);
	e->p.box_dir = sv_c(e->bd);
	e->p.name = SV("t");
	e->p.config_path = SV("/x/box.toml");
	e->p.config_text = SV("name = \"t\"\n");
}

static void refused(struct env *e, const char *fragment)
{
	AUTO_BUF want = buf_with(4096);
	struct boxdir b = BOXDIR_INIT;
	struct box_err err = { 0 };

	assert_int_equal(boxdir_open(&e->p, &b, &err), -1);
	if (strstr(err.msg, fixture_expand(&e->f, fragment, &want)) == NULL)
		fail_msg("got  %s\nwant %s", err.msg, buf_cstr(&want));
	assert_int_equal(b.fd, -1);
	assert_int_equal(b.lock_fd, -1);
}

static enum boxdir_change run_once(struct env *e, const char *policy, char id[32])
{
	AUTO_BOXDIR b = BOXDIR_INIT;
	struct box_err err = { 0 };
	enum boxdir_change change;

	if (boxdir_open(&e->p, &b, &err) != 0 || boxdir_check_history(&b, "history", &err) != 0)
		fail_msg("%s", err.msg);
	if (b.fresh) {
		AUTO_BUF cmd = buf_with(1024);

		buf_putf(&cmd, "echo h > '%s/private/history'", e->bd);
		fixture_sh(&e->f, buf_cstr(&cmd));
	}
	if (boxdir_commit(&b, &e->p, sv_c(policy), &change, &err) != 0)
		fail_msg("%s", err.msg);
	memcpy(id, b.id, sizeof(b.id));
	return change;
}

static void refuses(void **state)
{
	struct env *e = *state;

	use(e, "none/bd");
	refused(e, "the box directory's parent does not exist: $H/none");
	fixture_sh(&e->f, "echo x > bdfile && ln -sf data bdlink");
	use(e, "bdfile/bd");
	refused(e, "the box directory's parent does not exist");
	use(e, "bdfile");
	refused(e, "box path is not a directory: $H/bdfile");
	use(e, "bdlink");
	refused(e, "box path is not a directory: $H/bdlink");
	fixture_sh(&e->f, "mkdir -m 755 bdmode && mkdir -m 700 bdfull && echo x > bdfull/file");
	use(e, "bdmode");
	refused(e, "unsafe box directory $H/bdmode: its mode is not 0700");
	use(e, "bdfull");
	refused(e,
	    "unsafe box directory $H/bdfull: it is not empty and contains no valid private record");
	fixture_sh(&e->f, "rm bdfull/file && mkdir -m 700 bdfull/private");
	refused(e, "it is not empty and contains no valid private record");
	use(e, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	       "aaaaaaaaaaaaaaaaa");
	refused(e, "its broker socket path exceeds the platform limit");
	if (getuid() == 0) {
		fixture_sh(&e->f, "mkdir -m 700 bdother && chown 12345 bdother");
		use(e, "bdother");
		refused(e, "unsafe box directory $H/bdother: it is not owned by the current user");
	}
}

static void mode_is(struct env *e, const char *rel, unsigned mode)
{
	char path[512];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", e->bd, rel);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, mode);
}

static void lives(void **state)
{
	static const char *const dirs[] = { ".", "bin", "run", "trust", "tmp", "private",
		"private/telemetry" };
	struct env *e = *state;
	char id[32], id2[32];
	mode_t old = umask(0277); /* the modes do not depend on it */

	use(e, "bd");
	assert_int_equal(run_once(e, "policy 1", id), BOXDIR_CREATED);
	(void)umask(old);
	assert_int_equal(strlen(id), BOXDIR_ID_LEN);
	assert_memory_equal(id, "box-", 4);
	assert_int_equal(strspn(id + 4, "0123456789abcdef"), 16);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		mode_is(e, dirs[i], 0700);
	mode_is(e, "private/box.toml", 0600);
	mode_is(e, "private/configured", 0600);
	mode_is(e, "private/policy.dw", 0400);
	assert_int_equal(run_once(e, "policy 1", id2), BOXDIR_SAME);
	assert_string_equal(id, id2);
	assert_int_equal(run_once(e, "policy 2", id2), BOXDIR_UPDATED);
	assert_int_equal(run_once(e, "policy 2", id2), BOXDIR_SAME);
	e->p.config_text = SV("name = \"t\"\n# more\n");
	assert_int_equal(run_once(e, "policy 2", id2), BOXDIR_UPDATED);
	assert_int_equal(run_once(e, "policy 2", id2), BOXDIR_SAME);
	assert_string_equal(id, id2);
	/* tmp may go, the rest may not */
	fixture_sh(&e->f, "rmdir bd/tmp");
	assert_int_equal(run_once(e, "policy 2", id2), BOXDIR_SAME);
	fixture_sh(&e->f, "rmdir bd/trust");
	refused(e, "unsafe box directory $H/bd: `trust` is missing; delete the whole folder to "
	           "start again");
	fixture_sh(&e->f, "ln -s ../data bd/trust");
	refused(e, "`trust` is not a directory");
	fixture_sh(&e->f, "rm bd/trust && mkdir -m 755 bd/trust");
	refused(e, "its mode is not 0700");
	fixture_sh(&e->f, "chmod 700 bd/trust");
	assert_int_equal(run_once(e, "policy 2", id2), BOXDIR_SAME);
}

static void guards_the_record(void **state)
{
	struct env *e = *state;
	char id[32];

	use(e, "bdr");
	assert_int_equal(run_once(e, "p", id), BOXDIR_CREATED);
	fixture_sh(&e->f, "cp -r bdr keep && chmod 700 keep && cp bdr/private/box.toml x && mv x "
	                  "bdr/private/box.toml");
	refused(e, "it is not empty and contains no valid private record"); /* another inode */
	fixture_sh(&e->f, "chmod -R u+w bdr && rm -r bdr");
	assert_int_equal(run_once(e, "p", id), BOXDIR_CREATED);
	fixture_sh(&e->f, "rm bdr/private/configured");
	refused(e, "contains no valid private record");
	fixture_sh(&e->f, "rm -rf bdr");
	assert_int_equal(run_once(e, "p", id), BOXDIR_CREATED);
	fixture_sh(&e->f, "sed 's/version = 1/version = 7/' bdr/private/box.toml > x && cat x > "
	                  "bdr/private/box.toml");
	refused(e, "box record is version 7, but this build understands 1; ");
	fixture_sh(&e->f,
	    "sed 's/version = 7/version = 1/;s/box-./box-G/' bdr/private/box.toml > x && cat x > "
	    "bdr/private/box.toml");
	refused(e, "box record identity \"box-G");
	fixture_sh(&e->f, "echo 'x =' > bdr/private/box.toml");
	refused(e, "contains no valid private record");
	fixture_sh(&e->f, "rm bdr/private/box.toml && ln -s /etc/passwd bdr/private/box.toml");
	refused(e, "private/box.toml");
}

static void checks_history(void **state)
{
	struct env *e = *state;
	struct box_err err = { 0 };
	AUTO_BUF want = buf_with(4096);
	char id[32];

	use(e, "bdh");
	assert_int_equal(run_once(e, "p", id), BOXDIR_CREATED);
	AUTO_BOXDIR b = BOXDIR_INIT;

	assert_int_equal(boxdir_open(&e->p, &b, &err), 0);
	assert_int_equal(boxdir_check_history(&b, "history", &err), 0);
	fixture_sh(&e->f, "rm bdh/private/history");
	assert_int_equal(boxdir_check_history(&b, "history", &err), -1);
	assert_string_equal(err.msg, fixture_expand(&e->f,
	                                 "policy staging failed: the box record is committed, but "
	                                 "the history $H/bdh/private/history is absent. "
	                                 "Wipe the box directory to start again.",
	                                 &want));
	fixture_sh(&e->f, ": > bdh/private/history");
	assert_int_equal(boxdir_check_history(&b, "history", &err), -1);
	assert_non_null(strstr(err.msg, "is committed, but the history "));
	assert_non_null(strstr(err.msg, " is empty. Wipe"));
	fixture_sh(&e->f, "rm bdh/private/history && mkdir bdh/private/history");
	assert_int_equal(boxdir_check_history(&b, "history", &err), -1);
	fixture_sh(&e->f, "echo 123 > bdh/private/history/log");
	assert_int_equal(boxdir_check_history(&b, "history", &err), 0);
	b.fresh = true;
	assert_int_equal(boxdir_check_history(&b, "history", &err), -1);
	assert_non_null(strstr(err.msg, "the box record is not committed, but the history "));
	assert_non_null(strstr(
	    err.msg, "/private/history holds 4 bytes. Wipe the box directory to start again."));
	assert_int_equal(boxdir_check_history(&b, "none", &err), 0);
}

static void excludes(void **state)
{
	struct env *e = *state;
	struct box_err err = { 0 };
	enum boxdir_change change;
	AUTO_BUF want = buf_with(4096);

	use(e, "bdx");
	AUTO_BOXDIR b = BOXDIR_INIT;

	assert_int_equal(boxdir_open(&e->p, &b, &err), 0);
	refused(e, "operation is in progress for this box; retry shortly");
	assert_int_equal(boxdir_commit(&b, &e->p, SV("p"), &change, &err), 0);
	buf_putf(&want,
	    "box %s is already running, and one run owns a box at a time; wait for that run to "
	    "exit, or start a "
	    "configuration with a different `box_dir`",
	    b.id);
	refused(e, buf_cstr(&want));
	boxdir_close(&b);
	assert_int_equal(boxdir_open(&e->p, &b, &err), 0);
}

/* A process that is killed after boxdir_open and before boxdir_commit leaves nothing that stops the
 * next start. */
static void survives_kill(void **state)
{
	struct env *e = *state;
	char id[32];
	int status;
	pid_t pid;

	use(e, "bdk");
	pid = fork();
	if (pid == 0) {
		struct boxdir b = BOXDIR_INIT;
		struct box_err err = { 0 };
		int fd;

		if (boxdir_open(&e->p, &b, &err) != 0)
			_exit(2);
		fd = openat(b.private_fd, "history", O_CREAT | O_WRONLY, 0600);
		if (fd < 0 || write(fd, "x", 1) != 1)
			_exit(3);
		_exit(mkdirat(b.fd, "bin/x", 0700) == 0 ? 0 : 4);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	mode_is(e, "private", 01700);
	assert_int_equal(run_once(e, "p", id), BOXDIR_CREATED);
	mode_is(e, "private", 0700);
	/* but something foreign beside it stays refused */
	fixture_sh(&e->f, "mkdir -m 700 bdk2 && mkdir bdk2/private && chmod 1700 bdk2/private && "
	                  "echo x > bdk2/mine");
	use(e, "bdk2");
	refused(e, "contains no valid private record");
	fixture_sh(&e->f, "test -f bdk2/mine");
}

static int setup(void **state)
{
	static struct env e;

	fixture_make(&e.f);
	*state = &e;
	return 0;
}

static int teardown(void **state)
{
	fixture_remove(&((struct env *)*state)->f);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses),
		cmocka_unit_test(lives),
		cmocka_unit_test(guards_the_record),
		cmocka_unit_test(checks_history),
		cmocka_unit_test(excludes),
		cmocka_unit_test(survives_kill),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
