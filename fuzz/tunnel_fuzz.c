/* Requests inside a TLS tunnel to a host whose routes carry secrets: the input is what the client
 * and the origin say once both handshakes are done. A secret goes only to the origin, once for each
 * permitted request that names the placeholder (or whose route always attaches it), and never comes
 * back to the client; what reaches the origin reads as requests.
 *
 * Input: u16 bytes of the client, those bytes, then the origin's. */
#include <event2/event.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
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

#define CHECK(x)    ((x) ? (void)0 : abort())
#define PLACEHOLDER "p_0123456789abcdef"
#define SECRET      "sEcReT-vAlUe-42"

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);

struct peer {
	int fd;
	SSL *ssl;
	struct buf in;
	bool closed;
};

struct world {
	struct event_base *base;
	struct gw *gw;
	struct ca *ca;
	SSL_CTX *client_ctx, *origin_ctx;
	int mon, dial;
	struct peer client, origin;
	size_t credentialed; /* permits that carried a secret */
	bool connected;
	sv reply;
};

static int64_t stopped = 1;

/* A certificate of the box's CA for the origin, so that the gateway trusts it. */
static void make_origin(struct world *w)
{
	AUTO_BUF leaf = buf_with(65536);
	unsigned char *spki = NULL;
	EVP_PKEY *key = EVP_EC_gen("P-256");
	int n = key != NULL ? i2d_PUBKEY(key, &spki) : -1;
	const unsigned char *p;
	X509 *x;

	CHECK(n > 0);
	CHECK(ca_issue(w->ca, SV("api.test"), (sv){ (char *)spki, (size_t)n }, &leaf, NULL) == 0);
	p = leaf.p;
	x = d2i_X509(NULL, &p, (long)leaf.n);
	w->origin_ctx = SSL_CTX_new(TLS_server_method());
	w->client_ctx = SSL_CTX_new(TLS_client_method());
	CHECK(x != NULL && w->origin_ctx != NULL && w->client_ctx != NULL);
	CHECK(SSL_CTX_use_certificate(w->origin_ctx, x) == 1);
	CHECK(SSL_CTX_use_PrivateKey(w->origin_ctx, key) == 1);
	(void)SSL_CTX_set_num_tickets(w->origin_ctx, 0);
	X509_free(x);
	EVP_PKEY_free(key);
	OPENSSL_free(spki);
}

static void put_route(struct buf *b, uint16_t i, const char *path, uint8_t inject)
{
	buf_put_u16(b, i);
	buf_put_str(b, SV("r"));
	buf_put_u16(b, 1);
	buf_put_str(b, SV("api.test"));
	buf_put_byte(b, 0);
	buf_put_u16(b, 443);
	buf_put_str(b, sv_c(path));
	buf_put_byte(b, 0);
	buf_put_str(b, SV("Authorization"));
	buf_put_str(b, SV("Bearer "));
	buf_put_str(b, SV(PLACEHOLDER));
	buf_put_byte(b, inject);
}

static void start(struct world *w)
{
	static struct clock wall;
	struct box_err err = { 0 };
	int mon[2], dial[2];
	AUTO_BUF pem = buf_with(65536), r0 = buf_with(4096), r1 = buf_with(4096), b = buf_with(64);

	(void)signal(SIGPIPE, SIG_IGN);
	wall = clock_wall(); /* OpenSSL looks at the real time of day */
	w->ca = ca_new(SV("fuzz"), &wall, &err);
	w->base = event_base_new();
	CHECK(w->ca != NULL && ipc_pair(mon, &err) == 0 && ipc_pair(dial, &err) == 0);
	make_origin(w);
	w->mon = mon[0];
	w->dial = dial[0];
	w->gw = gw_new(w->base, mon[1], clock_fixed(&stopped), &err);
	CHECK(w->gw != NULL);
	buf_put_u16(&pem, GW_ROUTE_NONE);
	buf_put_str(&pem, ca_cert_pem(w->ca));
	put_route(&r0, 0, "/v1", PLAN_PHANTOM);
	put_route(&r1, 1, "/any", PLAN_ALWAYS);
	for (int i = 0; i < 4; i++)
		buf_put_u32(&b, 0);
	CHECK(ipc_send(w->mon, GW_PEM, 0, &pem, NULL, 0, &err) == 0);
	CHECK(ipc_send(w->mon, GW_ROUTE, 0, &r0, NULL, 0, &err) == 0);
	CHECK(ipc_send(w->mon, GW_ROUTE, 0, &r1, NULL, 0, &err) == 0);
	CHECK(ipc_send(w->mon, MON_START, 0, &b, &dial[1], 1, &err) == 0);
	(void)close(dial[1]);
	CHECK(fd_set_nonblock(w->mon, true) == 0 && fd_set_nonblock(w->dial, true) == 0);
	(void)event_base_loop(w->base, EVLOOP_NONBLOCK);
	CHECK(w->gw->started);
}

