/* Whole trees: everything decided before the first change, a refusal leaves everything in place,
 * and what is done is what was decided. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "fake.h"
#include "base/ban.h"

struct notes {
	struct buf text;
};

static void on_note(
    void *arg, enum files_tree_event ev, const char *shown, const struct files_err *e)
{
	struct notes *n = arg;

	if (ev == FILES_TREE_DID)
		buf_putf(&n->text, "did %s\n", shown);
	else
		buf_putf(&n->text, "%s: %s\n", shown, e->text);
}

/* A snapshot of the scratch tree: names, types, modes, sizes, times, content sums. */
static char *snapshot(const char *dir)
{
	static char out[8][1 << 16];
	static int turn;
	char cmd[1024];
	FILE *p;
	size_t n;

	turn = (turn + 1) % 8;
	(void)snprintf(cmd, sizeof(cmd),
	    "cd %s && find . -printf '%%P %%y %%m %%s %%T@ %%n %%l\\n' | sort; find . -type f "
	    "-exec "
	    "cksum {} + | sort",
	    dir);
	p = popen(cmd, "r");
	assert_non_null(p);
	n = fread(out[turn], 1, sizeof(out[turn]) - 1, p);
	out[turn][n] = '\0';
	pclose(p);
	return out[turn];
}

static int tree(
    struct fake *k, struct files_tree_opts o, const char *src, const char *dst, struct notes *n)
{
	const char *paths[] = { fake_path(k, src) }, *shown[] = { src };

	buf_clear(&n->text);
	return files_tree(
	    k->f, &o, paths, shown, 1, dst != NULL ? fake_path(k, dst) : NULL, on_note, n);
}

static void make_tree(struct fake *k)
{
	fake_mkdir(fake_path(k, "t"));
	fake_mkdir(fake_path(k, "t/a"));
	fake_mkdir(fake_path(k, "t/a/b"));
	fake_write(fake_path(k, "t/one"), "1");
	fake_write(fake_path(k, "t/a/two"), "22");
	fake_write(fake_path(k, "t/a/b/three"), "333");
	fake_symlink("one", fake_path(k, "t/link"));
	fake_symlink(k->outside, fake_path(k, "t/a/out"));
}

static bool no_three(void *arg, enum mon_fs_op op, sv path)
{
	(void)arg;
	return !(sv_ends(path, SV("three")) && op != FS_READ_METADATA);
}

static void test_remove(void **state)
{
	struct fake *k = *state;
	struct notes n = { buf_with(1 << 20) };

	make_tree(k);
	char *before = snapshot(k->dir);
	k->permit = no_three;
	assert_int_equal(
	    tree(k, (struct files_tree_opts){ .op = FILES_TREE_REMOVE, .recursive = true }, "t",
	        NULL, &n),
	    -1);
	assert_string_equal(buf_cstr(&n.text),
	    "t/a/b/three: policy denied this operation on '~/ws/t/a/b/three' [default-deny]: No "
	    "permit policy matched this request.\n");
	assert_string_equal(snapshot(k->dir), before);
	/* Not a folder without -r; absent; with force. */
	k->permit = NULL;
	assert_int_equal(
	    tree(k, (struct files_tree_opts){ .op = FILES_TREE_REMOVE }, "t", NULL, &n), -1);
	assert_string_equal(buf_cstr(&n.text), "t: Is a directory\n");
	assert_int_equal(
	    tree(k, (struct files_tree_opts){ .op = FILES_TREE_REMOVE }, "nix", NULL, &n), -1);
	assert_string_equal(buf_cstr(&n.text), "nix: No such file or directory\n");
	assert_int_equal(tree(k, (struct files_tree_opts){ .op = FILES_TREE_REMOVE, .force = true },
	                     "nix", NULL, &n),
	    0);
	(void)fake_log(k);
	assert_int_equal(tree(k,
	                     (struct files_tree_opts){
	                         .op = FILES_TREE_REMOVE, .recursive = true, .verbose = true },
	                     "t", NULL, &n),
	    0);
	assert_false(fake_exists(fake_path(k, "t")));
	assert_non_null(strstr(buf_cstr(&n.text), "did t/a/b/three\n"));
	char outside[256];
	(void)snprintf(outside, sizeof(outside), "%s/f", k->outside);
	assert_string_equal(fake_read(outside), "outside");
	const char *log = fake_log(k);
	assert_non_null(strstr(log, "read_metadata ~/ws/t\n"));
	assert_non_null(strstr(log, "enumerate ~/ws/t/a/b\n"));
	assert_non_null(strstr(log, "remove_file ~/ws/t/a/out\n"));
	assert_non_null(strstr(log, "remove_dir ~/ws/t\n"));
	assert_null(strstr(log, "enumerate ~/ws/t/a/out"));
	buf_fini(&n.text);
}

