/* A temporary home with a project, as in box-config-and-policy 6 ("Common ground"), and the way
 * from a box.toml text to a plan. */
#pragma once

#include "base/buf.h"
#include "config/config.h"

struct fixture {
	/* canonical; holds src/app (workspace), boxes/t (box.toml, policy.dw), bin/prog, .ssh, … */
	char home[128];
	char path[256]; /* PATH: "$H/bin:/usr/bin:/bin" */
};

void fixture_make(struct fixture *f);
void fixture_remove(struct fixture *f);
/* Replace $H by the home, $BD by the box directory's path. The result is NUL-terminated in out. */
const char *fixture_expand(const struct fixture *f, const char *text, struct buf *out);
/* Run a shell command in the home with $H set, to make what a case needs. */
void fixture_sh(const struct fixture *f, const char *command);
/* Write text ($H expanded) as boxes/t/box.toml and load it; judge too when `judge`. 0 or -1 with
 * err. plan_fini in any case. */
int fixture_load(
    const struct fixture *f, const char *text, bool judge, struct plan *p, struct box_err *err);

/* A box.toml head that is right in everything: name, box_dir, policy. */
#define GOOD_HEAD "name = \"t\"\nbox_dir = \"$H/boxes/t/state\"\npolicy = \"policy.dw\"\n"
/* And an agent. */
#define GOOD_AGENT GOOD_HEAD "[agent]\ncommand = [\"prog\"]\nworkspace = \"$H/src/app\"\n"
