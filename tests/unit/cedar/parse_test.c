/* Sources: grammar, scopes, recovery, the exact messages of spec 2.3, limits. */
#include "t.h"

#include <time.h>

/* Parse in Dogwood's grammar; the messages joined by newlines, or "ok". */
static const char *parse_text(struct world *w, sv text, bool dogwood)
{
	struct cedar_parse_opts o = { .dogwood = dogwood };
	struct cedar_source src;
	struct buf b = buf_with(1 << 24);
	const char *s = "ok";
	size_t i;

	w->ds = cedar_diags_in(&w->a);
	if (cedar_parse(w->t, &w->a, text, &o, &src, &w->ds) < 0) {
		for (i = 0; i < w->ds.n; i++)
			buf_putf(&b, "%s" SV_FMT, i > 0 ? "\n" : "", SV_ARG(w->ds.d[i].message));
		s = arena_printf(&w->a, SV_FMT, SV_ARG(buf_sv(&b)));
	}
	buf_fini(&b);
	return s;
}

struct row {
	const char *text, *want;
};

#define VALID_VARS                                                                                 \
	"` is not a valid variable; the valid variables are `principal`, `action`, `resource`, "   \
	"and "                                                                                     \
	"`context`"

static const struct row dogwood_rows[] = {
	{ "permit (principal, action, resource);", "ok" },
	{ "permit ();", "ok" },
	{ "permit (resource, principal,);", "ok" },
	{ "@id(\"x\") @empty forbid (principal is A::B in C::\"d\", action in [Action::\"a\",], "
	  "resource == ?resource) unless { true };",
	    "ok" },
	{ "permit (principal, action, resource) when temporal { a { \"}\" } // }\n } when { true "
	  "&& "
	  "temporal { x } };",
	    "ok" },
	{ "permit (principal) when guardrails { A::B(context.x).ok() };", "ok" },
	{ "def cedar f(?a, ?b) { ?a }; def temporal g() { x }; permit();", "ok" },
	{ "permit (principal, action, resource) when { context.if.in.permit == 1 };", "ok" },
	{ "permit (principal, action, resource)",
	    "unexpected end of input; expected `;` to end the policy, or `when`/`unless` to add a "
	    "condition" },
	{ "permit (principal, action, resource, extra);",
	    "this policy has an extra element in the scope: `extra`" },
	{ "permit (principal > User::\"alice\", action, resource);",
	    "scope only allows `==` or `in`, found `>`" },
	{ "permit (principal = User::\"alice\");",
	    "`=` is not a valid operator in this scope; did you mean `==`?" },
	{ "permit (principal, action in [Action::\"Read\" Action::\"Write\"], resource);",
	    "unexpected token `Action`" },
	{ "permit (principal, action, resource) when { context.x = 5 };",
	    "`=` is not a valid operator in this scope; did you mean `==`?" },
	{ "permit (principal, action, resource) when { context has };",
	    "unexpected token `}`, expected attribute name" },
	{ "permit (?bogus, action, resource);", "unexpected token `?bogus`, expected identifier" },
	{ "permit (principal, action, resource) when { 99999999999999999999 > 0 };",
	    "integer literal `99999999999999999999` is out of range" },
	{ "def python my_macro() { true };",
	    "unexpected token `python`, expected 'cedar' or 'temporal'" },
	{ "allow (principal);", "policy effect must be `permit` or `forbid`, found `allow`" },
	{ "permit (principal) if { true };",
	    "condition keyword must be `when` or `unless`, found `if`" },
	{ "permit (principal, principal);", "duplicate `principal` in scope" },
	{ "permit (principl);",
	    "unexpected scope variable `principl`; expected `principal`, `action`, or `resource`" },
	{ "permit (principal : User);",
	    "the `principal : Type` scope form is not supported; use `principal is Type`" },
	{ "permit (action is A);", "`action is Type` is not valid in the action scope" },
	{ "permit (principal is A == A::\"b\");",
	    "`is Type == …` is not valid; only `is Type in …` is allowed" },
	{ "permit (principal == 1);",
	    "expected an entity reference (`Ns::Type::\"id\"`) or a template slot (`?principal`)" },
	{ "permit (resource == ?principal);",
	    "expected an entity reference (`Ns::Type::\"id\"`) or a template slot (`?resource`)" },
	{ "permit (action == 1);",
	    "action scope expects an action reference (`Ns::Action::\"id\"`)" },
	{ "permit (action in [1]);",
	    "action scope expects an action reference (`Ns::Action::\"id\"`)" },
	{ "permit (action == User::\"x\");",
	    "action scope expects an action reference (`Ns::Action::\"id\"`)" },
	{ "permit (principal == User::alice);", "`User::alice` is not a valid entity reference; "
	                                        "try `User::alice::\"<id>\"` for a specific "
	                                        "entity, or `is User::alice` to match by type" },
	{ "permit () when { 1 / 2 == 0 };", "`/` is not a supported operator" },
	{ "permit () when { context[1] };",
	    "index access requires a string-literal key, e.g. `record[\"field\"]`" },
	{ "permit () when { context.a(1)(2) };",
	    "unexpected call: only extension functions and methods can be called" },
	{ "permit () when { context.a.isIpv4(1) };", "`isIpv4` takes no arguments, but got 1" },
	{ "permit () when { ip() };", "`ip` takes exactly one argument, but got 0" },
	{ "permit () when { foo };", "`foo" VALID_VARS },
	{ "permit () when { A::{ b: 1 } };",
	    "entity initializer syntax `Type::{ … }` is not supported" },
	{ "permit () when { context.x == \"a\\*b\" };", "the input `\\*` is not a valid escape" },
	{ "permit () when { context.x like \"a\\qb\" };", "the input `\\q` is not a valid escape" },
	{ "permit () when { \"abc };", "unexpected token `\"abc };`, expected expression" },
	{ "permit () when { ?x };", "stray macro parameter reference `?x` outside a macro body" },
	{ "permit () when { 1 2 };", "unexpected token `2`" },
	{ "permit () when temporal { ( ;", "unexpected end of input" },
	{ "permit () when { };", "unexpected token `}`, expected expression" },
};

