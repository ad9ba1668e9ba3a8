/* Schemas: both syntaxes, translation between them, resolution and its refusals, limits. */
#include "t.h"

#include "cedar/schema.h"

static const char full[] =
    "@doc(\"outer\") namespace Acme {\n"
    "  type Meta = { by: User, \"odd key\"?: Set<Long>, at: datetime };\n"
    "  entity User, Robot in [Team] = { name: String, meta?: Meta } tags String;\n"
    "  entity Team in Team { };\n"
    "  entity Level enum [\"low\", \"a\\\"b\"];\n"
    "  entity File;\n"
    "  @note action all, \"both\";\n"
    "  action read in [all, Acme::Action::\"both\"] appliesTo {\n"
    "    principal: [User, Robot], resource: File, context: { meta: Meta, level: Level, n: "
    "__cedar::Long, } };\n"
    "  action write in all appliesTo { principal: User, resource: [File], context: Meta };\n"
    "}\n"
    "entity Top { x: Acme::User };\n"
    "action \"outer one\" appliesTo { principal: Top, resource: Top };\n";

static struct cedar_schema *load(struct world *w, sv text, bool json)
{
	w->ds = cedar_diags_in(&w->a);
	return cedar_schema_load(w->t, &w->a, text, json, &w->ds);
}

static void check_full(struct world *w, const struct cedar_schema *s)
{
	const struct cedar_entity_type *user, *team, *level;
	const struct cedar_action *read;
	const struct cedar_attr *meta;
	struct buf b = buf_with(4096);

	assert_non_null(s);
	user = cedar_schema_etype(s, cedar_intern(w->t, SV("Acme::User")));
	team = cedar_schema_etype(s, cedar_intern(w->t, SV("Acme::Team")));
	level = cedar_schema_etype(s, cedar_intern(w->t, SV("Acme::Level")));
	assert_non_null(user);
	assert_true(cedar_etype_can_be_in(user, team));
	assert_false(cedar_etype_can_be_in(team, user));
	assert_int_equal(user->tags->kind, CEDAR_TY_STRING);
	assert_int_equal(level->n_enum, 2);
	read = cedar_schema_action(s, uid(w, "Acme::Action::\"read\""));
	assert_non_null(read);
	assert_int_equal(read->n_principal, 2);
	assert_int_equal(read->n_ancestor, 2);
	assert_true(cedar_action_in(read, uid(w, "Acme::Action::\"both\"")));
	assert_int_equal(cedar_schema_action(s, uid(w, "Acme::Action::\"all\""))->n_principal, 0);
	meta = cedar_type_attr(read->context, cedar_intern(w->t, SV("meta")));
	assert_int_equal(meta->type->kind, CEDAR_TY_RECORD);
	assert_true(cedar_entities_in_hierarchy(
	    &s->actions, uid(w, "Acme::Action::\"write\""), uid(w, "Acme::Action::\"all\"")));
	cedar_put_type(&b, meta->type);
	assert_string_equal(buf_cstr(&b), "{at: datetime,by: Acme::User,odd key?: Set<Long>,}");
	buf_fini(&b);
}

