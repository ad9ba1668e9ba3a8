/* Paths: operands against the working directory, spellings for policy, and the names that stand for
 * descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "shell/shell.h"
#include "base/ban.h"

char *sh_path(struct shell *sh, struct arena *a, const char *arg)
{
	size_t n = strlen(sh->cwd), m = strlen(arg);
	char *s;

	if (arg[0] == '/' || m == 0)
		return sh_adup(a, sv_c(arg));
	if (n + m + 2 > SHCMD_PATH_MAX)
		return NULL;
	s = sh_aalloc(a, n + m + 2, 1);
	memcpy(s, sh->cwd, n);
	if (n == 0 || s[n - 1] != '/')
		s[n++] = '/';
	memcpy(s + n, arg, m);
	return s;
}

void sh_policy_path(struct shell *sh, struct buf *out, const char *path)
{
	size_t n = strlen(sh->operator_home);

	if (n > 1 && strncmp(path, sh->operator_home, n) == 0 &&
	    (path[n] == '/' || path[n] == '\0')) {
		buf_put_byte(out, '~');
		path += n;
	}
	buf_put_c(out, path);
}

static int dup_user(struct shell *sh, int fd, int *err)
{
	int r;

	if (fd < 0 || fd >= SH_FD_USER_MAX || fd == sh->mon_fd) {
		*err = EBADF;
		return -1;
	}
	r = fcntl(fd, F_DUPFD_CLOEXEC, 10);
	if (r < 0)
		*err = errno;
	return r;
}

int sh_open_special(struct shell *sh, const char *path, int *err)
{
	int64_t fd;

	if (strncmp(path, "/dev/", 5) != 0)
		return -2;
	if (strcmp(path, "/dev/null") == 0) {
		int r;

		if (sh->devnull < 0)
			return -2;
		r = fcntl(sh->devnull, F_DUPFD_CLOEXEC, 10);
		if (r < 0)
			*err = errno;
		return r;
	}
	if (strcmp(path, "/dev/stdin") == 0)
		return dup_user(sh, 0, err);
	if (strcmp(path, "/dev/stdout") == 0)
		return dup_user(sh, 1, err);
	if (strcmp(path, "/dev/stderr") == 0)
		return dup_user(sh, 2, err);
	if (strncmp(path, "/dev/fd/", 8) != 0)
		return -2;
	if (!sv_to_i64(sv_c(path + 8), 10, 0, 1 << 20, &fd)) {
		*err = ENOENT;
		return -1;
	}
	return dup_user(sh, (int)fd, err);
}
