/* tparse: text of a temporal block to its tree (dogwood-language.md 4). Hostile input: nesting is
 * limited to DW_COND_DEPTH, every loop consumes a token, and there is no backtracking, so time is
 * linear. */
#pragma once

#include "cedar/parse.h"
#include "dogwood/cond.h"

struct dw_tparse {
	struct cedar_syms *t;
	struct arena *a;
	struct cedar_diags *ds;
	bool macro_body; /* ?parameters and $binders are allowed */
};
/* Parse a whole block; `at` is the place of its text in the source. false with one finding in ds. A
 * plain block must be a condition; a macro body may be an aggregate. */
bool dw_tparse(const struct dw_tparse *p, sv text, struct cedar_span at, struct dw_body *out);
