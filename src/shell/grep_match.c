/* grep: the patterns and the search in one line. Basic and extended expressions are glibc's, -F
 * patterns are searched directly (as expressions with -i), -P is PCRE2. Hostile patterns and
 * hostile text. */
#include "shell/grep.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

#ifdef HAVE_PCRE2
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#endif

#include "base/ban.h"

/* Is the character that ends at `at` (or, forward, begins there) a part of a word? */
static bool is_word_byte(char c)
{
	return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
	       (c >= 'a' && c <= 'z');
}

static bool is_word_at(const struct grep *g, sv line, size_t at)
{
	mbstate_t mb = { 0 };
	wchar_t wc;
	size_t r;

	if (at >= line.n)
		return false;
	if (!g->utf8 || (unsigned char)line.p[at] < 0x80)
		return is_word_byte(line.p[at]);
	r = mbrtowc(&wc, line.p + at, line.n - at, &mb);
	return r != (size_t)-1 && r != (size_t)-2 && iswalnum((wint_t)wc) != 0;
}

static bool is_word_before(const struct grep *g, sv line, size_t at)
{
	if (at == 0)
		return false;
	at--;
	while (g->utf8 && at > 0 && ((unsigned char)line.p[at] & 0xc0) == 0x80)
		at--;
	return is_word_at(g, line, at);
}

static bool is_whole_word(const struct grep *g, sv line, size_t start, size_t end)
{
	return !is_word_before(g, line, start) && !is_word_at(g, line, end);
}

/* -w: a match that is no word may have a shorter one at the same place that is, or a later one. */
static bool find_word(
    struct grep *g, struct text_re *re, sv line, size_t from, size_t *start, size_t *end)
{
	while (from <= line.n && text_re_search(re, line, from, start, end)) {
		size_t s = *start, e = *end;

		for (;;) {
			ptrdiff_t n;

			if (is_whole_word(g, line, s, e)) {
				*start = s;
				*end = e;
				return true;
			}
			if (e == s)
				break;
			n = text_re_match_at(re, line, s, e - 1);
			if (n < 0)
				break;
			e = s + (size_t)n;
		}
		if (s == line.n)
			return false;
		from = s + 1;
		while (g->utf8 && from < line.n && ((unsigned char)line.p[from] & 0xc0) == 0x80)
			from++;
	}
	return false;
}

static bool find_one(
    struct grep *g, struct text_re *re, sv line, size_t from, size_t *start, size_t *end)
{
	if (g->lines) {
		if (from != 0 || text_re_match_at(re, line, 0, line.n) != (ptrdiff_t)line.n)
			return false;
		*start = 0;
		*end = line.n;
		return true;
	}
	if (g->words)
		return find_word(g, re, line, from, start, end);
	return text_re_search(re, line, from, start, end);
}

#ifdef HAVE_PCRE2
#define PERL_MATCH_LIMIT 10000000
#define PERL_HEAP_KIB    65536

struct perl {
	pcre2_code *code;
	pcre2_match_data *data;
	pcre2_match_context *limits;
};

static int perl_compile(struct grep *g, sv pattern)
{
	AUTO_BUF text = buf_with(pattern.n + 64);
	struct perl *p = calloc(1, sizeof(*p));
	uint32_t flags = PCRE2_DOLLAR_ENDONLY | (g->icase ? PCRE2_CASELESS : 0);
	unsigned char why[256];
	size_t at;
	int e;

	if (p == NULL)
		return (void)shcmd_err(g->io, "memory exhausted"), 2;
	g->perl = p;
	if (g->utf8)
		flags |= PCRE2_UTF | PCRE2_MATCH_INVALID_UTF;
	if (sv_find(pattern, '\n') >= 0)
		return (void)shcmd_err(g->io, "the -P option only supports a single pattern"), 2;
	buf_put_c(&text, g->lines ? "^(?:" : g->words ? "(?<!\\w)(?:" : "");
	buf_put_sv(&text, pattern);
	buf_put_c(&text, g->lines ? ")$" : g->words ? ")(?!\\w)" : "");
	p->code = pcre2_compile(
	    text.p != NULL ? text.p : (const uint8_t *)"", text.n, flags, &e, &at, NULL);
	if (p->code == NULL) {
		(void)pcre2_get_error_message(e, why, sizeof(why)); /* cut at worst */
		return (void)shcmd_err(g->io, "%s", (char *)why), 2;
	}
	p->data = pcre2_match_data_create_from_pattern(p->code, NULL);
	p->limits = pcre2_match_context_create(NULL);
	if (p->data == NULL || p->limits == NULL)
		return (void)shcmd_err(g->io, "memory exhausted"), 2;
	(void)pcre2_set_match_limit(p->limits, PERL_MATCH_LIMIT);
	(void)pcre2_set_heap_limit(p->limits, PERL_HEAP_KIB);
	return 0;
}

