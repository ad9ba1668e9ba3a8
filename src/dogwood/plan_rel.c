/* One pattern to a relation: its columns, its identity, the lists of the set and of the leaf. See
 * plan_impl.h. */
#include "dogwood/plan_impl.h"

#include "base/hash.h"

#include "base/ban.h"

bool *dw_pl_copy_bools(struct pl *p, const bool *v, size_t n)
{
	bool *c = ARENA_VEC(p->a, bool, n);

	if (c == NULL)
		dw_pl_no_room(p);
	else if (v != NULL)
		memcpy(c, v, n * sizeof(bool));
	return c;
}

static bool literal_array(const struct dw_term *t)
{
	for (uint32_t i = 0; i < t->items.n; i++) {
		if (t->items.v[i]->kind != DW_TERM_LIT)
			return false;
	}
	return true;
}

static bool add_lit(struct pl *p, struct dw_rel *r, const struct dw_arg *g)
{
	struct dw_arg *v = arena_grow(p->a, r->lit, r->nlit, (size_t)r->nlit + 1, sizeof(*v));
	struct dw_val *items;
	struct dw_term *t;

	if (v == NULL)
		return dw_pl_no_room(p);
	r->lit = v;
	v[r->nlit] = *g;
	if (g->term->kind == DW_TERM_ARRAY) {
		t = ARENA_NEW(p->a, struct dw_term);
		items = ARENA_VEC(p->a, struct dw_val, g->term->items.n);
		if (t == NULL || items == NULL)
			return dw_pl_no_room(p);
		for (uint32_t i = 0; i < g->term->items.n; i++)
			items[i] = g->term->items.v[i]->lit;
		t->kind = DW_TERM_LIT;
		t->lit.tag = DW_ARRAY;
		t->lit.u.arr.v = items;
		t->lit.u.arr.n = g->term->items.n;
		v[r->nlit].term = t;
	}
	r->nlit++;
	return true;
}

static bool add_dup(struct dw_rel *r, struct dw_col a, struct dw_col b)
{
	if (r->ndup == DW_COLS_MAX)
		return false;
	r->dup[r->ndup][0] = a;
	r->dup[r->ndup++][1] = b;
	return true;
}

/* Columns of P under the slots bound outside. false: not a shape for a relation, or no room. */
bool dw_pl_columns(struct pl *p, const struct dw_pred *pr, struct dw_rel *r, struct dw_use *use)
{
	r->ns = pr->ns;
	r->id = pr->id;
	r->ekind = pr->kind;
	r->sum = -1;
	r->tp_slot = DW_NO_SLOT;
	r->leaf = p->f;
	for (uint32_t i = 0; i < pr->nargs; i++) {
		const struct dw_arg *g = &pr->args[i];
		struct dw_term *t = g->term;
		struct dw_col c = { g->path, g->npath };
		uint32_t slot = DW_NO_SLOT, req = DW_NO_SLOT, k;

		if (t->kind == DW_TERM_LIT || t->kind == DW_TERM_WILD ||
		    (t->kind == DW_TERM_ARRAY && literal_array(t))) {
			if (!add_lit(p, r, g))
				return false;
			continue;
		}
		if (t->kind == DW_TERM_VAR && t->var.slot == DW_NO_SLOT)
			return false;
		if (t->kind == DW_TERM_VAR && !p->bound[t->var.slot]) {
			for (k = 0; k < r->nval && r->val_slot[k] != t->var.slot; k++)
				;
			if (k < r->nval) {
				if (!add_dup(r, r->val[k], c))
					return false;
				continue;
			}
			if (r->nval == DW_COLS_MAX)
				return false;
			r->val_slot[r->nval] = t->var.slot;
			r->val[r->nval++] = c;
			continue;
		}
		if (t->kind == DW_TERM_VAR)
			slot = t->var.slot;
		else if (dw_term_is_request(t))
			req = t->path.req;
		else if (t->kind != DW_TERM_ARRAY)
			return false;
		if (r->nkey == DW_COLS_MAX)
			return false;
		/* Two fields that must equal the same thing must equal each other. */
		for (k = 0; k < r->nkey; k++) {
			if ((slot != DW_NO_SLOT && r->key_slot[k] == slot) ||
			    (req != DW_NO_SLOT && r->key_req[k] == req))
				break;
		}
		if (k < r->nkey) {
			if (!add_dup(r, r->key[k], c))
				return false;
			continue;
		}
		r->key_slot[r->nkey] = slot;
		r->key_req[r->nkey] = req;
		r->key[r->nkey++] = c;
		use->key[use->nkey++] = t;
	}
	return true;
}

static void put_col(struct buf *b, const struct dw_col *c)
{
	for (uint32_t i = 0; i < c->npath; i++) {
		buf_put_str(b, c->path[i]);
		buf_put_byte(b, i + 1 < c->npath ? '.' : ';');
	}
}

/* The identity of a relation: everything that decides what it holds, nothing that only says who
 * asks. */
