/* pushd, popd, dirs: a stack of folders on top of cd, whose decisions they share. */
#include <stdlib.h>
#include <string.h>

#include "shell/shell.h"
#include "base/ban.h"

#define STACK_MAX 256

/* The folder as dirs shows it: ~ for HOME. */
static const char *tidy(struct sh_io *io, const char *dir, bool full)
{
	const char *home = sh_var_get(io->sh, "HOME");
	size_t n = home != NULL ? strlen(home) : 0;
	const char *s;

	if (full || n <= 1 || strncmp(dir, home, n) != 0 || (dir[n] != '/' && dir[n] != '\0'))
		return dir;
	s = arena_printf(io->arena, "~%s", dir + n);
	return s != NULL ? s : dir;
}

/* Entry i of the stack, 0 being the working directory. */
static const char *entry(struct shell *sh, size_t i)
{
	return i == 0 ? sh->logical : sh->dirs.v[sh->dirs.n - i];
}

static void show(struct sh_io *io, bool full, const char *sep)
{
	for (size_t i = 0; i <= io->sh->dirs.n; i++)
		shcmd_printf(io, "%s%s", i != 0 ? sep : "", tidy(io, entry(io->sh, i), full));
	shcmd_putc(io, '\n');
}

static int change(struct sh_io *io, const char *dir)
{
	const struct sh_cmd *cd = sh_cmd_find("cd");
	char *argv[] = { sh_adup(io->arena, SV("cd")), sh_adup(io->arena, SV("--")),
		sh_adup(io->arena, sv_c(dir)), NULL };
	struct sh_io inner = *io;
	int r;

	if (cd == NULL)
		return 1;
	r = cd->run(&inner, 3, argv);
	io->cwd = io->sh->cwd;
	return r;
}

static void drop(struct shell *sh, size_t at)
{
	free(sh->dirs.v[at]);
	memmove(&sh->dirs.v[at], &sh->dirs.v[at + 1], (sh->dirs.n - at) * sizeof(char *));
	sh->dirs.n--;
}

/* +N from the top, -N from the bottom, as an index from the top; -1: no such entry, -2: not of this
 * form. */
static int64_t position(struct sh_io *io, const char *s)
{
	int64_t n;

	if ((s[0] != '+' && s[0] != '-') || !sv_to_i64(sv_c(s + 1), 10, 0, STACK_MAX * 2, &n))
		return -2;
	if (n > (int64_t)io->sh->dirs.n)
		return -1;
	return s[0] == '+' ? n : (int64_t)io->sh->dirs.n - n;
}

/* Turn the stack so that entry k is on top. */
static int rotate(struct sh_io *io, size_t k)
{
	struct shell *sh = io->sh;
	size_t n = sh->dirs.n + 1;
	char **all = sh_aalloc(io->arena, n, sizeof(char *));
	int r;

	for (size_t i = 0; i < n; i++)
		all[i] = sh_adup(io->arena, sv_c(entry(sh, (i + k) % n)));
	r = change(io, all[0]);
	if (r != 0)
		return r;
	for (size_t i = 1; i < n; i++) {
		free(sh->dirs.v[n - 1 - i]);
		sh->dirs.v[n - 1 - i] = sh_xstrdup(all[i]);
	}
	return 0;
}

static int run_pushd(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	bool stay = false;
	int64_t k;
	char *old;
	int i = 1, r;

	if (i < argc && strcmp(argv[i], "-n") == 0) {
		stay = true;
		i++;
	}
	if (i < argc && strcmp(argv[i], "--") == 0)
		i++;
	if (i == argc) {
		if (sh->dirs.n == 0)
			return shcmd_err(io, "no other directory");
		r = rotate(io, 1);
	} else if ((k = position(io, argv[i])) != -2) {
		if (k < 0)
			return shcmd_err(io, "%s: directory stack index out of range", argv[i]);
		r = rotate(io, (size_t)k);
	} else if (sh->dirs.n >= STACK_MAX) {
		return shcmd_err(io, "directory stack full");
	} else if (stay) {
		sh_vec_push(&sh->dirs, sh_xstrdup(argv[i]));
		r = 0;
	} else {
		old = sh_xstrdup(sh->logical);
		r = change(io, argv[i]);
		if (r == 0)
			sh_vec_push(&sh->dirs, old);
		else
			free(old);
	}
	if (r == 0)
		show(io, false, " ");
	return r;
}

static int run_popd(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	bool stay = false;
	int64_t k = 0;
	int i = 1, r = 0;

	if (i < argc && strcmp(argv[i], "-n") == 0) {
		stay = true;
		i++;
	}
	if (i < argc) {
		k = position(io, argv[i]);
		if (k == -2)
			return shcmd_err(io, "%s: invalid argument", argv[i]);
	}
	if (sh->dirs.n == 0)
		return shcmd_err(io, "directory stack empty");
	if (k < 0)
		return shcmd_err(io, "%s: directory stack index out of range", argv[i]);
	if (k == 0 && !stay) {
		r = change(io, sh->dirs.v[sh->dirs.n - 1]);
		if (r == 0)
			drop(sh, sh->dirs.n - 1);
	} else {
		drop(sh, sh->dirs.n - (size_t)(k == 0 ? 1 : k));
	}
	if (r == 0)
		show(io, false, " ");
	return r;
}

static int run_dirs(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	bool full = false, lines = false, numbers = false;

	for (int i = 1; i < argc; i++) {
		int64_t k = position(io, argv[i]);

		if (strcmp(argv[i], "-c") == 0) {
			sh_vec_fini(&sh->dirs);
			return 0;
		}
		if (strcmp(argv[i], "-l") == 0) {
			full = true;
		} else if (strcmp(argv[i], "-p") == 0) {
			lines = true;
		} else if (strcmp(argv[i], "-v") == 0) {
			numbers = true;
		} else if (k >= 0) {
			shcmd_printf(io, "%s\n", tidy(io, entry(sh, (size_t)k), full));
			return 0;
		} else if (k == -1) {
			return shcmd_err(io, "%s: directory stack index out of range", argv[i]);
		} else {
			(void)shcmd_err(io, "%s: invalid option", argv[i]);
			return 2;
		}
	}
	if (numbers) {
		for (size_t i = 0; i <= sh->dirs.n; i++)
			shcmd_printf(io, "%2zu  %s\n", i, tidy(io, entry(sh, i), full));
		return 0;
	}
	show(io, full, lines ? "\n" : " ");
	return 0;
}

const struct sh_cmd sh_cmd_pushd = { "pushd", NULL, SHCMD_BUILTIN, 2, run_pushd };
const struct sh_cmd sh_cmd_popd = { "popd", NULL, SHCMD_BUILTIN, 2, run_popd };
const struct sh_cmd sh_cmd_dirs = { "dirs", NULL, SHCMD_BUILTIN, 2, run_dirs };
