/* Parameter expansion (POSIX 2.6.2) and bash's additions: ${x/p/r}, ${x:o:l}, ${x^^}, ${!x},
 * ${x@Q}, arrays. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell/escape.h"
#include "shell/expand_int.h"
#include "shell/parse.h"
#include "shell/pattern.h"
#include "base/ban.h"

/* What a parameter stands for: one value or a list. Strings are in the arena or borrowed from the
 * variables, so nothing may be set before they are used. */
struct value {
	bool set;
	bool list; /* $@, $*, ${a[@]}, ${a[*]} */
	char sep;  /* '@' or '*' */
	const char *s;
	char **v;
	size_t n;
	/* for slices of arrays */
	struct sh_var *var;
};

static const char *flags_text(const struct shell *sh, struct arena *a)
{
	static const struct {
		unsigned opt;
		char c;
	} t[] = { { SH_O_ALLEXPORT, 'a' }, { SH_O_NOTIFY, 'b' }, { SH_O_ERREXIT, 'e' },
		{ SH_O_NOGLOB, 'f' }, { SH_O_HASHALL, 'h' }, { SH_O_MONITOR, 'm' },
		{ SH_O_NOEXEC, 'n' }, { SH_O_NOUNSET, 'u' }, { SH_O_VERBOSE, 'v' },
		{ SH_O_XTRACE, 'x' }, { SH_O_BRACES, 'B' }, { SH_O_NOCLOBBER, 'C' },
		{ SH_O_ERRTRACE, 'E' }, { SH_O_PHYSICAL, 'P' }, { SH_O_FUNCTRACE, 'T' },
		{ SH_O_COMMAND, 'c' }, { SH_O_STDIN, 's' } };
	char *s = sh_aalloc(a, sizeof(t) / sizeof(t[0]) + 1, 1);
	size_t n = 0;

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		if ((sh->opts & t[i].opt) != 0)
			s[n++] = t[i].c;
	}
	return s;
}

const char *sh_special_get(struct shell *sh, struct arena *a, const char *name)
{
	int64_t k;

	switch (name[0]) {
	case '?':
		return arena_printf(a, "%d", sh->status);
	case '$':
		return arena_printf(a, "%d", (int)sh->pid);
	case '!':
		return sh->last_bg != 0 ? arena_printf(a, "%d", (int)sh->last_bg) : NULL;
	case '#':
		return arena_printf(a, "%zu", sh->nparams);
	case '-':
		return flags_text(sh, a);
	default:
		break;
	}
	if (name[0] < '0' || name[0] > '9')
		return sh_var_get(sh, name);
	if (!sv_to_i64(sv_c(name), 10, 0, 1 << 30, &k))
		return NULL;
	if (k == 0)
		return sh->zero;
	return (size_t)k <= sh->nparams ? sh->params[k - 1] : NULL;
}

static void list_value(struct xp *x, struct value *v, const struct sh_var *var)
{
	if (var == NULL)
		return;
	if ((var->flags & (SH_V_ARRAY | SH_V_ASSOC)) == 0) {
		const char *s = sh_var_get(x->sh, var->name);

		if (s == NULL)
			return;
		v->v = sh_aalloc(x->a, 2, sizeof(char *));
		v->v[0] = sh_adup(x->a, sv_c(s));
		v->n = 1;
	} else {
		v->v = sh_aalloc(x->a, var->nelem + 1, sizeof(char *));
		for (size_t i = 0; i < var->nelem; i++)
			v->v[i] = sh_adup(x->a, sv_c(var->elem[i].value));
		v->n = var->nelem;
	}
	v->set = v->n != 0;
}

/* Index or key of ${name[subscript]}: evaluates it once. -1 after an error. */
static int subscript_of(
    struct xp *x, const struct sh_var *var, const struct sh_word *sub, int64_t *index, char **key)
{
	char *text = sh_x_string(x, sub);

