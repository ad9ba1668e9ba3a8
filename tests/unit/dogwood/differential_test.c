/* The monitor and the decision against the definition (naive.c) on random policies and traces: with
 * stamps that only rise (keyed states) and stamps that go back (general evaluator), one history and
 * histories sliced by pins, snapshots taken and loaded on the way, policies changed, rules reset.
 * The definition is asked about the policy with its macro calls written out by hand.
 *
 * DW_CASES sets the number of pairs (20,000 by default), DW_SEED the seed. What the pairs were made
 * of is held against a table at the end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "dogwood/decide.h"
#include "dogwood/monitor.h"
#include "dogwood/trace.h"
#include "gen.h"
#include "naive.h"

#include "base/ban.h"

#define EVENTS  24
#define RULES   4 /* at most, changes included */
#define LEAVES  (2 * RULES)
#define INPUTS  "...inputs(A)"
#define PRINC   ", pin callerPrincipal: principalType(A) = principal"
#define SESSION ", pin sessionId: String = context.sessionId"
#define KEY     ", pin key: decimal = context.key"
#define EACH(x)                                                                                    \
	"decision event <A>::request { " INPUTS x " } event <A>::response { " INPUTS x             \
	" } event <A>::error { " INPUTS x " }"

/* Universal pins slice the history; others only add to their patterns. */
static const struct {
	const char *name, *text;
} schemas[] = {
	{ "no pins", EACH("") },
	{ "principal", EACH(PRINC) },
	{ "session", EACH(SESSION) },
	{ "decimal", EACH(KEY) },
	{ "two pins", EACH(PRINC SESSION) },
	{ "one kind",
	    "decision event <A>::request { " INPUTS " } event <A>::response { " INPUTS PRINC
	    " } event <A>::error { " INPUTS " }" },
	{ "not symmetric", EACH(", pin sessionId: String = context.input.u") },
};
#define NSCHEMAS (sizeof(schemas) / sizeof(schemas[0]))

static uint64_t env_number(const char *name, uint64_t otherwise)
{
	const char *s = getenv(name);
	uint64_t v;

	return s != NULL && sv_to_u64(sv_c(s), 10, UINT64_MAX, &v) ? v : otherwise;
}

/* A policy: its rules as text, with macro calls and with the calls written out. */
struct policy {
	struct rule {
		char id[8];
		struct gen_rule is;
		struct buf text, plain;
	} rule[RULES];
	size_t n, made;
};

static void add_rule(struct policy *p, struct gen *g, const char *id, size_t at)
{
	struct rule r = { .text = buf_with(1 << 20), .plain = buf_with(1 << 20) };
	struct gen again = { .s = g->s, .expand = true };

	if (id != NULL)
		(void)snprintf(r.id, sizeof(r.id), "%s", id);
	else
		(void)snprintf(r.id, sizeof(r.id), "r%zu", p->made++);
	gen_rule(g, r.id, &r.is, &r.text);
	gen_rule(&again, r.id, &r.is, &r.plain);
	assert_true(again.s == g->s);
	memmove(&p->rule[at + 1], &p->rule[at], (p->n - at) * sizeof(r));
	p->rule[at] = r;
	p->n++;
}

static void drop_rule(struct policy *p, size_t at)
{
	buf_fini(&p->rule[at].text);
	buf_fini(&p->rule[at].plain);
	p->n--;
	memmove(&p->rule[at], &p->rule[at + 1], (p->n - at) * sizeof(p->rule[0]));
}

static struct dw_set *load(const struct policy *p, bool plain, size_t schema)
{
	AUTO_BUF b = buf_with(1 << 22);
	struct gen g = { .expand = plain };
	struct dw_load in = {
		.event_schema = { SV("events"), sv_c(schemas[schema].text) },
		.tick = DW_TICK_SECOND,
		.no_validate = true,
	};
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err;
	struct dw_set *s;

	gen_defs(&g, &b);
	for (size_t i = 0; i < p->n; i++)
		buf_put_sv(&b, buf_sv(plain ? &p->rule[i].plain : &p->rule[i].text));
	in.policy = (struct dw_source){ SV("random.dw"), buf_sv(&b) };
	s = dw_load(&in, &d, &err);
	if (s == NULL && getenv("DW_SHOW_REFUSED") != NULL)
		fprintf(stderr, "%s\n%s", err.msg, buf_cstr(&b));
	return s;
}

