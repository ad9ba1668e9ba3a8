/* Trees: doing what was decided, object by object. Every folder is found again by its canonical
 * path without a link on the way, every name is compared with the planned identity directly
 * before it is used. See tree.h.
 *
 * Passes. remove, chmod: one, content before its folder. copy: folders first, then their modes
 * and times from the end. move: the operands are renamed; those that meet another file system
 * are copied (second pass), finished (third) and removed (fourth). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "files/tree.h"
#include "base/ban.h"

#define ACT_SLICE 64

void tree_drop_dirs(struct tree *t)
{
	fd_drop(&t->src_dir.fd);
	fd_drop(&t->dst_dir.fd);
	t->src_dir.node = t->dst_dir.node = TREE_NONE;
}

/* --- outcomes --- */

static void report(struct tree *t, uint32_t i, enum mon_fs_result result)
{
	struct node *v = &t->v[i];

	if (v->settled)
		return;
	v->settled = true;
	for (uint32_t k = 0; k < v->eff_n; k++)
		srv_done(t->q->srv, tree_ticket(t, v->eff + k), result);
}

void tree_did(struct tree *t, uint32_t i)
{
	report(t, i, FS_COMPLETED);
	if (!t->single && tree_has(t, FILES_TF_VERBOSE))
		tree_note(t, i, FILES_TREE_DID, NULL);
}

void tree_error(struct tree *t, uint32_t i, int e, const char *why)
{
	AUTO_BUF fail = buf_with(IPC_BODY_MAX), dst = buf_with(FILES_PATH_MAX);
	AUTO_BUF path = buf_with(FILES_PATH_MAX);
	struct node *v = &t->v[i];

	report(t, i, FS_FAILED);
	v->failed = true;
	t->any_error = true;
	if (e == ESTALE && why == NULL)
		why = FILES_TEXT_CHANGED;
	if (why == NULL)
		why = box_strerror(e);
	t->last_err = e;
	t->last_why = why;
	for (uint32_t p = v->parent; p != TREE_NONE; p = t->v[p].parent)
		t->v[p].below = true;
	if (t->single)
		return;
	if (v->at_dst && t->dst.p != NULL && tree_dst_path(t, i, &dst))
		reach_spell(&t->q->srv->reach, buf_sv(&dst), &path);
	put_fail(&fail, FILES_ERRNO, e, 0, buf_sv(&path), sv_c(why));
	tree_note(t, i, FILES_TREE_ERROR, &fail);
}

/* --- finding things again --- */

/* Walk to a canonical path: no link may be on the way now. 0 or errno. */
static int walk_again(struct tree *t, sv path, struct walk *w)
{
	if (walk_path(&t->q->srv->reach, path, 0, w) != 0)
		return w->err;
	if (!sv_eq(buf_sv(&w->canon), path))
		return ESTALE;
	return w->err == ENOENT && w->parent >= 0 ? 0 : w->err;
}

/* The folder above a path of its own (an operand's, a followed link's). */
static int parent_of_path(struct tree *t, sv path, struct held_dir *held, char name[256])
{
	struct walk w = WALK_INIT;
	int e = walk_again(t, path, &w);

	fd_drop(&held->fd);
	held->node = TREE_NONE;
	if (e == 0 && w.parent < 0)
		e = EBUSY;
	if (e == 0) {
		memcpy(name, w.name, sizeof(w.name));
		held->fd = fd_take(&w.parent);
	}
	walk_fini(&w);
	errno = e;
	return held->fd;
}

