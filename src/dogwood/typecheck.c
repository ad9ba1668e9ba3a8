/* Checks of temporal conditions against the event and action schemas (dogwood-language.md 6.2):
 * names, windows, entity types, paths, dependence on time, types. Each kind of check is one walk
 * over the leaf; a leaf with a finding is not judged further, since later findings would follow
 * from it. */
#include "dogwood/advice.h"
#include "dogwood/typecheck_impl.h"

#include "base/ban.h"

enum pass {
	PASS_EVENTS,
	PASS_WINDOWS,
	PASS_ENTITIES,
	PASS_PATHS,
	PASS_TIME,
	PASS_TYPES,
	PASS_SUMS,
	PASS_END
};

static const char *pred_name(struct dwt *k, const struct dw_pred *p)
{
	AUTO_BUF b = buf_with(65536);

	buf_put_sv(&b, p->ns);
	buf_put_c(&b, "::");
	cedar_put_quoted(&b, p->id);
	buf_put_c(&b, "::");
	buf_put_sv(&b, p->kind);
	return dwt_text(k, &b);
}

/* ---- the walks ---- */

static void cond(struct dwt *k, enum pass p, const struct dw_cond *c);

static void window(struct dwt *k, const struct dw_window *w)
{
	int64_t s = dw_window_seconds(w);

	if (w->amount == 0 && !w->too_large)
		FIND(k, w->at,
		    "temporal window `" SV_FMT "` must be positive; a zero or negative window "
		    "matches no events, silently disabling this guard",
		    SV_ARG(w->text));
	else if (s == INT64_MAX)
		FIND(k, w->at,
		    "temporal window `" SV_FMT "` is too large; its length in seconds overflows a "
		    "64-bit integer. Use a smaller window.",
		    SV_ARG(w->text));
	else if (s > k->s->events->max_window)
		FIND(k, w->at,
		    "temporal window `" SV_FMT "` exceeds the maximum allowed window `" SV_FMT
		    "` set by the event schema's `max_window`; shorten this window to at most "
		    "`" SV_FMT "`, or raise `max_window` in the event schema",
		    SV_ARG(w->text), SV_ARG(k->s->events->max_window_text),
		    SV_ARG(k->s->events->max_window_text));
}

static void entity(struct dwt *k, const struct dw_val *v, struct cedar_span at)
{
	const struct cedar_entity_type *e;
	AUTO_BUF ids = buf_with(65536), id = buf_with(65536);

	if (sv_eq(dwt_simple(v->u.ent.type), SV("Action")))
		return;
	e = dwt_etype(k, v->u.ent.type);
	if (e == NULL) {
		HINTED(k, at, dw_advice_etype(k->a, k->s->schema, v->u.ent.type),
		    "unknown entity type `" SV_FMT
		    "`; the action schema declares no entity type of this name",
		    SV_ARG(v->u.ent.type));
		return;
	}
	for (uint32_t i = 0; i < e->n_enum; i++) {
		if (sv_eq(cedar_sv(e->enum_id[i]), v->u.ent.id))
			return;
		if (i != 0)
			buf_put_c(&ids, ", ");
		cedar_put_quoted(&ids, cedar_sv(e->enum_id[i]));
	}
	if (e->n_enum == 0)
		return;
	cedar_put_quoted(&id, v->u.ent.id);
	FIND(k, at,
	    "`" SV_FMT "` is an enum entity type; `%s` is not one of its permitted ids (%s)",
	    SV_ARG(v->u.ent.type), dwt_text(k, &id), dwt_text(k, &ids));
}

