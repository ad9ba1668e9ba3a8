/* Decisions without a disk: by number of policies, by events in the window, and part by part for
 * the workload behind the published long-window figures (local-engine.md 18.1, 18.2, 19). */
#include <stdlib.h>
#include <string.h>

#include "engine_rig.h"

#include "base/ban.h"

#define ROUNDS_MAX 4096

/* Median time of dogwood_submit for a Read; *both: did verdicts come out both ways? */
static double decide_us(dogwood_engine *e, unsigned rounds, bool *both)
{
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_verdict *v = dogwood_verdict_new();
	static double t[ROUNDS_MAX];
	unsigned yes = 0;
	char server[16];

	MUST(ev != NULL && v != NULL && rounds <= ROUNDS_MAX);
	for (unsigned i = 0; i < rounds; i++) {
		double a;

		(void)snprintf(server, sizeof(server), "s%u", i % 49);
		rig_event(ev, "Read", "u1", server, NULL);
		rig_clock_ns += 1000;
		a = rig_now_us();
		yes += rig_submit(e, ev, v);
		t[i] = rig_now_us() - a;
	}
	*both = yes != 0 && yes != rounds;
	dogwood_event_free(ev);
	dogwood_verdict_free(v);
	return rig_median(t, rounds);
}

/* 200 events, one a second. */
static void warm(dogwood_engine *e)
{
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_verdict *v = dogwood_verdict_new();

	MUST(ev != NULL && v != NULL);
	for (unsigned i = 0; i < 200; i++) {
		rig_event_i(ev, i);
		rig_clock_ns += SECOND;
		(void)rig_submit(e, ev, v);
	}
	dogwood_event_free(ev);
	dogwood_verdict_free(v);
}

static double with_policies(char *policy, const char *events, bool quick, double *ms, bool *both)
{
	dogwood_engine *e = rig_open(NULL, true, 0);
	double us;

	*ms = rig_install(e, policy, rig_actions, events) / 1e3;
	warm(e);
	us = decide_us(e, quick ? 200 : 2000, both);
	free(policy);
	rig_close(e);
	return us;
}

void bench_policies(struct bench *b)
{
	static const struct {
		unsigned n;
		double budget;
		const char *decide, *apply;
	} row[] = { { 10, 2, "0.05 ms", "29.3 ms" }, { 100, 2, "0.52 ms", "40.4 ms" },
		{ 1000, 3, "5.3 ms", "160 ms" }, { 10000, 5, "71 ms", "1.77 s" } };

	printf("\ndecision by number of policies (18.1: 200 events; in memory, median us)\n"
	       "%10s %10s %10s %10s %10s %10s   %-22s %s\n",
	    "policies", "budget", "selective", "pinned", "broad", "install ms",
	    "reference, no sync", "its full apply");
	for (size_t r = 0; r < sizeof(row) / sizeof(row[0]); r++) {
		bool both, ignored;
		double ms, pinned_ms, broad_ms;
		double us =
		    with_policies(rig_selective(row[r].n), rig_unpinned, b->quick, &ms, &both);
		/* A pin by session: the probe's session saw every tenth event. */
		double pinned = with_policies(
		    rig_selective(row[r].n), rig_pinned, b->quick, &pinned_ms, &ignored);
		double broad =
		    with_policies(rig_broad(row[r].n), rig_unpinned, b->quick, &broad_ms, &ignored);

		printf("%10u %10.0f %10.2f %10.2f %10.2f %10.1f   %-22s %s%s\n", row[r].n,
		    row[r].budget, us, pinned, broad, ms, row[r].decide, row[r].apply,
		    both ? "" : "  (all verdicts alike: this measures nothing)");
	}
}

