/* Loading a policy set. See policyset.h.
 *
 * The stages follow dogwood-language.md 7.1: parse everything (all errors at once), expand macros,
 * refuse what is not enabled, add pins, number, check ranges, check against the schemas, compile. A
 * rule in which a stage finds an error is passed over by the stages behind it; an error in a schema
 * ends the load once the policies are parsed. */
#include <stdlib.h>

#include "cedar/advice.h"
#include "cedar/lint.h"
#include "cedar/validate.h"
#include "dogwood/diags.h"
#include "dogwood/macro.h"
#include "dogwood/provider.h"
#include "dogwood/safety.h"
#include "dogwood/set_impl.h"
#include "dogwood/tparse.h"

#include "base/ban.h"

#define SET_ARENA_LIMIT ((size_t)1 << 30)
#define SYMS_LIMIT      ((size_t)256 << 20)

void dw_set_free(struct dw_set *s)
{
	if (s == NULL)
		return;
	cedar_policies_free(s->policies);
	cedar_syms_free(s->syms);
	arena_free(&s->a);
	free(s);
}

static void refuse(struct dw_loader *l, const char *code, const struct cedar_span *at,
    const char *hint, const char *text)
{
	(void)cedar_diag_add(l->ds, CEDAR_ERROR, code, at, hint, "%s", text);
}

/* ---- leaves ---- */

struct leaf_walk {
	struct dw_loader *l;
	struct dw_rule *rule;
	size_t cap;
	bool parse; /* first walk: parse the texts; second walk: number what the expansion left */
};

static int see_leaf(void *ctx, struct cedar_expr **node)
{
	struct leaf_walk *w = ctx;
	struct dw_loader *l = w->l;
	struct dw_set *s = l->s;
	struct cedar_leaf *leaf;
	struct dw_body *body;
	const char *field;

	if ((*node)->kind != CEDAR_E_LEAF || (*node)->leaf->is_provider)
		return 0;
	leaf = (*node)->leaf;
	if (w->parse) {
		struct dw_tparse tp = { s->syms, l->a, l->ds, false };

		if (leaf->host != NULL)
			return 0;
		body = ARENA_NEW(l->a, struct dw_body);
		if (body == NULL) {
			refuse(l, "parse", &leaf->at, NULL, "the policy source is too large");
			return -1;
		}
		if (dw_tparse(&tp, leaf->text, leaf->at, body))
			leaf->host = body;
		return 0;
	}
	/* A leaf that a macro used twice is one leaf. */
	if (leaf->ordinal < s->nleaves && s->leaves[leaf->ordinal].cedar == leaf)
		return 0;
	if (s->nleaves == w->cap) {
		size_t cap = w->cap != 0 ? w->cap * 2 : 16;
		struct dw_leaf_impl *v = arena_grow(l->a, s->leaves, s->nleaves, cap, sizeof(*v));

		if (v == NULL) {
			refuse(l, "parse", &leaf->at, NULL, "the policy source is too large");
			return -1;
		}
		s->leaves = v;
		w->cap = cap;
	}
	field = arena_printf(l->a, "policy_%d__temporal_%u", l->rule, w->rule->nleaves);
	if (field == NULL)
		return -1;
	body = leaf->host;
	leaf->ordinal = (uint32_t)s->nleaves;
	s->leaves[s->nleaves++] = (struct dw_leaf_impl){
		.pub = { .rule = (uint32_t)l->rule,
		    .ordinal = w->rule->nleaves,
		    .field = sv_c(field) },
		.parsed = *body,
		.cedar = leaf,
	};
	w->rule->nleaves++;
	return 0;
}

static bool walk_conds(struct cedar_policy *p, int (*f)(void *, struct cedar_expr **), void *ctx)
{
	bool ok = true;

	for (uint32_t i = 0; i < p->n_cond; i++) {
		if (p->cond[i].e != NULL && cedar_expr_walk(&p->cond[i].e, f, ctx) != 0)
			ok = false;
	}
	return ok;
}

/* ---- what is not enabled ---- */

static const struct cedar_expr *chain_root(const struct cedar_expr *e)
{
	while ((e->kind == CEDAR_E_METHOD || e->kind == CEDAR_E_GET) && e->n_arg != 0)
		e = e->arg[0];
	return e;
}

