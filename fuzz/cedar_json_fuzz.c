/* Values, entities, requests and policies in JSON, without a schema and with one (whose types allow
 * shorter forms): a value that is read is written and read again as the same; what conforms to the
 * schema is decided; policies are printed as text that parses. */
#include <stdlib.h>

#include "cedar/json.h"
#include "cedar/parse.h"
#include "cedar/validate.h"

#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())

static const char schema_text[] = "entity U in [G] { n: Long, o?: U, s: Set<String>, r: { a: Bool, "
                                  "\"x y\"?: decimal } } tags Set<Long>; entity G;"
                                  "entity E enum [\"a\", \"b\"]; action v in [g] appliesTo { "
                                  "principal: [U, E], resource: G, context: { a: Long, e: E, d: "
                                  "decimal, i: ipaddr, t: datetime, p: duration } }; action g;";
static const char policy_text[] =
    "permit (principal, action, resource) when { context.a < 3 || context.i.isIpv4() };"
    "forbid (principal is U, action, resource) when { principal.n > 1 && principal.hasTag(\"k\") "
    "&& "
    "principal.getTag(\"k\").contains(1) };"
    "forbid (principal, action, resource in G::\"g\") when { principal has r.a };";

static void values(struct cedar_syms *t, struct arena *a, sv text)
{
	AUTO_BUF b = buf_with(1 << 20);
	struct cedar_value v, w;
	struct box_err err;

	if (cedar_json_value(t, a, text, NULL, &v, &err) < 0)
		return;
	cedar_put_value_json(&b, &v);
	if (!buf_ok(&b))
		return;
	CHECK(cedar_json_value(t, a, buf_sv(&b), NULL, &w, &err) == 0);
	CHECK(cedar_value_eq(&v, &w) && cedar_value_hash(&v) == cedar_value_hash(&w));
	CHECK(cedar_value_cmp(&v, &w) == 0);
}

static void policies(struct cedar_syms *t, struct arena *a, const struct cedar_schema *s, sv text)
{
	struct cedar_diags ds = cedar_diags_in(a);
	AUTO_BUF b = buf_with(1 << 20);
	struct cedar_json_set set;
	struct cedar_source again;

	if (cedar_json_policies(t, a, text, &set, &ds) < 0) {
		CHECK(ds.errors != 0);
		return;
	}
	cedar_policies_free(cedar_policies_new(t, set.link, set.n_link, NULL, &ds));
	(void)cedar_validate(s, set.link, set.n_link, &ds); /* any verdict will do */
	for (size_t i = 0; i < set.src.n_policy; i++)
		cedar_put_policy(&b, &set.src.policy[i], false, NULL);
	ds = cedar_diags_in(a);
	if (buf_ok(&b) && text.n < 400)
		CHECK(cedar_parse(t, a, buf_sv(&b), NULL, &again, &ds) == 0);
}

/* Entities, then a request over them. */
static void typed(struct cedar_syms *t, struct arena *a, const struct cedar_schema *s, sv text)
{
	struct cedar_diags ds = cedar_diags_in(a);
	struct cedar_entities es = cedar_entities_in(a, &s->actions);
	struct cedar_request rq = { 0 };
	struct cedar_eval ev = { 0 };
	struct cedar_answer ans;
	struct cedar_policies *ps;
	struct cedar_source src;
	struct box_err err;

	if (cedar_json_entities(t, text, s, &es, &err) == 0)
		for (size_t i = 0; i < es.n; i++)
			(void)cedar_entity_conforms(s, &es.e[i], &err); /* a refusal is as good */
	else
		es = cedar_entities_in(a, &s->actions);
	if (cedar_json_request(t, a, text, s, &rq, &err) == 0) {
		CHECK(cedar_parse(t, a, sv_c(policy_text), NULL, &src, &ds) == 0);
		ps = cedar_policies_of(t, &src, NULL, &ds);
		rq.entities = es.closed ? &es : &s->actions;
		/* The policies are valid, so a request that conforms can only lack entities. */
		if (ps != NULL && cedar_authorize(ps, &ev, &rq, &ans, &err) == 0 &&
		    cedar_request_conforms(s, &rq, &err) == 0)
			for (size_t i = 0; i < ans.n_error; i++)
				CHECK(sv_find_sv(ans.error[i].message, SV("does not")) >= 0);
		cedar_eval_fini(&ev);
		cedar_policies_free(ps);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	sv text = { (const char *)d, n };
	struct arena a = { .limit = (size_t)64 << 20 };
	struct cedar_diags ds = cedar_diags_in(&a);
	struct cedar_syms *t = cedar_syms_new((size_t)64 << 20);
	struct cedar_entities es = cedar_entities_in(&a, NULL);
	struct cedar_schema *s = cedar_schema_load(t, &a, sv_c(schema_text), false, &ds);
	struct box_err err;

	CHECK(s != NULL);
	values(t, &a, text);
	(void)cedar_json_entities(t, text, NULL, &es, &err); /* a refusal is as good */
	policies(t, &a, s, text);
	typed(t, &a, s, text);
	arena_free(&a);
	cedar_syms_free(t);
	return 0;
}
