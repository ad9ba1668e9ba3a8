/* The event loop: descriptors, timers on an injected clock, removal inside handlers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "monitor/loop.h"

struct fixture {
	struct loop *l;
	int64_t now;
	int p[2], q[2];
	struct loop_watch *w, *other;
	int calls, turns;
	int order[8];
	int fired;
};

static int up(void **state)
{
	static struct fixture f;
	struct box_err err;

	f = (struct fixture){ .p = { -1, -1 }, .q = { -1, -1 } };
	f.l = loop_new(clock_fixed(&f.now), &err);
	assert_non_null(f.l);
	assert_int_equal(pipe(f.p), 0);
	assert_int_equal(pipe(f.q), 0);
	*state = &f;
	return 0;
}

static int down(void **state)
{
	struct fixture *f = *state;

	loop_free(f->l);
	for (int i = 0; i < 2; i++) {
		fd_drop(&f->p[i]);
		fd_drop(&f->q[i]);
	}
	return 0;
}

static void on_read(void *arg, uint32_t events)
{
	struct fixture *f = arg;
	char c;

	assert_true((events & EPOLLIN) != 0);
	assert_int_equal(read(f->p[0], &c, 1), 1);
	f->calls++;
}

/* Whoever runs first removes both: the second must not be called any more. */
static void on_remove_all(void *arg, uint32_t events)
{
	struct fixture *f = arg;

	(void)events;
	f->calls++;
	loop_unwatch(f->l, f->w);
	loop_unwatch(f->l, f->other);
}

static void on_turn(void *arg)
{
	((struct fixture *)arg)->turns++;
}

static void test_ready(void **state)
{
	struct fixture *f = *state;
	struct box_err err;

	f->w = loop_watch(f->l, f->p[0], EPOLLIN, on_read, f, &err);
	assert_non_null(f->w);
	assert_int_equal(loop_each_turn(f->l, on_turn, f), 0);
	assert_int_equal(loop_turn(f->l, 0, &err), 0);
	assert_int_equal(f->calls, 0);
	assert_int_equal(write(f->p[1], "ab", 2), 2);
	assert_int_equal(loop_turn(f->l, 0, &err), 0);
	assert_int_equal(loop_turn(f->l, 0, &err), 0);
	assert_int_equal(f->calls, 2);
	assert_int_equal(f->turns, 3);
	loop_unwatch(f->l, f->w);
	assert_int_equal(write(f->p[1], "c", 1), 1);
	assert_int_equal(loop_turn(f->l, 0, &err), 0);
	assert_int_equal(f->calls, 2);
}

static void test_removed_in_the_same_turn(void **state)
{
	struct fixture *f = *state;
	struct box_err err;

	f->w = loop_watch(f->l, f->p[0], EPOLLIN, on_remove_all, f, &err);
	f->other = loop_watch(f->l, f->q[0], EPOLLIN, on_remove_all, f, &err);
	assert_int_equal(write(f->p[1], "a", 1), 1);
	assert_int_equal(write(f->q[1], "a", 1), 1);
	assert_int_equal(loop_turn(f->l, 0, &err), 0);
	assert_int_equal(f->calls, 1);
	assert_int_equal(loop_turn(f->l, 0, &err), 0);
	assert_int_equal(f->calls, 1);
}

struct timer_arg {
	struct fixture *f;
	int n;
};

static void on_timer(void *arg)
{
	struct timer_arg *t = arg;

	t->f->order[t->f->fired++] = t->n;
}

static void test_timers(void **state)
{
	struct fixture *f = *state;
	struct box_err err;
	struct timer_arg a[4] = { { f, 0 }, { f, 1 }, { f, 2 }, { f, 3 } };
	struct loop_timer *cancelled;

	assert_non_null(loop_after(f->l, 30, on_timer, &a[3]));
	assert_non_null(loop_after(f->l, 10, on_timer, &a[0]));
	assert_non_null(loop_after(f->l, 20, on_timer, &a[1]));
	cancelled = loop_after(f->l, 20, on_timer, &a[2]);
	loop_cancel(f->l, cancelled);
	assert_int_equal(loop_turn(f->l, 0, &err), 0);
	assert_int_equal(f->fired, 0);
	f->now = 20 * NS_PER_MS;
	assert_int_equal(loop_turn(f->l, 0, &err), 0);
	assert_int_equal(f->fired, 2);
	f->now = 30 * NS_PER_MS - 1;
	assert_int_equal(loop_turn(f->l, 0, &err), 0);
	assert_int_equal(f->fired, 2);
	f->now = 30 * NS_PER_MS;
	assert_int_equal(loop_turn(f->l, 0, &err), 0);
	assert_int_equal(f->fired, 3);
	assert_int_equal(f->order[0], 0);
	assert_int_equal(f->order[1], 1);
	assert_int_equal(f->order[2], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_ready, up, down),
		cmocka_unit_test_setup_teardown(test_removed_in_the_same_turn, up, down),
		cmocka_unit_test_setup_teardown(test_timers, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
