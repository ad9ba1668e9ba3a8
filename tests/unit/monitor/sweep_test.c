/* Emptying the temporary folder: depth, links, folders without rights. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "monitor/sweep.h"

static size_t count(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fdopendir(fd);
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	return n - 2;
}

static void make_file(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	(void)close(fd);
}

static void test_everything_goes_and_nothing_else(void **state)
{
	char top[] = "/tmp/sweep-test-XXXXXX", out[] = "/tmp/sweep-out-XXXXXX";
	struct box_err err = { 0 };
	int dir, at, outside;

	(void)state;
	assert_non_null(mkdtemp(top));
	assert_non_null(mkdtemp(out));
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	outside = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_file(outside, "keep");
	make_file(dir, "plain");
	assert_int_equal(symlinkat(out, dir, "link-to-dir"), 0);
	assert_int_equal(mkdirat(dir, "closed", 0700), 0);
	at = openat(dir, "closed", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	make_file(at, "inside");
	assert_int_equal(symlinkat(out, at, "link"), 0);
	(void)close(at);
	assert_int_equal(fchmodat(dir, "closed", 0, 0), 0);
	/* Deeper than PATH_MAX allows to name. */
	at = dup(dir);
	for (int i = 0; i < 3000; i++) {
		int next;

		assert_int_equal(mkdirat(at, "d", 0700), 0);
		next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)close(at);
		at = next;
	}
	make_file(at, "bottom");
	(void)close(at);
	assert_int_equal(sweep_dir(dir, &err), 0);
	assert_int_equal(count(dir), 0);
	assert_int_equal(count(outside), 1);
	assert_int_equal(unlinkat(outside, "keep", 0), 0);
	(void)close(dir);
	(void)close(outside);
	assert_int_equal(rmdir(top), 0);
	assert_int_equal(rmdir(out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(
	    test_everything_goes_and_nothing_else) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
