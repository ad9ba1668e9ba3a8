/* readlink and realpath. */
#include <errno.h>
#include <string.h>

#include "shell/fileutil.h"
#include "base/ban.h"

enum how { LAST_MAY_MISS, MUST_EXIST, ALL_MAY_MISS };

enum { OPT_RELATIVE_TO = 256, OPT_RELATIVE_BASE };

/* What is missing at the end may be missing: the longest part that can be resolved, then the
 * rest folded as text. */
static int resolve_missing(struct sh_io *io, const char *path, struct buf *out)
{
	size_t n = strlen(path), cut = n;
	sv rest, head;

	for (;;) {
		const char *part = arena_dup(io->arena, (sv){ path, cut != 0 ? cut : 1 }).p;
		const struct files_err *e;

		buf_clear(out);
		if (part == NULL || files_realpath(io->files, part, false, out) == 0)
			break;
		e = files_error(io->files);
		if (e->why != FILES_ERRNO || (e->sys != ENOENT && e->sys != ENOTDIR) || cut == 0)
			return -1;
		while (cut > 0 && path[cut - 1] == '/')
			cut--;
		while (cut > 0 && path[cut - 1] != '/')
			cut--;
	}
	rest = (sv){ path + cut, n - cut };
	for (bool more = rest.n != 0; more;) {
		more = sv_cut(rest, '/', &head, &rest);
		if (head.n == 0 || sv_eq(head, SV(".")))
			continue;
		if (sv_eq(head, SV(".."))) {
			ptrdiff_t up = sv_rfind(buf_sv(out), '/');

			out->n = up > 0 ? (size_t)up : 1;
			continue;
		}
		if (out->n != 1)
			buf_put_byte(out, '/');
		buf_put_sv(out, head);
	}
	return 0;
}

static int resolve(struct sh_io *io, const char *path, enum how how, struct buf *out)
{
	buf_clear(out);
	if (how == ALL_MAY_MISS)
		return resolve_missing(io, path, out);
	return files_realpath(io->files, path, how == MUST_EXIST, out);
}

/* --- readlink --- */

static const struct sh_opt readlink_opts[] = {
	{ 'f', "canonicalize", SH_OPT_NONE },
	{ 'e', "canonicalize-existing", SH_OPT_NONE },
	{ 'm', "canonicalize-missing", SH_OPT_NONE },
	{ 'n', "no-newline", SH_OPT_NONE },
	{ 'q', "quiet", SH_OPT_NONE },
	{ 's', "silent", SH_OPT_NONE },
	{ 'v', "verbose", SH_OPT_NONE },
	{ 'z', "zero", SH_OPT_NONE },
	{ 0 },
};

static int readlink_run(struct sh_io *io, int argc, char **argv)
{
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = readlink_opts };
	bool canonical = false, newline = true, verbose = false;
	enum how how = LAST_MAY_MISS;
	char end = '\n';
	int c, status = 0;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case 'f':
			canonical = true;
			how = LAST_MAY_MISS;
			break;
		case 'e':
			canonical = true;
			how = MUST_EXIST;
			break;
		case 'm':
			canonical = true;
			how = ALL_MAY_MISS;
			break;
		case 'n':
			newline = false;
			break;
		case 'q':
		case 's':
			verbose = false;
			break;
		case 'v':
			verbose = true;
			break;
		case 'z':
			end = '\0';
			break;
		case SH_OPT_HELP:
			return 0;
		default:
			return shcmd_bad_option(io, &g);
		}
	}
	if (g.i == argc)
		return shcmd_usage_err(io, "missing operand");
	newline = newline || argc - g.i > 1;
	for (int i = g.i; i < argc; i++) {
		AUTO_BUF out = buf_with(2 * SHCMD_PATH_MAX);
		const char *path = shcmd_path(io, argv[i]);
		int r = path == NULL ? -1
		        : canonical  ? resolve(io, path, how, &out)
		                     : files_readlink(io->files, path, &out);

		if (r == 0) {
			shcmd_put(io, out.p, out.n);
			if (newline)
				shcmd_putc(io, end);
			continue;
		}
		status = 1;
		if (path == NULL || files_error(io->files)->why == FILES_ERRNO) {
			/* Silent unless asked, as GNU readlink is. */
			if (verbose)
				(void)shcmd_err(io, "%s: %s", argv[i],
				    path == NULL ? box_strerror(ENAMETOOLONG)
				                 : files_error(io->files)->text);
			continue;
		}
		status = shcmd_files_err(io, argv[i], files_error(io->files));
	}
	return status;
}

const struct sh_cmd sh_cmd_readlink = {
	.name = "readlink",
	.usage =
	    "readlink [-efmnqsvz] FILE...\n"
	    "  -f  the real path; the last name may be missing, -e  nothing may, -m  all may\n",
	.flags = SHCMD_UTILITY,
	.run = readlink_run,
};

/* --- realpath --- */

static const struct sh_opt realpath_opts[] = {
	{ 'e', "canonicalize-existing", SH_OPT_NONE },
	{ 'm', "canonicalize-missing", SH_OPT_NONE },
	{ 'q', "quiet", SH_OPT_NONE },
	{ 's', "strip", SH_OPT_NONE },
	{ 's', "no-symlinks", SH_OPT_NONE },
	{ 'z', "zero", SH_OPT_NONE },
	{ 'P', "physical", SH_OPT_NONE },
	{ 'L', "logical", SH_OPT_NONE },
	{ OPT_RELATIVE_TO, "relative-to", SH_OPT_REQUIRED },
	{ OPT_RELATIVE_BASE, "relative-base", SH_OPT_REQUIRED },
	{ 0 },
};

