/* box-files as the monitor sees it: what it may reach, what is protected, and the decisions it asks
 * for. See files/proto.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "config/floor.h"
#include "config/path.h"
#include "files/proto.h"
#include "monitor/internal.h"
#include "base/ban.h"

#define STATE_NEW  1U
#define STATE_LIVE 2U

struct roots {
	struct buf body;
	uint16_t n;
	struct worker_path *paths;
	size_t paths_n;
};

static void add_root(struct roots *r, sv path, bool write)
{
	if (path.n == 0 || r->n == FILES_ROOTS_MAX)
		return;
	buf_put_byte(&r->body, write ? FILES_ROOT_WRITE : 0);
	buf_put_str(&r->body, path);
	r->n++;
	/* Paths of a plan are NUL-terminated. One that is gone by now needs no rule. */
	if (access(path.p, F_OK) == 0)
		r->paths[r->paths_n++] =
		    (struct worker_path){ path.p, WORKER_R_READ | (write ? WORKER_R_WRITE : 0U) };
}

static void add_protected(struct buf *b, uint16_t *n, enum files_protect why, const char *path)
{
	struct stat st = { 0 };

	if (lstat(path, &st) != 0)
		st = (struct stat){ 0 };
	buf_put_byte(b, (uint8_t)why);
	buf_put_str(b, sv_c(path));
	buf_put_u64(b, st.st_dev);
	buf_put_u64(b, st.st_ino);
	(*n)++;
}

static bool in_roots(const struct roots *r, sv path)
{
	struct rd b = rd_of(r->body.p, r->body.n);

	while (rd_left(&b) != 0) {
		(void)rd_u8(&b);
		if (path_within(path, rd_str(&b, MON_PATH_MAX)))
			return true;
	}
	return false;
}

/* Home, workspace, the agent's HOME, and what the agent's lists grant. */
static void collect_roots(struct monitor *m, struct roots *r)
{
	const struct plan_process *a = m->plan->agent;

	add_root(r, m->plan->home, true);
	add_root(r, a->workspace, true);
	add_root(r, plan_env(a, SV("HOME")), true);
	for (size_t i = 0; i < a->grants_n; i++) {
		const struct plan_grant *g = &a->grants[i];

		if (g->list == PLAN_READ || g->list == PLAN_READ_FILE || g->list == PLAN_LIST)
			add_root(r, g->path, false);
		else if (g->list == PLAN_WRITE || g->list == PLAN_WRITE_FILE)
			add_root(r, g->path, true);
	}
}

