/* The call stack as scripts see it: FUNCNAME, BASH_SOURCE, BASH_LINENO, and the builtin caller. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell/shell.h"
#include "base/ban.h"

void sh_frame_push(struct shell *sh, const char *func, const char *source)
{
	if (sh->nframes == sh->frames_cap) {
		sh->frames_cap = sh->frames_cap != 0 ? sh->frames_cap * 2 : 16;
		sh->frames = sh_xrealloc(sh->frames, sh->frames_cap, sizeof(*sh->frames));
	}
	sh->frames[sh->nframes++] = (struct sh_frame){
		.func = sh_xstrdup(func), .source = sh_xstrdup(source), .line = sh->line
	};
	sh->frames_changed = true;
}

void sh_frame_pop(struct shell *sh)
{
	struct sh_frame *f = &sh->frames[--sh->nframes];

	free(f->func);
	free(f->source);
	sh->frames_changed = true;
}

const char *sh_frame_source(const struct shell *sh)
{
	if (sh->nframes != 0)
		return sh->frames[sh->nframes - 1].source;
	return (sh->opts & SH_O_COMMAND) != 0 ? "environment" : "main";
}

static void rebuild(struct shell *sh, const char *name)
{
	struct sh_var *v;
	/* Outside of functions FUNCNAME is unset, even in a script file. */
	bool hide = strcmp(name, "FUNCNAME") == 0 && sh->funcs_depth == 0 && sh->sourced == 0;

	if (sh->nframes == 0 || hide) {
		v = sh_var_raw(sh, name);
		if (v != NULL)
			sh_var_clear_elems(v);
		return;
	}
	if (sh_var_make_array(sh, name, false) != 0)
		return;
	v = sh_var_raw(sh, name);
	if (v == NULL)
		return;
	sh_var_clear_elems(v);
	for (size_t i = 0; i < sh->nframes; i++) {
		const struct sh_frame *f = &sh->frames[sh->nframes - 1 - i];
		char line[16];

		(void)snprintf(line, sizeof(line), "%d", f->line);
		(void)sh_var_set_index(sh, name, (int64_t)i,
		    strcmp(name, "FUNCNAME") == 0      ? f->func
		    : strcmp(name, "BASH_LINENO") == 0 ? line
		                                       : f->source,
		    false);
	}
}

void sh_frames_sync(struct shell *sh, const char *name)
{
	if (strcmp(name, "FUNCNAME") != 0 && strcmp(name, "BASH_SOURCE") != 0 &&
	    strcmp(name, "BASH_LINENO") != 0)
		return;
	sh->frames_changed = false; /* first: rebuilding looks the variables up */
	rebuild(sh, "FUNCNAME");
	rebuild(sh, "BASH_SOURCE");
	rebuild(sh, "BASH_LINENO");
}

/* caller [N]: the line, function and file that called the N-th frame. */
static int run_caller(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	int64_t n = 0;
	const struct sh_frame *f, *up;
	size_t at;

	if (argc > 1 && !shcmd_number(argv[1], 0, INT32_MAX, &n)) {
		(void)shcmd_err(io, "%s: invalid number", argv[1]);
		return 2;
	}
	if (sh->nframes == 0 || (size_t)n >= sh->nframes ||
	    (sh->funcs_depth == 0 && sh->sourced == 0))
		return 1;
	at = sh->nframes - 1 - (size_t)n;
	f = &sh->frames[at];
	up = at > 0 ? &sh->frames[at - 1] : NULL;
	if (argc < 2) {
		shcmd_printf(io, "%d %s\n", f->line, up != NULL ? up->source : "NULL");
		return 0;
	}
	if (up == NULL)
		return 1;
	shcmd_printf(io, "%d %s %s\n", f->line, up->func, up->source);
	return 0;
}

const struct sh_cmd sh_cmd_caller = { "caller", NULL, SHCMD_BUILTIN, 2, run_caller };
