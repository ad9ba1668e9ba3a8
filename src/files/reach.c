/* The reach floor. See reach.h. */
#include "files/reach.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ban.h"

#define REACH_PROTS_MAX 4096

/* Character devices that hold nothing and lead nowhere (Documentation/admin-guide/devices.txt). */
static const struct {
	sv path;
	unsigned major, minor;
} safe_devices[] = {
	{ SV_INIT("/dev/null"), 1, 3 },
	{ SV_INIT("/dev/zero"), 1, 5 },
	{ SV_INIT("/dev/full"), 1, 7 },
	{ SV_INIT("/dev/random"), 1, 8 },
	{ SV_INIT("/dev/urandom"), 1, 9 },
	{ SV_INIT("/dev/tty"), 5, 0 },
};

bool reach_is_safe_device(uint32_t mode, uint64_t rdev)
{
	if (!S_ISCHR(mode))
		return false;
	for (size_t i = 0; i < sizeof(safe_devices) / sizeof(*safe_devices); i++) {
		if (rdev == makedev(safe_devices[i].major, safe_devices[i].minor))
			return true;
	}
	return false;
}

bool reach_is_dev_path(sv canon)
{
	for (size_t i = 0; i < sizeof(safe_devices) / sizeof(*safe_devices); i++) {
		if (sv_eq(canon, safe_devices[i].path))
			return true;
	}
	return false;
}

bool reach_within(sv path, sv base)
{
	if (sv_eq(base, SV("/")))
		return sv_starts(path, base);
	return sv_starts(path, base) && (path.n == base.n || path.p[base.n] == '/');
}

/* As reach_within with ASCII letters of either case: a protected name that does not exist yet
 * must not appear under another spelling on a case-folding file system. */
static bool within_nocase(sv path, sv base)
{
	return path.n >= base.n && sv_eq_nocase(sv_sub(path, 0, base.n), base) &&
	       (path.n == base.n || path.p[base.n] == '/');
}

void reach_spell(const struct reach *r, sv canon, struct buf *out)
{
	if (reach_within(canon, r->home)) {
		buf_put_byte(out, '~');
		buf_put_sv(out, sv_sub(canon, r->home.n, canon.n));
	} else {
		buf_put_sv(out, canon);
	}
}

bool reach_is_host_tmp(const struct reach *r, sv canon)
{
	for (size_t i = 0; i < r->roots_n; i++) {
		if (r->roots[i].gate.n != 0 && reach_within(canon, r->roots[i].gate))
			return true;
	}
	return false;
}

bool reach_inside(const struct reach *r, sv canon, bool *write)
{
	bool in = reach_within(canon, SV("/tmp")) && !reach_is_host_tmp(r, canon);

	*write = in;
	/* Roots may nest (a writable folder inside a readable one): the most generous one
	 * counts. */
	for (size_t i = 0; i < r->roots_n && !*write; i++) {
		if (reach_within(canon, r->roots[i].path)) {
			in = true;
			*write = r->roots[i].write;
		}
	}
	return in;
}

bool reach_is_pinned(const struct reach *r, sv canon)
{
	if (reach_within(SV("/tmp"), canon) || reach_within(SV("/dev"), canon))
		return true;
	for (size_t i = 0; i < r->roots_n; i++) {
		if (reach_within(r->roots[i].path, canon))
			return true;
	}
	return false;
}

bool reach_visible(const struct reach *r, sv canon)
{
	bool write;

	return reach_is_dev_path(canon) || reach_inside(r, canon, &write) ||
	       reach_is_pinned(r, canon);
}

const struct reach_prot *reach_by_id(const struct reach *r, uint64_t dev, uint64_t ino)
{
	for (size_t i = 0; i < r->prots_n; i++) {
		if (r->prots[i].ino == ino && r->prots[i].dev == dev && ino != 0)
			return &r->prots[i];
	}
	return NULL;
}

static const char *kind_text(enum files_protect kind)
{
	switch (kind) {
	case FILES_PROT_BOX:
		return FILES_TEXT_BOX;
	case FILES_PROT_AUTHORITY:
		return FILES_TEXT_AUTHORITY;
	case FILES_PROT_CREDENTIAL:
		return FILES_TEXT_CREDENTIAL;
	case FILES_PROT_DENY:
		return FILES_TEXT_DENY;
	}
	return FILES_TEXT_BOX;
}

static bool is_allowed(const struct reach *r, const struct reach_prot *p, sv canon)
{
	if (p->kind != FILES_PROT_CREDENTIAL)
		return false;
	for (size_t i = 0; i < r->allow_n; i++) {
		if (reach_within(canon, r->allow[i]))
			return true;
	}
	return false;
}

/* Effects that take an object's name, permissions or times away. A folder above a protected
 * object must keep them. */
