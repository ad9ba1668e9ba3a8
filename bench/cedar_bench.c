/* Stateless decisions and reading: nanoseconds for one decision with 10 to 10,000 policies
 * (selective: each names a value of its own; broad: all meet the request), megabytes a second for
 * parsing and validating policies and schemas. Prints rows of the table that bench/language.sh puts
 * together; with --json one object a row, so that cedar_bench.mjs can put the reference
 * implementation beside it, and with --cases the inputs of those rows.
 *
 * Every figure is the best of several batches: what the code can do, not what else ran
 * meanwhile. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cedar/json.h"
#include "cedar/parse.h"
#include "cedar/validate.h"

#include "base/ban.h"

#define BATCHES  7
#define BATCH_NS 60e6

static const char small_schema[] =
    "namespace Bench { entity Agent in [Agent]; entity Res; action read, write appliesTo { "
    "principal: Agent, resource: Res, "
    "context: { input: { path: String, host: String, size: Long } } }; }";
static const char request_text[] =
    "{\"principal\": {\"type\": \"Bench::Agent\", \"id\": \"self\"}, \"action\": {\"type\": "
    "\"Bench::Action\", \"id\": "
    "\"read\"}, \"resource\": {\"type\": \"Bench::Res\", \"id\": \"r\"}, \"context\": {\"input\": "
    "{\"path\": "
    "\"/home/u/project/file5.c\", \"host\": \"h5.example.com\", \"size\": 100}}}";

enum kind { DECIDE, PARSE, VALIDATE, SCHEMA, SCHEMA_JSON };
static const char *const kind_names[] = { "decide", "parse", "validate", "schema", "schema_json" };

static const struct row {
	enum kind kind;
	const char *what, *shape;
	unsigned n;
} rows[] = {
	{ DECIDE, "decision, selective", "selective", 10 },
	{ DECIDE, "decision, selective", "selective", 100 },
	{ DECIDE, "decision, selective", "selective", 1000 },
	{ DECIDE, "decision, selective", "selective", 10000 },
	{ DECIDE, "decision, broad", "broad", 10 },
	{ DECIDE, "decision, broad", "broad", 100 },
	{ DECIDE, "decision, broad", "broad", 1000 },
	{ DECIDE, "decision, broad", "broad", 10000 },
	{ PARSE, "parse policies", "mixed", 1000 },
	{ VALIDATE, "parse and validate policies", "mixed", 1000 },
	{ SCHEMA, "schema, human syntax", "types", 200 },
	{ SCHEMA_JSON, "schema, JSON", "types", 200 },
};

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- inputs -------------------------------------------------------------------------------- */

static void mixed(struct buf *b, unsigned i)
{
	buf_putf(b,
	    "@id(\"m%u\")\n"
	    "permit (\n  principal in Bench::Agent::\"team%u\",\n"
	    "  action in [Bench::Action::\"read\", Bench::Action::\"write\"],\n"
	    "  resource is Bench::Res\n)\n"
	    "when {\n  // paths of project %u\n"
	    "  context.input.path like \"/home/*/p%u/*\" && context.input.size < %u ||\n"
	    "  [\"a%u.example.com\", \"b.example.com\"].contains(context.input.host)\n}\n",
	    i, i % 50, i, i, 1000 + i, i);
	buf_putf(b,
	    "unless {\n  context has input && context.input.host == \"bad%u\" ||\n"
	    "  (if context.input.size > 10 then ip(\"10.0.0.%u/32\").isLoopback() else false)\n"
	    "};\n",
	    i, i % 250);
}

