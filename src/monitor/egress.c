/* box-gateway and box-dial as the monitor sees them. See gateway/proto.h and dial/proto.h.
 *
 * Both are started when the first connection arrives at a sandbox's listener: a box that never goes
 * out never pays for them. The gateway parses hostile bytes; what it says about a request is what
 * the decision is about. A secret leaves this process only in a permit, for a route that covers the
 * request by our own check. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "dial/proto.h"
#include "gateway/proto.h"
#include "monitor/internal.h"
#include "base/ban.h"

#define STATE_NEW  1U
#define STATE_LIVE 2U

struct egress_listener {
	struct egress_listener *next;
	struct monitor *m;
	uint32_t sandbox;
	const char *label;
	int fd; /* -1 once the gateway has it */
	struct loop_watch *watch;
};

/* ------------------------------------------------------------------------------ box-dial */

static int on_dial_hello(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct monitor *m = ctx;

	if (!crew_hello_ok(msg, err))
		return -1;
	chan_set_state(m->dial.chan, STATE_LIVE);
	return 0;
}

static int on_ask_connect(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct monitor *m = ctx;
	struct ask a = { .kind = ASK_CONNECT };

	a.host = rd_str(&msg->body, MON_NAME_MAX);
	a.port = rd_u16(&msg->body);
	a.ip = rd_str(&msg->body, 64);
	(void)rd_u32(&msg->body); /* the sandbox */
	if (!rd_done(&msg->body) || a.host.n == 0 || a.port == 0)
		return box_fail(err, BOX_EDENIED, 0, "a malformed connect question");
	monitor_drain(m);
	return chan_decide(m->dial.chan, msg->id, &a, 1, (sv){ NULL, 0 }, err);
}

static int on_done_connect(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct monitor *m = ctx;
	uint64_t ticket = rd_u64(&msg->body);
	uint8_t connected = rd_u8(&msg->body);

	if (!rd_done(&msg->body) || connected > 1)
		return box_fail(err, BOX_EDENIED, 0, "a malformed outcome");
	return decide_done_connect(
	    m->decider, chan_owner(m->dial.chan), ticket, connected == 1, err);
}

static int on_dial_floor(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct monitor *m = ctx;
	struct ask a = { .kind = ASK_CONNECT };
	sv text;

	(void)rd_u64(&msg->body); /* the ticket: its outcome comes by DONE_CONNECT */
	a.host = rd_str(&msg->body, MON_NAME_MAX);
	a.port = rd_u16(&msg->body);
	a.ip = rd_str(&msg->body, 64);
	(void)rd_u32(&msg->body); /* the sandbox */
	text = rd_str(&msg->body, MON_REASON_MAX);
	if (!rd_done(&msg->body))
		return box_fail(err, BOX_EDENIED, 0, "a malformed floor record");
	decide_note_enforcement(m->decider, &a, "egress", text);
	return 0;
}

static const struct ipc_rule dial_table[] = {
	{ MON_HELLO, "HELLO", STATE_NEW, 0, 0, 256, on_dial_hello },
	{ MON_FATAL, "FATAL", STATE_NEW | STATE_LIVE, 0, 0, MON_REASON_MAX + 8, crew_on_fatal },
	{ MON_ASK_CONNECT, "ASK_CONNECT", STATE_LIVE, 0, 0, 2048, on_ask_connect },
	{ MON_DONE_CONNECT, "DONE_CONNECT", STATE_LIVE, 0, 0, 16, on_done_connect },
	{ DIAL_FLOOR, "FLOOR", STATE_LIVE, 0, 0, MON_REASON_MAX + 2048, on_dial_floor },
	{ 0 },
};

static void on_dial_end(void *ctx, const char *why)
{
	struct monitor *m = ctx;

	m->dial.chan = NULL;
	crew_end(&m->dial);
	if (!m->stopping)
		monitor_fail(m, "egress proxy failed: box-dial ended: %s",
		    why != NULL ? why : "it closed its channel");
}

static const struct chan_ops dial_ops = { "box-dial", dial_table, on_dial_end };

static int start_dial(struct monitor *m, int gateway_end, struct box_err *err)
{
	AUTO_BUF b = buf_with(IPC_BODY_MAX);

	buf_put_u32(&b, (uint32_t)m->plan->resolves_n);
	for (size_t i = 0; i < m->plan->resolves_n; i++) {
		const struct plan_resolve *r = &m->plan->resolves[i];

		buf_put_str(&b, r->host);
		buf_put_u16(&b, r->port);
		buf_put_str(&b, r->addr);
		buf_put_u16(&b, r->addr_port);
	}
	buf_put_u32(&b, 0);
	buf_put_u32(&b, 0);
	if (!buf_ok(&b))
		return box_fail(err, BOX_ELIMIT, 0, "[resolve] has too many entries");
	if (crew_start(m, &m->dial, "box-dial", WORKER_DIAL, NULL, 0, &dial_ops, m, err) != 0)
		return -1;
	chan_send(m->dial.chan, MON_START, 0, &b, &gateway_end, 1);
	return 0;
}

