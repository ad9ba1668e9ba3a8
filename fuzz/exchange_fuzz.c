/* The whole gateway on plain connections: the input is what a client and what an origin send.
 * Everything is permitted. Whatever reaches the origin must read as whole requests, at most as many
 * as were decided, each with the method and path that were decided (escapes NET-04). */
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "dial/proto.h"
#include "gateway/gw_int.h"

#include "http1_skip.h"
#include "base/ban.h"

#define CHECK(x)  ((x) ? (void)0 : abort())
#define ASKED_MAX 64

struct world {
	struct event_base *base;
	struct gw *gw;
	int mon, dial; /* our ends */
	int up[ASKED_MAX];
	size_t up_n;
	struct buf seen; /* "METHOD path\n" of every question, in order */
	sv reply;
};

static int64_t stopped_clock = 1;

static void start(struct world *w)
{
	struct box_err err = { 0 };
	int mon[2], dial[2];
	AUTO_BUF b = buf_with(64);

	(void)signal(SIGPIPE, SIG_IGN);
	w->base = event_base_new();
	CHECK(ipc_pair(mon, &err) == 0 && ipc_pair(dial, &err) == 0);
	w->mon = mon[0];
	w->dial = dial[0];
	w->gw = gw_new(w->base, mon[1], clock_fixed(&stopped_clock), &err);
	CHECK(w->gw != NULL);
	for (int i = 0; i < 4; i++)
		buf_put_u32(&b, 0);
	CHECK(ipc_send(w->mon, MON_START, 0, &b, &dial[1], 1, &err) == 0);
	(void)close(dial[1]);
	CHECK(fd_set_nonblock(w->mon, true) == 0 && fd_set_nonblock(w->dial, true) == 0);
	(void)event_base_loop(w->base, EVLOOP_NONBLOCK);
}

static void on_mon(struct world *w, struct ipc_msg *m)
{
	struct box_err err = { 0 };
	AUTO_BUF b = buf_with(64);
	sv method, path;

	if (m->type != MON_ASK_HTTP)
		return;
	(void)rd_u32(&m->body);
	(void)rd_u64(&m->body);
	(void)rd_str(&m->body, MON_NAME_MAX);
	(void)rd_u16(&m->body);
	method = rd_str(&m->body, MON_NAME_MAX);
	path = rd_str(&m->body, MON_PATH_MAX);
	CHECK(!m->body.bad);
	buf_put_sv(&w->seen, method);
	buf_put_byte(&w->seen, ' ');
	buf_put_sv(&w->seen, path);
	buf_put_byte(&w->seen, '\n');
	buf_put_byte(&b, 1);
	buf_put_u64(&b, 7);
	buf_put_u16(&b, 0);
	buf_put_u16(&b, 0);
	CHECK(ipc_send(w->mon, MON_VERDICT, m->id, &b, NULL, 0, &err) == 0);
}

static void on_dial(struct world *w, struct ipc_msg *m)
{
	struct box_err err = { 0 };
	AUTO_BUF b = buf_with(64);
	int sp[2];

	if (m->type != DIAL_CONNECT || w->up_n == ASKED_MAX)
		return;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sp) == 0);
	buf_put_str(&b, SV("10.0.0.1"));
	CHECK(ipc_send(w->dial, DIAL_SOCKET, m->id, &b, &sp[1], 1, &err) == 0);
	(void)close(sp[1]);
	(void)send(sp[0], w->reply.p, w->reply.n, MSG_NOSIGNAL);
	w->up[w->up_n++] = sp[0];
}

static void drain(int fd, struct buf *into)
{
	char tmp[4096];
	ssize_t n;

	while ((n = recv(fd, tmp, sizeof(tmp), MSG_DONTWAIT)) > 0) {
		if (into != NULL)
			buf_put(into, tmp, (size_t)n);
	}
}

/* Does this origin's input read as decided requests, in order? */
static void check(struct world *w, sv in)
{
	sv asked = buf_sv(&w->seen);

	while (in.n != 0) {
		static struct http1_head h;
		struct http1_scan s = { 0 };
		struct box_err err = { 0 };
		size_t used;
		sv head, data, line, method, path;

		if (http1_scan(&s, in, &head, &used, &err) == 0)
			return;
		CHECK(http1_request(head, &h, &err) == 0);
		path = h.target;
		(void)sv_cut(path, '?', &path, &data);
		do { /* later questions may belong to other origins; order holds */
			CHECK(asked.n != 0);
			(void)sv_cut(asked, '\n', &line, &asked);
			(void)sv_cut(line, ' ', &method, &line);
		} while (!sv_eq(method, h.method) || !sv_eq(line, path));
		in = sv_sub(in, used, in.n);
		if (!http1_skip_body(&h, &in)) {
			CHECK(in.n == 0); /* an aborted request: nothing may follow it */
			return;
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	static struct world w;
	static struct ipc_msg m = IPC_MSG_INIT;
	struct box_err err = { 0 };
	int sp[2];
	size_t cut;

	if (n < 3 || n > 100000)
		return 0;
	if (w.gw == NULL)
		start(&w);
	cut = (size_t)(d[0] << 8 | d[1]);
	d += 2;
	n -= 2;
	cut = cut > n ? n : cut;
	w.seen = buf_with(1 << 20);
	w.up_n = 0;
	w.reply = (sv){ (const char *)d + cut, n - cut };
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sp) == 0);
	conn_new(w.gw, sp[1], 1);
	(void)send(sp[0], d, cut, MSG_NOSIGNAL);
	(void)shutdown(sp[0], SHUT_WR);
	static struct buf in[ASKED_MAX];

	for (size_t i = 0; i < ASKED_MAX; i++)
		in[i].max = 1 << 20;
	for (int round = 0, quiet = 0; round < 200 && quiet < 3; round++) {
		quiet++;
		(void)event_base_loop(w.base, EVLOOP_NONBLOCK);
		while (ipc_recv(w.mon, &m, &err) == 1) {
			on_mon(&w, &m);
			quiet = 0;
		}
		while (ipc_recv(w.dial, &m, &err) == 1) {
			on_dial(&w, &m);
			quiet = 0;
		}
		for (size_t i = 0; i < w.up_n; i++)
			drain(w.up[i], &in[i]);
		drain(sp[0], NULL);
	}
	for (size_t i = 0; i < w.up_n; i++) {
		drain(w.up[i], &in[i]);
		check(&w, buf_sv(&in[i]));
		(void)close(w.up[i]);
		buf_fini(&in[i]);
	}
	(void)close(sp[0]);
	for (int i = 0; i < 5; i++)
		(void)event_base_loop(w.base, EVLOOP_NONBLOCK);
	for (size_t i = 0; i < w.gw->conns_max; i++) {
		if (w.gw->conns[i] != NULL)
			conn_free(w.gw->conns[i]);
	}
	while (ipc_recv(w.mon, &m, &err) == 1 || ipc_recv(w.dial, &m, &err) == 1)
		;
	CHECK(!w.gw->stopped);
	buf_fini(&w.seen);
	return 0;
}
