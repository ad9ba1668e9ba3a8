/* xargs: every command it runs is decided by itself. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "shell/command.h"
#include "base/ban.h"

#define ARGS_BYTES 50000 /* of one command: what policy can judge as one text */
#define ARGS_MAX   5000

struct xa {
	struct sh_io *io;
	char **base; /* the command as given */
	int nbase;
	const char *replace; /* -I */
	int64_t max_args, max_lines, max_bytes;
	int delim;       /* -d, -0; -1: blanks and quotes */
	const char *eof; /* -E */
	bool no_empty, trace, exit_if_too_long;
	int devnull;
	int input; /* 0, or of -a */
	int file;  /* of -a; -1 */

	struct arena arena; /* of the current command */
	char **item;
	size_t n, bytes;
	int64_t lines;
	int status;
	bool stop, ran;
};

static char *dup_item(struct xa *x, sv s)
{
	sv d = arena_dup(&x->arena, s);

	return d.p != NULL ? (char *)(uintptr_t)d.p : NULL;
}

static void note_status(struct xa *x, int s)
{
	x->ran = true;
	if (s == 0)
		return;
	if (s == 255) {
		(void)shcmd_err(x->io, "%s: exited with status 255; aborting", x->base[0]);
		x->status = 124;
		x->stop = true;
	} else if (s > 128) {
		(void)shcmd_err(x->io, "%s: terminated by signal %d", x->base[0], s - 128);
		x->status = 125;
		x->stop = true;
	} else if (s == 126 || s == 127) {
		x->status = s;
		x->stop = true;
	} else {
		x->status = 123;
	}
}

static void run_one(struct xa *x, char **argv)
{
	struct shcmd_run_opts o = { .in = x->devnull, .no_builtins = true };

	if (x->trace) {
		AUTO_BUF b = buf_with(ARGS_BYTES * 2);

		for (int i = 0; argv[i] != NULL; i++)
			buf_putf(&b, "%s%s", i != 0 ? " " : "", argv[i]);
		buf_put_byte(&b, '\n');
		(void)fd_write_full(2, b.p, b.n);
	}
	note_status(x, shcmd_run(x->io, argv, &o));
}

/* Forget the items of the last command. */
static void reset(struct xa *x)
{
	arena_free(&x->arena);
	x->n = 0;
	x->bytes = 0;
	x->lines = 0;
}

static void flush(struct xa *x)
{
	char **argv = arena_alloc(&x->arena, (size_t)x->nbase + x->n + 1, sizeof(char *));

	if (argv == NULL) {
		x->status = shcmd_err(x->io, "out of memory");
		x->stop = true;
		return;
	}
	memcpy(argv, x->base, (size_t)x->nbase * sizeof(char *));
	memcpy(argv + x->nbase, x->item, x->n * sizeof(char *));
	run_one(x, argv);
	reset(x);
}

/* -I: the item takes the place of the mark in every argument. */
static void run_replaced(struct xa *x, sv item)
{
	char **argv = arena_alloc(&x->arena, (size_t)x->nbase + 1, sizeof(char *));
	size_t len = strlen(x->replace);

	for (int i = 0; argv != NULL && i < x->nbase; i++) {
		AUTO_BUF b = buf_with((size_t)1 << 20);
		sv rest = sv_c(x->base[i]);
		ptrdiff_t at;

		while (len != 0 && (at = sv_find_sv(rest, sv_c(x->replace))) >= 0) {
			buf_put(&b, rest.p, (size_t)at);
			buf_put_sv(&b, item);
			rest = sv_sub(rest, (size_t)at + len, rest.n);
		}
		buf_put_sv(&b, rest);
		argv[i] = buf_ok(&b) ? dup_item(x, buf_sv(&b)) : NULL;
		if (argv[i] == NULL)
			argv = NULL;
	}
	if (argv == NULL) {
		x->status = shcmd_err(x->io, "argument too long");
		x->stop = true;
		return;
	}
	run_one(x, argv);
	reset(x);
}

static void add(struct xa *x, sv item)
{
	char *s;

	if (x->stop)
		return;
	if (x->replace != NULL) {
		run_replaced(x, item);
		return;
	}
	if (x->n != 0 && (x->bytes + item.n + 1 > (size_t)x->max_bytes || x->n == ARGS_MAX)) {
		if (x->exit_if_too_long) {
			x->status = shcmd_err(x->io, "argument list too long");
			x->stop = true;
			return;
		}
		flush(x);
	}
	if (item.n + 1 > (size_t)x->max_bytes) {
		x->status = shcmd_err(x->io, "argument line too long");
		x->stop = true;
	}
	if (x->stop)
		return;
	s = dup_item(x, item);
	if (s == NULL) {
		x->stop = true;
		x->status = 1;
		return;
	}
	x->item[x->n++] = s;
	x->bytes += item.n + 1;
	if (x->max_args > 0 && (int64_t)x->n >= x->max_args)
		flush(x);
}

