/* Checks of temporal conditions against the event and action schemas (dogwood-language.md 6.2):
 * names, windows, entity types, paths, dependence on time, types. Each kind of check is one walk
 * over the leaf; a leaf with a finding is not judged further, since later findings would follow
 * from it. */
#include "cedar/validate.h"
#include "dogwood/set_impl.h"

#include "base/ban.h"

/* The type of a term as these checks see it. */
enum kind { K_ANY, K_STRING, K_BOOL, K_LONG, K_DECIMAL, K_TIMEPOINT, K_ENTITY, K_OTHER };

struct type {
	enum kind k;
	sv name; /* K_ENTITY: full name; K_OTHER: as Cedar prints it */
	const struct cedar_entity_type *const *choice; /* K_ENTITY: one of several */
	uint32_t nchoice;
};

struct chk {
	struct dw_set *s;
	struct arena *a;
	struct cedar_diags *ds;
	const struct dw_leaf_impl *leaf;
	const struct cedar_action **actions; /* that the rule can be about */
	size_t nactions;
	const struct cedar_action *act; /* the one judged now */
	size_t before;
};

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

static void find(struct chk *k, struct cedar_span at, const char *text)
{
	if (text == NULL)
		text = "the policy source is too large";
	/* The same finding for each action of a rule is one finding. */
	for (size_t i = k->before; i < k->ds->n; i++) {
		if (sv_eq(k->ds->d[i].message, sv_c(text)) && k->ds->d[i].span.off == at.off)
			return;
	}
	(void)cedar_diag_add(k->ds, CEDAR_ERROR, "temporal", &at, NULL, "%s", text);
}
#define FIND(k, at, ...) find((k), (at), arena_printf((k)->a, __VA_ARGS__))

static const char *text_of(struct chk *k, const struct buf *b)
{
	sv s = buf_ok(b) ? arena_dup(k->a, buf_sv(b)) : SV("…");

	return s.p != NULL ? s.p : "…";
}

static const char *pred_name(struct chk *k, const struct dw_pred *p)
{
	AUTO_BUF b = buf_with(65536);

	buf_put_sv(&b, p->ns);
	buf_put_c(&b, "::");
	cedar_put_quoted(&b, p->id);
	buf_put_c(&b, "::");
	buf_put_sv(&b, p->kind);
	return text_of(k, &b);
}

static sv simple(sv name)
{
	ptrdiff_t i = sv_rfind(name, ':');

	return i < 0 ? name : sv_sub(name, (size_t)i + 1, name.n);
}

static const char *path_text(struct chk *k, const struct dw_term *t)
{
	AUTO_BUF b = buf_with(65536);

	dw_term_print(&b, t);
	return text_of(k, &b);
}

/* ---- types ---- */

static struct type from_cedar(struct chk *k, const struct cedar_type *t)
{
	struct type r = { K_OTHER, { NULL, 0 }, NULL, 0 };
	AUTO_BUF b = buf_with(65536);

	switch (t->kind) {
	case CEDAR_TY_STRING:
		r.k = K_STRING;
		return r;
	case CEDAR_TY_TRUE:
	case CEDAR_TY_FALSE:
	case CEDAR_TY_BOOL:
		r.k = K_BOOL;
		return r;
	case CEDAR_TY_LONG:
		r.k = K_LONG;
		return r;
	case CEDAR_TY_DECIMAL:
		r.k = K_DECIMAL;
		return r;
	case CEDAR_TY_ENTITY:
		if (t->ent == NULL) {
			r.k = K_ANY;
			return r;
		}
		r.k = K_ENTITY;
		r.name = cedar_sv(t->ent->name);
		return r;
	case CEDAR_TY_NEVER:
	case CEDAR_TY_SET:
	case CEDAR_TY_RECORD:
	case CEDAR_TY_IP:
	case CEDAR_TY_DATETIME:
	case CEDAR_TY_DURATION:
		cedar_put_type(&b, t);
		r.name = sv_c(text_of(k, &b));
		return r;
	}
	return r;
}

static struct type from_choice(const struct cedar_entity_type *const *v, uint32_t n)
{
	struct type r = { K_ENTITY, { NULL, 0 }, v, n };

	if (n == 0)
		r.k = K_ANY;
	if (n == 1)
		r.name = cedar_sv(v[0]->name);
	return r;
}

static const struct cedar_entity_type *etype(const struct chk *k, sv name)
{
	cedar_sym s = cedar_syms_find(k->s->syms, name);

	return s != NULL ? cedar_schema_etype(k->s->schema, s) : NULL;
}

