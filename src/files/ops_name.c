/* The operations that make, change or remove one name: MKDIR, CHMOD, UTIMES, UNLINK, RMDIR,
 * SYMLINK, LINK, MKTEMP. RENAME is a tree of one (tree.h). Each acts by (held folder, name)
 * after proving once more that the folder is where the decision said and that the name still
 * means the object that was decided. See server.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "files/server.h"
#include "base/ban.h"

/* The end of a request by what a system call said. */
static void finish(struct req *q, int e)
{
	if (e == ESTALE)
		req_changed(q, 0);
	else if (e != 0)
		req_errno(q, e);
	else
		req_ok(q, FS_COMPLETED, NULL, NULL, 0);
}

/* Can a new name be made here? 0, ESTALE, or what is in the way. */
static int can_make(const struct req *q, const struct walk *w)
{
	if (w->obj >= 0 || w->canon.n == 1)
		return EEXIST;
	if (w->err != ENOENT || w->parent < 0)
		return w->err != 0 ? w->err : ENOENT;
	return walk_still(&q->srv->reach, w) ? 0 : ESTALE;
}

/* Can the name be taken away? */
static int can_remove(const struct req *q, const struct walk *w)
{
	if (w->err != 0)
		return w->err;
	if (w->dot)
		return EINVAL;
	if (w->slash && !S_ISDIR(w->st.st_mode))
		return ENOTDIR;
	if (w->parent < 0 || w->tmp || reach_is_pinned(&q->srv->reach, buf_sv(&w->canon)))
		return EBUSY;
	return walk_still(&q->srv->reach, w) && walk_same(w) ? 0 : ESTALE;
}

static int parse_mode_path(struct client *c, struct ipc_msg *m, bool with_mode, unsigned walk_flags,
    enum mon_fs_op op, void (*act)(struct req *), struct box_err *err)
{
	uint32_t mode = with_mode ? rd_u32(&m->body) : 0;
	struct req *q;
	ptrdiff_t w;
	sv path;

	if (req_path(&m->body, &path, err) != 0)
		return -1;
	if (!rd_done(&m->body))
		return box_fail(err, BOX_EPARSE, 0, "a malformed request");
	if ((q = req_new(c, m, err)) == NULL)
		return -1;
	q->mode = mode;
	q->act = act;
	w = req_walk(q, path, walk_flags);
	if (w >= 0 && req_effect(q, op, (size_t)w, false) == 0)
		req_decide(q);
	return 0;
}

static void act_mkdir(struct req *q)
{
	struct walk *w = &q->w[0];
	int e = can_make(q, w);

	if (e == 0 && mkdirat(w->parent, w->name, q->mode & 0777) != 0)
		e = errno;
	finish(q, e);
}

int op_mkdir(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	return parse_mode_path(c, m, true, WALK_MAKE, FS_CREATE_DIR, act_mkdir, err);
}

static void act_chmod_req(struct req *q)
{
	struct walk *w = &q->w[0];

	/* Set-id and sticky bits are refused, and dropped where they stand (shell.md 8.7). */
	if (w->err == 0 && (q->mode & ~(uint32_t)0777) != 0)
		finish(q, EPERM);
	else if (w->err == 0 && w->tmp)
		finish(q, EBUSY);
	else if (w->err != 0)
		finish(q, w->err);
	else
		finish(q, act_chmod(&q->srv->reach, w, q->mode) != 0 ? errno : 0);
}

int op_chmod(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	return parse_mode_path(c, m, true, WALK_FOLLOW, FS_SET_PERMISSIONS, act_chmod_req, err);
}

static void act_unlink(struct req *q)
{
	struct walk *w = &q->w[0];
	int e = w->err == 0 && S_ISDIR(w->st.st_mode) ? EISDIR : can_remove(q, w);

	if (e == 0 && unlinkat(w->parent, w->name, 0) != 0)
		e = errno;
	finish(q, e);
}

