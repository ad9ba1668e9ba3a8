/* The stored form of events and values. Records come back from disk and from embedding programs, so
 * the reader bounds depth and counts by the bytes that are there, refuses unknown tags and repeated
 * member names, and never trusts a length. See event.h for the format. */
#include <stdlib.h>

#include "dogwood/event.h"

#include "base/ban.h"

#define EVENT_VERSION 1

void dw_val_put(struct buf *b, const struct dw_val *v)
{
	buf_put_byte(b, (uint8_t)v->tag);
	switch (v->tag) {
	case DW_NULL:
		return;
	case DW_BOOL:
		buf_put_byte(b, v->u.b);
		return;
	case DW_INT:
		buf_put_u64(b, (uint64_t)v->u.i);
		return;
	case DW_DECIMAL:
	case DW_STRING:
		buf_put_str(b, v->u.s);
		return;
	case DW_ENTITY:
		buf_put_str(b, v->u.ent.type);
		buf_put_str(b, v->u.ent.id);
		return;
	case DW_ARRAY:
		buf_put_u32(b, (uint32_t)v->u.arr.n);
		for (size_t i = 0; i < v->u.arr.n; i++)
			dw_val_put(b, &v->u.arr.v[i]);
		return;
	case DW_OBJECT:
		buf_put_u32(b, (uint32_t)v->u.obj.n);
		for (size_t i = 0; i < v->u.obj.n; i++) {
			buf_put_str(b, v->u.obj.m[i].name);
			dw_val_put(b, &v->u.obj.m[i].val);
		}
		return;
	}
}

static int cmp_sv(const void *a, const void *b)
{
	return sv_cmp(*(const sv *)a, *(const sv *)b);
}

static int no_repeats(struct arena *a, const struct dw_member *m, size_t n, struct box_err *err)
{
	sv *names = ARENA_VEC(a, sv, n);

	if (names == NULL)
		return box_nomem(err, "a record");
	for (size_t i = 0; i < n; i++)
		names[i] = m[i].name;
	qsort(names, n, sizeof(*names), cmp_sv);
	for (size_t i = 1; i < n; i++) {
		if (sv_eq(names[i - 1], names[i]))
			return box_fail(
			    err, BOX_ECORRUPT, 0, "stored value: a record names a member twice");
	}
	return 0;
}

static int get(
    struct rd *r, struct arena *a, unsigned depth, struct dw_val *out, struct box_err *err)
{
	uint8_t tag = rd_u8(r);
	uint32_t n;

	if (r->bad)
		return box_fail(err, BOX_ECORRUPT, 0, "stored value: cut short");
	if (depth > DW_DEPTH_MAX)
		return box_fail(
		    err, BOX_ECORRUPT, 0, "stored value: nested deeper than %d", DW_DEPTH_MAX);
	*out = dw_null();
	switch (tag) {
	case DW_NULL:
		return 0;
	case DW_BOOL:
		*out = dw_bool(rd_u8(r) != 0);
		break;
	case DW_INT:
		*out = dw_int((int64_t)rd_u64(r));
		break;
	case DW_DECIMAL:
		*out = dw_decimal(rd_str(r, DW_EVENT_BYTES_MAX));
		break;
	case DW_STRING:
		*out = dw_str(rd_str(r, DW_EVENT_BYTES_MAX));
		break;
	case DW_ENTITY:
		out->tag = DW_ENTITY;
		out->u.ent.type = rd_str(r, DW_EVENT_BYTES_MAX);
		out->u.ent.id = rd_str(r, DW_EVENT_BYTES_MAX);
		break;
	case DW_ARRAY:
	case DW_OBJECT:
		n = rd_u32(r);
		/* An element is a byte at least, a member five: the count is bounded by what is
		 * there. */
		if (r->bad || n > rd_left(r) / (tag == DW_ARRAY ? 1 : 5))
			return box_fail(err, BOX_ECORRUPT, 0,
			    "stored value: a count is larger than the record");
		if (tag == DW_ARRAY) {
			struct dw_val *v = ARENA_VEC(a, struct dw_val, n);

			if (v == NULL)
				return box_nomem(err, "a list");
			for (uint32_t i = 0; i < n; i++) {
				if (get(r, a, depth + 1, &v[i], err) < 0)
					return -1;
			}
			out->tag = DW_ARRAY;
			out->u.arr.v = v;
			out->u.arr.n = n;
		} else {
			struct dw_member *m = ARENA_VEC(a, struct dw_member, n);

			if (m == NULL)
				return box_nomem(err, "a record");
			for (uint32_t i = 0; i < n; i++) {
				m[i].name = rd_str(r, DW_EVENT_BYTES_MAX);
				if (get(r, a, depth + 1, &m[i].val, err) < 0)
					return -1;
			}
			if (n > 1 && no_repeats(a, m, n, err) < 0)
				return -1;
			*out = dw_obj(m, n);
		}
		break;
	default:
		return box_fail(err, BOX_ECORRUPT, 0, "stored value: unknown tag %u", tag);
	}
	if (r->bad)
		return box_fail(err, BOX_ECORRUPT, 0, "stored value: cut short");
	return 0;
}

