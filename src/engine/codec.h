/* codec: what stands in the bodies of log records. An event record holds the event in full (what
 * `dogwood log` and `dogwood replay` need), the caller's token and the verdict that was given;
 * recovery steps the monitors with the event and does not judge again. Bytes may come from a
 * damaged or forged file: everything is bounded and nothing is trusted.
 *
 *   event     u8 1, u32 length and event (dw_event_put), u8 context form, str token, verdict
 *             form 0: the event holds its context
 *             form 1: u16 n, n names: the context consists of these members of `logged`
 *   verdict   u8 cause, u16 n, n u32 rules, u16 n, n { u32 rule, str text } errors, str fault
 *   install   u8 1, u32 n, n sources, source actions, source events, source macros
 *             u8 2: the same and source providers
 *             source: u8 present, [str name, str text]
 *   clock     u8 1, u64 stamp before, u64 clock */
#pragma once

#include <dogwood/dogwood.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/rd.h"
#include "dogwood/decide.h"
#include "dogwood/event.h"

#define ENG_RULES_MAX   65535 /* determining rules stored with a verdict; more are not named */
#define ENG_ERRORS_MAX  64    /* the same for errors */
#define ENG_SOURCES_MAX 131072
#define ENG_NAME_MAX    4096

/* The fault of a verdict for which there was no memory: the one that is not the same again. */
#define ENG_FAULT_NOMEM "no memory for the decision"

/* A verdict as stored. cause is enum dogwood_cause. */
struct eng_stored {
	uint8_t cause;
	const uint32_t *rules;
	size_t nrules;
	const uint32_t *error_rules;
	const sv *errors;
	size_t nerrors;
	sv fault;
};

/* Begin an event body: everything before the verdict. */
void eng_event_put(struct buf *b, const struct dw_event *e, sv token);
/* Put e->ts into the event that was begun first in b. */
void eng_event_restamp(struct buf *b, const struct dw_event *e);
/* End it. d NULL: the event was only recorded. */
void eng_verdict_put(struct buf *b, const struct dw_decision *d);
/* Read a whole event body. out->ts is what dw_event_put stored. token and v may be NULL. */
int eng_event_get(sv body, struct arena *a, struct dw_event *out, sv *token, struct eng_stored *v,
    struct box_err *err);
/* What a recovery needs: the event without its context, the token, the bytes of the verdict. */
int eng_event_lean(
    sv body, struct arena *a, struct dw_event *out, sv *token, sv *verdict, struct box_err *err);

/* The verdict alone, as eng_verdict_put wrote it. */
int eng_stored_get(sv bytes, struct arena *a, struct eng_stored *v, struct box_err *err);

void eng_install_put(struct buf *b, const struct dogwood_policy_set *set);
/* The sources vector lives in a, texts borrow from body. */
int eng_install_get(sv body, struct arena *a, struct dogwood_policy_set *out, struct box_err *err);

void eng_clock_put(struct buf *b, int64_t last, int64_t now);
int eng_clock_get(sv body, int64_t *last, int64_t *now, struct box_err *err);

/* The stored cause of a decision; NULL: only recorded. */
uint8_t eng_cause_of(const struct dw_decision *d);
/* enum dogwood_cause as one word: "permit", "forbid", "no-match", "fault", "recorded". */
const char *eng_cause_name(unsigned cause);
