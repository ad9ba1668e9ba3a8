/* box-files, one object at a time: what is decided, in which spelling, and what happens then. */
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
#include "base/ipc.h"
#include "fake.h"
#include "base/ban.h"

static bool no_secret(void *arg, enum mon_fs_op op, sv path)
{
	(void)arg;
	(void)op;
	return sv_find_sv(path, SV("secret")) < 0;
}

static bool nothing(void *arg, enum mon_fs_op op, sv path)
{
	(void)arg;
	(void)op;
	(void)path;
	return false;
}

static void put(struct fake *k, const char *path, int flags, const char *text)
{
	AUTO_FD fd = files_open(k->f, path, flags, 0644);

	if (fd < 0)
		fail_msg("open %s: %s", path, files_error(k->f)->text);
	assert_int_equal(fd_write_full(fd, text, strlen(text)), 0);
}

static void test_open(void **state)
{
	struct fake *k = *state;
	const char *x = fake_path(k, "x");
	char b[16];

	put(k, x, O_WRONLY | O_CREAT | O_TRUNC, "hello");
	assert_string_equal(fake_log(k), "write_content ~/ws/x\ndone 2\n");
	put(k, x, O_WRONLY | O_APPEND, "!");
	assert_string_equal(fake_read(x), "hello!");
	(void)fake_log(k);
	AUTO_FD fd = files_open(k->f, fake_path(k, "./..//ws/x"), O_RDWR, 0);
	assert_true(fd >= 0);
	assert_int_equal(fd_read_full(fd, b, 16), 6);
	assert_string_equal(
	    fake_log(k), "read_content ~/ws/x\nwrite_content ~/ws/x\ndone 2\ndone 2\n");
	put(k, x, O_WRONLY | O_TRUNC, "");
	assert_string_equal(fake_read(x), "");
	/* Errors come after the decision, and a folder is never handed out. */
	(void)fake_log(k);
	assert_int_equal(files_open(k->f, fake_path(k, "none/y"), O_WRONLY | O_CREAT, 0644), -1);
	assert_int_equal(files_error(k->f)->sys, ENOENT);
	assert_string_equal(fake_log(k), "write_content ~/ws/none/y\ndone 4\n");
	assert_int_equal(files_open(k->f, k->ws, O_RDONLY, 0), -1);
	assert_int_equal(files_error(k->f)->sys, EISDIR);
	assert_int_equal(files_open(k->f, k->ws, O_RDONLY | O_DIRECTORY, 0), -1);
	assert_int_equal(files_error(k->f)->sys, EISDIR);
	assert_int_equal(files_open(k->f, x, O_WRONLY | O_CREAT | O_EXCL, 0644), -1);
	assert_int_equal(files_error(k->f)->sys, EEXIST);
	assert_int_equal(files_open(k->f, fake_path(k, "x/"), O_RDONLY, 0), -1);
	assert_int_equal(files_error(k->f)->sys, ENOTDIR);
	assert_int_equal(files_open(k->f, "", O_RDONLY, 0), -1);
	assert_int_equal(files_error(k->f)->sys, ENOENT);
}

static void test_denied(void **state)
{
	struct fake *k = *state;

	fake_write(fake_path(k, "secret"), "s3");
	k->permit = no_secret;
	assert_int_equal(files_open(k->f, fake_path(k, "secret"), O_RDWR | O_TRUNC, 0), -1);
	assert_int_equal(files_error(k->f)->why, FILES_DENIED);
	assert_string_equal(files_error(k->f)->text,
	    "policy denied this operation on '~/ws/secret' [default-deny]: No permit policy "
	    "matched "
	    "this request.");
	assert_string_equal(fake_read(fake_path(k, "secret")), "s3");
	/* A refusal says the same about what exists and what does not. */
	assert_int_equal(files_open(k->f, fake_path(k, "secret2/x"), O_RDONLY, 0), -1);
	assert_int_equal(files_error(k->f)->why, FILES_DENIED);
}

