/* grep: options and files (POSIX grep and what people use of GNU's). See grep_match.c and
 * grep_scan.c for the rest. Folders are walked by decided listings, in order of name. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <dirent.h>

#include "base/fd.h"
#include "shell/grep.h"
#include "base/ban.h"

#define GREP_TROUBLE   2
#define GREP_DEPTH_MAX 200

/* --- files --- */

/* A pattern matches the whole name or what stands behind one of its slashes. */
static bool glob_matches(const struct grep_glob *x, const char *name)
{
	for (;;) {
		if (shcmd_match(x->text, name, false))
			return true;
		name = strchr(name, '/');
		if (name == NULL)
			return false;
		name++;
	}
}

/* The last pattern that matches decides; without one, an --include among them excludes. */
static bool is_excluded(const struct grep_glob *globs, size_t n, const char *name)
{
	for (size_t i = n; i-- > 0;)
		if (glob_matches(&globs[i], name))
			return !globs[i].include;
	return n != 0 && globs[0].include;
}

static void cannot_open(struct grep *g, const char *name)
{
	g->trouble = true;
	if (!g->silent || g->io->last.why != FILES_ERRNO)
		(void)shcmd_open_err(g->io, name); /* status 2 by trouble */
}

static void search_file(struct grep *g, const char *name)
{
	const char *shown =
	    strcmp(name, "-") == 0 ? (g->label != NULL ? g->label : "(standard input)") : name;
	AUTO_FD fd = shcmd_open_read(g->io, name);

	if (fd < 0) {
		if (g->io->last.why == FILES_ERRNO && g->io->last.sys == EISDIR &&
		    g->dirs == GREP_DIR_SKIP)
			return;
		cannot_open(g, name);
		return;
	}
	grep_scan(g, fd, shown);
}

/* Names of a folder: type byte, name, NUL. */
static void collect(void *arg, const struct files_entry *e, const struct files_stat *st)
{
	struct buf *b = arg;

	(void)st; /* not asked for */
	buf_put_byte(b, e->type);
	buf_put(b, e->name, strlen(e->name) + 1);
}

/* Folders on the way down, to see a loop of links (-R). */
struct place {
	const struct place *up;
	uint64_t dev, ino;
	int depth;
};

static void search_dir(struct grep *g, const char *dir, const struct place *up);

static void search_entry(
    struct grep *g, const char *path, const char *base, uint8_t type, const struct place *at)
{
	if (type == DT_UNKNOWN || (type == DT_LNK && g->follow_links)) {
		const char *full = shcmd_path(g->io, path);
		struct files_stat st;

		if (full == NULL || files_stat(g->io->files, full, g->follow_links, &st) != 0) {
			g->trouble = true;
			if (!g->silent)
				(void)shcmd_files_err(
				    g->io, path, files_error(g->io->files)); /* by trouble */
			return;
		}
		type = S_ISDIR(st.mode) ? DT_DIR : S_ISREG(st.mode) ? DT_REG : DT_FIFO;
	}
	if (type == DT_DIR) {
		if (!is_excluded(g->dir_globs, g->dir_globs_n, base))
			search_dir(g, path, at);
		return;
	}
	/* Devices, sockets and, without -R, links are left alone. */
	if (type == DT_REG && !is_excluded(g->globs, g->globs_n, base))
		search_file(g, path);
}

