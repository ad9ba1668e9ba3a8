/* The entity store: attributes, tags and ancestors of entities, by reference.
 *
 * A store is built once (cedar_entities_add …, then cedar_entities_close, which computes the
 * transitive closure of the parents and refuses cycles) and then only read. A store can stand on
 * another one (the actions of a schema below the entities of one request): what it does not hold
 * is looked up there. */
#pragma once

#include "cedar/value.h"

#define CEDAR_MAX_ENTITIES  ((size_t)1 << 20)
#define CEDAR_MAX_ANCESTORS ((size_t)1 << 24) /* of all entities of a store together */

struct cedar_entity_data {
	struct cedar_uid uid;
	const struct cedar_record *attrs; /* NULL = none */
	const struct cedar_record *tags;  /* NULL = none */
	const struct cedar_uid *parents;
	uint32_t n_parents;
	/* Set by cedar_entities_close: every ancestor, sorted. */
	const struct cedar_uid *ancestors;
	uint32_t n_ancestors;
};

struct cedar_entities {
	struct arena *a; /* everything is here; set by the caller */
	const struct cedar_entities *below;
	struct cedar_entity_data *e;
	size_t n, cap;
	uint32_t *slot; /* hash table of positions + 1 */
	size_t n_slot;
	bool closed;
};

/* An empty store in a, on top of below (which may be NULL and must be closed). */
static inline struct cedar_entities cedar_entities_in(
    struct arena *a, const struct cedar_entities *below)
{
	return (struct cedar_entities){ .a = a, .below = below };
}
/* Add an entity; the pieces are borrowed and must live as long as the store. The very same entity
 * may be added again, as in Cedar. -1 with *err: another of that name is there, or a limit. */
int cedar_entities_add(
    struct cedar_entities *s, const struct cedar_entity_data *e, struct box_err *err);
/* Compute ancestors. -1 with *err: a cycle, or a limit. */
int cedar_entities_close(struct cedar_entities *s, struct box_err *err);
/* NULL when neither this store nor one below holds it. s may be NULL (the empty store). */
const struct cedar_entity_data *cedar_entities_find(
    const struct cedar_entities *s, struct cedar_uid u);
/* `a in b`: equal, or b is an ancestor of a. */
bool cedar_entities_in_hierarchy(
    const struct cedar_entities *s, struct cedar_uid a, struct cedar_uid b);
