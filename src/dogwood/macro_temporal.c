/* Expansion of temporal macros: a copy of the tree in which each call is replaced by the macro's
 * body, its parameters by the (already expanded) arguments, and its $binders by names no source can
 * write: `<name>$<byte offset of the call>`. See macro.h. */
#include "dogwood/macro_impl.h"

#include "base/ban.h"

#define EXPAND_DEPTH 256

/* What a copy is made under: NULL def at the top level. */
struct env {
	struct dw_macros *m;
	const struct dw_macro *def;
	const struct dw_call_arg *args;
	struct cedar_span call;
	unsigned depth;
};

static struct dw_cond *copy_cond(struct env *e, const struct dw_cond *c);
static struct dw_term *copy_term(struct env *e, const struct dw_term *t);

static struct cedar_span place(const struct env *e, struct cedar_span own)
{
	return e->def != NULL ? e->call : own;
}

static void *fail(struct env *e, struct cedar_span at, const char *text)
{
	(void)dw_macro_fail(e->m, &at, text != NULL ? text : "the policy source is too large");
	return NULL;
}

#define FAILF(e, at, ...) fail((e), (at), arena_printf((e)->m->a, __VA_ARGS__))

static void *hinted(struct env *e, struct cedar_span at, const char *hint, const char *text)
{
	size_t n = e->m->ds->n;

	(void)fail(e, at, text);
	if (e->m->ds->n > n)
		e->m->ds->d[n].hint = sv_c(hint);
	return NULL;
}

#define HINTED(e, at, hint, ...) hinted((e), (at), (hint), arena_printf((e)->m->a, __VA_ARGS__))

static const struct dw_call_arg *arg_of(struct env *e, sv name, struct cedar_span at)
{
	int i;

	if (e->def == NULL)
		return FAILF(e, at, "stray macro parameter reference `%.*s` outside a macro body",
		    SV_ARG(name));
	i = dw_macro_param(e->def, sv_sub(name, 1, name.n));
	if (i < 0)
		return FAILF(e, at,
		    "in `def temporal` body: `%.*s` does not name a declared parameter",
		    SV_ARG(name));
	return &e->args[i];
}

/* A name in binder position, or a variable with a sigil. */
static bool copy_name(struct env *e, sv name, struct cedar_span at, sv *out)
{
	const struct dw_call_arg *g;
	const char *s;

	*out = name;
	if (name.n == 0 || (name.p[0] != '?' && name.p[0] != '$'))
		return true;
	if (name.p[0] == '$') {
		if (e->def == NULL)
			return FAILF(e, at, "stray macro binder reference `%.*s`", SV_ARG(name)) !=
			       NULL;
		name = sv_sub(name, 1, name.n);
		s = arena_printf(e->m->a, SV_FMT "$%u", SV_ARG(name), e->call.off);
		if (s == NULL)
			return fail(e, at, "the policy source is too large") != NULL;
		*out = sv_c(s);
		return true;
	}
	g = arg_of(e, name, at);
	if (g == NULL)
		return false;
	if (g->term == NULL || g->term->kind != DW_TERM_VAR)
		return FAILF(e, place(e, at),
		           "parameter `%.*s` is used in a binder position, so the call-site "
		           "argument must be a single "
		           "identifier",
		           SV_ARG(name)) != NULL;
	*out = g->term->var.name;
	return true;
}

static struct dw_window *copy_window(struct env *e, const struct dw_window *w)
{
	const struct dw_call_arg *g;
	struct dw_window *n = ARENA_NEW(e->m->a, struct dw_window);

	if (n == NULL)
		return fail(e, w->at, "the policy source is too large");
	if (w->unit == 0) {
		g = arg_of(e, w->param, w->at);
		if (g == NULL)
			return NULL;
		if (g->window == NULL)
			return FAILF(e, place(e, w->at),
			    "parameter `%.*s` is used as a window, so the call-site argument must "
			    "be a duration such as `1h`",
			    SV_ARG(w->param));
		*n = *g->window;
		return n;
	}
	*n = *w;
	n->at = place(e, w->at);
	return n;
}

