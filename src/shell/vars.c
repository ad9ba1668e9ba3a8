/* Shell variables. See vars.h. Names are short and come from scripts: a plain multiplicative hash
 * is enough, as one process serves one command line and crafted
 * collisions slow down only their author. */
#include "shell/vars.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shell/escape.h"
#include "shell/pattern.h"
#include "shell/shell.h"
#include "base/ban.h"

#define NAMEREF_HOPS 8

static size_t bucket_of(const char *name)
{
	size_t h = 5381;

	for (const char *p = name; *p != '\0'; p++)
		h = h * 33 + (unsigned char)*p;
	return (h ^ (h >> 8)) % SH_VAR_BUCKETS;
}

struct sh_var *sh_var_raw(struct shell *sh, const char *name)
{
	if (sh->frames_changed && (name[0] == 'F' || name[0] == 'B'))
		sh_frames_sync(sh, name);
	for (struct sh_var *v = sh->vars.bucket[bucket_of(name)]; v != NULL; v = v->next) {
		if (strcmp(v->name, name) == 0)
			return v;
	}
	return NULL;
}

struct sh_var *sh_var_find(struct shell *sh, const char *name)
{
	struct sh_var *v = sh_var_raw(sh, name);

	for (int i = 0; v != NULL && (v->flags & SH_V_NAMEREF) != 0 && v->value != NULL; i++) {
		if (i == NAMEREF_HOPS)
			return NULL;
		v = sh_var_raw(sh, v->value);
	}
	return v;
}

static struct sh_var *make(struct shell *sh, const char *name)
{
	struct sh_var *v = sh_var_raw(sh, name);
	size_t b;

	for (int i = 0; v != NULL && (v->flags & SH_V_NAMEREF) != 0 && v->value != NULL; i++) {
		if (i == NAMEREF_HOPS)
			return v;
		name = v->value;
		v = sh_var_raw(sh, name);
	}
	if (v != NULL)
		return v;
	b = bucket_of(name);
	v = sh_xalloc(1, sizeof(*v));
	v->name = sh_xstrdup(name);
	v->next = sh->vars.bucket[b];
	sh->vars.bucket[b] = v;
	return v;
}

/* A name reference to an element, `declare -n r=a[1]`: base (owned) and the text of the subscript.
 * */
static bool ref_element(struct shell *sh, const char *name, char **base, char **subscript)
{
	const char *open;
	size_t n;

	for (int i = 0; i < NAMEREF_HOPS; i++) {
		struct sh_var *v = sh_var_raw(sh, name);

		if (v == NULL || (v->flags & SH_V_NAMEREF) == 0 || v->value == NULL)
			return false;
		name = v->value;
		open = strchr(name, '[');
		n = strlen(name);
		if (open != NULL && open > name && name[n - 1] == ']') {
			sv sub = { open + 1, n - (size_t)(open - name) - 2 };

			if (sub.n > 1 && (sub.p[0] == '"' || sub.p[0] == '\'') &&
			    sub.p[sub.n - 1] == sub.p[0])
				sub = sv_sub(sub, 1, sub.n - 2);
			*base = sh_xdup((sv){ name, (size_t)(open - name) });
			*subscript = sh_xdup(sub);
			return true;
		}
	}
	return false;
}

static const char *get_element(struct shell *sh, const char *base, const char *subscript)
{
	struct sh_var *v = sh_var_find(sh, base);
	int64_t i;

	if (v == NULL)
		return NULL;
	if ((v->flags & SH_V_ASSOC) != 0)
		return sh_var_key(v, subscript);
	if (sh_arith(sh, subscript, &i) != 0)
		return NULL;
	if (i < 0)
		i += sh_var_max_index(v) + 1;
	return sh_var_index(v, i);
}

static int set_element(
    struct shell *sh, const char *base, const char *subscript, const char *value, bool append)
{
	struct sh_var *v = sh_var_find(sh, base);
	int64_t i;

	if (v != NULL && (v->flags & SH_V_ASSOC) != 0)
		return sh_var_set_key(sh, base, subscript, value, append);
	if (sh_arith(sh, subscript, &i) != 0)
		return -1;
	return sh_var_set_index(sh, base, i, value, append);
}

/* --- computed variables --- */

