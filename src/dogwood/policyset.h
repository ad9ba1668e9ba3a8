/* policyset: Dogwood source text -> a compiled, immutable set of rules. Loading expands macros,
 * extracts temporal leaves, lowers every rule to one static Cedar policy, derives the events from
 * the two schemas, and runs every static check (dogwood-language.md 6, 7.1, 8, 9). A set with an
 * error is refused whole: a rule that is silently missing is a guard that is silently off.
 *
 * A set is never changed after dw_load and may be used by several threads at once. It owns
 * everything it hands out. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/sv.h"
#include "dogwood/event.h"

#define DW_SOURCE_MAX  ((size_t)16 * 1024 * 1024) /* bytes of one source text */
#define DW_TICK_SECOND INT64_C(1)
#define DW_TICK_NANO   INT64_C(1000000000)

enum dw_severity { DW_ERROR, DW_WARNING };

/* One finding. `message` is the exact text of the specification; place and caret are beside it, not
 * in it. */
struct dw_diag {
	enum dw_severity severity;
	/* "parse", "macro", "temporal", "cedar", "schema", "event-schema", "provider", "box" */
	const char *code;
	sv message;
	sv file;               /* the name given for the source */
	size_t start, len;     /* byte range in that source; len 0: no place */
	uint32_t line, column; /* from 1; column counts code points; 0 = no place */
	sv line_text;          /* the line it stands in, for the caret */
	sv help;               /* what would be right; empty when there is nothing to add */
	int32_t rule;          /* 0-based rule, -1 when it belongs to none */
};

/* Findings of one load, in the order of the specification. Lives in its own arena. */
struct dw_diags {
	struct arena a;
	struct dw_diag *v;
	size_t n, cap;
	size_t errors, warnings;
	bool cut; /* a limit was reached: there may be more */
};
void dw_diags_fini(struct dw_diags *d);
#define AUTO_DW_DIAGS __attribute__((cleanup(dw_diags_fini))) struct dw_diags
/* All error messages joined by a newline: what the reference prints. */
void dw_diags_messages(const struct dw_diags *d, enum dw_severity severity, struct buf *out);

struct dw_source {
	sv name; /* for diagnostics: a path, "policy.dw" */
	sv text;
};

struct dw_load {
	struct dw_source policy;
	/* Cedar schema, human syntax; text.p == NULL: none, and then checks against it are skipped
	 */
	struct dw_source action_schema;
	struct dw_source
	    event_schema;        /* .dwschema; text.p == NULL: the pinned default of section 9.3 */
	struct dw_source macros; /* replaces the default library; text.p == NULL: the default */
	/* Information providers (section 10): declarations of functions that the host computes, as
	 * JSON (provider.h). text.p == NULL: every provider call and every guardrails block is
	 * refused with "information providers are not enabled in this build" (Box's rule). */
	struct dw_source providers;
	int64_t tick; /* ticks a second of event stamps: DW_TICK_SECOND or DW_TICK_NANO */
	/* skip the checks against the schemas (6.2 and Cedar's validator): replays of traces that
	 * do not conform */
	bool no_validate;
};

struct dw_set;

/* Compile. Findings go to *d (which the caller zero-initialises; warnings too, on success). NULL
 * when there is an error; err then holds the first one as "file:line:column: message". Out of
 * memory is NULL with BOX_ENOMEM. */
struct dw_set *dw_load(const struct dw_load *in, struct dw_diags *d, struct box_err *err);
void dw_set_free(struct dw_set *s);

/* One rule, in file order. */
struct dw_annotation {
	sv key, value;
};
struct dw_rule {
	sv cedar_id;    /* "policy_<i>" */
	sv id;          /* @id; p == NULL when there is none */
	sv description; /* @description, decoded; p == NULL when there is none */
	bool forbid;
	/* the rule's text as it stands in the source, from its first annotation to its ';' */
	sv statement;
	size_t start; /* byte offset of statement in the source */
	uint32_t line, column;
	const struct dw_annotation *annotations;
	size_t nannotations;
	uint32_t leaf0, nleaves; /* its temporal leaves are leaf0 … leaf0 + nleaves - 1 */
	/* canonical text of the rule with macros expanded: equal text = equal rule */
	sv fingerprint;
};
size_t dw_set_nrules(const struct dw_set *s);
const struct dw_rule *dw_set_rule(const struct dw_set *s, size_t i);
/* How a rule is named to people: `@id("x") (rule 3)`, or `the permit rule with no @id (rule 1)`.
 * Appends to b. */
void dw_rule_name(const struct dw_set *s, size_t i, struct buf *b);

/* One temporal leaf: a `temporal { … }` of a rule. */
struct dw_leaf {
	uint32_t rule;    /* its rule */
	uint32_t ordinal; /* clause number within the rule, from 0 */
	sv field;         /* name of the Boolean in the lowered context: policy_1__temporal_0 */
	/* canonical, injective text of the condition (local-engine.md 8.4): equal text = equal
	 * formula */
	sv key;
	int64_t reach; /* sum of nested windows in ticks; DW_TIME_FOREVER: unbounded */
};
size_t dw_set_nleaves(const struct dw_set *s);
const struct dw_leaf *dw_set_leaf(const struct dw_set *s, size_t i);
/* Longest reach of all leaves: older events cannot matter to any of them. 0 when there is no leaf.
 */
int64_t dw_set_reach(const struct dw_set *s);
int64_t dw_set_tick(const struct dw_set *s);
/* Does any rule ask an information provider? Then verdicts rest on what the host said, too. */
bool dw_set_has_providers(const struct dw_set *s);

/* Does an event of this kind ask for a verdict? By the event schema. */
bool dw_set_is_decision(const struct dw_set *s, sv kind);
/* Does the action schema declare this action? true when there is no schema. */
bool dw_set_has_action(const struct dw_set *s, sv ns, sv id);
size_t dw_set_ndecision_kinds(const struct dw_set *s);
sv dw_set_decision_kind(const struct dw_set *s, size_t i);
/* Universal symmetric pins (5.6): the fields by which history is sliced. 0: one history for all. */
size_t dw_set_npins(const struct dw_set *s);
sv dw_set_pin(const struct dw_set *s, size_t i); /* dotted field path in `logged` */

/* Which rules of `now` are the same as which of `old`: map[i] = index in old, or -1 = new or
 * changed. map has dw_set_nrules(now) entries. Rules with an @id correspond by it, the others by
 * their whole text; every old rule is used at most once. This is Box's rule for edits of a policy
 * file; an engine with tokens builds its own map. */
void dw_set_correspond(const struct dw_set *now, const struct dw_set *old, int32_t *map);

/* The lowered Cedar policies and what was hoisted, as text (`dogwood expand`). */
void dw_set_expand(const struct dw_set *s, struct buf *out);
/* One line a leaf: its class, what it keeps, what an event and a decision cost (`dogwood explain`).
 */
void dw_set_explain(const struct dw_set *s, struct buf *out);
