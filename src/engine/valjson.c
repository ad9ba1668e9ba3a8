/* Values as JSON. See valjson.h. */
#include "engine/valjson.h"

#include <string.h>

#include "base/ban.h"

/* Members of one object: finding a name that stands twice compares each with all before it. */
#define MEMBERS_MAX 4096

struct js {
	struct arena *a;
	sv all, rest;
	struct box_err *err;
};

static int bad(struct js *j, const char *what)
{
	return box_fail(j->err, BOX_EPARSE, 0, "JSON, byte %zu: %s", j->all.n - j->rest.n, what);
}

static int room(struct js *j)
{
	return box_fail(j->err, BOX_ELIMIT, 0, "JSON: the value is too large");
}

static void blanks(struct js *j)
{
	size_t i = 0;

	while (i < j->rest.n && strchr(" \t\r\n", j->rest.p[i]) != NULL && j->rest.p[i] != '\0')
		i++;
	j->rest = sv_sub(j->rest, i, SIZE_MAX);
}

static bool eat(struct js *j, char c)
{
	blanks(j);
	if (j->rest.n == 0 || j->rest.p[0] != c)
		return false;
	j->rest = sv_sub(j->rest, 1, SIZE_MAX);
	return true;
}

static int hex4(sv s, uint32_t *out)
{
	uint64_t v;

	if (s.n < 4 || !sv_to_u64(sv_sub(s, 0, 4), 16, 0xffff, &v))
		return -1;
	*out = (uint32_t)v;
	return 0;
}

/* A \u escape, with its second half when it is a surrogate; `s` starts behind "\u". Returns
 * bytes used, 0: malformed. */
static size_t unicode(sv s, uint32_t *c)
{
	uint32_t lo;

	if (hex4(s, c) < 0 || (*c >= 0xdc00 && *c <= 0xdfff))
		return 0;
	if (*c < 0xd800 || *c > 0xdbff)
		return 4;
	if (s.n < 10 || s.p[4] != '\\' || s.p[5] != 'u' || hex4(sv_sub(s, 6, 4), &lo) < 0 ||
	    lo < 0xdc00 || lo > 0xdfff)
		return 0;
	*c = 0x10000 + ((*c - 0xd800) << 10) + (lo - 0xdc00);
	return 10;
}

/* The opening quote is eaten. */
static int string(struct js *j, sv *out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	size_t end = 0, n = 0, used;
	const char *e;
	uint32_t c;
	sv raw;
	char *p;

	for (; end < j->rest.n && j->rest.p[end] != '"'; end++) {
		if ((unsigned char)j->rest.p[end] < 0x20)
			return bad(j, "a control character inside a string");
		if (j->rest.p[end] == '\\')
			end++;
	}
	if (end >= j->rest.n)
		return bad(j, "a string without its closing quote");
	raw = sv_sub(j->rest, 0, end);
	/* No escape makes the text longer. */
	p = arena_alloc(j->a, raw.n + 1, 1);
	if (p == NULL)
		return room(j);
	for (size_t i = 0; i < raw.n; i++) {
		if (raw.p[i] != '\\') {
			p[n++] = raw.p[i];
			continue;
		}
		i++;
		if (raw.p[i] == 'u') {
			used = unicode(sv_sub(raw, i + 1, SIZE_MAX), &c);
			if (used == 0)
				return bad(j, "a malformed \\u escape in the next string");
			n += utf8_put(p + n, c);
			i += used;
		} else if (raw.p[i] != '\0' && (e = strchr(from, raw.p[i])) != NULL) {
			p[n++] = to[e - from];
		} else {
			return bad(j, "an unknown escape in the next string");
		}
	}
	*out = (sv){ p, n };
	if (!sv_is_utf8(*out))
		return bad(j, "the next string is not UTF-8");
	j->rest = sv_sub(j->rest, end + 1, SIZE_MAX);
	return 0;
}

static size_t digits(sv s, size_t i)
{
	while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
		i++;
	return i;
}

static int number(struct js *j, struct dw_val *out)
{
	sv s = j->rest;
	size_t i = s.n != 0 && s.p[0] == '-', at = i;
	bool whole = true;
	int64_t v;

	i = digits(s, i);
	if (i == at || (s.p[at] == '0' && i > at + 1))
		return bad(j, "not a JSON value");
	if (i < s.n && s.p[i] == '.') {
		at = i + 1;
		i = digits(s, at);
		whole = false;
		if (i == at)
			return bad(j, "digits are missing behind the point");
	}
	if (i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
		i++;
		if (i < s.n && (s.p[i] == '+' || s.p[i] == '-'))
			i++;
		at = i;
		i = digits(s, at);
		whole = false;
		if (i == at)
			return bad(j, "digits are missing in the exponent");
	}
	s = sv_sub(s, 0, i);
	if (whole && sv_to_i64(s, 10, INT64_MIN, INT64_MAX, &v)) {
		*out = dw_int(v);
	} else {
		s = arena_dup(j->a, s);
		if (s.p == NULL)
			return room(j);
		*out = dw_decimal(s);
	}
	j->rest = sv_sub(j->rest, i, SIZE_MAX);
	return 0;
}

