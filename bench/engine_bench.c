/* The policy engine (local-engine.md 18, design.md 8): durable submits against a bare O_DSYNC
 * append of the same bytes in the same run; decisions by events in the window and by number of
 * policies; recovery. Published figures of the reference stand beside, as reported by it on its
 * own hardware.
 *
 * usage: engine_bench [quick]; stores go to a folder below $TMPDIR, which should be on a real
 * disk. */
#include <dogwood/dogwood.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/ban.h"

#define MUST(x) ((x) ? (void)0 : die(#x, __LINE__, NULL))

static void die(const char *what, int line, const struct dogwood_error *err)
{
	(void)fprintf(stderr, "engine_bench: line %d: %s: %s\n", line, what,
	    err != NULL ? err->msg : strerror(errno));
	exit(1);
}

static double now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), cmp_double);
	return v[n / 2];
}

/* ---------------------------------------------------------------- the Login/Read workload
 * (18.1) */

static const char actions[] =
    "namespace Drupe {\n"
    "  entity Gateway; entity OAuthUser;\n"
    "  action \"Login\" appliesTo { principal: [OAuthUser], resource: [Gateway],\n"
    "    context: { input: { user: String, server: String } } };\n"
    "  action \"Read\" appliesTo { principal: [OAuthUser], resource: [Gateway],\n"
    "    context: { input: { user: String, server: String, document: String } } };\n"
    "}\n";
static const char events[] = "decision event <A>::request { ...inputs(A), callerPrincipal: "
                             "principalType(A), callerResource: resourceType(A) }\n"
                             "event <A>::response { ...inputs(A), callerPrincipal: "
                             "principalType(A), callerResource: resourceType(A) }\n";

static int64_t clock_ns = INT64_C(1790000000000000000);

static int64_t bench_clock(void *arg)
{
	(void)arg;
	return clock_ns;
}

static dogwood_engine *open_engine(const char *path, bool own_clock, uint64_t snapshots)
{
	struct dogwood_options o;
	struct dogwood_error err;
	dogwood_engine *e;

	dogwood_options_init(&o);
	o.path = path;
	o.snapshot_events = snapshots;
	if (own_clock)
		o.now_ns = bench_clock;
	if (dogwood_engine_open(&o, &e, &err) < 0)
		die("open", __LINE__, &err);
	return e;
}

static void close_engine(dogwood_engine *e)
{
	struct dogwood_error err;

	if (dogwood_engine_close(e, &err) < 0)
		die("close", __LINE__, &err);
}

static double install(dogwood_engine *e, const char *policy)
{
	struct dogwood_source src = { dogwood_cstr("bench.dw"), dogwood_cstr(policy) };
	struct dogwood_policy_set set = { .policies = &src,
		.n_policies = 1,
		.action_schema = { dogwood_cstr("actions"), dogwood_cstr(actions) },
		.event_schema = { dogwood_cstr("events"), dogwood_cstr(events) } };
	struct dogwood_error err;
	double t = now_us();

	if (dogwood_engine_install(e, &set, NULL, NULL, &err) < 0)
		die("install", __LINE__, &err);
	return now_us() - t;
}

static void event(dogwood_event *ev, const char *action, const char *user, const char *server)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "Drupe::Action::\"%s\"", action);
	dogwood_event_reset(ev);
	dogwood_event_action(ev, dogwood_cstr(name), dogwood_cstr("request"));
	dogwood_event_principal(ev, dogwood_cstr("Drupe::OAuthUser::\"ann\""));
	dogwood_event_resource(ev, dogwood_cstr("Drupe::Gateway::\"gw1\""));
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.user", dogwood_cstr(user));
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.server", dogwood_cstr(server));
	if (strcmp(action, "Read") == 0)
		dogwood_event_str(ev, DOGWOOD_BOTH, "input.document", dogwood_cstr("d"));
}

static bool submit(dogwood_engine *e, dogwood_event *ev, struct dogwood_verdict *v)
{
	struct dogwood_error err;

	if (dogwood_submit(e, ev, (dogwood_str){ NULL, 0 }, v, &err) < 0)
		die("submit", __LINE__, &err);
	return v->permit;
}

