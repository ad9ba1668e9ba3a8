/* The worker's half of worker.h. Order matters: the view first (needs capabilities), then the
 * capabilities go, then Landlock, then the filter. Up to here no byte from outside was read; the
 * card comes from the monitor. */
#include "contain/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/rd.h"
#include "contain/apply.h"
#include "contain/filter.h"
#include "contain/ns.h"
#include "contain/reap.h"
#include "contain/worker_card.h"
#include "base/ban.h"

#if defined(__SANITIZE_ADDRESS__)
/* A confined process cannot be traced by the leak checker; without this it would end with its
 * complaint. Checked by the unconfined unit tests instead. */
static int confined;
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return confined;
}
#define MARK_CONFINED() (confined = 1)
#else
#define MARK_CONFINED() ((void)0)
#endif

struct card {
	struct sandbox_rule *rules;
	size_t rules_n;
	uint32_t uid, gid;
};

static int card_read(
    enum worker_profile profile, struct arena *a, struct card *out, struct box_err *err)
{
	AUTO_BUF b = buf_with(WORKER_CARD_MAX);
	AUTO_FD fd = WORKER_CARD_FD;
	int seals = fcntl(fd, F_GET_SEALS);
	struct rd r;
	uint32_t version, got, n;

	if (seals < 0 || !(seals & F_SEAL_WRITE))
		return box_fail(err, BOX_EDENIED, 0,
		    "this program is a part of box and is started by `box run`, not by hand");
	if (fd_read_all(fd, &b, "the worker's card", err) < 0)
		return -1;
	r = rd_of(b.p, b.n);
	version = rd_u32(&r);
	got = rd_u32(&r);
	out->uid = rd_u32(&r);
	out->gid = rd_u32(&r);
	(void)rd_str(&r, PATH_MAX);
	n = rd_u32(&r);
	if (r.bad || version != WORKER_CARD_VERSION || n > WORKER_PATHS_MAX)
		return box_fail(err, BOX_EPARSE, 0,
		    "box and its workers are of different versions: reinstall both");
	if (got != (uint32_t)profile)
		return box_fail(err, BOX_EDENIED, 0, "started for another profile (%u)", got);
	out->rules = ARENA_VEC(a, struct sandbox_rule, n);
	out->rules_n = n;
	for (uint32_t i = 0; i < n && !r.bad; i++) {
		sv path = arena_dup(a, rd_str(&r, PATH_MAX));
		uint32_t rights = rd_u32(&r);

		if (out->rules == NULL || path.p == NULL)
			return box_nomem(err, "the worker's paths");
		out->rules[i].path = path.p;
		if (rights & WORKER_R_READ)
			out->rules[i].rights |= SANDBOX_R_READ | SANDBOX_R_LIST;
		if (rights & WORKER_R_WRITE)
			out->rules[i].rights |= SANDBOX_R_WRITE | SANDBOX_R_MAKE;
	}
	if (!rd_done(&r))
		return box_fail(err, BOX_EPARSE, 0, "the worker's card is damaged");
	return 0;
}

static int limits(enum worker_profile profile, struct box_err *err)
{
	/* Only the shell forks; counted in its own user namespace. A script's fork bomb ends there.
	 */
	if (profile == WORKER_SHELL && ns_limit(RLIMIT_NPROC, 1024, 1024) < 0)
		return box_fail(err, BOX_ESYS, errno, "lower the resource limits");
	if (ns_limit(RLIMIT_CORE, 0, 0) < 0 || ns_limit(RLIMIT_MEMLOCK, 1 << 16, 1 << 16) < 0)
		return box_fail(err, BOX_ESYS, errno, "lower the resource limits");
	return 0;
}

/* An empty root that nothing can be made in. */
static int view_empty(struct box_err *err)
{
	static const struct sandbox_op ops[] = { { .kind = SANDBOX_SEAL, .dst = "/" } };

	return apply_view(ops, 1, -1, err);
}

