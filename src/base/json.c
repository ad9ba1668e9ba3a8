/* The limits in front of jansson. See json.h. Hostile input.
 *
 * js_scan walks the bytes once without judging the grammar: it knows strings from structure, counts
 * depth and values, and so bounds what jansson's recursion and allocation can come to. Whatever it
 * lets through, jansson still has to accept. */
#include "base/json.h"

#include "base/buf.h"

#include "base/ban.h"

#define DEPTH_MAX 512 /* jansson recurses; its own limit is 2048 */

struct scan {
	sv text;
	size_t at;
	int line, col;
};

static void step(struct scan *s)
{
	unsigned char c = (unsigned char)s->text.p[s->at++];

	if (c == '\n') {
		s->line++;
		s->col = 1;
	} else if ((c & 0xc0) != 0x80) {
		s->col++;
	}
}

static int fail_at(const struct scan *s, enum box_code code, const char *what, struct box_err *err)
{
	return box_fail(err, code, 0, "%d:%d: %s", s->line, s->col, what);
}

/* Step over a string; the cursor is on its quote. An open string is left for jansson to refuse. */
static void skip_string(struct scan *s)
{
	step(s);
	while (s->at < s->text.n && s->text.p[s->at] != '"') {
		if (s->text.p[s->at] == '\\' && s->at + 1 < s->text.n)
			step(s);
		step(s);
	}
	if (s->at < s->text.n)
		step(s);
}

static bool is_word(char c)
{
	return c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9') ||
	       (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static int js_scan(sv text, struct js_limits lim, struct box_err *err)
{
	struct scan s = { text, 0, 1, 1 };
	size_t depth = 0, values = 0;

	while (s.at < s.text.n) {
		struct scan here = s;
		char c = text.p[s.at];

		if (c == '{' || c == '[') {
			if (++depth > lim.depth)
				return fail_at(
				    &here, BOX_ELIMIT, "the JSON value is nested too deep", err);
			step(&s);
			values++;
		} else if (c == '"') {
			/* Keys count too: an upper bound is all that is needed, so the limit is
			 * doubled below. */
			skip_string(&s);
			values++;
		} else if (is_word(c)) {
			while (s.at < s.text.n && is_word(text.p[s.at]))
				step(&s);
			values++;
		} else {
			if ((c == '}' || c == ']') && depth > 0)
				depth--;
			step(&s);
		}
		if (values / 2 > lim.values)
			return fail_at(&here, BOX_ELIMIT, "the JSON value has too many parts", err);
	}
	return 0;
}

/* Where text stops being UTF-8. */
static int fail_utf8(sv text, struct box_err *err)
{
	struct scan s = { text, 0, 1, 1 };

	for (;;) {
		size_t k = 1;

		while (k <= 4 && k <= text.n - s.at && !sv_is_utf8(sv_sub(text, s.at, k)))
			k++;
		if (k > 4 || k > text.n - s.at)
			break;
		while (k-- > 0)
			step(&s);
	}
	return fail_at(&s, BOX_EPARSE, "the JSON text is not UTF-8", err);
}

json_t *js_parse(sv text, struct js_limits lim, struct box_err *err)
{
	json_error_t je;
	json_t *j;

	if (text.n > lim.bytes) {
		(void)box_fail(err, BOX_ELIMIT, 0, "the JSON text is larger than %zu bytes",
		    lim.bytes); /* always -1 */
		return NULL;
	}
	if (lim.depth > DEPTH_MAX)
		lim.depth = DEPTH_MAX;
	if (!sv_is_utf8(text)) {
		(void)fail_utf8(text, err); /* always -1 */
		return NULL;
	}
	if (js_scan(text, lim, err) != 0)
		return NULL;
	j = json_loadb(
	    text.n != 0 ? text.p : "", text.n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &je);
	if (j == NULL) {
		/* Before the first byte jansson says line -1. Its text may quote a piece of the
		 * input. */
		struct scan at = { text, 0, je.line > 0 ? je.line : 1,
			je.column > 0 ? je.column : 1 };
		bool nomem = json_error_code(&je) == json_error_out_of_memory;
		AUTO_BUF shown = buf_with(1024);
		const char *why;

		buf_put_escaped(&shown, sv_c(je.text));
		why = buf_cstr(&shown);
		(void)fail_at(&at, nomem ? BOX_ENOMEM : BOX_EPARSE,
		    why != NULL ? why : "invalid JSON", err); /* always -1 */
	}
	return j;
}
