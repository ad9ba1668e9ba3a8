/* Sorting in place without memory and without a bad case: the library's qsort may allocate,
 * which a decision must not. */
#pragma once

#include <stddef.h>

#define CEDAR_SORT_MAX 64 /* the largest element, bytes */

/* Heap sort of n elements of a size of at most CEDAR_SORT_MAX. Not stable. */
void cedar_sort(void *base, size_t n, size_t size, int (*cmp)(const void *, const void *));
