/* naive: the meaning of a temporal condition, written down from its definition (dogwood-language.md
 * 5 and 14) and nothing else. No state, no sharing, no cleverness: it looks at the whole trace each
 * time and builds every row. It is the oracle of the differential tests and is kept simple for
 * ever; it shares with the product only the tree and the equality of values. */
#pragma once

#include "base/arena.h"
#include "dogwood/cond.h"
#include "dogwood/set_impl.h"

/* Truth of c at the decision on ev[i], looking at ev[born … i] only. With universal pins only at
 * those of the request's slice. -1 without memory. */
int naive_leaf(const struct dw_set *set, const struct dw_cond *c, const struct dw_event *ev,
    size_t i, size_t born, struct arena *a);
