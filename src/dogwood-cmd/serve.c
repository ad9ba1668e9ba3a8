/* dogwood serve: one engine behind two sockets. Anybody who can reach the data socket may submit
 * events; only the server's own user, and those named with --control-uid, may change policies:
 * the kernel says who a peer is, before anything of it is read. A thread a connection; a peer
 * that sends something malformed is answered once and cut off. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "dogwood-cmd/cmd.h"
#include "dogwood-cmd/plane.h"
#include "dogwood-cmd/wire.h"

#include "base/ban.h"

#define CONNS_MAX 256 /* on each socket */
#define IDLE_S    30
#define UIDS_MAX  64
#define SNAPSHOTS 10000

static const char help_text[] =
    "Usage: dogwood serve [OPTIONS] [DIR]\n\n"
    "Serve one store to other programs. DIR (default: $HOME/.dogwood) gets\n"
    "  store/              the history, for this user only\n"
    "  control.sock        policies: this user, and those of --control-uid\n"
    "  run/dogwood.sock    events: everybody who can reach it\n"
    "Frames are a 4-byte big-endian length and a JSON object. `dogwood submit`, `policy`,\n"
    "`status`, `checkpoint` and `ping` are clients.\n\n"
    "  -u, --control-uid N         one more user of the control socket; may be repeated\n"
    "  -n, --snapshot-interval N   events between snapshots; default 10000, 0: none\n"
    "  -S, --sync-always           wait for the disk for every event\n\n"
    "Example:\n"
    "  dogwood serve /var/lib/dogwood &\n"
    "  dogwood policy -D /var/lib/dogwood install -s actions.cedarschema policy.dw\n\n"
    "Ends at SIGINT or SIGTERM, with a snapshot.\n";

static const struct option options[] = { { "control-uid", required_argument, NULL, 'u' },
	{ "snapshot-interval", required_argument, NULL, 'n' },
	{ "sync-always", no_argument, NULL, 'S' }, { "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 } };

struct server;

/* One of the two sockets. */
struct door {
	struct server *s;
	const char *path; /* below the folder */
	mode_t mode;
	bool control;
	int fd;
	unsigned conns;
};

struct server {
	struct plane plane;
	uid_t uids[UIDS_MAX];
	size_t n_uids;
	int dir;
	struct door door[2];
	pthread_mutex_t lock; /* over conns and fds */
	pthread_cond_t gone;
	int fds[2 * CONNS_MAX]; /* open connections; -1: free */
	bool stopping;
};

struct conn {
	struct door *door;
	int fd;
	size_t slot;
};

/* The peer's user, from the kernel. */
static bool may_control(struct server *s, int fd, struct buf *out)
{
	struct ucred c;
	socklen_t n = sizeof(c);
	AUTO_BUF text = buf_with(4096);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) < 0) {
		buf_putf(&text, "peer attestation failed: %s", box_strerror(errno));
		wire_error(out, buf_cstr(&text));
		return false;
	}
	for (size_t i = 0; i < s->n_uids; i++)
		if (s->uids[i] == c.uid)
			return true;
	buf_putf(
	    &text, "uid %u is not permitted on the control plane (allowed: [", (unsigned)c.uid);
	for (size_t i = 0; i < s->n_uids; i++)
		buf_putf(&text, "%s%u", i != 0 ? ", " : "", (unsigned)s->uids[i]);
	buf_put_c(&text, "])");
	wire_error(out, buf_cstr(&text));
	return false;
}

static void talk(struct conn *c)
{
	struct server *s = c->door->s;
	AUTO_BUF in = buf_with(WIRE_MAX + 1);
	AUTO_BUF out = buf_with(WIRE_MAX);
	struct box_err err = { 0 };
	enum wire_got got;
	bool go_on = true;

	if (c->door->control && !may_control(s, c->fd, &out)) {
		(void)wire_write(c->fd, &out); /* it is closed next anyway */
		return;
	}
	while (go_on && (got = wire_read(c->fd, &in, &err)) != WIRE_CLOSED) {
		if (got == WIRE_BAD) {
			wire_error(&out, err.msg);
			go_on = false;
		} else if (c->door->control) {
			go_on = plane_control(&s->plane, buf_sv(&in), &out);
		} else {
			go_on = plane_data(&s->plane, buf_sv(&in), &out);
		}
		if (!buf_ok(&out))
			wire_error(&out, "the answer is larger than a frame");
		if (wire_write(c->fd, &out) < 0)
			break;
	}
}

