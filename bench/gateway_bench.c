/* What the gateway adds: keep-alive requests directly to an origin and through a gateway process,
 * plain and under TLS, alternating in one run; and a large body through it, with the gateway's peak
 * memory. The origin, the monitor and box-dial are threads of this program and answer at once, so
 * that the difference is the gateway's (two more socket hops and one question to the monitor).
 * Budget: 100 us a request (design.md 8). */
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ipc.h"
#include "dial/proto.h"
#include "gateway/gw.h"
#include "gateway/proto.h"
#include "monitor/ca.h"

#include "base/ban.h"

#define ROUNDS   4000
#define BODY     ((size_t)1 << 30)
#define MUST(x)  ((x) ? (void)0 : die(#x, __LINE__))
#define HOSTNAME "bench.test"

static void die(const char *what, int line)
{
	(void)fprintf(stderr, "gateway_bench: line %d: %s: %s\n", line, what, strerror(errno));
	exit(1);
}

struct bench {
	struct ca *ca;
	SSL_CTX *origin_ctx, *client_ctx;
	int origin[2]; /* listeners: plain, TLS */
	uint16_t port[2];
	int mon, dial;
	uint16_t gw_port;
	pid_t gw;
};

static int64_t now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

static int listen_local(uint16_t *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST(fd >= 0 && bind(fd, (struct sockaddr *)&a, n) == 0 && listen(fd, 64) == 0);
	MUST(getsockname(fd, (struct sockaddr *)&a, &n) == 0);
	*port = ntohs(a.sin_port);
	return fd;
}