int op_unlink(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	return parse_mode_path(c, m, false, WALK_MAKE, FS_REMOVE_FILE, act_unlink, err);
}

static void act_rmdir(struct req *q)
{
	struct walk *w = &q->w[0];
	int e = w->err == 0 && !S_ISDIR(w->st.st_mode) ? ENOTDIR : can_remove(q, w);

	if (e == 0 && unlinkat(w->parent, w->name, AT_REMOVEDIR) != 0)
		e = errno;
	finish(q, e);
}

int op_rmdir(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	return parse_mode_path(c, m, false, WALK_MAKE, FS_REMOVE_DIR, act_rmdir, err);
}

/* --- UTIMES --- */

static void act_utimes(struct req *q)
{
	struct walk *w = &q->w[0];
	int e = w->err;

	if (e == 0 && utimensat(w->obj, "", q->ts, AT_EMPTY_PATH) != 0) {
		e = errno;
		/* Linux before 5.8: by name, on exactly this object or on nothing that follows a
		 * link. */
		if (e == EINVAL || e == ENOENT)
			e = !walk_still(&q->srv->reach, w) || !walk_same(w) ? ESTALE
			    : utimensat(w->parent, w->name, q->ts, AT_SYMLINK_NOFOLLOW) != 0 ? errno
			                                                                     : 0;
	}
	finish(q, e);
}

int op_utimes(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	uint8_t follow = rd_u8(&m->body);
	struct timespec ts[2];
	struct req *q;
	ptrdiff_t w;
	sv path;

	for (int i = 0; i < 2; i++) {
		ts[i].tv_sec = (time_t)rd_u64(&m->body);
		ts[i].tv_nsec = (long)rd_u32(&m->body);
	}
	if (req_path(&m->body, &path, err) != 0)
		return -1;
	if (!rd_done(&m->body))
		return box_fail(err, BOX_EPARSE, 0, "a malformed UTIMES");
	if ((q = req_new(c, m, err)) == NULL)
		return -1;
	q->ts[0] = ts[0];
	q->ts[1] = ts[1];
	q->act = act_utimes;
	w = req_walk(q, path, follow != 0 ? WALK_FOLLOW : 0);
	if (w >= 0 && req_effect(q, FS_WRITE_CONTENT, (size_t)w, false) == 0)
		req_decide(q);
	return 0;
}

/* --- SYMLINK, LINK --- */

/* Is there something to be replaced, and may it be? */
static bool is_replacing(const struct req *q, const struct walk *w)
{
	return q->yes && w->obj >= 0 && !S_ISDIR(w->st.st_mode) && w->parent >= 0;
}

static int can_link(const struct req *q, const struct walk *w)
{
	if (w->slash && w->obj < 0)
		return ENOENT;
	return is_replacing(q, w) ? can_remove(q, w) : can_make(q, w);
}

/* The name for a moment: the new link, until it is renamed over the old one. */
static int temp_name(char out[32])
{
	uint64_t r;

	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		return EIO;
	(void)snprintf(out, 32, ".ln-%016llx", (unsigned long long)r); /* fits */
	return 0;
}

/* Put the link that stands under `temp` in the place of what was decided to go. */
static int replace_by(const struct walk *w, const char *temp)
{
	int e = !walk_same(w)                                        ? ESTALE
	        : renameat(w->parent, temp, w->parent, w->name) != 0 ? errno
	                                                             : 0;

	/* rename(2) does nothing when both names are links to one file. */
	(void)unlinkat(w->parent, temp, 0); /* gone already when the rename did it */
	return e;
}

static void act_symlink(struct req *q)
{
	struct walk *w = &q->w[0];
	const char *text = buf_cstr(&q->text), *name = w->name;
	bool over = is_replacing(q, w);
	char temp[32];
	int e = text == NULL ? ENOMEM : can_link(q, w);

	if (e == 0 && over) {
		e = temp_name(temp);
		name = temp;
	}
	if (e == 0 && symlinkat(text, w->parent, name) != 0)
		e = errno;
	else if (e == 0 && over)
		e = replace_by(w, temp);
	finish(q, e);
}

