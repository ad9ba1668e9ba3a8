/* One run, from the configuration to the exit status: the order of start and stop (box-design 4),
 * signals, and what is said on stderr (box-config-and-policy 4.3). Each step may refuse the box;
 * nothing foreign is started before all of them have passed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "base/fd.h"
#include "base/log.h"
#include "config/boxdir.h"
#include "config/config.h"
#include "config/disclose.h"
#include "contain/contain.h"
#include "dogwood/dogwood.h"
#include "monitor/internal.h"
#include "monitor/load.h"
#include "monitor/monitor.h"
#include "monitor/policy.h"
#include "monitor/sweep.h"
#include "base/ban.h"

#define STOP_MS 1000 /* between SIGTERM and SIGKILL */

#define SPARE_MS 25 /* from the start of the agent to that of the first shell in reserve */

struct run {
	const struct monitor_options *o;
	struct plan plan;
	struct boxdir dir;
	enum boxdir_change change;
	struct contain_placeholders placeholders;
	struct monitor m;
	int sigfd;
	struct loop_watch *sig_watch;
	sigset_t old_mask;
	bool started; /* box_started was recorded */
};

void monitor_fail(struct monitor *m, const char *fmt, ...)
{
	struct box_err e = { 0 };
	va_list ap;

	if (!m->failed) {
		va_start(ap, fmt);
		(void)box_vfail(&e, BOX_ESYS, 0, fmt, ap); /* always -1 */
		va_end(ap);
		memcpy(m->why, e.msg, sizeof(m->why));
	}
	m->failed = true;
	if (m->loop != NULL)
		loop_stop(m->loop);
}

void monitor_drain(struct monitor *m)
{
	if (m->draining)
		return; /* a question among what is being taken in: the rest follows it */
	m->draining = true;
	if (m->gateway.chan != NULL)
		chan_drain(m->gateway.chan);
	if (m->dial.chan != NULL)
		chan_drain(m->dial.chan);
	if (m->files.chan != NULL)
		chan_drain(m->files.chan);
	sessions_drain(m);
	m->draining = false;
}

/* ------------------------------------------------------------------------------ before */

/* Before any secret is read: no core, no ptrace, no /proc/<pid>/mem for others. Both are read back.
 */
static int harden(struct box_err *err)
{
	struct rlimit none = { 0, 0 }, now;

	if (setrlimit(RLIMIT_CORE, &none) != 0 || getrlimit(RLIMIT_CORE, &now) != 0 ||
	    now.rlim_max != 0)
		return box_fail(err, BOX_ESYS, errno, "switch core files off");
	if (prctl(PR_SET_DUMPABLE, 0) != 0 || prctl(PR_GET_DUMPABLE) != 0)
		return box_fail(err, BOX_ESYS, errno, "make the process undumpable");
	/* No configuration file, no modules: OPENSSL_CONF and its kin are not ours to follow. */
	if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1)
		return box_fail(err, BOX_ESYS, 0, "start the cryptographic library");
	return 0;
}

static const char *below(struct monitor *m, const char *rest)
{
	return arena_printf(&m->arena, SV_FMT "/%s", SV_ARG(m->plan->box_dir), rest);
}

static int set_paths(struct run *r, struct box_err *err)
{
	struct monitor *m = &r->m;

	m->path = (struct monitor_paths){ .bin = below(m, "bin"),
		.socket = below(m, "run/box.sock"),
		.ca_cert = below(m, "trust/cert.pem"),
		.ca_bundle = below(m, "trust/bundle.pem"),
		.tmp = below(m, "tmp"),
		.records = below(m, "private/telemetry/records.jsonl"),
		.store = below(m, "private/history"),
		.program_dir = r->o->program_dir };
	m->path.box_dir = arena_printf(&m->arena, SV_FMT, SV_ARG(m->plan->box_dir));
	if (m->path.box_dir == NULL || m->path.bin == NULL || m->path.socket == NULL ||
	    m->path.ca_cert == NULL || m->path.ca_bundle == NULL || m->path.tmp == NULL ||
	    m->path.records == NULL || m->path.store == NULL)
		return box_nomem(err, "paths");
	return 0;
}

/* A file for this run alone: made anew at every start, so a crash in between loses nothing and no
 * sync is needed. */
