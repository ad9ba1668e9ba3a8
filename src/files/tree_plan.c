/* What a tree consists of: operands are resolved, then decided; folders are decided, then read,
 * level by level, until nothing is left to descend into. See tree.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "files/tree.h"
#include "base/ban.h"

#define READ_SLICE 1024

/* --- operands --- */

/* What node v, of this kind, is for this operation. */
static void judge_kind(const struct tree *t, struct node *v)
{
	switch (t->op) {
	case FILES_TREE_REMOVE:
		if (S_ISDIR(v->mode) && !tree_has(t, FILES_TF_RECURSIVE) &&
		    !tree_has(t, FILES_TF_DIR))
			tree_clash(v, EISDIR, NULL);
		break;
	case FILES_TREE_COPY:
		if (S_ISDIR(v->mode) && !tree_has(t, FILES_TF_RECURSIVE))
			tree_clash(v, EISDIR, NULL);
		else if (S_ISSOCK(v->mode) || S_ISBLK(v->mode) ||
		         (S_ISFIFO(v->mode) && !tree_has(t, FILES_TF_RECURSIVE)) ||
		         (S_ISCHR(v->mode) && tree_has(t, FILES_TF_RECURSIVE)))
			tree_clash(v, EOPNOTSUPP, NULL);
		break;
	case FILES_TREE_CHMOD:
		if (S_ISLNK(v->mode))
			v->skip = true; /* met below a folder: a link has no mode of its own */
		break;
	case FILES_TREE_MOVE:
		break;
	}
}

/* A link that will be made again elsewhere: its text cannot change, so it is read once. -1: no
 * memory. */
static int keep_link(struct tree *t, struct node *v, int dir, const char *name)
{
	char text[FILES_PATH_MAX];
	ssize_t n;

	if (!S_ISLNK(v->mode) || v->err != 0 ||
	    (t->op != FILES_TREE_COPY && t->op != FILES_TREE_MOVE))
		return 0;
	n = readlinkat(dir, name, text, sizeof(text) - 1);
	if (n < 0) {
		tree_clash(v, errno, NULL);
		return 0;
	}
	v->link = arena_dup(&t->arena, (sv){ text, (size_t)n });
	return v->link.p != NULL ? 0 : -1;
}

static unsigned operand_flags(const struct tree *t)
{
	switch (t->op) {
	case FILES_TREE_COPY:
		return tree_has(t, FILES_TF_NO_DEREF) ? 0 : WALK_FOLLOW;
	case FILES_TREE_CHMOD:
		return WALK_FOLLOW;
	case FILES_TREE_REMOVE:
	case FILES_TREE_MOVE:
		return WALK_MAKE;
	}
	return 0;
}

/* Resolve an operand into the plan. -1: no memory. */
int tree_operand(struct tree *t, sv path)
{
	struct walk w = WALK_INIT;
	struct node *v;
	int r = 0;

	if (walk_path(&t->q->srv->reach, path, operand_flags(t), &w) != 0) {
		v = tree_add(t, TREE_NONE, t->n, path);
		if (v == NULL)
			return -1;
		tree_clash(v, w.err, NULL);
		v->settled = true; /* it cannot even be decided */
		return 0;
	}
	v = tree_add(t, TREE_NONE, t->n, buf_sv(&w.canon));
	if (v == NULL) {
		walk_fini(&w);
		return -1;
	}
	v->prot = w.prot;
	if (w.err != 0) {
		v->err = w.err;
		v->skip = t->op == FILES_TREE_REMOVE && tree_has(t, FILES_TF_FORCE) &&
		          (w.err == ENOENT || w.err == ENOTDIR);
	} else {
		v->dev = w.st.st_dev;
		v->ino = w.st.st_ino;
		v->mode = w.st.st_mode;
		v->rdev = w.st.st_rdev;
		judge_kind(t, v);
		r = keep_link(t, v, w.obj, "");
		bool leaves = t->op == FILES_TREE_REMOVE || t->op == FILES_TREE_MOVE;

		if (v->err == 0 && leaves && w.dot)
			tree_clash(v, t->op == FILES_TREE_MOVE ? EBUSY : EINVAL, NULL);
		if (v->err == 0 && leaves && w.slash && !S_ISDIR(v->mode))
			tree_clash(v, ENOTDIR, NULL);
		if (v->err == 0 && leaves &&
		    (w.tmp || reach_is_pinned(&t->q->srv->reach, buf_sv(&w.canon))))
			tree_clash(v, EBUSY, NULL);
	}
	if (r == 0 && t->dst.p != NULL && v->err == 0)
		r = tree_operand_dst(t, v, path, &w.st);
	if (v->err == 0)
		v->at_dst = false;
	walk_fini(&w);
	return r;
}

