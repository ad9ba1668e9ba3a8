/* Builtins about variables: export readonly declare typeset local unset let. */
#include <stdlib.h>
#include <string.h>

#include "shell/parse.h"
#include "shell/shell.h"
#include "base/ban.h"

/* --- declare and its kin --- */

struct decl {
	struct sh_io *io;
	unsigned on, off; /* attributes */
	bool print, functions, names_only, global, local, unexport;
	const char *command; /* for listings: "declare" or "export" */
};

/* Make `name` local when asked; false after a message. */
static bool place(struct decl *d, const char *name)
{
	struct sh_var *v, *old;
	unsigned keep;

	if (!d->local)
		return true;
	old = sh_var_raw(d->io->sh, name);
	keep = old != NULL && (old->flags & SH_V_LOCAL) != 0 ? old->flags : 0;
	v = sh_var_local(d->io->sh, name, true);
	if (v == NULL) {
		if (old == NULL || (old->flags & SH_V_READONLY) == 0)
			(void)shcmd_err(d->io, "can only be used in a function");
		return false;
	}
	(void)keep;
	return true;
}

static struct sh_var *attributes(struct decl *d, const char *name)
{
	struct sh_var *v;

	if (((d->on | d->off) & SH_V_NAMEREF) != 0) {
		v = sh_var_raw(d->io->sh, name);
		if (v == NULL)
			v = sh_var_declare(d->io->sh, name, 0);
	} else {
		v = sh_var_declare(d->io->sh, name, 0);
	}
	if ((d->on & SH_V_LOWER) != 0)
		v->flags &= ~(unsigned)SH_V_UPPER;
	if ((d->on & SH_V_UPPER) != 0)
		v->flags &= ~(unsigned)SH_V_LOWER;
	v->flags |= d->on & ~(unsigned)(SH_V_READONLY | SH_V_ARRAY | SH_V_ASSOC);
	v->flags &= ~(d->off & ~(unsigned)SH_V_READONLY);
	return v;
}

static int one_value(struct decl *d, const char *name, const char *value, bool append)
{
	struct shell *sh = d->io->sh;
	struct sh_var *v;

	if (!place(d, name))
		return 1;
	v = sh_var_raw(sh, name);
	if (v != NULL && (v->flags & SH_V_READONLY) != 0 && value != NULL) {
		sh_msg(sh, "%s: readonly variable", name);
		return 1;
	}
	v = attributes(d, name);
	if ((d->on & SH_V_NAMEREF) != 0) {
		if (value != NULL) {
			if (strcmp(value, name) == 0)
				return shcmd_err(d->io,
				    "%s: nameref variable self references not allowed", name);
			free(v->value);
			v->value = sh_xstrdup(value);
			v->flags |= SH_V_SET;
		}
		return 0;
	}
	if ((d->on & (SH_V_ARRAY | SH_V_ASSOC)) != 0 &&
	    sh_var_make_array(sh, name, (d->on & SH_V_ASSOC) != 0) != 0)
		return 1;
	if (value != NULL) {
		int r;

		/* declare -a x='(1 2)' is an array assignment, too. */
		if ((d->on & (SH_V_ARRAY | SH_V_ASSOC)) != 0 && value[0] == '(' &&
		    value[strlen(value) - 1] == ')') {
			struct sh_assign as = { .name = name, .append = append, .is_array = true };
			struct box_err err;

			if (sh_parse_elements(d->io->arena, (sv){ value + 1, strlen(value) - 2 },
			        &as.elems, &err) != 0)
				return shcmd_err(d->io, "%s", err.msg);
			r = sh_assign(sh, &as, 0);
		} else {
			r = append ? sh_var_append(sh, name, value) : sh_var_set(sh, name, value);
		}
		if (r != 0)
			return 1;
	}
	v = sh_var_find(sh, name);
	if (v != NULL)
		v->flags |= d->on & SH_V_READONLY;
	return 0;
}

static int one_array(struct decl *d, const struct sh_assign *as)
{
	struct shell *sh = d->io->sh;
	struct sh_var *v;

	if (!place(d, as->name))
		return 1;
	v = sh_var_raw(sh, as->name);
	if (v != NULL && (v->flags & SH_V_READONLY) != 0) {
		sh_msg(sh, "%s: readonly variable", as->name);
		return 1;
	}
	(void)attributes(d, as->name);
	if ((as->is_array || (d->on & (SH_V_ARRAY | SH_V_ASSOC)) != 0) &&
	    sh_var_make_array(sh, as->name,
	        (d->on & SH_V_ASSOC) != 0 || (v != NULL && (v->flags & SH_V_ASSOC) != 0)) != 0)
		return 1;
	if (sh_assign(sh, as, 0) != 0)
		return 1;
	v = sh_var_find(sh, as->name);
	if (v != NULL)
		v->flags |= d->on & SH_V_READONLY;
	return 0;
}