static void scope_path(struct dwt *k, const struct dw_term *t)
{
	struct dwt_type sc = dwt_scope_type(k, t);
	const struct cedar_entity_type *e;

	if (t->path.n == 0 || dwt_is_id_or_type(t) || sc.k != K_ENTITY)
		return;
	for (uint32_t i = 0; i < (sc.nchoice > 1 ? sc.nchoice : 1); i++) {
		e = sc.nchoice > 1 ? sc.choice[i] : dwt_etype(k, sc.name);
		if (e != NULL && dwt_attr_type(e, t) == NULL)
			HINTED(k, t->at, dw_advice_member(k->a, e->shape, t->path.v[0]),
			    "`%s` does not resolve for every entity the rule's `%s` may be: "
			    "`" SV_FMT "` declares no attribute `" SV_FMT
			    "`, so this condition would silently be false for it",
			    dwt_path_text(k, t),
			    t->kind == DW_TERM_PRINCIPAL ? "principal" : "resource",
			    SV_ARG(cedar_sv(e->name)), SV_ARG(t->path.v[t->path.n - 1]));
	}
}

static void binder(struct dwt *k, enum pass p, const struct dw_binder *b)
{
	if (p == PASS_ENTITIES && b->type == DW_T_NAMED &&
	    dwt_binder_etype(k, b->type_name) == NULL)
		HINTED(k, b->type_at, dw_advice_etype(k->a, k->s->schema, b->type_name),
		    "unknown entity type `" SV_FMT
		    "`; a variable is a Timepoint, Long, String, Bool, decimal or a declared "
		    "entity type",
		    SV_ARG(b->type_name));
}

static bool varies(const struct dw_cond *c)
{
	switch (c->kind) {
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++) {
			if (varies(c->all.v[i]))
				return true;
		}
		return false;
	case DW_C_NOT:
		return varies(c->neg);
	case DW_C_EXISTS:
		return varies(c->exists.body);
	case DW_C_CMP:
		return c->cmp.l->kind == DW_TERM_AGG || c->cmp.r->kind == DW_TERM_AGG;
	case DW_C_PRED:
	case DW_C_TP:
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
	case DW_C_SINCE:
	case DW_C_CALL:
	case DW_C_PARAM:
		return true;
	}
	return true;
}

static void must_vary(struct dwt *k, enum pass p, const struct dw_cond *c, const char *what)
{
	if (p == PASS_TIME && !varies(c))
		HINTED(k, c->at,
		    "it says nothing about the past; what holds of the request alone is written in "
		    "`when { … }`, without `temporal`",
		    "%s does not vary with the current timepoint; it monitors nothing", what);
}

static void term(struct dwt *k, enum pass p, const struct dw_term *t)
{
	const struct dw_binder *sum = NULL;

	switch (t->kind) {
	case DW_TERM_LIT:
		if (p == PASS_ENTITIES && t->lit.tag == DW_ENTITY)
			entity(k, &t->lit, t->at);
		return;
	case DW_TERM_ARRAY:
		for (uint32_t i = 0; i < t->items.n; i++)
			term(k, p, t->items.v[i]);
		return;
	case DW_TERM_CONTEXT:
		if (p == PASS_PATHS)
			(void)dwt_context_type(k, t, true);
		return;
	case DW_TERM_PRINCIPAL:
	case DW_TERM_RESOURCE:
		if (p == PASS_PATHS)
			scope_path(k, t);
		return;
	case DW_TERM_AGG:
		for (uint32_t i = 0; i < t->agg.nvars; i++) {
			binder(k, p, &t->agg.vars[i]);
			if (t->agg.sum && sv_eq(t->agg.vars[i].name, t->agg.summed))
				sum = &t->agg.vars[i];
		}
		if (p == PASS_SUMS && sum != NULL && sum->type != DW_T_LONG) {
			struct dwt_type ty = dwt_from_binder(k, sum);

			FIND(k, t->agg.summed_at,
			    "cannot sum `" SV_FMT "`: sum requires a `Long` summand, but `" SV_FMT
			    "` is `%s`%s",
			    SV_ARG(t->agg.summed), SV_ARG(t->agg.summed), dwt_type_name(k, &ty),
			    sum->type == DW_T_TIMEPOINT
			        ? ". Timepoints are ordinal positions, not quantities — use a "
			          "Timepoint in the `for (…)` binders to "
			          "keep per-timepoint rows, not as the value being summed."
			    : sum->type == DW_T_DECIMAL ? ". Dogwood arithmetic operates only on "
			                                  "`Long` values, not decimals."
			                                : "");
		}
		must_vary(k, p, t->agg.body, "the `where` body of the aggregation");
		cond(k, p, t->agg.body);
		return;
	case DW_TERM_WILD:
	case DW_TERM_VAR:
	case DW_TERM_PARAM:
	case DW_TERM_CALL:
		return;
	}
}

