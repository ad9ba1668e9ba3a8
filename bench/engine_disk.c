/* Durable decisions: one caller against a bare O_DSYNC append of the same bytes, many callers as
 * threads and from an event loop, and events that need no sync. */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine_rig.h"

#include "base/ban.h"

#define FLOOR_BYTES ((off_t)16 << 20)
/* What one Read takes in the log: 72 bytes of head and about 250 of body. */
#define READ_BYTES  328
#define THREADS_MAX 64

struct floor {
	int fd;
	off_t at;
	uint8_t *block;
};

static void floor_open(struct floor *f, const char *dir, int flags)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/floor", dir);
	f->block = calloc(1, (size_t)FLOOR_BYTES);
	f->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(f->block != NULL && f->fd >= 0 &&
	     pwrite(f->fd, f->block, (size_t)FLOOR_BYTES, 0) == FLOOR_BYTES && fsync(f->fd) == 0);
	(void)close(f->fd);
	f->fd = open(path, O_RDWR | O_CLOEXEC | flags);
	MUST(f->fd >= 0);
	memset(f->block, 1, READ_BYTES * THREADS_MAX);
	f->at = 0;
}

static void floor_close(struct floor *f)
{
	(void)close(f->fd);
	free(f->block);
}

static void floor_append(struct floor *f, size_t n)
{
	if (f->at + (off_t)n > FLOOR_BYTES)
		f->at = 0;
	MUST(pwrite(f->fd, f->block, n, f->at) == (ssize_t)n);
	f->at += (off_t)n;
}

/* One caller and the bare append, alternating in blocks, so that both meet the same disk. */
void bench_one_caller(struct bench *b)
{
	unsigned blocks = b->quick ? 10 : 60;
	dogwood_engine *e = rig_open(rig_store(b), false, 0);
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_verdict *v = dogwood_verdict_new();
	double *a = calloc(blocks, sizeof(*a)), *bare = calloc(blocks, sizeof(*bare)), base;
	struct floor f;

	MUST(a != NULL && bare != NULL && ev != NULL && v != NULL);
	(void)rig_install(e, rig_always_matters, rig_actions, rig_unpinned);
	floor_open(&f, b->dir, O_DSYNC);
	for (unsigned k = 0; k < blocks; k++) {
		double t = rig_now_us();

		for (int i = 0; i < 50; i++)
			floor_append(&f, READ_BYTES);
		bare[k] = (rig_now_us() - t) / 50;
		t = rig_now_us();
		for (int i = 0; i < 50; i++) {
			rig_event(ev, "Read", "u1", "s1", NULL);
			MUST(rig_submit(e, ev, v));
		}
		a[k] = (rig_now_us() - t) / 50;
	}
	b->one_us = rig_median(a, blocks);
	base = rig_median(bare, blocks);
	printf("\ndurable submit, one caller, median us (budget 1.15 x a bare O_DSYNC append of "
	       "the same bytes)\n%12s %12s %8s   reference\n%12.1f %12.1f %8.2f   1,230 us, of "
	       "which 1,180 its sync\n",
	    "submit", "bare append", "ratio", b->one_us, base, b->one_us / base);
	floor_close(&f);
	free(a);
	free(bare);
	dogwood_event_free(ev);
	dogwood_verdict_free(v);
	rig_close(e);
}

/* ---- many threads ---- */

struct usage {
	double wall, cpu, switches;
};

static struct usage usage_now(void)
{
	struct rusage r;

	MUST(getrusage(RUSAGE_SELF, &r) == 0);
	return (struct usage){ .wall = rig_now_us(),
		.cpu = (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
		       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec),
		.switches = (double)(r.ru_nvcsw + r.ru_nivcsw) };
}

static void print_threads(const char *what, unsigned threads, const struct usage *from, double ops,
    double syncs, double one_us)
{
	struct usage now = usage_now();
	double rate = ops / (now.wall - from->wall) * 1e6;

	printf("%-8s %8u %12.0f %8.1f %14.1f %12.1f %14.2f\n", what, threads, rate,
	    rate * one_us / 1e6, ops / syncs, (now.cpu - from->cpu) / ops,
	    (now.switches - from->switches) / ops);
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

	MUST(ev != NULL && v != NULL);
	for (unsigned i = 0; i < c->n; i++) {
		rig_event(ev, "Read", "u1", "s1", NULL);
		MUST(rig_submit(c->e, ev, v));
	}
	dogwood_event_free(ev);
	dogwood_verdict_free(v);
	return NULL;
}

static void engine_threads(dogwood_engine *e, unsigned threads, unsigned each, double one_us)
{
	struct caller c[THREADS_MAX];
	uint64_t syncs = rig_status(e).syncs;
	struct usage from = usage_now();

	for (unsigned i = 0; i < threads; i++) {
		c[i] = (struct caller){ .e = e, .n = each };
		MUST(pthread_create(&c[i].thread, NULL, call, &c[i]) == 0);
	}
	for (unsigned i = 0; i < threads; i++)
		(void)pthread_join(c[i].thread, NULL);
	print_threads("engine", threads, &from, (double)each * threads,
	    (double)(rig_status(e).syncs - syncs), one_us);
}

/* The least that a durable answer to a thread can cost here: no engine, no lock, no event; a
 * thread adds one to a counter and sleeps on a futex, the last one to do so writes and syncs the
 * same bytes for all and wakes them with one call. */
struct meeting {
	struct floor f;
	unsigned threads, rounds, syncs;
	_Atomic unsigned here;
	_Atomic unsigned round;
};

