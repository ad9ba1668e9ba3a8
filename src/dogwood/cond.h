/* cond: the tree of one temporal condition (dogwood-language.md 4). Made by tparse.h, rewritten
 * once by macro expansion and by pins, checked by safety.h and typecheck.h, and then compiled by
 * plan.h. Nodes live in an arena; names and texts borrow from the source or from that arena.
 *
 * Before macro expansion a tree may hold CALL and PARAM nodes and names that begin with a sigil;
 * `dw_cond_closed` says whether any is left. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "cedar/diag.h"
#include "dogwood/event.h"

#define DW_COND_DEPTH 64 /* nesting of a condition, macro expansion included */

enum dw_cmp { DW_LT, DW_LE, DW_EQ, DW_NE, DW_GE, DW_GT };

/* The declared type of a variable. */
enum dw_vtype { DW_T_TIMEPOINT, DW_T_LONG, DW_T_STRING, DW_T_BOOL, DW_T_DECIMAL, DW_T_NAMED };

/* A variable as it is bound. `slot` is set by dw_cond_resolve: one number for each binder of a
 * leaf. */
struct dw_binder {
	sv name; /* "u"; "?a" and "$t" in macro bodies; "t$57" after expansion */
	enum dw_vtype type;
	sv type_name; /* as written */
	uint32_t slot;
	struct cedar_span at, type_at;
};

struct dw_cond;
struct dw_term;
struct dw_unit;

enum dw_term_kind {
	DW_TERM_LIT,       /* lit: entity, decimal, integer, string, Boolean */
	DW_TERM_ARRAY,     /* items */
	DW_TERM_CONTEXT,   /* context.path */
	DW_TERM_PRINCIPAL, /* principal, principal.path */
	DW_TERM_RESOURCE,
	DW_TERM_WILD,
	DW_TERM_VAR,   /* name; slot */
	DW_TERM_PARAM, /* ?name */
	DW_TERM_AGG,
	DW_TERM_CALL, /* a macro that expands to an aggregate */
};

struct dw_agg {
	bool sum;
	sv summed; /* sum: the column; with its slot */
	uint32_t summed_slot;
	struct cedar_span summed_at;
	struct dw_binder *vars;
	uint32_t nvars;
	struct dw_cond *body;
	const struct dw_unit *unit; /* as in struct dw_cond */
};

/* A call of a macro; argument i is a window, a condition, a term, or (a bare call or parameter)
 * either of the last two or all. */
struct dw_call_arg {
	struct dw_window *window;
	struct dw_cond *cond;
	struct dw_term *term;
};
struct dw_call {
	sv name;
	struct cedar_span at, name_at;
	struct dw_call_arg *args;
	uint32_t nargs;
};

struct dw_term {
	enum dw_term_kind kind;
	struct cedar_span at;
	union {
		struct dw_val lit;
		struct {
			struct dw_term **v;
			uint32_t n;
		} items;
		struct {
			const sv *v;
			uint32_t n;
			/* set by dw_cond_resolve: number of this request term in the leaf */
			uint32_t req;
		} path;
		struct {
			sv name;
			uint32_t slot;
		} var;
		struct dw_agg agg;
		struct dw_call *call;
	};
};

struct dw_window {
	uint64_t amount;
	bool too_large; /* the number did not fit */
	char unit;      /* s m h d; 0: param */
	sv param;       /* "?w" */
	sv text;        /* as written, for messages */
	int64_t ticks;  /* set when the set is compiled */
	struct cedar_span at;
};

/* field.path: term */
struct dw_arg {
	const sv *path;
	uint32_t npath;
	sv dotted;
	struct dw_term *term;
	bool is_pin; /* added by the event schema */
	struct cedar_span at;
};

struct dw_pred {
	sv ns, id, kind; /* "Box::Action", "fs:read", "request" */
	struct dw_arg *args;
	uint32_t nargs;
	uint32_t number; /* set by dw_cond_resolve */
};

