/* Monitors: births, resets, changes of policy, what may match, memory: none taken by a decision
 * after warm-up, none lost, none missing without an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "../base/failmalloc.h"
#include "dogwood/decide.h"
#include "dogwood/set_impl.h"

#include "base/ban.h"

static const char events[] =
    "decision event <A>::request { ...inputs(A) } event <A>::response { ...inputs(A) }";

static struct dw_set *try_load(const char *policy, struct box_err *err)
{
	struct dw_load in = { .policy = { SV("t.dw"), sv_c(policy) },
		.event_schema = { SV("e"), sv_c(events) },
		.tick = DW_TICK_SECOND };
	AUTO_DW_DIAGS d = { 0 };

	return dw_load(&in, &d, err);
}

static struct dw_set *load(const char *policy)
{
	struct box_err err = { 0 };
	struct dw_set *s = try_load(policy, &err);

	if (s == NULL)
		fail_msg("refused: %s", err.msg);
	return s;
}

static struct dw_event event(
    struct arena *a, const char *action, const char *user, int64_t v, int64_t ts)
{
	struct dw_rec in = dw_rec_in(a), bag = dw_rec_in(a);
	struct dw_event e = {
		.ns = SV("N::Action"), .id = sv_c(action), .kind = SV("request"), .ts = ts
	};

	e.principal = (struct dw_uid){ SV("N::U"), SV("u") };
	e.resource = (struct dw_uid){ SV("N::R"), SV("r") };
	dw_rec_str(&in, SV("u"), sv_c(user));
	dw_rec_int(&in, SV("v"), v);
	dw_rec_add(&bag, SV("input"), dw_rec_val(&in));
	e.logged = e.context = dw_rec_val(&bag);
	return e;
}

static bool leaf(struct dwm *m, size_t i, const struct dw_event *e)
{
	struct box_err err = { 0 };
	bool v = false;

	if (dwm_leaf(m, i, e, &v, &err) < 0)
		fail_msg("%s", err.msg);
	return v;
}

static void step(struct dwm *m, const struct dw_event *e)
{
	struct box_err err = { 0 };

	if (dwm_step(m, e, &err) < 0)
		fail_msg("%s", err.msg);
}

#define ONCE(id, w, action)                                                                        \
	"@id(\"" id "\") permit (principal, action, resource) when temporal { formerly within " w  \
	" N::Action::\"" action "\"::request{ input.u: context.input.u } };\n"

static void births(void **state)
{
	struct dw_set *one = load(ONCE("a", "1h", "A")),
	              *two = load(ONCE("b", "1h", "A") ONCE("a", "1h", "A")),
	              *changed = load(ONCE("a", "2h", "A"));
	AUTO_ARENA a = { 0 };
	struct dw_event login = event(&a, "A", "x", 1, 10), probe = event(&a, "B", "x", 1, 20);
	struct box_err err = { 0 };
	struct dwm *m = dwm_new(one, DWM_MONOTONE, &err), *n;
	int32_t map[2];

	(void)state;
	assert_non_null(m);
	step(m, &login);
	step(m, &probe);
	assert_true(leaf(m, 0, &probe));
	/* An equal clause under another id has its own window, which begins now; the old one goes
	 * on although it moved. */
	dw_set_correspond(two, one, map);
	assert_int_equal(map[0], -1);
	assert_int_equal(map[1], 0);
	assert_int_equal(dwm_retained(m, two, map), 1);
	n = dwm_transfer(m, two, map, &err);
	assert_non_null(n);
	dwm_free(m);
	probe.ts = 30;
	step(n, &probe);
	assert_false(leaf(n, 0, &probe));
	assert_true(leaf(n, 1, &probe));
	login.ts = 40;
	step(n, &login);
	probe.ts = 50;
	step(n, &probe);
	assert_true(leaf(n, 0, &probe));
	/* Back to one rule, changed: born now. */
	dw_set_correspond(changed, two, map);
	assert_int_equal(map[0], 1);
	assert_int_equal(dwm_retained(n, changed, map), 0);
	m = dwm_transfer(n, changed, map, &err);
	dwm_free(n);
	probe.ts = 60;
	step(m, &probe);
	assert_false(leaf(m, 0, &probe));
	dwm_free(m);
	dw_set_free(one);
	dw_set_free(two);
	dw_set_free(changed);
}