static const struct row cedar_rows[] = {
	{ "permit (principal, action, resource);", "ok" },
	{ "permit (principal == ?principal, action, resource in ?resource);", "ok" },
	{ "permit (principal, action);",
	    "this policy is missing the `resource` variable in the scope" },
	{ "permit (action, principal, resource);", "expected `principal`, found `action` in the "
	                                           "scope\nexpected `action`, found `principal` in "
	                                           "the scope" },
	{ "permit (principal, action, resource) when temporal { x };",
	    "unexpected token `temporal`" },
	{ "permit (principal, action, resource) when { ?principal == resource };",
	    "found template slot `?principal` in a condition" },
	{ "permit (principal, action, resource) when { ?x };",
	    "`?x` is not a valid template slot" },
	{ "@a @a permit (principal, action, resource);", "duplicate annotation: @a" },
	{ "permit (principal, action, resource) when { foo(1) };",
	    "`foo` is not a valid function" },
	{ "permit (principal, action, resource) when { context.if };",
	    "this identifier is reserved and cannot be used: `if`" },
	{ "def cedar f() { 1 };", "policy effect must be `permit` or `forbid`, found `def`" },
};

static void check(struct world *w, const struct row *r, size_t n, bool dogwood)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const char *got = parse_text(w, sv_c(r[i].text), dogwood);

		if (strcmp(got, r[i].want) != 0)
			fail_msg("%s\n  gave %s\n  not  %s", r[i].text, got, r[i].want);
	}
}

static void test_messages(void **state)
{
	check(*state, dogwood_rows, sizeof(dogwood_rows) / sizeof(dogwood_rows[0]), true);
	check(*state, cedar_rows, sizeof(cedar_rows) / sizeof(cedar_rows[0]), false);
}

