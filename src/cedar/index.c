/* Which policies can match a request?
 *
 * Each policy is filed under one 64-bit key made of what it requires of action, principal and
 * resource and, where it can be told without evaluating, of one field of the context. A request
 * computes the keys it could satisfy and looks them up. Keys are hashes: a chance collision only
 * costs an evaluation, since every policy found is evaluated in full; what matters is that equal
 * requirements give equal keys.
 *
 * Errors are part of the answer, so a policy may be passed over for a context field only when it
 * would have come out false without an error: nothing before the comparison can err, and the
 * field is there (or is guarded by `has`). The states of a path in a request are therefore
 * three: found (key of the value), absent (its last step is missing: key ABSENT, which holds the
 * unguarded policies), broken (an earlier step is missing or is no record: key BROKEN, which
 * holds all of them). */
#include "cedar/prog.h"

#include <stdlib.h>

#include "base/ban.h"

#define MAX_PATH   8   /* steps of an indexed path */
#define MAX_PATHS  256 /* different paths of a set */
#define MAX_VALUES 64  /* alternatives of one policy */
#define MAX_CONDS  16  /* conjuncts looked at */

#define H_ANY    UINT64_C(0x9ae16a3b2f90404f)
#define H_ABSENT UINT64_C(0xc949c7defebb7c21)
#define H_BROKEN UINT64_C(0x3c6ef372fe94f82b)

enum need { N_ANY, N_EQ, N_IN, N_IS };

/* A kind of key in use: what of the request goes into it. path is a position in paths, or
 * NO_PATH. */
struct shape {
	uint8_t need[3]; /* principal, action, resource */
	uint32_t path;
};
#define NO_PATH UINT32_MAX

struct path {
	uint32_t n;
	cedar_sym step[MAX_PATH];
};

struct entry {
	uint64_t key;
	uint32_t policy;
};

struct bucket {
	uint64_t key;
	uint32_t from, n; /* n 0: free */
};

struct cedar_index {
	struct shape *shape;
	size_t n_shape, cap_shape;
	struct path *path;
	size_t n_path, cap_path;
	struct entry *entry; /* sorted by key; then only the policies matter */
	size_t n_entry, cap_entry;
	struct bucket *bucket;
	size_t n_bucket; /* a power of two */
	/* Policies that wait for a leaf, sorted by its ordinal (key). */
	struct entry *gate;
	size_t n_gate, cap_gate;
};

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0xff51afd7ed558ccd);
	return h ^ (h >> 29);
}

static void *more(void *v, size_t n, size_t *cap, size_t size)
{
	size_t want = *cap != 0 ? *cap * 2 : 16;
	void *q;

	if (n < *cap)
		return v;
	q = reallocarray(v, want, size);
	if (q != NULL)
		*cap = want;
	return q;
}

/* ---- what a policy requires of the context ------------------------------------------------- */

struct fact {
	struct path path;
	struct cedar_value value[MAX_VALUES];
	size_t n_value;
	bool guarded;
};

/* context.a.b as a path. false when e is no such thing. */
static bool as_path(const struct cedar_expr *e, struct path *p)
{
	const struct cedar_expr *x;
	uint32_t n = 0, i;

	for (x = e; x->kind == CEDAR_E_GET; x = x->arg[0])
		n++;
	if (x->kind != CEDAR_E_VAR || x->var != CEDAR_CONTEXT || n > MAX_PATH)
		return false;
	p->n = n;
	for (x = e, i = n; i > 0; x = x->arg[0])
		p->step[--i] = x->name;
	return true;
}

static bool starts(const struct path *p, const struct path *prefix)
{
	uint32_t i;

	if (prefix->n > p->n)
		return false;
	for (i = 0; i < prefix->n; i++)
		if (!cedar_str_eq(p->step[i], prefix->step[i]))
			return false;
	return true;
}

static bool same(const struct path *a, const struct path *b)
{
	return a->n == b->n && starts(a, b);
}

/* path == constant, in either order; [constants].contains(path); or an `||` of such about one
 * path. Values that are made by folding live in a. */
