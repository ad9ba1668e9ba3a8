/* Decisions: denial texts, batches, tickets and outcomes, owners that end, and the announcement's
 * timeline under an injected clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dogwood/box_schema.h"
#include "dogwood/dogwood.h"
#include "monitor/decide.h"

#define RATE_RULES                                                                                 \
	"@id(\"all\") permit (principal, action, resource);"                                       \
	"@id(\"rate_limit_slack_posts\") @description(\"At most three Slack posts in ten "         \
	"minutes.\")"                                                                              \
	"forbid (principal, action == Box::Action::\"http:request\", resource)"                    \
	"when { context.input.host == \"slack.com\" && context.input.method == \"POST\" }"         \
	"when temporal { (count for (t: Timepoint). where (formerly within 10m ("                  \
	"Box::Action::\"http:request\"::%s{ input.host: \"slack.com\", input.method: \"POST\"%s }" \
	"&& tp(t)))) >= 3 };"

struct fixture {
	char dir[64], path[128];
	int64_t now;
	dogwood_engine *engine;
	struct recorder *rec;
	struct decider *d;
	struct decide_owner owner;
	/* the last answer */
	int answers;
	bool gone, permit;
	uint64_t ticket;
	size_t index;
	char text[512];
};

static int64_t now_of(void *arg)
{
	return ((struct fixture *)arg)->now;
}

static struct fixture fixture;

static struct fixture *start(const char *policy)
{
	struct fixture *f = &fixture;
	struct dogwood_source src = { dogwood_cstr("policy.dw"), dogwood_cstr(policy) };
	struct dogwood_policy_set set = { .policies = &src,
		.n_policies = 1,
		.action_schema = { dogwood_cstr("actions"), dogwood_cstr(dw_box_actions) },
		.event_schema = { dogwood_cstr("events"), dogwood_cstr(dw_box_events) } };
	struct dogwood_options o;
	struct dogwood_error de;
	struct box_err err;

	*f = (struct fixture){ .dir = "/tmp/decide-test-XXXXXX",
		.now = INT64_C(1790848800) * NS_PER_SEC };
	assert_non_null(mkdtemp(f->dir));
	(void)snprintf(f->path, sizeof(f->path), "%s/records.jsonl", f->dir);
	f->rec = record_open(f->path, "box-0123456789abcdef", clock_fixed(&f->now), &err);
	assert_non_null(f->rec);
	dogwood_options_init(&o);
	o.now_ns = now_of;
	o.now_arg = f;
	assert_int_equal(dogwood_engine_open(&o, &f->engine, &de), 0);
	if (dogwood_engine_install(f->engine, &set, NULL, NULL, &de) != 0)
		fail_msg("install: %s", de.msg);
	f->d = decide_new(f->engine, f->rec, &err);
	assert_non_null(f->d);
	return f;
}

static int finish(void **state)
{
	struct fixture *f = &fixture;

	(void)state;
	decide_owner_end(f->d, &f->owner);
	decide_free(f->d);
	assert_int_equal(dogwood_engine_close(f->engine, NULL), 0);
	record_close(f->rec);
	(void)unlink(f->path);
	(void)rmdir(f->dir);
	return 0;
}

static void on_answer(void *arg, const struct decision *d)
{
	struct fixture *f = arg;

	f->answers++;
	f->gone = d == NULL;
	if (d == NULL)
		return;
	f->permit = d->permit;
	f->ticket = d->ticket;
	f->index = d->index;
	(void)snprintf(f->text, sizeof(f->text), SV_FMT, SV_ARG(d->text));
}

static bool decide(struct fixture *f, const struct ask *asks, size_t n)
{
	struct box_err err;
	int before = f->answers;

	assert_int_equal(
	    decide_batch(f->d, &f->owner, asks, n, (sv){ NULL, 0 }, on_answer, f, &err), 0);
	assert_true(decide_turn(f->d));
	assert_int_equal(f->answers, before + 1);
	return f->permit;
}

