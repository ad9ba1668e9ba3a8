/* Reading records.jsonl. See records.h. */
#include "cmd/records.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sv.h"
#include "base/ban.h"

#define ROWS_MAX 10000000U

static const char *text_of(json_t *value)
{
	const char *s = json_string_value(json_object_get(value, "stringValue"));

	if (s == NULL)
		s = json_string_value(json_object_get(value, "intValue"));
	return s != NULL ? s : "";
}

/* The value of an attribute in an OTLP attribute list, "" when absent. */
static const char *attr(json_t *list, const char *key)
{
	json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		const char *k = json_string_value(json_object_get(item, "key"));

		if (k != NULL && strcmp(k, key) == 0)
			return text_of(json_object_get(item, "value"));
	}
	return "";
}

static int64_t number(const char *s)
{
	int64_t v = 0;

	return sv_to_i64(sv_c(s), 10, INT64_MIN, INT64_MAX, &v) ? v : 0;
}

static bool grow(void **v, size_t *cap, size_t n, size_t size)
{
	size_t want = *cap != 0 ? *cap * 2 : 256;
	void *p;

	if (n < *cap)
		return true;
	p = want <= ROWS_MAX * 2 ? reallocarray(*v, want, size) : NULL;
	if (p == NULL)
		return false;
	*v = p;
	*cap = want;
	return true;
}

static int add_decision(struct record_rows *rows, json_t *rec, const char *run, struct box_err *err)
{
	json_t *a = json_object_get(rec, "attributes");
	const char *ts = json_string_value(json_object_get(rec, "timeUnixNano"));
	const char *span = json_string_value(json_object_get(rec, "spanId"));

	if (!grow((void **)&rows->v, &rows->cap, rows->n, sizeof(rows->v[0])))
		return box_nomem(err, "the rows");
	rows->v[rows->n++] = (struct record_row){
		.ts_ns = number(ts != NULL ? ts : "0"),
		.permit = strcmp(attr(a, "strands.box.policy.verdict"), "permit") == 0,
		.span = span != NULL ? span : "",
		.run = run,
		.action = attr(a, "strands.box.policy.action"),
		.target = attr(a, "strands.box.policy.resource"),
		.cause = attr(a, "strands.box.policy.cause"),
		.rule = attr(a, "strands.box.policy.rule"),
		.reason = attr(a, "strands.box.policy.reason"),
		.description = attr(a, "strands.box.policy.description"),
		.method = attr(a, "http.request.method"),
		.result = "",
	};
	return 0;
}

/* Outcomes follow their decisions, mostly closely. */
static void add_outcome(struct record_rows *rows, json_t *rec)
{
	json_t *a = json_object_get(rec, "attributes");
	const char *span = json_string_value(json_object_get(rec, "spanId"));
	const char *status = attr(a, "strands.box.outcome.status");

	for (size_t i = rows->n; span != NULL && i-- > 0;) {
		if (strcmp(rows->v[i].span, span) != 0)
			continue;
		rows->v[i].result = attr(a, "strands.box.outcome.result");
		rows->v[i].has_status = *status != '\0';
		rows->v[i].status = number(status);
		return;
	}
}

/* One line. *used: rows borrow from doc. */
static int add_line(
    struct record_rows *rows, json_t *doc, bool last_run, bool *used, struct box_err *err)
{
	json_t *res = json_array_get(json_object_get(doc, "resourceLogs"), 0);
	json_t *scope = json_array_get(json_object_get(res, "scopeLogs"), 0);
	json_t *rec = json_array_get(json_object_get(scope, "logRecords"), 0);
	json_t *res_attr = json_object_get(json_object_get(res, "resource"), "attributes");
	const char *name =
	    json_string_value(json_object_get(json_object_get(scope, "scope"), "name"));

	*used = false;
	if (rec == NULL || name == NULL || strcmp(attr(res_attr, "strands.box.source"), "box") != 0)
		return 0;
	if (strcmp(name, "strands-box.control") == 0 && last_run &&
	    strcmp(attr(json_object_get(rec, "attributes"), "strands.box.control.operation"),
	        "box_started") == 0)
		rows->n = 0; /* a new run begins: what came before is not wanted */
	if (strcmp(name, "strands-box.policy") == 0) {
		*used = true;
		return add_decision(rows, rec, attr(res_attr, "strands.box.run.id"), err);
	}
	if (strcmp(name, "strands-box.outcome") == 0) {
		*used = true;
		add_outcome(rows, rec);
	}
	return 0;
}

int records_read(const char *path, bool last_run, struct record_rows *rows, struct box_err *err)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t cap = 0, number_of = 0;
	ssize_t n;
	int r = 0;

	*rows = (struct record_rows){ 0 };
	if (f == NULL)
		return box_fail(err, BOX_ESYS, errno, "open %s", path);
	while (r == 0 && (n = getline(&line, &cap, f)) > 0) {
		json_error_t je;
		json_t *doc;
		bool used;

		number_of++;
		doc = json_loadb(line, (size_t)n, 0, &je);
		if (doc == NULL) {
			if (line[n - 1] == '\n')
				r = box_fail(err, BOX_EPARSE, 0, "%s:%zu:%d: not a JSON record: %s",
				    path, number_of, je.column, je.text);
			break; /* an unfinished last line: a run that was killed, or is writing */
		}
		r = add_line(rows, doc, last_run, &used, err);
		if (!used) {
			json_decref(doc);
		} else if (!grow((void **)&rows->docs, &rows->docs_cap, rows->docs_n,
		               sizeof(void *))) {
			json_decref(doc);
			r = box_nomem(err, "the records");
		} else {
			rows->docs[rows->docs_n++] = doc;
		}
	}
	free(line);
	(void)fclose(f); /* read only */
	return r;
}

void records_fini(struct record_rows *rows)
{
	for (size_t i = 0; i < rows->docs_n; i++)
		json_decref(rows->docs[i]);
	free(rows->docs);
	free(rows->v);
	*rows = (struct record_rows){ 0 };
}
