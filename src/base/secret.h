/* secret: a value that must not leak. Own pages: locked (best effort within RLIMIT_MEMLOCK), left
 * out of core dumps and of forked children, zeroed on free. There is no printing function. */
#pragma once

#include "base/err.h"
#include "base/sv.h"

struct secret;

/* A copy of s in protected pages. NULL with err. */
struct secret *secret_new(sv s, struct box_err *err);
/* Borrowed view, valid until secret_free. */
sv secret_sv(const struct secret *s);
void secret_free(struct secret *s);
