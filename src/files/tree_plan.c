/* Trees: the frames, the operands, and reading the folders. See tree.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "files/tree.h"
#include "base/ban.h"

#define READ_SLICE 1024

/* --- plan --- */

bool tree_charge(struct tree *t)
{
	struct srv *s = t->q->srv;
	size_t more = t->arena.total + t->cap * sizeof(struct node) +
	              t->batches_cap * sizeof(struct batch) - t->charged;

	if (more > FILES_PLAN_BYTES_MAX - s->plan_bytes)
		return false;
	s->plan_bytes += more;
	t->charged += more;
	return true;
}

static struct node *add_node(struct tree *t, uint32_t parent, uint32_t operand, sv name)
{
	struct node *v;

	if (t->n == t->cap) {
		uint32_t cap = t->cap != 0 ? t->cap * 2 : 64;

		v = t->n >= FILES_TREE_ENTRIES ? NULL : reallocarray(t->v, cap, sizeof(*v));
		if (v == NULL)
			return NULL;
		t->v = v;
		t->cap = cap;
		if (!tree_charge(t))
			return NULL;
	}
	v = &t->v[t->n];
	*v = (struct node){
		.parent = parent, .operand = operand, .name = arena_dup(&t->arena, name)
	};
	if (v->name.p == NULL)
		return NULL;
	t->n++;
	return v;
}

/* "<base>/<name>/<name>…" for node i; base_of says where the walk upwards ends. */
static bool build_path(const struct tree *t, uint32_t i, bool dst, struct buf *out)
{
	sv part[WALK_DEPTH_MAX];
	size_t n = 0;

	for (;; i = t->v[i].parent) {
		const struct node *v = &t->v[i];

		if (n == WALK_DEPTH_MAX)
			return false;
		if (dst && v->dst_path.p != NULL) {
			part[n++] = v->dst_path;
			break;
		}
		part[n++] = v->name;
		if (v->parent == TREE_NONE)
			break;
	}
	buf_put_sv(out, part[--n]);
	while (n > 0) {
		if (out->n != 1)
			buf_put_byte(out, '/');
		buf_put_sv(out, part[--n]);
	}
	return buf_ok(out) && out->n < FILES_PATH_MAX;
}

bool tree_path(const struct tree *t, uint32_t i, struct buf *out)
{
	return build_path(t, i, false, out);
}

bool tree_dst_path(const struct tree *t, uint32_t i, struct buf *out)
{
	return build_path(t, i, true, out);
}

bool tree_has(const struct tree *t, uint32_t flag)
{
	return (t->flags & flag) != 0;
}

bool tree_descends(const struct tree *t, const struct node *v)
{
	if (!S_ISDIR(v->mode) || v->err != 0 || v->skip)
		return false;
	if (tree_has(t, FILES_TF_ONE_FS) && v->parent != TREE_NONE && v->dev != t->v[v->parent].dev)
		return false;
	switch (t->op) {
	case FILES_TREE_MOVE:
		return true;
	case FILES_TREE_REMOVE:
	case FILES_TREE_COPY:
	case FILES_TREE_CHMOD:
		return tree_has(t, FILES_TF_RECURSIVE);
	}
	return false;
}

static void drop_tree(struct req *q)
{
	struct tree *t = q->state;

	q->srv->plan_bytes -= t->charged;
	if (t->dir != NULL)
		(void)closedir(t->dir); /* only read from */
	tree_drop_dirs(t);
	fd_drop(&t->copy_in);
	fd_drop(&t->copy_out);
	arena_free(&t->arena);
	free(t->v);
	free(t->batches);
	free(t->order);
	free(t);
}

/* The client went away: stop where we are. */
static void gone(struct req *q)
{
	struct tree *t = q->state;

	req_unready(q);
	if (t->asking)
		return; /* its verdict ends the request */
	tree_abandon(t);
	req_end(q);
}

void tree_fail(struct tree *t, int e)
{
	tree_abandon(t);
	req_errno(t->q, e);
}

