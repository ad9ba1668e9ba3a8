/* The helper thread: makes the next log file ahead of need, and snapshots. Started at the first
 * need. It works on files only, beside the submits; what it fails at is either done again by who
 * needs it (log files) or costs recovery time only (snapshots). */
#include <signal.h>
#include <string.h>

#include "engine/build.h"
#include "engine/engine.h"
#include "engine/snapshot.h"

#include "base/ban.h"

static bool snapshot_due(const struct dogwood_engine *e)
{
	return e->opt.snapshot_events != 0 && e->since_snap >= e->opt.snapshot_events &&
	       !e->snapping && e->st.set != NULL;
}

static bool spare_due(const struct dogwood_engine *e)
{
	return wal_wants_spare(e->wal) && e->st.next >= e->spare_from;
}

static bool work_due(const struct dogwood_engine *e)
{
	return !e->broken && (spare_due(e) || snapshot_due(e));
}

/* The lock is held on entry and on return; not in between. */
static int snapshot(struct dogwood_engine *e, struct box_err *err)
{
	struct eng_snap snap = { 0 };
	struct dogwood_error de;
	struct eng_set *like = e->st.set != NULL ? eng_set_ref(e->st.set) : NULL;
	uint64_t upto = e->st.next, base = 0;
	int rc;

	e->snapping = true;
	e->since_snap = 0;
	if (eng_wait_durable(e, upto, &de) < 0)
		rc = box_fail(err, BOX_ESYS, de.sys, "%.1000s", de.msg);
	else
		rc = eng_snap_make(
		    wal_dir(e->wal), &e->io, upto, e->st.tokens.max, like, &snap, err);
	if (rc == 0 && snap.older != 0)
		rc = wal_prune(e->wal, snap.older, &base, err);
	eng_set_unref(like);
	eng_lock(e);
	e->snapping = false;
	if (rc == 0 && snap.found)
		e->snap_offset = snap.offset;
	if (rc == 0 && snap.older != 0)
		e->base = base;
	(void)pthread_cond_broadcast(&e->wake);
	return rc;
}

static void *helper(void *arg)
{
	struct dogwood_engine *e = arg;
	struct box_err err;

	eng_lock(e);
	while (!e->stop) {
		if (!work_due(e)) {
			(void)pthread_cond_wait(&e->wake, &e->lock);
			continue;
		}
		if (spare_due(e)) {
			bool bad;

			eng_unlock(e);
			bad = wal_prepare(e->wal, &err) < 0;
			eng_lock(e);
			/* Not again and again on a full disk. */
			e->spare_from = bad ? e->st.next + ENG_SPARE_AGAIN : 0;
		}
		if (!e->stop && snapshot_due(e))
			(void)snapshot(
			    e, &err); /* the next one is due after as many events again */
	}
	eng_unlock(e);
	return NULL;
}

void eng_help(struct dogwood_engine *e)
{
	sigset_t all, old;

	if (e->wal == NULL || e->stop || !work_due(e))
		return;
	if (e->has_helper) {
		(void)pthread_cond_broadcast(&e->wake);
		return;
	}
	/* Signals are the embedding program's, on its own threads. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_BLOCK, &all, &old);
	/* Without a thread the log goes on and snapshots are made on request. */
	e->has_helper = pthread_create(&e->helper, NULL, helper, e) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void eng_help_stop(struct dogwood_engine *e)
{
	eng_lock(e);
	e->stop = true;
	(void)pthread_cond_broadcast(&e->wake);
	eng_unlock(e);
	if (e->has_helper)
		(void)pthread_join(e->helper, NULL);
	e->has_helper = false;
}

int dogwood_engine_checkpoint(dogwood_engine *e, struct dogwood_error *err)
{
	struct box_err b = { 0 };
	int rc = 0;

	eng_lock(e);
	while (e->snapping)
		(void)pthread_cond_wait(&e->wake, &e->lock);
	if (eng_check(e, err) < 0)
		rc = -1;
	else if (e->wal != NULL && e->st.set != NULL && snapshot(e, &b) < 0)
		rc = eng_error_auto(err, &b);
	eng_unlock(e);
	return rc;
}
