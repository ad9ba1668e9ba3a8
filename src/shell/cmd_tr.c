/* tr: translate, delete, squeeze bytes (POSIX tr and all of GNU's set notation). Constant memory.
 * Like GNU tr it works on bytes, whatever the locale. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "shell/text.h"
#include "base/ban.h"

#define SET_MAX 65536 /* members of an expanded set: [x*n] can ask for many */

enum item_kind { CHARS, LOWER, UPPER, FILL };

/* A set as a list of bytes, with marks for what needs its place: classes of case (they translate
 * pairwise) and one open repeat. */
struct set {
	struct sh_io *io;
	bool second;
	unsigned char *b;
	enum item_kind *mark; /* of each byte: LOWER/UPPER on the first byte of such a class */
	size_t n, cap, mark_cap;
	ptrdiff_t fill_at; /* where a [c*] stands, or -1 */
	unsigned char fill;
	bool other_class; /* a class that is neither lower nor upper */
};

static int put(struct set *s, unsigned char c, enum item_kind mark)
{
	unsigned char *b;
	enum item_kind *m;

	if (s->n >= SET_MAX)
		return shcmd_err(s->io, "too many characters in set"), -1;
	b = text_grow(s->io, s->b, &s->cap, s->n + 1, 1);
	if (b == NULL)
		return -1;
	s->b = b;
	m = text_grow(s->io, s->mark, &s->mark_cap, s->n + 1, sizeof(*m));
	if (m == NULL)
		return -1;
	s->mark = m;
	s->b[s->n] = c;
	s->mark[s->n++] = mark;
	return 0;
}

/* One possibly escaped character at *p. quoted tells whether a backslash stood before it. */
static unsigned char take_char(const char **p, bool *quoted)
{
	static const char from[] = "abfnrtv\\", to[] = "\a\b\f\n\r\t\v\\";
	const char *s = *p, *q;
	unsigned v = 0;

	*quoted = *s == '\\' && s[1] != '\0';
	if (!*quoted) {
		*p = s + 1;
		return (unsigned char)*s;
	}
	s++;
	if (*s >= '0' && *s <= '7') {
		for (int i = 0;
		     i < 3 && *s >= '0' && *s <= '7' && v * 8 + (unsigned)(*s - '0') < 256; i++)
			v = v * 8 + (unsigned)(*s++ - '0');
		*p = s;
		return (unsigned char)v;
	}
	q = strchr(from, *s);
	*p = s + 1;
	return (unsigned char)(q != NULL ? to[q - from] : *s);
}

static int put_class(struct set *s, const char *name, size_t n)
{
	static const struct {
		const char *name;
		int (*is)(int);
	} classes[] = {
		{ "alnum", isalnum },
		{ "alpha", isalpha },
		{ "blank", isblank },
		{ "cntrl", iscntrl },
		{ "digit", isdigit },
		{ "graph", isgraph },
		{ "lower", islower },
		{ "print", isprint },
		{ "punct", ispunct },
		{ "space", isspace },
		{ "upper", isupper },
		{ "xdigit", isxdigit },
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		enum item_kind mark = classes[i].is == islower   ? LOWER
		                      : classes[i].is == isupper ? UPPER
		                                                 : CHARS;

		if (strlen(classes[i].name) != n || memcmp(classes[i].name, name, n) != 0)
			continue;
		s->other_class = s->other_class || mark == CHARS;
		for (int c = 0; c < 256; c++) {
			if (!classes[i].is(c))
				continue;
			if (put(s, (unsigned char)c, mark) != 0)
				return -1;
			mark = CHARS;
		}
		return 0;
	}
	return shcmd_err(s->io, "invalid character class '%.*s'", (int)n, name), -1;
}

