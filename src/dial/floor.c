/* floor: see floor.h. */
#include "dial/floor.h"

#include "base/ban.h"

struct prefix {
	uint8_t kind;
	uint8_t bits;
	uint8_t addr[16];
};

static bool in_prefix(const struct host *h, const struct prefix *p)
{
	size_t whole = p->bits / 8;
	unsigned rest = p->bits % 8;

	if (h->kind != (enum host_kind)p->kind || memcmp(h->addr, p->addr, whole) != 0)
		return false;
	return rest == 0 || (h->addr[whole] ^ p->addr[whole]) >> (8 - rest) == 0;
}

static bool in_any(const struct host *h, const struct prefix *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (in_prefix(h, &p[i]))
			return true;
	}
	return false;
}

/* Addresses that are closed whatever leads there. */
static bool closed_address(const struct host *h)
{
	static const struct prefix closed[] = {
		{ HOST_IP4, 16, { 169, 254 } }, /* link-local; AWS, GCP, Azure, … (RFC 3927) */
		{ HOST_IP4, 32, { 100, 100, 100, 200 } }, /* Alibaba Cloud */
		{ HOST_IP4, 32, { 168, 63, 129, 16 } },   /* Azure WireServer */
		{ HOST_IP4, 32, { 192, 0, 0, 192 } },     /* Oracle Cloud */
		{ HOST_IP6, 10, { 0xfe, 0x80 } },         /* link-local (RFC 4291 2.5.6) */
		{ HOST_IP6, 128,
		    { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54 } }, /* fd00:ec2::254, AWS */
		{ HOST_IP6, 128,
		    { 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54 } }, /* fd20:ce::254, GCP */
	};

	return in_any(h, closed, sizeof(closed) / sizeof(closed[0]));
}

/* 64:ff9b:1::/48 is for translation to IPv4 (RFC 8215); where in it the IPv4 address lies is the
 * network's choice (RFC 6052 2.2). Does any of the places hold a closed one? */
static bool closed_by_translation(const struct host *h)
{
	static const struct prefix local = { HOST_IP6, 48, { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 } };
	static const uint8_t places[][4] = { { 6, 7, 9, 10 }, { 7, 9, 10, 11 }, { 9, 10, 11, 12 },
		{ 12, 13, 14, 15 } };

	if (!in_prefix(h, &local))
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		struct host v4 = { .kind = HOST_IP4 };

		for (size_t k = 0; k < 4; k++)
			v4.addr[k] = h->addr[places[i][k]];
		if (closed_address(&v4))
			return true;
	}
	return false;
}

bool floor_closes(const struct host *h)
{
	static const sv names[] = { SV_INIT("metadata"), SV_INIT("metadata.google.internal"),
		SV_INIT("metadata.goog"), SV_INIT("metadata.azure.internal"),
		SV_INIT("metadata.azure.com"), SV_INIT("metadata.tencentyun.com"),
		SV_INIT("instance-data"), SV_INIT("instance-data.ec2.internal") };

	if (h->kind != HOST_NAME)
		return closed_address(h) || closed_by_translation(h);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (sv_eq(host_sv(h), names[i]))
			return true;
	}
	return sv_ends(host_sv(h), SV(".metadata.google.internal"));
}

bool floor_is_host(const struct host *h)
{
	static const struct prefix none[] = {
		{ HOST_IP4, 8,
		    { 0 } }, /* "this network" (RFC 1122 3.2.1.3): Linux connects to itself */
		{ HOST_IP4, 4, { 224 } }, /* multicast */
		{ HOST_IP4, 32, { 255, 255, 255, 255 } },
		{ HOST_IP6, 128, { 0 } },  /* :: likewise */
		{ HOST_IP6, 8, { 0xff } }, /* multicast */
	};

	return h->kind != HOST_NAME && !in_any(h, none, sizeof(none) / sizeof(none[0]));
}
