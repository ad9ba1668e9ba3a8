/* ls. Names in byte order, one a line unless -C, -x or -m asks otherwise; times are UTC. An
 * entry whose metadata is refused shows as `----------` (box-config-and-policy 2.3). */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "shell/ls.h"
#include "base/ban.h"

#define DEPTH_MAX  1024
#define LINE_WIDTH 80

enum {
	OPT_COLOR = 256,
	OPT_DIRS_FIRST,
	OPT_FULL_TIME,
	OPT_TIME_STYLE,
	OPT_SORT,
	OPT_TIME,
	OPT_SI,
	OPT_FORMAT,
	OPT_FILE_TYPE,
	OPT_INDICATOR,
	OPT_IGNORED,
	OPT_HIDE,
	OPT_BLOCK_SIZE
};

static const struct sh_opt opts[] = {
	{ 'a', "all", SH_OPT_NONE },
	{ 'A', "almost-all", SH_OPT_NONE },
	{ 'B', "ignore-backups", SH_OPT_NONE },
	{ 'c', NULL, SH_OPT_NONE },
	{ 'C', NULL, SH_OPT_NONE },
	{ 'd', "directory", SH_OPT_NONE },
	{ 'f', NULL, SH_OPT_NONE },
	{ 'F', "classify", SH_OPT_OPTIONAL },
	{ 'F', NULL, SH_OPT_NONE },
	{ 'g', NULL, SH_OPT_NONE },
	{ 'G', "no-group", SH_OPT_NONE },
	{ 'h', "human-readable", SH_OPT_NONE },
	{ 'H', "dereference-command-line", SH_OPT_NONE },
	{ 'i', "inode", SH_OPT_NONE },
	{ 'I', "ignore", SH_OPT_REQUIRED },
	{ 'k', "kibibytes", SH_OPT_NONE },
	{ 'l', NULL, SH_OPT_NONE },
	{ 'L', "dereference", SH_OPT_NONE },
	{ 'm', NULL, SH_OPT_NONE },
	{ 'n', "numeric-uid-gid", SH_OPT_NONE },
	{ 'N', "literal", SH_OPT_NONE },
	{ 'o', NULL, SH_OPT_NONE },
	{ 'p', NULL, SH_OPT_NONE },
	{ 'q', "hide-control-chars", SH_OPT_NONE },
	{ 'Q', "quote-name", SH_OPT_NONE },
	{ 'r', "reverse", SH_OPT_NONE },
	{ 'R', "recursive", SH_OPT_NONE },
	{ 's', "size", SH_OPT_NONE },
	{ 'S', NULL, SH_OPT_NONE },
	{ 't', NULL, SH_OPT_NONE },
	{ 'u', NULL, SH_OPT_NONE },
	{ 'U', NULL, SH_OPT_NONE },
	{ 'v', NULL, SH_OPT_NONE },
	{ 'w', "width", SH_OPT_REQUIRED },
	{ 'x', NULL, SH_OPT_NONE },
	{ 'X', NULL, SH_OPT_NONE },
	{ '1', NULL, SH_OPT_NONE },
	{ OPT_COLOR, "color", SH_OPT_OPTIONAL },
	{ OPT_DIRS_FIRST, "group-directories-first", SH_OPT_NONE },
	{ OPT_FULL_TIME, "full-time", SH_OPT_NONE },
	{ OPT_TIME_STYLE, "time-style", SH_OPT_REQUIRED },
	{ OPT_SORT, "sort", SH_OPT_REQUIRED },
	{ OPT_TIME, "time", SH_OPT_REQUIRED },
	{ OPT_SI, "si", SH_OPT_NONE },
	{ OPT_FORMAT, "format", SH_OPT_REQUIRED },
	{ OPT_FILE_TYPE, "file-type", SH_OPT_NONE },
	{ OPT_INDICATOR, "indicator-style", SH_OPT_REQUIRED },
	{ OPT_HIDE, "hide", SH_OPT_REQUIRED },
	{ OPT_IGNORED, "show-control-chars", SH_OPT_NONE },
	{ OPT_IGNORED, "hyperlink", SH_OPT_OPTIONAL },
	{ OPT_IGNORED, "quoting-style", SH_OPT_REQUIRED },
	{ OPT_BLOCK_SIZE, "block-size", SH_OPT_REQUIRED },
	{ 0 },
};

/* --- folders --- */

static bool is_shown(const struct ls *l, const char *name)
{
	if (name[0] == '.' && l->hidden == HIDDEN_NOT)
		return false;
	if (l->backups && name[0] != '\0' && name[strlen(name) - 1] == '~')
		return false;
	for (size_t i = 0; i < l->ignore_n; i++) {
		if (shcmd_match(l->ignore[i], name, false))
			return false;
	}
	return true;
}

