/* Policies against a schema: names, applicability, and the typechecker in every environment.
 * Spec 3.6. */
#include "cedar/validate.h"

#include <stdio.h>
#include <stdlib.h>

#include "cedar/typecheck.h"

#include "base/ban.h"

/* Work of one call: expression nodes times environments. Beyond it the validation is given up,
 * which is an error. */
#define BUDGET      ((size_t)50 << 20)
#define ENV_LIMIT   ((size_t)64 << 20) /* bytes of one environment */
#define NEAR_LISTED 512

struct val {
	const struct cedar_schema *s;
	struct cedar_diags *ds;
	struct arena a;   /* texts and trees of one policy */
	struct arena env; /* of one environment */
	size_t budget;
	struct tc c;
};

/* ---- names --------------------------------------------------------------------------------- */

static const char *near_etype(struct val *v, sv word)
{
	sv names[NEAR_LISTED], near;
	size_t i, n = 0;

	for (i = 0; i < v->s->n_etype && n < NEAR_LISTED; i++)
		if (!v->s->etype[i]->is_action)
			names[n++] = cedar_sv(v->s->etype[i]->name);
	near = cedar_nearest(word, names, n);
	return near.n != 0 ? arena_printf(&v->a, "did you mean `" SV_FMT "`?", SV_ARG(near)) : NULL;
}

static const char *uid_text(struct val *v, struct cedar_uid u)
{
	AUTO_BUF b = buf_with(1 << 16);
	const char *s;

	cedar_put_uid(&b, u);
	s = buf_ok(&b) ? arena_printf(&v->a, SV_FMT, SV_ARG(buf_sv(&b))) : NULL;
	return s != NULL ? s : "?";
}

static const char *near_action(struct val *v, struct cedar_uid u)
{
	sv names[NEAR_LISTED], near;
	size_t i, n = 0;

	for (i = 0; i < v->s->n_action && n < NEAR_LISTED; i++)
		names[n++] = sv_c(uid_text(v, v->s->action[i]->uid));
	near = cedar_nearest(sv_c(uid_text(v, u)), names, n);
	return near.n != 0 ? arena_printf(&v->a, "did you mean `" SV_FMT "`?", SV_ARG(near)) : NULL;
}

static bool is_action_type(cedar_sym t)
{
	return sv_eq(cedar_sv(t), SV("Action")) || sv_ends(cedar_sv(t), SV("::Action"));
}

static void check_type_name(struct val *v, cedar_sym name, const struct cedar_span *at)
{
	if (is_action_type(name) || cedar_schema_etype(v->s, name) != NULL)
		return;
	tc_error(&v->c, at, near_etype(v, cedar_sv(name)),
	    "for policy `" SV_FMT "`, unrecognized entity type `" SV_FMT "`", SV_ARG(v->c.policy),
	    SV_ARG(cedar_sv(name)));
}

static void check_enum(struct val *v, struct cedar_uid u, const struct cedar_span *at)
{
	const struct cedar_entity_type *e = cedar_schema_etype(v->s, u.type);
	AUTO_BUF b = buf_with(4096);
	uint32_t i;

	if (e == NULL || e->n_enum == 0)
		return;
	for (i = 0; i < e->n_enum; i++)
		if (cedar_str_eq(e->enum_id[i], u.id))
			return;
	buf_put_sv(&b, SV("valid entity eids: "));
	for (i = 0; i < e->n_enum; i++) {
		if (i > 0)
			buf_put_sv(&b, SV(", "));
		cedar_put_quoted(&b, cedar_sv(e->enum_id[i]));
	}
	tc_error(&v->c, at, buf_cstr(&b),
	    "for policy `" SV_FMT "`: entity `%s` is of an enumerated entity type, but `\"" SV_FMT
	    "\"` is not declared as a valid eid",
	    SV_ARG(v->c.policy), uid_text(v, u), SV_ARG(cedar_sv(u.id)));
}

static void check_uid(struct val *v, struct cedar_uid u, const struct cedar_span *at)
{
	check_type_name(v, u.type, at);
	if (!is_action_type(u.type)) {
		check_enum(v, u, at);
		return;
	}
	if (cedar_schema_action(v->s, u) == NULL)
		tc_error(&v->c, at, near_action(v, u),
		    "for policy `" SV_FMT "`, unrecognized action `%s`", SV_ARG(v->c.policy),
		    uid_text(v, u));
}

static int check_node(void *ctx, struct cedar_expr **node)
{
	struct cedar_expr *e = *node;
	struct val *v = ctx;

	if (e->kind == CEDAR_E_IS)
		check_type_name(v, e->name, &e->span);
	if (e->kind == CEDAR_E_LIT && e->value.kind == CEDAR_ENTITY)
		check_uid(v, e->value.uid, &e->span);
	return 0;
}

