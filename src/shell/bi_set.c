/* Builtins about the shell's settings: set shift shopt alias unalias getopts umask. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "shell/escape.h"
#include "shell/parse.h"
#include "shell/shell.h"
#include "base/ban.h"

/* --- options --- */

static const struct {
	const char *name;
	char letter;
	unsigned bit;
} options[] = { { "allexport", 'a', SH_O_ALLEXPORT }, { "braceexpand", 'B', SH_O_BRACES },
	{ "emacs", 0, 0 }, { "errexit", 'e', SH_O_ERREXIT }, { "errtrace", 'E', SH_O_ERRTRACE },
	{ "functrace", 'T', SH_O_FUNCTRACE }, { "hashall", 'h', SH_O_HASHALL },
	{ "histexpand", 'H', 0 }, { "history", 0, 0 }, { "ignoreeof", 0, SH_O_IGNOREEOF },
	{ "interactive-comments", 0, 0 }, { "keyword", 'k', SH_O_KEYWORD },
	{ "monitor", 'm', SH_O_MONITOR }, { "noclobber", 'C', SH_O_NOCLOBBER },
	{ "noexec", 'n', SH_O_NOEXEC }, { "noglob", 'f', SH_O_NOGLOB }, { "nolog", 0, SH_O_NOLOG },
	{ "notify", 'b', SH_O_NOTIFY }, { "nounset", 'u', SH_O_NOUNSET },
	{ "onecmd", 't', SH_O_ONECMD }, { "physical", 'P', SH_O_PHYSICAL },
	{ "pipefail", 0, SH_O_PIPEFAIL }, { "posix", 0, SH_O_POSIX },
	{ "privileged", 'p', SH_O_PRIVILEGED }, { "verbose", 'v', SH_O_VERBOSE }, { "vi", 0, 0 },
	{ "xtrace", 'x', SH_O_XTRACE } };
#define NOPTIONS (sizeof(options) / sizeof(options[0]))

unsigned sh_option_bit(const char *name)
{
	for (size_t i = 0; i < NOPTIONS; i++) {
		if (strcmp(options[i].name, name) == 0)
			return options[i].bit;
	}
	return 0;
}

static bool known_option(const char *name)
{
	for (size_t i = 0; i < NOPTIONS; i++) {
		if (strcmp(options[i].name, name) == 0)
			return true;
	}
	return false;
}

void sh_options_text(const struct shell *sh, char *out, size_t n)
{
	size_t k = 0;

	out[0] = '\0';
	for (size_t i = 0; i < NOPTIONS; i++) {
		bool on = (sh->opts & options[i].bit) != 0 ||
		          strcmp(options[i].name, "interactive-comments") == 0;

		if (on && k < n)
			k += (size_t)snprintf(
			    out + k, n - k, "%s%s", k != 0 ? ":" : "", options[i].name);
	}
}

static void change(struct shell *sh, unsigned bit, bool on)
{
	if (on)
		sh->opts |= bit;
	else
		sh->opts &= ~bit;
}

static void list_options(struct sh_io *io, bool plus)
{
	for (size_t i = 0; i < NOPTIONS; i++) {
		bool on = (io->sh->opts & options[i].bit) != 0 ||
		          strcmp(options[i].name, "interactive-comments") == 0;

		if (plus)
			shcmd_printf(io, "set %co %s\n", on ? '-' : '+', options[i].name);
		else
			shcmd_printf(io, "%-15s\t%s\n", options[i].name, on ? "on" : "off");
	}
}

static int letters(struct shell *sh, const char *name, const char *s, bool on)
{
	for (; *s != '\0'; s++) {
		size_t i = 0;

		while (i < NOPTIONS && options[i].letter != *s)
			i++;
		if (i == NOPTIONS || *s == 'o') {
			sh_msg(sh, "%s: %c%c: invalid option", name, on ? '-' : '+', *s);
			return 2;
		}
		change(sh, options[i].bit, on);
	}
	return 0;
}

int sh_set_options(struct shell *sh, const char *name, int argc, char **argv, int *i)
{
	for (; *i < argc; (*i)++) {
		char *w = argv[*i];
		bool on = w[0] == '-';
		char *o;

		if (strcmp(w, "+") == 0)
			continue; /* an empty list of options */
		if ((w[0] != '-' && w[0] != '+') || w[1] == '\0' || strcmp(w, "--") == 0)
			return 0;
		/* `o` anywhere in the word takes the next word as a name: -euo pipefail */
		while ((o = strchr(w + 1, 'o')) != NULL) {
			memmove(o, o + 1, strlen(o));
			if (*i + 1 >= argc) {
				if (sh->io != NULL)
					list_options(sh->io, !on);
				break;
			}
			if (!known_option(argv[*i + 1])) {
				sh_msg(sh, "%s: %s: invalid option name", name, argv[*i + 1]);
				return 2;
			}
			change(sh, sh_option_bit(argv[*i + 1]), on);
			/* The name is consumed: the word takes its place. */
			argv[*i + 1] = w;
			(*i)++;
		}
		if (letters(sh, name, w + 1, on) != 0)
			return 2;
	}
	return 0;
}

