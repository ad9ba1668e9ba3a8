/* Clocks, injected: code that needs the time takes a `struct clock`, so that tests decide what time
 * it is and never sleep. */
#pragma once

#include <stdint.h>

#define NS_PER_SEC INT64_C(1000000000)
#define NS_PER_MS  INT64_C(1000000)

struct clock {
	int64_t (*now_ns)(void *arg); /* nanoseconds since the epoch of this clock */
	void *arg;
};

static inline int64_t clock_now(const struct clock *c)
{
	return c->now_ns(c->arg);
}

/* Wall clock (CLOCK_REALTIME): stamps and records. */
struct clock clock_wall(void);
/* Monotonic clock: durations and time-outs. */
struct clock clock_mono(void);
/* A clock that shows *now_ns, which the test moves. */
struct clock clock_fixed(int64_t *now_ns);

#define CLOCK_TEXT_MAX 80
/* "2026-11-30T10:00:00.123456789Z" (RFC 3339, UTC). out holds CLOCK_TEXT_MAX bytes. */
void clock_format(int64_t epoch_ns, char *out);
