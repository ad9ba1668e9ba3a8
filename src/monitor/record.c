/* OTLP/JSON records. See record.h. Written by hand: this runs for every decision. */
#include "monitor/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/ban.h"

#define ATTR_MAX     4096 /* every attribute is cut to this (5.2) */
#define ARGS_MAX     64   /* arguments reported; then one "<n> more" */
#define GATHER_MAX   ((size_t)16 << 20)
#define NAME_OPT_MAX 32

struct recorder {
	int fd;
	bool lost; /* a write failed; said once */
	struct clock wall;
	struct buf out;
	char box_id[32];
	char run_id[33];
	struct record_trace run; /* root span of the run: parent of control spans */
};

static void random_bytes(void *p, size_t n)
{
	if (getrandom(p, n, 0) != (ssize_t)n)
		abort(); /* no randomness: nothing here may go on */
}

static void put_hex(struct buf *b, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_putf(b, "%02x", p[i]);
}

/* Longest prefix of s of at most max bytes that ends on a character border. */
static sv cut_utf8(sv s, size_t max)
{
	size_t n = max;

	if (s.n <= max)
		return s;
	while (n > 0 && ((unsigned char)s.p[n] & 0xc0U) == 0x80)
		n--;
	return sv_sub(s, 0, n);
}

static void put_cut_json(struct buf *b, sv s)
{
	static const char mark[] = "… (truncated)";
	AUTO_BUF t = buf_with(ATTR_MAX + 64);

	if (s.n <= ATTR_MAX) {
		buf_put_json(b, s);
		return;
	}
	buf_put_sv(&t, cut_utf8(s, ATTR_MAX - (sizeof(mark) - 1)));
	buf_put_c(&t, mark);
	buf_put_json(b, buf_sv(&t));
}

static void attr_str(struct buf *b, const char *key, sv value)
{
	buf_putf(b, "{\"key\":\"%s\",\"value\":{\"stringValue\":", key);
	put_cut_json(b, value);
	buf_put_c(b, "}},");
}

static void attr_int(struct buf *b, const char *key, int64_t v)
{
	/* OTLP/JSON: 64-bit integers are strings. */
	buf_putf(b, "{\"key\":\"%s\",\"value\":{\"intValue\":\"%lld\"}},", key, (long long)v);
}

/* Every attribute list ends with a comma from the last attribute. */
static void drop_comma(struct buf *b)
{
	if (b->n != 0 && b->p[b->n - 1] == ',')
		b->n--;
}

static void put_resource(struct recorder *r, struct buf *b)
{
	buf_put_c(b, "\"resource\":{\"attributes\":[");
	attr_str(b, "service.name", SV("strands-box"));
	attr_str(b, "strands.box.name", sv_c(r->box_id));
	attr_str(b, "strands.box.source", SV("box"));
	attr_str(b, "strands.box.run.id", sv_c(r->run_id));
	drop_comma(b);
	buf_put_c(b, "]}");
}

struct recorder *record_open(
    const char *path, const char *box_id, struct clock wall, struct box_err *err)
{
	struct recorder *r = calloc(1, sizeof(*r));
	uint8_t id[16];

	if (r == NULL) {
		(void)box_nomem(err, "the recorder"); /* always -1 */
		return NULL;
	}
	r->wall = wall;
	r->out = buf_with(GATHER_MAX);
	r->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
	if (r->fd < 0) {
		(void)box_fail(
		    err, BOX_ESYS, errno, "telemetry setup failed: open %s", path); /* always -1 */
		free(r);
		return NULL;
	}
	for (size_t i = 0; i < sizeof(r->box_id) - 1 && box_id[i] != '\0'; i++)
		r->box_id[i] = box_id[i];
	random_bytes(id, sizeof(id));
	for (size_t i = 0; i < sizeof(id); i++) {
		static const char hex[] = "0123456789abcdef";

		r->run_id[2 * i] = hex[id[i] >> 4];
		r->run_id[2 * i + 1] = hex[id[i] & 15];
	}
	record_trace_new(r, (sv){ NULL, 0 }, &r->run);
	return r;
}

