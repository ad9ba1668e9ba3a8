/* du: what files take on disk. Entries come in byte order of their names. */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "shell/fileutil.h"
#include "base/ban.h"

#define DEPTH_MAX 1024

enum { OPT_APPARENT = 256, OPT_SI, OPT_EXCLUDE, OPT_IGNORED };

static const struct sh_opt opts[] = {
	{ 'a', "all", SH_OPT_NONE },
	{ 'b', "bytes", SH_OPT_NONE },
	{ 'B', "block-size", SH_OPT_REQUIRED },
	{ 'c', "total", SH_OPT_NONE },
	{ 'd', "max-depth", SH_OPT_REQUIRED },
	{ 'D', "dereference-args", SH_OPT_NONE },
	{ 'H', NULL, SH_OPT_NONE },
	{ 'h', "human-readable", SH_OPT_NONE },
	{ 'k', NULL, SH_OPT_NONE },
	{ 'l', "count-links", SH_OPT_NONE },
	{ 'm', NULL, SH_OPT_NONE },
	{ 'P', "no-dereference", SH_OPT_NONE },
	{ 'S', "separate-dirs", SH_OPT_NONE },
	{ 's', "summarize", SH_OPT_NONE },
	{ 'x', "one-file-system", SH_OPT_NONE },
	{ '0', "null", SH_OPT_NONE },
	{ OPT_APPARENT, "apparent-size", SH_OPT_NONE },
	{ OPT_SI, "si", SH_OPT_NONE },
	{ OPT_EXCLUDE, "exclude", SH_OPT_REQUIRED },
	{ 0 },
};

/* A file with several names counts once. */
struct seen {
	uint64_t dev, ino;
};

struct du {
	struct sh_io *io;
	bool all, apparent, total, human, si, count_links, separate, one_fs, follow_args;
	uint64_t unit;
	const char *suffix; /* of sizes, when -B names a unit alone */
	int64_t max_depth;
	char end;
	const char *exclude[64];
	size_t exclude_n;
	struct seen *seen; /* open addressing; cap is a power of two */
	size_t seen_n, seen_cap;
	uint64_t dev;
	int status;
};

static size_t slot_of(const struct seen *v, size_t cap, struct seen s)
{
	size_t i = (size_t)((s.ino * UINT64_C(0x9e3779b97f4a7c15)) ^ s.dev) & (cap - 1);

	while (v[i].ino != 0 && (v[i].ino != s.ino || v[i].dev != s.dev))
		i = (i + 1) & (cap - 1);
	return i;
}

static bool is_again(struct du *d, const struct files_stat *st)
{
	struct seen s = { st->dev, st->ino };
	size_t i;

	if (d->count_links || S_ISDIR(st->mode) || st->nlink < 2)
		return false;
	if (d->seen_n * 2 >= d->seen_cap) {
		size_t cap = d->seen_cap != 0 ? d->seen_cap * 2 : 64;
		struct seen *v = shcmd_alloc(d->io, cap, sizeof(*v));

		if (v == NULL)
			return false;
		for (size_t k = 0; k < d->seen_cap; k++) {
			if (d->seen[k].ino != 0)
				v[slot_of(v, cap, d->seen[k])] = d->seen[k];
		}
		d->seen = v;
		d->seen_cap = cap;
	}
	i = slot_of(d->seen, d->seen_cap, s);
	if (d->seen[i].ino != 0)
		return true;
	d->seen[i] = s;
	d->seen_n++;
	return false;
}

static void print(struct du *d, uint64_t bytes, const char *shown)
{
	char text[24];

	if (d->human) {
		shf_human(bytes, d->si, text);
		shcmd_printf(d->io, "%s\t%s%c", text, shown, d->end);
	} else {
		shcmd_printf(d->io, "%llu%s\t%s%c", (unsigned long long)shf_units(bytes, d->unit),
		    d->suffix, shown, d->end);
	}
}

static uint64_t size_of(const struct du *d, const struct files_stat *st)
{
	if (d->apparent)
		return S_ISREG(st->mode) || S_ISLNK(st->mode) || S_ISDIR(st->mode) ? st->size : 0;
	return st->blocks * 512;
}

static bool is_excluded(const struct du *d, const char *name, const char *shown)
{
	for (size_t i = 0; i < d->exclude_n; i++) {
		if (shcmd_match(d->exclude[i], name, false) ||
		    shcmd_match(d->exclude[i], shown, false))
			return true;
	}
	return false;
}

/* The size of an object and what it holds. */
static uint64_t measure(
    struct du *d, const char *path, const char *shown, const struct files_stat *st, int depth)
{
	uint64_t sum = size_of(d, st), below = 0;
	bool show = depth <= d->max_depth && (depth == 0 || d->all || S_ISDIR(st->mode));
	AUTO_ARENA a = { .limit = SHCMD_MEM_MAX };
	struct shf_list l;

