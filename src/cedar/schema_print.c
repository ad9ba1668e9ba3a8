/* Declarations back to text, in both syntaxes. See schema.h. */
#include "cedar/schema.h"

#include "base/ban.h"

static void indent(struct buf *b, unsigned n)
{
	while (n-- > 0)
		buf_put_sv(b, SV("  "));
}

/* ---- human --------------------------------------------------------------------------------- */

static void put_annotations(
    struct buf *b, const struct cedar_annotation *v, uint32_t n, unsigned in)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		indent(b, in);
		buf_put_byte(b, '@');
		buf_put_sv(b, cedar_sv(v[i].key));
		if (v[i].value->n != 0) {
			buf_put_byte(b, '(');
			cedar_put_quoted(b, cedar_sv(v[i].value));
			buf_put_byte(b, ')');
		}
		buf_put_byte(b, '\n');
	}
}

static void put_sty(struct buf *b, const struct cedar_sty *s, unsigned in);

static void put_record(struct buf *b, const struct cedar_sty *s, unsigned in)
{
	uint32_t i;

	buf_put_byte(b, '{');
	for (i = 0; i < s->n_attr; i++) {
		const struct cedar_sattr *at = &s->attr[i];
		sv n = cedar_sv(at->name);

		if (i == 0)
			buf_put_byte(b, '\n');
		put_annotations(b, at->ann, at->n_ann, in + 1);
		indent(b, in + 1);
		if (cedar_is_ident(n) && !cedar_is_reserved(n))
			buf_put_sv(b, n);
		else
			cedar_put_quoted(b, n);
		if (!at->required)
			buf_put_byte(b, '?');
		buf_put_sv(b, SV(": "));
		put_sty(b, at->type, in + 1);
		buf_put_sv(b, i + 1 < s->n_attr ? SV(",\n") : SV("\n"));
	}
	if (s->n_attr != 0)
		indent(b, in);
	buf_put_byte(b, '}');
}

static void put_sty(struct buf *b, const struct cedar_sty *s, unsigned in)
{
	switch (s->kind) {
	case CEDAR_STY_NAME:
	case CEDAR_STY_ENTITY:
	case CEDAR_STY_COMMON:
		buf_put_sv(b, cedar_sv(s->name));
		break;
	case CEDAR_STY_PRIM:
		buf_put_sv(b, SV("__cedar::"));
		buf_put_sv(b, cedar_sv(s->name));
		break;
	case CEDAR_STY_SET:
		buf_put_sv(b, SV("Set<"));
		put_sty(b, s->elem, in);
		buf_put_byte(b, '>');
		break;
	case CEDAR_STY_RECORD:
		put_record(b, s, in);
		break;
	}
}

static void put_names(struct buf *b, const cedar_sym *v, uint32_t n)
{
	uint32_t i;

	buf_put_byte(b, '[');
	for (i = 0; i < n; i++) {
		if (i > 0)
			buf_put_sv(b, SV(", "));
		buf_put_sv(b, cedar_sv(v[i]));
	}
	buf_put_byte(b, ']');
}

static void put_entity(struct buf *b, const struct cedar_sentity *e, unsigned in)
{
	uint32_t i;

	put_annotations(b, e->ann, e->n_ann, in);
	indent(b, in);
	buf_put_sv(b, SV("entity "));
	buf_put_sv(b, cedar_sv(e->name));
	if (e->n_enum != 0) {
		buf_put_sv(b, SV(" enum ["));
		for (i = 0; i < e->n_enum; i++) {
			if (i > 0)
				buf_put_sv(b, SV(", "));
			cedar_put_quoted(b, cedar_sv(e->enum_id[i]));
		}
		buf_put_byte(b, ']');
	}
	if (e->n_parent != 0) {
		buf_put_sv(b, SV(" in "));
		put_names(b, e->parent, e->n_parent);
	}
	if (e->shape != NULL && (e->shape->kind != CEDAR_STY_RECORD || e->shape->n_attr != 0)) {
		buf_put_sv(b, SV(" = "));
		put_sty(b, e->shape, in);
	}
	if (e->tags != NULL) {
		buf_put_sv(b, SV(" tags "));
		put_sty(b, e->tags, in);
	}
	buf_put_sv(b, SV(";\n"));
}

