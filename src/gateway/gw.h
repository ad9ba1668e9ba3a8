/* gw: the gateway as an object on an event loop. main.c runs it in its own process; tests run it
 * beside a fake monitor and a fake box-dial. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

struct event_base;
struct gw;

/* Defaults of START's limits. */
#define GW_CONNECTIONS_MAX 400u
#define GW_HEAD_MS                                                                                 \
	30000u /* a request head, first byte to last; a TLS handshake with the workload */
#define GW_IDLE_MS  120000u /* between requests */
#define GW_STALL_MS 900000u /* an exchange in which no byte moves: models think for minutes */
#define GW_LINGER_MS                                                                               \
	2000u /* reading on after our last reply, so that it is not lost in a
			        * reset */
#define GW_LISTENERS_MAX 256u
#define GW_TICK_MS       250u

/* mon_fd (owned from here on, also on failure): the channel to the monitor; HELLO is sent. mono:
 * for time-outs, borrowed. NULL with err. The loop is broken (event_base_loopbreak) when the
 * monitor says STOP or is gone; gw_error says why (BOX_OK: as it should be). */
struct gw *gw_new(struct event_base *base, int mon_fd, struct clock mono, struct box_err *err);
void gw_free(struct gw *g);
const struct box_err *gw_error(const struct gw *g);
/* Check time-outs now; the gateway does so itself every GW_TICK_MS while it has connections. For
 * tests that move the clock. */
void gw_tick(struct gw *g);
/* Connections at this moment. */
size_t gw_connections(const struct gw *g);
