/* libdogwood: decide actions by a Dogwood policy, with a durable memory of what happened before.
 *
 *   open      dw_engine_open       a store (a folder), or memory only
 *   install   dw_engine_install    policies and schemas; dw_policy_check tries them without a store
 *   submit    dw_submit            one event: stamped, stored, judged
 *   or, in an event loop:
 *             dw_submit_begin      judged now, in order; the verdict comes by callback ...
 *             dw_engine_sync       ... once everything it rests on is durable: one sync for all that wait
 *
 * What the engine promises
 *   - Deny by default, forbid beats permit; whatever cannot be judged is denied (cause DW_FAULT).
 *   - Events are totally ordered and their stamps strictly increase, across restarts too.
 *   - A verdict is released only when every event that it, or any later verdict, can depend on is
 *     durable. With DW_SYNC_NEEDED an event that no installed clause can ever match is not waited
 *     for; losing it in a crash changes no later verdict.
 *   - A store whose history cannot be rebuilt exactly is refused, not opened with a hole. After a
 *     failed write or sync the engine refuses every further submit until it is opened anew.
 *
 * What it does not: it never enforces. Run an action only when `permit` is true, after the verdict
 * was handed to you; submit every event the policies rely on; protect the store's folder.
 *
 * Conventions. Functions that can fail return 0, or -1 with *err filled in (err may be NULL); on
 * success *err is untouched. Text is UTF-8 and travels as dw_str, which needs no NUL. What a `const`
 * pointer returned from here points to belongs to the object it came from. No function writes to
 * stdout or stderr, changes signal handlers, or keeps global state. All calls on a dw_engine may be
 * made from any thread at any time; a dw_event, dw_diags or dw_verdict belongs to one thread at a
 * time. The library makes one background thread per store (none for a memory engine).
 *
 * Structures marked "made by the library" may grow at the end in later versions. */
#ifndef DOGWOOD_DOGWOOD_H
#define DOGWOOD_DOGWOOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DW_API __attribute__((visibility("default")))
#else
#define DW_API
#endif

#define DW_VERSION_MAJOR 0
#define DW_VERSION_MINOR 1

/* "0.1.0": the version of the library that is running. */
DW_API const char *dw_version(void);

/* ------------------------------------------------------------------------------------- text */

/* A borrowed piece of text; p may be NULL when n is 0. */
typedef struct dw_str {
	const char *p;
	size_t n;
} dw_str;

/* View of a C string; NULL gives the empty view. */
static inline dw_str dw_cstr(const char *s)
{
	dw_str v = { s, s != NULL ? strlen(s) : 0 };

	return v;
}

/* Free text that a function below gave to its caller. */
DW_API void dw_free(void *p);

/* ----------------------------------------------------------------------------------- errors */

enum dw_code {
	DW_OK = 0,
	DW_EARG, /* the caller's mistake: a malformed name, an empty path, a dw_event never set up */
	DW_EPOLICY,   /* the policies or schemas are refused; the diagnostics say where and why */
	DW_ENOPOLICY, /* nothing is installed yet */
	DW_EEVENT, /* the event is refused (4.3 of the store's contract); msg says what is wrong with it */
	DW_ECLOCK,   /* the clock is too far behind the newest stamp; nothing was stored */
	DW_ESTORE,   /* the disk refused; the engine is closed to submits until it is opened anew */
	DW_ECORRUPT, /* the store is damaged; msg names file and offset */
	DW_EBUSY,    /* another process has the store open */
	DW_ELIMIT,   /* a documented limit was reached */
	DW_ENOMEM    /* no memory */
};

#define DW_ERROR_MSG_MAX 1024

struct dw_error {
	enum dw_code code;
	int sys; /* errno, or 0 */
	char msg
	    [DW_ERROR_MSG_MAX]; /* NUL-terminated, one line, says what to do where that is known */
};

/* ------------------------------------------------------------------------------ diagnostics */

enum dw_severity { DW_ERROR, DW_WARNING, DW_ADVICE };

/* One finding about a source text. Made by the library; borrowed from its list. */
struct dw_diag {
	enum dw_severity severity;
	dw_str file; /* name of the source as the caller gave it; empty: about the set as a whole */
	unsigned line, col; /* from 1; 0 when there is no place. col counts characters, not bytes */
	size_t start, len;  /* byte range in that source; len 0 when there is no place */
	dw_str message;     /* one line, no trailing full stop */
	dw_str hint;        /* what would be right; may be empty */
};

