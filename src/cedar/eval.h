/* Compile and evaluate. A policy set becomes one flat program (a code array over a stack of
 * values) and an index; it is immutable, and any number of threads may decide on it at once,
 * each with its own struct cedar_eval.
 *
 * A request meets only the policies that can match it: they are found by hash from action,
 * principal and resource scope and, where a policy requires it before anything can go wrong,
 * from `context.a.b == literal`. The answer is the same as that of evaluating every policy,
 * errors included.
 *
 * After the first few decisions a struct cedar_eval allocates no more. Source: spec 3.2, 3.4. */
#pragma once

#include "cedar/ast.h"
#include "cedar/entity.h"

/* ---- requests ------------------------------------------------------------------------------ */

/* Value of a foreign leaf. 0 with *out, or -1 with *err: then the policy errs. Called at most
 * once for each evaluation that reaches the leaf. */
typedef int (*cedar_leaf_fn)(
    void *ctx, const struct cedar_leaf *leaf, struct cedar_value *out, struct box_err *err);

struct cedar_request {
	struct cedar_uid principal, action, resource;
	const struct cedar_record *context;    /* NULL = {} */
	const struct cedar_entities *entities; /* NULL = empty */
	cedar_leaf_fn leaf;                    /* NULL when the policies have none */
	void *leaf_ctx;
	/* For a set built with gate_leaves: the ordinals of the gating leaves that are true for
	 * this request. */
	const uint32_t *true_leaf;
	size_t n_true_leaf;
};

/* Scratch of one thread. Zero-initialise, set limit (bytes; 0 = CEDAR_EVAL_LIMIT), finish with
 * cedar_eval_fini. */
struct cedar_eval {
	size_t limit;
	struct cedar_eval_priv *priv;
};
#define CEDAR_EVAL_LIMIT ((size_t)16 << 20)
void cedar_eval_fini(struct cedar_eval *ev);
/* An arena that is emptied by cedar_eval_reset and keeps its memory: for the strings and records
 * of the next request. NULL without memory. */
struct arena *cedar_eval_arena(struct cedar_eval *ev);
/* Forget the request and the answer before; called by the host before it builds the next
 * request. */
void cedar_eval_reset(struct cedar_eval *ev);

/* ---- policy sets --------------------------------------------------------------------------- */

struct cedar_set_opts {
	/* The host promises that a leaf never fails: then what stands behind it may still be
	 * used for the index. */
	bool leaves_cannot_fail;
	/* A policy with a leaf as a conjunct (`when temporal { … }`) that is reached before
	 * anything can err is only met when its ordinal is in true_leaf of the request. Needs
	 * leaves_cannot_fail and ordinals unique over the set. */
	bool gate_leaves;
};

/* One policy to compile: a static one, or a template with the values of its slots. */
struct cedar_link {
	const struct cedar_policy *policy;
	cedar_sym id; /* NULL = policy->id */
	/* Values of ?principal, ?resource; type NULL when not given. */
	struct cedar_uid slot[2];
};

struct cedar_policies;
/* Compile n policies; their trees must live as long as the set. Refuses (in ds, with the place):
 * an id used twice, a slot without a value or a value without a slot, macro calls, provider
 * calls, parameters, unknown methods. NULL then or without memory (ds has an error in any case). */
struct cedar_policies *cedar_policies_new(struct cedar_syms *t, const struct cedar_link *link,
    size_t n, const struct cedar_set_opts *o, struct cedar_diags *ds);
/* The same for the static policies of a source (templates are left out). */
struct cedar_policies *cedar_policies_of(struct cedar_syms *t, const struct cedar_source *src,
    const struct cedar_set_opts *o, struct cedar_diags *ds);
void cedar_policies_free(struct cedar_policies *ps);
size_t cedar_policies_count(const struct cedar_policies *ps);
/* What was given for policy i (0-based, in the order given); id is set. */
const struct cedar_link *cedar_policies_get(const struct cedar_policies *ps, size_t i);
/* Does a policy of the set wait for this leaf (gate_leaves)? Leaves for which this is false are
 * asked by callback. */
bool cedar_policies_is_gate(const struct cedar_policies *ps, uint32_t ordinal);

/* ---- decisions ----------------------------------------------------------------------------- */

struct cedar_policy_error {
	uint32_t policy; /* position in the set */
	sv message;      /* Cedar's text, without "while evaluating policy" */
};

struct cedar_answer {
	bool allow;
	const uint32_t *reason; /* determining policies: positions, rising */
	size_t n_reason;
	const struct cedar_policy_error *error; /* policies skipped because they erred, rising */
	size_t n_error;
	size_t met; /* how many policies were evaluated */
};

/* Decide. *out borrows from ev until its next use. -1 with *err only when the decision could not
 * be made (no memory, the limit of ev): the caller must then deny. */
int cedar_authorize(const struct cedar_policies *ps, struct cedar_eval *ev,
    const struct cedar_request *rq, struct cedar_answer *out, struct box_err *err);
/* The policies that the index would meet for a request: for hosts that prepare leaves. Same
 * lifetime as an answer. */
int cedar_candidates(const struct cedar_policies *ps, struct cedar_eval *ev,
    const struct cedar_request *rq, const uint32_t **policy, size_t *n, struct box_err *err);

/* Evaluate one expression by itself. Compiles each time: for tools and tests. 0, or -1 with the
 * text of Cedar in err. *out borrows from ev, rq and the tree. slot may be NULL. */
int cedar_eval_expr(struct cedar_syms *t, struct cedar_eval *ev, const struct cedar_expr *e,
    const struct cedar_request *rq, const struct cedar_uid *slot, struct cedar_value *out,
    struct box_err *err);
