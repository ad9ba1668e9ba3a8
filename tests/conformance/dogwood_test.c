/* The 54 cases of Dogwood's own corpora (data/dogwood, see its README): verdicts of traces, output
 * of `replay`, and refusals with their exact messages. The folder is read as it stands: a case is
 * whatever directory is there. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/fd.h"
#include "dogwood/decide.h"
#include "dogwood/trace.h"

#include "base/ban.h"

#define FILE_MAX ((size_t)4 << 20)

static const char *data; /* the folder, from the command line */

/* A file of the case, or of _shared; false: there is none. */
static bool slurp(const char *dir, const char *name, struct buf *out)
{
	char path[4096];
	struct box_err err;

	buf_clear(out);
	if (snprintf(path, sizeof(path), "%s/%s/%s", data, dir, name) >= (int)sizeof(path))
		return false;
	return fd_read_file(path, FILE_MAX, out, &err) == 0;
}

struct files {
	struct buf policy, schema, events, macros, expected;
	bool has_schema, has_events, has_macros, has_error;
};

static void files_fini(struct files *f)
{
	buf_fini(&f->policy);
	buf_fini(&f->schema);
	buf_fini(&f->events);
	buf_fini(&f->macros);
	buf_fini(&f->expected);
}

/* policy.dw, or policy_1.dw, policy_2.dw, … joined by a newline. */
static void read_policies(const char *dir, struct buf *out)
{
	AUTO_BUF one = buf_with(FILE_MAX);
	char name[32];

	if (slurp(dir, "policy.dw", out))
		return;
	for (int i = 1;; i++) {
		snprintf(name, sizeof(name), "policy_%d.dw", i);
		if (!slurp(dir, name, &one))
			return;
		if (i != 1)
			buf_put_byte(out, '\n');
		buf_put_sv(out, buf_sv(&one));
	}
}

static void read_case(const char *dir, struct files *f)
{
	bool docs = sv_starts(sv_c(dir), SV("docs-")), fail = sv_starts(sv_c(dir), SV("fail-"));

	*f = (struct files){ buf_with(FILE_MAX), buf_with(FILE_MAX), buf_with(FILE_MAX),
		buf_with(FILE_MAX), buf_with(FILE_MAX), false, false, false, false };
	read_policies(dir, &f->policy);
	f->has_schema = slurp(dir, "schema.cedarschema", &f->schema) || fail ||
	                slurp("_shared", "shared_schema.cedarschema", &f->schema);
	f->has_events = slurp(dir, "event.dwschema", &f->events) ||
	                (!docs && slurp("_shared", "request_response.dwschema", &f->events));
	f->has_macros = slurp(dir, "macros.dw", &f->macros);
	f->has_error = slurp(dir, "expected_error.txt", &f->expected);
}

static sv text_of(const struct buf *b)
{
	return b->n != 0 ? buf_sv(b) : SV("");
}

static struct dw_set *load(
    const char *dir, const struct files *f, bool validate, struct dw_diags *d, struct box_err *err)
{
	struct dw_load in = { .policy = { sv_c(dir), text_of(&f->policy) },
		.tick = DW_TICK_SECOND,
		.no_validate = !validate };

	if (f->has_schema)
		in.action_schema =
		    (struct dw_source){ SV("schema.cedarschema"), text_of(&f->schema) };
	if (f->has_events)
		in.event_schema = (struct dw_source){ SV("event.dwschema"), text_of(&f->events) };
	if (f->has_macros)
		in.macros = (struct dw_source){ SV("macros.dw"), text_of(&f->macros) };
	return dw_load(&in, d, err);
}

/* Trimmed, non-empty lines. */
static void tidy(sv text, struct buf *out)
{
	sv line;

	while (text.n != 0) {
		(void)sv_cut(text, '\n', &line, &text);
		line = sv_trim(line);
		if (line.n == 0)
			continue;
		buf_put_sv(out, line);
		buf_put_byte(out, '\n');
	}
}

static void replay(const char *dir, const struct dw_set *s, sv trace, bool cli,
    enum dwm_clock clock, struct buf *out)
{
	struct dw_trace t = dw_trace_of(trace);
	AUTO_ARENA a = { 0 };
	struct box_err err = { 0 };
	struct dwm *m = dwm_new(s, clock, &err);
	struct dw_scratch *sc = dw_scratch_new(&err);
	struct dw_decision d;
	struct dw_event e;
	unsigned index = 0, decisions = 0;
	int r;

