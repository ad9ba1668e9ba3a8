/* Build a view with the new mount API (fsopen, open_tree, mount_setattr, move_mount): every source
 * is opened once, its identity compared with what was judged, and that very object attached. No
 * staging directory, no walk of /proc/self/mounts, flags set recursively before anything is
 * visible.
 *
 * The new root is a tmpfs attached on top of "/". Absolute paths keep meaning the old root, since a
 * lookup starts at the process's root without crossing what was mounted over it; paths of the new
 * view are looked up from the descriptor of the tmpfs, and no link is ever followed there. */
#include "contain/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ban.h"

#define RESOLVE_VIEW 0x0e /* RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS */
#define RESOLVE_HOST 0x06 /* RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS */

#define OWN_MAX 32

struct view {
	int root; /* the tmpfs that becomes "/" */
	/* Ids of mounts of ours: only there may directories and files be created. */
	uint64_t own[OWN_MAX];
	size_t own_n;
	bool covered; /* COVER_NAME exists */
};

/* The empty file that covers files; removed before the view is sealed. */
#define COVER_NAME ".boxwood-cover"

static unsigned mount_attrs(uint32_t flags)
{
	unsigned a = MOUNT_ATTR_NOSUID;

	if (!(flags & SANDBOX_DEVICE))
		a |= MOUNT_ATTR_NODEV;
	if (flags & SANDBOX_NOEXEC)
		a |= MOUNT_ATTR_NOEXEC;
	if (flags & SANDBOX_RO)
		a |= MOUNT_ATTR_RDONLY;
	return a;
}

/* mount(2) answers EINVAL and EPERM for many things; say the likely one. */
static int view_fail(struct box_err *err, int sys, const char *what, const char *path)
{
	const char *hint = "";

	if (sys == ENOSYS)
		hint = " (needs Linux 5.12 or newer)";
	else if (sys == ELOOP)
		hint = " (a symbolic link appeared on the way)";
	return box_fail(err, BOX_ESYS, sys, "%s %s%s", what, path, hint);
}

struct fs_option {
	const char *key, *value; /* value NULL: a flag */
	bool optional;
};

/* A new file system as a detached mount. -1 with errno. */
static int fs_new(const char *type, const struct fs_option *o, size_t n, unsigned attrs)
{
	AUTO_FD fs = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);

	if (fs < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		unsigned cmd = o[i].value != NULL ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;

		if (syscall(SYS_fsconfig, fs, cmd, o[i].key, o[i].value, 0) < 0 && !o[i].optional)
			return -1;
	}
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attrs);
}

static int tmpfs_new(uint32_t mode, uint64_t size, uint32_t flags)
{
	char m[16], s[32];
	struct fs_option o[2] = { { "mode", m, false }, { "size", s, false } };

	(void)snprintf(m, sizeof(m), "%o", mode & 07777u);
	(void)snprintf(s, sizeof(s), "%llu", (unsigned long long)size);
	return fs_new("tmpfs", o, size != 0 ? 2 : 1, mount_attrs(flags));
}

/* The id of the mount at an open place; 0 with errno. */
static uint64_t mount_id(int fd)
{
	struct statx x;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) < 0)
		return 0;
	if (!(x.stx_mask & STATX_MNT_ID)) {
		errno = ENOSYS;
		return 0;
	}
	return x.stx_mnt_id;
}

/* Open a place of the new view. */
static int view_open(const struct view *v, const char *dst)
{
	const char *rel = dst[0] == '/' ? dst + 1 : dst;

	return fd_openat2(v->root, *rel != '\0' ? rel : ".", O_PATH | O_NOFOLLOW, 0, RESOLVE_VIEW);
}

/* Open the directory above dst and give its last component. It must lie in a mount of ours. */
static int view_open_parent(const struct view *v, const char *dst, const char **name)
{
	const char *slash = strrchr(dst, '/');
	char dir[4096];
	size_t n;
	uint64_t id;
	AUTO_FD fd = -1;

	if (slash == NULL || slash[1] == '\0') {
		errno = EINVAL;
		return -1;
	}
	n = (size_t)(slash - dst);
	if (n >= sizeof(dir)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(dir, dst, n);
	dir[n] = '\0';
	fd = view_open(v, dir);
	if (fd < 0 || (id = mount_id(fd)) == 0)
		return -1;
	for (size_t i = 0; i < v->own_n; i++)
		if (v->own[i] == id) {
			*name = slash + 1;
			return fd_take(&fd);
		}
	errno = EXDEV; /* would create something in a tree of the host */
	return -1;
}

static int view_attach(int tree, int at)
{
	return (int)syscall(
	    SYS_move_mount, tree, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
}

static int view_own(struct view *v, int fd)
{
	uint64_t id = mount_id(fd);

	if (id == 0)
		return -1;
	if (v->own_n == OWN_MAX) {
		errno = ENOSPC;
		return -1;
	}
	v->own[v->own_n++] = id;
	return 0;
}

static int do_dir(struct view *v, const struct sandbox_op *op, struct box_err *err)
{
	const char *name;
	AUTO_FD at = view_open_parent(v, op->dst, &name);
	struct stat st;

	if (at < 0)
		return view_fail(err, errno, "make the directory", op->dst);
	if (mkdirat(at, name, op->mode & 07777u) == 0)
		return 0;
	if (errno != EEXIST)
		return view_fail(err, errno, "make the directory", op->dst);
	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode))
		return view_fail(err, ENOTDIR, "make the directory", op->dst);
	return 0;
}

