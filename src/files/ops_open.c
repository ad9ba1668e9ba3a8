/* FILES_OPEN: one or several files, all decided before the first of them is created or
 * truncated. See server.h.
 *
 * Order after the permit: open what exists (nothing changes), create what is missing (O_EXCL;
 * undone when a later one fails), and only then truncate. Folders are never handed out: a
 * descriptor of one would be a way around every later decision. */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "files/server.h"
#include "base/ban.h"

#define OPEN_FLAGS                                                                                 \
	(O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_NONBLOCK | O_DIRECTORY |            \
	    O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_SYNC | O_DSYNC)
#define KEEP_FLAGS    (O_ACCMODE | O_APPEND | O_SYNC | O_DSYNC)
#define FIFO_RETRY_MS 20

/* State of an OPEN whose FIFO has no reader yet. */
struct opening {
	int fds[FILES_OPEN_MAX];
	bool made[FILES_OPEN_MAX];
	struct event *retry;
};

static void act_open(struct req *q);

static void drop_opening(struct req *q)
{
	struct opening *o = q->state;

	if (o == NULL)
		return;
	for (size_t i = 0; i < FILES_OPEN_MAX; i++)
		fd_drop(&o->fds[i]);
	if (o->retry != NULL)
		event_free(o->retry);
	free(o);
	q->state = NULL;
}

static bool is_writing(uint32_t flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
}

/* Why entry i cannot be opened as it is, judged after the permit; 0 when it can. */
static int check(const struct req *q, size_t i)
{
	const struct walk *w = &q->w[i];
	uint32_t flags = q->open[i].flags;

	if (w->err == ENOENT && w->parent >= 0 && (flags & O_CREAT) != 0)
		return w->slash ? EISDIR : (flags & O_DIRECTORY) != 0 ? EINVAL : 0;
	if (w->err != 0)
		return w->err;
	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return EEXIST;
	switch (w->st.st_mode & S_IFMT) {
	case S_IFDIR:
		return EISDIR;
	case S_IFLNK:
		return ELOOP;
	case S_IFSOCK:
		return ENXIO;
	}
	return (flags & O_DIRECTORY) != 0 ? ENOTDIR : 0;
}

/* Somebody made the file since it was found missing. The decision was about this path, so a
 * plain file that passes the floor will do; a link would lead elsewhere. */
