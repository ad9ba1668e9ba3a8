/* Types of operators, attributes, tags, hierarchies, sets and functions. See typecheck.c. */
#include "cedar/typecheck.h"

#include "base/ban.h"

static const char *help_set(const struct cedar_type *t)
{
	return t->kind == CEDAR_TY_ENTITY   ? "try using `in` for entity hierarchy membership"
	       : t->kind == CEDAR_TY_RECORD ? "try using `has` to test for an attribute"
	       : t->kind == CEDAR_TY_STRING ? "try using `like` to examine the contents of a string"
	                                    : NULL;
}

static const char *help_set_arg(const struct cedar_type *t)
{
	(void)t;
	return "try using `contains` to test if a single element is in a set";
}

static const char *help_like(const struct cedar_type *t)
{
	return t->kind == CEDAR_TY_ENTITY ? "try using `is` to test for an entity type" : NULL;
}

static const char *help_is(const struct cedar_type *t)
{
	(void)t;
	return "Cedar only supports run time type tests for entities";
}

static const char *help_in(const struct cedar_type *t)
{
	(void)t;
	return "try using `contains`, `containsAny`, or `containsAll` to examine the contents of a "
	       "set";
}

static const char *help_add(const struct cedar_type *t)
{
	return t->kind == CEDAR_TY_STRING ? "Cedar does not support string concatenation"
	       : t->kind == CEDAR_TY_SET  ? "Cedar does not support computing the union, "
	                                    "intersection, or difference of sets"
	                                  : NULL;
}

static const char *help_empty(const struct cedar_type *t)
{
	return t->kind == CEDAR_TY_STRING ? "try using `== \"\"` to test if a string is empty"
	                                  : NULL;
}

/* ---- joins --------------------------------------------------------------------------------- */

static void incompatible(struct tc *c, const struct cedar_expr *e, const struct cedar_type *x,
    const struct cedar_type *y, const char *where, const char *why)
{
	const char *a = tc_type_text(c, x), *b = tc_type_text(c, y);

	if (strcmp(a, b) > 0) {
		const char *t = a;

		a = b;
		b = t;
	}
	tc_error(c, &e->span,
	    arena_printf(c->a, "for policy `" SV_FMT "`, %s must have compatible types. %s",
	        SV_ARG(c->policy), where, why),
	    "the types %s and %s are not compatible", a, b);
}

/* The answer of an operator that needs compatible operands. */
static struct tc_ans strict(struct tc *c, const struct cedar_expr *e, struct tc_ans ans,
    const struct cedar_type *x, const struct cedar_type *y, const char *where)
{
	const char *why;

	if (ans.ty->kind == CEDAR_TY_TRUE || ans.ty->kind == CEDAR_TY_FALSE || x == NULL ||
	    y == NULL)
		return ans;
	if (tc_join(c->a, x, y, &why) == NULL) {
		incompatible(c, e, x, y, where, why);
		ans.ok = false;
	}
	return ans;
}

/* ---- operators ----------------------------------------------------------------------------- */

struct tc_ans tc_and(struct tc *c, struct tc_ans l, struct tc_ans r)
{
	struct tc_ans x = { l.ok && r.ok, NULL, NULL };

	if (l.ty == NULL || r.ty == NULL) {
		x.ok = false;
		x.ty = &tc_ty_bool;
	} else if (r.ty->kind == CEDAR_TY_FALSE) {
		x.ty = &tc_ty_false;
	} else if (r.ty->kind == CEDAR_TY_TRUE) {
		x.ty = l.ty;
		x.caps = tc_union(c, l.caps, r.caps);
	} else if (l.ty->kind == CEDAR_TY_TRUE) {
		x.ty = r.ty;
		x.caps = r.caps;
	} else {
		x.ty = &tc_ty_bool;
		x.caps = tc_union(c, l.caps, r.caps);
	}
	return x;
}

struct tc_ans tc_on_and(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans l = tc_check_bool(c, prior, e->arg[0]), r;
	const struct tc_cap *seen = tc_union(c, prior, l.caps);
	uint32_t i;

	for (i = 1; i < e->n_arg && !c->gave_up; i++) {
		bool was_true = l.ty != NULL && l.ty->kind == CEDAR_TY_TRUE;

		if (l.ty != NULL && l.ty->kind == CEDAR_TY_FALSE)
			return (struct tc_ans){ l.ok, &tc_ty_false, NULL };
		r = tc_check_bool(c, seen, e->arg[i]);
		l = tc_and(c, l, r);
		/* What a True operand proves is dropped, as in the reference; else the list only
		 * grows. */
		seen = was_true ? tc_union(c, prior, l.caps) : tc_union(c, seen, r.caps);
	}
	return l;
}

