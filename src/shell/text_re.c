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

const char *text_re_compile(
    struct text_re *re, sv pattern, reg_syntax_t syntax, bool newline_anchor)
{
	const char *why;

	*re = (struct text_re){ 0 };
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