static struct ask fs(enum mon_fs_op op, const char *path)
{
	return (struct ask){ .kind = ASK_FS, .op = op, .path = sv_c(path) };
}

static void test_denial_texts(void **state)
{
	struct fixture *f = start(
	    "@id(\"ok\") permit (principal, action == Box::Action::\"fs:read\", resource);"
	    "@id(\"keep\") @description(\"  Secrets stay out.  \") forbid (principal, action == "
	    "Box::Action::\"fs:read\", resource) when { context.input.path == \"~/a/.env\" };"
	    "@id(\"plain\") forbid (principal, action == Box::Action::\"fs:read\", resource)"
	    "when { context.input.path == \"~/b\" };"
	    "forbid (principal, action == Box::Action::\"fs:read\", resource)"
	    "when { context.input.path == \"~/c\" };"
	    "@id(\"default-deny\") forbid (principal, action == Box::Action::\"fs:read\", resource)"
	    "when { context.input.path == \"~/d\" };");
	static const struct {
		enum mon_fs_op op;
		const char *path, *text;
	} rows[] = {
		{ FS_READ_CONTENT, "~/a/.env",
		    "policy denied this operation on '~/a/.env' [policy: keep]: Secrets stay "
		    "out." },
		{ FS_READ_CONTENT, "~/b",
		    "policy denied this operation on '~/b' [policy: plain]." },
		{ FS_READ_CONTENT, "~/c",
		    "policy denied this operation on '~/c' [policy: policy_3]." },
		{ FS_READ_CONTENT, "~/d",
		    "policy denied this operation on '~/d' [policy: default-deny]." },
		{ FS_WRITE_CONTENT, "~/e",
		    "policy denied this operation on '~/e' [default-deny]: No permit policy "
		    "matched this request." },
		{ FS_WRITE_CONTENT, "~/\x1b[2J",
		    "policy denied this operation on '~/\\x1b[2J' [default-deny]: No permit policy "
		    "matched this "
		    "request." },
	};
	struct ask a;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		a = fs(rows[i].op, rows[i].path);
		assert_false(decide(f, &a, 1));
		assert_string_equal(f->text, rows[i].text);
	}
	a = fs(FS_ENUMERATE, "~/a");
	assert_true(decide(f, &a, 1));
}

static void test_a_batch_is_all_or_nothing(void **state)
{
	struct fixture *f =
	    start("@id(\"del\") permit (principal, action == Box::Action::\"fs:delete\", resource);"
	          "@id(\"keep\") forbid (principal, action == Box::Action::\"fs:delete\", resource)"
	          "when { context.input.path like \"*/keep\" };");
	struct ask asks[3] = { fs(FS_REMOVE_FILE, "~/t/a"), fs(FS_REMOVE_FILE, "~/t/keep"),
		fs(FS_REMOVE_DIR, "~/t") };
	struct box_err err;
	uint64_t first;

	(void)state;
	assert_false(decide(f, asks, 3));
	assert_int_equal(f->index, 1);
	assert_non_null(strstr(f->text, "'~/t/keep' [policy: keep]"));
	assert_int_equal(f->owner.tickets_n, 0);
	asks[1] = fs(FS_REMOVE_FILE, "~/t/b");
	assert_true(decide(f, asks, 3));
	assert_int_equal(f->owner.tickets_n, 3);
	first = f->ticket;
	assert_int_equal(decide_done_fs(f->d, &f->owner, first, FS_COMPLETED, &err), 0);
	/* Each ticket once, and only its own kind of outcome. */
	assert_int_equal(decide_done_fs(f->d, &f->owner, first, FS_COMPLETED, &err), -1);
	assert_int_equal(decide_done_status(f->d, &f->owner, first + 1, 0, 0, &err), -1);
	assert_int_equal(decide_abandon(f->d, &f->owner, first + 1, 2, &err), 0);
	assert_int_equal(f->owner.tickets_n, 0);
}

