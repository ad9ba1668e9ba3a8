/* sed: from the script's text to commands. See sed.h. Hostile input: the script may be anything. */
#include "shell/sed.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ban.h"

#define BLOCKS_MAX   256
#define SED_NO_LABEL 4 /* GNU sed panics there */

struct parser {
	struct sed *s;
	const char *p, *begin, *end;
	size_t blocks[BLOCKS_MAX]; /* indices of open { */
	size_t blocks_n;
	bool failed;
};

/* "sed: -e expression #1, char 3: text" with the number of characters read. */
static int fail(struct parser *p, const char *text)
{
	struct sed *s = p->s;
	size_t at = (size_t)(p->p - p->begin);
	const struct sed_source *src = &s->sources[0];

	for (size_t i = 1; i < s->sources_n && s->sources[i].from < at; i++)
		src = &s->sources[i];
	if (p->failed)
		return -1;
	p->failed = true;
	if (src->file != NULL) {
		size_t line = 1;

		for (size_t i = src->from; i < at; i++)
			line += p->begin[i] == '\n';
		(void)shcmd_err(s->io, "file %s line %zu: %s", src->file, line, text);
	} else {
		(void)shcmd_err(
		    s->io, "-e expression #%d, char %zu: %s", src->number, at - src->from, text);
	}
	return -1;
}

static int peek(const struct parser *p)
{
	return p->p < p->end ? (unsigned char)*p->p : -1;
}

static int next(struct parser *p)
{
	return p->p < p->end ? (unsigned char)*p->p++ : -1;
}

static void skip_blanks(struct parser *p)
{
	while (peek(p) == ' ' || peek(p) == '\t')
		p->p++;
}

static void skip_space(struct parser *p)
{
	while (peek(p) == ' ' || (peek(p) >= '\t' && peek(p) <= '\r'))
		p->p++;
}

static int no_memory(struct parser *p)
{
	if (!p->failed)
		(void)shcmd_err(p->s->io, "memory exhausted");
	p->failed = true;
	return -1;
}

static sv keep(struct parser *p, sv s)
{
	sv copy = arena_dup(p->s->io->arena, s);

	if (copy.p == NULL)
		(void)no_memory(p);
	return copy;
}

/* What must stand behind a command without arguments. */
static int end_of_command(struct parser *p)
{
	int c;

	skip_blanks(p);
	c = peek(p);
	if (c < 0 || c == '}' || c == '#')
		return 0;
	p->p++;
	if (c == '\n' || c == ';' || (c == '\r' && (peek(p) == '\n' || peek(p) < 0)))
		return 0;
	return fail(p, "extra characters after command");
}

static uint64_t read_number(struct parser *p)
{
	uint64_t v = 0;

	while (peek(p) >= '0' && peek(p) <= '9') {
		if (v < UINT64_MAX / 16)
			v = v * 10 + (uint64_t)(peek(p) - '0');
		p->p++;
	}
	return v;
}

/* A bracket expression, whole; the [ was read. A \n in it is a newline, other backslashes are ordinary. */
static int read_bracket(struct parser *p, struct buf *out)
{
	int c = '[', class = 0;

	buf_put_byte(out, '[');
	if (peek(p) == '^')
		buf_put_byte(out, (uint8_t)next(p));
	if (peek(p) == ']')
		buf_put_byte(out, (uint8_t)next(p));
	while ((c = next(p)) >= 0 && c != '\n') {
		if (c == '\\' && peek(p) == 'n' && class == 0) {
			p->p++;
			c = '\n';
		}
		buf_put_byte(out, (uint8_t)c);
		if (class != 0) {
			/* Inside [: :], [. .] or [= =]: only its own end counts. */
			if (c == class && peek(p) == ']') {
				buf_put_byte(out, (uint8_t)next(p));
				class = 0;
			}
		} else if (c == '[' && (peek(p) == ':' || peek(p) == '.' || peek(p) == '=')) {
			class = next(p);
			buf_put_byte(out, (uint8_t) class);
		} else if (c == ']') {
			return 0;
		}
	}
	return -1;
}

/* The text up to an unescaped delimiter (in a pattern a bracket expression protects it). An escaped delimiter loses its backslash; in a pattern \n is a newline. Without a closing delimiter on
 * the line: -1. */