/* --------------------------------------------------------------------------- box-gateway */

static int on_gateway_hello(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct monitor *m = ctx;

	if (!crew_hello_ok(msg, err))
		return -1;
	chan_set_state(m->gateway.chan, STATE_LIVE);
	return 0;
}

static int on_ask_leaf(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct monitor *m = ctx;
	AUTO_BUF b = buf_with(IPC_BODY_MAX), der = buf_with(65536);
	struct box_err why = { 0 };
	sv host = rd_str(&msg->body, MON_NAME_MAX);
	sv spki = rd_str(&msg->body, CA_SPKI_MAX);

	if (!rd_done(&msg->body))
		return box_fail(err, BOX_EDENIED, 0, "a malformed leaf request");
	if (ca_issue(m->ca, host, spki, &der, &why) == 0) {
		buf_put_byte(&b, 1);
		buf_put_str(&b, buf_sv(&der));
	} else {
		buf_put_byte(&b, 0);
		buf_put_str(&b, sv_c(why.msg));
	}
	chan_send(m->gateway.chan, GW_LEAF, msg->id, &b, NULL, 0);
	return 0;
}

struct http_answer {
	struct monitor *m;
	uint32_t id;
	uint16_t route;
};

static void on_http_decided(void *arg, const struct decision *d)
{
	struct http_answer *a = arg;
	struct monitor *m = a->m;

	if (d != NULL && !d->permit) {
		chan_deny(m->gateway.chan, a->id, d->index, d->text);
	} else if (d != NULL) {
		AUTO_BUF b = buf_with(IPC_BODY_MAX), value = buf_with(GW_VALUE_MAX);

		buf_put_byte(&b, 1);
		buf_put_u64(&b, d->ticket);
		if (a->route == GW_ROUTE_NONE) {
			buf_put_u16(&b, 0);
			buf_put_u16(&b, 0);
		} else {
			const struct route *r = &m->routes.v[a->route];

			buf_put_sv(&value, r->plan->prefix);
			buf_put_sv(&value, secret_sv(r->secret));
			buf_put_u16(&b, 1);
			buf_put_byte(&b, GW_EDIT_SET);
			buf_put_str(&b, r->plan->header);
			buf_put_str(&b, buf_sv(&value));
			buf_put_u16(&b, 1);
			buf_put_str(&b, secret_sv(r->secret));
		}
		chan_send(m->gateway.chan, MON_VERDICT, a->id, &b, NULL, 0);
	}
	free(a);
}

static int on_ask_http(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct monitor *m = ctx;
	struct ask a = { .kind = ASK_HTTP };
	struct http_answer *answer;
	uint16_t route;
	uint8_t token;
	sv parent;

	(void)rd_u32(&msg->body); /* the sandbox */
	a.request_id = rd_u64(&msg->body);
	a.host = rd_str(&msg->body, MON_NAME_MAX);
	a.port = rd_u16(&msg->body);
	a.method = rd_str(&msg->body, MON_NAME_MAX);
	a.path = rd_str(&msg->body, IPC_BODY_MAX);
	a.body_bytes = rd_u64(&msg->body);
	a.intercepted = rd_u8(&msg->body) == 1;
	route = rd_u16(&msg->body);
	token = rd_u8(&msg->body);
	parent = rd_str(&msg->body, 64);
	/* Without a path it would fit the destination of any (plan_dest_covers). */
	if (!rd_done(&msg->body) || a.host.n == 0 || a.port == 0 || a.path.n == 0)
		return box_fail(err, BOX_EDENIED, 0, "a malformed request question");
	/* The gateway matched the route; the secret is ours, so it is matched again here. */
	if (route != GW_ROUTE_NONE) {
		const struct route *r = route < m->routes.n ? &m->routes.v[route] : NULL;

		if (r == NULL || !route_covers(r, a.host, a.port, a.path, a.intercepted))
			return box_fail(err, BOX_EDENIED, 0,
			    "it named a route that does not cover the request");
		if (token != GW_TOKEN_OK && r->plan->inject == PLAN_PHANTOM)
			return box_fail(
			    err, BOX_EDENIED, 0, "it asked for a secret without the placeholder");
		if (token != GW_TOKEN_OK)
			log_warn("[egress." SV_FMT
			         "] attached its secret to a request without the placeholder "
			         "(inject = \"always\")",
			    SV_ARG(r->plan->name));
	}
	monitor_drain(m);
	answer = malloc(sizeof(*answer));
	if (answer == NULL)
		return box_nomem(err, "an answer");
	*answer = (struct http_answer){ m, msg->id, route };
	if (decide_batch(m->decider, chan_owner(m->gateway.chan), &a, 1, parent, on_http_decided,
	        answer, err) != 0) {
		free(answer);
		return -1;
	}
	return 0;
}

