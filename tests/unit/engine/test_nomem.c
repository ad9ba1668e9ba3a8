/* Without memory: each allocation of an engine's life fails once. Nothing crashes, nothing is
 * permitted that was not judged, and the store opens again. And after warm-up a decision allocates
 * nothing at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../base/failmalloc.h"
#include "rig.h"
#include "tmp.h"

#include "base/ban.h"

static const char policy[] =
    "@id(\"all\") permit (principal, action, resource);\n"
    "@id(\"n\") forbid (principal, action == Box::Action::\"http:request\", resource)\n"
    "when temporal { (count for (t: Timepoint). where (formerly within 10m "
    "(Box::Action::\"http:request\"::response{ input.host: context.input.host } && tp(t)))) >= 2 "
    "};\n";

static int install(struct rig *r, struct dogwood_error *err)
{
	struct dogwood_source src = { dogwood_cstr("p.dw"), dogwood_cstr(policy) };
	struct dogwood_policy_set set = { .policies = &src, .n_policies = 1 };

	return dogwood_engine_install(r->e, &set, NULL, NULL, err);
}

static void on_verdict(void *arg, const struct dogwood_verdict *v)
{
	*(enum dogwood_cause *)arg = v->cause;
}

/* Returns how far it came. */
static unsigned life(struct rig *r)
{
	struct dogwood_error err = { 0 };
	unsigned done = 0;

	if (rig_try_open(r, &err) < 0)
		return 0;
	done++;
	if (install(r, &err) < 0)
		return done;
	done++;
	for (unsigned i = 0; i < 8; i++) {
		enum dogwood_cause cause = DOGWOOD_FAULT;
		bool want = i < 4; /* two answers, then no more */

		if (i % 2 == 0)
			rig_http(r, "x.com");
		else
			rig_http_done(r, "x.com", 200);
		if (i < 5) {
			if (dogwood_submit(
			        r->e, r->ev, dogwood_cstr(i == 2 ? "tok" : NULL), r->v, &err) < 0) {
				assert_false(r->v->permit);
				return done;
			}
			cause = r->v->cause;
		} else if (dogwood_submit_begin(r->e, r->ev, (dogwood_str){ NULL, 0 }, on_verdict,
		               &cause, &err) < 0 ||
		           dogwood_engine_sync(r->e, &err) < 0) {
			return done;
		}
		if (i % 2 != 0)
			assert_true(cause == DOGWOOD_RECORDED || cause == DOGWOOD_FAULT);
		else if (!want)
			assert_true(cause != DOGWOOD_PERMITTED);
		done++;
	}
	if (dogwood_engine_checkpoint(r->e, &err) == 0)
		done++;
	return done;
}

static void sweep(bool disk)
{
	unsigned whole = 0;
	size_t n;

	for (n = 0; n < 100000; n++) {
		const char *path = disk ? tmp_path("nomem") : NULL;
		struct dogwood_error err = { 0 };
		unsigned done;
		struct rig r;

		rig_init(&r, path);
		r.opt.snapshot_events = 0;
		fail_after(n);
		done = life(&r);
		if (n == 0)
			whole = done;
		if (n != 0 && !fail_happened()) {
			assert_int_equal(done, whole);
			fail_after(0);
			rig_fini(&r);
			break;
		}
		(void)dogwood_engine_close(r.e, NULL);
		r.e = NULL;
		fail_after(0);
		if (disk) {
			if (rig_try_open(&r, &err) < 0)
				fail_msg("allocation %zu: %s", n, err.msg);
			(void)dogwood_engine_close(r.e, NULL);
			r.e = NULL;
		}
		rig_fini(&r);
	}
	assert_int_equal(whole, 11);
	assert_true(n > 30);
}

static void test_memory(void **state)
{
	(void)state;
	sweep(false);
}

static void test_disk(void **state)
{
	(void)state;
	sweep(true);
}

/* The budget of allocations per decision is none. */
static void test_no_allocation(void **state)
{
	enum dogwood_cause cause;
	struct rig r;

	(void)state;
	rig_init(&r, NULL);
	rig_open(&r);
	(void)rig_install(&r, rig_policy);
	for (int i = 0; i < 400; i++) {
		r.now += MINUTE;
		/* After warm-up, with the window full and turning over. */
		if (i == 200)
			fail_after(1);
		if (i % 2 == 0)
			rig_http(&r, "slack.com");
		else
			rig_http_done(&r, "slack.com", 200);
		(void)rig_submit(&r);
		rig_fs(&r, "fs:read", "~/x", "read_content");
		assert_int_equal(dogwood_submit_begin(
		                     r.e, r.ev, (dogwood_str){ NULL, 0 }, on_verdict, &cause, NULL),
		    1);
		assert_int_equal(cause, DOGWOOD_PERMITTED);
		if (i >= 200 && fail_happened()) {
			fail_after(0);
			fail_msg("event %d allocates", i);
		}
	}
	fail_after(0);
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
		cmocka_unit_test(test_no_allocation),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_disk),
	};

	return cmocka_run_group_tests(tests, NULL, done);
}
