/* find: the walk and the tests. Names come in byte order. The metadata of entries is asked for
 * only when the expression needs it. See find.h. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "shell/find.h"
#include "base/ban.h"

#define DEPTH_MAX 1024

static int complain(struct find *f, const char *shown)
{
	const struct files_err *e = files_error(f->io->files);

	f->status = e->why == FILES_BROKEN ? 125 : 1;
	if (e->why != FILES_ERRNO)
		return shcmd_files_err(f->io, shown, e);
	return shcmd_err(f->io, "'%s': %s", shown, e->text);
}

bool find_stat(struct find *f, struct find_node *v)
{
	if (v->has_stat)
		return true;
	if (files_stat(f->io->files, v->abs, f->follow, &v->st) != 0 &&
	    (!f->follow || files_stat(f->io->files, v->abs, false, &v->st) != 0)) {
		(void)complain(f, v->path);
		return false;
	}
	v->has_stat = true;
	v->type = (uint8_t)((v->st.mode & S_IFMT) >> 12); /* IFTODT */
	return true;
}

/* --- tests --- */

static bool compare(const struct find_expr *e, uint64_t v)
{
	return e->cmp == '+' ? v > e->number : e->cmp == '-' ? v < e->number : v == e->number;
}

static struct timespec stamp(const struct find_node *v, char which)
{
	return which == 'a' ? v->st.atime : which == 'c' ? v->st.ctime : v->st.mtime;
}

