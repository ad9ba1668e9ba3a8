/* The temporal language: what parses to what, macros, what is refused as unsafe, event schemas.
 * Conditions are loaded without an action schema, so only the language speaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "dogwood/set_impl.h"

#include "base/ban.h"

static struct dw_set *load_with(const char *source, const char *events, const char *macros,
    struct dw_diags *d, struct box_err *err)
{
	struct dw_load in = { .policy = { SV("t.dw"), sv_c(source) }, .tick = DW_TICK_SECOND };

	in.event_schema = (struct dw_source){ SV("t.dwschema"), sv_c(events) };
	if (macros != NULL)
		in.macros = (struct dw_source){ SV("m.dw"), sv_c(macros) };
	return dw_load(&in, d, err);
}

static const char plain[] =
    "decision event <A>::request { ...inputs(A) } event <A>::response { ...inputs(A) }";

/* The condition of `permit … when temporal { text }`, printed. */
static void printed(const char *text, const char *defs, struct buf *out)
{
	AUTO_BUF src = buf_with(1 << 20);
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err = { 0 };
	struct dw_set *s;

	buf_putf(&src, "%s permit (principal, action, resource) when temporal { %s };", defs, text);
	s = load_with(buf_cstr(&src), plain, NULL, &d, &err);
	if (s == NULL)
		fail_msg("%s: %s", text, err.msg);
	assert_int_equal(s->nleaves, 1);
	dw_cond_print(out, s->leaves[0].cond);
	dw_set_free(s);
}