static const char *method_hint(struct dw_loader *l, sv name)
{
	const char *hint = cedar_advice(CEDAR_AT_METHOD, name);
	sv near = cedar_near_method(name);

	if (hint == NULL && near.n != 0)
		hint = arena_printf(l->a, "did you mean `" SV_FMT "`?", SV_ARG(near));
	return hint;
}

/* Is e, or what it is a method or attribute of, a provider? */
static bool is_provided(const struct cedar_expr *e)
{
	const struct cedar_expr *root = chain_root(e);

	return root->kind == CEDAR_E_CALL ||
	       (root->kind == CEDAR_E_LEAF && root->leaf->is_provider);
}

struct provider_walk {
	struct dw_loader *l;
	uint32_t count;
};

static int see_provider(void *ctx, struct cedar_expr **node)
{
	struct provider_walk *w = ctx;
	struct dw_loader *l = w->l;
	struct dw_provider_fold fold = { l->s, l->providers, l->a, l->ds, (size_t)l->rule,
		&w->count };
	const struct cedar_expr *e = *node;

	if (e->kind == CEDAR_E_METHOD) {
		if (!is_provided(e)) {
			const char *s = arena_printf(
			    l->a, "unknown method `" SV_FMT "`", SV_ARG(cedar_sv(e->name)));

			refuse(l, "parse", &e->span, method_hint(l, cedar_sv(e->name)),
			    s != NULL ? s : "unknown method");
			return -1;
		}
	}
	if (l->providers != NULL)
		return dw_provider_fold(&fold, node);
	if (e->kind == CEDAR_E_CALL || e->kind == CEDAR_E_METHOD) {
		refuse(l, "provider", &e->span, NULL,
		    "information providers are not enabled in this build");
		return -1;
	}
	return 0;
}

static bool lower_policy(struct dw_loader *l, struct cedar_policy *p)
{
	static const char *const slots[] = { "?principal", "?resource" };

	struct provider_walk w = { .l = l };

	for (uint32_t i = 0; i < p->n_cond; i++) {
		if (p->cond[i].guardrails && l->providers == NULL) {
			refuse(l, "provider", &p->cond[i].span, NULL,
			    "information providers are not enabled in this build");
			return false;
		}
	}
	if (!walk_conds(p, see_provider, &w))
		return false;
	for (uint32_t i = 0; i < p->n_cond && w.count != 0; i++) {
		if (dw_provider_number(l->s, &l->calls, &p->cond[i].e) < 0) {
			refuse(l, "provider", &p->span, NULL, "the policy source is too large");
			return false;
		}
	}
	for (int i = 0; i < 2; i++) {
		if (p->has_slot[i]) {
			const char *s = arena_printf(l->a,
			    "the template slot `%s` is never filled; a rule must name its entities",
			    slots[i]);

			refuse(
			    l, "parse", &p->span, NULL, s != NULL ? s : "unfilled template slot");
			return false;
		}
	}
	return true;
}

/* ---- pins ---- */

static bool pin_cond(struct dw_loader *l, struct dw_cond *c);

static bool pin_term(struct dw_loader *l, struct dw_term *t)
{
	if (t->kind == DW_TERM_AGG)
		return pin_cond(l, t->agg.body);
	return true;
}

static bool pin_pred(struct dw_loader *l, struct dw_cond *c)
{
	const struct dw_kind *k = dw_eschema_kind(l->s->events, c->pred.kind);
	struct dw_arg *v;

	/* Universal pins select the slice of history instead (5.6). */
	if (k == NULL || k->npins == 0 || l->s->events->nuniversal != 0)
		return true;
	v = arena_grow(
	    l->a, c->pred.args, c->pred.nargs, (size_t)c->pred.nargs + k->npins, sizeof(*v));
	if (v == NULL)
		return false;
	for (uint32_t i = 0; i < k->npins; i++) {
		struct dw_term *t = ARENA_NEW(l->a, struct dw_term);
		sv *path = ARENA_NEW(l->a, sv);

		if (t == NULL || path == NULL)
			return false;
		*t = *k->pins[i].term;
		*path = k->pins[i].field;
		v[c->pred.nargs++] = (struct dw_arg){ .path = path,
			.npath = 1,
			.dotted = *path,
			.term = t,
			.is_pin = true,
			.at = c->at };
	}
	c->pred.args = v;
	return true;
}