static void test_open_all(void **state)
{
	struct fake *k = *state;
	struct files_open_req r[7];
	char name[7][256];
	int fds[7];
	size_t bad;

	fake_write(fake_path(k, "old"), "old");
	k->permit = no_secret;
	struct files_open_req two[] = { { fake_path(k, "old"), O_WRONLY | O_TRUNC, 0 },
		{ fake_path(k, "new"), O_WRONLY | O_CREAT, 0644 },
		{ fake_path(k, "secret"), O_RDONLY, 0 } };
	assert_int_equal(files_open_all(k->f, two, 3, fds, &bad), -1);
	assert_int_equal(bad, 2);
	assert_string_equal(fake_read(fake_path(k, "old")), "old");
	assert_false(fake_exists(fake_path(k, "new")));
	/* The last cannot be opened: the first two are as before. */
	two[2].path = fake_path(k, "absent");
	assert_int_equal(files_open_all(k->f, two, 3, fds, &bad), -1);
	assert_int_equal(bad, 2);
	assert_int_equal(files_error(k->f)->sys, ENOENT);
	assert_string_equal(fake_read(fake_path(k, "old")), "old");
	assert_false(fake_exists(fake_path(k, "new")));
	/* More descriptors than one frame carries; the same new file twice. */
	for (int i = 0; i < 7; i++) {
		(void)snprintf(name[i], sizeof(name[i]), "%s/n%d", k->ws, i / 2);
		r[i] = (struct files_open_req){ name[i], O_WRONLY | O_CREAT, 0600 };
	}
	assert_int_equal(files_open_all(k->f, r, 7, fds, &bad), 0);
	for (int i = 0; i < 7; i++) {
		char one = (char)('0' + i);

		assert_int_equal(write(fds[i], &one, 1), 1);
		fd_drop(&fds[i]);
	}
	assert_string_equal(fake_read(name[1]), "1");
	assert_string_equal(fake_read(name[6]), "6");
}

static void ignore_entry(void *arg, const struct files_entry *e, const struct files_stat *st)
{
	(void)arg;
	(void)e;
	(void)st;
}

static void test_stat_and_list(void **state)
{
	struct fake *k = *state;
	struct files_stat st;
	AUTO_BUF out = buf_with(4096);

	fake_write(fake_path(k, "a"), "12345");
	fake_symlink("a", fake_path(k, "l"));
	assert_int_equal(files_stat(k->f, fake_path(k, "l"), true, &st), 0);
	assert_true(S_ISREG(st.mode) && st.size == 5);
	assert_int_equal(files_stat(k->f, fake_path(k, "l"), false, &st), 0);
	assert_true(S_ISLNK(st.mode));
	assert_string_equal(
	    fake_log(k), "read_metadata ~/ws/a\ndone 1\nread_metadata ~/ws/l\ndone 1\n");
	/* A link that leads back to where it stands. */
	fake_symlink(".", fake_path(k, "here"));
	assert_int_equal(files_stat(k->f, fake_path(k, "here"), true, &st), 0);
	assert_true(S_ISDIR(st.mode));
	AUTO_BUF at = buf_with(4096);
	assert_int_equal(files_chdir(k->f, fake_path(k, "here"), &at), 0);
	assert_string_equal(buf_cstr(&at), k->ws);
	assert_int_equal(
	    files_list(k->f, fake_path(k, "here/here/."), false, ignore_entry, NULL), 0);
	assert_int_equal(files_readlink(k->f, fake_path(k, "l"), &out), 0);
	assert_string_equal(buf_cstr(&out), "a");
	assert_int_equal(files_readlink(k->f, fake_path(k, "a"), &out), -1);
	assert_int_equal(files_error(k->f)->sys, EINVAL);
	buf_clear(&out);
	assert_int_equal(files_realpath(k->f, fake_path(k, "l/../../ws/l"), true, &out), -1);
	assert_int_equal(files_error(k->f)->sys, ENOTDIR);
	assert_int_equal(files_realpath(k->f, fake_path(k, "../ws/l"), true, &out), 0);
	assert_string_equal(buf_cstr(&out), fake_path(k, "a"));
	buf_clear(&out);
	assert_int_equal(files_realpath(k->f, fake_path(k, "new"), true, &out), -1);
	assert_int_equal(files_realpath(k->f, fake_path(k, "new"), false, &out), 0);
	assert_string_equal(buf_cstr(&out), fake_path(k, "new"));
	buf_clear(&out);
	assert_int_equal(files_chdir(k->f, fake_path(k, "a"), &out), -1);
	assert_int_equal(files_error(k->f)->sys, ENOTDIR);
	assert_int_equal(files_chdir(k->f, fake_path(k, "cfg/.."), &out), 0);
	assert_string_equal(buf_cstr(&out), k->ws);
	assert_int_equal(files_access(k->f, fake_path(k, "a"), R_OK), 0);
	assert_int_equal(files_access(k->f, fake_path(k, "a"), X_OK), -1);
	assert_int_equal(files_error(k->f)->sys, EACCES);
}

