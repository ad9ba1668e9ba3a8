/* box-shell: the program. A "parse" process (design.md 2): it reads hostile command text and holds
 * no authority. It confines itself, says hello, waits for one command, and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ipc.h"
#include "base/log.h"
#include "contain/worker.h"
#include "monitor/proto.h"
#include "shell/proto.h"
#include "shell/run.h"
#include "base/ban.h"

#define PARAMS_MAX MON_ARGS_MAX
#define ENV_MAX    4096

/* The frames of one run, kept until it begins. */
struct frames {
	struct arena arena;
	struct sh_start start;
	int files_fd;
	struct sh_vec env;
	bool run, stdio;
};

static char *text_of(struct frames *f, struct rd *r, size_t max)
{
	return sh_adup(&f->arena, rd_str(r, max));
}

static int on_run(struct frames *f, struct ipc_msg *m, struct box_err *err)
{
	struct rd *r = &m->body;
	struct sh_start *s = &f->start;
	char **params;
	uint32_t n;

	if (f->run || m->nfds < 1 || m->nfds > 2)
		return box_fail(err, BOX_EDENIED, 0, "a second or malformed run frame");
	s->name = text_of(f, r, MON_NAME_MAX);
	s->text = rd_str(r, IPC_BODY_MAX);
	s->text = sv_c(sh_adup(&f->arena, s->text));
	s->zero = text_of(f, r, MON_PATH_MAX);
	n = rd_u32(r);
	if (n > PARAMS_MAX)
		return box_fail(err, BOX_ELIMIT, 0, "too many parameters");
	params = sh_aalloc(&f->arena, n + 1, sizeof(char *));
	for (uint32_t i = 0; i < n; i++)
		params[i] = text_of(f, r, IPC_BODY_MAX);
	s->params = params;
	s->cwd = text_of(f, r, MON_PATH_MAX);
	s->workspace = text_of(f, r, MON_PATH_MAX);
	s->home = text_of(f, r, MON_PATH_MAX);
	s->operator_home = text_of(f, r, MON_PATH_MAX);
	s->path = text_of(f, r, IPC_BODY_MAX);
	s->flags = rd_u32(r);
	if (!rd_done(r))
		return box_fail(err, BOX_EDENIED, 0, "a malformed run frame");
	f->files_fd = sh_fd_high(ipc_msg_take_fd(m, 0));
	s->script_fd = m->nfds == 2 ? sh_fd_high(ipc_msg_take_fd(m, 1)) : -1;
	f->run = true;
	return 0;
}

static int on_env(struct frames *f, struct ipc_msg *m, struct box_err *err)
{
	uint32_t n = rd_u32(&m->body);

	for (uint32_t i = 0; i < n && !m->body.bad; i++) {
		if (f->env.n >= ENV_MAX)
			return box_fail(err, BOX_ELIMIT, 0, "too many environment variables");
		sh_vec_push(&f->env, sh_xdup(rd_str(&m->body, IPC_BODY_MAX)));
	}
	return rd_done(&m->body) ? 0
	                         : box_fail(err, BOX_EDENIED, 0, "a malformed environment frame");
}

static int on_stdio(struct frames *f, struct ipc_msg *m, struct box_err *err)
{
	if (!f->run || m->nfds != 3)
		return box_fail(err, BOX_EDENIED, 0, "a stdio frame out of order");
	for (int i = 0; i < 3; i++) {
		int fd = ipc_msg_take_fd(m, (size_t)i);

		if (dup2(fd, i) != i)
			return box_fail(err, BOX_ESYS, errno, "take over a descriptor");
		(void)close(fd);
	}
	f->stdio = true;
	return 0;
}

static int collect(struct frames *f, int mon, struct box_err *err)
{
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	int r = 0;

	while (!f->stdio && r == 0) {
		r = ipc_recv(mon, &m, err);
		if (r == 0)
			_exit(0); /* never needed */
		if (r < 0)
			return -1;
		r = 0;
		switch (m.type) {
		case MON_START:
		case SHELL_SIGNAL:
			break;
		case MON_STOP:
			_exit(0);
		case SHELL_RUN:
			r = on_run(f, &m, err);
			break;
		case SHELL_ENV:
			r = on_env(f, &m, err);
			break;
		case SHELL_STDIO:
			r = on_stdio(f, &m, err);
			break;
		default:
			r = box_fail(
			    err, BOX_EDENIED, 0, "frame %u is not legal before a run", m.type);
			break;
		}
	}
	return r;
}

static int hello(int mon, struct box_err *err)
{
	AUTO_BUF b = buf_with(64);

	buf_put_u32(&b, MON_VERSION);
	buf_put_str(&b, SV("box-shell"));
	return ipc_send(mon, MON_HELLO, 0, &b, NULL, 0, err);
}

int main(void)
{
	struct frames f = { .files_fd = -1, .start = { .script_fd = -1 } };
	struct box_err err = { 0 };
	int mon, devnull;

	log_init("box-shell", LOG_WARNING);
	/* Its files are read now, none later; order and messages are C's anyway. */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	if (worker_confine(WORKER_SHELL, &err) != 0) {
		log_error("%s", err.msg);
		return 1;
	}
	(void)umask(0);
	/* The group of the command: signals from the alias go to all of it. */
	(void)setpgid(0, 0);
	/* The monitor starts us with /dev/null on 0 and 1. */
	devnull = fcntl(0, F_DUPFD_CLOEXEC, SH_FD_USER_MAX);
	mon = fcntl(MON_FD, F_DUPFD_CLOEXEC, SH_FD_USER_MAX);
	(void)close(MON_FD);
	if (mon < 0 || devnull < 0) {
		log_error("no descriptors for the monitor's channel and /dev/null");
		return 1;
	}
	if (hello(mon, &err) != 0 || collect(&f, mon, &err) != 0) {
		log_error("%s", err.msg);
		return 1;
	}
	f.start.env = f.env.n != 0 ? f.env.v : NULL;
	f.start.wall = clock_wall();
	f.start.mono = clock_mono();
	sh_shell_run(sh_shell_new(mon, f.files_fd, devnull, &f.start), &f.start);
}
