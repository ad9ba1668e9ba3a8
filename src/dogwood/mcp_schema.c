/* See mcp_schema.h. */
#include "dogwood/mcp_schema.h"

#include <string.h>

#include "base/json.h"
#include "cedar/value.h"
#include "dogwood/mcp_template.h"

#include "base/ban.h"

struct gen {
	const struct dw_mcp_opts *o;
	struct buf enums; /* TEMPLATE: declarations of enumerated types, before the actions */
	json_t *names;    /* of these types; each with the highest number behind it */
	struct dw_mcp_template own; /* with o->custom */
	sv tool;
	size_t left_out;
	struct box_err *err;
};

void dw_mcp_namespace(sv server, struct buf *out)
{
	if (server.n == 0 || (server.p[0] >= '0' && server.p[0] <= '9'))
		buf_put_byte(out, '_');
	for (size_t i = 0; i < server.n; i++) {
		char c = server.p[i];
		bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		          (c >= '0' && c <= '9') || c == '_';

		buf_put_byte(out, (uint8_t)(ok ? c : '_'));
	}
}

static sv str_of(const json_t *v)
{
	return (sv){ json_string_value(v), json_string_length(v) };
}

/* Append a name for the enumerated type of a field: the tool's, the side's and the field's. Two
 * fields of a tool can come to the same (in records, or "a b" and "a-b"): then _2, _3 …, in the
 * order of the manifest. */
static void enum_name(struct gen *g, sv field, const char *side, struct buf *out)
{
	AUTO_BUF b = buf_with(DW_MCP_JSON_MAX);
	json_t *n;
	size_t base;

	dw_mcp_namespace(g->tool, &b);
	buf_putf(&b, "_%s_", side);
	for (size_t i = 0; i < field.n; i++) {
		char c = field.p[i];
		bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		          (c >= '0' && c <= '9') || c == '_';

		buf_put_byte(&b, (uint8_t)(ok ? c : '_'));
	}
	base = b.n;
	n = buf_ok(&b) ? json_object_get(g->names, buf_cstr(&b)) : NULL;
	while (n != NULL && buf_ok(&b) && json_object_get(g->names, buf_cstr(&b)) != NULL) {
		if (json_integer_set(n, json_integer_value(n) + 1) < 0)
			out->bad = true;
		b.n = base;
		buf_putf(&b, "_%lld", (long long)json_integer_value(n));
	}
	if (!buf_ok(&b) || json_object_set_new(g->names, buf_cstr(&b), json_integer(1)) < 0)
		out->bad = true;
	buf_put_sv(out, buf_sv(&b));
}

static bool all_strings(const json_t *list)
{
	size_t i;
	json_t *v;

	json_array_foreach(list, i, v)
	{
		if (!json_is_string(v))
			return false;
	}
	return json_array_size(list) != 0;
}

/* The type of a schema, appended. false: it has none (nothing was appended). */
static bool type(
    struct gen *g, const json_t *s, sv field, const char *side, unsigned depth, struct buf *out);

static bool enumerated(
    struct gen *g, const json_t *list, sv field, const char *side, struct buf *out)
{
	AUTO_BUF name = buf_with(DW_MCP_JSON_MAX);
	size_t i;
	json_t *v;

	if (!all_strings(list))
		return false;
	if (g->o->style == DW_MCP_BOX) {
		buf_put_c(out, "String");
		return true;
	}
	enum_name(g, field, side, &name);
	buf_put_sv(out, buf_sv(&name));
	buf_put_c(&g->enums, "  entity ");
	buf_put_sv(&g->enums, buf_sv(&name));
	buf_put_c(&g->enums, " enum [");
	json_array_foreach(list, i, v)
	{
		if (i != 0)
			buf_put_c(&g->enums, ", ");
		cedar_put_quoted(&g->enums, str_of(v));
	}
	buf_put_c(&g->enums, "];\n");
	if (!buf_ok(&name))
		out->bad = true;
	return true;
}

static bool required(const json_t *s, const char *key)
{
	const json_t *list = json_object_get(s, "required"), *v;
	size_t i;

	json_array_foreach(list, i, v)
	{
		if (json_is_string(v) && strcmp(json_string_value(v), key) == 0)
			return true;
	}
	return false;
}

