/* See jtree.h. Recursive descent with a depth count. */
#include "cedar/jtree.h"

#include <stdlib.h>

#include <utf8proc.h>

#include "cedar/json.h"
#include "cedar/sort.h"

#include "base/ban.h"

struct jp {
	struct arena *a;
	sv text;
	size_t at;
	unsigned depth;
	struct box_err *err;
};

static void *fail_at(struct jp *p, size_t at, const char *what)
{
	struct cedar_span s = cedar_span_at(p->text, at, 0);

	box_fail(p->err, BOX_EPARSE, 0, "%u:%u: %s", s.line, s.col, what);
	return NULL;
}

static void *no_room(struct jp *p)
{
	box_fail(p->err, BOX_ELIMIT, 0, "the JSON value needs more memory than is allowed");
	return NULL;
}

static int peek(const struct jp *p)
{
	return p->at < p->text.n ? (uint8_t)p->text.p[p->at] : -1;
}

static void blanks(struct jp *p)
{
	int c;

	while ((c = peek(p)) == ' ' || c == '\t' || c == '\n' || c == '\r')
		p->at++;
}

static int hex4(struct jp *p, uint32_t *out)
{
	uint64_t v;

	if (p->text.n - p->at < 4 || !sv_to_u64(sv_sub(p->text, p->at, 4), 16, 0xffff, &v))
		return -1;
	p->at += 4;
	*out = (uint32_t)v;
	return 0;
}

/* \uXXXX, and the second half of a pair. The cursor is behind the u. */
static int unicode(struct jp *p, uint32_t *cp)
{
	uint32_t lo;

	if (hex4(p, cp) < 0)
		return -1;
	if (*cp < 0xd800 || *cp > 0xdfff)
		return 0;
	if (*cp > 0xdbff || p->text.n - p->at < 6 || p->text.p[p->at] != '\\' ||
	    p->text.p[p->at + 1] != 'u')
		return -1;
	p->at += 2;
	if (hex4(p, &lo) < 0 || lo < 0xdc00 || lo > 0xdfff)
		return -1;
	*cp = 0x10000 + ((*cp - 0xd800) << 10) + (lo - 0xdc00);
	return 0;
}

/* The string at the cursor (on its quote). */
static int string(struct jp *p, sv *out)
{
	size_t from = p->at + 1, end = from, n = 0;
	uint32_t cp;
	char *q;

	while (end < p->text.n && p->text.p[end] != '"')
		end += p->text.p[end] == '\\' ? 2 : 1;
	if (end >= p->text.n) {
		fail_at(p, p->at, "this string is not closed");
		return -1;
	}
	/* Decoding never makes it longer. */
	q = arena_alloc(p->a, end - from + 1, 1);
	if (q == NULL) {
		no_room(p);
		return -1;
	}
	for (p->at = from; p->at < end;) {
		char c = p->text.p[p->at++];
		static const char from_c[] = "\"\\/bfnrt", to_c[] = "\"\\/\b\f\n\r\t";
		const char *e;

		if ((uint8_t)c < 0x20) {
			fail_at(p, p->at - 1, "a control character in a string must be escaped");
			return -1;
		}
		if (c != '\\') {
			q[n++] = c;
			continue;
		}
		c = p->text.p[p->at++];
		e = c != '\0' ? strchr(from_c, c) : NULL;
		if (e != NULL) {
			q[n++] = to_c[e - from_c];
		} else if (c == 'u' && unicode(p, &cp) == 0) {
			n += (size_t)utf8proc_encode_char(
			    (utf8proc_int32_t)cp, (utf8proc_uint8_t *)q + n);
		} else {
			fail_at(p, p->at - 1, "this is not an escape of JSON");
			return -1;
		}
	}
	p->at = end + 1;
	*out = (sv){ q, n };
	return 0;
}

static struct jnode *number(struct jp *p, struct jnode *j)
{
	size_t from = p->at;
	sv t;

	if (peek(p) == '-')
		p->at++;
	if (peek(p) == '0') {
		p->at++;
	} else {
		if (peek(p) < '1' || peek(p) > '9')
			return fail_at(p, from, "this is not a JSON value");
		while (peek(p) >= '0' && peek(p) <= '9')
			p->at++;
	}
	t = sv_sub(p->text, from, p->at - from);
	if (peek(p) != '.' && peek(p) != 'e' && peek(p) != 'E' &&
	    sv_to_i64(t, 10, INT64_MIN, INT64_MAX, &j->i)) {
		j->kind = J_INT;
		return j;
	}
	if (peek(p) == '.') {
		p->at++;
		if (peek(p) < '0' || peek(p) > '9')
			return fail_at(p, p->at, "a digit must follow the point");
		while (peek(p) >= '0' && peek(p) <= '9')
			p->at++;
	}
	if (peek(p) == 'e' || peek(p) == 'E') {
		p->at++;
		if (peek(p) == '+' || peek(p) == '-')
			p->at++;
		if (peek(p) < '0' || peek(p) > '9')
			return fail_at(p, p->at, "a digit must follow the exponent");
		while (peek(p) >= '0' && peek(p) <= '9')
			p->at++;
	}
	j->kind = J_REAL;
	j->s = sv_sub(p->text, from, p->at - from);
	return j;
}

static int by_sv(const void *a, const void *b)
{
	return sv_cmp(*(const sv *)a, *(const sv *)b);
}

