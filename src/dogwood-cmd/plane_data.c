/* The data plane: submit and ping. See plane.h and local-engine.md 15.3. */
#include <inttypes.h>
#include <string.h>

#include "dogwood-cmd/plane.h"
#include "dogwood-cmd/wire.h"
#include "engine/build.h"

#include "base/ban.h"

/* Text of the form `Type::"id"` is an entity on this wire. */
static int to_values(struct arena *a, const struct dw_val *in, struct dw_val *out)
{
	struct dw_member *m;
	struct dw_val *v;
	struct dw_uid u;

	*out = *in;
	switch (in->tag) {
	case DW_STRING:
		if (eng_uid_parse(a, in->u.s, &u, NULL) == 0)
			*out = dw_ent(u.type, u.id);
		return 0;
	case DW_ARRAY:
		v = ARENA_VEC(a, struct dw_val, in->u.arr.n);
		if (v == NULL)
			return -1;
		for (size_t i = 0; i < in->u.arr.n; i++)
			if (to_values(a, &in->u.arr.v[i], &v[i]) < 0)
				return -1;
		out->u.arr.v = v;
		return 0;
	case DW_OBJECT:
		m = ARENA_VEC(a, struct dw_member, in->u.obj.n);
		if (m == NULL)
			return -1;
		for (size_t i = 0; i < in->u.obj.n; i++) {
			m[i].name = in->u.obj.m[i].name;
			if (to_values(a, &in->u.obj.m[i].val, &m[i].val) < 0)
				return -1;
		}
		out->u.obj.m = m;
		return 0;
	default:
		return 0;
	}
}

/* One bag of the event; its members are values already, so they go into the builder as they are. */
static int bag(dogwood_event *ev, const struct dw_val *event, const char *name, struct eng_rec *to,
    struct box_err *err)
{
	const struct dw_val *v = dw_get(event, sv_c(name));
	struct dw_val made;

	if (v == NULL)
		return 0;
	if (v->tag != DW_OBJECT)
		return box_fail(
		    err, BOX_EPARSE, 0, "malformed request: `%s` is not an object", name);
	if (to_values(&ev->a, v, &made) < 0)
		return box_nomem(err, "an event");
	to->n = to->cap = made.u.obj.n;
	to->m = ARENA_VEC(&ev->a, struct dw_member, to->n);
	to->sub = ARENA_VEC(&ev->a, struct eng_rec *, to->n);
	if (to->m == NULL || to->sub == NULL)
		return box_nomem(err, "an event");
	if (to->n != 0)
		memcpy(to->m, made.u.obj.m, to->n * sizeof(*to->m));
	return 0;
}

static int entities(dogwood_event *ev, const struct dw_val *event, struct box_err *err)
{
	const struct dw_val *e = dw_get(event, SV("entities")), *p = dw_get(event, SV("parents"));

	if ((e != NULL && e->tag != DW_OBJECT) || (p != NULL && p->tag != DW_OBJECT))
		return box_fail(
		    err, BOX_EPARSE, 0, "malformed request: `entities` and `parents` are objects");
	for (size_t i = 0; e != NULL && i < e->u.obj.n; i++) {
		struct dw_val attrs;

		if (to_values(&ev->a, &e->u.obj.m[i].val, &attrs) < 0)
			return box_nomem(err, "an event");
		eng_event_attrs(ev, e->u.obj.m[i].name, &attrs);
	}
	for (size_t i = 0; p != NULL && i < p->u.obj.n; i++) {
		const struct dw_val *v = &p->u.obj.m[i].val;

		if (v->tag != DW_ARRAY)
			return box_fail(
			    err, BOX_EPARSE, 0, "malformed request: parents are lists of entities");
		for (size_t k = 0; k < v->u.arr.n; k++)
			dogwood_event_parent(ev, eng_str(p->u.obj.m[i].name),
			    eng_str(v->u.arr.v[k].tag == DW_STRING ? v->u.arr.v[k].u.s : SV("")));
	}
	return 0;
}