static bool as_fact(struct arena *a, const struct cedar_expr *e, struct fact *f)
{
	struct path p;
	uint32_t i;

	switch (e->kind) {
	case CEDAR_E_EQ:
		for (i = 0; i < 2; i++)
			if (as_path(e->arg[i], &p) && p.n != 0 && f->n_value < MAX_VALUES &&
			    cedar_fold(a, e->arg[1 - i], &f->value[f->n_value])) {
				if (f->n_value != 0 && !same(&p, &f->path))
					return false;
				f->path = p;
				f->n_value++;
				return true;
			}
		return false;
	case CEDAR_E_CONTAINS: {
		struct cedar_value set;

		if (e->arg[0]->kind != CEDAR_E_SET || !as_path(e->arg[1], &p) || p.n == 0 ||
		    !cedar_fold(a, e->arg[0], &set) || set.set->n > MAX_VALUES - f->n_value ||
		    (f->n_value != 0 && !same(&p, &f->path)))
			return false;
		f->path = p;
		for (i = 0; i < set.set->n; i++)
			f->value[f->n_value++] = set.set->v[i];
		return set.set->n != 0;
	}
	case CEDAR_E_OR:
		for (i = 0; i < e->n_arg; i++)
			if (!as_fact(a, e->arg[i], f))
				return false;
		return true;
	default:
		return false;
	}
}

/* A variable or constant: gives a value without fail. */
static bool is_plain(const struct cedar_expr *e)
{
	uint32_t i;

	if (e->kind == CEDAR_E_SET) {
		for (i = 0; i < e->n_arg; i++)
			if (e->arg[i]->kind != CEDAR_E_LIT)
				return false;
		return true;
	}
	return e->kind == CEDAR_E_LIT || e->kind == CEDAR_E_VAR;
}

static bool is_entity(const struct cedar_expr *e)
{
	return (e->kind == CEDAR_E_LIT && e->value.kind == CEDAR_ENTITY) ||
	       (e->kind == CEDAR_E_VAR && e->var != CEDAR_CONTEXT);
}

/* Does e give a Bool without fail, for every request in which the path p is found or absent? p
 * NULL: for every request. */
static bool is_total(const struct cedar_expr *e, const struct path *p, bool leaves)
{
	struct path q;
	uint32_t i;

	switch (e->kind) {
	case CEDAR_E_LIT:
		return e->value.kind == CEDAR_BOOL;
	case CEDAR_E_LEAF:
		return leaves && !e->leaf->is_provider && e->leaf->type == NULL;
	case CEDAR_E_NOT:
	case CEDAR_E_AND:
	case CEDAR_E_OR:
		for (i = 0; i < e->n_arg; i++)
			if (!is_total(e->arg[i], p, leaves))
				return false;
		return true;
	case CEDAR_E_EQ:
	case CEDAR_E_NE:
		return is_plain(e->arg[0]) && is_plain(e->arg[1]);
	case CEDAR_E_IS:
		return is_entity(e->arg[0]) && (e->n_arg == 1 || is_entity(e->arg[1]));
	case CEDAR_E_IN:
		if (!is_entity(e->arg[0]))
			return false;
		if (e->arg[1]->kind != CEDAR_E_SET)
			return is_entity(e->arg[1]);
		for (i = 0; i < e->arg[1]->n_arg; i++)
			if (!is_entity(e->arg[1]->arg[i]))
				return false;
		return true;
	case CEDAR_E_HAS:
		/* All but the last step of what is asked for must be a record when it is there.
		 * The context is one; so is each proper prefix of p when p is found or absent. */
		if (!as_path(e->arg[0], &q) || q.n + e->n_path - 1 > MAX_PATH)
			return false;
		for (i = 0; i + 1 < e->n_path; i++)
			q.step[q.n++] = e->path[i];
		return q.n == 0 || (p != NULL && q.n < p->n && starts(p, &q));
	default:
		return false;
	}
}

/* `context.a has b` for exactly p. */
static bool is_guard(const struct cedar_expr *e, const struct path *p)
{
	struct path q;
	uint32_t i;

	if (e->kind != CEDAR_E_HAS || !as_path(e->arg[0], &q) || q.n + e->n_path > MAX_PATH)
		return false;
	for (i = 0; i < e->n_path; i++)
		q.step[q.n++] = e->path[i];
	return same(p, &q);
}

struct conj {
	const struct cedar_expr *e;
	bool unless;
};