struct tally {
	size_t asked, yes, keyed, gated, decisions, allowed, erred, changed, reset;
	size_t feature[GEN_NFEATURES][2]; /* leaf values: false, true */
	size_t form[GEN_NFORMS][2], schema[NSCHEMAS];
};

/* One pair, being run. */
struct run {
	uint64_t seed;
	struct gen g;
	struct policy p;
	size_t schema;
	struct dw_set *s, *plain;
	struct dwm *m;
	struct dw_scratch *sc;
	struct arena a;
	struct dw_event *ev;
	size_t born[LEAVES];
	struct tally *n;
	struct box_err err;
};

static void show(struct run *r, const char *what, size_t n)
{
	AUTO_BUF b = buf_with(1 << 20);

	for (size_t i = 0; i < r->p.n; i++)
		buf_put_sv(&b, buf_sv(&r->p.rule[i].text));
	for (size_t i = 0; i < n; i++) {
		dw_trace_put(&b, &r->ev[i]);
		buf_put_byte(&b, '\n');
	}
	fprintf(stderr, "%s (seed %llu, %s)\n%s", what, (unsigned long long)r->seed,
	    schemas[r->schema].name, buf_cstr(&b));
}

static void through_snapshot(struct run *r)
{
	AUTO_BUF snap = buf_with(1 << 24);
	struct dwm *m;
	struct rd in;

	dwm_save(r->m, &snap);
	assert_true(buf_ok(&snap));
	in = rd_of(snap.p, snap.n);
	m = dwm_load(r->s, &in, &r->err);
	if (m == NULL)
		fail_msg("snapshot of seed %llu: %s", (unsigned long long)r->seed, r->err.msg);
	assert_true(rd_done(&in));
	dwm_free(r->m);
	r->m = m;
}

/* The policy changes before event `at`: a rule comes, goes, gets another text, or moves. A leaf
 * keeps its history when its rule is still there and its condition at its clause is the same. */
static void change(struct run *r, size_t at)
{
	struct dw_set *s, *plain;
	size_t born[LEAVES] = { 0 };
	int32_t map[RULES];
	struct dwm *m;
	char id[8];

	switch (gen_int(&r->g, 5)) {
	case 0:
		if (r->p.n == RULES)
			return;
		add_rule(&r->p, &r->g, NULL, gen_int(&r->g, (uint32_t)r->p.n + 1));
		break;
	case 1:
		if (r->p.n < 2)
			return;
		drop_rule(&r->p, gen_int(&r->g, (uint32_t)r->p.n));
		break;
	case 2:
		memcpy(id, r->p.rule[0].id, sizeof(id));
		drop_rule(&r->p, 0);
		add_rule(&r->p, &r->g, id, 0);
		break;
	default:
		if (r->p.n > 1) {
			struct rule first = r->p.rule[0];

			memmove(&r->p.rule[0], &r->p.rule[1], (r->p.n - 1) * sizeof(first));
			r->p.rule[r->p.n - 1] = first;
		}
		break;
	}
	s = load(&r->p, false, r->schema);
	plain = load(&r->p, true, r->schema);
	assert_non_null(s);
	assert_non_null(plain);
	dw_set_correspond(s, r->s, map);
	for (size_t f = 0; f < s->nleaves; f++) {
		const struct dw_leaf *l = dw_set_leaf(s, f);
		const struct dw_rule *old;
		sv id_now = dw_set_rule(s, l->rule)->id;

		born[f] = at;
		for (size_t k = 0; k < dw_set_nrules(r->s); k++) {
			old = dw_set_rule(r->s, k);
			if (!sv_eq(old->id, id_now))
				continue;
			assert_int_equal(map[l->rule], k);
			if (l->ordinal < old->nleaves &&
			    sv_eq(dw_set_leaf(r->s, old->leaf0 + l->ordinal)->key, l->key))
				born[f] = r->born[old->leaf0 + l->ordinal];
		}
	}
	m = dwm_transfer(r->m, s, map, &r->err);
	assert_non_null(m);
	dwm_free(r->m);
	dw_set_free(r->s);
	dw_set_free(r->plain);
	r->m = m;
	r->s = s;
	r->plain = plain;
	memcpy(r->born, born, sizeof(born));
	r->n->changed++;
}

