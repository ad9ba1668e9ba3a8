/* From actions to verdicts. See decide.h. The fields of an ask are hostile; they reach the engine
 * as values only. */
#include "monitor/decide.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "dogwood/dogwood.h"
#include "base/ban.h"

#define TICKET_BUCKETS 4096              /* a power of two */
#define TICKETS_MAX    ((size_t)1 << 20) /* of one owner: a tree of that many files */
#define PRINCIPAL      "Box::Agent::\"self\""
#define RESOURCE       "Box::Resource::\"unused\""

struct ticket {
	struct ticket *bucket_next;
	struct ticket *prev, *next; /* the owner's */
	uint64_t id;
	struct decide_owner *owner;
	struct ask *ask;
	struct record_trace trace;
	/* of a spawn: what its launcher saw */
	bool started, ended, reported;
	int64_t status;
};

struct leg {
	struct batch *batch;
	struct ask *ask;
	struct record_trace trace;
	bool answered, permit;
};

struct batch {
	struct batch *prev, *next; /* the owner's */
	struct decider *d;
	struct decide_owner *owner; /* NULL once the owner ended */
	decide_fn fn;
	void *arg;
	size_t n, answered;
	size_t refused;  /* index of the first refused leg, n: none yet */
	struct buf text; /* its denial */
	struct leg legs[];
};

struct decider {
	struct dogwood_engine *engine;
	struct recorder *rec;
	dogwood_event *ev; /* reused */
	uint64_t next_ticket;
	bool failed;
	struct ticket *buckets[TICKET_BUCKETS];
};

struct decider *decide_new(struct dogwood_engine *engine, struct recorder *rec, struct box_err *err)
{
	struct decider *d = calloc(1, sizeof(*d));

	if (d == NULL || (d->ev = dogwood_event_new()) == NULL) {
		free(d);
		(void)box_nomem(err, "the decider"); /* always -1 */
		return NULL;
	}
	d->engine = engine;
	d->rec = rec;
	d->next_ticket = 1;
	return d;
}

void decide_free(struct decider *d)
{
	if (d == NULL)
		return;
	dogwood_event_free(d->ev);
	free(d);
}

static dogwood_str dw(sv s)
{
	return (dogwood_str){ s.p, s.n };
}

/* ------------------------------------------------------------------------------- events */

static void put_shell(dogwood_event *ev, const struct ask *a)
{
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.command", dw(a->command));
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.program", dw(a->program));
	if (a->args_n > 0)
		dogwood_event_str(ev, DOGWOOD_BOTH, "input.arg1", dw(a->args[0].text));
	if (a->args_n > 1)
		dogwood_event_str(ev, DOGWOOD_BOTH, "input.arg2", dw(a->args[1].text));
	dogwood_event_long(ev, DOGWOOD_BOTH, "input.arg_count", a->args_n);
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.cwd", dw(a->cwd));
	if (a->kind != ASK_SPAWN)
		return;
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.program_path", dw(a->program_path));
	if (a->credential_reads_n != 0) {
		dogwood_str v[16];
		size_t n = a->credential_reads_n < 16 ? a->credential_reads_n : 16;

		for (size_t i = 0; i < n; i++)
			v[i] = dw(a->credential_reads[i]);
		dogwood_event_strs(ev, DOGWOOD_BOTH, "input.credential_reads", v, n);
	}
}

static void put_net(dogwood_event *ev, const struct ask *a)
{
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.host", dw(a->host));
	dogwood_event_long(ev, DOGWOOD_BOTH, "input.port", a->port);
	if (a->kind == ASK_CONNECT) {
		if (a->ip.n != 0)
			dogwood_event_str(ev, DOGWOOD_BOTH, "input.ip", dw(a->ip));
		return;
	}
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.method", dw(a->method));
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.path", dw(a->path));
	dogwood_event_long(ev, DOGWOOD_BOTH, "input.body_bytes",
	    a->body_bytes > INT64_MAX ? INT64_MAX : (int64_t)a->body_bytes);
	dogwood_event_bool(ev, DOGWOOD_BOTH, "input.intercepted", a->intercepted);
}

static void hex16(const uint8_t *p, char out[17])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < 8; i++) {
		out[2 * i] = digits[p[i] >> 4];
		out[2 * i + 1] = digits[p[i] & 15];
	}
	out[16] = '\0';
}

/* The event of an action; the caller adds the output. request and response share one requestId. */
static void build_event(
    struct decider *d, const struct ask *a, const struct record_trace *t, const char *kind)
{
	char action[64], id[17];
	size_t n = 0;

