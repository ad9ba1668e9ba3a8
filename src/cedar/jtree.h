/* JSON into a small tree in an arena. Hostile text. Of its own because Cedar's strings and keys
 * may hold U+0000, integers must be exact to 64 bits, and a finding needs the place of each
 * value; nothing else in the project has these needs (base/json.h has the rest).
 *
 * RFC 8259, UTF-8 only, duplicate keys refused, depth at most CEDAR_JSON_MAX_DEPTH. */
#pragma once

#include "cedar/diag.h"
#include "cedar/value.h"

enum jkind { J_NULL, J_BOOL, J_INT, J_REAL, J_STR, J_ARR, J_OBJ };

struct jnode {
	enum jkind kind;
	uint32_t off, len; /* in the text */
	union {
		bool b;
		int64_t i;
		sv s; /* J_STR decoded; J_REAL as written */
	};
	uint32_t n; /* J_ARR, J_OBJ */
	struct jnode **item;
	const sv *key; /* J_OBJ, in the order of the text */
};

/* NULL with err "line:col: …" after a syntax error or a limit. */
struct jnode *jtree_parse(struct arena *a, sv text, struct box_err *err);
/* The member of an object, or NULL (also when j is NULL or no object). */
struct jnode *jtree_get(const struct jnode *j, sv key);
/* "null", "a boolean", "a number", "a string", "an array", "an object" */
const char *jtree_kind(const struct jnode *j);
