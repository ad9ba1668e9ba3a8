/* Policy sets and decisions. See eval.h; spec 3.4. */
#include "cedar/prog.h"
#include "cedar/sort.h"

#include <stdlib.h>

#include "base/ban.h"

/* ---- scratch ------------------------------------------------------------------------------- */

static struct cedar_eval_priv *priv(struct cedar_eval *ev)
{
	if (ev->priv == NULL) {
		ev->priv = calloc(1, sizeof(*ev->priv));
		if (ev->priv == NULL)
			return NULL;
		ev->priv->request.limit = ev->limit != 0 ? ev->limit : CEDAR_EVAL_LIMIT;
		ev->priv->scratch.limit = ev->priv->request.limit;
	}
	return ev->priv;
}

void cedar_eval_fini(struct cedar_eval *ev)
{
	struct cedar_eval_priv *pv = ev->priv;

	if (pv == NULL)
		return;
	arena_free(&pv->request);
	arena_free(&pv->scratch);
	free(pv->stack);
	free(pv->stamp);
	free(pv->cand);
	free(pv->permit);
	free(pv->forbid);
	free(pv->error);
	free(pv);
	ev->priv = NULL;
}

struct arena *cedar_eval_arena(struct cedar_eval *ev)
{
	struct cedar_eval_priv *pv = priv(ev);

	return pv != NULL ? &pv->request : NULL;
}

/* Empty an arena. When it had grown to several blocks it gets one of the whole size, so that the
 * next use allocates nothing. */
static void recycle(struct arena *a)
{
	size_t had = a->total;

	arena_reset(a);
	if (a->total == had)
		return;
	arena_free(a);
	(void)arena_alloc(a, had, 1); /* without room the arena grows again, as before */
	arena_reset(a);
}

void cedar_eval_reset(struct cedar_eval *ev)
{
	if (ev->priv != NULL)
		recycle(&ev->priv->request);
}

static bool stack_room(struct cedar_eval_priv *pv, size_t n)
{
	struct cedar_value *v;

	if (n + 2 <= pv->n_stack)
		return true;
	v = reallocarray(pv->stack, n + 2, sizeof(*v));
	if (v == NULL)
		return false;
	pv->stack = v;
	pv->n_stack = n + 2;
	return true;
}

static bool vector_room(struct cedar_eval_priv *pv, size_t n)
{
	uint32_t *v;

	if (n > pv->n_stamp) {
		v = reallocarray(pv->stamp, n, sizeof(*v));
		if (v == NULL)
			return false;
		memset(v + pv->n_stamp, 0, (n - pv->n_stamp) * sizeof(*v));
		pv->stamp = v;
		pv->n_stamp = n;
	}
	if (n > pv->cap) {
		uint32_t **all[] = { &pv->cand, &pv->permit, &pv->forbid };
		size_t i;

		for (i = 0; i < 3; i++) {
			v = reallocarray(*all[i], n, sizeof(*v));
			if (v == NULL)
				return false;
			*all[i] = v;
		}
		pv->cap = n;
	}
	return true;
}

/* ---- sets ---------------------------------------------------------------------------------- */

void cedar_policies_free(struct cedar_policies *ps)
{
	if (ps == NULL)
		return;
	cedar_index_free(ps->index);
	cedar_prog_fini(&ps->g);
	free(ps->pol);
	arena_free(&ps->a);
	free(ps);
}

size_t cedar_policies_count(const struct cedar_policies *ps)
{
	return ps->n;
}

const struct cedar_link *cedar_policies_get(const struct cedar_policies *ps, size_t i)
{
	return i < ps->n ? &ps->pol[i].link : NULL;
}

bool cedar_policies_is_gate(const struct cedar_policies *ps, uint32_t ordinal)
{
	return cedar_index_is_gate(ps->index, ordinal);
}

/* Slots and values must correspond. */
static bool check_slots(const struct cedar_link *l, struct cedar_diags *ds)
{
	static const char *const name[2] = { "principal", "resource" };
	const struct cedar_policy *p = l->policy;
	bool good = true;
	size_t i;

	for (i = 0; i < 2; i++) {
		if (p->has_slot[i] && l->slot[i].type == NULL) {
			cedar_diag_add(ds, CEDAR_ERROR, "parse", &p->span,
			    "a policy with slots is a template: link it, or name the entity",
			    "template slot `?%s` was not linked", name[i]);
			good = false;
		} else if (!p->has_slot[i] && l->slot[i].type != NULL) {
			cedar_diag_add(ds, CEDAR_ERROR, "parse", &p->span, NULL,
			    "a value is given for `?%s`, which the template does not have",
			    name[i]);
			good = false;
		}
	}
	return good;
}

static void fill_scope(struct cedar_cpol *c)
{
	const struct cedar_policy *p = c->link.policy;
	size_t i;

	c->scope[0] = p->principal;
	c->scope[1] = p->action;
	c->scope[2] = p->resource;
	for (i = 0; i < 3; i += 2)
		if (c->scope[i].slot) {
			c->scope[i].uid = c->link.slot[i / 2];
			c->scope[i].slot = false;
		}
}

