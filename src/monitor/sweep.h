/* sweep: empty a folder whose content the box's programs made: the private /tmp at the end of a
 * run. */
#pragma once

#include "base/err.h"

/* Remove everything below the folder dirfd, not the folder itself. Links are removed, never
 * followed; file systems are not crossed. Depth costs nothing: a folder that is not empty is first
 * moved up to the top. A folder without rights is given them. -1 when something could not be
 * removed (the rest is gone). */
int sweep_dir(int dirfd, struct box_err *err);
