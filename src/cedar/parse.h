/* Text to tree: policies (spec 2) and single expressions. Hostile input: every loop advances,
 * nesting is limited to CEDAR_MAX_DEPTH, the number of nodes to CEDAR_MAX_NODES, the text to
 * CEDAR_MAX_SOURCE.
 *
 * After an error the parser goes on behind the next `;` of that level, so one run reports the
 * errors of all policies. */
#pragma once

#include "cedar/ast.h"

#define CEDAR_MAX_SOURCE ((size_t)16 << 20)

struct cedar_parse_opts {
	/* Dogwood's grammar: `def`, `temporal { … }`, `guardrails`, macro and provider calls and
	 * unknown methods as nodes, scope elements in any order and omittable. Without it: Cedar
	 * 4 exactly. */
	bool dogwood;
	/* ?name parameters are allowed (the body of a `def cedar`). */
	bool params;
	/* Policy ids are prefix followed by the position; NULL = "policy". */
	const char *id_prefix;
	/* For text cut out of a larger source: the place of its first byte, so that spans speak
	 * of the whole. line 0 = not used. */
	struct cedar_span origin;
};

/* Parse a whole source. Trees and texts go to a, names to t. 0 when there was no error; -1 when
 * there was (ds then has at least one; *out holds what could be parsed). */
int cedar_parse(struct cedar_syms *t, struct arena *a, sv text, const struct cedar_parse_opts *o,
    struct cedar_source *out, struct cedar_diags *ds);
/* Parse one expression that is the whole text. NULL after an error. */
struct cedar_expr *cedar_parse_expr(struct cedar_syms *t, struct arena *a, sv text,
    const struct cedar_parse_opts *o, struct cedar_diags *ds);

/* The method of Cedar whose name is nearest to a word, when it is near enough to be a slip. */
sv cedar_near_method(sv word);

/* ---- the lexer, shared with Dogwood's temporal grammar and the schema parser --------------- */

enum cedar_tok_kind {
	CEDAR_T_END,
	CEDAR_T_IDENT,
	CEDAR_T_INT,
	CEDAR_T_STRING, /* text has the quotes */
	CEDAR_T_SIGIL,  /* ?name or $name, text with the sigil */
	/* text is one of the operators: two bytes where they belong together (:: == != <= >= &&
	 * ||) or one */
	CEDAR_T_PUNCT,
	/* a byte that starts no token, or an unclosed string: text runs to the end of the source */
	CEDAR_T_BAD
};

struct cedar_tok {
	enum cedar_tok_kind kind;
	sv text;
	struct cedar_span span;
};

struct cedar_lex {
	sv src;
	size_t at;
	uint32_t line;     /* of `at` */
	uint32_t col;      /* in code points, from 1 */
	uint32_t base_off; /* added to offsets in spans */
};

/* Start on text; origin as in cedar_parse_opts (line 0: the text is the whole). */
void cedar_lex_init(struct cedar_lex *l, sv text, struct cedar_span origin);
/* The next token; at the end CEDAR_T_END with an empty text, for ever. Skips white space and
 * `//` comments. Digits right before letters are two tokens ("1h" is 1 and h). */
struct cedar_tok cedar_lex_next(struct cedar_lex *l);
/* Called right behind a `{` token: the raw text up to the matching `}`, strings and comments
 * skipped, both consumed up to and including the brace. false when it is not closed. */
bool cedar_lex_block(struct cedar_lex *l, sv *body, struct cedar_span *at);

/* The decoded content of a string token, interned; NULL after an error, which is in ds. */
cedar_sym cedar_tok_string(
    struct cedar_syms *t, struct arena *a, const struct cedar_tok *tok, struct cedar_diags *ds);
/* "unexpected token `X`[, expected …]" or "unexpected end of input[…]" for tok; expected may be
 * NULL. */
void cedar_tok_unexpected(
    struct cedar_diags *ds, const struct cedar_tok *tok, const char *expected);
