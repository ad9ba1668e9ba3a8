/* path: comparing absolute paths by whole components. No file system is touched here. */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/sv.h"

/* Is `inner` the same path as `outer` or below it? Both absolute, without "//", "." and trailing
 * slashes. */
bool path_within(sv inner, sv outer);
/* Below it, not the same. */
bool path_below(sv inner, sv outer);
/* The path without "//", "." and trailing slashes, NUL behind it. ".." is kept. .p NULL without
 * memory. */
sv path_tidy(struct arena *a, sv path);
/* Does the path have a ".." component? */
bool path_has_dotdot(sv path);
/* "/a/b" of "/a/b/c"; "/" of "/a". Borrowed. */
sv path_parent(sv path);
/* realpath(3) into the arena. .p NULL with errno when it fails. */
sv path_real(struct arena *a, sv path);
/* As policy spells it: "~" and "~/…" under home, else as it is. */
void path_put_home(struct buf *out, sv path, sv home);
