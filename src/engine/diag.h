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
	size_t n;
};

/* The source that holds byte `at` of the joined text, its index in it, and the number of lines
 * before it. */
const struct dogwood_source *eng_join_find(
    const struct eng_join *j, size_t at, size_t *start, uint32_t *lines);

/* Add all of `from`. `policy` is the name under which the joined text was loaded: findings about
 * it are placed by j. 0, or -1 without memory. */
int eng_diags_add(
    dogwood_diags *d, const struct dw_diags *from, sv policy, const struct eng_join *j);
