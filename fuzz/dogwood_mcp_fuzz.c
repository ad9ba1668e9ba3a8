/* What an MCP server says its tools are (hostile JSON), by the box's style, the default template
 * and one of the operator's own. What comes out is a schema: alone, or behind Box's own one. With a
 * line "--" the template stands before it and the manifest behind. */
#include <stdlib.h>

#include "cedar/schema.h"
#include "dogwood/box_schema.h"
#include "dogwood/mcp_schema.h"

#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())

static const char own[] =
    "namespace M { @mcp_principal(\"U\") entity U; @mcp_resource(\"G\") entity G; "
    "@mcp_context(\"system\") type S = { now: datetime }; @mcp_action(\"C\") action C; }";

static void loads(sv text)
{
	struct arena a = { .limit = (size_t)256 << 20 };
	struct cedar_diags ds = cedar_diags_in(&a);
	struct cedar_syms *t = cedar_syms_new((size_t)256 << 20);

	CHECK(cedar_schema_load(t, &a, text, false, &ds) != NULL);
	arena_free(&a);
	cedar_syms_free(t);
}

static void convert(sv manifest, const struct dw_mcp_opts *o, const char *before)
{
	AUTO_BUF b = buf_with((size_t)16 << 20);
	struct box_err err = { 0 };
	size_t left_out = 0;

	buf_put_c(&b, before);
	if (dw_mcp_schema(manifest, o, &b, &left_out, &err) == 0) {
		if (buf_ok(&b))
			loads(buf_sv(&b));
	} else {
		CHECK(err.code != BOX_OK);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	sv all = { (const char *)d, n };
	ptrdiff_t cut = sv_find_sv(all, SV("\n--\n"));
	sv manifest = cut < 0 ? all : sv_sub(all, (size_t)cut + 4, SIZE_MAX);
	struct dw_mcp_opts box = { .style = DW_MCP_BOX, .name = SV("srv-1") };
	struct dw_mcp_opts whole = {
		.style = DW_MCP_TEMPLATE, .name = SV("M"), .outputs = true, .as_decimal = n % 2 != 0
	};
	struct dw_mcp_opts mine = whole;

	if (n == 0)
		return 0;
	mine.custom = cut < 0 ? sv_c(own) : sv_sub(all, 0, (size_t)cut);
	convert(manifest, &box, dw_box_actions);
	convert(manifest, &whole, "");
	convert(manifest, &mine, "");
	return 0;
}
