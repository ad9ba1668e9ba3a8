/* Group commit, and how threads wait for it.
 *
 * Whoever needs the disk and finds nobody writing leads: it takes everything appended so far,
 * writes and syncs it without the lock, and tells those it covered. Those who come meanwhile
 * append and wait for the next write, which one of them leads.
 *
 * Appending needs the lock, and with many callers the lock would be what they wait for: each would
 * sleep once for it and once more for the disk. So a caller puts its call into the inbox without
 * the lock, and one of them - the collector - accepts all that are there, in the order they came.
 * The others sleep once, until their verdicts may leave. What keeps this going:
 *   - when there is something in the inbox, somebody is collecting or about to: the collector
 *     looks again after it has said that it no longer is;
 *   - when a call is waiting, somebody is writing, or the first of those that wait has been told
 *     to drive (eng_unlock sees to it). */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/build.h"
#include "engine/engine.h"

#include "base/ban.h"

static void list_add(struct eng_calls *l, struct eng_call *c)
{
	c->next = NULL;
	if (l->head == NULL)
		l->tail = &l->head;
	*l->tail = c;
	l->tail = &c->next;
}

static struct eng_call *list_take(struct eng_calls *l)
{
	struct eng_call *c = l->head;

	l->head = NULL;
	return c;
}

/* Who slept on this word looks at it. The call may be gone by now: then this wakes nobody, or
 * somebody else for nothing, which every user of a futex must be able to stand. */
static void wake(_Atomic uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Until told to drive, or that it is done. */
static uint32_t listen_for(struct eng_call *c)
{
	for (;;) {
		uint32_t s = atomic_load(&c->state), sent = CALL_SENT;

		if (s == CALL_DRIVE || s == CALL_DONE)
			return s;
		/* Woken for nothing, or told just now: the loop looks again in any case. */
		if (s == CALL_ASLEEP ||
		    atomic_compare_exchange_strong(&c->state, &sent, CALL_ASLEEP))
			(void)syscall(
			    SYS_futex, &c->state, FUTEX_WAIT_PRIVATE, CALL_ASLEEP, NULL, NULL, 0);
	}
}

static void set_done(struct dogwood_engine *e, struct eng_call *c, int rc)
{
	c->rc = rc;
	c->out = true;
	list_add(&e->done, c);
}

void eng_lock(struct dogwood_engine *e)
{
	(void)pthread_mutex_lock(&e->lock);
}

void eng_unlock(struct dogwood_engine *e)
{
	struct eng_call *c = list_take(&e->done), *next;
	_Atomic uint32_t *driver = NULL;

	if (e->waiting.head != NULL && !e->flushing &&
	    atomic_exchange(&e->waiting.head->state, CALL_DRIVE) == CALL_ASLEEP)
		driver = &e->waiting.head->state;
	(void)pthread_mutex_unlock(&e->lock);
	/* It needs the lock. */
	if (driver != NULL)
		wake(driver);
	for (; c != NULL; c = next) {
		next = c->next;
		if (atomic_exchange(&c->state, CALL_DONE) == CALL_ASLEEP)
			wake(&c->state);
	}
}

void eng_fail_waiting(struct dogwood_engine *e)
{
	struct eng_call *c = list_take(&e->waiting), *next;

	for (; c != NULL; c = next) {
		next = c->next;
		(void)eng_check(e, c->err);
		set_done(e, c, -1);
	}
}

/* The call needs records below c->need: put it where it belongs. Under the lock. */
static void place(struct dogwood_engine *e, struct eng_call *c)
{
	if (atomic_load(&e->durable) >= c->need)
		set_done(e, c, 0);
	else if (eng_check(e, c->err) < 0)
		set_done(e, c, -1);
	else
		list_add(c->need <= e->fly_upto ? &e->flying : &e->waiting, c);
}

/* Accept what is in the inbox, oldest first. Under the lock. */
static void accept_inbox(struct dogwood_engine *e)
{
	struct eng_call *c = atomic_exchange(&e->inbox, NULL), *old = NULL, *next;

	for (; c != NULL; c = next) {
		next = c->next;
		c->next = old;
		old = c;
	}
	for (c = old; c != NULL; c = next) {
		next = c->next;
		if (eng_accept(e, c) < 0)
			set_done(e, c, -1);
		else
			place(e, c);
	}
}

static bool claim(struct dogwood_engine *e)
{
	return !atomic_load(&e->collecting) && !atomic_exchange(&e->collecting, true);
}

/* What a collector does, under the lock. */
static void collect(struct dogwood_engine *e)
{
	do {
		accept_inbox(e);
		atomic_store(&e->collecting, false);
		/* Who added a call before that saw us and sleeps. */
	} while (atomic_load(&e->inbox) != NULL && claim(e));
}

/* The lock is held, given up during the write, and held again. */
static int fly(struct dogwood_engine *e, bool sync)
{
	struct box_err b = { 0 };
	struct eng_call *c, *next;
	int rc;

	/* One sync covers these as well. */
	accept_inbox(e);
	e->flushing = true;
	e->fly_upto = wal_take(e->wal);
	if (sync) {
		e->flying = e->waiting;
		e->waiting.head = NULL;
	} else {
		e->fly_upto = 0;
	}
	eng_unlock(e);
	rc = wal_write(e->wal, sync, &b);
	eng_lock(e);
	e->flushing = false;
	e->fly_upto = 0;
	/* A write that went into a new segment synced the old one. */
	atomic_store(&e->durable, wal_durable(e->wal));
	if (rc < 0)
		eng_break(e, &b);
	else if (wal_wants_spare(e->wal))
		eng_help(e);
	for (c = list_take(&e->flying); c != NULL; c = next) {
		next = c->next;
		if (atomic_load(&e->durable) >= c->need)
			set_done(e, c, 0);
		else
			set_done(e, c, eng_check(e, c->err));
	}
	return rc;
}

/* The lock is held; released on return, when the call is done. */
static int await(struct dogwood_engine *e, struct eng_call *c)
{
	for (;;) {
		uint32_t drive = CALL_DRIVE;

		while (!c->out && !e->flushing)
			(void)fly(e, true); /* a failure finishes the call */
		if (!e->flushing && e->waiting.head == NULL && e->wal != NULL &&
		    wal_pending(e->wal) > ENG_PENDING_MAX / 16)
			(void)fly(e, false); /* a failure shows at the next submit */
		eng_unlock(e);
		if (listen_for(c) == CALL_DONE)
			return c->rc;
		eng_lock(e);
		/* Done in between is also fine. */
		(void)atomic_compare_exchange_strong(&c->state, &drive, CALL_SENT);
	}
}

int eng_call(struct dogwood_engine *e, struct eng_call *c)
{
	c->next = atomic_load(&e->inbox);
	while (!atomic_compare_exchange_weak(&e->inbox, &c->next, c))
		;
	if (claim(e)) {
		eng_lock(e);
		collect(e);
		return await(e, c);
	}
	if (listen_for(c) == CALL_DONE)
		return c->rc;
	eng_lock(e);
	return await(e, c);
}

int eng_wait_durable(struct dogwood_engine *e, uint64_t upto, struct dogwood_error *err)
{
	struct eng_call c = { .need = upto, .err = err };

	place(e, &c);
	return await(e, &c);
}

int eng_write_out(struct dogwood_engine *e, struct dogwood_error *err)
{
	if (eng_check(e, err) < 0)
		return -1;
	/* Somebody is writing: what is pending goes with the next write. */
	if (e->wal == NULL || e->flushing || wal_pending(e->wal) == 0)
		return 0;
	return fly(e, false) < 0 ? eng_check(e, err) : 0;
}
