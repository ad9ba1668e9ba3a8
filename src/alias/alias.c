/* box-alias: what `sh`, `bash` and `zsh` are inside the agent's sandbox. It hands its descriptors,
 * working directory, environment and command text to the monitor and waits for the status. Static,
 * holds nothing, decides nothing: whatever it could do, its caller could do without it.
 *
 * See proto.h for the frames. Exit status: the command's; 125 when the box cannot serve. */
#include "alias/proto.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "alias/args.h"
#include "base/fd.h"
#include "base/ipc.h"
#include "base/ban.h"

#define STATUS_BOX 125
#define STOP_MS    2000 /* the monitor takes less to say that the command has stopped */

/* A script that only the box can open. $0 is its name; one without a slash is in the working
 * directory. */
static const char by_shell[] = "case $0 in */*) . \"$0\" ;; *) . \"./$0\" ;; esac";

extern char **environ;

static int complain(const char *what, const char *why)
{
	(void)fprintf(
	    stderr, "box: %s%s%s\n", what, why != NULL ? ": " : "", why != NULL ? why : "");
	return STATUS_BOX;
}

/* A closed 0, 1 or 2 must not be filled by our own socket. */
static void fill_stdio(void)
{
	for (;;) {
		int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (fd < 0)
			return;
		if (fd > 2) {
			(void)close(fd); /* the first three were open */
			return;
		}
		(void)fd_set_cloexec(
		    fd, false); /* harmless if it fails: nothing is executed from here */
	}
}

static int dial_box(struct box_err *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	AUTO_FD fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return box_fail(err, BOX_ESYS, errno, "make a socket");
	memcpy(sa.sun_path, ALIAS_SOCKET, sizeof(ALIAS_SOCKET));
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0)
		return box_fail(err, BOX_ESYS, errno, "connect to %s", ALIAS_SOCKET);
	if (ipc_prepare(fd, err) != 0)
		return -1;
	return fd_take(&fd);
}

/* Send a byte string in frames of one type. */
static int send_text(int fd, sv text, struct box_err *err)
{
	size_t piece = IPC_BODY_MAX / 2;

	while (text.n != 0) {
		AUTO_BUF b = buf_with(IPC_BODY_MAX);

		buf_put_sv(&b, sv_sub(text, 0, piece));
		if (ipc_send(fd, ALIAS_TEXT, 0, &b, NULL, 0, err) != 0)
			return -1;
		text = sv_sub(text, piece, text.n);
	}
	return 0;
}

/* Send strings, as many in a frame as fit. */
static int send_strings(int fd, uint16_t type, char *const *v, struct box_err *err)
{
	AUTO_BUF b = buf_with(IPC_BODY_MAX);

	for (size_t i = 0; v != NULL && v[i] != NULL; i++) {
		sv s = sv_c(v[i]);

		if (s.n > IPC_BODY_MAX - 8)
			return box_fail(err, BOX_ELIMIT, 0,
			    "an argument or variable is longer than %zu bytes", IPC_BODY_MAX - 8);
		if (b.n + 4 + s.n > IPC_BODY_MAX) {
			if (ipc_send(fd, type, 0, &b, NULL, 0, err) != 0)
				return -1;
			buf_clear(&b);
		}
		buf_put_str(&b, s);
	}
	return b.n != 0 ? ipc_send(fd, type, 0, &b, NULL, 0, err) : 0;
}

static int send_command(int fd, const char *name, const struct alias_args *a, struct box_err *err)
{
	AUTO_BUF b = buf_with(IPC_BODY_MAX);
	char cwd[ALIAS_CWD_MAX];
	int fds[4] = { 0, 1, 2, -1 };
	size_t n = 3;
	const char *text = a->text;
	AUTO_FD script = -1;

	if (a->script != NULL) {
		script = open(a->script, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (script >= 0)
			fds[n++] = script;
		else if (errno == ENOENT || errno == EACCES) /* perhaps the policy lets the shell */
			text = by_shell;
		else
			return box_fail(err, BOX_ESYS, errno, "%s", a->script);
	}
	if (getcwd(cwd, sizeof(cwd)) == NULL || cwd[0] != '/')
		cwd[0] = '\0';
	buf_put_u32(&b, ALIAS_VERSION);
	buf_put_str(&b, sv_c(name));
	buf_put_str(&b, sv_c(cwd));
	buf_put_u32(&b, a->flags);
	buf_put_str(&b, sv_c(a->zero));
	if (ipc_send(fd, ALIAS_HELLO, 0, &b, NULL, 0, err) != 0 ||
	    send_text(fd, sv_c(text), err) != 0 ||
	    send_strings(fd, ALIAS_ARG, a->params, err) != 0 ||
	    send_strings(fd, ALIAS_ENV, environ, err) != 0)
		return -1;
	return ipc_send(fd, ALIAS_RUN, 0, NULL, fds, n, err);
}

/* End the way a shell that was interrupted ends: by the signal itself, so that the caller sees
 * WIFSIGNALED. */
static int die_by(int sig)
{
	sigset_t set;

	(void)signal(sig, SIG_DFL); /* a valid number: it came from signalfd */
	sigemptyset(&set);
	sigaddset(&set, sig);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL); /* cannot fail with these arguments */
	(void)raise(sig);                           /* if it returns, the status below serves */
	return 128 + sig;
}

