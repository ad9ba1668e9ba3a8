/* mktemp: box-files makes the name and the file in one step; with a suffix the name is drawn here
 * and created exclusively. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fd.h"
#include "shell/command.h"
#include "base/ban.h"

#define TRIES 100

struct mk {
	struct sh_io *io;
	bool dir, quiet, dry, in_tmp, t_option;
	const char *tmp, *suffix;
};

/* template with its last run of X in front of the suffix replaced at random. */
static const char *drawn(struct mk *m, const char *template)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	const char *s = arena_printf(m->io->arena, "%s%s", template, m->suffix);
	char *copy, *x;

	if (s == NULL)
		return NULL;
	copy = shcmd_alloc(m->io, strlen(s) + 1, 1);
	if (copy == NULL)
		return NULL;
	memcpy(copy, s, strlen(s));
	for (x = copy + strlen(template); x > copy && x[-1] == 'X'; x--) {
		unsigned char r;

		do {
			if (getrandom(&r, 1, 0) != 1)
				return NULL;
		} while (r >= 248); /* 248 = 4 * 62: every letter is equally likely */
		x[-1] = letters[r % 62];
	}
	return copy;
}

static int put(struct mk *m, const char *name)
{
	shcmd_printf(m->io, "%s\n", name);
	return 0;
}

static int fail(struct mk *m, const char *shown)
{
	return m->quiet ? 1 : shcmd_files_err(m->io, shown, files_error(m->io->files));
}

static int make_drawn(struct mk *m, const char *template)
{
	for (int i = 0; i < TRIES; i++) {
		const char *name = drawn(m, template), *path;
		int r;

		if (name == NULL)
			return 1;
		if (m->dry)
			return put(m, name);
		path = shcmd_path(m->io, name);
		if (path == NULL)
			return shcmd_open_err(m->io, name);
		if (m->dir) {
			r = files_mkdir(m->io->files, path, 0700);
		} else {
			r = files_open(m->io->files, path, O_RDWR | O_CREAT | O_EXCL, 0600);
			if (r >= 0)
				(void)close(r);
		}
		if (r >= 0)
			return put(m, name);
		if (files_error(m->io->files)->sys != EEXIST)
			return fail(m, name);
	}
	return shcmd_err(m->io, "no free name for '%s%s'", template, m->suffix);
}

/* The usual case: box-files chooses. Shown as it was spelled: the folder of the template, the new
 * last name. */
static int make_there(struct mk *m, const char *shown)
{
	AUTO_BUF out = buf_with(SHCMD_PATH_MAX);
	ptrdiff_t cut, at;
	sv last;
	int fd = -1;

	if (shcmd_path(m->io, shown) == NULL)
		return shcmd_open_err(m->io, shown);
	if (files_mktemp(m->io->files, shcmd_path(m->io, shown), m->dir, &fd, &out) != 0)
		return fail(m, shown);
	fd_drop(&fd);
	cut = sv_rfind(sv_c(shown), '/');
	at = sv_rfind(buf_sv(&out), '/');
	last = sv_sub(buf_sv(&out), (size_t)(at + 1), out.n);
	if (cut >= 0)
		shcmd_put(m->io, shown, (size_t)cut + 1);
	shcmd_put(m->io, last.p, last.n);
	shcmd_putc(m->io, '\n');
	return 0;
}

static int make(struct mk *m, const char *template)
{
	const char *full = template, *x = template + strlen(template);
	size_t xs = 0;

	/* An X run in the middle: what follows is a suffix. */
	if (m->suffix[0] == '\0') {
		const char *last = strrchr(template, 'X'), *slash = strrchr(template, '/');

		if (last != NULL && last[1] != '\0' && (slash == NULL || last > slash)) {
			m->suffix = last + 1;
			template = full = arena_printf(
			    m->io->arena, "%.*s", (int)(last + 1 - template), template);
			if (full == NULL)
				return 1;
			x = template + strlen(template);
		}
	}
	for (; x > template && x[-1] == 'X'; x--)
		xs++;
	if (xs < 3)
		return shcmd_err(m->io, "too few X's in template '%s%s'", template, m->suffix);
	if (m->in_tmp)
		full = arena_printf(m->io->arena, "%s/%s", m->tmp, template);
	if (full == NULL)
		return 1;
	if (m->dry || m->suffix[0] != '\0' || xs < 6)
		return make_drawn(m, full);
	return make_there(m, full);
}

static int run(struct sh_io *io, int argc, char **argv)
{
	enum { OPT_SUFFIX = 256 };
	static const struct sh_opt t[] = { { 'd', "directory", SH_OPT_NONE },
		{ 'p', NULL, SH_OPT_REQUIRED }, { 'p', "tmpdir", SH_OPT_OPTIONAL },
		{ 'q', "quiet", SH_OPT_NONE }, { 't', NULL, SH_OPT_NONE },
		{ 'u', "dry-run", SH_OPT_NONE }, { OPT_SUFFIX, "suffix", SH_OPT_REQUIRED }, { 0 } };
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = t };
	struct mk m = { .io = io, .suffix = "" };
	const char *env = shcmd_env(io, "TMPDIR");
	int c;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case 'd':
			m.dir = true;
			break;
		case 'q':
			m.quiet = true;
			break;
		case 'u':
			m.dry = true;
			break;
		case 't':
			m.in_tmp = m.t_option = true;
			break;
		case 'p':
			m.in_tmp = true;
			if (g.arg != NULL && *g.arg != '\0')
				m.tmp = g.arg;
			break;
		case OPT_SUFFIX:
			m.suffix = g.arg;
			break;
		case SH_OPT_HELP:
			return 0;
		default:
			return shcmd_bad_option(io, &g);
		}
	}
	if (argc - g.i > 1)
		return shcmd_usage_err(io, "too many templates");
	if (env != NULL && *env != '\0' && (m.tmp == NULL || m.t_option))
		m.tmp = env;
	if (m.tmp == NULL)
		m.tmp = "/tmp";
	if (g.i == argc)
		m.in_tmp = true;
	return make(&m, g.i < argc ? argv[g.i] : "tmp.XXXXXXXXXX");
}

const struct sh_cmd sh_cmd_mktemp = { "mktemp",
	"mktemp [-dqtu] [-p DIR] [--suffix=TEXT] [TEMPLATE]\n"
	"  -d make a folder  -p DIR put it there  -u only name it\n",
	SHCMD_UTILITY, 1, run };