static void open_peer(struct peer *p, int fd, SSL_CTX *ctx, bool server)
{
	p->fd = fd;
	p->closed = false;
	p->in = buf_with(1 << 20);
	p->ssl = ctx != NULL ? SSL_new(ctx) : NULL;
	if (p->ssl == NULL)
		return;
	CHECK(SSL_set_fd(p->ssl, fd) == 1);
	if (server)
		SSL_set_accept_state(p->ssl);
	else
		SSL_set_connect_state(p->ssl);
}

static void close_peer(struct peer *p)
{
	SSL_free(p->ssl);
	p->ssl = NULL;
	fd_drop(&p->fd);
	buf_fini(&p->in);
	ERR_clear_error();
}

/* true when anything came. */
static bool read_peer(struct peer *p)
{
	char tmp[4096];
	size_t before = p->in.n;
	int n = 1;

	if (p->fd < 0 || p->ssl == NULL)
		return false;
	while (!p->closed && (n = SSL_read(p->ssl, tmp, sizeof(tmp))) > 0)
		buf_put(&p->in, tmp, (size_t)n);
	if (n <= 0 && SSL_get_error(p->ssl, n) != SSL_ERROR_WANT_READ)
		p->closed = true;
	ERR_clear_error();
	return p->in.n != before;
}

static void write_peer(struct peer *p, sv bytes)
{
	if (p->ssl != NULL && bytes.n != 0)
		(void)SSL_write(p->ssl, bytes.p, (int)bytes.n); /* it may be closed */
	ERR_clear_error();
}

/* The question about a request: permit it; with a secret when a route covers it, as the monitor
 * does, which looks again whether it may. */
static void on_ask_http(struct world *w, struct ipc_msg *m)
{
	AUTO_BUF b = buf_with(4096);
	sv path, method;
	uint8_t tunnel, token;
	uint16_t route;

	(void)rd_u32(&m->body);
	(void)rd_u64(&m->body);
	CHECK(sv_eq(rd_str(&m->body, MON_NAME_MAX), SV("api.test")) && rd_u16(&m->body) == 443);
	method = rd_str(&m->body, MON_NAME_MAX);
	path = rd_str(&m->body, MON_PATH_MAX);
	(void)rd_u64(&m->body);
	tunnel = rd_u8(&m->body);
	route = rd_u16(&m->body);
	token = rd_u8(&m->body);
	(void)rd_str(&m->body, 64);
	CHECK(rd_done(&m->body) && tunnel == 1 && http1_is_token(method));
	buf_put_byte(&b, 1);
	buf_put_u64(&b, 7);
	if (route == GW_ROUTE_NONE) {
		buf_put_u16(&b, 0);
		buf_put_u16(&b, 0);
	} else {
		CHECK(route == 0 ? token == GW_TOKEN_OK : route == 1);
		CHECK(sv_starts(path, route == 0 ? SV("/v1") : SV("/any")));
		buf_put_u16(&b, 1);
		buf_put_byte(&b, GW_EDIT_SET);
		buf_put_str(&b, SV("Authorization"));
		buf_put_str(&b, SV("Bearer " SECRET));
		buf_put_u16(&b, 1);
		buf_put_str(&b, SV(SECRET));
		w->credentialed++;
	}
	CHECK(ipc_send(w->mon, MON_VERDICT, m->id, &b, NULL, 0, NULL) == 0);
}

static bool serve(struct world *w)
{
	static struct ipc_msg m = IPC_MSG_INIT;
	bool any = false;

	while (ipc_recv(w->mon, &m, NULL) == 1) {
		any = true;
		if (m.type == MON_ASK_HTTP) {
			on_ask_http(w, &m);
		} else if (m.type == GW_ASK_LEAF) {
			AUTO_BUF b = buf_with(65536), der = buf_with(65536);
			sv host = rd_str(&m.body, HOST_MAX), spki = rd_str(&m.body, CA_SPKI_MAX);

			CHECK(ca_issue(w->ca, host, spki, &der, NULL) == 0);
			buf_put_byte(&b, 1);
			buf_put_str(&b, buf_sv(&der));
			CHECK(ipc_send(w->mon, GW_LEAF, m.id, &b, NULL, 0, NULL) == 0);
		}
	}
	while (ipc_recv(w->dial, &m, NULL) == 1) {
		AUTO_BUF b = buf_with(64);
		int sp[2];

		any = true;
		if (m.type != DIAL_CONNECT || w->connected)
			continue;
		w->connected = true;
		CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sp) == 0);
		buf_put_str(&b, SV("10.0.0.1"));
		CHECK(ipc_send(w->dial, DIAL_SOCKET, m.id, &b, &sp[1], 1, NULL) == 0);
		(void)close(sp[1]);
		open_peer(&w->origin, sp[0], w->origin_ctx, true);
	}
	return any;
}

