/* See lint.h. Hostile text: one pass, a bounded number of findings. UTS 39 says what to look for;
 * utf8proc has the character data but no scripts, so the few scripts with letters that look Latin
 * are listed here. */
#include "cedar/lint.h"

#include <stdio.h>
#include <utf8proc.h>

#include "cedar/parse.h"

#include "base/ban.h"

enum script { S_NONE, S_LATIN, S_GREEK, S_CYRILLIC, S_ARMENIAN, S_CHEROKEE, S_COPTIC, S_OTHER };

static const struct {
	int32_t from, to;
	enum script script;
} scripts[] = {
	{ 'A', 'Z', S_LATIN },
	{ 'a', 'z', S_LATIN },
	{ 0xaa, 0xaa, S_LATIN },
	{ 0xba, 0xba, S_LATIN },
	{ 0xc0, 0x24f, S_LATIN },
	{ 0x250, 0x2af, S_LATIN },
	{ 0x370, 0x3e1, S_GREEK },
	{ 0x3e2, 0x3ef, S_COPTIC },
	{ 0x3f0, 0x3ff, S_GREEK },
	{ 0x400, 0x52f, S_CYRILLIC },
	{ 0x531, 0x58f, S_ARMENIAN },
	{ 0x13a0, 0x13ff, S_CHEROKEE },
	{ 0x1c80, 0x1c8f, S_CYRILLIC },
	{ 0x1e00, 0x1eff, S_LATIN },
	{ 0x1f00, 0x1fff, S_GREEK },
	{ 0x2c60, 0x2c7f, S_LATIN },
	{ 0x2c80, 0x2cff, S_COPTIC },
	{ 0x2de0, 0x2dff, S_CYRILLIC },
	{ 0xa640, 0xa69f, S_CYRILLIC },
	{ 0xa720, 0xa7ff, S_LATIN },
	{ 0xab70, 0xabbf, S_CHEROKEE },
};

/* Letters of other scripts beside the Latin ones they look like (a part of UTS 39's table). */
static const struct {
	int32_t c;
	char like;
} lookalikes[] = {
	{ 0x391, 'A' },
	{ 0x392, 'B' },
	{ 0x395, 'E' },
	{ 0x396, 'Z' },
	{ 0x397, 'H' },
	{ 0x399, 'I' },
	{ 0x39a, 'K' },
	{ 0x39c, 'M' },
	{ 0x39d, 'N' },
	{ 0x39f, 'O' },
	{ 0x3a1, 'P' },
	{ 0x3a4, 'T' },
	{ 0x3a5, 'Y' },
	{ 0x3a7, 'X' },
	{ 0x3b1, 'a' },
	{ 0x3b9, 'i' },
	{ 0x3bd, 'v' },
	{ 0x3bf, 'o' },
	{ 0x3c1, 'p' },
	{ 0x3c5, 'u' },
	{ 0x3f2, 'c' },
	{ 0x3f3, 'j' },
	{ 0x405, 'S' },
	{ 0x406, 'I' },
	{ 0x408, 'J' },
	{ 0x410, 'A' },
	{ 0x412, 'B' },
	{ 0x415, 'E' },
	{ 0x41a, 'K' },
	{ 0x41c, 'M' },
	{ 0x41d, 'H' },
	{ 0x41e, 'O' },
	{ 0x420, 'P' },
	{ 0x421, 'C' },
	{ 0x422, 'T' },
	{ 0x423, 'Y' },
	{ 0x425, 'X' },
	{ 0x430, 'a' },
	{ 0x435, 'e' },
	{ 0x43e, 'o' },
	{ 0x440, 'p' },
	{ 0x441, 'c' },
	{ 0x443, 'y' },
	{ 0x445, 'x' },
	{ 0x455, 's' },
	{ 0x456, 'i' },
	{ 0x458, 'j' },
	{ 0x4bb, 'h' },
	{ 0x4cf, 'l' },
	{ 0x501, 'd' },
	{ 0x51b, 'q' },
	{ 0x51d, 'w' },
	{ 0x561, 'w' },
	{ 0x570, 'h' },
	{ 0x578, 'n' },
	{ 0x57d, 'u' },
	{ 0x585, 'o' },
	{ 0x581, 'g' },
	{ 0x584, 'f' },
};

