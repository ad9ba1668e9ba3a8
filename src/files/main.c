/* box-files: the program. A "do" process (design.md 2): it has the operator's file rights inside
 * the roots, holds no secret, knows no policy, and acts only on what the monitor permitted. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/ipc.h"
#include "base/log.h"
#include "contain/worker.h"
#include "files/server.h"
#include "base/ban.h"

/* A deep path holds one descriptor a folder while it is walked, a client a few. */
static void raise_files_limit(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < rl.rlim_max) {
		rl.rlim_cur = rl.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &rl); /* less is a smaller limit, not an error */
	}
}

static int fatal(struct srv *s, const struct box_err *err)
{
	AUTO_BUF b = buf_with(4096);

	buf_put_str(&b, sv_c(err->msg));
	if (s->mon.fd >= 0)
		(void)ipc_send(
		    s->mon.fd, MON_FATAL, 0, &b, NULL, 0, NULL); /* the exit status says it too */
	log_error("%s", err->msg);
	srv_fini(s);
	return 1;
}

int main(void)
{
	struct srv s = { .mon = { .fd = -1 } };
	struct box_err err = { 0 };

	log_init("box-files", LOG_WARNING);
	raise_files_limit();
	(void)umask(0); /* modes of new objects come from the client, masked there */
	if (worker_confine(WORKER_FILES, &err) != 0) {
		log_error("%s", err.msg);
		return 1;
	}
	if (srv_start(&s, MON_FD, &err) != 0 || srv_run(&s, &err) != 0)
		return fatal(&s, &err);
	srv_fini(&s);
	return 0;
}