	*key = NULL;
	if (text == NULL)
		return -1;
	if (var != NULL && (var->flags & SH_V_ASSOC) != 0) {
		*key = text;
		return 0;
	}
	if (sh_arith(x->sh, text, index) != 0) {
		x->bad = true;
		if (x->sh->flow == SH_FLOW_NONE)
			x->sh->flow = SH_FLOW_ABORT;
		x->sh->status = 1;
		return -1;
	}
	if (var != NULL)
		*index = sh_var_from_end(var, *index);
	return 0;
}

/* The value of name[...] as q says. false after an error. */
static bool fetch(struct xp *x, const struct sh_param *q, struct value *v)
{
	struct shell *sh = x->sh;

	*v = (struct value){ 0 };
	if ((q->name[0] == '@' || q->name[0] == '*') && q->name[1] == '\0') {
		v->list = true;
		v->sep = q->name[0];
		v->v = sh->params;
		v->n = sh->nparams;
		v->set = v->n != 0;
		return true;
	}
	if (q->subscript_all != 0) {
		v->list = true;
		v->sep = q->subscript_all;
		v->var = sh_var_find(sh, q->name);
		list_value(x, v, v->var);
		return true;
	}
	if (q->subscript != NULL) {
		struct sh_var *var = sh_var_find(sh, q->name);
		int64_t index = 0;
		char *key;

		if (subscript_of(x, var, q->subscript, &index, &key) != 0)
			return false;
		if (var == NULL)
			v->s = NULL;
		else if ((var->flags & SH_V_DYNAMIC) != 0)
			v->s = sh_var_get(sh, q->name);
		else
			v->s = key != NULL ? sh_var_key(var, key) : sh_var_index(var, index);
	} else {
		v->s = sh_special_get(sh, x->a, q->name);
	}
	v->set = v->s != NULL;
	if (v->s != NULL)
		v->s = sh_adup(x->a, sv_c(v->s));
	return true;
}

/* --- the expansion --- */

static void put_value(struct xp *x, const struct value *v, bool quoted)
{
	if (v->list)
		sh_x_list(x, v->v, v->n, v->sep, quoted);
	else if (v->s != NULL)
		sh_x_value(x, v->s, quoted);
}

/* The word behind - + =: its parts keep their own quoting. */
static void put_word(struct xp *x, const struct sh_word *w, bool quoted)
{
	bool saved = x->in_arg;

	if (w == NULL || w->parts == NULL)
		return;
	x->in_arg = !quoted;
	sh_x_parts(x, w->parts, quoted, true);
	x->in_arg = saved;
}

static bool is_null(const struct value *v, bool no_ifs)
{
	if (!v->list)
		return v->s == NULL || v->s[0] == '\0';
	for (size_t i = 0; i < v->n; i++) {
		if (v->v[i][0] != '\0')
			return false;
	}
	/* Two empty ones are joined by something, unless IFS is empty. */
	return v->n <= 1 || (v->sep == '*' && no_ifs);
}

static const char *full_name(struct xp *x, const struct sh_param *q)
{
	if (q->subscript_all != 0)
		return arena_printf(x->a, "%s[%c]", q->name, q->subscript_all);
	return q->name;
}

static void do_error(struct xp *x, const struct sh_param *q, bool null)
{
	const char *msg = NULL;

	if (q->arg != NULL && q->arg->parts != NULL)
		msg = sh_x_string(x, q->arg);
	if (msg == NULL)
		msg = null && q->colon ? "parameter null or not set" : "parameter not set";
	sh_error(x->sh, true, 1, "%s: %s", full_name(x, q), msg);
	x->bad = true;
}

static void do_assign(struct xp *x, const struct sh_param *q, bool quoted)
{
	char *s;
	int r;

	if (!sh_is_name(sv_c(q->name)) || q->subscript_all != 0) {
		sh_error(x->sh, false, 1, "$%s: cannot assign in this way", q->name);
		x->bad = true;
		return;
	}
	s = q->arg != NULL ? sh_expand_str(x->sh, x->a, q->arg, SH_X_ASSIGN)
	                   : sh_adup(x->a, SV(""));
	if (s == NULL) {
		x->bad = true;
		return;
	}
	if (q->subscript != NULL) {
		struct sh_assign as = { .name = q->name, .subscript = q->subscript };
		struct sh_part part = { .kind = SH_PT_QUOTED, .text = sv_c(s) };
		struct sh_word w = { .parts = &part };

		as.value = &w;
		r = sh_assign(x->sh, &as, 0);
	} else {
		r = sh_var_set(x->sh, q->name, s);
	}
	if (r != 0) {
		x->bad = true;
		if (x->sh->flow == SH_FLOW_NONE)
			x->sh->flow = SH_FLOW_ABORT;
		x->sh->status = 1;
		return;
	}
	sh_x_value(x, s, quoted);
}