static int read_delimited(struct parser *p, int delim, bool pattern, struct buf *out)
{
	int c;

	while ((c = next(p)) >= 0 && c != '\n') {
		if (c == delim)
			return 0;
		if (c == '[' && pattern) {
			if (read_bracket(p, out) != 0)
				return -1;
			continue;
		}
		if (c == '\\') {
			c = next(p);
			if (c < 0)
				return -1;
			if (c == 'n' && pattern && delim != 'n')
				c = '\n';
			else if (c != '\n' && (c != delim || (!pattern && c == '&')))
				buf_put_byte(out, '\\');
		}
		buf_put_byte(out, (uint8_t)c);
	}
	if (c == '\n')
		p->p--;
	return -1;
}

/* --- addresses --- */

static struct sed_re *read_re(struct parser *p, int delim)
{
	AUTO_BUF text = buf_with(SHCMD_LINE_MAX);
	struct sed_re *re;
	bool icase = false, multi = false;
	const char *why;

	if (read_delimited(p, delim, true, &text) != 0) {
		(void)fail(p, "unterminated address regex");
		return NULL;
	}
	for (;;) {
		if (peek(p) == 'I')
			icase = true;
		else if (peek(p) == 'M')
			multi = true;
		else
			break;
		p->p++;
	}
	re = ARENA_NEW(p->s->io->arena, struct sed_re);
	if (re == NULL) {
		(void)no_memory(p);
		return NULL;
	}
	why = sed_compile(p->s, re, buf_sv(&text), icase, multi);
	if (why != NULL)
		(void)fail(p, why);
	return re; /* freed with the command even when it failed */
}

/* 1: an address was read, 0: there is none, -1. */
static int read_addr(struct parser *p, struct sed_addr *a)
{
	int c = peek(p);

	if (c == '$') {
		p->p++;
		a->kind = SED_ADDR_LAST;
		return 1;
	}
	if (c == '/' || c == '\\') {
		p->p++;
		if (c == '\\')
			c = next(p);
		if (c < 0 || c == '\n')
			return fail(p, "unexpected `,'");
		a->kind = SED_ADDR_RE;
		a->re = read_re(p, c);
		return p->failed ? -1 : 1;
	}
	if (c < '0' || c > '9')
		return 0;
	a->n = read_number(p);
	a->kind = SED_ADDR_LINE;
	skip_blanks(p);
	if (peek(p) == '~') {
		p->p++;
		skip_blanks(p);
		a->m = read_number(p);
		a->kind = a->m != 0 ? SED_ADDR_STEP : SED_ADDR_LINE;
	}
	return 1;
}

static int read_second(struct parser *p, struct sed_addr *a)
{
	int c, r;

	skip_blanks(p);
	c = peek(p);
	if (c == '+' || c == '~') {
		p->p++;
		if (peek(p) < '0' || peek(p) > '9')
			return fail(p, "unexpected `,'");
		a->n = read_number(p);
		a->kind = c == '+' ? SED_ADDR_PLUS : SED_ADDR_MULT;
		return 0;
	}
	r = read_addr(p, a);
	if (r == 0) {
		(void)next(p); /* it is counted in the message */
		return fail(p, "unexpected `,'");
	}
	return r < 0 ? -1 : 0;
}

static int read_addresses(struct parser *p, struct sed_cmd *c)
{
	int r = read_addr(p, &c->a1);

	if (r < 0)
		return -1;
	skip_blanks(p);
	if (r > 0 && peek(p) == ',') {
		p->p++;
		if (read_second(p, &c->a2) != 0)
			return -1;
	}
	if (c->a1.kind == SED_ADDR_LINE && c->a1.n == 0) {
		if (c->a2.kind != SED_ADDR_RE)
			p->p += p->p < p->end; /* the command letter is counted in the message */
		if (c->a2.kind != SED_ADDR_RE)
			return fail(p, "invalid usage of line address 0");
		c->a1.kind = SED_ADDR_ZERO;
		c->active = true;
	}
	skip_space(p);
	while (peek(p) == '!') {
		p->p++;
		skip_space(p);
		if (peek(p) == '!') {
			p->p++;
			return fail(p, "multiple `!'s");
		}
		c->negate = true;
	}
	return 0;
}

