/* Helpers of the engine's tests. See tmp.h. */
#include "tmp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/ban.h"

static char root[256];

static _Noreturn void die(const char *what)
{
	perror(what);
	abort();
}

const char *tmp_root(void)
{
	const char *base = getenv("TMPDIR");

	if (root[0] == '\0') {
		(void)snprintf(root, sizeof(root), "%s/engine-test-XXXXXX",
		    base != NULL && strlen(base) < 200 ? base : P_tmpdir);
		if (mkdtemp(root) == NULL)
			die("mkdtemp");
	}
	return root;
}

static int drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_tree(const char *path)
{
	if (nftw(path, drop, 16, FTW_DEPTH | FTW_PHYS) < 0 && errno != ENOENT)
		die(path);
}

const char *tmp_path(const char *name)
{
	static char pool[32][384];
	char p[384];
	size_t i = 0;

	(void)snprintf(p, sizeof(p), "%s/%s", tmp_root(), name);
	remove_tree(p);
	while (pool[i][0] != '\0' && strcmp(pool[i], p) != 0)
		if (++i == sizeof(pool) / sizeof(pool[0]))
			die("too many stores");
	memcpy(pool[i], p, sizeof(p));
	return pool[i];
}

void tmp_done(void)
{
	if (root[0] != '\0')
		remove_tree(root);
	root[0] = '\0';
}

uint8_t *tmp_read(const char *store, const char *file, size_t *n)
{
	char path[512];
	struct stat st;
	uint8_t *p;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", store, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		die(path);
	*n = (size_t)st.st_size;
	p = malloc(*n + 1);
	if (p == NULL || fd_read_full(fd, p, *n) != (ssize_t)*n)
		die(path);
	(void)close(fd);
	return p;
}

void tmp_write(const char *store, const char *file, const uint8_t *p, size_t n)
{
	char path[512];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", store, file);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || fd_write_full(fd, p, n) < 0)
		die(path);
	(void)close(fd);
}

void tmp_copy(const char *from, const char *to)
{
	DIR *d = opendir(from);
	struct dirent *de;

	if (d == NULL || mkdir(to, 0700) < 0)
		die(to);
	while ((de = readdir(d)) != NULL) {
		uint8_t *p;
		size_t n;

		if (de->d_name[0] == '.')
			continue;
		p = tmp_read(from, de->d_name, &n);
		tmp_write(to, de->d_name, p, n);
		free(p);
	}
	(void)closedir(d);
}

const char *tmp_newest(const char *store)
{
	static char best[256];
	DIR *d = opendir(store);
	struct dirent *de;

	if (d == NULL)
		die(store);
	best[0] = '\0';
	while ((de = readdir(d)) != NULL)
		if (strncmp(de->d_name, "log-", 4) == 0 && strcmp(de->d_name, best) > 0)
			(void)snprintf(best, sizeof(best), "%s", de->d_name);
	(void)closedir(d);
	return best;
}

static bool fails(struct tmp_faults *f)
{
	unsigned n = atomic_fetch_add(&f->calls, 1) + 1, at = atomic_load(&f->fail_at);

	if (at == 0 || n < at || (n > at && !f->stay))
		return false;
	errno = f->error;
	return true;
}

static int t_open(void *arg, int dir, const char *name, int flags, mode_t mode)
{
	struct eng_io io = eng_io_system();

	return fails(arg) ? -1 : io.open(NULL, dir, name, flags, mode);
}

static int t_write(void *arg, int fd, const void *p, size_t n, off_t off)
{
	struct eng_io io = eng_io_system();
	struct tmp_faults *f = arg;

	if (!fails(f))
		return io.write(NULL, fd, p, n, off);
	if (f->short_write)
		(void)io.write(NULL, fd, p, n / 2, off);
	errno = f->error;
	return -1;
}

static int t_sync(void *arg, int fd)
{
	struct eng_io io = eng_io_system();

	return fails(arg) ? -1 : io.sync(NULL, fd);
}

static int t_sync_dir(void *arg, int fd)
{
	struct eng_io io = eng_io_system();

	return fails(arg) ? -1 : io.sync_dir(NULL, fd);
}

static int t_rename(void *arg, int dir, const char *from, const char *to)
{
	struct eng_io io = eng_io_system();

	return fails(arg) ? -1 : io.rename(NULL, dir, from, to);
}

static int t_unlink(void *arg, int dir, const char *name)
{
	struct eng_io io = eng_io_system();

	return fails(arg) ? -1 : io.unlink(NULL, dir, name);
}

struct eng_io tmp_io(struct tmp_faults *f)
{
	return (struct eng_io){ .arg = f,
		.open = t_open,
		.write = t_write,
		.sync = t_sync,
		.sync_dir = t_sync_dir,
		.rename = t_rename,
		.unlink = t_unlink };
}

uint64_t tmp_rand(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}
