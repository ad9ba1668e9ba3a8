/* reap: what pid 1 of a namespace does for box-shell: wait for everything, end with the one child
 * that matters. Internal to src/contain. */
#pragma once

#include <sys/types.h>

/* Reap children until `pid` ended; its exit status, or 128 + signal. The namespace ends when the
 * caller exits. */
int reap_until(pid_t pid);
