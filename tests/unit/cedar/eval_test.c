/* Expressions: every operator, method and error of spec 3.2 and 3.3, as a table of text and
 * value. */
#include "t.h"

struct row {
	const char *expr, *want;
};

static void check(struct world *w, const struct row *r, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		const char *got = eval_text(w, r[i].expr);

		if (strcmp(got, r[i].want) != 0)
			fail_msg("%s\n  gave %s\n  not  %s", r[i].expr, got, r[i].want);
	}
}
#define CHECK(w, t) check(w, t, sizeof(t) / sizeof(t[0]))

static void test_literals(void **state)
{
	static const struct row t[] = {
		{ "1", "1" },
		{ "-1", "-1" },
		{ "- 1", "-1" },
		{ "--1", "1" },
		{ "-9223372036854775808", "-9223372036854775808" },
		{ "9223372036854775807", "9223372036854775807" },
		{ "9223372036854775808",
		    "parse: integer literal `9223372036854775808` is out of range" },
		{ "--9223372036854775808", "error: integer overflow while attempting to negate the "
		                           "value `-9223372036854775808`" },
		{ "00012", "12" },
		{ "\"a\\n\\u{1F600}\\x41\"", "\"a\\n\xf0\x9f\x98\x80"
		                             "A\"" },
		{ "\"\\q\"", "parse: the input `\\q` is not a valid escape" },
		{ "\"\\*\"", "parse: the input `\\*` is not a valid escape" },
		{ "\"\\x80\"", "parse: the input `\\x80` is not a valid escape" },
		{ "[1, 2, 1]", "[1, 2]" },
		{ "[2, true, \"x\"]", "[true, 2, \"x\"]" },
		{ "{b: 1, \"a\": 2}", "{\"a\": 2, \"b\": 1}" },
		{ "{a: 1, a: 2}", "parse: duplicate key `a` in record literal" },
		{ "A::B::\"x\"", "A::B::\"x\"" },
		{ "principal", "User::\"alice\"" },
		{ "context", "{}" },
	};
	CHECK(*state, t);
}

static void test_logic(void **state)
{
	static const struct row t[] = {
		{ "true && false", "false" },
		{ "false && 1", "false" },
		{ "true && 1", "error: type error: expected bool, got long" },
		{ "1 && true", "error: type error: expected bool, got long" },
		{ "true || 1", "true" },
		{ "false || 1", "error: type error: expected bool, got long" },
		{ "false || false || true", "true" },
		{ "true && true && false && 1", "false" },
		{ "!true", "false" },
		{ "!!true", "true" },
		{ "!!!!!true", "parse: too many occurrences of `!`: at most 4 in a row" },
		{ "!1", "error: type error: expected bool, got long" },
		{ "if true then 1 else 1 + true", "1" },
		{ "if false then 1 else 2", "2" },
		{ "if 1 then 1 else 2", "error: type error: expected bool, got long" },
		{ "(if true then if false then 1 else 2 else 3) == 2", "true" },
		{ "1 == 1 && (2 == 3 || 4 == 4)", "true" },
	};
	CHECK(*state, t);
}

static void test_relations(void **state)
{
	static const struct row t[] = {
		{ "1 == true", "false" },
		{ "1 != true", "true" },
		{ "[1, 2] == [2, 1, 1]", "true" },
		{ "{a: [1]} == {a: [1, 1]}", "true" },
		{ "1 < 2", "true" },
		{ "2 <= 2", "true" },
		{ "2 > 2", "false" },
		{ "2 >= 3", "false" },
		{ "1 < \"a\"", "error: type error: expected long, got string" },
		{ "\"a\" < 1", "error: type error: expected long, got string" },
		{ "\"a\" < \"b\"",
		    "error: type error: expected one of [datetime, duration, long], got string" },
		{ "decimal(\"1.0\") < decimal(\"2.0\")",
		    "error: type error: expected one of [datetime, duration, long], got decimal" },
		{ "duration(\"1h\") < duration(\"61m\")", "true" },
		{ "datetime(\"2024-01-01\") >= datetime(\"2024-01-01T00:00:00Z\")", "true" },
		{ "duration(\"1h\") < datetime(\"2024-01-01\")",
		    "error: type error: expected duration, got datetime" },
		{ "1 < 2 < 3", "parse: multiple relational operators (>, ==, in, etc.) must be "
		               "used with parentheses "
		               "to make ordering explicit" },
		{ "context.x = 5",
		    "parse: `=` is not a valid operator in this scope; did you mean `==`?" },
	};
	CHECK(*state, t);
}

