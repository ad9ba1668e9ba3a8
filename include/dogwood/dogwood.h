/* libdogwood: decide actions by a Dogwood policy, with a durable memory of what happened before.
 *
 *   open      dogwood_engine_open      a store (a folder), or memory only
 *   install   dogwood_engine_install   policies and schemas; dogwood_policy_check only tries them
 *   submit    dogwood_submit           one event: stamped, stored, judged
 *   or, in an event loop:
 *             dogwood_submit_begin     judged now, in order; the verdict comes by callback ...
 *             dogwood_engine_sync      ... once all it rests on is durable: one sync for all
 *
 * What the engine promises
 *   - Deny by default, forbid beats permit; what cannot be judged is denied (cause DOGWOOD_FAULT).
 *   - Events are totally ordered and their stamps strictly increase, across restarts too.
 *   - A verdict is released only when every event that it, or any later verdict, can depend on is
 *     durable. With DOGWOOD_SYNC_NEEDED an event that no installed clause can ever match is not
 *     waited for; losing it in a crash changes no later verdict.
 *   - A store whose history cannot be rebuilt exactly is refused, not opened with a hole. After a
 *     failed write or sync the engine refuses every further submit until it is opened anew.
 *
 * What it does not: it never enforces. Run an action only when `permit` is true, after the verdict
 * was handed to you; submit every event the policies rely on; protect the store's folder.
 *
 * Conventions. Functions that can fail return 0, or -1 with *err filled in (err may be NULL); on
 * success *err is untouched. Text is UTF-8 and travels as dogwood_str, which needs no NUL. What a
 * `const` pointer returned from here points to belongs to the object it came from. No function
 * writes to stdout or stderr, changes signal handlers, or keeps global state. All calls on a
 * dogwood_engine may be made from any thread at any time; a dogwood_event, dogwood_diags or
 * dogwood_verdict belongs to one thread at a time. The library makes one background thread per
 * store (none for a memory engine).
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
#define DOGWOOD_API __attribute__((visibility("default")))
#else
#define DOGWOOD_API
#endif

#define DOGWOOD_VERSION_MAJOR 0
#define DOGWOOD_VERSION_MINOR 1

/* "0.1.0": the version of the library that is running. */
DOGWOOD_API const char *dogwood_version(void);

/* ------------------------------------------------------------------------------------- text */

/* A borrowed piece of text; p may be NULL when n is 0. */
typedef struct dogwood_str {
	const char *p;
	size_t n;
} dogwood_str;

/* View of a C string; NULL gives the empty view. */
static inline dogwood_str dogwood_cstr(const char *s)
{
	dogwood_str v = { s, s != NULL ? strlen(s) : 0 };

	return v;
}

/* Free text that a function below gave to its caller. */
DOGWOOD_API void dogwood_free(void *p);

/* ----------------------------------------------------------------------------------- errors */

enum dogwood_code {
	DOGWOOD_OK = 0,
	/* The caller's mistake: a malformed name, an empty path, a dogwood_event never set up. */
	DOGWOOD_EARG,
	/* The policies or schemas are refused; the diagnostics say where and why. */
	DOGWOOD_EPOLICY,
	/* Nothing is installed yet. */
	DOGWOOD_ENOPOLICY,
	/* The event is refused (4.3 of the store's contract); msg says what is wrong with it. */
	DOGWOOD_EEVENT,
	/* The clock is too far behind the newest stamp; nothing was stored. */
	DOGWOOD_ECLOCK,
	/* The disk refused; the engine is closed to submits until it is opened anew. */
	DOGWOOD_ESTORE,
	/* The store is damaged; msg names file and offset. */
	DOGWOOD_ECORRUPT,
	/* Another process has the store open. */
	DOGWOOD_EBUSY,
	/* A documented limit was reached. */
	DOGWOOD_ELIMIT,
	/* No memory. */
	DOGWOOD_ENOMEM
};

#define DOGWOOD_ERROR_MSG_MAX 1024

struct dogwood_error {
	enum dogwood_code code;
	/* Errno, or 0. */
	int sys;
	/* NUL-terminated, one line, says what to do where that is known. */
	char msg[DOGWOOD_ERROR_MSG_MAX];
};