	assert_non_null(m);
	assert_non_null(sc);
	while ((r = dw_trace_next(&t, &a, &e, &err)) == 1) {
		if (dwm_step(m, &e, &err) < 0)
			fail_msg("%s: %s", dir, err.msg);
		if (dw_set_is_decision(s, e.kind)) {
			assert_return_code(dw_decide(sc, s, m, &e, &d, &err), 0);
			if (!cli) {
				buf_putf(out, "@%lld (time point %u): %s\n", (long long)e.ts, index,
				    d.allow ? "true" : "false");
			} else {
				buf_putf(out, "@%lld (time point %u): %s", (long long)e.ts,
				    decisions, d.allow ? "ALLOW" : "DENY");
				for (size_t i = 0; i < d.nrules; i++)
					buf_putf(
					    out, "%s%u", i == 0 ? "  [rules: " : ", ", d.rules[i]);
				buf_put_c(out, d.nrules != 0 ? "]\n" : "\n");
			}
			decisions++;
		}
		index++;
	}
	if (r < 0)
		fail_msg("%s: trace: %s", dir, err.msg);
	dwm_free(m);
	dw_scratch_free(sc);
}

static bool rises(sv trace)
{
	struct dw_trace t = dw_trace_of(trace);
	AUTO_ARENA a = { 0 };
	int64_t last = INT64_MIN;
	struct dw_event e;

	while (dw_trace_next(&t, &a, &e, NULL) == 1) {
		if (e.ts < last)
			return false;
		last = e.ts;
	}
	return true;
}

static unsigned verdicts(const char *dir, const struct files *f)
{
	AUTO_BUF trace = buf_with(FILE_MAX), want = buf_with(FILE_MAX), lines = buf_with(FILE_MAX),
	         got = buf_with(FILE_MAX);
	bool cli = sv_starts(sv_c(dir), SV("docs-"));
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err = { 0 };
	struct dw_set *s = load(dir, f, false, &d, &err);
	unsigned n = 0;
	char tn[64], en[64];

	if (s == NULL)
		fail_msg("%s: refused: %s", dir, err.msg);
	for (int i = 0; i < 20; i++) {
		snprintf(tn, sizeof(tn), i == 0 ? "trace.log" : "trace_%d.log", i);
		snprintf(en, sizeof(en), i == 0 ? "expected.out" : "expected_%d.out", i);
		if (!slurp(dir, tn, &trace))
			continue;
		assert_true(slurp(dir, en, &want));
		buf_clear(&lines);
		tidy(buf_sv(&want), &lines);
		/* By the general evaluator, and by keyed states where the stamps allow it. */
		for (int c = 0; c < (rises(buf_sv(&trace)) ? 2 : 1); c++) {
			buf_clear(&got);
			replay(dir, s, buf_sv(&trace), cli, c == 0 ? DWM_ANY : DWM_MONOTONE, &got);
			if (!sv_eq(buf_sv(&got), buf_sv(&lines)))
				fail_msg("%s, %s:\n%swanted:\n%s", dir, tn, buf_cstr(&got),
				    buf_cstr(&lines));
		}
		n++;
	}
	dw_set_free(s);
	return n;
}

static void refused(const char *dir, const struct files *f)
{
	AUTO_BUF got = buf_with(FILE_MAX);
	AUTO_DW_DIAGS d = { 0 };
	struct box_err err = { 0 };
	struct dw_set *s = load(dir, f, true, &d, &err);

	if (s != NULL)
		fail_msg("%s: accepted, but must be refused", dir);
	assert_true(d.errors != 0);
	dw_diags_messages(&d, DW_ERROR, &got);
	if (f->has_error && !sv_eq(sv_trim(buf_sv(&got)), sv_trim(buf_sv(&f->expected))))
		fail_msg("%s:\n%s\nwanted:\n%.*s", dir, buf_cstr(&got),
		    SV_ARG(sv_trim(buf_sv(&f->expected))));
}

static void every_case(void **state)
{
	DIR *dp = opendir(data);
	unsigned traces = 0, messages = 0, others = 0;
	struct dirent *e;

	(void)state;
	if (dp == NULL)
		fail_msg("cannot open %s", data);
	while ((e = readdir(dp)) != NULL) {
		struct files f;

		if (sv_find(sv_c(e->d_name), '-') < 0)
			continue;
		read_case(e->d_name, &f);
		if (sv_starts(sv_c(e->d_name), SV("fail-"))) {
			refused(e->d_name, &f);
			messages += f.has_error;
			others += !f.has_error;
		} else {
			traces += verdicts(e->d_name, &f);
		}
		files_fini(&f);
	}
	closedir(dp);
	printf(
	    "dogwood: %u traces, %u refusals by message, %u refusals\n", traces, messages, others);
	assert_int_equal(traces, 21);
	assert_int_equal(messages, 24);
	assert_int_equal(others, 9);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_case) };

	if (argc != 2) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 2;
	}
	data = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
