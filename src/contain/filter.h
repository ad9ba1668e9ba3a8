/* filter: the system call filters (seccomp(2), libseccomp). Allow-lists: an unknown call is ENOSYS,
 * so that programs fall back; a known dangerous one is EPERM in a sandbox and ends the process in
 * our own programs; a foreign system call ABI (x32, i386, AArch32) ends the process. Internal to
 * src/contain and src/launch. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

enum filter_kind {
	FILTER_WORKLOAD = 1, /* agents and tools */
	FILTER_REAPER,       /* pid 1 of a sandbox and of box-shell */
	FILTER_SHELL,        /* worker profiles, see worker.h */
	FILTER_GATEWAY,
	FILTER_DIAL,
	FILTER_FILES
};

/* Install for this process and its children; no_new_privs must be set. Last step before the first
 * hostile byte. */
int filter_install(enum filter_kind kind, struct box_err *err);
/* Compile the rules with libseccomp: the BPF program as bytes (struct sock_filter array). Only in
 * filter_gen and in tests, which link filter_rules.c; the programs have the result built in, as
 * compiling it takes longer than everything else a sandbox needs. */
int filter_export(enum filter_kind kind, struct buf *out, struct box_err *err);
/* The instructions in front of the workload's program: calls that are refused for some arguments
 * only. */
void filter_guard(struct buf *out);
