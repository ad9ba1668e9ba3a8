/* dogwood schema: action schemas from one syntax to the other, and from lists of MCP tools. */
#include <stdio.h>
#include <string.h>

#include "cedar/schema.h"
#include "dogwood-cmd/cmd.h"
#include "dogwood/diags.h"
#include "dogwood/mcp_schema.h"

#include "base/ban.h"

#define ARENA_LIMIT ((size_t)1 << 30)
#define SYMS_LIMIT  ((size_t)256 << 20)
#define OUT_MAX     ((size_t)256 << 20)

static const char help_text[] =
    "Usage: dogwood schema [OPTIONS] FILE\n"
    "       dogwood schema --from-mcp [OPTIONS] FILE\n\n"
    "Check an action schema (Cedar schema) and write it in the other syntax: human to JSON, JSON\n"
    "to human. A file that begins with `{` is JSON; `-` is standard input. Comments have no place\n"
    "in JSON and are lost; everything else, annotations included, comes back the same.\n\n"
    "  -t, --to human|json   the syntax to write; default: the other one\n"
    "  -f, --fragment        the schema may name types that another file declares\n\n"
    "With --from-mcp FILE is what an MCP server answers to tools/list (the result, the whole\n"
    "reply, or the bare array), and the schema gets one action for each tool:\n\n"
    "  -M, --from-mcp        read a list of tools\n"
    "  -n, --name NAME       for the box: the server's name in box.toml, [mcp.NAME]; the schema "
    "is\n"
    "                        what the box adds for that server. With --template: the namespace\n"
    "  -T, --template FILE   by a template of your own, a schema in which @mcp_principal(\"…\"),\n"
    "                        @mcp_resource(\"…\"), @mcp_context(\"…\") and @mcp_action(\"…\") "
    "mark\n"
    "                        what a tool's action applies to, its further context, its parent;\n"
    "                        `-T default` is the built-in one\n"
    "  -o, --outputs         --template: output schemas become context.output\n"
    "  -d, --decimal         --template: JSON numbers are decimals; otherwise they are left out\n\n"
    "Examples:\n"
    "  dogwood schema actions.cedarschema > actions.json\n"
    "  dogwood schema --to human actions.json\n"
    "  dogwood schema --from-mcp --name search tools.json >> actions.cedarschema\n"
    "  dogwood schema -M -T default -o tools.json | dogwood schema -\n\n"
    "Exit status: 0 done; 2 the schema or list was refused; 1 wrong command line or unreadable "
    "file.\n";

