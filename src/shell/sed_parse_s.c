/* sed: the arguments of s and y. See sed_parse.h. Hostile input. */
#include "shell/sed_parse.h"

#include <stdio.h>
#include <string.h>

#include "base/ban.h"

static int add_piece(
    struct sed_parser *p, struct sed_subst *s, struct buf *text, int group, enum sed_case change)
{
	struct sed_piece *v =
	    text_grow(p->s->io, s->pieces, &s->pieces_cap, s->pieces_n + 1, sizeof(*v));
	sv t;

	if (v == NULL) {
		p->failed = true;
		return -1;
	}
	s->pieces = v;
	t = sed_keep(p, buf_sv(text));
	buf_clear(text);
	v[s->pieces_n++] = (struct sed_piece){ t, group, change };
	return t.p != NULL ? 0 : -1;
}

static enum sed_case case_of(char c)
{
	return c == 'U'   ? SED_CASE_UPPER
	       : c == 'L' ? SED_CASE_LOWER
	       : c == 'E' ? SED_CASE_END
	       : c == 'u' ? SED_CASE_UPPER_ONE
	       : c == 'l' ? SED_CASE_LOWER_ONE
	                  : SED_CASE_KEEP;
}

static int parse_replacement(struct sed_parser *p, struct sed_subst *s, sv text, int *most)
{
	AUTO_BUF plain = buf_with(SHCMD_LINE_MAX);
	const char *q = text.p, *end = text.p + text.n;

	*most = 0;
	while (q < end) {
		char c = *q++;
		int special;

		if (c == '&') {
			if (add_piece(p, s, &plain, 0, SED_CASE_KEEP) != 0)
				return -1;
			continue;
		}
		if (c != '\\' || q == end) {
			buf_put_byte(&plain, (uint8_t)c);
			continue;
		}
		if (*q >= '0' && *q <= '9') {
			*most = *q - '0' > *most ? *q - '0' : *most;
			if (add_piece(p, s, &plain, *q++ - '0', SED_CASE_KEEP) != 0)
				return -1;
			continue;
		}
		if (case_of(*q) != SED_CASE_KEEP) {
			if (add_piece(p, s, &plain, -1, case_of(*q++)) != 0)
				return -1;
			continue;
		}
		special = sed_escape(&q, end);
		if (special < 0) {
			special = *q == 'n' ? '\n' : (unsigned char)*q;
			q++;
		}
		buf_put_byte(&plain, (uint8_t)special);
	}
	if (!buf_ok(&plain))
		return sed_no_memory(p);
	return plain.n != 0 ? add_piece(p, s, &plain, -1, SED_CASE_KEEP) : 0;
}

struct subst_flags {
	bool icase, multi, end, print, global, number;
};

static int read_subst_flag(struct sed_parser *p, struct sed_subst *s, struct subst_flags *f)
{
	int c = sed_next(p);

	switch (c) {
	case 'i':
	case 'I':
		f->icase = true;
		return 0;
	case 'm':
	case 'M':
		f->multi = true;
		return 0;
	case 'e':
		return sed_fail(
		    p, "the e flag is not available in this shell: nothing may be run out of data");
	case 'p':
		if (f->print)
			return sed_fail(p, "multiple `p' options to `s' command");
		f->print = s->print = true;
		return 0;
	case 'g':
		if (f->global)
			return sed_fail(p, "multiple `g' options to `s' command");
		f->global = s->global = true;
		return 0;
	case 'w':
		s->w = sed_output_file(p);
		f->end = true;
		return s->w != NULL ? 0 : -1;
	case '}':
	case '#':
		p->p--;
		f->end = true;
		return 0;
	case '\r':
		if (sed_peek(p) == '\n' || sed_peek(p) < 0)
			return 0;
		return sed_fail(p, "unknown option to `s'");
	case -1:
	case '\n':
	case ';':
		f->end = true;
		return 0;
	case ' ':
	case '\t':
		return 0;
	default:
		if (c < '0' || c > '9')
			return sed_fail(p, "unknown option to `s'");
		p->p--;
		if (f->number)
			return sed_fail(p, "multiple number options to `s' command");
		f->number = true;
		s->number = sed_read_number(p);
		return s->number != 0 ? 0
		                      : sed_fail(p, "number option to `s' command may not be zero");
	}
}

