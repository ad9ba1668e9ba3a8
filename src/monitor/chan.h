/* chan: one worker channel as the monitor sees it: frames in through a request table, frames out
 * without ever blocking, and the decisions it waits for. A peer that sends what its table does not
 * allow, or does not read what it is sent, is ended and recorded. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/ipc.h"
#include "monitor/decide.h"
#include "monitor/loop.h"

#define CHAN_QUEUE_MAX ((size_t)4 << 20) /* bytes waiting for a slow peer */

struct chan;

struct chan_ops {
	const char *name;             /* "box-shell", for messages */
	const struct ipc_rule *table; /* handlers get the chan's ctx */
	/* The channel is over: the peer closed it (why NULL) or broke the rules. Called once; the
	 * chan is freed after it returns. */
	void (*on_end)(void *ctx, const char *why);
};

/* Takes fd, whatever happens. ctx is what handlers and on_end get. NULL with err. */
struct chan *chan_new(struct loop *loop, struct decider *decider, int fd,
    const struct chan_ops *ops, void *ctx, struct box_err *err);
/* End it from our side: on_end is called with why NULL. Safe inside a handler. */
void chan_end(struct chan *c);

/* Handle what has arrived already, now: an outcome that was sent before a question on another
 * channel is to be known when that is decided. */
void chan_drain(struct chan *c);
/* States select rows of the table; a chan starts in state 1. */
void chan_set_state(struct chan *c, uint32_t state);
uint32_t chan_state(const struct chan *c);
/* Queue or send one frame. The descriptors stay the caller's. A failure ends the channel (later,
 * not during the call). */
void chan_send(struct chan *c, uint16_t type, uint32_t id, const struct buf *body, const int *fds,
    size_t nfds);
/* MON_VERDICT for a denial: index and text. */
void chan_deny(struct chan *c, uint32_t id, size_t index, sv text);

/* Decide and answer with the plain MON_VERDICT of proto.h. 0, or -1 with err: the handler returns
 * it. */
int chan_decide(struct chan *c, uint32_t id, const struct ask *asks, size_t n, sv traceparent,
    struct box_err *err);
struct decide_owner *chan_owner(struct chan *c);
struct decider *chan_decider(struct chan *c);