/* --- files --- */

static sv read_file_name(struct parser *p)
{
	const char *from;

	if (p->s->sandbox) {
		(void)fail(p, "e/r/w commands disabled in sandbox mode");
		return (sv){ NULL, 0 };
	}
	skip_blanks(p);
	from = p->p;
	while (peek(p) >= 0 && peek(p) != '\n')
		p->p++;
	return keep(p, (sv){ from, (size_t)(p->p - from) });
}

/* Opened here, as POSIX says: before the first line is read, and truncated even if nothing is ever written. */
static struct sed_file *output_file(struct parser *p)
{
	sv name = read_file_name(p);
	struct sed *s = p->s;
	struct sed_file *f;

	if (name.p == NULL)
		return NULL;
	if (name.n == 0) {
		(void)fail(p, "missing filename in r/R/w/W commands");
		return NULL;
	}
	for (f = s->files; f != NULL; f = f->next)
		if (strcmp(f->name, name.p) == 0)
			return f;
	f = ARENA_NEW(s->io->arena, struct sed_file);
	if (f == NULL) {
		(void)no_memory(p);
		return NULL;
	}
	*f = (struct sed_file){ .name = name.p, .fd = -1, .next = s->files };
	if (strcmp(name.p, "/dev/stdout") == 0) {
		f->out = s->io->out;
	} else if (strcmp(name.p, "/dev/stderr") == 0) {
		f->out = s->io->err;
	} else {
		f->fd = shcmd_open_write(s->io, name.p, O_CREAT | O_TRUNC);
		if (f->fd < 0) {
			if (s->io->last.why == FILES_ERRNO)
				(void)shcmd_err(
				    s->io, "couldn't open file %s: %s", name.p, s->io->last.text);
			else
				(void)shcmd_open_err(s->io, name.p); /* status 4 below */
			p->failed = true;
			return NULL;
		}
		sh_out_init(&f->own, f->fd);
		f->out = &f->own;
	}
	s->files = f;
	return f;
}

static struct sed_reader *input_file(struct parser *p, sv name)
{
	struct sed_reader *r;

	for (r = p->s->readers; r != NULL; r = r->next)
		if (strcmp(r->name, name.p) == 0)
			return r;
	r = ARENA_NEW(p->s->io->arena, struct sed_reader);
	if (r == NULL) {
		(void)no_memory(p);
		return NULL;
	}
	*r = (struct sed_reader){ .name = name.p, .fd = -1, .next = p->s->readers };
	p->s->readers = r;
	return r;
}

/* --- s and y --- */

static int add_piece(
    struct parser *p, struct sed_subst *s, struct buf *text, int group, enum sed_case change)
{
	struct sed_piece *v =
	    text_grow(p->s->io, s->pieces, &s->pieces_cap, s->pieces_n + 1, sizeof(*v));
	sv t;

	if (v == NULL) {
		p->failed = true;
		return -1;
	}
	s->pieces = v;
	t = keep(p, buf_sv(text));
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

static int parse_replacement(struct parser *p, struct sed_subst *s, sv text, int *most)
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
		return no_memory(p);
	return plain.n != 0 ? add_piece(p, s, &plain, -1, SED_CASE_KEEP) : 0;
}

struct subst_flags {
	bool icase, multi, end, print, global, number;
};

static int read_subst_flag(struct parser *p, struct sed_subst *s, struct subst_flags *f)
{
	int c = next(p);

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
		return fail(
		    p, "the e flag is not available in this shell: nothing may be run out of data");
	case 'p':
		if (f->print)
			return fail(p, "multiple `p' options to `s' command");
		f->print = s->print = true;
		return 0;
	case 'g':
		if (f->global)
			return fail(p, "multiple `g' options to `s' command");
		f->global = s->global = true;
		return 0;
	case 'w':
		s->w = output_file(p);
		f->end = true;
		return s->w != NULL ? 0 : -1;
	case '}':
	case '#':
		p->p--;
		f->end = true;
		return 0;
	case '\r':
		if (peek(p) == '\n' || peek(p) < 0)
			return 0;
		return fail(p, "unknown option to `s'");
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
			return fail(p, "unknown option to `s'");
		p->p--;
		if (f->number)
			return fail(p, "multiple number options to `s' command");
		f->number = true;
		s->number = read_number(p);
		return s->number != 0 ? 0 : fail(p, "number option to `s' command may not be zero");
	}
}