static struct item *add_dot(
    struct ls *l, struct arena *a, struct item *i, const char *dir, const char *name)
{
	*i = (struct item){ .name = name, .path = shf_join(a, dir, sv_c(name)) };
	if (ls_needs_type(l) && i->path != NULL)
		i->has_stat = files_stat(l->io->files, i->path, true, &i->st) == 0;
	ls_fill_columns(l, i);
	return i + 1;
}

static void put_total(struct ls *l, const struct item *v, size_t n)
{
	uint64_t sum = 0;
	char text[24];

	for (size_t i = 0; i < n; i++)
		sum += v[i].st.blocks * 512;
	if (l->human) {
		shf_human(sum, l->si, text);
		shcmd_printf(l->io, "total %s\n", text);
	} else {
		shcmd_printf(l->io, "total %llu\n", (unsigned long long)shf_units(sum, l->unit));
	}
}

static void list_dir(struct ls *l, const char *path, const char *shown, int depth)
{
	AUTO_ARENA a = { .limit = SHCMD_MEM_MAX };
	struct shf_list list;
	struct item *v, *end;
	bool stat = ls_needs_stat(l);

	if (shf_list(l->io, &a, path, stat, &list) != 0) {
		int r = shf_fail(l->io, "cannot open directory", shown);

		l->status = r == 125 ? r : l->status > 1 ? l->status : depth == 0 ? 2 : 1;
		return;
	}
	v = end = ARENA_VEC(&a, struct item, list.n + 2);
	if (v == NULL) {
		(void)shcmd_err(l->io, "%s: %s", shown, box_strerror(ENOMEM));
		l->status = 2;
		return;
	}
	if (l->hidden == HIDDEN_ALL) {
		end = add_dot(l, &a, end, path, ".");
		end = add_dot(l, &a, end, path, "..");
	}
	for (size_t i = 0; i < list.n; i++) {
		const struct shf_entry *e = &list.v[i];

		if (!is_shown(l, e->name))
			continue;
		*end = (struct item){ .name = e->name, .has_stat = e->has_stat };
		end->path = shf_join(&a, path, sv_c(e->name));
		if (e->has_stat)
			end->st = e->st;
		else
			end->st.mode = (uint32_t)e->type << 12; /* DTTOIF */
		if (end->path == NULL) {
			l->status = 2;
			return;
		}
		ls_look_further(l, &a, end);
		ls_fill_columns(l, end);
		end++;
	}
	ls_sort_items(l, v, (size_t)(end - v));
	if (l->header || l->recursive) {
		if (l->printed)
			shcmd_putc(l->io, '\n');
		shcmd_printf(l->io, "%s:\n", shown);
	}
	l->printed = true;
	if (l->form == LONG || l->blocks)
		put_total(l, v, (size_t)(end - v));
	ls_put_items(l, v, (size_t)(end - v));
	for (struct item *i = v; l->recursive && i < end && !shcmd_out_dead(l->io); i++) {
		const char *below;

		if (!S_ISDIR(i->st.mode) || strcmp(i->name, ".") == 0 ||
		    strcmp(i->name, "..") == 0 || shcmd_interrupted(l->io))
			continue;
		below = shf_join(&a, shown, sv_c(i->name));
		if (below == NULL || depth == DEPTH_MAX) {
			l->status = shcmd_err(l->io, "%s: too deep", shown);
			return;
		}
		list_dir(l, i->path, below, depth + 1);
	}
}

/* --- options and operands --- */

static bool set_style(struct ls *l, const char *s)
{
	if (strncmp(s, "posix-", 6) == 0)
		return true;
	if (s[0] == '+')
		l->style = s + 1;
	else if (strcmp(s, "full-iso") == 0)
		l->style = "%Y-%m-%d %H:%M:%S.%N %z";
	else if (strcmp(s, "long-iso") == 0)
		l->style = "%Y-%m-%d %H:%M";
	else if (strcmp(s, "iso") == 0)
		l->style = "%m-%d %H:%M";
	else if (strcmp(s, "locale") == 0)
		l->style = NULL;
	else
		return false;
	return true;
}

struct word {
	const char *name;
	int value;
};

static bool pick(const struct word *w, const char *s, int *out)
{
	for (; w->name != NULL; w++) {
		if (strcmp(w->name, s) == 0) {
			*out = w->value;
			return true;
		}
	}
	return false;
}

