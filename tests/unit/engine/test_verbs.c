/* Changes to single policies (local-engine.md 11, suites verb_batch, retention,
 * set_action_schema). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"
#include "tmp.h"

#include "base/ban.h"

#define PERMIT "@id(\"all\") permit (principal, action, resource);"
/* Refuses an http request when one to `host` was answered in the last hour. */
#define AFTER(name, host)                                                                          \
	"@id(\"" name "\") forbid (principal, action == Box::Action::\"http:request\", resource) " \
	"when temporal { formerly within 1h Box::Action::\"http:request\"::response{ "             \
	"input.host: \"" host "\" } };"

static int batch(
    struct rig *r, const struct dogwood_verb *v, size_t n, char **minted, struct dogwood_error *err)
{
	return dogwood_engine_batch(r->e, v, n, NULL, NULL, minted, err);
}

static char *must(struct rig *r, enum dogwood_verb_kind kind, const char *token, const char *text)
{
	struct dogwood_verb v = { kind, dogwood_cstr(token), dogwood_cstr(text) };
	struct dogwood_error err = { 0 };
	static char first[DOGWOOD_POLICY_TOKEN + 1];
	char *minted = NULL;

	if (batch(r, &v, 1, &minted, &err) < 0)
		fail_msg("%s", err.msg);
	(void)snprintf(first, sizeof(first), "%s", minted);
	dogwood_free(minted);
	return first;
}

static void token_at(struct rig *r, size_t i, char *out)
{
	struct dogwood_policy p;

	assert_int_equal(dogwood_engine_policy(r->e, i, &p, NULL), 0);
	memcpy(out, p.token, sizeof(p.token));
	dogwood_free(p.statement);
}

static size_t count(struct rig *r)
{
	struct dogwood_policy p;
	size_t n = 0;

	while (dogwood_engine_policy(r->e, n, &p, NULL) == 0) {
		dogwood_free(p.statement);
		n++;
	}
	return n;
}

static void answered(struct rig *r, const char *host)
{
	rig_http_done(r, host, 200);
	(void)rig_submit(r);
}

/* Is the request refused, and by which rule? NULL: permitted. */
static const char *refused(struct rig *r)
{
	static char id[64];

	rig_http(r, "q.com");
	if (rig_submit(r))
		return NULL;
	(void)snprintf(id, sizeof(id), "%.*s", r->v->n_rules != 0 ? (int)r->v->rules[0].id.n : 0,
	    r->v->n_rules != 0 ? r->v->rules[0].id.p : "");
	return id;
}

static void reopen(struct rig *r, int how)
{
	if (how == 0)
		return;
	if (how == 2)
		assert_int_equal(dogwood_engine_checkpoint(r->e, NULL), 0);
	rig_close(r);
	rig_open(r);
}

static void test_add(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct dogwood_verb two = { DOGWOOD_ADD, { NULL, 0 },
			dogwood_cstr(AFTER("a", "a.com") "\n" AFTER("b", "b.com")) };
		struct dogwood_error err = { 0 };
		char *minted, tok[3][DOGWOOD_POLICY_TOKEN + 1];
		struct dogwood_policy p;
		struct rig r;

		rig_init(&r, tmp_path("add"));
		rig_open(&r);
		assert_int_equal(batch(&r, &two, 1, NULL, &err), -1);
		assert_int_equal(err.code, DOGWOOD_ENOPOLICY);
		(void)rig_install(&r, PERMIT);
		answered(&r, "b.com");
		assert_int_equal(batch(&r, &two, 1, &minted, &err), 0);
		/* Two entries, in source order, born without history. */
		assert_int_equal(strlen(minted), 2 * (DOGWOOD_POLICY_TOKEN + 1));
		reopen(&r, how);
		assert_int_equal(count(&r), 3);
		for (size_t i = 0; i < 3; i++)
			token_at(&r, i, tok[i]);
		assert_memory_equal(tok[1], minted, DOGWOOD_POLICY_TOKEN);
		assert_memory_equal(
		    tok[2], minted + DOGWOOD_POLICY_TOKEN + 1, DOGWOOD_POLICY_TOKEN);
		dogwood_free(minted);
		assert_memory_equal(tok[0], "SP", 2);
		assert_string_not_equal(tok[1], tok[2]);
		assert_int_equal(dogwood_engine_policy(r.e, 2, &p, NULL), 0);
		assert_int_equal(p.ordinal, 2);
		assert_int_equal(p.created_ns, p.updated_ns);
		assert_non_null(strstr(p.statement, "b.com"));
		dogwood_free(p.statement);
		assert_null(refused(&r));
		answered(&r, "b.com");
		assert_string_equal(refused(&r), "b");
		rig_fini(&r);
	}
}

