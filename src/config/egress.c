/* [egress.<name>]: which secret is attached at which destinations (box-config-and-policy 1.7), in
 * this build with env:// references in a header. */
#include "config/keys.h"

#include <string.h>

#include "base/buf.h"
#include "base/ban.h"

static const struct cfg_key route_keys[] = {
	{ "destinations", CFG_TAKEN, NULL },
	{ "protocol", CFG_TAKEN, NULL },
	{ "secret", CFG_TAKEN, NULL },
	{ "trust", CFG_TAKEN, NULL },
	{ NULL, CFG_TAKEN, NULL },
};

static const struct cfg_key secret_keys[] = {
	{ "ref", CFG_TAKEN, NULL },
	{ "placement", CFG_TAKEN, NULL },
	{ "header", CFG_TAKEN, NULL },
	{ "prefix", CFG_TAKEN, NULL },
	{ "inject", CFG_TAKEN, NULL },
	{ "phantom_prefix", CFG_TAKEN, NULL },
	{ "param", CFG_UNSUPPORTED, "it belongs to `placement = \"query_param\"`" },
	{ "phantom", CFG_REFUSED,
	    "`secret` carries `phantom`, which this build does not read; write `inject` instead "
	    "(`strict` is "
	    "\"phantom\", `advisory` is \"always\")" },
	{ NULL, CFG_TAKEN, NULL },
};

/* "invalid credential entry for host "api.x": …"; an entry is named by its first destination. */
#define FAIL_ENTRY(c, host, at, fmt, ...)                                                          \
	cfg_fail((c), (at), "invalid credential entry for host \"%s\": " fmt, (host), ##__VA_ARGS__)

static int read_dests(struct cfg *c, struct plan_route *r, const struct toml *t)
{
	const struct toml *v = toml_get(t, SV("destinations"));

	if (v == NULL)
		return cfg_fail(c, cfg_at(t),
		    "invalid `[egress." SV_FMT
		    "]` table: `destinations` is empty; name the hosts the secret may go to",
		    SV_ARG(r->name));
	if (cfg_want(c, v, TOML_ARRAY, "`destinations`") != 0)
		return -1;
	if (v->n == 0)
		return cfg_fail(c, cfg_at(v),
		    "invalid `[egress." SV_FMT
		    "]` table: `destinations` is empty; name the hosts the secret may go to",
		    SV_ARG(r->name));
	r->dests = ARENA_VEC(&c->p->arena, struct plan_dest, v->n);
	if (r->dests == NULL)
		return cfg_nomem(c);
	for (const struct toml *e = v->first; e != NULL; e = e->next) {
		struct plan_dest *d = &r->dests[r->dests_n];
		const char *reason;

		if (cfg_want(c, e, TOML_STRING, "a destination") != 0)
			return -1;
		d->at = cfg_at(e);
		if (!cfg_dest_parse(&c->p->arena, e->text, d, &reason))
			return FAIL_ENTRY(c, cfg_shown(c, e->text), d->at, "%s", reason);
		r->dests_n++;
	}
	return 0;
}

static int read_protocol(struct cfg *c, const struct plan_route *r, const struct toml *t)
{
	sv s = SV("http");
	struct plan_at at = { 0, 0 };

	if (cfg_string(c, t, "protocol", &s, &at) != 0)
		return -1;
	if (sv_eq(s, SV("http")))
		return 0;
	if (sv_eq(s, SV("mcp")))
		return FAIL_ENTRY(c, cfg_shown(c, r->dests[0].authored), at,
		    "`protocol` \"mcp\" is not accepted; an MCP server is `[mcp.<name>] type = "
		    "\"http\"`");
	return FAIL_ENTRY(c, cfg_shown(c, r->dests[0].authored), at,
	    "`protocol` \"%s\" is not one; only \"http\" is", cfg_shown(c, s));
}

static int read_ref(
    struct cfg *c, struct plan_route *r, const struct toml *secret, const char *host)
{
	struct plan_at at = cfg_at(secret);
	sv ref = { "", 0 }, scheme, name;
	ptrdiff_t sep;

	if (cfg_string(c, secret, "ref", &ref, &at) != 0)
		return -1;
	if (ref.n == 0)
		return FAIL_ENTRY(
		    c, host, at, "`secret.ref` is empty; write a URI such as env://NAME");
	sep = sv_find_sv(ref, SV("://"));
	if (sep < 0)
		return FAIL_ENTRY(
		    c, host, at, "secret must be a URI such as env://NAME or aws://profile");
	scheme = sv_sub(ref, 0, (size_t)sep);
	name = sv_sub(ref, (size_t)sep + 3, ref.n);
	if (sv_eq(scheme, SV("aws")) || sv_eq(scheme, SV("credsd"))) {
		if (name.n == 0 && scheme.n == 6)
			return FAIL_ENTRY(c, host, at, "`credsd://` names no environment");
		return FAIL_ENTRY(c, host, at,
		    "secret scheme \"" SV_FMT
		    "\" is not supported by this build of box yet; it delivers env://NAME",
		    SV_ARG(scheme));
	}
	if (!sv_eq(scheme, SV("env")))
		return FAIL_ENTRY(c, host, at,
		    "secret scheme \"%s\" is not one the box can deliver", cfg_shown(c, scheme));
	if (cfg_env_name(name) != CFG_ENV_OK || sv_eq(name, SV("HOME")) || sv_eq(name, SV("PATH")))
		return cfg_fail(c, at,
		    "credential setup failed: credential for %s names invalid or reserved variable "
		    "\"%s\"",
		    host, cfg_shown(c, name));
	r->secret_var = name;
	return 0;
}

static bool is_token(sv s)
{
	if (s.n == 0)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char ch = s.p[i];

		if (!((ch >= '0' && ch <= '9') || (ch >= 'A' && ch <= 'Z') ||
		        (ch >= 'a' && ch <= 'z') ||
		        (ch != '\0' && strchr("!#$%&'*+-.^_`|~", ch) != NULL)))
			return false;
	}
	return true;
}

