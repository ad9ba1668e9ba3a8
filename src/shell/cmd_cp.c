/* cp and mv. Sources and destinations are planned as trees and decided as a whole before
 * anything is written (design.md 6). */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "shell/fileutil.h"
#include "base/ban.h"

enum { OPT_PRESERVE = 256, OPT_NO_PRESERVE, OPT_STRIP, OPT_IGNORED, OPT_UPDATE };

static const struct sh_opt cp_opts[] = {
	{ 'r', "recursive", SH_OPT_NONE },
	{ 'R', NULL, SH_OPT_NONE },
	{ 'a', "archive", SH_OPT_NONE },
	{ 'p', NULL, SH_OPT_NONE },
	{ OPT_PRESERVE, "preserve", SH_OPT_OPTIONAL },
	{ OPT_NO_PRESERVE, "no-preserve", SH_OPT_REQUIRED },
	{ 'f', "force", SH_OPT_NONE },
	{ 'i', "interactive", SH_OPT_NONE },
	{ 'n', "no-clobber", SH_OPT_NONE },
	{ 'u', NULL, SH_OPT_NONE },
	{ OPT_UPDATE, "update", SH_OPT_OPTIONAL },
	{ 'v', "verbose", SH_OPT_NONE },
	{ 't', "target-directory", SH_OPT_REQUIRED },
	{ 'T', "no-target-directory", SH_OPT_NONE },
	{ 'L', "dereference", SH_OPT_NONE },
	{ 'P', "no-dereference", SH_OPT_NONE },
	{ 'H', NULL, SH_OPT_NONE },
	{ 'd', NULL, SH_OPT_NONE },
	{ 'x', "one-file-system", SH_OPT_NONE },
	{ OPT_STRIP, "strip-trailing-slashes", SH_OPT_NONE },
	{ OPT_IGNORED, "reflink", SH_OPT_OPTIONAL },
	{ OPT_IGNORED, "sparse", SH_OPT_REQUIRED },
	{ 0 },
};

static const struct sh_opt mv_opts[] = {
	{ 'f', "force", SH_OPT_NONE },
	{ 'i', "interactive", SH_OPT_NONE },
	{ 'n', "no-clobber", SH_OPT_NONE },
	{ 'u', NULL, SH_OPT_NONE },
	{ OPT_UPDATE, "update", SH_OPT_OPTIONAL },
	{ 'v', "verbose", SH_OPT_NONE },
	{ 't', "target-directory", SH_OPT_REQUIRED },
	{ 'T', "no-target-directory", SH_OPT_NONE },
	{ OPT_STRIP, "strip-trailing-slashes", SH_OPT_NONE },
	{ 0 },
};

struct cpmv {
	struct sh_io *io;
	struct files_tree_opts o;
	bool ask, follow_all, not_a_dir, strip, follow_set, dst_given;
	const char *dst; /* as typed */
	const char **src, **shown;
	size_t n;
	int status;
};

static bool is_move(const struct cpmv *c)
{
	return c->o.op == FILES_TREE_MOVE;
}

/* What the user would call the destination of `shown`, which is an operand or lies below one. */
static const char *dst_of(struct cpmv *c, const char *shown)
{
	for (size_t i = 0; i < c->n; i++) {
		size_t n = strlen(c->shown[i]);
		const char *below = shown + n, *to = c->dst;
		sv base = shf_base(c->shown[i]);

		if (strncmp(shown, c->shown[i], n) != 0 ||
		    (*below != '\0' && *below != '/' && (n == 0 || c->shown[i][n - 1] != '/')))
			continue;
		while (*below == '/')
			below++;
		if (c->o.target_is_dir && !sv_eq(base, SV(".")) && !sv_eq(base, SV("..")))
			to = shf_join(c->io->arena, to, base);
		if (*below != '\0' && to != NULL)
			to = shf_join(c->io->arena, to, sv_c(below));
		return to != NULL ? to : c->dst;
	}
	return c->dst;
}

static int fail_move(struct cpmv *c, const char *shown, const struct files_err *e)
{
	const char *to = dst_of(c, shown);

	if (strcmp(e->text, FILES_INTO_SELF) == 0)
		return shcmd_err(
		    c->io, "cannot move '%s' to a subdirectory of itself, '%s'", shown, to);
	if (strcmp(e->text, FILES_OVER_FILE) == 0)
		return shcmd_err(
		    c->io, "cannot overwrite non-directory '%s' with directory '%s'", to, shown);
	if (strcmp(e->text, FILES_OVER_DIR) == 0)
		return shcmd_err(c->io, "cannot overwrite directory '%s' with non-directory", to);
	if (e->path == NULL && e->sys == ENOENT)
		return shcmd_err(c->io, "cannot stat '%s': %s", shown, e->text);
	return shcmd_err(c->io, "cannot move '%s' to '%s': %s", shown, to, e->text);
}

