/* The parts of a view that do not come from the operator's lists: devices, private /tmp, a
 * synthesized /etc, the runtime minimum, the aliases. Box-design 6.3, 7.2;
 * box-config-and-policy 1.5 (minimum), 4.5. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contain/build.h"
#include "contain/contain.h"
#include "contain/loader.h"
#include "base/fd.h"
#include "base/ban.h"

/* One row of the runtime minimum. */
struct minimum {
	const char *path;
	uint32_t rights; /* 0: only its entry */
	bool dir, leaf_only, code;
};
static const struct minimum minimum[] = {
	{ "/usr/share/zoneinfo", SANDBOX_R_READ | SANDBOX_R_LIST, true, false, false },
	{ "/usr/share/terminfo", SANDBOX_R_READ | SANDBOX_R_LIST, true, false, false },
	{ "/etc/localtime", SANDBOX_R_READ, false, false, false },
	{ "/etc/ld.so.cache", SANDBOX_R_READ, false, false, false },
	{ "/etc/services", SANDBOX_R_READ, false, false, false },
	{ "/etc/protocols", SANDBOX_R_READ, false, false, false },
	{ "/etc/ssl/openssl.cnf", SANDBOX_R_READ, false, false, false },
	{ "/lib", SANDBOX_R_READ | SANDBOX_R_LIST | SANDBOX_R_EXEC, true, true, true },
	{ "/lib64", SANDBOX_R_READ | SANDBOX_R_LIST | SANDBOX_R_EXEC, true, true, true },
	{ "/usr/lib", SANDBOX_R_READ | SANDBOX_R_LIST | SANDBOX_R_EXEC, true, true, true },
	{ "/usr/lib64", SANDBOX_R_READ | SANDBOX_R_LIST | SANDBOX_R_EXEC, true, true, true },
};
/* Devices, all of them in every view. */
static const char *const devices[] = { "null", "zero", "full", "random", "urandom", "tty" };

/* Is the row there on this host, once per identity? */
static bool row_there(size_t i, struct stat *st)
{
	struct stat other;

	if (stat(minimum[i].path, st) < 0 || (S_ISDIR(st->st_mode) != minimum[i].dir))
		return false;
	for (size_t k = 0; k < i; k++)
		if (stat(minimum[k].path, &other) == 0 && other.st_dev == st->st_dev &&
		    other.st_ino == st->st_ino)
			return false;
	return true;
}

static int minimum_row(struct build *b, const struct minimum *m)
{
	char real[PATH_MAX], text[PATH_MAX];
	uint32_t flags = SANDBOX_RO | (m->code ? 0u : (uint32_t)SANDBOX_NOEXEC);
	ssize_t n = readlink(m->path, text, sizeof(text) - 1);

	if (realpath(m->path, real) == NULL)
		return 0;      /* not on this host */
	if (n > 0 && m->dir) { /* /lib -> usr/lib: the link, and what it leads to */
		text[n] = '\0';
		nodes_link(&b->t, RANK_MINIMUM, m->path, text);
		if (nodes_bind(&b->t, RANK_MINIMUM, real, real, flags) < 0)
			return box_fail(b->err, BOX_ESYS, errno, "%s: show %s", b->s->label, real);
		nodes_rule(&b->t, real, m->rights);
		return 0;
	}
	/* A file reached by a link (/etc/localtime) is shown under its own name, so that nothing
	 * else of the link's directory is needed. */
	if (nodes_bind(&b->t, RANK_MINIMUM, real, m->path, flags) < 0)
		return box_fail(b->err, BOX_ESYS, errno, "%s: show %s", b->s->label, m->path);
	nodes_rule(&b->t, m->path, m->rights);
	return 0;
}

int build_minimum(struct build *b)
{
	for (size_t i = 0; i < sizeof(minimum) / sizeof(minimum[0]); i++)
		if ((b->leaf || !minimum[i].leaf_only) && minimum_row(b, &minimum[i]) < 0)
			return -1;
	return 0;
}