/* A binder may name an entity type by its last segment. */
static const struct cedar_entity_type *binder_etype(const struct chk *k, sv name)
{
	const struct cedar_entity_type *e = etype(k, name);

	for (size_t i = 0; e == NULL && i < k->s->schema->n_etype; i++) {
		if (sv_eq(simple(cedar_sv(k->s->schema->etype[i]->name)), name))
			e = k->s->schema->etype[i];
	}
	return e;
}

static struct type from_binder(const struct chk *k, const struct dw_binder *b)
{
	static const enum kind kinds[] = { K_TIMEPOINT, K_LONG, K_STRING, K_BOOL, K_DECIMAL };
	struct type r = { K_OTHER, b->type_name, NULL, 0 };
	const struct cedar_entity_type *e;

	if (b->type != DW_T_NAMED) {
		r.k = kinds[b->type];
		return r;
	}
	e = binder_etype(k, b->type_name);
	if (e != NULL) {
		r.k = K_ENTITY;
		r.name = cedar_sv(e->name);
	}
	return r;
}

static const char *type_name(struct chk *k, const struct type *t)
{
	static const char *const names[] = { "any", "string", "bool", "Long", "decimal",
		"Timepoint" };
	const char *s;

	if (t->k < K_ENTITY)
		return names[t->k];
	if (t->nchoice > 1) {
		s = "";
		for (uint32_t i = 0; i < t->nchoice && s != NULL; i++)
			s = arena_printf(k->a, "%s%s" SV_FMT, s, i != 0 ? ", " : "",
			    SV_ARG(simple(cedar_sv(t->choice[i]->name))));
	} else {
		s = arena_printf(
		    k->a, SV_FMT, SV_ARG(t->k == K_ENTITY ? simple(t->name) : t->name));
	}
	return s != NULL ? s : "…";
}

static bool among(const struct type *t, sv name)
{
	if (t->nchoice <= 1)
		return sv_eq(simple(t->name), simple(name));
	for (uint32_t i = 0; i < t->nchoice; i++) {
		if (sv_eq(simple(cedar_sv(t->choice[i]->name)), simple(name)))
			return true;
	}
	return false;
}

static bool compatible(const struct type *a, const struct type *b)
{
	if (a->k == K_ANY || b->k == K_ANY)
		return true;
	if (a->k != b->k)
		return false;
	if (a->k == K_OTHER)
		return sv_eq(a->name, b->name);
	if (a->k != K_ENTITY)
		return true;
	if (a->nchoice > 1) {
		for (uint32_t i = 0; i < a->nchoice; i++) {
			if (among(b, cedar_sv(a->choice[i]->name)))
				return true;
		}
		return false;
	}
	return among(b, a->name);
}

/* The type at a context path under the present action, or NULL with a finding in the pass for
 * paths. */
static const struct cedar_type *context_type(struct chk *k, const struct dw_term *t, bool report)
{
	const struct cedar_type *ty = k->act->context;
	const struct cedar_attr *m;

	for (uint32_t i = 0; i < t->path.n; i++) {
		m = NULL;
		if (ty == NULL || ty->kind != CEDAR_TY_RECORD) {
			if (report)
				FIND(k, t->at, "`" SV_FMT "` accesses a field of a non-record type",
				    SV_ARG(t->path.v[i]));
			return NULL;
		}
		for (uint32_t x = 0; x < ty->n_attr && m == NULL; x++) {
			if (sv_eq(cedar_sv(ty->attr[x].name), t->path.v[i]))
				m = &ty->attr[x];
		}
		if (m == NULL) {
			if (report && i == 0)
				FIND(k, t->at,
				    "action `" SV_FMT "` has no context field `" SV_FMT
				    "` for `%s`",
				    SV_ARG(cedar_sv(k->act->uid.id)), SV_ARG(t->path.v[0]),
				    path_text(k, t));
			else if (report)
				FIND(k, t->at, "record has no field `" SV_FMT "` in `%s` path",
				    SV_ARG(t->path.v[i]), path_text(k, t));
			return NULL;
		}
		ty = m->type;
	}
	return ty;
}

/* The entity types that principal or resource can have under the present action and the scope of
 * the rule. */
static struct type scope_type(struct chk *k, const struct dw_term *t)
{
	const struct cedar_policy *p = &k->s->src.policy[k->leaf->pub.rule];
	const struct cedar_scope *sc = t->kind == DW_TERM_PRINCIPAL ? &p->principal : &p->resource;
	struct type r = t->kind == DW_TERM_PRINCIPAL
	                    ? from_choice(k->act->principal, k->act->n_principal)
	                    : from_choice(k->act->resource, k->act->n_resource);
	struct type one = { K_ENTITY, { NULL, 0 }, NULL, 0 };

	if (sc->op == CEDAR_S_EQ && !sc->slot) {
		one.name = cedar_sv(sc->uid.type);
		return one;
	}
	if (sc->op == CEDAR_S_IS || sc->op == CEDAR_S_IS_IN) {
		one.name = cedar_sv(sc->type);
		return one;
	}
	return r;
}

