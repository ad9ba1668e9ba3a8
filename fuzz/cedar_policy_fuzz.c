/* Policy sources in both grammars (by the parity of the size, so that any policy file is a seed):
 * what parses is printed and parses again to the same text, from its JSON too; formatting it twice
 * is formatting it once. */
#include <stdlib.h>

#include "cedar/eval.h"
#include "cedar/format.h"
#include "cedar/json.h"
#include "cedar/parse.h"

#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())

static size_t print_all(struct buf *b, const struct cedar_source *s)
{
	size_t i;

	for (i = 0; i < s->n_policy; i++)
		cedar_put_policy(b, &s->policy[i], false, NULL);
	return s->n_policy;
}

/* The policies of Cedar's own grammar, written as JSON and read again, are written the same. */
static void through_json(struct cedar_syms *t, struct arena *a, const struct cedar_source *s)
{
	struct cedar_diags ds = cedar_diags_in(a);
	AUTO_BUF j = buf_with(1 << 20), k = buf_with(1 << 20);
	struct cedar_json_set set;

	cedar_put_source_json(&j, s, NULL);
	if (!buf_ok(&j))
		return;
	CHECK(cedar_json_policies(t, a, buf_sv(&j), &set, &ds) == 0);
	cedar_put_source_json(&k, &set.src, NULL);
	CHECK(sv_eq(buf_sv(&j), buf_sv(&k)));
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	struct cedar_parse_opts o = { .dogwood = n % 2 != 0 };
	struct arena a = { .limit = (size_t)64 << 20 };
	struct cedar_diags ds = cedar_diags_in(&a);
	struct cedar_syms *t = cedar_syms_new((size_t)64 << 20);
	AUTO_BUF once = buf_with(1 << 20), twice = buf_with(1 << 20);
	struct cedar_source s, again;

	if (n != 0 && cedar_parse(t, &a, (sv){ (const char *)d, n }, &o, &s, &ds) == 0) {
		cedar_policies_free(cedar_policies_of(t, &s, NULL, &ds));
		ds = cedar_diags_in(&a);
		print_all(&once, &s);
		/* Parentheses that printing adds may pass the limit on depth. */
		if (buf_ok(&once) && n < 200) {
			CHECK(cedar_parse(t, &a, buf_sv(&once), &o, &again, &ds) == 0);
			CHECK(print_all(&twice, &again) == s.n_policy);
			CHECK(sv_eq(buf_sv(&once), buf_sv(&twice)));
			if (!o.dogwood)
				through_json(t, &a, &s);
		}
		buf_clear(&once);
		buf_clear(&twice);
		if (cedar_format(t, &a, s.text, &o, 60, &once, &ds) == 0) {
			CHECK(cedar_format(t, &a, buf_sv(&once), &o, 60, &twice, &ds) == 0);
			CHECK(sv_eq(buf_sv(&once), buf_sv(&twice)));
		} else {
			/* For want of room; or, with raw blocks (temporal conditions, definitions),
			 * because their text is no Dogwood at all: the formatter then leaves the
			 * file alone and says so. */
			CHECK(o.dogwood || sv_eq(sv_c(ds.d[ds.n - 1].code), SV("limit")));
		}
	} else if (n != 0) {
		CHECK(ds.errors != 0);
		cedar_diags_render(&once, "f", (sv){ (const char *)d, n }, &ds);
	}
	arena_free(&a);
	cedar_syms_free(t);
	return 0;
}