typedef struct dw_diags dw_diags;

/* An empty list; NULL without memory. */
DW_API dw_diags *dw_diags_new(void);
DW_API void dw_diags_free(dw_diags *d); /* NULL is allowed */
/* Number of findings, and of errors among them. */
DW_API size_t dw_diags_count(const dw_diags *d);
DW_API size_t dw_diags_errors(const dw_diags *d);
/* The i-th finding in source order, or NULL past the end. Valid until the list is used or freed. */
DW_API const struct dw_diag *dw_diags_at(const dw_diags *d, size_t i);

enum { DW_RENDER_COLOUR = 1 };
/* All findings for a terminal, NUL-terminated:
 *     policy.dw:12:9: error: message
 *       12 |   when { context.input.paht == "x" }
 *          |                        ^~~~
 *          = help: hint
 * Control characters of the source are escaped. dw_free the result; NULL without memory. */
DW_API char *dw_diags_text(const dw_diags *d, unsigned flags);
/* The same as a JSON array of {severity, file, line, column, start, len, message, help}. */
DW_API char *dw_diags_json(const dw_diags *d);

/* -------------------------------------------------------------------------- policies, schemas */

/* A named source text. The name is only for messages. */
struct dw_source {
	dw_str name;
	dw_str text;
};

/* What is installed together. Policies are numbered policy_0, policy_1 ... through all sources in
 * order. Borrowed for the call. */
struct dw_policy_set {
	const struct dw_source *policies;
	size_t n_policies;
	struct dw_source action_schema; /* Cedar schema, human syntax */
	struct dw_source
	    event_schema; /* .dwschema; text.p NULL: the built-in default (pins callerPrincipal) */
	struct dw_source macros; /* macro library; text.p NULL: the built-in one */
};

/* Parse, expand, check and compile a set as dw_engine_install would, and forget it. Warnings alone
 * are success. -1 with DW_EPOLICY when it would be refused; diags (may be NULL) then holds an error. */
DW_API int dw_policy_check(const struct dw_policy_set *set, dw_diags *diags, struct dw_error *err);

/* ----------------------------------------------------------------------------------- events */

/* One thing that is about to happen (a decision kind, "request" in the usual event schema) or that
 * happened ("response", "error"). The setters copy; mistakes are remembered and reported by submit,
 * so a builder needs no checks between. Reuse one dw_event with dw_event_reset: it keeps its memory. */
typedef struct dw_event dw_event;

/* Where a field goes. History is what later temporal clauses match against; context is what
 * `context.…` of the present decision reads. The action's inputs belong to both. */
enum dw_bag { DW_HISTORY = 1, DW_CONTEXT = 2, DW_BOTH = 3 };

DW_API dw_event *dw_event_new(void); /* NULL without memory */
DW_API void dw_event_free(dw_event *ev);
DW_API void dw_event_reset(dw_event *ev);
/* action: `Box::Action::"fs:read"`, in the syntax of policies. kind: "request", "response", "error",
 * or another kind of the event schema. Required. */
DW_API void dw_event_action(dw_event *ev, dw_str action, dw_str kind);
/* Scope, as entities: `Box::Agent::"self"`. They also fill history's callerPrincipal and
 * callerResource. A decision event without them is denied (DW_FAULT). */
DW_API void dw_event_principal(dw_event *ev, dw_str entity);
DW_API void dw_event_resource(dw_event *ev, dw_str entity);
/* A field. path is dotted: "input.path", "input.meta.region", "output.status", "requestId". A part
 * that holds a '.' or '\' has a backslash before it. Setting a path twice, or below a value, is a
 * mistake. */
DW_API void dw_event_str(dw_event *ev, enum dw_bag bag, const char *path, dw_str value);
DW_API void dw_event_long(dw_event *ev, enum dw_bag bag, const char *path, int64_t value);
DW_API void dw_event_bool(dw_event *ev, enum dw_bag bag, const char *path, bool value);
/* An entity: `Box::FsReadOperation::"read_content"`. */
DW_API void dw_event_entity(dw_event *ev, enum dw_bag bag, const char *path, dw_str entity);
/* The same from its parts: type `Box::FsReadOperation`, id `read_content`. */
DW_API void dw_event_entity_id(
    dw_event *ev, enum dw_bag bag, const char *path, dw_str type, dw_str id);
