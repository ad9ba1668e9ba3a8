/* A resolution at work: shared by schema.c (declarations, hierarchies) and schema_types.c
 * (types). */
#pragma once

#include "cedar/schema.h"
#include "cedar/smap.h"

struct common {
	const struct cedar_scommon *decl;
	cedar_sym ns;
	const struct cedar_type *type;
	size_t size; /* nodes of type written out */
	enum { C_NEW, C_OPEN, C_DONE } state;
};

struct res {
	struct cedar_syms *t;
	struct arena *a;
	struct cedar_diags *ds;
	const struct cedar_schema_src *src;
	struct cedar_schema *out;
	struct smap commons; /* whole name -> struct common */
	struct smap etypes;  /* whole name -> struct cedar_entity_type, action types too */
	struct smap actions; /* (type, id) -> struct cedar_action */
	cedar_sym none;
	size_t links;
	unsigned depth;
	bool failed;
};

/* Report: before `name` after. The resolution has failed, and goes on. */
void res_fail(struct res *r, const struct cedar_span *at, const char *before, sv name,
    const char *after, const char *hint);
/* Report, once, that there is no room; NULL. */
void *res_nomem(struct res *r);
/* Report a name that means nothing, with one that is near. */
void res_unknown(struct res *r, const struct cedar_span *at, const char *what, cedar_sym name);
/* The name of a declaration of a namespace; NULL without room. */
cedar_sym res_whole(struct res *r, cedar_sym ns, cedar_sym name);
/* The two whole names a written one can mean; the second NULL when there is one only. */
bool res_possible(struct res *r, cedar_sym ns, cedar_sym name, cedar_sym out[2]);
/* A type as written, a common type, a shape or context (a record, or what names one; s NULL: the
 * empty one). *size grows by its nodes. NULL after an error. */
const struct cedar_type *res_type(
    struct res *r, cedar_sym ns, const struct cedar_sty *s, size_t *size);
const struct cedar_type *res_common(struct res *r, struct common *c, size_t *size);
const struct cedar_type *res_shape(
    struct res *r, cedar_sym ns, const struct cedar_sty *s, const struct cedar_span *at);