/* Is a key there twice? */
static bool repeated(struct arena *a, const sv *key, size_t n, sv *which)
{
	size_t i, j;
	sv *v;

	if (n <= 8) {
		for (i = 0; i < n; i++)
			for (j = 0; j < i; j++)
				if (sv_eq(key[i], key[j])) {
					*which = key[i];
					return true;
				}
		return false;
	}
	v = arena_grow(a, key, n, n, sizeof(*v));
	if (v == NULL) {
		*which = (sv){ NULL, 0 };
		return true;
	}
	cedar_sort(v, n, sizeof(*v), by_sv);
	for (i = 1; i < n; i++)
		if (sv_eq(v[i - 1], v[i])) {
			*which = v[i];
			return true;
		}
	return false;
}

static struct jnode *value(struct jp *p);

/* An array or an object; the cursor is on its bracket. */
static struct jnode *group(struct jp *p, struct jnode *j)
{
	bool obj = peek(p) == '{';
	char close = obj ? '}' : ']';
	struct jnode **item = NULL;
	size_t n = 0, cap = 0, from = p->at;
	sv *key = NULL, twice;

	if (++p->depth > CEDAR_JSON_MAX_DEPTH)
		return fail_at(p, from, "the JSON value is nested too deep");
	p->at++;
	blanks(p);
	while (peek(p) != close) {
		if (n == cap) {
			size_t want = cap != 0 ? cap * 2 : 4;

			item = arena_grow(p->a, item, n, want, sizeof(struct jnode *));
			key = obj ? arena_grow(p->a, key, n, want, sizeof(*key)) : NULL;
			if (item == NULL || (obj && key == NULL))
				return no_room(p);
			cap = want;
		}
		if (obj) {
			if (peek(p) != '"')
				return fail_at(p, p->at, "a key in quotes must stand here");
			if (string(p, &key[n]) < 0)
				return NULL;
			blanks(p);
			if (peek(p) != ':')
				return fail_at(p, p->at, "a `:` must stand here");
			p->at++;
		}
		item[n] = value(p);
		if (item[n] == NULL)
			return NULL;
		n++;
		blanks(p);
		if (peek(p) == ',') {
			p->at++;
			blanks(p);
			if (peek(p) == close)
				return fail_at(p, p->at, "a value must stand behind the comma");
		} else if (peek(p) != close) {
			return fail_at(p, p->at,
			    obj ? "`,` or `}` must stand here" : "`,` or `]` must stand here");
		}
	}
	p->at++;
	p->depth--;
	if (obj && repeated(p->a, key, n, &twice))
		return twice.p == NULL ? no_room(p)
		                       : fail_at(p, from, "a key stands twice in this object");
	j->kind = obj ? J_OBJ : J_ARR;
	j->n = (uint32_t)n;
	j->item = item;
	j->key = key;
	return j;
}

static bool word(struct jp *p, sv w)
{
	if (!sv_starts(sv_sub(p->text, p->at, SIZE_MAX), w))
		return false;
	p->at += w.n;
	return true;
}

static struct jnode *value(struct jp *p)
{
	struct jnode *j = ARENA_NEW(p->a, struct jnode), *r = j;

	if (j == NULL)
		return no_room(p);
	blanks(p);
	j->off = (uint32_t)p->at;
	switch (peek(p)) {
	case '{':
	case '[':
		r = group(p, j);
		break;
	case '"':
		j->kind = J_STR;
		r = string(p, &j->s) < 0 ? NULL : j;
		break;
	case 't':
	case 'f':
		j->kind = J_BOOL;
		j->b = peek(p) == 't';
		if (!word(p, j->b ? SV("true") : SV("false")))
			r = fail_at(p, p->at, "this is not a JSON value");
		break;
	case 'n':
		j->kind = J_NULL;
		if (!word(p, SV("null")))
			r = fail_at(p, p->at, "this is not a JSON value");
		break;
	case -1:
		r = fail_at(p, p->at, "the JSON text ends too early");
		break;
	default:
		r = number(p, j);
	}
	j->len = (uint32_t)p->at - j->off;
	return r;
}

struct jnode *jtree_parse(struct arena *a, sv text, struct box_err *err)
{
	struct jp p = { .a = a, .text = text, .err = err };
	struct jnode *j;

	if (text.n > CEDAR_JSON_MAX) {
		box_fail(err, BOX_ELIMIT, 0, "the JSON text is larger than 64 MiB");
		return NULL;
	}
	if (!sv_is_utf8(text)) {
		box_fail(err, BOX_EPARSE, 0, "the JSON text is not UTF-8");
		return NULL;
	}
	j = value(&p);
	if (j == NULL)
		return NULL;
	blanks(&p);
	if (p.at != text.n)
		return fail_at(&p, p.at, "nothing may follow the JSON value");
	return j;
}

struct jnode *jtree_get(const struct jnode *j, sv key)
{
	uint32_t i;

	if (j == NULL || j->kind != J_OBJ)
		return NULL;
	for (i = 0; i < j->n; i++)
		if (sv_eq(j->key[i], key))
			return j->item[i];
	return NULL;
}

const char *jtree_kind(const struct jnode *j)
{
	switch (j->kind) {
	case J_NULL:
		return "null";
	case J_BOOL:
		return "a boolean";
	case J_INT:
	case J_REAL:
		return "a number";
	case J_STR:
		return "a string";
	case J_ARR:
		return "an array";
	case J_OBJ:
		return "an object";
	}
	return "?";
}