static void test_arithmetic(void **state)
{
	static const struct row t[] = {
		{ "1 + 2 * 3 - 4", "3" },
		{ "10 - 2 - 3", "5" },
		{ "9223372036854775807 + 1", "error: integer overflow while attempting to add the "
		                             "values `9223372036854775807` and "
		                             "`1`" },
		{ "-9223372036854775808 - 1",
		    "error: integer overflow while attempting to subtract the values "
		    "`-9223372036854775808` and `1`" },
		{ "4611686018427387904 * 2",
		    "error: integer overflow while attempting to multiply the values "
		    "`4611686018427387904` and `2`" },
		{ "1 + true", "error: type error: expected long, got bool" },
		{ "-(true)", "error: type error: expected long, got bool" },
		{ "6 / 2", "parse: `/` is not a supported operator" },
		{ "6 % 2", "parse: `%` is not a supported operator" },
	};
	CHECK(*state, t);
}

static void test_sets(void **state)
{
	static const struct row t[] = {
		{ "[1, 2].contains(2)", "true" },
		{ "[1, [2]].contains([2])", "true" },
		{ "1.contains(2)", "error: type error: expected set, got long" },
		{ "[1, 2, 3].containsAll([3, 1])", "true" },
		{ "[1, 2].containsAll([])", "true" },
		{ "[1, 2].containsAll([4])", "false" },
		{ "[1, 2].containsAny([4, 2])", "true" },
		{ "[1, 2].containsAny([])", "false" },
		{ "[1, 2].containsAny(3)", "error: type error: expected set, got long" },
		{ "[].isEmpty()", "true" },
		{ "[1].isEmpty()", "false" },
		{ "[1].isEmpty(1)", "parse: `isEmpty` takes no arguments, but got 1" },
		{ "[1].contains()", "parse: `contains` takes exactly one argument, but got 0" },
		{ "[1].frob()", "parse: unknown method `frob`" },
		{ "contains(1)",
		    "parse: `contains` is a method, not a function; write `e.contains(…)`" },
		{ "[1].ip()", "parse: `ip` is a function, not a method; write `ip(…)`" },
		{ "frob(1)", "parse: `frob` is not a valid function" },
	};
	CHECK(*state, t);
}

static void test_records(void **state)
{
	static const struct row t[] = {
		{ "{a: {b: 1}}.a.b", "1" },
		{ "{\"x y\": 1}[\"x y\"]", "1" },
		{ "{a: 1}.b", "error: record does not have the attribute `b`" },
		{ "1.b", "error: type error: expected one of [record, (entity of type "
		         "`any_entity_type`)], got long" },
		{ "{a: 1} has a", "true" },
		{ "{a: 1} has \"b c\"", "false" },
		{ "{a: {b: {c: 1}}} has a.b.c", "true" },
		{ "{a: {b: {c: 1}}} has a.x.c", "false" },
		{ "{a: 1} has a.b", "error: type error: expected one of [record, (entity of type "
		                    "`any_entity_type`)], got long" },
		{ "1 has a", "error: type error: expected one of [record, (entity of type "
		             "`any_entity_type`)], got long" },
		{ "{a: 1}[\"a\" + 1]",
		    "parse: index access requires a string-literal key, e.g. `record[\"field\"]`" },
		{ "context has ", "parse: unexpected end of input, expected attribute name" },
		{ "{if: 1}", "parse: this identifier is reserved and cannot be used: `if`" },
	};
	CHECK(*state, t);
}

static void test_like(void **state)
{
	static const struct row t[] = {
		{ "\"hello\" like \"h*o\"", "true" },
		{ "\"hello\" like \"h*l\"", "false" },
		{ "\"hello\" like \"*\"", "true" },
		/* Stars side by side, also where nothing is left to match. */
		{ "\"a\" like \"a**\"", "true" },
		{ "\"\" like \"***\"", "true" },
		{ "\"ab\" like \"**a**b**\"", "true" },
		{ "\"a\" like \"a**a\"", "false" },
		{ "\"\" like \"*\"", "true" },
		{ "\"\" like \"\"", "true" },
		{ "\"aa\" like \"a*a*a\"", "false" },
		{ "\"aaa\" like \"a*a*a\"", "true" },
		{ "\"abcbd\" like \"a*b*d\"", "true" },
		{ "\"ab\" like \"ab*ab\"", "false" },
		{ "\"a*b\" like \"a\\*b\"", "true" },
		{ "\"axb\" like \"a\\*b\"", "false" },
		{ "\"a\\\\b\" like \"a\\\\*\"", "true" },
		{ "\"x\" like \"**\"", "true" },
		{ "1 like \"*\"", "error: type error: expected string, got long" },
		{ "\"a\" like \"\\q\"", "parse: the input `\\q` is not a valid escape" },
		{ "\"a\" like 1", "parse: unexpected token `1`, expected string pattern" },
	};
	CHECK(*state, t);
}