static void do_length(struct xp *x, const struct value *v, bool quoted)
{
	char text[32];
	size_t n = v->list ? v->n : v->s != NULL ? sh_utf8_len(sv_c(v->s)) : 0;

	(void)snprintf(text, sizeof(text), "%zu", n);
	sh_x_value(x, text, quoted);
}

static bool slice_bounds(struct xp *x, const struct sh_param *q, int64_t *off, int64_t *len)
{
	if (sh_arith_word(x->sh, q->arg, off) != 0 ||
	    (q->arg2 != NULL && sh_arith_word(x->sh, q->arg2, len) != 0)) {
		x->bad = true;
		x->sh->status = 1;
		if (x->sh->flow == SH_FLOW_NONE)
			x->sh->flow = SH_FLOW_ABORT;
		return false;
	}
	return true;
}

static void substring_error(struct xp *x, const struct sh_param *q, int64_t len)
{
	(void)q;
	sh_error(x->sh, false, 1, "%lld: substring expression < 0", (long long)len);
	x->bad = true;
}

static void do_slice(struct xp *x, const struct sh_param *q, const struct value *v, bool quoted)
{
	int64_t off = 0, len = 0, n;
	char **list, *s;
	size_t k = 0;
	bool positional = v->list && v->var == NULL;

	if (!slice_bounds(x, q, &off, &len))
		return;
	if (!v->list) {
		if (v->s == NULL)
			return;
		if (sh_x_slice(x, v->s, off, q->arg2 != NULL, len, &s))
			sh_x_value(x, s, quoted);
		else
			substring_error(x, q, len);
		return;
	}
	if (q->arg2 != NULL && len < 0) {
		substring_error(x, q, len);
		return;
	}
	if (q->arg2 == NULL)
		len = INT32_MAX;
	list = sh_aalloc(x->a, v->n + 2, sizeof(char *));
	if (positional) {
		n = (int64_t)v->n + 1;
		if (off < 0)
			off += n;
		for (int64_t i = off; off >= 0 && i < n && (int64_t)k < len; i++)
			list[k++] = i == 0 ? x->sh->zero : v->v[i - 1];
	} else if (v->var != NULL && (v->var->flags & SH_V_ARRAY) != 0) {
		off = sh_var_from_end(v->var, off);
		for (size_t i = 0; off >= 0 && i < v->n && (int64_t)k < len; i++) {
			if (v->var->elem[i].index >= off)
				list[k++] = v->v[i];
		}
	} else {
		n = (int64_t)v->n;
		if (off < 0)
			off += n;
		for (int64_t i = off; off >= 0 && i < n && (int64_t)k < len; i++)
			list[k++] = v->v[i];
	}
	sh_x_list(x, list, k, v->sep, quoted);
}