static int set_word(struct ls *l, int opt, const char *arg)
{
	static const struct word sorts[] = { { "none", UNSORTED }, { "size", BY_SIZE },
		{ "time", BY_TIME }, { "version", BY_VERSION }, { "extension", BY_EXT },
		{ "name", BY_NAME }, { NULL, 0 } };
	static const struct word times[] = { { "atime", 'a' }, { "access", 'a' }, { "use", 'a' },
		{ "ctime", 'c' }, { "status", 'c' }, { "mtime", 'm' }, { "modification", 'm' },
		{ NULL, 0 } };
	static const struct word forms[] = { { "long", LONG }, { "verbose", LONG },
		{ "single-column", ONE }, { "commas", COMMAS }, { "horizontal", ACROSS },
		{ "across", ACROSS }, { "vertical", COLUMNS }, { NULL, 0 } };
	static const struct word marks[] = { { "none", MARK_NONE }, { "slash", MARK_SLASH },
		{ "file-type", MARK_TYPE }, { "classify", MARK_ALL }, { NULL, 0 } };
	int v = 0;
	bool ok = pick(opt == OPT_SORT     ? sorts
	               : opt == OPT_TIME   ? times
	               : opt == OPT_FORMAT ? forms
	                                   : marks,
	    arg, &v);

	if (!ok)
		return shcmd_usage_err(l->io, "invalid argument '%s'", arg);
	switch (opt) {
	case OPT_SORT:
		l->order = (enum order)v;
		l->order_set = true;
		break;
	case OPT_TIME:
		l->time = (char)v;
		break;
	case OPT_FORMAT:
		l->form = (enum form)v;
		break;
	default:
		l->mark = (enum mark)v;
	}
	return 0;
}

static void set_order(struct ls *l, enum order o)
{
	l->order = o;
	l->order_set = true;
}

/* 0; 1: not one of these. */
static int set_flag(struct ls *l, int opt)
{
	switch (opt) {
	case 'a':
		l->hidden = HIDDEN_ALL;
		return 0;
	case 'A':
		l->hidden = HIDDEN_ALMOST;
		return 0;
	case 'B':
		l->backups = true;
		return 0;
	case 'c':
	case 'u':
		l->time = opt == 'c' ? 'c' : 'a';
		return 0;
	case 'C':
		l->form = COLUMNS;
		return 0;
	case 'd':
		l->dir_itself = true;
		return 0;
	case 'f':
		l->hidden = HIDDEN_ALL;
		set_order(l, UNSORTED);
		return 0;
	case 'g':
		l->form = LONG;
		l->no_owner = true;
		return 0;
	case 'G':
		l->no_group = true;
		return 0;
	case 'h':
	case OPT_SI:
		l->human = true;
		l->si = opt == OPT_SI;
		return 0;
	case 'H':
		l->follow_args = true;
		return 0;
	case 'i':
		l->inode = true;
		return 0;
	case 'k':
		l->unit = 1024;
		return 0;
	case 'l':
		l->form = LONG;
		return 0;
	case 'L':
		l->follow_all = l->follow_args = true;
		return 0;
	case 'm':
		l->form = COMMAS;
		return 0;
	case 'n':
		l->form = LONG;
		l->numeric = true;
		return 0;
	case 'o':
		l->form = LONG;
		l->no_group = true;
		return 0;
	case 'p':
		l->mark = MARK_SLASH;
		return 0;
	case OPT_FILE_TYPE:
		l->mark = MARK_TYPE;
		return 0;
	case 'Q':
		l->quote = true;
		return 0;
	case 'r':
		l->reverse = true;
		return 0;
	case 'R':
		l->recursive = true;
		return 0;
	case 's':
		l->blocks = true;
		return 0;
	case 'S':
		set_order(l, BY_SIZE);
		return 0;
	case 't':
		set_order(l, BY_TIME);
		return 0;
	case 'U':
		set_order(l, UNSORTED);
		return 0;
	case 'v':
		set_order(l, BY_VERSION);
		return 0;
	case 'X':
		set_order(l, BY_EXT);
		return 0;
	case 'x':
		l->form = ACROSS;
		return 0;
	case '1':
		if (l->form != LONG)
			l->form = ONE;
		return 0;
	case OPT_DIRS_FIRST:
		l->dirs_first = true;
		return 0;
	case OPT_FULL_TIME:
		l->form = LONG;
		return set_style(l, "full-iso") ? 0 : 1;
	case 'N':
	case 'q':
	case OPT_COLOR:
	case OPT_IGNORED:
		return 0; /* names are printed as they are, without colour */
	}
	return 1;
}

