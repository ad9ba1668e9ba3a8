/* Memory: the n-th allocation fails, for every n, from text to decision; and a decision after
 * the first ones allocates nothing. Linked with --wrap for the allocators. */
#include "t.h"

#include "cedar/json.h"
#include "cedar/validate.h"

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t m);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t m);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t m);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t m);

static size_t allocations, fail_at; /* 0: never */

static bool fails(void)
{
	return ++allocations == fail_at;
}

void *__wrap_malloc(size_t n)
{
	return fails() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t m)
{
	return fails() ? NULL : __real_calloc(n, m);
}

void *__wrap_realloc(void *p, size_t n)
{
	return fails() ? NULL : __real_realloc(p, n);
}

void *__wrap_reallocarray(void *p, size_t n, size_t m)
{
	return fails() ? NULL : __real_reallocarray(p, n, m);
}

static const char schema_text[] = "type C = { a: String, s: Set<Long>, r: { x?: Long } }; entity "
                                  "User in [Group] tags Long; entity Group; entity "
                                  "Doc { owner: User }; action view, all appliesTo { principal: "
                                  "User, resource: Doc, context: C };";
static const char policy_text[] =
    "@id(\"x\") permit(principal in Group::\"g\", action in [Action::\"view\"], resource) when { "
    "context.a == \"v1\" "
    "}; permit(principal, action, resource) when { context.a like \"v*\" && [context.s, "
    "[1]].contains([1, 2]) && "
    "{k: context.r}.k has x }; forbid(principal, action, resource) when { context.nope };";
static const char entity_text[] = "[{\"uid\": {\"type\": \"User\", \"id\": \"alice\"}, \"attrs\": "
                                  "{}, \"parents\": [{\"type\": \"Group\", \"id\": "
                                  "\"g\"}], \"tags\": {\"t\": 1}}]";
static const char request_text[] = "{\"principal\": {\"type\": \"User\", \"id\": \"alice\"}, "
                                   "\"action\": {\"type\": \"Action\", \"id\": \"view\"}, "
                                   "\"resource\": {\"type\": \"Doc\", \"id\": \"d\"}, \"context\": "
                                   "{\"a\": \"v1\", \"s\": [1, 2], \"r\": {\"x\": 3}}}";

/* Everything once. true when it came to a decision, which is then checked. */
static bool everything(void)
{
	struct arena a = { 0 };
	struct cedar_diags ds = cedar_diags_in(&a);
	struct cedar_syms *t = cedar_syms_new(0);
	struct cedar_eval ev = { 0 };
	struct cedar_entities es;
	struct cedar_policies *ps = NULL;
	struct cedar_schema *s = NULL;
	struct cedar_source src;
	struct cedar_request rq = { 0 };
	struct cedar_answer ans;
	struct box_err err;
	bool done = false;

	if (t == NULL)
		goto out;
	s = cedar_schema_load(t, &a, sv_c(schema_text), false, &ds);
	if (s == NULL || cedar_parse(t, &a, sv_c(policy_text), NULL, &src, &ds) < 0)
		goto out;
	(void)cedar_validate_source(s, &src, &ds); /* finds context.nope, or has no memory for it */
	ps = cedar_policies_of(t, &src, NULL, &ds);
	es = cedar_entities_in(&a, &s->actions);
	if (ps == NULL || cedar_json_entities(t, sv_c(entity_text), s, &es, &err) < 0 ||
	    cedar_eval_arena(&ev) == NULL ||
	    cedar_json_request(t, cedar_eval_arena(&ev), sv_c(request_text), s, &rq, &err) < 0)
		goto out;
	rq.entities = &es;
	if (cedar_authorize(ps, &ev, &rq, &ans, &err) < 0)
		goto out;
	done = true;
	assert_true(ans.allow && ans.n_reason == 2 && ans.n_error == 1);
out:
	cedar_policies_free(ps);
	cedar_eval_fini(&ev);
	arena_free(&a);
	cedar_syms_free(t);
	return done;
}

static void test_each_fails(void **state)
{
	size_t n, total;

	(void)state;
	allocations = fail_at = 0;
	assert_true(everything());
	total = allocations;
	assert_true(total > 20);
	for (n = 1; n <= total; n++) {
		allocations = 0;
		fail_at = n;
		/* A finding that could not be kept may leave the decision possible; it is then
		 * the right one. */
		(void)everything();
	}
	fail_at = 0;
	assert_true(everything());
}

static void test_no_allocation(void **state)
{
	struct arena a = { 0 };
	struct cedar_diags ds = cedar_diags_in(&a);
	struct cedar_syms *t = cedar_syms_new(0);
	struct cedar_schema *s = cedar_schema_load(t, &a, sv_c(schema_text), false, &ds);
	struct cedar_eval ev = { 0 };
	struct cedar_entities es = cedar_entities_in(&a, &s->actions);
	struct cedar_policies *ps;
	struct cedar_source src;
	struct cedar_answer ans;
	struct buf big = buf_with(1 << 20);
	struct box_err err;
	int i;

	(void)state;
	assert_int_equal(cedar_parse(t, &a, sv_c(policy_text), NULL, &src, &ds), 0);
	ps = cedar_policies_of(t, &src, NULL, &ds);
	assert_int_equal(cedar_json_entities(t, sv_c(entity_text), s, &es, &err), 0);
	/* A request that needs several blocks of an arena. */
	buf_put_c(&big, request_text);
	big.n -= 2;
	for (i = 0; i < 500; i++)
		buf_putf(&big, ", \"k%d\": \"a text of some length %d\"", i, i);
	buf_put_c(&big, "}}");
	for (i = 0; i < 20; i++) {
		struct cedar_request rq = { .entities = &es };

		if (i == 4)
			allocations = 0;
		cedar_eval_reset(&ev);
		assert_int_equal(
		    cedar_json_request(t, cedar_eval_arena(&ev), sv_c(request_text), s, &rq, &err),
		    0);
		rq.entities = &es;
		assert_int_equal(cedar_authorize(ps, &ev, &rq, &ans, &err), 0);
		assert_true(ans.allow);
	}
	assert_int_equal(allocations, 0);
	buf_fini(&big);
	cedar_policies_free(ps);
	cedar_eval_fini(&ev);
	arena_free(&a);
	cedar_syms_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_fails),
		cmocka_unit_test(test_no_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