/* Apply a string operator to the value or to each of the list. */
static void do_each(struct xp *x, const struct sh_param *q, struct value *v, bool quoted)
{
	const char *pat = NULL, *rep = "";
	bool wants_pattern = q->op != SH_OP_AT;

	if (wants_pattern && q->arg != NULL) {
		pat = sh_x_pattern(x, q->arg);
		if (pat == NULL)
			return;
	}
	if (q->arg2 != NULL) {
		rep = sh_x_string(x, q->arg2);
		if (rep == NULL)
			return;
	}
	if (!v->list && v->s == NULL) {
		if (q->op == SH_OP_AT && (q->letter == 'a' || q->letter == 'A')) {
			char *s = sh_x_transform(x, q, "");

			if (s != NULL)
				sh_x_value(x, s, quoted);
		}
		return;
	}
	if (q->op == SH_OP_AT && v->list && v->var != NULL &&
	    (q->letter == 'A' || q->letter == 'K')) {
		char *s = sh_x_transform(x, q, "");

		if (s != NULL)
			sh_x_value(x, s, quoted);
		return;
	}
	{
		size_t n = v->list ? v->n : 1;
		char **out = sh_aalloc(x->a, n + 1, sizeof(char *));

		for (size_t i = 0; i < n && !x->bad; i++) {
			const char *s = v->list ? v->v[i] : v->s;

			switch (q->op) {
			case SH_OP_PREFIX:
			case SH_OP_PREFIX_LONG:
			case SH_OP_SUFFIX:
			case SH_OP_SUFFIX_LONG:
				out[i] = sh_x_strip(x, s, q->op, pat != NULL ? pat : "");
				break;
			case SH_OP_REPLACE:
			case SH_OP_REPLACE_ALL:
			case SH_OP_REPLACE_PREFIX:
			case SH_OP_REPLACE_SUFFIX:
				out[i] = sh_x_replace(x, s, q->op, pat != NULL ? pat : "", rep);
				break;
			case SH_OP_AT:
				out[i] = sh_x_transform(x, q, s);
				break;
			default:
				out[i] = sh_x_recase(x, s, q->op, pat);
				break;
			}
		}
		if (x->bad)
			return;
		if (v->list)
			sh_x_list(x, out, n, v->sep, quoted);
		else
			sh_x_value(x, out[0], quoted);
	}
}

static void do_names(struct xp *x, const struct sh_param *q, bool quoted)
{
	size_t n, k = 0, len = strlen(q->name);
	struct sh_var **v = sh_vars_sorted(x->sh, &n);
	char **list = sh_aalloc(x->a, n + 1, sizeof(char *));

	for (size_t i = 0; i < n; i++) {
		if (strncmp(v[i]->name, q->name, len) == 0 && (v[i]->flags & SH_V_SET) != 0)
			list[k++] = sh_adup(x->a, sv_c(v[i]->name));
	}
	free(v);
	sh_x_list(x, list, k, q->letter, quoted);
}

static void do_keys(struct xp *x, const struct sh_param *q, bool quoted)
{
	struct sh_var *v = sh_var_find(x->sh, q->name);
	size_t n = v == NULL                                     ? 0
	           : (v->flags & (SH_V_ARRAY | SH_V_ASSOC)) != 0 ? v->nelem
	                                                         : v->value != NULL;
	char **list = sh_aalloc(x->a, n + 1, sizeof(char *));

	for (size_t i = 0; i < n; i++) {
		if ((v->flags & (SH_V_ARRAY | SH_V_ASSOC)) == 0)
			list[i] = sh_adup(x->a, SV("0"));
		else if (v->elem[i].key != NULL)
			list[i] = sh_adup(x->a, sv_c(v->elem[i].key));
		else
			list[i] = sh_adup(
			    x->a, sv_c(arena_printf(x->a, "%lld", (long long)v->elem[i].index)));
	}
	sh_x_list(x, list, n, q->subscript_all, quoted);
}