static int parse_subst(struct parser *p, struct sed_cmd *c)
{
	AUTO_BUF pattern = buf_with(SHCMD_LINE_MAX);
	AUTO_BUF with = buf_with(SHCMD_LINE_MAX);
	struct subst_flags f = { 0 };
	const char *why;
	int delim = next(p), most;

	c->s = ARENA_NEW(p->s->io->arena, struct sed_subst);
	if (c->s == NULL)
		return no_memory(p);
	c->s->number = 1;
	if (delim < 0 || delim == '\n' || delim == '\\')
		return fail(p, "unterminated `s' command");
	if (read_delimited(p, delim, true, &pattern) != 0 ||
	    read_delimited(p, delim, false, &with) != 0)
		return fail(p, "unterminated `s' command");
	if (parse_replacement(p, c->s, buf_sv(&with), &most) != 0)
		return -1;
	while (!f.end)
		if (read_subst_flag(p, c->s, &f) != 0)
			return -1;
	why = sed_compile(p->s, &c->s->re, buf_sv(&pattern), f.icase, f.multi);
	if (why != NULL)
		return fail(p, why);
	if (!c->s->re.empty && (size_t)most > text_re_groups(&c->s->re.re)) {
		char text[64];

		(void)snprintf(text, sizeof(text), "invalid reference \\%d on `s' command's RHS",
		    most); /* fits */
		return fail(p, text);
	}
	return 0;
}

