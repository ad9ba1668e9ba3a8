/* Names of host programs. See spawn.h. Names and directories come from inside the box; they are
 * only ever compared with the file that runs. */
#include "monitor/spawn.h"

#include <limits.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/ban.h"

/* Does this path of the host lead to the file? */
static bool leads_to(const char *path, sv file)
{
	char real[PATH_MAX];

	return path != NULL && realpath(path, real) != NULL && sv_eq(sv_c(real), file);
}

static bool on_path(struct arena *arena, sv name, sv file, sv path_var)
{
	sv rest = path_var, dir;
	bool more;

	do {
		more = sv_cut(rest, ':', &dir, &rest);
		if (dir.n != 0 && dir.p[0] == '/' &&
		    leads_to(
		        arena_printf(arena, SV_FMT "/" SV_FMT, SV_ARG(dir), SV_ARG(name)), file))
			return true;
	} while (more);
	return false;
}

sv spawn_expand_home(struct arena *arena, sv path, sv home)
{
	if (path.n == 0 || path.p[0] != '~' || (path.n > 1 && path.p[1] != '/'))
		return arena_dup(arena, path);
	return sv_c(
	    arena_printf(arena, SV_FMT SV_FMT, SV_ARG(home), SV_ARG(sv_sub(path, 1, path.n))));
}

static bool is_true_name(const struct ask *a, struct arena *arena, sv file, sv home, sv path_var)
{
	sv name = a->program, dir;

	if (name.n == 0 || sv_find(name, '\0') >= 0)
		return false;
	if (sv_find(name, '/') < 0)
		return on_path(arena, name, file, path_var);
	if (name.p[0] == '/')
		return leads_to(arena_dup(arena, name).p, file);
	dir = spawn_expand_home(arena, a->cwd, home);
	return dir.p != NULL && dir.n != 0 && dir.p[0] == '/' &&
	       leads_to(arena_printf(arena, SV_FMT "/" SV_FMT, SV_ARG(dir), SV_ARG(name)), file);
}

bool spawn_settle(struct ask *a, struct arena *arena, sv file, sv home, sv path_var)
{
	AUTO_BUF text = buf_with(MON_TEXT_MAX);

	if (!is_true_name(a, arena, file, home, path_var))
		a->program = a->program_path;
	buf_put_shell_word(&text, a->program);
	for (uint32_t i = 0; i < a->args_n; i++) {
		buf_put_byte(&text, ' ');
		buf_put_shell_word(&text, a->args[i].text);
	}
	if (!buf_ok(&text))
		return false;
	a->command = arena_dup(arena, buf_sv(&text));
	return a->command.p != NULL;
}

sv spawn_argv0(const struct ask *a, struct arena *arena, sv home)
{
	return sv_eq(a->program, a->program_path) ? spawn_expand_home(arena, a->program, home)
	                                          : arena_dup(arena, a->program);
}
