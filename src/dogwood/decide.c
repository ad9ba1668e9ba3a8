/* See decide.h. */
#include "dogwood/decide.h"

#include <stdlib.h>

#include "dogwood/grow.h"
#include "dogwood/provider.h"
#include "dogwood/set_impl.h"

#include "base/ban.h"

#define VALUE_DEPTH 128

struct dw_scratch {
	struct cedar_eval ev;
	struct box_err err; /* why the present decision is a fault */
	bool fault;
	dw_provider_fn provider;
	void *provider_arg;
	struct dw_rule_error *errors;
	size_t cap;
};

struct dw_scratch *dw_scratch_new(struct box_err *err)
{
	struct dw_scratch *s = calloc(1, sizeof(*s));

	if (s == NULL)
		box_nomem(err, "the memory of a decision");
	return s;
}

void dw_scratch_free(struct dw_scratch *s)
{
	if (s == NULL)
		return;
	cedar_eval_fini(&s->ev);
	free(s->errors);
	free(s);
}

void dw_scratch_provide(struct dw_scratch *s, dw_provider_fn fn, void *arg)
{
	s->provider = fn;
	s->provider_arg = arg;
}

struct conv {
	const struct dw_set *set;
	struct arena *a;
	struct box_err *err;
};

static int no_room(struct conv *c)
{
	return box_nomem(c->err, "a request");
}

static int str(struct conv *c, sv s, cedar_sym *out)
{
	*out = cedar_str_new(c->set->syms, c->a, s);
	return *out != NULL ? 0 : no_room(c);
}

static int uid(struct conv *c, const struct dw_uid *u, struct cedar_uid *out)
{
	return str(c, u->type, &out->type) < 0 || str(c, u->id, &out->id) < 0 ? -1 : 0;
}

static int value(struct conv *c, const struct dw_val *v, unsigned depth, struct cedar_value *out);

static int record(struct conv *c, const struct dw_val *v, unsigned depth, struct cedar_value *out)
{
	size_t n = v->tag == DW_OBJECT ? v->u.obj.n : 0;
	struct cedar_field *f = ARENA_VEC(c->a, struct cedar_field, n);
	cedar_sym dup = NULL;

	if (f == NULL)
		return no_room(c);
	for (size_t i = 0; i < n; i++) {
		if (str(c, v->u.obj.m[i].name, &f[i].key) < 0 ||
		    value(c, &v->u.obj.m[i].val, depth + 1, &f[i].v) < 0)
			return -1;
	}
	if (cedar_record_make(c->a, f, n, out, &dup) == 0)
		return 0;
	if (dup == NULL)
		return no_room(c);
	return box_fail(c->err, BOX_EPARSE, 0, "a record has the member `%s` twice", dup->p);
}

static int value(struct conv *c, const struct dw_val *v, unsigned depth, struct cedar_value *out)
{
	struct cedar_value *items;

	if (depth > VALUE_DEPTH)
		return box_fail(
		    c->err, BOX_ELIMIT, 0, "a value is nested deeper than %d", VALUE_DEPTH);
	switch (v->tag) {
	case DW_NULL:
		/* dogwood-language.md 7.2: a null becomes the empty string. */
		out->kind = CEDAR_STRING;
		return str(c, SV(""), &out->s);
	case DW_BOOL:
		*out = cedar_bool(v->u.b);
		return 0;
	case DW_INT:
		*out = cedar_long(v->u.i);
		return 0;
	case DW_DECIMAL:
		return cedar_decimal_parse(v->u.s, out, c->err);
	case DW_STRING:
		out->kind = CEDAR_STRING;
		return str(c, v->u.s, &out->s);
	case DW_ENTITY:
		out->kind = CEDAR_ENTITY;
		return uid(c, &v->u.ent, &out->uid);
	case DW_ARRAY:
		items = ARENA_VEC(c->a, struct cedar_value, v->u.arr.n);
		if (items == NULL)
			return no_room(c);
		for (size_t i = 0; i < v->u.arr.n; i++) {
			if (value(c, &v->u.arr.v[i], depth + 1, &items[i]) < 0)
				return -1;
		}
		return cedar_set_make(c->a, items, v->u.arr.n, out) < 0 ? no_room(c) : 0;
	case DW_OBJECT:
		return record(c, v, depth, out);
	}
	return -1;
}