/* The characters of one half of y, with \\, \n and \delim undone. */
static int y_chars(struct parser *p, sv text, sv **out, size_t *n)
{
	sv *v = ARENA_VEC(p->s->io->arena, sv, text.n + 1), copy;
	char *b = arena_alloc(p->s->io->arena, text.n + 1, 1);
	size_t at = 0;

	*n = 0;
	if (v == NULL || b == NULL)
		return no_memory(p);
	for (size_t i = 0; i < text.n;) {
		size_t len = 1;

		if (text.p[i] == '\\' && i + 1 < text.n) {
			const char *q = text.p + i + 1;
			int c = *q == '\\'  ? (q++, '\\')
			        : *q == 'n' ? (q++, '\n')
			                    : sed_escape(&q, text.p + text.n);

			if (c < 0)
				return fail(p, "unknown command: `y' has an unknown escape");
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

static int parse_y(struct parser *p, struct sed_cmd *c)
{
	AUTO_BUF from = buf_with(SHCMD_LINE_MAX);
	AUTO_BUF to = buf_with(SHCMD_LINE_MAX);
	int delim = next(p);
	size_t n;

	c->y = ARENA_NEW(p->s->io->arena, struct sed_map);
	if (c->y == NULL)
		return no_memory(p);
	if (delim < 0 || delim == '\n' || delim == '\\' ||
	    read_delimited(p, delim, false, &from) != 0 ||
	    read_delimited(p, delim, false, &to) != 0)
		return fail(p, "unterminated `y' command");
	if (y_chars(p, buf_sv(&from), &c->y->from, &c->y->n) != 0 ||
	    y_chars(p, buf_sv(&to), &c->y->to, &n) != 0)
		return -1;
	if (n != c->y->n)
		return fail(p, "strings for `y' command are different lengths");
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
	return end_of_command(p);
}

/* --- text of a, i, c --- */

/* "a\" newline text, "a text", "a\text": up to a newline without a backslash before it. */
static int parse_text(struct parser *p, struct sed_cmd *c)
{
	AUTO_BUF out = buf_with(SHCMD_LINE_MAX);
	int ch;

	skip_blanks(p);
	if (peek(p) < 0 || peek(p) == '\n')
		return fail(p, "expected \\ after `a', `c' or `i'");
	if (peek(p) == '\\') {
		const char *mark = ++p->p;

		skip_blanks(p);
		if (peek(p) == '\n')
			p->p++;
		else
			p->p = mark; /* one line, its leading blanks kept */
	}
	while ((ch = next(p)) >= 0 && ch != '\n') {
		if (ch == '\\') {
			const char *q = p->p;
			int special = peek(p) == 'n' ? (q++, '\n') : sed_escape(&q, p->end);

			if (special >= 0) {
				buf_put_byte(&out, (uint8_t)special);
				p->p = q;
				continue;
			}
			ch = next(p);
			if (ch < 0)
				break;
		}
		buf_put_byte(&out, (uint8_t)ch);
	}
	/* "a\" at the end of the script adds nothing at all. */
	if (out.n != 0 || ch == '\n')
		buf_put_byte(&out, '\n');
	if (!buf_ok(&out))
		return no_memory(p);
	c->text = keep(p, buf_sv(&out));
	return c->text.p != NULL ? 0 : -1;
}

/* --- commands --- */

static int read_label(struct parser *p, struct sed_cmd *c)
{
	const char *from;
	int ch;

	skip_blanks(p);
	from = p->p;
	while ((ch = peek(p)) >= 0 && ch != ';' && ch != '}' && ch != ' ' &&
	       !(ch >= '\t' && ch <= '\r'))
		p->p++;
	c->text = keep(p, (sv){ from, (size_t)(p->p - from) });
	return c->text.p != NULL ? end_of_command(p) : -1;
}

static int parse_label(struct parser *p, struct sed_cmd *c)
{
	const char *from;

	if (c->a1.kind != SED_ADDR_NONE)
		return fail(p, ": doesn't want any addresses");
	skip_blanks(p);
	from = p->p;
	while (
	    peek(p) >= 0 && peek(p) != '\n' && peek(p) != ';' && peek(p) != ' ' && peek(p) != '\t')
		p->p++;
	if (p->p == from)
		return fail(p, "\":\" lacks a label");
	c->text = keep(p, (sv){ from, (size_t)(p->p - from) });
	return c->text.p != NULL ? end_of_command(p) : -1;
}

static int parse_number_arg(struct parser *p, struct sed_cmd *c)
{
	skip_blanks(p);
	c->number = -1;
	if (peek(p) >= '0' && peek(p) <= '9')
		c->number = (int64_t)(read_number(p) & INT64_MAX);
	return end_of_command(p);
}

static int close_block(struct parser *p, struct sed_cmd *c)
{
	if (c->a1.kind != SED_ADDR_NONE)
		return fail(p, "} doesn't want any addresses");
	if (p->blocks_n == 0)
		return fail(p, "unexpected `}'");
	p->s->cmds[p->blocks[--p->blocks_n]].jump = p->s->cmds_n;
	return end_of_command(p);
}

/* The command letter was read. */
static int parse_arguments(struct parser *p, struct sed_cmd *c)
{
	sv name;

	switch (c->c) {
	case '{':
		if (p->blocks_n == BLOCKS_MAX)
			return fail(p, "too many nested {");
		p->blocks[p->blocks_n++] = p->s->cmds_n;
		return 0;
	case '}':
		return close_block(p, c);
	case ':':
		return parse_label(p, c);
	case 'a':
	case 'i':
	case 'c':
		return parse_text(p, c);
	case 'b':
	case 't':
	case 'T':
		return read_label(p, c);
	case 's':
		return parse_subst(p, c);
	case 'y':
		return parse_y(p, c);
	case 'q':
	case 'Q':
		if (c->a2.kind != SED_ADDR_NONE)
			return fail(p, "command only uses one address");
		return parse_number_arg(p, c);
	case 'l':
	case 'L':
		return parse_number_arg(p, c);
	case 'r':
	case 'R':
		name = read_file_name(p);
		if (name.p == NULL)
			return -1;
		if (name.n == 0)
			return fail(p, "missing filename in r/R/w/W commands");
		c->text = name;
		if (c->c == 'R' && (c->r = input_file(p, name)) == NULL)
			return -1;
		return 0;
	case 'w':
	case 'W':
		c->w = output_file(p);
		return c->w != NULL ? 0 : -1;
	case 'e':
		return fail(p,
		    "the e command is not available in this shell: nothing may be run out of data");
	case '=':
	case 'd':
	case 'D':
	case 'F':
	case 'g':
	case 'G':
	case 'h':
	case 'H':
	case 'n':
	case 'N':
	case 'p':
	case 'P':
	case 'x':
	case 'z':
		return end_of_command(p);
	default: {
		char text[32];

		(void)snprintf(text, sizeof(text), "unknown command: `%c'", c->c); /* fits */
		return fail(p, text);
	}
	}
}

static void skip_comment(struct parser *p)
{
	while (peek(p) >= 0 && peek(p) != '\n')
		p->p++;
}

/* One command, or nothing but space. */
static int parse_command(struct parser *p)
{
	struct sed *s = p->s;
	struct sed_cmd *v, *c;
	int ch;

	while (peek(p) == ';' || peek(p) == ' ' || (peek(p) >= '\t' && peek(p) <= '\r'))
		p->p++;
	if (peek(p) < 0)
		return 0;
	if (peek(p) == '#') {
		skip_comment(p);
		return 0;
	}
	v = text_grow(s->io, s->cmds, &s->cmds_cap, s->cmds_n + 1, sizeof(*v));
	if (v == NULL) {
		p->failed = true;
		return -1;
	}
	s->cmds = v;
	c = &s->cmds[s->cmds_n];
	*c = (struct sed_cmd){ .number = -1 };
	/* Counted at once, so that what it holds is freed if the rest of it is wrong. */
	if (read_addresses(p, c) != 0) {
		s->cmds_n++;
		return -1;
	}
	ch = next(p);
	if (ch < 0) {
		s->cmds_n++;
		return fail(p,
		    c->a1.kind != SED_ADDR_NONE ? "missing command" : "unexpected end of script");
	}
	if (ch == '#') {
		s->cmds_n++;
		return fail(p, "comments don't accept any addresses");
	}
	c->c = (char)ch;
	ch = parse_arguments(p, c);
	s->cmds_n++;
	return ch;
}

/* Labels become indices. */
static int settle_jumps(struct parser *p)
{
	struct sed *s = p->s;

	for (size_t i = 0; i < s->cmds_n; i++) {
		struct sed_cmd *c = &s->cmds[i];
		size_t k;

		if (c->c != 'b' && c->c != 't' && c->c != 'T')
			continue;
		c->jump = s->cmds_n;
		if (c->text.n == 0)
			continue;
		for (k = 0; k < s->cmds_n; k++)
			if (s->cmds[k].c == ':' && sv_eq(s->cmds[k].text, c->text))
				break;
		if (k == s->cmds_n) {
			(void)shcmd_err(s->io, "can't find label for jump to `%s'", c->text.p);
			return SED_NO_LABEL;
		}
		c->jump = k;
	}
	return 0;
}

int sed_parse(struct sed *s)
{
	sv text = buf_sv(&s->script);
	struct parser p = { .s = s, .p = text.p, .begin = text.p, .end = text.p + text.n };

	/* "#n" alone on the first line is -n. */
	if (sv_starts(text, SV("#n")) && (text.n == 2 || text.p[2] == '\n'))
		s->quiet = true;
	while (p.p < p.end && !p.failed)
		if (parse_command(&p) != 0)
			return 1;
	if (p.blocks_n != 0) {
		p.p = p.begin;
		return fail(&p, "unmatched `{'"), 1;
	}
	return p.failed ? 1 : settle_jumps(&p);
}

void sed_free(struct sed *s)
{
	for (size_t i = 0; i < s->cmds_n; i++) {
		struct sed_cmd *c = &s->cmds[i];

		if (c->a1.re != NULL)
			text_re_fini(&c->a1.re->re);
		if (c->a2.re != NULL)
			text_re_fini(&c->a2.re->re);
		if (c->s != NULL) {
			text_re_fini(&c->s->re.re);
			free(c->s->pieces);
		}
	}
	for (struct sed_file *f = s->files; f != NULL; f = f->next) {
		if (f->fd >= 0)
			(void)sh_out_fini(&f->own); /* flushed and asked for its error before */
		fd_drop(&f->fd);
	}
	for (struct sed_reader *r = s->readers; r != NULL; r = r->next) {
		if (r->opened)
			shcmd_in_fini(&r->in);
		fd_drop(&r->fd);
	}
	free(s->cmds);
	free(s->sources);
	buf_fini(&s->script);
}