static void record(
    struct gen *g, const json_t *s, const char *side, unsigned depth, struct buf *out)
{
	json_t *props = json_object_get(s, "properties"), *v;
	bool first = true;
	const char *key;

	buf_put_byte(out, '{');
	json_object_foreach(props, key, v)
	{
		AUTO_BUF t = buf_with(DW_MCP_JSON_MAX);

		if (!type(g, v, sv_c(key), side, depth + 1, &t)) {
			g->left_out++;
			continue;
		}
		buf_put_c(out, first ? " " : ", ");
		first = false;
		cedar_put_quoted(out, sv_c(key));
		buf_put_c(out, required(s, key) ? ": " : "?: ");
		buf_put_sv(out, buf_sv(&t));
		if (!buf_ok(&t))
			out->bad = true;
	}
	buf_put_c(out, first ? "}" : " }");
}

static bool type(
    struct gen *g, const json_t *s, sv field, const char *side, unsigned depth, struct buf *out)
{
	const json_t *list = json_object_get(s, "enum");
	AUTO_BUF item = buf_with(DW_MCP_JSON_MAX);
	sv name;

	if (depth > DW_MCP_DEPTH || !json_is_object(s))
		return false;
	if (json_is_array(list) && all_strings(list))
		return enumerated(g, list, field, side, out);
	if (!js_str(s, "type", &name))
		return false;
	if (sv_eq(name, SV("string"))) {
		buf_put_c(out, "String");
	} else if (sv_eq(name, SV("integer"))) {
		buf_put_c(out, "Long");
	} else if (sv_eq(name, SV("boolean"))) {
		buf_put_c(out, "Bool");
	} else if (sv_eq(name, SV("number"))) {
		/* Box decides numbers as Long; elsewhere a fraction would be lost. */
		if (g->o->style == DW_MCP_TEMPLATE && !g->o->as_decimal)
			return false;
		buf_put_c(out, g->o->style == DW_MCP_BOX ? "Long" : "decimal");
	} else if (sv_eq(name, SV("object"))) {
		record(g, s, side, depth, out);
	} else if (sv_eq(name, SV("array"))) {
		if (!type(g, json_object_get(s, "items"), field, side, depth + 1, &item))
			return false;
		buf_put_c(out, "Set<");
		buf_put_sv(out, buf_sv(&item));
		buf_put_byte(out, '>');
		if (!buf_ok(&item))
			out->bad = true;
	} else {
		return false;
	}
	return true;
}

static int tool(struct gen *g, const json_t *t, struct buf *out)
{
	bool box = g->o->style == DW_MCP_BOX, own = !box && g->o->custom.p != NULL;

	if (!json_is_object(t) || !js_str(t, "name", &g->tool) || g->tool.n == 0)
		return box_fail(g->err, BOX_EPARSE, 0, "tools/list: a tool has no name");
	buf_put_c(out, "  action ");
	cedar_put_quoted(out, g->tool);
	if (own) {
		buf_put_c(out, " in [");
		buf_put_sv(out, buf_sv(&g->own.parent));
		buf_put_c(out, "] appliesTo { principal: [");
		buf_put_sv(out, buf_sv(&g->own.principals));
		buf_put_c(out, "], resource: [");
		buf_put_sv(out, buf_sv(&g->own.resources));
		buf_put_c(out, "], context: { input: ");
	} else {
		buf_put_c(out, box ? " appliesTo { principal: [Agent], resource: [Resource], "
		                     "context: { input: "
		                   : " in [Action::\"CallTool\"] appliesTo { principal: [User], "
		                     "resource: [Gateway], context: { input: ");
	}
	record(g, json_object_get(t, "inputSchema"), "Input", 0, out);
	if (!box && g->o->outputs && json_is_object(json_object_get(t, "outputSchema"))) {
		buf_put_c(out, ", output?: ");
		record(g, json_object_get(t, "outputSchema"), "Output", 0, out);
	}
	if (own)
		buf_put_sv(out, buf_sv(&g->own.members));
	buf_put_c(out, box || own ? " } };\n" : ", system: SystemContext } };\n");
	return 0;
}

static int unique(const json_t *tools, struct box_err *err)
{
	AUTO_JSON seen = json_object();
	size_t i;
	json_t *t;
	sv name;

	if (seen == NULL)
		return box_nomem(err, "a schema");
	json_array_foreach(tools, i, t)
	{
		if (!js_str(t, "name", &name))
			continue;
		if (json_object_get(seen, name.p) != NULL)
			return box_fail(err, BOX_EPARSE, 0, "tools/list: a tool is named twice");
		if (json_object_set_new(seen, name.p, json_true()) < 0)
			return box_nomem(err, "a schema");
	}
	return 0;
}

