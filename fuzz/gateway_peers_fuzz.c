/* box-gateway between its peers, each of which may say anything at any time: a client, box-dial, an
 * origin, and the monitor (trusted, but its frames are read here: roots, routes, edits, leaves). It
 * goes on or stops with a reason; what reaches an origin reads as requests.
 *
 * Input: a run of { u8 what, u8 more, u16 length, bytes }. Roots and routes that come first are
 * sent before START. Answers carry the id of the newest question, or, by the upper bit of `more`,
 * not. */
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "dial/proto.h"
#include "gateway/gw_int.h"
#include "monitor/ca.h"

#include "http1_skip.h"
#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())
#define ITEMS    48

enum what { CLIENT, DIAL, VERDICT, LEAF, ORIGIN, ANY, CLOCK, WHATS };

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);

struct world {
	struct event_base *base;
	struct gw *gw;
	struct ca *ca;
	int mon, dial, client, origin; /* our ends; -1 */
	uint32_t mon_id, dial_id;
	struct buf asked; /* the body of the newest question of the gateway to the monitor */
	struct buf at_origin;
	int64_t now;
};

static int64_t now_of(void *arg)
{
	return ((struct world *)arg)->now;
}

static void begin(struct world *w)
{
	static int64_t day = (int64_t)20000 * 86400 * NS_PER_SEC;
	static struct clock wall;
	struct box_err err;
	int mon[2];

	(void)signal(SIGPIPE, SIG_IGN);
	wall = clock_fixed(&day);
	if (w->ca == NULL)
		w->ca = ca_new(SV("fuzz"), &wall, &err);
	CHECK(w->ca != NULL && ipc_pair(mon, &err) == 0);
	w->base = event_base_new();
	w->mon = mon[0];
	w->dial = w->client = w->origin = -1;
	w->mon_id = w->dial_id = 0;
	w->now = 1;
	w->asked = buf_with(IPC_BODY_MAX);
	w->at_origin = buf_with(1 << 20);
	w->gw = gw_new(w->base, mon[1], (struct clock){ now_of, w }, &err);
	CHECK(w->gw != NULL && fd_set_nonblock(w->mon, true) == 0);
}

static void start(struct world *w)
{
	AUTO_BUF b = buf_with(64);
	struct box_err err;
	int dial[2];

	CHECK(ipc_pair(dial, &err) == 0);
	for (int i = 0; i < 4; i++)
		buf_put_u32(&b, 0);
	(void)ipc_send(w->mon, MON_START, 0, &b, &dial[1], 1, &err); /* it may have stopped */
	(void)close(dial[1]);
	w->dial = dial[0];
	CHECK(fd_set_nonblock(w->dial, true) == 0);
}

static void drain(int fd, struct buf *into)
{
	char tmp[4096];
	ssize_t n;

	while (fd >= 0 && (n = recv(fd, tmp, sizeof(tmp), MSG_DONTWAIT)) > 0)
		if (into != NULL)
			buf_put(into, tmp, (size_t)n);
}

static void settle(struct world *w)
{
	static struct ipc_msg m = IPC_MSG_INIT;

	for (int i = 0; i < 3; i++) {
		(void)event_base_loop(w->base, EVLOOP_NONBLOCK);
		while (ipc_recv(w->mon, &m, NULL) == 1) {
			w->mon_id = m.id;
			buf_clear(&w->asked);
			buf_put(&w->asked, m.body.p, rd_left(&m.body));
		}
		while (w->dial >= 0 && ipc_recv(w->dial, &m, NULL) == 1)
			w->dial_id = m.id;
		drain(w->client, NULL);
		drain(w->origin, &w->at_origin);
	}
}

static void connect_client(struct world *w)
{
	int sp[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sp) == 0);
	fd_drop(&w->client);
	w->client = sp[0];
	conn_new(w->gw, sp[1], 1);
}

/* What came to one origin reads as requests, as far as it came. */
static void check_origin(struct world *w)
{
	static struct http1_head h;
	sv in, head;
	size_t used;

	drain(w->origin, &w->at_origin);
	for (in = buf_sv(&w->at_origin); in.n != 0;) {
		struct http1_scan s = { 0 };
		struct box_err err;
		int r = http1_scan(&s, in, &head, &used, &err);

		CHECK(r >= 0);
		if (r == 0)
			break;
		CHECK(http1_request(head, &h, &err) == 0);
		in = sv_sub(in, used, in.n);
		if (!http1_skip_body(&h, &in))
			break;
	}
	buf_clear(&w->at_origin);
}

