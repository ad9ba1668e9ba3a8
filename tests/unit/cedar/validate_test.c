/* The strict validator: the messages of spec 3.6 and of Box's schema, capabilities, requests and
 * entities. */
#include "t.h"

#include "cedar/json.h"
#include "cedar/validate.h"

static const char schema_text[] = "namespace Box {\n"
                                  "  entity Agent, Resource; entity Mode enum [\"r\", \"w\"];\n"
                                  "  action \"fs\"; action \"fs:read\" in [\"fs\"] appliesTo { "
                                  "principal: Agent, resource: Resource, context: {\n"
                                  "    input: { path: String, arg1?: String, mode: Mode, n: Long, "
                                  "ip: ipaddr, at: datetime, d: decimal } } };\n"
                                  "}\n"
                                  "namespace App {\n"
                                  "  entity User in [Group] { age: Long, nick?: String, boss?: "
                                  "User, tags: Set<String> } tags String;\n"
                                  "  entity Group; entity Doc { owner: User };\n"
                                  "  action view, edit appliesTo { principal: User, resource: Doc, "
                                  "context: { a: Long, r: { x?: Long } } };\n"
                                  "}\n";

/* The findings of a policy joined by newlines, warnings in brackets; "ok". */
static const char *validate(struct world *w, const struct cedar_schema *s, const char *text)
{
	struct cedar_source src;
	struct buf b = buf_with(1 << 16);
	const char *r = "ok";
	size_t i;

	w->ds = cedar_diags_in(&w->a);
	if (cedar_parse(w->t, &w->a, sv_c(text), &(struct cedar_parse_opts){ .dogwood = true },
	        &src, &w->ds) < 0)
		fail_msg("%s: " SV_FMT, text, SV_ARG(w->ds.d[0].message));
	cedar_validate_source(s, &src, &w->ds);
	for (i = 0; i < w->ds.n; i++)
		buf_putf(&b, "%s%s" SV_FMT "%s", i > 0 ? "\n" : "",
		    w->ds.d[i].severity == CEDAR_WARNING ? "[" : "", SV_ARG(w->ds.d[i].message),
		    w->ds.d[i].severity == CEDAR_WARNING ? "]" : "");
	if (b.n != 0)
		r = arena_printf(&w->a, SV_FMT, SV_ARG(buf_sv(&b)));
	buf_fini(&b);
	return r;
}

#define P    "for policy `policy0`, "
#define VIEW "permit(principal, action == App::Action::\"view\", resource) when { "
#define READ "permit(principal, action == Box::Action::\"fs:read\", resource) when { "
#define IMPOSSIBLE                                                                                 \
	"[" P                                                                                      \
	"policy is impossible: the policy expression evaluates to false for all valid requests]"

