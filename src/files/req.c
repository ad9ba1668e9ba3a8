/* A request that is decided as a whole: its objects are held, its effects asked for in one
 * question, the floor laid beneath the permit, then the operation acts and answers. See
 * server.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "files/server.h"
#include "base/ban.h"

struct req *req_new(struct client *c, const struct ipc_msg *m, struct box_err *err)
{
	struct req *q = calloc(1, sizeof(*q));

	if (q == NULL) {
		(void)box_nomem(err, "a request");
		return NULL;
	}
	q->srv = c->srv;
	q->c = c;
	q->id = m->id;
	q->type = m->type;
	q->text = buf_with(IPC_BODY_MAX);
	c->cur = q;
	return q;
}

void req_end(struct req *q)
{
	struct client *c = q->c;

	if (q->permitted)
		srv_abandon(q->srv, q->ticket, q->asked);
	req_unready(q);
	if (q->drop != NULL)
		q->drop(q);
	for (size_t i = 0; i < q->nw; i++)
		walk_fini(&q->w[i]);
	free(q->w);
	free(q->e);
	buf_fini(&q->text);
	free(q);
	c->cur = NULL;
	/* A dead client is freed by the loop (sweep). */
	client_update(c);
}

int req_path(struct rd *b, sv *out, struct box_err *err)
{
	*out = rd_str(b, FILES_PATH_MAX - 1);
	if (b->bad || memchr(out->n != 0 ? out->p : "", 0, out->n) != NULL)
		return box_fail(err, BOX_EPARSE, 0, "a malformed path in a request");
	return 0;
}

ptrdiff_t req_walk(struct req *q, sv path, unsigned flags)
{
	struct walk *w;

	if (path.n == 0 || path.p[0] != '/') {
		req_errno(q, path.n == 0 ? ENOENT : EINVAL);
		return -1;
	}
	if (q->nw == q->capw) {
		size_t cap = q->capw != 0 ? q->capw * 2 : 2;

		w = reallocarray(q->w, cap, sizeof(*w));
		if (w == NULL) {
			req_errno(q, ENOMEM);
			return -1;
		}
		q->w = w;
		q->capw = cap;
	}
	w = &q->w[q->nw];
	if (walk_path(&q->srv->reach, path, flags, w) != 0) {
		req_errno_at(q, w->err, q->nw);
		return -1;
	}
	return (ptrdiff_t)q->nw++;
}

int req_effect(struct req *q, enum mon_fs_op op, size_t w, bool ref)
{
	if (q->ne == q->cape) {
		size_t cap = q->cape != 0 ? q->cape * 2 : 4;
		struct eff *e = reallocarray(q->e, cap, sizeof(*e));

		if (e == NULL) {
			req_errno(q, ENOMEM);
			return -1;
		}
		q->e = e;
		q->cape = cap;
	}
	q->e[q->ne++] = (struct eff){ .op = op, .ref = ref, .w = w };
	return 0;
}

/* /dev/null as itself: nothing leaves through it, so nothing is decided (design.md 10). */
static bool is_undecided(const struct req *q, const struct eff *e)
{
	const struct walk *w = &q->w[e->w];

	return sv_eq(buf_sv(&w->canon), SV("/dev/null")) && w->obj >= 0 &&
	       reach_is_safe_device(w->st.st_mode, w->st.st_rdev) &&
	       (e->op <= FS_EXEC || e->op == FS_WRITE_CONTENT);
}

static bool pass_floor(struct req *q)
{
	for (size_t i = 0; i < q->ne; i++) {
		const struct eff *e = &q->e[i];
		struct reach_ask a = walk_ask(&q->w[e->w], e->op, e->ref);
		const char *reason;

		a.anywhere = e->anywhere;
		reason = reach_floor(&q->srv->reach, &a);
		if (reason == NULL)
			continue;
		srv_floor(q->srv, q->ticket, q->asked, e->op, a.canon, reason);
		q->permitted = false;
		req_floored(q, e->w, a.canon, reason);
		return false;
	}
	return true;
}

static void on_verdict(void *ctx, const struct verdict *v)
{
	struct req *q = ctx;

	q->permitted = v->permit;
	q->ticket = v->ticket;
	if (q->c->dead) {
		req_end(q);
		return;
	}
	if (!v->permit) {
		/* The index counts decided effects; find the object it was about. */
		size_t k = v->index, w = 0;

		for (size_t i = 0; i < q->ne; i++) {
			if (is_undecided(q, &q->e[i]))
				continue;
			if (k-- == 0) {
				w = q->e[i].w;
				break;
			}
		}
		req_denied(q, w, v->text);
		return;
	}
	if (pass_floor(q))
		q->act(q);
}

