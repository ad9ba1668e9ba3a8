/* The engine's contracts (local-engine.md 4.2, 6, 11; dogwood.h): stamps, verdicts, attribution,
 * retention, tokens. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/fd.h"
#include "engine/scan.h"
#include "engine/snapshot.h"
#include "rig.h"
#include "tmp.h"

#include "base/ban.h"

static bool str_is(dogwood_str s, const char *want)
{
	return s.n == strlen(want) && memcmp(s.p, want, s.n) == 0;
}

/* Posts at 10:00, 10:03, 10:05 go, 10:06 not, other hosts do, 10:10 not since windows are
 * closed, 10:11 goes. The store is closed and opened again between any two. */
static void timeline(const char *path, bool reopen)
{
	static const struct {
		int64_t at;
		const char *host;
		bool goes;
	} step[] = { { 0, "slack.com", true }, { 3, "slack.com", true }, { 5, "slack.com", true },
		{ 6, "slack.com", false }, { 7, "logs.com", true }, { 10, "slack.com", false },
		{ 11, "slack.com", true } };
	struct rig r;

	rig_init(&r, path);
	rig_open(&r);
	(void)rig_install(&r, rig_policy);
	for (size_t i = 0; i < sizeof(step) / sizeof(step[0]); i++) {
		if (reopen) {
			rig_close(&r);
			rig_open(&r);
			assert_false(rig_install(&r, rig_policy).changed);
		}
		r.now = T0 + step[i].at * MINUTE;
		assert_int_equal(rig_post(&r, step[i].host), step[i].goes);
		if (!step[i].goes) {
			assert_int_equal(r.v->cause, DOGWOOD_FORBIDDEN);
			assert_int_equal(r.v->n_rules, 1);
			assert_true(str_is(r.v->rules[0].id, "rate_limit_slack_posts"));
			assert_true(str_is(r.v->rules[0].engine_id, "policy_1"));
			assert_true(
			    str_is(r.v->rules[0].description, "three posts in ten minutes"));
			assert_true(r.v->rules[0].is_forbid);
		}
	}
	rig_fini(&r);
}

static void test_timeline(void **state)
{
	(void)state;
	timeline(NULL, false);
	timeline(tmp_path("timeline"), false);
	timeline(tmp_path("timeline"), true);
}

static void test_requests_count_themselves(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, NULL);
	rig_open(&r);
	(void)rig_install(&r, rig_policy_requests);
	assert_true(rig_post(&r, "slack.com"));
	assert_true(rig_post(&r, "slack.com"));
	assert_false(rig_post(&r, "slack.com"));
	rig_fini(&r);
}

/* Offsets and stamps only grow, whatever the clock does, across restarts, and events that were
 * denied count too. */
static void test_order(void **state)
{
	const char *path = tmp_path("order");
	const int64_t clocks[] = { T0, T0 + 5, T0 + 5, T0 + 4, T0 - 100, T0 + 1000, T0 + 1000 };
	uint64_t offset = 0;
	int64_t ts = 0;
	struct rig r;

	(void)state;
	rig_init(&r, path);
	rig_open(&r);
	offset = rig_install(&r, rig_policy).offset;
	ts = T0;
	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		r.now = clocks[i];
		rig_http(&r, i % 2 == 0 ? "slack.com" : "x.com");
		(void)rig_submit(&r);
		assert_int_equal(r.v->offset, offset + 1);
		assert_true(r.v->ts_ns > ts);
		assert_true(r.v->ts_ns == r.now || r.v->ts_ns == ts + 1);
		offset = r.v->offset;
		ts = r.v->ts_ns;
		if (i % 3 == 2) {
			rig_close(&r);
			rig_open(&r);
		}
		assert_int_equal(rig_status(&r).next_offset, offset + 1);
		assert_int_equal(rig_status(&r).last_ts_ns, ts);
	}
	rig_fini(&r);
}