static bool pin_cond(struct dw_loader *l, struct dw_cond *c)
{
	struct dw_cond *below;
	struct dw_term *t;
	bool ok = c->kind != DW_C_PRED || pin_pred(l, c);

	for (uint32_t i = 0; c->kind == DW_C_CMP && ok && (t = dw_cond_term(c, i)) != NULL; i++)
		ok = pin_term(l, t);
	for (uint32_t i = 0; ok && (below = dw_cond_below(c, i)) != NULL; i++)
		ok = pin_cond(l, below);
	return ok;
}

/* ---- windows ---- */

static int64_t plus(int64_t a, int64_t b)
{
	int64_t r;

	return __builtin_add_overflow(a, b, &r) ? INT64_MAX : r;
}

static int64_t set_ticks(struct dw_loader *l, struct dw_window *w)
{
	int64_t s = dw_window_seconds(w);

	if (s == INT64_MAX || __builtin_mul_overflow(s, l->s->tick, &w->ticks))
		w->ticks = INT64_MAX;
	return w->ticks;
}

/* Fill in the ticks of all windows; the sum of nested ones. */
static int64_t reach(struct dw_loader *l, struct dw_cond *c)
{
	struct dw_window *w = c->kind == DW_C_SINCE                                  ? c->since.w
	                      : c->kind == DW_C_FORMERLY || c->kind == DW_C_PREVIOUS ? c->once.w
	                                                                             : NULL;
	struct dw_cond *below;
	struct dw_term *t;
	int64_t r = 0, x;

	for (uint32_t i = 0; (below = dw_cond_below(c, i)) != NULL; i++) {
		x = reach(l, below);
		r = x > r ? x : r;
	}
	for (uint32_t i = 0; c->kind == DW_C_CMP && (t = dw_cond_term(c, i)) != NULL; i++) {
		x = t->kind == DW_TERM_AGG ? reach(l, t->agg.body) : 0;
		r = x > r ? x : r;
	}
	return w != NULL ? plus(set_ticks(l, w), r) : r;
}

/* ---- stages ---- */

static void put_leaf_key(void *ctx, struct buf *b, const struct cedar_leaf *l)
{
	const struct dw_set *s = ctx;

	if (l->is_provider) {
		buf_put_c(b, "provider{");
		buf_put_sv(b, l->text);
		buf_put_byte(b, '}');
		return;
	}
	buf_put_c(b, "temporal{");
	buf_put_sv(b, s->leaves[l->ordinal].pub.key);
	buf_put_byte(b, '}');
}

static bool fill_rule(struct dw_loader *l, size_t i)
{
	struct dw_rule *r = &l->s->rules[i];
	struct cedar_policy *p = &l->s->src.policy[i];
	struct dw_annotation *v = ARENA_VEC(l->a, struct dw_annotation, p->n_ann);
	struct cedar_print how = { l->s, put_leaf_key };
	AUTO_BUF b = buf_with(DW_SOURCE_MAX);
	/* Named by its place among all policies, also of those that did not parse. */
	const char *id = arena_printf(l->a, "policy_%u", p->ordinal);

	if (v == NULL || id == NULL)
		return false;
	r->cedar_id = sv_c(id);
	p->id = cedar_intern(l->s->syms, r->cedar_id);
	if (p->id == NULL)
		return false;
	for (uint32_t k = 0; k < p->n_ann; k++) {
		v[k] = (struct dw_annotation){ cedar_sv(p->ann[k].key), cedar_sv(p->ann[k].value) };
		if (sv_eq(v[k].key, SV("id")))
			r->id = v[k].value;
		if (sv_eq(v[k].key, SV("description")))
			r->description = v[k].value;
	}
	r->annotations = v;
	r->nannotations = p->n_ann;
	r->forbid = p->effect == CEDAR_FORBID;
	r->statement = sv_sub(l->in->policy.text, p->span.off, p->span.len);
	r->statement = arena_dup(l->a, r->statement);
	r->start = p->span.off;
	r->line = p->span.line;
	r->column = p->span.col;
	cedar_put_policy(&b, p, false, &how);
	r->fingerprint = arena_dup(l->a, buf_sv(&b));
	return buf_ok(&b) && r->fingerprint.p != NULL && r->statement.p != NULL;
}

