/* sed: the machine: which commands are selected, and what they do. See sed_machine.h. One cycle a
 * line. */
#include "shell/sed_machine.h"

#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/ban.h"

/* --- addresses --- */

static bool matches_one(struct sed_machine *m, const struct sed_addr *a)
{
	size_t start, end;

	switch (a->kind) {
	case SED_ADDR_LINE:
		return m->line == a->n;
	case SED_ADDR_STEP:
		return m->line >= a->n && (m->line - a->n) % a->m == 0;
	case SED_ADDR_LAST:
		return sed_is_last(m);
	case SED_ADDR_RE:
		return sed_search(m, a->re, sed_view(&m->pattern), 0, &start, &end);
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
static void begin_range(struct sed_machine *m, struct sed_cmd *c)
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

static bool matches_range(struct sed_machine *m, struct sed_cmd *c)
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

static bool is_selected(struct sed_machine *m, struct sed_cmd *c)
{
	bool yes = c->a2.kind == SED_ADDR_NONE ? matches_one(m, &c->a1) : matches_range(m, c);

	return yes != c->negate;
}

/* --- other commands --- */

/* l: unambiguous, folded (POSIX). */
static void list_pattern(struct sed_machine *m, int64_t width)
{
	static const char from[] = "\\\a\b\f\n\r\t\v", to[] = "\\abfnrtv";
	size_t column = 0, most = width > 0 ? (size_t)width - 1 : SIZE_MAX;
	char one[8];

	sed_out_missing(m);
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
			sed_out_bytes(m, "\\\n", 2);
			column = 0;
		}
		sed_out_bytes(m, one, n);
		column += n;
	}
	sed_out_bytes(m, "$\n", 2);
	sed_out_flush(m);
}

