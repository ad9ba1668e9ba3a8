/* What survives: verdicts released through the event loop form, crashes that keep or lose what
 * was not synced, failing calls, snapshots. The measure is always the same: an engine in memory
 * that saw the whole history. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "rig.h"
#include "tmp.h"

#include "base/ban.h"

/* A workload of which about half can matter: posts and their answers, and file effects that no
 * clause matches. */
static void make_event(struct rig *r, uint64_t n, uint64_t seed)
{
	uint64_t s = seed * 1000003 + n * 7919 + 1;

	for (int i = 0; i < 3; i++)
		(void)tmp_rand(&s);
	r->now = T0 + (int64_t)n * (MINUTE / 2);
	switch (tmp_rand(&s) % 6) {
	case 0:
	case 1:
		rig_http(r, s % 3 == 0 ? "logs.com" : "slack.com");
		break;
	case 2:
		rig_http_done(r, "slack.com", s % 4 == 0 ? 500 : 200);
		break;
	case 3:
		rig_fs(r, "fs:read", "~/p/x", "read_content");
		break;
	default:
		rig_fs(r, "fs:write", "~/p/y", "write_content");
		break;
	}
}

/* The verdicts of the whole history, n events. */
static void reference(uint64_t n, uint64_t seed, enum dogwood_cause *out)
{
	struct rig r;

	rig_init(&r, NULL);
	rig_open(&r);
	(void)rig_install(&r, rig_policy);
	for (uint64_t i = 0; i < n; i++) {
		make_event(&r, i, seed);
		(void)rig_submit(&r);
		out[i] = r.v->cause;
	}
	rig_fini(&r);
}

struct heard {
	unsigned calls;
	uint64_t last_offset;
	enum dogwood_cause cause;
	uint64_t *durable_at; /* offsets, in the order they were released */
	unsigned cap;
};

static void on_verdict(void *arg, const struct dogwood_verdict *v)
{
	struct heard *h = arg;

	h->calls++;
	h->last_offset = v->offset;
	h->cause = v->cause;
}

static int begin(struct rig *r, struct heard *h)
{
	struct dogwood_error err = { 0 };
	int rc = dogwood_submit_begin(
	    r->e, r->ev, (dogwood_str){ NULL, 0 }, h != NULL ? on_verdict : NULL, h, &err);

	if (rc < 0)
		fail_msg("begin: %s", err.msg);
	return rc;
}

static void test_event_loop(void **state)
{
	struct heard h = { 0 };
	struct dogwood_error err = { 0 };
	uint64_t syncs;
	struct rig r;

	(void)state;
	rig_init(&r, tmp_path("loop"));
	rig_open(&r);
	(void)rig_install(&r, rig_policy);
	syncs = rig_status(&r).syncs;

	/* Nothing can match it: at once, without a sync. */
	rig_fs(&r, "fs:read", "~/x", "read_content");
	assert_int_equal(begin(&r, &h), 1);
	assert_int_equal(h.calls, 1);
	assert_false(dogwood_engine_waiting(r.e));
	assert_int_equal(dogwood_engine_sync(r.e, &err), 0);
	assert_int_equal(rig_status(&r).syncs, syncs);

	/* A request that the clause does not look at either: it looks at responses. */
	rig_http(&r, "slack.com");
	assert_int_equal(begin(&r, &h), 1);

	/* A response matters. Nobody waits for it, but what comes after it does. */
	rig_http_done(&r, "slack.com", 200);
	assert_int_equal(begin(&r, NULL), 0);
	assert_true(dogwood_engine_waiting(r.e));
	rig_fs(&r, "fs:read", "~/x", "read_content");
	assert_int_equal(begin(&r, &h), 0);
	assert_int_equal(h.calls, 2);
	assert_true(dogwood_engine_waiting(r.e));
	rig_http_done(&r, "slack.com", 200);
	assert_int_equal(begin(&r, &h), 0);
	assert_int_equal(dogwood_engine_sync(r.e, &err), 2);
	assert_int_equal(h.calls, 4);
	assert_int_equal(h.last_offset, 5);
	assert_int_equal(h.cause, DOGWOOD_RECORDED);
	assert_int_equal(rig_status(&r).syncs, syncs + 1);
	assert_int_equal(rig_status(&r).durable_offset, 6);
	assert_int_equal(dogwood_engine_sync(r.e, &err), 0);

	/* An outcome that nobody waits for is durable after the turn all the same. */
	rig_http_done(&r, "slack.com", 200);
	assert_int_equal(begin(&r, NULL), 0);
	assert_int_equal(dogwood_engine_sync(r.e, &err), 0);
	assert_int_equal(rig_status(&r).durable_offset, 7);
	assert_false(dogwood_engine_waiting(r.e));

	/* Closing calls back for what waits. */
	rig_http_done(&r, "slack.com", 200);
	assert_int_equal(begin(&r, &h), 0);
	rig_close(&r);
	assert_int_equal(h.calls, 5);
	rig_open(&r);
	assert_int_equal(rig_status(&r).next_offset, 8);
	rig_http(&r, "slack.com");
	assert_false(rig_submit(&r));
	rig_close(&r);

	/* With "always" everything waits. */
	r.opt.sync = DOGWOOD_SYNC_ALWAYS;
	rig_open(&r);
	rig_fs(&r, "fs:read", "~/x", "read_content");
	assert_int_equal(begin(&r, &h), 0);
	assert_int_equal(dogwood_engine_sync(r.e, &err), 1);
	rig_fini(&r);
}

