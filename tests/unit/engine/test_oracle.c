/* A whole store against the definition of the language (naive.c): random policies and traces go
 * through dogwood_submit, with the store closed and opened, snapshots, crashes that lose all that
 * was not written, and policy changes in between. Each verdict, its determining rules and the
 * number of its errors are those that the definition gives on the whole history, lost events
 * included: what a crash may lose can matter to nobody.
 *
 * ENGINE_TRACES sets the number of traces (20,000 by default, fewer in instrumented builds),
 * ENGINE_SEED the seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "dogwood/trace.h"
#include "engine/build.h"
#include "gen.h"
#include "naive.h"
#include "rig.h"
#include "tmp.h"

#include "base/ban.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRACES 3000
#else
#define TRACES 20000
#endif
#define EVENTS 24
#define RULES  4 /* at most, changes included */
#define LEAVES (2 * RULES)
#define INPUTS "...inputs(A)"
#define EACH(x)                                                                                    \
	"decision event <A>::request { " INPUTS x " } event <A>::response { " INPUTS x             \
	" } event <A>::error { " INPUTS x " }"

/* One history, or slices of it. */
static const char *const schemas[] = { EACH(""),
	EACH(", pin callerPrincipal: principalType(A) = principal"),
	EACH(", pin sessionId: String = context.sessionId") };
#define NSCHEMAS (sizeof(schemas) / sizeof(schemas[0]))

static uint64_t env_number(const char *name, uint64_t otherwise)
{
	const char *s = getenv(name);
	uint64_t v;

	return s != NULL && sv_to_u64(sv_c(s), 10, UINT64_MAX, &v) ? v : otherwise;
}

struct rule {
	char id[8];
	char token[DOGWOOD_POLICY_TOKEN + 1];
	struct gen_rule is;
	struct buf text, plain;
	size_t born[2]; /* of its leaves: they see events from this one on */
};

struct tally {
	size_t decisions, allowed, erred, opens, crashes, lost, snapshots, installs, batches;
};

struct run {
	uint64_t seed;
	struct gen g;
	struct rig r;
	struct rule rule[RULES];
	size_t n, made, schema;
	struct dw_set *plain; /* the same policy as the definition reads it */
	struct arena a;
	struct dw_event ev[EVENTS];
	size_t now; /* events so far */
	unsigned stores;
	struct tally *t;
};

static void show(struct run *r, const char *what)
{
	AUTO_BUF b = buf_with(1 << 20);

	for (size_t i = 0; i < r->n; i++) {
		buf_putf(
		    &b, "// sees events from %zu, %zu\n", r->rule[i].born[0], r->rule[i].born[1]);
		buf_put_sv(&b, buf_sv(&r->rule[i].text));
	}
	for (size_t i = 0; i < r->now; i++) {
		dw_trace_put(&b, &r->ev[i]);
		buf_put_byte(&b, '\n');
	}
	fprintf(stderr, "%s (seed %llu, schema %zu)\n%s", what, (unsigned long long)r->seed,
	    r->schema, buf_cstr(&b));
}

/* Rules [from, from + n) as a source. */
static void source(const struct run *r, bool plain, size_t from, size_t n, struct buf *b)
{
	struct gen g = { .expand = plain };

	gen_defs(&g, b);
	for (size_t i = from; i < from + n; i++)
		buf_put_sv(b, buf_sv(plain ? &r->rule[i].plain : &r->rule[i].text));
}

static struct dw_set *load_plain(const struct run *r)
{
	AUTO_BUF b = buf_with(1 << 22);
	struct dw_load in = { .event_schema = { SV("events"), sv_c(schemas[r->schema]) },
		.tick = DW_TICK_NANO,
		.no_validate = true };
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err;

	source(r, true, 0, r->n, &b);
	in.policy = (struct dw_source){ SV("random.dw"), buf_sv(&b) };
	return dw_load(&in, &d, &err);
}

