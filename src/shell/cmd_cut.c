/* cut: selected bytes or fields of each line (POSIX cut, GNU --complement --output-delimiter -z).
 * As in GNU coreutils, -c counts bytes. */
#include <stdlib.h>
#include <string.h>

#include "shell/text.h"
#include "base/ban.h"

struct range {
	uint64_t lo, hi; /* from 1, both included */
};

struct cut {
	struct sh_io *io;
	struct range *r; /* sorted, not overlapping */
	size_t n, cap;
	bool fields, only_delimited, complement;
	char delim, line_delim;
	const char *out_delim; /* NULL: none was given */
	size_t out_delim_n;
};

static int add_range(struct cut *c, uint64_t lo, uint64_t hi)
{
	struct range *p = text_grow(c->io, c->r, &c->cap, c->n + 1, sizeof(*p));

	if (p == NULL)
		return -1;
	c->r = p;
	c->r[c->n++] = (struct range){ lo, hi };
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Sort, join what overlaps (neighbours stay apart: an output delimiter goes between them), then
 * complement. */
static int settle(struct cut *c)
{
	size_t n = 0;

	qsort(c->r, c->n, sizeof(c->r[0]), by_start);
	for (size_t i = 1; i < c->n; i++) {
		if (c->r[i].lo <= c->r[n].hi)
			c->r[n].hi = c->r[i].hi > c->r[n].hi ? c->r[i].hi : c->r[n].hi;
		else
			c->r[++n] = c->r[i];
	}
	c->n = n + 1;
	if (!c->complement)
		return 0;

	struct range *old = c->r;
	size_t old_n = c->n;
	uint64_t from = 1;
	int r = 0;

	c->r = NULL;
	c->n = c->cap = 0;
	for (size_t i = 0; i < old_n && r == 0; i++) {
		if (old[i].lo > from)
			r = add_range(c, from, old[i].lo - 1);
		from = old[i].hi == UINT64_MAX ? 0 : old[i].hi + 1;
	}
	if (r == 0 && from != 0)
		r = add_range(c, from, UINT64_MAX);
	free(old);
	return r;
}

static int bad_list(struct cut *c, const char *s, size_t n, const char *what)
{
	if (n != 0)
		(void)shcmd_usage_err(
		    c->io, "%s '%.*s'", what, (int)n, s); /* status 1 either way */
	else
		(void)shcmd_usage_err(c->io, "%s", what);
	return -1;
}

/* A number of the list; UINT64_MAX is kept for "to the end". */
static int parse_number(struct cut *c, sv s, const char *item, size_t n, uint64_t *out)
{
	if (s.n == 0 || (sv_to_u64(s, 10, UINT64_MAX, out) && *out != UINT64_MAX))
		return 0;
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < '0' || s.p[i] > '9')
			return bad_list(c, item, n,
			    c->fields ? "invalid field value" : "invalid byte/character position");
	(void)shcmd_usage_err(c->io, "%s '%.*s' is too large",
	    c->fields ? "field number" : "byte/character offset", (int)s.n,
	    s.p); /* status 1 either way */
	return -1;
}

/* One "N", "N-", "-M" or "N-M". */
static int parse_item(struct cut *c, const char *s, size_t n)
{
	const char *zero = c->fields ? "fields are numbered from 1"
	                             : "byte/character positions are numbered from 1";
	sv item = { s, n }, lo, hi;
	uint64_t from = 1, to = UINT64_MAX;
	bool range = sv_cut(item, '-', &lo, &hi);

	if (range && sv_find(hi, '-') >= 0)
		return bad_list(c, NULL, 0,
		    c->fields ? "invalid field range" : "invalid byte or character range");
	if (lo.n == 0 && hi.n == 0)
		return bad_list(c, NULL, 0, range ? "invalid range with no endpoint: -" : zero);
	if (parse_number(c, lo, s, n, &from) != 0 || parse_number(c, hi, s, n, &to) != 0)
		return -1;
	if (!range)
		to = from;
	if (from == 0 || to == 0)
		return bad_list(c, NULL, 0, zero);
	if (to < from)
		return bad_list(c, NULL, 0, "invalid decreasing range");
	return add_range(c, from, to);
}

static int parse_list(struct cut *c, const char *list)
{
	for (;;) {
		size_t n = strcspn(list, ", \t");

		if (parse_item(c, list, n) != 0)
			return -1;
		list += n;
		if (*list == '\0')
			return settle(c);
		list++;
	}
}

static void cut_bytes(struct cut *c, sv line)
{
	bool any = false;

	for (size_t i = 0; i < c->n && c->r[i].lo <= line.n; i++) {
		size_t from = (size_t)c->r[i].lo - 1;
		size_t to = c->r[i].hi < line.n ? (size_t)c->r[i].hi : line.n;

		if (any && c->out_delim != NULL)
			shcmd_put(c->io, c->out_delim, c->out_delim_n);
		shcmd_put(c->io, line.p + from, to - from);
		any = true;
	}
	shcmd_putc(c->io, c->line_delim);
}

