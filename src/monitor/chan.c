/* Worker channels. See chan.h. Every frame is hostile until its row of the table has accepted
 * it. */
#include "monitor/chan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/ban.h"

struct out_frame {
	struct out_frame *next;
	uint16_t type;
	uint32_t id;
	struct buf body;
	int fds[IPC_FDS_MAX];
	size_t nfds;
};

struct chan {
	struct loop *loop;
	struct decider *decider;
	struct decide_owner owner;
	int fd;
	struct loop_watch *watch;
	const struct chan_ops *ops;
	void *ctx;
	uint32_t state;
	struct ipc_msg msg;
	struct out_frame *out, **out_last;
	size_t out_bytes;
	bool handling; /* msg is in use */
	bool ending;   /* on_end is due or done */
	bool ended;
	struct loop_timer *reaper;
	char why[256];
};

static void drop_frame(struct out_frame *f)
{
	for (size_t i = 0; i < f->nfds; i++)
		fd_drop(&f->fds[i]);
	buf_fini(&f->body);
	free(f);
}

static void chan_free(struct chan *c)
{
	loop_unwatch(c->loop, c->watch);
	if (c->reaper != NULL)
		loop_cancel(c->loop, c->reaper);
	while (c->out != NULL) {
		struct out_frame *f = c->out;

		c->out = f->next;
		drop_frame(f);
	}
	ipc_msg_fini(&c->msg);
	fd_drop(&c->fd);
	free(c);
}

/* Tell the owner, then free. Only from the timer: no handler of this channel is on the stack
 * then. */
static void finish(struct chan *c)
{
	if (!c->ended) {
		c->ended = true;
		loop_unwatch(c->loop, c->watch);
		c->watch = NULL;
		decide_owner_end(c->decider, &c->owner);
		c->ops->on_end(c->ctx, c->why[0] != '\0' ? c->why : NULL);
	}
	chan_free(c);
}

static void on_reap(void *arg)
{
	struct chan *c = arg;

	c->reaper = NULL; /* the loop frees a timer that ran */
	finish(c);
}

/* Break the channel from code that the owner called: the end comes with the next turn. */
static void break_later(struct chan *c, const char *why)
{
	if (c->ending)
		return;
	c->ending = true;
	for (size_t i = 0; i < sizeof(c->why) - 1 && why[i] != '\0'; i++)
		c->why[i] = why[i];
	c->reaper = loop_after(c->loop, 0, on_reap, c);
	if (c->reaper == NULL)
		abort(); /* no memory for a timer: nothing can be ended in order any more */
}

static void flush(struct chan *c)
{
	struct box_err err = { 0 };

	while (c->out != NULL && !c->ending) {
		struct out_frame *f = c->out;

		if (ipc_send(c->fd, f->type, f->id, &f->body, f->fds, f->nfds, &err) != 0) {
			if (err.sys == EAGAIN)
				return;
			break_later(c, "");
			return;
		}
		c->out = f->next;
		if (c->out == NULL)
			c->out_last = &c->out;
		c->out_bytes -= f->body.n + sizeof(*f);
		drop_frame(f);
	}
	if (c->out == NULL && !c->ending && loop_rewatch(c->loop, c->watch, EPOLLIN, &err) != 0)
		break_later(c, err.msg);
}

void chan_drain(struct chan *c)
{
	if (c->handling)
		return;
	c->handling = true;
	/* A bounded number of frames a turn, so that one busy peer does not starve the others. */
	for (int i = 0; i < 32 && !c->ending; i++) {
		struct box_err err = { 0 };
		int r = ipc_recv(c->fd, &c->msg, &err);

		if (r < 0 && err.sys == EAGAIN)
			break;
		if (r == 0 || (r < 0 && err.sys == ECONNRESET))
			break_later(c, "");
		else if (r < 0 || ipc_dispatch(c->ops->table, c->state, c->ctx, &c->msg, &err) != 0)
			break_later(c, err.msg);
	}
	c->handling = false;
}

static void on_ready(void *arg, uint32_t events)
{
	struct chan *c = arg;

	if ((events & EPOLLOUT) != 0)
		flush(c);
	chan_drain(c);
}

