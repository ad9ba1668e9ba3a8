/* Allocation for the shell's own state. See mem.h. */
#include "shell/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/ban.h"

_Noreturn void sh_no_memory(void)
{
	static const char text[] = "strands-shell: out of memory\n";
	ssize_t r = write(2, text, sizeof(text) - 1);

	(void)r; /* there is nobody left to tell */
	_exit(125);
}

void *sh_xalloc(size_t n, size_t size)
{
	void *p = calloc(n != 0 ? n : 1, size != 0 ? size : 1);

	if (p == NULL)
		sh_no_memory();
	return p;
}

void *sh_xrealloc(void *old, size_t n, size_t size)
{
	size_t bytes;
	void *p;

	if (!mul_sz(n, size, &bytes))
		sh_no_memory();
	p = realloc(old, bytes != 0 ? bytes : 1);
	if (p == NULL)
		sh_no_memory();
	return p;
}

char *sh_xdup(sv s)
{
	char *p = sh_xalloc(s.n + 1, 1);

	if (s.n != 0)
		memcpy(p, s.p, s.n);
	return p;
}

char *sh_xstrdup(const char *s)
{
	return sh_xdup(sv_c(s));
}

char *sh_xprintf(const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&p, fmt, ap);
	va_end(ap);
	if (n < 0)
		sh_no_memory();
	return p;
}

void sh_vec_push(struct sh_vec *v, char *owned)
{
	if (v->n + 2 > v->cap) {
		v->cap = v->cap != 0 ? v->cap * 2 : 8;
		v->v = sh_xrealloc(v->v, v->cap, sizeof(v->v[0]));
	}
	v->v[v->n++] = owned;
	v->v[v->n] = NULL;
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void sh_vec_sort(struct sh_vec *v)
{
	if (v->n > 1)
		qsort(v->v, v->n, sizeof(char *), by_bytes);
}

void sh_vec_fini(struct sh_vec *v)
{
	for (size_t i = 0; i < v->n; i++)
		free(v->v[i]);
	free(v->v);
	*v = (struct sh_vec){ 0 };
}

void *sh_aalloc(struct arena *a, size_t n, size_t size)
{
	void *p = arena_alloc(a, n, size);

	if (p == NULL)
		sh_no_memory();
	return p;
}

char *sh_adup(struct arena *a, sv s)
{
	char *p = sh_aalloc(a, s.n + 1, 1);

	if (s.n != 0)
		memcpy(p, s.p, s.n);
	return p;
}
