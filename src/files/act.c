/* Acting on what is held. The object was decided by a descriptor that cannot read or write
 * (O_PATH); these make one that can, or change the object, and prove that it is the same object.
 * /proc is used only where a call lacks AT_EMPTY_PATH. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "files/server.h"
#include "base/ban.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

static bool is_same(int fd, const struct stat *held)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == held->st_dev && st.st_ino == held->st_ino &&
	       (st.st_mode & S_IFMT) == (held->st_mode & S_IFMT);
}

int act_open_dir(const struct walk *w)
{
	/* "." of a held folder is that folder. */
	return openat(w->obj, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int act_open_held(const struct reach *r, const struct walk *w, int flags)
{
	AUTO_FD fd = -1;

	if (!walk_still(r, w)) {
		errno = ESTALE;
		return -1;
	}
	/* O_NONBLOCK: a FIFO or device that took the name must not stop us. */
	fd = openat(w->parent, w->name,
	    (flags & ~(O_CREAT | O_EXCL | O_TRUNC)) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
	        O_CLOEXEC);
	if (fd < 0) {
		if (errno == ELOOP)
			errno = ESTALE; /* a link now */
		return -1;
	}
	if (!is_same(fd, &w->st)) {
		errno = ESTALE;
		return -1;
	}
	return fd_take(&fd);
}

int act_chmod(const struct reach *r, const struct walk *w, mode_t mode)
{
	char name[16];

	if (S_ISLNK(w->st.st_mode)) {
		errno = EOPNOTSUPP;
		return -1;
	}
	/* Linux 6.6. */
	if (syscall(SYS_fchmodat2, w->obj, "", mode, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != ENOSYS && errno != EINVAL)
		return -1;
	if (r->proc_fd >= 0) {
		(void)snprintf(name, sizeof(name), "%d", w->obj); /* fits: an int */
		return fchmodat(r->proc_fd, name, mode, 0);
	}
	AUTO_FD fd = S_ISDIR(w->st.st_mode) ? act_open_dir(w) : act_open_held(r, w, O_RDONLY);

	return fd < 0 ? -1 : fchmod(fd, mode);
}
