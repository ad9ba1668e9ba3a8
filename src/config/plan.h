/* plan: what one box.toml means, as data. Built by config_load (config.h), judged by config_judge,
 * then only read: by src/contain (sandboxes), by the monitor (tools, routes, policy) and by
 * disclose.h (the startup report).
 *
 * Everything lives in plan->arena and is NUL-terminated where it is a `sv` that names a path,
 * program, argument or variable. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/sv.h"

/* The lists of a filesystem table, in the order of the startup report
 * (box-config-and-policy 1.4, 4.3). */
enum plan_list {
	PLAN_READ,
	PLAN_WRITE,
	PLAN_READ_FILE,
	PLAN_WRITE_FILE,
	PLAN_LIST,
	PLAN_METADATA,
	PLAN_EXEC,
	PLAN_DENY,
	PLAN_LISTS
};
extern const char *const plan_list_name[PLAN_LISTS]; /* "read", "write", … */

struct plan_grant {
	enum plan_list list;
	sv authored;    /* as written, for messages */
	sv path;        /* absolute, ~ expanded; canonical once judged */
	int line, col;  /* where it stands in box.toml */
	bool is_dir;    /* set by the judge */
	bool is_socket; /* write_file only, set by the judge: the process may connect to it */
	bool absent;    /* deny only: nothing is there yet */
	bool implied;   /* deny only: added by the judge, so that box.toml and policy.dw stay out of
	                   every grant */
	bool credential_store; /* names a credential store (1.5): announced at start */
	dev_t dev;             /* identity at judging time, checked again at every start */
	ino_t ino;
};

struct plan_var {
	sv name, value;
};

enum plan_kind { PLAN_AGENT, PLAN_TOOL };

/* A place in box.toml, from 1; line 0: nothing was written there. */
struct plan_at {
	int line, col;
};

/* [agent] or [tool.<label>]. */
struct plan_process {
	enum plan_kind kind;
	sv label; /* "" for the agent */
	sv table; /* "[agent]" or "[tool.git]", for messages */
	int line; /* of the table's header */
	struct plan_at at_command, at_workspace, at_home; /* of the values; at_home: env.HOME */
	sv *command; /* as written; for the agent, ARGS are appended at the end */
	size_t command_n;
	size_t fixed_n;   /* entries of command that box.toml wrote */
	sv program;       /* canonical executable file, set by the judge */
	sv program_route; /* absolute path it was reached by (argv[0] the process sees when
	                     command[0] was bare) */
	sv *interpreters; /* each hop of the #! chain, canonical */
	size_t interpreters_n;
	sv workspace;         /* canonical; "" for a tool without one */
	struct plan_var *env; /* in file order */
	size_t env_n;
	struct plan_grant *grants;
	size_t grants_n;
	bool contain_egress; /* true unless [tool.X.network] contain_egress = false */
};

enum plan_inject { PLAN_PHANTOM, PLAN_ALWAYS };

/* One destination pattern of a route (1.7). */
struct plan_dest {
	sv authored;
	struct plan_at at;
	sv host;         /* lower case, without "*." */
	bool subdomains; /* "*.host": strict subdomains only */
	uint16_t port;   /* 0: 443 and 80 */
	sv path;         /* "" any; "/v1" segment prefix; "/x/y" suffix when is_suffix */
	bool is_suffix;
};

/* [egress.<name>]: one secret and where it may go. Only `header` placement in this version. */
struct plan_route {
	sv name;
	struct plan_at at_trust;
	struct plan_dest *dests;
	size_t dests_n;
	sv secret_var;     /* NAME of env://NAME */
	sv header;         /* "Authorization" */
	sv prefix;         /* "Bearer " */
	sv phantom_prefix; /* "strands_box_" */
	enum plan_inject inject;
	sv trust; /* PEM file with one more root for these destinations, canonical; "" none */
};

/* [resolve]: "host:port" -> "address:port". The policy and the peer's certificate see the left
 * side. */
struct plan_resolve {
	sv host;
	uint16_t port;
	sv addr; /* IP literal */
	uint16_t addr_port;
};

struct plan {
	struct arena arena;
	sv config_path;  /* canonical path of box.toml */
	sv config_typed; /* as typed on the command line */
	sv config_text;  /* the bytes of box.toml that were read */
	sv policy_path;  /* canonical path of policy.dw; "" when no policy is declared */
	dev_t config_dev, policy_dev;
	ino_t config_ino, policy_ino;
	sv name;
	sv box_dir;   /* as written (absolute) */
	sv home;      /* operator home, canonical */
	sv path_var;  /* operator's PATH, or "/usr/bin:/bin" */
	sv start_dir; /* directory `run` was started from */
	uid_t uid;
	gid_t gid;
	struct plan_process *agent; /* NULL: no [agent] table */
	struct plan_process *tools; /* in label order */
	size_t tools_n;
	struct plan_route *routes;
	size_t routes_n;
	struct plan_resolve *resolves;
	size_t resolves_n;
	const char **warnings; /* to print as "box: warning: …" */
	size_t warnings_n;
};

void plan_fini(struct plan *p);

/* The value of a variable in [table.env], or the empty view with .p NULL. */
sv plan_env(const struct plan_process *proc, sv name);

/* Does this destination cover the request? host is lower case; path is the gateway's canonical
 * path. path may be "" to ask for host and port alone. */
bool plan_dest_covers(const struct plan_dest *d, sv host, uint16_t port, sv path);
/* Can one request be covered by both? */
bool plan_dest_overlaps(const struct plan_dest *a, const struct plan_dest *b);

/* Is this a name that `env` may not claim (1.6): set by the box itself, or loading code
 * (NODE_OPTIONS, LD_*, PYTHON*, …)? HOME and PATH are not among them. Also asked by the monitor for
 * variables that an alias or the shell wants to export. */
bool plan_env_reserved(sv name);
