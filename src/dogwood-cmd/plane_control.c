/* The control plane. See plane.h and local-engine.md 15.4. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dogwood-cmd/plane.h"
#include "dogwood-cmd/wire.h"
#include "engine/build.h"
#include "engine/change.h"
#include "engine/codec.h"
#include "engine/engine.h"

#include "base/ban.h"

#define VERBS_MAX 65536

struct ask {
	const struct plane *p;
	const struct dw_val *v;
	struct arena *a;
	struct buf *out;
};

static void fail(const struct ask *q, const struct dogwood_error *err)
{
	wire_error(q->out, err->msg);
}

/* The installed set, to be given back with eng_set_unref; NULL with the answer made when there
 * is none. */
static struct eng_set *the_set(const struct ask *q)
{
	dogwood_engine *e = q->p->engine;
	struct eng_set *s;

	(void)pthread_mutex_lock(&e->lock);
	s = e->st.set != NULL ? eng_set_ref(e->st.set) : NULL;
	(void)pthread_mutex_unlock(&e->lock);
	if (s == NULL)
		wire_error(
		    q->out, "no policy set installed \342\200\224 apply one via the control plane");
	return s;
}

static void on_install(const struct ask *q)
{
	struct dogwood_source policy = { .name = dogwood_cstr("policy") };
	struct dogwood_policy_set set = { .policies = &policy, .n_policies = 1 };
	struct dogwood_installed in;
	struct dogwood_error err;
	sv s;

	if (!wire_str(q->v, "policy", &s)) {
		wire_error(q->out, "malformed request: `policy` is missing");
		return;
	}
	policy.text = eng_str(s);
	if (!wire_str(q->v, "action_schema", &s)) {
		wire_error(q->out, "malformed request: `action_schema` is missing");
		return;
	}
	set.action_schema = (struct dogwood_source){ dogwood_cstr("action_schema"), eng_str(s) };
	if (wire_str(q->v, "event_schema", &s))
		set.event_schema =
		    (struct dogwood_source){ dogwood_cstr("event_schema"), eng_str(s) };
	if (dogwood_engine_install(q->p->engine, &set, NULL, &in, &err) < 0) {
		fail(q, &err);
		return;
	}
	buf_putf(q->out,
	    "{\"status\":\"applied\",\"applied_at_nanos\":%" PRId64
	    ",\"rule_count\":%u,\"leaf_count\":%u,\"leaves_retained\":%u,\"leaves_prospective\":%"
	    "u}",
	    in.ts_ns, in.rules, in.clauses, in.clauses_kept, in.clauses_new);
}

static int read_verb(const struct dw_val *v, struct dogwood_verb *out, struct box_err *err)
{
	static const struct {
		const char *name, *token, *text;
		enum dogwood_verb_kind kind;
	} row[] = { { "add", NULL, "policy", DOGWOOD_ADD },
		{ "update", "id", "policy", DOGWOOD_UPDATE },
		{ "delete", "id", NULL, DOGWOOD_DELETE }, { "reset", "id", NULL, DOGWOOD_RESET },
		{ "delete_all", NULL, NULL, DOGWOOD_DELETE_ALL },
		{ "reset_all", NULL, NULL, DOGWOOD_RESET_ALL },
		{ "set_action_schema", NULL, "action_schema", DOGWOOD_SET_ACTION_SCHEMA },
		{ "append_action_schema", NULL, "fragment", DOGWOOD_APPEND_ACTION_SCHEMA } };
	sv name, token = { NULL, 0 }, text = { NULL, 0 };

	if (v->tag != DW_OBJECT || !wire_str(v, "verb", &name))
		return box_fail(err, BOX_EPARSE, 0, "malformed request: a verb needs `verb`");
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const char *names[] = { "verb", row[i].token != NULL ? row[i].token : row[i].text,
			row[i].token != NULL ? row[i].text : NULL, NULL };

		if (!sv_eq(name, sv_c(row[i].name)))
			continue;
		if (wire_only(v, names, err) < 0)
			return -1;
		if ((row[i].token != NULL && !wire_str(v, row[i].token, &token)) ||
		    (row[i].text != NULL && !wire_str(v, row[i].text, &text)))
			return box_fail(err, BOX_EPARSE, 0,
			    "malformed request: verb `%s` lacks a field", row[i].name);
		*out = (struct dogwood_verb){ row[i].kind, eng_str(token), eng_str(text) };
		return 0;
	}
	return box_fail(err, BOX_EPARSE, 0, "malformed request: unknown verb `" SV_FMT "`",
	    SV_ARG(sv_sub(name, 0, 60)));
}

