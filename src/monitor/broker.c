/* The box's one socket, <BD>/run/box.sock: aliases connect here, one connection a command. What
 * they send is hostile: bounded, checked against the table, and passed on to a box-shell as bytes.
 * See alias/proto.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "alias/proto.h"
#include "base/fd.h"
#include "base/log.h"
#include "monitor/internal.h"
#include "base/ban.h"

#define STATE_NEW     1U
#define STATE_READING 2U
#define STATE_RUNNING 4U

#define ALIASES_MAX  512
#define ARGS_MAX     65536U
#define HELLO_MS     5000 /* from connect to RUN */
#define WARNINGS_MAX 20   /* broken connections that are told about */
#define STOP_LOOK_MS 2
#define STOP_LOOKS   250 /* then it is taken to have stopped */

struct alias {
	struct alias *next;
	struct monitor *m;
	struct chan *chan;
	struct session *session;  /* NULL before RUN and after the answer */
	struct loop_timer *timer; /* from connect to RUN; then while the command is to stop */
	unsigned stop_looks;
	struct alias_command cmd;
	struct arena arena;
};

const struct alias_command *alias_command(const struct alias *a)
{
	return &a->cmd;
}

static void alias_free(struct alias *a)
{
	struct monitor *m = a->m;

	for (struct alias **at = &m->aliases; *at != NULL; at = &(*at)->next) {
		if (*at != a)
			continue;
		*at = a->next;
		m->aliases_n--;
		break;
	}
	if (a->timer != NULL)
		loop_cancel(m->loop, a->timer);
	buf_fini(&a->cmd.text);
	buf_fini(&a->cmd.args);
	buf_fini(&a->cmd.env);
	for (size_t i = 0; i < 4; i++)
		fd_drop(&a->cmd.fds[i]);
	arena_free(&a->arena);
	free(a);
}

static void on_end(void *ctx, const char *why)
{
	struct alias *a = ctx;

	if (why != NULL && a->m->alias_warnings < WARNINGS_MAX) {
		a->m->alias_warnings++;
		log_warn("an alias connection was ended: %s", why);
	}
	if (a->session != NULL)
		session_hangup(a->session);
	alias_free(a);
}

void alias_exit(struct alias *a, int status)
{
	AUTO_BUF b = buf_with(8);

	buf_put_u32(&b, (uint32_t)status);
	chan_send(a->chan, ALIAS_EXIT, 0, &b, NULL, 0);
	a->session = NULL;
	chan_end(a->chan);
}

void alias_refuse(struct alias *a, const char *reason)
{
	AUTO_BUF b = buf_with(8200);

	buf_put_str(&b, sv_sub(sv_c(reason), 0, 8000));
	chan_send(a->chan, ALIAS_REFUSED, 0, &b, NULL, 0);
	a->session = NULL;
	chan_end(a->chan);
}

/* ----------------------------------------------------------------------------- requests */

static int malformed(struct box_err *err)
{
	return box_fail(err, BOX_EDENIED, 0, "a malformed frame");
}

static int on_hello(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct alias *a = ctx;
	uint32_t version = rd_u32(&msg->body);
	sv name = rd_str(&msg->body, ALIAS_NAME_MAX), cwd = rd_str(&msg->body, ALIAS_CWD_MAX), zero;

	a->cmd.flags = rd_u32(&msg->body);
	zero = rd_str(&msg->body, ALIAS_CWD_MAX);
	if (!rd_done(&msg->body) || sv_find(name, '\0') >= 0 || sv_find(cwd, '\0') >= 0 ||
	    sv_find(zero, '\0') >= 0)
		return malformed(err);
	if (version != ALIAS_VERSION) {
		AUTO_BUF why = buf_with(256);

		buf_putf(&why, "unsupported protocol version %u; this box speaks %d", version,
		    ALIAS_VERSION);
		alias_refuse(a, buf_cstr(&why));
		return 0;
	}
	a->cmd.name = arena_dup(&a->arena, name).p;
	a->cmd.cwd = arena_dup(&a->arena, cwd).p;
	a->cmd.zero = arena_dup(&a->arena, zero).p;
	if (a->cmd.name == NULL || a->cmd.cwd == NULL || a->cmd.zero == NULL)
		return box_nomem(err, "a command");
	chan_set_state(a->chan, STATE_READING);
	return 0;
}