void tree_note(struct tree *t, uint32_t i, enum files_tree_event ev, const struct buf *fail)
{
	AUTO_BUF b = buf_with(IPC_BODY_MAX);
	AUTO_BUF full = buf_with(FILES_PATH_MAX);
	uint32_t root = t->v[i].operand;

	(void)tree_path(t, i, &full); /* a cut path still names the place */
	buf_put_byte(&b, (uint8_t)ev);
	buf_put_u32(&b, root);
	buf_put_str(&b, i == root ? SV("") : sv_sub(buf_sv(&full), t->v[root].name.n + 1, full.n));
	if (fail != NULL)
		buf_put_sv(&b, buf_sv(fail));
	else
		buf_put_byte(&b, S_ISDIR(t->v[i].mode));
	client_send(t->q->c, FILES_NOTE, t->q->id, &b, NULL, 0);
}

static void refuse(struct tree *t, uint32_t i, enum files_why why, sv path, sv text)
{
	AUTO_BUF fail = buf_with(IPC_BODY_MAX);
	struct req *q = t->q;

	tree_abandon(t);
	put_fail(&fail, why, EACCES, 0, path, text);
	if (t->single) {
		client_send(q->c, FILES_FAIL, q->id, &fail, NULL, 0);
	} else {
		tree_note(t, i, FILES_TREE_ERROR, &fail);
		client_send(q->c, FILES_DONE, q->id, NULL, NULL, 0);
	}
	req_end(q);
}

void tree_denied(struct tree *t, uint32_t i, sv text)
{
	refuse(t, i, FILES_DENIED, SV(""), text);
}

void tree_floored(struct tree *t, uint32_t i, sv canon, const char *reason)
{
	AUTO_BUF path = buf_with(FILES_PATH_MAX);
	AUTO_BUF text = buf_with(2 * FILES_PATH_MAX);

	reach_spell(&t->q->srv->reach, canon, &path);
	buf_putf(&text, SV_FMT ": %s", SV_ARG(buf_sv(&path)), reason);
	refuse(t, i, FILES_FLOOR, buf_sv(&path), buf_sv(&text));
}

/* --- destinations --- */

static void set_dst(struct node *v, const struct walk *w)
{
	v->dst_prot = w->prot;
	v->dst = w->obj < 0 ? DST_NEW : S_ISDIR(w->st.st_mode) ? DST_DIR : DST_FILE;
	v->dst_dev = w->obj < 0 ? 0 : w->st.st_dev;
	v->dst_ino = w->obj < 0 ? 0 : w->st.st_ino;
	v->dst_rdev = w->obj < 0 ? 0 : w->st.st_rdev;
	v->dst_mode = w->obj < 0 ? 0 : w->st.st_mode;
}

static void clash(struct node *v, int e, const char *why)
{
	v->err = e;
	v->why = why;
}

static bool is_newer(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec != b->st_mtim.tv_sec ? a->st_mtim.tv_sec > b->st_mtim.tv_sec
	                                              : a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
}

/* What stands at the destination and whether the object may go there. */
static void judge_dst(struct tree *t, struct node *v, const struct walk *w, const struct stat *src)
{
	bool is_dir = S_ISDIR(v->mode);

	set_dst(v, w);
	v->at_dst = true;
	if (w->err != 0 && !(w->err == ENOENT && w->parent >= 0)) {
		clash(v, w->err, NULL);
	} else if (v->dst == DST_NEW) {
		if (w->slash && !is_dir)
			clash(v, ENOTDIR, NULL);
	} else if (v->dst_dev == v->dev && v->dst_ino == v->ino) {
		clash(v, EINVAL, FILES_SAME_FILE);
	} else if (tree_has(t, FILES_TF_NO_CLOBBER) && !(is_dir && v->dst == DST_DIR)) {
		v->skip = true;
	} else if (tree_has(t, FILES_TF_UPDATE) && !is_dir && !is_newer(src, &w->st)) {
		v->skip = true;
	} else if (is_dir && v->dst == DST_FILE) {
		clash(v, ENOTDIR, FILES_OVER_FILE);
	} else if (!is_dir && v->dst == DST_DIR) {
		clash(v, EISDIR, FILES_OVER_DIR);
	} else if (t->no_replace) {
		clash(v, EEXIST, NULL);
	}
}