static void pred_fields(struct dwt *k, const struct dw_cond *c, const struct dw_derived *d)
{
	for (uint32_t i = 0; i < c->pred.nargs; i++) {
		const struct dw_arg *g = &c->pred.args[i];
		const struct dw_field *f = dw_derived_field(d, g->path, g->npath);
		AUTO_BUF list = buf_with(1 << 20);

		if (f == NULL) {
			dw_derived_list(k->a, d, &list);
			HINTED(k, g->at, dw_advice_field(k->a, d, g->dotted),
			    "predicate `%s` mentions field `" SV_FMT
			    "`, which is not declared on that event (declared fields: %s)",
			    pred_name(k, &c->pred), SV_ARG(g->dotted), dwt_text(k, &list));
		} else if (f->group) {
			FIND(k, g->at,
			    "predicate `%s` mentions `" SV_FMT
			    "`, which is a field group, not a field; address a field inside it "
			    "(e.g. `" SV_FMT ".<field>`)",
			    pred_name(k, &c->pred), SV_ARG(g->dotted), SV_ARG(g->dotted));
		}
	}
}

static void pred(struct dwt *k, enum pass p, const struct dw_cond *c)
{
	const struct dw_derived *d =
	    dw_eschema_event(k->s->events, c->pred.ns, c->pred.id, c->pred.kind);

	if (p == PASS_EVENTS) {
		if (d == NULL)
			HINTED(k, c->at, dw_advice_event(k->a, k->s->events, &c->pred),
			    "predicate `%s` does not name a declared event (no event kind `" SV_FMT
			    "` derived for action `" SV_FMT "`)",
			    pred_name(k, &c->pred), SV_ARG(c->pred.kind), SV_ARG(c->pred.id));
		else
			pred_fields(k, c, d);
	}
	for (uint32_t i = 0; i < c->pred.nargs; i++) {
		const struct dw_arg *g = &c->pred.args[i];
		const struct dw_field *f =
		    d != NULL ? dw_derived_field(d, g->path, g->npath) : NULL;
		struct dwt_type want, got;

		term(k, p, g->term);
		if (p != PASS_TYPES || f == NULL || f->group)
			continue;
		want = f->type != NULL ? dwt_from_cedar(k, f->type)
		                       : dwt_from_choice(f->ents, f->nents);
		got = dwt_term_type(k, g->term);
		if (!dwt_compatible(&want, &got))
			FIND(k, g->term->at,
			    "argument `" SV_FMT "` of `" SV_FMT "` expects `%s` but got `%s`",
			    SV_ARG(g->dotted), SV_ARG(c->pred.id), dwt_type_name(k, &want),
			    dwt_type_name(k, &got));
	}
}

static void compare(struct dwt *k, enum pass p, const struct dw_cond *c)
{
	struct dwt_type a, b;

	term(k, p, c->cmp.l);
	term(k, p, c->cmp.r);
	if (p != PASS_TYPES)
		return;
	a = dwt_term_type(k, c->cmp.l);
	b = dwt_term_type(k, c->cmp.r);
	if (c->cmp.op == DW_EQ || c->cmp.op == DW_NE) {
		if (!dwt_compatible(&a, &b))
			FIND(k, c->at,
			    "equality requires both sides to have the same type, got `%s` and `%s`",
			    dwt_type_name(k, &a), dwt_type_name(k, &b));
		return;
	}
	if ((a.k != K_LONG && a.k != K_ANY) || (b.k != K_LONG && b.k != K_ANY))
		FIND(k, c->at,
		    "comparison requires numeric operands on both sides, got `%s` and `%s`",
		    dwt_type_name(k, &a), dwt_type_name(k, &b));
}

