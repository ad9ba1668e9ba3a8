/* Unix sockets inside granted folders (contain.h). A bind mount, read-only or not, does not stop
 * connect(2), and Landlock does not judge it yet: a folder that is granted for its files would give
 * the services in it as well, docker's among them (escapes SOCK-01). So they are looked for before
 * the start: those that a process of the host listens on by the kernel's table, which has their
 * names; the rest by a bounded walk. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/fd.h"
#include "contain/contain.h"
#include "contain/nodes.h"
#include "base/ban.h"

#define DEPTH_MAX 32
#define TABLE_MAX ((size_t)8 << 20)

struct folder {
	struct folder *next;
	const char *path;
	int depth;
};

struct walk {
	const struct plan_process *proc;
	contain_socket_fn *found;
	void *arg;
	struct buf table; /* /proc/net/unix; empty: unknown */
	struct arena arena;
	struct folder *queue, **tail; /* nearest to the grant first */
	size_t left;
	bool cut;
};

static bool denied(const struct walk *w, const char *path)
{
	for (size_t i = 0; i < w->proc->grants_n; i++)
		if (w->proc->grants[i].list == PLAN_DENY &&
		    view_within(path, w->proc->grants[i].path.p))
			return true;
	return false;
}

/* Does an entry name this very socket, and would its name be free for the process to remove? */
static bool named(const struct walk *w, const char *path, bool *writable)
{
	bool yes = false;

	*writable = false;
	for (size_t i = 0; i < w->proc->grants_n; i++) {
		const struct plan_grant *g = &w->proc->grants[i];

		if (g->list == PLAN_DENY || !view_within(path, g->path.p))
			continue;
		yes = yes || (!g->is_dir && g->list == PLAN_WRITE_FILE);
		*writable = *writable || g->list == PLAN_WRITE;
	}
	return yes;
}

/* The next name of the table: the column behind the seventh, absent for unnamed sockets. */
static bool next_name(sv *rest, sv *name)
{
	sv line;

	while (rest->n != 0) {
		(void)sv_cut(*rest, '\n', &line, rest);
		for (int column = 0; column < 7; column++) {
			while (line.n != 0 && line.p[0] == ' ')
				line = sv_sub(line, 1, line.n);
			while (line.n != 0 && line.p[0] != ' ')
				line = sv_sub(line, 1, line.n);
		}
		if (line.n < 2 || line.p[1] == '@')
			continue;
		*name = sv_sub(line, 1, line.n);
		return true;
	}
	return false;
}

static sv last_part(sv path)
{
	ptrdiff_t slash = sv_rfind(path, '/');

	return sv_sub(path, (size_t)(slash + 1), path.n);
}

/* Is somebody bound to it? By the last part of the name: the rest may be spelled relative to a
 * folder that nobody knows. Too many is harmless. */
static bool bound(const struct walk *w, const char *path)
{
	sv rest = buf_sv(&w->table), name;

	if (rest.n == 0)
		return true;
	while (next_name(&rest, &name))
		if (sv_eq(last_part(name), last_part(sv_c(path))))
			return true;
	return false;
}

static void found(struct walk *w, const char *path)
{
	bool writable, by_name = named(w, path, &writable);

	/* A leftover of a program that is gone stays, where the process may have to remove it. */
	w->found(w->arg, path, !by_name && (!writable || bound(w, path)));
}

/* DT_DIR, DT_SOCK or something else; some file systems do not say it in the directory. */
static unsigned char entry_type(int dir, const struct dirent *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN || fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return e->d_type;
	if (S_ISDIR(st.st_mode))
		return DT_DIR;
	return S_ISSOCK(st.st_mode) ? DT_SOCK : DT_UNKNOWN;
}

static void later(struct walk *w, const char *path, int depth)
{
	struct folder *f = depth < DEPTH_MAX ? ARENA_NEW(&w->arena, struct folder) : NULL;

	if (f != NULL)
		f->path = arena_dup(&w->arena, sv_c(path)).p;
	if (f == NULL || f->path == NULL) {
		w->cut = true;
		return;
	}
	f->depth = depth;
	*w->tail = f;
	w->tail = &f->next;
}

