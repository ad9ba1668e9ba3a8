/* Builtins that tell: type hash times ulimit pwd, and cd. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <unistd.h>

#include "shell/shell.h"
#include "base/ban.h"

/* --- what a name means --- */

bool sh_is_reserved(const char *name)
{
	static const char *const words[] = { "if", "then", "else", "elif", "fi", "do", "done",
		"case", "esac", "while", "until", "for", "in", "select", "function", "{", "}", "!",
		"[[", "]]", "time", NULL };

	for (size_t i = 0; words[i] != NULL; i++) {
		if (strcmp(words[i], name) == 0)
			return true;
	}
	return false;
}

static bool describe_cmd(struct sh_io *io, const struct sh_cmd *c, enum sh_desc how)
{
	switch (how) {
	case SH_DESC_WORD:
		shcmd_printf(io, "%s\n", c->name);
		break;
	case SH_DESC_LONG:
		shcmd_printf(io, "%s is a%s shell builtin\n", c->name,
		    (c->flags & SHCMD_SPECIAL) != 0 && (io->sh->opts & SH_O_POSIX) != 0 ? " special"
		                                                                        : "");
		break;
	case SH_DESC_TYPE:
		shcmd_puts(io, "builtin\n");
		break;
	case SH_DESC_PATH:
		break;
	}
	return true;
}

static void put_program(struct sh_io *io, const char *name, const char *found, enum sh_desc how)
{
	switch (how) {
	case SH_DESC_WORD:
	case SH_DESC_PATH:
		shcmd_printf(io, "%s\n", found);
		break;
	case SH_DESC_LONG:
		shcmd_printf(io, "%s is %s\n", name, found);
		break;
	case SH_DESC_TYPE:
		shcmd_puts(io, "file\n");
		break;
	}
}

/* Programs as PATH spells them (box-files would say where links lead). */
static bool describe_program(struct sh_io *io, const char *name, enum sh_desc how, bool all)
{
	struct shell *sh = io->sh;
	const char *path = sh_var_get(sh, "PATH"), *p;
	sv rest, dir;
	bool any = false;

	if (strchr(name, '/') != NULL) {
		AUTO_BUF out = buf_with(SHCMD_PATH_MAX);

		p = shcmd_path(io, name);
		if (p == NULL || files_locate(sh->files, p, "", &out) != 0)
			return false;
		put_program(io, name, name, how);
		return true;
	}
	rest = sv_c(path != NULL ? path : sh->path0);
	for (bool more = name[0] != '\0'; more && (all || !any);) {
		AUTO_BUF out = buf_with(SHCMD_PATH_MAX);
		const char *shown;

		more = sv_cut(rest, ':', &dir, &rest);
		shown = dir.n == 0 ? arena_printf(io->arena, "./%s", name)
		                   : arena_printf(io->arena, SV_FMT "/%s", SV_ARG(dir), name);
		p = shown != NULL ? shcmd_path(io, shown) : NULL;
		if (p == NULL || files_locate(sh->files, p, "", &out) != 0)
			continue;
		put_program(io, name, shown, how);
		any = true;
	}
	return any;
}

