/* chmod. All operands, and with -R all they hold, are decided before the first is changed. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "shell/fileutil.h"
#include "base/ban.h"

enum { OPT_REFERENCE = 256, OPT_IGNORED };

static const struct sh_opt opts[] = {
	{ 'R', "recursive", SH_OPT_NONE },
	{ 'f', "silent", SH_OPT_NONE },
	{ 'f', "quiet", SH_OPT_NONE },
	{ 'v', "verbose", SH_OPT_NONE },
	{ 'c', "changes", SH_OPT_NONE },
	{ OPT_REFERENCE, "reference", SH_OPT_REQUIRED },
	{ OPT_IGNORED, "preserve-root", SH_OPT_NONE },
	{ OPT_IGNORED, "no-preserve-root", SH_OPT_NONE },
	{ 0 },
};

struct ch {
	struct sh_io *io;
	bool quiet, verbose, changes;
	int status;
};

static void on_node(
    void *arg, enum files_tree_event ev, const char *shown, const struct files_err *e)
{
	struct ch *c = arg;

	if (ev == FILES_TREE_DID)
		return;
	c->status = e->why == FILES_BROKEN ? 125 : 1;
	if (c->quiet && e->why == FILES_ERRNO)
		return;
	if (e->why == FILES_ERRNO && (e->sys == ENOENT || e->sys == ENOTDIR || e->sys == ELOOP))
		(void)shf_fail_err(c->io, "cannot access", shown, e);
	else
		(void)shf_fail_err(c->io, "changing permissions of", shown, e);
}

static void say(struct ch *c, const char *arg, uint32_t old, uint32_t new)
{
	char a[11], b[11];

	shf_mode_text(old, a);
	shf_mode_text((old & S_IFMT) | new, b);
	if (old % 010000 == new) {
		if (c->verbose)
			shcmd_printf(
			    c->io, "mode of '%s' retained as %04o (%s)\n", arg, new, b + 1);
		return;
	}
	shcmd_printf(c->io, "mode of '%s' changed from %04o (%s) to %04o (%s)\n", arg, old & 07777,
	    a + 1, new, b + 1);
}

/* One operand by itself: its new mode depends on its old one, or the change is to be told. */
static void change_one(struct ch *c, const struct shf_mode *m, const char *arg, const char *path)
{
	struct files_stat st;
	uint32_t mode;

	if (files_stat(c->io->files, path, true, &st) != 0) {
		on_node(c, FILES_TREE_ERROR, arg, files_error(c->io->files));
		return;
	}
	mode = shf_mode_apply(m, st.mode);
	if (files_chmod(c->io->files, path, mode) != 0)
		on_node(c, FILES_TREE_ERROR, arg, files_error(c->io->files));
	else if (c->verbose || c->changes)
		say(c, arg, st.mode, mode);
}

/* "-x", "-w,+r": a mode that looks like an option. */
static bool is_mode_word(const char *s)
{
	return s[0] == '-' && s[1] != '\0' && strspn(s + 1, "rwxXstugoa,+-=") == strlen(s + 1);
}

static struct shf_mode *mode_of_reference(struct sh_io *io, const char *arg)
{
	const char *path = shf_path(io, "failed to get attributes of", arg);
	struct files_stat st;

	if (path == NULL)
		return NULL;
	if (files_stat(io->files, path, true, &st) != 0) {
		(void)shf_fail(io, "failed to get attributes of", arg);
		return NULL;
	}
	return shf_mode_parse(io, arena_printf(io->arena, "%o", st.mode & 07777), 0);
}

static int apply(struct ch *c, const struct shf_mode *m, bool recursive, int argc, char **argv)
{
	struct files_tree_opts o = { .op = FILES_TREE_CHMOD, .recursive = recursive };
	const char **src = shcmd_alloc(c->io, (size_t)argc, sizeof(*src));
	const char **shown = shcmd_alloc(c->io, (size_t)argc, sizeof(*shown));
	bool plain = shf_mode_is_plain(m, &o.mode_set, &o.mode_clear, &o.mode_x_if_dir);
	size_t n = 0;

	if (src == NULL || shown == NULL)
		return 1;
	if (recursive && (!plain || c->verbose || c->changes))
		return shcmd_err(c->io, "-R together with %s is not supported",
		    plain ? "-v or -c" : "a mode that copies another");
	for (int i = 0; i < argc; i++) {
		const char *path =
		    argv[i][0] != '\0' ? shf_path(c->io, "cannot access", argv[i]) : NULL;

		if (path == NULL) {
			if (argv[i][0] == '\0')
				(void)shcmd_err(
				    c->io, "cannot access '': %s", box_strerror(ENOENT));
			c->status = 1;
			continue;
		}
		if (!plain || c->verbose || c->changes) {
			change_one(c, m, argv[i], path);
			continue;
		}
		src[n] = path;
		shown[n++] = argv[i];
	}
	if (n != 0 && files_tree(c->io->files, &o, src, shown, n, NULL, on_node, c) != 0 &&
	    c->status == 0)
		c->status = 1;
	return c->status;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = opts };
	struct ch c = { .io = io };
	struct shf_mode *m = NULL;
	const char *mode = NULL;
	bool recursive = false;
	int opt;

	/* "chmod -x f": the mode is taken out before options are read. */
	for (int i = 1; i < argc && mode == NULL && strcmp(argv[i], "--") != 0; i++) {
		if (is_mode_word(argv[i]) && strcmp(argv[i], "-") != 0) {
			mode = argv[i];
			memmove(&argv[i], &argv[i + 1], (size_t)(argc - i) * sizeof(*argv));
			g.argc = --argc;
		} else if (argv[i][0] != '-') {
			break;
		}
	}
	while ((opt = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (opt) {
		case 'R':
			recursive = true;
			break;
		case 'f':
			c.quiet = true;
			break;
		case 'v':
			c.verbose = true;
			break;
		case 'c':
			c.changes = true;
			break;
		case OPT_REFERENCE:
			m = mode_of_reference(io, g.arg);
			if (m == NULL)
				return 1;
			break;
		case OPT_IGNORED:
			break;
		case SH_OPT_HELP:
			return 0;
		default:
			return shcmd_bad_option(io, &g);
		}
	}
	if (m == NULL && mode == NULL) {
		if (g.i == argc)
			return shcmd_usage_err(io, "missing operand");
		mode = argv[g.i++];
	}
	if (g.i == argc)
		return m != NULL ? shcmd_usage_err(io, "missing operand")
		                 : shcmd_usage_err(io, "missing operand after '%s'", mode);
	if (m == NULL && (m = shf_mode_parse(io, mode, io->umask)) == NULL)
		return shcmd_usage_err(io, "invalid mode: '%s'", mode);
	return apply(&c, m, recursive, argc - g.i, argv + g.i);
}

const struct sh_cmd sh_cmd_chmod = {
	.name = "chmod",
	.usage = "chmod [-cfRv] MODE FILE...\nchmod [-cfRv] --reference=FILE FILE...\n"
	         "  -R  folders with all they hold\n"
	         "Set-user-ID, set-group-ID and sticky bits are never set.\n",
	.flags = SHCMD_UTILITY,
	.run = run,
};
