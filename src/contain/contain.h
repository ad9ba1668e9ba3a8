/* contain: questions the monitor asks before it starts a sandbox: is everything there, what does
 * the containment add, what must exist on the host. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "config/disclose.h"
#include "config/plan.h"

/* Are all layers available: user, mount, pid, network namespaces, a fresh procfs, Landlock, seccomp
 * filters? Tries the real thing in a short-lived child. 0, or -1 with one line that says what is
 * missing and what to enable. About 3 ms: for `box doctor` and `box check`; a start that fails says
 * the same by itself. */
int contain_check(struct box_err *err);
/* The ABI of Landlock on this kernel; 0: built in but switched off or not built. */
int contain_landlock_abi(void);

/* The rows that the containment adds to a process of this kind, for the startup report
 * (box-config-and-policy 1.5, 4.3). The array lives in a; rows the host lacks are left out. *out
 * may be NULL when *n is 0. -1 without memory. */
int contain_minimum(struct arena *a, enum plan_kind kind, struct disclose_minimum **out, size_t *n,
    struct box_err *err);

/* `deny` entries that do not exist yet, below a granted directory: the kernel can only cover what
 * is there. Each missing directory on the way is made, empty and with mode 0700, for as long as the
 * box runs; sandboxes cover the last one. contain_placeholders_remove removes those that are still
 * empty, last first. Called by the monitor with the run lock held; a box that was killed leaves
 * empty directories, which the next run uses and removes. -1 when one cannot be made: the start
 * must then be refused with err, which names table and entry. */
struct contain_placeholder {
	const char *path;
	bool made; /* false: it was there */
};
struct contain_placeholders {
	struct contain_placeholder *v;
	size_t n;
	struct arena arena;
};
int contain_placeholders_make(
    const struct plan *p, struct contain_placeholders *out, struct box_err *err);
void contain_placeholders_remove(struct contain_placeholders *ph);

/* Unix sockets that are below the granted paths of a process now: it could connect to them,
 * whatever the list. Looks at the kernel's table of bound sockets, and for others at `max`
 * directory entries at most (20,000 take about 10 ms). One may be found twice. hide: no entry names
 * it, so it is to be covered (sandbox_extra.sockets); a leftover that nobody is bound to in a
 * writable folder is not: the process may have to remove it. Returns false when there was more to
 * look at. */
typedef void contain_socket_fn(void *arg, const char *path, bool hide);
bool contain_sockets(
    const struct plan_process *proc, size_t max, contain_socket_fn *each, void *arg);
