/* One box-shell: one command of an alias. The shell's first process, and each subshell it forks,
 * has a channel of its own here; all belong to one session. The shell parses hostile text: what it
 * asks is decided, and a program is started only from a permitted ticket, with the arguments that
 * were decided. See shell/proto.h and monitor/proto.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "alias/proto.h"
#include "base/fd.h"
#include "base/log.h"
#include "monitor/session_int.h"
#include "monitor/spawn.h"
#include "shell/proto.h"
#include "base/ban.h"

#define CHANS_MAX    1024 /* subshells of one session at a time */
#define TOOLS_MAX    256  /* programs of one session at a time */
#define HANGUP_MS    1000
#define REAP_MS      2000 /* from the end of a shell's channels to that of its process */
#define WARNINGS_MAX 20   /* of one run */
#define NOT_STARTED  126  /* the status of a program that was permitted and could not be started */

static struct tool *tool_find(struct session *s, uint32_t id)
{
	for (struct tool *t = s->tools; t != NULL; t = t->next)
		if (t->id == id)
			return t;
	return NULL;
}

static void tool_drop(struct session *s, struct tool *t)
{
	for (struct tool **at = &s->tools; *at != NULL; at = &(*at)->next) {
		if (*at != t)
			continue;
		*at = t->next;
		s->tools_n--;
		free(t);
		return;
	}
}

/* The shell ended without a status of the command. By a signal (`kill -9 $$`, a limit, a fault of
 * ours): its caller sees what it would see of any shell. The worker's first process is a reaper
 * that reports 128+n (contain/reap.h). */
static void died(struct session *s)
{
	struct pollfd p = { .fd = s->crew.pidfd, .events = POLLIN };
	bool over = !s->broken && poll(&p, 1, 0) == 1;
	int status = crew_end(&s->crew);
	int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);

	if (!over || code <= 128) {
		alias_refuse(s->alias, "the shell ended before the command did");
		return;
	}
	if ((code == 128 + SIGSEGV || code == 128 + SIGABRT || code == 128 + SIGSYS) &&
	    s->m->alias_warnings++ < WARNINGS_MAX)
		log_warn("a shell was ended by signal %d", code - 128);
	alias_exit(s->alias, code);
}

/* Everything of the session ends. Its channels are gone already. */
static void session_free(struct session *s)
{
	struct monitor *m = s->m;

	for (struct session **at = &m->sessions; *at != NULL; at = &(*at)->next) {
		if (*at != s)
			continue;
		*at = s->next;
		m->sessions_n--;
		break;
	}
	if (m->spare == s)
		m->spare = NULL;
	if (s->reaped != NULL)
		loop_unwatch(m->loop, s->reaped);
	decide_owner_end(m->decider, &s->owner);
	sandbox_end_session(m, s);
	while (s->tools != NULL)
		tool_drop(s, s->tools);
	if (s->kill_timer != NULL)
		loop_cancel(m->loop, s->kill_timer);
	if (s->alias != NULL)
		died(s);
	(void)crew_end(&s->crew); /* nobody is left who would see its status */
	arena_free(&s->arena);
	free(s);
}

static void on_reaped(void *arg, uint32_t events)
{
	(void)events;
	session_free(arg);
}

static void on_reap_timer(void *arg)
{
	struct session *s = arg;

	s->kill_timer = NULL; /* the loop frees a timer that ran */
	session_free(s);
}

/* The last channel is gone. When somebody waits for the status, so do we, for a moment. */
static void session_over(struct session *s)
{
	struct loop *loop = s->m->loop;
	struct box_err err = { 0 };

	if (s->alias != NULL && !s->broken && !s->m->stopping && s->kill_timer == NULL) {
		s->reaped = loop_watch(loop, s->crew.pidfd, EPOLLIN, on_reaped, s, &err);
		s->kill_timer =
		    s->reaped != NULL ? loop_after(loop, REAP_MS, on_reap_timer, s) : NULL;
		if (s->kill_timer != NULL)
			return;
	}
	session_free(s);
}

static void on_end(void *ctx, const char *why)
{
	struct shell_chan *c = ctx;
	struct session *s = c->session;

	if (why != NULL) {
		s->broken = true;
		log_warn("a shell was ended: %s", why);
	}
	for (struct tool *t = s->tools; t != NULL; t = t->next)
		if (t->asker == c)
			t->asker = NULL;
	for (struct shell_chan **at = &s->chans; *at != NULL; at = &(*at)->next) {
		if (*at != c)
			continue;
		*at = c->next;
		s->chans_n--;
		break;
	}
	if (why != NULL) /* a peer that broke the rules takes its whole session with it */
		for (struct shell_chan *o = s->chans; o != NULL; o = o->next)
			chan_end(o->chan);
	free(c);
	if (s->chans == NULL)
		session_over(s);
}

