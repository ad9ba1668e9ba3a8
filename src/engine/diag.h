/* diag: the public list of findings. It copies what the language reports, so that it outlives
 * the load it came from, and turns byte columns into character columns and places in joined
 * sources into places in the caller's files. */
#pragma once

#include <dogwood/dogwood.h>

#include "dogwood/policyset.h"

/* Where each of the caller's policy sources begins in the text that was loaded. */
struct eng_join {
	const struct dogwood_source *src;
	const size_t *start;
	const uint32_t *before; /* lines of the joined text before each source */
	size_t n;
};

/* Which source holds byte `at` of the joined text. n must not be 0. */
size_t eng_join_find(const struct eng_join *j, size_t at);

/* Add all of `from`. `policy` is the name under which the joined text was loaded: findings about
 * it are placed by j. 0, or -1 without memory. */
int eng_diags_add(
    dogwood_diags *d, const struct dw_diags *from, sv policy, const struct eng_join *j);

/* Findings of a load of our own as dogwood_diags_text shows them. dogwood_free it; NULL without
 * memory. */
char *eng_diags_show(const struct dw_diags *from, unsigned flags);