	/* Box::Action::"fs:read": action names are ours and short. */
	for (const char *s = "Box::Action::\""; *s != '\0'; s++)
		action[n++] = *s;
	for (const char *s = ask_action(a); *s != '\0' && n < sizeof(action) - 2; s++)
		action[n++] = *s;
	action[n++] = '"';
	dogwood_event_reset(d->ev);
	dogwood_event_action(d->ev, (dogwood_str){ action, n }, dogwood_cstr(kind));
	dogwood_event_principal(d->ev, dogwood_cstr(PRINCIPAL));
	dogwood_event_resource(d->ev, dogwood_cstr(RESOURCE));
	hex16(t->span_id, id);
	dogwood_event_str(d->ev, DOGWOOD_HISTORY, "requestId", dogwood_cstr(id));
	switch (a->kind) {
	case ASK_FS:
		dogwood_event_str(d->ev, DOGWOOD_BOTH, "input.path", dw(a->path));
		dogwood_event_entity_id(d->ev, DOGWOOD_BOTH, "input.operation",
		    dogwood_cstr(ask_fs_type(a->op)), dogwood_cstr(ask_fs_operation(a->op)));
		break;
	case ASK_EXEC:
	case ASK_SPAWN:
		put_shell(d->ev, a);
		break;
	case ASK_CONNECT:
	case ASK_HTTP:
		put_net(d->ev, a);
		break;
	}
}

/* ------------------------------------------------------------------------------ tickets */

/* Whose tickets an owner's are. */
static struct decide_owner *keeper(struct decide_owner *o)
{
	return o->tickets_to != NULL ? o->tickets_to : o;
}

static struct ticket *ticket_find(struct decider *d, const struct decide_owner *o, uint64_t id)
{
	const struct decide_owner *k = o->tickets_to != NULL ? o->tickets_to : o;
	struct ticket *t = d->buckets[id & (TICKET_BUCKETS - 1)];

	while (t != NULL && t->id != id)
		t = t->bucket_next;
	return t != NULL && t->owner == k ? t : NULL;
}

/* Takes ask. */
static struct ticket *ticket_add(
    struct decider *d, struct decide_owner *o, struct ask *ask, const struct record_trace *trace)
{
	struct ticket *t = o->tickets_n < TICKETS_MAX ? calloc(1, sizeof(*t)) : NULL;
	struct ticket **bucket;

	if (t == NULL)
		return NULL;
	t->id = d->next_ticket++;
	t->owner = o;
	t->ask = ask;
	t->trace = *trace;
	bucket = &d->buckets[t->id & (TICKET_BUCKETS - 1)];
	t->bucket_next = *bucket;
	*bucket = t;
	t->next = o->tickets;
	if (t->next != NULL)
		t->next->prev = t;
	o->tickets = t;
	o->tickets_n++;
	return t;
}

static void ticket_drop(struct decider *d, struct ticket *t)
{
	struct ticket **at = &d->buckets[t->id & (TICKET_BUCKETS - 1)];

	while (*at != t)
		at = &(*at)->bucket_next;
	*at = t->bucket_next;
	if (t->prev != NULL)
		t->prev->next = t->next;
	else
		t->owner->tickets = t->next;
	if (t->next != NULL)
		t->next->prev = t->prev;
	t->owner->tickets_n--;
	free(t->ask);
	free(t);
}

const struct ask *decide_ticket_start(
    struct decider *d, const struct decide_owner *o, uint64_t ticket)
{
	struct ticket *t = ticket_find(d, o, ticket);

	if (t == NULL || t->ask->kind != ASK_SPAWN || t->started)
		return NULL;
	t->started = true;
	return t->ask;
}

/* --------------------------------------------------------------------------- decisions */

/* The tail of 3.1. The class comes before annotations: a fault never shows an authored id. */
static void put_denial(struct buf *b, const struct ask *a, const struct dogwood_verdict *v)
{
	buf_put_c(b, "policy denied this operation on '");
	ask_put_target_escaped(a, b);
	buf_put_c(b, "' ");
	if (v->cause == DOGWOOD_FORBIDDEN && v->n_rules > 0) {
		const struct dogwood_rule *r = &v->rules[0];
		sv id = sv_trim((sv){ r->id.p, r->id.n });
		sv text = sv_trim((sv){ r->description.p, r->description.n });

		buf_put_c(b, "[policy: ");
		buf_put_escaped(b, id.n != 0 ? id : (sv){ r->engine_id.p, r->engine_id.n });
		buf_put_c(b, text.n != 0 ? "]: " : "].");
		buf_put_escaped(b, text);
	} else if (v->cause == DOGWOOD_NO_MATCH) {
		buf_put_c(b, "[default-deny]: No permit policy matched this request.");
	} else {
		buf_put_c(b, "because the request could not be evaluated.");
	}
}

