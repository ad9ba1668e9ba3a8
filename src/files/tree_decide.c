/* Trees: what a plan means to policy, asked in batches, with the floor beneath each permit. See
 * tree.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "files/tree.h"
#include "base/ban.h"

#define EFFS_MAX 6

/* The effects of one node. Each path has its own buffer. */
struct effects {
	struct reach_ask ask[EFFS_MAX];
	size_t n;
	struct buf src, dst, target;
};

static void effects_fini(struct effects *e)
{
	buf_fini(&e->src);
	buf_fini(&e->dst);
	buf_fini(&e->target);
}

static void add(struct effects *e, enum mon_fs_op op, struct reach_ask a)
{
	a.op = op;
	e->ask[e->n++] = a;
}

/* What the text of the link will lead to from where the link will be: naming it is a way to read
 * it. */
static int link_target(struct tree *t, const struct node *v, struct effects *e)
{
	AUTO_BUF full = buf_with(2 * FILES_PATH_MAX);
	struct walk w = WALK_INIT;
	struct reach_ask a;

	if (v->link.n == 0 || v->link.p[0] != '/')
		buf_put_sv(&full,
		    sv_sub(buf_sv(&e->dst), 0, (size_t)(sv_rfind(buf_sv(&e->dst), '/') + 1)));
	buf_put_sv(&full, v->link);
	if (!buf_ok(&full) || full.n >= FILES_PATH_MAX)
		return ENAMETOOLONG;
	if (walk_path(&t->q->srv->reach, buf_sv(&full), WALK_FOLLOW, &w) != 0)
		return w.err;
	buf_put_sv(&e->target, buf_sv(&w.canon));
	a = walk_ask(&w, FS_SYMLINK, true);
	a.canon = buf_sv(&e->target);
	walk_fini(&w);
	add(e, FS_SYMLINK, a);
	add(e, FS_READ_CONTENT, a);
	return 0;
}

static int copy_effects(struct tree *t, const struct node *v, struct effects *e,
    struct reach_ask src, struct reach_ask dst)
{
	if (S_ISDIR(v->mode)) {
		if (v->dst == DST_NEW)
			add(e, FS_CREATE_DIR, dst);
		return 0;
	}
	if (S_ISLNK(v->mode)) {
		int r;

		add(e, FS_READ_LINK, src);
		r = link_target(t, v, e);
		if (r != 0)
			return r;
		if (v->dst != DST_NEW)
			add(e, FS_REMOVE_FILE, dst);
		add(e, FS_SYMLINK, dst);
		return 0;
	}
	/* /dev/null needs no decision (design.md 10). */
	if (!S_ISFIFO(v->mode) && !sv_eq(src.canon, SV("/dev/null")))
		add(e, FS_READ_CONTENT, src);
	if (!sv_eq(dst.canon, SV("/dev/null")))
		add(e, FS_WRITE_CONTENT, dst);
	return 0;
}

/* All effects of node i, in order. 0, or errno: the node cannot be spelled or there is no
 * memory. */
static int effects_of(struct tree *t, uint32_t i, struct effects *e)
{
	const struct node *v = &t->v[i];
	struct reach_ask src = { .chain = v->prot,
		.exists = true,
		.dev = v->dev,
		.ino = v->ino,
		.mode = v->mode,
		.rdev = v->rdev };
	struct reach_ask dst = { .chain = v->dst_prot,
		.exists = v->dst != DST_NEW,
		.dev = v->dst_dev,
		.ino = v->dst_ino,
		.mode = v->dst_mode,
		.rdev = v->dst_rdev };

	*e = (struct effects){ .src = buf_with(FILES_PATH_MAX),
		.dst = buf_with(FILES_PATH_MAX),
		.target = buf_with(FILES_PATH_MAX) };
	if (v->err != 0 || v->skip)
		return 0;
	if (!tree_path(t, i, &e->src) || (t->dst.p != NULL && !tree_dst_path(t, i, &e->dst)))
		return ENAMETOOLONG;
	src.canon = buf_sv(&e->src);
	dst.canon = buf_sv(&e->dst);
	switch (t->op) {
	case FILES_TREE_REMOVE:
		add(e, S_ISDIR(v->mode) ? FS_REMOVE_DIR : FS_REMOVE_FILE, src);
		return 0;
	case FILES_TREE_CHMOD:
		add(e, FS_SET_PERMISSIONS, src);
		return 0;
	case FILES_TREE_MOVE:
		add(e, FS_READ_CONTENT, src);
		/* Moving a name is no opening: devices and the like may be moved. */
		e->ask[0].ref = true;
		add(e, FS_RENAME, src);
		if (v->dst != DST_NEW)
			add(e, v->dst == DST_DIR ? FS_REMOVE_DIR : FS_REMOVE_FILE, dst);
		add(e, FS_RENAME, dst);
		return 0;
	case FILES_TREE_COPY:
		return copy_effects(t, v, e, src, dst);
	}
	return 0;
}

/* --- tickets --- */

uint64_t tree_ticket(const struct tree *t, uint32_t k)
{
	uint32_t lo = 0, hi = t->batches_n;

	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (t->batches[mid].first <= k)
			lo = mid;
		else
			hi = mid;
	}
	return t->batches[lo].ticket + (k - t->batches[lo].first);
}

static bool same_batch(const struct tree *t, uint32_t a, uint32_t b)
{
	return tree_ticket(t, b) - tree_ticket(t, a) == b - a;
}

