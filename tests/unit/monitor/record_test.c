/* Records: one JSON document a line, the attributes of the specification, traces, redaction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "monitor/record.h"

struct fixture {
	char dir[64], path[128];
	int64_t now;
	struct recorder *r;
};

static int up(void **state)
{
	static struct fixture f;
	struct box_err err;

	f = (struct fixture){ .dir = "/tmp/record-test-XXXXXX", .now = 1700000000000000000 };
	assert_non_null(mkdtemp(f.dir));
	(void)snprintf(f.path, sizeof(f.path), "%s/records.jsonl", f.dir);
	f.r = record_open(f.path, "box-0123456789abcdef", clock_fixed(&f.now), &err);
	assert_non_null(f.r);
	*state = &f;
	return 0;
}

static int down(void **state)
{
	struct fixture *f = *state;

	record_close(f->r);
	(void)unlink(f->path);
	(void)rmdir(f->dir);
	return 0;
}

/* All lines of the file, parsed; fails on a line that is not JSON. */
static size_t lines(struct fixture *f, json_t **out, size_t max)
{
	FILE *file = fopen(f->path, "re");
	char line[65536];
	size_t n = 0;

	record_flush(f->r);
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		json_error_t e;

		assert_true(n < max);
		out[n] = json_loads(line, 0, &e);
		assert_non_null(out[n]);
		n++;
	}
	(void)fclose(file);
	return n;
}

static json_t *log_record(json_t *doc)
{
	json_t *x = json_array_get(json_object_get(doc, "resourceLogs"), 0);

	x = json_array_get(json_object_get(x, "scopeLogs"), 0);
	return json_array_get(json_object_get(x, "logRecords"), 0);
}

static json_t *attribute(json_t *record, const char *key)
{
	json_t *a;
	size_t i;

	json_array_foreach(json_object_get(record, "attributes"), i,
	    a) if (strcmp(json_string_value(json_object_get(a, "key")), key) ==
	           0) return json_object_get(a, "value");
	return NULL;
}

static const char *text(json_t *record, const char *key)
{
	json_t *v = attribute(record, key);

	return v != NULL ? json_string_value(json_object_get(v, "stringValue")) : NULL;
}

