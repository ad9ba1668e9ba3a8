/* Schemas from tools/list: what they say, that they load, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

#include "dogwood/box_schema.h"
#include "dogwood/mcp_schema.h"
#include "dogwood/policyset.h"

#include "base/ban.h"

static const char manifest[] =
    "{\"tools\": [{\"name\": \"look up\", \"inputSchema\": {\"type\": \"object\", \"properties\": "
    "{\"query\": {\"type\": \"string\"}, "
    "\"limit\": {\"type\": \"integer\"}, \"mode\": {\"enum\": [\"fast\", \"a\\\"b\"]}, \"tags\": "
    "{\"type\": \"array\", \"items\": "
    "{\"type\": \"string\"}}, \"where\": {\"type\": \"object\", \"properties\": {\"x\": {\"type\": "
    "\"number\"}}}, \"odd\": {\"anyOf\": "
    "[]}}, \"required\": [\"query\"]}, \"outputSchema\": {\"properties\": {\"n\": {\"type\": "
    "\"integer\"}}}}, {\"name\": \"ping\"}]}";

static void for_box(void **state)
{
	struct dw_mcp_opts o = { .style = DW_MCP_BOX, .name = SV("1st-server") };
	AUTO_BUF out = buf_with(1 << 20), all = buf_with(1 << 20);
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err = { 0 };
	size_t left = 0;
	struct dw_load in = {
		.policy = { SV("p"),
		    SV("forbid (principal, action == _1st_server::Action::\"look up\", resource) "
		       "when { "
		       "context.input.query like \"*secret*\" };\nforbid (principal, action == "
		       "_1st_server::Action::\"ping\", resource) when temporal { formerly within "
		       "1h "
		       "_1st_server::Action::\"look up\"::request{ input.query: \"x\" } };") },
		.event_schema = { SV("e"), sv_c(dw_box_events) },
		.tick = 1
	};
	struct dw_set *s;

	(void)state;
	assert_return_code(dw_mcp_schema(sv_c(manifest), &o, &out, &left, &err), 0);
	assert_string_equal(buf_cstr(&out),
	    "namespace _1st_server {\n  entity Agent;\n  entity Resource;\n"
	    "  action \"look up\" appliesTo { principal: [Agent], resource: [Resource], context: { "
	    "input: { \"query\": String, \"limit\"?: "
	    "Long, \"mode\"?: String, \"tags\"?: Set<String>, \"where\"?: { \"x\"?: Long } } } };\n"
	    "  action \"ping\" appliesTo { principal: [Agent], resource: [Resource], context: { "
	    "input: {} } };\n}\n");
	assert_int_equal(left, 1);
	buf_put_c(&all, dw_box_actions);
	buf_put_sv(&all, buf_sv(&out));
	in.action_schema = (struct dw_source){ SV("a"), buf_sv(&all) };
	s = dw_load(&in, &d, &err);
	if (s == NULL)
		fail_msg("%s", err.msg);
	assert_true(dw_set_has_action(s, SV("_1st_server::Action"), SV("look up")));
	dw_set_free(s);
}

static void by_template(void **state)
{
	struct dw_mcp_opts o = { .style = DW_MCP_TEMPLATE, .outputs = true, .as_decimal = true };
	AUTO_BUF out = buf_with(1 << 20);
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err = { 0 };
	struct dw_load in = {
		.policy = { SV("p"),
		    SV("permit (principal, action == Drupe::Action::\"look up\", resource) when { "
		       "context.input has mode && context.input.mode == "
		       "Drupe::look_up_Input_mode::\"fast\" };") },
		.tick = 1
	};
	struct dw_set *s;

	(void)state;
	assert_return_code(dw_mcp_schema(sv_c(manifest), &o, &out, NULL, &err), 0);
	in.action_schema = (struct dw_source){ SV("a"), buf_sv(&out) };
	s = dw_load(&in, &d, &err);
	if (s == NULL)
		fail_msg("%s in\n%s", err.msg, buf_cstr(&out));
	dw_set_free(s);
}

static const char own[] =
    "namespace Who { @mcp_principal(\"User\") entity Person; }\n"
    "namespace Acme {\n"
    "  @mcp_principal(\"Guest\") entity Guest; @mcp_resource(\"Gateway\") entity Door;\n"
    "  @mcp_context(\"system\") type Clock = { now: datetime };\n"
    "  @mcp_action(\"CallTool\") action \"Use it\";\n"
    "}\n";

static void by_own_template(void **state)
{
	static const char *const bad[][3] = {
		{ "@mcp_action(\"CallTool\")", "", "template: no action has @mcp_action" },
		{ "action \"Use it\"", "action \"Use it\"; @mcp_action action other",
		    "template:5:" },
		{ "@mcp_resource(\"Gateway\")", "", "template: no entity has @mcp_resource" },
		{ "@mcp_context(\"system\")", "@mcp_context(\"input\")", "template:4:" },
		{ "entity Door", "entity Door Door", "template:3:" },
		{ "type Clock", "entity look_up_Input_mode; type Clock",
		    "template with the tools:" },
		{ "action \"Use it\"", "action ping", "template with the tools:" },
	};
	struct dw_mcp_opts o = { .style = DW_MCP_TEMPLATE, .outputs = true };
	AUTO_BUF out = buf_with(1 << 20);
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err = { 0 };
	struct dw_load in = {
		.policy = { SV("p"),
		    SV("permit (principal is Who::Person, action == Acme::Action::\"look up\", "
		       "resource) when { context.input.query == \"x\" && context.system.now > "
		       "datetime(\"2024-01-01\") };") },
		.tick = 1
	};
	struct dw_set *s;

	(void)state;
	o.custom = sv_c(own);
	assert_return_code(dw_mcp_schema(sv_c(manifest), &o, &out, NULL, &err), 0);
	in.action_schema = (struct dw_source){ SV("a"), buf_sv(&out) };
	s = dw_load(&in, &d, &err);
	if (s == NULL)
		fail_msg("%s in\n%s", err.msg, buf_cstr(&out));
	dw_set_free(s);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		AUTO_BUF t = buf_with(1 << 16), none = buf_with(1 << 20);
		ptrdiff_t at = sv_find_sv(sv_c(own), sv_c(bad[i][0]));

		assert_true(at >= 0);
		buf_put_sv(&t, sv_sub(sv_c(own), 0, (size_t)at));
		buf_put_c(&t, bad[i][1]);
		buf_put_sv(&t, sv_sub(sv_c(own), (size_t)at + strlen(bad[i][0]), SIZE_MAX));
		o.custom = buf_sv(&t);
		err = (struct box_err){ 0 };
		assert_int_equal(dw_mcp_schema(sv_c(manifest), &o, &none, NULL, &err), -1);
		if (!sv_starts(sv_c(err.msg), sv_c(bad[i][2])))
			fail_msg("%s: %s", bad[i][1], err.msg);
	}
}

/* Fields whose enumerated types come to the same name. */
static void same_names(void **state)
{
	static const char tools[] =
	    "[{\"name\": \"t\", \"inputSchema\": {\"properties\": {\"a b\": {\"enum\": [\"1\"]}, "
	    "\"a_b_2\": {\"enum\": [\"2\"]}, \"a-b\": {\"enum\": [\"3\"]}, \"in\": {\"type\": "
	    "\"object\", \"properties\": {\"a_b\": {\"enum\": [\"4\"]}}}}}}]";
	static const char *const want[] = { "entity t_Input_a_b enum [\"1\"]",
		"entity t_Input_a_b_2 enum [\"2\"]", "entity t_Input_a_b_3 enum [\"3\"]",
		"entity t_Input_a_b_4 enum [\"4\"]", "\"a b\"?: t_Input_a_b,",
		"\"a-b\"?: t_Input_a_b_3,", "\"a_b\"?: t_Input_a_b_4 }" };
	struct dw_mcp_opts o = { .style = DW_MCP_TEMPLATE };
	AUTO_BUF out = buf_with(1 << 20);
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err = { 0 };
	struct dw_load in = { .policy = { SV("p"), SV("") }, .tick = 1 };
	struct dw_set *s;

	(void)state;
	assert_return_code(dw_mcp_schema(sv_c(tools), &o, &out, NULL, &err), 0);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		if (sv_find_sv(buf_sv(&out), sv_c(want[i])) < 0)
			fail_msg("no %s in\n%s", want[i], buf_cstr(&out));
	in.action_schema = (struct dw_source){ SV("a"), buf_sv(&out) };
	s = dw_load(&in, &d, &err);
	if (s == NULL)
		fail_msg("%s in\n%s", err.msg, buf_cstr(&out));
	dw_set_free(s);
}

static void refused(void **state)
{
	static const char *const bad[][2] = {
		{ "{", "tools/list: " },
		{ "{\"tools\": 1}", "tools/list: there is no list of tools" },
		{ "[{\"name\": 1}]", "tools/list: a tool has no name" },
		{ "[{\"name\": \"a\"}, {\"name\": \"a\"}]", "tools/list: a tool is named twice" },
	};
	struct dw_mcp_opts o = { .style = DW_MCP_BOX, .name = SV("s") };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		AUTO_BUF out = buf_with(1 << 20);
		struct box_err err = { 0 };

		assert_int_equal(dw_mcp_schema(sv_c(bad[i][0]), &o, &out, NULL, &err), -1);
		assert_true(sv_starts(sv_c(err.msg), sv_c(bad[i][1])));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(for_box),
		cmocka_unit_test(by_template), cmocka_unit_test(by_own_template),
		cmocka_unit_test(same_names), cmocka_unit_test(refused) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
