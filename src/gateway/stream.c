/* stream: see stream.h. Bytes only; limits are the buffers'. */
#include "gateway/stream.h"

#include <errno.h>
#include <event2/event.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

#include "base/ban.h"

#define STREAM_READ_SIZE ((size_t)16 * 1024)
#define STREAM_KEEP      ((size_t)16 * 1024) /* storage an idle buffer may keep */

static void stream_fail(struct stream *s, const char *what, int sys)
{
	if (s->failed)
		return;
	s->failed = true;
	(void)box_fail(&s->err, BOX_ESYS, sys, "%s", what);
}

/* The reason of the last TLS failure, without OpenSSL's file names. */
static void stream_fail_tls(struct stream *s, const char *what)
{
	unsigned long e = ERR_peek_last_error();
	const char *reason = e != 0 ? ERR_reason_error_string(e) : NULL;
	long verify = SSL_get_verify_result(s->ssl);

	if (s->failed)
		return;
	s->failed = true;
	s->http_instead = s->handshaking && ERR_GET_REASON(e) == SSL_R_HTTP_REQUEST;
	if (verify != X509_V_OK)
		reason = X509_verify_cert_error_string(verify);
	(void)box_fail(
	    &s->err, BOX_EDENIED, 0, "%s: %s", what, reason != NULL ? reason : "connection closed");
	ERR_clear_error();
}

static void want_events(struct stream *s)
{
	bool rd = !stream_ended(s) && !s->full;
	bool wr = !s->out_failed && ((stream_pending(s) != 0 && !s->handshaking) || s->wants_write);

	if (s->handshaking)
		rd = !s->failed;
	if (rd || (s->wants_read && !s->failed))
		(void)event_add(s->rd, NULL);
	else
		(void)event_del(s->rd);
	if (wr && !s->wants_read)
		(void)event_add(s->wr, NULL);
	else
		(void)event_del(s->wr);
}

static void do_handshake(struct stream *s)
{
	int r;

	ERR_clear_error();
	r = SSL_do_handshake(s->ssl);
	s->wants_write = false;
	if (r == 1) {
		s->handshaking = false;
		s->moved++;
		return;
	}
	switch (SSL_get_error(s->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		break;
	case SSL_ERROR_WANT_WRITE:
		s->wants_write = true;
		break;
	default:
		stream_fail_tls(s, "TLS handshake");
		s->out_failed = true;
		break;
	}
}

/* One read into `in`. >0 bytes; 0 nothing now, end or failure (flags say which). */
static size_t read_some(struct stream *s, size_t room)
{
	uint8_t *p = buf_room(&s->in, room);
	int r;

	if (p == NULL) {
		stream_fail(s, "no memory for input", ENOMEM);
		return 0;
	}
	if (s->ssl == NULL) {
		ssize_t n = recv(s->fd, p, room, 0);

		if (n > 0)
			return (size_t)n;
		if (n == 0)
			s->eof = true;
		else if (errno != EAGAIN && errno != EINTR)
			stream_fail(s, "read", errno);
		return 0;
	}
	ERR_clear_error();
	r = SSL_read(s->ssl, p, (int)room);
	if (r > 0)
		return (size_t)r;
	switch (SSL_get_error(s->ssl, r)) {
	case SSL_ERROR_WANT_READ:
		break;
	case SSL_ERROR_WANT_WRITE:
		s->wants_write = true;
		break;
	case SSL_ERROR_ZERO_RETURN:
		s->eof = true;
		break;
	case SSL_ERROR_SYSCALL:
		stream_fail(s, "read", errno);
		break;
	default:
		stream_fail_tls(s, "TLS");
		break;
	}
	return 0;
}

static void do_read(struct stream *s)
{
	s->full = false;
	s->wants_write = false;
	while (!stream_ended(s)) {
		size_t room = STREAM_IN_MAX - s->in.n, n;

		if (room == 0) {
			s->full = true;
			break;
		}
		if (room > STREAM_READ_SIZE)
			room = STREAM_READ_SIZE;
		n = read_some(s, room);
		if (n == 0)
			break;
		s->in.n += n;
		s->moved += n;
		if (s->ssl == NULL && n < room)
			break; /* the socket is empty; spare a system call */
	}
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct stream *s = arg;

	(void)fd;
	(void)what;
	s->wants_read = false;
	if (s->handshaking)
		do_handshake(s);
	if (!s->handshaking && !s->failed)
		do_read(s);
	stream_flush(s);
	s->on_change(s->arg); /* may close the stream: touch nothing after it */
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct stream *s = arg;

	(void)fd;
	(void)what;
	if (s->handshaking)
		do_handshake(s);
	else if (s->wants_write)
		do_read(s);
	stream_flush(s);
	s->on_change(s->arg);
}

int stream_open(struct stream *s, struct event_base *base, int fd, void (*on_change)(void *arg),
    void *arg, struct box_err *err)
{
	memset(s, 0, sizeof(*s));
	s->fd = fd;
	s->base = base;
	s->in = buf_with(STREAM_IN_MAX);
	s->out = buf_with(STREAM_OUT_MAX);
	s->on_change = on_change;
	s->arg = arg;
	s->rd = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, s);
	s->wr = event_new(base, fd, EV_WRITE | EV_PERSIST, on_writable, s);
	if (s->rd == NULL || s->wr == NULL || fd_set_nonblock(fd, true) < 0 ||
	    event_add(s->rd, NULL) < 0) {
		(void)box_fail(err, BOX_ESYS, errno, "watch a connection");
		stream_close(s);
		return -1;
	}
	return 0;
}

