/* http1: a strict reader of HTTP/1.1 messages (RFC 9112), for both sides of the gateway. The head
 * is the judged object, so what has two readings is refused, never repaired: line ends are CRLF, no
 * folding, no blank before ':', one Content-Length or one "chunked", never both.
 *
 * Hostile input from both sides. Every length has a constant; nothing here allocates but the
 * trailer buffer of a chunked body. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"

#define HTTP1_HEAD_MAX   ((size_t)64 * 1024) /* start line and fields, with the empty line */
#define HTTP1_FIELDS_MAX 256
#define HTTP1_LINE_MAX   8192u               /* one chunk-size or trailer line */
#define HTTP1_META_MAX   ((size_t)64 * 1024) /* chunk extensions and trailers of one message */
#define HTTP1_METHOD_MAX 32
#define HTTP1_INFORM_MAX 16 /* 1xx replies before the final one */

/* Look for the end of a head that arrives in pieces. Begin with a zeroed struct; `in` is everything
 * received so far and only grows. */
struct http1_scan {
	size_t at;    /* bytes seen */
	size_t line;  /* start of the current line */
	size_t begin; /* where the head begins: after at most one empty line */
};
/* 1: *head is the whole head with its empty line, and *used bytes of `in` belong to it. 0: more is
 * needed. -1: it cannot become a head (a bare CR or LF, a NUL: BOX_EPARSE; too long:
 * BOX_ELIMIT). */
int http1_scan(struct http1_scan *s, sv in, sv *head, size_t *used, struct box_err *err);

struct http1_field {
	sv name;  /* a token, as written */
	sv value; /* without blanks around it */
};

enum http1_framing {
	HTTP1_EMPTY,  /* no body */
	HTTP1_LENGTH, /* `length` bytes */
	HTTP1_CHUNKED,
	HTTP1_CLOSE /* a reply that ends with the connection */
};

/* A parsed head. Views into the bytes it was read from. */
struct http1_head {
	sv method, target; /* request */
	uint16_t status;   /* reply */
	sv reason;
	uint8_t minor; /* HTTP/1.minor: 0 or 1 */
	struct http1_field field[HTTP1_FIELDS_MAX];
	size_t n;
	/* what the fields mean */
	enum http1_framing framing;
	uint64_t length;      /* HTTP1_LENGTH; for a reply without body, what Content-Length said */
	bool has_length;      /* there was a Content-Length */
	bool keep_alive;      /* the sender can take another message afterwards (RFC 9112 9.3) */
	bool expect_continue; /* Expect: 100-continue */
	sv host;              /* request: the Host field; .p is NULL when there was none */
};

/* Parse a whole head (from http1_scan). BOX_EPARSE or BOX_ELIMIT with the reason. */
int http1_request(sv head, struct http1_head *out, struct box_err *err);
/* to_head: the request was HEAD, so the reply has no body whatever it says (RFC 9112 6.3). */
int http1_response(sv head, bool to_head, struct http1_head *out, struct box_err *err);

/* First field of that name (case does not matter), NULL when there is none. *count gets how many
 * there are (may be NULL). */
const struct http1_field *http1_find(const struct http1_head *h, sv name, size_t *count);
/* Is `item` one of the comma-separated elements of any field of that name (case does not
 * matter)? */
bool http1_lists(const struct http1_head *h, sv name, sv item);
bool http1_is_token(sv s);
/* May these bytes stand in a field value: no control but TAB, no blank at the ends. */
bool http1_is_value(sv s);

/* A body that arrives in pieces. */
struct http1_body {
	enum http1_framing framing;
	int state;
	uint64_t left;       /* of the body, or of the chunk */
	size_t meta;         /* bytes of extensions and trailers so far */
	struct buf line;     /* a chunk-size or trailer line that is not whole yet */
	struct buf trailers; /* "Name: value\r\n" of the trailers worth passing on */
};
void http1_body_init(struct http1_body *b, const struct http1_head *h);
void http1_body_fini(struct http1_body *b);

enum http1_step {
	HTTP1_MORE, /* all of `in` was consumed; feed more */
	HTTP1_DATA, /* *data is payload (a view into `in`); call again with the rest */
	HTTP1_END,  /* the body is complete; bytes behind *used belong to the next message */
	HTTP1_BAD   /* err says why; nothing may be passed on any more */
};
/* Consume a prefix of `in`; *used says how much. */
enum http1_step http1_body_step(
    struct http1_body *b, sv in, size_t *used, sv *data, struct box_err *err);
/* The sender closed. true when that ends the body properly (HTTP1_CLOSE, or it was complete). */
bool http1_body_eof(const struct http1_body *b);