static void answer_dial(struct world *w, uint8_t more, const struct buf *b)
{
	uint16_t type = (uint16_t)(DIAL_SOCKET + more % 3);
	uint32_t id = (more & 0x80) != 0 ? more : w->dial_id;
	int sp[2];

	if (type != DIAL_SOCKET) {
		(void)ipc_send(w->dial, type, id, b, NULL, 0, NULL);
		return;
	}
	check_origin(w);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sp) == 0);
	(void)ipc_send(w->dial, type, id, b, &sp[1], 1, NULL);
	(void)close(sp[1]);
	fd_drop(&w->origin);
	w->origin = sp[0];
}

/* A leaf for what was asked, as the monitor gives it, or what the input says. */
static void answer_leaf(struct world *w, uint8_t more, const struct buf *given)
{
	struct rd r = rd_of(w->asked.p, w->asked.n);
	sv host = rd_str(&r, HOST_MAX), spki = rd_str(&r, CA_SPKI_MAX);
	AUTO_BUF b = buf_with(IPC_BODY_MAX), der = buf_with(65536);
	uint32_t id = (more & 0x80) != 0 ? more : w->mon_id;

	if ((more & 1) != 0 && rd_done(&r) && ca_issue(w->ca, host, spki, &der, NULL) == 0) {
		buf_put_byte(&b, 1);
		buf_put_str(&b, buf_sv(&der));
		(void)ipc_send(w->mon, GW_LEAF, id, &b, NULL, 0, NULL);
	} else {
		(void)ipc_send(w->mon, GW_LEAF, id, given, NULL, 0, NULL);
	}
}

static void any_frame(struct world *w, uint8_t more, const struct buf *b)
{
	static const uint16_t types[] = { GW_PEM, GW_ROUTE, GW_UNLISTEN, GW_LISTENER, MON_STOP,
		MON_START };
	uint16_t type = types[more % 6];

	/* The descriptor is no listener: refused. */
	(void)ipc_send(w->mon, type, 0, b, &w->mon, type == GW_LISTENER || type == MON_START, NULL);
}

static void act(struct world *w, enum what what, uint8_t more, sv bytes)
{
	AUTO_BUF b = buf_with(IPC_BODY_MAX);

	buf_put_sv(&b, bytes);
	if (w->dial < 0 && what != ANY)
		start(w);
	settle(w);
	switch (what) {
	case CLIENT:
		if (w->gw->started && (w->client < 0 || (more & 1) != 0))
			connect_client(w);
		(void)send(w->client, bytes.p, bytes.n, MSG_NOSIGNAL);
		if ((more & 2) != 0)
			(void)shutdown(w->client, SHUT_WR);
		break;
	case DIAL:
		answer_dial(w, more, &b);
		break;
	case VERDICT:
		(void)ipc_send(
		    w->mon, MON_VERDICT, (more & 0x80) != 0 ? more : w->mon_id, &b, NULL, 0, NULL);
		break;
	case LEAF:
		answer_leaf(w, more, &b);
		break;
	case ORIGIN:
		(void)send(w->origin, bytes.p, bytes.n, MSG_NOSIGNAL);
		if ((more & 2) != 0)
			(void)shutdown(w->origin, SHUT_WR);
		break;
	case ANY:
		any_frame(w, more, &b);
		break;
	default:
		w->now += (int64_t)more * NS_PER_SEC;
		if (w->gw->started)
			gw_tick(w->gw);
	}
	settle(w);
}

static void end(struct world *w)
{
	check_origin(w);
	gw_free(w->gw);
	event_base_free(w->base);
	fd_drop(&w->mon);
	fd_drop(&w->dial);
	fd_drop(&w->client);
	fd_drop(&w->origin);
	buf_fini(&w->asked);
	buf_fini(&w->at_origin);
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	static struct world w;
	struct rd in = rd_of(d, n);

	begin(&w);
	for (int i = 0; i < ITEMS && rd_left(&in) >= 4 && !w.gw->stopped; i++) {
		uint8_t what = rd_u8(&in) % WHATS, more = rd_u8(&in);
		size_t len = rd_u16(&in);

		act(&w, what, more, rd_bytes(&in, len < rd_left(&in) ? len : rd_left(&in)));
	}
	end(&w);
	return 0;
}
