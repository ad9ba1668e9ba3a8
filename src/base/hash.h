/* Hashes. SipHash-2-4 with a random key for tables that hold names from outside (no crafted
 * collisions); CRC-32C for torn-record detection. SHA-256 is OpenSSL's, used where a digest must
 * withstand an adversary. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/sv.h"

struct sip_key {
	uint64_t k0, k1;
};
/* A key from getrandom(2). Fails only when the kernel has no randomness: then it aborts, as nothing
 * can go on. */
struct sip_key sip_key_random(void);
/* SipHash-2-4 (Aumasson and Bernstein 2012). */
uint64_t sip_hash(struct sip_key k, sv s);

/* CRC-32C (Castagnoli, RFC 3720 B.4) of s, continuing from crc (0 to begin). */
uint32_t crc32c(uint32_t crc, sv s);