static int print_functions(struct decl *d, int argc, char **argv, int i)
{
	struct shell *sh = d->io->sh;
	int r = 0;

	if (i == argc) {
		AUTO_BUF b = buf_with(SH_EXPAND_MAX);
		struct sh_vec names = { 0 };

		for (struct sh_func *f = sh->funcs; f != NULL; f = f->next)
			sh_vec_push(&names, sh_xstrdup(f->name));
		sh_vec_sort(&names);
		for (size_t k = 0; k < names.n; k++) {
			if (d->names_only)
				buf_putf(&b, "declare -f %s\n", names.v[k]);
			else
				sh_func_print(&b, sh_func_find(sh, names.v[k]));
		}
		sh_vec_fini(&names);
		shcmd_put(d->io, b.p, b.n);
		return 0;
	}
	for (; i < argc; i++) {
		struct sh_func *f = sh_func_find(sh, argv[i]);
		AUTO_BUF b = buf_with(SH_EXPAND_MAX);

		if (f == NULL) {
			r = 1;
			continue;
		}
		if ((d->on & SH_V_READONLY) != 0) {
			f->readonly = true;
			continue;
		}
		if ((d->on & SH_V_EXPORT) != 0) {
			f->exported = true;
			continue;
		}
		if (d->names_only)
			buf_putf(&b, "%s\n", f->name);
		else
			sh_func_print(&b, f);
		shcmd_put(d->io, b.p, b.n);
	}
	return r;
}

static void print_all(struct decl *d, unsigned mask)
{
	size_t n;
	struct sh_var **v = sh_vars_sorted(d->io->sh, &n);

	for (size_t i = 0; i < n; i++) {
		AUTO_BUF b = buf_with(SH_EXPAND_MAX);

		if ((v[i]->flags & mask) != mask || (v[i]->flags & SH_V_DYNAMIC) != 0)
			continue;
		if (d->local && (v[i]->flags & SH_V_LOCAL) == 0)
			continue;
		sh_var_print(&b, v[i], d->command);
		shcmd_put(d->io, b.p, b.n);
	}
	free(v);
}

static bool attribute(char c, unsigned *bit)
{
	switch (c) {
	case 'a':
		*bit = SH_V_ARRAY;
		return true;
	case 'A':
		*bit = SH_V_ASSOC;
		return true;
	case 'i':
		*bit = SH_V_INTEGER;
		return true;
	case 'l':
		*bit = SH_V_LOWER;
		return true;
	case 'n':
		*bit = SH_V_NAMEREF;
		return true;
	case 'r':
		*bit = SH_V_READONLY;
		return true;
	case 'u':
		*bit = SH_V_UPPER;
		return true;
	case 'x':
		*bit = SH_V_EXPORT;
		return true;
	case 't':
		*bit = 0;
		return true;
	default:
		return false;
	}
}

static int options(struct decl *d, int argc, char **argv, bool exports)
{
	int i = 1;

	for (; i < argc && (argv[i][0] == '-' || argv[i][0] == '+') && argv[i][1] != '\0'; i++) {
		bool on = argv[i][0] == '-';

		if (strcmp(argv[i], "--") == 0)
			return i + 1;
		for (const char *c = argv[i] + 1; *c != '\0'; c++) {
			unsigned bit = 0;

			if (*c == 'p') {
				d->print = true;
			} else if (*c == 'f') {
				d->functions = true;
			} else if (*c == 'F') {
				d->functions = d->names_only = true;
			} else if (*c == 'g') {
				d->global = true;
			} else if (exports && *c == 'n') {
				d->unexport = true;
			} else if (attribute(*c, &bit)) {
				if (on)
					d->on |= bit;
				else
					d->off |= bit;
			} else {
				(void)shcmd_err(d->io, "%c%c: invalid option", argv[i][0], *c);
				return -1;
			}
		}
	}
	return i;
}

