/* provider: information providers (dogwood-language.md 10): functions that the host computes, such
 * as `Scan::secrets(context.input.body).score`. They are declared in JSON with the types of their
 * arguments and results; a call becomes a foreign leaf of the compiled policy, whose value the host
 * gives when a decision comes to it.
 *
 * A call that fails, or whose answer is not of the declared type, makes the whole decision a fault
 * and denies (7.4): a forbid that could not be judged must not be skipped. */
#pragma once

#include "cedar/schema.h"
#include "cedar/smap.h"
#include "dogwood/decide.h"

#define DW_PROVIDER_JSON_MAX ((size_t)4 << 20)
#define DW_PROVIDER_DEPTH    16 /* of declared types, and of sets in arguments */
#define DW_PROVIDER_STEPS    32 /* methods behind one call */

struct dw_provider_sig {
	sv name; /* Ns::Fn, or a method's */
	const struct cedar_type *const *arg;
	size_t nargs;
	const struct cedar_type *out;
	const struct cedar_type *in;          /* a method: what it is called on; NULL: anything */
	const struct dw_provider_sig *method; /* a provider */
	size_t nmethods;
};

struct dw_providers {
	const struct dw_provider_sig *v;
	size_t n;
};

/* An argument as written: a literal, a path from the request, or a set of these. */
struct dw_provider_arg {
	enum { DW_PARG_LIT, DW_PARG_PATH, DW_PARG_SET } kind;
	struct dw_val lit;
	enum cedar_var root; /* PATH */
	const cedar_sym *path;
	const struct dw_provider_arg *item; /* SET */
	size_t n;                           /* of path or item */
};

struct dw_provider_step {
	const struct dw_provider_sig *sig;
	const struct dw_provider_arg *arg; /* sig->nargs of them */
};

/* A provider leaf: the call, then its methods. Hangs at cedar_leaf.host. */
struct dw_provider_leaf {
	struct dw_provider_step step[DW_PROVIDER_STEPS];
	size_t nsteps;
	sv text; /* the call, also for messages and for `expand` */
	sv field;
	uint32_t id; /* the same for equal calls of a set: a decision asks once for each */
};

/* Declarations, JSON: {"availableProviders": {"Ns::Fn": {"argumentTypes": [T, …], "outputType": T,
 * "availableMethods": {"m": {…, "inputType": T}}, "implementation": ignored}}}. NULL after errors
 * (in ds, code "provider"). Names go to t, everything else to a. */
struct dw_providers *dw_providers_parse(
    struct cedar_syms *t, struct arena *a, sv text, struct cedar_diags *ds);

struct dw_provider_fold {
	struct dw_set *s;
	const struct dw_providers *declared;
	struct arena *a;
	struct cedar_diags *ds;
	size_t rule;
	uint32_t *count; /* provider leaves of the rule so far */
};
/* Number the provider leaves below *node: l->id. -1 without memory. */
int dw_provider_number(struct dw_set *s, struct smap *seen, struct cedar_expr **node);
/* Called on every node of a condition, children first: a call of a provider becomes a leaf, a
 * method on such a leaf becomes part of it. 0, or -1 after an error (in ds). */
int dw_provider_fold(struct dw_provider_fold *f, struct cedar_expr **node);

/* Answer one leaf: resolve its arguments against e, ask the host, check the answer. 0 with *out in
 * a, or -1 with *err. */
int dw_provider_ask(const struct dw_provider_leaf *l, const struct dw_event *e, dw_provider_fn fn,
    void *fn_arg, struct arena *a, struct dw_val *out, struct box_err *err);