static void check_scope_names(struct val *v, const struct cedar_scope *s)
{
	uint32_t i;

	if (s->type != NULL)
		check_type_name(v, s->type, &s->type_span);
	if (s->uid.type != NULL)
		check_uid(v, s->uid, &s->uid_span);
	for (i = 0; i < s->n_set; i++)
		check_uid(v, s->set[i], s->set_span != NULL ? &s->set_span[i] : &s->span);
}

/* ---- applicability ------------------------------------------------------------------------- */

/* Can an entity of this type satisfy the constraint? */
static bool scope_allows(
    const struct cedar_schema *s, const struct cedar_scope *c, const struct cedar_entity_type *e)
{
	const struct cedar_entity_type *to;

	switch (c->op) {
	case CEDAR_S_ANY:
	case CEDAR_S_IN_SET:
		return true;
	case CEDAR_S_EQ:
		return c->slot || cedar_str_eq(c->uid.type, e->name);
	case CEDAR_S_IS:
		return cedar_str_eq(c->type, e->name);
	case CEDAR_S_IS_IN:
		if (!cedar_str_eq(c->type, e->name))
			return false;
		break;
	case CEDAR_S_IN:
		break;
	}
	if (c->slot)
		return true;
	to = cedar_schema_etype(s, c->uid.type);
	return to != NULL && cedar_etype_can_be_in(e, to);
}

static bool action_allowed(
    const struct cedar_schema *s, const struct cedar_scope *c, const struct cedar_action *x)
{
	uint32_t i;

	switch (c->op) {
	case CEDAR_S_EQ:
		return cedar_uid_eq(c->uid, x->uid);
	case CEDAR_S_IN:
		return cedar_action_in(x, c->uid);
	case CEDAR_S_IN_SET:
		/* One unknown action makes the whole list unknown; it is reported by itself. */
		for (i = 0; i < c->n_set; i++)
			if (cedar_schema_action(s, c->set[i]) == NULL)
				return false;
		for (i = 0; i < c->n_set; i++)
			if (cedar_action_in(x, c->set[i]))
				return true;
		return false;
	default:
		return true;
	}
}

static bool any_allowed(const struct cedar_schema *s, const struct cedar_scope *c,
    const struct cedar_entity_type *const *v, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (scope_allows(s, c, v[i]))
			return true;
	return false;
}

static bool can_apply(
    const struct cedar_schema *s, const struct cedar_policy *p, const struct cedar_action *x)
{
	return action_allowed(s, &p->action, x) &&
	       any_allowed(s, &p->principal, x->principal, x->n_principal) &&
	       any_allowed(s, &p->resource, x->resource, x->n_resource);
}

int cedar_policy_actions(const struct cedar_schema *s, const struct cedar_policy *p,
    struct arena *a, const struct cedar_action ***out, size_t *n)
{
	const struct cedar_action **v = ARENA_VEC(a, const struct cedar_action *, s->n_action);
	size_t i;

	*n = 0;
	if (v == NULL)
		return -1;
	for (i = 0; i < s->n_action; i++)
		if (can_apply(s, p, s->action[i]))
			v[(*n)++] = s->action[i];
	*out = v;
	return 0;
}

/* Would `in` instead of `==` help? The type named is no type the action applies to, but one such
 * type can be in it. */
static bool in_would_fix(const struct cedar_schema *s, const struct cedar_policy *p, bool principal)
{
	const struct cedar_scope *c = principal ? &p->principal : &p->resource;
	const struct cedar_entity_type *to;
	bool found = false;
	size_t i;
	uint32_t k;

	if (c->op != CEDAR_S_EQ || c->slot)
		return false;
	to = cedar_schema_etype(s, c->uid.type);
	for (i = 0; to != NULL && i < s->n_action; i++) {
		const struct cedar_action *x = s->action[i];
		const struct cedar_entity_type *const *v = principal ? x->principal : x->resource;
		uint32_t n = principal ? x->n_principal : x->n_resource;

		if (!action_allowed(s, &p->action, x))
			continue;
		for (k = 0; k < n; k++) {
			if (v[k] == to)
				return false;
			found = found || cedar_etype_can_be_in(v[k], to);
		}
	}
	return found;
}