static int print_named(struct decl *d, int argc, char **argv, int i)
{
	int r = 0;

	for (; i < argc; i++) {
		struct sh_var *v = sh_var_raw(d->io->sh, argv[i]);
		AUTO_BUF b = buf_with(SH_EXPAND_MAX);

		if (v == NULL) {
			r = shcmd_err(d->io, "%s: not found", argv[i]);
			continue;
		}
		sh_var_print(&b, v, "declare");
		shcmd_put(d->io, b.p, b.n);
	}
	return r;
}

static int arguments(struct decl *d, int argc, char **argv, int i)
{
	struct shell *sh = d->io->sh;
	int r = 0;

	for (; i < argc; i++) {
		char *eq = strchr(argv[i], '=');
		bool append;

		if ((size_t)i < sh->ndecl && sh->decl[i] != NULL) {
			if (one_array(d, sh->decl[i]) != 0)
				r = 1;
			continue;
		}
		append = eq != NULL && eq > argv[i] && eq[-1] == '+';
		if (eq != NULL)
			eq[append ? -1 : 0] = '\0';
		if (!sh_is_name(sv_c(argv[i]))) {
			const char *base;
			struct sh_word *sub;

			/* declare a[1]=x as an ordinary word */
			if (sh_parse_lvalue(d->io->arena, argv[i], &base, &sub) == 0 &&
			    sub != NULL) {
				if (!place(d, base) ||
				    (eq != NULL && sh_assign_text(sh, argv[i], eq + 1) != 0))
					r = 1;
				continue;
			}
			r = shcmd_err(d->io, "`%s': not a valid identifier", argv[i]);
			continue;
		}
		if (d->unexport) {
			struct sh_var *v = sh_var_find(sh, argv[i]);

			if (eq != NULL && sh_var_set(sh, argv[i], eq + 1) != 0)
				r = 1;
			if (v != NULL)
				v->flags &= ~(unsigned)SH_V_EXPORT;
			continue;
		}
		if (one_value(d, argv[i], eq != NULL ? eq + 1 : NULL, append) != 0)
			r = 1;
	}
	return r;
}

static int run_declare(struct sh_io *io, int argc, char **argv)
{
	struct decl d = { .io = io, .command = "declare" };
	int i = options(&d, argc, argv, false);

	if (i < 0)
		return 2;
	if (d.functions)
		return print_functions(&d, argc, argv, i);
	if (i == argc && argc == 1) {
		sh_list_variables(io);
		return 0;
	}
	if (i == argc) {
		print_all(&d, d.on);
		return 0;
	}
	if (d.print)
		return print_named(&d, argc, argv, i);
	d.local = io->sh->funcs_depth > 0 && !d.global;
	return arguments(&d, argc, argv, i);
}

const struct sh_cmd sh_cmd_declare = { "declare", NULL, SHCMD_BUILTIN | SHCMD_DECLARES, 2,
	run_declare };
const struct sh_cmd sh_cmd_typeset = { "typeset", NULL, SHCMD_BUILTIN | SHCMD_DECLARES, 2,
	run_declare };

static int run_local(struct sh_io *io, int argc, char **argv)
{
	struct decl d = { .io = io, .local = true, .command = "declare" };
	int i = options(&d, argc, argv, false);

	if (i < 0)
		return 2;
	if (io->sh->funcs_depth == 0)
		return shcmd_err(io, "can only be used in a function");
	if (i < argc && strcmp(argv[i], "-") == 0) {
		/* `local -`: options are put back at the end; here they simply stay. */
		i++;
	}
	if (i == argc && argc == 1) {
		print_all(&d, 0);
		return 0;
	}
	return arguments(&d, argc, argv, i);
}

const struct sh_cmd sh_cmd_local = { "local", NULL, SHCMD_BUILTIN | SHCMD_DECLARES, 2, run_local };

static int run_export(struct sh_io *io, int argc, char **argv)
{
	struct decl d = { .io = io, .on = SH_V_EXPORT, .command = "declare" };
	int i = options(&d, argc, argv, true);

	if (i < 0)
		return 2;
	if (d.functions)
		return print_functions(&d, argc, argv, i);
	if (i == argc) {
		if ((io->sh->opts & SH_O_POSIX) != 0)
			d.command = "export";
		print_all(&d, SH_V_EXPORT);
		return 0;
	}
	return arguments(&d, argc, argv, i);
}

const struct sh_cmd sh_cmd_export = { "export", NULL,
	SHCMD_SPECIAL | SHCMD_BUILTIN | SHCMD_DECLARES, 2, run_export };

