/* Schemas, in two layers.
 *
 * struct cedar_schema_src is the schema as declared: namespaces, common types, entity types,
 * actions, with names as written. Both syntaxes (human, JSON) are read into it and written from
 * it, so translation loses nothing but comments; Dogwood's lowering adds attributes to it.
 * struct cedar_schema is the resolved form: every name looked up, common types replaced,
 * hierarchies closed. The validator and the event schemas work on it.
 *
 * Source: spec 3.5. */
#pragma once

#include "cedar/ast.h"
#include "cedar/entity.h"

/* ---- as declared --------------------------------------------------------------------------- */

enum cedar_sty_kind {
	CEDAR_STY_NAME,   /* name as written: common type, entity type, primitive or extension */
	CEDAR_STY_ENTITY, /* JSON {"type":"Entity","name":…}: an entity type only */
	CEDAR_STY_COMMON, /* JSON {"type":"T"}: a common type only */
	CEDAR_STY_PRIM,   /* JSON "Long" "String" "Boolean", and "Extension": never a user's type */
	CEDAR_STY_SET,
	CEDAR_STY_RECORD
};

struct cedar_sattr {
	cedar_sym name;
	bool required;
	struct cedar_sty *type;
	struct cedar_annotation *ann;
	uint32_t n_ann;
};

struct cedar_sty {
	enum cedar_sty_kind kind;
	cedar_sym name; /* NAME, ENTITY, COMMON, PRIM ("Long", "String", "Bool", "decimal", …) */
	struct cedar_sty *elem;   /* SET */
	struct cedar_sattr *attr; /* RECORD */
	uint32_t n_attr;
	bool open; /* RECORD: "additionalAttributes" (refused by the resolver) */
	struct cedar_span span;
};

struct cedar_scommon {
	cedar_sym name;
	struct cedar_sty *type;
	struct cedar_annotation *ann;
	uint32_t n_ann;
	struct cedar_span span;
};

struct cedar_sentity {
	cedar_sym name;
	const cedar_sym *parent; /* as written */
	uint32_t n_parent;
	struct cedar_sty *shape; /* NULL = {} */
	struct cedar_sty *tags;  /* NULL = none */
	const cedar_sym *enum_id;
	uint32_t n_enum; /* > 0: enumerated */
	struct cedar_annotation *ann;
	uint32_t n_ann;
	struct cedar_span span;
};

struct cedar_saction_ref {
	cedar_sym type; /* as written, NULL = Action of the current namespace */
	cedar_sym id;
};

struct cedar_saction {
	cedar_sym id;
	const struct cedar_saction_ref *parent;
	uint32_t n_parent;
	bool applies; /* has appliesTo */
	const cedar_sym *principal, *resource;
	uint32_t n_principal, n_resource;
	struct cedar_sty *context; /* NULL = {} */
	struct cedar_annotation *ann;
	uint32_t n_ann;
	struct cedar_span span;
};

struct cedar_snamespace {
	cedar_sym name; /* "" = the empty one */
	struct cedar_scommon *common;
	struct cedar_sentity *entity;
	struct cedar_saction *action;
	uint32_t n_common, n_entity, n_action;
	struct cedar_annotation *ann;
	uint32_t n_ann;
};

struct cedar_schema_src {
	struct cedar_snamespace *ns;
	uint32_t n_ns;
};

#define CEDAR_SCHEMA_MAX            ((size_t)16 << 20) /* bytes of text */
#define CEDAR_SCHEMA_MAX_DEPTH      64
#define CEDAR_SCHEMA_MAX_TYPE_NODES ((size_t)1 << 20) /* after common types are replaced */

/* Human syntax (a leading byte-order mark is skipped). 0, or -1 with errors in ds. */
int cedar_schema_parse(struct cedar_syms *t, struct arena *a, sv text, struct cedar_schema_src *out,
    struct cedar_diags *ds);
/* JSON syntax. */
int cedar_schema_parse_json(struct cedar_syms *t, struct arena *a, sv text,
    struct cedar_schema_src *out, struct cedar_diags *ds);
/* Write it in human syntax, or as indented JSON. */
void cedar_schema_put(struct buf *b, const struct cedar_schema_src *s);
void cedar_schema_put_json(struct buf *b, const struct cedar_schema_src *s);
/* The action of a namespace, or NULL. */
struct cedar_saction *cedar_schema_src_action(struct cedar_schema_src *s, sv ns, sv id);
/* Make the context of an action of namespace ns a record of its own: a common type it names is
 * copied in (its names made whole), so that attributes can be added to this action alone. 0, or
 * -1 without room or when the name means no record. */
