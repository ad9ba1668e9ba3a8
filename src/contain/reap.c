#include "contain/reap.h"

#include <errno.h>
#include <sys/wait.h>

#include "base/ban.h"

static const int passed_on[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGTSTP,
	SIGCONT };

static sigset_t heard(void)
{
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		(void)sigaddset(&set, passed_on[i]);
	(void)sigaddset(&set, SIGCHLD);
	return set;
}

void reap_prepare(sigset_t *before)
{
	const sigset_t set = heard();

	(void)sigprocmask(SIG_BLOCK, &set, before); /* cannot fail with these arguments */
}

int reap_until(pid_t pid)
{
	const sigset_t set = heard();

	for (;;) {
		int status, sig;
		pid_t p;

		while ((p = waitpid(-1, &status, WNOHANG)) > 0)
			if (p == pid)
				return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				                           : WEXITSTATUS(status);
		if (p < 0 && errno != EINTR)
			return 125;
		sig = sigwaitinfo(&set, NULL);
		/* Stopping is no question for the shell. No such group: the child is gone, as is
		 * seen next. */
		if (sig > 0 && sig != SIGCHLD)
			(void)kill(-pid, sig == SIGTSTP ? SIGSTOP : sig);
	}
}
