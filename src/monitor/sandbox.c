/* Sandboxes of foreign programs: the agent, and the tools that a shell starts. Each is one
 * box-launch with one spec; the monitor holds its control channel and hears LISTENER, READY or
 * FAILED, EXITED. See launch/launch.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "config/config.h"
#include "config/path.h"
#include "monitor/internal.h"
#include "base/ban.h"

struct sandbox {
	struct sandbox *next;
	struct monitor *m;
	uint32_t id;
	const struct plan_process *proc;
	struct launch_child child;
	struct loop_watch *watch;
	struct session *session; /* NULL: the agent, or a session that is over */
	uint32_t tool;
	bool running;
};

static const char *const alias_names[] = { "sh", "bash", "zsh" };

static const char *const stage_names[] = {
	[LAUNCH_STAGE_SPEC] = "config read",
	[LAUNCH_STAGE_NAMESPACE] = "containment apply",
	[LAUNCH_STAGE_NETWORK] = "containment apply",
	[LAUNCH_STAGE_VIEW] = "containment apply",
	[LAUNCH_STAGE_CONFINE] = "containment apply",
	[LAUNCH_STAGE_EXEC] = "target exec",
};

/* ---------------------------------------------------------------------------- life cycle */

static void sandbox_free(struct sandbox *s)
{
	struct monitor *m = s->m;

	for (struct sandbox **at = &m->sandboxes; *at != NULL; at = &(*at)->next) {
		if (*at != s)
			continue;
		*at = s->next;
		break;
	}
	egress_unlisten(m, s->id);
	loop_unwatch(m->loop, s->watch);
	launch_end(&s->child);
	if (m->agent == s)
		m->agent = NULL;
	free(s);
}

/* The program ended, or never began. */
static void ended(struct sandbox *s, int wait_status)
{
	struct monitor *m = s->m;

	if (m->agent == s) {
		m->agent_ended = true;
		m->exit_status = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status)
		                                          : WEXITSTATUS(wait_status);
		loop_stop(m->loop);
	} else if (s->session != NULL) {
		session_tool_exited(s->session, s->tool, wait_status);
	}
	sandbox_free(s);
}

static void refused(struct sandbox *s, const char *stage, const char *text)
{
	struct monitor *m = s->m;

	if (m->agent == s)
		monitor_fail(m, "containment setup failed during %s: %s", stage, text);
	else if (s->session != NULL)
		session_tool_refused(s->session, s->tool, text);
	sandbox_free(s);
}

/* Ctrl-Z in an interactive agent: stop with it, so that the operator's shell gets the terminal; go
 * on together. */
static void stopped(struct sandbox *s)
{
	struct box_err err = { 0 };

	if (s->m->agent != s || !s->m->terminal.ours)
		return;
	terminal_take(&s->m->terminal);
	(void)raise(SIGSTOP); /* we go on when the shell says fg or bg */
	terminal_give(&s->m->terminal);
	if (launch_signal(&s->child, SIGCONT, &err) != 0)
		log_warn("cannot continue the agent: %s", err.msg);
}

static void on_control(void *arg, uint32_t events)
{
	struct sandbox *s = arg;
	struct launch_event ev = { .listener = -1 };
	struct box_err err = { 0 };
	int r;

	(void)events;
	r = launch_recv(&s->child, &ev, &err);
	if (r < 0 && err.sys == EAGAIN)
		return;
	if (r <= 0) {
		if (!s->running)
			refused(s, "containment apply",
			    r < 0 ? err.msg : "box-launch ended without a reason");
		else /* it was killed, and everything in its pid namespace with it */
			ended(s, SIGKILL);
		return;
	}
	switch (ev.type) {
	case LAUNCH_LISTENER:
		if (egress_listener(s->m, s->id, s->proc->table.p, ev.listener, &err) != 0)
			monitor_fail(s->m, "egress proxy failed: %s", err.msg);
		return;
	case LAUNCH_READY:
		s->running = true;
		if (s->session != NULL)
			session_tool_started(s->session, s->tool);
		return;
	case LAUNCH_FAILED:
		refused(s, stage_names[ev.stage], ev.text);
		return;
	case LAUNCH_STOPPED:
		stopped(s);
		return;
	case LAUNCH_EXITED:
		ended(s, ev.status);
		return;
	case LAUNCH_SIGNAL:
		break; /* ours to send; launch_recv does not let it through */
	}
}

/* Everything the two kinds share: composed environment, spec, start, watch. */
struct start {
	const struct plan_process *proc;
	const char *program; /* in place of proc's, for an exec entry */
	const char *const *argv;
	size_t argv_n;
	const char *cwd;
	const struct plan_var *exported;
	size_t exported_n;
	const int *stdio;
	bool leaf, tty;
};

