/* disclose: the startup report of `box run`, blocks of 4.3 step 5: what each process may reach with
 * no policy decision. */
#pragma once

#include "base/buf.h"
#include "config/plan.h"

/* One line "box: [tool.x]: exposes ~/.aws (read)" for each credential store named by a table. */
void disclose_stores(const struct plan *p, struct buf *out);
/* One entry the containment adds to every process of a kind. */
struct disclose_minimum {
	const char *operation; /* "read", "write", "metadata" */
	const char *path;
	const char *note; /* "", "entry only", "loader directory: code maps and runs here" */
};
/* The block of one process; minimum comes from src/contain (contain_minimum). home and path are the
 * HOME and PATH the process gets. */
void disclose_process(const struct plan *p, const struct plan_process *proc,
    const struct disclose_minimum *minimum, size_t minimum_n, sv home, sv path, struct buf *out);
