/* What is decided, in which order, and what a refusal does (shell.md 7 and 9, design.md 6 and 10,
 * escapes.md SH-*). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "harness.h"
#include "base/ban.h"

static bool no_rm(void *arg, bool spawn, const char *program, const char *command)
{
	(void)arg;
	(void)command;
	return !(strcmp(program, "rm") == 0 || (spawn && strcmp(program, "/usr/bin/rm") == 0));
}

static bool no_secret(void *arg, enum mon_fs_op op, const char *path)
{
	const char *base = strrchr(path, '/');

	(void)arg;
	(void)op;
	return base == NULL || strcmp(base, "/secret") != 0;
}

/* escapes.md SH-01: the same refusal at every place a command can stand. */
static void forbidden_everywhere(void **state)
{
	static const char *const forms[] = { "rm victim", "true; rm victim", "true && rm victim",
		"false || rm victim", "echo | rm victim", "rm victim & wait", "x=$(rm victim)",
		"x=`rm victim`", "cat <(rm victim)", "cat <<E\n$(rm victim)\nE",
		"f() { rm victim; }; f", "alias x=rm\nx victim", "trap 'rm victim' EXIT",
		"eval eval eval \"'rm victim'\"", "echo 'rm victim' > s; . ./s",
		"case $(rm victim) in *) ;; esac", "if rm victim; then :; fi",
		"while rm victim; do :; done", "(rm victim)", "{ rm victim; }", "command rm victim",
		"exec rm victim", "builtin eval rm victim", "${u:=$(rm victim)}",
		"[[ -n $(rm victim) ]]", "a[$(rm victim)0]=1", "(( $(rm victim)0 ))",
		"sh -c 'rm victim'", "echo 'rm victim' | sh",
		"printf '#!/bin/sh\\nrm victim\\n' > s; chmod +x s; ./s", "X=rm; $X victim",
		"\\rm victim", "'r'm victim", "env rm victim", "echo victim | xargs rm",
		"set -x; PS4='$(rm victim)'; :", "r() { \"$@\"; }; r rm victim",
		"env -i /usr/bin/rm victim", "/usr/bin/rm victim", "command -p rm victim",
		"for i in $(rm victim); do :; done",
		"PROMPT_COMMAND='rm victim'; ENV='rm victim'; rm victim" };
	struct sh_test t;

	(void)state;
	sh_test_init(&t);
	t.permit_exec = no_rm;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		sh_test_file(&t, "victim", "here\n");
		(void)sh_test_run(&t, forms[i]);
		if (sh_test_read(&t, "victim") == NULL || strstr(t.log, "deny ") == NULL ||
		    strstr(t.err,
		        "strands-shell: effect denied: policy denied this operation on '") == NULL)
			fail_msg("%s\nlog:\n%s\nerr:\n%s", forms[i], t.log, t.err);
	}
	sh_test_fini(&t);
}

static void many_commands(void **state)
{
	char text[20000];
	size_t n = 0;
	struct sh_test t;

	(void)state;
	sh_test_init(&t);
	t.permit_exec = no_rm;
	sh_test_file(&t, "victim", "here\n");
	for (int i = 0; i < 1000; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "true; ");
	(void)snprintf(text + n, sizeof(text) - n, "rm victim; echo $?");
	sh_test_expect(&t, text, "126\n", 0);
	assert_non_null(sh_test_read(&t, "victim"));
	sh_test_fini(&t);
}

static void messages(void **state)
{
	struct sh_test t;

	(void)state;
	sh_test_init(&t);
	t.permit_exec = no_rm;
	t.permit_fs = no_secret;
	sh_test_file(&t, "secret", "k\n");
	assert_int_equal(sh_test_run(&t, "rm x"), 126);
	assert_string_equal(t.err,
	    "strands-shell: effect denied: policy denied this operation on 'rm' [policy: test].\n");
	assert_string_equal(t.out, "");
	assert_int_equal(sh_test_run(&t, "nosuchprogram"), 127);
	assert_string_equal(t.err, "strands-shell: nosuchprogram: command not found\n");
	assert_int_equal(sh_test_run(&t, "cat secret"), 1);
	assert_non_null(strstr(t.err, "strands-shell: cat: policy denied this operation on '"));
	assert_int_equal(sh_test_run(&t, "echo x > secret"), 1);
	assert_non_null(strstr(t.err, "strands-shell: secret: policy denied this operation on '"));
	assert_string_equal(sh_test_read(&t, "secret"), "k\n");
	sh_test_fini(&t);
}

/* All stages, then all redirections, then everything runs. */
static void order_in_a_pipeline(void **state)
{
	struct sh_test t;

	(void)state;
	sh_test_init(&t);
	sh_test_file(&t, "in", "b\na\n");
	sh_test_expect(&t, "cat < in | tee copy | cat > out; cat out copy", "b\na\nb\na\n", 0);
	assert_int_equal(
	    strncmp(t.log,
	        "exec cat | cat\nexec tee | tee copy\nexec cat | cat\nread_content DIR/in\n"
	        "write_content DIR/out\n",
	        80),
	    0);
	sh_test_fini(&t);
}