static void a_refused_change_harms_nothing(void **state)
{
	struct dw_set *one = load(ONCE("a", "1h", "A")), *two = load(ONCE("b", "1h", "B"));
	AUTO_ARENA a = { 0 };
	struct dw_event login = event(&a, "A", "x", 1, 10);
	struct box_err err = { 0 };
	struct dwm *m = dwm_new(one, DWM_MONOTONE, &err), *n;
	int32_t map[1] = { -1 };

	(void)state;
	step(m, &login);
	n = dwm_transfer(m, two, map, &err);
	assert_non_null(n);
	dwm_free(n);
	login.ts = 20;
	step(m, &login);
	assert_true(leaf(m, 0, &login));
	dwm_free(m);
	dw_set_free(one);
	dw_set_free(two);
}

/* A change before the first event: the longer window of the new rule must not end up on the state
 * made for the shorter one. */
static void a_change_before_any_event(void **state)
{
	struct dw_set *one = load(ONCE("a", "3s", "A")),
	              *two = load(ONCE("b", "9s", "A") ONCE("a", "3s", "A"));
	AUTO_ARENA a = { 0 };
	struct dw_event e[3] = { event(&a, "A", "x", 1, 10), event(&a, "A", "y", 1, 15),
		event(&a, "B", "x", 1, 18) };
	struct box_err err = { 0 };
	struct dwm *m = dwm_new(one, DWM_MONOTONE, &err), *n;
	int32_t map[2];

	(void)state;
	dw_set_correspond(two, one, map);
	n = dwm_transfer(m, two, map, &err);
	dwm_free(m);
	for (int i = 0; i < 3; i++)
		step(n, &e[i]);
	assert_true(leaf(n, 0, &e[2]));
	assert_false(leaf(n, 1, &e[2]));
	dwm_free(n);
	dw_set_free(one);
	dw_set_free(two);
}

static void reset(void **state)
{
	struct dw_set *s = load(ONCE("a", "1h", "A") ONCE("b", "1h", "A"));
	AUTO_ARENA a = { 0 };
	struct dw_event login = event(&a, "A", "x", 1, 10), probe = event(&a, "B", "x", 1, 20);
	struct box_err err = { 0 };
	struct dwm *m = dwm_new(s, DWM_MONOTONE, &err);

	(void)state;
	step(m, &login);
	assert_return_code(dwm_reset_rule(m, 0, &err), 0);
	step(m, &probe);
	assert_false(leaf(m, 0, &probe));
	assert_true(leaf(m, 1, &probe));
	assert_int_equal(dwm_reset_rule(m, 2, &err), -1);
	dwm_free(m);
	dw_set_free(s);
}

static void stamps_must_not_fall(void **state)
{
	struct dw_set *s = load(ONCE("a", "1h", "A"));
	AUTO_ARENA a = { 0 };
	struct dw_event e = event(&a, "A", "x", 1, 10);
	struct box_err err = { 0 };
	struct dwm *m = dwm_new(s, DWM_MONOTONE, &err);

	(void)state;
	step(m, &e);
	e.ts = 9;
	assert_int_equal(dwm_step(m, &e, &err), -1);
	assert_true(dwm_ok(m));
	assert_int_equal(dwm_timepoints(m), 1);
	dwm_free(m);
	dw_set_free(s);
}

/* Where stamps may go back, the newest is the highest seen. */
static void the_newest_stamp(void **state)
{
	struct dw_set *s = load(ONCE("a", "1h", "A"));
	AUTO_ARENA a = { 0 };
	struct dw_event e = event(&a, "A", "x", 1, 10);
	struct box_err err = { 0 };
	struct dwm *m = dwm_new(s, DWM_ANY, &err);

	(void)state;
	assert_true(dwm_last_ts(m) == INT64_MIN);
	step(m, &e);
	e.ts = 9;
	step(m, &e);
	assert_int_equal(dwm_last_ts(m), 10);
	assert_int_equal(dwm_timepoints(m), 2);
	dwm_free(m);
	dw_set_free(s);
}

