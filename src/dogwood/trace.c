/* See trace.h. */
#include "dogwood/trace.h"

#include "base/ban.h"

struct rdr {
	struct arena *a;
	sv s; /* what is left of the line, or of a group */
	unsigned line;
	struct box_err *err;
};

static int bad(struct rdr *r, const char *text, sv what)
{
	AUTO_BUF b = buf_with(256);

	buf_put_escaped(&b, sv_sub(what, 0, 100));
	if (what.p != NULL)
		return box_fail(r->err, BOX_EPARSE, 0, "line %u: %s `%s`", r->line, text,
		    buf_cstr(&b) != NULL ? buf_cstr(&b) : "");
	return box_fail(r->err, BOX_EPARSE, 0, "line %u: %s", r->line, text);
}
#define NOTHING ((sv){ NULL, 0 })

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip(struct rdr *r)
{
	while (r->s.n != 0 && is_space(r->s.p[0]))
		r->s = sv_sub(r->s, 1, r->s.n);
}

static bool eat(struct rdr *r, char c)
{
	skip(r);
	if (r->s.n == 0 || r->s.p[0] != c)
		return false;
	r->s = sv_sub(r->s, 1, r->s.n);
	return true;
}

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
	                              : -1;
}

/* Decode one escape at s.p[*i] == '\\'; an unknown one passes through unchanged. Returns bytes
 * written. */
static size_t escape(sv s, size_t *i, char *out)
{
	static const char from[] = "\"\\'ntr0", to[] = "\"\\'\n\t\r\0";
	const char *k;
	uint32_t v = 0;
	size_t x;

	if (*i + 1 >= s.n) {
		*out = s.p[(*i)++];
		return 1;
	}
	k = s.p[*i + 1] != '\0' ? strchr(from, s.p[*i + 1]) : NULL;
	if (k != NULL) {
		*out = to[k - from];
		*i += 2;
		return 1;
	}
	if (s.p[*i + 1] == 'x' && *i + 3 < s.n && hex(s.p[*i + 2]) >= 0 && hex(s.p[*i + 3]) >= 0 &&
	    hex(s.p[*i + 2]) < 8) {
		*out = (char)(hex(s.p[*i + 2]) * 16 + hex(s.p[*i + 3]));
		*i += 4;
		return 1;
	}
	if (s.p[*i + 1] == 'u' && *i + 2 < s.n && s.p[*i + 2] == '{') {
		for (x = *i + 3; x < s.n && s.p[x] != '}' && v <= 0x10ffff; x++) {
			if (s.p[x] == '_')
				continue;
			if (hex(s.p[x]) < 0)
				break;
			v = v * 16 + (uint32_t)hex(s.p[x]);
		}
		if (x < s.n && s.p[x] == '}' && x > *i + 3 && v <= 0x10ffff &&
		    !(v >= 0xd800 && v < 0xe000)) {
			*i = x + 1;
			return utf8_put(out, v);
		}
	}
	*out = s.p[(*i)++];
	return 1;
}

static int string(struct rdr *r, sv *out)
{
	size_t end = 1, n = 0;
	char *p;

	while (end < r->s.n && r->s.p[end] != '"')
		end += r->s.p[end] == '\\' ? 2 : 1;
	if (end >= r->s.n)
		return bad(r, "unterminated string", NOTHING);
	p = arena_alloc(r->a, end + 4, 1);
	if (p == NULL)
		return box_nomem(r->err, "a trace");
	for (size_t i = 1; i < end;) {
		if (r->s.p[i] == '\\')
			n += escape(sv_sub(r->s, 0, end), &i, p + n);
		else
			p[n++] = r->s.p[i++];
	}
	*out = (sv){ p, n };
	r->s = sv_sub(r->s, end + 1, r->s.n);
	return 0;
}

static bool word_byte(char c)
{
	return !is_space(c) && strchr(",:[]{}()\"", c) == NULL && c != '\0';
}

/* A run of bytes up to a separator. */
static sv word(struct rdr *r)
{
	size_t n = 0;

	skip(r);
	while (n < r->s.n && word_byte(r->s.p[n]))
		n++;
	{
		sv w = sv_sub(r->s, 0, n);

		r->s = sv_sub(r->s, n, r->s.n);
		return w;
	}
}

/* ident { "::" ident } "::" string; the last segment may be missing its string: then *id.p is NULL
 * and *type is the path. */
