/* DNS answers into box-dial, which has the network: the input says which addresses a name has and
 * what the monitor permits. Asked about, and dialled, is only what no floor closes; a socket goes
 * to the gateway only for an address that was permitted; every question of the gateway is answered
 * once and every ticket reported. (The resolver is replaced: its threads would make runs differ.)
 *
 * Input: a run of { u8 what, u8 which, u8 length, bytes }. */
#include "dial/dial.c"

#include <arpa/inet.h>
#include <event2/event.h>
#include <signal.h>

#include "dial_start.h"

#define CHECK(x) ((x) ? (void)0 : abort())
#define OPEN_MAX 256

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);

struct resolver {
	const struct resolver_ops *ops;
	uint32_t asked[DIAL_PENDING_MAX];
	size_t n;
};

static struct resolver the_resolver;

struct resolver *resolver_new(
    struct event_base *base, const struct resolver_ops *ops, struct box_err *err)
{
	(void)base;
	(void)err;
	the_resolver = (struct resolver){ .ops = ops };
	return &the_resolver;
}

void resolver_free(struct resolver *r)
{
	r->n = 0;
}

int resolver_ask(struct resolver *r, uint32_t id, const struct host *name)
{
	CHECK(name->kind == HOST_NAME);
	if (r->n == DIAL_PENDING_MAX)
		return -1;
	r->asked[r->n++] = id;
	return 0;
}

struct world {
	struct event_base *base;
	struct dial *dial;
	int mon, gw, listener;
	uint16_t port, closed_port;
	uint32_t question[OPEN_MAX]; /* of the monitor, without a verdict */
	bool of_address[OPEN_MAX], permitted_address;
	size_t questions;
	uint64_t ticket;
	long tickets;      /* without an outcome */
	bool waiting[256]; /* by id of CONNECT */
	struct ipc_msg m;
};

static uint16_t local_port(int fd, bool listening)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	CHECK(!listening || listen(fd, 128) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	return ntohs(a.sin_port);
}

static void begin(struct world *w)
{
	struct box_err err = { 0 };
	int mon[2], gw[2];
	AUTO_BUF b = buf_with(64);

	if (w->port == 0) {
		(void)signal(SIGPIPE, SIG_IGN);
		w->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		w->port = local_port(w->listener, true);
		/* Held, so that nobody else listens there. */
		w->closed_port = local_port(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), false);
	}
	w->base = event_base_new();
	CHECK(ipc_pair(mon, &err) == 0 && ipc_pair(gw, &err) == 0);
	w->mon = mon[0];
	w->gw = gw[0];
	w->questions = 0;
	w->ticket = 0;
	w->tickets = 0;
	w->permitted_address = false;
	memset(w->waiting, 0, sizeof(w->waiting));
	w->dial = dial_new(w->base, mon[1], NULL, NULL, &err);
	CHECK(w->dial != NULL);
	put_dial_start(&b, SV("m.test"), w->port, SV("127.0.0.1"), w->port);
	CHECK(ipc_send(w->mon, MON_START, 0, &b, &gw[1], 1, &err) == 0);
	(void)close(gw[1]);
	CHECK(fd_set_nonblock(w->mon, true) == 0 && fd_set_nonblock(w->gw, true) == 0);
	(void)event_base_loop(w->base, EVLOOP_NONBLOCK);
}

static void verdict(struct world *w, uint8_t which, bool permit)
{
	AUTO_BUF b = buf_with(64);
	size_t i = w->questions != 0 ? which % w->questions : 0;

	if (w->questions == 0)
		return;
	buf_put_byte(&b, permit);
	if (permit) {
		buf_put_u64(&b, ++w->ticket);
		w->tickets++;
		w->permitted_address = w->permitted_address || w->of_address[i];
	} else {
		buf_put_u16(&b, 0);
		buf_put_str(&b, SV("no"));
	}
	(void)ipc_send(w->mon, MON_VERDICT, w->question[i], &b, NULL, 0, NULL);
	w->questions--;
	w->question[i] = w->question[w->questions];
	w->of_address[i] = w->of_address[w->questions];
}

static void on_mon_frame(struct world *w)
{
	struct rd *b = &w->m.body;
	struct host h;
	sv ip;

	if (w->m.type == MON_DONE_CONNECT) {
		w->tickets--;
		return;
	}
	if (w->m.type != MON_ASK_CONNECT)
		return;
	(void)rd_str(b, DIAL_HOST_MAX);
	(void)rd_u16(b);
	ip = rd_str(b, 64);
	(void)rd_u32(b);
	CHECK(rd_done(b) && w->questions < OPEN_MAX);
	if (ip.n != 0) {
		CHECK(host_parse(ip, false, &h, NULL) == 0 && sv_eq(host_sv(&h), ip));
		CHECK(!floor_closes(&h) && floor_is_host(&h));
	}
	w->of_address[w->questions] = ip.n != 0;
	w->question[w->questions++] = w->m.id;
	if (ip.n != 0 && !sv_eq(ip, SV("127.0.0.1"))) /* only what is ours is dialled */
		verdict(w, (uint8_t)(w->questions - 1), false);
}