static int run_readonly(struct sh_io *io, int argc, char **argv)
{
	struct decl d = { .io = io, .on = SH_V_READONLY, .command = "declare" };
	int i = options(&d, argc, argv, false);

	if (i < 0)
		return 2;
	if (d.functions)
		return print_functions(&d, argc, argv, i);
	if (i == argc) {
		print_all(&d, SH_V_READONLY);
		return 0;
	}
	return arguments(&d, argc, argv, i);
}

const struct sh_cmd sh_cmd_readonly = { "readonly", NULL,
	SHCMD_SPECIAL | SHCMD_BUILTIN | SHCMD_DECLARES, 2, run_readonly };

/* --- unset, let --- */

static int unset_element(struct sh_io *io, const char *name)
{
	const char *base;
	struct sh_word *sub;
	struct sh_var *v;
	int64_t index;
	char *text;

	if (sh_parse_lvalue(io->arena, name, &base, &sub) != 0 || sub == NULL)
		return shcmd_err(io, "`%s': not a valid identifier", name);
	v = sh_var_find(io->sh, base);
	if (v == NULL)
		return 0;
	if ((v->flags & SH_V_READONLY) != 0)
		return shcmd_err(io, "%s: cannot unset: readonly variable", base);
	text = sh_expand_str(io->sh, io->arena, sub, SH_X_STRING);
	if (text == NULL)
		return 1;
	if ((strcmp(text, "@") == 0 || strcmp(text, "*") == 0) && (v->flags & SH_V_ASSOC) == 0) {
		sh_var_clear_elems(v);
		return 0;
	}
	if ((v->flags & SH_V_ASSOC) != 0) {
		sh_var_unset_key(v, text);
		return 0;
	}
	if (sh_arith(io->sh, text, &index) != 0)
		return 1;
	if ((v->flags & SH_V_ARRAY) == 0)
		return index == 0 ? sh_var_unset(io->sh, base) != 0
		                  : shcmd_err(io, "%s: not an array variable", base);
	if (sh_var_from_end(v, index) < 0)
		return shcmd_err(io, "[%lld]: bad array subscript", (long long)index);
	sh_var_unset_index(v, index);
	return 0;
}

static int run_unset(struct sh_io *io, int argc, char **argv)
{
	struct shell *sh = io->sh;
	bool f = false, v = false, n = false;
	int i = 1, r = 0;

	for (; i < argc && argv[i][0] == '-' && argv[i][1] != '\0'; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		for (const char *c = argv[i] + 1; *c != '\0'; c++) {
			if (*c == 'f') {
				f = true;
			} else if (*c == 'v') {
				v = true;
			} else if (*c == 'n') {
				n = true;
			} else {
				(void)shcmd_err(io, "-%c: invalid option", *c);
				return 2;
			}
		}
	}
	for (; i < argc; i++) {
		if (f) {
			struct sh_func *fn = sh_func_find(sh, argv[i]);

			if (fn != NULL && fn->readonly)
				r = shcmd_err(io, "%s: cannot unset: readonly function", argv[i]);
			else
				sh_func_unset(sh, argv[i]);
		} else if (strchr(argv[i], '[') != NULL) {
			if (unset_element(io, argv[i]) != 0)
				r = 1;
		} else if (!sh_is_name(sv_c(argv[i])) && (v || sh_func_find(sh, argv[i]) == NULL)) {
			r = shcmd_err(io, "`%s': not a valid identifier", argv[i]);
		} else if (n) {
			struct sh_var *ref = sh_var_raw(sh, argv[i]);

			if (ref != NULL) {
				ref->flags &= ~(unsigned)SH_V_NAMEREF;
				if (sh_var_unset(sh, argv[i]) != 0)
					r = 1;
			}
		} else if (sh_var_find(sh, argv[i]) != NULL) {
			if (sh_var_unset(sh, argv[i]) != 0)
				r = 1;
		} else if (!v) {
			sh_func_unset(sh, argv[i]);
		}
	}
	return r;
}

const struct sh_cmd sh_cmd_unset = { "unset", NULL, SHCMD_SPECIAL | SHCMD_BUILTIN, 2, run_unset };

static int run_let(struct sh_io *io, int argc, char **argv)
{
	int64_t v = 0;

	if (argc < 2)
		return shcmd_err(io, "expression expected");
	for (int i = 1; i < argc; i++) {
		if (sh_arith(io->sh, argv[i], &v) != 0)
			return 1;
	}
	return v == 0;
}

const struct sh_cmd sh_cmd_let = { "let", NULL, SHCMD_BUILTIN, 1, run_let };