static int entity(struct rdr *r, struct dw_uid *out)
{
	sv start = r->s, w = word(r);

	out->id = NOTHING;
	if (w.n == 0)
		return bad(r, "expected an entity, found", sv_sub(r->s, 0, 20));
	start = (sv){ w.p, w.n };
	for (;;) {
		if (!sv_starts(r->s, SV("::"))) {
			out->type = start;
			return 0;
		}
		r->s = sv_sub(r->s, 2, r->s.n);
		if (r->s.n != 0 && r->s.p[0] == '"') {
			out->type = start;
			return string(r, &out->id);
		}
		w = word(r);
		start.n = (size_t)(w.p + w.n - start.p);
	}
}

static int value(struct rdr *r, unsigned depth, struct dw_val *out);

/* members up to `close` (consumed), or to the end of r->s when close is 0. */
static int members(struct rdr *r, unsigned depth, char close, const char *what, struct dw_val *out)
{
	struct dw_rec rec = dw_rec_in(r->a);
	struct dw_val v;
	sv key;

	for (;;) {
		skip(r);
		if (close != 0 ? eat(r, close) : r->s.n == 0)
			break;
		if (rec.n != 0 && !eat(r, ','))
			return bad(r, "expected `,`, found", sv_sub(r->s, 0, 20));
		skip(r);
		if (r->s.n != 0 && r->s.p[0] == '"') {
			if (string(r, &key) < 0)
				return -1;
		} else {
			key = word(r);
		}
		if (!eat(r, ':')) {
			AUTO_BUF b = buf_with(256);

			buf_put_escaped(&b, sv_sub(key, 0, 100));
			return box_fail(r->err, BOX_EPARSE, 0, "line %u: argument `%s` missing `:`",
			    r->line, buf_cstr(&b) != NULL ? buf_cstr(&b) : "");
		}
		for (size_t i = 0; i < rec.n; i++) {
			if (sv_eq(rec.m[i].name, key))
				return bad(r, what, key);
		}
		if (value(r, depth + 1, &v) < 0)
			return -1;
		dw_rec_add(&rec, key, v);
		if (rec.bad)
			return box_nomem(r->err, "a trace");
	}
	*out = dw_rec_val(&rec);
	return 0;
}

static int array(struct rdr *r, unsigned depth, struct dw_val *out)
{
	struct dw_val *v = NULL;
	size_t n = 0, cap = 0;

	while (!eat(r, ']')) {
		if (n != 0 && !eat(r, ','))
			return bad(r, "expected `,` or `]`, found", sv_sub(r->s, 0, 20));
		if (n == cap) {
			struct dw_val *g =
			    arena_grow(r->a, v, n, cap != 0 ? cap * 2 : 8, sizeof(*g));

			if (g == NULL)
				return box_nomem(r->err, "a trace");
			v = g;
			cap = cap != 0 ? cap * 2 : 8;
		}
		if (value(r, depth + 1, &v[n]) < 0)
			return -1;
		n++;
	}
	out->tag = DW_ARRAY;
	out->u.arr.v = v;
	out->u.arr.n = n;
	return 0;
}

static int value(struct rdr *r, unsigned depth, struct dw_val *out)
{
	struct dw_uid u;
	int64_t i;
	sv w, s;

	skip(r);
	if (depth > DW_TRACE_DEPTH)
		return bad(r, "logged value nested deeper than the limit of 128", NOTHING);
	if (r->s.n == 0)
		return bad(r, "expected a value", NOTHING);
	if (r->s.p[0] == '"') {
		if (string(r, &s) < 0)
			return -1;
		*out = dw_str(s);
		return 0;
	}
	if (eat(r, '['))
		return array(r, depth, out);
	if (eat(r, '{'))
		return members(r, depth, '}', "record has a duplicate field", out);
	if (entity(r, &u) < 0)
		return -1;
	if (u.id.p != NULL) {
		*out = dw_ent(u.type, u.id);
		return 0;
	}
	w = u.type;
	if (sv_eq(w, SV("null")))
		*out = dw_null();
	else if (sv_eq(w, SV("true")) || sv_eq(w, SV("false")))
		*out = dw_bool(w.n == 4);
	else if (sv_to_i64(w, 10, INT64_MIN, INT64_MAX, &i))
		*out = dw_int(i);
	else if (sv_find(w, '.') >= 0 && (w.p[0] == '-' || (w.p[0] >= '0' && w.p[0] <= '9')))
		*out = dw_decimal(w);
	else
		*out = dw_str(w);
	return 0;
}

/* The text between the parentheses of a group whose "(" was consumed: up to the first ")" outside
 * strings and brackets. */