enum dw_cond_kind {
	DW_C_PRED,
	DW_C_TP,
	DW_C_AND,
	DW_C_NOT,
	DW_C_FORMERLY,
	DW_C_PREVIOUS,
	DW_C_SINCE,
	DW_C_EXISTS,
	DW_C_CMP,
	DW_C_CALL,
	DW_C_PARAM, /* ?s, with the fields it is refined by */
};

struct dw_cond {
	enum dw_cond_kind kind;
	struct cedar_span at;
	/* Set by dw_cond_resolve: number of the node in its leaf, and the slots it uses without
	 * binding them itself. */
	uint32_t node;
	const uint32_t *vars;
	uint32_t nvars;
	/* set by plan.h: the keyed state that answers for this node at the newest timepoint */
	const struct dw_unit *unit;
	union {
		struct dw_pred pred;
		struct {
			sv name;
			uint32_t slot;
		} tp;
		struct {
			struct dw_cond **v;
			uint32_t n; /* at least 2; none of them is an AND */
		} all;
		struct dw_cond *neg;
		struct {
			struct dw_window *w;
			struct dw_cond *body;
		} once; /* FORMERLY, PREVIOUS */
		struct {
			struct dw_window *w;
			struct dw_cond *left, *right;
		} since;
		struct {
			struct dw_binder var;
			struct dw_cond *body;
		} exists;
		struct {
			enum dw_cmp op;
			struct dw_term *l, *r;
		} cmp;
		struct dw_call *call;
		struct {
			sv name;
			struct dw_arg *args;
			uint32_t nargs;
			bool refined;
		} param;
	};
};

/* What a `temporal { … }` block or the body of a `def temporal` holds. */
struct dw_body {
	struct dw_cond *cond; /* exactly one of the two, */
	struct dw_term *agg;  /* or both for a lone call, which may be either */
};

/* The number of variables (slots), request terms and predicates of a leaf. */
struct dw_names {
	uint32_t nslots;
	const struct dw_binder **slot; /* binder of each */
	uint32_t nreq;
	struct dw_term **req; /* one term for each distinct request term */
	uint32_t npred;
	struct dw_pred **pred;
	uint32_t nnodes;
};
/* Number variables, request terms and predicates. For closed trees only. false: no room. */
bool dw_cond_resolve(struct arena *a, struct dw_cond *c, struct dw_names *out);
/* What stands directly below a condition, for walks: the i-th condition (the left side of a since
 * before the right), the i-th term (of a pattern's arguments, of a comparison); NULL past the end.
 * Calls and parameters have neither. */
struct dw_cond *dw_cond_below(const struct dw_cond *c, uint32_t i);
struct dw_term *dw_cond_term(const struct dw_cond *c, uint32_t i);
/* No macro call, parameter or sigil is left. */
bool dw_cond_closed(const struct dw_cond *c);
/* The canonical text of a condition: no spans, names length-prefixed, windows in seconds, so that
 * equal text means equal formula (local-engine.md 8.4). */
void dw_cond_key(struct buf *b, const struct dw_cond *c);
void dw_term_key(struct buf *b, const struct dw_term *t);
/* The condition as Dogwood text. */
void dw_cond_print(struct buf *b, const struct dw_cond *c);
void dw_term_print(struct buf *b, const struct dw_term *t);
/* Two request terms that name the same thing. */
bool dw_term_same(const struct dw_term *a, const struct dw_term *b);
/* Is t principal/resource/context path? */
static inline bool dw_term_is_request(const struct dw_term *t)
{
	return t->kind == DW_TERM_CONTEXT || t->kind == DW_TERM_PRINCIPAL ||
	       t->kind == DW_TERM_RESOURCE;
}
const char *dw_cmp_text(enum dw_cmp op);
/* Seconds of a window; saturates. */
int64_t dw_window_seconds(const struct dw_window *w);

#define DW_NO_SLOT UINT32_MAX
