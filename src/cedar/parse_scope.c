/* The scope of a policy: principal, action, resource. Spec 2.1, 2.3. */
#include "cedar/parse_priv.h"

#include "base/ban.h"

struct element {
	struct cedar_scope s;
	enum cedar_var var;
	bool known;
};

/* The entity or slot of `== E`, `in E`. */
static void scope_ref(struct parser *p, struct element *el, const struct cedar_expr *e)
{
	if (e == p->poison)
		return;
	el->s.uid_span = e->span;
	if (e->kind == CEDAR_E_LIT && e->value.kind == CEDAR_ENTITY) {
		el->s.uid = e->value.uid;
		return;
	}
	if (e->kind == CEDAR_E_SLOT && e->var == el->var) {
		el->s.slot = true;
		return;
	}
	if (el->var == CEDAR_ACTION)
		p_error(p, &e->span, NULL,
		    "action scope expects an action reference (`Ns::Action::\"id\"`)");
	else
		p_error(p, &e->span, NULL,
		    "expected an entity reference (`Ns::Type::\"id\"`) or a template slot (`?%s`)",
		    el->var == CEDAR_PRINCIPAL ? "principal" : "resource");
}

static void action_type(struct parser *p, struct cedar_uid u, const struct cedar_span *at)
{
	sv t = cedar_sv(u.type);

	if (!sv_eq(t, SV("Action")) && !sv_ends(t, SV("::Action")))
		p_error(p, at,
		    "the type of an action is `Action`, in a namespace: `Ns::Action::\"id\"`",
		    "action scope expects an action reference (`Ns::Action::\"id\"`)");
}

static int action_set(struct parser *p, struct element *el, const struct cedar_expr *e)
{
	struct cedar_uid *set = ARENA_VEC(p->a, struct cedar_uid, e->n_arg);
	struct cedar_span *at = ARENA_VEC(p->a, struct cedar_span, e->n_arg);
	uint32_t i, n = 0;

	if (set == NULL || at == NULL) {
		p_fail(p, "out of memory");
		return -1;
	}
	for (i = 0; i < e->n_arg; i++) {
		const struct cedar_expr *m = e->arg[i];

		if (m == p->poison)
			continue;
		if (m->kind != CEDAR_E_LIT || m->value.kind != CEDAR_ENTITY) {
			p_error(p, &m->span, NULL,
			    "action scope expects an action reference (`Ns::Action::\"id\"`)");
			continue;
		}
		action_type(p, m->value.uid, &m->span);
		set[n] = m->value.uid;
		at[n++] = m->span;
	}
	el->s.op = CEDAR_S_IN_SET;
	el->s.set = set;
	el->s.set_span = at;
	el->s.n_set = n;
	return 0;
}

/* `is Type` of a principal or resource; true to go on. */
static bool scope_is(struct parser *p, struct element *el)
{
	struct cedar_span at;

	p_advance(p);
	at = p->cur.span;
	el->s.type = p_name(p);
	if (el->s.type == NULL)
		return false;
	el->s.type_span = p_since(p, at);
	if (el->var == CEDAR_ACTION) {
		at = p_since(p, at);
		p_error(p, &at, "name the actions: `action == Action::\"id\"`, `action in [ … ]`",
		    "`action is Type` is not valid in the action scope");
		el->s.type = NULL;
		return true;
	}
	el->s.op = CEDAR_S_IS;
	return true;
}

static bool scope_rel(struct parser *p, struct element *el)
{
	struct cedar_tok op = p->cur;
	struct cedar_expr *e;
	bool in = p_is(p, "in"), eq = p_is(p, "==");

	if (p_is(p, "="))
		p_error(p, &op.span, NULL,
		    "`=` is not a valid operator in this scope; did you mean `==`?");
	else if (!in && !eq)
		p_error(p, &op.span, "other conditions belong in `when { … }`",
		    "scope only allows `==` or `in`, found `" SV_FMT "`", SV_ARG(op.text));
	p_advance(p);
	e = p_expr(p);
	if (e == NULL)
		return false;
	if (!in && !eq)
		return true;
	if (el->s.op == CEDAR_S_IS) {
		if (eq) {
			p_error(p, &op.span, NULL,
			    "`is Type == …` is not valid; only `is Type in …` is allowed");
			return true;
		}
		el->s.op = CEDAR_S_IS_IN;
	} else {
		el->s.op = in ? CEDAR_S_IN : CEDAR_S_EQ;
	}
	if (el->var == CEDAR_ACTION && in && e->kind == CEDAR_E_SET)
		return action_set(p, el, e) == 0;
	scope_ref(p, el, e);
	if (el->var == CEDAR_ACTION && el->s.uid.id != NULL)
		action_type(p, el->s.uid, &e->span);
	return true;
}

