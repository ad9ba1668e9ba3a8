/* arena: memory for everything that lives as long as one parse, one request, one policy. Freed at
 * once. Every arena has a limit, so that one hostile input cannot take the process; reaching it and
 * having no memory look the same (NULL). Secrets never live in an arena. */
#pragma once

#include <stdalign.h>
#include <stddef.h>

#include "base/sv.h"

struct arena_blk;
struct arena {
	struct arena_blk *head;
	size_t total; /* bytes handed out and block overhead */
	size_t limit; /* 0 = no limit */
};

/* n * size zeroed bytes (which may be none), aligned for any type; NULL at the limit, without
 * memory, or on overflow. */
void *arena_alloc(struct arena *a, size_t n, size_t size);
#define ARENA_NEW(a, T)    ((T *)arena_alloc((a), 1, sizeof(T)))
#define ARENA_VEC(a, T, n) ((T *)arena_alloc((a), (n), sizeof(T)))
/* A copy of s with a NUL behind it (not counted); .p is NULL when there was no room. */
sv arena_dup(struct arena *a, sv s);
/* printf into the arena; NULL when there was no room. */
const char *arena_printf(struct arena *a, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A bigger copy of a vector: old_n elements kept, new_n in all, the rest zeroed. NULL when there
 * was no room. */
void *arena_grow(struct arena *a, const void *old, size_t old_n, size_t new_n, size_t size);
/* Empty the arena but keep one block, so that the next use of the same size allocates nothing. */
void arena_reset(struct arena *a);
/* Give everything back; the arena is empty and usable again with the same limit. */
void arena_free(struct arena *a);
#define AUTO_ARENA __attribute__((cleanup(arena_free))) struct arena
