/* The tables of filter.h, and libseccomp's compiler around them. Runs at build time (filter_gen.c)
 * and in tests; programs carry the result.
 *
 * Arguments are compared only where the kernel passes them in registers; ints are compared on their
 * low 32 bits, since the kernel looks at no more (an upper half full of ones must not get past a
 * rule: CVE-2019-10063). */
#include "contain/filter.h"

#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ban.h"

#define S(name) SCMP_SYS(name)
#define LOW32   UINT64_C(0xffffffff)
#define NS_FLAGS                                                                                   \
	((uint64_t)(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |  \
	            CLONE_NEWPID | CLONE_NEWNET))

/* Calls that libseccomp's headers may not know yet; from 424 on the numbers are the same
 * everywhere. */
enum {
	NR_CACHESTAT = 451,
	NR_FCHMODAT2 = 452,
	NR_MAP_SHADOW_STACK = 453,
	NR_FUTEX_WAKE = 454,
	NR_FUTEX_WAIT = 455,
	NR_FUTEX_REQUEUE = 456,
	NR_SETXATTRAT = 463,
	NR_GETXATTRAT = 464,
	NR_LISTXATTRAT = 465,
	NR_REMOVEXATTRAT = 466
};

struct builder {
	scmp_filter_ctx ctx;
	int failed; /* first error of libseccomp */
};

static void add(
    struct builder *b, uint32_t action, int nr, unsigned n, const struct scmp_arg_cmp *a)
{
	int r;

	if (nr < 0 || b->failed != 0) /* negative: this architecture has no such call */
		return;
	r = seccomp_rule_add_array(b->ctx, action, nr, n, a);
	/* EACCES: the action equals the default one, nothing to add. */
	if (r < 0 && r != -EACCES)
		b->failed = r;
}

static void add_all(struct builder *b, uint32_t action, const int *nr, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add(b, action, nr[i], 0, NULL);
}
#define ADD_ALL(b, action, table)                                                                  \
	add_all((b), (action), (table), sizeof(table) / sizeof((table)[0]))

static void add1(struct builder *b, uint32_t action, int nr, struct scmp_arg_cmp a)
{
	add(b, action, nr, 1, &a);
}

/* Argument i, low 32 bits, equal to v. */
static struct scmp_arg_cmp low(unsigned i, uint32_t v)
{
	return (struct scmp_arg_cmp){ i, SCMP_CMP_MASKED_EQ, LOW32, v };
}

/* (Argument i & mask) == v. */
static struct scmp_arg_cmp masked(unsigned i, uint64_t mask, uint64_t v)
{
	return (struct scmp_arg_cmp){ i, SCMP_CMP_MASKED_EQ, mask, v };
}

/* Every bit of mask in argument i refused with action, alone or together with others. */
static void refuse_bits(struct builder *b, uint32_t action, int nr, unsigned i, uint64_t mask)
{
	for (uint64_t bit = 1; bit != 0 && bit <= mask; bit <<= 1)
		if (mask & bit)
			add1(b, action, nr, masked(i, bit, bit));
}

/* Memory, time, signals, identity: what every C program does without asking. */
static const int common[] = { S(brk), S(mmap), S(munmap), S(mprotect), S(mremap), S(madvise),
	S(futex), S(futex_waitv), NR_FUTEX_WAKE, NR_FUTEX_WAIT, NR_FUTEX_REQUEUE,
	S(set_robust_list), S(get_robust_list), S(rseq), S(membarrier), S(set_tid_address),
	S(rt_sigaction), S(rt_sigprocmask), S(rt_sigreturn), S(rt_sigpending), S(rt_sigtimedwait),
	S(rt_sigsuspend), S(sigaltstack), S(restart_syscall), S(exit), S(exit_group),
	S(clock_gettime), S(clock_getres), S(clock_nanosleep), S(nanosleep), S(gettimeofday),
	S(time), S(times), S(getrusage), S(getrandom), S(getpid), S(getppid), S(gettid), S(getuid),
	S(geteuid), S(getgid), S(getegid), S(getresuid), S(getresgid), S(getgroups), S(getpgid),
	S(getpgrp), S(getsid), S(uname), S(sysinfo), S(sched_yield), S(sched_getaffinity),
	S(getcpu), S(arch_prctl) };

