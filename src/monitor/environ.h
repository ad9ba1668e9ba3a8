/* environ: the environment of everything in the box, composed and never inherited
 * (box-config-and-policy 4.4). Later wins: placeholders, HOME and TMPDIR, what the caller exported,
 * the table's env, the box's own names. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "config/plan.h"
#include "monitor/routes.h"

struct environ_input {
	const struct plan *plan;
	const struct plan_process *proc; /* whose table: the agent's for the hosted shell */
	const struct routes *routes;
	const char *bin_dir; /* <BD>/bin: put first on the agent's PATH, taken out of every other */
	const char *ca_cert; /* path of the run's certificate */
	const char *ca_bundle; /* path of the system's roots and ours */
	const char *cwd;       /* PWD; NULL: none */
	uint16_t proxy_port;
	bool is_agent; /* PATH begins with bin_dir */
	const struct plan_var
	    *exported; /* from an alias or the shell; reserved names in it are dropped */
	size_t exported_n;
};

/* May a caller inside the box set this variable for a command it starts? Not names the box sets,
 * nor names that load code, nor HOME, PATH and the shell's own. */
bool environ_may_export(sv name);
/* PATH of this process before the box's own folder is put on it or taken out: the table's, or the
 * operator's. */
sv environ_path(const struct plan *plan, const struct plan_process *proc);
/* The list, in the arena, sorted by name; every value NUL-terminated. */
int environ_compose(const struct environ_input *in, struct arena *arena, struct plan_var **out,
    size_t *n, struct box_err *err);