static sv rule_name(const struct dogwood_rule *r)
{
	sv id = sv_trim((sv){ r->id.p, r->id.n });

	return id.n != 0 ? id : (sv){ r->engine_id.p, r->engine_id.n };
}

#define DETERMINING_MAX 64

static void write_record(struct decider *d, const struct ask *a, const struct record_trace *t,
    const struct dogwood_verdict *v, sv denial)
{
	struct record_decision r = {
		.ask = a, .trace = *t, .ts_ns = v->ts_ns, .permit = v->permit
	};
	sv ids[DETERMINING_MAX];

	switch (v->cause) {
	case DOGWOOD_PERMITTED:
		r.cause = RECORD_PERMITTED;
		break;
	case DOGWOOD_FORBIDDEN:
		r.cause = RECORD_FORBIDDEN;
		break;
	case DOGWOOD_NO_MATCH:
		r.cause = RECORD_NO_MATCH;
		break;
	case DOGWOOD_FAULT:
	case DOGWOOD_RECORDED:
		r.cause = RECORD_FAULT;
		break;
	}
	if (v->n_rules > 0 && (v->cause == DOGWOOD_PERMITTED || v->cause == DOGWOOD_FORBIDDEN)) {
		r.rule = rule_name(&v->rules[0]);
		r.description =
		    sv_trim((sv){ v->rules[0].description.p, v->rules[0].description.n });
	}
	for (size_t i = 0; i < v->n_rules && i < DETERMINING_MAX; i++)
		ids[r.determining_n++] = rule_name(&v->rules[i]);
	r.determining = ids;
	if (!v->permit)
		r.reason = v->cause == DOGWOOD_NO_MATCH ? SV("no permit matched")
		           : v->cause == DOGWOOD_FAULT
		               ? SV("the request could not be evaluated, so it was refused")
		               : denial;
	record_decision(d->rec, &r);
}

static void batch_free(struct batch *b)
{
	if (b->owner != NULL) {
		if (b->prev != NULL)
			b->prev->next = b->next;
		else
			b->owner->batches = b->next;
		if (b->next != NULL)
			b->next->prev = b->prev;
	}
	for (size_t i = 0; i < b->n; i++)
		free(b->legs[i].ask);
	buf_fini(&b->text);
	free(b);
}

/* Every leg has its verdict: make the tickets and answer. */
static void batch_finish(struct batch *b)
{
	struct decision out = { .permit = b->refused == b->n, .index = b->refused };

	if (b->owner == NULL) {
		batch_free(b); /* nobody to answer; what was permitted will not be done */
		return;
	}
	for (size_t i = 0; out.permit && i < b->n; i++) {
		struct ticket *t =
		    ticket_add(b->d, keeper(b->owner), b->legs[i].ask, &b->legs[i].trace);

		if (t == NULL) {
			out = (struct decision){ .index = i };
			buf_clear(&b->text);
			buf_put_c(&b->text, "too many operations are open at once");
			break;
		}
		b->legs[i].ask = NULL; /* the ticket's now */
		if (i == 0)
			out.ticket = t->id;
	}
	out.text = buf_sv(&b->text);
	b->fn(b->arg, &out);
	batch_free(b);
}

static void on_verdict(void *arg, const struct dogwood_verdict *v)
{
	struct leg *leg = arg;
	struct batch *b = leg->batch;
	size_t index = (size_t)(leg - b->legs);
	AUTO_BUF text = buf_with(MON_REASON_MAX);

	leg->answered = true;
	leg->permit = v->permit;
	if (!v->permit) {
		put_denial(&text, leg->ask, v);
		if (!buf_ok(&text)) { /* a target of many kilobytes */
			buf_clear(&text);
			buf_put_c(&text, "policy denied this operation");
		}
		if (index < b->refused) {
			b->refused = index;
			buf_clear(&b->text);
			buf_put_sv(&b->text, buf_sv(&text));
		}
	}
	write_record(b->d, leg->ask, &leg->trace, v, buf_sv(&text));
	if (++b->answered == b->n)
		batch_finish(b);
}

