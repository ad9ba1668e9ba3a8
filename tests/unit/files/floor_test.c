/* box-files under attack: links that leave the tree, protected objects by every name, swaps
 * between decision and effect, malformed frames. Policy permits everything here, so that the
 * floor and the identity checks stand alone. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/ipc.h"
#include "fake.h"
#include "base/ban.h"

static void ignore_note(
    void *arg, enum files_tree_event ev, const char *shown, const struct files_err *e)
{
	(void)arg;
	(void)ev;
	(void)shown;
	(void)e;
}

static int tree(struct fake *k, enum files_tree_op op, const char *src, const char *dst)
{
	const struct files_tree_opts o = { .op = op, .recursive = true, .no_deref = true };

	return files_tree(k->f, &o, &src, &src, 1, dst, ignore_note, NULL);
}

/* Everything an attacker can do with a path; each must fail. */
static void try_all(struct fake *k, const char *path)
{
	const struct timespec ts[2] = { { 1, 1 }, { 1, 1 } };
	AUTO_BUF out = buf_with(8192);
	char below[FILES_PATH_MAX];
	struct files_stat st;
	int fd = -1;

	(void)snprintf(below, sizeof(below), "%s/new", path);
	assert_int_equal(files_open(k->f, path, O_RDONLY, 0), -1);
	assert_int_equal(files_open(k->f, path, O_WRONLY, 0), -1);
	assert_int_equal(files_open(k->f, path, O_RDWR | O_TRUNC, 0), -1);
	assert_int_equal(files_open(k->f, path, O_WRONLY | O_APPEND | O_CREAT, 0644), -1);
	assert_int_equal(files_open(k->f, below, O_WRONLY | O_CREAT, 0644), -1);
	assert_int_equal(files_stat(k->f, path, true, &st), -1);
	assert_int_equal(files_access(k->f, path, R_OK), -1);
	assert_int_equal(files_chdir(k->f, path, &out), -1);
	assert_int_equal(files_realpath(k->f, path, false, &out), -1);
	assert_int_equal(files_mkdir(k->f, below, 0755), -1);
	assert_int_equal(files_chmod(k->f, path, 0777), -1);
	assert_int_equal(files_utimes(k->f, path, ts, true), -1);
	assert_int_equal(files_unlink(k->f, below), -1);
	assert_int_equal(files_rmdir(k->f, below), -1);
	assert_int_equal(files_symlink(k->f, "x", below), -1);
	assert_int_equal(files_symlink(k->f, path, fake_path(k, "link-to-it")), -1);
	assert_int_equal(files_link(k->f, below, fake_path(k, "hard")), -1);
	assert_int_equal(files_rename(k->f, fake_path(k, "mine"), below, false), -1);
	assert_int_equal(files_rename(k->f, below, fake_path(k, "mine2"), false), -1);
	(void)snprintf(below, sizeof(below), "%s/XXXXXX", path);
	assert_int_equal(files_mktemp(k->f, below, false, &fd, &out), -1);
	assert_int_equal(tree(k, FILES_TREE_COPY, fake_path(k, "mine"), below), -1);
}

/* The object itself, by a name that is not a link. */
static void try_object(struct fake *k, const char *path)
{
	try_all(k, path);
	assert_int_equal(files_unlink(k->f, path), -1);
	assert_int_equal(files_rmdir(k->f, path), -1);
	assert_int_equal(files_link(k->f, path, fake_path(k, "hard")), -1);
	assert_int_equal(files_rename(k->f, path, fake_path(k, "mine2"), false), -1);
	assert_int_equal(files_rename(k->f, fake_path(k, "mine"), path, false), -1);
	assert_int_equal(tree(k, FILES_TREE_REMOVE, path, NULL), -1);
	assert_int_equal(tree(k, FILES_TREE_COPY, path, fake_path(k, "copy")), -1);
	assert_int_equal(tree(k, FILES_TREE_MOVE, path, fake_path(k, "moved")), -1);
	assert_int_equal(tree(k, FILES_TREE_CHMOD, path, NULL), -1);
}

