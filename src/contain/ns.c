/* See ns.h. System calls that glibc does not wrap are made directly; the capability sets are
 * handled without libcap, since both programs link nothing but libc and libseccomp. */
#include "contain/ns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/sv.h"
#include "base/ban.h"

#define SPAWN_STACK ((size_t)256 << 10)

#if defined(__SANITIZE_ADDRESS__)
/* The address sanitizer knows one stack a thread: a copy of the process instead. */
static pid_t spawn(unsigned long flags, int (*child)(void *), void *arg, int *fd)
{
	/* The third argument is parent_tid on both x86-64 and arm64; with CLONE_PIDFD it receives
	 * the pidfd. */
	long pid = syscall(SYS_clone, flags | CLONE_PIDFD | SIGCHLD, 0UL, fd, 0UL, 0UL);

	if (pid == 0)
		_exit(child(arg));
	return (pid_t)pid;
}
#else
/* Copying the page tables of a monitor takes longer than everything else here. */
static pid_t spawn(unsigned long flags, int (*child)(void *), void *arg, int *fd)
{
	void *stack = mmap(NULL, SPAWN_STACK, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	sigset_t all, before;
	pid_t pid;
	int sys;

	if (stack == MAP_FAILED)
		return -1;
	/* No handler of ours runs in the child. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = clone(child, (char *)stack + SPAWN_STACK,
	    (int)(flags | CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD), arg, fd);
	sys = errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	(void)munmap(stack, SPAWN_STACK);
	errno = sys;
	return pid;
}
#endif

pid_t ns_spawn(unsigned long flags, int (*child)(void *), void *arg, int *pidfd)
{
	int fd = -1;
	pid_t pid = spawn(flags, child, arg, &fd);

	if (pid > 0)
		*pidfd = fd;
	return pid;
}

/* The number in a sysctl file, or -1 when the file is not there. */
static int64_t ns_sysctl(const char *path)
{
	char text[32];
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	int64_t v;

	if (fd < 0)
		return -1;
	n = fd_read_full(fd, text, sizeof(text));
	if (n <= 0 ||
	    !sv_to_i64(sv_trim((sv){ text, (size_t)n }), 10, INT64_MIN + 1, INT64_MAX, &v))
		return -1;
	return v;
}

int ns_explain(int sys, const char *what, struct box_err *err)
{
	if (ns_sysctl("/proc/sys/user/max_user_namespaces") == 0)
		return box_fail(err, BOX_ESYS, sys,
		    "%s: user namespaces are switched off; enable them with "
		    "`sysctl user.max_user_namespaces=15000`",
		    what);
	if (ns_sysctl("/proc/sys/kernel/unprivileged_userns_clone") == 0 && geteuid() != 0)
		return box_fail(err, BOX_ESYS, sys,
		    "%s: user namespaces are reserved to root; enable them with "
		    "`sysctl kernel.unprivileged_userns_clone=1`",
		    what);
	if (ns_sysctl("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") > 0 &&
	    geteuid() != 0)
		return box_fail(err, BOX_ESYS, sys,
		    "%s: AppArmor restricts user namespaces; install a profile with `userns,` for "
		    "box, or `sysctl kernel.apparmor_restrict_unprivileged_userns=0`",
		    what);
	switch (sys) {
	case ENOSPC:
	case EUSERS:
		return box_fail(err, BOX_ESYS, sys,
		    "%s: the limit of nested or counted namespaces is reached; raise "
		    "user.max_user_namespaces and user.max_net_namespaces, user.max_pid_namespaces "
		    "and their like",
		    what);
	case EINVAL:
	case ENOSYS:
		return box_fail(err, BOX_ESYS, sys,
		    "%s: this kernel lacks a namespace type (CONFIG_USER_NS, CONFIG_PID_NS, "
		    "CONFIG_NET_NS, CONFIG_IPC_NS, CONFIG_UTS_NS are needed)",
		    what);
	case EPERM:
	case EACCES:
		return box_fail(err, BOX_ESYS, sys,
		    "%s: refused; in a container, its runtime must allow user namespaces (a "
		    "seccomp or LSM profile forbids clone with CLONE_NEWUSER or what follows it)",
		    what);
	default:
		return box_fail(err, BOX_ESYS, sys, "%s", what);
	}
}

/* Write one short text into a /proc file. */
static int ns_put(const char *path, const char *text, size_t n)
{
	AUTO_FD fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t w;

	if (fd < 0)
		return -1;
	w = write(fd, text, n);
	if (w < 0)
		return -1;
	if ((size_t)w != n) {
		errno = EIO;
		return -1;
	}
	return 0;
}

int ns_map_ids(uid_t uid, gid_t gid)
{
	char text[64];
	int n;

	/* Without this the kernel lets nobody but a privileged parent write gid_map
	 * (user_namespaces(7)). */
	if (ns_put("/proc/self/setgroups", "deny", 4) < 0 && errno != ENOENT)
		return -1;
	n = snprintf(text, sizeof(text), "%u %u 1\n", (unsigned)uid, (unsigned)uid);
	if (ns_put("/proc/self/uid_map", text, (size_t)n) < 0)
		return -1;
	n = snprintf(text, sizeof(text), "%u %u 1\n", (unsigned)gid, (unsigned)gid);
	return ns_put("/proc/self/gid_map", text, (size_t)n);
}

void ns_budget(void)
{
	static const struct {
		const char *host, *ours;
	} halves[] = { { "/proc/sys/fs/inotify/max_user_instances",
		           "/proc/sys/user/max_inotify_instances" },
		{ "/proc/sys/fs/inotify/max_user_watches", "/proc/sys/user/max_inotify_watches" } };
	char text[32];

	(void)ns_put("/proc/sys/user/max_user_namespaces", "0", 1);
	for (size_t i = 0; i < sizeof(halves) / sizeof(halves[0]); i++) {
		int64_t v = ns_sysctl(halves[i].host);
		int n = snprintf(text, sizeof(text), "%lld", (long long)(v / 2));

		if (v >= 2)
			(void)ns_put(halves[i].ours, text, (size_t)n);
	}
}

static int ns_capset(uint64_t permitted, uint64_t inheritable)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2];

	for (int i = 0; i < 2; i++) {
		d[i].permitted = d[i].effective = (uint32_t)(permitted >> (32 * i));
		d[i].inheritable = (uint32_t)(inheritable >> (32 * i));
	}
	return (int)syscall(SYS_capset, &h, d);
}

