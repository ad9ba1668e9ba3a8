/* The log under good and bad weather: what was acknowledged is there after anything, or the
 * store is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "engine/wal.h"
#include "tmp.h"

#include "base/ban.h"

#define BODY 200

static sv body_of(uint64_t i, char *out)
{
	uint64_t s = i * 2654435761U + 1;

	for (size_t k = 0; k < BODY; k++)
		out[k] = (char)tmp_rand(&s);
	return (sv){ out, 1 + i % BODY };
}

struct seen {
	uint64_t next; /* expected */
	uint64_t n;
};

static int on_rec(void *arg, const struct wal_rec *r, struct box_err *err)
{
	struct seen *s = arg;
	char b[BODY];

	(void)err;
	assert_int_equal(r->offset, s->next);
	assert_int_equal(r->ts, (int64_t)r->offset + 1000);
	assert_int_equal(r->kind, WAL_EVENT);
	assert_true(sv_eq(r->body, body_of(r->offset, b)));
	s->next++;
	s->n++;
	return 0;
}

static int open_at(const char *path, struct eng_io io, uint64_t from, struct wal **w,
    struct wal_end *end, uint64_t *n, struct box_err *err)
{
	struct wal_conf c = { .path = path, .seg_bytes = WAL_SEG_MIN, .io = io };
	struct seen s = { .next = from };

	if (wal_open(&c, w, err) < 0)
		return -1;
	if (wal_recover(*w, from, on_rec, &s, end, err) < 0) {
		wal_close(*w);
		*w = NULL;
		return -1;
	}
	*n = s.n;
	return 0;
}

static int open_ok(const char *path, struct wal **w, struct wal_end *end, struct box_err *err)
{
	uint64_t n;

	return open_at(path, eng_io_system(), 0, w, end, &n, err);
}

static int put(struct wal *w, unsigned n, struct box_err *err)
{
	char b[BODY];

	for (unsigned i = 0; i < n; i++) {
		uint64_t o = wal_next(w);

		if (wal_append(w, WAL_EVENT, (int64_t)o + 1000, body_of(o, b), err) < 0)
			return -1;
	}
	return 0;
}

static int commit(struct wal *w, bool sync, struct box_err *err)
{
	(void)wal_take(w);
	return wal_write(w, sync, err);
}

/* A store with n acknowledged records and m more that were written but not synced. */
static void make_store(const char *path, unsigned n, unsigned m)
{
	struct box_err err = { 0 };
	struct wal_end end;
	struct wal *w;

	assert_int_equal(open_ok(path, &w, &end, &err), 0);
	assert_int_equal(put(w, n, &err), 0);
	assert_int_equal(commit(w, true, &err), 0);
	assert_int_equal(put(w, m, &err), 0);
	assert_int_equal(commit(w, false, &err), 0);
	assert_int_equal(wal_durable(w), n);
	wal_close(w);
}

static void test_round_trip(void **state)
{
	const char *path = tmp_path("round");
	struct box_err err = { 0 };
	struct wal_end end;
	struct wal *w;
	uint64_t total = 0, base, n;

	(void)state;
	for (unsigned round = 0; round < 6; round++) {
		assert_int_equal(open_ok(path, &w, &end, &err), 0);
		assert_int_equal(end.next, total);
		assert_int_equal(end.tail, 0);
		for (unsigned i = 0; i < 20; i++) {
			assert_int_equal(put(w, 1 + 7 * i, &err), 0);
			total += 1 + 7 * i;
			assert_int_equal(commit(w, i % 3 != 0, &err), 0);
			if (i == 9 && wal_wants_spare(w))
				assert_int_equal(wal_prepare(w, &err), 0);
		}
		assert_int_equal(wal_next(w), total);
		wal_close(w);
	}
	assert_true(end.segments > 4);
	/* Drop the older half; the log then begins at a segment border at or below that. */
	assert_int_equal(open_ok(path, &w, &end, &err), 0);
	assert_int_equal(wal_prune(w, total / 2, &base, &err), 0);
	assert_true(base > 0 && base <= total / 2);
	wal_close(w);
	assert_int_equal(open_ok(path, &w, &end, &err), -1);
	assert_int_equal(err.code, BOX_ECORRUPT);
	assert_non_null(strstr(err.msg, "no usable snapshot and the log is pruned to offset"));
	assert_int_equal(open_at(path, eng_io_system(), total / 2, &w, &end, &n, &err), 0);
	assert_int_equal(n, total - total / 2);
	wal_close(w);
	assert_int_equal(open_at(path, eng_io_system(), total + 1, &w, &end, &n, &err), -1);
	assert_int_equal(err.code, BOX_ECORRUPT);
}