/* The signals that are passed on. One that our caller ignores (nohup, a background job of a shell
 * without job control) stays ignored: a blocked signal is queued even so. */
static void hear(sigset_t *set)
{
	static const int passed_on[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2,
		SIGTSTP };
	struct sigaction now;

	(void)sigemptyset(set); /* neither can fail with these arguments */
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		if (sigaction(passed_on[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			(void)sigaddset(set, passed_on[i]);
}

static int send_signal(int fd, int sig, struct box_err *err)
{
	AUTO_BUF b = buf_with(8);

	buf_put_byte(&b, (uint8_t)sig);
	return ipc_send(fd, ALIAS_SIGNAL, 0, &b, NULL, 0, err);
}

/* Stop as our caller's job; when it says fg or bg, the command goes on as well. */
static int stop_too(int fd)
{
	struct box_err err = { 0 };

	(void)raise(SIGSTOP);
	return send_signal(fd, SIGCONT, &err) == 0
	           ? 0
	           : complain("the box ended before the command did", NULL);
}

/* Wait for the status, passing signals on. */
static int wait_exit(int fd, int sfd)
{
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	struct box_err err = { 0 };
	int last_sig = 0;
	bool stopping = false;

	for (;;) {
		struct pollfd p[2] = { { fd, POLLIN, 0 }, { sfd, POLLIN, 0 } };
		struct signalfd_siginfo si;
		uint32_t status;
		int r;

		r = poll(p, 2, stopping ? STOP_MS : -1);
		if (r < 0 && errno != EINTR)
			return complain("poll", box_strerror(errno));
		if (r == 0) { /* only when stopping: we do not wait for ever */
			if (stop_too(fd) != 0)
				return STATUS_BOX;
			stopping = false;
			continue;
		}
		if ((p[1].revents & POLLIN) != 0 &&
		    read(sfd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
			int sig = (int)si.ssi_signo;

			if (send_signal(fd, sig, &err) != 0)
				return die_by(sig); /* nobody left to ask */
			/* Ctrl-Z: the command stops first, so that it takes nothing of what is
			 * typed next; then so do we, until fg or bg. */
			if (sig == SIGTSTP)
				stopping = true;
			else
				last_sig = sig;
		}
		if ((p[0].revents & (POLLIN | POLLHUP | POLLERR)) == 0)
			continue;
		r = ipc_recv(fd, &m, &err);
		if (r <= 0)
			return complain("the box ended before the command did", NULL);
		if (m.type == ALIAS_STOPPED) {
			if (stopping && stop_too(fd) != 0)
				return STATUS_BOX;
			stopping = false;
			continue;
		}
		if (m.type == ALIAS_REFUSED) {
			sv why = rd_str(&m.body, 8192);

			(void)fprintf(stderr, "box: " SV_FMT "\n",
			    SV_ARG(why)); /* nothing to do if stderr is gone */
			return STATUS_BOX;
		}
		status = rd_u32(&m.body);
		if (m.type != ALIAS_EXIT || !rd_done(&m.body) || status > 255)
			return complain("the box sent a frame that makes no sense", NULL);
		if (last_sig != 0 && status == 128U + (uint32_t)last_sig)
			return die_by(last_sig);
		return (int)status;
	}
}

int main(int argc, char **argv)
{
	const char *name = argc > 0 && argv[0] != NULL ? argv[0] : "sh";
	const char *slash = strrchr(name, '/');
	struct box_err err = { 0 };
	struct alias_args a;
	sigset_t set;
	int fd, sfd;

	if (slash != NULL)
		name = slash + 1;
	if (*name == '-') /* a login shell is started as "-sh" */
		name++;
	fill_stdio();
	fd_close_from(3);
	if (alias_parse(argc, argv, &a, &err) != 0) {
		(void)fprintf(stderr, "%s: %s\n%s", name, err.msg, alias_usage);
		return 2;
	}
	hear(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 ||
	    (sfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
		return complain("signalfd", box_strerror(errno));
	fd = dial_box(&err);
	if (fd < 0)
		return complain("the box does not answer", err.msg);
	if (send_command(fd, name, &a, &err) != 0)
		return complain("cannot hand the command to the box", err.msg);
	return wait_exit(fd, sfd);
}