static void test_remove_floor(void **state)
{
	struct fake *k = *state;
	struct notes n = { buf_with(1 << 20) };
	char *before = snapshot(k->dir);

	/* The folder holds box.toml: nothing in it goes. */
	fake_write(fake_path(k, "cfg/other"), "x");
	before = snapshot(k->dir);
	assert_int_equal(
	    tree(k, (struct files_tree_opts){ .op = FILES_TREE_REMOVE, .recursive = true }, "cfg",
	        NULL, &n),
	    -1);
	assert_non_null(strstr(buf_cstr(&n.text), FILES_TEXT_AUTHORITY));
	assert_string_equal(snapshot(k->dir), before);
	assert_int_equal(fake_count(k, "floor remove"), 1);
	/* The whole home, with credential stores and the box in it. */
	assert_int_equal(
	    tree(k, (struct files_tree_opts){ .op = FILES_TREE_REMOVE, .recursive = true }, "..",
	        NULL, &n),
	    -1);
	assert_string_equal(snapshot(k->dir), before);
	/* mv of a parent of box.toml, and onto it. */
	assert_int_equal(
	    tree(k, (struct files_tree_opts){ .op = FILES_TREE_MOVE }, "cfg", "cfg2", &n), -1);
	assert_int_equal(tree(k, (struct files_tree_opts){ .op = FILES_TREE_MOVE }, "cfg/other",
	                     "cfg/box.toml", &n),
	    -1);
	assert_non_null(strstr(buf_cstr(&n.text), FILES_TEXT_AUTHORITY));
	assert_int_equal(tree(k, (struct files_tree_opts){ .op = FILES_TREE_COPY }, "cfg/other",
	                     "cfg/box.toml", &n),
	    -1);
	assert_int_equal(
	    tree(k, (struct files_tree_opts){ .op = FILES_TREE_COPY }, "cfg/box.toml", "copy", &n),
	    -1);
	assert_string_equal(snapshot(k->dir), before);
	buf_fini(&n.text);
}

