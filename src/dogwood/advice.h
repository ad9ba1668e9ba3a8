/* advice: what was probably meant by a name that does not exist, and what to write instead of a
 * token that cannot stand in a temporal condition. Texts in the arena, or NULL. */
#pragma once

#include "cedar/schema.h"
#include "dogwood/eschema.h"

/* An event that is not declared. */
const char *dw_advice_event(
    struct arena *a, const struct dw_eschema *s, const struct dw_pred *pred);
/* A field that an event does not have. */
const char *dw_advice_field(struct arena *a, const struct dw_derived *e, sv dotted);
/* `context.name` where the context, a record, has no such member. */
const char *dw_advice_context(struct arena *a, const struct cedar_type *context, sv name);
/* A member that a record does not have. */
const char *dw_advice_member(struct arena *a, const struct cedar_type *record, sv name);
const char *dw_advice_etype(struct arena *a, const struct cedar_schema *s, sv name);
/* A token; expected as the message names it, may be NULL. */
const char *dw_advice_token(const struct cedar_tok *tok, const char *expected);