static void set_params(struct shell *sh, int argc, char **argv)
{
	for (size_t i = 0; i < sh->nparams; i++)
		free(sh->params[i]);
	free(sh->params);
	sh->nparams = (size_t)argc;
	sh->params = sh_xalloc((size_t)argc + 1, sizeof(char *));
	for (int i = 0; i < argc; i++)
		sh->params[i] = sh_xstrdup(argv[i]);
}

void sh_list_variables(struct sh_io *io)
{
	size_t n;
	struct sh_var **v = sh_vars_sorted(io->sh, &n);

	for (size_t i = 0; i < n; i++) {
		AUTO_BUF b = buf_with(SH_EXPAND_MAX);

		if ((v[i]->flags & (SH_V_ARRAY | SH_V_ASSOC)) != 0) {
			sh_var_print(&b, v[i], "");
			/* " -a NAME=(...)": the part behind the options */
			{
				sv s = buf_sv(&b);
				ptrdiff_t at = sv_find_sv(s, sv_c(v[i]->name));

				if (at > 0)
					shcmd_put(io, s.p + at, s.n - (size_t)at);
			}
			continue;
		}
		if (v[i]->value == NULL)
			continue;
		buf_putf(&b, "%s=", v[i]->name);
		if (v[i]->value[0] != '\0')
			sh_quote(&b, sv_c(v[i]->value), true);
		buf_put_byte(&b, '\n');
		shcmd_put(io, b.p, b.n);
	}
	free(v);
}

static int run_set(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	int i = 1, r;

	if (argc == 1) {
		sh_list_variables(io);
		return 0;
	}
	r = sh_set_options(sh, "set", argc, argv, &i);
	if (r != 0)
		return r;
	if (i < argc && strcmp(argv[i], "--") == 0) {
		i++;
	} else if (i < argc && strcmp(argv[i], "-") == 0) {
		sh->opts &= ~(unsigned)(SH_O_XTRACE | SH_O_VERBOSE);
		i++;
		if (i == argc)
			return 0;
	} else if (i == argc) {
		return 0;
	}
	set_params(sh, argc - i, argv + i);
	return 0;
}

const struct sh_cmd sh_cmd_set = { "set", NULL, SHCMD_SPECIAL | SHCMD_BUILTIN, 2, run_set };

static int run_shift(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	int64_t n = 1;

	if (argc > 1 && strcmp(argv[1], "--") == 0) {
		argc--;
		argv++;
	}
	if (argc > 2) {
		(void)shcmd_err(io, "too many arguments");
		return 1;
	}
	if (argc == 2 && !shcmd_number(argv[1], INT32_MIN, INT32_MAX, &n))
		return shcmd_err(io, "%s: numeric argument required", argv[1]);
	if (n < 0)
		return shcmd_err(io, "%s: shift count out of range", argv[1]);
	if ((size_t)n > sh->nparams)
		return 1;
	for (int64_t i = 0; i < n; i++)
		free(sh->params[i]);
	if (n != 0)
		memmove(sh->params, sh->params + n, (sh->nparams - (size_t)n + 1) * sizeof(char *));
	sh->nparams -= (size_t)n;
	return 0;
}

const struct sh_cmd sh_cmd_shift = { "shift", NULL, SHCMD_SPECIAL | SHCMD_BUILTIN, 1, run_shift };

/* --- shopt --- */

static const char *const shopts[] = { "extglob", "nullglob", "dotglob", "failglob", "globstar",
	"nocaseglob", "nocasematch", "expand_aliases", "lastpipe", "xpg_echo", "inherit_errexit",
	"sourcepath", "shift_verbose", /* what follows is kept without effect */
	"autocd", "cdable_vars", "cdspell", "checkhash", "checkjobs", "checkwinsize", "cmdhist",
	"compat31", "complete_fullquote", "direxpand", "execfail", "extdebug", "extquote",
	"globasciiranges", "gnu_errfmt", "histappend", "histverify" };
