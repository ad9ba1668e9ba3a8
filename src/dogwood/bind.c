/* Putting a monitor together: the instances of all relations of all leaves, by birth, and who wants
 * which events. */
#include <stdlib.h>

#include "dogwood/monitor_impl.h"
#include "dogwood/grow.h"

#include "base/ban.h"

#define SCRATCH_LIMIT ((size_t)512 << 20)

void dw_slice_fini(void *record)
{
	struct dw_slice *s = record;

	dw_hist_fini(&s->h);
}

struct dw_core *dw_core_new(enum dwm_clock clock, struct box_err *err)
{
	struct dw_core *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		box_nomem(err, "a monitor");
		return NULL;
	}
	c->refs = 1;
	c->clock = clock;
	c->last_ts = INT64_MIN;
	dw_table_init(&c->slices, sizeof(struct dw_slice));
	return c;
}

void dw_core_drop(struct dw_core *c)
{
	if (c == NULL || --c->refs != 0)
		return;
	dw_table_fini(&c->slices, dw_slice_fini);
	free(c);
}

static void head_fini(void *record)
{
	struct dw_head *h = record;

	free(h->v);
}

static void probes_fini(void *record)
{
	struct dw_probes *p = record;

	free(p->v);
}

void dwm_free(struct dwm *m)
{
	if (m == NULL)
		return;
	for (uint32_t i = 0; i < m->ninsts; i++) {
		dw_state_drop(m->insts[i]->st);
		free(m->insts[i]->view);
		free(m->insts[i]->trigger);
		free(m->insts[i]);
	}
	for (uint32_t i = 0; i < m->nfams; i++)
		dw_fam_free(m->fams[i]);
	for (size_t i = 0; m->leaves != NULL && i < m->set->nleaves; i++)
		free(m->leaves[i].view);
	free(m->insts);
	free(m->fams);
	free(m->probes);
	free(m->any_action.v);
	free(m->seen);
	free(m->true_leaf);
	free(m->due);
	free(m->leaves);
	dw_core_drop(m->core);
	dw_table_fini(&m->heads, head_fini);
	dw_table_fini(&m->index, NULL);
	dw_table_fini(&m->fam_index, NULL);
	dw_table_fini(&m->probe_index, NULL);
	dw_table_fini(&m->by_action, probes_fini);
	arena_free(&m->scratch);
	buf_fini(&m->key);
	buf_fini(&m->row);
	free(m);
}

void dw_head_key(struct buf *b, sv ns, sv id, sv kind)
{
	buf_put_str(b, ns);
	buf_put_str(b, id);
	buf_put_str(b, kind);
}

bool dw_slice_key(const struct dw_set *s, const struct dw_event *e, bool of_request, struct buf *b)
{
	for (uint32_t i = 0; i < s->events->nuniversal; i++) {
		const struct dw_pin *p = &s->events->universal[i];
		const struct dw_val *v = dw_get(&e->logged, p->field);
		struct dw_val r;

		if (of_request) {
			if (!dw_event_term(e, p->term, &r))
				return false;
			v = &r;
		}
		if (v == NULL)
			return false;
		dw_val_key(b, v);
	}
	return true;
}

static struct dw_head *head(struct dwm *m, sv ns, sv id, sv kind)
{
	buf_clear(&m->key);
	dw_head_key(&m->key, ns, id, kind);
	return buf_ok(&m->key) ? dw_table_put(&m->heads, buf_sv(&m->key), 0) : NULL;
}

/* Room for one more in a vector that doubles. */
static void *more(void *v, uint32_t n, uint32_t *cap, size_t size)
{
	uint32_t c;

	if (n < *cap)
		return v;
	c = *cap != 0 ? *cap * 2 : 4;
	v = dw_grow(v, c, size);
	if (v != NULL)
		*cap = c;
	return v;
}

/* The family of a relation, made and hung to its head if need be. */
static struct dw_fam *family(struct dwm *m, const struct dw_rel *r)
{
	struct dw_fam **slot, *f, **v;
	struct dw_head *h;