/* The folder that is node p, on the side asked for. */
static int open_folder(struct tree *t, uint32_t p, bool dst, struct held_dir *held)
{
	AUTO_BUF path = buf_with(FILES_PATH_MAX);
	struct walk w = WALK_INIT;
	const struct node *v = &t->v[p];
	uint64_t dev = dst ? v->dst_dev : v->dev, ino = dst ? v->dst_ino : v->ino;
	int e;

	if (held->node == p)
		return held->fd;
	fd_drop(&held->fd);
	held->node = TREE_NONE;
	if (!(dst ? tree_dst_path(t, p, &path) : tree_path(t, p, &path))) {
		errno = ENAMETOOLONG;
		return -1;
	}
	e = walk_again(t, buf_sv(&path), &w);
	if (e == 0 && (w.obj < 0 || w.st.st_dev != dev || w.st.st_ino != ino))
		e = ESTALE;
	if (e == 0) {
		held->fd = fd_take(&w.obj);
		held->node = p;
	}
	walk_fini(&w);
	errno = e;
	return held->fd;
}

static void copy_name(char name[256], sv s)
{
	size_t n = s.n < 255 ? s.n : 255; /* one name of a folder: never longer */

	memcpy(name, s.p, n);
	name[n] = '\0';
}

int tree_parent(struct tree *t, uint32_t i, char name[256])
{
	const struct node *v = &t->v[i];

	if (v->parent == TREE_NONE)
		return parent_of_path(t, v->name, &t->src_dir, name);
	copy_name(name, v->name);
	return open_folder(t, v->parent, false, &t->src_dir);
}

int tree_dst_parent(struct tree *t, uint32_t i, char name[256])
{
	const struct node *v = &t->v[i];

	if (v->dst_path.p != NULL)
		return parent_of_path(t, v->dst_path, &t->dst_dir, name);
	copy_name(name, v->name);
	return open_folder(t, v->parent, true, &t->dst_dir);
}

int tree_check(const struct tree *t, uint32_t i, int dir, const char *name)
{
	const struct node *v = &t->v[i];
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return errno;
	return st.st_dev == v->dev && st.st_ino == v->ino &&
	               (st.st_mode & S_IFMT) == (v->mode & S_IFMT)
	           ? 0
	           : ESTALE;
}

int tree_check_dst(const struct tree *t, uint32_t i, int dir, const char *name)
{
	const struct node *v = &t->v[i];
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return v->dst == DST_NEW && errno == ENOENT ? 0 : errno == ENOENT ? ESTALE : errno;
	if (v->dst == DST_NEW)
		return EEXIST;
	return st.st_dev == v->dst_dev && st.st_ino == v->dst_ino ? 0 : ESTALE;
}

/* --- one object --- */

static int remove_one(struct tree *t, uint32_t i)
{
	char name[256];
	int dir = tree_parent(t, i, name), e;

	if (dir < 0)
		return errno;
	e = tree_check(t, i, dir, name);
	if (e == 0 && unlinkat(dir, name, S_ISDIR(t->v[i].mode) ? AT_REMOVEDIR : 0) != 0)
		e = errno;
	/* Somebody else was quicker: gone is gone. */
	return e == ENOENT && tree_has(t, FILES_TF_FORCE) ? 0 : e;
}

static int chmod_one(struct tree *t, uint32_t i)
{
	const struct node *v = &t->v[i];
	AUTO_BUF path = buf_with(FILES_PATH_MAX);
	struct walk w = WALK_INIT;
	mode_t mode = (v->mode & 0777 & ~t->mode_clear) | t->mode_set;
	int e;

	if (S_ISDIR(v->mode) || (v->mode & 0111) != 0)
		mode |= t->mode_x;
	if (!tree_path(t, i, &path))
		return ENAMETOOLONG;
	e = walk_again(t, buf_sv(&path), &w);
	if (e == 0 && (w.obj < 0 || w.st.st_dev != v->dev || w.st.st_ino != v->ino))
		e = ESTALE;
	if (e == 0 && act_chmod(&t->q->srv->reach, &w, mode) != 0)
		e = errno;
	walk_fini(&w);
	return e;
}

/* The name was exchanged between comparison and rename: put it back, touch nothing else. */
static int undo_rename(int from, const char *from_name, int to, const char *to_name)
{
	(void)renameat2(to, to_name, from, from_name, RENAME_NOREPLACE); /* ESTALE says the rest */
	return ESTALE;
}

