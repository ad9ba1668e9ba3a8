/* Landlock inside the view: from rights to rules (landlock(7),
 * Documentation/userspace-api/landlock.rst). The kernel headers of the build machine may be older
 * than the kernel that runs, so the numbers are written here. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "contain/apply.h"
#include "contain/contain.h"
#include "base/ban.h"

enum {
	LL_EXECUTE = 1 << 0,
	LL_WRITE_FILE = 1 << 1,
	LL_READ_FILE = 1 << 2,
	LL_READ_DIR = 1 << 3,
	LL_REMOVE_DIR = 1 << 4,
	LL_REMOVE_FILE = 1 << 5,
	LL_MAKE_CHAR = 1 << 6,
	LL_MAKE_DIR = 1 << 7,
	LL_MAKE_REG = 1 << 8,
	LL_MAKE_SOCK = 1 << 9,
	LL_MAKE_FIFO = 1 << 10,
	LL_MAKE_BLOCK = 1 << 11,
	LL_MAKE_SYM = 1 << 12,
	LL_REFER = 1 << 13,    /* ABI 2 */
	LL_TRUNCATE = 1 << 14, /* ABI 3 */
	LL_IOCTL_DEV = 1 << 15 /* ABI 5 */
};
#define LL_ABI1 ((LL_MAKE_SYM << 1) - 1)
#define LL_FILE (LL_EXECUTE | LL_WRITE_FILE | LL_READ_FILE | LL_TRUNCATE | LL_IOCTL_DEV)

#define LL_SCOPE_ABSTRACT 1u /* ABI 6 */
#define LL_SCOPE_SIGNAL   2u

#define LL_VERSION           1u
#define LL_RULE_PATH_BENEATH 1

struct ll_ruleset_attr {
	uint64_t fs, net, scoped;
};
struct ll_path_attr {
	uint64_t access;
	int32_t fd;
} __attribute__((packed));

int contain_landlock_abi(void)
{
	long v = syscall(SYS_landlock_create_ruleset, NULL, 0, LL_VERSION);

	return v < 0 ? 0 : (int)v;
}

static uint64_t ll_handled(int abi)
{
	uint64_t m = LL_ABI1;

	if (abi >= 2)
		m |= LL_REFER;
	if (abi >= 3)
		m |= LL_TRUNCATE;
	if (abi >= 5)
		m |= LL_IOCTL_DEV;
	return m;
}

static uint64_t ll_access(uint32_t rights)
{
	uint64_t m = 0;

	if (rights & SANDBOX_R_READ)
		m |= LL_READ_FILE;
	if (rights & SANDBOX_R_LIST)
		m |= LL_READ_DIR;
	if (rights & SANDBOX_R_WRITE)
		m |= LL_WRITE_FILE | LL_TRUNCATE;
	if (rights & SANDBOX_R_MAKE)
		m |= LL_REMOVE_DIR | LL_REMOVE_FILE | LL_MAKE_DIR | LL_MAKE_REG | LL_MAKE_SOCK |
		     LL_MAKE_FIFO | LL_MAKE_SYM | LL_REFER;
	if (rights & SANDBOX_R_EXEC)
		m |= LL_EXECUTE;
	if (rights & SANDBOX_R_IOCTL)
		m |= LL_IOCTL_DEV;
	return m;
}

static int ll_add(int set, uint64_t handled, const struct sandbox_rule *r, struct box_err *err)
{
	/* O_PATH keeps the object; no link is followed, so the rule sits on what the plan named. */
	AUTO_FD fd = fd_openat2(AT_FDCWD, r->path, O_PATH, 0, 0x04 /* RESOLVE_NO_SYMLINKS */);
	struct ll_path_attr a = { .access = ll_access(r->rights) & handled };
	struct stat st;

	if (fd < 0 && errno == ENOENT && r->optional)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return box_fail(err, BOX_ESYS, errno, "Landlock rule for %s", r->path);
	if (!S_ISDIR(st.st_mode))
		a.access &= LL_FILE;
	if (a.access == 0)
		return 0;
	a.fd = fd;
	if (syscall(SYS_landlock_add_rule, set, LL_RULE_PATH_BENEATH, &a, 0) < 0)
		return box_fail(err, BOX_ESYS, errno, "Landlock rule for %s", r->path);
	return 0;
}

int apply_landlock(const struct sandbox_rule *rules, size_t n, struct box_err *err)
{
	int abi = contain_landlock_abi();
	struct ll_ruleset_attr a = { .fs = ll_handled(abi) };
	size_t size = abi >= 6 ? sizeof(a) : abi >= 4 ? 16 : 8;
	AUTO_FD set = -1;

	if (abi == 0)
		return box_fail(err, BOX_ESYS, errno,
		    "Landlock is not available: it needs Linux 5.13 or newer with "
		    "CONFIG_SECURITY_LANDLOCK, and `landlock` in the kernel's lsm= list");
	if (abi >= 6)
		a.scoped = LL_SCOPE_ABSTRACT | LL_SCOPE_SIGNAL;
	set = (int)syscall(SYS_landlock_create_ruleset, &a, size, 0);
	if (set < 0)
		return box_fail(err, BOX_ESYS, errno, "make a Landlock ruleset");
	(void)fd_set_cloexec(set, true); /* already so; costs nothing to say */
	for (size_t i = 0; i < n; i++)
		if (ll_add(set, a.fs, &rules[i], err) < 0)
			return -1;
	if (syscall(SYS_landlock_restrict_self, set, 0) < 0)
		return box_fail(err, BOX_ESYS, errno, "apply the Landlock ruleset");
	return 0;
}