static int build_spec(struct monitor *m, const struct start *st, struct arena *arena,
    struct sandbox_spec *spec, struct box_err *err)
{
	struct environ_input in = { .plan = m->plan,
		.proc = st->proc,
		.routes = &m->routes,
		.bin_dir = m->path.bin,
		.ca_cert = m->path.ca_cert,
		.ca_bundle = m->path.ca_bundle,
		.cwd = st->cwd,
		.proxy_port = SANDBOX_PROXY_PORT,
		.is_agent = !st->leaf,
		.exported = st->exported,
		.exported_n = st->exported_n };
	struct sandbox_extra x = { .box_dir = m->path.box_dir,
		.tmp_dir = m->path.tmp,
		.ca_cert = m->path.ca_cert,
		.ca_bundle = m->path.ca_bundle,
		.argv = st->argv,
		.argv_n = st->argv_n,
		.program = st->program,
		.cwd = st->cwd,
		.leaf = st->leaf,
		.tty = st->tty };
	struct plan_var *env;
	size_t env_n;

	x.sockets = sockets_hidden(m, st->proc, arena, &x.sockets_n);
	if (x.sockets == NULL)
		return box_nomem(err, "a spec");
	if (environ_compose(&in, arena, &env, &env_n, err) != 0)
		return -1;
	x.env = env;
	x.env_n = env_n;
	if (!st->leaf) {
		x.alias_image = arena_printf(arena, "%s/box-alias", m->path.program_dir);
		x.alias_names = alias_names;
		x.alias_names_n = sizeof(alias_names) / sizeof(alias_names[0]);
		x.broker_socket = m->path.socket;
		if (x.alias_image == NULL)
			return box_nomem(err, "a spec");
	}
	return sandbox_spec_build(m->plan, st->proc, &x, spec, err);
}

static struct sandbox *start(struct monitor *m, const struct start *st, struct box_err *err)
{
	AUTO_ARENA arena = { .limit = (size_t)16 << 20 };
	struct sandbox_spec spec = { 0 };
	struct sandbox *s = calloc(1, sizeof(*s));
	const char *launcher = arena_printf(&arena, "%s/box-launch", m->path.program_dir);

	if (s == NULL || launcher == NULL) {
		free(s);
		(void)box_nomem(err, "a sandbox"); /* always -1 */
		return NULL;
	}
	*s = (struct sandbox){
		.m = m, .proc = st->proc, .child = LAUNCH_CHILD_INIT, .id = m->next_sandbox++
	};
	if (config_recheck(st->proc, err) != 0 || build_spec(m, st, &arena, &spec, err) != 0 ||
	    launch_start(launcher, &spec, st->stdio, &s->child, err) != 0) {
		sandbox_spec_fini(&spec);
		free(s);
		return NULL;
	}
	sandbox_spec_fini(&spec);
	s->next = m->sandboxes;
	m->sandboxes = s;
	if (fd_set_nonblock(s->child.control, true) != 0 ||
	    (s->watch = loop_watch(m->loop, s->child.control, EPOLLIN, on_control, s, err)) ==
	        NULL) {
		sandbox_free(s);
		return NULL;
	}
	return s;
}

/* ---------------------------------------------------------------------------------- agent */

int sandbox_start_agent(struct monitor *m, struct box_err *err)
{
	const int stdio[3] = { 0, 1, 2 };
	struct start st = { .proc = m->plan->agent,
		.stdio = stdio,
		.cwd = m->plan->agent->workspace.p,
		.tty = m->terminal.ours };

	m->agent = start(m, &st, err);
	if (m->agent == NULL)
		return -1;
	terminal_given(&m->terminal);
	return 0;
}

int sandbox_explain(
    struct monitor *m, const struct plan_process *proc, struct buf *out, struct box_err *err)
{
	AUTO_ARENA arena = { .limit = (size_t)16 << 20 };
	struct sandbox_spec spec = { 0 };
	struct start st = { .proc = proc, .leaf = proc->kind == PLAN_TOOL };
	int r;

	st.cwd = proc->workspace.n != 0 ? proc->workspace.p : m->plan->agent->workspace.p;
	r = build_spec(m, &st, &arena, &spec, err);
	if (r == 0)
		sandbox_spec_print(&spec, out);
	sandbox_spec_fini(&spec);
	return r;
}

void sandbox_signal_agent(struct monitor *m, int sig)
{
	struct box_err err = { 0 };

	if (m->agent != NULL && launch_signal(&m->agent->child, sig, &err) != 0)
		log_debug("cannot signal the agent: %s", err.msg);
}

/* ---------------------------------------------------------------------------------- tools */

/* Do the fixed arguments of the table stand at the front of what is to be run? argv[0] is the
 * program. */
static bool args_match(const struct plan_process *t, const char *const *argv, size_t argv_n)
{
	if (t->fixed_n > argv_n)
		return false;
	for (size_t i = 1; i < t->fixed_n; i++)
		if (!sv_eq(t->command[i], sv_c(argv[i])))
			return false;
	return true;
}