static int add_entity(struct conv *c, struct cedar_entities *store, const struct dw_uid *id,
    const struct dw_entity *x)
{
	struct cedar_entity_data d = { 0 };
	struct cedar_value rec;
	struct cedar_uid *p;

	if (uid(c, id, &d.uid) < 0)
		return -1;
	/* Principal and resource may be among the supplied ones, or be each other. */
	for (size_t i = 0; i < store->n; i++) {
		if (x == NULL && cedar_uid_eq(store->e[i].uid, d.uid))
			return 0;
	}
	if (x != NULL) {
		if (record(c, &x->attrs, 0, &rec) < 0)
			return -1;
		d.attrs = rec.rec;
		p = ARENA_VEC(c->a, struct cedar_uid, x->nparents);
		if (p == NULL)
			return no_room(c);
		for (size_t i = 0; i < x->nparents; i++) {
			if (uid(c, &x->parents[i], &p[i]) < 0)
				return -1;
		}
		d.parents = p;
		d.n_parents = (uint32_t)x->nparents;
	}
	return cedar_entities_add(store, &d, c->err);
}

static int build(struct conv *c, const struct dw_event *e, struct cedar_entities *store,
    struct cedar_request *rq)
{
	struct dw_uid action = { e->ns, e->id };
	struct cedar_value ctx;

	if (dw_uid_is_none(&e->principal) || dw_uid_is_none(&e->resource))
		return box_fail(c->err, BOX_EPARSE, 0, "the event has no %s",
		    dw_uid_is_none(&e->principal) ? "principal" : "resource");
	if (uid(c, &e->principal, &rq->principal) < 0 || uid(c, &e->resource, &rq->resource) < 0 ||
	    uid(c, &action, &rq->action) < 0 || record(c, &e->context, 0, &ctx) < 0)
		return -1;
	rq->context = ctx.rec;
	for (size_t i = 0; i < e->nents; i++) {
		if (add_entity(c, store, &e->ents[i].uid, &e->ents[i]) < 0)
			return -1;
	}
	if (add_entity(c, store, &e->principal, NULL) < 0 ||
	    add_entity(c, store, &e->resource, NULL) < 0 || cedar_entities_close(store, c->err) < 0)
		return -1;
	rq->entities = store;
	return 0;
}

struct answer {
	bool there;
	struct cedar_value v;
};

struct leaf_ctx {
	struct dw_scratch *sc;
	struct dwm *m;
	const struct dw_event *e;
	struct conv *c;
	struct answer *known; /* of providers, by id; NULL until one is asked */
};

static int ask_provider(
    struct leaf_ctx *x, const struct cedar_leaf *leaf, struct cedar_value *out, struct box_err *err)
{
	const struct dw_provider_leaf *l = leaf->host;
	struct dw_scratch *sc = x->sc;
	struct dw_val v;

	if (x->known == NULL)
		x->known = ARENA_VEC(x->c->a, struct answer, x->c->set->nprovided);
	if (x->known == NULL)
		return box_nomem(err, "a decision");
	if (!x->known[l->id].there) {
		x->c->err = err;
		if (dw_provider_ask(l, x->e, sc->provider, sc->provider_arg, x->c->a, &v, err) < 0)
			return -1;
		if (value(x->c, &v, 0, &x->known[l->id].v) < 0)
			return box_wrap(err, "provider " SV_FMT, SV_ARG(l->step[0].sig->name));
		x->known[l->id].there = true;
	}
	*out = x->known[l->id].v;
	return 0;
}

