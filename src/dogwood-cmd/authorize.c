/* dogwood authorize: one request, decided, with an optional history before it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dogwood-cmd/cmd.h"
#include "dogwood/decide.h"
#include "dogwood/trace.h"
#include "engine/build.h"

#include "base/ban.h"

static const char help_text[] =
    "Usage: dogwood authorize [OPTIONS] --action ACTION POLICY...\n\n"
    "Decide one request and say which rules decided it.\n\n" CMD_POLICY_HELP
    "  -a, --action UID      the action, such as 'Box::Action::\"fs:read\"'\n"
    "  -p, --principal UID   default: Box::Agent::\"self\"\n"
    "  -r, --resource UID    default: Box::Resource::\"unused\"\n"
    "  -i, --input JSON      the action's input fields, as a JSON object\n"
    "  -c, --context JSON    a whole context instead of {\"input\": ...}\n"
    "  -k, --kind KIND       kind of event; default: request\n"
    "  -t, --trace FILE      history: the events of a trace happen first\n"
    "  -@, --at SECONDS      when; default: the stamp of the last event of the trace, or "
    "0\n" CMD_ANSWERS_HELP "  -j, --json            one JSON object on standard output\n\n"
    "An entity in JSON is {\"__entity\": {\"type\": T, \"id\": I}}.\n\n"
    "Examples:\n"
    "  dogwood authorize -s actions.cedarschema -a 'Box::Action::\"net:connect\"' \\\n"
    "      -i '{\"host\": \"example.com\", \"port\": 443}' policy.dw\n"
    "  dogwood authorize -a 'App::Action::\"post\"' -p 'App::User::\"ann\"' \\\n"
    "      -t monday.log -@ 1700000000 limit.dw      after what the trace says happened\n"
    "  dogwood authorize -P providers.json -A answers.json -a 'App::Action::\"post\"' ask.dw\n\n"
    "What it prints:\n"
    "  deny: a forbid matched\n"
    "    forbid limit (limit.dw:2): three posts in ten minutes\n\n"
    "Exit status: 0 permitted, 3 denied, 2 refused input, 1 wrong command line.\n";

static const struct option options[] = { CMD_POLICY_LONG(0),
	{ "action", required_argument, NULL, 'a' }, { "principal", required_argument, NULL, 'p' },
	{ "resource", required_argument, NULL, 'r' }, { "input", required_argument, NULL, 'i' },
	{ "context", required_argument, NULL, 'c' }, { "kind", required_argument, NULL, 'k' },
	{ "trace", required_argument, NULL, 't' }, { "at", required_argument, NULL, '@' },
	{ "provider-data", required_argument, NULL, 'A' }, { "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };

struct ask {
	const char *action, *principal, *resource, *input, *context, *kind, *trace, *data;
	struct cmd_answers answers;
	bool json, has_at;
	int64_t at;
	dogwood_event *ev;
};

static int build(struct ask *q)
{
	struct dogwood_error err;

	q->ev = dogwood_event_new();
	if (q->ev == NULL)
		return cmd_error("no memory");
	dogwood_event_action(q->ev, dogwood_cstr(q->action), dogwood_cstr(q->kind));
	dogwood_event_principal(q->ev, dogwood_cstr(q->principal));
	dogwood_event_resource(q->ev, dogwood_cstr(q->resource));
	if (q->input != NULL)
		dogwood_event_json(q->ev, q->context != NULL ? DOGWOOD_HISTORY : DOGWOOD_BOTH,
		    "input", dogwood_cstr(q->input));
	if (q->context != NULL)
		dogwood_event_json(q->ev, DOGWOOD_CONTEXT, "context", dogwood_cstr(q->context));
	if (dogwood_event_check(q->ev, &err) < 0)
		return cmd_error("%s", err.msg);
	return CMD_OK;
}

/* Step the trace; *last becomes its last stamp. */
static int history(struct dwm *m, sv text, int64_t *last, struct box_err *err)
{
	struct dw_trace t = dw_trace_of(text);

	for (;;) {
		AUTO_ARENA a = { .limit = (size_t)64 << 20 };
		struct dw_event e;
		int rc = dw_trace_next(&t, &a, &e, err);

		if (rc <= 0)
			return rc;
		if (dwm_step(m, &e, err) < 0)
			return box_wrap(err, "line %u", t.line);
		*last = e.ts;
	}
}