static void refused_stage_runs_nothing(void **state)
{
	struct sh_test t;

	(void)state;
	sh_test_init(&t);
	t.permit_exec = no_rm;
	sh_test_file(&t, "keep", "old\n");
	sh_test_expect(&t, "echo new > keep | rm victim | echo more > made; echo $?", "126\n", 0);
	assert_string_equal(sh_test_read(&t, "keep"), "old\n");
	assert_null(sh_test_read(&t, "made"));
	sh_test_fini(&t);
}

static void refused_redirection_truncates_nothing(void **state)
{
	struct sh_test t;

	(void)state;
	sh_test_init(&t);
	t.permit_fs = no_secret;
	sh_test_file(&t, "keep", "old\n");
	sh_test_file(&t, "secret", "k\n");
	sh_test_expect(&t, "cat > keep < secret; echo $?", "1\n", 0);
	assert_string_equal(sh_test_read(&t, "keep"), "old\n");
	sh_test_expect(&t, "echo a > keep | cat < secret; echo $?", "1\n", 0);
	assert_string_equal(sh_test_read(&t, "keep"), "old\n");
	sh_test_fini(&t);
}

/* The decision's command, program and words are what runs (SH-02). */
static void words_decided_are_words_run(void **state)
{
	struct sh_test t;

	(void)state;
	sh_test_init(&t);
	sh_test_file(&t, "-rf", "");
	(void)sh_test_run(&t, "x='a b'; printf '%s\\n' \"$x\" * 'it'\"'\"s $'\\x2d'");
	assert_non_null(strstr(t.log, "exec printf | printf '%s\\n' 'a b' -rf 'it'\\''s' -\n"));
	(void)sh_test_run(&t, "f() { :; }; f 1; alias e=echo\ne hi");
	assert_non_null(strstr(t.log, "exec f | f 1\n"));
	assert_non_null(strstr(t.log, "exec echo | echo hi\n"));
	(void)sh_test_run(&t, "x=1; if true; then y=2; fi; (( x++ )); [[ a ]]");
	assert_string_equal(t.log, "exec true | true\n");
	(void)sh_test_run(&t, "echo a b c | xargs -n1 echo; env echo x");
	assert_non_null(strstr(t.log, "exec xargs | xargs -n1 echo\nexec echo | echo a\nexec echo "
	                              "| echo b\nexec echo | echo c\n"
	                              "exec env | env echo x\nexec echo | echo x\n"));
	sh_test_fini(&t);
}

/* SH-03: names of descriptors are those of the command, never the shell's own. */
static void own_descriptors(void **state)
{
	struct sh_test t;
	static const char *const tries[] = { "cat /dev/fd/3", "exec 4<&256; cat <&4", "cat <&257",
		"cat /dev/fd/300", "exec 300< /dev/null", "read x <&1000; echo $x", NULL };

	(void)state;
	sh_test_init(&t);
	for (size_t i = 0; tries[i] != NULL; i++) {
		(void)sh_test_run(&t, tries[i]);
		if (strcmp(t.out, i == 5 ? "\n" : "") != 0 || t.err[0] == '\0')
			fail_msg("%s\nout:\n%s\nerr:\n%s", tries[i], t.out, t.err);
	}
	sh_test_expect(&t, "exec 3< /dev/null; cat /dev/fd/3; echo $?", "0\n", 0);
	sh_test_expect(&t, "test -e /dev/null && echo yes; echo x > /dev/null", "yes\n", 0);
	assert_null(strstr(t.log, "_metadata /dev/null"));
	assert_null(strstr(t.log, "_content /dev/null"));
	sh_test_fini(&t);
}

static bool nothing_listed(void *arg, enum mon_fs_op op, const char *path)
{
	(void)arg;
	(void)path;
	return op != FS_ENUMERATE && op != FS_READ_METADATA;
}

static void refused_probes_look_absent(void **state)
{
	struct sh_test t;

	(void)state;
	sh_test_init(&t);
	t.permit_fs = nothing_listed;
	sh_test_file(&t, "f", "x\n");
	sh_test_expect(&t, "echo *; [ -e f ]; echo $?; test -f f; echo $?", "*\n1\n1\n", 0);
	sh_test_fini(&t);
}

static void limits(void **state)
{
	struct sh_test t;

	(void)state;
	sh_test_init(&t);
	(void)sh_test_run(&t, "f() { f; }; f; echo no");
	assert_non_null(strstr(t.err, "maximum recursion depth exceeded"));
	assert_string_equal(t.out, "");
	(void)sh_test_run(&t, "eval \"$(printf '(%.0s' $(seq 400))\"");
	assert_non_null(strstr(t.err, "nested too deeply"));
	(void)sh_test_run(&t, "echo {1..1000000}");
	assert_non_null(strstr(t.err, "too many words"));
	sh_test_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forbidden_everywhere),
		cmocka_unit_test(many_commands),
		cmocka_unit_test(messages),
		cmocka_unit_test(order_in_a_pipeline),
		cmocka_unit_test(refused_stage_runs_nothing),
		cmocka_unit_test(refused_redirection_truncates_nothing),
		cmocka_unit_test(words_decided_are_words_run),
		cmocka_unit_test(own_descriptors),
		cmocka_unit_test(refused_probes_look_absent),
		cmocka_unit_test(limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
