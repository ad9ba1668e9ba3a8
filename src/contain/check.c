/* contain_check: try every layer once in a short-lived child, the way a sandbox will use it. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "contain/apply.h"
#include "contain/contain.h"
#include "contain/filter.h"
#include "contain/ns.h"
#include "base/ban.h"

static int check_layers(uid_t uid, gid_t gid, struct box_err *err)
{
	static const struct sandbox_op ops[] = {
		{ .kind = SANDBOX_PROC, .flags = SANDBOX_NOEXEC, .dst = "/proc" },
		{ .kind = SANDBOX_SEAL, .dst = "/" },
	};
	static const struct sandbox_rule rule = { "/proc", SANDBOX_R_READ, false };

	if (ns_map_ids(uid, gid) < 0)
		return ns_explain(errno, "map the user in a user namespace", err);
	if (ns_loopback_up() < 0)
		return ns_explain(errno, "bring up loopback in a network namespace", err);
	if (apply_view(ops, 2, -1, err) < 0)
		return -1;
	if (ns_caps_drop() < 0)
		return box_fail(err, BOX_ESYS, errno, "drop the capabilities");
	if (apply_landlock(&rule, 1, err) < 0)
		return -1;
	return filter_install(FILTER_REAPER, err);
}

struct trial {
	uid_t uid;
	gid_t gid;
	int out;
};

static int try_layers(void *arg)
{
	const struct trial *t = arg;
	struct box_err said = { 0 };
	int r = check_layers(t->uid, t->gid, &said);

	if (r < 0)
		(void)fd_write_full(t->out, &said, sizeof(said));
	_exit(r < 0 ? 1 : 0);
}

int contain_check(struct box_err *err)
{
	const unsigned long flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET |
	                            CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
	struct box_err said = { 0 };
	AUTO_FD pidfd = -1, rd = -1, wr = -1;
	int pipe_fd[2];
	/* The ids are unmapped in the child until it maps them. */
	struct trial t = { .uid = geteuid(), .gid = getegid() };
	ssize_t n;
	pid_t pid;

	if (contain_landlock_abi() == 0)
		return apply_landlock(NULL, 0, err);
	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return box_fail(err, BOX_ESYS, errno, "check the containment");
	rd = pipe_fd[0];
	wr = pipe_fd[1];
	t.out = wr;
	pid = ns_spawn(flags, try_layers, &t, &pidfd);
	if (pid < 0)
		return ns_explain(errno, "make namespaces", err);
	fd_drop(&wr);
	n = fd_read_full(rd, &said, sizeof(said));
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (n == 0)
		return 0;
	if (n != (ssize_t)sizeof(said))
		return box_fail(err, BOX_ESYS, 0, "check the containment: the child died");
	if (err != NULL)
		*err = said;
	return -1;
}