static const char *dynamic(struct shell *sh, const struct sh_var *v)
{
	const char *n = v->name;
	int64_t now;

	if (strcmp(n, "LINENO") == 0) {
		(void)snprintf(sh->dyn, sizeof(sh->dyn), "%d", sh->line);
	} else if (strcmp(n, "RANDOM") == 0) {
		sh->random = sh->random * 1103515245u + 12345u;
		(void)snprintf(sh->dyn, sizeof(sh->dyn), "%u", sh->random >> 16 & 0x7fffu);
	} else if (strcmp(n, "SRANDOM") == 0) {
		sh->random = sh->random * 1664525u + 1013904223u;
		(void)snprintf(sh->dyn, sizeof(sh->dyn), "%u", sh->random);
	} else if (strcmp(n, "SECONDS") == 0) {
		now = (clock_now(&sh->mono) - sh->start_ns) / NS_PER_SEC;
		(void)snprintf(
		    sh->dyn, sizeof(sh->dyn), "%lld", (long long)(now + sh->seconds_base));
	} else if (strcmp(n, "EPOCHSECONDS") == 0) {
		(void)snprintf(sh->dyn, sizeof(sh->dyn), "%lld",
		    (long long)(clock_now(&sh->wall) / NS_PER_SEC));
	} else if (strcmp(n, "EPOCHREALTIME") == 0) {
		now = clock_now(&sh->wall);
		(void)snprintf(sh->dyn, sizeof(sh->dyn), "%lld.%06lld",
		    (long long)(now / NS_PER_SEC), (long long)(now % NS_PER_SEC / 1000));
	} else if (strcmp(n, "BASH_COMMAND") == 0) {
		AUTO_BUF b = buf_with((size_t)1 << 20);

		if (sh->command != NULL)
			sh_unparse(&b, sh->command);
		free(sh->command_text);
		sh->command_text = sh_xdup(buf_ok(&b) ? buf_sv(&b) : SV(""));
		return sh->command_text;
	} else if (strcmp(n, "SHELLOPTS") == 0) {
		sh_options_text(sh, sh->dyn, sizeof(sh->dyn));
	} else if (strcmp(n, "BASHPID") == 0) {
		(void)snprintf(sh->dyn, sizeof(sh->dyn), "%d", (int)sh->self);
	} else {
		return NULL;
	}
	return sh->dyn;
}

/* --- reading --- */

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

const char *sh_var_get(struct shell *sh, const char *name)
{
	struct sh_var *v = sh_var_find(sh, name);
	char *base, *subscript;

	if (v == NULL && ref_element(sh, name, &base, &subscript)) {
		const char *s = get_element(sh, base, subscript);

		free(base);
		free(subscript);
		return s;
	}
	if (v == NULL)
		return NULL;
	if ((v->flags & SH_V_DYNAMIC) != 0)
		return dynamic(sh, v);
	if ((v->flags & SH_V_ARRAY) != 0)
		return sh_var_index(v, 0);
	if ((v->flags & SH_V_ASSOC) != 0)
		return sh_var_key(v, "0");
	return v->value;
}

/* --- writing --- */

static int readonly(struct shell *sh, const struct sh_var *v)
{
	if (v == NULL || (v->flags & SH_V_READONLY) == 0)
		return 0;
	sh_msg(sh, "%s: readonly variable", v->name);
	return -1;
}

/* The value as the attributes -i, -l, -u make it; owned. NULL after an error. */
static char *filtered(struct shell *sh, const struct sh_var *v, const char *value)
{
	char *s;

	if ((v->flags & SH_V_INTEGER) != 0) {
		int64_t n;

		if (sh_arith(sh, value, &n) != 0)
			return NULL;
		return sh_xprintf("%lld", (long long)n);
	}
	s = sh_xstrdup(value);
	if ((v->flags & (SH_V_LOWER | SH_V_UPPER)) != 0) {
		for (char *p = s; *p != '\0'; p++) {
			if ((v->flags & SH_V_LOWER) != 0 && *p >= 'A' && *p <= 'Z')
				*p = (char)(*p + 32);
			if ((v->flags & SH_V_UPPER) != 0 && *p >= 'a' && *p <= 'z')
				*p = (char)(*p - 32);
		}
	}
	return s;
}

static void after_set(struct shell *sh, const struct sh_var *v)
{
	if (strcmp(v->name, "OPTIND") == 0)
		sh->getopts_at = 0;
}

static void set_dynamic(struct shell *sh, const struct sh_var *v, const char *value)
{
	int64_t n = strtoll(value, NULL, 10);

	if (strcmp(v->name, "SECONDS") == 0) {
		sh->seconds_base = n;
		sh->start_ns = clock_now(&sh->mono);
	} else if (strcmp(v->name, "RANDOM") == 0) {
		sh->random = (uint32_t)n;
	}
}

