/* box run: start the box of a configuration file and stay until its agent ends. */
#include <string.h>

#include "cmd/verb.h"
#include "monitor/monitor.h"
#include "base/ban.h"

static int run(int argc, char **argv)
{
	struct monitor_options o = { .program_dir = verb_program_dir() };
	int missing = 0;

	for (int i = 1; i < argc; i++) {
		const char *v;

		if (strcmp(argv[i], "--") == 0) {
			o.args = argv + i + 1;
			break;
		}
		if (strcmp(argv[i], "--explain") == 0) {
			o.explain = true;
		} else if ((v = verb_option(argc, argv, &i, "--config", &missing)) != NULL) {
			if (o.config != NULL)
				return verb_usage(&verb_run, "--config is given twice");
			o.config = v;
		} else if (missing) {
			return verb_usage(&verb_run, "--config needs a file");
		} else {
			return verb_stray(
			    &verb_run, argv[i], "; arguments of the agent stand behind --");
		}
	}
	if (o.config == NULL)
		return verb_usage(&verb_run, "--config FILE is required");
	return monitor_run(&o);
}

const struct verb verb_run = {
	.name = "run",
	.summary = "start a box and stay until its agent ends",
	.help =
	    "usage: box run --config FILE [--explain] [-- ARG...]\n"
	    "\n"
	    "Starts the program of [agent] in its sandbox and decides what it does by the policy.\n"
	    "ARGs are appended to the agent's command.\n"
	    "\n"
	    "  --config FILE   the box's configuration (box.toml)\n"
	    "  --explain       print what each sandbox would be made of, and start nothing\n"
	    "\n"
	    "exit status: the agent's; 128+n when signal n ended it; 1 when the box refused or "
	    "failed\n"
	    "(a line `box: error: ...` says why); 2 for a wrong command line.\n"
	    "\n"
	    "examples:\n"
	    "  box run --config box.toml\n"
	    "  box run --config ~/boxes/oncall/box.toml -- --incident 4711\n",
	.run = run,
};
