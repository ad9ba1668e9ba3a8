/* The monitor against the definition (naive.c) on random policies and traces: with stamps that only
 * rise (keyed states) and stamps that go back (general evaluator), one history and histories sliced
 * by principal, snapshots taken and loaded on the way, and policy changes.
 *
 * DW_CASES sets the number of pairs (20,000 by default), DW_SEED the seed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "dogwood/monitor.h"
#include "dogwood/trace.h"
#include "gen.h"
#include "naive.h"

#include "base/ban.h"

#define EVENTS 24

static const char unpinned[] =
    "decision event <A>::request { ...inputs(A) } event <A>::response { ...inputs(A) }";
static const char pinned[] =
    "decision event <A>::request { ...inputs(A), pin callerPrincipal: principalType(A) = principal "
    "}"
    "event <A>::response { ...inputs(A), pin callerPrincipal: principalType(A) = principal }";

static uint64_t env_number(const char *name, uint64_t otherwise)
{
	const char *s = getenv(name);
	uint64_t v;

	return s != NULL && sv_to_u64(sv_c(s), 10, UINT64_MAX, &v) ? v : otherwise;
}

static struct dw_set *load(const struct buf *policy, bool pins)
{
	struct dw_load in = {
		.policy = { SV("random.dw"), buf_sv(policy) },
		.event_schema = { SV("events"), sv_c(pins ? pinned : unpinned) },
		.tick = DW_TICK_SECOND,
		.no_validate = true,
	};
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err;

	return dw_load(&in, &d, &err);
}

static void show(
    const char *what, const struct buf *policy, const struct dw_event *ev, size_t n, uint64_t seed)
{
	AUTO_BUF b = buf_with(1 << 20);

	for (size_t i = 0; i < n; i++) {
		dw_trace_put(&b, &ev[i]);
		buf_put_byte(&b, '\n');
	}
	fprintf(stderr, "%s (seed %llu)\n%.*s\n%s", what, (unsigned long long)seed,
	    SV_ARG(buf_sv(policy)), buf_cstr(&b));
}

struct tally {
	size_t asked, yes, keyed, gated;
};

/* One pair. 0: refused as unsafe, 1: compared. */
static int one(uint64_t seed, struct tally *n)
{
	struct gen g = { seed };
	AUTO_BUF policy = buf_with(1 << 20), more = buf_with(1 << 20), snap = buf_with(1 << 24);
	AUTO_ARENA a = { 0 };
	bool back = gen_int(&g, 4) == 0, pins = gen_int(&g, 3) == 0;
	size_t load_at = gen_int(&g, 2 * EVENTS), change_at = gen_int(&g, 2 * EVENTS),
	       born[8] = { 0 };
	struct dw_set *s = NULL, *s2 = NULL;
	struct dw_event *ev;
	struct dwm *m, *m2;
	const uint32_t *gates;
	size_t ngates = 0;
	struct box_err err = { 0 };

	for (int i = 0; i < 2 && s == NULL; i++) {
		buf_clear(&policy);
		gen_policy(&g, 1 + gen_int(&g, 2), &policy);
		s = load(&policy, pins);
	}
	if (s == NULL)
		return 0;
	ev = gen_trace(&g, &a, EVENTS, back, pins);
	m = dwm_new(s, back ? DWM_ANY : DWM_MONOTONE, &err);
	assert_non_null(ev);
	assert_non_null(m);
	for (size_t i = 0; i < EVENTS; i++) {
		if (i == load_at) {
			struct rd r;

			buf_clear(&snap);
			dwm_save(m, &snap);
			assert_true(buf_ok(&snap));
			r = rd_of(snap.p, snap.n);
			m2 = dwm_load(s, &r, &err);
			if (m2 == NULL)
				fail_msg(
				    "snapshot of seed %llu: %s", (unsigned long long)seed, err.msg);
			assert_true(rd_done(&r));
			dwm_free(m);
			m = m2;
		}
		if (i == change_at) {
			int32_t map[8];

			/* The old rules stay, one is added in front. */
			buf_clear(&more);
			buf_put_c(&more, "@id(\"new\")");
			gen_policy(&g, 1, &more);
			more.n = 0;
			buf_put_c(&more,
			    "@id(\"new\") permit (principal, action, resource) when temporal { "
			    "formerly within 9s "
			    "N::Action::\"A\"::request{ input.u: context.input.u } };\n");
			buf_put_sv(&more, buf_sv(&policy));
			s2 = load(&more, pins);
			assert_non_null(s2);
			dw_set_correspond(s2, s, map);
			assert_int_equal(map[0], -1);
			assert_int_equal(map[1], 0);
			m2 = dwm_transfer(m, s2, map, &err);
			assert_non_null(m2);
			dwm_free(m);
			dw_set_free(s);
			m = m2;
			s = s2;
			for (size_t k = 7; k > 0; k--)
				born[k] = born[k - 1];
			born[0] = i;
		}
		assert_return_code(dwm_step(m, &ev[i], &err), 0);
		gates = NULL;
		if (sv_eq(ev[i].kind, SV("request")) &&
		    dwm_true_leaves(m, &ev[i], &gates, &ngates, &err) < 0)
			fail_msg("seed %llu: %s", (unsigned long long)seed, err.msg);
		for (size_t f = 0; f < s->nleaves && sv_eq(ev[i].kind, SV("request")); f++) {
			int want = naive_leaf(s, s->leaves[f].cond, ev, i, born[f], &a);
			bool got;

			assert_int_not_equal(want, -1);
			if (dwm_leaf(m, f, &ev[i], &got, &err) < 0)
				fail_msg("seed %llu: %s", (unsigned long long)seed, err.msg);
			if (got != (want == 1)) {
				show(want ? "the monitor says false" : "the monitor says true",
				    &policy, ev, i + 1, seed);
				fail_msg("seed %llu: leaf %zu at event %zu",
				    (unsigned long long)seed, f, i);
			}
			/* The leaves that gate their rules are found without asking all of them. */
			if (s->leaves[f].gate) {
				bool listed = false;

				for (size_t k = 0; k < ngates; k++)
					listed = listed || gates[k] == f;
				if (listed != got)
					fail_msg("seed %llu: leaf %zu at event %zu: the list of "
					         "true leaves",
					    (unsigned long long)seed, f, i);
				n->gated++;
			}
			n->keyed += !s->leaves[f].plan.general;
			n->asked++;
			n->yes += got;
		}
	}
	dwm_free(m);
	dw_set_free(s);
	return 1;
}

static void agrees_with_the_definition(void **state)
{
	uint64_t seed = env_number("DW_SEED", 20261130), cases = env_number("DW_CASES", 20000),
	         tried = 0;
	struct tally n = { 0 };
	size_t compared = 0;

	(void)state;
	printf("differential: seed %llu, %llu pairs\n", (unsigned long long)seed,
	    (unsigned long long)cases);
	while (compared < cases) {
		compared += (size_t)one(seed * 0x9e3779b97f4a7c15u + ++tried, &n);
		/* A generator that makes nothing usable tests nothing. */
		assert_true(tried < cases * 20 + 1000);
	}
	printf("differential: %llu drawn, %zu compared, %zu leaf values, %zu true, %zu by keyed "
	       "states alone, %zu gates\n",
	    (unsigned long long)tried, compared, n.asked, n.yes, n.keyed, n.gated);
	assert_true(n.yes > n.asked / 50 && n.yes < n.asked - n.asked / 50);
	/* Both ways of evaluation are tested. */
	assert_true(
	    n.keyed > n.asked / 20 && n.keyed < n.asked - n.asked / 20 && n.gated > n.asked / 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(agrees_with_the_definition) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
