/* pattern: shell patterns (POSIX 2.13) with bash's extended ones. A pattern is text in which a
 * backslash makes the next character ordinary. Both pattern and text are hostile: time is bounded
 * by about the product of their lengths, and where nested negations would take more, by a budget
 * behind which nothing matches. No memory ends the process (mem.h). */
#pragma once

#include <stdbool.h>

#include "base/sv.h"

enum sh_pat_flags {
	SH_PAT_EXTGLOB = 1, /* ?(a|b) *(..) +(..) @(..) !(..) */
	SH_PAT_NOCASE = 2,
	SH_PAT_PERIOD = 4 /* a leading dot is matched by a dot only */
};

/* Does the whole text match? */
bool sh_pat_match(sv pattern, sv text, unsigned flags);
/* Length of the shortest (or longest) prefix of text that matches; -1: none. */
ptrdiff_t sh_pat_prefix(sv pattern, sv text, bool longest, unsigned flags);
/* Start of the shortest (or longest) suffix that matches; -1: none. */
ptrdiff_t sh_pat_suffix(sv pattern, sv text, bool longest, unsigned flags);

/* Searching one text for a pattern again and again, for ${x//pattern/new}. Both must stay valid
 * until sh_pat_scan_free. */
struct sh_pat_scan;
struct sh_pat_scan *sh_pat_scan_new(sv pattern, sv text, unsigned flags);
/* The first (then longest) match at or behind `from`; *start and *end are offsets in the text. As
 * in bash an empty match counts, but not at the end of a text that is not empty. */
bool sh_pat_scan_next(struct sh_pat_scan *s, size_t from, size_t *start, size_t *end);
void sh_pat_scan_free(struct sh_pat_scan *s); /* NULL is fine */

/* Does it hold an active special character? */
bool sh_pat_is_magic(sv pattern, unsigned flags);
/* Bytes of the character at s.p[0] (1 for a byte that begins no UTF-8 sequence); *c receives its
 * code point. s.n must not be 0. */
size_t sh_utf8_step(sv s, uint32_t *c);
/* Characters in s. */
size_t sh_utf8_len(sv s);
/* Without case: simple folding of ASCII and of what towlower knows. */
uint32_t sh_fold(uint32_t c);
uint32_t sh_upper(uint32_t c);