int decide_batch(struct decider *d, struct decide_owner *o, const struct ask *asks, size_t n,
    sv traceparent, decide_fn fn, void *arg, struct box_err *err)
{
	struct batch *b = n != 0 ? calloc(1, sizeof(*b) + n * sizeof(b->legs[0])) : NULL;
	struct dogwood_error de = { 0 };

	if (b == NULL)
		return box_nomem(err, "a decision");
	*b = (struct batch){ .d = d,
		.owner = o,
		.fn = fn,
		.arg = arg,
		.n = n,
		.refused = n,
		.text = buf_with(MON_REASON_MAX),
		.next = o->batches };
	if (b->next != NULL)
		b->next->prev = b;
	o->batches = b;
	for (size_t i = 0; i < n; i++) {
		b->legs[i].batch = b;
		b->legs[i].ask = ask_dup(&asks[i]);
		record_trace_new(d->rec, traceparent, &b->legs[i].trace);
		if (b->legs[i].ask == NULL) {
			batch_free(b);
			return box_nomem(err, "a decision");
		}
	}
	/* The last leg may answer at once and free the batch, so nothing of it is read after
	 * that. */
	for (size_t i = 0; i < n; i++) {
		struct leg *leg = &b->legs[i];

		build_event(d, leg->ask, &leg->trace, "request");
		if (dogwood_submit_begin(
		        d->engine, d->ev, (dogwood_str){ NULL, 0 }, on_verdict, leg, &de) < 0) {
			/* Never happened as far as the history knows, or the store is broken:
			 * refuse it. */
			dogwood_str why = dogwood_cstr(de.msg);
			struct dogwood_verdict v = { .cause = DOGWOOD_FAULT, .fault = why };

			if (de.code == DOGWOOD_ESTORE || de.code == DOGWOOD_ECORRUPT)
				d->failed = true;
			log_warn("a decision failed: %s", de.msg);
			on_verdict(leg, &v);
		}
	}
	return 0;
}

/* ---------------------------------------------------------------------------- outcomes */

/* Put the event into the history; nobody waits for it. */
static void submit_outcome(struct decider *d)
{
	struct dogwood_error de = { 0 };

	if (dogwood_submit_begin(d->engine, d->ev, (dogwood_str){ NULL, 0 }, NULL, NULL, &de) < 0) {
		log_warn("an outcome could not be recorded: %s", de.msg);
		if (de.code == DOGWOOD_ESTORE || de.code == DOGWOOD_ECORRUPT)
			d->failed = true;
	}
}

static int no_ticket(uint64_t ticket, struct box_err *err)
{
	return box_fail(
	    err, BOX_EDENIED, 0, "ticket %llu is not open here", (unsigned long long)ticket);
}

static const char *const result_names[] = {
	[FS_COMPLETED] = "completed",
	[FS_DESCRIPTOR_ISSUED] = "descriptor_issued",
	[FS_INDETERMINATE] = "indeterminate",
	[FS_FAILED] = "failed",
};

int decide_done_fs(struct decider *d, struct decide_owner *o, uint64_t ticket,
    enum mon_fs_result result, struct box_err *err)
{
	struct ticket *t = ticket_find(d, o, ticket);

	if (t == NULL)
		return no_ticket(ticket, err);
	if (t->ask->kind != ASK_FS || result < FS_COMPLETED || result > FS_FAILED)
		return box_fail(err, BOX_EDENIED, 0, "a malformed outcome");
	build_event(d, t->ask, &t->trace, result == FS_FAILED ? "error" : "response");
	if (result != FS_FAILED)
		dogwood_event_entity_id(d->ev, DOGWOOD_HISTORY, "output.result",
		    dogwood_cstr("Box::FsResponseResult"), dogwood_cstr(result_names[result]));
	submit_outcome(d);
	record_outcome(d->rec, t->ask, &t->trace, result_names[result], 0, false);
	ticket_drop(d, t);
	return 0;
}

/* The end of a ticket of kind exec, spawn or http. */
static void finish_status(struct decider *d, struct ticket *t, int64_t status)
{
	bool has = t->ask->kind != ASK_HTTP || status != 0;

	build_event(d, t->ask, &t->trace, "response");
	if (has)
		dogwood_event_long(d->ev, DOGWOOD_HISTORY, "output.status", status);
	submit_outcome(d);
	record_outcome(d->rec, t->ask, &t->trace, has ? "completed" : "no reply", status, has);
	ticket_drop(d, t);
}

