/* sort: order, merge or check lines (POSIX sort, GNU -g -h -M -V -s -z -C). In memory, up to
 * SHCMD_MEM_MAX: there are no temporary files. Collation is by bytes, as in the C locale. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "shell/sort_key.h"
#include "shell/text.h"
#include "base/ban.h"

struct sort {
	struct sh_io *io;
	struct sort_rules r;
	bool check, check_quiet, merge;
	const char *output;
	char delim;
	/* the text and its lines; lines are offsets until everything is read, since text moves */
	char *text;
	size_t text_n, text_cap;
	struct sort_line *lines, *spare;
	size_t lines_n, lines_cap;
};

#define SORT_TROUBLE 2 /* the status of every failure */

/* --- reading --- */

static int add_line(struct sort *s, sv line)
{
	char *t = text_grow(s->io, s->text, &s->text_cap, s->text_n + line.n + 1, 1);
	struct sort_line *l;

	if (t == NULL)
		return -1;
	s->text = t;
	l = text_grow(s->io, s->lines, &s->lines_cap, s->lines_n + 1, sizeof(*l));
	if (l == NULL)
		return -1;
	s->lines = l;
	if (line.n != 0)
		memcpy(s->text + s->text_n, line.p, line.n);
	/* .p and the key are set by settle_lines. */
	s->lines[s->lines_n++].text = (sv){ NULL, line.n };
	s->text_n += line.n;
	return 0;
}

static void settle_lines(struct sort *s)
{
	size_t at = 0;

	for (size_t i = 0; i < s->lines_n; i++) {
		struct sort_line *l = &s->lines[i];

		l->text.p = s->text + at;
		at += l->text.n;
		if (s->r.keys_n != 0)
			l->key = sort_key_of(&s->r, &s->r.keys[0], l->text);
	}
}

static int fail_read(struct sort *s, const char *name)
{
	if (s->io->last.why == FILES_ERRNO)
		(void)shcmd_err(s->io, "%s: %s: %s",
		    s->io->last.sys == EISDIR ? "read failed" : "cannot read", name,
		    s->io->last.text);
	else if (shcmd_open_err(s->io, name) == 125)
		return 125;
	return SORT_TROUBLE;
}

static int read_file(struct sort *s, const char *name)
{
	AUTO_FD fd = shcmd_open_read(s->io, name);
	struct sh_in in;
	int r, status = 0;
	sv line;

	if (fd < 0)
		return fail_read(s, name);
	shcmd_in_init(&in, s->io, fd);
	while (status == 0 && (r = shcmd_getline(&in, s->delim, &line)) > 0) {
		if (line.p[line.n - 1] == s->delim)
			line.n--;
		if (add_line(s, line) != 0)
			status = SORT_TROUBLE;
	}
	if (in.err != 0) {
		(void)shcmd_err(s->io, "read failed: %s: %s", name, box_strerror(in.err));
		status = SORT_TROUBLE;
	}
	shcmd_in_fini(&in);
	return status;
}

/* --- ordering --- */

/* Merge sort, stable, no recursion: runs of 1, 2, 4, … lines. Stops early when the command is
 * interrupted. */
static void order_lines(struct sort *s)
{
	struct sort_line *from = s->lines, *to = s->spare;

	for (size_t width = 1; width < s->lines_n && !shcmd_interrupted(s->io); width *= 2) {
		for (size_t lo = 0; lo < s->lines_n; lo += 2 * width) {
			size_t mid = s->lines_n - lo > width ? lo + width : s->lines_n;
			size_t hi = s->lines_n - mid > width ? mid + width : s->lines_n;
			size_t i = lo, j = mid, k = lo;

			while (i < mid && j < hi)
				to[k++] = sort_compare_lines(&s->r, &from[j], &from[i]) < 0
				              ? from[j++]
				              : from[i++];
			while (i < mid)
				to[k++] = from[i++];
			while (j < hi)
				to[k++] = from[j++];
		}
		struct sort_line *t = from;

		from = to;
		to = t;
	}
	s->lines = from;
	s->spare = to;
}

/* --- writing --- */

struct sink {
	struct sort *s;
	struct sh_out *out;
	bool have;
	sv last; /* for -u; borrowed */
};

