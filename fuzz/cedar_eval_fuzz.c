/* A policy source against a fixed schema and request: validated, compiled, decided. A policy
 * that validates strictly can err only by overflow or by an entity that is not in the store. */
#include <stdlib.h>
#include <string.h>

#include "cedar/json.h"
#include "cedar/parse.h"
#include "cedar/validate.h"

#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())

static const char schema_text[] =
    "entity U in [G] { n: Long, o?: U, s: Set<String> } tags Long; entity G; entity D { u: U };"
    "action v, w appliesTo { principal: U, resource: D, context: { a: Long, b?: String, r: { d: "
    "decimal, i: "
    "ipaddr, t: datetime, p: duration } } };";
static const char request_text[] = "{\"principal\": \"U::\\\"a\\\"\", \"action\": "
                                   "\"Action::\\\"v\\\"\", \"resource\": \"D::\\\"d\\\"\", "
                                   "\"context\": {\"a\": 3, \"r\": {\"d\": \"1.5\", \"i\": "
                                   "\"10.0.0.1\", \"t\": \"2024-01-01\", \"p\": \"1h\"}}}";
static const char entity_text[] = "[{\"uid\": {\"type\": \"U\", \"id\": \"a\"}, \"attrs\": {\"n\": "
                                  "7, \"s\": [\"x\"]}, \"parents\": [{\"type\": "
                                  "\"G\", \"id\": \"g\"}], \"tags\": {\"k\": 1}}]";

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	struct arena a = { .limit = (size_t)64 << 20 };
	struct cedar_diags ds = cedar_diags_in(&a);
	struct cedar_syms *t = cedar_syms_new((size_t)64 << 20);
	struct cedar_schema *s = cedar_schema_load(t, &a, sv_c(schema_text), false, &ds);
	struct cedar_entities es = cedar_entities_in(&a, &s->actions);
	struct cedar_request rq = { 0 };
	struct cedar_policies *ps = NULL;
	struct cedar_eval ev = { 0 };
	struct cedar_answer ans;
	struct cedar_source src;
	struct box_err err;
	bool valid;
	size_t i;

	CHECK(cedar_json_entities(t, sv_c(entity_text), s, &es, &err) == 0);
	CHECK(cedar_json_request(t, &a, sv_c(request_text), s, &rq, &err) == 0);
	rq.entities = &es;
	if (cedar_parse(t, &a, (sv){ (const char *)d, n }, NULL, &src, &ds) == 0) {
		valid = cedar_validate_source(s, &src, &ds) == 0;
		ps = cedar_policies_of(t, &src, NULL, &ds);
		if (ps != NULL && cedar_authorize(ps, &ev, &rq, &ans, &err) == 0)
			for (i = 0; valid && i < ans.n_error; i++)
				CHECK(sv_find_sv(ans.error[i].message, SV("overflow")) >= 0 ||
				      sv_find_sv(ans.error[i].message, SV("does not exist")) >= 0);
	}
	cedar_policies_free(ps);
	cedar_eval_fini(&ev);
	arena_free(&a);
	cedar_syms_free(t);
	return 0;
}