bool sh_describe(struct sh_io *io, const char *name, enum sh_desc how, unsigned flags)
{
	struct shell *sh = io->sh;
	const struct sh_cmd *c;
	struct sh_func *f;
	bool any = false, all = (flags & SH_DESC_ALL) != 0;

	if ((flags & SH_DESC_FORCE_PATH) == 0) {
		for (struct sh_alias *a = sh->aliases; a != NULL; a = a->next) {
			if (strcmp(a->name, name) != 0 || (sh->shopts & SH_S_EXPAND_ALIASES) == 0)
				continue;
			if (how == SH_DESC_WORD)
				shcmd_printf(io, "alias %s='%s'\n", name, a->value);
			else if (how == SH_DESC_LONG)
				shcmd_printf(io, "%s is aliased to `%s'\n", name, a->value);
			else if (how == SH_DESC_TYPE)
				shcmd_puts(io, "alias\n");
			any = true;
			if (!all)
				return true;
		}
		if (sh_is_reserved(name)) {
			if (how == SH_DESC_WORD)
				shcmd_printf(io, "%s\n", name);
			else if (how == SH_DESC_LONG)
				shcmd_printf(io, "%s is a shell keyword\n", name);
			else if (how == SH_DESC_TYPE)
				shcmd_puts(io, "keyword\n");
			any = true;
			if (!all)
				return true;
		}
		f = (flags & SH_DESC_NO_FUNCS) != 0 ? NULL : sh_func_find(sh, name);
		if (f != NULL) {
			if (how == SH_DESC_WORD) {
				shcmd_printf(io, "%s\n", name);
			} else if (how == SH_DESC_LONG) {
				AUTO_BUF b = buf_with(SH_EXPAND_MAX);

				sh_func_print(&b, f);
				shcmd_printf(io, "%s is a function\n", name);
				shcmd_put(io, b.p, b.n);
			} else if (how == SH_DESC_TYPE) {
				shcmd_puts(io, "function\n");
			}
			any = true;
			if (!all)
				return true;
		}
		c = sh_cmd_find(name);
		if (c != NULL && (c->flags & SHCMD_BUILTIN) != 0) {
			(void)describe_cmd(io, c, how);
			any = true;
			if (!all)
				return true;
		}
	}
	if (describe_program(io, name, how, all))
		return true;
	/* A utility that the host lacks still runs here. */
	c = sh_cmd_find(name);
	if (c != NULL && (c->flags & SHCMD_BUILTIN) == 0 && strchr(name, '/') == NULL)
		return describe_cmd(io, c, how);
	return any;
}

static int run_type(struct sh_io *io, int argc, char **argv)
{
	enum sh_desc how = SH_DESC_LONG;
	unsigned flags = 0;
	int i = 1, r = 0;

	for (; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		for (const char *c = argv[i] + 1; *c != '\0'; c++) {
			switch (*c) {
			case 't':
				how = SH_DESC_TYPE;
				break;
			case 'p':
				how = SH_DESC_PATH;
				break;
			case 'P':
				how = SH_DESC_PATH;
				flags |= SH_DESC_FORCE_PATH;
				break;
			case 'a':
				flags |= SH_DESC_ALL;
				break;
			case 'f':
				flags |= SH_DESC_NO_FUNCS;
				break;
			default:
				(void)shcmd_err(io, "-%c: invalid option", *c);
				return 2;
			}
		}
	}
	for (; i < argc; i++) {
		if (!sh_describe(io, argv[i], how, flags)) {
			if (how == SH_DESC_LONG)
				(void)shcmd_err(io, "%s: not found", argv[i]);
			r = 1;
		}
	}
	return r;
}

const struct sh_cmd sh_cmd_type = { "type", NULL, SHCMD_BUILTIN, 2, run_type };

/* Nothing is remembered between two commands: box-files finds a program anew each time. */
static int run_hash(struct sh_io *io, int argc, char **argv)
{
	int r = 0;

	for (int i = 1; i < argc; i++) {
		AUTO_BUF out = buf_with(SHCMD_PATH_MAX);
		const char *path = sh_var_get(io->sh, "PATH");

		if (argv[i][0] == '-' || sh_cmd_find(argv[i]) != NULL ||
		    sh_func_find(io->sh, argv[i]) != NULL)
			continue;
		if (files_locate(io->files, argv[i], path != NULL ? path : io->sh->path0, &out) !=
		    0)
			r = shcmd_err(io, "%s: not found", argv[i]);
	}
	return r;
}

const struct sh_cmd sh_cmd_hash = { "hash", NULL, SHCMD_BUILTIN, 1, run_hash };

/* --- times, ulimit --- */

static void put_time(struct sh_io *io, clock_t t, const char *end)
{
	long hz = 100; /* USER_HZ, what times(2) counts in on Linux */
	long m = t / hz / 60, s = t / hz % 60, f = t % hz * 1000 / hz;

	shcmd_printf(io, "%ldm%ld.%03lds%s", m, s, f, end);
}

static int run_times(struct sh_io *io, int argc, char **argv)
{
	struct tms t;

	(void)argc;
	(void)argv;
	if (times(&t) == (clock_t)-1)
		return shcmd_err(io, "%s", box_strerror(errno));
	put_time(io, t.tms_utime, " ");
	put_time(io, t.tms_stime, "\n");
	put_time(io, t.tms_cutime, " ");
	put_time(io, t.tms_cstime, "\n");
	return 0;
}

const struct sh_cmd sh_cmd_times = { "times", NULL, SHCMD_SPECIAL | SHCMD_BUILTIN, 0, run_times };