static void *serve_one(void *arg)
{
	struct conn *c = arg;
	struct server *s = c->door->s;

	talk(c);
	(void)pthread_mutex_lock(&s->lock);
	s->fds[c->slot] = -1;
	c->door->conns--;
	(void)close(c->fd);
	(void)pthread_cond_broadcast(&s->gone);
	(void)pthread_mutex_unlock(&s->lock);
	free(c);
	return NULL;
}

/* A place for the connection; false when there are too many. */
static bool enter(struct server *s, struct conn *c)
{
	bool ok = false;

	(void)pthread_mutex_lock(&s->lock);
	if (!s->stopping && c->door->conns < CONNS_MAX)
		for (size_t i = 0; i < 2 * CONNS_MAX && !ok; i++)
			if (s->fds[i] < 0) {
				s->fds[i] = c->fd;
				c->slot = i;
				c->door->conns++;
				ok = true;
			}
	(void)pthread_mutex_unlock(&s->lock);
	return ok;
}

static void welcome(struct door *d)
{
	const struct timeval idle = { .tv_sec = IDLE_S };
	pthread_attr_t at;
	pthread_t t;
	struct conn *c;
	AUTO_FD fd = accept4(d->fd, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return;
	*c = (struct conn){ .door = d, .fd = fd };
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &idle, sizeof(idle)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &idle, sizeof(idle)) < 0 || !enter(d->s, c)) {
		free(c);
		return;
	}
	(void)fd_take(&fd);
	(void)pthread_attr_init(&at);
	(void)pthread_attr_setdetachstate(&at, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&t, &at, serve_one, c) != 0) {
		(void)pthread_mutex_lock(&d->s->lock);
		d->s->fds[c->slot] = -1;
		d->conns--;
		(void)pthread_mutex_unlock(&d->s->lock);
		(void)close(c->fd);
		free(c);
	}
	(void)pthread_attr_destroy(&at);
}

/* A listening socket at a path of our own folder, made with no rights for others and opened to
 * its mode at the end. */
static int open_door(struct server *s, struct door *d, const char *dir)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	mode_t mask;
	int n = snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/%s", dir, d->path), rc;

	d->s = s;
	if (n < 0 || (size_t)n >= sizeof(sa.sun_path))
		return cmd_error("the path %s/%s is too long for a socket", dir, d->path);
	if (unlinkat(s->dir, d->path, 0) < 0 && errno != ENOENT)
		return cmd_error("remove the old %s: %s", sa.sun_path, box_strerror(errno));
	d->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (d->fd < 0)
		return cmd_error("make a socket: %s", box_strerror(errno));
	mask = umask(0177);
	rc = bind(d->fd, (struct sockaddr *)&sa, sizeof(sa));
	(void)umask(mask);
	if (rc < 0 || fchmodat(s->dir, d->path, d->mode, 0) < 0 || listen(d->fd, 128) < 0)
		return cmd_error("listen on %s: %s", sa.sun_path, box_strerror(errno));
	return CMD_OK;
}

static int make_dir(const char *path, mode_t mode)
{
	struct stat st;

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return cmd_error("make %s: %s", path, box_strerror(errno));
	if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return cmd_error("%s is not a folder of this user", path);
	if (chmod(path, mode) < 0)
		return cmd_error("chmod %s: %s", path, box_strerror(errno));
	return CMD_OK;
}

static void loop(struct server *s, int signals)
{
	struct pollfd p[3] = { { .fd = signals, .events = POLLIN },
		{ .fd = s->door[0].fd, .events = POLLIN },
		{ .fd = s->door[1].fd, .events = POLLIN } };

	for (;;) {
		if (poll(p, 3, -1) < 0 && errno != EINTR)
			return;
		if (p[0].revents != 0)
			return;
		for (int i = 0; i < 2; i++)
			if (p[i + 1].revents != 0)
				welcome(&s->door[i]);
	}
}

/* End all connections and wait for their threads. */
static void stop(struct server *s)
{
	(void)pthread_mutex_lock(&s->lock);
	s->stopping = true;
	for (size_t i = 0; i < 2 * CONNS_MAX; i++)
		if (s->fds[i] >= 0)
			(void)shutdown(s->fds[i], SHUT_RDWR); /* its thread closes it */
	while (s->door[0].conns + s->door[1].conns != 0)
		(void)pthread_cond_wait(&s->gone, &s->lock);
	(void)pthread_mutex_unlock(&s->lock);
	for (int i = 0; i < 2; i++) {
		(void)unlinkat(
		    s->dir, s->door[i].path, 0); /* a stale one is removed at the next start */
		fd_drop(&s->door[i].fd);
	}
}

