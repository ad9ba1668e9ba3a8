/* Which file a `command` runs, and which interpreters its #! lines need (box-config-and-policy 1.3,
 * box-design 6.2). */
#include "config/judge.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "config/path.h"
#include "base/ban.h"

#define SHEBANG_MAX 256 /* what the kernel reads of a script (BINPRM_BUF_SIZE) */
#define HOPS_MAX    5   /* the kernel follows that many interpreters */

static int fail_program(struct cfg *c, const struct plan_process *p, const char *what, sv path)
{
	return cfg_fail(c, p->at_command,
	    "containment config failed: %s: %s (`command` of `" SV_FMT "`)", what,
	    cfg_shown(c, path), SV_ARG(p->table));
}

/* Is it an executable regular file? path is NUL-terminated. */
static bool is_program(sv path, struct stat *st)
{
	return stat(path.p, st) == 0 && S_ISREG(st->st_mode) && (st->st_mode & 0111) != 0 &&
	       faccessat(AT_FDCWD, path.p, X_OK, AT_EACCESS) == 0;
}

/* Search a bare name on PATH. Relative elements, and those inside the box directory (its aliases),
 * do not count. .p NULL: nowhere. */
static sv search_path(struct cfg *c, sv path_var, sv name)
{
	struct arena *a = &c->p->arena;
	sv dir, rest = path_var;

	while (rest.n != 0) {
		const char *full;
		struct stat st;

		(void)sv_cut(rest, ':', &dir, &rest); /* the last element has no colon */
		if (dir.n == 0 || dir.p[0] != '/')
			continue;
		full = arena_printf(a, SV_FMT "/" SV_FMT, SV_ARG(dir), SV_ARG(name));
		if (full == NULL)
			break;
		sv tidy = path_tidy(a, sv_c(full));

		if (tidy.p != NULL && !path_within(tidy, c->p->box_dir) && is_program(tidy, &st))
			return tidy;
	}
	return (sv){ NULL, 0 };
}

/* PATH of the process: env.PATH, else the operator's. */
static sv path_var_of(const struct cfg *c, const struct plan_process *p)
{
	sv v = plan_env(p, SV("PATH"));

	return v.p != NULL ? v : c->p->path_var;
}

static int add_interpreter(struct cfg *c, struct plan_process *p, sv canonical)
{
	for (size_t i = 0; i < p->interpreters_n; i++)
		if (sv_eq(p->interpreters[i], canonical))
			return 0;
	if (p->interpreters_n == HOPS_MAX * 2)
		return fail_program(c, p, "too many interpreters behind", p->program);
	p->interpreters[p->interpreters_n++] = canonical;
	return 0;
}

/* The NAME that "#!/usr/bin/env [-S] [NAME=value...] NAME" runs. */
static sv env_target(sv args)
{
	sv word, rest = sv_trim(args);

	while (rest.n != 0) {
		size_t n = 0;

		while (n < rest.n && rest.p[n] != ' ' && rest.p[n] != '\t')
			n++;
		word = sv_sub(rest, 0, n);
		rest = sv_trim(sv_sub(rest, n, rest.n));
		if (sv_starts(word, SV("-S")) && word.n > 2)
			word = sv_sub(word, 2, word.n);
		if (word.p[0] != '-' && sv_find(word, '=') < 0)
			return word;
	}
	return (sv){ NULL, 0 };
}

/* The first line of a script: interpreter and the rest. 1: it is one, 0: it is not, -1: it cannot
 * be read. */
