/* box check: everything `box run` would refuse, without running. */
#include <string.h>

#include "cmd/verb.h"
#include "monitor/monitor.h"
#include "base/ban.h"

static int run(int argc, char **argv)
{
	struct monitor_options o = { .program_dir = verb_program_dir() };
	int missing = 0;

	for (int i = 1; i < argc; i++) {
		const char *v = verb_option(argc, argv, &i, "--config", &missing);

		if (v == NULL)
			return missing ? verb_usage(&verb_check, "--config needs a file")
			               : verb_stray(&verb_check, argv[i],
			                     "; the configuration is named with --config");
		o.config = v;
	}
	if (o.config == NULL)
		return verb_usage(&verb_check, "--config FILE is required");
	return monitor_check(&o);
}

const struct verb verb_check = {
	.name = "check",
	.summary = "check a configuration and its policy, start nothing",
	.help =
	    "usage: box check --config FILE\n"
	    "\n"
	    "Reads the configuration and the policy and judges both as `box run` would: keys, "
	    "programs,\n"
	    "granted paths, rules, temporal clauses. Creates nothing and starts nothing.\n"
	    "\n"
	    "exit status: 0 nothing to object; 1 something is wrong; 2 for a wrong command line.\n"
	    "\n"
	    "example:\n"
	    "  box check --config box.toml\n",
	.run = run,
};
