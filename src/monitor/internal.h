/* The monitor of one run, as its own files see it. Everything hangs from struct monitor; there is
 * no other state.
 *
 *   run.c         order of start and stop, signals, the report
 *   crew.c        starting and ending our own worker programs
 *   fileserver.c  box-files
 *   egress.c      box-gateway and box-dial, started on first use
 *   broker.c      the box's socket: aliases
 *   session*.c    one box-shell: one command of an alias
 *   sandbox.c     agent and tools: specs, launch, exit
 *   spawn.c       names of host programs
 *   decide.c      policy; record.c records
 *   terminal.c    the operator's terminal
 *   sockets.c     sockets of the host below granted folders */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "config/plan.h"
#include "contain/worker.h"
#include "launch/launch.h"
#include "monitor/ca.h"
#include "monitor/chan.h"
#include "monitor/decide.h"
#include "monitor/environ.h"
#include "monitor/loop.h"
#include "monitor/record.h"
#include "monitor/routes.h"
#include "monitor/terminal.h"

struct dogwood_engine;
struct monitor;
struct session;
struct sandbox;
struct egress_listener;

/* The host's certificates, as Debian's ca-certificates installs them. */
#define MONITOR_SYSTEM_ROOTS "/etc/ssl/certs/ca-certificates.crt"
#define MONITOR_WARNINGS_MAX 64

/* Paths below the box directory (box-config-and-policy 4.6), all absolute. */
struct monitor_paths {
	const char *box_dir, *bin, *socket, *ca_cert, *ca_bundle, *tmp, *records, *store;
	const char *program_dir; /* where box and its helpers are */
};

/* A socket of the host below what a table grants (sockets.c). */
struct hidden_socket {
	struct hidden_socket *next;
	const struct plan_process *proc;
	const char *path;
	bool hide;
};

/* One of our own programs: a process and its channel. */
struct crew {
	struct monitor *m;
	const char *program; /* "box-files" */
	pid_t pid;
	int pidfd;
	struct chan *chan;
	bool ready; /* HELLO was received */
};

struct monitor {
	const struct plan *plan;
	struct arena arena; /* lives as long as the run */
	struct monitor_paths path;
	char box_id[32];
	struct clock wall, mono;
	struct loop *loop;
	struct decider *decider;
	struct recorder *rec;
	struct dogwood_engine *engine;
	const char *warnings[MONITOR_WARNINGS_MAX]; /* of the policy, at load */
	size_t warnings_n;
	struct ca *ca;
	struct routes routes;

	struct crew files, dial, gateway;
	struct egress_listener *listeners;
	struct session *sessions;
	struct session *spare; /* started, not yet given a command */
	size_t sessions_n;
	uint32_t next_session;
	struct sandbox *sandboxes;
	struct hidden_socket *sockets;
	struct sandbox *agent;
	struct terminal terminal;
	uint32_t next_sandbox;
	int broker_fd;
	struct loop_watch *broker_watch;
	struct alias *aliases;
	size_t aliases_n;
	unsigned alias_warnings;

	int exit_status; /* of the run */
	bool agent_ended;
	bool draining; /* inside monitor_drain */
	bool stopping;
	int stop_signal; /* SIGTERM, SIGHUP: why the run is being stopped */
	bool failed;     /* the box itself failed */
	char why[BOX_ERR_MSG_MAX];
};

/* Before a question is decided: take in every outcome that its asker, or whoever acted on another
 * worker's answer, may already have seen. Channels are ordered in themselves only. */
