/* Values and events: look-up, equality, keys, printing. See event.h. */
#include "dogwood/event.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "base/ban.h"

const struct dw_val *dw_get(const struct dw_val *v, sv name)
{
	if (v == NULL || v->tag != DW_OBJECT)
		return NULL;
	for (size_t i = 0; i < v->u.obj.n; i++) {
		if (sv_eq(v->u.obj.m[i].name, name))
			return &v->u.obj.m[i].val;
	}
	return NULL;
}

const struct dw_val *dw_walk(const struct dw_val *v, const sv *path, size_t n)
{
	for (size_t i = 0; i < n && v != NULL; i++)
		v = dw_get(v, path[i]);
	return v;
}

bool dw_decimal_parse(sv s, int64_t *ten_thousandths)
{
	size_t i = 0, digits = 0, frac = 0;
	bool neg = false;
	int64_t r = 0;

	if (i < s.n && s.p[i] == '-') {
		neg = true;
		i++;
	}
	/* The value is built negative, so that the smallest one fits. */
	for (; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++, digits++) {
		if (__builtin_mul_overflow(r, 10, &r) ||
		    __builtin_sub_overflow(r, s.p[i] - '0', &r))
			return false;
	}
	if (digits == 0 || i >= s.n || s.p[i] != '.')
		return false;
	for (i++; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++, frac++) {
		if (frac == 4)
			return false;
		if (__builtin_mul_overflow(r, 10, &r) ||
		    __builtin_sub_overflow(r, s.p[i] - '0', &r))
			return false;
	}
	if (i != s.n || frac == 0)
		return false;
	for (; frac < 4; frac++) {
		if (__builtin_mul_overflow(r, 10, &r))
			return false;
	}
	if (!neg && __builtin_sub_overflow(0, r, &r))
		return false;
	*ten_thousandths = r;
	return true;
}

static int cmp_member(const void *a, const void *b)
{
	const struct dw_member *const *x = a, *const *y = b;

	return sv_cmp((*x)->name, (*y)->name);
}

#define SORT_HERE 24

/* The members in name order: in `here` when they are few, else in *heap (to be freed). NULL without
 * memory. */
static const struct dw_member **sorted(
    const struct dw_val *v, const struct dw_member **here, const struct dw_member ***heap)
{
	const struct dw_member **p = here;
	size_t n = v->u.obj.n;

	*heap = NULL;
	if (n > SORT_HERE) {
		p = *heap = calloc(n, sizeof(struct dw_member *));
		if (p == NULL)
			return NULL;
	}
	for (size_t i = 0; i < n; i++)
		p[i] = &v->u.obj.m[i];
	if (n > 1)
		qsort(p, n, sizeof(struct dw_member *), cmp_member);
	return p;
}

/* Kinds as they stand in keys. Not stored anywhere. */
enum key_tag { KEY_DECIMAL_TEXT = 16, KEY_DIGEST = 17 };

#define KEY_STRING_MAX 256

/* A string of a key. Long ones, which an agent may choose and repeat in endless variation, stand
 * there by their SHA-256, so that a table holds a bounded number of bytes for each of them. */
static void key_string(struct buf *b, uint8_t tag, sv s)
{
	unsigned char digest[32];
	size_t n = 0;

	if (s.n <= KEY_STRING_MAX) {
		buf_put_byte(b, tag);
		buf_put_str(b, s);
		return;
	}
	if (EVP_Q_digest(NULL, "SHA256", NULL, s.p, s.n, digest, &n) != 1 || n != sizeof(digest)) {
		b->bad = true;
		return;
	}
	buf_put_byte(b, KEY_DIGEST);
	buf_put_byte(b, tag);
	buf_put(b, digest, sizeof(digest));
}