struct chan *chan_new(struct loop *loop, struct decider *decider, int fd,
    const struct chan_ops *ops, void *ctx, struct box_err *err)
{
	struct chan *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		fd_drop(&fd);
		(void)box_nomem(err, "a channel"); /* always -1 */
		return NULL;
	}
	*c = (struct chan){ .loop = loop,
		.decider = decider,
		.fd = fd,
		.ops = ops,
		.ctx = ctx,
		.state = 1,
		.msg = IPC_MSG_INIT };
	c->out_last = &c->out;
	if (fd_set_nonblock(fd, true) != 0) {
		(void)box_fail(err, BOX_ESYS, errno, "prepare a channel"); /* always -1 */
		chan_free(c);
		return NULL;
	}
	c->watch = loop_watch(loop, fd, EPOLLIN, on_ready, c, err);
	if (c->watch == NULL) {
		chan_free(c);
		return NULL;
	}
	return c;
}

void chan_end(struct chan *c)
{
	break_later(c, "");
}

void chan_set_state(struct chan *c, uint32_t state)
{
	c->state = state;
}

uint32_t chan_state(const struct chan *c)
{
	return c->state;
}

struct decide_owner *chan_owner(struct chan *c)
{
	return &c->owner;
}

struct decider *chan_decider(struct chan *c)
{
	return c->decider;
}

static void enqueue(
    struct chan *c, uint16_t type, uint32_t id, const struct buf *body, const int *fds, size_t nfds)
{
	struct out_frame *f = calloc(1, sizeof(*f));
	struct box_err err = { 0 };

	if (f == NULL || c->out_bytes > CHAN_QUEUE_MAX) {
		free(f);
		break_later(c, "it does not read its answers");
		return;
	}
	f->type = type;
	f->id = id;
	f->body = buf_with(IPC_BODY_MAX);
	if (body != NULL)
		buf_put_sv(&f->body, buf_sv(body));
	for (size_t i = 0; i < nfds && i < IPC_FDS_MAX; i++) {
		f->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
		if (f->fds[i] >= 0)
			f->nfds++;
	}
	if (!buf_ok(&f->body) || f->nfds != nfds) {
		drop_frame(f);
		break_later(c, "no memory or descriptors for its answers");
		return;
	}
	c->out_bytes += f->body.n + sizeof(*f);
	*c->out_last = f;
	c->out_last = &f->next;
	if (loop_rewatch(c->loop, c->watch, EPOLLIN | EPOLLOUT, &err) != 0)
		break_later(c, err.msg);
}

void chan_send(
    struct chan *c, uint16_t type, uint32_t id, const struct buf *body, const int *fds, size_t nfds)
{
	struct box_err err = { 0 };

	if (c->ending)
		return;
	if (c->out == NULL) {
		if (ipc_send(c->fd, type, id, body, fds, nfds, &err) == 0)
			return;
		if (err.sys != EAGAIN) {
			/* A peer that is gone is an ordinary end; a frame that does not fit is our
			 * fault and fatal to the peer. */
			break_later(c, err.code == BOX_ESYS ? "" : err.msg);
			return;
		}
	}
	enqueue(c, type, id, body, fds, nfds);
}

void chan_deny(struct chan *c, uint32_t id, size_t index, sv text)
{
	AUTO_BUF b = buf_with(IPC_BODY_MAX);

	buf_put_byte(&b, 0);
	buf_put_u16(&b, (uint16_t)index);
	buf_put_str(&b, text);
	chan_send(c, MON_VERDICT, id, &b, NULL, 0);
}

struct answer {
	struct chan *chan;
	uint32_t id;
};

static void on_decided(void *arg, const struct decision *d)
{
	struct answer *a = arg;

	if (d != NULL && !d->permit) {
		chan_deny(a->chan, a->id, d->index, d->text);
	} else if (d != NULL) {
		AUTO_BUF b = buf_with(64);

		buf_put_byte(&b, 1);
		buf_put_u64(&b, d->ticket);
		chan_send(a->chan, MON_VERDICT, a->id, &b, NULL, 0);
	}
	free(a);
}

int chan_decide(struct chan *c, uint32_t id, const struct ask *asks, size_t n, sv traceparent,
    struct box_err *err)
{
	struct answer *a = malloc(sizeof(*a));

	if (a == NULL)
		return box_nomem(err, "an answer");
	*a = (struct answer){ c, id };
	if (decide_batch(c->decider, &c->owner, asks, n, traceparent, on_decided, a, err) != 0) {
		free(a);
		return -1;
	}
	return 0;
}