static bool is_newer(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* Whole units since then; a fraction is dropped (-mtime), or counts up (-mmin -5 means less than
 * five minutes). */
static bool test_time(const struct find *f, const struct find_expr *e, const struct find_node *v)
{
	struct timespec t = stamp(v, e->which);
	int64_t age = f->now.tv_sec - t.tv_sec - (t.tv_nsec > f->now.tv_nsec);
	int64_t unit = (int64_t)e->unit, n = (int64_t)e->number;

	if (e->unit == 60) {
		/* GNU compares exact times for minutes: +N older than N minutes, -N younger. */
		bool exact = t.tv_nsec == f->now.tv_nsec;

		if (e->cmp == '+')
			return age >= n * unit && !(age == n * unit && exact);
		if (e->cmp == '-')
			return age < n * unit;
		return age >= (n - 1) * unit && age < n * unit;
	}
	age = age >= 0 ? age / unit : -((-age + unit - 1) / unit);
	return e->cmp == '+' ? age > n : e->cmp == '-' ? age < n : age == n;
}

static void ignore_entry(void *arg, const struct files_entry *e, const struct files_stat *st)
{
	(void)e;
	(void)st;
	*(bool *)arg = false;
}

static bool is_empty(struct find *f, const struct find_node *v)
{
	bool empty = true;

	if (S_ISREG(v->st.mode))
		return v->st.size == 0;
	if (!S_ISDIR(v->st.mode))
		return false;
	if (files_list(f->io->files, v->abs, false, ignore_entry, &empty) != 0) {
		(void)complain(f, v->path);
		return false;
	}
	return empty;
}

static bool test_type(struct find *f, const struct find_expr *e, struct find_node *v)
{
	struct files_stat st;
	uint8_t type;

	if (v->type == DT_UNKNOWN && !find_stat(f, v))
		return false;
	type = v->type;
	/* -xtype looks at the other side of a link. */
	if (e->follow && type == DT_LNK && files_stat(f->io->files, v->abs, true, &st) == 0)
		type = (uint8_t)((st.mode & S_IFMT) >> 12);
	return (e->types & 1u << type) != 0;
}

static bool test_perm(const struct find_expr *e, uint32_t mode)
{
	mode &= 07777;
	if (e->cmp == '-')
		return (mode & e->mode) == e->mode;
	if (e->cmp == '/')
		return e->mode == 0 || (mode & e->mode) != 0;
	return mode == e->mode;
}

static bool test_link_name(struct find *f, const struct find_expr *e, struct find_node *v)
{
	AUTO_BUF text = buf_with(SHCMD_PATH_MAX);

	if (v->type == DT_UNKNOWN && !find_stat(f, v))
		return false;
	if (v->type != DT_LNK || files_readlink(f->io->files, v->abs, &text) != 0)
		return false;
	return shcmd_match(e->text, buf_cstr(&text), e->icase);
}

/* --- actions --- */

/* word with every {} replaced. */
static char *substitute(struct find *f, struct arena *a, const char *word, const char *name)
{
	AUTO_BUF b = buf_with((size_t)1 << 20);
	const char *at;
	char *out;

	for (; (at = strstr(word, "{}")) != NULL; word = at + 2) {
		buf_put(&b, word, (size_t)(at - word));
		buf_put_c(&b, name);
	}
	buf_put_c(&b, word);
	out = buf_ok(&b) ? arena_alloc(a, b.n + 1, 1) : NULL;
	if (out == NULL)
		f->status = shcmd_err(f->io, "out of memory");
	else
		memcpy(out, b.p, b.n);
	return out;
}

/* The folder of v, absolute, for -execdir. */
static const char *folder_of(struct arena *a, const struct find_node *v)
{
	const char *cut = strrchr(v->abs, '/');

	return arena_dup(
	    a, (sv){ v->abs, cut == v->abs || cut == NULL ? 1 : (size_t)(cut - v->abs) })
	    .p;
}

static bool run_one(struct find *f, struct find_expr *e, struct find_node *v)
{
	AUTO_ARENA a = { .limit = SHCMD_MEM_MAX };
	const char *name = v->path;
	struct shcmd_run_opts o = { .in = -1, .no_builtins = true };
	char **argv = ARENA_VEC(&a, char *, (size_t)e->argc + 1);

	if (e->in_dir) {
		name = arena_printf(&a, "./" SV_FMT, SV_ARG(v->name));
		o.cwd = folder_of(&a, v);
	}
	if (argv == NULL || name == NULL || (e->in_dir && o.cwd == NULL)) {
		f->status = shcmd_err(f->io, "out of memory");
		return false;
	}
	for (int i = 0; i < e->argc; i++) {
		argv[i] = substitute(f, &a, e->argv[i], name);
		if (argv[i] == NULL)
			return false;
	}
	if (e->ask && !shf_confirm(f->io, "< %s ... %s > ? ", argv[0], name))
		return false;
	return shcmd_run(f->io, argv, &o) == 0;
}

static void run_batch(struct find *f, struct find_expr *e)
{
	AUTO_ARENA a = { .limit = SHCMD_MEM_MAX };
	struct shcmd_run_opts o = { .cwd = e->batch_dir, .in = -1, .no_builtins = true };
	char **argv;
	size_t n = (size_t)e->argc;

	if (e->batch_n == 0)
		return;
	argv = ARENA_VEC(&a, char *, n + e->batch_n + 1);
	for (size_t i = 0; argv != NULL && i < n + e->batch_n; i++) {
		const char *w = i < n ? e->argv[i] : e->batch[i - n];

		argv[i] = arena_alloc(&a, strlen(w) + 1, 1);
		if (argv[i] == NULL)
			argv = NULL;
		else
			memcpy(argv[i], w, strlen(w));
	}
	if (argv == NULL)
		f->status = shcmd_err(f->io, "out of memory");
	else if (shcmd_run(f->io, argv, &o) != 0)
		f->status = 1;
	e->batch_n = e->batch_bytes = 0;
	e->batch_dir = NULL;
	arena_free(&e->batch_arena);
}

static bool add_to_batch(struct find *f, struct find_expr *e, const struct find_node *v)
{
	const char *name, *dir = e->in_dir ? folder_of(&e->batch_arena, v) : NULL;

	if (e->batch_n == FIND_BATCH_MAX || e->batch_bytes > FIND_BYTES_MAX ||
	    (e->in_dir && e->batch_dir != NULL && dir != NULL && strcmp(dir, e->batch_dir) != 0)) {
		run_batch(f, e);
		dir = e->in_dir ? folder_of(&e->batch_arena, v) : NULL;
	}
	name = e->in_dir ? arena_printf(&e->batch_arena, "./" SV_FMT, SV_ARG(v->name))
	                 : arena_dup(&e->batch_arena, sv_c(v->path)).p;
	if (name == NULL || (e->in_dir && dir == NULL)) {
		f->status = shcmd_err(f->io, "out of memory");
		return true;
	}
	if (e->batch_dir == NULL)
		e->batch_dir = dir;
	e->batch[e->batch_n++] = name;
	e->batch_bytes += strlen(name) + 1;
	return true;
}

static bool delete (struct find *f, struct find_node *v)
{
	int r;

	if (v->type == DT_UNKNOWN && !find_stat(f, v))
		return false;
	if (strcmp(v->path, ".") == 0)
		return true; /* GNU find leaves the working directory alone */
	r = v->type == DT_DIR ? files_rmdir(f->io->files, v->abs)
	                      : files_unlink(f->io->files, v->abs);
	if (r == 0)
		return true;
	f->status = shf_fail(f->io, "cannot delete", v->path);
	return false;
}

/* --- the expression --- */

static bool eval(struct find *f, struct find_expr *e, struct find_node *v);

static bool needs_metadata(enum find_kind k)
{
	switch (k) {
	case FIND_SIZE:
	case FIND_TIME:
	case FIND_NEWER:
	case FIND_EMPTY:
	case FIND_PERM:
	case FIND_UID:
	case FIND_GID:
	case FIND_LINKS:
	case FIND_INUM:
	case FIND_SAME:
	case FIND_LS:
		return true;
	default:
		return false;
	}
}

static bool test(struct find *f, struct find_expr *e, struct find_node *v)
{
	if (needs_metadata(e->kind) && !find_stat(f, v))
		return false;
	switch (e->kind) {
	case FIND_TRUE:
		return true;
	case FIND_FALSE:
		return false;
	case FIND_NAME:
		return shcmd_match(e->text, arena_dup(f->io->arena, v->name).p, e->icase);
	case FIND_PATH:
		return shcmd_match(e->text, v->path, e->icase);
	case FIND_LNAME:
		return test_link_name(f, e, v);
	case FIND_REGEX:
		return regexec(&e->re, v->path, 0, NULL, 0) == 0;
	case FIND_TYPE:
		return test_type(f, e, v);
	case FIND_SIZE:
		return compare(e, shf_units(v->st.size, e->unit));
	case FIND_TIME:
		return test_time(f, e, v);
	case FIND_NEWER:
		return is_newer(stamp(v, e->which), e->ts);
	case FIND_EMPTY:
		return is_empty(f, v);
	case FIND_PERM:
		return test_perm(e, v->st.mode);
	case FIND_UID:
		return compare(e, v->st.uid);
	case FIND_GID:
		return compare(e, v->st.gid);
	case FIND_LINKS:
		return compare(e, v->st.nlink);
	case FIND_INUM:
		return compare(e, v->st.ino);
	case FIND_SAME:
		return v->st.dev == e->dev && v->st.ino == e->ino;
	case FIND_ACCESS:
		return files_access(f->io->files, v->abs, (int)e->mode) == 0;
	case FIND_PRUNE:
		v->prune = true;
		return true;
	case FIND_QUIT:
		f->quit = true;
		return true;
	case FIND_PRINT:
		shcmd_puts(f->io, v->path);
		shcmd_putc(f->io, e->end);
		return true;
	case FIND_PRINTF:
		if (f->needs_stat && !find_stat(f, v))
			return true;
		find_printf(f, v, e->text);
		return true;
	case FIND_LS:
		find_ls(f, v);
		return true;
	case FIND_DELETE:
		return delete (f, v);
	case FIND_EXEC:
		return e->plus ? add_to_batch(f, e, v) : run_one(f, e, v);
	case FIND_AND:
	case FIND_OR:
	case FIND_COMMA:
	case FIND_NOT:
		break;
	}
	return false;
}

/* Recursion is as deep as the expression is long: FIND_EXPR_MAX bounds it. */
static bool eval(struct find *f, struct find_expr *e, struct find_node *v)
{
	if (f->quit)
		return false;
	switch (e->kind) {
	case FIND_AND:
		return eval(f, e->a, v) && !f->quit && eval(f, e->b, v);
	case FIND_OR:
		return eval(f, e->a, v) || (!f->quit && eval(f, e->b, v));
	case FIND_COMMA:
		(void)eval(f, e->a, v); /* only its effects count */
		return !f->quit && eval(f, e->b, v);
	case FIND_NOT:
		return !eval(f, e->a, v);
	default:
		return test(f, e, v);
	}
}

/* --- the walk --- */

static void visit(struct find *f, struct find_node *v);

static void descend(struct find *f, struct find_node *v)
{
	AUTO_ARENA a = { .limit = SHCMD_MEM_MAX };
	struct shf_list l;

	if (v->depth >= f->max_depth || f->quit)
		return;
	if (v->depth >= DEPTH_MAX) {
		f->status = shcmd_err(f->io, "'%s': too deep", v->path);
		return;
	}
	if (f->one_fs && v->has_stat && v->st.dev != f->dev)
		return;
	if (shf_list(f->io, &a, v->abs, f->needs_stat && !f->follow, &l) != 0) {
		(void)complain(f, v->path);
		return;
	}
	for (size_t i = 0; i < l.n && !f->quit; i++) {
		const struct shf_entry *e = &l.v[i];
		struct find_node child = { .start = v->start,
			.name = sv_c(e->name),
			.depth = v->depth + 1,
			.type = e->type,
			.has_stat = e->has_stat };

		child.path = shf_join(&a, v->path, child.name);
		child.abs = shf_join(&a, v->abs, child.name);
		if (child.path == NULL || child.abs == NULL) {
			f->status = shcmd_err(f->io, "out of memory");
			return;
		}
		if (e->has_stat) {
			child.st = e->st;
			child.type = (uint8_t)((e->st.mode & S_IFMT) >> 12);
		}
		if (shcmd_out_dead(f->io) || shcmd_interrupted(f->io)) {
			f->quit = true;
			return;
		}
		visit(f, &child);
	}
}

static void visit(struct find *f, struct find_node *v)
{
	bool is_dir, shown = v->depth >= f->min_depth && v->depth <= f->max_depth;

	if ((v->type == DT_UNKNOWN || (f->follow && v->type == DT_LNK) ||
	        (f->needs_stat && !v->has_stat)) &&
	    !find_stat(f, v) && v->type == DT_UNKNOWN)
		return;
	is_dir = v->type == DT_DIR;
	if (shown && !(f->depth_first && is_dir))
		(void)eval(f, f->top, v); /* the value is of no use, its actions were done */
	if (is_dir && !(v->prune && !f->depth_first))
		descend(f, v);
	if (shown && f->depth_first && is_dir)
		(void)eval(f, f->top, v); /* as above */
}

static void start(struct find *f, const char *arg)
{
	struct find_node v = { .path = arg, .start = arg, .name = shf_base(arg) };

	v.abs = arg[0] != '\0' ? shcmd_path(f->io, arg) : "";
	if (v.abs == NULL) {
		f->status = shcmd_err(f->io, "'%s': %s", arg, box_strerror(ENAMETOOLONG));
		return;
	}
	if (files_stat(f->io->files, v.abs, f->follow_args, &v.st) != 0 &&
	    (!f->follow_args || files_error(f->io->files)->why != FILES_ERRNO ||
	        files_stat(f->io->files, v.abs, false, &v.st) != 0)) {
		(void)complain(f, arg);
		return;
	}
	v.has_stat = true;
	v.type = (uint8_t)((v.st.mode & S_IFMT) >> 12);
	f->dev = v.st.dev;
	visit(f, &v);
}

static int run(struct sh_io *io, int argc, char **argv)
{
	int64_t now = clock_now(&io->wall);
	struct find f = {
		.io = io, .max_depth = INT64_MAX, .now = { now / NS_PER_SEC, now % NS_PER_SEC }
	};
	int first, n, r;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		shcmd_puts(io, io->cmd->usage);
		return 0;
	}
	r = find_parse(&f, argc, argv, &first, &n);
	if (r == 0) {
		if (n == 0)
			start(&f, ".");
		for (int i = 0; i < n && !f.quit; i++)
			start(&f, argv[first + i]);
		for (struct find_expr *e = f.all; e != NULL; e = e->next) {
			if (e->kind == FIND_EXEC && e->plus)
				run_batch(&f, e);
		}
		r = f.status;
	}
	find_free(&f);
	return r;
}

/* sh_cmd_find is the table's own (cmd_table.h). */
const struct sh_cmd sh_cmd_findfiles = {
	.name = "find",
	.usage = "find [-H|-L|-P] [PATH]... [EXPRESSION]\n"
	         "  tests: -name -iname -path -ipath -regex -iregex -type -xtype -size -mtime "
	         "-mmin (a, c too)\n"
	         "    -newer -newermt -empty -perm -user -group -uid -gid -links -inum -samefile "
	         "-lname\n"
	         "    -readable -writable -executable -true -false\n"
	         "  actions: -print -print0 -printf -ls -delete -prune -quit -exec CMD ; -exec CMD "
	         "{} +\n"
	         "    -execdir -ok\n"
	         "  options: -maxdepth -mindepth -depth -xdev -daystart -regextype\n"
	         "  operators: ( ) ! -a -o ,\n",
	.flags = SHCMD_UTILITY,
	.run = run,
};
