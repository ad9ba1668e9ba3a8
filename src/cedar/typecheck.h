/* The typechecker, between validate.c (policies, environments) and typecheck.c (expressions).
 * Not for other folders. */
#pragma once

#include "cedar/schema.h"
#include "cedar/validate.h"

/* A capability: an optional attribute (or a tag) that is known to be there. Expressions compare
 * by form. A persistent list. */
struct tc_cap {
	const struct cedar_expr *e;
	cedar_sym attr; /* NULL: a tag */
	const struct cedar_expr *tag;
	const struct tc_cap *next;
};

/* Result for an expression: ok, its type (NULL when none could be found), what it proves when
 * true. */
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

/* Strict compatibility: the least type above both. NULL and *why (a sentence) when there is
 * none. */
const struct cedar_type *tc_join(
    struct arena *a, const struct cedar_type *x, const struct cedar_type *y, const char **why);
bool tc_subtype(const struct cedar_type *x, const struct cedar_type *y);
/* Equal as expressions, places and parentheses aside? */
bool tc_same_expr(const struct cedar_expr *x, const struct cedar_expr *y);

/* ---- shared by the files typecheck*.c ---------------------------------------------------- */

extern const struct cedar_type tc_ty_never, tc_ty_true, tc_ty_false, tc_ty_bool, tc_ty_long,
    tc_ty_string, tc_ty_decimal, tc_ty_ip, tc_ty_datetime, tc_ty_duration, tc_ty_any_entity;

/* What an operator expects: bits. */
enum tc_want {
	W_BOOL = 1,
	W_LONG = 2,
	W_STRING = 4,
	W_ENTITY = 8,
	W_RECORD = 16,
	W_SET = 32,
	W_SET_ENTITY = 64
};

/* Advice for a type that was not expected, or NULL. */
typedef const char *(*tc_help_fn)(const struct cedar_type *saw);
/* Where an entity (or record) was wanted. */
const char *tc_help_has(const struct cedar_type *saw);

/* The type of e, which must be one of want (bits); else reported, and of no type. */
struct tc_ans tc_expect(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e,
    unsigned want, tc_help_fn help);
/* "unexpected type: expected WANT but saw SAW" */
void tc_unexpected(struct tc *c, const struct cedar_span *at, const char *want,
    const struct cedar_type *saw, const char *hint);
/* The content of a buffer as text in c->a; frees the buffer. */
const char *tc_take(struct tc *c, struct buf *b);

/* Answers: right, wrong, right if also ok. */
struct tc_ans tc_good(const struct cedar_type *ty);
struct tc_ans tc_bad(const struct cedar_type *ty);
struct tc_ans tc_also(bool ok, struct tc_ans x);
struct tc_ans tc_out_of_room(struct tc *c);
struct tc_ans tc_negate(struct tc_ans x);

/* Capabilities: is it among them; an answer that proves one; those in both. */
bool tc_has_cap(struct tc *c, const struct tc_cap *k, const struct cedar_expr *e, cedar_sym attr,
    const struct cedar_expr *tag);
struct tc_ans tc_with_cap(struct tc *c, struct tc_ans x, const struct cedar_expr *e, cedar_sym attr,
    const struct cedar_expr *tag);
const struct tc_cap *tc_intersect(struct tc *c, const struct tc_cap *a, const struct tc_cap *b);

/* One function an operator (or a family of them). */
struct tc_ans tc_on_and(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_or(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_if(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_eq(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_less(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_get(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_has(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_tag(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_in(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_is(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_set(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_record(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_ext(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_contains(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_arith(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_neg(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_is_empty(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
struct tc_ans tc_on_like(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e);
