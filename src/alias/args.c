/* The command line of an alias. See args.h; POSIX sh "OPTIONS", and bash's long options that
 * harnesses pass. */
#include "alias/args.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "alias/proto.h"
#include "base/ban.h"

const char alias_usage[] =
    "usage: sh [-elux] [-o OPTION] -c COMMAND [NAME [ARG...]]\n"
    "       sh [-elux] [-o OPTION] SCRIPT [ARG...]\n"
    "       sh [-elux] [-o OPTION] [-s [ARG...]]      (commands from standard input)\n";

/* Long options that change nothing here: there are no start-up files and no line editor. */
static const char *const ignored_long[] = { "--norc", "--noprofile", "--posix", "--noediting",
	NULL };

static const struct {
	const char *name;
	uint32_t flag;
} set_names[] = {
	{ "errexit", ALIAS_F_ERREXIT },
	{ "nounset", ALIAS_F_NOUNSET },
	{ "xtrace", ALIAS_F_XTRACE },
	{ "pipefail", ALIAS_F_PIPEFAIL },
};

static int set_named(const char *name, bool on, uint32_t *flags, struct box_err *err)
{
	for (size_t i = 0; i < sizeof(set_names) / sizeof(set_names[0]); i++) {
		if (strcmp(name, set_names[i].name) != 0)
			continue;
		*flags = on ? *flags | set_names[i].flag : *flags & ~set_names[i].flag;
		return 0;
	}
	return box_fail(err, BOX_EPARSE, 0,
	    "-o %s: unknown option; this shell has errexit, nounset, xtrace, pipefail", name);
}

static bool is_ignored_long(const char *s)
{
	for (size_t i = 0; ignored_long[i] != NULL; i++)
		if (strcmp(s, ignored_long[i]) == 0)
			return true;
	return false;
}

/* One cluster of letters, "-euxc". *next is the index of the argument behind it, moved on by -o. */
static int parse_cluster(int argc, char *const *argv, int *next, const char *s, bool on,
    bool *has_c, struct alias_args *a, struct box_err *err)
{
	for (; *s != '\0'; s++) {
		uint32_t flag = 0;

		switch (*s) {
		case 'c':
			*has_c = true;
			continue;
		case 's':
			a->flags |= ALIAS_F_STDIN;
			continue;
		case 'l':
			flag = ALIAS_F_LOGIN;
			break;
		case 'e':
			flag = ALIAS_F_ERREXIT;
			break;
		case 'u':
			flag = ALIAS_F_NOUNSET;
			break;
		case 'x':
			flag = ALIAS_F_XTRACE;
			break;
		case 'i': /* no prompt, no job control: the same as without */
		case 'h':
		case 'B':
		case 'm':
			continue;
		case 'o':
			if (*next >= argc)
				return box_fail(err, BOX_EPARSE, 0, "-o needs an option name");
			if (set_named(argv[(*next)++], on, &a->flags, err) != 0)
				return -1;
			continue;
		default:
			return box_fail(err, BOX_EPARSE, 0, "-%c: unknown option", *s);
		}
		a->flags = on ? a->flags | flag : a->flags & ~flag;
	}
	return 0;
}

int alias_parse(int argc, char *const *argv, struct alias_args *a, struct box_err *err)
{
	bool has_c = false;
	int i = 1;

	*a =
	    (struct alias_args){ .text = "", .zero = argc > 0 && argv[0] != NULL ? argv[0] : "sh" };
	while (i < argc) {
		const char *s = argv[i];

		if ((s[0] != '-' && s[0] != '+') || s[1] == '\0')
			break;
		i++;
		if (strcmp(s, "--") == 0)
			break;
		if (strcmp(s, "--login") == 0) {
			a->flags |= ALIAS_F_LOGIN;
			continue;
		}
		if (is_ignored_long(s))
			continue;
		if (s[0] == '-' && s[1] == '-')
			return box_fail(err, BOX_EPARSE, 0, "%s: unknown option", s);
		if (parse_cluster(argc, argv, &i, s + 1, s[0] == '-', &has_c, a, err) != 0)
			return -1;
	}
	if (i < argc && strcmp(argv[i], "-") == 0) /* POSIX: a lone "-" ends the options */
		i++;
	if (has_c) {
		if (i >= argc)
			return box_fail(err, BOX_EPARSE, 0, "-c needs a command");
		a->text = argv[i++];
		a->flags &= ~ALIAS_F_STDIN;
		if (i < argc)
			a->zero = argv[i++];
	} else if ((a->flags & ALIAS_F_STDIN) == 0 && i < argc) {
		a->script = argv[i];
		a->zero = argv[i++];
	} else {
		a->flags |= ALIAS_F_STDIN;
	}
	a->params = argv + (i < argc ? i : argc);
	return 0;
}