	buf_clear(&m->key);
	dw_fam_identity(r, &m->key);
	slot = buf_ok(&m->key) ? dw_table_put(&m->fam_index, buf_sv(&m->key), 0) : NULL;
	if (slot == NULL || *slot != NULL)
		return slot != NULL ? *slot : NULL;
	v = more(m->fams, m->nfams, &m->cap_fams, sizeof(struct dw_fam *));
	if (v == NULL)
		return NULL;
	m->fams = v;
	f = dw_fam_new(r);
	if (f == NULL)
		return NULL;
	*slot = m->fams[m->nfams++] = f;
	h = head(m, r->ns, r->id, r->ekind);
	v = h != NULL ? more(h->v, h->n, &h->cap, sizeof(struct dw_fam *)) : NULL;
	if (v == NULL)
		return NULL;
	h->v = v;
	h->v[h->n++] = f;
	return f;
}

static bool subscribe(struct dwm *m, struct dw_inst *x)
{
	x->fam = family(m, x->rel);
	return x->fam != NULL && dw_fam_add(x->fam, x, &m->key);
}

static bool add_probe(struct dw_probes *p, uint32_t number)
{
	uint32_t *v;

	for (uint32_t i = p->n; i-- != 0;) {
		if (p->v[i] == number)
			return true;
	}
	v = more(p->v, p->n, &p->cap, sizeof(*v));
	if (v == NULL)
		return false;
	p->v = v;
	v[p->n++] = number;
	return true;
}

/* Hang a probe to the actions that the rule of a leaf is about. */
static bool by_action(struct dwm *m, const struct dw_leaf_impl *f, uint32_t number)
{
	const struct cedar_scope *a = &m->set->src.policy[f->pub.rule].action;
	uint32_t n = a->op == CEDAR_S_EQ ? 1 : a->op == CEDAR_S_IN_SET ? a->n_set : 0;

	/* A group may mean any action; so may a set that names one. */
	for (uint32_t i = 0; a->op == CEDAR_S_IN_SET && i < n; i++) {
		const struct cedar_action *act =
		    m->set->schema != NULL ? cedar_schema_action(m->set->schema, a->set[i]) : NULL;

		if (act == NULL || (act->n_principal == 0 && act->n_resource == 0))
			return add_probe(&m->any_action, number);
	}
	if (n == 0)
		return add_probe(&m->any_action, number);
	for (uint32_t i = 0; i < n; i++) {
		struct cedar_uid u = a->op == CEDAR_S_EQ ? a->uid : a->set[i];
		struct dw_probes *p;

		buf_clear(&m->key);
		buf_put_str(&m->key, cedar_sv(u.type));
		buf_put_str(&m->key, cedar_sv(u.id));
		p = buf_ok(&m->key) ? dw_table_put(&m->by_action, buf_sv(&m->key), 0) : NULL;
		if (p == NULL || !add_probe(p, number))
			return false;
	}
	return true;
}

/* A gating leaf: it is asked only while what it waits for holds something. */
static bool wait_for(struct dwm *m, size_t leaf)
{
	const struct dw_leaf_impl *f = &m->set->leaves[leaf];
	const struct dw_use *u = f->plan.trigger;
	struct dw_inst *x = m->leaves[leaf].view[u->rel];
	struct dw_trigger *t;
	struct dw_probe *v;
	uint32_t *slot;

	buf_clear(&m->key);
	dw_fam_identity(x->rel, &m->key);
	for (uint32_t i = 0; i < u->nkey; i++)
		dw_term_key(&m->key, u->key[i]);
	slot = buf_ok(&m->key) ? dw_table_put(&m->probe_index, buf_sv(&m->key), 0) : NULL;
	if (slot == NULL)
		return false;
	if (*slot == 0) {
		v = more(m->probes, m->nprobes, &m->cap_probes, sizeof(*v));
		if (v == NULL)
			return false;
		m->probes = v;
		v[m->nprobes++] = (struct dw_probe){ x->fam, u };
		*slot = m->nprobes;
	}
	t = more(x->trigger, x->ntrigger, &x->cap_trigger, sizeof(*t));
	if (t == NULL)
		return false;
	x->trigger = t;
	t[x->ntrigger++] = (struct dw_trigger){
		.probe = *slot - 1, .leaf = (uint32_t)leaf, .quick = f->plan.quick
	};
	return by_action(m, f, *slot - 1);
}

