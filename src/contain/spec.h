/* spec: everything box-launch needs to build one sandbox and start one program in it, as plain
 * data. Plan first, apply later: sandbox_spec_build turns a plan (src/config) into an ordered list
 * of operations that can be printed, tested and sent; box-launch only executes the list and decides
 * nothing.
 *
 * Paths named `dst` are paths of the new view; `src` are paths of the host. Every string is
 * NUL-terminated and lives in the spec's arena. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/sv.h"
#include "config/disclose.h"
#include "config/plan.h"

#define SANDBOX_SPEC_VERSION 1
#define SANDBOX_SPEC_MAX     ((size_t)8 << 20) /* bytes of a serialised spec */
#define SANDBOX_OPS_MAX      20000
#define SANDBOX_RULES_MAX    20000
#define SANDBOX_STRS_MAX     65536 /* arguments, and variables, each */

/* Where the broker's socket appears in the agent's view. The alias uses exactly this path. */
#define SANDBOX_BROKER_PATH "/run/boxwood/box.sock"
/* The only way out: the gateway's listener inside the sandbox's own network namespace. */
#define SANDBOX_PROXY_PORT 3128
#define SANDBOX_USER       "strands-box"

/* One step of building the view, in the order they are executed. The root is an empty tmpfs to
 * begin with. A `dst` never has a symbolic link in it, and a directory or file is only ever created
 * in tmpfs of our own, never through a bind of a host tree. */
enum sandbox_op_kind {
	SANDBOX_DIR = 1, /* mkdir dst with mode; one that exists is fine */
	SANDBOX_FILE,    /* dst with this content and mode */
	SANDBOX_LINK,    /* symbolic link dst -> src (the text of the link) */
	SANDBOX_TMPFS,   /* a fresh tmpfs over dst, with mode and flags; `size` bytes at most */
	SANDBOX_BIND, /* src, still (dev, ino), over dst; a missing dst is made in our own mounts */
	SANDBOX_PROC, /* a fresh procfs over dst */
	SANDBOX_DEVPTS,  /* a fresh devpts over dst */
	SANDBOX_CONSOLE, /* the terminal on standard input over dst */
	SANDBOX_COVER,   /* hide dst: an empty unreadable directory or file over it */
	SANDBOX_PIN,     /* bind directory dst on itself, so that it cannot be renamed or removed */
	SANDBOX_SEAL     /* make the mount at dst read-only (last, for "/") */
};

/* Of an operation that mounts; nosuid is always set. */
enum sandbox_op_flags {
	SANDBOX_RO = 1 << 0,       /* mount read-only */
	SANDBOX_NOEXEC = 1 << 1,   /* no execve, no PROT_EXEC mapping */
	SANDBOX_DEVICE = 1 << 2,   /* device nodes work here (else nodev) */
	SANDBOX_OPTIONAL = 1 << 3, /* a missing source or target is not an error (masks of /proc) */
	SANDBOX_IS_DIR = 1 << 4,   /* BIND: the source is a directory */
	SANDBOX_OWN = 1 << 5 /* BIND: the box's own <BD>/tmp; mount points may be made in it */
};

struct sandbox_op {
	enum sandbox_op_kind kind;
	uint32_t flags;
	const char *src; /* NULL where the kind has none */
	const char *dst;
	sv content; /* FILE */
	uint32_t mode;
	uint64_t size;     /* TMPFS; 0: half of memory */
	uint64_t dev, ino; /* BIND: identity that was judged; ino 0: not compared */
};

/* Rights of one Landlock rule. They hold for the object and, for a directory, everything below.
 * Nothing is given where no rule gives it; stat, chdir, readlink and open with O_PATH need no
 * right. */
enum sandbox_right {
	SANDBOX_R_READ = 1 << 0,  /* read files */
	SANDBOX_R_LIST = 1 << 1,  /* read directories */
	SANDBOX_R_WRITE = 1 << 2, /* write and truncate files */
	SANDBOX_R_MAKE = 1 << 3,  /* create, remove, rename, link anything but devices */
	SANDBOX_R_EXEC = 1 << 4,  /* execve */
	SANDBOX_R_IOCTL = 1 << 5  /* ioctl on device nodes */
};

struct sandbox_rule {
	const char *path; /* in the view */
	uint32_t rights;
	bool optional; /* the path may be missing */
};

