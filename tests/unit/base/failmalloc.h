/* Allocation failure on demand: link with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc and the
 * n-th allocation fails. For sweeps that fail every allocation once. Not for programs with
 * threads. */
#pragma once

#include <stddef.h>

/* Fail the n-th allocation from now (1 = the next), and all after it; 0 switches failing off. */
void fail_after(size_t n);
/* Did an allocation fail since fail_after? */
int fail_happened(void);
