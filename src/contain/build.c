/* sandbox_spec_build: from a judged plan to the list of operations. What each part may reach is
 * decided here and nowhere else; nodes.c only orders it.
 *
 * Two views: the agent's (narrow: its grants, its own program's loader files, the aliases) and a
 * leaf's (tools; also the library directories, no alias, no broker). A place that nothing gives
 * does not exist. Box-design 6.2, 6.3, 7.2; box-config-and-policy 1.4, 1.5. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "contain/build.h"
#include "contain/contain.h"
#include "contain/loader.h"
#include "contain/nodes.h"
#include "contain/script.h"
#include "contain/spec.h"
#include "base/ban.h"

#define LINKS_MAX 40

static int refuse(struct build *b, int sys, const char *what, const char *path)
{
	return box_fail(
	    b->err, sys != 0 ? BOX_ESYS : BOX_ECONFIG, sys, "%s: %s %s", b->s->label, what, path);
}

/* The canonical name of a path of the host; every link on the way becomes a link of the view, so
 * that the path means the same inside. NULL with errno. */
static const char *resolve(struct build *b, enum node_rank rank, const char *path)
{
	char at[PATH_MAX] = "", text[PATH_MAX], rest[PATH_MAX], next[PATH_MAX];
	int links = 0;
	int n = snprintf(rest, sizeof(rest), "%s", path);

	if (n < 0 || (size_t)n >= sizeof(rest) || rest[0] != '/') {
		errno = EINVAL;
		return NULL;
	}
	for (;;) {
		sv head, tail, whole = sv_c(rest);
		size_t keep = strlen(at);
		ssize_t len;

		while (whole.n != 0 && whole.p[0] == '/')
			whole = sv_sub(whole, 1, whole.n);
		if (whole.n == 0)
			break;
		(void)sv_cut(whole, '/', &head, &tail);
		if (sv_eq(head, SV(".."))) {
			char *slash = strrchr(at, '/');

			if (slash != NULL)
				*slash = '\0';
		} else if (!sv_eq(head, SV("."))) {
			n = snprintf(at + keep, sizeof(at) - keep, "/" SV_FMT, SV_ARG(head));
			if (n < 0 || (size_t)n >= sizeof(at) - keep) {
				errno = ENAMETOOLONG;
				return NULL;
			}
			len = readlink(at, text, sizeof(text) - 1);
			if (len < 0 && errno != EINVAL)
				return NULL;
			if (len > 0) {
				if (++links > LINKS_MAX) {
					errno = ELOOP;
					return NULL;
				}
				text[len] = '\0';
				nodes_link(&b->t, rank, at, text);
				at[text[0] == '/' ? 0 : keep] = '\0';
				n = snprintf(next, sizeof(next), "%s/" SV_FMT, text, SV_ARG(tail));
				if (n < 0 || (size_t)n >= sizeof(next)) {
					errno = ENAMETOOLONG;
					return NULL;
				}
				memcpy(rest, next, (size_t)n + 1);
				continue;
			}
		}
		memmove(rest, tail.p != NULL ? tail.p : "", tail.n);
		rest[tail.n] = '\0';
	}
	return arena_dup(b->a, sv_c(at[0] != '\0' ? at : "/")).p;
}

/* Show one file of the host under the path it is asked for, with these rights. *real: its canonical
 * name. */
static int show_file(struct build *b, enum node_rank rank, const char *path, uint32_t rights,
    uint32_t flags, const char **real)
{
	const char *r = resolve(b, rank, path);

	if (r == NULL || nodes_bind(&b->t, rank, r, r, flags) < 0)
		return refuse(b, errno, "show", path);
	nodes_rule(&b->t, r, rights);
	if (real != NULL)
		*real = r;
	return 0;
}