static void on_gw_frame(struct world *w)
{
	CHECK(w->m.id < 256 && w->waiting[w->m.id]);
	w->waiting[w->m.id] = false;
	if (w->m.type == DIAL_SOCKET)
		CHECK(w->permitted_address && w->m.nfds == 1);
}

static void turn(struct world *w)
{
	int c;

	for (int i = 0; i < 2; i++) {
		(void)event_base_loop(w->base, EVLOOP_NONBLOCK);
		while (ipc_recv(w->mon, &w->m, NULL) == 1)
			on_mon_frame(w);
		while (ipc_recv(w->gw, &w->m, NULL) == 1)
			on_gw_frame(w);
	}
	while ((c = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		(void)close(c);
}

static void connect_frame(struct world *w, uint8_t id, sv host)
{
	AUTO_BUF b = buf_with(1024);

	buf_put_str(&b, host);
	buf_put_u16(&b, id % 4 == 3 ? w->closed_port : w->port);
	buf_put_u32(&b, 1);
	if (w->waiting[id])
		return; /* the gateway would be ended, and nothing more be seen */
	w->waiting[id] = true;
	(void)ipc_send(w->gw, DIAL_CONNECT, id, &b, NULL, 0, NULL);
}

/* The answer to one lookup: addresses of 4 or 16 bytes by a bit each of the first byte. */
static void answer(uint8_t which, sv bytes)
{
	struct resolver *r = &the_resolver;
	struct resolver_answer a = { 0 };
	struct rd in = rd_of(bytes.p, bytes.n);
	uint8_t kinds = rd_u8(&in);
	size_t i = r->n != 0 ? which % r->n : 0;
	uint32_t id;

	if (r->n == 0)
		return;
	for (; rd_left(&in) >= 4 && a.n < DIAL_ADDRS_MAX; kinds = (uint8_t)(kinds >> 1)) {
		struct sockaddr_in6 s6 = { .sin6_family = AF_INET6 };
		struct sockaddr_in s4 = { .sin_family = AF_INET };
		sv raw = rd_bytes(&in, (kinds & 1) != 0 && rd_left(&in) >= 16 ? 16 : 4);

		if (raw.n == 16) {
			memcpy(&s6.sin6_addr, raw.p, 16);
			memcpy(&a.addr[a.n++], &s6, sizeof(s6));
		} else {
			memcpy(&s4.sin_addr, raw.p, 4);
			memcpy(&a.addr[a.n++], &s4, sizeof(s4));
		}
	}
	id = r->asked[i];
	r->asked[i] = r->asked[--r->n];
	r->ops->on_answer(r->ops->arg, id, &a);
}

static void act(struct world *w, uint8_t what, uint8_t which, sv bytes)
{
	switch (what % 8) {
	case 0:
	case 1:
		connect_frame(w, which, what % 8 == 0 ? bytes : SV("a.test"));
		break;
	case 2:
		(void)ipc_send(w->gw, DIAL_CANCEL, which, NULL, NULL, 0, NULL);
		turn(w);
		w->waiting[which] = false;
		break;
	case 3:
	case 4:
		answer(which, bytes);
		break;
	case 5:
		verdict(w, which, false);
		break;
	default:
		verdict(w, which, true);
	}
	turn(w);
}

/* Everything is answered now. */
static void end(struct world *w)
{
	for (int i = 0; i < 4096 && (w->questions != 0 || the_resolver.n != 0); i++) {
		verdict(w, 0, false);
		answer(0, (sv){ NULL, 0 });
		turn(w);
	}
	for (int i = 0; i < 2000 && (i < 4 || w->tickets != 0) && !w->dial->stopped; i++) {
		turn(w);
		if (i >= 4)
			(void)usleep(1000); /* a busy kernel may take its time to connect */
	}
	if (w->dial->err.code == BOX_OK && !w->dial->stopped) {
		CHECK(w->tickets == 0);
		for (size_t i = 0; i < 256; i++)
			CHECK(!w->waiting[i]);
	}
	dial_free(w->dial);
	event_base_free(w->base);
	fd_drop(&w->mon);
	fd_drop(&w->gw);
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	static struct world w = { .m = IPC_MSG_INIT };
	struct rd in = rd_of(d, n);

	begin(&w);
	for (int i = 0; i < 64 && rd_left(&in) >= 3 && !w.dial->stopped; i++) {
		uint8_t what = rd_u8(&in), which = rd_u8(&in);
		size_t len = rd_u8(&in);

		act(&w, what, which, rd_bytes(&in, len < rd_left(&in) ? len : rd_left(&in)));
	}
	end(&w);
	return 0;
}