/* ------------------------------------------------------------------------------ diagnostics */

enum dogwood_severity { DOGWOOD_ERROR, DOGWOOD_WARNING, DOGWOOD_ADVICE };

/* One finding about a source text. Made by the library; borrowed from its list. */
struct dogwood_diag {
	enum dogwood_severity severity;
	/* Name of the source as the caller gave it; empty: about the set as a whole. */
	dogwood_str file;
	/* From 1; 0 when there is no place. col counts characters, not bytes. */
	unsigned line, col;
	/* Byte range in that source; len 0 when there is no place. */
	size_t start, len;
	/* One line, no trailing full stop. */
	dogwood_str message;
	/* What would be right; may be empty. */
	dogwood_str hint;
};

typedef struct dogwood_diags dogwood_diags;

/* An empty list; NULL without memory. */
DOGWOOD_API dogwood_diags *dogwood_diags_new(void);
DOGWOOD_API void dogwood_diags_free(dogwood_diags *d); /* NULL is allowed */
/* Number of findings, and of errors among them. */
DOGWOOD_API size_t dogwood_diags_count(const dogwood_diags *d);
DOGWOOD_API size_t dogwood_diags_errors(const dogwood_diags *d);
/* The i-th finding in source order, or NULL past the end. Valid until the list is used or freed. */
DOGWOOD_API const struct dogwood_diag *dogwood_diags_at(const dogwood_diags *d, size_t i);

enum { DOGWOOD_RENDER_COLOUR = 1 };
/* All findings for a terminal, NUL-terminated:
 *     policy.dw:12:9: error: message
 *       12 |   when { context.input.paht == "x" }
 *          |                        ^~~~
 *          = help: hint
 * Control characters of the source are escaped. dogwood_free the result; NULL without memory. */
DOGWOOD_API char *dogwood_diags_text(const dogwood_diags *d, unsigned flags);
/* The same as a JSON array of {severity, file, line, column, start, len, message, help}. */
DOGWOOD_API char *dogwood_diags_json(const dogwood_diags *d);

/* -------------------------------------------------------------------------- policies, schemas */

/* A named source text. The name is only for messages. */
struct dogwood_source {
	dogwood_str name;
	dogwood_str text;
};

/* What is installed together. Policies are numbered policy_0, policy_1 ... through all sources in
 * order. Borrowed for the call. */
struct dogwood_policy_set {
	const struct dogwood_source *policies;
	size_t n_policies;
	/* Cedar schema, human syntax. */
	struct dogwood_source action_schema;
	/* .dwschema; text.p NULL: the built-in default (pins callerPrincipal). */
	struct dogwood_source event_schema;
	/* Macro library; text.p NULL: the built-in one. */
	struct dogwood_source macros;
	/* Declarations of information providers, JSON (see dogwood_provider_fn); text.p NULL: none,
	 * and every call of a provider is refused. */
	struct dogwood_source providers;
};

/* Parse, expand, check and compile a set as dogwood_engine_install would, and forget it.
 * Warnings alone are success. -1 with DOGWOOD_EPOLICY when it would be refused; diags (may be
 * NULL) then holds an error. */
DOGWOOD_API int dogwood_policy_check(
    const struct dogwood_policy_set *set, dogwood_diags *diags, struct dogwood_error *err);

/* ----------------------------------------------------------------------------------- events */

/* One thing that is about to happen (a decision kind, "request" in the usual event schema) or
 * that happened ("response", "error"). The setters copy; mistakes are remembered and reported by
 * submit, so a builder needs no checks between. Reuse one dogwood_event with
 * dogwood_event_reset: it keeps its memory. */
typedef struct dogwood_event dogwood_event;

/* Where a field goes. History is what later temporal clauses match against; context is what
 * `context.…` of the present decision reads. The action's inputs belong to both. */
enum dogwood_bag { DOGWOOD_HISTORY = 1, DOGWOOD_CONTEXT = 2, DOGWOOD_BOTH = 3 };