static void put_rule(struct buf *b, const struct dogwood_rule *r)
{
	buf_putf(b, "  %s ", r->is_forbid ? "forbid" : "permit");
	buf_put_escaped(b, eng_sv(r->id.n != 0 ? r->id : r->engine_id));
	buf_put_c(b, " (");
	buf_put_escaped(b, eng_sv(r->file));
	buf_putf(b, ":%u)", r->line);
	if (r->description.n != 0) {
		buf_put_c(b, ": ");
		buf_put_escaped(b, eng_sv(r->description));
	}
	buf_put_byte(b, '\n');
}

static const char *cause(const struct dw_decision *d)
{
	return d->cause == DW_FAULT       ? "fault"
	       : d->cause == DW_FORBIDDEN ? "a forbid matched"
	       : d->allow                 ? "a permit matched"
	                                  : "no permit matched";
}

static void answer(struct buf *b, const struct eng_set *set, const struct dw_decision *d)
{
	buf_putf(b, "%s: %s\n", d->allow ? "permit" : "deny", cause(d));
	for (size_t i = 0; i < d->nrules; i++)
		put_rule(b, &set->rules[d->rules[i]]);
	if (d->fault != NULL) {
		buf_put_c(b, "  fault: ");
		buf_put_escaped(b, sv_c(d->fault));
		buf_put_byte(b, '\n');
	}
	for (size_t i = 0; i < d->nerrors; i++) {
		buf_put_c(b, "  error in ");
		buf_put_escaped(b, eng_sv(set->rules[d->errors[i].rule].engine_id));
		buf_put_c(b, ": ");
		buf_put_escaped(b, sv_c(d->errors[i].text));
		buf_put_byte(b, '\n');
	}
}

static void answer_json(struct buf *b, const struct eng_set *set, const struct dw_decision *d)
{
	buf_putf(b, "{\"permit\":%s,\"rules\":[", d->allow ? "true" : "false");
	for (size_t i = 0; i < d->nrules; i++) {
		const struct dogwood_rule *r = &set->rules[d->rules[i]];

		buf_putf(b, "%s{\"index\":%u,\"id\":", i != 0 ? "," : "", r->index);
		if (r->id.n != 0)
			buf_put_json(b, eng_sv(r->id));
		else
			buf_put_c(b, "null");
		buf_put_c(b, ",\"description\":");
		buf_put_json(b, eng_sv(r->description));
		buf_put_byte(b, '}');
	}
	buf_put_c(b, "],\"errors\":[");
	for (size_t i = 0; i < d->nerrors; i++) {
		if (i != 0)
			buf_put_byte(b, ',');
		buf_put_json(b, sv_c(d->errors[i].text));
	}
	buf_put_c(b, "],\"fault\":");
	if (d->fault != NULL)
		buf_put_json(b, sv_c(d->fault));
	else
		buf_put_c(b, "null");
	buf_put_c(b, "}\n");
}

