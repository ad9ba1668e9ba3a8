/* Many callers, and sudden death. Build with -Db_sanitize=thread for the first half to mean the
 * most. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "engine/codec.h"
#include "engine/snapshot.h"
#include "engine/state.h"
#include "engine/wal.h"
#include "rig.h"
#include "tmp.h"

#include "base/ban.h"

#define CALLERS 64
#define EACH    40

/* What the child tells about each verdict that was released to it. */
struct told {
	uint64_t offset;
	uint32_t matters;
	uint32_t cause;
};

/* Judge every stored event again: the stored verdict must be the one of the history before it, and
 * the one that was told. */
struct recheck {
	struct eng_state s;
	struct dw_scratch *sc;
	uint64_t events;
	const struct told *told; /* ascending */
	size_t n_told, at;
};

static int recheck_record(void *arg, const struct wal_rec *r, struct box_err *err)
{
	struct recheck *c = arg;
	AUTO_ARENA a = { .limit = (size_t)1 << 20 };
	struct eng_stored s;
	struct dw_decision d;
	struct dw_event e;

	if (eng_state_replay(&c->s, r, err) < 0)
		return -1;
	if (r->kind != WAL_EVENT)
		return 0;
	if (eng_event_get(r->body, &a, &e, NULL, &s, err) < 0)
		return -1;
	c->events++;
	while (c->at < c->n_told && c->told[c->at].offset < r->offset)
		c->at++;
	if (c->at < c->n_told && c->told[c->at].offset == r->offset)
		assert_int_equal(c->told[c->at].cause, s.cause);
	if (s.cause == DOGWOOD_RECORDED)
		return 0;
	if (dw_decide(c->sc, c->s.set->set, c->s.mon, &e, &d, err) < 0)
		return -1;
	assert_int_equal(eng_cause_of(&d), s.cause);
	return 0;
}

/* Returns the number of events that were judged: all, or those since the oldest snapshot. */
static uint64_t recheck(const char *path, const struct told *told, size_t n_told)
{
	struct recheck c = { .told = told, .n_told = n_told };
	AUTO_FD dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t snap[ENG_SNAPS_MAX], *seg;
	struct box_err err = { 0 };
	uint8_t id[WAL_ID];
	struct wal_end end;
	size_t n;

	eng_state_init(&c.s, 0);
	c.sc = dw_scratch_new(&err);
	assert_non_null(c.sc);
	assert_int_equal(wal_seg_list(dir, &seg, &n, &err), 0);
	assert_true(n != 0);
	if (seg[0] != 0) {
		assert_int_equal(eng_snap_list(dir, snap, &n, &err), 0);
		assert_true(n != 0 && snap[n - 1] >= seg[0]);
		if (eng_snap_load_at(dir, snap[n - 1], &c.s, NULL, id, &err) < 0)
			fail_msg("%s", err.msg);
	}
	free(seg);
	if (wal_scan(dir, c.s.next, WAL_SCAN_OPEN, recheck_record, &c, &end, &err) < 0)
		fail_msg("%s", err.msg);
	dw_scratch_free(c.sc);
	eng_state_fini(&c.s);
	return c.events;
}

struct caller {
	pthread_t thread;
	dogwood_engine *e;
	unsigned n;
	uint64_t offset[EACH];
	int64_t ts[EACH];
	unsigned errors;
};

static void build(dogwood_event *ev, bool done)
{
	dogwood_event_reset(ev);
	dogwood_event_action(ev, dogwood_cstr("Box::Action::\"http:request\""),
	    dogwood_cstr(done ? "response" : "request"));
	dogwood_event_principal(ev, dogwood_cstr("Box::Agent::\"self\""));
	dogwood_event_resource(ev, dogwood_cstr("Box::Resource::\"unused\""));
	dogwood_event_str(ev, DOGWOOD_HISTORY, "requestId", dogwood_cstr("r"));
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.host", dogwood_cstr("slack.com"));
	dogwood_event_long(ev, DOGWOOD_BOTH, "input.port", 443);
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.method", dogwood_cstr("POST"));
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.path", dogwood_cstr("/"));
	dogwood_event_long(ev, DOGWOOD_BOTH, "input.body_bytes", 1);
	dogwood_event_bool(ev, DOGWOOD_BOTH, "input.intercepted", true);
	if (done)
		dogwood_event_long(ev, DOGWOOD_HISTORY, "output.status", 200);
}

