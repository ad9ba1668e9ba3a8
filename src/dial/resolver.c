/* resolver: see resolver.h. One lock; a thread holds it only to take a question and to leave an
 * answer. */
#include "dial/resolver.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/ban.h"

struct job {
	struct job *next;
	uint32_t id;
	struct host name;
	struct resolver_answer answer;
};

struct queue {
	struct job *head, **tail;
};

struct resolver {
	const struct resolver_ops *ops;
	pthread_mutex_t lock;
	pthread_cond_t ready;
	struct queue asked, answered;
	size_t open; /* jobs in either queue or in a thread */
	bool stopping;
	int wake[2]; /* a byte: look at `answered` */
	struct event *ev;
	pthread_t thread[DIAL_THREADS];
	size_t threads;
};

static void put(struct queue *q, struct job *j)
{
	j->next = NULL;
	*q->tail = j;
	q->tail = &j->next;
}

static struct job *take(struct queue *q)
{
	struct job *j = q->head;

	if (j != NULL) {
		q->head = j->next;
		if (q->head == NULL)
			q->tail = &q->head;
	}
	return j;
}

void resolver_system(void *arg, const char *name, struct resolver_answer *out)
{
	static const struct addrinfo hints = {
		.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG
	};
	struct addrinfo *list = NULL;
	int e = getaddrinfo(name, NULL, &hints, &list);

	(void)arg;
	if (e != 0) {
		(void)snprintf(out->why, sizeof(out->why), "%s", gai_strerror(e));
		return;
	}
	for (const struct addrinfo *a = list; a != NULL && out->n < DIAL_ADDRS_MAX;
	     a = a->ai_next) {
		if ((a->ai_family == AF_INET || a->ai_family == AF_INET6) &&
		    a->ai_addrlen <= sizeof(out->addr[0]))
			memcpy(&out->addr[out->n++], a->ai_addr, a->ai_addrlen);
	}
	freeaddrinfo(list);
}

static void *work(void *arg)
{
	struct resolver *r = arg;

	(void)pthread_mutex_lock(&r->lock);
	for (;;) {
		struct job *j;

		while (!r->stopping && r->asked.head == NULL)
			(void)pthread_cond_wait(&r->ready, &r->lock);
		if (r->stopping)
			break;
		j = take(&r->asked);
		(void)pthread_mutex_unlock(&r->lock);
		r->ops->lookup(r->ops->lookup_arg, j->name.text, &j->answer);
		if (j->answer.n == 0 && j->answer.why[0] == '\0')
			(void)snprintf(j->answer.why, sizeof(j->answer.why), "it has no address");
		(void)pthread_mutex_lock(&r->lock);
		put(&r->answered, j);
		if (write(r->wake[1], "", 1) < 0 && errno != EAGAIN)
			abort(); /* a pipe of our own cannot fail; a full one wakes the loop as
				  * well */
	}
	(void)pthread_mutex_unlock(&r->lock);
	return NULL;
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
	struct resolver *r = arg;
	char drain[64];
	struct job *j;

	(void)what;
	while (read(fd, drain, sizeof(drain)) > 0)
		;
	for (;;) {
		(void)pthread_mutex_lock(&r->lock);
		j = take(&r->answered);
		if (j != NULL)
			r->open--;
		(void)pthread_mutex_unlock(&r->lock);
		if (j == NULL)
			return;
		r->ops->on_answer(r->ops->arg, j->id, &j->answer);
		free(j);
	}
}

struct resolver *resolver_new(
    struct event_base *base, const struct resolver_ops *ops, struct box_err *err)
{
	struct resolver *r = calloc(1, sizeof(*r));

	if (r == NULL) {
		(void)box_nomem(err, "resolver");
		return NULL;
	}
	r->ops = ops;
	r->wake[0] = r->wake[1] = -1;
	r->asked.tail = &r->asked.head;
	r->answered.tail = &r->answered.head;
	(void)pthread_mutex_init(&r->lock, NULL);
	(void)pthread_cond_init(&r->ready, NULL);
	if (pipe2(r->wake, O_CLOEXEC | O_NONBLOCK) < 0) {
		(void)box_fail(err, BOX_ESYS, errno, "make the resolver's pipe");
		goto fail;
	}
	r->ev = event_new(base, r->wake[0], EV_READ | EV_PERSIST, on_wake, r);
	if (r->ev == NULL || event_add(r->ev, NULL) < 0) {
		(void)box_fail(err, BOX_ESYS, errno, "watch the resolver");
		goto fail;
	}
	for (; r->threads < DIAL_THREADS; r->threads++) {
		int e = pthread_create(&r->thread[r->threads], NULL, work, r);

		if (e != 0) {
			(void)box_fail(err, BOX_ESYS, e, "start a resolver thread");
			goto fail;
		}
	}
	return r;
fail:
	resolver_free(r);
	return NULL;
}

void resolver_free(struct resolver *r)
{
	struct job *j;

	if (r == NULL)
		return;
	(void)pthread_mutex_lock(&r->lock);
	r->stopping = true;
	(void)pthread_cond_broadcast(&r->ready);
	(void)pthread_mutex_unlock(&r->lock);
	while (r->threads != 0)
		(void)pthread_join(r->thread[--r->threads], NULL);
	while ((j = take(&r->asked)) != NULL || (j = take(&r->answered)) != NULL)
		free(j);
	if (r->ev != NULL)
		event_free(r->ev);
	fd_drop(&r->wake[0]);
	fd_drop(&r->wake[1]);
	(void)pthread_cond_destroy(&r->ready);
	(void)pthread_mutex_destroy(&r->lock);
	free(r);
}

int resolver_ask(struct resolver *r, uint32_t id, const struct host *name)
{
	struct job *j = calloc(1, sizeof(*j));
	bool room;

	if (j == NULL)
		return -1;
	j->id = id;
	j->name = *name;
	(void)pthread_mutex_lock(&r->lock);
	room = r->open < DIAL_PENDING_MAX;
	if (room) {
		r->open++;
		put(&r->asked, j);
		(void)pthread_cond_signal(&r->ready);
	}
	(void)pthread_mutex_unlock(&r->lock);
	if (!room)
		free(j);
	return room ? 0 : -1;
}