static bool copy_args(struct env *e, const struct dw_arg *v, uint32_t n, struct dw_arg *out)
{
	for (uint32_t i = 0; i < n; i++) {
		out[i] = v[i];
		out[i].at = place(e, v[i].at);
		out[i].term = copy_term(e, v[i].term);
		if (out[i].term == NULL)
			return false;
	}
	return true;
}

/* Arguments of a call, expanded in the caller's environment. */
static bool expand_args(struct env *e, const struct dw_call *k, struct dw_call_arg *out);

/* The macro of a call, with the checks that do not depend on the position. */
static const struct dw_macro *callee(struct env *e, const struct dw_call *k)
{
	const struct dw_macro *def = dw_macro_find(e->m, k->name);
	struct cedar_span at = place(e, k->name_at);

	if (def == NULL) {
		sv near = dw_macro_nearest(e->m, k->name);

		(void)cedar_diag_add(e->m->ds, CEDAR_ERROR, "macro", &at,
		    near.n != 0 ? near.p : NULL,
		    "unknown macro `" SV_FMT "` (no declared `def temporal`)", SV_ARG(k->name));
		return NULL;
	}
	if (def->faulty)
		return NULL;
	if (!def->temporal)
		return FAILF(e, at,
		    "macro `%.*s` is a cedar macro and cannot be called in a temporal condition "
		    "position",
		    SV_ARG(k->name));
	if (def->nparam != k->nargs) {
		(void)cedar_diag_add(e->m->ds, CEDAR_ERROR, "macro", &at, NULL,
		    "macro `" SV_FMT "` expects %u argument(s), got %u", SV_ARG(k->name),
		    def->nparam, k->nargs);
		return NULL;
	}
	return def;
}

static bool expand_call(
    struct env *e, const struct dw_call *k, struct dw_cond **cond, struct dw_term **agg)
{
	const struct dw_macro *def = callee(e, k);
	struct env in = { e->m, def, NULL, k->at, e->depth };
	struct dw_call_arg *args;

	*cond = NULL;
	*agg = NULL;
	if (def == NULL)
		return false;
	args = ARENA_VEC(e->m->a, struct dw_call_arg, k->nargs);
	if (args == NULL)
		return fail(e, k->at, "the policy source is too large") != NULL;
	if (!expand_args(e, k, args))
		return false;
	in.args = args;
	if (def->body.agg != NULL && def->body.cond == NULL) {
		*agg = copy_term(&in, def->body.agg);
		return *agg != NULL;
	}
	*cond = copy_cond(&in, def->body.cond);
	return *cond != NULL;
}

static bool expand_args(struct env *e, const struct dw_call *k, struct dw_call_arg *out)
{
	for (uint32_t i = 0; i < k->nargs; i++) {
		const struct dw_call_arg *g = &k->args[i];

		if (g->window != NULL) {
			out[i].window = g->window;
			continue;
		}
		if (g->cond != NULL && g->term != NULL) {
			/* A lone call or parameter: what it expands to says what it is. */
			if (g->cond->kind == DW_C_CALL) {
				if (!expand_call(e, g->cond->call, &out[i].cond, &out[i].term))
					return false;
				continue;
			}
			(void)arg_of(e, g->cond->param.name, g->cond->at);
			return false;
		}
		if (g->cond != NULL)
			out[i].cond = copy_cond(e, g->cond);
		else
			out[i].term = copy_term(e, g->term);
		if (out[i].cond == NULL && out[i].term == NULL)
			return false;
	}
	return true;
}

static bool enter(struct env *e, struct cedar_span at)
{
	if (e->depth >= EXPAND_DEPTH)
		return fail(e, at,
		           "the expansion of the macros of this rule is nested too deeply") != NULL;
	e->depth++;
	return dw_macro_count(e->m, &at);
}

static bool copy_binders(
    struct env *e, const struct dw_binder *v, uint32_t n, struct dw_binder *out)
{
	for (uint32_t i = 0; i < n; i++) {
		out[i] = v[i];
		out[i].at = place(e, v[i].at);
		out[i].type_at = place(e, v[i].type_at);
		if (!copy_name(e, v[i].name, v[i].at, &out[i].name))
			return false;
	}
	return true;
}