static void test_an_owner_ends(void **state)
{
	struct fixture *f = start("@id(\"all\") permit (principal, action, resource);");
	struct decide_owner other = { 0 };
	struct ask a = fs(FS_READ_CONTENT, "~/x");
	struct box_err err;

	(void)state;
	assert_true(decide(f, &a, 1));
	/* A ticket of somebody else is not there. */
	assert_int_equal(decide_done_fs(f->d, &other, f->ticket, FS_COMPLETED, &err), -1);
	assert_null(decide_ticket_start(f->d, &other, f->ticket));
	assert_null(decide_ticket_start(f->d, &f->owner, f->ticket)); /* no spawn */
	decide_owner_end(f->d, &f->owner);
	assert_int_equal(f->owner.tickets_n, 0);
	assert_int_equal(decide_done_fs(f->d, &f->owner, f->ticket, FS_COMPLETED, &err), -1);
	assert_true(decide_turn(f->d));
}

static struct ask spawn(const char *program)
{
	return (struct ask){ .kind = ASK_SPAWN,
		.program = sv_c(program),
		.program_path = SV("/usr/bin/make"),
		.command = sv_c(program),
		.cwd = SV("~/w") };
}

/* Has a make ended with this status, by the history? */
static bool ended_with(struct fixture *f, const char *probe)
{
	struct ask a = {
		.kind = ASK_EXEC, .program = sv_c(probe), .command = sv_c(probe), .cwd = SV("~/w")
	};
	struct box_err err;
	bool yes = !decide(f, &a, 1);

	if (!yes)
		assert_int_equal(decide_abandon(f->d, &f->owner, f->ticket, 1, &err), 0);
	return yes;
}

/* The status of a host program is what its launcher saw, whatever a shell says about it. */
static void test_spawns_are_not_believed(void **state)
{
	struct fixture *f = start(
	    "@id(\"all\") permit (principal, action, resource);"
	    "@id(\"zero\") forbid (principal, action == Box::Action::\"shell:exec\", resource)"
	    " when { context.input.program == \"zero\" } when temporal { formerly within 1h "
	    "(Box::Action::\"shell:spawn\"::response{ output.status: 0 }) };"
	    "@id(\"seven\") forbid (principal, action == Box::Action::\"shell:exec\", resource)"
	    " when { context.input.program == \"seven\" } when temporal { formerly within 1h "
	    "(Box::Action::\"shell:spawn\"::response{ output.status: 7 }) };"
	    "@id(\"one\") forbid (principal, action == Box::Action::\"shell:exec\", resource)"
	    " when { context.input.program == \"one\" } when temporal { formerly within 1h "
	    "(Box::Action::\"shell:spawn\"::response{ output.status: 1 }) };");
	struct ask a = spawn("make");
	struct box_err err;
	uint64_t ticket;

	(void)state;
	/* Success of a program that never ran. */
	assert_true(decide(f, &a, 1));
	assert_int_equal(decide_done_status(f->d, &f->owner, f->ticket, 0, 0, &err), 0);
	assert_int_equal(f->owner.tickets_n, 0);
	assert_false(ended_with(f, "zero"));
	/* One start a ticket. While it runs a report counts for nothing; its end does. */
	assert_true(decide(f, &a, 1));
	ticket = f->ticket;
	assert_non_null(decide_ticket_start(f->d, &f->owner, ticket));
	assert_null(decide_ticket_start(f->d, &f->owner, ticket));
	assert_int_equal(decide_done_status(f->d, &f->owner, ticket, 0, 0, &err), 0);
	assert_int_equal(f->owner.tickets_n, 1);
	assert_false(ended_with(f, "zero"));
	decide_ticket_ended(f->d, &f->owner, ticket, 7);
	assert_int_equal(f->owner.tickets_n, 0);
	assert_true(ended_with(f, "seven"));
	assert_false(ended_with(f, "zero"));
	decide_ticket_ended(f->d, &f->owner, ticket, 0); /* not open any more */
	assert_false(ended_with(f, "zero"));
	/* What was seen wins over what is told, also when it is given up. */
	assert_true(decide(f, &a, 1));
	ticket = f->ticket;
	assert_non_null(decide_ticket_start(f->d, &f->owner, ticket));
	decide_ticket_ended(f->d, &f->owner, ticket, 1);
	assert_int_equal(decide_abandon(f->d, &f->owner, ticket, 1, &err), 0);
	assert_int_equal(f->owner.tickets_n, 0);
	assert_true(ended_with(f, "one"));
	assert_true(decide(f, &a, 1));
	ticket = f->ticket;
	assert_non_null(decide_ticket_start(f->d, &f->owner, ticket));
	decide_ticket_ended(f->d, &f->owner, ticket, 0);
	assert_int_equal(decide_done_status(f->d, &f->owner, ticket, 9, 0, &err), 0);
	assert_true(ended_with(f, "zero"));
	/* An owner that ends takes a running one with it. */
	assert_true(decide(f, &a, 1));
	assert_non_null(decide_ticket_start(f->d, &f->owner, f->ticket));
	decide_owner_end(f->d, &f->owner);
	assert_int_equal(f->owner.tickets_n, 0);
}