void monitor_drain(struct monitor *m);
/* The box cannot go on: remember the first reason, stop the loop. */
void monitor_fail(struct monitor *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* sockets.c. Look for sockets of the host below what each table grants, once, and say them; which
 * of them the view of a process covers. */
int sockets_find(struct monitor *m, struct box_err *err);
const char *const *sockets_hidden(
    const struct monitor *m, const struct plan_process *proc, struct arena *arena, size_t *n);

/* crew.c. Start a worker: its channel is watched with table ops at once. extra descriptors stay the
 * caller's. */
int crew_start(struct monitor *m, struct crew *c, const char *program, enum worker_profile profile,
    const struct worker_path *paths, size_t paths_n, const struct chan_ops *ops, void *ctx,
    struct box_err *err);
/* Handlers shared by all worker tables: MON_HELLO moves the channel to state 2; MON_FATAL ends the
 * box. ctx is the worker's own. */
bool crew_hello_ok(struct ipc_msg *m, struct box_err *err);
/* The row of MON_FATAL in every worker's table: always -1, with the worker's text made safe. */
int crew_on_fatal(void *ctx, struct ipc_msg *m, struct box_err *err);
/* Kill, without waiting: for workers that would complain about each other's end. */
void crew_kill(struct crew *c);
/* Kill and reap; returns the wait status. The channel is the caller's to end. */
int crew_end(struct crew *c);

/* fileserver.c */
int fileserver_start(struct monitor *m, struct box_err *err);
/* Hand box-files the far end of a client's channel. The descriptor stays the caller's. */
void fileserver_client(struct monitor *m, uint32_t session, int fd);

/* egress.c: the gateway and the dialler, started on first use. */
/* A sandbox's listener: watched until the first connection, when the gateway is started; then
 * handed over. Takes fd. */
int egress_listener(
    struct monitor *m, uint32_t sandbox, const char *label, int fd, struct box_err *err);
/* The sandbox is gone. */
void egress_unlisten(struct monitor *m, uint32_t sandbox);
void egress_end(struct monitor *m);

/* session.c */
struct alias;
/* Keep one box-shell in reserve. */
void session_prepare(struct monitor *m);
/* Give the command of an alias to a shell. Takes nothing; *out is the session, which calls
 * alias_exit when the command ended. */
int session_run(struct monitor *m, struct alias *a, struct session **out, struct box_err *err);
void session_signal(struct session *s, int sig);
/* Has the command stopped, with its programs, after SIGTSTP? */
bool session_stopped(const struct session *s);
/* The alias is gone: hang up. */
void session_hangup(struct session *s);
void sessions_end(struct monitor *m);
void sessions_drain(struct monitor *m);
/* What became of a tool that the session asked for: its view was built and the program executed; it
 * could not be started (text for the agent); it ended. */
void session_tool_started(struct session *s, uint32_t tool);
void session_tool_refused(struct session *s, uint32_t tool, const char *text);
void session_tool_exited(struct session *s, uint32_t tool, int wait_status);

/* broker.c */
int broker_open(struct monitor *m, struct box_err *err);
void broker_close(struct monitor *m);
void alias_exit(struct alias *a, int status);
void alias_refuse(struct alias *a, const char *reason);

/* What an alias sent, for session.c. */
struct alias_command {
	const char *name, *zero, *cwd;
	uint32_t flags; /* ALIAS_F_* */
	struct buf text;
	struct buf args; /* str … */
	uint32_t args_n;
	struct buf env; /* str "NAME=value" … */
	uint32_t env_n;
	int fds[4]; /* 0, 1, 2, script or -1 */
};
const struct alias_command *alias_command(const struct alias *a);

/* sandbox.c */
int sandbox_start_agent(struct monitor *m, struct box_err *err);
/* Append the plan of one process's sandbox, for `box run --explain`. */
int sandbox_explain(
    struct monitor *m, const struct plan_process *proc, struct buf *out, struct box_err *err);
struct tool_start {
	struct session *session;
	uint32_t tool;
	sv program_path;         /* canonical, absolute */
	const char *const *argv; /* complete, NULL-terminated */
	size_t argv_n;
	const char *cwd;
	const struct plan_var *exported;
	size_t exported_n;
	int stdio[3];
};
/* Which table runs this program with these arguments: the longest matching command; the agent's own
 * lists when an `exec` entry covers it. NULL with text (no prefix). */
const struct plan_process *sandbox_tool_for(struct monitor *m, sv program_path,
    const char *const *argv, size_t argv_n, bool *by_exec, struct box_err *err);
/* The credential stores that the tables of this program name, as authored: `credential_reads` of
 * shell:spawn. Borrowed from the run. */
const sv *sandbox_credential_reads(struct monitor *m, sv program_path, size_t *n);
int sandbox_start_tool(struct monitor *m, const struct tool_start *t, struct box_err *err);
void sandbox_signal_tool(struct monitor *m, const struct session *s, uint32_t tool, int sig);
bool sandbox_stopped(const struct monitor *m, const struct session *s);
/* Is no child of this process running (stopped.c)? Also true when that cannot be known. */
bool children_stopped(pid_t reaper);
/* End the tools of a session that is over. */
void sandbox_end_session(struct monitor *m, const struct session *s);
void sandbox_signal_agent(struct monitor *m, int sig);
void sandboxes_end(struct monitor *m);
