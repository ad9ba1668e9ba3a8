/* Putting a monitor together: the instances of all relations of all leaves, by birth, and who wants which events. */
#include <stdlib.h>

#include "dogwood/monitor_impl.h"

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

void dwm_free(struct dwm *m)
{
	if (m == NULL)
		return;
	for (uint32_t i = 0; i < m->ninsts; i++) {
		dw_state_drop(m->insts[i]->st);
		free(m->insts[i]->view);
		free(m->insts[i]);
	}
	for (size_t i = 0; m->leaves != NULL && i < m->set->nleaves; i++)
		free(m->leaves[i].view);
	free(m->insts);
	free(m->leaves);
	dw_core_drop(m->core);
	dw_table_fini(&m->heads, head_fini);
	dw_table_fini(&m->index, NULL);
	arena_free(&m->scratch);
	buf_fini(&m->key);
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

static bool subscribe(struct dwm *m, struct dw_inst *x)
{
	struct dw_head *h = head(m, x->rel->ns, x->rel->id, x->rel->ekind);

	if (h == NULL)
		return false;
	if (h->n == h->cap) {
		uint32_t cap = h->cap != 0 ? h->cap * 2 : 4;
		struct dw_inst **v = reallocarray(h->v, cap, sizeof(struct dw_inst *));

		if (v == NULL)
			return false;
		h->v = v;
		h->cap = cap;
	}
	h->v[h->n++] = x;
	return true;
}

static struct dw_inst **index_slot(const struct dwm *m, struct buf *key, sv identity, uint64_t born)
{
	buf_clear(key);
	buf_put_u64(key, born);
	buf_put_sv(key, identity);
	return buf_ok(key) ? dw_table_find(&m->index, buf_sv(key)) : NULL;
}

/* The instance of a relation for a birth, made if need be, after those its filters ask. NULL without memory. */
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
	old = from != NULL ? index_slot(from, &m->key, r->identity, born) : NULL;
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

		v = reallocarray(m->insts, cap, sizeof(struct dw_inst *));
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
	dw_table_init(&m->heads, sizeof(struct dw_head));
	dw_table_init(&m->index, sizeof(struct dw_inst *));
	m->core = core;
	core->refs++;
	m->leaves = calloc(set->nleaves != 0 ? set->nleaves : 1, sizeof(*m->leaves));
	for (size_t i = 0; m->leaves != NULL && i < set->nleaves; i++)
		m->leaves[i].born = births != NULL ? births[i] : core->gseq;
	for (size_t i = 0; i < set->nleaves; i++) {
		if (m->leaves == NULL || !add_leaf(m, i, from)) {
			dwm_free(m);
			box_nomem(err, "a monitor");
			return NULL;
		}
	}
	return m;
}
