/* One box-shell: one command of an alias. The shell's first process, and each subshell it forks, has a channel of its own here; all belong to one session. The shell parses hostile
 * text: what it asks is decided, and a program is started only from a permitted ticket, with the arguments that were decided. See shell/proto.h and
 * monitor/proto.h. */
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
#include "monitor/internal.h"
#include "monitor/spawn.h"
#include "shell/proto.h"
#include "base/ban.h"

#define STATE_NEW  1U /* no HELLO yet */
#define STATE_IDLE 2U /* spare */
#define STATE_LIVE 4U

#define SESSIONS_MAX 256
#define CHANS_MAX    1024 /* subshells of one session at a time */
#define TOOLS_MAX    256  /* programs of one session at a time */
#define HANGUP_MS    1000
#define REAP_MS      2000 /* from the end of a shell's channels to that of its process */
#define WARNINGS_MAX 20   /* of one run */

struct shell_chan {
	struct shell_chan *next;
	struct session *session;
	struct chan *chan;
	bool first;
};

struct tool {
	struct tool *next;
	uint32_t id;
	struct shell_chan *asker; /* NULL: that subshell is gone */
	uint32_t request;
	bool started;
};

struct session {
	struct session *next;
	struct monitor *m;
	uint32_t id;
	struct crew crew;
	struct decide_owner owner; /* of the tickets of all its channels */
	struct shell_chan *chans;
	size_t chans_n;
	struct alias *alias; /* NULL before a command, and after its exit */
	struct tool *tools;
	size_t tools_n;
	uint32_t next_tool;
	struct loop_timer *kill_timer;
	struct loop_watch *reaped; /* its channels are gone, its process is about to be */
	bool broken;               /* a channel broke the rules */
	sv traceparent;
	struct arena arena; /* of the command */
};

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
	if (chan_state(c->chan) == STATE_NEW)
		chan_set_state(c->chan, STATE_IDLE);
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

/* The rest of START_TOOL behind the ticket. argv (but for the first, which is argv0) and variables in the arena. false: malformed. */
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
	const struct ask *a =
	    decide_ticket_ask(s->m->decider, chan_owner(c->chan), rd_u64(&msg->body));
	struct tool *tool;

	if (a == NULL || a->kind != ASK_SPAWN ||
	    !read_start(&msg->body, &arena, spawn_argv0(a, &arena, s->m->plan->home), &t) ||
	    !same_words(a, &t))
		return box_fail(err, BOX_EDENIED, 0, "it started a program that was not decided");
	t.program_path = spawn_expand_home(&arena, a->program_path, s->m->plan->home);
	tool = s->tools_n < TOOLS_MAX ? calloc(1, sizeof(*tool)) : NULL;
	if (tool == NULL || t.program_path.p == NULL) {
		free(tool);
		refuse_tool(c, msg->id, "too many programs run at once");
		return 0;
	}
	*tool =
	    (struct tool){ .next = s->tools, .id = s->next_tool++, .asker = c, .request = msg->id };
	s->tools = tool;
	s->tools_n++;
	t.tool = tool->id;
	if (sandbox_start_tool(s->m, &t, &why) != 0) {
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
	chan_set_state(child->chan, STATE_LIVE);
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
	{ MON_HELLO, "HELLO", STATE_NEW | STATE_LIVE, 0, 0, 256, on_hello },
	{ MON_FATAL, "FATAL", STATE_NEW | STATE_IDLE | STATE_LIVE, 0, 0, MON_REASON_MAX + 8,
	    crew_on_fatal },
	{ MON_ASK_EXEC, "ASK_EXEC", STATE_LIVE, 0, 0, IPC_BODY_MAX, on_ask_exec },
	{ MON_ASK_SPAWN, "ASK_SPAWN", STATE_LIVE, 0, 0, IPC_BODY_MAX, on_ask_spawn },
	{ MON_DONE_EXEC, "DONE_EXEC", STATE_LIVE, 0, 0, 16, on_done_exec },
	{ MON_ABANDON, "ABANDON", STATE_LIVE, 0, 0, 16, on_abandon },
	{ MON_START_TOOL, "START_TOOL", STATE_LIVE, 3, 3, IPC_BODY_MAX, on_start_tool },
	{ MON_SIGNAL_TOOL, "SIGNAL_TOOL", STATE_LIVE, 0, 0, 8, on_signal_tool },
	{ MON_FORK, "FORK", STATE_LIVE, 2, 2, 0, on_fork },
	{ MON_EXIT, "EXIT", STATE_LIVE, 0, 0, 8, on_exit_frame },
	{ 0 },
};

