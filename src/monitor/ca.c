/* ca: see ca.h. The key is made, used and freed here; OpenSSL wipes it. The names come from the
 * gateway and are read by base/host, so that nothing but a host or an address gets into a
 * certificate. */
#include "monitor/ca.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <time.h>

#include "base/host.h"

#include "base/ban.h"

#define DAY_S     86400
#define CA_DAYS   30
#define LEAF_DAYS 7

struct ca {
	EVP_PKEY *key;
	X509 *cert;
	struct buf pem;
	const struct clock *now;
};

static int ca_error(struct box_err *err, const char *what)
{
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());

	ERR_clear_error();
	return box_fail(
	    err, BOX_ESYS, 0, "%s: %s", what, reason != NULL ? reason : "OpenSSL failed");
}

static bool add_ext(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX v3;
	X509_EXTENSION *e;
	bool ok;

	X509V3_set_ctx_nodb(&v3);
	X509V3_set_ctx(&v3, issuer, x, NULL, NULL, 0);
	e = X509V3_EXT_conf_nid(NULL, &v3, nid, value);
	ok = e != NULL && X509_add_ext(x, e, -1) == 1;
	X509_EXTENSION_free(e);
	return ok;
}

/* Version, a random serial number of 127 bits, and validity from yesterday (clocks differ). */
static bool set_basics(X509 *x, const struct clock *now, int days)
{
	unsigned char serial[16];
	BIGNUM *bn = NULL;
	time_t t = (time_t)(clock_now(now) / NS_PER_SEC);
	bool ok;

	if (RAND_bytes(serial, sizeof(serial)) != 1)
		return false;
	serial[0] = (unsigned char)((serial[0] & 0x7f) | 0x40);
	bn = BN_bin2bn(serial, sizeof(serial), NULL);
	ok = bn != NULL && X509_set_version(x, X509_VERSION_3) == 1 &&
	     BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(x)) != NULL &&
	     ASN1_TIME_adj(X509_getm_notBefore(x), t, -1, 0) != NULL &&
	     ASN1_TIME_adj(X509_getm_notAfter(x), t, days, 0) != NULL;
	BN_free(bn);
	return ok;
}

static bool set_name(X509_NAME *name, sv cn)
{
	return X509_NAME_add_entry_by_txt(
	           name, "CN", MBSTRING_UTF8, (const unsigned char *)cn.p, (int)cn.n, -1, 0) == 1;
}

static int self_sign(struct ca *c, sv name, struct box_err *err)
{
	AUTO_BUF cn = buf_with(64); /* X.520 allows 64 characters */
	X509_NAME *n;

	buf_put_c(&cn, "Boxwood box ");
	buf_put_sv(&cn, sv_sub(name, 0, 48));
	if (!sv_is_utf8(buf_sv(&cn)))
		return box_fail(err, BOX_EPARSE, 0, "the box's name does not fit a certificate");
	c->cert = X509_new();
	n = c->cert != NULL ? X509_get_subject_name(c->cert) : NULL;
	if (n == NULL || !set_basics(c->cert, c->now, CA_DAYS) || !set_name(n, buf_sv(&cn)) ||
	    X509_set_issuer_name(c->cert, n) != 1 || X509_set_pubkey(c->cert, c->key) != 1 ||
	    !add_ext(c->cert, c->cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
	    !add_ext(c->cert, c->cert, NID_key_usage, "critical,keyCertSign,cRLSign") ||
	    !add_ext(c->cert, c->cert, NID_subject_key_identifier, "hash") ||
	    X509_sign(c->cert, c->key, EVP_sha256()) == 0)
		return ca_error(err, "make the run's CA certificate");
	return 0;
}

/* Append one certificate as PEM. */
static int put_pem(X509 *x, struct buf *out, struct box_err *err)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *p = NULL;
	long n;
	int r = 0;

	if (bio == NULL || PEM_write_bio_X509(bio, x) != 1 || (n = BIO_get_mem_data(bio, &p)) <= 0)
		r = ca_error(err, "write a certificate");
	else
		buf_put(out, p, (size_t)n);
	BIO_free(bio);
	return r;
}

struct ca *ca_new(sv name, const struct clock *now, struct box_err *err)
{
	struct ca *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		(void)box_nomem(err, "CA");
		return NULL;
	}
	c->now = now;
	c->pem = buf_with(8192);
	if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1 ||
	    (c->key = EVP_EC_gen("P-256")) == NULL) {
		(void)ca_error(err, "make the run's CA key");
		goto fail;
	}
	if (self_sign(c, name, err) < 0 || put_pem(c->cert, &c->pem, err) < 0)
		goto fail;
	return c;
fail:
	ca_free(c);
	return NULL;
}

void ca_free(struct ca *c)
{
	if (c == NULL)
		return;
	X509_free(c->cert);
	EVP_PKEY_free(c->key);
	buf_fini(&c->pem);
	free(c);
}

sv ca_cert_pem(const struct ca *c)
{
	return buf_sv(&c->pem);
}

/* The public key of a request: P-256 and nothing behind it. */
static EVP_PKEY *read_spki(sv spki)
{
	const unsigned char *p = (const unsigned char *)spki.p, *end = p + spki.n;
	EVP_PKEY *k =
	    spki.n != 0 && spki.n <= CA_SPKI_MAX ? d2i_PUBKEY(NULL, &p, (long)spki.n) : NULL;
	char group[32] = "";
	size_t n;

	if (k != NULL && p == end && EVP_PKEY_get_base_id(k) == EVP_PKEY_EC &&
	    EVP_PKEY_get_group_name(k, group, sizeof(group), &n) == 1 &&
	    sv_eq(sv_c(group), SV("prime256v1")))
		return k;
	EVP_PKEY_free(k);
	return NULL;
}

