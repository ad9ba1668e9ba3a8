/* Our own worker programs: start, greet, end. See internal.h. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "monitor/internal.h"
#include "base/ban.h"

int crew_start(struct monitor *m, struct crew *c, const char *program, enum worker_profile profile,
    const struct worker_path *paths, size_t paths_n, const struct chan_ops *ops, void *ctx,
    struct box_err *err)
{
	AUTO_BUF path = buf_with(PATH_MAX); /* not in the run's arena: shells come and go */
	const char *image;
	struct worker_spec spec = {
		.profile = profile, .name = program, .err_fd = 2, .paths = paths, .paths_n = paths_n
	};
	int pair[2];

	*c = (struct crew){ .m = m, .program = program, .pid = -1, .pidfd = -1 };
	buf_putf(&path, "%s/%s", m->path.program_dir, program);
	image = buf_cstr(&path);
	if (image == NULL)
		return box_nomem(err, "a worker");
	spec.program = image;
	if (access(image, X_OK) != 0)
		return box_fail(
		    err, BOX_ESYS, errno, "%s must be installed next to box (%s)", program, image);
	if (ipc_pair(pair, err) != 0)
		return -1;
	spec.channel = pair[1];
	if (worker_spawn(&spec, &c->pid, &c->pidfd, err) != 0) {
		fd_drop(&pair[0]);
		fd_drop(&pair[1]);
		return -1;
	}
	fd_drop(&pair[1]);
	c->chan = chan_new(m->loop, m->decider, pair[0], ops, ctx, err);
	if (c->chan == NULL) {
		crew_end(c);
		return -1;
	}
	return 0;
}

bool crew_hello_ok(struct ipc_msg *m, struct box_err *err)
{
	uint32_t version = rd_u32(&m->body);

	(void)rd_str(&m->body, 64); /* the name: we started it, so we know it */
	if (!rd_done(&m->body) || version != MON_VERSION) {
		(void)box_fail(err, BOX_EDENIED, 0, "it speaks version %u of the frames, not %u",
		    version, MON_VERSION);
		return false;
	}
	return true;
}

int crew_on_fatal(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	AUTO_BUF text = buf_with(4096);

	(void)ctx; /* who it was is in the message of on_end */
	/* A parser may have been taken over before it said this: nothing of it reaches a terminal
	 * raw. */
	buf_put_escaped(&text, rd_str(&m->body, 1024));
	return box_fail(err, BOX_ESYS, 0, SV_FMT, SV_ARG(buf_sv(&text)));
}

void crew_kill(struct crew *c)
{
	if (c->pid > 0 && pidfd_send_signal(c->pidfd, SIGKILL, NULL, 0) != 0 && errno != ESRCH)
		log_warn("cannot end %s: %s", c->program, box_strerror(errno));
}

int crew_end(struct crew *c)
{
	int status = 0;

	if (c->pid > 0) {
		crew_kill(c); /* one that is dying already keeps its own status */
		while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	fd_drop(&c->pidfd);
	c->pid = -1;
	c->ready = false;
	return status;
}
