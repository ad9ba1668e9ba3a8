/* ipc: how our programs talk. A SOCK_SEQPACKET pair carries frames: a fixed header (length, type,
 * request id) and a bounded body, written with buf_put_* and read with rd_*. Descriptors travel
 * only on types whose rule says how many.
 *
 * The receiver of each pair has a request table (type, states in which it is legal, descriptors,
 * largest body, handler). A frame outside the table ends the sender. Every peer but the monitor is
 * hostile by assumption. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/rd.h"

/* One argument of a program is at most 128 KiB on Linux (MAX_ARG_STRLEN), and a command text must
 * fit with room to spare; the largest SO_SNDBUF of an unprivileged process (2 * net.core.wmem_max =
 * 425984 by default) is above it. */
#define IPC_BODY_MAX ((size_t)192 * 1024)
#define IPC_FDS_MAX  4
#define IPC_HDR      12 /* u32 body length, u16 type, u16 descriptor count, u32 request id */

/* One received frame. Owned by the receiver: ipc_msg_fini closes the descriptors that nobody
 * took. */
struct ipc_msg {
	uint16_t type;
	uint32_t id;
	struct rd body; /* borrows from data */
	int fds[IPC_FDS_MAX];
	size_t nfds;
	uint8_t *data; /* IPC_HDR + IPC_BODY_MAX bytes, allocated on first use and kept */
};

/* An empty message to receive into. */
#define IPC_MSG_INIT                                                                               \
	{                                                                                          \
		.fds = { -1, -1, -1, -1 }                                                          \
	}
void ipc_msg_fini(struct ipc_msg *m);
#define AUTO_IPC_MSG __attribute__((cleanup(ipc_msg_fini))) struct ipc_msg
/* Take descriptor i (0-based) out of the message; -1 when there is none. */
int ipc_msg_take_fd(struct ipc_msg *m, size_t i);

/* A connected pair, both ends close-on-exec, send buffers large enough for the largest frame. */
int ipc_pair(int out[2], struct box_err *err);
/* Prepare a connected socket that came from somewhere else (accept, inherited): buffer sizes. */
int ipc_prepare(int fd, struct box_err *err);

/* Send one frame. body may be NULL (empty). Blocks when the socket blocks; on a non-blocking socket
 * a full queue is BOX_ESYS with EAGAIN. A peer that is gone is BOX_ESYS with EPIPE or ECONNRESET
 * (never SIGPIPE). Descriptors stay the caller's. */
int ipc_send(int fd, uint16_t type, uint32_t id, const struct buf *body, const int *fds,
    size_t nfds, struct box_err *err);
/* Receive one frame into *m (whatever it held before is finished). 1: a frame; 0: the peer closed;
 * -1: error, with EAGAIN in err->sys on an empty non-blocking socket. A malformed frame (length
 * mismatch, too long, too many descriptors, truncated) is BOX_EDENIED. */
int ipc_recv(int fd, struct ipc_msg *m, struct box_err *err);

/* The same without ever waiting, whatever the mode of the socket: a hostile peer that holds a
 * duplicate of our end can clear O_NONBLOCK. EAGAIN in err->sys when it would wait. */
int ipc_send_nowait(int fd, uint16_t type, uint32_t id, const struct buf *body, const int *fds,
    size_t nfds, struct box_err *err);
int ipc_recv_nowait(int fd, struct ipc_msg *m, struct box_err *err);

/* One row of a request table. Rows end with type 0. */
struct ipc_rule {
	uint16_t type;
	const char *name;
	uint32_t states; /* bit mask of the states in which the frame is legal */
	uint8_t fds_min, fds_max;
	size_t body_max;
	/* 0, or -1 with err set: the peer is then ended. */
	int (*on)(void *ctx, struct ipc_msg *m, struct box_err *err);
};
/* Find the row, check state, descriptors and size, call the handler. A frame outside the table is
 * BOX_EDENIED, "frame <name> is not legal in this state" and the like. */
int ipc_dispatch(const struct ipc_rule *table, uint32_t state, void *ctx, struct ipc_msg *m,
    struct box_err *err);