/* Descriptors that are already open. */
static const int descriptors[] = { S(read), S(write), S(readv), S(writev), S(pread64), S(pwrite64),
	S(preadv), S(pwritev), S(preadv2), S(pwritev2), S(close), S(close_range), S(dup), S(dup2),
	S(dup3), S(fcntl), S(pipe), S(pipe2), S(lseek), S(fstat), S(poll), S(ppoll), S(select),
	S(pselect6), S(sendmsg), S(recvmsg), S(sendto), S(recvfrom), S(sendmmsg), S(recvmmsg),
	S(shutdown), S(getsockopt), S(setsockopt), S(getsockname), S(getpeername), S(splice),
	S(tee), S(vmsplice), S(sendfile), S(copy_file_range) };

static const int events[] = { S(epoll_create), S(epoll_create1), S(epoll_ctl), S(epoll_wait),
	S(epoll_pwait), S(epoll_pwait2), S(eventfd), S(eventfd2), S(timerfd_create),
	S(timerfd_settime), S(timerfd_gettime), S(signalfd), S(signalfd4) };

/* Files by name. */
static const int names_read[] = { S(open), S(openat), S(stat), S(lstat), S(newfstatat), S(statx),
	S(access), S(faccessat), S(faccessat2), S(readlink), S(readlinkat), S(getdents),
	S(getdents64), S(getcwd), S(chdir), S(fchdir), S(statfs), S(fstatfs), S(fadvise64),
	S(readahead), S(getxattr), S(lgetxattr), S(fgetxattr), S(listxattr), S(llistxattr),
	S(flistxattr), NR_GETXATTRAT, NR_LISTXATTRAT };
static const int names_write[] = { S(creat), S(mkdir), S(mkdirat), S(unlink), S(unlinkat), S(rmdir),
	S(rename), S(renameat), S(renameat2), S(link), S(linkat), S(symlink), S(symlinkat),
	S(truncate), S(ftruncate), S(fallocate), S(chmod), S(fchmod), S(fchmodat), NR_FCHMODAT2,
	S(chown), S(lchown), S(fchown), S(fchownat), S(utime), S(utimes), S(futimesat),
	S(utimensat), S(mknod), S(mknodat), S(fsync), S(fdatasync), S(sync_file_range), S(syncfs),
	S(sync), S(flock), S(umask), S(setxattr), S(lsetxattr), S(fsetxattr), S(removexattr),
	S(lremovexattr), S(fremovexattr), NR_SETXATTRAT, NR_REMOVEXATTRAT };

/* Everything else that ordinary programs use and that namespaces, the view and the lack of
 * capabilities bound. */