/* A set of strings. */
DW_API void dw_event_strs(
    dw_event *ev, enum dw_bag bag, const char *path, const dw_str *values, size_t n);
/* A value as JSON text: null, true, a whole number in 64 bits, another number (a decimal, kept as
 * text), a string, an array, an object. Strings stay strings; {"__entity": {"type": T, "id": I}} is
 * an entity. At most 64 levels. */
DW_API void dw_event_json(dw_event *ev, enum dw_bag bag, const char *path, dw_str json);
/* Data of an entity for this decision only: attributes as a JSON object (`principal.dept`), and its
 * direct parents (`principal in Group::"x"`), one call each. */
DW_API void dw_event_attrs(dw_event *ev, dw_str entity, dw_str json);
DW_API void dw_event_parent(dw_event *ev, dw_str entity, dw_str parent);
/* 0 when nothing was wrong so far. */
DW_API int dw_event_check(const dw_event *ev, struct dw_error *err);

/* Limits: one event at most 1 MiB encoded; an idempotency token at most 128 bytes. */
#define DW_EVENT_MAX ((size_t)1 << 20)
#define DW_TOKEN_MAX 128

/* ----------------------------------------------------------------------------------- engine */

enum dw_sync_policy {
	DW_SYNC_NEEDED = 0, /* wait for the disk when some installed clause could match the event */
	DW_SYNC_ALWAYS      /* wait for every event */
};

/* Set up by dw_options_init, which puts the defaults; then change what you want. */
struct dw_options {
	const char *path; /* folder of the store, made (mode 0700) when absent; NULL: memory */
	int64_t (*now_ns)(void *arg); /* wall clock, ns since 1970; NULL: the system's */
	void *now_arg;
	int64_t max_future_skew_ns; /* 300 s: how far stamps may run ahead of the clock */
	enum dw_sync_policy sync;   /* DW_SYNC_NEEDED */
	uint64_t snapshot_events;   /* 10,000: snapshot in the background after so many; 0: never */
	uint64_t segment_bytes;     /* 16 MiB: size to which log files grow; 64 KiB .. 1 GiB */
	unsigned token_events;      /* 65,536: how many idempotency tokens are remembered */
	void *reserved[8];          /* zero */
};
DW_API void dw_options_init(struct dw_options *o);

typedef struct dw_engine dw_engine;

/* Open a store and rebuild its state. A torn, never acknowledged tail is cut; other damage is
 * DW_ECORRUPT with file and offset; a store in use is DW_EBUSY. */
DW_API int dw_engine_open(const struct dw_options *o, dw_engine **out, struct dw_error *err);
/* Make everything durable and close. Waiting callbacks are called first. After a failed sync it
 * still closes, and returns -1. NULL is allowed. */
DW_API int dw_engine_close(dw_engine *e, struct dw_error *err);

/* Made by the library. */
struct dw_installed {
	bool changed;          /* false: the same set was installed already; nothing was stored */
	uint64_t offset;       /* record that holds the change */
	int64_t ts_ns;         /* its stamp */
	unsigned rules;        /* policies now installed */
	unsigned clauses;      /* temporal clauses among them */
	unsigned clauses_kept; /* of these, unchanged: their history counts on */
	unsigned clauses_new;  /* new or changed: they see only events from now on */
};

/* Replace the whole set, durably. A temporal clause whose policy text is unchanged keeps its history,
 * wherever the policy moved; a new or changed one starts empty. Refusal (DW_EPOLICY) leaves the old
 * set in force. diags and out may be NULL. */
DW_API int dw_engine_install(dw_engine *e, const struct dw_policy_set *set, dw_diags *diags,
    struct dw_installed *out, struct dw_error *err);

/* A policy of the installed set. Made by the library. */
struct dw_rule {
	unsigned index;     /* position in the set, from 0 */
	dw_str engine_id;   /* "policy_3" */
	dw_str id;          /* @id, empty when there is none */
	dw_str description; /* @description, empty when there is none */
	bool is_forbid;
	dw_str file; /* source name and line of its effect word */
	unsigned line;
};

