/* Reading and checking a log. See scan.h. */
#include "engine/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
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

struct scan {
	int dir;
	enum wal_scan_mode mode;
	uint64_t from;
	wal_rec_fn fn;
	void *arg;
	struct wal_end *end;
	struct wal_hasher hash;
	uint8_t *bytes; /* one whole segment */
	size_t cap, n;
	uint32_t seed;
};

static int damaged(const struct scan *s, uint64_t pos, const char *why, struct box_err *err)
{
	return box_fail(err, BOX_ECORRUPT, 0,
	    "%s: byte %" PRIu64 " (record %" PRIu64 "): %s; the store is damaged and its history "
	    "cannot be trusted: restore it from a copy, or see `dogwood fsck`",
	    s->end->name, pos, s->end->next, why);
}

static int load(struct scan *s, struct box_err *err)
{
	AUTO_FD fd = openat(s->dir, s->end->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	ssize_t got;

	if (fd < 0 || fstat(fd, &st) < 0)
		return box_fail(err, BOX_ESYS, errno, "open %s", s->end->name);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > SEG_FILE_MAX)
		return damaged(s, 0, "not a log file of ours", err);
	s->n = (size_t)st.st_size;
	if (s->n > s->cap) {
		uint8_t *p = realloc(s->bytes, s->n);

		if (p == NULL)
			return box_nomem(err, "a log segment");
		s->bytes = p;
		s->cap = s->n;
	}
	got = s->n != 0 ? fd_read_full(fd, s->bytes, s->n) : 0;
	if (got < 0)
		return box_fail(err, BOX_ESYS, errno, "read %s", s->end->name);
	s->n = (size_t)got;
	return 0;
}

static sv rest(const struct scan *s, size_t pos)
{
	return sv_sub((sv){ (const char *)s->bytes, s->n }, pos, s->n);
}

/* The highest number of records that some intact record behind pos says were durable. */
static uint64_t later_proof(const struct scan *s, size_t pos)
{
	struct wal_rec r;
	const char *why;
	uint64_t proof = 0;

	for (size_t p = (pos + 8) & ~(size_t)7; p + WAL_REC_HDR <= s->n; p += 8) {
		if (wal_rec_get(rest(s, p), s->seed, &r, &why) != WAL_FOUND)
			continue;
		if (r.durable > proof)
			proof = r.durable;
	}
	return proof;
}

/* The records of one segment end at pos, which was judged `found`. Tail, or damage? */
static int seg_end(struct scan *s, size_t pos, enum wal_found found, const char *why, bool last,
    struct box_err *err)
{
	struct wal_end *e = s->end;
	size_t dirty = s->n;

	e->pos = pos;
	e->file_size = s->n;
	while (dirty > pos && s->bytes[dirty - 1] == 0)
		dirty--;
	e->torn = dirty - pos;
	e->tail = e->torn != 0 || s->n < e->size;
	if (s->mode == WAL_SCAN_LIVE)
		return 0;
	/* The next segment was begun only when this one was durable to its end; whether a record
	 * is missing shows in its first offset. */
	if (!last)
		return found == WAL_BAD ? damaged(s, pos, why, err) : 0;
	if (e->durable > e->next || (e->torn != 0 && later_proof(s, pos) > e->next))
		return damaged(
		    s, pos, found == WAL_BAD ? why : "an acknowledged record is missing here", err);
	return 0;
}

static int seg_records(struct scan *s, bool last, struct box_err *err)
{
	struct wal_end *e = s->end;
	size_t pos = WAL_SEG_HDR;
	const char *why = "";
	enum wal_found found;
	struct wal_rec r;

	for (;;) {
		found = wal_rec_get(rest(s, pos), s->seed, &r, &why);
		if (found != WAL_FOUND)
			break;
		/* An intact record in the wrong place is never a torn write. */
		if (r.offset != e->next)
			return damaged(s, pos, "a record is out of order", err);
		if (memcmp(r.prev, e->chain, WAL_HASH) != 0)
			return damaged(
			    s, pos, "the record does not continue the one before it", err);
		if (wal_hash(&s->hash, r.whole, e->chain) < 0)
			return box_nomem(err, "a hash");
		e->next++;
		e->last_ts = r.ts;
		pos += r.whole.n;
		if (s->fn != NULL && r.offset >= s->from && s->fn(s->arg, &r, err) != 0)
			return -1;
	}
	return seg_end(s, pos, found, why, last, err);
}

static int segment(struct scan *s, uint64_t first, bool is_first, bool last, struct box_err *err)
{
	struct wal_end *e = s->end;
	struct wal_seg h;
	const char *why;

	wal_seg_name(first, e->name);
	if (load(s, err) < 0)
		return -1;
	if (wal_seg_get(rest(s, 0), &h, &why) < 0)
		return damaged(s, 0, why, err);
	if (h.first != first)
		return damaged(s, 0, "the file has another segment's name", err);
	if (is_first) {
		memcpy(e->id, h.id, WAL_ID);
		memcpy(e->chain, h.prev, WAL_HASH);
		e->next = first;
		e->durable = s->mode == WAL_SCAN_OPEN ? mark_get(s->dir, h.id) : 0;
		s->seed = wal_seed(h.id);
	} else if (memcmp(e->id, h.id, WAL_ID) != 0) {
		return damaged(s, 0, "the segment belongs to another store", err);
	} else if (h.first != e->next) {
		return damaged(s, 0, "records are missing before this segment", err);
	} else if (memcmp(e->chain, h.prev, WAL_HASH) != 0) {
		return damaged(s, 0, "the segment does not continue the one before it", err);
	}
	e->size = h.size;
	return seg_records(s, last, err);
}

int wal_scan(int dir, uint64_t from, enum wal_scan_mode mode, wal_rec_fn fn, void *arg,
    struct wal_end *end, struct box_err *err)
{
	struct scan s = {
		.dir = dir, .mode = mode, .from = from, .fn = fn, .arg = arg, .end = end
	};
	uint64_t *v = NULL;
	size_t n = 0, begin = 0;
	int rc = -1;

	*end = (struct wal_end){ .last_ts = INT64_MIN };
	if (wal_seg_list(dir, &v, &n, err) < 0)
		return -1;
	if (wal_hasher_init(&s.hash, err) < 0)
		goto out;
	end->any = n != 0;
	end->segments = (unsigned)n;
	end->base = n != 0 ? v[0] : 0;
	if (mode == WAL_SCAN_OPEN && end->base > from) {
		(void)box_fail(err, BOX_ECORRUPT, 0,
		    "no usable snapshot and the log is pruned to offset %" PRIu64
		    "; cannot reconstruct the history",
		    end->base);
		goto out;
	}
	while (begin + 1 < n && v[begin + 1] <= from)
		begin++;
	for (size_t i = begin; i < n; i++)
		if (segment(&s, v[i], i == begin, i + 1 == n, err) < 0)
			goto out;
	rc = 0;
out:
	free(v);
	free(s.bytes);
	wal_hasher_fini(&s.hash);
	return rc;
}
