/* exchange: one request and its reply. First the controls and the decision on the head, then both
 * bodies flow with bounded buffers. The client and the origin are both hostile; what is relayed was
 * parsed and is written anew. */
#include "gateway/gw_int.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/ban.h"

#define EXCH_EDITS_MAX ((size_t)GW_EDITS_MAX * (GW_VALUE_MAX + MON_NAME_MAX))

struct exch *exch_new(sv head)
{
	struct exch *x = calloc(1, sizeof(*x));

	if (x == NULL)
		return NULL;
	x->head_bytes = buf_with(HTTP1_HEAD_MAX);
	x->path = buf_with(MON_PATH_MAX);
	x->edits = buf_with(EXCH_EDITS_MAX);
	x->route = GW_ROUTE_NONE;
	redact_init(&x->redact);
	buf_put_sv(&x->head_bytes, head);
	if (!buf_ok(&x->head_bytes)) {
		free(x);
		return NULL;
	}
	return x;
}

void exch_free(struct gw *g, struct exch *x)
{
	if (x == NULL)
		return;
	if (x->has_ticket && !x->reported)
		gw_done(g, x->ticket, 0, x->body_sent);
	buf_fini(&x->head_bytes);
	buf_fini(&x->path);
	buf_fini(&x->edits);
	redact_fini(&x->redact);
	http1_body_fini(&x->req_body);
	http1_body_fini(&x->reply_body);
	free(x);
}

/* traceparent of the W3C form, version 00; anything else is none. */
static sv traceparent(const struct http1_head *h)
{
	static const char shape[] = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
	size_t count;
	const struct http1_field *f = http1_find(h, SV("traceparent"), &count);

	if (count != 1 || f->value.n != sizeof(shape) - 1)
		return (sv){ NULL, 0 };
	for (size_t i = 0; i < f->value.n; i++) {
		char c = f->value.p[i];
		bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');

		if (shape[i] == 'x' ? !hex : c != shape[i])
			return (sv){ NULL, 0 };
	}
	return f->value;
}

void exch_judge(struct conn *c)
{
	struct exch *x = c->x;
	const struct route *r = NULL;
	enum gw_token token = GW_TOKEN_NONE;
	AUTO_BUF b = buf_with(IPC_BODY_MAX);

	x->route = routes_find(&c->gw->routes, host_sv(&x->to.host), x->to.port, buf_sv(&x->path));
	if (x->route != GW_ROUTE_NONE) {
		if (!c->tunnel) {
			conn_refuse(c, GW_CTL_PLAINTEXT, SV(GW_TEXT_PLAIN));
			return;
		}
		r = &c->gw->routes.v[x->route];
		token = route_token(r, &x->req);
		if (r->inject == PLAN_PHANTOM && token != GW_TOKEN_OK) {
			conn_refuse(c, GW_CTL_TOKEN, SV(GW_TEXT_TOKEN));
			return;
		}
	}
	buf_put_u32(&b, c->sandbox);
	buf_put_u64(&b, c->serial);
	buf_put_str(&b, host_sv(&x->to.host));
	buf_put_u16(&b, x->to.port);
	buf_put_str(&b, x->req.method);
	buf_put_str(&b, buf_sv(&x->path));
	buf_put_u64(&b, x->req.framing == HTTP1_LENGTH ? x->req.length : 0);
	buf_put_byte(&b, c->tunnel);
	buf_put_u16(&b, x->route);
	buf_put_byte(&b, (uint8_t)token);
	buf_put_str(&b, traceparent(&x->req));
	conn_set(c, CONN_ASK);
	if (gw_ask(c, c->gw->mon, MON_ASK_HTTP, &b) < 0)
		conn_fail(c, 503, "the box is overloaded or ending");
}