static const char window_policy[] =
    "@id(\"read\") permit (principal, action == Drupe::Action::\"Read\", resource);\n"
    "@id(\"once\") forbid (principal, action == Drupe::Action::\"Read\", resource)\n"
    "when temporal { formerly within 24h Drupe::Action::\"Login\"::request{ "
    "input.server: context.input.server, input.user: \"blocked0\" } };\n"
    "@id(\"count\") forbid (principal, action == Drupe::Action::\"Read\", resource)\n"
    "when temporal { (count for (t: Timepoint). where (formerly within 24h "
    "(Drupe::Action::\"Login\"::request{ input.server: context.input.server } && tp(t)))) "
    ">= 5000000 };\n";

void bench_windows(struct bench *b)
{
	static const struct {
		unsigned n;
		const char *published;
	} row[] = { { 90, "20 us" }, { 4320, "6.2 ms" }, { 86400, "-" }, { 1000000, "-" } };
	double first = 0;

	printf("\ndecision by events in a 24 h window (one `formerly`, one `count`; in memory, "
	       "median us; budget 5, 1.2 x first)\n"
	       "%10s %10s %10s %10s %16s   %s\n",
	    "events", "us", "x first", "state MB", "MB per million", "reference");
	for (size_t r = 0; r < sizeof(row) / sizeof(row[0]); r++) {
		unsigned n = b->quick && row[r].n > 100000 ? 100000 : row[r].n;
		size_t before = rig_heap();
		dogwood_engine *e = rig_open(NULL, true, 0);
		dogwood_event *ev = dogwood_event_new();
		struct dogwood_verdict *v = dogwood_verdict_new();
		char server[16], million[16];
		double us, mb;
		bool both;

		(void)rig_install(e, window_policy, rig_actions, rig_unpinned);
		for (unsigned i = 0; i < n; i++) {
			(void)snprintf(server, sizeof(server), "s%u", i % 49);
			rig_event(ev, "Login", i % 49 < 25 ? "blocked0" : "u1", server, NULL);
			rig_clock_ns += 80000000; /* a million in 22 hours */
			(void)rig_submit(e, ev, v);
		}
		us = decide_us(e, b->quick ? 200 : 4000, &both);
		mb = (double)(rig_heap() - before) / 1e6;
		if (r == 0)
			first = us;
		/* What an engine takes anyway would be told as much a million. */
		(void)snprintf(million, sizeof(million), n < 10000 ? "-" : "%.1f", mb / n * 1e6);
		printf("%10u %10.2f %10.2f %10.2f %16s   %s%s\n", n, us, us / first, mb, million,
		    row[r].published, both ? "" : "  (all verdicts alike: this measures nothing)");
		dogwood_event_free(ev);
		dogwood_verdict_free(v);
		rig_close(e);
		rig_clock_ns += 100 * HOUR;
	}
}

/* ---- 18.2: 100 actions, one temporal forbid each, one principal ---- */

#define ACTIONS 100

static char *component_actions(void)
{
	size_t cap = 64 * 1024, at;
	char *p = malloc(cap);

	MUST(p != NULL);
	at = (size_t)snprintf(p, cap, "namespace Bench { entity User; entity Res;\n");
	for (unsigned i = 0; i <= ACTIONS; i++) {
		char name[16];

		(void)snprintf(name, sizeof(name), i < ACTIONS ? "A%u" : "Untouched", i);
		at += (size_t)snprintf(p + at, cap - at,
		    "action \"%s\" appliesTo { principal: [User], resource: [Res], context: { "
		    "input: { tag: String } } };\n",
		    name);
	}
	at += (size_t)snprintf(p + at, cap - at, "}\n");
	MUST(at < cap);
	return p;
}

static char *component_policies(void)
{
	size_t cap = 64 * 1024, at;
	char *p = malloc(cap);

	MUST(p != NULL);
	at = (size_t)snprintf(p, cap, "permit (principal, action, resource);\n");
	for (unsigned i = 0; i < ACTIONS; i++)
		at += (size_t)snprintf(p + at, cap - at,
		    i < 90 ? "forbid (principal, action == Bench::Action::\"A%u\", resource) when "
		             "temporal { formerly within 24h "
		             "Bench::Action::\"A%u\"::request{ input.tag: \"x\" } };\n"
		           : "forbid (principal, action == Bench::Action::\"A%u\", resource) when "
		             "temporal { (count for (t: Timepoint). where (formerly within 24h "
		             "(Bench::Action::\"A%u\"::request{ input.tag: \"x\" } && tp(t)))) >= "
		             "5 };\n",
		    i, i);
	MUST(at < cap);
	return p;
}