/* ${!x...}: the parameter that x names. NULL after an error. */
static const struct sh_param *indirect(struct xp *x, const struct sh_param *q)
{
	struct sh_param from = {
		.name = q->name, .subscript = q->subscript, .subscript_all = q->subscript_all
	};
	struct sh_param *to = sh_aalloc(x->a, 1, sizeof(*to));
	struct sh_var *ref = sh_var_raw(x->sh, q->name);
	struct value v;
	const char *name;

	*to = *q;
	to->indirect = false;
	to->subscript = NULL;
	to->subscript_all = 0;
	if (ref != NULL && (ref->flags & SH_V_NAMEREF) != 0) {
		/* ${!ref} of a name reference is the name itself. */
		struct sh_part *part = sh_aalloc(x->a, 1, sizeof(*part));

		part->kind = SH_PT_QUOTED;
		part->text = sv_c(ref->value != NULL ? ref->value : "");
		sh_x_value(x, ref->value != NULL ? ref->value : "", true);
		return NULL;
	}
	if (!fetch(x, &from, &v))
		return NULL;
	name = v.list ? sh_join(x->sh, x->a, v.v, v.n, " ") : v.s;
	if (name == NULL || *name == '\0') {
		if (q->op == SH_OP_MINUS || q->op == SH_OP_PLUS || q->op == SH_OP_ASSIGN) {
			to->name = "__no_such_parameter";
			return to;
		}
		sh_error(x->sh, false, 1, "%s: invalid indirect expansion", q->name);
		x->bad = true;
		return NULL;
	}
	if (strchr(name, '[') != NULL) {
		size_t n = strlen(name);
		const char *base;
		struct sh_word *sub;

		if (n > 3 &&
		    (strcmp(name + n - 3, "[@]") == 0 || strcmp(name + n - 3, "[*]") == 0)) {
			to->name = sh_adup(x->a, (sv){ name, n - 3 });
			to->subscript_all = name[n - 2];
			return to;
		}
		if (sh_parse_lvalue(x->a, name, &base, &sub) != 0) {
			sh_error(x->sh, false, 1, "%s: invalid variable name", name);
			x->bad = true;
			return NULL;
		}
		to->name = base;
		to->subscript = sub;
		return to;
	}
	if (!sh_is_name(sv_c(name)) && !(name[1] == '\0' && strchr("@*#?-$!", name[0]) != NULL) &&
	    strspn(name, "0123456789") != strlen(name)) {
		sh_error(x->sh, false, 1, "%s: invalid variable name", name);
		x->bad = true;
		return NULL;
	}
	to->name = name;
	return to;
}

static void unset_error(struct xp *x, const struct sh_param *q)
{
	const char *name = q->name;

	if (q->subscript != NULL) {
		char *s = sh_x_string(x, q->subscript);

		name = arena_printf(x->a, "%s[%s]", q->name, s != NULL ? s : "");
	}
	sh_error(x->sh, true, 1, "%s: unbound variable", name);
	x->bad = true;
}

void sh_x_param(struct xp *x, const struct sh_param *q, bool quoted)
{
	struct value v;
	const char *ifs;
	bool null, nounset = (x->sh->opts & SH_O_NOUNSET) != 0;

	if (q->op == SH_OP_BAD) {
		sh_error(x->sh, false, 1, "${%s}: bad substitution", q->text);
		x->bad = true;
		return;
	}
	if (q->op == SH_OP_NAMES) {
		do_names(x, q, quoted);
		return;
	}
	if (q->op == SH_OP_KEYS) {
		do_keys(x, q, quoted);
		return;
	}
	if (q->indirect) {
		q = indirect(x, q);
		if (q == NULL)
			return;
	}
	if (!fetch(x, q, &v)) {
		x->bad = true;
		return;
	}
	ifs = sh_var_get(x->sh, "IFS");
	null = !v.set || (q->colon && is_null(&v, ifs != NULL && *ifs == '\0'));
	if (nounset && !v.set && !v.list && q->op != SH_OP_MINUS && q->op != SH_OP_PLUS &&
	    q->op != SH_OP_ASSIGN && q->op != SH_OP_ERROR &&
	    !(q->op == SH_OP_AT && q->letter == 'a')) {
		unset_error(x, q);
		return;
	}
	switch (q->op) {
	case SH_OP_NONE:
		put_value(x, &v, quoted);
		break;
	case SH_OP_LENGTH:
		do_length(x, &v, quoted);
		break;
	case SH_OP_MINUS:
		if (null)
			put_word(x, q->arg, quoted);
		else
			put_value(x, &v, quoted);
		break;
	case SH_OP_PLUS:
		if (!null)
			put_word(x, q->arg, quoted);
		else if (v.list && v.sep == '@' && quoted)
			x->at_empty = true;
		break;
	case SH_OP_ASSIGN:
		if (null)
			do_assign(x, q, quoted);
		else
			put_value(x, &v, quoted);
		break;
	case SH_OP_ERROR:
		if (null)
			do_error(x, q, v.set);
		else
			put_value(x, &v, quoted);
		break;
	case SH_OP_SLICE:
		do_slice(x, q, &v, quoted);
		break;
	default:
		do_each(x, q, &v, quoted);
		break;
	}
}
