/* mktemp: box-files makes the name and the file in one step. */
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "shell/command.h"
#include "base/ban.h"

static int run(struct sh_io *io, int argc, char **argv)
{
	enum { OPT_SUFFIX = 256 };
	static const struct sh_opt t[] = { { 'd', "directory", SH_OPT_NONE },
		{ 'p', NULL, SH_OPT_REQUIRED }, { 'p', "tmpdir", SH_OPT_OPTIONAL },
		{ 'q', "quiet", SH_OPT_NONE }, { 't', NULL, SH_OPT_NONE },
		{ 'u', "dry-run", SH_OPT_NONE }, { OPT_SUFFIX, "suffix", SH_OPT_REQUIRED }, { 0 } };
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = t };
	bool dir = false, quiet = false, in_tmp = false, dry = false;
	const char *tmp = shcmd_env(io, "TMPDIR"), *template, *shown, *suffix = "", *x;
	AUTO_BUF out = buf_with(SHCMD_PATH_MAX);
	int c, fd = -1, xs = 0;

	if (tmp == NULL || *tmp == '\0')
		tmp = "/tmp";
	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case 'd':
			dir = true;
			break;
		case 'q':
			quiet = true;
			break;
		case 'u':
			dry = true;
			break;
		case 't':
			in_tmp = true;
			break;
		case 'p':
			in_tmp = true;
			if (g.arg != NULL && *g.arg != '\0')
				tmp = g.arg;
			break;
		case OPT_SUFFIX:
			suffix = g.arg;
			break;
		case SH_OPT_HELP:
			return 0;
		default:
			return shcmd_bad_option(io, &g);
		}
	}
	if (argc - g.i > 1)
		return shcmd_usage_err(io, "too many templates");
	if (g.i == argc) {
		template = "tmp.XXXXXXXXXX";
		in_tmp = true;
	} else {
		template = argv[g.i];
	}
	if (*suffix != '\0')
		return shcmd_err(io, "--suffix is not available here; put XXXXXX at the end");
	for (x = template + strlen(template); x > template && x[-1] == 'X'; x--)
		xs++;
	if (xs < 3)
		return shcmd_err(io, "too few X's in template '%s'", template);
	if (dry)
		return shcmd_err(
		    io, "-u is not available here: it names a file that it does not make");
	shown = in_tmp ? arena_printf(io->arena, "%s/%s", tmp, template) : template;
	/* box-files wants six at the end. */
	if (shown != NULL && xs < 6)
		shown = arena_printf(io->arena, "%s%.*s", shown, 6 - xs, "XXXXXX");
	if (shown == NULL || shcmd_path(io, shown) == NULL)
		return shcmd_open_err(io, template);
	if (files_mktemp(io->files, shcmd_path(io, shown), dir, &fd, &out) != 0)
		return quiet ? 1 : shcmd_files_err(io, shown, files_error(io->files));
	fd_drop(&fd);
	{
		/* Show it as it was spelled: the folder of the template, the new last name. */
		ptrdiff_t cut = sv_rfind(sv_c(shown), '/'), at = sv_rfind(buf_sv(&out), '/');
		sv last = sv_sub(buf_sv(&out), (size_t)(at + 1), out.n);

		if (cut >= 0)
			shcmd_put(io, shown, (size_t)cut + 1);
		shcmd_put(io, last.p, last.n);
		shcmd_putc(io, '\n');
	}
	return 0;
}

const struct sh_cmd sh_cmd_mktemp = { "mktemp",
	"mktemp [-d] [-q] [-p DIR] [-t] [TEMPLATE]\n  -d make a folder  -p DIR put it there\n",
	SHCMD_UTILITY, 1, run };
