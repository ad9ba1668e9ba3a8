/* Between macro.c and macro_temporal.c only. */
#pragma once

#include "dogwood/macro.h"

const struct dw_macro *dw_macro_find(const struct dw_macros *m, sv name);
/* Position of a parameter (named without its ?), or -1. */
int dw_macro_param(const struct dw_macro *m, sv name);
/* Report and return false. */
bool dw_macro_fail(struct dw_macros *m, const struct cedar_span *at, const char *text);
/* One more node of this rule's expansions. false (reported) over the limit. */
bool dw_macro_count(struct dw_macros *m, const struct cedar_span *at);
/* Parameters are declared, no macro is called in the body. */
bool dw_macro_check_temporal(struct dw_macros *m, const struct dw_macro *def);
/* "did you mean `x`?", or empty. */
sv dw_macro_nearest(const struct dw_macros *m, sv word);