static struct dw_term *copy_agg(struct env *e, const struct dw_term *t, struct dw_term *n)
{
	n->agg.vars = ARENA_VEC(e->m->a, struct dw_binder, t->agg.nvars);
	if (n->agg.vars == NULL)
		return fail(e, t->at, "the policy source is too large");
	n->agg.summed_at = place(e, t->agg.summed_at);
	if (!copy_binders(e, t->agg.vars, t->agg.nvars, n->agg.vars) ||
	    (t->agg.sum && !copy_name(e, t->agg.summed, t->agg.summed_at, &n->agg.summed)))
		return NULL;
	n->agg.body = copy_cond(e, t->agg.body);
	return n->agg.body != NULL ? n : NULL;
}

static struct dw_term *copy_inner(struct env *e, const struct dw_term *t)
{
	struct dw_term *n = ARENA_NEW(e->m->a, struct dw_term);
	const struct dw_call_arg *g;
	struct dw_cond *cond;

	if (n == NULL)
		return fail(e, t->at, "the policy source is too large");
	*n = *t;
	n->at = place(e, t->at);
	switch (t->kind) {
	case DW_TERM_LIT:
	case DW_TERM_CONTEXT:
	case DW_TERM_PRINCIPAL:
	case DW_TERM_RESOURCE:
	case DW_TERM_WILD:
		return n;
	case DW_TERM_ARRAY:
		n->items.v = ARENA_VEC(e->m->a, struct dw_term *, t->items.n);
		if (n->items.v == NULL)
			return fail(e, t->at, "the policy source is too large");
		for (uint32_t i = 0; i < t->items.n; i++) {
			n->items.v[i] = copy_term(e, t->items.v[i]);
			if (n->items.v[i] == NULL)
				return NULL;
		}
		return n;
	case DW_TERM_VAR:
		return copy_name(e, t->var.name, t->at, &n->var.name) ? n : NULL;
	case DW_TERM_PARAM:
		g = arg_of(e, t->var.name, t->at);
		if (g == NULL)
			return NULL;
		if (g->term == NULL)
			return FAILF(e, place(e, t->at),
			    "parameter `%.*s` is used as a value, so the call-site argument must "
			    "be a value or an aggregate",
			    SV_ARG(t->var.name));
		/* Copied, since lowering adds to nodes; it is closed already. */
		{
			struct env top = { e->m, NULL, NULL, e->call, e->depth };

			return copy_term(&top, g->term);
		}
	case DW_TERM_AGG:
		return copy_agg(e, t, n);
	case DW_TERM_CALL:
		if (!expand_call(e, t->call, &cond, &n))
			return NULL;
		if (n == NULL)
			return FAILF(e, place(e, t->at),
			    "macro `%.*s` is a condition, not an aggregate, and cannot be compared",
			    SV_ARG(t->call->name));
		return n;
	}
	return NULL;
}

static struct dw_term *copy_term(struct env *e, const struct dw_term *t)
{
	struct dw_term *n = enter(e, place(e, t->at)) ? copy_inner(e, t) : NULL;

	e->depth--;
	return n;
}

static struct dw_cond *copy_param(struct env *e, const struct dw_cond *c, struct dw_cond *n)
{
	const struct dw_call_arg *g = arg_of(e, c->param.name, c->at);
	struct env top = { e->m, NULL, NULL, e->call, e->depth };
	struct dw_arg *v;
	uint32_t all;

