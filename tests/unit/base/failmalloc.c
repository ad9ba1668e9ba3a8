/* See failmalloc.h. */
#include "failmalloc.h"

#include <stdlib.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

static size_t countdown;
static int happened;

void fail_after(size_t n)
{
	countdown = n;
	happened = 0;
}

int fail_happened(void)
{
	return happened;
}

static int must_fail(void)
{
	if (countdown == 0)
		return 0;
	if (countdown > 1) {
		countdown--;
		return 0;
	}
	happened = 1;
	return 1;
}

void *__wrap_malloc(size_t n)
{
	return must_fail() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return must_fail() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return must_fail() ? NULL : __real_realloc(p, n);
}
