/* Findings about hostile sources, printed as the programs print them: the renderer takes any
 * text. */
#pragma once

#include <stdlib.h>

#include "engine/diag.h"

static inline void fuzz_render(const struct dw_diags *found)
{
	dogwood_diags *d = dogwood_diags_new();

	if (d == NULL || eng_diags_add(d, found, (sv){ NULL, 0 }, NULL) < 0)
		abort();
	dogwood_free(dogwood_diags_text(d, DOGWOOD_RENDER_COLOUR));
	dogwood_free(dogwood_diags_json(d));
	dogwood_diags_free(d);
}