/* What getaddrinfo reads. A link such as /etc/resolv.conf is followed once, now, and its target
 * shown under the name in /etc: when the host replaces the target later this worker keeps the old
 * one, except for systemd-resolved, whose directory is shown as it is. */
static const char *const resolver_files[] = { "/etc/resolv.conf", "/etc/hosts",
	"/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services", "/etc/protocols",
	"/etc/ld.so.cache" };
static const char *const resolver_dirs[] = { "/lib", "/lib64", "/usr/lib", "/usr/lib64" };
#define RESOLVED_DIR "/run/systemd/resolve"

struct ops {
	struct arena *a;
	struct sandbox_op v[64];
	size_t n;
	struct sandbox_rule rules[64];
	size_t rules_n;
};

static void ops_add(struct ops *o, struct sandbox_op op)
{
	if (o->n < sizeof(o->v) / sizeof(o->v[0]))
		o->v[o->n++] = op;
}

static void ops_rule(struct ops *o, const char *path, uint32_t rights)
{
	if (o->rules_n < sizeof(o->rules) / sizeof(o->rules[0]))
		o->rules[o->rules_n++] = (struct sandbox_rule){ path, rights, true };
}

static void ops_dir(struct ops *o, const char *path)
{
	ops_add(o, (struct sandbox_op){ .kind = SANDBOX_DIR, .dst = path, .mode = 0755 });
}

/* One library directory: a tree, or the link that merged-/usr systems have there. */
static void dial_dir(struct ops *o, const char *path)
{
	char text[PATH_MAX];
	ssize_t n = readlink(path, text, sizeof(text) - 1);
	struct stat st;

	if (n > 0) {
		const char *copy = arena_dup(o->a, (sv){ text, (size_t)n }).p;

		if (copy != NULL)
			ops_add(o,
			    (struct sandbox_op){ .kind = SANDBOX_LINK, .src = copy, .dst = path });
		return;
	}
	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return;
	ops_add(o, (struct sandbox_op){ .kind = SANDBOX_BIND,
	               .flags = SANDBOX_RO | SANDBOX_IS_DIR,
	               .src = path,
	               .dst = path,
	               .dev = (uint64_t)st.st_dev,
	               .ino = (uint64_t)st.st_ino });
	ops_rule(o, path, SANDBOX_R_READ | SANDBOX_R_LIST);
}

static void dial_file(struct ops *o, const char *path)
{
	char real[PATH_MAX];
	const char *copy;
	struct stat st;

	if (realpath(path, real) == NULL || stat(real, &st) < 0 || !S_ISREG(st.st_mode))
		return;
	copy = arena_dup(o->a, sv_c(real)).p;
	if (copy == NULL)
		return;
	if (sv_starts(sv_c(real), SV(RESOLVED_DIR "/"))) {
		ops_add(o, (struct sandbox_op){ .kind = SANDBOX_LINK, .src = copy, .dst = path });
		return;
	}
	ops_add(o, (struct sandbox_op){ .kind = SANDBOX_BIND,
	               .flags = SANDBOX_RO | SANDBOX_NOEXEC,
	               .src = copy,
	               .dst = path,
	               .dev = (uint64_t)st.st_dev,
	               .ino = (uint64_t)st.st_ino });
	ops_rule(o, path, SANDBOX_R_READ);
}