static void test_translate(void **state)
{
	struct world *w = *state;
	struct cedar_schema *s = load(w, sv_c(full), false);
	struct buf j = buf_with(1 << 20), h = buf_with(1 << 20), j2 = buf_with(1 << 20);

	check_full(w, s);
	cedar_schema_put_json(&j, s->src);
	s = load(w, buf_sv(&j), true);
	if (s == NULL)
		fail_msg("%s\n" SV_FMT, buf_cstr(&j), SV_ARG(w->ds.d[0].message));
	check_full(w, s);
	cedar_schema_put(&h, s->src);
	s = load(w, buf_sv(&h), false);
	if (s == NULL)
		fail_msg("%s\n" SV_FMT, buf_cstr(&h), SV_ARG(w->ds.d[0].message));
	check_full(w, s);
	cedar_schema_put_json(&j2, s->src);
	assert_non_null(load(w, buf_sv(&j2), true));
	buf_fini(&j);
	buf_fini(&h);
	buf_fini(&j2);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text, *want;
	} t[] = {
		{ "entity A", "unexpected end of input, expected `;`" },
		{ "entity A in;", "unexpected token `;`, expected identifier" },
		{ "entity if;", "this identifier is reserved and cannot be used: `if`" },
		{ "entity A; entity A;", "entity type `A` is declared twice" },
		{ "action a; action a;", "action `a` is declared twice" },
		{ "type T = Long; type T = Long;", "common type `T` is declared twice" },
		{ "type T = U; type U = T;",
		    "cycle in common type references containing type `T`" },
		{ "type Set = Long;", "this is reserved and cannot be the basename of a "
		                      "common-type declaration: `Set`" },
		{ "entity Action;",
		    "entity type `Action` is reserved for actions and cannot be declared" },
		{ "entity A in [B];", "undeclared entity type: `B`" },
		{ "entity A { x: Lnog };", "failed to resolve type: `Lnog`" },
		{ "action a in [\"b\"];", "undeclared action: `b`" },
		{ "action a in [b]; action b in [a];", "action `a` is a member of itself" },
		{ "entity A; action a appliesTo { principal: A };",
		    "missing `resource` in `appliesTo`" },
		{ "entity A; action a appliesTo { principal: [], resource: A };",
		    "an action must apply to at least one principal and resource type; to apply it "
		    "to "
		    "nothing leave out `appliesTo`" },
		{ "entity A; action a appliesTo { principal: A, resource: A, context: A };",
		    "undeclared common type: `A`" },
		{ "entity A; action a appliesTo { principal: A, resource: A, context: Long };",
		    "entity type `shape` or action `context` must be a record type" },
		{ "entity A; namespace N { entity A; }", "the definition of `A` illegally shadows "
		                                         "the definition in the empty namespace" },
		{ "namespace N { } namespace N { }", "this namespace is declared twice" },
		{ "namespace __cedar { }", "the namespace `__cedar` is reserved" },
		{ "namespace N {", "unexpected end of input, expected `}`" },
	};
	struct world *w = *state;
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		assert_null(load(w, sv_c(t[i].text), false));
		if (!sv_eq(w->ds.d[0].message, sv_c(t[i].want)))
			fail_msg("%s\n gave " SV_FMT, t[i].text, SV_ARG(w->ds.d[0].message));
	}
	load(w, SV("entity A { x: Strng };"), false);
	assert_true(sv_eq(w->ds.d[0].hint, SV("did you mean `String`?")));
	assert_int_equal(w->ds.d[0].span.col, 15);
}

static void test_refused_json(void **state)
{
	static const struct {
		const char *text, *want;
	} t[] = {
		{ "[]", "a schema must be an object of namespaces" },
		{ "{\"\": {}}", "missing field `entityTypes`" },
		{ "{\"\": {\"entityTypes\": {}, \"actions\": {}, \"x\": 1}}",
		    "unknown field `x` in a namespace" },
		{ "{\"\": {\"entityTypes\": {\"A\": {\"shape\": {\"type\": \"Record\"}}}, "
		  "\"actions\": {}}}",
		    "missing field `attributes`" },
		{ "{\"\": {\"entityTypes\": {\"A\": {\"shape\": {\"type\": \"Record\", "
		  "\"attributes\": {}, "
		  "\"additionalAttributes\": true}}}, \"actions\": {}}}",
		    "records and entities with `additionalAttributes` are experimental and not "
		    "supported" },
		{ "{\"a b\": {\"entityTypes\": {}, \"actions\": {}}}", "invalid name `a b`" },
		{ "{\"\": {\"entityTypes\": {\"A\": {\"enum\": []}}, \"actions\": {}}}",
		    "`enum` must be a list of at least one id" },
		{ "{\"\": {\"entityTypes\": {}, \"entityTypes\": {}}}",
		    "1:6: a key stands twice in this object" },
		{ "{", "1:2: a key in quotes must stand here" },
	};
	struct world *w = *state;
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		assert_null(load(w, sv_c(t[i].text), true));
		if (!sv_eq(w->ds.d[0].message, sv_c(t[i].want)))
			fail_msg("%s\n gave " SV_FMT, t[i].text, SV_ARG(w->ds.d[0].message));
	}
}

/* Names of the empty namespace give way to declarations; __cedar names do not. */
static void test_names(void **state)
{
	struct world *w = *state;
	struct cedar_schema *s =
	    load(w, SV("entity ipaddr; entity A { x: ipaddr, y: __cedar::ipaddr };"), false);
	const struct cedar_entity_type *a;

	assert_non_null(s);
	a = cedar_schema_etype(s, cedar_intern(w->t, SV("A")));
	assert_int_equal(
	    cedar_type_attr(a->shape, cedar_intern(w->t, SV("x")))->type->kind, CEDAR_TY_ENTITY);
	assert_int_equal(
	    cedar_type_attr(a->shape, cedar_intern(w->t, SV("y")))->type->kind, CEDAR_TY_IP);
}

