/* rm and rmdir. Everything named is planned and decided before the first name goes (design.md
 * 6). */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "shell/fileutil.h"
#include "base/ban.h"

enum { OPT_ONE_FS = 256, OPT_PRESERVE_ROOT, OPT_NO_PRESERVE_ROOT, OPT_INTERACTIVE };

static const struct sh_opt rm_opts[] = {
	{ 'r', "recursive", SH_OPT_NONE },
	{ 'R', NULL, SH_OPT_NONE },
	{ 'f', "force", SH_OPT_NONE },
	{ 'd', "dir", SH_OPT_NONE },
	{ 'v', "verbose", SH_OPT_NONE },
	{ 'i', NULL, SH_OPT_NONE },
	{ 'I', NULL, SH_OPT_NONE },
	{ OPT_INTERACTIVE, "interactive", SH_OPT_OPTIONAL },
	{ OPT_ONE_FS, "one-file-system", SH_OPT_NONE },
	{ OPT_PRESERVE_ROOT, "preserve-root", SH_OPT_OPTIONAL },
	{ OPT_NO_PRESERVE_ROOT, "no-preserve-root", SH_OPT_NONE },
	{ 0 },
};

struct rm {
	struct sh_io *io;
	int status;
};

static void on_rm(void *arg, enum files_tree_event ev, const char *shown, const struct files_err *e)
{
	struct rm *r = arg;

	if (ev == FILES_TREE_DID) {
		shcmd_printf(r->io, "removed %s'%s'\n", e->sys != 0 ? "directory " : "", shown);
		return;
	}
	r->status = shf_fail_named(r->io, "cannot remove", shown, e);
}

static bool is_dots(const char *arg)
{
	sv b = shf_base(arg);

	return sv_eq(b, SV(".")) || sv_eq(b, SV(".."));
}

/* Ask before this operand goes (-i). -1: it cannot be looked at. */
static int may_remove(struct sh_io *io, const char *arg, const char *path, bool force)
{
	struct files_stat st;

	if (files_stat(io->files, path, false, &st) != 0) {
		const struct files_err *e = files_error(io->files);

		if (force && e->why == FILES_ERRNO && e->sys == ENOENT)
			return 0;
		(void)shf_fail_named(io, "cannot remove", arg, e);
		return -1;
	}
	return shf_confirm(io, "remove %s '%s'? ", shf_type_name(st.mode, st.size), arg);
}

static int rm_run(struct sh_io *io, int argc, char **argv)
{
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = rm_opts };
	struct files_tree_opts o = { .op = FILES_TREE_REMOVE };
	struct rm r = { io, 0 };
	bool ask = false, ask_once = false;
	const char **src, **shown;
	size_t n = 0;
	int c;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case 'r':
		case 'R':
			o.recursive = true;
			break;
		case 'f':
			o.force = true;
			ask = ask_once = false;
			break;
		case 'd':
			o.dir = true;
			break;
		case 'v':
			o.verbose = true;
			break;
		case 'i':
			ask = true;
			o.force = false;
			break;
		case 'I':
			ask_once = true;
			break;
		case OPT_INTERACTIVE:
			ask = g.arg == NULL || strcmp(g.arg, "always") == 0 ||
			      strcmp(g.arg, "yes") == 0;
			ask_once = g.arg != NULL && strcmp(g.arg, "once") == 0;
			break;
		case OPT_ONE_FS:
			o.one_file_system = true;
			break;
		case OPT_PRESERVE_ROOT:
		case OPT_NO_PRESERVE_ROOT:
			break; /* '/' is refused always */
		case SH_OPT_HELP:
			return 0;
		default:
			return shcmd_bad_option(io, &g);
		}
	}
	if (g.i == argc)
		return o.force ? 0 : shcmd_usage_err(io, "missing operand");
	if (ask && o.recursive)
		return shcmd_err(io, "-i together with -r is not supported");
	if (ask_once && (argc - g.i > 3 || o.recursive) &&
	    !shf_confirm(io, "remove %d argument%s%s? ", argc - g.i, argc - g.i == 1 ? "" : "s",
	        o.recursive ? " recursively" : ""))
		return 0;
	src = shcmd_alloc(io, (size_t)(argc - g.i), sizeof(*src));
	shown = shcmd_alloc(io, (size_t)(argc - g.i), sizeof(*shown));
	if (src == NULL || shown == NULL)
		return 1;
	for (int i = g.i; i < argc; i++) {
		const char *path;
		int yes;

		if (o.recursive && is_dots(argv[i])) {
			r.status = shcmd_err(
			    io, "refusing to remove '.' or '..' directory: skipping '%s'", argv[i]);
			continue;
		}
		if (sv_eq(shf_base(argv[i]), SV("/"))) {
			r.status = shcmd_err(io, "it is dangerous to operate recursively on '/'");
			continue;
		}
		if (argv[i][0] == '\0') {
			if (!o.force)
				r.status =
				    shcmd_err(io, "cannot remove '': No such file or directory");
			continue;
		}
		path = shf_path(io, "cannot remove", argv[i]);
		yes = path == NULL ? -1 : ask ? may_remove(io, argv[i], path, o.force) : 1;
		if (yes < 0)
			r.status = 1;
		if (yes <= 0)
			continue;
		src[n] = path;
		shown[n++] = argv[i];
	}
	if (files_tree(io->files, &o, src, shown, n, NULL, on_rm, &r) != 0 && r.status == 0)
		r.status = 1;
	return r.status;
}

