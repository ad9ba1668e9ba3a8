/* Resolution by held descriptors. See walk.h. The path and every link text on the way are
 * hostile. */
#include "files/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ban.h"

/* One folder on the way. fd < 0: a name that was not looked up (missing, or outside the reach). */
struct level {
	int fd;
	bool inside; /* inside a root: names below need no further check */
	uint64_t dev, ino;
	uint32_t mode;
	size_t len; /* of the canonical path up to here; 1 for "/" */
	const struct reach_prot *prot;
};

struct walker {
	const struct reach *r;
	unsigned flags;
	struct buf canon;
	struct level *level;
	size_t depth, cap; /* depth >= 1 once begun: level[0] is "/" */
	/* TODO_MAX bytes; what is left stands at the end: links put their text in front */
	char *todo;
	size_t at; /* where it begins */
	int links;
	int err;
	bool err_last; /* err concerns the last name alone */
	bool slash, dot;
	struct stat st;  /* of the object that was opened last … */
	size_t st_depth; /* … which stands at this depth */
};

#define TODO_MAX ((size_t)2 * FILES_PATH_MAX)

void walk_fini(struct walk *w)
{
	fd_drop(&w->parent);
	fd_drop(&w->obj);
	buf_fini(&w->canon);
}

static struct level *top(struct walker *k)
{
	return &k->level[k->depth - 1];
}

static void pop(struct walker *k)
{
	k->st_depth = 0;
	fd_drop(&top(k)->fd);
	k->depth--;
	k->canon.n = k->depth == 1 ? 1 : top(k)->len;
}

/* Put `name` behind the canonical path and a level on the stack; takes l.fd. */
static int push(struct walker *k, sv name, struct level l)
{
	if (k->depth == k->cap) {
		size_t cap = k->cap != 0 ? k->cap * 2 : 32;
		struct level *p =
		    k->depth < WALK_DEPTH_MAX ? reallocarray(k->level, cap, sizeof(*p)) : NULL;

		if (p == NULL) {
			fd_drop(&l.fd);
			errno = k->depth < WALK_DEPTH_MAX ? ENOMEM : ENAMETOOLONG;
			return -1;
		}
		k->level = p;
		k->cap = cap;
	}
	if (k->canon.n != 1)
		buf_put_byte(&k->canon, '/');
	buf_put_sv(&k->canon, name);
	l.len = k->canon.n;
	if (!buf_ok(&k->canon)) {
		fd_drop(&l.fd);
		errno = ENAMETOOLONG;
		return -1;
	}
	k->level[k->depth++] = l;
	return 0;
}

static int push_unseen(struct walker *k, sv name)
{
	return push(k, name, (struct level){ .fd = -1, .prot = top(k)->prot });
}

/* The canonical path with one more name, to ask whether it may be looked up. */
static bool is_visible(struct walker *k, sv name)
{
	size_t old = k->canon.n;
	bool ok;

	if ((k->flags & WALK_ANYWHERE) != 0 || top(k)->inside)
		return true;
	if (old != 1)
		buf_put_byte(&k->canon, '/');
	buf_put_sv(&k->canon, name);
	ok = buf_ok(&k->canon) && reach_visible(k->r, buf_sv(&k->canon));
	k->canon.n = old;
	return ok;
}

/* Is the canonical path with one more name in the host's /tmp? */
static bool is_host_tmp(struct walker *k, sv name)
{
	size_t old = k->canon.n;
	bool ok;

	if (old < 4 || !sv_starts(buf_sv(&k->canon), SV("/tmp")))
		return false;
	buf_put_byte(&k->canon, '/');
	buf_put_sv(&k->canon, name);
	ok = buf_ok(&k->canon) && reach_is_host_tmp(k->r, buf_sv(&k->canon));
	k->canon.n = old;
	return ok;
}

/* Open name in the folder on top. A descriptor, or -1 with errno. */
static int open_name(struct walker *k, sv name)
{
	char z[256];
	int dir = top(k)->fd;

	if (name.n >= sizeof(z)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(z, name.p, name.n);
	z[name.n] = '\0';
	if (k->depth == 1 && sv_eq(name, SV("tmp")))
		return openat(k->r->tmp_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (k->depth == 2 && is_host_tmp(k, name))
		dir = k->r->host_tmp_fd;
	return openat(dir, z, O_PATH | O_NOFOLLOW | O_CLOEXEC);
}

/* procfs inside the reach would bring magic links and other processes' memory. */
static bool is_procfs(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) != 0 || fs.f_type == PROC_SUPER_MAGIC;
}

static sv todo(const struct walker *k)
{
	return (sv){ k->todo + k->at, TODO_MAX - k->at };
}

/* Put a link's text in front of what is left. 0, or errno. */
static int splice_link(struct walker *k, int fd)
{
	char text[FILES_PATH_MAX];
	ssize_t n = readlinkat(fd, "", text, sizeof(text));

	if (n < 0)
		return errno;
	if (n == 0)
		return ENOENT;
	if ((size_t)n >= sizeof(text) || (size_t)n + 1 > k->at)
		return ENAMETOOLONG;
	/* What is left begins with a slash, or nothing is left: the text ends where it should. */
	k->at -= (size_t)n;
	memcpy(k->todo + k->at, text, (size_t)n);
	if (text[0] == '/') {
		while (k->depth > 1)
			pop(k);
	}
	return 0;
}

/* Only slashes are left: this is the last name. */
static bool is_last(const struct walker *k)
{
	sv s = todo(k);

	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] != '/')
			return false;
	}
	return true;
}

