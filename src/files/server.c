/* The event loop of box-files. See server.h. Clients are hostile; the monitor is trusted for
 * form and meaning. */
#include "files/server.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ban.h"

#define QUESTION_BYTES ((size_t)120 * 1024)
#define READ_BURST     16 /* frames taken from one client before the next one's turn */
#define MON_QUEUE_MAX  4096

/* --- peers --- */

static void outframe_free(struct outframe *f)
{
	for (size_t i = 0; i < f->nfds; i++)
		fd_drop(&f->fds[i]);
	buf_fini(&f->body);
	free(f);
}

static void peer_clear(struct peer *p)
{
	while (p->head != NULL) {
		struct outframe *f = p->head;

		p->head = f->next;
		outframe_free(f);
	}
	p->tail = &p->head;
}

static void peer_fini(struct peer *p)
{
	peer_clear(p);
	if (p->rd != NULL)
		event_free(p->rd);
	if (p->wr != NULL)
		event_free(p->wr);
	p->rd = p->wr = NULL;
	fd_drop(&p->fd);
}

/* Send what waits. false: the other end is gone. */
static bool peer_flush(struct peer *p)
{
	while (p->head != NULL) {
		struct outframe *f = p->head;
		struct box_err err;

		if (ipc_send_nowait(p->fd, f->type, f->id, &f->body, f->fds, f->nfds, &err) != 0) {
			if (err.sys == EAGAIN)
				return event_add(p->wr, NULL) == 0;
			return false;
		}
		p->head = f->next;
		if (p->head == NULL)
			p->tail = &p->head;
		outframe_free(f);
	}
	return true;
}

/* Send or queue; fds are taken over. false: no memory, or the other end is gone. */
static bool peer_send(
    struct peer *p, uint16_t type, uint32_t id, const struct buf *body, int *fds, size_t nfds)
{
	struct outframe *f;
	struct box_err err = { 0 };
	bool sent = false;

	if (!p->broken && p->head == NULL) {
		sent = ipc_send_nowait(p->fd, type, id, body, fds, nfds, &err) == 0;
		if (!sent && err.sys != EAGAIN)
			p->broken = true;
	}
	if (sent || p->broken) {
		for (size_t i = 0; i < nfds; i++)
			fd_drop(&fds[i]);
		return sent;
	}
	f = calloc(1, sizeof(*f));
	if (f == NULL) {
		for (size_t i = 0; i < nfds; i++)
			fd_drop(&fds[i]);
		p->broken = true;
		return false;
	}
	f->type = type;
	f->id = id;
	f->body = buf_with(IPC_BODY_MAX);
	if (body != NULL)
		buf_put_sv(&f->body, buf_sv(body));
	for (size_t i = 0; i < nfds; i++)
		f->fds[f->nfds++] = fd_take(&fds[i]);
	*p->tail = f;
	p->tail = &f->next;
	if (!buf_ok(&f->body) || event_add(p->wr, NULL) != 0)
		p->broken = true;
	return !p->broken;
}

/* --- questions --- */

void question_begin(struct question *k, uint32_t session)
{
	*k = (struct question){ .body = buf_with(IPC_BODY_MAX) };
	buf_put_u32(&k->body, session);
	buf_put_u16(&k->body, 0); /* the count: set when it is sent */
}

bool question_add(struct srv *s, struct question *k, enum mon_fs_op op, sv canon)
{
	AUTO_BUF path = buf_with(FILES_PATH_MAX);

	if (k->n == MON_BATCH_MAX || k->body.n + 5 + canon.n > QUESTION_BYTES)
		return false;
	reach_spell(&s->reach, canon, &path);
	k->body.bad = k->body.bad || !buf_ok(&path);
	buf_put_byte(&k->body, (uint8_t)op);
	buf_put_str(&k->body, buf_sv(&path));
	k->n++;
	return true;
}

static struct pending *free_slot(struct srv *s, uint32_t *id)
{
	struct pending *p;
	size_t n = s->pend_n;

	for (size_t i = 0; i < n; i++) {
		if (s->pend[i].fn == NULL) {
			*id = (uint32_t)s->pend[i].gen << 16 | (uint32_t)i;
			return &s->pend[i];
		}
	}
	if (n >= UINT16_MAX || (p = reallocarray(s->pend, n + 64, sizeof(*p))) == NULL)
		return NULL;
	memset(p + n, 0, 64 * sizeof(*p));
	s->pend = p;
	s->pend_n = n + 64;
	*id = (uint32_t)n;
	return &s->pend[n];
}