static void put_action(struct buf *b, const struct cedar_saction *x, unsigned in)
{
	uint32_t i;

	put_annotations(b, x->ann, x->n_ann, in);
	indent(b, in);
	buf_put_sv(b, SV("action "));
	cedar_put_quoted(b, cedar_sv(x->id));
	for (i = 0; i < x->n_parent; i++) {
		buf_put_sv(b, i == 0 ? SV(" in [") : SV(", "));
		if (x->parent[i].type != NULL) {
			buf_put_sv(b, cedar_sv(x->parent[i].type));
			buf_put_sv(b, SV("::"));
		}
		cedar_put_quoted(b, cedar_sv(x->parent[i].id));
	}
	if (x->n_parent != 0)
		buf_put_byte(b, ']');
	if (x->n_principal != 0 && x->n_resource != 0) {
		buf_put_sv(b, SV(" appliesTo {\n"));
		indent(b, in + 1);
		buf_put_sv(b, SV("principal: "));
		put_names(b, x->principal, x->n_principal);
		buf_put_sv(b, SV(",\n"));
		indent(b, in + 1);
		buf_put_sv(b, SV("resource: "));
		put_names(b, x->resource, x->n_resource);
		buf_put_sv(b, SV(",\n"));
		indent(b, in + 1);
		buf_put_sv(b, SV("context: "));
		if (x->context != NULL)
			put_sty(b, x->context, in + 1);
		else
			buf_put_sv(b, SV("{}"));
		buf_put_byte(b, '\n');
		indent(b, in);
		buf_put_byte(b, '}');
	}
	buf_put_sv(b, SV(";\n"));
}

void cedar_schema_put(struct buf *b, const struct cedar_schema_src *s)
{
	uint32_t i, j;

	for (i = 0; i < s->n_ns; i++) {
		const struct cedar_snamespace *ns = &s->ns[i];
		unsigned in = ns->name->n != 0;

		if (i > 0)
			buf_put_byte(b, '\n');
		if (in != 0) {
			put_annotations(b, ns->ann, ns->n_ann, 0);
			buf_put_sv(b, SV("namespace "));
			buf_put_sv(b, cedar_sv(ns->name));
			buf_put_sv(b, SV(" {\n"));
		}
		for (j = 0; j < ns->n_common; j++) {
			put_annotations(b, ns->common[j].ann, ns->common[j].n_ann, in);
			indent(b, in);
			buf_put_sv(b, SV("type "));
			buf_put_sv(b, cedar_sv(ns->common[j].name));
			buf_put_sv(b, SV(" = "));
			put_sty(b, ns->common[j].type, in);
			buf_put_sv(b, SV(";\n"));
		}
		for (j = 0; j < ns->n_entity; j++)
			put_entity(b, &ns->entity[j], in);
		for (j = 0; j < ns->n_action; j++)
			put_action(b, &ns->action[j], in);
		if (in != 0)
			buf_put_sv(b, SV("}\n"));
	}
}

/* ---- JSON ---------------------------------------------------------------------------------- */

/* A new line of an object or array; the comma before it unless it is the first. */
static void line(struct buf *b, bool *first, unsigned in)
{
	buf_put_sv(b, *first ? SV("\n") : SV(",\n"));
	*first = false;
	indent(b, in);
}

static void key(struct buf *b, bool *first, unsigned in, sv k)
{
	line(b, first, in);
	buf_put_json(b, k);
	buf_put_sv(b, SV(": "));
}

