/* Runs the Cedar conformance data as it stands (data/cedar/README.md): validation verdict,
 * decision, determining and erring policies of every request. Argument: the folder of the data. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cedar/jtree.h"
#include "cedar/json.h"
#include "cedar/parse.h"
#include "cedar/validate.h"

#include "base/ban.h"

struct run {
	const char *dir;
	size_t cases, requests, failed;
};

/* One test file. */
struct one {
	struct run *r;
	const char *name;
	struct cedar_syms *t;
	struct arena a;
	struct cedar_diags ds;
	struct cedar_schema *schema;
	struct cedar_source src;
	struct cedar_policies *ps;
	struct cedar_entities es;
	struct cedar_eval ev;
};

static sv read_file(struct arena *a, const char *dir, sv rel)
{
	const char *path = arena_printf(a, "%s/" SV_FMT, dir, SV_ARG(rel));
	FILE *f = path != NULL ? fopen(path, "rb") : NULL;
	size_t n = 0, cap = 1 << 16, got;
	char *p = arena_alloc(a, cap, 1);

	if (f == NULL || p == NULL) {
		fprintf(stderr, "cannot read %s\n", path != NULL ? path : "?");
		exit(2);
	}
	while ((got = fread(p + n, 1, cap - n, f)) > 0) {
		n += got;
		if (n == cap) {
			p = arena_grow(a, p, n, cap * 2, 1);
			cap *= 2;
			if (p == NULL)
				exit(2);
		}
	}
	fclose(f);
	return (sv){ p, n };
}

static void complain(struct one *o, const char *what, sv detail)
{
	fprintf(stderr, "%s: %s: " SV_FMT "\n", o->name, what, SV_ARG(detail));
	o->r->failed++;
}

static void first_error(struct one *o, const char *what)
{
	complain(o, what, o->ds.n != 0 ? o->ds.d[0].message : SV("?"));
}

static struct cedar_uid uid_of(struct one *o, const struct jnode *j)
{
	struct jnode *type = jtree_get(j, SV("type")), *id = jtree_get(j, SV("id"));

	if (type == NULL || id == NULL) {
		complain(o, "request without a component", SV(""));
		exit(2);
	}
	return (struct cedar_uid){ cedar_intern(o->t, type->s), cedar_intern(o->t, id->s) };
}

/* Is the set of ids in j the set of policies v? */
static bool same_ids(
    const struct cedar_policies *ps, const struct jnode *j, const uint32_t *v, size_t n)
{
	uint32_t i;
	size_t k;

	if (j == NULL || j->n != n)
		return false;
	for (i = 0; i < j->n; i++) {
		for (k = 0; k < n; k++)
			if (sv_eq(j->item[i]->s, cedar_sv(cedar_policies_get(ps, v[k])->id)))
				break;
		if (k == n)
			return false;
	}
	return true;
}

static void check_request(struct one *o, sv text, const struct jnode *j)
{
	struct jnode *want = jtree_get(j, SV("decision")), *v = jtree_get(j, SV("validateRequest"));
	struct jnode *ctx = jtree_get(j, SV("context"));
	struct cedar_request rq = { .entities = &o->es };
	const struct cedar_action *x;
	struct cedar_answer ans;
	struct box_err err = { 0 };
	struct cedar_value c;
	uint32_t erring[64];
	size_t i;

	o->r->requests++;
	rq.principal = uid_of(o, jtree_get(j, SV("principal")));
	rq.action = uid_of(o, jtree_get(j, SV("action")));
	rq.resource = uid_of(o, jtree_get(j, SV("resource")));
	x = cedar_schema_action(o->schema, rq.action);
	cedar_eval_reset(&o->ev);
	if (cedar_json_value(o->t, cedar_eval_arena(&o->ev), sv_sub(text, ctx->off, ctx->len),
	        x != NULL ? x->context : NULL, &c, &err) < 0) {
		complain(o, "context", sv_c(err.msg));
		return;
	}
	rq.context = c.rec;
	if ((v == NULL || v->b) && cedar_request_conforms(o->schema, &rq, &err) < 0)
		complain(o, "request does not conform", sv_c(err.msg));
	if (cedar_authorize(o->ps, &o->ev, &rq, &ans, &err) < 0) {
		complain(o, "authorize", sv_c(err.msg));
		return;
	}
	if (ans.allow != sv_eq(want->s, SV("allow")))
		complain(o, "decision differs", jtree_get(j, SV("description"))->s);
	if (!same_ids(o->ps, jtree_get(j, SV("reason")), ans.reason, ans.n_reason))
		complain(o, "determining policies differ", jtree_get(j, SV("description"))->s);
	for (i = 0; i < ans.n_error && i < 64; i++)
		erring[i] = ans.error[i].policy;
	if (!same_ids(o->ps, jtree_get(j, SV("errors")), erring, ans.n_error))
		complain(o, "erring policies differ", jtree_get(j, SV("description"))->s);
}