int sh_var_set(struct shell *sh, const char *name, const char *value)
{
	struct sh_var *v;
	char *s, *base, *subscript;

	if (ref_element(sh, name, &base, &subscript)) {
		int r = set_element(sh, base, subscript, value, false);

		free(base);
		free(subscript);
		return r;
	}
	v = make(sh, name);
	if (readonly(sh, v) != 0)
		return -1;
	if ((v->flags & SH_V_DYNAMIC) != 0) {
		set_dynamic(sh, v, value);
		return 0;
	}
	if ((v->flags & SH_V_ARRAY) != 0)
		return sh_var_set_index(sh, name, 0, value, false);
	if ((v->flags & SH_V_ASSOC) != 0)
		return sh_var_set_key(sh, name, "0", value, false);
	s = filtered(sh, v, value);
	if (s == NULL)
		return -1;
	free(v->value);
	v->value = s;
	v->flags |= SH_V_SET;
	if ((sh->opts & SH_O_ALLEXPORT) != 0)
		v->flags |= SH_V_EXPORT;
	after_set(sh, v);
	return 0;
}

/* old + value: a sum for integers. Owned; NULL after an error. */
static char *appended(struct shell *sh, const struct sh_var *v, const char *old, const char *value)
{
	if (old == NULL)
		old = "";
	if ((v->flags & SH_V_INTEGER) != 0) {
		int64_t a, b;

		if (sh_arith(sh, old, &a) != 0 || sh_arith(sh, value, &b) != 0)
			return NULL;
		return sh_xprintf("%lld", (long long)((uint64_t)a + (uint64_t)b));
	}
	return sh_xprintf("%s%s", old, value);
}

int sh_var_append(struct shell *sh, const char *name, const char *value)
{
	struct sh_var *v;
	char *s, *base, *subscript;
	int r;

	if (ref_element(sh, name, &base, &subscript)) {
		r = set_element(sh, base, subscript, value, true);
		free(base);
		free(subscript);
		return r;
	}
	v = make(sh, name);
	if ((v->flags & SH_V_ARRAY) != 0)
		return sh_var_set_index(sh, name, 0, value, true);
	if ((v->flags & SH_V_ASSOC) != 0)
		return sh_var_set_key(sh, name, "0", value, true);
	s = appended(sh, v, sh_var_get(sh, name), value);
	if (s == NULL)
		return -1;
	r = sh_var_set(sh, name, s);
	free(s);
	return r;
}

struct sh_var *sh_var_declare(struct shell *sh, const char *name, unsigned flags)
{
	struct sh_var *v = make(sh, name);

