/* ns: the raw namespace steps shared by the launcher and the workers. Everything here runs between
 * clone and exec or in a single-threaded program; nothing depends on policy. Internal to
 * src/contain and src/launch. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Run child(arg) in a process with these CLONE_NEW* flags; *pidfd (close-on-exec) is set in the
 * parent. -1 with errno. Like vfork: the child runs in its parent's memory, on a stack of its own,
 * and the parent waits until it executes something or ends, so it may read what was prepared and
 * make system calls, and it ends with execve or _exit. What it changes in memory is changed for
 * both. */
pid_t ns_spawn(unsigned long flags, int (*child)(void *), void *arg, int *pidfd);
/* Why ns_spawn or the first steps in a new user namespace failed, and what to enable; reads
 * sysctls. Fills err, returns -1. */
int ns_explain(int sys, const char *what, struct box_err *err);

/* The steps below are for the child; they make system calls only. Each returns 0, or -1 with errno.
 */
/* Map uid and gid 1:1 in the new user namespace. EACCES when the process is not dumpable. */
int ns_map_ids(uid_t uid, gid_t gid);
/* Keep the capabilities in the user namespace that confining needs, and no others, across the
 * coming execve (ambient set; for uid 0 the kernel gives all). */
int ns_caps_keep(void);
/* Give up every capability in all five sets, the bounding set and the securebits that could bring
 * them back; set no_new_privs. */
int ns_caps_drop(void);
/* SIGKILL when the parent's thread ends. Survives execve. */
int ns_tie(void);
/* What this user namespace and those below it may use of what the kernel counts by user: no further
 * user namespace, and half of the host's inotify instances and watches, so that the operator's own
 * programs keep theirs. After ns_map_ids. A second lock where it can be had (Linux 5.14 for
 * inotify, a writable /proc/sys): the system call filter is the first. */
void ns_budget(void);
/* ns_tie, and not dumpable: no core, /proc/self closed to others, no ptrace. After ns_map_ids. */
int ns_harden(void);
/* Bring the loopback interface of this network namespace up. */
int ns_loopback_up(void);
/* One resource limit, lowered to the hard limit that is already there. */
int ns_limit(int resource, uint64_t soft, uint64_t hard);
