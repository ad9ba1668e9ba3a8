/* dogwood: the policy language on its own. One file a verb; this one holds the table. */
#include <stdio.h>
#include <string.h>

#include "dogwood-cmd/cmd.h"

#include "base/ban.h"

static const struct cmd *const verbs[] = { &cmd_check, &cmd_format, &cmd_schema, &cmd_translate,
	&cmd_authorize, &cmd_replay, &cmd_explain, &cmd_expand, &cmd_log, &cmd_fsck, &cmd_serve,
	&cmd_submit, &cmd_policy_verb, &cmd_status, &cmd_checkpoint, &cmd_ping };

#define N_VERBS (sizeof(verbs) / sizeof(verbs[0]))

static int help(FILE *to)
{
	(void)fputs("Usage: dogwood VERB [OPTIONS] ...\n\n"
	            "Policies that remember: check them, try them, look at what they decided.\n\n",
	    to);
	for (size_t i = 0; i < N_VERBS; i++)
		(void)fprintf(to, "  %-10s  %s\n", verbs[i]->name, verbs[i]->summary);
	(void)fputs(
	    "\n`dogwood VERB --help` explains a verb and shows examples.\n\n"
	    "Exit status: 0 done (authorize: permitted); 1 wrong command line or unreadable file;\n"
	    "2 the input was refused; 3 authorize: denied.\n",
	    to);
	return fflush(to) == 0 ? CMD_OK : CMD_USAGE;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		(void)help(stderr);
		return CMD_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0)
		return help(stdout);
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0)
		return printf("dogwood %s\n", dogwood_version()) > 0 ? CMD_OK : CMD_USAGE;
	for (size_t i = 0; i < N_VERBS; i++)
		if (strcmp(argv[1], verbs[i]->name) == 0)
			return verbs[i]->run(verbs[i], argc - 1, argv + 1);
	(void)fprintf(stderr, "dogwood: no verb `%s`; try `dogwood --help`\n", argv[1]);
	return CMD_USAGE;
}
