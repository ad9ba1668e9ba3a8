/* provide: the host's information providers: from the values of a decision to the public callback
 * and back. */
#pragma once

#include <dogwood/dogwood.h>

#include "dogwood/decide.h"

/* A dw_provider_fn; arg is the struct dogwood_options that holds the callback. */
int eng_provide(void *arg, const struct dw_provider_part *part, size_t n, struct arena *a,
    struct dw_val *out, struct box_err *err);
