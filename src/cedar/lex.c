/* Tokens of Cedar, Dogwood's temporal grammar and the schemas. Hostile bytes; the caller has
 * checked that they are UTF-8. Spec 1. */
#include "cedar/parse.h"

#include "cedar/advice.h"

#include "base/ban.h"

void cedar_lex_init(struct cedar_lex *l, sv text, struct cedar_span origin)
{
	*l = (struct cedar_lex){ .src = text, .line = 1, .col = 1 };
	if (origin.line != 0) {
		l->line = origin.line;
		l->col = origin.col;
		l->base_off = origin.off;
	}
}

static uint8_t at(const struct cedar_lex *l, size_t k)
{
	return k < l->src.n - l->at ? (uint8_t)l->src.p[l->at + k] : 0;
}

/* Step over n bytes, counting lines and columns. */
static void step(struct cedar_lex *l, size_t n)
{
	for (; n > 0 && l->at < l->src.n; n--, l->at++) {
		uint8_t c = (uint8_t)l->src.p[l->at];

		if (c == '\n') {
			l->line++;
			l->col = 1;
		} else if ((c & 0xc0) != 0x80) {
			l->col++;
		}
	}
}

/* Length of the white-space character here (Unicode's White_Space), or 0. */
static size_t space(const struct cedar_lex *l)
{
	uint8_t a = at(l, 0), b = at(l, 1), c = at(l, 2);

	if (l->at >= l->src.n)
		return 0;
	if (a == ' ' || (a >= '\t' && a <= '\r'))
		return 1;
	if (a == 0xc2 && (b == 0x85 || b == 0xa0))
		return 2;
	if (a == 0xe1 && b == 0x9a && c == 0x80)
		return 3;
	if (a == 0xe2 && b == 0x80 &&
	    ((c >= 0x80 && c <= 0x8a) || c == 0xa8 || c == 0xa9 || c == 0xaf))
		return 3;
	if ((a == 0xe2 && b == 0x81 && c == 0x9f) || (a == 0xe3 && b == 0x80 && c == 0x80))
		return 3;
	return 0;
}

static void comment(struct cedar_lex *l)
{
	size_t n = 2;

	/* A carriage return ends it too, as in the reference's lexer. */
	while (at(l, n) != '\n' && at(l, n) != '\r' && n < l->src.n - l->at)
		n++;
	step(l, n);
}

static void blanks(struct cedar_lex *l)
{
	size_t n;

	for (;;) {
		n = space(l);
		if (n != 0)
			step(l, n);
		else if (at(l, 0) == '/' && at(l, 1) == '/')
			comment(l);
		else
			return;
	}
}

static bool is_word(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
	       (c >= '0' && c <= '9');
}

/* Length of the string literal here with its quotes, or 0 when it is not closed. */
static size_t string(const struct cedar_lex *l)
{
	size_t n, left = l->src.n - l->at;

	for (n = 1; n < left; n++) {
		uint8_t c = at(l, n);

		if (c == '"')
			return n + 1;
		if (c == '\\') {
			/* A line end cannot be escaped. */
			if (n + 1 < left && at(l, n + 1) == '\n')
				return 0;
			n++;
		}
	}
	return 0;
}

static size_t punct(const struct cedar_lex *l)
{
	uint8_t a = at(l, 0), b = at(l, 1);

	if ((a == ':' && b == ':') || (a == '=' && b == '=') || (a == '!' && b == '=') ||
	    (a == '<' && b == '=') || (a == '>' && b == '=') || (a == '&' && b == '&') ||
	    (a == '|' && b == '|'))
		return 2;
	return a != 0 && strchr("@.,;(){}[]+-*/%=<>!:?", a) != NULL;
}

struct cedar_tok cedar_lex_next(struct cedar_lex *l)
{
	struct cedar_tok t = { .kind = CEDAR_T_END };
	size_t n = 0, left;
	uint8_t c;