static const struct {
	char letter;
	const char *name;
	__rlimit_resource_t what;
	rlim_t unit;
} limits[] = { { 'c', "core file size (blocks)", RLIMIT_CORE, 1024 },
	{ 'd', "data seg size (kbytes)", RLIMIT_DATA, 1024 },
	{ 'f', "file size (blocks)", RLIMIT_FSIZE, 1024 },
	{ 'm', "max memory size (kbytes)", RLIMIT_RSS, 1024 },
	{ 'n', "open files", RLIMIT_NOFILE, 1 }, { 's', "stack size (kbytes)", RLIMIT_STACK, 1024 },
	{ 't', "cpu time (seconds)", RLIMIT_CPU, 1 },
	{ 'u', "max user processes", RLIMIT_NPROC, 1 },
	{ 'v', "virtual memory (kbytes)", RLIMIT_AS, 1024 } };

/* Limits are shown; they are set by the box ([limits]), and lowering one is allowed. */
static int run_ulimit(struct sh_io *io, int argc, char **argv)
{
	bool hard = false;
	char letter = 'f';
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		for (const char *c = argv[i] + 1; *c != '\0'; c++) {
			if (*c == 'H')
				hard = true;
			else if (*c != 'S')
				letter = *c;
		}
	}
	for (size_t k = 0; k < sizeof(limits) / sizeof(limits[0]); k++) {
		struct rlimit r;
		rlim_t *v;
		int64_t n;

		if (letter != limits[k].letter && letter != 'a')
			continue;
		if (getrlimit(limits[k].what, &r) != 0)
			return shcmd_err(io, "%s", box_strerror(errno));
		v = hard ? &r.rlim_max : &r.rlim_cur;
		if (i < argc && letter != 'a') {
			if (strcmp(argv[i], "unlimited") == 0)
				*v = RLIM_INFINITY;
			else if (shcmd_number(argv[i], 0, INT64_MAX / 2048, &n))
				*v = (rlim_t)n * limits[k].unit;
			else
				return shcmd_err(io, "%s: invalid number", argv[i]);
			/* The shell's own channels lie above the descriptors that scripts name. */
			if (limits[k].what == RLIMIT_NOFILE && *v < SH_FD_USER_MAX + 64)
				return shcmd_err(io, "%s: the shell itself needs %d",
				    limits[k].name, SH_FD_USER_MAX + 64);
			if (!hard && *v > r.rlim_max)
				return shcmd_err(io, "%s: cannot modify limit: %s", limits[k].name,
				    box_strerror(EPERM));
			if (setrlimit(limits[k].what, &r) != 0)
				return shcmd_err(io, "%s: cannot modify limit: %s", limits[k].name,
				    box_strerror(errno));
			return 0;
		}
		if (letter == 'a')
			shcmd_printf(io, "%-30s(-%c) ", limits[k].name, limits[k].letter);
		if (*v == RLIM_INFINITY)
			shcmd_puts(io, "unlimited\n");
		else
			shcmd_printf(io, "%llu\n", (unsigned long long)(*v / limits[k].unit));
		if (letter != 'a')
			return 0;
	}
	if (letter == 'a')
		return 0;
	(void)shcmd_err(io, "-%c: invalid option", letter);
	return 2;
}

const struct sh_cmd sh_cmd_ulimit = { "ulimit", NULL, SHCMD_BUILTIN, 2, run_ulimit };

/* --- pwd, cd --- */

static int run_pwd(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	const char *pwd = sh_var_get(sh, "PWD");
	bool physical = (sh->opts & SH_O_PHYSICAL) != 0;

	for (int i = 1; i < argc && argv[i][0] == '-'; i++) {
		for (const char *c = argv[i] + 1; *c != '\0'; c++) {
			if (*c == 'P') {
				physical = true;
			} else if (*c == 'L') {
				physical = false;
			} else if (*c != '-') {
				(void)shcmd_err(io, "-%c: invalid option", *c);
				return 2;
			}
		}
	}
	(void)pwd;
	shcmd_printf(io, "%s\n", physical ? sh->cwd : sh->logical);
	return 0;
}

const struct sh_cmd sh_cmd_pwd = { "pwd", NULL, SHCMD_BUILTIN | SHCMD_UTILITY, 2, run_pwd };