/* "[:class:]", "[=c=]" or "[c*n]" at *p. 1: done, 0: it is none of them, -1. */
static int take_bracket(struct set *s, const char **p)
{
	const char *q = *p + 1, *end;
	bool quoted;

	if (*q == ':' || *q == '=') {
		char close[3] = { *q, ']', '\0' };

		end = strstr(q + 1, close);
		if (end == NULL)
			return 0;
		if (*q == ':') {
			if (end == q + 1)
				return shcmd_err(s->io, "missing character class name '[::]'"), -1;
			if (put_class(s, q + 1, (size_t)(end - q - 1)) != 0)
				return -1;
		} else {
			const char *c = q + 1;
			unsigned char ch = take_char(&c, &quoted);

			if (c != end)
				return shcmd_err(s->io,
				           "%.*s: equivalence class operand must be a single "
				           "character",
				           (int)(end - q - 1), q + 1),
				       -1;
			if (put(s, ch, CHARS) != 0)
				return -1;
		}
		*p = end + 2;
		return 1;
	}
	if (*q == '\0')
		return 0;
	unsigned char c = take_char(&q, &quoted);

	if (*q != '*' || (end = strchr(q, ']')) == NULL)
		return 0;
	sv digits = { q + 1, (size_t)(end - q - 1) };
	uint64_t times = 0;

	if (digits.n != 0 && !sv_to_u64(digits, digits.p[0] == '0' ? 8 : 10, SET_MAX, &times))
		return shcmd_err(s->io, "invalid repeat count '%.*s' in [c*n] construct",
		           (int)digits.n, digits.p),
		       -1;
	if (!s->second && times == 0)
		return shcmd_err(s->io, "the [c*] repeat construct may not appear in string1"), -1;
	if (times == 0) {
		if (s->fill_at >= 0)
			return shcmd_err(
			           s->io, "only one [c*] repeat construct may appear in string2"),
			       -1;
		s->fill_at = (ptrdiff_t)s->n;
		s->fill = c;
	}
	while (times-- > 0)
		if (put(s, c, CHARS) != 0)
			return -1;
	*p = end + 1;
	return 1;
}

static int parse_set(struct set *s, const char *text)
{
	const char *p = text;

	while (*p != '\0') {
		unsigned char lo, hi;
		bool quoted, quoted_hi;
		int r = *p == '[' ? take_bracket(s, &p) : 0;
		const char *from = p;

		if (r < 0)
			return -1;
		if (r > 0)
			continue;
		lo = take_char(&p, &quoted);
		if (*p != '-' || p[1] == '\0') {
			if (put(s, lo, CHARS) != 0)
				return -1;
			continue;
		}
		p++;
		hi = take_char(&p, &quoted_hi);
		if (hi < lo)
			return shcmd_err(s->io,
			           "range-endpoints of '%.*s' are in reverse collating sequence "
			           "order",
			           (int)(p - from), from),
			       -1;
		for (unsigned c = lo; c <= hi; c++)
			if (put(s, (unsigned char)c, CHARS) != 0)
				return -1;
	}
	return 0;
}

/* A [c*] takes what is missing to the length of the first set. */
static int expand_fill(struct set *s, size_t length)
{
	size_t at = (size_t)s->fill_at, more = length > s->n ? length - s->n : 0, n = s->n;

	if (s->fill_at < 0 || more == 0)
		return 0;
	for (size_t i = 0; i < more; i++)
		if (put(s, s->fill, CHARS) != 0)
			return -1;
	memmove(s->b + at + more, s->b + at, n - at);
	memmove(s->mark + at + more, s->mark + at, (n - at) * sizeof(*s->mark));
	memset(s->b + at, s->fill, more);
	for (size_t i = at; i < at + more; i++)
		s->mark[i] = CHARS;
	return 0;
}

static void complement(const struct set *of, struct set *out)
{
	bool in[256] = { false };

	for (size_t i = 0; i < of->n; i++)
		in[of->b[i]] = true;
	for (int c = 0; c < 256; c++)
		if (!in[c] && put(out, (unsigned char)c, CHARS) != 0)
			return;
}

struct tr {
	struct sh_io *io;
	bool complement, delete, squeeze, truncate;
	struct set one, two;
	unsigned char map[256];
	bool kill[256], squash[256];
};

static int run_filter(struct tr *t)
{
	struct sh_in in;
	int r, last = -1;
	sv s;

	shcmd_in_init(&in, t->io, t->io->in);
	while (!shcmd_out_dead(t->io) && (r = shcmd_getchunk(&in, &s)) > 0) {
		char out[4096];
		size_t n = 0;

		for (size_t i = 0; i < s.n; i++) {
			unsigned char c = (unsigned char)s.p[i];

			if (t->kill[c])
				continue;
			c = t->map[c];
			if (t->squash[c] && last == c)
				continue;
			last = c;
			out[n++] = (char)c;
			if (n == sizeof(out)) {
				shcmd_put(t->io, out, n);
				n = 0;
			}
		}
		shcmd_put(t->io, out, n);
	}
	r = in.err != 0 ? shcmd_err(t->io, "read error: %s", box_strerror(in.err)) : 0;
	shcmd_in_fini(&in);
	return r;
}

/* [:lower:] and [:upper:] of the second set must stand where the first has the other (or the
 * same). */
