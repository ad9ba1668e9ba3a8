/* Pathname expansion (POSIX 2.13.3). Folders are read with decided listings (files_list): a refused
 * or unreadable folder has no matches. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shell/pattern.h"
#include "shell/shell.h"
#include "base/ban.h"

#define MATCHES_MAX 100000
#define DEPTH_MAX   64

struct gl {
	struct shell *sh;
	struct arena *a;
	struct sh_vec found;
	unsigned flags;
	int depth;
};

struct names {
	struct sh_vec v;
	struct sh_vec types; /* one letter each: d, l, u or - */
	sv pattern;
	const struct gl *g;
	bool all; /* for ** */
	bool dots;
};

static void on_entry(void *arg, const struct files_entry *e, const struct files_stat *st)
{
	struct names *n = arg;
	const char *t = e->type == DT_DIR       ? "d"
	                : e->type == DT_LNK     ? "l"
	                : e->type == DT_UNKNOWN ? "u"
	                                        : "-";

	(void)st;
	if (n->v.n >= MATCHES_MAX)
		return;
	if (e->name[0] == '.' && !n->dots && !(n->pattern.n != 0 && n->pattern.p[0] == '.') &&
	    !(n->pattern.n > 1 && n->pattern.p[0] == '\\' && n->pattern.p[1] == '.'))
		return;
	if (!n->all && !sh_pat_match(n->pattern, sv_c(e->name), n->g->flags))
		return;
	sh_vec_push(&n->v, sh_xstrdup(e->name));
	sh_vec_push(&n->types, sh_xstrdup(t));
}

/* Length of the first component of a pattern: up to an unquoted slash outside brackets. */
static size_t component(sv p)
{
	size_t i = 0;

	for (; i < p.n && p.p[i] != '/'; i++) {
		if (p.p[i] == '\\' && i + 1 < p.n && p.p[i + 1] != '/')
			i++;
	}
	return i;
}

/* Pattern text without its backslashes. */
static char *unescape(struct arena *a, sv p)
{
	char *s = sh_aalloc(a, p.n + 1, 1);
	size_t n = 0;

	for (size_t i = 0; i < p.n; i++) {
		if (p.p[i] == '\\' && i + 1 < p.n)
			i++;
		s[n++] = p.p[i];
	}
	return s;
}

static bool exists(struct gl *g, const char *path)
{
	struct files_stat st;
	char *abs = sh_path(g->sh, g->a, path);

	return abs != NULL && files_stat(g->sh->files, abs, false, &st) == 0;
}

static bool is_dir(struct gl *g, const char *path, const char *type)
{
	struct files_stat st;
	char *abs;

	if (type[0] == 'd')
		return true;
	if (type[0] == '-')
		return false;
	abs = sh_path(g->sh, g->a, path);
	return abs != NULL && files_stat(g->sh->files, abs, true, &st) == 0 && S_ISDIR(st.mode);
}

static char *concat(struct arena *a, const char *x, const char *y)
{
	size_t n = strlen(x), m = strlen(y);
	char *s = sh_aalloc(a, n + m + 1, 1);

	memcpy(s, x, n);
	memcpy(s + n, y, m);
	return s;
}

static void walk(struct gl *g, const char *prefix, sv rest);

/* GLOBIGNORE brings the names with a leading dot along, as in bash. */
static bool dots_too(struct shell *sh)
{
	const char *v = sh_var_get(sh, "GLOBIGNORE");

	return (sh->shopts & SH_S_DOTGLOB) != 0 || (v != NULL && *v != '\0');
}

static void list(struct gl *g, const char *prefix, struct names *n)
{
	char *dir = sh_path(g->sh, g->a, prefix[0] != '\0' ? prefix : ".");

	if (dir != NULL)
		(void)files_list(g->sh->files, dir, false, on_entry, n);
}

