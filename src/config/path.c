/* Paths by components. See path.h. */
#include "config/path.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/ban.h"

bool path_within(sv inner, sv outer)
{
	if (sv_eq(outer, SV("/")))
		return inner.n != 0 && inner.p[0] == '/';
	return sv_starts(inner, outer) && (inner.n == outer.n || inner.p[outer.n] == '/');
}

bool path_below(sv inner, sv outer)
{
	return path_within(inner, outer) && !sv_eq(inner, outer);
}

sv path_tidy(struct arena *a, sv path)
{
	size_t room, n = 0;
	char *out;
	sv part, rest = path;

	if (!add_sz(path.n, 2, &room) || (out = arena_alloc(a, room, 1)) == NULL)
		return (sv){ NULL, 0 };
	while (rest.n != 0) {
		(void)sv_cut(rest, '/', &part, &rest); /* the last part has no slash */
		if (part.n == 0 || sv_eq(part, SV(".")))
			continue;
		out[n++] = '/';
		memcpy(out + n, part.p, part.n);
		n += part.n;
	}
	if (n == 0)
		out[n++] = '/';
	out[n] = '\0';
	return (sv){ out, n };
}

bool path_has_dotdot(sv path)
{
	sv part, rest = path;

	while (rest.n != 0) {
		(void)sv_cut(rest, '/', &part, &rest); /* the last part has no slash */
		if (sv_eq(part, SV("..")))
			return true;
	}
	return false;
}

sv path_parent(sv path)
{
	ptrdiff_t at = sv_rfind(path, '/');

	return at <= 0 ? SV("/") : sv_sub(path, 0, (size_t)at);
}

sv path_real(struct arena *a, sv path)
{
	char real[PATH_MAX];
	char name[PATH_MAX];
	sv out;

	if (path.n >= sizeof(name)) {
		errno = ENAMETOOLONG;
		return (sv){ NULL, 0 };
	}
	if (path.n == 0 || memchr(path.p, '\0', path.n) != NULL) {
		errno = ENOENT;
		return (sv){ NULL, 0 };
	}
	memcpy(name, path.p, path.n);
	name[path.n] = '\0';
	if (realpath(name, real) == NULL)
		return (sv){ NULL, 0 };
	out = arena_dup(a, sv_c(real));
	if (out.p == NULL)
		errno = ENOMEM;
	return out;
}

void path_put_home(struct buf *out, sv path, sv home)
{
	if (home.n > 1 && path_within(path, home)) {
		buf_put_c(out, "~");
		path = sv_sub(path, home.n, path.n);
	}
	buf_put_sv(out, path);
}