void stream_close(struct stream *s)
{
	if (s->rd != NULL)
		event_free(s->rd);
	if (s->wr != NULL)
		event_free(s->wr);
	s->rd = s->wr = NULL;
	if (s->ssl != NULL)
		SSL_free(s->ssl);
	s->ssl = NULL;
	/* A stream that was never opened is all zero: fd 0 is not ours then. */
	if (s->base != NULL)
		fd_drop(&s->fd);
	s->base = NULL;
	buf_fini(&s->in);
	buf_fini(&s->out);
	s->out_at = 0;
}

void stream_start_tls(struct stream *s, struct ssl_st *ssl)
{
	s->ssl = ssl;
	s->handshaking = true;
	if (SSL_set_fd(ssl, s->fd) != 1) {
		stream_fail_tls(s, "TLS");
		return;
	}
	do_handshake(s);
	want_events(s);
}

bool stream_spoke_http(struct stream *s)
{
	if (!s->http_instead)
		return false;
	SSL_free(s->ssl);
	s->ssl = NULL;
	s->handshaking = s->failed = s->out_failed = s->http_instead = false;
	s->wants_read = s->wants_write = false;
	return true;
}

void stream_take(struct stream *s, size_t n)
{
	buf_drop(&s->in, n);
	if (s->full && n != 0) {
		s->full = false;
		/* TLS may hold bytes for which the socket will never become readable again. */
		want_events(s);
		event_active(s->rd, EV_READ, 1);
	}
}

void stream_trim(struct stream *s)
{
	if (s->in.n == 0 && s->in.cap > STREAM_KEEP)
		buf_fini(&s->in);
	if (s->out.n == 0 && s->out.cap > STREAM_KEEP)
		buf_fini(&s->out);
}

bool stream_put(struct stream *s, sv bytes)
{
	if (s->out_failed || s->no_more)
		return false;
	if (s->out_at != 0 && s->out_at >= s->out.n / 2) {
		buf_drop(&s->out, s->out_at);
		s->out_at = 0;
	}
	buf_put_sv(&s->out, bytes);
	if (!buf_ok(&s->out))
		s->out_failed = true; /* a stream with a hole must not go on */
	return !s->out_failed;
}

/* One write from the front of the output. false: no progress now. */
static bool write_some(struct stream *s)
{
	const uint8_t *p = s->out.p + s->out_at;
	size_t n = stream_pending(s);
	int r;

	if (s->ssl == NULL) {
		ssize_t w = send(s->fd, p, n, MSG_NOSIGNAL);

		if (w < 0) {
			if (errno != EAGAIN && errno != EINTR)
				s->out_failed = true;
			return false;
		}
		s->out_at += (size_t)w;
		s->moved += (uint64_t)w;
		return true;
	}
	ERR_clear_error();
	r = SSL_write(s->ssl, p, n > INT32_MAX ? INT32_MAX : (int)n);
	if (r > 0) {
		s->out_at += (size_t)r;
		s->moved += (uint64_t)r;
		return true;
	}
	switch (SSL_get_error(s->ssl, r)) {
	case SSL_ERROR_WANT_WRITE:
		break;
	case SSL_ERROR_WANT_READ:
		s->wants_read = true;
		break;
	default:
		s->out_failed = true;
		ERR_clear_error();
		break;
	}
	return false;
}

void stream_flush(struct stream *s)
{
	if (!stream_is_open(s))
		return;
	if (!s->handshaking) {
		while (!s->out_failed && stream_pending(s) != 0) {
			if (!write_some(s))
				break;
		}
		if (s->out_failed || stream_pending(s) == 0) {
			buf_clear(&s->out);
			s->out_at = 0;
		}
		if (s->no_more && !s->fin_sent && stream_pending(s) == 0) {
			s->fin_sent = true;
			if (s->ssl != NULL && !s->failed && !s->out_failed)
				(void)SSL_shutdown(s->ssl); /* best effort: one alert */
			ERR_clear_error();
			(void)shutdown(s->fd, SHUT_WR);
		}
	}
	want_events(s);
}

void stream_finish(struct stream *s)
{
	s->no_more = true;
	stream_flush(s);
}
