/* The event builder. See build.h and dogwood.h. */
#include "engine/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cedar/value.h"
#include "engine/valjson.h"

#include "base/ban.h"

/* More than the encoded form can hold: a tree of small values is bigger in memory. */
#define BUILD_BYTES (8 * DOGWOOD_EVENT_MAX)

int eng_error(struct dogwood_error *out, enum dogwood_code code, const struct box_err *err)
{
	size_t n = strnlen(err->msg, sizeof(err->msg) - 1);

	if (out == NULL)
		return -1;
	if (n > sizeof(out->msg) - 1)
		n = sizeof(out->msg) - 1;
	out->code = code;
	out->sys = err->sys;
	memcpy(out->msg, err->msg, n);
	out->msg[n] = '\0';
	return -1;
}

int eng_error_auto(struct dogwood_error *out, const struct box_err *err)
{
	switch (err->code) {
	case BOX_ENOMEM:
		return eng_error(out, DOGWOOD_ENOMEM, err);
	case BOX_ECORRUPT:
		return eng_error(out, DOGWOOD_ECORRUPT, err);
	case BOX_ELIMIT:
		return eng_error(out, DOGWOOD_ELIMIT, err);
	case BOX_EPARSE:
	case BOX_ECONFIG:
		return eng_error(out, DOGWOOD_EARG, err);
	default:
		return eng_error(out, err->sys == EBUSY ? DOGWOOD_EBUSY : DOGWOOD_ESTORE, err);
	}
}

int eng_error_policy(struct dogwood_error *out, const struct box_err *err)
{
	return err->code == BOX_ECONFIG ? eng_error(out, DOGWOOD_EPOLICY, err)
	                                : eng_error_auto(out, err);
}

int eng_uid_parse(struct arena *a, sv text, struct dw_uid *out, struct box_err *err)
{
	ptrdiff_t q = sv_find(text, '"');
	sv type, left, part, tail, id, bad;
	bool more;

	if (q < 3 || text.n < 5 || text.p[text.n - 1] != '"' || (size_t)q == text.n - 1 ||
	    !sv_is_utf8(text))
		goto malformed;
	type = sv_sub(text, 0, (size_t)q);
	if (!sv_ends(type, SV("::")))
		goto malformed;
	type.n -= 2;
	left = type;
	do {
		ptrdiff_t c = sv_find_sv(left, SV("::"));

		more = c >= 0;
		part = more ? sv_sub(left, 0, (size_t)c) : left;
		tail = more ? sv_sub(left, (size_t)c + 2, SIZE_MAX) : (sv){ NULL, 0 };
		if (!cedar_is_ident(part))
			goto malformed;
		left = tail;
	} while (more);
	id = sv_sub(text, (size_t)q + 1, text.n - (size_t)q - 2);
	for (size_t i = 0; i < id.n; i++) {
		if (id.p[i] == '"')
			goto malformed;
		if (id.p[i] == '\\')
			i++;
	}
	out->type = arena_dup(a, type);
	out->id = sv_find(id, '\\') < 0 ? arena_dup(a, id) : cedar_unescape(a, id, &bad);
	if (out->type.p == NULL)
		return box_nomem(err, "an entity reference");
	if (out->id.p == NULL)
		goto malformed;
	return 0;
malformed:
	return box_fail(err, BOX_EPARSE, 0,
	    "`" SV_FMT "` is not an entity reference; write `Ns::Type::\"id\"`",
	    SV_ARG(sv_sub(text, 0, 200)));
}

void eng_uid_put(struct buf *b, const struct dw_uid *u)
{
	buf_put_sv(b, u->type);
	buf_put_c(b, "::");
	cedar_put_quoted(b, u->id);
}

dogwood_event *dogwood_event_new(void)
{
	dogwood_event *ev = calloc(1, sizeof(*ev));

	if (ev != NULL)
		ev->a.limit = BUILD_BYTES;
	return ev;
}

void dogwood_event_free(dogwood_event *ev)
{
	if (ev == NULL)
		return;
	arena_free(&ev->a);
	free(ev);
}

void dogwood_event_reset(dogwood_event *ev)
{
	struct arena a;

	arena_reset(&ev->a);
	a = ev->a;
	*ev = (dogwood_event){ .a = a };
}