int dw_val_get(struct rd *r, struct arena *a, struct dw_val *out, struct box_err *err)
{
	return get(r, a, 0, out, err);
}

static void put_uid(struct buf *b, const struct dw_uid *u)
{
	buf_put_byte(b, !dw_uid_is_none(u));
	if (dw_uid_is_none(u))
		return;
	buf_put_str(b, u->type);
	buf_put_str(b, u->id);
}

static struct dw_uid get_uid(struct rd *r)
{
	struct dw_uid u = { { NULL, 0 }, { NULL, 0 } };

	if (rd_u8(r) == 0)
		return u;
	u.type = rd_str(r, DW_EVENT_BYTES_MAX);
	u.id = rd_str(r, DW_EVENT_BYTES_MAX);
	return u;
}

void dw_event_put(struct buf *b, const struct dw_event *e, enum dw_event_parts parts)
{
	buf_put_byte(b, EVENT_VERSION);
	buf_put_byte(b, (uint8_t)parts);
	buf_put_str(b, e->ns);
	buf_put_str(b, e->id);
	buf_put_str(b, e->kind);
	buf_put_u64(b, (uint64_t)e->ts);
	put_uid(b, &e->principal);
	put_uid(b, &e->resource);
	dw_val_put(b, &e->logged);
	if (parts == DW_PUT_HISTORY)
		return;
	dw_val_put(b, &e->context);
	buf_put_u32(b, (uint32_t)e->nents);
	for (size_t i = 0; i < e->nents; i++) {
		const struct dw_entity *x = &e->ents[i];

		put_uid(b, &x->uid);
		dw_val_put(b, &x->attrs);
		buf_put_u32(b, (uint32_t)x->nparents);
		for (size_t k = 0; k < x->nparents; k++)
			put_uid(b, &x->parents[k]);
	}
}

static int bag(
    struct rd *r, struct arena *a, const char *what, struct dw_val *out, struct box_err *err)
{
	if (get(r, a, 0, out, err) < 0)
		return -1;
	if (out->tag != DW_OBJECT && out->tag != DW_NULL)
		return box_fail(err, BOX_ECORRUPT, 0, "stored event: %s is not a record", what);
	return 0;
}

static int get_entity(struct rd *r, struct arena *a, struct dw_entity *x, struct box_err *err)
{
	struct dw_uid *p;
	uint32_t n;

	x->uid = get_uid(r);
	if (bag(r, a, "an entity's data", &x->attrs, err) < 0)
		return -1;
	n = rd_u32(r);
	if (r->bad || n > rd_left(r))
		return box_fail(
		    err, BOX_ECORRUPT, 0, "stored event: a count is larger than the record");
	p = ARENA_VEC(a, struct dw_uid, n);
	if (p == NULL)
		return box_nomem(err, "parents");
	for (uint32_t k = 0; k < n; k++)
		p[k] = get_uid(r);
	x->parents = p;
	x->nparents = n;
	return 0;
}

int dw_event_get(struct rd *r, struct arena *a, struct dw_event *out, struct box_err *err)
{
	struct dw_event e = { 0 };
	uint8_t version = rd_u8(r), parts = rd_u8(r);
	struct dw_entity *ents;
	uint32_t n;

	if (r->bad || version != EVENT_VERSION || parts > DW_PUT_ALL)
		return box_fail(err, BOX_ECORRUPT, 0, "stored event: unknown version");
	e.ns = rd_str(r, DW_EVENT_BYTES_MAX);
	e.id = rd_str(r, DW_EVENT_BYTES_MAX);
	e.kind = rd_str(r, DW_EVENT_BYTES_MAX);
	e.ts = (int64_t)rd_u64(r);
	e.principal = get_uid(r);
	e.resource = get_uid(r);
	if (bag(r, a, "the logged part", &e.logged, err) < 0)
		return -1;
	if (parts == DW_PUT_ALL) {
		if (bag(r, a, "the context", &e.context, err) < 0)
			return -1;
		n = rd_u32(r);
		if (r->bad || n > rd_left(r))
			return box_fail(err, BOX_ECORRUPT, 0,
			    "stored event: a count is larger than the record");
		ents = ARENA_VEC(a, struct dw_entity, n);
		if (ents == NULL)
			return box_nomem(err, "entities");
		for (uint32_t i = 0; i < n; i++) {
			if (get_entity(r, a, &ents[i], err) < 0)
				return -1;
		}
		e.ents = ents;
		e.nents = n;
	}
	if (r->bad)
		return box_fail(err, BOX_ECORRUPT, 0, "stored event: cut short");
	*out = e;
	return 0;
}