/* --- asking about operands and folders --- */

static uint16_t count_asked(const struct tree *t)
{
	uint16_t n = 0;

	for (uint32_t k = t->ask_first; k < t->ask_end; k++)
		n = (uint16_t)(n + (t->v[k].asked ? 1 : 0));
	return n;
}

/* The floor for one reading effect on a planned object. */
static bool floor_node(struct tree *t, uint32_t i, enum mon_fs_op op, const struct verdict *v)
{
	const struct node *n = &t->v[i];
	AUTO_BUF path = buf_with(FILES_PATH_MAX);
	struct reach_ask a = { .op = op,
		.chain = n->prot,
		.exists = n->mode != 0,
		.dev = n->dev,
		.ino = n->ino,
		.mode = n->mode,
		.rdev = n->rdev };
	const char *reason;

	(void)tree_path(t, i, &path); /* asked about: it fits */
	a.canon = buf_sv(&path);
	reason = reach_floor(&t->q->srv->reach, &a);
	if (reason == NULL)
		return true;
	srv_floor(t->q->srv, v->ticket, count_asked(t), op, a.canon, reason);
	tree_floored(t, i, a.canon, reason);
	return false;
}

static void on_look(void *ctx, const struct verdict *v)
{
	struct req *q = ctx;
	struct tree *t = q->state;
	enum mon_fs_op op = t->phase == TREE_OPERANDS ? FS_READ_METADATA : FS_ENUMERATE;
	uint16_t k = 0;

	t->asking = false;
	for (uint32_t i = t->ask_first; i < t->ask_end; i++) {
		if (!t->v[i].asked)
			continue;
		if (!v->permit && k == v->index) {
			if (q->c->dead)
				req_end(q);
			else
				tree_denied(t, i, v->text);
			return;
		}
		if (v->permit && !q->c->dead && !floor_node(t, i, op, v))
			return;
		k++;
	}
	if (q->c->dead) {
		srv_abandon(q->srv, v->ticket, k);
		tree_abandon(t);
		req_end(q);
		return;
	}
	/* Looking is done once it was permitted: the plan holds what was seen, or the folder is
	 * read next. */
	k = 0;
	for (uint32_t i = t->ask_first; i < t->ask_end; i++) {
		if (!t->v[i].asked)
			continue;
		t->v[i].asked = false;
		t->v[i].readable = t->phase == TREE_ENUMERATE;
		srv_done(q->srv, v->ticket + k++,
		    t->phase == TREE_OPERANDS && t->v[i].mode == 0 ? FS_FAILED : FS_COMPLETED);
	}
	if (t->phase == TREE_ENUMERATE) {
		t->phase = TREE_READ;
		t->read_at = t->ask_first;
	}
	req_ready(q);
}

static bool is_asked(const struct tree *t, const struct node *v)
{
	return t->phase == TREE_OPERANDS ? !v->settled : tree_descends(t, v);
}

