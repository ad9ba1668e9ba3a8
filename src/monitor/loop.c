/* The monitor's event loop. See loop.h. */
#include "monitor/loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ban.h"

#define TURN_EVENTS 64

struct loop_watch {
	struct loop_watch *next; /* all watches, dead ones until the end of the turn */
	int fd;
	bool dead;
	void (*fn)(void *arg, uint32_t events);
	void *arg;
};

struct loop_timer {
	struct loop_timer *next; /* by due time, the earliest first */
	int64_t due_ns;
	void (*fn)(void *arg);
	void *arg;
};

struct loop {
	int ep;
	struct clock mono;
	bool stop, reap;
	struct loop_watch *watches;
	struct loop_timer *timers;
	struct {
		void (*fn)(void *arg);
		void *arg;
	} turn[LOOP_TURN_MAX];
	size_t turn_n;
};

struct loop *loop_new(struct clock mono, struct box_err *err)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (l == NULL) {
		(void)box_nomem(err, "the event loop"); /* always -1 */
		return NULL;
	}
	l->mono = mono;
	l->ep = epoll_create1(EPOLL_CLOEXEC);
	if (l->ep < 0) {
		(void)box_fail(err, BOX_ESYS, errno, "epoll_create1"); /* always -1 */
		free(l);
		return NULL;
	}
	return l;
}

void loop_free(struct loop *l)
{
	if (l == NULL)
		return;
	while (l->watches != NULL) {
		struct loop_watch *w = l->watches;

		l->watches = w->next;
		free(w);
	}
	while (l->timers != NULL) {
		struct loop_timer *t = l->timers;

		l->timers = t->next;
		free(t);
	}
	fd_drop(&l->ep);
	free(l);
}

struct loop_watch *loop_watch(struct loop *l, int fd, uint32_t events,
    void (*fn)(void *arg, uint32_t events), void *arg, struct box_err *err)
{
	struct loop_watch *w = calloc(1, sizeof(*w));
	struct epoll_event ev = { .events = events, .data.ptr = w };

	if (w == NULL) {
		(void)box_nomem(err, "a watch"); /* always -1 */
		return NULL;
	}
	*w = (struct loop_watch){ .next = l->watches, .fd = fd, .fn = fn, .arg = arg };
	if (epoll_ctl(l->ep, EPOLL_CTL_ADD, fd, &ev) != 0) {
		(void)box_fail(err, BOX_ESYS, errno, "watch descriptor %d", fd); /* always -1 */
		free(w);
		return NULL;
	}
	l->watches = w;
	return w;
}

int loop_rewatch(struct loop *l, struct loop_watch *w, uint32_t events, struct box_err *err)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };

	if (epoll_ctl(l->ep, EPOLL_CTL_MOD, w->fd, &ev) != 0)
		return box_fail(err, BOX_ESYS, errno, "watch descriptor %d", w->fd);
	return 0;
}

void loop_unwatch(struct loop *l, struct loop_watch *w)
{
	if (w == NULL || w->dead)
		return;
	(void)epoll_ctl(l->ep, EPOLL_CTL_DEL, w->fd,
	    NULL); /* fails only if fd was closed: then it is gone already */
	/* This turn's event list may still point here. */
	w->dead = true;
	l->reap = true;
}

static void reap(struct loop *l)
{
	struct loop_watch **at = &l->watches;

	while (*at != NULL) {
		struct loop_watch *w = *at;

		if (!w->dead) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		free(w);
	}
	l->reap = false;
}

struct loop_timer *loop_after(struct loop *l, int64_t delay_ms, void (*fn)(void *arg), void *arg)
{
	struct loop_timer *t = calloc(1, sizeof(*t)), **at = &l->timers;

	if (t == NULL)
		return NULL;
	*t = (struct loop_timer){
		.due_ns = clock_now(&l->mono) + delay_ms * NS_PER_MS, .fn = fn, .arg = arg
	};
	while (*at != NULL && (*at)->due_ns <= t->due_ns)
		at = &(*at)->next;
	t->next = *at;
	*at = t;
	return t;
}

void loop_cancel(struct loop *l, struct loop_timer *t)
{
	for (struct loop_timer **at = &l->timers; *at != NULL; at = &(*at)->next) {
		if (*at != t)
			continue;
		*at = t->next;
		free(t);
		return;
	}
}

int loop_each_turn(struct loop *l, void (*fn)(void *arg), void *arg)
{
	if (l->turn_n == LOOP_TURN_MAX)
		return -1;
	l->turn[l->turn_n].fn = fn;
	l->turn[l->turn_n++].arg = arg;
	return 0;
}

/* Milliseconds to the next timer, at most max_ms (-1: no limit). Rounded up, so that a turn never
 * spins. */
static int wait_ms(const struct loop *l, int max_ms)
{
	int64_t left;

	if (l->timers == NULL)
		return max_ms;
	left = (l->timers->due_ns - clock_now(&l->mono) + NS_PER_MS - 1) / NS_PER_MS;
	if (left < 0)
		left = 0;
	if (left > 3600000)
		left = 3600000;
	return max_ms >= 0 && max_ms < left ? max_ms : (int)left;
}

static void run_timers(struct loop *l)
{
	int64_t now = clock_now(&l->mono);

	while (l->timers != NULL && l->timers->due_ns <= now) {
		struct loop_timer *t = l->timers;

		l->timers = t->next;
		t->fn(t->arg);
		free(t);
	}
}

int loop_turn(struct loop *l, int timeout_ms, struct box_err *err)
{
	struct epoll_event ev[TURN_EVENTS];
	int n = epoll_wait(l->ep, ev, TURN_EVENTS, wait_ms(l, timeout_ms));

	if (n < 0 && errno != EINTR)
		return box_fail(err, BOX_ESYS, errno, "epoll_wait");
	for (int i = 0; i < n; i++) {
		struct loop_watch *w = ev[i].data.ptr;

		if (!w->dead)
			w->fn(w->arg, ev[i].events);
	}
	run_timers(l);
	for (size_t i = 0; i < l->turn_n; i++)
		l->turn[i].fn(l->turn[i].arg);
	if (l->reap)
		reap(l);
	return 0;
}

int loop_run(struct loop *l, struct box_err *err)
{
	l->stop = false;
	while (!l->stop)
		if (loop_turn(l, -1, err) != 0)
			return -1;
	return 0;
}

void loop_stop(struct loop *l)
{
	l->stop = true;
}
