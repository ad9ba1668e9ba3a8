/* The formatter works on tokens, not on trees, so that comments and the temporal blocks need no
 * second grammar. A statement ends at `;`; annotations, head and each condition get lines of
 * their own; a bracket group that does not fit the line is broken at its commas, `||` or `&&`.
 * Whether there is a space between two tokens depends on these two (and at a few places on the
 * source), never on the line, which makes the result stable.
 *
 * Hostile text: the work is linear in the tokens for each level of brackets, and levels are
 * limited. */
#include "cedar/format.h"

#include <stdlib.h>

#include "base/ban.h"

#define MAX_LEVELS 300 /* of brackets that are broken; deeper ones stay on the line */
#define STEP       2   /* columns of indentation */

struct ftok {
	struct cedar_tok t;
	uint32_t match;   /* of an opening bracket: its closing one; else 0 */
	uint32_t width;   /* flat width of all tokens before this one, spaces included */
	uint32_t remarks; /* comments in front of and behind all tokens before this one */
	sv lead;    /* the source between the token before and this one, when it holds comments */
	bool space; /* one stands before this token on a line */
	bool trail; /* the first comment of lead stands on the line of the token before */
};

struct fmt {
	struct ftok *v;
	size_t n;
	struct buf *b;
	unsigned width, col, level;
	bool fresh; /* at the start of a line, nothing written yet */
	bool ended; /* a trailing comment ends the line here */
};

static bool is(const struct ftok *t, const char *text)
{
	return t->t.kind != CEDAR_T_STRING && sv_eq(t->t.text, sv_c(text));
}

