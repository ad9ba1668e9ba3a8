/* What stands on the sockets of `dogwood serve` and its clients: frames, however they are cut, and
 * the objects in them. What is read is written and read again as it was. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "dogwood-cmd/wire.h"
#include "engine/valjson.h"

#include "base/ban.h"

#define CHECK(x) ((x) ? (void)0 : abort())

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void object(sv text)
{
	static const char *const names[] = { "op", "event", NULL };
	AUTO_ARENA a = { .limit = (size_t)64 << 20 };
	struct box_err err = { 0 };
	struct dw_val v;
	sv s;

	if (wire_parse(&a, text, &v, &err) < 0) {
		CHECK(err.code != BOX_OK);
		return;
	}
	CHECK(v.tag == DW_OBJECT);
	if (wire_only(&v, names, &err) == 0)
		CHECK(v.u.obj.n <= 2);
	CHECK(wire_str(&v, "op", &s) || s.n == 0);
}

static void send_on(int fd, int back, const struct buf *frame)
{
	AUTO_BUF again = buf_with(WIRE_MAX + 1);

	CHECK(wire_write(fd, frame) == 0);
	CHECK(wire_read(back, &again, NULL) == WIRE_FRAME);
	CHECK(sv_eq(buf_sv(&again), buf_sv(frame)));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	AUTO_BUF b = buf_with(WIRE_MAX + 1);
	struct box_err err = { 0 };
	enum wire_got got;
	int in[2], out[2];

	if (n > 60000)
		return 0;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out) == 0);
	CHECK(fd_write_full(in[1], p, n) == 0 && shutdown(in[1], SHUT_WR) == 0);
	while ((got = wire_read(in[0], &b, &err)) == WIRE_FRAME) {
		CHECK(b.n <= n);
		object(buf_sv(&b));
		send_on(out[0], out[1], &b);
	}
	CHECK(got == WIRE_CLOSED || err.code != BOX_OK);
	for (int i = 0; i < 2; i++) {
		(void)close(in[i]);
		(void)close(out[i]);
	}
	return 0;
}