/* -1: go on; else the status to return. */
static int set_option(struct ls *l, struct sh_getopt *g, int opt)
{
	int64_t n;
	int r;

	switch (opt) {
	case SH_OPT_HELP:
		return 0;
	case 'F':
		if (g->arg == NULL || strcmp(g->arg, "always") == 0)
			l->mark = MARK_ALL;
		return -1;
	case 'I':
	case OPT_HIDE:
		if (l->ignore_n == sizeof(l->ignore) / sizeof(*l->ignore))
			return shcmd_err(l->io, "too many patterns");
		l->ignore[l->ignore_n++] = g->arg;
		return -1;
	case 'w':
		if (!shcmd_number(g->arg, 0, 100000, &n))
			return shcmd_err(l->io, "invalid line width: '%s'", g->arg);
		l->width = n == 0 ? SIZE_MAX / 2 : (size_t)n;
		return -1;
	case OPT_BLOCK_SIZE:
		if (!shf_size(g->arg, &l->unit))
			return shcmd_err(l->io, "invalid --block-size argument '%s'", g->arg);
		return -1;
	case OPT_TIME_STYLE:
		return set_style(l, g->arg)
		           ? -1
		           : shcmd_err(l->io, "invalid argument '%s' for 'time style'", g->arg);
	case OPT_SORT:
	case OPT_TIME:
	case OPT_FORMAT:
	case OPT_INDICATOR:
		r = set_word(l, opt, g->arg);
		return r == 0 ? -1 : r;
	}
	return set_flag(l, opt) == 0 ? -1 : shcmd_bad_option(l->io, g);
}

/* Look at an operand. false: it cannot be listed, and that was said. */
static bool take_operand(struct ls *l, const char *arg, struct item *i)
{
	bool follow = l->follow_args || (l->form != LONG && l->mark != MARK_ALL && !l->dir_itself);

	*i = (struct item){ .name = arg };
	i->path = arg[0] != '\0' ? shf_path(l->io, "cannot access", arg) : "";
	if (i->path == NULL) {
		l->status = 2;
		return false;
	}
	if (files_stat(l->io->files, i->path, follow, &i->st) != 0) {
		const struct files_err *e = files_error(l->io->files);

		/* A link that leads nowhere is still there. */
		if (!follow || e->why != FILES_ERRNO ||
		    files_stat(l->io->files, i->path, false, &i->st) != 0) {
			int r = shf_fail(l->io, "cannot access", arg);

			l->status = r == 125 ? r : 2;
			return false;
		}
	}
	i->has_stat = true;
	ls_look_further(l, l->io->arena, i);
	ls_fill_columns(l, i);
	return true;
}

static int list_operands(struct ls *l, char **argv, int n)
{
	struct item *v = shcmd_alloc(l->io, (size_t)n, sizeof(*v)), *files, *dirs;
	size_t got = 0, nfiles = 0, ndirs = 0;

	files = shcmd_alloc(l->io, (size_t)n, sizeof(*v));
	dirs = shcmd_alloc(l->io, (size_t)n, sizeof(*v));
	if (v == NULL || files == NULL || dirs == NULL)
		return 2;
	for (int i = 0; i < n; i++) {
		if (take_operand(l, argv[i], &v[got]))
			got++;
	}
	ls_sort_items(l, v, got);
	for (size_t i = 0; i < got; i++) {
		if (S_ISDIR(v[i].st.mode) && !l->dir_itself)
			dirs[ndirs++] = v[i];
		else
			files[nfiles++] = v[i];
	}
	if (nfiles != 0) {
		ls_put_items(l, files, nfiles);
		l->printed = true;
	}
	l->header = n > 1;
	for (size_t i = 0; i < ndirs && !shcmd_out_dead(l->io); i++)
		list_dir(l, dirs[i].path, dirs[i].name, 0);
	return l->status;
}

static int run(struct sh_io *io, int argc, char **argv)
{
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = opts };
	struct ls l = { .io = io, .time = 'm', .unit = 1024, .width = LINE_WIDTH };
	char dot[] = ".", *only[] = { dot };
	bool time_named = false;
	int c;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		int r = set_option(&l, &g, c);

		if (r >= 0)
			return r;
		time_named = time_named || c == 'c' || c == 'u' || c == OPT_TIME;
	}
	/* -c and -u alone also sort by that time, unless it is shown (GNU ls). */
	if (time_named && !l.order_set && l.form != LONG)
		l.order = BY_TIME;
	return g.i < argc ? list_operands(&l, argv + g.i, argc - g.i) : list_operands(&l, only, 1);
}

const struct sh_cmd sh_cmd_ls = {
	.name = "ls",
	.usage =
	    "ls [-aABcCdfFgGhHiklLmnopQrRsStuUvxX1] [-I PATTERN] [-w COLS] [FILE]...\n"
	    "  -l  long, -a  hidden ones too, -A  but . and .., -t  newest first, -S  largest "
	    "first\n"
	    "  -r  reversed, -R  folders below, -h  sizes for people, -d  folders themselves\n",
	.flags = SHCMD_UTILITY,
	.usage_status = 2,
	.run = run,
};