static void test_retention(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		char a[DOGWOOD_POLICY_TOKEN + 1], b[DOGWOOD_POLICY_TOKEN + 1];
		struct rig r;

		rig_init(&r, tmp_path("retain"));
		rig_open(&r);
		(void)rig_install(&r, PERMIT);
		(void)snprintf(
		    a, sizeof(a), "%s", must(&r, DOGWOOD_ADD, NULL, AFTER("a", "a.com")));
		(void)snprintf(
		    b, sizeof(b), "%s", must(&r, DOGWOOD_ADD, NULL, AFTER("b", "a.com")));
		answered(&r, "a.com");
		assert_string_equal(refused(&r), "a");

		/* The same clause in two policies: two histories. Resetting one leaves the
		 * other. */
		(void)must(&r, DOGWOOD_RESET, a, NULL);
		reopen(&r, how);
		assert_string_equal(refused(&r), "b");
		assert_int_equal(r.v->n_rules, 1);

		/* Deleting the policy in front keeps the history of the one behind. */
		(void)must(&r, DOGWOOD_DELETE, a, NULL);
		reopen(&r, how);
		assert_string_equal(refused(&r), "b");

		/* An update starts anew, even with the same text. */
		(void)must(&r, DOGWOOD_UPDATE, b, AFTER("b", "a.com"));
		reopen(&r, how);
		assert_null(refused(&r));
		answered(&r, "a.com");
		assert_string_equal(refused(&r), "b");

		/* Delete and add again: a new policy. */
		(void)must(&r, DOGWOOD_DELETE, b, NULL);
		(void)must(&r, DOGWOOD_ADD, NULL, AFTER("b", "a.com"));
		reopen(&r, how);
		assert_null(refused(&r));
		answered(&r, "a.com");
		(void)must(&r, DOGWOOD_RESET_ALL, NULL, NULL);
		reopen(&r, how);
		assert_null(refused(&r));

		/* An empty set denies. */
		(void)must(&r, DOGWOOD_DELETE_ALL, NULL, NULL);
		reopen(&r, how);
		assert_int_equal(count(&r), 0);
		assert_string_equal(refused(&r), "");
		assert_int_equal(r.v->cause, DOGWOOD_NO_MATCH);
		/* Numbers are not given twice. */
		(void)must(&r, DOGWOOD_ADD, NULL, PERMIT);
		{
			struct dogwood_policy p;

			assert_int_equal(dogwood_engine_policy(r.e, 0, &p, NULL), 0);
			assert_int_equal(p.ordinal, 4);
			dogwood_free(p.statement);
		}
		rig_fini(&r);
	}
}

static void test_all_or_nothing(void **state)
{
	char t[DOGWOOD_POLICY_TOKEN + 1], *minted = NULL;
	struct dogwood_error err = { 0 };
	struct dogwood_installed in;
	uint64_t before;
	struct rig r;

	(void)state;
	rig_init(&r, tmp_path("batch"));
	rig_open(&r);
	(void)rig_install(&r, PERMIT);
	(void)snprintf(t, sizeof(t), "%s", must(&r, DOGWOOD_ADD, NULL, AFTER("a", "a.com")));
	answered(&r, "a.com");
	before = rig_status(&r).next_offset;
	{
		const struct {
			struct dogwood_verb v[3];
			const char *says;
		} row[] = {
			{ { { DOGWOOD_DELETE, dogwood_cstr(t), { NULL, 0 } },
			      { DOGWOOD_DELETE, dogwood_cstr(t), { NULL, 0 } },
			      { DOGWOOD_RESET_ALL, { NULL, 0 }, { NULL, 0 } } },
			    "no such policy: SP" },
			{ { { DOGWOOD_RESET_ALL, { NULL, 0 }, { NULL, 0 } },
			      { DOGWOOD_UPDATE, dogwood_cstr(t), dogwood_cstr(PERMIT PERMIT) },
			      { DOGWOOD_RESET_ALL, { NULL, 0 }, { NULL, 0 } } },
			    "update expects exactly one policy, got 2" },
			{ { { DOGWOOD_RESET_ALL, { NULL, 0 }, { NULL, 0 } },
			      { DOGWOOD_ADD, { NULL, 0 }, dogwood_cstr("  ") },
			      { DOGWOOD_RESET_ALL, { NULL, 0 }, { NULL, 0 } } },
			    "source contains no policy" },
			{ { { DOGWOOD_RESET_ALL, { NULL, 0 }, { NULL, 0 } },
			      { DOGWOOD_ADD, { NULL, 0 }, dogwood_cstr("permit (principal") },
			      { DOGWOOD_RESET_ALL, { NULL, 0 }, { NULL, 0 } } },
			    "" },
			{ { { DOGWOOD_RESET_ALL, { NULL, 0 }, { NULL, 0 } },
			      { DOGWOOD_SET_ACTION_SCHEMA, { NULL, 0 },
			          dogwood_cstr("namespace Box { entity Agent; }") },
			      { DOGWOOD_RESET_ALL, { NULL, 0 }, { NULL, 0 } } },
			    "" },
		};

		for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
			assert_int_equal(batch(&r, row[i].v, 3, &minted, &err), -1);
			if (strstr(err.msg, row[i].says) == NULL)
				fail_msg("%zu: %s", i, err.msg);
			assert_int_equal(rig_status(&r).next_offset, before);
			assert_int_equal(count(&r), 2);
		}
	}
	assert_string_equal(refused(&r), "a");
	/* Nothing to do is done. */
	before = rig_status(&r).next_offset;
	assert_int_equal(dogwood_engine_batch(r.e, NULL, 0, NULL, &in, NULL, &err), 0);
	assert_int_equal(in.ts_ns, rig_status(&r).last_ts_ns);
	assert_int_equal(rig_status(&r).next_offset, before);
	rig_fini(&r);
}