static struct tc_ans join_or(struct tc *c, struct tc_ans l, struct tc_ans r)
{
	struct tc_ans x = { l.ok && r.ok, NULL, NULL };

	if (l.ty == NULL || r.ty == NULL) {
		x.ok = false;
		x.ty = &tc_ty_bool;
	} else if (r.ty->kind == CEDAR_TY_TRUE) {
		x.ty = &tc_ty_true;
		x.caps = r.caps;
	} else if (r.ty->kind == CEDAR_TY_FALSE) {
		x.ty = l.ty;
		x.caps = l.caps;
	} else if (l.ty->kind == CEDAR_TY_FALSE) {
		x.ty = r.ty;
		x.caps = r.caps;
	} else {
		x.ty = &tc_ty_bool;
		x.caps = tc_intersect(c, r.caps, l.caps);
	}
	return x;
}

struct tc_ans tc_on_or(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans l = tc_check_bool(c, prior, e->arg[0]);
	uint32_t i;

	for (i = 1; i < e->n_arg && !c->gave_up; i++) {
		if (l.ty != NULL && l.ty->kind == CEDAR_TY_TRUE)
			return l;
		l = join_or(c, l, tc_check_bool(c, prior, e->arg[i]));
	}
	return l;
}

struct tc_ans tc_negate(struct tc_ans x)
{
	x.caps = NULL;
	if (x.ty == NULL) {
		x.ok = false;
		x.ty = &tc_ty_bool;
	} else {
		x.ty = x.ty->kind == CEDAR_TY_TRUE    ? &tc_ty_false
		       : x.ty->kind == CEDAR_TY_FALSE ? &tc_ty_true
		                                      : &tc_ty_bool;
	}
	return x;
}

struct tc_ans tc_on_if(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans t = tc_check_bool(c, prior, e->arg[0]), a, b, x;
	const char *why;

	if (t.ty != NULL && t.ty->kind == CEDAR_TY_FALSE)
		return tc_also(t.ok, tc_check(c, prior, e->arg[2]));
	a = tc_check(c, tc_union(c, prior, t.caps), e->arg[1]);
	a.caps = tc_union(c, a.caps, t.caps);
	if (t.ty != NULL && t.ty->kind == CEDAR_TY_TRUE)
		return tc_also(t.ok, a);
	b = tc_check(c, prior, e->arg[2]);
	x = tc_bad(NULL);
	if (a.ty == NULL || b.ty == NULL)
		return x;
	x.ty = tc_join(c->a, a.ty, b.ty, &why);
	if (x.ty == NULL) {
		incompatible(c, e, a.ty, b.ty, "both branches of a conditional", why);
		return x;
	}
	x.ok = t.ok && a.ok && b.ok;
	x.caps = tc_intersect(c, b.caps, a.caps);
	return x;
}

/* `&&` and `||` of Boolean literals are literals, as they are in Cedar's trees. */
static bool as_bool(const struct cedar_expr *e, bool *v)
{
	bool one;
	uint32_t i;

	if (e->kind == CEDAR_E_LIT && e->value.kind == CEDAR_BOOL) {
		*v = e->value.b;
		return true;
	}
	if (e->kind != CEDAR_E_AND && e->kind != CEDAR_E_OR)
		return false;
	*v = e->kind == CEDAR_E_AND;
	for (i = 0; i < e->n_arg; i++) {
		if (!as_bool(e->arg[i], &one))
			return false;
		*v = e->kind == CEDAR_E_AND ? *v && one : *v || one;
	}
	return true;
}

/* A literal, the action variable counting as the action of the environment. */
static bool as_literal(const struct tc *c, const struct cedar_expr *e, struct cedar_value *v)
{
	bool b;

	if (as_bool(e, &b)) {
		*v = cedar_bool(b);
		return true;
	}
	if (e->kind == CEDAR_E_VAR && e->var == CEDAR_ACTION) {
		*v = cedar_entity(c->action->uid);
		return true;
	}
	if (e->kind != CEDAR_E_LIT)
		return false;
	*v = e->value;
	return true;
}

