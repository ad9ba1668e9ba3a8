/* The real calls behind struct eng_io. See io.h. */
#include "engine/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "base/ban.h"

static int sys_open(void *arg, int dir, const char *name, int flags, mode_t mode)
{
	(void)arg;
	return openat(dir, name, flags | O_CLOEXEC, mode);
}

static int sys_write(void *arg, int fd, const void *p, size_t n, off_t off)
{
	const uint8_t *b = p;

	(void)arg;
	while (n != 0) {
		ssize_t w = pwrite(fd, b, n, off);

		if (w < 0) {
			if (errno == EINTR)
				continue;
			return -1;
		}
		if (w == 0) {
			errno = EIO;
			return -1;
		}
		b += w;
		n -= (size_t)w;
		off += w;
	}
	return 0;
}

/* Not repeated on EINTR or any other failure: after a failed sync the kernel may have dropped
 * the dirty pages and call the next sync a success. */
static int sys_sync(void *arg, int fd)
{
	(void)arg;
	return fdatasync(fd);
}

/* fdatasync would do for names on some file systems only. */
static int sys_sync_dir(void *arg, int fd)
{
	(void)arg;
	return fsync(fd);
}

static int sys_rename(void *arg, int dir, const char *from, const char *to)
{
	(void)arg;
	return renameat(dir, from, dir, to);
}

static int sys_unlink(void *arg, int dir, const char *name)
{
	(void)arg;
	return unlinkat(dir, name, 0);
}

struct eng_io eng_io_system(void)
{
	return (struct eng_io){ .open = sys_open,
		.write = sys_write,
		.sync = sys_sync,
		.sync_dir = sys_sync_dir,
		.rename = sys_rename,
		.unlink = sys_unlink };
}
