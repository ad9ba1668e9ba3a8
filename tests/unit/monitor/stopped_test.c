/* children_stopped: what /proc says of the children of a process. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "monitor/internal.h"
#include "base/ban.h"

static pid_t sleeper(const char *name)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_NAME, name);
		for (;;)
			(void)pause();
	}
	return pid;
}

static void wait_for(pid_t pid, int options)
{
	siginfo_t si;

	assert_int_equal(waitid(P_PID, (id_t)pid, &si, options | WNOWAIT), 0);
}

static void states(void **state)
{
	pid_t a, b;

	(void)state;
	assert_true(children_stopped(getpid())); /* there is none */
	a = sleeper("a) T (");
	b = sleeper("b");
	assert_false(children_stopped(getpid()));
	assert_int_equal(kill(a, SIGSTOP), 0);
	wait_for(a, WSTOPPED);
	assert_false(children_stopped(getpid())); /* one of two */
	assert_int_equal(kill(b, SIGKILL), 0);
	wait_for(b, WEXITED); /* not reaped: still there, and not running */
	assert_true(children_stopped(getpid()));
	assert_int_equal(kill(a, SIGCONT), 0);
	wait_for(a, WCONTINUED);
	assert_false(children_stopped(getpid()));
	assert_int_equal(kill(a, SIGKILL), 0);
	assert_int_equal(waitpid(a, NULL, 0), a);
	assert_int_equal(waitpid(b, NULL, 0), b);
}

static void unknown(void **state)
{
	(void)state;
	assert_true(children_stopped(INT32_MAX)); /* no such process: nothing to wait for */
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(states), cmocka_unit_test(unknown) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