struct tc_ans tc_on_eq(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans l = tc_check(c, prior, e->arg[0]), r = tc_check(c, prior, e->arg[1]);
	const struct cedar_type *ty = &tc_ty_bool;
	struct cedar_value x, y;

	if (l.ty != NULL && r.ty != NULL && l.ty->kind == CEDAR_TY_ENTITY &&
	    r.ty->kind == CEDAR_TY_ENTITY && l.ty->ent != NULL && r.ty->ent != NULL &&
	    l.ty->ent != r.ty->ent)
		ty = &tc_ty_false;
	else if (as_literal(c, e->arg[0], &x) && as_literal(c, e->arg[1], &y))
		ty = cedar_value_eq(&x, &y) ? &tc_ty_true : &tc_ty_false;
	return tc_also(l.ok && r.ok,
	    strict(c, e, tc_good(ty), l.ty, r.ty, "both operands to a `==` expression"));
}

static bool ordered(const struct cedar_type *t)
{
	return t->kind == CEDAR_TY_LONG || t->kind == CEDAR_TY_DATETIME ||
	       t->kind == CEDAR_TY_DURATION;
}

struct tc_ans tc_on_less(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	static const char all[] = "Long, or datetime, or duration";
	struct tc_ans l = tc_check(c, prior, e->arg[0]), r = tc_check(c, prior, e->arg[1]);
	const struct cedar_span *lat = &e->arg[0]->span, *rat = &e->arg[1]->span;

	if (l.ty == NULL || r.ty == NULL ||
	    (l.ty->kind == CEDAR_TY_NEVER && r.ty->kind == CEDAR_TY_NEVER))
		return tc_bad(&tc_ty_bool);
	if (l.ty->kind == CEDAR_TY_NEVER   ? ordered(r.ty)
	    : r.ty->kind == CEDAR_TY_NEVER ? ordered(l.ty)
	                                   : l.ty->kind == r.ty->kind && ordered(l.ty))
		return tc_also(l.ok && r.ok, tc_good(&tc_ty_bool));
	if (l.ty->kind == CEDAR_TY_NEVER) {
		tc_unexpected(c, rat, all, r.ty, NULL);
	} else if (r.ty->kind == CEDAR_TY_NEVER) {
		tc_unexpected(c, lat, all, l.ty, NULL);
	} else if (l.ty->kind == CEDAR_TY_LONG) {
		tc_unexpected(c, rat, "Long", r.ty, NULL);
	} else if (r.ty->kind == CEDAR_TY_LONG) {
		tc_unexpected(c, lat, "Long", l.ty, NULL);
	} else if (ordered(l.ty)) {
		tc_unexpected(c, rat, tc_type_text(c, l.ty), r.ty, NULL);
	} else if (ordered(r.ty)) {
		tc_unexpected(c, lat, tc_type_text(c, r.ty), l.ty, NULL);
	} else {
		tc_unexpected(c, lat, all, l.ty, NULL);
		tc_unexpected(c, rat, all, r.ty, NULL);
	}
	return tc_bad(&tc_ty_bool);
}

/* ---- hierarchy ----------------------------------------------------------------------------- */

static bool is_action_uid(struct cedar_uid u)
{
	sv t = cedar_sv(u.type);

	return sv_eq(t, SV("Action")) || sv_ends(t, SV("::Action"));
}

/* An action literal in literals: known from the groups of the schema. false when e is no list of
 * literals. */
static bool action_in_literals(
    struct tc *c, struct cedar_uid lhs, const struct cedar_expr *e, struct tc_ans *out)
{
	struct cedar_expr *one[1] = { (struct cedar_expr *)(uintptr_t)e };
	struct cedar_expr **v = e->kind == CEDAR_E_SET ? e->arg : one;
	uint32_t i, n = e->kind == CEDAR_E_SET ? e->n_arg : 1;
	const struct cedar_action *x = cedar_schema_action(c->s, lhs);
	bool in = false, unknown = false;
	struct cedar_value u;

