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
	 * system }. Enums are enumerated entity types `<Tool>_Input_<field>`. */
	DW_MCP_TEMPLATE,
};

struct dw_mcp_opts {
	enum dw_mcp_style style;
	sv name;         /* BOX: the server; TEMPLATE: the namespace (empty: "Drupe") */
	bool outputs;    /* TEMPLATE: outputSchema becomes output? */
	bool as_decimal; /* TEMPLATE: `number` is a decimal; otherwise it has no type */
};

/* Append the schema text. *left_out (may be NULL): fields that have no Cedar type. -1: not a
 * tools/list result or bare array of tools, a limit, a tool named twice. */
int dw_mcp_schema(sv manifest, const struct dw_mcp_opts *o, struct buf *out, size_t *left_out,
    struct box_err *err);
/* The namespace of a server: every byte other than an ASCII letter, digit or `_` becomes `_`; `_`
 * goes in front of a leading digit. */
void dw_mcp_namespace(sv server, struct buf *out);
