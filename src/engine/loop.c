/* The event loop form: verdicts that wait in a queue of their own, and are called back when the
 * disk has what they rest on. */
#include <stdlib.h>

#include "engine/build.h"
#include "engine/engine.h"

#include "base/ban.h"

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
	struct eng_call c = { .ev = ev, .token = eng_sv(token), .err = err };
	struct box_err b = { 0 };
	int rc = -1;

	eng_lock(e);
	if (fn != NULL && (!queue_room(e) || (v = pool_get(e)) == NULL)) {
		(void)box_nomem(&b, "a waiting verdict");
		(void)eng_error_auto(err, &b);
		goto out;
	}
	c.v = v;
	if (eng_accept(e, &c) < 0)
		goto out;
	if (c.undeclared) {
		(void)eng_undeclared(ev, err);
		goto out;
	}
	if (e->wal != NULL && wal_pending(e->wal) > ENG_PENDING_MAX)
		(void)eng_write_out(e, NULL); /* a failure shows when the verdict is waited for */
	rc = atomic_load(&e->durable) >= c.need;
	if (v == NULL)
		goto out;
	if (rc == 0) {
		e->queue[(e->q_head + e->q_n++) % e->q_cap] =
		    (struct eng_wait){ fn, arg, v, c.need };
		v = NULL;
		goto out;
	}
	e->q_out++;
	eng_unlock(e);
	fn(arg, &v->pub);
	eng_lock(e);
	e->q_out--;
out:
	if (v != NULL)
		pool_put(e, v);
	eng_unlock(e);
	return rc;
}

/* Call back for everything whose time has come, in submit order; for all of it when the store
 * failed. */
static int release(struct dogwood_engine *e)
{
	int n = 0;

	eng_lock(e);
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
		eng_unlock(e);
		w.fn(w.arg, &w.v->pub);
		n++;
		eng_lock(e);
		e->q_out--;
		pool_put(e, w.v);
	}
	eng_unlock(e);
	return n;
}

int dogwood_engine_sync(dogwood_engine *e, struct dogwood_error *err)
{
	int rc, n;

	eng_lock(e);
	if (e->q_n == 0 && atomic_load(&e->durable) >= e->need) {
		/* No verdict rests on what is left: let it at least survive the end of this
		 * process. */
		rc = eng_write_out(e, err);
		eng_unlock(e);
		return rc;
	}
	/* Needs only grow: this covers everything that waits, and outcomes that nobody waits
	 * for. */
	rc = eng_wait_durable(e, e->need, err);
	n = release(e);
	return rc < 0 ? -1 : n;
}

bool dogwood_engine_waiting(dogwood_engine *e)
{
	bool yes;

	eng_lock(e);
	yes = e->q_n != 0 || (!e->broken && atomic_load(&e->durable) < e->need);
	eng_unlock(e);
	return yes;
}