void req_decide(struct req *q)
{
	struct question k;

	question_begin(&k, q->c->session);
	for (size_t i = 0; i < q->ne; i++) {
		if (is_undecided(q, &q->e[i]))
			continue;
		if (!question_add(q->srv, &k, q->e[i].op, buf_sv(&q->w[q->e[i].w].canon))) {
			buf_fini(&k.body);
			req_errno(q, E2BIG);
			return;
		}
	}
	q->asked = k.n;
	if (k.n == 0) {
		buf_fini(&k.body);
		if (pass_floor(q))
			q->act(q);
		return;
	}
	if (srv_ask(q->srv, &k, on_verdict, q) != 0)
		req_errno(q, ENOMEM);
}

/* --- answers --- */

void put_fail(struct buf *b, enum files_why why, int sys, size_t index, sv path, sv text)
{
	buf_put_byte(b, (uint8_t)why);
	buf_put_u32(b, (uint32_t)sys);
	buf_put_u16(b, (uint16_t)index);
	buf_put_str(b, path);
	buf_put_str(b, text);
}

static void put_time(struct buf *b, struct timespec t)
{
	buf_put_u64(b, (uint64_t)t.tv_sec);
	buf_put_u32(b, (uint32_t)t.tv_nsec);
}

void put_stat(struct buf *b, const struct stat *st)
{
	buf_put_u32(b, st->st_mode);
	buf_put_u64(b, (uint64_t)st->st_size);
	buf_put_u64(b, st->st_ino);
	buf_put_u64(b, st->st_dev);
	buf_put_u64(b, st->st_nlink);
	buf_put_u64(b, (uint64_t)st->st_blocks);
	buf_put_u64(b, st->st_rdev);
	buf_put_u32(b, st->st_uid);
	buf_put_u32(b, st->st_gid);
	buf_put_u32(b, (uint32_t)st->st_blksize);
	put_time(b, st->st_atim);
	put_time(b, st->st_mtim);
	put_time(b, st->st_ctim);
}

static void report(struct req *q, enum mon_fs_result result)
{
	if (!q->permitted)
		return;
	for (uint16_t i = 0; i < q->asked; i++)
		srv_done(q->srv, q->ticket + i, result);
	q->permitted = false;
}

void req_ok(struct req *q, enum mon_fs_result result, const struct buf *body, int *fds, size_t nfds)
{
	if (body != NULL && !buf_ok(body)) {
		for (size_t i = 0; i < nfds; i++)
			fd_drop(&fds[i]);
		req_errno(q, ENOMEM);
		return;
	}
	report(q, result);
	client_send(q->c, FILES_DONE, q->id, body, fds, nfds);
	req_end(q);
}

static void fail(struct req *q, enum files_why why, int sys, size_t index, sv path, sv text)
{
	AUTO_BUF b = buf_with(IPC_BODY_MAX);

	report(q, FS_FAILED);
	put_fail(&b, why, sys, index, path, text);
	client_send(q->c, FILES_FAIL, q->id, &b, NULL, 0);
	req_end(q);
}

void req_errno_at(struct req *q, int e, size_t index)
{
	fail(q, FILES_ERRNO, e, index, SV(""), sv_c(box_strerror(e)));
}

void req_errno(struct req *q, int e)
{
	req_errno_at(q, e, 0);
}

void req_changed(struct req *q, size_t index)
{
	fail(q, FILES_ERRNO, ESTALE, index, SV(""), SV(FILES_TEXT_CHANGED));
}

void req_denied(struct req *q, size_t index, sv text)
{
	fail(q, FILES_DENIED, EACCES, index, SV(""), text);
}

void req_floored(struct req *q, size_t index, sv canon, const char *reason)
{
	AUTO_BUF path = buf_with(FILES_PATH_MAX);
	AUTO_BUF text = buf_with(2 * FILES_PATH_MAX);

	reach_spell(&q->srv->reach, canon, &path);
	buf_putf(&text, SV_FMT ": %s", SV_ARG(buf_sv(&path)), reason);
	fail(q, FILES_FLOOR, EACCES, index, buf_sv(&path), buf_sv(&text));
}
