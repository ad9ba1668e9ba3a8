/* The policy engine in a program of your own: three posts in ten minutes, remembered in ./history
 * across restarts. Build with `make`, run ./embed a few times.
 *
 * An agent framework does the same around every tool call: submit the request, run the tool only
 * when `permit` is true, submit what came of it. */
#include <dogwood/dogwood.h>
#include <stdio.h>

static const char actions[] =
    "namespace App {\n"
    "  entity User; entity Service;\n"
    "  action \"post\" appliesTo { principal: [User], resource: [Service],\n"
    "    context: { input: { text: String }, output?: { ok: Bool } } };\n"
    "}\n";

static const char policy[] =
    "permit (principal, action == App::Action::\"post\", resource);\n"
    "@id(\"limit\") @description(\"three posts in ten minutes\")\n"
    "forbid (principal, action == App::Action::\"post\", resource)\n"
    "when temporal {\n"
    "  (count for (t: Timepoint). where (formerly within 10m\n"
    "    (App::Action::\"post\"::response{ output.ok: true } && tp(t)))) >= 3\n"
    "};\n";

static void describe(dogwood_event *ev, const char *kind, const char *text)
{
	dogwood_event_reset(ev);
	dogwood_event_action(ev, dogwood_cstr("App::Action::\"post\""), dogwood_cstr(kind));
	dogwood_event_principal(ev, dogwood_cstr("App::User::\"ann\""));
	dogwood_event_resource(ev, dogwood_cstr("App::Service::\"chat\""));
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.text", dogwood_cstr(text));
}

int main(void)
{
	struct dogwood_source src = { dogwood_cstr("limit.dw"), dogwood_cstr(policy) };
	struct dogwood_policy_set set = { .policies = &src,
		.n_policies = 1,
		.action_schema = { dogwood_cstr("actions"), dogwood_cstr(actions) } };
	struct dogwood_options opt;
	struct dogwood_error err = { .msg = "no memory" };
	dogwood_engine *engine = NULL;
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_verdict *v = dogwood_verdict_new();
	dogwood_str none = { NULL, 0 };

	dogwood_options_init(&opt);
	opt.path = "history";
	if (ev == NULL || v == NULL || dogwood_engine_open(&opt, &engine, &err) < 0 ||
	    dogwood_engine_install(engine, &set, NULL, NULL, &err) < 0)
		goto fail;
	describe(ev, "request", "hello");
	if (dogwood_submit(engine, ev, none, v, &err) < 0)
		goto fail;
	if (v->permit) {
		printf("posted\n"); /* the effect */
		describe(ev, "response", "hello");
		dogwood_event_bool(ev, DOGWOOD_HISTORY, "output.ok", true);
		if (dogwood_submit(engine, ev, none, NULL, &err) < 0)
			goto fail;
	} else {
		printf("refused: %.*s\n", v->n_rules != 0 ? (int)v->rules[0].description.n : 0,
		    v->n_rules != 0 ? v->rules[0].description.p : "");
	}
	dogwood_verdict_free(v);
	dogwood_event_free(ev);
	return dogwood_engine_close(engine, &err) < 0;
fail:
	fprintf(stderr, "embed: %s\n", err.msg);
	return 1;
}