int cedar_schema_own_context(struct cedar_syms *t, struct arena *a, struct cedar_schema_src *s,
    sv ns, struct cedar_saction *x);
/* Add (or replace) an attribute of the record type *ty (NULL: a new empty record), in place. -1
 * when a is full. */
int cedar_sty_add(
    struct arena *a, struct cedar_sty **ty, cedar_sym name, struct cedar_sty *type, bool required);

/* ---- resolved ------------------------------------------------------------------------------ */

enum cedar_type_kind {
	CEDAR_TY_NEVER, /* no value: element of the empty set */
	CEDAR_TY_TRUE,
	CEDAR_TY_FALSE,
	CEDAR_TY_BOOL,
	CEDAR_TY_LONG,
	CEDAR_TY_STRING,
	CEDAR_TY_SET,
	CEDAR_TY_RECORD,
	CEDAR_TY_ENTITY, /* one entity type, or any entity (ent NULL) */
	CEDAR_TY_DECIMAL,
	CEDAR_TY_IP,
	CEDAR_TY_DATETIME,
	CEDAR_TY_DURATION
};

struct cedar_type;
struct cedar_attr {
	cedar_sym name;
	const struct cedar_type *type;
	bool required;
};
struct cedar_type {
	enum cedar_type_kind kind;
	const struct cedar_type *elem; /* SET; NULL = element unknown (the empty set) */
	const struct cedar_attr *attr; /* RECORD, sorted by name */
	uint32_t n_attr;
	const struct cedar_entity_type *ent; /* ENTITY */
};

struct cedar_entity_type {
	cedar_sym name;                 /* whole */
	const struct cedar_type *shape; /* a RECORD */
	const struct cedar_type *tags;  /* NULL = no tags */
	const cedar_sym *enum_id;
	uint32_t n_enum;
	const struct cedar_entity_type **parent; /* declared (memberOfTypes) */
	uint32_t n_parent;
	const struct cedar_entity_type *
	    *ancestor; /* closure, itself not included, sorted by address of name */
	uint32_t n_ancestor;
	bool is_action;                   /* the type of action entities of a namespace */
	const struct cedar_sentity *decl; /* NULL for action types */
};

struct cedar_action {
	struct cedar_uid uid;
	const struct cedar_entity_type **principal, **resource;
	uint32_t n_principal, n_resource; /* 0 and 0: a pure group */
	const struct cedar_type *context; /* a RECORD */
	const struct cedar_action **parent;
	uint32_t n_parent;
	const struct cedar_action **ancestor; /* closure, itself not included */
	uint32_t n_ancestor;
	const struct cedar_saction *decl;
};

struct cedar_schema {
	struct cedar_entity_type **etype; /* sorted by name */
	size_t n_etype;
	struct cedar_action **action; /* sorted by type, then id */
	size_t n_action;
	struct cedar_entities
	    actions; /* the action entities with their groups: put a request's store on top of it */
	struct cedar_syms *t;
	const struct cedar_schema_src *src;
};

/* Resolve. Everything goes to a and lives as long; src must too. NULL after errors (in ds). */
struct cedar_schema *cedar_schema_resolve(struct cedar_syms *t, struct arena *a,
    const struct cedar_schema_src *src, struct cedar_diags *ds);
/* Text to resolved schema in one step; json selects the syntax. */
struct cedar_schema *cedar_schema_load(
    struct cedar_syms *t, struct arena *a, sv text, bool json, struct cedar_diags *ds);
const struct cedar_entity_type *cedar_schema_etype(const struct cedar_schema *s, cedar_sym name);
const struct cedar_action *cedar_schema_action(const struct cedar_schema *s, struct cedar_uid u);
const struct cedar_attr *cedar_type_attr(const struct cedar_type *record, cedar_sym name);
/* The same by text, for messages. */
const struct cedar_attr *cedar_type_attr_named(const struct cedar_type *record, sv name);
/* Is every entity of type a possibly a descendant of one of type b (or the same type)? */
bool cedar_etype_can_be_in(const struct cedar_entity_type *a, const struct cedar_entity_type *b);
bool cedar_action_in(const struct cedar_action *a, struct cedar_uid group);
/* Cedar's name of a type, as messages print it: Long, Set<String>, Ns::T, {"a": Long,"b"?: …},
 * decimal, ipaddr. */
void cedar_put_type(struct buf *b, const struct cedar_type *ty);
