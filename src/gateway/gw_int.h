/* gw_int: the structures inside box-gateway. One thread; everything hangs from struct gw.
 *
 *   gw.c        channels, START, listeners, answers, time-outs
 *   conn.c      one connection of the workload: heads, CONNECT, refusals, its end
 *   exchange.c  one request and its reply: decided, then relayed both ways
 *   headers.c   the heads that are sent on
 *
 * A connection is driven by conn_run: called after any event, it moves the state machine until
 * nothing changes any more. Nothing of a request goes upstream before its verdict. */
#pragma once

#include "base/clock.h"
#include "dial/chan.h"
#include "gateway/authority.h"
#include "gateway/gw.h"
#include "gateway/http1.h"
#include "gateway/proto.h"
#include "gateway/redact.h"
#include "gateway/route.h"
#include "gateway/stream.h"
#include "gateway/tls.h"

struct event;
struct conn;

struct listener {
	struct gw *gw;
	struct event *ev;
	int fd;
	uint32_t sandbox;
};

struct gw {
	struct event_base *base;
	struct clock mono;
	struct chan *mon, *dial;
	struct tls *tls;
	struct routes routes;
	struct listener *listeners[GW_LISTENERS_MAX];
	size_t listeners_n;
	struct conn **conns; /* conns_max slots */
	size_t conns_max, conns_n;
	uint32_t head_ms, idle_ms, stall_ms;
	struct event *tick;
	uint64_t serial; /* of connections */
	uint32_t ask_seq;
	uint64_t load_n; /* connections closed by limits since the last GW_CTL_LOAD */
	int64_t load_next_ns;
	struct box_err err;
	bool started, stopped;
};

/* One request and its reply. */
struct exch {
	struct buf head_bytes; /* what `req` views */
	struct http1_head req;
	struct authority to; /* where it goes */
	struct buf path;     /* canonical */
	sv query;            /* raw, into head_bytes */
	uint16_t route;      /* GW_ROUTE_NONE */
	bool is_head;
	/* the verdict */
	bool has_ticket, reported, forwarded;
	uint64_t ticket;
	struct buf
	    edits; /* n times { u8 gw_edit, str name, str value }, as in the verdict; may hold a
		    * secret */
	uint16_t edits_n;
	struct redact redact;
	/* request body */
	struct http1_body req_body;
	bool req_done;      /* wholly read from the client */
	bool req_abandoned; /* upstream takes no more of it */
	uint64_t body_sent;
	/* reply */
	struct http1_scan scan;
	uint32_t informs; /* 1xx seen */
	bool replying;    /* the final head is on its way to the client */
	bool reply_done;
	bool up_keep;     /* upstream can take another request */
	bool close_after; /* we told the client that we close */
	bool chunk_out;   /* the reply is sent chunked */
	bool no_trailers;
	struct http1_body reply_body;
};

enum conn_state {
	CONN_HEAD,   /* waiting for a request head */
	CONN_DIAL,   /* waiting for box-dial */
	CONN_LEAF,   /* waiting for the monitor's leaf */
	CONN_TLS,    /* TLS handshake with the client */
	CONN_ASK,    /* waiting for the verdict */
	CONN_UP_TLS, /* TLS handshake with the origin */
	CONN_RELAY,
	CONN_LINGER, /* our last words are said */
	CONN_DEAD
};

struct conn {
	struct gw *gw;
	size_t slot;
	uint64_t serial;
	uint32_t sandbox;
	enum conn_state state;
	bool tunnel; /* after CONNECT: TLS ended here */
	bool sni_bad;
	struct authority tunnel_to;
	struct stream client;
	struct http1_scan scan;
	struct exch *x; /* from a whole request head to the end of its reply */
	struct stream up;
	struct authority up_to;
	uint32_t up_served; /* exchanges completed on this upstream connection */
	uint32_t ask_id;    /* of the question that is open; 0 none */
	uint64_t moved_seen;
	int64_t moved_ns; /* when bytes last moved, for CONN_RELAY */
	int64_t since_ns; /* when the state (or the first byte of a head) began */
	bool head_begun;
};

static inline int64_t gw_now(const struct gw *g)
{
	return clock_now(&g->mono);
}

/* gw.c */
/* Something began that has a time limit. */
void gw_wake(struct gw *g);
/* Ask a question for this connection; its answer finds it again by the id. -1: the channel is gone
 * or full. */
int gw_ask(struct conn *c, struct chan *to, uint16_t type, const struct buf *body);
void gw_cancel(struct conn *c);
void gw_control(struct gw *g, const struct conn *c, enum gw_control what,
    const struct authority *to, sv method, sv path, sv text);
void gw_done(struct gw *g, uint64_t ticket, uint16_t status, uint64_t body);

/* conn.c */
/* A new client; owns fd. */
void conn_new(struct gw *g, int fd, uint32_t sandbox);
void conn_free(struct conn *c);
/* Move on as far as it goes; may free the connection. Called last by every event handler. */
void conn_run(struct conn *c);
void conn_set(struct conn *c, enum conn_state state);
/* Check the time-outs of the state. */
void conn_tick(struct conn *c, int64_t now_ns);
/* Is it waiting for its client, so that it may be closed for a newcomer? */
bool conn_is_idle(const struct conn *c);
void conn_on_socket(struct conn *c, int fd);
void conn_on_denied(struct conn *c, sv text);
void conn_on_failed(struct conn *c, sv text);
/* The leaf was added to c->gw->tls, or could not be had (error not empty). */
void conn_on_leaf(struct conn *c, sv error);
/* Answer with a text of our own. marker: the refusal header. The connection stays when that is
 * possible and keep is set. */
void conn_reply(struct conn *c, uint16_t status, bool marker, bool keep, sv text);
/* The answers for which nobody is to blame (400, 502, 504 …): no marker, the connection ends. */
void conn_fail(struct conn *c, uint16_t status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A refusal by a control: recorded, 403 with the marker. */
void conn_refuse(struct conn *c, enum gw_control what, sv text);

/* exchange.c */
/* Begin with the head that was read (copied). NULL: no memory. */
struct exch *exch_new(sv head);
/* Reports what was not reported. */
void exch_free(struct gw *g, struct exch *x);
/* A connection to the origin is there: controls, then the question. */
void exch_judge(struct conn *c);
void exch_on_verdict(struct conn *c, struct rd *body);
/* Send the head on (state CONN_RELAY). */
void exch_forward(struct conn *c);
/* One round of CONN_RELAY; true when anything moved. */
bool exch_relay(struct conn *c);

/* headers.c */
/* The request head as the origin gets it. -1: an edit is malformed, or there is no room. */
int headers_request(struct buf *out, const struct exch *x, bool intercepted, struct box_err *err);
/* A reply head as the client gets it, for its version. Values go through x->redact. */
int headers_reply(
    struct buf *out, struct exch *x, const struct http1_head *reply, struct box_err *err);
const char *headers_reason(uint16_t status);
