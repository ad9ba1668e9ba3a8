/* Values: sets and records in canonical order, equality, the total order, hashes, copies. */
#include "cedar/value.h"
#include "cedar/sort.h"

#include "base/ban.h"

static int cmp_i64(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int cmp_sym(cedar_sym a, cedar_sym b)
{
	return a == b ? 0 : sv_cmp(cedar_sv(a), cedar_sv(b));
}

static int cmp_record(const struct cedar_record *a, const struct cedar_record *b)
{
	uint32_t i;
	int c;

	for (i = 0; i < a->n && i < b->n; i++) {
		c = cmp_sym(a->f[i].key, b->f[i].key);
		if (c == 0)
			c = cedar_value_cmp(&a->f[i].v, &b->f[i].v);
		if (c != 0)
			return c;
	}
	return cmp_i64(a->n, b->n);
}

static int cmp_set(const struct cedar_set *a, const struct cedar_set *b)
{
	uint32_t i;
	int c;

	for (i = 0; i < a->n && i < b->n; i++) {
		c = cedar_value_cmp(&a->v[i], &b->v[i]);
		if (c != 0)
			return c;
	}
	return cmp_i64(a->n, b->n);
}

static int cmp_ip(const struct cedar_ip *a, const struct cedar_ip *b)
{
	int c;

	if (a->v6 != b->v6)
		return a->v6 ? 1 : -1;
	c = memcmp(a->addr, b->addr, sizeof(a->addr));
	return c != 0 ? c : cmp_i64(a->prefix, b->prefix);
}

int cedar_value_cmp(const struct cedar_value *a, const struct cedar_value *b)
{
	int c;

	if (a->kind != b->kind)
		return cmp_i64(a->kind, b->kind);
	switch (a->kind) {
	case CEDAR_BOOL:
		return cmp_i64(a->b, b->b);
	case CEDAR_LONG:
	case CEDAR_DECIMAL:
	case CEDAR_DATETIME:
	case CEDAR_DURATION:
		return cmp_i64(a->i, b->i);
	case CEDAR_STRING:
		return cmp_sym(a->s, b->s);
	case CEDAR_ENTITY:
		c = cmp_sym(a->uid.type, b->uid.type);
		return c != 0 ? c : cmp_sym(a->uid.id, b->uid.id);
	case CEDAR_SET:
		return a->set == b->set ? 0 : cmp_set(a->set, b->set);
	case CEDAR_RECORD:
		return a->rec == b->rec ? 0 : cmp_record(a->rec, b->rec);
	case CEDAR_IP:
		return cmp_ip(a->ip, b->ip);
	}
	return 0;
}

static bool eq_record(const struct cedar_record *a, const struct cedar_record *b)
{
	uint32_t i;

	if (a == b)
		return true;
	if (a->n != b->n)
		return false;
	for (i = 0; i < a->n; i++)
		if (!cedar_str_eq(a->f[i].key, b->f[i].key) ||
		    !cedar_value_eq(&a->f[i].v, &b->f[i].v))
			return false;
	return true;
}

static bool eq_set(const struct cedar_set *a, const struct cedar_set *b)
{
	uint32_t i;

	if (a == b)
		return true;
	if (a->n != b->n)
		return false;
	for (i = 0; i < a->n; i++)
		if (!cedar_value_eq(&a->v[i], &b->v[i]))
			return false;
	return true;
}

bool cedar_value_eq(const struct cedar_value *a, const struct cedar_value *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case CEDAR_BOOL:
		return a->b == b->b;
	case CEDAR_LONG:
	case CEDAR_DECIMAL:
	case CEDAR_DATETIME:
	case CEDAR_DURATION:
		return a->i == b->i;
	case CEDAR_STRING:
		return cedar_str_eq(a->s, b->s);
	case CEDAR_ENTITY:
		return cedar_uid_eq(a->uid, b->uid);
	case CEDAR_SET:
		return eq_set(a->set, b->set);
	case CEDAR_RECORD:
		return eq_record(a->rec, b->rec);
	case CEDAR_IP:
		return cmp_ip(a->ip, b->ip) == 0;
	}
	return false;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0xff51afd7ed558ccdu;
	return h ^ (h >> 32);
}