/* Permit Read; n forbids that each look for another blocked user's login on the same server. */
static char *selective(unsigned n)
{
	size_t cap = 256 + (size_t)n * 256, at = 0;
	char *p = malloc(cap);

	MUST(p != NULL);
	at += (size_t)snprintf(p, cap,
	    "@id(\"read\") permit (principal, action == Drupe::Action::\"Read\", resource);\n");
	for (unsigned i = 0; i < n; i++)
		at += (size_t)snprintf(p + at, cap - at,
		    "@id(\"r%u\") forbid (principal, action == Drupe::Action::\"Read\", resource)\n"
		    "when temporal { formerly within 1h Drupe::Action::\"Login\"::request{ "
		    "input.server: context.input.server, input.user: \"blocked%u\" } };\n",
		    i, i);
	return p;
}

/* ----------------------------------------------------------------------------------- in memory */

/* Mean time of a decision, the event built included in `build`. */
static double decide_time(dogwood_engine *e, unsigned rounds, int64_t step_ns, bool *both)
{
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_verdict *v = dogwood_verdict_new();
	static double t[4096];
	unsigned yes = 0;
	char server[16];

	MUST(ev != NULL && v != NULL && rounds <= 4096);
	for (unsigned i = 0; i < rounds; i++) {
		double a;

		(void)snprintf(server, sizeof(server), "s%u", i % 49);
		event(ev, "Read", "u1", server);
		clock_ns += step_ns;
		a = now_us();
		yes += submit(e, ev, v);
		t[i] = now_us() - a;
	}
	*both = yes != 0 && yes != rounds;
	dogwood_event_free(ev);
	dogwood_verdict_free(v);
	return median(t, rounds);
}

static void by_policies(bool quick)
{
	static const struct {
		unsigned n;
		double budget;
		const char *published;
	} row[] = { { 10, 2, "1.23 ms" }, { 100, 2, "1.70 ms" }, { 1000, 3, "6.45 ms" },
		{ 10000, 5, "72.4 ms" } };

	printf("\ndecision by number of policies (selective, 200 events, in memory; median)\n"
	       "%10s %12s %10s %12s   reference, sync included\n",
	    "policies", "us", "budget us", "install ms");
	for (size_t r = 0; r < sizeof(row) / sizeof(row[0]); r++) {
		dogwood_engine *e = open_engine(NULL, true, 0);
		dogwood_event *ev = dogwood_event_new();
		struct dogwood_verdict *v = dogwood_verdict_new();
		char *policy = selective(row[r].n), user[16], server[16];
		double ms = install(e, policy) / 1e3, us;
		bool both;

		for (unsigned i = 0; i < 200; i++) {
			bool login = i % 5 == 0;

			(void)snprintf(user, sizeof(user), "%s%u",
			    login && i / 5 % 3 == 0 ? "blocked" : "u",
			    login && i / 5 % 3 == 0 ? 0 : i % 10);
			(void)snprintf(server, sizeof(server), "s%u", i % 49);
			event(ev, login ? "Login" : "Read", user, server);
			clock_ns += 1000000000;
			(void)submit(e, ev, v);
		}
		us = decide_time(e, quick ? 200 : 2000, 1000, &both);
		printf("%10u %12.2f %10.0f %12.1f   %s%s\n", row[r].n, us, row[r].budget, ms,
		    row[r].published, both ? "" : "  (all verdicts alike: this measures nothing)");
		free(policy);
		dogwood_event_free(ev);
		dogwood_verdict_free(v);
		close_engine(e);
	}
}

static size_t resident(void)
{
	unsigned long size = 0, res = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f == NULL || fscanf(f, "%lu %lu", &size, &res) != 2)
		res = 0;
	if (f != NULL)
		(void)fclose(f);
	return res * (size_t)sysconf(_SC_PAGESIZE);
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

static void by_window(bool quick)
{
	static const struct {
		unsigned n;
		const char *published;
	} row[] = { { 90, "20 us" }, { 4320, "6.2 ms" }, { 86400, "-" }, { 1000000, "-" } };
	double first = 0;

	printf("\ndecision by events in a 24 h window (one `formerly`, one `count`; in memory; "
	       "median)\n"
	       "%10s %12s %10s %14s   reference\n",
	    "events", "us", "x first", "state MB");
	for (size_t r = 0; r < sizeof(row) / sizeof(row[0]); r++) {
		unsigned n = quick && row[r].n > 100000 ? 100000 : row[r].n;
		size_t before = resident();
		dogwood_engine *e = open_engine(NULL, true, 0);
		dogwood_event *ev = dogwood_event_new();
		struct dogwood_verdict *v = dogwood_verdict_new();
		char server[16];
		double us;
		bool both;

		(void)install(e, window_policy);
		for (unsigned i = 0; i < n; i++) {
			(void)snprintf(server, sizeof(server), "s%u", i % 49);
			event(ev, "Login", i % 49 < 25 ? "blocked0" : "u1", server);
			clock_ns += 80000000; /* a million in 22 hours */
			(void)submit(e, ev, v);
		}
		us = decide_time(e, quick ? 200 : 4000, 1000, &both);
		if (r == 0)
			first = us;
		printf("%10u %12.2f %10.2f %14.1f   %s%s\n", n, us, us / first,
		    (double)(resident() - before) / 1e6, row[r].published,
		    both ? "" : "  (all verdicts alike: this measures nothing)");
		dogwood_event_free(ev);
		dogwood_verdict_free(v);
		close_engine(e);
		clock_ns += INT64_C(100) * 3600 * 1000000000;
	}
}