DOGWOOD_API dogwood_event *dogwood_event_new(void); /* NULL without memory */
DOGWOOD_API void dogwood_event_free(dogwood_event *ev);
DOGWOOD_API void dogwood_event_reset(dogwood_event *ev);
/* action: `Box::Action::"fs:read"`, in the syntax of policies. kind: "request", "response",
 * "error", or another kind of the event schema. Required. */
DOGWOOD_API void dogwood_event_action(dogwood_event *ev, dogwood_str action, dogwood_str kind);
/* Scope, as entities: `Box::Agent::"self"`. They also fill history's callerPrincipal and
 * callerResource. A decision event without them is denied (DOGWOOD_FAULT). */
DOGWOOD_API void dogwood_event_principal(dogwood_event *ev, dogwood_str entity);
DOGWOOD_API void dogwood_event_resource(dogwood_event *ev, dogwood_str entity);
/* A field. path is dotted: "input.path", "input.meta.region", "output.status", "requestId". A part
 * that holds a '.' or '\' has a backslash before it. Setting a path twice, or below a value, is a
 * mistake. */
DOGWOOD_API void dogwood_event_str(
    dogwood_event *ev, enum dogwood_bag bag, const char *path, dogwood_str value);
DOGWOOD_API void dogwood_event_long(
    dogwood_event *ev, enum dogwood_bag bag, const char *path, int64_t value);
DOGWOOD_API void dogwood_event_bool(
    dogwood_event *ev, enum dogwood_bag bag, const char *path, bool value);
/* An entity: `Box::FsReadOperation::"read_content"`. */
DOGWOOD_API void dogwood_event_entity(
    dogwood_event *ev, enum dogwood_bag bag, const char *path, dogwood_str entity);
/* The same from its parts: type `Box::FsReadOperation`, id `read_content`. */
DOGWOOD_API void dogwood_event_entity_id(
    dogwood_event *ev, enum dogwood_bag bag, const char *path, dogwood_str type, dogwood_str id);
/* A set of strings. */
DOGWOOD_API void dogwood_event_strs(
    dogwood_event *ev, enum dogwood_bag bag, const char *path, const dogwood_str *values, size_t n);
/* A value as JSON text: null, true, a whole number in 64 bits, another number (a decimal, kept as
 * text), a string, an array, an object. Strings stay strings; {"__entity": {"type": T, "id": I}} is
 * an entity. At most 48 levels. */
DOGWOOD_API void dogwood_event_json(
    dogwood_event *ev, enum dogwood_bag bag, const char *path, dogwood_str json);
/* Data of an entity for this decision only: attributes as a JSON object (`principal.dept`), and its
 * direct parents (`principal in Group::"x"`), one call each. */
DOGWOOD_API void dogwood_event_attrs(dogwood_event *ev, dogwood_str entity, dogwood_str json);
DOGWOOD_API void dogwood_event_parent(dogwood_event *ev, dogwood_str entity, dogwood_str parent);
/* 0 when nothing was wrong so far. */
DOGWOOD_API int dogwood_event_check(const dogwood_event *ev, struct dogwood_error *err);

/* Limits: one event at most 1 MiB encoded; an idempotency token at most 128 bytes. */
#define DOGWOOD_EVENT_MAX ((size_t)1 << 20)
#define DOGWOOD_TOKEN_MAX 128

/* -------------------------------------------------------------------------------- providers */

/* Information providers: functions of yours that policies may call, as in
 *     forbid (principal, action == App::Action::"post", resource)
 *     when { Scan::secrets(context.input.body).found };
 * A name has two segments or more. They are declared in the policy set, with their types:
 *     {"availableProviders": {"Scan::secrets": {
 *         "argumentTypes": [{"type": "string"}],
 *         "outputType": {"type": "record", "fields": {"found": {"type": "boolean"}},
 *                        "required": ["found"]},
 *         "availableMethods": {}}}}
 * Types are string, integer, boolean, decimal, {"type": "set", "items": T} and {"type": "record",
 * "fields": {…}, "required": […]}; calls are checked against them when a set is installed.
 * Arguments are literals, paths from context, principal and resource, and sets of these. */
