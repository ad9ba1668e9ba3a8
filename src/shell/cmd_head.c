/* head: the first lines or bytes, or all but the last ones (POSIX head, GNU -c -n -NUM -q -v -z).
 * Reads no more than it must: what is left stays for the next reader of a seekable standard
 * input. */
#include <errno.h>
#include <string.h>

#include "shell/text.h"
#include "base/ban.h"

struct head {
	struct sh_io *io;
	int64_t count;
	bool bytes, all_but, headers, any;
	char delim;
};

static int first_lines(struct head *h, struct sh_in *in)
{
	int r = 1;
	sv line;

	for (int64_t n = h->count; n > 0 && (r = shcmd_getline(in, h->delim, &line)) > 0; n--)
		shcmd_put(h->io, line.p, line.n);
	return r;
}

static int first_bytes(struct head *h, struct sh_in *in)
{
	uint64_t left = (uint64_t)h->count;
	int r = 1;
	sv chunk;

	while (left > 0 && (r = shcmd_getchunk(in, &chunk)) > 0) {
		size_t n = chunk.n < left ? chunk.n : (size_t)left;

		shcmd_put(h->io, chunk.p, n);
		in->pos -= chunk.n - n; /* the rest was not ours */
		left -= n;
		if (shcmd_out_dead(h->io))
			break;
	}
	return r;
}

/* All but the last count lines: a line is printed when that many came behind it. */
static int lines_but(struct head *h, struct sh_in *in)
{
	struct text_queue q = { 0 };
	sv line, old;
	int r;

	while ((r = shcmd_getline(in, h->delim, &line)) > 0) {
		if (text_queue_put(h->io, &q, line) != 0) {
			text_queue_fini(&q);
			return -2;
		}
		if ((int64_t)q.len_n > h->count && text_queue_take(&q, &old))
			shcmd_put(h->io, old.p, old.n);
	}
	text_queue_fini(&q);
	return r;
}

static int bytes_but(struct head *h, struct sh_in *in)
{
	struct text_queue q = { 0 };
	size_t held = 0;
	sv chunk, old;
	int r;

	while ((r = shcmd_getchunk(in, &chunk)) > 0 && !shcmd_out_dead(h->io)) {
		if (text_queue_put(h->io, &q, chunk) != 0) {
			text_queue_fini(&q);
			return -2;
		}
		held += chunk.n;
		/* Print whole pieces while enough stays behind them. */
		while (q.len_n != 0 && held - q.len[q.len_from] >= (uint64_t)h->count &&
		       text_queue_take(&q, &old)) {
			shcmd_put(h->io, old.p, old.n);
			held -= old.n;
		}
	}
	while (r == 0 && held > (uint64_t)h->count && text_queue_take(&q, &old)) {
		uint64_t more = held - (uint64_t)h->count;
		size_t n = old.n < more ? old.n : (size_t)more;

		shcmd_put(h->io, old.p, n);
		held -= old.n < held ? old.n : held;
	}
	text_queue_fini(&q);
	return r;
}

static void put_header(struct head *h, const char *name)
{
	if (h->headers)
		shcmd_printf(h->io, "%s==> %s <==\n", h->any ? "\n" : "",
		    strcmp(name, "-") == 0 ? "standard input" : name);
	h->any = true;
}

static int one(void *arg, int fd, const char *name)
{
	struct head *h = arg;
	struct sh_in in;
	int r;

	put_header(h, name);
	shcmd_in_init(&in, h->io, fd);
	if (h->all_but)
		r = h->bytes ? bytes_but(h, &in) : lines_but(h, &in);
	else
		r = h->bytes ? first_bytes(h, &in) : first_lines(h, &in);
	if (r == -1)
		(void)shcmd_err(
		    h->io, "error reading '%s': %s", name, box_strerror(in.err)); /* status below */
	shcmd_in_fini(&in);
	return r < 0 ? 1 : 0;
}

/* N, or -N for all but the last N. */
static int parse_count(struct head *h, const char *s, bool bytes)
{
	h->bytes = bytes;
	h->all_but = *s == '-';
	if (text_count(h->all_but ? s + 1 : s, &h->count))
		return 0;
	return shcmd_err(h->io, "invalid number of %s: '%s'", bytes ? "bytes" : "lines", s);
}

/* "-5", "-5c", "-20lq": only as the first argument. Returns 1 when argv[1] was one, 2 on an
 * error. */
static int obsolete(struct head *h, const char *s, int *verbose)
{
	char digits[24];
	size_t n = strspn(s + 1, "0123456789");

	if (s[0] != '-' || n == 0)
		return 0;
	if (n >= sizeof(digits))
		n = sizeof(digits) - 1; /* larger than any file in any case */
	memcpy(digits, s + 1, n);
	digits[n] = '\0';
	(void)text_count(digits, &h->count); /* digits only */
	for (const char *q = s + 1 + strspn(s + 1, "0123456789"); *q != '\0'; q++) {
		int64_t mul = *q == 'b' ? 512 : *q == 'k' ? 1024 : *q == 'm' ? 1048576 : 1;

		if (strchr("bkmcl", *q) != NULL) {
			h->bytes = *q != 'l';
			if (__builtin_mul_overflow(h->count, mul, &h->count))
				h->count = INT64_MAX;
		} else if (*q == 'q' || *q == 'v') {
			*verbose = *q == 'v';
		} else if (*q == 'z') {
			h->delim = '\0';
		} else {
			(void)shcmd_usage_err(
			    h->io, "invalid trailing option -- %c", *q); /* status below */
			return 2;
		}
	}
	return 1;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	static const struct sh_opt opts[] = {
		{ 'n', "lines", SH_OPT_REQUIRED },
		{ 'c', "bytes", SH_OPT_REQUIRED },
		{ 'q', "quiet", SH_OPT_NONE },
		{ 'q', "silent", SH_OPT_NONE },
		{ 'v', "verbose", SH_OPT_NONE },
		{ 'z', "zero-terminated", SH_OPT_NONE },
		{ 0, NULL, SH_OPT_NONE },
	};
	struct head h = { .io = io, .count = 10, .delim = '\n' };
	int c, verbose = -1;

	if (argc > 1) {
		c = obsolete(&h, argv[1], &verbose);
		if (c == 2)
			return 1;
		argc -= c;
		argv += c;
	}
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = opts };

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case SH_OPT_HELP:
			return 0;
		case SH_OPT_ERROR:
			return shcmd_bad_option(io, &g);
		case 'n':
		case 'c':
			if (parse_count(&h, g.arg, c == 'c') != 0)
				return 1;
			break;
		case 'z':
			h.delim = '\0';
			break;
		default:
			verbose = c == 'v';
		}
	}
	h.headers = verbose >= 0 ? verbose : argc - g.i > 1;
	return text_each(io, argv + g.i, TEXT_OPEN_READING, one, &h);
}

const struct sh_cmd sh_cmd_head = {
	.name = "head",
	.usage = "head [-qvz] [-n [-]LINES | -c [-]BYTES] [FILE]...\n"
	         "  -n N  the first N lines (10); -n -N all but the last N\n"
	         "  -c N  bytes instead of lines    -q  no headers    -v  always headers    -z  "
	         "lines end in NUL\n",
	.flags = SHCMD_UTILITY,
	.run = run,
};
