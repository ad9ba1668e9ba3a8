/* The strings of TOML: basic, literal, and the multi-line form of each. See toml.h. Hostile
 * input. */
#include "base/toml_int.h"

#include <string.h>

#include "base/ban.h"

static bool is_forbidden(int c)
{
	return (c < 0x20 && c != '\t') || c == 0x7f;
}

/* \uXXXX and \UXXXXXXXX: a Unicode scalar value. The cursor is behind the u. */
static int read_unicode(struct toml_in *in, size_t digits, int line, int col)
{
	uint64_t cp;
	sv hex = sv_sub(in->text, in->at, digits);

	if (hex.n != digits || !sv_to_u64(hex, 16, UINT32_MAX, &cp))
		return toml_fail_at(in, line, col, "\\%c needs exactly %zu hexadecimal digits",
		    digits == 4 ? 'u' : 'U', digits);
	if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return toml_fail_at(in, line, col,
		    "\\%c%.*s is not a Unicode character; surrogates and numbers over 10FFFF are "
		    "not",
		    digits == 4 ? 'u' : 'U', (int)hex.n, hex.p);
	for (size_t i = 0; i < digits; i++)
		toml_step(in);
	buf_put_utf8(&in->tmp, (uint32_t)cp);
	return 0;
}

/* A backslash at the end of a line: it, the line's end and all white space after it vanish. 1: it
 * was one. */
static int line_continuation(struct toml_in *in)
{
	size_t k = 0;
	bool ended = false;
	int r;

	while (toml_peek(in, k) == ' ' || toml_peek(in, k) == '\t')
		k++;
	if (toml_peek(in, k) != '\n' && (toml_peek(in, k) != '\r' || toml_peek(in, k + 1) != '\n'))
		return 0;
	for (;;) {
		toml_skip_ws(in);
		r = toml_newline(in);
		if (r < 0)
			return -1;
		if (r == 0)
			return ended ? 1 : 0;
		ended = true;
	}
}

/* The cursor is on the backslash. */
static int read_escape(struct toml_in *in, bool multi)
{
	int line = in->line, col = in->col, c, r;

	toml_step(in);
	if (multi) {
		r = line_continuation(in);
		if (r != 0)
			return r < 0 ? -1 : 0;
	}
	c = toml_peek(in, 0);
	if (c < 0)
		return toml_fail_at(in, line, col, "the string ends in the middle of an escape");
	if (c == 'u' || c == 'U') {
		toml_step(in);
		return read_unicode(in, c == 'u' ? 4 : 8, line, col);
	}
	static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
	const char *q = c != 0 ? strchr(from, c) : NULL;

	if (q == NULL)
		return toml_fail_at(in, line, col,
		    "\\%s is not an escape; write \\\\ for a backslash, or one of \\b \\t \\n \\f "
		    "\\r \\\" "
		    "\\uXXXX \\UXXXXXXXX",
		    toml_here(in).t);
	buf_put_byte(&in->tmp, (uint8_t)to[q - from]);
	toml_step(in);
	return 0;
}

static size_t count_quotes(const struct toml_in *in, int q)
{
	size_t n = 0;

	while (n < 6 && toml_peek(in, n) == q)
		n++;
	return n;
}

/* One ordinary character of a string, or a line's end in a multi-line one (kept as LF). */
static int read_plain(struct toml_in *in, bool multi)
{
	int c = toml_peek(in, 0), r;

	if (c == '\n' || c == '\r') {
		if (!multi && (c == '\n' || toml_peek(in, 1) == '\n'))
			return toml_fail_at(in, in->line, in->col,
			    "the string is not closed on its line; close it, or use three quotes "
			    "for a "
			    "string of several lines");
		r = toml_newline(in);
		if (r < 0)
			return -1;
		buf_put_byte(&in->tmp, '\n');
		return 0;
	}
	if (is_forbidden(c))
		return toml_fail_at(in, in->line, in->col,
		    "control character 0x%02x in a string; write it as \\u%04X in a \"basic\" "
		    "string",
		    (unsigned)c, (unsigned)c);
	buf_put_byte(&in->tmp, (uint8_t)c);
	toml_step(in);
	return 0;
}

/* Behind the opening three quotes. */
static int read_multi(struct toml_in *in, int q, int line, int col)
{
	if (toml_peek(in, 0) == '\n' || (toml_peek(in, 0) == '\r' && toml_peek(in, 1) == '\n'))
		(void)toml_newline(in); /* a newline right after the opening is dropped */
	for (;;) {
		int c = toml_peek(in, 0);

		if (c < 0)
			return toml_fail_at(in, line, col,
			    "this string is never closed; close it with %c%c%c", q, q, q);
		if (c == q) {
			/* One or two quotes are content; the last three of up to five close. */
			size_t n = count_quotes(in, q);
			size_t content = n < 3 ? n : n - 3;

			if (n > 5)
				content = 2; /* the sixth is then an error behind the string */
			for (size_t i = 0; i < content; i++)
				buf_put_byte(&in->tmp, (uint8_t)q);
			for (size_t i = 0; i < content + (n < 3 ? 0 : 3); i++)
				toml_step(in);
			if (n >= 3)
				return 0;
			continue;
		}
		if (c == '\\' && q == '"') {
			if (read_escape(in, true) != 0)
				return -1;
			continue;
		}
		if (read_plain(in, true) != 0)
			return -1;
	}
}

/* Behind the opening quote. */
static int read_single(struct toml_in *in, int q, int line, int col)
{
	for (;;) {
		int c = toml_peek(in, 0);

		if (c < 0)
			return toml_fail_at(
			    in, line, col, "this string is never closed; close it with %c", q);
		if (c == q) {
			toml_step(in);
			return 0;
		}
		if (c == '\\' && q == '"') {
			if (read_escape(in, false) != 0)
				return -1;
			continue;
		}
		if (read_plain(in, false) != 0)
			return -1;
	}
}

int toml_read_string(struct toml_in *in, bool allow_multi, sv *out)
{
	int q = toml_peek(in, 0), line = in->line, col = in->col, r;
	bool multi = toml_peek(in, 1) == q && toml_peek(in, 2) == q;

	buf_clear(&in->tmp);
	if (multi && !allow_multi)
		return toml_fail_at(
		    in, line, col, "a key cannot be a multi-line string; use one pair of quotes");
	toml_step(in);
	if (multi) {
		toml_step(in);
		toml_step(in);
		r = read_multi(in, q, line, col);
	} else {
		r = read_single(in, q, line, col);
	}
	if (r != 0)
		return -1;
	if (!buf_ok(&in->tmp))
		return box_nomem(in->err, "a TOML string");
	*out = arena_dup(in->a, buf_sv(&in->tmp));
	if (out->p == NULL)
		return box_nomem(in->err, "a TOML string");
	return 0;
}
