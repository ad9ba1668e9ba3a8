/* io: the system calls by which a store is written, as a table, so that tests can make the n-th
 * of them fail. Reading goes to the system directly: what was read is checked byte by byte
 * anyway. */
#pragma once

#include <sys/types.h>

struct eng_io {
	void *arg;
	/* As openat(2); O_CLOEXEC is added. */
	int (*open)(void *arg, int dir, const char *name, int flags, mode_t mode);
	/* All n bytes at off, or -1 with errno. */
	int (*write)(void *arg, int fd, const void *p, size_t n, off_t off);
	/* As fdatasync(2): data, and the size needed to read it back. */
	int (*sync)(void *arg, int fd);
	/* As fsync(2) of a folder: names made, changed and removed in it. */
	int (*sync_dir)(void *arg, int fd);
	int (*rename)(void *arg, int dir, const char *from, const char *to);
	int (*unlink)(void *arg, int dir, const char *name);
};

/* The real calls. */
struct eng_io eng_io_system(void);
