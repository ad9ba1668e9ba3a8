/* host: one canonical form for host names and IP addresses. Everything that judges, resolves, dials
 * or certifies a host uses this form, so that the string that was decided is the string that is
 * used.
 *
 * Hostile input: names come from request lines, SNI, Host headers, configuration and DNS. What has
 * two readings (short and octal IPv4, zone ids, empty labels, bytes outside a-z 0-9 - _ .) is
 * refused. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/sv.h"

#define HOST_MAX       253 /* bytes of a name (RFC 1035 2.3.4, without the final dot) */
#define HOST_LABEL_MAX 63

enum host_kind { HOST_NAME = 1, HOST_IP4, HOST_IP6 };

struct host {
	enum host_kind kind;
	char text[HOST_MAX + 1]; /* NUL-terminated */
	size_t n;
	uint8_t addr[16]; /* network order; 4 bytes for HOST_IP4, 16 for HOST_IP6 */
};

static inline sv host_sv(const struct host *h)
{
	return (sv){ h->text, h->n };
}

/* Read a host: a name, a dotted quad, or an IPv6 literal. bracketed says that the literal stood in
 * [ ] (which are not part of s): then nothing but IPv6 is accepted. Names become lower case and
 * lose one final dot; IPv6 is compressed (RFC 5952) and the forms that carry an IPv4 address
 * (host_ip6_embedded) become that address. BOX_EPARSE otherwise. */
int host_parse(sv s, bool bracketed, struct host *out, struct box_err *err);

/* Does this IPv6 address stand for an IPv4 address? Mapped ::ffff:0:0/96, compatible ::/96 (not ::
 * and ::1), translated ::ffff:0:0:0/96, NAT64 64:ff9b::/96, 6to4 2002::/16. The four bytes go to
 * v4. */
bool host_ip6_embedded(const uint8_t addr[16], uint8_t v4[4]);

/* The canonical host of a socket address (AF_INET, AF_INET6): what is decided as `ip`. BOX_EPARSE
 * for another family. */
int host_from_sockaddr(const struct sockaddr *sa, struct host *out, struct box_err *err);
/* A socket address for an IP host. Returns its length, 0 for a name. */
socklen_t host_to_sockaddr(const struct host *h, uint16_t port, struct sockaddr_storage *ss);