/* Ids are unique: a table of positions by hash. */
static bool check_ids(struct cedar_policies *ps, struct cedar_diags *ds)
{
	size_t n_slot = 16, i, j;
	uint32_t *slot;
	bool good = true;

	while (n_slot < ps->n * 2)
		n_slot *= 2;
	slot = calloc(n_slot, sizeof(*slot));
	if (slot == NULL) {
		cedar_diag_add(ds, CEDAR_ERROR, "limit", NULL, NULL, "out of memory");
		return false;
	}
	for (i = 0; i < ps->n; i++) {
		cedar_sym id = ps->pol[i].link.id;

		for (j = (size_t)id->hash & (n_slot - 1); slot[j] != 0; j = (j + 1) & (n_slot - 1))
			if (cedar_str_eq(ps->pol[slot[j] - 1].link.id, id)) {
				cedar_diag_add(ds, CEDAR_ERROR, "parse",
				    &ps->pol[i].link.policy->span, NULL,
				    "duplicate template or policy id `" SV_FMT "`",
				    SV_ARG(cedar_sv(id)));
				good = false;
				break;
			}
		if (slot[j] == 0)
			slot[j] = (uint32_t)i + 1;
	}
	free(slot);
	return good;
}

struct cedar_policies *cedar_policies_new(struct cedar_syms *t, const struct cedar_link *link,
    size_t n, const struct cedar_set_opts *o, struct cedar_diags *ds)
{
	static const struct cedar_set_opts plain = { 0 };
	struct cedar_policies *ps = calloc(1, sizeof(*ps));
	bool good = true;
	size_t i;

	(void)t; /* constants are in the trees already; kept for hosts that share one table */
	if (ps != NULL && n <= CEDAR_MAX_POLICIES)
		ps->pol = calloc(n + 1, sizeof(*ps->pol));
	if (ps == NULL || ps->pol == NULL) {
		cedar_diag_add(
		    ds, CEDAR_ERROR, "limit", NULL, NULL, "out of memory or too many policies");
		cedar_policies_free(ps);
		return NULL;
	}
	ps->n = n;
	ps->g.a = &ps->a;
	for (i = 0; i < n; i++) {
		struct cedar_cpol *c = &ps->pol[i];

		c->link = link[i];
		if (c->link.id == NULL)
			c->link.id = link[i].policy->id;
		c->always = link[i].policy->n_cond == 0;
		if (!check_slots(&link[i], ds)) {
			good = false;
			continue;
		}
		fill_scope(c);
		if (cedar_compile_conds(&ps->g, link[i].policy, c->link.slot, ds, &c->start) < 0)
			good = false;
	}
	if (!check_ids(ps, ds))
		good = false;
	if (good && cedar_index_build(ps, o != NULL ? o : &plain) < 0) {
		cedar_diag_add(ds, CEDAR_ERROR, "limit", NULL, NULL, "out of memory");
		good = false;
	}
	if (!good) {
		cedar_policies_free(ps);
		return NULL;
	}
	return ps;
}

struct cedar_policies *cedar_policies_of(struct cedar_syms *t, const struct cedar_source *src,
    const struct cedar_set_opts *o, struct cedar_diags *ds)
{
	struct cedar_link *link = calloc(src->n_policy + 1, sizeof(*link));
	struct cedar_policies *ps;
	size_t i, n = 0;

	if (link == NULL) {
		cedar_diag_add(ds, CEDAR_ERROR, "limit", NULL, NULL, "out of memory");
		return NULL;
	}
	for (i = 0; i < src->n_policy; i++)
		if (!cedar_policy_is_template(&src->policy[i]))
			link[n++].policy = &src->policy[i];
	ps = cedar_policies_new(t, link, n, o, ds);
	free(link);
	return ps;
}

/* ---- decisions ----------------------------------------------------------------------------- */