/* CONNECT and its answer, before TLS. */
static void open_tunnel(struct world *w)
{
	static const char connect[] = "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n";
	static const char want[] = "HTTP/1.1 200 Connection Established\r\n\r\n";
	char tmp[sizeof(want)];
	ssize_t n = -1;
	int sp[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sp) == 0);
	conn_new(w->gw, sp[1], 1);
	CHECK(send(sp[0], connect, sizeof(connect) - 1, MSG_NOSIGNAL) > 0);
	for (int i = 0; i < 20 && n < 0; i++) {
		(void)event_base_loop(w->base, EVLOOP_NONBLOCK);
		(void)serve(w);
		n = recv(sp[0], tmp, sizeof(want) - 1, MSG_DONTWAIT);
	}
	CHECK(n == (ssize_t)sizeof(want) - 1 && memcmp(tmp, want, sizeof(want) - 1) == 0);
	open_peer(&w->client, sp[0], w->client_ctx, false);
	CHECK(SSL_set_tlsext_host_name(w->client.ssl, "api.test") == 1);
	for (int i = 0; i < 20 && !SSL_is_init_finished(w->client.ssl); i++) {
		(void)SSL_do_handshake(w->client.ssl);
		(void)event_base_loop(w->base, EVLOOP_NONBLOCK);
	}
	CHECK(SSL_is_init_finished(w->client.ssl));
}

static size_t count(sv in, sv what)
{
	size_t n = 0;
	ptrdiff_t at;

	for (; (at = sv_find_sv(in, what)) >= 0; n++)
		in = sv_sub(in, (size_t)at + what.n, in.n);
	return n;
}

static void check_origin(const struct world *w)
{
	static struct http1_head h;
	sv in = buf_sv(&w->origin.in), head;
	size_t used, secrets = 0;

	while (in.n != 0) {
		struct http1_scan s = { 0 };
		struct box_err err;

		if (http1_scan(&s, in, &head, &used, &err) == 0)
			break;
		CHECK(http1_request(head, &h, &err) == 0);
		CHECK(h.host.p != NULL && sv_eq(h.host, SV("api.test")));
		for (size_t i = 0; i < h.n; i++) {
			if (count(h.field[i].value, SV(SECRET)) == 0)
				continue;
			CHECK(sv_eq_nocase(h.field[i].name, SV("Authorization")));
			CHECK(sv_eq(h.field[i].value, SV("Bearer " SECRET)));
			secrets++;
		}
		in = sv_sub(in, used, in.n);
		if (!http1_skip_body(&h, &in))
			break;
	}
	CHECK(secrets <= w->credentialed);
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	static struct world w = { .client.fd = -1, .origin.fd = -1 };
	struct rd in = rd_of(d, n);
	size_t cut = rd_u16(&in);
	sv said = rd_bytes(&in, cut < rd_left(&in) ? cut : rd_left(&in));
	bool knew;

	if (in.bad || n > 16000)
		return 0;
	w.reply = rd_bytes(&in, rd_left(&in));
	/* A client that knows the secret may say it itself: nothing to be learnt. */
	knew = count(said, SV(SECRET)) != 0;
	if (w.gw == NULL)
		start(&w);
	w.credentialed = 0;
	w.connected = false;
	open_tunnel(&w);
	write_peer(&w.client, said);
	for (int i = 0, quiet = 0; i < 60 && quiet < 3; i++) {
		quiet++;
		(void)event_base_loop(w.base, EVLOOP_NONBLOCK);
		if (serve(&w) || read_peer(&w.client))
			quiet = 0;
		if (read_peer(&w.origin)) {
			quiet = 0;
			write_peer(&w.origin, w.reply);
			w.reply.n = 0;
		}
	}
	if (!knew && w.origin.fd >= 0)
		check_origin(&w);
	/* With a bare secret in the origin's reply, redaction must have seen it; only a request
	 * without a secret may be answered with it. */
	if (!knew && w.credentialed == 1 && count(buf_sv(&w.client.in), SV(SECRET)) != 0)
		CHECK(count(buf_sv(&w.client.in), SV("HTTP/1.1 ")) > 1);
	close_peer(&w.client);
	if (w.connected)
		close_peer(&w.origin);
	for (int i = 0; i < 5; i++)
		(void)event_base_loop(w.base, EVLOOP_NONBLOCK);
	for (size_t i = 0; i < w.gw->conns_max; i++)
		if (w.gw->conns[i] != NULL)
			conn_free(w.gw->conns[i]);
	(void)serve(&w);
	CHECK(!w.gw->stopped);
	return 0;
}