/* The walk ends at `name` for the reason e; the rest is only spelled out. */
static int stop_at(struct walker *k, sv name, int e, bool last)
{
	k->err = e;
	k->err_last = last;
	return push_unseen(k, name);
}

static bool is_followed(const struct walker *k, bool last, bool slash)
{
	if (!last || (k->flags & WALK_FOLLOW) != 0)
		return true;
	return slash && (k->flags & WALK_MAKE) == 0;
}

/* Step to `name`. 0, or -1 with errno when the walk cannot even be spelled out. */
static int step(struct walker *k, sv name)
{
	bool last = is_last(k), slash = todo(k).n != 0, write;
	struct level l = { .fd = -1 };
	int e;

	if (k->err != 0 || top(k)->fd < 0 || !is_visible(k, name))
		return push_unseen(k, name);
	k->st_depth = 0; /* a link may lead back to where we stand */
	l.fd = open_name(k, name);
	if (l.fd < 0 || fstat(l.fd, &k->st) != 0) {
		e = errno;
		fd_drop(&l.fd);
		errno = e;
		return e == ENOMEM || e == EMFILE || e == ENFILE ? -1 : stop_at(k, name, e, last);
	}
	l.dev = k->st.st_dev;
	l.ino = k->st.st_ino;
	l.mode = k->st.st_mode;
	if (l.dev != top(k)->dev && is_procfs(l.fd)) {
		fd_drop(&l.fd);
		return stop_at(k, name, EACCES, last);
	}
	if (S_ISLNK(l.mode) && is_followed(k, last, slash)) {
		e = ++k->links > WALK_LINKS_MAX ? ELOOP : splice_link(k, l.fd);
		fd_drop(&l.fd);
		return e == 0 ? 0 : stop_at(k, name, e, last);
	}
	if (!S_ISDIR(l.mode) && (!last || (slash && (k->flags & WALK_MAKE) == 0))) {
		fd_drop(&l.fd);
		return stop_at(k, name, ENOTDIR, last);
	}
	l.prot = top(k)->prot != NULL ? top(k)->prot : reach_by_id(k->r, l.dev, l.ino);
	if (push(k, name, l) != 0)
		return -1;
	top(k)->inside = reach_inside(k->r, buf_sv(&k->canon), &write);
	k->st_depth = k->depth;
	return 0;
}

