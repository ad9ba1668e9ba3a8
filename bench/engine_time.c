/* An open loop (local-engine.md 18.1 "load"), and recovery. */
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "engine_rig.h"

#include "base/ban.h"

struct latencies {
	double *due; /* when each request was to be sent */
	double *took;
	size_t n;
};

struct waiting {
	struct latencies *l;
	size_t i;
};

static void answered(void *arg, const struct dogwood_verdict *v)
{
	struct waiting *w = arg;

	(void)v;
	w->l->took[w->i] = rig_now_us() - w->l->due[w->i];
	w->l->n++;
}

/* Requests arrive at their times whether or not the engine keeps up; latency counts from then. */
static void offer(dogwood_engine *e, unsigned rate, double seconds, const char *published)
{
	size_t n = (size_t)((double)rate * seconds), i = 0;
	struct latencies l = { calloc(n, sizeof(double)), calloc(n, sizeof(double)), 0 };
	struct waiting *w = calloc(n, sizeof(*w));
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_error err;
	double begin, took;

	MUST(l.due != NULL && l.took != NULL && w != NULL && ev != NULL);
	begin = rig_now_us();
	for (size_t q = 0; q < n; q++)
		l.due[q] = begin + (double)q * (1e6 / rate);
	while (l.n < n) {
		for (unsigned turn = 0; i < n && l.due[i] <= rig_now_us() && turn < 256;
		     i++, turn++) {
			rig_event_i(ev, (unsigned)i);
			w[i] = (struct waiting){ &l, i };
			if (dogwood_submit_begin(
			        e, ev, (dogwood_str){ NULL, 0 }, answered, &w[i], &err) < 0)
				rig_die("begin", __LINE__, &err);
		}
		if (dogwood_engine_sync(e, &err) < 0)
			rig_die("sync", __LINE__, &err);
		if (i < n && l.due[i] > rig_now_us() + 60) {
			struct timespec nap = { 0, (long)((l.due[i] - rig_now_us() - 50) * 1000) };

			(void)nanosleep(&nap, NULL);
		}
	}
	took = rig_now_us() - begin;
	rig_sort(l.took, n);
	printf("%10u %12.0f %10.0f %10.0f   %s\n", rate, (double)n / took * 1e6, l.took[n / 2],
	    l.took[n * 99 / 100], published);
	free(l.due);
	free(l.took);
	free(w);
	dogwood_event_free(ev);
}

void bench_open_loop(struct bench *b)
{
	static const struct {
		unsigned rate;
		const char *published;
	} row[] = { { 100, "97/s, p50 9.08 ms, p99 171 ms" },
		{ 500, "35/s, p50 22.8 s, p99 64.7 s" }, { 5000, "-" }, { 50000, "-" } };
	dogwood_engine *e = rig_open(rig_store(b), false, 0);
	char *policy = rig_selective(1000);

	(void)rig_install(e, policy, rig_actions, rig_unpinned);
	printf("\nopen loop, 1,000 selective policies, every fifth event a login, durable; us from "
	       "the intended send time\n%10s %12s %10s %10s   reference\n",
	    "offered/s", "achieved/s", "p50", "p99");
	for (size_t k = 0; k < sizeof(row) / sizeof(row[0]); k++)
		offer(e, row[k].rate, b->quick ? 0.5 : 5, row[k].published);
	free(policy);
	rig_close(e);
}

static double cpu_s(int who)
{
	struct rusage r;

	MUST(getrusage(who, &r) == 0);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

/* One line of the table. */
static void reopen(const char *what, const char *store, uint64_t at_least)
{
	double t = rig_now_us(), all = cpu_s(RUSAGE_SELF), own = cpu_s(RUSAGE_THREAD);
	dogwood_engine *e = rig_open(store, false, 0);

	t = (rig_now_us() - t) / 1e6;
	all = cpu_s(RUSAGE_SELF) - all;
	own = cpu_s(RUSAGE_THREAD) - own;
	MUST(rig_status(e).replayed >= at_least);
	printf("%-24s %8.3f %8.3f %14.3f\n", what, t, all, own);
	rig_close(e);
}

void bench_recovery(struct bench *b)
{
	unsigned n = b->quick ? 100000 : 1000000;
	const char *store = rig_store(b);
	dogwood_engine *e = rig_open(store, false, 0);
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_error err;
	double t;

	MUST(ev != NULL);
	(void)rig_install(e, rig_always_matters, rig_actions, rig_unpinned);
	for (unsigned i = 0; i < n; i++) {
		rig_event(ev, i % 4 == 0 ? "Login" : "Read", "u1", "s1", NULL);
		if (dogwood_submit_begin(e, ev, (dogwood_str){ NULL, 0 }, NULL, NULL, &err) < 0)
			rig_die("begin", __LINE__, &err);
	}
	rig_close(e);
	printf("\nrecovery of %u events, s (budget 1 s without a snapshot; the reference publishes "
	       "none)\n%-24s %8s %8s %14s\n",
	    n, "", "wall", "cpu", "of it, replay");
	reopen("without a snapshot", store, n);
	reopen("again", store, n);
	e = rig_open(store, false, 0);
	t = rig_now_us();
	if (dogwood_engine_checkpoint(e, &err) < 0)
		rig_die("checkpoint", __LINE__, &err);
	t = (rig_now_us() - t) / 1e6;
	for (unsigned i = 0; i < n / 100; i++) {
		rig_event(ev, i % 4 == 0 ? "Login" : "Read", "u1", "s1", NULL);
		if (dogwood_submit_begin(e, ev, (dogwood_str){ NULL, 0 }, NULL, NULL, &err) < 0)
			rig_die("begin", __LINE__, &err);
	}
	rig_close(e);
	reopen("with one, and 1 % more", store, n / 100);
	printf("%-24s %8.3f beside the submits\n", "making it", t);
	dogwood_event_free(ev);
}
