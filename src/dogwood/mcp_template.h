/* Between mcp_schema.c and mcp_template.c only: a template of the operator's own (mcp_schema.h). */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "cedar/schema.h"

struct dw_mcp_template {
	struct cedar_syms *t;
	struct arena a;
	struct cedar_schema_src src;
	struct cedar_snamespace *ns; /* of the parent action */
	/* Schema text of the pieces: "User, Guest", "Gateway", "CallTool" quoted, ", system: T". */
	struct buf principals, resources, parent, members;
};

/* Read it and find what is annotated. Call dw_mcp_template_fini in any case. */
int dw_mcp_template_read(struct dw_mcp_template *m, sv text, struct box_err *err);
/* Add the declarations of a text in human syntax, `namespace <that of the parent> { … }`, and
 * write the whole to out. */
int dw_mcp_template_put(
    struct dw_mcp_template *m, sv declarations, struct buf *out, struct box_err *err);
void dw_mcp_template_fini(struct dw_mcp_template *m);