	v->flags |= flags;
	return v;
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

static void clear_value(struct sh_var *v)
{
	free(v->value);
	v->value = NULL;
	sh_var_clear_elems(v);
	v->flags &= ~(unsigned)SH_V_SET;
}

static void forget(struct shell *sh, struct sh_var *v)
{
	struct sh_var **link = &sh->vars.bucket[bucket_of(v->name)];

	while (*link != v)
		link = &(*link)->next;
	*link = v->next;
	clear_value(v);
	free(v->name);
	free(v);
}

static bool saved_in(const struct sh_scope *s, const char *name);
static void restore(struct shell *sh, struct sh_saved_var *s);

/* Is the variable local to the function that runs? */
static bool local_here(struct shell *sh, const char *name)
{
	for (struct sh_scope *s = sh->vars.scope; s != NULL; s = s->prev) {
		if (saved_in(s, name))
			return true;
		if (s->is_function)
			return false;
	}
	return true;
}

static int reveal(struct shell *sh, const char *name)
{
	for (struct sh_scope *s = sh->vars.scope; s != NULL; s = s->prev) {
		for (struct sh_saved_var **link = &s->saved; *link != NULL; link = &(*link)->next) {
			struct sh_saved_var *k = *link;

			if (strcmp(k->name, name) == 0) {
				*link = k->next;
				restore(sh, k);
				return 0;
			}
		}
	}
	return 0;
}

int sh_var_unset(struct shell *sh, const char *name)
{
	struct sh_var *v = sh_var_find(sh, name);

	if (v == NULL)
		return 0;
	if ((v->flags & SH_V_READONLY) != 0) {
		sh_msg(sh, "unset: %s: cannot unset: readonly variable", v->name);
		return -1;
	}
	if ((v->flags & SH_V_LOCAL) != 0 && !local_here(sh, v->name))
		return reveal(sh, v->name); /* of a caller: what it hid is seen again, as in bash */
	if ((v->flags & SH_V_LOCAL) != 0) {
		/* A local of this function stays, unset, so that the outer one is not seen. */
		clear_value(v);
		v->flags = SH_V_LOCAL;
		return 0;
	}
	forget(sh, v);
	return 0;
}

/* --- arrays --- */

int sh_var_make_array(struct shell *sh, const char *name, bool assoc)
{
	struct sh_var *v = make(sh, name);
	char *old;

	if (readonly(sh, v) != 0)
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
	char *s = append ? appended(sh, v, found ? v->elem[at].value : "", value)
	                 : filtered(sh, v, value);

	if (s == NULL)
		return -1;
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
	struct sh_var *v = make(sh, name);
	bool found;
	size_t at;

	if (readonly(sh, v) != 0)
		return -1;
	if ((v->flags & SH_V_ASSOC) != 0) {
		char key[32];

		(void)snprintf(key, sizeof(key), "%lld", (long long)index);
		return sh_var_set_key(sh, name, key, value, append);
	}
	if (sh_var_make_array(sh, name, false) != 0)
		return -1;
	if (index < 0)
		index += sh_var_max_index(v) + 1;
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
	struct sh_var *v = make(sh, name);
	char *k = sh_xstrdup(key);
	bool found;
	size_t at;
	int r;

	if (readonly(sh, v) != 0 || sh_var_make_array(sh, name, true) != 0) {
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

	if (index < 0)
		index += sh_var_max_index(v) + 1;
	at = elem_at_index(v, index, &found);
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

/* --- scopes --- */

static bool saved_in(const struct sh_scope *s, const char *name)
{
	for (const struct sh_saved_var *k = s->saved; k != NULL; k = k->next) {
		if (strcmp(k->name, name) == 0)
			return true;
	}
	return false;
}

void sh_scope_push(struct shell *sh, bool is_function)
{
	struct sh_scope *s = sh_xalloc(1, sizeof(*s));

	s->prev = sh->vars.scope;
	s->is_function = is_function;
	sh->vars.scope = s;
}

/* Put one name back to what it was. */
static void restore(struct shell *sh, struct sh_saved_var *s)
{
	struct sh_var *v = sh_var_raw(sh, s->name);

	if (s->state.name == NULL) {
		if (v != NULL)
			forget(sh, v);
	} else {
		struct sh_var *next;
		char *name;

		if (v == NULL) {
			size_t b = bucket_of(s->name);

			v = sh_xalloc(1, sizeof(*v));
			v->name = sh_xstrdup(s->name);
			v->next = sh->vars.bucket[b];
			sh->vars.bucket[b] = v;
		}
		clear_value(v);
		next = v->next;
		name = v->name;
		free(s->state.name);
		*v = s->state;
		v->next = next;
		v->name = name;
	}
	if (strcmp(s->name, "OPTIND") == 0)
		sh->getopts_at = 0;
	free(s->name);
	free(s);
}

void sh_scope_pop(struct shell *sh)
{
	struct sh_scope *s = sh->vars.scope;

	sh->vars.scope = s->prev;
	while (s->saved != NULL) {
		struct sh_saved_var *next = s->saved->next;

		restore(sh, s->saved);
		s->saved = next;
	}
	free(s);
}

struct sh_var *sh_var_local(struct shell *sh, const char *name, bool function)
{
	struct sh_scope *s = sh->vars.scope;
	struct sh_var *v = sh_var_raw(sh, name);
	struct sh_saved_var *saved;

	while (function && s != NULL && !s->is_function)
		s = s->prev;
	if (s == NULL)
		return NULL;
	for (saved = s->saved; saved != NULL; saved = saved->next) {
		if (strcmp(saved->name, name) == 0)
			return v != NULL ? v : make(sh, name);
	}
	if (readonly(sh, v) != 0)
		return NULL;
	saved = sh_xalloc(1, sizeof(*saved));
	saved->name = sh_xstrdup(name);
	saved->next = s->saved;
	s->saved = saved;
	if (v == NULL) {
		size_t b = bucket_of(name);

		v = sh_xalloc(1, sizeof(*v));
		v->name = sh_xstrdup(name);
		v->next = sh->vars.bucket[b];
		sh->vars.bucket[b] = v;
	} else {
		struct sh_var *next = v->next;
		char *own = v->name;

		saved->state = *v;
		saved->state.name = sh_xstrdup(name);
		/* As in bash, the export attribute stays: `local PATH=...` must reach programs. */
		*v = (struct sh_var){ .next = next, .name = own, .flags = v->flags & SH_V_EXPORT };
	}
	v->flags |= SH_V_LOCAL;
	return v;
}

/* --- listings --- */

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct sh_var *const *)a)->name, (*(struct sh_var *const *)b)->name);
}