static void end_line(struct xa *x)
{
	if (x->max_lines > 0 && x->n != 0 && ++x->lines >= x->max_lines)
		flush(x);
}

/* Items by blanks, newlines, quotes and backslashes (POSIX xargs). One line at a time. -1 after a
 * message. */
static int blank_line(struct xa *x, sv line, struct buf *word, char *quote, bool *open)
{
	bool newline = line.n != 0 && line.p[line.n - 1] == '\n', trailing;

	trailing = line.n > 1 && (line.p[line.n - 2] == ' ' || line.p[line.n - 2] == '\t');
	for (size_t i = 0; i < line.n && !x->stop; i++) {
		char c = line.p[i];

		if (*quote != 0) {
			if (c == *quote) {
				*quote = 0;
			} else if (c == '\n') {
				(void)shcmd_err(x->io,
				    "unmatched %s quote; by default quotes are special to xargs "
				    "unless you "
				    "use the -0 option",
				    *quote == '"' ? "double" : "single");
				return -1;
			} else {
				buf_put_byte(word, (uint8_t)c);
			}
			continue;
		}
		if (c == '\'' || c == '"') {
			*quote = c;
			*open = true;
		} else if (c == '\\' && i + 1 < line.n) {
			buf_put_byte(word, (uint8_t)line.p[++i]);
			*open = true;
		} else if (c == '\n' ||
		           ((c == ' ' || c == '\t') && (x->replace == NULL || !*open))) {
			if (*open) {
				if (x->eof != NULL && sv_eq(buf_sv(word), sv_c(x->eof))) {
					buf_clear(word);
					*open = false;
					return 1;
				}
				add(x, buf_sv(word));
				buf_clear(word);
				*open = false;
			}
		} else {
			buf_put_byte(word, (uint8_t)c);
			*open = true;
		}
	}
	if (newline && !trailing)
		end_line(x);
	return 0;
}

static int read_items(struct xa *x)
{
	AUTO_BUF word = buf_with(SHCMD_LINE_MAX);
	char quote = 0;
	bool open = false;
	struct sh_in in;
	sv line;
	int r, end = 0;

	shcmd_in_init(&in, x->io, x->input);
	while (!x->stop && end == 0 &&
	       (r = shcmd_getline(&in, x->delim >= 0 ? (char)x->delim : '\n', &line)) > 0) {
		if (x->delim >= 0) {
			if (line.p[line.n - 1] == (char)x->delim)
				line.n--;
			if (memchr(line.p, '\0', line.n) == NULL) {
				add(x, line);
				end_line(x);
			}
			continue;
		}
		end = blank_line(x, line, &word, &quote, &open);
	}
	shcmd_in_fini(&in);
	if (end < 0)
		return -1;
	if (quote != 0) {
		(void)shcmd_err(x->io,
		    "unmatched %s quote; by default quotes are special to xargs unless you use the "
		    "-0 "
		    "option",
		    quote == '"' ? "double" : "single");
		return -1;
	}
	if (open && !x->stop)
		add(x, buf_sv(&word));
	return 0;
}

/* -d: one character, or an escape. -1: neither. */
static int delimiter(const char *s)
{
	static const char names[] = "abfnrtv0\\", codes[] = "\a\b\f\n\r\t\v\0\\";

	if (s[0] != '\\' || s[1] == '\0')
		return s[0] != '\0' && s[1] == '\0' ? (unsigned char)s[0] : -1;
	if (s[2] == '\0' && strchr(names, s[1]) != NULL)
		return (unsigned char)codes[strchr(names, s[1]) - names];
	if (s[1] == 'x')
		return (int)(strtol(s + 2, NULL, 16) & 255);
	return (int)(strtol(s + 1, NULL, 8) & 255);
}