static void end(struct buf *b, bool first, unsigned in, char c)
{
	if (!first) {
		buf_put_byte(b, '\n');
		indent(b, in);
	}
	buf_put_byte(b, (uint8_t)c);
}

static void put_annotations_json(
    struct buf *b, bool *first, const struct cedar_annotation *v, uint32_t n, unsigned in)
{
	bool f = true;
	uint32_t i;

	if (n == 0)
		return;
	key(b, first, in, SV("annotations"));
	buf_put_byte(b, '{');
	for (i = 0; i < n; i++) {
		key(b, &f, in + 1, cedar_sv(v[i].key));
		buf_put_json(b, cedar_sv(v[i].value));
	}
	end(b, f, in, '}');
}

static void put_names_json(struct buf *b, const cedar_sym *v, uint32_t n, unsigned in)
{
	bool first = true;
	uint32_t i;

	buf_put_byte(b, '[');
	for (i = 0; i < n; i++) {
		line(b, &first, in + 1);
		buf_put_json(b, cedar_sv(v[i]));
	}
	end(b, first, in, ']');
}

static bool is_extension(sv n)
{
	return !sv_eq(n, SV("Long")) && !sv_eq(n, SV("String")) && !sv_eq(n, SV("Bool"));
}

static void put_sty_json(
    struct buf *b, const struct cedar_sty *s, const struct cedar_sattr *at, unsigned in)
{
	bool first = true, f = true;
	const char *type = "";
	uint32_t i;

	switch (s->kind) {
	case CEDAR_STY_NAME:
		type = "EntityOrCommon";
		break;
	case CEDAR_STY_ENTITY:
		type = "Entity";
		break;
	case CEDAR_STY_COMMON:
		type = s->name->p;
		break;
	case CEDAR_STY_PRIM:
		type = is_extension(cedar_sv(s->name))        ? "Extension"
		       : sv_eq(cedar_sv(s->name), SV("Bool")) ? "Boolean"
		                                              : s->name->p;
		break;
	case CEDAR_STY_SET:
		type = "Set";
		break;
	case CEDAR_STY_RECORD:
		type = "Record";
		break;
	}
	buf_put_byte(b, '{');
	key(b, &first, in + 1, SV("type"));
	buf_put_json(b, sv_c(type));
	if (s->kind == CEDAR_STY_NAME || s->kind == CEDAR_STY_ENTITY ||
	    (s->kind == CEDAR_STY_PRIM && is_extension(cedar_sv(s->name)))) {
		key(b, &first, in + 1, SV("name"));
		buf_put_json(b, cedar_sv(s->name));
	}
	if (s->kind == CEDAR_STY_SET) {
		key(b, &first, in + 1, SV("element"));
		put_sty_json(b, s->elem, NULL, in + 1);
	}
	if (s->kind == CEDAR_STY_RECORD) {
		key(b, &first, in + 1, SV("attributes"));
		buf_put_byte(b, '{');
		for (i = 0; i < s->n_attr; i++) {
			key(b, &f, in + 2, cedar_sv(s->attr[i].name));
			put_sty_json(b, s->attr[i].type, &s->attr[i], in + 2);
		}
		end(b, f, in + 1, '}');
	}
	if (at != NULL && !at->required) {
		key(b, &first, in + 1, SV("required"));
		buf_put_sv(b, SV("false"));
	}
	if (at != NULL)
		put_annotations_json(b, &first, at->ann, at->n_ann, in + 1);
	end(b, first, in, '}');
}

static void put_entity_json(struct buf *b, const struct cedar_sentity *e, unsigned in)
{
	bool first = true;

	buf_put_byte(b, '{');
	if (e->n_enum != 0) {
		key(b, &first, in + 1, SV("enum"));
		put_names_json(b, e->enum_id, e->n_enum, in + 1);
	}
	if (e->n_parent != 0) {
		key(b, &first, in + 1, SV("memberOfTypes"));
		put_names_json(b, e->parent, e->n_parent, in + 1);
	}
	if (e->shape != NULL) {
		key(b, &first, in + 1, SV("shape"));
		put_sty_json(b, e->shape, NULL, in + 1);
	}
	if (e->tags != NULL) {
		key(b, &first, in + 1, SV("tags"));
		put_sty_json(b, e->tags, NULL, in + 1);
	}
	put_annotations_json(b, &first, e->ann, e->n_ann, in + 1);
	end(b, first, in, '}');
}