static bool add_names(X509 *x, const struct host *host)
{
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	GENERAL_NAME *n = GENERAL_NAME_new();
	ASN1_STRING *v =
	    ASN1_STRING_type_new(host->kind == HOST_NAME ? V_ASN1_IA5STRING : V_ASN1_OCTET_STRING);
	const void *p = host->kind == HOST_NAME ? (const void *)host->text : host->addr;
	size_t len = host->kind == HOST_NAME ? host->n : host->kind == HOST_IP4 ? 4 : 16;
	bool ok = false;

	if (names != NULL && n != NULL && v != NULL && ASN1_STRING_set(v, p, (int)len) == 1) {
		GENERAL_NAME_set0_value(n, host->kind == HOST_NAME ? GEN_DNS : GEN_IPADD, v);
		v = NULL;
		if (sk_GENERAL_NAME_push(names, n) > 0) {
			n = NULL;
			/* Critical, as the subject is empty (RFC 5280 4.2.1.6). */
			ok = X509_add1_ext_i2d(
			         x, NID_subject_alt_name, names, 1, X509V3_ADD_DEFAULT) == 1;
		}
	}
	ASN1_STRING_free(v);
	GENERAL_NAME_free(n);
	GENERAL_NAMES_free(names);
	return ok;
}

int ca_issue(struct ca *c, sv host, sv spki, struct buf *der_out, struct box_err *err)
{
	struct host h;
	unsigned char *der = NULL;
	EVP_PKEY *key;
	X509 *x;
	int n = -1;

	if (host_parse(host, sv_find(host, ':') >= 0, &h, err) < 0)
		return box_wrap(err, "a certificate");
	if (!sv_eq(host_sv(&h), host))
		return box_fail(
		    err, BOX_EPARSE, 0, "a certificate: the host is not in its canonical form");
	key = read_spki(spki);
	if (key == NULL) {
		ERR_clear_error();
		return box_fail(
		    err, BOX_EPARSE, 0, "a certificate: the key is not a P-256 public key");
	}
	x = X509_new();
	if (x != NULL && set_basics(x, c->now, LEAF_DAYS) &&
	    X509_set_issuer_name(x, X509_get_subject_name(c->cert)) == 1 &&
	    X509_set_pubkey(x, key) == 1 && add_names(x, &h) &&
	    add_ext(x, c->cert, NID_basic_constraints, "critical,CA:FALSE") &&
	    add_ext(x, c->cert, NID_key_usage, "critical,digitalSignature") &&
	    add_ext(x, c->cert, NID_ext_key_usage, "serverAuth") &&
	    add_ext(x, c->cert, NID_authority_key_identifier, "keyid:always") &&
	    X509_sign(x, c->key, EVP_sha256()) != 0)
		n = i2d_X509(x, &der);
	X509_free(x);
	EVP_PKEY_free(key);
	if (n <= 0)
		return ca_error(err, "make a certificate");
	buf_put(der_out, der, (size_t)n);
	OPENSSL_free(der);
	return buf_ok(der_out) ? 0 : box_fail(err, BOX_ELIMIT, 0, "a certificate is too large");
}

/* Is every byte of a PEM body base64, padding or a line end? */
static bool is_pem_body(sv s)
{
	static const char allowed[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n";
	bool ok[256] = { false };

	for (size_t i = 0; i < sizeof(allowed) - 1; i++)
		ok[(unsigned char)allowed[i]] = true;
	for (size_t i = 0; i < s.n; i++)
		if (!ok[(unsigned char)s.p[i]])
			return false;
	return true;
}

#define CA_CERT_ROOM 4096u /* more than our own certificate takes */

int ca_bundle(const struct ca *c, sv roots_pem, struct buf *out, struct box_err *err)
{
	static const sv begin = SV_INIT("-----BEGIN CERTIFICATE-----\n");
	static const sv end = SV_INIT("-----END CERTIFICATE-----\n");
	sv rest = roots_pem;

	if (roots_pem.n > CA_BUNDLE_MAX)
		return box_fail(err, BOX_ELIMIT, 0, "the system's certificates are over %zu bytes",
		    CA_BUNDLE_MAX);
	(void)buf_room(
	    out, roots_pem.n + CA_CERT_ROOM); /* one allocation; too much is said below */
	/* The text of each certificate block as it stands: this runs at every start, and decoding
	 * 140 certificates takes longer than starting the agent. Whoever reads the bundle decodes
	 * it anyway. */
	for (;;) {
		ptrdiff_t at = sv_find_sv(rest, begin), stop;

		if (at < 0)
			break;
		rest = sv_sub(rest, (size_t)at + begin.n, rest.n);
		stop = sv_find_sv(rest, end);
		if (stop < 0 || !is_pem_body(sv_sub(rest, 0, (size_t)stop)))
			return box_fail(
			    err, BOX_EPARSE, 0, "the system's certificates hold a broken block");
		buf_put_sv(out, begin);
		buf_put_sv(out, sv_sub(rest, 0, (size_t)stop));
		buf_put_sv(out, end);
		rest = sv_sub(rest, (size_t)stop + end.n, rest.n);
	}
	buf_put_sv(out, ca_cert_pem(c));
	if (!buf_ok(out) || out->n > CA_BUNDLE_MAX)
		return box_fail(err, BOX_ELIMIT, 0, "the bundle of certificates is over %zu bytes",
		    CA_BUNDLE_MAX);
	return 0;
}
