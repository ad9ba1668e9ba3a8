/* The run's CA: what a leaf says, what is refused, what the bundle holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "monitor/ca.h"

#include "base/ban.h"

static int64_t now_ns = INT64_C(1764500000) * NS_PER_SEC;

static X509 *read_pem(sv pem)
{
	BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);
	X509 *x = PEM_read_bio_X509(bio, NULL, NULL, NULL);

	BIO_free(bio);
	return x;
}

static void put_spki(EVP_PKEY *key, struct buf *out)
{
	unsigned char *p = NULL;
	int n = i2d_PUBKEY(key, &p);

	assert_true(n > 0);
	buf_put(out, p, (size_t)n);
	OPENSSL_free(p);
}

static bool verifies(X509 *leaf, X509 *root, const char *host, const char *ip, int64_t at_s)
{
	X509_STORE *store = X509_STORE_new();
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	bool ok;

	X509_STORE_add_cert(store, root);
	X509_STORE_CTX_init(ctx, store, leaf, NULL);
	X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(ctx), at_s);
	X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(ctx), X509_V_FLAG_X509_STRICT);
	X509_STORE_CTX_set_default(ctx, "ssl_server");
	if (host != NULL)
		X509_VERIFY_PARAM_set1_host(X509_STORE_CTX_get0_param(ctx), host, 0);
	if (ip != NULL)
		X509_VERIFY_PARAM_set1_ip_asc(X509_STORE_CTX_get0_param(ctx), ip);
	ok = X509_verify_cert(ctx) == 1;
	X509_STORE_CTX_free(ctx);
	X509_STORE_free(store);
	return ok;
}

static void leaves(void **state)
{
	struct clock now = clock_fixed(&now_ns);
	struct box_err err = { 0 };
	struct ca *c = ca_new(SV("demo"), &now, &err);
	EVP_PKEY *key = EVP_EC_gen("P-256");
	AUTO_BUF spki = buf_with(1024);
	X509 *root;
	static const char *const hosts[] = { "api.test", "10.0.0.1", "2001:db8::1", "localhost",
		"a_b.test" };
	int64_t t = now_ns / NS_PER_SEC;

	(void)state;
	assert_non_null(c);
	root = read_pem(ca_cert_pem(c));
	assert_non_null(root);
	assert_int_equal(X509_check_ca(root), 1);
	put_spki(key, &spki);
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		AUTO_BUF der = buf_with(8192);
		const unsigned char *p;
		bool ip = hosts[i][0] == '1' || hosts[i][0] == '2';
		X509 *leaf;

		assert_int_equal(ca_issue(c, sv_c(hosts[i]), buf_sv(&spki), &der, &err), 0);
		p = der.p;
		leaf = d2i_X509(NULL, &p, (long)der.n);
		assert_non_null(leaf);
		assert_int_equal(X509_check_private_key(leaf, key), 1);
		assert_true(verifies(leaf, root, ip ? NULL : hosts[i], ip ? hosts[i] : NULL, t));
		assert_true(
		    verifies(leaf, root, ip ? NULL : hosts[i], ip ? hosts[i] : NULL, t - 3600));
		assert_false(verifies(leaf, root, "other.test", NULL, t));
		assert_false(verifies(leaf, root, NULL, NULL, t + 8 * 86400));
		assert_int_equal(X509_check_ca(leaf), 0);
		X509_free(leaf);
	}
	X509_free(root);
	EVP_PKEY_free(key);
	ca_free(c);
}

static void refusals(void **state)
{
	struct clock now = clock_fixed(&now_ns);
	struct box_err err = { 0 };
	struct ca *c = ca_new(SV("demo"), &now, &err);
	EVP_PKEY *key = EVP_EC_gen("P-256"), *p384 = EVP_EC_gen("P-384"), *rsa = EVP_RSA_gen(2048);
	AUTO_BUF spki = buf_with(1024), other = buf_with(1024), der = buf_with(8192);
	static const char *const hosts[] = { "", "A.test", "a.test.", "*.test", "a b", "127.1",
		"[::1]", "::ffff:1.2.3.4", "a.test,b.test", "a.test\n", "DNS:a" };

	(void)state;
	put_spki(key, &spki);
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++)
		assert_int_equal(ca_issue(c, sv_c(hosts[i]), buf_sv(&spki), &der, &err), -1);
	put_spki(p384, &other);
	assert_int_equal(ca_issue(c, SV("a.test"), buf_sv(&other), &der, &err), -1);
	buf_clear(&other);
	put_spki(rsa, &other);
	assert_int_equal(ca_issue(c, SV("a.test"), buf_sv(&other), &der, &err), -1);
	buf_put_byte(&spki, 0);
	assert_int_equal(ca_issue(c, SV("a.test"), buf_sv(&spki), &der, &err), -1);
	assert_int_equal(ca_issue(c, SV("a.test"), SV(""), &der, &err), -1);
	assert_int_equal(ca_issue(c, SV("a.test"), SV("junk"), &der, &err), -1);
	assert_int_equal(der.n, 0);
	EVP_PKEY_free(key);
	EVP_PKEY_free(p384);
	EVP_PKEY_free(rsa);
	ca_free(c);
}

static void bundle(void **state)
{
	struct clock now = clock_fixed(&now_ns);
	struct box_err err = { 0 };
	struct ca *c = ca_new(SV("demo"), &now, &err), *other = ca_new(SV("other"), &now, &err);
	AUTO_BUF in = buf_with(1 << 20), out = buf_with(1 << 20);

	(void)state;
	assert_int_equal(ca_bundle(c, SV(""), &out, &err), 0);
	assert_true(sv_eq(buf_sv(&out), ca_cert_pem(c)));
	buf_clear(&out);
	buf_put_c(&in, "# a comment\n");
	buf_put_sv(&in, ca_cert_pem(other));
	buf_put_c(&in, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
	buf_put_sv(&in, ca_cert_pem(other));
	assert_int_equal(ca_bundle(c, buf_sv(&in), &out, &err), 0);
	assert_int_equal(out.n, 2 * ca_cert_pem(other).n + ca_cert_pem(c).n);
	assert_true(sv_find_sv(buf_sv(&out), SV("PRIVATE")) < 0);
	assert_true(sv_ends(buf_sv(&out), ca_cert_pem(c)));
	buf_clear(&out);
	assert_int_equal(
	    ca_bundle(
	        c, SV("-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n"), &out, &err),
	    -1);
	ca_free(c);
	ca_free(other);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves),
		cmocka_unit_test(refusals),
		cmocka_unit_test(bundle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
