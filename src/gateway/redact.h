/* redact: takes known secrets out of a stream of bytes, also where one lies across the border of
 * two pieces. Holds back only bytes that could be the beginning of a secret, so that a stream of
 * events is not delayed. Transformed copies (base64, escapes) are not recognised:
 * docs/threat-model.md. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/sv.h"

#define REDACT_TEXT   "[REDACTED]"
#define REDACT_MAX    4     /* secrets */
#define REDACT_LENGTH 16384 /* bytes of one secret */

struct redact {
	struct buf secret[REDACT_MAX];
	size_t n;
	struct buf held; /* the end of what was fed, when it may be the beginning of a secret */
};

/* Nothing to look for yet; zeroed storage is that too. */
void redact_init(struct redact *r);
/* Zeroes the secrets. */
void redact_fini(struct redact *r);
/* Add a secret (copied). An empty one is ignored. -1 when there is no room. */
int redact_add(struct redact *r, sv secret);
/* Append what is safe of held bytes and `in` to out. -1 without memory. */
int redact_feed(struct redact *r, sv in, struct buf *out);
/* The stream ended: append what is still held. */
int redact_end(struct redact *r, struct buf *out);
/* A whole value at once, independent of the stream. */
int redact_whole(const struct redact *r, sv in, struct buf *out);
