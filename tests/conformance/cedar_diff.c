/* One side of the differential test (cedar_diff.mjs): reads a case a line on standard input,
 * writes our answers a line on standard output. A case: {schema, schema_json?, policies,
 * policies_json?, entities, requests: [{principal, action, resource, context}]}. The *_json
 * members are the other implementation's translations; everything must come out the same from
 * them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cedar/jtree.h"
#include "cedar/json.h"
#include "cedar/parse.h"
#include "cedar/validate.h"

#include "base/ban.h"

struct one {
	struct cedar_syms *t;
	struct arena a;
	sv text;
	const struct jnode *j;
	struct cedar_eval ev;
	struct buf out;
};

static sv raw(const struct one *o, const struct jnode *j)
{
	return sv_sub(o->text, j->off, j->len);
}

static void put_ids(struct buf *b, const struct cedar_policies *ps, const uint32_t *v, size_t n)
{
	size_t i;

	buf_put_byte(b, '[');
	for (i = 0; i < n; i++) {
		if (i > 0)
			buf_put_byte(b, ',');
		buf_put_json(b, cedar_sv(cedar_policies_get(ps, v[i])->id));
	}
	buf_put_byte(b, ']');
}

static void answer(struct one *o, const struct cedar_policies *ps, const struct cedar_schema *s,
    const struct cedar_entities *es, bool conform, const struct jnode *j)
{
	struct cedar_request rq = { .entities = es };
	struct cedar_answer ans;
	struct box_err err = { 0 };
	uint32_t erring[256];
	size_t i;

	cedar_eval_reset(&o->ev);
	if (cedar_json_request(o->t, cedar_eval_arena(&o->ev), raw(o, j), s, &rq, &err) < 0) {
		buf_put_sv(&o->out, SV("{\"bad\":"));
		buf_put_json(&o->out, sv_c(err.msg));
		buf_put_byte(&o->out, '}');
		return;
	}
	conform = conform && s != NULL && cedar_request_conforms(s, &rq, &err) == 0;
	if (ps == NULL || cedar_authorize(ps, &o->ev, &rq, &ans, &err) < 0) {
		buf_put_sv(&o->out, SV("{}"));
		return;
	}
	buf_putf(&o->out, "{\"conform\":%s,\"why\":", conform ? "true" : "false");
	buf_put_json(&o->out, sv_c(err.msg));
	buf_putf(&o->out, ",\"decision\":\"%s\",\"reason\":", ans.allow ? "allow" : "deny");
	put_ids(&o->out, ps, ans.reason, ans.n_reason);
	for (i = 0; i < ans.n_error && i < 256; i++)
		erring[i] = ans.error[i].policy;
	buf_put_sv(&o->out, SV(",\"errors\":"));
	put_ids(&o->out, ps, erring, i);
	buf_put_byte(&o->out, '}');
}

static struct cedar_policies *policies(
    struct one *o, bool json, struct cedar_source *src, struct cedar_diags *ds)
{
	const struct jnode *j = jtree_get(o->j, json ? SV("policies_json") : SV("policies"));
	struct cedar_json_set set;

	if (!json)
		return cedar_parse(o->t, &o->a, j->s, NULL, src, ds) < 0
		           ? NULL
		           : cedar_policies_of(o->t, src, NULL, ds);
	if (cedar_json_policies(o->t, &o->a, raw(o, j), &set, ds) < 0)
		return NULL;
	*src = set.src;
	return cedar_policies_new(o->t, set.link, set.n_link, NULL, ds);
}

/* Our own translations, read again, must be read without complaint. */
static bool again(struct one *o, const struct cedar_source *src)
{
	struct cedar_diags ds = cedar_diags_in(&o->a);
	struct buf b = buf_with(1 << 20);
	struct cedar_source text;
	struct cedar_json_set set;
	size_t i;
	bool good;

	for (i = 0; i < src->n_policy; i++)
		cedar_put_policy(&b, &src->policy[i], i % 2 == 1, NULL);
	good = cedar_parse(o->t, &o->a, buf_sv(&b), NULL, &text, &ds) == 0 &&
	       text.n_policy == src->n_policy;
	if (!good)
		fprintf(stderr, "text again: %s", buf_cstr(&b));
	buf_clear(&b);
	cedar_put_source_json(&b, src, NULL);
	good = good && cedar_json_policies(o->t, &o->a, buf_sv(&b), &set, &ds) == 0;
	if (ds.n != 0)
		fprintf(stderr, SV_FMT "\n", SV_ARG(ds.d[0].message));
	buf_fini(&b);
	return good;
}