/* Fold as text: no link is looked at. */
static void fold(const char *path, struct buf *out)
{
	sv rest = sv_c(path), head;

	buf_clear(out);
	buf_put_byte(out, '/');
	for (bool more = true; more;) {
		more = sv_cut(rest, '/', &head, &rest);
		if (head.n == 0 || sv_eq(head, SV(".")))
			continue;
		if (sv_eq(head, SV(".."))) {
			ptrdiff_t up = sv_rfind(buf_sv(out), '/');

			out->n = up > 0 ? (size_t)up : 1;
			continue;
		}
		if (out->n != 1)
			buf_put_byte(out, '/');
		buf_put_sv(out, head);
	}
}

static bool is_below(sv path, sv dir)
{
	return dir.n == 1 || (sv_starts(path, dir) && (path.n == dir.n || path.p[dir.n] == '/'));
}

/* path as seen from dir, both canonical. */
static void put_relative(struct sh_io *io, sv path, sv dir)
{
	AUTO_BUF out = buf_with(4 * SHCMD_PATH_MAX);
	size_t same = dir.n;

	while (!is_below(path, sv_sub(dir, 0, same))) {
		ptrdiff_t up = sv_rfind(sv_sub(dir, 0, same), '/');

		same = up > 0 ? (size_t)up : 1;
		buf_put_c(&out, out.n == 0 ? ".." : "/..");
	}
	path = sv_sub(path, same, path.n);
	while (path.n != 0 && path.p[0] == '/')
		path = sv_sub(path, 1, path.n);
	if (path.n != 0 && out.n != 0)
		buf_put_byte(&out, '/');
	buf_put_sv(&out, path);
	shcmd_put(io, out.n != 0 ? (const char *)out.p : ".", out.n != 0 ? out.n : 1);
}

struct real {
	struct sh_io *io;
	enum how how;
	bool text_only, quiet;
};

static int real_of(const struct real *r, const char *arg, struct buf *out)
{
	const char *path = arg[0] != '\0' ? shcmd_path(r->io, arg) : "";

	if (path == NULL)
		return r->quiet ? 1 : shcmd_err(r->io, "%s: %s", arg, box_strerror(ENAMETOOLONG));
	if (r->text_only && path[0] != '\0') {
		fold(path, out);
		return 0;
	}
	if (resolve(r->io, path, r->how, out) == 0)
		return 0;
	if (r->quiet && files_error(r->io->files)->why == FILES_ERRNO)
		return 1;
	return shcmd_files_err(r->io, arg[0] != '\0' ? arg : "''", files_error(r->io->files));
}

static int realpath_run(struct sh_io *io, int argc, char **argv)
{
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = realpath_opts };
	struct real r = { .io = io, .how = LAST_MAY_MISS };
	AUTO_BUF to = buf_with(2 * SHCMD_PATH_MAX), base = buf_with(2 * SHCMD_PATH_MAX);
	const char *rel_to = NULL, *rel_base = NULL;
	char end = '\n';
	int c, status = 0;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case 'e':
			r.how = MUST_EXIST;
			break;
		case 'm':
			r.how = ALL_MAY_MISS;
			break;
		case 'q':
			r.quiet = true;
			break;
		case 's':
			r.text_only = true;
			break;
		case 'z':
			end = '\0';
			break;
		case 'P':
		case 'L':
			break; /* links are resolved as they come */
		case OPT_RELATIVE_TO:
			rel_to = g.arg;
			break;
		case OPT_RELATIVE_BASE:
			rel_base = g.arg;
			break;
		case SH_OPT_HELP:
			return 0;
		default:
			return shcmd_bad_option(io, &g);
		}
	}
	if (g.i == argc)
		return shcmd_usage_err(io, "missing operand");
	if (rel_to == NULL)
		rel_to = rel_base;
	if ((rel_to != NULL && real_of(&r, rel_to, &to) != 0) ||
	    (rel_base != NULL && real_of(&r, rel_base, &base) != 0))
		return 1;
	for (int i = g.i; i < argc; i++) {
		AUTO_BUF out = buf_with(2 * SHCMD_PATH_MAX);
		int e = real_of(&r, argv[i], &out);

		if (e != 0) {
			status = e;
			continue;
		}
		if (rel_to != NULL &&
		    (rel_base == NULL || (is_below(buf_sv(&out), buf_sv(&base)) &&
		                             is_below(buf_sv(&to), buf_sv(&base)))))
			put_relative(io, buf_sv(&out), buf_sv(&to));
		else
			shcmd_put(io, out.p, out.n);
		shcmd_putc(io, end);
	}
	return status;
}

const struct sh_cmd sh_cmd_realpath = {
	.name = "realpath",
	.usage = "realpath [-emqsz] [--relative-to=DIR] [--relative-base=DIR] FILE...\n"
	         "  -e  nothing may be missing, -m  everything may, -s  links are not followed\n",
	.flags = SHCMD_UTILITY,
	.run = realpath_run,
};
