/* arena, err, hash, clock, fd, secret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/secret.h"
#include "failmalloc.h"

static void arena_allocates(void **state)
{
	AUTO_ARENA a = { .limit = 100000 };
	char *p, *q;
	const int *old;
	sv s;

	(void)state;
	p = arena_alloc(&a, 3, 1);
	q = arena_alloc(&a, 5, 1);
	assert_non_null(p);
	assert_true(
	    (uintptr_t)p % alignof(max_align_t) == 0 && (uintptr_t)q % alignof(max_align_t) == 0);
	memset(p, 0xff, 3);
	for (int i = 0; i < 5; i++)
		assert_int_equal(q[i], 0);
	assert_non_null(arena_alloc(&a, 0, 8));
	assert_null(arena_alloc(&a, SIZE_MAX, 2));
	assert_null(arena_alloc(&a, SIZE_MAX, 1));
	s = arena_dup(&a, SV("a\0b"));
	assert_int_equal(s.n, 3);
	assert_memory_equal(s.p, "a\0b\0", 4);
	assert_string_equal(arena_dup(&a, (sv){ NULL, 0 }).p, "");
	assert_string_equal(arena_printf(&a, "%d-%s", 7, "x"), "7-x");
	static const int three[] = { 1, 2, 3 };

	old = arena_grow(&a, three, 3, 5, sizeof(int));
	assert_int_equal(old[2], 3);
	assert_int_equal(old[4], 0);
	/* the limit holds, also for many small pieces, and freeing makes room again */
	assert_null(arena_alloc(&a, 100001, 1));
	for (int i = 0; i < 200; i++)
		(void)arena_alloc(&a, 1000, 1); /* some fail */
	assert_true(a.total <= 100000);
	assert_null(arena_alloc(&a, 90000, 1));
	arena_free(&a);
	assert_int_equal(a.total, 0);
	assert_non_null(arena_alloc(&a, 90000, 1));
	fail_after(1);
	assert_null(arena_alloc(&a, 5000, 1));
	fail_after(0);
}

static void errors_carry_text(void **state)
{
	struct box_err err = { 0 };
	char big[3000];

	(void)state;
	assert_int_equal(box_fail(&err, BOX_ESYS, ENOENT, "open %s", "/x"), -1);
	assert_string_equal(err.msg, "open /x: No such file or directory");
	assert_int_equal(err.code, BOX_ESYS);
	assert_int_equal(err.sys, ENOENT);
	assert_int_equal(box_wrap(&err, "read %s", "y"), -1);
	assert_string_equal(err.msg, "read y: open /x: No such file or directory");
	assert_int_equal(err.sys, ENOENT);
	/* the text may be part of the new one */
	(void)box_fail(&err, BOX_EPARSE, 0, "again: %s", err.msg);
	assert_string_equal(err.msg, "again: read y: open /x: No such file or directory");
	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	(void)box_fail(&err, BOX_EPARSE, EIO, "%s", big);
	assert_int_equal(strlen(err.msg), BOX_ERR_MSG_MAX - 1);
	assert_string_equal(err.msg + BOX_ERR_MSG_MAX - 4, "...");
	(void)box_wrap(&err, "%s", big);
	assert_int_equal(strlen(err.msg), BOX_ERR_MSG_MAX - 1);
	assert_int_equal(box_fail(NULL, BOX_EPARSE, 0, "nowhere"), -1);
	assert_int_equal(box_wrap(NULL, "nowhere"), -1);
	assert_int_equal(box_nomem(&err, "a thing"), -1);
	assert_int_equal(err.code, BOX_ENOMEM);
	assert_string_equal(box_strerror(EACCES), "Permission denied");
	assert_non_null(box_strerror(99999));
}

static void hashes_known_vectors(void **state)
{
	/* SipHash-2-4 reference vectors: key 00..0f, message 00..n-1 (Aumasson and Bernstein 2012,
	 * appendix A and vectors.h) */
	static const uint64_t want[] = { UINT64_C(0x726fdb47dd0e0e31), UINT64_C(0x74f839c593dc67fd),
		UINT64_C(0x0d6c8009d9a94f5a), UINT64_C(0x85676696d7fb7e2d) };
	struct sip_key k = { UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908) };
	char msg[64];

	(void)state;
	for (int i = 0; i < 64; i++)
		msg[i] = (char)i;
	for (size_t n = 0; n < 4; n++)
		assert_true(sip_hash(k, (sv){ msg, n }) == want[n]);
	assert_true(sip_hash(k, (sv){ msg, 15 }) == UINT64_C(0xa129ca6149be45e5));
	assert_true(sip_hash(k, (sv){ NULL, 0 }) == want[0]);
	/* CRC-32C: RFC 3720 B.4 */
	char zeros[32] = { 0 }, ones[32], up[32], down[32];

	memset(ones, 0xff, sizeof(ones));
	for (int i = 0; i < 32; i++) {
		up[i] = (char)i;
		down[i] = (char)(31 - i);
	}
	assert_int_equal(crc32c(0, (sv){ zeros, 32 }), 0x8a9136aa);
	assert_int_equal(crc32c(0, (sv){ ones, 32 }), 0x62a8ab43);
	assert_int_equal(crc32c(0, (sv){ up, 32 }), 0x46dd794e);
	assert_int_equal(crc32c(0, (sv){ down, 32 }), 0x113fdb5c);
	assert_int_equal(crc32c(0, SV("123456789")), 0xe3069283);
	assert_int_equal(crc32c(crc32c(0, SV("1234")), SV("56789")), 0xe3069283);
	assert_int_equal(crc32c(0, SV("")), 0);
	struct sip_key a = sip_key_random(), b = sip_key_random();

	assert_true(a.k0 != b.k0 || a.k1 != b.k1);
}

