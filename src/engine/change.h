/* change: a policy change as it is stored: the whole new set, who each of its policies is, and
 * which policy of the set before it continues. With the last, a replay carries exactly the
 * histories over that the live engine carried over, whatever a later version thinks of
 * correspondence.
 *
 *   body   u8 1, str sources (eng_install_put), u64 next ordinal, u32 n,
 *          n { str token, u64 ordinal, u64 created, u64 updated, u32 before }
 *          before: 1 + index in the set before; 0: new */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "engine/set.h"

/* A new token: `SP` and 22 digits of base 62 from 128 random bits. -1 when the system has no
 * randomness. */
int eng_token_mint(char out[ENG_POLICY_TOKEN + 1], struct box_err *err);
/* Say who the policies of a freshly loaded set are: rule i continues rule map[i] of old (-1: new
 * at ts). old and map may be NULL: all are new. */
int eng_entries_follow(struct eng_set *now, const struct eng_set *old, const int32_t *map,
    int64_t ts, struct box_err *err);
/* Index of the policy with this token, or -1. */
ptrdiff_t eng_entry_find(const struct eng_set *s, sv token);

/* map as for dwm_transfer; NULL: none continues. */
void eng_change_put(struct buf *b, const struct eng_set *s, const int32_t *map);
/* Decode and compile. *map lives in the set's arena. A set that does not compile any more is
 * BOX_ECORRUPT: without it the history after it means nothing. */
int eng_change_get(sv body, struct eng_set **out, int32_t **map, struct box_err *err);
/* Only the sources (an install body). */
int eng_change_sources(sv body, sv *out, struct box_err *err);
