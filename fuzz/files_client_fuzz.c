/* The answers of a box-files to the client in a shell: whatever comes, each call ends, with what
 * was asked for or an error; after a malformed answer the channel is gone. The first byte picks the
 * call; then the answers: u16 type, u8 id and descriptors, u16 length, body. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ipc.h"
#include "files/client.h"
#include "files/proto.h"

#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);

static void on_entry(void *arg, const struct files_entry *e, const struct files_stat *st)
{
	size_t *sum = arg;

	CHECK(e->name[0] != '\0' && strchr(e->name, '/') == NULL);
	*sum += strlen(e->name) + (st != NULL ? st->mode : 0);
}

static void on_note(
    void *arg, enum files_tree_event ev, const char *shown, const struct files_err *e)
{
	size_t *sum = arg;

	CHECK(ev == FILES_TREE_DID || ev == FILES_TREE_ERROR);
	*sum += strlen(shown) + (e->path != NULL ? strlen(e->path) : 0);
	if (ev == FILES_TREE_ERROR)
		CHECK(e->why != FILES_OK && e->text != NULL);
}

static int tree(struct files *f, size_t *sum)
{
	static const char *const src[] = { "/a", "/b" }, *const shown[] = { "a", "b" };
	struct files_tree_opts o = { .op = FILES_TREE_COPY, .recursive = true, .verbose = true };

	return files_tree(f, &o, src, shown, 2, "/dst", on_note, sum);
}

static int open_some(struct files *f, size_t want)
{
	struct files_open_req req[6];
	int fds[6], r;
	size_t bad;

	for (size_t i = 0; i < want; i++)
		req[i] = (struct files_open_req){ "/a", O_WRONLY, 0600 };
	r = files_open_all(f, req, want, fds, &bad);
	CHECK(bad < want);
	for (size_t i = 0; i < want; i++) {
		CHECK((r == 0) == (fds[i] >= 0));
		fd_drop(&fds[i]);
	}
	return r;
}

static int call(struct files *f, uint8_t which, struct buf *out, size_t *sum)
{
	struct files_stat st;
	int fd = -1, r;

	switch (which % 10) {
	case 0:
		return files_stat(f, "/a", true, &st);
	case 1:
		return files_list(f, "/a", true, on_entry, sum);
	case 2:
		return files_readlink(f, "/a", out);
	case 3:
		return files_realpath(f, "/a", false, out);
	case 4:
		r = files_mktemp(f, "/a.XXXXXX", which / 10 % 2 != 0, &fd, out);
		CHECK(r == 0 || fd < 0);
		fd_drop(&fd);
		return r;
	case 5:
		return files_locate(f, "a", "/bin", out);
	case 6:
		return tree(f, sum);
	case 7:
		return open_some(f, 6);
	case 8:
		return open_some(f, 1);
	default:
		return files_rename(f, "/a", "/b", false);
	}
}

/* All answers are there before the question, and then the end. */
static void answers(int fd, struct rd *in)
{
	const int fds[IPC_FDS_MAX] = { fd, fd, fd, fd };
	struct box_err err;

	CHECK(fd_set_nonblock(fd, true) == 0);
	for (int i = 0; i < 32 && rd_left(in) >= 5; i++) {
		uint16_t type = rd_u16(in);
		uint8_t how = rd_u8(in);
		size_t len = rd_u16(in);
		sv body = rd_bytes(in, len < rd_left(in) ? len : rd_left(in));
		AUTO_BUF b = buf_with(IPC_BODY_MAX);

		buf_put_sv(&b, body);
		if (ipc_send(fd, type, (how & 0x0f) == 0 ? 1 : how & 0x0f, &b, fds,
		        (how >> 4) % (IPC_FDS_MAX + 1), &err) != 0)
			break;
	}
	CHECK(shutdown(fd, SHUT_WR) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	struct rd in = rd_of(d, n);
	uint8_t which = rd_u8(&in);
	AUTO_BUF out = buf_with(1 << 16);
	struct box_err err;
	struct files *f;
	size_t sum = 0;
	int sp[2];

	CHECK(ipc_pair(sp, &err) == 0);
	f = files_new(sp[0]);
	CHECK(f != NULL);
	answers(sp[1], &in);
	if (call(f, which, &out, &sum) != 0 && which % 10 != 6)
		CHECK(files_error(f)->why != FILES_OK && files_error(f)->text != NULL);
	(void)files_unlink(f, "/a"); /* its answer may be among those that are left */
	files_free(f);
	(void)close(sp[1]);
	return 0;
}
