/* Decisions: forbid over permit, errors beside decisions, templates, gates, no allocation; and
 * the index against an evaluator that looks at every policy, on random sets. */
#include "t.h"

static struct cedar_source parse(struct world *w, const char *text)
{
	struct cedar_parse_opts o = { .dogwood = true };
	struct cedar_source src;

	w->ds = cedar_diags_in(&w->a);
	if (cedar_parse(w->t, &w->a, sv_c(text), &o, &src, &w->ds) < 0)
		fail_msg("%s: " SV_FMT, text, SV_ARG(w->ds.d[0].message));
	return src;
}

static struct cedar_policies *compile(
    struct world *w, const char *text, const struct cedar_set_opts *o)
{
	struct cedar_source src = parse(w, text);
	struct cedar_policies *ps = cedar_policies_of(w->t, &src, o, &w->ds);

	if (ps == NULL)
		fail_msg("%s: " SV_FMT, text, SV_ARG(w->ds.d[0].message));
	return ps;
}

/* "allow 0,2 !1": decision, reasons, erring policies. */
static const char *decide(struct world *w, const struct cedar_policies *ps)
{
	struct cedar_answer ans;
	struct box_err err;
	struct buf b = buf_with(4096);
	const char *s;
	size_t i;

	assert_int_equal(cedar_authorize(ps, &w->ev, &w->rq, &ans, &err), 0);
	buf_put_c(&b, ans.allow ? "allow" : "deny");
	for (i = 0; i < ans.n_reason; i++)
		buf_putf(&b, " %u", ans.reason[i]);
	for (i = 0; i < ans.n_error; i++)
		buf_putf(&b, " !%u", ans.error[i].policy);
	s = arena_printf(&w->a, SV_FMT, SV_ARG(buf_sv(&b)));
	buf_fini(&b);
	return s;
}

static void context(struct world *w, const char *expr)
{
	struct cedar_value v;
	struct box_err err;
	struct cedar_expr *e;

	w->ds = cedar_diags_in(&w->a);
	e = cedar_parse_expr(w->t, &w->a, sv_c(expr), NULL, &w->ds);
	assert_non_null(e);
	assert_int_equal(cedar_eval_expr(w->t, &w->ev, e, &w->rq, NULL, &v, &err), 0);
	assert_int_equal(cedar_value_copy(w->t, &w->a, &v, &v), 0);
	w->rq.context = v.rec;
}

