/* format: a Dogwood source laid out anew. Comments stay, tokens stay, white space changes
 * (cedar/format.h has the layout). */
#pragma once

#include "base/buf.h"
#include "dogwood/policyset.h"

/* Parse text whole, temporal blocks and macro bodies included, and write it laid out anew to out.
 * width 0: 100 columns. name is for messages. -1 with the findings in d when the text is no
 * Dogwood: out is then of no use. dw_format of its own result is that result. */
int dw_format(sv name, sv text, unsigned width, struct buf *out, struct dw_diags *d);
