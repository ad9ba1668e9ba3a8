/* wire: frames between `dogwood serve` and its clients (local-engine.md 15.2): a 4-byte big-
 * endian length and one JSON object, at most WIRE_MAX bytes. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "dogwood/event.h"

#define WIRE_MAX ((size_t)16 * 1024 * 1024)

enum wire_got {
	WIRE_FRAME,  /* *out holds it */
	WIRE_CLOSED, /* the peer is gone, or was silent for too long: say nothing */
	WIRE_BAD     /* malformed: *err says why; answer once and close */
};

/* Read one frame into b. */
enum wire_got wire_read(int fd, struct buf *b, struct box_err *err);
/* Send the content of b as one frame. -1 when the peer is gone. */
int wire_write(int fd, const struct buf *b);

/* Parse a request or reply: an object. */
int wire_parse(struct arena *a, sv text, struct dw_val *out, struct box_err *err);
/* Refuse members of obj that are not among the names (ends with NULL). */
int wire_only(const struct dw_val *obj, const char *const *names, struct box_err *err);
/* The text under a name; the empty view with false when it is absent or no string. */
bool wire_str(const struct dw_val *obj, const char *name, sv *out);

/* {"status":"error","message":…} */
void wire_error(struct buf *b, const char *message);
