/* monitor: one run of one box, from the configuration file to the exit status. The entry for
 * src/cmd. */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct monitor_options {
	const char *config;      /* as typed */
	char *const *args;       /* appended to [agent] command; NULL-terminated, or NULL */
	const char *program_dir; /* where box and its helpers are: an absolute path */
	bool explain;            /* print every sandbox's plan, start nothing */
};

/* Run it. Returns the exit status (box-config-and-policy 4.2) and prints everything there is to say
 * on stderr. */
int monitor_run(const struct monitor_options *o);

/* Everything `run` checks before it creates anything: configuration, policy, file-system entries.
 * Prints findings; 0 or 1. */
int monitor_check(const struct monitor_options *o);

/* Where the box of this configuration keeps its records: a malloc'ed path in *out. */
int monitor_records_path(const char *config, char **out, struct box_err *err);