static void search_dir(struct grep *g, const char *dir, const struct place *up)
{
	AUTO_BUF names = buf_with(SHCMD_MEM_MAX);
	AUTO_BUF path = buf_with(SHCMD_PATH_MAX + 1);
	struct place at = { .up = up, .depth = up != NULL ? up->depth + 1 : 0 };
	bool here = strcmp(dir, "") == 0;
	const char *full = shcmd_path(g->io, here ? "." : dir);
	struct files_stat st;

	if (full == NULL || at.depth > GREP_DEPTH_MAX) {
		g->trouble = true;
		(void)shcmd_err(
		    g->io, "%s: %s", dir, box_strerror(full == NULL ? ENAMETOOLONG : ELOOP));
		return;
	}
	if (g->follow_links && files_stat(g->io->files, full, true, &st) == 0) {
		at.dev = st.dev;
		at.ino = st.ino;
		for (const struct place *p = up; p != NULL; p = p->up)
			if (p->dev == st.dev && p->ino == st.ino) {
				(void)shcmd_err(
				    g->io, "%s: warning: recursive directory loop", dir);
				return;
			}
	}
	if (files_list(g->io->files, full, false, collect, &names) != 0) {
		g->trouble = true;
		if (!g->silent || files_error(g->io->files)->why != FILES_ERRNO)
			(void)shcmd_files_err(
			    g->io, here ? "." : dir, files_error(g->io->files)); /* by trouble */
		return;
	}
	if (!buf_ok(&names)) {
		g->trouble = true;
		(void)shcmd_err(g->io, "memory exhausted");
		return;
	}
	for (size_t i = 0; i < names.n && !grep_done(g);) {
		const char *base = (const char *)names.p + i + 1;

		buf_clear(&path);
		buf_put_c(&path, dir);
		if (!here && !sv_ends(sv_c(dir), SV("/")))
			buf_put_byte(&path, '/');
		buf_put_c(&path, base);
		if (buf_cstr(&path) != NULL)
			search_entry(g, buf_cstr(&path), base, names.p[i], &at);
		else
			g->trouble = true;
		i += strlen(base) + 2;
	}
}

static void search_operand(struct grep *g, const char *name)
{
	const char *full;
	struct files_stat st;

	if (g->dirs == GREP_DIR_RECURSE && strcmp(name, "-") != 0) {
		full = shcmd_path(g->io, name);
		if (full != NULL && files_stat(g->io->files, full, true, &st) == 0 &&
		    S_ISDIR(st.mode)) {
			if (!is_excluded(g->dir_globs, g->dir_globs_n, name))
				search_dir(g, name, NULL);
			return;
		}
	}
	if (strcmp(name, "-") == 0 || !is_excluded(g->globs, g->globs_n, name))
		search_file(g, name);
}

/* --- options --- */

enum {
	OPT_INCLUDE = 256,
	OPT_EXCLUDE,
	OPT_EXCLUDE_DIR,
	OPT_COLOR,
	OPT_LABEL,
	OPT_BINARY,
	OPT_LINE_BUFFERED,
	OPT_NO_IGNORE_CASE,
	OPT_NO_MESSAGES
};

static const struct sh_opt opts[] = {
	{ 'E', "extended-regexp", SH_OPT_NONE },
	{ 'F', "fixed-strings", SH_OPT_NONE },
	{ 'G', "basic-regexp", SH_OPT_NONE },
	{ 'P', "perl-regexp", SH_OPT_NONE },
	{ 'e', "regexp", SH_OPT_REQUIRED },
	{ 'f', "file", SH_OPT_REQUIRED },
	{ 'i', "ignore-case", SH_OPT_NONE },
	{ 'y', NULL, SH_OPT_NONE },
	{ OPT_NO_IGNORE_CASE, "no-ignore-case", SH_OPT_NONE },
	{ 'v', "invert-match", SH_OPT_NONE },
	{ 'w', "word-regexp", SH_OPT_NONE },
	{ 'x', "line-regexp", SH_OPT_NONE },
	{ 'c', "count", SH_OPT_NONE },
	{ 'l', "files-with-matches", SH_OPT_NONE },
	{ 'L', "files-without-match", SH_OPT_NONE },
	{ 'm', "max-count", SH_OPT_REQUIRED },
	{ 'o', "only-matching", SH_OPT_NONE },
	{ 'q', "quiet", SH_OPT_NONE },
	{ 'q', "silent", SH_OPT_NONE },
	{ 's', "no-messages", SH_OPT_NONE },
	{ 'b', "byte-offset", SH_OPT_NONE },
	{ 'H', "with-filename", SH_OPT_NONE },
	{ 'h', "no-filename", SH_OPT_NONE },
	{ 'n', "line-number", SH_OPT_NONE },
	{ 'Z', "null", SH_OPT_NONE },
	{ 'z', "null-data", SH_OPT_NONE },
	{ 'a', "text", SH_OPT_NONE },
	{ 'I', NULL, SH_OPT_NONE },
	{ OPT_BINARY, "binary-files", SH_OPT_REQUIRED },
	{ 'U', "binary", SH_OPT_NONE },
	{ 'r', "recursive", SH_OPT_NONE },
	{ 'R', "dereference-recursive", SH_OPT_NONE },
	{ 'd', "directories", SH_OPT_REQUIRED },
	{ 'A', "after-context", SH_OPT_REQUIRED },
	{ 'B', "before-context", SH_OPT_REQUIRED },
	{ 'C', "context", SH_OPT_REQUIRED },
	{ OPT_INCLUDE, "include", SH_OPT_REQUIRED },
	{ OPT_EXCLUDE, "exclude", SH_OPT_REQUIRED },
	{ OPT_EXCLUDE_DIR, "exclude-dir", SH_OPT_REQUIRED },
	{ OPT_COLOR, "color", SH_OPT_OPTIONAL },
	{ OPT_COLOR, "colour", SH_OPT_OPTIONAL },
	{ OPT_LABEL, "label", SH_OPT_REQUIRED },
	{ OPT_LINE_BUFFERED, "line-buffered", SH_OPT_NONE },
	{ '0', NULL, SH_OPT_NONE },
	{ '1', NULL, SH_OPT_NONE },
	{ '2', NULL, SH_OPT_NONE },
	{ '3', NULL, SH_OPT_NONE },
	{ '4', NULL, SH_OPT_NONE },
	{ '5', NULL, SH_OPT_NONE },
	{ '6', NULL, SH_OPT_NONE },
	{ '7', NULL, SH_OPT_NONE },
	{ '8', NULL, SH_OPT_NONE },
	{ '9', NULL, SH_OPT_NONE },
	{ 0, NULL, SH_OPT_NONE },
};

