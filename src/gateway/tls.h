/* tls: both TLS sides of the gateway. Towards the workload: a server whose leaf for the CONNECT
 * host the monitor signed. Towards the origin: a client that verifies against the system's roots
 * and the `trust` of the routes on that host. TLS 1.2 or later, ALPN http/1.1, no tickets, no
 * renegotiation, no early data; no configuration file, no environment variable, no key log. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/host.h"
#include "gateway/route.h"

struct ssl_st;
struct tls;

#define TLS_LEAVES_MAX 256   /* leaves kept; all are forgotten when one more comes */
#define TLS_LEAF_S     86400 /* and each after a day */
#define TLS_TRUSTS_MAX 32    /* different sets of routes' roots in use */

/* Initialises OpenSSL without its configuration file. NULL with err. */
struct tls *tls_new(struct box_err *err);
void tls_free(struct tls *t);
/* The gateway's public key, SubjectPublicKeyInfo DER. */
sv tls_spki(const struct tls *t);

/* Certificates for verifying origins: target is GW_ROUTE_NONE for the system's roots, else a route.
 * Called again for each chunk; tls_trust_end parses. */
int tls_trust_chunk(struct tls *t, uint16_t target, sv pem, struct box_err *err);
int tls_trust_end(struct tls *t, struct box_err *err);

/* The leaf kept for a host: false when it must be asked for. */
bool tls_has_leaf(const struct tls *t, sv host, int64_t now_ns);
int tls_add_leaf(struct tls *t, sv host, sv der, int64_t now_ns, struct box_err *err);

/* A server side for `host` with its leaf (tls_has_leaf). *sni_bad (borrowed for the life of the
 * handshake) becomes true when the client's SNI names another host; the handshake then ends with
 * unrecognized_name. */
struct ssl_st *tls_server(
    struct tls *t, const struct host *host, bool *sni_bad, struct box_err *err);
/* A client side for `host`, which the peer's certificate must name. */
struct ssl_st *tls_client(struct tls *t, const struct routes *routes, const struct host *host,
    uint16_t port, struct box_err *err);
