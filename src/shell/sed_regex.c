/* sed: escapes in patterns. See sed.h. */
#include "shell/sed.h"

#include <string.h>

#include "base/ban.h"

static int digit_value(char c, int base)
{
	int v = c >= '0' && c <= '9'   ? c - '0'
	        : c >= 'a' && c <= 'f' ? c - 'a' + 10
	        : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                               : 99;

	return v < base ? v : -1;
}

int sed_escape(const char **p, const char *end)
{
	static const char from[] = "afrtv", to[] = "\a\f\r\t\v";
	const char *s = *p, *q;
	int base, most, v = 0, n = 0;

	if (s == end)
		return -1;
	q = *s != '\0' ? strchr(from, *s) : NULL;
	if (q != NULL) {
		*p = s + 1;
		return to[q - from];
	}
	if (*s == 'c' && s + 1 < end) {
		unsigned char c = (unsigned char)s[1];

		*p = s + 2;
		return (c >= 'a' && c <= 'z' ? c - 32 : c) ^ 0x40;
	}
	base = *s == 'd' ? 10 : *s == 'o' ? 8 : *s == 'x' ? 16 : 0;
	most = base == 16 ? 2 : 3;
	if (base == 0)
		return -1;
	for (s++; n < most && s < end && digit_value(*s, base) >= 0; n++)
		v = v * base + digit_value(*s++, base);
	if (n == 0)
		return -1;
	*p = s;
	return v & 0xff;
}

/* The text of a bracket expression, up to and with its ]. Escapes of sed work inside, but nothing
 * is special there. */
static const char *copy_bracket(struct buf *out, const char *p, const char *end)
{
	buf_put_byte(out, (uint8_t)*p++);
	if (p < end && *p == '^')
		buf_put_byte(out, (uint8_t)*p++);
	if (p < end && *p == ']')
		buf_put_byte(out, (uint8_t)*p++);
	while (p < end && *p != ']') {
		if (*p == '[' && p + 1 < end && (p[1] == ':' || p[1] == '.' || p[1] == '=')) {
			char close[2] = { p[1], ']' };
			const char *q = memmem(p + 2, (size_t)(end - p - 2), close, 2);

			if (q != NULL) {
				buf_put(out, p, (size_t)(q + 2 - p));
				p = q + 2;
				continue;
			}
		}
		if (*p == '\\' && p + 1 < end) {
			const char *q = p + 1;
			int c = *q == 'n' ? (q++, '\n') : sed_escape(&q, end);

			if (c >= 0) {
				buf_put_byte(out, (uint8_t)c);
				p = q;
				continue;
			}
		}
		buf_put_byte(out, (uint8_t)*p++);
	}
	if (p < end)
		buf_put_byte(out, (uint8_t)*p++);
	return p;
}

const char *sed_compile(struct sed *s, struct sed_re *re, sv text, bool icase, bool multi)
{
	AUTO_BUF out = buf_with(SHCMD_LINE_MAX);
	const char *p = text.n != 0 ? text.p : "", *end = p + text.n;
	reg_syntax_t syntax = s->extended ? RE_SYNTAX_POSIX_EXTENDED
	                                  : RE_SYNTAX_POSIX_BASIC & ~RE_UNMATCHED_RIGHT_PAREN_ORD;

	re->empty = text.n == 0;
	if (re->empty)
		return icase || multi ? "no previous regular expression modifiers" : NULL;
	while (p < end) {
		if (*p == '[') {
			p = copy_bracket(&out, p, end);
		} else if (*p == '\\' && p + 1 < end) {
			const char *q = p + 1;
			int c = sed_escape(&q, end);

			if (c < 0) {
				buf_put(&out, p, 2);
				p += 2;
				continue;
			}
			/* Special characters stay special, as in GNU sed 4.9. */
			buf_put_byte(&out, (uint8_t)c);
			p = q;
		} else {
			buf_put_byte(&out, (uint8_t)*p++);
		}
	}
	if (!buf_ok(&out))
		return "Memory exhausted";
	syntax &= ~RE_DOT_NOT_NULL;
	syntax |= RE_NO_POSIX_BACKTRACKING | (icase ? RE_ICASE : 0);
	return text_re_compile(&re->re, buf_sv(&out), syntax, multi && s->delim == '\n');
}