static bool finish_leaf(struct dw_loader *l, struct dw_macros *m, struct dw_leaf_impl *f)
{
	AUTO_BUF b = buf_with(DW_SOURCE_MAX);
	size_t before = l->ds->errors;

	f->cond = dw_macros_temporal(m, f->parsed.cond);
	if (f->cond == NULL)
		return false;
	if (!dw_cond_closed(f->cond)) {
		refuse(l, "temporal", &f->cond->at, NULL,
		    "cannot be compiled: the condition still contains a macro call, a condition "
		    "sigil, or a field-injection "
		    "refinement");
		return false;
	}
	if (!pin_cond(l, f->cond) || !dw_cond_resolve(l->a, f->cond, &f->names)) {
		refuse(l, "temporal", &f->cond->at, NULL, "the policy source is too large");
		return false;
	}
	if (!dw_safety(l->a, f->cond, l->ds))
		return false;
	f->pub.reach = reach(l, f->cond);
	dw_cond_key(&b, f->cond);
	f->pub.key = arena_dup(l->a, buf_sv(&b));
	if (!buf_ok(&b) || f->pub.key.p == NULL)
		refuse(l, "temporal", &f->cond->at, NULL, "the policy source is too large");
	return l->ds->errors == before;
}

/* One rule: macros out, leaves numbered, finished and checked. */
static bool lower_rule(struct dw_loader *l, struct dw_macros *m, struct leaf_walk *w, size_t i)
{
	struct dw_set *s = l->s;
	struct cedar_policy *p = &s->src.policy[i];
	bool ok = true;

	m->nodes = 0;
	for (uint32_t k = 0; k < p->n_cond; k++)
		ok = dw_macros_cedar(m, &p->cond[k].e) && ok;
	if (!ok || !lower_policy(l, p))
		return false;
	w->rule = &s->rules[i];
	if (!walk_conds(p, see_leaf, w))
		return false;
	for (size_t k = w->rule->leaf0; k < s->nleaves; k++)
		ok = finish_leaf(l, m, &s->leaves[k]) && ok;
	return ok;
}

static bool lower(struct dw_loader *l, struct dw_macros *m)
{
	struct dw_set *s = l->s;
	struct leaf_walk w = { .l = l };
	bool ok = true;

	for (size_t i = 0; i < s->src.n_policy; i++) {
		l->rule = (int32_t)i;
		s->rules[i].leaf0 = (uint32_t)s->nleaves;
		if (l->faulty[i] || !lower_rule(l, m, &w, i)) {
			l->faulty[i] = true;
			ok = false;
		} else if (!fill_rule(l, i)) {
			refuse(l, "parse", &s->src.policy[i].span, NULL,
			    "the policy source is too large");
			return false;
		}
	}
	for (size_t i = 0; i < s->nleaves; i++) {
		if (s->leaves[i].pub.reach > s->reach)
			s->reach = s->leaves[i].pub.reach;
	}
	return ok;
}

static bool validate(struct dw_loader *l)
{
	struct dw_set *s = l->s;
	struct cedar_link *link;
	size_t n = 0;

	if (s->schema == NULL || l->in->no_validate)
		return true;
	link = ARENA_VEC(l->a, struct cedar_link, s->nrules);
	if (link == NULL) {
		refuse(l, "cedar", NULL, NULL, "the policy source is too large");
		return false;
	}
	for (size_t i = 0; i < s->nrules; i++)
		if (!l->faulty[i])
			link[n++].policy = &s->src.policy[i];
	(void)cedar_validate(s->schema, link, n, l->ds);
	for (size_t i = 0; i < s->nrules; i++)
		if (!l->faulty[i])
			dw_typecheck(s, i, l->ds);
	return l->ds->errors == 0;
}

static bool plan(struct dw_loader *l)
{
	for (size_t i = 0; i < l->s->nleaves; i++) {
		if (!dw_plan_leaf(l->a, &l->s->rels, &l->s->leaves[i])) {
			refuse(l, "temporal", &l->s->leaves[i].cond->at, NULL,
			    "the policy source is too large");
			return false;
		}
	}
	return true;
}

