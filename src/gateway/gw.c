/* gw: the channels to the monitor and to box-dial, the listeners, and the clock. Peers: the monitor
 * is trusted, box-dial is trusted with sockets only. */
#include "gateway/gw_int.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "dial/proto.h"

#include "base/ban.h"

#define ST_CONFIG  1u
#define ST_RUN     2u
#define SLOT_BITS  12
#define SLOTS_MAX  (1u << SLOT_BITS)
#define ACCEPT_MAX 16 /* connections taken before other events get their turn */

static void stop(struct gw *g, const struct box_err *err)
{
	if (g->stopped)
		return;
	g->stopped = true;
	if (err != NULL)
		g->err = *err;
	(void)event_base_loopbreak(g->base);
}

int gw_ask(struct conn *c, struct chan *to, uint16_t type, const struct buf *body)
{
	struct gw *g = c->gw;

	g->ask_seq++;
	c->ask_id = (uint32_t)(g->ask_seq << SLOT_BITS) | (uint32_t)c->slot;
	if (c->ask_id == 0) /* slot 0 when the sequence wraps: 0 means none */
		c->ask_id = 1u << SLOT_BITS;
	return chan_send(to, type, c->ask_id, body, -1, NULL);
}

/* The connection that asked this, NULL when it is gone or asks nothing of the kind. */
static struct conn *asker(struct gw *g, uint32_t id, enum conn_state state)
{
	size_t slot = id & (SLOTS_MAX - 1);
	struct conn *c = slot < g->conns_max ? g->conns[slot] : NULL;

	if (c == NULL || id == 0 || c->ask_id != id || c->state != state)
		return NULL;
	c->ask_id = 0;
	return c;
}

void gw_cancel(struct conn *c)
{
	if (c->ask_id != 0 && c->state == CONN_DIAL)
		(void)chan_send(c->gw->dial, DIAL_CANCEL, c->ask_id, NULL, -1, NULL);
	c->ask_id = 0;
}

void gw_control(struct gw *g, const struct conn *c, enum gw_control what,
    const struct authority *to, sv method, sv path, sv text)
{
	AUTO_BUF b = buf_with(IPC_BODY_MAX);

	buf_put_u32(&b, c != NULL ? c->sandbox : 0);
	buf_put_u64(&b, c != NULL ? c->serial : 0);
	buf_put_byte(&b, (uint8_t)what);
	buf_put_str(&b, to != NULL ? host_sv(&to->host) : (sv){ NULL, 0 });
	buf_put_u16(&b, to != NULL ? to->port : 0);
	buf_put_str(&b, method);
	buf_put_str(&b, path);
	buf_put_str(&b, text);
	(void)chan_send(g->mon, GW_CONTROL, 0, &b, -1, NULL); /* a closed channel ends us anyway */
}

void gw_done(struct gw *g, uint64_t ticket, uint16_t status, uint64_t body)
{
	uint8_t room[8 + 2 + 8]; /* must not fail for want of memory */
	struct buf b = { .p = room, .cap = sizeof(room), .max = sizeof(room) };
	struct box_err err = { 0 };

	buf_put_u64(&b, ticket);
	buf_put_u16(&b, status);
	buf_put_u64(&b, body);
	/* An outcome that is lost would leave a count too low: better no gateway. */
	if (chan_send(g->mon, MON_DONE_HTTP, 0, &b, -1, &err) < 0)
		stop(g, &err);
}

/* --- box-dial --- */

static int on_socket(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct conn *c = asker(ctx, m->id, CONN_DIAL);

	(void)err;
	if (c == NULL)
		return 0; /* the descriptor is closed with the message */
	conn_on_socket(c, ipc_msg_take_fd(m, 0));
	conn_run(c);
	return 0;
}

static int on_denied(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct conn *c = asker(ctx, m->id, CONN_DIAL);
	sv text = rd_str(&m->body, MON_REASON_MAX);

	if (!rd_done(&m->body))
		return box_fail(err, BOX_EDENIED, 0, "malformed DENIED from box-dial");
	if (c == NULL)
		return 0;
	conn_on_denied(c, text);
	conn_run(c);
	return 0;
}

