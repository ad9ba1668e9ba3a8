/* Trees: copying one planned object to its planned destination. Files are copied in slices, so
 * that a large one delays nobody. See tree.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "files/tree.h"
#include "base/ban.h"

#define COPY_SLICE ((size_t)4 << 20)

static bool preserves(const struct tree *t)
{
	return t->op == FILES_TREE_MOVE || tree_has(t, FILES_TF_PRESERVE);
}

/* Mode of what is made: the source's without set-id bits, less the umask unless it is kept. */
static mode_t new_mode(const struct tree *t, const struct node *v)
{
	return v->mode & 0777 & ~(preserves(t) ? 0 : t->mode_clear);
}

static int fail(int e)
{
	errno = e;
	return -1;
}

/* Take away what stands at the destination, after proving it is what was decided. */
static int clear_dst(struct tree *t, uint32_t i, int dir, const char *name)
{
	struct node *v = &t->v[i];
	int e = tree_check_dst(t, i, dir, name);

	if (e != 0 || v->dst == DST_NEW)
		return e;
	if (unlinkat(dir, name, v->dst == DST_DIR ? AT_REMOVEDIR : 0) != 0)
		return errno;
	v->dst = DST_NEW;
	return 0;
}

static int make_dir(struct tree *t, uint32_t i, int dir, const char *name)
{
	struct node *v = &t->v[i];
	struct stat st;

	/* Ours to write into until it is finished. */
	if (mkdirat(dir, name, new_mode(t, v) | S_IRWXU) != 0)
		return errno == EEXIST ? ESTALE : errno;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno;
	if (!S_ISDIR(st.st_mode))
		return ESTALE;
	v->dst_dev = st.st_dev;
	v->dst_ino = st.st_ino;
	return 0;
}