enum dw_cause {
	DW_PERMITTED = 1, /* a permit matched and no forbid did */
	DW_FORBIDDEN,     /* a forbid matched */
	DW_NO_MATCH,      /* nothing permitted it */
	DW_FAULT,         /* it could not be judged, or not be made durable: denied */
	DW_RECORDED       /* not a decision kind: history only */
};

/* Made by the library (dw_verdict_new, or borrowed in a callback). It owns its text: a later install
 * does not change it. */
struct dw_verdict {
	bool permit; /* run the action? false unless cause is DW_PERMITTED */
	enum dw_cause cause;
	const struct dw_rule
	    *rules; /* determining rules in file order: all matching forbids, or permits */
	size_t n_rules;
	dw_str fault;         /* why, when cause is DW_FAULT */
	const dw_str *errors; /* run-time errors of single policies (those did not match) */
	size_t n_errors;
	uint64_t offset; /* position of the event in the store */
	int64_t ts_ns;   /* its stamp, ns since 1970 */
	bool repeated;   /* the token was known: this is the first verdict, nothing was stored */
};

DW_API struct dw_verdict *dw_verdict_new(void); /* NULL without memory */
DW_API void dw_verdict_free(struct dw_verdict *v);

/* Stamp, store and judge one event; returns when its verdict may leave. Threads that wait share one
 * sync. token, when not empty, makes the call repeatable: a second submit with the same token stores
 * nothing and returns the first verdict, also after a restart (the last token_events tokens are
 * remembered).
 * -1: no verdict. Treat as denied. What was stored then is said by the code: DW_EARG, DW_ECLOCK,
 * DW_ENOPOLICY and DW_ELIMIT stored nothing; DW_ESTORE may have; DW_EEVENT did (the event is history,
 * but its action is not in the schema). v may be NULL for a history event. */
DW_API int dw_submit(
    dw_engine *e, const dw_event *ev, dw_str token, struct dw_verdict *v, struct dw_error *err);

/* Called once for each accepted dw_submit_begin, never under a lock of the engine: it may call any
 * function here but dw_engine_close. v is borrowed for the call. When the sync failed, v has cause
 * DW_FAULT. */
typedef void (*dw_verdict_fn)(void *arg, const struct dw_verdict *v);

/* Stamp, queue and judge one event now, in order. Returns
 *    1  the verdict may leave: fn was called, before this returned
 *    0  fn will be called by dw_engine_sync (or dw_engine_close)
 *   -1  refused as in dw_submit; fn is not called.
 * fn NULL: the caller does not wait (a ::response whose loss no one was told about); verdicts that
 * depend on the event still wait for it. */
DW_API int dw_submit_begin(dw_engine *e, const dw_event *ev, dw_str token, dw_verdict_fn fn,
    void *arg, struct dw_error *err);
/* Make everything queued durable with one sync, then call the waiting callbacks in submit order.
 * Returns how many were called; -1 when the store failed (they were called with DW_FAULT). Costs
 * nothing when nothing waits. Call it once per turn of the event loop. */
DW_API int dw_engine_sync(dw_engine *e, struct dw_error *err);
/* Does anything wait for dw_engine_sync? */
DW_API bool dw_engine_waiting(dw_engine *e);

/* Summarise the state in a snapshot now and drop log files no longer needed. */
DW_API int dw_engine_checkpoint(dw_engine *e, struct dw_error *err);

/* Made by the library: set size to sizeof first. */
struct dw_status {
	size_t size;
	bool installed;
	bool poisoned; /* a write or sync failed; every submit is refused */
	unsigned rules, clauses;
	uint64_t next_offset;     /* number of records ever stored */
	uint64_t durable_offset;  /* records below it survive a crash */
	uint64_t base_offset;     /* oldest record still in the log */
	uint64_t snapshot_offset; /* records below it are summarised; 0: no snapshot */
	int64_t last_ts_ns;       /* newest stamp */
	uint64_t events;          /* accepted since open */
	uint64_t syncs;           /* made since open */
	uint64_t replayed;        /* records replayed at open */
	uint64_t cut_bytes;       /* torn tail cut at open */
};
DW_API int dw_engine_status(dw_engine *e, struct dw_status *st, struct dw_error *err);

/* The i-th installed rule into *out, 0; -1 past the end. Text is valid until the next install. */
DW_API int dw_engine_rule(dw_engine *e, size_t i, struct dw_rule *out);

#ifdef __cplusplus
}
#endif

#endif