static int check_case(struct tr *t)
{
	if (t->two.other_class)
		return shcmd_err(t->io,
		    "when translating, the only character classes that may appear in\nstring2 are "
		    "'upper' and 'lower'");
	for (size_t i = 0; i < t->two.n; i++)
		if (t->two.mark[i] != CHARS &&
		    (i >= t->one.n || t->one.mark[i] == CHARS || t->complement))
			return shcmd_err(t->io, "misaligned [:upper:] and/or [:lower:] construct");
	return 0;
}

static int make_map(struct tr *t)
{
	size_t n;

	if (expand_fill(&t->two, t->one.n) != 0 || check_case(t) != 0)
		return 1;
	if (t->two.n == 0 && !t->truncate && t->one.n != 0)
		return shcmd_err(t->io, "when not truncating set1, string2 must be non-empty");
	if (t->two.n < t->one.n && !t->truncate && t->two.n != 0 && t->one.n != 0) {
		n = t->two.n;
		while (t->two.n < t->one.n)
			if (put(&t->two, t->two.b[n - 1], CHARS) != 0)
				return 1;
	}
	n = t->one.n < t->two.n ? t->one.n : t->two.n;
	for (size_t i = 0; i < n; i++)
		t->map[t->one.b[i]] = t->two.b[i];
	return 0;
}

static int prepare(struct tr *t, char **sets, int n)
{
	bool translate = n == 2 && !t->delete;
	struct set all = { .io = t->io };

	t->one.io = t->two.io = t->io;
	t->one.fill_at = t->two.fill_at = -1;
	t->two.second = true;
	if (parse_set(&t->one, sets[0]) != 0 || (n == 2 && parse_set(&t->two, sets[1]) != 0))
		return 1;
	if (t->complement) {
		complement(&t->one, &all);
		free(t->one.b);
		free(t->one.mark);
		t->one = all;
	}
	if (!translate && t->two.fill_at >= 0)
		return shcmd_err(
		    t->io, "the [c*] construct may appear in string2 only when translating");
	if (translate && make_map(t) != 0)
		return 1;
	for (size_t i = 0; t->delete &&i < t->one.n; i++)
		t->kill[t->one.b[i]] = true;
	if (t->squeeze) {
		const struct set *s = n == 2 ? &t->two : &t->one;

		for (size_t i = 0; i < s->n; i++)
			t->squash[s->b[i]] = true;
	}
	return 0;
}

static int check_operands(struct tr *t, char **sets, int n)
{
	int least = t->delete == t->squeeze ? 2 : 1, most = t->delete &&!t->squeeze ? 1 : 2;

	if (n == 0)
		return shcmd_usage_err(t->io, "missing operand");
	if (n < least)
		return shcmd_usage_err(t->io, "missing operand after '%s'\n%s", sets[0],
		    t->squeeze
		        ? "Two strings must be given when both deleting and squeezing repeats."
		        : "Two strings must be given when translating.");
	if (n > most)
		return shcmd_usage_err(t->io, "extra operand '%s'%s", sets[most],
		    n == 2
		        ? "\nOnly one string may be given when deleting without squeezing repeats."
		        : "");
	return 0;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	static const struct sh_opt opts[] = {
		{ 'c', "complement", SH_OPT_NONE },
		{ 'C', NULL, SH_OPT_NONE },
		{ 'd', "delete", SH_OPT_NONE },
		{ 's', "squeeze-repeats", SH_OPT_NONE },
		{ 't', "truncate-set1", SH_OPT_NONE },
		{ 0, NULL, SH_OPT_NONE },
	};
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = opts, .posix = true };
	struct tr t = { .io = io };
	int c, status;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case SH_OPT_HELP:
			return 0;
		case SH_OPT_ERROR:
			return shcmd_bad_option(io, &g);
		case 'd':
			t.delete = true;
			break;
		case 's':
			t.squeeze = true;
			break;
		case 't':
			t.truncate = true;
			break;
		default:
			t.complement = true;
		}
	}
	for (int i = 0; i < 256; i++)
		t.map[i] = (unsigned char)i;
	status = check_operands(&t, argv + g.i, argc - g.i);
	if (status == 0)
		status = prepare(&t, argv + g.i, argc - g.i);
	if (status == 0)
		status = run_filter(&t);
	free(t.one.b);
	free(t.one.mark);
	free(t.two.b);
	free(t.two.mark);
	return status;
}

const struct sh_cmd sh_cmd_tr = {
	.name = "tr",
	.usage = "tr [-cdst] SET1 [SET2]\n"
	         "  -c  complement SET1    -d  delete SET1    -s  squeeze repeats of the last set  "
	         "  -t  cut SET1 to SET2\n",
	.flags = SHCMD_UTILITY,
	.run = run,
};
