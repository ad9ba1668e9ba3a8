/* dial: box-dial as an object on an event loop. Connects to what was decided, and to nothing else;
 * proto.h gives the order of one attempt. */
#pragma once

#include "base/err.h"
#include "dial/resolver.h"

struct dial;
struct event_base;

/* mon_fd (owned, also on failure): the channel to the monitor; HELLO is sent. lookup: how names are
 * resolved (resolver_system). The loop is broken when the monitor says STOP or a channel ends;
 * dial_error says why (BOX_OK: as it should be). NULL with err. */
struct dial *dial_new(struct event_base *base, int mon_fd, resolver_lookup *lookup,
    void *lookup_arg, struct box_err *err);
void dial_free(struct dial *d);
const struct box_err *dial_error(const struct dial *d);