static int connect_local(uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	MUST(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

/* A socket with or without TLS. */
struct pipe_end {
	int fd;
	SSL *ssl;
};

static ssize_t get(struct pipe_end *e, char *p, size_t n)
{
	return e->ssl != NULL ? SSL_read(e->ssl, p, (int)n) : recv(e->fd, p, n, 0);
}

static void put(struct pipe_end *e, const char *p, size_t n)
{
	if (e->ssl != NULL)
		(void)SSL_write(e->ssl, p, (int)n);
	else
		(void)fd_write_full(e->fd, p, n);
}

/* --- the origin: "GET /x" gets two bytes, "GET /big" BODY bytes --- */

struct served {
	struct pipe_end end;
	SSL_CTX *ctx;
};

static void *serve_one(void *arg)
{
	struct served *s = arg;
	static const char reply[] =
	    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok";
	static char block[65536];
	char in[8192];

	if (s->ctx != NULL) {
		s->end.ssl = SSL_new(s->ctx);
		(void)SSL_set_fd(s->end.ssl, s->end.fd);
		if (SSL_accept(s->end.ssl) != 1)
			goto out;
	}
	for (;;) {
		ssize_t n = get(&s->end, in, sizeof(in)); /* a request of ours comes in one piece */

		if (n <= 0)
			break;
		if (sv_find_sv((sv){ in, (size_t)n }, SV("/big")) < 0) {
			put(&s->end, reply, sizeof(reply) - 1);
			continue;
		}
		n = snprintf(
		    in, sizeof(in), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", BODY);
		put(&s->end, in, (size_t)n);
		for (size_t left = BODY; left != 0; left -= sizeof(block))
			put(&s->end, block, sizeof(block));
	}
out:
	SSL_free(s->end.ssl);
	(void)close(s->end.fd);
	free(s);
	return NULL;
}

struct origin {
	int fd;
	SSL_CTX *ctx;
};

static void *serve(void *arg)
{
	const struct origin *o = arg;
	pthread_t t;

	for (;;) {
		struct served *s = calloc(1, sizeof(*s));
		int on = 1;

		MUST(s != NULL);
		s->end.fd = accept(o->fd, NULL, NULL);
		if (s->end.fd < 0)
			return NULL;
		(void)setsockopt(s->end.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		s->ctx = o->ctx;
		MUST(pthread_create(&t, NULL, serve_one, s) == 0);
		(void)pthread_detach(t);
	}
}

/* --- monitor and box-dial --- */

static void *monitor(void *arg)
{
	struct bench *b = arg;
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	struct box_err err = { 0 };
	uint64_t ticket = 0;

	while (ipc_recv(b->mon, &m, &err) == 1) {
		AUTO_BUF out = buf_with(16384), der = buf_with(8192);

		if (m.type == GW_ASK_LEAF) {
			sv host = rd_str(&m.body, MON_NAME_MAX),
			   spki = rd_str(&m.body, CA_SPKI_MAX);

			MUST(ca_issue(b->ca, host, spki, &der, &err) == 0);
			buf_put_byte(&out, 1);
			buf_put_str(&out, buf_sv(&der));
			MUST(ipc_send(b->mon, GW_LEAF, m.id, &out, NULL, 0, &err) == 0);
		} else if (m.type == MON_ASK_HTTP) {
			buf_put_byte(&out, 1);
			buf_put_u64(&out, ++ticket);
			buf_put_u16(&out, 0);
			buf_put_u16(&out, 0);
			MUST(ipc_send(b->mon, MON_VERDICT, m.id, &out, NULL, 0, &err) == 0);
		}
	}
	return NULL;
}

static void *dial(void *arg)
{
	struct bench *b = arg;
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	struct box_err err = { 0 };

	while (ipc_recv(b->dial, &m, &err) == 1) {
		AUTO_BUF out = buf_with(64);
		AUTO_FD fd = -1;

		if (m.type != DIAL_CONNECT)
			continue;
		(void)rd_str(&m.body, DIAL_HOST_MAX);
		fd = connect_local(b->port[rd_u16(&m.body) == 443]);
		buf_put_str(&out, SV("127.0.0.1"));
		MUST(ipc_send(b->dial, DIAL_SOCKET, m.id, &out, &fd, 1, &err) == 0);
	}
	return NULL;
}

static void start_gateway(struct bench *b)
{
	struct box_err err = { 0 };
	int mon[2], d[2], listener;
	AUTO_BUF out = buf_with(65536);

	MUST(ipc_pair(mon, &err) == 0 && ipc_pair(d, &err) == 0);
	b->gw = fork();
	MUST(b->gw >= 0);
	if (b->gw == 0) {
		struct event_base *base = event_base_new();
		struct gw *g;

		(void)close(mon[0]);
		(void)close(d[0]);
		g = gw_new(base, mon[1], clock_mono(), &err);
		MUST(g != NULL);
		(void)event_base_dispatch(base);
		_exit(0);
	}
	(void)close(mon[1]);
	b->mon = mon[0];
	b->dial = d[0];
	buf_put_u16(&out, GW_ROUTE_NONE);
	buf_put_str(&out, ca_cert_pem(b->ca));
	MUST(ipc_send(b->mon, GW_PEM, 0, &out, NULL, 0, &err) == 0);
	buf_clear(&out);
	for (int i = 0; i < 4; i++)
		buf_put_u32(&out, 0);
	MUST(ipc_send(b->mon, MON_START, 0, &out, &d[1], 1, &err) == 0);
	(void)close(d[1]);
	listener = listen_local(&b->gw_port);
	buf_clear(&out);
	buf_put_u32(&out, 1);
	buf_put_str(&out, SV("bench"));
	MUST(ipc_send(b->mon, GW_LISTENER, 0, &out, &listener, 1, &err) == 0);
	(void)close(listener);
}

static void make_tls(struct bench *b)
{
	static const struct clock *wall;
	static struct clock storage;
	struct box_err err = { 0 };
	EVP_PKEY *key = EVP_EC_gen("P-256");
	unsigned char *spki = NULL;
	AUTO_BUF der = buf_with(8192);
	const unsigned char *p;
	X509 *leaf, *root;
	BIO *bio;
	int n = 0;

	storage = clock_wall();
	wall = &storage;
	b->ca = ca_new(SV("bench"), wall, &err);
	MUST(b->ca != NULL && (n = i2d_PUBKEY(key, &spki)) > 0);
	MUST(ca_issue(b->ca, SV(HOSTNAME), (sv){ (char *)spki, (size_t)n }, &der, &err) == 0);
	p = der.p;
	leaf = d2i_X509(NULL, &p, (long)der.n);
	b->origin_ctx = SSL_CTX_new(TLS_server_method());
	MUST(SSL_CTX_use_certificate(b->origin_ctx, leaf) == 1 &&
	     SSL_CTX_use_PrivateKey(b->origin_ctx, key) == 1);
	b->client_ctx = SSL_CTX_new(TLS_client_method());
	bio = BIO_new_mem_buf(ca_cert_pem(b->ca).p, (int)ca_cert_pem(b->ca).n);
	root = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	MUST(X509_STORE_add_cert(SSL_CTX_get_cert_store(b->client_ctx), root) == 1);
	SSL_CTX_set_verify(b->client_ctx, SSL_VERIFY_PEER, NULL);
	X509_free(leaf);
	X509_free(root);
	BIO_free(bio);
	EVP_PKEY_free(key);
	OPENSSL_free(spki);
}

static void start_tls(struct bench *b, struct pipe_end *e)
{
	e->ssl = SSL_new(b->client_ctx);
	MUST(SSL_set1_host(e->ssl, HOSTNAME) == 1 &&
	     SSL_set_tlsext_host_name(e->ssl, HOSTNAME) == 1);
	(void)SSL_set_fd(e->ssl, e->fd);
	MUST(SSL_connect(e->ssl) == 1);
}

static struct pipe_end open_end(struct bench *b, bool through, bool tls)
{
	struct pipe_end e = { .fd = connect_local(through ? b->gw_port : b->port[tls]) };
	static const char ask[] =
	    "CONNECT " HOSTNAME ":443 HTTP/1.1\r\nHost: " HOSTNAME ":443\r\n\r\n";
	char in[256];

	if (through && tls) {
		put(&e, ask, sizeof(ask) - 1);
		MUST(get(&e, in, sizeof(in)) > 0 && sv_starts((sv){ in, 12 }, SV("HTTP/1.1 200")));
	}
	if (tls)
		start_tls(b, &e);
	return e;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void measure(struct bench *b, bool tls)
{
	struct pipe_end e[2] = { open_end(b, false, tls), open_end(b, true, tls) };
	static int64_t t[2][ROUNDS];
	char ask[2][512], in[4096];
	double us[2];

	for (int k = 0; k < 2; k++)
		(void)snprintf(ask[k], sizeof(ask[k]),
		    "GET %s/v1/x HTTP/1.1\r\nHost: " HOSTNAME
		    "\r\nUser-Agent: bench\r\nAccept: */*\r\n\r\n",
		    k == 1 && !tls ? "http://" HOSTNAME : "");
	for (int i = -200; i < ROUNDS; i++) {
		for (int k = 0; k < 2; k++) {
			int64_t begin = now_ns();
			size_t n = 0;

			put(&e[k], ask[k], strlen(ask[k]));
			do {
				ssize_t r = get(&e[k], in + n, sizeof(in) - n);

				MUST(r > 0);
				n += (size_t)r;
			} while (!sv_ends((sv){ in, n }, SV("\r\n\r\nok")));
			if (i >= 0)
				t[k][i] = now_ns() - begin;
		}
	}
	for (int k = 0; k < 2; k++) {
		qsort(t[k], ROUNDS, sizeof(t[k][0]), by_size);
		us[k] = (double)t[k][ROUNDS / 2] / 1000;
		SSL_free(e[k].ssl);
		(void)close(e[k].fd);
	}
	(void)printf("%-5s keep-alive request: direct %6.1f us, through the gateway %6.1f us, "
	             "added %6.1f us (p99 %.1f)%s\n",
	    tls ? "TLS" : "plain", us[0], us[1], us[1] - us[0],
	    (double)(t[1][ROUNDS * 99 / 100] - t[0][ROUNDS * 99 / 100]) / 1000,
	    us[1] - us[0] <= 100 ? "" : "  OVER BUDGET");
}

static long peak_kb(pid_t pid)
{
	char path[64], line[256];
	long kb = -1;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (sv_starts(sv_c(line), SV("VmHWM:")))
			kb = strtol(line + 6, NULL, 10);
	}
	if (f != NULL)
		(void)fclose(f);
	return kb;
}

static void stream(struct bench *b, bool tls)
{
	struct pipe_end e = open_end(b, true, tls);
	long before = peak_kb(b->gw);
	static char in[262144];
	char ask[256];
	size_t n = 0;
	int64_t begin = now_ns();

	(void)snprintf(ask, sizeof(ask), "GET %s/big HTTP/1.1\r\nHost: " HOSTNAME "\r\n\r\n",
	    tls ? "" : "http://" HOSTNAME);
	put(&e, ask, strlen(ask));
	while (n < BODY) {
		ssize_t r = get(&e, in, sizeof(in));

		MUST(r > 0);
		n += (size_t)r;
	}
	(void)printf("%-5s body of %zu MiB: %.0f MiB/s; peak memory of the gateway %ld kB, %ld kB "
	             "more than before\n",
	    tls ? "TLS" : "plain", BODY >> 20,
	    (double)(BODY >> 20) * 1e9 / (double)(now_ns() - begin), peak_kb(b->gw),
	    peak_kb(b->gw) - before);
	SSL_free(e.ssl);
	(void)close(e.fd);
}

int main(void)
{
	static struct bench b;
	static struct origin o[2];
	pthread_t t;

	(void)signal(SIGPIPE, SIG_IGN);
	make_tls(&b);
	start_gateway(&b);
	for (int i = 0; i < 2; i++) {
		b.origin[i] = listen_local(&b.port[i]);
		o[i] = (struct origin){ b.origin[i], i == 1 ? b.origin_ctx : NULL };
		MUST(pthread_create(&t, NULL, serve, &o[i]) == 0);
	}
	MUST(pthread_create(&t, NULL, monitor, &b) == 0 && pthread_create(&t, NULL, dial, &b) == 0);
	measure(&b, false);
	measure(&b, true);
	stream(&b, false);
	stream(&b, true);
	(void)kill(b.gw, SIGTERM);
	(void)waitpid(b.gw, NULL, 0);
	return 0;
}