static int view_dial(struct arena *a, struct card *card, struct box_err *err)
{
	struct ops *o = ARENA_NEW(a, struct ops);
	struct stat st;

	if (o == NULL)
		return box_nomem(err, "the resolver's view");
	o->a = a;
	ops_dir(o, "/etc");
	ops_dir(o, "/usr");
	ops_dir(o, "/run");
	ops_dir(o, "/run/systemd");
	ops_dir(o, RESOLVED_DIR);
	if (lstat(RESOLVED_DIR, &st) == 0 && S_ISDIR(st.st_mode)) {
		ops_add(o, (struct sandbox_op){ .kind = SANDBOX_BIND,
		               .flags = SANDBOX_RO | SANDBOX_NOEXEC | SANDBOX_IS_DIR,
		               .src = RESOLVED_DIR,
		               .dst = RESOLVED_DIR });
		ops_rule(o, RESOLVED_DIR, SANDBOX_R_READ | SANDBOX_R_LIST);
	}
	for (size_t i = 0; i < sizeof(resolver_dirs) / sizeof(resolver_dirs[0]); i++)
		dial_dir(o, resolver_dirs[i]);
	for (size_t i = 0; i < sizeof(resolver_files) / sizeof(resolver_files[0]); i++)
		dial_file(o, resolver_files[i]);
	ops_add(o, (struct sandbox_op){ .kind = SANDBOX_SEAL, .dst = "/" });
	card->rules = o->rules;
	card->rules_n = o->rules_n;
	return apply_view(o->v, o->n, -1, err);
}

/* The operator's own view; what the kernel makes up is hidden, so that no magic link and no other
 * process is reachable by name. */
static int view_files(struct box_err *err)
{
	if (apply_private(err) < 0)
		return -1;
	if (apply_hide("/proc", err) < 0)
		return -1;
	return apply_hide("/sys", err);
}

/* box-shell: the reaper stays as pid 1, the worker goes on as its child. */
static int reaper_fork(struct box_err *err)
{
	sigset_t before;
	pid_t pid;

	reap_prepare(&before);
	pid = fork();
	if (pid <= 0)
		(void)sigprocmask(SIG_SETMASK, &before, NULL); /* a mask it had */
	if (pid < 0)
		return box_fail(err, BOX_ESYS, errno, "start below a reaper");
	if (pid == 0)
		return ns_harden() < 0 ? box_fail(err, BOX_ESYS, errno, "tie to the reaper") : 0;
	fd_close_from(3);
	if (ns_caps_drop() < 0 || filter_install(FILTER_REAPER, err) < 0)
		_exit(126);
	(void)close(0);
	(void)close(1);
	(void)close(2);
	_exit(reap_until(pid));
}

int worker_confine(enum worker_profile profile, struct box_err *err)
{
	enum filter_kind kind = FILTER_SHELL;
	struct arena a = { .limit = 4 << 20 }; /* lives as long as the process: it is small */
	struct card card = { 0 };
	int r = -1;

	if (card_read(profile, &a, &card, err) < 0)
		goto out;
	if (ns_map_ids(card.uid, card.gid) < 0) {
		(void)ns_explain(errno, "map the user in its namespace", err);
		goto out;
	}
	/* Empty, and not even loopback is up. */
	if (profile != WORKER_DIAL && unshare(CLONE_NEWNET) < 0) {
		(void)ns_explain(errno, "leave the network", err);
		goto out;
	}
	if (ns_harden() < 0) {
		(void)box_fail(err, BOX_ESYS, errno, "close this process to others");
		goto out;
	}
	if (limits(profile, err) < 0)
		goto out;
	switch (profile) {
	case WORKER_SHELL:
		if (view_empty(err) < 0 || reaper_fork(err) < 0)
			goto out;
		kind = FILTER_SHELL;
		break;
	case WORKER_GATEWAY:
		if (view_empty(err) < 0)
			goto out;
		kind = FILTER_GATEWAY;
		break;
	case WORKER_DIAL:
		if (view_dial(&a, &card, err) < 0)
			goto out;
		kind = FILTER_DIAL;
		break;
	case WORKER_FILES:
		if (view_files(err) < 0)
			goto out;
		kind = FILTER_FILES;
		break;
	}
	if (ns_caps_drop() < 0) {
		(void)box_fail(err, BOX_ESYS, errno, "drop the capabilities");
		goto out;
	}
	if (apply_landlock(card.rules, card.rules_n, err) < 0 || filter_install(kind, err) < 0)
		goto out;
	MARK_CONFINED();
	r = 0;
out:
	arena_free(&a);
	return r < 0 ? box_wrap(err, "confine") : 0;
}
