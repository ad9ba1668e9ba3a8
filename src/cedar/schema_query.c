/* Questions about resolved schemas, and contexts of their own for actions. See schema.h. */
#include "cedar/schema.h"
#include "cedar/schema_priv.h"

#include "base/ban.h"

/* ---- questions ----------------------------------------------------------------------------- */

const struct cedar_entity_type *cedar_schema_etype(const struct cedar_schema *s, cedar_sym name)
{
	size_t lo = 0, hi = s->n_etype;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = sv_cmp(cedar_sv(s->etype[mid]->name), cedar_sv(name));

		if (c == 0)
			return s->etype[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

const struct cedar_action *cedar_schema_action(const struct cedar_schema *s, struct cedar_uid u)
{
	size_t lo = 0, hi = s->n_action;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = sv_cmp(cedar_sv(s->action[mid]->uid.type), cedar_sv(u.type));

		if (c == 0)
			c = sv_cmp(cedar_sv(s->action[mid]->uid.id), cedar_sv(u.id));
		if (c == 0)
			return s->action[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

const struct cedar_attr *cedar_type_attr(const struct cedar_type *record, cedar_sym name)
{
	return cedar_type_attr_named(record, cedar_sv(name));
}

const struct cedar_attr *cedar_type_attr_named(const struct cedar_type *record, sv name)
{
	uint32_t lo = 0, hi = record->n_attr;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		int c = sv_cmp(cedar_sv(record->attr[mid].name), name);

		if (c == 0)
			return &record->attr[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

bool cedar_etype_can_be_in(const struct cedar_entity_type *a, const struct cedar_entity_type *b)
{
	uint32_t lo = 0, hi = a->n_ancestor;

	if (a == b)
		return true;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (a->ancestor[mid] == b)
			return true;
		if ((uintptr_t)a->ancestor[mid] < (uintptr_t)b)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

bool cedar_action_in(const struct cedar_action *a, struct cedar_uid group)
{
	uint32_t i;

	if (cedar_uid_eq(a->uid, group))
		return true;
	for (i = 0; i < a->n_ancestor; i++)
		if (cedar_uid_eq(a->ancestor[i]->uid, group))
			return true;
	return false;
}

void cedar_put_type(struct buf *b, const struct cedar_type *ty)
{
	uint32_t i;

	switch (ty->kind) {
	case CEDAR_TY_NEVER:
		buf_put_sv(b, SV("__cedar::internal::Never"));
		break;
	case CEDAR_TY_TRUE:
		buf_put_sv(b, SV("__cedar::internal::True"));
		break;
	case CEDAR_TY_FALSE:
		buf_put_sv(b, SV("__cedar::internal::False"));
		break;
	case CEDAR_TY_BOOL:
		buf_put_sv(b, SV("Bool"));
		break;
	case CEDAR_TY_LONG:
		buf_put_sv(b, SV("Long"));
		break;
	case CEDAR_TY_STRING:
		buf_put_sv(b, SV("String"));
		break;
	case CEDAR_TY_SET:
		buf_put_sv(b, SV("Set<"));
		if (ty->elem != NULL)
			cedar_put_type(b, ty->elem);
		else
			buf_put_sv(b, SV("__cedar::internal::Any"));
		buf_put_byte(b, '>');
		break;
	case CEDAR_TY_RECORD:
		buf_put_byte(b, '{');
		for (i = 0; i < ty->n_attr; i++) {
			buf_put_sv(b, cedar_sv(ty->attr[i].name));
			if (!ty->attr[i].required)
				buf_put_byte(b, '?');
			buf_put_sv(b, SV(": "));
			cedar_put_type(b, ty->attr[i].type);
			buf_put_byte(b, ',');
		}
		buf_put_byte(b, '}');
		break;
	case CEDAR_TY_ENTITY:
		buf_put_sv(b,
		    ty->ent != NULL ? cedar_sv(ty->ent->name) : SV("__cedar::internal::AnyEntity"));
		break;
	case CEDAR_TY_DECIMAL:
		buf_put_sv(b, SV("decimal"));
		break;
	case CEDAR_TY_IP:
		buf_put_sv(b, SV("ipaddr"));
		break;
	case CEDAR_TY_DATETIME:
		buf_put_sv(b, SV("datetime"));
		break;
	case CEDAR_TY_DURATION:
		buf_put_sv(b, SV("duration"));
		break;
	}
}

/* ---- contexts of their own ----------------------------------------------------------------- */

static const struct cedar_scommon *find_common(
    const struct cedar_schema_src *s, sv whole_name, cedar_sym *ns_out)
{
	uint32_t i, j;

	for (i = 0; i < s->n_ns; i++) {
		sv ns = cedar_sv(s->ns[i].name), rest = whole_name;

		if (ns.n != 0) {
			if (!sv_starts(rest, ns) || rest.n < ns.n + 3 || rest.p[ns.n] != ':')
				continue;
			rest = sv_sub(rest, ns.n + 2, SIZE_MAX);
		}
		for (j = 0; j < s->ns[i].n_common; j++)
			if (sv_eq(cedar_sv(s->ns[i].common[j].name), rest)) {
				*ns_out = s->ns[i].name;
				return &s->ns[i].common[j];
			}
	}
	return NULL;
}

static bool has_entity(const struct cedar_schema_src *s, cedar_sym ns, cedar_sym name)
{
	uint32_t i, j;

	for (i = 0; i < s->n_ns; i++) {
		if (s->ns[i].name != ns)
			continue;
		for (j = 0; j < s->ns[i].n_entity; j++)
			if (s->ns[i].entity[j].name == name)
				return true;
	}
	return false;
}

/* Names that mean something of namespace ns become whole, so that the type can stand elsewhere. */
static int make_whole(struct cedar_syms *t, struct arena *a, const struct cedar_schema_src *s,
    cedar_sym ns, struct cedar_sty *ty)
{
	cedar_sym n, in;
	uint32_t i;

	if (ty->kind == CEDAR_STY_SET)
		return make_whole(t, a, s, ns, ty->elem);
	for (i = 0; i < ty->n_attr; i++)
		if (make_whole(t, a, s, ns, ty->attr[i].type) < 0)
			return -1;
	if (ty->kind == CEDAR_STY_RECORD || ty->kind == CEDAR_STY_PRIM || ns->n == 0 ||
	    sv_find(cedar_sv(ty->name), ':') >= 0)
		return 0;
	n = schema_join(t, a, ns, ty->name);
	if (n == NULL)
		return -1;
	if ((ty->kind != CEDAR_STY_ENTITY && find_common(s, cedar_sv(n), &in) != NULL) ||
	    (ty->kind != CEDAR_STY_COMMON && has_entity(s, ns, ty->name)))
		ty->name = n;
	return 0;
}

int cedar_schema_own_context(struct cedar_syms *t, struct arena *a, struct cedar_schema_src *s,
    sv ns, struct cedar_saction *x)
{
	cedar_sym in = cedar_intern(t, ns), n;
	struct cedar_sty *ty = x->context;
	const struct cedar_scommon *c;
	unsigned hops;

	if (in == NULL)
		return -1;
	for (hops = 0; ty != NULL && ty->kind != CEDAR_STY_RECORD; hops++) {
		if ((ty->kind != CEDAR_STY_NAME && ty->kind != CEDAR_STY_COMMON) ||
		    hops > CEDAR_SCHEMA_MAX_DEPTH)
			return -1;
		n = sv_find(cedar_sv(ty->name), ':') >= 0 ? ty->name
		                                          : schema_join(t, a, in, ty->name);
		c = n != NULL ? find_common(s, cedar_sv(n), &in) : NULL;
		if (c == NULL)
			c = find_common(s, cedar_sv(ty->name), &in);
		if (c == NULL)
			return -1;
		ty = c->type;
	}
	if (ty != NULL && ty != x->context) {
		ty = schema_sty_copy(a, ty);
		if (ty == NULL || make_whole(t, a, s, in, ty) < 0)
			return -1;
		x->context = ty;
	}
	return 0;
}