static void check_applicable(struct val *v, const struct cedar_policy *p)
{
	bool pr, re;
	size_t i;

	for (i = 0; i < v->s->n_action; i++)
		if (can_apply(v->s, p, v->s->action[i]))
			return;
	pr = in_would_fix(v->s, p, true);
	re = in_would_fix(v->s, p, false);
	tc_error(&v->c, &p->span,
	    pr && re
	        ? "try replacing `==` with `in` in the principal clause and the resource clause"
	    : pr ? "try replacing `==` with `in` in the principal clause"
	    : re ? "try replacing `==` with `in` in the resource clause"
	         : NULL,
	    "for policy `" SV_FMT
	    "`, unable to find an applicable action given the policy scope constraints",
	    SV_ARG(v->c.policy));
}

/* ---- typechecking -------------------------------------------------------------------------- */

static struct cedar_expr *bare(
    struct val *v, enum cedar_expr_kind k, const struct cedar_span *at, size_t n)
{
	struct cedar_expr *e = ARENA_NEW(&v->a, struct cedar_expr);

	if (e == NULL)
		return NULL;
	e->kind = k;
	e->span = *at;
	e->n_arg = (uint32_t)n;
	e->arg = ARENA_VEC(&v->a, struct cedar_expr *, n);
	return e->arg != NULL ? e : NULL;
}

static struct cedar_expr *uid_expr(struct val *v, struct cedar_uid u, const struct cedar_span *at)
{
	struct cedar_expr *e = bare(v, CEDAR_E_LIT, at, 0);

	if (e != NULL)
		e->value = cedar_entity(u);
	return e;
}

/* A scope element as the condition it stands for; true for a bare one. */
static struct cedar_expr *scope_expr(struct val *v, const struct cedar_scope *s, enum cedar_var var)
{
	struct cedar_expr *e, *x = bare(v, CEDAR_E_VAR, &s->span, 0), *to = NULL;
	uint32_t i;

	if (x == NULL)
		return NULL;
	x->var = var;
	if (s->op == CEDAR_S_ANY) {
		x->kind = CEDAR_E_LIT;
		x->value = cedar_bool(true);
		return x;
	}
	if (s->op == CEDAR_S_IN_SET) {
		to = bare(v, CEDAR_E_SET, &s->span, s->n_set);
		for (i = 0; to != NULL && i < s->n_set; i++) {
			to->arg[i] = uid_expr(v, s->set[i], &s->span);
			if (to->arg[i] == NULL)
				return NULL;
		}
	} else if (s->slot) {
		to = bare(v, CEDAR_E_SLOT, &s->span, 0);
		if (to != NULL)
			to->var = var;
	} else if (s->op != CEDAR_S_IS) {
		to = uid_expr(v, s->uid, &s->uid_span);
	}
	if (to == NULL && s->op != CEDAR_S_IS)
		return NULL;
	e = bare(v,
	    s->op == CEDAR_S_EQ                             ? CEDAR_E_EQ
	    : s->op == CEDAR_S_IS || s->op == CEDAR_S_IS_IN ? CEDAR_E_IS
	                                                    : CEDAR_E_IN,
	    &s->span, to != NULL ? 2 : 1);
	if (e == NULL)
		return NULL;
	e->arg[0] = x;
	if (to != NULL)
		e->arg[1] = to;
	if (e->kind == CEDAR_E_IS)
		e->name = s->type;
	return e;
}

/* The whole policy as one condition: scope, then conditions. */
static struct cedar_expr *condition(struct val *v, const struct cedar_policy *p)
{
	struct cedar_expr *all = bare(v, CEDAR_E_AND, &p->span, (size_t)p->n_cond + 3), *not ;
	uint32_t i;

	if (all == NULL)
		return NULL;
	all->arg[0] = scope_expr(v, &p->principal, CEDAR_PRINCIPAL);
	all->arg[1] = scope_expr(v, &p->action, CEDAR_ACTION);
	all->arg[2] = scope_expr(v, &p->resource, CEDAR_RESOURCE);
	for (i = 0; i < 3; i++)
		if (all->arg[i] == NULL)
			return NULL;
	for (i = 0; i < p->n_cond; i++) {
		all->arg[i + 3] = p->cond[i].e;
		if (!p->cond[i].unless)
			continue;
		not = bare(v, CEDAR_E_NOT, &p->cond[i].e->span, 1);
		if (not == NULL)
			return NULL;
		not ->arg[0] = p->cond[i].e;
		all->arg[i + 3] = not ;
	}
	return all;
}

/* One environment. true when the policy is surely false in it. */
static bool check_env(struct val *v, const struct cedar_expr *cond)
{
	struct tc_ans x;

	arena_reset(&v->env);
	v->c.gave_up = false;
	x = tc_check_bool(&v->c, NULL, cond);
	if (v->c.gave_up)
		return false;
	return x.ty != NULL && x.ty->kind == CEDAR_TY_FALSE;
}

/* The types a slot may have when the variable has type e; called for each, all of them when the
 * template does not tell. */
