/* records: read records.jsonl back into rows of decisions, each joined with its outcome. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct record_row {
	int64_t ts_ns;
	bool permit, has_status;
	int64_t status;
	/* Borrowed from the rows; never NULL, "" when the record has none. */
	const char *span, *run, *action, *target, *cause, *rule, *reason, *description, *method,
	    *result;
};

struct record_rows {
	struct record_row *v; /* in the order of the file */
	size_t n, cap;
	void **docs; /* the parsed lines that the rows borrow from */
	size_t docs_n, docs_cap;
};

/* Read every decision of the file, or those of its last run. A line that is not a record of ours
 * (agents' own telemetry) is passed over; a line that is not JSON, other than an unfinished last
 * one, is an error with its number. *rows is always safe to records_fini. */
int records_read(const char *path, bool last_run, struct record_rows *rows, struct box_err *err);
void records_fini(struct record_rows *rows);
