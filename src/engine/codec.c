/* Bodies of log records. See codec.h. */
#include "engine/codec.h"

#include <string.h>

#include "base/ban.h"

#define BODY_VERSION 1
/* Of an install body: a source more. What has none is written as before, byte for byte. */
#define INSTALL_WITH_PROVIDERS 2

static int damaged(struct box_err *err, const char *what)
{
	return box_fail(err, BOX_ECORRUPT, 0, "%s does not have the form it must have", what);
}

static void put32_at(struct buf *b, size_t at, uint32_t v)
{
	if (!buf_ok(b))
		return;
	for (int i = 0; i < 4; i++)
		b->p[at + (size_t)i] = (uint8_t)(v >> (24 - 8 * i));
}

/* The context is stored as a list of names when each of its members is the same in `logged`: the
 * usual case, since inputs belong to both. */
static bool context_in_logged(const struct dw_event *e)
{
	if (e->context.tag != DW_OBJECT || e->context.u.obj.n > 255 || e->nents != 0)
		return false;
	for (size_t i = 0; i < e->context.u.obj.n; i++) {
		const struct dw_member *m = &e->context.u.obj.m[i];
		const struct dw_val *l = dw_get(&e->logged, m->name);

		/* Not dw_val_eq: 1.5 and 1.50 are equal there, and the spelling is kept. */
		if (l == NULL || l->tag != m->val.tag || l->tag == DW_DECIMAL ||
		    !dw_val_eq(l, &m->val))
			return false;
	}
	return true;
}

void eng_event_put(struct buf *b, const struct dw_event *e, sv token)
{
	bool named = context_in_logged(e);
	size_t at;

	buf_put_byte(b, BODY_VERSION);
	at = b->n;
	buf_put_u32(b, 0);
	dw_event_put(b, e, named ? DW_PUT_HISTORY : DW_PUT_ALL);
	put32_at(b, at, (uint32_t)(b->n - at - 4));
	buf_put_byte(b, named);
	if (named) {
		buf_put_u16(b, (uint16_t)e->context.u.obj.n);
		for (size_t i = 0; i < e->context.u.obj.n; i++)
			buf_put_str(b, e->context.u.obj.m[i].name);
	}
	buf_put_str(b, token);
}

void eng_event_restamp(struct buf *b, const struct dw_event *e)
{
	/* u8, u32 length, u8 version, u8 parts, three str. */
	size_t at = 1 + 4 + 2 + 3 * 4 + e->ns.n + e->id.n + e->kind.n;

	put32_at(b, at, (uint32_t)((uint64_t)e->ts >> 32));
	put32_at(b, at + 4, (uint32_t)e->ts);
}

uint8_t eng_cause_of(const struct dw_decision *d)
{
	if (d == NULL)
		return DOGWOOD_RECORDED;
	switch (d->cause) {
	case DW_PERMITTED:
		/* Two ways to say yes that disagree are no yes. */
		return d->allow ? DOGWOOD_PERMITTED : DOGWOOD_FAULT;
	case DW_FORBIDDEN:
		return DOGWOOD_FORBIDDEN;
	case DW_NO_MATCH:
		return DOGWOOD_NO_MATCH;
	default:
		return DOGWOOD_FAULT;
	}
}

void eng_verdict_put(struct buf *b, const struct dw_decision *d)
{
	size_t nr = d == NULL ? 0 : d->nrules, ne = d == NULL ? 0 : d->nerrors;

	if (nr > ENG_RULES_MAX)
		nr = ENG_RULES_MAX;
	if (ne > ENG_ERRORS_MAX)
		ne = ENG_ERRORS_MAX;
	buf_put_byte(b, eng_cause_of(d));
	buf_put_u16(b, (uint16_t)nr);
	for (size_t i = 0; i < nr; i++)
		buf_put_u32(b, d->rules[i]);
	buf_put_u16(b, (uint16_t)ne);
	for (size_t i = 0; i < ne; i++) {
		buf_put_u32(b, d->errors[i].rule);
		buf_put_str(b, sv_sub(sv_c(d->errors[i].text), 0, ENG_NAME_MAX));
	}
	buf_put_str(b, d == NULL ? (sv){ NULL, 0 } : sv_sub(sv_c(d->fault), 0, ENG_NAME_MAX));
}

