/* tls: see tls.h. The handshakes' bytes are hostile and OpenSSL's to parse; what we add is SNI,
 * ALPN and trust. */
#include "gateway/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#include "base/clock.h"

#include "base/ban.h"

struct leaf {
	struct leaf *next;
	struct host host;
	X509 *cert;
	int64_t since_ns;
};

/* One set of roots: the system's and those of the routes in the mask. */
struct trust {
	uint64_t mask;
	SSL_CTX *ctx;
};

struct tls {
	SSL_CTX *server;
	EVP_PKEY *key;
	struct buf spki;
	struct leaf *leaves;
	size_t leaves_n;
	struct buf pem[GW_ROUTES_MAX + 1]; /* the last is the system's; emptied by tls_trust_end */
	STACK_OF(X509) * roots[GW_ROUTES_MAX + 1];
	struct trust trust[TLS_TRUSTS_MAX];
	size_t trust_n;
	int host_index, bad_index; /* ex_data of a server SSL: struct host *, bool * */
};

static int tls_error(struct box_err *err, const char *what)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	return box_fail(
	    err, BOX_ESYS, 0, "%s: %s", what, reason != NULL ? reason : "OpenSSL failed");
}

/* The client's ALPN list: http/1.1 or a fatal alert (RFC 7301 3.2). */
static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n,
    const unsigned char *in, unsigned int in_n, void *arg)
{
	struct rd r = rd_of(in, in_n);

	(void)ssl;
	(void)arg;
	while (rd_left(&r) != 0) {
		uint8_t n = rd_u8(&r);
		sv name = rd_bytes(&r, n);

		if (sv_eq(name, SV("http/1.1"))) {
			*out = (const unsigned char *)name.p;
			*out_n = n;
			return SSL_TLSEXT_ERR_OK;
		}
	}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* SNI must be absent or name the host of the CONNECT. */
static int on_sni(SSL *ssl, int *alert, void *arg)
{
	const struct tls *t = arg;
	const struct host *want = SSL_get_ex_data(ssl, t->host_index);
	bool *bad = SSL_get_ex_data(ssl, t->bad_index);
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	struct host got;

	if (name == NULL)
		return SSL_TLSEXT_ERR_NOACK;
	if (want != NULL && host_parse(sv_c(name), false, &got, NULL) == 0 &&
	    sv_eq(host_sv(&got), host_sv(want)))
		return SSL_TLSEXT_ERR_OK;
	if (bad != NULL)
		*bad = true;
	*alert = SSL_AD_UNRECOGNIZED_NAME;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void ctx_common(SSL_CTX *ctx)
{
	(void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	(void)SSL_CTX_set_options(
	    ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	(void)SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
	                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
	                                SSL_MODE_RELEASE_BUFFERS);
	(void)SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
}

static int make_server(struct tls *t, struct box_err *err)
{
	t->server = SSL_CTX_new(TLS_server_method());
	if (t->server == NULL)
		return tls_error(err, "make the TLS server");
	ctx_common(t->server);
	(void)SSL_CTX_set_num_tickets(t->server, 0);
	(void)SSL_CTX_set_max_early_data(t->server, 0);
	SSL_CTX_set_alpn_select_cb(t->server, on_alpn, t);
	(void)SSL_CTX_set_tlsext_servername_callback(t->server, on_sni);
	(void)SSL_CTX_set_tlsext_servername_arg(t->server, t);
	t->host_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
	t->bad_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
	return t->host_index >= 0 && t->bad_index >= 0 ? 0 : tls_error(err, "make the TLS server");
}

struct tls *tls_new(struct box_err *err)
{
	struct tls *t = calloc(1, sizeof(*t));
	unsigned char *der = NULL;
	int n;

	if (t == NULL) {
		(void)box_nomem(err, "TLS state");
		return NULL;
	}
	t->spki = buf_with(512);
	for (size_t i = 0; i <= GW_ROUTES_MAX; i++)
		t->pem[i] = buf_with(GW_PEM_MAX);
	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1 || make_server(t, err) < 0)
		goto fail;
	t->key = EVP_EC_gen("P-256");
	n = t->key != NULL ? i2d_PUBKEY(t->key, &der) : -1;
	if (n <= 0) {
		(void)tls_error(err, "make the gateway's key");
		goto fail;
	}
	buf_put(&t->spki, der, (size_t)n);
	OPENSSL_free(der);
	return t;
fail:
	tls_free(t);
	return NULL;
}

static void drop_leaves(struct tls *t)
{
	struct leaf *l;

	while ((l = t->leaves) != NULL) {
		t->leaves = l->next;
		X509_free(l->cert);
		free(l);
	}
	t->leaves_n = 0;
}

void tls_free(struct tls *t)
{
	if (t == NULL)
		return;
	drop_leaves(t);
	for (size_t i = 0; i < t->trust_n; i++)
		SSL_CTX_free(t->trust[i].ctx);
	for (size_t i = 0; i <= GW_ROUTES_MAX; i++) {
		sk_X509_pop_free(t->roots[i], X509_free);
		buf_fini(&t->pem[i]);
	}
	SSL_CTX_free(t->server);
	EVP_PKEY_free(t->key);
	buf_fini(&t->spki);
	free(t);
}

sv tls_spki(const struct tls *t)
{
	return buf_sv(&t->spki);
}

int tls_trust_chunk(struct tls *t, uint16_t target, sv pem, struct box_err *err)
{
	size_t i = target == GW_ROUTE_NONE ? GW_ROUTES_MAX : target;

	if (i > GW_ROUTES_MAX || (i == GW_ROUTES_MAX && target != GW_ROUTE_NONE))
		return box_fail(
		    err, BOX_EDENIED, 0, "certificates for route %u, which cannot exist", target);
	buf_put_sv(&t->pem[i], pem);
	if (!buf_ok(&t->pem[i]))
		return box_fail(
		    err, BOX_ELIMIT, 0, "more than %zu bytes of certificates", GW_PEM_MAX);
	return 0;
}

static int parse_roots(struct tls *t, size_t i, struct box_err *err)
{
	BIO *bio = BIO_new_mem_buf(t->pem[i].p, (int)t->pem[i].n);
	X509 *x;

	t->roots[i] = sk_X509_new_null();
	if (bio == NULL || t->roots[i] == NULL) {
		BIO_free(bio);
		return box_nomem(err, "certificates");
	}
	ERR_clear_error();
	while ((x = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL) {
		if (sk_X509_push(t->roots[i], x) <= 0) {
			X509_free(x);
			break;
		}
	}
	BIO_free(bio);
	buf_fini(&t->pem[i]);
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return tls_error(err, "read trusted certificates");
	ERR_clear_error();
	return 0;
}

int tls_trust_end(struct tls *t, struct box_err *err)
{
	for (size_t i = 0; i <= GW_ROUTES_MAX; i++) {
		if (t->pem[i].n != 0 && parse_roots(t, i, err) < 0)
			return -1;
	}
	return 0;
}

static const struct leaf *find_leaf(const struct tls *t, sv host)
{
	for (const struct leaf *l = t->leaves; l != NULL; l = l->next) {
		if (sv_eq(host_sv(&l->host), host))
			return l;
	}
	return NULL;
}

bool tls_has_leaf(const struct tls *t, sv host, int64_t now_ns)
{
	const struct leaf *l = find_leaf(t, host);

	return l != NULL && now_ns - l->since_ns < TLS_LEAF_S * NS_PER_SEC;
}

int tls_add_leaf(struct tls *t, sv host, sv der, int64_t now_ns, struct box_err *err)
{
	const unsigned char *p = (const unsigned char *)der.p;
	struct leaf *l;

	/* Connections hold their own reference to the certificate. */
	if (t->leaves_n == TLS_LEAVES_MAX || find_leaf(t, host) != NULL)
		drop_leaves(t);
	l = calloc(1, sizeof(*l));
	if (l == NULL || host.n > HOST_MAX) {
		free(l);
		return box_nomem(err, "a leaf certificate");
	}
	memcpy(l->host.text, host.p, host.n);
	l->host.n = host.n;
	l->since_ns = now_ns;
	l->cert = d2i_X509(NULL, &p, (long)der.n);
	if (l->cert == NULL || X509_check_private_key(l->cert, t->key) != 1) {
		X509_free(l->cert);
		free(l);
		return tls_error(err, "read a leaf certificate");
	}
	l->next = t->leaves;
	t->leaves = l;
	t->leaves_n++;
	return 0;
}

struct ssl_st *tls_server(
    struct tls *t, const struct host *host, bool *sni_bad, struct box_err *err)
{
	const struct leaf *l = find_leaf(t, host_sv(host));
	SSL *ssl = l != NULL ? SSL_new(t->server) : NULL;

	if (ssl == NULL || SSL_use_certificate(ssl, l->cert) != 1 ||
	    SSL_use_PrivateKey(ssl, t->key) != 1 ||
	    SSL_set_ex_data(ssl, t->host_index, (void *)(uintptr_t)host) != 1 ||
	    SSL_set_ex_data(ssl, t->bad_index, sni_bad) != 1) {
		SSL_free(ssl);
		(void)tls_error(err, "begin TLS with the workload");
		return NULL;
	}
	SSL_set_accept_state(ssl);
	return ssl;
}

static int add_roots(X509_STORE *store, const STACK_OF(X509) * roots)
{
	for (int i = 0; i < sk_X509_num(roots); i++) { /* -1 for NULL */
		if (X509_STORE_add_cert(store, sk_X509_value(roots, i)) != 1)
			return -1;
	}
	return 0;
}

static SSL_CTX *make_client(struct tls *t, uint64_t mask, struct box_err *err)
{
	static const unsigned char alpn[] = "\x08http/1.1";
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	X509_STORE *store = ctx != NULL ? SSL_CTX_get_cert_store(ctx) : NULL;

	if (store == NULL || SSL_CTX_set_alpn_protos(ctx, alpn, sizeof(alpn) - 1) != 0 ||
	    add_roots(store, t->roots[GW_ROUTES_MAX]) < 0)
		goto fail;
	for (size_t i = 0; i < GW_ROUTES_MAX; i++) {
		if ((mask >> i & 1) != 0 && add_roots(store, t->roots[i]) < 0)
			goto fail;
	}
	/* A `trust` file may hold the server's own certificate or an intermediate one. */
	if (mask != 0)
		(void)X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
	ctx_common(ctx);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	return ctx;
fail:
	SSL_CTX_free(ctx);
	(void)tls_error(err, "make the TLS client");
	return NULL;
}

static SSL_CTX *client_ctx(struct tls *t, uint64_t mask, struct box_err *err)
{
	struct trust *x;

	for (size_t i = 0; i < t->trust_n; i++) {
		if (t->trust[i].mask == mask)
			return t->trust[i].ctx;
	}
	if (t->trust_n == TLS_TRUSTS_MAX) { /* start over; connections hold references */
		while (t->trust_n != 0)
			SSL_CTX_free(t->trust[--t->trust_n].ctx);
	}
	x = &t->trust[t->trust_n];
	x->mask = mask;
	x->ctx = make_client(t, mask, err);
	if (x->ctx != NULL)
		t->trust_n++;
	return x->ctx;
}

struct ssl_st *tls_client(struct tls *t, const struct routes *routes, const struct host *host,
    uint16_t port, struct box_err *err)
{
	uint64_t mask = 0;
	SSL_CTX *ctx;
	SSL *ssl;
	int ok;

	for (size_t i = 0; i < routes->n; i++) {
		if (t->roots[i] != NULL && route_on_host(&routes->v[i], host_sv(host), port))
			mask |= UINT64_C(1) << i;
	}
	ctx = client_ctx(t, mask, err);
	if (ctx == NULL)
		return NULL;
	ssl = SSL_new(ctx);
	if (ssl == NULL) {
		(void)tls_error(err, "begin TLS with the origin");
		return NULL;
	}
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (host->kind == HOST_NAME)
		ok = SSL_set1_host(ssl, host->text) == 1 &&
		     SSL_set_tlsext_host_name(ssl, host->text) == 1;
	else
		ok = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host->text) == 1;
	if (!ok) {
		SSL_free(ssl);
		(void)tls_error(err, "begin TLS with the origin");
		return NULL;
	}
	SSL_set_connect_state(ssl);
	return ssl;
}
