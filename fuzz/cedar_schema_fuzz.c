/* Schemas in both syntaxes (JSON begins with a brace): what is read is written in both and means
 * the same there. */
#include <stdlib.h>

#include "cedar/schema.h"

#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	struct arena a = { .limit = (size_t)64 << 20 };
	struct cedar_diags ds = cedar_diags_in(&a);
	struct cedar_syms *t = cedar_syms_new((size_t)64 << 20);
	bool json = n != 0 && d[0] == '{';
	AUTO_BUF b = buf_with(1 << 20);
	struct cedar_schema *s, *r;

	s = n != 0 ? cedar_schema_load(t, &a, (sv){ (const char *)d, n }, json, &ds) : NULL;
	if (s != NULL) {
		cedar_schema_put_json(&b, s->src);
		r = buf_ok(&b) ? cedar_schema_load(t, &a, buf_sv(&b), true, &ds) : s;
		CHECK(r != NULL && r->n_etype == s->n_etype && r->n_action == s->n_action);
		/* Not every JSON schema has a text: a type that is only an entity's may bear a
		 * common type's name. */
		buf_clear(&b);
		cedar_schema_put(&b, s->src);
		r = buf_ok(&b) ? cedar_schema_load(t, &a, buf_sv(&b), false, &ds) : s;
		CHECK(
		    json || (r != NULL && r->n_etype == s->n_etype && r->n_action == s->n_action));
	} else if (n != 0) {
		CHECK(ds.errors != 0);
	}
	arena_free(&a);
	cedar_syms_free(t);
	return 0;
}
