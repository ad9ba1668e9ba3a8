/* TLS of both sides of the gateway. The first byte picks: bytes of a client or of an origin that
 * go into a handshake as they are; roots (PEM); a leaf (DER); or a client that knows TLS and says
 * any name and any protocols: its handshake ends well only for the host of the tunnel and
 * http/1.1. */
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/proto.h"
#include "gateway/tls.h"
#include "monitor/ca.h"

#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())
#define HOST     "api.test"

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);

struct world {
	struct tls *tls;
	SSL_CTX *client;
	struct host host;
};

static int64_t now = (int64_t)20000 * 86400 * NS_PER_SEC;

static void begin(struct world *w)
{
	static struct clock wall;
	AUTO_BUF der = buf_with(65536);
	struct box_err err;
	struct ca *ca;

	wall = clock_fixed(&now);
	ca = ca_new(SV("fuzz"), &wall, &err);
	w->tls = tls_new(&err);
	w->client = SSL_CTX_new(TLS_client_method());
	CHECK(ca != NULL && w->tls != NULL && w->client != NULL);
	CHECK(host_parse(SV(HOST), false, &w->host, &err) == 0);
	CHECK(ca_issue(ca, SV(HOST), tls_spki(w->tls), &der, &err) == 0);
	CHECK(tls_add_leaf(w->tls, SV(HOST), buf_sv(&der), now, &err) == 0);
	ca_free(ca);
}

static void attach(SSL *ssl, BIO **to, BIO **from)
{
	*to = BIO_new(BIO_s_mem());
	*from = BIO_new(BIO_s_mem());
	CHECK(ssl != NULL && *to != NULL && *from != NULL);
	SSL_set_bio(ssl, *to, *from);
}

/* Bytes that nobody with the keys wrote never end a handshake. */
static void raw(SSL *ssl, sv bytes)
{
	BIO *to, *from;

	attach(ssl, &to, &from);
	(void)SSL_do_handshake(ssl); /* a client speaks first */
	if (bytes.n != 0)
		(void)BIO_write(to, bytes.p, (int)bytes.n);
	CHECK(SSL_do_handshake(ssl) != 1);
	SSL_free(ssl);
	ERR_clear_error();
}

static void move(BIO *from, BIO *to)
{
	char tmp[4096];
	int n;

	while ((n = BIO_read(from, tmp, sizeof(tmp))) > 0)
		CHECK(BIO_write(to, tmp, n) == n);
}

static bool offers_http1(sv list)
{
	struct rd r = rd_of(list.p, list.n);

	while (rd_left(&r) != 0)
		if (sv_eq(rd_bytes(&r, rd_u8(&r)), SV("http/1.1")))
			return true;
	return false;
}

/* Name up to the first NUL, then the protocol list as it stands in the extension. */
static void clever_client(const struct world *w, sv in)
{
	bool sni_bad = false, set_name, set_list;
	struct box_err err;
	struct host named;
	sv name, list;
	char text[256];
	BIO *s_in, *s_out, *c_in, *c_out;
	SSL *s = tls_server(w->tls, &w->host, &sni_bad, &err), *c = SSL_new(w->client);
	int r = 0;

	(void)sv_cut(in, '\0', &name, &list);
	attach(s, &s_in, &s_out);
	attach(c, &c_in, &c_out);
	SSL_set_connect_state(c);
	set_name = name.n != 0 && name.n < sizeof(text);
	if (set_name) {
		memcpy(text, name.p, name.n);
		text[name.n] = '\0';
		set_name = SSL_set_tlsext_host_name(c, text) == 1;
	}
	set_list = list.n != 0 &&
	           SSL_set_alpn_protos(c, (const unsigned char *)list.p, (unsigned)list.n) == 0;
	for (int i = 0; i < 6; i++) {
		(void)SSL_do_handshake(c);
		move(c_out, s_in);
		r = SSL_do_handshake(s);
		move(s_out, c_in);
	}
	if (r == 1) {
		CHECK(!sni_bad);
		CHECK(!set_name || (host_parse(name, false, &named, NULL) == 0 &&
		                       sv_eq(host_sv(&named), SV(HOST))));
		CHECK(!set_list || offers_http1(list));
	} else {
		CHECK(set_name || set_list); /* a plain client is served */
	}
	SSL_free(s);
	SSL_free(c);
	ERR_clear_error();
}

/* Each input is the roots of another route; what OpenSSL registers for a struct tls is never given
 * back, so one serves for many. */
static void roots(sv pem)
{
	static struct tls *t;
	static uint16_t route;
	struct box_err err = { 0 };

	if (t == NULL)
		t = tls_new(&err);
	CHECK(t != NULL);
	if (tls_trust_chunk(t, route, pem, &err) != 0 || tls_trust_end(t, &err) != 0)
		CHECK(err.code != BOX_OK);
	if (++route < GW_ROUTES_MAX)
		return;
	tls_free(t);
	t = NULL;
	route = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	static struct world w;
	static struct routes none;
	struct box_err err = { 0 };
	bool sni_bad = false;
	sv in = { (const char *)d + 1, n - 1 };

	if (n == 0)
		return 0;
	if (w.tls == NULL)
		begin(&w);
	switch (d[0] % 8) {
	case 0:
		raw(tls_server(w.tls, &w.host, &sni_bad, &err), in);
		break;
	case 1:
		raw(tls_client(w.tls, &none, &w.host, 443, &err), in);
		break;
	case 2:
		roots(in);
		break;
	case 3: /* nobody has the key that it must be for */
		CHECK(tls_add_leaf(w.tls, SV("other.test"), in, now, &err) != 0);
		break;
	default:
		clever_client(&w, in);
	}
	return 0;
}
