/* Findings of a load: adding one. Internal; the list itself is in policyset.h. */
#pragma once

#include "cedar/diag.h"
#include "dogwood/policyset.h"

/* Add *x (message and help are copied); at, which may be NULL, is its place in text. Counts it even
 * when there is no room to keep it. */
void dw_diags_add(
    struct dw_diags *d, const struct dw_diag *x, sv file, sv text, const struct cedar_span *at);