static bool is_any(const struct ftok *t, const char *const *v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (is(t, v[i]))
			return true;
	return false;
}
#define IS_ANY(t, ...)                                                                             \
	is_any(t, (const char *const[]){ __VA_ARGS__ },                                            \
	    sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

static bool opens(const struct ftok *t)
{
	return IS_ANY(t, "(", "[", "{");
}

static bool closes(const struct ftok *t)
{
	return IS_ANY(t, ")", "]", "}");
}

static size_t columns(sv s)
{
	size_t i, n = 0;

	for (i = 0; i < s.n; i++)
		n += ((uint8_t)s.p[i] & 0xc0) != 0x80;
	return n;
}

/* Words behind which a bracket opens something of its own, not a call or an index. */
static bool is_keyword(const struct ftok *t)
{
	return IS_ANY(t, "permit", "forbid", "when", "unless", "if", "then", "else", "in", "has",
	    "like", "is", "temporal", "guardrails", "formerly", "previous", "since", "within",
	    "exists", "for", "where");
}

static bool is_value_end(const struct ftok *t)
{
	return t->t.kind == CEDAR_T_INT || t->t.kind == CEDAR_T_STRING ||
	       t->t.kind == CEDAR_T_SIGIL || (t->t.kind == CEDAR_T_IDENT && !is_keyword(t)) ||
	       IS_ANY(t, ")", "]", "}");
}

/* Does a space stand between v[i - 1] and v[i]? */
static bool spaced(const struct ftok *v, size_t i, bool apart)
{
	const struct ftok *p = &v[i - 1], *c = &v[i];
	bool unit = i >= 2 && p->t.kind == CEDAR_T_IDENT && v[i - 2].t.kind == CEDAR_T_INT;

	if (IS_ANY(p, "(", "[", "!", "::", "@") || IS_ANY(c, ")", "]", ",", ";", ".", "::", ":"))
		return false;
	if (is(p, "{"))
		return !is(c, "}");
	if (is(p, ".")) /* `exists (x: T). body` as opposed to `a.b` */
		return apart || is(c, "(");
	if (is(p, "-") && (i < 2 || !is_value_end(&v[i - 2])))
		return false;
	if (p->t.kind == CEDAR_T_INT && c->t.kind == CEDAR_T_IDENT) /* 1h */
		return apart;
	if (is(c, "(") || is(c, "["))
		return !is_value_end(p) || unit || is(p, "}") ||
		       (p->t.kind == CEDAR_T_SIGIL && is(c, "("));
	if (is(c, "{")) /* Action::"a"::kind{ … }, ?s{ … } */
		return !((p->t.kind == CEDAR_T_IDENT && i >= 2 && is(&v[i - 2], "::")) ||
		         p->t.kind == CEDAR_T_SIGIL || is(p, "}"));
	return true;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

/* The comments between two tokens. */
static uint32_t count_remarks(sv gap, bool *trail)
{
	bool line_start = false, in = false;
	uint32_t n = 0;
	size_t i;

	*trail = false;
	for (i = 0; i < gap.n; i++) {
		if (gap.p[i] == '\n' || gap.p[i] == '\r') {
			line_start = true;
			in = false;
		} else if (!in && gap.p[i] == '/') {
			if (n++ == 0)
				*trail = !line_start;
			in = true;
		}
	}
	return n;
}

static int read_tokens(struct arena *a, sv text, struct fmt *f)
{
	size_t cap = 0, end = 0, depth = 0, i;
	uint32_t width = 0, remarks = 0, *stack = NULL;
	struct cedar_lex l;
	struct ftok *t;
	sv gap;

	cedar_lex_init(&l, text, (struct cedar_span){ 0 });
	do {
		if (f->n + 1 >= cap) {
			cap = cap != 0 ? cap * 2 : 256;
			f->v = arena_grow(a, f->v, f->n, cap, sizeof(*f->v));
			if (f->v == NULL)
				return -1;
		}
		t = &f->v[f->n];
		*t = (struct ftok){ .t = cedar_lex_next(&l) };
		gap = sv_sub(text, end, t->t.span.off - end);
		t->remarks = remarks;
		i = count_remarks(gap, &t->trail);
		t->trail = t->trail && f->n != 0;
		if (i != 0)
			t->lead = gap;
		remarks += (uint32_t)i;
		if (f->n != 0)
			t->space = spaced(f->v, f->n, gap.n != 0);
		t->width = width;
		width += (uint32_t)columns(t->t.text) + t->space;
		end = t->t.span.off + t->t.text.n;
		f->n++;
	} while (t->t.kind != CEDAR_T_END);
	f->n--; /* the end stays behind the last token, for its comments */
	stack = ARENA_VEC(a, uint32_t, f->n + 1);
	if (stack == NULL)
		return -1;
	for (i = 0; i < f->n; i++) {
		if (opens(&f->v[i]))
			stack[depth++] = (uint32_t)i;
		else if (closes(&f->v[i]) && depth > 0)
			f->v[stack[--depth]].match = (uint32_t)i;
	}
	return 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void newline(struct fmt *f)
{
	if (!f->fresh)
		buf_put_byte(f->b, '\n');
	f->fresh = true;
	f->ended = false;
	f->col = 0;
}

static void put(struct fmt *f, sv s, unsigned indent, bool space)
{
	if (f->ended)
		newline(f);
	if (f->fresh) {
		for (; f->col < indent; f->col++)
			buf_put_byte(f->b, ' ');
	} else if (space) {
		buf_put_byte(f->b, ' ');
		f->col++;
	}
	f->fresh = false;
	buf_put_sv(f->b, s);
	f->col += (unsigned)columns(s);
}

/* The comments in front of a token. Blank lines between them are kept, one at a time. */
static void put_remarks(struct fmt *f, const struct ftok *t, unsigned indent)
{
	sv rest = t->lead, line;
	bool first = true, more = true, blank = false;

	while (more && rest.n != 0) {
		size_t k = 0;

		while (k < rest.n && rest.p[k] != '\n')
			k++;
		line = sv_trim(sv_sub(rest, 0, k));
		more = k < rest.n;
		rest = more ? sv_sub(rest, k + 1, SIZE_MAX) : (sv){ NULL, 0 };
		if (line.n == 0) {
			blank = blank || !first;
			first = false;
			continue;
		}
		if (first && t->trail) {
			if (f->ended)
				newline(f);
			put(f, line, indent, true);
		} else {
			newline(f);
			/* Not behind an opening bracket, and not at the very beginning. */
			if (blank && f->b->n > 1 && f->b->p[f->b->n - 1] == '\n' &&
			    f->b->p[f->b->n - 2] != '{' && f->b->p[f->b->n - 2] != '(' &&
			    f->b->p[f->b->n - 2] != '[' && f->b->p[f->b->n - 2] != '\n')
				buf_put_byte(f->b, '\n');
			put(f, line, indent, false);
		}
		f->ended = true;
		blank = false;
		first = false;
	}
}

/* Go to a new line in front of token i. A comment that stood behind the token before stays
 * there. */
static void break_before(struct fmt *f, size_t i)
{
	struct ftok *t = &f->v[i];
	size_t k = 0;
	sv rest;

	if (t->trail && !f->fresh && !f->ended) {
		while (k < t->lead.n && t->lead.p[k] != '\n')
			k++;
		rest = sv_sub(t->lead, k, SIZE_MAX);
		put(f, sv_trim(sv_sub(t->lead, 0, k)), 0, true);
		t->lead = count_remarks(rest, &t->trail) != 0 ? rest : (sv){ NULL, 0 };
		t->trail = false;
	}
	newline(f);
}

static void put_token(struct fmt *f, size_t i, unsigned indent)
{
	const struct ftok *t = &f->v[i];

	if (t->lead.n != 0)
		put_remarks(f, t, indent);
	put(f, t->t.text, indent, t->space);
}

/* Do the tokens [from, to) fit the rest of the line, with `more` columns behind them? Comments
 * never do. */
static bool fits(const struct fmt *f, size_t from, size_t to, unsigned more)
{
	uint32_t w = f->v[to].width - f->v[from].width;

	if (to > from && f->v[to].remarks != f->v[from].remarks)
		return false;
	return f->col + w + more <= f->width;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static void put_range(struct fmt *f, size_t from, size_t to, unsigned indent, unsigned more);

/* The next token at this level, behind a whole group. */
static size_t next(const struct fmt *f, size_t i)
{
	return f->v[i].match != 0 ? f->v[i].match + 1 : i + 1;
}

/* Where a range is broken: the operator that binds least. */
static const char *separator(const struct fmt *f, size_t from, size_t to)
{
	static const char *const ops[] = { ",", "||", "&&" };
	size_t k, i;

	for (k = 0; k < 3; k++) {
		bool binders = false; /* `for (x: T), (y: T).` stays together */

		for (i = from; i < to; i = next(f, i)) {
			if (is(&f->v[i], "for"))
				binders = true;
			else if (is(&f->v[i], "."))
				binders = false;
			else if (!binders && is(&f->v[i], ops[k]))
				return ops[k];
		}
	}
	return NULL;
}

/* The content of a bracket group over several lines. */
static void put_lines(struct fmt *f, size_t from, size_t to, unsigned indent)
{
	const char *sep = separator(f, from, to);
	bool binders = false;
	size_t start = from, i;

	for (i = from; i < to; i = next(f, i)) {
		if (is(&f->v[i], "for") || is(&f->v[i], "."))
			binders = is(&f->v[i], "for");
		if (binders || sep == NULL || !is(&f->v[i], sep))
			continue;
		break_before(f, start);
		put_range(f, start, i, indent, 3);
		put_token(f, i, indent);
		start = i + 1;
	}
	if (start < to) {
		break_before(f, start);
		put_range(f, start, to, indent, 1);
	}
}

static void put_group(struct fmt *f, size_t open, unsigned indent, unsigned more)
{
	size_t close = f->v[open].match, i;

	/* The opening bracket itself is placed by the token before it. */
	if ((close == open + 1 && f->v[close].lead.n == 0) || f->level >= MAX_LEVELS ||
	    fits(f, open, close + 1, more)) {
		for (i = open; i <= close; i++)
			put_token(f, i, indent);
		return;
	}
	put_token(f, open, indent);
	f->level++;
	put_lines(f, open + 1, close, indent + STEP);
	f->level--;
	/* Comments before the closing bracket belong to the content. */
	break_before(f, close);
	if (f->v[close].lead.n != 0)
		put_remarks(f, &f->v[close], indent + STEP);
	newline(f);
	put(f, f->v[close].t.text, indent, false);
}

/* Tokens one after the other; groups are broken where the line is too long. */
static void put_range(struct fmt *f, size_t from, size_t to, unsigned indent, unsigned more)
{
	size_t i;

	for (i = from; i < to; i = next(f, i)) {
		if (f->v[i].match != 0)
			put_group(f, i, indent, i + 1 < to ? 1 : more);
		else
			put_token(f, i, indent);
	}
}

/* ---- statements ------------------------------------------------------------------------------ */

static size_t put_statement(struct fmt *f, size_t i)
{
	size_t j, end = i;

	while (end < f->n && !is(&f->v[end], ";"))
		end = next(f, end);
	while (i < end && is(&f->v[i], "@")) {
		j = i + 2;
		if (j < end && is(&f->v[j], "("))
			j = f->v[j].match + 1;
		put_range(f, i, j, 0, 0);
		break_before(f, j);
		i = j;
	}
	/* The head, then each condition, on lines of their own. */
	while (i < end) {
		for (j = next(f, i); j < end && !IS_ANY(&f->v[j], "when", "unless"); j = next(f, j))
			;
		put_range(f, i, j, 0, j < end ? 0 : 1);
		if (j < end)
			break_before(f, j);
		i = j;
	}
	if (end < f->n)
		put_token(f, end++, 0);
	return end;
}

/* The same tokens, in the same order? */
static bool same_tokens(sv x, sv y)
{
	struct cedar_lex l, m;
	struct cedar_tok s, t;

	cedar_lex_init(&l, x, (struct cedar_span){ 0 });
	cedar_lex_init(&m, y, (struct cedar_span){ 0 });
	do {
		s = cedar_lex_next(&l);
		t = cedar_lex_next(&m);
		if (s.kind != t.kind || !sv_eq(s.text, t.text))
			return false;
	} while (s.kind != CEDAR_T_END);
	return true;
}

int cedar_layout(struct arena *a, sv text, unsigned width, struct buf *out, struct cedar_diags *ds)
{
	struct fmt f = {
		.b = out, .width = width != 0 ? width : CEDAR_FORMAT_WIDTH, .fresh = true
	};
	size_t i, from = out->n;

	if (read_tokens(a, text, &f) < 0) {
		cedar_diag_add(ds, CEDAR_ERROR, "limit", NULL, NULL, "out of memory");
		return -1;
	}
	for (i = 0; i < f.n;) {
		if (i > 0) {
			break_before(&f, i);
			buf_put_byte(out, '\n');
		}
		i = put_statement(&f, i);
	}
	if (f.v[f.n].lead.n != 0)
		put_remarks(&f, &f.v[f.n], 0);
	newline(&f);
	if (!buf_ok(out)) {
		cedar_diag_add(
		    ds, CEDAR_ERROR, "limit", NULL, NULL, "the formatted source is too large");
		return -1;
	}
	if (!same_tokens(text, sv_sub(buf_sv(out), from, SIZE_MAX))) {
		cedar_diag_add(ds, CEDAR_ERROR, "format", NULL,
		    "leave the file as it is and report it",
		    "the formatter would change the meaning of this source");
		return -1;
	}
	return 0;
}

int cedar_format(struct cedar_syms *t, struct arena *a, sv text, const struct cedar_parse_opts *o,
    unsigned width, struct buf *out, struct cedar_diags *ds)
{
	struct cedar_source src;

	if (cedar_parse(t, a, text, o, &src, ds) < 0)
		return -1;
	return cedar_layout(a, text, width, out, ds);
}
