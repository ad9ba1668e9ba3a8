/* The tree of policies and expressions, as written (spec 2). Built by parse.h or json.h in an
 * arena, never changed afterwards except by Dogwood's lowering, which replaces nodes in place.
 *
 * Dogwood is Cedar with foreign leaves: `temporal { … }` blocks and provider calls. They are
 * nodes of kind CEDAR_E_LEAF whose value comes from a callback of the host at evaluation; macro
 * calls and ?parameters are nodes too, which the host expands before it compiles. Compilation
 * refuses what is left of them. */
#pragma once

#include "cedar/diag.h"
#include "cedar/value.h"

/* Limits of a tree. A chain `a && b && …` is one node, so long conditions are not deep. */
#define CEDAR_MAX_DEPTH    256
#define CEDAR_MAX_NODES    ((size_t)1 << 20)
#define CEDAR_MAX_POLICIES ((size_t)1 << 18)

enum cedar_expr_kind {
	CEDAR_E_LIT,   /* value: Bool, Long, String, or entity reference */
	CEDAR_E_VAR,   /* var */
	CEDAR_E_SLOT,  /* var is PRINCIPAL or RESOURCE: ?principal, ?resource */
	CEDAR_E_PARAM, /* name: ?name of a macro body */
	CEDAR_E_IF,    /* arg[0..2] */
	CEDAR_E_AND,   /* arg[0..n), n >= 2, left to right */
	CEDAR_E_OR,    /* the same */
	CEDAR_E_NOT,   /* arg[0] */
	CEDAR_E_NEG,   /* arg[0] */
	CEDAR_E_EQ,    /* arg[0], arg[1]; also the following */
	CEDAR_E_NE,
	CEDAR_E_LT,
	CEDAR_E_LE,
	CEDAR_E_GT,
	CEDAR_E_GE,
	CEDAR_E_IN,
	CEDAR_E_ADD,
	CEDAR_E_SUB,
	CEDAR_E_MUL,
	CEDAR_E_CONTAINS,
	CEDAR_E_CONTAINS_ALL,
	CEDAR_E_CONTAINS_ANY,
	CEDAR_E_GET_TAG,
	CEDAR_E_HAS_TAG,
	CEDAR_E_IS_EMPTY, /* arg[0] */
	CEDAR_E_GET,      /* arg[0] . name */
	CEDAR_E_HAS,      /* arg[0] has path[0].path[1]… ; n_path >= 1 */
	CEDAR_E_LIKE,     /* arg[0] like pattern */
	CEDAR_E_IS,       /* arg[0] is name [ in arg[1] ]; n_arg is 1 or 2 */
	CEDAR_E_SET,      /* arg[0..n) */
	CEDAR_E_RECORD,   /* path[i] : arg[i] */
	/* a function or method of an extension type: ext, arg[0..n), the receiver first */
	CEDAR_E_EXT,
	CEDAR_E_LEAF, /* a foreign leaf: leaf */
	/* name(arg…), name not of Cedar: a macro (one segment) or a provider (several) */
	CEDAR_E_CALL,
	CEDAR_E_METHOD /* arg[0].name(arg[1]…), name not of Cedar: method of a provider */
};

enum cedar_var { CEDAR_PRINCIPAL, CEDAR_ACTION, CEDAR_RESOURCE, CEDAR_CONTEXT };

enum cedar_ext {
	CEDAR_X_DECIMAL,
	CEDAR_X_LESS_THAN,
	CEDAR_X_LESS_THAN_OR_EQUAL,
	CEDAR_X_GREATER_THAN,
	CEDAR_X_GREATER_THAN_OR_EQUAL,
	CEDAR_X_IP,
	CEDAR_X_IS_IPV4,
	CEDAR_X_IS_IPV6,
	CEDAR_X_IS_LOOPBACK,
	CEDAR_X_IS_MULTICAST,
	CEDAR_X_IS_IN_RANGE,
	CEDAR_X_DATETIME,
	CEDAR_X_OFFSET,
	CEDAR_X_DURATION_SINCE,
	CEDAR_X_TO_DATE,
	CEDAR_X_TO_TIME,
	CEDAR_X_DURATION,
	CEDAR_X_TO_MILLISECONDS,
	CEDAR_X_TO_SECONDS,
	CEDAR_X_TO_MINUTES,
	CEDAR_X_TO_HOURS,
	CEDAR_X_TO_DAYS,
	CEDAR_X_COUNT
};

/* A pattern of `like`: the literal runs between the stars, decoded. n runs have n - 1 stars
 * between them ("a*b" has the runs "a", "b"; "*" has two empty runs). */
struct cedar_pattern {
	uint32_t n;
	const sv *run;
};

/* A foreign leaf. The parser makes one of each temporal block with `text` set; the host sets the
 * rest. */
struct cedar_leaf {
	uint32_t
	    ordinal; /* the host's number; the parser counts temporal blocks of a policy from 0 */
	/* made by the host from a provider call: two of one text have one value in a decision */
	bool is_provider;
	sv text;              /* between the braces, as written (borrowed from the source) */
	struct cedar_span at; /* of that text */
	void *host;           /* whatever the host hangs here */
	const void
	    *type; /* const struct cedar_type * of its value for the validator; NULL = Bool */
};

