/* Decision time by shape of the temporal condition and by how much history there is
 * (local-engine.md 18.3). The reference publishes no figures for these; what it does at each
 * decision is look through the window again. */
#include <stdlib.h>
#include <string.h>

#include "engine_rig.h"

#include "base/ban.h"

#define A(name)     "Test::Action::\"" name "\""
#define USER        "input.user: context.input.user"
#define LOGIN       A("Login") "::response{ " USER ", output.result: true }"
#define LOGOUT      A("Logout") "::response{ " USER ", output.result: true }"
#define REFUND      A("Refund") "::response{ " USER ", output.result: true }"
#define TRANSFER    A("Transfer") "::response{ " USER ", output.result: true }"
#define SINCE(w)    "(!" LOGOUT " since within " w " " LOGIN ")"
#define COUNT(what) "(count for (t: Timepoint). where (" what ")) > 0"

enum warm {
	LOGINS,    /* a login a key in turn */
	CHURN_1,   /* the same, each followed by one logout, and a last login */
	CHURN_4,   /* by four */
	TRANSFERS, /* amounts */
	CYCLES     /* login, refund, logout, transfer a key */
};

static const struct {
	const char *name, *condition;
	enum warm warm;
	const char *before; /* a request of this action precedes each probe */
} shapes[] = {
	{ "once", "formerly within 24h " LOGIN, LOGINS, NULL },
	{ "prev", "previous within 24h " A("Login") "::request{ " USER " }", LOGINS, "Login" },
	{ "since", SINCE("24h"), LOGINS, NULL },
	{ "since, 1 logout each", SINCE("24h"), CHURN_1, NULL },
	{ "since, 4 logouts each", SINCE("24h"), CHURN_4, NULL },
	{ "count since", COUNT(SINCE("24h") " && tp(t)"), LOGINS, NULL },
	{ "sum since",
	    "(sum a for (a: Long). where (!" REFUND " since within 24h " A(
	        "Transfer") "::response{ " USER ", output.result: true, input.amount: a })) >= 40",
	    TRANSFERS, NULL },
	{ "count in a window", COUNT("(formerly within 2h " LOGIN ") && tp(t)"), LOGINS, NULL },
	{ "formerly x 4",
	    "formerly within 4h " LOGIN " && formerly within 8h " LOGIN
	    " && formerly within 12h " LOGIN " && formerly within 16h " LOGIN,
	    LOGINS, NULL },
	{ "count of since x 4",
	    COUNT(
	        SINCE("4h") " && " SINCE("8h") " && " SINCE("12h") " && " SINCE("16h") " && tp(t)"),
	    LOGINS, NULL },
	{ "joined by session",
	    "exists (s: String). (formerly within 4h " A(
	        "Login") "::response{ " USER
	                 ", input.session: s } && formerly within 8h " A(
	                     "Login") "::response{ " USER ", input.session: s })",
	    LOGINS, NULL },
	{ "count of anchors", COUNT("!" LOGOUT " since within 4h (" LOGIN " && tp(t))"), LOGINS,
	    NULL },
	{ "distinct sessions",
	    "(count for (s: String). where (formerly within 4h " A(
	        "Login") "::response{ " USER ", input.session: s })) > 0",
	    LOGINS, NULL },
	{ "nested formerly, 2",
	    "formerly within 24h (" TRANSFER " && formerly within 12h " LOGOUT ")", CYCLES, NULL },
	{ "nested formerly, 4",
	    "formerly within 24h (" TRANSFER " && formerly within 12h (" LOGOUT
	    " && formerly within 6h (" REFUND " && formerly within 1h " LOGIN ")))",
	    CYCLES, NULL },
	{ "nested previous, 2",
	    "previous within 24h (" A("Login") "::request{ " USER " } && previous within 24h " A(
	        "Read") "::request{ })",
	    LOGINS, "Login" },
};

static const char shape_actions[] =
    "namespace Test { entity User; entity Res;\n"
    "action \"Login\", \"Logout\" appliesTo { principal: [User], resource: [Res], context: {\n"
    "  input: { user: String, session: String }, output?: { result: Bool } } };\n"
    "action \"Transfer\" appliesTo { principal: [User], resource: [Res], context: {\n"
    "  input: { user: String, amount: Long }, output?: { result: Bool } } };\n"
    "action \"Refund\" appliesTo { principal: [User], resource: [Res], context: {\n"
    "  input: { user: String }, output?: { result: Bool } } };\n"
    "action \"Read\" appliesTo { principal: [User], resource: [Res], context: {\n"
    "  input: { user: String, threshold: Long }, output?: { result: Bool } } };\n"
    "}\n";
static const char shape_events[] = "max_window = 8760h\n"
                                   "decision event <A>::request { ...inputs(A) }\n"
                                   "event <A>::response { ...inputs(A), ...outputs(A) }\n"
                                   "event <A>::error { ...inputs(A) }\n";

struct shape_run {
	dogwood_engine *e;
	dogwood_event *ev;
	struct dogwood_verdict *v;
};

