/* See rig.h. */
#include "rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dogwood/box_schema.h"
#include "engine/engine.h"

#include "base/ban.h"

#define PERMIT "@id(\"all\")\npermit (principal, action, resource);\n"
#define LIMIT(kind)                                                                                \
	"@id(\"rate_limit_slack_posts\")\n"                                                        \
	"@description(\"three posts in ten minutes\")\n"                                           \
	"forbid (principal, action == Box::Action::\"http:request\", resource)\n"                  \
	"when { context.input.host == \"slack.com\" }\n"                                           \
	"when temporal {\n"                                                                        \
	"  (count for (t: Timepoint). where (formerly within 10m\n"                                \
	"    (Box::Action::\"http:request\"::" kind " && tp(t)))) >= 3\n"                          \
	"};\n"

const char rig_policy[] = PERMIT LIMIT("response{ input.host: \"slack.com\", output.status: 200 }");
const char rig_policy_requests[] = PERMIT LIMIT("request{ input.host: \"slack.com\" }");

static int64_t rig_clock(void *arg)
{
	return ((struct rig *)arg)->now;
}

void rig_init(struct rig *r, const char *path)
{
	*r = (struct rig){ .now = T0,
		.ev = dogwood_event_new(),
		.v = dogwood_verdict_new(),
		.io = eng_io_system() };
	assert_non_null(r->ev);
	assert_non_null(r->v);
	dogwood_options_init(&r->opt);
	r->opt.path = path;
	r->opt.now_ns = rig_clock;
	r->opt.now_arg = r;
}

int rig_try_open(struct rig *r, struct dogwood_error *err)
{
	return eng_open_io(&r->opt, &r->io, &r->e, err);
}

void rig_open(struct rig *r)
{
	struct dogwood_error err = { 0 };

	if (rig_try_open(r, &err) < 0)
		fail_msg("open: %s", err.msg);
}

void rig_close(struct rig *r)
{
	struct dogwood_error err = { 0 };

	if (dogwood_engine_close(r->e, &err) < 0)
		fail_msg("close: %s", err.msg);
	r->e = NULL;
}

void rig_fini(struct rig *r)
{
	(void)dogwood_engine_close(r->e, NULL);
	dogwood_event_free(r->ev);
	dogwood_verdict_free(r->v);
}

static int install(struct rig *r, const char *policy, struct dogwood_installed *out,
    dogwood_diags *d, struct dogwood_error *err)
{
	struct dogwood_source src = { dogwood_cstr("policy.dw"), dogwood_cstr(policy) };
	struct dogwood_policy_set set = { .policies = &src,
		.n_policies = 1,
		.action_schema = { dogwood_cstr("actions"), dogwood_cstr(dw_box_actions) },
		.event_schema = { dogwood_cstr("events"), dogwood_cstr(dw_box_events) } };

	return dogwood_engine_install(r->e, &set, d, out, err);
}

struct dogwood_installed rig_install(struct rig *r, const char *policy)
{
	struct dogwood_installed out = { 0 };
	struct dogwood_error err = { 0 };
	dogwood_diags *d = dogwood_diags_new();

	if (install(r, policy, &out, d, &err) < 0)
		fail_msg("install: %s\n%s", err.msg, dogwood_diags_text(d, 0));
	dogwood_diags_free(d);
	return out;
}

int rig_try_install(struct rig *r, const char *policy, struct dogwood_error *err)
{
	return install(r, policy, NULL, NULL, err);
}

static void begin(struct rig *r, const char *action, const char *kind)
{
	char name[128];

	(void)snprintf(name, sizeof(name), "Box::Action::\"%s\"", action);
	dogwood_event_reset(r->ev);
	dogwood_event_action(r->ev, dogwood_cstr(name), dogwood_cstr(kind));
	dogwood_event_principal(r->ev, dogwood_cstr("Box::Agent::\"self\""));
	dogwood_event_resource(r->ev, dogwood_cstr("Box::Resource::\"unused\""));
	dogwood_event_str(r->ev, DOGWOOD_HISTORY, "requestId", dogwood_cstr("r1"));
}

static void http(struct rig *r, const char *host, const char *kind)
{
	begin(r, "http:request", kind);
	dogwood_event_str(r->ev, DOGWOOD_BOTH, "input.host", dogwood_cstr(host));
	dogwood_event_long(r->ev, DOGWOOD_BOTH, "input.port", 443);
	dogwood_event_str(r->ev, DOGWOOD_BOTH, "input.method", dogwood_cstr("POST"));
	dogwood_event_str(r->ev, DOGWOOD_BOTH, "input.path", dogwood_cstr("/api"));
	dogwood_event_long(r->ev, DOGWOOD_BOTH, "input.body_bytes", 10);
	dogwood_event_bool(r->ev, DOGWOOD_BOTH, "input.intercepted", true);
}

void rig_http(struct rig *r, const char *host)
{
	http(r, host, "request");
}

void rig_http_done(struct rig *r, const char *host, int64_t status)
{
	http(r, host, "response");
	dogwood_event_long(r->ev, DOGWOOD_HISTORY, "output.status", status);
}

void rig_fs(struct rig *r, const char *action, const char *path, const char *op)
{
	const char *type =
	    strcmp(action, "fs:write") == 0 ? "Box::FsWriteOperation" : "Box::FsReadOperation";

	begin(r, action, "request");
	dogwood_event_str(r->ev, DOGWOOD_BOTH, "input.path", dogwood_cstr(path));
	dogwood_event_entity_id(
	    r->ev, DOGWOOD_BOTH, "input.operation", dogwood_cstr(type), dogwood_cstr(op));
}

int rig_try_submit(struct rig *r, struct dogwood_error *err)
{
	return dogwood_submit(r->e, r->ev, (dogwood_str){ NULL, 0 }, r->v, err);
}

bool rig_submit_token(struct rig *r, const char *token)
{
	struct dogwood_error err = { 0 };

	if (dogwood_submit(r->e, r->ev, dogwood_cstr(token), r->v, &err) < 0)
		fail_msg("submit: %s", err.msg);
	return r->v->permit;
}

bool rig_submit(struct rig *r)
{
	return rig_submit_token(r, NULL);
}

bool rig_post(struct rig *r, const char *host)
{
	bool yes;

	rig_http(r, host);
	yes = rig_submit(r);
	if (yes) {
		rig_http_done(r, host, 200);
		(void)rig_submit(r);
	}
	return yes;
}

struct dogwood_status rig_status(struct rig *r)
{
	struct dogwood_status st = { .size = sizeof(st) };

	assert_int_equal(dogwood_engine_status(r->e, &st, NULL), 0);
	return st;
}
