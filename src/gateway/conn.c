/* conn: one connection of the workload, from its first head to its end. Hostile input: every head
 * is read by http1, every name by authority. */
#include "gateway/gw_int.h"

#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fd.h"
#include "dial/proto.h"

#include "base/ban.h"

#define CONN_TEXT_MAX (MON_REASON_MAX + 64)

static void on_stream(void *arg)
{
	conn_run(arg);
}

void conn_set(struct conn *c, enum conn_state state)
{
	c->state = state;
	c->since_ns = gw_now(c->gw);
	c->moved_ns = c->since_ns;
	if (state == CONN_HEAD) {
		c->scan = (struct http1_scan){ 0 };
		c->head_begun = false;
		stream_trim(&c->client);
		stream_trim(&c->up);
	}
}

void conn_new(struct gw *g, int fd, uint32_t sandbox)
{
	AUTO_FD own = fd;
	struct conn *c = calloc(1, sizeof(*c));
	int on = 1;
	size_t slot;

	for (slot = 0; slot < g->conns_max && g->conns[slot] != NULL; slot++)
		;
	if (c == NULL || slot == g->conns_max) {
		free(c);
		return;
	}
	(void)setsockopt(own, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* AF_UNIX in tests */
	c->gw = g;
	c->slot = slot;
	c->serial = ++g->serial;
	c->sandbox = sandbox;
	if (stream_open(&c->client, g->base, fd_take(&own), on_stream, c, NULL) < 0) {
		free(c);
		return;
	}
	g->conns[slot] = c;
	g->conns_n++;
	gw_wake(g);
	conn_set(c, CONN_HEAD);
}

void conn_free(struct conn *c)
{
	struct gw *g = c->gw;

	gw_cancel(c);
	exch_free(g, c->x);
	stream_close(&c->client);
	stream_close(&c->up);
	g->conns[c->slot] = NULL;
	g->conns_n--;
	free(c);
}

bool conn_is_idle(const struct conn *c)
{
	return c->state == CONN_HEAD || c->state == CONN_TLS || c->state == CONN_LINGER;
}

static void end_client(struct conn *c)
{
	exch_free(c->gw, c->x);
	c->x = NULL;
	conn_set(c, CONN_LINGER);
	stream_finish(&c->client);
}

/* May the client go on with another request after a reply of ours? Only when nothing of this one is
 * still to come. */
static bool can_keep(const struct conn *c)
{
	const struct exch *x = c->x;

	if (x == NULL || !x->req.keep_alive || x->forwarded || sv_eq(x->req.method, SV("CONNECT")))
		return false;
	/* A body that is here already is dropped; one that may never come ends the connection. */
	if (x->req.framing != HTTP1_EMPTY &&
	    !(x->req.framing == HTTP1_LENGTH && x->req.length <= c->client.in.n))
		return false;
	return !c->tunnel || (stream_is_open(&c->up) && !stream_ended(&c->up));
}

void conn_reply(struct conn *c, uint16_t status, bool marker, bool keep, sv text)
{
	AUTO_BUF b = buf_with(2 * (size_t)CONN_TEXT_MAX);
	struct exch *x = c->x;

	keep = keep && can_keep(c);
	if (x != NULL && x->forwarded)
		stream_close(&c->up);
	buf_putf(&b, "HTTP/1.1 %u %s\r\n", status, headers_reason(status));
	if (marker)
		buf_put_c(&b, "x-strands-box-egress: refused\r\n");
	buf_putf(&b, "Content-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n%s\r\n",
	    text.n, keep ? "" : "Connection: close\r\n");
	if (x == NULL || !x->is_head)
		buf_put_sv(&b, text);
	(void)stream_put(&c->client, buf_sv(&b)); /* a client that is gone shows in the stream */
	if (!keep) {
		end_client(c);
		return;
	}
	stream_take(&c->client, (size_t)x->req.length);
	exch_free(c->gw, x);
	c->x = NULL;
	conn_set(c, CONN_HEAD);
}

void conn_fail(struct conn *c, uint16_t status, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* cut is fine */
	va_end(ap);
	conn_reply(c, status, false, false, sv_c(text));
}

void conn_refuse(struct conn *c, enum gw_control what, sv text)
{
	const struct exch *x = c->x;

	gw_control(c->gw, c, what, &x->to, x->req.method, buf_sv(&x->path), text);
	if (what == GW_CTL_UPGRADE)
		conn_reply(c, 501, false, true, text);
	else
		conn_reply(c, 403, true, true, text);
}

static void dial(struct conn *c)
{
	AUTO_BUF b = buf_with(IPC_BODY_MAX);

	stream_close(&c->up);
	buf_put_str(&b, host_sv(&c->x->to.host));
	buf_put_u16(&b, c->x->to.port);
	buf_put_u32(&b, c->sandbox);
	conn_set(c, CONN_DIAL);
	if (gw_ask(c, c->gw->dial, DIAL_CONNECT, &b) < 0)
		conn_fail(c, 503, "the box is overloaded or ending");
}

static void bad_request(struct conn *c, const struct box_err *err)
{
	conn_fail(c, 400, "bad request: %s", err->msg);
}

/* Host must say what the request is for. -1: answered. */
static int check_host(struct conn *c, uint16_t default_port)
{
	struct exch *x = c->x;
	struct authority host;
	struct box_err err = { 0 };

	if (x->req.host.p == NULL) /* HTTP/1.0 */
		return 0;
	if (authority_parse(x->req.host, default_port, &host, &err) < 0) {
		bad_request(c, &err);
		return -1;
	}
	if (authority_eq(&host, &x->to))
		return 0;
	conn_refuse(c, GW_CTL_AUTHORITY, SV(GW_TEXT_AUTH));
	return -1;
}

static void begin_connect(struct conn *c)
{
	struct exch *x = c->x;
	struct box_err err = { 0 };

	if (c->tunnel) {
		conn_fail(c, 400, "bad request: CONNECT inside a connection to %s",
		    c->tunnel_to.host.text);
		return;
	}
	if (authority_parse(x->req.target, 0, &x->to, &err) < 0) {
		bad_request(c, &err);
		return;
	}
	if (x->req.framing != HTTP1_EMPTY || c->client.in.n != 0) {
		conn_fail(c, 400, "bad request: data before the answer to CONNECT");
		return;
	}
	if (check_host(c, x->to.port) == 0)
		dial(c);
}

/* Target and Host into x->to, x->path, x->query. -1: answered. */
static int read_target(struct conn *c)
{
	struct exch *x = c->x;
	struct target t;
	struct box_err err = { 0 };
	int r;

	if (c->tunnel)
		r = target_origin(x->req.target, x->req.method, &t, &err);
	else
		r = target_absolute(x->req.target, &t, &err);
	if (r < 0) {
		bad_request(c, &err);
		return -1;
	}
	x->to = c->tunnel ? c->tunnel_to : t.authority;
	if (t.is_asterisk)
		buf_put_byte(&x->path, '*');
	else
		r = path_canon(t.path, &x->path, &err);
	if (r == 0)
		r = query_check(t.query, &err);
	if (r < 0) {
		conn_fail(c, err.code == BOX_ELIMIT ? 414 : 400, "bad request: %s", err.msg);
		return -1;
	}
	x->query = t.query;
	return check_host(c, c->tunnel ? 443 : 80);
}

/* What the gateway does not carry. -1: answered. */
static int check_means(struct conn *c)
{
	const struct exch *x = c->x;
	const struct http1_field *f = http1_find(&x->req, SV("Upgrade"), NULL);

	/* TRACE would show a secret to the workload. */
	if (sv_eq(x->req.method, SV("TRACE")) || sv_eq(x->req.method, SV("TRACK"))) {
		conn_refuse(
		    c, GW_CTL_METHOD, SV("blocked by egress control: TRACE is not forwarded"));
		return -1;
	}
	/* An offer of HTTP/2 may be ignored (RFC 9110 7.8); a protocol that the client waits for
	 * may not. */
	if (f != NULL && !sv_eq_nocase(f->value, SV("h2c"))) {
		conn_refuse(c, GW_CTL_UPGRADE,
		    SV("box-gateway does not carry protocol upgrades (WebSocket); use plain HTTP "
		       "requests"));
		return -1;
	}
	return 0;
}

static void begin_request(struct conn *c)
{
	struct exch *x = c->x;

	x->is_head = sv_eq(x->req.method, SV("HEAD"));
	if (sv_eq(x->req.method, SV("CONNECT"))) {
		begin_connect(c);
		return;
	}
	if (read_target(c) < 0 || check_means(c) < 0)
		return;
	if (stream_is_open(&c->up) && authority_eq(&c->up_to, &x->to) && !stream_ended(&c->up))
		exch_judge(c);
	else if (c->tunnel)
		conn_set(c, CONN_DEAD); /* the origin hung up: so do we */
	else
		dial(c);
}

static bool read_head(struct conn *c)
{
	struct box_err err = { 0 };
	sv in = stream_in(&c->client), head;
	size_t used;
	int r;

	if (stream_is_open(&c->up) && (stream_ended(&c->up) || c->up.in.n != 0)) {
		/* An idle origin closed, or talks out of turn. A tunnel ends with it, so that the
		 * client's pool sees what it would see without us. */
		stream_close(&c->up);
		if (c->tunnel) {
			end_client(c);
			return true;
		}
	}
	if (in.n != 0 && !c->head_begun) {
		c->head_begun = true;
		c->since_ns = gw_now(c->gw);
	}
	r = http1_scan(&c->scan, in, &head, &used, &err);
	if (r == 0) {
		if (!stream_ended(&c->client))
			return false;
		end_client(c); /* what is still to be sent is sent */
		return true;
	}
	if (r < 0) {
		conn_fail(c, err.code == BOX_ELIMIT ? 431 : 400, "bad request: %s", err.msg);
		return true;
	}
	c->x = exch_new(head);
	stream_take(&c->client, used);
	if (c->x == NULL)
		conn_set(c, CONN_DEAD);
	else if (http1_request(buf_sv(&c->x->head_bytes), &c->x->req, &err) < 0)
		conn_fail(c, err.code == BOX_ELIMIT ? 431 : 400, "bad request: %s", err.msg);
	else
		begin_request(c);
	return true;
}

/* Answer CONNECT and begin TLS as the host. */
static void open_tunnel(struct conn *c)
{
	struct box_err err = { 0 };
	struct ssl_st *ssl;

	if (c->client.in.n != 0) {
		conn_fail(c, 400, "bad request: data before the answer to CONNECT");
		return;
	}
	c->tunnel_to = c->x->to;
	ssl = tls_server(c->gw->tls, &c->tunnel_to.host, &c->sni_bad, &err);
	if (ssl == NULL) {
		conn_fail(c, 502, "bad gateway: %s", err.msg);
		return;
	}
	(void)stream_put(&c->client, SV("HTTP/1.1 200 Connection Established\r\n\r\n"));
	stream_flush(&c->client);
	if (c->client.out_failed ||
	    stream_pending(&c->client) != 0) { /* the first 39 bytes always fit */
		SSL_free(ssl);
		conn_set(c, CONN_DEAD);
		return;
	}
	exch_free(c->gw, c->x);
	c->x = NULL;
	c->tunnel = true;
	conn_set(c, CONN_TLS);
	stream_start_tls(&c->client, ssl);
}

void conn_on_socket(struct conn *c, int fd)
{
	struct box_err err = { 0 };
	sv host = host_sv(&c->x->to.host);

	if (stream_open(&c->up, c->gw->base, fd, on_stream, c, &err) < 0) {
		conn_fail(c, 502, "bad gateway: %s", err.msg);
		return;
	}
	c->up_to = c->x->to;
	c->up_served = 0;
	if (!sv_eq(c->x->req.method, SV("CONNECT"))) {
		exch_judge(c);
	} else if (tls_has_leaf(c->gw->tls, host, gw_now(c->gw))) {
		open_tunnel(c);
	} else {
		AUTO_BUF b = buf_with(IPC_BODY_MAX);

		buf_put_str(&b, host);
		buf_put_str(&b, tls_spki(c->gw->tls));
		conn_set(c, CONN_LEAF);
		if (gw_ask(c, c->gw->mon, GW_ASK_LEAF, &b) < 0)
			conn_fail(c, 503, "the box is overloaded or ending");
	}
}

void conn_on_denied(struct conn *c, sv text)
{
	conn_reply(c, 403, true, true, text);
}

void conn_on_failed(struct conn *c, sv text)
{
	conn_fail(c, 502, "bad gateway: %.*s", SV_ARG(text));
}

void conn_on_leaf(struct conn *c, sv error)
{
	if (error.n != 0)
		conn_fail(c, 502, "bad gateway: no certificate for the host: %.*s", SV_ARG(error));
	else
		open_tunnel(c);
}

static bool client_gone(const struct conn *c)
{
	return c->client.failed || c->client.out_failed || (c->tunnel && c->client.eof);
}

/* One move of the state machine; false when there is none. */
static bool step(struct conn *c)
{
	switch (c->state) {
	case CONN_HEAD:
		return read_head(c);
	case CONN_DIAL:
	case CONN_LEAF:
	case CONN_ASK:
		if (!client_gone(c))
			return false;
		gw_cancel(c);
		conn_set(c, CONN_DEAD);
		return true;
	case CONN_TLS:
		if (c->client.failed) {
			if (stream_spoke_http(&c->client)) {
				conn_fail(c, 400,
				    "bad request: plain HTTP inside CONNECT; send http:// URLs to "
				    "the "
				    "proxy itself");
				return true;
			}
			if (c->sni_bad)
				gw_control(c->gw, c, GW_CTL_AUTHORITY, &c->tunnel_to,
				    (sv){ NULL, 0 }, (sv){ NULL, 0 }, SV(GW_TEXT_AUTH));
			conn_set(c, CONN_DEAD);
			return true;
		}
		if (c->client.handshaking)
			return false;
		conn_set(c, CONN_HEAD);
		return true;
	case CONN_UP_TLS:
		if (client_gone(c)) {
			conn_set(c, CONN_DEAD);
			return true;
		}
		if (c->up.failed) {
			conn_fail(c, 502, "bad gateway: %s: %s", c->up_to.host.text, c->up.err.msg);
			return true;
		}
		if (c->up.handshaking)
			return false;
		exch_forward(c);
		return true;
	case CONN_RELAY:
		return exch_relay(c);
	case CONN_LINGER:
		stream_close(&c->up);
		stream_take(&c->client, c->client.in.n);
		if (!stream_ended(&c->client) && !c->client.out_failed)
			return false;
		if (stream_pending(&c->client) != 0 && !c->client.out_failed && !c->client.failed)
			return false; /* a half-closed client still reads */
		conn_set(c, CONN_DEAD);
		return true;
	case CONN_DEAD:
		break;
	}
	return false;
}

void conn_run(struct conn *c)
{
	for (;;) {
		while (step(c))
			;
		if (c->state == CONN_DEAD)
			break;
		stream_flush(&c->client);
		stream_flush(&c->up);
		if (c->client.out_failed && c->state != CONN_DEAD)
			conn_set(c, CONN_DEAD);
		if (c->state == CONN_DEAD)
			break;
		/* What was flushed may have made room to relay more. */
		if (c->state != CONN_RELAY || !step(c))
			return;
	}
	conn_free(c);
}

static bool later(int64_t now_ns, int64_t since_ns, uint32_t ms)
{
	return now_ns - since_ns > (int64_t)ms * NS_PER_MS;
}

/* Has no byte moved on either side for so long? */
static bool quiet(struct conn *c, int64_t now_ns, uint32_t ms)
{
	uint64_t moved = c->client.moved + c->up.moved;

	if (moved != c->moved_seen) {
		c->moved_seen = moved;
		c->moved_ns = now_ns;
	}
	return later(now_ns, c->moved_ns, ms);
}

void conn_tick(struct conn *c, int64_t now_ns)
{
	const struct gw *g = c->gw;
	bool over = false;

	switch (c->state) {
	case CONN_HEAD:
		over = later(now_ns, c->since_ns, c->head_begun ? g->head_ms : g->idle_ms);
		break;
	case CONN_TLS:
		over = later(now_ns, c->since_ns, g->head_ms);
		break;
	case CONN_DIAL: /* box-dial has shorter ones of its own */
	case CONN_UP_TLS:
		if (!later(now_ns, c->since_ns, g->idle_ms))
			return;
		gw_cancel(c);
		conn_fail(c, 504, "gateway timeout: %s does not answer", c->x->to.host.text);
		conn_run(c);
		return;
	case CONN_LEAF:
	case CONN_ASK:
		over = later(now_ns, c->since_ns, g->stall_ms);
		break;
	case CONN_RELAY:
		if (!quiet(c, now_ns, g->stall_ms))
			return;
		if (!c->x->replying) {
			conn_fail(
			    c, 504, "gateway timeout: %s does not answer", c->x->to.host.text);
			conn_run(c);
			return;
		}
		over = true;
		break;
	case CONN_LINGER:
		/* What is pending may take its time. A client that still sends its body gets a
		 * while to read our answer. */
		if (stream_pending(&c->client) != 0)
			over = quiet(c, now_ns, g->stall_ms);
		else
			over = quiet(c, now_ns, GW_LINGER_MS) ||
			       later(now_ns, c->since_ns, g->head_ms);
		break;
	case CONN_DEAD:
		break;
	}
	if (!over)
		return;
	if (c->state != CONN_LINGER)
		c->gw->load_n++;
	conn_free(c);
}