static void test_decimal(void **state)
{
	static const struct row t[] = {
		{ "decimal(\"1.0\") == decimal(\"1.0000\")", "true" },
		{ "decimal(\"-0.5\")", "decimal(\"-0.5000\")" },
		{ "decimal(\"-922337203685477.5808\")", "decimal(\"-922337203685477.5808\")" },
		{ "decimal(\"922337203685477.5808\")",
		    "error: error while evaluating `decimal` extension function: overflow when "
		    "converting "
		    "to decimal" },
		{ "decimal(\"1.00000\")", "error: error while evaluating `decimal` extension "
		                          "function: too many digits after the "
		                          "decimal in `1.00000`" },
		{ "decimal(\"1\")", "error: error while evaluating `decimal` extension function: "
		                    "`1` is not a well-formed "
		                    "decimal value" },
		{ "decimal(\"1.2\").lessThan(decimal(\"1.3\"))", "true" },
		{ "decimal(\"1.2\").lessThanOrEqual(decimal(\"1.2\"))", "true" },
		{ "decimal(\"1.2\").greaterThan(decimal(\"1.2\"))", "false" },
		{ "decimal(\"1.2\").greaterThanOrEqual(decimal(\"1.2\"))", "true" },
		{ "decimal(\"1.2\").lessThan(1)", "error: type error: expected decimal, got long" },
		{ "decimal(1)", "error: type error: expected string, got long" },
		{ "decimal(\"1.0\", \"2.0\")", "error: wrong number of arguments provided to "
		                               "extension function `decimal`: expected 1, "
		                               "got 2" },
	};
	CHECK(*state, t);
}

static void test_ip(void **state)
{
	static const struct row t[] = {
		{ "ip(\"10.0.0.1\")", "ip(\"10.0.0.1/32\")" },
		{ "ip(\"::1\")", "ip(\"0:0:0:0:0:0:0:1/128\")" },
		{ "ip(\"10.0.0.1/8\") == ip(\"10.0.0.2/8\")", "false" },
		{ "ip(\"10.0.0.01\")", "error: error while evaluating `ipaddr` extension function: "
		                       "invalid IP address: "
		                       "10.0.0.01" },
		{ "ip(\"1:2:3:4:5:6:7::\").isIpv6()", "true" },
		{ "ip(\"1:2:3:4::5:6:7:8\").isIpv6()", "error: error while evaluating `ipaddr` "
		                                       "extension function: invalid IP address: "
		                                       "1:2:3:4::5:6:7:8" },
		{ "ip(\"10.0.0.1\").isIpv4()", "true" },
		{ "ip(\"127.3.2.1\").isLoopback()", "true" },
		{ "ip(\"127.0.0.1/7\").isLoopback()", "false" },
		{ "ip(\"::1\").isLoopback()", "true" },
		{ "ip(\"::1/127\").isLoopback()", "false" },
		{ "ip(\"224.0.0.1\").isMulticast()", "true" },
		{ "ip(\"ff02::1\").isMulticast()", "true" },
		{ "ip(\"224.0.0.0/4\").isMulticast()", "true" },
		{ "ip(\"224.0.0.0/3\").isMulticast()", "false" },
		{ "ip(\"ff00::/8\").isMulticast()", "true" },
		{ "ip(\"ff00::/7\").isMulticast()", "false" },
		{ "ip(\"127.0.0.0/8\").isLoopback()", "true" },
		{ "ip(\"127.0.0.0/7\").isLoopback()", "false" },
		{ "ip(\"::1/127\").isLoopback()", "false" },
		{ "ip(\"10.1.2.3\").isInRange(ip(\"10.0.0.0/8\"))", "true" },
		{ "ip(\"10.1.2.3/7\").isInRange(ip(\"10.0.0.0/8\"))", "false" },
		{ "ip(\"10.0.0.1/24\").isInRange(ip(\"10.0.0.77/24\"))", "true" },
		{ "ip(\"11.1.2.3\").isInRange(ip(\"10.0.0.0/8\"))", "false" },
		{ "ip(\"::1\").isInRange(ip(\"0.0.0.0/0\"))", "false" },
		{ "ip(\"::1\").isInRange(ip(\"::/0\"))", "true" },
		{ "ip(\"2001:db8::1\").isInRange(ip(\"2001:db8::/32\"))", "true" },
		{ "ip(\"10.0.0.1/33\")", "error: error while evaluating `ipaddr` extension "
		                         "function: error parsing prefix "
		                         "`33`: not a number from 0 to 32" },
		{ "ip(\"10.0.0.1/08\")", "error: error while evaluating `ipaddr` extension "
		                         "function: error parsing prefix "
		                         "`08`: leading zero(s)" },
	};
	CHECK(*state, t);
}

