/* Types of the strict validator: subtypes, joins, and when two expressions are the same. Spec
 * 3.6. */
#include "cedar/typecheck.h"

#include "base/ban.h"

#define TY(name, k) const struct cedar_type name = { .kind = k }
TY(tc_ty_never, CEDAR_TY_NEVER);
TY(tc_ty_true, CEDAR_TY_TRUE);
TY(tc_ty_false, CEDAR_TY_FALSE);
TY(tc_ty_bool, CEDAR_TY_BOOL);
TY(tc_ty_long, CEDAR_TY_LONG);
TY(tc_ty_string, CEDAR_TY_STRING);
TY(tc_ty_decimal, CEDAR_TY_DECIMAL);
TY(tc_ty_ip, CEDAR_TY_IP);
TY(tc_ty_datetime, CEDAR_TY_DATETIME);
TY(tc_ty_duration, CEDAR_TY_DURATION);
TY(tc_ty_any_entity, CEDAR_TY_ENTITY);

static bool is_bool(const struct cedar_type *t)
{
	return t->kind == CEDAR_TY_BOOL || t->kind == CEDAR_TY_TRUE || t->kind == CEDAR_TY_FALSE;
}

bool tc_subtype(const struct cedar_type *x, const struct cedar_type *y)
{
	uint32_t i;

	if (x == y || x->kind == CEDAR_TY_NEVER)
		return true;
	if (is_bool(x) && is_bool(y))
		return x->kind == y->kind || y->kind == CEDAR_TY_BOOL;
	if (x->kind != y->kind)
		return false;
	switch (x->kind) {
	case CEDAR_TY_SET:
		if (y->elem == NULL)
			return true;
		return x->elem != NULL && tc_subtype(x->elem, y->elem);
	case CEDAR_TY_RECORD:
		/* No width: the same attributes, each as required as the other. */
		if (x->n_attr != y->n_attr)
			return false;
		for (i = 0; i < x->n_attr; i++)
			if (!cedar_str_eq(x->attr[i].name, y->attr[i].name) ||
			    x->attr[i].required != y->attr[i].required ||
			    !tc_subtype(x->attr[i].type, y->attr[i].type))
				return false;
		return true;
	case CEDAR_TY_ENTITY:
		return x->ent == y->ent || y->ent == NULL;
	default:
		return true;
	}
}

static const struct cedar_type *join_records(
    struct arena *a, const struct cedar_type *x, const struct cedar_type *y, const char **why)
{
	struct cedar_type *t;
	struct cedar_attr *v;
	uint32_t i;

	*why = "Compatible record types must have exactly the same attributes";
	if (x->n_attr != y->n_attr)
		return NULL;
	for (i = 0; i < x->n_attr; i++)
		if (!cedar_str_eq(x->attr[i].name, y->attr[i].name))
			return NULL;
	t = ARENA_NEW(a, struct cedar_type);
	v = ARENA_VEC(a, struct cedar_attr, x->n_attr);
	if (t == NULL || v == NULL)
		return NULL;
	for (i = 0; i < x->n_attr; i++) {
		v[i] = x->attr[i];
		v[i].type = tc_join(a, x->attr[i].type, y->attr[i].type, why);
		if (v[i].type == NULL)
			return NULL;
		if (x->attr[i].required != y->attr[i].required) {
			*why = "Corresponding attributes of compatible record types must have the "
			       "same "
			       "optionality, either both being required or both being optional";
			return NULL;
		}
	}
	*t = (struct cedar_type){ .kind = CEDAR_TY_RECORD, .attr = v, .n_attr = x->n_attr };
	return t;
}

const struct cedar_type *tc_join(
    struct arena *a, const struct cedar_type *x, const struct cedar_type *y, const char **why)
{
	static const struct cedar_type any_bool = { .kind = CEDAR_TY_BOOL };
	const struct cedar_type *elem;
	struct cedar_type *t;

	*why = "Types must be exactly equal to be compatible";
	if (tc_subtype(x, y))
		return y;
	if (tc_subtype(y, x))
		return x;
	if (is_bool(x) && is_bool(y))
		return &any_bool;
	if (x->kind == CEDAR_TY_SET && y->kind == CEDAR_TY_SET) {
		if (x->elem == NULL || y->elem == NULL)
			return x->elem == NULL ? x : y;
		elem = tc_join(a, x->elem, y->elem, why);
		t = elem != NULL ? ARENA_NEW(a, struct cedar_type) : NULL;
		if (t == NULL)
			return NULL;
		*t = (struct cedar_type){ .kind = CEDAR_TY_SET, .elem = elem };
		return t;
	}
	if (x->kind == CEDAR_TY_RECORD && y->kind == CEDAR_TY_RECORD)
		return join_records(a, x, y, why);
	if (x->kind == CEDAR_TY_ENTITY && y->kind == CEDAR_TY_ENTITY)
		*why = "Different entity types are never compatible even when their attributes "
		       "would be "
		       "compatible";
	else if ((x->kind == CEDAR_TY_ENTITY && y->kind == CEDAR_TY_RECORD) ||
	         (x->kind == CEDAR_TY_RECORD && y->kind == CEDAR_TY_ENTITY))
		*why = "Entity and record types are never compatible even when their attributes "
		       "would be "
		       "compatible";
	return NULL;
}

static bool same_names(const struct cedar_expr *x, const struct cedar_expr *y)
{
	uint32_t i;

	if (x->n_path != y->n_path)
		return false;
	for (i = 0; i < x->n_path; i++)
		if (!cedar_str_eq(x->path[i], y->path[i]))
			return false;
	return true;
}

static bool same_pattern(const struct cedar_pattern *x, const struct cedar_pattern *y)
{
	uint32_t i;

	if (x->n != y->n)
		return false;
	for (i = 0; i < x->n; i++)
		if (!sv_eq(x->run[i], y->run[i]))
			return false;
	return true;
}

bool tc_same_expr(const struct cedar_expr *x, const struct cedar_expr *y)
{
	uint32_t i;

	if (x == y)
		return true;
	if (x->kind != y->kind || x->n_arg != y->n_arg)
		return false;
	switch (x->kind) {
	case CEDAR_E_LIT:
		return cedar_value_eq(&x->value, &y->value);
	case CEDAR_E_VAR:
	case CEDAR_E_SLOT:
		return x->var == y->var;
	case CEDAR_E_LEAF:
		return x->leaf == y->leaf || (x->leaf->is_provider && y->leaf->is_provider &&
		                                 sv_eq(x->leaf->text, y->leaf->text));
	case CEDAR_E_PARAM:
	case CEDAR_E_GET:
	case CEDAR_E_IS:
	case CEDAR_E_CALL:
	case CEDAR_E_METHOD:
		if (!cedar_str_eq(x->name, y->name))
			return false;
		break;
	case CEDAR_E_EXT:
		if (x->ext != y->ext)
			return false;
		break;
	case CEDAR_E_LIKE:
		if (!same_pattern(&x->pattern, &y->pattern))
			return false;
		break;
	case CEDAR_E_HAS:
	case CEDAR_E_RECORD:
		if (!same_names(x, y))
			return false;
		break;
	default:
		break;
	}
	for (i = 0; i < x->n_arg; i++)
		if (!tc_same_expr(x->arg[i], y->arg[i]))
			return false;
	return true;
}
