/* mkdir. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "shell/fileutil.h"
#include "base/ban.h"

static const struct sh_opt opts[] = {
	{ 'p', "parents", SH_OPT_NONE },
	{ 'm', "mode", SH_OPT_REQUIRED },
	{ 'v', "verbose", SH_OPT_NONE },
	{ 0 },
};

struct mk {
	struct sh_io *io;
	bool parents, verbose;
	bool has_mode;
	mode_t mode, parent_mode;
};

static int make(struct mk *m, const char *arg, const char *path, bool last)
{
	if (files_mkdir(m->io->files, path, last ? m->mode : m->parent_mode) != 0)
		return -1;
	if (m->verbose)
		shcmd_printf(m->io, "mkdir: created directory '%s'\n", arg);
	return 0;
}

static bool is_dir(struct sh_io *io, const char *path)
{
	struct files_stat st;

	return files_stat(io->files, path, true, &st) == 0 && S_ISDIR(st.mode);
}

/* Length of the operand up to its parent; 0: there is none to be made. */
static size_t parent_len(const char *arg, size_t n)
{
	while (n > 0 && arg[n - 1] == '/')
		n--;
	while (n > 0 && arg[n - 1] != '/')
		n--;
	while (n > 0 && arg[n - 1] == '/')
		n--;
	return n;
}

/* mkdir -p: find the deepest folder that is there, then make what is missing, top down. A probe
 * that is refused counts as there: what lies below it is then decided by itself, and nothing is
 * made above it (box-config-and-policy 2.3). */
static int make_path(struct mk *m, const char *arg)
{
	size_t len = strlen(arg), up = len, todo_n = 0;
	size_t *todo = shcmd_alloc(m->io, len + 1, sizeof(*todo));
	struct files_stat st;

	if (todo == NULL)
		return 1;
	while (up != 0) {
		const char *part = arena_dup(m->io->arena, (sv){ arg, up }).p;
		const char *path =
		    part != NULL ? shf_path(m->io, "cannot create directory", part) : NULL;

		if (path == NULL)
			return 1;
		if (files_stat(m->io->files, path, true, &st) == 0) {
			if (S_ISDIR(st.mode))
				break;
			return shcmd_err(m->io, "cannot create directory '%s': %s", part,
			    box_strerror(todo_n == 0 ? EEXIST : ENOTDIR));
		}
		const struct files_err *e = files_error(m->io->files);

		if (e->why == FILES_BROKEN ||
		    (e->why == FILES_ERRNO && e->sys != ENOENT && e->sys != ENOTDIR))
			return shf_fail(m->io, "cannot create directory", part);
		if (e->why != FILES_ERRNO && todo_n != 0)
			break;
		todo[todo_n++] = up;
		up = parent_len(arg, up);
	}
	while (todo_n > 0) {
		const char *part = arena_dup(m->io->arena, (sv){ arg, todo[--todo_n] }).p;
		const char *path =
		    part != NULL ? shf_path(m->io, "cannot create directory", part) : NULL;

		if (path == NULL)
			return 1;
		if (make(m, part, path, todo_n == 0) == 0)
			continue;
		const struct files_err *e = files_error(m->io->files);

		/* Somebody else was quicker. */
		if (e->why == FILES_ERRNO && e->sys == EEXIST && is_dir(m->io, path))
			continue;
		return shf_fail(m->io, "cannot create directory", part);
	}
	return 0;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = opts };
	struct mk m = {
		.io = io, .mode = 0777 & ~io->umask, .parent_mode = (0777 & ~io->umask) | 0300
	};
	int c, status = 0;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		struct shf_mode *mode;

		switch (c) {
		case 'p':
			m.parents = true;
			break;
		case 'v':
			m.verbose = true;
			break;
		case 'm':
			mode = shf_mode_parse(io, g.arg, io->umask);
			if (mode == NULL)
				return shcmd_err(io, "invalid mode '%s'", g.arg);
			m.mode = shf_mode_apply(mode, S_IFDIR | 0777);
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
		const char *path = argv[i];
		int r = 0;

		if (m.parents && argv[i][0] != '\0')
			r = make_path(&m, argv[i]);
		else if ((path = shf_path(io, "cannot create directory", argv[i])) == NULL)
			r = 1;
		else if (make(&m, argv[i], path, true) != 0)
			r = shf_fail(io, "cannot create directory", argv[i]);
		if (r != 0)
			status = r;
	}
	return status;
}

const struct sh_cmd sh_cmd_mkdir = {
	.name = "mkdir",
	.usage = "mkdir [-pv] [-m MODE] DIR...\n"
	         "  -p  and the folders above that are missing; no error when it is there\n",
	.flags = SHCMD_UTILITY,
	.run = run,
};
