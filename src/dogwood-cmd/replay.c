/* dogwood replay: a trace, decided line by line. */
#include <stdio.h>
#include <string.h>

#include "dogwood-cmd/cmd.h"
#include "dogwood/decide.h"
#include "dogwood/trace.h"

#include "base/ban.h"

static const char help_text[] =
    "Usage: dogwood replay [OPTIONS] --trace FILE POLICY...\n\n"
    "Decide every request of a trace, in order, with the history before it. One line a decision:\n"
    "  @<stamp> (time point <k>): ALLOW  [rules: i, j]\n"
    "k counts decisions, rules are numbered from 0 through all policy files. Stamps are "
    "seconds.\n\n"
    "  -t, --trace FILE    the trace, one event a line (`-`: standard input)\n" CMD_POLICY_HELP
    "  -l, --loose         do not check policies and events against the schemas\n"
    "  -n, --names         name rules by @id where they have one\n" CMD_ANSWERS_HELP
    "  -j, --json          one JSON object\n\n"
    "Examples:\n"
    "  dogwood replay -s actions.cedarschema --trace monday.log policy.dw\n"
    "  dogwood log --trace STORE | dogwood replay -s actions.cedarschema -t - stricter.dw\n\n"
    "A line of a trace (one line):\n"
    "  @1700000000 scope(principal: App::User::\"ann\", resource: App::Chan::\"ops\")\n"
    "      request_context(input: {text: \"hi\"})\n"
    "      App::Action::\"post\"::request(input: {text: \"hi\"}, callerPrincipal: "
    "App::User::\"ann\")\n\n"
    "Exit status: 0 all lines were decided, 2 the policies or a line were refused.\n";