static void put(struct sink *k, sv line)
{
	if (k->s->r.unique && k->have && sort_compare(&k->s->r, k->last, line) == 0)
		return;
	k->have = true;
	k->last = line;
	sh_out_put(k->out, line.p, line.n);
	sh_out_put(k->out, &k->s->delim, 1);
}

/* Open the place the result goes to, when everything is read: the output may be one of the
 * inputs. */
static int write_lines(struct sort *s)
{
	struct sh_out file, *out = s->io->out;
	AUTO_FD fd = -1;

	if (s->output != NULL) {
		fd = shcmd_open_write(s->io, s->output, O_CREAT | O_TRUNC);
		if (fd < 0) {
			if (s->io->last.why != FILES_ERRNO)
				return shcmd_open_err(s->io, s->output) == 125 ? 125 : SORT_TROUBLE;
			(void)shcmd_err(s->io, "open failed: %s: %s", s->output, s->io->last.text);
			return SORT_TROUBLE;
		}
		sh_out_init(&file, fd);
		out = &file;
	}
	struct sink k = { .s = s, .out = out };

	for (size_t i = 0; i < s->lines_n && out->err == 0; i++)
		put(&k, s->lines[i].text);
	if (s->output == NULL)
		return 0;
	int e = sh_out_fini(&file);

	if (e == 0)
		return 0;
	(void)shcmd_err(s->io, "write failed: %s: %s", s->output, box_strerror(e));
	return SORT_TROUBLE;
}

/* --- merging --- */

/* One input of -m. */
struct run {
	struct sh_in in;
	int fd;
	const char *name;
	sv line; /* borrowed from in */
	bool have;
};

static int next_line(struct sort *s, struct run *r)
{
	int got = shcmd_getline(&r->in, s->delim, &r->line);

	r->have = got > 0;
	if (got < 0) {
		(void)shcmd_err(s->io, "read failed: %s: %s", r->name, box_strerror(r->in.err));
		return SORT_TROUBLE;
	}
	if (r->have && r->line.p[r->line.n - 1] == s->delim)
		r->line.n--;
	return 0;
}

/* The merged lines go to memory: -o may name an input, and -u compares with the line before. */
static int merge_runs(struct sort *s, struct run *runs, size_t n)
{
	int status = 0;

	while (status == 0 && !shcmd_interrupted(s->io)) {
		struct run *least = NULL;

		for (size_t i = 0; i < n; i++)
			if (runs[i].have &&
			    (least == NULL || sort_compare(&s->r, runs[i].line, least->line) < 0))
				least = &runs[i];
		if (least == NULL)
			return 0;
		if (add_line(s, least->line) != 0)
			return SORT_TROUBLE;
		status = next_line(s, least);
	}
	return status;
}

static int merge_files(struct sort *s, char **names, size_t n)
{
	struct run *runs = shcmd_alloc(s->io, n, sizeof(*runs));
	size_t opened = 0;
	int status = runs == NULL ? SORT_TROUBLE : 0;

	while (status == 0 && opened < n) {
		struct run *r = &runs[opened];

		r->name = names[opened];
		r->fd = shcmd_open_read(s->io, r->name);
		if (r->fd < 0) {
			status = fail_read(s, r->name);
			break;
		}
		opened++;
		shcmd_in_init(&r->in, s->io, r->fd);
		status = next_line(s, r);
	}
	if (status == 0)
		status = merge_runs(s, runs, n);
	for (size_t i = 0; i < opened; i++) {
		shcmd_in_fini(&runs[i].in);
		fd_drop(&runs[i].fd);
	}
	return status;
}

/* --- checking --- */

static int check_file(struct sort *s, const char *name)
{
	AUTO_FD fd = shcmd_open_read(s->io, name);
	AUTO_BUF before = buf_with(SHCMD_LINE_MAX);
	uint64_t number = 0;
	int r, status = 0;
	struct sh_in in;
	sv line;

	if (fd < 0)
		return fail_read(s, name);
	shcmd_in_init(&in, s->io, fd);
	while ((r = shcmd_getline(&in, s->delim, &line)) > 0) {
		if (line.p[line.n - 1] == s->delim)
			line.n--;
		if (++number > 1) {
			int c = sort_compare(&s->r, buf_sv(&before), line);

			if (c > 0 || (c == 0 && s->r.unique)) {
				status = 1;
				break;
			}
		}
		buf_clear(&before);
		buf_put_sv(&before, line);
	}
	if (status == 1 && !s->check_quiet)
		(void)shcmd_err(s->io, "%s:%llu: disorder: " SV_FMT, name,
		    (unsigned long long)number, SV_ARG(line));
	if (in.err != 0) {
		(void)shcmd_err(s->io, "read failed: %s: %s", name, box_strerror(in.err));
		status = SORT_TROUBLE;
	}
	shcmd_in_fini(&in);
	return status;
}

