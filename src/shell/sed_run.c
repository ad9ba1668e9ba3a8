/* sed: the machine. See sed.h. One cycle a line; memory: the two spaces, and with -i the output of one file. */
#include "shell/sed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>
#include <wctype.h>

#include "base/fd.h"
#include "base/ban.h"

#define BAD_INPUT 2 /* a file could not be read */
#define PANIC     4 /* output failed */

struct space {
	char *p;
	size_t n, cap;
	bool chomped; /* the line had its newline */
};

/* Text that a, r and R leave for the end of the cycle. */
struct late {
	sv text;          /* a */
	const char *file; /* r */
	char *line;       /* R: ours to free */
	size_t line_n;
	bool line_ended;
};

struct machine {
	struct sed *s;
	struct sh_io *io;
	/* input */
	char **names;
	struct sh_in in;
	int fd;
	bool open;
	const char *name;      /* of the current line */
	const char *next_name; /* of the line that waits */
	struct space ahead;    /* one line is read in advance, to know the last */
	bool have_ahead, ahead_starts_file;
	uint64_t line;
	/* state */
	struct space pattern, hold, scratch;
	bool replaced, again; /* again: D starts the next cycle without reading */
	struct sed_re *last_re;
	struct late *late;
	size_t late_n, late_cap;
	int quit; /* -1: no q yet; else its status */
	int status;
	bool failed;
	/* output */
	bool missing_newline;
	struct buf edited; /* -i: what the file will hold */
	bool editing;
};

/* --- spaces --- */

static bool put(struct machine *m, struct space *t, const char *p, size_t n)
{
	char *q;
	size_t need;

	if (!add_sz(t->n, n, &need) || (q = text_grow(m->io, t->p, &t->cap, need + 1, 1)) == NULL) {
		m->failed = true;
		return false;
	}
	t->p = q;
	if (n != 0)
		memcpy(t->p + t->n, p, n);
	t->n += n;
	return true;
}

static sv view(const struct space *t)
{
	return (sv){ t->p != NULL ? t->p : "", t->n };
}

static void copy_space(struct machine *m, struct space *to, const struct space *from)
{
	to->n = 0;
	(void)put(m, to, from->p, from->n); /* m->failed tells */
	to->chomped = from->chomped;
}

static void swap_spaces(struct space *a, struct space *b)
{
	struct space t = *a;

	*a = *b;
	*b = t;
}

/* --- output --- */

static void out_bytes(struct machine *m, const char *p, size_t n)
{
	if (m->editing)
		buf_put(&m->edited, p, n);
	else
		shcmd_put(m->io, p, n);
}

/* A last line without newline gets it when something follows. */
static void out_missing(struct machine *m)
{
	if (m->missing_newline)
		out_bytes(m, &m->s->delim, 1);
	m->missing_newline = false;
}

static void out_flush(struct machine *m)
{
	if (m->s->unbuffered && !m->editing)
		(void)shcmd_flush(m->io); /* a failure is seen by shcmd_out_dead */
}

static void out_text(struct machine *m, sv text)
{
	out_missing(m);
	out_bytes(m, text.p, text.n);
	out_flush(m);
}

static void out_line(struct machine *m, sv text, bool newline)
{
	out_missing(m);
	out_bytes(m, text.p, text.n);
	if (newline)
		out_bytes(m, &m->s->delim, 1);
	m->missing_newline = !newline;
	out_flush(m);
}

static void out_pattern(struct machine *m)
{
	out_line(m, view(&m->pattern), m->pattern.chomped);
}

/* To a file of w. /dev/stdout is the output itself. */
static void write_file(struct machine *m, struct sed_file *f, sv text, bool newline)
{
	if (f->out == m->io->out && !m->editing) {
		out_line(m, text, newline);
		return;
	}
	if (f->missing_newline)
		sh_out_put(f->out, &m->s->delim, 1);
	sh_out_put(f->out, text.p, text.n);
	if (newline)
		sh_out_put(f->out, &m->s->delim, 1);
	f->missing_newline = !newline;
	/* As the original: a reader of the file sees the line at once. */
	(void)sh_out_flush(f->out); /* the error stays in f->out->err */
}