static void put_action_json(struct buf *b, const struct cedar_saction *x, unsigned in)
{
	bool first = true, f = true;
	uint32_t i;

	buf_put_byte(b, '{');
	if (x->n_parent != 0) {
		key(b, &first, in + 1, SV("memberOf"));
		buf_put_byte(b, '[');
		for (i = 0; i < x->n_parent; i++) {
			line(b, &f, in + 2);
			buf_put_sv(b, SV("{\"id\": "));
			buf_put_json(b, cedar_sv(x->parent[i].id));
			if (x->parent[i].type != NULL) {
				buf_put_sv(b, SV(", \"type\": "));
				buf_put_json(b, cedar_sv(x->parent[i].type));
			}
			buf_put_byte(b, '}');
		}
		end(b, f, in + 1, ']');
	}
	if (x->applies) {
		f = true;
		key(b, &first, in + 1, SV("appliesTo"));
		buf_put_byte(b, '{');
		key(b, &f, in + 2, SV("principalTypes"));
		put_names_json(b, x->principal, x->n_principal, in + 2);
		key(b, &f, in + 2, SV("resourceTypes"));
		put_names_json(b, x->resource, x->n_resource, in + 2);
		if (x->context != NULL) {
			key(b, &f, in + 2, SV("context"));
			put_sty_json(b, x->context, NULL, in + 2);
		}
		end(b, f, in + 1, '}');
	}
	put_annotations_json(b, &first, x->ann, x->n_ann, in + 1);
	end(b, first, in, '}');
}

static void put_common_json(struct buf *b, const struct cedar_scommon *c, unsigned in)
{
	/* Annotations stand beside the type, as with an attribute. */
	struct cedar_sattr at = { .required = true, .ann = c->ann, .n_ann = c->n_ann };

	put_sty_json(b, c->type, &at, in);
}

void cedar_schema_put_json(struct buf *b, const struct cedar_schema_src *s)
{
	bool first = true;
	uint32_t i, j;

	buf_put_byte(b, '{');
	for (i = 0; i < s->n_ns; i++) {
		const struct cedar_snamespace *ns = &s->ns[i];
		bool f = true, g = true;

		key(b, &first, 1, cedar_sv(ns->name));
		buf_put_byte(b, '{');
		if (ns->n_common != 0) {
			key(b, &f, 2, SV("commonTypes"));
			buf_put_byte(b, '{');
			for (j = 0; j < ns->n_common; j++) {
				key(b, &g, 3, cedar_sv(ns->common[j].name));
				put_common_json(b, &ns->common[j], 3);
			}
			end(b, g, 2, '}');
		}
		g = true;
		key(b, &f, 2, SV("entityTypes"));
		buf_put_byte(b, '{');
		for (j = 0; j < ns->n_entity; j++) {
			key(b, &g, 3, cedar_sv(ns->entity[j].name));
			put_entity_json(b, &ns->entity[j], 3);
		}
		end(b, g, 2, '}');
		g = true;
		key(b, &f, 2, SV("actions"));
		buf_put_byte(b, '{');
		for (j = 0; j < ns->n_action; j++) {
			key(b, &g, 3, cedar_sv(ns->action[j].id));
			put_action_json(b, &ns->action[j], 3);
		}
		end(b, g, 2, '}');
		put_annotations_json(b, &f, ns->ann, ns->n_ann, 2);
		end(b, f, 1, '}');
	}
	end(b, first, 0, '}');
	buf_put_byte(b, '\n');
}