/* --- options --- */

static int set_order(struct sort_order *o, char c)
{
	switch (c) {
	case 'b':
		o->skip_start_blanks = o->skip_end_blanks = true;
		return 0;
	case 'd':
		o->dictionary = true;
		return 0;
	case 'f':
		o->nocase = true;
		return 0;
	case 'g':
		o->general = true;
		return 0;
	case 'h':
		o->human = true;
		return 0;
	case 'i':
		o->printing = true;
		return 0;
	case 'M':
		o->month = true;
		return 0;
	case 'n':
		o->numeric = true;
		return 0;
	case 'r':
		o->reverse = true;
		return 0;
	case 'V':
		o->version = true;
		return 0;
	default:
		return -1;
	}
}

/* A count in a key; large ones mean "beyond every line". */
static const char *key_number(const char *p, size_t *out)
{
	size_t v = 0;

	if (*p < '0' || *p > '9')
		return NULL;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, (size_t)10, &v) ||
		    __builtin_add_overflow(v, (size_t)(*p - '0'), &v) || v > SIZE_MAX / 2)
			v = SIZE_MAX / 2;
	*out = v;
	return p;
}

static int bad_key(struct sort *s, const char *spec, const char *why)
{
	(void)shcmd_err(s->io, "%s: invalid field specification '%s'", why, spec);
	return SORT_TROUBLE;
}

static int bad_count(struct sort *s, const char *p, const char *why)
{
	(void)shcmd_err(s->io, "%s: invalid count at start of '%s'", why, p);
	return SORT_TROUBLE;
}

/* "F[.C][OPTS][,F[.C][OPTS]]" */
static int add_key(struct sort *s, const char *spec)
{
	struct sort_key k = { .end_word = SIZE_MAX };
	struct sort_order end = { 0 };
	struct sort_key *keys;
	const char *p = key_number(spec, &k.start_word), *q;

	if (p == NULL)
		return bad_count(s, spec, "invalid number at field start");
	if (k.start_word-- == 0)
		return bad_key(s, spec, "field number is zero");
	if (*p == '.') {
		q = key_number(p + 1, &k.start_char);
		if (q == NULL)
			return bad_count(s, p + 1, "invalid number after '.'");
		if (k.start_char-- == 0)
			return bad_key(s, spec, "character offset is zero");
		p = q;
	}
	for (; *p != '\0' && set_order(&k.o, *p) == 0; p++)
		;
	k.o.skip_end_blanks = false; /* a b here is about the start only */
	if (*p == ',') {
		q = key_number(p + 1, &k.end_word);
		if (q == NULL)
			return bad_count(s, p + 1, "invalid number after ','");
		if (k.end_word-- == 0)
			return bad_key(s, spec, "field number is zero");
		p = q;
		if (*p == '.') {
			q = key_number(p + 1, &k.end_char);
			if (q == NULL)
				return bad_count(s, p + 1, "invalid number after '.'");
			p = q;
		}
		for (; *p != '\0'; p++) {
			if (*p == 'b')
				end.skip_end_blanks = true;
			else if (set_order(&k.o, *p) != 0)
				break;
		}
		k.o.skip_end_blanks = end.skip_end_blanks;
	}
	if (*p != '\0')
		return bad_key(s, spec, "stray character in field spec");
	keys = text_grow(s->io, s->r.keys, &s->r.keys_cap, s->r.keys_n + 1, sizeof(*keys));
	if (keys == NULL)
		return SORT_TROUBLE;
	s->r.keys = keys;
	s->r.keys[s->r.keys_n++] = k;
	return 0;
}

