/* The frames of box-gateway. Its channel MON_FD leads to the monitor (trusted); a second channel,
 * brought by START, leads to box-dial (dial/proto.h).
 *
 * Life: HELLO, then GW_PEM and GW_ROUTE in any number, MON_START, then GW_LISTENER, GW_UNLISTEN and
 * answers, MON_STOP.
 *
 * The monitor keeps the CA key, the secrets and the policy. The gateway keeps one P-256 key of its
 * own, has the monitor sign leaves for it, and learns a secret only in the verdict of a request
 * that carries it. What the gateway says about a request (intercepted, host, path) is what the
 * decision is about: it can lie, and then it gets a decision about the lie and, at most, a secret
 * that the lie's route covers. The monitor re-checks that the route covers host, port and path,
 * that intercepted is set, and that the placeholder state allows placing.
 *
 * `str` is a u32 length and bytes (buf_put_str, rd_str). */
#pragma once

#include "monitor/proto.h"

#define GW_ROUTE_NONE    0xffffu
#define GW_ROUTES_MAX    64u
#define GW_PEM_MAX       ((size_t)4 << 20)    /* all chunks of one target */
#define GW_PEM_CHUNK_MAX ((size_t)100 * 1024) /* bytes of one GW_PEM */
#define GW_EDITS_MAX     16u
#define GW_VALUE_MAX     16384u /* one header value, secret included */
#define GW_REDACT_MAX    4u

enum gw_type {
	/* monitor -> box-gateway, before START */

	/* u16 target (GW_ROUTE_NONE: the system's roots; else the route whose `trust` it is),
	 * str bytes. Chunks of one target are concatenated. */
	GW_PEM = 400,
	/* u16 index (0, 1, 2 … in order), str name,
	 * u16 n, n times { str host, u8 subdomains, u16 port (0: 443 and 80), str path,
	 *   u8 suffix },
	 * str header, str prefix, str placeholder (whole), u8 plan_inject */
	GW_ROUTE,

	/* monitor -> box-gateway: MON_START, 1 fd (the channel to box-dial). 0 for defaults:
	 *   u32 connections_max
	 *   u32 head_ms   a request head, from its first byte; a TLS handshake with the workload
	 *   u32 idle_ms   between requests; a connection or TLS handshake with the origin
	 *   u32 stall_ms  an exchange in which no byte moves */

	/* monitor -> box-gateway, running */

	/* 1 fd: a listening TCP socket made inside a sandbox's network namespace.
	 * u32 sandbox, str label */
	GW_LISTENER = 408,
	/* u32 sandbox: close its listener and its connections */
	GW_UNLISTEN,
	/* Answers GW_ASK_LEAF. u8 ok; if ok: str certificate DER; else str text */
	GW_LEAF,

	/* box-gateway -> monitor */

	/* str host (canonical name or IP text), str SubjectPublicKeyInfo DER of our key */
	GW_ASK_LEAF = 424,
	/* Not answered: a refusal by a control, not by policy, to be recorded.
	 *   u32 sandbox, u64 connection, u8 gw_control, str host, u16 port, str method, str path
	 *   (host, method and path "" and port 0 when there is none), str text (the body sent) */
	GW_CONTROL

	/* MON_ASK_HTTP: u32 sandbox, u64 connection (serial number of the client's connection, for
	 *   records), str host, u16 port, str method, str path (canonical, without query),
	 *   u64 body_bytes, u8 intercepted, u16 route (GW_ROUTE_NONE: none covers it), u8 gw_token,
	 *   str traceparent ("" none; else version 00 of the W3C form, 55 bytes)
	 * body_bytes is the declared Content-Length, 0 without a body, and 0 for a chunked body,
	 * whose length nobody knows yet; DONE carries the true count. A request to a route with
	 * inject = phantom and a token that is not OK never gets here: the gateway refuses it
	 * (GW_CONTROL).
	 *
	 * MON_VERDICT on it, permitted: u8 1, u64 ticket,
	 *   u16 n (0..GW_EDITS_MAX), n times { u8 gw_edit, str name, str value ("" for remove) },
	 *   u16 m (0..GW_REDACT_MAX), m times str secret
	 * Edits are applied to the forwarded head after hop-by-hop removal; names compare without
	 * case. A non-empty secret list makes the exchange credentialed: Accept-Encoding: identity,
	 * no Range, compressed replies refused, every occurrence of a secret in the reply becomes
	 * [REDACTED]. Edits and secrets on a request that is not intercepted are refused.
	 *
	 * MON_VERDICT, denied: u8 0, u16 0, str denial text (3.1). The gateway puts GW_GATE_PREFIX
	 * in front.
	 *
	 * MON_DONE_HTTP: u64 ticket, u16 status (0: no reply came, or nothing was sent at all), u64
	 * bytes of request body delivered. Sent when the final reply's head has arrived, before any
	 * of it is passed on; once for every ticket. */
};

/* What the request carries in the header of the route that covers it. */
enum gw_token {
	GW_TOKEN_NONE = 0, /* no route covers the request */
	GW_TOKEN_OK,       /* exactly one such header, equal to prefix + placeholder */
	GW_TOKEN_WRONG,    /* another value, or more than one */
	GW_TOKEN_MISSING
};

enum gw_edit {
	GW_EDIT_REMOVE = 1,
	GW_EDIT_SET /* remove every header of that name, then add one */
};

/* Which control refused (GW_CONTROL). The texts are those of box-config-and-policy 3.4. */
enum gw_control {
	GW_CTL_TOKEN = 1,  /* placeholder missing or wrong */
	GW_CTL_PLAINTEXT,  /* a routed destination over plain HTTP */
	GW_CTL_AUTHORITY,  /* Host, SNI or target name another host than CONNECT or the URL */
	GW_CTL_COMPRESSED, /* the reply to a credentialed request is compressed */
	GW_CTL_METHOD,     /* TRACE */
	GW_CTL_UPGRADE,    /* protocol upgrade */
	GW_CTL_LOAD        /* connections closed by limits; path holds how many since the last */
};

#define GW_GATE_PREFIX   "http:request gate: "
#define GW_TEXT_TOKEN    "blocked by egress control"
#define GW_TEXT_PLAIN    "credential not permitted on a plaintext request"
#define GW_TEXT_AUTH     "request authority rejected"
#define GW_TEXT_COMPRESS "response blocked by egress control"
