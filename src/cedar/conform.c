/* Values, requests and entities against a schema. Spec 3.6, last paragraph. */
#include "cedar/validate.h"

#include "base/ban.h"

static int refuse(struct box_err *err, const char *before, sv name, const char *after)
{
	return box_fail(
	    err, BOX_EPARSE, 0, "%s`" SV_FMT "`%s", before, SV_ARG(sv_sub(name, 0, 300)), after);
}

static bool is_action_type(cedar_sym t)
{
	return sv_eq(cedar_sv(t), SV("Action")) || sv_ends(cedar_sv(t), SV("::Action"));
}

/* A reference: enum ids and actions must be declared. */
static int check_uid(const struct cedar_schema *s, struct cedar_uid u, struct box_err *err)
{
	const struct cedar_entity_type *e = cedar_schema_etype(s, u.type);
	uint32_t i;

	if (is_action_type(u.type) && cedar_schema_action(s, u) == NULL)
		return refuse(err, "found action entity ", cedar_sv(u.id),
		    ", but it was not declared as an action in the schema");
	if (e == NULL || e->n_enum == 0)
		return 0;
	for (i = 0; i < e->n_enum; i++)
		if (cedar_str_eq(e->enum_id[i], u.id))
			return 0;
	return box_fail(err, BOX_EPARSE, 0,
	    "entity `" SV_FMT "::\"" SV_FMT "\"` is of an enumerated entity type, but `\"" SV_FMT
	    "\"` is not declared as a valid eid",
	    SV_ARG(cedar_sv(u.type)), SV_ARG(sv_sub(cedar_sv(u.id), 0, 200)),
	    SV_ARG(sv_sub(cedar_sv(u.id), 0, 200)));
}

static int mismatch(const struct cedar_value *v, const struct cedar_type *ty, struct box_err *err)
{
	AUTO_BUF b = buf_with(4096);
	const char *t;

	cedar_put_type(&b, ty);
	t = buf_cstr(&b);
	return box_fail(err, BOX_EPARSE, 0,
	    "type mismatch: value was expected to have type %s, but it has type %s",
	    t != NULL ? t : "…",
	    v->kind == CEDAR_ENTITY ? v->uid.type->p : cedar_kind_name(v->kind));
}

static int record_conforms(const struct cedar_schema *s, const struct cedar_record *r,
    const struct cedar_type *ty, struct box_err *err)
{
	uint32_t i, have = 0;

	for (i = 0; i < ty->n_attr; i++) {
		const struct cedar_value *v = cedar_record_get(r, ty->attr[i].name);

		if (v == NULL && ty->attr[i].required)
			return refuse(err, "expected attribute ", cedar_sv(ty->attr[i].name),
			    ", but it is missing");
		if (v == NULL)
			continue;
		have++;
		if (cedar_value_conforms(s, v, ty->attr[i].type, err) < 0)
			return box_wrap(err, "in attribute `%.200s`", ty->attr[i].name->p);
	}
	if (have == r->n)
		return 0;
	for (i = 0; i < r->n; i++)
		if (cedar_type_attr(ty, r->f[i].key) == NULL)
			return refuse(err, "attribute ", cedar_sv(r->f[i].key),
			    " should not exist according to the schema");
	return 0;
}

int cedar_value_conforms(const struct cedar_schema *s, const struct cedar_value *v,
    const struct cedar_type *ty, struct box_err *err)
{
	bool good = false;
	uint32_t i;

	switch (ty->kind) {
	case CEDAR_TY_NEVER:
		break;
	case CEDAR_TY_TRUE:
	case CEDAR_TY_FALSE:
		good = v->kind == CEDAR_BOOL && v->b == (ty->kind == CEDAR_TY_TRUE);
		break;
	case CEDAR_TY_BOOL:
		good = v->kind == CEDAR_BOOL;
		break;
	case CEDAR_TY_LONG:
		good = v->kind == CEDAR_LONG;
		break;
	case CEDAR_TY_STRING:
		good = v->kind == CEDAR_STRING;
		break;
	case CEDAR_TY_DECIMAL:
		good = v->kind == CEDAR_DECIMAL;
		break;
	case CEDAR_TY_IP:
		good = v->kind == CEDAR_IP;
		break;
	case CEDAR_TY_DATETIME:
		good = v->kind == CEDAR_DATETIME;
		break;
	case CEDAR_TY_DURATION:
		good = v->kind == CEDAR_DURATION;
		break;
	case CEDAR_TY_ENTITY:
		good = v->kind == CEDAR_ENTITY &&
		       (ty->ent == NULL || cedar_str_eq(ty->ent->name, v->uid.type));
		if (good && check_uid(s, v->uid, err) < 0)
			return -1;
		break;
	case CEDAR_TY_SET:
		if (v->kind != CEDAR_SET)
			break;
		for (i = 0; i < v->set->n; i++)
			if (ty->elem != NULL &&
			    cedar_value_conforms(s, &v->set->v[i], ty->elem, err) < 0)
				return -1;
		return 0;
	case CEDAR_TY_RECORD:
		if (v->kind == CEDAR_RECORD)
			return record_conforms(s, v->rec, ty, err);
		break;
	}
	return good ? 0 : mismatch(v, ty, err);
}

static int applies(const struct cedar_schema *s, struct cedar_uid u, const char *what,
    const struct cedar_entity_type *const *v, uint32_t n, struct cedar_uid action,
    struct box_err *err)
{
	const struct cedar_entity_type *e = cedar_schema_etype(s, u.type);
	uint32_t i;