#define NSHOPTS (sizeof(shopts) / sizeof(shopts[0]))

static void show_shopt(struct sh_io *io, size_t i, bool print)
{
	bool on = (io->sh->shopts >> i & 1) != 0;

	if (print)
		shcmd_printf(io, "shopt %s %s\n", on ? "-s" : "-u", shopts[i]);
	else
		shcmd_printf(io, "%-20s\t%s\n", shopts[i], on ? "on" : "off");
}

static int by_name(const void *a, const void *b)
{
	return strcmp(shopts[*(const size_t *)a], shopts[*(const size_t *)b]);
}

static int run_shopt(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	bool set = false, unset = false, quiet = false, print = false, o = false;
	int i = 1, r = 0;

	for (; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
		for (const char *c = argv[i] + 1; *c != '\0'; c++) {
			set = set || *c == 's';
			unset = unset || *c == 'u';
			quiet = quiet || *c == 'q';
			print = print || *c == 'p';
			o = o || *c == 'o';
			if (strchr("suqpo", *c) == NULL) {
				(void)shcmd_err(io, "-%c: invalid option", *c);
				return 2;
			}
		}
	}
	if (i == argc) {
		size_t order[NSHOPTS];

		for (size_t k = 0; k < NSHOPTS; k++)
			order[k] = k;
		qsort(order, NSHOPTS, sizeof(order[0]), by_name);
		if (o) {
			list_options(io, print);
			return 0;
		}
		for (size_t k = 0; k < NSHOPTS; k++) {
			bool on = (sh->shopts >> order[k] & 1) != 0;

			if ((!set && !unset) || on == set)
				show_shopt(io, order[k], print);
		}
		return 0;
	}
	for (; i < argc; i++) {
		size_t k = 0;

		if (o) {
			if (!known_option(argv[i])) {
				r = shcmd_err(io, "%s: invalid option name", argv[i]);
				continue;
			}
			if (set || unset)
				change(sh, sh_option_bit(argv[i]), set);
			else if ((sh->opts & sh_option_bit(argv[i])) == 0)
				r = 1;
			continue;
		}
		while (k < NSHOPTS && strcmp(shopts[k], argv[i]) != 0)
			k++;
		if (k == NSHOPTS) {
			r = shcmd_err(io, "%s: invalid shell option name", argv[i]);
		} else if (set) {
			sh->shopts |= 1u << k;
		} else if (unset) {
			sh->shopts &= ~(1u << k);
		} else {
			if (!quiet)
				show_shopt(io, k, print);
			if ((sh->shopts >> k & 1) == 0)
				r = 1;
		}
	}
	return r;
}

const struct sh_cmd sh_cmd_shopt = { "shopt", NULL, SHCMD_BUILTIN, 2, run_shopt };

/* --- aliases --- */

static struct sh_alias *alias_find(struct shell *sh, const char *name)
{
	for (struct sh_alias *a = sh->aliases; a != NULL; a = a->next) {
		if (strcmp(a->name, name) == 0)
			return a;
	}
	return NULL;
}

static void alias_show(struct sh_io *io, const struct sh_alias *a)
{
	AUTO_BUF b = buf_with(SH_EXPAND_MAX);

	buf_putf(&b, "alias %s='", a->name);
	for (const char *p = a->value; *p != '\0'; p++) {
		if (*p == '\'')
			buf_put_c(&b, "'\\''");
		else
			buf_put_byte(&b, (uint8_t)*p);
	}
	buf_put_c(&b, "'\n");
	shcmd_put(io, b.p, b.n);
}

static int run_alias(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	int i = 1, r = 0;

	while (i < argc && argv[i][0] == '-' && argv[i][1] != '\0') {
		if (strcmp(argv[i], "--") != 0 && strcmp(argv[i], "-p") != 0) {
			(void)shcmd_err(io, "%s: invalid option", argv[i]);
			return 2;
		}
		i++;
	}
	if (i == argc) {
		struct sh_vec names = { 0 };

		for (struct sh_alias *a = sh->aliases; a != NULL; a = a->next)
			sh_vec_push(&names, sh_xstrdup(a->name));
		sh_vec_sort(&names);
		for (size_t k = 0; k < names.n; k++)
			alias_show(io, alias_find(sh, names.v[k]));
		sh_vec_fini(&names);
	}
	for (; i < argc; i++) {
		char *eq = strchr(argv[i] + (argv[i][0] != '\0'), '=');
		struct sh_alias *a;

		if (eq != NULL)
			*eq = '\0';
		a = alias_find(sh, argv[i]);
		if (eq == NULL) {
			if (a != NULL)
				alias_show(io, a);
			else
				r = shcmd_err(io, "%s: not found", argv[i]);
			continue;
		}
		if (strpbrk(argv[i], " \t\n$`\"'\\/;&|<>()") != NULL) {
			r = shcmd_err(io, "`%s': invalid alias name", argv[i]);
			continue;
		}
		if (a == NULL) {
			a = sh_xalloc(1, sizeof(*a));
			a->name = sh_xstrdup(argv[i]);
			a->next = sh->aliases;
			sh->aliases = a;
		}
		free(a->value);
		a->value = sh_xstrdup(eq + 1);
	}
	return r;
}