int srv_ask(struct srv *s, struct question *k, verdict_fn fn, void *ctx)
{
	struct pending *p;
	uint32_t id;

	if (!buf_ok(&k->body) || (p = free_slot(s, &id)) == NULL) {
		buf_fini(&k->body);
		return -1;
	}
	k->body.p[4] = (uint8_t)(k->n >> 8);
	k->body.p[5] = (uint8_t)k->n;
	if (!peer_send(&s->mon, MON_ASK_FS, id, &k->body, NULL, 0)) {
		buf_fini(&k->body);
		return -1; /* the loop ends: the monitor is gone */
	}
	buf_fini(&k->body);
	*p = (struct pending){ fn, ctx, p->gen, k->n };
	return 0;
}

static int on_verdict(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct srv *s = ctx;
	size_t slot = m->id & 0xffff;
	struct verdict v = { .permit = rd_u8(&m->body) == 1 };
	struct pending p;

	if (v.permit) {
		v.ticket = rd_u64(&m->body);
	} else {
		v.index = rd_u16(&m->body);
		v.text = rd_str(&m->body, MON_REASON_MAX);
	}
	if (!rd_done(&m->body) || slot >= s->pend_n || s->pend[slot].fn == NULL ||
	    s->pend[slot].gen != m->id >> 16 || (!v.permit && v.index >= s->pend[slot].n))
		return box_fail(err, BOX_EPARSE, 0, "a verdict that answers nothing");
	p = s->pend[slot];
	s->pend[slot].fn = NULL;
	s->pend[slot].gen++;
	p.fn(p.ctx, &v);
	return 0;
}

void srv_done(struct srv *s, uint64_t ticket, enum mon_fs_result result)
{
	AUTO_BUF b = buf_with(16);

	buf_put_u64(&b, ticket);
	buf_put_byte(&b, (uint8_t)result);
	(void)peer_send(&s->mon, MON_DONE_FS, 0, &b, NULL, 0); /* a broken monitor ends the loop */
}

void srv_abandon(struct srv *s, uint64_t ticket, uint16_t n)
{
	AUTO_BUF b = buf_with(16);

	if (n == 0)
		return;
	buf_put_u64(&b, ticket);
	buf_put_u16(&b, n);
	(void)peer_send(&s->mon, MON_ABANDON, 0, &b, NULL, 0); /* as above */
}

void srv_floor(
    struct srv *s, uint64_t ticket, uint16_t n, enum mon_fs_op op, sv canon, const char *reason)
{
	AUTO_BUF b = buf_with(FILES_PATH_MAX * 2);
	AUTO_BUF path = buf_with(FILES_PATH_MAX);

	reach_spell(&s->reach, canon, &path);
	buf_put_u64(&b, ticket);
	buf_put_u16(&b, n);
	buf_put_byte(&b, (uint8_t)op);
	buf_put_str(&b, buf_sv(&path));
	buf_put_str(&b, sv_c(reason));
	(void)peer_send(&s->mon, MON_FLOOR, 0, &b, NULL, 0); /* as above */
}

/* --- clients --- */

static void client_free(struct client *c)
{
	*c->pprev = c->next;
	if (c->next != NULL)
		c->next->pprev = c->pprev;
	c->srv->clients_n--;
	peer_fini(&c->peer);
	free(c);
}

/* End a client. A request that waits for the monitor keeps the struct until the verdict came. */
static void client_end(struct client *c)
{
	struct req *q = c->cur;

	if (!c->dead) {
		c->dead = true;
		c->peer.broken = true;
		peer_fini(&c->peer);
		c->peer.tail = &c->peer.head;
		if (q != NULL && q->gone != NULL)
			q->gone(q);
	}
	if (c->cur == NULL)
		client_free(c);
}

void client_send(
    struct client *c, uint16_t type, uint32_t id, const struct buf *body, int *fds, size_t nfds)
{
	(void)peer_send(&c->peer, type, id, body, fds, nfds); /* `broken` is seen by the loop */
}

bool client_is_full(const struct client *c)
{
	return c->peer.head != NULL;
}

#define BODY_PATH  (FILES_PATH_MAX + 64)
#define BODY_PATHS (2 * FILES_PATH_MAX + 64)
#define IDLE       1u
#define ADDING     2u

