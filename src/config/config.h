/* config: read box.toml into a plan. Two steps, as in box-config-and-policy 1.10: parse (creates
 * nothing, touches only the file itself), then judge (resolves programs, workspaces and grants
 * against the file system; the box directory exists by then). */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "config/plan.h"

struct config_input {
	const char *config_path; /* as typed */
	const char *start_dir;   /* absolute */
	const char *home;        /* operator home from the account database */
	const char *path_var;    /* PATH of the operator, or NULL */
	char *const *args;       /* appended to [agent] command; NULL-terminated, or NULL */
	uid_t uid;
	gid_t gid;
};

/* Read and check the file. On -1, err holds one line "…: file:line:column: …". *p is always safe to
 * plan_fini. */
int config_load(const struct config_input *in, struct plan *p, struct box_err *err);
/* The same with the bytes of box.toml already read and no file touched: source identities and the
 * policy file are not looked at. For tests and the fuzzer. */
int config_parse(const struct config_input *in, sv text, struct plan *p, struct box_err *err);
/* Resolve and judge everything that needs the file system, against every rule of 1.3 to 1.5:
 * workspaces, programs and their #! lines, grants (existence, identity, overlaps, floors), trust
 * files. Fills the fields that say so. */
int config_judge(struct plan *p, struct box_err *err);
/* Read the policy file that config_load resolved, through the identity it recorded. Not to be
 * called when p->policy_path is empty. */
int config_read_policy(const struct plan *p, struct buf *out, struct box_err *err);
/* box.toml and policy.dw are still the files that were read (1.1); checked once more before the
 * workload starts. */
int config_verify_sources(const struct plan *p, struct box_err *err);
/* Every grant is still what was judged: it resolves to itself with the same kind, and a subtracted
 * path is the same device and inode (1.4). Checked before each sandbox is built. */
int config_recheck(const struct plan_process *proc, struct box_err *err);
