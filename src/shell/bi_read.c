/* read and mapfile: lines from a descriptor into variables. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shell/parse.h"
#include "shell/shell.h"
#include "base/ban.h"

struct rd_opts {
	bool raw, silent;
	char delim;
	int fd;
	int64_t nchars;     /* -1: a whole line */
	bool exact;         /* -N: the delimiter is ordinary */
	int64_t timeout_ns; /* -1: none */
	const char *array, *prompt;
};

/* One byte. 1, 0 at the end, -1 interrupted or failed, -2 the time is over. On a seekable
 * descriptor a block is read and what is not used given back at the end. */
struct src {
	struct sh_io *io;
	const struct rd_opts *o;
	int64_t end;
	bool seekable;
	char buf[4096];
	size_t pos, n;
};

static int one(struct src *s, char *c)
{
	ssize_t r;

	if (s->pos < s->n) {
		*c = s->buf[s->pos++];
		return 1;
	}
	if (s->o->timeout_ns >= 0) {
		struct pollfd p = { .fd = s->o->fd, .events = POLLIN };
		int64_t left = s->end - clock_now(&s->io->mono);
		int64_t ms = left <= 0 ? 0 : (left + NS_PER_MS - 1) / NS_PER_MS;

		if (poll(&p, 1, ms < INT32_MAX ? (int)ms : INT32_MAX) == 0)
			return -2;
	}
	s->io->sh->traps_break = true;
	r = shcmd_read(s->io, s->o->fd, s->buf, s->seekable ? sizeof(s->buf) : 1);
	s->io->sh->traps_break = false;
	if (r <= 0)
		return (int)r;
	s->n = (size_t)r;
	s->pos = 0;
	*c = s->buf[s->pos++];
	return 1;
}

static void src_end(struct src *s)
{
	if (s->n > s->pos)
		(void)lseek(s->o->fd, -(off_t)(s->n - s->pos), SEEK_CUR); /* seekable by test */
}

/* Read a line into b; `esc` marks bytes that a backslash protected. */
static int line(struct src *s, struct buf *b, struct buf *esc)
{
	const struct rd_opts *o = s->o;
	int64_t chars = 0;

	for (;;) {
		char c;
		int r;

		if (o->nchars >= 0 && chars >= o->nchars)
			return 1;
		r = one(s, &c);
		if (r <= 0)
			return r;
		if (c == '\\' && !o->raw) {
			r = one(s, &c);
			if (r <= 0)
				return r;
			if (c == '\n')
				continue;
			buf_put_byte(b, (uint8_t)c);
			buf_put_byte(esc, 1);
			chars++;
			continue;
		}
		if (c == o->delim && !o->exact)
			return 1;
		if (c == '\0')
			continue;
		buf_put_byte(b, (uint8_t)c);
		buf_put_byte(esc, 0);
		if (((unsigned char)c & 0xc0) != 0x80)
			chars++;
		/* The bytes of one character stay together. */
		if (o->nchars >= 0 && chars == o->nchars && (unsigned char)c >= 0xc0) {
			int more = (unsigned char)c >= 0xf0 ? 3 : (unsigned char)c >= 0xe0 ? 2 : 1;

			while (more-- > 0 && one(s, &c) == 1) {
				buf_put_byte(b, (uint8_t)c);
				buf_put_byte(esc, 0);
			}
		}
		if (!buf_ok(b))
			return -1;
	}
}

struct split {
	const char *ifs;
	const char *p;
	const uint8_t *esc;
	size_t n, i;
};

static bool is_ifs(const struct split *s, size_t i)
{
	return s->esc[i] == 0 && s->p[i] != '\0' && strchr(s->ifs, s->p[i]) != NULL;
}

static bool is_blank(const struct split *s, size_t i)
{
	return is_ifs(s, i) && (s->p[i] == ' ' || s->p[i] == '\t' || s->p[i] == '\n');
}

/* The next field, its delimiter consumed. false: none is left. */
static bool field(struct split *s, sv *out)
{
	size_t from;

	while (s->i < s->n && is_blank(s, s->i))
		s->i++;
	if (s->i >= s->n)
		return false;
	from = s->i;
	while (s->i < s->n && !is_ifs(s, s->i))
		s->i++;
	*out = (sv){ s->p + from, s->i - from };
	while (s->i < s->n && is_blank(s, s->i))
		s->i++;
	if (s->i < s->n && is_ifs(s, s->i))
		s->i++;
	while (s->i < s->n && is_blank(s, s->i))
		s->i++;
	return true;
}

