/* Processes: forks with channels of their own, waiting for children and host programs, the end of
 * the shell. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ipc.h"
#include "monitor/proto.h"
#include "shell/shell.h"
#include "base/ban.h"

int sh_wait_status(int w)
{
	if (WIFSIGNALED(w))
		return 128 + WTERMSIG(w);
	return WIFEXITED(w) ? WEXITSTATUS(w) : 1;
}

/* --- children --- */

struct sh_child *sh_child_find(struct shell *sh, pid_t pid)
{
	for (size_t i = 0; i < sh->nchildren; i++) {
		if (sh->children[i].pid == pid)
			return &sh->children[i];
	}
	return NULL;
}

void sh_child_forget(struct shell *sh, pid_t pid)
{
	struct sh_child *c = sh_child_find(sh, pid);

	if (c == NULL)
		return;
	free(c->text);
	*c = sh->children[--sh->nchildren];
}

static void child_add(struct shell *sh, pid_t pid, bool background)
{
	if (sh->nchildren == SH_CHILDREN_MAX) {
		/* Forget the status of a background process that nobody asked for. */
		for (size_t i = 0; i < sh->nchildren; i++) {
			if (sh->children[i].done && sh->children[i].background) {
				sh_child_forget(sh, sh->children[i].pid);
				break;
			}
		}
	}
	if (sh->nchildren == sh->children_cap) {
		sh->children_cap = sh->children_cap != 0 ? sh->children_cap * 2 : 16;
		sh->children = sh_xrealloc(sh->children, sh->children_cap, sizeof(*sh->children));
	}
	sh->children[sh->nchildren++] = (struct sh_child){ .pid = pid, .background = background };
}

static void children_clear(struct shell *sh)
{
	for (size_t i = 0; i < sh->nchildren; i++)
		free(sh->children[i].text);
	sh->nchildren = 0;
}

/* Collect every child that ended. true: there was one. */
bool sh_reap(struct shell *sh)
{
	bool any = false;
	pid_t pid;
	int w;

	while ((pid = waitpid(-1, &w, WNOHANG)) > 0) {
		struct sh_child *c = sh_child_find(sh, pid);

		any = true;
		if (c != NULL) {
			c->done = true;
			c->status = sh_wait_status(w);
		}
	}
	return any;
}

/* --- fork --- */

static void become_child(struct shell *sh, int mon, int files, bool background)
{
	fd_drop(&sh->mon_fd);
	sh->mon_fd = sh_fd_high(mon);
	files_free(sh->files);
	sh->files = files_new(sh_fd_high(files));
	if (sh->files == NULL || sh->mon_fd < 0)
		sh_no_memory();
	files_on_wait(sh->files, sh_files_wait, sh);
	sh->first = false;
	sh->self = getpid();
	sh->subshell++;
	if ((sh->opts & SH_O_ERRTRACE) == 0)
		sh->trap_err = NULL; /* the parent's copy owns the text */
	if ((sh->opts & SH_O_FUNCTRACE) == 0)
		sh->trap_debug = sh->trap_return = NULL;
	sh->ntools_done = 0;
	sh->tools[0] = sh->tools[1] = 0;
	sh->killed = 0;
	sh->nexec_procs = 0;
	for (size_t i = 0; i < sh->nprocs; i++)
		sh->proc_pids[i] = 0;
	children_clear(sh);
	sh_signals_child(sh, background);
}

