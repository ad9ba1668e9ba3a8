/* Range restriction and order of binding. See safety.h; the rule numbers are those of
 * dogwood-language.md 6.1.
 *
 * RR(φ) are the variables a condition surely binds; free(φ) those it uses without binding them
 * itself; ρ (`bound`) those bound by what stands before. Sets of names are small vectors: a
 * condition has a handful of variables. */
#include "dogwood/safety.h"

#include "base/ban.h"

struct set {
	sv *v;
	uint32_t n, cap;
};

struct chk {
	struct arena *a;
	struct cedar_diags *ds;
	bool bad; /* a finding was reported, or there was no room */
};

static bool has(const struct set *s, sv name)
{
	for (uint32_t i = 0; i < s->n; i++) {
		if (sv_eq(s->v[i], name))
			return true;
	}
	return false;
}

static void add(struct chk *k, struct set *s, sv name)
{
	if (k->bad || has(s, name))
		return;
	if (s->n == s->cap) {
		uint32_t cap = s->cap != 0 ? s->cap * 2 : 8;
		sv *v = arena_grow(k->a, s->v, s->n, cap, sizeof(*v));

		if (v == NULL) {
			(void)cedar_diag_add(k->ds, CEDAR_ERROR, "temporal", NULL, NULL,
			    "the policy source is too large");
			k->bad = true;
			return;
		}
		s->v = v;
		s->cap = cap;
	}
	s->v[s->n++] = name;
}

static void add_all(struct chk *k, struct set *s, const struct set *more)
{
	for (uint32_t i = 0; i < more->n; i++)
		add(k, s, more->v[i]);
}

static bool is_binder(const struct dw_binder *b, uint32_t n, sv name)
{
	for (uint32_t i = 0; i < n; i++) {
		if (sv_eq(b[i].name, name))
			return true;
	}
	return false;
}

static void add_but(
    struct chk *k, struct set *s, const struct set *more, const struct dw_binder *b, uint32_t n)
{
	for (uint32_t i = 0; i < more->n; i++) {
		if (!is_binder(b, n, more->v[i]))
			add(k, s, more->v[i]);
	}
}

static void free_cond(struct chk *k, const struct dw_cond *c, struct set *out);

static void free_term(struct chk *k, const struct dw_term *t, struct set *out)
{
	struct set in = { 0 };

	if (t->kind == DW_TERM_VAR)
		add(k, out, t->var.name);
	if (t->kind == DW_TERM_ARRAY) {
		for (uint32_t i = 0; i < t->items.n; i++)
			free_term(k, t->items.v[i], out);
	}
	if (t->kind == DW_TERM_AGG) {
		free_cond(k, t->agg.body, &in);
		add_but(k, out, &in, t->agg.vars, t->agg.nvars);
	}
}

static void free_cond(struct chk *k, const struct dw_cond *c, struct set *out)
{
	struct set in = { 0 };
	const struct dw_cond *below;
	const struct dw_term *t;

	if (c->kind == DW_C_TP)
		add(k, out, c->tp.name);
	if (c->kind == DW_C_EXISTS) {
		free_cond(k, c->exists.body, &in);
		add_but(k, out, &in, &c->exists.var, 1);
		return;
	}
	for (uint32_t i = 0; (t = dw_cond_term(c, i)) != NULL; i++)
		free_term(k, t, out);
	for (uint32_t i = 0; (below = dw_cond_below(c, i)) != NULL; i++)
		free_cond(k, below, out);
}

/* Is `l == r` (or the other way round) an equality that binds l? */
static bool binds(const struct dw_term *l, const struct dw_term *r)
{
	return l->kind == DW_TERM_VAR && r->kind != DW_TERM_VAR && r->kind != DW_TERM_WILD;
}

static void rr(struct chk *k, const struct dw_cond *c, struct set *out)
{
	struct set in = { 0 };

	switch (c->kind) {
	case DW_C_PRED:
		for (uint32_t i = 0; i < c->pred.nargs; i++) {
			if (c->pred.args[i].term->kind == DW_TERM_VAR)
				add(k, out, c->pred.args[i].term->var.name);
		}
		return;
	case DW_C_TP:
		add(k, out, c->tp.name);
		return;
	case DW_C_AND:
		for (uint32_t i = 0; i < c->all.n; i++)
			rr(k, c->all.v[i], out);
		return;
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		rr(k, c->once.body, out);
		return;
	case DW_C_SINCE:
		rr(k, c->since.right, out);
		return;
	case DW_C_EXISTS:
		rr(k, c->exists.body, &in);
		add_but(k, out, &in, &c->exists.var, 1);
		return;
	case DW_C_CMP:
		if (c->cmp.op == DW_EQ && binds(c->cmp.l, c->cmp.r))
			add(k, out, c->cmp.l->var.name);
		if (c->cmp.op == DW_EQ && binds(c->cmp.r, c->cmp.l))
			add(k, out, c->cmp.r->var.name);
		return;
	case DW_C_NOT:
	case DW_C_CALL:
	case DW_C_PARAM:
		return;
	}
}