static const int workload[] = { S(execve), S(fork), S(vfork), S(wait4), S(waitid), S(kill),
	S(tkill), S(tgkill), S(rt_sigqueueinfo), S(rt_tgsigqueueinfo), S(setpgid), S(setsid),
	S(pause), S(alarm), S(setitimer), S(getitimer), S(timer_create), S(timer_settime),
	S(timer_gettime), S(timer_getoverrun), S(timer_delete), S(prlimit64), S(getrlimit),
	S(setrlimit), S(getpriority), S(setpriority), S(sched_setaffinity), S(sched_getparam),
	S(sched_setparam), S(sched_getscheduler), S(sched_setscheduler), S(sched_getattr),
	S(sched_setattr), S(sched_get_priority_max), S(sched_get_priority_min),
	S(sched_rr_get_interval), S(ioprio_get), S(ioprio_set), S(prctl), S(capget), S(capset),
	S(setuid), S(setgid), S(setreuid), S(setregid), S(setresuid), S(setresgid), S(setfsuid),
	S(setfsgid), S(setgroups), S(msync), S(mincore), S(mlock), S(mlock2), S(munlock),
	S(mlockall), S(munlockall), S(remap_file_pages), S(pkey_alloc), S(pkey_free),
	S(pkey_mprotect), S(get_mempolicy), S(connect), S(listen), S(accept), S(accept4), S(bind),
	S(pidfd_open), S(pidfd_send_signal), S(inotify_init), S(inotify_init1),
	S(inotify_add_watch), S(inotify_rm_watch), S(shmget), S(shmat), S(shmdt), S(shmctl),
	S(semget), S(semop), S(semtimedop), S(semctl), S(msgget), S(msgsnd), S(msgrcv), S(msgctl),
	S(mq_open), S(mq_unlink), S(mq_timedsend), S(mq_timedreceive), S(mq_notify),
	S(mq_getsetattr), S(io_setup), S(io_destroy), S(io_submit), S(io_cancel), S(io_getevents),
	S(io_pgetevents), S(landlock_create_ruleset), S(landlock_add_rule),
	S(landlock_restrict_self), S(name_to_handle_at), NR_CACHESTAT, NR_MAP_SHADOW_STACK,
	S(process_mrelease) };

/* Refused by name, so that the program hears "not permitted" and not "no such call". */
static const int forbidden[] = { S(mount), S(umount2), S(pivot_root), S(chroot), S(move_mount),
	S(open_tree), S(fsopen), S(fsconfig), S(fsmount), S(fspick), S(mount_setattr), S(setns),
	S(ptrace), S(process_vm_readv), S(process_vm_writev), S(process_madvise), S(kcmp),
	S(pidfd_getfd), S(perf_event_open), S(bpf), S(userfaultfd), S(keyctl), S(add_key),
	S(request_key), S(io_uring_setup), S(io_uring_enter), S(io_uring_register),
	S(open_by_handle_at), S(kexec_load), S(kexec_file_load), S(init_module), S(finit_module),
	S(delete_module), S(create_module), S(swapon), S(swapoff), S(quotactl), S(quotactl_fd),
	S(reboot), S(acct), S(syslog), S(settimeofday), S(clock_settime), S(clock_adjtime),
	S(adjtimex), S(sethostname), S(setdomainname), S(vhangup), S(iopl), S(ioperm),
	S(modify_ldt), S(uselib), S(ustat), S(sysfs), S(lookup_dcookie), S(nfsservctl),
	S(fanotify_init), S(fanotify_mark), S(move_pages), S(migrate_pages), S(mbind),
	S(set_mempolicy), S(set_mempolicy_home_node), S(seccomp), S(memfd_secret), S(vserver),
	S(_sysctl) };

/* What no program of ours ever does: its appearance is an attack, the process ends. */
static const int never[] = { S(execve), S(execveat), S(ptrace), S(process_vm_readv),
	S(process_vm_writev), S(mount), S(umount2), S(pivot_root), S(chroot), S(setns), S(unshare),
	S(move_mount), S(open_tree), S(fsopen), S(bpf), S(perf_event_open), S(userfaultfd),
	S(keyctl), S(add_key), S(request_key), S(io_uring_setup), S(init_module), S(finit_module),
	S(kexec_load), S(pidfd_getfd), S(open_by_handle_at) };

