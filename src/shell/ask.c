/* The channel to the monitor: decisions about commands, host programs, forks, the end. One request
 * is outstanding at a time; what the monitor says on its own accord (a program ended, a signal for
 * us) is taken in between. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ipc.h"
#include "monitor/proto.h"
#include "shell/escape.h"
#include "shell/proto.h"
#include "shell/shell.h"
#include "base/ban.h"

static int broken(struct shell *sh, const char *what)
{
	if (!sh->mon_broken)
		sh_msg(sh, "effect interception failed: %s", what);
	sh->mon_broken = true;
	sh->status = 125;
	sh->flow = SH_FLOW_EXIT;
	return 125;
}

static void tool_exited(struct shell *sh, struct ipc_msg *m)
{
	uint32_t tool = rd_u32(&m->body);
	int status = (int)rd_u32(&m->body);

	if (!rd_done(&m->body))
		return;
	if (sh->ntools_done == sh->tools_cap) {
		sh->tools_cap = sh->tools_cap != 0 ? sh->tools_cap * 2 : 8;
		sh->tools_done =
		    sh_xrealloc(sh->tools_done, sh->tools_cap, sizeof(sh->tools_done[0]));
	}
	sh->tools_done[sh->ntools_done].tool = tool;
	sh->tools_done[sh->ntools_done].status = sh_wait_status(status);
	sh->ntools_done++;
}

static void unsolicited(struct shell *sh, struct ipc_msg *m)
{
	int sig;

	switch (m->type) {
	case MON_TOOL_EXITED:
		tool_exited(sh, m);
		break;
	case SHELL_SIGNAL:
		sig = rd_u8(&m->body);
		/* Our process group is the command: the children get it as from a terminal. */
		if (rd_done(&m->body) && sig > 0 && sig < SH_NSIG)
			(void)kill(0, sig);
		break;
	default:
		break;
	}
}

bool sh_mon_pump(struct shell *sh)
{
	struct pollfd p = { .fd = sh->mon_fd, .events = POLLIN };
	struct box_err err;

	while (!sh->mon_broken && poll(&p, 1, 0) > 0) {
		if (ipc_recv(sh->mon_fd, &sh->msg, &err) <= 0) {
			(void)broken(sh, "the monitor is gone");
			return false;
		}
		unsolicited(sh, &sh->msg);
	}
	return !sh->mon_broken;
}

void sh_mon_glance(struct shell *sh)
{
	if ((++sh->mon_ticks & 63) == 0)
		(void)sh_mon_pump(sh); /* a channel that is gone is noticed by whoever asks next */
}

/* Send a request and wait for its answer, which lives in sh->msg until the next. 0, or -1 when the
 * channel is gone. One buffer is kept for all of them: a fresh one for each decision would cost
 * more than the decision. */
static int request(struct shell *sh, uint16_t type, const struct buf *body, const int *fds,
    size_t nfds, struct ipc_msg **out)
{
	uint32_t id = ++sh->mon_id;
	struct ipc_msg *m = &sh->msg;
	struct box_err err;

	*out = m;
	if (sh->mon_broken)
		return -1;
	if (ipc_send(sh->mon_fd, type, id, body, fds, nfds, &err) != 0) {
		(void)broken(sh, err.msg);
		return -1;
	}
	for (;;) {
		int r = ipc_recv(sh->mon_fd, m, &err);

		if (r <= 0) {
			(void)broken(sh, r == 0 ? "the monitor is gone" : err.msg);
			return -1;
		}
		if (m->id == id && m->type >= 48 && m->type != MON_TOOL_EXITED)
			return 0;
		unsolicited(sh, m);
	}
}

/* The body of ASK_EXEC and of the front of ASK_SPAWN. false: longer than policy can judge. */
static bool put_command(struct shell *sh, struct buf *b, const char *program, int argc,
    char *const *argv, const bool *literal)
{
	AUTO_BUF text = buf_with(MON_TEXT_MAX);
	AUTO_BUF cwd = buf_with(MON_PATH_MAX);

	if (argc - 1 > MON_ARGS_MAX)
		return false;
	for (int i = 0; i < argc; i++) {
		if (i != 0)
			buf_put_byte(&text, ' ');
		sh_quote(&text, sv_c(argv[i]), false);
	}
	sh_policy_path(sh, &cwd, sh->cwd);
	if (!buf_ok(&text) || !buf_ok(&cwd))
		return false;
	buf_put_str(b, buf_sv(&text));
	buf_put_str(b, sv_c(program));
	buf_put_u32(b, (uint32_t)(argc - 1));
	for (int i = 1; i < argc; i++) {
		buf_put_byte(b, literal != NULL && literal[i]);
		buf_put_str(b, sv_c(argv[i]));
	}
	buf_put_str(b, buf_sv(&cwd));
	return buf_ok(b);
}

static int verdict(struct shell *sh, struct ipc_msg *m, struct sh_ticket *t)
{
	uint8_t permit = rd_u8(&m->body);

	if (m->type != MON_VERDICT)
		return broken(sh, "an answer of the wrong type");
	if (permit == 1) {
		t->id = rd_u64(&m->body);
		if (!rd_done(&m->body))
			return broken(sh, "a malformed verdict");
		t->have = true;
		return 0;
	}
	(void)rd_u16(&m->body);
	{
		AUTO_ARENA a = { 0 };
		char *text = sh_adup(&a, rd_str(&m->body, MON_REASON_MAX));

		if (!rd_done(&m->body))
			return broken(sh, "a malformed verdict");
		sh_msg(sh, "effect denied: %s", text);
	}
	return 126;
}