/* Two paths: the frames of SYMLINK and LINK. */
static int parse_two(
    struct client *c, struct ipc_msg *m, sv *a, sv *b, struct req **q, struct box_err *err)
{
	uint8_t replace = rd_u8(&m->body);

	if (req_path(&m->body, a, err) != 0 || req_path(&m->body, b, err) != 0)
		return -1;
	if (!rd_done(&m->body))
		return box_fail(err, BOX_EPARSE, 0, "a malformed request");
	*q = req_new(c, m, err);
	if (*q == NULL)
		return -1;
	(*q)->yes = replace != 0;
	return 0;
}

/* What is replaced is removed, and that is decided too. */
static int removal_effect(struct req *q, size_t w)
{
	return is_replacing(q, &q->w[w]) ? req_effect(q, FS_REMOVE_FILE, w, false) : 0;
}

/* The object that the text of a new link would lead to, from the folder where the link will be. */
static ptrdiff_t walk_target(struct req *q, sv text, const struct walk *link)
{
	AUTO_BUF full = buf_with(FILES_PATH_MAX - 1);
	ptrdiff_t cut = sv_rfind(buf_sv(&link->canon), '/');

	if (text.n == 0 || text.p[0] != '/') {
		buf_put_sv(&full, sv_sub(buf_sv(&link->canon), 0, (size_t)cut + 1));
	}
	buf_put_sv(&full, text);
	if (!buf_ok(&full)) {
		req_errno(q, ENAMETOOLONG);
		return -1;
	}
	return req_walk(q, buf_sv(&full), WALK_FOLLOW);
}

int op_symlink(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	struct req *q;
	ptrdiff_t link, target;
	sv text, path;

	if (parse_two(c, m, &text, &path, &q, err) != 0)
		return -1;
	if (text.n == 0) {
		req_errno(q, ENOENT);
		return 0;
	}
	q->act = act_symlink;
	buf_put_sv(&q->text, text);
	link = req_walk(q, path, WALK_MAKE);
	if (link < 0)
		return 0;
	target = walk_target(q, text, &q->w[link]);
	if (target < 0)
		return 0;
	/* Legs in this order (shell.md 7.1): a link to something is a way to read it. */
	if (req_effect(q, FS_SYMLINK, (size_t)target, true) == 0 &&
	    req_effect(q, FS_READ_CONTENT, (size_t)target, true) == 0 &&
	    removal_effect(q, (size_t)link) == 0 &&
	    req_effect(q, FS_SYMLINK, (size_t)link, false) == 0)
		req_decide(q);
	return 0;
}

