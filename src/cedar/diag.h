/* Findings about a text: what is wrong, where, and what would be right. One list per run holds
 * the findings of a whole file (or of a validation), so that a person sees all of them at once.
 *
 * Limits: CEDAR_DIAGS_MAX findings are kept; more are counted only. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/sv.h"

/* A stretch of the source. line and col count from 1; col counts code points. line 0: no place. */
struct cedar_span {
	uint32_t off, len; /* bytes */
	uint32_t line, col;
};

enum cedar_severity { CEDAR_ERROR, CEDAR_WARNING, CEDAR_ADVICE };

struct cedar_diag {
	enum cedar_severity severity;
	const char *code; /* a short constant: "parse", "schema", "validate", "temporal", … */
	sv message;       /* the exact text of the specification where it gives one */
	sv hint;          /* what to do; may be empty */
	struct cedar_span span;
};

#define CEDAR_DIAGS_MAX 200

struct cedar_diags {
	struct arena *a; /* holds the texts; set by the caller */
	struct cedar_diag *d;
	size_t n, cap;
	size_t errors;  /* how many are errors, those beyond the limit included */
	size_t dropped; /* not kept: over the limit, or no room */
};

/* An empty list whose texts go to a. */
static inline struct cedar_diags cedar_diags_in(struct arena *a)
{
	return (struct cedar_diags){ .a = a };
}
/* Add a finding; span and hint may be NULL. Returns it (to add a hint) or NULL when it was not
 * kept. */
struct cedar_diag *cedar_diag_add(struct cedar_diags *ds, enum cedar_severity sev, const char *code,
    const struct cedar_span *span, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
/* In the order of the text; findings of one place stay in the order they came in. */
void cedar_diags_sort(struct cedar_diags *ds);
/* The span of source bytes [off, off + len): counts lines and columns. */
struct cedar_span cedar_span_at(sv source, size_t off, size_t len);
/* The same for many places of one text: line and column of every CEDAR_PLACES_STEP bytes are noted
 * once, so that a place costs the same wherever it is. */
#define CEDAR_PLACES_STEP 512
struct cedar_places {
	sv source;
	struct cedar_mark {
		uint32_t line, col;
	} * mark; /* NULL: no room; then every place is unknown (line 0) */
};
/* Marks go to a; source is borrowed. */
struct cedar_places cedar_places_of(struct arena *a, sv source);
struct cedar_span cedar_places_span(const struct cedar_places *p, size_t off, size_t len);
/* The candidate that differs least from word, when it is near enough to be a slip; else the
 * empty view. */
sv cedar_nearest(sv word, const sv *candidates, size_t n);

/* One finding for people:
 *     file:line:col: error: message
 *       12 | permit (principal, acton, resource);
 *          |                    ^^^^^
 *       hint: …
 * file may be NULL, source empty (then no excerpt). Control bytes of the source are escaped. */
void cedar_diag_render(struct buf *b, const char *file, sv source, const struct cedar_diag *d);
/* All findings. */
void cedar_diags_render(struct buf *b, const char *file, sv source, const struct cedar_diags *ds);
/* One finding as a JSON object: {severity, code, message, labels:[{start,len,line,column}],
 * help, spanned} (spec 13, D). */
void cedar_diag_json(struct buf *b, const char *file, const struct cedar_diag *d);
