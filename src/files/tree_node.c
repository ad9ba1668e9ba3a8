/* The plan of a tree: its entries, their paths, and what is said about them to the client. See
 * tree.h. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "files/tree.h"
#include "base/ban.h"

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

struct node *tree_add(struct tree *t, uint32_t parent, uint32_t operand, sv name)
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

void tree_clash(struct node *v, int e, const char *why)
{
	v->err = e;
	v->why = why;
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

/* --- what the client is told --- */

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
