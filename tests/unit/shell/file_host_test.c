/* The file commands against the host's own: each line runs in the shell and under /bin/sh, in
 * two folders prepared alike; output, messages, status and what is left in the folder must be
 * equal. Skipped where the host has no GNU tools. */
#include <fcntl.h>
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

/* The tree that every line starts from. */
static const char setup[] =
    "umask 022; mkdir -p d/e/g d/empty; printf 1 > d/one; printf 22 > d/e/two; printf 333 > "
    "d/e/g/three; "
    "printf hello > f; printf x > .hid; ln -s f l; ln -s d dl; ln -s nowhere dang; printf "
    "'#!/bin/sh\\n' > x.sh; "
    "chmod 755 x.sh; chmod 600 d/one; ln f hard; mkfifo p; head -c 5000 /dev/zero > big; : > zero; "
    "mkdir 'a b'; printf q > 'a b/c d'; "
    "touch -h -d '2020-01-02 03:04:05 UTC' f big l dl dang p zero x.sh .hid d/one d/e/two "
    "d/e/g/three 'a b/c d' "
    "d/empty d/e/g d/e d 'a b'; touch -d '2021-06-07 08:09:10 UTC' big; touch -d '2019-01-01 UTC' "
    "zero";

/* What is left: names, types, modes, sizes, links, and times in seconds of what was there before
 * (2019 to 2021). */
static const char look[] = "find . -printf '%P %y %m %l ' \\( -type f -printf '%s ' -o -true \\) "
                           "\\( ! -newermt '2022-01-01 UTC' -printf '%TY-%Tm-%Td' -o -true \\) "
                           "-printf '\\n' | LC_ALL=C sort; "
                           "find . -type f -exec cksum {} + | LC_ALL=C sort";

