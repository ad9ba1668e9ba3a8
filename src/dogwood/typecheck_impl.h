/* Between the files of the type checks only (typecheck.c, typecheck_types.c). */
#pragma once

#include "cedar/validate.h"
#include "dogwood/set_impl.h"

/* The type of a term as these checks see it. */
enum dwt_kind { K_ANY, K_STRING, K_BOOL, K_LONG, K_DECIMAL, K_TIMEPOINT, K_ENTITY, K_OTHER };

struct dwt_type {
	enum dwt_kind k;
	sv name; /* K_ENTITY: full name; K_OTHER: as Cedar prints it */
	const struct cedar_entity_type *const *choice; /* K_ENTITY: one of several */
	uint32_t nchoice;
};

struct dwt {
	struct dw_set *s;
	struct arena *a;
	struct cedar_diags *ds;
	const struct dw_leaf_impl *leaf;
	const struct cedar_action **actions; /* that the rule can be about */
	size_t nactions;
	const struct cedar_action *act; /* the one judged now */
	size_t before;
};

/* A finding at a place; the same one for each action of a rule is one. text NULL: no memory. */
void dwt_find(struct dwt *k, struct cedar_span at, const char *hint, const char *text);
#define FIND(k, at, ...)         dwt_find((k), (at), NULL, arena_printf((k)->a, __VA_ARGS__))
#define HINTED(k, at, hint, ...) dwt_find((k), (at), (hint), arena_printf((k)->a, __VA_ARGS__))
/* The text of b in the arena; "…" without room. */
const char *dwt_text(struct dwt *k, const struct buf *b);
/* A name without its namespace. */
sv dwt_simple(sv name);
const char *dwt_path_text(struct dwt *k, const struct dw_term *t);

struct dwt_type dwt_from_cedar(struct dwt *k, const struct cedar_type *t);
struct dwt_type dwt_from_choice(const struct cedar_entity_type *const *v, uint32_t n);
struct dwt_type dwt_from_binder(const struct dwt *k, const struct dw_binder *b);
const struct cedar_entity_type *dwt_etype(const struct dwt *k, sv name);
/* A binder may name an entity type by its last segment. */
const struct cedar_entity_type *dwt_binder_etype(const struct dwt *k, sv name);
/* As messages print it. */
const char *dwt_type_name(struct dwt *k, const struct dwt_type *t);
bool dwt_compatible(const struct dwt_type *a, const struct dwt_type *b);
/* The type at a context path under the present action, or NULL; with report, a finding says why. */
const struct cedar_type *dwt_context_type(struct dwt *k, const struct dw_term *t, bool report);
/* The entity types that principal or resource can have under the present action and the scope of
 * the rule. */
struct dwt_type dwt_scope_type(struct dwt *k, const struct dw_term *t);
const struct cedar_type *dwt_attr_type(const struct cedar_entity_type *e, const struct dw_term *t);
/* principal.id, resource.type, …: always there. */
bool dwt_is_id_or_type(const struct dw_term *t);
struct dwt_type dwt_term_type(struct dwt *k, const struct dw_term *t);