/* A link again, with its times when they are kept. */
static int make_link(struct tree *t, uint32_t i, int dir, const char *name)
{
	char src_name[256];
	struct stat st;
	int src;

	if (symlinkat(t->v[i].link.p, dir, name) != 0)
		return errno;
	if (!preserves(t) || (src = tree_parent(t, i, src_name)) < 0 ||
	    fstatat(src, src_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_ino != t->v[i].ino)
		return 0; /* the link is what matters */
	const struct timespec ts[2] = { st.st_atim, st.st_mtim };

	(void)utimensat(dir, name, ts, AT_SYMLINK_NOFOLLOW); /* as above */
	return 0;
}

static int copy_times(int fd, const struct stat *from)
{
	const struct timespec ts[2] = { from->st_atim, from->st_mtim };

	return futimens(fd, ts) != 0 ? errno : 0;
}

/* --- regular files --- */

static int open_source(struct tree *t, uint32_t i)
{
	const struct node *v = &t->v[i];
	char name[256];
	struct stat st;
	int dir = tree_parent(t, i, name), e;

	if (dir < 0)
		return errno;
	e = tree_check(t, i, dir, name);
	if (e != 0)
		return e;
	t->copy_in = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (t->copy_in < 0)
		return errno == ELOOP ? ESTALE : errno;
	if (fstat(t->copy_in, &st) != 0)
		return errno;
	return st.st_dev == v->dev && st.st_ino == v->ino ? 0 : ESTALE;
}

static int open_dest(struct tree *t, uint32_t i)
{
	struct node *v = &t->v[i];
	char name[256];
	struct stat st;
	int dir = tree_dst_parent(t, i, name), e;

	if (dir < 0)
		return errno;
	if (t->op == FILES_TREE_MOVE && (e = clear_dst(t, i, dir, name)) != 0)
		return e;
	if (v->dst == DST_NEW) {
		mode_t mode = preserves(t) ? new_mode(t, v) & S_IRWXU : new_mode(t, v);

		t->copy_out = openat(dir, name,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
		    mode | S_IWUSR);
		return t->copy_out < 0 ? errno : 0;
	}
	t->copy_out = openat(dir, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (t->copy_out < 0)
		return errno == ELOOP ? ESTALE : errno;
	if (fstat(t->copy_out, &st) != 0)
		return errno;
	if (st.st_dev != v->dst_dev || st.st_ino != v->dst_ino)
		return ESTALE;
	if (S_ISREG(st.st_mode))
		return ftruncate(t->copy_out, 0) != 0 ? errno : 0;
	return reach_is_safe_device(st.st_mode, st.st_rdev) ? 0 : EOPNOTSUPP;
}

/* One slice. 1: more; 0: all copied; -1: errno. */
static int pump(struct tree *t)
{
	char block[65536];
	size_t moved = 0;
	ssize_t n;

	n = copy_file_range(t->copy_in, NULL, t->copy_out, NULL, COPY_SLICE, 0);
	if (n > 0)
		return 1;
	/* Not on these files (devices, /proc-like sizes of 0, other file systems): by hand. */
	while (moved < COPY_SLICE) {
		n = read(t->copy_in, block, sizeof(block));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 ? 0 : -1;
		if (fd_write_full(t->copy_out, block, (size_t)n) != 0)
			return -1;
		moved += (size_t)n;
	}
	return 1;
}

static int finish_file(struct tree *t, const struct node *v)
{
	struct stat st;

	if (v->dst == DST_NEW && fchmod(t->copy_out, new_mode(t, v)) != 0)
		return errno;
	if (!preserves(t))
		return 0;
	if (fstat(t->copy_in, &st) != 0)
		return errno;
	if (v->dst != DST_NEW && fchmod(t->copy_out, new_mode(t, v)) != 0)
		return errno;
	return copy_times(t->copy_out, &st);
}

static int copy_file(struct tree *t, uint32_t i)
{
	int e = 0, r = 0;

	if (t->copy_in < 0) {
		e = open_source(t, i);
		if (e == 0) {
			t->v[i].at_dst = true; /* what fails from here on fails there */
			e = open_dest(t, i);
		}
	}
	if (e == 0) {
		r = pump(t);
		if (r == 1)
			return 1;
		e = r < 0 ? errno : finish_file(t, &t->v[i]);
	}
	fd_drop(&t->copy_in);
	fd_drop(&t->copy_out);
	return e != 0 ? fail(e) : 0;
}

/* --- the rest --- */

static int copy_other(struct tree *t, uint32_t i)
{
	struct node *v = &t->v[i];
	char name[256];
	int dir = tree_dst_parent(t, i, name), e = 0;
	bool replace = S_ISLNK(v->mode) || t->op == FILES_TREE_MOVE;

	v->at_dst = true;
	if (dir < 0)
		return -1;
	if (S_ISDIR(v->mode) && v->dst == DST_DIR && !replace)
		return 0; /* merged */
	e = replace ? clear_dst(t, i, dir, name) : tree_check_dst(t, i, dir, name);
	if (e != 0)
		return fail(e);
	if (v->dst != DST_NEW)
		return fail(EEXIST);
	if (S_ISDIR(v->mode))
		e = make_dir(t, i, dir, name);
	else if (S_ISLNK(v->mode))
		e = make_link(t, i, dir, name);
	else if (S_ISFIFO(v->mode))
		e = mkfifoat(dir, name, new_mode(t, v)) != 0 ? errno : 0;
	else
		e = EOPNOTSUPP;
	return e != 0 ? fail(e) : 0;
}

int tree_copy(struct tree *t, uint32_t i)
{
	mode_t type = t->v[i].mode & S_IFMT;

	if (t->v[i].skip)
		return 0;
	if (type == S_IFREG || (type == S_IFCHR && t->op == FILES_TREE_COPY))
		return copy_file(t, i);
	return copy_other(t, i);
}

int tree_copy_finish(struct tree *t, uint32_t i)
{
	const struct node *v = &t->v[i];
	AUTO_BUF path = buf_with(FILES_PATH_MAX);
	struct walk w = WALK_INIT;
	int e = 0;

	if (!preserves(t) && (new_mode(t, v) & S_IRWXU) == S_IRWXU)
		return 0;
	if (!tree_dst_path(t, i, &path))
		return ENAMETOOLONG;
	if (walk_path(&t->q->srv->reach, buf_sv(&path), 0, &w) != 0)
		e = w.err;
	else if (w.err != 0 || !sv_eq(buf_sv(&w.canon), buf_sv(&path)) ||
	         w.st.st_dev != v->dst_dev || w.st.st_ino != v->dst_ino)
		e = w.err != 0 ? w.err : ESTALE;
	else {
		AUTO_FD fd = act_open_dir(&w);

		if (fd < 0 || fchmod(fd, new_mode(t, v)) != 0) {
			e = errno;
		} else if (preserves(t)) {
			AUTO_BUF src = buf_with(FILES_PATH_MAX);
			struct walk s = WALK_INIT;

			if (tree_path(t, i, &src) &&
			    walk_path(&t->q->srv->reach, buf_sv(&src), 0, &s) == 0 && s.err == 0 &&
			    s.st.st_ino == v->ino && s.st.st_dev == v->dev)
				e = copy_times(fd, &s.st);
			walk_fini(&s);
		}
	}
	walk_fini(&w);
	return e;
}
