/* Reading and checking a log. See scan.h. */
#include "engine/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/hash.h"
#include "base/rd.h"

#include "base/ban.h"

#define SEG_FILE_MAX ((uint64_t)2 << 30)

int wal_hasher_init(struct wal_hasher *h, struct box_err *err)
{
	h->md = EVP_MD_fetch(NULL, "SHA256", NULL);
	h->ctx = EVP_MD_CTX_new();
	if (h->md == NULL || h->ctx == NULL) {
		wal_hasher_fini(h);
		return box_fail(err, BOX_ESYS, 0, "set up SHA-256: libcrypto refused");
	}
	return 0;
}

void wal_hasher_fini(struct wal_hasher *h)
{
	EVP_MD_CTX_free(h->ctx);
	EVP_MD_free(h->md);
	*h = (struct wal_hasher){ 0 };
}

int wal_hash(struct wal_hasher *h, sv whole, uint8_t out[WAL_HASH])
{
	unsigned n = 0;

	if (EVP_DigestInit_ex2(h->ctx, h->md, NULL) != 1 ||
	    EVP_DigestUpdate(h->ctx, whole.p, whole.n) != 1 ||
	    EVP_DigestFinal_ex(h->ctx, out, &n) != 1 || n != WAL_HASH)
		return -1;
	return 0;
}

void wal_seg_name(uint64_t first, char out[WAL_NAME_MAX])
{
	(void)snprintf(out, WAL_NAME_MAX, "log-%016" PRIx64, first); /* 20 bytes at most */
}

static bool seg_first(const char *name, uint64_t *first)
{
	char again[WAL_NAME_MAX];
	sv s = sv_c(name);

	if (!sv_starts(s, SV("log-")) || s.n != 20 ||
	    !sv_to_u64(sv_sub(s, 4, 16), 16, UINT64_MAX, first))
		return false;
	wal_seg_name(*first, again);
	return sv_eq(s, sv_c(again));
}

static int cmp_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int wal_seg_list(int dir, uint64_t **out, size_t *n, struct box_err *err)
{
	uint64_t *v = NULL, first;
	size_t cap = 0;
	struct dirent *de;
	DIR *d = NULL;
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*out = NULL;
	*n = 0;
	if (fd < 0 || (d = fdopendir(fd)) == NULL) {
		int e = errno;

		fd_drop(&fd);
		return box_fail(err, BOX_ESYS, e, "list the store");
	}
	for (errno = 0; (de = readdir(d)) != NULL; errno = 0) {
		if (!seg_first(de->d_name, &first))
			continue;
		if (*n == cap) {
			size_t c = cap == 0 ? 16 : 2 * cap;
			uint64_t *w = reallocarray(v, c, sizeof(*w));

			if (w == NULL) {
				free(v);
				(void)closedir(d);
				return box_nomem(err, "the list of log files");
			}
			v = w;
			cap = c;
		}
		v[(*n)++] = first;
	}
	if (errno != 0) {
		int e = errno;

		free(v);
		(void)closedir(d);
		*n = 0;
		return box_fail(err, BOX_ESYS, e, "list the store");
	}
	(void)closedir(d);
	if (*n != 0)
		qsort(v, *n, sizeof(*v), cmp_u64);
	*out = v;
	return 0;
}

void wal_mark_put(uint8_t out[WAL_MARK_LEN], const uint8_t id[WAL_ID], uint64_t durable)
{
	uint32_t crc;

	memcpy(out, id, WAL_ID);
	for (int i = 0; i < 8; i++)
		out[WAL_ID + i] = (uint8_t)(durable >> (56 - 8 * i));
	crc = crc32c(0, (sv){ (const char *)out, 24 });
	for (int i = 0; i < 4; i++)
		out[24 + i] = (uint8_t)(crc >> (24 - 8 * i));
}