static void refuse(struct chk *k, struct cedar_span at, const char *text)
{
	if (k->bad)
		return;
	k->bad = true;
	(void)cedar_diag_add(k->ds, CEDAR_ERROR, "temporal", &at, NULL, "%s",
	    text != NULL ? text : "the policy source is too large");
}
#define REFUSE(k, at, ...) refuse((k), (at), (k)->bad ? NULL : arena_printf((k)->a, __VA_ARGS__))

/* "u, v" */
static const char *names(struct chk *k, const struct dw_binder *b, uint32_t n)
{
	const char *s = "";

	for (uint32_t i = 0; i < n && s != NULL; i++)
		s = arena_printf(k->a, "%s%s" SV_FMT, s, i != 0 ? ", " : "", SV_ARG(b[i].name));
	return s != NULL ? s : "…";
}

static const char *set_names(struct chk *k, const struct set *v)
{
	const char *s = "";

	for (uint32_t i = 0; i < v->n && s != NULL; i++)
		s = arena_printf(k->a, "%s%s" SV_FMT, s, i != 0 ? ", " : "", SV_ARG(v->v[i]));
	return s != NULL ? s : "…";
}

/* ---- rules 1 to 4: one walk each, outer before inner ---- */

enum rule { RULE_PLACE, RULE_NAMES, RULE_EXISTS, RULE_AGG };

static void walk(struct chk *k, enum rule r, const struct dw_cond *c);

static bool is_reserved(sv s)
{
	return sv_eq(s, SV("principal")) || sv_eq(s, SV("action")) || sv_eq(s, SV("resource")) ||
	       sv_eq(s, SV("context"));
}

static void name_ok(struct chk *k, sv name, struct cedar_span at)
{
	if (is_reserved(name))
		REFUSE(k, at,
		    "`%.*s` is a reserved word and cannot be used as a binder name; `principal`, "
		    "`action`, `resource`, "
		    "and `context` are the Cedar request variables — rename the `exists` / `for` / "
		    "`tp` variable",
		    SV_ARG(name));
}

static void agg_rules(struct chk *k, const struct dw_term *t)
{
	const struct dw_agg *g = &t->agg;
	struct set used = { 0 }, bound = { 0 };
	const char *list = names(k, g->vars, g->nvars);

	if (g->sum && !is_binder(g->vars, g->nvars, g->summed)) {
		REFUSE(k, g->summed_at,
		    "aggregation sums `%.*s`, which is not one of its `for` binders (%s); the "
		    "summed variable must appear in "
		    "the `for` list (the sum is computed over the `for` columns)",
		    SV_ARG(g->summed), list);
		return;
	}
	free_cond(k, g->body, &used);
	rr(k, g->body, &bound);
	for (uint32_t i = 0; i < g->nvars; i++) {
		if (has(&used, g->vars[i].name))
			continue;
		REFUSE(k, g->vars[i].at,
		    "`for`-variable `%.*s` does not occur in the aggregation body (%s); a "
		    "group-by variable must be used in "
		    "the `where` body, otherwise the grouping ranges over an unbounded domain",
		    SV_ARG(g->vars[i].name), set_names(k, &used));
		return;
	}
	for (uint32_t i = 0; i < g->nvars; i++) {
		if (!has(&bound, g->vars[i].name))
			REFUSE(k, g->vars[i].at,
			    "aggregation `for`-variable `%.*s` is not range-restricted by any "
			    "positive atom in the `where` body; "
			    "bind it with a predicate field (`P{ f: %.*s }`), a `tp(%.*s)`, or an "
			    "equality (`(count …) == %.*s`) — an "
			    "occurrence under a negation or in the left operand of a `since` does "
			    "not restrict",
			    SV_ARG(g->vars[i].name), SV_ARG(g->vars[i].name),
			    SV_ARG(g->vars[i].name), SV_ARG(g->vars[i].name));
	}
}

static void walk_term(struct chk *k, enum rule r, const struct dw_term *t, bool operand)
{
	if (k->bad)
		return;
	if (t->kind == DW_TERM_ARRAY) {
		for (uint32_t i = 0; i < t->items.n; i++)
			walk_term(k, r, t->items.v[i], false);
		return;
	}
	if (t->kind != DW_TERM_AGG)
		return;
	if (r == RULE_PLACE && !operand)
		REFUSE(k, t->at,
		    "an aggregate (`sum`/`count`) may appear only as the immediate operand of a "
		    "comparison, not as a "
		    "predicate-argument value or nested in another term");
	if (r == RULE_NAMES) {
		for (uint32_t i = 0; i < t->agg.nvars; i++)
			name_ok(k, t->agg.vars[i].name, t->agg.vars[i].at);
	}
	if (r == RULE_AGG)
		agg_rules(k, t);
	walk(k, r, t->agg.body);
}

