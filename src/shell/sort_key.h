/* sort_key: how two lines compare. Keys of POSIX sort with GNU's orderings, in the "C" collation
 * (bytes). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/sv.h"

/* One ordering: of a key, or of the whole line. */
struct sort_order {
	bool numeric, human, general, month, version;
	bool nocase, dictionary, printing, reverse;
	bool skip_start_blanks, skip_end_blanks;
};

struct sort_key {
	size_t start_word, start_char; /* from 0 */
	/* end_word SIZE_MAX: to the end of the line; end_char 0: to the end of the word */
	size_t end_word, end_char;
	struct sort_order o;
};

struct sort_rules {
	struct sort_key *keys;
	size_t keys_n, keys_cap;
	struct sort_order whole; /* the options that stand alone */
	int tab;                 /* -t, or -1: words begin at blanks */
	bool stable, unique;
};

/* Is anything but the byte order (and reverse, which is inherited separately) asked for? */
bool sort_order_is_plain(const struct sort_order *o);
/* The bytes of line that the key covers. */
sv sort_key_of(const struct sort_rules *r, const struct sort_key *k, sv line);
/* A line with its first key, found once: a sort compares each line some twenty times. */
struct sort_line {
	sv text, key; /* key is not used when there are no keys */
};
int sort_compare_lines(
    const struct sort_rules *r, const struct sort_line *a, const struct sort_line *b);
/* <0, 0, >0: all keys, then the whole line unless stable or unique. */
int sort_compare(const struct sort_rules *r, sv a, sv b);
/* Order of version numbers in file names, as GNU sort -V. */
int sort_version_compare(sv a, sv b);
