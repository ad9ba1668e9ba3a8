/* tokens: the idempotency tokens of the newest events. A ring of the last `max` of them and a
 * hash table over it; the hash is keyed, since tokens are chosen by callers. What is kept
 * besides the token is the verdict, so that a repeat needs no look into the log. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/sv.h"
#include "engine/codec.h"
#include "engine/set.h"

struct eng_token {
	char *text; /* token, then the encoded verdict; NULL: free */
	size_t ntoken, nverdict;
	uint64_t offset;
	int64_t ts;
	struct eng_set *set; /* by which it was judged; NULL: one that is gone */
	uint32_t next;       /* in its chain, + 1 */
};

struct eng_tokens {
	struct eng_token *ring;
	uint32_t *bucket; /* index + 1 of the first in the chain */
	size_t max, at, nbuckets;
	struct sip_key key;
};

/* max 0: tokens are not remembered. Memory comes with the first token. */
void eng_tokens_init(struct eng_tokens *t, size_t max);
void eng_tokens_fini(struct eng_tokens *t);
/* NULL: not known. */
const struct eng_token *eng_tokens_find(const struct eng_tokens *t, sv token);
/* Remember it with the bytes of its verdict (eng_verdict_put), forgetting the oldest when there
 * are too many. The token must not be known. */
int eng_tokens_add(struct eng_tokens *t, sv token, sv verdict, struct eng_set *set, uint64_t offset,
    int64_t ts, struct box_err *err);

/* Forget all but the newest n. */
void eng_tokens_keep(struct eng_tokens *t, size_t n);
size_t eng_tokens_count(const struct eng_tokens *t);
/* The i-th remembered token, oldest first; NULL: that place is empty. i < eng_tokens_room. */
const struct eng_token *eng_tokens_at(const struct eng_tokens *t, size_t i);
static inline size_t eng_tokens_room(const struct eng_tokens *t)
{
	return t->ring != NULL ? t->max : 0;
}
