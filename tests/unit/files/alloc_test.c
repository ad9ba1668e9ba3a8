/* No memory at every point: each request runs with the n-th allocation failing, for every n.
 * box-files must answer or end that client, never crash, leak, or change what it reported as
 * failed, and serve the next client. The server runs in this thread, turn by turn. */
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../base/failmalloc.h"
#include "base/fd.h"
#include "base/ipc.h"
#include "files/server.h"
#include "base/ban.h"

void *__wrap_reallocarray(void *p, size_t n, size_t size);
/* failmalloc.h wraps realloc; this is the same call for vectors. */
void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	size_t total;

	return __builtin_mul_overflow(n, size, &total) ? NULL : realloc(p, total);
}

struct box {
	struct srv s;
	int mon;
	char dir[64];
};

static const char *at(const struct box *b, const char *name)
{
	static char path[4][256];
	static int turn;

	turn = (turn + 1) % 4;
	(void)snprintf(path[turn], sizeof(path[turn]), "%s/%s", b->dir, name);
	return path[turn];
}

static void make_file(const char *path)
{
	AUTO_FD fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_int_equal(write(fd, "1\n", 2), 2);
}

static void make_tree(struct box *b)
{
	assert_non_null(mkdtemp(b->dir));
	assert_int_equal(mkdir(at(b, "tmp"), 0755), 0);
	assert_int_equal(mkdir(at(b, "d"), 0755), 0);
	assert_int_equal(mkdir(at(b, "d/s"), 0755), 0);
	make_file(at(b, "f"));
	make_file(at(b, "d/g"));
	assert_int_equal(symlink("g", at(b, "d/l")), 0);
	assert_int_equal(symlink("q", at(b, "l")), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *f)
{
	(void)st;
	(void)type;
	(void)f;
	return remove(path);
}

static void start(struct box *b)
{
	AUTO_BUF body = buf_with(4096);
	char tmp[128];
	struct box_err err;
	int sp[2], fd;

	(void)snprintf(tmp, sizeof(tmp), "%s/tmp", b->dir);
	fd = open(tmp, O_PATH | O_DIRECTORY | O_CLOEXEC);
	buf_put_str(&body, sv_c(b->dir));
	buf_put_u16(&body, 1);
	buf_put_byte(&body, FILES_ROOT_WRITE);
	buf_put_str(&body, sv_c(b->dir));
	buf_put_u16(&body, 0);
	buf_put_u16(&body, 0);
	assert_int_equal(ipc_pair(sp, &err), 0);
	assert_int_equal(ipc_send(sp[0], MON_START, 0, &body, &fd, 1, &err), 0);
	fd_drop(&fd);
	assert_int_equal(srv_start(&b->s, sp[1], &err), 0);
	assert_int_equal(srv_open(&b->s, &err), 0);
	b->mon = sp[0];
}

/* Both sides until nothing moves. 0: still serving. The monitor's side fails too: then its
 * answer is missing. */
static int settle(struct box *b)
{
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	struct box_err err;

	for (int quiet = 0; quiet < 2; quiet++) {
		if (srv_turn(&b->s, false, &err) != 0)
			return -1;
		if (b->s.ready != NULL)
			quiet = -1;
		while (ipc_recv_nowait(b->mon, &m, &err) == 1) {
			AUTO_BUF v = buf_with(64);

			quiet = -1;
			if (m.type != MON_ASK_FS)
				continue;
			buf_put_byte(&v, 1);
			buf_put_u64(&v, 1);
			if (!buf_ok(&v))
				return -1; /* the fault hit the test's own side */
			if (ipc_send(b->mon, MON_VERDICT, m.id, &v, NULL, 0, &err) != 0)
				return -1;
		}
	}
	return 0;
}

static int new_client(struct box *b)
{
	AUTO_BUF body = buf_with(16);
	struct box_err err;
	int sp[2];

	buf_put_u32(&body, 1);
	assert_int_equal(ipc_pair(sp, &err), 0);
	assert_int_equal(ipc_send(b->mon, MON_CLIENT, 0, &body, &sp[1], 1, &err), 0);
	fd_drop(&sp[1]);
	return sp[0];
}

static void put_path(struct buf *out, const struct box *b, const char *name)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", b->dir, name);
	buf_put_str(out, sv_c(path));
}

