/* Sockets inside granted directories (contain.h). A bind mount, read-only or not, does not stop
 * connect(2), and Landlock does not judge it yet; so what a process could reach that way is said
 * before it starts (escapes SOCK-01). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "contain/contain.h"
#include "contain/nodes.h"
#include "base/ban.h"

#define DEPTH_MAX 32

struct walk {
	const struct plan_process *proc;
	void (*found)(void *arg, const char *path);
	void *arg;
	size_t left;
	bool cut;
};

static bool denied(const struct walk *w, const char *path)
{
	for (size_t i = 0; i < w->proc->grants_n; i++)
		if (w->proc->grants[i].list == PLAN_DENY &&
		    view_within(path, w->proc->grants[i].path.p))
			return true;
	return false;
}

/* DT_DIR, DT_SOCK or something else; some file systems do not say it in the directory. */
static unsigned char entry_type(int dir, const struct dirent *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN || fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return e->d_type;
	if (S_ISDIR(st.st_mode))
		return DT_DIR;
	return S_ISSOCK(st.st_mode) ? DT_SOCK : DT_UNKNOWN;
}

/* Takes fd. Names come from the directory alone; nothing is followed or opened but directories. */
static void walk_dir(struct walk *w, int fd, const char *path, int depth)
{
	DIR *d = fdopendir(fd);
	const struct dirent *e;

	if (d == NULL) {
		(void)close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL) {
		char sub[PATH_MAX];
		unsigned char type;
		int n;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (w->left == 0 || depth == DEPTH_MAX) {
			w->cut = true;
			break;
		}
		w->left--;
		type = entry_type(dirfd(d), e);
		if (type != DT_DIR && type != DT_SOCK)
			continue;
		n = snprintf(sub, sizeof(sub), "%s/%s", path, e->d_name);
		if (n < 0 || (size_t)n >= sizeof(sub) || denied(w, sub))
			continue;
		if (type == DT_SOCK) {
			w->found(w->arg, sub);
			continue;
		}
		n = openat(dirfd(d), e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (n >= 0)
			walk_dir(w, n, sub, depth + 1);
	}
	(void)closedir(d);
}

bool contain_sockets(const struct plan_process *proc, size_t max,
    void (*found)(void *arg, const char *path), void *arg)
{
	struct walk w = { .proc = proc, .found = found, .arg = arg, .left = max };

	for (size_t i = 0; i < proc->grants_n; i++) {
		const struct plan_grant *g = &proc->grants[i];
		bool again = false;
		struct stat st;

		if (g->list == PLAN_DENY)
			continue;
		for (size_t k = 0; k < i && !again; k++) /* the same place in two lists */
			again = proc->grants[k].list != PLAN_DENY &&
			        view_within(g->path.p, proc->grants[k].path.p);
		if (again)
			continue;
		if (g->is_dir) {
			int fd = open(g->path.p, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

			if (fd >= 0)
				walk_dir(&w, fd, g->path.p, 0);
		} else if (lstat(g->path.p, &st) == 0 && S_ISSOCK(st.st_mode)) {
			found(arg, g->path.p);
		}
	}
	return !w.cut;
}
