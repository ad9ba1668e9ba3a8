/* Clocks. See clock.h. */
#include "base/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t now_of(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) != 0)
		return 0;
	return (int64_t)ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

static int64_t wall_now(void *arg)
{
	(void)arg; /* the system's clock has no state of ours */
	return now_of(CLOCK_REALTIME);
}

static int64_t mono_now(void *arg)
{
	(void)arg; /* as above */
	return now_of(CLOCK_MONOTONIC);
}

static int64_t fixed_now(void *arg)
{
	return *(int64_t *)arg;
}

struct clock clock_wall(void)
{
	return (struct clock){ wall_now, NULL };
}

struct clock clock_mono(void)
{
	return (struct clock){ mono_now, NULL };
}

struct clock clock_fixed(int64_t *now_ns)
{
	return (struct clock){ fixed_now, now_ns };
}

void clock_format(int64_t epoch_ns, char *out)
{
	int64_t sec = epoch_ns / NS_PER_SEC, ns = epoch_ns % NS_PER_SEC;
	struct tm tm;
	time_t t;

	if (ns < 0) {
		ns += NS_PER_SEC;
		sec--;
	}
	t = (time_t)sec;
	if (gmtime_r(&t, &tm) == NULL) {
		(void)snprintf(out, CLOCK_TEXT_MAX, "@%lld", (long long)sec); /* fits: 21 bytes */
		return;
	}
	/* The longest form ("-2147483648-…") fits CLOCK_TEXT_MAX. */
	(void)snprintf(out, CLOCK_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02d.%09lldZ",
	    (tm.tm_year + 1900) % 100000, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
	    tm.tm_sec, (long long)ns);
}