static int on_failed(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct conn *c = asker(ctx, m->id, CONN_DIAL);
	sv text;

	(void)rd_u8(&m->body);
	text = rd_str(&m->body, MON_REASON_MAX);
	if (!rd_done(&m->body))
		return box_fail(err, BOX_EDENIED, 0, "malformed FAILED from box-dial");
	if (c == NULL)
		return 0;
	conn_on_failed(c, text);
	conn_run(c);
	return 0;
}

static const struct ipc_rule dial_table[] = {
	{ DIAL_SOCKET, "SOCKET", ST_RUN, 1, 1, 256, on_socket },
	{ DIAL_DENIED, "DENIED", ST_RUN, 0, 0, MON_REASON_MAX + 8, on_denied },
	{ DIAL_FAILED, "FAILED", ST_RUN, 0, 0, MON_REASON_MAX + 8, on_failed },
	{ 0 },
};

/* The monitor may close: the box ended, and so do we. */
static void on_end(void *arg, const struct box_err *err)
{
	stop(arg, err->code != BOX_OK ? err : NULL);
}

static const struct chan_ops dial_ops = { dial_table, on_end, "box-dial" };

/* --- listeners --- */

/* Close the connection that has waited longest for its client. */
static bool close_oldest(struct gw *g)
{
	struct conn *oldest = NULL;

	for (size_t i = 0; i < g->conns_max; i++) {
		struct conn *c = g->conns[i];

		if (c != NULL && conn_is_idle(c) &&
		    (oldest == NULL || c->since_ns < oldest->since_ns))
			oldest = c;
	}
	g->load_n++;
	if (oldest == NULL)
		return false;
	conn_free(oldest);
	return true;
}

/* The timer runs while there is something to time. */
void gw_wake(struct gw *g)
{
	static const struct timeval every = { GW_TICK_MS / 1000, GW_TICK_MS % 1000 * 1000 };

	if (!event_pending(g->tick, EV_TIMEOUT, NULL))
		(void)event_add(g->tick, &every);
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct listener *l = arg;

	(void)what;
	for (int i = 0; i < ACCEPT_MAX; i++) {
		int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (c < 0) {
			/* Out of descriptors although slots bound them (the limit is lower than
			 * planned for), or of memory. One idle connection makes room; else the
			 * listener rests until the next tick. */
			if ((errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			        errno == ENOMEM) &&
			    !close_oldest(l->gw))
				(void)event_del(l->ev);
			return; /* EAGAIN, or a client that is gone already */
		}
		if (l->gw->conns_n < l->gw->conns_max || close_oldest(l->gw))
			conn_new(l->gw, c, l->sandbox);
		else
			fd_drop(&c);
	}
}

static void listener_free(struct listener *l)
{
	if (l->ev != NULL)
		event_free(l->ev);
	fd_drop(&l->fd);
	free(l);
}

static int on_listener(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct gw *g = ctx;
	uint32_t sandbox = rd_u32(&m->body);
	struct listener *l;
	int listens = 0;
	socklen_t n = sizeof(listens);

	(void)rd_str(&m->body, MON_NAME_MAX);
	if (!rd_done(&m->body))
		return box_fail(err, BOX_EDENIED, 0, "malformed LISTENER");
	/* Anything else would be ready for ever, and never accept. */
	if (getsockopt(m->fds[0], SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) < 0 || listens == 0)
		return box_fail(err, BOX_EDENIED, 0, "LISTENER without a listening socket");
	if (g->listeners_n == GW_LISTENERS_MAX)
		return box_fail(err, BOX_ELIMIT, 0, "more than %u listeners", GW_LISTENERS_MAX);
	l = calloc(1, sizeof(*l));
	if (l == NULL)
		return box_nomem(err, "listener");
	l->gw = g;
	l->sandbox = sandbox;
	l->fd = ipc_msg_take_fd(m, 0);
	l->ev = event_new(g->base, l->fd, EV_READ | EV_PERSIST, on_accept, l);
	if (l->ev == NULL || fd_set_nonblock(l->fd, true) < 0 || event_add(l->ev, NULL) < 0) {
		listener_free(l);
		return box_fail(err, BOX_ESYS, errno, "watch a listener");
	}
	g->listeners[g->listeners_n++] = l;
	return 0;
}