static void on_entry(void *arg, const struct files_entry *e, const struct files_stat *st)
{
	buf_putf(arg, "%s%s ", e->name, st == NULL ? "?" : "");
}

static void test_list(void **state)
{
	struct fake *k = *state;
	AUTO_BUF out = buf_with(1 << 20);

	k->permit = no_secret;
	fake_mkdir(fake_path(k, "d"));
	fake_write(fake_path(k, "d/b"), "");
	fake_write(fake_path(k, "d/B"), "");
	fake_write(fake_path(k, "d/secret"), "");
	assert_int_equal(files_list(k->f, fake_path(k, "d"), false, on_entry, &out), 0);
	assert_string_equal(buf_cstr(&out), "B? b? secret? ");
	assert_string_equal(fake_log(k), "enumerate ~/ws/d\ndone 1\n");
	buf_clear(&out);
	assert_int_equal(files_list(k->f, fake_path(k, "d"), true, on_entry, &out), 0);
	assert_string_equal(buf_cstr(&out), "B b secret? ");
	/* Many entries: several frames, more than one window of questions. */
	for (int i = 0; i < 3000; i++) {
		char name[512];

		(void)snprintf(name, sizeof(name), "%s/d/%04d-%0200d", k->ws, i, 0);
		fake_write(name, "");
	}
	buf_clear(&out);
	assert_int_equal(files_list(k->f, fake_path(k, "d"), true, on_entry, &out), 0);
	assert_int_equal(out.n, 3000 * 206 + strlen("B b secret? "));
	k->permit = nothing;
	assert_int_equal(files_list(k->f, fake_path(k, "d"), true, on_entry, &out), -1);
	assert_int_equal(files_error(k->f)->why, FILES_DENIED);
}

