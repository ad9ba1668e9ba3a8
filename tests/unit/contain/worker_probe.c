/* The program that worker_test starts as a worker: confines itself as its argument-less self, then
 * does one named thing for each frame and answers with errno (0: it worked). The first frame type
 * says the profile only in the card; here the name of the program does: "probe-shell",
 * "probe-gateway", … */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ipc.h"
#include "contain/worker.h"
#include "worker_probe.h"
#include "base/ban.h"

static int got(long r)
{
	return r < 0 ? errno : 0;
}

static int got_fd(int fd)
{
	if (fd < 0)
		return errno;
	(void)close(fd);
	return 0;
}

static int do_fork(void)
{
	pid_t p = fork();
	int st;

	if (p < 0)
		return errno;
	if (p == 0)
		_exit(7);
	return waitpid(p, &st, 0) == p && WEXITSTATUS(st) == 7 ? 0 : ECHILD;
}

static void *nothing(void *arg)
{
	return arg;
}

static int do_thread(void)
{
	pthread_t t;
	int r = pthread_create(&t, NULL, nothing, NULL);

	if (r == 0)
		(void)pthread_join(t, NULL);
	return r;
}

static int do_socketpair(void)
{
	int v[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, v) < 0)
		return errno;
	(void)close(v[0]);
	(void)close(v[1]);
	return 0;
}

static int do_caps(void)
{
	for (int i = 0; i < 64 && prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if (prctl(PR_CAPBSET_READ, i, 0, 0, 0) != 0)
			return EEXIST;
	return 0;
}

/* Descriptors beyond the documented ones. */
static int do_fds(void)
{
	int open_n = 0;

	for (int i = 0; i < 256; i++)
		if (fcntl(i, F_GETFD) >= 0)
			open_n++;
	return open_n;
}

static int do_resolve(void)
{
	struct addrinfo *a = NULL, hint = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	int r = getaddrinfo("localhost", "80", &hint, &a);

	if (r == 0)
		freeaddrinfo(a);
	return r == 0 ? 0 : EHOSTUNREACH;
}

static int do_connect(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons(1),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	AUTO_FD fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return errno;
	return got(connect(fd, (struct sockaddr *)&to, sizeof(to)));
}

static int probe(enum probe what, const char *arg)
{
	char text[64];
	char *const argv[] = { (char *)(uintptr_t)arg, NULL };

	switch (what) {
	case PROBE_OPEN_READ:
		return got_fd(open(arg, O_RDONLY | O_CLOEXEC));
	case PROBE_OPEN_WRITE:
		return got_fd(open(arg, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	case PROBE_OPENAT2:
		return got_fd(fd_openat2(AT_FDCWD, arg, O_RDONLY, 0, 0));
	case PROBE_MKDIR:
		return got(mkdir(arg, 0700));
	case PROBE_STAT: {
		struct stat st;

		return got(stat(arg, &st));
	}
	case PROBE_EXEC:
		return got(execv(arg, argv));
	case PROBE_FORK:
		return do_fork();
	case PROBE_THREAD:
		return do_thread();
	case PROBE_SOCKET_INET:
		return got_fd(socket(AF_INET, SOCK_STREAM, 0));
	case PROBE_SOCKET_UNIX:
		return got_fd(socket(AF_UNIX, SOCK_STREAM, 0));
	case PROBE_SOCKETPAIR:
		return do_socketpair();
	case PROBE_CONNECT:
		return do_connect();
	case PROBE_RESOLVE:
		return do_resolve();
	case PROBE_EPOLL:
		return got_fd(epoll_create1(EPOLL_CLOEXEC));
	case PROBE_PTRACE:
		return got(ptrace(PTRACE_ATTACH, (pid_t)atoi(arg), NULL, NULL));
	case PROBE_KILL:
		return got(kill((pid_t)atoi(arg), 0));
	case PROBE_GETPID:
		return (int)getpid();
	case PROBE_CAPS:
		return do_caps();
	case PROBE_FDS:
		return do_fds();
	case PROBE_MAP_CODE: {
		void *p =
		    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		return p == MAP_FAILED ? errno : 0;
	}
	case PROBE_UNSHARE:
		return got(unshare_ns());
	case PROBE_EXTRA_FD:
		return got(read(WORKER_FDS, text, sizeof(text)));
	}
	return EINVAL;
}

int unshare_ns(void)
{
	return (int)syscall(SYS_unshare, 0x10000000 /* CLONE_NEWUSER */);
}

int main(int argc, char **argv)
{
	struct box_err err = { 0 };
	enum worker_profile p = WORKER_SHELL;
	const char *name = argc > 0 ? argv[0] : "";

	if (strcmp(name, "probe-gateway") == 0)
		p = WORKER_GATEWAY;
	else if (strcmp(name, "probe-dial") == 0)
		p = WORKER_DIAL;
	else if (strcmp(name, "probe-files") == 0)
		p = WORKER_FILES;
	if (worker_confine(p, &err) < 0) {
		(void)fprintf(stderr, "%s: %s\n", name, err.msg);
		return 1;
	}
	for (;;) {
		AUTO_IPC_MSG m = IPC_MSG_INIT;
		AUTO_BUF b = buf_with(64);
		char arg[1024];
		sv s;

		if (ipc_recv(WORKER_CHANNEL_FD, &m, NULL) <= 0)
			return 5;
		s = rd_str(&m.body, sizeof(arg) - 1);
		memcpy(arg, s.p != NULL ? s.p : "", s.n);
		arg[s.n] = '\0';
		buf_put_u32(&b, (uint32_t)probe((enum probe)m.type, arg));
		if (ipc_send(WORKER_CHANNEL_FD, m.type, m.id, &b, NULL, 0, NULL) < 0)
			return 6;
	}
}