static const struct cedar_type *attr_type(
    const struct cedar_entity_type *e, const struct dw_term *t)
{
	const struct cedar_type *ty = e->shape;
	const struct cedar_attr *m;

	for (uint32_t i = 0; i < t->path.n; i++) {
		m = NULL;
		if (ty == NULL || ty->kind != CEDAR_TY_RECORD)
			return NULL;
		for (uint32_t x = 0; x < ty->n_attr && m == NULL; x++) {
			if (sv_eq(cedar_sv(ty->attr[x].name), t->path.v[i]))
				m = &ty->attr[x];
		}
		if (m == NULL)
			return NULL;
		ty = m->type;
	}
	return ty;
}

static bool is_id_or_type(const struct dw_term *t)
{
	return t->path.n == 1 && (sv_eq(t->path.v[0], SV("id")) || sv_eq(t->path.v[0], SV("type")));
}

static struct type term_type(struct chk *k, const struct dw_term *t)
{
	struct type r = { K_ANY, { NULL, 0 }, NULL, 0 }, sc;
	const struct cedar_entity_type *e;
	const struct cedar_type *ty = NULL;

	switch (t->kind) {
	case DW_TERM_LIT:
		r.k = t->lit.tag == DW_STRING   ? K_STRING
		      : t->lit.tag == DW_INT    ? K_LONG
		      : t->lit.tag == DW_BOOL   ? K_BOOL
		      : t->lit.tag == DW_ENTITY ? K_ENTITY
		                                : K_DECIMAL;
		if (r.k == K_ENTITY)
			r.name = t->lit.u.ent.type;
		return r;
	case DW_TERM_AGG:
		r.k = K_LONG;
		return r;
	case DW_TERM_VAR:
		return t->var.slot != DW_NO_SLOT ? from_binder(k, k->leaf->names.slot[t->var.slot])
		                                 : r;
	case DW_TERM_CONTEXT:
		ty = context_type(k, t, false);
		return ty != NULL ? from_cedar(k, ty) : r;
	case DW_TERM_PRINCIPAL:
	case DW_TERM_RESOURCE:
		sc = scope_type(k, t);
		if (t->path.n == 0)
			return sc;
		if (sc.k != K_ENTITY || sc.nchoice > 1)
			return r;
		e = etype(k, sc.name);
		ty = e != NULL ? attr_type(e, t) : NULL;
		if (ty != NULL)
			return from_cedar(k, ty);
		if (is_id_or_type(t))
			r.k = K_STRING;
		return r;
	case DW_TERM_ARRAY:
	case DW_TERM_WILD:
	case DW_TERM_PARAM:
	case DW_TERM_CALL:
		return r;
	}
	return r;
}

/* ---- the walks ---- */

static void cond(struct chk *k, enum pass p, const struct dw_cond *c);

static void window(struct chk *k, const struct dw_window *w)
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

