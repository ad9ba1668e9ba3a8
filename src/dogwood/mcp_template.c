/* See mcp_template.h. The template is the operator's, the declarations are of names that a server
 * chose: what collides is refused, never merged. */
#include "dogwood/mcp_template.h"

#include "dogwood/mcp_schema.h"

#include "base/ban.h"

#define PIECE_MAX   ((size_t)64 << 10)
#define ARENA_LIMIT ((size_t)256 << 20)
#define SYMS_LIMIT  ((size_t)64 << 20)

static int refused(const struct cedar_diags *ds, const char *what, struct box_err *err)
{
	for (size_t i = 0; i < ds->n; i++) {
		if (ds->d[i].severity != CEDAR_ERROR)
			continue;
		return box_fail(err, BOX_EPARSE, 0, "%s:%u:%u: " SV_FMT, what, ds->d[i].span.line,
		    ds->d[i].span.col, SV_ARG(ds->d[i].message));
	}
	return box_nomem(err, "a template");
}

/* The value of an annotation: NULL: there is none of this key. */
static cedar_sym annotation(const struct cedar_annotation *v, uint32_t n, sv key)
{
	for (uint32_t i = 0; i < n; i++) {
		if (sv_eq(cedar_sv(v[i].key), key))
			return v[i].value;
	}
	return NULL;
}

/* A type of namespace ns as it is written in that of the tools. */
static void put_name(const struct dw_mcp_template *m, const struct cedar_snamespace *ns,
    cedar_sym name, struct buf *b)
{
	if (ns != m->ns && ns->name->n != 0) {
		buf_put_sv(b, cedar_sv(ns->name));
		buf_put_c(b, "::");
	}
	buf_put_sv(b, cedar_sv(name));
}

static void separate(struct buf *b)
{
	if (b->n != 0)
		buf_put_c(b, ", ");
}

static int find_parent(struct dw_mcp_template *m, struct box_err *err)
{
	for (uint32_t i = 0; i < m->src.n_ns; i++) {
		struct cedar_snamespace *ns = &m->src.ns[i];

		for (uint32_t k = 0; k < ns->n_action; k++) {
			const struct cedar_saction *x = &ns->action[k];

			if (annotation(x->ann, x->n_ann, SV("mcp_action")) == NULL)
				continue;
			if (m->ns != NULL)
				return box_fail(err, BOX_EPARSE, 0,
				    "template:%u:%u: a second action has @mcp_action; mark the one "
				    "that is the parent of the tools",
				    x->span.line, x->span.col);
			m->ns = ns;
			cedar_put_quoted(&m->parent, cedar_sv(x->id));
		}
	}
	if (m->ns == NULL)
		return box_fail(err, BOX_EPARSE, 0,
		    "template: no action has @mcp_action(\"…\"); mark the one that is the parent "
		    "of "
		    "the tools");
	return 0;
}

static int find_types(struct dw_mcp_template *m, struct box_err *err)
{
	for (uint32_t i = 0; i < m->src.n_ns; i++) {
		const struct cedar_snamespace *ns = &m->src.ns[i];

		for (uint32_t k = 0; k < ns->n_entity; k++) {
			const struct cedar_sentity *e = &ns->entity[k];

			if (annotation(e->ann, e->n_ann, SV("mcp_principal")) != NULL) {
				separate(&m->principals);
				put_name(m, ns, e->name, &m->principals);
			}
			if (annotation(e->ann, e->n_ann, SV("mcp_resource")) != NULL) {
				separate(&m->resources);
				put_name(m, ns, e->name, &m->resources);
			}
		}
		for (uint32_t k = 0; k < ns->n_common; k++) {
			const struct cedar_scommon *c = &ns->common[k];
			cedar_sym member = annotation(c->ann, c->n_ann, SV("mcp_context"));

			if (member == NULL)
				continue;
			if (member->n == 0 || sv_eq(cedar_sv(member), SV("input")) ||
			    sv_eq(cedar_sv(member), SV("output")))
				return box_fail(err, BOX_EPARSE, 0,
				    "template:%u:%u: @mcp_context wants the name of a member of "
				    "the "
				    "context, other than input and output",
				    c->span.line, c->span.col);
			buf_put_c(&m->members, ", ");
			cedar_put_quoted(&m->members, cedar_sv(member));
			buf_put_c(&m->members, ": ");
			put_name(m, ns, c->name, &m->members);
		}
	}
	if (m->principals.n == 0 || m->resources.n == 0)
		return box_fail(err, BOX_EPARSE, 0, "template: no entity has @%s(\"…\")",
		    m->principals.n == 0 ? "mcp_principal" : "mcp_resource");
	return 0;
}