/* Rule 3. */
static void exists_rule(struct chk *k, const struct dw_cond *c)
{
	struct set bound = { 0 };

	rr(k, c->exists.body, &bound);
	if (!has(&bound, c->exists.var.name))
		REFUSE(k, c->exists.var.at,
		    "existential variable `%.*s` is not range-restricted by any "
		    "positive atom in the `exists` "
		    "body; bind it with a predicate field (`P{ f: %.*s }`), a "
		    "`tp(%.*s)`, or an equality "
		    "(`(count …) == %.*s`)",
		    SV_ARG(c->exists.var.name), SV_ARG(c->exists.var.name),
		    SV_ARG(c->exists.var.name), SV_ARG(c->exists.var.name));
}

static void walk(struct chk *k, enum rule r, const struct dw_cond *c)
{
	const struct dw_cond *below;
	const struct dw_term *t;

	if (k->bad)
		return;
	if (r == RULE_NAMES && c->kind == DW_C_TP)
		name_ok(k, c->tp.name, c->at);
	if (r == RULE_NAMES && c->kind == DW_C_EXISTS)
		name_ok(k, c->exists.var.name, c->exists.var.at);
	if (r == RULE_EXISTS && c->kind == DW_C_EXISTS)
		exists_rule(k, c);
	for (uint32_t i = 0; (t = dw_cond_term(c, i)) != NULL; i++)
		walk_term(k, r, t, c->kind == DW_C_CMP);
	for (uint32_t i = 0; (below = dw_cond_below(c, i)) != NULL; i++)
		walk(k, r, below);
}

/* Rule 4b needs to know what is bound outside, by any binder around. */
static void outer_cond(struct chk *k, const struct set *around, const struct dw_cond *c);

static void outer_term(struct chk *k, const struct set *around, const struct dw_term *t)
{
	struct set in = { 0 }, used = { 0 };

	if (t->kind == DW_TERM_ARRAY) {
		for (uint32_t i = 0; i < t->items.n; i++)
			outer_term(k, around, t->items.v[i]);
	}
	if (t->kind != DW_TERM_AGG || k->bad)
		return;
	add_all(k, &in, around);
	for (uint32_t i = 0; i < t->agg.nvars; i++)
		add(k, &in, t->agg.vars[i].name);
	free_cond(k, t->agg.body, &used);
	for (uint32_t i = 0; i < used.n && !k->bad; i++) {
		if (has(&in, used.v[i]))
			continue;
		REFUSE(k, t->at,
		    "variable `%.*s` is used in the aggregation body but is bound by neither the "
		    "`for` list (%s) nor an "
		    "enclosing binder; add it to the `for` list",
		    SV_ARG(used.v[i]), names(k, t->agg.vars, t->agg.nvars));
	}
	outer_cond(k, &in, t->agg.body);
}

static void outer_cond(struct chk *k, const struct set *around, const struct dw_cond *c)
{
	struct set in = { 0 };
	const struct dw_cond *below;
	const struct dw_term *t;

	if (k->bad)
		return;
	if (c->kind == DW_C_EXISTS) {
		add_all(k, &in, around);
		add(k, &in, c->exists.var.name);
		around = &in;
	}
	for (uint32_t i = 0; (t = dw_cond_term(c, i)) != NULL; i++)
		outer_term(k, around, t);
	for (uint32_t i = 0; (below = dw_cond_below(c, i)) != NULL; i++)
		outer_cond(k, around, below);
}

/* ---- rule 5: the order of binding ---- */

static void demands(struct chk *k, const struct set *bound, const struct dw_cond *c);

static void filter(
    struct chk *k, const struct set *bound, const struct set *used, struct cedar_span at)
{
	for (uint32_t i = 0; i < used->n; i++) {
		if (!has(bound, used->v[i]))
			REFUSE(k, at,
			    "variable `%.*s` is used in a filter (a comparison or negation) that "
			    "is not range-restricted by a "
			    "preceding conjunct; place a conjunct that binds `%.*s` (a predicate, "
			    "`tp`, or a binding equality) "
			    "before it",
			    SV_ARG(used->v[i]), SV_ARG(used->v[i]));
	}
}

static void demand_term(struct chk *k, const struct set *bound, const struct dw_term *t)
{
	struct set in = { 0 };

	if (t->kind != DW_TERM_AGG)
		return;
	add_but(k, &in, bound, t->agg.vars, t->agg.nvars);
	demands(k, &in, t->agg.body);
}

