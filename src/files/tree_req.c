/* The life of a tree as a request: the frames that describe it, its phases in slices, its end. See
 * tree.h. */
#include <errno.h>
#include <stdlib.h>

#include "base/fd.h"
#include "files/tree.h"
#include "base/ban.h"

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
		tree_ask_look(t);
		break;
	case TREE_READ:
		tree_read_dirs(t);
		break;
	case TREE_DECIDE:
		tree_decide_slice(t);
		break;
	case TREE_ACT:
		tree_act_slice(t);
		break;
	}
}

/* --- frames --- */

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
		if (t->build_err == 0 && (tree_operand(t, path) != 0 || !tree_charge(t)))
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
	if ((t->dst = arena_dup(&t->arena, to)).p == NULL || tree_operand(t, from) != 0) {
		tree_fail(t, ENOMEM);
		return 0;
	}
	go(t);
	return 0;
}
