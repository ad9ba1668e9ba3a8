/* Emptying a folder of hostile content. See sweep.h. */
#include "monitor/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ban.h"

/* Each pass empties every folder at the top; what was below comes to the top for the next. A tree
 * of depth n needs at most n passes, and PATH_MAX-defying trees are as deep as somebody had
 * patience to make them: the bound only stops a fight with a process that goes on making files. */
#define PASSES_MAX 1000000

struct sweep {
	int top;
	dev_t dev;
	unsigned long serial;
	int failed; /* errno of the last thing that would not go */
	bool progress;
};

/* Move the folder `name` of dir to the top under a fresh name. */
static int lift(struct sweep *s, int dir, const char *name)
{
	char fresh[64];

	for (int i = 0; i < 100; i++) {
		(void)snprintf(fresh, sizeof(fresh), ".sweep-%lx", s->serial++); /* fits */
		if (syscall(SYS_renameat2, dir, name, s->top, fresh, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EEXIST)
			return -1;
	}
	return -1;
}

/* Empty one folder at the top: files go, empty folders go, others are lifted. */
static void empty_one(struct sweep *s, int dir)
{
	DIR *d = fdopendir(dir);
	struct dirent *e;

	if (d == NULL) {
		s->failed = errno;
		fd_drop(&dir);
		return;
	}
	while ((e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(d), e->d_name, 0) == 0 ||
		    unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR) == 0 ||
		    lift(s, dirfd(d), e->d_name) == 0)
			s->progress = true;
		else
			s->failed = errno;
	}
	(void)closedir(d); /* read only */
}

/* Open a folder of the top, giving it rights when it has none for us. Nothing of the box runs any
 * more, so the name cannot become a link in between. */
static int open_dir(const struct sweep *s, const char *name)
{
	AUTO_FD fd = openat(s->top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fstatat(s->top, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st.st_mode) ||
	    st.st_dev != s->dev)
		return -1;
	if ((st.st_mode & 0700) != 0700 && fchmodat(s->top, name, 0700, 0) != 0)
		return -1;
	if (fd < 0)
		fd = openat(s->top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd_take(&fd);
}

/* One pass over the top. true: it is empty. */
static bool pass(struct sweep *s)
{
	int again = openat(s->top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = again >= 0 ? fdopendir(again) : NULL;
	struct dirent *e;
	bool empty = true;

	if (d == NULL) {
		s->failed = errno;
		fd_drop(&again);
		return true;
	}
	while ((e = readdir(d)) != NULL) {
		int sub;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (unlinkat(s->top, e->d_name, 0) == 0 ||
		    unlinkat(s->top, e->d_name, AT_REMOVEDIR) == 0) {
			s->progress = true;
			continue;
		}
		empty = false;
		sub = open_dir(s, e->d_name);
		if (sub < 0) {
			s->failed = errno;
			continue;
		}
		empty_one(s, sub);
		if (unlinkat(s->top, e->d_name, AT_REMOVEDIR) == 0)
			s->progress = true;
	}
	(void)closedir(d); /* read only */
	return empty;
}

int sweep_dir(int dirfd, struct box_err *err)
{
	struct sweep s = { .top = dirfd };
	struct stat st;

	if (fstat(dirfd, &st) != 0)
		return box_fail(err, BOX_ESYS, errno, "stat the temporary folder");
	s.dev = st.st_dev;
	for (int i = 0; i < PASSES_MAX; i++) {
		s.progress = false;
		s.failed = 0;
		if (pass(&s))
			return s.failed == 0 ? 0
			                     : box_fail(err, BOX_ESYS, s.failed,
			                           "empty the temporary folder");
		if (!s.progress)
			return box_fail(err, BOX_ESYS, s.failed, "empty the temporary folder");
	}
	return box_fail(err, BOX_ELIMIT, 0, "the temporary folder does not become empty");
}