void dw_val_key(struct buf *b, const struct dw_val *v)
{
	const struct dw_member *here[SORT_HERE], **heap, **m;
	int64_t d;

	switch (v->tag) {
	case DW_NULL:
		buf_put_byte(b, DW_NULL);
		return;
	case DW_BOOL:
		buf_put_byte(b, DW_BOOL);
		buf_put_byte(b, v->u.b);
		return;
	case DW_INT:
		buf_put_byte(b, DW_INT);
		buf_put_u64(b, (uint64_t)v->u.i);
		return;
	case DW_DECIMAL:
		if (dw_decimal_parse(v->u.s, &d)) {
			buf_put_byte(b, DW_DECIMAL);
			buf_put_u64(b, (uint64_t)d);
		} else {
			key_string(b, KEY_DECIMAL_TEXT, v->u.s);
		}
		return;
	case DW_STRING:
		key_string(b, DW_STRING, v->u.s);
		return;
	case DW_ENTITY:
		key_string(b, DW_ENTITY, v->u.ent.type);
		key_string(b, DW_ENTITY, v->u.ent.id);
		return;
	case DW_ARRAY:
		buf_put_byte(b, DW_ARRAY);
		buf_put_u32(b, (uint32_t)v->u.arr.n);
		for (size_t i = 0; i < v->u.arr.n; i++)
			dw_val_key(b, &v->u.arr.v[i]);
		return;
	case DW_OBJECT:
		m = sorted(v, here, &heap);
		if (m == NULL) {
			b->bad = true;
			return;
		}
		buf_put_byte(b, DW_OBJECT);
		buf_put_u32(b, (uint32_t)v->u.obj.n);
		for (size_t i = 0; i < v->u.obj.n; i++) {
			buf_put_str(b, m[i]->name);
			dw_val_key(b, &m[i]->val);
		}
		free(heap);
		return;
	}
}

static bool obj_eq(const struct dw_val *a, const struct dw_val *b)
{
	const struct dw_member *ha[SORT_HERE], *hb[SORT_HERE], **xa, **xb, **ma, **mb;
	bool eq = true;

	if (a->u.obj.n != b->u.obj.n)
		return false;
	ma = sorted(a, ha, &xa);
	mb = sorted(b, hb, &xb);
	/* Without memory "unequal" is no safe answer, but neither is any other: the same request
	 * fails at its next allocation. */
	if (ma == NULL || mb == NULL)
		eq = false;
	for (size_t i = 0; eq && i < a->u.obj.n; i++)
		eq = sv_eq(ma[i]->name, mb[i]->name) && dw_val_eq(&ma[i]->val, &mb[i]->val);
	free(xa);
	free(xb);
	return eq;
}

bool dw_val_eq(const struct dw_val *a, const struct dw_val *b)
{
	int64_t x, y;

	if (a->tag != b->tag)
		return false;
	switch (a->tag) {
	case DW_NULL:
		return true;
	case DW_BOOL:
		return a->u.b == b->u.b;
	case DW_INT:
		return a->u.i == b->u.i;
	case DW_DECIMAL:
		if (dw_decimal_parse(a->u.s, &x) && dw_decimal_parse(b->u.s, &y))
			return x == y;
		return sv_eq(a->u.s, b->u.s);
	case DW_STRING:
		return sv_eq(a->u.s, b->u.s);
	case DW_ENTITY:
		return sv_eq(a->u.ent.type, b->u.ent.type) && sv_eq(a->u.ent.id, b->u.ent.id);
	case DW_ARRAY:
		if (a->u.arr.n != b->u.arr.n)
			return false;
		for (size_t i = 0; i < a->u.arr.n; i++) {
			if (!dw_val_eq(&a->u.arr.v[i], &b->u.arr.v[i]))
				return false;
		}
		return true;
	case DW_OBJECT:
		return obj_eq(a, b);
	}
	return false;
}

static bool dup_to(struct arena *a, sv s, sv *out)
{
	*out = arena_dup(a, s);
	return out->p != NULL;
}

