/* dial: see dial.h. The gateway's frames are hostile: it may ask for anything, as often as it
 * likes; attempts and questions are bounded. */
#include "dial/dial.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "dial/chan.h"
#include "dial/floor.h"

#include "base/ban.h"

#define ST_CONFIG   1u
#define ST_RUN      2u
#define SLOT_BITS   10
#define SLOT_MASK   ((1u << SLOT_BITS) - 1)
#define RESOLVE_MAX 256u /* entries of [resolve] */

_Static_assert(DIAL_PENDING_MAX <= SLOT_MASK + 1, "an attempt's slot fits its id");

enum step { STEP_ASK_NAME, STEP_RESOLVE, STEP_ASK_IP, STEP_CONNECT };

/* An address as it is decided (host) and as it is dialled (raw). They differ for NAT64 and 6to4,
 * where the IPv4 host is reached through an IPv6 address. */
struct target {
	struct host host;
	struct sockaddr_storage raw;
	socklen_t raw_n;
};

struct attempt {
	struct dial *dial;
	size_t slot;
	uint32_t id;    /* of the question that is open, to the monitor or the resolver */
	uint32_t gw_id; /* the gateway's */
	bool cancelled; /* nobody waits for the answer */
	enum step step;
	struct host host;
	uint16_t port; /* as decided */
	uint32_t sandbox;
	uint64_t ticket; /* of STEP_ASK_NAME */
	uint64_t ip_ticket;
	struct target to[DIAL_ADDRS_MAX];
	size_t n, i;
	int fd;
	struct event *ev; /* the connect, or the resolver's time limit */
	int last_errno;
};

struct mapping {
	struct host host;
	uint16_t port;
	struct host addr;
	uint16_t addr_port;
};

struct dial {
	struct event_base *base;
	struct chan *mon, *gw;
	struct resolver *resolver;
	struct resolver_ops resolver_ops;
	struct mapping *map;
	size_t map_n;
	uint32_t connect_ms, resolve_ms;
	struct attempt *attempts[DIAL_PENDING_MAX];
	uint32_t seq;
	struct box_err err;
	bool stopped;
};

static void stop(struct dial *d, const struct box_err *err)
{
	if (d->stopped)
		return;
	d->stopped = true;
	if (err != NULL)
		d->err = *err;
	(void)event_base_loopbreak(d->base);
}

static void done(struct dial *d, uint64_t ticket, bool connected)
{
	uint8_t room[8 + 1]; /* must not fail for want of memory */
	struct buf b = { .p = room, .cap = sizeof(room), .max = sizeof(room) };
	struct box_err err = { 0 };

	buf_put_u64(&b, ticket);
	buf_put_byte(&b, connected);
	if (chan_send(d->mon, MON_DONE_CONNECT, 0, &b, -1, &err) < 0)
		stop(d, &err); /* a lost outcome is a lost count */
}

static void drop_event(struct attempt *a)
{
	if (a->ev != NULL)
		event_free(a->ev);
	a->ev = NULL;
}

static void attempt_free(struct attempt *a)
{
	drop_event(a);
	fd_drop(&a->fd);
	a->dial->attempts[a->slot] = NULL;
	free(a);
}

static uint32_t next_id(struct attempt *a)
{
	uint32_t seq = ++a->dial->seq;

	if (seq << SLOT_BITS == 0) /* 0 is no question */
		seq = ++a->dial->seq;
	a->id = seq << SLOT_BITS | (uint32_t)a->slot;
	return a->id;
}

/* The attempt that waits for the answer to this question. */
static struct attempt *asker(struct dial *d, uint32_t id)
{
	size_t slot = id & SLOT_MASK;
	struct attempt *a = slot < DIAL_PENDING_MAX ? d->attempts[slot] : NULL;

	return a != NULL && id != 0 && a->id == id ? a : NULL;
}

/* --- ends of an attempt --- */

static void tell(struct dial *d, uint16_t type, uint32_t gw_id, const struct buf *b, int fd)
{
	struct box_err err = { 0 };

	if (chan_send(d->gw, type, gw_id, b, fd, &err) < 0)
		stop(d, &err);
}

