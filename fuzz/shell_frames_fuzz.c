/* Frames of a box-shell that was taken over, into the monitor: before it has a command, or (first
 * byte odd) while it runs one. */
#include "monitor/session.c"

#include "monitor_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rig *r = rig_get();
	struct session *s = calloc(1, sizeof(*s));
	struct box_err err;
	int pair[2];

	if (size == 0) {
		free(s);
		return 0;
	}
	if (s == NULL || ipc_pair(pair, &err) != 0)
		abort();
	*s = (struct session){ .m = &r->m,
		.id = r->m.next_session++,
		.next_tool = 1,
		.crew = { .m = &r->m, .program = "box-shell", .pid = -1, .pidfd = -1 },
		.arena = { .limit = (size_t)8 << 20 } };
	s->next = r->m.sessions;
	r->m.sessions = s;
	r->m.sessions_n++;
	if (add_chan(s, pair[0], true, &err) == NULL)
		abort();
	if ((data[0] & 1) != 0)
		chan_set_state(s->chans->chan, SESSION_LIVE);
	rig_feed(r, pair[1], data + 1, size - 1);
	(void)close(pair[1]);
	rig_settle(r);
	return 0;
}