	for (i = 0; i < n; i++) {
		if (!as_literal(c, v[i], &u) || u.kind != CEDAR_ENTITY)
			return false;
		if (!is_action_uid(u.uid))
			continue;
		if (cedar_schema_action(c->s, u.uid) == NULL)
			unknown = true;
		else if (x != NULL && cedar_action_in(x, u.uid))
			in = true;
	}
	*out = unknown ? tc_bad(&tc_ty_bool) : tc_good(in ? &tc_ty_true : &tc_ty_false);
	return true;
}

struct tc_ans tc_on_in(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans l = tc_expect(c, prior, e->arg[0], W_ENTITY, help_in);
	struct tc_ans r = tc_expect(c, prior, e->arg[1], W_ENTITY | W_SET_ENTITY, tc_help_has);
	const struct cedar_entity_type *to = NULL;
	struct cedar_value u;
	struct tc_ans x;

	if (!l.ok || !r.ok || l.ty == NULL || r.ty == NULL)
		return tc_bad(&tc_ty_bool);
	if (as_literal(c, e->arg[0], &u) && u.kind == CEDAR_ENTITY && is_action_uid(u.uid) &&
	    action_in_literals(c, u.uid, e->arg[1], &x))
		return x;
	if (r.ty->kind == CEDAR_TY_ENTITY)
		to = r.ty->ent;
	else if (r.ty->kind == CEDAR_TY_SET && r.ty->elem != NULL &&
	         r.ty->elem->kind == CEDAR_TY_ENTITY)
		to = r.ty->elem->ent;
	if (l.ty->kind == CEDAR_TY_ENTITY && l.ty->ent != NULL && to != NULL &&
	    !cedar_etype_can_be_in(l.ty->ent, to))
		return tc_good(&tc_ty_false);
	return tc_good(&tc_ty_bool);
}

struct tc_ans tc_on_is(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans x = tc_expect(c, prior, e->arg[0], W_ENTITY, help_is), l, in;
	struct cedar_expr both;

	if (x.ty == NULL || x.ty->kind != CEDAR_TY_ENTITY)
		l = tc_bad(&tc_ty_bool);
	else if (x.ty->ent == NULL)
		l = tc_also(x.ok, tc_good(&tc_ty_bool));
	else
		l = tc_also(x.ok,
		    tc_good(cedar_str_eq(x.ty->ent->name, e->name) ? &tc_ty_true : &tc_ty_false));
	if (e->n_arg == 1)
		return l;
	if (l.ty->kind == CEDAR_TY_FALSE)
		return l;
	both = *e;
	both.kind = CEDAR_E_IN;
	in = tc_on_in(c, prior, &both);
	return tc_and(c, l, in);
}

/* ---- sets, records, functions -------------------------------------------------------------- */

struct tc_ans tc_on_set(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	const struct cedar_type *ty = &tc_ty_never, *next;
	struct cedar_type *set;
	bool ok = true, known = true;
	const char *why;
	uint32_t i;

	for (i = 0; i < e->n_arg && !c->gave_up; i++) {
		struct tc_ans x = tc_check(c, prior, e->arg[i]);

		ok = ok && x.ok;
		if (x.ty == NULL)
			known = false;
		if (!known || ty == NULL)
			continue;
		next = tc_join(c->a, ty, x.ty, &why);
		if (next == NULL)
			incompatible(c, e, ty, x.ty, "elements of a set", why);
		ty = next;
	}
	if (e->n_arg == 0) {
		tc_error(c, &e->span, NULL,
		    "for policy `" SV_FMT "`, empty set literals are forbidden in policies",
		    SV_ARG(c->policy));
		return tc_bad(NULL);
	}
	if (!known || ty == NULL)
		return tc_bad(NULL);
	set = ARENA_NEW(c->a, struct cedar_type);
	if (set == NULL)
		return tc_out_of_room(c);
	*set = (struct cedar_type){ .kind = CEDAR_TY_SET, .elem = ty };
	return tc_also(ok, tc_good(set));
}

static int by_name(const struct cedar_attr *v, uint32_t n, cedar_sym name)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		if (sv_cmp(cedar_sv(v[i].name), cedar_sv(name)) > 0)
			break;
	return (int)i;
}