	if (g == NULL)
		return NULL;
	if (g->cond == NULL)
		return FAILF(e, place(e, c->at),
		    "parameter `%.*s` is used as a condition, so the call-site argument must be a "
		    "condition",
		    SV_ARG(c->param.name));
	if (!c->param.refined)
		return copy_cond(&top, g->cond);
	if (g->cond->kind != DW_C_PRED)
		return FAILF(e, place(e, c->at),
		    "parameter `%.*s` is refined, so the call-site argument must be a single "
		    "predicate",
		    SV_ARG(c->param.name));
	all = g->cond->pred.nargs + c->param.nargs;
	v = ARENA_VEC(e->m->a, struct dw_arg, all);
	if (v == NULL)
		return fail(e, c->at, "the policy source is too large");
	*n = *g->cond;
	if (!copy_args(&top, g->cond->pred.args, g->cond->pred.nargs, v) ||
	    !copy_args(e, c->param.args, c->param.nargs, v + g->cond->pred.nargs))
		return NULL;
	n->pred.args = v;
	n->pred.nargs = all;
	return n;
}

static struct dw_cond *copy_and(struct env *e, const struct dw_cond *c, struct dw_cond *n)
{
	struct dw_cond **v;
	uint32_t all = 0;

	/* Members that expand to conjunctions are taken apart: an AND never holds an AND. */
	v = ARENA_VEC(e->m->a, struct dw_cond *, c->all.n);
	if (v == NULL)
		return fail(e, c->at, "the policy source is too large");
	for (uint32_t i = 0; i < c->all.n; i++) {
		v[i] = copy_cond(e, c->all.v[i]);
		if (v[i] == NULL)
			return NULL;
		all += v[i]->kind == DW_C_AND ? v[i]->all.n : 1;
	}
	n->all.n = all;
	n->all.v = ARENA_VEC(e->m->a, struct dw_cond *, all);
	if (n->all.v == NULL)
		return fail(e, c->at, "the policy source is too large");
	all = 0;
	for (uint32_t i = 0; i < c->all.n; i++) {
		if (v[i]->kind != DW_C_AND) {
			n->all.v[all++] = v[i];
			continue;
		}
		for (uint32_t k = 0; k < v[i]->all.n; k++)
			n->all.v[all++] = v[i]->all.v[k];
	}
	return n;
}

static struct dw_cond *copy_kind(struct env *e, const struct dw_cond *c)
{
	struct dw_cond *n = ARENA_NEW(e->m->a, struct dw_cond);
	struct dw_term *agg;

	if (n == NULL)
		return fail(e, c->at, "the policy source is too large");
	*n = *c;
	n->at = place(e, c->at);
	switch (c->kind) {
	case DW_C_PRED:
		n->pred.args = ARENA_VEC(e->m->a, struct dw_arg, c->pred.nargs);
		if (n->pred.args == NULL)
			return fail(e, c->at, "the policy source is too large");
		return copy_args(e, c->pred.args, c->pred.nargs, n->pred.args) ? n : NULL;
	case DW_C_TP:
		return copy_name(e, c->tp.name, c->at, &n->tp.name) ? n : NULL;
	case DW_C_AND:
		return copy_and(e, c, n);
	case DW_C_NOT:
		n->neg = copy_cond(e, c->neg);
		return n->neg != NULL ? n : NULL;
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		n->once.w = copy_window(e, c->once.w);
		n->once.body = n->once.w != NULL ? copy_cond(e, c->once.body) : NULL;
		return n->once.body != NULL ? n : NULL;
	case DW_C_SINCE:
		n->since.w = copy_window(e, c->since.w);
		n->since.left = n->since.w != NULL ? copy_cond(e, c->since.left) : NULL;
		n->since.right = n->since.left != NULL ? copy_cond(e, c->since.right) : NULL;
		return n->since.right != NULL ? n : NULL;
	case DW_C_EXISTS:
		if (!copy_binders(e, &c->exists.var, 1, &n->exists.var))
			return NULL;
		n->exists.body = copy_cond(e, c->exists.body);
		return n->exists.body != NULL ? n : NULL;
	case DW_C_CMP:
		n->cmp.l = copy_term(e, c->cmp.l);
		n->cmp.r = n->cmp.l != NULL ? copy_term(e, c->cmp.r) : NULL;
		return n->cmp.r != NULL ? n : NULL;
	case DW_C_CALL:
		if (!expand_call(e, c->call, &n, &agg))
			return NULL;
		if (n == NULL)
			return HINTED(e, place(e, c->at),
			    "compare it, as in `count_within(1h, …) > 2`",
			    "macro `%.*s` is an aggregate and may appear only as the operand of a "
			    "comparison",
			    SV_ARG(c->call->name));
		return n;
	case DW_C_PARAM:
		return copy_param(e, c, n);
	}
	return NULL;
}

