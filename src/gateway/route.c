/* route: see route.h. The table comes from the monitor; the requests are hostile. */
#include "gateway/route.h"

#include <openssl/crypto.h>

#include "base/ban.h"

#define ROUTE_DESTS_MAX  256u
#define ROUTE_ARENA_MAX  ((size_t)4 << 20)
#define ROUTE_STRING_MAX 4096u

void routes_init(struct routes *r)
{
	memset(r, 0, sizeof(*r));
	r->arena.limit = ROUTE_ARENA_MAX;
}

void routes_fini(struct routes *r)
{
	arena_free(&r->arena);
	r->n = 0;
}

/* rd_str copied into the arena; a missing copy marks the reader bad. */
static sv take_str(struct routes *r, struct rd *body)
{
	sv s = arena_dup(&r->arena, rd_str(body, ROUTE_STRING_MAX));

	if (s.p == NULL)
		body->bad = true;
	return s;
}

int routes_add(struct routes *r, struct rd *body, struct box_err *err)
{
	uint16_t index = rd_u16(body);
	struct route *x = &r->v[r->n];
	uint8_t inject;

	if (index != r->n || r->n == GW_ROUTES_MAX)
		return box_fail(err, BOX_EDENIED, 0, "route %u comes out of order (at most %u)",
		    index, GW_ROUTES_MAX);
	x->name = take_str(r, body);
	x->dests_n = rd_u16(body);
	if (x->dests_n > ROUTE_DESTS_MAX)
		return box_fail(
		    err, BOX_ELIMIT, 0, "a route with more than %u destinations", ROUTE_DESTS_MAX);
	x->dests = ARENA_VEC(&r->arena, struct plan_dest, x->dests_n);
	if (x->dests == NULL)
		return box_nomem(err, "routes");
	for (size_t i = 0; i < x->dests_n; i++) {
		struct plan_dest *d = &x->dests[i];

		d->host = take_str(r, body);
		d->subdomains = rd_u8(body) != 0;
		d->port = rd_u16(body);
		d->path = take_str(r, body);
		d->is_suffix = rd_u8(body) != 0;
	}
	x->header = take_str(r, body);
	x->prefix = take_str(r, body);
	x->placeholder = take_str(r, body);
	inject = rd_u8(body);
	if (!rd_done(body) || x->placeholder.n == 0 || !http1_is_token(x->header) ||
	    inject > PLAN_ALWAYS)
		return box_fail(err, BOX_EDENIED, 0, "malformed route %u", index);
	x->inject = (enum plan_inject)inject;
	r->n++;
	return 0;
}

uint16_t routes_find(const struct routes *r, sv host, uint16_t port, sv path)
{
	for (size_t i = 0; i < r->n; i++) {
		for (size_t k = 0; k < r->v[i].dests_n; k++) {
			if (plan_dest_covers(&r->v[i].dests[k], host, port, path))
				return (uint16_t)i;
		}
	}
	return GW_ROUTE_NONE;
}

bool route_on_host(const struct route *r, sv host, uint16_t port)
{
	for (size_t k = 0; k < r->dests_n; k++) {
		if (plan_dest_covers(&r->dests[k], host, port, (sv){ NULL, 0 }))
			return true;
	}
	return false;
}

enum gw_token route_token(const struct route *r, const struct http1_head *h)
{
	size_t count;
	const struct http1_field *f = http1_find(h, r->header, &count);
	sv rest;

	if (f == NULL)
		return GW_TOKEN_MISSING;
	if (count != 1 || !sv_starts(f->value, r->prefix))
		return GW_TOKEN_WRONG;
	rest = sv_sub(f->value, r->prefix.n, f->value.n);
	if (rest.n != r->placeholder.n || CRYPTO_memcmp(rest.p, r->placeholder.p, rest.n) != 0)
		return GW_TOKEN_WRONG;
	return GW_TOKEN_OK;
}