/* A leaf that cannot be computed is not an error of its rule, which would be passed over: the whole
 * decision is a fault and denies. */
static void a_leaf_without_memory_is_a_fault(void **state)
{
	/* Many rows, so that the evaluator needs more than it was given at the start. */
	enum { EVENTS = 4000 };
	struct dw_set *s = load(
	    "permit (principal, action, resource);\n"
	    "forbid (principal, action, resource) when { context.input.v > 1000000 || temporal { "
	    "(count for (v: Long). where (formerly within 1h (N::Action::\"A\"::request{ "
	    "input.v: v } && !(previous within 1h N::Action::\"B\"::request{ input.v: v })))) > "
	    "3 } };");
	AUTO_ARENA a = { 0 };
	struct dw_event e = { 0 };
	bool more = true;
	size_t n = 1, faults = 0;

	(void)state;
	assert_false(s->leaves[0].gate);
	for (; more; n++) {
		struct box_err err = { 0 };
		struct dwm *m = dwm_new(s, DWM_ANY, &err);
		struct dw_scratch *sc = dw_scratch_new(&err);
		struct dw_decision d = { 0 };
		int r;

		for (int i = 0; i < EVENTS; i++) {
			e = event(&a, "A", "x", i, i);
			step(m, &e);
		}
		fail_after(n);
		r = dw_decide(sc, s, m, &e, &d, &err);
		more = fail_happened() != 0;
		fail_after(0);
		assert_false(d.allow);
		if (r == 0 && d.cause != DW_FAULT)
			assert_int_equal(d.cause, DW_FORBIDDEN);
		faults += r == 0 && d.cause == DW_FAULT;
		assert_true(more || d.cause == DW_FORBIDDEN);
		dwm_free(m);
		dw_scratch_free(sc);
		arena_reset(&a);
	}
	assert_true(faults > 10);
	dw_set_free(s);
}

/* One entity with two contents: the question is not clear, so it is not put. */
static void an_entity_twice_is_a_fault(void **state)
{
	struct dw_set *s = load("permit (principal, action, resource);");
	AUTO_ARENA a = { 0 };
	struct dw_event e = event(&a, "A", "x", 1, 1);
	struct dw_rec one = dw_rec_in(&a), two = dw_rec_in(&a);
	struct dw_entity ents[2];
	struct box_err err = { 0 };
	struct dw_scratch *sc = dw_scratch_new(&err);
	struct dw_decision d;

	(void)state;
	dw_rec_int(&one, SV("level"), 1);
	dw_rec_int(&two, SV("level"), 2);
	ents[0] = (struct dw_entity){ .uid = e.principal, .attrs = dw_rec_val(&one) };
	ents[1] = (struct dw_entity){ .uid = e.principal, .attrs = dw_rec_val(&two) };
	e.ents = ents;
	e.nents = 1;
	assert_return_code(dw_decide(sc, s, NULL, &e, &d, &err), 0);
	assert_true(d.allow);
	e.nents = 2;
	assert_return_code(dw_decide(sc, s, NULL, &e, &d, &err), 0);
	assert_int_equal(d.cause, DW_FAULT);
	assert_false(d.allow);
	dw_scratch_free(sc);
	dw_set_free(s);
}

/* Patterns that differ only in a second field for the same value are not one relation. */
static void two_fields_for_one_value(void **state)
{
	struct dw_set *s = load(
	    "@id(\"a\") permit (principal, action, resource) when temporal { formerly within 1h "
	    "N::Action::\"A\"::request{ input.u: context.input.u } };\n"
	    "@id(\"b\") permit (principal, action, resource) when temporal { formerly within 1h "
	    "N::Action::\"A\"::request{ input.u: context.input.u, input.w: context.input.u } };\n"
	    "@id(\"c\") permit (principal, action, resource) when temporal { exists (x: String). "
	    "formerly within 1h N::Action::\"A\"::request{ input.u: x, input.w: x } };\n"
	    "@id(\"d\") permit (principal, action, resource) when temporal { exists (x: String). "
	    "formerly within 1h N::Action::\"A\"::request{ input.u: x } };\n");
	AUTO_ARENA a = { 0 };
	struct box_err err = { 0 };
	struct dwm *m = dwm_new(s, DWM_MONOTONE, &err);
	static const char *const w[] = { "y", "x" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct dw_rec in = dw_rec_in(&a), bag = dw_rec_in(&a);
		struct dw_event e = event(&a, "A", "x", 1, i);

		dw_rec_str(&in, SV("u"), SV("x"));
		dw_rec_str(&in, SV("w"), sv_c(w[i]));
		dw_rec_add(&bag, SV("input"), dw_rec_val(&in));
		e.logged = e.context = dw_rec_val(&bag);
		step(m, &e);
		assert_true(leaf(m, 0, &e));
		assert_int_equal(leaf(m, 1, &e), i == 1);
		assert_int_equal(leaf(m, 2, &e), i == 1);
		assert_true(leaf(m, 3, &e));
	}
	dwm_free(m);
	dw_set_free(s);
}

