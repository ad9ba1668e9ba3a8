/* vars: shell variables (scalars, arrays, associative arrays), their attributes, and the dynamic
 * scopes that `local` and `NAME=value command` make. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/sv.h"
#include "shell/mem.h"

struct shell;

enum sh_var_flags {
	SH_V_EXPORT = 1,
	SH_V_READONLY = 2,
	SH_V_INTEGER = 4,
	SH_V_LOWER = 8,
	SH_V_UPPER = 16,
	SH_V_NAMEREF = 32,
	SH_V_ARRAY = 64, /* indexed */
	SH_V_ASSOC = 128,
	SH_V_SET = 256, /* has a value (an array: was assigned) */
	SH_V_LOCAL = 512,
	SH_V_DYNAMIC = 1024 /* computed: RANDOM, SECONDS, LINENO, ... */
};

struct sh_elem {
	int64_t index;
	char *key; /* associative arrays */
	char *value;
};

struct sh_var {
	struct sh_var *next; /* in its bucket */
	char *name;
	unsigned flags;
	char *value;          /* scalar; NULL when unset */
	struct sh_elem *elem; /* arrays: sorted by index or key */
	size_t nelem, cap;
};

#define SH_VAR_BUCKETS 256
struct sh_saved_var {
	struct sh_saved_var *next;
	struct sh_var state; /* what the name was before; name == NULL: it did not exist */
	char *name;
};
struct sh_scope {
	struct sh_scope *prev;
	struct sh_saved_var *saved;
	bool is_function; /* `local` belongs to the nearest such scope */
};
struct sh_vars {
	struct sh_var *bucket[SH_VAR_BUCKETS];
	struct sh_scope *scope;
};

/* The variable, or NULL. Name references are followed by sh_var_find, not by sh_var_raw. */
struct sh_var *sh_var_find(struct shell *sh, const char *name);
struct sh_var *sh_var_raw(struct shell *sh, const char *name);
/* Value of a scalar or of element 0; NULL when unset. Borrowed until the next change. Dynamic
 * variables are computed. */
const char *sh_var_get(struct shell *sh, const char *name);
/* Set a scalar (element 0 of an array). 0, or -1 after the message "NAME: readonly variable". */
int sh_var_set(struct shell *sh, const char *name, const char *value);
int sh_var_append(struct shell *sh, const char *name, const char *value);
/* Create if needed and add attributes. */
struct sh_var *sh_var_declare(struct shell *sh, const char *name, unsigned flags);
/* 0; -1 after a message when it is readonly. */
int sh_var_unset(struct shell *sh, const char *name);

/* Arrays. A key for an indexed array is an evaluated index (negative counts from the end). */
int sh_var_make_array(struct shell *sh, const char *name, bool assoc);
int sh_var_set_index(
    struct shell *sh, const char *name, int64_t index, const char *value, bool append);
int sh_var_set_key(
    struct shell *sh, const char *name, const char *key, const char *value, bool append);
const char *sh_var_index(const struct sh_var *v, int64_t index);
const char *sh_var_key(const struct sh_var *v, const char *key);
void sh_var_unset_index(struct sh_var *v, int64_t index);
void sh_var_unset_key(struct sh_var *v, const char *key);
void sh_var_clear_elems(struct sh_var *v);
int64_t sh_var_max_index(const struct sh_var *v); /* -1 for an empty array */
/* An index as scripts write it: a negative one counts from the end (still negative: before the
 * start). */
int64_t sh_var_from_end(const struct sh_var *v, int64_t index);

void sh_scope_push(struct shell *sh, bool is_function);
void sh_scope_pop(struct shell *sh);
/* Make name local to the nearest function scope (or to the innermost scope when function is false);
 * it is then unset, with no attributes. Does nothing when it already is. NULL after a message when
 * it is readonly or there is no such scope. */
struct sh_var *sh_var_local(struct shell *sh, const char *name, bool function);

/* "NAME=value" of all exported variables, sorted. */
void sh_vars_environ(struct shell *sh, struct sh_vec *out);
/* All variables, sorted by name. Borrowed pointers; free the array. */
struct sh_var **sh_vars_sorted(struct shell *sh, size_t *n);
void sh_vars_fini(struct shell *sh);
/* `declare -p` form of one variable: "declare -x NAME=\"value\"". */
void sh_var_print(struct buf *out, const struct sh_var *v, const char *command);