static int do_file(struct view *v, const struct sandbox_op *op, struct box_err *err)
{
	const char *name;
	AUTO_FD at = view_open_parent(v, op->dst, &name);
	AUTO_FD fd = -1;

	if (at < 0)
		return view_fail(err, errno, "make the file", op->dst);
	fd = openat(
	    at, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, op->mode & 07777u);
	if (fd < 0 || fd_write_full(fd, op->content.p, op->content.n) < 0)
		return view_fail(err, errno, "make the file", op->dst);
	return 0;
}

static int do_link(struct view *v, const struct sandbox_op *op, struct box_err *err)
{
	const char *name;
	AUTO_FD at = view_open_parent(v, op->dst, &name);
	char text[4096];
	ssize_t n;

	if (at < 0)
		return view_fail(err, errno, "make the link", op->dst);
	if (symlinkat(op->src, at, name) == 0)
		return 0;
	if (errno != EEXIST)
		return view_fail(err, errno, "make the link", op->dst);
	/* In the box's /tmp an earlier sandbox may have left it. */
	n = readlinkat(at, name, text, sizeof(text));
	if (n < 0 || !sv_eq((sv){ text, (size_t)n }, sv_c(op->src)))
		return view_fail(err, EEXIST, "make the link", op->dst);
	return 0;
}

/* Open dst; when it is missing, make an empty directory or file there. */
static int view_target(struct view *v, const char *dst, bool dir)
{
	const char *name;
	AUTO_FD at = -1;
	int fd = view_open(v, dst);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	at = view_open_parent(v, dst, &name);
	if (at < 0)
		return -1;
	if (dir) {
		if (mkdirat(at, name, 0755) < 0)
			return -1;
	} else {
		AUTO_FD f = openat(at, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

		if (f < 0)
			return -1;
	}
	return view_open(v, dst);
}

static int do_fs(struct view *v, const struct sandbox_op *op, const char *type,
    const struct fs_option *o, size_t n, struct box_err *err)
{
	AUTO_FD at = view_target(v, op->dst, true);
	AUTO_FD tree = -1;

	if (at < 0)
		return view_fail(err, errno, "find the place for", op->dst);
	tree = fs_new(type, o, n, mount_attrs(op->flags));
	if (tree < 0 && errno == EPERM && strcmp(type, "proc") == 0)
		return box_fail(err, BOX_ESYS, EPERM,
		    "mount a private /proc: this host masks parts of /proc (a container runtime); "
		    "start the container with an unmasked /proc "
		    "(docker: --security-opt systempaths=unconfined, podman: "
		    "--security-opt unmask=/proc)");
	if (tree < 0 || view_attach(tree, at) < 0)
		return view_fail(err, errno, "mount", op->dst);
	return 0;
}

static int do_tmpfs(struct view *v, const struct sandbox_op *op, struct box_err *err)
{
	AUTO_FD at = view_target(v, op->dst, true);
	AUTO_FD tree = -1;

	if (at < 0)
		return view_fail(err, errno, "find the place for", op->dst);
	tree = tmpfs_new(op->mode, op->size, op->flags);
	if (tree < 0 || view_attach(tree, at) < 0 || view_own(v, tree) < 0)
		return view_fail(err, errno, "mount a tmpfs at", op->dst);
	return 0;
}

/* A detached copy of the mount tree at an open place, with flags added: to all of it, or (deep =
 * false) to its top alone. */
static int tree_clone(int fd, bool dir, uint32_t flags, bool deep)
{
	struct mount_attr attr = { .attr_set = mount_attrs(flags) };
	unsigned rec = dir ? AT_RECURSIVE : 0;
	AUTO_FD tree = (int)syscall(
	    SYS_open_tree, fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | rec);

	if (tree < 0)
		return -1;
	if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | (deep ? rec : 0), &attr,
	        sizeof(attr)) < 0)
		return -1;
	return fd_take(&tree);
}