struct nested {
	struct rig *r;
	unsigned left;
};

static void on_nested(void *arg, const struct dogwood_verdict *v)
{
	struct nested *n = arg;

	(void)v;
	if (n->left == 0)
		return;
	n->left--;
	rig_http_done(n->r, "slack.com", 200);
	assert_int_equal(
	    dogwood_submit_begin(n->r->e, n->r->ev, (dogwood_str){ NULL, 0 }, on_nested, n, NULL),
	    0);
	if (n->left == 5)
		assert_int_equal(dogwood_engine_sync(n->r->e, NULL), 1);
}

/* A callback may submit, and sync. */
static void test_nested(void **state)
{
	struct nested n = { .left = 10 };
	struct rig r;
	unsigned turns = 0;

	(void)state;
	rig_init(&r, tmp_path("nested"));
	n.r = &r;
	rig_open(&r);
	(void)rig_install(&r, rig_policy);
	rig_http_done(&r, "slack.com", 200);
	assert_int_equal(
	    dogwood_submit_begin(r.e, r.ev, (dogwood_str){ NULL, 0 }, on_nested, &n, NULL), 0);
	while (dogwood_engine_waiting(r.e)) {
		assert_true(dogwood_engine_sync(r.e, NULL) >= 1);
		turns++;
	}
	assert_int_equal(n.left, 0);
	assert_true(turns <= 11);
	assert_int_equal(rig_status(&r).next_offset, 12);
	rig_fini(&r);
}

/* A disk that loses everything that was not synced: an image of the store in which a file has
 * the content of its last sync. Names are kept at once; losing them too is no harder. The helper
 * thread syncs as well. */
struct lossy {
	const char *store, *image;
	pthread_mutex_t lock;
};

static int lossy_sync(void *arg, int fd)
{
	char link[64], name[512];
	struct lossy *l = arg;
	uint8_t *p;
	ssize_t len;
	size_t n;
	int rc;

	(void)pthread_mutex_lock(&l->lock);
	rc = eng_io_system().sync(NULL, fd);
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, name, sizeof(name) - 1);
	assert_true(rc == 0 && len > 0);
	name[len] = '\0';
	p = tmp_read(l->store, strrchr(name, '/') + 1, &n);
	tmp_write(l->image, strrchr(name, '/') + 1, p, n);
	free(p);
	(void)pthread_mutex_unlock(&l->lock);
	return rc;
}

static int lossy_rename(void *arg, int dir, const char *from, const char *to)
{
	struct lossy *l = arg;
	char a[512], b[512];
	int rc;

	(void)snprintf(a, sizeof(a), "%s/%s", l->image, from);
	(void)snprintf(b, sizeof(b), "%s/%s", l->image, to);
	(void)pthread_mutex_lock(&l->lock);
	assert_int_equal(rename(a, b), 0);
	rc = eng_io_system().rename(NULL, dir, from, to);
	(void)pthread_mutex_unlock(&l->lock);
	return rc;
}

static int lossy_unlink(void *arg, int dir, const char *name)
{
	struct lossy *l = arg;
	char a[512];
	int rc;

	(void)snprintf(a, sizeof(a), "%s/%s", l->image, name);
	(void)pthread_mutex_lock(&l->lock);
	(void)unlink(a);
	rc = eng_io_system().unlink(NULL, dir, name);
	(void)pthread_mutex_unlock(&l->lock);
	return rc;
}

static void lossy_io(struct rig *r, struct lossy *l)
{
	r->io.arg = l;
	r->io.sync = lossy_sync;
	r->io.rename = lossy_rename;
	r->io.unlink = lossy_unlink;
}