/* As in the reference the last declaration holds; ours says so. */
static void test_twice(void **state)
{
	struct world *w = *state;
	struct cedar_schema *s = load(w, SV("entity A { x: Long, y: Long, x?: String };"), false);
	struct buf j = buf_with(4096);
	const struct cedar_attr *x;

	assert_non_null(s);
	assert_int_equal(w->ds.n, 1);
	assert_int_equal(w->ds.d[0].severity, CEDAR_WARNING);
	x = cedar_type_attr(
	    cedar_schema_etype(s, cedar_intern(w->t, SV("A")))->shape, cedar_intern(w->t, SV("x")));
	assert_true(x->type->kind == CEDAR_TY_STRING && !x->required);
	cedar_schema_put_json(&j, s->src);
	assert_non_null(load(w, buf_sv(&j), true));
	buf_fini(&j);
}

static void test_own_context(void **state)
{
	struct world *w = *state;
	struct cedar_schema_src src;
	struct cedar_saction *x;
	struct cedar_sty *b = ARENA_NEW(&w->a, struct cedar_sty);
	struct cedar_schema *s;

	w->ds = cedar_diags_in(&w->a);
	assert_int_equal(
	    cedar_schema_parse(w->t, &w->a,
	        SV("namespace M { type C = { u: U, t: T }; type T = Long; entity U; }\n"
	           "namespace N { entity V; action a, b appliesTo { principal: V, resource: V, "
	           "context: "
	           "M::C }; }"),
	        &src, &w->ds),
	    0);
	x = cedar_schema_src_action(&src, SV("N"), SV("a"));
	assert_int_equal(cedar_schema_own_context(w->t, &w->a, &src, SV("N"), x), 0);
	*b = (struct cedar_sty){ .kind = CEDAR_STY_PRIM, .name = cedar_intern(w->t, SV("Bool")) };
	assert_int_equal(
	    cedar_sty_add(&w->a, &x->context, cedar_intern(w->t, SV("leaf")), b, true), 0);
	s = cedar_schema_resolve(w->t, &w->a, &src, &w->ds);
	assert_non_null(s);
	assert_int_equal(cedar_schema_action(s, uid(w, "N::Action::\"a\""))->context->n_attr, 3);
	assert_int_equal(cedar_schema_action(s, uid(w, "N::Action::\"b\""))->context->n_attr, 2);
}

static void test_bounds(void **state)
{
	struct world *w = *state;
	struct buf b = buf_with((size_t)32 << 20);
	unsigned i;

	for (i = 0; i < 100; i++)
		buf_put_sv(&b, SV("type T = Set<"));
	assert_null(load(w, buf_sv(&b), false));
	buf_clear(&b);
	buf_put_sv(&b, SV("type T0 = { a: Long };"));
	for (i = 1; i < 60; i++)
		buf_putf(&b, "type T%u = { a: T%u, b: T%u };", i, i - 1, i - 1);
	assert_null(load(w, buf_sv(&b), false)); /* would be 2^60 nodes */
	assert_true(
	    sv_eq(w->ds.d[0].message, SV("the types of the schema are too large or too deep")));
	buf_clear(&b);
	buf_put_sv(&b, SV("entity A { x: "));
	for (i = 0; i < 5000000; i++)
		buf_put_sv(&b, SV("{"));
	assert_null(load(w, buf_sv(&b), false));
	buf_clear(&b);
	buf_put_sv(&b, SV("{\"\": "));
	for (i = 0; i < 5000000; i++)
		buf_put_sv(&b, SV("["));
	assert_null(load(w, buf_sv(&b), true));
	buf_fini(&b);
}

static void test_no_memory(void **state)
{
	struct world *w = *state;
	size_t limit;
	int json;
	struct buf j = buf_with(1 << 20);

	cedar_schema_put_json(&j, load(w, sv_c(full), false)->src);
	for (json = 0; json < 2; json++)
		for (limit = 64;; limit += 233) {
			struct arena a = { .limit = limit };
			struct cedar_diags ds = cedar_diags_in(&a);
			struct cedar_schema *s = cedar_schema_load(
			    w->t, &a, json ? buf_sv(&j) : sv_c(full), json != 0, &ds);
			bool done = s != NULL;

			assert_true(done || ds.errors != 0);
			arena_free(&a);
			if (done)
				break;
			assert_true(limit < 1 << 20);
		}
	buf_fini(&j);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)
	const struct CMUnitTest tests[] = {
		T(test_translate),
		T(test_refused),
		T(test_refused_json),
		T(test_names),
		T(test_twice),
		T(test_own_context),
		T(test_bounds),
		T(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
