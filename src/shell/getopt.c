/* Options of in-process commands: GNU's rules without its global variables. See command.h. */
#include <stdio.h>
#include <string.h>

#include "shell/shell.h"
#include "base/ban.h"

static const struct sh_opt *short_opt(const struct sh_opt *t, char c)
{
	for (; t->val != 0; t++) {
		if (t->val == (unsigned char)c)
			return t;
	}
	return NULL;
}

/* An exact name, or the only one that begins so. */
static const struct sh_opt *long_opt(const struct sh_opt *t, const char *name, size_t n)
{
	const struct sh_opt *found = NULL;
	bool several = false;

	for (; t->val != 0; t++) {
		if (t->name == NULL || strncmp(t->name, name, n) != 0)
			continue;
		if (t->name[n] == '\0')
			return t;
		several = several || (found != NULL && found->val != t->val);
		found = t;
	}
	return several ? NULL : found;
}

/* Move the argument at i in front of the operands seen so far; they start at g->first_operand. */
static void keep_order(struct sh_getopt *g, int i)
{
	char *s = g->argv[i];

	memmove(&g->argv[g->first_operand + 1], &g->argv[g->first_operand],
	    (size_t)(i - g->first_operand) * sizeof(char *));
	g->argv[g->first_operand++] = s;
}

static int fail(struct sh_getopt *g, const char *text, char letter, bool missing)
{
	g->bad = text;
	g->bad_letter = letter;
	g->missing = missing;
	return SH_OPT_ERROR;
}

/* The argument that follows an option: the next word. */
static bool next_word(struct sh_getopt *g)
{
	if (g->i >= g->argc)
		return false;
	g->arg = g->argv[g->i];
	keep_order(g, g->i);
	g->i++;
	return true;
}

static int in_cluster(struct sh_getopt *g)
{
	const struct sh_opt *o = short_opt(g->opts, *g->cluster);
	char c = *g->cluster++;

	if (o == NULL)
		return fail(g, NULL, c, false);
	if (o->arg == SH_OPT_NONE) {
		if (*g->cluster == '\0')
			g->cluster = NULL;
		return o->val;
	}
	if (*g->cluster != '\0')
		g->arg = g->cluster;
	g->cluster = NULL;
	if (g->arg == NULL && o->arg == SH_OPT_REQUIRED && !next_word(g))
		return fail(g, NULL, c, true);
	return o->val;
}

static int long_option(struct sh_io *io, struct sh_getopt *g, char *s)
{
	char *eq = strchr(s, '=');
	size_t n = eq != NULL ? (size_t)(eq - s) : strlen(s);
	const struct sh_opt *o = long_opt(g->opts, s, n);

	if (o == NULL) {
		if (strcmp(s, "help") == 0 && io->cmd->usage != NULL) {
			shcmd_printf(io, "Usage: %s", io->cmd->usage);
			return SH_OPT_HELP;
		}
		return fail(g, s, 0, false);
	}
	if (eq != NULL) {
		if (o->arg == SH_OPT_NONE)
			return fail(g, s, 0, false);
		g->arg = eq + 1;
	} else if (o->arg == SH_OPT_REQUIRED && !next_word(g)) {
		return fail(g, s, 0, true);
	}
	return o->val;
}

int shcmd_getopt(struct sh_io *io, struct sh_getopt *g)
{
	g->arg = NULL;
	if (g->i == 0)
		g->i = g->first_operand = 1;
	if (g->cluster != NULL)
		return in_cluster(g);
	for (; g->i < g->argc; g->i++) {
		char *s = g->argv[g->i];

		if (s[0] != '-' || s[1] == '\0') {
			if (g->posix)
				break;
			continue;
		}
		keep_order(g, g->i);
		g->i++;
		if (strcmp(s, "--") == 0) {
			g->i = g->first_operand;
			g->posix = true;
			return SH_OPT_END;
		}
		if (s[1] == '-')
			return long_option(io, g, s + 2);
		g->cluster = s + 1;
		return in_cluster(g);
	}
	g->i = g->first_operand;
	return SH_OPT_END;
}

static int usage_status(const struct sh_io *io)
{
	return io->cmd->usage_status != 0 ? io->cmd->usage_status : 1;
}

int shcmd_bad_option(struct sh_io *io, const struct sh_getopt *g)
{
	if (g->bad_letter != 0)
		(void)shcmd_err(io,
		    g->missing ? "option requires an argument -- '%c'" : "invalid option -- '%c'",
		    g->bad_letter);
	else
		(void)shcmd_err(io,
		    g->missing ? "option '--%s' requires an argument"
		               : "unrecognized option '--%s'",
		    g->bad != NULL ? g->bad : "");
	if (io->cmd->usage != NULL)
		(void)shcmd_err(io, "try '%s --help'", io->name);
	return usage_status(io);
}

int shcmd_usage_err(struct sh_io *io, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	(void)shcmd_err(io, "%s", text);
	if (io->cmd->usage != NULL)
		(void)shcmd_err(io, "try '%s --help'", io->name);
	return usage_status(io);
}
