/* Frames of a hostile client against the whole of box-files: parsers, walks, plans, answers. The
 * input is cut into frames: u16 type, u16 length, body. The monitor permits when the first byte
 * of the input is even. Effects can only reach /var/tmp/files-fuzz. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ipc.h"
#include "files/server.h"
#include "base/ban.h"

#define ROOT "/var/tmp/files-fuzz"

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);

static void start(struct srv *s, int *mon)
{
	AUTO_BUF b = buf_with(4096);
	struct box_err err;
	int sp[2], tmp;

	(void)mkdir(ROOT, 0700);
	(void)mkdir(ROOT "/tmp", 0700);
	tmp = open(ROOT "/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	buf_put_str(&b, SV(ROOT));
	buf_put_u16(&b, 1);
	buf_put_byte(&b, FILES_ROOT_WRITE);
	buf_put_str(&b, SV(ROOT));
	buf_put_u16(&b, 1);
	buf_put_byte(&b, FILES_PROT_BOX);
	buf_put_str(&b, SV(ROOT "/box"));
	buf_put_u64(&b, 0);
	buf_put_u64(&b, 0);
	buf_put_u16(&b, 0);
	if (tmp < 0 || ipc_pair(sp, &err) != 0 ||
	    ipc_send(sp[0], MON_START, 0, &b, &tmp, 1, &err) != 0 ||
	    srv_start(s, sp[1], &err) != 0 || srv_open(s, &err) != 0)
		abort();
	(void)close(tmp);
	*mon = sp[0];
}

/* Let both sides work until nothing moves any more. */
static void settle(struct srv *s, int mon, bool permit)
{
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	struct box_err err;

	for (int quiet = 0; quiet < 2;) {
		if (srv_turn(s, false, &err) != 0)
			abort();
		quiet++;
		while (ipc_recv_nowait(mon, &m, &err) == 1) {
			AUTO_BUF v = buf_with(64);

			quiet = 0;
			if (m.type != MON_ASK_FS)
				continue;
			buf_put_byte(&v, permit);
			if (permit) {
				buf_put_u64(&v, 1);
			} else {
				buf_put_u16(&v, 0);
				buf_put_str(&v, SV("no"));
			}
			if (ipc_send(mon, MON_VERDICT, m.id, &v, NULL, 0, &err) != 0)
				abort();
		}
		if (s->ready != NULL)
			quiet = 0;
	}
}

static void drain(int fd)
{
	AUTO_IPC_MSG m = IPC_MSG_INIT;
	struct box_err err;

	while (ipc_recv_nowait(fd, &m, &err) == 1)
		continue;
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	struct srv s;
	AUTO_BUF b = buf_with(64);
	struct rd r = rd_of(d, n);
	bool permit = rd_u8(&r) % 2 == 0;
	struct box_err err;
	int mon, sp[2];

	start(&s, &mon);
	if (ipc_pair(sp, &err) != 0)
		abort();
	buf_put_u32(&b, 1);
	if (ipc_send(mon, MON_CLIENT, 0, &b, &sp[1], 1, &err) != 0)
		abort();
	(void)close(sp[1]);
	for (uint32_t id = 1; rd_left(&r) >= 4 && id < 16; id++) {
		AUTO_BUF body = buf_with(IPC_BODY_MAX);
		uint16_t type = rd_u16(&r), len = rd_u16(&r);

		buf_put_sv(&body, rd_bytes(&r, len < rd_left(&r) ? len : rd_left(&r)));
		(void)ipc_send_nowait(sp[0], type, id, &body, NULL, 0, &err);
		settle(&s, mon, permit);
		drain(sp[0]);
	}
	(void)close(sp[0]);
	settle(&s, mon, permit);
	srv_fini(&s);
	(void)close(mon);
	return 0;
}