/* Nothing here asserts: cmocka is not for threads. */
static void *call(void *arg)
{
	struct caller *c = arg;
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_verdict *v = dogwood_verdict_new();

	for (unsigned i = 0; i < EACH; i++) {
		struct dogwood_status st = { .size = sizeof(st) };
		char token[32];

		build(ev, (c->n + i) % 2 != 0);
		(void)snprintf(token, sizeof(token), "%u-%u", c->n, i);
		if (dogwood_submit(c->e, ev, dogwood_cstr(i % 5 == 0 ? token : NULL), v, NULL) < 0)
			c->errors++;
		c->offset[i] = v->offset;
		c->ts[i] = v->ts_ns;
		/* Durable before it returned: with a token always, else what matters. */
		if (i % 5 == 0 &&
		    (dogwood_engine_status(c->e, &st, NULL) < 0 || st.durable_offset <= v->offset))
			c->errors++;
	}
	dogwood_event_free(ev);
	dogwood_verdict_free(v);
	return NULL;
}

static void count_call(void *arg, const struct dogwood_verdict *v)
{
	(void)v;
	++*(unsigned *)arg;
}

struct looper {
	dogwood_engine *e;
	unsigned begun, called, errors;
};

static void *loop(void *arg)
{
	struct looper *l = arg;
	dogwood_event *ev = dogwood_event_new();

	for (unsigned i = 0; i < 400; i++) {
		build(ev, i % 3 == 0);
		if (dogwood_submit_begin(
		        l->e, ev, (dogwood_str){ NULL, 0 }, count_call, &l->called, NULL) < 0)
			l->errors++;
		l->begun++;
		if (i % 7 == 0 && dogwood_engine_sync(l->e, NULL) < 0)
			l->errors++;
	}
	while (dogwood_engine_waiting(l->e))
		(void)dogwood_engine_sync(l->e, NULL);
	dogwood_event_free(ev);
	return NULL;
}

/* Looks into the log all the time, as `dogwood log` does: what it sees is in order and reaches
 * what was there before, whatever is written, begun and dropped meanwhile. */
struct reader {
	const char *path;
	atomic_bool stop;
	uint64_t last, scans;
	unsigned errors;
};

static int on_seen(void *arg, const struct wal_rec *r, struct box_err *err)
{
	struct reader *d = arg;

	(void)err;
	d->errors += d->last != 0 && r->offset <= d->last;
	d->last = r->offset;
	return 0;
}

static void *watch(void *arg)
{
	struct reader *d = arg;
	AUTO_FD dir = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct wal_end end;
	struct box_err err;

	while (!atomic_load(&d->stop)) {
		uint64_t before = d->last;

		d->last = 0;
		if (wal_scan(dir, 0, WAL_SCAN_LIVE, on_seen, d, &end, &err) < 0)
			d->errors++;
		d->errors += d->last < before;
		d->scans++;
	}
	return NULL;
}

static int cmp_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* 64 callers, an event loop, checkpoints and policy changes at once: nothing lost, doubled or
 * out of order. */
