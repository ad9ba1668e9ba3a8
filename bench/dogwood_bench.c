/* In-memory decisions: the workloads of local-engine.md 18.1 and 18.2 without a disk; loading of
 * policies and event schemas. Every case says how many of its probes were allowed, since a probe
 * that never comes out both ways measures nothing. Rows of the table of bench/language.sh. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "dogwood/decide.h"
#include "dogwood/eschema.h"

#include "base/ban.h"

static int64_t now_ns(void)
{
	struct timespec t;

	/* Nothing here waits, and the machine may be busy: processor time. */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static const char schema[] = "namespace Drupe { entity Gateway; entity OAuthUser;\n"
                             "action \"Login\" appliesTo { principal: [OAuthUser], resource: "
                             "[Gateway], context: { input: { user: String, server: String }, "
                             "meta: { session_id: String } } };\n"
                             "action \"Read\" appliesTo { principal: [OAuthUser], resource: "
                             "[Gateway], context: { input: { user: String, server: String, "
                             "document: String }, meta: { session_id: String } } }; }\n";
static const char events[] = "max_window = 8760h decision event <A>::request { ...inputs(A) } "
                             "event <A>::response { ...inputs(A) }";

struct run {
	struct dw_set *s;
	struct dwm *m;
	struct dw_scratch *sc;
	struct box_err err;
	struct arena a;
};

static void die(const char *what, const struct box_err *err)
{
	fprintf(stderr, "%s: %s\n", what, err->msg);
	exit(1);
}

static void start(struct run *r, const struct buf *policy)
{
	struct dw_load in = {
		.policy = { SV("bench.dw"), buf_sv(policy) },
		.action_schema = { SV("schema"), sv_c(schema) },
		.event_schema = { SV("events"), sv_c(events) },
		.tick = DW_TICK_NANO,
	};
	AUTO_DW_DIAGS d = { 0 };

	*r = (struct run){ 0 };
	r->s = dw_load(&in, &d, &r->err);
	if (r->s == NULL)
		die("load", &r->err);
	r->m = dwm_new(r->s, DWM_MONOTONE, &r->err);
	r->sc = dw_scratch_new(&r->err);
	if (r->m == NULL || r->sc == NULL)
		die("start", &r->err);
}

static void stop(struct run *r)
{
	dwm_free(r->m);
	dw_scratch_free(r->sc);
	dw_set_free(r->s);
	arena_free(&r->a);
}

/* An event of the Login/Read workload. */
static struct dw_event make(
    struct arena *a, bool login, const char *user, const char *server, int64_t ts)
{
	struct dw_rec in = dw_rec_in(a), meta = dw_rec_in(a), bag = dw_rec_in(a);
	struct dw_event e = { .ns = SV("Drupe::Action"), .kind = SV("request"), .ts = ts };

	e.id = login ? SV("Login") : SV("Read");
	e.principal = (struct dw_uid){ SV("Drupe::OAuthUser"), sv_c(user) };
	e.resource = (struct dw_uid){ SV("Drupe::Gateway"), SV("gw1") };
	dw_rec_str(&in, SV("user"), sv_c(user));
	dw_rec_str(&in, SV("server"), sv_c(server));
	if (!login)
		dw_rec_str(&in, SV("document"), SV("d"));
	dw_rec_str(&meta, SV("session_id"), SV("sess1"));
	dw_rec_add(&bag, SV("input"), dw_rec_val(&in));
	dw_rec_add(&bag, SV("meta"), dw_rec_val(&meta));
	e.logged = e.context = dw_rec_val(&bag);
	return e;
}

/* Event i of 18.1. */
static struct dw_event event(struct arena *a, int64_t i)
{
	char user[32], server[32];
	bool login = i % 5 == 0;

	if (login && i / 5 % 3 == 0)
		snprintf(user, sizeof(user), "blocked0");
	else
		snprintf(user, sizeof(user), "u%d", (int)(i % 10));
	snprintf(server, sizeof(server), "s%d", (int)(i % 49));
	return make(
	    a, login, arena_dup(a, sv_c(user)).p, arena_dup(a, sv_c(server)).p, i * 1000000000);
}

static bool decide(struct run *r, const struct dw_event *e)
{
	struct dw_decision d;

	if (dwm_step(r->m, e, &r->err) < 0 || dw_decide(r->sc, r->s, r->m, e, &d, &r->err) < 0)
		die("decide", &r->err);
	if (d.cause == DW_FAULT)
		die(d.fault, &r->err);
	return d.allow;
}