struct dogwood_call {
	/* The provider, "Scan::secrets"; of a method its name. */
	dogwood_str name;
	/* JSON array, one value for each declared argument; null where the request has none. */
	dogwood_str arguments;
};
typedef struct dogwood_answer dogwood_answer;
/* Give the value, as JSON of the declared type: a number with a fraction for a decimal. Copied.
 * The last one counts. */
DOGWOOD_API void dogwood_answer_json(dogwood_answer *a, dogwood_str json);
/* There is no value; text says why. */
DOGWOOD_API void dogwood_answer_error(dogwood_answer *a, dogwood_str text);

/* Compute a value. call[0] is the provider; call[1 … n-1] are the methods behind it, in order, each
 * applied to what the one before gave; the answer is what the last one gives. Asked while a
 * decision is made, only when a policy comes to the call, and once for all equal calls.
 *
 * No answer, an error, or a value of another type makes the decision a DOGWOOD_FAULT: it is denied,
 * and the fault names the provider. (A policy is not skipped: a forbid that could not be judged
 * must not stop forbidding.)
 *
 * An engine asks from whatever thread submits, but from one at a time, and holds its lock: be
 * quick, and call no function of the same engine. Functions of different engines may run at the
 * same time. */
typedef void (*dogwood_provider_fn)(
    void *arg, const struct dogwood_call *call, size_t n, dogwood_answer *answer);

/* ----------------------------------------------------------------------------------- engine */

enum dogwood_sync_policy {
	/* Wait for the disk when some installed clause could match the event. */
	DOGWOOD_SYNC_NEEDED,
	/* Wait for every event. */
	DOGWOOD_SYNC_ALWAYS
};

/* Set up by dogwood_options_init, which puts the defaults; then change what you want. */
struct dogwood_options {
	/* Folder of the store, made (mode 0700) when absent; NULL: memory. */
	const char *path;
	/* Wall clock, ns since 1970; NULL: the system's. */
	int64_t (*now_ns)(void *arg);
	void *now_arg;
	/* 300 s: how far stamps may run ahead of the clock. */
	int64_t max_future_skew_ns;
	/* DOGWOOD_SYNC_NEEDED. */
	enum dogwood_sync_policy sync;
	/* 10,000: snapshot in the background after so many; 0: never. */
	uint64_t snapshot_events;
	/* 16 MiB: size to which log files grow; 64 KiB .. 1 GiB. */
	uint64_t segment_bytes;
	/* 65,536: how many idempotency tokens are remembered. */
	unsigned token_events;
	/* NULL: none; a set that declares providers is then refused, and one that a store holds
	 * from before denies (DOGWOOD_FAULT) where a policy asks. */
	dogwood_provider_fn provider;
	void *provider_arg;
	/* Zero. */
	void *reserved[6];
};
DOGWOOD_API void dogwood_options_init(struct dogwood_options *o);

typedef struct dogwood_engine dogwood_engine;

/* Open a store and rebuild its state. A torn, never acknowledged tail is cut; other damage is
 * DOGWOOD_ECORRUPT with file and offset; a store in use is DOGWOOD_EBUSY. */
DOGWOOD_API int dogwood_engine_open(
    const struct dogwood_options *o, dogwood_engine **out, struct dogwood_error *err);
/* Make everything durable and close. Waiting callbacks are called first. After a failed sync it
 * still closes, and returns -1. NULL is allowed. */
DOGWOOD_API int dogwood_engine_close(dogwood_engine *e, struct dogwood_error *err);

/* Made by the library. */
struct dogwood_installed {
	/* False: the same set was installed already; nothing was stored. */
	bool changed;
	/* Record that holds the change. */
	uint64_t offset;
	/* Its stamp. */
	int64_t ts_ns;
	/* Policies now installed. */
	unsigned rules;
	/* Temporal clauses among them. */
	unsigned clauses;
	/* Of these, unchanged: their history counts on. */
	unsigned clauses_kept;
	/* New or changed: they see only events from now on. */
	unsigned clauses_new;
};