static void shape_event(struct shape_run *r, const char *action, const char *user, bool done)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "Test::Action::\"%s\"", action);
	dogwood_event_reset(r->ev);
	dogwood_event_action(
	    r->ev, dogwood_cstr(name), dogwood_cstr(done ? "response" : "request"));
	dogwood_event_principal(r->ev, dogwood_cstr("Test::User::\"p\""));
	dogwood_event_resource(r->ev, dogwood_cstr("Test::Res::\"r\""));
	dogwood_event_str(r->ev, DOGWOOD_BOTH, "input.user", dogwood_cstr(user));
	if (action[0] == 'L')
		dogwood_event_str(r->ev, DOGWOOD_BOTH, "input.session", dogwood_cstr("sess_1"));
	else if (action[0] == 'T')
		dogwood_event_long(r->ev, DOGWOOD_BOTH, "input.amount", 50);
	else if (strcmp(action, "Read") == 0)
		dogwood_event_long(r->ev, DOGWOOD_BOTH, "input.threshold", 1);
	if (done)
		dogwood_event_bool(r->ev, DOGWOOD_HISTORY, "output.result", true);
}

static void happened(struct shape_run *r, const char *action, const char *user)
{
	shape_event(r, action, user, true);
	rig_clock_ns += SECOND;
	(void)rig_submit(r->e, r->ev, r->v);
}

static void shape_warm(struct shape_run *r, enum warm how, unsigned state)
{
	static const char *const cycle[] = { "Login", "Refund", "Logout", "Transfer" };
	unsigned keys = state / 5 != 0 ? state / 5 : 1, logouts = how == CHURN_1 ? 1 : 4;
	char user[24];

	for (unsigned i = 0; i < state; i++) {
		unsigned step = how == CYCLES ? i % 4 : 0, key = how == CYCLES ? i / 4 : i;

		(void)snprintf(user, sizeof(user), "user_%u", key % keys);
		if (how == CHURN_1 || how == CHURN_4) {
			(void)snprintf(user, sizeof(user), "user_%u", i / (logouts + 1) % keys);
			happened(r, i % (logouts + 1) == 0 ? "Login" : "Logout", user);
		} else {
			happened(r, how == TRANSFERS ? "Transfer" : cycle[step], user);
		}
	}
	for (unsigned k = 0; state != 0 && k < keys && (how == CHURN_1 || how == CHURN_4); k++) {
		(void)snprintf(user, sizeof(user), "user_%u", k);
		happened(r, "Login", user);
	}
}

/* Median time of a probe, known users and nobody by turns. */
static double shape_probe(struct shape_run *r, const char *before, unsigned state, unsigned *yes)
{
	unsigned keys = state / 5 != 0 ? state / 5 : 1;
	double t[200];
	char user[24];

	*yes = 0;
	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		double a;

		(void)snprintf(user, sizeof(user), i % 2 == 0 ? "user_%u" : "nobody", i % keys);
		if (before != NULL) {
			shape_event(r, before, i % 2 == 0 ? user : "somebody", false);
			rig_clock_ns += SECOND;
			(void)rig_submit(r->e, r->ev, r->v);
		}
		shape_event(r, "Read", user, false);
		rig_clock_ns += SECOND / 1000;
		a = rig_now_us();
		*yes += rig_submit(r->e, r->ev, r->v);
		t[i] = rig_now_us() - a;
	}
	return rig_median(t, sizeof(t) / sizeof(t[0]));
}

void bench_shapes(struct bench *b)
{
	static const unsigned states[] = { 0, 500, 2000, 20000 };
	size_t n = sizeof(states) / sizeof(states[0]) - (b->quick ? 1 : 0);

	printf(
	    "\ndecision by shape of the condition and events before (18.3; in memory, median us)\n"
	    "%-24s %10s %10s %10s %10s   true of 200, last column\n",
	    "", "0", "500", "2000", b->quick ? "" : "20000");
	for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++) {
		char policy[4096];
		unsigned yes = 0;

		(void)snprintf(policy, sizeof(policy),
		    "permit (principal, action == " A("Read") ", resource) when temporal { %s };\n",
		    shapes[k].condition);
		printf("%-24s", shapes[k].name);
		for (size_t s = 0; s < n; s++) {
			struct shape_run r = { rig_open(NULL, true, 0), dogwood_event_new(),
				dogwood_verdict_new() };

			MUST(r.ev != NULL && r.v != NULL);
			(void)rig_install(r.e, policy, shape_actions, shape_events);
			shape_warm(&r, shapes[k].warm, states[s]);
			printf(" %10.2f", shape_probe(&r, shapes[k].before, states[s], &yes));
			dogwood_event_free(r.ev);
			dogwood_verdict_free(r.v);
			rig_close(r.e);
			rig_clock_ns += 100 * HOUR;
		}
		printf("%s   %u%s\n", b->quick ? "           " : "", yes,
		    yes != 0 && yes != 200 ? "" : "  (all verdicts alike: this measures nothing)");
	}
}
