/* Shell variables. See vars.h. Names are short and come from scripts: a plain multiplicative hash
 * is enough, as one process serves one command line and crafted collisions slow down only their
 * author. */
#include "shell/vars.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shell/escape.h"
#include "shell/pattern.h"
#include "shell/shell.h"
#include "shell/vars_int.h"
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

struct sh_var *sh_var_make(struct shell *sh, const char *name)
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
	return sh_var_index(v, sh_var_from_end(v, i));
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

int sh_var_is_readonly(struct shell *sh, const struct sh_var *v)
{
	if (v == NULL || (v->flags & SH_V_READONLY) == 0)
		return 0;
	sh_msg(sh, "%s: readonly variable", v->name);
	return -1;
}

/* The value as the attributes -i, -l, -u make it; owned. NULL after an error. */
char *sh_var_filtered(struct shell *sh, const struct sh_var *v, const char *value)
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
	v = sh_var_make(sh, name);
	if (sh_var_is_readonly(sh, v) != 0)
		return -1;
	if ((v->flags & SH_V_DYNAMIC) != 0) {
		set_dynamic(sh, v, value);
		return 0;
	}
	if ((v->flags & SH_V_ARRAY) != 0)
		return sh_var_set_index(sh, name, 0, value, false);
	if ((v->flags & SH_V_ASSOC) != 0)
		return sh_var_set_key(sh, name, "0", value, false);
	s = sh_var_filtered(sh, v, value);
	if (s == NULL)
		return -1;
	if ((v->flags & (SH_V_ARRAY | SH_V_ASSOC)) != 0) { /* x='x[5]=2' of an integer */
		int r = sh_var_set(sh, name, s);

		free(s);
		return r;
	}
	free(v->value);
	v->value = s;
	v->flags |= SH_V_SET;
	if ((sh->opts & SH_O_ALLEXPORT) != 0)
		v->flags |= SH_V_EXPORT;
	after_set(sh, v);
	return 0;
}

/* old + value: a sum for integers. Owned; NULL after an error. */
char *sh_var_appended(struct shell *sh, const struct sh_var *v, const char *old, const char *value)
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
	v = sh_var_make(sh, name);
	if ((v->flags & SH_V_ARRAY) != 0)
		return sh_var_set_index(sh, name, 0, value, true);
	if ((v->flags & SH_V_ASSOC) != 0)
		return sh_var_set_key(sh, name, "0", value, true);
	s = sh_var_appended(sh, v, sh_var_get(sh, name), value);
	if (s == NULL)
		return -1;
	r = sh_var_set(sh, name, s);
	free(s);
	return r;
}

struct sh_var *sh_var_declare(struct shell *sh, const char *name, unsigned flags)
{
	struct sh_var *v = sh_var_make(sh, name);

	v->flags |= flags;
	return v;
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
			return v != NULL ? v : sh_var_make(sh, name);
	}
	if (sh_var_is_readonly(sh, v) != 0)
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

void sh_vars_fini(struct shell *sh)
{
	while (sh->vars.scope != NULL)
		sh_scope_pop(sh);
	for (size_t b = 0; b < SH_VAR_BUCKETS; b++) {
		while (sh->vars.bucket[b] != NULL)
			forget(sh, sh->vars.bucket[b]);
	}
}