/* Replace the whole set, durably. A temporal clause whose policy text is unchanged keeps its
 * history, wherever the policy moved; a new or changed one starts empty. Refusal
 * (DOGWOOD_EPOLICY) leaves the old set in force. diags and out may be NULL. */
DOGWOOD_API int dogwood_engine_install(dogwood_engine *e, const struct dogwood_policy_set *set,
    dogwood_diags *diags, struct dogwood_installed *out, struct dogwood_error *err);

/* A policy of the installed set. Made by the library. */
struct dogwood_rule {
	/* Position in the set, from 0. */
	unsigned index;
	/* "policy_3". */
	dogwood_str engine_id;
	/* @id, empty when there is none. */
	dogwood_str id;
	/* @description, empty when there is none. */
	dogwood_str description;
	bool is_forbid;
	/* The policy's token: the same as long as the policy is there, wherever it stands. */
	dogwood_str token;
	/* Source name and line of its effect word. */
	dogwood_str file;
	unsigned line;
};

/* Changes to single policies. Each policy has a token from when it appears until it is deleted. */
enum dogwood_verb_kind {
	/* One or more policies in text; each gets a token and starts without history. Macros that
	 * the installed sources define may be used, repeated word by word, and added to. */
	DOGWOOD_ADD = 1,
	/* Exactly one policy in text takes the place of `token`; its history starts anew. */
	DOGWOOD_UPDATE,
	DOGWOOD_DELETE,
	/* The policy stays, its history is forgotten. */
	DOGWOOD_RESET,
	/* An empty set stays installed: everything is denied. */
	DOGWOOD_DELETE_ALL,
	DOGWOOD_RESET_ALL,
	/* The whole schema is text, or text is added to its end. All histories are kept. */
	DOGWOOD_SET_ACTION_SCHEMA,
	DOGWOOD_APPEND_ACTION_SCHEMA
};

struct dogwood_verb {
	enum dogwood_verb_kind kind;
	dogwood_str token;
	dogwood_str text;
};

/* Apply n verbs in order, each on what the earlier ones left; all of them durably, or none.
 * Policies that are not named keep their history. *minted (may be NULL): the tokens of added
 * policies, one a line, in order; dogwood_free it. */
DOGWOOD_API int dogwood_engine_batch(dogwood_engine *e, const struct dogwood_verb *verb, size_t n,
    dogwood_diags *diags, struct dogwood_installed *out, char **minted, struct dogwood_error *err);

#define DOGWOOD_POLICY_TOKEN 24

struct dogwood_policy {
	char token[DOGWOOD_POLICY_TOKEN + 1];
	/* Grows with each policy ever added. */
	uint64_t ordinal;
	int64_t created_ns, updated_ns;
	/* dogwood_free it. */
	char *statement;
};
/* The i-th installed policy; -1 past the end. */
DOGWOOD_API int dogwood_engine_policy(
    dogwood_engine *e, size_t i, struct dogwood_policy *out, struct dogwood_error *err);

enum dogwood_cause {
	/* A permit matched and no forbid did. */
	DOGWOOD_PERMITTED = 1,
	/* A forbid matched. */
	DOGWOOD_FORBIDDEN,
	/* Nothing permitted it. */
	DOGWOOD_NO_MATCH,
	/* It could not be judged, or not be made durable: denied. */
	DOGWOOD_FAULT,
	/* Not a decision kind: history only. */
	DOGWOOD_RECORDED
};

/* Made by the library (dogwood_verdict_new, or borrowed in a callback). It owns its text: a
 * later install does not change it. */
struct dogwood_verdict {
	/* Run the action? false unless cause is DOGWOOD_PERMITTED. */
	bool permit;
	enum dogwood_cause cause;
	/* Determining rules in file order: all matching forbids, or permits. */
	const struct dogwood_rule *rules;
	size_t n_rules;
	/* Why, when cause is DOGWOOD_FAULT. */
	dogwood_str fault;
	/* Run-time errors of single policies (those did not match). */
	const dogwood_str *errors;
	size_t n_errors;
	/* Position of the event in the store. */
	uint64_t offset;
	/* Its stamp, ns since 1970. */
	int64_t ts_ns;
	/* The token was known: this is the first verdict, nothing was stored. */
	bool repeated;
};