int contain_minimum(struct arena *a, enum plan_kind kind, struct disclose_minimum **out, size_t *n,
    struct box_err *err)
{
	const size_t max = 8 + sizeof(minimum) / sizeof(minimum[0]);
	struct disclose_minimum *v = ARENA_VEC(a, struct disclose_minimum, max);
	size_t k = 0;
	struct stat st;

	if (v == NULL)
		return box_nomem(err, "the runtime minimum");
	for (size_t i = 0; i < sizeof(minimum) / sizeof(minimum[0]); i++)
		if ((kind == PLAN_TOOL || !minimum[i].leaf_only) && row_there(i, &st))
			v[k++] = (struct disclose_minimum){ "read", minimum[i].path,
				minimum[i].code ? "loader directory: code maps and runs here"
				                : "" };
	v[k++] = (struct disclose_minimum){ "read", "/dev",
		"null, zero, full, random, urandom, tty, pts" };
	v[k++] = (struct disclose_minimum){ "read", "/proc", "the sandbox's own processes" };
	v[k++] = (struct disclose_minimum){ "write", "/dev/null", "" };
	v[k++] = (struct disclose_minimum){ "write", "/dev/shm", "private" };
	v[k++] = (struct disclose_minimum){ "write", "/tmp", "private to the box" };
	*out = v;
	*n = k;
	return 0;
}

static int dev(struct build *b)
{
	struct nodes *t = &b->t;

	nodes_add(t, RANK_SCAFFOLD,
	    (struct sandbox_op){ .kind = SANDBOX_TMPFS,
	        .flags = SANDBOX_NOEXEC,
	        .dst = "/dev",
	        .mode = 0755,
	        .size = 65536 });
	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		const char *path = arena_printf(b->a, "/dev/%s", devices[i]);

		if (path == NULL)
			return box_nomem(b->err, "/dev");
		if (nodes_bind(t, RANK_SCAFFOLD, path, path, SANDBOX_NOEXEC | SANDBOX_DEVICE) < 0 &&
		    errno != ENOENT)
			return box_fail(b->err, BOX_ESYS, errno, "%s: show %s", b->s->label, path);
	}
	nodes_add(t, RANK_SCAFFOLD,
	    (struct sandbox_op){ .kind = SANDBOX_DEVPTS,
	        .flags = SANDBOX_NOEXEC | SANDBOX_DEVICE,
	        .dst = "/dev/pts" });
	nodes_add(t, RANK_SCAFFOLD,
	    (struct sandbox_op){
	        .kind = SANDBOX_TMPFS, .flags = SANDBOX_NOEXEC, .dst = "/dev/shm", .mode = 01777 });
	nodes_link(t, RANK_SCAFFOLD, "/dev/ptmx", "pts/ptmx");
	nodes_link(t, RANK_SCAFFOLD, "/dev/fd", "/proc/self/fd");
	nodes_link(t, RANK_SCAFFOLD, "/dev/stdin", "/proc/self/fd/0");
	nodes_link(t, RANK_SCAFFOLD, "/dev/stdout", "/proc/self/fd/1");
	nodes_link(t, RANK_SCAFFOLD, "/dev/stderr", "/proc/self/fd/2");
	if (b->x->tty)
		nodes_add(t, RANK_SCAFFOLD,
		    (struct sandbox_op){ .kind = SANDBOX_CONSOLE,
		        .flags = SANDBOX_NOEXEC | SANDBOX_DEVICE,
		        .dst = "/dev/console" });
	nodes_rule(t, "/dev", SANDBOX_R_READ | SANDBOX_R_LIST | SANDBOX_R_WRITE | SANDBOX_R_IOCTL);
	nodes_rule(t, "/dev/shm", SANDBOX_R_MAKE);
	return 0;
}