int dw_mcp_template_read(struct dw_mcp_template *m, sv text, struct box_err *err)
{
	AUTO_ARENA tmp = { .limit = ARENA_LIMIT };
	struct cedar_diags ds = cedar_diags_in(&tmp);
	sv own;

	*m = (struct dw_mcp_template){ .a = { .limit = ARENA_LIMIT },
		.principals = buf_with(PIECE_MAX),
		.resources = buf_with(PIECE_MAX),
		.parent = buf_with(PIECE_MAX),
		.members = buf_with(PIECE_MAX) };
	m->t = cedar_syms_new(SYMS_LIMIT);
	own = arena_dup(&m->a, text);
	if (m->t == NULL || own.p == NULL)
		return box_nomem(err, "a template");
	if (cedar_schema_parse(m->t, &m->a, own, &m->src, &ds) < 0)
		return refused(&ds, "template", err);
	if (find_parent(m, err) < 0 || find_types(m, err) < 0)
		return -1;
	if (!buf_ok(&m->principals) || !buf_ok(&m->resources) || !buf_ok(&m->parent) ||
	    !buf_ok(&m->members))
		return box_fail(err, BOX_ELIMIT, 0, "template: too many annotated types");
	return 0;
}

/* to[0 … n) followed by from[0 … k). */
static void *joined(
    struct arena *a, const void *to, uint32_t *n, const void *from, uint32_t k, size_t size)
{
	char *v = arena_grow(a, to, *n, (size_t)*n + k, size);

	if (v != NULL && k != 0)
		memcpy(v + *n * size, from, k * size);
	if (v != NULL)
		*n += k;
	return v;
}

int dw_mcp_template_put(
    struct dw_mcp_template *m, sv declarations, struct buf *out, struct box_err *err)
{
	AUTO_ARENA tmp = { .limit = ARENA_LIMIT };
	struct cedar_diags ds = cedar_diags_in(&tmp);
	struct cedar_snamespace *ns = m->ns;
	struct cedar_schema_src more;

	if (cedar_schema_parse(m->t, &m->a, declarations, &more, &ds) < 0)
		return refused(&ds, "tools/list", err);
	for (uint32_t i = 0; i < more.n_ns; i++) {
		const struct cedar_snamespace *x = &more.ns[i];

		ns->entity = joined(
		    &m->a, ns->entity, &ns->n_entity, x->entity, x->n_entity, sizeof(*ns->entity));
		ns->action = joined(
		    &m->a, ns->action, &ns->n_action, x->action, x->n_action, sizeof(*ns->action));
		if (ns->entity == NULL || ns->action == NULL)
			return box_nomem(err, "a schema");
	}
	/* Names of the server and names of the template must not be the same. */
	if (cedar_schema_resolve(m->t, &m->a, &m->src, &ds) == NULL)
		return refused(&ds, "template with the tools", err);
	cedar_schema_put(out, &m->src);
	return 0;
}

void dw_mcp_template_fini(struct dw_mcp_template *m)
{
	buf_fini(&m->principals);
	buf_fini(&m->resources);
	buf_fini(&m->parent);
	buf_fini(&m->members);
	cedar_syms_free(m->t);
	arena_free(&m->a);
}