static int on_unlisten(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct gw *g = ctx;
	uint32_t sandbox = rd_u32(&m->body);

	if (!rd_done(&m->body))
		return box_fail(err, BOX_EDENIED, 0, "malformed UNLISTEN");
	for (size_t i = 0; i < g->listeners_n;) {
		if (g->listeners[i]->sandbox != sandbox) {
			i++;
			continue;
		}
		listener_free(g->listeners[i]);
		g->listeners[i] = g->listeners[--g->listeners_n];
	}
	for (size_t i = 0; i < g->conns_max; i++) {
		if (g->conns[i] != NULL && g->conns[i]->sandbox == sandbox)
			conn_free(g->conns[i]);
	}
	return 0;
}

/* --- the monitor --- */

static int on_pem(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct gw *g = ctx;
	uint16_t target = rd_u16(&m->body);
	sv pem = rd_str(&m->body, GW_PEM_CHUNK_MAX);

	if (!rd_done(&m->body))
		return box_fail(err, BOX_EDENIED, 0, "malformed PEM");
	return tls_trust_chunk(g->tls, target, pem, err);
}

static int on_route(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct gw *g = ctx;

	return routes_add(&g->routes, &m->body, err);
}

static uint32_t or_default(uint32_t v, uint32_t def)
{
	return v != 0 ? v : def;
}

static int on_start(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct gw *g = ctx;
	uint32_t conns = rd_u32(&m->body), head = rd_u32(&m->body), idle = rd_u32(&m->body);
	uint32_t stall = rd_u32(&m->body);

	if (!rd_done(&m->body) || conns > SLOTS_MAX)
		return box_fail(err, BOX_EDENIED, 0, "malformed START");
	g->conns_max = or_default(conns, GW_CONNECTIONS_MAX);
	g->head_ms = or_default(head, GW_HEAD_MS);
	g->idle_ms = or_default(idle, GW_IDLE_MS);
	g->stall_ms = or_default(stall, GW_STALL_MS);
	g->conns = calloc(g->conns_max, sizeof(*g->conns));
	if (g->conns == NULL)
		return box_nomem(err, "connections");
	if (tls_trust_end(g->tls, err) < 0)
		return -1;
	g->dial = chan_new(g->base, ipc_msg_take_fd(m, 0), &dial_ops, g, ST_RUN, err);
	if (g->dial == NULL)
		return -1;
	g->started = true;
	chan_set_state(g->mon, ST_RUN);
	return 0;
}

static int on_stop(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	(void)m;
	(void)err;
	stop(ctx, NULL);
	return 0;
}

static int on_verdict(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct gw *g = ctx;
	struct conn *c = asker(g, m->id, CONN_ASK);

	(void)err;
	if (c == NULL) {
		/* The client left while the question was open: nothing was sent, no reply came. */
		if (rd_u8(&m->body) == 1) {
			uint64_t ticket = rd_u64(&m->body);

			if (!m->body.bad)
				gw_done(g, ticket, 0, 0);
		}
		return 0;
	}
	exch_on_verdict(c, &m->body);
	conn_run(c);
	return 0;
}

static int on_leaf(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct gw *g = ctx;
	struct conn *c = asker(g, m->id, CONN_LEAF);
	bool ok = rd_u8(&m->body) != 0;
	sv body = rd_str(&m->body, MON_REASON_MAX);
	struct box_err why = { 0 };
	sv text = ok ? (sv){ NULL, 0 } : body;

	if (!rd_done(&m->body))
		return box_fail(err, BOX_EDENIED, 0, "malformed LEAF");
	if (c == NULL)
		return 0;
	if (ok && tls_add_leaf(g->tls, host_sv(&c->x->to.host), body, gw_now(g), &why) < 0)
		text = sv_c(why.msg);
	conn_on_leaf(c, text);
	conn_run(c);
	return 0;
}