static void demand_cmp(struct chk *k, const struct set *bound, const struct dw_cond *c)
{
	const struct dw_term *l = c->cmp.l, *r = c->cmp.r, *t;
	struct set used = { 0 };

	if (c->cmp.op == DW_EQ && ((binds(l, r) && !has(bound, l->var.name)) ||
	                              (binds(r, l) && !has(bound, r->var.name)))) {
		if (!binds(l, r)) {
			t = l;
			l = r;
			r = t;
		}
		free_term(k, r, &used);
		for (uint32_t i = 0; i < used.n; i++) {
			if (has(bound, used.v[i]))
				continue;
			if (r->kind != DW_TERM_AGG) {
				filter(k, bound, &used, c->at);
				return;
			}
			REFUSE(k, c->at,
			    "the equality binding `" SV_FMT
			    "` reads `%.*s` inside its aggregate operand (`%.*s` is used in the "
			    "aggregation body but not bound by its `for` list), and `" SV_FMT
			    "` is not range-restricted by a preceding conjunct; place the conjunct "
			    "that binds `" SV_FMT
			    "` before the equality, widening the `exists` scope if needed",
			    SV_ARG(l->var.name), SV_ARG(used.v[i]), SV_ARG(used.v[i]),
			    SV_ARG(used.v[i]), SV_ARG(used.v[i]));
			return;
		}
	} else {
		free_term(k, l, &used);
		free_term(k, r, &used);
		filter(k, bound, &used, c->at);
	}
	demand_term(k, bound, c->cmp.l);
	demand_term(k, bound, c->cmp.r);
}

static void demands(struct chk *k, const struct set *bound, const struct dw_cond *c)
{
	struct set now = { 0 }, used = { 0 };

	if (k->bad)
		return;
	switch (c->kind) {
	case DW_C_PRED:
		/* A variable inside a list is compared, not bound. */
		for (uint32_t i = 0; i < c->pred.nargs; i++) {
			if (c->pred.args[i].term->kind == DW_TERM_ARRAY)
				free_term(k, c->pred.args[i].term, &used);
		}
		filter(k, bound, &used, c->at);
		return;
	case DW_C_TP:
		return;
	case DW_C_AND:
		add_all(k, &now, bound);
		for (uint32_t i = 0; i < c->all.n; i++) {
			demands(k, &now, c->all.v[i]);
			rr(k, c->all.v[i], &now);
		}
		return;
	case DW_C_NOT:
		free_cond(k, c->neg, &used);
		filter(k, bound, &used, c->at);
		demands(k, bound, c->neg);
		return;
	case DW_C_FORMERLY:
	case DW_C_PREVIOUS:
		demands(k, bound, c->once.body);
		return;
	case DW_C_SINCE:
		add_all(k, &now, bound);
		rr(k, c->since.right, &now);
		free_cond(k, c->since.left, &used);
		for (uint32_t i = 0; i < used.n; i++) {
			if (!has(&now, used.v[i]))
				REFUSE(k, c->since.left->at,
				    "variable `%.*s` is used in the left operand of a `since` but "
				    "is restricted neither by the "
				    "`since` anchor (its right operand) nor by a preceding "
				    "conjunct; the left of a `since` is a "
				    "per-step condition and cannot bind `%.*s` — restrict it in "
				    "the anchor or in a conjunct before "
				    "the `since`",
				    SV_ARG(used.v[i]), SV_ARG(used.v[i]));
		}
		demands(k, &now, c->since.left);
		demands(k, bound, c->since.right);
		return;
	case DW_C_EXISTS:
		add_but(k, &now, bound, &c->exists.var, 1);
		demands(k, &now, c->exists.body);
		return;
	case DW_C_CMP:
		demand_cmp(k, bound, c);
		return;
	case DW_C_CALL:
	case DW_C_PARAM:
		return;
	}
}

bool dw_safety(struct arena *a, const struct dw_cond *c, struct cedar_diags *ds)
{
	struct chk k = { .a = a, .ds = ds };
	struct set none = { 0 }, used = { 0 };

	walk(&k, RULE_PLACE, c);
	walk(&k, RULE_NAMES, c);
	walk(&k, RULE_EXISTS, c);
	if (!k.bad) {
		/* A variable that is bound nowhere at all is rule 6's business, not 4b's, unless an
		 * aggregate holds it. */
		outer_cond(&k, &none, c);
	}
	walk(&k, RULE_AGG, c);
	demands(&k, &none, c);
	if (k.bad)
		return false;
	free_cond(&k, c, &used);
	if (used.n != 0)
		REFUSE(&k, c->at,
		    "variable `%.*s` is free in this temporal condition (bound by no `exists` "
		    "binder or aggregation `for` "
		    "list); a temporal condition must be closed — wrap it as `exists (%.*s: "
		    "<type>). (…)`, or use `*` to match "
		    "any value",
		    SV_ARG(used.v[0]), SV_ARG(used.v[0]));
	return !k.bad;
}
