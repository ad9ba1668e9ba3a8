/* resolver: name lookups in a few threads, so that a slow name server stops nobody else. Questions
 * and answers are bounded. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"
#include "base/host.h"
#include "dial/proto.h"

struct event_base;
struct resolver;

struct resolver_answer {
	struct sockaddr_storage addr[DIAL_ADDRS_MAX]; /* AF_INET, AF_INET6; ports unset */
	size_t n;
	char why[128]; /* when n is 0 */
};

/* Fill *out for a name; called in a thread. */
typedef void resolver_lookup(void *arg, const char *name, struct resolver_answer *out);
/* getaddrinfo(3). */
void resolver_system(void *arg, const char *name, struct resolver_answer *out);

struct resolver_ops {
	resolver_lookup *lookup;
	void *lookup_arg;
	/* On the loop's thread, once for each question. */
	void (*on_answer)(void *arg, uint32_t id, const struct resolver_answer *a);
	void *arg;
};

/* Starts DIAL_THREADS threads. ops is borrowed. NULL with err. */
struct resolver *resolver_new(
    struct event_base *base, const struct resolver_ops *ops, struct box_err *err);
/* Waits for running lookups. */
void resolver_free(struct resolver *r);
/* -1: too many questions are open. */
int resolver_ask(struct resolver *r, uint32_t id, const struct host *name);