/* A new rule at a place, or one with another's name. */
static void make_rule(struct run *r, const char *id, size_t at)
{
	struct rule x = { .text = buf_with(1 << 20), .plain = buf_with(1 << 20) };
	struct gen again = { .s = r->g.s, .expand = true };

	if (id != NULL)
		(void)snprintf(x.id, sizeof(x.id), "%s", id);
	else
		(void)snprintf(x.id, sizeof(x.id), "r%zu", r->made++);
	gen_rule(&r->g, x.id, &x.is, &x.text);
	gen_rule(&again, x.id, &x.is, &x.plain);
	x.born[0] = x.born[1] = r->now;
	memmove(&r->rule[at + 1], &r->rule[at], (r->n - at) * sizeof(x));
	r->rule[at] = x;
	r->n++;
}

static void drop_rule(struct run *r, size_t at)
{
	buf_fini(&r->rule[at].text);
	buf_fini(&r->rule[at].plain);
	r->n--;
	memmove(&r->rule[at], &r->rule[at + 1], (r->n - at) * sizeof(r->rule[0]));
}

/* The tokens, which the engine chose. */
static void learn_tokens(struct run *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct dogwood_policy p;

		assert_int_equal(dogwood_engine_policy(r->r.e, i, &p, NULL), 0);
		memcpy(r->rule[i].token, p.token, sizeof(p.token));
		dogwood_free(p.statement);
	}
	assert_int_equal(
	    dogwood_engine_policy(r->r.e, r->n, &(struct dogwood_policy){ 0 }, NULL), -1);
	dw_set_free(r->plain);
	r->plain = load_plain(r);
	assert_non_null(r->plain);
}

static int install(struct run *r, struct dogwood_error *err)
{
	AUTO_BUF b = buf_with(1 << 22);
	struct dogwood_source src = { .name = dogwood_cstr("random.dw") };
	struct dogwood_policy_set set = { .policies = &src,
		.n_policies = 1,
		.event_schema = { dogwood_cstr("events"), dogwood_cstr(schemas[r->schema]) } };

	source(r, false, 0, r->n, &b);
	src.text = eng_str(buf_sv(&b));
	return dogwood_engine_install(r->r.e, &set, NULL, NULL, err);
}

/* Another file: a rule comes, goes, gets another text, moves. A clause keeps its history when its
 * rule is still there and its condition at its place in the rule is the same. */
static void change_file(struct run *r)
{
	struct dw_set *old = r->plain;
	struct dogwood_error err = { 0 };
	struct rule was = { 0 };
	char id[8];

	switch (gen_int(&r->g, 4)) {
	case 0:
		if (r->n == RULES)
			return;
		make_rule(r, NULL, gen_int(&r->g, (uint32_t)r->n + 1));
		break;
	case 1:
		if (r->n < 2)
			return;
		drop_rule(r, gen_int(&r->g, (uint32_t)r->n));
		break;
	case 2:
		memcpy(id, r->rule[0].id, sizeof(id));
		memcpy(was.born, r->rule[0].born, sizeof(was.born));
		drop_rule(r, 0);
		make_rule(r, id, 0);
		break;
	default:
		was = r->rule[0];
		memmove(&r->rule[0], &r->rule[1], (r->n - 1) * sizeof(was));
		r->rule[r->n - 1] = was;
		was.id[0] = '\0';
		break;
	}
	/* Of a rule with another text, a clause that happens to be the same goes on. */
	if (was.born[0] != 0 || was.born[1] != 0 || r->now == 0 || was.id[0] == '\0') {
		struct dw_set *now = load_plain(r);

		assert_non_null(now);
		for (size_t i = 0; i < dw_set_nrules(now); i++) {
			const struct dw_rule *a = dw_set_rule(now, i), *b = NULL;

			for (size_t k = 0; k < dw_set_nrules(old); k++)
				if (sv_eq(dw_set_rule(old, k)->id, a->id))
					b = dw_set_rule(old, k);
			if (b == NULL || r->rule[i].born[0] != r->now)
				continue;
			for (uint32_t k = 0; k < a->nleaves && k < b->nleaves; k++)
				if (sv_eq(dw_set_leaf(now, a->leaf0 + k)->key,
				        dw_set_leaf(old, b->leaf0 + k)->key))
					r->rule[i].born[k] = was.born[k];
		}
		dw_set_free(now);
	}
	if (install(r, &err) < 0) {
		show(r, "not installed");
		fail_msg("seed %llu: %s", (unsigned long long)r->seed, err.msg);
	}
	learn_tokens(r);
	r->t->installs++;
}

