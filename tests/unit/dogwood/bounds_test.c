/* Ten megabytes of nesting of every kind, in every format that is read: an error in under a
 * second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "cedar/json.h"
#include "cedar/schema.h"
#include "dogwood/format.h"
#include "dogwood/mcp_schema.h"
#include "dogwood/policyset.h"
#include "dogwood/trace.h"

#include "base/ban.h"

#define BYTES ((size_t)10 << 20)
/* Of processor time. What is built to find faults is slower, and nobody waits for it. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLOW
#endif
#endif
#if !defined(__OPTIMIZE__) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOW
#endif
#ifdef SLOW
#define SECONDS 30.0
#else
#define SECONDS 1.0
#endif

enum format { POLICY, LAYOUT, SCHEMA, SCHEMA_JSON, EVENTS, POLICY_JSON, ENTITIES, TRACE, TOOLS };

#define HEAD  "permit (principal, action, resource) when { "
#define PAST  "permit (principal, action, resource) when temporal { "
#define EVENT "@1 scope(principal: A::\"a\", resource: A::\"b\") A::Action::\"x\"::request(a: "

static const struct {
	enum format format;
	const char *head, *unit, *tail;
} rows[] = {
	{ POLICY, HEAD, "(", "" },
	{ POLICY, HEAD, "[", "" },
	{ POLICY, HEAD, "!", "true };" },
	{ POLICY, HEAD, "-", "1 };" },
	{ POLICY, HEAD, "{a:", "" },
	{ POLICY, HEAD, "if ", "" },
	{ POLICY, HEAD, "if true then 1 else ", "1 };" },
	{ POLICY, HEAD, "1 + ", "1 };" },
	{ POLICY, HEAD "context", ".a", " };" },
	{ POLICY, HEAD "context has a", ".a", " };" },
	{ POLICY, HEAD "context", "[\"a\"]", " };" },
	{ POLICY, HEAD, "temporal { ", "" },
	{ POLICY, PAST, "(", "" },
	{ POLICY, PAST, "!", "" },
	{ POLICY, PAST "a == ", "[", "" },
	{ POLICY, PAST, "f(", "" },
	{ POLICY, PAST, "formerly within 1h (", "" },
	{ POLICY, PAST, "exists (a: Long). ", "" },
	{ POLICY, PAST, "A::Action::\"x\"::request{ a: *, b: ", "" },
	{ POLICY, "def cedar f() { ", "(", " };" },
	{ POLICY, "def temporal f() { ", "previous within 1s (", " };" },
	{ POLICY, "", "permit(", "" },
	{ POLICY, "", "@a", "" },
	{ POLICY, "", ";", "" },
	{ POLICY, "", "permit (x);\n", "" },
	{ LAYOUT, HEAD, "(", "" },
	{ LAYOUT, PAST, "(", "" },
	{ LAYOUT, HEAD, "[{a:", "" },
	{ LAYOUT, "", "@a", "" },
	{ SCHEMA, "namespace A { entity X { ", "a: { ", "" },
	{ SCHEMA, "type A = ", "Set<", "" },
	{ SCHEMA, "entity A in ", "[", "" },
	{ SCHEMA, "", "namespace A {", "" },
	{ SCHEMA_JSON, "", "[", "" },
	{ SCHEMA_JSON, "", "{\"a\":", "" },
	{ SCHEMA_JSON, "{\"\":{\"commonTypes\":{\"T\":", "{\"type\":\"Set\",\"element\":", "" },
	{ EVENTS, "event <A>::k { a: ", "{ a: ", "" },
	{ EVENTS, "", "event <A>::", "" },
	{ POLICY_JSON, "", "{\"a\":", "" },
	{ POLICY_JSON, "{\"staticPolicies\":{\"a\":", "{\"!\":{\"arg\":", "" },
	{ ENTITIES, "", "[", "" },
	{ ENTITIES, "[{\"uid\":", "{\"a\":", "" },
	{ TRACE, EVENT, "[", ")\n" },
	{ TRACE, EVENT, "{a: ", ")\n" },
	{ TRACE, "", "@1 ", "\n" },
	{ TOOLS, "", "[", "" },
	{ TOOLS, "{\"tools\":[{\"name\":\"a\",\"inputSchema\":", "{\"properties\":{\"a\":", "" },
};

static bool load(sv policy, sv events)
{
	struct dw_load in = { .policy = { SV("p"), policy }, .tick = 1 };
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err = { 0 };
	struct dw_set *s;

	if (events.n != 0)
		in.event_schema = (struct dw_source){ SV("e"), events };
	s = dw_load(&in, &d, &err);
	dw_set_free(s);
	return s != NULL;
}

static bool read_one(enum format format, sv text)
{
	AUTO_ARENA a = { .limit = (size_t)1 << 30 };
	AUTO_BUF out = buf_with((size_t)64 << 20);
	AUTO_DW_DIAGS d = { 0 };
	struct cedar_diags ds = cedar_diags_in(&a);
	struct cedar_syms *t = cedar_syms_new(0);
	struct cedar_entities store = cedar_entities_in(&a, NULL);
	struct dw_mcp_opts o = { .style = DW_MCP_BOX, .name = SV("s") };
	struct dw_trace tr = dw_trace_of(text);
	struct cedar_json_set set;
	struct box_err err = { 0 };
	struct dw_event e;
	bool ok = true;

	switch (format) {
	case POLICY:
		ok = load(text, (sv){ NULL, 0 });
		break;
	case LAYOUT:
		ok = dw_format(SV("p"), text, 0, &out, &d) == 0;
		break;
	case SCHEMA:
	case SCHEMA_JSON:
		ok = cedar_schema_load(t, &a, text, format == SCHEMA_JSON, &ds) != NULL;
		break;
	case EVENTS:
		ok = load(SV("permit (principal);"), text);
		break;
	case POLICY_JSON:
		ok = cedar_json_policies(t, &a, text, &set, &ds) == 0;
		break;
	case ENTITIES:
		ok = cedar_json_entities(t, text, NULL, &store, &err) == 0;
		break;
	case TRACE:
		ok = dw_trace_next(&tr, &a, &e, &err) >= 0;
		break;
	case TOOLS:
		ok = dw_mcp_schema(text, &o, &out, NULL, &err) == 0;
		break;
	}
	cedar_syms_free(t);
	return ok;
}

static void every_nesting(void **state)
{
	char *p = malloc(BYTES);

	(void)state;
	assert_non_null(p);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = strlen(rows[i].head), u = strlen(rows[i].unit), t = strlen(rows[i].tail);
		clock_t from;
		double spent;

		memcpy(p, rows[i].head, n);
		for (; n + u + t <= BYTES; n += u)
			memcpy(p + n, rows[i].unit, u);
		memcpy(p + n, rows[i].tail, t);
		from = clock();
		if (read_one(rows[i].format, (sv){ p, n + t }))
			fail_msg("%s%s… is accepted", rows[i].head, rows[i].unit);
		spent = (double)(clock() - from) / CLOCKS_PER_SEC;
		if (spent > SECONDS)
			fail_msg("%s%s… took %.2f s", rows[i].head, rows[i].unit, spent);
	}
	free(p);
}

/* Valid, and of a size at which anything that is quadratic shows. */
static void wide(void **state)
{
	static const struct {
		const char *head, *unit, *tail;
		unsigned times;
		bool ok;
	} sets[] = {
		{ HEAD, "true && ", "true };", 500000, true },
		{ HEAD "[", "1, ", "1].contains(1) };", 500000, true },
		{ "", "permit (principal, action, resource);\n", "", 100000, true },
		{ HEAD, "temporal { formerly within 1h A::Action::\"x\"::request{} } || ",
		    "true };", 20000, true },
		{ "", "permit (principal) when { missing() };\n", "", 100000, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		AUTO_BUF b = buf_with((size_t)16 << 20);
		clock_t from;
		double spent;

		buf_put_c(&b, sets[i].head);
		for (unsigned k = 0; k < sets[i].times; k++)
			buf_put_c(&b, sets[i].unit);
		buf_put_c(&b, sets[i].tail);
		from = clock();
		assert_int_equal(load(buf_sv(&b), (sv){ NULL, 0 }), sets[i].ok);
		spent = (double)(clock() - from) / CLOCKS_PER_SEC;
		if (spent > 2 * SECONDS)
			fail_msg("%s%s… took %.2f s", sets[i].head, sets[i].unit, spent);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_nesting),
		cmocka_unit_test(wide) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