static int adopt(struct req *q, size_t i)
{
	struct walk *w = &q->w[i];

	w->obj = openat(w->parent, w->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (w->obj < 0 || fstat(w->obj, &w->st) != 0 || !S_ISREG(w->st.st_mode))
		return ESTALE;
	for (size_t k = 0; k < q->ne; k++) {
		struct reach_ask a = walk_ask(w, q->e[k].op, false);

		if (q->e[k].w == i && reach_floor(&q->srv->reach, &a) != NULL)
			return ESTALE;
	}
	w->err = 0;
	return 0;
}

static int open_existing(struct req *q, struct opening *o, size_t i)
{
	uint32_t flags = q->open[i].flags;

	o->fds[i] = act_open_held(&q->srv->reach, &q->w[i], (int)(flags & KEEP_FLAGS));
	return o->fds[i] < 0 ? errno : 0;
}

static int create(struct req *q, struct opening *o, size_t i)
{
	struct walk *w = &q->w[i];
	uint32_t flags = q->open[i].flags;
	int e;

	if (!walk_still(&q->srv->reach, w))
		return ESTALE;
	o->fds[i] = openat(w->parent, w->name,
	    (int)(flags & KEEP_FLAGS) | O_CREAT | O_EXCL | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
	    q->open[i].mode & 0777);
	if (o->fds[i] >= 0) {
		o->made[i] = true;
		return 0;
	}
	if (errno != EEXIST || (flags & O_EXCL) != 0)
		return errno;
	e = adopt(q, i);
	return e != 0 ? e : open_existing(q, o, i);
}

/* Take back what was created: only if it is still what we made. */
static void undo(struct req *q, struct opening *o)
{
	for (size_t i = 0; i < q->nw; i++) {
		struct stat a, b;

		if (o->made[i] && fstat(o->fds[i], &a) == 0 && walk_peek(&q->w[i], &b) == 0 &&
		    a.st_dev == b.st_dev && a.st_ino == b.st_ino)
			(void)unlinkat(q->w[i].parent, q->w[i].name, 0); /* best effort */
	}
}

static int truncate_one(const struct req *q, const struct opening *o, size_t i)
{
	struct stat st;

	if ((q->open[i].flags & O_TRUNC) == 0 || (q->open[i].flags & O_ACCMODE) == O_RDONLY ||
	    o->made[i])
		return 0;
	if (fstat(o->fds[i], &st) != 0)
		return errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	return ftruncate(o->fds[i], 0) != 0 ? errno : 0;
}

static void fail_at(struct req *q, int e, size_t i)
{
	undo(q, q->state);
	if (e == ESTALE)
		req_changed(q, i);
	else
		req_errno_at(q, e, i);
}

static void answer(struct req *q, struct opening *o)
{
	size_t i = 0;

	for (size_t k = 0; k < q->nw; k++) {
		/* What O_NONBLOCK was for is over. */
		if (fcntl(o->fds[k], F_SETFL, q->open[k].flags & (O_NONBLOCK | O_APPEND)) != 0) {
			fail_at(q, errno, k);
			return;
		}
	}
	for (; q->nw - i > IPC_FDS_MAX; i += IPC_FDS_MAX)
		client_send(q->c, FILES_FDS, q->id, NULL, &o->fds[i], IPC_FDS_MAX);
	req_ok(q, FS_DESCRIPTOR_ISSUED, NULL, &o->fds[i], q->nw - i);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct req *q = arg;

	(void)fd;
	(void)what;
	if (!client_hung_up(q->c))
		act_open(q);
}

/* A FIFO that nobody reads yet: open(2) would wait, so this request does, and nobody else. */
static bool wait_for_reader(struct req *q, struct opening *o, size_t i)
{
	const struct timeval tv = { 0, FIFO_RETRY_MS * 1000 };

	if (!S_ISFIFO(q->w[i].st.st_mode) || (q->open[i].flags & O_NONBLOCK) != 0)
		return false;
	if (o->retry == NULL) {
		o->retry = evtimer_new(q->srv->base, on_retry, q);
		client_send(q->c, FILES_WAIT, q->id, NULL, NULL, 0);
	}
	for (size_t k = 0; k < q->nw; k++)
		fd_drop(&o->fds[k]);
	q->gone = req_end;
	return o->retry != NULL && event_add(o->retry, &tv) == 0;
}

static void act_open(struct req *q)
{
	struct opening *o = q->state;
	int e = 0;

	if (o == NULL) {
		o = q->state = malloc(sizeof(*o));
		if (o == NULL) {
			req_errno(q, ENOMEM);
			return;
		}
		memset(o, 0, sizeof(*o));
		for (size_t i = 0; i < FILES_OPEN_MAX; i++)
			o->fds[i] = -1;
		q->drop = drop_opening;
	}
	for (size_t i = 0; i < q->nw; i++) {
		if ((e = check(q, i)) != 0) {
			fail_at(q, e, i);
			return;
		}
	}
	for (size_t i = 0; i < q->nw; i++) {
		if (q->w[i].obj < 0)
			continue;
		e = open_existing(q, o, i);
		if (e == ENXIO && wait_for_reader(q, o, i))
			return;
		if (e != 0) {
			fail_at(q, e, i);
			return;
		}
	}
	for (size_t i = 0; i < q->nw; i++) {
		if (q->w[i].obj < 0 && (e = create(q, o, i)) != 0) {
			fail_at(q, e, i);
			return;
		}
	}
	for (size_t i = 0; i < q->nw; i++) {
		if ((e = truncate_one(q, o, i)) != 0) {
			fail_at(q, e, i);
			return;
		}
	}
	answer(q, o);
}

/* The objects and effects of entry i. -1: answered. */
static int add_entry(struct req *q, sv path, uint32_t flags, uint32_t mode)
{
	ptrdiff_t w;

	if ((flags & ~(uint32_t)OPEN_FLAGS) != 0 || (flags & O_ACCMODE) == O_ACCMODE) {
		req_errno_at(q, EINVAL, q->nw);
		return -1;
	}
	q->open[q->nw].flags = flags;
	q->open[q->nw].mode = mode;
	/* O_EXCL never follows a final link, to whatever it points (open(2)). */
	w = req_walk(q, path,
	    (flags & O_NOFOLLOW) != 0 || (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL)
	        ? 0
	        : WALK_FOLLOW);
	if (w < 0)
		return -1;
	if ((flags & O_ACCMODE) != O_WRONLY &&
	    req_effect(q, FS_READ_CONTENT, (size_t)w, false) != 0)
		return -1;
	return is_writing(flags) ? req_effect(q, FS_WRITE_CONTENT, (size_t)w, false) : 0;
}

int op_open(struct client *c, struct ipc_msg *m, struct box_err *err)
{
	struct rd check_form = m->body;
	uint16_t n = rd_u16(&check_form);
	struct req *q;
	sv path;

	if (n == 0 || n > FILES_OPEN_MAX)
		return box_fail(err, BOX_EPARSE, 0, "an OPEN of %u files", n);
	for (uint16_t i = 0; i < n; i++) {
		/* flags and mode: read below, once the form is known to be good */
		(void)rd_u32(&check_form);
		(void)rd_u32(&check_form);
		if (req_path(&check_form, &path, err) != 0)
			return -1;
	}
	if (!rd_done(&check_form))
		return box_fail(err, BOX_EPARSE, 0, "a malformed OPEN");
	if ((q = req_new(c, m, err)) == NULL)
		return -1;
	q->act = act_open;
	(void)rd_u16(&m->body); /* n */
	for (uint16_t i = 0; i < n; i++) {
		uint32_t flags = rd_u32(&m->body), mode = rd_u32(&m->body);

		if (req_path(&m->body, &path, err) != 0)
			return -1;
		if (add_entry(q, path, flags, mode) != 0)
			return 0;
	}
	req_decide(q);
	return 0;
}