static int decide(struct ask *q, const struct eng_set *set, struct dwm *m, struct dw_scratch *sc)
{
	AUTO_ARENA a = { .limit = (size_t)256 << 20 };
	AUTO_ARENA scratch = { .limit = (size_t)64 << 20 };
	AUTO_BUF out = buf_with((size_t)64 << 20);
	struct box_err err = { 0 };
	struct dw_decision d = { 0 };
	struct dw_event e;
	const struct dw_val *whole;
	sv text;
	int rc;

	if (q->trace != NULL) {
		int64_t last = 0;

		rc = cmd_read(&a, q->trace, (size_t)128 << 20, &text);
		if (rc != CMD_OK)
			return rc;
		if (history(m, text, &last, &err) < 0)
			return cmd_failed(&err);
		if (!q->has_at)
			q->at = last;
	}
	if (eng_build(q->ev, &scratch, &e, &err) < 0)
		return cmd_failed(&err);
	e.ts = q->at;
	whole = dw_get(&e.context, SV("context"));
	if (q->context != NULL && whole != NULL)
		e.context = *whole;
	if (e.context.tag != DW_OBJECT)
		return cmd_error("--context must be a JSON object");
	if (!dw_set_is_decision(set->set, e.kind))
		return cmd_error("events of kind `%s` ask for no decision", q->kind);
	if (!dw_set_has_action(set->set, e.ns, e.id)) {
		(void)cmd_error("the schema does not declare the action %s", q->action);
		return CMD_REFUSED;
	}
	if (dwm_step(m, &e, &err) < 0 || dw_decide(sc, set->set, m, &e, &d, &err) < 0)
		return cmd_failed(&err);
	if (q->json)
		answer_json(&out, set, &d);
	else
		answer(&out, set, &d);
	rc = cmd_print(&out);
	return rc != CMD_OK ? rc : d.allow ? CMD_OK : CMD_DENIED;
}

static int authorize(struct ask *q, const struct cmd_policy *p)
{
	struct box_err err = { 0 };
	struct dw_scratch *sc;
	struct eng_set *set;
	struct dwm *m;
	int rc = CMD_OK;

	set = cmd_policy_load(p, DW_TICK_SECOND, false, &rc);
	if (set == NULL)
		return rc;
	m = dwm_new(set->set, DWM_ANY, &err);
	sc = dw_scratch_new(&err);
	if (sc != NULL && q->data != NULL)
		dw_scratch_provide(sc, cmd_answer, &q->answers);
	rc = m == NULL || sc == NULL ? cmd_failed(&err) : decide(q, set, m, sc);
	dw_scratch_free(sc);
	dwm_free(m);
	eng_set_unref(set);
	return rc;
}

static bool ask_option(struct ask *q, int opt, const char *arg)
{
	const char **to = opt == 'a'   ? &q->action
	                  : opt == 'p' ? &q->principal
	                  : opt == 'r' ? &q->resource
	                  : opt == 'i' ? &q->input
	                  : opt == 'c' ? &q->context
	                  : opt == 'k' ? &q->kind
	                  : opt == 't' ? &q->trace
	                  : opt == 'A' ? &q->data
	                               : NULL;

	if (to != NULL)
		*to = arg;
	return to != NULL;
}

static int run(const struct cmd *self, int argc, char **argv)
{
	AUTO_CMD_POLICY p = { 0 };
	struct ask q = { .principal = "Box::Agent::\"self\"",
		.resource = "Box::Resource::\"unused\"",
		.kind = "request" };
	int opt, rc;

	while ((opt = getopt_long(
	            argc, argv, "ha:p:r:i:c:k:t:@:A:j" CMD_POLICY_SHORT, options, NULL)) != -1) {
		if (cmd_policy_option(&p, opt, optarg) || ask_option(&q, opt, optarg))
			continue;
		if (opt == 'j')
			q.json = true;
		else if (opt != '@')
			return cmd_usage(self, opt);
		else if (!sv_to_i64(sv_c(optarg), 10, INT64_MIN, INT64_MAX, &q.at))
			return cmd_error("--at wants whole seconds, not `%s`", optarg);
		else
			q.has_at = true;
	}
	if (q.action == NULL || optind == argc)
		return cmd_error(
		    "an --action and a policy file are needed; try `dogwood authorize --help`");
	rc = cmd_policy_read(&p, argv + optind, argc - optind);
	if (rc == CMD_OK && q.data != NULL)
		rc = cmd_answers_read(&q.answers, q.data);
	if (rc == CMD_OK)
		rc = build(&q);
	if (rc == CMD_OK)
		rc = authorize(&q, &p);
	dogwood_event_free(q.ev);
	cmd_answers_fini(&q.answers);
	return rc;
}

const struct cmd cmd_authorize = { "authorize", "decide one request", help_text, run };