	if (e == NULL || e->is_action)
		return box_fail(err, BOX_EPARSE, 0,
		    "%s type `" SV_FMT "` is not declared in the schema", what,
		    SV_ARG(cedar_sv(u.type)));
	if (check_uid(s, u, err) < 0)
		return -1;
	for (i = 0; i < n; i++)
		if (v[i] == e)
			return 0;
	return box_fail(err, BOX_EPARSE, 0,
	    "%s type `" SV_FMT "` is not valid for `" SV_FMT "::\"" SV_FMT "\"`", what,
	    SV_ARG(cedar_sv(u.type)), SV_ARG(cedar_sv(action.type)),
	    SV_ARG(sv_sub(cedar_sv(action.id), 0, 300)));
}

int cedar_request_conforms(
    const struct cedar_schema *s, const struct cedar_request *rq, struct box_err *err)
{
	static const struct cedar_record empty = { 0, NULL };
	const struct cedar_action *x = cedar_schema_action(s, rq->action);

	if (x == NULL)
		return box_fail(err, BOX_EPARSE, 0,
		    "request's action `" SV_FMT "::\"" SV_FMT "\"` is not declared in the schema",
		    SV_ARG(cedar_sv(rq->action.type)),
		    SV_ARG(sv_sub(cedar_sv(rq->action.id), 0, 300)));
	if (applies(s, rq->principal, "principal", x->principal, x->n_principal, x->uid, err) < 0 ||
	    applies(s, rq->resource, "resource", x->resource, x->n_resource, x->uid, err) < 0)
		return -1;
	if (record_conforms(s, rq->context != NULL ? rq->context : &empty, x->context, err) < 0)
		return box_wrap(err, "context is not valid");
	return 0;
}

static int action_conforms(
    const struct cedar_schema *s, const struct cedar_entity_data *e, struct box_err *err)
{
	const struct cedar_action *x = cedar_schema_action(s, e->uid);
	uint32_t i;
	bool same = true;

	if (x == NULL)
		return check_uid(s, e->uid, err);
	if ((e->attrs != NULL && e->attrs->n != 0) || (e->tags != NULL && e->tags->n != 0))
		same = false;
	/* Parents may be listed closed or not; the closure must be the schema's. */
	for (i = 0; i < e->n_parents; i++)
		same = same && !cedar_uid_eq(e->parents[i], e->uid) &&
		       cedar_action_in(x, e->parents[i]);
	for (i = 0; i < x->n_parent && same; i++) {
		uint32_t j;

		for (j = 0; j < e->n_parents; j++)
			if (cedar_uid_eq(e->parents[j], x->parent[i]->uid))
				break;
		/* One that is reached through another listed parent need not be listed. */
		if (j == e->n_parents) {
			for (j = 0; j < e->n_parents; j++) {
				const struct cedar_action *p =
				    cedar_schema_action(s, e->parents[j]);

				if (p != NULL && cedar_action_in(p, x->parent[i]->uid))
					break;
			}
			same = j < e->n_parents;
		}
	}
	return same ? 0
	            : refuse(err, "definition of action ", cedar_sv(e->uid.id),
	                  " does not match its schema declaration");
}

/* Unlike `in`, a type is below itself only when it is declared so. */
static bool may_have_ancestor(const struct cedar_entity_type *t, const struct cedar_entity_type *up)
{
	uint32_t i;

	for (i = 0; i < t->n_ancestor; i++)
		if (t->ancestor[i] == up)
			return true;
	return false;
}

int cedar_entity_conforms(
    const struct cedar_schema *s, const struct cedar_entity_data *e, struct box_err *err)
{
	static const struct cedar_record empty = { 0, NULL };
	const struct cedar_entity_type *t;
	uint32_t i;

	if (is_action_type(e->uid.type))
		return action_conforms(s, e, err);
	t = cedar_schema_etype(s, e->uid.type);
	if (t == NULL)
		return refuse(
		    err, "entity type ", cedar_sv(e->uid.type), " is not declared in the schema");
	if (check_uid(s, e->uid, err) < 0)
		return -1;
	if (record_conforms(s, e->attrs != NULL ? e->attrs : &empty, t->shape, err) < 0)
		return box_wrap(err, "entity `%.200s::\"%.200s\"`", e->uid.type->p, e->uid.id->p);
	for (i = 0; i < e->n_parents; i++) {
		const struct cedar_entity_type *up = cedar_schema_etype(s, e->parents[i].type);

		if (check_uid(s, e->parents[i], err) < 0)
			return -1;
		if (up == NULL || !may_have_ancestor(t, up))
			return box_fail(err, BOX_EPARSE, 0,
			    "`" SV_FMT "::\"" SV_FMT
			    "\"` is not allowed to have an ancestor of type `" SV_FMT
			    "` according to the schema",
			    SV_ARG(cedar_sv(e->uid.type)),
			    SV_ARG(sv_sub(cedar_sv(e->uid.id), 0, 200)),
			    SV_ARG(cedar_sv(e->parents[i].type)));
	}
	for (i = 0; e->tags != NULL && i < e->tags->n; i++) {
		if (t->tags == NULL)
			return refuse(err, "found a tag ", cedar_sv(e->tags->f[i].key),
			    ", but no tags should exist on this entity according to the schema");
		if (cedar_value_conforms(s, &e->tags->f[i].v, t->tags, err) < 0)
			return box_wrap(err, "in tag `%.200s`", e->tags->f[i].key->p);
	}
	return 0;
}
