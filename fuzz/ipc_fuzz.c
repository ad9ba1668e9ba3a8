/* Frames as a hostile peer would send them: raw bytes on the socket, received and dispatched
 * through a table. */
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/ipc.h"

static int on_frame(void *ctx, struct ipc_msg *m, struct box_err *err)
{
	sv s = rd_str(&m->body, 64);

	(void)ctx;              /* nothing is kept */
	(void)rd_u32(&m->body); /* `bad` tells */
	return rd_done(&m->body) && s.n <= 64 ? 0 : box_fail(err, BOX_EDENIED, 0, "bad body");
}

static const struct ipc_rule rules[] = {
	{ 1, "one", 1, 0, 0, 100, on_frame },
	{ 2, "two", 2, 0, 2, 16, on_frame },
	{ 0, NULL, 0, 0, 0, 0, NULL },
};

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	struct box_err err = { 0 };
	int sp[2];

	if (n > IPC_HDR + IPC_BODY_MAX || ipc_pair(sp, &err) != 0)
		return 0;
	AUTO_FD a = sp[0];
	AUTO_FD b = sp[1];

	if (send(a, d, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n && n != 0 &&
	    ipc_recv(b, &m, &err) == 1)
		(void)ipc_dispatch(
		    rules, 1 + (m.id & 1), NULL, &m, &err); /* both outcomes are fine */
	return 0;
}
