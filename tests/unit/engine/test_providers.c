/* Information providers through the public interface: installed, asked, stored, and absent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"
#include "tmp.h"

#include "base/ban.h"

static const char actions[] = "namespace App { entity User; entity Chan; action \"post\" appliesTo "
                              "{ principal: [User], resource: [Chan], "
                              "context: { input: { body: String } } }; }";
static const char declared[] = "{\"availableProviders\": {\"Scan::it\": {\"argumentTypes\": "
                               "[{\"type\": \"string\"}], \"outputType\": {\"type\": "
                               "\"record\", \"fields\": {\"found\": {\"type\": \"boolean\"}}, "
                               "\"required\": [\"found\"]}, \"availableMethods\": "
                               "{\"score\": {\"argumentTypes\": [{\"type\": \"integer\"}], "
                               "\"outputType\": {\"type\": \"decimal\"}}}}}}";
static const char policy[] =
    "permit (principal, action, resource);\n"
    "@id(\"found\") forbid (principal, action, resource) when { Scan::it(context.input.body).found "
    "};\n"
    "@id(\"score\") forbid (principal, action, resource)\n"
    "when { Scan::it(context.input.body).score(2).greaterThan(decimal(\"0.5\")) };";

struct scanner {
	unsigned asked;
	bool down, silent;
	char last[128];
};

static void scan(void *arg, const struct dogwood_call *call, size_t n, dogwood_answer *answer)
{
	struct scanner *s = arg;

	s->asked++;
	(void)snprintf(s->last, sizeof(s->last), "%.*s%.*s %zu", (int)call[n - 1].name.n,
	    call[n - 1].name.p, (int)call[n - 1].arguments.n, call[n - 1].arguments.p, n);
	if (s->silent)
		return;
	if (s->down)
		dogwood_answer_error(answer, dogwood_cstr("the scanner is down"));
	else if (n == 2)
		dogwood_answer_json(answer, dogwood_cstr("0.25"));
	else if (strstr(s->last, "secret") != NULL)
		dogwood_answer_json(answer, dogwood_cstr("{\"found\": true}"));
	else if (strstr(s->last, "odd") != NULL)
		dogwood_answer_json(answer, dogwood_cstr("{\"found\": \"no\"}"));
	else if (strstr(s->last, "broken") != NULL)
		dogwood_answer_json(answer, dogwood_cstr("{"));
	else
		dogwood_answer_json(answer, dogwood_cstr("{\"found\": false}"));
}

static struct dogwood_policy_set the_set(struct dogwood_source *src)
{
	*src = (struct dogwood_source){ dogwood_cstr("p.dw"), dogwood_cstr(policy) };
	return (struct dogwood_policy_set){ .policies = src,
		.n_policies = 1,
		.action_schema = { dogwood_cstr("a"), dogwood_cstr(actions) },
		.providers = { dogwood_cstr("p.json"), dogwood_cstr(declared) } };
}

static void describe(struct rig *r, const char *body)
{
	dogwood_event_reset(r->ev);
	dogwood_event_action(r->ev, dogwood_cstr("App::Action::\"post\""), dogwood_cstr("request"));
	dogwood_event_principal(r->ev, dogwood_cstr("App::User::\"u\""));
	dogwood_event_resource(r->ev, dogwood_cstr("App::Chan::\"c\""));
	dogwood_event_str(r->ev, DOGWOOD_BOTH, "input.body", dogwood_cstr(body));
}

static void expect(
    struct rig *r, const char *body, bool permit, enum dogwood_cause cause, const char *fault)
{
	describe(r, body);
	if (rig_submit(r) != permit || r->v->cause != cause)
		fail_msg("%s: permit %d, cause %d, %.*s", body, r->v->permit, (int)r->v->cause,
		    (int)r->v->fault.n, r->v->fault.p);
	if (fault != NULL &&
	    (r->v->fault.n != strlen(fault) || memcmp(r->v->fault.p, fault, r->v->fault.n) != 0))
		fail_msg("%s: %.*s", body, (int)r->v->fault.n, r->v->fault.p);
}

static void asks(void **state)
{
	struct scanner s = { 0 };
	struct dogwood_source src;
	struct dogwood_policy_set set = the_set(&src);
	struct dogwood_error err = { 0 };
	struct rig r;

	(void)state;
	rig_init(&r, NULL);
	r.opt.provider = scan;
	r.opt.provider_arg = &s;
	rig_open(&r);
	if (dogwood_engine_install(r.e, &set, NULL, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	expect(&r, "hello", true, DOGWOOD_PERMITTED, NULL);
	assert_int_equal(s.asked, 2);
	assert_string_equal(s.last, "score[2] 2");
	expect(&r, "a secret", false, DOGWOOD_FORBIDDEN, NULL);
	expect(&r, "odd", false, DOGWOOD_FAULT,
	    "provider Scan::it: the answer is not of the declared type");
	expect(&r, "broken", false, DOGWOOD_FAULT, NULL);
	s.silent = true;
	expect(&r, "hello", false, DOGWOOD_FAULT, "provider Scan::it: there is no answer");
	s = (struct scanner){ .down = true };
	expect(&r, "hello", false, DOGWOOD_FAULT, "provider Scan::it: the scanner is down");
	rig_fini(&r);
}

/* The declarations are stored with the set; an engine without the callback denies. */
static void stored(void **state)
{
	const char *dir = tmp_path("providers");
	struct scanner s = { 0 };
	struct dogwood_source src;
	struct dogwood_policy_set set = the_set(&src);
	struct dogwood_installed done = { 0 };
	struct dogwood_error err = { 0 };
	struct rig r;

	(void)state;
	rig_init(&r, dir);
	rig_open(&r);
	assert_int_equal(dogwood_engine_install(r.e, &set, NULL, NULL, &err), -1);
	assert_int_equal(err.code, DOGWOOD_EPOLICY);
	assert_non_null(strstr(err.msg, "without a provider callback"));
	rig_close(&r);
	r.opt.provider = scan;
	r.opt.provider_arg = &s;
	rig_open(&r);
	if (dogwood_engine_install(r.e, &set, NULL, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	expect(&r, "hello", true, DOGWOOD_PERMITTED, NULL);
	rig_close(&r);
	rig_open(&r);
	expect(&r, "a secret", false, DOGWOOD_FORBIDDEN, NULL);
	/* The same set is no change; a policy added to it may ask as well. */
	assert_int_equal(dogwood_engine_install(r.e, &set, NULL, &done, &err), 0);
	assert_false(done.changed);
	{
		struct dogwood_verb v = { .kind = DOGWOOD_ADD,
			.text = dogwood_cstr("forbid (principal, action, resource) unless { "
			                     "Scan::it(\"x\") has found };") };

		if (dogwood_engine_batch(r.e, &v, 1, NULL, NULL, NULL, &err) < 0)
			fail_msg("%s", err.msg);
	}
	expect(&r, "hello", true, DOGWOOD_PERMITTED, NULL);
	rig_close(&r);
	r.opt.provider = NULL;
	rig_open(&r);
	expect(&r, "hello", false, DOGWOOD_FAULT, "provider Scan::it: the host provides nothing");
	rig_fini(&r);
	tmp_done();
}

static void checked(void **state)
{
	struct dogwood_source src;
	struct dogwood_policy_set set = the_set(&src);
	struct dogwood_error err = { 0 };

	(void)state;
	assert_int_equal(dogwood_policy_check(&set, NULL, &err), 0);
	set.providers = (struct dogwood_source){ 0 };
	assert_int_equal(dogwood_policy_check(&set, NULL, &err), -1);
	assert_non_null(strstr(err.msg, "information providers are not enabled in this build"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asks),
		cmocka_unit_test(stored),
		cmocka_unit_test(checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