static size_t flatten(const struct cedar_expr *e, struct conj *v, size_t n)
{
	uint32_t i;

	if (n == MAX_CONDS)
		return n;
	if (e->kind != CEDAR_E_AND) {
		v[n] = (struct conj){ e, false };
		return n + 1;
	}
	for (i = 0; i < e->n_arg; i++)
		n = flatten(e->arg[i], v, n);
	return n;
}

static size_t conjuncts(const struct cedar_policy *p, struct conj *v)
{
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < p->n_cond && n < MAX_CONDS; i++) {
		if (p->cond[i].unless)
			v[n++] = (struct conj){ p->cond[i].e, true };
		else
			n = flatten(p->cond[i].e, v, n);
	}
	return n;
}

/* The first comparison before which nothing can err. */
static bool find_fact(struct arena *a, const struct conj *v, size_t n, bool leaves, struct fact *f)
{
	size_t i, j;

	for (i = 0; i < n; i++) {
		f->n_value = 0;
		f->guarded = false;
		if (v[i].unless || !as_fact(a, v[i].e, f))
			continue;
		for (j = 0; j < i; j++) {
			if (!is_total(v[j].e, &f->path, leaves))
				return false;
			if (!v[j].unless && is_guard(v[j].e, &f->path))
				f->guarded = true;
		}
		return true;
	}
	return false;
}

static uint32_t find_gate(const struct conj *v, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (!v[i].unless && v[i].e->kind == CEDAR_E_LEAF && !v[i].e->leaf->is_provider &&
		    v[i].e->leaf->type == NULL)
			return v[i].e->leaf->ordinal;
		if (!is_total(v[i].e, NULL, true))
			break;
	}
	return NO_GATE;
}

/* ---- building ------------------------------------------------------------------------------ */

static enum need need_of(const struct cedar_scope *s, uint64_t *h)
{
	switch (s->op) {
	case CEDAR_S_ANY:
	case CEDAR_S_IN_SET:
		break;
	case CEDAR_S_EQ:
		*h = cedar_uid_hash(s->uid);
		return N_EQ;
	case CEDAR_S_IN:
		*h = cedar_uid_hash(s->uid);
		return N_IN;
	case CEDAR_S_IS:
	case CEDAR_S_IS_IN:
		*h = s->type->hash;
		return N_IS;
	}
	*h = H_ANY;
	return N_ANY;
}

static uint64_t key_of(size_t shape, const uint64_t h[3], uint64_t value)
{
	uint64_t k = mix(UINT64_C(0x51ed270b) + shape, h[0]);

	return mix(mix(mix(k, h[1]), h[2]), value);
}

static bool shape_of(struct cedar_index *x, struct shape want, size_t *out)
{
	struct shape *v;
	size_t i;

	for (i = 0; i < x->n_shape; i++)
		if (memcmp(x->shape[i].need, want.need, sizeof(want.need)) == 0 &&
		    x->shape[i].path == want.path) {
			*out = i;
			return true;
		}
	v = more(x->shape, x->n_shape, &x->cap_shape, sizeof(*v));
	if (v == NULL)
		return false;
	x->shape = v;
	v[x->n_shape] = want;
	*out = x->n_shape++;
	return true;
}

/* The position of a path; NO_PATH when there are too many already (the policy is then filed
 * without). */
static bool path_of(struct cedar_index *x, const struct path *p, uint32_t *out)
{
	struct path *v;
	uint32_t i;

	for (i = 0; i < x->n_path; i++)
		if (same(&x->path[i], p)) {
			*out = i;
			return true;
		}
	*out = NO_PATH;
	if (x->n_path == MAX_PATHS)
		return true;
	v = more(x->path, x->n_path, &x->cap_path, sizeof(*v));
	if (v == NULL)
		return false;
	x->path = v;
	*out = (uint32_t)x->n_path;
	v[x->n_path++] = *p;
	return true;
}

static bool add(struct cedar_index *x, uint64_t key, size_t policy)
{
	struct entry *v = more(x->entry, x->n_entry, &x->cap_entry, sizeof(*v));

	if (v == NULL)
		return false;
	x->entry = v;
	v[x->n_entry++] = (struct entry){ key, (uint32_t)policy };
	return true;
}

