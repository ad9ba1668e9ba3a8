/* The monitor's reading of box-launch's frames: box-launch is our own program, but a frame outside
 * the table still ends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "launch/launch.h"
#include "base/ban.h"

struct pair {
	struct launch_child child;
	int peer;
};

static int setup(void **state)
{
	static struct pair p;
	int v[2];

	assert_int_equal(ipc_pair(v, NULL), 0);
	p = (struct pair){ .child = { .pid = -1, .pidfd = -1, .control = v[0] }, .peer = v[1] };
	*state = &p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	launch_end(&p->child);
	fd_drop(&p->peer);
	return 0;
}

static int recv_of(
    struct pair *p, uint16_t type, const void *body, size_t n, int fd, struct launch_event *ev)
{
	AUTO_BUF b = buf_with(4096);

	buf_put(&b, body, n);
	assert_int_equal(ipc_send(p->peer, type, 0, &b, &fd, fd >= 0 ? 1 : 0, NULL), 0);
	return launch_recv(&p->child, ev, NULL);
}

static void test_frames(void **state)
{
	struct pair *p = *state;
	struct launch_event ev;
	static const char failed[] = "\x04\0\0\0\x05"
	                             "a\x1b"
	                             "[2J";

	assert_int_equal(recv_of(p, LAUNCH_READY, "", 0, -1, &ev), 1);
	assert_int_equal(ev.type, LAUNCH_READY);
	assert_int_equal(recv_of(p, LAUNCH_FAILED, failed, 10, -1, &ev), 1);
	assert_int_equal(ev.stage, LAUNCH_STAGE_VIEW);
	assert_string_equal(
	    ev.text, "a\\x1b[2J"); /* never a control byte for the operator's terminal */
	assert_int_equal(recv_of(p, LAUNCH_STOPPED, "\x14", 1, -1, &ev), 1);
	assert_int_equal(ev.status, 20);
	assert_int_equal(recv_of(p, LAUNCH_EXITED, "\0\0\x01\0", 4, -1, &ev), 1);
	assert_int_equal(ev.status, 256);
	assert_int_equal(recv_of(p, LAUNCH_LISTENER, "", 0, 0, &ev), 1);
	assert_true(ev.listener >= 0);
	(void)close(ev.listener);
}

static void test_refused(void **state)
{
	static const struct {
		uint16_t type;
		const char *body;
		size_t n;
		int fd;
	} t[] = { { LAUNCH_READY, "x", 1, -1 }, { LAUNCH_READY, "", 0, 0 },
		{ LAUNCH_LISTENER, "", 0, -1 }, { LAUNCH_FAILED, "", 0, -1 },
		{ LAUNCH_FAILED, "\x09\0\0\0\0", 5, -1 },
		{ LAUNCH_FAILED, "\x01\0\0\0\x09x", 6, -1 }, { LAUNCH_STOPPED, "", 0, -1 },
		{ LAUNCH_EXITED, "\0\0\0", 3, -1 }, { LAUNCH_EXITED, "\0\0\0\0\0", 5, -1 },
		{ LAUNCH_SIGNAL, "\x01", 1, -1 }, { 99, "", 0, -1 }, { 0, "", 0, -1 } };
	struct pair *p = *state;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct launch_event ev;

		assert_int_equal(recv_of(p, t[i].type, t[i].body, t[i].n, t[i].fd, &ev), -1);
		assert_int_equal(ev.listener, -1);
	}
}

static void test_closed(void **state)
{
	struct pair *p = *state;
	struct launch_event ev;

	fd_drop(&p->peer);
	assert_int_equal(launch_recv(&p->child, &ev, NULL), 0);
	assert_int_equal(launch_signal(&p->child, 15, NULL), -1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = { T(test_frames), T(test_refused), T(test_closed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
