/* The parser's state, shared by parse.c (sources), parse_scope.c, parse_expr.c, parse_rel.c and
 * parse_call.c. */
#pragma once

#include "cedar/parse.h"

struct parser {
	struct cedar_syms *t;
	struct arena *a;
	struct cedar_diags *ds;
	const struct cedar_parse_opts *o;
	struct cedar_lex lex;
	struct cedar_tok cur, ahead;
	uint32_t end; /* offset behind the last token taken */
	unsigned depth;
	size_t nodes;
	bool dead;                 /* a syntax error: unwind to the end of this policy */
	bool slots;                /* ?principal, ?resource are allowed here */
	struct cedar_expr *poison; /* stands for an expression whose error is already told */
	struct cedar_policy *pol;  /* being parsed, or NULL */
};

#define EXPECT_EXPR "expression"

void p_advance(struct parser *p);
/* Is the current token this operator or word? */
bool p_is(const struct parser *p, const char *text);
bool p_ahead_is(const struct parser *p, const char *text);
/* Take it if it is. */
bool p_eat(struct parser *p, const char *text);
/* Take it, or report it and die. */
bool p_need(struct parser *p, const char *text);
/* Report the current token and die; returns NULL for convenience. */
void *p_unexpected(struct parser *p, const char *expected);
/* Report at a span; parsing goes on. */
void p_error(struct parser *p, const struct cedar_span *at, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* No memory or a limit: report and die. */
void *p_fail(struct parser *p, const char *why);
/* The span from a token to the last one taken. */
struct cedar_span p_since(const struct parser *p, struct cedar_span from);
sv p_text(const struct parser *p, struct cedar_span at);
/* A bigger vector when *cap is reached; NULL after p_fail. */
void *p_room(struct parser *p, void *v, size_t n, size_t *cap, size_t size);
/* ident { :: ident }, current token is an identifier; "A::B" interned, NULL after an error. */
cedar_sym p_name(struct parser *p);
/* The raw body of a block; the current token is what stands before the `{`, which is ahead. */
bool p_block(struct parser *p, sv *body, struct cedar_span *at);

/* Nodes that span from a token to the last one taken; NULL when dead, or when an argument is
 * NULL. */
struct cedar_expr *p_node(struct parser *p, enum cedar_expr_kind k, struct cedar_span from,
    struct cedar_expr *const *arg, size_t n);
struct cedar_expr *p_node1(
    struct parser *p, enum cedar_expr_kind k, struct cedar_span from, struct cedar_expr *a);
struct cedar_expr *p_node2(struct parser *p, enum cedar_expr_kind k, struct cedar_span from,
    struct cedar_expr *a, struct cedar_expr *b);
/* Expressions with commas between them, up to `close` (taken). -1 when dead. */
int p_list(struct parser *p, const char *close, struct cedar_expr ***out, size_t *n);
/* name(args) and recv.name(args): the current token is the parenthesis. */
struct cedar_expr *p_function(struct parser *p, struct cedar_span from, cedar_sym name);
struct cedar_expr *p_method(struct parser *p, struct cedar_span from, struct cedar_expr *recv,
    cedar_sym name, struct cedar_span name_at);

/* The elements between the parentheses of a head, the closing one taken. false when dead. */
bool p_scope(struct parser *p, struct cedar_policy *pol);
/* A relation, a sum, the name of an attribute; NULL only when dead. */
struct cedar_expr *p_rel(struct parser *p);
struct cedar_expr *p_add(struct parser *p);
cedar_sym p_attr_name(struct parser *p);
/* NULL only when dead. */
struct cedar_expr *p_expr(struct parser *p);
struct cedar_expr *p_leaf(struct parser *p);
