/* See engine_rig.h. */
#include "engine_rig.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/ban.h"

void rig_die(const char *what, int line, const struct dogwood_error *err)
{
	(void)fprintf(stderr, "engine_bench: line %d: %s: %s\n", line, what,
	    err != NULL ? err->msg : strerror(errno));
	exit(1);
}

double rig_now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

void rig_sort(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), cmp_double);
}

double rig_median(double *v, size_t n)
{
	rig_sort(v, n);
	return v[n / 2];
}

size_t rig_heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

const char *rig_store(struct bench *b)
{
	static char path[300];

	(void)snprintf(path, sizeof(path), "%s/store%u", b->dir, b->stores++);
	return path;
}

int64_t rig_clock_ns = INT64_C(1790000000) * SECOND;

static int64_t own_now(void *arg)
{
	(void)arg;
	return rig_clock_ns;
}

dogwood_engine *rig_open(const char *path, bool own_clock, uint64_t snapshots)
{
	struct dogwood_options o;
	struct dogwood_error err;
	dogwood_engine *e;

	dogwood_options_init(&o);
	o.path = path;
	o.snapshot_events = snapshots;
	if (own_clock)
		o.now_ns = own_now;
	if (dogwood_engine_open(&o, &e, &err) < 0)
		rig_die("open", __LINE__, &err);
	return e;
}

void rig_close(dogwood_engine *e)
{
	struct dogwood_error err;

	if (dogwood_engine_close(e, &err) < 0)
		rig_die("close", __LINE__, &err);
}

struct dogwood_status rig_status(dogwood_engine *e)
{
	struct dogwood_status st = { .size = sizeof(st) };

	MUST(dogwood_engine_status(e, &st, NULL) == 0);
	return st;
}

double rig_install(
    dogwood_engine *e, const char *policy, const char *actions, const char *event_schema)
{
	struct dogwood_source src = { dogwood_cstr("bench.dw"), dogwood_cstr(policy) };
	struct dogwood_policy_set set = { .policies = &src,
		.n_policies = 1,
		.action_schema = { dogwood_cstr("actions"), dogwood_cstr(actions) },
		.event_schema = { dogwood_cstr("events"), dogwood_cstr(event_schema) } };
	struct dogwood_error err;
	double t = rig_now_us();

	if (dogwood_engine_install(e, &set, NULL, NULL, &err) < 0)
		rig_die("install", __LINE__, &err);
	return rig_now_us() - t;
}

const char rig_actions[] =
    "namespace Drupe {\n"
    "  entity Gateway; entity OAuthUser;\n"
    "  action \"Login\" appliesTo { principal: [OAuthUser], resource: [Gateway],\n"
    "    context: { input: { user: String, server: String },\n"
    "      sessionId: String } };\n"
    "  action \"Read\" appliesTo { principal: [OAuthUser], resource: [Gateway],\n"
    "    context: { input: { user: String, server: String, document: String },\n"
    "      sessionId: String } };\n"
    "}\n";
const char rig_unpinned[] = "decision event <A>::request { ...inputs(A), sessionId: String }\n"
                            "event <A>::response { ...inputs(A), sessionId: String }\n";
const char rig_pinned[] =
    "decision event <A>::request { ...inputs(A), pin sessionId: String = context.sessionId }\n"
    "event <A>::response { ...inputs(A), pin sessionId: String = context.sessionId }\n";

#define READ_PERMIT                                                                                \
	"@id(\"read\") permit (principal, action == Drupe::Action::\"Read\", resource);\n"

static char *policies(unsigned n, const char *(*clause)(char *, size_t, unsigned))
{
	size_t cap = 256 + (size_t)n * 320, at = 0;
	char *p = malloc(cap), one[256];

	MUST(p != NULL);
	at += (size_t)snprintf(p, cap, READ_PERMIT);
	for (unsigned i = 0; i < n; i++)
		at += (size_t)snprintf(p + at, cap - at,
		    "@id(\"r%u\") forbid (principal, action == Drupe::Action::\"Read\", resource)\n"
		    "when temporal { %s };\n",
		    i, clause(one, sizeof(one), i));
	MUST(at < cap);
	return p;
}

static const char *blocked_login(char *b, size_t n, unsigned i)
{
	(void)snprintf(b, n,
	    "formerly within 1h Drupe::Action::\"Login\"::request{ input.server: "
	    "context.input.server, input.user: \"blocked%u\" }",
	    i);
	return b;
}

static const char *many_logins(char *b, size_t n, unsigned i)
{
	(void)i;
	(void)snprintf(b, n,
	    "exists (c: Long). (count for (t: Timepoint). where (formerly within 1h "
	    "(Drupe::Action::\"Login\"::request{ input.user: *, input.server: * } && tp(t)))) "
	    "== c && c > 100000");
	return b;
}

char *rig_selective(unsigned n)
{
	return policies(n, blocked_login);
}

char *rig_broad(unsigned n)
{
	return policies(n, many_logins);
}

const char rig_always_matters[] =
    "@id(\"read\") permit (principal, action, resource);\n"
    "@id(\"count\") forbid (principal, action == Drupe::Action::\"Read\", resource)\n"
    "when temporal { (count for (t: Timepoint). where (formerly within 24h "
    "(Drupe::Action::\"Read\"::request{ input.server: context.input.server } && tp(t)))) "
    ">= 50000000 };\n";

void rig_event(dogwood_event *ev, const char *action, const char *user, const char *server,
    const char *session)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "Drupe::Action::\"%s\"", action);
	dogwood_event_reset(ev);
	dogwood_event_action(ev, dogwood_cstr(name), dogwood_cstr("request"));
	(void)snprintf(name, sizeof(name), "Drupe::OAuthUser::\"%s\"", user);
	dogwood_event_principal(ev, dogwood_cstr(name));
	dogwood_event_resource(ev, dogwood_cstr("Drupe::Gateway::\"gw1\""));
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.user", dogwood_cstr(user));
	dogwood_event_str(ev, DOGWOOD_BOTH, "input.server", dogwood_cstr(server));
	dogwood_event_str(
	    ev, DOGWOOD_BOTH, "sessionId", dogwood_cstr(session != NULL ? session : "sess0"));
	if (strcmp(action, "Read") == 0)
		dogwood_event_str(ev, DOGWOOD_BOTH, "input.document", dogwood_cstr("d"));
}

void rig_event_i(dogwood_event *ev, unsigned i)
{
	char user[16], server[16], session[16];
	bool login = i % 5 == 0, blocked = login && i / 5 % 3 == 0;

	(void)snprintf(user, sizeof(user), "%s%u", blocked ? "blocked" : "u", blocked ? 0 : i % 10);
	(void)snprintf(server, sizeof(server), "s%u", i % 49);
	(void)snprintf(session, sizeof(session), "sess%u", i % 10);
	rig_event(ev, login ? "Login" : "Read", user, server, session);
}

bool rig_submit(dogwood_engine *e, const dogwood_event *ev, struct dogwood_verdict *v)
{
	struct dogwood_error err;

	if (dogwood_submit(e, ev, (dogwood_str){ NULL, 0 }, v, &err) < 0)
		rig_die("submit", __LINE__, &err);
	return v->permit;
}