/* File a policy under every key at which a request may look for it, with the action part given. */
static bool file(
    struct cedar_index *x, size_t policy, struct shape s, const uint64_t h[3], const struct fact *f)
{
	size_t shape, i;

	if (!shape_of(x, s, &shape))
		return false;
	if (s.path == NO_PATH)
		return add(x, key_of(shape, h, H_ANY), policy);
	for (i = 0; i < f->n_value; i++)
		if (!add(x, key_of(shape, h, cedar_value_hash(&f->value[i])), policy))
			return false;
	if (!f->guarded && !add(x, key_of(shape, h, H_ABSENT), policy))
		return false;
	return add(x, key_of(shape, h, H_BROKEN), policy);
}

static bool index_policy(struct cedar_policies *ps, size_t i, const struct cedar_set_opts *o)
{
	struct cedar_index *x = ps->index;
	struct cedar_cpol *c = &ps->pol[i];
	struct shape s = { .path = NO_PATH };
	struct fact f;
	struct conj v[MAX_CONDS];
	size_t n = conjuncts(c->link.policy, v);
	uint64_t h[3];
	uint32_t k;

	c->gate = o->gate_leaves && o->leaves_cannot_fail ? find_gate(v, n) : NO_GATE;
	if (c->gate != NO_GATE) {
		struct entry *g = more(x->gate, x->n_gate, &x->cap_gate, sizeof(*g));

		if (g == NULL)
			return false;
		x->gate = g;
		g[x->n_gate++] = (struct entry){ c->gate, (uint32_t)i };
		return true;
	}
	for (k = 0; k < 3; k++)
		s.need[k] = (uint8_t)need_of(&c->scope[k], &h[k]);
	/* Ancestors of two elements would be looked up as pairs. */
	if (s.need[0] == N_IN && s.need[2] == N_IN) {
		s.need[0] = N_ANY;
		h[0] = H_ANY;
	}
	if (find_fact(&ps->a, v, n, o->leaves_cannot_fail, &f) && !path_of(x, &f.path, &s.path))
		return false;
	if (c->scope[1].op != CEDAR_S_IN_SET)
		return file(x, i, s, h, &f);
	s.need[1] = N_IN;
	for (k = 0; k < c->scope[1].n_set; k++) {
		h[1] = cedar_uid_hash(c->scope[1].set[k]);
		if (!file(x, i, s, h, &f))
			return false;
	}
	return true;
}

static int by_key(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->policy < y->policy ? -1 : x->policy > y->policy;
}

static size_t slot(const struct cedar_index *x, uint64_t key)
{
	size_t i = (size_t)(key >> 8) & (x->n_bucket - 1);

	while (x->bucket[i].n != 0 && x->bucket[i].key != key)
		i = (i + 1) & (x->n_bucket - 1);
	return i;
}

int cedar_index_build(struct cedar_policies *ps, const struct cedar_set_opts *o)
{
	struct cedar_index *x = calloc(1, sizeof(*x));
	size_t i, j;

	ps->index = x;
	if (x == NULL)
		return -1;
	for (i = 0; i < ps->n; i++)
		if (!index_policy(ps, i, o))
			return -1;
	if (x->n_entry != 0)
		qsort(x->entry, x->n_entry, sizeof(*x->entry), by_key);
	if (x->n_gate != 0)
		qsort(x->gate, x->n_gate, sizeof(*x->gate), by_key);
	for (x->n_bucket = 16; x->n_bucket < x->n_entry * 2;)
		x->n_bucket *= 2;
	x->bucket = calloc(x->n_bucket, sizeof(*x->bucket));
	if (x->bucket == NULL || x->n_entry > UINT32_MAX)
		return -1;
	for (i = 0; i < x->n_entry; i = j) {
		for (j = i; j < x->n_entry && x->entry[j].key == x->entry[i].key; j++)
			;
		x->bucket[slot(x, x->entry[i].key)] =
		    (struct bucket){ x->entry[i].key, (uint32_t)i, (uint32_t)(j - i) };
	}
	return 0;
}

void cedar_index_free(struct cedar_index *x)
{
	if (x == NULL)
		return;
	free(x->shape);
	free(x->path);
	free(x->entry);
	free(x->bucket);
	free(x->gate);
	free(x);
}