static void parses_to(void **state)
{
	static const char *const cases[][2] = {
		{ "A::\"x\"::request{}", "A::\"x\"::request{}" },
		{ "A::B::\"x\"::request{ f.g: 1, h: context.a.b }",
		    "A::B::\"x\"::request{ f.g: 1, h: context.a.b }" },
		{ "A::\"x\"::request{ a: 1 }{ b: 2 }", "A::\"x\"::request{ a: 1, b: 2 }" },
		{ "formerly within 1h A::\"x\"::request{} && B::\"y\"::request{}",
		    "formerly within 1h A::\"x\"::request{} && B::\"y\"::request{}" },
		{ "formerly within 1 h (A::\"x\"::request{} && B::\"y\"::request{})",
		    "formerly within 1h (A::\"x\"::request{} && B::\"y\"::request{})" },
		{ "!A::\"x\"::request{} since within 5m B::\"y\"::request{}",
		    "!A::\"x\"::request{} since within 5m B::\"y\"::request{}" },
		{ "!(A::\"x\"::request{} since within 5m B::\"y\"::request{})",
		    "!(A::\"x\"::request{} since within 5m B::\"y\"::request{})" },
		{ "(A::\"x\"::request{} && B::\"y\"::request{}) && C::\"z\"::request{}",
		    "A::\"x\"::request{} && B::\"y\"::request{} && C::\"z\"::request{}" },
		{ "exists (u: String). A::\"x\"::request{ f: u } && u == \"b\"",
		    "exists (u: String). (A::\"x\"::request{ f: u } && u == \"b\")" },
		{ "(count for (t: Timepoint). where (formerly within 1d (A::\"x\"::request{} && "
		  "tp(t)))) >= 3",
		    "(count for (t: Timepoint). where (formerly within 1d (A::\"x\"::request{} && "
		    "tp(t)))) >= 3" },
		{ "3 <= count for (t: Timepoint). where (A::\"x\"::request{} && tp(t))",
		    "3 <= (count for (t: Timepoint). where (A::\"x\"::request{} && tp(t)))" },
		{ "(sum a for (a: Long), (t: Timepoint). where (formerly within 1s "
		  "(A::\"x\"::request{ f: a } && tp(t)))) > -5",
		    "(sum a for (a: Long), (t: Timepoint). where (formerly within 1s "
		    "(A::\"x\"::request{ f: a } && tp(t)))) > -5" },
		{ "A::\"x\"::request{ f: *, g: _, h: [1, \"a\"], i: decimal(\"1.5\"), j: true, k: "
		  "N::T::\"e\" }",
		    "A::\"x\"::request{ f: *, g: *, h: [1, \"a\"], i: decimal(\"1.5\"), j: true, "
		    "k: N::T::\"e\" }" },
		{ "A::\"x\"::request{ f: principal, g: principal.dept, h: resource }",
		    "A::\"x\"::request{ f: principal, g: principal.dept, h: resource }" },
		{ "previous within 10s (A::\"x\"::request{} && context.a != 3) // behind\n",
		    "previous within 10s (A::\"x\"::request{} && context.a != 3)" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_BUF out = buf_with(65536), again = buf_with(65536);

		printed(cases[i][0], "", &out);
		assert_string_equal(buf_cstr(&out), cases[i][1]);
		/* What is printed reads back as the same. */
		printed(buf_cstr(&out), "", &again);
		assert_string_equal(buf_cstr(&again), cases[i][1]);
	}
}

static void macros_expand(void **state)
{
	static const char *const cases[][3] = {
		{ "", "count_within(1h, A::\"x\"::request{ f: context.a }) >= 3",
		    "(count for (t$54: Timepoint). where (formerly within 1h (A::\"x\"::request{ "
		    "f: context.a } && tp(t$54)))) >= 3" },
		{ "", "sum_within(a, 1d, A::\"x\"::request{ f: a }) > 10",
		    "(sum a for (a: Long), (t$54: Timepoint). where (formerly within 1d "
		    "(A::\"x\"::request{ f: a } && tp(t$54)))) > 10" },
		{ "", "count_distinct_within(u, 1h, A::\"x\"::request{ f: u }) > 5",
		    "(count for (u: String). where (formerly within 1h A::\"x\"::request{ f: u })) "
		    "> 5" },
		{ "", "bind(n, count_within(1h, A::\"x\"::request{}), n > 2 && n < 5)",
		    "exists (n: Long). ((count for (t$62: Timepoint). where (formerly within 1h "
		    "(A::\"x\"::request{} && tp(t$62)))) == n "
		    "&& n > 2 && n < 5)" },
		{ "def temporal m(?s, ?v) { formerly within 1h ?s{ g: ?v } };",
		    "m(A::\"x\"::request{ f: 1 }, context.b)",
		    "formerly within 1h A::\"x\"::request{ f: 1, g: context.b }" },
		{ "def temporal count_within(?w, ?s) { formerly within ?w ?s };",
		    "count_within(2h, A::\"x\"::request{})",
		    "formerly within 2h A::\"x\"::request{}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_BUF out = buf_with(65536);

		printed(cases[i][1], cases[i][0], &out);
		assert_string_equal(buf_cstr(&out), cases[i][2]);
	}
}

struct refusal {
	const char *source;
	const char *message;
};
#define P(text) "permit (principal, action, resource) when temporal { " text " };"

static const struct refusal refusals[] = {
	{ P("formerly within 1h"), "unexpected end of input, expected condition" },
	{ P("formerly within"), "unexpected end of input, expected integer" },
	{ P("A::\"x\"::request"), "unexpected end of input, expected `{`" },
	{ P("x"), "unexpected end of input, expected comparison operator" },
	{ P("A::\"x\"::request{ f: 1, }"), "unexpected token `}`, expected field name" },
	{ P("A::\"x\"::request{} || A::\"x\"::request{}"), "unexpected token `||`" },
	{ P("?x"), "stray macro parameter reference `?x` outside a macro body" },
	{ P("tp($x)"), "stray macro binder reference `$x`" },
	{ P("exists (x: String). (A::\"x\"::request{ f: (count for (t: Timepoint). where tp(t)) "
	    "})"),
	    "an aggregate (`sum`/`count`) may appear only as the immediate operand of a "
	    "comparison, not as a predicate-argument "
	    "value or nested in another term" },
	{ P("exists (context: String). A::\"x\"::request{ f: 1 }"),
	    "`context` is a reserved word and cannot be used as a binder name; `principal`, "
	    "`action`, `resource`, and `context` are "
	    "the Cedar request variables — rename the `exists` / `for` / `tp` variable" },
	{ P("(sum a for (u: String). where A::\"x\"::request{ f: u }) > 1"),
	    "aggregation sums `a`, which is not one of its `for` binders (u); the summed variable "
	    "must appear in the `for` list (the "
	    "sum is computed over the `for` columns)" },
	{ P("(count for (t: Timepoint). where (A::\"x\"::request{ f: u } && tp(t))) > 1"),
	    "variable `u` is used in the aggregation body but is bound by neither the `for` list "
	    "(t) nor an enclosing binder; add it "
	    "to the `for` list" },
	{ P("(count for (t: Timepoint), (g: String). where (A::\"x\"::request{} && tp(t))) > 1"),
	    "`for`-variable `g` does not occur in the aggregation body (t); a group-by variable "
	    "must be used in the `where` body, "
	    "otherwise the grouping ranges over an unbounded domain" },
	{ P("exists (v: Long). (v > 3 && A::\"x\"::request{ f: v })"),
	    "variable `v` is used in a filter (a comparison or negation) that is not "
	    "range-restricted by a preceding conjunct; place "
	    "a conjunct that binds `v` (a predicate, `tp`, or a binding equality) before it" },
	{ P("exists (n: Long). exists (u: String). ((count for (t: Timepoint). where (formerly "
	    "within 1h (A::\"x\"::request{ f: u } "
	    "&& tp(t)))) == n && A::\"y\"::request{ f: u })"),
	    "the equality binding `n` reads `u` inside its aggregate operand (`u` is used in the "
	    "aggregation body but not bound by "
	    "its `for` list), and `u` is not range-restricted by a preceding conjunct; place the "
	    "conjunct that binds `u` before the "
	    "equality, widening the `exists` scope if needed" },
	{ "def temporal count(?a) { ?a };",
	    "macro name `count` is reserved (built-in or keyword); pick a different name" },
	{ "def temporal m(?a) { ?a }; def temporal m(?a) { ?a };",
	    "duplicate macro definition `m`" },
	{ "def temporal m(?a) { ?b };",
	    "in `def temporal` body: `?b` does not name a declared parameter" },
	{ "def cedar m(?a) { ?b };",
	    "in `def cedar` body: `?b` does not name a declared parameter" },
	{ "def cedar m(?a) { m(?a) };", "in `def cedar` body: macro-in-macro is not supported" },
	{ "def temporal m(?a) { count_within(1h, ?a) > 1 };",
	    "in `def temporal` body: macro-in-macro is not supported" },
	{ "def cedar m(?a) { ?a }; permit (principal, action, resource) when { m(1, 2) };",
	    "macro `m` expects 1 argument(s), got 2" },
	{ "permit (principal, action, resource) when { m(1) };",
	    "unknown function or macro `m` (not a Cedar built-in and not a declared macro)" },
	{ "permit (principal, action, resource) when { count_within(1) };",
	    "macro `count_within` is a temporal macro and cannot be called in a cedar expression "
	    "position" },
	{ "def cedar m(?a) { ?a }; " P("m(1)"),
	    "macro `m` is a cedar macro and cannot be called in a temporal condition position" },
	{ P("sum_within(1, 1d, A::\"x\"::request{}) > 1"),
	    "parameter `?a` is used in a binder position, so the call-site argument must be a "
	    "single identifier" },
	{ P("count_within(1h, A::\"x\"::request{})"),
	    "macro `count_within` is an aggregate and may appear only as the operand of a "
	    "comparison" },
	{ "permit (principal == ?principal, action, resource);",
	    "the template slot `?principal` is never filled; a rule must name its entities" },
};

static void refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		AUTO_DW_DIAGS d = { 0 };
		AUTO_BUF got = buf_with(1 << 20);
		struct box_err err = { 0 };
		struct dw_set *s = load_with(refusals[i].source, plain, NULL, &d, &err);

		if (s != NULL)
			fail_msg("accepted: %s", refusals[i].source);
		dw_diags_messages(&d, DW_ERROR, &got);
		if (!sv_eq(buf_sv(&got), sv_c(refusals[i].message)))
			fail_msg("%s\ngot:    %s\nwanted: %s", refusals[i].source, buf_cstr(&got),
			    refusals[i].message);
	}
}

