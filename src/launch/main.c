/* box-launch: builds one sandbox around itself and executes one program in it. Started by
 * launch_start as pid 1 of new user, mount, pid, network, ipc, uts and cgroup namespaces, with
 * every capability in that user namespace and none outside. Reads one description (its only input),
 * executes it in order, forks the program as pid 2 and stays as its reaper without a capability.
 * Knows no policy.
 *
 *   pid 1   ids, loopback, listener, view; drop; fork; seccomp; reap; report
 *   pid 2   process group and terminal; limits; Landlock; seccomp; execve */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ipc.h"
#include "contain/apply.h"
#include "contain/filter.h"
#include "contain/ns.h"
#include "contain/spec.h"
#include "launch/proto.h"
#include "base/ban.h"

/* What a failing step was part of, with its message. */
struct fault {
	enum launch_stage stage;
	struct box_err err;
};

static int fault(struct fault *f, enum launch_stage stage)
{
	f->stage = stage;
	return -1;
}

static void report_failed(const struct fault *f)
{
	AUTO_BUF b = buf_with(2 * BOX_ERR_MSG_MAX);

	buf_put_byte(&b, (uint8_t)f->stage);
	buf_put_str(&b, sv_c(f->err.msg));
	(void)ipc_send(LAUNCH_CONTROL_FD, LAUNCH_FAILED, 0, &b, NULL, 0, NULL);
}

static int read_spec(struct sandbox_spec *s, struct fault *f)
{
	AUTO_BUF b = buf_with(SANDBOX_SPEC_MAX);
	AUTO_FD fd = LAUNCH_SPEC_FD;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || !(seals & F_SEAL_WRITE)) {
		(void)box_fail(&f->err, BOX_EDENIED, 0,
		    "box-launch is a part of box and is started by `box run`, not by hand");
		return fault(f, LAUNCH_STAGE_SPEC);
	}
	if (fd_read_all(fd, &b, "the sandbox description", &f->err) < 0 ||
	    sandbox_spec_get(buf_sv(&b), s, &f->err) < 0)
		return fault(f, LAUNCH_STAGE_SPEC);
	return 0;
}

/* A folder as a standard stream would be a way out of the view: names below and above it can be
 * reached from its descriptor, for what Landlock does not judge (chmod, connect). Nothing reads or
 * writes one, so nothing is lost. */
static int check_stdio(struct fault *f)
{
	AUTO_FD null = -1;

	f->stage = LAUNCH_STAGE_SPEC;
	for (int i = 0; i < 3; i++) {
		struct stat st;
		int flags = fcntl(i, F_GETFL);

		if (flags >= 0 && (flags & O_PATH) == 0 && fstat(i, &st) == 0 &&
		    !S_ISDIR(st.st_mode))
			continue;
		if (null < 0)
			null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null < 0 || dup2(null, i) < 0)
			return box_fail(&f->err, BOX_ESYS, errno, "replace a standard stream");
	}
	return 0;
}

static int make_ids(const struct sandbox_spec *s, struct fault *f)
{
	f->stage = LAUNCH_STAGE_NAMESPACE;
	if (ns_map_ids(s->uid, s->gid) < 0)
		return ns_explain(errno, "map the user in the sandbox's user namespace", &f->err);
	if (ns_harden() < 0)
		return box_fail(&f->err, BOX_ESYS, errno, "close box-launch to others");
	ns_budget();
	return 0;
}

/* Loopback, and the listener through which alone the sandbox reaches the world: it belongs to this
 * namespace for ever, and is accepted on by the gateway. */
static int make_network(const struct sandbox_spec *s, struct fault *f)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons(SANDBOX_PROXY_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	AUTO_FD fd = -1;
	int one;

	if (ns_loopback_up() < 0) {
		(void)box_fail(
		    &f->err, BOX_ESYS, errno, "bring the sandbox's loopback interface up");
		return fault(f, LAUNCH_STAGE_NETWORK);
	}
	if (s->net == SANDBOX_NET_NONE)
		return 0;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(fd, 1024) < 0) {
		(void)box_fail(&f->err, BOX_ESYS, errno, "listen for the gateway in the sandbox");
		return fault(f, LAUNCH_STAGE_NETWORK);
	}
	one = fd;
	if (ipc_send(LAUNCH_CONTROL_FD, LAUNCH_LISTENER, 0, NULL, &one, 1, &f->err) < 0)
		return fault(f, LAUNCH_STAGE_NETWORK);
	return 0;
}