static void test_clock_refusals(void **state)
{
	const char *path = tmp_path("clock");
	struct dogwood_error err = { 0 };
	struct rig r;

	(void)state;
	rig_init(&r, path);
	rig_open(&r);
	(void)rig_install(&r, rig_policy);
	/* Five minutes behind is the limit. */
	r.now = T0 - 5 * MINUTE + 1;
	rig_http(&r, "x.com");
	assert_true(rig_submit(&r));
	r.now = T0 - 5 * MINUTE - 2;
	assert_int_equal(rig_try_submit(&r, &err), -1);
	assert_int_equal(err.code, DOGWOOD_ECLOCK);
	assert_non_null(strstr(err.msg, "exceeding the maximum allowed future skew"));
	assert_int_equal(rig_status(&r).next_offset, 2);
	/* It works again when the clock has caught up. */
	r.now = T0;
	assert_true(rig_submit(&r));
	rig_close(&r);
	r.now = T0 - 6 * MINUTE;
	assert_int_equal(rig_try_open(&r, &err), -1);
	assert_non_null(strstr(err.msg, "exceeding the maximum allowed future skew"));
	r.now = T0;
	rig_open(&r);
	/* The end of time. */
	r.now = INT64_MAX;
	assert_true(rig_submit(&r));
	assert_int_equal(rig_try_submit(&r, &err), -1);
	assert_int_equal(err.code, DOGWOOD_ECLOCK);
	assert_non_null(strstr(err.msg, "timestamp space is exhausted"));
	rig_fini(&r);
}

/* A jump forward over an hour is a record of its own. */
static void test_clock_jump(void **state)
{
	struct rig r;

	(void)state;
	rig_init(&r, tmp_path("jump"));
	rig_open(&r);
	(void)rig_install(&r, rig_policy);
	r.now += 60 * MINUTE;
	rig_http(&r, "x.com");
	(void)rig_submit(&r);
	assert_int_equal(r.v->offset, 1);
	r.now += 60 * MINUTE + 1000;
	(void)rig_submit(&r);
	assert_int_equal(r.v->offset, 3);
	rig_close(&r);
	rig_open(&r);
	assert_int_equal(rig_status(&r).next_offset, 4);
	rig_fini(&r);
}

