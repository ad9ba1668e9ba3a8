/* FILES_LIST: the names of a folder, in byte order, after `enumerate` was permitted; with
 * stat_entries each entry's metadata is decided by itself, some dozens at a time, and an entry
 * whose metadata is refused comes without. See server.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "files/server.h"
#include "base/ban.h"

#define LIST_BYTES_MAX ((size_t)128 << 20)
#define WINDOW         64 /* metadata questions of one listing under way */
#define FRAME_BYTES    ((size_t)60 * 1024)
#define READ_SLICE     1024 /* entries read between looks at the other clients */

struct entry {
	struct listing *l;
	const char *name;
	uint8_t type;
	bool has_stat, settled;
	struct stat st;
};

struct listing {
	struct req *q;
	struct arena arena;
	size_t charged; /* of srv.plan_bytes */
	DIR *dir;
	bool complete; /* all names are read and sorted */
	struct entry **e;
	size_t n, cap;
	size_t asked, sent; /* entries asked about; entries put into frames */
	size_t open;        /* questions without a verdict */
};

static void drop_listing(struct req *q)
{
	struct listing *l = q->state;

	q->srv->plan_bytes -= l->charged;
	if (l->dir != NULL)
		(void)closedir(l->dir); /* only read from */
	arena_free(&l->arena);
	free(l);
}

static void end_when_quiet(struct req *q)
{
	struct listing *l = q->state;

	req_unready(q);
	if (l->open == 0)
		req_end(q);
}

static bool charge(struct listing *l)
{
	struct srv *s = l->q->srv;
	size_t more = l->arena.total - l->charged;

	if (more > FILES_PLAN_BYTES_MAX - s->plan_bytes)
		return false;
	s->plan_bytes += more;
	l->charged += more;
	return true;
}