/* An event that cannot match may be lost: no later leaf changes. */
static void may_match(void **state)
{
	static const struct {
		const char *policy;
		bool a_x, a_y, b, c;
	} cases[] = {
		{ ONCE("a", "1h", "A"), true, true, false, false },
		{ "permit (principal, action, resource) when temporal { formerly within 1h "
		  "N::Action::\"A\"::request{ input.u: \"x\" } };",
		    true, false, false, false },
		{ "permit (principal, action, resource) when temporal { previous within 1h "
		  "N::Action::\"A\"::request{} };",
		    true, true, true, true },
		{ "permit (principal, action, resource) when temporal { formerly within 1h "
		  "(!N::Action::\"A\"::request{}) };",
		    true, true, true, true },
		{ "permit (principal, action, resource) when temporal { "
		  "!N::Action::\"A\"::request{} since within 1h "
		  "N::Action::\"B\"::request{ input.u: \"x\" } };",
		    true, true, false, false },
		{ "permit (principal, action, resource) when { true };", false, false, false,
		    false },
		{ "permit (principal, action, resource) when temporal { "
		  "N::Action::\"A\"::request{} };",
		    false, false, false, false },
	};
	AUTO_ARENA a = { 0 };
	struct dw_event ax = event(&a, "A", "x", 1, 1), ay = event(&a, "A", "y", 1, 1),
	                b = event(&a, "B", "y", 1, 1), c = event(&a, "C", "x", 1, 1);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dw_set *s = load(cases[i].policy);
		struct box_err err = { 0 };
		struct dwm *m = dwm_new(s, DWM_MONOTONE, &err);

		if (dwm_may_match(m, &ax) != cases[i].a_x ||
		    dwm_may_match(m, &ay) != cases[i].a_y || dwm_may_match(m, &b) != cases[i].b ||
		    dwm_may_match(m, &c) != cases[i].c)
			fail_msg("case %zu", i);
		dwm_free(m);
		dw_set_free(s);
	}
}

static const char usual[] = ONCE(
    "a", "10s", "A") "@id(\"b\") forbid (principal, action, resource) when temporal { (count for "
                     "(t: Timepoint). where (formerly within 10s "
                     "(N::Action::\"A\"::request{ input.u: context.input.u } && tp(t)))) >= 50 };\n"
                     "@id(\"c\") forbid (principal, action, resource) when temporal { exists (n: "
                     "Long). ((sum v for (v: Long), (t: Timepoint). where "
                     "(formerly within 10s (N::Action::\"A\"::request{ input.v: v } && tp(t)))) == "
                     "n && n > 1000000) };\n"
                     "@id(\"d\") forbid (principal, action, resource) when temporal { "
                     "!N::Action::\"B\"::request{ input.u: context.input.u } since within "
                     "10s N::Action::\"C\"::request{ input.u: context.input.u } };\n"
                     "@id(\"e\") forbid (principal, action, resource) when temporal { (count for "
                     "(u: String). where (formerly within 10s "
                     "N::Action::\"A\"::request{ input.u: u })) > 100 };\n"
                     "@id(\"f\") forbid (principal, action, resource) when temporal { previous "
                     "within 1s N::Action::\"D\"::request{} };\n";

