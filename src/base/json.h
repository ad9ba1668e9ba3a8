/* json: jansson behind a bounded reader. The text may be hostile: bytes, depth and the number of
 * values are limited before jansson sees it, a key that stands twice in one object is refused (two
 * readers could disagree about it), text must be UTF-8, and every error says line and column.
 *
 * Trees are jansson's, reference-counted: json_decref, or AUTO_JSON. Hot paths do not build trees;
 * they write JSON with buf_put_json. Programs that use this header link dep_json. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/sv.h"

struct js_limits {
	size_t bytes; /* of the text */
	/* objects, arrays, strings, numbers, true, false, null in all; keys not counted */
	size_t values;
	size_t depth; /* of objects and arrays in each other; at most 512 */
};
#define JS_LIMITS_DEFAULT ((struct js_limits){ (size_t)1 << 20, 100000, 64 })

/* Parse one JSON value (RFC 8259) that is all of text. NULL: err is "LINE:COL: text" (BOX_EPARSE),
 * BOX_ELIMIT or BOX_ENOMEM. \u0000 inside a string is refused: no consumer of ours can hold it in a
 * name. */
json_t *js_parse(sv text, struct js_limits lim, struct box_err *err);

static inline void js_drop(json_t **j)
{
	json_decref(*j);
	*j = NULL;
}
#define AUTO_JSON __attribute__((cleanup(js_drop))) json_t *

/* The string under key, or the empty view with false when it is absent or no string. Borrowed from
 * the tree. */
static inline bool js_str(const json_t *obj, const char *key, sv *out)
{
	const json_t *v = json_object_get(obj, key);

	*out = (sv){ json_string_value(v), json_is_string(v) ? json_string_length(v) : 0 };
	return json_is_string(v);
}
