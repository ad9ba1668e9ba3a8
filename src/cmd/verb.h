/* verb: one row for each verb of `box`. Adding a verb is adding a file and a row in main.c. */
#pragma once

struct verb {
	const char *name;
	const char *summary; /* one line for `box --help` */
	const char *help;    /* the whole text of `box NAME --help` */
	/* argv[0] is the verb's name. Returns the exit status; 2 after a usage error it has
	 * reported. */
	int (*run)(int argc, char **argv);
};

extern const struct verb verb_run, verb_check, verb_log;

/* "box: <text>" and where help is; returns 2. */
int verb_usage(const struct verb *v, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for an argument that has no place: an option nobody knows, or a stray word (then hint
 * follows). */
int verb_stray(const struct verb *v, const char *arg, const char *hint);
/* Where the helpers are: next to the running executable, or in ../libexec/boxwood when installed;
 * "" without /proc. Static storage. */
const char *verb_program_dir(void);

/* The value of an option "--name VALUE" or "--name=VALUE" at argv[*i]; *i moves on. NULL: argv[*i]
 * is another argument, or the value is missing (*missing is then 1). */
const char *verb_option(int argc, char **argv, int *i, const char *name, int *missing);