static const struct option options[] = { CMD_POLICY_LONG(0),
	{ "trace", required_argument, NULL, 't' }, { "loose", no_argument, NULL, 'l' },
	{ "names", no_argument, NULL, 'n' }, { "provider-data", required_argument, NULL, 'A' },
	{ "json", no_argument, NULL, 'j' }, { "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 } };

struct replay {
	struct eng_set *set;
	struct dwm *mon;
	struct dw_scratch *scratch;
	bool json, names;
	unsigned decided;
	struct cmd_answers *answers; /* NULL: none */
	struct buf out;
};

static void put_rules(struct replay *r, const struct dw_decision *d)
{
	for (size_t i = 0; i < d->nrules; i++) {
		const struct dogwood_rule *rule = &r->set->rules[d->rules[i]];

		if (i != 0)
			buf_put_c(&r->out, ", ");
		if (r->names && rule->id.n != 0)
			buf_put_escaped(&r->out, (sv){ rule->id.p, rule->id.n });
		else
			buf_putf(&r->out, "%u", d->rules[i]);
	}
}

static void put_human(struct replay *r, const struct dw_event *e, const struct dw_decision *d)
{
	buf_putf(&r->out, "@%lld (time point %u): %s", (long long)e->ts, r->decided,
	    d->allow ? "ALLOW" : "DENY");
	if (d->nrules != 0) {
		buf_put_c(&r->out, "  [rules: ");
		put_rules(r, d);
		buf_put_c(&r->out, "]");
	}
	buf_put_byte(&r->out, '\n');
	if (d->fault != NULL) {
		buf_put_c(&r->out, "    error: ");
		buf_put_escaped(&r->out, sv_c(d->fault));
		buf_put_byte(&r->out, '\n');
	}
	for (size_t i = 0; i < d->nerrors; i++) {
		buf_put_c(&r->out, "    error: ");
		buf_put_escaped(&r->out, sv_c(d->errors[i].text));
		buf_put_byte(&r->out, '\n');
	}
}

static void put_json(struct replay *r, const struct dw_event *e, const struct dw_decision *d)
{
	buf_putf(&r->out,
	    "%s{\"index\":%u,\"timestamp\":%lld,\"verdict\":\"%s\",\"determining_rules\":[",
	    r->decided != 0 ? "," : "", r->decided, (long long)e->ts, d->allow ? "allow" : "deny");
	for (size_t i = 0; i < d->nrules; i++)
		buf_putf(&r->out, "%s%u", i != 0 ? "," : "", d->rules[i]);
	buf_put_c(&r->out, "],\"errors\":[");
	if (d->fault != NULL)
		buf_put_json(&r->out, sv_c(d->fault));
	for (size_t i = 0; i < d->nerrors; i++) {
		if (i != 0 || d->fault != NULL)
			buf_put_byte(&r->out, ',');
		buf_put_json(&r->out, sv_c(d->errors[i].text));
	}
	buf_put_c(&r->out, "]}");
}

static int one(struct replay *r, const struct dw_event *e, struct box_err *err)
{
	struct dw_decision d = { 0 };

	if (dwm_step(r->mon, e, err) < 0)
		return -1;
	if (!dw_set_is_decision(r->set->set, e->kind))
		return 0;
	if (dw_decide(r->scratch, r->set->set, r->mon, e, &d, err) < 0)
		return -1;
	if (r->json)
		put_json(r, e, &d);
	else
		put_human(r, e, &d);
	r->decided++;
	return 0;
}

static int lines(struct replay *r, sv text, struct box_err *err)
{
	struct dw_trace t = dw_trace_of(text);

	for (;;) {
		AUTO_ARENA a = { .limit = (size_t)64 << 20 };
		struct dw_event e;
		int rc = dw_trace_next(&t, &a, &e, err);

		if (rc <= 0)
			return rc;
		if (one(r, &e, err) < 0)
			return box_wrap(err, "line %u", t.line);
		if (!r->json && r->out.n > 1 << 16) {
			if (cmd_print(&r->out) != CMD_OK)
				return box_fail(err, BOX_ESYS, 0, "standard output failed");
			buf_clear(&r->out);
		}
	}
}

static int replay(struct replay *r, const char *path)
{
	AUTO_ARENA a = { .limit = (size_t)2 << 30 };
	struct box_err err = { 0 };
	sv trace;
	int rc = cmd_read(&a, path, (size_t)1 << 30, &trace);

	if (rc != CMD_OK)
		return rc;
	r->mon = dwm_new(r->set->set, DWM_ANY, &err);
	r->scratch = dw_scratch_new(&err);
	if (r->mon == NULL || r->scratch == NULL)
		return cmd_failed(&err);
	if (r->answers != NULL)
		dw_scratch_provide(r->scratch, cmd_answer, r->answers);
	if (r->json)
		buf_put_c(&r->out, "{\"verdicts\":[");
	rc = lines(r, trace, &err);
	if (r->json)
		buf_put_c(&r->out, "]}\n");
	if (rc < 0 && !r->json)
		(void)cmd_print(&r->out); /* what was decided before the bad line */
	return rc < 0 ? cmd_failed(&err) : cmd_print(&r->out);
}

static int run(const struct cmd *self, int argc, char **argv)
{
	AUTO_CMD_POLICY p = { 0 };
	struct replay r = { .out = buf_with((size_t)1 << 30) };
	const char *trace = NULL, *data = NULL;
	AUTO_CMD_ANSWERS answers = { 0 };
	bool loose = false;
	int opt, rc;

	while ((opt = getopt_long(argc, argv, "ht:lnA:j" CMD_POLICY_SHORT, options, NULL)) != -1) {
		if (cmd_policy_option(&p, opt, optarg))
			continue;
		if (opt == 't')
			trace = optarg;
		else if (opt == 'A')
			data = optarg;
		else if (opt == 'l')
			loose = true;
		else if (opt == 'n')
			r.names = true;
		else if (opt == 'j')
			r.json = true;
		else
			return cmd_usage(self, opt);
	}
	if (trace == NULL || optind == argc)
		return cmd_error(
		    "a --trace and a policy file are needed; try `dogwood replay --help`");
	rc = cmd_policy_read(&p, argv + optind, argc - optind);
	if (rc == CMD_OK && data != NULL)
		rc = cmd_answers_read(&answers, data);
	if (rc != CMD_OK)
		return rc;
	r.answers = data != NULL ? &answers : NULL;
	r.set = cmd_policy_load(&p, DW_TICK_SECOND, loose, &rc);
	if (r.set == NULL)
		return rc;
	rc = replay(&r, trace);
	dwm_free(r.mon);
	dw_scratch_free(r.scratch);
	eng_set_unref(r.set);
	buf_fini(&r.out);
	return rc;
}

const struct cmd cmd_replay = { "replay", "decide every request of a trace", help_text, run };
