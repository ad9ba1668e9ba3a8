/* Descriptors. See fd.h. */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/ban.h"

void fd_drop(int *fd)
{
	if (*fd >= 0) {
		int saved = errno;

		(void)close(*fd); /* nothing left to do about a failure */
		*fd = -1;
		errno = saved;
	}
}

ssize_t fd_read_full(int fd, void *p, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = read(fd, (char *)p + got, n - got);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		if (r == 0)
			break;
		got += (size_t)r;
	}
	return (ssize_t)got;
}

int fd_write_full(int fd, const void *p, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = write(fd, (const char *)p + done, n - done);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		done += (size_t)r;
	}
	return 0;
}

int fd_read_all(int fd, struct buf *b, const char *what, struct box_err *err)
{
	for (;;) {
		uint8_t tmp[16384];
		ssize_t r = read(fd, tmp, sizeof(tmp));

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return box_fail(err, BOX_ESYS, errno, "read %s", what);
		if (r == 0)
			return 0;
		buf_put(b, tmp, (size_t)r);
		explicit_bzero(tmp, (size_t)r);
		if (!buf_ok(b))
			return box_fail(
			    err, BOX_ELIMIT, 0, "%s is larger than %zu bytes", what, b->max);
	}
}

int fd_read_file(const char *path, size_t max, struct buf *out, struct box_err *err)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return box_fail(err, BOX_ESYS, errno, "open %s", path);
	if (fstat(fd, &st) != 0)
		return box_fail(err, BOX_ESYS, errno, "stat %s", path);
	if (!S_ISREG(st.st_mode))
		return box_fail(err, BOX_EPARSE, 0, "%s is not a regular file", path);
	out->max = max;
	return fd_read_all(fd, out, path, err);
}

/* Make the rename in path's folder durable. */
static int sync_parent(const char *path, struct box_err *err)
{
	const char *slash = strrchr(path, '/');
	char *dir = slash == NULL   ? strdup(".")
	            : slash == path ? strdup("/")
	                            : strndup(path, (size_t)(slash - path));
	int r = 0;

	if (dir == NULL)
		return box_nomem(err, "a folder name");
	AUTO_FD fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || fsync(fd) != 0)
		r = box_fail(err, BOX_ESYS, errno, "sync folder %s", dir);
	free(dir);
	return r;
}

int fd_write_file_atomic(const char *path, mode_t mode, sv content, struct box_err *err)
{
	AUTO_BUF tmp = buf_with(8192);
	const char *name;
	AUTO_FD fd = -1;

	buf_putf(&tmp, "%s.tmp.%ld", path, (long)getpid());
	name = buf_cstr(&tmp);
	if (name == NULL)
		return box_fail(err, BOX_ELIMIT, 0, "path too long: %s", path);
	(void)unlink(name); /* left by a run that was killed; absent is fine */
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return box_fail(err, BOX_ESYS, errno, "create %s", name);
	if (fchmod(fd, mode) != 0 || fd_write_full(fd, content.p, content.n) != 0 ||
	    fsync(fd) != 0 || rename(name, path) != 0) {
		int e = errno;

		(void)unlink(name); /* the error below is the one that matters */
		return box_fail(err, BOX_ESYS, e, "write %s", path);
	}
	return sync_parent(path, err);
}

int fd_set_cloexec(int fd, bool on)
{
	int f = fcntl(fd, F_GETFD);

	if (f < 0)
		return -1;
	return fcntl(fd, F_SETFD, on ? f | FD_CLOEXEC : f & ~FD_CLOEXEC);
}

int fd_set_nonblock(int fd, bool on)
{
	int f = fcntl(fd, F_GETFL);

	if (f < 0)
		return -1;
	return fcntl(fd, F_SETFL, on ? f | O_NONBLOCK : f & ~O_NONBLOCK);
}

void fd_close_from(int from)
{
	/* Linux 5.9; the loop serves older kernels. */
	if (syscall(SYS_close_range, (unsigned)from, ~0U, 0U) == 0)
		return;
	for (int fd = from; fd < 65536; fd++)
		(void)close(fd); /* most are not open */
}

int fd_openat2(int dirfd, const char *path, int flags, mode_t mode, unsigned long resolve)
{
	struct open_how how = {
		.flags = (unsigned long long)(unsigned)(flags | O_CLOEXEC),
		.mode = (flags & (O_CREAT | __O_TMPFILE)) != 0 ? mode : 0,
		.resolve = resolve,
	};
	long r;

	do {
		r = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	} while (r < 0 && errno == EINTR);
	return (int)r;
}