/* The frames of request number k; false when there is none. */
static bool frames(const struct box *b, int k, struct buf *f, uint16_t *type)
{
	switch (k) {
	case 0:
		*type = FILES_OPEN;
		buf_put_u16(f, 2);
		for (int i = 0; i < 2; i++) {
			buf_put_u32(f, O_WRONLY | O_CREAT);
			buf_put_u32(f, 0644);
			put_path(f, b, i == 0 ? "new" : "f");
		}
		return true;
	case 1:
		*type = FILES_LIST;
		buf_put_byte(f, 1);
		put_path(f, b, "d");
		return true;
	case 2:
		*type = FILES_RENAME;
		buf_put_byte(f, 0);
		put_path(f, b, "d");
		put_path(f, b, "e");
		return true;
	case 3:
		*type = FILES_SYMLINK;
		buf_put_byte(f, 1);
		buf_put_str(f, SV("f"));
		put_path(f, b, "l");
		return true;
	case 4:
		*type = FILES_LOCATE;
		buf_put_str(f, SV("sh"));
		buf_put_str(f, SV("/nowhere:/bin"));
		return true;
	case 5:
		*type = FILES_MKTEMP;
		buf_put_byte(f, 0);
		put_path(f, b, "t.XXXXXX");
		return true;
	case 6:
	case 7:
		*type = FILES_TREE_BEGIN;
		buf_put_byte(f, k == 6 ? FILES_TREE_REMOVE : FILES_TREE_COPY);
		buf_put_u32(f, FILES_TF_RECURSIVE | FILES_TF_NO_DEREF | FILES_TF_VERBOSE);
		buf_put_u32(f, 0);
		buf_put_u32(f, 022);
		if (k == 6)
			buf_put_str(f, SV(""));
		else
			put_path(f, b, "copy");
		return true;
	}
	return false;
}

/* Did an allocation fail? */
static bool run_request(struct box *b, int k, size_t nth)
{
	AUTO_BUF f = buf_with(IPC_BODY_MAX), add = buf_with(IPC_BODY_MAX);
	struct box_err err;
	uint16_t type = 0;
	int fd = new_client(b);
	bool hit;

	assert_int_equal(settle(b), 0);
	assert_true(frames(b, k, &f, &type));
	assert_int_equal(ipc_send(fd, type, 1, &f, NULL, 0, &err), 0);
	if (type == FILES_TREE_BEGIN) {
		buf_put_u16(&add, 1);
		put_path(&add, b, "d");
		assert_int_equal(ipc_send(fd, FILES_TREE_ADD, 2, &add, NULL, 0, &err), 0);
		assert_int_equal(ipc_send(fd, FILES_TREE_GO, 3, NULL, NULL, 0, &err), 0);
	}
	fail_after(nth);
	(void)settle(b);
	hit = fail_happened() != 0;
	fail_after(0);
	fd_drop(&fd);
	(void)settle(b);
	return hit;
}

static void test_sweep(void **state)
{
	(void)state;
	for (int k = 0; k < 8; k++) {
		for (size_t n = 1; n < 2000; n++) {
			struct box b = { .dir = "/var/tmp/files-alloc-XXXXXX" };
			bool hit;

			make_tree(&b);
			start(&b);
			hit = run_request(&b, k, n);
			/* Whatever happened: the server goes on, unless it lost the monitor's
			 * frame. */
			if (!b.s.mon.broken && !b.s.stop)
				(void)run_request(&b, 1, 0);
			srv_fini(&b.s);
			fd_drop(&b.mon);
			assert_int_equal(nftw(b.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
			if (!hit)
				break;
			assert_true(n < 1999);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_sweep) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