static bool changes_object(enum mon_fs_op op)
{
	switch (op) {
	case FS_READ_CONTENT:
	case FS_READ_METADATA:
	case FS_ENUMERATE:
	case FS_READ_LINK:
	case FS_CHANGE_DIR:
	case FS_EXEC:
	case FS_CREATE_DIR: /* onto an existing folder: EEXIST, no change */
	case FS_SYMLINK:
		return false;
	case FS_WRITE_CONTENT:
	case FS_SET_PERMISSIONS:
	case FS_REMOVE_FILE:
	case FS_REMOVE_DIR:
	case FS_RENAME:
		return true;
	}
	return true;
}

static bool is_reading(enum mon_fs_op op)
{
	return op >= FS_READ_CONTENT && op <= FS_EXEC;
}

static const char *floor_protected(const struct reach *r, const struct reach_ask *a)
{
	if (a->chain != NULL && !is_allowed(r, a->chain, a->canon))
		return kind_text(a->chain->kind);
	for (size_t i = 0; i < r->prots_n; i++) {
		const struct reach_prot *p = &r->prots[i];

		if (within_nocase(a->canon, p->path) && !is_allowed(r, p, a->canon))
			return kind_text(p->kind);
		if (a->exists && p->ino != 0 && a->ino == p->ino && a->dev == p->dev &&
		    !is_allowed(r, p, a->canon))
			return kind_text(p->kind);
		if (changes_object(a->op) && !a->ref && reach_within(p->path, a->canon))
			return kind_text(p->kind);
	}
	if (!changes_object(a->op) || a->ref || !a->exists)
		return NULL;
	for (size_t i = 0; i < r->above_n; i++) {
		if (r->above[i].ino == a->ino && r->above[i].dev == a->dev)
			return kind_text(r->prots[r->above[i].prot].kind);
	}
	return NULL;
}

const char *reach_floor(const struct reach *r, const struct reach_ask *a)
{
	const char *text = floor_protected(r, a);
	bool write;

	if (text != NULL)
		return text;
	if (reach_is_dev_path(a->canon)) {
		bool harmless = is_reading(a->op) || a->op == FS_WRITE_CONTENT;

		return !harmless                                              ? FILES_TEXT_OUTSIDE
		       : a->exists && !reach_is_safe_device(a->mode, a->rdev) ? FILES_TEXT_DEVICE
		                                                              : NULL;
	}
	if (!reach_inside(r, a->canon, &write)) {
		if (!a->anywhere)
			return FILES_TEXT_OUTSIDE;
	} else if (!write && !is_reading(a->op) && !a->ref) {
		return FILES_TEXT_OUTSIDE;
	}
	if ((a->op == FS_READ_CONTENT || a->op == FS_WRITE_CONTENT) && a->exists && !a->ref &&
	    (S_ISBLK(a->mode) || (S_ISCHR(a->mode) && !reach_is_safe_device(a->mode, a->rdev))))
		return FILES_TEXT_DEVICE;
	return NULL;
}

/* --- START --- */

static bool is_canonical(sv s)
{
	sv rest, head;

	if (s.n == 0 || s.p[0] != '/' || s.n >= FILES_PATH_MAX || memchr(s.p, 0, s.n) != NULL)
		return false;
	if (s.n == 1)
		return true;
	rest = sv_sub(s, 1, s.n);
	for (;;) {
		bool more = sv_cut(rest, '/', &head, &rest);

		if (head.n == 0 || sv_eq(head, SV(".")) || sv_eq(head, SV("..")))
			return false;
		if (!more)
			return true;
	}
}

static int read_path(struct reach *r, struct rd *b, sv *out, struct box_err *err)
{
	sv s = rd_str(b, FILES_PATH_MAX - 1);

	if (b->bad)
		return box_fail(err, BOX_EPARSE, 0, "START for box-files is cut short");
	if (!is_canonical(s))
		return box_fail(err, BOX_EPARSE, 0,
		    "START for box-files names '" SV_FMT
		    "', which is not a canonical absolute path",
		    SV_ARG(s));
	*out = arena_dup(&r->arena, s);
	return out->p == NULL ? box_nomem(err, "the paths of START") : 0;
}

static int read_roots(struct reach *r, struct rd *b, struct box_err *err)
{
	size_t n = rd_u16(b);

	if (n > FILES_ROOTS_MAX)
		return box_fail(
		    err, BOX_ELIMIT, 0, "more than %d roots for box-files", FILES_ROOTS_MAX);
	r->roots = ARENA_VEC(&r->arena, struct reach_root, n);
	if (r->roots == NULL)
		return box_nomem(err, "the roots");
	for (; r->roots_n < n; r->roots_n++) {
		struct reach_root *root = &r->roots[r->roots_n];

		root->write = (rd_u8(b) & FILES_ROOT_WRITE) != 0;
		if (read_path(r, b, &root->path, err) != 0)
			return -1;
		if (root->path.n == 1 || sv_eq(root->path, SV("/tmp")))
			return box_fail(err, BOX_EDENIED, 0,
			    "'" SV_FMT "' is never a root for box-files", SV_ARG(root->path));
		if (reach_within(root->path, SV("/tmp"))) {
			sv rest = sv_sub(root->path, 5, FILES_PATH_MAX), head;

			(void)sv_cut(
			    rest, '/', &head, &rest); /* either way head is the first name */
			root->gate = sv_sub(root->path, 0, 5 + head.n);
		}
	}
	return 0;
}