/* Macros that a policy source defines stay defined for what comes later, and go through restarts
 * and snapshots. */
static void test_macros(void **state)
{
#define DEF                                                                                        \
	"def temporal answered(?h) { formerly within 1h Box::Action::\"http:request\"::"           \
	"response{ input.host: ?h } };\n"
#define LATE                                                                                       \
	"def temporal late(?h) { formerly within 2h Box::Action::\"http:request\"::response{ "     \
	"input.host: ?h } };\n"
#define FORBID(name, macro, host)                                                                  \
	"@id(\"" name "\") forbid (principal, action == Box::Action::\"http:request\", resource) " \
	"when temporal { " macro "(\"" host "\") };\n"
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct dogwood_error err = { 0 };
		struct dogwood_verb bad = { DOGWOOD_ADD, { NULL, 0 },
			dogwood_cstr(
			    "def temporal answered(?h) { formerly within 9h "
			    "Box::Action::\"http:request\"::response{ input.host: ?h } };\n" FORBID(
			        "x", "answered", "x.com")) };
		char a[DOGWOOD_POLICY_TOKEN + 1];
		struct rig r;

		rig_init(&r, tmp_path("macros"));
		rig_open(&r);
		(void)rig_install(
		    &r, "// first\n" DEF "// second\n" PERMIT FORBID("a", "answered", "a.com"));
		answered(&r, "a.com");
		reopen(&r, how);
		/* Another source that uses it, and defines one more. */
		(void)snprintf(a, sizeof(a), "%s",
		    must(&r, DOGWOOD_ADD, NULL, LATE FORBID("b", "late", "b.com")));
		reopen(&r, how);
		assert_string_equal(refused(&r), "a");
		token_at(&r, 1, a);
		(void)must(&r, DOGWOOD_DELETE, a, NULL);
		assert_null(refused(&r));
		answered(&r, "b.com");
		reopen(&r, how);
		assert_string_equal(refused(&r), "b");
		/* Word by word again is no second definition; another meaning is. */
		(void)must(&r, DOGWOOD_ADD, NULL, DEF FORBID("c", "answered", "c.com"));
		assert_int_equal(batch(&r, &bad, 1, NULL, &err), -1);
		assert_int_equal(err.code, DOGWOOD_EPOLICY);
		reopen(&r, how);
		(void)must(&r, DOGWOOD_RESET_ALL, NULL, NULL);
		assert_null(refused(&r));
		answered(&r, "c.com");
		assert_string_equal(refused(&r), "c");
		rig_fini(&r);
	}
}

/* A schema may grow without any history being lost. */
static void test_schema(void **state)
{
	static const char more[] = "namespace demo { entity Agent; entity Resource; action "
	                           "\"look\" appliesTo { principal: [Agent], "
	                           "resource: [Resource], context: { input: { q: String } } }; }\n";
	(void)state;
	for (int how = 0; how < 3; how++) {
		struct rig r;

		rig_init(&r, tmp_path("schema"));
		rig_open(&r);
		(void)rig_install(&r, PERMIT AFTER("a", "a.com"));
		answered(&r, "a.com");
		(void)must(&r, DOGWOOD_APPEND_ACTION_SCHEMA, NULL, more);
		reopen(&r, how);
		assert_string_equal(refused(&r), "a");
		(void)must(&r, DOGWOOD_ADD, NULL,
		    "@id(\"d\") forbid (principal, action == demo::Action::\"look\", resource) "
		    "when { context.input.q == \"x\" };");
		reopen(&r, how);
		assert_string_equal(refused(&r), "a");
		assert_int_equal(count(&r), 3);
		rig_fini(&r);
	}
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
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_retention),
		cmocka_unit_test(test_all_or_nothing),
		cmocka_unit_test(test_macros),
		cmocka_unit_test(test_schema),
	};

	return cmocka_run_group_tests(tests, NULL, done);
}
