/* Values, entities and policies in JSON: a value that is read is written and read again as the
 * same. */
#include <stdlib.h>

#include "cedar/json.h"

#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	sv text = { (const char *)d, n };
	struct arena a = { .limit = (size_t)64 << 20 };
	struct cedar_diags ds = cedar_diags_in(&a);
	struct cedar_syms *t = cedar_syms_new((size_t)64 << 20);
	struct cedar_entities es = cedar_entities_in(&a, NULL);
	AUTO_BUF b = buf_with(1 << 20);
	struct cedar_value v, w;
	struct cedar_json_set set;
	struct box_err err;

	if (cedar_json_value(t, &a, text, NULL, &v, &err) == 0) {
		cedar_put_value_json(&b, &v);
		if (buf_ok(&b)) {
			CHECK(cedar_json_value(t, &a, buf_sv(&b), NULL, &w, &err) == 0);
			CHECK(
			    cedar_value_eq(&v, &w) && cedar_value_hash(&v) == cedar_value_hash(&w));
			CHECK(cedar_value_cmp(&v, &w) == 0);
		}
	}
	(void)cedar_json_entities(t, text, NULL, &es, &err); /* a refusal is as good */
	if (cedar_json_policies(t, &a, text, &set, &ds) == 0)
		cedar_policies_free(cedar_policies_new(t, set.link, set.n_link, NULL, &ds));
	arena_free(&a);
	cedar_syms_free(t);
	return 0;
}