static bool scope_holds(
    const struct cedar_scope *s, struct cedar_uid u, const struct cedar_entities *es)
{
	uint32_t i;

	switch (s->op) {
	case CEDAR_S_ANY:
		return true;
	case CEDAR_S_EQ:
		return cedar_uid_eq(s->uid, u);
	case CEDAR_S_IN:
		return cedar_entities_in_hierarchy(es, u, s->uid);
	case CEDAR_S_IS:
		return cedar_str_eq(s->type, u.type);
	case CEDAR_S_IS_IN:
		return cedar_str_eq(s->type, u.type) && cedar_entities_in_hierarchy(es, u, s->uid);
	case CEDAR_S_IN_SET:
		for (i = 0; i < s->n_set; i++)
			if (cedar_entities_in_hierarchy(es, u, s->set[i]))
				return true;
		return false;
	}
	return false;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Candidates are found in runs that are in order, and mostly in one. */
static void sort_policies(uint32_t *v, size_t n)
{
	size_t i;

	for (i = 1; i < n; i++)
		if (v[i - 1] > v[i]) {
			cedar_sort(v, n, sizeof(*v), by_number);
			return;
		}
}

static int find_candidates(const struct cedar_policies *ps, struct cedar_eval_priv *pv,
    const struct cedar_request *rq, struct box_err *err)
{
	if (!vector_room(pv, ps->n + 1) || !stack_room(pv, ps->g.max_stack))
		return box_nomem(err, "a decision");
	recycle(&pv->scratch);
	pv->n_cand = 0;
	pv->n_error = 0;
	if (++pv->round == 0) {
		memset(pv->stamp, 0, pv->n_stamp * sizeof(*pv->stamp));
		pv->round = 1;
	}
	cedar_index_find(ps, rq, pv);
	sort_policies(pv->cand, pv->n_cand);
	return 0;
}

static int add_error(struct cedar_eval_priv *pv, uint32_t policy, const char *msg)
{
	const char *text = arena_printf(&pv->scratch, "%s", msg);

	if (pv->n_error == pv->cap_error) {
		size_t cap = pv->cap_error != 0 ? pv->cap_error * 2 : 16;
		struct cedar_policy_error *v = reallocarray(pv->error, cap, sizeof(*v));

		if (v == NULL)
			return -1;
		pv->error = v;
		pv->cap_error = cap;
	}
	if (text == NULL)
		return -1;
	pv->error[pv->n_error++] = (struct cedar_policy_error){ policy, sv_c(text) };
	return 0;
}

int cedar_authorize(const struct cedar_policies *ps, struct cedar_eval *ev,
    const struct cedar_request *rq, struct cedar_answer *out, struct box_err *err)
{
	struct cedar_eval_priv *pv = priv(ev);
	size_t n_permit = 0, n_forbid = 0, i;
	struct cedar_vm m;

	if (pv == NULL)
		return box_nomem(err, "a decision");
	if (find_candidates(ps, pv, rq, err) < 0)
		return -1;
	m.g = &ps->g;
	m.rq = rq;
	m.a = &pv->scratch;
	m.stack = pv->stack;
	m.fatal = false;
	for (i = 0; i < pv->n_cand; i++) {
		uint32_t k = pv->cand[i];
		const struct cedar_cpol *c = &ps->pol[k];
		struct cedar_value v;

		if (!scope_holds(&c->scope[0], rq->principal, rq->entities) ||
		    !scope_holds(&c->scope[1], rq->action, rq->entities) ||
		    !scope_holds(&c->scope[2], rq->resource, rq->entities))
			continue;
		if (!c->always) {
			if (cedar_vm_run(&m, c->start, &v) < 0) {
				if (m.fatal || add_error(pv, k, m.err.msg) < 0)
					return box_fail(err, BOX_ELIMIT, 0,
					    "the decision needs more memory than is allowed");
				continue;
			}
			if (!v.b)
				continue;
		}
		if (c->link.policy->effect == CEDAR_FORBID)
			pv->forbid[n_forbid++] = k;
		else
			pv->permit[n_permit++] = k;
	}
	*out = (struct cedar_answer){
		.allow = n_forbid == 0 && n_permit != 0,
		.reason = n_forbid != 0 ? pv->forbid : pv->permit,
		.n_reason = n_forbid != 0 ? n_forbid : n_permit,
		.error = pv->error,
		.n_error = pv->n_error,
		.met = pv->n_cand,
	};
	return 0;
}

int cedar_candidates(const struct cedar_policies *ps, struct cedar_eval *ev,
    const struct cedar_request *rq, const uint32_t **policy, size_t *n, struct box_err *err)
{
	struct cedar_eval_priv *pv = priv(ev);

	if (pv == NULL)
		return box_nomem(err, "a decision");
	if (find_candidates(ps, pv, rq, err) < 0)
		return -1;
	*policy = pv->cand;
	*n = pv->n_cand;
	return 0;
}

int cedar_eval_expr(struct cedar_syms *t, struct cedar_eval *ev, const struct cedar_expr *e,
    const struct cedar_request *rq, const struct cedar_uid *slot, struct cedar_value *out,
    struct box_err *err)
{
	struct cedar_eval_priv *pv = priv(ev);
	struct cedar_prog g = { 0 };
	struct cedar_vm m = { 0 };
	struct cedar_diags ds;
	uint32_t start;
	int r = -1;

	(void)t;
	if (pv == NULL)
		return box_nomem(err, "an evaluation");
	recycle(&pv->scratch);
	ds = cedar_diags_in(&pv->scratch);
	g.a = &pv->scratch;
	if (cedar_compile_expr(&g, e, slot, &ds, &start) < 0) {
		box_fail(err, BOX_EPARSE, 0, SV_FMT,
		    SV_ARG(ds.n != 0 ? ds.d[0].message : SV("out of memory")));
	} else if (!stack_room(pv, g.max_stack)) {
		box_nomem(err, "an evaluation");
	} else {
		m.g = &g;
		m.rq = rq;
		m.a = &pv->scratch;
		m.stack = pv->stack;
		r = cedar_vm_run(&m, start, out);
		if (r < 0)
			box_fail(err, m.err.code, 0, "%s", m.err.msg);
	}
	cedar_prog_fini(&g);
	return r;
}
