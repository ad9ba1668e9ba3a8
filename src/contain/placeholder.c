/* Placeholders for `deny` entries that are not there yet (contain.h). The kernel covers what
 * exists: without a directory to cover, a process with a writable grant above could make the entry
 * and use it (escapes CFG-01, COMP-01). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "contain/contain.h"
#include "contain/nodes.h"
#include "base/ban.h"

#define PLACEHOLDERS_MAX 1024

static int add(struct contain_placeholders *ph, const char *path, bool made, struct box_err *err)
{
	struct contain_placeholder *v;

	if (ph->n == PLACEHOLDERS_MAX)
		return box_fail(err, BOX_ELIMIT, 0, "too many absent `deny` entries");
	if ((ph->n & (ph->n - 1)) == 0) { /* grow at powers of two */
		v = arena_grow(&ph->arena, ph->v, ph->n, ph->n != 0 ? ph->n * 2 : 1, sizeof(*v));
		if (v == NULL)
			return box_nomem(err, "placeholders");
		ph->v = v;
	}
	ph->v[ph->n++] = (struct contain_placeholder){ path, made };
	return 0;
}

/* The granted directory around an entry, or NULL: then nobody sees the place, whatever appears
 * there. */
static const char *granted_around(const struct plan_process *proc, const char *path)
{
	for (size_t i = 0; i < proc->grants_n; i++) {
		const struct plan_grant *g = &proc->grants[i];

		if (g->list != PLAN_DENY && g->is_dir && view_within(path, g->path.p) &&
		    strcmp(path, g->path.p) != 0)
			return g->path.p;
	}
	return NULL;
}

/* Make each missing directory from the granted one down to path, by descriptor and without
 * following a link. */
static int make(const struct plan_process *proc, const char *root, const char *path,
    struct contain_placeholders *ph, struct box_err *err)
{
	AUTO_FD at = open(root, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const char *rest = path + strlen(root);

	if (at < 0)
		return box_fail(
		    err, BOX_ESYS, errno, SV_FMT ": open %s", SV_ARG(proc->table), root);
	while (*rest == '/')
		rest++;
	while (*rest != '\0') {
		size_t n = strcspn(rest, "/");
		const char *so_far =
		    arena_dup(&ph->arena, (sv){ path, (size_t)(rest - path) + n }).p;
		char name[NAME_MAX + 1];
		int next;
		bool made;

		if (so_far == NULL)
			return box_nomem(err, "placeholders");
		if (n > NAME_MAX)
			return box_fail(err, BOX_ECONFIG, 0,
			    SV_FMT ": `deny` entry %s: a name is too long", SV_ARG(proc->table),
			    path);
		memcpy(name, rest, n);
		name[n] = '\0';
		made = mkdirat(at, name, 0700) == 0;
		if (!made && errno != EEXIST)
			return box_fail(err, BOX_ESYS, errno,
			    SV_FMT ": `deny` entry %s does not exist yet and a place to cover "
			           "cannot be made; "
			           "create it, or drop the grant around it",
			    SV_ARG(proc->table), path);
		if (add(ph, so_far, made, err) < 0)
			return -1;
		next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0) {
			if (rest[n] == '\0')
				return 0; /* a file appeared under the entry's own name: covered */
			return box_fail(err, BOX_ESYS, errno, SV_FMT ": `deny` entry %s: open %s",
			    SV_ARG(proc->table), path, so_far);
		}
		fd_drop(&at);
		at = next;
		rest += n;
		while (*rest == '/')
			rest++;
	}
	return 0;
}

static int for_process(
    const struct plan_process *proc, struct contain_placeholders *ph, struct box_err *err)
{
	for (size_t i = 0; i < proc->grants_n; i++) {
		const struct plan_grant *g = &proc->grants[i];
		const char *root = NULL;
		struct stat st;

		if (g->list != PLAN_DENY || !g->absent)
			continue;
		root = granted_around(proc, g->path.p);
		if (root == NULL || lstat(g->path.p, &st) == 0)
			continue;
		if (make(proc, root, g->path.p, ph, err) < 0)
			return -1;
	}
	return 0;
}

int contain_placeholders_make(
    const struct plan *p, struct contain_placeholders *out, struct box_err *err)
{
	*out = (struct contain_placeholders){ .arena = { .limit = 4 << 20 } };
	if (p->agent != NULL && for_process(p->agent, out, err) < 0)
		goto fail;
	for (size_t i = 0; i < p->tools_n; i++)
		if (for_process(&p->tools[i], out, err) < 0)
			goto fail;
	return 0;
fail:
	contain_placeholders_remove(out);
	return -1;
}

void contain_placeholders_remove(struct contain_placeholders *ph)
{
	for (size_t i = ph->n; i-- > 0;)
		if (ph->v[i].made)
			(void)rmdir(ph->v[i].path); /* one that is in use by now stays */
	arena_free(&ph->arena);
	*ph = (struct contain_placeholders){ 0 };
}