static struct dw_cond *copy_cond(struct env *e, const struct dw_cond *c)
{
	struct dw_cond *n = enter(e, place(e, c->at)) ? copy_kind(e, c) : NULL;

	e->depth--;
	return n;
}

struct dw_cond *dw_macros_temporal(struct dw_macros *m, const struct dw_cond *c)
{
	struct env e = { .m = m };

	return copy_cond(&e, c);
}

/* ---- what a body may hold ---- */

static bool check_cond(struct env *e, const struct dw_cond *c);

static bool check_name(struct env *e, sv name, struct cedar_span at)
{
	if (name.n == 0 || name.p[0] != '?' || dw_macro_param(e->def, sv_sub(name, 1, name.n)) >= 0)
		return true;
	return FAILF(e, at, "in `def temporal` body: `%.*s` does not name a declared parameter",
	           SV_ARG(name)) != NULL;
}

static bool check_term(struct env *e, const struct dw_term *t)
{
	switch (t->kind) {
	case DW_TERM_VAR:
	case DW_TERM_PARAM:
		return check_name(e, t->var.name, t->at);
	case DW_TERM_ARRAY:
		for (uint32_t i = 0; i < t->items.n; i++) {
			if (!check_term(e, t->items.v[i]))
				return false;
		}
		return true;
	case DW_TERM_AGG:
		for (uint32_t i = 0; i < t->agg.nvars; i++) {
			if (!check_name(e, t->agg.vars[i].name, t->agg.vars[i].at))
				return false;
		}
		return (!t->agg.sum || check_name(e, t->agg.summed, t->agg.summed_at)) &&
		       check_cond(e, t->agg.body);
	case DW_TERM_CALL:
		return fail(e, t->at, "in `def temporal` body: macro-in-macro is not supported") !=
		       NULL;
	case DW_TERM_LIT:
	case DW_TERM_CONTEXT:
	case DW_TERM_PRINCIPAL:
	case DW_TERM_RESOURCE:
	case DW_TERM_WILD:
		return true;
	}
	return true;
}

static bool check_args(struct env *e, const struct dw_arg *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!check_term(e, v[i].term))
			return false;
	}
	return true;
}

static bool check_cond(struct env *e, const struct dw_cond *c)
{
	switch (c->kind) {
	case DW_C_PRED:
		return check_args(e, c->pred.args, c->pred.nargs);
	case DW_C_TP:
		return check_name(e, c->tp.name, c->at);
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++) {
			if (!check_cond(e, c->all.v[i]))
				return false;
		}
		return true;
	case DW_C_NOT:
		return check_cond(e, c->neg);
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		return check_name(e, c->once.w->param, c->once.w->at) &&
		       check_cond(e, c->once.body);
	case DW_C_SINCE:
		return check_name(e, c->since.w->param, c->since.w->at) &&
		       check_cond(e, c->since.left) && check_cond(e, c->since.right);
	case DW_C_EXISTS:
		return check_name(e, c->exists.var.name, c->exists.var.at) &&
		       check_cond(e, c->exists.body);
	case DW_C_CMP:
		return check_term(e, c->cmp.l) && check_term(e, c->cmp.r);
	case DW_C_CALL:
		return fail(e, c->at, "in `def temporal` body: macro-in-macro is not supported") !=
		       NULL;
	case DW_C_PARAM:
		return check_name(e, c->param.name, c->at) &&
		       check_args(e, c->param.args, c->param.nargs);
	}
	return true;
}

bool dw_macro_check_temporal(struct dw_macros *m, const struct dw_macro *def)
{
	struct env e = { .m = m, .def = def };

	if (def->body.cond != NULL)
		return check_cond(&e, def->body.cond);
	return check_term(&e, def->body.agg);
}