void record_close(struct recorder *r)
{
	if (r == NULL)
		return;
	record_flush(r);
	(void)fdatasync(r->fd); /* best effort: the history is the durable truth */
	fd_drop(&r->fd);
	buf_fini(&r->out);
	free(r);
}

void record_flush(struct recorder *r)
{
	if (r->out.n == 0 && buf_ok(&r->out))
		return;
	if (!buf_ok(&r->out) || fd_write_full(r->fd, r->out.p, r->out.n) != 0) {
		if (!r->lost)
			log_warn("records are being lost: %s",
			    buf_ok(&r->out) ? box_strerror(errno) : "too many at once");
		r->lost = true;
	}
	buf_clear(&r->out);
}

static bool hex_bytes(sv s, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v;

		if (!sv_to_u64(sv_sub(s, 2 * i, 2), 16, 255, &v))
			return false;
		out[i] = (uint8_t)v;
	}
	return true;
}

static bool all_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] != 0)
			return false;
	return true;
}

void record_trace_new(struct recorder *r, sv parent, struct record_trace *t)
{
	uint8_t flags;

	(void)r; /* ids are random; the recorder is there for symmetry with the other calls */
	*t = (struct record_trace){ 0 };
	random_bytes(t->span_id, sizeof(t->span_id));
	/* W3C trace context 3.2: version "00", 32 hex digits, 16 hex digits, 2 hex digits. */
	if (parent.n == 55 && sv_starts(parent, SV("00-")) && parent.p[35] == '-' &&
	    parent.p[52] == '-' && hex_bytes(sv_sub(parent, 3, 32), t->trace_id, 16) &&
	    hex_bytes(sv_sub(parent, 36, 16), t->parent_id, 8) &&
	    hex_bytes(sv_sub(parent, 53, 2), &flags, 1) && !all_zero(t->trace_id, 16) &&
	    !all_zero(t->parent_id, 8)) {
		t->has_parent = true;
		t->parent_sampled = (flags & 1) != 0;
		return;
	}
	random_bytes(t->trace_id, sizeof(t->trace_id));
}

/* One log record of one scope as one line. attrs is the finished attribute list (with its last
 * comma). */
static void put_log(struct recorder *r, const char *scope, const char *event, int severity,
    const char *severity_text, int64_t ts_ns, const struct record_trace *t, const struct buf *attrs,
    const struct buf *log_only)
{
	struct buf *b = &r->out;

	buf_put_c(b, "{\"resourceLogs\":[{");
	put_resource(r, b);
	buf_putf(b,
	    ",\"scopeLogs\":[{\"scope\":{\"name\":\"%s\"},\"logRecords\":[{\"timeUnixNano\":\"%"
	    "lld\","
	    "\"observedTimeUnixNano\":\"%lld\",\"severityNumber\":%d,\"severityText\":\"%s\","
	    "\"eventName\":\"%s\",\"attributes\":[",
	    scope, (long long)ts_ns, (long long)ts_ns, severity, severity_text, event);
	buf_put_sv(b, buf_sv(attrs));
	if (log_only != NULL)
		buf_put_sv(b, buf_sv(log_only));
	drop_comma(b);
	buf_put_c(b, "],\"traceId\":\"");
	put_hex(b, t->trace_id, 16);
	buf_put_c(b, "\",\"spanId\":\"");
	put_hex(b, t->span_id, 8);
	buf_put_c(b, "\"}]}]}]}\n");
}