static int on_done_http(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct monitor *m = ctx;
	uint64_t ticket = rd_u64(&msg->body), bytes;
	uint16_t status = rd_u16(&msg->body);

	bytes = rd_u64(&msg->body);
	if (!rd_done(&msg->body) || status > 999)
		return box_fail(err, BOX_EDENIED, 0, "a malformed outcome");
	return decide_done_status(
	    m->decider, chan_owner(m->gateway.chan), ticket, status, bytes, err);
}

static int on_control(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct monitor *m = ctx;
	struct ask a = { .kind = ASK_HTTP };
	sv text;

	(void)rd_u32(&msg->body); /* the sandbox */
	a.request_id = rd_u64(&msg->body);
	(void)rd_u8(&msg->body); /* which control: the text says it */
	a.host = rd_str(&msg->body, MON_NAME_MAX);
	a.port = rd_u16(&msg->body);
	a.method = rd_str(&msg->body, MON_NAME_MAX);
	a.path = rd_str(&msg->body, IPC_BODY_MAX);
	text = rd_str(&msg->body, MON_REASON_MAX);
	if (!rd_done(&msg->body))
		return box_fail(err, BOX_EDENIED, 0, "a malformed control record");
	decide_note_enforcement(m->decider, &a, "egress", text);
	return 0;
}

static const struct ipc_rule gateway_table[] = {
	{ MON_HELLO, "HELLO", STATE_NEW, 0, 0, 256, on_gateway_hello },
	{ MON_FATAL, "FATAL", STATE_NEW | STATE_LIVE, 0, 0, MON_REASON_MAX + 8, crew_on_fatal },
	{ GW_ASK_LEAF, "ASK_LEAF", STATE_LIVE, 0, 0, 2048, on_ask_leaf },
	{ MON_ASK_HTTP, "ASK_HTTP", STATE_LIVE, 0, 0, IPC_BODY_MAX, on_ask_http },
	{ MON_DONE_HTTP, "DONE_HTTP", STATE_LIVE, 0, 0, 32, on_done_http },
	{ GW_CONTROL, "CONTROL", STATE_LIVE, 0, 0, IPC_BODY_MAX, on_control },
	{ 0 },
};

static void on_gateway_end(void *ctx, const char *why)
{
	struct monitor *m = ctx;

	m->gateway.chan = NULL;
	crew_end(&m->gateway);
	if (!m->stopping)
		monitor_fail(m, "egress proxy failed: box-gateway ended: %s",
		    why != NULL ? why : "it closed its channel");
}

static const struct chan_ops gateway_ops = { "box-gateway", gateway_table, on_gateway_end };

static void send_pem(struct monitor *m, uint16_t target, sv pem)
{
	while (pem.n != 0) {
		AUTO_BUF b = buf_with(IPC_BODY_MAX);

		buf_put_u16(&b, target);
		buf_put_str(&b, sv_sub(pem, 0, GW_PEM_CHUNK_MAX));
		chan_send(m->gateway.chan, GW_PEM, 0, &b, NULL, 0);
		pem = sv_sub(pem, GW_PEM_CHUNK_MAX, pem.n);
	}
}

static void send_route(struct monitor *m, uint16_t index)
{
	const struct route *r = &m->routes.v[index];
	AUTO_BUF b = buf_with(IPC_BODY_MAX);

	buf_put_u16(&b, index);
	buf_put_str(&b, r->plan->name);
	buf_put_u16(&b, (uint16_t)r->plan->dests_n);
	for (size_t i = 0; i < r->plan->dests_n; i++) {
		const struct plan_dest *d = &r->plan->dests[i];

		buf_put_str(&b, d->host);
		buf_put_byte(&b, d->subdomains);
		buf_put_u16(&b, d->port);
		buf_put_str(&b, d->path);
		buf_put_byte(&b, d->is_suffix);
	}
	buf_put_str(&b, r->plan->header);
	buf_put_str(&b, r->plan->prefix);
	buf_put_str(&b, sv_c(r->placeholder));
	buf_put_byte(&b, (uint8_t)r->plan->inject);
	chan_send(m->gateway.chan, GW_ROUTE, 0, &b, NULL, 0);
}

