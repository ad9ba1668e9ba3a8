/* Findings of a load: adding one. Internal; the list itself is in policyset.h. */
#pragma once

#include "cedar/ast.h"
#include "cedar/diag.h"
#include "dogwood/policyset.h"

/* Add *x (message and help are copied); at, which may be NULL, is its place in text. Counts it even
 * when there is no room to keep it. */
void dw_diags_add(
    struct dw_diags *d, const struct dw_diag *x, sv file, sv text, const struct cedar_span *at);
/* Add all of ds, which are about the source src; with rules (may be NULL), each is given to the
 * policy it stands in. */
void dw_diags_take(struct dw_diags *d, const struct cedar_diags *ds, const struct dw_source *src,
    const struct cedar_source *rules);