int sh_ask_exec(struct shell *sh, const char *program, int argc, char *const *argv,
    const bool *literal, struct sh_ticket *t)
{
	AUTO_BUF b = buf_with(IPC_BODY_MAX);
	struct ipc_msg *m;

	*t = (struct sh_ticket){ 0 };
	if (!put_command(sh, &b, program, argc, argv, literal)) {
		sh_msg(sh,
		    "%s: argument list too long for policy to judge; pass the data on standard "
		    "input instead",
		    program);
		return 126;
	}
	if (request(sh, MON_ASK_EXEC, &b, NULL, 0, &m) != 0)
		return 125;
	return verdict(sh, m, t);
}

int sh_ask_spawn(struct shell *sh, const char *program_path, int argc, char *const *argv,
    const bool *literal, struct sh_ticket *t)
{
	AUTO_BUF b = buf_with(IPC_BODY_MAX);
	AUTO_BUF path = buf_with(MON_PATH_MAX);
	struct ipc_msg *m;

	*t = (struct sh_ticket){ 0 };
	sh_policy_path(sh, &path, program_path);
	if (!buf_ok(&path) || !put_command(sh, &b, argv[0], argc, argv, literal)) {
		sh_msg(sh, "%s: argument list too long", argv[0]);
		return 126;
	}
	buf_put_str(&b, buf_sv(&path));
	if (!buf_ok(&b)) {
		sh_msg(sh, "%s: argument list too long", argv[0]);
		return 126;
	}
	if (request(sh, MON_ASK_SPAWN, &b, NULL, 0, &m) != 0)
		return 125;
	return verdict(sh, m, t);
}

void sh_done(struct shell *sh, const struct sh_ticket *t, int status)
{
	AUTO_BUF b = buf_with(64);
	struct box_err err;

	if (!t->have || sh->mon_broken)
		return;
	buf_put_u64(&b, t->id);
	buf_put_u32(&b, (uint32_t)status);
	if (ipc_send(sh->mon_fd, MON_DONE_EXEC, 0, &b, NULL, 0, &err) != 0) {
		sh_msg(sh,
		    "command completed with status %d, but effect outcome recording failed: %s",
		    status, err.msg);
		(void)broken(sh, err.msg);
	}
}

/* The descriptor to hand to a program as its fd; a closed one becomes /dev/null. */
static int pass(struct shell *sh, int fd)
{
	return fcntl(fd, F_GETFD) >= 0 ? fd : sh->devnull;
}

int sh_start_tool(struct shell *sh, const struct sh_ticket *t, int argc, char *const *argv,
    char *const *env, const char *cwd, const int fds[3], uint32_t *tool)
{
	AUTO_BUF b = buf_with(IPC_BODY_MAX);
	struct ipc_msg *m;
	int pf[3] = { pass(sh, fds[0]), pass(sh, fds[1]), pass(sh, fds[2]) };
	uint32_t envc = 0;

	while (env[envc] != NULL)
		envc++;
	buf_put_u64(&b, t->id);
	buf_put_str(&b, sv_c(cwd));
	buf_put_u32(&b, (uint32_t)argc);
	for (int i = 0; i < argc; i++)
		buf_put_str(&b, sv_c(argv[i]));
	buf_put_u32(&b, envc);
	for (uint32_t i = 0; i < envc; i++)
		buf_put_str(&b, sv_c(env[i]));
	if (!buf_ok(&b) || pf[0] < 0 || pf[1] < 0 || pf[2] < 0) {
		sh_msg(sh, "%s: %s", argv[0],
		    buf_ok(&b) ? "standard input, output or error is closed"
		               : "argument list or environment too long");
		return 126;
	}
	if (request(sh, MON_START_TOOL, &b, pf, 3, &m) != 0)
		return 125;
	if (m->type == MON_TOOL_STARTED) {
		*tool = rd_u32(&m->body);
		return rd_done(&m->body) ? 0 : broken(sh, "a malformed answer");
	}
	if (m->type != MON_TOOL_REFUSED)
		return broken(sh, "an answer of the wrong type");
	{
		AUTO_ARENA a = { 0 };

		sh_msg(sh, "%s: %s", argv[0], sh_adup(&a, rd_str(&m->body, MON_REASON_MAX)));
	}
	return 126;
}

void sh_signal_tool(struct shell *sh, uint32_t tool, int sig)
{
	AUTO_BUF b = buf_with(16);
	struct box_err err;

	buf_put_u32(&b, tool);
	buf_put_byte(&b, (uint8_t)sig);
	if (!sh->mon_broken && ipc_send(sh->mon_fd, MON_SIGNAL_TOOL, 0, &b, NULL, 0, &err) != 0)
		(void)broken(sh, err.msg);
}

bool sh_tool_status(struct shell *sh, uint32_t tool, int *status)
{
	for (size_t i = 0; i < sh->ntools_done; i++) {
		if (sh->tools_done[i].tool == tool) {
			*status = sh->tools_done[i].status;
			sh->tools_done[i] = sh->tools_done[--sh->ntools_done];
			return true;
		}
	}
	return false;
}

void sh_mon_exit(struct shell *sh, int status)
{
	AUTO_BUF b = buf_with(16);
	struct box_err err;

	buf_put_u32(&b, (uint32_t)status);
	if (!sh->mon_broken)
		(void)ipc_send(sh->mon_fd, MON_EXIT, 0, &b, NULL, 0, &err); /* nobody to tell */
}