/* Five mistakes, five findings, each with its place. */
static void test_all_errors(void **state)
{
	static const char text[] =
	    "permt (principal, action, resource);\n"
	    "permit (principl, action, resource);\n"
	    "permit (principal, action, resource)\n  when { context.a = 1 };\n"
	    "forbid (principal, action, resource) when { \"x\\q\" == foo };\n";
	static const struct {
		uint32_t line, col;
		const char *hint;
	} want[] = { { 1, 1, "did you mean `permit`?" }, { 2, 9, "did you mean `principal`?" },
		{ 4, 20, "" },
		{ 5, 47,
		    "the escapes are \\n \\r \\t \\0 \\\\ \\\" \\' \\xHH \\u{HEX}; write \\\\ for "
		    "a backslash" },
		{ 5, 54, NULL } };
	struct world *w = *state;
	struct buf b = buf_with(1 << 16);
	size_t i;

	parse_text(w, sv_c(text), true);
	assert_int_equal(w->ds.n, 5);
	for (i = 0; i < 5; i++) {
		assert_int_equal(w->ds.d[i].span.line, want[i].line);
		assert_int_equal(w->ds.d[i].span.col, want[i].col);
		if (want[i].hint != NULL)
			assert_true(sv_eq(w->ds.d[i].hint, sv_c(want[i].hint)));
	}
	cedar_diag_render(&b, "p.dw", sv_c(text), &w->ds.d[1]);
	assert_string_equal(buf_cstr(&b), "p.dw:2:9: error: unexpected scope variable `principl`; "
	                                  "expected `principal`, `action`, or "
	                                  "`resource`\n"
	                                  "  2 | permit (principl, action, resource);\n"
	                                  "    |         ^^^^^^^^\n"
	                                  "  hint: did you mean `principal`?\n");
	buf_clear(&b);
	cedar_diag_json(&b, NULL, &w->ds.d[2]);
	assert_string_equal(buf_cstr(&b), "{\"severity\": \"error\", \"code\": \"parse\", "
	                                  "\"message\": \"`=` is not a valid operator in "
	                                  "this scope; did you mean `==`?\", \"labels\": "
	                                  "[{\"start\": 130, \"len\": 1, \"line\": 4, "
	                                  "\"column\": 20}], \"spanned\": true}");
	buf_fini(&b);
}

static void test_tree(void **state)
{
	static const char text[] = "@id(\"r\") forbid (action in [A::Action::\"x\"], resource is R "
	                           "in G::\"g\") when temporal { t } "
	                           "unless { a && temporal { u{} } };def cedar m(?p) { ?p + 1 };";
	struct world *w = *state;
	struct cedar_parse_opts o = { .dogwood = true, .id_prefix = "policy_" };
	struct cedar_source src;
	const struct cedar_policy *p;

	w->ds = cedar_diags_in(&w->a);
	cedar_parse(w->t, &w->a, SV("permit() when { a && temporal { u{} } };"), &o, &src, &w->ds);
	assert_int_equal(w->ds.errors, 1); /* `a` is no variable, and parsing went on behind it */
	w->ds = cedar_diags_in(&w->a);
	cedar_parse(w->t, &w->a, sv_c(text), &o, &src, &w->ds);
	assert_int_equal(src.n_policy, 1);
	assert_int_equal(src.n_def, 1);
	p = &src.policy[0];
	assert_true(sv_eq(cedar_sv(p->id), SV("policy_0")));
	assert_int_equal(p->effect, CEDAR_FORBID);
	assert_true(sv_eq(cedar_sv(cedar_policy_annotation(p, SV("id"))), SV("r")));
	assert_int_equal(p->principal.op, CEDAR_S_ANY);
	assert_int_equal(p->principal.span.line, 0);
	assert_int_equal(p->action.op, CEDAR_S_IN_SET);
	assert_int_equal(p->resource.op, CEDAR_S_IS_IN);
	assert_int_equal(p->n_leaf, 2);
	assert_int_equal(p->cond[0].e->kind, CEDAR_E_LEAF);
	assert_true(sv_eq(p->cond[0].e->leaf->text, SV(" t ")));
	assert_true(p->cond[1].unless);
	assert_int_equal(p->cond[1].e->arg[1]->leaf->ordinal, 1);
	assert_true(sv_eq(src.def[0].body, SV(" ?p + 1 ")));
	assert_int_equal(src.def[0].n_param, 1);
	o.params = true;
	o.origin = src.def[0].at;
	w->ds = cedar_diags_in(&w->a);
	assert_non_null(cedar_parse_expr(w->t, &w->a, src.def[0].body, &o, &w->ds));
	/* An error in a cut-out text is placed in the whole. */
	assert_null(cedar_parse_expr(w->t, &w->a, SV(" ?p + "), &o, &w->ds));
	assert_int_equal(w->ds.d[0].span.off, src.def[0].at.off + 6);
}