static void put_span(struct recorder *r, const char *scope, const char *kind, const char *name,
    int64_t ts_ns, const struct record_trace *t, const struct buf *attrs, const char *failure)
{
	struct buf *b = &r->out;

	buf_put_c(b, "{\"resourceSpans\":[{");
	put_resource(r, b);
	buf_putf(
	    b, ",\"scopeSpans\":[{\"scope\":{\"name\":\"%s\"},\"spans\":[{\"traceId\":\"", scope);
	put_hex(b, t->trace_id, 16);
	buf_put_c(b, "\",\"spanId\":\"");
	put_hex(b, t->span_id, 8);
	if (t->has_parent) {
		buf_put_c(b, "\",\"parentSpanId\":\"");
		put_hex(b, t->parent_id, 8);
	}
	/* Bits 8 and 9: the parent is known to be remote (OTLP span flags). */
	buf_putf(b,
	    "\",\"flags\":%u,\"name\":\"%s %s\",\"kind\":1,\"startTimeUnixNano\":\"%lld\","
	    "\"endTimeUnixNano\":\"%lld\",\"attributes\":[",
	    (t->parent_sampled ? 1U : 0U) | (t->has_parent ? 0x300U : 0U), kind, name,
	    (long long)ts_ns, (long long)ts_ns);
	buf_put_sv(b, buf_sv(attrs));
	drop_comma(b);
	buf_put_c(b, "],\"status\":{");
	if (failure != NULL)
		buf_putf(b, "\"code\":2,\"message\":\"%s\"", failure);
	buf_put_c(b, "}}]}]}]}\n");
}

/* What of an argument that came from an expansion may be told (5.2). */
static void put_redacted(struct buf *b, sv s)
{
	size_t n = 2;

	if (s.n == 2 && s.p[0] == '-' && ((s.p[1] | 0x20) >= 'a' && (s.p[1] | 0x20) <= 'z')) {
		buf_put_json(b, s);
		return;
	}
	if (s.n > 2 && s.p[0] == '-' && s.p[1] == '-' && s.p[2] >= 'a' && s.p[2] <= 'z') {
		while (n < s.n && ((s.p[n] >= 'a' && s.p[n] <= 'z') || s.p[n] == '-'))
			n++;
		if (n - 2 <= NAME_OPT_MAX && (n == s.n || s.p[n] == '=')) {
			AUTO_BUF t = buf_with(256);

			buf_put_sv(&t, sv_sub(s, 0, n));
			if (n < s.n)
				buf_put_c(&t, "=<redacted>");
			buf_put_json(b, buf_sv(&t));
			return;
		}
	}
	buf_put_c(b, "\"<redacted>\"");
}

static void put_args(struct buf *b, const struct ask *a)
{
	buf_put_c(b, "{\"key\":\"process.command_args\",\"value\":{\"arrayValue\":{\"values\":["
	             "{\"stringValue\":");
	put_cut_json(b, a->program);
	buf_put_byte(b, '}');
	for (uint32_t i = 0; i < a->args_kept && i + 1 < ARGS_MAX; i++) {
		buf_put_c(b, ",{\"stringValue\":");
		if (a->args[i].literal)
			put_cut_json(b, a->args[i].text);
		else
			put_redacted(b, a->args[i].text);
		buf_put_byte(b, '}');
	}
	if (a->args_n >= ARGS_MAX)
		buf_putf(
		    b, ",{\"stringValue\":\"%u more… (truncated)\"}", a->args_n - (ARGS_MAX - 1));
	buf_put_c(b, "]}}},");
}

static void put_subject(struct buf *b, const struct ask *a)
{
	switch (a->kind) {
	case ASK_FS:
		attr_str(b, "file.path", a->path);
		break;
	case ASK_EXEC:
	case ASK_SPAWN:
		attr_str(b, "process.command", a->program);
		put_args(b, a);
		attr_str(b, "process.working_directory", a->cwd);
		break;
	case ASK_CONNECT:
	case ASK_HTTP:
		attr_str(b, "server.address", a->host);
		attr_int(b, "server.port", a->port);
		if (a->kind == ASK_HTTP)
			attr_str(b, "http.request.method", a->method);
		break;
	}
}

static const char *const cause_names[] = { "permitted", "forbidden", "no_match", "internal_fault",
	"enforcement" };