struct options {
	struct grep *g;
	int name;       /* -1 by the number of files, 0 -h, 1 -H */
	int64_t both;   /* -C */
	int digits_at;  /* argument that the last digit stood in */
	int64_t digits; /* -NUM so far */
};

static int add_patterns(struct grep *g, sv text)
{
	buf_put_sv(&g->patterns, text);
	buf_put_byte(&g->patterns, '\n');
	g->have_patterns = true;
	return buf_ok(&g->patterns) ? 0
	                            : ((void)shcmd_err(g->io, "memory exhausted"), GREP_TROUBLE);
}

static int read_patterns(struct grep *g, const char *name)
{
	AUTO_FD fd = shcmd_open_read(g->io, name);
	struct sh_in in;
	int r, e;
	sv chunk;
	bool ended = true;

	if (fd < 0)
		return shcmd_open_err(g->io, name) == 125 ? 125 : GREP_TROUBLE;
	shcmd_in_init(&in, g->io, fd);
	while ((r = shcmd_getchunk(&in, &chunk)) > 0) {
		buf_put_sv(&g->patterns, chunk);
		ended = chunk.p[chunk.n - 1] == '\n';
	}
	e = in.err;
	shcmd_in_fini(&in);
	if (r < 0)
		return (void)text_read_err(g->io, name, e), GREP_TROUBLE;
	if (!ended)
		buf_put_byte(&g->patterns, '\n');
	g->have_patterns = true;
	return 0;
}

static int add_glob(
    struct grep *g, struct grep_glob **list, size_t *n, size_t *cap, const char *text, bool include)
{
	struct grep_glob *p = text_grow(g->io, *list, cap, *n + 1, sizeof(*p));
	size_t len = strlen(text);
	char *copy = shcmd_alloc(g->io, len + 1, 1);

	if (p == NULL || copy == NULL)
		return GREP_TROUBLE;
	*list = p;
	/* "--exclude-dir=build/" means the same without the slash. */
	while (len > 1 && text[len - 1] == '/')
		len--;
	memcpy(copy, text, len);
	p[(*n)++] = (struct grep_glob){ copy, include };
	return 0;
}

static int context_arg(struct grep *g, const char *arg, int64_t *out)
{
	if (text_count(arg, out))
		return 0;
	(void)shcmd_err(g->io, "%s: invalid context length argument", arg);
	return GREP_TROUBLE;
}

static int word_arg(
    struct grep *g, const char *arg, const char *const *words, const char *what, int *out)
{
	for (*out = 0; words[*out] != NULL; (*out)++)
		if (strcmp(arg, words[*out]) == 0)
			return 0;
	(void)shcmd_err(g->io, "%s%s", what, arg);
	return GREP_TROUBLE;
}