static void reset(struct run *r, size_t at)
{
	uint32_t k = gen_int(&r->g, (uint32_t)r->p.n);
	const struct dw_rule *rule = dw_set_rule(r->s, k);

	assert_int_equal(dwm_reset_rule(r->m, k, &r->err), 0);
	for (uint32_t i = 0; i < rule->nleaves; i++)
		r->born[rule->leaf0 + i] = at;
	r->n->reset++;
}

/* The values of all leaves, each compared with the definition. */
static void leaves(struct run *r, size_t i, bool *value)
{
	const uint32_t *gates = NULL;
	size_t ngates = 0;

	if (dwm_true_leaves(r->m, &r->ev[i], &gates, &ngates, &r->err) < 0)
		fail_msg("seed %llu: %s", (unsigned long long)r->seed, r->err.msg);
	for (size_t f = 0; f < r->s->nleaves; f++) {
		const struct dw_leaf *l = dw_set_leaf(r->s, f);
		uint64_t used = r->p.rule[l->rule].is.used[l->ordinal];
		int want =
		    naive_leaf(r->plain, r->plain->leaves[f].cond, r->ev, i, r->born[f], &r->a);

		assert_int_not_equal(want, -1);
		if (dwm_leaf(r->m, f, &r->ev[i], &value[f], &r->err) < 0)
			fail_msg("seed %llu: %s", (unsigned long long)r->seed, r->err.msg);
		if (value[f] != (want == 1)) {
			show(r, want ? "the monitor says false" : "the monitor says true", i + 1);
			fail_msg(
			    "seed %llu: leaf %zu at event %zu", (unsigned long long)r->seed, f, i);
		}
		/* The leaves that gate their rules are found without asking all of them; those of
		 * rules about another action may be passed over. */
		if (r->s->leaves[f].gate) {
			bool listed = false;

			for (size_t k = 0; k < ngates; k++)
				listed = listed || gates[k] == f;
			if (listed != value[f] &&
			    (listed || gen_rule_about(&r->p.rule[l->rule].is, &r->ev[i])))
				fail_msg(
				    "seed %llu: leaf %zu at event %zu: the list of true leaves",
				    (unsigned long long)r->seed, f, i);
			r->n->gated++;
		}
		r->n->keyed += !r->s->leaves[f].plan.general;
		r->n->asked++;
		r->n->yes += value[f];
		for (unsigned k = 0; k < GEN_NFEATURES; k++)
			r->n->feature[k][value[f]] += used >> k & 1;
	}
}

/* Cedar's rule, written out: forbid beats permit, a rule that fails is passed over. */
static void decision(struct run *r, size_t i, const bool *value)
{
	bool is[RULES] = { 0 }, forbidden = false, permitted = false;
	struct dw_decision d;
	size_t erred = 0, reasons = 0;

	for (size_t k = 0; k < r->p.n; k++) {
		const struct gen_rule *rule = &r->p.rule[k].is;
		int holds = gen_rule_holds(rule, &value[dw_set_rule(r->s, k)->leaf0], &r->ev[i]);

		erred += holds < 0;
		is[k] = holds > 0;
		forbidden = forbidden || (is[k] && rule->forbid);
		permitted = permitted || (is[k] && !rule->forbid);
		r->n->form[rule->form][is[k]]++;
	}
	if (dw_decide(r->sc, r->s, r->m, &r->ev[i], &d, &r->err) < 0 || d.cause == DW_FAULT)
		fail_msg("seed %llu: no decision: %s", (unsigned long long)r->seed,
		    d.fault != NULL ? d.fault : r->err.msg);
	for (size_t k = 0; k < r->p.n; k++)
		reasons += is[k] && r->p.rule[k].is.forbid == forbidden;
	for (size_t k = 0; k < d.nrules; k++)
		if (!is[d.rules[k]] || r->p.rule[d.rules[k]].is.forbid != forbidden)
			reasons = SIZE_MAX;
	if (d.allow != (permitted && !forbidden) || d.nrules != reasons || d.nerrors != erred) {
		show(r, d.allow ? "decided: allow" : "decided: deny", i + 1);
		fail_msg("seed %llu: decision on event %zu", (unsigned long long)r->seed, i);
	}
	r->n->decisions++;
	r->n->allowed += d.allow;
	r->n->erred += d.nerrors != 0;
}