static int read_shebang(struct cfg *c, const struct plan_process *p, sv path,
    char line[SHEBANG_MAX], sv *interp, sv *args)
{
	AUTO_FD fd = open(path.p, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n;
	size_t i = 0;
	sv text;

	if (fd < 0)
		return errno == EACCES ? 0
		                       : /* an execute-only binary is no script that could run */
		           cfg_fail(c, p->at_command,
		               "containment config failed: cannot read %s: %s", cfg_shown(c, path),
		               box_strerror(errno));
	n = fd_read_full(fd, line, SHEBANG_MAX);
	if (n < 0)
		return cfg_fail(c, p->at_command, "containment config failed: cannot read %s: %s",
		    cfg_shown(c, path), box_strerror(errno));
	text = (sv){ line, (size_t)n };
	if (!sv_starts(text, SV("#!")))
		return 0;
	(void)sv_cut(text, '\n', &text,
	    args); /* a line that is cut is judged by what the kernel sees of it */
	text = sv_trim(sv_sub(text, 2, text.n));
	while (i < text.n && text.p[i] != ' ' && text.p[i] != '\t')
		i++;
	*interp = sv_sub(text, 0, i);
	*args = sv_trim(sv_sub(text, i, text.n));
	if (interp->n == 0 || interp->p[0] != '/' || sv_has_ctl(*interp))
		return fail_program(c, p, "the #! line must name an absolute interpreter", path);
	return 1;
}

/* The canonical file of an interpreter, checked. */
static int settle_interpreter(struct cfg *c, const struct plan_process *p, sv path, sv *canonical)
{
	struct stat st;

	*canonical = path_real(&c->p->arena, path);
	if (canonical->p == NULL)
		return fail_program(c, p, "path does not exist", path);
	if (!is_program(*canonical, &st))
		return fail_program(
		    c, p, "executable is not an executable regular file", *canonical);
	return 0;
}

static int follow_shebang(struct cfg *c, struct plan_process *p)
{
	sv at = p->program, interp, args, canonical;
	char line[SHEBANG_MAX];

	p->interpreters = ARENA_VEC(&c->p->arena, sv, HOPS_MAX * 2);
	if (p->interpreters == NULL)
		return cfg_nomem(c);
	for (int hop = 0;; hop++) {
		int r = read_shebang(c, p, at, line, &interp, &args);

		if (r <= 0)
			return r;
		if (hop == HOPS_MAX)
			return fail_program(c, p, "the chain of #! lines is too long", p->program);
		interp = arena_dup(&c->p->arena, interp);
		if (interp.p == NULL)
			return cfg_nomem(c);
		if (settle_interpreter(c, p, interp, &canonical) != 0 ||
		    add_interpreter(c, p, canonical) != 0)
			return -1;
		at = canonical;
		if (!sv_ends(interp, SV("/env")))
			continue;
		/* env is a program of its own; what it starts is the next hop. */
		sv name = env_target(args), found;

		if (name.n == 0)
			return fail_program(
			    c, p, "the #! line runs env without a program", p->program);
		if (name.p[0] == '/')
			found = arena_dup(&c->p->arena, name);
		else
			found = search_path(c, path_var_of(c, p), name);
		if (found.p == NULL)
			return cfg_fail(c, p->at_command,
			    "containment config failed: cannot resolve bare executable %s on the "
			    "declared PATH (#! "
			    "line of %s)",
			    cfg_shown(c, name), cfg_shown(c, p->program));
		if (settle_interpreter(c, p, found, &canonical) != 0 ||
		    add_interpreter(c, p, canonical) != 0)
			return -1;
		at = canonical;
	}
}

/* The route keeps the last component as written; its folder is canonical. */
static int settle_route(struct cfg *c, struct plan_process *p, sv found)
{
	sv dir = path_real(&c->p->arena, path_parent(found)),
	   base = sv_sub(found, path_parent(found).n, found.n);
	const char *route;

	while (base.n != 0 && base.p[0] == '/')
		base = sv_sub(base, 1, base.n);
	if (dir.p == NULL)
		return fail_program(c, p, "path does not exist", found);
	route = arena_printf(
	    &c->p->arena, "%s%s" SV_FMT, dir.p, sv_eq(dir, SV("/")) ? "" : "/", SV_ARG(base));
	if (route == NULL)
		return cfg_nomem(c);
	p->program_route = sv_c(route);
	return 0;
}

int judge_program(struct cfg *c, struct plan_process *p)
{
	sv name = p->command[0], found;
	struct stat st;

	if (name.p[0] == '/') {
		found = path_tidy(&c->p->arena, name);
		if (found.p == NULL)
			return cfg_nomem(c);
	} else {
		found = search_path(c, path_var_of(c, p), name);
		if (found.p == NULL)
			return cfg_fail(c, p->at_command,
			    "containment config failed: cannot resolve bare executable %s on the "
			    "declared PATH "
			    "(`command` of `" SV_FMT "`)",
			    cfg_shown(c, name), SV_ARG(p->table));
	}
	p->program = path_real(&c->p->arena, found);
	if (p->program.p == NULL)
		return fail_program(c, p, "path does not exist", found);
	if (!is_program(p->program, &st))
		return fail_program(
		    c, p, "executable is not an executable regular file", p->program);
	if ((st.st_mode & (S_ISUID | S_ISGID)) != 0)
		return fail_program(
		    c, p, "the program carries set-user-ID or set-group-ID at", p->program);
	if (path_within(p->program, c->p->box_dir))
		return fail_program(
		    c, p, "the grant would expose the Box's own directory", p->program);
	if (settle_route(c, p, found) != 0)
		return -1;
	return follow_shebang(c, p);
}
