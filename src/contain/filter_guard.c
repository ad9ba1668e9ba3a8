/* The few calls that a workload makes freely but for certain arguments. libseccomp cannot say "all
 * but these": a rule without conditions replaces those with. So this stands in front of its
 * program. The kernel takes ioctl's request and a resource's number as 32 bits, and so are they
 * compared (an upper half full of ones must not get past: CVE-2019-10063). */
#include "contain/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <termios.h>

#include "base/ban.h"

#if defined(__x86_64__)
#define GUARD_ARCH AUDIT_ARCH_X86_64
#else
#define GUARD_ARCH AUDIT_ARCH_AARCH64
#endif

/* Words of struct seccomp_data; both architectures are little-endian. */
#define LOW(i)  ((uint32_t)offsetof(struct seccomp_data, args) + 8 * (i))
#define HIGH(i) (LOW(i) + 4)

/* Instructions by their index: jumps name where they lead. */
enum { G_IOCTL = 7, G_PRLIMIT = 16, G_SETRLIMIT = 22, G_EPERM = 24, G_ENOTTY, G_DONE, G_PASS };
#define LOAD(at, k) [at] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (k))
#define GO(at, to)  [at] = BPF_STMT(BPF_JMP | BPF_JA, (to) - (at)-1)
#define RET(at, k)  [at] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (k))
#define IF(at, k, yes, no)                                                                         \
	[at] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(k), (uint8_t)((yes) - (at)-1),       \
	    (uint8_t)((no) - (at)-1))

void filter_guard(struct buf *out)
{
	static const struct sock_filter guard[] = {
		LOAD(0, offsetof(struct seccomp_data, arch)),
		IF(1, GUARD_ARCH, 2, G_PASS),
		LOAD(2, offsetof(struct seccomp_data, nr)),
		IF(3, SCMP_SYS(ioctl), G_IOCTL, 4),
		IF(4, SCMP_SYS(prlimit64), G_PRLIMIT, 5),
		IF(5, SCMP_SYS(setrlimit), G_SETRLIMIT, 6),
		GO(6, G_PASS),
		/* Terminal injection, line disciplines, the console; keyboard maps, fonts and
		 * switching of a virtual console, whose ioctls are 0x4b00 (KD) and 0x5600 (VT)
		 * without direction bits. */
		LOAD(G_IOCTL, LOW(1)),
		IF(8, TIOCSTI, G_EPERM, 9),
		IF(9, 0x541c /* TIOCLINUX */, G_EPERM, 10),
		IF(10, TIOCSETD, G_EPERM, 11),
		IF(11, TIOCCONS, G_EPERM, 12),
		[12] = BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff00),
		IF(13, 0x4b00, G_ENOTTY, 14),
		IF(14, 0x5600, G_ENOTTY, 15),
		GO(15, G_PASS),
		/* The limit of core files is 1 and stays so: at 0 the kernel would still start the
		 * host's core handler where core_pattern is a pipe (core(5)). Setting it
		 * "succeeds": what asks for no cores has none. */
		LOAD(G_PRLIMIT, LOW(1)),
		IF(17, RLIMIT_CORE, 18, G_PASS),
		LOAD(18, LOW(2)),
		IF(19, 0, 20, G_DONE),
		LOAD(20, HIGH(2)),
		IF(21, 0, G_PASS, G_DONE),
		LOAD(G_SETRLIMIT, LOW(0)),
		IF(23, RLIMIT_CORE, G_DONE, G_PASS),
		RET(G_EPERM, EPERM),
		RET(G_ENOTTY, ENOTTY),
		RET(G_DONE, 0),
	};

	_Static_assert(
	    sizeof(guard) / sizeof(guard[0]) == G_PASS, "what follows is libseccomp's program");
	buf_put(out, guard, sizeof(guard));
}
