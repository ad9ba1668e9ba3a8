/* wc: count lines, words, characters, bytes and the longest line (POSIX wc, GNU -L). Constant
 * memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <wchar.h>
#include <wctype.h>

#include "base/fd.h"
#include "shell/text.h"
#include "base/ban.h"

enum { LINES = 1, WORDS = 2, CHARS = 4, BYTES = 8, LONGEST = 16 };

struct counts {
	uint64_t lines, words, chars, bytes, longest;
};

struct row {
	struct counts c;
	const char *name; /* NULL: standard input without an operand */
	bool shown;
};

struct wc {
	struct sh_io *io;
	unsigned want;
	bool utf8;
	/* of the file being read */
	struct counts c;
	uint64_t column;
	bool in_word;
	mbstate_t mb;
};

static void end_line(struct wc *w)
{
	if (w->column > w->c.longest)
		w->c.longest = w->column;
	w->column = 0;
}

static void end_word(struct wc *w)
{
	w->c.words += w->in_word;
	w->in_word = false;
}

static void count_ascii(struct wc *w, char ch)
{
	switch (ch) {
	case '\n':
		w->c.lines++;
		end_line(w);
		end_word(w);
		return;
	case '\r':
	case '\f':
		end_line(w);
		end_word(w);
		return;
	case '\t':
		w->column += 8 - w->column % 8;
		end_word(w);
		return;
	case ' ':
		w->column++;
		end_word(w);
		return;
	case '\v':
		end_word(w);
		return;
	default:
		/* As GNU: what cannot be printed neither makes a word nor takes a column. */
		if (ch > 0x20 && ch < 0x7f) {
			w->column++;
			w->in_word = true;
		}
	}
}

/* GNU wc lets the no-break spaces end words too. */
static bool ends_word(wchar_t wc)
{
	return iswspace((wint_t)wc) || wc == 0x00a0 || wc == 0x2007 || wc == 0x202f || wc == 0x2060;
}

static void count_wide(struct wc *w, wchar_t wc)
{
	int width;

	if (!iswprint((wint_t)wc))
		return;
	width = wcwidth(wc);
	w->column += width > 0 ? (uint64_t)width : 0;
	if (ends_word(wc))
		end_word(w);
	else
		w->in_word = true;
}

/* Characters of UTF-8; a piece may end inside one, which w->mb remembers. */
static void count_utf8(struct wc *w, sv s)
{
	size_t i = 0;

	while (i < s.n) {
		wchar_t wc;
		size_t r;

		if (mbsinit(&w->mb) && (unsigned char)s.p[i] < 0x80) {
			w->c.chars++;
			count_ascii(w, s.p[i++]);
			continue;
		}
		r = mbrtowc(&wc, s.p + i, s.n - i, &w->mb);
		if (r == (size_t)-2)
			return;
		if (r == (size_t)-1) {
			/* Not a character: a byte that counts as nothing but itself. */
			memset(&w->mb, 0, sizeof(w->mb));
			i++;
			continue;
		}
		w->c.chars++;
		if ((uint32_t)wc < 0x80)
			count_ascii(w, (char)wc);
		else
			count_wide(w, wc);
		i += r != 0 ? r : 1;
	}
}