static void etc(struct build *b)
{
	struct nodes *t = &b->t;
	unsigned uid = b->s->uid, gid = b->s->gid;
	const char *home = b->p->home.n != 0 ? b->p->home.p : "/";
	static const char *const files[] = { "/etc/passwd", "/etc/group", "/etc/hosts",
		"/etc/resolv.conf", "/etc/nsswitch.conf" };

	/* Ids outside the map of the user namespace show as 65534. */
	nodes_file(t, "/etc/passwd",
	    arena_printf(b->a,
	        SANDBOX_USER ":x:%u:%u:" SANDBOX_USER ":%s:/bin/sh\n"
	                     "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	        uid, gid, home));
	nodes_file(
	    t, "/etc/group", arena_printf(b->a, SANDBOX_USER ":x:%u:\nnogroup:x:65534:\n", gid));
	nodes_file(t, "/etc/hosts",
	    "127.0.0.1\tlocalhost boxwood\n::1\tlocalhost ip6-localhost ip6-loopback\n");
	/* No server: a lookup fails at once; names are the gateway's affair. */
	nodes_file(t, "/etc/resolv.conf", "");
	nodes_file(t, "/etc/nsswitch.conf",
	    "passwd: files\ngroup: files\nshadow: files\nhosts: files\nservices: files\n"
	    "protocols: files\n");
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		nodes_rule(t, files[i], SANDBOX_R_READ);
}

/* The CA files under their own paths, and the bundle where programs look without being told. */
static int ca(struct build *b)
{
	static const char *const known[] = { "/etc/ssl/certs/ca-certificates.crt",
		"/etc/ssl/cert.pem", "/etc/pki/tls/certs/ca-bundle.crt" };
	const uint32_t flags = SANDBOX_RO | SANDBOX_NOEXEC;
	const char *own[] = { b->x->ca_cert, b->x->ca_bundle };

	for (size_t i = 0; i < 2; i++) {
		if (own[i] == NULL)
			continue;
		if (nodes_bind(&b->t, RANK_MINIMUM, own[i], own[i], flags) < 0)
			return box_fail(
			    b->err, BOX_ESYS, errno, "%s: show %s", b->s->label, own[i]);
		nodes_rule(&b->t, own[i], SANDBOX_R_READ);
	}
	for (size_t i = 0; b->x->ca_bundle != NULL && i < sizeof(known) / sizeof(known[0]); i++) {
		if (nodes_host_tree(&b->t, known[i]) != NULL)
			continue; /* the operator shows a tree of the host there */
		if (nodes_bind(&b->t, RANK_MINIMUM, b->x->ca_bundle, known[i], flags) < 0)
			return box_fail(
			    b->err, BOX_ESYS, errno, "%s: show %s", b->s->label, known[i]);
		nodes_rule(&b->t, known[i], SANDBOX_R_READ);
	}
	return 0;
}

/* /bin -> usr/bin and its like, where the host has them; directories of those names otherwise. */
static void top_links(struct build *b)
{
	static const char *const names[] = { "/bin", "/sbin", "/lib", "/lib32", "/lib64",
		"/libx32" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char text[PATH_MAX];
		ssize_t n = readlink(names[i], text, sizeof(text) - 1);

		if (n > 0) {
			text[n] = '\0';
			nodes_link(&b->t, RANK_SCAFFOLD, names[i], text);
		}
	}
	nodes_dir(&b->t, "/usr/bin");
	nodes_dir(&b->t, "/usr/lib");
	nodes_dir(&b->t, "/var");
	nodes_link(&b->t, RANK_SCAFFOLD, "/var/tmp", "/tmp");
}

/* Listing "/" and /etc is harmless when everything below that is a directory of the host may be
 * listed anyway: Landlock's rights hold for all that is below. */
static void lists(struct build *b)
{
	bool plain = true;

	for (size_t i = 0; i < b->t.n && plain; i++) {
		const struct node *n = &b->t.v[i];
		bool ok = false;

		if (n->op.kind != SANDBOX_BIND || !(n->op.flags & SANDBOX_IS_DIR))
			continue;
		for (size_t k = 0; k < b->t.rules_n && !ok; k++)
			ok = (b->t.rules[k].rights & SANDBOX_R_LIST) &&
			     view_within(n->op.dst, b->t.rules[k].path);
		plain = ok;
	}
	if (plain)
		nodes_rule(&b->t, "/", SANDBOX_R_LIST);
}

int build_scaffold(struct build *b)
{
	struct nodes *t = &b->t;

	if (dev(b) < 0)
		return -1;
	nodes_add(t, RANK_SCAFFOLD,
	    (struct sandbox_op){ .kind = SANDBOX_PROC, .flags = SANDBOX_NOEXEC, .dst = "/proc" });
	/* Programs write /proc/self/comm, oom_score_adj and the like; what could matter is held
	 * read-only below. */
	nodes_rule(t, "/proc", SANDBOX_R_READ | SANDBOX_R_LIST | SANDBOX_R_WRITE);
	if (nodes_bind(t, RANK_SCAFFOLD, b->x->tmp_dir, "/tmp", SANDBOX_OWN) < 0)
		return box_fail(b->err, BOX_ESYS, errno, "%s: the box's private /tmp, %s",
		    b->s->label, b->x->tmp_dir);
	nodes_rule(t, "/tmp", SANDBOX_R_READ | SANDBOX_R_LIST | SANDBOX_R_WRITE | SANDBOX_R_MAKE);
	etc(b);
	if (ca(b) < 0)
		return -1;
	top_links(b);
	nodes_dir(t, "/run");
	if (b->p->home.n > 1)
		nodes_dir(t, b->p->home.p);
	lists(b);
	return 0;
}

/* Does an `exec` entry cover this file, or is it (or does it lead to) a program the process itself
 * needs? */
static bool stays_real(struct build *b, const char *path)
{
	char real[PATH_MAX];
	bool there = realpath(path, real) != NULL;
	const struct node *n = nodes_at(&b->t, path);

	if (n != NULL && n->rank > RANK_ALIAS)
		return true;
	n = there ? nodes_at(&b->t, real) : NULL;
	if (n != NULL && n->op.kind == SANDBOX_BIND && n->rank > RANK_ALIAS)
		return true;
	for (size_t i = 0; i < b->proc->grants_n; i++) {
		const struct plan_grant *g = &b->proc->grants[i];

		if (g->list == PLAN_EXEC &&
		    (view_within(path, g->path.p) || (there && view_within(real, g->path.p))))
			return true;
	}
	return nodes_host_tree(&b->t, path) != NULL;
}

/* /usr/bin/sh, … : every name under every directory of system programs. "dash" goes with "sh", as
 * the same program has both names on Debian. */
static int alias_absolute(struct build *b, const char *name)
{
	static const char *const dirs[] = { "/bin", "/usr/bin", "/usr/local/bin" };

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		char text[PATH_MAX];
		const char *path = arena_printf(b->a, "%s/%s", dirs[i], name);
		struct stat st;

		if (path == NULL)
			return box_nomem(b->err, "an alias");
		if (readlink(dirs[i], text, sizeof(text)) > 0 || stays_real(b, path))
			continue;
		if (i == 2 && lstat(path, &st) < 0)
			continue;
		if (nodes_bind(&b->t, RANK_ALIAS, b->x->alias_image, path, SANDBOX_RO) < 0)
			return box_fail(
			    b->err, BOX_ESYS, errno, "%s: show the alias %s", b->s->label, path);
		nodes_rule(&b->t, path, SANDBOX_R_READ | SANDBOX_R_EXEC);
	}
	return 0;
}

int build_aliases(struct build *b)
{
	const struct sandbox_extra *x = b->x;

	if (x->broker_socket != NULL) {
		nodes_dir(&b->t, "/run/boxwood");
		if (nodes_bind(&b->t, RANK_MINIMUM, x->broker_socket, SANDBOX_BROKER_PATH,
		        SANDBOX_RO | SANDBOX_NOEXEC) < 0)
			return box_fail(b->err, BOX_ESYS, errno, "%s: show the broker's socket %s",
			    b->s->label, x->broker_socket);
	}
	if (x->alias_image == NULL)
		return 0;
	if (build_show_closure(b, x->alias_image) < 0)
		return -1;
	for (size_t i = 0; i < x->alias_names_n; i++) {
		const char *path = x->box_dir == NULL ? NULL
		                                      : arena_printf(b->a, "%s/bin/%s", x->box_dir,
		                                            x->alias_names[i]);

		if (path == NULL)
			return box_fail(b->err, BOX_ECONFIG, 0,
			    "%s: aliases without a box directory", b->s->label);
		if (nodes_bind(&b->t, RANK_ALIAS, x->alias_image, path, SANDBOX_RO) < 0)
			return box_fail(
			    b->err, BOX_ESYS, errno, "%s: show the alias %s", b->s->label, path);
		nodes_rule(&b->t, path, SANDBOX_R_READ | SANDBOX_R_EXEC);
		if (alias_absolute(b, x->alias_names[i]) < 0 ||
		    (strcmp(x->alias_names[i], "sh") == 0 && alias_absolute(b, "dash") < 0))
			return -1;
	}
	return 0;
}

/* An `exec` directory: the programs in it need their loader and libraries. Bounded: a tree larger
 * than this lists its libraries in `read`. */
#define EXEC_DEPTH 3
#define EXEC_FILES 256

static int exec_walk(struct build *b, const char *dir, int depth, int *left)
{
	DIR *d = opendir(dir);
	struct dirent *e;
	int r = 0;

	if (d == NULL)
		return 0; /* not readable for us: not for the process either */
	while (r == 0 && *left > 0 && (e = readdir(d)) != NULL) {
		const char *path;
		struct stat st;
		struct box_err ignored, *keep = b->err;

		if (e->d_name[0] == '.')
			continue;
		path = arena_printf(b->a, "%s/%s", dir, e->d_name);
		if (path == NULL || lstat(path, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode) && depth < EXEC_DEPTH)
			r = exec_walk(b, path, depth + 1, left);
		if (!S_ISREG(st.st_mode) || !(st.st_mode & 0111))
			continue;
		(*left)--;
		/* A program that cannot be loaded (another architecture, a missing library) is that
		 * program's affair. */
		b->err = &ignored;
		(void)build_show_closure(b, path);
		b->err = keep;
	}
	(void)closedir(d);
	return r;
}

int build_exec_closure(struct build *b, const struct plan_grant *g)
{
	int left = EXEC_FILES;

	if (!g->is_dir)
		return build_show_closure(b, g->path.p);
	return exec_walk(b, g->path.p, 0, &left);
}

static void proc_fixed(struct build *b, const char *path)
{
	nodes_late(&b->t, (struct sandbox_op){ .kind = SANDBOX_PIN,
	                      .flags = SANDBOX_RO | SANDBOX_NOEXEC | SANDBOX_OPTIONAL,
	                      .dst = path });
}

static void proc_masked(struct build *b, const char *path)
{
	nodes_late(&b->t,
	    (struct sandbox_op){ .kind = SANDBOX_COVER, .flags = SANDBOX_OPTIONAL, .dst = path });
}

void build_proc(struct build *b)
{
	/* As runc does: what tells about the host or acts on it is empty, what configures it
	 * read-only. */
	static const char *const masked[] = { "/proc/acpi", "/proc/asound", "/proc/interrupts",
		"/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug",
		"/proc/scsi", "/proc/timer_list", "/proc/timer_stats", "/proc/kmsg",
		"/proc/key-users", "/proc/config.gz" };
	static const char *const fixed[] = { "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys",
		"/proc/sysrq-trigger", "/proc/mtrr", "/proc/dynamic_debug" };

	/* Open to root without a capability, so to an agent that runs as the operator root. */
	static const char *const roots_masked[] = { "/proc/slabinfo", "/proc/vmallocinfo",
		"/proc/pagetypeinfo", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup",
		"/proc/vmcore" };
	static const char *const roots_fixed[] = { "/proc/pressure" };
	const bool root = b->s->uid == 0;

	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++)
		proc_fixed(b, fixed[i]);
	for (size_t i = 0; root && i < sizeof(roots_fixed) / sizeof(roots_fixed[0]); i++)
		proc_fixed(b, roots_fixed[i]);
	for (size_t i = 0; i < sizeof(masked) / sizeof(masked[0]); i++)
		proc_masked(b, masked[i]);
	for (size_t i = 0; root && i < sizeof(roots_masked) / sizeof(roots_masked[0]); i++)
		proc_masked(b, roots_masked[i]);
	nodes_late(&b->t, (struct sandbox_op){ .kind = SANDBOX_SEAL, .dst = "/" });
	nodes_late(&b->t, (struct sandbox_op){ .kind = SANDBOX_SEAL, .dst = "/dev" });
}