static int read_prots(struct reach *r, struct rd *b, struct box_err *err)
{
	size_t n = rd_u16(b);

	if (n > REACH_PROTS_MAX)
		return box_fail(
		    err, BOX_ELIMIT, 0, "more than %d protected objects", REACH_PROTS_MAX);
	r->prots = ARENA_VEC(&r->arena, struct reach_prot, n);
	if (r->prots == NULL)
		return box_nomem(err, "the protected objects");
	for (; r->prots_n < n; r->prots_n++) {
		struct reach_prot *p = &r->prots[r->prots_n];
		uint8_t kind = rd_u8(b);

		if (!b->bad && (kind < FILES_PROT_BOX || kind > FILES_PROT_DENY))
			return box_fail(err, BOX_EPARSE, 0, "unknown kind of protection %u", kind);
		p->kind = (enum files_protect)kind;
		if (read_path(r, b, &p->path, err) != 0)
			return -1;
		p->dev = rd_u64(b);
		p->ino = rd_u64(b);
	}
	return 0;
}

static int read_allow(struct reach *r, struct rd *b, struct box_err *err)
{
	size_t n = rd_u16(b);

	r->allow = ARENA_VEC(&r->arena, sv, n);
	if (r->allow == NULL)
		return box_nomem(err, "the allowed paths");
	for (; r->allow_n < n; r->allow_n++) {
		if (read_path(r, b, &r->allow[r->allow_n], err) != 0)
			return -1;
	}
	return 0;
}

static int add_above(struct reach *r, struct reach_above a)
{
	/* Most protected objects lie in the same few folders. */
	for (size_t i = 0; i < r->above_n; i++) {
		if (r->above[i].dev == a.dev && r->above[i].ino == a.ino)
			return 0;
	}
	if (r->above_n == r->above_cap) {
		size_t cap = r->above_cap != 0 ? r->above_cap * 2 : 32;
		struct reach_above *grown =
		    arena_grow(&r->arena, r->above, r->above_n, cap, sizeof(*grown));

		if (grown == NULL)
			return -1;
		r->above = grown;
		r->above_cap = cap;
	}
	r->above[r->above_n++] = a;
	return 0;
}

/* Remember the identity of every folder above a protected object. Folders that are not there (an
 * absent credential store) protect nothing yet; their paths do. */
static int note_above(struct reach *r, size_t prot, struct box_err *err)
{
	sv rest = sv_sub(r->prots[prot].path, 1, FILES_PATH_MAX), head;
	AUTO_FD dir = fcntl(r->root_fd, F_DUPFD_CLOEXEC, 3);

	if (dir < 0)
		return box_fail(err, BOX_ESYS, errno, "hold '/'");
	while (sv_cut(rest, '/', &head, &rest)) {
		char name[FILES_PATH_MAX];
		struct stat st;
		int next;

		memcpy(name, head.p, head.n); /* head is part of a path that read_path bounded */
		name[head.n] = '\0';
		next = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return 0;
		fd_drop(&dir);
		dir = next;
		if (fstat(dir, &st) != 0)
			return box_fail(err, BOX_ESYS, errno, "look at a folder above '" SV_FMT "'",
			    SV_ARG(r->prots[prot].path));
		if (add_above(r, (struct reach_above){ st.st_dev, st.st_ino, prot }) != 0)
			return box_nomem(err, "the folders above protected objects");
	}
	return 0;
}

int reach_init(struct reach *r, struct rd *start, int tmp_fd, struct box_err *err)
{
	struct stat st;

	*r = (struct reach){ .arena = { .limit = (size_t)64 << 20 },
		.root_fd = -1,
		.tmp_fd = tmp_fd,
		.host_tmp_fd = -1,
		.proc_fd = -1 };
	if (tmp_fd < 0 || fstat(tmp_fd, &st) != 0 || !S_ISDIR(st.st_mode))
		return box_fail(
		    err, BOX_EPARSE, 0, "START for box-files came without the folder of /tmp");
	if (read_path(r, start, &r->home, err) != 0 || read_roots(r, start, err) != 0 ||
	    read_prots(r, start, err) != 0 || read_allow(r, start, err) != 0)
		return -1;
	if (!rd_done(start))
		return box_fail(err, BOX_EPARSE, 0, "START for box-files has a wrong length");
	r->root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r->root_fd < 0)
		return box_fail(err, BOX_ESYS, errno, "open '/'");
	/* Both may be missing; what needs them then fails alone. */
	r->host_tmp_fd = openat(r->root_fd, "tmp", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r->proc_fd = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < r->prots_n; i++) {
		if (note_above(r, i, err) != 0)
			return -1;
	}
	return 0;
}

void reach_fini(struct reach *r)
{
	fd_drop(&r->root_fd);
	fd_drop(&r->tmp_fd);
	fd_drop(&r->host_tmp_fd);
	fd_drop(&r->proc_fd);
	arena_free(&r->arena);
	r->roots_n = r->prots_n = r->above_n = r->allow_n = 0;
}