static void count_chunk(struct wc *w, sv s)
{
	w->c.bytes += s.n;
	if ((w->want & (WORDS | LONGEST)) == 0 && ((w->want & CHARS) == 0 || !w->utf8)) {
		w->c.chars += s.n;
		if ((w->want & LINES) == 0)
			return;
		for (const char *p = s.p, *end = s.p + s.n;
		     p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
			w->c.lines++;
		return;
	}
	if (w->utf8) {
		count_utf8(w, s);
		return;
	}
	w->c.chars += s.n;
	for (size_t i = 0; i < s.n; i++)
		count_ascii(w, s.p[i]);
}

/* 0, or 1 after a message. */
static int count_fd(struct wc *w, int fd, const char *name)
{
	struct sh_in in;
	sv chunk;
	int r;

	w->c = (struct counts){ 0 };
	w->column = 0;
	w->in_word = false;
	memset(&w->mb, 0, sizeof(w->mb));
	shcmd_in_init(&in, w->io, fd);
	while ((r = shcmd_getchunk(&in, &chunk)) > 0)
		count_chunk(w, chunk);
	end_line(w);
	end_word(w);
	r = r < 0 ? text_read_err(w->io, name, in.err) : 0;
	shcmd_in_fini(&in);
	return r;
}

static void print_row(struct wc *w, const struct row *row, int width)
{
	const uint64_t v[] = { row->c.lines, row->c.words, row->c.chars, row->c.bytes,
		row->c.longest };
	const char *sep = "";

	for (unsigned i = 0; i < 5; i++) {
		if ((w->want & 1U << i) == 0)
			continue;
		shcmd_printf(w->io, "%s%*llu", sep, width, (unsigned long long)v[i]);
		sep = " ";
	}
	if (row->name != NULL)
		shcmd_printf(w->io, " %s", row->name);
	shcmd_putc(w->io, '\n');
}

/* GNU's width: wide enough for the sum of the sizes of the regular files, at least 7 when there is
 * anything else; 1 for a single number. */
struct width {
	uint64_t regular;
	int least;
};

static void note_size(struct width *wd, const struct stat *st)
{
	if (S_ISREG(st->st_mode))
		wd->regular += (uint64_t)st->st_size;
	else
		wd->least = 7;
}

static int width_of(const struct wc *w, const struct width *wd, int files)
{
	int width = 1;

	if (files == 1 && __builtin_popcount(w->want) == 1)
		return 1;
	for (uint64_t n = wd->regular; n >= 10; n /= 10)
		width++;
	return width > wd->least ? width : wd->least;
}

static int count_all(struct wc *w, char **names, int n, struct row *rows, struct width *wd)
{
	int status = 0;

	for (int i = 0; i < n && !shcmd_interrupted(w->io); i++) {
		const char *name = names != NULL ? names[i] : "-";
		AUTO_FD fd = shcmd_open_read(w->io, name);
		struct stat st;

		rows[i].name = names != NULL ? name : NULL;
		if (fd < 0) {
			int r = shcmd_open_err(w->io, name);

			status = r > status ? r : status;
			if (r == 125)
				break;
			/* A folder can be opened by the original, and counts nothing. */
			rows[i].shown = w->io->last.why == FILES_ERRNO && w->io->last.sys == EISDIR;
			if (rows[i].shown)
				wd->least = 7;
			continue;
		}
		if (fstat(fd, &st) == 0)
			note_size(wd, &st);
		if (count_fd(w, fd, name) != 0)
			status = status > 1 ? status : 1;
		rows[i].c = w->c;
		rows[i].shown = true;
	}
	return status;
}

static int wc_main(struct wc *w, char **names, int n)
{
	struct width wd = { 0, 1 };
	struct row *rows, total = { .name = "total" };
	int status, width;

	rows = shcmd_alloc(w->io, (size_t)(n != 0 ? n : 1), sizeof(*rows));
	if (rows == NULL)
		return 1;
	status = count_all(w, n != 0 ? names : NULL, n != 0 ? n : 1, rows, &wd);
	width = width_of(w, &wd, n != 0 ? n : 1);
	for (int i = 0; i < (n != 0 ? n : 1); i++) {
		const struct counts *c = &rows[i].c;

		if (!rows[i].shown)
			continue;
		print_row(w, &rows[i], width);
		total.c.lines += c->lines;
		total.c.words += c->words;
		total.c.chars += c->chars;
		total.c.bytes += c->bytes;
		if (c->longest > total.c.longest)
			total.c.longest = c->longest;
	}
	if (n > 1)
		print_row(w, &total, width);
	return status;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	static const struct sh_opt opts[] = {
		{ 'l', "lines", SH_OPT_NONE },
		{ 'w', "words", SH_OPT_NONE },
		{ 'm', "chars", SH_OPT_NONE },
		{ 'c', "bytes", SH_OPT_NONE },
		{ 'L', "max-line-length", SH_OPT_NONE },
		{ 0, NULL, SH_OPT_NONE },
	};
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = opts };
	struct text_locale loc;
	struct wc w = { .io = io };
	int c, status;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case SH_OPT_HELP:
			return 0;
		case SH_OPT_ERROR:
			return shcmd_bad_option(io, &g);
		case 'l':
			w.want |= LINES;
			break;
		case 'w':
			w.want |= WORDS;
			break;
		case 'm':
			w.want |= CHARS;
			break;
		case 'c':
			w.want |= BYTES;
			break;
		default:
			w.want |= LONGEST;
		}
	}
	if (w.want == 0)
		w.want = LINES | WORDS | BYTES;
	text_locale_begin(&loc, io);
	w.utf8 = loc.utf8;
	status = wc_main(&w, argv + g.i, argc - g.i);
	text_locale_end(&loc);
	return status;
}

const struct sh_cmd sh_cmd_wc = {
	.name = "wc",
	.usage = "wc [-clmwL] [FILE]...\n"
	         "  -l  lines    -w  words    -m  characters    -c  bytes    -L  width of the "
	         "longest line\n",
	.flags = SHCMD_UTILITY,
	.run = run,
};
