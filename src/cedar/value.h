/* Cedar values: interned strings, the ten kinds of value, their equality, order and printed
 * form.
 *
 * Everything here is immutable once made and lives in an arena of the caller (or in the symbol
 * table). No globals: a symbol table is an explicit object. A table may be read by any number of
 * threads while no thread adds to it, so a compiled policy set is shared by concurrent decisions
 * and each decision makes its own strings in its own arena.
 *
 * Source: spec/dogwood-language.md 3.1, 3.3. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"

/* ---- strings ------------------------------------------------------------------------------- */

/* A string with its hash. Two strings are equal when the pointers are (the usual case: both
 * interned), or else when hash, length and bytes are. A name with namespaces is one string:
 * "A::B::T". A NUL follows the bytes (not counted). */
struct cedar_str {
	uint64_t hash;
	uint32_t n;
	char p[];
};
typedef const struct cedar_str *cedar_sym;

#define CEDAR_STR_MAX ((uint32_t)16 << 20) /* the longest string */

static inline sv cedar_sv(cedar_sym s)
{
	return (sv){ s->p, s->n };
}

static inline bool cedar_str_eq(cedar_sym a, cedar_sym b)
{
	return a == b ||
	       (a->hash == b->hash && a->n == b->n && (a->n == 0 || memcmp(a->p, b->p, a->n) == 0));
}

struct cedar_syms;
/* A new, empty table that will hold at most limit bytes (0 = no limit); NULL without memory. */
struct cedar_syms *cedar_syms_new(size_t limit);
void cedar_syms_free(struct cedar_syms *t);
/* The one string of this table with these bytes, made if need be; lives as long as the table.
 * NULL without memory or at the limit. Not to be called while another thread uses the table. */
cedar_sym cedar_intern(struct cedar_syms *t, sv s);
/* The string of the table with these bytes, or NULL. Read only. */
cedar_sym cedar_syms_find(const struct cedar_syms *t, sv s);
/* The string of the table if it is there, else one made in a. Read only on t, so fit for use
 * during a decision. NULL when a is full or s is longer than CEDAR_STR_MAX. */
cedar_sym cedar_str_new(const struct cedar_syms *t, struct arena *a, sv s);

/* ---- values -------------------------------------------------------------------------------- */

enum cedar_kind {
	CEDAR_BOOL,
	CEDAR_LONG,
	CEDAR_STRING,
	CEDAR_ENTITY,
	CEDAR_SET,
	CEDAR_RECORD,
	CEDAR_DECIMAL,
	CEDAR_IP,
	CEDAR_DATETIME,
	CEDAR_DURATION
};

/* An entity reference. Type is the whole name ("Ns::T"); actions are entities of a type whose
 * last part is "Action". */
struct cedar_uid {
	cedar_sym type, id;
};

static inline bool cedar_uid_eq(struct cedar_uid a, struct cedar_uid b)
{
	return cedar_str_eq(a.id, b.id) && cedar_str_eq(a.type, b.type);
}
static inline uint64_t cedar_uid_hash(struct cedar_uid u)
{
	return u.id->hash ^ (u.type->hash * 0x9e3779b97f4a7c15u);
}

/* An address with its prefix length. addr holds 4 or 16 bytes, the rest 0; host bits are kept
 * (equality needs them). */
struct cedar_ip {
	bool v6;
	uint8_t prefix;
	uint8_t addr[16];
};

struct cedar_value {
	enum cedar_kind kind;
	union {
		bool b;
		int64_t i; /* Long; decimal × 10 000; datetime and duration in ms */
		cedar_sym s;
		struct cedar_uid uid;
		const struct cedar_set *set;
		const struct cedar_record *rec;
		const struct cedar_ip *ip;
	};
};

/* Sorted by cedar_value_cmp, no two equal. */
struct cedar_set {
	uint32_t n;
	const struct cedar_value *v;
};

struct cedar_field {
	cedar_sym key;
	struct cedar_value v;
};

/* Sorted by the bytes of the key, no two equal. */
struct cedar_record {
	uint32_t n;
	const struct cedar_field *f;
};