/* The loader and the libraries of a program (nothing for a script). */
static int show_closure(struct build *b, const char *program)
{
	struct elf_file *v;
	size_t n;

	if (elf_closure(program, b->a, &v, &n, b->err) < 0)
		return box_wrap(b->err, "%s", b->s->label);
	for (size_t i = 0; i < n; i++) {
		uint32_t rights = SANDBOX_R_READ | (v[i].interp ? SANDBOX_R_EXEC : 0u);

		if (show_file(b, RANK_MINIMUM, v[i].path, rights, SANDBOX_RO, NULL) < 0)
			return -1;
	}
	return 0;
}

/* A program that may be started: itself, and what loads it. */
static int show_program(struct build *b, const char *path, const char **real)
{
	if (show_file(b, RANK_GRANT, path, SANDBOX_R_READ | SANDBOX_R_EXEC, SANDBOX_RO, real) < 0)
		return -1;
	return show_closure(b, path);
}

static const char *env_get(const struct build *b, const char *name)
{
	for (size_t i = b->x->env_n; i-- > 0;)
		if (sv_eq(b->x->env[i].name, sv_c(name)))
			return b->x->env[i].value.p;
	return NULL;
}

/* NAME on the PATH of the process, as "#!/usr/bin/env NAME" finds it, outside <BD>/bin. NULL when
 * there is none. */
static const char *search_path(struct build *b, const char *name)
{
	const char *path = b->x->path_var != NULL ? b->x->path_var : env_get(b, "PATH");
	sv rest = path != NULL ? sv_c(path) : b->p->path_var, dir;
	bool more;

	do {
		const char *full;

		more = sv_cut(rest, ':', &dir, &rest);
		if (dir.n == 0 || dir.p[0] != '/' ||
		    (b->x->box_dir != NULL && sv_starts(dir, sv_c(b->x->box_dir))))
			continue;
		full = arena_printf(b->a, SV_FMT "/%s", SV_ARG(dir), name);
		if (full != NULL && access(full, X_OK) == 0)
			return full;
	} while (more);
	return NULL;
}

/* Was this file judged as the program or one of its interpreters? */
static bool judged(const struct build *b, const char *path)
{
	char real[PATH_MAX];

	if (realpath(path, real) == NULL)
		return false;
	if (sv_eq(b->proc->program, sv_c(real)) ||
	    (b->x->program != NULL && strcmp(b->x->program, real) == 0))
		return true;
	for (size_t i = 0; i < b->proc->interpreters_n; i++)
		if (sv_eq(b->proc->interpreters[i], sv_c(real)))
			return true;
	return false;
}

/* Does an `exec` entry of the table cover this program, and no `deny` entry? */
static bool covered_by_exec(const struct build *b, const char *path)
{
	char real[PATH_MAX];
	bool yes = false;

	if (realpath(path, real) == NULL)
		return false;
	for (size_t i = 0; i < b->proc->grants_n; i++) {
		const struct plan_grant *g = &b->proc->grants[i];

		if (g->list == PLAN_DENY && view_within(real, g->path.p))
			return false;
		yes = yes || (g->list == PLAN_EXEC && view_within(real, g->path.p));
	}
	return yes;
}

static int not_covered(struct build *b, const char *script, const char *interp)
{
	return box_fail(b->err, BOX_EDENIED, 0,
	    "%s names the interpreter %s, which no `exec` entry of %s covers", script, interp,
	    b->s->label);
}

/* The #! chain of the program: each hop is spelled in the file and must be found under that
 * spelling in the view. For "env NAME" with an aliased NAME the interpreter is started directly:
 * the alias is for what the agent runs, not for the agent. */
