/* Schemas in JSON: text to declarations and back. Spec 3.5. Hostile text (jtree.h has the
 * limits); unknown members are refused, since a misspelt one would silently loosen the schema. */
#include "cedar/jtree.h"
#include "cedar/schema.h"
#include "cedar/schema_priv.h"

#include "base/ban.h"

struct sj {
	struct cedar_syms *t;
	struct arena *a;
	struct cedar_diags *ds;
	struct cedar_places places; /* of the whole text */
	struct cedar_schema_src *out;
	struct schema_caps caps;
	unsigned depth;
};

static void *fail(struct sj *p, const struct jnode *j, const char *what)
{
	struct cedar_span at =
	    j != NULL ? cedar_places_span(&p->places, j->off, j->len) : (struct cedar_span){ 0 };

	cedar_diag_add(p->ds, CEDAR_ERROR, "schema", &at, NULL, "%s", what);
	return NULL;
}

static void *nomem(struct sj *p)
{
	return fail(p, NULL, "out of memory");
}

/* Is j an object with these members only? */
static bool object(
    struct sj *p, const struct jnode *j, const char *what, const char *const *known, size_t n)
{
	uint32_t i;
	size_t k;

	if (j->kind != J_OBJ) {
		fail(p, j, arena_printf(p->a, "%s must be an object, not %s", what, jtree_kind(j)));
		return false;
	}
	for (i = 0; i < j->n; i++) {
		for (k = 0; k < n; k++)
			if (sv_eq(j->key[i], sv_c(known[k])))
				break;
		if (k == n) {
			fail(p, j->item[i],
			    arena_printf(
			        p->a, "unknown field `" SV_FMT "` in %s", SV_ARG(j->key[i]), what));
			return false;
		}
	}
	return true;
}
#define OBJECT(p, j, what, ...)                                                                    \
	object(p, j, what, (const char *const[]){ __VA_ARGS__ },                                   \
	    sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

static cedar_sym intern(struct sj *p, sv s)
{
	cedar_sym y = cedar_intern(p->t, s);

	return y != NULL ? y : nomem(p);
}

/* A path of identifiers. */
static cedar_sym path(struct sj *p, const struct jnode *at, sv s)
{
	sv rest = s, part;
	bool more = true;

	while (more) {
		ptrdiff_t c = sv_find_sv(rest, SV("::"));

		part = c < 0 ? rest : sv_sub(rest, 0, (size_t)c);
		more = c >= 0;
		if (more)
			rest = sv_sub(rest, (size_t)c + 2, SIZE_MAX);
		if (!cedar_is_ident(part) ||
		    (cedar_is_reserved(part) && !(sv_eq(part, SV("__cedar")) && more)))
			return fail(
			    p, at, arena_printf(p->a, "invalid name `" SV_FMT "`", SV_ARG(s)));
	}
	return intern(p, s);
}

static cedar_sym path_node(struct sj *p, const struct jnode *j)
{
	if (j->kind != J_STR)
		return fail(p, j, "a name must be a string");
	return path(p, j, j->s);
}

static bool annotations(
    struct sj *p, const struct jnode *j, struct cedar_annotation **out, uint32_t *n)
{
	struct cedar_annotation *v;
	uint32_t i;

	*n = 0;
	if (j == NULL)
		return true;
	if (j->kind != J_OBJ)
		return fail(p, j, "annotations must be an object") != NULL;
	v = ARENA_VEC(p->a, struct cedar_annotation, j->n);
	if (v == NULL)
		return nomem(p) != NULL;
	for (i = 0; i < j->n; i++) {
		bool null = j->item[i]->kind == J_NULL;

		if ((j->item[i]->kind != J_STR && !null) || !cedar_is_ident(j->key[i]))
			return fail(p, j->item[i], "an annotation is a name with a string") != NULL;
		v[i].key = intern(p, j->key[i]);
		v[i].value = intern(p, null ? SV("") : j->item[i]->s);
		v[i].has_value = !null && j->item[i]->s.n != 0;
		if (v[i].key == NULL || v[i].value == NULL)
			return false;
	}
	*out = v;
	*n = j->n;
	return true;
}

static struct cedar_sty *type(struct sj *p, const struct jnode *j, bool attr);

static bool record(struct sj *p, const struct jnode *j, struct cedar_sty *s)
{
	const struct jnode *attrs = jtree_get(j, SV("attributes")),
	                   *open = jtree_get(j, SV("additionalAttributes"));
	uint32_t i;

	s->kind = CEDAR_STY_RECORD;
	if (open != NULL && open->kind != J_BOOL)
		return fail(p, open, "`additionalAttributes` must be a boolean") != NULL;
	s->open = open != NULL && open->b;
	if (attrs == NULL)
		return fail(p, j, "missing field `attributes`") != NULL;
	if (attrs->kind != J_OBJ)
		return fail(p, attrs, "`attributes` must be an object") != NULL;
	s->attr = ARENA_VEC(p->a, struct cedar_sattr, attrs->n);
	if (s->attr == NULL)
		return nomem(p) != NULL;
	for (i = 0; i < attrs->n; i++) {
		struct cedar_sattr *at = &s->attr[i];
		const struct jnode *q = jtree_get(attrs->item[i], SV("required"));

		if (q != NULL && q->kind != J_BOOL)
			return fail(p, q, "`required` must be a boolean") != NULL;
		at->name = intern(p, attrs->key[i]);
		at->required = q == NULL || q->b;
		at->type = type(p, attrs->item[i], true);
		if (at->name == NULL || at->type == NULL ||
		    !annotations(
		        p, jtree_get(attrs->item[i], SV("annotations")), &at->ann, &at->n_ann))
			return false;
	}
	s->n_attr = attrs->n;
	return true;
}

/* Which members may stand beside "type"? */
static bool members(struct sj *p, const struct jnode *j, bool attr, const char *x, const char *y)
{
	return attr ? OBJECT(p, j, "a type", "type", "required", "annotations", x, y)
	            : OBJECT(p, j, "a type", "type", "annotations", x, y);
}

static struct cedar_sty *type(struct sj *p, const struct jnode *j, bool attr)
{
	struct cedar_sty *s = ARENA_NEW(p->a, struct cedar_sty);
	const struct jnode *k = jtree_get(j, SV("type")), *n;
	bool good;
	sv w;

	if (s == NULL)
		return nomem(p);
	if (j->kind != J_OBJ || k == NULL || k->kind != J_STR)
		return fail(p, j, "a type must be an object with a string `type`");
	if (++p->depth > CEDAR_SCHEMA_MAX_DEPTH)
		return fail(p, j, "the type is nested deeper than 64 levels");
	s->span = cedar_places_span(&p->places, j->off, j->len);
	w = k->s;
	if (sv_eq(w, SV("Long")) || sv_eq(w, SV("String")) || sv_eq(w, SV("Boolean"))) {
		s->kind = CEDAR_STY_PRIM;
		s->name = intern(p, sv_eq(w, SV("Boolean")) ? SV("Bool") : w);
		good = members(p, j, attr, "type", "type");
	} else if (sv_eq(w, SV("Set"))) {
		n = jtree_get(j, SV("element"));
		s->kind = CEDAR_STY_SET;
		good = members(p, j, attr, "element", "type");
		if (good && n == NULL)
			return fail(p, j, "missing field `element`");
		s->elem = good ? type(p, n, false) : NULL;
		good = s->elem != NULL;
	} else if (sv_eq(w, SV("Record"))) {
		good = members(p, j, attr, "attributes", "additionalAttributes") && record(p, j, s);
	} else if (sv_eq(w, SV("Entity")) || sv_eq(w, SV("EntityOrCommon")) ||
	           sv_eq(w, SV("Extension"))) {
		n = jtree_get(j, SV("name"));
		good = members(p, j, attr, "name", "type");
		if (good && n == NULL)
			return fail(p, j, "missing field `name`");
		s->kind = sv_eq(w, SV("Entity"))      ? CEDAR_STY_ENTITY
		          : sv_eq(w, SV("Extension")) ? CEDAR_STY_PRIM
		                                      : CEDAR_STY_NAME;
		s->name = good ? path_node(p, n) : NULL;
		good = s->name != NULL;
		if (good && s->kind == CEDAR_STY_PRIM &&
		    (sv_eq(n->s, SV("Long")) || sv_eq(n->s, SV("String")) ||
		        sv_eq(n->s, SV("Bool"))))
			return fail(p, n, "this is no extension type");
	} else {
		s->kind = CEDAR_STY_COMMON;
		s->name = path_node(p, k);
		good = s->name != NULL && members(p, j, attr, "type", "type");
	}
	p->depth--;
	return good ? s : NULL;
}

static bool paths(struct sj *p, const struct jnode *j, const cedar_sym **out, uint32_t *n)
{
	cedar_sym *v;
	uint32_t i;

	*n = 0;
	if (j == NULL)
		return true;
	if (j->kind != J_ARR)
		return fail(p, j, "a list of type names must be an array") != NULL;
	v = ARENA_VEC(p->a, cedar_sym, j->n);
	if (v == NULL)
		return nomem(p) != NULL;
	for (i = 0; i < j->n; i++) {
		v[i] = path_node(p, j->item[i]);
		if (v[i] == NULL)
			return false;
	}
	*out = v;
	*n = j->n;
	return true;
}

static cedar_sym declared(struct sj *p, const struct jnode *at, sv name)
{
	if (!cedar_is_ident(name) || cedar_is_reserved(name))
		return fail(p, at, arena_printf(p->a, "invalid name `" SV_FMT "`", SV_ARG(name)));
	return intern(p, name);
}

static bool entity(struct sj *p, struct cedar_snamespace *ns, sv name, const struct jnode *j)
{
	struct cedar_sentity e = { .span = cedar_places_span(&p->places, j->off, 0) };
	const struct jnode *k;
	uint32_t i;

	if (!OBJECT(
	        p, j, "an entity type", "memberOfTypes", "shape", "tags", "enum", "annotations"))
		return false;
	e.name = declared(p, j, name);
	if (e.name == NULL || !annotations(p, jtree_get(j, SV("annotations")), &e.ann, &e.n_ann) ||
	    !paths(p, jtree_get(j, SV("memberOfTypes")), &e.parent, &e.n_parent))
		return false;
	k = jtree_get(j, SV("enum"));
	if (k != NULL) {
		cedar_sym *v;

		if (k->kind != J_ARR || k->n == 0)
			return fail(p, k, "`enum` must be a list of at least one id") != NULL;
		if (jtree_get(j, SV("memberOfTypes")) != NULL ||
		    jtree_get(j, SV("shape")) != NULL || jtree_get(j, SV("tags")) != NULL)
			return fail(p, j,
			           "an enumerated entity type has no parents, attributes or "
			           "tags") != NULL;
		v = ARENA_VEC(p->a, cedar_sym, k->n);
		if (v == NULL)
			return nomem(p) != NULL;
		for (i = 0; i < k->n; i++) {
			if (k->item[i]->kind != J_STR)
				return fail(p, k->item[i], "an id must be a string") != NULL;
			v[i] = intern(p, k->item[i]->s);
			if (v[i] == NULL)
				return false;
		}
		e.enum_id = v;
		e.n_enum = k->n;
	}
	p->depth = 0;
	k = jtree_get(j, SV("shape"));
	if (k != NULL && (e.shape = type(p, k, false)) == NULL)
		return false;
	k = jtree_get(j, SV("tags"));
	if (k != NULL && (e.tags = type(p, k, false)) == NULL)
		return false;
	return schema_add_entity(p->a, ns, &e) == 0 || nomem(p) != NULL;
}

static bool parents(struct sj *p, const struct jnode *j, struct cedar_saction *x)
{
	struct cedar_saction_ref *v;
	uint32_t i;

	if (j == NULL || j->kind == J_NULL)
		return true;
	if (j->kind != J_ARR)
		return fail(p, j, "`memberOf` must be an array") != NULL;
	v = ARENA_VEC(p->a, struct cedar_saction_ref, j->n);
	if (v == NULL)
		return nomem(p) != NULL;
	for (i = 0; i < j->n; i++) {
		const struct jnode *id = jtree_get(j->item[i], SV("id")),
		                   *ty = jtree_get(j->item[i], SV("type"));

		if (!OBJECT(p, j->item[i], "a parent of an action", "id", "type"))
			return false;
		if (id == NULL || id->kind != J_STR)
			return fail(p, j->item[i], "a parent of an action needs a string `id`") !=
			       NULL;
		v[i].id = intern(p, id->s);
		if (v[i].id == NULL)
			return false;
		if (ty != NULL && ty->kind != J_NULL && (v[i].type = path_node(p, ty)) == NULL)
			return false;
	}
	x->parent = v;
	x->n_parent = j->n;
	return true;
}

static bool action(struct sj *p, struct cedar_snamespace *ns, sv name, const struct jnode *j)
{
	struct cedar_saction x = { .span = cedar_places_span(&p->places, j->off, 0) };
	const struct jnode *k, *attrs = jtree_get(j, SV("attributes"));

	if (!OBJECT(p, j, "an action", "attributes", "appliesTo", "memberOf", "annotations"))
		return false;
	if (attrs != NULL && attrs->kind != J_NULL && (attrs->kind != J_OBJ || attrs->n != 0))
		return fail(p, attrs, "action attributes are not supported") != NULL;
	x.id = intern(p, name);
	if (x.id == NULL || !annotations(p, jtree_get(j, SV("annotations")), &x.ann, &x.n_ann) ||
	    !parents(p, jtree_get(j, SV("memberOf")), &x))
		return false;
	k = jtree_get(j, SV("appliesTo"));
	if (k != NULL && k->kind != J_NULL) {
		if (!OBJECT(p, k, "appliesTo", "principalTypes", "resourceTypes", "context"))
			return false;
		if (jtree_get(k, SV("principalTypes")) == NULL)
			return fail(p, k, "missing field `principalTypes`") != NULL;
		if (jtree_get(k, SV("resourceTypes")) == NULL)
			return fail(p, k, "missing field `resourceTypes`") != NULL;
		x.applies = true;
		if (!paths(p, jtree_get(k, SV("principalTypes")), &x.principal, &x.n_principal) ||
		    !paths(p, jtree_get(k, SV("resourceTypes")), &x.resource, &x.n_resource))
			return false;
		p->depth = 0;
		k = jtree_get(k, SV("context"));
		if (k != NULL && (x.context = type(p, k, false)) == NULL)
			return false;
	}
	return schema_add_action(p->a, ns, &x) == 0 || nomem(p) != NULL;
}

static bool common(struct sj *p, struct cedar_snamespace *ns, sv name, const struct jnode *j)
{
	struct cedar_scommon c = { .span = cedar_places_span(&p->places, j->off, 0) };

	c.name = declared(p, j, name);
	p->depth = 0;
	if (c.name == NULL || (c.type = type(p, j, false)) == NULL ||
	    !annotations(p, jtree_get(j, SV("annotations")), &c.ann, &c.n_ann))
		return false;
	return schema_add_common(p->a, ns, &c) == 0 || nomem(p) != NULL;
}

static bool each(struct sj *p, struct cedar_snamespace *ns, const struct jnode *j,
    bool (*f)(struct sj *, struct cedar_snamespace *, sv, const struct jnode *))
{
	bool good = true;
	uint32_t i;

	if (j == NULL)
		return true;
	if (j->kind != J_OBJ)
		return fail(p, j, "declarations must be an object by name") != NULL;
	for (i = 0; i < j->n; i++)
		good = f(p, ns, j->key[i], j->item[i]) && good;
	return good;
}

static bool namespace(struct sj *p, sv name, const struct jnode *j)
{
	cedar_sym n = name.n == 0 ? intern(p, name) : path(p, j, name);
	struct cedar_snamespace *ns;
	bool good;

	if (n == NULL)
		return false;
	if (sv_eq(name, SV("__cedar")) || sv_starts(name, SV("__cedar::")))
		return fail(p, j, "the namespace `__cedar` is reserved") != NULL;
	if (!OBJECT(p, j, "a namespace", "commonTypes", "entityTypes", "actions", "annotations"))
		return false;
	if (jtree_get(j, SV("entityTypes")) == NULL)
		return fail(p, j, "missing field `entityTypes`") != NULL;
	if (jtree_get(j, SV("actions")) == NULL)
		return fail(p, j, "missing field `actions`") != NULL;
	ns = schema_namespace(p->a, p->out, &p->caps, n);
	if (ns == NULL)
		return nomem(p) != NULL;
	/* Each part reports its own mistakes. */
	good = annotations(p, jtree_get(j, SV("annotations")), &ns->ann, &ns->n_ann);
	good = each(p, ns, jtree_get(j, SV("commonTypes")), common) && good;
	good = each(p, ns, jtree_get(j, SV("entityTypes")), entity) && good;
	return each(p, ns, jtree_get(j, SV("actions")), action) && good;
}

int cedar_schema_parse_json(struct cedar_syms *t, struct arena *a, sv text,
    struct cedar_schema_src *out, struct cedar_diags *ds)
{
	struct sj p = { .t = t, .a = a, .ds = ds, .out = out };
	struct box_err err = { 0 };
	struct jnode *j;
	bool good = true;
	uint32_t i;

	*out = (struct cedar_schema_src){ 0 };
	if (sv_starts(text, SV("\xef\xbb\xbf")))
		text = sv_sub(text, 3, SIZE_MAX);
	if (text.n > CEDAR_SCHEMA_MAX)
		return fail(&p, NULL, "the schema is larger than 16 MiB") != NULL ? 0 : -1;
	p.places = cedar_places_of(a, text);
	j = jtree_parse(a, text, &err);
	if (j == NULL) {
		cedar_diag_add(ds, CEDAR_ERROR, "schema", NULL, NULL, "%s", err.msg);
		return -1;
	}
	if (j->kind != J_OBJ) {
		fail(&p, j, "a schema must be an object of namespaces");
		return -1;
	}
	for (i = 0; i < j->n; i++)
		good = namespace(&p, j->key[i], j->item[i]) && good;
	return good ? 0 : -1;
}
