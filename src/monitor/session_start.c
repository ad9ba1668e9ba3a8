/* A shell for a command: one that was started in reserve, or a new one; its environment, its words,
 * its descriptors. See shell/proto.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alias/proto.h"
#include "base/fd.h"
#include "base/log.h"
#include "monitor/session_int.h"
#include "shell/proto.h"
#include "base/ban.h"

#define SESSIONS_MAX 256

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
	if (crew_start(
	        m, &s->crew, "box-shell", WORKER_SHELL, NULL, 0, session_chan_ops(), c, err) != 0) {
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

/* Variables of the alias, split. Malformed entries are dropped: an environment is no place for
 * errors. */
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
	chan_set_state(s->crew.chan, SESSION_LIVE);
	s->alias = a;
	*out = s;
	/* The next command should not wait for a process to start. */
	(void)loop_after(
	    m->loop, 0, prepare_later, m); /* without memory there is no reserve, no harm */
	return 0;
}