static void test_time(void **state)
{
	static const struct row t[] = {
		{ "datetime(\"1970-01-01\").durationSince(datetime(\"1969-12-31\")).toHours()",
		    "24" },
		{ "datetime(\"2024-02-29T12:00:00.123+0130\") == "
		  "datetime(\"2024-02-29T10:30:00.123Z\")",
		    "true" },
		{ "datetime(\"2023-02-29\")",
		    "error: error while evaluating `datetime` extension function: invalid date: "
		    "2023-02-29" },
		{ "datetime(\"2023-02-2\")", "error: error while evaluating `datetime` extension "
		                             "function: invalid date pattern" },
		{ "datetime(\"2023-02-20T24:00:00Z\")",
		    "error: error while evaluating `datetime` extension function: invalid "
		    "hour/minute/second: 24:00:00" },
		{ "datetime(\"2023-02-20T23:00:00\")", "error: error while evaluating `datetime` "
		                                       "extension function: invalid millisecond "
		                                       "and/or offset pattern" },
		{ "datetime(\"0000-03-01\").durationSince(datetime(\"0000-02-28\")).toDays()",
		    "2" },
		{ "datetime(\"1969-12-31T23:00:00Z\").toDate() == datetime(\"1969-12-31\")",
		    "true" },
		{ "datetime(\"1969-12-31T23:00:00Z\").toTime()", "duration(\"82800000ms\")" },
		{ "datetime(\"1969-12-31\").toTime()", "duration(\"0ms\")" },
		{ "datetime(\"1969-12-31T23:59:59.999Z\").toTime()", "duration(\"86399999ms\")" },
		{ "datetime(\"1969-12-31T23:59:59.999Z\").toDate() == datetime(\"1969-12-31\")",
		    "true" },
		{ "datetime(\"1969-12-31T00:00:00.001Z\").toTime()", "duration(\"1ms\")" },
		{ "datetime(\"2024-01-01T00:00:00+0059\") == datetime(\"2023-12-31T23:01:00Z\")",
		    "true" },
		{ "datetime(\"2024-01-01T00:00:00+0060\")",
		    "error: error while evaluating `datetime` extension function: invalid offset "
		    "range: "
		    "060" },
		{ "datetime(\"2024-01-01\").offset(duration(\"1d\")) == datetime(\"2024-01-02\")",
		    "true" },
		{ "datetime(\"2024-01-01\").offset(duration(\"9223372036854775807ms\"))",
		    "error: error while evaluating `datetime` extension function: overflows when "
		    "adding an "
		    "offset" },
		{ "duration(\"1d2h3m4s5ms\").toMilliseconds()", "93784005" },
		{ "duration(\"-1d2h\").toHours()", "-26" },
		{ "duration(\"-1500ms\").toSeconds()", "-1" },
		{ "duration(\"90s\").toMinutes()", "1" },
		{ "duration(\"49h\").toDays()", "2" },
		{ "duration(\"5ms\") == duration(\"0s5ms\")", "true" },
		{ "duration(\"\")",
		    "error: error while evaluating `duration` extension function: invalid duration "
		    "pattern" },
		{ "duration(\"1s1m\")",
		    "error: error while evaluating `duration` extension function: invalid duration "
		    "pattern" },
		{ "duration(\"-9223372036854775808ms\")", "duration(\"-9223372036854775808ms\")" },
		{ "duration(\"9223372036854775808ms\")", "error: error while evaluating `duration` "
		                                         "extension function: Duration overflows "
		                                         "internal representation" },
	};
	CHECK(*state, t);
}