static void end_denied(struct attempt *a, sv text)
{
	AUTO_BUF b = buf_with(MON_REASON_MAX + 16);

	buf_put_str(&b, text);
	if (!a->cancelled)
		tell(a->dial, DIAL_DENIED, a->gw_id, &b, -1);
	if (a->ticket != 0)
		done(a->dial, a->ticket, false);
	attempt_free(a);
}

static void end_failed(struct attempt *a, enum dial_why why, const char *text, const char *detail)
{
	AUTO_BUF line = buf_with(1024), b = buf_with(2048);

	buf_putf(&line, "%s %s: %s", text, a->host.text, detail);
	buf_put_byte(&b, (uint8_t)why);
	buf_put_str(&b, buf_sv(&line));
	if (!a->cancelled)
		tell(a->dial, DIAL_FAILED, a->gw_id, &b, -1);
	if (a->ticket != 0)
		done(a->dial, a->ticket, false);
	attempt_free(a);
}

static void end_floor(struct attempt *a, const struct host *ip)
{
	AUTO_BUF b = buf_with(4096);

	buf_put_u64(&b, a->ticket);
	buf_put_str(&b, host_sv(&a->host));
	buf_put_u16(&b, a->port);
	buf_put_str(&b, ip != NULL ? host_sv(ip) : (sv){ NULL, 0 });
	buf_put_u32(&b, a->sandbox);
	buf_put_str(&b, SV(DIAL_FLOOR_TEXT));
	(void)chan_send(a->dial->mon, DIAL_FLOOR, 0, &b, -1, NULL);
	end_denied(a, SV(DIAL_FLOOR_TEXT));
}

static void end_connected(struct attempt *a)
{
	AUTO_BUF b = buf_with(512);

	done(a->dial, a->ip_ticket, true);
	done(a->dial, a->ticket, true);
	buf_put_str(&b, host_sv(&a->to[a->i].host));
	if (!a->cancelled)
		tell(a->dial, DIAL_SOCKET, a->gw_id, &b, a->fd);
	attempt_free(a);
}

/* --- the steps --- */

static void ask(struct attempt *a, enum step step, sv ip)
{
	AUTO_BUF b = buf_with(2048);
	struct box_err err = { 0 };

	a->step = step;
	buf_put_str(&b, host_sv(&a->host));
	buf_put_u16(&b, a->port);
	buf_put_str(&b, ip);
	buf_put_u32(&b, a->sandbox);
	if (chan_send(a->dial->mon, MON_ASK_CONNECT, next_id(a), &b, -1, &err) < 0)
		end_failed(a, DIAL_WHY_LIMIT, "cannot ask about", err.msg);
}

static void next_address(struct attempt *a)
{
	const struct target *t = &a->to[a->i];

	if (a->i == a->n) {
		end_failed(a, DIAL_WHY_CONNECT, "cannot connect to", box_strerror(a->last_errno));
	} else if (floor_closes(&t->host)) {
		end_floor(a, &t->host);
	} else if (!floor_is_host(&t->host)) {
		a->last_errno = EADDRNOTAVAIL;
		a->i++;
		next_address(a); /* at most DIAL_ADDRS_MAX deep */
	} else {
		ask(a, STEP_ASK_IP, host_sv(&t->host));
	}
}

static void connect_ended(struct attempt *a, int e)
{
	drop_event(a);
	if (e == 0) {
		end_connected(a);
		return;
	}
	fd_drop(&a->fd);
	done(a->dial, a->ip_ticket, false);
	a->last_errno = e;
	a->i++;
	if (a->cancelled)
		end_failed(a, DIAL_WHY_CONNECT, "cannot connect to", "cancelled");
	else
		next_address(a);
}

static void on_connect_event(evutil_socket_t fd, short what, void *arg)
{
	struct attempt *a = arg;
	int e = ETIMEDOUT;
	socklen_t n = sizeof(e);

	if ((what & EV_WRITE) != 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &n) < 0)
		e = errno;
	connect_ended(a, e);
}

static struct timeval after_ms(uint32_t ms)
{
	return (struct timeval){ ms / 1000, (suseconds_t)(ms % 1000) * 1000 };
}

