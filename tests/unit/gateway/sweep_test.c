/* Every allocation of ours fails once: readers, routes, and whole exchanges over socket pairs.
 * Nothing may crash, leak (sanitizer build) or get a request through that was not decided. Linked
 * with --wrap for malloc and calloc; allocations of libraries are theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "dial/proto.h"
#include "gateway/gw_int.h"

#include "base/ban.h"

static int64_t stopped_clock = 1;

/* The n-th allocation while armed fails, and all after it. */
static struct {
	bool armed;
	size_t n, failed;
} fail;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);

static bool must_fail(void)
{
	if (!fail.armed || (fail.n > 1 && fail.n-- > 1))
		return false;
	fail.failed++;
	return true;
}

void *__wrap_malloc(size_t n)
{
	return must_fail() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return must_fail() ? NULL : __real_calloc(n, size);
}

static void begin(size_t n)
{
	fail.n = n;
	fail.failed = 0;
}

/* Run `once` with the n-th and later allocations failing, for n = 1, 2, … until none fails any
 * more. */
static void sweep(void (*once)(void *arg), void *arg, size_t at_least)
{
	for (size_t n = 1;; n++) {
		begin(n);
		fail.armed = true;
		once(arg);
		fail.armed = false;
		if (fail.failed == 0) {
			assert_true(n > at_least);
			return;
		}
		assert_true(n < 100000);
	}
}

static void readers(void *arg)
{
	struct http1_head h = { .framing = HTTP1_CHUNKED };
	struct http1_body b;
	struct redact r;
	AUTO_BUF out = buf_with(4096), path = buf_with(4096);
	sv in = SV("5\r\nhello\r\n0\r\nA: b\r\n\r\n"), data;
	size_t used = 0, n;

	(void)arg;
	http1_body_init(&b, &h);
	while (used < in.n) {
		enum http1_step step = http1_body_step(&b, sv_sub(in, used, in.n), &n, &data, NULL);

		if (step == HTTP1_BAD || step == HTTP1_END)
			break;
		used += n;
	}
	http1_body_fini(&b);
	(void)path_canon(SV("/a/../%41"), &path, NULL);
	redact_init(&r);
	if (redact_add(&r, SV("secret")) == 0) {
		(void)redact_feed(&r, SV("x sec"), &out);
		(void)redact_feed(&r, SV("ret sec"), &out);
		(void)redact_end(&r, &out);
		assert_true(sv_find_sv(buf_sv(&out), SV("secret")) < 0);
	}
	redact_fini(&r);
}

static void routes(void *arg)
{
	const struct buf *b = arg;
	struct routes r;
	struct rd body = rd_of(b->p, b->n);

	routes_init(&r);
	(void)routes_add(&r, &body, NULL);
	routes_fini(&r);
}

static void libraries(void **state)
{
	AUTO_BUF b = buf_with(4096);

	(void)state;
	buf_put_u16(&b, 0);
	buf_put_str(&b, SV("api"));
	buf_put_u16(&b, 1);
	buf_put_str(&b, SV("a.test"));
	buf_put_byte(&b, 0);
	buf_put_u16(&b, 0);
	buf_put_str(&b, SV(""));
	buf_put_byte(&b, 0);
	buf_put_str(&b, SV("Authorization"));
	buf_put_str(&b, SV("Bearer "));
	buf_put_str(&b, SV("placeholder"));
	buf_put_byte(&b, 0);
	sweep(readers, NULL, 5);
	sweep(routes, &b, 1);
}

/* --- whole exchanges --- */

struct world {
	struct event_base *base;
	struct gw *gw;
	int mon, dial;
	bool permit;
	size_t reached; /* requests that an origin saw */
	size_t permitted;
};

static void on_mon(struct world *w, struct ipc_msg *m)
{
	AUTO_BUF b = buf_with(256);

	if (m->type != MON_ASK_HTTP)
		return;
	w->permitted += w->permit;
	buf_put_byte(&b, w->permit);
	if (w->permit) {
		buf_put_u64(&b, 7);
		buf_put_u16(&b, 0);
		buf_put_u16(&b, 0);
	} else {
		buf_put_u16(&b, 0);
		buf_put_str(&b, SV("no"));
	}
	assert_int_equal(ipc_send(w->mon, MON_VERDICT, m->id, &b, NULL, 0, NULL), 0);
}