/* Number of capabilities this kernel knows: the first that PR_CAPBSET_READ refuses, by halving. */
static int ns_cap_count(void)
{
	int low = 0, high = 64;

	while (low < high) {
		int mid = (low + high) / 2;

		if (prctl(PR_CAPBSET_READ, mid, 0, 0, 0) >= 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int ns_caps_keep(void)
{
	/* Mounts, ids and the host name; loopback; the bounding set and the securebits; counts
	 * of the user namespace. */
	static const int keep[] = { CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_SETPCAP, CAP_SYS_RESOURCE };
	uint64_t set = 0;

	for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]); i++)
		set |= UINT64_C(1) << keep[i];
	if (ns_capset(set, set) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]); i++)
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, keep[i], 0, 0) < 0)
			return -1;
	return 0;
}

int ns_caps_drop(void)
{
	unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
	                     SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
	                     SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	int n = ns_cap_count();

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
		return -1;
	for (int i = 0; i < n; i++)
		if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0)
			return -1;
	if (prctl(PR_SET_SECUREBITS, bits, 0, 0, 0) < 0)
		return -1;
	return ns_capset(0, 0);
}

int ns_tie(void)
{
	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

int ns_harden(void)
{
	if (ns_tie() < 0)
		return -1;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int ns_loopback_up(void)
{
	struct ifreq r = { .ifr_name = "lo" };
	AUTO_FD fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &r) < 0)
		return -1;
	r.ifr_flags = (short)(r.ifr_flags | IFF_UP);
	return ioctl(fd, SIOCSIFFLAGS, &r);
}

int ns_limit(int resource, uint64_t soft, uint64_t hard)
{
	struct rlimit now, want;

	if (getrlimit((__rlimit_resource_t)resource, &now) < 0)
		return -1;
	want.rlim_max = hard < now.rlim_max ? (rlim_t)hard : now.rlim_max;
	want.rlim_cur = soft < want.rlim_max ? (rlim_t)soft : want.rlim_max;
	return setrlimit((__rlimit_resource_t)resource, &want);
}
