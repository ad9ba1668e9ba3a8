/* route: which credential binding covers a request, and whether the request presents its
 * placeholder. No secrets live here. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/rd.h"
#include "config/plan.h"
#include "gateway/http1.h"
#include "gateway/proto.h"

struct route {
	sv name;
	struct plan_dest *dests;
	size_t dests_n;
	sv header, prefix, placeholder;
	enum plan_inject inject;
};

struct routes {
	struct arena arena;
	struct route v[GW_ROUTES_MAX];
	size_t n;
};

void routes_init(struct routes *r);
void routes_fini(struct routes *r);
/* Read one GW_ROUTE body. */
int routes_add(struct routes *r, struct rd *body, struct box_err *err);
/* Index of the route that covers this request, or GW_ROUTE_NONE. Routes do not overlap (checked
 * when box.toml is loaded); the first wins. */
uint16_t routes_find(const struct routes *r, sv host, uint16_t port, sv path);
/* Does any destination of this route lie on host and port, whatever the path? */
bool route_on_host(const struct route *r, sv host, uint16_t port);
/* State of the placeholder in the request's head. */
enum gw_token route_token(const struct route *r, const struct http1_head *h);