/* ----------------------------------------------------------------------------------- on a disk */

static const char always_matters[] =
    "@id(\"read\") permit (principal, action, resource);\n"
    "@id(\"count\") forbid (principal, action == Drupe::Action::\"Read\", resource)\n"
    "when temporal { (count for (t: Timepoint). where (formerly within 24h "
    "(Drupe::Action::\"Read\"::request{ input.server: context.input.server } && tp(t)))) "
    ">= 50000000 };\n";

struct floor {
	int fd;
	off_t at;
	size_t bytes;
	uint8_t *block;
};

static void floor_open(struct floor *f, const char *dir, size_t bytes)
{
	const size_t size = (size_t)16 << 20;
	char path[512];
	uint8_t *zero = calloc(1, size);

	(void)snprintf(path, sizeof(path), "%s/floor", dir);
	f->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(zero != NULL && f->fd >= 0 && pwrite(f->fd, zero, size, 0) == (ssize_t)size &&
	     fsync(f->fd) == 0);
	(void)close(f->fd);
	f->fd = open(path, O_RDWR | O_DSYNC | O_CLOEXEC);
	f->block = zero;
	memset(f->block, 1, bytes);
	f->bytes = bytes;
	f->at = 0;
	MUST(f->fd >= 0);
}

static void floor_append(struct floor *f)
{
	MUST(pwrite(f->fd, f->block, f->bytes, f->at) == (ssize_t)f->bytes);
	f->at += (off_t)f->bytes;
	if (f->at + (off_t)f->bytes > (off_t)16 << 20)
		f->at = 0;
}

/* One caller and the bare append, alternating in blocks, so that both meet the same disk. */
static double one_caller(const char *dir, const char *store, unsigned blocks)
{
	dogwood_engine *e = open_engine(store, false, 0);
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_verdict *v = dogwood_verdict_new();
	double *a = calloc(blocks, sizeof(*a)), *b = calloc(blocks, sizeof(*b)), engine, bare;
	struct floor f;

	MUST(a != NULL && b != NULL);
	(void)install(e, always_matters);
	/* What one such event takes in the log: 72 bytes of head and about 230 of body. */
	floor_open(&f, dir, 304);
	for (unsigned k = 0; k < blocks; k++) {
		double t = now_us();

		for (int i = 0; i < 50; i++)
			floor_append(&f);
		b[k] = (now_us() - t) / 50;
		t = now_us();
		for (int i = 0; i < 50; i++) {
			event(ev, "Read", "u1", "s1");
			MUST(submit(e, ev, v));
		}
		a[k] = (now_us() - t) / 50;
	}
	engine = median(a, blocks);
	bare = median(b, blocks);
	printf("\ndurable submit, one caller: %.1f us; bare O_DSYNC append: %.1f us; ratio %.2f "
	       "(budget 1.15; reference 1.18 ms on its disk)\n",
	    engine, bare, engine / bare);
	(void)close(f.fd);
	free(f.block);
	free(a);
	free(b);
	dogwood_event_free(ev);
	dogwood_verdict_free(v);
	close_engine(e);
	return 1e6 / engine;
}

struct caller {
	pthread_t thread;
	dogwood_engine *e;
	unsigned n;
};

static void *call(void *arg)
{
	struct caller *c = arg;
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_verdict *v = dogwood_verdict_new();

	for (unsigned i = 0; i < c->n; i++) {
		event(ev, "Read", "u1", "s1");
		MUST(submit(c->e, ev, v));
	}
	dogwood_event_free(ev);
	dogwood_verdict_free(v);
	return NULL;
}

