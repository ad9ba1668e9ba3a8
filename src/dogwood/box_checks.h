/* box_checks: what Box refuses in a policy that the language allows (box-config-and-policy.md 2.8):
 * rules that can never do what they say. A literal that no path is ever spelled like, two rules
 * under one name, a rule about an action that nothing raises, a limit written as a permit beside a
 * permit that makes it void. */
#pragma once

#include "dogwood/policyset.h"

/* Check a loaded set (against Box's action schema, or one that extends it). home: the operator's
 * home, absolute, without a slash at the end. Findings go to *d, with place and rule, code "box";
 * the error texts are the whole of what follows "will not load: ". Returns the number of errors;
 * SIZE_MAX without memory. */
size_t dw_box_check(const struct dw_set *s, sv home, struct dw_diags *d);

/* What follows "will not load: " in Box's refusals, from the findings of a load or of dw_box_check:
 * the errors of the first kind that occurs, one after the other, with the words that Box puts in
 * front of each kind (2.8). Appends nothing when there is no error. */
void dw_box_reason(const struct dw_diags *d, struct buf *out);