static void setid_bits(struct builder *b, uint32_t eperm)
{
	/* A set-user-ID file of the operator outlives the box and serves other users of the host;
	 * modes are in registers everywhere but in openat2. */
	static const struct {
		int nr;
		unsigned arg;
	} modes[] = { { S(chmod), 1 }, { S(fchmod), 1 }, { S(fchmodat), 2 }, { NR_FCHMODAT2, 2 },
		{ S(creat), 1 }, { S(mkdir), 1 }, { S(mkdirat), 2 }, { S(mknod), 1 },
		{ S(mknodat), 2 } };
	static const struct {
		int nr;
		unsigned flags, mode;
	} opens[] = { { S(open), 1, 2 }, { S(openat), 2, 3 } };
	const uint64_t tmp = O_TMPFILE & ~O_DIRECTORY;

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		unsigned a = modes[i].arg;

		add1(b, SCMP_ACT_ALLOW, modes[i].nr, masked(a, S_ISUID | S_ISGID, 0));
		add1(b, eperm, modes[i].nr, masked(a, S_ISUID, S_ISUID));
		add1(b, eperm, modes[i].nr, masked(a, S_ISGID, S_ISGID));
	}
	for (size_t i = 0; i < sizeof(opens) / sizeof(opens[0]); i++) {
		unsigned f = opens[i].flags, m = opens[i].mode;
		struct scmp_arg_cmp none[1] = { masked(f, O_CREAT | tmp, 0) };

		/* Without O_CREAT and O_TMPFILE (whose file linkat can name) the mode register
		 * holds anything. */
		add(b, SCMP_ACT_ALLOW, opens[i].nr, 1, none);
		for (unsigned k = 0; k < 2; k++) {
			uint64_t how = k == 0 ? O_CREAT : tmp;
			struct scmp_arg_cmp good[2] = { masked(f, how, how),
				masked(m, S_ISUID | S_ISGID, 0) };
			struct scmp_arg_cmp bad_u[2] = { masked(f, how, how),
				masked(m, S_ISUID, S_ISUID) };
			struct scmp_arg_cmp bad_g[2] = { masked(f, how, how),
				masked(m, S_ISGID, S_ISGID) };

			add(b, SCMP_ACT_ALLOW, opens[i].nr, 2, good);
			add(b, eperm, opens[i].nr, 2, bad_u);
			add(b, eperm, opens[i].nr, 2, bad_g);
		}
	}
}

/* TCP and UDP. The other transports (SCTP, DCCP, MPTCP, …) would be loaded into the kernel for the
 * asking. */
static void inet_socket(struct builder *b, uint32_t family)
{
	static const uint32_t protocols[] = { 0, IPPROTO_TCP, IPPROTO_UDP };

	for (uint32_t p = 0; p <= IPPROTO_UDP; p++) {
		struct scmp_arg_cmp a[2] = { low(0, family), low(2, p) };
		uint32_t action = SCMP_ACT_ERRNO(EPROTONOSUPPORT);

		for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++)
			if (protocols[i] == p)
				action = SCMP_ACT_ALLOW;
		add(b, action, S(socket), 2, a);
	}
	add(b, SCMP_ACT_ERRNO(EPROTONOSUPPORT), S(socket), 2,
	    (struct scmp_arg_cmp[]){ low(0, family), { 2, SCMP_CMP_GT, IPPROTO_UDP, 0 } });
}

static void sockets(struct builder *b, bool unix_too, bool inet, uint32_t refuse)
{
	struct scmp_arg_cmp route[2] = { low(0, AF_NETLINK), low(2, 0) };

	if (unix_too)
		add1(b, SCMP_ACT_ALLOW, S(socket), low(0, AF_UNIX));
	if (inet) {
		inet_socket(b, AF_INET);
		inet_socket(b, AF_INET6);
		add(b, SCMP_ACT_ALLOW, S(socket), 2,
		    route); /* NETLINK_ROUTE: getifaddrs, getaddrinfo */
	}
	for (uint32_t f = 0; f <= AF_NETLINK; f++) {
		bool ok = (f == AF_UNIX && unix_too) ||
		          (inet && (f == AF_INET || f == AF_INET6 || f == AF_NETLINK));

		if (!ok)
			add1(b, refuse, S(socket), low(0, f));
	}
	add1(b, refuse, S(socket), (struct scmp_arg_cmp){ 0, SCMP_CMP_GT, AF_NETLINK, 0 });
	add1(b, SCMP_ACT_ALLOW, S(socketpair), low(0, AF_UNIX));
}