static void test_big_record(void **state)
{
	const char *path = tmp_path("big");
	size_t n = 1000 * 1000;
	char *big = malloc(n);
	struct box_err err = { 0 };
	struct wal_conf c = { .path = path, .seg_bytes = WAL_SEG_MIN, .io = eng_io_system() };
	struct wal_end end;
	struct wal *w;

	(void)state;
	assert_non_null(big);
	memset(big, 'x', n);
	assert_int_equal(wal_open(&c, &w, &err), 0);
	assert_int_equal(wal_recover(w, 0, NULL, NULL, &end, &err), 0);
	assert_int_equal(wal_append(w, WAL_INSTALL, 1, (sv){ big, n }, &err), 0);
	assert_int_equal(wal_append(w, WAL_INSTALL, 2, (sv){ big, 0 }, &err), -1);
	assert_int_equal(err.code, BOX_ELIMIT);
	assert_int_equal(commit(w, true, &err), 0);
	wal_close(w);
	assert_int_equal(wal_open(&c, &w, &err), 0);
	assert_int_equal(wal_recover(w, 0, NULL, NULL, &end, &err), 0);
	assert_int_equal(end.next, 1);
	wal_close(w);
	free(big);
}

static void test_one_owner(void **state)
{
	const char *path = tmp_path("lock");
	struct box_err err = { 0 };
	struct wal_end end;
	struct wal *w, *other = NULL;

	(void)state;
	assert_int_equal(open_ok(path, &w, &end, &err), 0);
	assert_int_equal(open_ok(path, &other, &end, &err), -1);
	assert_int_equal(err.sys, EBUSY);
	assert_non_null(strstr(err.msg, "in use by process"));
	wal_close(w);
	assert_int_equal(open_ok(path, &w, &end, &err), 0);
	wal_close(w);
}

/* Cut the newest file at every byte of its last record. Not acknowledged: the record is gone,
 * the rest stands. Acknowledged: the store is refused. */
static void test_truncate(void **state)
{
	const char *acked = tmp_path("cut-a"), *loose = tmp_path("cut-b");
	struct box_err err = { 0 };
	struct wal_end end;
	struct wal *w;

	(void)state;
	make_store(acked, 7, 0);
	make_store(loose, 6, 1);
	for (int which = 0; which < 2; which++) {
		const char *store = which == 0 ? acked : loose;
		size_t n, last = wal_rec_size(1 + 6), to;
		uint8_t *p = tmp_read(store, tmp_newest(store), &n);
		size_t stop = WAL_SEG_HDR;

		for (uint64_t i = 0; i < 7; i++)
			stop += wal_rec_size(1 + i % BODY);
		for (to = stop - last; to < stop; to++) {
			const char *c = tmp_path("cut-copy");

			tmp_copy(store, c);
			tmp_write(c, tmp_newest(c), p, to);
			memset(&err, 0, sizeof(err));
			if (which == 0) {
				assert_int_equal(open_ok(c, &w, &end, &err), -1);
				assert_int_equal(err.code, BOX_ECORRUPT);
				assert_non_null(strstr(err.msg, "record 6"));
				continue;
			}
			assert_int_equal(open_ok(c, &w, &end, &err), 0);
			assert_int_equal(end.next, 6);
			assert_true(end.tail);
			/* It goes on, and the file has its full size again. */
			assert_int_equal(put(w, 3, &err), 0);
			assert_int_equal(commit(w, true, &err), 0);
			wal_close(w);
			assert_int_equal(open_ok(c, &w, &end, &err), 0);
			assert_int_equal(end.next, 9);
			assert_false(end.tail);
			wal_close(w);
		}
		free(p);
	}
}

/* One flipped bit anywhere: refused, or every acknowledged record is there and right (on_rec
 * compares). */