static int group(struct rdr *r, const char *missing, sv *out)
{
	unsigned depth = 0;

	for (size_t i = 0; i < r->s.n; i++) {
		char c = r->s.p[i];

		if (c == '"') {
			for (i++; i < r->s.n && r->s.p[i] != '"'; i++)
				i += r->s.p[i] == '\\';
		} else if (c == '(') {
			depth++;
		} else if (c == ')' && depth-- == 0) {
			*out = sv_sub(r->s, 0, i);
			r->s = sv_sub(r->s, i + 1, r->s.n);
			return 0;
		}
	}
	return bad(r, missing, NOTHING);
}

static int scope(struct rdr *r, struct dw_event *e)
{
	struct rdr in = *r;
	struct dw_val v;
	const struct dw_val *p;

	if (group(r, "scope missing `)`", &in.s) < 0 ||
	    members(&in, 0, 0, "duplicate field", &v) < 0)
		return -1;
	p = dw_get(&v, SV("principal"));
	if (p != NULL && p->tag == DW_ENTITY)
		e->principal = p->u.ent;
	p = dw_get(&v, SV("resource"));
	if (p != NULL && p->tag == DW_ENTITY)
		e->resource = p->u.ent;
	return 0;
}

static int one_entity(struct rdr *r, struct dw_entity *x)
{
	struct dw_val parents;
	struct dw_uid *p;

	if (entity(r, &x->uid) < 0)
		return -1;
	if (x->uid.id.p == NULL)
		return bad(r, "expected an entity, found", x->uid.type);
	if (!eat(r, ':') || !eat(r, '{'))
		return bad(r, "argument missing `:`", NOTHING);
	if (members(r, 0, '}', "record has a duplicate field", &x->attrs) < 0)
		return -1;
	skip(r);
	if (!sv_starts(r->s, SV("in")))
		return 0;
	r->s = sv_sub(r->s, 2, r->s.n);
	if (!eat(r, '['))
		return bad(r, "expected `[`", NOTHING);
	if (array(r, 0, &parents) < 0)
		return -1;
	p = ARENA_VEC(r->a, struct dw_uid, parents.u.arr.n);
	if (p == NULL)
		return box_nomem(r->err, "a trace");
	for (size_t i = 0; i < parents.u.arr.n; i++) {
		if (parents.u.arr.v[i].tag != DW_ENTITY)
			return bad(r, "a parent is not an entity", NOTHING);
		p[i] = parents.u.arr.v[i].u.ent;
	}
	x->parents = p;
	x->nparents = parents.u.arr.n;
	return 0;
}

static int entities(struct rdr *r, struct dw_event *e)
{
	struct rdr in = *r;
	struct dw_entity *v = NULL;
	size_t cap = 0;

	if (group(r, "entities missing `)`", &in.s) < 0)
		return -1;
	for (skip(&in); in.s.n != 0; skip(&in)) {
		if (e->nents != 0 && !eat(&in, ','))
			return bad(r, "expected `,`, found", sv_sub(in.s, 0, 20));
		if (e->nents == cap) {
			struct dw_entity *g =
			    arena_grow(r->a, v, e->nents, cap != 0 ? cap * 2 : 4, sizeof(*g));

			if (g == NULL)
				return box_nomem(r->err, "a trace");
			v = g;
			cap = cap != 0 ? cap * 2 : 4;
		}
		if (one_entity(&in, &v[e->nents]) < 0)
			return -1;
		for (size_t i = 0; i < e->nents; i++) {
			if (sv_eq(v[i].uid.type, v[e->nents].uid.type) &&
			    sv_eq(v[i].uid.id, v[e->nents].uid.id))
				return bad(r, "entities envelope has a duplicate uid", v[i].uid.id);
		}
		e->nents++;
		e->ents = v;
	}
	return 0;
}

static int event(struct rdr *r, struct dw_event *e)
{
	struct dw_uid head;
	struct rdr in = *r;
	ptrdiff_t close;

	skip(r);
	in.s = r->s;
	if (entity(r, &head) < 0)
		return -1;
	if (head.id.p == NULL)
		return box_fail(r->err, BOX_EPARSE, 0,
		    "line %u: event head `" SV_FMT "` is missing a quoted action id", r->line,
		    SV_ARG(head.type));
	if (!sv_starts(r->s, SV("::")))
		return box_fail(r->err, BOX_EPARSE, 0,
		    "line %u: event head `" SV_FMT "` is missing a `::kind` segment", r->line,
		    SV_ARG(sv_sub(in.s, 0, (size_t)(r->s.p - in.s.p))));
	r->s = sv_sub(r->s, 2, r->s.n);
	e->ns = head.type;
	e->id = head.id;
	e->kind = word(r);
	if (!eat(r, '('))
		return bad(r, "event missing `(`", NOTHING);
	close = sv_rfind(r->s, ')');
	if (close < 0)
		return bad(r, "event missing `)`", NOTHING);
	in.s = sv_sub(r->s, 0, (size_t)close);
	return members(&in, 0, 0, "duplicate field", &e->logged);
}