int sed_parse_subst(struct sed_parser *p, struct sed_cmd *c)
{
	AUTO_BUF pattern = buf_with(SHCMD_LINE_MAX);
	AUTO_BUF with = buf_with(SHCMD_LINE_MAX);
	struct subst_flags f = { 0 };
	const char *why;
	int delim = sed_next(p), most;

	c->s = ARENA_NEW(p->s->io->arena, struct sed_subst);
	if (c->s == NULL)
		return sed_no_memory(p);
	c->s->number = 1;
	if (delim < 0 || delim == '\n' || delim == '\\')
		return sed_fail(p, "unterminated `s' command");
	if (sed_read_delimited(p, delim, true, &pattern) != 0 ||
	    sed_read_delimited(p, delim, false, &with) != 0)
		return sed_fail(p, "unterminated `s' command");
	if (parse_replacement(p, c->s, with.n != 0 ? buf_sv(&with) : SV(""), &most) != 0)
		return -1;
	while (!f.end)
		if (read_subst_flag(p, c->s, &f) != 0)
			return -1;
	why = sed_compile(p->s, &c->s->re, buf_sv(&pattern), f.icase, f.multi);
	if (why != NULL)
		return sed_fail(p, why);
	if (!c->s->re.empty && (size_t)most > text_re_groups(&c->s->re.re)) {
		char text[64];

		(void)snprintf(text, sizeof(text), "invalid reference \\%d on `s' command's RHS",
		    most); /* fits */
		return sed_fail(p, text);
	}
	return 0;
}

/* The characters of one half of y, with \\, \n and \delim undone. */
static int y_chars(struct sed_parser *p, sv text, sv **out, size_t *n)
{
	sv *v = ARENA_VEC(p->s->io->arena, sv, text.n + 1), copy;
	char *b = arena_alloc(p->s->io->arena, text.n + 1, 1);
	size_t at = 0;

	*n = 0;
	if (v == NULL || b == NULL)
		return sed_no_memory(p);
	for (size_t i = 0; i < text.n;) {
		size_t len = 1;

		if (text.p[i] == '\\' && i + 1 < text.n) {
			const char *q = text.p + i + 1;
			int c = *q == '\\'  ? (q++, '\\')
			        : *q == 'n' ? (q++, '\n')
			                    : sed_escape(&q, text.p + text.n);

			if (c < 0)
				return sed_fail(p, "unknown command: `y' has an unknown escape");
			b[at] = (char)c;
			i = (size_t)(q - text.p);
		} else {
			while (p->s->utf8 && len < 4 && i + len < text.n &&
			       ((unsigned char)text.p[i + len] & 0xc0) == 0x80)
				len++;
			memcpy(b + at, text.p + i, len);
			i += len;
		}
		copy = (sv){ b + at, len };
		at += len;
		v[(*n)++] = copy;
	}
	*out = v;
	return 0;
}

int sed_parse_y(struct sed_parser *p, struct sed_cmd *c)
{
	AUTO_BUF from = buf_with(SHCMD_LINE_MAX);
	AUTO_BUF to = buf_with(SHCMD_LINE_MAX);
	int delim = sed_next(p);
	size_t n;

	c->y = ARENA_NEW(p->s->io->arena, struct sed_map);
	if (c->y == NULL)
		return sed_no_memory(p);
	if (delim < 0 || delim == '\n' || delim == '\\' ||
	    sed_read_delimited(p, delim, false, &from) != 0 ||
	    sed_read_delimited(p, delim, false, &to) != 0)
		return sed_fail(p, "unterminated `y' command");
	if (y_chars(p, buf_sv(&from), &c->y->from, &c->y->n) != 0 ||
	    y_chars(p, buf_sv(&to), &c->y->to, &n) != 0)
		return -1;
	if (n != c->y->n)
		return sed_fail(p, "strings for `y' command are different lengths");
	c->y->bytes_only = true;
	for (int i = 0; i < 256; i++)
		c->y->byte[i] = (unsigned char)i;
	for (size_t i = 0; i < n; i++) {
		if (c->y->from[i].n != 1 || c->y->to[i].n != 1)
			c->y->bytes_only = false;
		else
			c->y->byte[(unsigned char)c->y->from[i].p[0]] =
			    (unsigned char)c->y->to[i].p[0];
	}
	return sed_end_of_command(p);
}