static void test_rules(void **state)
{
	static const struct {
		const char *policies, *want;
	} t[] = {
		{ "", "deny" },
		{ "permit();", "allow 0" },
		{ "permit(); permit() when { false }; permit();", "allow 0 2" },
		{ "permit(); forbid(); forbid();", "deny 1 2" },
		{ "permit(); forbid() when { context.nope };", "allow 0 !1" },
		{ "permit() when { context.a };", "deny !0" },
		{ "permit() when { 1 };", "deny !0" },
		{ "permit() unless { false } when { true } unless { 1 == 2 };", "allow 0" },
		{ "permit(principal == User::\"alice\"); permit(principal == User::\"bob\");",
		    "allow 0" },
		{ "permit(principal is User); permit(principal is Group);", "allow 0" },
		{ "permit(action == Action::\"view\"); permit(action in [Action::\"edit\", "
		  "Action::\"view\"]); "
		  "permit(action in Action::\"view\");",
		    "allow 0 1 2" },
		{ "permit(resource in Doc::\"d1\"); permit(resource is Doc in Doc::\"d1\");",
		    "allow 0 1" },
		{ "permit() when { context.a == \"x\" }; permit() when { context.a == \"y\" };",
		    "allow 0" },
		{ "permit() when { context has z && context.z == \"x\" }; permit() when { "
		  "context.z == 1 };",
		    "deny !1" },
		{ "permit() when { context.a.b == \"x\" }; permit() when { context.q.b == 1 };",
		    "deny !0 !1" },
		{ "permit() when { [\"x\", \"q\"].contains(context.a) };", "allow 0" },
		{ "permit() when { context.a == \"q\" || context.a == \"x\" };", "allow 0" },
		/* What may err in front of an equality is met even where the equality is false. */
		{ "permit() when { context.a in Group::\"g\" } when { context.a == \"q\" };",
		    "deny !0" },
		{ "permit() when { principal in [context.a] } when { context.a == \"q\" };",
		    "deny !0" },
		{ "permit() when { context.a is User } when { context.a == \"q\" };", "deny !0" },
		{ "permit() when { context.a < 1 } when { context.a == \"q\" };", "deny !0" },
		{ "permit() when { context.a has b } when { context.a == \"q\" };", "deny !0" },
		{ "permit() when { principal in Group::\"g\" } when { context.a == \"q\" };",
		    "deny" },
	};
	struct world *w = *state;
	size_t i;

	context(w, "{a: \"x\"}");
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct cedar_policies *ps = compile(w, t[i].policies, NULL);
		const char *got = decide(w, ps);

		if (strcmp(got, t[i].want) != 0)
			fail_msg("%s\n gave %s not %s", t[i].policies, got, t[i].want);
		cedar_policies_free(ps);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *policies, *want;
	} t[] = {
		{ "permit() when { foo(1) };", "unknown function or macro `foo` (not a Cedar "
		                               "built-in and not a declared macro)" },
		{ "permit() when { context.x.foo(1) };", "unknown method `foo`" },
		{ "permit() when { A::B(1) };", "unknown function or macro `A::B` (not a Cedar "
		                                "built-in and not a declared macro)" },
	};
	struct world *w = *state;
	struct cedar_link link[2] = { 0 };
	struct cedar_source src;
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		src = parse(w, t[i].policies);
		assert_null(cedar_policies_of(w->t, &src, NULL, &w->ds));
		assert_true(sv_eq(w->ds.d[0].message, sv_c(t[i].want)));
	}
	src = parse(w, "permit(principal == ?principal); permit();");
	link[0].policy = link[1].policy = &src.policy[1];
	assert_null(cedar_policies_new(w->t, link, 2, NULL, &w->ds)); /* the same id twice */
	link[1].policy = &src.policy[0];
	assert_null(cedar_policies_new(w->t, link, 2, NULL, &w->ds)); /* a slot without a value */
	link[1].slot[0] = uid(w, "User::\"alice\"");
	link[1].slot[1] = uid(w, "User::\"alice\"");
	assert_null(cedar_policies_new(w->t, link, 2, NULL, &w->ds)); /* a value without a slot */
}

static void test_templates(void **state)
{
	struct world *w = *state;
	struct cedar_source src = parse(w, "permit(principal == ?principal, resource in ?resource) "
	                                   "when { ?principal == principal };");
	struct cedar_link link[2] = { 0 };
	struct cedar_policies *ps;

	link[0] = (struct cedar_link){ &src.policy[0], cedar_intern(w->t, SV("l0")),
		{ uid(w, "User::\"alice\""), uid(w, "Doc::\"d1\"") } };
	link[1] = (struct cedar_link){ &src.policy[0], cedar_intern(w->t, SV("l1")),
		{ uid(w, "User::\"bob\""), uid(w, "Doc::\"d1\"") } };
	ps = cedar_policies_new(w->t, link, 2, NULL, &w->ds);
	assert_non_null(ps);
	assert_string_equal(decide(w, ps), "allow 0");
	assert_true(sv_eq(cedar_sv(cedar_policies_get(ps, 1)->id), SV("l1")));
	cedar_policies_free(ps);
}

static int leaf_value(
    void *ctx, const struct cedar_leaf *leaf, struct cedar_value *out, struct box_err *err)
{
	unsigned *asked = ctx;

	(*asked)++;
	if (leaf->ordinal == 9)
		return box_fail(err, BOX_EPARSE, 0, "no value");
	*out = cedar_bool(leaf->ordinal % 2 == 1);
	return 0;
}