static int run_server(struct server *s, const char *dir)
{
	sigset_t set;
	AUTO_FD signals = -1;
	int rc;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGTERM);
	/* Before the first thread, so that all of them block these. */
	if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0 ||
	    (signals = signalfd(-1, &set, SFD_CLOEXEC)) < 0)
		return cmd_error("signalfd: %s", box_strerror(errno));
	rc = open_door(s, &s->door[0], dir);
	if (rc == CMD_OK)
		rc = open_door(s, &s->door[1], dir);
	if (rc == CMD_OK) {
		(void)fprintf(stderr, "dogwood: serving %s\n", dir);
		loop(s, signals);
	}
	stop(s);
	return rc;
}

static int serve(struct server *s, const char *dir, const struct dogwood_options *given)
{
	struct dogwood_options o = *given;
	struct dogwood_error err = { 0 };
	AUTO_BUF run = buf_with(4096);
	AUTO_BUF store = buf_with(4096);
	int rc;

	buf_putf(&run, "%s/run", dir);
	buf_putf(&store, "%s/store", dir);
	/* Others must be able to pass through to the data socket, and see nothing on the way. */
	rc = make_dir(dir, 0711);
	if (rc == CMD_OK)
		rc = make_dir(buf_cstr(&run), 0711);
	if (rc != CMD_OK)
		return rc;
	s->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->dir < 0)
		return cmd_error("open %s: %s", dir, box_strerror(errno));
	o.path = buf_cstr(&store);
	if (dogwood_engine_open(&o, &s->plane.engine, &err) < 0)
		return cmd_error("%s", err.msg);
	s->plane.control_uids = s->uids;
	s->plane.n_control_uids = s->n_uids;
	rc = run_server(s, dir);
	if (dogwood_engine_checkpoint(s->plane.engine, &err) < 0)
		(void)cmd_error("%s", err.msg);
	if (dogwood_engine_close(s->plane.engine, &err) < 0)
		rc = cmd_error("%s", err.msg);
	return rc;
}

int cmd_default_dir(struct buf *b)
{
	const char *home = getenv("HOME");

	if (home == NULL || home[0] != '/')
		return cmd_error("HOME is not set: name the server's folder");
	buf_putf(b, "%s/.dogwood", home);
	return CMD_OK;
}

static int run(const struct cmd *self, int argc, char **argv)
{
	static struct server s; /* large, and there is one */
	struct dogwood_options o;
	AUTO_BUF dir = buf_with(4096);
	uint64_t v;
	int opt, rc = CMD_OK;

	dogwood_options_init(&o);
	o.snapshot_events = SNAPSHOTS;
	s = (struct server){ .dir = -1,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.gone = PTHREAD_COND_INITIALIZER,
		.door = { { .path = "control.sock", .mode = 0700, .control = true, .fd = -1 },
		    { .path = "run/dogwood.sock", .mode = 0666, .fd = -1 } } };
	for (size_t i = 0; i < 2 * CONNS_MAX; i++)
		s.fds[i] = -1;
	s.uids[s.n_uids++] = geteuid();
	while ((opt = getopt_long(argc, argv, "hu:n:S", options, NULL)) != -1) {
		if (opt == 'S')
			o.sync = DOGWOOD_SYNC_ALWAYS;
		else if (opt != 'u' && opt != 'n')
			return cmd_usage(self, opt);
		else if (!sv_to_u64(sv_c(optarg), 10, opt == 'u' ? UINT32_MAX : UINT64_MAX, &v))
			return cmd_error("`%s` is not a whole number", optarg);
		else if (opt == 'n')
			o.snapshot_events = v;
		else if (s.n_uids == UIDS_MAX)
			return cmd_error("more than %d users of the control socket", UIDS_MAX - 1);
		else
			s.uids[s.n_uids++] = (uid_t)v;
	}
	if (optind + 1 == argc)
		buf_put_c(&dir, argv[optind]);
	else if (optind == argc)
		rc = cmd_default_dir(&dir);
	else
		return cmd_error("one folder at most; try `dogwood serve --help`");
	if (rc == CMD_OK)
		rc = serve(&s, buf_cstr(&dir), &o);
	fd_drop(&s.dir);
	return rc;
}

const struct cmd cmd_serve = { "serve", "serve one store to other programs", help_text, run };
