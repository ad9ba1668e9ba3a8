/* Each worker profile: what must work works, what must not does not. The worker is a real process
 * started by worker_spawn. Skipped (77) where the kernel gives no user namespaces. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/ipc.h"
#include "contain/contain.h"
#include "contain/worker.h"
#include "worker_probe.h"
#include "base/ban.h"

static const char *probe_path;

struct worker {
	int fd, pidfd;
	pid_t pid;
};

static void start(struct worker *w, enum worker_profile p, const char *name,
    const struct worker_path *paths, size_t paths_n, int extra)
{
	struct box_err err = { 0 };
	int pair[2];

	assert_int_equal(ipc_pair(pair, &err), 0);
	struct worker_spec s = { .profile = p,
		.program = probe_path,
		.name = name,
		.channel = pair[1],
		.err_fd = 2,
		.fds = &extra,
		.fds_n = extra >= 0 ? 1 : 0,
		.paths = paths,
		.paths_n = paths_n };

	if (worker_spawn(&s, &w->pid, &w->pidfd, &err) < 0)
		fail_msg("%s", err.msg);
	(void)close(pair[1]);
	w->fd = pair[0];
}

/* The answer, or -1 when the worker died of the question. */
static int ask(struct worker *w, enum probe what, const char *arg)
{
	AUTO_BUF b = buf_with(2048);
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	struct box_err err = { 0 };

	buf_put_str(&b, sv_c(arg));
	if (ipc_send(w->fd, (uint16_t)what, 1, &b, NULL, 0, &err) < 0)
		return -1;
	if (ipc_recv(w->fd, &m, &err) <= 0)
		return -1;
	return (int)rd_u32(&m.body);
}

static int end(struct worker *w)
{
	int st = 0;

	(void)close(w->fd);
	(void)waitpid(w->pid, &st, 0);
	(void)close(w->pidfd);
	return st;
}

#if defined(__SANITIZE_ADDRESS__)
#define DIES EPERM /* the sanitizer build answers instead of ending the process */
#else
#define DIES (-1)
#endif

static void test_shell(void **state)
{
	struct worker w;

	(void)state;
	start(&w, WORKER_SHELL, "probe-shell", NULL, 0, -1);
	assert_int_equal(ask(&w, PROBE_GETPID, ""), 2);
	assert_int_equal(ask(&w, PROBE_FDS, ""), 4);
	assert_int_equal(ask(&w, PROBE_CAPS, ""), 0);
	assert_int_equal(ask(&w, PROBE_FORK, ""), 0);
	assert_int_equal(ask(&w, PROBE_SOCKETPAIR, ""), 0);
	assert_int_equal(ask(&w, PROBE_OPEN_READ, "/etc/passwd"), EACCES);
	assert_int_equal(ask(&w, PROBE_OPEN_WRITE, "/x"), EACCES);
	assert_int_equal(ask(&w, PROBE_STAT, "/etc"), ENOENT);
	assert_int_equal(ask(&w, PROBE_STAT, "/.."), 0);
	assert_int_equal(ask(&w, PROBE_MKDIR, "/x"), EACCES);
	assert_int_equal(ask(&w, PROBE_OPENAT2, "/x"), EACCES);
	assert_int_equal(ask(&w, PROBE_SOCKET_INET, ""), EACCES);
	assert_int_equal(ask(&w, PROBE_SOCKET_UNIX, ""), EACCES);
	assert_int_equal(ask(&w, PROBE_CONNECT, ""), EACCES);
	assert_int_equal(ask(&w, PROBE_MAP_CODE, ""), EPERM);
	char monitor[16];

	(void)snprintf(monitor, sizeof(monitor), "%d", getpid());
	assert_int_equal(ask(&w, PROBE_KILL, monitor), ESRCH);
	assert_int_equal(ask(&w, PROBE_EXEC, "/bin/true"), DIES);
	(void)end(&w);
}

static void test_shell_ends(void **state)
{
	struct worker w;
	int st;

	(void)state;
	start(&w, WORKER_SHELL, "probe-shell", NULL, 0, -1);
	assert_int_equal(ask(&w, PROBE_FORK, ""), 0);
	st = end(&w); /* the channel closes: the worker exits 5, and its reaper with the same */
	assert_true(WIFEXITED(st));
	assert_int_equal(WEXITSTATUS(st), 5);
}

static void test_gateway(void **state)
{
	struct worker w;
	int p[2];

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(write(p[1], "x", 1), 1);
	start(&w, WORKER_GATEWAY, "probe-gateway", NULL, 0, p[0]);
	assert_int_equal(ask(&w, PROBE_FDS, ""), 5);
	assert_int_equal(ask(&w, PROBE_EXTRA_FD, ""), 0);
	assert_int_equal(ask(&w, PROBE_THREAD, ""), 0);
	assert_int_equal(ask(&w, PROBE_EPOLL, ""), 0);
	assert_int_equal(ask(&w, PROBE_SOCKETPAIR, ""), 0);
	assert_int_equal(ask(&w, PROBE_OPEN_READ, "/etc/passwd"), EACCES);
	assert_int_equal(ask(&w, PROBE_SOCKET_INET, ""), EACCES);
	assert_int_not_equal(ask(&w, PROBE_FORK, ""), 0);
	assert_int_equal(ask(&w, PROBE_UNSHARE, ""), DIES);
	(void)end(&w);
	(void)close(p[0]);
	(void)close(p[1]);
}

