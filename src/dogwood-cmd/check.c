/* dogwood check: does this policy set load? dogwood explain, expand: what it became. */
#include <stdio.h>
#include <string.h>

#include "dogwood-cmd/cmd.h"

#include "base/ban.h"

static const char help_check[] =
    "Usage: dogwood check [OPTIONS] POLICY...\n\n"
    "Parse, expand and check policies, as installing them would. Several files form one set;\n"
    "`-` is standard input. All errors are shown in one run, in the order of the text, each with\n"
    "what to do about it; warnings too, such as characters that look like "
    "others.\n\n" CMD_POLICY_HELP
    "  -j, --json          findings as a JSON object on standard output: {\"ok\": BOOL,\n"
    "                      \"diagnostics\": [{severity, file, line, column, start, len, message,\n"
    "                      help}]}; start and len are bytes, column counts characters\n\n"
    "Without a schema nothing is known of actions and their fields, and only the language is\n"
    "checked. Findings are in colour on a terminal, unless NO_COLOR is set.\n\n"
    "Examples:\n"
    "  dogwood check -s actions.cedarschema policy.dw\n"
    "  dogwood check --json -s actions.cedarschema - < policy.dw    as an editor calls it\n\n"
    "What it shows:\n"
    "  policy.dw:7:8: error: for policy `policy_1`, attribute `input.paht` in context for ...\n"
    "      7 | when { context.input.paht like \"*.env\" };\n"
    "        |        ^~~~~~~~~~~~~~~~~~\n"
    "        = help: did you mean `path`?\n\n"
    "Exit status: 0 the set loads (there may be warnings), 2 it is refused, 1 cannot be read.\n";

static const char help_explain[] =
    "Usage: dogwood explain [OPTIONS] POLICY...\n\n"
    "One paragraph for each temporal clause: how it is evaluated (its class), what it keeps in\n"
    "memory, what an event and a decision cost. A clause of class `general` costs the more the\n"
    "more events its window holds; the others do not.\n\n" CMD_POLICY_HELP "\nExample:\n"
    "  dogwood explain -s actions.cedarschema policy.dw\n\n"
    "Exit status: 0 explained, 2 the set is refused, 1 cannot be read.\n";

static const char help_expand[] =
    "Usage: dogwood expand [OPTIONS] POLICY...\n\n"
    "The plain Cedar policies that the set becomes: macros expanded, `unless` turned round, and\n"
    "each temporal block and provider call replaced by an attribute of the context, which a\n"
    "comment above the policy explains. A set without these can be given to any Cedar "
    "engine.\n\n" CMD_POLICY_HELP "\nExample:\n"
    "  $ dogwood expand limit.dw\n"
    "  // policy_0__temporal_0 = formerly within 1h App::Action::\"login\"::response{}\n"
    "  permit (principal, action, resource) when { context.policy_0__temporal_0 };\n\n"
    "Exit status: 0 expanded, 2 the set is refused, 1 cannot be read.\n";

static const struct option options[] = { CMD_POLICY_LONG(0), { "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };

/* Options and files of all three. -1: go on; else an exit status. */
static int setup(const struct cmd *self, int argc, char **argv, const char *shorts,
    struct cmd_policy *p, bool *json)
{
	int opt;

	while ((opt = getopt_long(argc, argv, shorts, options, NULL)) != -1) {
		if (cmd_policy_option(p, opt, optarg))
			continue;
		if (opt != 'j' || json == NULL)
			return cmd_usage(self, opt);
		*json = true;
	}
	if (optind == argc)
		return cmd_error("no policy file is named; try `dogwood %s --help`", self->name);
	opt = cmd_policy_read(p, argv + optind, argc - optind);
	return opt == CMD_OK ? -1 : opt;
}

static int print_json(const dogwood_diags *d, bool ok, const struct dogwood_error *err)
{
	AUTO_BUF b = buf_with((size_t)32 << 20);
	char *list = dogwood_diags_json(d);

	buf_putf(&b, "{\"ok\":%s,\"diagnostics\":", ok ? "true" : "false");
	buf_put_c(&b, list != NULL ? list : "[]");
	if (!ok && dogwood_diags_errors(d) == 0) {
		buf_put_c(&b, ",\"error\":");
		buf_put_json(&b, sv_c(err->msg));
	}
	buf_put_c(&b, "}\n");
	dogwood_free(list);
	return cmd_print(&b);
}

static int run_check(const struct cmd *self, int argc, char **argv)
{
	AUTO_CMD_POLICY p = { 0 };
	bool json = false, ok;
	struct dogwood_error err = { 0 };
	dogwood_diags *d;
	int rc = setup(self, argc, argv, "hj" CMD_POLICY_SHORT, &p, &json);

	if (rc >= 0)
		return rc;
	d = dogwood_diags_new();
	if (d == NULL)
		return cmd_error("no memory");
	ok = dogwood_policy_check(&p.set, d, &err) == 0;
	rc = ok ? CMD_OK : CMD_REFUSED;
	if (json) {
		if (print_json(d, ok, &err) != CMD_OK)
			rc = CMD_USAGE;
	} else {
		cmd_put_diags(d);
		if (!ok && dogwood_diags_errors(d) == 0)
			(void)cmd_error("%s", err.msg);
		if (ok)
			(void)printf("OK: %zu finding%s\n", dogwood_diags_count(d),
			    dogwood_diags_count(d) == 1 ? "" : "s");
	}
	dogwood_diags_free(d);
	return rc;
}

static int run_view(const struct cmd *self, int argc, char **argv)
{
	AUTO_CMD_POLICY p = { 0 };
	AUTO_BUF b = buf_with((size_t)64 << 20);
	struct eng_set *set;
	int rc = setup(self, argc, argv, "h" CMD_POLICY_SHORT, &p, NULL);

	if (rc >= 0)
		return rc;
	set = cmd_policy_load(&p, DW_TICK_NANO, false, &rc);
	if (set == NULL)
		return rc;
	if (self == &cmd_explain)
		dw_set_explain(set->set, &b);
	else
		dw_set_expand(set->set, &b);
	rc = cmd_print(&b);
	eng_set_unref(set);
	return rc;
}

const struct cmd cmd_check = { "check", "check policies against their schemas", help_check,
	run_check };
const struct cmd cmd_explain = { "explain", "how each temporal clause is evaluated, and its cost",
	help_explain, run_view };
const struct cmd cmd_expand = { "expand", "the Cedar policies a set becomes", help_expand,
	run_view };