static bool each_slot(
    struct val *v, const struct cedar_policy *p, int k, const struct cedar_expr *cond)
{
	const struct cedar_scope *c = k == 0 ? &p->principal : &p->resource;
	const struct cedar_entity_type *e = k == 0 ? v->c.principal : v->c.resource;
	bool all_false = true;
	size_t i;

	if (k == 2)
		return check_env(v, cond);
	v->c.slot[k] = NULL;
	if (!p->has_slot[k])
		return each_slot(v, p, k + 1, cond);
	if (c->slot && c->op == CEDAR_S_EQ) {
		v->c.slot[k] = e;
		return each_slot(v, p, k + 1, cond);
	}
	for (i = 0; i < v->s->n_etype && !v->c.gave_up; i++) {
		const struct cedar_entity_type *to = v->s->etype[i];

		if (to->is_action || (c->slot && !cedar_etype_can_be_in(e, to)))
			continue;
		v->c.slot[k] = to;
		all_false &= each_slot(v, p, k + 1, cond);
	}
	return all_false;
}

static void typecheck(struct val *v, const struct cedar_policy *p)
{
	struct cedar_expr *cond = condition(v, p);
	bool all_false = true;
	size_t i;
	uint32_t j, k;

	if (cond == NULL)
		v->c.gave_up = true;
	for (i = 0; i < v->s->n_action && !v->c.gave_up; i++) {
		const struct cedar_action *x = v->s->action[i];

		for (j = 0; j < x->n_principal && !v->c.gave_up; j++)
			for (k = 0; k < x->n_resource && !v->c.gave_up; k++) {
				v->c.action = x;
				v->c.principal = x->principal[j];
				v->c.resource = x->resource[k];
				all_false &= each_slot(v, p, 0, cond);
			}
	}
	if (v->c.gave_up)
		tc_error(&v->c, &p->span,
		    "split the policy, or the schema's actions, into smaller ones",
		    "for policy `" SV_FMT "`, the validation takes too long or too much memory",
		    SV_ARG(v->c.policy));
	else if (all_false)
		cedar_diag_add(v->ds, CEDAR_WARNING, "validate", &p->span, NULL,
		    "for policy `" SV_FMT "`, policy is impossible: the policy expression "
		    "evaluates to false for all valid requests",
		    SV_ARG(v->c.policy));
}

static void check_policy(struct val *v, const struct cedar_link *l)
{
	const struct cedar_policy *p = l->policy;
	struct cedar_policy linked;
	uint32_t i;

	arena_reset(&v->a);
	v->c = (struct tc){
		.s = v->s, .a = &v->env, .ds = v->ds, .first = v->ds->n, .budget = &v->budget
	};
	v->c.policy = cedar_sv(l->id != NULL ? l->id : p->id);
	check_scope_names(v, &p->principal);
	check_scope_names(v, &p->action);
	check_scope_names(v, &p->resource);
	for (i = 0; i < p->n_cond; i++) {
		struct cedar_expr *e = p->cond[i].e;

		(void)cedar_expr_walk(&e, check_node, v); /* check_node never stops */
	}
	linked = *p;
	for (i = 0; i < 2; i++) {
		struct cedar_scope *s = i == 0 ? &linked.principal : &linked.resource;

		if (l->slot[i].type == NULL)
			continue;
		/* As Cedar does: the type must be known; the ids of an enumerated one are not
		 * looked at in a link. */
		check_type_name(v, l->slot[i].type, &p->span);
		if (s->slot) {
			s->slot = false;
			s->uid = l->slot[i];
		}
	}
	check_applicable(v, &linked);
	typecheck(v, p);
}

size_t cedar_validate(
    const struct cedar_schema *s, const struct cedar_link *link, size_t n, struct cedar_diags *ds)
{
	struct val v = { .s = s, .ds = ds, .budget = BUDGET };
	size_t before = ds->errors, i;

	v.a.limit = ENV_LIMIT;
	v.env.limit = ENV_LIMIT;
	for (i = 0; i < n; i++)
		check_policy(&v, &link[i]);
	arena_free(&v.a);
	arena_free(&v.env);
	return ds->errors - before;
}

size_t cedar_validate_source(
    const struct cedar_schema *s, const struct cedar_source *src, struct cedar_diags *ds)
{
	struct cedar_link *link = calloc(src->n_policy + 1, sizeof(*link));
	size_t i, r;

	if (link == NULL) {
		cedar_diag_add(ds, CEDAR_ERROR, "limit", NULL, NULL, "out of memory");
		return 1;
	}
	for (i = 0; i < src->n_policy; i++)
		link[i].policy = &src->policy[i];
	r = cedar_validate(s, link, src->n_policy, ds);
	free(link);
	return r;
}