struct tc_ans tc_on_record(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct cedar_attr *v = ARENA_VEC(c->a, struct cedar_attr, e->n_arg);
	struct cedar_type *ty = ARENA_NEW(c->a, struct cedar_type);
	bool ok = true, known = true;
	uint32_t i;

	if (v == NULL || ty == NULL)
		return tc_out_of_room(c);
	for (i = 0; i < e->n_arg && !c->gave_up; i++) {
		struct tc_ans x = tc_check(c, prior, e->arg[i]);
		uint32_t at = (uint32_t)by_name(v, i, e->path[i]);

		ok = ok && x.ok;
		known = known && x.ty != NULL;
		memmove(v + at + 1, v + at, (i - at) * sizeof(*v));
		v[at] = (struct cedar_attr){ e->path[i], x.ty, true };
	}
	if (!known)
		return tc_bad(NULL);
	*ty = (struct cedar_type){ .kind = CEDAR_TY_RECORD, .attr = v, .n_attr = e->n_arg };
	return tc_also(ok, tc_good(ty));
}

static const struct {
	const struct cedar_type *ret;
	uint8_t n;
	const struct cedar_type *arg[2];
} sig[CEDAR_X_COUNT] = {
	[CEDAR_X_DECIMAL] = { &tc_ty_decimal, 1, { &tc_ty_string } },
	[CEDAR_X_LESS_THAN] = { &tc_ty_bool, 2, { &tc_ty_decimal, &tc_ty_decimal } },
	[CEDAR_X_LESS_THAN_OR_EQUAL] = { &tc_ty_bool, 2, { &tc_ty_decimal, &tc_ty_decimal } },
	[CEDAR_X_GREATER_THAN] = { &tc_ty_bool, 2, { &tc_ty_decimal, &tc_ty_decimal } },
	[CEDAR_X_GREATER_THAN_OR_EQUAL] = { &tc_ty_bool, 2, { &tc_ty_decimal, &tc_ty_decimal } },
	[CEDAR_X_IP] = { &tc_ty_ip, 1, { &tc_ty_string } },
	[CEDAR_X_IS_IPV4] = { &tc_ty_bool, 1, { &tc_ty_ip } },
	[CEDAR_X_IS_IPV6] = { &tc_ty_bool, 1, { &tc_ty_ip } },
	[CEDAR_X_IS_LOOPBACK] = { &tc_ty_bool, 1, { &tc_ty_ip } },
	[CEDAR_X_IS_MULTICAST] = { &tc_ty_bool, 1, { &tc_ty_ip } },
	[CEDAR_X_IS_IN_RANGE] = { &tc_ty_bool, 2, { &tc_ty_ip, &tc_ty_ip } },
	[CEDAR_X_DATETIME] = { &tc_ty_datetime, 1, { &tc_ty_string } },
	[CEDAR_X_OFFSET] = { &tc_ty_datetime, 2, { &tc_ty_datetime, &tc_ty_duration } },
	[CEDAR_X_DURATION_SINCE] = { &tc_ty_duration, 2, { &tc_ty_datetime, &tc_ty_datetime } },
	[CEDAR_X_TO_DATE] = { &tc_ty_datetime, 1, { &tc_ty_datetime } },
	[CEDAR_X_TO_TIME] = { &tc_ty_duration, 1, { &tc_ty_datetime } },
	[CEDAR_X_DURATION] = { &tc_ty_duration, 1, { &tc_ty_string } },
	[CEDAR_X_TO_MILLISECONDS] = { &tc_ty_long, 1, { &tc_ty_duration } },
	[CEDAR_X_TO_SECONDS] = { &tc_ty_long, 1, { &tc_ty_duration } },
	[CEDAR_X_TO_MINUTES] = { &tc_ty_long, 1, { &tc_ty_duration } },
	[CEDAR_X_TO_HOURS] = { &tc_ty_long, 1, { &tc_ty_duration } },
	[CEDAR_X_TO_DAYS] = { &tc_ty_long, 1, { &tc_ty_duration } },
};