static const struct refusal schemas[] = {
	{ "", "event schema parse error: the schema declares no event" },
	{ "event <A>::request", "event schema parse error: unexpected end of input, expected `{`" },
	{ "max_window = 0h event <A>::request {}", "max_window must be greater than zero; a zero "
	                                           "cap would refuse every temporal condition" },
	{ "max_window = 99999999999999999999h event <A>::request {}",
	    "max_window amount `99999999999999999999` is out of range" },
	{ "event <A>::request { ...inputs(B) }", "in spread: selector argument `B` does not name "
	                                         "the declared action binder `A` (write `A`)" },
	{ "event <A>::request { x: principalType(B) }",
	    "in field type: selector argument `B` does not name the declared action binder `A` "
	    "(write `A`)" },
	{ "event <A>::request { pin x: String }",
	    "pinned field `x` is missing its pin value; write `pin x: <type> = context.<...>`" },
	{ "event <A>::request { x: String = context.x }",
	    "field `x` has a `= context.<...>` value but is not marked `pin`; " },
	{ "event <A>::request { pin x: { y: String } = context.x }",
	    "field `x` is a record group and cannot be pinned; pin a leaf field inside it "
	    "instead" },
	{ "event <A>::request { ...principalType(A) }",
	    "selector `principalType` cannot be spread (it yields entity types, not a field "
	    "record); use it as a field type instead" },
	{ "event <A>::request { x: inputs(A) }",
	    "selector `inputs` cannot be used as a field type (it yields a field record, not a "
	    "type); spread it with `...` instead" },
};