static void put_lines(struct buf *b, sv text)
{
	sv line;
	bool first = true;

	while (sv_cut(text, '\n', &line, &text)) {
		if (!first)
			buf_put_byte(b, ',');
		buf_put_json(b, line);
		first = false;
	}
}

static void on_batch(const struct ask *q)
{
	const struct dw_val *list = dw_get(q->v, SV("verbs"));
	struct dogwood_installed in;
	struct dogwood_error derr;
	struct dogwood_verb *verb;
	struct box_err err = { 0 };
	char *minted = NULL;

	if (list == NULL || list->tag != DW_ARRAY || list->u.arr.n > VERBS_MAX) {
		wire_error(q->out, "malformed request: `verbs` is not a list");
		return;
	}
	verb = ARENA_VEC(q->a, struct dogwood_verb, list->u.arr.n);
	if (verb == NULL) {
		wire_error(q->out, "out of memory");
		return;
	}
	for (size_t i = 0; i < list->u.arr.n; i++)
		if (read_verb(&list->u.arr.v[i], &verb[i], &err) < 0) {
			wire_error(q->out, err.msg);
			return;
		}
	if (dogwood_engine_batch(q->p->engine, verb, list->u.arr.n, NULL, &in, &minted, &derr) <
	    0) {
		AUTO_BUF text = buf_with(4096);

		buf_put_c(&text, derr.code == DOGWOOD_EPOLICY ? "rejected: " : "");
		buf_put_c(&text, derr.msg);
		wire_error(q->out, buf_cstr(&text));
		return;
	}
	buf_putf(q->out, "{\"status\":\"batched\",\"minted\":[");
	put_lines(q->out, sv_c(minted));
	buf_putf(q->out, "],\"applied_at_nanos\":%" PRId64 "}", in.ts_ns);
	dogwood_free(minted);
}

static void on_list(const struct ask *q)
{
	const struct dw_val *max = dw_get(q->v, SV("max_results"));
	size_t from = 0, n = SIZE_MAX, shown = 0;
	struct eng_set *s;
	sv token;

	if (max != NULL && (max->tag != DW_INT || max->u.i <= 0)) {
		wire_error(q->out, "max_results must be greater than zero");
		return;
	}
	if (max != NULL)
		n = (size_t)max->u.i;
	s = the_set(q);
	if (s == NULL)
		return;
	if (wire_str(q->v, "next_token", &token)) {
		ptrdiff_t at = eng_entry_find(s, token);

		/* A policy that is gone, or never was: an empty page. */
		from = at < 0 ? s->n : (size_t)at;
	}
	buf_put_c(q->out, "{\"status\":\"policy_list\",\"policies\":[");
	for (size_t i = from; i < s->n && shown < n; i++, shown++)
		buf_putf(q->out,
		    "%s{\"id\":\"%s\",\"created\":%" PRId64 ",\"updated\":%" PRId64 "}",
		    shown != 0 ? "," : "", s->entries[i].token, s->entries[i].created,
		    s->entries[i].updated);
	buf_put_byte(q->out, ']');
	if (from + shown < s->n)
		buf_putf(q->out, ",\"next_token\":\"%s\"", s->entries[from + shown].token);
	buf_put_byte(q->out, '}');
	eng_set_unref(s);
}

static void on_status(const struct ask *q)
{
	struct dogwood_status st = { .size = sizeof(st) };
	dogwood_engine *e = q->p->engine;
	struct eng_set *s;

	(void)dogwood_engine_status(e, &st, NULL); /* the size is right */
	(void)pthread_mutex_lock(&e->lock);
	s = e->st.set != NULL ? eng_set_ref(e->st.set) : NULL;
	(void)pthread_mutex_unlock(&e->lock);
	buf_putf(q->out,
	    "{\"status\":\"status\",\"rule_count\":%u,\"leaf_count\":%u,\"incremental_leaves\":%u,"
	    "\"decision_kinds\":[",
	    st.rules, st.clauses, st.clauses);
	for (size_t i = 0; s != NULL && i < dw_set_ndecision_kinds(s->set); i++) {
		if (i != 0)
			buf_put_byte(q->out, ',');
		buf_put_json(q->out, dw_set_decision_kind(s->set, i));
	}
	buf_put_byte(q->out, ']');
	if (s != NULL && dw_set_npins(s->set) != 0) {
		buf_put_c(q->out, ",\"partition_key\":[");
		for (size_t i = 0; i < dw_set_npins(s->set); i++) {
			if (i != 0)
				buf_put_byte(q->out, ',');
			buf_put_json(q->out, dw_set_pin(s->set, i));
		}
		buf_put_byte(q->out, ']');
	}
	buf_putf(q->out, ",\"log_offset\":%" PRIu64 ",\"control_uids\":[", st.next_offset);
	for (size_t i = 0; i < q->p->n_control_uids; i++)
		buf_putf(q->out, "%s%u", i != 0 ? "," : "", (unsigned)q->p->control_uids[i]);
	buf_put_c(q->out, "]}");
	eng_set_unref(s);
}

