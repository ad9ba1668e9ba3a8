/* Between the files of the parser only: tparse.c (conditions), tparse_unit.c (what a conjunct
 * begins with), tparse_tok.c (tokens and small pieces). */
#pragma once

#include "dogwood/tparse.h"

struct ps {
	const struct dw_tparse *o;
	struct cedar_lex lex;
	struct cedar_tok tok;  /* the next token */
	struct cedar_tok prev; /* the one consumed last */
	unsigned depth;
	bool bad;
};

void dw_tp_next(struct ps *p);
bool dw_tp_is_punct(const struct ps *p, const char *s);
bool dw_tp_is_word(const struct ps *p, const char *s);
/* The token after the next one. */
struct cedar_tok dw_tp_peek(const struct ps *p);
bool dw_tp_peek_punct(const struct ps *p, const char *s);
/* Report the next token; false. */
bool dw_tp_unexpected(struct ps *p, const char *expected);
/* Report that there is no memory; false. */
bool dw_tp_no_room(struct ps *p);
/* One more level of nesting; false (reported) over the limit. */
bool dw_tp_deeper(struct ps *p);
/* Consume this punctuation. */
bool dw_tp_want(struct ps *p, const char *punct, const char *expected);
/* From a place to the end of what was consumed. */
struct cedar_span dw_tp_through(struct cedar_span from, const struct ps *p);
struct dw_cond *dw_tp_new_cond(struct ps *p, enum dw_cond_kind k, struct cedar_span at);
struct dw_term *dw_tp_new_term(struct ps *p, enum dw_term_kind k, struct cedar_span at);
/* Append to a vector that grows by doubling; *n counts. NULL without room. */
void *dw_tp_push(struct ps *p, void *vec, uint32_t *n, size_t size);
/* A name: identifier, or in macro bodies ?param or $binder. */
bool dw_tp_binder_name(struct ps *p, sv *out);
/* A string, decoded. */
bool dw_tp_string_tok(struct ps *p, sv *out);
/* An integer that fits. */
bool dw_tp_integer(struct ps *p, bool neg, int64_t *out);
/* integer unit */
bool dw_tp_window_value(struct ps *p, struct dw_window **out);
/* "within" and a window or ?param. */
bool dw_tp_within(struct ps *p, struct dw_window **out);
/* "(" ident ":" type ")" */
bool dw_tp_binder(struct ps *p, struct dw_binder *b);

/* What a conjunct may begin with: a term (then a comparison operator must follow), a condition, or
 * a macro call or parameter, which may be either. */
enum unit_is { UNIT_TERM, UNIT_COND, UNIT_EITHER };
struct unit {
	enum unit_is is;
	struct dw_term *t;
	struct dw_cond *c;
	const char
	    *instead; /* what else could have stood behind a bare keyword: "'within' clause" */
};

bool dw_tp_unit(struct ps *p, struct unit *out);
/* A value: a unit that is, or may be, a term. */
bool dw_tp_term(struct ps *p, struct dw_term **out);
bool dw_tp_condition(struct ps *p, struct dw_cond **out);
/* The same when its first unit is read already; first may be NULL. */
bool dw_tp_condition_from(struct ps *p, const struct unit *first, struct dw_cond **out);
/* What may stand behind `within W`. */
bool dw_tp_atom(struct ps *p, struct dw_cond **out);