static bool perl_find(struct grep *g, sv line, size_t from, size_t *start, size_t *end)
{
	struct perl *p = g->perl;
	unsigned char why[256];
	const size_t *v;
	int r = pcre2_match(p->code, (const uint8_t *)(line.n != 0 ? line.p : ""), line.n, from, 0,
	    p->data, p->limits);

	if (r == PCRE2_ERROR_NOMATCH)
		return false;
	if (r < 0) {
		(void)pcre2_get_error_message(r, why, sizeof(why)); /* cut at worst */
		(void)shcmd_err(g->io, "%s", (char *)why);
		g->trouble = true;
		return false;
	}
	v = pcre2_get_ovector_pointer(p->data);
	*start = v[0];
	*end = v[1] > v[0] ? v[1] : v[0]; /* \K can turn them around */
	return true;
}

static void perl_free(struct grep *g)
{
	struct perl *p = g->perl;

	if (p == NULL)
		return;
	pcre2_match_context_free(p->limits);
	pcre2_match_data_free(p->data);
	pcre2_code_free(p->code);
	free(p);
}
#else
static int perl_compile(struct grep *g, sv pattern)
{
	(void)pattern; /* there is no engine to give it to */
	(void)shcmd_err(g->io, "Perl matching not supported in a --disable-perl-regexp build");
	return 2;
}

static bool perl_find(struct grep *g, sv line, size_t from, size_t *start, size_t *end)
{
	(void)g, (void)line, (void)from, (void)start,
	    (void)end; /* never called: perl_compile fails */
	return false;
}

static void perl_free(struct grep *g)
{
	(void)g; /* nothing was made */
}
#endif

bool grep_find(struct grep *g, sv line, size_t from, size_t *start, size_t *end)
{
	bool found = false;

	if (g->kind == GREP_PERL)
		return perl_find(g, line, from, start, end);
	for (size_t i = 0; i < g->re_n; i++) {
		size_t s, e;

		if (!find_one(g, &g->re[i], line, from, &s, &e))
			continue;
		if (!found || s < *start || (s == *start && e > *end)) {
			*start = s;
			*end = e;
		}
		found = true;
	}
	return found;
}

/* A fixed string as a basic expression. */
static void put_quoted(struct buf *b, sv s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (strchr("\\[.*^$", s.p[i]) != NULL && s.p[i] != '\0')
			buf_put_byte(b, '\\');
		buf_put_byte(b, (uint8_t)s.p[i]);
	}
}

static int compile_one(struct grep *g, sv pattern)
{
	reg_syntax_t syntax = (g->kind == GREP_EXTENDED ? RE_SYNTAX_EGREP : RE_SYNTAX_GREP) |
	                      RE_HAT_LISTS_NOT_NEWLINE | (g->icase ? RE_ICASE : 0);
	AUTO_BUF quoted = buf_with(2 * pattern.n + 1);
	const char *why;

	if (g->kind == GREP_FIXED) {
		put_quoted(&quoted, pattern);
		why = text_re_compile(&g->re[g->re_n], buf_sv(&quoted), syntax, false);
		if (why == NULL && !g->icase && pattern.n != 0 && g->re[g->re_n].literal == NULL) {
			/* Had special characters: the bytes themselves are what is searched. */
			g->re[g->re_n].literal = malloc(pattern.n);
			if (g->re[g->re_n].literal == NULL)
				why = "Memory exhausted";
			else
				memcpy(g->re[g->re_n].literal, pattern.p, pattern.n);
			g->re[g->re_n].literal_n = pattern.n;
		}
	} else {
		why = text_re_compile(&g->re[g->re_n], pattern, syntax, false);
	}
	g->re_n++;
	if (why == NULL)
		return 0;
	(void)shcmd_err(g->io, "%s", why);
	return 2;
}

int grep_compile(struct grep *g)
{
	sv all = buf_sv(&g->patterns), line;
	size_t n = 1;
	bool more;

	if (!buf_ok(&g->patterns)) {
		(void)shcmd_err(g->io, "memory exhausted");
		return 2;
	}
	/* Every pattern ends in a newline; an empty -f file has none. */
	if (all.n == 0)
		return 0;
	all.n--;
	if (g->kind == GREP_PERL)
		return perl_compile(g, all);
	for (size_t i = 0; i < all.n; i++)
		n += all.p[i] == '\n';
	g->re = calloc(n, sizeof(*g->re));
	if (g->re == NULL) {
		(void)shcmd_err(g->io, "memory exhausted");
		return 2;
	}
	do {
		more = sv_cut(all, '\n', &line, &all);
		if (compile_one(g, line) != 0)
			return 2;
	} while (more);
	return 0;
}

void grep_free(struct grep *g)
{
	for (size_t i = 0; i < g->re_n; i++)
		text_re_fini(&g->re[i]);
	free(g->re);
	perl_free(g);
	buf_fini(&g->patterns);
	free(g->globs);
	free(g->dir_globs);
}
