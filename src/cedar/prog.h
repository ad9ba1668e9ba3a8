/* The compiled form, shared by compile.c, index.c, vm.c and authz.c. Not for other folders.
 *
 * Code is an array of fixed instructions over a stack of values. Jumps go forwards only, so a
 * policy ends after at most as many steps as it has instructions. */
#pragma once

#include "cedar/eval.h"

enum cedar_op {
	OP_CONST,   /* push k[a] */
	OP_VAR,     /* push variable a */
	OP_LEAF,    /* push the value of leaf p[a] */
	OP_GET,     /* pop v; push v.p[a] */
	OP_HAS,     /* pop v; push v has p[a] */
	OP_HAS_GET, /* pop v; v has p[a]: push v.p[a], else push false and jump to b */
	OP_JFALSE,  /* top must be Bool; false: jump to b and keep it; else pop */
	OP_JTRUE,
	OP_JIF,  /* pop a Bool; false: jump to b */
	OP_JMP,  /* jump to b */
	OP_BOOL, /* top must be Bool */
	OP_NOT,
	OP_NEG,
	OP_EQ,
	OP_NE,
	OP_LT,
	OP_LE,
	OP_GT,
	OP_GE,
	OP_IN,
	OP_ADD,
	OP_SUB,
	OP_MUL,
	OP_CONTAINS,
	OP_CONTAINS_ALL,
	OP_CONTAINS_ANY,
	OP_IS_EMPTY,
	OP_GET_TAG,
	OP_HAS_TAG,
	OP_LIKE, /* pattern p[a] */
	OP_IS,   /* type p[a] */
	/* top must be an entity; of type p[a]: keep it, else replace by false and jump to b */
	OP_IS_IN,
	OP_SET,    /* pop n, push the set */
	OP_RECORD, /* pop n, push the record with keys p[a] (a vector) */
	OP_EXT,    /* extension function n with a arguments */
	OP_FAIL,   /* error with text p[a] (const char *) */
	OP_END     /* the result is on top */
};

struct cedar_insn {
	uint16_t op;
	uint16_t x; /* extension function */
	uint32_t a;
	uint32_t b; /* jump target, or a count */
};

struct cedar_prog {
	struct arena *a; /* constants made by folding, vectors of keys */
	struct cedar_insn *code;
	struct cedar_value *k;
	const void **p;
	size_t n_code, cap_code, n_k, cap_k, n_p, cap_p;
	uint32_t max_stack;
};

void cedar_prog_fini(struct cedar_prog *g);
/* Append code for e, ending in OP_END; *start is where it begins. Errors of the tree (macro
 * calls and the like) go to ds. */
int cedar_compile_expr(struct cedar_prog *g, const struct cedar_expr *e,
    const struct cedar_uid *slot, struct cedar_diags *ds, uint32_t *start);
/* The conjunction of the conditions of a policy. */
int cedar_compile_conds(struct cedar_prog *g, const struct cedar_policy *pol,
    const struct cedar_uid *slot, struct cedar_diags *ds, uint32_t *start);
/* The constant value of e, when it has one that no evaluation can change. */
bool cedar_fold(struct arena *a, const struct cedar_expr *e, struct cedar_value *out);

/* ---- running ------------------------------------------------------------------------------- */

struct cedar_vm {
	const struct cedar_prog *g;
	const struct cedar_request *rq;
	struct arena *a;           /* sets and records made on the way */
	struct cedar_value *stack; /* at least g->max_stack */
	struct box_err err;        /* why it failed */
	bool fatal;                /* no memory: not an error of the policy */
};

/* Run from start. 0 and *out, or -1 (an error of the policy, or fatal). */
int cedar_vm_run(struct cedar_vm *m, uint32_t start, struct cedar_value *out);

/* Functions of ext_call.c: v[0..n) are the arguments; 0, or -1 with err. */
int cedar_ext_call(struct arena *a, enum cedar_ext x, const struct cedar_value *v, size_t n,
    struct cedar_value *out, struct box_err *err);
/* Does the pattern match all of s? */
bool cedar_like(const struct cedar_pattern *p, sv s);

/* ---- sets ---------------------------------------------------------------------------------- */

#define NO_GATE UINT32_MAX

struct cedar_cpol {
	struct cedar_link link;
	struct cedar_scope scope[3]; /* slots replaced */
	uint32_t start;
	bool always; /* no conditions */
	uint32_t gate;
};

struct cedar_index;
struct cedar_policies {
	struct arena a;
	struct cedar_prog g;
	struct cedar_cpol *pol;
	size_t n;
	struct cedar_index *index;
};

/* Vectors and the like of an evaluation. */
struct cedar_eval_priv {
	struct arena request, scratch;
	struct cedar_value *stack;
	size_t n_stack;
	uint32_t *stamp; /* by policy: the round in which it became a candidate */
	size_t n_stamp;
	uint32_t round;
	uint32_t *cand, *permit, *forbid;
	size_t n_cand;
	size_t cap; /* of cand, permit, forbid */
	struct cedar_policy_error *error;
	size_t n_error, cap_error;
};

/* Make the index of a compiled set; 0, or -1 without memory. */
int cedar_index_build(struct cedar_policies *ps, const struct cedar_set_opts *o);
void cedar_index_free(struct cedar_index *x);
/* Candidates of a request into pv->cand (room for ps->n is there). */
void cedar_index_find(
    const struct cedar_policies *ps, const struct cedar_request *rq, struct cedar_eval_priv *pv);
bool cedar_index_is_gate(const struct cedar_index *x, uint32_t ordinal);
