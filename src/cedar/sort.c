/* Heap sort. See sort.h. */
#include "cedar/sort.h"

#include <string.h>

#include "base/ban.h"

static void swap(unsigned char *a, unsigned char *b, size_t size)
{
	unsigned char tmp[CEDAR_SORT_MAX];

	memcpy(tmp, a, size);
	memcpy(a, b, size);
	memcpy(b, tmp, size);
}

/* Let the element at root sink to its place among the first n. */
static void sink(
    unsigned char *p, size_t root, size_t n, size_t size, int (*cmp)(const void *, const void *))
{
	size_t child;

	for (; (child = 2 * root + 1) < n; root = child) {
		if (child + 1 < n && cmp(p + child * size, p + (child + 1) * size) < 0)
			child++;
		if (cmp(p + root * size, p + child * size) >= 0)
			return;
		swap(p + root * size, p + child * size, size);
	}
}

void cedar_sort(void *base, size_t n, size_t size, int (*cmp)(const void *, const void *))
{
	unsigned char *p = base;
	size_t i;

	for (i = n / 2; i-- > 0;)
		sink(p, i, n, size, cmp);
	for (i = n; i-- > 1;) {
		swap(p, p + i * size, size);
		sink(p, 0, i, size, cmp);
	}
}
