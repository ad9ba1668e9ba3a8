/* Layout of policy sources: comments stay, tokens stay, white space changes. */
#pragma once

#include "cedar/parse.h"

#define CEDAR_FORMAT_WIDTH 100

/* Write text laid out anew to out. The source is parsed first: a faulty one is not touched (-1,
 * findings in ds). Formatting what was formatted changes nothing, and the tokens of the result
 * are checked to be those of the source. width 0 = CEDAR_FORMAT_WIDTH. Trees and tokens go to a.
 * Raw blocks (temporal conditions, macro bodies) are laid out without being read: dogwood/format.h
 * reads them too. */
int cedar_format(struct cedar_syms *t, struct arena *a, sv text, const struct cedar_parse_opts *o,
    unsigned width, struct buf *out, struct cedar_diags *ds);
/* The second half of it, for a caller that has parsed text. */
int cedar_layout(struct arena *a, sv text, unsigned width, struct buf *out, struct cedar_diags *ds);