static int on_dial(struct world *w, struct ipc_msg *m)
{
	static const char reply[] =
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nA: b\r\n\r\n";
	AUTO_BUF b = buf_with(64);
	int sp[2];

	if (m->type != DIAL_CONNECT)
		return -1;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sp), 0);
	buf_put_str(&b, SV("10.0.0.1"));
	assert_int_equal(ipc_send(w->dial, DIAL_SOCKET, m->id, &b, &sp[1], 1, NULL), 0);
	(void)close(sp[1]);
	(void)send(sp[0], reply, sizeof(reply) - 1, MSG_NOSIGNAL);
	return sp[0];
}

/* Only the gateway's own turns run with failing allocations. */
static void exchange(struct world *w)
{
	static const char request[] =
	    "POST http://a.test/x HTTP/1.1\r\nHost: a.test\r\n"
	    "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nB: c\r\n\r\n";
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	int sp[2], up = -1;
	char in[4096];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sp), 0);
	(void)send(sp[0], request, sizeof(request) - 1, MSG_NOSIGNAL);
	fail.armed = true;
	conn_new(w->gw, sp[1], 1);
	fail.armed = false;
	for (int i = 0; i < 12; i++) {
		fail.armed = true;
		(void)event_base_loop(w->base, EVLOOP_NONBLOCK);
		fail.armed = false;
		while (ipc_recv(w->mon, &m, NULL) == 1)
			on_mon(w, &m);
		while (ipc_recv(w->dial, &m, NULL) == 1) {
			int fd = on_dial(w, &m);

			if (fd >= 0) {
				fd_drop(&up);
				up = fd;
			}
		}
		while (recv(sp[0], in, sizeof(in), MSG_DONTWAIT) > 0)
			;
	}
	if (up >= 0 && recv(up, in, sizeof(in), MSG_DONTWAIT) > 0)
		w->reached++;
	fd_drop(&up);
	fd_drop(&sp[0]);
	for (size_t i = 0; i < w->gw->conns_max; i++) {
		if (w->gw->conns[i] != NULL)
			conn_free(w->gw->conns[i]);
	}
	(void)event_base_loop(w->base, EVLOOP_NONBLOCK);
}

static void exchanges(void **state)
{
	struct world w = { 0 };
	struct box_err err = { 0 };
	int mon[2], dial[2];
	AUTO_BUF b = buf_with(64);

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	w.base = event_base_new();
	assert_int_equal(ipc_pair(mon, &err), 0);
	assert_int_equal(ipc_pair(dial, &err), 0);
	w.mon = mon[0];
	w.dial = dial[0];
	w.gw = gw_new(w.base, mon[1], clock_fixed(&stopped_clock), &err);
	assert_non_null(w.gw);
	for (int i = 0; i < 4; i++)
		buf_put_u32(&b, 0);
	assert_int_equal(ipc_send(w.mon, MON_START, 0, &b, &dial[1], 1, &err), 0);
	(void)close(dial[1]);
	assert_int_equal(fd_set_nonblock(w.mon, true), 0);
	assert_int_equal(fd_set_nonblock(w.dial, true), 0);
	(void)event_base_loop(w.base, EVLOOP_NONBLOCK);
	for (int permit = 0; permit < 2; permit++) {
		size_t n = 0;

		w.permit = permit == 1;
		w.reached = w.permitted = 0;
		do {
			size_t reached = w.reached;

			begin(++n);
			exchange(&w);
			/* Too little memory to report an outcome would rightly end the gateway.
			 * Here the reports fit the socket, so it goes on. */
			if (w.gw->stopped)
				fail_msg("allocation %zu: %s", n, gw_error(w.gw)->msg);
			assert_true(w.reached <= w.permitted);
			if (fail.failed == 0)
				assert_int_equal(w.reached - reached, permit);
		} while (fail.failed != 0);
		assert_true(n > 10);
	}
	gw_free(w.gw);
	(void)close(w.mon);
	(void)close(w.dial);
	event_base_free(w.base);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(libraries),
		cmocka_unit_test(exchanges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
