/* The log, open for appending. See wal.h. */
#include "engine/wal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

#include "base/ban.h"

#define PEND_MAX   ((size_t)512 << 20)
#define FIRST_SEG  ((uint64_t)256 * 1024)
#define ZERO_CHUNK ((size_t)256 * 1024)
#define LOCK_NAME  "lock"
#define SPARE_NAME "next.tmp"

struct wal {
	struct wal_conf conf;
	int dir, lock, mark;
	struct wal_hasher hash;
	uint8_t id[WAL_ID];
	uint32_t seed;

	/* The appending side: under the caller's lock. */
	struct buf pend;
	uint64_t next;
	uint8_t chain[WAL_HASH];

	/* The writing side: one thread at a time. */
	struct buf fly;
	uint64_t fly_next;
	int fd;
	uint64_t size;
	_Atomic uint64_t pos;
	bool dirty; /* written and not synced */
	bool poisoned;
	_Atomic uint64_t durable, syncs;

	pthread_mutex_t spare_lock;
	int spare;
	uint64_t spare_size;
	_Atomic bool has_spare;
	_Atomic uint64_t cur_size;
};

static int sync_dir(struct wal *w, const char *name)
{
	AUTO_FD fd = openat(w->dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -1 : w->conf.io.sync_dir(w->conf.io.arg, fd);
}

/* A store that others can write to proves nothing. */
static int check_owner(const struct wal *w, struct box_err *err)
{
	struct stat st;

	if (fstat(w->dir, &st) < 0)
		return box_fail(err, BOX_ESYS, errno, "look at the store %s", w->conf.path);
	if (st.st_uid != geteuid())
		return box_fail(err, BOX_EDENIED, 0,
		    "the store %s belongs to user %u, not to user %u: its history could be "
		    "anybody's",
		    w->conf.path, (unsigned)st.st_uid, (unsigned)geteuid());
	if ((st.st_mode & 022) != 0)
		return box_fail(err, BOX_EDENIED, 0,
		    "the store %s can be written by others (mode %04o): chmod go-w it",
		    w->conf.path, (unsigned)(st.st_mode & 07777));
	return 0;
}

static int take_lock(struct wal *w, struct box_err *err)
{
	char who[24] = "";
	ssize_t n;

	w->lock =
	    w->conf.io.open(w->conf.io.arg, w->dir, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	if (w->lock < 0)
		return box_fail(err, BOX_ESYS, errno, "open %s/" LOCK_NAME, w->conf.path);
	if (flock(w->lock, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return box_fail(err, BOX_ESYS, errno, "lock the store %s", w->conf.path);
		n = pread(w->lock, who, sizeof(who) - 1, 0);
		for (ssize_t i = 0; i < n; i++)
			if (who[i] < '0' || who[i] > '9')
				who[i] = '\0';
		return box_fail(err, BOX_ESYS, EBUSY,
		    "the store %s is in use%s%s: close that program first, or use another store",
		    w->conf.path, who[0] != '\0' ? " by process " : "", who);
	}
	n = snprintf(who, sizeof(who), "%ld\n", (long)getpid());
	/* Only for the message above. */
	if (ftruncate(w->lock, 0) == 0 && pwrite(w->lock, who, (size_t)n, 0) < 0)
		errno = 0;
	return 0;
}

int wal_open(const struct wal_conf *c, struct wal **out, struct box_err *err)
{
	struct wal *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return box_nomem(err, "the store");
	w->conf = *c;
	w->dir = w->lock = w->mark = w->fd = w->spare = -1;
	w->pend = w->fly = buf_with(PEND_MAX);
	(void)pthread_mutex_init(&w->spare_lock, NULL); /* cannot fail with default attributes */
	if (mkdir(c->path, 0700) < 0 && errno != EEXIST) {
		(void)box_fail(err, BOX_ESYS, errno, "make the store %s", c->path);
		goto fail;
	}
	w->dir = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->dir < 0) {
		(void)box_fail(err, BOX_ESYS, errno, "open the store %s", c->path);
		goto fail;
	}
	if (check_owner(w, err) < 0 || take_lock(w, err) < 0 || wal_hasher_init(&w->hash, err) < 0)
		goto fail;
	*out = w;
	return 0;
fail:
	wal_close(w);
	return -1;
}

void wal_close(struct wal *w)
{
	if (w == NULL)
		return;
	fd_drop(&w->fd);
	if (w->spare >= 0) {
		fd_drop(&w->spare);
		(void)unlinkat(w->dir, SPARE_NAME, 0); /* a leftover is removed at the next open */
	}
	fd_drop(&w->mark);
	fd_drop(&w->lock);
	fd_drop(&w->dir);
	buf_fini(&w->pend);
	buf_fini(&w->fly);
	wal_hasher_fini(&w->hash);
	(void)pthread_mutex_destroy(&w->spare_lock);
	free(w);
}

int wal_dir(const struct wal *w)
{
	return w->dir;
}

static int write_zeros(struct wal *w, int fd, uint64_t from, uint64_t to)
{
	uint8_t *z = calloc(1, ZERO_CHUNK);

	if (z == NULL) {
		errno = ENOMEM;
		return -1;
	}
	while (from < to) {
		size_t n = to - from < ZERO_CHUNK ? (size_t)(to - from) : ZERO_CHUNK;

		if (w->conf.io.write(w->conf.io.arg, fd, z, n, (off_t)from) < 0) {
			free(z);
			return -1;
		}
		from += n;
	}
	free(z);
	return 0;
}

/* Make SPARE_NAME: zeros to its full size, synced, so that writing into it later changes no
 * metadata. */
static int make_spare(struct wal *w, uint64_t size, struct box_err *err)
{
	struct eng_io *io = &w->conf.io;
	int fd =
	    io->open(io->arg, w->dir, SPARE_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	int e;

	if (fd < 0)
		return box_fail(err, BOX_ESYS, errno, "make a log file in %s", w->conf.path);
	if (write_zeros(w, fd, 0, size) < 0 || io->sync(io->arg, fd) < 0) {
		e = errno;
		fd_drop(&fd);
		(void)unlinkat(w->dir, SPARE_NAME, 0); /* frees the space of a full disk */
		return box_fail(err, BOX_ESYS, e, "make a log file of %" PRIu64 " bytes in %s",
		    size, w->conf.path);
	}
	w->spare = fd;
	w->spare_size = size;
	atomic_store(&w->has_spare, true);
	return 0;
}

static uint64_t next_size(const struct wal *w, size_t need)
{
	uint64_t cur = atomic_load(&w->cur_size);
	uint64_t size = cur == 0 ? FIRST_SEG : 2 * cur;

	if (size > w->conf.seg_bytes)
		size = w->conf.seg_bytes;
	if (size < WAL_SEG_HDR + need)
		size = (WAL_SEG_HDR + need + 4095) & ~(uint64_t)4095;
	return size;
}

/* Go on in a new segment whose first record is `first` and needs `need` bytes. */
static int new_segment(
    struct wal *w, uint64_t first, const uint8_t *prev, size_t need, struct box_err *err)
{
	struct eng_io *io = &w->conf.io;
	char name[WAL_NAME_MAX];
	uint8_t head[WAL_SEG_HDR];
	struct wal_seg h = { .first = first };
	int rc = -1, fd;

	(void)pthread_mutex_lock(&w->spare_lock);
	if (w->spare >= 0 && w->spare_size < WAL_SEG_HDR + need) {
		fd_drop(&w->spare);
		atomic_store(&w->has_spare, false);
		if (io->unlink(io->arg, w->dir, SPARE_NAME) < 0) {
			(void)box_fail(err, BOX_ESYS, errno, "remove " SPARE_NAME);
			goto out;
		}
	}
	if (w->spare < 0 && make_spare(w, next_size(w, need), err) < 0)
		goto out;
	h.size = w->spare_size;
	memcpy(h.id, w->id, WAL_ID);
	memcpy(h.prev, prev, WAL_HASH);
	wal_seg_put(head, &h);
	wal_seg_name(first, name);
	fd = fd_take(&w->spare);
	atomic_store(&w->has_spare, false);
	if (io->write(io->arg, fd, head, sizeof(head), 0) < 0 || io->sync(io->arg, fd) < 0 ||
	    io->rename(io->arg, w->dir, SPARE_NAME, name) < 0 || sync_dir(w, ".") < 0) {
		(void)box_fail(err, BOX_ESYS, errno, "begin the log file %s", name);
		fd_drop(&fd);
		goto out;
	}
	fd_drop(&w->fd);
	w->fd = fd;
	w->size = h.size;
	atomic_store(&w->cur_size, h.size);
	atomic_store(&w->pos, WAL_SEG_HDR);
	rc = 0;
out:
	(void)pthread_mutex_unlock(&w->spare_lock);
	return rc;
}

bool wal_wants_spare(const struct wal *w)
{
	return !atomic_load(&w->has_spare) && atomic_load(&w->pos) > atomic_load(&w->cur_size) / 2;
}

int wal_prepare(struct wal *w, struct box_err *err)
{
	int rc = 0;

	(void)pthread_mutex_lock(&w->spare_lock);
	if (w->spare < 0)
		rc = make_spare(w, next_size(w, 0), err);
	(void)pthread_mutex_unlock(&w->spare_lock);
	return rc;
}

static int write_mark(struct wal *w)
{
	uint8_t b[WAL_MARK_LEN];

	if (w->mark < 0) {
		w->mark = w->conf.io.open(
		    w->conf.io.arg, w->dir, WAL_MARK, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
		if (w->mark < 0)
			return -1;
	}
	wal_mark_put(b, w->id, atomic_load(&w->durable));
	return w->conf.io.write(w->conf.io.arg, w->mark, b, sizeof(b), 0);
}

/* Put zeros over a torn tail and give the file its full size again. */
static int cut_tail(struct wal *w, const struct wal_end *e, struct box_err *err)
{
	uint64_t to = e->file_size < e->size ? e->size : e->pos + e->torn;

	if (write_zeros(w, w->fd, e->pos, to) < 0 || w->conf.io.sync(w->conf.io.arg, w->fd) < 0)
		return box_fail(err, BOX_ESYS, errno, "cut the torn end of %s", e->name);
	return 0;
}

static int begin_store(struct wal *w, struct box_err *err)
{
	static const uint8_t none[WAL_HASH];

	if (getrandom(w->id, sizeof(w->id), 0) != (ssize_t)sizeof(w->id))
		return box_fail(err, BOX_ESYS, errno, "choose an id for the store");
	w->seed = wal_seed(w->id);
	if (new_segment(w, 0, none, 0, err) < 0)
		return -1;
	/* The store's own name, or a crash takes everything with it. */
	if (sync_dir(w, "..") < 0)
		return box_fail(err, BOX_ESYS, errno, "sync the folder of %s", w->conf.path);
	return 0;
}

int wal_recover(struct wal *w, uint64_t from, wal_rec_fn fn, void *arg, struct wal_end *end,
    struct box_err *err)
{
	if (w->conf.io.unlink(w->conf.io.arg, w->dir, SPARE_NAME) < 0 && errno != ENOENT)
		return box_fail(err, BOX_ESYS, errno, "remove %s/" SPARE_NAME, w->conf.path);
	if (wal_scan(w->dir, from, WAL_SCAN_OPEN, fn, arg, end, err) < 0)
		return box_wrap(err, "store %s", w->conf.path);
	if (from > end->next || (from > 0 && !end->any))
		return box_fail(err, BOX_ECORRUPT, 0,
		    "store %s: its log ends at record %" PRIu64 ", its snapshot goes up to %" PRIu64
		    ": log files are missing",
		    w->conf.path, end->next, from);
	if (!end->any)
		return begin_store(w, err);
	memcpy(w->id, end->id, WAL_ID);
	w->seed = wal_seed(w->id);
	memcpy(w->chain, end->chain, WAL_HASH);
	w->next = w->fly_next = end->next;
	w->fd = w->conf.io.open(w->conf.io.arg, w->dir, end->name, O_RDWR | O_NOFOLLOW, 0);
	if (w->fd < 0)
		return box_fail(err, BOX_ESYS, errno, "open %s/%s", w->conf.path, end->name);
	w->size = end->size;
	atomic_store(&w->cur_size, end->size);
	atomic_store(&w->pos, end->pos);
	if (end->tail && cut_tail(w, end, err) < 0)
		return -1;
	atomic_store(&w->durable, w->next);
	if (!end->tail && end->durable >= end->next)
		return 0;
	/* What was read may be only in the page cache, left there by a program that was killed:
	 * from now on decisions rest on it. */
	if (w->conf.io.sync(w->conf.io.arg, w->fd) < 0)
		return box_fail(err, BOX_ESYS, errno, "sync %s/%s", w->conf.path, end->name);
	if (write_mark(w) < 0)
		return box_fail(err, BOX_ESYS, errno, "write %s/" WAL_MARK, w->conf.path);
	return 0;
}

int wal_append(struct wal *w, enum wal_kind kind, int64_t ts, sv body, struct box_err *err)
{
	size_t n = wal_rec_size(body.n), was = w->pend.n;
	struct wal_rec r = { .offset = w->next,
		.ts = ts,
		.durable = atomic_load(&w->durable),
		.kind = (uint8_t)kind,
		.body = body,
		.prev = w->chain };

	if (body.n == 0 || body.n > WAL_BODY_MAX)
		return box_fail(
		    err, BOX_ELIMIT, 0, "a record of %zu bytes does not fit the log", body.n);
	if (buf_room(&w->pend, n) == NULL)
		goto nomem;
	wal_rec_put(&w->pend, w->seed, &r);
	if (!buf_ok(&w->pend) || wal_hash(&w->hash, sv_sub(buf_sv(&w->pend), was, n), w->chain) < 0)
		goto nomem;
	w->next++;
	return 0;
nomem:
	w->pend.n = was;
	w->pend.bad = false;
	return box_nomem(err, "a log record");
}

uint64_t wal_next(const struct wal *w)
{
	return w->next;
}

size_t wal_pending(const struct wal *w)
{
	return w->pend.n;
}

uint64_t wal_take(struct wal *w)
{
	/* After a failed write the old bytes are still there and stay unwritten: the log is
	 * dead. */
	if (w->fly.n == 0) {
		struct buf t = w->fly;

		w->fly = w->pend;
		w->pend = t;
		w->fly_next = w->next;
	}
	return w->fly_next;
}

static int sync_now(struct wal *w)
{
	if (!w->dirty)
		return 0;
	if (w->conf.io.sync(w->conf.io.arg, w->fd) < 0)
		return -1;
	w->dirty = false;
	atomic_fetch_add(&w->syncs, 1);
	return 0;
}

static int write_out(struct wal *w, struct box_err *err)
{
	sv left = buf_sv(&w->fly);

	while (left.n != 0) {
		uint64_t pos = atomic_load(&w->pos);
		struct wal_rec r = { 0 };
		const char *why = "";
		size_t n = 0;

		/* As many whole records as fit. */
		while (n < left.n) {
			if (wal_rec_get(sv_sub(left, n, left.n), w->seed, &r, &why) != WAL_FOUND)
				return box_fail(
				    err, BOX_ECORRUPT, 0, "a record in memory: %s", why);
			if (pos + n + r.whole.n > w->size)
				break;
			n += r.whole.n;
		}
		if (n == 0) {
			if (sync_now(w) < 0)
				return box_fail(
				    err, BOX_ESYS, errno, "sync the log in %s", w->conf.path);
			if (new_segment(w, r.offset, r.prev, r.whole.n, err) < 0)
				return -1;
			continue;
		}
		if (w->conf.io.write(w->conf.io.arg, w->fd, left.p, n, (off_t)pos) < 0)
			return box_fail(err, BOX_ESYS, errno, "write the log in %s", w->conf.path);
		w->dirty = true;
		atomic_store(&w->pos, pos + n);
		left = sv_sub(left, n, left.n);
	}
	return 0;
}

int wal_write(struct wal *w, bool sync, struct box_err *err)
{
	if (w->poisoned)
		return box_fail(
		    err, BOX_ESYS, EIO, "the store %s failed before; open it anew", w->conf.path);
	if (write_out(w, err) < 0) {
		w->poisoned = true;
		return -1;
	}
	buf_clear(&w->fly);
	if (!sync)
		return 0;
	if (sync_now(w) < 0) {
		w->poisoned = true;
		return box_fail(err, BOX_ESYS, errno, "sync the log in %s", w->conf.path);
	}
	atomic_store(&w->durable, w->fly_next);
	/* The mark is not synced: it proves something only when it got there, and a crash of
	 * this program alone does not lose it. */
	if (write_mark(w) < 0) {
		w->poisoned = true;
		return box_fail(err, BOX_ESYS, errno, "write %s/" WAL_MARK, w->conf.path);
	}
	return 0;
}

uint64_t wal_durable(const struct wal *w)
{
	return atomic_load(&w->durable);
}

uint64_t wal_syncs(const struct wal *w)
{
	return atomic_load(&w->syncs);
}

int wal_prune(struct wal *w, uint64_t offset, uint64_t *base, struct box_err *err)
{
	char name[WAL_NAME_MAX];
	uint64_t *v = NULL;
	size_t n = 0;

	if (wal_seg_list(w->dir, &v, &n, err) < 0)
		return -1;
	*base = n != 0 ? v[0] : 0;
	/* Oldest first, so that what remains is always without a gap. The newest one stays. */
	for (size_t i = 0; i + 1 < n && v[i + 1] <= offset; i++) {
		wal_seg_name(v[i], name);
		if (w->conf.io.unlink(w->conf.io.arg, w->dir, name) < 0) {
			int e = errno;

			free(v);
			return box_fail(err, BOX_ESYS, e, "remove %s/%s", w->conf.path, name);
		}
		*base = v[i + 1];
	}
	free(v);
	return 0;
}