/* One change by its verb. */
static void change_one(struct run *r)
{
	AUTO_BUF b = buf_with(1 << 22);
	size_t at = gen_int(&r->g, (uint32_t)r->n);
	struct dogwood_verb v = { .token = dogwood_cstr(r->rule[at].token) };
	struct dogwood_error err = { 0 };
	char token[sizeof(r->rule[at].token)];

	memcpy(token, r->rule[at].token, sizeof(token));
	switch (gen_int(&r->g, 5)) {
	case 0:
		if (r->n == RULES)
			return;
		v.kind = DOGWOOD_ADD;
		make_rule(r, NULL, r->n);
		source(r, false, r->n - 1, 1, &b);
		break;
	case 1:
		if (r->n < 2)
			return;
		v.kind = DOGWOOD_DELETE;
		drop_rule(r, at);
		break;
	case 2:
		v.kind = DOGWOOD_UPDATE;
		drop_rule(r, at);
		make_rule(r, NULL, at);
		source(r, false, at, 1, &b);
		break;
	case 3:
		v.kind = DOGWOOD_RESET;
		r->rule[at].born[0] = r->rule[at].born[1] = r->now;
		break;
	default:
		v.kind = DOGWOOD_RESET_ALL;
		for (size_t i = 0; i < r->n; i++)
			r->rule[i].born[0] = r->rule[i].born[1] = r->now;
		break;
	}
	v.token = dogwood_cstr(token);
	v.text = eng_str(buf_sv(&b));
	if (dogwood_engine_batch(r->r.e, &v, 1, NULL, NULL, NULL, &err) < 0) {
		show(r, "not changed");
		fail_msg("seed %llu, verb %d: %s", (unsigned long long)r->seed, v.kind, err.msg);
	}
	learn_tokens(r);
	r->t->batches++;
}

/* Crashes here lose memory, not pages: nothing to learn from waiting for a disk. */
static int no_sync(void *arg, int fd)
{
	(void)arg;
	(void)fd;
	return 0;
}

static void next_store(struct run *r)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "oracle%u", r->stores++ % 2);
	r->r.opt.path = tmp_path(name);
}

/* What is written stays, what is only in memory is gone. */
static void crash(struct run *r)
{
	char from[512];
	uint64_t before = rig_status(&r->r).next_offset;

	/* A copy needs files that nobody is changing. */
	if (r->r.opt.snapshot_events != 0)
		assert_int_equal(dogwood_engine_checkpoint(r->r.e, NULL), 0);
	(void)snprintf(from, sizeof(from), "%s", r->r.opt.path);
	next_store(r);
	tmp_copy(from, r->r.opt.path);
	(void)dogwood_engine_close(r->r.e, NULL);
	rig_open(&r->r);
	r->t->crashes++;
	r->t->lost += before - rig_status(&r->r).next_offset;
}

static void meanwhile(struct run *r)
{
	switch (gen_int(&r->g, 24)) {
	case 0:
		rig_close(&r->r);
		rig_open(&r->r);
		r->t->opens++;
		break;
	case 1:
	case 2:
		crash(r);
		break;
	case 3:
		assert_int_equal(dogwood_engine_checkpoint(r->r.e, NULL), 0);
		r->t->snapshots++;
		break;
	case 4:
		change_file(r);
		break;
	case 5:
		change_one(r);
		break;
	default:
		break;
	}
}

