/* box-dial as a hostile gateway sees it: any frames on its channel. The monitor permits names and
 * refuses every address, so that nothing is dialled; every permitted ticket must get its outcome.
 * Input: a run of { u8 kind, u8 id, u8 length, body }. */
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ipc.h"
#include "dial/dial.h"

#include "dial_start.h"
#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);

struct world {
	struct event_base *base;
	struct dial *dial;
	int mon, gw;
	long open; /* permitted tickets without an outcome */
};

static void lookup(void *arg, const char *name, struct resolver_answer *out)
{
	(void)arg;
	(void)name;
	(void)out; /* nothing has an address */
}

static void start(struct world *w)
{
	struct box_err err = { 0 };
	int mon[2], gw[2];
	AUTO_BUF b = buf_with(64);

	(void)signal(SIGPIPE, SIG_IGN);
	w->base = event_base_new();
	CHECK(ipc_pair(mon, &err) == 0 && ipc_pair(gw, &err) == 0);
	w->mon = mon[0];
	w->gw = gw[0];
	w->open = 0;
	w->dial = dial_new(w->base, mon[1], lookup, NULL, &err);
	CHECK(w->dial != NULL);
	put_dial_start(&b, SV("m.test"), 80, SV("10.0.0.1"), 80);
	CHECK(ipc_send(w->mon, MON_START, 0, &b, &gw[1], 1, &err) == 0);
	(void)close(gw[1]);
	CHECK(fd_set_nonblock(w->mon, true) == 0 && fd_set_nonblock(w->gw, true) == 0);
	(void)event_base_loop(w->base, EVLOOP_NONBLOCK);
}

static void finish(struct world *w)
{
	dial_free(w->dial);
	event_base_free(w->base);
	(void)close(w->mon);
	(void)close(w->gw);
	w->dial = NULL;
}

static void on_mon(struct world *w, struct ipc_msg *m)
{
	AUTO_BUF b = buf_with(64);
	sv ip;

	if (m->type == MON_DONE_CONNECT)
		w->open--;
	if (m->type != MON_ASK_CONNECT)
		return;
	(void)rd_str(&m->body, DIAL_HOST_MAX);
	(void)rd_u16(&m->body);
	ip = rd_str(&m->body, 64);
	(void)rd_u32(&m->body);
	CHECK(rd_done(&m->body));
	buf_put_byte(&b, ip.n == 0);
	if (ip.n == 0) {
		buf_put_u64(&b, 7);
		w->open++;
	} else {
		buf_put_u16(&b, 0);
		buf_put_str(&b, SV("no"));
	}
	CHECK(ipc_send(w->mon, MON_VERDICT, m->id, &b, NULL, 0, NULL) == 0);
}

static void turn(struct world *w, struct ipc_msg *m)
{
	(void)event_base_loop(w->base, EVLOOP_NONBLOCK);
	while (ipc_recv(w->mon, m, NULL) == 1)
		on_mon(w, m);
	while (ipc_recv(w->gw, m, NULL) == 1)
		CHECK(m->type != DIAL_SOCKET);
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	static struct world w;
	static struct ipc_msg m = IPC_MSG_INIT;
	struct rd in = rd_of(d, n);

	if (w.dial == NULL)
		start(&w);
	for (int i = 0; i < 100 && rd_left(&in) != 0; i++) {
		uint8_t kind = rd_u8(&in), id = rd_u8(&in), len = rd_u8(&in);
		sv raw = rd_bytes(&in, len);
		AUTO_BUF b = buf_with(1024);

		if (in.bad)
			break;
		if ((kind & 0x0f) == 0) { /* a well-formed CONNECT to any host text */
			buf_put_str(&b, raw);
			buf_put_u16(&b, (uint16_t)(80 + (kind >> 4)));
			buf_put_u32(&b, 1);
		} else if ((kind & 0x0f) != 1) {
			buf_put_sv(&b, raw);
		}
		(void)ipc_send(w.gw,
		    (kind & 0x0f) == 1 ? DIAL_CANCEL : DIAL_CONNECT + (kind & 0x0f) / 8, id, &b,
		    NULL, 0, NULL);
		if ((kind & 0x80) == 0)
			turn(&w, &m);
	}
	for (int i = 0; i < 3; i++)
		turn(&w, &m);
	if (dial_error(w.dial)->code != BOX_OK)
		finish(&w);
	return 0;
}
