/* Install one of the filters that filter_gen compiled when this was built. */
#include "contain/filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "filter_bpf.h" /* generated: filter_bpf[kind] */
#include "base/ban.h"

int filter_install(enum filter_kind kind, struct box_err *err)
{
	struct sock_fprog p = filter_bpf[kind];

	if (p.len == 0)
		return box_fail(err, BOX_EPARSE, 0, "no such system call filter: %d", (int)kind);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p) < 0)
		return box_fail(err, BOX_ESYS, errno,
		    "install the system call filter (the kernel needs CONFIG_SECCOMP_FILTER)");
	return 0;
}