static void put_bag(dogwood_event *ev, struct eng_rec *to, const struct dw_val *from)
{
	to->n = to->cap = from->u.obj.n;
	to->m = ARENA_VEC(&ev->a, struct dw_member, to->n);
	to->sub = ARENA_VEC(&ev->a, struct eng_rec *, to->n);
	assert_true(to->m != NULL && to->sub != NULL);
	for (size_t i = 0; i < to->n; i++) {
		to->m[i].name = arena_dup(&ev->a, from->u.obj.m[i].name);
		assert_true(dw_val_copy(&ev->a, &from->u.obj.m[i].val, &to->m[i].val));
	}
}

static dogwood_str uid(struct arena *a, const struct dw_uid *u)
{
	AUTO_BUF b = buf_with(4096);

	eng_uid_put(&b, u);
	return eng_str(arena_dup(a, buf_sv(&b)));
}

/* The event as a caller builds it, and as it then is. */
static void build(struct run *r, const struct dw_event *e, struct dw_event *out)
{
	struct dw_uid action = { e->ns, e->id };
	dogwood_event *ev = r->r.ev;
	struct box_err err = { 0 };
	struct dw_event made;

	dogwood_event_reset(ev);
	dogwood_event_action(ev, uid(&r->a, &action), eng_str(e->kind));
	dogwood_event_principal(ev, uid(&r->a, &e->principal));
	dogwood_event_resource(ev, uid(&r->a, &e->resource));
	put_bag(ev, &ev->logged, &e->logged);
	put_bag(ev, &ev->context, &e->context);
	for (size_t i = 0; i < e->nents; i++)
		eng_event_attrs(ev, eng_sv(uid(&r->a, &e->ents[i].uid)), &e->ents[i].attrs);
	if (eng_build(ev, &r->a, &made, &err) < 0)
		fail_msg("seed %llu: %s", (unsigned long long)r->seed, err.msg);
	*out = *e;
	assert_true(dw_val_copy(&r->a, &made.logged, &out->logged));
	assert_true(dw_val_copy(&r->a, &made.context, &out->context));
}

/* Cedar's rule, written out: forbid beats permit, a rule that fails is passed over. */
static void judge(struct run *r, const struct dw_event *e)
{
	const struct dogwood_verdict *v = r->r.v;
	bool is[RULES] = { 0 }, forbidden = false, permitted = false;
	size_t erred = 0, reasons = 0;

	for (size_t k = 0; k < r->n; k++) {
		const struct dw_rule *rule = dw_set_rule(r->plain, k);
		bool leaf[2] = { 0 };
		int holds;

		for (uint32_t i = 0; i < rule->nleaves; i++) {
			int x = naive_leaf(r->plain, r->plain->leaves[rule->leaf0 + i].cond, r->ev,
			    r->now - 1, r->rule[k].born[i], &r->a);

			assert_int_not_equal(x, -1);
			leaf[i] = x == 1;
		}
		holds = gen_rule_holds(&r->rule[k].is, leaf, e);
		erred += holds < 0;
		is[k] = holds > 0;
		forbidden = forbidden || (is[k] && r->rule[k].is.forbid);
		permitted = permitted || (is[k] && !r->rule[k].is.forbid);
	}
	for (size_t k = 0; k < r->n; k++)
		reasons += is[k] && r->rule[k].is.forbid == forbidden;
	for (size_t k = 0; k < v->n_rules; k++)
		if (!is[v->rules[k].index] || r->rule[v->rules[k].index].is.forbid != forbidden)
			reasons = SIZE_MAX;
	if (v->permit != (permitted && !forbidden) || v->n_rules != reasons ||
	    v->n_errors != erred || v->cause == DOGWOOD_FAULT) {
		show(r, v->permit ? "the engine permits" : "the engine denies");
		fail_msg("seed %llu: verdict on event %zu (%.*s)", (unsigned long long)r->seed,
		    r->now - 1, (int)v->fault.n, v->fault.p);
	}
	r->t->decisions++;
	r->t->allowed += v->permit;
	r->t->erred += v->n_errors != 0;
}