/* ---------------------------------------------------------------------------- requests */

static int malformed(struct box_err *err)
{
	return box_fail(err, BOX_EDENIED, 0, "a malformed frame");
}

static int on_hello(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct shell_chan *c = ctx;

	if (!crew_hello_ok(msg, err))
		return -1;
	/* The command may have been sent already: then the state is LIVE. */
	if (chan_state(c->chan) == SESSION_NEW)
		chan_set_state(c->chan, SESSION_IDLE);
	c->session->crew.ready = true;
	return 0;
}

static int on_ask_exec(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct shell_chan *c = ctx;
	AUTO_ARENA arena = { .limit = (size_t)1 << 20 };
	struct ask a = { .kind = ASK_EXEC };

	if (!ask_read_command(&msg->body, &arena, &a) || !rd_done(&msg->body))
		return malformed(err);
	monitor_drain(c->session->m);
	return chan_decide(c->chan, msg->id, &a, 1, c->session->traceparent, err);
}

static int on_ask_spawn(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct shell_chan *c = ctx;
	struct monitor *m = c->session->m;
	AUTO_ARENA arena = { .limit = (size_t)1 << 20 };
	struct ask a = { .kind = ASK_SPAWN };
	sv file;

	if (!ask_read_command(&msg->body, &arena, &a))
		return malformed(err);
	a.program_path = rd_str(&msg->body, MON_PATH_MAX);
	if (!rd_done(&msg->body) || a.program_path.n == 0)
		return malformed(err);
	file = spawn_expand_home(&arena, a.program_path, m->plan->home);
	if (file.p == NULL ||
	    !spawn_settle(&a, &arena, file, m->plan->home, environ_path(m->plan, m->plan->agent)))
		return box_fail(err, BOX_ELIMIT, 0, "a command too long for policy to judge");
	a.credential_reads = sandbox_credential_reads(m, file, &a.credential_reads_n);
	monitor_drain(c->session->m);
	return chan_decide(c->chan, msg->id, &a, 1, c->session->traceparent, err);
}

static int on_done_exec(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct shell_chan *c = ctx;
	uint64_t ticket = rd_u64(&msg->body);
	int32_t status = (int32_t)rd_u32(&msg->body);

	if (!rd_done(&msg->body))
		return malformed(err);
	return decide_done_status(
	    c->session->m->decider, chan_owner(c->chan), ticket, status, 0, err);
}

static int on_abandon(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct shell_chan *c = ctx;
	uint64_t ticket = rd_u64(&msg->body);
	uint16_t n = rd_u16(&msg->body);

	if (!rd_done(&msg->body))
		return malformed(err);
	return decide_abandon(c->session->m->decider, chan_owner(c->chan), ticket, n, err);
}

static void refuse_tool(struct shell_chan *c, uint32_t request, const char *text)
{
	AUTO_BUF b = buf_with(MON_REASON_MAX + 8);

	buf_put_str(&b, sv_sub(sv_c(text), 0, MON_REASON_MAX));
	chan_send(c->chan, MON_TOOL_REFUSED, request, &b, NULL, 0);
}

/* The rest of START_TOOL behind the ticket. argv (but for the first, which is argv0) and variables
 * in the arena. false: malformed. */
static bool read_start(struct rd *r, struct arena *arena, sv argv0, struct tool_start *t)
{
	struct plan_var *vars;
	const char **argv;
	uint32_t n;
	sv cwd = rd_str(r, MON_PATH_MAX);

	t->cwd = arena_dup(arena, cwd).p;
	n = rd_u32(r);
	if (r->bad || n == 0 || n > MON_ARGS_MAX + 1 || t->cwd == NULL)
		return false;
	argv = arena_alloc(arena, n + 1, sizeof(*argv));
	if (argv == NULL)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		sv s = rd_str(r, MON_TEXT_MAX);

		if (r->bad || sv_find(s, '\0') >= 0 ||
		    (argv[i] = i == 0 ? argv0.p : arena_dup(arena, s).p) == NULL)
			return false;
	}
	t->argv = argv;
	t->argv_n = n;
	n = rd_u32(r);
	if (r->bad || n > MON_ARGS_MAX)
		return false;
	vars = ARENA_VEC(arena, struct plan_var, n);
	if (vars == NULL)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		sv s = rd_str(r, MON_TEXT_MAX), name, value;

		if (r->bad || sv_find(s, '\0') >= 0 || !sv_cut(s, '=', &name, &value))
			return false;
		vars[i] = (struct plan_var){ arena_dup(arena, name), arena_dup(arena, value) };
	}
	t->exported = vars;
	t->exported_n = n;
	return rd_done(r);
}