static bool load(struct one *o, const struct jnode *j)
{
	const char *dir = o->r->dir;
	struct box_err err = { 0 };

	o->ds = cedar_diags_in(&o->a);
	o->schema = cedar_schema_load(
	    o->t, &o->a, read_file(&o->a, dir, jtree_get(j, SV("schema"))->s), false, &o->ds);
	if (o->schema == NULL) {
		first_error(o, "schema");
		return false;
	}
	if (cedar_parse(o->t, &o->a, read_file(&o->a, dir, jtree_get(j, SV("policies"))->s), NULL,
	        &o->src, &o->ds) < 0) {
		first_error(o, "policies");
		return false;
	}
	o->ps = cedar_policies_of(o->t, &o->src, NULL, &o->ds);
	if (o->ps == NULL) {
		first_error(o, "compile");
		return false;
	}
	o->es = cedar_entities_in(&o->a, &o->schema->actions);
	if (cedar_json_entities(o->t, read_file(&o->a, dir, jtree_get(j, SV("entities"))->s),
	        o->schema, &o->es, &err) < 0) {
		complain(o, "entities", sv_c(err.msg));
		return false;
	}
	return true;
}

static void check_case(struct run *r, const char *name)
{
	struct one o = { .r = r, .name = name };
	struct box_err err = { 0 };
	struct jnode *j, *reqs;
	bool valid;
	uint32_t i;
	sv text;

	r->cases++;
	o.t = cedar_syms_new(0);
	text = read_file(&o.a, r->dir, sv_c(name));
	j = jtree_parse(&o.a, text, &err);
	if (j == NULL) {
		complain(&o, "test file", sv_c(err.msg));
	} else if (load(&o, j)) {
		valid = cedar_validate_source(o.schema, &o.src, &o.ds) == 0;
		if (valid != jtree_get(j, SV("shouldValidate"))->b)
			first_error(&o, valid ? "validates but should not" : "does not validate");
		reqs = jtree_get(j, SV("requests"));
		for (i = 0; i < reqs->n; i++)
			check_request(&o, text, reqs->item[i]);
	}
	cedar_eval_fini(&o.ev);
	cedar_policies_free(o.ps);
	arena_free(&o.a);
	cedar_syms_free(o.t);
}

static void check_dir(struct run *r, const char *sub)
{
	struct arena a = { 0 };
	const char *path = arena_printf(&a, "%s/%s", r->dir, sub);
	DIR *d = opendir(path);
	struct dirent *e;

	if (d == NULL) {
		fprintf(stderr, "cannot read %s\n", path);
		exit(2);
	}
	while ((e = readdir(d)) != NULL) {
		sv n = sv_c(e->d_name);

		if (sv_ends(n, SV(".json")) && !sv_ends(n, SV(".entities.json")))
			check_case(r, arena_printf(&a, "%s/%s", sub, e->d_name));
	}
	closedir(d);
	arena_free(&a);
}

int main(int argc, char **argv)
{
	static const char *const subs[] = { "tests/decimal", "tests/ip", "tests/multi",
		"tests/example_use_cases", "corpus-tests" };
	struct run r = { 0 };
	size_t i;

	if (argc != 2) {
		fprintf(stderr, "usage: cedar_test FOLDER\n");
		return 2;
	}
	r.dir = argv[1];
	for (i = 0; i < sizeof(subs) / sizeof(subs[0]); i++)
		check_dir(&r, subs[i]);
	printf("%zu cases, %zu requests, %zu differences\n", r.cases, r.requests, r.failed);
	return r.failed == 0 && r.cases > 150 ? 0 : 1;
}