/* --- late text --- */

static struct late *add_late(struct machine *m)
{
	struct late *v = text_grow(m->io, m->late, &m->late_cap, m->late_n + 1, sizeof(*v));

	if (v == NULL) {
		m->failed = true;
		return NULL;
	}
	m->late = v;
	v[m->late_n] = (struct late){ 0 };
	return &v[m->late_n++];
}

/* A file of r; what cannot be read is as good as empty (POSIX), but a refusal is said. */
static void out_file(struct machine *m, const char *name)
{
	AUTO_FD fd = shcmd_open_read(m->io, name);
	char block[16384];
	ssize_t n;

	if (fd < 0) {
		if (m->io->last.why != FILES_ERRNO)
			(void)shcmd_open_err(
			    m->io, name); /* the run goes on, as without the file */
		return;
	}
	while ((n = shcmd_read(m->io, fd, block, sizeof(block))) > 0)
		out_bytes(m, block, (size_t)n);
}

static void out_late(struct machine *m)
{
	for (size_t i = 0; i < m->late_n; i++) {
		struct late *l = &m->late[i];

		out_missing(m);
		if (l->file != NULL)
			out_file(m, l->file);
		else if (l->line != NULL)
			out_line(m, (sv){ l->line, l->line_n }, l->line_ended);
		else
			out_bytes(m, l->text.p, l->text.n);
		free(l->line);
		l->line = NULL;
	}
	m->late_n = 0;
	out_flush(m);
}

static void read_late_line(struct machine *m, struct sed_reader *r)
{
	struct late *l;
	sv line;

	if (!r->opened) {
		if (r->fd == -2)
			return;
		r->fd = shcmd_open_read(m->io, r->name);
		if (r->fd < 0) {
			if (m->io->last.why != FILES_ERRNO)
				(void)shcmd_open_err(m->io, r->name); /* goes on without */
			r->fd = -2;
			return;
		}
		shcmd_in_init(&r->in, m->io, r->fd);
		r->opened = true;
	}
	if (shcmd_getline(&r->in, m->s->delim, &line) <= 0)
		return;
	l = add_late(m);
	if (l == NULL)
		return;
	l->line_ended = line.p[line.n - 1] == m->s->delim;
	l->line_n = line.n - l->line_ended;
	l->line = malloc(line.n);
	if (l->line == NULL) {
		m->failed = true;
		return;
	}
	memcpy(l->line, line.p, l->line_n);
	l->line_ended = true; /* R adds the newline that the file lacks */
}

/* --- input --- */

static void close_input(struct machine *m)
{
	if (!m->open)
		return;
	/* After q, what was read in advance is still the next reader's. */
	if (m->have_ahead)
		m->in.pos -= m->ahead.n + m->ahead.chomped;
	shcmd_in_fini(&m->in);
	fd_drop(&m->fd);
	m->open = false;
}

