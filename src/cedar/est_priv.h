/* What the readers of the JSON form of policies share. */
#pragma once

#include "cedar/jtree.h"
#include "cedar/json.h"

struct er {
	struct cedar_syms *t;
	struct arena *a;
	struct cedar_diags *ds;
	struct cedar_places places; /* of the whole text */
	struct cedar_policy *pol;
};

/* A finding at j (NULL: no place). Returns NULL. */
void *est_fail(struct er *p, const struct jnode *j, const char *what);
/* The tree of the whole text, or NULL with a finding. */
struct jnode *est_start(struct er *p);
cedar_sym est_intern(struct er *p, sv s);
/* The member k of an object, or NULL with a finding. */
struct jnode *est_member(struct er *p, const struct jnode *j, const char *k);
/* Is j an object of n members? If not, a finding. */
bool est_only(struct er *p, const struct jnode *j, uint32_t n);
bool est_uid(struct er *p, const struct jnode *j, struct cedar_uid *out);
/* One policy or template. */
bool est_policy(struct er *p, const struct jnode *j, sv id, struct cedar_policy *out);
