/* floor: destinations that no policy opens: link-local addresses and the metadata services of
 * clouds, which hand out the machine's credentials to whoever asks (design.md 6). Judged on
 * canonical hosts (base/host.h), so that every spelling of an address is the same address. */
#pragma once

#include <stdbool.h>

#include "base/host.h"

/* Is this a host name of a metadata service, or an address the floor closes? */
bool floor_closes(const struct host *h);
/* Can a TCP connection go to this address at all? Unspecified, "this network", multicast and
 * broadcast addresses cannot, and some of them reach the machine itself under a name that policy
 * does not know. */
bool floor_is_host(const struct host *h);