static int color_arg(struct grep *g, const char *arg)
{
	static const char *const words[] = { "never", "always", "auto", NULL };
	const char *term = shcmd_env(g->io, "TERM");
	int w;

	if (word_arg(g, arg != NULL ? arg : "auto", words, "invalid --color argument: ", &w) != 0)
		return GREP_TROUBLE;
	g->color = w == 1 || (w == 2 && isatty(g->io->out->fd) == 1 && term != NULL &&
	                         strcmp(term, "dumb") != 0);
	return 0;
}

static int digit(struct options *o, const struct sh_getopt *gt, int c)
{
	if (o->digits < 0 || o->digits_at != gt->i)
		o->digits = 0;
	o->digits_at = gt->i;
	if (o->digits < INT64_MAX / 20)
		o->digits = o->digits * 10 + (c - '0');
	o->both = o->digits;
	return 0;
}

/* The options that take a value. 0 or a status. */
static int take_value(struct options *o, int c, char *arg)
{
	static const char *const binary_words[] = { "binary", "text", "without-match", NULL };
	static const char *const dir_words[] = { "read", "skip", "recurse", NULL };
	struct grep *g = o->g;
	int w;

	switch (c) {
	case 'e':
		return add_patterns(g, sv_c(arg));
	case 'f':
		return read_patterns(g, arg);
	case 'm':
		if (arg[0] == '-') {
			/* Negative: no limit (grep 3.5). */
			g->max = INT64_MAX;
			return 0;
		}
		if (text_count(arg, &g->max))
			return 0;
		(void)shcmd_err(g->io, "invalid max count");
		return GREP_TROUBLE;
	case 'A':
		return context_arg(g, arg, &g->after);
	case 'B':
		return context_arg(g, arg, &g->before);
	case 'C':
		return context_arg(g, arg, &o->both);
	case 'd':
		if (word_arg(g, arg, dir_words, "unknown directories method: ", &w) != 0)
			return GREP_TROUBLE;
		g->dirs = w == 0 ? GREP_DIR_READ : w == 1 ? GREP_DIR_SKIP : GREP_DIR_RECURSE;
		return 0;
	case OPT_BINARY:
		if (word_arg(g, arg, binary_words, "unknown binary-files type: ", &w) != 0)
			return GREP_TROUBLE;
		g->binary = w == 0 ? GREP_BINARY : w == 1 ? GREP_TEXT : GREP_WITHOUT_MATCH;
		return 0;
	case OPT_INCLUDE:
	case OPT_EXCLUDE:
		return add_glob(g, &g->globs, &g->globs_n, &g->globs_cap, arg, c == OPT_INCLUDE);
	case OPT_EXCLUDE_DIR:
		return add_glob(g, &g->dir_globs, &g->dir_globs_n, &g->dir_globs_cap, arg, false);
	case OPT_LABEL:
		g->label = arg;
		return 0;
	default:
		return color_arg(g, arg);
	}
}

/* The options that are switches. */
static void take_switch(struct options *o, int c)
{
	struct grep *g = o->g;

	switch (c) {
	case 'E':
		g->kind = GREP_EXTENDED;
		break;
	case 'F':
		g->kind = GREP_FIXED;
		break;
	case 'G':
		g->kind = GREP_BASIC;
		break;
	case 'P':
		g->kind = GREP_PERL;
		break;
	case 'i':
	case 'y':
		g->icase = true;
		break;
	case OPT_NO_IGNORE_CASE:
		g->icase = false;
		break;
	case 'v':
		g->invert = true;
		break;
	case 'w':
		g->words = true;
		break;
	case 'x':
		g->lines = true;
		break;
	case 'c':
		g->count = true;
		break;
	case 'l':
		g->list = GREP_LIST_MATCHING;
		break;
	case 'L':
		g->list = GREP_LIST_OTHERS;
		break;
	case 'o':
		g->only = true;
		break;
	case 'q':
		g->quiet = true;
		break;
	case 's':
		g->silent = true;
		break;
	case 'b':
		g->offsets = true;
		break;
	case 'H':
	case 'h':
		o->name = c == 'H';
		break;
	case 'n':
		g->numbers = true;
		break;
	case 'Z':
		g->null_name = true;
		break;
	case 'z':
		g->delim = '\0';
		break;
	case 'a':
		g->binary = GREP_TEXT;
		break;
	case 'I':
		g->binary = GREP_WITHOUT_MATCH;
		break;
	case 'r':
	case 'R':
		g->dirs = GREP_DIR_RECURSE;
		g->follow_links = c == 'R';
		break;
	case OPT_LINE_BUFFERED:
		g->line_buffered = true;
		break;
	default: /* -U: text is never converted */
		break;
	}
}

