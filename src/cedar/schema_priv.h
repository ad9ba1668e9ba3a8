/* Building declarations: shared by the two readers of schemas. */
#pragma once

#include "cedar/schema.h"

struct schema_caps {
	size_t ns;
};

/* A bigger vector when *cap is reached; NULL without room. */
void *schema_room(struct arena *a, void *v, size_t n, size_t *cap, size_t size);
/* "a::b"; b alone when a is empty. NULL without room. */
cedar_sym schema_join(struct cedar_syms *t, struct arena *a, cedar_sym x, cedar_sym y);
/* The namespace of this name, added if it is not there. NULL without room. */
struct cedar_snamespace *schema_namespace(
    struct arena *a, struct cedar_schema_src *s, struct schema_caps *caps, cedar_sym name);
/* Append a copy; -1 without room. */
int schema_add_common(struct arena *a, struct cedar_snamespace *ns, const struct cedar_scommon *c);
int schema_add_entity(struct arena *a, struct cedar_snamespace *ns, const struct cedar_sentity *e);
int schema_add_action(struct arena *a, struct cedar_snamespace *ns, const struct cedar_saction *x);
/* A deep copy, annotations and names shared; NULL without room. */
struct cedar_sty *schema_sty_copy(struct arena *a, const struct cedar_sty *s);