static void fill_workload(struct builder *b)
{
	uint32_t eperm = SCMP_ACT_ERRNO(EPERM);

	ADD_ALL(b, SCMP_ACT_ALLOW, common);
	ADD_ALL(b, SCMP_ACT_ALLOW, descriptors);
	ADD_ALL(b, SCMP_ACT_ALLOW, events);
	for (size_t i = 0; i < sizeof(names_read) / sizeof(names_read[0]); i++)
		if (names_read[i] != S(open) && names_read[i] != S(openat))
			add(b, SCMP_ACT_ALLOW, names_read[i], 0, NULL);
	for (size_t i = 0; i < sizeof(names_write) / sizeof(names_write[0]); i++) {
		int nr = names_write[i];

		if (nr != S(chmod) && nr != S(fchmod) && nr != S(fchmodat) && nr != NR_FCHMODAT2 &&
		    nr != S(creat) && nr != S(mkdir) && nr != S(mkdirat) && nr != S(mknod) &&
		    nr != S(mknodat))
			add(b, SCMP_ACT_ALLOW, nr, 0, NULL);
	}
	setid_bits(b, eperm);
	ADD_ALL(b, SCMP_ACT_ALLOW, workload);
	ADD_ALL(b, eperm, forbidden);
	sockets(b, true, true, SCMP_ACT_ERRNO(EAFNOSUPPORT));

	/* New namespaces: never. clone3 passes its flags in memory, so it is "not there" and libcs
	 * fall back to clone. */
	add1(b, SCMP_ACT_ALLOW, S(clone), masked(0, NS_FLAGS, 0));
	refuse_bits(b, eperm, S(clone), 0, NS_FLAGS);
	add1(b, SCMP_ACT_ALLOW, S(unshare), masked(0, NS_FLAGS | CLONE_NEWTIME, 0));
	refuse_bits(b, eperm, S(unshare), 0, NS_FLAGS | CLONE_NEWTIME);

	/* Execution of an image without a path: Landlock does not see it (the file system of memfd
	 * has no mount), so it cannot be there. */
	add1(b, SCMP_ACT_ALLOW, S(execveat), masked(4, AT_EMPTY_PATH, 0));
	add1(b, eperm, S(execveat), masked(4, AT_EMPTY_PATH, AT_EMPTY_PATH));
	add1(b, SCMP_ACT_ALLOW, S(memfd_create),
	    masked(1, 0x18, 0x08)); /* MFD_NOEXEC_SEAL, not MFD_EXEC */
	add1(b, eperm, S(memfd_create), masked(1, 0x08, 0));
	add1(b, eperm, S(memfd_create), masked(1, 0x10, 0x10));

	/* The query, and the default personality, only. */
	add1(b, SCMP_ACT_ALLOW, S(personality), low(0, 0xffffffff));
	add1(b, SCMP_ACT_ALLOW, S(personality), low(0, 0));
	add1(b, eperm, S(personality), (struct scmp_arg_cmp){ 0, SCMP_CMP_GT, 0, 0 });

	add(b, SCMP_ACT_ALLOW, S(ioctl), 0,
	    NULL); /* but for those that filter_guard refuses before */
}

/* Threads, not processes. */
static void threads(struct builder *b)
{
	add1(b, SCMP_ACT_ALLOW, S(clone),
	    masked(0, CLONE_THREAD | CLONE_VM | NS_FLAGS, CLONE_THREAD | CLONE_VM));
	add(b, SCMP_ACT_ALLOW, S(set_tid_address), 0, NULL);
	add(b, SCMP_ACT_ALLOW, S(tgkill), 0, NULL);
	add(b, SCMP_ACT_ALLOW, S(sched_getparam), 0, NULL);
	add(b, SCMP_ACT_ALLOW, S(sched_getscheduler), 0, NULL);
}

