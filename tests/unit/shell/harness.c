/* Command lines in a scratch directory. See harness.h. */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "fake_box.h"
#include "base/ban.h"

#define TIMEOUT_NS (20 * NS_PER_SEC)

void sh_test_init(struct sh_test *t)
{
	*t = (struct sh_test){ .dir = "/var/tmp/sh-test-XXXXXX" };
	assert_non_null(mkdtemp(t->dir));
}

static void clear(struct sh_test *t)
{
	free(t->out);
	free(t->err);
	free(t->log);
	t->out = t->err = t->log = NULL;
}

void sh_test_fini(struct sh_test *t)
{
	char cmd[256];

	clear(t);
	free(t->content);
	t->content = NULL;
	(void)snprintf(
	    cmd, sizeof(cmd), "chmod -R u+rwx %s 2>/dev/null; rm -rf %s", t->dir, t->dir);
	assert_int_equal(system(cmd), 0);
}

static void path_of(struct sh_test *t, const char *name, char *out, size_t n)
{
	(void)snprintf(out, n, "%s/%s", t->dir, name);
}

void sh_test_file(struct sh_test *t, const char *name, const char *content)
{
	char path[512];
	int fd;

	path_of(t, name, path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_full(fd, content, strlen(content)), 0);
	(void)close(fd);
}

const char *sh_test_read(struct sh_test *t, const char *name)
{
	char path[512];
	AUTO_BUF b = buf_with((size_t)64 << 20);
	struct box_err err;

	path_of(t, name, path, sizeof(path));
	free(t->content);
	t->content = NULL;
	if (access(path, F_OK) != 0)
		return NULL;
	assert_int_equal(fd_read_file(path, b.max, &b, &err), 0);
	t->content = sh_xdup(buf_sv(&b));
	return t->content;
}

static int scratch(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static char *taken(int fd, size_t *n)
{
	AUTO_BUF b = buf_with((size_t)256 << 20);
	struct box_err err;

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(fd_read_all(fd, &b, "output", &err), 0);
	(void)close(fd);
	*n = b.n;
	return sh_xdup(buf_sv(&b));
}

/* The log with the directory's name replaced by DIR. */
static char *shown(const struct sh_test *t, const struct buf *log)
{
	AUTO_BUF b = buf_with((size_t)64 << 20);
	sv rest = buf_sv(log);
	ptrdiff_t at;

	while ((at = sv_find_sv(rest, sv_c(t->dir))) >= 0) {
		buf_put(&b, rest.p, (size_t)at);
		buf_put_c(&b, "DIR");
		rest = sv_sub(rest, (size_t)at + strlen(t->dir), rest.n);
	}
	buf_put_sv(&b, rest);
	return sh_xdup(buf_sv(&b));
}

int sh_test_run(struct sh_test *t, const char *text)
{
	char home[128];
	const char *env[] = { "PATH=/usr/bin:/bin", home, NULL };
	AUTO_BUF log = buf_with((size_t)64 << 20);
	int in = scratch(), out = scratch(), err = scratch();
	struct fake_box b = {
		.start = { .name = "sh",
		    .text = sv_c(text),
		    .script_fd = -1,
		    .zero = "sh",
		    .cwd = t->dir,
		    .workspace = t->dir,
		    .home = t->dir,
		    .operator_home = "/nonexistent-home",
		    .path = "/usr/bin:/bin" },
		.fds = { in, out, err },
		.tmp = "/tmp",
		.no_tools = t->no_tools,
		.now_ns = t->now_ns,
		.timeout_ns = TIMEOUT_NS,
		.permit_fs = t->permit_fs,
		.permit_exec = t->permit_exec,
		.arg = t->arg,
		.log = &log,
	};

	clear(t);
	(void)snprintf(home, sizeof(home), "HOME=%s", t->dir);
	b.start.env = (char *const *)(uintptr_t)(t->env != NULL ? t->env : env);
	if (t->input != NULL) {
		size_t n = t->input_n != 0 ? t->input_n : strlen(t->input);

		assert_int_equal(fd_write_full(in, t->input, n), 0);
		assert_int_equal(lseek(in, 0, SEEK_SET), 0);
	}
	(void)fflush(NULL);
	t->status = fake_box_run(&b);
	(void)close(in);
	t->out = taken(out, &t->out_n);
	t->err = taken(err, &t->err_n);
	t->log = shown(t, &log);
	return t->status;
}

void sh_test_expect(struct sh_test *t, const char *text, const char *out, int status)
{
	(void)sh_test_run(t, text);
	if (strcmp(t->out, out) != 0 || t->status != status)
		fail_msg("command: %s\nexpected (%d):\n%s\ngot (%d):\n%s\nstderr:\n%s", text,
		    status, out, t->status, t->out, t->err);
}
