/* authority: what a request names – host, port, path – read once into the form that is judged,
 * dialled, certified and forwarded. Nothing else in the gateway reads these.
 *
 * Hostile input. A spelling with two readings is refused; a spelling with one reading is reduced to
 * its canonical form (RFC 3986 6.2.2, host.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/host.h"
#include "base/sv.h"

struct authority {
	struct host host;
	uint16_t port;
};

/* "host:port", "host" when default_port is not 0, "[v6]:port". No userinfo, no empty port, no
 * leading zero, 1 to 65535. BOX_EPARSE. */
int authority_parse(sv s, uint16_t default_port, struct authority *out, struct box_err *err);
bool authority_eq(const struct authority *a, const struct authority *b);
/* For the Host header: brackets around IPv6, port left out when it is default_port. */
void authority_put(struct buf *out, const struct authority *a, uint16_t default_port);

/* A request target split into path (raw) and query (with its '?', or empty). Views into the
 * target. */
struct target {
	struct authority authority; /* absolute form only */
	bool is_asterisk;           /* "*" */
	sv path, query;
};

/* origin-form "/path?query", or "*" when the method is OPTIONS (RFC 9112 3.2). */
int target_origin(sv s, sv method, struct target *out, struct box_err *err);
/* absolute-form "http://authority/path?query"; the default port is 80. Other schemes are
 * refused. */
int target_absolute(sv s, struct target *out, struct box_err *err);

/* The canonical path: escapes of unreserved characters decoded, other escapes in upper case, bytes
 * that have no place in a path escaped, "." and ".." segments removed, "/" for empty. Escapes of
 * reserved characters stay (%2F is not '/'). Refused: a backslash, '#', controls, a broken escape,
 * %00. The result is appended to out; judged and forwarded alike. */
int path_canon(sv raw, struct buf *out, struct box_err *err);
/* A query goes through untouched, so it is only checked: no control, no space, no '#'. */
int query_check(sv query, struct box_err *err);
