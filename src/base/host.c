/* host: canonical names and addresses (host.h). Hostile input; no allocation, no recursion. */
#include "base/host.h"

#include <arpa/inet.h>

#include "base/ban.h"

static void host_set4(struct host *out, const uint8_t v4[4])
{
	memset(out, 0, sizeof(*out));
	out->kind = HOST_IP4;
	memcpy(out->addr, v4, 4);
	(void)inet_ntop(
	    AF_INET, v4, out->text, sizeof(out->text)); /* cannot fail: room is enough */
	out->n = strlen(out->text);
}

bool host_ip6_embedded(const uint8_t a[16], uint8_t v4[4])
{
	static const uint8_t zero[16];
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	static const uint8_t translated[12] = { [8] = 0xff, [9] = 0xff };
	static const uint8_t nat64[12] = { 0x00, 0x64, 0xff, 0x9b };
	static const uint8_t to4[2] = { 0x20, 0x02 };

	if (memcmp(a, to4, 2) == 0) {
		memcpy(v4, a + 2, 4);
		return true;
	}
	if (memcmp(a, mapped, 12) == 0 || memcmp(a, translated, 12) == 0 ||
	    memcmp(a, nat64, 12) == 0 ||
	    (memcmp(a, zero, 12) == 0 && (memcmp(a + 12, zero, 3) != 0 || a[15] > 1))) {
		memcpy(v4, a + 12, 4);
		return true;
	}
	return false;
}

static void host_set6(struct host *out, const uint8_t addr[16])
{
	uint8_t v4[4];

	if (host_ip6_embedded(addr, v4)) {
		host_set4(out, v4);
		return;
	}
	memset(out, 0, sizeof(*out));
	out->kind = HOST_IP6;
	memcpy(out->addr, addr, 16);
	(void)inet_ntop(AF_INET6, addr, out->text, sizeof(out->text));
	out->n = strlen(out->text);
}

/* "1.2.3.4" with no leading zero and nothing else. */
static bool host_quad(sv s, uint8_t v4[4])
{
	uint64_t v;
	sv part;

	for (int i = 0; i < 4; i++) {
		bool more = sv_cut(s, '.', &part, &s);

		if (more != (i < 3) || part.n == 0 || part.n > 3 ||
		    (part.n > 1 && part.p[0] == '0') || !sv_to_u64(part, 10, 255, &v))
			return false;
		v4[i] = (uint8_t)v;
	}
	return true;
}

/* Would some resolver read this label as a number? Then the whole must have been a dotted quad
 * (WHATWG URL, "ends in a number"). */
static bool host_numeric(sv label)
{
	size_t i = 0;

	if (label.n >= 2 && label.p[0] == '0' && label.p[1] == 'x') {
		for (i = 2; i < label.n; i++) {
			char c = label.p[i];

			if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
				return false;
		}
		return true;
	}
	for (; i < label.n; i++) {
		if (label.p[i] < '0' || label.p[i] > '9')
			return false;
	}
	return true;
}

static int host_name(sv s, struct host *out, struct box_err *err)
{
	size_t label = 0, last = 0;
	uint8_t v4[4];

	if (s.n != 0 && s.p[s.n - 1] == '.')
		s.n--;
	if (s.n == 0)
		return box_fail(err, BOX_EPARSE, 0, "the host name is empty");
	if (s.n > HOST_MAX)
		return box_fail(
		    err, BOX_EPARSE, 0, "the host name is longer than %d bytes", HOST_MAX);
	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (c == '.') {
			if (i == label)
				return box_fail(
				    err, BOX_EPARSE, 0, "the host name has an empty label");
			label = i + 1;
			last = label;
		} else if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
		               c == '_')) {
			return box_fail(err, BOX_EPARSE, 0,
			    "the host name holds byte 0x%02x; letters, digits, '-', '_' and '.' "
			    "are allowed",
			    (uint8_t)c);
		}
		if (i - label >= HOST_LABEL_MAX && c != '.')
			return box_fail(
			    err, BOX_EPARSE, 0, "a label of the host name is longer than 63 bytes");
		out->text[i] = c;
	}
	if (out->text[0] == '-')
		return box_fail(err, BOX_EPARSE, 0, "the host name begins with '-'");
	out->n = s.n;
	out->kind = HOST_NAME;
	if (host_numeric((sv){ out->text + last, out->n - last })) {
		if (!host_quad(host_sv(out), v4))
			return box_fail(err, BOX_EPARSE, 0,
			    "an IPv4 address is written as four decimal numbers without leading "
			    "zeros");
		host_set4(out, v4);
	}
	return 0;
}

int host_parse(sv s, bool bracketed, struct host *out, struct box_err *err)
{
	char text[INET6_ADDRSTRLEN];
	uint8_t addr[16];

	if (!bracketed && sv_find(s, ':') < 0)
		return host_name(s, out, err);
	if (s.n == 0 || s.n >= sizeof(text) || sv_has_ctl(s))
		return box_fail(err, BOX_EPARSE, 0, "not an IPv6 address");
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	if (inet_pton(AF_INET6, text, addr) != 1) /* takes no zone id */
		return box_fail(err, BOX_EPARSE, 0, "not an IPv6 address");
	host_set6(out, addr);
	return 0;
}

int host_from_sockaddr(const struct sockaddr *sa, struct host *out, struct box_err *err)
{
	struct sockaddr_in6 in6;
	struct sockaddr_in in4;

	if (sa->sa_family == AF_INET) {
		memcpy(&in4, sa, sizeof(in4));
		host_set4(out, (const uint8_t *)&in4.sin_addr);
	} else if (sa->sa_family == AF_INET6) {
		memcpy(&in6, sa, sizeof(in6));
		host_set6(out, (const uint8_t *)&in6.sin6_addr);
	} else {
		return box_fail(err, BOX_EPARSE, 0, "address family %d is not IP", sa->sa_family);
	}
	return 0;
}

socklen_t host_to_sockaddr(const struct host *h, uint16_t port, struct sockaddr_storage *ss)
{
	struct sockaddr_in in4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	memset(ss, 0, sizeof(*ss));
	switch (h->kind) {
	case HOST_IP4:
		memcpy(&in4.sin_addr, h->addr, 4);
		memcpy(ss, &in4, sizeof(in4));
		return sizeof(in4);
	case HOST_IP6:
		memcpy(&in6.sin6_addr, h->addr, 16);
		memcpy(ss, &in6, sizeof(in6));
		return sizeof(in6);
	case HOST_NAME:
		break;
	}
	return 0;
}
