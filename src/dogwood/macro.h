/* macro: `def cedar` and `def temporal` (dogwood-language.md 8). Expansion is purely structural:
 * the result is checked as if it had been written by hand. Bodies may not call macros, so expansion
 * ends; its size is bounded by DW_MACRO_NODES, since an argument used twice in nested calls
 * doubles. */
#pragma once

#include "cedar/parse.h"
#include "cedar/smap.h"
#include "dogwood/cond.h"

#define DW_MACRO_NODES ((size_t)1 << 18) /* nodes that the expansions of one rule may make */

struct dw_macro {
	sv name;
	bool temporal;
	const cedar_sym *param; /* without the ? */
	uint32_t nparam;
	bool from_library;
	bool faulty; /* its definition has an error, which is told; calls of it are not */
	struct cedar_expr *expr; /* def cedar */
	struct dw_body body;     /* def temporal */
};

struct dw_macros {
	struct cedar_syms *t;
	struct arena *a;
	struct cedar_diags *ds;
	struct dw_macro *v;
	uint32_t n, cap;
	struct smap index; /* name: position in v, plus 1 */
	size_t nodes;      /* made for the present rule */
};
void dw_macros_fini(struct dw_macros *m);
#define AUTO_DW_MACROS __attribute__((cleanup(dw_macros_fini))) struct dw_macros

/* The default library (8.1). */
extern const char dw_default_macros[];

/* Parse and add the definitions of a source. A definition of the policy source wins over one of the
 * library; twice in one source is an error. false after an error (in ds); the others are added all
 * the same. */
bool dw_macros_add(struct dw_macros *m, const struct cedar_source *src, bool library);
/* Replace the macro calls below *e. false after an error. */
bool dw_macros_cedar(struct dw_macros *m, struct cedar_expr **e);
/* A tree of c with all calls replaced. NULL after an error: unknown macro, wrong number or kind of
 * arguments, stray sigils. */
struct dw_cond *dw_macros_temporal(struct dw_macros *m, const struct dw_cond *c);
