/* stream: one non-blocking socket, plain or under TLS, with a bounded buffer each way. It moves
 * bytes and knows no HTTP.
 *
 * The owner consumes from `in` (stream_take), appends to the output (stream_put) and is called back
 * when anything changed; it then looks at the stream's state instead of being told what happened.
 * Reading stops by itself when `in` is full and goes on when the owner made room. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"

struct event;
struct event_base;
struct ssl_st;

#define STREAM_IN_MAX   ((size_t)66 * 1024) /* one whole request head fits */
#define STREAM_OUT_HIGH ((size_t)64 * 1024) /* an owner stops producing above this */
#define STREAM_OUT_MAX                                                                             \
	((size_t)1 << 20) /* a put above this fails: more than any single message part */

struct stream {
	int fd; /* -1: not open */
	struct event_base *base;
	struct event *rd, *wr;
	struct ssl_st *ssl; /* NULL: plain */
	struct buf in, out;
	size_t out_at; /* bytes of out that are sent */
	void (*on_change)(void *arg);
	void *arg;
	uint64_t moved; /* bytes moved so far, both ways: for stall time-outs */
	bool handshaking;
	bool http_instead; /* the handshake failed on something like "GET / HTTP/1.1" */
	bool eof;          /* the peer ended its side properly (FIN; under TLS close_notify) */
	bool failed;       /* reading failed: nothing more comes in; err says why */
	bool out_failed;   /* writing failed: output is discarded; reading may go on */
	bool full;         /* reading stopped because `in` is full */
	bool wants_write;  /* TLS needs to write before it can read */
	bool wants_read;   /* TLS needs to read before it can write */
	bool no_more;      /* stream_finish was called */
	bool fin_sent;
	struct box_err err;
};

/* Take over a connected socket (closed by stream_close, also when this fails). */
int stream_open(struct stream *s, struct event_base *base, int fd, void (*on_change)(void *arg),
    void *arg, struct box_err *err);
/* Close at once and forget everything buffered. Harmless on a zeroed or closed stream. */
void stream_close(struct stream *s);
static inline bool stream_is_open(const struct stream *s)
{
	return s->rd != NULL;
}
/* Put TLS on top; ssl (owned from here on) is configured for its role. `handshaking` stays set
 * until it is done; a failure sets `failed`. */
void stream_start_tls(struct stream *s, struct ssl_st *ssl);

/* After a failed handshake: drop TLS and go on plain, to say why. True when the peer spoke plain
 * HTTP instead of TLS; otherwise nothing is changed. */
bool stream_spoke_http(struct stream *s);

static inline sv stream_in(const struct stream *s)
{
	return buf_sv(&s->in);
}
/* Consume n bytes of stream_in. */
void stream_take(struct stream *s, size_t n);
/* Give back large storage that is not in use; for a connection that becomes idle. */
void stream_trim(struct stream *s);
/* Append to the output. false when it does not fit or writing has failed; then nothing more is sent
 * at all (out_failed), so that the receiver never sees a stream with a hole. */
bool stream_put(struct stream *s, sv bytes);
/* Bytes not yet accepted by the kernel. */
static inline size_t stream_pending(const struct stream *s)
{
	return s->out.n - s->out_at;
}
/* Write as much as goes now. Owners call it once after a round of puts. */
void stream_flush(struct stream *s);
/* End our side after what is pending: close_notify and FIN. */
void stream_finish(struct stream *s);
/* Nothing more will come in. */
static inline bool stream_ended(const struct stream *s)
{
	return s->eof || s->failed;
}
