/* valjson: values of events as JSON text and back. Numbers keep their spelling: a whole number
 * in 64 bits is a Long, any other a decimal, as text; strings stay strings, and {"__entity":
 * {"type": T, "id": I}} is an entity reference, so that no text can turn into one.
 *
 * The text may be hostile: bounded by the arena, by depth, and by its own length. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"
#include "dogwood/event.h"

/* One JSON value that is all of text (RFC 8259; UTF-8; a name twice in one object is refused).
 * Copies into a. */
int eng_json_get(struct arena *a, sv text, unsigned depth, struct dw_val *out, struct box_err *err);
/* Append v as JSON. */
void eng_json_put(struct buf *b, const struct dw_val *v);