static char *state_of(const char *dir)
{
	static char out[2][1 << 16];
	static int turn;
	char cmd[2048];
	FILE *p;

	turn ^= 1;
	(void)snprintf(cmd, sizeof(cmd),
	    "cd %s && find outside home/.ssh home/.aws home/.box granted home/ws/cfg -printf "
	    "'%%p %%y %%m %%s %%T@ %%n %%l %%i\\n' | sort",
	    dir);
	p = popen(cmd, "r");
	assert_non_null(p);
	out[turn][fread(out[turn], 1, sizeof(out[turn]) - 1, p)] = '\0';
	pclose(p);
	return out[turn];
}

/* escapes.md FILE-01 */
static void test_links_out(void **state)
{
	struct fake *k = *state;
	char target[256], name[300];
	static const char *const links[][2] = { { "a", "home/.ssh/id" }, { "d", "outside" },
		{ "dangling", "outside/absent" }, { "f", "outside/f" }, { "box", "home/.box" },
		{ "auth", "home/ws/cfg/box.toml" }, { "cred", "home/.aws/credentials" } };

	fake_write(fake_path(k, "mine"), "mine");
	for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++) {
		(void)snprintf(target, sizeof(target), "%s/%s", k->dir, links[i][1]);
		fake_symlink(target, fake_path(k, links[i][0]));
	}
	(void)snprintf(target, sizeof(target), "%s/f", k->outside);
	fake_symlink(target, fake_path(k, "l40"));
	for (int i = 39; i > 0; i--) {
		(void)snprintf(target, sizeof(target), "l%d", i + 1);
		(void)snprintf(name, sizeof(name), "%s/l%d", k->ws, i);
		fake_symlink(target, name);
	}
	fake_symlink("q", fake_path(k, "p"));
	fake_symlink("p", fake_path(k, "q"));
	fake_symlink("/proc/self/root/outside", fake_path(k, "r"));
	fake_symlink("/proc/self/cwd/../..", fake_path(k, "cwd"));
	fake_symlink("/dev/fd/3", fake_path(k, "fd3"));
	char *before = state_of(k->dir);
	static const char *const tried[] = { "a", "d", "dangling", "f", "box", "auth", "cred", "l1",
		"r", "cwd", "fd3", "d/f", "d/new/sub/f", "box/state", "../.ssh", "../.ssh/id",
		"../.box", "../.box/tmp", "cfg/../../.aws/credentials" };
	for (size_t i = 0; i < sizeof(tried) / sizeof(*tried); i++)
		try_all(k, fake_path(k, tried[i]));
	assert_int_equal(files_open(k->f, fake_path(k, "p"), O_RDONLY, 0), -1);
	assert_int_equal(files_error(k->f)->sys, ELOOP);
	/* A hard link of a link would be one more way to what it says. */
	assert_int_equal(files_link(k->f, fake_path(k, "a"), fake_path(k, "hard")), -1);
	assert_int_equal(files_link(k->f, fake_path(k, "dangling"), fake_path(k, "hard")), -1);
	/* rm of the link takes the link, and rm -r never goes through it. */
	assert_int_equal(tree(k, FILES_TREE_REMOVE, fake_path(k, "d"), NULL), 0);
	assert_int_equal(files_unlink(k->f, fake_path(k, "f")), 0);
	assert_string_equal(state_of(k->dir), before);
	assert_string_equal(fake_read(fake_path(k, "mine")), "mine");
}