/* A mark that is missing, torn or of another store says nothing: it only ever adds a proof. */
static uint64_t mark_get(int dir, const uint8_t id[WAL_ID])
{
	uint8_t b[WAL_MARK_LEN + 1], want[WAL_MARK_LEN];
	AUTO_FD fd = openat(dir, WAL_MARK, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	uint64_t v = 0;

	if (fd < 0 || fd_read_full(fd, b, sizeof(b)) != WAL_MARK_LEN)
		return 0;
	for (int i = 0; i < 8; i++)
		v = v << 8 | b[WAL_ID + i];
	wal_mark_put(want, id, v);
	return memcmp(b, want, WAL_MARK_LEN) == 0 ? v : 0;
}

/* One segment in memory, checked up to `upto`. */
struct seg {
	uint8_t *bytes;
	size_t cap, n, upto;
	int rc; /* -1: damaged or unreadable behind upto */
	struct box_err err;
};

/* Checking a segment is as much work as replaying it, so while the caller's thread gives out the
 * records of one, another thread reads and checks the next. */
#define SLOTS 2

struct scan {
	int dir;
	enum wal_scan_mode mode;
	uint64_t from;
	wal_rec_fn fn;
	void *arg;
	struct wal_end *end;
	struct wal_hasher hash;
	uint32_t seed;
	bool begun; /* a segment was checked */
	bool gone;  /* the newest segment of the list was dropped before it was read */

	const uint64_t *first; /* segments to read */
	size_t n;

	struct seg slot[SLOTS];
	pthread_mutex_t lock; /* over the rest, when there are two threads */
	pthread_cond_t turn;
	size_t checked, given; /* segments so far */
	bool stop;
};

static int damaged(const struct scan *s, uint64_t pos, const char *why, struct box_err *err)
{
	return box_fail(err, BOX_ECORRUPT, 0,
	    "%s: byte %" PRIu64 " (record %" PRIu64 "): %s; the store is damaged and its history "
	    "cannot be trusted: restore it from a copy, or see `dogwood fsck`",
	    s->end->name, pos, s->end->next, why);
}

/* 1: read; 0: it is gone, which a live store may do to its oldest ones; -1. */
static int load(struct scan *s, struct seg *g, struct box_err *err)
{
	AUTO_FD fd = openat(s->dir, s->end->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	ssize_t got;

	if (fd < 0 && errno == ENOENT && s->mode == WAL_SCAN_LIVE)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return box_fail(err, BOX_ESYS, errno, "open %s", s->end->name);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > SEG_FILE_MAX)
		return damaged(s, 0, "not a log file of ours", err);
	g->n = (size_t)st.st_size;
	if (g->n > g->cap) {
		uint8_t *p = realloc(g->bytes, g->n);

		if (p == NULL)
			return box_nomem(err, "a log segment");
		g->bytes = p;
		g->cap = g->n;
	}
	got = g->n != 0 ? fd_read_full(fd, g->bytes, g->n) : 0;
	if (got < 0)
		return box_fail(err, BOX_ESYS, errno, "read %s", s->end->name);
	g->n = (size_t)got;
	return 1;
}

static sv rest(const struct seg *g, size_t pos)
{
	return sv_sub((sv){ (const char *)g->bytes, g->n }, pos, g->n);
}

/* The highest number of records that some intact record behind pos says were durable. */
static uint64_t later_proof(const struct scan *s, const struct seg *g, size_t pos)
{
	struct wal_rec r;
	const char *why;
	uint64_t proof = 0;

	for (size_t p = (pos + 8) & ~(size_t)7; p + WAL_REC_HDR <= g->n; p += 8) {
		if (wal_rec_get(rest(g, p), s->seed, &r, &why) != WAL_FOUND)
			continue;
		if (r.durable > proof)
			proof = r.durable;
	}
	return proof;
}

/* The records of one segment end at g->upto, which was judged `found`. Tail, or damage? */
static int seg_end(struct scan *s, const struct seg *g, enum wal_found found, const char *why,
    bool last, struct box_err *err)
{
	struct wal_end *e = s->end;
	size_t pos = g->upto, dirty = g->n;

	e->pos = pos;
	e->file_size = g->n;
	while (dirty > pos && g->bytes[dirty - 1] == 0)
		dirty--;
	e->torn = dirty - pos;
	e->tail = e->torn != 0 || g->n < e->size;
	if (s->mode == WAL_SCAN_LIVE)
		return 0;
	/* The next segment was begun only when this one was durable to its end; whether a record
	 * is missing shows in its first offset. */
	if (!last)
		return found == WAL_BAD ? damaged(s, pos, why, err) : 0;
	if (e->durable > e->next || (e->torn != 0 && later_proof(s, g, pos) > e->next))
		return damaged(
		    s, pos, found == WAL_BAD ? why : "an acknowledged record is missing here", err);
	return 0;
}

static int seg_records(struct scan *s, struct seg *g, bool last, struct box_err *err)
{
	struct wal_end *e = s->end;
	const char *why = "";
	enum wal_found found;
	struct wal_rec r;

	for (g->upto = WAL_SEG_HDR;; g->upto += r.whole.n) {
		found = wal_rec_get(rest(g, g->upto), s->seed, &r, &why);
		if (found != WAL_FOUND)
			break;
		/* An intact record in the wrong place is never a torn write. */
		if (r.offset != e->next)
			return damaged(s, g->upto, "a record is out of order", err);
		if (memcmp(r.prev, e->chain, WAL_HASH) != 0)
			return damaged(
			    s, g->upto, "the record does not continue the one before it", err);
		if (wal_hash(&s->hash, r.whole, e->chain) < 0)
			return box_nomem(err, "a hash");
		e->next++;
		e->last_ts = r.ts;
	}
	return seg_end(s, g, found, why, last, err);
}

/* Read and check the segment whose first record is `first`. */
static int check(struct scan *s, struct seg *g, uint64_t first, bool last, struct box_err *err)
{
	struct wal_end *e = s->end;
	struct wal_seg h;
	const char *why;
	int rc;

	g->upto = 0;
	wal_seg_name(first, e->name);
	rc = load(s, g, err);
	if (rc <= 0) {
		/* What follows does not continue what was read before the hole. */
		s->begun = false;
		s->gone = rc == 0 && last;
		return rc;
	}
	if (wal_seg_get(rest(g, 0), &h, &why) < 0)
		return damaged(s, 0, why, err);
	if (h.first != first)
		return damaged(s, 0, "the file has another segment's name", err);
	if (!s->begun) {
		memcpy(e->id, h.id, WAL_ID);
		memcpy(e->chain, h.prev, WAL_HASH);
		e->next = first;
		e->durable = s->mode == WAL_SCAN_OPEN ? mark_get(s->dir, h.id) : 0;
		s->seed = wal_seed(h.id);
		s->begun = true;
	} else if (memcmp(e->id, h.id, WAL_ID) != 0) {
		return damaged(s, 0, "the segment belongs to another store", err);
	} else if (h.first != e->next) {
		return damaged(s, 0, "records are missing before this segment", err);
	} else if (memcmp(e->chain, h.prev, WAL_HASH) != 0) {
		return damaged(s, 0, "the segment does not continue the one before it", err);
	}
	e->size = h.size;
	return seg_records(s, g, last, err);
}

static void check_into(struct scan *s, struct seg *g, size_t i)
{
	g->rc = check(s, g, s->first[i], i + 1 == s->n, &g->err);
}

/* Give out the records of a segment. */
static int give(const struct scan *s, const struct seg *g, struct box_err *err)
{
	struct wal_rec r;

	for (size_t pos = WAL_SEG_HDR; s->fn != NULL && pos < g->upto; pos += r.whole.n) {
		wal_rec_view(rest(g, pos), &r);
		if (r.offset >= s->from && s->fn(s->arg, &r, err) != 0)
			return -1;
	}
	if (g->rc < 0)
		*err = g->err;
	return g->rc;
}

static void *checker(void *arg)
{
	struct scan *s = arg;

	(void)pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->n && !s->stop; i++) {
		while (!s->stop && i - s->given == SLOTS)
			(void)pthread_cond_wait(&s->turn, &s->lock);
		if (s->stop)
			break;
		(void)pthread_mutex_unlock(&s->lock);
		check_into(s, &s->slot[i % SLOTS], i);
		(void)pthread_mutex_lock(&s->lock);
		s->checked = i + 1;
		(void)pthread_cond_broadcast(&s->turn);
		if (s->slot[i % SLOTS].rc < 0)
			break;
	}
	(void)pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Whether one thread does both or two share it. */
static int scan_all(struct scan *s, struct box_err *err)
{
	bool two = s->fn != NULL && s->n > 1;
	sigset_t all, old;
	pthread_t t;
	int rc = 0;

	if (two) {
		/* Signals are the caller's, on its own thread. */
		(void)sigfillset(&all);
		(void)pthread_sigmask(SIG_BLOCK, &all, &old);
		two = pthread_create(&t, NULL, checker, s) == 0;
		(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	for (size_t i = 0; i < s->n && rc == 0; i++) {
		struct seg *g = &s->slot[i % SLOTS];

		if (!two)
			check_into(s, g, i);
		(void)pthread_mutex_lock(&s->lock);
		while (two && s->checked == i)
			(void)pthread_cond_wait(&s->turn, &s->lock);
		(void)pthread_mutex_unlock(&s->lock);
		rc = give(s, g, err);
		(void)pthread_mutex_lock(&s->lock);
		s->given = i + 1;
		(void)pthread_cond_broadcast(&s->turn);
		(void)pthread_mutex_unlock(&s->lock);
	}
	if (two) {
		(void)pthread_mutex_lock(&s->lock);
		s->stop = true;
		(void)pthread_cond_broadcast(&s->turn);
		(void)pthread_mutex_unlock(&s->lock);
		(void)pthread_join(t, NULL);
	}
	return rc;
}

/* One look at the folder. */
static int scan_once(struct scan *s, struct box_err *err)
{
	struct wal_end *e = s->end;
	uint64_t *v = NULL;
	size_t n = 0, begin = 0;
	int rc = -1;

	*e = (struct wal_end){ .last_ts = INT64_MIN };
	if (wal_seg_list(s->dir, &v, &n, err) < 0)
		return -1;
	e->any = n != 0;
	e->segments = (unsigned)n;
	e->base = n != 0 ? v[0] : 0;
	if (s->mode == WAL_SCAN_OPEN && e->base > s->from) {
		(void)box_fail(err, BOX_ECORRUPT, 0,
		    "no usable snapshot and the log is pruned to offset %" PRIu64
		    "; cannot reconstruct the history",
		    e->base);
		goto out;
	}
	while (begin + 1 < n && v[begin + 1] <= s->from)
		begin++;
	s->first = n != 0 ? v + begin : v;
	s->n = n - begin;
	s->begun = s->gone = s->stop = false;
	s->checked = s->given = 0;
	rc = scan_all(s, err);
out:
	free(v);
	return rc;
}

int wal_scan(int dir, uint64_t from, enum wal_scan_mode mode, wal_rec_fn fn, void *arg,
    struct wal_end *end, struct box_err *err)
{
	struct scan s = {
		.dir = dir, .mode = mode, .from = from, .fn = fn, .arg = arg, .end = end
	};
	int rc;

	if (wal_hasher_init(&s.hash, err) < 0)
		return -1;
	(void)pthread_mutex_init(&s.lock, NULL);
	(void)pthread_cond_init(&s.turn, NULL);
	do {
		rc = scan_once(&s, err);
		if (end->next > s.from)
			s.from = end->next;
	} while (rc == 0 && s.gone);
	(void)pthread_cond_destroy(&s.turn);
	(void)pthread_mutex_destroy(&s.lock);
	for (size_t i = 0; i < SLOTS; i++)
		free(s.slot[i].bytes);
	wal_hasher_fini(&s.hash);
	return rc;
}