static void clocks_tell(void **state)
{
	int64_t now = 0;
	struct clock c = clock_fixed(&now), w = clock_wall(), m = clock_mono();
	char out[CLOCK_TEXT_MAX];
	int64_t a, b;

	(void)state;
	clock_format(clock_now(&c), out);
	assert_string_equal(out, "1970-01-01T00:00:00.000000000Z");
	now = INT64_C(1796032800) * NS_PER_SEC + 123456789;
	clock_format(clock_now(&c), out);
	assert_string_equal(out, "2026-11-30T10:00:00.123456789Z");
	clock_format(-1, out);
	assert_string_equal(out, "1969-12-31T23:59:59.999999999Z");
	clock_format(INT64_MIN, out);
	clock_format(INT64_MAX, out);
	assert_true(clock_now(&w) > INT64_C(1600000000) * NS_PER_SEC);
	a = clock_now(&m);
	b = clock_now(&m);
	assert_true(b >= a);
}

static void files_are_whole(void **state)
{
	char dir[] = "/tmp/box-base-test-XXXXXX", path[64], link[64];
	AUTO_BUF b = buf_with(100);
	struct box_err err = { 0 };
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/f", dir);
	(void)snprintf(link, sizeof(link), "%s/l", dir);
	assert_int_equal(fd_write_file_atomic(path, 0640, SV("hello\n"), &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(fd_write_file_atomic(path, 0600, SV("again"), &err), 0);
	assert_int_equal(symlink("f", link), 0);
	assert_int_equal(fd_read_file(link, 5, &b, &err), 0);
	assert_true(sv_eq(buf_sv(&b), SV("again")));
	buf_fini(&b);
	assert_int_equal(fd_read_file(path, 4, &b, &err), -1);
	assert_int_equal(err.code, BOX_ELIMIT);
	buf_fini(&b);
	assert_int_equal(fd_read_file(dir, 100, &b, &err), -1);
	assert_non_null(strstr(err.msg, "is not a regular file"));
	assert_int_equal(fd_read_file("/nonexistent/x", 100, &b, &err), -1);
	assert_int_equal(err.sys, ENOENT);
	assert_int_equal(fd_write_file_atomic("/nonexistent/x", 0600, SV("x"), &err), -1);
	/* openat2 refuses what leaves the folder */
	AUTO_FD d = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO_FD f = fd_openat2(d, "f", O_RDONLY, 0, 0x08 /* RESOLVE_BENEATH */);

	assert_true(f >= 0);
	assert_true((fcntl(f, F_GETFD) & FD_CLOEXEC) != 0);
	assert_int_equal(fd_openat2(d, "../etc", O_RDONLY, 0, 0x08), -1);
	assert_int_equal(errno, EXDEV);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void descriptors_have_owners(void **state)
{
	int p[2], copy;
	char big[100];

	(void)state;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(fd_write_full(p[1], "abc", 3), 0);
	copy = fd_take(&p[1]);
	assert_int_equal(p[1], -1);
	errno = 7;
	fd_drop(&copy);
	assert_int_equal(copy, -1);
	assert_int_equal(errno, 7);
	fd_drop(&copy); /* nothing happens */
	assert_int_equal(fd_read_full(p[0], big, sizeof(big)), 3);
	assert_int_equal(fd_set_nonblock(p[0], true), 0);
	assert_true((fcntl(p[0], F_GETFL) & O_NONBLOCK) != 0);
	assert_int_equal(fd_set_cloexec(p[0], false), 0);
	assert_true((fcntl(p[0], F_GETFD) & FD_CLOEXEC) == 0);
	fd_drop(&p[0]);
	assert_int_equal(fd_read_full(-1, big, 1), -1);
	assert_int_equal(fd_write_full(-1, big, 1), -1);
}

static void secrets_are_kept(void **state)
{
	struct box_err err = { 0 };
	struct secret *s = secret_new(SV("hunter2\0x"), &err), *empty = secret_new(SV(""), &err);

	(void)state;
	assert_non_null(s);
	assert_true(sv_eq(secret_sv(s), SV("hunter2\0x")));
	assert_int_equal(secret_sv(empty).n, 0);
	secret_free(s);
	secret_free(empty);
	secret_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena_allocates),
		cmocka_unit_test(errors_carry_text),
		cmocka_unit_test(hashes_known_vectors),
		cmocka_unit_test(clocks_tell),
		cmocka_unit_test(files_are_whole),
		cmocka_unit_test(descriptors_have_owners),
		cmocka_unit_test(secrets_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
