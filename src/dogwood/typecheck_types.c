/* Types of terms for the checks of temporal conditions, and findings. See typecheck.c. */
#include "dogwood/advice.h"
#include "dogwood/typecheck_impl.h"

#include "base/ban.h"

void dwt_find(struct dwt *k, struct cedar_span at, const char *hint, const char *text)
{
	if (text == NULL)
		text = "the policy source is too large";
	/* The same finding for each action of a rule is one finding. */
	for (size_t i = k->before; i < k->ds->n; i++) {
		if (sv_eq(k->ds->d[i].message, sv_c(text)) && k->ds->d[i].span.off == at.off)
			return;
	}
	(void)cedar_diag_add(k->ds, CEDAR_ERROR, "temporal", &at, hint, "%s", text);
}

const char *dwt_text(struct dwt *k, const struct buf *b)
{
	sv s = buf_ok(b) ? arena_dup(k->a, buf_sv(b)) : SV("…");

	return s.p != NULL ? s.p : "…";
}

sv dwt_simple(sv name)
{
	ptrdiff_t i = sv_rfind(name, ':');

	return i < 0 ? name : sv_sub(name, (size_t)i + 1, name.n);
}

const char *dwt_path_text(struct dwt *k, const struct dw_term *t)
{
	AUTO_BUF b = buf_with(65536);

	dw_term_print(&b, t);
	return dwt_text(k, &b);
}

struct dwt_type dwt_from_cedar(struct dwt *k, const struct cedar_type *t)
{
	struct dwt_type r = { K_OTHER, { NULL, 0 }, NULL, 0 };
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
		r.name = sv_c(dwt_text(k, &b));
		return r;
	}
	return r;
}

struct dwt_type dwt_from_choice(const struct cedar_entity_type *const *v, uint32_t n)
{
	struct dwt_type r = { K_ENTITY, { NULL, 0 }, v, n };

	if (n == 0)
		r.k = K_ANY;
	if (n == 1)
		r.name = cedar_sv(v[0]->name);
	return r;
}

const struct cedar_entity_type *dwt_etype(const struct dwt *k, sv name)
{
	cedar_sym s = cedar_syms_find(k->s->syms, name);

	return s != NULL ? cedar_schema_etype(k->s->schema, s) : NULL;
}

const struct cedar_entity_type *dwt_binder_etype(const struct dwt *k, sv name)
{
	const struct cedar_entity_type *e = dwt_etype(k, name);

	for (size_t i = 0; e == NULL && i < k->s->schema->n_etype; i++) {
		if (sv_eq(dwt_simple(cedar_sv(k->s->schema->etype[i]->name)), name))
			e = k->s->schema->etype[i];
	}
	return e;
}

struct dwt_type dwt_from_binder(const struct dwt *k, const struct dw_binder *b)
{
	static const enum dwt_kind kinds[] = { K_TIMEPOINT, K_LONG, K_STRING, K_BOOL, K_DECIMAL };
	struct dwt_type r = { K_OTHER, b->type_name, NULL, 0 };
	const struct cedar_entity_type *e;

	if (b->type != DW_T_NAMED) {
		r.k = kinds[b->type];
		return r;
	}
	e = dwt_binder_etype(k, b->type_name);
	if (e != NULL) {
		r.k = K_ENTITY;
		r.name = cedar_sv(e->name);
	}
	return r;
}

const char *dwt_type_name(struct dwt *k, const struct dwt_type *t)
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
			    SV_ARG(dwt_simple(cedar_sv(t->choice[i]->name))));
	} else {
		s = arena_printf(
		    k->a, SV_FMT, SV_ARG(t->k == K_ENTITY ? dwt_simple(t->name) : t->name));
	}
	return s != NULL ? s : "…";
}

static bool among(const struct dwt_type *t, sv name)
{
	if (t->nchoice <= 1)
		return sv_eq(dwt_simple(t->name), dwt_simple(name));
	for (uint32_t i = 0; i < t->nchoice; i++) {
		if (sv_eq(dwt_simple(cedar_sv(t->choice[i]->name)), dwt_simple(name)))
			return true;
	}
	return false;
}

bool dwt_compatible(const struct dwt_type *a, const struct dwt_type *b)
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

const struct cedar_type *dwt_context_type(struct dwt *k, const struct dw_term *t, bool report)
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
				HINTED(k, t->at,
				    dw_advice_context(k->a, k->act->context, t->path.v[0]),
				    "action `" SV_FMT "` has no context field `" SV_FMT
				    "` for `%s`",
				    SV_ARG(cedar_sv(k->act->uid.id)), SV_ARG(t->path.v[0]),
				    dwt_path_text(k, t));
			else if (report)
				HINTED(k, t->at, dw_advice_member(k->a, ty, t->path.v[i]),
				    "record has no field `" SV_FMT "` in `%s` path",
				    SV_ARG(t->path.v[i]), dwt_path_text(k, t));
			return NULL;
		}
		ty = m->type;
	}
	return ty;
}

struct dwt_type dwt_scope_type(struct dwt *k, const struct dw_term *t)
{
	const struct cedar_policy *p = &k->s->src.policy[k->leaf->pub.rule];
	const struct cedar_scope *sc = t->kind == DW_TERM_PRINCIPAL ? &p->principal : &p->resource;
	struct dwt_type r = t->kind == DW_TERM_PRINCIPAL
	                        ? dwt_from_choice(k->act->principal, k->act->n_principal)
	                        : dwt_from_choice(k->act->resource, k->act->n_resource);
	struct dwt_type one = { K_ENTITY, { NULL, 0 }, NULL, 0 };

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

const struct cedar_type *dwt_attr_type(const struct cedar_entity_type *e, const struct dw_term *t)
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

bool dwt_is_id_or_type(const struct dw_term *t)
{
	return t->path.n == 1 && (sv_eq(t->path.v[0], SV("id")) || sv_eq(t->path.v[0], SV("type")));
}

struct dwt_type dwt_term_type(struct dwt *k, const struct dw_term *t)
{
	struct dwt_type r = { K_ANY, { NULL, 0 }, NULL, 0 }, sc;
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
		return t->var.slot != DW_NO_SLOT
		           ? dwt_from_binder(k, k->leaf->names.slot[t->var.slot])
		           : r;
	case DW_TERM_CONTEXT:
		ty = dwt_context_type(k, t, false);
		return ty != NULL ? dwt_from_cedar(k, ty) : r;
	case DW_TERM_PRINCIPAL:
	case DW_TERM_RESOURCE:
		sc = dwt_scope_type(k, t);
		if (t->path.n == 0)
			return sc;
		if (sc.k != K_ENTITY || sc.nchoice > 1)
			return r;
		e = dwt_etype(k, sc.name);
		ty = e != NULL ? dwt_attr_type(e, t) : NULL;
		if (ty != NULL)
			return dwt_from_cedar(k, ty);
		if (dwt_is_id_or_type(t))
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