static const struct ipc_rule mon_table[] = {
	{ GW_PEM, "PEM", ST_CONFIG, 0, 0, GW_PEM_CHUNK_MAX + 16, on_pem },
	{ GW_ROUTE, "ROUTE", ST_CONFIG, 0, 0, IPC_BODY_MAX, on_route },
	{ MON_START, "START", ST_CONFIG, 1, 1, 64, on_start },
	{ MON_STOP, "STOP", ST_CONFIG | ST_RUN, 0, 0, 0, on_stop },
	{ GW_LISTENER, "LISTENER", ST_RUN, 1, 1, MON_NAME_MAX + 16, on_listener },
	{ GW_UNLISTEN, "UNLISTEN", ST_RUN, 0, 0, 4, on_unlisten },
	{ GW_LEAF, "LEAF", ST_RUN, 0, 0, MON_REASON_MAX + 16, on_leaf },
	{ MON_VERDICT, "VERDICT", ST_RUN, 0, 0, IPC_BODY_MAX, on_verdict },
	{ 0 },
};

static const struct chan_ops mon_ops = { mon_table, on_end, NULL };

void gw_tick(struct gw *g)
{
	int64_t now = gw_now(g);

	for (size_t i = 0; i < g->conns_max; i++) {
		if (g->conns[i] != NULL)
			conn_tick(g->conns[i], now);
	}
	if (g->load_n != 0 && now >= g->load_next_ns) {
		AUTO_BUF n = buf_with(32);

		buf_putf(&n, "%llu", (unsigned long long)g->load_n);
		gw_control(g, NULL, GW_CTL_LOAD, NULL, (sv){ NULL, 0 }, buf_sv(&n),
		    SV("connections were closed by a limit or a time-out"));
		g->load_n = 0;
		g->load_next_ns = now + 60 * NS_PER_SEC;
	}
	for (size_t i = 0; i < g->listeners_n; i++)
		(void)event_add(g->listeners[i]->ev, NULL); /* those that rested */
	if (g->conns_n == 0 && g->load_n == 0)
		(void)event_del(g->tick);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	gw_tick(arg);
}

struct gw *gw_new(struct event_base *base, int mon_fd, struct clock mono, struct box_err *err)
{
	AUTO_FD own = mon_fd;
	struct gw *g = calloc(1, sizeof(*g));
	AUTO_BUF hello = buf_with(64);

	if (g == NULL) {
		(void)box_nomem(err, "gateway");
		return NULL;
	}
	g->base = base;
	g->mono = mono;
	routes_init(&g->routes);
	g->tls = tls_new(err);
	if (g->tls == NULL)
		goto fail;
	g->mon = chan_new(base, fd_take(&own), &mon_ops, g, ST_CONFIG, err);
	if (g->mon == NULL)
		goto fail;
	buf_put_u32(&hello, MON_VERSION);
	buf_put_str(&hello, SV("box-gateway"));
	if (chan_send(g->mon, MON_HELLO, 0, &hello, -1, err) < 0)
		goto fail;
	g->tick = event_new(base, -1, EV_PERSIST, on_tick, g);
	if (g->tick == NULL) {
		(void)box_fail(err, BOX_ESYS, errno, "make a timer");
		goto fail;
	}
	return g;
fail:
	gw_free(g);
	return NULL;
}

void gw_free(struct gw *g)
{
	if (g == NULL)
		return;
	for (size_t i = 0; i < g->conns_max; i++) {
		if (g->conns[i] != NULL)
			conn_free(g->conns[i]);
	}
	free(g->conns);
	while (g->listeners_n != 0)
		listener_free(g->listeners[--g->listeners_n]);
	if (g->tick != NULL)
		event_free(g->tick);
	chan_free(g->dial);
	chan_free(g->mon);
	routes_fini(&g->routes);
	tls_free(g->tls);
	free(g);
}

const struct box_err *gw_error(const struct gw *g)
{
	return &g->err;
}

size_t gw_connections(const struct gw *g)
{
	return g->conns_n;
}