static int options(struct xa *x, struct sh_getopt *g)
{
	int64_t v;
	int c;

	while ((c = shcmd_getopt(x->io, g)) != SH_OPT_END) {
		bool ok = true;

		switch (c) {
		case '0':
			x->delim = 0;
			break;
		case 'd':
			x->delim = delimiter(g->arg);
			ok = x->delim >= 0;
			break;
		case 'I':
		case 'i':
			x->replace = g->arg != NULL ? g->arg : "{}";
			x->max_args = x->max_lines = 0;
			break;
		case 'n':
			ok = shcmd_number(g->arg, 1, INT32_MAX, &x->max_args);
			x->replace = NULL;
			break;
		case 'L':
		case 'l':
			x->max_lines = 1;
			ok = g->arg == NULL || shcmd_number(g->arg, 1, INT32_MAX, &x->max_lines);
			break;
		case 's':
			ok = shcmd_number(g->arg, 1, INT32_MAX, &v);
			if (ok && v < x->max_bytes)
				x->max_bytes = v;
			break;
		case 'E':
		case 'e':
			x->eof = g->arg != NULL && *g->arg != '\0' ? g->arg : NULL;
			break;
		case 'r':
			x->no_empty = true;
			break;
		case 't':
			x->trace = true;
			break;
		case 'x':
			x->exit_if_too_long = true;
			break;
		case 'a':
			fd_drop(&x->file);
			x->file = shcmd_open_read(x->io, g->arg);
			if (x->file < 0)
				return shcmd_open_err(x->io, g->arg);
			x->input = x->file;
			break;
		case 'P': /* commands run one after the other: their decisions stay together */
			ok = shcmd_number(g->arg, 0, INT32_MAX, &v);
			break;
		case SH_OPT_HELP:
			return -1;
		default:
			return shcmd_bad_option(x->io, g);
		}
		if (!ok)
			return shcmd_usage_err(x->io, "invalid argument '%s' for -%c", g->arg, c);
	}
	return 0;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	static const struct sh_opt t[] = { { '0', "null", SH_OPT_NONE },
		{ 'd', "delimiter", SH_OPT_REQUIRED }, { 'I', NULL, SH_OPT_REQUIRED },
		{ 'i', "replace", SH_OPT_OPTIONAL }, { 'n', "max-args", SH_OPT_REQUIRED },
		{ 'L', "max-lines", SH_OPT_REQUIRED }, { 'l', NULL, SH_OPT_OPTIONAL },
		{ 's', "max-chars", SH_OPT_REQUIRED }, { 'E', NULL, SH_OPT_REQUIRED },
		{ 'e', "eof", SH_OPT_OPTIONAL }, { 'r', "no-run-if-empty", SH_OPT_NONE },
		{ 't', "verbose", SH_OPT_NONE }, { 'x', "exit", SH_OPT_NONE },
		{ 'P', "max-procs", SH_OPT_REQUIRED }, { 'a', "arg-file", SH_OPT_REQUIRED },
		{ 0 } };
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = t, .posix = true };
	char *echo[] = { (char[]){ "echo" }, NULL };
	struct xa x = { .io = io,
		.delim = -1,
		.max_bytes = ARGS_BYTES,
		.file = -1,
		.arena = { .limit = (size_t)16 << 20 } };
	int r = options(&x, &g);

	if (r != 0) {
		fd_drop(&x.file);
		return r < 0 ? 0 : r;
	}
	x.base = g.i < argc ? argv + g.i : echo;
	x.nbase = g.i < argc ? argc - g.i : 1;
	x.item = shcmd_alloc(io, ARGS_MAX + 1, sizeof(char *));
	if (x.item == NULL) {
		fd_drop(&x.file);
		return 1;
	}
	for (int i = 0; i < x.nbase; i++)
		x.max_bytes -= (int64_t)strlen(x.base[i]) + 1;
	if (x.max_bytes < 0) {
		fd_drop(&x.file);
		return shcmd_err(io, "cannot fit single argument within argument list size limit");
	}
	x.devnull = x.file >= 0 ? -1 : shcmd_open_special(io, "/dev/null");
	r = read_items(&x);
	if (r == 0 && !x.stop && x.replace == NULL &&
	    (x.n != 0 || (!x.ran && !x.no_empty && x.max_lines == 0)))
		flush(&x);
	arena_free(&x.arena);
	fd_drop(&x.devnull);
	fd_drop(&x.file);
	return r != 0 ? 1 : x.status;
}

const struct sh_cmd sh_cmd_xargs = { "xargs",
	"xargs [-0rtx] [-d CHAR] [-I TEXT] [-n MAX] [-L MAX] [-s MAX] [-E TEXT] [COMMAND "
	"[ARG]...]\n",
	SHCMD_UTILITY, 1, run };