static const char component_events[] =
    "decision event <A>::request { ...inputs(A), pin callerPrincipal: principalType(A) = "
    "principal, callerResource: resourceType(A) }\n"
    "event <A>::response { ...inputs(A), pin callerPrincipal: principalType(A) = principal, "
    "callerResource: resourceType(A) }\n";

static void component_event(dogwood_event *ev, const char *action, bool request)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "Bench::Action::\"%s\"", action);
	dogwood_event_reset(ev);
	dogwood_event_action(
	    ev, dogwood_cstr(name), dogwood_cstr(request ? "request" : "response"));
	dogwood_event_principal(ev, dogwood_cstr("Bench::User::\"u1\""));
	dogwood_event_resource(ev, dogwood_cstr("Bench::Res::\"r1\""));
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.tag", dogwood_cstr("x"));
}

static double component_us(dogwood_engine *e, dogwood_event *ev, struct dogwood_verdict *v,
    const char *action, bool request, unsigned *yes)
{
	static double t[ROUNDS_MAX];
	unsigned n = 1000;

	*yes = 0;
	for (unsigned i = 0; i < n; i++) {
		double a;

		component_event(ev, action, request);
		rig_clock_ns += 1000;
		a = rig_now_us();
		*yes += rig_submit(e, ev, v);
		t[i] = rig_now_us() - a;
	}
	return rig_median(t, n);
}

void bench_components(struct bench *b)
{
	static const unsigned hours[] = { 1, 6, 12 };
	char *actions = component_actions(), *policies = component_policies();

	printf(
	    "\n100 actions with one temporal forbid each (18.2), 0.1 events a second and action; "
	    "in memory, median us\n"
	    "%6s %10s %12s %12s %12s %12s %10s   reference (one such stream)\n",
	    "hours", "events", "A0 formerly", "A95 count", "Untouched", "a response", "state MB");
	for (size_t r = 0; r < sizeof(hours) / sizeof(hours[0]); r++) {
		unsigned n = hours[r] * 360 * ACTIONS / (b->quick ? 10 : 1), yes[4];
		size_t before = rig_heap();
		dogwood_engine *e = rig_open(NULL, true, 0);
		dogwood_event *ev = dogwood_event_new();
		struct dogwood_verdict *v = dogwood_verdict_new();
		double us[4];
		char name[16];

		(void)rig_install(e, policies, actions, component_events);
		for (unsigned i = 0; i < n; i++) {
			(void)snprintf(name, sizeof(name), "A%u", i % ACTIONS);
			component_event(ev, name, true);
			rig_clock_ns += SECOND / 10;
			(void)rig_submit(e, ev, v);
		}
		us[0] = component_us(e, ev, v, "A0", true, &yes[0]);
		us[1] = component_us(e, ev, v, "A95", true, &yes[1]);
		us[2] = component_us(e, ev, v, "Untouched", true, &yes[2]);
		us[3] = component_us(e, ev, v, "A0", false, &yes[3]);
		printf("%6u %10u %12.2f %12.2f %12.2f %12.2f %10.2f   %s%s\n", hours[r], n, us[0],
		    us[1], us[2], us[3], (double)(rig_heap() - before) / 1e6,
		    hours[r] == 12 ? "6.2 ms at hour 12 (timelines 690 MB)" : "-",
		    yes[0] == 0 && yes[1] == 0 && yes[2] != 0
		        ? ""
		        : "  (verdicts are not those expected)");
		dogwood_event_free(ev);
		dogwood_verdict_free(v);
		rig_close(e);
		rig_clock_ns += 100 * HOUR;
	}
	free(actions);
	free(policies);
}
