/* Frames: round trips, descriptors, and everything a hostile peer can send. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/ipc.h"

static size_t open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(d) != NULL)
		n++;
	(void)closedir(d); /* read only */
	return n;
}

struct pair {
	int a, b;
};

static struct pair make(void)
{
	struct box_err err = { 0 };
	int sp[2];

	assert_int_equal(ipc_pair(sp, &err), 0);
	assert_true((fcntl(sp[0], F_GETFD) & FD_CLOEXEC) != 0);
	return (struct pair){ sp[0], sp[1] };
}

static void drop(struct pair *p)
{
	fd_drop(&p->a);
	fd_drop(&p->b);
}

static void round_trips(void **state)
{
	AUTO_BUF body = buf_with(IPC_BODY_MAX);
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	struct box_err err = { 0 };
	struct pair p = make();

	(void)state;
	buf_put_str(&body, SV("hello"));
	assert_int_equal(ipc_send(p.a, 7, 0xdeadbeef, &body, NULL, 0, &err), 0);
	assert_int_equal(ipc_send(p.a, 8, 1, NULL, NULL, 0, &err), 0);
	assert_int_equal(ipc_recv(p.b, &m, &err), 1);
	assert_int_equal(m.type, 7);
	assert_int_equal(m.id, 0xdeadbeef);
	assert_true(sv_eq(rd_str(&m.body, 10), SV("hello")) && rd_done(&m.body));
	assert_int_equal(ipc_recv(p.b, &m, &err), 1);
	assert_int_equal(m.type, 8);
	assert_true(rd_done(&m.body));
	/* the largest body */
	buf_clear(&body);
	memset(buf_room(&body, IPC_BODY_MAX), 'x', IPC_BODY_MAX);
	body.n = IPC_BODY_MAX;
	assert_int_equal(ipc_send(p.a, 9, 2, &body, NULL, 0, &err), 0);
	assert_int_equal(ipc_recv(p.b, &m, &err), 1);
	assert_int_equal(rd_left(&m.body), IPC_BODY_MAX);
	/* nothing there, then nobody there */
	assert_int_equal(ipc_recv_nowait(p.b, &m, &err), -1);
	assert_int_equal(err.sys, EAGAIN);
	fd_drop(&p.a);
	assert_int_equal(ipc_recv(p.b, &m, &err), 0);
	assert_int_equal(ipc_send(p.b, 1, 1, NULL, NULL, 0, &err), -1);
	assert_int_equal(err.sys, EPIPE);
	drop(&p);
}

static void refuses_to_send(void **state)
{
	AUTO_BUF bad = buf_with(2);
	AUTO_BUF big = buf_with(IPC_BODY_MAX + 1);
	struct box_err err = { 0 };
	struct pair p = make();
	int fds[IPC_FDS_MAX + 1] = { 0, 0, 0, 0, 0 };

	(void)state;
	buf_put_u32(&bad, 1);
	assert_int_equal(ipc_send(p.a, 1, 1, &bad, NULL, 0, &err), -1);
	assert_int_equal(err.code, BOX_ELIMIT);
	memset(buf_room(&big, IPC_BODY_MAX + 1), 0, IPC_BODY_MAX + 1);
	big.n = IPC_BODY_MAX + 1;
	assert_int_equal(ipc_send(p.a, 1, 1, &big, NULL, 0, &err), -1);
	assert_int_equal(err.code, BOX_ELIMIT);
	assert_int_equal(ipc_send(p.a, 1, 1, NULL, fds, IPC_FDS_MAX + 1, &err), -1);
	assert_int_equal(err.code, BOX_ELIMIT);
	drop(&p);
}

static void passes_descriptors(void **state)
{
	struct pair p = make(), q = make();
	struct box_err err = { 0 };
	size_t before = open_fds();
	char c = 0;

	(void)state;
	{
		AUTO_IPC_MSG m = IPC_MSG_INIT;
		int fds[] = { q.a, q.b, q.a, q.b };

		assert_int_equal(ipc_send(p.a, 1, 1, NULL, fds, 4, &err), 0);
		assert_int_equal(ipc_recv(p.b, &m, &err), 1);
		assert_int_equal(m.nfds, 4);
		AUTO_FD a = ipc_msg_take_fd(&m, 0);

		assert_true(a >= 0 && a != q.a);
		assert_true((fcntl(a, F_GETFD) & FD_CLOEXEC) != 0);
		assert_int_equal(ipc_msg_take_fd(&m, 0), -1); /* only once */
		assert_int_equal(ipc_msg_take_fd(&m, 4), -1);
		assert_int_equal(write(a, "z", 1), 1);
		assert_int_equal(read(q.b, &c, 1), 1);
		assert_int_equal(c, 'z');
		/* the next frame closes what nobody took */
		assert_int_equal(ipc_send(p.a, 2, 2, NULL, NULL, 0, &err), 0);
		assert_int_equal(ipc_recv(p.b, &m, &err), 1);
		assert_int_equal(m.nfds, 0);
		assert_int_equal(open_fds(), before + 1);
		assert_int_equal(ipc_send(p.a, 3, 3, NULL, fds, 2, &err), 0);
		assert_int_equal(ipc_recv(p.b, &m, &err), 1);
	}
	assert_int_equal(open_fds(), before);
	drop(&p);
	drop(&q);
}