/* Ask about the next nodes of this phase. */
void tree_ask_look(struct tree *t)
{
	uint32_t end = t->phase == TREE_OPERANDS ? t->operands : t->n;
	enum mon_fs_op op = t->phase == TREE_OPERANDS ? FS_READ_METADATA : FS_ENUMERATE;
	struct question k;

	question_begin(&k, t->q->c->session);
	t->ask_first = t->at;
	for (; t->at < end && k.n < MON_BATCH_MAX; t->at++) {
		AUTO_BUF path = buf_with(FILES_PATH_MAX);
		struct node *v = &t->v[t->at];

		v->asked = false;
		if (!is_asked(t, v))
			continue;
		if (!tree_path(t, t->at, &path)) {
			tree_clash(v, ENAMETOOLONG, NULL);
			continue;
		}
		if (!question_add(t->q->srv, &k, op, buf_sv(&path)))
			break;
		v->asked = true;
	}
	t->ask_end = t->at;
	if (k.n == 0) {
		buf_fini(&k.body);
		if (t->at >= end) {
			t->phase = t->phase == TREE_OPERANDS ? TREE_ENUMERATE : TREE_DECIDE;
			t->at = 0;
		}
		return;
	}
	t->asking = true;
	req_unready(t->q);
	if (srv_ask(t->q->srv, &k, on_look, t->q) != 0) {
		t->asking = false;
		tree_fail(t, ENOMEM);
	}
}

/* --- reading folders --- */

static int open_node_dir(struct tree *t, uint32_t i)
{
	AUTO_BUF path = buf_with(FILES_PATH_MAX);
	struct walk w = WALK_INIT;
	int fd = -1, e = 0;

	(void)tree_path(t, i, &path); /* asked about: it fits */
	if (walk_path(&t->q->srv->reach, buf_sv(&path), 0, &w) != 0 || w.err != 0)
		e = w.err;
	else if (!sv_eq(buf_sv(&w.canon), buf_sv(&path)) || w.st.st_dev != t->v[i].dev ||
	         w.st.st_ino != t->v[i].ino)
		e = ESTALE;
	else if ((fd = act_open_dir(&w)) < 0)
		e = errno;
	walk_fini(&w);
	errno = e;
	return fd;
}

static int add_child(struct tree *t, uint32_t parent, const char *name)
{
	struct stat st;
	struct node *v = tree_add(t, parent, t->v[parent].operand, sv_c(name));

	if (v == NULL)
		return -1;
	if (!sv_is_utf8(v->name)) {
		tree_clash(v, EILSEQ, NULL);
		return 0;
	}
	if (fstatat(dirfd(t->dir), name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		v->skip = errno == ENOENT; /* gone again */
		v->err = errno;
		return 0;
	}
	v->dev = st.st_dev;
	v->ino = st.st_ino;
	v->mode = st.st_mode;
	v->rdev = st.st_rdev;
	v->prot = t->v[parent].prot != NULL ? t->v[parent].prot
	                                    : reach_by_id(&t->q->srv->reach, v->dev, v->ino);
	judge_kind(t, v);
	if (keep_link(t, v, dirfd(t->dir), name) != 0)
		return -1;
	if (t->dst.p != NULL && v->err == 0 && tree_child_dst(t, v, &st) != 0)
		return -1;
	if (v->err == 0)
		v->at_dst = false;
	return 0;
}

/* Read one slice of the folders that were permitted last. */
void tree_read_dirs(struct tree *t)
{
	for (int n = 0; n < READ_SLICE; n++) {
		struct dirent *d;

		while (t->dir == NULL && t->read_at < t->ask_end && !t->v[t->read_at].readable)
			t->read_at++;
		if (t->dir == NULL && t->read_at >= t->ask_end) {
			t->phase = TREE_ENUMERATE;
			return;
		}
		if (t->dir == NULL) {
			AUTO_FD fd = open_node_dir(t, t->read_at);

			if (fd < 0 || (t->dir = fdopendir(fd)) == NULL) {
				tree_clash(&t->v[t->read_at], errno,
				    errno == ESTALE ? FILES_TEXT_CHANGED : NULL);
				t->read_at++;
				continue;
			}
			(void)fd_take(&fd); /* dir owns it */
			t->v[t->read_at].children = t->n;
		}
		errno = 0;
		d = readdir(t->dir);
		if (d == NULL) {
			if (errno != 0)
				tree_clash(&t->v[t->read_at], errno, NULL);
			(void)closedir(t->dir); /* only read from */
			t->dir = NULL;
			t->read_at++;
			continue;
		}
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (add_child(t, t->read_at, d->d_name) != 0 || !tree_charge(t)) {
			tree_fail(t, t->n >= FILES_TREE_ENTRIES ? E2BIG : ENOMEM);
			return;
		}
		t->v[t->read_at].children_n = t->n - t->v[t->read_at].children;
	}
}