/* escapes.md FILE-03 */
static void test_protected(void **state)
{
	struct fake *k = *state;
	char path[300];
	static const char *const objects[] = { "home/.ssh", "home/.ssh/id", "home/.aws",
		"home/.aws/credentials", "home/.box", "home/.box/state", "home/.box/tmp",
		"home/ws/cfg/box.toml", "home/ws/cfg/policy.dw", "home/ws/denied",
		"home/ws/denied/x", "home/ws/DENIED", "outside", "outside/f", "outside/absent" };

	fake_write(fake_path(k, "mine"), "mine");
	char *before = state_of(k->dir);
	for (size_t i = 0; i < sizeof(objects) / sizeof(*objects); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", k->dir, objects[i]);
		try_object(k, path);
	}
	/* The folders above: neither moved nor removed nor re-permissioned. */
	assert_int_equal(files_rename(k->f, fake_path(k, "cfg"), fake_path(k, "cfg2"), false), -1);
	assert_int_equal(files_rename(k->f, k->ws, fake_path(k, "../ws2"), false), -1);
	assert_int_equal(files_chmod(k->f, fake_path(k, "cfg"), 0777), -1);
	assert_int_equal(files_rmdir(k->f, fake_path(k, "cfg")), -1);
	assert_int_equal(files_chmod(k->f, k->home, 0777), -1);
	/* Hard links made on the host are caught by identity. */
	(void)snprintf(path, sizeof(path), "%s/cfg/box.toml", k->ws);
	assert_int_equal(link(path, fake_path(k, "innocent")), 0);
	assert_int_equal(files_open(k->f, fake_path(k, "innocent"), O_RDONLY, 0), -1);
	assert_non_null(strstr(files_error(k->f)->text, FILES_TEXT_AUTHORITY));
	assert_int_equal(files_open(k->f, fake_path(k, "innocent"), O_WRONLY | O_TRUNC, 0), -1);
	assert_int_equal(files_unlink(k->f, fake_path(k, "innocent")), -1);
	assert_int_equal(unlink(fake_path(k, "innocent")), 0);
	assert_string_equal(state_of(k->dir), before);
	/* What [floor] allow names is open; a read-only grant is read only. */
	(void)snprintf(path, sizeof(path), "%s/.aws/config", k->home);
	AUTO_FD fd = files_open(k->f, path, O_RDONLY, 0);
	assert_true(fd >= 0);
	(void)snprintf(path, sizeof(path), "%s/granted/g", k->dir);
	AUTO_FD g = files_open(k->f, path, O_RDONLY, 0);
	assert_true(g >= 0);
	assert_int_equal(files_open(k->f, path, O_WRONLY, 0), -1);
	assert_int_equal(files_unlink(k->f, path), -1);
	/* Other entries of a folder with an authority source stay usable. */
	AUTO_FD other = files_open(k->f, fake_path(k, "cfg/other"), O_WRONLY | O_CREAT, 0644);
	assert_true(other >= 0);
	/* The floor is recorded with the tickets of its batch. */
	assert_true(fake_count(k, "floor read_content ~/.ssh/id: " FILES_TEXT_CREDENTIAL) >= 1);
	assert_true(fake_count(k, "floor write_content ~/.box/state: " FILES_TEXT_BOX) >= 1);
}

/* Refusals are the same for what exists and what does not (escapes.md SH-03). */
static void test_no_oracle(void **state)
{
	struct fake *k = *state;
	struct files_stat st;
	char a[512], b[512];

	assert_int_equal(files_stat(k->f, "/etc/passwd", true, &st), -1);
	(void)snprintf(a, sizeof(a), "%d %s", files_error(k->f)->sys,
	    files_error(k->f)->text + strlen("/etc/passwd"));
	assert_int_equal(files_stat(k->f, "/etc/passwx", true, &st), -1);
	(void)snprintf(b, sizeof(b), "%d %s", files_error(k->f)->sys,
	    files_error(k->f)->text + strlen("/etc/passwx"));
	assert_string_equal(a, b);
	/* A link outside is not followed either: the spelling stays. */
	assert_int_equal(files_stat(k->f, "/proc/self/cwd/x", true, &st), -1);
	assert_string_equal(files_error(k->f)->path, "/proc/self/cwd/x");
	assert_int_equal(files_stat(k->f, fake_path(k, "../.ssh/no"), true, &st), -1);
	assert_int_equal(files_error(k->f)->why, FILES_FLOOR);
}

/* --- FILE-02 --- */

struct racer {
	struct fake *k;
	char x[256], y[256];
	atomic_bool stop;
};

static void *race(void *arg)
{
	struct racer *r = arg;

	while (!atomic_load(&r->stop))
		(void)renameat2(AT_FDCWD, r->x, AT_FDCWD, r->y, RENAME_EXCHANGE);
	return NULL;
}