void decide_ticket_ended(
    struct decider *d, const struct decide_owner *o, uint64_t ticket, int64_t status)
{
	struct ticket *t = ticket_find(d, o, ticket);

	if (t == NULL)
		return;
	t->ended = true;
	t->status = status;
	if (t->reported)
		finish_status(d, t, status);
}

int decide_done_status(struct decider *d, struct decide_owner *o, uint64_t ticket, int64_t status,
    uint64_t body_bytes, struct box_err *err)
{
	struct ticket *t = ticket_find(d, o, ticket);

	if (t == NULL)
		return no_ticket(ticket, err);
	switch (t->ask->kind) {
	case ASK_FS:
	case ASK_CONNECT:
		return box_fail(err, BOX_EDENIED, 0, "a malformed outcome");
	case ASK_EXEC:
		break;
	case ASK_HTTP:
		/* Delivered, where the request had what was offered. */
		t->ask->body_bytes = body_bytes;
		break;
	case ASK_SPAWN:
		/* The shell may be lying about a program that policy reads the status of. */
		if (t->started && !t->ended) {
			t->reported = true; /* its subshell was killed: the program's end decides */
			return 0;
		}
		status = t->ended ? t->status : status != 0 ? status : -1;
		break;
	}
	finish_status(d, t, status);
	return 0;
}

int decide_done_connect(
    struct decider *d, struct decide_owner *o, uint64_t ticket, bool connected, struct box_err *err)
{
	struct ticket *t = ticket_find(d, o, ticket);

	if (t == NULL)
		return no_ticket(ticket, err);
	if (t->ask->kind != ASK_CONNECT)
		return box_fail(err, BOX_EDENIED, 0, "a malformed outcome");
	build_event(d, t->ask, &t->trace, connected ? "response" : "error");
	submit_outcome(d);
	record_outcome(d->rec, t->ask, &t->trace, connected ? "connected" : "failed", 0, false);
	ticket_drop(d, t);
	return 0;
}

int decide_abandon(
    struct decider *d, struct decide_owner *o, uint64_t ticket, size_t n, struct box_err *err)
{
	for (size_t i = 0; i < n; i++) {
		struct ticket *t = ticket_find(d, o, ticket + i);

		if (t == NULL)
			return no_ticket(ticket + i, err);
		if (!t->started)
			ticket_drop(d, t);
		else if (decide_done_status(d, o, ticket + i, -1, 0, err) != 0)
			return -1;
	}
	return 0;
}

void decide_note_enforcement(struct decider *d, const struct ask *a, const char *gate, sv reason)
{
	AUTO_BUF rule = buf_with(128);
	struct record_decision r = {
		.ask = a, .cause = RECORD_ENFORCEMENT, .reason = reason, .ts_ns = record_now(d->rec)
	};

	buf_putf(&rule, "enforcement:%s", gate);
	r.rule = buf_sv(&rule);
	record_trace_new(d->rec, (sv){ NULL, 0 }, &r.trace);
	record_decision(d->rec, &r);
}

void decide_owner_end(struct decider *d, struct decide_owner *o)
{
	struct box_err ignored;

	for (struct batch *b = o->batches; b != NULL;) {
		struct batch *next = b->next;

		b->owner = NULL;
		b->prev = b->next = NULL;
		b->fn(b->arg, NULL);
		b = next;
	}
	o->batches = NULL;
	while (o->tickets != NULL) {
		struct ticket *t = o->tickets;

		/* Each call drops the ticket, whatever it returns: the kinds below are the ticket's
		 * own. */
		switch (t->ask->kind) {
		case ASK_FS:
			(void)decide_done_fs(d, o, t->id, FS_INDETERMINATE, &ignored);
			break;
		case ASK_EXEC:
			(void)decide_done_status(d, o, t->id, -1, 0, &ignored);
			break;
		case ASK_SPAWN:
			finish_status(d, t, t->ended ? t->status : -1);
			break;
		case ASK_HTTP:
			(void)decide_done_status(d, o, t->id, 0, t->ask->body_bytes, &ignored);
			break;
		case ASK_CONNECT:
			(void)decide_done_connect(d, o, t->id, false, &ignored);
			break;
		}
	}
}

bool decide_turn(struct decider *d)
{
	struct dogwood_error de = { 0 };

	/* Callbacks may decide more (a parked command goes on); those wait for the next turn's
	 * sync. */
	if (dogwood_engine_sync(d->engine, &de) < 0) {
		log_error("policy staging failed: %s", de.msg);
		d->failed = true;
	}
	record_flush(d->rec);
	return !d->failed;
}