static const char template_head[] =
    "  entity User;\n"
    "  entity Gateway;\n"
    "  type SystemContext = { now: datetime };\n"
    "  action \"Mcp\" appliesTo { principal: [User], resource: [Gateway], context: { system: "
    "SystemContext, isOutput: Bool, output?: {} } };\n"
    "  action \"CallTool\" in [Action::\"Mcp\"] appliesTo { principal: [User], resource: "
    "[Gateway], context: { system: SystemContext, "
    "isOutput: Bool, output?: {} } };\n";

static void put_namespace(const struct gen *g, sv actions, struct buf *out)
{
	const struct dw_mcp_opts *o = g->o;
	bool box = o->style == DW_MCP_BOX, own = !box && o->custom.p != NULL;
	sv name = own ? cedar_sv(g->own.ns->name) : o->name.n != 0 ? o->name : SV("Drupe");

	if (!own || name.n != 0) {
		buf_put_c(out, "namespace ");
		if (box)
			dw_mcp_namespace(o->name, out);
		else
			buf_put_sv(out, name);
		buf_put_c(out, " {\n");
	}
	if (!own)
		buf_put_c(out, box ? "  entity Agent;\n  entity Resource;\n" : template_head);
	buf_put_sv(out, buf_sv(&g->enums));
	buf_put_sv(out, actions);
	if (!own || name.n != 0)
		buf_put_c(out, "}\n");
	if (!buf_ok(&g->enums))
		out->bad = true;
}

static int put_schema(struct gen *g, const json_t *tools, struct buf *out, struct box_err *err)
{
	AUTO_BUF actions = buf_with(DW_MCP_JSON_MAX * 4), whole = buf_with(DW_MCP_JSON_MAX * 8);
	bool own = g->o->style == DW_MCP_TEMPLATE && g->o->custom.p != NULL;
	struct buf *to = own ? &whole : out;
	const json_t *t;
	size_t i;

	if (own && dw_mcp_template_read(&g->own, g->o->custom, err) < 0)
		return -1;
	json_array_foreach(tools, i, t)
	{
		if (tool(g, t, &actions) < 0)
			return -1;
	}
	put_namespace(g, buf_sv(&actions), to);
	if (buf_ok(to) && own && dw_mcp_template_put(&g->own, buf_sv(to), out, err) < 0)
		return -1;
	if (!buf_ok(&actions) || !buf_ok(to) || !buf_ok(out))
		return box_fail(
		    err, BOX_ELIMIT, 0, "tools/list: the schema of its tools is too large");
	return 0;
}

int dw_mcp_schema(sv manifest, const struct dw_mcp_opts *o, struct buf *out, size_t *left_out,
    struct box_err *err)
{
	struct js_limits lim = { DW_MCP_JSON_MAX, 200000, 64 };
	AUTO_JSON doc = js_parse(manifest, lim, err);
	struct gen g = { .o = o, .enums = buf_with(DW_MCP_JSON_MAX * 4), .err = err };
	json_t *tools = doc;
	int r;

	if (doc == NULL)
		return box_wrap(err, "tools/list");
	if (json_is_object(tools) && json_is_object(json_object_get(tools, "result")))
		tools = json_object_get(tools, "result");
	if (json_is_object(tools))
		tools = json_object_get(tools, "tools");
	if (!json_is_array(tools))
		return box_fail(err, BOX_EPARSE, 0, "tools/list: there is no list of tools");
	if (json_array_size(tools) > DW_MCP_TOOLS_MAX)
		return box_fail(
		    err, BOX_ELIMIT, 0, "tools/list: more than %d tools", DW_MCP_TOOLS_MAX);
	if (unique(tools, err) < 0)
		return -1;
	g.names = json_object();
	if (g.names == NULL)
		return box_nomem(err, "a schema");
	r = put_schema(&g, tools, out, err);
	json_decref(g.names);
	dw_mcp_template_fini(&g.own);
	buf_fini(&g.enums);
	if (left_out != NULL)
		*left_out = g.left_out;
	return r;
}