static void test_names(void **state)
{
	struct fake *k = *state;
	struct timespec ts[2] = { { 1000, 5 }, { 2000, 7 } };
	char link[8];
	AUTO_BUF out = buf_with(4096);
	struct stat st;
	int fd;

	assert_int_equal(files_mkdir(k->f, fake_path(k, "d/"), 0751), 0);
	assert_int_equal(files_mkdir(k->f, fake_path(k, "d"), 0751), -1);
	assert_int_equal(files_error(k->f)->sys, EEXIST);
	assert_int_equal(files_chmod(k->f, fake_path(k, "d"), 0700), 0);
	assert_int_equal(stat(fake_path(k, "d"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(files_chmod(k->f, fake_path(k, "d"), 04700), -1);
	put(k, fake_path(k, "d/f"), O_WRONLY | O_CREAT, "x");
	assert_int_equal(files_chmod(k->f, fake_path(k, "d/f"), 0), 0);
	assert_int_equal(files_chmod(k->f, fake_path(k, "d/f"), 0604), 0);
	assert_int_equal(files_utimes(k->f, fake_path(k, "d/f"), ts, true), 0);
	assert_int_equal(stat(fake_path(k, "d/f"), &st), 0);
	assert_true(
	    st.st_mtim.tv_sec == 2000 && st.st_mtim.tv_nsec == 7 && (st.st_mode & 0777) == 0604);
	assert_int_equal(files_rmdir(k->f, fake_path(k, "d")), -1);
	assert_int_equal(files_error(k->f)->sys, ENOTEMPTY);
	assert_int_equal(files_unlink(k->f, fake_path(k, "d")), -1);
	assert_int_equal(files_error(k->f)->sys, EISDIR);
	assert_int_equal(files_link(k->f, fake_path(k, "d/f"), fake_path(k, "d/g")), 0);
	assert_int_equal(files_symlink(k->f, "f", fake_path(k, "d/l")), 0);
	assert_int_equal(readlink(fake_path(k, "d/l"), (char[8]){ 0 }, 8), 1);
	(void)fake_log(k);
	assert_int_equal(files_symlink(k->f, "../x/../q", fake_path(k, "d/l2")), 0);
	assert_string_equal(fake_log(k),
	    "symlink ~/ws/q\nread_content ~/ws/q\nsymlink ~/ws/d/l2\ndone 1\ndone 1\ndone 1\n");
	(void)fake_log(k);
	assert_int_equal(files_symlink(k->f, "g", fake_path(k, "d/l")), -1);
	assert_int_equal(files_error(k->f)->sys, EEXIST);
	(void)fake_log(k);
	assert_int_equal(files_symlink_over(k->f, "g", fake_path(k, "d/l")), 0);
	assert_string_equal(fake_log(k),
	    "symlink ~/ws/d/g\nread_content ~/ws/d/g\nremove_file ~/ws/d/l\nsymlink ~/ws/d/l\n"
	    "done 1\ndone 1\ndone 1\ndone 1\n");
	assert_int_equal(readlink(fake_path(k, "d/l"), link, sizeof(link)), 1);
	assert_int_equal(link[0], 'g');
	put(k, fake_path(k, "d/other"), O_WRONLY | O_CREAT, "y");
	assert_int_equal(files_link_over(k->f, fake_path(k, "d/other"), fake_path(k, "d/l")), 0);
	assert_string_equal(fake_read(fake_path(k, "d/l")), "y");
	assert_int_equal(files_link_over(k->f, fake_path(k, "d/other"), fake_path(k, "d/l")), 0);
	assert_int_equal(files_unlink(k->f, fake_path(k, "d/l")), 0);
	assert_true(fake_exists(fake_path(k, "d/f")));
	assert_int_equal(files_rmdir(k->f, fake_path(k, "d/.")), -1);
	assert_int_equal(files_error(k->f)->sys, EINVAL);
	assert_int_equal(files_mktemp(k->f, fake_path(k, "t.XXXXXX"), false, &fd, &out), 0);
	assert_true(fd >= 0 && fake_exists(buf_cstr(&out)));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	fd_drop(&fd);
	buf_clear(&out);
	assert_int_equal(files_mktemp(k->f, "/tmp/d.XXXXXX", true, &fd, &out), 0);
	assert_true(sv_starts(buf_sv(&out), SV("/tmp/d.")) && fd == -1);
	assert_false(fake_exists(buf_cstr(&out)));
	assert_int_equal(files_rmdir(k->f, k->ws), -1);
	assert_int_equal(files_error(k->f)->sys, EACCES); /* a folder above box.toml */
}

/* /tmp is the box's own, `..` of it is `/`. */
static void test_tmp(void **state)
{
	struct fake *k = *state;
	char real[256];
	AUTO_BUF out = buf_with(4096);

	put(k, "/tmp/hi", O_WRONLY | O_CREAT, "box tmp");
	assert_string_equal(fake_log(k), "write_content /tmp/hi\ndone 2\n");
	(void)snprintf(real, sizeof(real), "%s/tmp/hi", k->box);
	assert_string_equal(fake_read(real), "box tmp");
	assert_false(fake_exists("/tmp/hi"));
	assert_int_equal(files_list(k->f, "/tmp", false, on_entry, &out), 0);
	assert_string_equal(buf_cstr(&out), "hi? ");
	/* The same folder by its real name is box state. */
	assert_int_equal(files_open(k->f, real, O_RDONLY, 0), -1);
	assert_int_equal(files_error(k->f)->why, FILES_FLOOR);
	assert_int_equal(files_open(k->f, "/tmp/../tmp/./hi", O_RDONLY | O_TRUNC, 0) >= 0, 1);
	assert_int_equal(files_rmdir(k->f, "/tmp"), -1);
	assert_int_equal(files_open(k->f, "/dev/null", O_WRONLY, 0) >= 0, 1);
}

static void test_null_is_undecided(void **state)
{
	struct fake *k = *state;
	struct files_stat st;

	k->permit = nothing;
	AUTO_FD fd = files_open(k->f, "/dev/null", O_RDWR | O_CREAT | O_TRUNC, 0666);
	assert_true(fd >= 0);
	assert_int_equal(files_stat(k->f, "/dev/null", true, &st), 0);
	assert_string_equal(fake_log(k), "");
	assert_int_equal(files_open(k->f, "/dev/zero", O_RDONLY, 0), -1);
	assert_int_equal(files_error(k->f)->why, FILES_DENIED);
	k->permit = NULL;
	AUTO_FD zero = files_open(k->f, "/dev/zero", O_RDONLY, 0);
	assert_true(zero >= 0);
	assert_int_equal(files_open(k->f, "/dev/mem", O_RDONLY, 0), -1);
	assert_int_equal(files_error(k->f)->why, FILES_FLOOR);
	assert_int_equal(files_unlink(k->f, "/dev/null"), -1);
	assert_int_equal(files_error(k->f)->why, FILES_FLOOR);
}

static void test_locate(void **state)
{
	struct fake *k = *state;
	AUTO_BUF out = buf_with(4096);

	fake_write(fake_path(k, "tool"), "#!/bin/sh\n");
	assert_int_equal(files_locate(k->f, "tool", k->ws, &out), -1);
	assert_int_equal(files_error(k->f)->sys, ENOENT);
	assert_string_equal(fake_log(k), "");
	assert_int_equal(chmod(fake_path(k, "tool"), 0755), 0);
	char var[512];
	(void)snprintf(var, sizeof(var), ":relative:/nowhere:%s:/bin", k->ws);
	assert_int_equal(files_locate(k->f, "tool", var, &out), 0);
	assert_string_equal(buf_cstr(&out), fake_path(k, "tool"));
	buf_clear(&out);
	/* An undecided answer says nothing of what is no program, or protected. */
	char secret[512];
	(void)snprintf(secret, sizeof(secret), "%s/.ssh/id", k->home);
	assert_int_equal(files_locate(k->f, secret, var, &out), -1);
	assert_int_equal(files_error(k->f)->sys, ENOENT);
	assert_int_equal(chmod(secret, 0755), 0);
	assert_int_equal(files_locate(k->f, secret, var, &out), -1);
	assert_int_equal(files_error(k->f)->sys, ENOENT);
	assert_int_equal(files_locate(k->f, "/etc/passwd", var, &out), -1);
	assert_int_equal(files_error(k->f)->sys, ENOENT);
	/* Not decided: the spawn decision names what was found. */
	k->permit = nothing;
	assert_int_equal(files_locate(k->f, "sh", "/usr/bin:/bin", &out), 0);
	assert_int_equal(access(buf_cstr(&out), X_OK), 0);
	assert_string_equal(fake_log(k), "");
}

/* A FIFO stops its own opener and nobody else. */
static void *open_fifo_reader(void *arg)
{
	AUTO_FD fd = open(arg, O_RDONLY | O_CLOEXEC);
	static char b[8];

	assert_true(fd >= 0);
	assert_int_equal(fd_read_full(fd, b, 4), 4);
	return b;
}

static void *open_fifo_writer(void *arg)
{
	struct fake *k = arg;
	struct files *f = fake_client(k);
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/fifo", k->ws);
	AUTO_FD fd = files_open(f, path, O_WRONLY, 0);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "data", 4), 4);
	files_free(f);
	return NULL;
}

static void test_fifo(void **state)
{
	struct fake *k = *state;
	char path[256];
	pthread_t w, r;
	void *got;

	(void)snprintf(path, sizeof(path), "%s/fifo", k->ws);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(pthread_create(&w, NULL, open_fifo_writer, k), 0);
	while (fake_count(k, "write_content ~/ws/fifo") == 0)
		;
	put(k, fake_path(k, "other"), O_WRONLY | O_CREAT, "served meanwhile");
	assert_int_equal(pthread_create(&r, NULL, open_fifo_reader, path), 0);
	pthread_join(w, NULL);
	pthread_join(r, &got);
	assert_memory_equal(got, "data", 4);
	/* A client that goes away while it waits leaves nothing behind. */
	struct files *f = fake_client(k);
	AUTO_BUF b = buf_with(1024);
	struct box_err err;
	int raw = fake_channel(k);
	buf_put_u16(&b, 1);
	buf_put_u32(&b, O_WRONLY);
	buf_put_u32(&b, 0);
	buf_put_str(&b, sv_c(path));
	assert_int_equal(ipc_send(raw, FILES_OPEN, 1, &b, NULL, 0, &err), 0);
	while (fake_count(k, "write_content ~/ws/fifo") == 1)
		;
	fd_drop(&raw);
	while (fake_count(k, "abandon 1") == 0)
		;
	files_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_open, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_denied, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_open_all, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_stat_and_list, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_list, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_names, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_tmp, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_null_is_undecided, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_locate, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_fifo, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(test_open, fake_setup_tmp, fake_teardown),
		cmocka_unit_test_setup_teardown(test_denied, fake_setup_tmp, fake_teardown),
		cmocka_unit_test_setup_teardown(test_open_all, fake_setup_tmp, fake_teardown),
		cmocka_unit_test_setup_teardown(test_stat_and_list, fake_setup_tmp, fake_teardown),
		cmocka_unit_test_setup_teardown(test_list, fake_setup_tmp, fake_teardown),
		cmocka_unit_test_setup_teardown(test_names, fake_setup_tmp, fake_teardown),
		cmocka_unit_test_setup_teardown(test_tmp, fake_setup_tmp, fake_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
