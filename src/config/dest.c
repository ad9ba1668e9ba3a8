/* Destination patterns of routes: parsing, covering, overlap (box-config-and-policy 1.7). */
#include "config/keys.h"

#include "base/ban.h"

bool cfg_port(sv s, uint16_t *out)
{
	uint64_t v;

	if (s.n > 5 || !sv_to_u64(s, 10, 65535, &v) || v == 0)
		return false;
	*out = (uint16_t)v;
	return true;
}

bool cfg_host(struct arena *a, sv text, sv *out, enum host_kind *kind)
{
	bool bracketed = text.n >= 2 && text.p[0] == '[' && text.p[text.n - 1] == ']';
	struct host h;

	/* An IPv6 literal without brackets cannot be told from a port. */
	if (!bracketed && sv_find(text, ':') >= 0)
		return false;
	if (host_parse(bracketed ? sv_sub(text, 1, text.n - 2) : text, bracketed, &h, NULL) != 0)
		return false;
	*kind = h.kind;
	*out = arena_dup(a, host_sv(&h));
	return out->p != NULL;
}

/* An empty segment, "." or "..": the gateway's canonical paths have none, so a pattern with one
 * would never match. */
static bool has_odd_segment(sv path)
{
	size_t from = 1;

	for (size_t i = 1; i <= path.n; i++) {
		if (i < path.n && path.p[i] != '/')
			continue;
		if (i - from == 0 || (i - from <= 2 && path.p[from] == '.' && path.p[i - 1] == '.'))
			return true;
		from = i + 1;
	}
	return false;
}

static bool parse_path(struct arena *a, sv path, struct plan_dest *out, const char **reason)
{
	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	if (path.n <= 1) {
		out->path = SV("");
		return true;
	}
	if (sv_starts(path, SV("/*/"))) {
		out->is_suffix = true;
		path = sv_sub(path, 2, path.n);
	}
	if (sv_find(path, '*') >= 0) {
		*reason =
		    "a wildcard in a path may only be its whole first segment, as in host/*/upload";
		return false;
	}
	if (sv_find(path, '?') >= 0 || sv_find(path, '#') >= 0) {
		*reason = "a path pattern has no query and no fragment";
		return false;
	}
	if (has_odd_segment(path)) {
		*reason = "a path pattern has no empty, `.` or `..` segment";
		return false;
	}
	out->path = arena_dup(a, path);
	*reason = "no memory";
	return out->path.p != NULL;
}

/* Split "host:port" or "[v6]:port"; port stays empty (.p NULL) when there is none. */
static void split_port(sv s, sv *host, sv *port)
{
	ptrdiff_t at = sv_rfind(s, ':');
	bool bracket = s.n != 0 && s.p[0] == '[';

	*host = s;
	*port = (sv){ NULL, 0 };
	if (at < 0 || (bracket && sv_rfind(s, ']') > at))
		return;
	*host = sv_sub(s, 0, (size_t)at);
	*port = sv_sub(s, (size_t)at + 1, s.n);
}

bool cfg_dest_parse(struct arena *a, sv text, struct plan_dest *out, const char **reason)
{
	sv authority, host, port, path;
	enum host_kind kind;
	ptrdiff_t slash;

	*out = (struct plan_dest){ .authored = arena_dup(a, text), .path = SV(""), .at = out->at };
	*reason = "no memory";
	if (out->authored.p == NULL)
		return false;
	text = out->authored;
	if (text.n == 0) {
		*reason = "destination is empty";
		return false;
	}
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] <= 0x20 || text.p[i] == 0x7f) {
			*reason = "destination contains whitespace or a control character";
			return false;
		}
	if (sv_find_sv(text, SV("://")) >= 0) {
		*reason =
		    "a destination is a host with an optional port and path, without a scheme";
		return false;
	}
	slash = sv_find(text, '/');
	authority = slash < 0 ? text : sv_sub(text, 0, (size_t)slash);
	path = slash < 0 ? (sv){ "", 0 } : sv_sub(text, (size_t)slash, text.n);
	split_port(authority, &host, &port);
	if (host.n == 1 && host.p[0] == '*') {
		*reason = "this matches every host";
		return false;
	}
	if (port.p != NULL && !cfg_port(port, &out->port)) {
		*reason = "port must be between 1 and 65535";
		return false;
	}
	if (sv_starts(host, SV("*."))) {
		out->subdomains = true;
		host = sv_sub(host, 2, host.n);
	}
	if (sv_find(host, '*') >= 0) {
		*reason = "a wildcard may only be the whole first label, as in *.example.com";
		return false;
	}
	if (!cfg_host(a, host, &out->host, &kind) || (out->subdomains && kind != HOST_NAME)) {
		*reason = "it names no host";
		return false;
	}
	return parse_path(a, path, out, reason);
}

static bool host_covers(const struct plan_dest *d, sv host)
{
	if (!d->subdomains)
		return sv_eq(d->host, host);
	return host.n > d->host.n + 1 && sv_ends(host, d->host) &&
	       host.p[host.n - d->host.n - 1] == '.';
}

static bool path_covers(const struct plan_dest *d, sv path)
{
	if (d->path.n == 0)
		return true;
	if (d->is_suffix)
		return sv_ends(path, d->path);
	return sv_starts(path, d->path) && (path.n == d->path.n || path.p[d->path.n] == '/');
}

bool plan_dest_covers(const struct plan_dest *d, sv host, uint16_t port, sv path)
{
	if (!host_covers(d, host))
		return false;
	if (d->port != 0 ? port != d->port : port != 443 && port != 80)
		return false;
	return path.n == 0 || path_covers(d, path);
}

static bool hosts_overlap(const struct plan_dest *a, const struct plan_dest *b)
{
	if (!a->subdomains && !b->subdomains)
		return sv_eq(a->host, b->host);
	if (!a->subdomains)
		return host_covers(b, a->host);
	if (!b->subdomains)
		return host_covers(a, b->host);
	return sv_eq(a->host, b->host) || host_covers(a, b->host) || host_covers(b, a->host);
}

static bool ports_overlap(uint16_t a, uint16_t b)
{
	if (a == b)
		return true;
	return (a == 0 && (b == 443 || b == 80)) || (b == 0 && (a == 443 || a == 80));
}

static bool paths_overlap(const struct plan_dest *a, const struct plan_dest *b)
{
	if (a->path.n == 0 || b->path.n == 0 || a->is_suffix != b->is_suffix)
		return true; /* /v1/…/upload is under /v1 and ends in /upload */
	if (a->is_suffix)
		return sv_ends(a->path, b->path) || sv_ends(b->path, a->path);
	return path_covers(a, b->path) || path_covers(b, a->path);
}

bool plan_dest_overlaps(const struct plan_dest *a, const struct plan_dest *b)
{
	return hosts_overlap(a, b) && ports_overlap(a->port, b->port) && paths_overlap(a, b);
}