static void mistake(dogwood_event *ev, const char *where, const char *what)
{
	if (ev->bad)
		return;
	ev->bad = true;
	(void)box_fail(&ev->err, BOX_EPARSE, 0, "event field %.200s: %s", where, what);
}

static void too_large(dogwood_event *ev)
{
	if (ev->bad)
		return;
	ev->bad = true;
	(void)box_fail(&ev->err, BOX_ELIMIT, 0, "the event is too large, or there is no memory");
}

static struct dw_uid uid_of(dogwood_event *ev, const char *what, dogwood_str text)
{
	struct dw_uid u = { 0 };

	if (!ev->bad && eng_uid_parse(&ev->a, eng_sv(text), &u, &ev->err) < 0) {
		ev->bad = true;
		(void)box_wrap(&ev->err, "event %s", what);
	}
	return u;
}

void dogwood_event_action(dogwood_event *ev, dogwood_str action, dogwood_str kind)
{
	ev->action = uid_of(ev, "action", action);
	if (!ev->bad && !cedar_is_ident(eng_sv(kind)))
		mistake(ev, "kind", "must be an identifier such as `request`");
	ev->kind = arena_dup(&ev->a, eng_sv(kind));
	if (ev->kind.p == NULL)
		too_large(ev);
}

void dogwood_event_principal(dogwood_event *ev, dogwood_str entity)
{
	ev->principal = uid_of(ev, "principal", entity);
}

void dogwood_event_resource(dogwood_event *ev, dogwood_str entity)
{
	ev->resource = uid_of(ev, "resource", entity);
}

/* The next part of a dotted path, unescaped. */
static bool next_part(dogwood_event *ev, const char **path, sv *out)
{
	const char *p = *path;
	size_t n = 0;
	char *to;

	while (p[n] != '\0' && p[n] != '.')
		n += p[n] == '\\' && p[n + 1] != '\0' ? 2 : 1;
	*path = p[n] == '.' ? p + n + 1 : p + n;
	if (n == 0 || (p[n] == '.' && **path == '\0'))
		return false;
	to = arena_alloc(&ev->a, n + 1, 1);
	if (to == NULL)
		return false;
	out->p = to;
	out->n = 0;
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '\\' && i + 1 < n)
			i++;
		to[out->n++] = p[i];
	}
	return sv_is_utf8(*out);
}

static size_t find(const struct eng_rec *r, sv name)
{
	size_t i = 0;

	while (i < r->n && !sv_eq(r->m[i].name, name))
		i++;
	return i;
}

static bool grow(dogwood_event *ev, struct eng_rec *r)
{
	size_t cap = r->cap == 0 ? 8 : 2 * r->cap;

	if (r->n < r->cap)
		return true;
	r->m = arena_grow(&ev->a, r->m, r->n, cap, sizeof(*r->m));
	r->sub = arena_grow(&ev->a, r->sub, r->n, cap, sizeof(*r->sub));
	r->cap = cap;
	return r->m != NULL && r->sub != NULL;
}

/* Put v at the path under root. Records on the way are made; their value in the parent follows
 * when their vector moves. */
static void put_at(dogwood_event *ev, struct eng_rec *root, const sv *part, size_t n,
    const char *path, const struct dw_val *v)
{
	struct eng_rec *at[ENG_PATH_PARTS];
	size_t idx[ENG_PATH_PARTS];
	struct eng_rec *r = root;

	for (size_t d = 0; d < n; d++) {
		size_t i = find(r, part[d]);

		at[d] = r;
		idx[d] = i;
		if (i == r->n) {
			if (!grow(ev, r)) {
				too_large(ev);
				return;
			}
			r->m[i] = (struct dw_member){ part[d], dw_obj(NULL, 0) };
			r->sub[i] = d + 1 < n ? ARENA_NEW(&ev->a, struct eng_rec) : NULL;
			if (d + 1 < n && r->sub[i] == NULL) {
				too_large(ev);
				return;
			}
			r->n++;
		} else if (d + 1 == n) {
			mistake(ev, path, "is set twice");
			return;
		} else if (r->sub[i] == NULL) {
			mistake(ev, path, "lies below a field that has a value");
			return;
		}
		if (d + 1 == n)
			r->m[i].val = *v;
		else
			r = r->sub[i];
	}
	for (size_t d = n - 1; d-- > 0;)
		at[d]->m[idx[d]].val = dw_obj(at[d + 1]->m, at[d + 1]->n);
}