static void many_callers(const char *store, double one, bool quick)
{
	static const unsigned count[] = { 1, 4, 16, 64 };
	dogwood_engine *e = open_engine(store, false, 0);
	struct dogwood_status st = { .size = sizeof(st) };

	(void)install(e, always_matters);
	printf("\ndurable submits by callers at once\n%10s %12s %10s %14s\n", "threads",
	    "per second", "x one", "events a sync");
	for (size_t k = 0; k < sizeof(count) / sizeof(count[0]); k++) {
		unsigned each = (quick ? 4000U : 24000U) / count[k] / (k == 0 ? 8 : 1);
		struct caller c[64];
		uint64_t syncs;
		double t, rate;

		MUST(dogwood_engine_status(e, &st, NULL) == 0);
		syncs = st.syncs;
		t = now_us();
		for (unsigned i = 0; i < count[k]; i++) {
			c[i] = (struct caller){ .e = e, .n = each };
			MUST(pthread_create(&c[i].thread, NULL, call, &c[i]) == 0);
		}
		for (unsigned i = 0; i < count[k]; i++)
			(void)pthread_join(c[i].thread, NULL);
		rate = each * count[k] / (now_us() - t) * 1e6;
		MUST(dogwood_engine_status(e, &st, NULL) == 0);
		printf("%10u %12.0f %10.1f %14.1f\n", count[k], rate, rate / one,
		    (double)each * count[k] / (double)(st.syncs - syncs));
	}
	close_engine(e);
}

static void heard(void *arg, const struct dogwood_verdict *v)
{
	if (v->permit)
		++*(unsigned *)arg;
}

/* One thread that keeps `waiting` requests open, as `box run` does. */
static void event_loop(const char *store, double one, bool quick)
{
	static const unsigned waiting[] = { 1, 16, 64 };
	dogwood_engine *e = open_engine(store, false, 0);
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_error err;

	(void)install(e, always_matters);
	printf(
	    "\nthe same from an event loop (dogwood_submit_begin, one dogwood_engine_sync a turn)\n"
	    "%10s %12s %10s   budget: 20 x at 64\n",
	    "a turn", "per second", "x one");
	for (size_t k = 0; k < sizeof(waiting) / sizeof(waiting[0]); k++) {
		unsigned turns = quick ? 200 : 2000, permits = 0;
		double t = now_us(), rate;

		for (unsigned i = 0; i < turns; i++) {
			for (unsigned w = 0; w < waiting[k]; w++) {
				event(ev, "Read", "u1", "s1");
				if (dogwood_submit_begin(
				        e, ev, (dogwood_str){ NULL, 0 }, heard, &permits, &err) < 0)
					die("begin", __LINE__, &err);
			}
			if (dogwood_engine_sync(e, &err) < 0)
				die("sync", __LINE__, &err);
		}
		rate = turns * waiting[k] / (now_us() - t) * 1e6;
		MUST(permits == turns * waiting[k]);
		printf("%10u %12.0f %10.1f\n", waiting[k], rate, rate / one);
	}
	dogwood_event_free(ev);
	close_engine(e);
}

static void no_sync(const char *store)
{
	dogwood_engine *e = open_engine(store, false, 0);
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_error err;
	unsigned permits = 0, n = 20000;
	double t;

	(void)install(e, always_matters);
	t = now_us();
	for (unsigned i = 0; i < n; i++) {
		event(ev, "Login", "u1", "s1");
		if (dogwood_submit_begin(e, ev, (dogwood_str){ NULL, 0 }, heard, &permits, &err) !=
		    1)
			die("begin", __LINE__, &err);
		(void)dogwood_engine_sync(e, &err);
	}
	printf("\ndecision that no clause can match, stored without a sync, written each turn: "
	       "%.2f us\n",
	    (now_us() - t) / n);
	dogwood_event_free(ev);
	close_engine(e);
}

struct latencies {
	double *due; /* when each request was to start */
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
	w->l->took[w->i] = now_us() - w->l->due[w->i];
	w->l->n++;
}