	if (is_again(d, st))
		return 0;
	if (S_ISDIR(st->mode) && depth < DEPTH_MAX && !shcmd_interrupted(d->io)) {
		if (shf_list(d->io, &a, path, true, &l) != 0) {
			d->status = shf_fail(d->io, "cannot read directory", shown);
			l.n = 0;
		}
		for (size_t i = 0; i < l.n && !shcmd_out_dead(d->io); i++) {
			const struct shf_entry *e = &l.v[i];
			const char *p = shf_join(&a, path, sv_c(e->name));
			const char *s = shf_join(&a, shown, sv_c(e->name));

			if (p == NULL || s == NULL) {
				d->status = shcmd_err(d->io, "out of memory");
				break;
			}
			if (is_excluded(d, e->name, s) ||
			    (d->one_fs && e->has_stat && e->st.dev != d->dev))
				continue;
			if (!e->has_stat) {
				d->status = shcmd_err(
				    d->io, "cannot access '%s': %s", s, box_strerror(EACCES));
				continue;
			}
			uint64_t n = measure(d, p, s, &e->st, depth + 1);

			if (d->separate && S_ISDIR(e->st.mode))
				below += n;
			else
				sum += n;
		}
	}
	if (show)
		print(d, sum, shown);
	return sum + below;
}

static int run_operand(struct du *d, const char *arg, uint64_t *total)
{
	const char *path = arg[0] != '\0' ? shf_path(d->io, "cannot access", arg) : "";
	struct files_stat st;

	if (path == NULL)
		return 1;
	if (files_stat(d->io->files, path, d->follow_args, &st) != 0)
		return shf_fail(d->io, "cannot access", arg);
	d->dev = st.dev;
	*total += measure(d, path, arg, &st, 0);
	return 0;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = opts };
	struct du d = { .io = io, .unit = 1024, .suffix = "", .max_depth = INT64_MAX, .end = '\n' };
	char dot[] = ".", *only[] = { dot };
	bool summarize = false;
	uint64_t total = 0;
	int c;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case 'a':
			d.all = true;
			break;
		case 'b':
			d.apparent = true;
			d.unit = 1;
			break;
		case 'B':
			if (!shf_size(g.arg, &d.unit))
				return shcmd_err(io, "invalid --block-size argument '%s'", g.arg);
			d.suffix = strspn(g.arg, "0123456789") == 0 ? g.arg : "";
			break;
		case 'c':
			d.total = true;
			break;
		case 'd':
			if (!shcmd_number(g.arg, 0, INT32_MAX, &d.max_depth))
				return shcmd_usage_err(io, "invalid maximum depth '%s'", g.arg);
			break;
		case 'D':
		case 'H':
			d.follow_args = true;
			break;
		case 'P':
			d.follow_args = false;
			break;
		case 'h':
			d.human = true;
			break;
		case OPT_SI:
			d.human = d.si = true;
			break;
		case 'k':
			d.unit = 1024;
			d.human = false;
			break;
		case 'm':
			d.unit = 1024 * 1024;
			d.human = false;
			break;
		case 'l':
			d.count_links = true;
			break;
		case 'S':
			d.separate = true;
			break;
		case 's':
			summarize = true;
			break;
		case 'x':
			d.one_fs = true;
			break;
		case '0':
			d.end = '\0';
			break;
		case OPT_APPARENT:
			d.apparent = true;
			break;
		case OPT_EXCLUDE:
			if (d.exclude_n == sizeof(d.exclude) / sizeof(*d.exclude))
				return shcmd_err(io, "too many --exclude patterns");
			d.exclude[d.exclude_n++] = g.arg;
			break;
		case SH_OPT_HELP:
			return 0;
		default:
			return shcmd_bad_option(io, &g);
		}
	}
	if (summarize && d.all)
		return shcmd_usage_err(io, "cannot both summarize and show all entries");
	if (summarize)
		d.max_depth = 0;
	if (g.i == argc) {
		argv = only;
		g.i = 0;
		argc = 1;
	}
	for (int i = g.i; i < argc; i++) {
		int r = run_operand(&d, argv[i], &total);

		if (r != 0)
			d.status = r;
	}
	if (d.total)
		print(&d, total, "total");
	return d.status;
}

const struct sh_cmd sh_cmd_du = {
	.name = "du",
	.usage = "du [-abcDhHklmPsSx0] [-B SIZE] [-d N] [--apparent-size] [--exclude=PATTERN] "
	         "[FILE]...\n",
	.flags = SHCMD_UTILITY,
	.run = run,
};