static int parse_options(struct options *o, struct sh_getopt *gt)
{
	int c, status = 0;

	while (status == 0 && (c = shcmd_getopt(o->g->io, gt)) != SH_OPT_END) {
		if (c == SH_OPT_HELP)
			return -1;
		if (c == SH_OPT_ERROR)
			return shcmd_bad_option(o->g->io, gt);
		if (c >= '0' && c <= '9') {
			status = digit(o, gt, c);
			continue;
		}
		o->digits = -1;
		if (gt->arg != NULL || c == OPT_COLOR)
			status = take_value(o, c, gt->arg);
		else
			take_switch(o, c);
	}
	return status;
}

static int usage(struct grep *g)
{
	static const char text[] = "Usage: grep [OPTION]... PATTERNS [FILE]...\n"
	                           "Try 'grep --help' for more information.\n";

	sh_out_put(g->io->err, text, sizeof(text) - 1);
	(void)sh_out_flush(g->io->err);
	return GREP_TROUBLE;
}

static int grep_main(struct options *o, char **names, int n)
{
	static char dash[] = "-", here[] = "";
	struct grep *g = o->g;
	char *only[] = { g->dirs == GREP_DIR_RECURSE ? here : dash, NULL };
	int status = grep_compile(g);

	if (status != 0)
		return status;
	if (g->before < 0)
		g->before = o->both;
	if (g->after < 0)
		g->after = o->both;
	g->with_name = o->name >= 0 ? o->name : n > 1 || g->dirs == GREP_DIR_RECURSE;
	/* A single operand that is no folder has no name in front, also with -r. */
	if (o->name < 0 && g->dirs == GREP_DIR_RECURSE && n == 1) {
		const char *full = shcmd_path(g->io, names[0]);
		struct files_stat st;

		if (strcmp(names[0], "-") == 0 ||
		    (full != NULL && files_stat(g->io->files, full, true, &st) == 0 &&
		        !S_ISDIR(st.mode)))
			g->with_name = false;
	}
	if (n == 0)
		names = only;
	for (; *names != NULL && !grep_done(g); names++) {
		if (*names == here)
			search_dir(g, here, NULL);
		else
			search_operand(g, *names);
	}
	if (g->trouble && !(g->quiet && g->matched))
		return GREP_TROUBLE;
	return g->matched ? 0 : 1;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	struct grep g = { .io = io,
		.max = INT64_MAX,
		.before = -1,
		.after = -1,
		.delim = '\n',
		.patterns = { .max = SHCMD_LINE_MAX } };
	struct options o = { .g = &g, .name = -1, .both = -1, .digits = -1 };
	struct sh_getopt gt = { .argc = argc, .argv = argv, .opts = opts };
	struct text_locale loc;
	int status = parse_options(&o, &gt);

	if (status == 0 && !g.have_patterns) {
		if (gt.i == argc)
			status = usage(&g);
		else
			status = add_patterns(&g, sv_c(argv[gt.i++]));
	}
	if (status == 0) {
		text_locale_begin(&loc, io);
		g.utf8 = loc.utf8;
		status = grep_main(&o, argv + gt.i, argc - gt.i);
		text_locale_end(&loc);
	}
	grep_free(&g);
	return status < 0 ? 0 : status;
}

const struct sh_cmd sh_cmd_grep = {
	.name = "grep",
	.usage = "grep [OPTION]... PATTERNS [FILE]...\n"
	         "  -E extended  -F fixed strings  -P Perl  -e PATTERN  -f FILE  -i ignore case  "
	         "-v invert  -w words  -x lines\n"
	         "  -c count  -l, -L names of files with, without  -m NUM  -o only the match  -q "
	         "quiet  -s no messages\n"
	         "  -n line numbers  -H, -h file names  -b offsets  -A, -B, -C NUM context  -r, -R "
	         "recursive\n"
	         "  --include=GLOB --exclude=GLOB --exclude-dir=GLOB  -a, -I binary files  -z NUL "
	         "lines  --color[=WHEN]\n",
	.flags = SHCMD_UTILITY,
	.usage_status = 2,
	.run = run,
};
