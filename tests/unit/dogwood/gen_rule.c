/* Rules of gen.h: forms that hold one or two leaves, and what each form means. */
#include "gen.h"

#include "base/ban.h"

static const char *const actions[] = { "A", "B", "C" };

static bool one_in(struct gen *g, uint32_t n)
{
	return gen_int(g, n) == 0;
}

unsigned gen_leaves(enum gen_form f)
{
	return f == GEN_WHEN || f == GEN_UNLESS || f == GEN_CEDAR ? 1 : 2;
}

void gen_rule(struct gen *g, const char *id, struct gen_rule *r, struct buf *out)
{
	static const struct {
		const char *before, *between, *after;
	} forms[GEN_NFORMS] = {
		[GEN_WHEN] = { "when ", "", "" },
		[GEN_UNLESS] = { "unless ", "", "" },
		[GEN_BOTH] = { "when { ", " && !(", ") }" },
		[GEN_EITHER] = { "when { ", " || ", " }" },
		[GEN_TWO] = { "when ", " unless ", "" },
		[GEN_CEDAR] = { "when { context.input.v > 1 } when ", "", "" },
		[GEN_IF] = { "when { if ", " then ", " else false }" },
	};

	*r = (struct gen_rule){ .forbid = one_in(g, 2) };
	r->form = one_in(g, 2) ? GEN_WHEN : (enum gen_form)gen_int(g, GEN_NFORMS);
	r->action = one_in(g, 3) ? actions[gen_int(g, 3)] : NULL;
	buf_putf(out, "@id(\"%s\")\n%s (principal, action", id, r->forbid ? "forbid" : "permit");
	if (r->action != NULL)
		buf_putf(out, " == N::Action::\"%s\"", r->action);
	buf_putf(out, ", resource) %s", forms[r->form].before);
	gen_leaf(g, &r->used[0], out);
	if (gen_leaves(r->form) == 2) {
		buf_put_c(out, forms[r->form].between);
		gen_leaf(g, &r->used[1], out);
	}
	buf_put_c(out, forms[r->form].after);
	buf_put_c(out, ";\n");
}

void gen_defs(const struct gen *g, struct buf *out)
{
	if (g->expand)
		return;
	buf_put_c(out,
	    "def temporal seen(?p, ?w) { formerly within ?w ?p };\n"
	    "def temporal twice(?p, ?q, ?w) { exists ($k: Timepoint). (formerly within ?w "
	    "(?p && tp($k)) && formerly within ?w (?q && tp($k))) };\n"
	    "def temporal narrow(?p, ?x) { ?p{ input.w: ?x } };\n");
}

void gen_policy(struct gen *g, unsigned rules, struct buf *out)
{
	uint64_t used;

	gen_defs(g, out);
	for (unsigned i = 0; i < rules; i++) {
		buf_putf(out, "@id(\"r%u\")\n%s (principal, action, resource) when ", i,
		    one_in(g, 2) ? "permit" : "forbid");
		gen_leaf(g, &used, out);
		buf_put_c(out, ";\n");
	}
}

bool gen_rule_about(const struct gen_rule *r, const struct dw_event *e)
{
	return r->action == NULL ||
	       (sv_eq(e->ns, SV("N::Action")) && sv_eq(e->id, sv_c(r->action)));
}

int gen_rule_holds(const struct gen_rule *r, const bool *v, const struct dw_event *e)
{
	static const sv path[] = { SV_INIT("input"), SV_INIT("v") };
	const struct dw_val *n;

	if (!gen_rule_about(r, e))
		return 0;
	switch (r->form) {
	case GEN_UNLESS:
		return !v[0];
	case GEN_BOTH:
	case GEN_TWO:
		return v[0] && !v[1];
	case GEN_EITHER:
		return v[0] || v[1];
	case GEN_CEDAR:
		n = dw_walk(&e->context, path, 2);
		if (n == NULL || n->tag != DW_INT)
			return -1;
		return n->u.i > 1 && v[0];
	case GEN_IF:
		return v[0] && v[1];
	case GEN_WHEN:
	case GEN_NFORMS:
		break;
	}
	return v[0];
}