/* The part all programs of ours share. */
static void fill_worker(struct builder *b, bool may_map_code)
{
	static const uint32_t ioctls[] = { TCGETS, TIOCGWINSZ, TIOCGPGRP, FIONREAD, FIONBIO,
		FIOCLEX, FIONCLEX };
	static const uint32_t prctls[] = { PR_SET_NAME, PR_GET_NAME, PR_SET_PDEATHSIG,
		PR_GET_DUMPABLE, 0x53564d41 /* PR_SET_VMA */ };
	/* Under the address sanitizer a killed process tells nothing; an error is as safe. */
#if defined(__SANITIZE_ADDRESS__)
	uint32_t end = SCMP_ACT_ERRNO(EPERM);
#else
	uint32_t end = SCMP_ACT_KILL_PROCESS;
#endif

	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		if (may_map_code || (common[i] != S(mmap) && common[i] != S(mprotect)))
			add(b, SCMP_ACT_ALLOW, common[i], 0, NULL);
	if (!may_map_code) {
		static const int map[] = { S(mmap), S(mprotect) };

		for (size_t i = 0; i < 2; i++) {
			add1(b, SCMP_ACT_ALLOW, map[i], masked(2, PROT_EXEC, 0));
			add1(b, SCMP_ACT_ERRNO(EPERM), map[i], masked(2, PROT_EXEC, PROT_EXEC));
		}
	}
	ADD_ALL(b, SCMP_ACT_ALLOW, descriptors);
	ADD_ALL(b, end, never);
	/* glibc's fstat: newfstatat(fd, "", …, AT_EMPTY_PATH); by path it finds an empty root, or
	 * what Landlock and the view leave. */
	add(b, SCMP_ACT_ALLOW, S(newfstatat), 0, NULL);
	add(b, SCMP_ACT_ALLOW, S(statx), 0, NULL);
	add(b, SCMP_ACT_ALLOW, S(prlimit64), 0, NULL);
	add(b, SCMP_ACT_ALLOW, S(getrlimit), 0, NULL);
	for (size_t i = 0; i < sizeof(ioctls) / sizeof(ioctls[0]); i++)
		add1(b, SCMP_ACT_ALLOW, S(ioctl), low(1, ioctls[i]));
	for (size_t i = 0; i < sizeof(prctls) / sizeof(prctls[0]); i++)
		add1(b, SCMP_ACT_ALLOW, S(prctl), low(0, prctls[i]));
}

/* Calls by path, in a worker with an empty root: "refused", which libraries expect, and not "no
 * such call". */
static void no_paths(struct builder *b)
{
	const uint32_t eacces = SCMP_ACT_ERRNO(EACCES);

	for (size_t i = 0; i < sizeof(names_read) / sizeof(names_read[0]); i++) {
		int nr = names_read[i];

		if (nr != S(newfstatat) && nr != S(statx)) /* also fstat: fill_worker */
			add(b, eacces, nr, 0, NULL);
	}
	for (size_t i = 0; i < sizeof(names_write) / sizeof(names_write[0]); i++) {
		int nr = names_write[i];

		if (nr != S(ftruncate) && nr != S(umask))
			add(b, eacces, nr, 0, NULL);
	}
	add(b, eacces, S(openat2), 0, NULL);
	add(b, eacces, S(connect), 0, NULL);
}

static void fill_shell(struct builder *b)
{
	static const int own[] = { S(fork), S(vfork), S(wait4), S(waitid), S(kill), S(tgkill),
		S(tkill), S(setpgid), S(setsid), S(umask), S(memfd_create), S(ftruncate), S(alarm),
		S(setitimer), S(getitimer), S(pause), S(sched_getparam), S(sched_getscheduler) };

	fill_worker(b, false);
	ADD_ALL(b, SCMP_ACT_ALLOW, own);
	ADD_ALL(b, SCMP_ACT_ALLOW, events);
	add1(b, SCMP_ACT_ALLOW, S(clone), masked(0, NS_FLAGS, 0));
	sockets(b, false, false, SCMP_ACT_ERRNO(EACCES));
	no_paths(b);
}

static void fill_gateway(struct builder *b)
{
	static const int own[] = { S(accept), S(accept4), S(memfd_create), S(ftruncate) };

	fill_worker(b, false);
	ADD_ALL(b, SCMP_ACT_ALLOW, own);
	ADD_ALL(b, SCMP_ACT_ALLOW, events);
	threads(b);
	sockets(b, false, false, SCMP_ACT_ERRNO(EACCES));
	no_paths(b);
}

