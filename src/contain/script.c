#include "contain/script.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/sv.h"
#include "base/ban.h"

#define LINE_MAX_ 256

static sv next_word(sv *rest)
{
	size_t i = 0, k;
	sv w;

	while (i < rest->n && (rest->p[i] == ' ' || rest->p[i] == '\t'))
		i++;
	k = i;
	while (k < rest->n && rest->p[k] != ' ' && rest->p[k] != '\t')
		k++;
	w = sv_sub(*rest, i, k - i);
	*rest = sv_sub(*rest, k, rest->n);
	return w;
}

/* "env -S NAME", "env -i NAME", "env A=b NAME": the first word that is neither option nor
 * assignment. */
static sv env_name(sv arg)
{
	for (;;) {
		sv w = next_word(&arg);

		if (sv_starts(w, SV("-S")) && w.n > 2)
			return sv_sub(w, 2, w.n);
		if (w.n == 0 || (w.p[0] != '-' && sv_find(w, '=') < 0))
			return w;
	}
}

int script_parse(const char *path, const char *head, size_t n, struct arena *a, struct script *out,
    struct box_err *err)
{
	sv line = { head, n < LINE_MAX_ ? n : LINE_MAX_ }, rest, interp, name;

	*out = (struct script){ 0 };
	if (!sv_starts(line, SV("#!")))
		return 0;
	(void)sv_cut(sv_sub(line, 2, line.n), '\n', &line, &rest);
	interp = next_word(&line);
	if (interp.n == 0 || interp.p[0] != '/' || memchr(interp.p, '\0', interp.n) != NULL)
		return box_fail(
		    err, BOX_ECONFIG, 0, "%s: its #! line names no absolute interpreter", path);
	out->interp = arena_dup(a, interp).p;
	if (out->interp == NULL)
		return box_nomem(err, "an interpreter");
	if (sv_ends(interp, SV("/env"))) {
		name = env_name(sv_trim(line));
		if (name.n != 0 && sv_find(name, '/') < 0 && memchr(name.p, '\0', name.n) == NULL) {
			out->env_name = arena_dup(a, name).p;
			if (out->env_name == NULL)
				return box_nomem(err, "an interpreter");
		}
	}
	return 0;
}

int script_read(const char *path, struct arena *a, struct script *out, struct box_err *err)
{
	char head[LINE_MAX_];
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? fd_read_full(fd, head, sizeof(head)) : -1;

	if (n < 0)
		return box_fail(err, BOX_ESYS, errno, "read %s", path);
	return script_parse(path, head, (size_t)n, a, out, err);
}
