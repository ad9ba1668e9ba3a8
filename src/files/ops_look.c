/* The operations that only look: STAT, ACCESS, READLINK, REALPATH, CHDIR, LOCATE. All answer
 * from the object that was held when it was decided. An absent object is decided first and
 * reported absent afterwards, so that a refusal tells nothing. See server.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "files/server.h"
#include "base/ban.h"

#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

/* One path, one effect. */
static void begin(struct req *q, sv path, unsigned walk_flags, enum mon_fs_op op)
{
	ptrdiff_t w = req_walk(q, path, walk_flags);

	if (w >= 0 && req_effect(q, op, (size_t)w, false) == 0)
		req_decide(q);
}

static int parse_one(struct client *c, struct ipc_msg *m, bool with_byte, uint8_t *byte, sv *path,
    struct req **q, struct box_err *err)
{
	*byte = with_byte ? rd_u8(&m->body) : 0;
	if (req_path(&m->body, path, err) != 0)
		return -1;
	if (!rd_done(&m->body))
		return box_fail(err, BOX_EPARSE, 0, "a malformed request");
	*q = req_new(c, m, err);
	return *q != NULL ? 0 : -1;
}

static void act_stat(struct req *q)
{
	AUTO_BUF b = buf_with(FILES_STAT_LEN);
	struct stat st;

	if (q->w[0].err != 0) {
		req_errno(q, q->w[0].err);
		return;
	}
	if (fstat(q->w[0].obj, &st) != 0) {
		req_errno(q, errno);
		return;
	}
	put_stat(&b, &st);
	req_ok(q, FS_COMPLETED, &b, NULL, 0);
}

int op_stat(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	struct req *q;
	uint8_t follow;
	sv path;

	if (parse_one(c, m, true, &follow, &path, &q, err) != 0)
		return -1;
	q->act = act_stat;
	begin(q, path, follow != 0 ? WALK_FOLLOW : 0, FS_READ_METADATA);
	return 0;
}

/* access(2) on a held object with the effective ids. 0 or errno. */
static int check_access(const struct walk *w, int mode)
{
	if (syscall(SYS_faccessat2, w->obj, "", mode, AT_EMPTY_PATH | AT_EACCESS) == 0)
		return 0;
	if (errno != ENOSYS && errno != EINVAL && errno != EPERM)
		return errno;
	/* Linux before 5.8. */
	if (w->parent < 0)
		return EACCES;
	return faccessat(w->parent, w->name, mode, AT_EACCESS) != 0 ? errno
	       : walk_same(w)                                       ? 0
	                                                            : ESTALE;
}

static void act_access(struct req *q)
{
	int e = q->w[0].err != 0 ? q->w[0].err : check_access(&q->w[0], (int)q->mode);

	if (e != 0)
		req_errno(q, e);
	else
		req_ok(q, FS_COMPLETED, NULL, NULL, 0);
}

int op_access(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	struct req *q;
	uint8_t mode;
	sv path;

	if (parse_one(c, m, true, &mode, &path, &q, err) != 0)
		return -1;
	if ((mode & ~(R_OK | W_OK | X_OK)) != 0) {
		req_errno(q, EINVAL);
		return 0;
	}
	q->act = act_access;
	q->mode = mode;
	begin(q, path, WALK_FOLLOW, (mode & X_OK) != 0 ? FS_EXEC : FS_READ_METADATA);
	return 0;
}

static void act_readlink(struct req *q)
{
	AUTO_BUF b = buf_with(FILES_PATH_MAX + 16);
	char text[FILES_PATH_MAX];
	ssize_t n;

	if (q->w[0].err != 0 || !S_ISLNK(q->w[0].st.st_mode)) {
		req_errno(q, q->w[0].err != 0 ? q->w[0].err : EINVAL);
		return;
	}
	n = readlinkat(q->w[0].obj, "", text, sizeof(text));
	if (n < 0) {
		req_errno(q, errno);
		return;
	}
	buf_put_str(&b, (sv){ text, (size_t)n });
	req_ok(q, FS_COMPLETED, &b, NULL, 0);
}

int op_readlink(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	struct req *q;
	uint8_t unused;
	sv path;

	if (parse_one(c, m, false, &unused, &path, &q, err) != 0)
		return -1;
	q->act = act_readlink;
	begin(q, path, 0, FS_READ_LINK);
	return 0;
}