#define CLIENT_OP(fn)                                                                              \
	static int do_##fn(void *ctx, struct ipc_msg *m, struct box_err *err)                      \
	{                                                                                          \
		return op_##fn(ctx, m, err);                                                       \
	}
CLIENT_OP(open)
CLIENT_OP(stat)
CLIENT_OP(access)
CLIENT_OP(list)
CLIENT_OP(readlink)
CLIENT_OP(realpath)
CLIENT_OP(chdir)
CLIENT_OP(mkdir)
CLIENT_OP(chmod)
CLIENT_OP(utimes)
CLIENT_OP(unlink)
CLIENT_OP(rmdir)
CLIENT_OP(rename)
CLIENT_OP(symlink)
CLIENT_OP(link)
CLIENT_OP(mktemp)
CLIENT_OP(locate)
CLIENT_OP(tree_begin)
CLIENT_OP(tree_add)
CLIENT_OP(tree_go)

/* What a client may say. No frame of a client carries descriptors. */
static const struct ipc_rule client_rules[] = {
	{ FILES_OPEN, "OPEN", IDLE, 0, 0, IPC_BODY_MAX, do_open },
	{ FILES_STAT, "STAT", IDLE, 0, 0, BODY_PATH, do_stat },
	{ FILES_ACCESS, "ACCESS", IDLE, 0, 0, BODY_PATH, do_access },
	{ FILES_LIST, "LIST", IDLE, 0, 0, BODY_PATH, do_list },
	{ FILES_READLINK, "READLINK", IDLE, 0, 0, BODY_PATH, do_readlink },
	{ FILES_REALPATH, "REALPATH", IDLE, 0, 0, BODY_PATH, do_realpath },
	{ FILES_CHDIR, "CHDIR", IDLE, 0, 0, BODY_PATH, do_chdir },
	{ FILES_MKDIR, "MKDIR", IDLE, 0, 0, BODY_PATH, do_mkdir },
	{ FILES_CHMOD, "CHMOD", IDLE, 0, 0, BODY_PATH, do_chmod },
	{ FILES_UTIMES, "UTIMES", IDLE, 0, 0, BODY_PATH, do_utimes },
	{ FILES_UNLINK, "UNLINK", IDLE, 0, 0, BODY_PATH, do_unlink },
	{ FILES_RMDIR, "RMDIR", IDLE, 0, 0, BODY_PATH, do_rmdir },
	{ FILES_RENAME, "RENAME", IDLE, 0, 0, BODY_PATHS, do_rename },
	{ FILES_SYMLINK, "SYMLINK", IDLE, 0, 0, BODY_PATHS, do_symlink },
	{ FILES_LINK, "LINK", IDLE, 0, 0, BODY_PATHS, do_link },
	{ FILES_MKTEMP, "MKTEMP", IDLE, 0, 0, BODY_PATH, do_mktemp },
	{ FILES_LOCATE, "LOCATE", IDLE, 0, 0, IPC_BODY_MAX, do_locate },
	{ FILES_TREE_BEGIN, "TREE_BEGIN", IDLE, 0, 0, BODY_PATH, do_tree_begin },
	{ FILES_TREE_ADD, "TREE_ADD", ADDING, 0, 0, IPC_BODY_MAX, do_tree_add },
	{ FILES_TREE_GO, "TREE_GO", ADDING, 0, 0, 0, do_tree_go },
	{ 0 },
};

/* Is a request under way that takes no more frames? */
static bool is_busy(const struct client *c)
{
	return c->cur != NULL && c->cur->type != FILES_TREE_BEGIN;
}

/* Read this client when it may ask and everything for it went out; the monitor's queue bounds
 * all of them. */
void client_update(struct client *c)
{
	bool want = !c->dead && !is_busy(c) && c->peer.head == NULL;

	if (c->dead)
		return;
	if ((want ? event_add(c->peer.rd, NULL) : event_del(c->peer.rd)) != 0)
		c->peer.broken = true;
}

static void on_client(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;
	struct srv *s = c->srv;

	for (int i = 0; i < READ_BURST && !c->dead && !is_busy(c) && c->peer.head == NULL; i++) {
		struct box_err err = { 0 };
		int got = ipc_recv_nowait(fd, &s->msg, &err);

		if (got < 0 && err.sys == EAGAIN)
			break;
		if (got <= 0 ||
		    ipc_dispatch(client_rules, c->cur != NULL ? ADDING : IDLE, c, &s->msg, &err) !=
		        0 ||
		    c->peer.broken) {
			client_end(c);
			return;
		}
	}
	(void)what; /* only EV_READ is watched here */
	client_update(c);
}

