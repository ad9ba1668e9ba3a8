/* The text commands against the host's own: every case of text_cases/NAME.txt runs in the shell and
 * under /bin/sh, in two folders with the same files; output, status, messages and the files left
 * behind must be equal.
 *
 * A case is one line; a line that begins with a tab continues it. "~ " in front: the messages are
 * worded differently on purpose, only output and status are compared. "u " in front: only for
 * UTF-8. The tree is in setup below. */
#include <fcntl.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/ban.h"

#define OUT_MAX ((size_t)8 << 20)

/* awk only makes numbers and noise here; it is not what is tested. */
static const char setup[] =
    "seq 1 30 > s30; seq 1 50 > s50; seq 1 3000 > big; printf 'a b c\\nd e f\\n\\ng\\n' > abc;"
    "printf 'a:b:c\\nno delim\\n:x:\\na::\\nend' > colon; printf 'x\\tY\\tz\\n' > tab;"
    "printf 'aa\\naa\\nAA\\nb\\nb\\nc\\n' > dup; printf '1 x\\n2 x\\n3 y\\n' > flds;"
    "printf 'one\\0two\\0three' > nul; : > empty; mkdir dir; printf 'no newline' > nonl;"
    "printf '10\\n9\\n2\\n1\\n-5\\n1.5\\n+3\\n\\nabc\\n "
    "7\\n1e3\\n-0\\n0\\n00012\\n1.50\\n-5.1\\n.5\\n' > nums;"
    "printf '1K\\n2M\\n512\\n3G\\n1k\\n-1K\\n0K\\n1.5K\\n900\\n2K\\n1T\\n' > hum;"
    "printf 'Feb\\nJAN x\\n dec\\nfoo\\nmar\\n' > mon;"
    "printf "
    "'v1.10\\nv1.9\\nv1.2.3\\nv1.2\\na10.txt\\na9.txt\\n.b\\n.\\n..\\nfoo-1.0~rc1\\nfoo-1.0\\n"
    "foo-1.0.tar.gz\\nfoo-1.0.1.tar.gz\\na\\n\\nA1\\na1b\\n' > ver;"
    "printf 'b:2:x\\na:10:y\\nc:2:a\\nB:1:z\\na:10:a\\n' > kf;"
    "printf '  b 2\\na  10\\n c 3\\nB 1\\na 2 \\n' > kb;"
    "printf '1.5e3\\nnan\\ninf\\n-inf\\n0x10\\nfoo\\n-1e-5\\n' > gen;"
    "printf 'a-b\\nab\\na b\\nA.B\\n\\001ab\\n' > dict; sort s30 > srt1; sort abc > srt2;"
    "printf 'foo bar\\nbaz\\nfoobar\\nbar foo\\nFoo\\n\\nfoo_bar\\nend foo\\n' > g1;"
    "mkdir -p tree/a/b tree/.hid tree/node_modules; cp g1 tree/f1.c; cp g1 tree/a/f2.h;"
    "cp g1 tree/a/b/f3.c; cp g1 tree/.hid/x; cp g1 tree/node_modules/m.js;"
    "printf 'bin\\0ary foo\\nfoo\\n' > tree/bin; ln -s ../g1 tree/link; ln -s a tree/dl;"
    "printf 'a foo\\n\\0\\nfoo b\\nc foo\\n' > bin1;"
    "printf 'caf\\303\\251 foo\\nbad \\377 foo\\n' > u8; printf 'foo\\nbar\\n' > pats;"
    "printf 'a+b\\na*b\\na.b\\naab\\n[x]\\n' > meta; printf '12 34\\nabc123def456\\n' > digs;"
    "printf 'foo\\r\\nbar\\r\\n' > crlf; printf 'hello world\\nfoo bar\\nbaz\\n' > h1;"
    "printf 's/a/X/\\np\\n' > sc1.sed; printf '#n\\np\\n' > sc2.sed; printf 'a,b,c\\n1,2,3\\n' > "
    "csv;"
    "printf 'one\\ntwo\\nthree\\nfour\\nfive\\nsix\\n' > six";

/* 20,000 bytes of noise, the same on every run. */
static void make_noise(const char *dir)
{
	char path[128];
	uint32_t x = 12345;
	AUTO_BUF b = buf_with(20000);
	struct box_err err;

	for (int i = 0; i < 20000; i++) {
		x = x * 1664525 + 1013904223;
		buf_put_byte(&b, (uint8_t)(x >> 24));
	}
	(void)snprintf(path, sizeof(path), "%s/rnd", dir);
	assert_int_equal(fd_write_file_atomic(path, 0644, buf_sv(&b), &err), 0);
}