static int get_context(struct rd *r, struct arena *a, struct dw_event *e, struct box_err *err)
{
	uint8_t form = rd_u8(r);
	struct dw_member *m;
	uint16_t n;

	if (form == 0)
		return 0;
	n = rd_u16(r);
	if (form != 1 || n > rd_left(r) / 4)
		return damaged(err, "an event's context");
	m = ARENA_VEC(a, struct dw_member, n);
	if (m == NULL)
		return box_nomem(err, "an event");
	for (size_t i = 0; i < n; i++) {
		sv name = rd_str(r, DOGWOOD_EVENT_MAX);
		const struct dw_val *v = dw_get(&e->logged, name);

		if (v == NULL)
			return damaged(err, "an event's context");
		m[i] = (struct dw_member){ name, *v };
	}
	e->context = dw_obj(m, n);
	return 0;
}

static int get_verdict(struct rd *r, struct arena *a, struct eng_stored *v, struct box_err *err)
{
	uint32_t *rules, *error_rules;
	uint16_t n;
	sv *errors;

	*v = (struct eng_stored){ .cause = rd_u8(r) };
	n = rd_u16(r);
	if (v->cause < DOGWOOD_PERMITTED || v->cause > DOGWOOD_RECORDED || n > rd_left(r) / 4)
		return damaged(err, "a stored verdict");
	rules = ARENA_VEC(a, uint32_t, n);
	if (rules == NULL)
		return box_nomem(err, "a verdict");
	for (size_t i = 0; i < n; i++)
		rules[i] = rd_u32(r);
	v->rules = rules;
	v->nrules = n;
	n = rd_u16(r);
	if (n > ENG_ERRORS_MAX)
		return damaged(err, "a stored verdict");
	errors = ARENA_VEC(a, sv, n);
	error_rules = ARENA_VEC(a, uint32_t, n);
	if (errors == NULL || error_rules == NULL)
		return box_nomem(err, "a verdict");
	for (size_t i = 0; i < n; i++) {
		error_rules[i] = rd_u32(r);
		errors[i] = rd_str(r, ENG_NAME_MAX);
	}
	v->errors = errors;
	v->error_rules = error_rules;
	v->nerrors = n;
	v->fault = rd_str(r, ENG_NAME_MAX);
	return rd_done(r) ? 0 : damaged(err, "a stored verdict");
}

int eng_stored_get(sv bytes, struct arena *a, struct eng_stored *v, struct box_err *err)
{
	struct rd r = rd_of(bytes.p, bytes.n);

	return get_verdict(&r, a, v, err);
}

/* Everything up to the verdict. */
static int get_event(struct rd *r, struct arena *a, struct dw_event *out, struct box_err *err)
{
	uint8_t version = rd_u8(r);
	sv bytes = rd_str(r, DW_EVENT_BYTES_MAX);
	struct rd in = rd_of(bytes.p, bytes.n);

	if (r->bad || version != BODY_VERSION)
		return damaged(err, "an event record");
	if (dw_event_get(&in, a, out, err) < 0)
		return -1;
	return rd_done(&in) ? 0 : damaged(err, "an event");
}

int eng_event_get(sv body, struct arena *a, struct dw_event *out, sv *token, struct eng_stored *v,
    struct box_err *err)
{
	struct rd r = rd_of(body.p, body.n);
	struct eng_stored here;
	sv t;

	if (get_event(&r, a, out, err) < 0 || get_context(&r, a, out, err) < 0)
		return -1;
	t = rd_str(&r, DOGWOOD_TOKEN_MAX);
	if (token != NULL)
		*token = t;
	return get_verdict(&r, a, v != NULL ? v : &here, err);
}

