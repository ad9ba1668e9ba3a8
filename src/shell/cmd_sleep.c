/* sleep: waits on the shell's own event source, so that a signal ends it at once. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "shell/command.h"
#include "base/ban.h"

/* One operand: a number of seconds, or with s, m, h, d behind it. */
static bool duration(const char *s, double *sum)
{
	char *end;
	double v;

	errno = 0;
	v = strtod(s, &end);
	if (end == s || isnan(v) || v < 0)
		return false;
	if (*end != '\0') {
		const char *u = strchr("smhd", *end);

		if (u == NULL || end[1] != '\0')
			return false;
		v *= *u == 's' ? 1 : *u == 'm' ? 60 : *u == 'h' ? 3600 : 86400;
	}
	*sum += v;
	return true;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	static const struct sh_opt t[] = { { 0 } };
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = t, .posix = true };
	double sum = 0;
	int o;

	while ((o = shcmd_getopt(io, &g)) != SH_OPT_END)
		return o == SH_OPT_HELP ? 0 : shcmd_bad_option(io, &g);
	if (g.i == argc)
		return shcmd_usage_err(io, "missing operand");
	for (int i = g.i; i < argc; i++) {
		if (!duration(argv[i], &sum))
			return shcmd_usage_err(io, "invalid time interval '%s'", argv[i]);
	}
	if (sum > 1e9)
		sum = 1e9; /* thirty years are for ever */
	return shcmd_sleep(io, (int64_t)(sum * (double)NS_PER_SEC)) == 0 ? 0 : 1;
}

const struct sh_cmd sh_cmd_sleep = { "sleep", "sleep NUMBER[smhd]...\n", SHCMD_UTILITY, 1, run };
