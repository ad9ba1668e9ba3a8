/* worker: how the monitor starts our own programs, and how each of them gives up everything before
 * it reads a hostile byte.
 *
 * worker_spawn: clone with new user, mount, pid, ipc, uts, cgroup and (except WORKER_DIAL) network
 * namespaces, then execve of the image: a fresh address layout, an empty environment, PDEATHSIG.
 * worker_confine: called first thing in the worker's main; afterwards only what the profile names
 * works.
 *
 * Descriptors of a worker: 0, 1 /dev/null; 2 the box's stderr; 3 = MON_FD its channel; 4 =
 * WORKER_CARD_FD (consumed by worker_confine); WORKER_FDS and up the listed extra ones. Everything
 * else is closed. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define WORKER_CHANNEL_FD 3 /* = MON_FD of monitor/proto.h */
#define WORKER_CARD_FD    4
#define WORKER_FDS        5
#define WORKER_FDS_MAX    16
#define WORKER_PATHS_MAX  4096

enum worker_profile {
	/* Descriptors it holds, pipes, socket pairs, fork, signals within its own namespace, poll,
	 * time. No open, no socket(), no exec, no thread. An empty root. Runs as pid 2 of its
	 * namespace below a reaper (so that "$$" and kill behave); the pid of worker_spawn is the
	 * reaper's, which ends with the worker and with its status (128+n for a signal). */
	WORKER_SHELL = 1,
	/* Passed sockets: accept, read, write, epoll, timers, getrandom; descriptors received and
	 * sent. No open, no socket(), no connect, no exec, no fork; threads allowed. Initialise
	 * OpenSSL and libevent before or after; an empty root. */
	WORKER_GATEWAY,
	/* The host's network: UDP and TCP sockets, netlink route queries (getaddrinfo), the
	 * resolver's files and NSS libraries read-only. No exec; threads allowed. */
	WORKER_DIAL,
	/* The operator's own file system view, limited by Landlock to `paths`; all file calls
	 * (openat2, renameat2, linkat, xattr …); no network, no exec, no fork; threads allowed.
	 * /proc and /sys are empty. */
	WORKER_FILES
};

/* Rights below one path for WORKER_FILES. */
enum worker_right {
	WORKER_R_READ = 1 << 0,  /* read files and directories */
	WORKER_R_WRITE = 1 << 1, /* write, create, remove, rename, link below */
};
struct worker_path {
	const char *path; /* absolute, exists */
	uint32_t rights;
};

struct worker_spec {
	enum worker_profile profile;
	const char *program; /* absolute path of the image */
	const char *name;    /* argv[0], and the name in messages */
	int channel;    /* the worker's end of an ipc_pair; stays the caller's (close it after) */
	int err_fd;     /* the box's stderr, usually 2 */
	const int *fds; /* extra descriptors, stay the caller's */
	size_t fds_n;
	const struct worker_path *paths; /* WORKER_FILES only */
	size_t paths_n;
};

/* Start one. Returns 0 with the pid (to waitpid for) and a pidfd (close-on-exec, the caller's).
 * What fails in the child before execve is one line on err_fd and exit status 126; the channel then
 * closes without a HELLO. The worker dies with the thread that called this. Does not wait for the
 * execve. */
int worker_spawn(const struct worker_spec *s, pid_t *pid, int *pidfd, struct box_err *err);

/* In the worker, single-threaded, before the first byte is read from the channel. On -1 the worker
 * must exit. The profile must be the one it was started with. Without worker_spawn (started by
 * hand) it fails with a message that says so. */
int worker_confine(enum worker_profile profile, struct box_err *err);