/* One trace. 0: the policy was refused as unsafe, 1: compared. */
static int one(uint64_t seed, struct tally *t)
{
	struct run r = { .seed = seed, .g = { .s = seed }, .t = t };
	size_t rules = 1 + gen_int(&r.g, 2);
	struct dw_event *ev;
	struct dogwood_error err;
	int rc = 0;

	r.schema = gen_int(&r.g, 2) == 0 ? 0 : gen_int(&r.g, NSCHEMAS);
	for (size_t i = 0; i < rules; i++)
		make_rule(&r, NULL, i);
	r.plain = load_plain(&r);
	if (r.plain == NULL)
		goto out;
	ev = gen_trace(&r.g, &r.a, EVENTS, false, r.schema != 0);
	assert_non_null(ev);
	rig_init(&r.r, NULL);
	next_store(&r);
	r.r.opt.snapshot_events = gen_int(&r.g, 4) == 0 ? 5 : 0;
	r.r.opt.segment_bytes = 65536;
	r.r.io.sync = r.r.io.sync_dir = no_sync;
	rig_open(&r.r);
	if (install(&r, &err) < 0)
		fail_msg("seed %llu: %s", (unsigned long long)seed, err.msg);
	learn_tokens(&r);
	for (size_t i = 0; i < EVENTS; i++) {
		meanwhile(&r);
		r.r.now = T0 + (ev[i].ts - ev[0].ts) * NS_PER_SEC;
		build(&r, &ev[i], &r.ev[i]);
		if (rig_try_submit(&r.r, &err) < 0)
			fail_msg("seed %llu: %s", (unsigned long long)seed, err.msg);
		r.ev[i].ts = r.r.v->ts_ns;
		r.now++;
		if (sv_eq(ev[i].kind, SV("request")))
			judge(&r, &ev[i]);
	}
	rig_fini(&r.r);
	rc = 1;
out:
	dw_set_free(r.plain);
	while (r.n != 0)
		drop_rule(&r, 0);
	arena_free(&r.a);
	return rc;
}

static void agrees_with_the_definition(void **state)
{
	uint64_t seed = env_number("ENGINE_SEED", 20261130),
	         traces = env_number("ENGINE_TRACES", TRACES), tried = 0;
	struct tally t = { 0 };
	size_t n = 0;

	(void)state;
	printf("oracle: seed %llu, %llu traces\n", (unsigned long long)seed,
	    (unsigned long long)traces);
	while (n < traces) {
		n += (size_t)one(seed * 0x9e3779b97f4a7c15u + ++tried, &t);
		/* A generator that makes nothing usable tests nothing. */
		assert_true(tried < traces * 20 + 1000);
	}
	printf(
	    "oracle: %zu decisions, %zu permits, %zu with errors; %zu restarts, %zu crashes that "
	    "lost %zu events, %zu snapshots, %zu files, %zu verbs\n",
	    t.decisions, t.allowed, t.erred, t.opens, t.crashes, t.lost, t.snapshots, t.installs,
	    t.batches);
	assert_true(t.allowed > t.decisions / 20 && t.allowed < t.decisions - t.decisions / 20);
	assert_true(t.opens > traces / 4 && t.crashes > traces / 2 && t.lost > traces / 20 &&
	            t.snapshots > traces / 4 && t.installs > traces / 4 && t.batches > traces / 4);
}

static int done(void **state)
{
	(void)state;
	tmp_done();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(agrees_with_the_definition) };

	/* Some 100,000 small stores: in memory when there is such a folder. */
	if (getenv("TMPDIR") == NULL && access("/dev/shm", W_OK | X_OK) == 0)
		assert_int_equal(setenv("TMPDIR", "/dev/shm", 0), 0);
	return cmocka_run_group_tests(tests, NULL, done);
}