static const struct {
	const char *text, *want;
} rows[] = {
	{ "permit(principal, action, resource);", "ok" },
	{ "permit(principal, action == Box::Action::\"fs:raed\", resource);", P
	    "unrecognized action `Box::Action::\"fs:raed\"`\n" P
	    "unable to find an applicable action given the policy scope constraints\n" IMPOSSIBLE },
	{ "permit(principal == Nope::\"x\", action, resource);",
	    P "unrecognized entity type `Nope`\n" P
	      "unable to find an applicable action given the policy scope constraints" },
	{ READ "context.input.paht == \"x\" };",
	    P "attribute `input.paht` in context for Box::Action::\"fs:read\" not found" },
	{ READ "context.input.arg1 == \"x\" };", P "unable to guarantee safety of access to "
	                                           "optional attribute `input.arg1` in context for "
	                                           "Box::Action::\"fs:read\"" },
	{ READ "context.input has arg1 && context.input.arg1 == \"x\" };", "ok" },
	{ READ "context has input.arg1 && context.input.arg1 == \"x\" };", "ok" },
	{ READ "context.input has arg1 || context.input.arg1 == \"x\" };",
	    P "unable to guarantee safety of access to optional attribute `input.arg1` in context "
	      "for "
	      "Box::Action::\"fs:read\"" },
	/* An entity may be missing from the store, a record's attribute cannot. */
	{ VIEW "principal has age || principal.nope == 1 };",
	    P "attribute `nope` on entity type `App::User` not found" },
	{ VIEW "context has a || context.nope == 1 };", "ok" },
	{ VIEW "context has r.x || context.nope == 1 };",
	    P "attribute `nope` in context for App::Action::\"view\" not found" },
	/* Boolean literals joined are a literal. */
	{ VIEW "(false && true) == (true || false) };", IMPOSSIBLE },
	{ VIEW "(true && (false || true)) == true };", "ok" },
	{ VIEW "(false && principal == resource) == true };", "ok" },
	/* What one side of an `||`, or one branch, proves is not proved. */
	{ READ "(context.input has arg1 || context.input.path == \"x\") && context.input.arg1 == "
	       "\"x\" };",
	    P "unable to guarantee safety of access to optional attribute `input.arg1` in context "
	      "for "
	      "Box::Action::\"fs:read\"" },
	{ READ
	    "(context.input has arg1 || context.input has arg1) && context.input.arg1 == \"x\" };",
	    "ok" },
	{ READ "(if context.input.path == \"x\" then context.input has arg1 else true) && "
	       "context.input.arg1 == \"x\" };",
	    P "unable to guarantee safety of access to optional attribute `input.arg1` in context "
	      "for "
	      "Box::Action::\"fs:read\"" },
	{ READ "(if context.input has arg1 then context.input.path == \"x\" else false) && "
	       "context.input.arg1 == \"x\" };",
	    P "unable to guarantee safety of access to optional attribute `input.arg1` in context "
	      "for "
	      "Box::Action::\"fs:read\"" },
	{ READ "(if context.input has arg1 then true else context.input.path == \"x\") && "
	       "context.input.arg1 == \"x\" };",
	    P "unable to guarantee safety of access to optional attribute `input.arg1` in context "
	      "for "
	      "Box::Action::\"fs:read\"" },
	{ READ "(if context.input has arg1 then context.input.path == \"x\" else context.input has "
	       "arg1) && context.input.arg1 == \"x\" };",
	    "ok" },
	{ READ "!(context.input has arg1) && context.input.arg1 == \"x\" };",
	    P "unable to guarantee safety of access to optional attribute `input.arg1` in context "
	      "for "
	      "Box::Action::\"fs:read\"" },
	{ READ "if context.input has arg1 then context.input.arg1 == \"x\" else false };", "ok" },
	{ READ "context.input.mode == Box::Mode::\"x\" };",
	    "for policy `policy0`: entity `Box::Mode::\"x\"` is of an enumerated entity type, but "
	    "`\"x\"` "
	    "is not declared as a valid eid" },
	{ READ "context.input.path == 1 };", "the types Long and String are not compatible" },
	{ READ "context.input.n < \"a\" };", P "unexpected type: expected Long but saw String" },
	{ READ "context.input.path < \"a\" };",
	    P "unexpected type: expected Long, or datetime, or duration but saw String\n" P
	      "unexpected type: expected Long, or datetime, or duration but saw String" },
	{ READ "context.input.n + \"a\" == 1 };",
	    P "unexpected type: expected Long but saw String" },
	{ READ "context.input.n };", P "unexpected type: expected Bool but saw Long" },
	{ READ "context.input.ip == ip(\"1.2.3\") };",
	    P "error during extension function argument validation: failed to parse as IP address: "
	      "`\"1.2.3\"`" },
	{ READ "context.input.ip == ip(context.input.path) };",
	    P "extension constructors may not be called with non-literal expressions" },
	{ READ "context.input.d.lessThan(1) };",
	    P "unexpected type: expected decimal but saw Long" },
	{ READ "[].isEmpty() };", P "empty set literals are forbidden in policies" },
	{ READ "[1, \"a\"].contains(1) };", "the types Long and String are not compatible" },
	{ READ "[1].contains(\"a\") };", "the types Long and String are not compatible" },
	{ READ "principal.x == 1 };", P "attribute `x` on entity type `Box::Agent` not found" },
	{ READ "false };", IMPOSSIBLE },
	{ READ "false && context.nope };", IMPOSSIBLE },
	{ READ "temporal { x } };", "ok" },
	{ READ "temporal { x } == 1 };", "the types Bool and Long are not compatible" },
	{ "permit(principal is App::Group, action, resource);", P
	    "unable to find an applicable action given the policy scope constraints\n" IMPOSSIBLE },
	{ "permit(principal == App::Group::\"g\", action, resource);", P
	    "unable to find an applicable action given the policy scope constraints\n" IMPOSSIBLE },
	{ "permit(principal in App::Group::\"g\", action in [App::Action::\"view\"], resource);",
	    "ok" },
	{ VIEW "principal.age > 3 };", "ok" },
	{ VIEW "principal.nick == \"x\" };", P "unable to guarantee safety of access to optional "
	                                       "attribute `nick` on entity type `App::User`" },
	{ VIEW "principal has nick && principal[\"nick\"] == \"x\" };", "ok" },
	{ VIEW "principal has boss.nick && principal.boss.nick == \"x\" };", "ok" },
	{ VIEW "principal has boss && principal.boss.nick == \"x\" };",
	    P "unable to guarantee safety of access to optional attribute `nick` on entity type "
	      "`App::User`" },
	{ VIEW "principal.getTag(\"k\") == \"x\" };",
	    P "unable to guarantee safety of access to tag `\"k\"` on entity type `App::User`" },
	{ VIEW "principal.hasTag(\"k\") && principal.getTag(\"k\") == \"x\" };", "ok" },
	{ VIEW "resource.hasTag(\"k\") };", IMPOSSIBLE },
	{ VIEW "principal == resource };", IMPOSSIBLE },
	{ VIEW "principal in resource };", IMPOSSIBLE },
	{ VIEW "resource in App::Group::\"g\" };", IMPOSSIBLE },
	{ VIEW "action == App::Action::\"edit\" };", IMPOSSIBLE },
	{ VIEW "resource.owner is App::User };", "ok" },
	{ VIEW "resource.owner is App::Nope };",
	    P "unrecognized entity type `App::Nope`\n" IMPOSSIBLE },
	{ VIEW "context.r == {x: 1} };",
	    "the types {x: Long,} and {x?: Long,} are not compatible" },
	{ VIEW "context.r == {y: 1} };",
	    "the types {x?: Long,} and {y: Long,} are not compatible" },
	{ VIEW "if context.a == 1 then 1 else true };",
	    "the types Long and __cedar::internal::True are not "
	    "compatible" },
	{ VIEW "principal like \"x\" };", P "unexpected type: expected String but saw App::User" },
	{ VIEW "principal.tags in principal };",
	    P "unexpected type: expected __cedar::internal::AnyEntity but saw Set<String>" },
	{ VIEW "(1 == 1 || principal.nope) };", "ok" },
	{ "permit(principal in ?principal, action == App::Action::\"view\", resource == ?resource) "
	  "when { "
	  "principal.age == 1 };",
	    "ok" },
	{ VIEW "foo(1) };", P "undefined extension function: foo" },
};