static void cut_fields(struct cut *c, sv line)
{
	uint64_t field = 1;
	size_t at = 0;
	bool any = false;
	sv rest = line, head;

	if (sv_find(line, c->delim) < 0) {
		if (c->only_delimited)
			return;
		shcmd_put(c->io, line.p, line.n);
		shcmd_putc(c->io, c->line_delim);
		return;
	}
	for (bool more = true; more; field++) {
		more = sv_cut(rest, c->delim, &head, &rest);
		while (at < c->n && c->r[at].hi < field)
			at++;
		if (at == c->n)
			break;
		if (field < c->r[at].lo)
			continue;
		if (any)
			shcmd_put(c->io, c->out_delim != NULL ? c->out_delim : &c->delim,
			    c->out_delim != NULL ? c->out_delim_n : 1);
		shcmd_put(c->io, head.p, head.n);
		any = true;
	}
	shcmd_putc(c->io, c->line_delim);
}

static int one(void *arg, int fd, const char *name)
{
	struct cut *c = arg;
	struct sh_in in;
	sv line;
	int r;

	shcmd_in_init(&in, c->io, fd);
	while ((r = shcmd_getline(&in, c->line_delim, &line)) > 0) {
		if (line.p[line.n - 1] == c->line_delim)
			line.n--;
		if (c->fields)
			cut_fields(c, line);
		else
			cut_bytes(c, line);
	}
	r = r < 0 ? text_read_err(c->io, name, in.err) : 0;
	shcmd_in_fini(&in);
	return r;
}

static int finish(struct cut *c, const char *list, const char *delim, char **names)
{
	int r;

	if (list == NULL)
		return shcmd_usage_err(
		    c->io, "you must specify a list of bytes, characters, or fields");
	if (delim != NULL && !c->fields)
		return shcmd_usage_err(
		    c->io, "an input delimiter may be specified only when operating on fields");
	if (c->only_delimited && !c->fields)
		return shcmd_usage_err(c->io,
		    "suppressing non-delimited lines makes sense\n\tonly when operating on fields");
	if (delim != NULL && delim[0] != '\0' && delim[1] != '\0')
		return shcmd_usage_err(c->io, "the delimiter must be a single character");
	c->delim = delim != NULL ? delim[0] : '\t';
	r = parse_list(c, list) != 0 ? 1 : text_each(c->io, names, TEXT_OPEN_PLAIN, one, c);
	free(c->r);
	return r;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	static const struct sh_opt opts[] = {
		{ 'b', "bytes", SH_OPT_REQUIRED },
		{ 'c', "characters", SH_OPT_REQUIRED },
		{ 'f', "fields", SH_OPT_REQUIRED },
		{ 'd', "delimiter", SH_OPT_REQUIRED },
		{ 's', "only-delimited", SH_OPT_NONE },
		{ 'n', NULL, SH_OPT_NONE },
		{ 'z', "zero-terminated", SH_OPT_NONE },
		{ 256, "complement", SH_OPT_NONE },
		{ 257, "output-delimiter", SH_OPT_REQUIRED },
		{ 0, NULL, SH_OPT_NONE },
	};
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = opts };
	struct cut c = { .io = io, .line_delim = '\n' };
	const char *list = NULL, *delim = NULL;
	int o;

	while ((o = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (o) {
		case SH_OPT_HELP:
			return 0;
		case SH_OPT_ERROR:
			return shcmd_bad_option(io, &g);
		case 'b':
		case 'c':
		case 'f':
			if (list != NULL)
				return shcmd_usage_err(io, "only one list may be specified");
			list = g.arg;
			c.fields = o == 'f';
			break;
		case 'd':
			delim = g.arg;
			break;
		case 's':
			c.only_delimited = true;
			break;
		case 'n':
			break; /* do not split characters: POSIX; GNU ignores it too */
		case 'z':
			c.line_delim = '\0';
			break;
		case 256:
			c.complement = true;
			break;
		default:
			/* An empty one is one NUL byte, as in GNU cut. */
			c.out_delim = g.arg;
			c.out_delim_n = g.arg[0] != '\0' ? strlen(g.arg) : 1;
		}
	}
	return finish(&c, list, delim, argv + g.i);
}

const struct sh_cmd sh_cmd_cut = {
	.name = "cut",
	.usage = "cut -b LIST | -c LIST | -f LIST [-d CHAR] [-s] [-z] [--complement] "
	         "[--output-delimiter=TEXT] [FILE]...\n"
	         "  LIST is N, N-, N-M or -M, several with commas\n",
	.flags = SHCMD_UTILITY,
	.run = run,
};
