/* toml: a strict reader of TOML 1.0 (toml.io/en/v1.0.0) into a tree that remembers where everything
 * stood.
 *
 * The text may be hostile: size, depth and memory are bounded, UTF-8 is checked first, nothing is
 * repaired. What the specification calls invalid is an error with line and column, what was found
 * and what would be right. Lines and columns count from 1; a column is a character (code point),
 * not a byte.
 *
 * The tree lives in the caller's arena; whoever holds the arena owns the tree. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/sv.h"

#define TOML_MAX_BYTES ((size_t)1 << 20) /* of one document */
#define TOML_MAX_DEPTH                                                                             \
	32 /* of arrays and inline tables in each other, and of the parts of one key */

enum toml_kind {
	TOML_STRING,
	TOML_INT,
	TOML_FLOAT,
	TOML_BOOL,
	/* 1979-05-27T07:32:00Z; dates and times are checked and kept as written, in `text` */
	TOML_DATETIME,
	TOML_DATETIME_LOCAL, /* 1979-05-27T07:32:00 */
	TOML_DATE_LOCAL,     /* 1979-05-27 */
	TOML_TIME_LOCAL,     /* 07:32:00 */
	TOML_ARRAY,
	TOML_TABLE
};

/* One value, and the key or array place it stands at. Read only, but for the parser. */
struct toml {
	enum toml_kind kind;
	bool header; /* a table that a [header] or [[header]] line opened */
	/* of the value; of the header line for a table that has one; of the first key part for a
	 * table that dotted keys made */
	int line, col;
	sv key; /* decoded, NUL behind it; empty for array elements and the root */
	int key_line, key_col;
	struct toml *next; /* in order of appearance */
	union {
		sv text; /* string (decoded, NUL behind it; may hold a NUL itself) or date */
		int64_t i;
		double f;
		bool b;
		struct { /* array and table */
			struct toml *first, *last;
			size_t n;
		};
	};
	unsigned
	    state; /* the parser's: how a table or array came to be, and what may still be added */
};

/* Parse a document. 0: *root is its top table. -1: err is "LINE:COL: text" (BOX_EPARSE),
 * BOX_ELIMIT, or BOX_ENOMEM when the arena is full. */
int toml_parse(struct arena *a, sv text, const struct toml **root, struct box_err *err);
/* The value of a key of this table (not a dotted path); NULL when there is none or t is no
 * table. */
const struct toml *toml_get(const struct toml *t, sv key);
/* "a string", "an integer", "a table", … for messages. */
const char *toml_kind_text(enum toml_kind k);
