/* ln. -f replaces the old link in one step, decided as a whole. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "shell/fileutil.h"
#include "base/ban.h"

static const struct sh_opt opts[] = {
	{ 's', "symbolic", SH_OPT_NONE },
	{ 'f', "force", SH_OPT_NONE },
	{ 'n', "no-dereference", SH_OPT_NONE },
	{ 'r', "relative", SH_OPT_NONE },
	{ 'v', "verbose", SH_OPT_NONE },
	{ 'T', "no-target-directory", SH_OPT_NONE },
	{ 't', "target-directory", SH_OPT_REQUIRED },
	{ 'P', "physical", SH_OPT_NONE },
	{ 'L', "logical", SH_OPT_NONE },
	{ 'i', "interactive", SH_OPT_NONE },
	{ 0 },
};

struct ln {
	struct sh_io *io;
	bool symbolic, force, no_deref, relative, verbose, not_a_dir, ask, logical;
};

/* Is the last operand a folder to make links in? -1: refused, and said. */
static int is_folder(struct ln *l, const char *arg, const char *path)
{
	struct files_stat st;

	if (l->not_a_dir)
		return 0;
	if (files_stat(l->io->files, path, !l->no_deref, &st) == 0)
		return S_ISDIR(st.mode);
	if (files_error(l->io->files)->why == FILES_ERRNO)
		return 0;
	(void)shcmd_files_err(l->io, arg, files_error(l->io->files));
	return -1;
}

/* The text of a relative link: from the real folder of the link to the real target. */
static const char *relative_text(struct ln *l, const char *target, const char *link)
{
	AUTO_BUF from = buf_with(SHCMD_PATH_MAX), to = buf_with(SHCMD_PATH_MAX);
	AUTO_BUF out = buf_with(4 * SHCMD_PATH_MAX);
	const char *path = shcmd_path(l->io, target), *cut = strrchr(link, '/'), *dir, *a, *b;
	size_t same = 0, i;

	dir = cut == NULL || cut == link
	          ? "/"
	          : arena_dup(l->io->arena, (sv){ link, (size_t)(cut - link) }).p;
	if (path == NULL || dir == NULL || files_realpath(l->io->files, dir, true, &from) != 0 ||
	    files_realpath(l->io->files, path, false, &to) != 0)
		return NULL;
	a = buf_cstr(&from);
	b = buf_cstr(&to);
	if (a == NULL || b == NULL)
		return NULL;
	for (i = 0; a[i] == b[i] && a[i] != '\0'; i++) {
		if (a[i] == '/')
			same = i;
	}
	if ((a[i] == '\0' && b[i] == '/') || (b[i] == '\0' && a[i] == '/') ||
	    (a[i] == '\0' && b[i] == '\0'))
		same = i;
	if (a[1] == '\0')
		same = 0;
	for (const char *p = a + same; *p != '\0' && a[1] != '\0'; p++) {
		if (*p == '/' && p[1] != '\0')
			buf_put_c(&out, "../");
	}
	b += same;
	while (*b == '/')
		b++;
	buf_put_c(&out, b);
	if (out.n > 1 && *b == '\0')
		out.n--;
	if (out.n == 0)
		buf_put_byte(&out, '.');
	return buf_ok(&out) ? arena_dup(l->io->arena, buf_sv(&out)).p : NULL;
}

/* -L: the file that a link leads to. */
static const char *real_path(struct ln *l, const char *path)
{
	AUTO_BUF out = buf_with(SHCMD_PATH_MAX);

	if (files_realpath(l->io->files, path, true, &out) != 0)
		return NULL;
	return arena_dup(l->io->arena, buf_sv(&out)).p;
}