static bool exec_covers(const struct plan_process *agent, sv path)
{
	bool covered = false;

	for (size_t i = 0; i < agent->grants_n; i++) {
		const struct plan_grant *g = &agent->grants[i];

		if (g->list == PLAN_DENY && path_within(path, g->path))
			return false;
		if (g->list == PLAN_EXEC &&
		    (sv_eq(path, g->path) || (g->is_dir && path_within(path, g->path))))
			covered = true;
	}
	return covered;
}

const struct plan_process *sandbox_tool_for(struct monitor *m, sv program_path,
    const char *const *argv, size_t argv_n, bool *by_exec, struct box_err *err)
{
	const struct plan_process *best = NULL;
	bool named = false;

	*by_exec = false;
	for (size_t i = 0; i < m->plan->tools_n; i++) {
		const struct plan_process *t = &m->plan->tools[i];

		if (!sv_eq(t->program, program_path))
			continue;
		named = true;
		if (args_match(t, argv, argv_n) && (best == NULL || t->fixed_n > best->fixed_n))
			best = t;
	}
	if (best == NULL && !named && exec_covers(m->plan->agent, program_path)) {
		*by_exec = true;
		best = m->plan->agent;
	}
	if (best == NULL)
		(void)box_fail(err, BOX_ECONFIG, 0,
		    "no tool runs " SV_FMT
		    ": no `[tool.<name>] command` matches this program and its "
		    "leading arguments",
		    SV_ARG(program_path)); /* always -1 */
	return best;
}

const sv *sandbox_credential_reads(struct monitor *m, sv program_path, size_t *n)
{
	sv *v = NULL;

	*n = 0;
	for (size_t pass = 0; pass < 2; pass++) {
		size_t k = 0;

		for (size_t i = 0; i < m->plan->tools_n; i++) {
			const struct plan_process *t = &m->plan->tools[i];

			for (size_t g = 0; sv_eq(t->program, program_path) && g < t->grants_n;
			     g++) {
				if (!t->grants[g].credential_store ||
				    t->grants[g].list == PLAN_DENY)
					continue;
				if (pass == 1)
					v[k] = t->grants[g].authored;
				k++;
			}
		}
		if (k == 0)
			return NULL;
		/* Rare: only boxes with a tool that names a store get here, and then once a
		 * spawn. */
		if (pass == 0 && (v = ARENA_VEC(&m->arena, sv, k)) == NULL)
			return NULL;
		*n = k;
	}
	return v;
}

/* Where the tool starts (1.3): its own workspace, else the shell's directory when the agent's
 * workspace or one of the tool's lists names it, else the agent's workspace. */
static const char *tool_cwd(struct monitor *m, const struct plan_process *proc, const char *cwd)
{
	sv here = sv_c(cwd);

	if (proc->kind == PLAN_TOOL && proc->workspace.n != 0)
		return proc->workspace.p;
	if (here.n != 0 && path_within(here, m->plan->agent->workspace))
		return cwd;
	for (size_t i = 0; here.n != 0 && i < proc->grants_n; i++)
		if (proc->grants[i].list != PLAN_DENY && proc->grants[i].is_dir &&
		    path_within(here, proc->grants[i].path))
			return cwd;
	return m->plan->agent->workspace.p;
}

int sandbox_start_tool(struct monitor *m, const struct tool_start *t, struct box_err *err)
{
	struct start st = { .argv = t->argv,
		.argv_n = t->argv_n,
		.exported = t->exported,
		.exported_n = t->exported_n,
		.stdio = t->stdio,
		.leaf = true };
	bool by_exec;
	struct sandbox *s;

	st.proc = sandbox_tool_for(m, t->program_path, t->argv, t->argv_n, &by_exec, err);
	if (st.proc == NULL)
		return -1;
	if (by_exec)
		st.program = t->program_path.p;
	st.cwd = tool_cwd(m, st.proc, t->cwd);
	s = start(m, &st, err);
	if (s == NULL)
		return -1;
	s->session = t->session;
	s->tool = t->tool;
	return 0;
}

void sandbox_signal_tool(struct monitor *m, const struct session *session, uint32_t tool, int sig)
{
	struct box_err err = { 0 };

	for (struct sandbox *s = m->sandboxes; s != NULL; s = s->next)
		if (s->session == session && s->tool == tool &&
		    launch_signal(&s->child, sig, &err) != 0)
			log_debug("cannot signal a tool: %s", err.msg);
}

bool sandbox_stopped(const struct monitor *m, const struct session *session)
{
	for (const struct sandbox *s = m->sandboxes; s != NULL; s = s->next)
		if (s->session == session && s->running && !children_stopped(s->child.pid))
			return false;
	return true;
}

void sandbox_end_session(struct monitor *m, const struct session *session)
{
	struct sandbox *next;

	for (struct sandbox *s = m->sandboxes; s != NULL; s = next) {
		next = s->next;
		if (s->session == session)
			sandbox_free(s);
	}
}

void sandboxes_end(struct monitor *m)
{
	while (m->sandboxes != NULL)
		sandbox_free(m->sandboxes);
}