static bool is_regular(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* The next file that can be opened. */
static bool open_next(struct machine *m)
{
	while (*m->names != NULL) {
		const char *name = *m->names++;
		bool std = strcmp(name, "-") == 0 && !m->s->in_place;

		m->fd = shcmd_open_read(m->io, std ? "-" : name);
		if (m->fd < 0) {
			if (m->io->last.why == FILES_BROKEN) {
				m->status = shcmd_open_err(m->io, name);
				m->failed = true;
				return false;
			}
			if (m->io->last.why != FILES_ERRNO)
				(void)shcmd_open_err(m->io, name); /* status below */
			else if (m->io->last.sys != EISDIR)
				(void)shcmd_err(m->io, "can't read %s: %s", name, m->io->last.text);
			else if (m->s->in_place)
				(void)shcmd_err(
				    m->io, "couldn't edit %s: not a regular file", name);
			else
				(void)shcmd_err(m->io, "read error on %s: Is a directory", name);
			m->status = m->io->last.sys == EISDIR ? PANIC : BAD_INPUT;
			if (m->io->last.sys == EISDIR && !m->s->in_place) {
				m->failed = true; /* GNU sed ends there too */
				return false;
			}
			continue;
		}
		if (m->s->in_place && !is_regular(m->fd)) {
			(void)shcmd_err(m->io, "couldn't edit %s: not a regular file", name);
			m->status = PANIC;
			fd_drop(&m->fd);
			continue;
		}
		shcmd_in_init(&m->in, m->io, m->fd);
		m->open = true;
		m->next_name = name;
		return true;
	}
	return false;
}

/* Read one line in advance. With -s and -i not over the end of a file. */
static void read_ahead(struct machine *m)
{
	sv line;

	m->have_ahead = false;
	while (m->open || open_next(m)) {
		int r = shcmd_getline(&m->in, m->s->delim, &line);

		if (r > 0) {
			m->ahead.n = 0;
			m->ahead.chomped = line.p[line.n - 1] == m->s->delim;
			m->have_ahead = put(m, &m->ahead, line.p, line.n - m->ahead.chomped);
			return;
		}
		if (r < 0) {
			(void)shcmd_err(
			    m->io, "read error on %s: %s", m->next_name, box_strerror(m->in.err));
			m->status = BAD_INPUT;
		}
		close_input(m);
		if (m->s->separate)
			return;
	}
}

static bool is_last(const struct machine *m)
{
	return !m->have_ahead;
}

/* The next line into the pattern space (behind what is there, when `more`). False: there is none. */
static bool read_pattern(struct machine *m, bool more)
{
	out_late(m);
	m->replaced = false;
	if (!m->have_ahead)
		return false;
	if (more) {
		if (!put(m, &m->pattern, m->ahead.p, m->ahead.n))
			return false;
		m->pattern.chomped = m->ahead.chomped;
	} else {
		swap_spaces(&m->pattern, &m->ahead);
	}
	m->name = m->next_name;
	m->line++;
	read_ahead(m);
	return !m->failed;
}

/* --- addresses --- */

static bool search(
    struct machine *m, struct sed_re *re, sv text, size_t from, size_t *start, size_t *end)
{
	if (re->empty) {
		if (m->last_re == NULL) {
			(void)shcmd_err(
			    m->io, "-e expression #1, char 0: no previous regular expression");
			m->failed = true;
			return false;
		}
		re = m->last_re;
	}
	m->last_re = re;
	return text_re_search(&re->re, text, from, start, end);
}

static bool matches_one(struct machine *m, const struct sed_addr *a)
{
	size_t start, end;

	switch (a->kind) {
	case SED_ADDR_LINE:
		return m->line == a->n;
	case SED_ADDR_STEP:
		return m->line >= a->n && (m->line - a->n) % a->m == 0;
	case SED_ADDR_LAST:
		return is_last(m);
	case SED_ADDR_RE:
		return search(m, a->re, view(&m->pattern), 0, &start, &end);
	case SED_ADDR_NONE:
		return true;
	case SED_ADDR_ZERO:
	case SED_ADDR_PLUS:
	case SED_ADDR_MULT:
		return false;
	}
	return false;
}

/* The first line of a range: does it go on? */
static void begin_range(struct machine *m, struct sed_cmd *c)
{
	switch (c->a2.kind) {
	case SED_ADDR_LINE:
		c->range_end = c->a2.n;
		break;
	case SED_ADDR_PLUS:
		c->range_end = m->line + c->a2.n;
		break;
	case SED_ADDR_MULT:
		c->range_end = c->a2.n == 0 || m->line % c->a2.n == 0
		                   ? m->line
		                   : (m->line / c->a2.n + 1) * c->a2.n;
		break;
	case SED_ADDR_NONE:
	case SED_ADDR_STEP:
	case SED_ADDR_LAST:
	case SED_ADDR_RE:
	case SED_ADDR_ZERO:
		c->active = true; /* ends where the second address matches, from the next line on */
		return;
	}
	c->active = c->range_end > m->line;
}

static bool matches_range(struct machine *m, struct sed_cmd *c)
{
	if (!c->active) {
		if (!matches_one(m, &c->a1))
			return false;
		/* "2,$" on the last line is one line. */
		begin_range(m, c);
		return true;
	}
	switch (c->a2.kind) {
	case SED_ADDR_LINE:
	case SED_ADDR_PLUS:
	case SED_ADDR_MULT:
		if (m->line >= c->range_end)
			c->active = false;
		if (m->line > c->range_end)
			/* n or N read over the end: a new range may begin here. */
			return c->a1.kind == SED_ADDR_LINE ? false : matches_range(m, c);
		return true;
	case SED_ADDR_NONE:
	case SED_ADDR_STEP:
	case SED_ADDR_LAST:
	case SED_ADDR_RE:
	case SED_ADDR_ZERO:
		if (matches_one(m, &c->a2))
			c->active = false;
		return true;
	}
	return true;
}

static bool is_selected(struct machine *m, struct sed_cmd *c)
{
	bool yes = c->a2.kind == SED_ADDR_NONE ? matches_one(m, &c->a1) : matches_range(m, c);

	return yes != c->negate;
}

/* --- s --- */

struct recase {
	enum sed_case mode, one;
};

/* Text with the case that \U, \L, \u and \l asked for. */
static void put_cased(struct machine *m, struct recase *r, sv text)
{
	struct space *to = &m->scratch;

	if (r->mode == SED_CASE_KEEP && r->one == SED_CASE_KEEP) {
		(void)put(m, to, text.p, text.n); /* m->failed tells */
		return;
	}
	for (size_t i = 0; i < text.n;) {
		enum sed_case how = r->one == SED_CASE_UPPER_ONE   ? SED_CASE_UPPER
		                    : r->one == SED_CASE_LOWER_ONE ? SED_CASE_LOWER
		                                                   : r->mode;
		mbstate_t mb = { 0 };
		char out[MB_LEN_MAX];
		wchar_t wc = 0;
		size_t n = m->s->utf8 ? mbrtowc(&wc, text.p + i, text.n - i, &mb) : 1;

		r->one = SED_CASE_KEEP;
		if (n == 0 || n == (size_t)-1 || n == (size_t)-2 || !m->s->utf8 ||
		    (unsigned char)text.p[i] < 0x80) {
			char c = text.p[i++];

			if (how == SED_CASE_UPPER && c >= 'a' && c <= 'z')
				c = (char)(c - 32);
			else if (how == SED_CASE_LOWER && c >= 'A' && c <= 'Z')
				c = (char)(c + 32);
			(void)put(m, to, &c, 1); /* m->failed tells */
			continue;
		}
		wc = how == SED_CASE_UPPER   ? (wchar_t)towupper((wint_t)wc)
		     : how == SED_CASE_LOWER ? (wchar_t)towlower((wint_t)wc)
		                             : wc;
		mb = (mbstate_t){ 0 };
		size_t w = wcrtomb(out, wc, &mb);

		if (w == (size_t)-1)
			(void)put(m, to, text.p + i, n); /* m->failed tells */
		else
			(void)put(m, to, out, w); /* m->failed tells */
		i += n;
	}
}

static sv group_of(struct machine *m, sv text, size_t start, size_t end, int group)
{
	const struct text_re *re = &m->last_re->re;
	size_t i = (size_t)group;

	if (group == 0)
		return sv_sub(text, start, end - start);
	if (re->literal != NULL || i > text_re_groups(re) || re->regs.start[i] < 0)
		return (sv){ "", 0 };
	return sv_sub(
	    text, (size_t)re->regs.start[i], (size_t)(re->regs.end[i] - re->regs.start[i]));
}

static void put_replacement(
    struct machine *m, const struct sed_subst *s, sv text, size_t start, size_t end)
{
	struct recase r = { SED_CASE_KEEP, SED_CASE_KEEP };

	for (size_t i = 0; i < s->pieces_n; i++) {
		const struct sed_piece *p = &s->pieces[i];

		put_cased(m, &r, p->text);
		if (p->group >= 0)
			put_cased(m, &r, group_of(m, text, start, end, p->group));
		switch (p->change) {
		case SED_CASE_KEEP:
			break;
		case SED_CASE_UPPER:
		case SED_CASE_LOWER:
			r.mode = p->change;
			break;
		case SED_CASE_END:
			r.mode = r.one = SED_CASE_KEEP;
			break;
		case SED_CASE_UPPER_ONE:
		case SED_CASE_LOWER_ONE:
			r.one = p->change;
			break;
		}
	}
}

/* Bytes of the character at `at`; one that is no UTF-8 is one byte. */
static size_t char_len(const struct machine *m, sv text, size_t at)
{
	mbstate_t mb = { 0 };
	size_t n;

	if (!m->s->utf8 || (unsigned char)text.p[at] < 0x80)
		return 1;
	n = mbrlen(text.p + at, text.n - at, &mb);
	return n == (size_t)-1 || n == (size_t)-2 || n == 0 ? 1 : n;
}

static void substitute(struct machine *m, struct sed_cmd *c)
{
	struct sed_subst *s = c->s;
	sv text = view(&m->pattern);
	size_t from = 0, start, end, last_end = SIZE_MAX;
	uint64_t count = 0;
	bool done = false;

	m->scratch.n = 0;
	while (from <= text.n && !m->failed && search(m, &s->re, text, from, &start, &end)) {
		bool empty = start == end;

		(void)put(m, &m->scratch, text.p + from, start - from); /* m->failed tells */
		/* An empty match right behind another match is none. */
		if (!(empty && start == last_end)) {
			count++;
			if (count < s->number) {
				(void)put(
				    m, &m->scratch, text.p + start, end - start); /* as above */
			} else {
				put_replacement(m, s, text, start, end);
				done = true;
			}
		}
		last_end = end;
		from = end;
		if (empty) {
			size_t n = from < text.n ? char_len(m, text, from) : 1;

			if (from < text.n)
				(void)put(m, &m->scratch, text.p + from, n); /* as above */
			from += n;
		}
		if (done && !s->global)
			break;
	}
	if (!done || m->failed)
		return;
	if (from < text.n)
		(void)put(m, &m->scratch, text.p + from, text.n - from); /* as above */
	m->scratch.chomped = m->pattern.chomped;
	swap_spaces(&m->pattern, &m->scratch);
	m->replaced = true;
	if (s->print)
		out_pattern(m);
	if (s->w != NULL)
		write_file(m, s->w, view(&m->pattern), m->pattern.chomped);
}

/* --- other commands --- */

static void transliterate(struct machine *m, const struct sed_map *y)
{
	sv text = view(&m->pattern);

	if (y->bytes_only) {
		for (size_t i = 0; i < m->pattern.n; i++)
			m->pattern.p[i] = (char)y->byte[(unsigned char)m->pattern.p[i]];
		return;
	}
	m->scratch.n = 0;
	for (size_t i = 0; i < text.n;) {
		size_t n = char_len(m, text, i);
		sv c = sv_sub(text, i, n), to = c;

		for (size_t k = 0; k < y->n; k++)
			if (sv_eq(y->from[k], c)) {
				to = y->to[k];
				break;
			}
		(void)put(m, &m->scratch, to.p, to.n); /* m->failed tells */
		i += n;
	}
	m->scratch.chomped = m->pattern.chomped;
	swap_spaces(&m->pattern, &m->scratch);
}

/* l: unambiguous, folded (POSIX). */
static void list_pattern(struct machine *m, int64_t width)
{
	static const char from[] = "\\\a\b\f\n\r\t\v", to[] = "\\abfnrtv";
	size_t column = 0, most = width > 0 ? (size_t)width - 1 : SIZE_MAX;
	char one[8];

	out_missing(m);
	for (size_t i = 0; i < m->pattern.n; i++) {
		unsigned char c = (unsigned char)m->pattern.p[i];
		const char *q = c != 0 ? strchr(from, c) : NULL;
		size_t n;

		if (q != NULL) {
			one[0] = '\\';
			one[1] = to[q - from];
			n = 2;
		} else if (c >= 0x20 && c < 0x7f) {
			one[0] = (char)c;
			n = 1;
		} else {
			one[0] = '\\';
			one[1] = (char)('0' + (c >> 6));
			one[2] = (char)('0' + (c >> 3 & 7));
			one[3] = (char)('0' + (c & 7));
			n = 4;
		}
		if (column + n > most) {
			out_bytes(m, "\\\n", 2);
			column = 0;
		}
		out_bytes(m, one, n);
		column += n;
	}
	out_bytes(m, "$\n", 2);
	out_flush(m);
}

static void out_number(struct machine *m)
{
	char text[32];
	size_t i = sizeof(text);
	uint64_t v = m->line;

	text[--i] = '\n';
	do {
		text[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v != 0);
	out_text(m, (sv){ text + i, sizeof(text) - i });
}

enum step { GO_ON, END_CYCLE, END_SILENT, QUIT };

/* n, N: the end of the input ends the script; GNU sed still prints then. */
static enum step read_more(struct machine *m, bool append)
{
	if (is_last(m))
		return END_CYCLE;
	if (append) {
		if (!put(m, &m->pattern, &m->s->delim, 1))
			return QUIT;
	} else if (!m->s->quiet) {
		out_pattern(m);
	}
	return read_pattern(m, append) ? GO_ON : QUIT;
}

static enum step delete_first_line(struct machine *m)
{
	char *nl = m->pattern.n != 0 ? memchr(m->pattern.p, m->s->delim, m->pattern.n) : NULL;
	size_t n;

	if (nl == NULL)
		return END_SILENT;
	n = (size_t)(nl + 1 - m->pattern.p);
	memmove(m->pattern.p, nl + 1, m->pattern.n - n);
	m->pattern.n -= n;
	m->again = true;
	return END_SILENT;
}

static sv first_line(const struct machine *m)
{
	sv head, tail;

	(void)sv_cut(
	    view(&m->pattern), m->s->delim, &head, &tail); /* all of it without a newline */
	return head;
}

static enum step do_command(struct machine *m, struct sed_cmd *c, size_t *at)
{
	struct late *l;

	switch (c->c) {
	case '{':
	case '}':
	case ':':
		return GO_ON;
	case '=':
		out_number(m);
		return GO_ON;
	case 'a':
		if ((l = add_late(m)) != NULL)
			l->text = c->text;
		return GO_ON;
	case 'i':
		out_text(m, c->text);
		return GO_ON;
	case 'c':
		if (c->a2.kind == SED_ADDR_NONE || !c->active || c->negate)
			out_text(m, c->text);
		return END_SILENT;
	case 'b':
		*at = c->jump;
		return GO_ON;
	case 't':
	case 'T':
		if (m->replaced == (c->c == 't'))
			*at = c->jump;
		m->replaced = false;
		return GO_ON;
	case 'd':
		return END_SILENT;
	case 'D':
		return delete_first_line(m);
	case 'F':
		out_text(m, sv_c(m->name));
		out_text(m, SV("\n"));
		return GO_ON;
	case 'g':
		copy_space(m, &m->pattern, &m->hold);
		return GO_ON;
	case 'G':
		(void)put(m, &m->pattern, &m->s->delim, 1);      /* m->failed tells */
		(void)put(m, &m->pattern, m->hold.p, m->hold.n); /* as above */
		m->pattern.chomped = m->hold.chomped;
		return GO_ON;
	case 'h':
		copy_space(m, &m->hold, &m->pattern);
		return GO_ON;
	case 'H':
		(void)put(m, &m->hold, &m->s->delim, 1);            /* m->failed tells */
		(void)put(m, &m->hold, m->pattern.p, m->pattern.n); /* as above */
		m->hold.chomped = m->pattern.chomped;
		return GO_ON;
	case 'x':
		swap_spaces(&m->pattern, &m->hold);
		return GO_ON;
	case 'l':
		list_pattern(m, c->number >= 0 ? c->number : m->s->line_len);
		return GO_ON;
	case 'n':
	case 'N':
		return read_more(m, c->c == 'N');
	case 'p':
		out_pattern(m);
		return GO_ON;
	case 'P':
		out_line(m, first_line(m), true);
		return GO_ON;
	case 'q':
		m->quit = c->number >= 0 ? (int)(c->number & 0xff) : 0;
		return END_CYCLE;
	case 'Q':
		m->quit = c->number >= 0 ? (int)(c->number & 0xff) : 0;
		return QUIT;
	case 'r':
		if ((l = add_late(m)) != NULL)
			l->file = c->text.p;
		return GO_ON;
	case 'R':
		read_late_line(m, c->r);
		return GO_ON;
	case 's':
		substitute(m, c);
		return GO_ON;
	case 'w':
		write_file(m, c->w, view(&m->pattern), m->pattern.chomped);
		return GO_ON;
	case 'W':
		write_file(m, c->w, first_line(m), true);
		return GO_ON;
	case 'y':
		transliterate(m, c->y);
		return GO_ON;
	default: /* z; the parser knows no other */
		m->pattern.n = 0;
		return GO_ON;
	}
}

static enum step run_script(struct machine *m)
{
	size_t at = 0;

	while (at < m->s->cmds_n) {
		struct sed_cmd *c = &m->s->cmds[at++];
		enum step r;

		if (c->c != '}' && c->c != ':' && !is_selected(m, c)) {
			if (m->failed)
				return QUIT;
			if (c->c == '{')
				at = c->jump + 1;
			continue;
		}
		r = m->failed ? QUIT : do_command(m, c, &at);
		/* A script may loop for ever without input or output. */
		if (r != GO_ON || m->failed || shcmd_interrupted(m->io) || shcmd_out_dead(m->io))
			return m->failed || r == GO_ON ? QUIT : r;
	}
	return END_CYCLE;
}

/* --- in place --- */

static void reset_ranges(struct machine *m)
{
	m->line = 0;
	for (size_t i = 0; i < m->s->cmds_n; i++)
		m->s->cmds[i].active = m->s->cmds[i].a1.kind == SED_ADDR_ZERO;
}

/* Every * of the suffix stands for the file's name; without one it goes behind it. */
static const char *backup_name(struct machine *m, const char *name)
{
	AUTO_BUF b = buf_with(SHCMD_PATH_MAX);
	const char *slash = strrchr(name, '/'), *base = slash != NULL ? slash + 1 : name,
	           *s = m->s->suffix;
	sv copy;

	if (strchr(s, '/') == NULL)
		buf_put(&b, name, (size_t)(base - name));
	if (strchr(s, '*') == NULL)
		buf_put_c(&b, base);
	for (; *s != '\0'; s++) {
		if (*s == '*')
			buf_put_c(&b, base);
		else
			buf_put_byte(&b, (uint8_t)*s);
	}
	copy = arena_dup(m->io->arena, buf_sv(&b));
	return buf_ok(&b) ? copy.p : NULL;
}

static int store(struct machine *m, const char *name, sv content)
{
	AUTO_FD fd = shcmd_open_write(m->io, name, O_CREAT | O_TRUNC);

	if (fd < 0) {
		if (m->io->last.why == FILES_ERRNO)
			return shcmd_err(
			    m->io, "couldn't open file %s: %s", name, m->io->last.text);
		return shcmd_open_err(m->io, name);
	}
	if (fd_write_full(fd, content.p, content.n) != 0)
		return shcmd_err(m->io, "couldn't write %zu items to %s: %s", content.n, name,
		    box_strerror(errno));
	return 0;
}

/* What the file holds now, for the backup. */
static int back_up(struct machine *m, const char *name)
{
	AUTO_BUF old = buf_with(SHCMD_MEM_MAX);
	const char *to = backup_name(m, name);
	struct box_err err = { 0 };
	AUTO_FD fd = to != NULL ? shcmd_open_read(m->io, name) : -1;

	if (fd < 0)
		return to == NULL ? shcmd_err(m->io, "the backup name for %s is too long", name)
		                  : shcmd_open_err(m->io, name);
	if (fd_read_all(fd, &old, name, &err) != 0)
		return shcmd_err(m->io, "%s", err.msg);
	return store(m, to, buf_sv(&old));
}

/* The edited text replaces the file's content: the same file, so that policy sees one write of content and links and rights stay. */
static void finish_edit(struct machine *m, const char *name)
{
	int r = 0;

	m->editing = false;
	m->missing_newline = false;
	if (!buf_ok(&m->edited)) {
		(void)shcmd_err(m->io, "memory exhausted");
		m->failed = true;
		m->status = PANIC;
		return;
	}
	if (m->s->suffix != NULL)
		r = back_up(m, name);
	if (r == 0)
		r = store(m, name, buf_sv(&m->edited));
	buf_clear(&m->edited);
	if (r != 0) {
		m->failed = m->failed || r == 125;
		m->status = r == 125 ? 125 : PANIC;
	}
}

/* --- running --- */

/* Lines until the input ends or the script quits. False: quit. */
static bool run_cycles(struct machine *m)
{
	while (m->again || read_pattern(m, false)) {
		enum step r;

		m->again = false;
		r = run_script(m);
		if (r == QUIT)
			return false;
		if (r == END_CYCLE && !m->s->quiet)
			out_pattern(m);
		if (m->again)
			out_late(m); /* D: the next cycle reads nothing, but this one ended */
		if (m->quit >= 0 || shcmd_out_dead(m->io) || m->failed)
			break;
	}
	out_late(m);
	return m->quit < 0 && !m->failed && !shcmd_out_dead(m->io) && !shcmd_interrupted(m->io);
}

static void run_files(struct machine *m)
{
	bool go = true;

	if (!m->s->separate) {
		read_ahead(m);
		(void)run_cycles(m); /* nothing follows */
		return;
	}
	while (go && !m->failed && open_next(m)) {
		const char *name = m->next_name;

		reset_ranges(m);
		m->editing = m->s->in_place;
		m->edited = m->editing ? buf_with(SHCMD_MEM_MAX) : m->edited;
		read_ahead(m);
		go = run_cycles(m);
		if (m->editing && !m->failed && !shcmd_interrupted(m->io)) {
			/* After q the rest of the file is gone, as with GNU sed: `sed -i 10q`. */
			close_input(m);
			finish_edit(m, name);
		}
		close_input(m);
		m->again = false;
		buf_fini(&m->edited);
	}
}

static void check_outputs(struct machine *m)
{
	for (struct sed_file *f = m->s->files; f != NULL; f = f->next) {
		if (f->fd < 0 || sh_out_flush(f->out) == 0)
			continue;
		(void)shcmd_err(
		    m->io, "couldn't write to %s: %s", f->name, box_strerror(f->out->err));
		m->status = PANIC;
	}
}

int sed_run(struct sed *s, char **names)
{
	static char dash[] = "-";
	char *only[] = { dash, NULL };
	struct machine m = { .s = s,
		.io = s->io,
		.names = names[0] != NULL ? names : only,
		.fd = -1,
		.quit = -1,
		.hold.chomped = true,
		.pattern.chomped = true,
		.scratch.chomped = true };

	run_files(&m);
	close_input(&m);
	check_outputs(&m);
	for (size_t i = 0; i < m.late_n; i++)
		free(m.late[i].line);
	free(m.late);
	free(m.ahead.p);
	free(m.pattern.p);
	free(m.hold.p);
	free(m.scratch.p);
	buf_fini(&m.edited);
	if (m.failed)
		return m.status != 0 ? m.status : 1;
	return m.quit > 0 ? m.quit : m.status;
}