static void run(struct one *o, bool json)
{
	const struct jnode *sj = jtree_get(o->j, json ? SV("schema_json") : SV("schema"));
	const struct jnode *ej = jtree_get(o->j, SV("entities")),
	                   *reqs = jtree_get(o->j, SV("requests"));
	struct cedar_diags ds = cedar_diags_in(&o->a), vds = cedar_diags_in(&o->a);
	struct cedar_schema *s =
	    cedar_schema_load(o->t, &o->a, json ? raw(o, sj) : sj->s, json, &ds);
	struct cedar_source src = { 0 };
	struct cedar_policies *ps = policies(o, json, &src, &ds);
	struct cedar_entities es = cedar_entities_in(&o->a, s != NULL ? &s->actions : NULL);
	struct box_err err = { 0 };
	bool conform = s != NULL, good, valid = false;
	size_t i;

	good = cedar_json_entities(o->t, raw(o, ej), s, &es, &err) == 0;
	for (i = 0; conform && i < es.n; i++)
		conform = cedar_entity_conforms(s, &es.e[i], &err) == 0;
	if (s != NULL && ps != NULL)
		valid = cedar_validate_source(s, &src, &vds) == 0;
	buf_putf(&o->out,
	    "{\"schema\":%s,\"policies\":%s,\"valid\":%s,\"entities\":%s,\"again\":%s,\"why\":[",
	    s != NULL ? "true" : "false", ps != NULL ? "true" : "false", valid ? "true" : "false",
	    good ? "true" : "false", ps == NULL || again(o, &src) ? "true" : "false");
	for (i = 0; i < ds.n; i++) {
		buf_put_json(&o->out, ds.d[i].message);
		buf_put_byte(&o->out, ',');
	}
	for (i = 0; i < vds.n; i++) {
		buf_put_json(&o->out, vds.d[i].message);
		buf_put_byte(&o->out, ',');
	}
	buf_put_json(&o->out, sv_c(err.msg));
	buf_put_sv(&o->out, SV("],\"answers\":["));
	for (i = 0; good && i < reqs->n; i++) {
		if (i > 0)
			buf_put_byte(&o->out, ',');
		answer(o, ps, s, &es, conform, reqs->item[i]);
	}
	buf_put_sv(&o->out, SV("]}"));
	cedar_policies_free(ps);
}

int main(void)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		struct one o = { .out = buf_with((size_t)64 << 20), .text = { line, (size_t)n } };
		struct box_err err = { 0 };

		o.t = cedar_syms_new(0);
		o.j = jtree_parse(&o.a, o.text, &err);
		if (o.j == NULL) {
			fprintf(stderr, "case: %s\n", err.msg);
			return 2;
		}
		buf_put_byte(&o.out, '[');
		run(&o, false);
		if (jtree_get(o.j, SV("schema_json")) != NULL &&
		    jtree_get(o.j, SV("policies_json")) != NULL) {
			buf_put_byte(&o.out, ',');
			run(&o, true);
		}
		buf_put_byte(&o.out, ']');
		printf("%s\n", buf_cstr(&o.out));
		fflush(stdout);
		cedar_eval_fini(&o.ev);
		buf_fini(&o.out);
		arena_free(&o.a);
		cedar_syms_free(o.t);
	}
	free(line);
	return 0;
}
