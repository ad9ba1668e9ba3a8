/* The text commands and policy: what is decided, in which order, what a refusal leaves, and what
 * has no peer on the host. Equality with the host's tools is text_host_test.c's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "harness.h"
#include "base/ban.h"

/* Refuses everything about names that begin with "no", and writing to names that begin with
 * "ro". */
static bool permit_fs(void *arg, enum mon_fs_op op, const char *path)
{
	const char *base = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;

	(void)arg; /* the names say it */
	if (strncmp(base, "no", 2) == 0)
		return false;
	return op != FS_WRITE_CONTENT || strncmp(base, "ro", 2) != 0;
}

static void make(struct sh_test *t)
{
	sh_test_init(t);
	t->permit_fs = permit_fs;
	sh_test_file(t, "f", "a\nb\n");
	sh_test_file(t, "no", "secret\n");
	sh_test_file(t, "ro", "keep\n");
}

#define DENIED "policy denied this operation on '"

static void reports_refusals(void **state)
{
	static const struct {
		const char *text, *name, *out;
		int status;
	} rows[] = {
		{ "cut -c1 no f", "cut", "a\nb\n", 1 },
		{ "grep . no f", "grep", "f:a\nf:b\n", 2 },
		{ "grep -s . no f", "grep", "f:a\nf:b\n", 2 },
		{ "head -n1 no f", "head", "==> f <==\na\n", 1 },
		{ "sed p no", "sed", "", 2 },
		{ "sort no f", "sort", "", 2 },
		{ "tail -n1 no f", "tail", "==> f <==\nb\n", 1 },
		{ "uniq no", "uniq", "", 1 },
		{ "wc -l no f", "wc", "2 f\n2 total\n", 1 },
		{ "uniq f no", "uniq", "", 1 },
		{ "sort -o no f", "sort", "", 2 },
		{ "sed 'w no' f", "sed", "", 1 },
		{ "sed -f no f", "sed", "", 1 },
		{ "grep -f no f", "grep", "", 2 },
		{ "sed '1r no' f", "sed", "a\nb\n", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sh_test t;
		char want[64];

		make(&t);
		sh_test_expect(&t, rows[i].text, rows[i].out, rows[i].status);
		(void)snprintf(want, sizeof(want), "strands-shell: %s: " DENIED, rows[i].name);
		if (strstr(t.err, want) == NULL || strstr(t.err, "[policy: test]") == NULL)
			fail_msg("%s: %s", rows[i].text, t.err);
		assert_string_equal(sh_test_read(&t, "no"), "secret\n");
		sh_test_fini(&t);
	}
}

static void edits_in_place(void **state)
{
	struct sh_test t;

	(void)state;
	make(&t);
	sh_test_expect(&t, "sed -i s/a/X/ f", "", 0);
	assert_string_equal(sh_test_read(&t, "f"), "X\nb\n");
	assert_non_null(strstr(t.log, "read_content DIR/f\nwrite_content DIR/f\n"));
	/* a refused write leaves the file, and the backup is decided on its own */
	sh_test_expect(&t, "sed -i s/keep/lost/ ro", "", 4);
	assert_string_equal(sh_test_read(&t, "ro"), "keep\n");
	sh_test_expect(&t, "sed -i.no s/X/Y/ f", "", 0);
	assert_string_equal(sh_test_read(&t, "f.no"), "X\nb\n");
	sh_test_expect(&t, "sed -i'no*' s/Y/Z/ f", "", 4);
	assert_string_equal(sh_test_read(&t, "f"), "Y\nb\n");
	assert_null(sh_test_read(&t, "nof"));
	/* the file keeps its identity */
	char path[128];
	struct stat a, b;

	(void)snprintf(path, sizeof(path), "%s/f", t.dir);
	assert_int_equal(stat(path, &a), 0);
	sh_test_expect(&t, "sed -i s/Y/Z/ f", "", 0);
	assert_int_equal(stat(path, &b), 0);
	assert_true(a.st_ino == b.st_ino);
	/* sort -o on its own input */
	sh_test_expect(&t, "printf '2\\n1\\n' > s; sort -o s s; cat s", "1\n2\n", 0);
	sh_test_fini(&t);
}

static void walks_by_decisions(void **state)
{
	struct sh_test t;

	(void)state;
	make(&t);
	t.permit_fs = NULL;
	sh_test_expect(
	    &t, "mkdir -p d/nope d/e; echo x > d/e/y; echo x > d/nob; ln -s e/y d/l", "", 0);
	t.permit_fs = permit_fs;
	sh_test_expect(&t, "grep -r x d", "d/e/y:x\n", 2);
	assert_non_null(strstr(t.log, "enumerate DIR/d\n"));
	assert_non_null(strstr(t.log, "enumerate DIR/d/e\n"));
	assert_non_null(strstr(t.log, "read_content DIR/d/e/y\n"));
	assert_non_null(strstr(t.log, "deny enumerate DIR/d/nope\n"));
	assert_non_null(strstr(t.log, "deny read_content DIR/d/nob\n"));
	assert_null(strstr(t.log, "DIR/d/l\n")); /* links are not followed */
	/* without a match on the way nothing more is asked than needed */
	sh_test_expect(&t, "grep -rq x d/e", "", 0);
	sh_test_fini(&t);
}

static void runs_nothing(void **state)
{
	static const char *const scripts[] = { "1e", "e touch bad", "s/a/touch bad/e", "s/a/b/ge",
		"1{e\n}" };

	(void)state;
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		struct sh_test t;
		char text[128];

		make(&t);
		(void)snprintf(text, sizeof(text), "sed '%s' f", scripts[i]);
		sh_test_expect(&t, text, "", 1);
		assert_non_null(strstr(t.err, "is not available in this shell"));
		assert_null(sh_test_read(&t, "bad"));
		sh_test_fini(&t);
	}
}