static void test_dial(void **state)
{
	struct worker w;

	(void)state;
	start(&w, WORKER_DIAL, "probe-dial", NULL, 0, -1);
	assert_int_equal(ask(&w, PROBE_OPEN_READ, "/etc/hosts"), 0);
	int e = ask(&w, PROBE_OPEN_WRITE, "/etc/hosts"); /* the mode of the file may speak first */

	assert_true(e == EROFS || e == EACCES);
	assert_int_equal(ask(&w, PROBE_OPEN_READ, "/etc/passwd"), ENOENT);
	assert_int_equal(ask(&w, PROBE_STAT, "/home"), ENOENT);
	assert_int_equal(ask(&w, PROBE_RESOLVE, ""), 0);
	assert_int_equal(ask(&w, PROBE_THREAD, ""), 0);
	/* The host's loopback: nothing listens on port 1, and that is what it says. */
	assert_int_equal(ask(&w, PROBE_CONNECT, ""), ECONNREFUSED);
	assert_int_not_equal(ask(&w, PROBE_FORK, ""), 0);
	assert_int_equal(ask(&w, PROBE_EXEC, "/usr/lib/x"), DIES);
	(void)end(&w);
}

static void test_files(void **state)
{
	char dir[] = "/tmp/worker-test-XXXXXX", ok[64], out[64], sub[80];
	struct worker w;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(ok, sizeof(ok), "%s/in", dir);
	(void)snprintf(out, sizeof(out), "%s/out", dir);
	assert_int_equal(mkdir(ok, 0700), 0);
	const struct worker_path paths[] = { { ok, WORKER_R_READ | WORKER_R_WRITE },
		{ "/etc", WORKER_R_READ } };

	start(&w, WORKER_FILES, "probe-files", paths, 2, -1);
	(void)snprintf(sub, sizeof(sub), "%s/f", ok);
	assert_int_equal(ask(&w, PROBE_OPEN_WRITE, sub), 0);
	assert_int_equal(ask(&w, PROBE_OPEN_READ, sub), 0);
	assert_int_equal(ask(&w, PROBE_OPENAT2, sub), 0);
	assert_int_equal(ask(&w, PROBE_OPEN_READ, "/etc/hosts"), 0);
	assert_int_equal(ask(&w, PROBE_OPEN_WRITE, "/etc/hosts"), EACCES);
	assert_int_equal(ask(&w, PROBE_OPEN_WRITE, out), EACCES);
	assert_int_equal(ask(&w, PROBE_OPEN_READ, "/usr/bin/env"), EACCES);
	assert_int_equal(ask(&w, PROBE_OPEN_READ, "/proc/self/status"), EACCES);
	assert_int_equal(ask(&w, PROBE_STAT, "/proc/self"), EACCES);
	assert_int_equal(ask(&w, PROBE_SOCKET_INET, ""), EACCES);
	assert_int_equal(ask(&w, PROBE_THREAD, ""), 0);
	assert_int_not_equal(ask(&w, PROBE_FORK, ""), 0);
	assert_int_equal(ask(&w, PROBE_EXEC, "/bin/true"), DIES);
	(void)end(&w);
	(void)unlink(sub);
	(void)rmdir(ok);
	(void)rmdir(dir);
}

/* Started without worker_spawn, or for another profile: refused before anything else. */
static void test_refused(void **state)
{
	struct worker w;
	int st;

	(void)state;
	start(&w, WORKER_GATEWAY, "probe-shell", NULL, 0, -1);
	assert_int_equal(ask(&w, PROBE_GETPID, ""), -1);
	st = end(&w);
	assert_true(WIFEXITED(st) && WEXITSTATUS(st) == 1);
	pid_t pid = fork();

	if (pid == 0) {
		fd_close_from(3);
		(void)execl(probe_path, "probe-shell", (char *)NULL);
		_exit(9);
	}
	(void)waitpid(pid, &st, 0);
	assert_true(WIFEXITED(st) && WEXITSTATUS(st) == 1);
}

static void test_missing_program(void **state)
{
	struct worker w;
	const char *keep = probe_path;
	int st;

	(void)state;
	probe_path = "/nonexistent/program";
	start(&w, WORKER_SHELL, "probe-shell", NULL, 0, -1);
	probe_path = keep;
	st = end(&w);
	assert_true(WIFEXITED(st) && WEXITSTATUS(st) == 126);
}

/* The worker dies with the thread that started it, whatever it does. */
static void test_dies_with_parent(void **state)
{
	int p[2], alive[2];
	char c;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(pipe(alive), 0);
	pid = fork();
	if (pid == 0) {
		struct worker w;

		(void)close(alive[0]);
		start(&w, WORKER_SHELL, "probe-shell", NULL, 0, alive[1]);
		(void)close(alive[1]);
		if (ask(&w, PROBE_FORK, "") != 0)
			_exit(1);
		(void)!write(p[1], "r", 1);
		(void)pause();
	}
	(void)close(alive[1]);
	assert_int_equal(read(p[0], &c, 1), 1);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	assert_int_equal(read(alive[0], &c, 1), 0); /* the last holder of the pipe is gone */
	(void)close(alive[0]);
	(void)close(p[0]);
	(void)close(p[1]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_shell),
		cmocka_unit_test(test_shell_ends), cmocka_unit_test(test_gateway),
		cmocka_unit_test(test_dial), cmocka_unit_test(test_files),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_missing_program),
		cmocka_unit_test(test_dies_with_parent) };
	struct box_err err = { 0 };

	if (argc < 2)
		return 2;
	probe_path = argv[1];
	if (contain_check(&err) < 0) {
		(void)fprintf(stderr, "skipped: %s\n", err.msg);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