static bool starts_group(struct rdr *r, const char *name)
{
	sv after;

	skip(r);
	if (!sv_starts(r->s, sv_c(name)))
		return false;
	after = sv_sub(r->s, strlen(name), r->s.n);
	if (after.n == 0 || after.p[0] != '(')
		return false;
	r->s = sv_sub(after, 1, after.n);
	return true;
}

static int line(struct rdr *r, struct dw_event *e)
{
	struct rdr in;
	sv ts;

	if (!eat(r, '@'))
		return bad(r, "timepoint must start with `@`", NOTHING);
	ts.p = r->s.p;
	ts.n = 0;
	while (ts.n < r->s.n && !is_space(r->s.p[ts.n]))
		ts.n++;
	if (ts.n == r->s.n)
		return bad(r, "expected whitespace after timestamp", NOTHING);
	if (!sv_to_i64(ts, 10, INT64_MIN, INT64_MAX, &e->ts))
		return bad(r, "bad timestamp", ts);
	r->s = sv_sub(r->s, ts.n, r->s.n);
	if (starts_group(r, "scope") && scope(r, e) < 0)
		return -1;
	if (starts_group(r, "entities") && entities(r, e) < 0)
		return -1;
	if (starts_group(r, "request_context")) {
		in = *r;
		if (group(r, "request_context missing `)`", &in.s) < 0 ||
		    members(&in, 0, 0, "duplicate field", &e->context) < 0)
			return -1;
	}
	return event(r, e);
}

int dw_trace_next(struct dw_trace *t, struct arena *a, struct dw_event *out, struct box_err *err)
{
	struct rdr r = { .a = a, .err = err };
	sv text;

	*out = (struct dw_event){ 0 };
	for (;;) {
		if (t->rest.n == 0)
			return 0;
		(void)sv_cut(t->rest, '\n', &text, &t->rest);
		t->line++;
		text = sv_trim(text);
		if (text.n != 0)
			break;
	}
	r.line = t->line;
	r.s = text;
	if (text.n > DW_TRACE_LINE)
		return bad(&r, "the line is longer than 1 MiB", NOTHING);
	return line(&r, out) < 0 ? -1 : 1;
}

static void put_members(struct buf *b, const struct dw_val *v)
{
	for (size_t i = 0; v->tag == DW_OBJECT && i < v->u.obj.n; i++) {
		if (i != 0)
			buf_put_c(b, ", ");
		buf_put_sv(b, v->u.obj.m[i].name);
		buf_put_c(b, ": ");
		dw_val_print(b, &v->u.obj.m[i].val);
	}
}

static void put_uid(struct buf *b, const struct dw_uid *u)
{
	struct dw_val v = dw_ent(u->type, u->id);

	dw_val_print(b, &v);
}

void dw_trace_put(struct buf *b, const struct dw_event *e)
{
	struct dw_uid head = { e->ns, e->id };

	buf_putf(b, "@%lld ", (long long)e->ts);
	if (!dw_uid_is_none(&e->principal) && !dw_uid_is_none(&e->resource)) {
		buf_put_c(b, "scope(principal: ");
		put_uid(b, &e->principal);
		buf_put_c(b, ", resource: ");
		put_uid(b, &e->resource);
		buf_put_c(b, ") ");
	}
	if (e->nents != 0) {
		buf_put_c(b, "entities(");
		for (size_t i = 0; i < e->nents; i++) {
			if (i != 0)
				buf_put_c(b, ", ");
			put_uid(b, &e->ents[i].uid);
			buf_put_c(b, ": {");
			put_members(b, &e->ents[i].attrs);
			buf_put_byte(b, '}');
			for (size_t k = 0; k < e->ents[i].nparents; k++) {
				buf_put_c(b, k == 0 ? " in [" : ", ");
				put_uid(b, &e->ents[i].parents[k]);
			}
			if (e->ents[i].nparents != 0)
				buf_put_byte(b, ']');
		}
		buf_put_c(b, ") ");
	}
	if (e->context.tag == DW_OBJECT) {
		buf_put_c(b, "request_context(");
		put_members(b, &e->context);
		buf_put_c(b, ") ");
	}
	put_uid(b, &head);
	buf_put_c(b, "::");
	buf_put_sv(b, e->kind);
	buf_put_byte(b, '(');
	put_members(b, &e->logged);
	buf_put_byte(b, ')');
}