static bool identify(struct pl *p, struct dw_rel *r)
{
	AUTO_BUF b = buf_with((size_t)1 << 22);

	buf_putf(&b, "%d%c%c%c", (int)r->kind, r->vals ? 'v' : '-', r->totals ? 't' : '-',
	    r->tp_slot != DW_NO_SLOT ? 'p' : '-');
	/* One that keeps only the newest few serves no one who wants all. */
	buf_put_byte(&b, r->cap != 0 ? 'c' : '-');
	if (r->totals)
		buf_putf(&b, "%lld", (long long)r->reach);
	buf_putf(&b, "s%d|", r->sum);
	buf_put_str(&b, r->ns);
	buf_put_str(&b, r->id);
	buf_put_str(&b, r->ekind);
	for (uint32_t i = 0; i < r->nlit; i++) {
		struct dw_col c = { r->lit[i].path, r->lit[i].npath };

		buf_put_byte(&b, '=');
		put_col(&b, &c);
		if (r->lit[i].term->kind == DW_TERM_WILD)
			buf_put_byte(&b, '*');
		else
			dw_val_key(&b, &r->lit[i].term->lit);
	}
	for (uint32_t i = 0; i < r->nkey; i++) {
		buf_put_byte(&b, 'k');
		put_col(&b, &r->key[i]);
	}
	for (uint32_t i = 0; i < r->nval; i++) {
		buf_put_byte(&b, 'v');
		put_col(&b, &r->val[i]);
	}
	for (uint32_t i = 0; i < r->ndup; i++) {
		buf_put_byte(&b, 'd');
		put_col(&b, &r->dup[i][0]);
		put_col(&b, &r->dup[i][1]);
	}
	/* Filters speak of slots and request terms: they mean the same only where these stand for
	 * the same columns. */
	for (uint32_t i = 0; i < r->nfilter; i++) {
		buf_put_byte(&b, 'f');
		dw_cond_key(&b, r->filter[i]);
	}
	for (uint32_t i = 0; r->nfilter != 0 && i < r->nkey; i++) {
		buf_putf(&b, "K%u", r->key_slot[i]);
		if (r->key_req[i] != DW_NO_SLOT)
			dw_term_key(&b, r->leaf->names.req[r->key_req[i]]);
	}
	for (uint32_t i = 0; r->nfilter != 0 && i < r->nval; i++)
		buf_putf(&b, "V%u", r->val_slot[i]);
	if (r->nfilter != 0)
		buf_putf(&b, "T%u", r->tp_slot);
	r->identity = arena_dup(p->a, buf_sv(&b));
	return (buf_ok(&b) && r->identity.p != NULL) || dw_pl_no_room(p);
}

static uint64_t hash_of(sv s)
{
	/* Identities come from the operator's policy; the table lives for one load. */
	static const struct sip_key k = { 0x6477, 0x706c };

	return sip_hash(k, s);
}

static struct dw_rel *dw_rels_find(const struct dw_rels *s, sv identity)
{
	if (s->nslots == 0)
		return NULL;
	for (size_t i = hash_of(identity) & (s->nslots - 1); s->slot[i] != 0;
	     i = (i + 1) & (s->nslots - 1)) {
		/* Numbers above n were given up; their slots stay, to keep the chains whole. */
		if (s->slot[i] <= s->n && sv_eq(s->v[s->slot[i] - 1]->identity, identity))
			return s->v[s->slot[i] - 1];
	}
	return NULL;
}

static bool dw_rels_index(struct arena *a, struct dw_rels *s, const struct dw_rel *r)
{
	size_t i;

	if ((s->used + 1) * 2 > s->nslots) {
		size_t n = s->nslots != 0 ? s->nslots * 2 : 64;
		uint32_t *v = ARENA_VEC(a, uint32_t, n);

		if (v == NULL)
			return false;
		s->slot = v;
		s->nslots = n;
		s->used = 0;
		for (uint32_t k = 0; k + 1 < s->n; k++) {
			for (i = hash_of(s->v[k]->identity) & (n - 1); v[i] != 0;
			     i = (i + 1) & (n - 1))
				;
			v[i] = k + 1;
			s->used++;
		}
	}
	for (i = hash_of(r->identity) & (s->nslots - 1); s->slot[i] != 0;
	     i = (i + 1) & (s->nslots - 1))
		;
	s->slot[i] = r->number + 1;
	s->used++;
	return true;
}

/* Enter a finished relation in the set's list and the leaf's; *at is its position in the latter. */
bool dw_pl_enter(struct pl *p, struct dw_rel *r, uint32_t *at)
{
	struct dw_plan *o = p->out;
	struct dw_rel *same = NULL;

	if (!identify(p, r))
		return false;
	same = dw_rels_find(p->rels, r->identity);
	if (same == NULL) {
		if (p->rels->n == p->rels->cap) {
			uint32_t cap = p->rels->cap != 0 ? p->rels->cap * 2 : 16;
			struct dw_rel **v =
			    arena_grow(p->a, p->rels->v, p->rels->n, cap, sizeof(struct dw_rel *));

			if (v == NULL)
				return dw_pl_no_room(p);
			p->rels->v = v;
			p->rels->cap = cap;
		}
		r->number = p->rels->n;
		p->rels->v[p->rels->n++] = r;
		if (!dw_rels_index(p->a, p->rels, r))
			return dw_pl_no_room(p);
		same = r;
	} else {
		same->reach = same->reach > r->reach ? same->reach : r->reach;
		same->cap = same->cap == 0 || r->cap == 0 ? 0
		            : same->cap > r->cap          ? same->cap
		                                          : r->cap;
	}
	o->positional = o->positional || r->positional;
	for (uint32_t i = 0; i < o->nrel; i++) {
		if (o->rel[i] == same->number) {
			*at = i;
			return true;
		}
	}
	if (o->nrel == o->cap) {
		uint32_t cap = o->cap != 0 ? o->cap * 2 : 8;
		uint32_t *v = arena_grow(p->a, o->rel, o->nrel, cap, sizeof(*v));

		if (v == NULL)
			return dw_pl_no_room(p);
		o->rel = v;
		o->cap = cap;
	}
	*at = o->nrel;
	o->rel[o->nrel++] = same->number;
	return true;
}