static const struct chan_ops ops = { "box-shell", table, on_end };

/* --------------------------------------------------------------------------- starting */

static struct session *session_new(struct monitor *m, struct box_err *err)
{
	struct session *s = m->sessions_n < SESSIONS_MAX ? calloc(1, sizeof(*s)) : NULL;
	struct shell_chan *c = s != NULL ? calloc(1, sizeof(*c)) : NULL;

	if (c == NULL) {
		free(s);
		(void)box_fail(err, BOX_ELIMIT, 0, "too many commands run at once"); /* always -1 */
		return NULL;
	}
	*s = (struct session){ .m = m,
		.id = m->next_session++,
		.next_tool = 1,
		.arena = { .limit = (size_t)8 << 20 } };
	*c = (struct shell_chan){ .session = s, .first = true };
	if (crew_start(m, &s->crew, "box-shell", WORKER_SHELL, NULL, 0, &ops, c, err) != 0) {
		free(c);
		free(s);
		return NULL;
	}
	c->chan = s->crew.chan;
	chan_owner(c->chan)->tickets_to = &s->owner;
	s->chans = c;
	s->chans_n = 1;
	s->next = m->sessions;
	m->sessions = s;
	m->sessions_n++;
	return s;
}

void session_prepare(struct monitor *m)
{
	struct box_err err = { 0 };

	if (m->spare != NULL || m->stopping)
		return;
	m->spare = session_new(m, &err);
	if (m->spare == NULL)
		log_warn("no shell in reserve: %s", err.msg);
}

static void prepare_later(void *arg)
{
	session_prepare(arg);
}

/* Variables of the alias, split. Malformed entries are dropped: an environment is no place for errors. */
static int split_env(const struct alias_command *cmd, struct session *s, struct plan_var **out,
    size_t *n, struct box_err *err)
{
	struct rd r = rd_of(cmd->env.p, cmd->env.n);
	struct plan_var *v = ARENA_VEC(&s->arena, struct plan_var, cmd->env_n);

	*n = 0;
	if (v == NULL)
		return box_nomem(err, "the environment");
	for (uint32_t i = 0; i < cmd->env_n; i++) {
		sv entry = rd_str(&r, IPC_BODY_MAX), name, value;

		if (r.bad || sv_find(entry, '\0') >= 0 || !sv_cut(entry, '=', &name, &value))
			continue;
		if (sv_eq(name, SV("TRACEPARENT"))) {
			s->traceparent = arena_dup(&s->arena, value);
			continue;
		}
		v[(*n)++] = (struct plan_var){ name, value };
	}
	*out = v;
	return 0;
}

static int send_env(struct session *s, const struct alias_command *cmd, struct box_err *err)
{
	struct monitor *m = s->m;
	struct environ_input in = { .plan = m->plan,
		.proc = m->plan->agent,
		.routes = &m->routes,
		.bin_dir = m->path.bin,
		.ca_cert = m->path.ca_cert,
		.ca_bundle = m->path.ca_bundle,
		.proxy_port = SANDBOX_PROXY_PORT };
	struct plan_var *exported = NULL, *env;
	size_t env_n;

	if (split_env(cmd, s, &exported, &in.exported_n, err) != 0)
		return -1;
	in.exported = exported;
	if (environ_compose(&in, &s->arena, &env, &env_n, err) != 0)
		return -1;
	for (size_t i = 0; i < env_n;) {
		AUTO_BUF b = buf_with(IPC_BODY_MAX), list = buf_with(IPC_BODY_MAX - 8);
		uint32_t k = 0;

		for (; i < env_n; i++, k++) {
			size_t need = 4 + env[i].name.n + 1 + env[i].value.n;

			if (need > IPC_BODY_MAX - 16)
				return box_fail(err, BOX_ELIMIT, 0,
				    "variable " SV_FMT " is too long", SV_ARG(env[i].name));
			if (list.n + need > IPC_BODY_MAX - 16)
				break;
			buf_put_u32(&list, (uint32_t)(need - 4));
			buf_put_sv(&list, env[i].name);
			buf_put_byte(&list, '=');
			buf_put_sv(&list, env[i].value);
		}
		buf_put_u32(&b, k);
		buf_put_sv(&b, buf_sv(&list));
		chan_send(s->crew.chan, SHELL_ENV, 0, &b, NULL, 0);
	}
	return 0;
}