static void test_flip(void **state)
{
	const char *store = tmp_path("flip"), *copy = tmp_path("flip-copy");
	struct box_err err = { 0 };
	struct wal_end end;
	struct wal *w;
	const char *names[3];
	char seg[64];
	uint64_t rnd = 42;
	unsigned refused = 0, opened = 0;

	(void)state;
	make_store(store, 12, 2);
	tmp_copy(store, copy);
	(void)snprintf(seg, sizeof(seg), "%s", tmp_newest(store));
	names[0] = seg;
	names[1] = WAL_MARK;
	names[2] = "lock";
	for (int f = 0; f < 3; f++) {
		size_t n, upto;
		uint8_t *p = tmp_read(store, names[f], &n);

		upto = n < 8192 ? n : 8192;
		for (size_t i = 0; i < upto; i++) {
			uint8_t bit = (uint8_t)(1U << (tmp_rand(&rnd) % 8));

			/* The zero part of the header block is all alike: a sample will do. */
			if (f == 0 && i > 128 && i < 4080 && i % 31 != 0)
				continue;
			p[i] ^= bit;
			tmp_write(copy, names[f], p, n);
			p[i] ^= bit;
			if (open_ok(copy, &w, &end, &err) < 0) {
				assert_int_equal(err.code, BOX_ECORRUPT);
				refused++;
			} else {
				assert_true(end.next >= 12);
				wal_close(w);
				opened++;
			}
			/* Opening may have cut or marked. */
			if (f != 0) {
				size_t m;
				uint8_t *q = tmp_read(store, seg, &m);

				tmp_write(copy, seg, q, m);
				free(q);
			} else {
				size_t m;
				uint8_t *q = tmp_read(store, WAL_MARK, &m);

				tmp_write(copy, WAL_MARK, q, m);
				free(q);
			}
		}
		tmp_write(copy, names[f], p, n);
		free(p);
	}
	assert_true(refused > 1000);
	assert_true(opened > 100);
}

/* Any part of an unsynced write may have reached the disk before a power cut: sectors come and
 * go independently. What was acknowledged stands, the store opens, and what else is there is a
 * run without gap. */
static void test_torn(void **state)
{
	const char *store = tmp_path("torn"), *before = tmp_path("torn-before"), *copy;
	struct box_err err = { 0 };
	struct wal_end end;
	struct wal *w;
	size_t n, m;
	uint8_t *a, *b, *mix;
	uint64_t rnd = 7;

	(void)state;
	make_store(before, 9, 0);
	tmp_copy(before, store);
	assert_int_equal(open_ok(store, &w, &end, &err), 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(put(w, 5, &err), 0);
		assert_int_equal(commit(w, false, &err), 0);
	}
	wal_close(w);
	a = tmp_read(before, tmp_newest(before), &n);
	b = tmp_read(store, tmp_newest(store), &m);
	assert_int_equal(n, m);
	mix = malloc(n);
	assert_non_null(mix);
	for (int round = 0; round < 600; round++) {
		for (size_t i = 0; i < n; i += 512)
			memcpy(mix + i, (tmp_rand(&rnd) & 1) != 0 ? a + i : b + i, 512);
		copy = tmp_path("torn-copy");
		tmp_copy(store, copy);
		tmp_write(copy, tmp_newest(copy), mix, n);
		assert_int_equal(open_ok(copy, &w, &end, &err), 0);
		assert_true(end.next >= 9 && end.next <= 29);
		assert_int_equal(put(w, 2, &err), 0);
		assert_int_equal(commit(w, true, &err), 0);
		m = (size_t)wal_next(w);
		wal_close(w);
		assert_int_equal(open_ok(copy, &w, &end, &err), 0);
		assert_int_equal(end.next, m);
		wal_close(w);
	}
	free(a);
	free(b);
	free(mix);
}

/* A record changed by hand with a right check sum: the next one's hash gives it away. */
static void test_forged(void **state)
{
	const char *store = tmp_path("forged");
	struct box_err err = { 0 };
	struct wal_end end;
	struct wal_seg h;
	struct wal_rec r;
	const char *why;
	struct wal *w;
	size_t n;
	uint8_t *p;
	AUTO_BUF b = buf_with(4096);
	char body[BODY];

	(void)state;
	make_store(store, 5, 0);
	p = tmp_read(store, tmp_newest(store), &n);
	assert_int_equal(wal_seg_get((sv){ (char *)p, n }, &h, &why), 0);
	assert_int_equal(
	    wal_rec_get((sv){ (char *)p + WAL_SEG_HDR, n - WAL_SEG_HDR }, wal_seed(h.id), &r, &why),
	    WAL_FOUND);
	(void)body_of(0, body);
	body[0] ^= 1;
	r.body = (sv){ body, r.body.n };
	wal_rec_put(&b, wal_seed(h.id), &r);
	memcpy(p + WAL_SEG_HDR, b.p, b.n);
	tmp_write(store, tmp_newest(store), p, n);
	free(p);
	{
		struct wal_conf c = {
			.path = store, .seg_bytes = WAL_SEG_MIN, .io = eng_io_system()
		};
		assert_int_equal(wal_open(&c, &w, &err), 0);
		assert_int_equal(wal_recover(w, 0, NULL, NULL, &end, &err), -1);
		assert_int_equal(err.code, BOX_ECORRUPT);
		assert_non_null(strstr(err.msg, "does not continue"));
		wal_close(w);
	}
}