static int rename_one(struct tree *t, uint32_t i)
{
	const struct node *v = &t->v[i];
	char from_name[256], to_name[256];
	struct stat st;
	int from = tree_parent(t, i, from_name);
	int e, to;

	if (from < 0)
		return errno;
	e = tree_check(t, i, from, from_name);
	if (e != 0)
		return e;
	t->v[i].at_dst = true; /* what fails from here on fails there */
	to = tree_dst_parent(t, i, to_name);
	if (to < 0)
		return errno;
	e = tree_check_dst(t, i, to, to_name);
	if (e != 0)
		return e;
	if (renameat2(from, from_name, to, to_name, v->dst == DST_NEW ? RENAME_NOREPLACE : 0) !=
	    0) {
		/* A file system without RENAME_NOREPLACE: the check above must do. */
		if (errno != EINVAL || v->dst != DST_NEW ||
		    renameat(from, from_name, to, to_name) != 0)
			return errno;
	}
	if (fstatat(to, to_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || st.st_dev != v->dev ||
	    st.st_ino != v->ino)
		return undo_rename(from, from_name, to, to_name);
	return 0;
}

/* --- passes --- */

enum { PASS_FIRST, PASS_COPY, PASS_FINISH, PASS_REMOVE, PASS_END };

static bool is_backward(uint32_t pass)
{
	switch (pass) {
	case PASS_FIRST:
	case PASS_COPY:
		return false;
	}
	return true;
}

/* The nodes as one would walk them: operand by operand, a folder's content as it was read. */
static int make_order(struct tree *t)
{
	bool post = t->op == FILES_TREE_REMOVE || t->op == FILES_TREE_CHMOD;
	struct {
		uint32_t node, next;
	} stack[WALK_DEPTH_MAX];
	uint32_t n = 0, depth = 0;

	t->order = reallocarray(NULL, t->n != 0 ? t->n : 1, sizeof(*t->order));
	if (t->order == NULL)
		return -1;
	for (uint32_t root = 0; root < t->operands; root++) {
		stack[depth].node = root;
		stack[depth++].next = 0;
		if (!post)
			t->order[n++] = root;
		while (depth > 0) {
			const struct node *v = &t->v[stack[depth - 1].node];

			if (stack[depth - 1].next == v->children_n || depth == WALK_DEPTH_MAX) {
				depth--;
				if (post)
					t->order[n++] = stack[depth].node;
				continue;
			}
			uint32_t child = v->children + stack[depth - 1].next++;

			stack[depth].node = child;
			stack[depth++].next = 0;
			if (!post)
				t->order[n++] = child;
		}
	}
	return n == t->n ? 0 : -1; /* deeper than any path can be: nothing was planned there */
}

/* Does this pass concern node i? */
static bool concerns(const struct tree *t, uint32_t i)
{
	const struct node *v = &t->v[i];
	bool cross = t->v[v->operand].cross;

	switch (t->pass) {
	case PASS_FIRST:
		return t->op != FILES_TREE_MOVE || i < t->operands;
	case PASS_COPY:
		return cross;
	case PASS_FINISH:
		return S_ISDIR(v->mode) && v->err == 0 && !v->skip && !v->failed &&
		       v->dst == DST_NEW && (cross || t->op == FILES_TREE_COPY);
	case PASS_REMOVE:
		return cross && !t->v[v->operand].failed && !t->v[v->operand].below;
	}
	return false;
}

/* What is known before the object is touched. true: nothing to do for it. */
static bool is_settled_early(struct tree *t, uint32_t i)
{
	struct node *v = &t->v[i];

	if (v->parent != TREE_NONE && t->v[v->parent].failed && t->op == FILES_TREE_COPY) {
		v->failed = true; /* its folder could not be made; that was said */
		return true;
	}
	if (v->skip) {
		report(t, i, FS_FAILED);
		return true;
	}
	if (v->err != 0) {
		tree_error(t, i, v->err, v->why);
		return true;
	}
	/* A folder keeps what could not be removed from it; that was said. */
	if (t->op == FILES_TREE_REMOVE && v->below) {
		v->failed = true;
		return true;
	}
	return false;
}

/* 1: the same node again; 0: done with it. */
static int act_first(struct tree *t, uint32_t i)
{
	int e = 0;

	if (is_settled_early(t, i))
		return 0;
	switch (t->op) {
	case FILES_TREE_REMOVE:
		e = remove_one(t, i);
		break;
	case FILES_TREE_CHMOD:
		e = chmod_one(t, i);
		break;
	case FILES_TREE_MOVE:
		e = rename_one(t, i);
		if (e == EXDEV && !t->single) {
			t->v[i].cross = true;
			return 0;
		}
		break;
	case FILES_TREE_COPY:
		e = tree_copy(t, i);
		if (e == 1)
			return 1;
		e = e < 0 ? errno : 0;
		break;
	}
	if (e != 0)
		tree_error(t, i, e, NULL);
	else
		tree_did(t, i);
	return 0;
}

static int act_node(struct tree *t, uint32_t i)
{
	int e;

	switch (t->pass) {
	case PASS_FIRST:
		return act_first(t, i);
	case PASS_COPY:
		if (t->v[i].parent != TREE_NONE && t->v[t->v[i].parent].failed) {
			t->v[i].failed = true;
			return 0;
		}
		e = tree_copy(t, i);
		if (e == 1)
			return 1;
		if (e < 0)
			tree_error(t, i, errno, NULL);
		return 0;
	case PASS_FINISH:
		e = tree_copy_finish(t, i);
		if (e != 0)
			tree_error(t, i, e, NULL);
		return 0;
	case PASS_REMOVE:
		e = remove_one(t, i);
		if (e != 0)
			tree_error(t, i, e, NULL);
		else if (i < t->operands)
			tree_did(t, i);
		else
			report(t, i, FS_COMPLETED);
		return 0;
	}
	return 0;
}

/* What was decided below a renamed folder has happened with it; a copy that stopped half-way has
 * happened in part. */
static void settle_below_moves(struct tree *t)
{
	for (uint32_t k = t->operands; k < t->n && t->op == FILES_TREE_MOVE; k++) {
		const struct node *root = &t->v[t->v[k].operand];

		if (root->cross)
			report(t, k, FS_INDETERMINATE);
		else if (root->settled && !root->failed && !root->skip)
			report(t, k, FS_COMPLETED);
	}
}

static void finish(struct tree *t)
{
	struct req *q = t->q;

	settle_below_moves(t);
	tree_abandon(t);
	if (t->single && t->any_error) {
		AUTO_BUF b = buf_with(4096);

		put_fail(&b, FILES_ERRNO, t->last_err, 0, SV(""), sv_c(t->last_why));
		client_send(q->c, FILES_FAIL, q->id, &b, NULL, 0);
	} else {
		client_send(q->c, FILES_DONE, q->id, NULL, NULL, 0);
	}
	req_end(q);
}

void tree_act_slice(struct tree *t)
{
	if (t->order == NULL && make_order(t) != 0) {
		tree_fail(t, ENOMEM);
		return;
	}
	for (int done = 0; done < ACT_SLICE; done++) {
		uint32_t i;

		if (client_is_full(t->q->c)) {
			req_unready(t->q); /* woken when the client has read */
			return;
		}
		if (t->at == t->n) {
			t->at = 0;
			t->pass++;
			tree_drop_dirs(t);
			if (t->pass == PASS_END) {
				finish(t);
				return;
			}
		}
		if (t->n == 0)
			continue;
		i = t->order[is_backward(t->pass) ? t->n - 1 - t->at : t->at];
		if (concerns(t, i) && act_node(t, i) == 1)
			return; /* a slice of a large file */
		t->at++;
	}
}
