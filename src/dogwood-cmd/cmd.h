/* cmd: what the verbs of `dogwood` share: the table, options, reading files, and loading a
 * policy set from them.
 *
 * Exit statuses, the same for every verb: see enum cmd_status. */
#pragma once

#include <dogwood/dogwood.h>
#include <getopt.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "dogwood/decide.h"
#include "engine/set.h"

enum cmd_status {
	CMD_OK = 0, /* done; for `authorize`: permitted */
	/* the command line is wrong, or a file cannot be read; `format --check`: a file differs */
	CMD_USAGE = 1,
	CMD_REFUSED = 2, /* the input was refused: policies, schemas, trace, store */
	CMD_DENIED = 3   /* `authorize`: denied */
};

struct cmd {
	const char *name;
	const char *summary; /* one line for `dogwood --help` */
	const char *help;    /* text of `dogwood NAME --help` */
	int (*run)(const struct cmd *self, int argc, char **argv);
};

extern const struct cmd cmd_check, cmd_format, cmd_schema, cmd_translate, cmd_explain, cmd_expand,
    cmd_authorize, cmd_replay, cmd_log, cmd_fsck;

extern const struct cmd cmd_serve, cmd_submit, cmd_policy_verb, cmd_status, cmd_checkpoint,
    cmd_ping;

/* "error: <text>" on stderr. Returns CMD_USAGE, so that a failure is one statement. */
int cmd_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The same for an error value; the status is CMD_USAGE for what the system refused, CMD_REFUSED
 * otherwise. */
int cmd_failed(const struct box_err *err);
/* What to do about an option that getopt does not know, or about --help ('h'). */
int cmd_usage(const struct cmd *self, int opt);
/* Findings to stderr, in colour only on a terminal that takes it (NO_COLOR and TERM=dumb are
 * respected). */
void cmd_put_diags(const dogwood_diags *d);
/* The same for findings of the language. Returns CMD_REFUSED. */
int cmd_findings(const struct dw_diags *found);
/* Write b to stdout. CMD_OK, or CMD_USAGE when stdout failed. */
int cmd_print(const struct buf *b);
/* Append the folder of a server when none is named. CMD_OK, or an exit status with the message
 * printed. */
int cmd_default_dir(struct buf *b);
/* A whole file, or stdin for "-", into the arena. CMD_OK, or CMD_USAGE with the message printed. */
int cmd_read(struct arena *a, const char *path, size_t max, sv *out);

/* The policies of a command line and what they are checked against. Zero-initialise. */
struct cmd_policy {
	const char *schema, *events, *macros, *providers; /* NULL: not given */
	struct arena a;
	struct dogwood_policy_set set; /* filled by cmd_policy_read */
};
#define CMD_POLICY_SHORT "s:e:m:P:"
#define CMD_POLICY_LONG(n)                                                                         \
	[n] = { "schema", required_argument, NULL, 's' },                                          \
	[n + 1] = { "events", required_argument, NULL, 'e' },                                      \
	[n + 2] = { "macros", required_argument, NULL, 'm' },                                      \
	[n + 3] = { "providers", required_argument, NULL, 'P' }
#define CMD_POLICY_HELP                                                                            \
	"  -s, --schema FILE   action schema (Cedar schema, human syntax)\n"                       \
	"  -e, --events FILE   event schema (.dwschema); default: the built-in one\n"              \
	"  -m, --macros FILE   macro library; default: the built-in one\n"                         \
	"  -P, --providers FILE  declarations of information providers (JSON); default: none,\n"   \
	"                      and rules that ask one are refused\n"
/* Handle one option. false: not one of these. */
bool cmd_policy_option(struct cmd_policy *p, int opt, const char *arg);
/* Read all files ("-" is stdin). CMD_OK, or an exit status with the message printed. */
int cmd_policy_read(struct cmd_policy *p, char **files, int n);
/* Compile for stamps in `tick`s a second; findings go to stderr. NULL: *status says how to exit. */
struct eng_set *cmd_policy_load(const struct cmd_policy *p, int64_t tick, bool loose, int *status);
void cmd_policy_fini(struct cmd_policy *p);

/* Answers of information providers, from a file: {"Ns::Fn(\"a\", 1)": VALUE, "Ns::Fn": VALUE for
 * all other arguments}; {"__error": TEXT} as a value: the provider fails. Zero-initialise. */
struct cmd_answers {
	struct arena a;
	struct dw_val all;
	const char *path;
};
/* CMD_OK, or an exit status with the message printed. */
int cmd_answers_read(struct cmd_answers *w, const char *path);
/* A dw_provider_fn; arg is a struct cmd_answers. */
int cmd_answer(void *arg, const struct dw_provider_part *part, size_t n, struct arena *a,
    struct dw_val *out, struct box_err *err);
void cmd_answers_fini(struct cmd_answers *w);
#define AUTO_CMD_ANSWERS __attribute__((cleanup(cmd_answers_fini))) struct cmd_answers
#define CMD_ANSWERS_HELP                                                                           \
	"  -A, --provider-data FILE  what providers answer, JSON: {\"Ns::Fn(\\\"a\\\", 1)\": "     \
	"VALUE,\n"                                                                                 \
	"                      \"Ns::Fn\": VALUE for other arguments}; {\"__error\": TEXT} "       \
	"fails\n"
#define AUTO_CMD_POLICY __attribute__((cleanup(cmd_policy_fini))) struct cmd_policy