/* The logical path: "." and ".." folded as text (POSIX cd, step 8). */
static char *fold(struct arena *a, const char *base, const char *arg)
{
	size_t n = strlen(base) + strlen(arg) + 3, k = 0;
	char *out = sh_aalloc(a, n, 1);
	const char *joined = arg[0] == '/' ? arg : arena_printf(a, "%s/%s", base, arg);
	sv rest = sv_c(joined), part;

	for (bool more = true; more;) {
		more = sv_cut(rest, '/', &part, &rest);
		if (part.n == 0 || sv_eq(part, SV(".")))
			continue;
		if (sv_eq(part, SV(".."))) {
			while (k > 0 && out[--k] != '/')
				;
			continue;
		}
		out[k++] = '/';
		memcpy(out + k, part.p, part.n);
		k += part.n;
	}
	if (k == 0)
		out[k++] = '/';
	out[k] = '\0';
	return out;
}

/* Change to path (absolute). 0, or -1 with files_error set. */
static int change(struct sh_io *io, const char *path, const char *logical)
{
	struct shell *sh = io->sh;
	AUTO_BUF out = buf_with(SHCMD_PATH_MAX);
	char *old;

	if (files_chdir(sh->files, path, &out) != 0)
		return -1;
	free(sh->cwd);
	sh->cwd = sh_xdup(buf_sv(&out));
	old = sh->logical;
	sh->logical = sh_xstrdup(logical != NULL ? logical : sh->cwd);
	(void)sh_var_set(sh, "OLDPWD", old);
	(void)sh_var_set(sh, "PWD", sh->logical);
	free(old);
	return 0;
}

/* A relative name is looked for in the folders of CDPATH first. */
static int by_cdpath(struct sh_io *io, const char *dir, bool physical, bool *printed)
{
	const char *cdpath = sh_var_get(io->sh, "CDPATH");
	sv rest, entry;

	if (cdpath == NULL || *cdpath == '\0' || dir[0] == '/' || strcmp(dir, ".") == 0 ||
	    strcmp(dir, "..") == 0 || strncmp(dir, "./", 2) == 0 || strncmp(dir, "../", 3) == 0)
		return -1;
	rest = sv_c(cdpath);
	for (bool more = true; more;) {
		const char *p;
		char *log;

		more = sv_cut(rest, ':', &entry, &rest);
		p = entry.n == 0 ? dir : arena_printf(io->arena, SV_FMT "/%s", SV_ARG(entry), dir);
		if (p == NULL)
			return -1;
		log = fold(io->arena, io->sh->logical, p);
		if (change(io, log, physical ? NULL : log) == 0) {
			*printed = entry.n != 0;
			return 0;
		}
	}
	return -1;
}

static int run_cd(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	const char *dir, *target;
	char *logical;
	bool physical = (sh->opts & SH_O_PHYSICAL) != 0, print = false;
	int i = 1;

	for (; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		for (const char *c = argv[i] + 1; *c != '\0'; c++) {
			if (*c == 'P') {
				physical = true;
			} else if (*c == 'L') {
				physical = false;
			} else if (*c != 'e' && *c != '@') {
				(void)shcmd_err(io, "-%c: invalid option", *c);
				return 2;
			}
		}
	}
	if (argc - i > 1)
		return shcmd_err(io, "too many arguments");
	dir = i < argc ? argv[i] : sh_var_get(sh, "HOME");
	if (dir == NULL)
		return shcmd_err(io, "HOME not set");
	if (i < argc && strcmp(dir, "-") == 0) {
		dir = sh_var_get(sh, "OLDPWD");
		if (dir == NULL)
			return shcmd_err(io, "OLDPWD not set");
		print = true;
	}
	if (dir[0] == '\0')
		return 0;
	dir = sh_adup(io->arena, sv_c(dir));
	if (by_cdpath(io, dir, physical, &print) != 0) {
		logical = fold(io->arena, sh->logical, dir);
		/* With -P, and when the folded path leads nowhere, the links decide. */
		target = physical ? shcmd_path(io, dir) : logical;
		if (target == NULL)
			return shcmd_open_err(io, dir);
		if (change(io, target, physical ? NULL : logical) != 0)
			return shcmd_files_err(io, dir, files_error(sh->files));
	}
	if (print)
		shcmd_printf(io, "%s\n", sh->logical);
	return 0;
}

const struct sh_cmd sh_cmd_cd = { "cd", NULL, SHCMD_BUILTIN, 2, run_cd };