static bool compile(struct dw_loader *l)
{
	struct dw_set *s = l->s;
	static const struct cedar_type boolean = { .kind = CEDAR_TY_BOOL };
	struct cedar_set_opts o = { .leaves_cannot_fail = true, .gate_leaves = true };
	struct cedar_link *link = ARENA_VEC(l->a, struct cedar_link, s->nrules);

	if (link == NULL) {
		refuse(l, "cedar", NULL, NULL, "the policy source is too large");
		return false;
	}
	for (size_t i = 0; i < s->nrules; i++)
		link[i].policy = &s->src.policy[i];
	/* Only leaves that name what they wait for are worth waiting for; the others are asked when
	 * a rule comes to them. Cedar takes a leaf without a type as one that may gate. */
	for (size_t i = 0; i < s->nleaves; i++)
		s->leaves[i].cedar->type = s->leaves[i].plan.trigger != NULL ? NULL : &boolean;
	s->policies = cedar_policies_new(s->syms, link, s->nrules, &o, l->ds);
	if (s->policies == NULL)
		return false;
	for (size_t i = 0; i < s->nleaves; i++) {
		s->leaves[i].gate = cedar_policies_is_gate(s->policies, (uint32_t)i);
		s->ngates += s->leaves[i].gate;
	}
	return true;
}

static bool parse_all(struct dw_loader *l)
{
	struct dw_set *s = l->s;
	struct cedar_parse_opts o = { .dogwood = true };
	struct leaf_walk w = { .l = l, .parse = true };

	if (cedar_parse(s->syms, l->a, s->src.text, &o, &s->src, l->ds) < 0 &&
	    s->src.policy == NULL)
		s->src.n_policy = 0;
	l->faulty = ARENA_VEC(l->a, bool, s->src.n_policy);
	s->rules = ARENA_VEC(l->a, struct dw_rule, s->src.n_policy);
	if (l->faulty == NULL || s->rules == NULL) {
		refuse(l, "parse", NULL, NULL, "the policy source is too large");
		s->src.n_policy = 0;
		return false;
	}
	s->nrules = s->src.n_policy;
	for (size_t i = 0; i < s->src.n_policy; i++) {
		size_t errors = l->ds->errors;

		l->rule = (int32_t)i;
		(void)walk_conds(&s->src.policy[i], see_leaf, &w);
		l->faulty[i] = s->src.policy[i].faulty || l->ds->errors != errors;
	}
	cedar_diags_sort(l->ds);
	return l->ds->errors == 0;
}

static bool load_schemas(struct dw_loader *l, struct dw_diags *d)
{
	struct dw_set *s = l->s;
	const struct dw_load *in = l->in;
	AUTO_ARENA tmp = { .limit = DW_SOURCE_MAX };
	struct cedar_diags ads = cedar_diags_in(&tmp), eds = cedar_diags_in(&tmp);
	struct dw_source es = in->event_schema;
	bool ok = true;

	if (es.text.p == NULL)
		es = (struct dw_source){ SV("(default event schema)"), sv_c(dw_default_events) };
	if (in->action_schema.text.p != NULL) {
		sv text = arena_dup(l->a, in->action_schema.text);

		if (sv_eq(sv_trim(text), SV("")))
			text = SV("");
		s->schema = cedar_schema_load(s->syms, l->a, text, false, &ads);
		ok = s->schema != NULL;
		dw_diags_take(d, &ads, &in->action_schema, NULL);
	}
	if (in->providers.text.p != NULL) {
		struct cedar_diags pds = cedar_diags_in(&tmp);

		l->providers =
		    dw_providers_parse(s->syms, l->a, arena_dup(l->a, in->providers.text), &pds);
		ok = l->providers != NULL && ok;
		dw_diags_take(d, &pds, &in->providers, NULL);
	}
	if (ok) {
		sv text = arena_dup(l->a, es.text);

		s->events = dw_eschema_load(s->syms, l->a, text, s->schema, &eds);
		ok = s->events != NULL;
		dw_diags_take(d, &eds, &es, NULL);
	}
	return ok;
}

