/* basename and dirname: text only. */
#include <string.h>

#include "shell/command.h"
#include "base/ban.h"

static sv without_slashes(sv s)
{
	while (s.n > 1 && s.p[s.n - 1] == '/')
		s.n--;
	return s;
}

static sv base_of(sv s, sv suffix)
{
	ptrdiff_t slash;

	s = without_slashes(s);
	if (sv_eq(s, SV("/")))
		return s;
	slash = sv_rfind(s, '/');
	s = sv_sub(s, (size_t)(slash + 1), s.n);
	if (suffix.n != 0 && s.n > suffix.n && sv_ends(s, suffix))
		s.n -= suffix.n;
	return s;
}

static sv dir_of(sv s)
{
	ptrdiff_t slash;

	s = without_slashes(s);
	if (sv_eq(s, SV("/")))
		return s;
	slash = sv_rfind(s, '/');
	if (slash < 0)
		return SV(".");
	s = sv_sub(s, 0, (size_t)slash);
	while (s.n > 0 && s.p[s.n - 1] == '/')
		s.n--;
	return s.n == 0 ? SV("/") : s;
}

static void put(struct sh_io *io, sv s, char end)
{
	shcmd_put(io, s.p, s.n);
	shcmd_putc(io, end);
}

static int run_basename(struct sh_io *io, int argc, char **argv)
{
	static const struct sh_opt t[] = { { 'a', "multiple", SH_OPT_NONE },
		{ 's', "suffix", SH_OPT_REQUIRED }, { 'z', "zero", SH_OPT_NONE }, { 0 } };
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = t, .posix = true };
	sv suffix = SV("");
	bool many = false;
	char end = '\n';
	int o;

	while ((o = shcmd_getopt(io, &g)) != SH_OPT_END) {
		if (o == SH_OPT_HELP)
			return 0;
		if (o == SH_OPT_ERROR)
			return shcmd_bad_option(io, &g);
		if (o == 's')
			suffix = sv_c(g.arg);
		many = many || o == 'a' || o == 's';
		if (o == 'z')
			end = '\0';
	}
	if (g.i == argc)
		return shcmd_usage_err(io, "missing operand");
	if (!many && argc - g.i > 2)
		return shcmd_usage_err(io, "extra operand '%s'", argv[g.i + 2]);
	if (!many) {
		if (g.i + 1 < argc)
			suffix = sv_c(argv[g.i + 1]);
		put(io, base_of(sv_c(argv[g.i]), suffix), end);
		return 0;
	}
	for (int i = g.i; i < argc; i++)
		put(io, base_of(sv_c(argv[i]), suffix), end);
	return 0;
}

static int run_dirname(struct sh_io *io, int argc, char **argv)
{
	static const struct sh_opt t[] = { { 'z', "zero", SH_OPT_NONE }, { 0 } };
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = t };
	char end = '\n';
	int o;

	while ((o = shcmd_getopt(io, &g)) != SH_OPT_END) {
		if (o == SH_OPT_HELP)
			return 0;
		if (o == SH_OPT_ERROR)
			return shcmd_bad_option(io, &g);
		end = '\0';
	}
	if (g.i == argc)
		return shcmd_usage_err(io, "missing operand");
	for (int i = g.i; i < argc; i++)
		put(io, dir_of(sv_c(argv[i])), end);
	return 0;
}

const struct sh_cmd sh_cmd_basename = { "basename",
	"basename NAME [SUFFIX]\n   or: basename -a [-s SUFFIX] [-z] NAME...\n", SHCMD_UTILITY, 1,
	run_basename };
const struct sh_cmd sh_cmd_dirname = { "dirname", "dirname [-z] NAME...\n", SHCMD_UTILITY, 1,
	run_dirname };
