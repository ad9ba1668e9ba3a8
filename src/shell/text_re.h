/* text_re: regular expressions over bytes with a length, for grep and sed: glibc's own engine (the
 * GNU interface of <regex.h>), so that what matches here matches in the system's tools. Patterns
 * without special characters are searched directly.
 *
 * The engine backtracks for back-references; a hostile pattern costs time of its own shell only,
 * which can be killed. */
#pragma once

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/sv.h"

struct text_re {
	struct re_pattern_buffer pat;
	struct re_registers regs; /* of the last search; filled only with want_regs */
	char *literal;            /* searched instead, when not NULL */
	size_t literal_n;
	bool compiled;
};

/* The engine copies what is repeated (x{1000} makes a thousand, x++ four), so that nested
 * repetitions of a few characters fill any memory; and it recurses for each open group. True: the
 * expression would have more than some ten thousand nodes (beyond one for each of its characters),
 * or more than 500 groups inside each other. extended: ( ) { + without backslashes. Ask before
 * regcomp(). */
#define TEXT_RE_TOO_BIG "Regular expression too big"
bool text_re_too_big(sv pattern, bool extended);
/* Compile. syntax: RE_SYNTAX_* of <regex.h>, with RE_ICASE. newline_anchor: ^ and $ also match at
 * newlines inside the text. NULL, or why it is no expression (static text). Call text_re_fini in
 * any case. */
const char *text_re_compile(
    struct text_re *re, sv pattern, reg_syntax_t syntax, bool newline_anchor);
void text_re_fini(struct text_re *re);
/* The leftmost longest match that begins in [from, s.n]. regs of re hold the groups (index 0: the
 * whole). False: none. */
bool text_re_search(struct text_re *re, sv s, size_t from, size_t *start, size_t *end);
/* Length of the longest match that begins exactly at `at` and ends at or before `limit`, or -1.
 * What stands behind limit is not seen. */
ptrdiff_t text_re_match_at(struct text_re *re, sv s, size_t at, size_t limit);
/* Number of groups of the expression. */
size_t text_re_groups(const struct text_re *re);