/* Roots, routes, limits: everything before the first listener. */
static int configure_gateway(struct monitor *m, int dial_end, struct box_err *err)
{
	AUTO_BUF b = buf_with(64), pem = buf_with(GW_PEM_MAX);
	struct box_err why = { 0 };

	/* A host without roots can still reach destinations whose route brings its own. */
	if (fd_read_file(MONITOR_SYSTEM_ROOTS, GW_PEM_MAX, &pem, &why) != 0)
		log_warn(
		    "no system certificates (%s): install ca-certificates to reach public hosts",
		    why.msg);
	else
		send_pem(m, 0xffff, buf_sv(&pem));
	for (size_t i = 0; i < m->routes.n; i++) {
		const struct plan_route *r = m->routes.v[i].plan;

		send_route(m, (uint16_t)i);
		if (r->trust.n == 0)
			continue;
		buf_clear(&pem);
		if (fd_read_file(r->trust.p, GW_PEM_MAX, &pem, err) != 0)
			return box_wrap(err, "[egress." SV_FMT "] trust", SV_ARG(r->name));
		send_pem(m, (uint16_t)i, buf_sv(&pem));
	}
	for (int i = 0; i < 4; i++)
		buf_put_u32(&b, 0);
	chan_send(m->gateway.chan, MON_START, 0, &b, &dial_end, 1);
	return 0;
}

static int start_gateway(struct monitor *m, struct box_err *err)
{
	AUTO_FD a = -1, b = -1;
	int pair[2];

	if (ipc_pair(pair, err) != 0)
		return -1;
	a = pair[0];
	b = pair[1];
	if (start_dial(m, b, err) != 0)
		return -1;
	if (crew_start(
	        m, &m->gateway, "box-gateway", WORKER_GATEWAY, NULL, 0, &gateway_ops, m, err) != 0)
		return -1;
	return configure_gateway(m, a, err);
}

/* ----------------------------------------------------------------------------- listeners */

static void hand_over(struct monitor *m, struct egress_listener *l)
{
	AUTO_BUF b = buf_with(4096);

	loop_unwatch(m->loop, l->watch);
	l->watch = NULL;
	buf_put_u32(&b, l->sandbox);
	buf_put_str(&b, sv_c(l->label));
	chan_send(m->gateway.chan, GW_LISTENER, 0, &b, &l->fd, 1);
	fd_drop(&l->fd);
}

/* The first connection of the box: now the gateway is needed. */
static void on_first_connection(void *arg, uint32_t events)
{
	struct egress_listener *l = arg;
	struct monitor *m = l->m;
	struct box_err err = { 0 };

	(void)events;
	if (m->gateway.chan == NULL && start_gateway(m, &err) != 0) {
		monitor_fail(m, "egress proxy failed: %s", err.msg);
		return;
	}
	for (l = m->listeners; l != NULL; l = l->next)
		if (l->fd >= 0)
			hand_over(m, l);
}

int egress_listener(
    struct monitor *m, uint32_t sandbox, const char *label, int fd, struct box_err *err)
{
	AUTO_FD own = fd;
	struct egress_listener *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return box_nomem(err, "a listener");
	*l = (struct egress_listener){ .m = m, .sandbox = sandbox, .label = label };
	if (m->gateway.chan == NULL) {
		l->watch = loop_watch(m->loop, own, EPOLLIN, on_first_connection, l, err);
		if (l->watch == NULL) {
			free(l);
			return -1;
		}
	}
	l->fd = fd_take(&own);
	l->next = m->listeners;
	m->listeners = l;
	if (m->gateway.chan != NULL)
		hand_over(m, l);
	return 0;
}

void egress_unlisten(struct monitor *m, uint32_t sandbox)
{
	for (struct egress_listener **at = &m->listeners; *at != NULL; at = &(*at)->next) {
		struct egress_listener *l = *at;

		if (l->sandbox != sandbox)
			continue;
		if (l->fd < 0 && m->gateway.chan != NULL) {
			AUTO_BUF b = buf_with(16);

			buf_put_u32(&b, sandbox);
			chan_send(m->gateway.chan, GW_UNLISTEN, 0, &b, NULL, 0);
		}
		loop_unwatch(m->loop, l->watch);
		fd_drop(&l->fd);
		*at = l->next;
		free(l);
		return;
	}
}

void egress_end(struct monitor *m)
{
	while (m->listeners != NULL)
		egress_unlisten(m, m->listeners->sandbox);
	crew_kill(&m->gateway);
	crew_kill(&m->dial);
	if (m->gateway.chan != NULL)
		chan_end(m->gateway.chan);
	if (m->dial.chan != NULL)
		chan_end(m->dial.chan);
}
