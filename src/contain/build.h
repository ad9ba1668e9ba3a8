/* build: the parts of sandbox_spec_build. Internal to src/contain. */
#pragma once

#include <stdbool.h>

#include "config/plan.h"
#include "contain/nodes.h"
#include "contain/spec.h"

struct build {
	const struct plan *p;
	const struct plan_process *proc;
	const struct sandbox_extra *x;
	struct sandbox_spec *s;
	struct arena *a; /* the spec's */
	struct nodes t;
	bool leaf;
	const char *direct; /* "#!/usr/bin/env NAME": the interpreter to start in its place */
	struct box_err *err;
};

/* Loader and libraries of one more program. */
int build_show_closure(struct build *b, const char *program);
/* The same for every program an `exec` entry covers: itself, or (bounded) those below a directory.
 */
int build_exec_closure(struct build *b, const struct plan_grant *g);
/* Runtime minimum of the kind of process (6.3). */
int build_minimum(struct build *b);
/* /dev, /tmp, /etc, /run, HOME, the CA files, top-level links. */
int build_scaffold(struct build *b);
/* Agent only: <BD>/bin, the absolute interpreter paths, the broker's socket. */
int build_aliases(struct build *b);
/* Masks below /proc, and the seal: last operations. */
void build_proc(struct build *b);
