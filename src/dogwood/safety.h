/* safety: is a temporal condition safe to evaluate (dogwood-language.md 6.1)? Every variable must
 * be bound to finitely many values by the trace before it is used; what is not would be silently
 * false or endless. Works on closed trees (macros expanded). */
#pragma once

#include "base/arena.h"
#include "cedar/diag.h"
#include "dogwood/cond.h"

/* false with one finding in ds (the first, in the order of the rules), or when the arena is full.
 */
bool dw_safety(struct arena *a, const struct dw_cond *c, struct cedar_diags *ds);