static int do_bind(struct view *v, const struct sandbox_op *op, struct box_err *err)
{
	AUTO_FD src = fd_openat2(AT_FDCWD, op->src, O_PATH | O_NOFOLLOW, 0, RESOLVE_HOST);
	AUTO_FD tree = -1, at = -1;
	bool dir = (op->flags & SANDBOX_IS_DIR) != 0;
	struct stat st;

	if (src < 0 && errno == ENOENT && (op->flags & SANDBOX_OPTIONAL))
		return 0;
	if (src < 0 || fstat(src, &st) < 0)
		return view_fail(err, errno, "open", op->src);
	if (S_ISDIR(st.st_mode) != dir ||
	    (op->ino != 0 && ((uint64_t)st.st_dev != op->dev || (uint64_t)st.st_ino != op->ino)))
		return box_fail(err, BOX_EDENIED, 0,
		    "%s is not the file that was judged: it was replaced meanwhile", op->src);
	tree = tree_clone(src, dir, op->flags, true);
	if (tree < 0)
		return view_fail(err, errno, "prepare a bind of", op->src);
	at = view_target(v, op->dst, dir);
	if (at < 0 && errno == ENOENT && (op->flags & SANDBOX_OPTIONAL))
		return 0;
	if (at < 0 || view_attach(tree, at) < 0 ||
	    ((op->flags & SANDBOX_OWN) && view_own(v, tree) < 0))
		return view_fail(err, errno, "bind to", op->dst);
	return 0;
}

static int do_pin(struct view *v, const struct sandbox_op *op, struct box_err *err)
{
	AUTO_FD at = view_open(v, op->dst);
	AUTO_FD tree = -1;
	struct stat st;

	if (at < 0 && errno == ENOENT && (op->flags & SANDBOX_OPTIONAL))
		return 0;
	if (at < 0 || fstat(at, &st) < 0)
		return view_fail(err, errno, "find", op->dst);
	/* What is mounted below keeps the flags it has. */
	tree = tree_clone(at, S_ISDIR(st.st_mode), op->flags, false);
	if (tree < 0 || view_attach(tree, at) < 0)
		return view_fail(err, errno, "hold in place", op->dst);
	return 0;
}

static int do_cover(struct view *v, const struct sandbox_op *op, struct box_err *err)
{
	AUTO_FD at = view_open(v, op->dst);
	AUTO_FD tree = -1, src = -1;
	struct stat st;

	if (at < 0 && (errno == ENOENT || errno == ENOTDIR) && (op->flags & SANDBOX_OPTIONAL))
		return 0;
	if (at < 0 || fstat(at, &st) < 0)
		return view_fail(err, errno, "find what to hide at", op->dst);
	if (op->ino != 0 && ((uint64_t)st.st_dev != op->dev || (uint64_t)st.st_ino != op->ino))
		return box_fail(err, BOX_EDENIED, 0,
		    "%s is not what was judged: it was replaced meanwhile", op->dst);
	if (S_ISDIR(st.st_mode)) {
		tree = tmpfs_new(0, 4096, SANDBOX_RO | SANDBOX_NOEXEC);
	} else {
		if (!v->covered) {
			AUTO_FD f =
			    openat(v->root, COVER_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);

			if (f < 0)
				return view_fail(err, errno, "make the cover for", op->dst);
			v->covered = true;
		}
		src = view_open(v, COVER_NAME);
		if (src >= 0)
			tree = tree_clone(src, false, SANDBOX_RO | SANDBOX_NOEXEC, true);
	}
	if (tree < 0 || view_attach(tree, at) < 0)
		return view_fail(err, errno, "hide", op->dst);
	return 0;
}

/* Show the terminal on tty_fd. Its own mount belongs to the caller's namespace, so it is found
 * again by name in ours and compared. */
