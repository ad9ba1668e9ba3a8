/* Whole box.toml files through the parse stage. Nothing but the (fixed) home is looked up in the
 * file system. A destination covers its own host, port and path, and no host that only looks
 * like it. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "config/config.h"

#define CHECK(x) ((x) ? (void)0 : __builtin_trap())

static void destination(const struct plan_dest *x)
{
	uint16_t port = x->port != 0 ? x->port : 443;
	AUTO_BUF below = buf_with(1024), alike = buf_with(1024), longer = buf_with(8192);

	buf_putf(&below, "a." SV_FMT, SV_ARG(x->host));
	buf_putf(&alike, "a" SV_FMT, SV_ARG(x->host));
	CHECK(buf_ok(&below) && buf_ok(&alike));
	CHECK(plan_dest_covers(x, x->subdomains ? buf_sv(&below) : x->host, port, x->path));
	CHECK(!plan_dest_covers(x, x->subdomains ? x->host : buf_sv(&below), port, x->path));
	CHECK(!plan_dest_covers(x, buf_sv(&alike), port, x->path));
	CHECK(!plan_dest_covers(x, x->host, (uint16_t)(port ^ 1), x->path));
	CHECK(plan_dest_overlaps(x, x));
	if (x->path.n == 0)
		return;
	/* "/v1" is not "/v1x", and "/x" in the end not "/xy". */
	buf_putf(&longer, SV_FMT "x", SV_ARG(x->path));
	if (buf_ok(&longer))
		CHECK(!plan_dest_covers(
		    x, x->subdomains ? buf_sv(&below) : x->host, port, buf_sv(&longer)));
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	const struct config_input in = { "box.toml", "/", "/nonexistent", NULL, NULL, 0, 0 };
	struct box_err err = { 0 };
	struct plan p = { 0 };

	if (config_parse(&in, (sv){ (const char *)d, n }, &p, &err) != 0)
		CHECK(strchr(err.msg, '\n') == NULL); /* an error is one line */
	else
		for (size_t i = 0; i < p.routes_n; i++)
			for (size_t k = 0; k < p.routes[i].dests_n; k++)
				destination(&p.routes[i].dests[k]);
	plan_fini(&p);
	return 0;
}
