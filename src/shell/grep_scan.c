/* grep: one file, line by line: selection, context, what is printed. Memory: the lines of -B. */
#include "shell/grep.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/ban.h"

struct scan {
	struct grep *g;
	const char *name;
	struct text_queue held; /* lines for -B, the newest last */
	int64_t selected;       /* lines so far */
	int64_t pending;        /* lines of -A still to be printed */
	uint64_t line, offset;  /* of the current line: number from 1, bytes before it */
	uint64_t printed_to;    /* number of the last line that was printed, 0 for none */
	bool binary;            /* only "binary file matches" may be said */
	bool binary_matched;
	bool stop;
};

bool grep_done(const struct grep *g)
{
	return (g->quiet && g->matched) || shcmd_out_dead(g->io) || shcmd_interrupted(g->io);
}

/* Nothing of the lines is printed. */
static bool is_mute(const struct grep *g)
{
	return g->quiet || g->count || g->list != GREP_LIST_NONE;
}

static void put_colored(struct grep *g, const char *color, const char *text, size_t n)
{
	if (g->color)
		shcmd_printf(g->io, "\33[%sm\33[K", color);
	shcmd_put(g->io, text, n);
	if (g->color)
		shcmd_puts(g->io, "\33[m\33[K");
}

static void put_name(struct grep *g, const char *name)
{
	put_colored(g, "35", name, strlen(name));
}

static void put_sep(struct grep *g, char sep)
{
	put_colored(g, "36", &sep, 1);
}

static void put_number(struct grep *g, uint64_t v, char sep)
{
	char text[24];
	size_t i = sizeof(text);

	do {
		text[--i] = (char)('0' + v % 10);
		v /= 10;
	} while (v != 0);
	put_colored(g, "32", text + i, sizeof(text) - i);
	put_sep(g, sep);
}

/* "name:12:345:" in front of a line or a match. */
static void put_head(struct scan *s, char sep, uint64_t line, uint64_t offset)
{
	struct grep *g = s->g;

	if (g->with_name) {
		put_name(g, s->name);
		if (g->null_name)
			shcmd_putc(g->io, '\0');
		else
			put_sep(g, sep);
	}
	if (g->numbers)
		put_number(g, line, sep);
	if (g->offsets)
		put_number(g, offset, sep);
}

/* Every match of a line, one a line (-o). */
static void put_matches(struct scan *s, sv text)
{
	struct grep *g = s->g;
	size_t from = 0, start, end;

	while (from <= text.n && grep_find(g, text, from, &start, &end)) {
		if (end == start) {
			from = end + 1;
			continue;
		}
		put_head(s, ':', s->line, s->offset + start);
		put_colored(g, "01;31", text.p + start, end - start);
		shcmd_putc(g->io, g->delim);
		from = end;
	}
}

static void put_highlighted(struct grep *g, sv text)
{
	size_t from = 0, start, end;

	while (from <= text.n && grep_find(g, text, from, &start, &end)) {
		if (end == start) {
			/* Nothing to show; look behind the next byte. */
			if (end == text.n)
				break;
			shcmd_put(g->io, text.p + from, end + 1 - from);
			from = end + 1;
			continue;
		}
		shcmd_put(g->io, text.p + from, start - from);
		put_colored(g, "01;31", text.p + start, end - start);
		from = end;
	}
	if (from < text.n)
		shcmd_put(g->io, text.p + from, text.n - from);
}

/* A line that is not text may not reach a terminal (GNU grep 3.5 and later). */
static bool is_unprintable(const struct grep *g, sv text)
{
	return g->binary != GREP_TEXT && g->utf8 && !sv_is_utf8(text);
}

/* text without its delimiter. sep ':' selected, '-' context. */
static void put_line(struct scan *s, sv text, char sep, uint64_t number, uint64_t offset)
{
	struct grep *g = s->g;

	s->printed_to = number;
	if (is_unprintable(g, text)) {
		s->binary_matched = s->stop = true;
		return;
	}
	if (g->only) {
		if (sep == ':' && !g->invert)
			put_matches(s, text);
		return;
	}
	put_head(s, sep, number, offset);
	if (g->color && (sep == ':') != g->invert)
		put_highlighted(g, text);
	else
		shcmd_put(g->io, text.p, text.n);
	shcmd_putc(g->io, g->delim);
	if (g->line_buffered)
		(void)shcmd_flush(g->io);
}

/* The held lines in front of a selected one, and "--" when something was left out. */
static void put_before(struct scan *s)
{
	struct grep *g = s->g;
	size_t n = s->held.len_n;
	uint64_t first = s->line - n, offset = s->offset;
	sv old;

	if ((g->before >= 0 || g->after >= 0) && s->printed_to != 0 && s->printed_to + 1 < first) {
		put_colored(g, "36", "--", 2);
		shcmd_putc(g->io, '\n');
	}
	for (size_t i = 0; i < n; i++)
		offset -= s->held.len[(s->held.len_from + i) % s->held.len_cap];
	for (uint64_t number = first; text_queue_take(&s->held, &old) && !s->stop; number++) {
		uint64_t len = old.n;

		if (old.n != 0 && old.p[old.n - 1] == g->delim)
			old.n--;
		put_line(s, old, '-', number, offset);
		offset += len;
	}
}

