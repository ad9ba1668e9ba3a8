/* mem: allocation for the shell's own state. Having no memory ends the process (status 125): one
 * process serves one command line, its memory is limited from outside, and half an expansion
 * must never be run. The parser and the commands' arenas do not use this. */
#pragma once

#include <stddef.h>

#include "base/sv.h"

void *sh_xalloc(size_t n, size_t size); /* zeroed; n * size is checked */
void *sh_xrealloc(void *p, size_t n, size_t size);
char *sh_xstrdup(const char *s);
char *sh_xdup(sv s); /* with a NUL behind it */
char *sh_xprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void sh_no_memory(void);

/* A growing vector of owned strings. */
struct sh_vec {
	char **v; /* v[n] is NULL once something was pushed */
	size_t n, cap;
};
void sh_vec_push(struct sh_vec *v, char *owned);
void sh_vec_sort(struct sh_vec *v); /* by bytes */
void sh_vec_fini(struct sh_vec *v);

/* The same for arenas: no memory ends the process. */
struct arena;
void *sh_aalloc(struct arena *a, size_t n, size_t size);
char *sh_adup(struct arena *a, sv s);