/* One pair. 0: refused as unsafe, 1: compared. */
static int one(uint64_t seed, struct tally *n)
{
	struct run r = { .seed = seed, .g = { .s = seed }, .n = n };
	bool back = gen_int(&r.g, 4) == 0, value[LEAVES];
	size_t rules = 1 + gen_int(&r.g, 2), load_at = gen_int(&r.g, 2 * EVENTS),
	       change_at = gen_int(&r.g, 2 * EVENTS), reset_at = gen_int(&r.g, 8 * EVENTS);

	r.schema = gen_int(&r.g, 2) == 0 ? 0 : gen_int(&r.g, NSCHEMAS);
	for (size_t i = 0; i < rules; i++)
		add_rule(&r.p, &r.g, NULL, i);
	r.s = load(&r.p, false, r.schema);
	r.plain = load(&r.p, true, r.schema);
	assert_true((r.s == NULL) == (r.plain == NULL));
	if (r.s != NULL) {
		n->schema[r.schema]++;
		r.ev = gen_trace(&r.g, &r.a, EVENTS, back, r.schema != 0);
		r.m = dwm_new(r.s, back ? DWM_ANY : DWM_MONOTONE, &r.err);
		r.sc = dw_scratch_new(&r.err);
		assert_non_null(r.ev);
		assert_non_null(r.m);
		assert_non_null(r.sc);
	}
	for (size_t i = 0; r.s != NULL && i < EVENTS; i++) {
		if (i == load_at)
			through_snapshot(&r);
		if (i == change_at)
			change(&r, i);
		if (i == reset_at)
			reset(&r, i);
		assert_return_code(dwm_step(r.m, &r.ev[i], &r.err), 0);
		if (!sv_eq(r.ev[i].kind, SV("request")))
			continue;
		leaves(&r, i, value);
		decision(&r, i, value);
	}
	rules = r.s != NULL;
	dwm_free(r.m);
	dw_scratch_free(r.sc);
	dw_set_free(r.s);
	dw_set_free(r.plain);
	while (r.p.n != 0)
		drop_rule(&r.p, 0);
	arena_free(&r.a);
	return (int)rules;
}

/* Everything was met with both outcomes, often enough to mean something. */
static void coverage(const struct tally *n, size_t cases)
{
	size_t least = cases / 100;
	bool bad = false;

	for (unsigned k = 0; k < GEN_NFEATURES; k++) {
		bool gap = n->feature[k][0] < least || n->feature[k][1] < least;

		printf("  %-24s %8zu true %8zu false%s\n", gen_feature_names[k], n->feature[k][1],
		    n->feature[k][0], gap ? " (too few)" : "");
		bad = bad || gap;
	}
	for (unsigned k = 0; k < GEN_NFORMS; k++)
		bad = bad || n->form[k][0] < least || n->form[k][1] < least;
	for (unsigned k = 0; k < NSCHEMAS; k++)
		bad = bad || n->schema[k] < least;
	assert_false(bad);
	assert_true(n->changed > cases / 10 && n->reset > cases / 20);
	assert_true(n->allowed > n->decisions / 20 && n->erred > n->decisions / 200);
	assert_true(n->yes > n->asked / 50 && n->yes < n->asked - n->asked / 50);
	/* Both ways of evaluation are tested. */
	assert_true(n->keyed > n->asked / 20 && n->keyed < n->asked - n->asked / 20 &&
	            n->gated > n->asked / 50);
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
	       "states alone, %zu gates, %zu decisions, %zu allowed\n",
	    (unsigned long long)tried, compared, n.asked, n.yes, n.keyed, n.gated, n.decisions,
	    n.allowed);
	if (cases >= 1000)
		coverage(&n, compared);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(agrees_with_the_definition) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
