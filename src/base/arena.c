/* Arenas: a list of blocks, the newest first. See arena.h. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ban.h"

/* Hard-mode builds make blocks tiny, so that every growth path runs. */
#ifndef ARENA_BLOCK
#define ARENA_BLOCK 4096
#endif

struct arena_blk {
	struct arena_blk *next;
	size_t cap, used;
	alignas(max_align_t) unsigned char mem[];
};

void *arena_alloc(struct arena *a, size_t n, size_t size)
{
	struct arena_blk *b = a->head;
	size_t need, cap, all;
	void *p;

	if (!mul_sz(n, size, &need) || need > SIZE_MAX - 64)
		return NULL;
	need = (need + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	if (need == 0)
		need = alignof(max_align_t);
	if (b == NULL || b->cap - b->used < need) {
		cap = need > ARENA_BLOCK ? need : ARENA_BLOCK;
		if (!add_sz(cap, sizeof(*b), &all))
			return NULL;
		if (a->limit != 0 && (a->total > a->limit || all > a->limit - a->total)) {
			/* A full block may not fit where the bare need still does. */
			cap = need;
			all = cap + sizeof(*b);
			if (a->total > a->limit || all > a->limit - a->total)
				return NULL;
		}
		b = malloc(all);
		if (b == NULL)
			return NULL;
		b->cap = cap;
		b->used = 0;
		a->total += all;
		b->next = a->head;
		a->head = b;
	}
	p = b->mem + b->used;
	b->used += need;
	memset(p, 0, need);
	return p;
}

sv arena_dup(struct arena *a, sv s)
{
	size_t n;
	char *p;

	if (!add_sz(s.n, 1, &n))
		return (sv){ NULL, 0 };
	p = arena_alloc(a, n, 1);
	if (p == NULL)
		return (sv){ NULL, 0 };
	if (s.n != 0)
		memcpy(p, s.p, s.n);
	return (sv){ p, s.n };
}

const char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return NULL;
	p = arena_alloc(a, (size_t)n + 1, 1);
	if (p == NULL)
		return NULL;
	va_start(ap, fmt);
	(void)vsnprintf(p, (size_t)n + 1, fmt, ap); /* measured just above */
	va_end(ap);
	return p;
}

void *arena_grow(struct arena *a, const void *old, size_t old_n, size_t new_n, size_t size)
{
	void *p = arena_alloc(a, new_n, size);

	if (p != NULL && old_n != 0)
		memcpy(p, old, old_n * size);
	return p;
}

void arena_free(struct arena *a)
{
	struct arena_blk *b = a->head;

	while (b != NULL) {
		struct arena_blk *next = b->next;

		free(b);
		b = next;
	}
	a->head = NULL;
	a->total = 0;
}

void arena_reset(struct arena *a)
{
	struct arena_blk *keep = a->head, *b;

	for (b = a->head; b != NULL; b = b->next)
		if (b->cap > keep->cap)
			keep = b;
	for (b = a->head; b != NULL;) {
		struct arena_blk *next = b->next;

		if (b != keep)
			free(b);
		b = next;
	}
	a->head = keep;
	a->total = 0;
	if (keep != NULL) {
		keep->next = NULL;
		keep->used = 0;
		a->total = keep->cap + sizeof(*keep);
	}
}
