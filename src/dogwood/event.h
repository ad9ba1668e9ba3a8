/* event: one thing that happened, as policy sees it. An event has two bags on purpose
 * (dogwood-language.md 5.1): `logged` is what history remembers and temporal patterns read;
 * `context` is what the present request offers to `context.…`. A value needed on both sides stands
 * in both.
 *
 * Everything here borrows: an event and all its values live as long as the storage they were built
 * in (an arena, a decoded record). Records come from disk and from programs that embed us, so
 * decoding is bounded in size, depth and count. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/rd.h"
#include "base/sv.h"

#define DW_DEPTH_MAX       64                    /* nesting of a value */
#define DW_EVENT_BYTES_MAX ((size_t)1024 * 1024) /* one encoded event */
#define DW_TIME_FOREVER    INT64_MAX

/* Kinds of value. The numbers are the tags of the stored form: never renumber. */
enum dw_tag {
	DW_NULL = 0,
	DW_BOOL = 1,
	DW_INT = 2,
	DW_DECIMAL = 3, /* text, as it was written; compared by number */
	DW_STRING = 4,
	DW_ENTITY = 5,
	DW_ARRAY = 6,  /* ordered */
	DW_OBJECT = 7, /* member names are unique */
};

/* An entity reference: full type name ("Box::Agent") and decoded id. type.p == NULL: none. */
struct dw_uid {
	sv type;
	sv id;
};

struct dw_member;
struct dw_val {
	enum dw_tag tag;
	union {
		bool b;
		int64_t i;
		sv s; /* DECIMAL, STRING */
		struct dw_uid ent;
		struct {
			const struct dw_val *v;
			size_t n;
		} arr;
		struct {
			const struct dw_member *m;
			size_t n;
		} obj;
	} u;
};
struct dw_member {
	sv name;
	struct dw_val val;
};

/* Supplied data of one entity. */
struct dw_entity {
	struct dw_uid uid;
	struct dw_val attrs; /* OBJECT, or NULL for none */
	const struct dw_uid *parents;
	size_t nparents;
};

struct dw_event {
	sv ns;   /* action namespace path with its type: "Box::Action" */
	sv id;   /* action id: "fs:read" */
	sv kind; /* "request", "response", "error", or a kind of the event schema */
	/* in the tick unit of the policy set (seconds in traces, nanoseconds in the engine) */
	int64_t ts;
	struct dw_uid principal, resource; /* .type.p == NULL: the event has none */
	struct dw_val logged;              /* OBJECT (or NULL: empty) */
	struct dw_val context; /* OBJECT (or NULL: empty); only decision events need it */
	const struct dw_entity *ents;
	size_t nents;
};

static inline struct dw_val dw_null(void)
{
	return (struct dw_val){ .tag = DW_NULL };
}
static inline struct dw_val dw_bool(bool b)
{
	return (struct dw_val){ .tag = DW_BOOL, .u.b = b };
}
static inline struct dw_val dw_int(int64_t i)
{
	return (struct dw_val){ .tag = DW_INT, .u.i = i };
}
static inline struct dw_val dw_str(sv s)
{
	return (struct dw_val){ .tag = DW_STRING, .u.s = s };
}
static inline struct dw_val dw_decimal(sv text)
{
	return (struct dw_val){ .tag = DW_DECIMAL, .u.s = text };
}
static inline struct dw_val dw_ent(sv type, sv id)
{
	return (struct dw_val){ .tag = DW_ENTITY, .u.ent = { type, id } };
}
static inline struct dw_val dw_obj(const struct dw_member *m, size_t n)
{
	return (struct dw_val){ .tag = DW_OBJECT, .u.obj = { m, n } };
}
static inline bool dw_uid_is_none(const struct dw_uid *u)
{
	return u->type.p == NULL;
}

/* Member `name` of an object; NULL when v is no object or lacks it. */
const struct dw_val *dw_get(const struct dw_val *v, sv name);
/* The value at a dotted path of names ("input", "host"); NULL when a step is missing. */
const struct dw_val *dw_walk(const struct dw_val *v, const sv *path, size_t n);
/* Equality of the temporal language (5.5): same kind; decimals by number when both are valid Cedar
 * decimals, else by text; arrays in order; objects by member. Never fails. */
bool dw_val_eq(const struct dw_val *a, const struct dw_val *b);
/* The bytes under which equal values (dw_val_eq) are equal and unequal ones differ: keys of the
 * monitors' tables. Appends to b; framed, so that the concatenation of several keys is injective
 * too. Strings over 256 bytes stand there by their SHA-256. */
void dw_val_key(struct buf *b, const struct dw_val *v);
/* A Cedar decimal (-?digits.digits, 1 to 4 fraction digits, in range) as value times 10 000. false:
 * not one. */
bool dw_decimal_parse(sv s, int64_t *ten_thousandths);
/* A deep copy in an arena; false when there was no room. */
bool dw_val_copy(struct arena *a, const struct dw_val *v, struct dw_val *out);
/* The value in Dogwood's literal form (strings escaped), for traces and messages. */
void dw_val_print(struct buf *b, const struct dw_val *v);

/* What dw_event_put writes besides action, kind, stamp, scope and the logged bag. */
enum dw_event_parts {
	DW_PUT_HISTORY = 0, /* enough to step monitors: what a recovery needs */
	DW_PUT_ALL = 1, /* also context and entities: enough to decide again (log, why, replay) */
};
/* Append the stored form of *e to b (check buf_ok). Format, big-endian: u8 version 1, u8 parts, str
 * ns, str id, str kind, u64 ts, uid principal, uid resource, value logged, [value context, u32 n, n
 * entities]. str = u32 length and bytes; uid = u8 present, [str type, str id]; value = u8 tag and
 * payload. */
void dw_event_put(struct buf *b, const struct dw_event *e, enum dw_event_parts parts);
/* Read one event. Views borrow from the bytes under r, vectors live in a. Damaged or over-large
 * input is BOX_ECORRUPT. */
int dw_event_get(struct rd *r, struct arena *a, struct dw_event *out, struct box_err *err);
void dw_val_put(struct buf *b, const struct dw_val *v);
int dw_val_get(struct rd *r, struct arena *a, struct dw_val *out, struct box_err *err);

/* Build records member by member: dw_rec_in, then dw_rec_add and its kin, then dw_rec_val. All
 * storage is in one arena; running out of room is sticky and shows in `bad`. */
struct dw_rec {
	struct arena *a;
	struct dw_member *m;
	size_t n, cap;
	bool bad;
};
static inline struct dw_rec dw_rec_in(struct arena *a)
{
	return (struct dw_rec){ .a = a };
}
void dw_rec_add(struct dw_rec *r, sv name, struct dw_val v);
static inline void dw_rec_str(struct dw_rec *r, sv name, sv s)
{
	dw_rec_add(r, name, dw_str(s));
}
static inline void dw_rec_int(struct dw_rec *r, sv name, int64_t i)
{
	dw_rec_add(r, name, dw_int(i));
}
static inline void dw_rec_bool(struct dw_rec *r, sv name, bool b)
{
	dw_rec_add(r, name, dw_bool(b));
}
static inline struct dw_val dw_rec_val(const struct dw_rec *r)
{
	return dw_obj(r->m, r->n);
}
