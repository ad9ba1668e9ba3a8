/* The typechecker, between validate.c (policies, environments) and typecheck.c (expressions). Not for other folders. */
#pragma once

#include "cedar/schema.h"
#include "cedar/validate.h"

/* A capability: an optional attribute (or a tag) that is known to be there. Expressions compare by form. A persistent list. */
struct tc_cap {
	const struct cedar_expr *e;
	cedar_sym attr; /* NULL: a tag */
	const struct cedar_expr *tag;
	const struct tc_cap *next;
};

/* Result for an expression: ok, its type (NULL when none could be found), what it proves when true. */
struct tc_ans {
	bool ok;
	const struct cedar_type *ty;
	const struct tc_cap *caps;
};

/* One request environment of one policy. */
struct tc {
	const struct cedar_schema *s;
	struct arena *a; /* emptied after each environment */
	struct cedar_diags *ds;
	size_t first; /* findings of this policy start here: equal ones are told once */
	sv policy;    /* id */
	const struct cedar_entity_type *principal, *resource;
	const struct cedar_action *action;
	const struct cedar_entity_type *slot[2]; /* NULL = any */
	size_t *budget;                          /* nodes that may still be visited */
	bool gave_up;                            /* out of budget or memory */
};

struct tc_ans tc_check(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
/* The same, and the type must be Bool. */
struct tc_ans tc_check_bool(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
/* Join the answers for the operands of `&&`; right was checked with what left proves. */
struct tc_ans tc_and(struct tc *c, struct tc_ans left, struct tc_ans right);
const struct tc_cap *tc_union(struct tc *c, const struct tc_cap *a, const struct tc_cap *b);

/* Report (once for each place and text). hint may be NULL. */
void tc_error(struct tc *c, const struct cedar_span *at, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Text of a type, expression, …; in c->a, "?" without room. */
const char *tc_type_text(struct tc *c, const struct cedar_type *ty);

/* Strict compatibility: the least type above both. NULL and *why (a sentence) when there is none. */
const struct cedar_type *tc_join(
    struct arena *a, const struct cedar_type *x, const struct cedar_type *y, const char **why);
bool tc_subtype(const struct cedar_type *x, const struct cedar_type *y);
/* Equal as expressions, places and parentheses aside? */
bool tc_same_expr(const struct cedar_expr *x, const struct cedar_expr *y);