/* Raw bytes with n descriptors, as only a hostile peer sends them. */
static void raw(int fd, const void *bytes, size_t n, size_t nfds)
{
	union {
		struct cmsghdr h;
		char space[CMSG_SPACE(32 * sizeof(int))];
	} ctl = { 0 };
	struct iovec iov = { (void *)(uintptr_t)bytes, n };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds != 0) {
		mh.msg_control = ctl.space;
		mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		ctl.h.cmsg_level = SOL_SOCKET;
		ctl.h.cmsg_type = SCM_RIGHTS;
		ctl.h.cmsg_len = CMSG_LEN(nfds * sizeof(int));
		for (size_t i = 0; i < nfds; i++)
			memcpy(CMSG_DATA(&ctl.h) + i * sizeof(int), &fd, sizeof(fd));
	}
	assert_int_equal(sendmsg(fd, &mh, MSG_NOSIGNAL), (ssize_t)n);
}

static void refuses_malformed(void **state)
{
	static const struct {
		const char *bytes;
		size_t n, nfds;
	} rows[] = {
		{ "\0", 1, 0 },                                    /* no header */
		{ "\0\0\0\0\0\1\0\0\0\0\0", 11, 0 },               /* a byte short */
		{ "\0\0\0\1\0\1\0\0\0\0\0\0", 12, 0 },             /* body promised, none there */
		{ "\0\0\0\0\0\1\0\0\0\0\0\0x", 13, 0 },            /* body there, none promised */
		{ "\0\0\0\5\0\1\0\0\0\0\0\0abcd", 16, 0 },         /* short body */
		{ "\xff\xff\xff\xff\0\1\0\0\0\0\0\0abcd", 16, 0 }, /* lying length */
		{ "\0\0\0\0\0\1\0\1\0\0\0\0", 12, 0 },             /* descriptor promised */
		{ "\0\0\0\0\0\1\0\0\0\0\0\0", 12, 1 },             /* descriptor unannounced */
		{ "\0\0\0\0\0\1\0\2\0\0\0\0", 12, 1 },             /* fewer than announced */
		{ "\0\0\0\0\0\1\0\5\0\0\0\0", 12, 5 },             /* more than may travel */
		{ "\0\0\0\0\0\1\0\4\0\0\0\0", 12, 30 },            /* many more */
		{ "\0\0\0\0\0\1\xff\xff\0\0\0\0", 12, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pair p = make();
		size_t before = open_fds();
		AUTO_IPC_MSG m = IPC_MSG_INIT;
		struct box_err err = { 0 };

		raw(p.a, rows[i].bytes, rows[i].n, rows[i].nfds);
		if (ipc_recv(p.b, &m, &err) != -1)
			fail_msg("row %zu was accepted", i);
		assert_int_equal(err.code, BOX_EDENIED);
		assert_int_equal(m.nfds, 0);
		assert_int_equal(open_fds(), before); /* nothing stays open */
		/* the channel itself still works: ending the peer is the caller's decision */
		assert_int_equal(ipc_send(p.a, 1, 1, NULL, NULL, 0, &err), 0);
		assert_int_equal(ipc_recv(p.b, &m, &err), 1);
		drop(&p);
	}
	/* longer than any frame */
	struct pair p = make();
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	struct box_err err = { 0 };
	size_t n = IPC_HDR + IPC_BODY_MAX + 1;
	char *big = calloc(1, n);

	raw(p.a, big, n, 0);
	assert_int_equal(ipc_recv(p.b, &m, &err), -1);
	assert_int_equal(err.code, BOX_EDENIED);
	free(big);
	drop(&p);
}

static int on_frame(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	int *calls = ctx;

	(void)m;
	(*calls)++;
	return *calls < 3 ? 0 : box_fail(err, BOX_EPARSE, 0, "third");
}

static void dispatches(void **state)
{
	static const struct ipc_rule rules[] = {
		{ 1, "HELLO", 1, 0, 0, 4, on_frame },
		{ 2, "RUN", 2 | 4, 1, 2, 0, on_frame },
		{ 0, NULL, 0, 0, 0, 0, NULL },
	};
	static const struct {
		uint16_t type;
		uint32_t state;
		size_t nfds, body;
		const char *refused;
	} rows[] = {
		{ 1, 1, 0, 4, NULL },
		{ 1, 1, 0, 5, "frame HELLO is too long: 5 bytes" },
		{ 1, 2, 0, 0, "frame HELLO is not legal in this state" },
		{ 1, 1, 1, 0, "frame HELLO came with 1 descriptors" },
		{ 2, 4, 2, 0, NULL },
		{ 2, 2, 0, 0, "frame RUN came with 0 descriptors" },
		{ 2, 2, 3, 0, "frame RUN came with 3 descriptors" },
		{ 3, 1, 0, 0, "unknown frame type 3" },
		{ 0, 1, 0, 0, "unknown frame type 0" },
	};
	struct ipc_msg m = IPC_MSG_INIT;
	struct box_err err = { 0 };
	int calls = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		m.type = rows[i].type;
		m.nfds = rows[i].nfds;
		m.body = rd_of("aaaaaaaa", rows[i].body);
		if (ipc_dispatch(rules, rows[i].state, &calls, &m, &err) !=
		    (rows[i].refused != NULL ? -1 : 0))
			fail_msg("row %zu", i);
		if (rows[i].refused != NULL) {
			assert_string_equal(err.msg, rows[i].refused);
			assert_int_equal(err.code, BOX_EDENIED);
		}
	}
	assert_int_equal(calls, 2);
	m = (struct ipc_msg){ .type = 1, .fds = { -1, -1, -1, -1 }, .body = rd_of(NULL, 0) };
	assert_int_equal(ipc_dispatch(rules, 1, &calls, &m, &err), -1);
	assert_string_equal(err.msg, "third"); /* the handler's own answer */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trips),
		cmocka_unit_test(refuses_to_send),
		cmocka_unit_test(passes_descriptors),
		cmocka_unit_test(refuses_malformed),
		cmocka_unit_test(dispatches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
