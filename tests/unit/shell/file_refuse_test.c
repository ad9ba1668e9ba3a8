/* The file commands when something is refused: nothing is changed before everything is
 * permitted, the message names what was refused (spec box-config 3.2, shell.md 7.3, 9), and the
 * decisions asked for are these and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness.h"
#include "base/ban.h"

static bool no_secret(void *arg, enum mon_fs_op op, const char *path)
{
	(void)arg;
	(void)op;
	return strstr(path, "secret") == NULL;
}

/* Everything may be looked at, nothing changed. */
static bool look_only(void *arg, enum mon_fs_op op, const char *path)
{
	(void)arg;
	(void)path;
	return op <= FS_EXEC;
}

static bool no_metadata_of_secret(void *arg, enum mon_fs_op op, const char *path)
{
	(void)arg;
	return op != FS_READ_METADATA || strstr(path, "secret") == NULL;
}

static void init(struct sh_test *t)
{
	sh_test_init(t);
	(void)sh_test_run(
	    t, "mkdir -p d/e; echo 1 > d/one; echo 2 > d/e/secret; echo 3 > d/three; echo f > f");
	assert_int_equal(t->status, 0);
	t->permit_fs = no_secret;
}

/* Messages hold the temporary folder's name: compare by what they contain. */
static void expect_err(struct sh_test *t, const char *text, int status, const char *part)
{
	assert_int_equal(sh_test_run(t, text), status);
	if (strstr(t->err, part) == NULL)
		fail_msg("%s: '%s' is not in '%s'", text, part, t->err);
}

static void whole(struct sh_test *t)
{
	t->permit_fs = NULL;
	sh_test_expect(t, "find . | sort; cat d/one d/e/secret d/three f",
	    ".\n./d\n./d/e\n./d/e/secret\n./d/one\n./d/three\n./f\n1\n2\n3\nf\n", 0);
	t->permit_fs = no_secret;
}

static void test_trees_stay(void **state)
{
	struct sh_test t = { 0 };

	(void)state;
	init(&t);
	expect_err(&t, "rm -rf d", 1, "rm: d/e/secret: policy denied this operation on '");
	whole(&t);
	expect_err(&t, "rm -rf f d", 1, "d/e/secret");
	whole(&t);
	expect_err(&t, "cp -r d x", 1, "strands-shell: cp: policy denied this operation on '");
	whole(&t);
	expect_err(&t, "mv d x", 1, "strands-shell: mv: policy denied this operation on '");
	whole(&t);
	expect_err(&t, "mv f secret", 1, "secret' [policy: test].");
	whole(&t);
	expect_err(&t, "chmod -R 700 d", 1, "strands-shell: chmod: policy denied");
	whole(&t);
	expect_err(&t, "rm d/e/secret", 1, "rm: d/e/secret: policy denied");
	whole(&t);
	t.permit_fs = look_only;
	expect_err(&t, "rm f", 1, "rm: f: policy denied");
	expect_err(&t, "cp f g", 1, "cp: policy denied");
	expect_err(&t, "touch f g", 1, "touch: policy denied");
	expect_err(&t, "mkdir n; mkdir -p n/o", 1, "mkdir: policy denied");
	expect_err(&t, "ln -s f l", 1, "ln: policy denied");
	expect_err(&t, "ln -sf d f", 1, "ln: policy denied");
	expect_err(&t, "rmdir d", 1, "rmdir: policy denied");
	expect_err(&t, "chmod 600 f", 1, "chmod: policy denied");
	expect_err(&t, "find . -name f -delete", 1, "find: policy denied");
	whole(&t);
	sh_test_fini(&t);
}

