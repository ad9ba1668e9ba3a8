/* loop: the monitor's event loop. Level-triggered epoll, timers on the monotonic clock, and
 * deferred calls that run once at the end of each turn (the place where everything decided in that
 * turn is made durable with one sync).
 *
 * Single-threaded. A handler may remove any watch, its own included, at any time. */
#pragma once

#include <stdint.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/err.h"

struct loop;
struct loop_watch;
struct loop_timer;

struct loop *loop_new(struct clock mono, struct box_err *err);
/* Frees the watches and timers that are left; descriptors stay open. */
void loop_free(struct loop *l);

/* Call fn(arg, EPOLL* events) while fd is ready for events (EPOLLIN, EPOLLOUT). The descriptor
 * stays the caller's and must be open until loop_unwatch. NULL with err. */
struct loop_watch *loop_watch(struct loop *l, int fd, uint32_t events,
    void (*fn)(void *arg, uint32_t events), void *arg, struct box_err *err);
int loop_rewatch(struct loop *l, struct loop_watch *w, uint32_t events, struct box_err *err);
/* NULL is fine. The handler is not called again. */
void loop_unwatch(struct loop *l, struct loop_watch *w);

/* Call fn(arg) once, after at least delay_ms. Ends itself; loop_cancel before that. NULL without
 * memory. */
struct loop_timer *loop_after(struct loop *l, int64_t delay_ms, void (*fn)(void *arg), void *arg);
void loop_cancel(struct loop *l, struct loop_timer *t);

/* fn(arg) runs at the end of every turn, in order of registration. At most LOOP_TURN_MAX. */
#define LOOP_TURN_MAX 4
int loop_each_turn(struct loop *l, void (*fn)(void *arg), void *arg);

/* Run until loop_stop. 0, or -1 when epoll itself fails. */
int loop_run(struct loop *l, struct box_err *err);
/* One turn; waits at most timeout_ms (-1: until something happens). */
int loop_turn(struct loop *l, int timeout_ms, struct box_err *err);
void loop_stop(struct loop *l);