/* What the last variable gets: the rest, without blanks around it; a single field also loses its
 * delimiter. */
static sv rest(struct split *s)
{
	size_t from, end = s->n, at;
	sv one_field;
	struct split probe;

	while (s->i < s->n && is_blank(s, s->i))
		s->i++;
	from = s->i;
	probe = *s;
	at = probe.i;
	if (field(&probe, &one_field) && probe.i >= probe.n)
		return one_field;
	(void)at;
	while (end > from && is_blank(s, end - 1))
		end--;
	return (sv){ s->p + from, end - from };
}

static int set_one(struct shell *sh, const char *name, sv value)
{
	char *v = sh_xdup(value);
	int r = sh_assign_text(sh, name, v);

	free(v);
	return r;
}

static int store(struct sh_io *io, const struct rd_opts *o, const struct buf *b,
    const struct buf *esc, int argc, char **argv, int i)
{
	struct shell *sh = io->sh;
	const char *v = sh_var_get(sh, "IFS");
	char *ifs = sh_adup(io->arena, sv_c(v != NULL ? v : " \t\n"));
	struct split s = { .ifs = o->exact ? "" : ifs,
		.p = b->n != 0 ? (const char *)b->p : "",
		.esc = esc->p,
		.n = b->n };
	sv f;
	int r = 0;

	if (o->array != NULL) {
		int64_t k = 0;

		if (sh_var_make_array(sh, o->array, false) != 0)
			return 1;
		sh_var_clear_elems(sh_var_find(sh, o->array));
		sh_var_declare(sh, o->array, SH_V_SET);
		while (field(&s, &f)) {
			char *t = sh_xdup(f);

			r |= sh_var_set_index(sh, o->array, k++, t, false);
			free(t);
		}
		return r != 0;
	}
	if (i == argc)
		return set_one(sh, "REPLY", (sv){ s.p, s.n }) != 0;
	for (; i < argc; i++) {
		f = SV("");
		if (i + 1 == argc)
			f = rest(&s);
		else
			(void)field(&s, &f);
		if (set_one(sh, argv[i], f) != 0)
			r = 1;
	}
	return r;
}

static bool seconds(const char *s, int64_t *ns)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(s, &end);
	if (end == s || *end != '\0' || !(v >= 0 && v <= 1e9))
		return false;
	*ns = (int64_t)(v * (double)NS_PER_SEC);
	return true;
}

/* -1: a message was printed. */
static int read_options(struct sh_io *io, struct rd_opts *o, int argc, char **argv)
{
	static const struct sh_opt t[] = { { 'r', NULL, SH_OPT_NONE }, { 's', NULL, SH_OPT_NONE },
		{ 'e', NULL, SH_OPT_NONE }, { 'd', NULL, SH_OPT_REQUIRED },
		{ 'n', NULL, SH_OPT_REQUIRED }, { 'N', NULL, SH_OPT_REQUIRED },
		{ 't', NULL, SH_OPT_REQUIRED }, { 'u', NULL, SH_OPT_REQUIRED },
		{ 'a', NULL, SH_OPT_REQUIRED }, { 'p', NULL, SH_OPT_REQUIRED },
		{ 'i', NULL, SH_OPT_REQUIRED }, { 0 } };
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = t, .posix = true };
	int64_t v;
	int c;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case 'r':
			o->raw = true;
			break;
		case 'd':
			o->delim = g.arg[0];
			break;
		case 'n':
		case 'N':
			if (!shcmd_number(g.arg, 0, INT32_MAX, &o->nchars))
				return -shcmd_err(io, "%s: invalid number", g.arg);
			o->exact = c == 'N';
			break;
		case 't':
			if (!seconds(g.arg, &o->timeout_ns))
				return -shcmd_err(io, "%s: invalid timeout specification", g.arg);
			break;
		case 'u':
			if (!shcmd_number(g.arg, 0, SH_FD_USER_MAX - 1, &v))
				return -shcmd_err(
				    io, "%s: invalid file descriptor specification", g.arg);
			o->fd = (int)v;
			break;
		case 'a':
			o->array = g.arg;
			break;
		case 'p':
			o->prompt = g.arg;
			break;
		case SH_OPT_ERROR:
			(void)shcmd_bad_option(io, &g);
			return -2;
		default:
			break;
		}
	}
	return g.i;
}

