/* Cedar's JSON forms: values, entities, requests, policies (EST). Schemas are in schema.h.
 *
 * Hostile input: read through base/json.h (or jansson) with limits on size and depth; duplicate
 * keys are refused. */
#pragma once

#include "cedar/eval.h"
#include "cedar/schema.h"

#define CEDAR_JSON_MAX       ((size_t)64 << 20)
#define CEDAR_JSON_MAX_DEPTH 512

/* Strings of the result are found in t or made in a, so t is only read: fit for concurrent use.
 * ty (NULL: unknown) allows the forms without wrapper: a string for an extension value,
 * {"type","id"} for an entity. */
int cedar_json_value(const struct cedar_syms *t, struct arena *a, sv text,
    const struct cedar_type *ty, struct cedar_value *out, struct box_err *err);
/* An array of entities into a store, which is closed by it. With s: attributes are read by their
 * declared types, and action entities of the schema may be listed again. */
int cedar_json_entities(const struct cedar_syms *t, sv text, const struct cedar_schema *s,
    struct cedar_entities *store, struct box_err *err);
/* {"principal": {"type","id"}|"T::\"id\"", "action":…, "resource":…, "context": {…}} */
int cedar_json_request(const struct cedar_syms *t, struct arena *a, sv text,
    const struct cedar_schema *s, struct cedar_request *out, struct box_err *err);

/* Policies in JSON: one policy object, {"staticPolicies": {id: policy}, "templates": {…},
 * "templateLinks": [{templateId, newId, values: {"?principal": …}}]}. */
struct cedar_json_set {
	struct cedar_source src; /* policies and templates; ids set */
	struct cedar_link *link; /* the static policies, then the links */
	size_t n_link;
};
int cedar_json_policies(struct cedar_syms *t, struct arena *a, sv text, struct cedar_json_set *out,
    struct cedar_diags *ds);
struct cedar_policy *cedar_json_policy(
    struct cedar_syms *t, struct arena *a, sv text, sv id, struct cedar_diags *ds);

void cedar_put_value_json(struct buf *b, const struct cedar_value *v);
void cedar_put_policy_json(
    struct buf *b, const struct cedar_policy *p, const struct cedar_print *how);
void cedar_put_source_json(
    struct buf *b, const struct cedar_source *src, const struct cedar_print *how);