static int set_tab(struct sort *s, const char *arg)
{
	int tab = (unsigned char)arg[0];

	if (arg[0] == '\0') {
		(void)shcmd_err(s->io, "empty tab");
		return SORT_TROUBLE;
	}
	if (strcmp(arg, "\\0") == 0) {
		tab = 0;
	} else if (arg[1] != '\0') {
		(void)shcmd_err(s->io, "multi-character tab '%s'", arg);
		return SORT_TROUBLE;
	}
	if (s->r.tab >= 0 && s->r.tab != tab) {
		(void)shcmd_err(s->io, "incompatible tabs");
		return SORT_TROUBLE;
	}
	s->r.tab = tab;
	return 0;
}

/* At most one way to compare; -d and -i not with a numeric one. */
static int check_order(struct sort *s, const struct sort_order *o)
{
	char named[16];
	size_t n = 0;
	int ways = o->numeric + o->human + o->general + o->month +
	           (o->version || o->dictionary || o->printing);

	if (ways <= 1)
		return 0;
	if (o->dictionary)
		named[n++] = 'd';
	if (o->general)
		named[n++] = 'g';
	if (o->human)
		named[n++] = 'h';
	if (o->printing && !o->dictionary)
		named[n++] = 'i';
	if (o->month)
		named[n++] = 'M';
	if (o->numeric)
		named[n++] = 'n';
	if (o->version)
		named[n++] = 'V';
	named[n] = '\0';
	(void)shcmd_err(s->io, "options '-%s' are incompatible", named);
	return SORT_TROUBLE;
}

/* Keys without an ordering of their own take the global one; without keys the global ordering is a
 * key over the whole line. */
static int settle_keys(struct sort *s)
{
	for (size_t i = 0; i < s->r.keys_n; i++) {
		struct sort_key *k = &s->r.keys[i];

		if (sort_order_is_plain(&k->o) && !k->o.reverse)
			k->o = s->r.whole;
		if (check_order(s, &k->o) != 0)
			return SORT_TROUBLE;
	}
	if (s->r.keys_n == 0 && !sort_order_is_plain(&s->r.whole)) {
		struct sort_key *k = text_grow(s->io, NULL, &s->r.keys_cap, 1, sizeof(*k));

		if (k == NULL)
			return SORT_TROUBLE;
		*k = (struct sort_key){ .end_word = SIZE_MAX, .o = s->r.whole };
		s->r.keys = k;
		s->r.keys_n = 1;
		return check_order(s, &k->o);
	}
	return 0;
}

static int sort_main(struct sort *s, char **names, int n)
{
	static char dash[] = "-";
	char *only[] = { dash, NULL };
	int status = settle_keys(s);

	if (status != 0)
		return status;
	if (n == 0) {
		names = only;
		n = 1;
	}
	if (s->check) {
		if (n > 1) {
			(void)shcmd_err(s->io, "extra operand '%s' not allowed with -%c", names[1],
			    s->check_quiet ? 'C' : 'c');
			return SORT_TROUBLE;
		}
		return check_file(s, names[0]);
	}
	if (s->merge) {
		status = merge_files(s, names, (size_t)n);
		settle_lines(s);
		return status == 0 ? write_lines(s) : status;
	}
	for (int i = 0; i < n && status == 0; i++)
		status = read_file(s, names[i]);
	if (status != 0)
		return status;
	settle_lines(s);
	if (s->lines_n > 1) {
		size_t cap = 0;

		s->spare = text_grow(s->io, NULL, &cap, s->lines_n, sizeof(*s->spare));
		if (s->spare == NULL)
			return SORT_TROUBLE;
		order_lines(s);
	}
	return write_lines(s);
}

enum { OPT_SORT = 256, OPT_CHECK, OPT_PARALLEL };

static int sort_word(struct sort *s, const char *w)
{
	static const struct {
		const char *word;
		char c;
	} words[] = { { "general-numeric", 'g' }, { "human-numeric", 'h' }, { "month", 'M' },
		{ "numeric", 'n' }, { "version", 'V' } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(w, words[i].word) == 0)
			return set_order(&s->r.whole, words[i].c);
	(void)shcmd_err(s->io, "invalid argument '%s' for '--sort'", w);
	return -1;
}