static void run_race(struct fake *k, const char *swapped)
{
	struct racer r = { .k = k };
	char f[300], g[300], z[300];
	pthread_t t;
	struct timespec start, now;
	int done = 0;

	(void)snprintf(r.x, sizeof(r.x), "%s/%s", k->ws, swapped);
	(void)snprintf(r.y, sizeof(r.y), "%s/y", k->ws);
	(void)snprintf(f, sizeof(f), "%s/p/x/f", k->ws);
	(void)snprintf(g, sizeof(g), "%s/p/x/g", k->ws);
	(void)snprintf(z, sizeof(z), "%s/z", k->ws);
	assert_int_equal(pthread_create(&t, NULL, race, &r), 0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		AUTO_FD fd = files_open(k->f, f, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		AUTO_FD in = files_open(k->f, f, O_RDONLY, 0);
		char b[16] = "";

		if (fd >= 0) {
			(void)fd_write_full(fd, "inside", 6);
			done++;
		}
		if (in >= 0) {
			assert_true(fd_read_full(in, b, sizeof(b) - 1) >= 0);
			assert_null(strstr(b, "outside"));
		}
		(void)files_rename(k->f, f, g, false);
		(void)tree(k, FILES_TREE_COPY, f, z);
		(void)files_chmod(k->f, f, 0600);
		(void)files_unlink(k->f, g);
		(void)tree(k, FILES_TREE_REMOVE, f, NULL);
		(void)files_mkdir(k->f, g, 0755);
		(void)files_rmdir(k->f, g);
		(void)files_link(k->f, f, g);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec < 2);
	atomic_store(&r.stop, true);
	pthread_join(t, NULL);
	assert_true(done > 0); /* the race was run, and honest rounds went through */
}

static void test_race(void **state)
{
	struct fake *k = *state;
	char target[256];

	fake_mkdir(fake_path(k, "p"));
	fake_mkdir(fake_path(k, "p/x"));
	(void)snprintf(target, sizeof(target), "%s", k->outside);
	fake_symlink(target, fake_path(k, "y"));
	char *before = strdup(state_of(k->dir));
	run_race(k, "p/x");
	assert_string_equal(state_of(k->dir), before);
	/* One level higher: outside then needs x/f. */
	char cmd[2048];
	(void)snprintf(cmd, sizeof(cmd),
	    "rm -rf %s/y %s/p; mkdir -p %s/p/x %s/x; echo outside > %s/x/f; ln -s %s %s/y", k->ws,
	    k->ws, k->ws, k->outside, k->outside, k->outside, k->ws);
	assert_int_equal(system(cmd), 0);
	free(before);
	before = strdup(state_of(k->dir));
	run_race(k, "p");
	assert_string_equal(state_of(k->dir), before);
	free(before);
}

/* The object is replaced exactly between decision and effect. */
static void replace(void *arg)
{
	struct fake *k = arg;

	(void)rename(fake_path(k, "decoy"), fake_path(k, "victim"));
}

static void test_changed(void **state)
{
	struct fake *k = *state;

	fake_write(fake_path(k, "victim"), "one");
	fake_symlink(k->outside, fake_path(k, "decoy"));
	k->arg = k;
	k->between = replace;
	assert_int_equal(files_open(k->f, fake_path(k, "victim"), O_WRONLY | O_TRUNC, 0), -1);
	assert_string_equal(files_error(k->f)->text, FILES_TEXT_CHANGED);
	assert_int_equal(
	    files_unlink(k->f, fake_path(k, "victim")), 0); /* the link, as decided now */
	k->between = NULL;
	fake_write(fake_path(k, "victim"), "one");
	fake_write(fake_path(k, "decoy"), "two");
	k->between = replace;
	assert_int_equal(files_unlink(k->f, fake_path(k, "victim")), -1);
	assert_string_equal(files_error(k->f)->text, FILES_TEXT_CHANGED);
	assert_string_equal(fake_read(fake_path(k, "victim")), "two");
	/* Made meanwhile by somebody else: the decided path is written, as with open(2). */
	fake_write(fake_path(k, "decoy"), "appended to: ");
	assert_int_equal(unlink(fake_path(k, "victim")), 0);
	AUTO_FD fd = files_open(k->f, fake_path(k, "victim"), O_WRONLY | O_CREAT | O_APPEND, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_string_equal(fake_read(fake_path(k, "victim")), "appended to: x");
	/* … but not through a link. */
	fake_symlink(k->outside, fake_path(k, "decoy"));
	assert_int_equal(unlink(fake_path(k, "victim")), 0);
	assert_int_equal(files_open(k->f, fake_path(k, "victim"), O_WRONLY | O_CREAT, 0644), -1);
	assert_string_equal(files_error(k->f)->text, FILES_TEXT_CHANGED);
}

/* --- hostile frames --- */

static void send_raw(struct fake *k, uint16_t type, const void *p, size_t n)
{
	AUTO_BUF b = buf_with(IPC_BODY_MAX);
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	int fd = fake_channel(k), r;
	struct box_err err;
	struct files_stat st;

	buf_put(&b, p, n);
	(void)ipc_send(fd, type, 1, &b, NULL, 0, &err);
	r = ipc_recv(fd, &m, &err);
	if (r == 1)
		fail_msg("a malformed frame of type %u was answered with %u", type, m.type);
	fd_drop(&fd);
	assert_int_equal(files_stat(k->f, k->ws, true, &st), 0); /* others go on */
}

static void test_malformed(void **state)
{
	struct fake *k = *state;
	static const uint8_t junk[64] = { 0 };
	static const char nul_path[] = "\0\0\0\0\4/a\0b";
	static const char rel[] = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1x";

	for (uint16_t type = FILES_OPEN; type <= FILES_NOTE + 1; type++) {
		if (type == FILES_TREE_BEGIN || type == FILES_TREE_ADD)
			continue;
		send_raw(k, type, junk, sizeof(junk));
	}
	send_raw(k, 0, junk, 0);
	send_raw(k, MON_ASK_FS, junk, 4);
	send_raw(k, FILES_TREE_GO, junk, 0);
	send_raw(k, FILES_TREE_ADD, junk, 2);
	send_raw(k, FILES_TREE_BEGIN, rel, sizeof(rel) - 1);
	send_raw(k, FILES_STAT, nul_path, sizeof(nul_path) - 1);
	send_raw(k, FILES_READLINK, junk, 3);
	/* A client that says nothing, or only half of it, ends cleanly. */
	int fd = fake_channel(k);
	AUTO_BUF b = buf_with(64);
	struct box_err err;
	buf_put_byte(&b, FILES_TREE_REMOVE);
	for (int i = 0; i < 3; i++)
		buf_put_u32(&b, 0);
	buf_put_str(&b, SV(""));
	assert_int_equal(ipc_send(fd, FILES_TREE_BEGIN, 1, &b, NULL, 0, &err), 0);
	fd_drop(&fd);
}

/* shell.md 8.9: linear in the number of components. */
static void test_linear(void **state)
{
	struct fake *k = *state;
	char path[FILES_PATH_MAX];
	struct timespec a, b;
	struct files_stat st;
	size_t n = strlen(k->ws);

	memcpy(path, k->ws, n);
	for (; n + 3 < sizeof(path); n += 2)
		memcpy(path + n, "/x", 2);
	path[n] = '\0';
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(files_stat(k->f, path, true, &st), -1);
		assert_int_equal(files_error(k->f)->sys, ENOENT);
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_true((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < 1000);
	/* Deep and real, then back up again. */
	n = strlen(k->ws);
	for (int i = 0; i < 900; i++) {
		memcpy(path + n, "/y", 3);
		n += 2;
		assert_int_equal(mkdir(path, 0755), 0);
	}
	for (int i = 0; i < 450; i++, n += 3)
		memcpy(path + n, "/..", 4);
	assert_int_equal(files_stat(k->f, path, true, &st), 0);
	assert_int_equal(tree(k, FILES_TREE_REMOVE, fake_path(k, "y"), NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_links_out, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_protected, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_no_oracle, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_race, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_changed, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_malformed, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_linear, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_links_out, fake_setup_tmp, fake_teardown),
		cmocka_unit_test_setup_teardown(test_protected, fake_setup_tmp, fake_teardown),
		cmocka_unit_test_setup_teardown(test_no_oracle, fake_setup_tmp, fake_teardown),
		cmocka_unit_test_setup_teardown(test_changed, fake_setup_tmp, fake_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
