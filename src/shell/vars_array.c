/* Arrays: elements sorted by index or key. See vars.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shell/shell.h"
#include "shell/vars_int.h"
#include "base/ban.h"

static size_t elem_at_index(const struct sh_var *v, int64_t index, bool *found)
{
	size_t lo = 0, hi = v->nelem;

	/* Arrays usually grow at the end. */
	if (hi != 0 && v->elem[hi - 1].index < index)
		lo = hi;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (v->elem[mid].index < index)
			lo = mid + 1;
		else
			hi = mid;
	}
	*found = lo < v->nelem && v->elem[lo].index == index;
	return lo;
}

static size_t elem_at_key(const struct sh_var *v, const char *key, bool *found)
{
	size_t lo = 0, hi = v->nelem;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (strcmp(v->elem[mid].key, key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	*found = lo < v->nelem && strcmp(v->elem[lo].key, key) == 0;
	return lo;
}

const char *sh_var_index(const struct sh_var *v, int64_t index)
{
	bool found;
	size_t at;

	if ((v->flags & SH_V_ARRAY) == 0)
		return index == 0 ? v->value : NULL;
	at = elem_at_index(v, index, &found);
	return found ? v->elem[at].value : NULL;
}

const char *sh_var_key(const struct sh_var *v, const char *key)
{
	bool found;
	size_t at;

	if ((v->flags & SH_V_ASSOC) == 0)
		return NULL;
	at = elem_at_key(v, key, &found);
	return found ? v->elem[at].value : NULL;
}

int64_t sh_var_max_index(const struct sh_var *v)
{
	if ((v->flags & SH_V_ARRAY) == 0)
		return v->value != NULL ? 0 : -1;
	return v->nelem != 0 ? v->elem[v->nelem - 1].index : -1;
}

int64_t sh_var_from_end(const struct sh_var *v, int64_t index)
{
	/* In this order: the largest index is INT64_MAX. */
	return index < 0 ? index + 1 + sh_var_max_index(v) : index;
}

void sh_var_clear_elems(struct sh_var *v)
{
	for (size_t i = 0; i < v->nelem; i++) {
		free(v->elem[i].key);
		free(v->elem[i].value);
	}
	free(v->elem);
	v->elem = NULL;
	v->nelem = v->cap = 0;
}

int sh_var_make_array(struct shell *sh, const char *name, bool assoc)
{
	struct sh_var *v = sh_var_make(sh, name);
	char *old;

	if (sh_var_is_readonly(sh, v) != 0)
		return -1;
	if ((v->flags & (SH_V_ARRAY | SH_V_ASSOC)) != 0) {
		if (((v->flags & SH_V_ASSOC) != 0) != assoc) {
			sh_msg(sh, "%s: cannot convert %s to %s array", name,
			    assoc ? "indexed" : "associative", assoc ? "associative" : "indexed");
			return -1;
		}
		return 0;
	}
	old = v->value;
	v->value = NULL;
	v->flags |= assoc ? SH_V_ASSOC : SH_V_ARRAY;
	if (old != NULL) {
		if (assoc)
			(void)sh_var_set_key(sh, name, "0", old, false);
		else
			(void)sh_var_set_index(sh, name, 0, old, false);
		free(old);
	}
	return 0;
}

static void insert(struct sh_var *v, size_t at, struct sh_elem e)
{
	if (v->nelem == v->cap) {
		v->cap = v->cap != 0 ? v->cap * 2 : 8;
		v->elem = sh_xrealloc(v->elem, v->cap, sizeof(v->elem[0]));
	}
	memmove(&v->elem[at + 1], &v->elem[at], (v->nelem - at) * sizeof(v->elem[0]));
	v->elem[at] = e;
	v->nelem++;
}

static int store(struct shell *sh, struct sh_var *v, size_t at, bool found, struct sh_elem e,
    const char *value, bool append)
{
	char *s = append ? sh_var_appended(sh, v, found ? v->elem[at].value : "", value)
	                 : sh_var_filtered(sh, v, value);

	if (s == NULL)
		return -1;
	/* The value of an integer is an expression, which may have set other elements. */
	if ((v->flags & SH_V_INTEGER) != 0)
		at = e.key != NULL ? elem_at_key(v, e.key, &found)
		                   : elem_at_index(v, e.index, &found);
	if (found) {
		free(v->elem[at].value);
		v->elem[at].value = s;
	} else {
		e.value = s;
		if (e.key != NULL)
			e.key = sh_xstrdup(e.key);
		insert(v, at, e);
	}
	v->flags |= SH_V_SET;
	return 0;
}

int sh_var_set_index(
    struct shell *sh, const char *name, int64_t index, const char *value, bool append)
{
	struct sh_var *v = sh_var_make(sh, name);
	bool found;
	size_t at;

	if (sh_var_is_readonly(sh, v) != 0)
		return -1;
	if ((v->flags & SH_V_ASSOC) != 0) {
		char key[32];

		(void)snprintf(key, sizeof(key), "%lld", (long long)index);
		return sh_var_set_key(sh, name, key, value, append);
	}
	if (sh_var_make_array(sh, name, false) != 0)
		return -1;
	index = sh_var_from_end(v, index);
	if (index < 0) {
		sh_msg(sh, "%s: bad array subscript", name);
		return -1;
	}
	at = elem_at_index(v, index, &found);
	return store(sh, v, at, found, (struct sh_elem){ .index = index }, value, append);
}

int sh_var_set_key(
    struct shell *sh, const char *name, const char *key, const char *value, bool append)
{
	struct sh_var *v = sh_var_make(sh, name);
	char *k = sh_xstrdup(key);
	bool found;
	size_t at;
	int r;

	if (sh_var_is_readonly(sh, v) != 0 || sh_var_make_array(sh, name, true) != 0) {
		free(k);
		return -1;
	}
	at = elem_at_key(v, k, &found);
	r = store(sh, v, at, found, (struct sh_elem){ .key = k }, value, append);
	free(k);
	return r;
}

static void remove_at(struct sh_var *v, size_t at)
{
	free(v->elem[at].key);
	free(v->elem[at].value);
	memmove(&v->elem[at], &v->elem[at + 1], (v->nelem - at - 1) * sizeof(v->elem[0]));
	v->nelem--;
}

void sh_var_unset_index(struct sh_var *v, int64_t index)
{
	bool found;
	size_t at;

	at = elem_at_index(v, sh_var_from_end(v, index), &found);
	if (found)
		remove_at(v, at);
}

void sh_var_unset_key(struct sh_var *v, const char *key)
{
	bool found;
	size_t at = elem_at_key(v, key, &found);

	if (found)
		remove_at(v, at);
}