bool dw_val_copy(struct arena *a, const struct dw_val *v, struct dw_val *out)
{
	struct dw_val *vec;
	struct dw_member *m;

	*out = *v;
	switch (v->tag) {
	case DW_NULL:
	case DW_BOOL:
	case DW_INT:
		return true;
	case DW_DECIMAL:
	case DW_STRING:
		return dup_to(a, v->u.s, &out->u.s);
	case DW_ENTITY:
		return dup_to(a, v->u.ent.type, &out->u.ent.type) &&
		       dup_to(a, v->u.ent.id, &out->u.ent.id);
	case DW_ARRAY:
		vec = ARENA_VEC(a, struct dw_val, v->u.arr.n);
		if (vec == NULL)
			return false;
		for (size_t i = 0; i < v->u.arr.n; i++) {
			if (!dw_val_copy(a, &v->u.arr.v[i], &vec[i]))
				return false;
		}
		out->u.arr.v = vec;
		return true;
	case DW_OBJECT:
		m = ARENA_VEC(a, struct dw_member, v->u.obj.n);
		if (m == NULL)
			return false;
		for (size_t i = 0; i < v->u.obj.n; i++) {
			if (!dup_to(a, v->u.obj.m[i].name, &m[i].name) ||
			    !dw_val_copy(a, &v->u.obj.m[i].val, &m[i].val))
				return false;
		}
		out->u.obj.m = m;
		return true;
	}
	return false;
}

static void print_str(struct buf *b, sv s)
{
	buf_put_byte(b, '"');
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '"' || c == '\\')
			buf_putf(b, "\\%c", c);
		else if (c == '\n')
			buf_put_c(b, "\\n");
		else if (c == '\t')
			buf_put_c(b, "\\t");
		else if (c == '\r')
			buf_put_c(b, "\\r");
		else if (c == 0)
			buf_put_c(b, "\\0");
		else if (c < 0x20 || c == 0x7f)
			buf_putf(b, "\\x%02x", c);
		else
			buf_put_byte(b, c);
	}
	buf_put_byte(b, '"');
}

static bool is_ident(sv s)
{
	if (s.n == 0 || (s.p[0] >= '0' && s.p[0] <= '9'))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!(c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		        (c >= '0' && c <= '9')))
			return false;
	}
	return true;
}

void dw_val_print(struct buf *b, const struct dw_val *v)
{
	switch (v->tag) {
	case DW_NULL:
		buf_put_c(b, "null");
		return;
	case DW_BOOL:
		buf_put_c(b, v->u.b ? "true" : "false");
		return;
	case DW_INT:
		buf_putf(b, "%lld", (long long)v->u.i);
		return;
	case DW_DECIMAL:
		buf_put_sv(b, v->u.s);
		return;
	case DW_STRING:
		print_str(b, v->u.s);
		return;
	case DW_ENTITY:
		buf_put_sv(b, v->u.ent.type);
		buf_put_c(b, "::");
		print_str(b, v->u.ent.id);
		return;
	case DW_ARRAY:
		buf_put_byte(b, '[');
		for (size_t i = 0; i < v->u.arr.n; i++) {
			if (i != 0)
				buf_put_c(b, ", ");
			dw_val_print(b, &v->u.arr.v[i]);
		}
		buf_put_byte(b, ']');
		return;
	case DW_OBJECT:
		buf_put_byte(b, '{');
		for (size_t i = 0; i < v->u.obj.n; i++) {
			buf_put_c(b, i != 0 ? ", " : " ");
			if (is_ident(v->u.obj.m[i].name))
				buf_put_sv(b, v->u.obj.m[i].name);
			else
				print_str(b, v->u.obj.m[i].name);
			buf_put_c(b, ": ");
			dw_val_print(b, &v->u.obj.m[i].val);
		}
		buf_put_c(b, v->u.obj.n != 0 ? " }" : "}");
		return;
	}
}

void dw_rec_add(struct dw_rec *r, sv name, struct dw_val v)
{
	if (r->bad)
		return;
	if (r->n == r->cap) {
		size_t cap = r->cap != 0 ? r->cap * 2 : 8;
		struct dw_member *m = arena_grow(r->a, r->m, r->n, cap, sizeof(*m));

		if (m == NULL) {
			r->bad = true;
			return;
		}
		r->m = m;
		r->cap = cap;
	}
	r->m[r->n++] = (struct dw_member){ name, v };
}