static uint32_t shell_flags(uint32_t f)
{
	return ((f & ALIAS_F_LOGIN) != 0 ? SHELL_F_LOGIN : 0) |
	       ((f & ALIAS_F_ERREXIT) != 0 ? SHELL_F_ERREXIT : 0) |
	       ((f & ALIAS_F_NOUNSET) != 0 ? SHELL_F_NOUNSET : 0) |
	       ((f & ALIAS_F_XTRACE) != 0 ? SHELL_F_XTRACE : 0) |
	       ((f & ALIAS_F_PIPEFAIL) != 0 ? SHELL_F_PIPEFAIL : 0) |
	       ((f & ALIAS_F_STDIN) != 0 ? SHELL_F_STDIN : 0);
}

static sv agent_home(struct monitor *m)
{
	sv home = plan_env(m->plan->agent, SV("HOME"));

	return home.p != NULL ? home : m->plan->home;
}

static int send_run(struct session *s, const struct alias_command *cmd, struct box_err *err)
{
	struct monitor *m = s->m;
	AUTO_BUF b = buf_with(IPC_BODY_MAX);
	AUTO_FD near = -1, far = -1;
	int pair[2], fds[2];
	size_t nfds = 1;

	buf_put_str(&b, sv_c(cmd->name));
	buf_put_str(&b, buf_sv(&cmd->text));
	buf_put_str(&b, sv_c(cmd->zero));
	buf_put_u32(&b, cmd->args_n);
	buf_put_sv(&b, buf_sv(&cmd->args));
	buf_put_str(&b, sv_c(cmd->cwd));
	buf_put_str(&b, m->plan->agent->workspace);
	buf_put_str(&b, agent_home(m));
	buf_put_str(&b, m->plan->home);
	buf_put_str(&b, m->plan->path_var);
	buf_put_u32(&b, shell_flags(cmd->flags));
	if (!buf_ok(&b))
		return box_fail(err, BOX_ELIMIT, 0,
		    "the command and its arguments are longer than %zu bytes; put them into a "
		    "script file",
		    IPC_BODY_MAX);
	if (ipc_pair(pair, err) != 0)
		return -1;
	near = pair[0];
	far = pair[1];
	fds[0] = near;
	if (cmd->fds[3] >= 0)
		fds[nfds++] = cmd->fds[3];
	fileserver_client(m, s->id, far);
	chan_send(s->crew.chan, SHELL_RUN, 0, &b, fds, nfds);
	return 0;
}

int session_run(struct monitor *m, struct alias *a, struct session **out, struct box_err *err)
{
	const struct alias_command *cmd = alias_command(a);
	struct session *s;

	if (fileserver_start(m, err) != 0)
		return -1;
	s = m->spare != NULL ? m->spare : session_new(m, err);
	if (s == NULL)
		return -1;
	m->spare = NULL;
	if (send_run(s, cmd, err) != 0 || send_env(s, cmd, err) != 0) {
		chan_end(s->crew.chan);
		return -1;
	}
	chan_send(s->crew.chan, SHELL_STDIO, 0, NULL, cmd->fds, 3);
	chan_set_state(s->crew.chan, STATE_LIVE);
	s->alias = a;
	*out = s;
	/* The next command should not wait for a process to start. */
	(void)loop_after(
	    m->loop, 0, prepare_later, m); /* without memory there is no reserve, no harm */
	return 0;
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