static int ask_leaf(
    void *arg, const struct cedar_leaf *leaf, struct cedar_value *out, struct box_err *err)
{
	struct leaf_ctx *x = arg;
	bool v = false;
	int rc = leaf->is_provider ? ask_provider(x, leaf, out, err)
	                           : dwm_leaf(x->m, leaf->ordinal, x->e, &v, err);

	if (rc < 0) {
		/* Not an error of the rule but of the engine: the whole decision is a fault. */
		if (!x->sc->fault) {
			x->sc->err = *err;
			if (!leaf->is_provider)
				(void)box_wrap(&x->sc->err, "temporal evaluation");
		}
		x->sc->fault = true;
		return -1;
	}
	if (!leaf->is_provider)
		*out = cedar_bool(v);
	return 0;
}

static int fault(struct dw_scratch *sc, struct dw_decision *out)
{
	*out = (struct dw_decision){ .cause = DW_FAULT, .fault = sc->err.msg };
	return 0;
}

static int keep_errors(struct dw_scratch *sc, const struct cedar_answer *an, struct arena *a,
    struct dw_decision *out, struct box_err *err)
{
	if (an->n_error > sc->cap) {
		struct dw_rule_error *v = dw_grow(sc->errors, an->n_error, sizeof(*v));

		if (v == NULL)
			return box_nomem(err, "a decision");
		sc->errors = v;
		sc->cap = an->n_error;
	}
	for (size_t i = 0; i < an->n_error; i++) {
		sv text = arena_dup(a, an->error[i].message);

		if (text.p == NULL)
			return box_nomem(err, "a decision");
		sc->errors[i] = (struct dw_rule_error){ an->error[i].policy, text.p };
	}
	out->errors = sc->errors;
	out->nerrors = an->n_error;
	return 0;
}

int dw_decide(struct dw_scratch *sc, const struct dw_set *set, struct dwm *m,
    const struct dw_event *e, struct dw_decision *out, struct box_err *err)
{
	struct conv c = { .set = set, .err = &sc->err }, answers = { .set = set };
	struct leaf_ctx lx = { sc, m, e, &answers, NULL };
	struct cedar_request rq = { .leaf = ask_leaf, .leaf_ctx = &lx };
	struct cedar_entities store;
	struct cedar_answer an;

	*out = (struct dw_decision){ .cause = DW_FAULT };
	sc->fault = false;
	sc->err = (struct box_err){ 0 };
	cedar_eval_reset(&sc->ev);
	c.a = cedar_eval_arena(&sc->ev);
	if (c.a == NULL)
		return box_nomem(err, "a decision");
	answers.a = c.a;
	if (m == NULL && set->nleaves != 0) {
		box_fail(&sc->err, BOX_EPARSE, 0,
		    "temporal evaluation: the set has temporal conditions but there is no monitor");
		return fault(sc, out);
	}
	store = cedar_entities_in(c.a, set->schema != NULL ? &set->schema->actions : NULL);
	if (build(&c, e, &store, &rq) < 0)
		return fault(sc, out);
	if (m != NULL && dwm_true_leaves(m, e, &rq.true_leaf, &rq.n_true_leaf, &sc->err) < 0) {
		(void)box_wrap(&sc->err, "temporal evaluation");
		return fault(sc, out);
	}
	if (cedar_authorize(set->policies, &sc->ev, &rq, &an, &sc->err) < 0)
		return fault(sc, out);
	if (sc->fault)
		return fault(sc, out);
	if (keep_errors(sc, &an, c.a, out, err) < 0)
		return -1;
	out->allow = an.allow;
	out->rules = an.reason;
	out->nrules = an.n_reason;
	out->cause = an.allow ? DW_PERMITTED : an.n_reason != 0 ? DW_FORBIDDEN : DW_NO_MATCH;
	out->fault = NULL;
	return 0;
}