static void test_entities(void **state)
{
	static const struct row t[] = {
		{ "User::\"alice\" in Group::\"staff\"", "true" },
		{ "User::\"alice\" in Group::\"all\"", "true" },
		{ "User::\"alice\" in User::\"alice\"", "true" },
		{ "User::\"nobody\" in User::\"nobody\"", "true" },
		{ "User::\"nobody\" in Group::\"all\"", "false" },
		{ "User::\"alice\" in [Group::\"x\", Group::\"all\"]", "true" },
		{ "User::\"alice\" in []", "false" },
		{ "User::\"alice\" in [Group::\"all\", 1]",
		    "error: type error: expected (entity of type `any_entity_type`), got long" },
		{ "1 in Group::\"all\"",
		    "error: type error: expected (entity of type `any_entity_type`), got long" },
		{ "User::\"alice\" in 1", "error: type error: expected one of [set, (entity of "
		                          "type `any_entity_type`)], got "
		                          "long" },
		{ "User::\"alice\".age", "30" },
		{ "User::\"alice\" has age", "true" },
		{ "User::\"alice\" has nope", "false" },
		{ "User::\"nobody\" has age", "false" },
		{ "User::\"alice\".nope",
		    "error: `User::\"alice\"` does not have the attribute `nope`" },
		{ "User::\"nobody\".age", "error: entity `User::\"nobody\"` does not exist" },
		{ "User::\"alice\".hasTag(\"k\")", "true" },
		{ "User::\"alice\".getTag(\"k\")", "\"v\"" },
		{ "User::\"alice\".hasTag(\"z\")", "false" },
		{ "User::\"nobody\".hasTag(\"z\")", "false" },
		{ "User::\"alice\".getTag(\"z\")",
		    "error: `User::\"alice\"` does not have the tag `z`" },
		{ "User::\"nobody\".getTag(\"z\")",
		    "error: entity `User::\"nobody\"` does not exist" },
		{ "User::\"alice\".getTag(1)", "error: type error: expected string, got long" },
		{ "principal is User", "true" },
		{ "principal is Group", "false" },
		{ "principal is User in Group::\"all\"", "true" },
		{ "principal is Group in 1", "false" },
		{ "1 is User",
		    "error: type error: expected (entity of type `any_entity_type`), got long" },
		{ "alice",
		    "parse: `alice` is not a valid variable; the valid variables are `principal`, "
		    "`action`, `resource`, and `context`" },
		{ "User::alice",
		    "parse: `User::alice` is not a valid entity reference; try "
		    "`User::alice::\"<id>\"` for a specific entity, or `is User::alice` to match "
		    "by type" },
		{ "User::{a: 1}",
		    "parse: entity initializer syntax `Type::{ … }` is not supported" },
		{ "principal(1)",
		    "parse: unexpected call: only extension functions and methods can be called" },
	};
	struct world *w = *state;
	struct cedar_entity_data e = { .uid = uid(w, "User::\"alice\"") };
	struct cedar_field f[1], g[1];
	struct cedar_value v;
	struct cedar_uid parent[2] = { uid(w, "Group::\"staff\""), uid(w, "Group::\"all\"") };
	struct box_err err;

	f[0] = (struct cedar_field){ cedar_intern(w->t, SV("age")), cedar_long(30) };
	assert_int_equal(cedar_record_make(&w->a, f, 1, &v, NULL), 0);
	e.attrs = v.rec;
	g[0] = (struct cedar_field){ cedar_intern(w->t, SV("k")),
		cedar_string(cedar_intern(w->t, SV("v"))) };
	assert_int_equal(cedar_record_make(&w->a, g, 1, &v, NULL), 0);
	e.tags = v.rec;
	e.parents = &parent[0];
	e.n_parents = 1;
	assert_int_equal(cedar_entities_add(&w->es, &e, &err), 0);
	/* The same again is nothing new; another of its name is refused. */
	assert_int_equal(cedar_entities_add(&w->es, &e, &err), 0);
	assert_int_equal(w->es.n, 1);
	e.parents = &parent[1];
	assert_int_equal(cedar_entities_add(&w->es, &e, &err), -1);
	e = (struct cedar_entity_data){ .uid = parent[0], .parents = &parent[1], .n_parents = 1 };
	assert_int_equal(cedar_entities_add(&w->es, &e, &err), 0);
	assert_int_equal(cedar_entities_close(&w->es, &err), 0);
	CHECK(w, t);
	e = (struct cedar_entity_data){ .uid = parent[1], .parents = &parent[0], .n_parents = 1 };
	assert_int_equal(cedar_entities_add(&w->es, &e, &err), 0);
	w->es.e[0].ancestors = w->es.e[1].ancestors = NULL;
	assert_int_equal(cedar_entities_close(&w->es, &err), -1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)
	const struct CMUnitTest tests[] = {
		T(test_literals),
		T(test_logic),
		T(test_relations),
		T(test_arithmetic),
		T(test_sets),
		T(test_records),
		T(test_like),
		T(test_decimal),
		T(test_ip),
		T(test_time),
		T(test_entities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