static void *meet(void *arg)
{
	struct meeting *m = arg;

	for (unsigned i = 0; i < m->rounds; i++) {
		unsigned seen = atomic_load(&m->round);

		if (atomic_fetch_add(&m->here, 1) + 1 == m->threads) {
			atomic_store(&m->here, 0);
			floor_append(&m->f, (size_t)READ_BYTES * m->threads);
			m->syncs++;
			(void)atomic_fetch_add(&m->round, 1);
			(void)syscall(
			    SYS_futex, &m->round, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
			continue;
		}
		while (atomic_load(&m->round) == seen)
			(void)syscall(
			    SYS_futex, &m->round, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
	}
	return NULL;
}

static void floor_threads(struct bench *b, unsigned threads, unsigned each)
{
	struct meeting m = { .threads = threads, .rounds = each };
	pthread_t t[THREADS_MAX];
	struct usage from;

	floor_open(&m.f, b->dir, O_DSYNC);
	from = usage_now();
	for (unsigned i = 0; i < threads; i++)
		MUST(pthread_create(&t[i], NULL, meet, &m) == 0);
	for (unsigned i = 0; i < threads; i++)
		(void)pthread_join(t[i], NULL);
	print_threads("floor", threads, &from, (double)each * threads, m.syncs, b->one_us);
	floor_close(&m.f);
}

void bench_callers(struct bench *b)
{
	static const unsigned count[] = { 1, 4, 16, 64 };
	dogwood_engine *e = rig_open(rig_store(b), false, 0);

	(void)rig_install(e, rig_always_matters, rig_actions, rig_unpinned);
	printf("\ndurable submits by threads that each wait for their verdict (budget: 64 threads "
	       "20 x one; reference 835/s)\n"
	       "%-8s %8s %12s %8s %14s %12s %14s\n",
	    "", "threads", "per second", "x one", "events a sync", "cpu us each", "switches each");
	for (size_t k = 0; k < sizeof(count) / sizeof(count[0]); k++)
		engine_threads(e, count[k],
		    (b->quick            ? 4000U
		        : count[k] >= 16 ? 120000U
		                         : 12000U) /
		        count[k] / (count[k] == 1 ? 4 : 1),
		    b->one_us);
	floor_threads(b, 64, b->quick ? 60 : 1800);
	rig_close(e);
}

/* ---- an event loop ---- */

static void heard(void *arg, const struct dogwood_verdict *v)
{
	if (v->permit)
		++*(unsigned *)arg;
}

static void begin(dogwood_engine *e, dogwood_event *ev, unsigned *permits)
{
	struct dogwood_error err;

	rig_event(ev, "Read", "u1", "s1", NULL);
	if (dogwood_submit_begin(e, ev, (dogwood_str){ NULL, 0 }, heard, permits, &err) < 0)
		rig_die("begin", __LINE__, &err);
}

/* One thread that keeps `waiting` requests open, as `box run` does. */
void bench_event_loop(struct bench *b)
{
	static const unsigned waiting[] = { 1, 4, 16, 64 };
	dogwood_engine *e = rig_open(rig_store(b), false, 0);
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_error err;

	MUST(ev != NULL);
	(void)rig_install(e, rig_always_matters, rig_actions, rig_unpinned);
	printf(
	    "\nthe same from an event loop: dogwood_submit_begin, one dogwood_engine_sync a turn "
	    "(budget: 64 callers 20 x one)\n%10s %12s %8s %14s %12s\n",
	    "callers", "per second", "x one", "events a sync", "cpu us each");
	for (size_t k = 0; k < sizeof(waiting) / sizeof(waiting[0]); k++) {
		unsigned turns = b->quick ? 200 : 2000, permits = 0;
		uint64_t syncs = rig_status(e).syncs;
		struct usage from = usage_now(), to;
		double n = (double)turns * waiting[k], rate;

		for (unsigned i = 0; i < turns; i++) {
			for (unsigned w = 0; w < waiting[k]; w++)
				begin(e, ev, &permits);
			if (dogwood_engine_sync(e, &err) < 0)
				rig_die("sync", __LINE__, &err);
		}
		to = usage_now();
		rate = n / (to.wall - from.wall) * 1e6;
		MUST(permits == turns * waiting[k]);
		printf("%10u %12.0f %8.1f %14.1f %12.1f\n", waiting[k], rate,
		    rate * b->one_us / 1e6, n / (double)(rig_status(e).syncs - syncs),
		    (to.cpu - from.cpu) / n);
	}
	dogwood_event_free(ev);
	rig_close(e);
}

void bench_no_sync(struct bench *b)
{
	dogwood_engine *e = rig_open(rig_store(b), false, 0);
	dogwood_event *ev = dogwood_event_new();
	struct dogwood_error err;
	unsigned permits = 0, n = 20000;
	uint64_t syncs;
	double t;

	MUST(ev != NULL);
	(void)rig_install(e, rig_always_matters, rig_actions, rig_unpinned);
	syncs = rig_status(e).syncs;
	t = rig_now_us();
	for (unsigned i = 0; i < n; i++) {
		rig_event(ev, "Login", "u1", "s1", NULL);
		if (dogwood_submit_begin(e, ev, (dogwood_str){ NULL, 0 }, heard, &permits, &err) !=
		    1)
			rig_die("begin", __LINE__, &err);
		(void)dogwood_engine_sync(e, &err);
	}
	t = (rig_now_us() - t) / n;
	printf(
	    "\ndecision that no clause can match, stored without a sync, written each turn: %.2f "
	    "us, %llu syncs for %u\n",
	    t, (unsigned long long)(rig_status(e).syncs - syncs), n);
	dogwood_event_free(ev);
	rig_close(e);
}