static void begin_connect(struct attempt *a)
{
	const struct target *t = &a->to[a->i];
	struct timeval limit = after_ms(a->dial->connect_ms);
	int on = 1;

	a->step = STEP_CONNECT;
	a->fd = socket(t->raw.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->fd < 0) {
		connect_ended(a, errno);
		return;
	}
	(void)setsockopt(
	    a->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* only slower without */
	(void)setsockopt(a->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	if (connect(a->fd, (const struct sockaddr *)&t->raw, t->raw_n) == 0) {
		connect_ended(a, 0);
		return;
	}
	if (errno != EINPROGRESS) {
		connect_ended(a, errno);
		return;
	}
	a->ev = event_new(a->dial->base, a->fd, EV_WRITE, on_connect_event, a);
	if (a->ev == NULL || event_add(a->ev, &limit) < 0)
		connect_ended(a, ENOMEM);
}

static void add_target(struct attempt *a, const struct sockaddr_storage *raw, uint16_t port)
{
	struct target *t = &a->to[a->n];
	bool through;

	if (a->n == DIAL_ADDRS_MAX ||
	    host_from_sockaddr((const struct sockaddr *)raw, &t->host, NULL) < 0)
		return;
	for (size_t i = 0; i < a->n; i++) {
		if (sv_eq(host_sv(&a->to[i].host), host_sv(&t->host)))
			return;
	}
	t->raw_n = host_to_sockaddr(&t->host, port, &t->raw);
	if (raw->ss_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, raw, sizeof(in6));
		/* NAT64 and 6to4: the way to the IPv4 host. Mapped forms are IPv4 and are dialled
		 * so. */
		through = memcmp(&in6.sin6_addr, "\x00\x64\xff\x9b", 4) == 0 ||
		          memcmp(&in6.sin6_addr, "\x20\x02", 2) == 0;
		if (through) {
			in6.sin6_port = htons(port);
			memset(&t->raw, 0, sizeof(t->raw));
			memcpy(&t->raw, &in6, sizeof(in6));
			t->raw_n = sizeof(in6);
		}
	}
	a->n++;
}

static void on_answer(void *arg, uint32_t id, const struct resolver_answer *r)
{
	struct attempt *a = asker(arg, id);

	if (a == NULL || a->step != STEP_RESOLVE)
		return;
	drop_event(a);
	a->id = 0;
	for (size_t i = 0; i < r->n; i++)
		add_target(a, &r->addr[i], a->port);
	if (a->cancelled)
		end_failed(a, DIAL_WHY_RESOLVE, "cannot resolve", "cancelled");
	else if (a->n == 0)
		end_failed(a, DIAL_WHY_RESOLVE, "cannot resolve",
		    r->why[0] != '\0' ? r->why : "no address");
	else
		next_address(a);
}

static void on_resolve_limit(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	end_failed(arg, DIAL_WHY_RESOLVE, "cannot resolve", "the name servers do not answer");
}

static void begin_resolve(struct attempt *a)
{
	struct dial *d = a->dial;
	struct timeval limit = after_ms(d->resolve_ms);

	a->step = STEP_RESOLVE;
	for (size_t i = 0; i < d->map_n; i++) {
		const struct mapping *m = &d->map[i];

		if (m->port == a->port && sv_eq(host_sv(&m->host), host_sv(&a->host))) {
			a->to[0].host = m->addr;
			a->to[0].raw_n = host_to_sockaddr(&m->addr, m->addr_port, &a->to[0].raw);
			a->n = 1;
			next_address(a);
			return;
		}
	}
	if (a->host.kind != HOST_NAME) {
		a->to[0].host = a->host;
		a->to[0].raw_n = host_to_sockaddr(&a->host, a->port, &a->to[0].raw);
		a->n = 1;
		next_address(a);
		return;
	}
	a->ev = evtimer_new(d->base, on_resolve_limit, a);
	if (a->ev == NULL || evtimer_add(a->ev, &limit) < 0 ||
	    resolver_ask(d->resolver, next_id(a), &a->host) < 0)
		end_failed(a, DIAL_WHY_LIMIT, "cannot resolve", "too many lookups at once");
}

/* --- frames of the gateway --- */

static int on_connect(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct dial *d = ctx;
	sv name = rd_str(&m->body, DIAL_HOST_MAX);
	uint16_t port = rd_u16(&m->body);
	uint32_t sandbox = rd_u32(&m->body);
	struct host host;
	struct attempt *a;
	size_t slot = DIAL_PENDING_MAX;

	if (!rd_done(&m->body) || port == 0 ||
	    host_parse(name, sv_find(name, ':') >= 0, &host, err) < 0 ||
	    !sv_eq(host_sv(&host), name))
		return box_fail(err, BOX_EDENIED, 0, "CONNECT without a canonical host and port");
	for (size_t i = DIAL_PENDING_MAX; i-- != 0;) {
		if (d->attempts[i] == NULL)
			slot = i;
		else if (d->attempts[i]->gw_id == m->id && !d->attempts[i]->cancelled)
			return box_fail(err, BOX_EDENIED, 0, "CONNECT with an id that is in use");
	}
	a = slot < DIAL_PENDING_MAX ? calloc(1, sizeof(*a)) : NULL;
	if (a == NULL) {
		AUTO_BUF b = buf_with(256);

		buf_put_byte(&b, DIAL_WHY_LIMIT);
		buf_put_str(&b, SV("too many connections are being made"));
		tell(d, DIAL_FAILED, m->id, &b, -1);
		return 0;
	}
	a->dial = d;
	a->slot = slot;
	a->gw_id = m->id;
	a->host = host;
	a->port = port;
	a->sandbox = sandbox;
	a->fd = -1;
	d->attempts[slot] = a;
	if (floor_closes(&host))
		end_floor(a, NULL);
	else
		ask(a, STEP_ASK_NAME, (sv){ NULL, 0 });
	return 0;
}

static int on_cancel(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct dial *d = ctx;

	(void)err;
	for (size_t i = 0; i < DIAL_PENDING_MAX; i++) {
		struct attempt *a = d->attempts[i];

		if (a == NULL || a->gw_id != m->id || a->cancelled)
			continue;
		a->cancelled = true;
		if (a->step == STEP_CONNECT)
			connect_ended(a, ECANCELED);
		else if (a->step == STEP_RESOLVE)
			end_failed(a, DIAL_WHY_RESOLVE, "cannot resolve", "cancelled");
		/* A question to the monitor is answered first: its ticket must be given back. */
		break;
	}
	return 0;
}

static const struct ipc_rule gw_table[] = {
	{ DIAL_CONNECT, "CONNECT", ST_RUN, 0, 0, DIAL_HOST_MAX + 16, on_connect },
	{ DIAL_CANCEL, "CANCEL", ST_RUN, 0, 0, 0, on_cancel },
	{ 0 },
};

/* The monitor may close: the box ended, and so do we. */
static void on_end(void *arg, const struct box_err *err)
{
	stop(arg, err->code != BOX_OK ? err : NULL);
}

static const struct chan_ops gw_ops = { gw_table, on_end, "box-gateway" };

/* --- frames of the monitor --- */

static void permitted(struct attempt *a, uint64_t ticket)
{
	if (a->step == STEP_ASK_NAME) {
		a->ticket = ticket;
		if (a->cancelled)
			end_failed(a, DIAL_WHY_CONNECT, "cannot connect to", "cancelled");
		else
			begin_resolve(a);
		return;
	}
	a->ip_ticket = ticket;
	if (a->cancelled)
		connect_ended(a, ECANCELED);
	else
		begin_connect(a);
}

static int on_verdict(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct attempt *a = asker(ctx, m->id);
	bool permit = rd_u8(&m->body) == 1;
	uint64_t ticket = 0;
	sv text = { NULL, 0 };

	if (permit) {
		ticket = rd_u64(&m->body);
	} else {
		(void)rd_u16(&m->body);
		text = rd_str(&m->body, MON_REASON_MAX);
	}
	if (!rd_done(&m->body) || a == NULL || (a->step != STEP_ASK_NAME && a->step != STEP_ASK_IP))
		return box_fail(err, BOX_EDENIED, 0, "a verdict that was not asked for");
	a->id = 0;
	if (permit)
		permitted(a, ticket);
	else
		end_denied(a, text);
	return 0;
}

static int read_mapping(struct rd *r, struct mapping *m, struct box_err *err)
{
	sv host = rd_str(r, DIAL_HOST_MAX), addr;

	m->port = rd_u16(r);
	addr = rd_str(r, 64);
	m->addr_port = rd_u16(r);
	if (r->bad || m->port == 0 || m->addr_port == 0 ||
	    host_parse(host, sv_find(host, ':') >= 0, &m->host, err) < 0 ||
	    host_parse(addr, sv_find(addr, ':') >= 0, &m->addr, err) < 0 ||
	    m->addr.kind == HOST_NAME)
		return box_fail(err, BOX_EDENIED, 0, "malformed [resolve] entry");
	return 0;
}

static int on_start(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	struct dial *d = ctx;
	uint32_t n = rd_u32(&m->body);

	if (n > RESOLVE_MAX)
		return box_fail(err, BOX_ELIMIT, 0, "more than %u [resolve] entries", RESOLVE_MAX);
	d->map = n != 0 ? calloc(n, sizeof(*d->map)) : NULL;
	if (n != 0 && d->map == NULL)
		return box_nomem(err, "[resolve]");
	for (; d->map_n < n; d->map_n++) {
		if (read_mapping(&m->body, &d->map[d->map_n], err) < 0)
			return -1;
	}
	d->connect_ms = rd_u32(&m->body);
	d->resolve_ms = rd_u32(&m->body);
	if (!rd_done(&m->body))
		return box_fail(err, BOX_EDENIED, 0, "malformed START");
	d->connect_ms = d->connect_ms != 0 ? d->connect_ms : DIAL_CONNECT_MS;
	d->resolve_ms = d->resolve_ms != 0 ? d->resolve_ms : DIAL_RESOLVE_MS;
	d->gw = chan_new(d->base, ipc_msg_take_fd(m, 0), &gw_ops, d, ST_RUN, err);
	if (d->gw == NULL)
		return -1;
	chan_set_state(d->mon, ST_RUN);
	return 0;
}

static int on_stop(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	(void)m;
	(void)err;
	stop(ctx, NULL);
	return 0;
}

static const struct ipc_rule mon_table[] = {
	{ MON_START, "START", ST_CONFIG, 1, 1, IPC_BODY_MAX, on_start },
	{ MON_STOP, "STOP", ST_CONFIG | ST_RUN, 0, 0, 0, on_stop },
	{ MON_VERDICT, "VERDICT", ST_RUN, 0, 0, MON_REASON_MAX + 16, on_verdict },
	{ 0 },
};

static const struct chan_ops mon_ops = { mon_table, on_end, NULL };

struct dial *dial_new(struct event_base *base, int mon_fd, resolver_lookup *lookup,
    void *lookup_arg, struct box_err *err)
{
	AUTO_FD own = mon_fd;
	struct dial *d = calloc(1, sizeof(*d));
	AUTO_BUF hello = buf_with(64);

	if (d == NULL) {
		(void)box_nomem(err, "dial");
		return NULL;
	}
	d->base = base;
	d->resolver_ops = (struct resolver_ops){ lookup, lookup_arg, on_answer, d };
	d->resolver = resolver_new(base, &d->resolver_ops, err);
	if (d->resolver == NULL)
		goto fail;
	d->mon = chan_new(base, fd_take(&own), &mon_ops, d, ST_CONFIG, err);
	if (d->mon == NULL)
		goto fail;
	buf_put_u32(&hello, MON_VERSION);
	buf_put_str(&hello, SV("box-dial"));
	if (chan_send(d->mon, MON_HELLO, 0, &hello, -1, err) < 0)
		goto fail;
	return d;
fail:
	dial_free(d);
	return NULL;
}

void dial_free(struct dial *d)
{
	if (d == NULL)
		return;
	resolver_free(d->resolver);
	for (size_t i = 0; i < DIAL_PENDING_MAX; i++) {
		if (d->attempts[i] != NULL)
			attempt_free(d->attempts[i]);
	}
	chan_free(d->gw);
	chan_free(d->mon);
	free(d->map);
	free(d);
}

const struct box_err *dial_error(const struct dial *d)
{
	return &d->err;
}