static void cond(struct dwt *k, enum pass p, const struct dw_cond *c)
{
	const struct dw_binder *b;
	struct dwt_type t;

	switch (c->kind) {
	case DW_C_PRED:
		pred(k, p, c);
		return;
	case DW_C_TP:
		if (p != PASS_TYPES || c->tp.slot == DW_NO_SLOT)
			return;
		b = k->leaf->names.slot[c->tp.slot];
		t = dwt_from_binder(k, b);
		if (t.k != K_TIMEPOINT)
			FIND(k, c->at,
			    "`tp(" SV_FMT ")` binds `" SV_FMT
			    "` to the current timepoint, but `" SV_FMT
			    "` is declared `%s`; a `tp` variable must be declared `Timepoint`",
			    SV_ARG(c->tp.name), SV_ARG(c->tp.name), SV_ARG(c->tp.name),
			    dwt_type_name(k, &t));
		return;
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++)
			cond(k, p, c->all.v[i]);
		return;
	case DW_C_NOT:
		cond(k, p, c->neg);
		return;
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		if (p == PASS_WINDOWS)
			window(k, c->once.w);
		must_vary(k, p, c->once.body, "this temporal operator's body");
		cond(k, p, c->once.body);
		return;
	case DW_C_SINCE:
		if (p == PASS_WINDOWS)
			window(k, c->since.w);
		must_vary(k, p, c->since.left, "the left side of `since`");
		must_vary(k, p, c->since.right, "the right side of `since`");
		cond(k, p, c->since.left);
		cond(k, p, c->since.right);
		return;
	case DW_C_EXISTS:
		binder(k, p, &c->exists.var);
		must_vary(k, p, c->exists.body, "the body of the `exists`");
		cond(k, p, c->exists.body);
		return;
	case DW_C_CMP:
		compare(k, p, c);
		return;
	case DW_C_CALL:
	case DW_C_PARAM:
		return;
	}
}

static void top(struct dwt *k, enum pass p, const struct dw_cond *c)
{
	if (p == PASS_TIME && c->kind == DW_C_AND) {
		for (uint32_t i = 0; i < c->all.n; i++)
			must_vary(k, p, c->all.v[i], "this `when`/`unless` conjunct");
	} else {
		must_vary(k, p, c, "this `when`/`unless` conjunct");
	}
	cond(k, p, c);
}

void dw_typecheck(struct dw_set *s, size_t rule, struct cedar_diags *ds)
{
	struct dwt k = { .s = s, .a = &s->a, .ds = ds };
	const struct dw_rule *r = &s->rules[rule];

	if (r->nleaves == 0)
		return;
	if (cedar_policy_actions(s->schema, &s->src.policy[rule], &s->a, &k.actions, &k.nactions) <
	    0) {
		dwt_find(&k, s->src.policy[rule].span, NULL, NULL);
		return;
	}
	for (uint32_t i = 0; i < r->nleaves; i++) {
		size_t errors = ds->errors;

		k.leaf = &s->leaves[r->leaf0 + i];
		k.before = ds->n;
		for (enum pass p = PASS_EVENTS; p < PASS_END && ds->errors == errors; p++) {
			bool by_action = p == PASS_PATHS || p == PASS_TYPES;

			for (size_t x = 0; x < (by_action ? k.nactions : 1); x++) {
				k.act = by_action ? k.actions[x] : NULL;
				top(&k, p, k.leaf->cond);
			}
		}
	}
}
