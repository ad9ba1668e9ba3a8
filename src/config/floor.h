/* floor: what no grant may name, whatever the configuration says (box-config-and-policy 1.5). One
 * table of rows, deny-only.
 *
 * Two users: the judge (grants of box.toml), and the interpreters' reach (box-files), which may not
 * open a credential even after a permit (design.md 6). */
#pragma once

#include <stdbool.h>

#include "base/arena.h"
#include "config/plan.h"

/* The homes at which "~/…" rows hold: the account's, and the one a table states. Empty views are
 * skipped. */
struct floor_homes {
	sv account, stated;
};

struct floor_hit {
	const char *reason; /* "a system root is never a grantable tree", or NULL: not refused */
	bool store; /* the entry itself names a credential store, or a path in it: let through, to
	               be announced */
};

/* Judge an absolute tidy path as an entry of `list`. canonical = true: compare with the rows'
 * canonical anchors too (touches the file system). `a` holds scratch. */
struct floor_hit floor_judge(struct arena *a, sv path, enum plan_list list, bool is_dir,
    struct floor_homes homes, bool canonical);
/* What no interpreter opens either, at or below: credential stores of both homes, password
 * databases, machine credentials, privilege configuration. As spelled, and as it is when the
 * spelling leads elsewhere (a link), each once; the list in `a`. -1: no memory. */
int floor_places(struct arena *a, struct floor_homes homes, const sv **out, size_t *n);