int eng_event_lean(
    sv body, struct arena *a, struct dw_event *out, sv *token, sv *verdict, struct box_err *err)
{
	struct rd r = rd_of(body.p, body.n);
	uint16_t n = 0;

	if (get_event(&r, a, out, err) < 0)
		return -1;
	if (rd_u8(&r) != 0)
		n = rd_u16(&r);
	for (; n != 0 && !r.bad; n--)
		(void)rd_str(&r, DOGWOOD_EVENT_MAX); /* a name of the context */
	*token = rd_str(&r, DOGWOOD_TOKEN_MAX);
	*verdict = rd_bytes(&r, rd_left(&r));
	return rd_done(&r) ? 0 : damaged(err, "an event record");
}

static void put_source(struct buf *b, const struct dogwood_source *s)
{
	buf_put_byte(b, s->text.p != NULL);
	if (s->text.p == NULL)
		return;
	buf_put_str(b, (sv){ s->name.p, s->name.n });
	buf_put_str(b, (sv){ s->text.p, s->text.n });
}

void eng_install_put(struct buf *b, const struct dogwood_policy_set *set)
{
	buf_put_byte(b, set->providers.text.p != NULL ? INSTALL_WITH_PROVIDERS : BODY_VERSION);
	buf_put_u32(b, (uint32_t)set->n_policies);
	for (size_t i = 0; i < set->n_policies; i++)
		put_source(b, &set->policies[i]);
	put_source(b, &set->action_schema);
	put_source(b, &set->event_schema);
	put_source(b, &set->macros);
	if (set->providers.text.p != NULL)
		put_source(b, &set->providers);
}

static void get_source(struct rd *r, struct dogwood_source *s)
{
	uint8_t present = rd_u8(r);
	sv t;

	*s = (struct dogwood_source){ 0 };
	if (present == 0)
		return;
	if (present != 1)
		r->bad = true;
	t = rd_str(r, ENG_NAME_MAX);
	s->name = (dogwood_str){ t.p, t.n };
	t = rd_str(r, DW_SOURCE_MAX);
	s->text = (dogwood_str){ t.p, t.n };
}

int eng_install_get(sv body, struct arena *a, struct dogwood_policy_set *out, struct box_err *err)
{
	struct rd r = rd_of(body.p, body.n);
	struct dogwood_source *v;
	uint8_t version = rd_u8(&r);
	uint32_t n = rd_u32(&r);

	*out = (struct dogwood_policy_set){ 0 };
	if ((version != BODY_VERSION && version != INSTALL_WITH_PROVIDERS) || r.bad ||
	    n > ENG_SOURCES_MAX)
		return damaged(err, "an install record");
	v = ARENA_VEC(a, struct dogwood_source, n);
	if (v == NULL)
		return box_nomem(err, "an install record");
	for (size_t i = 0; i < n; i++)
		get_source(&r, &v[i]);
	out->policies = v;
	out->n_policies = n;
	get_source(&r, &out->action_schema);
	get_source(&r, &out->event_schema);
	get_source(&r, &out->macros);
	if (version == INSTALL_WITH_PROVIDERS)
		get_source(&r, &out->providers);
	return rd_done(&r) ? 0 : damaged(err, "an install record");
}

void eng_clock_put(struct buf *b, int64_t last, int64_t now)
{
	buf_put_byte(b, BODY_VERSION);
	buf_put_u64(b, (uint64_t)last);
	buf_put_u64(b, (uint64_t)now);
}

int eng_clock_get(sv body, int64_t *last, int64_t *now, struct box_err *err)
{
	struct rd r = rd_of(body.p, body.n);
	uint8_t version = rd_u8(&r);

	*last = (int64_t)rd_u64(&r);
	*now = (int64_t)rd_u64(&r);
	return version == BODY_VERSION && rd_done(&r) ? 0 : damaged(err, "a clock record");
}

const char *eng_cause_name(unsigned cause)
{
	static const char *const name[] = { "unknown", "permit", "forbid", "no-match", "fault",
		"recorded" };

	return name[cause <= DOGWOOD_RECORDED ? cause : 0];
}
