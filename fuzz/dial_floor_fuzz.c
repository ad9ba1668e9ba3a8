/* Hosts and addresses before the floor: whatever way an address of a metadata service or a
 * link-local one is spelled or wrapped, it is closed. */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "dial/floor.h"

#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);

/* The four bytes that an address of sixteen wraps, by RFC 4291 2.5.5, RFC 6052 2.1, RFC 3056 2. */
static const uint8_t *inner(const uint8_t a[16])
{
	static const uint8_t zero[12];
	static const uint8_t nat64[12] = { 0, 0x64, 0xff, 0x9b };

	if (a[0] == 0x20 && a[1] == 0x02)
		return a + 2;
	if (memcmp(a, nat64, 12) == 0)
		return a + 12;
	if (memcmp(a, zero, 10) == 0 && a[10] == 0xff && a[11] == 0xff)
		return a + 12;
	return NULL;
}

static void address(const uint8_t *p, bool six)
{
	struct sockaddr_in6 s6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in s4 = { .sin_family = AF_INET };
	const struct sockaddr *sa = six ? (void *)&s6 : (void *)&s4;
	const uint8_t *four = six ? inner(p) : p;
	struct host h, again;
	struct box_err err;

	if (six)
		memcpy(&s6.sin6_addr, p, 16);
	else
		memcpy(&s4.sin_addr, p, 4);
	CHECK(host_from_sockaddr(sa, &h, &err) == 0 && h.kind != HOST_NAME);
	/* Its text is the same host. */
	CHECK(host_parse(host_sv(&h), false, &again, &err) == 0 && again.kind == h.kind);
	CHECK(sv_eq(host_sv(&h), host_sv(&again)));
	if (four != NULL && four[0] == 169 && four[1] == 254)
		CHECK(floor_closes(&h));
	if (six && p[0] == 0xfe && (p[1] & 0xc0) == 0x80)
		CHECK(floor_closes(&h));
	if (four != NULL && (four[0] == 0 || four[0] >= 224) && (four[0] < 240 || four[0] == 0))
		CHECK(!floor_is_host(&h));
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	struct host h, again;
	struct box_err err;
	struct sockaddr_storage ss;
	sv text = { (const char *)d, n };

	if (n >= 16)
		address(d, true);
	if (n >= 4)
		address(d, false);
	for (int bracketed = 0; bracketed < 2; bracketed++) {
		if (host_parse(text, bracketed != 0, &h, &err) != 0)
			continue;
		CHECK(host_parse(host_sv(&h), false, &again, &err) == 0);
		CHECK(floor_closes(&h) == floor_closes(&again));
		if (h.kind == HOST_NAME) {
			CHECK(host_to_sockaddr(&h, 1, &ss) == 0 && !floor_is_host(&h));
			continue;
		}
		/* What was judged is what is dialled. */
		CHECK(host_to_sockaddr(&h, 1, &ss) != 0);
		CHECK(host_from_sockaddr((struct sockaddr *)&ss, &again, &err) == 0);
		CHECK(again.kind == h.kind && sv_eq(host_sv(&h), host_sv(&again)));
	}
	return 0;
}