static void test_messages(void **state)
{
	struct world *w = *state;
	struct cedar_schema *s;
	size_t i;

	w->ds = cedar_diags_in(&w->a);
	s = cedar_schema_load(w->t, &w->a, sv_c(schema_text), false, &w->ds);
	if (s == NULL)
		fail_msg(SV_FMT, SV_ARG(w->ds.d[0].message));
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *got = validate(w, s, rows[i].text);

		if (strcmp(got, rows[i].want) != 0)
			fail_msg("%s\n gave %s\n not  %s", rows[i].text, got, rows[i].want);
	}
	validate(w, s, READ "context.input.paht == \"x\" };");
	assert_true(sv_eq(w->ds.d[0].hint, SV("did you mean `path`?")));
	assert_int_equal(w->ds.d[0].span.col, 70);
	validate(w, s, READ "context.input.arg1 == \"x\" };");
	assert_true(sv_eq(w->ds.d[0].hint,
	    SV("try testing for the attribute's presence with `context.input has arg1 && ..`")));
	validate(w, s, "permit(principal, action == Box::Action::\"fs:raed\", resource);");
	assert_true(sv_eq(w->ds.d[0].hint, SV("did you mean `Box::Action::\"fs:read\"`?")));
	validate(w, s, "permit(principal == App::Group::\"g\", action, resource);");
	assert_true(
	    sv_eq(w->ds.d[0].hint, SV("try replacing `==` with `in` in the principal clause")));
}

