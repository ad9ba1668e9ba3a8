/* Declarations of schemas: appending, copying, adding attributes. See schema_priv.h and the
 * first half of schema.h. */
#include "cedar/schema_priv.h"

#include "base/ban.h"

void *schema_room(struct arena *a, void *v, size_t n, size_t *cap, size_t size)
{
	size_t want = *cap != 0 ? *cap * 2 : 4;

	if (n < *cap)
		return v;
	v = arena_grow(a, v, n, want, size);
	if (v != NULL)
		*cap = want;
	return v;
}

/* Vectors of declarations grow at powers of two, so that no capacity needs to be kept. */
static void *append(struct arena *a, void *v, uint32_t n, size_t size)
{
	if (n != 0 && (n & (n - 1)) != 0)
		return v;
	return arena_grow(a, v, n, n != 0 ? (size_t)n * 2 : 1, size);
}

cedar_sym schema_join(struct cedar_syms *t, struct arena *a, cedar_sym x, cedar_sym y)
{
	const char *s;

	if (x->n == 0)
		return y;
	s = arena_printf(a, "%s::%s", x->p, y->p);
	return s != NULL ? cedar_intern(t, sv_c(s)) : NULL;
}

struct cedar_snamespace *schema_namespace(
    struct arena *a, struct cedar_schema_src *s, struct schema_caps *caps, cedar_sym name)
{
	uint32_t i;

	for (i = 0; i < s->n_ns; i++)
		if (s->ns[i].name == name)
			return &s->ns[i];
	s->ns = schema_room(a, s->ns, s->n_ns, &caps->ns, sizeof(*s->ns));
	if (s->ns == NULL)
		return NULL;
	s->ns[s->n_ns] = (struct cedar_snamespace){ .name = name };
	return &s->ns[s->n_ns++];
}

int schema_add_common(struct arena *a, struct cedar_snamespace *ns, const struct cedar_scommon *c)
{
	ns->common = append(a, ns->common, ns->n_common, sizeof(*c));
	if (ns->common == NULL)
		return -1;
	ns->common[ns->n_common++] = *c;
	return 0;
}

int schema_add_entity(struct arena *a, struct cedar_snamespace *ns, const struct cedar_sentity *e)
{
	ns->entity = append(a, ns->entity, ns->n_entity, sizeof(*e));
	if (ns->entity == NULL)
		return -1;
	ns->entity[ns->n_entity++] = *e;
	return 0;
}

int schema_add_action(struct arena *a, struct cedar_snamespace *ns, const struct cedar_saction *x)
{
	ns->action = append(a, ns->action, ns->n_action, sizeof(*x));
	if (ns->action == NULL)
		return -1;
	ns->action[ns->n_action++] = *x;
	return 0;
}

struct cedar_sty *schema_sty_copy(struct arena *a, const struct cedar_sty *s)
{
	struct cedar_sty *c = ARENA_NEW(a, struct cedar_sty);
	uint32_t i;

	if (c == NULL)
		return NULL;
	*c = *s;
	if (s->elem != NULL) {
		c->elem = schema_sty_copy(a, s->elem);
		if (c->elem == NULL)
			return NULL;
	}
	if (s->n_attr != 0) {
		c->attr = arena_grow(a, s->attr, s->n_attr, s->n_attr, sizeof(*s->attr));
		if (c->attr == NULL)
			return NULL;
		for (i = 0; i < s->n_attr; i++) {
			c->attr[i].type = schema_sty_copy(a, s->attr[i].type);
			if (c->attr[i].type == NULL)
				return NULL;
		}
	}
	return c;
}

struct cedar_saction *cedar_schema_src_action(struct cedar_schema_src *s, sv ns, sv id)
{
	uint32_t i, j;

	for (i = 0; i < s->n_ns; i++) {
		if (!sv_eq(cedar_sv(s->ns[i].name), ns))
			continue;
		for (j = 0; j < s->ns[i].n_action; j++)
			if (sv_eq(cedar_sv(s->ns[i].action[j].id), id))
				return &s->ns[i].action[j];
	}
	return NULL;
}

int cedar_sty_add(
    struct arena *a, struct cedar_sty **ty, cedar_sym name, struct cedar_sty *type, bool required)
{
	struct cedar_sattr *v;
	struct cedar_sty *r = *ty;
	uint32_t i;

	if (r == NULL) {
		r = ARENA_NEW(a, struct cedar_sty);
		if (r == NULL)
			return -1;
		r->kind = CEDAR_STY_RECORD;
	}
	for (i = 0; i < r->n_attr; i++)
		if (cedar_str_eq(r->attr[i].name, name))
			break;
	if (i == r->n_attr) {
		v = arena_grow(a, r->attr, r->n_attr, (size_t)r->n_attr + 1, sizeof(*v));
		if (v == NULL)
			return -1;
		r->attr = v;
		r->n_attr++;
	}
	r->attr[i] = (struct cedar_sattr){ .name = name, .required = required, .type = type };
	*ty = r;
	return 0;
}
