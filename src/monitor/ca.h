/* ca: the certificate authority of one run. It lives in the monitor: its key never leaves this
 * process, is never written, and dies with it. box-gateway has a key of its own and asks for
 * leaves; a request that lies gets a leaf for the lie, usable only by processes that trust this
 * run's CA. */
#pragma once

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/sv.h"

struct ca;

#define CA_BUNDLE_MAX ((size_t)8 << 20)
#define CA_SPKI_MAX   256u /* a P-256 SubjectPublicKeyInfo has 91 bytes */

/* A fresh P-256 key and a self-signed certificate "Boxwood box <name>", valid from a day before now
 * for 30 days, path length 0. now is the wall clock; it is borrowed for the life of the CA. NULL
 * with err. */
struct ca *ca_new(sv name, const struct clock *now, struct box_err *err);
void ca_free(struct ca *c);
/* The certificate as PEM (for <BD>/trust/cert.pem). Borrowed, valid until ca_free. */
sv ca_cert_pem(const struct ca *c);
/* A server leaf for a host (canonical: gateway/authority.h; an IP literal becomes an iPAddress
 * name, anything else a dNSName) that carries the public key of spki (SubjectPublicKeyInfo, DER; EC
 * P-256 only). Valid from a day before now for 7 days. The certificate is appended to der_out as
 * DER. */
int ca_issue(struct ca *c, sv host, sv spki, struct buf *der_out, struct box_err *err);
/* The bundle for the workload: every certificate of roots_pem (re-encoded; anything else in it is
 * dropped, so that no private key can slip through), then ours. roots_pem may be empty. BOX_ELIMIT
 * above CA_BUNDLE_MAX. */
int ca_bundle(const struct ca *c, sv roots_pem, struct buf *out, struct box_err *err);