static void on_get_policy(const struct ask *q)
{
	struct eng_set *s = the_set(q);
	AUTO_BUF text = buf_with(WIRE_MAX);

	for (size_t i = 0; s != NULL && i < s->n; i++) {
		buf_put_c(&text, i != 0 ? "\n\n" : "");
		buf_put_sv(&text, dw_set_rule(s->set, i)->statement);
	}
	if (s != NULL) {
		buf_put_c(q->out, "{\"status\":\"policy\",\"source\":");
		buf_put_json(q->out, buf_sv(&text));
		buf_put_byte(q->out, '}');
	}
	eng_set_unref(s);
}

static void on_get_policy_by_id(const struct ask *q)
{
	struct eng_set *s = the_set(q);
	struct box_err err = { 0 };
	ptrdiff_t at;
	sv id;

	if (s == NULL)
		return;
	(void)wire_str(q->v, "id", &id);
	at = eng_entry_find(s, id);
	if (at < 0) {
		(void)box_fail(
		    &err, BOX_ECONFIG, 0, "no such policy: " SV_FMT, SV_ARG(sv_sub(id, 0, 100)));
		wire_error(q->out, err.msg);
	} else {
		buf_put_c(q->out, "{\"status\":\"policy\",\"source\":");
		buf_put_json(q->out, dw_set_rule(s->set, (size_t)at)->statement);
		buf_put_byte(q->out, '}');
	}
	eng_set_unref(s);
}

static void on_get_schema(const struct ask *q)
{
	struct eng_set *s = the_set(q);
	struct dogwood_policy_set in;
	struct box_err err = { 0 };

	if (s == NULL)
		return;
	if (eng_install_get(buf_sv(&s->body), q->a, &in, &err) < 0) {
		wire_error(q->out, err.msg);
	} else {
		buf_put_c(q->out, "{\"status\":\"schema\",\"action_schema\":");
		buf_put_json(q->out, eng_sv(in.action_schema.text));
		if (in.event_schema.text.p != NULL) {
			buf_put_c(q->out, ",\"event_schema\":");
			buf_put_json(q->out, eng_sv(in.event_schema.text));
		}
		buf_put_byte(q->out, '}');
	}
	eng_set_unref(s);
}

static void on_checkpoint(const struct ask *q)
{
	struct dogwood_status st = { .size = sizeof(st) };
	struct dogwood_error err;

	if (dogwood_engine_checkpoint(q->p->engine, &err) < 0) {
		fail(q, &err);
		return;
	}
	(void)dogwood_engine_status(q->p->engine, &st, NULL); /* the size is right */
	buf_putf(q->out, "{\"status\":\"checkpointed\",\"up_to_offset\":%" PRIu64 "}",
	    st.installed ? st.snapshot_offset : st.next_offset);
}

static const struct op {
	const char *name;
	const char *fields[5];
	void (*run)(const struct ask *q);
} ops[] = {
	{ "install", { "op", "policy", "action_schema", "event_schema" }, on_install },
	{ "batch", { "op", "verbs" }, on_batch },
	{ "list", { "op", "max_results", "next_token" }, on_list },
	{ "status", { "op" }, on_status },
	{ "get_policy", { "op" }, on_get_policy },
	{ "get_policy_by_id", { "op", "id" }, on_get_policy_by_id },
	{ "get_schema", { "op" }, on_get_schema },
	{ "checkpoint", { "op" }, on_checkpoint },
};

bool plane_control(const struct plane *p, sv request, struct buf *out)
{
	AUTO_ARENA a = { .limit = 8 * WIRE_MAX };
	struct box_err err = { 0 };
	struct dw_val v;
	struct ask q = { p, &v, &a, out };
	sv name;

	buf_clear(out);
	if (wire_parse(&a, request, &v, &err) < 0) {
		wire_error(out, err.msg);
		return false;
	}
	(void)wire_str(&v, "op", &name);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		if (!sv_eq(name, sv_c(ops[i].name)))
			continue;
		if (wire_only(&v, ops[i].fields, &err) < 0) {
			wire_error(out, err.msg);
			return false;
		}
		ops[i].run(&q);
		return true;
	}
	wire_error(out, "malformed request: unknown `op`");
	return false;
}