static int fail_copy(struct cpmv *c, const char *shown, const struct files_err *e)
{
	const char *to = dst_of(c, shown);

	if (strcmp(e->text, FILES_INTO_SELF) == 0)
		return shcmd_err(
		    c->io, "cannot copy a directory, '%s', into itself, '%s'", shown, to);
	if (strcmp(e->text, FILES_OVER_FILE) == 0)
		return shcmd_err(
		    c->io, "cannot overwrite non-directory '%s' with directory '%s'", to, shown);
	if (strcmp(e->text, FILES_OVER_DIR) == 0)
		return shcmd_err(c->io, "cannot overwrite directory '%s' with non-directory", to);
	if (strcmp(e->text, FILES_DANGLING) == 0)
		return shcmd_err(c->io, "not writing through dangling symlink '%s'", to);
	if (e->path == NULL && e->sys == EISDIR && !c->o.recursive)
		return shcmd_err(c->io, "-r not specified; omitting directory '%s'", shown);
	if (e->path != NULL)
		return shcmd_err(c->io, "cannot create %s '%s': %s",
		    e->sys == EEXIST ? "file" : "regular file", to, e->text);
	if (e->sys == ENOENT || e->sys == ENOTDIR || e->sys == ELOOP)
		return shcmd_err(c->io, "cannot stat '%s': %s", shown, e->text);
	if (e->sys == EOPNOTSUPP)
		return shcmd_err(c->io, "cannot copy special file '%s'", shown);
	return shcmd_err(c->io, "cannot open '%s' for reading: %s", shown, e->text);
}

static void on_node(
    void *arg, enum files_tree_event ev, const char *shown, const struct files_err *e)
{
	struct cpmv *c = arg;

	if (ev == FILES_TREE_DID) {
		shcmd_printf(c->io, "%s'%s' -> '%s'\n", is_move(c) ? "renamed " : "", shown,
		    dst_of(c, shown));
		return;
	}
	c->status = 1;
	if (e->why != FILES_ERRNO)
		c->status = shcmd_files_err(c->io, shown, e);
	else if (strcmp(e->text, FILES_SAME_FILE) == 0)
		c->status =
		    shcmd_err(c->io, "'%s' and '%s' are the same file", shown, dst_of(c, shown));
	else
		c->status = is_move(c) ? fail_move(c, shown, e) : fail_copy(c, shown, e);
}

/* Is the destination a folder to put things in? -1: answered. */
static int look_at_target(struct cpmv *c, const char *path, bool must_be_dir)
{
	const char *what = c->dst_given ? "target directory" : "target";
	struct files_stat st;

	if (c->not_a_dir)
		return 0;
	if (files_stat(c->io->files, path, true, &st) == 0) {
		if (S_ISDIR(st.mode))
			return 1;
		if (!must_be_dir)
			return 0;
		(void)shcmd_err(c->io, "%s '%s': %s", what, c->dst, box_strerror(ENOTDIR));
		return -1;
	}
	const struct files_err *e = files_error(c->io->files);

	if (e->why != FILES_ERRNO) {
		c->status = shcmd_files_err(c->io, c->dst, e);
		return -1;
	}
	if (!must_be_dir)
		return 0;
	(void)shcmd_err(c->io, "%s '%s': %s", what, c->dst, e->text);
	return -1;
}

/* -i: what stands at the destination of an operand, and may it go? */
static bool may_overwrite(struct cpmv *c, const char *shown)
{
	const char *to, *path;
	struct files_stat st;

	c->shown[c->n] = shown;
	c->n++;
	to = dst_of(c, shown);
	c->n--;
	path = shcmd_path(c->io, to);
	if (path == NULL || files_stat(c->io->files, path, !is_move(c), &st) != 0 ||
	    S_ISDIR(st.mode))
		return true; /* nothing to ask about; what is wrong shows in the plan */
	return shf_confirm(c->io, "overwrite '%s'? ", to);
}

static int set_option(struct cpmv *c, int opt, const char *arg)
{
	switch (opt) {
	case 'a':
		c->o.preserve = true;
		c->o.recursive = true;
		c->o.no_deref = true;
		c->follow_set = true;
		return 0;
	case 'r':
	case 'R':
		c->o.recursive = true;
		return 0;
	case 'p':
	case OPT_PRESERVE:
		c->o.preserve = true;
		return 0;
	case OPT_NO_PRESERVE:
		c->o.preserve = false;
		return 0;
	case 'f':
		c->o.force = true;
		c->ask = false;
		return 0;
	case 'i':
		c->ask = true;
		c->o.no_clobber = false;
		return 0;
	case 'n':
		c->o.no_clobber = true;
		c->ask = false;
		return 0;
	case 'u':
	case OPT_UPDATE:
		c->o.no_clobber = arg != NULL && strcmp(arg, "none") == 0;
		c->o.update = arg == NULL || strcmp(arg, "older") == 0;
		return 0;
	case 'v':
		c->o.verbose = true;
		return 0;
	case 't':
		c->dst = arg;
		c->dst_given = true;
		return 0;
	case 'T':
		c->not_a_dir = true;
		return 0;
	case 'L':
		c->follow_all = true;
		c->follow_set = true;
		c->o.no_deref = false;
		return 0;
	case 'H':
		c->follow_all = false;
		c->follow_set = true;
		c->o.no_deref = false;
		return 0;
	case 'P':
	case 'd':
		c->follow_all = false;
		c->follow_set = true;
		c->o.no_deref = true;
		return 0;
	case 'x':
		c->o.one_file_system = true;
		return 0;
	case OPT_STRIP:
		c->strip = true;
		return 0;
	case OPT_IGNORED:
		return 0;
	}
	return -1;
}