static void test_decision(void **state)
{
	struct fixture *f = *state;
	static const sv ids[] = { SV_INIT("keep_env"), SV_INIT("second") };
	struct ask a = { .kind = ASK_FS, .op = FS_READ_CONTENT, .path = SV("~/a\"b\xff") };
	struct record_decision d = { .ask = &a,
		.ts_ns = 42,
		.cause = RECORD_FORBIDDEN,
		.rule = SV("keep_env"),
		.description = SV("Secrets stay out."),
		.reason = SV("policy denied"),
		.determining = ids,
		.determining_n = 2 };
	json_t *doc[4], *rec;

	record_trace_new(
	    f->r, SV("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), &d.trace);
	assert_true(d.trace.has_parent && d.trace.parent_sampled);
	record_decision(f->r, &d);
	assert_int_equal(lines(f, doc, 4), 2);
	rec = log_record(doc[0]);
	assert_non_null(rec);
	assert_string_equal(json_string_value(json_object_get(rec, "severityText")), "deny");
	assert_int_equal(json_integer_value(json_object_get(rec, "severityNumber")), 13);
	assert_string_equal(
	    json_string_value(json_object_get(rec, "traceId")), "4bf92f3577b34da6a3ce929d0e0e4736");
	assert_string_equal(text(rec, "strands.box.policy.action"), "fs:read");
	assert_string_equal(text(rec, "strands.box.policy.resource"), "~/a\"b\xef\xbf\xbd");
	assert_string_equal(text(rec, "strands.box.policy.rule"), "keep_env");
	assert_string_equal(text(rec, "strands.box.policy.cause"), "forbidden");
	assert_string_equal(text(rec, "strands.box.trace.parent_span_id"), "00f067aa0ba902b7");
	assert_non_null(json_object_get(doc[1], "resourceSpans"));
	json_decref(doc[0]);
	json_decref(doc[1]);
}

static void test_default_deny_names_no_rule(void **state)
{
	struct fixture *f = *state;
	struct ask a = {
		.kind = ASK_EXEC, .program = SV("rm"), .command = SV("rm x"), .cwd = SV("~")
	};
	struct record_decision d = {
		.ask = &a, .cause = RECORD_NO_MATCH, .reason = SV("no permit matched")
	};
	json_t *doc[4];

	record_trace_new(f->r, (sv){ NULL, 0 }, &d.trace);
	record_decision(f->r, &d);
	assert_int_equal(lines(f, doc, 4), 2);
	assert_string_equal(text(log_record(doc[0]), "strands.box.policy.rule"), "<default-deny>");
	assert_string_equal(text(log_record(doc[0]), "process.working_directory"), "~");
	json_decref(doc[0]);
	json_decref(doc[1]);
}

static void test_redaction(void **state)
{
	struct fixture *f = *state;
	struct ask_arg args[] = { { SV("literal value"), true }, { SV("secret"), false },
		{ SV("-x"), false }, { SV("--name"), false }, { SV("--token=abc"), false },
		{ SV("--Upper"), false }, { SV("-xy"), false } };
	static const char *const want[] = { "curl", "literal value", "<redacted>", "-x", "--name",
		"--token=<redacted>", "<redacted>", "<redacted>" };
	struct ask a = {
		.kind = ASK_EXEC, .program = SV("curl"), .args = args, .args_n = 7, .args_kept = 7
	};
	struct record_decision d = {
		.ask = &a, .permit = true, .cause = RECORD_PERMITTED, .rule = SV("r")
	};
	json_t *doc[4], *v, *list;

	record_trace_new(f->r, (sv){ NULL, 0 }, &d.trace);
	record_decision(f->r, &d);
	assert_int_equal(lines(f, doc, 4), 2);
	v = attribute(log_record(doc[0]), "process.command_args");
	list = json_object_get(json_object_get(v, "arrayValue"), "values");
	assert_int_equal(json_array_size(list), 8);
	for (size_t i = 0; i < 8; i++)
		assert_string_equal(
		    json_string_value(json_object_get(json_array_get(list, i), "stringValue")),
		    want[i]);
	json_decref(doc[0]);
	json_decref(doc[1]);
}

static void test_long_values_are_cut_on_a_character(void **state)
{
	struct fixture *f = *state;
	char path[6000];
	struct ask a = { .kind = ASK_FS, .op = FS_READ_CONTENT };
	struct record_decision d = {
		.ask = &a, .permit = true, .cause = RECORD_PERMITTED, .rule = SV("r")
	};
	json_t *doc[4];
	const char *got;

	for (size_t i = 0; i + 1 < sizeof(path); i += 2)
		memcpy(path + i, "\xc3\xa4", 2);
	a.path = (sv){ path, sizeof(path) };
	record_trace_new(f->r, (sv){ NULL, 0 }, &d.trace);
	record_decision(f->r, &d);
	assert_int_equal(lines(f, doc, 4), 2);
	got = text(log_record(doc[0]), "file.path");
	assert_true(strlen(got) <= 4096);
	assert_true(sv_is_utf8(sv_c(got)));
	assert_true(sv_ends(sv_c(got), SV("… (truncated)")));
	json_decref(doc[0]);
	json_decref(doc[1]);
}

static void test_bad_traceparents_start_a_new_trace(void **state)
{
	struct fixture *f = *state;
	static const char *const bad[] = { "", "00-",
		"01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		"00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct record_trace t;

		record_trace_new(f->r, sv_c(bad[i]), &t);
		assert_false(t.has_parent);
	}
}

static void test_control_and_mode(void **state)
{
	struct fixture *f = *state;
	struct stat st;
	json_t *doc[4];

	record_control(f->r, "box_started", SV("box-0123456789abcdef"), NULL);
	record_control(f->r, "policy_refused", SV("policy.dw"), "why \"not\"");
	assert_int_equal(lines(f, doc, 4), 4);
	assert_string_equal(
	    text(log_record(doc[0]), "strands.box.control.operation"), "box_started");
	assert_string_equal(text(log_record(doc[2]), "strands.box.control.reason"), "why \"not\"");
	for (int i = 0; i < 4; i++)
		json_decref(doc[i]);
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_decision, up, down),
		cmocka_unit_test_setup_teardown(test_default_deny_names_no_rule, up, down),
		cmocka_unit_test_setup_teardown(test_redaction, up, down),
		cmocka_unit_test_setup_teardown(test_long_values_are_cut_on_a_character, up, down),
		cmocka_unit_test_setup_teardown(test_bad_traceparents_start_a_new_trace, up, down),
		cmocka_unit_test_setup_teardown(test_control_and_mode, up, down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