static int do_console(struct view *v, const struct sandbox_op *op, int tty_fd, struct box_err *err)
{
	char link[64], path[256];
	ssize_t n;
	struct stat a, b;
	AUTO_FD src = -1, at = -1, tree = -1;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", tty_fd);
	n = tty_fd >= 0 ? readlink(link, path, sizeof(path) - 1) : -1;
	if (n <= 0)
		return 0; /* a terminal without a name here: programs live with that */
	path[n] = '\0';
	src = fd_openat2(AT_FDCWD, path, O_PATH | O_NOFOLLOW, 0, RESOLVE_HOST);
	if (src < 0 || fstat(src, &a) < 0 || fstat(tty_fd, &b) < 0 || !S_ISCHR(a.st_mode) ||
	    a.st_rdev != b.st_rdev || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return 0;
	tree = tree_clone(src, false, op->flags, true);
	at = view_target(v, op->dst, false);
	if (tree < 0 || at < 0 || view_attach(tree, at) < 0)
		return view_fail(err, errno, "show the terminal at", op->dst);
	return 0;
}

static int do_seal(struct view *v, const struct sandbox_op *op, struct box_err *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	AUTO_FD at = view_open(v, op->dst);

	if (at < 0)
		return view_fail(err, errno, "find", op->dst);
	if (v->covered && unlinkat(v->root, COVER_NAME, 0) < 0)
		return view_fail(err, errno, "remove", COVER_NAME);
	v->covered = false;
	if (syscall(SYS_mount_setattr, at, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return view_fail(err, errno, "make read-only", op->dst);
	return 0;
}

static int do_op(struct view *v, const struct sandbox_op *op, int tty_fd, struct box_err *err)
{
	/* Processes of the sandbox do not see its reaper, nor root there (whose group "invisible"
	 * spares). The later option wins where the kernel has it (5.8). */
	static const struct fs_option proc[] = { { "hidepid", "invisible", true },
		{ "hidepid", "ptraceable", true } };
	static const struct fs_option pts[] = { { "newinstance", NULL, true },
		{ "ptmxmode", "0666", false }, { "mode", "0620", false } };

	switch (op->kind) {
	case SANDBOX_DIR:
		return do_dir(v, op, err);
	case SANDBOX_FILE:
		return do_file(v, op, err);
	case SANDBOX_LINK:
		return do_link(v, op, err);
	case SANDBOX_TMPFS:
		return do_tmpfs(v, op, err);
	case SANDBOX_BIND:
		return do_bind(v, op, err);
	case SANDBOX_PROC:
		return do_fs(v, op, "proc", proc, 2, err);
	case SANDBOX_DEVPTS:
		return do_fs(v, op, "devpts", pts, 3, err);
	case SANDBOX_CONSOLE:
		return do_console(v, op, tty_fd, err);
	case SANDBOX_COVER:
		return do_cover(v, op, err);
	case SANDBOX_PIN:
		return do_pin(v, op, err);
	case SANDBOX_SEAL:
		return do_seal(v, op, err);
	}
	return box_fail(err, BOX_EPARSE, 0, "unknown operation %d", (int)op->kind);
}

/* pivot_root(2), "pivot_root(".", ".")": the old root ends up on top of the new one and is let go
 * at once. */
static int view_enter(const struct view *v, struct box_err *err)
{
	struct stat root, now;

	if (fstat(v->root, &root) < 0 || fchdir(v->root) < 0 ||
	    syscall(SYS_pivot_root, ".", ".") < 0)
		return box_fail(err, BOX_ESYS, errno, "make the new view the root");
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return box_fail(err, BOX_ESYS, errno, "let the old root go");
	if (stat("/", &now) < 0 || now.st_dev != root.st_dev || now.st_ino != root.st_ino)
		return box_fail(err, BOX_EDENIED, 0, "the old root is still there");
	return 0;
}

int apply_private(struct box_err *err)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return box_fail(err, BOX_ESYS, errno, "make the mount namespace private");
	return 0;
}

int apply_view(const struct sandbox_op *ops, size_t n, int tty_fd, struct box_err *err)
{
	struct view v = { .root = -1 };
	AUTO_FD root = -1;
	mode_t mask;

	if (apply_private(err) < 0)
		return -1;
	root = tmpfs_new(0755, 0, 0);
	if (root < 0)
		return view_fail(err, errno, "make the new root", "");
	if (syscall(SYS_move_mount, root, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return view_fail(err, errno, "attach the new root", "");
	v.root = root;
	if (view_own(&v, root) < 0)
		return box_fail(err, BOX_ESYS, errno, "look at the new root");
	mask = umask(0);
	for (size_t i = 0; i < n; i++)
		if (do_op(&v, &ops[i], tty_fd, err) < 0)
			return -1;
	(void)umask(mask);
	return view_enter(&v, err);
}

int apply_hide(const char *path, struct box_err *err)
{
	AUTO_FD at = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	AUTO_FD tree = -1;

	if (at < 0 && errno == ENOENT)
		return 0;
	tree = tmpfs_new(0, 4096, SANDBOX_RO | SANDBOX_NOEXEC);
	if (at < 0 || tree < 0 || view_attach(tree, at) < 0)
		return view_fail(err, errno, "hide", path);
	return 0;
}