	blanks(l);
	left = l->src.n - l->at;
	c = at(l, 0);
	t.span = (struct cedar_span){ (uint32_t)(l->base_off + l->at), 0, l->line, l->col };
	t.text = sv_sub(l->src, l->at, 0);
	if (left == 0)
		return t;
	if (c >= '0' && c <= '9') {
		t.kind = CEDAR_T_INT;
		while (at(l, n) >= '0' && at(l, n) <= '9')
			n++;
	} else if (is_word(c)) {
		t.kind = CEDAR_T_IDENT;
		while (is_word(at(l, n)))
			n++;
	} else if (c == '"') {
		n = string(l);
		t.kind = n != 0 ? CEDAR_T_STRING : CEDAR_T_BAD;
		if (n == 0)
			n = left;
	} else if ((c == '?' || c == '$') && is_word(at(l, 1)) &&
	           !(at(l, 1) >= '0' && at(l, 1) <= '9')) {
		t.kind = CEDAR_T_SIGIL;
		n = 1;
		while (is_word(at(l, n)))
			n++;
	} else if ((n = punct(l)) != 0) {
		t.kind = CEDAR_T_PUNCT;
	} else {
		t.kind = CEDAR_T_BAD;
		n = 1;
		/* The whole character. */
		while (n < left && (at(l, n) & 0xc0) == 0x80)
			n++;
	}
	t.text = sv_sub(l->src, l->at, n);
	t.span.len = (uint32_t)n;
	step(l, n);
	return t;
}

bool cedar_lex_block(struct cedar_lex *l, sv *body, struct cedar_span *where)
{
	size_t from = l->at, depth = 1, n;

	*where = (struct cedar_span){ (uint32_t)(l->base_off + from), 0, l->line, l->col };
	while (l->at < l->src.n) {
		uint8_t c = at(l, 0);

		if (c == '"') {
			n = string(l);
			if (n == 0) {
				step(l, SIZE_MAX);
				break;
			}
			step(l, n);
			continue;
		}
		if (c == '/' && at(l, 1) == '/') {
			comment(l);
			continue;
		}
		if (c == '{') {
			depth++;
		} else if (c == '}' && --depth == 0) {
			*body = sv_sub(l->src, from, l->at - from);
			where->len = (uint32_t)body->n;
			step(l, 1);
			return true;
		}
		step(l, 1);
	}
	*body = sv_sub(l->src, from, SIZE_MAX);
	where->len = (uint32_t)body->n;
	return false;
}

cedar_sym cedar_tok_string(
    struct cedar_syms *t, struct arena *a, const struct cedar_tok *tok, struct cedar_diags *ds)
{
	sv bad, body = sv_sub(tok->text, 1, tok->text.n - 2), s;
	cedar_sym sym;

	s = cedar_unescape(a, body, &bad);
	if (s.p == NULL && bad.n != 0) {
		struct cedar_span at = tok->span;
		size_t k = (size_t)(bad.p - tok->text.p), i;

		at.off += (uint32_t)k;
		at.len = (uint32_t)bad.n;
		for (i = 0; i < k; i++) {
			if (tok->text.p[i] == '\n') {
				at.line++;
				at.col = 1;
			} else if (((uint8_t)tok->text.p[i] & 0xc0) != 0x80) {
				at.col++;
			}
		}
		cedar_diag_add(ds, CEDAR_ERROR, "parse", &at,
		    "the escapes are \\n \\r \\t \\0 \\\\ \\\" \\' \\xHH \\u{HEX}; write \\\\ for "
		    "a backslash",
		    "the input `" SV_FMT "` is not a valid escape", SV_ARG(bad));
		return NULL;
	}
	sym = s.p != NULL ? cedar_intern(t, s) : NULL;
	if (sym == NULL)
		cedar_diag_add(ds, CEDAR_ERROR, "parse", &tok->span, NULL, "out of memory");
	return sym;
}

void cedar_tok_unexpected(struct cedar_diags *ds, const struct cedar_tok *tok, const char *expected)
{
	const char *sep = expected != NULL ? ", expected " : "";
	const char *hint;

	if (tok->kind == CEDAR_T_STRING)
		hint = NULL;
	else
		hint = cedar_advice(CEDAR_AT_TOKEN, tok->text);
	if (expected == NULL)
		expected = "";
	if (tok->kind == CEDAR_T_END)
		cedar_diag_add(ds, CEDAR_ERROR, "parse", &tok->span, NULL,
		    "unexpected end of input%s%s", sep, expected);
	else
		cedar_diag_add(ds, CEDAR_ERROR, "parse", &tok->span, hint,
		    "unexpected token `" SV_FMT "`%s%s", SV_ARG(tok->text), sep, expected);
}