static int read_event(dogwood_event *ev, const struct dw_val *event, struct box_err *err)
{
	static const char *const names[] = { "action", "kind", "principal", "resource", "logged",
		"context", "entities", "parents", NULL };
	sv action, kind, s;

	if (event == NULL || event->tag != DW_OBJECT)
		return box_fail(err, BOX_EPARSE, 0, "malformed request: `event` is not an object");
	if (wire_only(event, names, err) < 0)
		return -1;
	if (!wire_str(event, "action", &action) || !wire_str(event, "kind", &kind))
		return box_fail(
		    err, BOX_EPARSE, 0, "malformed request: an event needs `action` and `kind`");
	dogwood_event_action(ev, eng_str(action), eng_str(kind));
	if (wire_str(event, "principal", &s))
		dogwood_event_principal(ev, eng_str(s));
	if (wire_str(event, "resource", &s))
		dogwood_event_resource(ev, eng_str(s));
	if (bag(ev, event, "logged", &ev->logged, err) < 0 ||
	    bag(ev, event, "context", &ev->context, err) < 0 || entities(ev, event, err) < 0)
		return -1;
	if (!ev->bad)
		return 0;
	*err = ev->err;
	return -1;
}

static void put_list(struct buf *b, const char *name, const struct dogwood_verdict *v, bool errors)
{
	size_t n = errors ? v->n_errors + (v->fault.n != 0) : v->n_rules;

	/* Empty lists are left out. */
	if (n == 0)
		return;
	buf_putf(b, ",\"%s\":[", name);
	for (size_t i = 0; i < n; i++) {
		if (i != 0)
			buf_put_byte(b, ',');
		if (!errors)
			buf_put_json(b, eng_sv(v->rules[i].token));
		else if (i < v->n_errors)
			buf_put_json(b, eng_sv(v->errors[i]));
		else
			buf_put_json(b, eng_sv(v->fault));
	}
	buf_put_byte(b, ']');
}

static void submit(const struct plane *p, const dogwood_event *ev, sv token, struct buf *out)
{
	struct dogwood_verdict *v = dogwood_verdict_new();
	struct dogwood_error err;

	if (v == NULL) {
		wire_error(out, "out of memory");
		return;
	}
	if (dogwood_submit(p->engine, ev, eng_str(token), v, &err) < 0) {
		/* An error is not a denial. */
		wire_error(out, err.msg);
	} else if (v->cause == DOGWOOD_RECORDED) {
		buf_putf(
		    out, "{\"status\":\"recorded\",\"recorded_at_nanos\":%" PRId64 "}", v->ts_ns);
	} else {
		buf_putf(out,
		    "{\"status\":\"decision\",\"recorded_at_nanos\":%" PRId64 ",\"allowed\":%s",
		    v->ts_ns, v->permit ? "true" : "false");
		put_list(out, "reason", v, false);
		put_list(out, "errors", v, true);
		buf_put_byte(out, '}');
	}
	dogwood_verdict_free(v);
}

bool plane_data(const struct plane *p, sv request, struct buf *out)
{
	static const char *const names[] = { "op", "event", "token", NULL };
	AUTO_ARENA a = { .limit = 8 * WIRE_MAX };
	struct box_err err = { 0 };
	dogwood_event *ev = NULL;
	struct dw_val v;
	bool ok = false;
	sv op, token;

	buf_clear(out);
	if (wire_parse(&a, request, &v, &err) < 0 || wire_only(&v, names, &err) < 0) {
		wire_error(out, err.msg);
		return false;
	}
	(void)wire_str(&v, "op", &op);
	if (sv_eq(op, SV("ping"))) {
		buf_putf(out, "{\"status\":\"pong\",\"version\":\"%s\"}", dogwood_version());
		return true;
	}
	if (!sv_eq(op, SV("submit"))) {
		wire_error(out, "malformed request: `op` is submit or ping");
		return false;
	}
	(void)wire_str(&v, "token", &token);
	ev = dogwood_event_new();
	if (ev == NULL) {
		wire_error(out, "out of memory");
	} else if (read_event(ev, dw_get(&v, SV("event")), &err) < 0) {
		wire_error(out, err.msg);
	} else {
		submit(p, ev, token, out);
		ok = true;
	}
	dogwood_event_free(ev);
	return ok;
}