static void put(dogwood_event *ev, enum dogwood_bag bag, const char *path, struct dw_val v)
{
	sv part[ENG_PATH_PARTS];
	const char *p = path;
	size_t n = 0;

	if (ev->bad)
		return;
	if (path == NULL || path[0] == '\0' || bag < DOGWOOD_HISTORY || bag > DOGWOOD_BOTH) {
		mistake(ev, path != NULL ? path : "(no path)", "needs a path and a bag");
		return;
	}
	while (*p != '\0') {
		if (n == ENG_PATH_PARTS || !next_part(ev, &p, &part[n])) {
			mistake(ev, path, "is not a dotted path of at most 16 names");
			return;
		}
		n++;
	}
	if ((bag & DOGWOOD_HISTORY) != 0)
		put_at(ev, &ev->logged, part, n, path, &v);
	if ((bag & DOGWOOD_CONTEXT) != 0)
		put_at(ev, &ev->context, part, n, path, &v);
}

static sv text(dogwood_event *ev, const char *path, dogwood_str s)
{
	sv t = arena_dup(&ev->a, eng_sv(s));

	if (t.p == NULL)
		too_large(ev);
	else if (!sv_is_utf8(t))
		mistake(ev, path, "is not UTF-8");
	return t;
}

void dogwood_event_str(dogwood_event *ev, enum dogwood_bag bag, const char *path, dogwood_str value)
{
	put(ev, bag, path, dw_str(text(ev, path, value)));
}

void dogwood_event_long(dogwood_event *ev, enum dogwood_bag bag, const char *path, int64_t value)
{
	put(ev, bag, path, dw_int(value));
}

void dogwood_event_bool(dogwood_event *ev, enum dogwood_bag bag, const char *path, bool value)
{
	put(ev, bag, path, dw_bool(value));
}

void dogwood_event_entity(
    dogwood_event *ev, enum dogwood_bag bag, const char *path, dogwood_str entity)
{
	struct dw_uid u = uid_of(ev, path, entity);

	put(ev, bag, path, dw_ent(u.type, u.id));
}

void dogwood_event_entity_id(
    dogwood_event *ev, enum dogwood_bag bag, const char *path, dogwood_str type, dogwood_str id)
{
	sv t = text(ev, path, type);

	if (t.n == 0)
		mistake(ev, path, "needs an entity type");
	put(ev, bag, path, dw_ent(t, text(ev, path, id)));
}

void dogwood_event_strs(
    dogwood_event *ev, enum dogwood_bag bag, const char *path, const dogwood_str *values, size_t n)
{
	struct dw_val *v = ARENA_VEC(&ev->a, struct dw_val, n);

	if (v == NULL) {
		too_large(ev);
		return;
	}
	for (size_t i = 0; i < n; i++)
		v[i] = dw_str(text(ev, path, values[i]));
	put(ev, bag, path, (struct dw_val){ .tag = DW_ARRAY, .u.arr = { v, n } });
}

static bool json(dogwood_event *ev, const char *path, dogwood_str t, struct dw_val *out)
{
	if (ev->bad)
		return false;
	if (t.n <= DOGWOOD_EVENT_MAX &&
	    eng_json_get(&ev->a, eng_sv(t), ENG_PATH_PARTS, out, &ev->err) == 0)
		return true;
	if (t.n > DOGWOOD_EVENT_MAX)
		too_large(ev);
	else
		(void)box_wrap(&ev->err, "event field %.200s", path);
	ev->bad = true;
	return false;
}

void dogwood_event_json(
    dogwood_event *ev, enum dogwood_bag bag, const char *path, dogwood_str value)
{
	struct dw_val v;

	if (json(ev, path != NULL ? path : "", value, &v))
		put(ev, bag, path, v);
}

static struct eng_ent *entity(dogwood_event *ev, dogwood_str text_)
{
	struct dw_uid u = uid_of(ev, "entity", text_);
	struct eng_ent *v;