static int show_interpreters(struct build *b, const char *program)
{
	const char *at = program;

	for (size_t i = 0; b->x->program == NULL && i < b->proc->interpreters_n; i++)
		if (show_program(b, b->proc->interpreters[i].p, NULL) < 0)
			return -1;
	for (int hop = 0; hop < SCRIPT_HOPS_MAX; hop++) {
		struct script s;

		if (script_read(at, b->a, &s, b->err) < 0)
			return box_wrap(b->err, "%s", b->s->label);
		if (s.interp == NULL)
			return 0;
		if (b->x->program == NULL && !judged(b, s.interp))
			return box_fail(b->err, BOX_EDENIED, 0,
			    "%s: %s names the interpreter %s, which is not the one that was judged",
			    b->s->label, at, s.interp);
		if (b->x->program != NULL && !covered_by_exec(b, s.interp))
			return not_covered(b, at, s.interp);
		if (show_program(b, s.interp, NULL) < 0)
			return -1;
		if (s.env_name != NULL) {
			const char *found = search_path(b, s.env_name);

			if (found != NULL && b->x->program != NULL && !covered_by_exec(b, found))
				return not_covered(b, at, found);
			if (found == NULL || (b->x->program == NULL && !judged(b, found)))
				return 0; /* env itself says so */
			if (show_program(b, found, NULL) < 0)
				return -1;
			if (hop == 0 && !b->leaf)
				b->direct = found;
			at = found;
		} else {
			at = s.interp;
		}
	}
	return box_fail(b->err, BOX_ECONFIG, 0, "%s: %s: its interpreters are nested too deeply",
	    b->s->label, program);
}

static bool loader_tree(const char *path)
{
	static const char *const dirs[] = { "/lib", "/lib64", "/usr/lib", "/usr/lib64" };

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (view_within(path, dirs[i]))
			return true;
	return false;
}

static uint32_t grant_rights(const struct plan_grant *g)
{
	switch (g->list) {
	case PLAN_READ:
		return SANDBOX_R_READ | (g->is_dir ? SANDBOX_R_LIST : 0u);
	case PLAN_WRITE:
		return SANDBOX_R_WRITE | (g->is_dir ? SANDBOX_R_MAKE : 0u);
	case PLAN_READ_FILE:
		return SANDBOX_R_READ;
	case PLAN_WRITE_FILE:
		return SANDBOX_R_WRITE;
	case PLAN_LIST:
		return SANDBOX_R_LIST;
	case PLAN_EXEC:
		/* The kernel opens an image for reading before it runs it, and an interpreter has
		 * to read its script: execution without reading is not to be had. */
		return SANDBOX_R_EXEC | SANDBOX_R_READ;
	case PLAN_METADATA:
	case PLAN_DENY:
	case PLAN_LISTS:
		break;
	}
	return 0;
}

static int show_grant(struct build *b, const struct plan_grant *g)
{
	uint32_t flags = SANDBOX_RO | SANDBOX_NOEXEC;
	struct node *n;

	if (view_within(g->path.p, "/dev"))
		return 0; /* the four devices that may be named are there for everyone */
	if (g->list == PLAN_WRITE || g->list == PLAN_WRITE_FILE)
		flags &= ~(uint32_t)SANDBOX_RO;
	if (g->list == PLAN_EXEC ||
	    ((g->list == PLAN_READ || g->list == PLAN_READ_FILE) && loader_tree(g->path.p)))
		flags &= ~(uint32_t)SANDBOX_NOEXEC;
	if (nodes_bind(&b->t, RANK_GRANT, g->path.p, g->path.p, flags) < 0)
		return refuse(b, errno, "grant", g->path.p);
	n = nodes_at(&b->t, g->path.p);
	if (n != NULL && g->ino != 0 &&
	    (n->op.ino != (uint64_t)g->ino || n->op.dev != (uint64_t)g->dev))
		return box_fail(b->err, BOX_EDENIED, 0,
		    "%s: `%s` entry " SV_FMT " is not what it was when the run judged it",
		    b->s->label, plan_list_name[g->list], SV_ARG(g->authored));
	nodes_rule(&b->t, g->path.p, grant_rights(g));
	if (g->list == PLAN_EXEC)
		return build_exec_closure(b, g);
	return 0;
}