static int make_link(struct ln *l, const char *target, const char *shown)
{
	const char *what =
	    l->symbolic ? "failed to create symbolic link" : "failed to create hard link";
	const char *path = shf_path(l->io, what, shown), *text = target;
	struct files_stat st;
	int r;

	if (path == NULL)
		return 1;
	if (l->symbolic) {
		if (l->relative && (text = relative_text(l, target, path)) == NULL)
			return shf_fail(l->io, what, shown);
	} else if ((text = shf_path(l->io, "failed to access", target)) == NULL) {
		return 1;
	} else if (files_stat(l->io->files, text, l->logical, &st) != 0 ||
	           (l->logical && (text = real_path(l, text)) == NULL)) {
		return shf_fail(l->io, "failed to access", target);
	} else if (S_ISDIR(st.mode)) {
		return shcmd_err(l->io, "%s: hard link not allowed for directory", target);
	}
	if (l->ask && files_stat(l->io->files, path, false, &st) == 0 &&
	    !shf_confirm(l->io, "replace '%s'? ", shown))
		return 0;
	if (l->symbolic)
		r = l->force || l->ask ? files_symlink_over(l->io->files, text, path)
		                       : files_symlink(l->io->files, text, path);
	else
		r = l->force || l->ask ? files_link_over(l->io->files, text, path)
		                       : files_link(l->io->files, text, path);
	if (r != 0) {
		const struct files_err *e = files_error(l->io->files);

		if (!l->symbolic && e->why == FILES_ERRNO && e->sys != EEXIST)
			return shcmd_err(l->io, "failed to create hard link '%s' => '%s': %s",
			    shown, target, e->text);
		return shf_fail_err(l->io, what, shown, e);
	}
	if (l->verbose)
		shcmd_printf(l->io, "'%s' %s '%s'\n", shown, l->symbolic ? "->" : "=>",
		    l->symbolic ? text : target);
	return 0;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = opts };
	struct ln l = { .io = io };
	const char *dir = NULL;
	int c, n, status = 0, folder = 1;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case 's':
			l.symbolic = true;
			break;
		case 'f':
			l.force = true;
			l.ask = false;
			break;
		case 'i':
			l.ask = true;
			break;
		case 'n':
			l.no_deref = true;
			break;
		case 'r':
			l.relative = true;
			break;
		case 'v':
			l.verbose = true;
			break;
		case 'T':
			l.not_a_dir = true;
			break;
		case 't':
			dir = g.arg;
			break;
		case 'P':
			l.logical = false;
			break;
		case 'L':
			l.logical = true;
			break;
		case SH_OPT_HELP:
			return 0;
		default:
			return shcmd_bad_option(io, &g);
		}
	}
	n = argc - g.i;
	if (n == 0)
		return shcmd_usage_err(io, "missing file operand");
	if (l.relative && !l.symbolic)
		return shcmd_usage_err(io, "cannot do --relative without --symbolic");
	if (dir == NULL && n == 1)
		dir = ".";
	else if (dir == NULL) {
		const char *last = argv[argc - 1];
		const char *path = last[0] != '\0' ? shf_path(io, "failed to access", last) : "";

		if (path == NULL)
			return 1;
		folder = is_folder(&l, last, path);
		if (folder < 0)
			return 1;
		if (folder == 0 && n > 2)
			return l.not_a_dir
			           ? shcmd_usage_err(io, "extra operand '%s'", argv[g.i + 2])
			           : shcmd_err(io, "target '%s' is not a directory", last);
		if (folder == 0)
			return make_link(&l, argv[g.i], last);
		dir = last;
		n--;
	}
	for (int i = 0; i < n; i++) {
		const char *target = argv[g.i + i];
		const char *to = shf_join(io->arena, dir, shf_base(target));
		int r = to == NULL ? 1 : make_link(&l, target, to);

		if (r != 0)
			status = r;
	}
	return status;
}

const struct sh_cmd sh_cmd_ln = {
	.name = "ln",
	.usage =
	    "ln [-fnrsvT] TARGET LINK\nln [-fnrsv] TARGET... DIR\n"
	    "  -s  symbolic, -f  replace, -n  a link to a folder is not the folder, -r  relative\n",
	.flags = SHCMD_UTILITY,
	.run = run,
};