static int value(struct js *j, unsigned depth, struct dw_val *out);

static int array(struct js *j, unsigned depth, struct dw_val *out)
{
	struct dw_val *v = NULL;
	size_t n = 0, cap = 0;

	if (!eat(j, ']')) {
		do {
			if (n == cap) {
				size_t c = cap == 0 ? 8 : 2 * cap;

				v = arena_grow(j->a, v, n, c, sizeof(*v));
				if (v == NULL)
					return room(j);
				cap = c;
			}
			if (value(j, depth, &v[n]) < 0)
				return -1;
			n++;
		} while (eat(j, ','));
		if (!eat(j, ']'))
			return bad(j, "`,` or `]` is missing");
	}
	*out = (struct dw_val){ .tag = DW_ARRAY, .u.arr = { v, n } };
	return 0;
}

/* {"__entity": {"type": T, "id": I}} */
static bool as_entity(const struct dw_val *v, struct dw_val *out)
{
	const struct dw_val *in, *t, *id;

	if (v->u.obj.n != 1 || (in = dw_get(v, SV("__entity"))) == NULL || in->tag != DW_OBJECT ||
	    in->u.obj.n != 2)
		return false;
	t = dw_get(in, SV("type"));
	id = dw_get(in, SV("id"));
	if (t == NULL || id == NULL || t->tag != DW_STRING || id->tag != DW_STRING || t->u.s.n == 0)
		return false;
	*out = dw_ent(t->u.s, id->u.s);
	return true;
}

static int object(struct js *j, unsigned depth, struct dw_val *out)
{
	struct dw_rec r = dw_rec_in(j->a);
	struct dw_val v, e;
	sv name;

	if (!eat(j, '}')) {
		do {
			if (!eat(j, '"'))
				return bad(j, "a name in quotes must stand here");
			if (string(j, &name) < 0)
				return -1;
			if (r.n == MEMBERS_MAX)
				return bad(j, "an object has too many members");
			for (size_t i = 0; i < r.n; i++)
				if (sv_eq(r.m[i].name, name))
					return bad(j, "the name before stands twice in one object");
			if (!eat(j, ':'))
				return bad(j, "`:` is missing");
			if (value(j, depth, &v) < 0)
				return -1;
			dw_rec_add(&r, name, v);
			if (r.bad)
				return room(j);
		} while (eat(j, ','));
		if (!eat(j, '}'))
			return bad(j, "`,` or `}` is missing");
	}
	*out = dw_rec_val(&r);
	if (as_entity(out, &e))
		*out = e;
	return 0;
}

static bool word(struct js *j, sv w)
{
	if (!sv_starts(j->rest, w))
		return false;
	j->rest = sv_sub(j->rest, w.n, SIZE_MAX);
	return true;
}

static int value(struct js *j, unsigned depth, struct dw_val *out)
{
	sv s;

	if (depth >= DW_DEPTH_MAX)
		return bad(j, "nested too deep");
	if (eat(j, '{'))
		return object(j, depth + 1, out);
	if (eat(j, '['))
		return array(j, depth + 1, out);
	if (eat(j, '"')) {
		if (string(j, &s) < 0)
			return -1;
		*out = dw_str(s);
		return 0;
	}
	if (word(j, SV("null")))
		*out = dw_null();
	else if (word(j, SV("true")))
		*out = dw_bool(true);
	else if (word(j, SV("false")))
		*out = dw_bool(false);
	else
		return number(j, out);
	return 0;
}

int eng_json_get(struct arena *a, sv text, unsigned depth, struct dw_val *out, struct box_err *err)
{
	struct js j = { .a = a, .all = text, .rest = text, .err = err };

	if (value(&j, depth, out) < 0)
		return -1;
	blanks(&j);
	return j.rest.n == 0 ? 0 : bad(&j, "something follows the value");
}

void eng_json_put(struct buf *b, const struct dw_val *v)
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
		buf_put_json(b, v->u.s);
		return;
	case DW_ENTITY:
		buf_put_c(b, "{\"__entity\":{\"type\":");
		buf_put_json(b, v->u.ent.type);
		buf_put_c(b, ",\"id\":");
		buf_put_json(b, v->u.ent.id);
		buf_put_c(b, "}}");
		return;
	case DW_ARRAY:
		buf_put_byte(b, '[');
		for (size_t i = 0; i < v->u.arr.n; i++) {
			if (i != 0)
				buf_put_byte(b, ',');
			eng_json_put(b, &v->u.arr.v[i]);
		}
		buf_put_byte(b, ']');
		return;
	case DW_OBJECT:
		buf_put_byte(b, '{');
		for (size_t i = 0; i < v->u.obj.n; i++) {
			if (i != 0)
				buf_put_byte(b, ',');
			buf_put_json(b, v->u.obj.m[i].name);
			buf_put_byte(b, ':');
			eng_json_put(b, &v->u.obj.m[i].val);
		}
		buf_put_byte(b, '}');
		return;
	}
}