/* What is started is what was decided: the same words. argv[0] is not taken from here. */
static bool same_words(const struct ask *a, const struct tool_start *t)
{
	if (t->argv_n != (size_t)a->args_n + 1)
		return false;
	for (uint32_t i = 0; i < a->args_n; i++)
		if (!sv_eq(a->args[i].text, sv_c(t->argv[i + 1])))
			return false;
	return true;
}

static int on_start_tool(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct shell_chan *c = ctx;
	struct session *s = c->session;
	AUTO_ARENA arena = { .limit = (size_t)4 << 20 };
	struct tool_start t = { .session = s, .stdio = { msg->fds[0], msg->fds[1], msg->fds[2] } };
	struct box_err why = { 0 };
	uint64_t ticket = rd_u64(&msg->body);
	const struct ask *a = decide_ticket_start(s->m->decider, chan_owner(c->chan), ticket);
	struct tool *tool;

	if (a == NULL ||
	    !read_start(&msg->body, &arena, spawn_argv0(a, &arena, s->m->plan->home), &t) ||
	    !same_words(a, &t))
		return box_fail(err, BOX_EDENIED, 0, "it started a program that was not decided");
	t.program_path = spawn_expand_home(&arena, a->program_path, s->m->plan->home);
	tool = s->tools_n < TOOLS_MAX ? calloc(1, sizeof(*tool)) : NULL;
	if (tool == NULL || t.program_path.p == NULL) {
		free(tool);
		decide_ticket_ended(s->m->decider, &s->owner, ticket, NOT_STARTED);
		refuse_tool(c, msg->id, "too many programs run at once");
		return 0;
	}
	*tool = (struct tool){ .next = s->tools,
		.id = s->next_tool++,
		.asker = c,
		.request = msg->id,
		.ticket = ticket };
	s->tools = tool;
	s->tools_n++;
	t.tool = tool->id;
	if (sandbox_start_tool(s->m, &t, &why) != 0) {
		decide_ticket_ended(s->m->decider, &s->owner, ticket, NOT_STARTED);
		refuse_tool(c, msg->id, why.msg);
		tool_drop(s, tool);
	}
	return 0;
}

void session_tool_started(struct session *s, uint32_t id)
{
	struct tool *t = tool_find(s, id);
	AUTO_BUF b = buf_with(8);

	if (t == NULL)
		return;
	t->started = true;
	buf_put_u32(&b, id);
	if (t->asker != NULL)
		chan_send(t->asker->chan, MON_TOOL_STARTED, t->request, &b, NULL, 0);
}

void session_tool_refused(struct session *s, uint32_t id, const char *text)
{
	struct tool *t = tool_find(s, id);

	if (t == NULL)
		return;
	decide_ticket_ended(s->m->decider, &s->owner, t->ticket, NOT_STARTED);
	if (t->asker != NULL)
		refuse_tool(t->asker, t->request, text);
	tool_drop(s, t);
}

void session_tool_exited(struct session *s, uint32_t id, int wait_status)
{
	struct tool *t = tool_find(s, id);
	AUTO_BUF b = buf_with(16);

	if (t == NULL)
		return;
	decide_ticket_ended(s->m->decider, &s->owner, t->ticket,
	    WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status));
	buf_put_u32(&b, id);
	buf_put_u32(&b, (uint32_t)wait_status);
	if (t->asker != NULL)
		chan_send(t->asker->chan, MON_TOOL_EXITED, 0, &b, NULL, 0);
	tool_drop(s, t);
}

static int on_signal_tool(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct shell_chan *c = ctx;
	uint32_t tool = rd_u32(&msg->body);
	uint8_t sig = rd_u8(&msg->body);

	if (!rd_done(&msg->body) || sig == 0 || sig > 31)
		return malformed(err);
	sandbox_signal_tool(c->session->m, c->session, tool, sig);
	return 0;
}

static const struct chan_ops ops;

/* A channel more for this session. Takes fd. */
static struct shell_chan *add_chan(struct session *s, int fd, bool first, struct box_err *err)
{
	struct shell_chan *c = s->chans_n < CHANS_MAX ? calloc(1, sizeof(*c)) : NULL;

	if (c == NULL) {
		fd_drop(&fd);
		(void)box_fail(err, BOX_ELIMIT, 0, "too many subshells"); /* always -1 */
		return NULL;
	}
	*c = (struct shell_chan){ .session = s, .first = first };
	c->chan = chan_new(s->m->loop, s->m->decider, fd, &ops, c, err);
	if (c->chan == NULL) {
		free(c);
		return NULL;
	}
	chan_owner(c->chan)->tickets_to = &s->owner;
	c->next = s->chans;
	s->chans = c;
	s->chans_n++;
	return c;
}