static enum script script_of(int32_t c)
{
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++)
		if (c >= scripts[i].from && c <= scripts[i].to)
			return scripts[i].script;
	return S_OTHER;
}

static char looks_like(int32_t c)
{
	for (size_t i = 0; i < sizeof(lookalikes) / sizeof(lookalikes[0]); i++)
		if (lookalikes[i].c == c)
			return lookalikes[i].like;
	return 0;
}

/* UAX 9: embeddings, overrides, isolates, marks. */
static bool is_bidi(int32_t c)
{
	return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0x200e ||
	       c == 0x200f || c == 0x61c;
}

/* Nothing is drawn for it. Joiners have their use between letters of scripts that join. */
static bool is_invisible(int32_t c, int32_t before)
{
	if (c == 0x200c || c == 0x200d)
		return before < 0x250;
	return c == 0xad || c == 0x34f || c == 0x115f || c == 0x1160 || c == 0x17b4 ||
	       c == 0x17b5 || c == 0x180e || c == 0x200b || (c >= 0x2060 && c <= 0x2064) ||
	       (c >= 0x206a && c <= 0x206f) || c == 0x3164 || c == 0xfeff || c == 0xffa0 ||
	       (c >= 0xe0000 && c <= 0xe007f) ||
	       (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || (c >= 0x7f && c < 0xa0);
}

static bool is_letter(int32_t c)
{
	utf8proc_category_t k = utf8proc_category(c);

	return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

/* A form of an ASCII character (full width, mathematical, …), or 0. */
static char ascii_form(int32_t c)
{
	utf8proc_int32_t to[4];
	utf8proc_ssize_t n;
	int last = 0;

	if (c < 0x80)
		return 0;
	n = utf8proc_decompose_char(
	    c, to, 4, UTF8PROC_COMPAT | UTF8PROC_DECOMPOSE | UTF8PROC_STABLE, &last);
	return n == 1 && to[0] > 0x20 && to[0] < 0x7f ? (char)to[0] : 0;
}

struct lint {
	struct cedar_diags *ds;
	struct cedar_span at; /* of the present character */
	bool string;
	/* The word that is being read. */
	struct cedar_span word;
	enum script script;
	bool mixed, all_alike;
	char like[64];
	size_t n_like;
};

static void warn(struct lint *l, const struct cedar_span *at, const char *hint, const char *text)
{
	if (l->ds->n < CEDAR_LINT_MAX)
		(void)cedar_diag_add(l->ds, CEDAR_WARNING, "lint", at, hint, "%s", text);
}

static void end_word(struct lint *l)
{
	struct cedar_span at = l->word;
	char text[160];

	at.len = l->at.off - at.off;
	if (l->script == S_NONE || !l->string) {
		l->script = S_NONE;
		return;
	}
	if (l->mixed) {
		warn(l, &at,
		    "spell it with the letters of one script; what is meant can be written \\u{…}",
		    "this word has letters of several scripts; it is not the word that it looks "
		    "like");
	} else if (l->all_alike && l->script != S_LATIN) {
		(void)snprintf(text, sizeof(text),
		    "this word looks like `%.*s` but is spelled with letters of another script",
		    (int)l->n_like, l->like);
		warn(l, &at, "write it in Latin letters, or as \\u{…} when it is meant", text);
	}
	l->script = S_NONE;
}

static void letter(struct lint *l, int32_t c)
{
	enum script s = script_of(c);
	char like = s == S_LATIN ? (char)(c < 0x80 ? c : 0) : looks_like(c);

	if (l->script == S_NONE) {
		l->script = s;
		l->word = l->at;
		l->mixed = false;
		l->all_alike = true;
		l->n_like = 0;
	}
	/* Of the scripts that are not listed, one is like the other: they are not mistaken. */
	if (s != l->script)
		l->mixed = true;
	if (like == 0 || l->n_like == sizeof(l->like))
		l->all_alike = false;
	else
		l->like[l->n_like++] = like;
}

static void one(struct lint *l, int32_t c, int32_t before)
{
	char text[120], form;

	if (is_bidi(c)) {
		(void)snprintf(text, sizeof(text),
		    "U+%04X changes the direction of the text: what is shown is not what is read",
		    (unsigned)c);
		warn(l, &l->at,
		    l->string ? "take it out, or write it as \\u{…} so that it can be seen"
		              : "take it out of the comment",
		    text);
	} else if (is_invisible(c, before) && (c != 0xfeff || l->at.off != 0)) {
		(void)snprintf(text, sizeof(text), "U+%04X cannot be seen", (unsigned)c);
		warn(l, &l->at,
		    l->string ? "take it out, or write it as \\u{…} so that it can be seen"
		              : "take it out of the comment",
		    text);
	} else if (l->string && (form = ascii_form(c)) != 0) {
		(void)snprintf(text, sizeof(text),
		    "U+%04X looks like `%c` but is another character", (unsigned)c, form);
		warn(l, &l->at, "write the plain character, or \\u{…} when it is meant", text);
	}
}

/* Bytes of the escape that begins at p[0]: its letters are no letters of the text. */
static size_t escape(const uint8_t *p, size_t n)
{
	size_t k = 2;

	if (n > 2 && p[1] == 'x')
		k = 4;
	else if (n > 2 && p[1] == 'u' && p[2] == '{')
		while (k < n && p[k - 1] != '}')
			k++;
	return k < n ? k : n;
}

/* The n bytes at `from`. */
static void look(struct lint *l, sv text, struct cedar_span from, size_t n)
{
	const uint8_t *p = (const uint8_t *)text.p + from.off;
	utf8proc_int32_t c = 0, before = ' ';

	l->at = from;
	l->script = S_NONE;
	for (size_t i = 0; i < n;) {
		utf8proc_ssize_t k = utf8proc_iterate(p + i, (utf8proc_ssize_t)(n - i), &c);

		if (k <= 0)
			return;
		if (l->string && c == '\\') {
			size_t e = escape(p + i, n - i);

			l->at.off = from.off + (uint32_t)i;
			end_word(l);
			i += e;
			l->at.col += (uint32_t)e;
			before = ' ';
			continue;
		}
		l->at.off = from.off + (uint32_t)i;
		l->at.len = (uint32_t)k;
		if (is_letter(c))
			letter(l, c);
		else if (c != 0x200c && c != 0x200d && !is_bidi(c) && !is_invisible(c, before) &&
		         utf8proc_category(c) != UTF8PROC_CATEGORY_MN)
			end_word(l);
		if (c >= 0x7f || c < 0x20)
			one(l, c, before);
		before = c;
		i += (size_t)k;
		if (c == '\n') {
			l->at.line++;
			l->at.col = 1;
		} else {
			l->at.col++;
		}
	}
	l->at.off = from.off + (uint32_t)n;
	end_word(l);
}

void cedar_lint(sv text, struct cedar_diags *ds)
{
	struct cedar_span gap = { 0, 0, 1, 1 };
	struct lint l = { .ds = ds };
	struct cedar_lex lex;
	struct cedar_tok t;
	bool plain = true;

	for (size_t i = 0; i < text.n && plain; i++)
		plain =
		    (uint8_t)text.p[i] < 0x7f && ((uint8_t)text.p[i] >= 0x20 || text.p[i] == '\n' ||
		                                     text.p[i] == '\t' || text.p[i] == '\r');
	if (plain || !sv_is_utf8(text))
		return;
	cedar_lex_init(&lex, text, (struct cedar_span){ 0 });
	do {
		t = cedar_lex_next(&lex);
		l.string = false;
		look(&l, text, gap, t.span.off - gap.off);
		l.string = t.kind == CEDAR_T_STRING;
		if (l.string)
			look(&l, text, t.span, t.text.n);
		gap = (struct cedar_span){ (uint32_t)lex.at, 0, lex.line, lex.col };
	} while (t.kind != CEDAR_T_END && ds->n < CEDAR_LINT_MAX);
}