static void shares_input(void **state)
{
	struct sh_test t;

	(void)state;
	make(&t);
	sh_test_file(&t, "n", "1\n2\n3\n4\n");
	sh_test_expect(&t, "{ head -n 1; sed 1q; cat; } < n", "1\n2\n3\n4\n", 0);
	sh_test_expect(&t, "{ head -c 3; echo; cat; } < n", "1\n2\n\n3\n4\n", 0);
	sh_test_expect(&t, "{ grep -m1 2; cat; } < n", "2\n3\n4\n", 0);
	sh_test_expect(&t, "while read -r x; do echo $x | tr 1-9 a-i; done < n", "a\nb\nc\nd\n", 0);
	sh_test_fini(&t);
}

static void ends(void **state)
{
	struct sh_test t;

	(void)state;
	make(&t);
	/* the reader goes away */
	sh_test_expect(&t, "tail -s 0.1 -f f | head -n 1", "a\n", 0);
	sh_test_expect(&t, "sed ':a;p;ba' f | head -n 2", "a\na\n", 0);
	sh_test_expect(&t, "grep -c . f; yes 2>/dev/null | head -n 1 | wc -l >/dev/null; echo on",
	    "2\non\n", 0);
	/* a signal does, also in a loop without input or output */
	sh_test_expect(
	    &t, "(sed ':a;ba' f & p=$!; sleep 0.2; kill $p; wait $p; echo $?)", "143\n", 0);
	sh_test_expect(
	    &t, "(tail -f f & p=$!; sleep 0.2; kill $p; wait $p; echo $?)", "a\nb\n143\n", 0);
	sh_test_fini(&t);
}

static void refuses_options(void **state)
{
	static const struct {
		const char *text, *err;
		int status;
	} rows[] = {
		{ "cut -y", "cut: invalid option -- 'y'\n", 1 },
		{ "grep -u x", "grep: invalid option -- 'u'\n", 2 },
		{ "head -y", "head: invalid option -- 'y'\n", 1 },
		{ "sed --debug p f", "sed: unrecognized option '--debug'\n", 1 },
		{ "sort -R f", "sort: invalid option -- 'R'\n", 2 },
		{ "tail --pid=1 f", "tail: unrecognized option '--pid=1'\n", 1 },
		{ "tr -y", "tr: invalid option -- 'y'\n", 1 },
		{ "uniq --group f", "uniq: unrecognized option '--group'\n", 1 },
		{ "wc --files0-from=f", "wc: unrecognized option '--files0-from=f'\n", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sh_test t;

		make(&t);
		sh_test_expect(&t, rows[i].text, "", rows[i].status);
		if (strncmp(t.err, rows[i].err, strlen(rows[i].err)) != 0)
			fail_msg("%s: %s", rows[i].text, t.err);
		sh_test_fini(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_refusals),
		cmocka_unit_test(edits_in_place),
		cmocka_unit_test(walks_by_decisions),
		cmocka_unit_test(runs_nothing),
		cmocka_unit_test(shares_input),
		cmocka_unit_test(ends),
		cmocka_unit_test(refuses_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
