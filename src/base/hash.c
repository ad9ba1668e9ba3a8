/* SipHash-2-4 and CRC-32C. See hash.h. */
#include "base/hash.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/ban.h"

struct sip_key sip_key_random(void)
{
	struct sip_key k;

	if (getrandom(&k, sizeof(k), 0) != (ssize_t)sizeof(k))
		abort();
	return k;
}

static inline uint64_t rotl(uint64_t x, int b)
{
	return x << b | x >> (64 - b);
}

/* Inlined, so that the state stays in registers: keys of tables are short, and there are many. */
__attribute__((always_inline)) static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

static uint64_t load_le64(const char *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w));
	return le64toh(w);
}

uint64_t sip_hash(struct sip_key k, sv s)
{
	uint64_t v[4] = { k.k0 ^ 0x736f6d6570736575U, k.k1 ^ 0x646f72616e646f6dU,
		k.k0 ^ 0x6c7967656e657261U, k.k1 ^ 0x7465646279746573U };
	uint64_t last = (uint64_t)s.n << 56;
	size_t i = 0;

	for (; s.n - i >= 8; i += 8) {
		uint64_t m = load_le64(s.p + i);

		v[3] ^= m;
		sip_round(v);
		sip_round(v);
		v[0] ^= m;
	}
	for (size_t b = 0; i < s.n; i++, b++)
		last |= (uint64_t)(unsigned char)s.p[i] << (8 * b);
	v[3] ^= last;
	sip_round(v);
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (int r = 0; r < 4; r++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* Half-byte table for the reflected polynomial 0x82f63b78. */
static const uint32_t crc_tab[16] = {
	0x00000000,
	0x105ec76f,
	0x20bd8ede,
	0x30e349b1,
	0x417b1dbc,
	0x5125dad3,
	0x61c69362,
	0x7198540d,
	0x82f63b78,
	0x92a8fc17,
	0xa24bb5a6,
	0xb21572c9,
	0xc38d26c4,
	0xd3d3e1ab,
	0xe330a81a,
	0xf36e6f75,
};

static uint32_t crc_soft(uint32_t c, const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		c = crc_tab[(c ^ p[i]) & 0xf] ^ c >> 4;
		c = crc_tab[(c ^ (uint32_t)p[i] >> 4) & 0xf] ^ c >> 4;
	}
	return c;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_hard(
    uint32_t c, const unsigned char *p, size_t n)
{
	uint64_t w, c64 = c;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&w, p, sizeof(w));
		c64 = __builtin_ia32_crc32di(c64, w);
	}
	c = (uint32_t)c64;
	for (; n != 0; n--, p++)
		c = __builtin_ia32_crc32qi(c, *p);
	return c;
}
#endif

uint32_t crc32c(uint32_t crc, sv s)
{
	const unsigned char *p = (const unsigned char *)s.p;

#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2"))
		return ~crc_hard(~crc, p, s.n);
#endif
	return ~crc_soft(~crc, p, s.n);
}