static void out_number(struct sed_machine *m)
{
	char text[32];
	size_t i = sizeof(text);
	uint64_t v = m->line;

	text[--i] = '\n';
	do {
		text[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v != 0);
	sed_out_text(m, (sv){ text + i, sizeof(text) - i });
}

enum step { GO_ON, END_CYCLE, END_SILENT, QUIT };

/* n, N: the end of the input ends the script; GNU sed still prints then. */
static enum step read_more(struct sed_machine *m, bool append)
{
	if (sed_is_last(m))
		return END_CYCLE;
	if (append) {
		if (!sed_put(m, &m->pattern, &m->s->delim, 1))
			return QUIT;
	} else if (!m->s->quiet) {
		sed_out_pattern(m);
	}
	return sed_read_pattern(m, append) ? GO_ON : QUIT;
}

static enum step delete_first_line(struct sed_machine *m)
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

static sv first_line(const struct sed_machine *m)
{
	sv head, tail;

	(void)sv_cut(
	    sed_view(&m->pattern), m->s->delim, &head, &tail); /* all of it without a newline */
	return head;
}

static enum step do_command(struct sed_machine *m, struct sed_cmd *c, size_t *at)
{
	struct sed_late *l;

	switch (c->c) {
	case '{':
	case '}':
	case ':':
		return GO_ON;
	case '=':
		out_number(m);
		return GO_ON;
	case 'a':
		if ((l = sed_add_late(m)) != NULL)
			l->text = c->text;
		return GO_ON;
	case 'i':
		sed_out_text(m, c->text);
		return GO_ON;
	case 'c':
		if (c->a2.kind == SED_ADDR_NONE || !c->active || c->negate)
			sed_out_text(m, c->text);
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
		sed_out_text(m, sv_c(m->name));
		sed_out_text(m, SV("\n"));
		return GO_ON;
	case 'g':
		sed_copy_space(m, &m->pattern, &m->hold);
		return GO_ON;
	case 'G':
		(void)sed_put(m, &m->pattern, &m->s->delim, 1);      /* m->failed tells */
		(void)sed_put(m, &m->pattern, m->hold.p, m->hold.n); /* as above */
		m->pattern.chomped = m->hold.chomped;
		return GO_ON;
	case 'h':
		sed_copy_space(m, &m->hold, &m->pattern);
		return GO_ON;
	case 'H':
		(void)sed_put(m, &m->hold, &m->s->delim, 1);            /* m->failed tells */
		(void)sed_put(m, &m->hold, m->pattern.p, m->pattern.n); /* as above */
		m->hold.chomped = m->pattern.chomped;
		return GO_ON;
	case 'x':
		sed_swap_spaces(&m->pattern, &m->hold);
		return GO_ON;
	case 'l':
		list_pattern(m, c->number >= 0 ? c->number : m->s->line_len);
		return GO_ON;
	case 'n':
	case 'N':
		return read_more(m, c->c == 'N');
	case 'p':
		sed_out_pattern(m);
		return GO_ON;
	case 'P':
		sed_out_line(m, first_line(m), true);
		return GO_ON;
	case 'q':
		m->quit = c->number >= 0 ? (int)(c->number & 0xff) : 0;
		return END_CYCLE;
	case 'Q':
		m->quit = c->number >= 0 ? (int)(c->number & 0xff) : 0;
		return QUIT;
	case 'r':
		if ((l = sed_add_late(m)) != NULL)
			l->file = c->text.p;
		return GO_ON;
	case 'R':
		sed_read_late_line(m, c->r);
		return GO_ON;
	case 's':
		sed_substitute(m, c);
		return GO_ON;
	case 'w':
		sed_write_file(m, c->w, sed_view(&m->pattern), m->pattern.chomped);
		return GO_ON;
	case 'W':
		sed_write_file(m, c->w, first_line(m), true);
		return GO_ON;
	case 'y':
		sed_transliterate(m, c->y);
		return GO_ON;
	default: /* z; the parser knows no other */
		m->pattern.n = 0;
		return GO_ON;
	}
}

static enum step run_script(struct sed_machine *m)
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

/* --- running --- */

static void reset_ranges(struct sed_machine *m)
{
	m->line = 0;
	for (size_t i = 0; i < m->s->cmds_n; i++)
		m->s->cmds[i].active = m->s->cmds[i].a1.kind == SED_ADDR_ZERO;
}

/* Lines until the input ends or the script quits. False: quit. */
static bool run_cycles(struct sed_machine *m)
{
	while (m->again || sed_read_pattern(m, false)) {
		enum step r;

		m->again = false;
		r = run_script(m);
		if (r == QUIT)
			return false;
		if (r == END_CYCLE && !m->s->quiet)
			sed_out_pattern(m);
		if (m->again)
			sed_out_late(m); /* D: the next cycle reads nothing, but this one ended */
		if (m->quit >= 0 || shcmd_out_dead(m->io) || m->failed)
			break;
	}
	sed_out_late(m);
	return m->quit < 0 && !m->failed && !shcmd_out_dead(m->io) && !shcmd_interrupted(m->io);
}

static void run_files(struct sed_machine *m)
{
	bool go = true;

	if (!m->s->separate) {
		sed_read_ahead(m);
		(void)run_cycles(m); /* nothing follows */
		return;
	}
	while (go && !m->failed && sed_open_next(m)) {
		const char *name = m->next_name;

		reset_ranges(m);
		m->editing = m->s->in_place;
		m->edited = m->editing ? buf_with(SHCMD_MEM_MAX) : m->edited;
		sed_read_ahead(m);
		go = run_cycles(m);
		if (m->editing && !m->failed && !shcmd_interrupted(m->io)) {
			/* After q the rest of the file is gone, as with GNU sed: `sed -i 10q`. */
			sed_close_input(m);
			sed_finish_edit(m, name);
		}
		sed_close_input(m);
		m->again = false;
		buf_fini(&m->edited);
	}
}

static void check_outputs(struct sed_machine *m)
{
	for (struct sed_file *f = m->s->files; f != NULL; f = f->next) {
		if (f->fd < 0 || sh_out_flush(f->out) == 0)
			continue;
		(void)shcmd_err(
		    m->io, "couldn't write to %s: %s", f->name, box_strerror(f->out->err));
		m->status = SED_PANIC;
	}
}

int sed_run(struct sed *s, char **names)
{
	static char dash[] = "-";
	char *only[] = { dash, NULL };
	struct sed_machine m = { .s = s,
		.io = s->io,
		.names = names[0] != NULL ? names : only,
		.fd = -1,
		.quit = -1,
		.hold.chomped = true,
		.pattern.chomped = true,
		.scratch.chomped = true };

	run_files(&m);
	sed_close_input(&m);
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