static void test_fails_closed(void **state)
{
	struct dogwood_error err = { 0 };
	struct rig r;

	(void)state;
	rig_init(&r, NULL);
	rig_open(&r);
	rig_http(&r, "x.com");
	assert_int_equal(rig_try_submit(&r, &err), -1);
	assert_int_equal(err.code, DOGWOOD_ENOPOLICY);
	assert_int_equal(r.v->cause, DOGWOOD_FAULT);
	assert_false(r.v->permit);
	(void)rig_install(&r, rig_policy);

	/* No scope: a fault, recorded. */
	dogwood_event_reset(r.ev);
	dogwood_event_action(
	    r.ev, dogwood_cstr("Box::Action::\"http:request\""), dogwood_cstr("request"));
	assert_false(rig_submit(&r));
	assert_int_equal(r.v->cause, DOGWOOD_FAULT);
	assert_true(r.v->fault.n != 0);
	assert_int_equal(r.v->n_rules, 0);

	/* Builder mistakes store nothing. */
	rig_http(&r, "x.com");
	dogwood_event_str(r.ev, DOGWOOD_BOTH, "input.host", dogwood_cstr("again"));
	assert_int_equal(rig_try_submit(&r, &err), -1);
	assert_int_equal(err.code, DOGWOOD_EARG);
	assert_non_null(strstr(err.msg, "input.host"));
	dogwood_event_reset(r.ev);
	dogwood_event_action(r.ev, dogwood_cstr("http:request"), dogwood_cstr("request"));
	assert_int_equal(rig_try_submit(&r, &err), -1);
	assert_int_equal(err.code, DOGWOOD_EARG);
	dogwood_event_reset(r.ev);
	assert_int_equal(rig_try_submit(&r, &err), -1);
	assert_int_equal(err.code, DOGWOOD_EARG);
	assert_int_equal(rig_status(&r).next_offset, 2);

	/* An action that the schema does not have: recorded, no verdict. */
	dogwood_event_reset(r.ev);
	dogwood_event_action(
	    r.ev, dogwood_cstr("Box::Action::\"model:invoke\""), dogwood_cstr("request"));
	assert_int_equal(rig_try_submit(&r, &err), -1);
	assert_int_equal(err.code, DOGWOOD_EEVENT);
	assert_non_null(strstr(err.msg, "is a decision kind but yielded no decision"));
	assert_int_equal(rig_status(&r).next_offset, 3);
	/* Again with a token: the same answer each time, stored once. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
		    dogwood_submit(r.e, r.ev, dogwood_cstr("undeclared"), r.v, &err), -1);
		assert_int_equal(err.code, DOGWOOD_EEVENT);
		assert_int_equal(rig_status(&r).next_offset, 4);
	}
	dogwood_event_reset(r.ev);
	dogwood_event_action(
	    r.ev, dogwood_cstr("Box::Action::\"model:invoke\""), dogwood_cstr("response"));
	(void)rig_submit(&r);
	assert_int_equal(r.v->cause, DOGWOOD_RECORDED);
	rig_fini(&r);
}

static void test_attribution(void **state)
{
	static const char policy[] =
	    "permit (principal, action, resource);\n"
	    "@id(\"b\") forbid (principal, action, resource) when { context.input.port == 443 };\n"
	    "forbid (principal, action == Box::Action::\"fs:read\", resource);\n"
	    "@id(\"b\") @description(\"posts\") forbid (principal, action, resource)\n"
	    "when { context.input.method == \"POST\" };\n"
	    "@id(\"o\") forbid (principal, action, resource)\n"
	    "when { 9223372036854775807 + context.input.port > 0 };\n";
	struct dogwood_rule rule;
	struct rig r;

	(void)state;
	rig_init(&r, NULL);
	/* Cedar's validator would refuse fields that only some actions have. */
	rig_open(&r);
	{
		struct dogwood_source src = { dogwood_cstr("p.dw"), dogwood_cstr(policy) };
		struct dogwood_policy_set set = { .policies = &src, .n_policies = 1 };
		struct dogwood_error err = { 0 };

		if (dogwood_engine_install(r.e, &set, NULL, NULL, &err) < 0)
			fail_msg("%s", err.msg);
	}
	rig_http(&r, "x.com");
	assert_false(rig_submit(&r));
	assert_int_equal(r.v->cause, DOGWOOD_FORBIDDEN);
	assert_int_equal(r.v->n_rules, 2);
	assert_int_equal(r.v->rules[0].index, 1);
	assert_int_equal(r.v->rules[1].index, 3);
	assert_true(str_is(r.v->rules[0].id, "b"));
	assert_int_equal(r.v->rules[0].description.n, 0);
	assert_true(str_is(r.v->rules[1].description, "posts"));
	assert_true(str_is(r.v->rules[1].engine_id, "policy_3"));
	assert_int_equal(r.v->rules[1].line, 4);
	assert_int_equal(r.v->n_errors, 1);
	assert_int_equal(dogwood_engine_rule(r.e, 2, &rule), 0);
	assert_true(rule.is_forbid);
	assert_int_equal(rule.id.n, 0);
	assert_int_equal(dogwood_engine_rule(r.e, 5, &rule), -1);
	rig_fini(&r);
}

/* The same question with many limits: those that hold are found without asking the others, and are
 * just those. */