static const char *locale_var = "LC_ALL=C";

static void run_host(
    const char *dir, const char *text, struct buf *out, struct buf *err, int *status)
{
	int po[2], pe[2];
	pid_t pid;
	struct box_err e;

	assert_int_equal(pipe2(po, O_CLOEXEC) | pipe2(pe, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		const char *const env[] = { "PATH=/usr/bin:/bin", locale_var, NULL };
		int null = open("/dev/null", O_RDONLY);

		if (chdir(dir) != 0 || dup2(null, 0) < 0 || dup2(po[1], 1) < 0 ||
		    dup2(pe[1], 2) < 0)
			_exit(99);
		execle("/bin/sh", "sh", "-c", text, (char *)NULL, env);
		_exit(99);
	}
	(void)close(po[1]);
	(void)close(pe[1]);
	assert_int_equal(fd_read_all(po[0], out, "output", &e), 0);
	assert_int_equal(fd_read_all(pe[0], err, "messages", &e), 0);
	(void)close(po[0]);
	(void)close(pe[0]);
	assert_int_equal(waitpid(pid, status, 0), pid);
	*status = WIFEXITED(*status) ? WEXITSTATUS(*status) : 128 + WTERMSIG(*status);
}

static void host(const char *dir, const char *text, struct buf *out)
{
	AUTO_BUF err = buf_with(OUT_MAX);
	int status;

	buf_clear(out);
	run_host(dir, text, out, &err, &status);
	if (status != 0)
		fail_msg("%s: %s", text, buf_cstr(&err));
}

/* "Try 'x --help' for more information." has other words here. */
static void drop_hints(struct buf *b)
{
	AUTO_BUF kept = buf_with(OUT_MAX);
	sv rest = buf_sv(b), line;

	while (rest.n != 0) {
		bool more = sv_cut(rest, '\n', &line, &rest);

		if (sv_starts(line, SV("Try '")) || sv_find_sv(line, SV(": try '")) >= 0)
			continue;
		buf_put_sv(&kept, line);
		if (more)
			buf_put_byte(&kept, '\n');
	}
	buf_clear(b);
	buf_put_sv(b, buf_sv(&kept));
}

struct places {
	char clean[32], theirs[32];
};

static int failures;

static void differ(const char *text, const char *what, sv ours, sv theirs)
{
	AUTO_BUF a = buf_with(2000), b = buf_with(2000);

	buf_put_escaped(&a, sv_sub(ours, 0, 400));
	buf_put_escaped(&b, sv_sub(theirs, 0, 400));
	print_error(
	    "%s\n  %s\n  ours: >%s<\n  host: >%s<\n", text, what, buf_cstr(&a), buf_cstr(&b));
	failures++;
}

/* May the case change files? Then both folders are made anew behind it, and compared. */
static bool writes(const char *text)
{
	static const char *const signs[] = { ">", "-i", "-o", "out", "/w", "w x", "-ni" };

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (strstr(text, signs[i]) != NULL)
			return true;
	return false;
}

static void renew(const struct places *pl, const char *ours)
{
	AUTO_BUF sink = buf_with(OUT_MAX);
	char cmd[512];

	(void)snprintf(cmd, sizeof(cmd),
	    "rm -rf %s; cp -a %s %s; find %s -mindepth 1 -delete; cp -a %s/. %s/", pl->theirs,
	    pl->clean, pl->theirs, ours, pl->clean, ours);
	host("/", cmd, &sink);
}

static void compare(const struct places *pl, struct sh_test *t, const char *text, bool messages)
{
	AUTO_BUF out = buf_with(OUT_MAX), err = buf_with(OUT_MAX), our_err = buf_with(OUT_MAX);
	AUTO_BUF left = buf_with(OUT_MAX), right = buf_with(OUT_MAX);
	int status;

	run_host(pl->theirs, text, &out, &err, &status);
	(void)sh_test_run(t, text);
	if (t->status != status) {
		char a[32], b[32];

		(void)snprintf(a, sizeof(a), "%d", t->status);
		(void)snprintf(b, sizeof(b), "%d", status);
		differ(text, "status", sv_c(a), sv_c(b));
	}
	if (!sv_eq((sv){ t->out, t->out_n }, buf_sv(&out)))
		differ(text, "output", (sv){ t->out, t->out_n }, buf_sv(&out));
	buf_put(&our_err, t->err, t->err_n);
	drop_hints(&our_err);
	drop_hints(&err);
	if (messages && !sv_eq(buf_sv(&our_err), buf_sv(&err)))
		differ(text, "messages", buf_sv(&our_err), buf_sv(&err));
	if (!writes(text))
		return;
	host(t->dir, "find . -type f -exec cksum {} + | LC_ALL=C sort", &left);
	host(pl->theirs, "find . -type f -exec cksum {} + | LC_ALL=C sort", &right);
	if (!sv_eq(buf_sv(&left), buf_sv(&right)))
		differ(text, "files", buf_sv(&left), buf_sv(&right));
	renew(pl, t->dir);
}

static const char *cases_dir;

static void run_cases(const char *name, const char *locale)
{
	const char *const env[] = { "PATH=/usr/bin:/bin", locale, NULL };
	struct sh_test t;
	struct places pl = { "/var/tmp/text-host-XXXXXX", "/var/tmp/text-host-XXXXXX" };
	AUTO_BUF cases = buf_with(1 << 20), text = buf_with(1 << 16), sink = buf_with(OUT_MAX);
	struct box_err err = { 0 };
	char path[512];
	sv rest, line;
	int n = 0;

	(void)snprintf(path, sizeof(path), "%s/%s.txt", cases_dir, name);
	if (fd_read_file(path, 1 << 20, &cases, &err) != 0)
		fail_msg("%s", err.msg);
	assert_non_null(mkdtemp(pl.clean));
	assert_non_null(mkdtemp(pl.theirs));
	locale_var = locale;
	host(pl.clean, setup, &sink);
	make_noise(pl.clean);
	sh_test_init(&t);
	t.env = env;
	renew(&pl, t.dir);
	failures = 0;
	rest = buf_sv(&cases);
	while (rest.n != 0) {
		bool c = strcmp(locale, "LC_ALL=C") == 0, messages, skip;

		(void)sv_cut(rest, '\n', &line, &rest);
		buf_clear(&text);
		messages = c && !sv_starts(line, SV("~ "));
		skip = c && sv_starts(line, SV("u "));
		if (sv_starts(line, SV("~ ")) || sv_starts(line, SV("u ")))
			line = sv_sub(line, 2, line.n);
		buf_put_sv(&text, line);
		while (rest.n != 0 && rest.p[0] == '\t') {
			(void)sv_cut(rest, '\n', &line, &rest);
			buf_put_byte(&text, '\n');
			buf_put_sv(&text, sv_sub(line, 1, line.n));
		}
		/* The quotation marks of messages depend on the locale; they are compared in C. */
		if (!skip)
			compare(&pl, &t, buf_cstr(&text), messages);
		n++;
	}
	sh_test_fini(&t);
	(void)snprintf(path, sizeof(path), "rm -rf %s %s", pl.clean, pl.theirs);
	host("/", path, &sink);
	assert_true(n > 10);
	assert_int_equal(failures, 0);
}

static void in_c(void **state)
{
	run_cases(*state, "LC_ALL=C");
}

static void in_utf8(void **state)
{
	run_cases(*state, "LC_ALL=C.UTF-8");
}

int main(int argc, char **argv)
{
	/* The host's tools must be the ones that are compared with. */
	bool both = argc > 3;

	if (argc < 3 || system("sed --version 2>/dev/null | grep -q 'GNU sed. 4.9' && "
	                       "sort --version | grep -q 'coreutils. 9.1' && grep --version | grep "
	                       "-q 'grep. 3.8'") != 0) {
		(void)fprintf(stderr,
		    "skipped: needs the cases' folder, GNU sed 4.9, coreutils 9.1 and grep 3.8\n");
		return 77;
	}
	cases_dir = argv[1];
	(void)setlocale(LC_ALL, "C.UTF-8"); /* as box-shell does before it confines itself */
	const struct CMUnitTest tests[] = {
		{ "in C", in_c, NULL, NULL, argv[2] },
		{ "in UTF-8", in_utf8, NULL, NULL, argv[2] },
	};

	/* The others treat text as bytes whatever the locale. */
	return both ? cmocka_run_group_tests_name("both locales", tests, NULL, NULL)
	            : _cmocka_run_group_tests("C", tests, 1, NULL, NULL);
}
