/* Assignments: scalars, elements, whole arrays. */
#include <string.h>

#include "shell/escape.h"
#include "shell/parse.h"
#include "shell/shell.h"
#include "base/ban.h"

/* The index behind the last one; -1 when there is none. */
static int64_t behind(int64_t index)
{
	return index == INT64_MAX ? -1 : index + 1;
}

static int set_next(struct shell *sh, const char *name, const char *value, int64_t *next)
{
	if (*next < 0) {
		sh_msg(sh, "%s: bad array subscript", name);
		return -1;
	}
	if (sh_var_set_index(sh, name, *next, value, false) != 0)
		return -1;
	*next = behind(*next);
	return 0;
}

/* One element of name=( ... ): [sub]=value, or words that take the next indices. */
static int element(struct shell *sh, struct arena *a, const char *name, bool assoc,
    const struct sh_assign *e, int64_t *next, char **key)
{
	struct sh_args args = { 0 };
	struct sh_var *v;
	char *value;
	struct sh_word w;
	int64_t index;

	if (e->subscript != NULL) {
		char *sub = sh_expand_str(sh, a, e->subscript, SH_X_STRING);

		value = sub != NULL ? sh_expand_str(sh, a, e->value, SH_X_ASSIGN) : NULL;
		if (value == NULL)
			return -1;
		if (assoc)
			return sh_var_set_key(sh, name, sub, value, e->append);
		if (sh_arith(sh, sub, &index) != 0)
			return -1;
		v = sh_var_find(sh, name);
		if (v != NULL)
			index = sh_var_from_end(v, index);
		if (sh_var_set_index(sh, name, index, value, e->append) != 0)
			return -1;
		*next = behind(index);
		return 0;
	}
	w = *e->value;
	w.next = NULL;
	if (sh_expand_words(sh, a, &w, &args) != 0)
		return -1;
	for (size_t i = 0; i < args.n; i++) {
		if (!assoc) {
			if (set_next(sh, name, args.v[i], next) != 0)
				return -1;
		} else if (*key == NULL) {
			*key = args.v[i]; /* bash 5.1: A=(k v k v) */
		} else {
			if (sh_var_set_key(sh, name, *key, args.v[i], false) != 0)
				return -1;
			*key = NULL;
		}
	}
	return 0;
}

/* A word that is this text. */
static struct sh_word *quoted(struct arena *a, const char *text)
{
	struct sh_word *w = sh_aalloc(a, 1, sizeof(*w));

	w->parts = sh_aalloc(a, 1, sizeof(*w->parts));
	w->parts->kind = SH_PT_QUOTED;
	w->parts->text = sv_c(text);
	return w;
}

static int array(struct shell *sh, struct arena *a, const struct sh_assign *as, unsigned flags)
{
	struct sh_var *v = sh_var_find(sh, as->name);
	bool assoc = (flags & SH_V_ASSOC) != 0 || (v != NULL && (v->flags & SH_V_ASSOC) != 0);
	struct sh_assign *done = NULL, **tail = &done;
	int64_t next = 0;
	char *key = NULL;

	if (sh_var_make_array(sh, as->name, assoc) != 0)
		return -1;
	/* Values may refer to the array itself: a=("${a[@]}" x). They are all expanded before it
	 * changes. */
	for (const struct sh_assign *e = as->elems; e != NULL; e = e->next) {
		struct sh_args args = { 0 };
		struct sh_word w = *e->value;

		if (e->subscript != NULL) {
			struct sh_assign *c = sh_aalloc(a, 1, sizeof(*c));
			char *value = sh_expand_str(sh, a, e->value, SH_X_ASSIGN);

			if (value == NULL)
				return -1;
			*c = *e;
			c->next = NULL;
			c->value = quoted(a, value);
			*tail = c;
			tail = &c->next;
			continue;
		}
		w.next = NULL;
		if (sh_expand_words(sh, a, &w, &args) != 0)
			return -1;
		for (size_t i = 0; i < args.n; i++) {
			struct sh_assign *c = sh_aalloc(a, 1, sizeof(*c));

			c->value = quoted(a, args.v[i]);
			*tail = c;
			tail = &c->next;
		}
	}
	v = sh_var_find(sh, as->name);
	if (v == NULL)
		return -1;
	if (as->append)
		next = behind(sh_var_max_index(v));
	else
		sh_var_clear_elems(v);
	v->flags |= SH_V_SET | flags;
	for (const struct sh_assign *e = done; e != NULL; e = e->next) {
		if (element(sh, a, as->name, assoc, e, &next, &key) != 0)
			return -1;
	}
	if (key != NULL)
		return sh_var_set_key(sh, as->name, key, "", false);
	return 0;
}

static int to_element(struct shell *sh, struct arena *a, const char *name,
    const struct sh_word *sub, const char *value, bool append)
{
	struct sh_var *v = sh_var_find(sh, name);
	char *text = sh_expand_str(sh, a, sub, SH_X_STRING);
	int64_t index;

	if (text == NULL)
		return -1;
	if (v != NULL && (v->flags & SH_V_ASSOC) != 0)
		return sh_var_set_key(sh, name, text, value, append);
	if (text[0] == '\0') {
		sh_msg(sh, "%s[]: bad array subscript", name);
		return -1;
	}
	if (sh_arith(sh, text, &index) != 0)
		return -1;
	return sh_var_set_index(sh, name, index, value, append);
}

int sh_assign(struct shell *sh, const struct sh_assign *as, unsigned flags)
{
	AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
	char *value;
	int r;

	if (as->is_array)
		return array(sh, &a, as, flags);
	value = sh_expand_str(sh, &a, as->value, SH_X_ASSIGN);
	if (value == NULL)
		return -1;
	if (as->subscript != NULL)
		r = to_element(sh, &a, as->name, as->subscript, value, as->append);
	else if (as->append)
		r = sh_var_append(sh, as->name, value);
	else
		r = sh_var_set(sh, as->name, value);
	if (r == 0 && (sh->opts & SH_O_XTRACE) != 0) {
		AUTO_BUF b = buf_with(SH_EXPAND_MAX);

		buf_putf(&b, "%s%s=", as->name, as->append ? "+" : "");
		sh_quote(&b, sv_c(value), true);
		sh_xtrace(sh, buf_sv(&b));
	}
	return r;
}

int sh_assign_text(struct shell *sh, const char *lvalue, const char *value)
{
	AUTO_ARENA a = { .limit = SH_EXPAND_MAX };
	const char *name;
	struct sh_word *sub;

	if (sh_parse_lvalue(&a, lvalue, &name, &sub) != 0) {
		sh_msg(sh, "`%s': not a valid identifier", lvalue);
		return -1;
	}
	if (sub != NULL)
		return to_element(sh, &a, name, sub, value, false);
	return sh_var_set(sh, name, value);
}