static inline struct cedar_value cedar_bool(bool b)
{
	return (struct cedar_value){ .kind = CEDAR_BOOL, .b = b };
}
static inline struct cedar_value cedar_long(int64_t i)
{
	return (struct cedar_value){ .kind = CEDAR_LONG, .i = i };
}
static inline struct cedar_value cedar_string(cedar_sym s)
{
	return (struct cedar_value){ .kind = CEDAR_STRING, .s = s };
}
static inline struct cedar_value cedar_entity(struct cedar_uid u)
{
	return (struct cedar_value){ .kind = CEDAR_ENTITY, .uid = u };
}

/* The set of n values: sorts v in place and drops duplicates; keeps v (which must live in, or as
 * long as, a). 0, or -1 when a is full. */
int cedar_set_make(struct arena *a, struct cedar_value *v, size_t n, struct cedar_value *out);
/* The record of n fields: sorts f in place and keeps it. -1 when a is full (*dup NULL) or a key
 * occurs twice (*dup is that key). dup may be NULL. */
int cedar_record_make(
    struct arena *a, struct cedar_field *f, size_t n, struct cedar_value *out, cedar_sym *dup);
/* The value of a key, or NULL. */
const struct cedar_value *cedar_record_get(const struct cedar_record *r, cedar_sym key);
/* The same by bytes. */
const struct cedar_value *cedar_record_get_sv(const struct cedar_record *r, sv key);
bool cedar_set_has(const struct cedar_set *s, const struct cedar_value *v);
/* Is every member of b in a? */
bool cedar_set_has_all(const struct cedar_set *a, const struct cedar_set *b);
bool cedar_set_has_any(const struct cedar_set *a, const struct cedar_set *b);

/* `==` of the language: never fails; values of different kinds are unequal. */
bool cedar_value_eq(const struct cedar_value *a, const struct cedar_value *b);
/* A total order over all values, for sorting and keys; not an operator of the language.
 * Independent of addresses. */
int cedar_value_cmp(const struct cedar_value *a, const struct cedar_value *b);
/* A hash that agrees with cedar_value_eq, for one symbol table and its relatives. */
uint64_t cedar_value_hash(const struct cedar_value *v);
/* A deep copy of v into a; strings that t holds are shared, so the copy outlives the arena of v. */
int cedar_value_copy(const struct cedar_syms *t, struct arena *a, const struct cedar_value *v,
    struct cedar_value *out);
/* "bool", "long", "string", "set", "record", "(entity of type `T`)", "decimal", "ipaddr", … as
 * Cedar's errors name them. */
const char *cedar_kind_name(enum cedar_kind k);

/* ---- text ---------------------------------------------------------------------------------- */

/* The bytes of s with Cedar's escapes (\n \r \t \\ \0 \" \' as Rust's escape_debug prints them),
 * without the quotes. */
void cedar_put_escaped(struct buf *b, sv s);
/* "…" with escapes. */
void cedar_put_quoted(struct buf *b, sv s);
/* Ns::T::"id" */
void cedar_put_uid(struct buf *b, struct cedar_uid u);
/* A value as a Cedar expression that has this value. */
void cedar_put_value(struct buf *b, const struct cedar_value *v);
/* A Cedar string body (between the quotes) decoded: spec 1. NULL .p without room; or when an
 * escape is bad: then *bad is the offending part (it is never empty). */
sv cedar_unescape(struct arena *a, sv body, sv *bad);
/* An identifier? [A-Za-z_][A-Za-z0-9_]* */
bool cedar_is_ident(sv s);
/* A word that cannot be an identifier of a name: true false if then else in like has is __cedar. */
bool cedar_is_reserved(sv s);
/* `Ns::Type::"id"` as text. 0, or -1 with *err. */
int cedar_uid_parse(struct cedar_syms *t, sv text, struct cedar_uid *out, struct box_err *err);

/* ---- extension types (ext.c) --------------------------------------------------------------- */

/* The constructors of spec 3.3 on the text of their argument. 0, or -1 with the text of Cedar in
 * err. */
int cedar_decimal_parse(sv s, struct cedar_value *out, struct box_err *err);
int cedar_ip_parse(struct arena *a, sv s, struct cedar_value *out, struct box_err *err);
int cedar_datetime_parse(sv s, struct cedar_value *out, struct box_err *err);
int cedar_duration_parse(sv s, struct cedar_value *out, struct box_err *err);