/* A literal argument of a constructor must parse. */
static bool check_constructor(struct tc *c, const struct cedar_expr *e)
{
	static const char *const what[] = { [CEDAR_X_DECIMAL] = "a decimal value",
		[CEDAR_X_IP] = "IP address",
		[CEDAR_X_DATETIME] = "a datetime value",
		[CEDAR_X_DURATION] = "a duration value" };
	struct cedar_value v;
	struct box_err err = { 0 };
	sv s;
	int r;

	if (e->n_arg == 0 || e->arg[0]->kind != CEDAR_E_LIT ||
	    e->arg[0]->value.kind != CEDAR_STRING)
		return true;
	s = cedar_sv(e->arg[0]->value.s);
	switch (e->ext) {
	case CEDAR_X_DECIMAL:
		r = cedar_decimal_parse(s, &v, &err);
		break;
	case CEDAR_X_IP:
		r = cedar_ip_parse(c->a, s, &v, &err);
		break;
	case CEDAR_X_DATETIME:
		r = cedar_datetime_parse(s, &v, &err);
		break;
	default:
		r = cedar_duration_parse(s, &v, &err);
	}
	if (r == 0)
		return true;
	tc_error(c, &e->span, err.msg,
	    "for policy `" SV_FMT "`, error during extension function argument validation: failed "
	    "to parse as %s: `\"" SV_FMT "\"`",
	    SV_ARG(c->policy), what[e->ext], SV_ARG(s));
	return false;
}

struct tc_ans tc_on_ext(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	bool ok = true;
	uint32_t i;

	if (e->n_arg != sig[e->ext].n) {
		tc_error(c, &e->span, NULL,
		    "for policy `" SV_FMT "`, wrong number of arguments in extension function "
		    "application. Expected %u, got %u",
		    SV_ARG(c->policy), sig[e->ext].n, e->n_arg);
		ok = false;
	}
	if (!cedar_ext_is_method(e->ext)) {
		if (!check_constructor(c, e))
			ok = false;
		for (i = 0; i < e->n_arg; i++)
			if (e->arg[i]->kind != CEDAR_E_LIT)
				break;
		if (i < e->n_arg) {
			tc_error(c, &e->span,
			    "consider applying extension constructors inside attribute values when "
			    "constructing entity or context data",
			    "for policy `" SV_FMT "`, extension constructors may not be called "
			    "with non-literal expressions",
			    SV_ARG(c->policy));
			ok = false;
		}
	}
	for (i = 0; i < e->n_arg && !c->gave_up; i++) {
		struct tc_ans x = tc_check(c, prior, e->arg[i]);

		if (!ok)
			continue;
		if (x.ty != NULL && !tc_subtype(x.ty, sig[e->ext].arg[i])) {
			tc_unexpected(
			    c, &e->arg[i]->span, tc_type_text(c, sig[e->ext].arg[i]), x.ty, NULL);
			x.ok = false;
		}
		ok = x.ok && x.ty != NULL && ok;
	}
	return tc_also(ok, tc_good(sig[e->ext].ret));
}

struct tc_ans tc_on_contains(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans l = tc_expect(c, prior, e->arg[0], W_SET, help_set), r;

	if (e->kind == CEDAR_E_CONTAINS) {
		r = tc_check(c, prior, e->arg[1]);
		return tc_also(l.ok && r.ok,
		    strict(c, e, tc_good(&tc_ty_bool),
		        l.ty != NULL && l.ty->kind == CEDAR_TY_SET ? l.ty->elem : NULL, r.ty,
		        "elements of the first operand and the second operand to a `contains` "
		        "expression"));
	}
	r = tc_expect(c, prior, e->arg[1], W_SET, help_set_arg);
	return tc_also(l.ok && r.ok,
	    strict(c, e, tc_good(&tc_ty_bool), l.ty, r.ty,
	        "elements of both set operands to a `containsAll` or `containsAny` expression"));
}

/* ---- the small ones ------------------------------------------------------------------------ */

struct tc_ans tc_on_arith(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	struct tc_ans x = tc_expect(c, prior, e->arg[0], W_LONG, help_add);
	struct tc_ans y = tc_expect(c, prior, e->arg[1], W_LONG, help_add);

	return tc_also(x.ok && y.ok, tc_good(&tc_ty_long));
}

struct tc_ans tc_on_neg(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	return tc_also(tc_expect(c, prior, e->arg[0], W_LONG, NULL).ok, tc_good(&tc_ty_long));
}

struct tc_ans tc_on_is_empty(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	return tc_also(tc_expect(c, prior, e->arg[0], W_SET, help_empty).ok, tc_good(&tc_ty_bool));
}

struct tc_ans tc_on_like(struct tc *c, const struct tc_cap *prior, const struct cedar_expr *e)
{
	return tc_also(
	    tc_expect(c, prior, e->arg[0], W_STRING, help_like).ok, tc_good(&tc_ty_bool));
}