static void login_read(const char *shape, int n)
{
	AUTO_BUF p = buf_with((size_t)64 << 20);
	enum { PROBES = 2000 };
	struct run r;
	int64_t t0, t1, load = now_ns();
	unsigned allowed = 0;
	struct dw_event ev[PROBES];

	buf_put_c(
	    &p, "@id(\"ok\") permit (principal, action == Drupe::Action::\"Read\", resource);\n");
	for (int i = 0; i < n; i++) {
		buf_putf(&p,
		    "@id(\"r%d\") forbid (principal, action == Drupe::Action::\"Read\", resource) "
		    "when temporal { ",
		    i);
		if (shape[0] == 's')
			buf_putf(&p,
			    "formerly within 1h Drupe::Action::\"Login\"::request{ input.server: "
			    "context.input.server, input.user: "
			    "\"blocked%d\" } };\n",
			    i);
		else
			buf_putf(&p,
			    "exists (c: Long). ((count for (t: Timepoint). where (formerly within "
			    "1h (Drupe::Action::\"Login\"::request{ "
			    "input.user: *, input.server: * } && tp(t)))) == c && c > %d) };\n",
			    100000 + i);
	}
	start(&r, &p);
	load = now_ns() - load;
	for (int64_t i = 0; i < 200; i++) {
		struct dw_event e = event(&r.a, i);

		if (dwm_step(r.m, &e, &r.err) < 0)
			die("step", &r.err);
	}
	for (int i = 0; i < PROBES; i++)
		ev[i] = event(&r.a, 201 + i + i / 4);
	for (int i = 0; i < PROBES / 2; i++)
		allowed += decide(&r, &ev[i]);
	t0 = now_ns();
	for (int i = PROBES / 2; i < PROBES; i++)
		allowed += decide(&r, &ev[i]);
	t1 = now_ns();
	printf("Login/Read, %-28s %8d %11.2f µs  (%u of %d allowed, load %.0f ms, state %zu kB)\n",
	    shape, n, (double)(t1 - t0) / 1000 / (PROBES / 2), allowed, PROBES, (double)load / 1e6,
	    dwm_bytes(r.m) / 1024);
	stop(&r);
}

static void window(int64_t in_window)
{
	static const char policy[] =
	    "@id(\"ok\") permit (principal, action == Drupe::Action::\"Read\", resource);\n"
	    "@id(\"once\") forbid (principal, action == Drupe::Action::\"Read\", resource) when "
	    "temporal { formerly within 24h "
	    "Drupe::Action::\"Login\"::request{ input.user: context.input.user, input.server: "
	    "\"bad\" } };\n"
	    "@id(\"rate\") forbid (principal, action == Drupe::Action::\"Read\", resource) when "
	    "temporal { (count for (t: Timepoint). "
	    "where (formerly within 24h (Drupe::Action::\"Read\"::request{ input.user: "
	    "context.input.user } && tp(t)))) >= 5 };\n"
	    "@id(\"exact\") forbid (principal, action == Drupe::Action::\"Read\", resource) when "
	    "temporal { exists (n: Long). ((count for "
	    "(t: Timepoint). where (formerly within 24h (Drupe::Action::\"Login\"::request{ "
	    "input.user: context.input.user } && tp(t)))) "
	    "== n && n > 100000000) };\n"
	    "@id(\"distinct\") forbid (principal, action == Drupe::Action::\"Read\", resource) "
	    "when temporal { (count for (s: String). "
	    "where (formerly within 24h Drupe::Action::\"Login\"::request{ input.user: "
	    "context.input.user, input.server: s })) > 1000 "
	    "};\n"
	    "@id(\"since\") forbid (principal, action == Drupe::Action::\"Read\", resource) when "
	    "temporal { "
	    "!Drupe::Action::\"Login\"::request{ input.user: context.input.user } since within 24h "
	    "Drupe::Action::\"Login\"::response{ "
	    "input.user: context.input.user } };\n";
	AUTO_BUF p = buf_with(1 << 20);
	enum { PROBES = 20000 };
	int64_t step = INT64_C(86400) * 1000000000 / in_window, ts = 0, t0, feed;
	struct dw_event login[8], read[8];
	unsigned allowed = 0;
	struct run r;

	buf_put_c(&p, policy);
	start(&r, &p);
	for (int i = 0; i < 8; i++) {
		char name[8];
		const char *user;

		snprintf(name, sizeof(name), "u%d", i);
		user = arena_dup(&r.a, sv_c(name)).p;
		login[i] = make(&r.a, true, user, "s1", 0);
		read[i] = make(&r.a, false, user, "s1", 0);
	}
	feed = now_ns();
	for (int64_t i = 0; i < in_window; i++, ts += step) {
		login[i % 8].ts = ts;
		if (dwm_step(r.m, &login[i % 8], &r.err) < 0)
			die("step", &r.err);
	}
	feed = now_ns() - feed;
	t0 = now_ns();
	for (int i = 0; i < PROBES; i++, ts += step) {
		read[i % 8].ts = ts;
		allowed += decide(&r, &read[i % 8]);
	}
	printf("five rules of 24 h, events in the window  %8" PRId64
	       " %11.2f µs  (%u of %d allowed, %.2f µs an event, state %zu kB)\n",
	    in_window, (double)(now_ns() - t0) / 1000 / PROBES, allowed, PROBES,
	    (double)feed / 1000 / (double)in_window, dwm_bytes(r.m) / 1024);
	stop(&r);
}