static void event_schemas(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(schemas) / sizeof(schemas[0]); i++) {
		AUTO_DW_DIAGS d = { 0 };
		AUTO_BUF got = buf_with(1 << 20);
		struct box_err err = { 0 };

		assert_null(load_with("", schemas[i].source, NULL, &d, &err));
		dw_diags_messages(&d, DW_ERROR, &got);
		if (!sv_starts(buf_sv(&got), sv_c(schemas[i].message)))
			fail_msg("%s\ngot:    %s\nwanted: %s", schemas[i].source, buf_cstr(&got),
			    schemas[i].message);
	}
}

static void pins(void **state)
{
	static const struct {
		const char *events;
		size_t n;
	} cases[] = {
		{ "decision event <A>::request { pin callerPrincipal: principalType(A) = principal "
		  "}",
		    1 },
		{ "decision event <A>::request { pin s: String = context.s, pin callerResource: "
		  "resourceType(A) = resource }",
		    2 },
		{ "decision event <A>::request { pin s: String = context.t }", 0 },
		{ "decision event <A>::request { pin s: String = context.s } event <A>::response { "
		  "s: String }",
		    0 },
		{ "decision event <A>::request { s: String }", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_DW_DIAGS d = { 0 };
		struct box_err err = { 0 };
		struct dw_set *s = load_with("", cases[i].events, NULL, &d, &err);

		if (s == NULL)
			fail_msg("%s", err.msg);
		assert_int_equal(dw_set_npins(s), cases[i].n);
		assert_true(dw_set_is_decision(s, SV("request")));
		assert_false(dw_set_is_decision(s, SV("response")));
		dw_set_free(s);
	}
}

static void depth_is_bounded(void **state)
{
	static const char *const open[] = { "(", "!", "formerly within 1h (", "f(",
		"exists (x: Long). (", "[" };

	(void)state;
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++) {
		AUTO_BUF src = buf_with(8 << 20);
		AUTO_DW_DIAGS d = { 0 };
		struct box_err err = { 0 };

		buf_put_c(&src, "permit (principal, action, resource) when temporal { ");
		for (int k = 0; k < 200000; k++)
			buf_put_c(&src, open[i]);
		buf_put_c(&src, " };");
		assert_null(load_with(buf_cstr(&src), plain, NULL, &d, &err));
		assert_true(d.errors != 0);
	}
}

static void leaf_keys(void **state)
{
	/* Text that means the same has one key, wherever it stands; another window, field or value
	 * has another. */
	static const char *const same[] = {
		P("count_within(1h, A::\"x\"::request{ f: 1 }) >= 3"),
		"// moved\n" P("count_within(60m, A::\"x\"::request{ f: 1 })   >= 3"),
	};
	static const char *const others[] = {
		P("count_within(2h, A::\"x\"::request{ f: 1 }) >= 3"),
		P("count_within(1h, A::\"x\"::request{ f: \"1\" }) >= 3"),
		P("count_within(1h, A::\"x\"::request{ g: 1 }) >= 3"),
		P("count_within(1h, A::\"x\"::request{ f: 1 }) >= 4"),
		P("count_within(1h, A::\"x\"::response{ f: 1 }) >= 3"),
	};
	struct dw_set *s[7];
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err = { 0 };

	(void)state;
	for (int i = 0; i < 7; i++) {
		s[i] = load_with(i < 2 ? same[i] : others[i - 2], plain, NULL, &d, &err);
		if (s[i] == NULL)
			fail_msg("%s", err.msg);
	}
	assert_true(sv_eq(dw_set_leaf(s[0], 0)->key, dw_set_leaf(s[1], 0)->key));
	assert_int_equal(dw_set_leaf(s[0], 0)->reach, 3600);
	for (int i = 2; i < 7; i++)
		assert_false(sv_eq(dw_set_leaf(s[0], 0)->key, dw_set_leaf(s[i], 0)->key));
	for (int i = 0; i < 7; i++)
		dw_set_free(s[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_to),
		cmocka_unit_test(macros_expand),
		cmocka_unit_test(refused),
		cmocka_unit_test(event_schemas),
		cmocka_unit_test(pins),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(leaf_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
