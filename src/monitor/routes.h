/* routes: the secrets of one run and where they may go. A secret is read once at start from the
 * operator's environment, kept in protected pages, and handed out for exactly one thing: the header
 * of a permitted, intercepted request that its route covers. Everybody in the box sees only the
 * placeholder. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "base/secret.h"
#include "config/plan.h"

struct route {
	const struct plan_route *plan;
	struct secret *secret;
	char *placeholder; /* phantom prefix and 64 hex digits */
};

struct routes {
	struct route *v;
	size_t n;
};

/* Read every secret with get(name) (getenv of `box run`), make the placeholders. -1 with
 * "credential setup failed: …". *r is always safe to routes_fini. */
int routes_open(const struct plan *p, const char *(*get)(const char *name), struct routes *r,
    struct box_err *err);
void routes_fini(struct routes *r);

/* May this route's secret go to this request? It must be encrypted, and one of the route's
 * destinations must cover it. */
bool route_covers(const struct route *r, sv host, uint16_t port, sv path, bool intercepted);
