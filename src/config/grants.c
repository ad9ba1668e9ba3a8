/* The judge of the filesystem lists: existence, identity, kinds, floors, the box's own files,
 * overlaps (box-config-and-policy 1.4, 1.5). */
#include "config/judge.h"

#include <errno.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "config/floor.h"
#include "config/path.h"
#include "base/ban.h"

#define EXEC_TREE_MAX 1000000 /* entries of an `exec` folder looked at for set-user-ID */

/* What a list grants (1.4, "Operations for the overlap rules"). */
static int operation(enum plan_list l)
{
	switch (l) {
	case PLAN_READ:
	case PLAN_READ_FILE:
		return 0;
	case PLAN_WRITE:
	case PLAN_WRITE_FILE:
		return 1;
	case PLAN_LIST:
	case PLAN_METADATA:
	case PLAN_EXEC:
	case PLAN_DENY:
	case PLAN_LISTS:
		break;
	}
	return (int)l + 2;
}

static bool is_write(const struct plan_grant *g)
{
	return operation(g->list) == 1;
}

#define FAIL_GRANT(c, proc, g, fmt, ...)                                                           \
	cfg_fail((c), (struct plan_at){ (g)->line, (g)->col },                                     \
	    "`" SV_FMT "` filesystem entry \"%s\" is refused: " fmt, SV_ARG((proc)->table),        \
	    cfg_shown((c), (g)->authored), ##__VA_ARGS__)

static struct floor_homes homes_of(const struct cfg *c, const struct plan_process *proc)
{
	sv stated = plan_env(proc, SV("HOME"));

	return (struct floor_homes){ c->p->home, stated.n > 1 ? stated : (sv){ NULL, 0 } };
}

static int check_floor(
    struct cfg *c, struct plan_process *proc, struct plan_grant *g, bool is_dir, bool canonical)
{
	struct floor_hit hit =
	    floor_judge(&c->p->arena, g->path, g->list, is_dir, homes_of(c, proc), canonical);

	if (hit.reason != NULL)
		return FAIL_GRANT(c, proc, g, "%s is refused beneath every grant: %s",
		    cfg_shown(c, g->path), hit.reason);
	g->credential_store = g->credential_store || hit.store;
	return 0;
}

/* The path is what it says it is: there, no link in it. */
static int check_identity(
    struct cfg *c, const struct plan_process *proc, struct plan_grant *g, struct stat *st)
{
	sv real;

	if (lstat(g->path.p, st) != 0) {
		int e = errno;

		if (g->list == PLAN_DENY && (e == ENOENT || e == ENOTDIR)) {
			g->absent = true;
			return 0;
		}
		if (e == ENOENT || e == ENOTDIR)
			return FAIL_GRANT(c, proc, g,
			    "%s is not there: No such file or directory (os error 2)",
			    cfg_shown(c, g->path));
		return FAIL_GRANT(c, proc, g, "%s cannot be examined: %s", cfg_shown(c, g->path),
		    box_strerror(e));
	}
	real = path_real(&c->p->arena, g->path);
	if (real.p == NULL && !S_ISLNK(st->st_mode))
		return FAIL_GRANT(c, proc, g, "%s cannot be resolved: %s", cfg_shown(c, g->path),
		    box_strerror(errno));
	if (S_ISLNK(st->st_mode))
		return FAIL_GRANT(c, proc, g, "%s is a symbolic link; name what it points at%s%s",
		    cfg_shown(c, g->path), real.p != NULL ? ", " : "",
		    real.p != NULL ? cfg_shown(c, real) : "");
	if (!sv_eq(real, g->path))
		return FAIL_GRANT(c, proc, g, "%s is not the path the kernel checks, which is %s",
		    cfg_shown(c, g->path), cfg_shown(c, real));
	return 0;
}

static bool is_open_device(const struct plan_grant *g)
{
	return sv_eq(g->path, SV("/dev/null")) || sv_eq(g->path, SV("/dev/zero")) ||
	       sv_eq(g->path, SV("/dev/urandom")) || sv_eq(g->path, SV("/dev/random"));
}

static int check_kind(struct cfg *c, const struct plan_process *proc, const struct plan_grant *g,
    const struct stat *st)
{
	const char *shown = cfg_shown(c, g->path), *list = plan_list_name[g->list];
	bool dir = S_ISDIR(st->st_mode), file = S_ISREG(st->st_mode);

	if (g->list == PLAN_DENY)
		return 0;
	if (S_ISSOCK(st->st_mode) && g->list == PLAN_WRITE_FILE)
		return 0; /* the process may connect to it */
	if (S_ISSOCK(st->st_mode))
		return FAIL_GRANT(c, proc, g,
		    "%s is a socket; an entry in `write_file` lets the process connect to it",
		    shown);
	if (!dir && !file && !(S_ISCHR(st->st_mode) && is_open_device(g)))
		return FAIL_GRANT(c, proc, g,
		    "%s is neither a regular file nor a directory; of the devices only /dev/null, "
		    "/dev/zero, "
		    "/dev/urandom and /dev/random can be named",
		    shown);
	if (dir && (g->list == PLAN_READ_FILE || g->list == PLAN_WRITE_FILE))
		return FAIL_GRANT(c, proc, g, "%s is a directory; `%s` names one file, `%s` a tree",
		    shown, list, g->list == PLAN_READ_FILE ? "read" : "write");
	if (!dir && g->list == PLAN_LIST)
		return FAIL_GRANT(
		    c, proc, g, "%s is a file, and `list` enumerates a directory tree", shown);
	if (!dir && g->list == PLAN_METADATA)
		return FAIL_GRANT(c, proc, g,
		    "%s is a file, and a file's metadata comes with `read` or `exec`", shown);
	if (!dir && g->list == PLAN_EXEC && (!file || (st->st_mode & 0111) == 0))
		return FAIL_GRANT(c, proc, g, "%s is not an executable regular file", shown);
	return 0;
}

/* No set-user-ID program under an `exec` entry. Links are not followed, other file systems are. */
static int check_setid(struct cfg *c, const struct plan_process *proc, const struct plan_grant *g)
{
	char *const roots[] = { (char *)(uintptr_t)g->path.p, NULL }; /* fts does not write to it */
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	size_t seen = 0;
	FTSENT *e;
	int r = 0;

	if (fts == NULL)
		return FAIL_GRANT(c, proc, g, "%s cannot be searched: %s", cfg_shown(c, g->path),
		    box_strerror(errno));
	while (r == 0 && (errno = 0, e = fts_read(fts)) != NULL) {
		if (e->fts_info == FTS_F && (e->fts_statp->st_mode & (S_ISUID | S_ISGID)) != 0 &&
		    (e->fts_statp->st_mode & 0111) != 0)
			r = FAIL_GRANT(c, proc, g, "it carries set-user-ID or set-group-ID at %s",
			    cfg_shown(c, sv_c(e->fts_path)));
		else if (++seen > EXEC_TREE_MAX)
			r = FAIL_GRANT(c, proc, g,
			    "the tree has more than %d entries; name a smaller one", EXEC_TREE_MAX);
	}
	(void)fts_close(fts); /* read only */
	return r;
}

/* Does a `deny` entry, written or implied, take `path` out of what is granted? */
static bool is_denied(const struct plan_process *proc, sv path)
{
	for (size_t i = 0; i < proc->grants_n; i++)
		if (proc->grants[i].list == PLAN_DENY && path_within(path, proc->grants[i].path))
			return true;
	return false;
}

/* The box directory stays out of every grant; what encloses it must leave it out by a
 * subtraction. */
static int check_box_dir(struct cfg *c, const struct plan_process *proc, const struct plan_grant *g)
{
	sv spelled = c->p->box_dir, real = path_real(&c->p->arena, spelled);
	sv dirs[] = { spelled, real.p != NULL ? real : spelled };

	for (size_t i = 0; i < 2; i++) {
		const char *private_dir =
		    arena_printf(&c->p->arena, SV_FMT "/private", SV_ARG(dirs[i]));

		if (private_dir == NULL)
			return cfg_nomem(c);
		if (path_within(g->path, sv_c(private_dir)))
			return FAIL_GRANT(c, proc, g, "the grant would expose private Box state");
		if (path_within(g->path, dirs[i]) ||
		    (g->is_dir && path_below(dirs[i], g->path) && !is_denied(proc, dirs[i])))
			return FAIL_GRANT(
			    c, proc, g, "the grant would expose the Box's own directory");
	}
	return 0;
}

static int check_overlaps(struct cfg *c, const struct plan_process *proc, size_t at)
{
	static const char *const op_name[] = { "read", "write" };
	const struct plan_grant *g = &proc->grants[at];
	int op = operation(g->list);

	for (size_t i = 0; i < proc->grants_n; i++) {
		const struct plan_grant *o = &proc->grants[i];

		if (i == at || o->list == PLAN_DENY || operation(o->list) != op)
			continue;
		if (i < at && sv_eq(o->path, g->path))
			return FAIL_GRANT(c, proc, g, "%s is granted %s twice, by `%s` and `%s`",
			    cfg_shown(c, g->path), op < 2 ? op_name[op] : plan_list_name[g->list],
			    plan_list_name[o->list], plan_list_name[g->list]);
		/* A folder gives no sockets: naming one is not saying it twice. */
		if (o->is_dir && !g->is_socket && path_below(g->path, o->path))
			return FAIL_GRANT(c, proc, g, "%s lies inside %s, granted by `%s`",
			    cfg_shown(c, g->path), cfg_shown(c, o->path), plan_list_name[o->list]);
	}
	return 0;
}

static int check_denied(struct cfg *c, const struct plan_process *proc, const struct plan_grant *g)
{
	for (size_t i = 0; i < proc->grants_n; i++) {
		const struct plan_grant *d = &proc->grants[i];

		if (d->list == PLAN_DENY && path_within(g->path, d->path))
			return FAIL_GRANT(c, proc, g,
			    "%s is at or inside %s, which no grant reaches", cfg_shown(c, g->path),
			    cfg_shown(c, d->path));
	}
	return 0;
}

/* box.toml and policy.dw are never read or written by what runs in the box. A grant that is the
 * file is refused; so is a writable grant of its folder, where another file could take the name,
 * unless a `deny` entry stands before it. Everything else is subtracted below. */
static int check_source(struct cfg *c, const struct plan_process *proc, const struct plan_grant *g,
    sv source, const char *kind)
{
	if (source.n == 0 || g->list == PLAN_LIST || g->list == PLAN_METADATA)
		return 0;
	if (sv_eq(g->path, source))
		return FAIL_GRANT(c, proc, g, "the grant reaches this box's %s file, %s", kind,
		    cfg_shown(c, source));
	if (is_write(g) && g->is_dir && path_below(source, g->path) && !is_denied(proc, source))
		return FAIL_GRANT(c, proc, g, "the grant reaches this box's %s file, %s", kind,
		    cfg_shown(c, source));
	return 0;
}

static int add_implied(struct cfg *c, struct plan_process *proc, sv path)
{
	struct plan_grant *more, *g;
	struct stat st;

	if (is_denied(proc, path))
		return 0;
	if (lstat(path.p, &st) != 0)
		return cfg_fail(c, (struct plan_at){ 0, 0 }, "cannot examine %s: %s",
		    cfg_shown(c, path), box_strerror(errno));
	more = arena_grow(
	    &c->p->arena, proc->grants, proc->grants_n, proc->grants_n + 1, sizeof(*more));
	if (more == NULL)
		return cfg_nomem(c);
	g = &more[proc->grants_n];
	*g = (struct plan_grant){ .list = PLAN_DENY,
		.authored = path,
		.path = path,
		.implied = true,
		.is_dir = S_ISDIR(st.st_mode),
		.dev = st.st_dev,
		.ino = st.st_ino };
	proc->grants = more;
	proc->grants_n++;
	return 0;
}

/* Subtract the folder of an authority file from the grants that strictly enclose it, or the file
 * alone from a grant that is that folder. */
static int subtract_source(struct cfg *c, struct plan_process *proc, sv source)
{
	size_t n = proc->grants_n;
	sv dir = arena_dup(&c->p->arena, path_parent(source));

	if (dir.p == NULL)
		return cfg_nomem(c);
	for (size_t i = 0; i < n; i++) {
		/* Read again in each round: add_implied moves the vector. */
		const struct plan_grant *g = &proc->grants[i];
		bool names_only = g->list == PLAN_LIST || g->list == PLAN_METADATA;

		if (g->list == PLAN_DENY || !g->is_dir)
			continue;
		if (path_below(dir, g->path)) {
			if (add_implied(c, proc, dir) != 0)
				return -1;
		} else if (sv_eq(dir, g->path) && !names_only && !is_write(g)) {
			if (add_implied(c, proc, source) != 0)
				return -1;
		}
	}
	return 0;
}

static int judge_entry(struct cfg *c, struct plan_process *proc, struct plan_grant *g)
{
	bool may_be_dir = g->list != PLAN_READ_FILE && g->list != PLAN_WRITE_FILE;
	struct stat st = { 0 };

	/* The pure check first: the spelling alone can be enough (box-design 6.4). */
	if (g->list != PLAN_DENY && check_floor(c, proc, g, may_be_dir, false) != 0)
		return -1;
	if (check_identity(c, proc, g, &st) != 0)
		return -1;
	if (g->absent)
		return 0;
	if (check_kind(c, proc, g, &st) != 0)
		return -1;
	g->is_dir = S_ISDIR(st.st_mode);
	g->is_socket = S_ISSOCK(st.st_mode);
	g->dev = st.st_dev;
	g->ino = st.st_ino;
	if (g->list == PLAN_DENY)
		return 0;
	if (check_floor(c, proc, g, g->is_dir, true) != 0)
		return -1;
	return g->list == PLAN_EXEC ? check_setid(c, proc, g) : 0;
}

static int warn_exec(struct cfg *c, const struct plan_process *proc)
{
	struct plan *p = c->p;

	for (size_t i = 0; i < proc->grants_n; i++) {
		const struct plan_grant *x = &proc->grants[i];

		for (size_t k = 0; x->list == PLAN_EXEC && k < proc->grants_n; k++) {
			const struct plan_grant *w = &proc->grants[k];
			const char *text, **more;

			if (!is_write(w) || !(path_within(x->path, w->path) ||
			                        (x->is_dir && path_below(w->path, x->path))))
				continue;
			text = arena_printf(&p->arena,
			    SV_FMT " exec entry %s and the writable grant %s overlap, so the "
			           "process can replace "
			           "programs it may run",
			    SV_ARG(proc->table), cfg_shown(c, x->path), cfg_shown(c, w->path));
			more = arena_grow(&p->arena, (const void *)p->warnings, p->warnings_n,
			    p->warnings_n + 1, sizeof(*more));
			if (text == NULL || more == NULL)
				return cfg_nomem(c);
			more[p->warnings_n++] = text;
			p->warnings = more;
		}
	}
	return 0;
}

int judge_grants(struct cfg *c, struct plan_process *proc)
{
	sv sources[] = { c->p->config_path, c->p->policy_path };
	static const char *const kind[] = { "configuration", "policy" };

	for (size_t i = 0; i < proc->grants_n; i++)
		if (judge_entry(c, proc, &proc->grants[i]) != 0)
			return -1;
	for (size_t i = 0; i < proc->grants_n; i++)
		if (proc->grants[i].list != PLAN_DENY && check_overlaps(c, proc, i) != 0)
			return -1;
	for (size_t s = 0; s < 2; s++)
		if (sources[s].n != 0 && subtract_source(c, proc, sources[s]) != 0)
			return -1;
	for (size_t i = 0; i < proc->grants_n; i++) {
		const struct plan_grant *g = &proc->grants[i];

		if (g->list == PLAN_DENY)
			continue;
		if (check_source(c, proc, g, sources[0], kind[0]) != 0 ||
		    check_source(c, proc, g, sources[1], kind[1]) != 0 ||
		    check_box_dir(c, proc, g) != 0 || check_denied(c, proc, g) != 0)
			return -1;
	}
	return warn_exec(c, proc);
}
