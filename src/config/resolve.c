/* [resolve]: "host:port" = "address:port". Ours: mirrors, split horizons, tests. Policy, records
 * and the peer's certificate see the left side. */
#include "config/keys.h"

#include "base/buf.h"
#include "base/ban.h"

/* Split at the last colon and check both halves. */
static bool host_port(struct arena *a, sv text, sv *host, uint16_t *port, enum host_kind *kind)
{
	ptrdiff_t at = sv_rfind(text, ':');

	return at > 0 && cfg_port(sv_sub(text, (size_t)at + 1, text.n), port) &&
	       cfg_host(a, sv_sub(text, 0, (size_t)at), host, kind);
}

int cfg_read_resolve(struct cfg *c, const struct toml *root)
{
	const struct toml *v = toml_get(root, SV("resolve"));
	struct plan *p = c->p;

	if (v == NULL)
		return 0;
	if (cfg_want(c, v, TOML_TABLE, "`resolve`") != 0)
		return -1;
	p->resolves = ARENA_VEC(&p->arena, struct plan_resolve, v->n);
	if (p->resolves == NULL)
		return cfg_nomem(c);
	for (const struct toml *e = v->first; e != NULL; e = e->next) {
		struct plan_resolve *r = &p->resolves[p->resolves_n];
		enum host_kind kind;

		if (!host_port(&p->arena, e->key, &r->host, &r->port, &kind))
			return cfg_fail(c, cfg_at_key(e),
			    "`[resolve]` name \"%s\" must be \"host:port\", such as "
			    "\"api.example.com:443\"",
			    cfg_shown(c, e->key));
		if (cfg_want(c, e, TOML_STRING, "a `[resolve]` value") != 0)
			return -1;
		if (!host_port(&p->arena, e->text, &r->addr, &r->addr_port, &kind) ||
		    kind == HOST_NAME)
			return cfg_fail(c, cfg_at(e),
			    "`[resolve]` value \"%s\" must be \"address:port\" with an IP address, "
			    "such as "
			    "\"127.0.0.1:8443\" or \"[::1]:8443\"",
			    cfg_shown(c, e->text));
		for (size_t i = 0; i < p->resolves_n; i++)
			if (sv_eq(p->resolves[i].host, r->host) && p->resolves[i].port == r->port)
				return cfg_fail(c, cfg_at_key(e),
				    "`[resolve]` names " SV_FMT ":%u twice; keep one line",
				    SV_ARG(r->host), (unsigned)r->port);
		p->resolves_n++;
	}
	return 0;
}