static int by_size(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

/* Do two ask the same but for the limit? */
static int cmp_question(const struct dw_trigger *a, const struct dw_trigger *b)
{
	const struct dw_quick *p = &a->quick, *q = &b->quick;
	int c = by_size(a->probe, b->probe);

	if (c == 0)
		c = by_size(p->is, q->is);
	if (c != 0 || p->is != DW_Q_TOTAL)
		return c;
	c = by_size(p->w, q->w);
	if (c == 0)
		c = by_size(p->sum, q->sum);
	return c != 0 ? c : by_size(p->op, q->op);
}

/* The one that is true whenever the other is comes first. */
static int cmp_limit(const struct dw_quick *p, const struct dw_quick *q)
{
	if (p->is == DW_Q_ONCE)
		return by_size(q->w, p->w);
	if (p->is != DW_Q_TOTAL)
		return 0;
	return p->op == DW_LT || p->op == DW_LE ? by_size(q->than, p->than)
	                                        : by_size(p->than, q->than);
}

static int cmp_trigger(const void *a, const void *b)
{
	const struct dw_trigger *p = a, *q = b;
	int c = cmp_question(p, q);

	if (c == 0)
		c = cmp_limit(&p->quick, &q->quick);
	return c != 0 ? c : by_size(p->leaf, q->leaf);
}

/* Does a limit that is not reached say anything about another? */
static bool follows(const struct dw_trigger *a, const struct dw_trigger *b)
{
	if (a->quick.is == DW_Q_NO || cmp_question(a, b) != 0)
		return false;
	if (a->quick.is == DW_Q_TOTAL && (a->quick.op == DW_EQ || a->quick.op == DW_NE))
		return a->quick.than == b->quick.than;
	return true;
}

/* Put the triggers of every instance in order. */
static void order_triggers(struct dwm *m)
{
	for (uint32_t i = 0; i < m->ninsts; i++) {
		struct dw_inst *x = m->insts[i];

		if (x->ntrigger != 0)
			qsort(x->trigger, x->ntrigger, sizeof(*x->trigger), cmp_trigger);
		for (uint32_t k = x->ntrigger; k-- > 0;)
			x->trigger[k].skip =
			    k + 1 < x->ntrigger && follows(&x->trigger[k], &x->trigger[k + 1])
			        ? x->trigger[k + 1].skip
			        : k + 1;
	}
}

/* States that were taken over or read back: who holds what is written down anew. */
static bool activate_all(struct dwm *m)
{
	for (uint32_t i = 0; i < m->ninsts; i++) {
		struct dw_inst *x = m->insts[i];

		for (void *g = x->ntrigger != 0 ? dw_table_oldest(&x->st->groups) : NULL; g != NULL;
		     g = dw_table_newer(g)) {
			if (!dw_fam_activate(
			        x->fam, x, dw_table_key(&x->st->groups, g), dw_table_ts(g)))
				return false;
		}
	}
	return true;
}

bool dwm_wake(struct dwm *m)
{
	return activate_all(m);
}

static struct dw_inst **index_slot(const struct dwm *m, struct buf *key, sv identity, uint64_t born)
{
	buf_clear(key);
	buf_put_u64(key, born);
	buf_put_sv(key, identity);
	return buf_ok(key) ? dw_table_find(&m->index, buf_sv(key)) : NULL;
}

/* The instance of a relation for a birth, made if need be, after those its filters ask. NULL
 * without memory. */
static struct dw_inst *get_inst(
    struct dwm *m, uint32_t number, uint64_t born, const struct dwm *from)
{
	const struct dw_rel *r = m->set->rels.v[number];
	const struct dw_plan *plan = &r->leaf->plan;
	struct dw_inst **slot = index_slot(m, &m->key, r->identity, born), **old, *x, **v;

	if (slot != NULL)
		return *slot;
	x = calloc(1, sizeof(*x));
	if (x == NULL)
		return NULL;
	x->rel = r;
	/* What was born at this very moment holds nothing yet, and was perhaps made for shorter
	 * windows: it is made anew. */
	old = from != NULL && born < m->core->gseq ? index_slot(from, &m->key, r->identity, born)
	                                           : NULL;
	if (old != NULL) {
		x->st = (*old)->st;
		x->st->refs++;
	} else {
		x->st = dw_state_new(r, born);
	}
	x->view = calloc(plan->nrel != 0 ? plan->nrel : 1, sizeof(struct dw_inst *));
	if (x->st == NULL || x->view == NULL)
		goto fail;
	for (uint32_t i = 0; i < r->ndep; i++) {
		x->view[r->dep[i]] = get_inst(m, plan->rel[r->dep[i]], born, from);
		if (x->view[r->dep[i]] == NULL)
			goto fail;
	}
	if (m->ninsts == m->cap) {
		uint32_t cap = m->cap != 0 ? m->cap * 2 : 16;

		v = dw_grow(m->insts, cap, sizeof(struct dw_inst *));
		if (v == NULL)
			goto fail;
		m->insts = v;
		m->cap = cap;
	}
	x->order = m->ninsts;
	m->insts[m->ninsts++] = x;
	(void)index_slot(m, &m->key, r->identity, born);
	slot = buf_ok(&m->key) ? dw_table_put(&m->index, buf_sv(&m->key), 0) : NULL;
	if (slot == NULL)
		return NULL;
	*slot = x;
	return subscribe(m, x) ? x : NULL;
fail:
	dw_state_drop(x->st);
	free(x->view);
	free(x);
	return NULL;
}

static bool want_content(struct dwm *m, const struct dw_leaf_impl *f)
{
	for (uint32_t i = 0; i < f->names.npred; i++) {
		const struct dw_pred *p = f->names.pred[i];
		struct dw_head *h = head(m, p->ns, p->id, p->kind);

		if (h == NULL)
			return false;
		h->general = true;
	}
	return true;
}

static bool add_leaf(struct dwm *m, size_t i, const struct dwm *from)
{
	const struct dw_leaf_impl *f = &m->set->leaves[i];
	struct dw_bind *b = &m->leaves[i];
	bool any = m->core->clock == DWM_ANY;
	int64_t reach = any ? f->pub.reach : f->plan.reach;

	b->view = calloc(f->plan.nrel != 0 ? f->plan.nrel : 1, sizeof(struct dw_inst *));
	if (b->view == NULL)
		return false;
	for (uint32_t k = 0; !any && k < f->plan.nrel; k++) {
		b->view[k] = get_inst(m, f->plan.rel[k], b->born, from);
		if (b->view[k] == NULL)
			return false;
	}
	m->positional = m->positional || f->plan.positional;
	if (!any && f->gate && !wait_for(m, i))
		return false;
	if (!any && !f->plan.general)
		return true;
	m->general = true;
	m->keep_all = m->keep_all || (any ? dw_sees_all(f->cond, false) : f->plan.sees_all);
	m->reach = reach > m->reach ? reach : m->reach;
	return want_content(m, f);
}

struct dwm *dwm_make(const struct dw_set *set, struct dw_core *core, const uint64_t *births,
    const struct dwm *from, struct box_err *err)
{
	struct dwm *m = calloc(1, sizeof(*m));

	if (m == NULL) {
		box_nomem(err, "a monitor");
		return NULL;
	}
	m->set = set;
	m->ok = true;
	m->scratch.limit = SCRATCH_LIMIT;
	m->key = buf_with(DW_EVENT_BYTES_MAX * 4);
	m->row = buf_with(DW_EVENT_BYTES_MAX * 4);
	dw_table_init(&m->fam_index, sizeof(struct dw_fam *));
	dw_table_init(&m->probe_index, sizeof(uint32_t));
	dw_table_init(&m->by_action, sizeof(struct dw_probes));
	dw_table_init(&m->heads, sizeof(struct dw_head));
	dw_table_init(&m->index, sizeof(struct dw_inst *));
	m->core = core;
	core->refs++;
	m->leaves = calloc(set->nleaves + 1, sizeof(*m->leaves));
	m->seen = calloc(set->nleaves + 1, sizeof(*m->seen));
	m->true_leaf = calloc(set->nleaves + 1, sizeof(*m->true_leaf));
	for (size_t i = 0; m->leaves != NULL && i < set->nleaves; i++)
		m->leaves[i].born = births != NULL ? births[i] : core->gseq;
	for (size_t i = 0; i < set->nleaves; i++) {
		if (m->leaves == NULL || m->seen == NULL || m->true_leaf == NULL ||
		    !add_leaf(m, i, from))
			goto fail;
	}
	order_triggers(m);
	if (m->leaves == NULL || m->seen == NULL || m->true_leaf == NULL || !activate_all(m))
		goto fail;
	return m;
fail:
	dwm_free(m);
	box_nomem(err, "a monitor");
	return NULL;
}