static void answer_path(struct req *q, size_t w)
{
	AUTO_BUF b = buf_with(FILES_PATH_MAX + 16);

	buf_put_str(&b, buf_sv(&q->w[w].canon));
	req_ok(q, FS_COMPLETED, &b, NULL, 0);
}

static void act_realpath(struct req *q)
{
	const struct walk *w = &q->w[0];

	if (w->err != 0 && !(w->err == ENOENT && w->parent >= 0 && !q->yes))
		req_errno(q, w->err);
	else
		answer_path(q, 0);
}

int op_realpath(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	struct req *q;
	uint8_t must_exist;
	sv path;

	if (parse_one(c, m, true, &must_exist, &path, &q, err) != 0)
		return -1;
	q->act = act_realpath;
	q->yes = must_exist != 0;
	begin(q, path, WALK_FOLLOW, FS_READ_METADATA);
	return 0;
}

static void act_chdir(struct req *q)
{
	const struct walk *w = &q->w[0];
	int e = w->err != 0 ? w->err : !S_ISDIR(w->st.st_mode) ? ENOTDIR : check_access(w, X_OK);

	if (e != 0)
		req_errno(q, e);
	else
		answer_path(q, 0);
}

int op_chdir(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	struct req *q;
	uint8_t unused;
	sv path;

	if (parse_one(c, m, false, &unused, &path, &q, err) != 0)
		return -1;
	q->act = act_chdir;
	begin(q, path, WALK_FOLLOW, FS_CHANGE_DIR);
	return 0;
}

/* --- LOCATE --- */

/* Is this a program that may be named to the shell? Nobody decided about it yet, so whatever
 * else stands there (a file without an x bit, a protected object) is like nothing at all: an
 * undecided answer must not tell what exists. */
static bool is_program(const struct req *q, const struct walk *w)
{
	struct reach_ask a = walk_ask(w, FS_EXEC, false);

	a.anywhere = true;
	return w->err == 0 && S_ISREG(w->st.st_mode) && check_access(w, X_OK) == 0 &&
	       reach_floor(&q->srv->reach, &a) == NULL;
}

/* The first executable file of this name on PATH. Looked up undecided (spec shell.md 7.1,
 * Locate): what was found is named in the shell:spawn decision, and nothing of it is read. Empty
 * and relative entries are skipped: they would mean the working directory. */
static void search_path(struct req *q, sv name, sv path_var)
{
	sv rest = path_var, dir;
	bool more = true;

	while (more) {
		AUTO_BUF full = buf_with(FILES_PATH_MAX - 1);
		struct walk *w;
		ptrdiff_t i;

		more = sv_cut(rest, ':', &dir, &rest);
		if (dir.n == 0 || dir.p[0] != '/')
			continue;
		buf_put_sv(&full, dir);
		buf_put_byte(&full, '/');
		buf_put_sv(&full, name);
		if (!buf_ok(&full))
			continue;
		i = req_walk(q, buf_sv(&full), WALK_FOLLOW | WALK_ANYWHERE);
		if (i < 0)
			return;
		w = &q->w[i];
		if (is_program(q, w)) {
			answer_path(q, 0);
			return;
		}
		walk_fini(w);
		q->nw = 0;
	}
	req_errno(q, ENOENT);
}

int op_locate(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	struct req *q;
	sv name, path_var;

	if (req_path(&m->body, &name, err) != 0)
		return -1;
	path_var = rd_str(&m->body, IPC_BODY_MAX);
	if (!rd_done(&m->body) || memchr(path_var.n != 0 ? path_var.p : "", 0, path_var.n) != NULL)
		return box_fail(err, BOX_EPARSE, 0, "a malformed LOCATE");
	if ((q = req_new(c, m, err)) == NULL)
		return -1;
	if (name.n == 0 || sv_eq(name, SV(".")) || sv_eq(name, SV(".."))) {
		req_errno(q, ENOENT);
	} else if (sv_find(name, '/') < 0) {
		search_path(q, name, path_var);
	} else if (req_walk(q, name, WALK_FOLLOW | WALK_ANYWHERE) >= 0) {
		if (is_program(q, &q->w[0]))
			answer_path(q, 0);
		else
			req_errno(q, ENOENT);
	}
	return 0;
}
