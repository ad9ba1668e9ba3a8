#include "contain/reap.h"

#include <errno.h>
#include <sys/wait.h>

#include "base/ban.h"

int reap_until(pid_t pid)
{
	for (;;) {
		int status;
		pid_t p = waitpid(-1, &status, 0);

		if (p < 0 && errno == EINTR)
			continue;
		if (p < 0)
			return 125;
		if (p == pid)
			return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
}
