/* config_judge: everything about the plan that needs the file system, in the order of
 * box-config-and-policy 1.10. And its repetition before each spawn. */
#include "config/judge.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "config/path.h"
#include "base/ban.h"

#define TRUST_MAX ((size_t)1 << 20)

/* A workspace is an existing directory and not the home, by identity. *path becomes canonical. who:
 * "the project this box belongs to". */
static int settle_workspace(struct cfg *c, struct plan_at at, const char *who, sv *path)
{
	struct stat st, home;
	sv real = path_real(&c->p->arena, *path);

	if (real.p == NULL)
		return cfg_fail(c, at, "cannot settle %s: cannot resolve %s: %s", who,
		    cfg_shown(c, *path), box_strerror(errno));
	if (stat(real.p, &st) != 0)
		return cfg_fail(c, at, "cannot settle %s: cannot resolve %s: %s", who,
		    cfg_shown(c, real), box_strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return cfg_fail(
		    c, at, "cannot settle %s: %s is not a directory", who, cfg_shown(c, real));
	if (stat(c->p->home.p, &home) == 0 && home.st_dev == st.st_dev && home.st_ino == st.st_ino)
		return cfg_fail(c, at,
		    "cannot settle %s: %s is the operator's home, which is not a workspace; name a "
		    "project folder in "
		    "`workspace`",
		    who, cfg_shown(c, real));
	*path = real;
	return 0;
}

static int judge_workspaces(struct cfg *c)
{
	struct plan *p = c->p;

	if (p->agent->workspace.n == 0)
		p->agent->workspace = p->start_dir;
	if (settle_workspace(c, p->agent->at_workspace, "the project this box belongs to",
	        &p->agent->workspace) != 0)
		return -1;
	for (size_t i = 0; i < p->tools_n; i++) {
		struct plan_process *t = &p->tools[i];
		const char *who =
		    arena_printf(&p->arena, "the workspace of `" SV_FMT "`", SV_ARG(t->table));

		if (who == NULL)
			return cfg_nomem(c);
		if (t->workspace.n != 0 &&
		    settle_workspace(c, t->at_workspace, who, &t->workspace) != 0)
			return -1;
	}
	return 0;
}

/* The box directory by its spelling and, as it exists by now, by its canonical path. */
static void box_dirs(struct cfg *c, sv out[2])
{
	sv real = path_real(&c->p->arena, c->p->box_dir);

	out[0] = c->p->box_dir;
	out[1] = real.p != NULL ? real : c->p->box_dir;
}

static int judge_box_dir(struct cfg *c)
{
	struct plan *p = c->p;
	sv dirs[2];

	box_dirs(c, dirs);
	for (size_t i = 0; i < 2; i++) {
		if (path_within(dirs[i], p->agent->workspace))
			return cfg_fail(c, (struct plan_at){ 0, 0 },
			    "`box_dir` %s is equal to or below the agent's workspace %s; name a "
			    "folder outside it",
			    cfg_shown(c, p->box_dir), cfg_shown(c, p->agent->workspace));
		if (path_within(p->config_path, dirs[i]))
			return cfg_fail(c, (struct plan_at){ 0, 0 },
			    "configuration source %s is inside `box_dir` %s",
			    cfg_shown(c, p->config_path), cfg_shown(c, p->box_dir));
		if (p->policy_path.n != 0 && path_within(p->policy_path, dirs[i]))
			return cfg_fail(c, (struct plan_at){ 0, 0 },
			    "policy source %s is inside `box_dir` %s", cfg_shown(c, p->policy_path),
			    cfg_shown(c, p->box_dir));
	}
	return 0;
}

/* A declared HOME neither lies in the box directory nor encloses it, by spelling or by identity
 * (1.6). */
static int judge_home(struct cfg *c, const struct plan_process *proc)
{
	sv home = plan_env(proc, SV("HOME")), tidy, real, dirs[2];

	if (home.p == NULL)
		return 0;
	box_dirs(c, dirs);
	tidy = path_tidy(&c->p->arena, home);
	if (tidy.p == NULL)
		return cfg_nomem(c);
	real = path_real(&c->p->arena, tidy);
	sv spellings[] = { tidy, real.p != NULL ? real : tidy };

	for (size_t i = 0; i < 4; i++) {
		sv h = spellings[i / 2], d = dirs[i % 2];

		if (path_within(h, d))
			return cfg_fail(c, proc->at_home,
			    "invalid `" SV_FMT
			    "` table: `env.HOME` is %s, which lies in trusted Box state; name a "
			    "folder outside `box_dir`",
			    SV_ARG(proc->table), cfg_shown(c, home));
		if (path_below(d, h))
			return cfg_fail(c, proc->at_home,
			    "invalid `" SV_FMT
			    "` table: `env.HOME` is %s, which encloses the box directory %s; name "
			    "a folder that does not",
			    SV_ARG(proc->table), cfg_shown(c, home), cfg_shown(c, c->p->box_dir));
	}
	return 0;
}

/* trust = "file.pem": beside box.toml unless absolute; certificates only. */
static int judge_trust(struct cfg *c, struct plan_route *r)
{
	AUTO_BUF pem = buf_with(TRUST_MAX);
	struct plan *p = c->p;
	struct box_err why = { 0 };
	sv path = r->trust;

	if (path.n == 0)
		return 0;
	if (path.p[0] != '/') {
		const char *joined = arena_printf(&p->arena, SV_FMT "/" SV_FMT,
		    SV_ARG(path_parent(p->config_path)), SV_ARG(path));

		if (joined == NULL)
			return cfg_nomem(c);
		path = sv_c(joined);
	}
	r->trust = path_real(&p->arena, path);
	if (r->trust.p == NULL)
		return cfg_fail(c, r->at_trust, "`trust` of `[egress.%s]`: cannot resolve %s: %s",
		    cfg_shown(c, r->name), cfg_shown(c, path), box_strerror(errno));
	if (fd_read_file(r->trust.p, TRUST_MAX, &pem, &why) != 0)
		return cfg_fail(
		    c, r->at_trust, "`trust` of `[egress.%s]`: %s", cfg_shown(c, r->name), why.msg);
	if (sv_find_sv(buf_sv(&pem), SV("-----BEGIN CERTIFICATE-----")) < 0)
		return cfg_fail(c, r->at_trust,
		    "`trust` of `[egress.%s]`: %s holds no PEM certificate", cfg_shown(c, r->name),
		    cfg_shown(c, r->trust));
	if (sv_find_sv(buf_sv(&pem), SV("PRIVATE KEY-----")) >= 0)
		return cfg_fail(c, r->at_trust,
		    "`trust` of `[egress.%s]`: %s holds a private key; name a file with "
		    "certificates only",
		    cfg_shown(c, r->name), cfg_shown(c, r->trust));
	return 0;
}

static int judge_process(struct cfg *c, struct plan_process *proc)
{
	if (judge_home(c, proc) != 0 || judge_grants(c, proc) != 0)
		return -1;
	return judge_program(c, proc);
}

/* The agent can write the file that a tool runs: a tool permit then covers what the agent wrote.
 * Said once, at start. */
static int warn_tool_program(struct cfg *c, const struct plan_process *tool)
{
	struct plan *p = c->p;

	for (size_t i = 0; i < p->agent->grants_n; i++) {
		const struct plan_grant *g = &p->agent->grants[i];
		const char *text, **more;

		if ((g->list != PLAN_WRITE && g->list != PLAN_WRITE_FILE) ||
		    !path_within(tool->program, g->path))
			continue;
		text = arena_printf(&p->arena,
		    SV_FMT " command %s lies inside the writable grant %s of [agent], so the agent "
		           "can replace the "
		           "program that the tool runs",
		    SV_ARG(tool->table), cfg_shown(c, tool->program), cfg_shown(c, g->path));
		more = arena_grow(&p->arena, (const void *)p->warnings, p->warnings_n,
		    p->warnings_n + 1, sizeof(*more));
		if (text == NULL || more == NULL)
			return cfg_nomem(c);
		more[p->warnings_n++] = text;
		p->warnings = more;
	}
	return 0;
}

int config_judge(struct plan *p, struct box_err *err)
{
	struct cfg c = { p, err };

	if (p->agent == NULL)
		return cfg_fail(&c, (struct plan_at){ 0, 0 },
		    "the configuration has no `[agent]` table; add one with command = "
		    "[\"program\"]");
	if (judge_workspaces(&c) != 0 || judge_box_dir(&c) != 0)
		return -1;
	for (size_t i = 0; i < p->routes_n; i++)
		if (judge_trust(&c, &p->routes[i]) != 0)
			return -1;
	if (judge_process(&c, p->agent) != 0)
		return -1;
	for (size_t i = 0; i < p->tools_n; i++)
		if (judge_process(&c, &p->tools[i]) != 0 ||
		    warn_tool_program(&c, &p->tools[i]) != 0)
			return -1;
	return 0;
}

int config_recheck(const struct plan_process *proc, struct box_err *err)
{
	for (size_t i = 0; i < proc->grants_n; i++) {
		const struct plan_grant *g = &proc->grants[i];
		AUTO_ARENA scratch = { .limit = 65536 };
		struct stat st;
		sv real;
		bool there = lstat(g->path.p, &st) == 0, same;

		if (g->list == PLAN_DENY && g->absent)
			same = !there || !S_ISLNK(st.st_mode);
		else if (g->list == PLAN_DENY)
			same = there && st.st_dev == g->dev && st.st_ino == g->ino;
		else
			same = there && S_ISDIR(st.st_mode) == g->is_dir &&
			       (real = path_real(&scratch, g->path)).p != NULL &&
			       sv_eq(real, g->path);
		if (!same)
			return box_fail(err, BOX_EDENIED, 0,
			    "`" SV_FMT "` filesystem entry \"" SV_FMT
			    "\" changed since the run judged it",
			    SV_ARG(proc->table), SV_ARG(g->authored));
	}
	return 0;
}