/* Where node i goes when it is a child: next to its parent's destination. */
static int plan_child_dst(struct tree *t, struct node *v, const struct stat *src)
{
	const struct node *p = &t->v[v->parent];
	AUTO_BUF path = buf_with(FILES_PATH_MAX);
	struct walk w = WALK_INIT;
	int r = 0;

	v->dst_prot = p->dst_prot;
	v->dst = DST_NEW;
	v->at_dst = true;
	if (p->dst != DST_DIR || t->op == FILES_TREE_MOVE)
		return 0; /* the parent will be new, and so is everything in it */
	if (!tree_dst_path(t, v->parent, &path)) {
		clash(v, ENAMETOOLONG, NULL);
		return 0;
	}
	buf_put_byte(&path, '/');
	buf_put_sv(&path, v->name);
	if (!buf_ok(&path) || path.n >= FILES_PATH_MAX) {
		clash(v, ENAMETOOLONG, NULL);
		return 0;
	}
	/* A file is written through a link that stands there, as cp does; a folder is not merged
	 * into one. */
	bool follow = S_ISREG(v->mode);

	if (walk_path(&t->q->srv->reach, buf_sv(&path), follow ? WALK_FOLLOW : 0, &w) != 0)
		clash(v, w.err, NULL);
	else if (!sv_eq(buf_sv(&w.canon), buf_sv(&path)) &&
	         (v->dst_path = arena_dup(&t->arena, buf_sv(&w.canon))).p == NULL)
		r = -1;
	else if (follow && w.obj < 0 && v->dst_path.p != NULL)
		clash(v, ENOENT, FILES_DANGLING);
	else
		judge_dst(t, v, &w, src);
	walk_fini(&w);
	return r;
}

/* "<dst>/<last name of the operand>" when the destination is a folder to put things in. */
static void operand_dst_text(const struct tree *t, sv operand, struct buf *out)
{
	ptrdiff_t cut;

	buf_put_sv(out, t->dst);
	if (!tree_has(t, FILES_TF_TARGET_IS_DIR))
		return;
	while (operand.n > 1 && operand.p[operand.n - 1] == '/')
		operand.n--;
	cut = sv_rfind(operand, '/');
	operand = sv_sub(operand, (size_t)(cut + 1), operand.n);
	if (sv_eq(operand, SV(".")) || sv_eq(operand, SV("..")))
		return; /* the content of the folder goes into dst itself */
	buf_put_byte(out, '/');
	buf_put_sv(out, operand);
}

/* Does the last name of path stand for a link? */
static bool is_link(const struct tree *t, sv path)
{
	struct walk w = WALK_INIT;
	bool yes =
	    walk_path(&t->q->srv->reach, path, 0, &w) == 0 && w.err == 0 && S_ISLNK(w.st.st_mode);

	walk_fini(&w);
	return yes;
}

/* Does the link that is moved lead to what it would replace? Nothing would be left. */
static bool leads_to_dst(const struct tree *t, const struct node *v)
{
	struct walk w = WALK_INIT;
	bool yes = S_ISLNK(v->mode) && v->dst == DST_FILE &&
	           walk_path(&t->q->srv->reach, v->name, WALK_FOLLOW, &w) == 0 && w.err == 0 &&
	           w.st.st_dev == v->dst_dev && w.st.st_ino == v->dst_ino;

	walk_fini(&w);
	return yes;
}

static int plan_operand_dst(struct tree *t, struct node *v, sv operand, const struct stat *src)
{
	AUTO_BUF path = buf_with(2 * FILES_PATH_MAX);
	struct walk w = WALK_INIT;
	unsigned flags = S_ISDIR(v->mode) ? WALK_MAKE : 0;
	int r = 0;

	if (t->op == FILES_TREE_COPY && !S_ISLNK(v->mode))
		flags |= WALK_FOLLOW;
	v->at_dst = true;
	operand_dst_text(t, operand, &path);
	if (!buf_ok(&path) || path.n >= FILES_PATH_MAX) {
		clash(v, ENAMETOOLONG, NULL);
		return 0;
	}
	if (walk_path(&t->q->srv->reach, buf_sv(&path), flags, &w) != 0) {
		clash(v, w.err, NULL);
	} else {
		sv dst = buf_sv(&w.canon);

		v->dst_path = arena_dup(&t->arena, dst);
		if (v->dst_path.p == NULL)
			r = -1;
		else
			judge_dst(t, v, &w, src);
		if (r == 0 && v->err == 0 && t->op == FILES_TREE_MOVE && !t->single &&
		    leads_to_dst(t, v))
			clash(v, EINVAL, FILES_SAME_FILE);
		if (r == 0 && v->err == 0 && (flags & WALK_FOLLOW) != 0 && v->dst == DST_NEW &&
		    is_link(t, buf_sv(&path)))
			clash(v, ENOENT, FILES_DANGLING);
		if (r == 0 && S_ISDIR(v->mode) && v->err == 0 && reach_within(dst, v->name))
			clash(v, EINVAL, FILES_INTO_SELF);
		if (r == 0 && t->op == FILES_TREE_MOVE && v->err == 0 &&
		    reach_is_pinned(&t->q->srv->reach, dst))
			clash(v, EBUSY, NULL);
	}
	walk_fini(&w);
	return r;
}

