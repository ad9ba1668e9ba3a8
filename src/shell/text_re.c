/* Regular expressions for the text utilities. See text_re.h. */
#include "shell/text_re.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/ban.h"

static bool is_plain(sv pattern, reg_syntax_t syntax)
{
	bool extended = (syntax & RE_NO_BK_PARENS) != 0;

	if (pattern.n == 0 || (syntax & RE_ICASE) != 0)
		return false;
	for (size_t i = 0; i < pattern.n; i++)
		if (pattern.p[i] == '\n' || pattern.p[i] == '\0' ||
		    strchr(extended ? "\\[.*^$+?(){}|" : "\\[.*^$", pattern.p[i]) != NULL)
			return false;
	return true;
}

/* --- how big an expression grows --- */

enum { RE_NODES_MAX = 10000, RE_DEPTH_MAX = 500 };

struct growth {
	sv p;
	size_t i;
	bool extended;
	size_t sum[RE_DEPTH_MAX + 1]; /* nodes of each open group so far */
	size_t last;                  /* nodes of what a repetition would repeat */
	size_t depth;
};

/* A bracket expression from its '[' on: past its end, or past the '[' when it has none. */
static size_t skip_bracket(sv p, size_t i)
{
	size_t j = i + 1;

	if (j < p.n && p.p[j] == '^')
		j++;
	if (j < p.n && p.p[j] == ']')
		j++;
	while (j < p.n && p.p[j] != ']') {
		char kind = j + 1 < p.n ? p.p[j + 1] : '\0';

		if (p.p[j] == '[' && (kind == ':' || kind == '.' || kind == '=')) {
			j += 2;
			while (j + 1 < p.n && !(p.p[j] == kind && p.p[j + 1] == ']'))
				j++;
			j++;
		}
		j++;
	}
	return j < p.n ? j + 1 : i + 1;
}

static size_t digits(sv p, size_t *i)
{
	size_t n = 0;

	for (; *i < p.n && p.p[*i] >= '0' && p.p[*i] <= '9'; (*i)++)
		n = n < RE_NODES_MAX ? n * 10 + (size_t)(p.p[*i] - '0') : n;
	return n;
}

/* "n}" "n,}" ",m}" "n,m}" (or "\}") at g->i: the copies the engine makes. 0: this is no
 * interval. */
static size_t interval(struct growth *g)
{
	size_t i = g->i, low = digits(g->p, &i), high = low;

	if (i < g->p.n && g->p.p[i] == ',') {
		size_t from = ++i;

		high = digits(g->p, &i);
		if (i == from)
			high = low + 1; /* "at least": the last copy repeats */
	} else if (i == g->i) {
		return 0;
	}
	if (!g->extended && i < g->p.n && g->p.p[i] == '\\')
		i++;
	if (i >= g->p.n || g->p.p[i] != '}')
		return 0;
	g->i = i + 1;
	return high > low ? high : low != 0 ? low : 1;
}

static void repeat(struct growth *g, size_t copies)
{
	size_t *sum = &g->sum[g->depth], more;

	if (g->last > RE_NODES_MAX || copies > RE_NODES_MAX)
		more = (size_t)RE_NODES_MAX * RE_NODES_MAX;
	else
		more = g->last * copies;
	*sum += more - g->last;
	g->last = more;
}

/* One element: false when groups nest too deep. */
static bool grow(struct growth *g)
{
	char c = g->p.p[g->i++];
	bool escaped = c == '\\' && g->i < g->p.n, op;

	if (escaped)
		c = g->p.p[g->i++];
	op = escaped != g->extended; /* basic: \( \) \{ \+; extended: ( ) { + */
	if (c == '(' && op) {
		if (g->depth == RE_DEPTH_MAX)
			return false;
		g->sum[++g->depth] = 1;
		g->last = 0;
	} else if (c == ')' && op && g->depth > 0) {
		g->last = g->sum[g->depth--];
		g->sum[g->depth] += g->last;
	} else if (c == '+' && op) {
		repeat(g, 2); /* x+ is compiled as xx* */
	} else if (c == '{' && op) {
		size_t copies = interval(g);

		if (copies != 0)
			repeat(g, copies);
		else
			g->sum[g->depth]++;
	} else if (c == '|' && op) {
		g->last = 0;
		g->sum[g->depth]++;
	} else if ((c == '*' && !escaped) || (c == '?' && op)) {
		g->last++;
		g->sum[g->depth]++;
	} else {
		if (c == '[' && !escaped)
			g->i = skip_bracket(g->p, g->i - 1);
		g->last = 1;
		g->sum[g->depth]++;
	}
	return true;
}

bool text_re_too_big(sv pattern, bool extended)
{
	struct growth g = { .p = pattern, .extended = extended };

	while (g.i < pattern.n)
		if (!grow(&g) || g.sum[g.depth] > RE_NODES_MAX + pattern.n)
			return true;
	return false;
}

/* --- compiling and searching --- */

const char *text_re_compile(
    struct text_re *re, sv pattern, reg_syntax_t syntax, bool newline_anchor)
{
	const char *why;

	*re = (struct text_re){ 0 };
	if (text_re_too_big(pattern, (syntax & RE_NO_BK_PARENS) != 0))
		return TEXT_RE_TOO_BIG;
	if (is_plain(pattern, syntax)) {
		re->literal = malloc(pattern.n);
		if (re->literal == NULL)
			return "Memory exhausted";
		memcpy(re->literal, pattern.p, pattern.n);
		re->literal_n = pattern.n;
	}
	/* A literal is compiled too: it serves where a match must be anchored or shorter. */
	re->pat.fastmap = malloc(UCHAR_MAX + 1);
	if (re->pat.fastmap == NULL)
		return "Memory exhausted";
	(void)re_set_syntax(syntax); /* libc's global: set right before its only reader */
	re->compiled = true;
	why = re_compile_pattern(pattern.n != 0 ? pattern.p : "", pattern.n, &re->pat);
	re->pat.newline_anchor = newline_anchor;
	return why;
}

void text_re_fini(struct text_re *re)
{
	free(re->literal);
	if (re->compiled)
		regfree(&re->pat); /* the fastmap goes with it */
	else
		free(re->pat.fastmap);
	free(re->regs.start);
	free(re->regs.end);
	*re = (struct text_re){ 0 };
}

size_t text_re_groups(const struct text_re *re)
{
	return re->pat.re_nsub;
}

bool text_re_search(struct text_re *re, sv s, size_t from, size_t *start, size_t *end)
{
	regoff_t at;

	if (from > s.n || s.n > INT_MAX)
		return false;
	if (re->literal != NULL) {
		const char *q = memmem(s.p + from, s.n - from, re->literal, re->literal_n);

		if (q == NULL)
			return false;
		*start = (size_t)(q - s.p);
		*end = *start + re->literal_n;
		return true;
	}
	at = re_search(&re->pat, s.n != 0 ? s.p : "", (regoff_t)s.n, (regoff_t)from,
	    (regoff_t)(s.n - from), &re->regs);
	if (at < 0)
		return false;
	*start = (size_t)at;
	*end = (size_t)re->regs.end[0];
	return true;
}

ptrdiff_t text_re_match_at(struct text_re *re, sv s, size_t at, size_t limit)
{
	regoff_t n;

	if (limit > INT_MAX || at > limit)
		return -1;
	re->pat.not_eol = limit < s.n;
	n = re_match(&re->pat, s.n != 0 ? s.p : "", (regoff_t)limit, (regoff_t)at, &re->regs);
	re->pat.not_eol = 0;
	return n < 0 ? -1 : n;
}