static void policies(struct buf *b, const struct row *r)
{
	unsigned i;

	if (r->shape[0] == 'm') {
		for (i = 0; i < r->n; i++)
			mixed(b, i);
		return;
	}
	buf_put_sv(b, SV("permit(principal, action == Bench::Action::\"read\", resource);\n"));
	for (i = 0; i < r->n; i++) {
		buf_putf(b,
		    "@id(\"r%u\") forbid(principal, action == Bench::Action::\"read\", resource) "
		    "when { ",
		    i);
		if (r->shape[0] == 's')
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

static void die(const char *what, const struct cedar_diags *ds)
{
	fprintf(stderr, "%s: " SV_FMT "\n", what, SV_ARG(ds->n != 0 ? ds->d[0].message : SV("")));
	exit(1);
}

static void big_schema(struct buf *b, const struct row *r)
{
	struct cedar_syms *t = cedar_syms_new(0);
	struct arena a = { 0 };
	struct cedar_diags ds = cedar_diags_in(&a);
	struct cedar_schema_src src;
	AUTO_BUF text = buf_with((size_t)64 << 20);
	unsigned i;

	buf_put_sv(&text, SV("namespace Big {\ntype Address = { ip: ipaddr, port?: Long };\n"));
	for (i = 0; i < r->n; i++)
		buf_putf(&text,
		    "// the type of number %u\n"
		    "entity T%u in [T%u] = {\n  name: String,\n  size: Long,\n  owner?: T0,\n  "
		    "labels: Set<String>,\n  at: Address,\n  seen: datetime\n} tags String;\n"
		    "action \"do%u\" in [Action::\"all\"] appliesTo {\n  principal: [T%u, T0],\n  "
		    "resource: [T%u],\n  context: { input: { path: String, host?: Address } "
		    "}\n};\n",
		    i, i, i / 2, i, i, i);
	buf_put_sv(&text, SV("action all;\n}\n"));
	if (r->kind == SCHEMA) {
		buf_put_sv(b, buf_sv(&text));
	} else {
		if (cedar_schema_parse(t, &a, buf_sv(&text), &src, &ds) < 0)
			die("schema", &ds);
		cedar_schema_put_json(b, &src);
	}
	arena_free(&a);
	cedar_syms_free(t);
}

/* ---- measuring ----------------------------------------------------------------------------- */

/* The best time of one call, over batches that last long enough to be measured. */
static double best(void (*f)(void *ctx), void *ctx)
{
	double least = 1e18, t0, ns;
	unsigned rounds = 1, i, k;

	for (k = 0; k < BATCHES;) {
		t0 = now_ns();
		for (i = 0; i < rounds; i++)
			f(ctx);
		ns = now_ns() - t0;
		if (ns < BATCH_NS) {
			rounds = ns < BATCH_NS / 64 ? rounds * 16 : rounds * 2;
			continue;
		}
		if (ns / rounds < least)
			least = ns / rounds;
		k++;
	}
	return least;
}

struct decision {
	struct cedar_syms *t;
	struct cedar_schema *s;
	struct cedar_policies *ps;
	struct cedar_eval ev;
	struct cedar_request rq;
	struct cedar_answer ans;
	struct box_err err;
};

static void decide(void *ctx)
{
	struct decision *d = ctx;

	if (cedar_authorize(d->ps, &d->ev, &d->rq, &d->ans, &d->err) < 0 || !d->ans.allow)
		abort();
}

/* From the JSON of the request, as the other side does it. */
static void decide_json(void *ctx)
{
	struct decision *d = ctx;

	cedar_eval_reset(&d->ev);
	if (cedar_json_request(
	        d->t, cedar_eval_arena(&d->ev), sv_c(request_text), d->s, &d->rq, &d->err) < 0)
		abort();
	d->rq.entities = &d->s->actions;
	decide(ctx);
}

struct text {
	sv text;
	const char *schema;
	bool json;
};

static void read_policies(void *ctx)
{
	const struct text *x = ctx;
	struct cedar_syms *t = cedar_syms_new(0);
	struct arena a = { 0 };
	struct cedar_diags ds = cedar_diags_in(&a);
	struct cedar_source src;
	struct cedar_schema *s;

	if (cedar_parse(t, &a, x->text, NULL, &src, &ds) < 0)
		die("policies", &ds);
	if (x->schema != NULL) {
		s = cedar_schema_load(t, &a, sv_c(x->schema), false, &ds);
		if (s == NULL || cedar_validate_source(s, &src, &ds) != 0)
			die("policies", &ds);
	}
	arena_free(&a);
	cedar_syms_free(t);
}

static void read_schema(void *ctx)
{
	const struct text *x = ctx;
	struct cedar_syms *t = cedar_syms_new(0);
	struct arena a = { 0 };
	struct cedar_diags ds = cedar_diags_in(&a);

	if (cedar_schema_load(t, &a, x->text, x->json, &ds) == NULL)
		die("schema", &ds);
	arena_free(&a);
	cedar_syms_free(t);
}

/* Of the row: ns of a decision, or MB/s. For decisions also with a request built before, and how
 * many policies were met. */
struct figure {
	double ours, built;
	size_t met;
};

static struct figure measure_decision(sv text)
{
	struct arena a = { 0 };
	struct cedar_diags ds = cedar_diags_in(&a);
	struct decision d = { .t = cedar_syms_new(0) };
	struct cedar_source src;
	struct figure f = { 0 };

	d.s = cedar_schema_load(d.t, &a, sv_c(small_schema), false, &ds);
	if (d.s == NULL || cedar_parse(d.t, &a, text, NULL, &src, &ds) < 0)
		die("policies", &ds);
	d.ps = cedar_policies_of(d.t, &src, NULL, &ds);
	if (d.ps == NULL)
		die("policies", &ds);
	f.ours = best(decide_json, &d);
	f.built = best(decide, &d);
	f.met = d.ans.met;
	cedar_eval_fini(&d.ev);
	cedar_policies_free(d.ps);
	arena_free(&a);
	cedar_syms_free(d.t);
	return f;
}

static struct figure measure(const struct row *r, sv text)
{
	struct text x = { text, r->kind == VALIDATE ? small_schema : NULL, r->kind == SCHEMA_JSON };

	if (r->kind == DECIDE)
		return measure_decision(text);
	return (struct figure){
		.ours =
		    (double)text.n * 1e3 /
		    best(r->kind == PARSE || r->kind == VALIDATE ? read_policies : read_schema, &x)
	};
}

static void print_case(const struct row *r, sv text)
{
	AUTO_BUF line = buf_with((size_t)64 << 20);

	buf_putf(&line,
	    "{\"kind\": \"%s\", \"n\": %u, \"request\": %s, \"schema\": ", kind_names[r->kind],
	    r->n, request_text);
	buf_put_json(&line, sv_c(small_schema));
	buf_put_sv(&line, SV(", \"text\": "));
	buf_put_json(&line, text);
	buf_put_sv(&line, SV("}\n"));
	fputs(buf_cstr(&line), stdout);
}

int main(int argc, char **argv)
{
	bool cases = argc > 1 && strcmp(argv[1], "--cases") == 0;
	bool json = argc > 1 && strcmp(argv[1], "--json") == 0;

	if (!cases && !json)
		printf("%-40s %8s %14s\n", "stateless", "number", "ours");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		AUTO_BUF text = buf_with((size_t)64 << 20);
		struct figure f;

		if (r->kind == SCHEMA || r->kind == SCHEMA_JSON)
			big_schema(&text, r);
		else
			policies(&text, r);
		if (cases) {
			print_case(r, buf_sv(&text));
			continue;
		}
		f = measure(r, buf_sv(&text));
		if (json)
			printf("{\"what\": \"%s\", \"n\": %u, \"ours\": %.1f, \"built\": %.1f, "
			       "\"met\": %zu}\n",
			    r->what, r->n, f.ours, f.built, f.met);
		else if (r->kind == DECIDE)
			printf("%-40s %8u %11.2f µs  (request built before: %.2f µs)\n", r->what,
			    r->n, f.ours / 1e3, f.built / 1e3);
		else
			printf("%-40s %8u %9.1f MB/s\n", r->what, r->n, f.ours);
	}
	return 0;
}