/* ---- looking up ---------------------------------------------------------------------------- */

static void candidate(struct cedar_eval_priv *pv, uint32_t policy)
{
	if (pv->stamp[policy] == pv->round)
		return;
	pv->stamp[policy] = pv->round;
	pv->cand[pv->n_cand++] = policy;
}

/* The value part of the key for a path. */
static uint64_t value_key(const struct path *p, const struct cedar_record *ctx)
{
	const struct cedar_value *v;
	uint32_t i;

	for (i = 0; i < p->n; i++) {
		v = ctx != NULL ? cedar_record_get(ctx, p->step[i]) : NULL;
		if (i + 1 == p->n)
			return v != NULL ? cedar_value_hash(v) : H_ABSENT;
		if (v == NULL || v->kind != CEDAR_RECORD)
			return H_BROKEN;
		ctx = v->rec;
	}
	return H_BROKEN;
}

/* What one element of the request offers for a need: a list of hashes, the first given apart. */
struct offer {
	uint64_t first;
	const struct cedar_uid *rest;
	uint32_t n_rest;
};

static uint64_t offer_at(const struct offer *o, uint32_t i)
{
	return i == 0 ? o->first : cedar_uid_hash(o->rest[i - 1]);
}

static void probe(const struct cedar_index *x, size_t shape, const struct offer *o[3],
    uint64_t value, struct cedar_eval_priv *pv)
{
	uint32_t i, j, k, m;
	uint64_t h[3];

	for (i = 0; i <= o[0]->n_rest; i++) {
		h[0] = offer_at(o[0], i);
		for (j = 0; j <= o[1]->n_rest; j++) {
			h[1] = offer_at(o[1], j);
			for (k = 0; k <= o[2]->n_rest; k++) {
				const struct bucket *b;

				h[2] = offer_at(o[2], k);
				b = &x->bucket[slot(x, key_of(shape, h, value))];
				for (m = 0; m < b->n; m++)
					candidate(pv, x->entry[b->from + m].policy);
			}
		}
	}
}

static size_t first_gate(const struct cedar_index *x, uint32_t ordinal)
{
	size_t lo = 0, hi = x->n_gate;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (x->gate[mid].key < ordinal)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool cedar_index_is_gate(const struct cedar_index *x, uint32_t ordinal)
{
	size_t i = first_gate(x, ordinal);

	return i < x->n_gate && x->gate[i].key == ordinal;
}

void cedar_index_find(
    const struct cedar_policies *ps, const struct cedar_request *rq, struct cedar_eval_priv *pv)
{
	const struct cedar_uid who[3] = { rq->principal, rq->action, rq->resource };
	const struct cedar_index *x = ps->index;
	struct offer offers[3][4];
	uint32_t last_path = NO_PATH, k;
	uint64_t value = H_ANY;
	size_t i, j;

	for (k = 0; k < 3; k++) {
		const struct cedar_entity_data *e = cedar_entities_find(rq->entities, who[k]);
		uint64_t h = cedar_uid_hash(who[k]);

		offers[k][N_ANY] = (struct offer){ H_ANY, NULL, 0 };
		offers[k][N_EQ] = (struct offer){ h, NULL, 0 };
		offers[k][N_IN] = (struct offer){ h, e != NULL ? e->ancestors : NULL,
			e != NULL ? e->n_ancestors : 0 };
		offers[k][N_IS] = (struct offer){ who[k].type->hash, NULL, 0 };
	}
	for (i = 0; i < x->n_shape; i++) {
		const struct shape *s = &x->shape[i];
		const struct offer *o[3] = { &offers[0][s->need[0]], &offers[1][s->need[1]],
			&offers[2][s->need[2]] };

		if (s->path == NO_PATH)
			value = H_ANY;
		else if (s->path != last_path)
			value = value_key(&x->path[s->path], rq->context);
		last_path = s->path;
		probe(x, i, o, value, pv);
	}
	for (i = 0; x->n_gate != 0 && i < rq->n_true_leaf; i++)
		for (j = first_gate(x, rq->true_leaf[i]);
		     j < x->n_gate && x->gate[j].key == rq->true_leaf[i]; j++)
			candidate(pv, x->gate[j].policy);
}