/* Operands into c->src and c->shown. */
static int take_operands(struct cpmv *c, char **argv, int from, int to)
{
	for (int i = from; i < to; i++) {
		char *arg = argv[i];
		const char *path;

		if (c->strip && (arg = shf_strip(c->io, arg)) == NULL)
			return 1;
		if (arg[0] == '\0') {
			c->status = shcmd_err(c->io, "cannot stat '': No such file or directory");
			continue;
		}
		path = shf_path(c->io, "cannot stat", arg);
		if (path == NULL) {
			c->status = 1;
			continue;
		}
		if (c->ask && !may_overwrite(c, arg))
			continue;
		c->src[c->n] = path;
		c->shown[c->n++] = arg;
	}
	return 0;
}

static int transfer(
    struct sh_io *io, int argc, char **argv, struct cpmv *c, const struct sh_opt *opts)
{
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = opts };
	const char *dst;
	int opt, end, dir;

	while ((opt = shcmd_getopt(io, &g)) != SH_OPT_END) {
		if (opt == SH_OPT_HELP)
			return 0;
		if (set_option(c, opt, g.arg) != 0)
			return shcmd_bad_option(io, &g);
	}
	end = c->dst != NULL ? argc : argc - 1;
	if (g.i == argc)
		return shcmd_usage_err(io, "missing file operand");
	if (g.i == end)
		return shcmd_usage_err(
		    io, "missing destination file operand after '%s'", argv[g.i]);
	if (c->not_a_dir && c->dst == NULL && end - g.i > 1)
		return shcmd_usage_err(io, "extra operand '%s'", argv[g.i + 2]);
	if (c->follow_all && c->o.recursive)
		return shcmd_err(io, "-L together with -r is not supported");
	/* Links are copied as links below folders, and as what they lead to elsewhere (GNU cp). */
	if (!c->follow_set)
		c->o.no_deref = c->o.recursive;
	dir = c->dst != NULL || end - g.i > 1;
	if (c->dst == NULL)
		c->dst = argv[argc - 1];
	dst = c->dst[0] != '\0' ? shf_path(io, "cannot stat", c->dst) : NULL;
	if (dst == NULL)
		return c->dst[0] != '\0'
		           ? 1
		           : shcmd_err(io, "cannot stat '': %s", box_strerror(ENOENT));
	dir = look_at_target(c, dst, dir);
	if (dir < 0)
		return c->status != 0 ? c->status : 1;
	c->o.target_is_dir = dir == 1;
	c->src = shcmd_alloc(io, (size_t)(end - g.i), sizeof(*c->src));
	c->shown = shcmd_alloc(io, (size_t)(end - g.i) + 1, sizeof(*c->shown));
	if (c->src == NULL || c->shown == NULL || take_operands(c, argv, g.i, end) != 0)
		return 1;
	if (files_tree(io->files, &c->o, c->src, c->shown, c->n, dst, on_node, c) != 0 &&
	    c->status == 0)
		c->status = 1;
	return c->status;
}

static int cp_run(struct sh_io *io, int argc, char **argv)
{
	struct cpmv c = { .io = io, .o = { .op = FILES_TREE_COPY, .mode_clear = io->umask } };

	return transfer(io, argc, argv, &c, cp_opts);
}

static int mv_run(struct sh_io *io, int argc, char **argv)
{
	struct cpmv c = { .io = io, .o = { .op = FILES_TREE_MOVE } };

	return transfer(io, argc, argv, &c, mv_opts);
}

const struct sh_cmd sh_cmd_cp = {
	.name = "cp",
	.usage =
	    "cp [-adfHinLpPrRuvxT] SOURCE... DEST\ncp [-adfHinLpPrRuvx] -t DIR SOURCE...\n"
	    "  -r  folders with all they hold; nothing is written before everything is permitted\n"
	    "  -a  -r, links as links, modes and times kept\n"
	    "  -n  never replace, -i  ask, -u  only older ones\n",
	.flags = SHCMD_UTILITY,
	.run = cp_run,
};

const struct sh_cmd sh_cmd_mv = {
	.name = "mv",
	.usage = "mv [-finuvT] SOURCE... DEST\nmv [-finuv] -t DIR SOURCE...\n"
	         "  -n  never replace, -i  ask, -u  only older ones\n",
	.flags = SHCMD_UTILITY,
	.run = mv_run,
};