static void act_link(struct req *q)
{
	struct walk *from = &q->w[0], *to = &q->w[1];
	bool over = is_replacing(q, to);
	const char *name = to->name;
	char temp[32];
	struct stat st;
	int e = from->err;

	if (e == 0 && S_ISDIR(from->st.st_mode))
		e = EPERM;
	if (e == 0)
		e = can_link(q, to);
	if (e == 0 && (!walk_still(&q->srv->reach, from) || !walk_same(from)))
		e = ESTALE;
	if (e == 0 && over) {
		e = temp_name(temp);
		name = temp;
	}
	if (e == 0 && linkat(from->parent, from->name, to->parent, name, 0) != 0) {
		finish(q, errno);
		return;
	}
	/* The name may have been exchanged in between: what was linked must be what was decided. */
	if (e == 0 && (fstatat(to->parent, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
	                  st.st_dev != from->st.st_dev || st.st_ino != from->st.st_ino)) {
		(void)unlinkat(to->parent, name, 0); /* the error below says what happened */
		e = ESTALE;
	}
	if (e == 0 && over)
		e = replace_by(to, temp);
	finish(q, e);
}

static int link_of_link(struct req *q)
{
	char text[FILES_PATH_MAX];
	ssize_t n = readlinkat(q->w[0].obj, "", text, sizeof(text));
	ptrdiff_t target;

	if (n < 0) {
		req_errno(q, errno);
		return -1;
	}
	target = walk_target(q, (sv){ text, (size_t)n }, &q->w[1]);
	if (target < 0 || req_effect(q, FS_SYMLINK, (size_t)target, true) != 0)
		return -1;
	return req_effect(q, FS_READ_CONTENT, (size_t)target, true);
}

int op_link(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	struct req *q;
	sv from, to;

	if (parse_two(c, m, &from, &to, &q, err) != 0)
		return -1;
	q->act = act_link;
	if (req_walk(q, from, 0) < 0 || req_walk(q, to, WALK_MAKE) < 0)
		return 0;
	/* A second name of a link leads to what the link says, like a new link. */
	if (q->w[0].err == 0 && S_ISLNK(q->w[0].st.st_mode) && link_of_link(q) != 0)
		return 0;
	/* A second name is a way to read and to write the first. */
	if (req_effect(q, FS_READ_CONTENT, 0, false) == 0 &&
	    req_effect(q, FS_WRITE_CONTENT, 0, false) == 0 && removal_effect(q, 1) == 0 &&
	    req_effect(q, FS_WRITE_CONTENT, 1, false) == 0)
		req_decide(q);
	return 0;
}

/* --- MKTEMP --- */

static void act_mktemp(struct req *q)
{
	AUTO_BUF b = buf_with(FILES_PATH_MAX + 16);
	struct walk *w = &q->w[0];
	int e = can_make(q, w);
	AUTO_FD fd = -1;

	if (e == EEXIST)
		e = ESTALE;
	if (e == 0 && q->yes && mkdirat(w->parent, w->name, 0700) != 0)
		e = errno;
	if (e == 0 && !q->yes) {
		fd = openat(
		    w->parent, w->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0)
			e = errno;
	}
	if (e != 0) {
		finish(q, e);
		return;
	}
	buf_put_str(&b, buf_sv(&q->text));
	req_ok(q, q->yes ? FS_COMPLETED : FS_DESCRIPTOR_ISSUED, &b, &fd, q->yes ? 0 : 1);
}

/* Replace the run of X at the end of q->text by random letters. */
static int fill_template(struct req *q, size_t x)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	unsigned char r[FILES_PATH_MAX];

	if (getrandom(r, x, 0) != (ssize_t)x)
		return -1;
	for (size_t i = 0; i < x; i++)
		q->text.p[q->text.n - x + i] = (uint8_t)letters[r[i] % (sizeof(letters) - 1)];
	return 0;
}

int op_mktemp(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	uint8_t dir = rd_u8(&m->body);
	struct req *q;
	size_t x = 0;
	sv path;

	if (req_path(&m->body, &path, err) != 0)
		return -1;
	if (!rd_done(&m->body))
		return box_fail(err, BOX_EPARSE, 0, "a malformed MKTEMP");
	if ((q = req_new(c, m, err)) == NULL)
		return -1;
	q->yes = dir != 0;
	q->act = act_mktemp;
	while (x < path.n && path.p[path.n - 1 - x] == 'X')
		x++;
	buf_put_sv(&q->text, path);
	if (x < 3 || x > 200 || !buf_ok(&q->text)) {
		req_errno(q, EINVAL);
		return 0;
	}
	for (int tries = 0;; tries++) {
		if (fill_template(q, x) != 0) {
			req_errno(q, EIO);
			return 0;
		}
		if (req_walk(q, buf_sv(&q->text), WALK_MAKE) < 0)
			return 0;
		if (q->w[0].obj < 0 || tries == 100)
			break;
		walk_fini(&q->w[0]);
		q->nw = 0;
	}
	if (req_effect(q, dir != 0 ? FS_CREATE_DIR : FS_WRITE_CONTENT, 0, false) == 0)
		req_decide(q);
	return 0;
}
