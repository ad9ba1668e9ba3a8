/* touch. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shell/fileutil.h"
#include "base/ban.h"

enum { OPT_TIME = 256 };

static const struct sh_opt opts[] = {
	{ 'a', NULL, SH_OPT_NONE },
	{ 'c', "no-create", SH_OPT_NONE },
	{ 'd', "date", SH_OPT_REQUIRED },
	{ 'f', NULL, SH_OPT_NONE },
	{ 'h', "no-dereference", SH_OPT_NONE },
	{ 'm', NULL, SH_OPT_NONE },
	{ 'r', "reference", SH_OPT_REQUIRED },
	{ 't', NULL, SH_OPT_REQUIRED },
	{ OPT_TIME, "time", SH_OPT_REQUIRED },
	{ 0 },
};

/* [[CC]YY]MMDDhhmm[.SS] (POSIX touch -t), UTC. */
static bool parse_stamp(struct sh_io *io, const char *s, struct timespec *out)
{
	size_t n = strspn(s, "0123456789");
	struct tm tm = { 0 }, now;
	time_t t = (time_t)(clock_now(&io->wall) / NS_PER_SEC);
	int year, cc, yy;

	if (gmtime_r(&t, &now) == NULL)
		return false;
	year = now.tm_year + 1900;
	if (s[n] == '.') {
		if (strlen(s + n) != 3 || sscanf(s + n + 1, "%2d", &tm.tm_sec) != 1)
			return false;
	} else if (s[n] != '\0') {
		return false;
	}
	if (n == 12) {
		if (sscanf(s, "%2d%2d", &cc, &yy) != 2)
			return false;
		year = cc * 100 + yy;
	} else if (n == 10) {
		if (sscanf(s, "%2d", &yy) != 1)
			return false;
		year = yy < 69 ? 2000 + yy : 1900 + yy;
	} else if (n != 8) {
		return false;
	}
	if (sscanf(s + n - 8, "%2d%2d%2d%2d", &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min) !=
	    4)
		return false;
	if (tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31 ||
	    tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
		return false;
	tm.tm_mon--;
	tm.tm_year = year - 1900;
	*out = (struct timespec){ timegm(&tm), 0 };
	return true;
}

struct touch {
	struct sh_io *io;
	bool no_create, link;
	bool given; /* times other than now */
	struct timespec ts[2];
};

static int touch_one(struct touch *t, const char *arg)
{
	const char *path = arg[0] != '\0' ? shf_path(t->io, "cannot touch", arg) : "";
	const struct files_err *e;
	struct files_stat st;
	int fd;

	if (path == NULL)
		return 1;
	if (files_stat(t->io->files, path, !t->link, &st) == 0)
		return files_utimes(t->io->files, path, t->ts, !t->link) == 0
		           ? 0
		           : shf_fail(t->io, "setting times of", arg);
	e = files_error(t->io->files);
	if (e->why != FILES_ERRNO || e->sys != ENOENT || (t->link && !t->no_create))
		return shf_fail(
		    t->io, e->sys == ENOTDIR ? "setting times of" : "cannot touch", arg);
	if (t->no_create)
		return 0;
	fd = files_open(t->io->files, path, O_WRONLY | O_CREAT | O_NONBLOCK, 0666 & ~t->io->umask);
	if (fd < 0)
		return shf_fail(t->io, "cannot touch", arg);
	(void)close(fd); /* nothing was written */
	if (t->given && files_utimes(t->io->files, path, t->ts, true) != 0)
		return shf_fail(t->io, "setting times of", arg);
	return 0;
}

static int reference(struct touch *t, const char *arg)
{
	const char *path = shf_path(t->io, "failed to get attributes of", arg);
	struct files_stat st;

	if (path == NULL)
		return 1;
	if (files_stat(t->io->files, path, !t->link, &st) != 0)
		return shf_fail(t->io, "failed to get attributes of", arg);
	t->ts[0] = st.atime;
	t->ts[1] = st.mtime;
	t->given = true;
	return 0;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = opts };
	struct touch t = { .io = io, .ts = { { 0, UTIME_NOW }, { 0, UTIME_NOW } } };
	bool only_a = false, only_m = false;
	const char *ref = NULL, *date = NULL, *stamp = NULL;
	int c, status = 0;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case 'a':
			only_a = true;
			break;
		case 'm':
			only_m = true;
			break;
		case 'c':
			t.no_create = true;
			break;
		case 'd':
			date = g.arg;
			break;
		case 't':
			stamp = g.arg;
			break;
		case 'r':
			ref = g.arg;
			break;
		case 'h':
			t.link = true;
			break;
		case 'f':
			break; /* ignored, as GNU does */
		case OPT_TIME:
			only_a = only_a || strcmp(g.arg, "access") == 0 ||
			         strcmp(g.arg, "atime") == 0 || strcmp(g.arg, "use") == 0;
			only_m =
			    only_m || strcmp(g.arg, "modify") == 0 || strcmp(g.arg, "mtime") == 0;
			break;
		case SH_OPT_HELP:
			return 0;
		default:
			return shcmd_bad_option(io, &g);
		}
	}
	if (g.i == argc)
		return shcmd_usage_err(io, "missing file operand");
	if (ref != NULL && (c = reference(&t, ref)) != 0)
		return c;
	if (stamp != NULL || date != NULL) {
		struct timespec ts;

		if (stamp != NULL ? !parse_stamp(io, stamp, &ts) : !shf_parse_time(io, date, &ts))
			return shcmd_err(
			    io, "invalid date format '%s'", stamp != NULL ? stamp : date);
		t.ts[0] = t.ts[1] = ts;
		t.given = true;
	}
	if (only_a && !only_m)
		t.ts[1].tv_nsec = UTIME_OMIT;
	if (only_m && !only_a)
		t.ts[0].tv_nsec = UTIME_OMIT;
	for (int i = g.i; i < argc; i++) {
		int r = touch_one(&t, argv[i]);

		if (r != 0)
			status = r;
	}
	return status;
}

const struct sh_cmd sh_cmd_touch = {
	.name = "touch",
	.usage = "touch [-achm] [-d DATE] [-r FILE] [-t STAMP] FILE...\n"
	         "  -c  do not create, -a  access time only, -m  modification time only\n",
	.flags = SHCMD_UTILITY,
	.run = run,
};