static void test_limits(void **state)
{
	static const char *const ops[] = { ">=", ">", "<", "<=", "==", "!=" };
	char policy[64 * 1024];
	size_t at = 0;
	struct rig r;

	(void)state;
	at += (size_t)snprintf(policy, sizeof(policy), "permit (principal, action, resource);\n");
	/* Rule 1 + 10 k + i: count op limit, limits in no order; then windows of i minutes. */
	for (unsigned k = 0; k < 6; k++)
		for (unsigned i = 0; i < 10; i++)
			at += (size_t)snprintf(policy + at, sizeof(policy) - at,
			    "forbid (principal, action == Box::Action::\"http:request\", resource) "
			    "when temporal { (count for (t: Timepoint). where (formerly within 24h "
			    "(Box::Action::\"http:request\"::response{ output.status: 200 } && "
			    "tp(t)))) %s %u };\n",
			    ops[k], i * 7 % 10);
	for (unsigned i = 0; i < 10; i++)
		at += (size_t)snprintf(policy + at, sizeof(policy) - at,
		    "forbid (principal, action == Box::Action::\"http:request\", resource) when "
		    "temporal { formerly within %um Box::Action::\"http:request\"::response{ "
		    "output.status: 200 } };\n",
		    i * 3 % 10 + 1);
	assert_true(at < sizeof(policy));
	rig_init(&r, NULL);
	rig_open(&r);
	(void)rig_install(&r, policy);
	for (unsigned n = 0; n < 12; n++) {
		int64_t last = r.now;

		for (unsigned wait = 0; wait < 12; wait += 5) {
			bool is[71] = { 0 };
			size_t want = 0;

			r.now = last + wait * MINUTE;
			rig_http(&r, "x.com");
			(void)rig_submit(&r);
			for (unsigned i = 0; i < 10; i++) {
				unsigned limit = i * 7 % 10;

				is[1 + i] = n >= limit;
				is[11 + i] = n > limit;
				is[21 + i] = n < limit;
				is[31 + i] = n <= limit;
				is[41 + i] = n == limit;
				is[51 + i] = n != limit;
				is[61 + i] =
				    n != 0 && r.v->ts_ns - last <= (i * 3 % 10 + 1) * MINUTE;
			}
			for (unsigned i = 0; i < 71; i++)
				want += is[i];
			assert_int_equal(r.v->n_rules, want);
			for (size_t i = 0; i < want; i++) {
				assert_true(is[r.v->rules[i].index]);
				assert_true(
				    i == 0 || r.v->rules[i].index > r.v->rules[i - 1].index);
			}
		}
		rig_http_done(&r, "x.com", 200);
		(void)rig_submit(&r);
		r.now = r.v->ts_ns;
	}
	rig_fini(&r);
}

/* Unchanged clauses keep what they saw; new and changed ones see only what follows. */
static void test_retention(void **state)
{
	static const char other[] =
	    "@id(\"extra\") forbid (principal, action == Box::Action::\"fs:write\", resource)\n"
	    "when temporal { formerly within 1h Box::Action::\"http:request\"::request{ } };\n";
	char both[2048], tighter[2048];
	struct dogwood_installed in;
	struct dogwood_error err = { 0 };
	uint64_t before;
	struct rig r;
	char *ten;

	(void)state;
	(void)snprintf(both, sizeof(both), "%s%s", other, rig_policy);
	(void)snprintf(tighter, sizeof(tighter), "%s", rig_policy);
	ten = strstr(tighter, "10m");
	assert_non_null(ten);
	memcpy(ten, "20m", 3);
	for (int reopen = 0; reopen < 2; reopen++) {
		rig_init(&r, tmp_path("retention"));
		rig_open(&r);
		in = rig_install(&r, rig_policy);
		assert_true(in.changed);
		assert_int_equal(in.rules, 2);
		assert_int_equal(in.clauses, 1);
		assert_int_equal(in.clauses_new, 1);
		for (int i = 0; i < 3; i++)
			assert_true(rig_post(&r, "slack.com"));
		assert_false(rig_post(&r, "slack.com"));

		/* Another rule in front: the limit keeps its three posts; the new rule has seen
		 * none. */
		in = rig_install(&r, both);
		assert_int_equal(in.clauses_kept, 1);
		assert_int_equal(in.clauses_new, 1);
		if (reopen != 0) {
			rig_close(&r);
			rig_open(&r);
		}
		assert_false(rig_post(&r, "slack.com"));
		assert_true(str_is(r.v->rules[0].engine_id, "policy_2"));
		rig_close(&r);
		rig_open(&r);
		rig_fs(&r, "fs:write", "~/x", "write_content");
		assert_false(rig_submit(&r)); /* it saw the request just refused */

		/* A refused set changes nothing. */
		before = rig_status(&r).next_offset;
		assert_int_equal(rig_try_install(&r, "permit (principal, action", &err), -1);
		assert_int_equal(err.code, DOGWOOD_EPOLICY);
		assert_int_equal(rig_status(&r).next_offset, before);
		assert_false(rig_post(&r, "slack.com"));

		/* A changed limit begins anew. */
		in = rig_install(&r, tighter);
		assert_int_equal(in.clauses_kept, 0);
		if (reopen != 0) {
			rig_close(&r);
			rig_open(&r);
		}
		for (int i = 0; i < 3; i++)
			assert_true(rig_post(&r, "slack.com"));
		assert_false(rig_post(&r, "slack.com"));
		rig_fini(&r);
	}
}