struct cedar_expr {
	enum cedar_expr_kind kind;
	uint16_t depth; /* of the tree below, this node included */
	bool paren;     /* was written in parentheses (kept for printing only) */
	bool index;     /* CEDAR_E_GET written e["k"]; CEDAR_E_HAS written e has "k" */
	struct cedar_span span;
	uint32_t n_arg;
	uint32_t n_path;
	struct cedar_expr **arg;
	const cedar_sym *path;
	union {
		struct cedar_value value;
		enum cedar_var var;
		cedar_sym name;
		enum cedar_ext ext;
		struct cedar_pattern pattern;
		struct cedar_leaf *leaf;
	};
};

enum cedar_effect { CEDAR_PERMIT, CEDAR_FORBID };

struct cedar_annotation {
	cedar_sym key, value; /* no value written = "" */
	bool has_value;
	struct cedar_span span;
};

enum cedar_scope_op {
	CEDAR_S_ANY,
	CEDAR_S_EQ,    /* == uid, or == ?slot */
	CEDAR_S_IN,    /* in uid, or in ?slot */
	CEDAR_S_IS,    /* is type */
	CEDAR_S_IS_IN, /* is type in uid, or in ?slot */
	CEDAR_S_IN_SET /* action in [uid, …] only */
};

struct cedar_scope {
	enum cedar_scope_op op;
	bool slot; /* EQ, IN, IS_IN: the entity is the slot of this element */
	struct cedar_uid uid;
	cedar_sym type;
	const struct cedar_uid *set;
	const struct cedar_span *set_span; /* one for each of set */
	uint32_t n_set;
	struct cedar_span span; /* the element; line 0 when it was omitted */
	struct cedar_span uid_span, type_span;
};

struct cedar_cond {
	bool unless;
	bool guardrails; /* Dogwood: `when guardrails { … }` */
	struct cedar_expr *e;
	struct cedar_span span; /* from the keyword to the brace */
};

struct cedar_policy {
	cedar_sym id; /* "policy0", … by position for parsed text; the host may set its own */
	enum cedar_effect effect;
	struct cedar_annotation *ann;
	uint32_t n_ann;
	struct cedar_scope principal, action, resource;
	struct cedar_cond *cond;
	uint32_t n_cond;
	bool has_slot[2];       /* uses ?principal, ?resource: a template */
	uint32_t n_leaf;        /* temporal blocks in it */
	uint32_t ordinal;       /* position in the text, of those too that do not parse */
	bool faulty;            /* has an error that the parser went on after */
	struct cedar_span span; /* from the first annotation to the semicolon */
};

/* `def cedar name(?a, …) { … };` as written; Dogwood parses the body (parse.h has
 * cedar_parse_expr for it). */
struct cedar_def {
	bool temporal;
	cedar_sym name;
	const cedar_sym *param; /* without the ? */
	uint32_t n_param;
	sv body;                /* between the braces, borrowed */
	struct cedar_span span; /* whole definition */
	struct cedar_span at;   /* the body */
	struct cedar_span name_at;
	bool faulty; /* did not parse: only the name is of use */
};

/* A parsed source. Policies and definitions in the order of the text. After errors: what could be
 * parsed, `faulty` where it is not whole. */
struct cedar_source {
	sv text; /* borrowed */
	struct cedar_policy *policy;
	size_t n_policy;
	struct cedar_def *def;
	size_t n_def;
};

static inline bool cedar_policy_is_template(const struct cedar_policy *p)
{
	return p->has_slot[0] || p->has_slot[1];
}
/* The value of an annotation, or NULL. */
cedar_sym cedar_policy_annotation(const struct cedar_policy *p, sv key);
/* "decimal", "isInRange", …, and the reverse. */
const char *cedar_ext_name(enum cedar_ext x);
/* false when there is no such function or method. */
bool cedar_ext_find(sv name, enum cedar_ext *out);
/* Is it called as a method (`a.isIpv4()`) rather than a function (`ip("…")`)? */
bool cedar_ext_is_method(enum cedar_ext x);

/* Node makers, for hosts and the JSON reader: NULL when a is full or the tree would be deeper
 * than CEDAR_MAX_DEPTH. */
struct cedar_expr *cedar_expr_new(struct arena *a, enum cedar_expr_kind k,
    const struct cedar_span *at, struct cedar_expr *const *arg, size_t n);
/* arg[0].name */
struct cedar_expr *cedar_expr_get(struct arena *a, struct cedar_expr *e, cedar_sym name);
/* A deep copy (macro expansion): leaves are copied too, `host` and `type` pointers shared. */
struct cedar_expr *cedar_expr_copy(struct arena *a, const struct cedar_expr *e);
/* Call f on every node below and including *e, children first; f may replace *node. Stops and
 * returns its result when it is not 0. */
int cedar_expr_walk(
    struct cedar_expr **e, int (*f)(void *ctx, struct cedar_expr **node), void *ctx);

/* Cedar text of a tree (print.c), one line, parentheses where precedence needs them. how may be
 * NULL: then a leaf prints as `temporal { text }`. */
struct cedar_print {
	void *ctx;
	/* Write the Cedar expression that stands for the leaf. */
	void (*leaf)(void *ctx, struct buf *b, const struct cedar_leaf *l);
	/* The same in the JSON form of policies (json.h). */
	void (*leaf_json)(void *ctx, struct buf *b, const struct cedar_leaf *l);
};
void cedar_put_expr(struct buf *b, const struct cedar_expr *e, const struct cedar_print *how);
/* A policy in Cedar's own order, all three scope elements written. With fold, the conditions are
 * one `when { … }` (spec 7.1 step 4); without, each condition stays. */
void cedar_put_policy(
    struct buf *b, const struct cedar_policy *p, bool fold, const struct cedar_print *how);
