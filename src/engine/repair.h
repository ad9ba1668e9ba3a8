/* repair: give up the end of a damaged store. Only ever on the operator's word, who names the
 * first record to drop: what was acknowledged behind it is lost, and rules that count on it
 * count less. */
#pragma once

#include <stdint.h>

#include "engine/io.h"
#include "engine/scan.h"

/* The log up to record `n` (which must be intact) stays; n and everything after it, snapshots
 * that go further, and the mark are removed. The store must be locked by the caller. */
int eng_cut(int dir, const struct eng_io *io, uint64_t n, struct box_err *err);