static void test_copy(void **state)
{
	struct fake *k = *state;
	struct notes n = { buf_with(1 << 20) };
	const struct files_tree_opts cp = { .op = FILES_TREE_COPY };
	const struct files_tree_opts cp_r = {
		.op = FILES_TREE_COPY, .recursive = true, .no_deref = true, .mode_clear = 022
	};
	struct stat st;

	make_tree(k);
	assert_int_equal(unlink(fake_path(k, "t/a/out")), 0);
	assert_int_equal(tree(k, cp, "t/a/two", "two", &n), 0);
	assert_string_equal(fake_read(fake_path(k, "two")), "22");
	assert_int_equal(tree(k, cp, "t/link", "two", &n), 0);
	assert_string_equal(fake_read(fake_path(k, "two")), "1");
	assert_int_equal(tree(k, cp, "t", "x", &n), -1);
	assert_string_equal(buf_cstr(&n.text), "t: Is a directory\n");
	assert_int_equal(tree(k, cp, "two", "two", &n), -1);
	assert_string_equal(buf_cstr(&n.text), "two: " FILES_SAME_FILE "\n");
	assert_int_equal(chmod(fake_path(k, "t/a"), 0555), 0);
	assert_int_equal(tree(k, cp_r, "t", "x", &n), 0);
	assert_string_equal(fake_read(fake_path(k, "x/a/b/three")), "333");
	assert_int_equal(lstat(fake_path(k, "x/link"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(stat(fake_path(k, "x/a"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0555);
	assert_int_equal(chmod(fake_path(k, "x/a"), 0755), 0);
	/* Merge into what is there. */
	fake_write(fake_path(k, "x/one"), "old");
	assert_int_equal(unlink(fake_path(k, "x/a/two")), 0);
	assert_int_equal(tree(k,
	                     (struct files_tree_opts){ .op = FILES_TREE_COPY,
	                         .recursive = true,
	                         .no_deref = true,
	                         .no_clobber = true },
	                     "t/.", "x", &n),
	    0);
	assert_string_equal(fake_read(fake_path(k, "x/one")), "old");
	assert_string_equal(fake_read(fake_path(k, "x/a/two")), "22");
	assert_int_equal(tree(k, cp_r, "t", "t/a/self", &n), -1);
	assert_string_equal(buf_cstr(&n.text), "t: " FILES_INTO_SELF "\n");
	/* A refusal deep inside: nothing is made. */
	k->permit = no_three;
	char *before = snapshot(k->dir);
	assert_int_equal(tree(k, cp_r, "t", "y", &n), -1);
	assert_string_equal(snapshot(k->dir), before);
	buf_fini(&n.text);
}

/* A copied link is a way to read what it will lead to. */
static void test_copy_link_out(void **state)
{
	struct fake *k = *state;
	struct notes n = { buf_with(1 << 20) };

	make_tree(k);
	char *before = snapshot(k->dir);
	assert_int_equal(tree(k,
	                     (struct files_tree_opts){
	                         .op = FILES_TREE_COPY, .recursive = true, .no_deref = true },
	                     "t", "x", &n),
	    -1);
	assert_non_null(strstr(buf_cstr(&n.text), FILES_TEXT_OUTSIDE));
	assert_string_equal(snapshot(k->dir), before);
	buf_fini(&n.text);
}

static void test_move(void **state)
{
	struct fake *k = *state;
	struct notes n = { buf_with(1 << 20) };
	const struct files_tree_opts mv = { .op = FILES_TREE_MOVE };

	make_tree(k);
	k->permit = no_three;
	char *before = snapshot(k->dir);
	assert_int_equal(tree(k, mv, "t", "u", &n), -1);
	assert_non_null(strstr(buf_cstr(&n.text), "t/a/b/three: policy denied"));
	assert_string_equal(snapshot(k->dir), before);
	k->permit = NULL;
	(void)fake_log(k);
	assert_int_equal(tree(k, mv, "t/one", "t/a/two", &n), 0);
	assert_string_equal(fake_log(k), "read_metadata ~/ws/t/one\ndone 1\n"
	                                 "read_content ~/ws/t/one\nrename ~/ws/t/one\nremove_file "
	                                 "~/ws/t/a/two\nrename ~/ws/t/a/two\n"
	                                 "done 1\ndone 1\ndone 1\ndone 1\n");
	assert_string_equal(fake_read(fake_path(k, "t/a/two")), "1");
	assert_int_equal(tree(k, mv, "t", "u", &n), 0);
	assert_string_equal(fake_read(fake_path(k, "u/a/b/three")), "333");
	assert_int_equal(tree(k, mv, "u", "u/a/u", &n), -1);
	assert_string_equal(buf_cstr(&n.text), "u: " FILES_INTO_SELF "\n");
	/* To the box's /tmp: often another file system or mount; the result is the same. */
	const char *src[] = { fake_path(k, "u") };
	const char *shown[] = { "u" };
	assert_int_equal(files_tree(k->f, &mv, src, shown, 1, "/tmp/u", on_note, &n), 0);
	assert_false(fake_exists(fake_path(k, "u")));
	char moved[256];
	(void)snprintf(moved, sizeof(moved), "%s/tmp/u/a/b/three", k->box);
	assert_string_equal(fake_read(moved), "333");
	/* rename(2) */
	fake_write(fake_path(k, "p"), "p");
	fake_write(fake_path(k, "q"), "q");
	assert_int_equal(files_rename(k->f, fake_path(k, "p"), fake_path(k, "q"), true), -1);
	assert_int_equal(files_error(k->f)->sys, EEXIST);
	assert_int_equal(files_rename(k->f, fake_path(k, "p"), fake_path(k, "q"), false), 0);
	assert_string_equal(fake_read(fake_path(k, "q")), "p");
	assert_int_equal(files_rename(k->f, fake_path(k, "p"), fake_path(k, "q"), false), -1);
	assert_int_equal(files_error(k->f)->sys, ENOENT);
	buf_fini(&n.text);
}

/* Across a mount point, everything is copied and then removed (only where the test may mount). */
static void test_move_across(void **state)
{
	struct fake *k = *state;
	struct notes n = { buf_with(1 << 20) };
	const struct files_tree_opts mv = { .op = FILES_TREE_MOVE, .verbose = true };
	char cmd[512], to[256];
	struct stat before, after;

	(void)snprintf(
	    cmd, sizeof(cmd), "mkdir %s/mnt; mount -t tmpfs none %s/mnt 2>/dev/null", k->ws, k->ws);
	if (geteuid() != 0 || system(cmd) != 0)
		skip();
	make_tree(k);
	assert_int_equal(chmod(fake_path(k, "t/a/two"), 0640), 0);
	assert_int_equal(stat(fake_path(k, "t/a/two"), &before), 0);
	int r = tree(k, mv, "t", "mnt/t", &n);
	(void)snprintf(to, sizeof(to), "%s/mnt/t/a/two", k->ws);
	int ok = stat(to, &after) == 0 && after.st_mode == before.st_mode &&
	         after.st_mtim.tv_nsec == before.st_mtim.tv_nsec && !fake_exists(fake_path(k, "t"));
	(void)snprintf(to, sizeof(to), "%s/mnt/t/a/out", k->ws);
	ok = ok && lstat(to, &after) == 0 && S_ISLNK(after.st_mode);
	(void)snprintf(cmd, sizeof(cmd), "umount %s/mnt", k->ws);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(r, 0);
	assert_true(ok);
	assert_string_equal(buf_cstr(&n.text), "did t\n");
	buf_fini(&n.text);
}

static void test_chmod(void **state)
{
	struct fake *k = *state;
	struct notes n = { buf_with(1 << 20) };
	struct stat st;

	make_tree(k);
	assert_int_equal(tree(k,
	                     (struct files_tree_opts){ .op = FILES_TREE_CHMOD,
	                         .recursive = true,
	                         .mode_set = 0600,
	                         .mode_clear = 0777,
	                         .mode_x_if_dir = 0 },
	                     "t/a/two", NULL, &n),
	    0);
	assert_int_equal(stat(fake_path(k, "t/a/two"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(tree(k,
	                     (struct files_tree_opts){
	                         .op = FILES_TREE_CHMOD, .recursive = true, .mode_clear = 0077 },
	                     "t", NULL, &n),
	    0);
	assert_int_equal(stat(fake_path(k, "t/a/b"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(k->outside, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	assert_int_equal(
	    tree(k, (struct files_tree_opts){ .op = FILES_TREE_CHMOD, .mode_set = 04000 }, "t",
	        NULL, &n),
	    -1);
	buf_fini(&n.text);
}

/* Many operands and entries: several frames, several questions. */
static void test_many(void **state)
{
	struct fake *k = *state;
	struct notes n = { buf_with(1 << 20) };
	enum { N = 3000 };
	static char path[N][256];
	const char *src[N], *shown[N];

	fake_mkdir(fake_path(k, "m"));
	for (int i = 0; i < N; i++) {
		(void)snprintf(path[i], sizeof(path[i]), "%s/m/%d", k->ws, i);
		fake_write(path[i], "x");
		src[i] = path[i];
		shown[i] = path[i];
	}
	assert_int_equal(
	    tree(k, (struct files_tree_opts){ .op = FILES_TREE_COPY, .recursive = true }, "m", "m2",
	        &n),
	    0);
	const struct files_tree_opts rm = { .op = FILES_TREE_REMOVE };
	assert_int_equal(files_tree(k->f, &rm, src, shown, N, NULL, on_note, &n), 0);
	assert_int_equal(rmdir(fake_path(k, "m")), 0);
	assert_int_equal(
	    tree(k, (struct files_tree_opts){ .op = FILES_TREE_REMOVE, .recursive = true }, "m2",
	        NULL, &n),
	    0);
	assert_int_equal(buf_cstr(&n.text)[0], 0);
	buf_fini(&n.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_remove, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_remove_floor, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_copy, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_copy_link_out, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_move, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_move_across, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_chmod, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_many, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_remove, fake_setup_tmp, fake_teardown),
		cmocka_unit_test_setup_teardown(test_remove_floor, fake_setup_tmp, fake_teardown),
		cmocka_unit_test_setup_teardown(test_copy, fake_setup_tmp, fake_teardown),
		cmocka_unit_test_setup_teardown(test_copy_link_out, fake_setup_tmp, fake_teardown),
		cmocka_unit_test_setup_teardown(test_move, fake_setup_tmp, fake_teardown),
		cmocka_unit_test_setup_teardown(test_move_across, fake_setup_tmp, fake_teardown),
		cmocka_unit_test_setup_teardown(test_chmod, fake_setup_tmp, fake_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