/* One option that is no ordering. 0, or a status. */
static int take_option(struct sort *s, int c, char *arg)
{
	switch (c) {
	case 'k':
		return add_key(s, arg);
	case 't':
		return set_tab(s, arg);
	case 'u':
		s->r.unique = true;
		return 0;
	case 's':
		s->r.stable = true;
		return 0;
	case 'm':
		s->merge = true;
		return 0;
	case 'z':
		s->delim = '\0';
		return 0;
	case 'o':
		if (s->output != NULL && strcmp(s->output, arg) != 0) {
			(void)shcmd_err(s->io, "multiple output files specified");
			return SORT_TROUBLE;
		}
		s->output = arg;
		return 0;
	case 'C':
	case 'c':
		s->check = true;
		s->check_quiet = c == 'C';
		return 0;
	case OPT_CHECK:
		s->check = true;
		s->check_quiet = arg != NULL && strcmp(arg, "diagnose-first") != 0;
		return 0;
	case OPT_SORT:
		return sort_word(s, arg) == 0 ? 0 : SORT_TROUBLE;
	case 'S': /* -S, -T, --parallel: how the original uses the machine */
	case 'T':
	case OPT_PARALLEL:
		return 0;
	default:
		return set_order(&s->r.whole, (char)c) == 0 ? 0 : SORT_TROUBLE;
	}
}

static int run(struct sh_io *io, int argc, char **argv)
{
	static const struct sh_opt opts[] = {
		{ 'b', "ignore-leading-blanks", SH_OPT_NONE },
		{ 'd', "dictionary-order", SH_OPT_NONE },
		{ 'f', "ignore-case", SH_OPT_NONE },
		{ 'g', "general-numeric-sort", SH_OPT_NONE },
		{ 'h', "human-numeric-sort", SH_OPT_NONE },
		{ 'i', "ignore-nonprinting", SH_OPT_NONE },
		{ 'M', "month-sort", SH_OPT_NONE },
		{ 'n', "numeric-sort", SH_OPT_NONE },
		{ 'r', "reverse", SH_OPT_NONE },
		{ 'V', "version-sort", SH_OPT_NONE },
		{ OPT_SORT, "sort", SH_OPT_REQUIRED },
		{ 'c', NULL, SH_OPT_NONE },
		{ 'C', NULL, SH_OPT_NONE },
		{ OPT_CHECK, "check", SH_OPT_OPTIONAL },
		{ 'k', "key", SH_OPT_REQUIRED },
		{ 'm', "merge", SH_OPT_NONE },
		{ 'o', "output", SH_OPT_REQUIRED },
		{ 's', "stable", SH_OPT_NONE },
		{ 't', "field-separator", SH_OPT_REQUIRED },
		{ 'u', "unique", SH_OPT_NONE },
		{ 'z', "zero-terminated", SH_OPT_NONE },
		{ 'S', "buffer-size", SH_OPT_REQUIRED },
		{ 'T', "temporary-directory", SH_OPT_REQUIRED },
		{ OPT_PARALLEL, "parallel", SH_OPT_REQUIRED },
		{ 0, NULL, SH_OPT_NONE },
	};
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = opts };
	struct sort s = { .io = io, .r.tab = -1, .delim = '\n' };
	int c, status = 0;

	while (status == 0 && (c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		if (c == SH_OPT_HELP) {
			free(s.r.keys);
			return 0;
		}
		status = c == SH_OPT_ERROR ? shcmd_bad_option(io, &g) : take_option(&s, c, g.arg);
	}
	if (status == 0)
		status = sort_main(&s, argv + g.i, argc - g.i);
	free(s.text);
	free(s.lines);
	free(s.spare);
	free(s.r.keys);
	return status;
}

const struct sh_cmd sh_cmd_sort = {
	.name = "sort",
	.usage =
	    "sort [-bdfghiMnrVsuzcCm] [-k F[.C][OPTS][,F[.C][OPTS]]] [-t CHAR] [-o FILE] "
	    "[FILE]...\n"
	    "  -n numeric  -h 2K, 1G  -g floats  -M months  -V versions  -f ignore case  -r "
	    "reverse  -u unique\n"
	    "  -k key  -t separator  -s stable  -c check  -m merge sorted files  -o output file\n",
	.flags = SHCMD_UTILITY,
	.usage_status = 2,
	.run = run,
};