/* ** as a whole component: this folder and all below, links not followed. */
static void walk_star_star(struct gl *g, const char *prefix, sv rest, bool dirs)
{
	struct names n = { .g = g, .all = true, .dots = dots_too(g->sh) };

	if (g->depth++ < DEPTH_MAX) {
		if (rest.n != 0)
			walk(g, prefix, rest);
		list(g, prefix, &n);
		for (size_t i = 0; i < n.v.n; i++) {
			char *path = concat(g->a, prefix, n.v.v[i]);

			if (rest.n == 0 && !dirs)
				sh_vec_push(&g->found, sh_xstrdup(path));
			if (n.types.v[i][0] == 'd') {
				if (rest.n == 0 && dirs)
					sh_vec_push(&g->found, sh_xprintf("%s/", path));
				walk_star_star(g, concat(g->a, path, "/"), rest, dirs);
			}
		}
	}
	g->depth--;
	sh_vec_fini(&n.v);
	sh_vec_fini(&n.types);
}

/* Matches of pattern `rest` below prefix ("" or ending in a slash). */
static void walk(struct gl *g, const char *prefix, sv rest)
{
	size_t k = component(rest);
	sv first = sv_sub(rest, 0, k), after = sv_sub(rest, k, rest.n);
	struct names n = { .pattern = first, .g = g, .dots = dots_too(g->sh) };
	size_t slashes = 0;

	/* Behind the longest path there is nothing, and we go one deeper for every component. */
	if (g->found.n >= MATCHES_MAX || strlen(prefix) >= SHCMD_PATH_MAX)
		return;
	while (slashes < after.n && after.p[slashes] == '/')
		slashes++;
	if (!sh_pat_is_magic(first, g->flags)) {
		char *path = concat(g->a, prefix, unescape(g->a, first));

		path = concat(g->a, path, sh_adup(g->a, sv_sub(after, 0, slashes)));
		if (slashes != 0 && after.n > slashes)
			walk(g, path, sv_sub(after, slashes, after.n));
		else if (exists(g, path))
			sh_vec_push(&g->found, sh_xstrdup(path));
		return;
	}
	if ((g->sh->shopts & SH_S_GLOBSTAR) != 0 && sv_eq(first, SV("**"))) {
		if (after.n == slashes && prefix[0] != '\0')
			sh_vec_push(&g->found, sh_xstrdup(prefix));
		walk_star_star(g, prefix, sv_sub(after, slashes, after.n), slashes != 0);
		return;
	}
	list(g, prefix, &n);
	for (size_t i = 0; i < n.v.n; i++) {
		char *path = concat(g->a, prefix, n.v.v[i]);

		if (slashes == 0) {
			sh_vec_push(&g->found, sh_xstrdup(path));
			continue;
		}
		if (!is_dir(g, path, n.types.v[i]))
			continue;
		path = concat(g->a, path, sh_adup(g->a, sv_sub(after, 0, slashes)));
		if (after.n > slashes)
			walk(g, path, sv_sub(after, slashes, after.n));
		else
			sh_vec_push(&g->found, sh_xstrdup(path));
	}
	sh_vec_fini(&n.v);
	sh_vec_fini(&n.types);
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* GLOBIGNORE: patterns of results to leave out. */
static bool ignored(struct shell *sh, const char *path)
{
	const char *v = sh_var_get(sh, "GLOBIGNORE");
	sv rest = sv_c(v), one;

	for (bool more = rest.n != 0; more;) {
		more = sv_cut(rest, ':', &one, &rest);
		if (one.n != 0 && sh_pat_match(one, sv_c(path), SH_PAT_EXTGLOB))
			return true;
	}
	return false;
}

size_t sh_glob(struct shell *sh, struct arena *a, const char *pattern, struct sh_args *out)
{
	struct gl g = { .sh = sh, .a = a };
	sv p = sv_c(pattern);
	size_t slashes = 0, n, before = out->n;

	g.flags = ((sh->shopts & SH_S_EXTGLOB) != 0 ? SH_PAT_EXTGLOB : 0u) |
	          ((sh->shopts & SH_S_NOCASEGLOB) != 0 ? SH_PAT_NOCASE : 0u);
	while (slashes < p.n && p.p[slashes] == '/')
		slashes++;
	walk(&g, sh_adup(a, sv_sub(p, 0, slashes)), sv_sub(p, slashes, p.n));
	if (g.found.n > 1)
		qsort(g.found.v, g.found.n, sizeof(char *), by_bytes);
	for (size_t i = 0; i < g.found.n; i++) {
		if (!ignored(sh, g.found.v[i]))
			sh_args_push(a, out, sh_adup(a, sv_c(g.found.v[i])), false);
	}
	n = out->n - before;
	sh_vec_fini(&g.found);
	return n;
}