pid_t sh_fork(struct shell *sh, bool background)
{
	int mon[2] = { -1, -1 }, child = -1, server = -1, fds[2], sys;
	struct box_err err;
	sigset_t all, old;
	pid_t pid = -1;

	if (sh->subshell >= SH_SUBSHELL_DEPTH_MAX) {
		sh_error(sh, true, 1, "maximum recursion depth exceeded");
		return -1;
	}
	(void)sh_out_flush(&sh->out);
	if (ipc_pair(mon, &err) != 0 || files_fork(sh->files, &child, &server, &err) != 0) {
		sh_error(sh, true, 125, "cannot fork: %s", err.msg);
		goto out;
	}
	fds[0] = mon[1];
	fds[1] = server;
	if (ipc_send(sh->mon_fd, MON_FORK, 0, NULL, fds, 2, &err) != 0) {
		sh_error(sh, true, 125, "effect interception failed: %s", err.msg);
		goto out;
	}
	/* A signal sent to the child at once finds either no handler of ours or waits: the handlers
	 * it has from here only note what is forgotten a moment later. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (pid == 0) {
		fd_drop(&mon[1]);
		fd_drop(&server);
		become_child(sh, mon[0], child, background);
		(void)sigprocmask(SIG_SETMASK, &old, NULL);
		return 0;
	}
	sys = errno;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	if (pid < 0) {
		sh_error(sh, true, 1, "cannot fork: %s", box_strerror(sys));
		goto out;
	}
	child_add(sh, pid, background);
out:
	fd_drop(&mon[0]);
	fd_drop(&mon[1]);
	fd_drop(&child);
	fd_drop(&server);
	return pid;
}

/* --- waiting --- */

int sh_files_wait(void *arg, int fd)
{
	struct shell *sh = arg;
	bool ready = false;
	int r = 0;

	while (!ready) {
		if (sh_wait_event(sh, fd, POLLIN, -1, &ready) >= 0)
			continue;
		if (sh_signal_fatal(sh) != 0 || sh->mon_broken) {
			r = -1;
			break;
		}
		sh_signals_defer(sh); /* for a trap: when the call is over */
	}
	sh_signals_restore(sh);
	return r;
}

int sh_wait_event(struct shell *sh, int fd, short events, int64_t timeout_ns, bool *ready)
{
	struct pollfd p[2] = { { .fd = sh->mon_fd, .events = POLLIN },
		{ .fd = fd, .events = events } };
	struct timespec ts, *tp = NULL;
	sigset_t all, old, during;
	size_t tools = sh->ntools_done;
	int r, e;

	if (ready != NULL)
		*ready = false;
	if (timeout_ns >= 0) {
		ts = (struct timespec){ timeout_ns / NS_PER_SEC, timeout_ns % NS_PER_SEC };
		tp = &ts;
	}
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	during = old;
	sigdelset(&during, SIGCHLD);
	if (sh_reap(sh)) {
		r = 0;
	} else if (sh_signal_pending()) {
		r = -1;
	} else {
		r = ppoll(p, fd >= 0 ? 2 : 1, tp, &during);
		e = errno;
		if (r == 0)
			r = 1;
		else if (r < 0)
			r = e == EINTR ? 0 : -1;
		else
			r = 0;
		(void)sh_reap(sh);
		if (r == 0 && sh_signal_pending())
			r = -1;
	}
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	if (p[0].revents != 0 && !sh_mon_pump(sh))
		return -1;
	if (sh_signal_pending())
		return -1;
	if (sh->ntools_done != tools)
		r = 0;
	if (ready != NULL && p[1].revents != 0)
		*ready = true;
	return r;
}

/* A fatal signal goes on to the programs that run for us. */
static void pass_signal(struct shell *sh, int *passed)
{
	int sig = sh_signal_fatal(sh);

	if (sig == 0 || sig == *passed)
		return;
	*passed = sig;
	for (size_t i = 0; i < 2; i++) {
		if (sh->tools[i] != 0)
			sh_signal_tool(sh, sh->tools[i], sig);
	}
}

int sh_wait_member(struct shell *sh, struct sh_member *m)
{
	int passed = 0;

	if (m->tool != 0)
		sh->tools[sh->tools[0] != 0] = m->tool;
	while (!m->done) {
		if (m->tool != 0) {
			m->done = sh_tool_status(sh, m->tool, &m->status);
		} else {
			struct sh_child *c = sh_child_find(sh, m->pid);

			if (c == NULL) {
				m->done = true;
				m->status = 127;
			} else if (c->done) {
				m->done = true;
				m->status = c->status;
				sh_child_forget(sh, m->pid);
			}
		}
		if (m->done)
			break;
		if (sh->mon_broken) {
			m->status = 125;
			m->done = true;
			break;
		}
		if (sh_wait_event(sh, -1, 0, -1, NULL) < 0) {
			/* Traps run when the command has ended (POSIX 2.11); until then pending
			 * signals would make the wait spin, so they are set aside. */
			pass_signal(sh, &passed);
			sh_signals_defer(sh);
		}
	}
	if (m->tool != 0)
		sh->tools[sh->tools[0] != m->tool] = 0;
	sh_signals_restore(sh);
	sh_done(sh, &m->ticket, m->status);
	return m->status;
}

/* --- the end --- */

/* Background jobs may outlive the command. Nobody reads their status, but the process must stay:
 * its end would take them with it. */
static void linger(struct shell *sh)
{
	sh->lingering = true;
	for (int fd = 0; fd < SH_FD_USER_MAX; fd++)
		(void)close(fd); /* the alias's descriptors: whoever reads them must see the end */
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

_Noreturn void sh_exit(struct shell *sh, int status)
{
	(void)sh_out_flush(&sh->out);
	if (sh->nexec_procs != 0) {
		/* `exec > >(tee log)`: the reader sees the end when the last writer closes. */
		for (int fd = 0; fd < SH_FD_USER_MAX; fd++)
			(void)close(fd);
		for (size_t i = 0; i < sh->nexec_procs; i++) {
			struct sh_member m = { .pid = sh->exec_procs[i] };

			(void)sh_wait_member(sh, &m);
		}
	}
	if (sh->first) {
		sh_mon_exit(sh, status & 255);
		linger(sh);
	}
	_exit(status & 255);
}
