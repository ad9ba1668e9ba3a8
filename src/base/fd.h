/* Descriptors: ownership, full reads and writes, opening what the operator named. EINTR and short
 * counts are handled here and nowhere else. Every descriptor made is close-on-exec. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Close *fd unless it is negative, keep errno, set it to -1. */
void fd_drop(int *fd);
#define AUTO_FD __attribute__((cleanup(fd_drop))) int
/* Give the descriptor away: the variable no longer owns it. */
static inline int fd_take(int *fd)
{
	int v = *fd;

	*fd = -1;
	return v;
}

/* Read until n bytes, end of file or an error. Returns the count (less than n only at end of file),
 * -1 with errno. */
ssize_t fd_read_full(int fd, void *p, size_t n);
/* Write all n bytes. 0, or -1 with errno. SIGPIPE is the caller's affair. */
int fd_write_full(int fd, const void *p, size_t n);
/* Append everything up to end of file to b. BOX_ELIMIT when it does not fit b->max; `what` names it
 * in messages. */
int fd_read_all(int fd, struct buf *b, const char *what, struct box_err *err);
/* Read a whole regular file that the operator named (links followed), of at most max bytes. */
int fd_read_file(const char *path, size_t max, struct buf *out, struct box_err *err);
/* Write a file by temporary name, fsync, rename and fsync of the folder: the old content or the
 * new, never half. */
int fd_write_file_atomic(const char *path, mode_t mode, sv content, struct box_err *err);
int fd_set_cloexec(int fd, bool on);
int fd_set_nonblock(int fd, bool on);
/* Close every descriptor from `from` upwards. */
void fd_close_from(int from);
/* openat2(2) with the given RESOLVE_* flags; O_CLOEXEC is added. -1 with errno. */
int fd_openat2(int dirfd, const char *path, int flags, mode_t mode, unsigned long resolve);
