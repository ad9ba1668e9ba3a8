/* See fam.h. */
#include "dogwood/fam.h"
#include "dogwood/grow.h"

#include <stdlib.h>

#include "base/ban.h"

static void insts_fini(void *record)
{
	struct dw_insts *v = record;

	free(v->v);
}

bool dw_insts_push(struct dw_insts *v, struct dw_inst *x)
{
	if (v->n == v->cap) {
		uint32_t cap = v->cap != 0 ? v->cap * 2 : 2;
		struct dw_inst **p = dw_grow(v->v, cap, sizeof(struct dw_inst *));

		if (p == NULL)
			return false;
		v->v = p;
		v->cap = cap;
	}
	v->v[v->n++] = x;
	return true;
}

static void put_path(struct buf *b, const sv *path, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		buf_put_str(b, path[i]);
	buf_put_byte(b, ';');
}

void dw_fam_identity(const struct dw_rel *r, struct buf *b)
{
	buf_put_str(b, r->ns);
	buf_put_str(b, r->id);
	buf_put_str(b, r->ekind);
	for (uint32_t i = 0; i < r->nlit; i++) {
		if (r->lit[i].term->kind == DW_TERM_LIT)
			put_path(b, r->lit[i].path, r->lit[i].npath);
	}
	buf_put_byte(b, '|');
	for (uint32_t i = 0; i < r->nkey; i++)
		put_path(b, r->key[i].path, r->key[i].npath);
}

struct dw_fam *dw_fam_new(const struct dw_rel *r)
{
	struct dw_fam *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	f->like = r;
	dw_table_init(&f->by_literal, sizeof(struct dw_insts));
	dw_table_init_with(&f->active, sizeof(struct dw_insts), f->by_literal.sip);
	return f;
}

void dw_fam_free(struct dw_fam *f)
{
	if (f == NULL)
		return;
	dw_table_fini(&f->by_literal, insts_fini);
	dw_table_fini(&f->active, insts_fini);
	free(f);
}

bool dw_fam_add(struct dw_fam *f, struct dw_inst *x, struct buf *key)
{
	struct dw_insts *v;

	buf_clear(key);
	for (uint32_t i = 0; i < x->rel->nlit; i++) {
		if (x->rel->lit[i].term->kind == DW_TERM_LIT)
			dw_val_key(key, &x->rel->lit[i].term->lit);
	}
	v = buf_ok(key) ? dw_table_put(&f->by_literal, buf_sv(key), 0) : NULL;
	return v != NULL && dw_insts_push(v, x);
}

const struct dw_insts *dw_fam_match(
    const struct dw_fam *f, const struct dw_event *e, struct buf *key)
{
	const struct dw_rel *r = f->like;
	const struct dw_val *v;

	buf_clear(key);
	for (uint32_t i = 0; i < r->nlit; i++) {
		if (r->lit[i].term->kind != DW_TERM_LIT)
			continue;
		v = dw_walk(&e->logged, r->lit[i].path, r->lit[i].npath);
		if (v == NULL)
			return NULL;
		dw_val_key(key, v);
	}
	return buf_ok(key) ? dw_table_find(&f->by_literal, buf_sv(key)) : NULL;
}

/* Drop what holds no group under the key any more, and second entries. */
static void compact(struct dw_insts *v, sv key, uint64_t round)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < v->n; i++) {
		struct dw_inst *x = v->v[i];

		if (x->round == round || dw_table_find(&x->st->groups, key) == NULL)
			continue;
		x->round = round;
		v->v[n++] = x;
	}
	v->n = n;
}

bool dw_fam_activate(struct dw_fam *f, struct dw_inst *x, sv key, int64_t ts)
{
	struct dw_insts *v = dw_table_put(&f->active, key, ts), *old;

	if (v == NULL)
		return false;
	if (v->n == v->cap && v->n != 0) {
		/* Rounds of compaction are told from those of decisions by their top bit. */
		f->rounds++;
		compact(v, key, f->rounds | (uint64_t)1 << 63);
	}
	if (!dw_insts_push(v, x))
		return false;
	/* One old key is looked at for each new one, so that the table does not outgrow what is
	 * held. */
	old = dw_table_oldest(&f->active);
	if (old != v) {
		f->rounds++;
		compact(old, dw_table_key(&f->active, old), f->rounds | (uint64_t)1 << 63);
		if (old->n == 0)
			dw_table_drop(&f->active, old, insts_fini);
		else
			dw_table_touch(&f->active, old, ts);
	}
	return true;
}

const struct dw_insts *dw_fam_active(struct dw_fam *f, sv key, uint64_t round)
{
	struct dw_insts *v = dw_table_find(&f->active, key);

	if (v == NULL)
		return NULL;
	compact(v, key, round);
	return v;
}