static bool post(struct fixture *f, int minute, const char *host, const char *method)
{
	struct ask a = { .kind = ASK_HTTP,
		.host = sv_c(host),
		.port = 443,
		.method = sv_c(method),
		.path = SV("/api/chat.postMessage"),
		.intercepted = true };
	struct box_err err;

	f->now = (INT64_C(1790848800) + 60 * (int64_t)minute) *
	         NS_PER_SEC; /* 10:00 and so many minutes */
	if (!decide(f, &a, 1))
		return false;
	assert_int_equal(decide_done_status(f->d, &f->owner, f->ticket, 200, 10, &err), 0);
	assert_true(decide_turn(f->d));
	return true;
}

static void test_timeline_of_responses(void **state)
{
	char policy[2048];
	struct fixture *f;

	(void)state;
	(void)snprintf(policy, sizeof(policy), RATE_RULES, "response", ", output.status: 200");
	f = start(policy);
	assert_true(post(f, 0, "slack.com", "POST"));
	assert_true(post(f, 3, "slack.com", "POST"));
	assert_true(post(f, 5, "slack.com", "POST"));
	assert_false(post(f, 6, "slack.com", "POST"));
	assert_string_equal(f->text,
	    "policy denied this operation on 'slack.com:443/api/chat.postMessage' "
	    "[policy: rate_limit_slack_posts]: At most three Slack posts in ten minutes.");
	assert_true(post(f, 7, "logs.us-east-1.amazonaws.com", "GET"));
	/* Windows are closed: at 10:10 the post of 10:00 still counts. */
	assert_false(post(f, 10, "slack.com", "POST"));
	assert_true(post(f, 11, "slack.com", "POST"));
}

static void test_timeline_of_requests(void **state)
{
	char policy[2048];
	struct fixture *f;

	(void)state;
	(void)snprintf(policy, sizeof(policy), RATE_RULES, "request", "");
	f = start(policy);
	/* The request being decided is in the history already. */
	assert_true(post(f, 0, "slack.com", "POST"));
	assert_true(post(f, 3, "slack.com", "POST"));
	assert_false(post(f, 5, "slack.com", "POST"));
	assert_true(post(f, 7, "logs.us-east-1.amazonaws.com", "GET"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_denial_texts, finish),
		cmocka_unit_test_teardown(test_a_batch_is_all_or_nothing, finish),
		cmocka_unit_test_teardown(test_an_owner_ends, finish),
		cmocka_unit_test_teardown(test_spawns_are_not_believed, finish),
		cmocka_unit_test_teardown(test_timeline_of_responses, finish),
		cmocka_unit_test_teardown(test_timeline_of_requests, finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