const struct sh_cmd sh_cmd_alias = { "alias", NULL, SHCMD_BUILTIN, 2, run_alias };

static bool alias_remove(struct shell *sh, const char *name)
{
	for (struct sh_alias **link = &sh->aliases; *link != NULL; link = &(*link)->next) {
		struct sh_alias *a = *link;

		if (name != NULL && strcmp(a->name, name) != 0)
			continue;
		*link = a->next;
		free(a->name);
		free(a->value);
		free(a);
		return true;
	}
	return false;
}

static int run_unalias(struct sh_io *io, int argc, char **argv)
{
	int i = 1, r = 0;

	if (argc < 2)
		return shcmd_usage_err(io, "usage: unalias [-a] name [name ...]");
	if (strcmp(argv[1], "-a") == 0) {
		while (alias_remove(io->sh, NULL))
			;
		return 0;
	}
	if (strcmp(argv[1], "--") == 0)
		i++;
	for (; i < argc; i++) {
		if (!alias_remove(io->sh, argv[i]))
			r = shcmd_err(io, "%s: not found", argv[i]);
	}
	return r;
}

const struct sh_cmd sh_cmd_unalias = { "unalias", NULL, SHCMD_BUILTIN, 2, run_unalias };

/* --- getopts --- */

static int getopts_end(struct sh_io *io, const char *name, int ind)
{
	struct shell *sh = io->sh;
	char text[16];

	(void)snprintf(text, sizeof(text), "%d", ind);
	(void)sh_var_set(sh, "OPTIND", text);
	(void)sh_var_unset(sh, "OPTARG");
	(void)sh_var_set(sh, name, "?");
	sh->getopts_at = 0;
	return 1;
}

static int run_getopts(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	const char *spec, *name, *ind_text = sh_var_get(sh, "OPTIND"), *verbose;
	char **av, letter[2] = "", text[16];
	int64_t ind = 1;
	int ac, at;
	bool silent, quiet, takes;
	char c;
	const char *in;

	if (argc > 1 && strcmp(argv[1], "--") == 0) {
		argc--;
		argv++;
	}
	if (argc < 3) {
		(void)shcmd_err(io, "usage: getopts optstring name [arg ...]");
		return 2;
	}
	spec = argv[1];
	name = argv[2];
	if (!sh_is_name(sv_c(name)))
		return shcmd_err(io, "`%s': not a valid identifier", name);
	silent = spec[0] == ':';
	spec += silent;
	verbose = sh_var_get(sh, "OPTERR");
	quiet = verbose != NULL && strcmp(verbose, "0") == 0;
	av = argc > 3 ? argv + 3 : sh->params;
	ac = argc > 3 ? argc - 3 : (int)sh->nparams;
	if (ind_text == NULL || !sv_to_i64(sv_c(ind_text), 10, 1, INT32_MAX, &ind))
		ind = 1;
	at = sh->getopts_at;
	if (at == 0 || ind > ac || av[ind - 1][0] != '-' || (size_t)at >= strlen(av[ind - 1])) {
		at = 1;
		if (ind > ac || av[ind - 1][0] != '-' || av[ind - 1][1] == '\0')
			return getopts_end(io, name, (int)ind > ac + 1 ? ac + 1 : (int)ind);
		if (strcmp(av[ind - 1], "--") == 0)
			return getopts_end(io, name, (int)ind + 1);
	}
	c = av[ind - 1][at++];
	letter[0] = c;
	in = c != ':' ? strchr(spec, c) : NULL;
	takes = in != NULL && in[1] == ':';
	(void)sh_var_unset(sh, "OPTARG");
	if (in == NULL) {
		(void)sh_var_set(sh, name, "?");
		if (silent)
			(void)sh_var_set(sh, "OPTARG", letter);
		else if (!quiet)
			sh_msg(sh, "illegal option -- %c", c);
	} else {
		(void)sh_var_set(sh, name, letter);
	}
	if (takes) {
		if (av[ind - 1][at] != '\0') {
			(void)sh_var_set(sh, "OPTARG", av[ind - 1] + at);
		} else if (ind < ac) {
			(void)sh_var_set(sh, "OPTARG", av[ind]);
			ind++;
		} else if (silent) {
			(void)sh_var_set(sh, name, ":");
			(void)sh_var_set(sh, "OPTARG", letter);
		} else {
			(void)sh_var_set(sh, name, "?");
			if (!quiet)
				sh_msg(sh, "option requires an argument -- %c", c);
		}
		ind++;
		at = 0;
	} else if (av[ind - 1][at] == '\0') {
		ind++;
		at = 0;
	}
	(void)snprintf(text, sizeof(text), "%lld", (long long)ind);
	if (sh_var_set(sh, "OPTIND", text) != 0)
		return 1;
	sh->getopts_at = at;
	return 0;
}

