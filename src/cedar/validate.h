/* The strict validator of policies, and the checks of requests and entities against a schema
 * (spec 3.6). */
#pragma once

#include "cedar/eval.h"
#include "cedar/schema.h"

/* Validate n policies (templates are checked with their slots unknown). Findings go to ds in the
 * order of the policies: errors, and warnings such as "policy is impossible". Messages begin
 * "for policy `ID`, " as Cedar's do. Foreign leaves have the type they carry (Bool when they
 * carry none). Returns the number of errors. */
size_t cedar_validate(
    const struct cedar_schema *s, const struct cedar_link *link, size_t n, struct cedar_diags *ds);
/* All policies and templates of a source. */
size_t cedar_validate_source(
    const struct cedar_schema *s, const struct cedar_source *src, struct cedar_diags *ds);

/* The actions that a policy's scope can mean, with the other two elements taken into account
 * (spec 6.2): those declared, selected by the action constraint, that apply to a principal type
 * and a resource type the scope allows. Vector in a; -1 without room. Groups without appliesTo
 * are not among them. */
int cedar_policy_actions(const struct cedar_schema *s, const struct cedar_policy *p,
    struct arena *a, const struct cedar_action ***out, size_t *n);

/* Does a value have a type? A record may have no undeclared attributes. 0, or -1 with *err
 * naming the place. */
int cedar_value_conforms(const struct cedar_schema *s, const struct cedar_value *v,
    const struct cedar_type *ty, struct box_err *err);
/* Is the request well typed: action declared, principal and resource of a type it applies to,
 * context of its shape, enum ids? */
int cedar_request_conforms(
    const struct cedar_schema *s, const struct cedar_request *rq, struct box_err *err);
/* Is an entity as declared: known type, attributes, tags, parents of allowed types, enum id; an
 * action entity as in the schema? */
int cedar_entity_conforms(
    const struct cedar_schema *s, const struct cedar_entity_data *e, struct box_err *err);