static void test_leaves(void **state)
{
	struct world *w = *state;
	struct cedar_set_opts o = { .leaves_cannot_fail = true, .gate_leaves = true };
	struct cedar_source src = parse(w, "permit() when temporal { a };"
	                                   "forbid() when { 1 == 1 && temporal { b } };"
	                                   "permit() when { context.zz } when temporal { c };"
	                                   "permit() unless temporal { d };");
	struct cedar_policies *ps;
	uint32_t on[] = { 1 };
	unsigned asked = 0;
	size_t i;

	for (i = 0; i < 4; i++) {
		struct cedar_expr *e = src.policy[i].cond[src.policy[i].n_cond - 1].e;

		if (e->kind == CEDAR_E_AND)
			e = e->arg[1];
		e->leaf->ordinal = (uint32_t)i + 1;
	}
	w->rq.leaf = leaf_value;
	w->rq.leaf_ctx = &asked;
	context(w, "{a: \"x\"}");
	ps = cedar_policies_of(w->t, &src, NULL, &w->ds);
	assert_string_equal(decide(w, ps), "allow 0 3 !2");
	cedar_policies_free(ps);
	ps = cedar_policies_of(w->t, &src, &o, &w->ds);
	assert_true(cedar_policies_is_gate(ps, 1));
	assert_true(cedar_policies_is_gate(ps, 2));
	assert_false(cedar_policies_is_gate(ps, 3)); /* what stands before it can err */
	assert_false(cedar_policies_is_gate(ps, 4));
	assert_string_equal(decide(w, ps), "allow 3 !2");
	w->rq.true_leaf = on;
	w->rq.n_true_leaf = 1;
	assert_string_equal(decide(w, ps), "allow 0 3 !2");
	cedar_policies_free(ps);
	src.policy[0].cond[0].e->leaf->ordinal = 9;
	ps = cedar_policies_of(w->t, &src, NULL, &w->ds);
	assert_string_equal(decide(w, ps), "allow 3 !0 !2");
	cedar_policies_free(ps);
}

/* ---- the index against all policies
 * ------------------------------------------------------------------------------- */

static uint32_t seed;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static const char *pick(const char *const *v, uint32_t n)
{
	return v[rnd(n)];
}
#define PICK(v) pick(v, sizeof(v) / sizeof(v[0]))

static const char *const users[] = { "User::\"a\"", "User::\"b\"", "Group::\"g\"", "Group::\"h\"" };
static const char *const acts[] = { "Action::\"v\"", "Action::\"e\"", "Action::\"all\"" };
static const char *const vals[] = { "\"x\"", "\"y\"", "1", "true", "User::\"a\"", "[1]" };
static const char *const paths[] = { "context.k", "context.r.k", "context.r.s", "context.q" };

static const char *scope_text(struct world *w, const char *var)
{
	switch (rnd(5)) {
	case 0:
		return arena_printf(&w->a, "%s == %s", var, PICK(users));
	case 1:
		return arena_printf(&w->a, "%s in %s", var, PICK(users));
	case 2:
		return arena_printf(&w->a, "%s is %s", var, rnd(2) != 0 ? "User" : "Group");
	case 3:
		return arena_printf(&w->a, "%s is User in %s", var, PICK(users));
	default:
		return NULL;
	}
}

static const char *cond_text(struct world *w, int depth)
{
	switch (rnd(depth > 0 ? 12 : 9)) {
	case 0:
	case 1:
	case 2:
		return arena_printf(&w->a, "%s == %s", PICK(paths), PICK(vals));
	case 3:
		return arena_printf(&w->a, "%s == %s", PICK(vals), PICK(paths));
	case 4:
		return arena_printf(
		    &w->a, "[%s, %s].contains(%s)", PICK(vals), PICK(vals), PICK(paths));
	case 5:
		return rnd(2) != 0 ? "context has k" : "context has r.k";
	case 6:
		return rnd(2) != 0 ? "context.r has k" : "context has r && context.r has s";
	case 7:
		return arena_printf(&w->a, "principal in %s", PICK(users));
	case 8:
		return "1 < 2";
	case 9:
		return arena_printf(
		    &w->a, "(%s || %s)", cond_text(w, depth - 1), cond_text(w, depth - 1));
	case 10:
		return arena_printf(&w->a, "!(%s)", cond_text(w, depth - 1));
	default:
		return arena_printf(
		    &w->a, "(%s && %s)", cond_text(w, depth - 1), cond_text(w, depth - 1));
	}
}

#define N_POL 12

static void hierarchy(struct world *w)
{
	static const struct {
		const char *uid, *parent;
	} h[] = { { "User::\"a\"", "Group::\"g\"" }, { "Group::\"g\"", "Group::\"h\"" },
		{ "Action::\"v\"", "Action::\"all\"" } };
	struct box_err err;
	size_t i;

	for (i = 0; i < 3; i++) {
		struct cedar_uid *p = ARENA_NEW(&w->a, struct cedar_uid);
		struct cedar_entity_data e = {
			.uid = uid(w, h[i].uid), .parents = p, .n_parents = 1
		};

		*p = uid(w, h[i].parent);
		assert_int_equal(cedar_entities_add(&w->es, &e, &err), 0);
	}
	assert_int_equal(cedar_entities_close(&w->es, &err), 0);
}

