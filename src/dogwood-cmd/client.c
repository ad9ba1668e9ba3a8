/* Clients of `dogwood serve`: submit and ping on the data socket; policy, status and checkpoint
 * on the control socket. They print the answer as it came. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "dogwood-cmd/cmd.h"
#include "dogwood-cmd/wire.h"

#include "base/ban.h"

#define DIR_HELP "  -D, --dir DIR       the server's folder; default: $HOME/.dogwood\n"

static const char help_submit[] =
    "Usage: dogwood submit [OPTIONS] ACTION KIND\n\n"
    "Send one event to a server.\n\n" DIR_HELP "  -p, --principal UID\n  -r, --resource UID\n"
    "  -l, --logged JSON   what history remembers\n"
    "  -c, --context JSON  what `context` of this decision reads\n"
    "  -k, --token TEXT    idempotency token: a repeat gets the first answer\n\n"
    "Example:\n"
    "  dogwood submit -p 'App::User::\"ann\"' -r 'App::Service::\"chat\"' \\\n"
    "      -c '{\"input\":{\"text\":\"hi\"}}' -l '{\"input\":{\"text\":\"hi\"}}' \\\n"
    "      'App::Action::\"post\"' request\n\n"
    "Exit status: 0 permitted or recorded, 3 denied, 2 an error of the server.\n";
static const char help_policy[] =
    "Usage: dogwood policy [-D DIR] VERB ...\n\n"
    "  install -s SCHEMA [-e EVENTS] FILE    replace the whole set\n"
    "  add FILE                              one or more policies; prints their ids\n"
    "  update ID FILE | delete ID | reset ID\n"
    "  delete-all | reset-all\n"
    "  set-action-schema FILE | append-action-schema FILE\n"
    "  list | get ID | show | schema\n\n" DIR_HELP "\nExample:\n"
    "  dogwood policy add extra.dw\n";
static const char help_plain[] =
    "Usage: dogwood status|checkpoint|ping [-D DIR]\n\n"
    "Ask a server how it is (rules, records, the newest stamp), have it summarise its history in\n"
    "a snapshot now, or see whether it answers. The answer is a JSON object.\n\n" DIR_HELP
    "\nExamples:\n"
    "  dogwood status -D /var/lib/dogwood | jq .rules\n"
    "  dogwood checkpoint && systemctl restart dogwood\n"
    "  dogwood ping || echo 'nobody serves ~/.dogwood'\n\n"
    "Exit status: 0 answered, 2 an error of the server, 1 nobody answers.\n";

static const struct option options[] = { { "dir", required_argument, NULL, 'D' },
	{ "principal", required_argument, NULL, 'p' }, { "resource", required_argument, NULL, 'r' },
	{ "logged", required_argument, NULL, 'l' }, { "context", required_argument, NULL, 'c' },
	{ "token", required_argument, NULL, 'k' }, { "schema", required_argument, NULL, 's' },
	{ "events", required_argument, NULL, 'e' }, { "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 } };

static int dial(const char *dir, const char *name)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	AUTO_FD fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	AUTO_BUF home = buf_with(4096);
	int n;

	if (dir == NULL) {
		if (cmd_default_dir(&home) != CMD_OK)
			return -1;
		dir = buf_cstr(&home);
	}
	n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= sizeof(sa.sun_path)) {
		(void)cmd_error("the path %s/%s is too long for a socket", dir, name);
		return -1;
	}
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		(void)cmd_error("connect to %s: %s (is `dogwood serve` running?)", sa.sun_path,
		    box_strerror(errno));
		return -1;
	}
	return fd_take(&fd);
}

/* Send a request, print the answer, and turn it into an exit status. */
static int ask(const char *dir, bool control, const struct buf *request)
{
	AUTO_FD fd = dial(dir, control ? "control.sock" : "run/dogwood.sock");
	AUTO_BUF b = buf_with(WIRE_MAX + 1);
	AUTO_ARENA a = { .limit = 8 * WIRE_MAX };
	struct box_err err = { 0 };
	const struct dw_val *allowed;
	struct dw_val v;
	sv status;
	int rc;

	if (fd < 0)
		return CMD_USAGE;
	if (wire_write(fd, request) < 0)
		return cmd_error("the server hung up");
	if (wire_read(fd, &b, &err) != WIRE_FRAME)
		return cmd_error("no answer from the server");
	if (wire_parse(&a, buf_sv(&b), &v, &err) < 0)
		return cmd_failed(&err);
	buf_put_byte(&b, '\n');
	rc = cmd_print(&b);
	(void)wire_str(&v, "status", &status);
	allowed = dw_get(&v, SV("allowed"));
	if (rc != CMD_OK)
		return rc;
	if (sv_eq(status, SV("error")))
		return CMD_REFUSED;
	return allowed != NULL && allowed->tag == DW_BOOL && !allowed->u.b ? CMD_DENIED : CMD_OK;
}

static void put_field(struct buf *b, const char *name, const char *value, bool json)
{
	if (value == NULL)
		return;
	buf_putf(b, ",\"%s\":", name);
	if (json)
		buf_put_c(b, value);
	else
		buf_put_json(b, sv_c(value));
}

struct args {
	const char *dir, *principal, *resource, *logged, *context, *token, *schema, *events;
};

