/* Where the entries of a copy or a move go, and whether they may: what stands at each destination
 * is looked at once, here, and proven again when something is put there. See tree.h. */
#include <errno.h>
#include <sys/stat.h>

#include "files/tree.h"
#include "base/ban.h"

static void set_dst(struct node *v, const struct walk *w)
{
	v->dst_prot = w->prot;
	v->dst = w->obj < 0 ? DST_NEW : S_ISDIR(w->st.st_mode) ? DST_DIR : DST_FILE;
	v->dst_dev = w->obj < 0 ? 0 : w->st.st_dev;
	v->dst_ino = w->obj < 0 ? 0 : w->st.st_ino;
	v->dst_rdev = w->obj < 0 ? 0 : w->st.st_rdev;
	v->dst_mode = w->obj < 0 ? 0 : w->st.st_mode;
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
		tree_clash(v, w->err, NULL);
	} else if (v->dst == DST_NEW) {
		if (w->slash && !is_dir)
			tree_clash(v, ENOTDIR, NULL);
	} else if (v->dst_dev == v->dev && v->dst_ino == v->ino) {
		tree_clash(v, EINVAL, FILES_SAME_FILE);
	} else if (tree_has(t, FILES_TF_NO_CLOBBER) && !(is_dir && v->dst == DST_DIR)) {
		v->skip = true;
	} else if (tree_has(t, FILES_TF_UPDATE) && !is_dir && !is_newer(src, &w->st)) {
		v->skip = true;
	} else if (is_dir && v->dst == DST_FILE) {
		tree_clash(v, ENOTDIR, FILES_OVER_FILE);
	} else if (!is_dir && v->dst == DST_DIR) {
		tree_clash(v, EISDIR, FILES_OVER_DIR);
	} else if (t->no_replace) {
		tree_clash(v, EEXIST, NULL);
	}
}

/* Where node i goes when it is a child: next to its parent's destination. */
int tree_child_dst(struct tree *t, struct node *v, const struct stat *src)
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
		tree_clash(v, ENAMETOOLONG, NULL);
		return 0;
	}
	buf_put_byte(&path, '/');
	buf_put_sv(&path, v->name);
	if (!buf_ok(&path) || path.n >= FILES_PATH_MAX) {
		tree_clash(v, ENAMETOOLONG, NULL);
		return 0;
	}
	/* A file is written through a link that stands there, as cp does; a folder is not merged
	 * into one. */
	bool follow = S_ISREG(v->mode);

	if (walk_path(&t->q->srv->reach, buf_sv(&path), follow ? WALK_FOLLOW : 0, &w) != 0)
		tree_clash(v, w.err, NULL);
	else if (!sv_eq(buf_sv(&w.canon), buf_sv(&path)) &&
	         (v->dst_path = arena_dup(&t->arena, buf_sv(&w.canon))).p == NULL)
		r = -1;
	else if (follow && w.obj < 0 && v->dst_path.p != NULL)
		tree_clash(v, ENOENT, FILES_DANGLING);
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

int tree_operand_dst(struct tree *t, struct node *v, sv operand, const struct stat *src)
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
		tree_clash(v, ENAMETOOLONG, NULL);
		return 0;
	}
	if (walk_path(&t->q->srv->reach, buf_sv(&path), flags, &w) != 0) {
		tree_clash(v, w.err, NULL);
	} else {
		sv dst = buf_sv(&w.canon);

		v->dst_path = arena_dup(&t->arena, dst);
		if (v->dst_path.p == NULL)
			r = -1;
		else
			judge_dst(t, v, &w, src);
		if (r == 0 && v->err == 0 && t->op == FILES_TREE_MOVE && !t->single &&
		    leads_to_dst(t, v))
			tree_clash(v, EINVAL, FILES_SAME_FILE);
		if (r == 0 && v->err == 0 && (flags & WALK_FOLLOW) != 0 && v->dst == DST_NEW &&
		    is_link(t, buf_sv(&path)))
			tree_clash(v, ENOENT, FILES_DANGLING);
		if (r == 0 && S_ISDIR(v->mode) && v->err == 0 && reach_within(dst, v->name))
			tree_clash(v, EINVAL, FILES_INTO_SELF);
		if (r == 0 && t->op == FILES_TREE_MOVE && v->err == 0 &&
		    reach_is_pinned(&t->q->srv->reach, dst))
			tree_clash(v, EBUSY, NULL);
	}
	walk_fini(&w);
	return r;
}