/* Headers that frame a message or name its target: a secret there would change what the request is
 * (RFC 9110 7.6.1, RFC 9112 6). */
static bool is_framing_header(sv s)
{
	static const char *const names[] = { "Host", "Content-Length", "Transfer-Encoding",
		"Connection", "TE", "Trailer", "Upgrade", "Keep-Alive", "Proxy-Authorization",
		"Proxy-Connection", "Expect" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (sv_eq_nocase(s, sv_c(names[i])))
			return true;
	return false;
}

static int read_header(
    struct cfg *c, struct plan_route *r, const struct toml *secret, const char *host)
{
	sv placement = SV("header");
	struct plan_at at = cfg_at(secret), at_prefix = at, at_place = at;
	bool has_prefix = toml_get(secret, SV("prefix")) != NULL;

	if (cfg_string(c, secret, "placement", &placement, &at_place) != 0)
		return -1;
	if (sv_eq(placement, SV("basic_auth")) || sv_eq(placement, SV("query_param")))
		return FAIL_ENTRY(c, host, at_place,
		    "`secret.placement` \"" SV_FMT
		    "\" is not supported by this build of box yet; \"header\" is",
		    SV_ARG(placement));
	if (sv_eq(placement, SV("url_path")))
		return FAIL_ENTRY(c, host, at_place,
		    "`secret.placement` \"url_path\" is refused: a secret in a path ends up in "
		    "logs; use \"header\"");
	if (!sv_eq(placement, SV("header")))
		return FAIL_ENTRY(c, host, at_place,
		    "`secret.placement` \"%s\" is not one; \"header\" is", cfg_shown(c, placement));
	r->header = SV("Authorization");
	if (cfg_string(c, secret, "header", &r->header, &at) != 0)
		return -1;
	if (!is_token(r->header))
		return FAIL_ENTRY(c, host, at, "`secret.header` \"%s\" is not a header name",
		    cfg_shown(c, r->header));
	if (is_framing_header(r->header))
		return FAIL_ENTRY(c, host, at,
		    "`secret.header` \"" SV_FMT
		    "\" frames or routes the request, so a secret cannot stand there",
		    SV_ARG(r->header));
	r->prefix = sv_eq_nocase(r->header, SV("Authorization")) ? SV("Bearer ") : SV("");
	if (has_prefix && cfg_string(c, secret, "prefix", &r->prefix, &at_prefix) != 0)
		return -1;
	if (sv_has_ctl(r->prefix) || sv_find(r->prefix, '{') >= 0 || sv_find(r->prefix, '}') >= 0)
		return FAIL_ENTRY(c, host, at_prefix,
		    "`secret.prefix` \"%s\" holds a control character or a brace",
		    cfg_shown(c, r->prefix));
	return 0;
}

static int read_phantom(
    struct cfg *c, struct plan_route *r, const struct toml *secret, const char *host)
{
	sv inject = SV("phantom");
	struct plan_at at = cfg_at(secret);

	if (cfg_string(c, secret, "inject", &inject, &at) != 0)
		return -1;
	if (!sv_eq(inject, SV("phantom")) && !sv_eq(inject, SV("always")))
		return FAIL_ENTRY(c, host, at,
		    "`secret.inject` \"%s\" is not one of \"phantom\" or \"always\"",
		    cfg_shown(c, inject));
	r->inject = sv_eq(inject, SV("always")) ? PLAN_ALWAYS : PLAN_PHANTOM;
	r->phantom_prefix = SV("strands_box_");
	at = cfg_at(secret);
	if (cfg_string(c, secret, "phantom_prefix", &r->phantom_prefix, &at) != 0)
		return -1;
	for (size_t i = 0; i < r->phantom_prefix.n; i++) {
		char ch = r->phantom_prefix.p[i];

		if (!((ch >= '0' && ch <= '9') || (ch >= 'A' && ch <= 'Z') ||
		        (ch >= 'a' && ch <= 'z') || (ch != '\0' && strchr("-_.~", ch) != NULL)))
			return FAIL_ENTRY(c, host, at,
			    "`secret.phantom_prefix` \"%s\" may hold letters, digits, '-', '_', "
			    "'.' and '~' only",
			    cfg_shown(c, r->phantom_prefix));
	}
	if (r->phantom_prefix.n == 0 || r->phantom_prefix.n > 64)
		return FAIL_ENTRY(c, host, at,
		    "`secret.phantom_prefix` must be 1 to 64 characters, not %zu",
		    r->phantom_prefix.n);
	return 0;
}

static int read_route(struct cfg *c, struct plan_route *r, const struct toml *t)
{
	const char *where = arena_printf(&c->p->arena, "`[egress.%s]`", cfg_shown(c, r->name)),
	           *host;
	const struct toml *secret;

	if (where == NULL)
		return cfg_nomem(c);
	if (cfg_want(c, t, TOML_TABLE, where) != 0 ||
	    cfg_check_keys(c, t, route_keys, where) != 0 || read_dests(c, r, t) != 0 ||
	    read_protocol(c, r, t) != 0)
		return -1;
	host = cfg_shown(c, r->dests[0].authored);
	r->trust = (sv){ "", 0 };
	if (cfg_string(c, t, "trust", &r->trust, &r->at_trust) != 0)
		return -1;
	if (r->at_trust.line != 0 && (r->trust.n == 0 || sv_has_ctl(r->trust)))
		return FAIL_ENTRY(c, host, r->at_trust, "`trust` must name a PEM file");
	secret = toml_get(t, SV("secret"));
	if (secret == NULL)
		return FAIL_ENTRY(
		    c, host, cfg_at(t), "an entry with no secret declares only a destination");
	if (cfg_want(c, secret, TOML_TABLE, "`secret`") != 0 ||
	    cfg_check_keys(c, secret, secret_keys, "`secret`") != 0)
		return -1;
	if (read_ref(c, r, secret, host) != 0 || read_header(c, r, secret, host) != 0)
		return -1;
	return read_phantom(c, r, secret, host);
}

/* One request has one secret, and one variable one placeholder. b is r itself for the destinations
 * of one entry. */
static int check_pair(struct cfg *c, const struct plan_route *a, const struct plan_route *b)
{
	for (size_t i = 0; i < b->dests_n; i++) {
		for (size_t k = 0; k < (a == b ? i : a->dests_n); k++) {
			const struct plan_dest *da = &a->dests[k], *db = &b->dests[i];

			if (plan_dest_overlaps(da, db))
				return FAIL_ENTRY(c, cfg_shown(c, db->authored), db->at,
				    "`%s` overlaps `%s` at \"%s\": one request may match one "
				    "destination only",
				    cfg_shown(c, a->name), cfg_shown(c, b->name),
				    cfg_shown(c, da->authored));
		}
	}
	if (a != b && sv_eq(a->secret_var, b->secret_var) &&
	    !sv_eq(a->phantom_prefix, b->phantom_prefix))
		return FAIL_ENTRY(c, cfg_shown(c, b->dests[0].authored), b->dests[0].at,
		    "variable " SV_FMT
		    " has another `phantom_prefix` in `[egress.%s]`, and one variable has one "
		    "placeholder",
		    SV_ARG(b->secret_var), cfg_shown(c, a->name));
	return 0;
}

int cfg_read_egress(struct cfg *c, const struct toml *root)
{
	const struct toml *v = toml_get(root, SV("egress"));
	struct plan *p = c->p;

	if (v == NULL)
		return 0;
	if (cfg_want(c, v, TOML_TABLE, "`egress`") != 0)
		return -1;
	p->routes = ARENA_VEC(&p->arena, struct plan_route, v->n);
	if (p->routes == NULL)
		return cfg_nomem(c);
	for (const struct toml *e = v->first; e != NULL; e = e->next) {
		struct plan_route *r = &p->routes[p->routes_n];

		if (e->key.n == 0 || sv_has_ctl(e->key))
			return cfg_fail(c, cfg_at_key(e),
			    "egress name \"%s\" is empty or holds a control character",
			    cfg_shown(c, e->key));
		r->name = arena_dup(&p->arena, e->key);
		if (r->name.p == NULL)
			return cfg_nomem(c);
		if (read_route(c, r, e) != 0)
			return -1;
		p->routes_n++;
		for (size_t i = 0; i < p->routes_n; i++)
			if (check_pair(c, &p->routes[i], r) != 0)
				return -1;
	}
	return 0;
}
