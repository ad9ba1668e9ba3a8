/* Frames over SOCK_SEQPACKET. See ipc.h. The bytes received are hostile. */
#include "base/ipc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ban.h"

static void drop_fds(struct ipc_msg *m)
{
	for (size_t i = 0; i < IPC_FDS_MAX; i++)
		fd_drop(&m->fds[i]);
	m->nfds = 0;
}

void ipc_msg_fini(struct ipc_msg *m)
{
	drop_fds(m);
	if (m->data != NULL) {
		explicit_bzero(m->data, IPC_HDR + IPC_BODY_MAX);
		free(m->data);
	}
	m->data = NULL;
	m->body = rd_of(NULL, 0);
}

int ipc_msg_take_fd(struct ipc_msg *m, size_t i)
{
	return i < m->nfds ? fd_take(&m->fds[i]) : -1;
}

int ipc_prepare(int fd, struct box_err *err)
{
	/* Twice the largest frame; the kernel doubles the value again for its own overhead. The
	 * limit of an unprivileged process (net.core.wmem_max, 212992 by default) is enough for one
	 * frame. */
	int size = (int)(2 * IPC_BODY_MAX);

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) != 0)
		return box_fail(err, BOX_ESYS, errno, "size an ipc socket");
	return 0;
}

int ipc_pair(int out[2], struct box_err *err)
{
	int sp[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sp) != 0)
		return box_fail(err, BOX_ESYS, errno, "make an ipc pair");
	if (ipc_prepare(sp[0], err) != 0 || ipc_prepare(sp[1], err) != 0) {
		fd_drop(&sp[0]);
		fd_drop(&sp[1]);
		return -1;
	}
	out[0] = sp[0];
	out[1] = sp[1];
	return 0;
}

static int send_frame(int fd, uint16_t type, uint32_t id, const struct buf *body, const int *fds,
    size_t nfds, int flags, struct box_err *err)
{
	size_t n = body != NULL ? body->n : 0;
	uint8_t hdr[IPC_HDR] = { (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
		(uint8_t)n, (uint8_t)(type >> 8), (uint8_t)type, 0, (uint8_t)nfds,
		(uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint8_t)(id >> 8), (uint8_t)id };
	struct iovec iov[2] = { { hdr, sizeof(hdr) }, { body != NULL ? body->p : NULL, n } };
	union {
		struct cmsghdr h;
		char space[CMSG_SPACE(IPC_FDS_MAX * sizeof(int))];
	} ctl = { 0 };
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = n != 0 ? 2 : 1 };
	ssize_t r;

	if (body != NULL && !buf_ok(body))
		return box_fail(err, BOX_ELIMIT, 0, "an ipc frame of type %u did not fit", type);
	if (n > IPC_BODY_MAX || nfds > IPC_FDS_MAX)
		return box_fail(err, BOX_ELIMIT, 0, "an ipc frame of type %u is too large", type);
	if (nfds != 0) {
		mh.msg_control = ctl.space;
		mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&mh);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	do {
		r = sendmsg(fd, &mh, MSG_NOSIGNAL | flags);
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return box_fail(err, BOX_ESYS, errno, "send an ipc frame");
	return 0;
}

int ipc_send(int fd, uint16_t type, uint32_t id, const struct buf *body, const int *fds,
    size_t nfds, struct box_err *err)
{
	return send_frame(fd, type, id, body, fds, nfds, 0, err);
}

int ipc_send_nowait(int fd, uint16_t type, uint32_t id, const struct buf *body, const int *fds,
    size_t nfds, struct box_err *err)
{
	return send_frame(fd, type, id, body, fds, nfds, MSG_DONTWAIT, err);
}

/* Put every descriptor of the control data into m; close what does not fit. false: too many. */
static bool take_control(struct msghdr *mh, struct ipc_msg *m)
{
	bool fit = true;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c != NULL; c = CMSG_NXTHDR(mh, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (m->nfds < IPC_FDS_MAX) {
				m->fds[m->nfds++] = fd;
			} else {
				fd_drop(&fd);
				fit = false;
			}
		}
	}
	return fit && (mh->msg_flags & MSG_CTRUNC) == 0;
}

static int recv_frame(int fd, struct ipc_msg *m, int flags, struct box_err *err)
{
	union {
		struct cmsghdr h;
		char space[CMSG_SPACE((IPC_FDS_MAX + 1) * sizeof(int))];
	} ctl;
	struct iovec iov;
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct rd r;
	uint32_t len;
	uint16_t nfds;
	ssize_t got;

	drop_fds(m);
	if (m->data == NULL && (m->data = malloc(IPC_HDR + IPC_BODY_MAX)) == NULL)
		return box_nomem(err, "an ipc frame");
	iov = (struct iovec){ m->data, IPC_HDR + IPC_BODY_MAX };
	mh.msg_control = ctl.space;
	mh.msg_controllen = sizeof(ctl.space);
	do {
		got = recvmsg(fd, &mh, MSG_CMSG_CLOEXEC | flags);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return box_fail(err, BOX_ESYS, errno, "receive an ipc frame");
	if (!take_control(&mh, m) || (mh.msg_flags & MSG_TRUNC) != 0) {
		drop_fds(m);
		return box_fail(
		    err, BOX_EDENIED, 0, "an ipc frame is too large or has too many descriptors");
	}
	if (got == 0) {
		drop_fds(m);
		return 0;
	}
	r = rd_of(m->data, (size_t)got);
	len = rd_u32(&r);
	m->type = rd_u16(&r);
	nfds = rd_u16(&r);
	m->id = rd_u32(&r);
	if (r.bad || len != rd_left(&r) || nfds != m->nfds) {
		drop_fds(m);
		return box_fail(err, BOX_EDENIED, 0, "a malformed ipc frame of %zd bytes", got);
	}
	m->body = r;
	return 1;
}

int ipc_recv(int fd, struct ipc_msg *m, struct box_err *err)
{
	return recv_frame(fd, m, 0, err);
}

int ipc_recv_nowait(int fd, struct ipc_msg *m, struct box_err *err)
{
	return recv_frame(fd, m, MSG_DONTWAIT, err);
}

int ipc_dispatch(
    const struct ipc_rule *table, uint32_t state, void *ctx, struct ipc_msg *m, struct box_err *err)
{
	for (const struct ipc_rule *r = table; r->type != 0; r++) {
		if (r->type != m->type)
			continue;
		if ((r->states & state) == 0)
			return box_fail(
			    err, BOX_EDENIED, 0, "frame %s is not legal in this state", r->name);
		if (m->nfds < r->fds_min || m->nfds > r->fds_max)
			return box_fail(err, BOX_EDENIED, 0, "frame %s came with %zu descriptors",
			    r->name, m->nfds);
		if (rd_left(&m->body) > r->body_max)
			return box_fail(err, BOX_EDENIED, 0, "frame %s is too long: %zu bytes",
			    r->name, rd_left(&m->body));
		return r->on(ctx, m, err);
	}
	return box_fail(err, BOX_EDENIED, 0, "unknown frame type %u", m->type);
}