/* Permitted: the edits and the secrets of the verdict. */
static int take_permit(struct exch *x, struct rd *body)
{
	uint16_t n, m;

	x->ticket = rd_u64(body);
	x->has_ticket = !body->bad;
	n = rd_u16(body);
	if (n > GW_EDITS_MAX)
		return -1;
	x->edits_n = n;
	for (uint16_t i = 0; i < n; i++) {
		buf_put_byte(&x->edits, rd_u8(body));
		buf_put_str(&x->edits, rd_str(body, MON_NAME_MAX));
		buf_put_str(&x->edits, rd_str(body, GW_VALUE_MAX));
	}
	m = rd_u16(body);
	if (m > GW_REDACT_MAX)
		return -1;
	for (uint16_t i = 0; i < m; i++) {
		if (redact_add(&x->redact, rd_str(body, REDACT_LENGTH)) < 0)
			return -1;
	}
	return rd_done(body) && buf_ok(&x->edits) ? 0 : -1;
}

void exch_on_verdict(struct conn *c, struct rd *body)
{
	struct exch *x = c->x;
	AUTO_BUF text = buf_with(MON_REASON_MAX + sizeof(GW_GATE_PREFIX));

	if (rd_u8(body) == 0) {
		(void)rd_u16(body);
		buf_put_c(&text, GW_GATE_PREFIX);
		buf_put_sv(&text, rd_str(body, MON_REASON_MAX));
		if (!rd_done(body))
			conn_fail(c, 503, "the box is ending");
		else
			conn_reply(c, 403, true, true, buf_sv(&text));
		return;
	}
	/* A secret is for TLS alone, whatever the verdict says. */
	if (take_permit(x, body) < 0 || (!c->tunnel && (x->edits_n != 0 || x->redact.n != 0))) {
		conn_fail(c, 503, "the box is ending");
		return;
	}
	if (!c->tunnel || (c->up.ssl != NULL && !c->up.handshaking)) {
		exch_forward(c);
		return;
	}
	conn_set(c, CONN_UP_TLS);
	if (c->up.ssl == NULL) {
		struct box_err err = { 0 };
		struct ssl_st *ssl =
		    tls_client(c->gw->tls, &c->gw->routes, &x->to.host, x->to.port, &err);

		if (ssl == NULL)
			conn_fail(c, 502, "bad gateway: %s", err.msg);
		else
			stream_start_tls(&c->up, ssl);
	}
}

void exch_forward(struct conn *c)
{
	struct exch *x = c->x;
	struct box_err err = { 0 };
	AUTO_BUF head = buf_with(2 * HTTP1_HEAD_MAX + EXCH_EDITS_MAX);

	if (headers_request(&head, x, c->tunnel, &err) < 0) {
		conn_fail(c, 502, "bad gateway: %s", err.msg);
		return;
	}
	x->forwarded = true;
	x->up_keep = true;
	http1_body_init(&x->req_body, &x->req);
	conn_set(c, CONN_RELAY);
	if (!stream_put(&c->up, buf_sv(&head)))
		x->req_abandoned = true; /* the origin is gone; the reply side says so */
	buf_fini(&x->edits);
}

/* A piece of body in the framing of its receiver. */
static bool put_piece(struct stream *to, bool chunked, sv data)
{
	char line[24];

	if (data.n == 0)
		return true;
	if (!chunked)
		return stream_put(to, data);
	(void)snprintf(line, sizeof(line), "%zx\r\n", data.n);
	return stream_put(to, sv_c(line)) && stream_put(to, data) && stream_put(to, SV("\r\n"));
}

/* Client to origin. */
static bool relay_request(struct conn *c)
{
	struct exch *x = c->x;
	bool chunked = x->req.framing == HTTP1_CHUNKED, moved = false;

	while (!x->req_done && !x->req_abandoned && stream_pending(&c->up) < STREAM_OUT_HIGH) {
		struct box_err err = { 0 };
		size_t used;
		sv data;
		enum http1_step step =
		    http1_body_step(&x->req_body, stream_in(&c->client), &used, &data, &err);

		if (step == HTTP1_BAD) {
			/* The origin must not take what it has for a whole request: its connection
			 * ends here. */
			stream_close(&c->up);
			if (x->replying)
				conn_set(c, CONN_DEAD);
			else
				conn_fail(c, 400, "bad request: %s", err.msg);
			return true;
		}
		if (step == HTTP1_DATA) {
			if (put_piece(&c->up, chunked, data))
				x->body_sent += data.n;
			else
				x->req_abandoned = true;
		}
		if (step == HTTP1_END) {
			x->req_done = true;
			if (chunked && !(stream_put(&c->up, SV("0\r\n")) &&
			                   stream_put(&c->up, buf_sv(&x->req_body.trailers)) &&
			                   stream_put(&c->up, SV("\r\n"))))
				x->req_abandoned = true;
		}
		stream_take(&c->client, used);
		moved = moved || used != 0 || step == HTTP1_END;
		if (step == HTTP1_MORE) {
			if (stream_ended(&c->client)) { /* half a request */
				conn_set(c, CONN_DEAD);
				return true;
			}
			break;
		}
	}
	if (c->up.out_failed)
		x->req_abandoned = true;
	return moved;
}