static void one_round(struct world *w)
{
	static const char *const contexts[] = { "{}", "{k: \"x\"}", "{k: 1, r: {k: \"y\"}}",
		"{r: {s: \"x\", k: true}, q: [1]}", "{r: 1, k: User::\"a\"}",
		"{r: User::\"a\", q: \"y\"}", "{r: {}, k: \"y\"}" };
	const char *expr[N_POL];
	bool forbid[N_POL];
	struct buf all = buf_with(1 << 16);
	struct cedar_policies *ps;
	size_t i;

	for (i = 0; i < N_POL; i++) {
		const char *p = scope_text(w, "principal"), *r = scope_text(w, "resource"),
		           *a = NULL, *c, *d;

		if (rnd(3) != 0)
			a = rnd(2) != 0
			        ? arena_printf(&w->a, "action in [%s, %s]", PICK(acts), PICK(acts))
			        : arena_printf(&w->a, "action == %s", PICK(acts));
		c = cond_text(w, 2);
		d = cond_text(w, 1);
		forbid[i] = rnd(3) == 0;
		buf_putf(&all, "%s(%s%s%s%s%s) when { %s } %s { %s };\n",
		    forbid[i] ? "forbid" : "permit", p != NULL ? p : "principal",
		    a != NULL ? "," : "", a != NULL ? a : "", r != NULL ? "," : "",
		    r != NULL ? r : "", c, i % 4 == 0 ? "unless" : "when", d);
		expr[i] = arena_printf(&w->a, "(%s) && (%s) && (%s) && (%s) && %s(%s)",
		    p != NULL ? p : "true", a != NULL ? a : "true", r != NULL ? r : "true", c,
		    i % 4 == 0 ? "!" : "", d);
	}
	ps = compile(w, arena_printf(&w->a, SV_FMT, SV_ARG(buf_sv(&all))), NULL);
	for (i = 0; i < 12; i++) {
		struct buf b = buf_with(4096);
		const char *got, *text[N_POL];
		bool any = false;
		size_t k;

		w->rq.principal = uid(w, PICK(users));
		w->rq.action = uid(w, PICK(acts));
		w->rq.resource = uid(w, PICK(users));
		context(w, PICK(contexts));
		for (k = 0; k < N_POL; k++) {
			text[k] = eval_text(w, expr[k]);
			any = any || (forbid[k] && strcmp(text[k], "true") == 0);
		}
		for (k = 0; k < N_POL; k++)
			if (forbid[k] == any && strcmp(text[k], "true") == 0)
				buf_putf(&b, " %zu", k);
		got = arena_printf(
		    &w->a, "%s" SV_FMT, !any && b.n != 0 ? "allow" : "deny", SV_ARG(buf_sv(&b)));
		for (k = 0; k < N_POL; k++)
			if (strncmp(text[k], "error", 5) == 0)
				got = arena_printf(&w->a, "%s !%zu", got, k);
		if (strcmp(got, decide(w, ps)) != 0)
			fail_msg("seed %u\n" SV_FMT "all policies: %s\nindex: %s", seed,
			    SV_ARG(buf_sv(&all)), got, decide(w, ps));
		buf_fini(&b);
	}
	cedar_policies_free(ps);
	buf_fini(&all);
}

static void test_index(void **state)
{
	struct world *w = *state;
	unsigned i;

	seed = 4711;
	for (i = 0; i < 400; i++) {
		w->es = cedar_entities_in(&w->a, NULL);
		hierarchy(w);
		one_round(w);
		arena_free(&w->a);
	}
}

/* With a thousand policies on a field a request meets those of its value. */
static void test_selective(void **state)
{
	struct world *w = *state;
	struct buf b = buf_with(1 << 20);
	struct cedar_answer ans;
	struct cedar_policies *ps;
	struct box_err err;
	unsigned i;

	for (i = 0; i < 1000; i++)
		buf_putf(
		    &b, "permit(action == Action::\"view\") when { context.a == \"v%u\" };", i);
	ps = compile(w, buf_cstr(&b), NULL);
	context(w, "{a: \"v77\"}");
	assert_int_equal(cedar_authorize(ps, &w->ev, &w->rq, &ans, &err), 0);
	assert_true(ans.allow && ans.n_reason == 1 && ans.reason[0] == 77);
	assert_int_equal(ans.met, 1);
	cedar_policies_free(ps);
	buf_fini(&b);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)
	const struct CMUnitTest tests[] = {
		T(test_rules),
		T(test_refused),
		T(test_templates),
		T(test_leaves),
		T(test_index),
		T(test_selective),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
