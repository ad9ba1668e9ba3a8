/* sed: from the script's text to commands. See sed.h. Hostile input: the script may be anything. */
#include "shell/sed_parse.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ban.h"

#define SED_NO_LABEL 4 /* GNU sed panics there */

/* "sed: -e expression #1, char 3: text" with the number of characters read. */
int sed_fail(struct sed_parser *p, const char *text)
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

void sed_skip_blanks(struct sed_parser *p)
{
	while (sed_peek(p) == ' ' || sed_peek(p) == '\t')
		p->p++;
}

static void skip_space(struct sed_parser *p)
{
	while (sed_peek(p) == ' ' || (sed_peek(p) >= '\t' && sed_peek(p) <= '\r'))
		p->p++;
}

int sed_no_memory(struct sed_parser *p)
{
	if (!p->failed)
		(void)shcmd_err(p->s->io, "memory exhausted");
	p->failed = true;
	return -1;
}

sv sed_keep(struct sed_parser *p, sv s)
{
	sv copy = arena_dup(p->s->io->arena, s);

	if (copy.p == NULL)
		(void)sed_no_memory(p);
	return copy;
}

/* What must stand behind a command without arguments. */
int sed_end_of_command(struct sed_parser *p)
{
	int c;

	sed_skip_blanks(p);
	c = sed_peek(p);
	if (c < 0 || c == '}' || c == '#')
		return 0;
	p->p++;
	if (c == '\n' || c == ';' || (c == '\r' && (sed_peek(p) == '\n' || sed_peek(p) < 0)))
		return 0;
	return sed_fail(p, "extra characters after command");
}

uint64_t sed_read_number(struct sed_parser *p)
{
	uint64_t v = 0;

	while (sed_peek(p) >= '0' && sed_peek(p) <= '9') {
		if (v < UINT64_MAX / 16)
			v = v * 10 + (uint64_t)(sed_peek(p) - '0');
		p->p++;
	}
	return v;
}

/* A bracket expression, whole; the [ was read. A \n in it is a newline, other backslashes are
 * ordinary. */
static int read_bracket(struct sed_parser *p, struct buf *out)
{
	int c = '[', class = 0;

	buf_put_byte(out, '[');
	if (sed_peek(p) == '^')
		buf_put_byte(out, (uint8_t)sed_next(p));
	if (sed_peek(p) == ']')
		buf_put_byte(out, (uint8_t)sed_next(p));
	while ((c = sed_next(p)) >= 0 && c != '\n') {
		if (c == '\\' && sed_peek(p) == 'n' && class == 0) {
			p->p++;
			c = '\n';
		}
		buf_put_byte(out, (uint8_t)c);
		if (class != 0) {
			/* Inside [: :], [. .] or [= =]: only its own end counts. */
			if (c == class && sed_peek(p) == ']') {
				buf_put_byte(out, (uint8_t)sed_next(p));
				class = 0;
			}
		} else if (c == '[' &&
		           (sed_peek(p) == ':' || sed_peek(p) == '.' || sed_peek(p) == '=')) {
			class = sed_next(p);
			buf_put_byte(out, (uint8_t) class);
		} else if (c == ']') {
			return 0;
		}
	}
	return -1;
}

/* The text up to an unescaped delimiter (in a pattern a bracket expression protects it). An escaped
 * delimiter loses its backslash; in a pattern \n is a newline. Without a closing delimiter on the
 * line: -1. */