static int run_read(struct sh_io *io, int argc, char **argv)
{
	struct rd_opts o = { .delim = '\n', .nchars = -1, .timeout_ns = -1 };
	AUTO_BUF b = buf_with(SHCMD_LINE_MAX);
	AUTO_BUF esc = buf_with(SHCMD_LINE_MAX);
	struct src s = { .io = io, .o = &o };
	int i = read_options(io, &o, argc, argv), r, st;

	if (i < 0)
		return -i;
	for (int k = i; k < argc; k++) {
		const char *name;
		struct sh_word *sub;

		if (sh_parse_lvalue(io->arena, argv[k], &name, &sub) != 0)
			return shcmd_err(io, "`%s': not a valid identifier", argv[k]);
	}
	if (o.timeout_ns == 0) {
		struct pollfd p = { .fd = o.fd, .events = POLLIN };

		return poll(&p, 1, 0) > 0 ? 0 : 1;
	}
	s.end = clock_now(&io->mono) + o.timeout_ns;
	s.seekable = lseek(o.fd, 0, SEEK_CUR) >= 0;
	r = line(&s, &b, &esc);
	src_end(&s);
	if (!buf_ok(&b) || !buf_ok(&esc))
		return shcmd_err(io, "line too long");
	if (r == -1 && errno == EBADF)
		return shcmd_err(io, "read error: %d: %s", o.fd, box_strerror(EBADF));
	if (r == -1 && errno == EINTR)
		return 128 + sh_signal_first();
	if (r == -1 && errno != EINTR)
		(void)shcmd_err(io, "read error: %d: %s", o.fd, box_strerror(errno));
	buf_put_byte(&b, 0);
	buf_put_byte(&esc, 0);
	b.n--;
	st = store(io, &o, &b, &esc, argc, argv, i);
	if (r == -2)
		return 142;
	return r <= 0 ? 1 : st;
}

const struct sh_cmd sh_cmd_read = { "read", NULL, SHCMD_BUILTIN, 2, run_read };

/* --- mapfile --- */

static int run_mapfile(struct sh_io *io, int argc, char **argv)
{
	static const struct sh_opt t[] = { { 't', NULL, SH_OPT_NONE },
		{ 'd', NULL, SH_OPT_REQUIRED }, { 'n', NULL, SH_OPT_REQUIRED },
		{ 'O', NULL, SH_OPT_REQUIRED }, { 's', NULL, SH_OPT_REQUIRED },
		{ 'u', NULL, SH_OPT_REQUIRED }, { 0 } };
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = t, .posix = true };
	struct shell *sh = io->sh;
	bool strip = false, origin_given = false;
	int64_t max = 0, origin = 0, skip = 0, fd = 0, n = 0;
	char delim = '\n';
	const char *name;
	struct sh_in in;
	sv l;
	int c, r;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		bool ok = true;

		if (c == 't')
			strip = true;
		else if (c == 'd')
			delim = g.arg[0];
		else if (c == 'n')
			ok = shcmd_number(g.arg, 0, INT32_MAX, &max);
		else if (c == 'O')
			ok = origin_given = shcmd_number(g.arg, 0, INT32_MAX, &origin);
		else if (c == 's')
			ok = shcmd_number(g.arg, 0, INT32_MAX, &skip);
		else if (c == 'u')
			ok = shcmd_number(g.arg, 0, SH_FD_USER_MAX - 1, &fd);
		else
			return shcmd_bad_option(io, &g);
		if (!ok)
			return shcmd_err(io, "%s: invalid number", g.arg);
	}
	name = g.i < argc ? argv[g.i] : "MAPFILE";
	if (!sh_is_name(sv_c(name)))
		return shcmd_err(io, "`%s': not a valid identifier", name);
	if (sh_var_make_array(sh, name, false) != 0)
		return 1;
	if (!origin_given)
		sh_var_clear_elems(sh_var_find(sh, name));
	(void)sh_var_declare(sh, name, SH_V_SET);
	shcmd_in_init(&in, io, (int)fd);
	while ((max == 0 || n < max) && (r = shcmd_getline(&in, delim, &l)) > 0) {
		char *text;

		if (skip > 0) {
			skip--;
			continue;
		}
		if (strip && l.n != 0 && l.p[l.n - 1] == delim)
			l.n--;
		text = sh_xdup(l);
		r = sh_var_set_index(sh, name, origin + n++, text, false);
		free(text);
		if (r != 0)
			break;
	}
	shcmd_in_fini(&in);
	return 0;
}

const struct sh_cmd sh_cmd_mapfile = { "mapfile", NULL, SHCMD_BUILTIN, 2, run_mapfile };
const struct sh_cmd sh_cmd_readarray = { "readarray", NULL, SHCMD_BUILTIN, 2, run_mapfile };
