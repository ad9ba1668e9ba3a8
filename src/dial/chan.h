/* chan: an ipc channel on an event loop. Frames go out in order through a bounded queue, so that a
 * program of one thread never blocks on a peer; frames come in through a request table
 * (base/ipc.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/ipc.h"

struct event_base;
struct chan;

#define CHAN_QUEUE_MAX ((size_t)4 << 20) /* bytes waiting to be sent */
#define CHAN_BURST     64                /* frames handled before other events get their turn */

/* on_end is called at most once, when the channel is unusable. err->code is BOX_OK when the peer
 * closed and may do so; a peer that has a name here has to stay, and "<name> is gone" is an error.
 * It may free the channel. */
struct chan_ops {
	const struct ipc_rule *table;
	void (*on_end)(void *arg, const struct box_err *err);
	const char *peer; /* NULL: it may close */
};

/* Take over fd (made non-blocking; closed by chan_free, also when this fails). `state` is the
 * initial state for the table, a bit. NULL with err. */
struct chan *chan_new(struct event_base *base, int fd, const struct chan_ops *ops, void *arg,
    uint32_t state, struct box_err *err);
void chan_free(struct chan *c);
void chan_set_state(struct chan *c, uint32_t state);
/* Stop and go on reading frames (back-pressure on a peer that asks too much). */
void chan_pause(struct chan *c, bool paused);
/* Send now or queue. fd (or -1) travels with the frame and stays the caller's (it is duplicated
 * when queued). -1 when the queue is full or the channel is gone. */
int chan_send(struct chan *c, uint16_t type, uint32_t id, const struct buf *body, int fd,
    struct box_err *err);