/* A shell that an `exec` entry grants is `sh` by its usual names too: they are links to it, and
 * what starts a shell (system(3), git, make) asks for those. */
static int show_shell(struct build *b)
{
	static const char *const names[] = { "/bin/sh", "/usr/bin/sh" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (covered_by_exec(b, names[i]) && resolve(b, RANK_GRANT, names[i]) == NULL)
			return refuse(b, errno, "show", names[i]);
	return 0;
}

int build_show_closure(struct build *b, const char *program)
{
	return show_closure(b, program);
}

/* --- what nobody may reach --- */

static int hide(struct build *b, const char *path, const struct plan_grant *g)
{
	struct node *tree = nodes_host_tree(&b->t, path), *at = nodes_at(&b->t, path);
	struct sandbox_op op = { .kind = SANDBOX_COVER, .dst = arena_dup(b->a, sv_c(path)).p };
	struct stat st;

	if (tree == NULL && (at == NULL || at->op.kind != SANDBOX_BIND))
		return 0; /* not in the view at all */
	if (lstat(path, &st) < 0) {
		if (errno != ENOENT && errno != ENOTDIR)
			return refuse(b, errno, "look at", path);
		return box_fail(b->err, BOX_ECONFIG, 0,
		    "%s: `deny` entry %s does not exist yet, and what is not there cannot be "
		    "covered; create "
		    "it, or drop the grant around it",
		    b->s->label, path);
	}
	op.dev = (uint64_t)st.st_dev;
	op.ino = (uint64_t)st.st_ino;
	if (g != NULL && !g->absent && g->ino != 0 && (st.st_ino != g->ino || st.st_dev != g->dev))
		return box_fail(b->err, BOX_EDENIED, 0,
		    "%s: `deny` entry %s is not what it was when the run judged it", b->s->label,
		    path);
	nodes_pin(&b->t, path);
	nodes_late(&b->t, op);
	return 0;
}

/* The directory of box.toml or policy.dw is taken out of a granted tree that strictly encloses it;
 * where a grant is that directory or lies in it, the file is. */
static int hide_authority(struct build *b, sv file, dev_t dev, ino_t ino)
{
	const char *slash = file.n != 0 ? strrchr(file.p, '/') : NULL;
	const char *dir;
	struct node *tree;
	struct stat st;

	if (slash == NULL)
		return 0;
	tree = nodes_host_tree(&b->t, file.p);
	if (tree == NULL && nodes_at(&b->t, file.p) == NULL)
		return 0;
	if (lstat(file.p, &st) < 0 || st.st_dev != dev || st.st_ino != ino)
		return box_fail(b->err, BOX_EDENIED, 0, "%s: %s was replaced since the run read it",
		    b->s->label, file.p);
	if (st.st_nlink > 1)
		return box_fail(b->err, BOX_ECONFIG, 0,
		    "%s: %s has other names (hard links), so it cannot be protected inside a "
		    "grant; "
		    "keep it outside, or with one name",
		    b->s->label, file.p);
	dir = arena_dup(b->a, (sv){ file.p, (size_t)(slash - file.p) }).p;
	if (dir == NULL)
		return box_nomem(b->err, "a path");
	for (size_t i = 0; i < b->t.n;
	     i++) /* a grant at or inside the directory, or the workspace: only the file goes */
		if (b->t.v[i].op.kind == SANDBOX_BIND && b->t.v[i].rank == RANK_GRANT &&
		    view_within(b->t.v[i].op.dst, dir))
			return hide(b, file.p, NULL);
	if (sv_starts(b->proc->workspace, sv_c(dir)) && view_within(b->proc->workspace.p, dir))
		return hide(b, file.p, NULL);
	return hide(b, dir, NULL);
}

static int late_cmp(const void *x, const void *y)
{
	const struct sandbox_op *a = x, *b = y;
	int pa = a->kind == SANDBOX_PIN ? 0 : 1, pb = b->kind == SANDBOX_PIN ? 0 : 1;
	size_t na = strlen(a->dst), nb = strlen(b->dst);

	if (pa != pb)
		return pa - pb;
	return na < nb ? -1 : na > nb;
}

static int hide_all(struct build *b)
{
	struct nodes *t = &b->t;
	size_t n;

	for (size_t i = 0; i < b->proc->grants_n; i++)
		if (b->proc->grants[i].list == PLAN_DENY &&
		    hide(b, b->proc->grants[i].path.p, &b->proc->grants[i]) < 0)
			return -1;
	if (hide_authority(b, b->p->config_path, b->p->config_dev, b->p->config_ino) < 0 ||
	    hide_authority(b, b->p->policy_path, b->p->policy_dev, b->p->policy_ino) < 0)
		return -1;
	/* A cover moves with its socket when a folder above is renamed: no pins. */
	for (size_t i = 0; i < b->x->sockets_n; i++)
		nodes_late(t, (struct sandbox_op){ .kind = SANDBOX_COVER,
		                  .flags = SANDBOX_OPTIONAL,
		                  .dst = arena_dup(b->a, sv_c(b->x->sockets[i])).p });
	/* Pins first, outermost first; then covers, outermost first, and none below another. */
	if (t->late_n != 0)
		qsort(t->late, t->late_n, sizeof(*t->late), late_cmp);
	n = 0;
	for (size_t i = 0; i < t->late_n; i++) {
		bool below = false;

		for (size_t k = 0; k < n && !below; k++)
			below = t->late[k].kind == SANDBOX_COVER &&
			        view_within(t->late[i].dst, t->late[k].dst);
		if (!below)
			t->late[n++] = t->late[i];
	}
	t->late_n = n;
	return 0;
}

/* --- the program --- */

static int build_argv(struct build *b)
{
	const struct plan_process *pr = b->proc;
	size_t n = b->x->argv != NULL ? b->x->argv_n : pr->command_n, k = 0;
	const char **v;

	if (n == 0)
		return box_fail(b->err, BOX_ECONFIG, 0, "%s: no command", b->s->label);
	v = ARENA_VEC(b->a, const char *, n + 2);
	if (v == NULL)
		return box_nomem(b->err, "the arguments");
	for (size_t i = 0; i < n; i++) {
		sv s = b->x->argv != NULL ? sv_c(b->x->argv[i]) : pr->command[i];

		/* A bare name: the program sees the absolute path it was reached by. */
		if (i == 0 && b->x->argv == NULL && sv_find(s, '/') < 0)
			s = pr->program_route.n != 0 ? pr->program_route : pr->program;
		if (i == 0 && b->direct != NULL) {
			v[k++] = b->direct;
			s = sv_c(b->s->program);
		}
		v[k] = arena_dup(b->a, s).p;
		if (v[k++] == NULL)
			return box_nomem(b->err, "the arguments");
	}
	if (b->direct != NULL)
		b->s->program = b->direct;
	b->s->argv = v;
	b->s->argv_n = k;
	return 0;
}

static int build_env(struct build *b)
{
	const char **v = ARENA_VEC(b->a, const char *, b->x->env_n + 1);
	size_t n = 0;

	if (v == NULL)
		return box_nomem(b->err, "the environment");
	for (size_t i = 0; i < b->x->env_n; i++) {
		const struct plan_var *e = &b->x->env[i];
		bool later = false; /* a later pair of the same name wins */

		for (size_t k = i + 1; k < b->x->env_n && !later; k++)
			later = sv_eq(b->x->env[k].name, e->name);
		if (later)
			continue;
		v[n] = arena_printf(b->a, SV_FMT "=" SV_FMT, SV_ARG(e->name), SV_ARG(e->value));
		if (v[n++] == NULL)
			return box_nomem(b->err, "the environment");
	}
	b->s->envp = v;
	b->s->envp_n = n;
	return 0;
}

static int build_program(struct build *b)
{
	const struct plan_process *pr = b->proc;
	const char *route = b->x->program != NULL      ? b->x->program
	                    : pr->program_route.n != 0 ? pr->program_route.p
	                                               : pr->program.p;
	const char *real;

	if (route == NULL || route[0] != '/')
		return box_fail(b->err, BOX_ECONFIG, 0, "%s: no program", b->s->label);
	if (b->x->program != NULL && !covered_by_exec(b, route))
		return refuse(b, 0, "no `exec` entry covers", route);
	if (show_program(b, route, &real) < 0)
		return -1;
	if (b->x->program == NULL && !sv_eq(sv_c(real), pr->program))
		return box_fail(b->err, BOX_EDENIED, 0, "%s: %s no longer leads to " SV_FMT,
		    b->s->label, route, SV_ARG(pr->program));
	b->s->program = arena_dup(b->a, sv_c(route)).p;
	if (b->s->program == NULL)
		return box_nomem(b->err, "the program");
	return show_interpreters(b, real);
}

static const struct sandbox_limit default_limits[] = {
	/* No core file, which may hold what the operator's tools then read; and, unlike 0, no core
	 * handler of the host either (core(5); filter_guard.c keeps it so). */
	{ RLIMIT_CORE, 1, 1 }, { RLIMIT_NOFILE, 65536, 65536 },
	{ RLIMIT_NPROC, 8192, 8192 }, /* counted in the sandbox's own user namespace */
};

int sandbox_spec_build(const struct plan *p, const struct plan_process *proc,
    const struct sandbox_extra *x, struct sandbox_spec *out, struct box_err *err)
{
	struct build b = { .p = p, .proc = proc, .x = x, .s = out, .a = &out->arena, .err = err };
	const char *cwd = x->cwd != NULL           ? x->cwd
	                  : proc->workspace.n != 0 ? proc->workspace.p
	                                           : "/";

	*out = (struct sandbox_spec){ .arena = { .limit = 32 << 20 } };
	b.leaf = x->leaf || proc->kind == PLAN_TOOL;
	b.t.a = b.a;
	out->label = arena_dup(b.a, proc->table).p;
	out->cwd = arena_dup(b.a, sv_c(cwd)).p;
	out->limits = ARENA_VEC(b.a, struct sandbox_limit, 3);
	if (out->label == NULL || out->cwd == NULL || out->limits == NULL)
		return box_nomem(err, "the plan of a sandbox");
	memcpy(out->limits, default_limits, sizeof(default_limits));
	out->limits_n = 3;
	out->hostname = "boxwood";
	out->uid = p->uid;
	out->gid = p->gid;
	out->umask = 022;
	out->tty = x->tty;
	out->net = x->no_network ? SANDBOX_NET_NONE : SANDBOX_NET_PROXY;
	if (!proc->contain_egress)
		return box_fail(err, BOX_ECONFIG, 0,
		    "%s: `contain_egress = false` needs a user-mode network path, which this "
		    "version "
		    "does not have; leave it out, and permit the destinations in the policy",
		    out->label);
	for (size_t i = 0; i < proc->grants_n; i++)
		if (proc->grants[i].list != PLAN_DENY && show_grant(&b, &proc->grants[i]) < 0)
			return -1;
	if (show_shell(&b) < 0)
		return -1;
	if (x->box_dir != NULL && nodes_host_tree(&b.t, x->box_dir) != NULL)
		return refuse(&b, 0, "a grant would expose the box's own directory", x->box_dir);
	if (build_program(&b) < 0 || build_minimum(&b) < 0 || build_scaffold(&b) < 0)
		return -1;
	if (!b.leaf && build_aliases(&b) < 0)
		return -1;
	nodes_dir(&b.t, out->cwd);
	if (build_argv(&b) < 0 || build_env(&b) < 0 || hide_all(&b) < 0)
		return -1;
	build_proc(&b);
	return nodes_emit(&b.t, out, err);
}