static int run(struct walker *k)
{
	while (k->at < TODO_MAX) {
		char name[FILES_PATH_MAX];
		sv head, rest;

		k->slash = sv_cut(todo(k), '/', &head, &rest);
		if (head.n == 0) {
			k->at++;
			continue;
		}
		if (head.n >= sizeof(name)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		/* A copy: the text of a link may be put over it. */
		memcpy(name, head.p, head.n);
		k->at += head.n;
		k->dot = head.n <= 2 && name[0] == '.' && name[head.n - 1] == '.';
		if (!k->dot && step(k, (sv){ name, head.n }) != 0)
			return -1;
		if (k->dot && head.n == 2 && k->depth > 1)
			pop(k);
	}
	return 0;
}

/* Parent and name of the result, when there is a folder to act in. */
static void finish_parent(struct walker *k, struct walk *w)
{
	struct level *p = &k->level[k->depth - 2];
	size_t at = k->depth == 2 ? 1 : p->len + 1;
	sv name = sv_sub(buf_sv(&k->canon), at, FILES_PATH_MAX);

	if (name.n >= sizeof(w->name) || p->fd < 0)
		return;
	memcpy(w->name, name.p, name.n);
	w->name[name.n] = '\0';
	w->parent = fd_take(&p->fd);
	w->parent_dev = p->dev;
	w->parent_ino = p->ino;
	w->parent_mode = p->mode;
	if (k->depth == 3 && w->host_tmp) {
		struct stat st;

		fd_drop(&w->parent);
		w->parent = fcntl(k->r->host_tmp_fd, F_DUPFD_CLOEXEC, 3);
		if (w->parent < 0 || fstat(w->parent, &st) != 0) {
			fd_drop(&w->parent);
			return;
		}
		w->parent_dev = st.st_dev;
		w->parent_ino = st.st_ino;
		w->parent_mode = st.st_mode;
	}
}

/* Hand the result over: the two topmost descriptors and the path. */
static void finish(struct walker *k, struct walk *w)
{
	struct level *l = top(k);

	w->err = k->err;
	w->slash = k->slash;
	w->dot = k->dot;
	w->prot = l->prot;
	if (k->err == 0)
		w->obj = fd_take(&l->fd);
	if (w->obj >= 0 && k->st_depth == k->depth)
		w->st = k->st;
	else if (w->obj >= 0 && fstat(w->obj, &w->st) != 0)
		w->err = errno;
	w->tmp = sv_eq(buf_sv(&k->canon), SV("/tmp"));
	w->host_tmp = reach_is_host_tmp(k->r, buf_sv(&k->canon));
	if (k->depth > 1 && (w->obj >= 0 || (k->err == ENOENT && k->err_last)))
		finish_parent(k, w);
	if (w->obj < 0 && w->err == 0)
		w->err = ENOENT; /* outside the reach: never looked up */
}

int walk_path(const struct reach *r, sv path, unsigned flags, struct walk *w)
{
	struct walker k = { .r = r, .flags = flags, .canon = buf_with(FILES_PATH_MAX - 1) };
	struct level root = { .fd = fcntl(r->root_fd, F_DUPFD_CLOEXEC, 3), .len = 1 };
	struct stat st;
	int ret = -1;

	*w = (struct walk)WALK_INIT;
	k.todo = malloc(TODO_MAX);
	k.level = calloc(32, sizeof(*k.level));
	k.cap = 32;
	buf_put_byte(&k.canon, '/');
	if (k.todo == NULL || k.level == NULL || root.fd < 0 || !buf_ok(&k.canon) ||
	    fstat(root.fd, &st) != 0) {
		fd_drop(&root.fd);
		w->err = ENOMEM;
		goto out;
	}
	root.dev = st.st_dev;
	root.ino = st.st_ino;
	root.mode = st.st_mode;
	k.level[k.depth++] = root;
	k.at = TODO_MAX - path.n;
	memcpy(k.todo + k.at, path.p, path.n);
	if (run(&k) != 0) {
		w->err = errno;
		goto out;
	}
	finish(&k, w);
	w->canon = k.canon;
	k.canon = buf_with(0);
	if (!sv_is_utf8(buf_sv(&w->canon))) {
		walk_fini(w);
		w->err = EILSEQ;
		goto out;
	}
	ret = 0;
out:
	while (k.depth > 0)
		fd_drop(&k.level[--k.depth].fd);
	free(k.level);
	free(k.todo);
	buf_fini(&k.canon);
	return ret;
}

bool walk_still(const struct reach *r, const struct walk *w)
{
	sv dir = buf_sv(&w->canon);
	ptrdiff_t cut = sv_rfind(dir, '/');
	char z[FILES_PATH_MAX];
	int base = r->root_fd;
	struct stat st;

	if (w->parent < 0 || cut < 0)
		return false;
	dir = cut > 0 ? sv_sub(dir, 1, (size_t)cut - 1) : SV("");
	if (sv_eq(dir, SV("tmp")) || sv_starts(dir, SV("tmp/"))) {
		base = w->host_tmp ? r->host_tmp_fd : r->tmp_fd;
		dir = sv_sub(dir, 4, dir.n);
	}
	if (dir.n == 0)
		dir = SV(".");
	memcpy(z, dir.p, dir.n); /* canon is shorter than FILES_PATH_MAX */
	z[dir.n] = '\0';
	AUTO_FD fd = fd_openat2(base, z, O_PATH | O_DIRECTORY, 0,
	    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == w->parent_dev &&
	       st.st_ino == w->parent_ino;
}

int walk_peek(const struct walk *w, struct stat *st)
{
	return fstatat(w->parent, w->name, st, AT_SYMLINK_NOFOLLOW) != 0 ? errno : 0;
}

bool walk_same(const struct walk *w)
{
	struct stat st;

	return w->obj >= 0 && walk_peek(w, &st) == 0 && st.st_dev == w->st.st_dev &&
	       st.st_ino == w->st.st_ino && (st.st_mode & S_IFMT) == (w->st.st_mode & S_IFMT);
}

struct reach_ask walk_ask(const struct walk *w, enum mon_fs_op op, bool ref)
{
	return (struct reach_ask){ .op = op,
		.ref = ref,
		.canon = buf_sv(&w->canon),
		.chain = w->prot,
		.exists = w->obj >= 0,
		.dev = w->obj >= 0 ? w->st.st_dev : 0,
		.ino = w->obj >= 0 ? w->st.st_ino : 0,
		.mode = w->obj >= 0 ? w->st.st_mode : 0,
		.rdev = w->obj >= 0 ? w->st.st_rdev : 0 };
}
