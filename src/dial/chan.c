/* chan: see chan.h. The peer may be hostile (box-dial's view of box-gateway): table, sizes and
 * descriptor counts are checked by ipc_recv and ipc_dispatch. */
#include "dial/chan.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/ban.h"

struct chan_frame {
	struct chan_frame *next;
	uint16_t type;
	uint32_t id;
	int fd;
	struct buf body;
};

struct chan {
	int fd;
	struct event *rd, *wr;
	const struct chan_ops *ops;
	void *arg;
	uint32_t state;
	struct ipc_msg msg;
	struct chan_frame *head, **tail;
	size_t queued;
	bool ended;
	bool *freed; /* set by chan_free while chan_on_read runs */
};

static void chan_end(struct chan *c, const struct box_err *err)
{
	struct box_err gone = { 0 };

	if (c->ended)
		return;
	c->ended = true;
	(void)event_del(c->rd);
	(void)event_del(c->wr);
	if (err->code == BOX_OK && c->ops->peer != NULL) {
		(void)box_fail(&gone, BOX_ESYS, 0, "%s is gone", c->ops->peer);
		err = &gone;
	}
	c->ops->on_end(c->arg, err);
}

static void chan_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct chan *c = arg;
	bool freed = false;

	(void)what;
	c->freed = &freed;
	for (int i = 0; i < CHAN_BURST; i++) {
		struct box_err err = { 0 };
		int r = ipc_recv(fd, &c->msg, &err);

		if (r < 0 && err.code == BOX_ESYS && (err.sys == EAGAIN || err.sys == EWOULDBLOCK))
			break;
		if (r == 1)
			r = ipc_dispatch(c->ops->table, c->state, c->arg, &c->msg, &err) < 0 ? -1
			                                                                     : 1;
		if (freed)
			return;
		if (r <= 0) {
			c->freed = NULL;
			chan_end(c, &err);
			return;
		}
		if (c->ended || !event_pending(c->rd, EV_READ, NULL))
			break;
	}
	c->freed = NULL;
}

static void frame_free(struct chan_frame *f)
{
	fd_drop(&f->fd);
	buf_fini(&f->body);
	free(f);
}

static void chan_on_write(evutil_socket_t fd, short what, void *arg)
{
	struct chan *c = arg;
	struct chan_frame *f;

	(void)what;
	while ((f = c->head) != NULL) {
		struct box_err err = { 0 };

		if (ipc_send(fd, f->type, f->id, &f->body, f->fd >= 0 ? &f->fd : NULL, f->fd >= 0,
		        &err) < 0) {
			if (err.sys == EAGAIN || err.sys == EWOULDBLOCK)
				return;
			chan_end(c, &err);
			return;
		}
		c->queued -= f->body.n + sizeof(*f);
		c->head = f->next;
		frame_free(f);
	}
	c->tail = &c->head;
	(void)event_del(c->wr);
}

struct chan *chan_new(struct event_base *base, int fd, const struct chan_ops *ops, void *arg,
    uint32_t state, struct box_err *err)
{
	AUTO_FD own = fd;
	struct chan *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		(void)box_nomem(err, "channel");
		return NULL;
	}
	c->fd = own;
	c->ops = ops;
	c->arg = arg;
	c->state = state;
	c->msg = (struct ipc_msg)IPC_MSG_INIT;
	c->msg.data = malloc(IPC_HDR + IPC_BODY_MAX); /* now, so that no later frame fails for it */
	c->tail = &c->head;
	c->rd = event_new(base, own, EV_READ | EV_PERSIST, chan_on_read, c);
	c->wr = event_new(base, own, EV_WRITE | EV_PERSIST, chan_on_write, c);
	if (fd_set_nonblock(own, true) < 0 || c->msg.data == NULL || c->rd == NULL ||
	    c->wr == NULL || event_add(c->rd, NULL) < 0) {
		(void)box_fail(err, BOX_ESYS, errno, "watch a channel");
		c->fd = -1;
		chan_free(c);
		return NULL;
	}
	(void)fd_take(&own);
	return c;
}

void chan_free(struct chan *c)
{
	struct chan_frame *f;

	if (c == NULL)
		return;
	if (c->freed != NULL)
		*c->freed = true;
	if (c->rd != NULL)
		event_free(c->rd);
	if (c->wr != NULL)
		event_free(c->wr);
	while ((f = c->head) != NULL) {
		c->head = f->next;
		frame_free(f);
	}
	ipc_msg_fini(&c->msg);
	fd_drop(&c->fd);
	free(c);
}

void chan_set_state(struct chan *c, uint32_t state)
{
	c->state = state;
}

void chan_pause(struct chan *c, bool paused)
{
	if (c->ended)
		return;
	if (paused)
		(void)event_del(c->rd);
	else
		(void)event_add(c->rd, NULL);
}

int chan_send(
    struct chan *c, uint16_t type, uint32_t id, const struct buf *body, int fd, struct box_err *err)
{
	struct chan_frame *f;
	struct box_err e = { 0 };

	if (c->ended)
		return box_fail(err, BOX_ESYS, EPIPE, "send on a closed channel");
	if (body != NULL && !buf_ok(body))
		return box_fail(err, BOX_ELIMIT, 0, "a frame is too large");
	if (c->head == NULL) {
		if (ipc_send(c->fd, type, id, body, fd >= 0 ? &fd : NULL, fd >= 0, &e) == 0)
			return 0;
		if (e.sys != EAGAIN && e.sys != EWOULDBLOCK) {
			if (err != NULL)
				*err = e;
			return -1;
		}
	}
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return box_nomem(err, "frame");
	f->fd = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	f->type = type;
	f->id = id;
	f->body = buf_with(IPC_BODY_MAX);
	if (body != NULL)
		buf_put(&f->body, body->p, body->n);
	if (!buf_ok(&f->body) || (fd >= 0 && f->fd < 0) ||
	    c->queued + f->body.n + sizeof(*f) > CHAN_QUEUE_MAX) {
		frame_free(f);
		return box_fail(err, BOX_ELIMIT, 0, "a channel's queue is full");
	}
	c->queued += f->body.n + sizeof(*f);
	*c->tail = f;
	c->tail = &f->next;
	(void)event_add(c->wr, NULL);
	return 0;
}