static int too_long(struct alias *a, const char *what)
{
	AUTO_BUF why = buf_with(256);

	buf_putf(&why, "%s longer than a box takes", what);
	alias_refuse(a, buf_cstr(&why));
	return 0;
}

static int on_text(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct alias *a = ctx;

	(void)err;
	buf_put(&a->cmd.text, msg->body.p, rd_left(&msg->body));
	return buf_ok(&a->cmd.text) ? 0 : too_long(a, "the command text is");
}

/* Check the strings of a frame and append them as they are. */
static int add_strings(struct alias *a, struct ipc_msg *msg, struct buf *list, uint32_t *n,
    const char *what, struct box_err *err)
{
	const uint8_t *p = msg->body.p;
	size_t len = rd_left(&msg->body);
	struct rd r = msg->body;

	while (!r.bad && rd_left(&r) != 0) {
		if (sv_find(rd_str(&r, IPC_BODY_MAX), '\0') >= 0)
			return malformed(err);
		if (++*n > ARGS_MAX)
			return too_long(a, what);
	}
	if (r.bad)
		return malformed(err);
	buf_put(list, p, len);
	return buf_ok(list) ? 0 : too_long(a, what);
}

static int on_arg(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct alias *a = ctx;

	return add_strings(a, msg, &a->cmd.args, &a->cmd.args_n, "the arguments are", err);
}

static int on_env(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct alias *a = ctx;

	return add_strings(a, msg, &a->cmd.env, &a->cmd.env_n, "the environment is", err);
}

static bool is_shell(const char *name)
{
	return strcmp(name, "sh") == 0 || strcmp(name, "bash") == 0 || strcmp(name, "zsh") == 0;
}

static int on_run(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct alias *a = ctx;
	struct box_err why = { 0 };

	if (!rd_done(&msg->body))
		return malformed(err);
	for (size_t i = 0; i < 4; i++)
		a->cmd.fds[i] = ipc_msg_take_fd(msg, i);
	loop_cancel(a->m->loop, a->timer);
	a->timer = NULL;
	chan_set_state(a->chan, STATE_RUNNING);
	if (!is_shell(a->cmd.name)) {
		AUTO_BUF b = buf_with(1024);

		buf_put_c(&b, "no MCP server declares the program \"");
		buf_put_escaped(&b, sv_c(a->cmd.name));
		buf_put_c(&b, "\" in box.toml");
		alias_refuse(a, buf_cstr(&b));
		return 0;
	}
	if (session_run(a->m, a, &a->session, &why) != 0) {
		a->session = NULL;
		alias_refuse(a, why.msg);
	}
	/* The shell has its own copies now. */
	for (size_t i = 0; i < 4; i++)
		fd_drop(&a->cmd.fds[i]);
	return 0;
}

/* Ctrl-Z: the alias stops when the command has, and not before. */
static void on_stop_timer(void *arg)
{
	struct alias *a = arg;

	a->timer = NULL;
	if (a->session == NULL)
		return;
	if (++a->stop_looks < STOP_LOOKS && !session_stopped(a->session)) {
		a->timer = loop_after(a->m->loop, STOP_LOOK_MS, on_stop_timer, a);
		if (a->timer != NULL)
			return;
	}
	chan_send(a->chan, ALIAS_STOPPED, 0, NULL, NULL, 0);
}

static int on_signal(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct alias *a = ctx;
	uint8_t sig = rd_u8(&msg->body);

	if (!rd_done(&msg->body) || sig == 0 || sig > 31)
		return malformed(err);
	if (a->session != NULL)
		session_signal(a->session, sig);
	if (sig == SIGTSTP && a->timer == NULL) {
		a->stop_looks = 0;
		on_stop_timer(a);
	}
	return 0;
}

