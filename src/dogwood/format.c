/* See format.h. Hostile text: the parsers and the layout have limits of their own. */
#include "dogwood/format.h"

#include "cedar/format.h"
#include "dogwood/diags.h"
#include "dogwood/macro.h"
#include "dogwood/tparse.h"

#include "base/ban.h"

#define ARENA_LIMIT ((size_t)1 << 30)
#define SYMS_LIMIT  ((size_t)256 << 20)

static int read_leaf(void *ctx, struct cedar_expr **node)
{
	const struct dw_tparse *tp = ctx;
	struct dw_body body;

	if ((*node)->kind == CEDAR_E_LEAF)
		(void)dw_tparse(tp, (*node)->leaf->text, (*node)->leaf->at, &body);
	return 0;
}

/* Everything that the outer grammar leaves as raw text. */
static void read_blocks(
    struct cedar_syms *t, struct arena *a, const struct cedar_source *src, struct cedar_diags *ds)
{
	struct dw_tparse tp = { t, a, ds, false };
	AUTO_DW_MACROS m = { .t = t, .a = a, .ds = ds };

	for (size_t i = 0; i < src->n_policy; i++) {
		for (uint32_t k = 0; k < src->policy[i].n_cond; k++)
			if (src->policy[i].cond[k].e != NULL)
				(void)cedar_expr_walk(&src->policy[i].cond[k].e, read_leaf, &tp);
	}
	(void)dw_macros_add(&m, src, false); /* what is wrong is in ds */
}

int dw_format(sv name, sv text, unsigned width, struct buf *out, struct dw_diags *d)
{
	AUTO_ARENA a = { .limit = ARENA_LIMIT };
	struct cedar_diags ds = cedar_diags_in(&a);
	struct cedar_syms *t = cedar_syms_new(SYMS_LIMIT);
	struct cedar_parse_opts o = { .dogwood = true };
	struct dw_source from = { name, text };
	struct cedar_source src;

	if (t == NULL) {
		(void)cedar_diag_add(&ds, CEDAR_ERROR, "limit", NULL, NULL, "out of memory");
	} else {
		(void)cedar_parse(t, &a, text, &o, &src, &ds);
		read_blocks(t, &a, &src, &ds);
		if (ds.errors == 0)
			(void)cedar_layout(&a, text, width, out, &ds);
	}
	cedar_diags_sort(&ds);
	dw_diags_take(d, &ds, &from, NULL);
	cedar_syms_free(t);
	return ds.errors == 0 ? 0 : -1;
}