static bool load_macros(struct dw_loader *l, struct dw_macros *m, struct dw_diags *d)
{
	AUTO_ARENA tmp = { .limit = DW_SOURCE_MAX };
	struct cedar_diags mds = cedar_diags_in(&tmp);
	struct cedar_parse_opts o = { .dogwood = true };
	struct dw_source lib = l->in->macros;
	struct cedar_source src;
	bool ok = dw_macros_add(m, &l->s->src, false);

	if (lib.text.p == NULL)
		lib = (struct dw_source){ SV("(default macros)"), sv_c(dw_default_macros) };
	lib.text = arena_dup(l->a, lib.text);
	if (cedar_parse(l->s->syms, l->a, lib.text, &o, &src, &mds) < 0) {
		ok = false;
	} else {
		m->ds = &mds;
		ok = dw_macros_add(m, &src, true) && ok;
		m->ds = l->ds;
	}
	dw_diags_take(d, &mds, &lib, NULL);
	return ok;
}

/* Each stage passes over what has an error already, so that a source shows all of its errors and
 * none that only follows from another. */
static bool load(struct dw_loader *l, struct dw_diags *d)
{
	AUTO_DW_MACROS m = { .t = l->s->syms, .a = l->a, .ds = l->ds };
	bool schemas = load_schemas(l, d), ok = parse_all(l) && schemas;

	if (!schemas)
		return false;
	ok = load_macros(l, &m, d) && ok;
	ok = lower(l, &m) && ok;
	ok = validate(l) && ok;
	return ok && plan(l) && compile(l);
}

/* Characters that mislead readers, in what people write: warnings, apart from the others so that
 * they never crowd an error out. */
static void lint(const struct dw_load *in, struct dw_diags *d)
{
	const struct dw_source *const src[] = { &in->action_schema, &in->macros, &in->policy };

	for (size_t i = 0; i < sizeof(src) / sizeof(src[0]); i++) {
		AUTO_ARENA tmp = { .limit = DW_SOURCE_MAX };
		struct cedar_diags ds = cedar_diags_in(&tmp);

		if (src[i]->text.n <= DW_SOURCE_MAX)
			cedar_lint(src[i]->text, &ds);
		dw_diags_take(d, &ds, src[i], NULL);
	}
}

struct dw_set *dw_load(const struct dw_load *in, struct dw_diags *d, struct box_err *err)
{
	AUTO_ARENA tmp = { .limit = DW_SOURCE_MAX };
	struct cedar_diags ds = cedar_diags_in(&tmp);
	struct dw_set *s = calloc(1, sizeof(*s));
	struct dw_loader l = { .in = in, .ds = &ds, .rule = -1 };
	bool ok;

	if (s == NULL) {
		box_nomem(err, "a policy set");
		return NULL;
	}
	s->a.limit = SET_ARENA_LIMIT;
	s->tick = in->tick > 0 ? in->tick : DW_TICK_SECOND;
	s->syms = cedar_syms_new(SYMS_LIMIT);
	s->src.text = arena_dup(&s->a, in->policy.text);
	s->source_name = arena_dup(&s->a, in->policy.name);
	if (s->syms == NULL || s->src.text.p == NULL) {
		dw_set_free(s);
		box_nomem(err, "a policy set");
		return NULL;
	}
	l.s = s;
	l.a = &s->a;
	ok = in->policy.text.n <= DW_SOURCE_MAX;
	if (!ok)
		refuse(&l, "parse", NULL, NULL, "the policy source is larger than 16 MiB");
	ok = ok && load(&l, d);
	smap_fini(&l.calls);
	dw_diags_take(d, &ds, &in->policy, &s->src);
	lint(in, d);
	if (ok && d->errors == 0)
		return s;
	dw_set_free(s);
	for (size_t i = 0; i < d->n; i++) {
		if (d->v[i].severity != DW_ERROR)
			continue;
		if (d->v[i].line != 0)
			box_fail(err, BOX_EPARSE, 0, SV_FMT ":%u:%u: " SV_FMT, SV_ARG(d->v[i].file),
			    d->v[i].line, d->v[i].column, SV_ARG(d->v[i].message));
		else
			box_fail(err, BOX_EPARSE, 0, SV_FMT ": " SV_FMT, SV_ARG(d->v[i].file),
			    SV_ARG(d->v[i].message));
		return NULL;
	}
	box_nomem(err, "a policy set");
	return NULL;
}