static void entity(struct chk *k, const struct dw_val *v, struct cedar_span at)
{
	const struct cedar_entity_type *e;
	AUTO_BUF ids = buf_with(65536), id = buf_with(65536);

	if (sv_eq(simple(v->u.ent.type), SV("Action")))
		return;
	e = etype(k, v->u.ent.type);
	if (e == NULL) {
		FIND(k, at,
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
	    SV_ARG(v->u.ent.type), text_of(k, &id), text_of(k, &ids));
}

static void scope_path(struct chk *k, const struct dw_term *t)
{
	struct type sc = scope_type(k, t);
	const struct cedar_entity_type *e;

	if (t->path.n == 0 || is_id_or_type(t) || sc.k != K_ENTITY)
		return;
	for (uint32_t i = 0; i < (sc.nchoice > 1 ? sc.nchoice : 1); i++) {
		e = sc.nchoice > 1 ? sc.choice[i] : etype(k, sc.name);
		if (e != NULL && attr_type(e, t) == NULL)
			FIND(k, t->at,
			    "`%s` does not resolve for every entity the rule's `%s` may be: "
			    "`" SV_FMT "` declares no attribute `" SV_FMT
			    "`, so this condition would silently be false for it",
			    path_text(k, t),
			    t->kind == DW_TERM_PRINCIPAL ? "principal" : "resource",
			    SV_ARG(cedar_sv(e->name)), SV_ARG(t->path.v[t->path.n - 1]));
	}
}

static void binder(struct chk *k, enum pass p, const struct dw_binder *b)
{
	if (p == PASS_ENTITIES && b->type == DW_T_NAMED && binder_etype(k, b->type_name) == NULL)
		FIND(k, b->type_at,
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

static void must_vary(struct chk *k, enum pass p, const struct dw_cond *c, const char *what)
{
	if (p == PASS_TIME && !varies(c))
		FIND(k, c->at, "%s does not vary with the current timepoint; it monitors nothing",
		    what);
}

static void term(struct chk *k, enum pass p, const struct dw_term *t)
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
			(void)context_type(k, t, true);
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
			struct type ty = from_binder(k, sum);

			FIND(k, t->agg.summed_at,
			    "cannot sum `" SV_FMT "`: sum requires a `Long` summand, but `" SV_FMT
			    "` is `%s`%s",
			    SV_ARG(t->agg.summed), SV_ARG(t->agg.summed), type_name(k, &ty),
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

static void pred_fields(struct chk *k, const struct dw_cond *c, const struct dw_derived *d)
{
	for (uint32_t i = 0; i < c->pred.nargs; i++) {
		const struct dw_arg *g = &c->pred.args[i];
		const struct dw_field *f = dw_derived_field(d, g->path, g->npath);
		AUTO_BUF list = buf_with(1 << 20);

		if (f == NULL) {
			dw_derived_list(k->a, d, &list);
			FIND(k, g->at,
			    "predicate `%s` mentions field `" SV_FMT
			    "`, which is not declared on that event (declared fields: %s)",
			    pred_name(k, &c->pred), SV_ARG(g->dotted), text_of(k, &list));
		} else if (f->group) {
			FIND(k, g->at,
			    "predicate `%s` mentions `" SV_FMT
			    "`, which is a field group, not a field; address a field inside it "
			    "(e.g. `" SV_FMT ".<field>`)",
			    pred_name(k, &c->pred), SV_ARG(g->dotted), SV_ARG(g->dotted));
		}
	}
}

static void pred(struct chk *k, enum pass p, const struct dw_cond *c)
{
	const struct dw_derived *d =
	    dw_eschema_event(k->s->events, c->pred.ns, c->pred.id, c->pred.kind);

	if (p == PASS_EVENTS) {
		if (d == NULL)
			FIND(k, c->at,
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
		struct type want, got;

		term(k, p, g->term);
		if (p != PASS_TYPES || f == NULL || f->group)
			continue;
		want = f->type != NULL ? from_cedar(k, f->type) : from_choice(f->ents, f->nents);
		got = term_type(k, g->term);
		if (!compatible(&want, &got))
			FIND(k, g->term->at,
			    "argument `" SV_FMT "` of `" SV_FMT "` expects `%s` but got `%s`",
			    SV_ARG(g->dotted), SV_ARG(c->pred.id), type_name(k, &want),
			    type_name(k, &got));
	}
}

static void compare(struct chk *k, enum pass p, const struct dw_cond *c)
{
	struct type a, b;

	term(k, p, c->cmp.l);
	term(k, p, c->cmp.r);
	if (p != PASS_TYPES)
		return;
	a = term_type(k, c->cmp.l);
	b = term_type(k, c->cmp.r);
	if (c->cmp.op == DW_EQ || c->cmp.op == DW_NE) {
		if (!compatible(&a, &b))
			FIND(k, c->at,
			    "equality requires both sides to have the same type, got `%s` and `%s`",
			    type_name(k, &a), type_name(k, &b));
		return;
	}
	if ((a.k != K_LONG && a.k != K_ANY) || (b.k != K_LONG && b.k != K_ANY))
		FIND(k, c->at,
		    "comparison requires numeric operands on both sides, got `%s` and `%s`",
		    type_name(k, &a), type_name(k, &b));
}

static void cond(struct chk *k, enum pass p, const struct dw_cond *c)
{
	const struct dw_binder *b;
	struct type t;

	switch (c->kind) {
	case DW_C_PRED:
		pred(k, p, c);
		return;
	case DW_C_TP:
		if (p != PASS_TYPES || c->tp.slot == DW_NO_SLOT)
			return;
		b = k->leaf->names.slot[c->tp.slot];
		t = from_binder(k, b);
		if (t.k != K_TIMEPOINT)
			FIND(k, c->at,
			    "`tp(" SV_FMT ")` binds `" SV_FMT
			    "` to the current timepoint, but `" SV_FMT
			    "` is declared `%s`; a `tp` variable must be declared `Timepoint`",
			    SV_ARG(c->tp.name), SV_ARG(c->tp.name), SV_ARG(c->tp.name),
			    type_name(k, &t));
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

static void top(struct chk *k, enum pass p, const struct dw_cond *c)
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
	struct chk k = { .s = s, .a = &s->a, .ds = ds };
	const struct dw_rule *r = &s->rules[rule];

	if (r->nleaves == 0)
		return;
	if (cedar_policy_actions(s->schema, &s->src.policy[rule], &s->a, &k.actions, &k.nactions) <
	    0) {
		find(&k, s->src.policy[rule].span, NULL);
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