static void fill_dial(struct builder *b)
{
	fill_worker(b, true); /* NSS modules are loaded on demand */
	ADD_ALL(b, SCMP_ACT_ALLOW, events);
	ADD_ALL(b, SCMP_ACT_ALLOW, names_read);
	threads(b);
	sockets(b, true, true,
	    SCMP_ACT_ERRNO(EAFNOSUPPORT)); /* AF_UNIX: NSS modules ask and find nothing */
	add(b, SCMP_ACT_ALLOW, S(connect), 0, NULL);
	add(b, SCMP_ACT_ALLOW, S(bind), 0, NULL);
}

static void fill_files(struct builder *b)
{
	fill_worker(b, false);
	ADD_ALL(b, SCMP_ACT_ALLOW, events);
	ADD_ALL(b, SCMP_ACT_ALLOW, names_read);
	ADD_ALL(b, SCMP_ACT_ALLOW, names_write);
	add(b, SCMP_ACT_ALLOW, S(openat2), 0, NULL);
	add(b, SCMP_ACT_ALLOW, S(name_to_handle_at), 0, NULL);
	add1(b, SCMP_ACT_ALLOW, S(ioctl), low(1, 0x40049409)); /* FICLONE */
	threads(b);
	sockets(b, false, false, SCMP_ACT_ERRNO(EACCES));
}

static void fill_reaper(struct builder *b)
{
	static const int own[] = { S(wait4), S(waitid), S(kill), S(signalfd4) };

	fill_worker(b, false);
	ADD_ALL(b, SCMP_ACT_ALLOW, own);
	sockets(b, false, false, SCMP_ACT_ERRNO(EACCES));
}

static int filter_make(enum filter_kind kind, scmp_filter_ctx *out, struct box_err *err)
{
	struct builder b = { .ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS)) };

	if (b.ctx == NULL)
		return box_nomem(err, "the system call filter");
	/* no_new_privs is set long before; a foreign ABI ends the process; a binary tree keeps the
	 * cost per call flat. */
	if (seccomp_attr_set(b.ctx, SCMP_FLTATR_CTL_NNP, 0) < 0 ||
	    seccomp_attr_set(b.ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) < 0)
		b.failed = -EINVAL;
	(void)seccomp_attr_set(b.ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* since 2.5; only speed */
	switch (kind) {
	case FILTER_WORKLOAD:
		fill_workload(&b);
		break;
	case FILTER_REAPER:
		fill_reaper(&b);
		break;
	case FILTER_SHELL:
		fill_shell(&b);
		break;
	case FILTER_GATEWAY:
		fill_gateway(&b);
		break;
	case FILTER_DIAL:
		fill_dial(&b);
		break;
	case FILTER_FILES:
		fill_files(&b);
		break;
	}
	if (b.failed != 0) {
		seccomp_release(b.ctx);
		return box_fail(err, BOX_ESYS, -b.failed, "build the system call filter");
	}
	*out = b.ctx;
	return 0;
}

int filter_export(enum filter_kind kind, struct buf *out, struct box_err *err)
{
	scmp_filter_ctx ctx = NULL;
	AUTO_FD fd = memfd_create("filter", MFD_CLOEXEC);
	int r;

	if (fd < 0)
		return box_fail(err, BOX_ESYS, errno, "memfd");
	if (filter_make(kind, &ctx, err) < 0)
		return -1;
	r = seccomp_export_bpf(ctx, fd);
	seccomp_release(ctx);
	if (r < 0)
		return box_fail(err, BOX_ESYS, -r, "export the system call filter");
	if (lseek(fd, 0, SEEK_SET) < 0)
		return box_fail(err, BOX_ESYS, errno, "memfd");
	if (kind == FILTER_WORKLOAD)
		filter_guard(out);
	return fd_read_all(fd, out, "filter", err);
}