/* --- operands --- */

/* What node v, of this kind, is for this operation. */
static void judge_kind(const struct tree *t, struct node *v)
{
	switch (t->op) {
	case FILES_TREE_REMOVE:
		if (S_ISDIR(v->mode) && !tree_has(t, FILES_TF_RECURSIVE) &&
		    !tree_has(t, FILES_TF_DIR))
			clash(v, EISDIR, NULL);
		break;
	case FILES_TREE_COPY:
		if (S_ISDIR(v->mode) && !tree_has(t, FILES_TF_RECURSIVE))
			clash(v, EISDIR, NULL);
		else if (S_ISSOCK(v->mode) || S_ISBLK(v->mode) ||
		         (S_ISFIFO(v->mode) && !tree_has(t, FILES_TF_RECURSIVE)) ||
		         (S_ISCHR(v->mode) && tree_has(t, FILES_TF_RECURSIVE)))
			clash(v, EOPNOTSUPP, NULL);
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
		clash(v, errno, NULL);
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
static int add_operand(struct tree *t, sv path)
{
	struct walk w = WALK_INIT;
	struct node *v;
	int r = 0;

	if (walk_path(&t->q->srv->reach, path, operand_flags(t), &w) != 0) {
		v = add_node(t, TREE_NONE, t->n, path);
		if (v == NULL)
			return -1;
		clash(v, w.err, NULL);
		v->settled = true; /* it cannot even be decided */
		return 0;
	}
	v = add_node(t, TREE_NONE, t->n, buf_sv(&w.canon));
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
			clash(v, t->op == FILES_TREE_MOVE ? EBUSY : EINVAL, NULL);
		if (v->err == 0 && leaves && w.slash && !S_ISDIR(v->mode))
			clash(v, ENOTDIR, NULL);
		if (v->err == 0 && leaves &&
		    (w.tmp || reach_is_pinned(&t->q->srv->reach, buf_sv(&w.canon))))
			clash(v, EBUSY, NULL);
	}
	if (r == 0 && t->dst.p != NULL && v->err == 0)
		r = plan_operand_dst(t, v, path, &w.st);
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
static void ask_look(struct tree *t)
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
			clash(v, ENAMETOOLONG, NULL);
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
	struct node *v = add_node(t, parent, t->v[parent].operand, sv_c(name));

	if (v == NULL)
		return -1;
	if (!sv_is_utf8(v->name)) {
		clash(v, EILSEQ, NULL);
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
	if (t->dst.p != NULL && v->err == 0 && plan_child_dst(t, v, &st) != 0)
		return -1;
	if (v->err == 0)
		v->at_dst = false;
	return 0;
}

/* Read one slice of the folders that were permitted last. */
static void read_dirs(struct tree *t)
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
				clash(&t->v[t->read_at], errno,
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
				clash(&t->v[t->read_at], errno, NULL);
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

/* --- frames --- */

static void slice(struct req *q)
{
	struct tree *t = q->state;

	if (t->asking) {
		req_unready(q);
		return;
	}
	switch (t->phase) {
	case TREE_BUILD:
		break;
	case TREE_OPERANDS:
	case TREE_ENUMERATE:
		ask_look(t);
		break;
	case TREE_READ:
		read_dirs(t);
		break;
	case TREE_DECIDE:
		tree_decide_slice(t);
		break;
	case TREE_ACT:
		tree_act_slice(t);
		break;
	}
}

static struct tree *tree_new(struct req *q)
{
	struct tree *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->q = q;
	t->arena.limit = TREE_BYTES_MAX;
	t->copy_in = t->copy_out = -1;
	t->src_dir = t->dst_dir = (struct held_dir){ TREE_NONE, -1 };
	q->state = t;
	q->drop = drop_tree;
	q->gone = gone;
	return t;
}

static void go(struct tree *t)
{
	t->operands = t->n;
	t->phase = TREE_OPERANDS;
	t->q->slice = slice;
	req_ready(t->q);
}

int op_tree_begin(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	uint8_t op = rd_u8(&m->body);
	uint32_t flags = rd_u32(&m->body), set = rd_u32(&m->body), clear = rd_u32(&m->body);
	struct req *q;
	struct tree *t;
	sv dst;

	if (req_path(&m->body, &dst, err) != 0)
		return -1;
	bool to = op == FILES_TREE_COPY || op == FILES_TREE_MOVE;
	if (!rd_done(&m->body) || op > FILES_TREE_CHMOD || to != (dst.n != 0) ||
	    (to && dst.p[0] != '/'))
		return box_fail(err, BOX_EPARSE, 0, "a malformed TREE_BEGIN");
	if ((q = req_new(c, m, err)) == NULL)
		return -1;
	if ((t = tree_new(q)) == NULL) {
		q->gone = req_end; /* the client ends, and with it q */
		return box_nomem(err, "a plan");
	}
	t->op = (enum files_tree_op)op;
	t->flags = flags;
	t->mode_set = set & 0777;
	t->mode_x = set >> 16 & 0111;
	t->mode_clear = clear & 0777;
	/* mv keeps mode and times; bits above 0777 asked for are an error of chmod(2) here. */
	if (op == FILES_TREE_CHMOD && (set & 0xffff & ~(uint32_t)0777) != 0)
		t->build_err = EPERM;
	if (to && (t->dst = arena_dup(&t->arena, dst)).p == NULL)
		t->build_err = ENOMEM;
	return 0;
}

int op_tree_add(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	struct tree *t = c->cur->state;
	uint16_t n = rd_u16(&m->body);
	sv path;

	for (uint16_t i = 0; i < n; i++) {
		if (req_path(&m->body, &path, err) != 0)
			return -1;
		if (path.n == 0 || path.p[0] != '/')
			return box_fail(err, BOX_EPARSE, 0, "an operand that is not absolute");
		if (t->n >= FILES_TREE_OPERANDS)
			t->build_err = E2BIG;
		if (t->build_err == 0 && (add_operand(t, path) != 0 || !tree_charge(t)))
			t->build_err = ENOMEM;
	}
	return rd_done(&m->body) ? 0 : box_fail(err, BOX_EPARSE, 0, "a malformed TREE_ADD");
}

int op_tree_go(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	struct req *q = c->cur;
	struct tree *t = q->state;

	(void)err;
	q->type = FILES_TREE_GO;
	q->id = m->id;
	if (t->build_err != 0)
		tree_fail(t, t->build_err);
	else
		go(t);
	return 0;
}

int op_rename(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	uint8_t no_replace = rd_u8(&m->body);
	struct req *q;
	struct tree *t;
	sv from, to;

	if (req_path(&m->body, &from, err) != 0 || req_path(&m->body, &to, err) != 0)
		return -1;
	if (!rd_done(&m->body))
		return box_fail(err, BOX_EPARSE, 0, "a malformed RENAME");
	if ((q = req_new(c, m, err)) == NULL)
		return -1;
	if (from.n == 0 || from.p[0] != '/' || to.n == 0 || to.p[0] != '/') {
		req_errno(q, from.n == 0 || to.n == 0 ? ENOENT : EINVAL);
		return 0;
	}
	if ((t = tree_new(q)) == NULL) {
		req_errno(q, ENOMEM);
		return 0;
	}
	t->op = FILES_TREE_MOVE;
	t->single = true;
	t->no_replace = no_replace != 0;
	if ((t->dst = arena_dup(&t->arena, to)).p == NULL || add_operand(t, from) != 0) {
		tree_fail(t, ENOMEM);
		return 0;
	}
	go(t);
	return 0;
}