static const struct option options[] = { { "to", required_argument, NULL, 't' },
	{ "fragment", no_argument, NULL, 'f' }, { "from-mcp", no_argument, NULL, 'M' },
	{ "name", required_argument, NULL, 'n' }, { "template", required_argument, NULL, 'T' },
	{ "outputs", no_argument, NULL, 'o' }, { "decimal", no_argument, NULL, 'd' },
	{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };

enum syntax { OTHER, HUMAN, JSON };

struct schema {
	enum syntax to;
	bool fragment, mcp;
	const char *name, *template;
	struct dw_mcp_opts opts;
};

static const char *shown(const char *path)
{
	return strcmp(path, "-") == 0 ? "<stdin>" : path;
}

/* Read `text` and write it to out. Findings go to stderr. */
static int convert(const struct schema *q, const char *path, sv text, struct buf *out)
{
	AUTO_ARENA a = { .limit = ARENA_LIMIT };
	struct cedar_diags ds = cedar_diags_in(&a);
	struct cedar_syms *t = cedar_syms_new(SYMS_LIMIT);
	struct dw_source from = { sv_c(shown(path)), text };
	AUTO_DW_DIAGS found = { 0 };
	bool json = sv_starts(sv_trim(text), SV("{"));
	enum syntax to = q->to != OTHER ? q->to : json ? HUMAN : JSON;
	struct cedar_schema_src src;
	int rc = -1;

	if (t == NULL)
		return cmd_error("no memory");
	rc = json ? cedar_schema_parse_json(t, &a, text, &src, &ds)
	          : cedar_schema_parse(t, &a, text, &src, &ds);
	if (rc == 0 && !q->fragment && cedar_schema_resolve(t, &a, &src, &ds) == NULL)
		rc = -1;
	if (rc == 0 && to == HUMAN)
		cedar_schema_put(out, &src);
	else if (rc == 0)
		cedar_schema_put_json(out, &src);
	dw_diags_take(&found, &ds, &from, NULL);
	if (found.n != 0)
		(void)cmd_findings(&found);
	cedar_syms_free(t);
	return rc == 0 ? CMD_OK : CMD_REFUSED;
}

static int from_mcp(struct schema *q, const char *path, sv text, struct buf *out)
{
	AUTO_ARENA a = { 0 };
	AUTO_BUF made = buf_with(OUT_MAX), ignored = buf_with(OUT_MAX);
	struct schema check = { .to = HUMAN };
	struct box_err err = { 0 };
	size_t left = 0;
	int rc = CMD_OK;

	q->opts.style = q->template != NULL ? DW_MCP_TEMPLATE : DW_MCP_BOX;
	q->opts.name = sv_c(q->name);
	if (q->template == NULL && (q->name == NULL || q->name[0] == '\0'))
		return cmd_error("--from-mcp wants --name SERVER (for the box) or --template FILE");
	if (q->template == NULL && (q->opts.outputs || q->opts.as_decimal))
		return cmd_error("--outputs and --decimal go with --template");
	if (q->template != NULL && strcmp(q->template, "default") != 0)
		rc = cmd_read(&a, q->template, CEDAR_SCHEMA_MAX, &q->opts.custom);
	if (rc != CMD_OK)
		return rc;
	if (dw_mcp_schema(text, &q->opts, &made, &left, &err) < 0) {
		(void)box_wrap(&err, "%s", shown(path));
		return cmd_failed(&err);
	}
	if (left != 0)
		(void)fprintf(stderr, "note: %zu field%s left out: there is no Cedar type for %s\n",
		    left, left == 1 ? " is" : "s are", left == 1 ? "it" : "them");
	/* What leaves here loads. */
	rc = convert(&check, "(schema of the tools)", buf_sv(&made), &ignored);
	if (rc != CMD_OK || q->to == JSON)
		return rc != CMD_OK ? rc : convert(q, "(schema of the tools)", buf_sv(&made), out);
	buf_put_sv(out, buf_sv(&made));
	return CMD_OK;
}

static int option(struct schema *q, int opt, const char *arg)
{
	switch (opt) {
	case 't':
		q->to = strcmp(arg, "human") == 0 ? HUMAN : strcmp(arg, "json") == 0 ? JSON : OTHER;
		return q->to != OTHER ? CMD_OK
		                      : cmd_error("--to wants `human` or `json`, not `%s`", arg);
	case 'f':
		q->fragment = true;
		break;
	case 'M':
		q->mcp = true;
		break;
	case 'n':
		q->name = arg;
		break;
	case 'T':
		q->template = arg;
		break;
	case 'o':
		q->opts.outputs = true;
		break;
	case 'd':
		q->opts.as_decimal = true;
		break;
	}
	return CMD_OK;
}

static int run(const struct cmd *self, int argc, char **argv)
{
	AUTO_ARENA a = { 0 };
	AUTO_BUF out = buf_with(OUT_MAX);
	struct schema q = { 0 };
	int opt, rc = CMD_OK;
	sv text;

	while ((opt = getopt_long(argc, argv, "ht:fMn:T:od", options, NULL)) != -1) {
		if (opt == 'h' || opt == '?')
			return cmd_usage(self, opt);
		rc = option(&q, opt, optarg);
		if (rc != CMD_OK)
			return rc;
	}
	if (optind + 1 != argc)
		return cmd_error("one schema file is needed; try `dogwood schema --help`");
	if (!q.mcp && (q.name != NULL || q.template != NULL || q.opts.outputs || q.opts.as_decimal))
		return cmd_error("--name, --template, --outputs and --decimal go with --from-mcp");
	rc = cmd_read(&a, argv[optind], CEDAR_SCHEMA_MAX, &text);
	if (rc == CMD_OK)
		rc = q.mcp ? from_mcp(&q, argv[optind], text, &out)
		           : convert(&q, argv[optind], text, &out);
	return rc == CMD_OK ? cmd_print(&out) : rc;
}

const struct cmd cmd_schema = { "schema", "action schemas: human to JSON and back, from MCP tools",
	help_text, run };