static void no_memory_after_warm_up(void **state)
{
	struct dw_set *s = load(usual);
	struct box_err err = { 0 };
	struct dwm *m = dwm_new(s, DWM_MONOTONE, &err);
	struct dw_scratch *sc = dw_scratch_new(&err);
	AUTO_ARENA a = { 0 };
	static const char *const who[] = { "x", "y", "z" };
	struct dw_event ev[6];
	struct dw_decision d;
	int64_t ts = 0;

	(void)state;
	for (int i = 0; i < 6; i++)
		ev[i] = event(&a, i < 3 ? "A" : "C", who[i % 3], i, 0);
	for (int i = 0; i < 600; i++, ts += 2) {
		ev[i % 6].ts = ts;
		step(m, &ev[i % 6]);
		assert_return_code(dw_decide(sc, s, m, &ev[i % 6], &d, &err), 0);
	}
	/* A decision takes none at all; an event only what it leaves in the history: a value that
	 * is kept anew. */
	for (int i = 0; i < 60; i++, ts += 2) {
		ev[i % 6].ts = ts;
		step(m, &ev[i % 6]);
		fail_after(1);
		assert_return_code(dw_decide(sc, s, m, &ev[i % 6], &d, &err), 0);
		assert_false(fail_happened());
		assert_true(dwm_may_match(m, &ev[i % 6]));
		assert_false(fail_happened());
		fail_after(0);
		assert_int_not_equal(d.cause, DW_FAULT);
	}
	dwm_free(m);
	dw_scratch_free(sc);
	dw_set_free(s);
}

/* Fail the n-th allocation, for every n: an error, or a monitor that says it is not whole; never
 * another verdict. */
static void every_allocation_fails_once(void **state)
{
	AUTO_ARENA a = { 0 };
	struct dw_event ev[4] = { event(&a, "A", "x", 1, 1), event(&a, "C", "x", 2, 2),
		event(&a, "D", "y", 3, 3), event(&a, "A", "x", 4, 4) };
	size_t n = 1;
	bool more = true;

	(void)state;
	for (; more; n++) {
		struct box_err err = { 0 };
		struct dw_decision d = { 0 };
		struct dw_scratch *sc = NULL;
		struct dw_set *s;
		struct dwm *m = NULL, *back = NULL;
		AUTO_BUF snap = buf_with(1 << 20);

		fail_after(n);
		s = try_load(usual, &err);
		if (s != NULL)
			m = dwm_new(s, DWM_MONOTONE, &err);
		if (m != NULL)
			sc = dw_scratch_new(&err);
		for (int i = 0; sc != NULL && i < 4; i++) {
			if (dwm_step(m, &ev[i], &err) < 0) {
				bool v;

				assert_false(dwm_ok(m));
				assert_int_equal(dwm_leaf(m, 0, &ev[i], &v, &err), -1);
				break;
			}
			if (dw_decide(sc, s, m, &ev[i], &d, &err) < 0)
				break;
			/* What allows is the first rule; without memory nothing does. */
			if (d.cause != DW_FAULT)
				assert_int_equal(d.allow, i == 0 || i == 3 ? i == 0 : false);
			else
				assert_false(d.allow);
		}
		if (sc != NULL && dwm_ok(m)) {
			dwm_save(m, &snap);
			if (buf_ok(&snap)) {
				struct rd r = rd_of(snap.p, snap.n);

				back = dwm_load(s, &r, &err);
			}
		}
		more = fail_happened() != 0;
		fail_after(0);
		if (!more)
			assert_non_null(back);
		dwm_free(back);
		dwm_free(m);
		dw_scratch_free(sc);
		dw_set_free(s);
		assert_true(n < 20000);
	}
	printf("allocation failures: %zu places\n", n - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(births),
		cmocka_unit_test(a_refused_change_harms_nothing),
		cmocka_unit_test(a_change_before_any_event),
		cmocka_unit_test(reset),
		cmocka_unit_test(stamps_must_not_fall),
		cmocka_unit_test(two_fields_for_one_value),
		cmocka_unit_test(the_newest_stamp),
		cmocka_unit_test(a_leaf_without_memory_is_a_fault),
		cmocka_unit_test(an_entity_twice_is_a_fault),
		cmocka_unit_test(may_match),
		cmocka_unit_test(no_memory_after_warm_up),
		cmocka_unit_test(every_allocation_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