DOGWOOD_API struct dogwood_verdict *dogwood_verdict_new(void); /* NULL without memory */
DOGWOOD_API void dogwood_verdict_free(struct dogwood_verdict *v);

/* Stamp, store and judge one event; returns when its verdict may leave. Threads that wait share
 * one sync. token, when not empty, makes the call repeatable: a second submit with the same
 * token stores nothing and returns the first verdict, also after a restart (the last
 * token_events tokens are remembered). -1: no verdict. Treat as denied. What was stored then is
 * said by the code: DOGWOOD_EARG, DOGWOOD_ECLOCK, DOGWOOD_ENOPOLICY and DOGWOOD_ELIMIT stored
 * nothing; DOGWOOD_ESTORE may have; DOGWOOD_EEVENT did (the event is history, but its action is
 * not in the schema). v may be NULL for a history event. */
DOGWOOD_API int dogwood_submit(dogwood_engine *e, const dogwood_event *ev, dogwood_str token,
    struct dogwood_verdict *v, struct dogwood_error *err);

/* Called once for each accepted dogwood_submit_begin, never under a lock of the engine: it may
 * call any function here but dogwood_engine_close. v is borrowed for the call. When the sync
 * failed, v has cause DOGWOOD_FAULT. */
typedef void (*dogwood_verdict_fn)(void *arg, const struct dogwood_verdict *v);

/* Stamp, queue and judge one event now, in order. Returns
 *    1  the verdict may leave: fn was called, before this returned
 *    0  fn will be called by dogwood_engine_sync (or dogwood_engine_close)
 *   -1  refused as in dogwood_submit; fn is not called.
 * fn NULL: the caller does not wait, as with a ::response; the next dogwood_engine_sync makes the
 * event durable, and verdicts that depend on it wait for that. */
DOGWOOD_API int dogwood_submit_begin(dogwood_engine *e, const dogwood_event *ev, dogwood_str token,
    dogwood_verdict_fn fn, void *arg, struct dogwood_error *err);
/* Make everything queued durable with one sync, then call the waiting callbacks in submit order.
 * Returns how many were called; -1 when the store failed (they were called with DOGWOOD_FAULT).
 * Costs nothing when nothing waits. Call it once per turn of the event loop. */
DOGWOOD_API int dogwood_engine_sync(dogwood_engine *e, struct dogwood_error *err);
/* Is there anything that dogwood_engine_sync should make durable? */
DOGWOOD_API bool dogwood_engine_waiting(dogwood_engine *e);

/* Summarise the state in a snapshot now and drop log files no longer needed. */
DOGWOOD_API int dogwood_engine_checkpoint(dogwood_engine *e, struct dogwood_error *err);

/* Made by the library: set size to sizeof first. */
struct dogwood_status {
	size_t size;
	bool installed;
	/* A write or sync failed; every submit is refused. */
	bool poisoned;
	unsigned rules, clauses;
	/* Number of records ever stored. */
	uint64_t next_offset;
	/* Records below it survive a crash. */
	uint64_t durable_offset;
	/* Oldest record still in the log. */
	uint64_t base_offset;
	/* Records below it are summarised; 0: no snapshot. */
	uint64_t snapshot_offset;
	/* Newest stamp. */
	int64_t last_ts_ns;
	/* Accepted since open. */
	uint64_t events;
	/* Made since open. */
	uint64_t syncs;
	/* Records replayed at open. */
	uint64_t replayed;
	/* Torn tail cut at open. */
	uint64_t cut_bytes;
};
DOGWOOD_API int dogwood_engine_status(
    dogwood_engine *e, struct dogwood_status *st, struct dogwood_error *err);

/* The i-th installed rule into *out, 0; -1 past the end. Text is valid until the next install. */
DOGWOOD_API int dogwood_engine_rule(dogwood_engine *e, size_t i, struct dogwood_rule *out);

#ifdef __cplusplus
}
#endif

#endif