uint64_t cedar_value_hash(const struct cedar_value *v)
{
	uint64_t h = mix(0x2545f4914f6cdd1du, v->kind);
	uint32_t i;

	switch (v->kind) {
	case CEDAR_BOOL:
		return mix(h, v->b);
	case CEDAR_LONG:
	case CEDAR_DECIMAL:
	case CEDAR_DATETIME:
	case CEDAR_DURATION:
		return mix(h, (uint64_t)v->i);
	case CEDAR_STRING:
		return mix(h, v->s->hash);
	case CEDAR_ENTITY:
		return mix(h, cedar_uid_hash(v->uid));
	case CEDAR_SET:
		for (i = 0; i < v->set->n; i++)
			h = mix(h, cedar_value_hash(&v->set->v[i]));
		return h;
	case CEDAR_RECORD:
		for (i = 0; i < v->rec->n; i++)
			h = mix(mix(h, v->rec->f[i].key->hash), cedar_value_hash(&v->rec->f[i].v));
		return h;
	case CEDAR_IP:
		h = mix(h, (uint64_t)v->ip->prefix << 1 | v->ip->v6);
		for (i = 0; i < sizeof(v->ip->addr); i++)
			h = mix(h, v->ip->addr[i]);
		return h;
	}
	return h;
}

static int by_value(const void *a, const void *b)
{
	return cedar_value_cmp(a, b);
}

static int by_key(const void *a, const void *b)
{
	return cmp_sym(((const struct cedar_field *)a)->key, ((const struct cedar_field *)b)->key);
}

int cedar_set_make(struct arena *a, struct cedar_value *v, size_t n, struct cedar_value *out)
{
	struct cedar_set *s = ARENA_NEW(a, struct cedar_set);
	size_t i, m = 0;

	if (s == NULL || n > UINT32_MAX)
		return -1;
	for (i = 1; i < n; i++)
		if (cedar_value_cmp(&v[i - 1], &v[i]) >= 0)
			break;
	if (i < n) {
		cedar_sort(v, n, sizeof(*v), by_value);
		for (i = 0; i < n; i++)
			if (m == 0 || !cedar_value_eq(&v[m - 1], &v[i]))
				v[m++] = v[i];
		n = m;
	}
	s->n = (uint32_t)n;
	s->v = v;
	*out = (struct cedar_value){ .kind = CEDAR_SET, .set = s };
	return 0;
}

int cedar_record_make(
    struct arena *a, struct cedar_field *f, size_t n, struct cedar_value *out, cedar_sym *dup)
{
	struct cedar_record *r = ARENA_NEW(a, struct cedar_record);
	size_t i;

	if (dup != NULL)
		*dup = NULL;
	if (r == NULL || n > UINT32_MAX)
		return -1;
	for (i = 1; i < n; i++)
		if (by_key(&f[i - 1], &f[i]) >= 0)
			break;
	if (i < n) {
		cedar_sort(f, n, sizeof(*f), by_key);
		for (i = 1; i < n; i++)
			if (cedar_str_eq(f[i - 1].key, f[i].key)) {
				if (dup != NULL)
					*dup = f[i].key;
				return -1;
			}
	}
	r->n = (uint32_t)n;
	r->f = f;
	*out = (struct cedar_value){ .kind = CEDAR_RECORD, .rec = r };
	return 0;
}

