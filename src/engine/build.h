/* build: struct dogwood_event, the builder behind the public setters: two records (history,
 * context), scope and entity data, all in one arena that is emptied, not freed, between events.
 * Values and texts are copied in. The first mistake is kept and makes every later use fail. */
#pragma once

#include <dogwood/dogwood.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/sv.h"
#include "dogwood/event.h"

#define ENG_PATH_PARTS 16  /* parts of a dotted path */
#define ENG_ENTS_MAX   256 /* entities with data in one event */

/* A record under construction. sub[i] is the builder of member i when that is a record made by a
 * path. */
struct eng_rec {
	struct dw_member *m;
	struct eng_rec **sub;
	size_t n, cap;
};

struct eng_ent {
	struct dw_uid uid;
	struct dw_val attrs;
	bool has_attrs;
	struct dw_uid *parents;
	size_t nparents, cap;
};

struct dogwood_event {
	struct arena a;
	struct eng_rec logged, context;
	struct eng_ent *ents;
	size_t nents, cap_ents;
	struct dw_uid action;
	sv kind;
	struct dw_uid principal, resource;
	struct box_err err;
	bool bad;
};

static inline sv eng_sv(dogwood_str s)
{
	return (sv){ s.p, s.n };
}
static inline dogwood_str eng_str(sv s)
{
	return (dogwood_str){ s.p, s.n };
}

/* The event as the language sees it, without a stamp. Borrows from ev until its next change; the
 * entity vector is made in `scratch`. -1: what is wrong with it. */
int eng_build(
    const dogwood_event *ev, struct arena *scratch, struct dw_event *out, struct box_err *err);
/* dogwood_event_attrs with a value that lives in ev->a. */
void eng_event_attrs(dogwood_event *ev, sv uid, const struct dw_val *attrs);
/* `Ns::Type::"id"`, with escapes in the id. Copies into a. */
int eng_uid_parse(struct arena *a, sv text, struct dw_uid *out, struct box_err *err);
/* Append it in that form. */
void eng_uid_put(struct buf *b, const struct dw_uid *u);
/* Copy an internal error into the public one. Returns -1. */
int eng_error(struct dogwood_error *out, enum dogwood_code code, const struct box_err *err);
/* The same for what eng_set_load says. */
int eng_error_policy(struct dogwood_error *out, const struct box_err *err);
/* The same with the code that fits the error's own. */
int eng_error_auto(struct dogwood_error *out, const struct box_err *err);
