/* Backslash sequences and quoting. See escape.h. */
#include "shell/escape.h"

#include <string.h>

#include "base/ban.h"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* Up to max digits of base at text[*i]; how many were read. */
static size_t digits(sv text, size_t *i, int base, size_t max, uint32_t *out)
{
	size_t n = 0;
	uint32_t v = 0;

	while (n < max && *i < text.n) {
		int d = hex_digit(text.p[*i]);

		if (d < 0 || d >= base)
			break;
		v = v * (uint32_t)base + (uint32_t)d;
		n++;
		(*i)++;
	}
	*out = v;
	return n;
}

static int simple_escape(char c)
{
	switch (c) {
	case 'a':
		return '\a';
	case 'b':
		return '\b';
	case 'f':
		return '\f';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	case 'v':
		return '\v';
	case 'e':
	case 'E':
		return 27;
	case '\\':
		return '\\';
	default:
		return -1;
	}
}

/* \x, \u, \U: *i is behind the letter. false: no digit follows. */
static bool hex_escape(struct buf *out, sv text, size_t *i, char c)
{
	uint32_t v;

	if (digits(text, i, 16, c == 'x' ? 2 : c == 'u' ? 4 : 8, &v) == 0)
		return false;
	if (c == 'x')
		buf_put_byte(out, (uint8_t)v);
	else
		buf_put_utf8(out, v);
	return true;
}

static bool octal_escape(struct buf *out, sv text, size_t *i, char c, enum sh_esc mode)
{
	uint32_t v;

	if (mode == SH_ESC_ECHO) {
		if (c != '0')
			return false;
		(void)digits(text, i, 8, 3, &v);
	} else if (mode == SH_ESC_PRINTF_B && c == '0') {
		(void)digits(text, i, 8, 3, &v);
	} else {
		(*i)--;
		(void)digits(text, i, 8, 3, &v);
	}
	buf_put_byte(out, (uint8_t)v);
	return true;
}

bool sh_unescape(struct buf *out, sv text, enum sh_esc mode)
{
	for (size_t i = 0; i < text.n;) {
		char c = text.p[i++];
		int e;

		if (c != '\\' || i == text.n) {
			buf_put_byte(out, (uint8_t)c);
			continue;
		}
		c = text.p[i++];
		if ((e = simple_escape(c)) >= 0) {
			buf_put_byte(out, (uint8_t)e);
		} else if (c >= '0' && c <= '7' && octal_escape(out, text, &i, c, mode)) {
			continue;
		} else if ((c == 'x' || c == 'u' || c == 'U') && hex_escape(out, text, &i, c)) {
			continue;
		} else if (c == 'c' && mode == SH_ESC_ANSI_C && i < text.n) {
			if (text.p[i] == '\\' && i + 1 < text.n && text.p[i + 1] == '\\')
				i++;
			buf_put_byte(out, (uint8_t)(text.p[i++] & 0x1f));
		} else if (c == 'c' && (mode == SH_ESC_ECHO || mode == SH_ESC_PRINTF_B)) {
			return false;
		} else if ((c == '\'' || c == '"' || c == '?') &&
		           (mode == SH_ESC_ANSI_C || (mode == SH_ESC_PRINTF && c != '?') ||
		               (mode == SH_ESC_PRINTF_B && c != '?'))) {
			buf_put_byte(out, (uint8_t)c);
		} else {
			buf_put_byte(out, '\\');
			buf_put_byte(out, (uint8_t)c);
		}
	}
	return true;
}

/* --- quoting --- */

static bool has_control(sv s)
{
	for (size_t i = 0; i < s.n; i++) {
		if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
			return true;
	}
	return !sv_is_utf8(s);
}

static void ansi_quote(struct buf *out, sv s)
{
	static const char letters[] = "abtnvfr";
	bool utf8 = sv_is_utf8(s);

	buf_put_c(out, "$'");
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c >= 7 && c <= 13)
			buf_putf(out, "\\%c", letters[c - 7]);
		else if (c == 27)
			buf_put_c(out, "\\E");
		else if (c == '\'' || c == '\\')
			buf_putf(out, "\\%c", c);
		else if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8))
			buf_putf(out, "\\%03o", c);
		else
			buf_put_byte(out, c);
	}
	buf_put_c(out, "'");
}

void sh_quote(struct buf *out, sv text, bool ansi)
{
	if (ansi && has_control(text))
		ansi_quote(out, text);
	else
		buf_put_shell_word(out, text);
}

void sh_quote_backslash(struct buf *out, sv text)
{
	if (text.n == 0) {
		buf_put_c(out, "''");
		return;
	}
	if (has_control(text)) {
		ansi_quote(out, text);
		return;
	}
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];

		if (strchr(" !\"$&'()*,;<>?[\\]^`{|}", c) != NULL ||
		    (i == 0 && (c == '#' || c == '~')) ||
		    (c == '~' && i > 0 && (text.p[i - 1] == ':' || text.p[i - 1] == '=')))
			buf_put_byte(out, '\\');
		buf_put_byte(out, (uint8_t)c);
	}
}