static const struct ipc_rule table[] = {
	{ ALIAS_HELLO, "HELLO", STATE_NEW, 0, 0, 16384, on_hello },
	{ ALIAS_TEXT, "TEXT", STATE_READING, 0, 0, IPC_BODY_MAX, on_text },
	{ ALIAS_ARG, "ARG", STATE_READING, 0, 0, IPC_BODY_MAX, on_arg },
	{ ALIAS_ENV, "ENV", STATE_READING, 0, 0, IPC_BODY_MAX, on_env },
	{ ALIAS_RUN, "RUN", STATE_READING, 3, 4, 0, on_run },
	{ ALIAS_SIGNAL, "SIGNAL", STATE_RUNNING, 0, 0, 1, on_signal },
	{ 0 },
};

static const struct chan_ops ops = { "an alias", table, on_end };

/* ----------------------------------------------------------------------------- accepting */

static void on_slow(void *arg)
{
	struct alias *a = arg;

	a->timer = NULL; /* the loop frees a timer that ran */
	alias_refuse(a, "the command did not arrive in time");
}

static void serve(struct monitor *m, int fd)
{
	AUTO_FD own = fd;
	struct box_err err = { 0 };
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);
	struct alias *a;

	/* The folder is 0700; this says so once more, for the socket itself. */
	if (getsockopt(own, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 || peer.uid != m->plan->uid)
		return;
	if (m->aliases_n >= ALIASES_MAX || ipc_prepare(own, &err) != 0 ||
	    (a = calloc(1, sizeof(*a))) == NULL)
		return; /* the alias says "the box ended before the command did" */
	*a = (struct alias){ .m = m,
		.cmd = { .text = buf_with(ALIAS_TEXT_MAX),
		    .args = buf_with(ALIAS_ARGS_MAX),
		    .env = buf_with(ALIAS_ENV_MAX),
		    .fds = { -1, -1, -1, -1 } },
		.arena = { .limit = 65536 } };
	a->chan = chan_new(m->loop, m->decider, fd_take(&own), &ops, a, &err);
	if (a->chan == NULL) {
		free(a);
		return;
	}
	a->next = m->aliases;
	m->aliases = a;
	m->aliases_n++;
	a->timer = loop_after(m->loop, HELLO_MS, on_slow, a);
	if (a->timer == NULL)
		chan_end(a->chan);
}

static void on_connection(void *arg, uint32_t events)
{
	struct monitor *m = arg;

	(void)events;
	for (int i = 0; i < 16; i++) {
		int fd = accept4(m->broker_fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0) /* EAGAIN, a connection that is gone again, no descriptors: later */
			return;
		serve(m, fd);
	}
}

int broker_open(struct monitor *m, struct box_err *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	AUTO_FD fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	size_t n = strlen(m->path.socket);

	if (fd < 0)
		return box_fail(err, BOX_ESYS, errno, "make the broker socket");
	if (n >= sizeof(sa.sun_path))
		return box_fail(err, BOX_ECONFIG, 0, "%s is too long for a socket", m->path.socket);
	memcpy(sa.sun_path, m->path.socket, n + 1);
	/* We hold the run lock, so what is there was left by a run that was killed. */
	if (unlink(m->path.socket) != 0 && errno != ENOENT)
		return box_fail(err, BOX_ESYS, errno, "remove the old socket %s", m->path.socket);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 || chmod(m->path.socket, 0600) != 0 ||
	    listen(fd, 64) != 0)
		return box_fail(err, BOX_ESYS, errno, "listen on %s", m->path.socket);
	m->broker_watch = loop_watch(m->loop, fd, EPOLLIN, on_connection, m, err);
	if (m->broker_watch == NULL)
		return -1;
	m->broker_fd = fd_take(&fd);
	return 0;
}

void broker_close(struct monitor *m)
{
	if (m->broker_fd < 0)
		return;
	loop_unwatch(m->loop, m->broker_watch);
	fd_drop(&m->broker_fd);
	(void)unlink(m->path.socket); /* a leftover is removed by the next run */
	for (struct alias *a = m->aliases; a != NULL; a = a->next) {
		a->session = NULL;
		chan_end(a->chan);
	}
}