/* Bytes in an event that look like a record of another store prove nothing. */
static void test_embedded(void **state)
{
	const char *store = tmp_path("embedded");
	uint8_t other[WAL_ID] = { 1 }, prev[WAL_HASH] = { 0 };
	struct wal_rec r = {
		.offset = 77, .durable = 1000000, .kind = WAL_EVENT, .body = SV("x"), .prev = prev
	};
	struct box_err err = { 0 };
	struct wal_conf c = { .path = store, .seg_bytes = WAL_SEG_MIN, .io = eng_io_system() };
	struct wal_end end;
	struct wal *w;
	size_t n;
	uint8_t *p;
	AUTO_BUF b = buf_with(4096);

	(void)state;
	wal_rec_put(&b, wal_seed(other), &r);
	assert_int_equal(wal_open(&c, &w, &err), 0);
	assert_int_equal(wal_recover(w, 0, NULL, NULL, &end, &err), 0);
	assert_int_equal(wal_append(w, WAL_EVENT, 1, buf_sv(&b), &err), 0);
	assert_int_equal(commit(w, false, &err), 0);
	wal_close(w);
	/* The record that carries it is torn. */
	p = tmp_read(store, tmp_newest(store), &n);
	p[WAL_SEG_HDR] = 0xff;
	tmp_write(store, tmp_newest(store), p, n);
	free(p);
	assert_int_equal(wal_open(&c, &w, &err), 0);
	assert_int_equal(wal_recover(w, 0, NULL, NULL, &end, &err), 0);
	assert_int_equal(end.next, 0);
	assert_true(end.torn > 0);
	wal_close(w);
}

/* One life of a store: open, write in steps with rotations and a spare, prune. Returns the
 * number of acknowledged records; what fails ends it. */
static uint64_t life(const char *path, struct tmp_faults *f)
{
	struct box_err err = { 0 };
	struct wal_end end;
	struct wal *w = NULL;
	uint64_t n, acked = 0, base;

	if (open_at(path, tmp_io(f), 0, &w, &end, &n, &err) < 0) {
		assert_true(err.msg[0] != '\0');
		return 0;
	}
	for (int i = 0; i < 14; i++) {
		if (put(w, 60, &err) < 0)
			break;
		if (i == 5 || i == 9)
			(void)wal_prepare(
			    w, &err); /* may fail; then the writer makes the segment */
		if (commit(w, i % 2 == 0, &err) < 0) {
			/* Dead for good, even if the disk recovers. */
			f->fail_at = 0;
			assert_int_equal(commit(w, true, &err), -1);
			break;
		}
		acked = wal_durable(w);
	}
	(void)wal_prune(w, 0, &base, &err);
	wal_close(w);
	return acked;
}

static void test_faults(void **state)
{
	struct tmp_faults f = { 0 };
	const int errors[] = { EIO, ENOSPC };
	unsigned calls;

	(void)state;
	assert_int_equal(life(tmp_path("life"), &f), 13 * 60);
	calls = f.calls;
	assert_true(calls > 30);
	for (int variant = 0; variant < 6; variant++)
		for (unsigned n = 1; n <= calls; n++) {
			const char *path = tmp_path("life-n");
			struct box_err err = { 0 };
			struct wal_end end = { 0 };
			struct wal *w = NULL;
			uint64_t acked;

			f = (struct tmp_faults){ .fail_at = n,
				.error = errors[variant % 2],
				.stay = variant >= 2,
				.short_write = variant >= 4 };
			acked = life(path, &f);
			if (open_ok(path, &w, &end, &err) < 0) {
				fail_msg("call %u, variant %d: %s", n, variant, err.msg);
			}
			assert_true(end.next >= acked);
			wal_close(w);
		}
}

static void test_not_ours(void **state)
{
	const char *store = tmp_path("mode");
	struct box_err err = { 0 };
	struct wal_end end;
	struct wal *w;

	(void)state;
	make_store(store, 1, 0);
	assert_int_equal(chmod(store, 0722), 0);
	assert_int_equal(open_ok(store, &w, &end, &err), -1);
	assert_int_equal(err.code, BOX_EDENIED);
	assert_int_equal(open_ok("no-such-folder/store", &w, &end, &err), -1);
	assert_int_equal(err.sys, ENOENT);
}

static int done(void **state)
{
	(void)state;
	tmp_done();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_big_record),
		cmocka_unit_test(test_one_owner),
		cmocka_unit_test(test_truncate),
		cmocka_unit_test(test_flip),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_forged),
		cmocka_unit_test(test_embedded),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_not_ours),
	};

	return cmocka_run_group_tests(tests, NULL, done);
}
