/* Opening, recovering and closing an engine; stamps; appending. See engine.h. */
#include "engine/engine.h"
#include "engine/provide.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/build.h"
#include "engine/snapshot.h"

#include "base/ban.h"

#define BODY_BYTES ((size_t)4 << 20)

void dogwood_options_init(struct dogwood_options *o)
{
	*o = (struct dogwood_options){ .max_future_skew_ns = ENG_SKEW_DEFAULT,
		.sync = DOGWOOD_SYNC_NEEDED,
		.snapshot_events = ENG_SNAP_DEFAULT,
		.segment_bytes = ENG_SEG_DEFAULT,
		.token_events = ENG_TOKEN_DEFAULT };
}

static int64_t boot_now(void *arg)
{
	struct timespec t;

	(void)arg;
	/* Time that passed, sleep included. */
	if (clock_gettime(CLOCK_BOOTTIME, &t) < 0)
		return 0;
	return (int64_t)t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

void eng_break(struct dogwood_engine *e, const struct box_err *why)
{
	if (e->broken)
		return;
	e->broken = true;
	e->why = *why;
	eng_fail_waiting(e);
}

int eng_check(const struct dogwood_engine *e, struct dogwood_error *err)
{
	struct box_err b = { 0 };

	if (!e->broken)
		return 0;
	(void)box_fail(&b, BOX_ESYS, 0,
	    "the engine stopped after a failure (%.700s): close it and open the store anew",
	    e->why.msg);
	b.sys = e->why.sys;
	return eng_error(err, DOGWOOD_ESTORE, &b);
}

/* The rules of local-engine.md 6. */
static int next_stamp(const struct dogwood_engine *e, int64_t now, int64_t *ts, struct box_err *err)
{
	int64_t ahead;

	if (e->st.last_ts == INT64_MAX)
		return box_fail(err, BOX_ELIMIT, 0,
		    "durable timestamp space is exhausted at i64::MAX; refusing the operation "
		    "rather "
		    "than reusing a timestamp");
	if (!__builtin_sub_overflow(e->st.last_ts, now, &ahead) &&
	    ahead > e->opt.max_future_skew_ns)
		return box_fail(err, BOX_ELIMIT, 0,
		    "durable timestamp %" PRId64 " is %" PRId64
		    " ns ahead of the current clock %" PRId64
		    ", exceeding the maximum allowed future skew of %" PRId64
		    " ns; refusing the operation rather than issuing future-dated timestamps",
		    e->st.last_ts, ahead, now, e->opt.max_future_skew_ns);
	*ts = now > e->st.last_ts ? now : e->st.last_ts + 1;
	return 0;
}

static bool jumped(struct dogwood_engine *e, int64_t now)
{
	int64_t passed = 0, boot = 0, step;

	if (e->boot.now_ns != NULL) {
		boot = clock_now(&e->boot);
		passed = boot - e->last_boot;
	}
	e->last_boot = boot;
	if (!e->stamped)
		return false;
	return !__builtin_sub_overflow(now, e->st.last_ts, &step) && step - passed > ENG_JUMP;
}

int eng_append(
    struct dogwood_engine *e, enum wal_kind kind, int64_t ts, sv body, struct dogwood_error *err)
{
	struct box_err b = { 0 };

	if (e->wal != NULL && wal_append(e->wal, kind, ts, body, &b) < 0) {
		eng_break(e, &b);
		return eng_error(err, DOGWOOD_ESTORE, &b);
	}
	e->st.last_ts = ts;
	e->st.next++;
	if (e->wal == NULL)
		atomic_store(&e->durable, e->st.next);
	return 0;
}

int eng_stamp(struct dogwood_engine *e, int64_t *ts, struct dogwood_error *err)
{
	int64_t now = clock_now(&e->clock);
	struct box_err b = { 0 };

	if (now < 0)
		now = 0;
	if (next_stamp(e, now, ts, &b) < 0)
		return eng_error(err, DOGWOOD_ECLOCK, &b);
	if (jumped(e, now)) {
		AUTO_BUF body = buf_with(64);

		eng_clock_put(&body, e->st.last_ts, now);
		if (eng_append(e, WAL_CLOCK, *ts, buf_sv(&body), err) < 0)
			return -1;
		if (next_stamp(e, now, ts, &b) < 0)
			return eng_error(err, DOGWOOD_ECLOCK, &b);
	}
	e->stamped = true;
	return 0;
}

static int recover(struct dogwood_engine *e, struct box_err *err)
{
	struct wal_conf c = { .path = e->opt.path, .seg_bytes = e->opt.segment_bytes, .io = e->io };
	struct wal_end end;
	struct eng_snap snap;
	uint64_t from;
	int64_t ts;

	if (wal_open(&c, &e->wal, err) < 0)
		return -1;
	if (eng_snap_load(wal_dir(e->wal), &e->st, NULL, &snap, err) < 0)
		return -1;
	from = e->st.next;
	if (wal_recover(e->wal, from, eng_state_replay, &e->st, &end, err) < 0)
		return snap.passed_over[0] == '\0'
		           ? -1
		           : box_wrap(err, "a snapshot was passed over (%s)", snap.passed_over);
	if (snap.found && memcmp(snap.id, end.id, WAL_ID) != 0)
		return box_fail(err, BOX_ECORRUPT, 0,
		    "store %s: its snapshot belongs to another store", e->opt.path);
	e->snap_offset = snap.offset;
	e->since_snap = e->st.events;
	e->replayed = e->st.next - from;
	e->base = end.base;
	e->cut_bytes = end.tail ? end.torn : 0;
	e->need = e->st.next;
	atomic_store(&e->durable, e->st.next);
	/* A clock that is far behind the history refuses here already. */
	return e->st.next == 0 ? 0 : next_stamp(e, clock_now(&e->clock), &ts, err);
}

static int check_options(struct dogwood_options *o, struct box_err *err)
{
	if (o->max_future_skew_ns < 0)
		return box_fail(err, BOX_ECONFIG, 0, "max_future_skew_ns is negative");
	if (o->segment_bytes < WAL_SEG_MIN || o->segment_bytes > WAL_SEG_MAX)
		return box_fail(err, BOX_ECONFIG, 0,
		    "segment_bytes must be 65536 to 1073741824; use dogwood_options_init");
	if (o->sync != DOGWOOD_SYNC_NEEDED && o->sync != DOGWOOD_SYNC_ALWAYS)
		return box_fail(err, BOX_ECONFIG, 0, "unknown sync policy");
	if (o->token_events > 1U << 24)
		return box_fail(err, BOX_ECONFIG, 0, "token_events is larger than 16777216");
	return 0;
}

static void engine_free(struct dogwood_engine *e)
{
	eng_help_stop(e);
	wal_close(e->wal);
	eng_state_fini(&e->st);
	if (e->scratch != NULL)
		dw_scratch_free(e->scratch);
	buf_fini(&e->body);
	for (size_t i = 0; i < e->n_pool; i++)
		dogwood_verdict_free(&e->pool[i]->pub);
	free(e->pool);
	free(e->queue);
	free((char *)e->opt.path);
	(void)pthread_cond_destroy(&e->wake);
	(void)pthread_mutex_destroy(&e->lock);
	(void)pthread_mutex_destroy(&e->change);
	free(e);
}

int eng_open_io(const struct dogwood_options *o, const struct eng_io *io, dogwood_engine **out,
    struct dogwood_error *err)
{
	struct dogwood_engine *e = calloc(1, sizeof(*e));
	struct box_err b = { 0 };

	if (e == NULL) {
		(void)box_nomem(&b, "an engine");
		return eng_error_auto(err, &b);
	}
	e->opt = *o;
	e->opt.path = NULL;
	e->io = *io;
	eng_state_init(&e->st, o->token_events);
	e->body = buf_with(BODY_BYTES);
	e->clock = o->now_ns != NULL ? (struct clock){ o->now_ns, o->now_arg } : clock_wall();
	e->boot = o->now_ns != NULL ? (struct clock){ 0 } : (struct clock){ boot_now, NULL };
	/* None of these can fail with default attributes. */
	(void)pthread_mutex_init(&e->lock, NULL);
	(void)pthread_mutex_init(&e->change, NULL);
	(void)pthread_cond_init(&e->wake, NULL);
	if (check_options(&e->opt, &b) < 0)
		goto fail;
	e->scratch = dw_scratch_new(&b);
	if (e->scratch == NULL)
		goto fail;
	if (o->provider != NULL)
		dw_scratch_provide(e->scratch, eng_provide, &e->opt);
	if (o->path != NULL) {
		e->opt.path = strdup(o->path);
		if (e->opt.path == NULL) {
			(void)box_nomem(&b, "an engine");
			goto fail;
		}
		if (recover(e, &b) < 0)
			goto fail;
	}
	*out = e;
	return 0;
fail:
	engine_free(e);
	return eng_error_auto(err, &b);
}

int dogwood_engine_open(
    const struct dogwood_options *o, dogwood_engine **out, struct dogwood_error *err)
{
	struct eng_io io = eng_io_system();

	return eng_open_io(o, &io, out, err);
}

int dogwood_engine_close(dogwood_engine *e, struct dogwood_error *err)
{
	struct dogwood_error here;
	int rc = 0;

	if (e == NULL)
		return 0;
	if (err == NULL)
		err = &here;
	if (dogwood_engine_sync(e, err) < 0)
		rc = -1;
	eng_lock(e);
	if (rc == 0 && e->wal != NULL)
		rc = eng_wait_durable(e, e->st.next, err);
	else
		eng_unlock(e);
	engine_free(e);
	return rc;
}

int dogwood_engine_status(dogwood_engine *e, struct dogwood_status *out, struct dogwood_error *err)
{
	struct dogwood_status st = { 0 };

	if (out->size < sizeof(st.size) || out->size > sizeof(st)) {
		struct box_err b = { 0 };

		(void)box_fail(
		    &b, BOX_ECONFIG, 0, "status: set size to sizeof(struct dogwood_status)");
		return eng_error_auto(err, &b);
	}
	eng_lock(e);
	st.size = out->size;
	st.installed = e->st.set != NULL;
	st.poisoned = e->broken;
	if (e->st.set != NULL) {
		st.rules = (unsigned)e->st.set->n;
		st.clauses = (unsigned)dw_set_nleaves(e->st.set->set);
	}
	st.next_offset = e->st.next;
	st.durable_offset = atomic_load(&e->durable);
	st.base_offset = e->base;
	st.snapshot_offset = e->snap_offset;
	st.last_ts_ns = e->st.last_ts;
	st.events = e->events;
	st.syncs = e->wal != NULL ? wal_syncs(e->wal) : 0;
	st.replayed = e->replayed;
	st.cut_bytes = e->cut_bytes;
	eng_unlock(e);
	memcpy(out, &st, st.size);
	return 0;
}
