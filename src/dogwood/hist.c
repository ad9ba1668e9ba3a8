/* See hist.h. */
#include "dogwood/hist.h"

#include <stdlib.h>
#include <string.h>

#include "base/ban.h"

/* Copying happens twice over the same walk: once to measure (at == NULL), once to write. */
struct copy {
	char *at; /* next free byte */
	size_t n; /* bytes needed so far */
};

static void *take(struct copy *c, size_t n)
{
	void *p;

	n = (n + 7) & ~(size_t)7;
	c->n += n;
	if (c->at == NULL)
		return NULL;
	p = c->at;
	c->at += n;
	return p;
}

static sv copy_sv(struct copy *c, sv s)
{
	char *p;

	if (s.n == 0)
		return (sv){ s.p != NULL ? "" : NULL, 0 };
	p = take(c, s.n);
	if (p == NULL)
		return s;
	memcpy(p, s.p, s.n);
	return (sv){ p, s.n };
}

static void copy_val(struct copy *c, const struct dw_val *v, struct dw_val *out)
{
	struct dw_val r = *v;

	switch (v->tag) {
	case DW_NULL:
	case DW_BOOL:
	case DW_INT:
		break;
	case DW_DECIMAL:
	case DW_STRING:
		r.u.s = copy_sv(c, v->u.s);
		break;
	case DW_ENTITY:
		r.u.ent.type = copy_sv(c, v->u.ent.type);
		r.u.ent.id = copy_sv(c, v->u.ent.id);
		break;
	case DW_ARRAY: {
		struct dw_val *p = take(c, v->u.arr.n * sizeof(*p));

		for (size_t i = 0; i < v->u.arr.n; i++)
			copy_val(c, &v->u.arr.v[i], p != NULL ? &p[i] : NULL);
		r.u.arr.v = p;
		break;
	}
	case DW_OBJECT: {
		struct dw_member *p = take(c, v->u.obj.n * sizeof(*p));

		for (size_t i = 0; i < v->u.obj.n; i++) {
			sv name = copy_sv(c, v->u.obj.m[i].name);

			copy_val(c, &v->u.obj.m[i].val, p != NULL ? &p[i].val : NULL);
			if (p != NULL)
				p[i].name = name;
		}
		r.u.obj.m = p;
		break;
	}
	}
	if (out != NULL)
		*out = r;
}

static void copy_event(struct copy *c, const struct dw_event *e, struct dw_event *out)
{
	struct dw_event r = { .ts = e->ts };

	r.ns = copy_sv(c, e->ns);
	r.id = copy_sv(c, e->id);
	r.kind = copy_sv(c, e->kind);
	copy_val(c, &e->logged, out != NULL ? &r.logged : NULL);
	if (out != NULL)
		*out = r;
}

struct dw_event *dw_event_keep(const struct dw_event *e, size_t *bytes)
{
	struct copy c = { 0 };
	struct dw_event *out;
	char *mem;

	(void)take(&c, sizeof(*out));
	copy_event(&c, e, NULL);
	mem = malloc(c.n);
	if (mem == NULL)
		return NULL;
	*bytes = c.n;
	c = (struct copy){ .at = mem };
	out = take(&c, sizeof(*out));
	copy_event(&c, e, out);
	return out;
}

struct dw_val *dw_vals_blob(const struct dw_val *const *v, uint32_t n)
{
	struct copy c = { 0 };
	struct dw_val *out;
	char *mem;

	(void)take(&c, n * sizeof(*out));
	for (uint32_t i = 0; i < n; i++)
		copy_val(&c, v[i], NULL);
	mem = malloc(c.n != 0 ? c.n : 1);
	if (mem == NULL)
		return NULL;
	c = (struct copy){ .at = mem };
	out = take(&c, n * sizeof(*out));
	for (uint32_t i = 0; i < n; i++)
		copy_val(&c, v[i], &out[i]);
	return out;
}

static void drop(const struct dw_point *p)
{
	/* The point owns the event; it is const only for its readers. */
	void *ev;

	memcpy(&ev, &p->ev, sizeof(ev));
	free(ev);
}

bool dw_hist_push(struct dw_hist *h, const struct dw_point *p, size_t bytes)
{
	if (h->first + h->n == h->cap) {
		if (h->first >= h->n && h->first != 0) {
			/* Half of the vector is free in front: moving costs less than what was
			 * dropped there. */
			memcpy(h->v, h->v + h->first, h->n * sizeof(*h->v));
		} else {
			size_t cap = h->cap != 0 ? h->cap * 2 : 16;
			struct dw_point *v = malloc(cap * sizeof(*v));

			if (v == NULL) {
				drop(p);
				return false;
			}
			if (h->n != 0)
				memcpy(v, h->v + h->first, h->n * sizeof(*v));
			free(h->v);
			h->v = v;
			h->cap = cap;
		}
		h->first = 0;
	}
	h->v[h->first + h->n++] = *p;
	h->bytes += bytes;
	return true;
}

void dw_hist_pop(struct dw_hist *h)
{
	if (h->n != 0)
		drop(&h->v[h->first + --h->n]);
}

void dw_hist_prune(struct dw_hist *h, int64_t before)
{
	while (h->n > 1 && h->v[h->first].ts < before) {
		drop(&h->v[h->first]);
		h->first++;
		h->n--;
	}
}

void dw_hist_fini(struct dw_hist *h)
{
	while (h->n != 0)
		dw_hist_pop(h);
	free(h->v);
	*h = (struct dw_hist){ 0 };
}