enum sandbox_net {
	SANDBOX_NET_NONE = 0, /* loopback only, no listener */
	SANDBOX_NET_PROXY /* and a listener on 127.0.0.1:SANDBOX_PROXY_PORT that is passed out */
};

struct sandbox_limit {
	int32_t resource; /* RLIMIT_* */
	uint64_t soft, hard;
};

struct sandbox_spec {
	struct arena arena;
	const char *label; /* "[agent]" or "[tool.x]", for messages */
	struct sandbox_op *ops;
	size_t ops_n;
	struct sandbox_rule *rules;
	size_t rules_n;
	enum sandbox_net net;
	const char *program;     /* path in the view that is executed */
	const char *const *argv; /* argv_n entries, then NULL */
	size_t argv_n;
	const char *const *envp; /* "NAME=value", then NULL */
	size_t envp_n;
	const char *cwd; /* in the view */
	const char *hostname;
	uint32_t uid, gid; /* inside and outside: mapped 1:1 */
	uint32_t umask;
	/* Standard input is a terminal that the program is to own: a foreground process group of
	 * its own in the caller's session. false: a session of its own, without a terminal. */
	bool tty;
	struct sandbox_limit *limits;
	size_t limits_n;
};

/* What the plan does not know. Pointers are borrowed for the call; NULL means "none" where nothing
 * else is said. */
struct sandbox_extra {
	const char *box_dir;   /* <BD>, canonical. A grant that would show it is refused */
	const char *tmp_dir;   /* <BD>/tmp, exists; bound at /tmp. Required */
	const char *ca_cert;   /* the run's CA certificate, shown under its own path */
	const char *ca_bundle; /* system roots and ours: under its own path and where programs look
	                        * for the system's (/etc/ssl/certs/ca-certificates.crt, …) */

	/* Agent only: the alias program on the host, shown as <BD>/bin/NAME and over the absolute
	 * interpreter paths, for each of alias_names ("sh", "bash", "zsh", …). */
	const char *alias_image;
	const char *const *alias_names;
	size_t alias_names_n;
	const char *broker_socket; /* agent only: on the host, shown at SANDBOX_BROKER_PATH */

	const struct plan_var *env; /* the complete environment, already composed (4.4) */
	size_t env_n;
	const char *const *argv; /* the complete vector; NULL: from the plan (see plan.h) */
	size_t argv_n;
	/* Canonical executable to start in place of proc->program: one that an `exec` entry of the
	 * agent covers, in a leaf with the agent's lists. NULL: proc->program, reached through
	 * proc->program_route. */
	const char *program;
	/* Sockets of the host below its folders that are covered (contain_sockets); one that is
	 * gone by now is no error. */
	const char *const *sockets;
	size_t sockets_n;
	const char *cwd; /* NULL: proc->workspace, or "/" */
	const char
	    *path_var; /* where "#!/usr/bin/env NAME" looks. NULL: PATH of env, of the plan */

	bool leaf;       /* the wider runtime set (6.3), no alias, no broker. Implied for a tool */
	bool tty;        /* standard input is a terminal: see sandbox_spec */
	bool no_network; /* SANDBOX_NET_NONE */
};

/* Build the list for one start of one process of a judged plan. Reads the file system (ELF headers,
 * #! lines, links), creates nothing. On success the caller ends *out with sandbox_spec_fini.
 * Messages name table and path. Refused with BOX_ECONFIG: contain_egress = false (no user-mode path
 * out in this version), a `deny` entry that is absent below a granted directory and has no
 * placeholder (contain_placeholders_make). */
int sandbox_spec_build(const struct plan *p, const struct plan_process *proc,
    const struct sandbox_extra *x, struct sandbox_spec *out, struct box_err *err);
void sandbox_spec_fini(struct sandbox_spec *s);

/* Serialise (at most SANDBOX_SPEC_MAX bytes) and read back. get() checks versions, bounds, that
 * every path is absolute without "." and "..", enums and flags; *out is always safe to
 * sandbox_spec_fini. */
int sandbox_spec_put(const struct sandbox_spec *s, struct buf *out, struct box_err *err);
int sandbox_spec_get(sv bytes, struct sandbox_spec *out, struct box_err *err);
/* One line an operation, rule, variable name and limit; values of variables are not printed. For
 * --explain and tests. */
void sandbox_spec_print(const struct sandbox_spec *s, struct buf *out);