static int make_view(const struct sandbox_spec *s, struct fault *f)
{
	if (sethostname(s->hostname, strlen(s->hostname)) < 0) {
		(void)box_fail(&f->err, BOX_ESYS, errno, "name the sandbox");
		return fault(f, LAUNCH_STAGE_VIEW);
	}
	if (apply_view(s->ops, s->ops_n, s->tty ? 0 : -1, &f->err) < 0)
		return fault(f, LAUNCH_STAGE_VIEW);
	return 0;
}

/* --- pid 2 --- */

/* Own process group; with a terminal, in the foreground of the caller's session (so that Ctrl-Z and
 * fg work), else a session of its own. */
static int own_group(const struct sandbox_spec *s)
{
	sigset_t set;
	pid_t self = getpid();

	if (!s->tty)
		return setsid() < 0 ? -1 : 0;
	if (setpgid(0, 0) < 0)
		return -1;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)tcsetpgrp(0,
	    self); /* fails when the terminal is another session's: then there is no job control */
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	return 0;
}

/* Returns only when a step failed. */
static int become(const struct sandbox_spec *s, struct fault *f)
{
	struct box_err *err = &f->err;

	f->stage = LAUNCH_STAGE_CONFINE;
	if (own_group(s) < 0)
		return box_fail(err, BOX_ESYS, errno, "make a process group");
	for (size_t i = 0; i < s->limits_n; i++)
		if (ns_limit(s->limits[i].resource, s->limits[i].soft, s->limits[i].hard) < 0)
			return box_fail(
			    err, BOX_ESYS, errno, "set resource limit %d", s->limits[i].resource);
	(void)umask((mode_t)s->umask & 0777);
	if (chdir(s->cwd) < 0)
		return box_fail(err, BOX_ESYS, errno, "enter %s", s->cwd);
	if (apply_landlock(s->rules, s->rules_n, err) < 0 ||
	    filter_install(FILTER_WORKLOAD, err) < 0)
		return -1;
	f->stage = LAUNCH_STAGE_EXEC;
	execve(s->program, (char *const *)(uintptr_t)s->argv, (char *const *)(uintptr_t)s->envp);
	return box_fail(err, BOX_ESYS, errno, "start %s", s->program);
}

/* --- pid 1 --- */

struct reaper {
	pid_t main; /* the program */
	int sig;    /* signalfd of SIGCHLD */
};

/* 0: nothing special; 1: the program ended, *status is set. */
static int reap(struct reaper *r, int *status)
{
	for (;;) {
		int st;
		pid_t p = waitpid(-1, &st, WNOHANG | WUNTRACED);

		if (p <= 0)
			return 0;
		if (p != r->main)
			continue;
		if (!WIFSTOPPED(st)) {
			*status = st;
			return 1;
		}
		AUTO_BUF b = buf_with(8);

		buf_put_byte(&b, (uint8_t)WSTOPSIG(st));
		(void)ipc_send(LAUNCH_CONTROL_FD, LAUNCH_STOPPED, 0, &b, NULL, 0, NULL);
	}
}

/* A frame from the monitor, or its end. -1: end. */
static int on_control(struct reaper *r)
{
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	uint8_t sig;

	if (ipc_recv(LAUNCH_CONTROL_FD, &m, NULL) <= 0 || m.type != LAUNCH_SIGNAL || m.nfds != 0)
		return -1;
	sig = rd_u8(&m.body);
	if (!rd_done(&m.body) || sig < 1 || sig > 31)
		return -1;
	(void)kill(-r->main, sig);
	return 0;
}