static int by_name(const void *a, const void *b)
{
	const struct entry *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

/* 1: one more; 0: no more; -1: errno. */
static int read_entry(struct listing *l)
{
	struct dirent *d;
	struct entry *e;

	do {
		errno = 0;
		d = readdir(l->dir);
		if (d == NULL)
			return errno != 0 ? -1 : 0;
	} while (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0);
	if (l->n == l->cap) {
		size_t cap = l->cap != 0 ? l->cap * 2 : 64;
		struct entry **p = arena_grow(&l->arena, l->e, l->n, cap, sizeof(struct entry *));

		if (p == NULL)
			goto nomem;
		l->e = p;
		l->cap = cap;
	}
	e = ARENA_NEW(&l->arena, struct entry);
	if (e == NULL)
		goto nomem;
	e->l = l;
	e->type = d->d_type;
	e->name = arena_dup(&l->arena, sv_c(d->d_name)).p;
	if (e->name == NULL || l->n >= FILES_TREE_ENTRIES)
		goto nomem;
	l->e[l->n++] = e;
	return 1;
nomem:
	errno = ENOMEM;
	return -1;
}

/* --- metadata of the entries --- */

static bool child_path(const struct req *q, const char *name, struct buf *out)
{
	buf_put_sv(out, buf_sv(&q->w[0].canon));
	if (out->n != 1)
		buf_put_byte(out, '/');
	buf_put_c(out, name);
	return buf_ok(out) && sv_is_utf8(buf_sv(out));
}

static void on_entry(void *ctx, const struct verdict *v)
{
	struct entry *e = ctx;
	struct listing *l = e->l;
	struct req *q = l->q;
	AUTO_BUF path = buf_with(FILES_PATH_MAX - 1);
	const char *reason = NULL;

	l->open--;
	e->settled = true;
	if (q->c->dead) {
		if (v->permit)
			srv_abandon(q->srv, v->ticket, 1);
		end_when_quiet(q);
		return;
	}
	if (v->permit && child_path(q, e->name, &path)) {
		bool there = fstatat(q->w[0].obj, e->name, &e->st, AT_SYMLINK_NOFOLLOW) == 0;
		struct reach_ask a = {
			.op = FS_READ_METADATA, .canon = buf_sv(&path), .exists = there
		};

		if (there) {
			a.dev = e->st.st_dev;
			a.ino = e->st.st_ino;
			a.mode = e->st.st_mode;
			a.rdev = e->st.st_rdev;
		}
		a.chain = q->w[0].prot;
		reason = reach_floor(&q->srv->reach, &a);
		if (reason != NULL)
			srv_floor(q->srv, v->ticket, 1, FS_READ_METADATA, a.canon, reason);
		else
			srv_done(q->srv, v->ticket, there ? FS_COMPLETED : FS_FAILED);
		e->has_stat = there && reason == NULL;
	}
	req_ready(q);
}

static void ask_more(struct req *q, struct listing *l)
{
	while (l->asked < l->n && l->open < WINDOW) {
		struct entry *e = l->e[l->asked++];
		AUTO_BUF path = buf_with(FILES_PATH_MAX - 1);
		struct question k;

		if (!child_path(q, e->name, &path)) {
			e->settled = true; /* a name that policy cannot be told */
			continue;
		}
		question_begin(&k, q->c->session);
		if (!question_add(q->srv, &k, FS_READ_METADATA, buf_sv(&path)) ||
		    srv_ask(q->srv, &k, on_entry, e) != 0) {
			e->settled = true;
			continue;
		}
		l->open++;
	}
}

/* --- sending --- */

static void send_settled(struct req *q, struct listing *l)
{
	while (l->sent < l->n && l->e[l->sent]->settled && !client_is_full(q->c)) {
		AUTO_BUF body = buf_with(IPC_BODY_MAX);
		uint16_t n = 0;

		buf_put_u16(&body, 0); /* the count: set below */
		for (; l->sent < l->n && l->e[l->sent]->settled && body.n < FRAME_BYTES &&
		       n < UINT16_MAX;
		     l->sent++, n++) {
			const struct entry *e = l->e[l->sent];

			buf_put_byte(&body, e->type);
			buf_put_str(&body, sv_c(e->name));
			buf_put_byte(&body, e->has_stat);
			if (e->has_stat)
				put_stat(&body, &e->st);
		}
		if (!buf_ok(&body)) {
			q->c->peer.broken = true;
			return;
		}
		body.p[0] = (uint8_t)(n >> 8);
		body.p[1] = (uint8_t)n;
		client_send(q->c, FILES_ENTRIES, q->id, &body, NULL, 0);
	}
}

static void slice(struct req *q)
{
	struct listing *l = q->state;
	int r = 1;

	if (!l->complete) {
		for (int i = 0; i < READ_SLICE && r == 1; i++)
			r = read_entry(l);
		if (r < 0 || !charge(l)) {
			req_errno(q, r < 0 ? errno : ENOMEM);
			return;
		}
		if (r == 1)
			return;
		if (l->n != 0)
			qsort(l->e, l->n, sizeof(struct entry *), by_name);
		l->complete = true;
	}
	if (q->yes) {
		ask_more(q, l);
	} else {
		for (; l->asked < l->n; l->asked++)
			l->e[l->asked]->settled = true;
	}
	send_settled(q, l);
	if (l->sent == l->n) {
		req_ok(q, FS_COMPLETED, NULL, NULL, 0);
		return;
	}
	/* Woken by the next verdict, or by room in the client's socket. */
	req_unready(q);
}

static void act_list(struct req *q)
{
	const struct walk *w = &q->w[0];
	struct listing *l;
	AUTO_FD fd = -1;

	if (w->err != 0 || !S_ISDIR(w->st.st_mode)) {
		req_errno(q, w->err != 0 ? w->err : ENOTDIR);
		return;
	}
	fd = act_open_dir(w);
	if (fd < 0) {
		req_errno(q, errno);
		return;
	}
	l = calloc(1, sizeof(*l));
	if (l == NULL || (l->dir = fdopendir(fd)) == NULL) {
		free(l);
		req_errno(q, ENOMEM);
		return;
	}
	(void)fd_take(&fd); /* dir owns it */
	l->q = q;
	l->arena.limit = LIST_BYTES_MAX;
	q->state = l;
	q->drop = drop_listing;
	q->gone = end_when_quiet;
	q->slice = slice;
	req_ready(q);
	slice(q);
}

int op_list(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	uint8_t with_stat = rd_u8(&m->body);
	struct req *q;
	ptrdiff_t w;
	sv path;

	if (req_path(&m->body, &path, err) != 0)
		return -1;
	if (!rd_done(&m->body))
		return box_fail(err, BOX_EPARSE, 0, "a malformed LIST");
	if ((q = req_new(c, m, err)) == NULL)
		return -1;
	q->yes = with_stat != 0;
	q->act = act_list;
	w = req_walk(q, path, WALK_FOLLOW);
	if (w >= 0 && req_effect(q, FS_ENUMERATE, (size_t)w, false) == 0)
		req_decide(q);
	return 0;
}
