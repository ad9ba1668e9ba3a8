/* reap: what pid 1 of a namespace does for box-shell: wait for everything, pass signals on, end
 * with the one child that matters. Internal to src/contain. */
#pragma once

#include <signal.h>
#include <sys/types.h>

/* Block what reap_until is to hear of, before the child is made, so that nothing is lost (the
 * kernel drops an unblocked default signal of pid 1). *before is the mask for the child. */
void reap_prepare(sigset_t *before);
/* Reap children until `pid` ended; its exit status, or 128 + signal. SIGHUP, SIGINT, SIGQUIT,
 * SIGTERM, SIGUSR1, SIGUSR2 and SIGCONT go on to the process group of `pid`; SIGTSTP as SIGSTOP.
 * The namespace ends when the caller exits. */
int reap_until(pid_t pid);