static void on_client_write(evutil_socket_t fd, short what, void *arg)
{
	struct client *c = arg;

	(void)fd; /* peer_flush knows it */
	(void)what;
	if (!peer_flush(&c->peer)) {
		client_end(c);
		return;
	}
	if (c->cur != NULL && c->cur->slice != NULL && c->peer.head == NULL)
		req_ready(c->cur);
	client_update(c);
}

bool client_hung_up(struct client *c)
{
	struct pollfd p = { .fd = c->peer.fd, .events = POLLRDHUP };

	/* Not EV_CLOSED: unread frames of ours make it an error (ECONNRESET), which libevent
	 * reports as something else. */
	if (poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
		c->peer.broken = true; /* the loop ends it (sweep) */
	return c->peer.broken;
}

static int client_new(struct srv *s, int fd, uint32_t session)
{
	struct client *c = calloc(1, sizeof(*c));
	struct box_err err;

	if (c == NULL || s->clients_n >= FILES_CLIENTS_MAX || ipc_prepare(fd, &err) != 0) {
		free(c);
		fd_drop(&fd);
		return -1;
	}
	c->srv = s;
	c->session = session;
	c->peer.fd = fd;
	c->peer.tail = &c->peer.head;
	c->next = s->clients;
	c->pprev = &s->clients;
	if (c->next != NULL)
		c->next->pprev = &c->next;
	s->clients = c;
	s->clients_n++;
	c->peer.rd = event_new(s->base, fd, EV_READ | EV_PERSIST, on_client, c);
	c->peer.wr = event_new(s->base, fd, EV_WRITE, on_client_write, c);
	if (c->peer.rd == NULL || c->peer.wr == NULL || event_add(c->peer.rd, NULL) != 0) {
		client_free(c);
		return -1;
	}
	return 0;
}

/* --- slices --- */

static void arm_tick(struct srv *s)
{
	const struct timeval now = { 0, 0 };

	if (s->ready != NULL)
		event_add(s->tick, &now);
}

void req_ready(struct req *q)
{
	struct req **at = &q->srv->ready;

	if (q->ready)
		return;
	q->ready = true;
	q->next_ready = NULL;
	while (*at != NULL)
		at = &(*at)->next_ready;
	*at = q;
	arm_tick(q->srv);
}

void req_unready(struct req *q)
{
	struct req **at = &q->srv->ready;

	while (*at != NULL && *at != q)
		at = &(*at)->next_ready;
	if (*at == q)
		*at = q->next_ready;
	q->ready = false;
}

/* One slice of the first request in line; it goes to the end of the line. */
static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct srv *s = arg;
	struct req *q = s->ready;

	(void)fd;
	(void)what;
	/* A monitor that does not keep up gets no more outcomes for now; on_mon_write goes on. */
	if (q == NULL || s->mon.head != NULL)
		return;
	req_unready(q);
	req_ready(q);
	if (!client_hung_up(q->c))
		q->slice(q);
	arm_tick(s);
}

/* --- the monitor --- */

static int on_new_client(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct srv *s = ctx;
	uint32_t session = rd_u32(&m->body);

	if (!rd_done(&m->body))
		return box_fail(err, BOX_EPARSE, 0, "a malformed MON_CLIENT");
	(void)client_new(
	    s, ipc_msg_take_fd(m, 0), session); /* that client then sees its channel closed */
	return 0;
}

static int on_stop(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct srv *s = ctx;

	(void)m;
	(void)err;
	s->stop = true;
	return 0;
}

static const struct ipc_rule mon_rules[] = {
	{ MON_CLIENT, "CLIENT", 1, 1, 1, 4, on_new_client },
	{ MON_VERDICT, "VERDICT", 1, 0, 0, MON_REASON_MAX + 16, on_verdict },
	{ MON_STOP, "STOP", 1, 0, 0, 0, on_stop },
	{ 0 },
};

