/* The monitor's side (launch.h): hand a sealed description to a new box-launch that is already pid
 * 1 of fresh namespaces. What the child needs is prepared before clone; between clone and execve it
 * only makes system calls. */
#include "launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "contain/ns.h"
#include "base/ban.h"

#define LAUNCH_FLAGS                                                                               \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | \
	    CLONE_NEWCGROUP)

static int spec_file(const struct sandbox_spec *spec, struct box_err *err)
{
	AUTO_BUF b = buf_with(SANDBOX_SPEC_MAX);
	AUTO_FD fd = memfd_create("spec", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (sandbox_spec_put(spec, &b, err) < 0)
		return -1;
	if (fd < 0 || fd_write_full(fd, b.p, b.n) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return box_fail(
		    err, BOX_ESYS, errno, "%s: pass the description of its sandbox", spec->label);
	return fd_take(&fd);
}

/* The child tells its trouble in the form box-launch would use, from memory that was prepared
 * before. */
static void __attribute__((noreturn))
child_fail(int control, enum launch_stage stage, const char *what)
{
	uint8_t frame[IPC_HDR + 5 + 256] = { 0 };
	char text[256];
	int sys = errno;
	int n = snprintf(text, sizeof(text), "%s: %s", what, box_strerror(sys));
	size_t len = n < 0 ? 0 : (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
	size_t body = 1 + 4 + len;

	frame[2] = (uint8_t)(body >> 8);
	frame[3] = (uint8_t)body;
	frame[5] = LAUNCH_FAILED;
	frame[IPC_HDR] = (uint8_t)stage;
	frame[IPC_HDR + 3] = (uint8_t)(len >> 8);
	frame[IPC_HDR + 4] = (uint8_t)len;
	memcpy(frame + IPC_HDR + 5, text, len);
	(void)send(control, frame, IPC_HDR + body, MSG_NOSIGNAL);
	_exit(126);
}

struct child {
	const char *path;
	int from[5]; /* stdin, stdout, stderr, control, spec */
};

static int child_run(void *arg)
{
	const struct child *c = arg;
	static char name[] = "box-launch";
	static char *const argv[] = { name, NULL };
	static char *const no_env[] = { NULL };
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	int control = c->from[LAUNCH_CONTROL_FD], high[5];
	sigset_t none;

	/* The ids are mapped after execve: a process that is not dumpable, as the monitor and this
	 * copy of it, may not write its own uid_map. */
	if (ns_tie() < 0)
		child_fail(control, LAUNCH_STAGE_NAMESPACE, "tie the sandbox to the box");
	if (ns_caps_keep() < 0)
		child_fail(control, LAUNCH_STAGE_NAMESPACE, "keep what building the sandbox needs");
	for (int sig = 1; sig < 32; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			(void)sigaction(sig, &dfl, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 0; i < 5; i++) {
		high[i] = fcntl(c->from[i], F_DUPFD, 64);
		if (high[i] < 0)
			child_fail(control, LAUNCH_STAGE_NAMESPACE, "pass descriptors");
	}
	for (int i = 0; i < 5; i++)
		if (dup2(high[i], i) < 0)
			child_fail(
			    high[LAUNCH_CONTROL_FD], LAUNCH_STAGE_NAMESPACE, "pass descriptors");
	if (syscall(SYS_close_range, 5u, ~0u, 0) < 0)
		child_fail(LAUNCH_CONTROL_FD, LAUNCH_STAGE_NAMESPACE, "close descriptors");
	execve(c->path, argv, no_env);
	child_fail(LAUNCH_CONTROL_FD, LAUNCH_STAGE_EXEC, c->path);
}

int launch_start(const char *launcher_path, const struct sandbox_spec *spec, const int stdio[3],
    struct launch_child *child, struct box_err *err)
{
	AUTO_FD file = spec_file(spec, err);
	AUTO_FD pidfd = -1, ours = -1, theirs = -1;
	struct child c = { .path = launcher_path };
	int pair[2];
	pid_t pid;

	if (file < 0 || ipc_pair(pair, err) < 0)
		return -1;
	ours = pair[0];
	theirs = pair[1];
	for (int i = 0; i < 3; i++)
		c.from[i] = stdio[i];
	c.from[LAUNCH_CONTROL_FD] = theirs;
	c.from[LAUNCH_SPEC_FD] = file;
	pid = ns_spawn(LAUNCH_FLAGS, child_run, &c, &pidfd);
	if (pid < 0) {
		int sys = errno;
		char what[320];

		(void)snprintf(
		    what, sizeof(what), "%s: make the sandbox's namespaces", spec->label);
		return ns_explain(sys, what, err);
	}
	*child = (struct launch_child){ pid, fd_take(&pidfd), fd_take(&ours) };
	return 0;
}

struct recv_ctx {
	struct launch_event *ev;
};

static int on_listener(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct launch_event *ev = ((struct recv_ctx *)ctx)->ev;

	(void)err;
	ev->listener = ipc_msg_take_fd(m, 0);
	return 0;
}

static int on_ready(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	(void)ctx;
	(void)m;
	(void)err;
	return 0;
}

static int on_failed(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct launch_event *ev = ((struct recv_ctx *)ctx)->ev;
	AUTO_BUF b = buf_with(4 * BOX_ERR_MSG_MAX);
	uint8_t stage = rd_u8(&m->body);
	sv text = rd_str(&m->body, BOX_ERR_MSG_MAX);

	if (!rd_done(&m->body) || stage < LAUNCH_STAGE_SPEC || stage > LAUNCH_STAGE_EXEC)
		return box_fail(err, BOX_EDENIED, 0, "malformed frame from box-launch");
	ev->stage = (enum launch_stage)stage;
	buf_put_escaped(&b, text);
	(void)snprintf(ev->text, sizeof(ev->text), "%s", buf_ok(&b) ? buf_cstr(&b) : "");
	return 0;
}

static int on_stopped(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct launch_event *ev = ((struct recv_ctx *)ctx)->ev;

	ev->status = rd_u8(&m->body);
	return rd_done(&m->body) ? 0
	                         : box_fail(err, BOX_EDENIED, 0, "malformed frame from box-launch");
}

static int on_exited(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct launch_event *ev = ((struct recv_ctx *)ctx)->ev;

	ev->status = (int)rd_u32(&m->body);
	return rd_done(&m->body) ? 0
	                         : box_fail(err, BOX_EDENIED, 0, "malformed frame from box-launch");
}

static const struct ipc_rule launch_table[] = {
	{ LAUNCH_LISTENER, "LISTENER", 1, 1, 1, 0, on_listener },
	{ LAUNCH_READY, "READY", 1, 0, 0, 0, on_ready },
	{ LAUNCH_FAILED, "FAILED", 1, 0, 0, 5 + BOX_ERR_MSG_MAX, on_failed },
	{ LAUNCH_STOPPED, "STOPPED", 1, 0, 0, 1, on_stopped },
	{ LAUNCH_EXITED, "EXITED", 1, 0, 0, 4, on_exited },
	{ 0 },
};

int launch_recv(struct launch_child *child, struct launch_event *ev, struct box_err *err)
{
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	struct recv_ctx ctx = { ev };
	int r;

	*ev = (struct launch_event){ .listener = -1 };
	r = ipc_recv(child->control, &m, err);
	if (r <= 0)
		return r;
	ev->type = (enum launch_type)m.type;
	return ipc_dispatch(launch_table, 1, &ctx, &m, err) < 0 ? -1 : 1;
}

int launch_signal(struct launch_child *child, int sig, struct box_err *err)
{
	AUTO_BUF b = buf_with(16);

	buf_put_byte(&b, (uint8_t)sig);
	return ipc_send(child->control, LAUNCH_SIGNAL, 0, &b, NULL, 0, err);
}

void launch_end(struct launch_child *child)
{
	if (child->pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL, NULL, 0);
	if (child->pid > 0)
		while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
			;
	fd_drop(&child->pidfd);
	fd_drop(&child->control);
	child->pid = -1;
}