static void select_line(struct scan *s, sv text)
{
	struct grep *g = s->g;

	s->selected++;
	g->matched = true;
	if (s->binary && !is_mute(g)) {
		s->binary_matched = s->stop = true;
		return;
	}
	if (!is_mute(g)) {
		put_before(s);
		if (!s->stop)
			put_line(s, text, ':', s->line, s->offset);
		s->pending = g->after > 0 ? g->after : 0;
	}
	if (g->quiet || g->list != GREP_LIST_NONE || s->selected == g->max)
		s->stop = true;
}

static void pass_line(struct scan *s, sv text, sv whole)
{
	struct grep *g = s->g;
	sv old;

	if (is_mute(g) || s->binary)
		return;
	if (s->pending > 0) {
		s->pending--;
		put_line(s, text, '-', s->line, s->offset);
		return;
	}
	if (g->before <= 0)
		return;
	if (text_queue_put(g->io, &s->held, whole) != 0) {
		g->trouble = s->stop = true;
		return;
	}
	while ((int64_t)s->held.len_n > g->before)
		(void)text_queue_take(&s->held, &old); /* not empty */
}

/* One line, or in a binary file one piece between NULs. */
static void take_line(struct scan *s, sv whole)
{
	struct grep *g = s->g;
	size_t start, end;
	sv text = whole;

	if (text.n != 0 && text.p[text.n - 1] == g->delim)
		text.n--;
	s->line++;
	if (grep_find(g, text, 0, &start, &end) != g->invert)
		select_line(s, text);
	else
		pass_line(s, text, whole);
	s->offset += whole.n;
}

/* Is there a NUL in what was read first? The bytes stay unread. */
static bool starts_binary(struct sh_in *in)
{
	sv chunk;

	if (shcmd_getchunk(in, &chunk) <= 0)
		return false;
	in->pos -= chunk.n;
	return memchr(chunk.p, '\0', chunk.n < 32768 ? chunk.n : 32768) != NULL;
}

static void take_binary(struct scan *s, sv line)
{
	while (line.n != 0 && !s->stop) {
		ptrdiff_t at = sv_find(line, '\0');
		size_t n = at < 0 ? line.n : (size_t)at;
		uint64_t before = s->offset;

		/* What GNU grep does: a NUL ends a line too. */
		take_line(s, sv_sub(line, 0, n));
		if (at >= 0)
			n++;
		s->offset = before + n;
		line = sv_sub(line, n, line.n);
	}
}

/* After -m the context behind the last selected line is still due. */
static void put_trailing(struct scan *s, struct sh_in *in)
{
	sv whole;

	while (s->pending > 0 && shcmd_getline(in, s->g->delim, &whole) > 0) {
		sv text = whole;

		if (text.p[text.n - 1] == s->g->delim)
			text.n--;
		s->line++;
		s->pending--;
		put_line(s, text, '-', s->line, s->offset);
		s->offset += whole.n;
	}
}

static void read_lines(struct scan *s, struct sh_in *in)
{
	struct grep *g = s->g;
	int r = 0;
	sv line;

	if (g->delim == '\n' && g->binary != GREP_TEXT)
		s->binary = starts_binary(in);
	if (s->binary && g->binary == GREP_WITHOUT_MATCH)
		return;
	while (!s->stop && (r = shcmd_getline(in, g->delim, &line)) > 0) {
		if (!s->binary && g->delim == '\n' && g->binary != GREP_TEXT &&
		    sv_find(line, '\0') >= 0) {
			s->binary = true;
			if (g->binary == GREP_WITHOUT_MATCH)
				return;
		}
		if (s->binary)
			take_binary(s, line);
		else
			take_line(s, line);
	}
	if (s->pending > 0 && s->selected == g->max)
		put_trailing(s, in);
	if (r < 0) {
		g->trouble = true;
		if (!g->silent)
			(void)text_read_err(g->io, s->name, in->err); /* status 2 by trouble */
	}
}

static void put_summary(struct scan *s)
{
	struct grep *g = s->g;

	if (g->count && !g->quiet && g->list == GREP_LIST_NONE) {
		if (g->with_name) {
			put_name(g, s->name);
			if (g->null_name)
				shcmd_putc(g->io, '\0');
			else
				put_sep(g, ':');
		}
		shcmd_printf(g->io, "%lld\n", (long long)s->selected);
	}
	if (!g->quiet && g->list != GREP_LIST_NONE &&
	    (s->selected > 0) == (g->list == GREP_LIST_MATCHING)) {
		put_name(g, s->name);
		shcmd_putc(g->io, g->null_name ? '\0' : '\n');
	}
}

/* Writing to the file that is read would never end. */
static bool is_output(const struct grep *g, int fd)
{
	struct stat in, out;

	return !is_mute(g) && g->max > 1 && fstat(fd, &in) == 0 && S_ISREG(in.st_mode) &&
	       fstat(g->io->out->fd, &out) == 0 && in.st_dev == out.st_dev &&
	       in.st_ino == out.st_ino;
}

void grep_scan(struct grep *g, int fd, const char *name)
{
	struct scan s = { .g = g, .name = name };
	struct sh_in in;

	if (is_output(g, fd)) {
		g->trouble = true;
		if (!g->silent)
			(void)shcmd_err(g->io, "%s: input file is also the output",
			    name); /* status 2 by trouble */
		return;
	}
	shcmd_in_init(&in, g->io, fd);
	if (g->max > 0)
		read_lines(&s, &in);
	shcmd_in_fini(&in);
	text_queue_fini(&s.held);
	put_summary(&s);
	if (s.binary_matched) {
		(void)shcmd_flush(g->io);
		(void)shcmd_err(g->io, "%s: binary file matches", name); /* no failure */
	}
}