void tree_abandon(struct tree *t)
{
	uint32_t from = 0, n = 0;

	/* Runs of effects with consecutive tickets go as one frame. */
	for (uint32_t i = 0; i < t->n && t->batches_n != 0; i++) {
		struct node *v = &t->v[i];

		if (v->settled || v->eff_n == 0 || v->eff + v->eff_n > t->effs)
			continue;
		v->settled = true;
		if (n != 0 && from + n == v->eff && n < 60000 && same_batch(t, from, v->eff)) {
			n += v->eff_n;
			continue;
		}
		if (n != 0)
			srv_abandon(t->q->srv, tree_ticket(t, from), (uint16_t)n);
		from = v->eff;
		n = v->eff_n;
	}
	if (n != 0)
		srv_abandon(t->q->srv, tree_ticket(t, from), (uint16_t)n);
}

static bool add_batch(struct tree *t, struct batch b)
{
	if (t->batches_n == t->batches_cap) {
		uint32_t cap = t->batches_cap != 0 ? t->batches_cap * 2 : 16;
		struct batch *p = reallocarray(t->batches, cap, sizeof(*p));

		if (p == NULL)
			return false;
		t->batches = p;
		t->batches_cap = cap;
		if (!tree_charge(t))
			return false;
	}
	t->batches[t->batches_n++] = b;
	t->effs += b.n;
	return true;
}

/* --- asking --- */

static uint16_t count_effects(const struct tree *t)
{
	uint32_t n = 0;

	for (uint32_t i = t->ask_first; i < t->ask_end; i++)
		n += t->v[i].eff_n;
	return (uint16_t)n; /* at most MON_BATCH_MAX */
}

static void refused(struct tree *t, const struct verdict *v)
{
	uint32_t k = v->index;

	for (uint32_t i = t->ask_first; i < t->ask_end; i++) {
		if (k < t->v[i].eff_n) {
			tree_denied(t, i, v->text);
			return;
		}
		k -= t->v[i].eff_n;
	}
}

/* The floor beneath a permitted batch. false: the request has ended. */
static bool pass_floor(struct tree *t, const struct verdict *v)
{
	for (uint32_t i = t->ask_first; i < t->ask_end; i++) {
		struct effects e;
		const char *reason = NULL;
		size_t k = 0;

		if (t->v[i].eff_n == 0)
			continue;
		if (effects_of(t, i, &e) != 0 || e.n != t->v[i].eff_n) {
			/* A link's way changed between question and answer. */
			effects_fini(&e);
			srv_abandon(t->q->srv, v->ticket, count_effects(t));
			tree_fail(t, ESTALE);
			return false;
		}
		for (; k < e.n; k++) {
			reason = reach_floor(&t->q->srv->reach, &e.ask[k]);
			if (reason != NULL)
				break;
		}
		if (reason != NULL) {
			srv_floor(t->q->srv, v->ticket, count_effects(t), e.ask[k].op,
			    e.ask[k].canon, reason);
			tree_floored(t, i, e.ask[k].canon, reason);
			effects_fini(&e);
			return false;
		}
		effects_fini(&e);
	}
	return true;
}

static void on_decided(void *ctx, const struct verdict *v)
{
	struct req *q = ctx;
	struct tree *t = q->state;
	uint16_t n = count_effects(t);

	t->asking = false;
	if (q->c->dead) {
		if (v->permit)
			srv_abandon(q->srv, v->ticket, n);
		tree_abandon(t);
		req_end(q);
		return;
	}
	if (!v->permit) {
		refused(t, v);
		return;
	}
	if (!pass_floor(t, v))
		return;
	if (!add_batch(t, (struct batch){ v->ticket, t->effs, n })) {
		srv_abandon(q->srv, v->ticket, n);
		tree_fail(t, ENOMEM);
		return;
	}
	req_ready(q);
}

/* A move needs everything below decided: what could not be planned stops its operand. */
static void stop_unplanned_moves(struct tree *t)
{
	if (t->op != FILES_TREE_MOVE)
		return;
	for (uint32_t i = t->operands; i < t->n; i++) {
		struct node *root = &t->v[t->v[i].operand];

		if (t->v[i].err != 0 && !t->v[i].skip && root->err == 0) {
			root->err = t->v[i].err;
			root->why = t->v[i].why;
		}
	}
	for (uint32_t i = t->operands; i < t->n; i++) {
		if (t->v[t->v[i].operand].err != 0 || t->v[t->v[i].operand].skip)
			t->v[i].skip = true;
	}
}

void tree_decide_slice(struct tree *t)
{
	struct question k;
	uint32_t effs = t->effs;

	if (t->at == 0)
		stop_unplanned_moves(t);
	question_begin(&k, t->q->c->session);
	t->ask_first = t->at;
	for (; t->at < t->n; t->at++) {
		struct node *v = &t->v[t->at];
		struct effects e;
		struct question before = k;
		int r = effects_of(t, t->at, &e);
		bool fit = true;

		if (r != 0) {
			v->err = r;
			e.n = 0;
			if (t->op == FILES_TREE_MOVE)
				t->v[v->operand].err = r;
		}
		for (size_t j = 0; j < e.n && fit; j++)
			fit = question_add(t->q->srv, &k, e.ask[j].op, e.ask[j].canon);
		if (!fit) {
			/* The whole node goes into the next question. */
			k.n = before.n;
			k.body.n = before.body.n;
			effects_fini(&e);
			break;
		}
		v->eff = effs;
		v->eff_n = (uint8_t)e.n;
		effs += v->eff_n;
		effects_fini(&e);
	}
	t->ask_end = t->at;
	if (k.n == 0) {
		buf_fini(&k.body);
		t->phase = TREE_ACT;
		t->at = 0;
		return;
	}
	t->asking = true;
	req_unready(t->q);
	if (srv_ask(t->q->srv, &k, on_decided, t->q) != 0) {
		t->asking = false;
		tree_fail(t, ENOMEM);
	}
}