static int write_public(const char *path, sv text, struct box_err *err)
{
	AUTO_FD fd = -1;

	if (unlink(path) != 0 && errno != ENOENT)
		return box_fail(err, BOX_ESYS, errno, "remove the old %s", path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (fd < 0 || fd_write_full(fd, text.p, text.n) != 0)
		return box_fail(err, BOX_ESYS, errno, "write %s", path);
	return 0;
}

/* A fresh authority for this run; its certificate alone, and with the system's roots. */
static int make_trust(struct monitor *m, struct box_err *err)
{
	AUTO_BUF roots = buf_with((size_t)4 << 20), bundle = buf_with(CA_BUNDLE_MAX);
	struct box_err none = { 0 };

	m->ca = ca_new(sv_c(m->box_id), &m->wall, err);
	if (m->ca == NULL)
		return -1;
	if (fd_read_file(MONITOR_SYSTEM_ROOTS, (size_t)4 << 20, &roots, &none) != 0)
		buf_clear(&roots); /* a host without roots: ours alone */
	if (ca_bundle(m->ca, buf_sv(&roots), &bundle, err) != 0)
		return -1;
	if (write_public(m->path.ca_cert, ca_cert_pem(m->ca), err) != 0)
		return -1;
	return write_public(m->path.ca_bundle, buf_sv(&bundle), err);
}

static const char *from_env(const char *name)
{
	return getenv(name);
}

/* -------------------------------------------------------------------------------- report */

static void print_block(const struct buf *b)
{
	if (fd_write_full(STDERR_FILENO, b->p, b->n) != 0)
		return; /* stderr is gone; the box runs on */
}

static int disclose_one(struct run *r, const struct plan_process *p, struct box_err *err)
{
	struct monitor *m = &r->m;
	AUTO_ARENA arena = { .limit = (size_t)16 << 20 };
	AUTO_BUF out = buf_with((size_t)4 << 20);
	struct environ_input in = { .plan = m->plan,
		.proc = p,
		.routes = &m->routes,
		.bin_dir = m->path.bin,
		.ca_cert = m->path.ca_cert,
		.ca_bundle = m->path.ca_bundle,
		.proxy_port = SANDBOX_PROXY_PORT,
		.is_agent = p->kind == PLAN_AGENT };
	struct disclose_minimum *minimum = NULL;
	struct plan_var *env;
	size_t env_n, n = 0;
	sv home = m->plan->home, path = { NULL, 0 };

	if (environ_compose(&in, &arena, &env, &env_n, err) != 0 ||
	    contain_minimum(&arena, p->kind, &minimum, &n, err) != 0)
		return -1;
	for (size_t i = 0; i < env_n; i++) {
		if (sv_eq(env[i].name, SV("HOME")))
			home = env[i].value;
		if (sv_eq(env[i].name, SV("PATH")))
			path = env[i].value;
	}
	disclose_process(m->plan, p, minimum, n, home, path, &out);
	print_block(&out);
	return 0;
}

static int disclose(struct run *r, struct box_err *err)
{
	for (size_t i = 0; i < r->plan.tools_n; i++)
		if (disclose_one(r, &r->plan.tools[i], err) != 0)
			return -1;
	return disclose_one(r, r->plan.agent, err);
}

/* ------------------------------------------------------------------------------- signals */

static void kill_agent(void *arg)
{
	struct monitor *m = arg;

	sandbox_signal_agent(m, SIGKILL);
}

static void on_signal(void *arg, uint32_t events)
{
	struct run *r = arg;
	struct monitor *m = &r->m;
	struct signalfd_siginfo si;

	(void)events;
	while (read(r->sigfd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		int sig = (int)si.ssi_signo;

		if (sig == SIGINT || sig == SIGQUIT) {
			sandbox_signal_agent(m, sig);
			continue;
		}
		if (sig == SIGCONT) { /* fg of a box that ran on in the background */
			terminal_give(&m->terminal);
			continue;
		}
		/* SIGTERM, SIGHUP: the run is over; the agent gets a moment. */
		sandbox_signal_agent(m, SIGTERM);
		if (m->stop_signal == 0 && loop_after(m->loop, STOP_MS, kill_agent, m) == NULL)
			kill_agent(m);
		m->stop_signal = sig;
	}
}

static int watch_signals(struct run *r, struct box_err *err)
{
	static const int caught[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCONT };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
		sigaddset(&set, caught[i]);
	/* Workers and sandboxes are started with the old mask: contain resets it. */
	if (sigprocmask(SIG_BLOCK, &set, &r->old_mask) != 0 ||
	    signal(SIGPIPE, SIG_IGN) == SIG_ERR || signal(SIGTTOU, SIG_IGN) == SIG_ERR)
		return box_fail(err, BOX_ESYS, errno, "set up signals");
	r->sigfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->sigfd < 0)
		return box_fail(err, BOX_ESYS, errno, "signalfd");
	r->sig_watch = loop_watch(r->m.loop, r->sigfd, EPOLLIN, on_signal, r, err);
	return r->sig_watch != NULL ? 0 : -1;
}

/* -------------------------------------------------------------------------------- running */

/* End of each turn: make the turn's decisions durable and release them. */
static void on_turn(void *arg)
{
	struct monitor *m = arg;

	if (!decide_turn(m->decider))
		monitor_fail(m, "policy staging failed: the history cannot be written any more");
}

static void prepare_spare(void *arg)
{
	struct monitor *m = arg;
	struct box_err err = { 0 };

	if (m->stopping || m->agent == NULL)
		return;
	if (fileserver_start(m, &err) != 0)
		monitor_fail(m, "%s", err.msg);
	else
		session_prepare(m);
}

/* Everything up to the point where the box directory is ours and the policy stands. */
static int prepare(struct run *r, struct box_err *err)
{
	struct monitor *m = &r->m;
	AUTO_BUF policy = buf_with(POLICY_MAX);

	if (monitor_load(r->o, &r->plan, err) != 0)
		return -1;
	m->plan = &r->plan;
	if (r->plan.agent == NULL)
		return box_fail(err, BOX_ECONFIG, 0,
		    "the configuration has no `[agent]` table; nothing would run in this box");
	if (boxdir_open(&r->plan, &r->dir, err) != 0 || set_paths(r, err) != 0)
		return -1;
	memcpy(m->box_id, r->dir.id, sizeof(r->dir.id));
	if (config_judge(&r->plan, err) != 0)
		return -1;
	m->rec = record_open(m->path.records, m->box_id, m->wall, err);
	if (m->rec == NULL)
		return -1;
	record_control(m->rec, "box_started", sv_c(m->box_id), NULL);
	r->started = true;
	if (boxdir_check_history(&r->dir, "history", err) != 0 ||
	    policy_open(m, &policy, err) != 0 ||
	    boxdir_commit(&r->dir, &r->plan, buf_sv(&policy), &r->change, err) != 0)
		return -1;
	m->decider = decide_new(m->engine, m->rec, err);
	if (m->decider == NULL)
		return -1;
	if (routes_open(&r->plan, from_env, &m->routes, err) != 0)
		return -1;
	return make_trust(m, err);
}

/* What a sandbox's description refers to: the box's socket, placeholders of absent `deny` entries.
 */
static int make_ready(struct run *r, struct box_err *err)
{
	struct monitor *m = &r->m;

	m->loop = loop_new(m->mono, err);
	if (m->loop == NULL || loop_each_turn(m->loop, on_turn, m) != 0 ||
	    watch_signals(r, err) != 0)
		return -1;
	if (contain_placeholders_make(&r->plan, &r->placeholders, err) != 0 ||
	    broker_open(m, err) != 0)
		return -1;
	return config_verify_sources(&r->plan, err);
}

static int start(struct run *r, struct box_err *err)
{
	struct monitor *m = &r->m;

	log_line("starting workload");
	if (disclose(r, err) != 0)
		return -1;
	terminal_open(&m->terminal);
	if (sandbox_start_agent(m, err) != 0)
		return -1;
	/* What the agent will need first is started beside it, a little later: an agent that ends
	 * at once never pays. */
	(void)loop_after(m->loop, SPARE_MS, prepare_spare, m); /* without memory: on demand */
	return 0;
}

/* Print what each sandbox would be made of; values of variables are left out. */
static int explain(struct run *r, struct box_err *err)
{
	AUTO_BUF out = buf_with((size_t)16 << 20);

	for (size_t i = 0; i < r->plan.tools_n; i++)
		if (sandbox_explain(&r->m, &r->plan.tools[i], &out, err) != 0)
			return -1;
	if (sandbox_explain(&r->m, r->plan.agent, &out, err) != 0)
		return -1;
	if (fd_write_full(STDOUT_FILENO, out.p, out.n) != 0)
		return box_fail(err, BOX_ESYS, errno, "write the plan");
	return 0;
}

static int print_head(struct run *r, struct box_err *err)
{
	AUTO_BUF stores = buf_with((size_t)1 << 20);

	if (r->change == BOXDIR_CREATED)
		log_line("box %s created · config %s", r->m.box_id, r->o->config);
	else if (r->change == BOXDIR_UPDATED)
		log_line("box %s updated · config %s", r->m.box_id, r->o->config);
	disclose_stores(&r->plan, &stores);
	print_block(&stores);
	for (size_t i = 0; i < r->plan.warnings_n; i++)
		log_warn("%s", r->plan.warnings[i]);
	if (sockets_find(&r->m, err) != 0)
		return -1;
	policy_print_warnings(&r->m);
	return 0;
}

/* Wait until every channel has ended: their ends come with the loop's turns. */
static void drain(struct monitor *m)
{
	struct box_err err = { 0 };

	for (int i = 0; i < 200; i++) {
		if (m->sessions == NULL && m->aliases == NULL && m->files.chan == NULL &&
		    m->gateway.chan == NULL && m->dial.chan == NULL)
			return;
		if (loop_turn(m->loop, 10, &err) != 0)
			return;
	}
}

static void empty_tmp(struct monitor *m)
{
	struct box_err err = { 0 };
	AUTO_FD fd = open(m->path.tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && sweep_dir(fd, &err) != 0)
		log_warn("%s", err.msg);
}

static void stop(struct run *r)
{
	struct monitor *m = &r->m;

	m->stopping = true;
	if (m->loop != NULL) {
		sandboxes_end(m);
		terminal_take(&m->terminal); /* the agent is gone */
		sessions_end(m);
		broker_close(m);
		egress_end(m);
		if (m->files.chan != NULL)
			chan_end(m->files.chan);
		drain(m);
		loop_unwatch(m->loop, r->sig_watch);
	}
	fd_drop(&r->sigfd);
	if (m->decider != NULL)
		(void)decide_turn(m->decider); /* a broken history was reported when it broke */
	policy_close(m);
	contain_placeholders_remove(&r->placeholders);
	if (r->started) {
		empty_tmp(m);
		record_control(m->rec, "box_stopped", sv_c(m->box_id), m->failed ? m->why : NULL);
	}
	record_close(m->rec);
	decide_free(m->decider);
	loop_free(m->loop);
	routes_fini(&m->routes);
	ca_free(m->ca);
	boxdir_close(&r->dir);
	arena_free(&m->arena);
	plan_fini(&r->plan);
}

static void init(struct run *r, const struct monitor_options *o)
{
	*r = (struct run){ .o = o, .sigfd = -1 };
	r->dir = (struct boxdir)BOXDIR_INIT;
	r->m = (struct monitor){ .broker_fd = -1,
		.exit_status = 1,
		.next_session = 1,
		.next_sandbox = 1,
		.wall = clock_wall(),
		.mono = clock_mono(),
		.arena = { .limit = (size_t)64 << 20 } };
}

int monitor_run(const struct monitor_options *o)
{
	struct run *r = calloc(1, sizeof(*r));
	struct box_err err = { 0 };
	int status = 1;

	if (r == NULL) {
		log_error("out of memory");
		return 1;
	}
	init(r, o);
	if (harden(&err) != 0 || prepare(r, &err) != 0 || print_head(r, &err) != 0) {
		log_error("%s", err.msg);
	} else {
		if (make_ready(r, &err) != 0 ||
		    (o->explain ? explain(r, &err) != 0
		                : start(r, &err) != 0 || loop_run(r->m.loop, &err) != 0))
			monitor_fail(&r->m, "%s", err.msg);
		if (r->m.failed)
			log_error("%s", r->m.why);
		else
			status = o->explain ? 0 : r->m.exit_status;
	}
	if (err.msg[0] != '\0' && !r->m.failed) {
		r->m.failed = true;
		memcpy(r->m.why, err.msg, sizeof(r->m.why));
	}
	stop(r);
	free(r);
	return status;
}