static void run_host(
    const char *dir, const char *text, struct buf *out, struct buf *err, int *status)
{
	int po[2], pe[2];
	pid_t pid;
	struct box_err e;

	assert_int_equal(pipe2(po, O_CLOEXEC) | pipe2(pe, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		static const char *const env[] = { "PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC",
			"USER=root", NULL };
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

static void prepare(const char *dir, const char *what, struct buf *out)
{
	AUTO_BUF err = buf_with(1 << 20);
	int status;

	buf_clear(out);
	run_host(dir, what, out, &err, &status);
	if (status != 0)
		fail_msg("prepare: %s", buf_cstr(&err));
}

/* "Try '… --help' for more information." is worded differently; the line before it is compared. */
static const char *without_hint(struct buf *b)
{
	char *s = (char *)(uintptr_t)buf_cstr(b), *at;

	assert_non_null(s);
	while ((at = strstr(s, "Try '")) != NULL || (at = strstr(s, ": try '")) != NULL) {
		char *nl = strchr(at, '\n');

		while (at > s && at[-1] != '\n')
			at--;
		memmove(
		    at, nl != NULL ? nl + 1 : at + strlen(at), nl != NULL ? strlen(nl + 1) + 1 : 1);
	}
	return s;
}

enum { SORTED = 1, OUT_ONLY = 2 };

static char *sorted(const char *text)
{
	char *copy = strdup(text), *line[4096], *out = malloc(strlen(text) + 2);
	size_t n = 0, at = 0;

	for (char *p = copy; *p != '\0' && n < 4096;) {
		char *nl = strchr(p, '\n');

		line[n++] = p;
		if (nl == NULL)
			break;
		*nl = '\0';
		p = nl + 1;
	}
	for (size_t i = 1; i < n; i++) {
		for (size_t k = i; k > 0 && strcmp(line[k - 1], line[k]) > 0; k--) {
			char *t = line[k];

			line[k] = line[k - 1];
			line[k - 1] = t;
		}
	}
	for (size_t i = 0; i < n; i++) {
		memcpy(out + at, line[i], strlen(line[i]));
		at += strlen(line[i]);
		out[at++] = '\n';
	}
	out[at] = '\0';
	free(copy);
	return out;
}

static int failures;

static void differ(const char *text, const char *what, const char *ours, const char *theirs)
{
	print_error("%s\n  %s\n  ours:  >%s<\n  host:  >%s<\n", text, what, ours, theirs);
	failures++;
}

static void compare(const char *text, int how)
{
	static const char *const env[] = { "PATH=/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "USER=root",
		NULL };
	char host[] = "/var/tmp/file-host-XXXXXX", cmd[512];
	AUTO_BUF out = buf_with(1 << 22), err = buf_with(1 << 22);
	AUTO_BUF left = buf_with(1 << 22), right = buf_with(1 << 22);
	struct sh_test t = { .env = env };
	int status;

	assert_non_null(mkdtemp(host));
	sh_test_init(&t);
	prepare(host, setup, &left);
	prepare(t.dir, setup, &left);
	run_host(host, text, &out, &err, &status);
	(void)sh_test_run(&t, text);
	if (t.status != status) {
		char a[32], b[32];

		(void)snprintf(a, sizeof(a), "%d", t.status);
		(void)snprintf(b, sizeof(b), "%d", status);
		differ(text, "status", a, b);
	}
	char *ours = (how & SORTED) != 0 ? sorted(t.out) : strdup(t.out);
	char *theirs = (how & SORTED) != 0 ? sorted(buf_cstr(&out)) : strdup(buf_cstr(&out));
	if (strcmp(ours, theirs) != 0)
		differ(text, "output", ours, theirs);
	free(ours);
	free(theirs);
	AUTO_BUF our_err = buf_with(1 << 22);
	buf_put_c(&our_err, t.err);
	if ((how & OUT_ONLY) == 0 && strcmp(without_hint(&our_err), without_hint(&err)) != 0)
		differ(text, "messages", (const char *)our_err.p, (const char *)err.p);
	prepare(t.dir, look, &left);
	prepare(host, look, &right);
	if (!sv_eq(buf_sv(&left), buf_sv(&right)))
		differ(text, "what is left", buf_cstr(&left), buf_cstr(&right));
	(void)snprintf(cmd, sizeof(cmd), "chmod -R u+rwx %s; rm -rf %s", host, host);
	assert_int_equal(system(cmd), 0);
	sh_test_fini(&t);
}

struct line {
	const char *text;
	int how;
};

static void compare_all(const struct line *v, size_t n)
{
	failures = 0;
	for (size_t i = 0; i < n; i++)
		compare(v[i].text, v[i].how);
	assert_int_equal(failures, 0);
}
#define COMPARE(v) compare_all(v, sizeof(v) / sizeof(*(v)))

static void test_ls(void **state)
{
	static const struct line v[] = {
		{ "ls", 0 },
		{ "ls -a", 0 },
		{ "ls -A", 0 },
		{ "ls -1 d", 0 },
		{ "ls d f", 0 },
		{ "ls -l d f big", 0 },
		{ "ls -l", 0 },
		{ "ls -ln", 0 },
		{ "ls -lo; ls -lg; ls -lG", 0 },
		{ "ls -lA d", 0 },
		{ "ls -ld . d dl l dang", OUT_ONLY },
		{ "ls -d dl d l; ls dl; ls -l dl; ls -l dl/; ls -lH dl; ls -L dl", 0 },
		{ "ls -t", OUT_ONLY },
		{ "ls -tr f big zero", 0 },
		{ "ls -S f big zero x.sh", 0 },
		{ "ls -Sr f big zero x.sh; ls -rS", OUT_ONLY },
		{ "ls -lh big f; ls -lh d", 0 },
		{ "ls -R d; ls -R d dl", 0 },
		{ "ls -F; ls -p; ls -lF; ls --file-type; ls --classify", 0 },
		{ "ls -s f big; ls -sh big", 0 },
		{ "ls nix; ls nix f; ls -l nix d", 0 },
		{ "ls -X; ls -U d >/dev/null; ls -r", 0 },
		{ "ls --color=never; ls --color=auto -1", 0 },
		{ "ls -C; ls -x; ls -m; ls -w 30 -C", 0 },
		{ "ls -Q 'a b'; ls 'a b'", 0 },
		{ "ls --full-time f big; ls -l --time-style=long-iso f; ls -l --time-style=+%Y f",
		    0 },
		{ "ls --group-directories-first; ls -I 'd*'; ls -B", 0 },
		{ "ls -Z9", OUT_ONLY },
		{ "ls d/empty; ls -l d/empty; ls -la d/empty | wc -l", 0 },
		{ "ls --sort=size f big zero; ls --sort=none f; ls -v", 0 },
		{ "ls -lu f; ls -lc big >/dev/null; ls -i f | wc -w", 0 },
		{ "ls d/one/x; ls ''", 0 },
		{ "ls -lR d", OUT_ONLY },
		{ "touch -d '2030-01-01 UTC' future; ls -l future", 0 },
	};
	(void)state;
	COMPARE(v);
}

static void test_cp_mv(void **state)
{
	static const struct line v[] = {
		{ "cp f g", 0 },
		{ "cp f d", 0 },
		{ "cp f big d", 0 },
		{ "cp d x", 0 },
		{ "cp -r d x", 0 },
		{ "cp -r d f; cp f d/e; cp -r d/e 'a b'", 0 },
		{ "cp -R d/ y; cp -r d/. z", 0 },
		{ "mkdir z; cp -r d z; cp -r d/. z", 0 },
		{ "cp -a d l dl dang z1; mkdir z1; cp -a d l dl dang z1", 0 },
		{ "cp -p big big2; cp --preserve=mode,timestamps f f2", 0 },
		{ "cp l copy; cp -P l copy2; cp -d dang dang2; cp dang c3", 0 },
		{ "cp f f; cp f hard; cp f l", 0 },
		{ "cp nix y; cp f nix/y; cp nix d; cp f nix/", 0 },
		{ "cp f big nix; cp f big x.sh", 0 },
		{ "cp; cp f; cp -T f big nix", 0 },
		{ "cp -n f big; cp -u big f; cp -u zero f", 0 },
		{ "cp -v f d; cp -rv d/e y", SORTED },
		{ "cp -t d f big; cp -t nix f", 0 },
		{ "cp -T d/e d/empty; cp -rT d/e d/empty", 0 },
		{ "cp x.sh y.sh; cp d/one one", 0 },
		{ "mkdir q; mkdir q/f; cp f q; cp -r d q; mkdir -p r/d; printf x > r/d/e; cp -r d "
		  "r",
		    0 },
		{ "cp /dev/null f; cp -f f big", 0 },
		{ "cp -r nix d f", 0 },
		{ "cp f dang", 0 },
		{ "mv f g", 0 },
		{ "mv f d; mv big zero d", 0 },
		{ "mv d z; mv 'a b' z", 0 },
		{ "mv f big; mv nix y; mv f2 f3 d", 0 },
		{ "mv f nix/y; mv f big nix", 0 },
		{ "mv d d/e; mv d d/sub", 0 },
		{ "mv f f; mv l f", OUT_ONLY },
		{ "mv d f; mkdir -p q/f; mv f q", 0 },
		{ "mv -n f big; mv -v f g; mv -v g d", 0 },
		{ "mv l dl; mv dang d; mv dl d2", OUT_ONLY },
		{ "mv -t d f big; mv -T d/e d/empty; mv -T f d", 0 },
		{ "mkdir -p q/d; mv d q; mkdir -p r/e/x; mv q/d/e r", OUT_ONLY },
		{ "mv; mv f; mv d/ e; mv f/ g", OUT_ONLY },
		{ "mv -u zero f; mv -u big f", 0 },
		{ "mv p d; mv x.sh .hid d", 0 },
	};
	(void)state;
	COMPARE(v);
}

static void test_rm_mkdir(void **state)
{
	static const struct line v[] = {
		{ "rm f", 0 },
		{ "rm f nix big", 0 },
		{ "rm d; rm -d d/empty; rm -d d/e", 0 },
		{ "rm -r d", 0 },
		{ "rm -rf d nix dl l", 0 },
		{ "rm -r dl; rm dang l", 0 },
		{ "rm -r d/ f/", OUT_ONLY },
		{ "rm -f nix; rm -f; rm; rm -f f nix/x f/x", 0 },
		{ "rm . ; rm -r . ..; rm -rf d/.", 0 },
		{ "rm -v f l; rm -rv d/empty 'a b'; rm -rv d", SORTED },
		{ "rm -- f; rm ''; rm -rf ''", OUT_ONLY },
		{ "rm -rf *; ls -A", 0 },
		{ "rm p; rm -r p; rm f/x", 0 },
		{ "rmdir d/empty; rmdir d; rmdir f; rmdir nix", 0 },
		{ "rmdir -p d/e/g; rm -r d/one d/e d/empty; mkdir -p u/v/w; rmdir -p u/v/w", 0 },
		{ "rmdir -v d/empty; rmdir --ignore-fail-on-non-empty d; rmdir dl", 0 },
		{ "mkdir n; mkdir d; mkdir f; mkdir n/o n/o/p; mkdir nix/x", 0 },
		{ "mkdir -p d n/o/p q/r; mkdir -p f/x; mkdir -p f", 0 },
		{ "mkdir -m 700 a; mkdir -m u=rwx,go= b; mkdir -p -m 711 c/d; mkdir -m 9 z", 0 },
		{ "mkdir -v n; mkdir -pv o/p/q; mkdir; mkdir dang; mkdir -p dl/new", OUT_ONLY },
		{ "umask 077; mkdir n; mkdir -p o/p; touch t; cp f g", 0 },
		{ "mkdir -p a/b/c/ ./x//y/; mkdir ''", 0 },
	};
	(void)state;
	COMPARE(v);
}

static void test_ln_touch_chmod(void **state)
{
	static const struct line v[] = {
		{ "ln -s f s; ln -s nix s2; ln -s f l; ln -sf big l", 0 },
		{ "ln f h; ln nix h2; ln d h3; ln f big", 0 },
		{ "ln -f f big; ln -s f d; ln -s ../f big d; ln -s f big nix", OUT_ONLY },
		{ "ln -sfn d/e dl; ln -sf f dl; ln -sT f dl; ln -sfT f dl", OUT_ONLY },
		{ "ln -sv f s; ln -v f h; ln -s f; ln", OUT_ONLY },
		{ "ln -s ../f d; ln -sr d/e/two d/empty/t; ln -sr f g; ln -sr d d/e/up; ln -sr . "
		  "here",
		    OUT_ONLY },
		{ "ln -t d f; ln -st d f", 0 },
		{ "touch f n d; touch -c nix; touch nix/x; touch", 0 },
		{ "touch -d '2022-02-03 04:05:06 UTC' f n; touch -t 202203040506.07 big; touch -t "
		  "03040506 zero; "
		  "stat -c '%n %y' f n big",
		    0 },
		{ "touch -d @1000000000 f; touch -r f big; touch -a -d '2001-01-01 UTC' zero; stat "
		  "-c '%n %Y' f big zero",
		    0 },
		{ "touch -m -d '2001-01-01 UTC' f; stat -c '%Y' f; touch -d garbage f; touch -h -d "
		  "@5 l; stat -c %Y l",
		    OUT_ONLY },
		{ "touch dang dl; touch -t 99 f", 0 },
		{ "chmod 600 f; chmod u+x,g=r f; chmod a-w big; chmod +x big; chmod -r zero; chmod "
		  "go=u x.sh",
		    0 },
		{ "chmod -R 700 d; chmod -R go+rX d; chmod -R u=rwX,go=rX 'a b'; chmod 0644 f", 0 },
		{ "chmod 755 nix; chmod 755; chmod; chmod zz f; chmod 644 f nix big; chmod 777 l",
		    0 },
		{ "chmod -v 600 f; chmod -c 600 f; chmod -v 600 f; chmod --reference=x.sh f; chmod "
		  "-w f",
		    OUT_ONLY },
		{ "chmod =r f; chmod u=,g=rw f; chmod ug+rw,o-rwx big; chmod a=rx,u+w zero",
		    OUT_ONLY },
		{ "chmod -x x.sh; chmod -- -w x.sh; chmod u+rwx,g-w d", OUT_ONLY },
	};
	(void)state;
	COMPARE(v);
}

static void test_find(void **state)
{
	static const struct line v[] = {
		{ "find", SORTED },
		{ "find .", SORTED },
		{ "find d f nix", SORTED },
		{ "find . -name 'f*'; find . -iname 'F*' -o -name '*.sh'", SORTED },
		{ "find . -type f; find . -type d -o -type l; find . -type f,l", SORTED },
		{ "find . -maxdepth 1; find . -mindepth 2; find . -mindepth 1 -maxdepth 1 -type d",
		    SORTED },
		{ "find d -path '*e*'; find d -wholename 'd/e/*'; find . -ipath '*E/G*'", SORTED },
		{ "find . -size 0; find . -size +1; find . -size -2k; find . -size 5000c; find . "
		  "-size +4k",
		    SORTED },
		{ "find . -empty; find . -type d -empty; find . -perm 600; find . -perm -111 -type "
		  "f; find . -perm /022",
		    SORTED },
		{ "find . -newer zero -type f; find . -newermt '2021-01-01 UTC'; find . -mtime "
		  "+100 -type f",
		    SORTED },
		{ "find . -mmin -60 -type f; find . -mtime -1 -type d; find . -mtime 0", SORTED },
		{ "find d -print0 | tr '\\0' '\\n'; find . -name d -prune -o -print; find . -path "
		  "./d -prune -o -type f -print",
		    SORTED },
		{ "find . -type f ! -name '*.sh' -a -not -name big; find . \\( -name f -o -name "
		  "big \\) -print",
		    SORTED },
		{ "find . -printf '%p|%f|%h|%P|%H|%d|%y\\n'", SORTED },
		{ "find . -type f -printf '%s %m %M %n %u %g %U %G %TY-%Tm-%Td %TH:%TM %k %b %-8f| "
		  "%10s|%05d\\n'",
		    SORTED },
		{ "find f big -printf '%t\\n%T@ %T+ %TT\\n%a\\n'; find l dang dl -printf '%l %y "
		  "%Y\\n'",
		    OUT_ONLY | SORTED },
		{ "find . -name 'f*' -exec echo a {} b \\;; find . -type f -exec echo {} + | tr ' "
		  "' '\\n'",
		    SORTED },
		{ "find . -name two -exec cat {} \\; -print; find . -name one -exec false \\; "
		  "-print; find d -exec true \\; -print",
		    SORTED },
		{ "find d -name two -execdir echo {} \\;; find d -name '*e' -execdir ls {} \\;",
		    SORTED | OUT_ONLY },
		{ "find d -delete; find . -name '*.sh' -delete; ls", OUT_ONLY },
		{ "find d -depth; find d -depth -name e -print", SORTED },
		{ "find . -regex '.*/[ft][a-z]*'; find . -regextype posix-extended -regex "
		  "'.*(one|two)'; find . -regex '.*\\(one\\|two\\)'; find . -iregex '.*F'",
		    SORTED },
		{ "find . -user root -type f -name f; find . -uid 0 -name big; find . -links +1 "
		  "-type f; find . -samefile f",
		    SORTED },
		{ "find -L . -type f -name 'o*'; find -H dl; find dl; find dl/", SORTED },
		{ "find . -quit; find . -maxdepth 0 -printf '%f\\n'; find d/ -maxdepth 1; find ./d "
		  "-maxdepth 1",
		    SORTED },
		{ "find . -foo; find . -name; find . \\( -name f; find . -type q; find . -exec "
		  "echo",
		    OUT_ONLY },
		{ "find . -lname 'no*'; find . -type l -xtype l; find . -xtype d; find . -true "
		  "-name f; find . -false -o -name f",
		    SORTED },
		{ "find . -readable -name f; find . -executable -type f; find . -writable -name "
		  "big",
		    SORTED },
		{ "find 'a b' -type f -exec ls -l {} \\; ; find . -name 'c d' -print", SORTED },
		{ "find . -name f , -name big; find . ! -type d -name 'o*' -print -o -name e "
		  "-print",
		    SORTED },
		{ "find . -newer f -name big; find . -anewer nix; find . -mmin +60 -mmin -99999999 "
		  "-name f",
		    SORTED | OUT_ONLY },
		{ "find d -name two -printf '%p\\t%s\\n\\101\\\\'; find d -maxdepth 1 -ls | awk "
		  "'{print $3,$4,$5,$6,$7,$11}'",
		    SORTED },
	};
	(void)state;
	COMPARE(v);
}

/* What waits for somebody else ends with its signal. */
static void test_waiting(void **state)
{
	static const struct line v[] = {
		{ "cat p & q=$!; sleep 0.3; kill $q; wait $q; echo $?", OUT_ONLY },
		{ "echo x > p & q=$!; sleep 0.3; kill $q; wait $q; echo $?", OUT_ONLY },
		{ "(sleep 0.2; echo data > p) & cat p; wait; (sleep 0.2; cat p) & echo more > p; "
		  "wait",
		    0 },
	};
	(void)state;
	COMPARE(v);
}

static void test_stat_du_links(void **state)
{
	static const struct line v[] = {
		{ "stat -c '%n %s %a %A %F %h %u %g %U %G %f %b %B %o %Y %y' f d l x.sh", 0 },
		{ "stat -c %N l f; stat -L -c %F l dl; stat -c '%5s|%-5s|%05s|%.3n' big; stat "
		  "--printf '%n\\t%s\\n' f",
		    0 },
		{ "stat f | sed -e 's/Device.*Links/Links/' -e '/Birth/d' -e '/^Access: 20/d' -e "
		  "'/^Change/d'",
		    OUT_ONLY },
		{ "stat -c '%F' p zero d dang; stat nix; stat; stat -c %n f nix big", OUT_ONLY },
		{ "stat -c '%t %T %X' f >/dev/null; stat -c 'abc%%d' f; stat -c %Q f", OUT_ONLY },
		{ "du -s big f; du -b f; du -b big zero; du -k big; du -h big", 0 },
		{ "du d; du -a d; du -s d; du -sh d; du -d 1 d; du --max-depth=0 d; du -c f big",
		    SORTED },
		{ "du -ab d; du -sb d; du nix; du f nix; du --apparent-size -k big", SORTED },
		{ "du f hard; du -l f hard; du -a d --exclude='t*'; du -BM big; du -S d", SORTED },
		{ "readlink l; readlink dl dang; readlink f; readlink nix; readlink -n l; readlink "
		  "-v f; readlink",
		    OUT_ONLY },
		{ "readlink -f l | sed 's,.*/,,'; readlink -e dang; readlink -f nix/x; readlink -m "
		  "nix/x/../y | sed 's,.*/,,'",
		    0 },
		{ "realpath f | sed 's,.*/,,'; realpath nix | sed 's,.*/,,'; realpath -e nix; "
		  "realpath nix/x; realpath",
		    OUT_ONLY },
		{ "realpath --relative-to=. d/e l; realpath --relative-to=d f d d/e/two; realpath "
		  "-s --relative-to=. dl/one; "
		  "realpath -m --relative-to=d/e nix/a; realpath --relative-base=d d/e",
		    0 },
	};
	(void)state;
	COMPARE(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ls),
		cmocka_unit_test(test_cp_mv),
		cmocka_unit_test(test_rm_mkdir),
		cmocka_unit_test(test_ln_touch_chmod),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_stat_du_links),
		cmocka_unit_test(test_waiting),
	};

	/* Names of users and groups are root's here. */
	if (geteuid() != 0 || access("/usr/bin/find", X_OK) != 0 ||
	    system("ls --version 2>/dev/null | grep -q GNU") != 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