struct sh_var **sh_vars_sorted(struct shell *sh, size_t *n)
{
	struct sh_var **out;
	size_t k = 0;

	for (size_t b = 0; b < SH_VAR_BUCKETS; b++) {
		for (struct sh_var *v = sh->vars.bucket[b]; v != NULL; v = v->next)
			k++;
	}
	out = sh_xalloc(k + 1, sizeof(struct sh_var *));
	*n = 0;
	for (size_t b = 0; b < SH_VAR_BUCKETS; b++) {
		for (struct sh_var *v = sh->vars.bucket[b]; v != NULL; v = v->next)
			out[(*n)++] = v;
	}
	qsort(out, *n, sizeof(struct sh_var *), by_name);
	return out;
}

void sh_vars_environ(struct shell *sh, struct sh_vec *out)
{
	size_t n;
	struct sh_var **v = sh_vars_sorted(sh, &n);

	for (size_t i = 0; i < n; i++) {
		if ((v[i]->flags & SH_V_EXPORT) != 0 && v[i]->value != NULL &&
		    (v[i]->flags & SH_V_NAMEREF) == 0)
			sh_vec_push(out, sh_xprintf("%s=%s", v[i]->name, v[i]->value));
	}
	free(v);
}

static void put_dquoted(struct buf *out, const char *s)
{
	bool ctl = false;

	for (const char *p = s; *p != '\0'; p++)
		ctl = ctl || (unsigned char)*p < 0x20 || *p == 0x7f;
	if (ctl) {
		sh_quote(out, sv_c(s), true);
		return;
	}
	buf_put_byte(out, '"');
	for (const char *p = s; *p != '\0'; p++) {
		if (strchr("\"\\$`", *p) != NULL)
			buf_put_byte(out, '\\');
		buf_put_byte(out, (uint8_t)*p);
	}
	buf_put_byte(out, '"');
}

void sh_var_print(struct buf *out, const struct sh_var *v, const char *command)
{
	static const struct {
		unsigned flag;
		char letter;
	} letters[] = { { SH_V_ARRAY, 'a' }, { SH_V_ASSOC, 'A' }, { SH_V_INTEGER, 'i' },
		{ SH_V_LOWER, 'l' }, { SH_V_NAMEREF, 'n' }, { SH_V_READONLY, 'r' },
		{ SH_V_UPPER, 'u' }, { SH_V_EXPORT, 'x' } };
	bool any = false;

	buf_putf(out, "%s -", command);
	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
		if ((v->flags & letters[i].flag) != 0) {
			buf_put_byte(out, (uint8_t)letters[i].letter);
			any = true;
		}
	}
	buf_putf(out, "%s %s", any ? "" : "-", v->name);
	if ((v->flags & (SH_V_ARRAY | SH_V_ASSOC)) != 0) {
		if ((v->flags & SH_V_SET) != 0 || v->nelem != 0) {
			buf_put_c(out, "=(");
			for (size_t i = 0; i < v->nelem; i++) {
				if (i != 0 && (v->flags & SH_V_ARRAY) != 0)
					buf_put_byte(out, ' ');
				buf_put_byte(out, '[');
				if (v->elem[i].key != NULL)
					sh_quote(out, sv_c(v->elem[i].key), true);
				else
					buf_putf(out, "%lld", (long long)v->elem[i].index);
				buf_put_c(out, "]=");
				put_dquoted(out, v->elem[i].value);
				if ((v->flags & SH_V_ASSOC) != 0)
					buf_put_byte(out, ' ');
			}
			buf_put_c(out, ")");
		}
	} else if (v->value != NULL) {
		buf_put_byte(out, '=');
		put_dquoted(out, v->value);
	}
	buf_put_byte(out, '\n');
}

void sh_vars_fini(struct shell *sh)
{
	while (sh->vars.scope != NULL)
		sh_scope_pop(sh);
	for (size_t b = 0; b < SH_VAR_BUCKETS; b++) {
		while (sh->vars.bucket[b] != NULL)
			forget(sh, sh->vars.bucket[b]);
	}
}