static void test_actions(void **state)
{
	struct world *w = *state;
	const struct cedar_action **v;
	struct cedar_source src;
	struct cedar_schema *s;
	size_t n;

	w->ds = cedar_diags_in(&w->a);
	s = cedar_schema_load(w->t, &w->a, sv_c(schema_text), false, &w->ds);
	cedar_parse(w->t, &w->a,
	    SV("permit(principal, action in Box::Action::\"fs\", resource); permit(principal, "
	       "action, resource); "
	       "permit(principal is App::User, action, resource);"),
	    NULL, &src, &w->ds);
	assert_int_equal(cedar_policy_actions(s, &src.policy[0], &w->a, &v, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(cedar_policy_actions(s, &src.policy[1], &w->a, &v, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(cedar_policy_actions(s, &src.policy[2], &w->a, &v, &n), 0);
	assert_int_equal(n, 2);
}

static void test_conform(void **state)
{
	static const struct {
		const char *request, *want;
	} t[] = {
		{ "{\"principal\": \"App::User::\\\"a\\\"\", \"action\": "
		  "\"App::Action::\\\"view\\\"\", \"resource\": "
		  "{\"type\": \"App::Doc\", \"id\": \"d\"}, \"context\": {\"a\": 1, \"r\": {}}}",
		    "ok" },
		{ "{\"principal\": \"App::Doc::\\\"a\\\"\", \"action\": "
		  "\"App::Action::\\\"view\\\"\", \"resource\": "
		  "{\"type\": \"App::Doc\", \"id\": \"d\"}, \"context\": {\"a\": 1, \"r\": {}}}",
		    "principal type `App::Doc` is not valid for `App::Action::\"view\"`" },
		{ "{\"principal\": \"App::User::\\\"a\\\"\", \"action\": "
		  "\"App::Action::\\\"nope\\\"\", \"resource\": "
		  "{\"type\": \"App::Doc\", \"id\": \"d\"}}",
		    "request's action `App::Action::\"nope\"` is not declared in the schema" },
		{ "{\"principal\": \"App::User::\\\"a\\\"\", \"action\": "
		  "\"App::Action::\\\"view\\\"\", \"resource\": "
		  "{\"type\": \"App::Doc\", \"id\": \"d\"}, \"context\": {\"a\": 1}}",
		    "context is not valid: expected attribute `r`, but it is missing" },
		{ "{\"principal\": \"App::User::\\\"a\\\"\", \"action\": "
		  "\"App::Action::\\\"view\\\"\", \"resource\": "
		  "{\"type\": \"App::Doc\", \"id\": \"d\"}, \"context\": {\"a\": \"1\", \"r\": "
		  "{}}}",
		    "context is not valid: in attribute `a`: type mismatch: value was expected to "
		    "have type Long, "
		    "but it has type string" },
		{ "{\"principal\": \"App::User::\\\"a\\\"\", \"action\": "
		  "\"App::Action::\\\"view\\\"\", \"resource\": "
		  "{\"type\": \"App::Doc\", \"id\": \"d\"}, \"context\": {\"a\": 1, \"r\": {\"z\": "
		  "1}}}",
		    "context is not valid: in attribute `r`: attribute `z` should not exist "
		    "according to the "
		    "schema" },
	};
	struct world *w = *state;
	struct cedar_schema *s;
	struct box_err err;
	size_t i;

	w->ds = cedar_diags_in(&w->a);
	s = cedar_schema_load(w->t, &w->a, sv_c(schema_text), false, &w->ds);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct cedar_request rq = { 0 };

		(void)snprintf(err.msg, sizeof(err.msg), "ok");
		if (cedar_json_request(w->t, &w->a, sv_c(t[i].request), s, &rq, &err) == 0)
			cedar_request_conforms(s, &rq, &err);
		assert_string_equal(err.msg, t[i].want);
	}
}

/* An action may be listed as the schema has it, and not otherwise. */
static void test_actions_listed(void **state)
{
	static const struct {
		const char *parents;
		bool good;
	} t[] = {
		{ "{\"type\": \"Box::Action\", \"id\": \"fs\"}", true },
		{ "", false },
		{ "{\"type\": \"Box::Action\", \"id\": \"fs:read\"}", false },
		{ "{\"type\": \"Box::Action\", \"id\": \"fs\"}, {\"type\": \"Box::Action\", "
		  "\"id\": "
		  "\"fs:read\"}",
		    false },
		{ "{\"type\": \"App::Action\", \"id\": \"view\"}", false },
	};
	struct world *w = *state;
	struct cedar_schema *s;
	struct box_err err = { 0 };
	size_t i;

	w->ds = cedar_diags_in(&w->a);
	s = cedar_schema_load(w->t, &w->a, sv_c(schema_text), false, &w->ds);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct cedar_entities es = cedar_entities_in(&w->a, &s->actions);
		const char *text = arena_printf(&w->a,
		    "[{\"uid\": {\"type\": \"Box::Action\", \"id\": \"fs:read\"}, \"attrs\": {}, "
		    "\"parents\": [%s]}]",
		    t[i].parents);

		assert_int_equal(
		    cedar_json_entities(w->t, sv_c(text), s, &es, &err) == 0, t[i].good);
	}
}

/* The ids of an enumerated type are not looked at in a link; its type must be known. */
static void test_links(void **state)
{
	static const struct {
		const char *type, *id;
		size_t errors;
	} t[] = { { "Box::Mode", "r", 0 }, { "Box::Mode", "x", 0 }, { "Box::Nope", "r", 1 } };
	struct world *w = *state;
	struct cedar_source src;
	struct cedar_schema *s;
	size_t i;

	w->ds = cedar_diags_in(&w->a);
	s = cedar_schema_load(w->t, &w->a,
	    SV("namespace Box { entity Mode enum [\"r\", \"w\"]; action go appliesTo { principal: "
	       "[Mode], resource: [Mode] }; }"),
	    false, &w->ds);
	assert_non_null(s);
	assert_int_equal(
	    cedar_parse(w->t, &w->a, SV("permit (principal in ?principal, action, resource);"),
	        NULL, &src, &w->ds),
	    0);
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct cedar_link l = { .policy = &src.policy[0] };

		l.slot[0].type = cedar_intern(w->t, sv_c(t[i].type));
		l.slot[0].id = cedar_intern(w->t, sv_c(t[i].id));
		w->ds = cedar_diags_in(&w->a);
		assert_int_equal(cedar_validate(s, &l, 1, &w->ds) != 0, t[i].errors != 0);
	}
}

static void test_no_memory(void **state)
{
	struct world *w = *state;
	struct cedar_source src;
	struct cedar_schema *s;
	size_t limit;

	w->ds = cedar_diags_in(&w->a);
	s = cedar_schema_load(w->t, &w->a, sv_c(schema_text), false, &w->ds);
	cedar_parse(w->t, &w->a, SV(READ "context.input.paht == 1 && context.x + [] };"), NULL,
	    &src, &w->ds);
	for (limit = 32; limit < 20000; limit += 97) {
		struct arena a = { .limit = limit };
		struct cedar_diags ds = cedar_diags_in(&a);

		assert_true(cedar_validate_source(s, &src, &ds) != 0);
		arena_free(&a);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)
	const struct CMUnitTest tests[] = {
		T(test_messages),
		T(test_actions),
		T(test_conform),
		T(test_actions_listed),
		T(test_links),
		T(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
