/* Group commit. Whoever needs the disk and finds nobody writing leads: it takes everything
 * appended so far, writes and syncs it without the lock, and wakes those it covered. Those who
 * come meanwhile append and wait for the next write, which one of them leads.
 *
 * Waiters sleep on one of two words, by the parity of the write that covers them, so that a
 * finished write wakes its own and one leader for the next, and nobody for nothing. A woken
 * waiter looks at the durable mark and leaves without taking the lock: with many callers the
 * lock would be what they wait for. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/build.h"
#include "engine/engine.h"

#include "base/ban.h"

static void sleep_on(_Atomic uint32_t *word, uint32_t seen)
{
	/* Woken for nothing, or the word had changed: the caller looks again in any case. */
	(void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

/* Under the lock. A waiter that has given up the lock and not yet fallen asleep sees the changed
 * word. */
static void wake_up(struct dogwood_engine *e, uint32_t parity, int n)
{
	(void)atomic_fetch_add(&e->landed[parity], 1);
	if (e->sleepers[parity] == 0)
		return;
	(void)syscall(SYS_futex, &e->landed[parity], FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
	e->sleepers[parity] -=
	    n < 0 || (unsigned)n > e->sleepers[parity] ? e->sleepers[parity] : (unsigned)n;
}

/* The lock is held, given up during the write, and held again. */
static int lead(struct dogwood_engine *e, bool sync)
{
	struct box_err b = { 0 };
	uint32_t mine;
	int rc;

	e->flushing = true;
	mine = ++e->flight & 1;
	e->fly_upto = wal_take(e->wal);
	(void)pthread_mutex_unlock(&e->lock);
	rc = wal_write(e->wal, sync, &b);
	(void)pthread_mutex_lock(&e->lock);
	e->flushing = false;
	if (rc < 0)
		eng_break(e, &b);
	/* A write that went into a new segment synced the old one. */
	atomic_store(&e->durable, wal_durable(e->wal));
	if (rc == 0 && wal_wants_spare(e->wal))
		eng_help(e);
	wake_up(e, mine, INT32_MAX);
	wake_up(e, mine ^ 1, rc == 0 ? 1 : INT32_MAX);
	return rc;
}

int eng_wait_durable(struct dogwood_engine *e, uint64_t upto, struct dogwood_error *err)
{
	for (;;) {
		uint32_t parity, seen;

		if (atomic_load(&e->durable) >= upto)
			break;
		if (eng_check(e, err) < 0) {
			(void)pthread_mutex_unlock(&e->lock);
			return -1;
		}
		if (!e->flushing) {
			(void)lead(e, true); /* a failure shows above */
			continue;
		}
		parity = (e->flight + (upto > e->fly_upto)) & 1;
		seen = atomic_load(&e->landed[parity]);
		e->sleepers[parity]++;
		(void)pthread_mutex_unlock(&e->lock);
		sleep_on(&e->landed[parity], seen);
		if (atomic_load(&e->durable) >= upto)
			return 0;
		(void)pthread_mutex_lock(&e->lock);
	}
	(void)pthread_mutex_unlock(&e->lock);
	return 0;
}

int eng_write_out(struct dogwood_engine *e, struct dogwood_error *err)
{
	if (eng_check(e, err) < 0)
		return -1;
	/* Somebody is writing: what is pending goes with the next write. */
	if (e->wal == NULL || e->flushing || wal_pending(e->wal) == 0)
		return 0;
	return lead(e, false) < 0 ? eng_check(e, err) : 0;
}
