/* sed: lines in, lines out, and the files that are edited in place. See sed_machine.h. Memory: one
 * line in advance, what waits for the end of a cycle, and with -i the new text of one file. */
#include "shell/sed_machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ban.h"

/* --- spaces --- */

bool sed_put(struct sed_machine *m, struct sed_space *t, const char *p, size_t n)
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

sv sed_view(const struct sed_space *t)
{
	return (sv){ t->p != NULL ? t->p : "", t->n };
}

void sed_copy_space(struct sed_machine *m, struct sed_space *to, const struct sed_space *from)
{
	to->n = 0;
	(void)sed_put(m, to, from->p, from->n); /* m->failed tells */
	to->chomped = from->chomped;
}

void sed_swap_spaces(struct sed_space *a, struct sed_space *b)
{
	struct sed_space t = *a;

	*a = *b;
	*b = t;
}

/* --- output --- */

void sed_out_bytes(struct sed_machine *m, const char *p, size_t n)
{
	if (m->editing)
		buf_put(&m->edited, p, n);
	else
		shcmd_put(m->io, p, n);
}

/* A last line without newline gets it when something follows. */
void sed_out_missing(struct sed_machine *m)
{
	if (m->missing_newline)
		sed_out_bytes(m, &m->s->delim, 1);
	m->missing_newline = false;
}

void sed_out_flush(struct sed_machine *m)
{
	if (m->s->unbuffered && !m->editing)
		(void)shcmd_flush(m->io); /* a failure is seen by shcmd_out_dead */
}

void sed_out_text(struct sed_machine *m, sv text)
{
	sed_out_missing(m);
	sed_out_bytes(m, text.p, text.n);
	sed_out_flush(m);
}

void sed_out_line(struct sed_machine *m, sv text, bool newline)
{
	sed_out_missing(m);
	sed_out_bytes(m, text.p, text.n);
	if (newline)
		sed_out_bytes(m, &m->s->delim, 1);
	m->missing_newline = !newline;
	sed_out_flush(m);
}

void sed_out_pattern(struct sed_machine *m)
{
	sed_out_line(m, sed_view(&m->pattern), m->pattern.chomped);
}

/* To a file of w. /dev/stdout is the output itself. */
void sed_write_file(struct sed_machine *m, struct sed_file *f, sv text, bool newline)
{
	if (f->out == m->io->out && !m->editing) {
		sed_out_line(m, text, newline);
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

struct sed_late *sed_add_late(struct sed_machine *m)
{
	struct sed_late *v = text_grow(m->io, m->late, &m->late_cap, m->late_n + 1, sizeof(*v));

	if (v == NULL) {
		m->failed = true;
		return NULL;
	}
	m->late = v;
	v[m->late_n] = (struct sed_late){ 0 };
	return &v[m->late_n++];
}

/* A file of r; what cannot be read is as good as empty (POSIX), but a refusal is said. */
static void out_file(struct sed_machine *m, const char *name)
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
		sed_out_bytes(m, block, (size_t)n);
}

void sed_out_late(struct sed_machine *m)
{
	for (size_t i = 0; i < m->late_n; i++) {
		struct sed_late *l = &m->late[i];

		sed_out_missing(m);
		if (l->file != NULL)
			out_file(m, l->file);
		else if (l->line != NULL)
			sed_out_line(m, (sv){ l->line, l->line_n }, l->line_ended);
		else
			sed_out_bytes(m, l->text.p, l->text.n);
		free(l->line);
		l->line = NULL;
	}
	m->late_n = 0;
	sed_out_flush(m);
}

void sed_read_late_line(struct sed_machine *m, struct sed_reader *r)
{
	struct sed_late *l;
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
	l = sed_add_late(m);
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

void sed_close_input(struct sed_machine *m)
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
bool sed_open_next(struct sed_machine *m)
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
			m->status = m->io->last.sys == EISDIR ? SED_PANIC : SED_BAD_INPUT;
			if (m->io->last.sys == EISDIR && !m->s->in_place) {
				m->failed = true; /* GNU sed ends there too */
				return false;
			}
			continue;
		}
		if (m->s->in_place && !is_regular(m->fd)) {
			(void)shcmd_err(m->io, "couldn't edit %s: not a regular file", name);
			m->status = SED_PANIC;
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
void sed_read_ahead(struct sed_machine *m)
{
	sv line;

	m->have_ahead = false;
	while (m->open || sed_open_next(m)) {
		int r = shcmd_getline(&m->in, m->s->delim, &line);

		if (r > 0) {
			m->ahead.n = 0;
			m->ahead.chomped = line.p[line.n - 1] == m->s->delim;
			m->have_ahead = sed_put(m, &m->ahead, line.p, line.n - m->ahead.chomped);
			return;
		}
		if (r < 0) {
			(void)shcmd_err(
			    m->io, "read error on %s: %s", m->next_name, box_strerror(m->in.err));
			m->status = SED_BAD_INPUT;
		}
		sed_close_input(m);
		if (m->s->separate)
			return;
	}
}

bool sed_is_last(const struct sed_machine *m)
{
	return !m->have_ahead;
}

/* The next line into the pattern space (behind what is there, when `more`). False: there is
 * none. */
bool sed_read_pattern(struct sed_machine *m, bool more)
{
	sed_out_late(m);
	m->replaced = false;
	if (!m->have_ahead)
		return false;
	if (more) {
		if (!sed_put(m, &m->pattern, m->ahead.p, m->ahead.n))
			return false;
		m->pattern.chomped = m->ahead.chomped;
	} else {
		sed_swap_spaces(&m->pattern, &m->ahead);
	}
	m->name = m->next_name;
	m->line++;
	sed_read_ahead(m);
	return !m->failed;
}

/* --- in place --- */

/* Every * of the suffix stands for the file's name; without one it goes behind it. */
static const char *backup_name(struct sed_machine *m, const char *name)
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

static int store(struct sed_machine *m, const char *name, sv content)
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
static int back_up(struct sed_machine *m, const char *name)
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

/* The edited text replaces the file's content: the same file, so that policy sees one write of
 * content and links and rights stay. */
void sed_finish_edit(struct sed_machine *m, const char *name)
{
	int r = 0;

	m->editing = false;
	m->missing_newline = false;
	if (!buf_ok(&m->edited)) {
		(void)shcmd_err(m->io, "memory exhausted");
		m->failed = true;
		m->status = SED_PANIC;
		return;
	}
	if (m->s->suffix != NULL)
		r = back_up(m, name);
	if (r == 0)
		r = store(m, name, buf_sv(&m->edited));
	buf_clear(&m->edited);
	if (r != 0) {
		m->failed = m->failed || r == 125;
		m->status = r == 125 ? 125 : SED_PANIC;
	}
}
