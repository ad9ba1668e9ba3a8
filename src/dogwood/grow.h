/* grow: realloc for vectors, with the product checked. */
#pragma once

#include <stdlib.h>

#include "base/sv.h"

static inline void *dw_grow(void *p, size_t n, size_t size)
{
	size_t bytes;

	return mul_sz(n, size, &bytes) ? realloc(p, bytes) : NULL;
}