/* -1: go on. */
static int parse(const struct cmd *self, int argc, char **argv, struct args *a)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "hD:p:r:l:c:k:s:e:", options, NULL)) != -1) {
		const char **to = opt == 'D'   ? &a->dir
		                  : opt == 'p' ? &a->principal
		                  : opt == 'r' ? &a->resource
		                  : opt == 'l' ? &a->logged
		                  : opt == 'c' ? &a->context
		                  : opt == 'k' ? &a->token
		                  : opt == 's' ? &a->schema
		                  : opt == 'e' ? &a->events
		                               : NULL;

		if (to == NULL)
			return cmd_usage(self, opt);
		*to = optarg;
	}
	return -1;
}

static int run_submit(const struct cmd *self, int argc, char **argv)
{
	AUTO_BUF b = buf_with(WIRE_MAX);
	struct args a = { 0 };
	int rc = parse(self, argc, argv, &a);

	if (rc >= 0)
		return rc;
	if (optind + 2 != argc)
		return cmd_error("an action and a kind are needed; try `dogwood submit --help`");
	buf_put_c(&b, "{\"op\":\"submit\",\"event\":{\"action\":");
	buf_put_json(&b, sv_c(argv[optind]));
	put_field(&b, "kind", argv[optind + 1], false);
	put_field(&b, "principal", a.principal, false);
	put_field(&b, "resource", a.resource, false);
	put_field(&b, "logged", a.logged, true);
	put_field(&b, "context", a.context, true);
	buf_put_byte(&b, '}');
	put_field(&b, "token", a.token, false);
	buf_put_byte(&b, '}');
	return ask(a.dir, false, &b);
}

static int put_file(struct buf *b, struct arena *a, const char *name, const char *path)
{
	sv text;
	int rc;

	if (path == NULL)
		return CMD_OK;
	rc = cmd_read(a, path, DW_SOURCE_MAX, &text);
	buf_putf(b, ",\"%s\":", name);
	buf_put_json(b, text);
	return rc;
}

/* The verbs of `dogwood policy`: what they take, and what is asked. */
static const struct verb {
	const char *name, *op; /* op NULL: a verb of a batch */
	const char *wire, *file;
	bool id;
} verbs[] = {
	{ "install", "install", NULL, "policy", false },
	{ "add", NULL, "add", "policy", false },
	{ "update", NULL, "update", "policy", true },
	{ "delete", NULL, "delete", NULL, true },
	{ "reset", NULL, "reset", NULL, true },
	{ "delete-all", NULL, "delete_all", NULL, false },
	{ "reset-all", NULL, "reset_all", NULL, false },
	{ "set-action-schema", NULL, "set_action_schema", "action_schema", false },
	{ "append-action-schema", NULL, "append_action_schema", "fragment", false },
	{ "list", "list", NULL, NULL, false },
	{ "get", "get_policy_by_id", NULL, NULL, true },
	{ "show", "get_policy", NULL, NULL, false },
	{ "schema", "get_schema", NULL, NULL, false },
};

static int run_policy(const struct cmd *self, int argc, char **argv)
{
	AUTO_BUF b = buf_with(WIRE_MAX);
	AUTO_ARENA arena = { 0 };
	const struct verb *v = NULL;
	struct args a = { 0 };
	int rc = parse(self, argc, argv, &a), want;

	if (rc >= 0)
		return rc;
	for (size_t i = 0; optind < argc && i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strcmp(argv[optind], verbs[i].name) == 0)
			v = &verbs[i];
	if (v == NULL)
		return cmd_error("a verb is needed; try `dogwood policy --help`");
	want = 1 + v->id + (v->file != NULL);
	if (argc - optind != want)
		return cmd_error(
		    "`%s` takes %d arguments; try `dogwood policy --help`", v->name, want - 1);
	if (v->op != NULL)
		buf_putf(&b, "{\"op\":\"%s\"", v->op);
	else
		buf_putf(&b, "{\"op\":\"batch\",\"verbs\":[{\"verb\":\"%s\"", v->wire);
	if (v->id)
		put_field(&b, "id", argv[optind + 1], false);
	rc = put_file(&b, &arena, v->file, v->file != NULL ? argv[argc - 1] : NULL);
	if (rc == CMD_OK)
		rc = put_file(&b, &arena, "action_schema", a.schema);
	if (rc == CMD_OK)
		rc = put_file(&b, &arena, "event_schema", a.events);
	buf_put_c(&b, v->op != NULL ? "}" : "}]}");
	return rc != CMD_OK ? rc : ask(a.dir, true, &b);
}

static int run_plain(const struct cmd *self, int argc, char **argv)
{
	AUTO_BUF b = buf_with(4096);
	struct args a = { 0 };
	int rc = parse(self, argc, argv, &a);

	if (rc >= 0)
		return rc;
	if (optind != argc)
		return cmd_error("`%s` takes no arguments", self->name);
	buf_putf(&b, "{\"op\":\"%s\"}", self->name);
	return ask(a.dir, strcmp(self->name, "ping") != 0, &b);
}

const struct cmd cmd_submit = { "submit", "send one event to a server", help_submit, run_submit };
const struct cmd cmd_policy_verb = { "policy", "change the policies of a server", help_policy,
	run_policy };
const struct cmd cmd_status = { "status", "how a server is", help_plain, run_plain };
const struct cmd cmd_checkpoint = { "checkpoint", "have a server make a snapshot", help_plain,
	run_plain };
const struct cmd cmd_ping = { "ping", "does a server answer?", help_plain, run_plain };
