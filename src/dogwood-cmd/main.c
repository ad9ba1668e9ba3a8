/* dogwood: the policy language on its own. One file a verb; this one holds the table. */
#include <stdio.h>
#include <string.h>

#include "cedar/diag.h"
#include "dogwood-cmd/cmd.h"

#include "base/ban.h"

static const struct group {
	const char *title;
	const struct cmd *verb[6]; /* NULL behind the last */
} groups[] = {
	{ "Write policies:", { &cmd_check, &cmd_format, &cmd_expand, &cmd_explain } },
	{ "Try them:", { &cmd_authorize, &cmd_replay } },
	{ "Other forms:", { &cmd_schema, &cmd_translate } },
	{ "Look into a store:", { &cmd_log, &cmd_fsck } },
	{ "Serve one store to other programs:", { &cmd_serve, &cmd_submit, &cmd_policy_verb,
	                                            &cmd_status, &cmd_checkpoint, &cmd_ping } },
};
#define N_GROUPS (sizeof(groups) / sizeof(groups[0]))
#define N_VERBS  (sizeof(groups[0].verb) / sizeof(groups[0].verb[0]))

static const char first_steps[] =
    "\nFirst steps: a policy that remembers, and what it says of one request:\n"
    "  $ cat limit.dw\n"
    "  permit (principal, action, resource);\n"
    "  @id(\"limit\") @description(\"three posts in ten minutes\")\n"
    "  forbid (principal, action == App::Action::\"post\", resource)\n"
    "  when temporal { count_within(10m, App::Action::\"post\"::request{}) > 3 };\n"
    "  $ dogwood check limit.dw\n"
    "  $ dogwood authorize -a 'App::Action::\"post\"' limit.dw\n";

static int help(FILE *to)
{
	(void)fputs("Usage: dogwood VERB [OPTIONS] ...\n\n"
	            "Policies that remember: check them, try them, look at what they decided.\n",
	    to);
	for (size_t i = 0; i < N_GROUPS; i++) {
		(void)fprintf(to, "\n%s\n", groups[i].title);
		for (size_t k = 0; k < N_VERBS && groups[i].verb[k] != NULL; k++)
			(void)fprintf(to, "  %-10s  %s\n", groups[i].verb[k]->name,
			    groups[i].verb[k]->summary);
	}
	(void)fputs(first_steps, to);
	(void)fputs(
	    "\n`dogwood VERB --help` explains a verb and shows examples; so does `man dogwood`.\n\n"
	    "Exit status: 0 done (authorize, submit: permitted); 1 wrong command line or "
	    "unreadable\n"
	    "file (format --check: a file differs); 2 the input was refused; 3 denied.\n",
	    to);
	return fflush(to) == 0 ? CMD_OK : CMD_USAGE;
}

static const struct cmd *find(const char *name)
{
	for (size_t i = 0; i < N_GROUPS; i++)
		for (size_t k = 0; k < N_VERBS && groups[i].verb[k] != NULL; k++)
			if (strcmp(name, groups[i].verb[k]->name) == 0)
				return groups[i].verb[k];
	return NULL;
}

static int unknown(const char *name)
{
	sv names[N_GROUPS * N_VERBS], near;
	size_t n = 0;

	for (size_t i = 0; i < N_GROUPS; i++)
		for (size_t k = 0; k < N_VERBS && groups[i].verb[k] != NULL; k++)
			names[n++] = sv_c(groups[i].verb[k]->name);
	near = cedar_nearest(sv_c(name), names, n);
	if (near.n != 0)
		return cmd_error("no verb `%s`; did you mean `" SV_FMT "`?", name, SV_ARG(near));
	return cmd_error("no verb `%s`; try `dogwood --help`", name);
}

int main(int argc, char **argv)
{
	const struct cmd *verb;

	if (argc < 2) {
		(void)help(stderr);
		return CMD_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0)
		return printf("dogwood %s\n", dogwood_version()) > 0 ? CMD_OK : CMD_USAGE;
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    (strcmp(argv[1], "help") == 0 && argc == 2))
		return help(stdout);
	if (strcmp(argv[1], "help") == 0) {
		verb = find(argv[2]);
		return verb != NULL ? cmd_usage(verb, 'h') : unknown(argv[2]);
	}
	verb = find(argv[1]);
	return verb != NULL ? verb->run(verb, argc - 1, argv + 1) : unknown(argv[1]);
}