static int send_start(struct monitor *m, struct roots *r, struct box_err *err)
{
	AUTO_BUF b = buf_with(IPC_BODY_MAX), prot = buf_with(IPC_BODY_MAX);
	AUTO_FD tmp = open(m->path.tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	const struct floor_homes homes = { m->plan->home, plan_env(m->plan->agent, SV("HOME")) };
	const sv *places;
	size_t places_n;
	uint16_t n = 0;
	int fd;

	if (tmp < 0)
		return box_fail(err, BOX_ESYS, errno, "open %s", m->path.tmp);
	add_protected(&prot, &n, FILES_PROT_BOX, m->path.box_dir);
	add_protected(&prot, &n, FILES_PROT_AUTHORITY, m->plan->config_path.p);
	if (m->plan->policy_path.n != 0)
		add_protected(&prot, &n, FILES_PROT_AUTHORITY, m->plan->policy_path.p);
	if (floor_places(&m->arena, homes, &places, &places_n) != 0)
		return box_nomem(err, "the floor");
	for (size_t i = 0; i < places_n; i++)
		if (in_roots(r, places[i])) /* the others are outside of everything */
			add_protected(&prot, &n, FILES_PROT_CREDENTIAL, places[i].p);
	for (size_t i = 0; i < m->plan->agent->grants_n; i++)
		if (m->plan->agent->grants[i].list == PLAN_DENY)
			add_protected(&prot, &n, FILES_PROT_DENY, m->plan->agent->grants[i].path.p);
	buf_put_str(&b, m->plan->home);
	buf_put_u16(&b, r->n);
	buf_put_sv(&b, buf_sv(&r->body));
	buf_put_u16(&b, n);
	buf_put_sv(&b, buf_sv(&prot));
	buf_put_u16(&b, 0);
	if (!buf_ok(&b))
		return box_fail(err, BOX_ELIMIT, 0, "too many paths for box-files");
	fd = tmp;
	chan_send(m->files.chan, MON_START, 0, &b, &fd, 1);
	return 0;
}

/* ---------------------------------------------------------------------------- requests */

static int on_hello(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct monitor *m = ctx;

	if (!crew_hello_ok(msg, err))
		return -1;
	chan_set_state(m->files.chan, STATE_LIVE);
	m->files.ready = true;
	return 0;
}

static int on_ask(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct monitor *m = ctx;
	AUTO_ARENA arena = { .limit = (size_t)1 << 20 };
	struct ask *asks;
	uint16_t n;

	(void)rd_u32(&msg->body); /* the session: one principal, so nothing hangs on it */
	n = rd_u16(&msg->body);
	if (msg->body.bad || n == 0 || n > MON_BATCH_MAX)
		return box_fail(err, BOX_EDENIED, 0, "a malformed batch");
	asks = ARENA_VEC(&arena, struct ask, n);
	if (asks == NULL)
		return box_nomem(err, "a batch");
	for (uint16_t i = 0; i < n; i++) {
		asks[i].kind = ASK_FS;
		asks[i].op = rd_u8(&msg->body);
		asks[i].path = rd_str(&msg->body, MON_PATH_MAX);
		if (ask_fs_operation(asks[i].op) == NULL)
			return box_fail(err, BOX_EDENIED, 0, "an unknown file operation");
	}
	if (!rd_done(&msg->body))
		return box_fail(err, BOX_EDENIED, 0, "a malformed batch");
	monitor_drain(m);
	return chan_decide(m->files.chan, msg->id, asks, n, (sv){ NULL, 0 }, err);
}

static int on_done(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct monitor *m = ctx;
	uint64_t ticket = rd_u64(&msg->body);
	uint8_t result = rd_u8(&msg->body);

	if (!rd_done(&msg->body))
		return box_fail(err, BOX_EDENIED, 0, "a malformed outcome");
	return decide_done_fs(m->decider, chan_owner(m->files.chan), ticket, result, err);
}

static int on_abandon(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct monitor *m = ctx;
	uint64_t ticket = rd_u64(&msg->body);
	uint16_t n = rd_u16(&msg->body);

	if (!rd_done(&msg->body))
		return box_fail(err, BOX_EDENIED, 0, "a malformed outcome");
	return decide_abandon(m->decider, chan_owner(m->files.chan), ticket, n, err);
}

static int on_floor(void *ctx, struct ipc_msg *msg, struct box_err *err)
{
	struct monitor *m = ctx;
	uint64_t ticket = rd_u64(&msg->body);
	uint16_t n = rd_u16(&msg->body);
	struct ask a = { .kind = ASK_FS };
	sv reason;

	a.op = rd_u8(&msg->body);
	a.path = rd_str(&msg->body, MON_PATH_MAX);
	reason = rd_str(&msg->body, MON_REASON_MAX);
	if (!rd_done(&msg->body) || ask_fs_operation(a.op) == NULL)
		return box_fail(err, BOX_EDENIED, 0, "a malformed floor record");
	decide_note_enforcement(m->decider, &a, "reach-floor", reason);
	return decide_abandon(m->decider, chan_owner(m->files.chan), ticket, n, err);
}

static const struct ipc_rule table[] = {
	{ MON_HELLO, "HELLO", STATE_NEW, 0, 0, 256, on_hello },
	{ MON_FATAL, "FATAL", STATE_NEW | STATE_LIVE, 0, 0, MON_REASON_MAX + 8, crew_on_fatal },
	{ MON_ASK_FS, "ASK_FS", STATE_LIVE, 0, 0, IPC_BODY_MAX, on_ask },
	{ MON_DONE_FS, "DONE_FS", STATE_LIVE, 0, 0, 16, on_done },
	{ MON_ABANDON, "ABANDON", STATE_LIVE, 0, 0, 16, on_abandon },
	{ MON_FLOOR, "FLOOR", STATE_LIVE, 0, 0, MON_PATH_MAX + MON_REASON_MAX + 64, on_floor },
	{ 0 },
};

/* Without box-files no shell can touch a file: the box stops rather than going on half. */
static void on_end(void *ctx, const char *why)
{
	struct monitor *m = ctx;

	m->files.chan = NULL;
	crew_end(&m->files);
	if (!m->stopping)
		monitor_fail(m, "box-files ended: %s", why != NULL ? why : "it closed its channel");
}

static const struct chan_ops ops = { "box-files", table, on_end };

int fileserver_start(struct monitor *m, struct box_err *err)
{
	struct roots r = { .body = buf_with(IPC_BODY_MAX) };
	int status = -1;

	if (m->files.chan != NULL)
		return 0;
	r.paths = arena_alloc(&m->arena, m->plan->agent->grants_n + 4, sizeof(r.paths[0]));
	if (r.paths == NULL)
		return box_nomem(err, "the roots");
	collect_roots(m, &r);
	r.paths[r.paths_n++] = (struct worker_path){ m->path.tmp, WORKER_R_READ | WORKER_R_WRITE };
	if (crew_start(m, &m->files, "box-files", WORKER_FILES, r.paths, r.paths_n, &ops, m, err) ==
	        0 &&
	    send_start(m, &r, err) == 0)
		status = 0;
	buf_fini(&r.body);
	return status;
}

void fileserver_client(struct monitor *m, uint32_t session, int fd)
{
	AUTO_BUF b = buf_with(64);

	if (m->files.chan == NULL)
		return;
	buf_put_u32(&b, session);
	chan_send(m->files.chan, MON_CLIENT, 0, &b, &fd, 1);
}