/* Clients whose channel broke while something was sent to them. */
static void sweep(struct srv *s)
{
	for (struct client *c = s->clients, *next; c != NULL; c = next) {
		next = c->next;
		if (c->peer.broken && !c->dead)
			client_end(c);
		else if (c->dead && c->cur == NULL)
			client_free(c);
	}
}

static void on_mon(evutil_socket_t fd, short what, void *arg)
{
	struct srv *s = arg;

	(void)what;
	while (!s->stop) {
		int got = ipc_recv_nowait(fd, &s->msg, &s->err);

		if (got < 0 && s->err.sys == EAGAIN)
			return;
		if (got == 0 || (got < 0 && s->err.sys == ECONNRESET)) {
			s->stop = true; /* the box ended */
			return;
		}
		if (got < 0 || ipc_dispatch(mon_rules, 1, s, &s->msg, &s->err) != 0) {
			s->mon.broken = true;
			return;
		}
	}
}

static void on_mon_write(evutil_socket_t fd, short what, void *arg)
{
	struct srv *s = arg;

	(void)fd;
	(void)what;
	if (!peer_flush(&s->mon))
		s->mon.broken = true;
	if (s->mon.head == NULL)
		arm_tick(s);
}

int srv_start(struct srv *s, int fd, struct box_err *err)
{
	AUTO_BUF hello = buf_with(64);
	int tmp;

	*s = (struct srv){ .mon = { .fd = fd }, .msg = IPC_MSG_INIT };
	s->mon.tail = &s->mon.head;
	s->reach.root_fd = s->reach.tmp_fd = s->reach.host_tmp_fd = s->reach.proc_fd = -1;
	buf_put_u32(&hello, MON_VERSION);
	buf_put_str(&hello, SV("box-files"));
	if (ipc_prepare(fd, err) != 0 || ipc_send(fd, MON_HELLO, 0, &hello, NULL, 0, err) != 0)
		return box_wrap(err, "greet the monitor");
	switch (ipc_recv(fd, &s->msg, err)) {
	case 1:
		break;
	case 0:
		return box_fail(err, BOX_ESYS, 0, "the monitor closed before START");
	default:
		return -1;
	}
	if (s->msg.type != MON_START || s->msg.nfds != 1)
		return box_fail(err, BOX_EPARSE, 0, "the monitor's first frame is not START");
	tmp = ipc_msg_take_fd(&s->msg, 0);
	return reach_init(&s->reach, &s->msg.body, tmp, err);
}

int srv_open(struct srv *s, struct box_err *err)
{
	s->base = event_base_new();
	if (s->base == NULL)
		return box_nomem(err, "the event loop");
	s->mon.rd = event_new(s->base, s->mon.fd, EV_READ | EV_PERSIST, on_mon, s);
	s->mon.wr = event_new(s->base, s->mon.fd, EV_WRITE, on_mon_write, s);
	s->tick = evtimer_new(s->base, on_tick, s);
	if (s->mon.rd == NULL || s->mon.wr == NULL || s->tick == NULL ||
	    event_add(s->mon.rd, NULL) != 0)
		return box_nomem(err, "the event loop");
	return 0;
}

int srv_turn(struct srv *s, bool wait, struct box_err *err)
{
	if (event_base_loop(s->base, EVLOOP_ONCE | (wait ? 0 : EVLOOP_NONBLOCK)) < 0)
		return box_fail(err, BOX_ESYS, errno, "wait for events");
	sweep(s);
	return s->stop || s->mon.broken;
}

int srv_run(struct srv *s, struct box_err *err)
{
	int r;

	if (srv_open(s, err) != 0)
		return -1;
	while ((r = srv_turn(s, true, err)) == 0)
		continue;
	if (r > 0 && s->mon.broken && s->err.code != BOX_OK && s->err.sys != EAGAIN) {
		if (err != NULL)
			*err = s->err;
		return -1;
	}
	return r < 0 ? -1 : 0;
}

void srv_fini(struct srv *s)
{
	for (struct client *c = s->clients, *next; c != NULL; c = next) {
		next = c->next;
		if (c->cur != NULL) {
			c->dead = true;
			c->cur->permitted = false; /* nobody is left to hear of it */
			req_end(c->cur);
		}
		client_free(c);
	}
	if (s->tick != NULL)
		event_free(s->tick);
	peer_fini(&s->mon);
	if (s->base != NULL)
		event_base_free(s->base);
	ipc_msg_fini(&s->msg);
	free(s->pend);
	reach_fini(&s->reach);
}