static int supervise(struct reaper *r)
{
	struct pollfd p[2] = { { .fd = LAUNCH_CONTROL_FD, .events = POLLIN },
		{ .fd = r->sig, .events = POLLIN } };
	int status = 0;

	for (;;) {
		struct signalfd_siginfo si;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return 125;
		if (p[1].revents != 0) {
			(void)!read(r->sig, &si, sizeof(si));
			if (reap(r, &status) == 1)
				break;
		}
		if (p[0].revents != 0 && on_control(r) < 0)
			return 125; /* the box is gone: so is everything here */
	}
	AUTO_BUF b = buf_with(8);

	buf_put_u32(&b, (uint32_t)status);
	(void)ipc_send(LAUNCH_CONTROL_FD, LAUNCH_EXITED, 0, &b, NULL, 0, NULL);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Wait for the program to be executed, or for the reason why it was not: end of file means execve
 * closed the pipe. */
static int wait_exec(int fd, struct fault *f)
{
	ssize_t n = fd_read_full(fd, f, sizeof(*f));

	if (n == 0)
		return 0;
	if (n != (ssize_t)sizeof(*f)) {
		f->stage = LAUNCH_STAGE_EXEC;
		return box_fail(&f->err, BOX_ESYS, 0, "the program ended before it was started");
	}
	f->err.msg[sizeof(f->err.msg) - 1] = '\0';
	return -1;
}

static int drop_self(struct fault *f)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	f->stage = LAUNCH_STAGE_CONFINE;
	/* The program's pipes must end when the program lets go of them: pid 1 holds none. */
	for (int i = 0; i < 3; i++)
		if (null < 0 || dup3(null, i, O_CLOEXEC) < 0)
			return box_fail(&f->err, BOX_ESYS, errno, "let standard streams go");
	(void)close(null);
	return filter_install(FILTER_REAPER, &f->err);
}

static int run(const struct sandbox_spec *s, struct fault *f)
{
	struct reaper r = { 0 };
	int pipe_fd[2];
	sigset_t set, before;

	f->stage = LAUNCH_STAGE_CONFINE;
	if (ns_caps_drop() < 0) /* for both: nothing that follows needs any */
		return box_fail(&f->err, BOX_ESYS, errno, "drop the capabilities");
	f->stage = LAUNCH_STAGE_EXEC;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, &before);
	r.sig = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r.sig < 0 || pipe2(pipe_fd, O_CLOEXEC) < 0)
		return box_fail(&f->err, BOX_ESYS, errno, "prepare to start the program");
	r.main = fork();
	if (r.main < 0)
		return box_fail(&f->err, BOX_ESYS, errno, "start the program");
	if (r.main == 0) {
		(void)close(r.sig);
		(void)close(LAUNCH_CONTROL_FD);
		(void)sigprocmask(SIG_SETMASK, &before, NULL);
		(void)become(s, f);
		(void)fd_write_full(pipe_fd[1], f, sizeof(*f));
		_exit(127);
	}
	(void)close(pipe_fd[1]);
	if (drop_self(f) < 0 || wait_exec(pipe_fd[0], f) < 0)
		return -1;
	(void)close(pipe_fd[0]);
	if (ipc_send(LAUNCH_CONTROL_FD, LAUNCH_READY, 0, NULL, NULL, 0, &f->err) < 0)
		return 125;
	return supervise(&r);
}

int main(void)
{
	struct sandbox_spec s = { 0 };
	struct fault f = { 0 };
	int r = -1;

	if (ns_tie() < 0 || fd_set_cloexec(LAUNCH_CONTROL_FD, true) < 0) {
		f.stage = LAUNCH_STAGE_SPEC;
		(void)box_fail(&f.err, BOX_ESYS, errno,
		    "box-launch is a part of box and is started by `box run`, not by hand");
	} else if (read_spec(&s, &f) == 0 && check_stdio(&f) == 0 && make_ids(&s, &f) == 0 &&
	           make_network(&s, &f) == 0 && make_view(&s, &f) == 0) {
		r = run(&s, &f);
	}
	if (r < 0) {
		report_failed(&f);
		r = 126;
	}
	/* Nothing is freed: the kernel takes it all, and with pid 1 everything in this namespace.
	 */
	_exit(r);
}