const struct cedar_value *cedar_record_get_sv(const struct cedar_record *r, sv key)
{
	size_t lo = 0, hi = r->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = sv_cmp(cedar_sv(r->f[mid].key), key);

		if (c == 0)
			return &r->f[mid].v;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

const struct cedar_value *cedar_record_get(const struct cedar_record *r, cedar_sym key)
{
	uint32_t i;

	if (r->n > 16)
		return cedar_record_get_sv(r, cedar_sv(key));
	for (i = 0; i < r->n; i++)
		if (cedar_str_eq(r->f[i].key, key))
			return &r->f[i].v;
	return NULL;
}

bool cedar_set_has(const struct cedar_set *s, const struct cedar_value *v)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = cedar_value_cmp(&s->v[mid], v);

		if (c == 0)
			return true;
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

bool cedar_set_has_all(const struct cedar_set *a, const struct cedar_set *b)
{
	uint32_t i;

	if (b->n > a->n)
		return false;
	for (i = 0; i < b->n; i++)
		if (!cedar_set_has(a, &b->v[i]))
			return false;
	return true;
}

bool cedar_set_has_any(const struct cedar_set *a, const struct cedar_set *b)
{
	uint32_t i;

	if (b->n > a->n) {
		const struct cedar_set *c = a;

		a = b;
		b = c;
	}
	for (i = 0; i < b->n; i++)
		if (cedar_set_has(a, &b->v[i]))
			return true;
	return false;
}

static int copy_set(const struct cedar_syms *t, struct arena *a, const struct cedar_value *v,
    struct cedar_value *out)
{
	struct cedar_value *m = ARENA_VEC(a, struct cedar_value, v->set->n);
	struct cedar_set *s = ARENA_NEW(a, struct cedar_set);
	uint32_t i;

	if (m == NULL || s == NULL)
		return -1;
	for (i = 0; i < v->set->n; i++)
		if (cedar_value_copy(t, a, &v->set->v[i], &m[i]) < 0)
			return -1;
	*s = (struct cedar_set){ v->set->n, m };
	out->set = s;
	return 0;
}

static int copy_record(const struct cedar_syms *t, struct arena *a, const struct cedar_value *v,
    struct cedar_value *out)
{
	struct cedar_field *m = ARENA_VEC(a, struct cedar_field, v->rec->n);
	struct cedar_record *r = ARENA_NEW(a, struct cedar_record);
	uint32_t i;

	if (m == NULL || r == NULL)
		return -1;
	for (i = 0; i < v->rec->n; i++) {
		m[i].key = cedar_str_new(t, a, cedar_sv(v->rec->f[i].key));
		if (m[i].key == NULL || cedar_value_copy(t, a, &v->rec->f[i].v, &m[i].v) < 0)
			return -1;
	}
	*r = (struct cedar_record){ v->rec->n, m };
	out->rec = r;
	return 0;
}

int cedar_value_copy(const struct cedar_syms *t, struct arena *a, const struct cedar_value *v,
    struct cedar_value *out)
{
	struct cedar_ip *ip;

	*out = *v;
	switch (v->kind) {
	case CEDAR_BOOL:
	case CEDAR_LONG:
	case CEDAR_DECIMAL:
	case CEDAR_DATETIME:
	case CEDAR_DURATION:
		return 0;
	case CEDAR_STRING:
		out->s = cedar_str_new(t, a, cedar_sv(v->s));
		return out->s != NULL ? 0 : -1;
	case CEDAR_ENTITY:
		out->uid.type = cedar_str_new(t, a, cedar_sv(v->uid.type));
		out->uid.id = cedar_str_new(t, a, cedar_sv(v->uid.id));
		return out->uid.type != NULL && out->uid.id != NULL ? 0 : -1;
	case CEDAR_SET:
		return copy_set(t, a, v, out);
	case CEDAR_RECORD:
		return copy_record(t, a, v, out);
	case CEDAR_IP:
		ip = ARENA_NEW(a, struct cedar_ip);
		if (ip == NULL)
			return -1;
		*ip = *v->ip;
		out->ip = ip;
		return 0;
	}
	return -1;
}

const char *cedar_kind_name(enum cedar_kind k)
{
	switch (k) {
	case CEDAR_BOOL:
		return "bool";
	case CEDAR_LONG:
		return "long";
	case CEDAR_STRING:
		return "string";
	case CEDAR_ENTITY:
		return "entity";
	case CEDAR_SET:
		return "set";
	case CEDAR_RECORD:
		return "record";
	case CEDAR_DECIMAL:
		return "decimal";
	case CEDAR_IP:
		return "ipaddr";
	case CEDAR_DATETIME:
		return "datetime";
	case CEDAR_DURATION:
		return "duration";
	}
	return "?";
}
