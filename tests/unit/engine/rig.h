/* An engine with a clock in the test's hand, Box's schemas, and short ways to submit. Every
 * failure that a test does not expect ends it. */
#pragma once

#include <dogwood/dogwood.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/io.h"

#define MINUTE (60 * INT64_C(1000000000))
#define T0     INT64_C(1790000000000000000)

struct rig {
	dogwood_engine *e;
	int64_t now;
	dogwood_event *ev;
	struct dogwood_verdict *v;
	struct dogwood_options opt;
	struct eng_io io;
};

/* A rig that is not opened yet; path NULL: memory. */
void rig_init(struct rig *r, const char *path);
void rig_fini(struct rig *r); /* closes */
void rig_open(struct rig *r);
int rig_try_open(struct rig *r, struct dogwood_error *err);
void rig_close(struct rig *r);
/* Install a policy text with Box's schemas; it must be accepted. */
struct dogwood_installed rig_install(struct rig *r, const char *policy);
int rig_try_install(struct rig *r, const char *policy, struct dogwood_error *err);

/* Build an event in r->ev: an HTTP request, its answer, a file effect. */
void rig_http(struct rig *r, const char *host);
void rig_http_done(struct rig *r, const char *host, int64_t status);
void rig_fs(struct rig *r, const char *action, const char *path, const char *op);
/* Submit r->ev; the verdict is in r->v. true: permitted. */
bool rig_submit(struct rig *r);
bool rig_submit_token(struct rig *r, const char *token);
int rig_try_submit(struct rig *r, struct dogwood_error *err);
/* A post that ends with 200 when it was permitted. */
bool rig_post(struct rig *r, const char *host);
struct dogwood_status rig_status(struct rig *r);

/* Permits everything but the fourth answered post to slack.com in ten minutes. */
extern const char rig_policy[];
/* The same rule over requests: the third is refused, since the request itself counts. */
extern const char rig_policy_requests[];