/* Requests arrive at their times whether or not the engine keeps up; latency counts from then. */
static void open_loop(const char *store, bool quick)
{
	static const struct {
		unsigned rate;
		const char *published;
	} row[] = { { 100, "97/s, p99 181 ms" }, { 500, "35/s, p99 64.7 s" }, { 5000, "-" },
		{ 50000, "-" } };
	dogwood_engine *e = open_engine(store, false, 0);
	dogwood_event *ev = dogwood_event_new();
	char *policy = selective(1000), user[16], server[16];
	struct dogwood_error err;

	(void)install(e, policy);
	printf("\nopen loop, 1,000 selective policies, every fifth event a login, on the disk\n"
	       "%10s %12s %10s %10s   reference\n",
	    "offered/s", "achieved/s", "p50 us", "p99 us");
	for (size_t k = 0; k < sizeof(row) / sizeof(row[0]); k++) {
		size_t n = (size_t)((double)row[k].rate * (quick ? 0.5 : 3)), i = 0;
		struct latencies l = { calloc(n, sizeof(double)), calloc(n, sizeof(double)), 0 };
		struct waiting *w = calloc(n, sizeof(*w));
		double begin = now_us(), gap = 1e6 / row[k].rate;

		MUST(l.due != NULL && l.took != NULL && w != NULL);
		for (size_t q = 0; q < n; q++)
			l.due[q] = begin + (double)q * gap;
		while (l.n < n) {
			for (unsigned turn = 0; i < n && l.due[i] <= now_us() && turn < 256;
			     i++, turn++) {
				bool login = i % 5 == 0, blocked = login && i / 5 % 3 == 0;

				(void)snprintf(user, sizeof(user), "%s%zu",
				    blocked ? "blocked" : "u", blocked ? 0 : i % 10);
				(void)snprintf(server, sizeof(server), "s%zu", i % 49);
				event(ev, login ? "Login" : "Read", user, server);
				w[i] = (struct waiting){ &l, i };
				if (dogwood_submit_begin(
				        e, ev, (dogwood_str){ NULL, 0 }, answered, &w[i], &err) < 0)
					die("begin", __LINE__, &err);
			}
			if (dogwood_engine_sync(e, &err) < 0)
				die("sync", __LINE__, &err);
			if (i < n && l.due[i] > now_us() + 60) {
				struct timespec nap = { 0,
					(long)((l.due[i] - now_us() - 50) * 1000) };

				(void)nanosleep(&nap, NULL);
			}
		}
		{
			double took = now_us() - begin;

			qsort(l.took, n, sizeof(double), cmp_double);
			printf("%10u %12.0f %10.0f %10.0f   %s\n", row[k].rate,
			    (double)n / took * 1e6, l.took[n / 2], l.took[n * 99 / 100],
			    row[k].published);
		}
		free(l.due);
		free(l.took);
		free(w);
	}
	free(policy);
	dogwood_event_free(ev);
	close_engine(e);
}

static void recovery(const char *store, bool quick)
{
	unsigned n = quick ? 100000 : 1000000;
	dogwood_engine *e = open_engine(store, false, 0);
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_status st = { .size = sizeof(st) };
	struct dogwood_error err;
	double t;

	(void)install(e, always_matters);
	for (unsigned i = 0; i < n; i++) {
		event(ev, i % 4 == 0 ? "Login" : "Read", "u1", "s1");
		if (dogwood_submit_begin(e, ev, (dogwood_str){ NULL, 0 }, NULL, NULL, &err) < 0)
			die("begin", __LINE__, &err);
	}
	close_engine(e);
	t = now_us();
	e = open_engine(store, false, 0);
	MUST(dogwood_engine_status(e, &st, NULL) == 0 && st.replayed >= n);
	printf("\nrecovery of %u events without a snapshot: %.2f s (budget 1 s for 1,000,000)\n", n,
	    (now_us() - t) / 1e6);
	t = now_us();
	if (dogwood_engine_checkpoint(e, &err) < 0)
		die("checkpoint", __LINE__, &err);
	printf("snapshot of it: %.2f s beside the submits\n", (now_us() - t) / 1e6);
	close_engine(e);
	t = now_us();
	e = open_engine(store, false, 0);
	printf("recovery with it: %.3f s\n", (now_us() - t) / 1e6);
	close_engine(e);
	dogwood_event_free(ev);
}

int main(int argc, char **argv)
{
	bool quick = argc > 1 && strcmp(argv[1], "quick") == 0;
	const char *base = getenv("TMPDIR");
	char dir[256], store[6][300], command[320];
	double one;

	(void)snprintf(dir, sizeof(dir), "%s/engine-bench-XXXXXX", base != NULL ? base : P_tmpdir);
	MUST(mkdtemp(dir) != NULL);
	for (int i = 0; i < 6; i++)
		(void)snprintf(store[i], sizeof(store[i]), "%s/store%d", dir, i);
	setvbuf(stdout, NULL, _IOLBF, 0);
	by_policies(quick);
	by_window(quick);
	one = one_caller(dir, store[0], quick ? 10 : 60);
	many_callers(store[1], one, quick);
	event_loop(store[2], one, quick);
	no_sync(store[3]);
	open_loop(store[4], quick);
	recovery(store[5], quick);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command) == 0 ? 0 : 1;
}