static void test_tokens(void **state)
{
	struct rig r;
	uint64_t offset;

	(void)state;
	rig_init(&r, tmp_path("tokens"));
	r.opt.token_events = 3;
	rig_open(&r);
	(void)rig_install(&r, rig_policy_requests);
	rig_http(&r, "slack.com");
	assert_true(rig_submit_token(&r, "a"));
	offset = r.v->offset;
	assert_false(r.v->repeated);
	/* Any number of repeats counts once. */
	for (int i = 0; i < 5; i++) {
		assert_true(rig_submit_token(&r, "a"));
		assert_true(r.v->repeated);
		assert_int_equal(r.v->offset, offset);
		assert_true(str_is(r.v->rules[0].id, "all"));
		if (i == 2) {
			rig_close(&r);
			rig_open(&r);
		}
		if (i == 3) {
			assert_int_equal(dogwood_engine_checkpoint(r.e, NULL), 0);
			rig_close(&r);
			rig_open(&r);
		}
	}
	assert_true(rig_submit_token(&r, "b"));
	assert_false(rig_submit_token(&r, "c"));
	assert_false(rig_submit_token(&r, "c"));
	assert_true(r.v->repeated);
	assert_int_equal(r.v->cause, DOGWOOD_FORBIDDEN);
	/* The fourth pushes the first out. */
	assert_false(rig_submit_token(&r, "d"));
	assert_false(rig_submit_token(&r, "a"));
	assert_false(r.v->repeated);
	assert_true(rig_submit_token(&r, "b") || !r.v->repeated);
	rig_fini(&r);
}

/* What the log adds up to is what the snapshot says, also when the store remembers fewer tokens
 * than who compares them (`dogwood fsck`). */
static void test_snapshot_is_the_log(void **state)
{
	const char *path = tmp_path("compare");
	struct eng_state log, snap;
	uint8_t id[WAL_ID], again[WAL_ID] = { 0 };
	AUTO_BUF a = buf_with((size_t)1 << 24);
	AUTO_BUF b = buf_with((size_t)1 << 24);
	AUTO_FD dir = -1;
	struct box_err err;
	struct wal_end end;
	struct rig r;

	(void)state;
	rig_init(&r, path);
	r.opt.token_events = 3;
	rig_open(&r);
	(void)rig_install(&r, rig_policy_requests);
	for (unsigned i = 0; i < 7; i++) {
		char token[8];

		(void)snprintf(token, sizeof(token), "t%u", i);
		rig_http(&r, i % 2 == 0 ? "slack.com" : "x.com");
		(void)rig_submit_token(&r, token);
	}
	assert_int_equal(dogwood_engine_checkpoint(r.e, NULL), 0);
	rig_close(&r);

	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	eng_state_init(&log, 65536);
	eng_state_init(&snap, 65536);
	assert_int_equal(wal_scan(dir, 0, WAL_SCAN_OPEN, eng_state_replay, &log, &end, &err), 0);
	assert_int_equal(eng_snap_load_at(dir, log.next, &snap, NULL, id, &err), 0);
	assert_memory_equal(id, end.id, WAL_ID);
	assert_int_equal(eng_tokens_count(&log.tokens), 7);
	assert_int_equal(eng_tokens_count(&snap.tokens), 3);
	eng_tokens_keep(&log.tokens, eng_tokens_count(&snap.tokens));
	eng_state_save(&log, again, &a);
	eng_state_save(&snap, again, &b);
	assert_true(buf_ok(&a) && buf_ok(&b));
	assert_true(sv_eq(buf_sv(&a), buf_sv(&b)));
	eng_state_fini(&log);
	eng_state_fini(&snap);
	rig_fini(&r);
}

static int done(void **state)
{
	(void)state;
	tmp_done();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timeline),
		cmocka_unit_test(test_requests_count_themselves),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_clock_refusals),
		cmocka_unit_test(test_clock_jump),
		cmocka_unit_test(test_fails_closed),
		cmocka_unit_test(test_attribution),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_retention),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_snapshot_is_the_log),
	};

	return cmocka_run_group_tests(tests, NULL, done);
}