static void test_looks(void **state)
{
	struct sh_test t = { 0 };

	(void)state;
	init(&t);
	/* A refused entry shows, without its metadata. */
	assert_int_equal(sh_test_run(&t, "ls -l d/e"), 0);
	assert_non_null(strstr(t.out, "---------- "));
	assert_non_null(strstr(t.out, " 0 "));
	assert_non_null(strstr(t.out, " secret\n"));
	expect_err(&t, "ls secret", 2, "ls: policy denied");
	expect_err(&t, "ls -l d/e/secret", 2, "ls: policy denied");
	expect_err(&t, "stat d/e/secret", 1, "stat: policy denied");
	expect_err(&t, "find secret", 1, "find: policy denied");
	expect_err(&t, "du -s secret", 1, "du: policy denied");
	expect_err(&t, "realpath secret", 1, "realpath: policy denied");
	expect_err(&t, "readlink secret", 1, "readlink: policy denied");
	/* Names alone need no metadata. */
	sh_test_expect(&t, "find d -name 'se*'; ls d/e", "d/e/secret\nsecret\n", 0);
	/* The same answer for what is not there. */
	expect_err(&t, "ls nosecret", 2, "ls: policy denied");
	/* rm -f of what may not be looked at is an error, not an absent file. */
	expect_err(&t, "rm -f nosecret", 1, "rm: nosecret: policy denied");
	sh_test_fini(&t);
}

static void test_decisions(void **state)
{
	struct sh_test t = { 0 };

	(void)state;
	init(&t);
	t.permit_fs = NULL;
	sh_test_expect(&t, "rm d/one", "", 0);
	assert_string_equal(
	    t.log, "exec rm | rm d/one\nread_metadata DIR/d/one\nremove_file DIR/d/one\n");
	sh_test_expect(&t, "cp f g", "", 0);
	assert_string_equal(t.log, "exec cp | cp f g\nread_metadata DIR/g\nread_metadata "
	                           "DIR/f\nread_content DIR/f\nwrite_content DIR/g\n");
	sh_test_expect(&t, "mv f g", "", 0);
	assert_string_equal(t.log, "exec mv | mv f g\nread_metadata DIR/g\nread_metadata "
	                           "DIR/f\nread_content DIR/f\nrename DIR/f\n"
	                           "remove_file DIR/g\nrename DIR/g\n");
	sh_test_expect(&t, "mkdir -p d/x/y", "", 0);
	assert_string_equal(t.log, "exec mkdir | mkdir -p d/x/y\nread_metadata "
	                           "DIR/d/x/y\nread_metadata DIR/d/x\nread_metadata DIR/d\n"
	                           "create_dir DIR/d/x\ncreate_dir DIR/d/x/y\n");
	sh_test_expect(&t, "ls d/x", "y\n", 0);
	assert_string_equal(t.log, "exec ls | ls d/x\nread_metadata DIR/d/x\nenumerate DIR/d/x\n");
	sh_test_expect(&t, "find d/x -exec echo {} \\;", "d/x\nd/x/y\n", 0);
	assert_string_equal(t.log,
	    "exec find | find d/x -exec echo '{}' ';'\nread_metadata DIR/d/x\nexec echo | echo "
	    "d/x\n"
	    "enumerate DIR/d/x\nexec echo | echo d/x/y\nenumerate DIR/d/x/y\n");
	sh_test_expect(&t, "touch new", "", 0);
	assert_string_equal(
	    t.log, "exec touch | touch new\nread_metadata DIR/new\nwrite_content DIR/new\n");
	sh_test_expect(&t, "chmod 600 g", "", 0);
	assert_string_equal(
	    t.log, "exec chmod | chmod 600 g\nread_metadata DIR/g\nset_permissions DIR/g\n");
	sh_test_expect(&t, "ln -s g l", "", 0);
	assert_string_equal(t.log, "exec ln | ln -s g l\nread_metadata DIR/l\nsymlink "
	                           "DIR/g\nread_content DIR/g\nsymlink DIR/l\n");
	sh_test_fini(&t);
}

/* A refused probe of a folder above is not a missing folder (box-config-and-policy 2.3). */
static void test_mkdir_probe(void **state)
{
	struct sh_test t = { 0 };

	(void)state;
	init(&t);
	t.permit_fs = no_metadata_of_secret;
	sh_test_expect(&t, "mkdir d/secretdir; mkdir -p d/secretdir/x/y; echo $?", "1\n", 0);
	assert_null(strstr(t.log, "create_dir DIR/d/secretdir\ncreate_dir DIR/d/secretdir\n"));
	sh_test_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trees_stay),
		cmocka_unit_test(test_looks),
		cmocka_unit_test(test_decisions),
		cmocka_unit_test(test_mkdir_probe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