/* Printing a tree and parsing it again gives the same text. */
static void test_print(void **state)
{
	static const char *const exprs[] = { "a.b", "(1 + 2) * 3", "1 - (2 - 3)", "1 - 2 - 3",
		"!(1 == 2)", "!!true", "--5", "-(5)", "-5", "if true then 1 else 2",
		"(if true then 1 else 2) == 2", "context.a && (context.b || context.c)",
		"context has a.b.c", "context has \"a b\"", "context[\"a b\"].c",
		"\"x\" like \"a\\*b*c\\n\"", "principal is A::B in C::\"d\"",
		"(principal is A) == true", "[1, {\"a\": 2}].contains(3)",
		"ip(\"1.2.3.4\").isInRange(ip(\"::1\"))", "principal.getTag(\"x\")",
		"(1 == 2) == (3 < 4)", "-(-5)", "{\"if\": 1}.a" };
	struct world *w = *state;
	size_t i;

	for (i = 1; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		struct cedar_expr *e, *f;
		struct buf b = buf_with(4096), c = buf_with(4096);

		w->ds = cedar_diags_in(&w->a);
		e = cedar_parse_expr(w->t, &w->a, sv_c(exprs[i]), NULL, &w->ds);
		assert_non_null(e);
		cedar_put_expr(&b, e, NULL);
		f = cedar_parse_expr(w->t, &w->a, buf_sv(&b), NULL, &w->ds);
		if (f == NULL)
			fail_msg("%s printed as %s", exprs[i], buf_cstr(&b));
		cedar_put_expr(&c, f, NULL);
		assert_string_equal(buf_cstr(&b), buf_cstr(&c));
		buf_fini(&b);
		buf_fini(&c);
	}
	(void)exprs[0];
}

static void test_policy_print(void **state)
{
	struct world *w = *state;
	struct cedar_source src;
	struct buf b = buf_with(4096);

	w->ds = cedar_diags_in(&w->a);
	cedar_parse(w->t, &w->a,
	    SV("@id(\"r\") permit (principal == A::\"b\", action, resource) when { 1 != 2 && true "
	       "} unless { "
	       "context.a > 3 };"),
	    NULL, &src, &w->ds);
	cedar_put_policy(&b, &src.policy[0], true, NULL);
	assert_string_equal(buf_cstr(&b), "@id(\"r\")\npermit(\n  principal == A::\"b\",\n  "
	                                  "action,\n  resource\n) when {\n  !(1 == 2) && "
	                                  "true && !(!(context.a <= 3))\n};\n");
	buf_fini(&b);
}

/* Of processor time. What is built to find faults is slower, and nobody waits for it. */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SECONDS 1.0
#else
#define SECONDS 20.0
#endif

/* Ten megabytes of nesting of every kind end quickly, in an error. */
static void test_bounds(void **state)
{
	static const char *const unit[] = { "(", "[", "{a:", "!", "-", "if ", "context.a.contains(",
		"1+", "A::", "\"a\" like ", "[(" };
	struct world *w = *state;
	size_t n = (size_t)10 << 20, i, k;
	char *p = malloc(n + 64);
	clock_t t0;

	for (i = 0; i < sizeof(unit) / sizeof(unit[0]); i++) {
		size_t at = (size_t)snprintf(p, 64, "permit(principal,action,resource) when { ");
		size_t u = strlen(unit[i]);

		for (k = at; k + u < n; k += u)
			memcpy(p + k, unit[i], u);
		t0 = clock();
		assert_string_not_equal(parse_text(w, (sv){ p, k }, i % 2 == 0), "ok");
		if ((double)(clock() - t0) / CLOCKS_PER_SEC > SECONDS)
			fail_msg("%s took too long", unit[i]);
		arena_free(&w->a);
	}
	free(p);
	assert_string_equal(parse_text(w, SV("\xff"), true), "the source is not UTF-8 text");
}

/* No allocation that fails may crash or leak. */
static void test_no_memory(void **state)
{
	static const char text[] =
	    "@a(\"b\") permit (principal is A in B::\"c\", action in [Action::\"x\"], "
	    "resource) when { context.a like \"x*y\" && [1, {b: 2}].contains(-3) && "
	    "temporal { f } };def cedar f(?a){ 1 };";
	struct world *w = *state;
	struct cedar_parse_opts o = { .dogwood = true };
	size_t limit;

	for (limit = 16; limit < 40000; limit += 61) {
		struct arena a = { .limit = limit };
		struct cedar_diags ds = cedar_diags_in(&a);
		struct cedar_source src;

		if (cedar_parse(w->t, &a, sv_c(text), &o, &src, &ds) == 0) {
			arena_free(&a);
			return;
		}
		assert_true(ds.errors != 0);
		arena_free(&a);
	}
	fail_msg("never enough memory");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)
	const struct CMUnitTest tests[] = {
		T(test_messages),
		T(test_all_errors),
		T(test_tree),
		T(test_print),
		T(test_policy_print),
		T(test_bounds),
		T(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