/* Cut the power: close without the image taking part, then put the files back to what the disk
 * had. */
static void power_cut(struct rig *r, struct lossy *l, bool lose)
{
	const char *keep = tmp_path("power-keep");

	/* The helper may be in the middle of something. */
	(void)pthread_mutex_lock(&l->lock);
	tmp_copy(lose ? l->image : l->store, keep);
	(void)pthread_mutex_unlock(&l->lock);
	(void)dogwood_engine_close(r->e, NULL);
	(void)tmp_path("power");
	tmp_copy(keep, l->store);
	(void)tmp_path("power-image");
	tmp_copy(keep, l->image);
}

/* Run n events through an engine that is cut off at random and continued from what the disk
 * kept: nothing unsynced, or all of it. Every verdict after the cut is the one of the full
 * history. */
static void crashes(uint64_t seed, bool lose, bool loop, uint64_t snapshot_events)
{
	enum dogwood_cause want[160];
	const uint64_t n = sizeof(want) / sizeof(want[0]);
	struct lossy l = { tmp_path("power"), tmp_path("power-image"), PTHREAD_MUTEX_INITIALIZER };
	struct heard h = { 0 };
	uint64_t rnd = seed + 99, released = 0;
	struct rig r;

	reference(n, seed, want);
	rig_init(&r, l.store);
	r.opt.snapshot_events = snapshot_events;
	lossy_io(&r, &l);
	assert_int_equal(mkdir(l.image, 0700), 0);
	rig_open(&r);
	(void)rig_install(&r, rig_policy);
	for (uint64_t i = 0; i < n; i++) {
		make_event(&r, i, seed);
		if (loop) {
			h.calls = 0;
			(void)begin(&r, &h);
			if (tmp_rand(&rnd) % 3 == 0)
				(void)dogwood_engine_sync(r.e, NULL);
			while (h.calls == 0 && dogwood_engine_waiting(r.e))
				(void)dogwood_engine_sync(r.e, NULL);
			assert_int_equal(h.cause, want[i]);
		} else {
			(void)rig_submit(&r);
			assert_int_equal(r.v->cause, want[i]);
		}
		released = i + 1;
		if (tmp_rand(&rnd) % 12 != 0)
			continue;
		power_cut(&r, &l, lose);
		rig_open(&r);
		(void)rig_install(&r, rig_policy);
	}
	assert_int_equal(released, n);
	rig_fini(&r);
}

static void test_crashes(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++) {
		crashes(seed, true, false, 0);
		crashes(seed, false, false, 0);
		crashes(seed, true, true, 0);
		crashes(seed, true, seed % 2 == 0, 10);
	}
}

/* One life with the n-th call failing; what was released before must be in the store afterwards,
 * with the same verdicts. */
static uint64_t faulty_life(
    const char *path, struct tmp_faults *f, const enum dogwood_cause *want, uint64_t n)
{
	struct dogwood_error err = { 0 };
	uint64_t released = 0;
	struct rig r;

	rig_init(&r, path);
	r.opt.segment_bytes = 65536;
	r.opt.snapshot_events = 0;
	r.io = tmp_io(f);
	if (rig_try_open(&r, &err) < 0) {
		assert_true(err.msg[0] != '\0');
		goto out;
	}
	{
		struct dogwood_error ierr = { 0 };

		if (rig_try_install(&r, rig_policy, &ierr) < 0) {
			assert_int_equal(ierr.code, DOGWOOD_ESTORE);
			goto out;
		}
	}
	for (uint64_t i = 0; i < n; i++) {
		make_event(&r, i, 5);
		if (rig_try_submit(&r, &err) < 0) {
			assert_int_equal(err.code, DOGWOOD_ESTORE);
			assert_false(r.v->permit);
			/* Closed for good, also when the disk is well again. */
			f->fail_at = 0;
			make_event(&r, i, 5);
			assert_int_equal(rig_try_submit(&r, &err), -1);
			assert_int_equal(err.code, DOGWOOD_ESTORE);
			assert_non_null(strstr(err.msg, "open the store anew"));
			assert_true(rig_status(&r).poisoned);
			break;
		}
		assert_int_equal(r.v->cause, want[i]);
		released = i + 1;
		if (i % 25 == 24)
			(void)dogwood_engine_checkpoint(
			    r.e, &err); /* may fail: costs recovery time */
	}
out:
	(void)dogwood_engine_close(r.e, NULL);
	r.e = NULL;
	rig_fini(&r);
	return released;
}