static int on_fork(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct shell_chan *c = ctx, *child;
	struct session *s = c->session;

	if (!rd_done(&msg->body))
		return malformed(err);
	if (ipc_prepare(msg->fds[0], err) != 0)
		return box_wrap(err, "a subshell's channel");
	child = add_chan(s, ipc_msg_take_fd(msg, 0), false, err);
	if (child == NULL)
		return -1;
	chan_set_state(child->chan, SESSION_LIVE);
	fileserver_client(s->m, s->id, msg->fds[1]);
	return 0;
}

static int on_exit_frame(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct shell_chan *c = ctx;
	struct session *s = c->session;
	int32_t status = (int32_t)rd_u32(&msg->body);

	if (!rd_done(&msg->body) || !c->first)
		return malformed(err);
	if (s->alias == NULL)
		return 0; /* it hung up in between */
	alias_exit(s->alias, status >= 0 && status <= 255 ? status : 125);
	s->alias = NULL;
	return 0;
}

static const struct ipc_rule table[] = {
	{ MON_HELLO, "HELLO", SESSION_NEW | SESSION_LIVE, 0, 0, 256, on_hello },
	{ MON_FATAL, "FATAL", SESSION_NEW | SESSION_IDLE | SESSION_LIVE, 0, 0, MON_REASON_MAX + 8,
	    crew_on_fatal },
	{ MON_ASK_EXEC, "ASK_EXEC", SESSION_LIVE, 0, 0, IPC_BODY_MAX, on_ask_exec },
	{ MON_ASK_SPAWN, "ASK_SPAWN", SESSION_LIVE, 0, 0, IPC_BODY_MAX, on_ask_spawn },
	{ MON_DONE_EXEC, "DONE_EXEC", SESSION_LIVE, 0, 0, 16, on_done_exec },
	{ MON_ABANDON, "ABANDON", SESSION_LIVE, 0, 0, 16, on_abandon },
	{ MON_START_TOOL, "START_TOOL", SESSION_LIVE, 3, 3, IPC_BODY_MAX, on_start_tool },
	{ MON_SIGNAL_TOOL, "SIGNAL_TOOL", SESSION_LIVE, 0, 0, 8, on_signal_tool },
	{ MON_FORK, "FORK", SESSION_LIVE, 2, 2, 0, on_fork },
	{ MON_EXIT, "EXIT", SESSION_LIVE, 0, 0, 8, on_exit_frame },
	{ 0 },
};

static const struct chan_ops ops = { "box-shell", table, on_end };

const struct chan_ops *session_chan_ops(void)
{
	return &ops;
}

void session_signal(struct session *s, int sig)
{
	AUTO_BUF b = buf_with(8);

	/* The shell's first process passes it to the command's group (contain/reap.h), whatever the
	 * shell waits for: a FIFO, a substitution, its input. */
	if (s->crew.ready) {
		/* A stopped shell cannot stop or continue its programs. */
		for (struct tool *t = s->tools; t != NULL; t = t->next)
			if (sig == SIGTSTP || sig == SIGCONT)
				sandbox_signal_tool(s->m, s, t->id, sig == SIGTSTP ? SIGSTOP : sig);
		if (pidfd_send_signal(s->crew.pidfd, sig, NULL, 0) != 0 && errno != ESRCH)
			log_warn("cannot signal a shell: %s", box_strerror(errno));
		return;
	}
	/* A shell that is still starting: in the order of its frames. It could not read that it
	 * goes on again. */
	if (sig == SIGTSTP || sig == SIGCONT)
		return;
	buf_put_byte(&b, (uint8_t)sig);
	chan_send(s->crew.chan, SHELL_SIGNAL, 0, &b, NULL, 0);
}

bool session_stopped(const struct session *s)
{
	return !s->crew.ready || (children_stopped(s->crew.pid) && sandbox_stopped(s->m, s));
}

static void on_hangup_timer(void *arg)
{
	struct session *s = arg;

	s->kill_timer = NULL; /* the loop frees a timer that ran */
	for (struct shell_chan *c = s->chans; c != NULL; c = c->next)
		chan_end(c->chan);
}

void session_hangup(struct session *s)
{
	s->alias = NULL;
	if (s->kill_timer != NULL)
		return;
	session_signal(s, SIGHUP);
	s->kill_timer = loop_after(s->m->loop, HANGUP_MS, on_hangup_timer, s);
	if (s->kill_timer == NULL)
		on_hangup_timer(s);
}

void sessions_drain(struct monitor *m)
{
	for (struct session *s = m->sessions; s != NULL; s = s->next)
		for (struct shell_chan *c = s->chans; c != NULL; c = c->next)
			chan_drain(c->chan);
}

void sessions_end(struct monitor *m)
{
	struct session *next;

	for (struct session *s = m->sessions; s != NULL; s = next) {
		next = s->next;
		s->alias = NULL;
		for (struct shell_chan *c = s->chans; c != NULL; c = c->next)
			chan_end(c->chan);
		if (s->chans == NULL)
			session_free(s);
	}
}
