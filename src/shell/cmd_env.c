/* env and printenv. A command that env runs is found and decided like any other. */
#include <string.h>

#include "shell/command.h"
#include "base/ban.h"

/* Set or remove NAME in a NULL-terminated list with room. */
static void change(char **env, size_t *n, const char *name, size_t len, char *entry)
{
	for (size_t i = 0; i < *n; i++) {
		if (strncmp(env[i], name, len) == 0 && env[i][len] == '=') {
			if (entry != NULL) {
				env[i] = entry;
				return;
			}
			memmove(&env[i], &env[i + 1], (*n - i) * sizeof(char *));
			(*n)--;
			return;
		}
	}
	if (entry != NULL) {
		env[(*n)++] = entry;
		env[*n] = NULL;
	}
}

/* -S: split a string into words (blanks, quotes, backslashes). */
static char **split(struct sh_io *io, const char *s, int argc, char **argv, int from, int *out_n)
{
	size_t len = strlen(s);
	char **v = shcmd_alloc(io, len + (size_t)(argc - from) + 2, sizeof(char *));
	char *text = shcmd_alloc(io, len + 1, 1), quote = 0;
	int n = 0;
	bool in_word = false;

	if (v == NULL || text == NULL)
		return NULL;
	v[n++] = argv[0];
	for (; *s != '\0'; s++) {
		if (quote == 0 && (*s == ' ' || *s == '\t' || *s == '\n')) {
			if (in_word)
				*text++ = '\0';
			in_word = false;
			continue;
		}
		if (!in_word) {
			v[n++] = text;
			in_word = true;
		}
		if (quote == 0 && (*s == '\'' || *s == '"'))
			quote = *s;
		else if (quote != 0 && *s == quote)
			quote = 0;
		else if (*s == '\\' && s[1] != '\0' && quote != '\'')
			*text++ = *++s;
		else
			*text++ = *s;
	}
	for (int i = from; i < argc; i++)
		v[n++] = argv[i];
	*out_n = n;
	return v;
}

static int run_env(struct sh_io *io, int argc, char **argv)
{
	static const struct sh_opt t[] = { { 'i', "ignore-environment", SH_OPT_NONE },
		{ 'u', "unset", SH_OPT_REQUIRED }, { 'C', "chdir", SH_OPT_REQUIRED },
		{ '0', "null", SH_OPT_NONE }, { 'S', "split-string", SH_OPT_REQUIRED }, { 0 } };
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = t, .posix = true };
	char **all = shcmd_env_all(io), **env, end = '\n';
	struct shcmd_run_opts o = { .in = -1, .no_builtins = true };
	AUTO_BUF dir = buf_with(SHCMD_PATH_MAX);
	size_t n = 0;
	int c, i, r;

	while (all[n] != NULL)
		n++;
	env = shcmd_alloc(io, n + (size_t)argc + 4096, sizeof(char *));
	if (env == NULL)
		return 125;
	memcpy(env, all, n * sizeof(char *));
	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		switch (c) {
		case 'i':
			n = 0;
			env[0] = NULL;
			break;
		case 'u':
			change(env, &n, g.arg, strlen(g.arg), NULL);
			break;
		case '0':
			end = '\0';
			break;
		case 'C':
			if (shcmd_path(io, g.arg) == NULL ||
			    files_chdir(io->files, shcmd_path(io, g.arg), &dir) != 0) {
				(void)shcmd_files_err(io, g.arg, files_error(io->files));
				return 125;
			}
			o.cwd = buf_cstr(&dir);
			break;
		case 'S':
			argv = split(io, g.arg, argc, argv, g.i, &argc);
			if (argv == NULL)
				return 125;
			g = (struct sh_getopt){
				.argc = argc, .argv = argv, .opts = t, .posix = true
			};
			break;
		case SH_OPT_HELP:
			return 0;
		default:
			(void)shcmd_bad_option(io, &g);
			return 125;
		}
	}
	i = g.i;
	if (i < argc && strcmp(argv[i], "-") == 0) {
		n = 0;
		env[0] = NULL;
		i++;
	}
	for (; i < argc && strchr(argv[i], '=') != NULL; i++)
		change(env, &n, argv[i], (size_t)(strchr(argv[i], '=') - argv[i]), argv[i]);
	if (i == argc) {
		for (size_t k = 0; k < n; k++) {
			shcmd_puts(io, env[k]);
			shcmd_putc(io, end);
		}
		return 0;
	}
	o.env = env;
	r = shcmd_run(io, argv + i, &o);
	return r;
}

static int run_printenv(struct sh_io *io, int argc, char **argv)
{
	static const struct sh_opt t[] = { { '0', "null", SH_OPT_NONE }, { 0 } };
	struct sh_getopt g = { .argc = argc, .argv = argv, .opts = t };
	char end = '\n';
	int c, r = 0;

	while ((c = shcmd_getopt(io, &g)) != SH_OPT_END) {
		if (c == SH_OPT_HELP)
			return 0;
		if (c == SH_OPT_ERROR)
			return shcmd_bad_option(io, &g);
		end = '\0';
	}
	if (g.i == argc) {
		char **env = shcmd_env_all(io);

		for (size_t k = 0; env[k] != NULL; k++) {
			shcmd_puts(io, env[k]);
			shcmd_putc(io, end);
		}
	}
	for (int i = g.i; i < argc; i++) {
		const char *v = shcmd_env(io, argv[i]);

		if (v == NULL) {
			r = 1;
			continue;
		}
		shcmd_puts(io, v);
		shcmd_putc(io, end);
	}
	return r;
}

const struct sh_cmd sh_cmd_env = { "env",
	"env [-i] [-u NAME] [-C DIR] [-0] [NAME=VALUE]... [COMMAND [ARG]...]\n", SHCMD_UTILITY, 125,
	run_env };
const struct sh_cmd sh_cmd_printenv = { "printenv", "printenv [-0] [NAME]...\n", SHCMD_UTILITY, 2,
	run_printenv };
