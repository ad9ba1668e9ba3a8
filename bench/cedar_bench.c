/* Stateless decisions and parsing: nanoseconds for one decision with 10 to 10,000 policies (selective: each names a value of
 * its own; broad: all meet the request), megabytes a second for parsing and validating. One line of JSON a figure, so that
 * cedar_bench.mjs can put the reference implementation beside it; with --cases the inputs are printed instead. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cedar/json.h"
#include "cedar/parse.h"
#include "cedar/validate.h"

#include "base/ban.h"

static const char schema_text[] =
    "namespace Bench { entity Agent; entity Res; action read, write appliesTo { principal: Agent, "
    "resource: Res, "
    "context: { input: { path: String, host: String, size: Long } } }; }";
static const char request_text[] =
    "{\"principal\": {\"type\": \"Bench::Agent\", \"id\": \"self\"}, \"action\": {\"type\": "
    "\"Bench::Action\", \"id\": "
    "\"read\"}, \"resource\": {\"type\": \"Bench::Res\", \"id\": \"r\"}, \"context\": {\"input\": "
    "{\"path\": "
    "\"/home/u/project/file5.c\", \"host\": \"h5.example.com\", \"size\": 100}}}";

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void make(struct buf *b, unsigned n, bool selective)
{
	unsigned i;

	buf_put_sv(b, SV("permit(principal, action == Bench::Action::\"read\", resource);\n"));
	for (i = 0; i < n; i++) {
		buf_putf(b,
		    "@id(\"r%u\") forbid(principal, action == Bench::Action::\"read\", resource) "
		    "when { ",
		    i);
		if (selective)
			buf_putf(b,
			    "context.input.host == \"h%u.example.com\" && context.input.size > %u "
			    "};\n",
			    i, 1000 + i);
		else
			buf_putf(b,
			    "context.input.size > %u && context.input.path like \"*.k%u\" };\n",
			    1000 + i, i);
	}
}

static void decide(unsigned n, bool selective)
{
	struct arena a = { 0 };
	struct cedar_diags ds = cedar_diags_in(&a);
	struct cedar_syms *t = cedar_syms_new(0);
	struct cedar_schema *s = cedar_schema_load(t, &a, sv_c(schema_text), false, &ds);
	AUTO_BUF b = buf_with((size_t)64 << 20);
	struct cedar_source src;
	struct cedar_policies *ps;
	struct cedar_eval ev = { 0 };
	struct cedar_request rq = { 0 };
	struct cedar_answer ans;
	struct box_err err;
	unsigned i, rounds = n >= 1000 && !selective ? 200 : 20000;
	double t0, parse, valid, ns;

	make(&b, n, selective);
	t0 = now_ns();
	if (cedar_parse(t, &a, buf_sv(&b), NULL, &src, &ds) < 0)
		abort();
	parse = now_ns() - t0;
	t0 = now_ns();
	if (cedar_validate_source(s, &src, &ds) != 0)
		abort();
	valid = now_ns() - t0;
	ps = cedar_policies_of(t, &src, NULL, &ds);
	if (ps == NULL || cedar_json_request(t, &a, sv_c(request_text), s, &rq, &err) < 0)
		abort();
	rq.entities = &s->actions;
	for (i = 0; i < 100; i++)
		if (cedar_authorize(ps, &ev, &rq, &ans, &err) < 0 || !ans.allow)
			abort();
	t0 = now_ns();
	for (i = 0; i < rounds; i++)
		(void)cedar_authorize(ps, &ev, &rq, &ans, &err); /* as above */
	ns = (now_ns() - t0) / rounds;
	printf("{\"shape\": \"%s\", \"policies\": %u, \"decision_ns\": %.0f, \"met\": %zu, "
	       "\"parse_mb_s\": %.1f, "
	       "\"validate_mb_s\": %.1f}\n",
	    selective ? "selective" : "broad", n, ns, ans.met, (double)b.n * 1e3 / parse,
	    (double)b.n * 1e3 / valid);
	cedar_eval_fini(&ev);
	cedar_policies_free(ps);
	arena_free(&a);
	cedar_syms_free(t);
}

int main(int argc, char **argv)
{
	static const unsigned sizes[] = { 10, 100, 1000, 10000 };
	bool cases = argc > 1 && strcmp(argv[1], "--cases") == 0;
	size_t i, k;

	for (k = 0; k < 2; k++)
		for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			AUTO_BUF b = buf_with((size_t)64 << 20), line = buf_with((size_t)64 << 20);

			if (!cases) {
				decide(sizes[i], k == 0);
				continue;
			}
			make(&b, sizes[i], k == 0);
			buf_putf(&line,
			    "{\"shape\": \"%s\", \"n\": %u, \"request\": %s, \"schema\": ",
			    k == 0 ? "selective" : "broad", sizes[i], request_text);
			buf_put_json(&line, sv_c(schema_text));
			buf_put_sv(&line, SV(", \"policies\": "));
			buf_put_json(&line, buf_sv(&b));
			buf_put_sv(&line, SV("}\n"));
			fputs(buf_cstr(&line), stdout);
		}
	return 0;
}
