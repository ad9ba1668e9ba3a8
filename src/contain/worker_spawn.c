/* The monitor's half of worker.h: everything the child needs is prepared before clone, so that
 * between clone and execve it only makes system calls. */
#include "contain/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "contain/ns.h"
#include "contain/worker_card.h"
#include "base/ban.h"

/* The card: what the worker is told about itself, as a sealed memory file. */
static int card_make(const struct worker_spec *s, struct box_err *err)
{
	AUTO_BUF b = buf_with(WORKER_CARD_MAX);
	AUTO_FD fd = -1;

	buf_put_u32(&b, WORKER_CARD_VERSION);
	buf_put_u32(&b, (uint32_t)s->profile);
	buf_put_u32(&b, (uint32_t)geteuid());
	buf_put_u32(&b, (uint32_t)getegid());
	buf_put_str(&b, sv_c(s->name));
	buf_put_u32(&b, (uint32_t)s->paths_n);
	for (size_t i = 0; i < s->paths_n; i++) {
		buf_put_str(&b, sv_c(s->paths[i].path));
		buf_put_u32(&b, s->paths[i].rights);
	}
	if (!buf_ok(&b))
		return box_fail(err, BOX_ELIMIT, 0, "start %s: too many paths", s->name);
	fd = memfd_create("card", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || fd_write_full(fd, b.p, b.n) < 0 || lseek(fd, 0, SEEK_SET) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return box_fail(err, BOX_ESYS, errno, "start %s: pass its paths", s->name);
	return fd_take(&fd);
}

/* In the child: report on the box's stderr and end. No stdio: the parent's buffers are in this
 * memory too. */
static void __attribute__((noreturn)) child_fail(int err_fd, const char *name, const char *what)
{
	char line[256];
	int n = snprintf(line, sizeof(line), "box: %s could not start: %s: %s\n", name, what,
	    box_strerror(errno));

	if (n > 0)
		(void)!write(err_fd, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
	_exit(126);
}

struct child {
	const struct worker_spec *s;
	const int *from; /* descriptors in the order 0, 1, 2, 3, … of the child */
	size_t from_n;
};

/* Move the descriptors to 0, 1, 2, …: first all above the range, then down, so that none is
 * overwritten before it was copied. */
static int child_fds(const struct child *c)
{
	int base = (int)c->from_n;
	int high[WORKER_FDS + WORKER_FDS_MAX];

	for (size_t i = 0; i < c->from_n; i++) {
		high[i] = fcntl(c->from[i], F_DUPFD, base + 64);
		if (high[i] < 0)
			return -1;
	}
	for (size_t i = 0; i < c->from_n; i++)
		if (dup2(high[i], (int)i) < 0)
			return -1;
	return (int)syscall(SYS_close_range, (unsigned)c->from_n, ~0u, 0);
}

static int child_run(void *arg)
{
	const struct child *c = arg;
	static char *const no_env[] = { NULL };
	const struct worker_spec *s = c->s;
	char *argv[] = { (char *)(uintptr_t)s->name, NULL };
	sigset_t none;
	struct sigaction dfl = { .sa_handler = SIG_DFL };

	/* The ids are mapped after execve: a process that is not dumpable, as the monitor and this
	 * copy of it, may not write its own uid_map. */
	if (ns_tie() < 0)
		child_fail(s->err_fd, s->name, "tie it to the box");
	if (ns_caps_keep() < 0)
		child_fail(s->err_fd, s->name, "keep what is needed to confine itself");
	for (int sig = 1; sig < 32;
	     sig++) /* handlers are reset by execve, ignored signals are not */
		if (sig != SIGKILL && sig != SIGSTOP)
			(void)sigaction(sig, &dfl, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (setsid() < 0) /* Ctrl-C and Ctrl-Z at the terminal are the monitor's affair */
		child_fail(s->err_fd, s->name, "leave the terminal");
	if (child_fds(c) < 0)
		child_fail(s->err_fd, s->name, "pass descriptors");
	execve(s->program, argv, no_env);
	child_fail(2, s->name, s->program);
}

int worker_spawn(const struct worker_spec *s, pid_t *pid, int *pidfd, struct box_err *err)
{
	/* The network namespace takes longest to make: the worker does it (worker_confine). */
	const unsigned long flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
	                            CLONE_NEWUTS | CLONE_NEWCGROUP;
	int from[WORKER_FDS + WORKER_FDS_MAX];
	struct child c = { .s = s, .from = from };
	AUTO_FD null = open("/dev/null", O_RDWR | O_CLOEXEC);
	AUTO_FD card = -1;
	pid_t p;

	if (s->fds_n > WORKER_FDS_MAX || s->paths_n > WORKER_PATHS_MAX)
		return box_fail(
		    err, BOX_ELIMIT, 0, "start %s: too many descriptors or paths", s->name);
	if (null < 0)
		return box_fail(err, BOX_ESYS, errno, "start %s: /dev/null", s->name);
	card = card_make(s, err);
	if (card < 0)
		return -1;
	from[0] = from[1] = null;
	from[2] = s->err_fd;
	from[WORKER_CHANNEL_FD] = s->channel;
	from[WORKER_CARD_FD] = card;
	for (size_t i = 0; i < s->fds_n; i++)
		from[WORKER_FDS + i] = s->fds[i];
	c.from_n = WORKER_FDS + s->fds_n;
	p = ns_spawn(flags, child_run, &c, pidfd);
	if (p < 0) {
		int sys = errno;
		char what[128];

		(void)snprintf(what, sizeof(what), "start %s", s->name);
		return ns_explain(sys, what, err);
	}
	*pid = p;
	return 0;
}