	if (ev->bad)
		return NULL;
	for (size_t i = 0; i < ev->nents; i++)
		if (sv_eq(ev->ents[i].uid.type, u.type) && sv_eq(ev->ents[i].uid.id, u.id))
			return &ev->ents[i];
	if (ev->nents == ENG_ENTS_MAX) {
		mistake(ev, "entities", "too many in one event");
		return NULL;
	}
	if (ev->nents == ev->cap_ents) {
		size_t cap = ev->cap_ents == 0 ? 4 : 2 * ev->cap_ents;

		v = arena_grow(&ev->a, ev->ents, ev->nents, cap, sizeof(*v));
		if (v == NULL) {
			too_large(ev);
			return NULL;
		}
		ev->ents = v;
		ev->cap_ents = cap;
	}
	v = &ev->ents[ev->nents++];
	*v = (struct eng_ent){ .uid = u, .attrs = dw_null() };
	return v;
}

static void attrs_of(dogwood_event *ev, struct eng_ent *e, const struct dw_val *v)
{
	if (e->has_attrs || v->tag != DW_OBJECT) {
		mistake(ev, "entity attributes",
		    e->has_attrs ? "are set twice" : "must be a JSON object");
		return;
	}
	e->attrs = *v;
	e->has_attrs = true;
}

void dogwood_event_attrs(dogwood_event *ev, dogwood_str uid, dogwood_str attrs)
{
	struct eng_ent *e = entity(ev, uid);
	struct dw_val v;

	if (e != NULL && json(ev, "entity attributes", attrs, &v))
		attrs_of(ev, e, &v);
}

void eng_event_attrs(dogwood_event *ev, sv uid, const struct dw_val *attrs)
{
	struct eng_ent *e = entity(ev, eng_str(uid));

	if (e != NULL)
		attrs_of(ev, e, attrs);
}

void dogwood_event_parent(dogwood_event *ev, dogwood_str uid, dogwood_str parent)
{
	struct eng_ent *e = entity(ev, uid);
	struct dw_uid p = uid_of(ev, "parent", parent);

	if (e == NULL || ev->bad)
		return;
	if (e->nparents == e->cap) {
		size_t cap = e->cap == 0 ? 4 : 2 * e->cap;
		struct dw_uid *v = arena_grow(&ev->a, e->parents, e->nparents, cap, sizeof(*v));

		if (v == NULL) {
			too_large(ev);
			return;
		}
		e->parents = v;
		e->cap = cap;
	}
	e->parents[e->nparents++] = p;
}

int dogwood_event_check(const dogwood_event *ev, struct dogwood_error *err)
{
	return ev->bad ? eng_error_auto(err, &ev->err) : 0;
}

/* History's callerPrincipal and callerResource come from the scope unless the caller put its own
 * there. */
static int with_scope(const dogwood_event *ev, struct arena *a, struct dw_val *out)
{
	const struct dw_uid *scope[2] = { &ev->principal, &ev->resource };
	const sv name[2] = { SV("callerPrincipal"), SV("callerResource") };
	struct dw_member *m = ARENA_VEC(a, struct dw_member, ev->logged.n + 2);
	size_t n = ev->logged.n;

	if (m == NULL)
		return -1;
	if (n != 0)
		memcpy(m, ev->logged.m, n * sizeof(*m));
	for (int i = 0; i < 2; i++)
		if (!dw_uid_is_none(scope[i]) && find(&ev->logged, name[i]) == ev->logged.n)
			m[n++] =
			    (struct dw_member){ name[i], dw_ent(scope[i]->type, scope[i]->id) };
	*out = dw_obj(m, n);
	return 0;
}

int eng_build(
    const dogwood_event *ev, struct arena *scratch, struct dw_event *out, struct box_err *err)
{
	struct dw_entity *ents = NULL;

	if (ev->bad) {
		*err = ev->err;
		return -1;
	}
	if (ev->action.type.p == NULL)
		return box_fail(err, BOX_EPARSE, 0, "the event has no action");
	if (ev->nents != 0) {
		ents = ARENA_VEC(scratch, struct dw_entity, ev->nents);
		if (ents == NULL)
			return box_nomem(err, "an event");
		for (size_t i = 0; i < ev->nents; i++)
			ents[i] = (struct dw_entity){ ev->ents[i].uid, ev->ents[i].attrs,
				ev->ents[i].parents, ev->ents[i].nparents };
	}
	*out = (struct dw_event){ .ns = ev->action.type,
		.id = ev->action.id,
		.kind = ev->kind,
		.principal = ev->principal,
		.resource = ev->resource,
		.context = dw_obj(ev->context.m, ev->context.n),
		.ents = ents,
		.nents = ev->nents };
	if (with_scope(ev, scratch, &out->logged) < 0)
		return box_nomem(err, "an event");
	return 0;
}