static bool is_compressed(const struct http1_head *h)
{
	for (size_t i = 0; i < h->n; i++) {
		if (sv_eq_nocase(h->field[i].name, SV("Content-Encoding")) &&
		    h->field[i].value.n != 0 && !sv_eq_nocase(h->field[i].value, SV("identity")))
			return true;
	}
	return false;
}

/* The final head of the reply has come. */
static void begin_reply(struct conn *c, const struct http1_head *h)
{
	struct exch *x = c->x;
	struct box_err err = { 0 };
	AUTO_BUF head = buf_with(4 * HTTP1_HEAD_MAX);

	gw_done(c->gw, x->ticket, h->status, x->body_sent);
	x->reported = true;
	if (x->redact.n != 0 && is_compressed(h)) {
		stream_close(&c->up);
		conn_refuse(c, GW_CTL_COMPRESSED, SV(GW_TEXT_COMPRESS));
		return;
	}
	x->up_keep = h->keep_alive;
	/* A tunnel and its origin's connection live and die together. */
	x->close_after = !x->req.keep_alive || x->req_abandoned || (c->tunnel && !h->keep_alive);
	if (headers_reply(&head, x, h, &err) < 0) {
		stream_close(&c->up);
		conn_fail(c, 502, "bad gateway: %s", err.msg);
		return;
	}
	x->replying = true;
	x->no_trailers = !x->chunk_out;
	http1_body_init(&x->reply_body, h);
	(void)stream_put(&c->client, buf_sv(&head)); /* a failure shows as out_failed */
}

/* An informational reply: passed on to clients that know them. false: too many or not allowed. */
static bool relay_inform(struct conn *c, const struct http1_head *h)
{
	struct exch *x = c->x;
	AUTO_BUF head = buf_with(4 * HTTP1_HEAD_MAX);

	if (h->status == 101 || ++x->informs > HTTP1_INFORM_MAX)
		return false;
	if (x->req.minor == 0)
		return true;
	if (headers_reply(&head, x, h, NULL) < 0)
		return false;
	return stream_put(&c->client, buf_sv(&head));
}

/* No reply will come: an honest 502, or, on a connection that had served before, silence: the
 * origin may have closed it while the request was on its way, and then the client must see what it
 * would have seen without us and decide about a retry (RFC 9112 9.3.1). */
static void no_reply(struct conn *c)
{
	bool reset_when_idle = c->up_served != 0 && c->x->informs == 0 && c->x->scan.at == 0;
	struct box_err why = c->up.err;
	bool failed = c->up.failed;

	stream_close(&c->up);
	if (reset_when_idle)
		conn_set(c, CONN_DEAD);
	else
		conn_fail(c, 502, "bad gateway: %s",
		    failed && why.msg[0] != '\0'
		        ? why.msg
		        : "the server closed the connection without a reply");
}

static bool relay_reply_head(struct conn *c)
{
	struct exch *x = c->x;
	struct box_err err = { 0 };
	struct http1_head h;
	size_t used;
	sv head;
	int r = http1_scan(&x->scan, stream_in(&c->up), &head, &used, &err);

	if (r == 0) {
		if (!stream_ended(&c->up))
			return false;
		no_reply(c);
		return true;
	}
	if (r < 0 || http1_response(head, x->is_head, &h, &err) < 0) {
		stream_close(&c->up);
		conn_fail(c, 502, "bad gateway: malformed reply: %s", err.msg);
		return true;
	}
	x->scan = (struct http1_scan){ 0 };
	if (h.status >= 200) {
		begin_reply(c, &h); /* may end the exchange: x is not used below */
	} else if (!relay_inform(c, &h)) {
		stream_close(&c->up);
		conn_fail(c, 502, "bad gateway: %s",
		    h.status == 101 ? "the server switched protocols"
		                    : "too many informational replies");
		return true;
	}
	if (stream_is_open(&c->up))
		stream_take(&c->up, used);
	return true;
}

