/* Shared by the parts of the engine benchmark (engine_bench.c): an engine with a clock in the
 * program's hand, the Login/Read workload of local-engine.md 18.1, and small statistics. What goes
 * wrong ends the program: a benchmark that goes on after an error measures nothing. */
#pragma once

#include <dogwood/dogwood.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MUST(x) ((x) ? (void)0 : rig_die(#x, __LINE__, NULL))
#define SECOND  INT64_C(1000000000)
#define HOUR    (3600 * SECOND)

/* One run of the whole benchmark. */
struct bench {
	char dir[256]; /* on the disk that is measured */
	bool quick;
	double one_us; /* durable submit of one caller; set by bench_one_caller */
	unsigned stores;
};

void rig_die(const char *what, int line, const struct dogwood_error *err);
double rig_now_us(void);
double rig_median(double *v, size_t n);
void rig_sort(double *v, size_t n);
/* Bytes that are allocated now. */
size_t rig_heap(void);
/* The path of a store that is not there yet. */
const char *rig_store(struct bench *b);

/* The clock of engines opened with own_clock; moves only when somebody adds to it. */
extern int64_t rig_clock_ns;

dogwood_engine *rig_open(const char *path, bool own_clock, uint64_t snapshots);
void rig_close(dogwood_engine *e);
struct dogwood_status rig_status(dogwood_engine *e);
/* Microseconds it took. */
double rig_install(
    dogwood_engine *e, const char *policy, const char *actions, const char *event_schema);

/* The schemas of 18.1: without pins, and pinned by session. */
extern const char rig_actions[];
extern const char rig_unpinned[];
extern const char rig_pinned[];
/* Permit Read; n forbids that each look for another blocked user's login on the same server, or
 * that each count all logins of an hour. free() it. */
char *rig_selective(unsigned n);
char *rig_broad(unsigned n);
/* A permit and a count over Reads: every Read matters to a later one, so that each must be
 * durable. */
extern const char rig_always_matters[];

/* A request. session NULL: "sess0". */
void rig_event(dogwood_event *ev, const char *action, const char *user, const char *server,
    const char *session);
/* Event i of 18.1 (S = 10, L = 5, V = 49). */
void rig_event_i(dogwood_event *ev, unsigned i);
/* Submit and wait; permitted? */
bool rig_submit(dogwood_engine *e, const dogwood_event *ev, struct dogwood_verdict *v);

/* The parts. */
void bench_policies(struct bench *b); /* engine_memory.c */
void bench_windows(struct bench *b);
void bench_components(struct bench *b);
void bench_shapes(struct bench *b);     /* engine_shapes.c */
void bench_one_caller(struct bench *b); /* engine_disk.c */
void bench_callers(struct bench *b);
void bench_event_loop(struct bench *b);
void bench_no_sync(struct bench *b);
void bench_open_loop(struct bench *b); /* engine_time.c */
void bench_recovery(struct bench *b);