static bool is_relop(const struct parser *p)
{
	static const char *const ops[] = { "==", "!=", "<", "<=", ">", ">=", "in", "=" };
	size_t i;

	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (p_is(p, ops[i]))
			return true;
	return false;
}

/* One element. false when dead. */
static bool element(struct parser *p, struct element *el)
{
	struct cedar_span from = p->cur.span, at;
	sv word = p->cur.text;

	*el = (struct element){ .known = true };
	if (p->cur.kind != CEDAR_T_IDENT)
		return p_unexpected(p, "identifier");
	if (sv_eq(word, SV("principal")))
		el->var = CEDAR_PRINCIPAL;
	else if (sv_eq(word, SV("action")))
		el->var = CEDAR_ACTION;
	else if (sv_eq(word, SV("resource")))
		el->var = CEDAR_RESOURCE;
	else
		el->known = false;
	p_advance(p);
	if (p_is(p, ":")) {
		at = p->cur.span;
		p_advance(p);
		if (p_name(p) == NULL)
			return false;
		at = p_since(p, at);
		p_error(p, &at, NULL,
		    "the `" SV_FMT " : Type` scope form is not supported; use `" SV_FMT " is Type`",
		    SV_ARG(word), SV_ARG(word));
	}
	if (p_is(p, "is") && !scope_is(p, el))
		return false;
	if (is_relop(p) && !scope_rel(p, el))
		return false;
	el->s.span = p_since(p, from);
	return true;
}

static const char *const var_names[] = { "principal", "action", "resource" };

bool p_scope(struct parser *p, struct cedar_policy *pol)
{
	static const sv names[] = { SV_INIT("principal"), SV_INIT("action"), SV_INIT("resource") };
	struct cedar_scope *to[] = { &pol->principal, &pol->action, &pol->resource };
	bool have[3] = { false };
	struct cedar_span at;
	size_t n = 0, i;

	p->slots = true;
	while (!p_is(p, ")")) {
		struct element el;
		struct cedar_span first = p->cur.span;
		sv word = p->cur.text;

		if (!element(p, &el))
			return false;
		if (n++ >= 3) {
			p_error(p, &el.s.span, "a scope has principal, action and resource",
			    "this policy has an extra element in the scope: `" SV_FMT "`",
			    SV_ARG(p_text(p, el.s.span)));
		} else if (!el.known) {
			sv near = cedar_nearest(word, names, 3);

			p_error(p, &first,
			    near.n != 0
			        ? arena_printf(p->a, "did you mean `" SV_FMT "`?", SV_ARG(near))
			        : NULL,
			    "unexpected scope variable `" SV_FMT
			    "`; expected `principal`, `action`, or `resource`",
			    SV_ARG(word));
		} else if (have[el.var]) {
			p_error(p, &el.s.span, NULL, "duplicate `%s` in scope", var_names[el.var]);
		} else {
			if (!p->o->dogwood && (size_t)el.var != n - 1)
				p_error(p, &first,
				    "Cedar wants `(principal, action, resource)` in this order",
				    "expected `%s`, found `%s` in the scope", var_names[n - 1],
				    var_names[el.var]);
			have[el.var] = true;
			*to[el.var] = el.s;
			if (el.s.slot)
				pol->has_slot[el.var == CEDAR_PRINCIPAL ? 0 : 1] = true;
		}
		if (!p_eat(p, ","))
			break;
	}
	at = p->cur.span;
	if (!p_need(p, ")"))
		return false;
	for (i = 0; !p->o->dogwood && i < 3; i++)
		if (i >= n)
			p_error(p, &at, "Cedar wants `(principal, action, resource)`",
			    "this policy is missing the `%s` variable in the scope", var_names[i]);
	p->slots = false;
	return true;
}
