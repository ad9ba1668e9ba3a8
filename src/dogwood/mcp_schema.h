/* mcp_schema: Cedar actions for the tools of an MCP server, from the result of its `tools/list`
 * (dogwood-language.md 11, box-config-and-policy.md 2.7). The JSON comes from the server and is
 * hostile: it is read through base/json.h with limits, names are written as Cedar strings, and what
 * has no Cedar type is left out of the action (and counted), never guessed. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"

#define DW_MCP_JSON_MAX  ((size_t)4 << 20)
#define DW_MCP_DEPTH     16 /* records in records */
#define DW_MCP_TOOLS_MAX 4096

enum dw_mcp_style {
	/* A fragment to append to Box's schema: namespace of the server, its own Agent and
	 * Resource, one action a tool with context { input }. Enums are strings, numbers are Long.
	 */
	DW_MCP_BOX,
	/* A whole schema by the default template: namespace as given, entities User and Gateway,
	 * actions Mcp, CallTool, and one in CallTool for each tool with context { input, output?,
	 * system }. Enums are enumerated entity types `<Tool>_Input_<field>`, with _2 and so on
	 * behind a name that is taken. */
	DW_MCP_TEMPLATE,
};

/* A template of one's own is a Cedar schema, human syntax, with annotations:
 *     @mcp_principal("User")  entity User;          who may call a tool (one or more)
 *     @mcp_resource("Gateway") entity Gateway;      on what (one or more)
 *     @mcp_context("system")  type SystemContext = { now: datetime };
 *                                 a member of each tool's context, by this name (none or more)
 *     @mcp_action("CallTool") action "CallTool" …;  the parent of each tool's action (one)
 * Tools go to the namespace of that action, as actions with context { input, output?, members }.
 * The result is the template with what was added, laid out by cedar_schema_put, its comments
 * gone. */

struct dw_mcp_opts {
	enum dw_mcp_style style;
	sv name;         /* BOX: the server; TEMPLATE: the namespace (empty: "Drupe") */
	bool outputs;    /* TEMPLATE: outputSchema becomes output? */
	bool as_decimal; /* TEMPLATE: `number` is a decimal; otherwise it has no type */
	sv custom;       /* TEMPLATE: a template of one's own; p == NULL: the default one */
};

/* Append the schema text. *left_out (may be NULL): fields that have no Cedar type. -1: not a
 * tools/list result or bare array of tools, a limit, a tool named twice, a template that cannot be
 * used ("template:line:column: …"). */
int dw_mcp_schema(sv manifest, const struct dw_mcp_opts *o, struct buf *out, size_t *left_out,
    struct box_err *err);
/* The namespace of a server: every byte other than an ASCII letter, digit or `_` becomes `_`; `_`
 * goes in front of a leading digit. */
void dw_mcp_namespace(sv server, struct buf *out);