const struct sh_cmd sh_cmd_rm = {
	.name = "rm",
	.usage = "rm [-dfiIrRv] [--one-file-system] FILE...\n"
	         "  -f  ignore absent operands, never ask\n"
	         "  -r  folders with all they hold; nothing goes before everything is permitted\n"
	         "  -d  empty folders\n"
	         "  -i  ask before each operand\n"
	         "  -v  say what was removed\n",
	.flags = SHCMD_UTILITY,
	.run = rm_run,
};

/* --- rmdir --- */

static const struct sh_opt rmdir_opts[] = {
	{ 'p', "parents", SH_OPT_NONE },
	{ 'v', "verbose", SH_OPT_NONE },
	{ 256, "ignore-fail-on-non-empty", SH_OPT_NONE },
	{ 0 },
};

struct rmdir_flags {
	bool parents, verbose, ignore;
};

static int rmdir_one(struct sh_io *io, const struct rmdir_flags *f, const char *arg)
{
	const char *path = shf_path(io, "failed to remove", arg);
	const struct files_err *e;

	if (path == NULL)
		return 1;
	if (f->verbose)
		shcmd_printf(io, "rmdir: removing directory, '%s'\n", arg);
	if (files_rmdir(io->files, path) == 0)
		return 0;
	e = files_error(io->files);
	if (f->ignore && e->why == FILES_ERRNO && (e->sys == ENOTEMPTY || e->sys == EEXIST))
		return -1;
	return shf_fail_err(
	    io, f->parents ? "failed to remove directory" : "failed to remove", arg, e);
}

static int rmdir_run(struct sh_io *io, int argc, char **argv)
{
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = rmdir_opts };
	struct rmdir_flags f = { 0 };
	int c, status = 0;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case 'p':
			f.parents = true;
			break;
		case 'v':
			f.verbose = true;
			break;
		case 256:
			f.ignore = true;
			break;
		case SH_OPT_HELP:
			return 0;
		default:
			return shcmd_bad_option(io, &g);
		}
	}
	if (g.i == argc)
		return shcmd_usage_err(io, "missing operand");
	for (int i = g.i; i < argc; i++) {
		struct rmdir_flags top = f;
		char *arg = shf_strip(io, argv[i]);
		int r;

		top.parents = false;
		r = arg != NULL ? rmdir_one(io, &top, argv[i]) : 1;
		while (r == 0 && f.parents) {
			char *slash = strrchr(arg, '/');

			if (slash == NULL || slash == arg)
				break;
			while (slash > arg && slash[-1] == '/')
				slash--;
			*slash = '\0';
			r = rmdir_one(io, &f, arg);
		}
		if (r > 0)
			status = r;
	}
	return status;
}

const struct sh_cmd sh_cmd_rmdir = {
	.name = "rmdir",
	.usage = "rmdir [-pv] [--ignore-fail-on-non-empty] DIR...\n"
	         "  -p  and the folders above that are then empty\n",
	.flags = SHCMD_UTILITY,
	.run = rmdir_run,
};