const struct sh_cmd sh_cmd_getopts = { "getopts", NULL, SHCMD_BUILTIN, 2, run_getopts };

/* --- umask --- */

/* Symbolic form u=rwx,g=rx,o=rx (allowed bits). false: malformed. */
static bool symbolic(const char *s, mode_t *mask)
{
	mode_t allowed = ~*mask & 0777;

	while (*s != '\0') {
		mode_t who = 0, perm = 0, sel;
		char op;

		for (; strchr("ugoa", *s) != NULL && *s != '\0'; s++)
			who |= *s == 'u' ? 0700u : *s == 'g' ? 0070u : *s == 'o' ? 0007u : 0777u;
		if (who == 0)
			who = 0777;
		if (*s != '+' && *s != '-' && *s != '=')
			return false;
		while (*s == '+' || *s == '-' || *s == '=') {
			op = *s++;
			perm = 0;
			for (; *s != '\0' && strchr("rwxXstugo", *s) != NULL; s++) {
				perm |= *s == 'r'   ? 0444u
				        : *s == 'w' ? 0222u
				        : *s == 'x' ? 0111u
				                    : 0u;
				if (*s == 'u')
					perm |= (allowed >> 6 & 7) * 0111u;
				if (*s == 'g')
					perm |= (allowed >> 3 & 7) * 0111u;
				if (*s == 'o')
					perm |= (allowed & 7) * 0111u;
			}
			sel = perm & who;
			if (op == '+')
				allowed |= sel;
			else if (op == '-')
				allowed &= ~sel;
			else
				allowed = (allowed & ~who) | sel;
		}
		if (*s == ',')
			s++;
		else if (*s != '\0')
			return false;
	}
	*mask = ~allowed & 0777;
	return true;
}

static void put_symbolic(struct sh_io *io, mode_t mask)
{
	static const char who[] = "ugo";

	for (int i = 0; i < 3; i++) {
		mode_t p = ~mask >> (6 - 3 * i) & 7;

		shcmd_printf(io, "%s%c=%s%s%s", i != 0 ? "," : "", who[i], (p & 4) != 0 ? "r" : "",
		    (p & 2) != 0 ? "w" : "", (p & 1) != 0 ? "x" : "");
	}
	shcmd_putc(io, '\n');
}

static int run_umask(struct sh_io *io, int argc, char **argv)
{
	bool S = false, p = false;
	uint64_t v;
	mode_t m;
	int i = 1;

	for (; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (strcmp(argv[i], "-S") == 0) {
			S = true;
		} else if (strcmp(argv[i], "-p") == 0) {
			p = true;
		} else {
			(void)shcmd_err(io, "%s: invalid option", argv[i]);
			return 2;
		}
	}
	if (i == argc) {
		if (p)
			shcmd_puts(io, S ? "umask -S " : "umask ");
		if (S)
			put_symbolic(io, io->sh->umask);
		else
			shcmd_printf(io, "%04o\n", io->sh->umask);
		return 0;
	}
	if (argv[i][0] >= '0' && argv[i][0] <= '9') {
		if (!sv_to_u64(sv_c(argv[i]), 8, 07777, &v))
			return shcmd_err(io, "%s: octal number out of range", argv[i]);
		m = (mode_t)v & 0777;
	} else {
		m = io->sh->umask;
		if (!symbolic(argv[i], &m))
			return shcmd_err(io, "`%s': invalid symbolic mode", argv[i]);
		if (S)
			put_symbolic(io, m);
	}
	io->sh->umask = m;
	return 0;
}

const struct sh_cmd sh_cmd_umask = { "umask", NULL, SHCMD_BUILTIN, 2, run_umask };