static void test_faults(void **state)
{
	enum dogwood_cause want[150];
	const uint64_t n = sizeof(want) / sizeof(want[0]);
	struct tmp_faults f = { 0 };
	unsigned calls;

	(void)state;
	reference(n, 5, want);
	assert_int_equal(faulty_life(tmp_path("faulty"), &f, want, n), n);
	calls = f.calls;
	assert_true(calls > 80);
	for (int variant = 0; variant < 3; variant++)
		for (unsigned at = 1; at <= calls; at++) {
			const char *path = tmp_path("faulty");
			struct dogwood_error err = { 0 };
			uint64_t released, next;
			struct rig r;

			f = (struct tmp_faults){ .fail_at = at,
				.error = variant == 0 ? EIO : ENOSPC,
				.stay = variant == 1,
				.short_write = variant == 2 };
			released = faulty_life(path, &f, want, n);
			rig_init(&r, path);
			r.now = T0 + (int64_t)released * (MINUTE / 2);
			if (rig_try_open(&r, &err) < 0)
				fail_msg("call %u, variant %d: %s", at, variant, err.msg);
			/* It may hold one event more than was released, or lack some at the end
			 * that no verdict rests on. Either way the rest goes as if nothing had
			 * happened. */
			next = rig_status(&r).next_offset;
			assert_true(next <= released + 2);
			(void)rig_install(&r, rig_policy);
			for (uint64_t i = next > released + 1 ? next - 1 : released; i < n; i++) {
				make_event(&r, i, 5);
				(void)rig_submit(&r);
				assert_int_equal(r.v->cause, want[i]);
			}
			rig_fini(&r);
		}
}

/* Snapshots: the same answers with and without; a damaged one is passed over; without any usable
 * one a pruned store is refused. */
static void test_snapshots(void **state)
{
	const char *path = tmp_path("snap"), *copy = path;
	enum dogwood_cause want[400];
	const uint64_t n = sizeof(want) / sizeof(want[0]);
	struct dogwood_error err = { 0 };
	struct dogwood_status st;
	uint8_t *p;
	size_t len;
	char name[2][64];
	struct rig r;

	(void)state;
	reference(n, 11, want);
	rig_init(&r, path);
	r.opt.snapshot_events = 0;
	r.opt.segment_bytes = 65536;
	rig_open(&r);
	(void)rig_install(&r, rig_policy);
	for (uint64_t i = 0; i < n; i++) {
		make_event(&r, i, 11);
		(void)rig_submit(&r);
		assert_int_equal(r.v->cause, want[i]);
		if (i % 90 != 89)
			continue;
		if (dogwood_engine_checkpoint(r.e, &err) < 0)
			fail_msg("%s", err.msg);
		assert_int_equal(rig_status(&r).snapshot_offset, i + 2);
		rig_close(&r);
		rig_open(&r);
		st = rig_status(&r);
		assert_int_equal(st.snapshot_offset, i + 2);
		assert_int_equal(st.replayed, 0);
		assert_int_equal(st.next_offset, i + 2);
	}
	st = rig_status(&r);
	assert_true(st.base_offset > 0);
	rig_close(&r);
	(void)snprintf(name[0], sizeof(name[0]), "snap-%016x", 361);
	(void)snprintf(name[1], sizeof(name[1]), "snap-%016x", 271);

	/* The newest damaged at any byte: the older one and the log behind it give the same. */
	p = tmp_read(path, name[0], &len);
	for (size_t i = 0; i < len; i += 97) {
		copy = tmp_path("snap-copy");
		tmp_copy(path, copy);
		p[i] ^= 0x10;
		tmp_write(copy, name[0], p, i % 2 == 0 ? len : i);
		p[i] ^= 0x10;
		r.opt.path = copy;
		rig_open(&r);
		assert_int_equal(rig_status(&r).snapshot_offset, 271);
		assert_int_equal(rig_status(&r).next_offset, n + 1);
		make_event(&r, n - 1, 11);
		(void)rig_submit(&r);
		rig_close(&r);
	}
	/* Both damaged: refused. */
	tmp_write(copy, name[0], p, len / 2);
	tmp_write(copy, name[1], p, len / 3);
	assert_int_equal(rig_try_open(&r, &err), -1);
	assert_int_equal(err.code, DOGWOOD_ECORRUPT);
	assert_non_null(strstr(err.msg, "no usable snapshot and the log is pruned to offset"));
	assert_non_null(strstr(err.msg, "check sum"));
	free(p);
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
		cmocka_unit_test(test_event_loop),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_crashes),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_snapshots),
	};

	return cmocka_run_group_tests(tests, NULL, done);
}