/* Names come from the folder alone; nothing is followed or opened but folders. */
static void look_into(struct walk *w, const struct folder *f)
{
	AUTO_FD fd = open(f->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;

	if (d == NULL)
		return;
	(void)fd_take(&fd); /* d has it now */
	while ((e = readdir(d)) != NULL) {
		char sub[PATH_MAX];
		unsigned char type;
		int n;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (w->left == 0) {
			w->cut = true;
			break;
		}
		w->left--;
		type = entry_type(dirfd(d), e);
		if (type != DT_DIR && type != DT_SOCK)
			continue;
		n = snprintf(sub, sizeof(sub), "%s/%s", f->path, e->d_name);
		if (n < 0 || (size_t)n >= sizeof(sub) || denied(w, sub))
			continue;
		if (type == DT_SOCK)
			found(w, sub);
		else
			later(w, sub, f->depth + 1);
	}
	(void)closedir(d);
}

/* One grant, breadth first: sockets lie near the top, and what is deep is large. */
static void walk_tree(struct walk *w, const char *path)
{
	w->queue = NULL;
	w->tail = &w->queue;
	later(w, path, 0);
	for (const struct folder *f = w->queue; f != NULL; f = f->next) {
		if (w->left != 0)
			look_into(w, f);
		else
			w->cut = true;
	}
	arena_free(&w->arena);
}

/* The system's libraries: nobody makes a socket there. */
static bool is_library(const char *path)
{
	return view_within(path, "/usr/lib") || view_within(path, "/lib") ||
	       view_within(path, "/usr/lib64") || view_within(path, "/lib64");
}

/* Every socket that is bound by an absolute name and lies in a grant, however deep. */
static void from_table(struct walk *w)
{
	sv rest = buf_sv(&w->table), name;

	while (next_name(&rest, &name)) {
		char path[PATH_MAX], real[PATH_MAX];
		bool writable, inside = false;
		struct stat st;

		if (name.p[0] != '/' || name.n >= sizeof(path))
			continue;
		memcpy(path, name.p, name.n);
		path[name.n] = '\0';
		if (realpath(path, real) == NULL || lstat(real, &st) < 0 || !S_ISSOCK(st.st_mode) ||
		    denied(w, real))
			continue;
		for (size_t i = 0; i < w->proc->grants_n; i++)
			inside = inside || (w->proc->grants[i].list != PLAN_DENY &&
			                       view_within(real, w->proc->grants[i].path.p));
		if (inside)
			w->found(w->arg, real, !named(w, real, &writable));
	}
}

bool contain_sockets(
    const struct plan_process *proc, size_t max, contain_socket_fn *each, void *arg)
{
	struct walk w = { .proc = proc,
		.found = each,
		.arg = arg,
		.table = buf_with(TABLE_MAX),
		.arena = { .limit = (size_t)64 << 20 } };
	size_t spare = max;

	/* Unreadable or too long: everything counts as bound. */
	if (fd_read_file("/proc/net/unix", TABLE_MAX, &w.table, NULL) != 0 || !buf_ok(&w.table))
		buf_clear(&w.table);
	from_table(&w);
	for (size_t i = 0; i < proc->grants_n; i++) {
		const struct plan_grant *g = &proc->grants[i];
		bool again = false;
		struct stat st;

		if (g->list == PLAN_DENY || is_library(g->path.p))
			continue;
		for (size_t k = 0; k < proc->grants_n && !again;
		     k++) /* the same place in two lists */
			again = k != i && proc->grants[k].list != PLAN_DENY &&
			        proc->grants[k].is_dir &&
			        view_within(g->path.p, proc->grants[k].path.p) &&
			        (k < i || !sv_eq(g->path, proc->grants[k].path));
		if (again && g->is_dir)
			continue;
		if (g->is_dir) {
			/* Its share, and what those before it left. */
			w.left = spare / (proc->grants_n - i);
			spare -= w.left;
			walk_tree(&w, g->path.p);
			spare += w.left;
		} else if (!denied(&w, g->path.p) && lstat(g->path.p, &st) == 0 &&
		           S_ISSOCK(st.st_mode)) {
			found(&w, g->path.p);
		}
	}
	buf_fini(&w.table);
	return !w.cut;
}