int sed_read_delimited(struct sed_parser *p, int delim, bool pattern, struct buf *out)
{
	int c;

	while ((c = sed_next(p)) >= 0 && c != '\n') {
		if (c == delim)
			return 0;
		if (c == '[' && pattern) {
			if (read_bracket(p, out) != 0)
				return -1;
			continue;
		}
		if (c == '\\') {
			c = sed_next(p);
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

static struct sed_re *read_re(struct sed_parser *p, int delim)
{
	AUTO_BUF text = buf_with(SHCMD_LINE_MAX);
	struct sed_re *re;
	bool icase = false, multi = false;
	const char *why;

	if (sed_read_delimited(p, delim, true, &text) != 0) {
		(void)sed_fail(p, "unterminated address regex");
		return NULL;
	}
	for (;;) {
		if (sed_peek(p) == 'I')
			icase = true;
		else if (sed_peek(p) == 'M')
			multi = true;
		else
			break;
		p->p++;
	}
	re = ARENA_NEW(p->s->io->arena, struct sed_re);
	if (re == NULL) {
		(void)sed_no_memory(p);
		return NULL;
	}
	why = sed_compile(p->s, re, buf_sv(&text), icase, multi);
	if (why != NULL)
		(void)sed_fail(p, why);
	return re; /* freed with the command even when it failed */
}

/* 1: an address was read, 0: there is none, -1. */
static int read_addr(struct sed_parser *p, struct sed_addr *a)
{
	int c = sed_peek(p);

	if (c == '$') {
		p->p++;
		a->kind = SED_ADDR_LAST;
		return 1;
	}
	if (c == '/' || c == '\\') {
		p->p++;
		if (c == '\\')
			c = sed_next(p);
		if (c < 0 || c == '\n')
			return sed_fail(p, "unexpected `,'");
		a->kind = SED_ADDR_RE;
		a->re = read_re(p, c);
		return p->failed ? -1 : 1;
	}
	if (c < '0' || c > '9')
		return 0;
	a->n = sed_read_number(p);
	a->kind = SED_ADDR_LINE;
	sed_skip_blanks(p);
	if (sed_peek(p) == '~') {
		p->p++;
		sed_skip_blanks(p);
		a->m = sed_read_number(p);
		a->kind = a->m != 0 ? SED_ADDR_STEP : SED_ADDR_LINE;
	}
	return 1;
}

static int read_second(struct sed_parser *p, struct sed_addr *a)
{
	int c, r;

	sed_skip_blanks(p);
	c = sed_peek(p);
	if (c == '+' || c == '~') {
		p->p++;
		if (sed_peek(p) < '0' || sed_peek(p) > '9')
			return sed_fail(p, "unexpected `,'");
		a->n = sed_read_number(p);
		a->kind = c == '+' ? SED_ADDR_PLUS : SED_ADDR_MULT;
		return 0;
	}
	r = read_addr(p, a);
	if (r == 0) {
		(void)sed_next(p); /* it is counted in the message */
		return sed_fail(p, "unexpected `,'");
	}
	return r < 0 ? -1 : 0;
}

static int read_addresses(struct sed_parser *p, struct sed_cmd *c)
{
	int r = read_addr(p, &c->a1);

	if (r < 0)
		return -1;
	sed_skip_blanks(p);
	if (r > 0 && sed_peek(p) == ',') {
		p->p++;
		if (read_second(p, &c->a2) != 0)
			return -1;
	}
	if (c->a1.kind == SED_ADDR_LINE && c->a1.n == 0) {
		if (c->a2.kind != SED_ADDR_RE)
			p->p += p->p < p->end; /* the command letter is counted in the message */
		if (c->a2.kind != SED_ADDR_RE)
			return sed_fail(p, "invalid usage of line address 0");
		c->a1.kind = SED_ADDR_ZERO;
		c->active = true;
	}
	skip_space(p);
	while (sed_peek(p) == '!') {
		p->p++;
		skip_space(p);
		if (sed_peek(p) == '!') {
			p->p++;
			return sed_fail(p, "multiple `!'s");
		}
		c->negate = true;
	}
	return 0;
}

/* --- files --- */

static sv read_file_name(struct sed_parser *p)
{
	const char *from;

	if (p->s->sandbox) {
		(void)sed_fail(p, "e/r/w commands disabled in sandbox mode");
		return (sv){ NULL, 0 };
	}
	sed_skip_blanks(p);
	from = p->p;
	while (sed_peek(p) >= 0 && sed_peek(p) != '\n')
		p->p++;
	return sed_keep(p, (sv){ from, (size_t)(p->p - from) });
}

/* Opened here, as POSIX says: before the first line is read, and truncated even if nothing is ever
 * written. */
struct sed_file *sed_output_file(struct sed_parser *p)
{
	sv name = read_file_name(p);
	struct sed *s = p->s;
	struct sed_file *f;

	if (name.p == NULL)
		return NULL;
	if (name.n == 0) {
		(void)sed_fail(p, "missing filename in r/R/w/W commands");
		return NULL;
	}
	for (f = s->files; f != NULL; f = f->next)
		if (strcmp(f->name, name.p) == 0)
			return f;
	f = ARENA_NEW(s->io->arena, struct sed_file);
	if (f == NULL) {
		(void)sed_no_memory(p);
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

static struct sed_reader *input_file(struct sed_parser *p, sv name)
{
	struct sed_reader *r;

	for (r = p->s->readers; r != NULL; r = r->next)
		if (strcmp(r->name, name.p) == 0)
			return r;
	r = ARENA_NEW(p->s->io->arena, struct sed_reader);
	if (r == NULL) {
		(void)sed_no_memory(p);
		return NULL;
	}
	*r = (struct sed_reader){ .name = name.p, .fd = -1, .next = p->s->readers };
	p->s->readers = r;
	return r;
}

/* --- text of a, i, c --- */

/* "a\" newline text, "a text", "a\text": up to a newline without a backslash before it. */
static int parse_text(struct sed_parser *p, struct sed_cmd *c)
{
	AUTO_BUF out = buf_with(SHCMD_LINE_MAX);
	int ch;

	sed_skip_blanks(p);
	if (sed_peek(p) < 0 || sed_peek(p) == '\n')
		return sed_fail(p, "expected \\ after `a', `c' or `i'");
	if (sed_peek(p) == '\\') {
		const char *mark = ++p->p;

		sed_skip_blanks(p);
		if (sed_peek(p) == '\n')
			p->p++;
		else
			p->p = mark; /* one line, its leading blanks kept */
	}
	while ((ch = sed_next(p)) >= 0 && ch != '\n') {
		if (ch == '\\') {
			const char *q = p->p;
			int special = sed_peek(p) == 'n' ? (q++, '\n') : sed_escape(&q, p->end);

			if (special >= 0) {
				buf_put_byte(&out, (uint8_t)special);
				p->p = q;
				continue;
			}
			ch = sed_next(p);
			if (ch < 0)
				break;
		}
		buf_put_byte(&out, (uint8_t)ch);
	}
	/* "a\" at the end of the script adds nothing at all. */
	if (out.n != 0 || ch == '\n')
		buf_put_byte(&out, '\n');
	if (!buf_ok(&out))
		return sed_no_memory(p);
	c->text = sed_keep(p, buf_sv(&out));
	return c->text.p != NULL ? 0 : -1;
}

/* --- commands --- */

static int read_label(struct sed_parser *p, struct sed_cmd *c)
{
	const char *from;
	int ch;

	sed_skip_blanks(p);
	from = p->p;
	while ((ch = sed_peek(p)) >= 0 && ch != ';' && ch != '}' && ch != ' ' &&
	       !(ch >= '\t' && ch <= '\r'))
		p->p++;
	c->text = sed_keep(p, (sv){ from, (size_t)(p->p - from) });
	return c->text.p != NULL ? sed_end_of_command(p) : -1;
}

static int parse_label(struct sed_parser *p, struct sed_cmd *c)
{
	const char *from;

	if (c->a1.kind != SED_ADDR_NONE)
		return sed_fail(p, ": doesn't want any addresses");
	sed_skip_blanks(p);
	from = p->p;
	while (sed_peek(p) >= 0 && sed_peek(p) != '\n' && sed_peek(p) != ';' &&
	       sed_peek(p) != ' ' && sed_peek(p) != '\t')
		p->p++;
	if (p->p == from)
		return sed_fail(p, "\":\" lacks a label");
	c->text = sed_keep(p, (sv){ from, (size_t)(p->p - from) });
	return c->text.p != NULL ? sed_end_of_command(p) : -1;
}

static int parse_number_arg(struct sed_parser *p, struct sed_cmd *c)
{
	sed_skip_blanks(p);
	c->number = -1;
	if (sed_peek(p) >= '0' && sed_peek(p) <= '9')
		c->number = (int64_t)(sed_read_number(p) & INT64_MAX);
	return sed_end_of_command(p);
}

static int close_block(struct sed_parser *p, struct sed_cmd *c)
{
	if (c->a1.kind != SED_ADDR_NONE)
		return sed_fail(p, "} doesn't want any addresses");
	if (p->blocks_n == 0)
		return sed_fail(p, "unexpected `}'");
	p->s->cmds[p->blocks[--p->blocks_n]].jump = p->s->cmds_n;
	return sed_end_of_command(p);
}

/* The command letter was read. */
static int parse_arguments(struct sed_parser *p, struct sed_cmd *c)
{
	sv name;

	switch (c->c) {
	case '{':
		if (p->blocks_n == SED_BLOCKS_MAX)
			return sed_fail(p, "too many nested {");
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
		return sed_parse_subst(p, c);
	case 'y':
		return sed_parse_y(p, c);
	case 'q':
	case 'Q':
		if (c->a2.kind != SED_ADDR_NONE)
			return sed_fail(p, "command only uses one address");
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
			return sed_fail(p, "missing filename in r/R/w/W commands");
		c->text = name;
		if (c->c == 'R' && (c->r = input_file(p, name)) == NULL)
			return -1;
		return 0;
	case 'w':
	case 'W':
		c->w = sed_output_file(p);
		return c->w != NULL ? 0 : -1;
	case 'e':
		return sed_fail(p,
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
		return sed_end_of_command(p);
	default: {
		char text[32];

		(void)snprintf(text, sizeof(text), "unknown command: `%c'", c->c); /* fits */
		return sed_fail(p, text);
	}
	}
}

static void skip_comment(struct sed_parser *p)
{
	while (sed_peek(p) >= 0 && sed_peek(p) != '\n')
		p->p++;
}

/* One command, or nothing but space. */
static int parse_command(struct sed_parser *p)
{
	struct sed *s = p->s;
	struct sed_cmd *v, *c;
	int ch;

	while (sed_peek(p) == ';' || sed_peek(p) == ' ' ||
	       (sed_peek(p) >= '\t' && sed_peek(p) <= '\r'))
		p->p++;
	if (sed_peek(p) < 0)
		return 0;
	if (sed_peek(p) == '#') {
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
	ch = sed_next(p);
	if (ch < 0) {
		s->cmds_n++;
		return sed_fail(p,
		    c->a1.kind != SED_ADDR_NONE ? "missing command" : "unexpected end of script");
	}
	if (ch == '#') {
		s->cmds_n++;
		return sed_fail(p, "comments don't accept any addresses");
	}
	c->c = (char)ch;
	ch = parse_arguments(p, c);
	s->cmds_n++;
	return ch;
}

/* Labels become indices. */
static int settle_jumps(struct sed_parser *p)
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
	sv text = s->script.n != 0 ? buf_sv(&s->script) : SV("");
	struct sed_parser p = { .s = s, .p = text.p, .begin = text.p, .end = text.p + text.n };

	/* "#n" alone on the first line is -n. */
	if (sv_starts(text, SV("#n")) && (text.n == 2 || text.p[2] == '\n'))
		s->quiet = true;
	while (p.p < p.end && !p.failed)
		if (parse_command(&p) != 0)
			return 1;
	if (p.blocks_n != 0) {
		p.p = p.begin;
		return sed_fail(&p, "unmatched `{'"), 1;
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
