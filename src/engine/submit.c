/* Submitting events: stamp, step, judge, append, and release the verdict once what it rests on
 * is durable. See engine.h for the rule. */
#include <stdlib.h>
#include <string.h>

#include "engine/build.h"
#include "engine/engine.h"

#include "base/ban.h"

/* Made ready when the event was accepted. */
struct accepted {
	uint64_t need;   /* the verdict may leave when so many records are durable */
	bool undeclared; /* a decision about an action that the schema does not have */
};

static int fail(struct dogwood_error *err, enum dogwood_code code, const char *text)
{
	struct box_err b = { 0 };

	(void)box_fail(&b, BOX_EPARSE, 0, "%s", text);
	return eng_error(err, code, &b);
}

/* A token that is known: the first verdict again. The need is what the first one had at most. */
static int repeat(struct dogwood_engine *e, const struct eng_token *k, struct eng_verdict *v,
    struct accepted *out, struct dogwood_error *err)
{
	struct box_err b = { 0 };
	struct eng_stored s;

	if (eng_stored_get((sv){ k->text + k->ntoken, k->nverdict }, &e->st.arena, &s, &b) < 0)
		return eng_error_auto(err, &b);
	if (v != NULL) {
		eng_verdict_stored(v, k->set, &s, k->offset, k->ts);
		v->pub.repeated = true;
	}
	*out = (struct accepted){ .need = k->offset + 1 };
	return 0;
}

/* From here on the monitors know the event: what goes wrong breaks the engine, since memory
 * would be ahead of the disk. */
static int commit(struct dogwood_engine *e, struct dw_event *ev, sv token, struct eng_verdict *v,
    struct accepted *out, struct dogwood_error *err)
{
	bool matters =
	    e->opt.sync == DOGWOOD_SYNC_ALWAYS || token.n != 0 || dwm_may_match(e->st.mon, ev);
	bool decide = dw_set_is_decision(e->st.set->set, ev->kind);
	struct dw_decision d = { .cause = DW_FAULT, .fault = "no memory for the decision" };
	uint64_t offset = e->st.next;
	struct box_err b = { 0 };
	size_t at;

	if (dwm_step(e->st.mon, ev, &b) < 0)
		goto broken;
	if (decide && dw_decide(e->scratch, e->st.set->set, e->st.mon, ev, &d, &b) < 0)
		d = (struct dw_decision){ .cause = DW_FAULT,
			.fault = "no memory for the decision" };
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
	if (eng_append(e, WAL_EVENT, ev->ts, buf_sv(&e->body), err) < 0)
		return -1;
	if (matters)
		e->need = offset + 1;
	e->events++;
	e->since_snap++;
	if (v != NULL)
		eng_verdict_fill(v, e->st.set, decide ? &d : NULL, offset, ev->ts);
	*out = (struct accepted){ .need = e->need,
		.undeclared = decide && !dw_set_has_action(e->st.set->set, ev->ns, ev->id) };
	eng_help(e);
	return 0;
broken:
	eng_break(e, &b);
	return eng_error(err, DOGWOOD_ESTORE, &b);
}

/* Under the lock. */
static int accept(struct dogwood_engine *e, const dogwood_event *from, sv token,
    struct eng_verdict *v, struct accepted *out, struct dogwood_error *err)
{
	const struct eng_token *known;
	struct box_err b = { 0 };
	struct dw_event ev;

	if (eng_check(e, err) < 0)
		return -1;
	if (e->st.set == NULL)
		return fail(err, DOGWOOD_ENOPOLICY,
		    "no policy set installed \342\200\224 apply one via the control plane");
	if (token.n > DOGWOOD_TOKEN_MAX)
		return fail(err, DOGWOOD_EARG, "the idempotency token is longer than 128 bytes");
	arena_reset(&e->st.arena);
	if (token.n != 0 && (known = eng_tokens_find(&e->st.tokens, token)) != NULL)
		return repeat(e, known, v, out, err);
	if (eng_build(from, &e->st.arena, &ev, &b) < 0)
		return eng_error_auto(err, &b);
	/* Everything that can refuse the event comes before its stamp; the stamp is put in last. */
	buf_clear(&e->body);
	eng_event_put(&e->body, &ev, token);
	if (!buf_ok(&e->body) || e->body.n > DOGWOOD_EVENT_MAX)
		return fail(err, DOGWOOD_ELIMIT, "the event is larger than 1 MiB");
	if (eng_stamp(e, &ev.ts, err) < 0)
		return -1;
	eng_event_restamp(&e->body, &ev);
	return commit(e, &ev, token, v, out, err);
}

static int undeclared(const dogwood_event *ev, struct dogwood_error *err)
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
	struct eng_verdict *v = pub != NULL ? eng_verdict_of(pub) : NULL;
	struct accepted a = { 0 };
	bool wait;

	if (v != NULL)
		eng_verdict_clear(v);
	(void)pthread_mutex_lock(&e->lock);
	if (accept(e, ev, eng_sv(token), v, &a, err) < 0) {
		(void)pthread_mutex_unlock(&e->lock);
		return -1;
	}
	wait = atomic_load(&e->durable) < a.need;
	if (wait) {
		/* Gives the lock up. */
		if (eng_wait_durable(e, a.need, err) < 0) {
			if (v != NULL)
				eng_verdict_fault(
				    v, SV("the store failed before the event was durable"));
			return -1;
		}
	} else {
		if (e->wal != NULL && wal_pending(e->wal) > ENG_PENDING_MAX / 16)
			(void)eng_write_out(e, NULL); /* a failure shows at the next submit */
		(void)pthread_mutex_unlock(&e->lock);
	}
	return a.undeclared ? undeclared(ev, err) : 0;
}

