/* eschema: event schemas (.dwschema, dogwood-language.md 9) and the events they give for each
 * action of a Cedar schema: the fields a temporal pattern may name, their types, the pins that are
 * added to patterns, and which kinds ask for a decision. */
#pragma once

#include "cedar/parse.h"
#include "cedar/schema.h"
#include "dogwood/cond.h"

#define DW_ES_DEPTH  64
#define DW_ES_NODES  10000
#define DW_ES_WINDOW (24 * 60 * 60) /* seconds: max_window when it is not given */

/* A field of a derived event. */
struct dw_field {
	sv name;
	bool group; /* sub holds its members; else it is a value of `type` or of one of `ents` */
	bool required;
	const struct dw_field *sub;
	uint32_t nsub;
	const struct cedar_type *type;
	const struct cedar_entity_type *const *ents; /* principalType(A), resourceType(A) */
	uint32_t nents;
};

/* A pin of an event kind: field (dotted path of one name) and the request term it must equal. */
struct dw_pin {
	sv field;
	struct dw_term *term;
};

/* One event declaration: all events of a kind. */
struct dw_kind {
	sv name;
	bool decision;
	const struct dw_pin *pins;
	uint32_t npins;
};

/* One derived event. */
struct dw_derived {
	sv ns, id, kind;
	const struct dw_kind *of;
	const struct dw_field *fields;
	uint32_t nfields;
};

struct dw_eschema {
	const struct dw_kind *kinds;
	uint32_t nkinds;
	int64_t max_window;              /* seconds */
	sv max_window_text;              /* "24h" */
	const struct dw_derived *events; /* sorted by ns, id, kind */
	uint32_t nevents;
	/* Pins that are the same on every kind and symmetric: history is sliced by them (5.6). */
	const struct dw_pin *universal;
	uint32_t nuniversal;
};

extern const char dw_default_events[];  /* pinned.dwschema of the reference */
extern const char dw_unpinned_events[]; /* the same without pins */

/* Read and derive. schema may be NULL: then no event is derived and fields cannot be checked. NULL
 * after errors (in ds, "event-schema"). */
struct dw_eschema *dw_eschema_load(struct cedar_syms *t, struct arena *a, sv text,
    const struct cedar_schema *schema, struct cedar_diags *ds);
const struct dw_derived *dw_eschema_event(const struct dw_eschema *s, sv ns, sv id, sv kind);
const struct dw_kind *dw_eschema_kind(const struct dw_eschema *s, sv kind);
/* The field at a path, or NULL. */
const struct dw_field *dw_derived_field(const struct dw_derived *e, const sv *path, uint32_t n);
/* All dotted leaf fields, sorted; *n of them. */
const sv *dw_derived_names(struct arena *a, const struct dw_derived *e, size_t *n);
/* The same, joined with ", ". */
void dw_derived_list(struct arena *a, const struct dw_derived *e, struct buf *out);