void record_decision(struct recorder *r, const struct record_decision *d)
{
	AUTO_BUF attrs = buf_with((size_t)1 << 20), only = buf_with(4096),
	         target = buf_with(1 << 18);
	const char *action = ask_action(d->ask);

	ask_put_target(d->ask, &target);
	attr_str(&attrs, "strands.box.policy.principal", SV("agent:self"));
	attr_str(&attrs, "strands.box.policy.action", sv_c(action));
	attr_str(&attrs, "strands.box.policy.resource", buf_sv(&target));
	attr_str(&attrs, "strands.box.policy.verdict", d->permit ? SV("permit") : SV("deny"));
	attr_str(&attrs, "strands.box.policy.cause", sv_c(cause_names[d->cause]));
	if (d->cause == RECORD_FAULT)
		attr_str(&attrs, "error.type", SV("strands.box.policy.evaluation_error"));
	if (!d->permit)
		attr_str(&attrs, "strands.box.policy.reason", d->reason);
	attr_str(
	    &attrs, "strands.box.policy.rule", d->rule.n != 0 ? d->rule : SV("<default-deny>"));
	attr_str(&attrs, "strands.box.policy.category", sv_c(ask_category(d->ask)));
	if (d->description.n != 0)
		attr_str(&attrs, "strands.box.policy.description", d->description);
	put_subject(&attrs, d->ask);
	buf_put_c(&attrs,
	    "{\"key\":\"strands.box.policy.determining.ids\",\"value\":{\"arrayValue\":{"
	    "\"values\":[");
	for (size_t i = 0; i < d->determining_n; i++) {
		buf_put_c(&attrs, i == 0 ? "{\"stringValue\":" : ",{\"stringValue\":");
		put_cut_json(&attrs, d->determining[i]);
		buf_put_byte(&attrs, '}');
	}
	buf_put_c(&attrs, "]}}},");
	if (d->ask->request_id != 0) {
		buf_putf(&attrs,
		    "{\"key\":\"strands.box.request.id\",\"value\":{\"stringValue\":\"%llu\"}},",
		    (unsigned long long)d->ask->request_id);
	}
	if (d->trace.has_parent) {
		buf_put_c(&only,
		    "{\"key\":\"strands.box.trace.parent_span_id\",\"value\":{\"stringValue\":\"");
		put_hex(&only, d->trace.parent_id, 8);
		buf_putf(&only,
		    "\"}},{\"key\":\"strands.box.trace.parent_sampled\",\"value\":{\"boolValue\":%"
		    "s}},",
		    d->trace.parent_sampled ? "true" : "false");
	}
	put_log(r, "strands-box.policy", "strands.box.policy.decision", d->permit ? 9 : 13,
	    d->permit ? "permit" : "deny", d->ts_ns, &d->trace, &attrs, &only);
	put_span(r, "strands-box.policy", "policy", action, d->ts_ns, &d->trace, &attrs,
	    d->cause == RECORD_FAULT ? "policy evaluation failed" : NULL);
}

void record_outcome(struct recorder *r, const struct ask *a, const struct record_trace *t,
    const char *result, int64_t status, bool has_status)
{
	AUTO_BUF attrs = buf_with(8192);

	attr_str(&attrs, "strands.box.policy.action", sv_c(ask_action(a)));
	attr_str(&attrs, "strands.box.outcome.result", sv_c(result));
	if (has_status)
		attr_int(&attrs, "strands.box.outcome.status", status);
	put_log(r, "strands-box.outcome", "strands.box.policy.outcome", 5, "outcome",
	    clock_now(&r->wall), t, &attrs, NULL);
}

int64_t record_now(const struct recorder *r)
{
	return clock_now(&r->wall);
}

void record_control(struct recorder *r, const char *operation, sv subject, const char *reason)
{
	AUTO_BUF attrs = buf_with(32768);
	struct record_trace t = r->run;
	int64_t now = clock_now(&r->wall);

	random_bytes(t.span_id, sizeof(t.span_id));
	t.has_parent = true;
	memcpy(t.parent_id, r->run.span_id, sizeof(t.parent_id));
	attr_str(&attrs, "strands.box.control.operation", sv_c(operation));
	attr_str(&attrs, "strands.box.control.outcome", reason == NULL ? SV("ok") : SV("refused"));
	attr_str(&attrs, "strands.box.control.subject", subject);
	if (reason != NULL)
		attr_str(&attrs, "strands.box.control.reason", sv_c(reason));
	put_log(
	    r, "strands-box.control", "strands.box.control", 10, "control", now, &t, &attrs, NULL);
	put_span(r, "strands-box.control", "control", operation, now, &t, &attrs,
	    reason != NULL ? "control-plane operation failed" : NULL);
	record_flush(r);
}
