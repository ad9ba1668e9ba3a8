/* Submitting events: stamp, step, judge, append, and release the verdict once what it rests on
 * is durable. See engine.h for the rule. */
#include <stdlib.h>
#include <string.h>

#include "engine/build.h"
#include "engine/engine.h"

#include "base/ban.h"

static int fail(struct dogwood_error *err, enum dogwood_code code, const char *text)
{
	struct box_err b = { 0 };

	(void)box_fail(&b, BOX_EPARSE, 0, "%s", text);
	return eng_error(err, code, &b);
}

/* A token that is known: the first verdict again. The need is what the first one had at most. */
static int repeat(struct dogwood_engine *e, const struct eng_token *k, struct eng_call *c)
{
	struct box_err b = { 0 };
	struct eng_stored s;

	if (eng_stored_get((sv){ k->text + k->ntoken, k->nverdict }, &e->st.arena, &s, &b) < 0)
		return eng_error_auto(c->err, &b);
	if (c->v != NULL) {
		eng_verdict_stored(c->v, k->set, &s, k->offset, k->ts);
		c->v->pub.repeated = true;
	}
	c->need = k->offset + 1;
	c->undeclared = s.cause != DOGWOOD_RECORDED &&
	                !dw_set_has_action(e->st.set->set, c->ev->action.type, c->ev->action.id);
	return 0;
}

/* From here on the monitors know the event: what goes wrong breaks the engine, since memory
 * would be ahead of the disk. */
static int commit(struct dogwood_engine *e, struct dw_event *ev, struct eng_call *c)
{
	sv token = c->token;
	bool matters =
	    e->opt.sync == DOGWOOD_SYNC_ALWAYS || token.n != 0 || dwm_may_match(e->st.mon, ev);
	bool decide = dw_set_is_decision(e->st.set->set, ev->kind);
	struct dw_decision d = { .cause = DW_FAULT, .fault = ENG_FAULT_NOMEM };
	uint64_t offset = e->st.next;
	struct box_err b = { 0 };
	size_t at;

	if (dwm_step(e->st.mon, ev, &b) < 0)
		goto broken;
	if (decide && dw_decide(e->scratch, e->st.set->set, e->st.mon, ev, &d, &b) < 0)
		d = (struct dw_decision){ .cause = DW_FAULT, .fault = ENG_FAULT_NOMEM };
	at = e->body.n;
	eng_verdict_put(&e->body, decide ? &d : NULL);
	if (!buf_ok(&e->body)) {
		(void)box_nomem(&b, "an event record");
		goto broken;
	}
	if (token.n != 0 &&
	    eng_tokens_add(&e->st.tokens, token, sv_sub(buf_sv(&e->body), at, SIZE_MAX), e->st.set,
	        offset, ev->ts, &b) < 0)
		goto broken;
	if (eng_append(e, WAL_EVENT, ev->ts, buf_sv(&e->body), c->err) < 0)
		return -1;
	if (matters)
		e->need = offset + 1;
	e->events++;
	e->since_snap++;
	if (c->v != NULL)
		eng_verdict_fill(c->v, e->st.set, decide ? &d : NULL, offset, ev->ts);
	c->need = e->need;
	c->undeclared = decide && !dw_set_has_action(e->st.set->set, ev->ns, ev->id);
	c->stored = true;
	eng_help(e);
	return 0;
broken:
	eng_break(e, &b);
	return eng_error(c->err, DOGWOOD_ESTORE, &b);
}

int eng_accept(struct dogwood_engine *e, struct eng_call *c)
{
	const struct eng_token *known;
	struct box_err b = { 0 };
	struct dw_event ev;

	if (eng_check(e, c->err) < 0)
		return -1;
	if (e->st.set == NULL)
		return fail(c->err, DOGWOOD_ENOPOLICY,
		    "no policy set installed \342\200\224 apply one via the control plane");
	if (c->token.n > DOGWOOD_TOKEN_MAX)
		return fail(c->err, DOGWOOD_EARG, "the idempotency token is longer than 128 bytes");
	arena_reset(&e->st.arena);
	if (c->token.n != 0 && (known = eng_tokens_find(&e->st.tokens, c->token)) != NULL)
		return repeat(e, known, c);
	if (eng_build(c->ev, &e->st.arena, &ev, &b) < 0)
		return eng_error_auto(c->err, &b);
	/* Everything that can refuse the event comes before its stamp; the stamp is put in last. */
	buf_clear(&e->body);
	eng_event_put(&e->body, &ev, c->token);
	if (!buf_ok(&e->body) || e->body.n > DOGWOOD_EVENT_MAX)
		return fail(c->err, DOGWOOD_ELIMIT, "the event is larger than 1 MiB");
	if (eng_stamp(e, &ev.ts, c->err) < 0)
		return -1;
	eng_event_restamp(&e->body, &ev);
	return commit(e, &ev, c);
}

int eng_undeclared(const dogwood_event *ev, struct dogwood_error *err)
{
	struct box_err b = { 0 };

	(void)box_fail(&b, BOX_EPARSE, 0,
	    "event kind `" SV_FMT "` is a decision kind but yielded no decision (is `" SV_FMT
	    "::" SV_FMT "` declared in the schema?)",
	    SV_ARG(ev->kind), SV_ARG(ev->action.type), SV_ARG(sv_sub(ev->action.id, 0, 200)));
	return eng_error(err, DOGWOOD_EEVENT, &b);
}

int dogwood_submit(dogwood_engine *e, const dogwood_event *ev, dogwood_str token,
    struct dogwood_verdict *pub, struct dogwood_error *err)
{
	struct eng_call c = { .ev = ev,
		.token = eng_sv(token),
		.v = pub != NULL ? eng_verdict_of(pub) : NULL,
		.err = err };

	if (c.v != NULL)
		eng_verdict_clear(c.v);
	if (eng_call(e, &c) < 0) {
		if (c.v != NULL && c.stored)
			eng_verdict_fault(c.v, SV("the store failed before the event was durable"));
		return -1;
	}
	return c.undeclared ? eng_undeclared(ev, err) : 0;
}
