/* A small map from interned strings (or references) to pointers, for the time of a resolution.
 * Keys are compared by address: only strings of one symbol table go in. */
#pragma once

#include "cedar/value.h"

struct smap_slot {
	cedar_sym a, b; /* b NULL unless the key is a pair */
	void *value;
};

struct smap {
	struct smap_slot *slot;
	size_t n, n_slot;
};

void smap_fini(struct smap *m);
#define AUTO_SMAP __attribute__((cleanup(smap_fini))) struct smap
/* The value of a key, or NULL. */
void *smap_get(const struct smap *m, cedar_sym a, cedar_sym b);
/* 1 added, 0 the key is there already (nothing changes), -1 no memory. value is not NULL. */
int smap_add(struct smap *m, cedar_sym a, cedar_sym b, void *value);