/* Megabytes a second, the best of a few rounds. */
static void rate(const char *what, int n, sv text, bool validate)
{
	double best = 0, now;
	int64_t t0;

	for (int i = 0; i < 5; i++) {
		struct dw_load in = {
			.policy = { SV("bench.dw"), text },
			.event_schema = { SV("events"), sv_c(events) },
			.tick = DW_TICK_NANO,
			.no_validate = !validate,
		};
		AUTO_DW_DIAGS d = { 0 };
		struct box_err err = { 0 };
		struct dw_set *s;

		if (validate)
			in.action_schema = (struct dw_source){ SV("schema"), sv_c(schema) };
		t0 = now_ns();
		s = dw_load(&in, &d, &err);
		now = (double)text.n * 1e3 / (double)(now_ns() - t0);
		if (s == NULL)
			die("load", &err);
		dw_set_free(s);
		best = now > best ? now : best;
	}
	printf("%-40s %8d %9.1f MB/s\n", what, n, best);
}

static void policies(int n)
{
	AUTO_BUF p = buf_with((size_t)64 << 20);

	for (int i = 0; i < n; i++)
		buf_putf(&p,
		    "@id(\"r%d\")\nforbid (principal, action == Drupe::Action::\"Read\", "
		    "resource)\n"
		    "when { context.input.document like \"*/%d/*\" }\n"
		    "when temporal {\n  // rule %d\n  count_within(1h, "
		    "Drupe::Action::\"Login\"::request{ "
		    "input.user: context.input.user, input.server: \"s%d\" }) > %d &&\n"
		    "  !(formerly within 24h Drupe::Action::\"Login\"::response{ input.user: "
		    "context.input.user })\n};\n",
		    i, i, i, i, 2 + i % 9);
	rate("load temporal policies", n, buf_sv(&p), false);
	rate("load and validate temporal policies", n, buf_sv(&p), true);
}

/* Kinds of their own for each of n declarations. */
static void event_schema(int n)
{
	AUTO_BUF b = buf_with((size_t)16 << 20);
	double best = 0, now;
	int64_t t0;

	buf_put_c(&b, "max_window = 48h\n");
	for (int i = 0; i < n; i++)
		buf_putf(&b,
		    "// kind %d\n%sevent <A>::kind%d {\n  ...inputs(A),\n  pin callerPrincipal: "
		    "principalType(A) = principal,\n  callerResource: resourceType(A),\n  note%d: "
		    "String,\n}\n",
		    i, i == 0 ? "decision " : "", i, i);
	for (int i = 0; i < 5; i++) {
		struct cedar_syms *t = cedar_syms_new(0);
		struct arena a = { 0 };
		struct cedar_diags ds = cedar_diags_in(&a);
		struct cedar_schema *sc = cedar_schema_load(t, &a, sv_c(schema), false, &ds);

		t0 = now_ns();
		if (sc == NULL || dw_eschema_load(t, &a, buf_sv(&b), sc, &ds) == NULL) {
			fprintf(stderr, "event schema: " SV_FMT "\n",
			    SV_ARG(ds.n != 0 ? ds.d[0].message : SV("")));
			exit(1);
		}
		now = (double)b.n * 1e3 / (double)(now_ns() - t0);
		best = now > best ? now : best;
		arena_free(&a);
		cedar_syms_free(t);
	}
	printf("%-40s %8d %9.1f MB/s\n", "event schema, derived for two actions", n, best);
}

int main(void)
{
	static const int rules[] = { 10, 100, 1000, 10000 };
	static const int64_t windows[] = { 90, 4320, 86400, 1000000 };

	/* The reference: 20 µs with 90 events, 6.2 ms with 4,320; 5 to 7 µs for each selective
	 * rule. */
	printf("%-40s %8s %14s\n", "temporal, in memory", "number", "ours");
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		login_read("selective", rules[i]);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		login_read("broad", rules[i]);
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++)
		window(windows[i]);
	policies(1000);
	event_schema(200);
	return 0;
}