static void test_many(void **state)
{
	static struct caller c[CALLERS];
	static uint64_t all[CALLERS * EACH];
	const char *path = tmp_path("many");
	struct looper l = { 0 };
	struct reader d = { .path = path };
	pthread_t loop_thread, read_thread;
	struct rig r;
	uint64_t installs = 1;

	(void)state;
	rig_init(&r, path);
	r.opt.now_ns = NULL;
	r.opt.snapshot_events = 200;
	r.opt.segment_bytes = 65536;
	rig_open(&r);
	(void)rig_install(&r, rig_policy);
	l.e = r.e;
	assert_int_equal(pthread_create(&loop_thread, NULL, loop, &l), 0);
	assert_int_equal(pthread_create(&read_thread, NULL, watch, &d), 0);
	for (unsigned i = 0; i < CALLERS; i++) {
		c[i] = (struct caller){ .e = r.e, .n = i };
		assert_int_equal(pthread_create(&c[i].thread, NULL, call, &c[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		installs += rig_install(&r, i % 2 == 0 ? rig_policy_requests : rig_policy).changed;
		assert_int_equal(dogwood_engine_checkpoint(r.e, NULL), 0);
	}
	for (unsigned i = 0; i < CALLERS; i++) {
		assert_int_equal(pthread_join(c[i].thread, NULL), 0);
		assert_int_equal(c[i].errors, 0);
		for (unsigned k = 0; k < EACH; k++) {
			all[i * EACH + k] = c[i].offset[k];
			if (k != 0) {
				assert_true(c[i].offset[k] > c[i].offset[k - 1]);
				assert_true(c[i].ts[k] > c[i].ts[k - 1]);
			}
		}
	}
	assert_int_equal(pthread_join(loop_thread, NULL), 0);
	atomic_store(&d.stop, true);
	assert_int_equal(pthread_join(read_thread, NULL), 0);
	assert_int_equal(d.errors, 0);
	assert_true(d.scans > 0 && d.last > 0);
	assert_int_equal(l.errors, 0);
	assert_int_equal(l.called, l.begun);
	assert_int_equal(rig_status(&r).next_offset, installs + CALLERS * EACH + (uint64_t)l.begun);
	assert_true(rig_status(&r).syncs < CALLERS * EACH);
	qsort(all, CALLERS * EACH, sizeof(all[0]), cmp_u64);
	for (size_t i = 1; i < CALLERS * EACH; i++)
		assert_true(all[i] != all[i - 1]);
	rig_close(&r);
	rig_open(&r);
	rig_fini(&r);
}

/* ---- a disk that fails under many callers ---- */

struct failing {
	pthread_t thread;
	dogwood_engine *e;
	uint64_t released; /* behind the newest durable verdict it was given */
	unsigned wrong;
};

static void *call_until_refused(void *arg)
{
	struct failing *c = arg;
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_verdict *v = dogwood_verdict_new();
	struct dogwood_error err = { 0 };

	for (unsigned i = 0; i < 5000; i++) {
		build(ev, true);
		err.code = DOGWOOD_OK;
		if (dogwood_submit(c->e, ev, (dogwood_str){ NULL, 0 }, v, &err) < 0) {
			c->wrong += err.code != DOGWOOD_ESTORE || v->permit;
			/* For good. */
			if (dogwood_submit(c->e, ev, (dogwood_str){ NULL, 0 }, v, &err) == 0)
				c->wrong++;
			goto out;
		}
		c->released = v->offset + 1;
	}
	c->wrong++; /* nothing failed */
out:
	dogwood_event_free(ev);
	dogwood_verdict_free(v);
	return NULL;
}

/* The n-th sync or write fails while many wait: each of them is told, none hangs, and what was
 * released before is in the store. */
static void test_many_refused(void **state)
{
	static struct failing c[24];
	const size_t n = sizeof(c) / sizeof(c[0]);

	(void)state;
	for (unsigned at = 1; at <= 40; at += 3) {
		const char *path = tmp_path("refused");
		struct tmp_faults f = { 0 };
		uint64_t released = 0;
		struct rig r;

		rig_init(&r, path);
		r.opt.now_ns = NULL;
		r.opt.snapshot_events = 0;
		r.io = tmp_io(&f);
		rig_open(&r);
		(void)rig_install(&r, rig_policy);
		f.fail_at = f.calls + at;
		f.error = EIO;
		f.stay = true;
		for (size_t i = 0; i < n; i++) {
			c[i] = (struct failing){ .e = r.e };
			assert_int_equal(
			    pthread_create(&c[i].thread, NULL, call_until_refused, &c[i]), 0);
		}
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(pthread_join(c[i].thread, NULL), 0);
			assert_int_equal(c[i].wrong, 0);
			if (c[i].released > released)
				released = c[i].released;
		}
		assert_true(rig_status(&r).poisoned);
		assert_int_equal(dogwood_engine_close(r.e, NULL), -1);
		r.e = NULL;
		f.fail_at = 0;
		rig_open(&r);
		assert_true(rig_status(&r).next_offset >= released);
		rig_fini(&r);
	}
}

static void child(const char *path, int out, unsigned round)
{
	struct dogwood_options o;
	dogwood_engine *e;
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_verdict *v = dogwood_verdict_new();

	dogwood_options_init(&o);
	o.path = path;
	o.segment_bytes = 65536;
	o.snapshot_events = round % 2 == 0 ? 40 : 0;
	if (dogwood_engine_open(&o, &e, NULL) < 0)
		_exit(3);
	for (unsigned i = 0;; i++) {
		struct told t = { .matters = i % 2 };

		build(ev, i % 2 != 0);
		if (dogwood_submit(e, ev, (dogwood_str){ NULL, 0 }, v, NULL) < 0)
			_exit(4);
		t.offset = v->offset;
		t.cause = v->cause;
		if (fd_write_full(out, &t, sizeof(t)) < 0)
			_exit(0);
	}
}

static void test_kill(void **state)
{
	const char *path = tmp_path("kill"), *times = getenv("ENGINE_KILLS");
	unsigned rounds = times != NULL ? (unsigned)strtoul(times, NULL, 10) : 100;
	static struct told all[65536];
	uint64_t rnd = 20261130, told = 0, judged = 0;
	struct rig r;

	(void)state;
	rig_init(&r, path);
	r.opt.now_ns = NULL;
	r.opt.segment_bytes = 65536;
	rig_open(&r);
	(void)rig_install(&r, rig_policy);
	rig_close(&r);
	for (unsigned round = 0; round < rounds; round++) {
		struct timespec nap = { 0, (long)(tmp_rand(&rnd) % 12000000) };
		uint64_t must = 0;
		struct told t;
		size_t n = 0;
		int p[2], status;
		pid_t pid;

		assert_int_equal(pipe2(p, O_CLOEXEC), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			child(path, p[1], round);
		(void)close(p[1]);
		/* Half of them die somewhere in opening, however slow that is. */
		if (round % 2 == 0) {
			assert_int_equal(fd_read_full(p[0], &t, sizeof(t)), sizeof(t));
			all[n++] = t;
		}
		(void)nanosleep(&nap, NULL);
		assert_int_equal(kill(pid, SIGKILL), 0);
		while (n < sizeof(all) / sizeof(all[0]) &&
		       fd_read_full(p[0], &t, sizeof(t)) == (ssize_t)sizeof(t))
			all[n++] = t;
		for (size_t i = 0; i < n; i++)
			if (all[i].matters != 0)
				must = all[i].offset + 1;
		told += n;
		(void)close(p[0]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		rig_open(&r);
		assert_true(rig_status(&r).next_offset >= must);
		rig_close(&r);
		judged += recheck(path, all, n);
	}
	assert_true(told > 0 && judged > told / 4);
	rig_open(&r);
	rig_fini(&r);
}

/* The same without snapshots, judged again from the first record. */
static void test_rejudge(void **state)
{
	const char *path = tmp_path("rejudge");
	struct rig r;
	uint64_t s = 3;

	(void)state;
	rig_init(&r, path);
	r.opt.snapshot_events = 0;
	rig_open(&r);
	(void)rig_install(&r, rig_policy);
	for (int i = 0; i < 400; i++) {
		r.now += (int64_t)(tmp_rand(&s) % (2 * MINUTE));
		if (i % 50 == 49)
			(void)rig_install(&r, i % 100 == 49 ? rig_policy_requests : rig_policy);
		build(r.ev, tmp_rand(&s) % 2 == 0);
		(void)rig_submit(&r);
	}
	rig_close(&r);
	assert_int_equal(recheck(path, NULL, 0), 400);
	rig_fini(&r);
}

static int done(void **state)
{
	(void)state;
	tmp_done();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_many_refused),
		cmocka_unit_test(test_rejudge),
		cmocka_unit_test(test_kill),
	};

	return cmocka_run_group_tests(tests, NULL, done);
}