static void end_reply(struct conn *c)
{
	struct exch *x = c->x;
	AUTO_BUF rest = buf_with(STREAM_OUT_MAX / 2);

	x->reply_done = true;
	(void)redact_end(&x->redact, &rest);
	(void)put_piece(&c->client, x->chunk_out, buf_sv(&rest));
	if (!x->chunk_out)
		return;
	buf_clear(&rest);
	(void)redact_whole(&x->redact, buf_sv(&x->reply_body.trailers), &rest);
	(void)stream_put(&c->client, SV("0\r\n"));
	(void)stream_put(&c->client, buf_sv(&rest));
	(void)stream_put(&c->client, SV("\r\n"));
}

/* Origin to client. */
static bool relay_reply_body(struct conn *c)
{
	struct exch *x = c->x;
	bool moved = false;

	while (!x->reply_done && stream_pending(&c->client) < STREAM_OUT_HIGH &&
	       !c->client.out_failed) {
		struct box_err err = { 0 };
		size_t used;
		sv data;
		enum http1_step step =
		    http1_body_step(&x->reply_body, stream_in(&c->up), &used, &data, &err);

		if (step == HTTP1_DATA && x->redact.n != 0) {
			AUTO_BUF clean = buf_with(STREAM_OUT_MAX);

			if (redact_feed(&x->redact, data, &clean) < 0)
				step = HTTP1_BAD;
			else
				(void)put_piece(&c->client, x->chunk_out, buf_sv(&clean));
		} else if (step == HTTP1_DATA) {
			(void)put_piece(&c->client, x->chunk_out, data);
		}
		if (step == HTTP1_END)
			end_reply(c);
		stream_take(&c->up, used);
		moved = moved || used != 0 || step == HTTP1_END;
		if (step == HTTP1_BAD || (step == HTTP1_MORE && stream_ended(&c->up))) {
			/* Without its last chunk, or short of its length, the client sees that it
			 * is not whole. */
			if (step == HTTP1_BAD || c->up.failed || !http1_body_eof(&x->reply_body)) {
				stream_flush(&c->client);
				conn_set(c, CONN_DEAD);
				return true;
			}
			x->up_keep = false;
			end_reply(c);
			return true;
		}
		if (step == HTTP1_MORE)
			break;
	}
	return moved;
}

/* The reply is complete: what becomes of the two connections? */
static void finish(struct conn *c)
{
	struct exch *x = c->x;
	bool whole = x->req_done && !x->req_abandoned && !c->up.out_failed;
	bool up_keep = x->up_keep && whole && !stream_ended(&c->up) && c->up.in.n == 0;
	bool keep = x->req.keep_alive && whole && !x->close_after && (up_keep || !c->tunnel);

	c->up_served++;
	if (!up_keep)
		stream_close(&c->up);
	exch_free(c->gw, x);
	c->x = NULL;
	if (keep) {
		conn_set(c, CONN_HEAD);
		return;
	}
	conn_set(c, CONN_LINGER);
	stream_finish(&c->client);
}

bool exch_relay(struct conn *c)
{
	struct exch *x = c->x;
	bool moved = relay_request(c);

	if (c->state != CONN_RELAY)
		return true;
	moved = (x->replying ? relay_reply_body(c) : relay_reply_head(c)) || moved;
	if (c->state != CONN_RELAY)
		return true;
	if (x->reply_done) {
		finish(c);
		return true;
	}
	/* Nobody is there to take the reply. A plain client may have closed only its sending side;
	 * under TLS that is not done. */
	if (c->client.failed || c->client.out_failed || (c->tunnel && c->client.eof)) {
		conn_set(c, CONN_DEAD);
		return true;
	}
	return moved;
}