static struct eng_verdict *pool_get(struct dogwood_engine *e)
{
	struct dogwood_verdict *v;

	if (e->n_pool != 0)
		return e->pool[--e->n_pool];
	v = dogwood_verdict_new();
	return v != NULL ? eng_verdict_of(v) : NULL;
}

static void pool_put(struct dogwood_engine *e, struct eng_verdict *v)
{
	eng_verdict_clear(v);
	/* pool has room for all that the queue can hold. */
	e->pool[e->n_pool++] = v;
}

/* Room for one more waiting verdict, and for one that is called at once. */
static bool queue_room(struct dogwood_engine *e)
{
	size_t cap = e->q_cap == 0 ? 64 : 2 * e->q_cap;
	struct eng_wait *q;
	struct eng_verdict **pool;

	if (e->q_n + e->q_out + 2 <= e->q_cap)
		return true;
	pool = reallocarray(e->pool, cap, sizeof(struct eng_verdict *));
	if (pool == NULL)
		return false;
	e->pool = pool;
	q = calloc(cap, sizeof(*q));
	if (q == NULL)
		return false;
	for (size_t i = 0; i < e->q_n; i++)
		q[i] = e->queue[(e->q_head + i) % e->q_cap];
	free(e->queue);
	e->queue = q;
	e->q_head = 0;
	e->q_cap = cap;
	return true;
}

int dogwood_submit_begin(dogwood_engine *e, const dogwood_event *ev, dogwood_str token,
    dogwood_verdict_fn fn, void *arg, struct dogwood_error *err)
{
	struct eng_verdict *v = NULL;
	struct accepted a = { 0 };
	int rc = -1;

	(void)pthread_mutex_lock(&e->lock);
	if (fn != NULL && (!queue_room(e) || (v = pool_get(e)) == NULL)) {
		(void)fail(err, DOGWOOD_ENOMEM, "no memory for a waiting verdict");
		goto out;
	}
	if (accept(e, ev, eng_sv(token), v, &a, err) < 0)
		goto out;
	if (a.undeclared) {
		(void)undeclared(ev, err);
		goto out;
	}
	if (e->wal != NULL && wal_pending(e->wal) > ENG_PENDING_MAX)
		(void)eng_write_out(e, NULL); /* a failure shows when the verdict is waited for */
	rc = atomic_load(&e->durable) >= a.need;
	if (v == NULL)
		goto out;
	if (rc == 0) {
		e->queue[(e->q_head + e->q_n++) % e->q_cap] =
		    (struct eng_wait){ fn, arg, v, a.need };
		v = NULL;
		goto out;
	}
	e->q_out++;
	(void)pthread_mutex_unlock(&e->lock);
	fn(arg, &v->pub);
	(void)pthread_mutex_lock(&e->lock);
	e->q_out--;
out:
	if (v != NULL)
		pool_put(e, v);
	(void)pthread_mutex_unlock(&e->lock);
	return rc;
}

/* Call back for everything whose time has come, in submit order; for all of it when the store
 * failed. */
static int release(struct dogwood_engine *e)
{
	int n = 0;

	(void)pthread_mutex_lock(&e->lock);
	while (e->q_n != 0) {
		struct eng_wait w = e->queue[e->q_head];

		if (atomic_load(&e->durable) < w.need) {
			if (!e->broken)
				break;
			eng_verdict_fault(w.v, SV("the store failed before the event was durable"));
		}
		e->q_head = (e->q_head + 1) % e->q_cap;
		e->q_n--;
		e->q_out++;
		(void)pthread_mutex_unlock(&e->lock);
		w.fn(w.arg, &w.v->pub);
		n++;
		(void)pthread_mutex_lock(&e->lock);
		e->q_out--;
		pool_put(e, w.v);
	}
	(void)pthread_mutex_unlock(&e->lock);
	return n;
}

int dogwood_engine_sync(dogwood_engine *e, struct dogwood_error *err)
{
	int rc, n;

	(void)pthread_mutex_lock(&e->lock);
	if (e->q_n == 0 && atomic_load(&e->durable) >= e->need) {
		/* No verdict rests on what is left: let it at least survive the end of this process. */
		rc = eng_write_out(e, err);
		(void)pthread_mutex_unlock(&e->lock);
		return rc;
	}
	/* Needs only grow: this covers everything that waits, and outcomes that nobody waits for. */
	rc = eng_wait_durable(e, e->need, err);
	n = release(e);
	return rc < 0 ? -1 : n;
}

bool dogwood_engine_waiting(dogwood_engine *e)
{
	bool yes;

	(void)pthread_mutex_lock(&e->lock);
	yes = e->q_n != 0 || (!e->broken && atomic_load(&e->durable) < e->need);
	(void)pthread_mutex_unlock(&e->lock);
	return yes;
}
